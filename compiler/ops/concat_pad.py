"""Ops whose output is a disjoint union of shifted and spread inputs, over a fill value where none lies.

``segments`` lists (input or None, extents, offset per axis, step per axis): element i of that input is output element
offset + step * i.  Those for None come first: so many elements are filled with the attribute ``value``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.build import Builder, Cotangent, Value
from hybridflow.compiler.ir.extents import Extent, required
from hybridflow.compiler.ir.types import TensorType, product, same_shape
from hybridflow.compiler.ops import complex_pairs, reference_arrays, samples, type_rules
from hybridflow.compiler.ops.batching_rules import broadcast_batched
from hybridflow.compiler.ops.emitter_protocol import ElementSource
from hybridflow.compiler.ops.op_table import Kind, define
from hybridflow.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError

Segment = tuple["int | None", tuple[Extent, ...], tuple[Extent, ...], tuple[int, ...]]

_LONG = 32  # elements of a row from which on filling what lies around it takes less time than filling everything


# ---- pad


def _pad_canon(types: tuple[TensorType, ...], attrs: dict[str, Any]) -> dict[str, Any]:
    x = types[0]
    interior = attrs.get("interior") or (0,) * x.ndim
    result: dict[str, Any] = {}
    for what, spec in (("low", attrs["low"]), ("high", attrs["high"]), ("interior", interior)):
        rule = type_rules.integer if what == "interior" else type_rules.whole
        result[what] = tuple(rule("pad", what, v) for v in type_rules.per_axis("pad", what, x, spec))
        if not all(map(required, result[what])):
            raise ArgumentError("pad", f"{what} is {result[what]}. Expected no negative number; slice instead.")
    value = attrs.get("value", 0)
    if not isinstance(value, (bool, int, float, np.generic)):
        raise ArgumentTypeError("pad", f"value is {value!r}. Expected a Python scalar.")
    # Through the dtype, so that equal fills have equal attributes.
    result["value"] = reference_arrays.convert(np.asarray(value), dt.part_dtype(x.dtype)).item()
    return result


def _pad_infer(
    x: TensorType, low: tuple[Extent, ...], high: tuple[Extent, ...], interior: tuple[int, ...], value: object
) -> TensorType:
    shape = []
    for size, before, after, between in zip(x.shape, low, high, interior):
        spread = (size - 1) * between if size != 0 else 0
        shape.append(before + size + spread + after)
    return x.with_shape(tuple(shape))


def _pad_slice(x: TensorType, low: Any, interior: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    """Attributes of the slice that takes ``x`` out of its padded form."""
    step = tuple(between + 1 for between in interior)
    stop = tuple(before + (size - 1) * s + 1 if size != 0 else before for size, before, s in zip(x.shape, low, step))
    return {"start": low, "stop": stop, "step": step}


def _pad_reference(
    x: np.ndarray, low: tuple[int, ...], high: tuple[int, ...], interior: tuple[int, ...], value: Any
) -> np.ndarray:
    type = TensorType(x.shape, x.dtype)
    shape: Any = _pad_infer(type, low, high, interior, value).shape
    out = np.full(shape, value, x.dtype)
    where = _pad_slice(type, low, interior)
    out[tuple(map(slice, where["start"], where["stop"], where["step"]))] = x
    return out


def _pad_segments(
    types: tuple[TensorType, ...],
    out: TensorType,
    low: tuple[Extent, ...],
    high: tuple[Extent, ...],
    interior: tuple[int, ...],
    value: object,
) -> list[Segment]:
    x = types[0]
    moved: Segment = (0, x.shape, low, tuple(between + 1 for between in interior))
    if out.shape == x.shape:
        return [moved]
    padded = [axis for axis, (inner_extent, all) in enumerate(zip(x.shape, out.shape)) if inner_extent != all]
    row = product(x.shape[padded[-1] :])  # which lies side by side
    if any(interior) or not (isinstance(row, int) and row >= _LONG):
        return [(None, out.shape, (0,) * out.ndim, (1,) * out.ndim), moved]
    return [*_around(x, out, low), moved]


def _around(x: TensorType, out: TensorType, low: Any) -> Iterator[Segment]:
    """What lies around ``x`` in ``out``: before and behind it along each axis, where it is along those before."""
    for axis, (before, size, all) in enumerate(zip(low, x.shape, out.shape)):
        for start, extent in ((0, before), (before + size, all - size - before)):
            if extent != 0:
                extents = (*x.shape[:axis], extent, *out.shape[axis + 1 :])
                yield None, extents, (*low[:axis], start, *(0,) * (out.ndim - axis - 1)), (1,) * out.ndim


def _pad_element(g: ElementSource, index: Any, low: Any, high: Any, interior: Any, value: Any) -> Any:
    inner: list[Any] = []
    where: list[tuple[Any, Extent]] = []
    for ix, size, before, after, between in zip(index, g.types[0].shape, low, high, interior):
        step = between + 1
        back = -(-before // step)
        ix = ix - before + back * step  # 0 or more, as what is divided has to be
        if step != 1:
            where.append((ix % step, 1))
        inner.append(ix // step - back)
        if before != 0 or after != 0:
            where.append((inner[-1], size))
    return g.inside(0, inner, where, value)


def _pad_samples(rng: np.random.Generator, dtype: dt.DType) -> list[samples.Sample]:
    cases: list[tuple[tuple[int, ...], Any, Any, Any]] = [
        ((), (), (), ()),
        ((4,), (1,), (2,), (0,)),
        ((4,), (0,), (3,), (2,)),
        ((3, 5), (1, 0), (0, 2), (0, 1)),
        ((3, 2), (0, 0), (0, 0), (0, 0)),
        ((0,), (2,), (1,), (3,)),
        ((1, 2), (0, 1), (0, 0), (4, 0)),
    ]
    return [
        ((samples.values(rng, dtype, shape),), {"low": low, "high": high, "interior": interior, "value": i % 2})
        for i, (shape, low, high, interior) in enumerate(cases)
    ]


define(
    "pad",
    Kind.SEGMENT,
    1,
    doc="x with ``low`` values before, ``high`` after and ``interior`` between its elements along each axis.",
    canon=_pad_canon,
    infer=_pad_infer,
    pairs=complex_pairs.pad,
    reference=_pad_reference,
    segments=_pad_segments,
    element=_pad_element,
    vjp=lambda b, g, out, x, low, high, interior, value: (b.slice(g, **_pad_slice(x.type, low, interior)),),
    batch=broadcast_batched(lambda n, a: {**a, **{name: (0, *a[name]) for name in ("low", "high", "interior")}}),
    samples=_pad_samples,
    dtypes=dt.REAL,
    facts={"exact": True},
)


# ---- concat


def _concat_canon(types: tuple[TensorType, ...], attrs: dict[str, Any]) -> dict[str, int]:
    if not types:
        raise ArgumentError("concat", "there is nothing to join. Expected at least one tensor.")
    return {"axis": type_rules.axis("concat", types[0], attrs["axis"])}


def _concat_infer(*types: TensorType, axis: int) -> TensorType:
    first = types[0]
    total: Extent = 0
    for x in types:
        if x.dtype != first.dtype:
            raise DTypeError(
                "concat", f"dtypes differ: {first} and {x}. Expected equal dtypes. Convert one with astype."
            )
        if not same_shape((*x.shape[:axis], *x.shape[axis + 1 :]), (*first.shape[:axis], *first.shape[axis + 1 :])):
            raise ShapeError("concat", f"shapes differ: {first} and {x}. Expected equal extents but for axis {axis}.")
        total = total + x.shape[axis]
    return first.with_shape((*first.shape[:axis], total, *first.shape[axis + 1 :]))


def _concat_segments(types: tuple[TensorType, ...], out: TensorType, axis: int) -> list[Segment]:
    result: list[Segment] = []
    start: Any = 0
    for k, x in enumerate(types):
        offsets = tuple(start if a == axis else 0 for a in range(out.ndim))
        result.append((k, x.shape, offsets, (1,) * out.ndim))
        if k + 1 < len(types):
            start += x.shape[axis]
    return result


def _concat_vjp(b: Builder, g: Value, out: Value, *inputs: Value, axis: int) -> tuple[Cotangent, ...]:
    if len(inputs) == 1:
        return (g,)
    types = tuple(x.type for x in inputs)
    step = (1,) * g.type.ndim

    def part(start: tuple[Any, ...], x: TensorType) -> Any:
        stop = tuple(start[a] + size if a == axis else size for a, size in enumerate(x.shape))
        return lambda: b.slice(g, start=start, stop=stop, step=step)

    return tuple(part(offsets, x) for (_, _, offsets, _), x in zip(_concat_segments(types, g.type, axis), types))


def _concat_samples(rng: np.random.Generator, dtype: dt.DType) -> list[samples.Sample]:
    cases = [
        (((3,), (4,)), 0),
        (((2, 3), (2, 1), (2, 65)), 1),
        (((2, 3), (1, 3)), 0),
        (((2, 3),), 1),
        (((0, 3), (2, 3)), 0),
        (((2, 2, 3), (2, 5, 3)), 1),
    ]
    return [(tuple(samples.values(rng, dtype, s) for s in shapes), {"axis": axis}) for shapes, axis in cases]


define(
    "concat",
    Kind.SEGMENT,
    None,
    doc="The inputs one after another along an axis.",
    canon=_concat_canon,
    infer=_concat_infer,
    reference=lambda *arrays, axis: np.concatenate(arrays, axis),
    segments=_concat_segments,
    vjp=_concat_vjp,
    batch=broadcast_batched(lambda n, a: {"axis": a["axis"] + 1}),
    samples=_concat_samples,
    dtypes=dt.REAL,
    facts={"exact": True},
)
