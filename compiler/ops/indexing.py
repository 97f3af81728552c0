"""Reading and adding through indices, and sorting.

Negative indices count from the end; an index out of range raises IndexRangeError at run time, wherever an element is
read or added through it (a slice without elements is neither).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.build import Builder, Cotangent, Value
from hybridflow.compiler.ir.extents import required
from hybridflow.compiler.ir.types import Extent, Shape, TensorType, product, same_shape
from hybridflow.compiler.ops import complex_pairs, reference_arrays, samples, type_rules, value_ranges
from hybridflow.compiler.ops.batching_rules import axis_to_front, broadcast_batched
from hybridflow.compiler.ops.emitter_protocol import ElementSource, Val
from hybridflow.compiler.ops.lowering import ScatterAdd, Sort
from hybridflow.compiler.ops.op_table import NOT_DIFFERENTIABLE, Kind, define
from hybridflow.compiler.program import Check
from hybridflow.errors import DTypeError, IndexRangeError, ShapeError

if TYPE_CHECKING:
    from hybridflow.compiler.index.index_expr import IndexExpr


_INDEX = frozenset((dt.int32, dt.int64))


def _message(shape: Shape, axis: int) -> str:
    """Without the dtype: passes convert before an index looks, or after."""
    size, place = shape[axis], f"axis {axis} of shape [{','.join(map(str, shape))}]"
    if size == 0:
        return f"an index is out of range for {place}, which has no elements. Expected no index at all."
    return f"an index is out of range for {place}. Expected -{size} <= index < {size}."


def range_check(name: str, x: TensorType, axis: int, where: str | None) -> Check:
    """The run-time check of an op that indexes ``axis`` of ``x``."""
    return Check(IndexRangeError.__name__, name, _message(x.shape, axis), where)


def _wrapped(name: str, x: np.ndarray, indices: np.ndarray, axis: int) -> np.ndarray:
    """Indices counted from the front, or the error that the kernel's check raises."""
    size = x.shape[axis]
    if np.any((indices < -size) | (indices >= size)):
        raise IndexRangeError(name, _message(x.shape, axis))
    return np.where(indices < 0, indices + size, indices).astype(np.int64)


def _always(types: tuple[TensorType, ...], attrs: object) -> bool:
    return True


def _checked(name: str, g: ElementSource, i: Val, axis: int) -> IndexExpr:
    """The index in the value ``i``, checked against ``axis`` of the first input."""
    x = g.types[0]
    return g.check_index(i, x.shape[axis], range_check(name, x, axis, g.e.where))


# ---- take


def _gathered_shape(x: TensorType, indices: TensorType, axis: int) -> tuple[Extent, ...]:
    return (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])


def _take_infer(x: TensorType, indices: TensorType, axis: int) -> TensorType:
    type_rules.check_dtype("take", indices, _INDEX, "the indices' type")
    return x.with_shape(_gathered_shape(x, indices, axis))


def _take_element(g: ElementSource, index: tuple[Any, ...], axis: int) -> Val:
    behind = axis + g.types[1].ndim
    j = _checked("take", g, g.load(1, index[axis:behind]), axis)
    return g.load(0, (*index[:axis], j, *index[behind:]))


def _indices(rng: np.random.Generator, size: int, shape: tuple[int, ...], dtype: np.dtype = dt.int64) -> np.ndarray:
    return rng.integers(-size, size, shape).astype(dtype) if size else np.zeros((0,) * len(shape), dtype)


def _take_reference(x: np.ndarray, indices: np.ndarray, axis: int) -> np.ndarray:
    shape = (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])
    return (
        np.asarray(np.take(x, _wrapped("take", x, indices, axis), axis)) if 0 not in shape else np.empty(shape, x.dtype)
    )


def _take_samples(rng: np.random.Generator, dtype: dt.DType) -> list[samples.Sample]:
    cases = [
        ((7,), (3,), 0),
        ((7,), (), 0),
        ((3, 5), (4,), 1),
        ((3, 5), (2, 2), 0),
        ((2, 3, 4), (0,), 1),
        ((0, 2), (0,), 0),
    ]
    return [
        ((samples.values(rng, dtype, shape), _indices(rng, shape[axis], count, kind)), {"axis": axis})
        for kind in (dt.int64, dt.int32)
        for shape, count, axis in cases
    ]


def _lines(b: Builder, x: TensorType, indices: Value, axis: int) -> Value:
    """The indices of each example for each line along ``axis`` of ``x``, whose first axis is that of the examples."""
    size, count = x.shape[0], product(indices.type.shape[1:])
    shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
    return b.broadcast(b.reshape(indices, shape=(size, count)), shape=shape, axes=(0, axis))


def _take_batch(
    b: Builder, op: object, size: Extent, batched: Sequence[bool], x: Value, indices: Value, axis: int
) -> Any:
    if not batched[1]:
        return b.take(x, indices, axis=axis + 1)
    if not batched[0]:
        out = b.take(x, indices, axis=axis)
        return b.transpose(out, perm=(axis, *range(axis), *range(axis + 1, out.type.ndim)))
    axis += 1
    taken = b.take_along_axis(x, _lines(b, x.type, indices, axis), axis=axis)
    return b.reshape(taken, shape=(*x.type.shape[:axis], *indices.type.shape[1:], *x.type.shape[axis + 1 :]))


def _take_vjp(b: Builder, g: Value, out: Value, x: Value, indices: Value, axis: int) -> tuple[Any, None]:
    if axis == 0:  # whose sum may wait
        from hybridflow.compiler.ops.sparse_grad import GatheredRows, SparseGrad  # which only derivatives need

        return SparseGrad(b, x.type, GatheredRows(indices, g)), None
    return b.scatter_add(b.full(0, like=x.type), indices, g, axis=axis), None


define(
    "take",
    Kind.GATHER,
    2,
    doc="The slices of x at ``indices`` along an axis; the axes of the indices replace it.",
    canon=type_rules.canon_axis("take"),
    infer=_take_infer,
    reference=_take_reference,
    element=_take_element,
    raises=_always,
    vjp=_take_vjp,
    batch=_take_batch,
    samples=_take_samples,
    dtypes=dt.REAL,
    facts={"exact": True, "bounds": value_ranges.of_first},
)


# ---- take_along_axis

_along_batch = broadcast_batched(lambda n, a: {"axis": a["axis"] + 1})


def _along_axis_infer(name: str, x: TensorType, indices: TensorType, axis: int) -> None:
    type_rules.check_dtype(name, indices, _INDEX, "the indices' type")
    expected = (*x.shape[:axis], *indices.shape[axis : axis + 1], *x.shape[axis + 1 :])
    if indices.ndim != x.ndim or not same_shape(indices.shape, expected):
        raise ShapeError(name, f"x is {x}, indices are {indices}. Expected equal extents but for axis {axis}.")


def _take_along_axis_infer(x: TensorType, indices: TensorType, axis: int) -> TensorType:
    _along_axis_infer("take_along_axis", x, indices, axis)
    return x.with_shape(indices.shape)


def _take_along_axis_element(g: ElementSource, index: tuple[Any, ...], axis: int) -> Val:
    j = _checked("take_along_axis", g, g.load(1, index), axis)
    return g.load(0, (*index[:axis], j, *index[axis + 1 :]))


def _take_along_axis_samples(rng: np.random.Generator, dtype: np.dtype) -> list[samples.Sample]:
    cases = [((7,), (3,), 0), ((3, 5), (3, 2), 1), ((3, 5), (9, 5), 0), ((2, 3, 4), (2, 0, 4), 1), ((0,), (0,), 0)]
    return [
        ((samples.values(rng, dtype, shape), _indices(rng, shape[axis], count, kind)), {"axis": axis})
        for kind in (dt.int64, dt.int32)
        for shape, count, axis in cases
    ]


define(
    "take_along_axis",
    Kind.GATHER,
    2,
    doc="Along an axis, each line of x at the matching line of indices.",
    canon=type_rules.canon_axis("take_along_axis"),
    infer=_take_along_axis_infer,
    reference=lambda x, indices, axis: np.take_along_axis(x, _wrapped("take_along_axis", x, indices, axis), axis),
    element=_take_along_axis_element,
    raises=_always,
    vjp=lambda b, g, out, x, indices, axis: (
        b.scatter_add_along_axis(b.full(0, like=x.type), indices, g, axis=axis),
        None,
    ),
    batch=_along_batch,
    samples=_take_along_axis_samples,
    dtypes=dt.REAL,
    facts={"exact": True, "bounds": value_ranges.of_first},
    paired=True,
)


# ---- scatter


def _scatter_batch(
    b: Builder, op: object, size: Extent, batched: Sequence[bool], x: Value, indices: Value, updates: Value, axis: int
) -> Any:
    x, updates = axis_to_front(b, x, batched[0], size), axis_to_front(b, updates, batched[2], size)
    axis += 1
    if not batched[1]:
        return b.scatter_add(x, indices, updates, axis=axis)
    lines = _lines(b, x.type, indices, axis)
    return b.scatter_add_along_axis(x, lines, b.reshape(updates, shape=lines.type.shape), axis=axis)


def _check_updates(
    name: str,
    x: TensorType,
    updates: TensorType,
    shape: tuple[Extent, ...],
    dtypes: Sequence[Any] = type_rules.NUMERIC + dt.COMPLEX,
) -> None:
    if updates.dtype != x.dtype:
        raise DTypeError(name, f"dtypes differ: x is {x}, updates are {updates}. Convert one with astype.")
    if not same_shape(updates.shape, shape):
        raise ShapeError(name, f"updates are {updates}. Expected {x.with_shape(shape)}, the type of what is taken.")
    type_rules.check_dtype(name, x, frozenset(dtypes))


def _scatter_add_infer(x: TensorType, indices: TensorType, updates: TensorType, axis: int) -> TensorType:
    type_rules.check_dtype("scatter_add", indices, _INDEX, "the indices' type")
    _check_updates("scatter_add", x, updates, _gathered_shape(x, indices, axis))
    return x


def _scatter_add_reference(x: np.ndarray, indices: np.ndarray, updates: np.ndarray, axis: int) -> np.ndarray:
    out = x.copy()
    if not updates.size:
        return out
    where: Any = (*(slice(None),) * axis, _wrapped("scatter_add", x, indices, axis))
    with np.errstate(all="ignore"):
        np.add.at(out, where, updates)
    return out


def _scatter_samples(take_samples: Callable[..., Any]) -> Callable[..., Any]:
    def make(rng: np.random.Generator, dtype: np.dtype) -> list[samples.Sample]:
        result: list[samples.Sample] = []
        for (x, indices), attrs in take_samples(rng, dtype):
            along = take_samples is _take_along_axis_samples
            shape = indices.shape if along else np.take(x, indices, attrs["axis"]).shape
            result.append(((x, indices, samples.values(rng, dtype, shape)), attrs))
        return result

    return make


def _scatter_add(name: str, paired: bool) -> Callable[[tuple[TensorType, ...], Mapping[str, Any]], ScatterAdd]:
    def lower(types: tuple[TensorType, ...], attrs: Mapping[str, Any]) -> ScatterAdd:
        return ScatterAdd(attrs["axis"], paired, range_check(name, types[0], attrs["axis"], None))

    return lower


define(
    "scatter_add",
    Kind.SCATTER,
    3,
    doc="""x plus the updates at the indices along an axis, one after another in row-major order of the updates; each
    sum is rounded to the dtype.""",
    canon=type_rules.canon_axis("scatter_add"),
    infer=_scatter_add_infer,
    pairs=complex_pairs.componentwise("scatter_add"),
    reference=_scatter_add_reference,
    lower=_scatter_add("scatter_add", paired=False),
    raises=_always,
    vjp=lambda b, g, out, x, indices, updates, axis: (g, None, lambda: b.take(g, indices, axis=axis)),
    batch=_scatter_batch,
    samples=_scatter_samples(_take_samples),
    dtypes=type_rules.NUMERIC,
)


def _scatter_set_infer(x: TensorType, indices: TensorType, updates: TensorType, axis: int, known: bool) -> TensorType:
    type_rules.check_dtype("scatter_set", indices, _INDEX, "the indices' type")
    _check_updates("scatter_set", x, updates, _gathered_shape(x, indices, axis), dt.ALL)
    return x


def _scatter_set_reference(
    x: np.ndarray, indices: np.ndarray, updates: np.ndarray, axis: int, known: bool
) -> np.ndarray:
    out = x.copy()
    if updates.size:
        count, size = indices.size, x.shape[axis]
        rows = updates.reshape((*x.shape[:axis], count, *x.shape[axis + 1 :]))
        which = np.flatnonzero((indices >= -size) & (indices < size)) if known else np.arange(count)
        taken = indices.reshape(-1)[which]
        for j, index in zip(which, _wrapped("scatter_set", x, taken, axis)):
            out[(slice(None),) * axis + (index,)] = rows[(slice(None),) * axis + (j,)]
    return out


def _scatter_set_vjp(
    b: Builder, g: Value, out: Value, x: Value, indices: Value, updates: Value, axis: int, known: bool
) -> tuple[Cotangent, ...]:
    """What is replaced has no part in the result, and so have updates that a later one replaces."""

    def of_updates() -> Any:
        shape = indices.type.shape
        numbers = b.reshape(b.iota(shape=(product(shape),), axis=0, dtype=dt.int64), shape=shape)
        nobody = b.full(-1, like=TensorType(x.type.shape[axis : axis + 1], dt.int64))
        last = b.take(b.scatter_set(nobody, indices, numbers, axis=0, known=known), indices, axis=0)
        stays = b.broadcast(
            b.equal(last, numbers), shape=updates.type.shape, axes=tuple(range(axis, axis + len(shape)))
        )
        return b.where(stays, b.take(g, indices, axis=axis), b.full(0, like=updates.type))

    return lambda: b.scatter_set(g, indices, b.full(0, like=updates.type), axis=axis, known=known), None, of_updates


def _scatter_set_batch(
    b: Builder,
    op: object,
    size: Extent,
    batched: Sequence[bool],
    x: Value,
    indices: Value,
    updates: Value,
    axis: int,
    known: bool,
) -> Any:
    x, updates = axis_to_front(b, x, batched[0], size), axis_to_front(b, updates, batched[2], size)
    if not batched[1]:
        return b.scatter_set(x, indices, updates, axis=axis + 1, known=known)
    # The slices of all examples lie one after another, and an index that is out of range stays so.
    index_shape = indices.type.shape[1:]
    count, extent = product(index_shape), x.type.shape[axis + 1]
    before, behind = x.type.shape[1 : axis + 1], x.type.shape[axis + 2 :]
    rest = (*range(1, axis + 1), *range(axis + 2, x.type.ndim))
    perm = (0, axis + 1, *rest)
    rows = b.reshape(b.transpose(x, perm=perm), shape=(size * extent, *before, *behind))
    new = b.reshape(updates, shape=(size, *before, count, *behind))
    new = b.reshape(b.transpose(new, perm=perm), shape=(size * count, *before, *behind))
    result = b.scatter_set(
        rows, b.reshape(_of_examples(b, indices, extent), shape=(size * count,)), new, axis=0, known=known
    )
    back = tuple(perm.index(k) for k in range(x.type.ndim))
    return b.transpose(b.reshape(result, shape=(size, extent, *before, *behind)), perm=back)


def _of_examples(b: Builder, indices: Value, extent: Any) -> Value:
    """Indices into an axis that has ``extent`` slices of each example, one after another."""
    type = TensorType(indices.type.shape, dt.int64)
    i = b.convert(indices, dtype=dt.int64)
    size, zero = type.shape[0], b.full(0, like=type)
    length, all = (_extent(b, n, type) for n in (extent, size * extent))
    wrapped = b.where(b.less(i, zero), b.add(i, length), i)
    inside = b.logical_and(b.greater_equal(wrapped, zero), b.less(wrapped, length))
    first = b.multiply(b.iota(shape=type.shape, axis=0, dtype=dt.int64), length)
    return b.where(inside, b.add(wrapped, first), all)


def _extent(b: Builder, extent: Any, like: TensorType) -> Value:
    """An extent as a number in each element."""
    if isinstance(extent, int):
        return b.full(extent, like=like)
    counted = b.iota(shape=(extent,), axis=0, dtype=like.dtype)
    last = b.slice(counted, start=(extent - 1,), stop=(extent,), step=(1,))
    one = b.full(1, like=TensorType((), like.dtype))
    return b.broadcast(b.add(b.reshape(last, shape=()), one), shape=like.shape, axes=())


def _scatter_set_samples(rng: np.random.Generator, dtype: dt.DType) -> list[samples.Sample]:
    scattered = _scatter_samples(_take_samples)(rng, dtype)
    return [*scattered, *((arrays, {**attrs, "known": True}) for arrays, attrs in scattered[:2])]


def _scatter_set_lowered(types: tuple[TensorType, ...], attrs: Mapping[str, Any]) -> ScatterAdd:
    check = None if attrs["known"] else range_check("scatter_set", types[0], attrs["axis"], None)
    return ScatterAdd(attrs["axis"], False, check, replaces=True)


define(
    "scatter_set",
    Kind.SCATTER,
    3,
    doc="""x with the updates in the place of the slices at the indices along an axis; of several for one slice the last
    in row-major order stays.  An index out of range raises; where ``known`` is true nobody looks for such indices,
    which have no effect.""",
    canon=lambda types, attrs: {
        **type_rules.canon_axis("scatter_set")(types, {"axis": attrs["axis"]}),
        "known": bool(attrs.get("known", False)),
    },
    infer=_scatter_set_infer,
    pairs=complex_pairs.Moved("scatter_set"),
    reference=_scatter_set_reference,
    lower=_scatter_set_lowered,
    raises=lambda types, attrs: not attrs["known"],
    vjp=_scatter_set_vjp,
    batch=_scatter_set_batch,
    samples=_scatter_set_samples,
    dtypes=dt.REAL,
    facts={"exact": True},
)


def _scatter_along_infer(x: TensorType, indices: TensorType, updates: TensorType, axis: int) -> TensorType:
    _along_axis_infer("scatter_add_along_axis", x, indices, axis)
    _check_updates("scatter_add_along_axis", x, updates, indices.shape)
    return x


def _scatter_along_reference(x: np.ndarray, indices: np.ndarray, updates: np.ndarray, axis: int) -> np.ndarray:
    out = x.copy()
    places = list(np.ogrid[tuple(map(slice, indices.shape))])
    places[axis] = _wrapped("scatter_add_along_axis", x, indices, axis)
    with np.errstate(all="ignore"):
        np.add.at(out, tuple(places), updates)
    return out


define(
    "scatter_add_along_axis",
    Kind.SCATTER,
    3,
    doc="""x plus each line of updates at the matching line of indices along an axis, one after another in row-major
    order of the updates; each sum is rounded to the dtype.""",
    canon=type_rules.canon_axis("scatter_add_along_axis"),
    infer=_scatter_along_infer,
    pairs=complex_pairs.componentwise("scatter_add_along_axis"),
    reference=_scatter_along_reference,
    lower=_scatter_add("scatter_add_along_axis", paired=True),
    raises=_always,
    vjp=lambda b, g, out, x, indices, updates, axis: (g, None, lambda: b.take_along_axis(g, indices, axis=axis)),
    batch=_along_batch,
    samples=_scatter_samples(_take_along_axis_samples),
    dtypes=type_rules.NUMERIC,
    paired=True,
)


# ---- sort


def _order_canon(name: str) -> Callable[[tuple[TensorType, ...], dict[str, Any]], dict[str, Any]]:
    def canon(types: tuple[TensorType, ...], attrs: dict[str, Any]) -> dict[str, int]:
        axis = type_rules.axis(name, types[0], attrs.get("axis", -1))
        return {"axis": axis, "descending": bool(attrs.get("descending", False))}

    return canon


def _argsort_reference(x: np.ndarray, axis: int, descending: bool) -> np.ndarray:
    x = reference_arrays.computed(x)
    if not descending:
        return np.argsort(x, axis=axis, kind="stable")
    # Ranks can be negated, where the values (the smallest integer, bool) may not.
    keys = -np.unique(x, return_inverse=True)[1].reshape(x.shape).astype(np.int64)
    if dt.is_float(x.dtype):
        keys = np.where(np.isnan(x), 1, keys)
    return np.argsort(keys, axis=axis, kind="stable")


def _order_samples(rng: np.random.Generator, dtype: dt.DType) -> list[samples.Sample]:
    inputs = [
        (samples.values(rng, dtype, shape), axis)
        for shape, axis in (((7,), 0), ((3, 65), 1), ((5, 3), 0), ((0,), 0), ((1,), 0))
    ]
    edges = samples.edges(dtype)
    inputs.append((rng.permutation(np.concatenate([edges, edges, edges])), 0))
    return [((x,), {"axis": axis, "descending": d}) for x, axis in inputs for d in (False, True)]


def _ordered(name: str, x: TensorType) -> TensorType:
    """``x``, unless its elements are in no order."""
    type_rules.check_dtype(name, x, frozenset(dt.REAL))
    return x


define(
    "argsort",
    Kind.SORT,
    1,
    doc="""The positions that sort x along an axis.  Equal elements keep their order, ascending or descending; NaN comes
    last in both.""",
    canon=_order_canon("argsort"),
    infer=lambda x, axis, descending: _ordered("argsort", x).with_dtype(dt.int64),
    reference=_argsort_reference,
    lower=lambda types, attrs: Sort(attrs["axis"], attrs["descending"]),
    vjp=NOT_DIFFERENTIABLE,
    samples=_order_samples,
    dtypes=dt.REAL,
    facts={"exact": True},
)


def _sorted_gradient(b: Builder, g: Value, out: Value, x: Value, axis: int, descending: bool) -> tuple[Any]:
    """Each element's cotangent goes back to where the element came from."""
    positions = b.argsort(x, axis=axis, descending=descending)
    return (b.scatter_add_along_axis(b.full(0, like=x.type), positions, g, axis=axis),)


define(
    "sort",
    Kind.SORT,
    1,
    doc="""x in order along an axis.  Equal elements keep their order, ascending or descending; NaN comes last in
    both.""",
    canon=_order_canon("sort"),
    infer=lambda x, axis, descending: _ordered("sort", x),
    reference=lambda x, axis, descending: np.take_along_axis(x, _argsort_reference(x, axis, descending), axis),
    lower=lambda types, attrs: Sort(attrs["axis"], attrs["descending"], values=True),
    vjp=_sorted_gradient,
    samples=_order_samples,
    dtypes=dt.REAL,
    facts={"exact": True},
)


def _first_canon(types: tuple[TensorType, ...], attrs: dict[str, Any]) -> dict[str, Any]:
    return {**_order_canon("first_positions")(types, attrs), "count": int(attrs["count"])}


def _first_infer(x: TensorType, axis: int, descending: bool, count: int) -> TensorType:
    _ordered("first_positions", x)
    if count < 0 or not required(x.shape[axis] - count):
        raise ShapeError("first_positions", f"count is {count}, x is {x}. Expected 0 to the extent of axis {axis}.")
    return x.with_dtype(dt.int64).with_shape((*x.shape[:axis], count, *x.shape[axis + 1 :]))


def _first_samples(rng: np.random.Generator, dtype: dt.DType) -> list[samples.Sample]:
    result = []
    for inputs, attrs in _order_samples(rng, dtype):
        extent = inputs[0].shape[attrs["axis"]]
        result += [(inputs, {**attrs, "count": count}) for count in sorted({0, min(extent, 3), extent})]
    return [*result, ((samples.values(rng, dtype, (2, 100)),), {"axis": 1, "descending": True, "count": 4})]


define(
    "first_positions",
    Kind.SORT,
    1,
    doc="""The positions of the first ``count`` elements of x in order along an axis: what argsort begins with.""",
    canon=_first_canon,
    infer=_first_infer,
    reference=lambda x, axis, descending, count: np.take(
        _argsort_reference(x, axis, descending), np.arange(count), axis
    ),
    lower=lambda types, attrs: Sort(attrs["axis"], attrs["descending"], count=attrs["count"]),
    vjp=NOT_DIFFERENTIABLE,
    samples=_first_samples,
    dtypes=dt.REAL,
    facts={"exact": True},
)
