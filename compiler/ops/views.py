"""Views: each output element is one input element, found by arithmetic on its index."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.build import Builder, Cotangent, Value
from hybridflow.compiler.ir.extents import Extent, equal, required
from hybridflow.compiler.ir.types import Shape, TensorType, product, same_shape, same_size
from hybridflow.compiler.ops import samples, type_rules
from hybridflow.compiler.ops.batching_rules import broadcast_batched
from hybridflow.compiler.ops.emitter_protocol import ElementSource, Val
from hybridflow.compiler.ops.op_table import Kind, define
from hybridflow.errors import ArgumentError, ShapeError


def view_samples(*cases: tuple[tuple[int, ...], dict[str, Any]]) -> samples.Samples:
    def make(rng: np.random.Generator, dtype: np.dtype) -> list[samples.Sample]:
        return [((samples.values(rng, dtype, shape),), attrs) for shape, attrs in cases]

    return make


def _view(name: str, *cases: tuple[tuple[int, ...], dict[str, Any]], **fields: Any) -> None:
    facts = {"exact": True, **fields.pop("facts", {})}
    define(name, Kind.VIEW, 1, samples=view_samples(*cases), dtypes=dt.REAL, facts=facts, **fields)


# ---- broadcast


def _broadcast_canon(types: tuple[TensorType, ...], attrs: dict[str, Any]) -> dict[str, tuple[Extent, ...]]:
    shape = type_rules.shape("broadcast", attrs["shape"])
    axes = tuple(type_rules.axis("broadcast", TensorType(shape, types[0].dtype), a) for a in attrs["axes"])
    return {"shape": shape, "axes": axes}


def _broadcast_infer(x: TensorType, shape: Shape, axes: tuple[int, ...]) -> TensorType:
    if len(axes) != x.ndim or any(a >= b for a, b in itertools.pairwise(axes)):
        raise ShapeError(
            "broadcast", f"axes are {axes} for {x}. Expected one output axis for each input axis, ascending."
        )
    if not same_shape(x.shape, tuple(shape[a] for a in axes)):
        target = TensorType(shape, x.dtype)
        raise ShapeError("broadcast", f"{x} does not fit axes {axes} of {target}. Expected equal extents there.")
    return TensorType(shape, x.dtype)


def _broadcast_reference(x: np.ndarray, shape: tuple[int, ...], axes: tuple[int, ...]) -> np.ndarray:
    aligned = x.reshape([shape[a] if a in axes else 1 for a in range(len(shape))])
    return np.broadcast_to(aligned, shape)


def _broadcast_vjp(
    b: Builder, g: Value, out: Value, x: Value, shape: Shape, axes: tuple[int, ...]
) -> tuple[Cotangent, ...]:
    new = type_rules.kept_axes(len(shape), axes)
    return (b.sum(g, axes=new) if new else g,)


_view(
    "broadcast",
    ((), {"shape": (3, 2), "axes": ()}),
    ((3,), {"shape": (3, 4), "axes": (0,)}),
    ((4,), {"shape": (3, 4), "axes": (1,)}),
    ((2, 3), {"shape": (2, 5, 3), "axes": (0, 2)}),
    ((2, 3), {"shape": (2, 3), "axes": (0, 1)}),
    ((0,), {"shape": (2, 0), "axes": (1,)}),
    ((3,), {"shape": (0, 3), "axes": (1,)}),
    doc="x repeated along new axes: input axis k is output axis axes[k].  Extents of 1 do not stretch.",
    canon=_broadcast_canon,
    infer=_broadcast_infer,
    reference=_broadcast_reference,
    element=lambda g, index, shape, axes: g.load(0, tuple(index[a] for a in axes)),
    vjp=_broadcast_vjp,
    batch=broadcast_batched(lambda n, a: {"shape": (n, *a["shape"]), "axes": (0, *(k + 1 for k in a["axes"]))}),
)


# ---- reshape


def _reshape_canon(types: tuple[TensorType, ...], attrs: dict[str, Any]) -> dict[str, tuple[Extent, ...]]:
    """One extent may be -1: what the others leave."""
    x, wanted = types[0], tuple(attrs["shape"])
    if wanted.count(-1) != 1:
        return {"shape": type_rules.shape("reshape", wanted)}
    at = wanted.index(-1)
    rest = type_rules.shape("reshape", wanted[:at] + wanted[at + 1 :])
    size, known = product(x.shape), product(rest)
    inferred = size // known if known != 0 else 0
    if known == 0 or equal(inferred * known, size) is not True:
        raise ShapeError("reshape", f"{x} cannot take the shape {_show(wanted)}: nothing fits in place of -1.")
    return {"shape": rest[:at] + (inferred,) + rest[at:]}


def _show(shape: Any) -> str:
    return f"[{','.join(map(str, shape))}]"


def _reshape_infer(x: TensorType, shape: Shape) -> TensorType:
    if not same_size(x.shape, shape):
        raise ShapeError("reshape", f"{x} cannot take the shape {_show(shape)}. Expected the same number of elements.")
    return TensorType(shape, x.dtype)


_view(
    "reshape",
    ((6,), {"shape": (2, 3)}),
    ((2, 3), {"shape": (3, 2)}),
    ((2, 3, 5), {"shape": (6, 5)}),
    ((), {"shape": (1, 1)}),
    ((1,), {"shape": ()}),
    ((0, 3), {"shape": (5, 0)}),
    doc="The elements in the same row-major order under another shape.",
    canon=_reshape_canon,
    infer=_reshape_infer,
    reference=lambda x, shape: x.reshape(shape),
    element=lambda g, index, shape: g.load_linear(0, g.linear(index)),
    vjp=lambda b, g, out, x, shape: (b.reshape(g, shape=x.type.shape),),
    batch=broadcast_batched(lambda n, a: {"shape": (n, *a["shape"])}),
    shares_memory=True,
)


# ---- transpose


def _inverse(perm: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(perm.index(a) for a in range(len(perm)))


def _transpose_canon(types: tuple[TensorType, ...], attrs: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    x = types[0]
    perm = attrs.get("perm")
    if perm is None:
        perm = range(x.ndim)[::-1]
    result = tuple(type_rules.axis("transpose", x, a) for a in perm)
    if sorted(result) != list(range(x.ndim)):
        raise ArgumentError("transpose", f"perm is {tuple(perm)} for {x}. Expected each of its {x.ndim} axes once.")
    return {"perm": result}


def _transpose_element(g: ElementSource, index: tuple[Any, ...], perm: tuple[int, ...]) -> Val:
    return g.load(0, tuple(index[a] for a in _inverse(perm)))


_view(
    "transpose",
    ((), {"perm": ()}),
    ((3,), {"perm": (0,)}),
    ((2, 3), {"perm": (1, 0)}),
    ((2, 3, 5), {"perm": (2, 0, 1)}),
    ((2, 3, 5), {"perm": (0, 2, 1)}),
    ((2, 0), {"perm": (1, 0)}),
    doc="The axes in another order: output axis k is input axis perm[k].",
    canon=_transpose_canon,
    infer=lambda x, perm: x.with_shape(tuple(x.shape[a] for a in perm)),
    reference=lambda x, perm: np.transpose(x, perm),
    element=_transpose_element,
    vjp=lambda b, g, out, x, perm: (b.transpose(g, perm=_inverse(perm)),),
    batch=broadcast_batched(lambda n, a: {"perm": (0, *(k + 1 for k in a["perm"]))}),
)


# ---- slice


def _slice_canon(types: tuple[TensorType, ...], attrs: dict[str, Any]) -> dict[str, Any]:
    """Equal slices have equal attributes: ``stop`` is right behind the last element taken, and a step that is never
    taken is 1."""
    x = types[0]
    starts = type_rules.per_axis("slice", "start", x, attrs["start"])
    stops = type_rules.per_axis("slice", "stop", x, attrs["stop"])
    steps = type_rules.per_axis("slice", "step", x, attrs.get("step") or (1,) * x.ndim)
    result = []
    for a, (start, stop, step) in enumerate(zip(starts, stops, steps)):
        size, step = x.shape[a], type_rules.integer("slice", "step", step)
        start, stop = type_rules.whole("slice", "start", start), type_rules.whole("slice", "stop", stop)
        if step < 1 or not all(map(required, (start, stop - start, size - stop))):
            raise ArgumentError(
                "slice",
                f"axis {a} of {x} is cut to {start}:{stop}:{step}. "
                f"Expected 0 <= start <= stop <= {size} and step >= 1.",
            )
        count = _count(start, stop, step)
        known = count if isinstance(count, int) else None
        start, stop = (0, 0) if known == 0 else (start, start + (count - 1) * step + 1)
        step = 1 if known in (0, 1) else step
        result.append((start, stop, step))
    start, stop, step = zip(*result) if result else ((), (), ())
    return {"start": start, "stop": stop, "step": step}


def _count(start: Extent, stop: Extent, step: int) -> Extent:
    """How many elements a slice takes."""
    return (stop - start + (step - 1)) // step


def _slice_infer(x: TensorType, start: Shape, stop: Shape, step: tuple[int, ...]) -> TensorType:
    return x.with_shape(tuple([_count(a, b, s) for a, b, s in zip(start, stop, step)]))


def _slice_element(
    g: ElementSource, index: tuple[Any, ...], start: tuple[Extent, ...], stop: tuple[Extent, ...], step: tuple[int, ...]
) -> Val:
    return g.load(0, tuple(i * s + a for i, a, s in zip(index, start, step)))


def _slice_origin(
    x: TensorType, start: tuple[Extent, ...], stop: tuple[Extent, ...], step: object
) -> tuple[int, dict[str, Any]] | None:
    """The place of the first element in memory, and the attributes of the slice of this form that begins with the first
    element of x; None where extents are symbolic."""
    if not x.is_static:
        return None
    place = 0
    for first, size in zip(start, x.shape):
        place = place * size + first
    return place, {"start": (0,) * len(start), "stop": tuple(b - a for a, b in zip(start, stop)), "step": step}


def _slice_vjp(
    b: Builder,
    g: Value,
    out: Value,
    x: Value,
    start: tuple[Extent, ...],
    stop: tuple[Extent, ...],
    step: tuple[int, ...],
) -> tuple[Cotangent, ...]:
    if 0 in g.type.shape:
        return (b.full(0, like=x.type),)
    high = tuple(size - end for size, end in zip(x.type.shape, stop))
    return (b.pad(g, low=start, high=high, interior=tuple(s - 1 for s in step), value=0),)


_view(
    "slice",
    ((), {"start": (), "stop": (), "step": ()}),
    ((7,), {"start": (2,), "stop": (5,), "step": (1,)}),
    ((7,), {"start": (1,), "stop": (7,), "step": (3,)}),
    ((8,), {"start": (1,), "stop": (8,), "step": (3,)}),
    ((3, 5), {"start": (0, 1), "stop": (3, 4), "step": (2, 2)}),
    ((3, 5), {"start": (2, 0), "stop": (3, 5), "step": (1, 1)}),
    ((4,), {"start": (2,), "stop": (2,), "step": (1,)}),
    doc="Elements start, start + step, ... below stop along each axis; step >= 1.",
    canon=_slice_canon,
    infer=_slice_infer,
    reference=lambda x, start, stop, step: x[(..., *map(slice, start, stop, step))],
    element=_slice_element,
    vjp=_slice_vjp,
    origin=_slice_origin,
    batch=broadcast_batched(lambda n, a: {"start": (0, *a["start"]), "stop": (n, *a["stop"]), "step": (1, *a["step"])}),
)


# ---- reverse


def _reverse_element(g: ElementSource, index: tuple[Any, ...], axes: tuple[int, ...]) -> Val:
    shape = g.types[0].shape
    return g.load(0, tuple(i * -1 + shape[a] - 1 if a in axes else i for a, i in enumerate(index)))


_view(
    "reverse",
    ((7,), {"axes": (0,)}),
    ((3, 5), {"axes": (1,)}),
    ((3, 5), {"axes": (0, 1)}),
    ((2, 3), {"axes": ()}),
    ((0,), {"axes": (0,)}),
    doc="The elements in opposite order along some axes.",
    canon=type_rules.canon_axes("reverse"),
    infer=lambda x, axes: x,
    reference=lambda x, axes: np.flip(x, axes),
    element=_reverse_element,
    vjp=lambda b, g, out, x, axes: (b.reverse(g, axes=axes),),
    batch=broadcast_batched(lambda n, a: {"axes": tuple(k + 1 for k in a["axes"])}),
    facts={"involution": True},
)
