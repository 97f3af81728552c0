"""Collectives: ops in which the values of all replicas along a mesh axis meet.

A function of one replica is a graph in which they stand.  A graph for many replicas has an axis in front instead (see
``batching``): there, in a block ``mapped`` over that axis, each collective becomes ordinary ops on it, so that no
program ever has one.  Over any other axis (an ``hf.vmap`` inside of a replica) they stay what they are.

    all_reduce(x) {axis, size, reduce}            the sum, mean, largest or smallest of all, the same for each
    all_gather(x) {axis, size, along}             all of them behind each other along an array axis, the same for each
    reduce_scatter(x) {axis, size, reduce, along} the sum or mean of all, of which each replica has its part
    all_to_all(x) {axis, size, split, concat}     each replica's part number r goes to replica r, which puts what it is
                                                  given behind each other
    broadcast_replica(x) {axis, size, source}     the value of one replica, the same for each
    permute_replicas(x) {axis, size, pairs}       for each pair (from, to) the value of another one; zeros without one
    axis_index() {axis, size}                     the number of the replica, an int64
    gather_parts(x) {axis, size, count}           ``count`` elements, of which each process has the run that is its own;
                                                  the same for each of its replicas

Their order of summation is that of ``replica_tree``: it depends on the number of replicas and on nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.build import Builder, Cotangent, GraphBuilder, Value
from hybridflow.compiler.ir.types import Extent, TensorType
from hybridflow.compiler.ops import reference_arrays, type_rules
from hybridflow.compiler.ops.batching_rules import MeshAxis, PartlyBatched, axis_to_front, mapped_axis, numbered
from hybridflow.compiler.ops.evaluation_order import replica_fold
from hybridflow.compiler.ops.op_table import NOT_DIFFERENTIABLE, Kind, define
from hybridflow.compiler.ops.replica_tree import canonical_nodes, folded
from hybridflow.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError, user_location

if TYPE_CHECKING:
    from hybridflow.compiler.ir.extents import Dim


REDUCTIONS = ("sum", "mean", "max", "min")


# ---- each collective in a graph for all replicas


def _rows(b: Builder, x: Value) -> list[Any]:
    """The value of each replica."""
    shape = x.type.shape[1:]
    zeros, ones = (0,) * len(shape), (1,) * (len(shape) + 1)
    return [
        b.reshape(b.slice(x, start=(k, *zeros), stop=(k + 1, *shape), step=ones), shape=shape)
        for k in range(x.type.shape[0])
    ]


_COMBINE: dict[str, str] = {"sum": "add", "mean": "add", "max": "maximum", "min": "minimum"}


def _exchanged(
    b: Builder, make: Callable[..., Any], name: str, x: Value, shape: tuple[int | Dim, ...], axis: MeshAxis
) -> Value:
    """What the processes that share the replicas out make of the values that each has: another array of a shape."""
    assert axis.share is not None
    types = (x.type.with_shape(shape), TensorType((), dt.int32))
    if not isinstance(b, GraphBuilder):
        result, _ = axis.share.live(make(name, shape, axis.size, user_location()), x, types)
        return result
    function = make(name, shape, axis.size, b.location)
    operands = (x,) if b.exchanged is None else (x, b.exchanged)
    record = function.record(x.type.dtype)
    number = numbered(function)
    result, b.exchanged = b.results(b.ask(*operands, number=number, types=types, is_last=True, exchange=record))
    return result


def _of_all(b: Builder, name: str, x: Value, differs: bool, axis: MeshAxis) -> Value:
    """The values of all replicas, be they of this process or of others, along the first axis."""
    if not differs or axis.share is None:
        return axis_to_front(b, x, differs, axis.size)
    if not axis.share.length:
        x = b.full(0, like=x.type.with_shape((0, *x.type.shape[1:])))
    return _exchanged(b, axis.share.gathers, name, x, (axis.size, *x.type.shape[1:]), axis)


def of_this_process(b: Builder, x: Value, axis: MeshAxis) -> Any:
    """Of the values of all replicas, those of this process."""
    if axis.share is None:
        return x
    first, count, shape = axis.share.first, axis.here, x.type.shape[1:]
    zeros, ones = (0,) * len(shape), (1,) * (len(shape) + 1)
    return b.slice(x, start=(first, *zeros), stop=(first + count, *shape), step=ones)


def _nodes(
    b: Builder, values: list[Any], combine: Callable[[Any, Any], Any], like: TensorType, axis: MeshAxis
) -> Value:
    """The nodes of the tree that this process has, stacked."""
    assert axis.share is not None
    first = axis.share.first
    places = canonical_nodes(first, first + axis.share.length, axis.size)
    if not places:
        return b.full(0, like=like.with_shape((0, *like.shape)))
    rows = [folded(combine, values[low - first : high - first]) for low, high in places]
    stacked = [b.reshape(row, shape=(1, *like.shape)) for row in rows]
    return b.concat(*stacked, axis=0) if len(stacked) > 1 else stacked[0]


def reduced(b: Builder, x: Value, differs: bool, axis: MeshAxis, reduce: str) -> Any:
    """What all replicas' values come to, through any builder.  ``differs``: each has one of its own, along the first
    axis of ``x``; else ``x`` is the value of each."""
    shared = differs and axis.share is not None
    if shared and reduce in ("max", "min"):
        x, shared = _of_all(b, "all_reduce", x, differs, axis), False
    combine: Callable[[Any, Any], Any] = getattr(b, _COMBINE[reduce])
    dtype = x.type.dtype
    wide = dt.compute_dtype(dtype)
    if wide != dtype:
        x = b.convert(x, dtype=wide)
    values = _rows(b, x) if differs else [x] * axis.size
    if shared and axis.share is not None:
        like = x.type.with_shape(x.type.shape[1:])
        nodes = _nodes(b, values, combine, like, axis)
        total = _exchanged(b, axis.share.sums, "all_reduce", nodes, like.shape, axis)
    else:
        total = folded(combine, values)
    if reduce == "mean":
        total = b.divide(total, b.full(axis.size, like=total.type))
    return total if wide == dtype else b.convert(total, dtype=dtype)


def gathered(b: Builder, x: Value, differs: bool, axis: MeshAxis, along: int) -> Any:
    """The values of all replicas behind each other along an array axis."""
    x = _of_all(b, "all_gather", x, differs, axis)
    shape = x.type.shape[1:]
    order = (*range(1, along + 1), 0, *range(along + 1, len(shape) + 1))
    moved = b.transpose(x, perm=order) if along else x
    return b.reshape(moved, shape=_times(shape, along, axis.size))


def _times(shape: Sequence[Any], along: int, count: int) -> tuple[Any, ...]:
    return (*shape[:along], shape[along] * count, *shape[along + 1 :])


def parts(b: Builder, x: Value, along: int, count: int) -> Any:
    """``count`` equal parts along an array axis, stacked along a first one."""
    shape = x.type.shape
    cut = b.reshape(x, shape=(*shape[:along], count, shape[along] // count, *shape[along + 1 :]))
    rank = len(shape) + 1
    order = (along, *(k for k in range(rank) if k != along))
    return b.transpose(cut, perm=order) if along else cut


def _all_reduce(b: Builder, axis: MeshAxis, x: Value, differs: bool, reduce: str) -> tuple[Any, bool]:
    return reduced(b, x, differs, axis, reduce), False


def _all_gather(b: Builder, axis: MeshAxis, x: Value, differs: bool, along: int) -> tuple[Any, bool]:
    return gathered(b, x, differs, axis, along), False


def _reduce_scatter(b: Builder, axis: MeshAxis, x: Value, differs: bool, reduce: str, along: int) -> tuple[Any, bool]:
    return of_this_process(b, parts(b, reduced(b, x, differs, axis, reduce), along, axis.size), axis), True


def _all_to_all(b: Builder, axis: MeshAxis, x: Value, differs: bool, split: int, concat: int) -> tuple[Any, bool]:
    x = _of_all(b, "all_to_all", x, differs, axis)
    cut = parts(b, x, split + 1, axis.size)  # receiver, sender, the part
    shape = cut.type.shape[2:]
    rank = len(shape) + 2
    order = (0, *range(2, concat + 2), 1, *range(concat + 2, rank))
    moved = b.transpose(cut, perm=order) if concat else cut
    whole = b.reshape(moved, shape=(axis.size, *_times(shape, concat, axis.size)))
    return of_this_process(b, whole, axis), True


def _broadcast_replica(b: Builder, axis: MeshAxis, x: Value, differs: bool, source: int) -> tuple[Any, bool]:
    return (_rows(b, _of_all(b, "broadcast", x, differs, axis))[source] if differs else x), False


def _permute_replicas(
    b: Builder, axis: MeshAxis, x: Value, differs: bool, pairs: tuple[tuple[int, int], ...]
) -> tuple[Any, bool]:
    values = _rows(b, _of_all(b, "permute", x, differs, axis))
    source = {target: sender for sender, target in pairs}
    zero = b.full(0, like=values[0].type)
    rows = [values[source[k]] if k in source else zero for k in range(axis.size)]
    shape = (1, *values[0].type.shape)
    return of_this_process(b, b.concat(*[b.reshape(v, shape=shape) for v in rows], axis=0), axis), True


def _gather_parts(b: Builder, axis: MeshAxis, x: Value, differs: bool, count: int) -> tuple[Any, bool]:
    if differs:
        raise ArgumentError("gather_parts", "each replica has a part of its own. Expected the same for all of them.")
    if axis.share is None:
        return x, False
    return _exchanged(b, axis.share.gathers, "gather_parts", x, (count,), axis._replace(size=count)), False


def _axis_index(b: Builder, axis: MeshAxis) -> tuple[Any, bool]:
    return of_this_process(b, b.iota(shape=(axis.size,), axis=0, dtype=dt.int64), axis), True


# ---- declarations

_ARRAY_AXES = ("along", "split", "concat")  # attributes that name an axis of the array


def _batch(meeting: Callable[..., tuple[Any, bool]]) -> Callable[..., Any]:
    def rule(b: Builder, op: Any, size: Extent, batched: Sequence[bool], /, *inputs: Value, **attrs: Any) -> Any:
        axis = mapped_axis()
        if axis is None or attrs["axis"] != axis.name:
            moved = {name: value + 1 if name in _ARRAY_AXES else value for name, value in attrs.items()}
            return b.emit(op, *inputs, **moved)
        if attrs["size"] != axis.size:
            raise ArgumentError(
                op.name, f"the axis {axis.name!r} has {axis.size} replicas here, and was taken to have {attrs['size']}."
            )
        rest = {name: value for name, value in attrs.items() if name not in ("axis", "size")}
        result, differs = meeting(b, axis, *(part for pair in zip(inputs, batched) for part in pair), **rest)
        return PartlyBatched(result, (differs,))

    return rule


def _canon(name: str) -> Callable[..., dict[str, Any]]:
    def canon(types: Sequence[TensorType], attrs: dict[str, Any]) -> dict[str, Any]:
        axis, size = attrs["axis"], attrs["size"]
        if not isinstance(axis, str):
            raise ArgumentTypeError(name, f"axis is {axis!r}. Expected the name of a mesh axis.")
        if type(size) is not int or size < 1:
            raise ArgumentError(name, f"size is {size!r}. Expected the number of replicas, 1 or more.")
        canonical = dict(attrs)
        if "reduce" in attrs:
            allowed = REDUCTIONS if name == "all_reduce" else REDUCTIONS[:2]
            if attrs["reduce"] not in allowed:
                raise ArgumentError(name, f"reduce is {attrs['reduce']!r}. Expected one of {', '.join(allowed)}.")
            _check_reduction(name, attrs["reduce"], types[0])
        for key in _ARRAY_AXES:
            if key in attrs:
                canonical[key] = type_rules.axis(name, types[0], attrs[key])
        for key in ("along", "split"):
            if key in attrs and name != "all_gather":
                _check_parts(name, types[0], canonical[key], size)
        if "source" in attrs:
            canonical["source"] = _replica(name, "source", attrs["source"], size)
        if "pairs" in attrs:
            canonical["pairs"] = _pairs(name, attrs["pairs"], size)
        return canonical

    return canon


def _check_reduction(name: str, reduce: str, x: TensorType) -> None:
    if x.dtype == dt.bool_:
        raise DTypeError(name, f"the value is {x}. Expected numbers: convert it first, as by hf.astype(x, hf.int32).")
    if reduce == "mean" and not dt.is_float(x.dtype):
        raise DTypeError(name, f"the value is {x}. A mean is of floats: convert it first.")


def _check_parts(name: str, x: TensorType, axis: int, size: int) -> None:
    extent = x.shape[axis]
    if isinstance(extent, int) and extent % size:
        raise ShapeError(name, f"the value is {x}; its axis {axis} does not fall into {size} equal parts.")


def _replica(name: str, what: str, number: object, size: int) -> int:
    if isinstance(number, bool) or not isinstance(number, int) or not -size <= number < size:
        raise ArgumentError(name, f"{what} is {number!r}. Expected the number of one of {size} replicas.")
    return number % size


def _pairs(name: str, pairs: Any, size: int) -> tuple[tuple[int, int], ...]:
    try:
        replicas = [(_replica(name, "a pair's source", a, size), _replica(name, "a target", b, size)) for a, b in pairs]
    except (TypeError, ValueError):
        raise ArgumentTypeError(name, f"pairs are {pairs!r:.60}. Expected pairs (source, target).") from None
    for what, place in (("source", 0), ("target", 1)):
        numbers = [pair[place] for pair in replicas]
        if len(set(numbers)) < len(numbers):
            raise ArgumentError(name, f"pairs are {replicas}: a replica is the {what} of two.")
    return tuple(sorted(replicas))


def _all_reduce_vjp(
    b: Builder, g: Value, out: Value, x: Value, axis: str, size: int, reduce: str
) -> tuple[Cotangent, ...]:
    """Cotangents are those of the sum of all replicas' results."""
    if reduce in ("sum", "mean"):
        return (b.all_reduce(g, axis=axis, size=size, reduce=reduce),)
    zero, one = b.full(0, like=x.type), b.full(1, like=x.type)
    taken = b.equal(x, out)  # replicas whose value is the result share its cotangent evenly
    ties = b.all_reduce(b.where(taken, one, zero), axis=axis, size=size, reduce="sum")
    total = b.all_reduce(g, axis=axis, size=size, reduce="sum")
    return (b.where(taken, b.divide(total, ties), zero),)


def _reduce_scatter_vjp(
    b: Builder, g: Value, out: Value, x: Value, axis: str, size: int, reduce: str, along: int
) -> tuple[Cotangent, ...]:
    whole = b.all_gather(g, axis=axis, size=size, along=along)
    return (b.divide(whole, b.full(size, like=whole.type)) if reduce == "mean" else whole,)


def _broadcast_vjp(
    b: Builder, g: Value, out: Value, x: Value, axis: str, size: int, source: int
) -> tuple[Cotangent, ...]:
    total = b.all_reduce(g, axis=axis, size=size, reduce="sum")
    number = b.axis_index(axis=axis, size=size)
    mine = b.equal(number, b.full(source, like=number.type))
    everywhere = b.broadcast(mine, shape=g.type.shape, axes=()) if g.type.shape else mine
    return (b.where(everywhere, total, b.full(0, like=g.type)),)


# References: of the values of all replicas, stacked along a first axis, the results of all.


def _same_for_all(one: np.ndarray, size: int) -> np.ndarray:
    return np.stack([one] * size)


def _all_reduce_reference(x: np.ndarray, axis: str, size: int, reduce: str) -> np.ndarray:
    combine = {"max": np.maximum, "min": np.minimum}.get(reduce, np.add)
    total = replica_fold(combine, reference_arrays.computed(x))
    if reduce == "mean":
        total = total / total.dtype.type(size)
    return _same_for_all(reference_arrays.convert(total, x.dtype), size)


def _all_gather_reference(x: np.ndarray, axis: str, size: int, along: int) -> np.ndarray:
    return _same_for_all(np.concatenate(list(x), along), size)


def _reduce_scatter_reference(x: np.ndarray, axis: str, size: int, reduce: str, along: int) -> np.ndarray:
    return np.stack(np.split(_all_reduce_reference(x, axis, size, reduce)[0], size, along))


def _all_to_all_reference(x: np.ndarray, axis: str, size: int, split: int, concat: int) -> np.ndarray:
    parts = [np.split(one, size, split) for one in x]
    return np.stack([np.concatenate([mine[k] for mine in parts], concat) for k in range(size)])


def _permute_reference(x: np.ndarray, axis: str, size: int, pairs: tuple[tuple[int, int], ...]) -> np.ndarray:
    out = np.zeros_like(x)
    for source, target in pairs:
        out[target] = x[source]
    return out


def _collective(name: str, arity: int, meeting: Callable[..., tuple[Any, bool]], **fields: object) -> None:
    define(
        name,
        Kind.COLLECTIVE,
        arity,
        canon=_canon(name),
        batch=_batch(meeting),
        samples=lambda rng, dtype: [],
        dtypes=(),
        internal=True,
        **fields,
    )


_collective(
    "all_reduce",
    1,
    _all_reduce,
    doc="The sum, mean, largest or smallest of the values of all replicas along a mesh axis, by the tree of replicas.",
    infer=lambda x, axis, size, reduce: x,
    reference=_all_reduce_reference,
    vjp=_all_reduce_vjp,
)
_collective(
    "all_gather",
    1,
    _all_gather,
    doc="The values of all replicas along a mesh axis, behind each other along an array axis.",
    infer=lambda x, axis, size, along: x.with_shape(_times(x.shape, along, size)),
    reference=_all_gather_reference,
    vjp=lambda b, g, out, x, axis, size, along: (b.reduce_scatter(g, axis=axis, size=size, reduce="sum", along=along),),
)
_collective(
    "reduce_scatter",
    1,
    _reduce_scatter,
    doc="The sum or mean of the values of all replicas, of which each has the part of its number along an array axis.",
    infer=lambda x, axis, size, reduce, along: x.with_shape(
        (*x.shape[:along], x.shape[along] // size, *x.shape[along + 1 :])
    ),
    reference=_reduce_scatter_reference,
    vjp=_reduce_scatter_vjp,
)
_collective(
    "all_to_all",
    1,
    _all_to_all,
    doc="Part number r of each replica goes to replica r, which puts what it is given behind each other.",
    infer=lambda x, axis, size, split, concat: x.with_shape(
        _times((*x.shape[:split], x.shape[split] // size, *x.shape[split + 1 :]), concat, size)
    ),
    reference=_all_to_all_reference,
    vjp=lambda b, g, out, x, axis, size, split, concat: (
        b.all_to_all(g, axis=axis, size=size, split=concat, concat=split),
    ),
)
_collective(
    "broadcast_replica",
    1,
    _broadcast_replica,
    doc="The value of one replica along a mesh axis, for all of them.",
    infer=lambda x, axis, size, source: x,
    reference=lambda x, axis, size, source: _same_for_all(x[source], size),
    vjp=_broadcast_vjp,
)
_collective(
    "permute_replicas",
    1,
    _permute_replicas,
    doc="For each pair (source, target) the target has the source's value; a replica that is no target has zeros.",
    infer=lambda x, axis, size, pairs: x,
    reference=_permute_reference,
    vjp=lambda b, g, out, x, axis, size, pairs: (
        b.permute_replicas(g, axis=axis, size=size, pairs=tuple([(target, source) for source, target in pairs])),
    ),
)
_collective(
    "gather_parts",
    1,
    _gather_parts,
    doc="The elements of which each process has a run, all of them.",
    infer=lambda x, axis, size, count: x.with_shape((count,)),
    reference=lambda x, axis, size, count: x,
    vjp=NOT_DIFFERENTIABLE,
)
_collective(
    "axis_index",
    0,
    _axis_index,
    doc="The number of the replica along a mesh axis.",
    infer=lambda axis, size: TensorType((), dt.int64),
    reference=lambda axis, size: np.arange(size, dtype=np.int64),
    vjp=lambda b, g, out, axis, size: (),
)
