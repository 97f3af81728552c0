"""Convolutions: products of what a sliding window sees with a filter, summed, and of that with cotangents.

Arrays have their channels in two axes, groups and the channels of a group:

    x [n, *s, g, c]    images; ``s`` are as many extents as a window has axes
    f [*k, c, g, o]    filters
    y [n, *p, g, o]    what is seen at each of ``p`` places

Element i of a window at place j lies at ``j * step + i * dilation - low`` of an axis of x, with ``interior`` zeros
between neighbours; outside of it, up to ``high`` behind its end, everything is zero.  These zeros are factors like all
others: times infinity they make NaN.  At positions between neighbours, and those in line with them outside,
``convolve`` multiplies nothing.  ``low`` and ``high`` may be negative, which cuts elements off.

The derivatives of the three are made of the same two ops, to any order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.extents import Extent, required
from hybridflow.compiler.ir.types import TensorType, is_static, same_shape
from hybridflow.compiler.ops import complex_pairs, reference_arrays, samples, type_rules
from hybridflow.compiler.ops.batching_rules import axis_to_front
from hybridflow.compiler.ops.lowering import Convolution
from hybridflow.compiler.ops.op_table import Kind, define
from hybridflow.errors import ArgumentError, DTypeError, ShapeError

if TYPE_CHECKING:
    from hybridflow.compiler.ir.build import Builder, Cotangent, Value


Each = tuple[int, ...]
Extents = tuple[Extent, ...]

Product = Callable[[np.ndarray, np.ndarray], np.ndarray]

_NUMERIC = frozenset(type_rules.NUMERIC + dt.COMPLEX)


def _canon(op: str) -> Callable[..., dict[str, Any]]:
    """One number for each axis of the window, or what changes nothing."""

    def canon(types: tuple[TensorType, ...], attrs: dict[str, Any]) -> dict[str, tuple[int, ...]]:
        axes = types[0].ndim - 3
        result: dict[str, Any] = {}
        for what, usual, least in (("step", 1, 1), ("dilation", 1, 1), ("interior", 0, 0)):
            values = tuple(type_rules.integer(op, what, v) for v in attrs.get(what) or (usual,) * axes)
            if len(values) != axes or min(values, default=least) < least:
                raise ArgumentError(op, f"{what} is {values}. Expected {axes} numbers >= {least}, one for each axis.")
            result[what] = values
        for what in ("low", "high"):
            result[what] = tuple(type_rules.whole(op, what, v) for v in attrs.get(what) or (0,) * axes)
            if len(result[what]) != axes:
                raise ArgumentError(op, f"{what} is {result[what]}. Expected {axes} numbers, one for each axis.")
        if "size" in attrs:
            result["size"] = tuple(type_rules.integer(op, "size", v) for v in attrs["size"])
            if len(result["size"]) != axes or min(result["size"], default=1) < 1:
                raise ArgumentError(op, f"size is {result['size']}. Expected {axes} numbers >= 1, one for each axis.")
        return result

    return canon


def spread(extent: Extent, interior: int) -> Extent:
    """How many elements an axis has with ``interior`` zeros between neighbours."""
    return extent if extent == 0 else (extent - 1) * (interior + 1) + 1


def _output_extents(op: str, x: TensorType, size: Extents, attrs: Mapping[str, Any]) -> Extents:
    """How many places a window of that size has along each of its axes."""
    extents: list[Extent] = []
    for a, (k, s, low, high, e, d) in enumerate(
        zip(size, *(attrs[name] for name in ("step", "low", "high", "interior", "dilation")))
    ):
        extent, span = spread(x.shape[a + 1], e) + low + high, (k - 1) * d + 1
        if not required(extent - span):
            if x.shape[a + 1] != 0:
                raise ShapeError(
                    op,
                    f"a window takes {span} elements along axis {a + 1} of {x}, which has {extent} with its padding. "
                    "Expected no more than there are; pad it, or take a smaller window.",
                )
            extents.append(0)
        else:
            extents.append((extent - span) // s + 1)
    return tuple(extents)


def _check(op: str, x: TensorType, y: TensorType) -> None:
    if x.dtype != y.dtype:
        raise DTypeError(op, f"dtypes differ: {x} and {y}. Expected equal dtypes. Convert one with astype.")
    type_rules.check_dtype(op, x, _NUMERIC)
    if x.ndim < 4 or y.ndim != x.ndim:
        raise ShapeError(op, f"the operands are {x} and {y}. Expected as many axes of both, at least four.")
    if not is_static((x.shape[-1], y.shape[-1])):
        raise type_rules.symbolic(op, f"channels of {x} and {y}")


def _convolve_infer(x: TensorType, f: TensorType, **attrs: object) -> TensorType:
    _check("convolve", x, f)
    if not is_static((*f.shape[:-2], f.shape[-1])):
        raise type_rules.symbolic("convolve", f"the filter is {f}")
    if not same_shape(x.shape[-2:], (f.shape[-2], f.shape[-3])):
        raise ShapeError("convolve", f"channels differ: x is {x}, f is {f}. Expected [..., g, c] and [..., c, g, o].")
    if 0 in f.shape[:-3]:
        raise ShapeError("convolve", f"the filter {f} sees nothing. Expected extents of at least 1.")
    places = _output_extents("convolve", x, f.shape[:-3], attrs)
    return x.with_shape((x.shape[0], *places, *f.shape[-2:]))


def _filter_infer(x: TensorType, g: TensorType, **attrs: Any) -> TensorType:
    op = "convolve_filter"
    _check(op, x, g)
    size = attrs.pop("size")
    expected = (x.shape[0], *_output_extents(op, x, size, attrs), x.shape[-2])
    if not all(required(a - b) and required(b - a) for a, b in zip(g.shape, expected)):
        raise ShapeError(op, f"g is {g} for x {x} and windows of {size}. Expected {list(expected)} and channels.")
    return x.with_shape((*size, x.shape[-1], *g.shape[-2:]))


# ---- meaning


def _convolve_reference(x: np.ndarray, f: np.ndarray, **attrs: object) -> np.ndarray:
    return reference_arrays.convert(convolved(np.matmul, _exact(x), _exact(f), attrs), x.dtype)


def _filter_reference(x: np.ndarray, g: np.ndarray, size: Each, **attrs: object) -> np.ndarray:
    return reference_arrays.convert(convolved_filter(np.matmul, _exact(x), _exact(g), size, attrs), x.dtype)


def convolved(product: Product, x: np.ndarray, f: np.ndarray, attrs: Mapping[str, Any]) -> np.ndarray:
    """x[n,*s,g,c] and f[*k,c,g,o] to [n,*p,g,o], by a product of matrices for each group."""
    *size, c, groups, o = f.shape
    seen = _window_patches(x, tuple(size), attrs)
    depth = math.prod((*size, c))
    rows = seen.reshape(groups, math.prod(seen.shape[1 : len(size) + 2]), depth)
    columns = np.moveaxis(f, -2, 0).reshape(groups, depth, o)
    result = np.zeros((groups, rows.shape[1], o), rows.dtype)
    patterns, which = np.unique(_multiplied(seen.shape[2:-1], c, attrs), axis=0, return_inverse=True)
    for k, taken in enumerate(patterns):
        mine = np.tile(which.reshape(-1) == k, seen.shape[1])
        with np.errstate(all="ignore"):
            result[:, mine] = product(rows[:, mine], np.where(taken[:, None], columns, columns.dtype.type(0)))
    return np.moveaxis(result.reshape(groups, *seen.shape[1 : len(size) + 2], o), 0, -2)


def convolved_filter(
    product: Product, x: np.ndarray, g: np.ndarray, size: tuple[int, ...], attrs: Mapping[str, Any]
) -> np.ndarray:
    """x[n,*s,g,c] and g[n,*p,g,o] to [*size,c,g,o], by a product of matrices for each group."""
    *places, groups, o = g.shape
    seen = _window_patches(x, size, attrs)
    count = math.prod(places)
    rows = np.swapaxes(seen.reshape(groups, count, math.prod((*size, x.shape[-1]))), 1, 2)
    columns = np.moveaxis(g, -2, 0).reshape(groups, count, o)
    with np.errstate(all="ignore"):
        sums = product(rows, columns)
    return np.moveaxis(sums.reshape(groups, *size, x.shape[-1], o), 0, -2)


def _multiplied(extents: Each, channels: int, attrs: Mapping[str, Any]) -> np.ndarray:
    """[p, k * c]: which elements of a window are factors at each place, for extents (*p, *k)."""
    axes = len(extents) // 2
    is_element = np.ones(extents, bool)
    for a in range(axes):
        step, low, gap, dilation = (attrs[name][a] for name in ("step", "low", "interior", "dilation"))
        at = np.arange(extents[a])[:, None] * step + np.arange(extents[axes + a]) * dilation - low
        shape = [n if k in (a, axes + a) else 1 for k, n in enumerate(extents)]
        is_element = is_element & (at % (gap + 1) == 0).reshape(shape)
    lines = is_element.reshape(math.prod(extents[:axes]), math.prod(extents[axes:]))
    return np.repeat(lines, channels, axis=1)


def _window_patches(x: np.ndarray, size: tuple[int, ...], attrs: Mapping[str, Any]) -> np.ndarray:
    """What windows see of x[n,*s,g,c]: [g,n,*p,*size,c]."""
    axes = range(1, len(size) + 1)
    low, high = attrs["low"], attrs["high"]
    spread = [0 if n == 0 else (n - 1) * (e + 1) + 1 for n, e in zip(x.shape[1:], attrs["interior"])]
    whole = np.zeros(
        [len(x), *(n + max(a, 0) + max(b, 0) for n, a, b in zip(spread, low, high)), *x.shape[-2:]], x.dtype
    )
    inner = tuple(slice(max(a, 0), max(a, 0) + n, e + 1) for n, a, e in zip(spread, low, attrs["interior"]))
    whole[(slice(None), *inner)] = x
    cut = tuple(slice(max(-a, 0), m - max(-b, 0)) for m, a, b in zip(whole.shape[1:], low, high))
    whole = whole[(slice(None), *cut)]
    spans = tuple((k - 1) * d + 1 for k, d in zip(size, attrs["dilation"]))
    if any(n < span for n, span in zip(whole.shape[1:], spans)):  # of no elements
        places = tuple(max(0, (n - span) // s + 1) for n, span, s in zip(whole.shape[1:], spans, attrs["step"]))
        return np.zeros((x.shape[-2], len(x), *places, *size, x.shape[-1]), x.dtype)
    seen = np.lib.stride_tricks.sliding_window_view(whole, spans, tuple(axes))
    steps = tuple(slice(None, None, s) for s in attrs["step"])
    taken: tuple[Any, ...] = (slice(None), *steps, ..., *(slice(None, None, d) for d in attrs["dilation"]))
    seen = seen[taken]
    seen = np.moveaxis(seen, len(size) + 2, seen.ndim - 1)  # channels behind what lies in a window
    return np.moveaxis(seen, len(size) + 1, 0)


def _exact(x: np.ndarray) -> np.ndarray:
    if dt.is_complex(x.dtype):
        return x.astype(np.complex128)
    return x.astype(np.float64) if dt.is_float(x.dtype) else x


# ---- derivatives


def _rotated_filter(b: Builder, f: Value) -> Value:
    """The filter through which cotangents go back to the image: turned round, its channels exchanged."""
    axes = f.type.ndim - 3
    back = b.reverse(f, axes=tuple(range(axes)))
    return b.transpose(back, perm=(*range(axes), axes + 2, axes + 1, axes))


def to_image(b: Builder, g: Value, f: Value, x: TensorType, attrs: Mapping[str, Any]) -> Any:
    """What each element of x gave to the places that saw it, from the cotangents of those."""
    size, axes = f.type.shape[:-3], x.ndim - 3
    step, interior, dilation = (attrs[name] for name in ("step", "interior", "dilation"))
    low, high = [], []
    for a in range(axes):
        reach = (size[a] - 1) * dilation[a]
        before = reach - attrs["low"][a]
        whole = spread(x.shape[a + 1], interior[a]) + reach
        low.append(before)
        high.append(whole - before - spread(g.type.shape[a + 1], step[a] - 1))
    return b.convolve(
        g,
        _rotated_filter(b, f),
        step=tuple(e + 1 for e in interior),
        low=tuple(low),
        high=tuple(high),
        interior=tuple(s - 1 for s in step),
        dilation=dilation,
    )


def _convolve_vjp(b: Builder, g: Value, out: Value, x: Value, f: Value, **attrs: object) -> tuple[Cotangent, ...]:
    return (
        lambda: to_image(b, g, f, x.type, attrs),
        lambda: b.convolve_filter(x, g, size=f.type.shape[:-3], **attrs),
    )


def _filter_vjp(
    b: Builder, h: Value, out: Value, x: Value, g: Value, size: Each, **attrs: object
) -> tuple[Cotangent, ...]:
    return lambda: to_image(b, g, h, x.type, attrs), lambda: b.convolve(x, h, **attrs)


# ---- many examples


def _into(b: Builder, x: Value, axis: int) -> Value:
    """``x`` whose first axis is taken into another, in front of it; ``axis`` counts without the first."""
    ndim = x.type.ndim
    perm = (*range(1, axis + 1), 0, *range(axis + 1, ndim))
    moved = b.transpose(x, perm=perm)
    shape = moved.type.shape
    return b.reshape(moved, shape=(*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :]))


def _out_of(b: Builder, x: Value, axis: int, size: Extent) -> Value:
    """The opposite: the axis of ``size`` examples comes out of another, to the front."""
    shape = x.type.shape
    parts = b.reshape(x, shape=(*shape[:axis], size, shape[axis] // size, *shape[axis + 1 :]))
    return b.transpose(parts, perm=(axis, *(a for a in range(len(shape) + 1) if a != axis)))


def _convolve_batch(
    b: Builder, op: object, size: Extent, batched: Sequence[bool], x: Value, f: Value, /, **attrs: object
) -> Any:
    """Examples of images are more images, of filters more channels, of both more groups.  A kernel knows how many
    channels there are, but need not know how many groups."""
    if not batched[1]:
        return _out_of(b, b.convolve(_into(b, x, 0), f, **attrs), 0, size)
    if not isinstance(size, int):
        x = axis_to_front(b, x, batched[0], size)
    elif not batched[0]:
        last = x.type.ndim - 1
        return _out_of(b, b.convolve(x, _into(b, f, last), **attrs), last, size)
    groups = x.type.ndim - 3
    return _out_of(b, b.convolve(_into(b, x, groups), _into(b, f, groups), **attrs), groups, size)


def _filter_batch(
    b: Builder, op: object, size: Extent, batched: Sequence[bool], x: Value, g: Value, /, **attrs: object
) -> Any:
    if not isinstance(size, int):
        x, g, batched = axis_to_front(b, x, batched[0], size), axis_to_front(b, g, batched[1], size), (True, True)
    last = (x.type.ndim - batched[0]) - 1
    if not batched[1]:
        return _out_of(b, b.convolve_filter(_into(b, x, last), g, **attrs), last - 2, size)
    if not batched[0]:
        return _out_of(b, b.convolve_filter(x, _into(b, g, last), **attrs), last, size)
    return _out_of(b, b.convolve_filter(_into(b, x, last - 1), _into(b, g, last - 1), **attrs), last - 1, size)


# ---- samples

_CASES: tuple[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]], ...] = (
    ((2, 7, 1, 3), (3, 3, 1, 5), {}),
    ((1, 9, 1, 2), (3, 2, 1, 17), {"step": (2,), "low": (1,), "high": (1,)}),
    ((2, 6, 5, 1, 4), (3, 3, 4, 1, 3), {"low": (1, 1), "high": (1, 1)}),
    ((2, 7, 8, 2, 3), (3, 2, 3, 2, 2), {"step": (2, 3), "low": (2, 0), "high": (0, 1), "dilation": (1, 2)}),
    ((1, 5, 6, 5, 1), (3, 3, 1, 5, 2), {"low": (1, 1), "high": (1, 1)}),
    ((3, 4, 4, 1, 2), (3, 3, 2, 1, 2), {"interior": (1, 2), "low": (2, -1), "high": (1, 2)}),
    ((1, 3, 4, 5, 1, 2), (2, 2, 3, 2, 1, 3), {"step": (1, 2, 1), "low": (0, 1, 1), "high": (1, 0, 1)}),
    ((0, 4, 1, 2), (2, 2, 1, 3), {}),
    ((2, 3, 1, 0), (2, 0, 1, 3), {}),
    ((1, 5, 5, 1, 40), (3, 3, 40, 1, 2), {}),
)


def _convolve_samples(rng: np.random.Generator, dtype: dt.DType) -> list[samples.Sample]:
    return [((samples.values(rng, dtype, x), samples.values(rng, dtype, f)), attrs) for x, f, attrs in _CASES]


def _filter_samples(rng: np.random.Generator, dtype: dt.DType) -> list[samples.Sample]:
    result: list[samples.Sample] = []
    canon = _canon("convolve")
    for x_shape, f_shape, attrs in _CASES:
        types = TensorType(x_shape, dtype), TensorType(f_shape, dtype)
        out: Any = _convolve_infer(*types, **canon(types, attrs)).shape
        operands = samples.values(rng, dtype, x_shape), samples.values(rng, dtype, out)
        result.append((operands, {"size": f_shape[:-3], **attrs}))
    return result


def _lower(types: tuple[TensorType, ...], attrs: Mapping[str, Any]) -> Convolution:
    over_places = "size" in attrs
    size: Any = attrs["size"] if over_places else types[1].shape[:-3]
    return Convolution(size, attrs["step"], attrs["low"], attrs["interior"], attrs["dilation"], over_places)


define(
    "convolve",
    Kind.CONVOLVE,
    2,
    doc="""What windows that slide over x[n,*s,g,c] see, times f[*k,c,g,o] and summed: [n,*p,g,o].  Windows start every
    ``step`` elements, and theirs lie ``dilation`` apart, in x with ``low`` zeros before, ``high`` behind and
    ``interior`` between neighbours of each axis.  Sums of floats narrower than 32 bits are kept in float32 and rounded
    once; they go by blocks through (*k, c) in row-major order (evaluation_order.py).""",
    canon=_canon("convolve"),
    infer=_convolve_infer,
    reference=_convolve_reference,
    pairs=complex_pairs.convolution("convolve"),
    vjp=_convolve_vjp,
    batch=_convolve_batch,
    lower=_lower,
    samples=_convolve_samples,
    dtypes=type_rules.NUMERIC,
)

define(
    "convolve_filter",
    Kind.CONVOLVE,
    2,
    doc="""What windows of ``size`` that slide over x[n,*s,g,c] see (see convolve), times g[n,*p,g,o] at the same place
    and summed over all places: [*size,c,g,o].  Sums go by blocks through (n, *p) in row-major order.""",
    canon=_canon("convolve_filter"),
    infer=_filter_infer,
    reference=_filter_reference,
    pairs=complex_pairs.convolution("convolve_filter"),
    vjp=_filter_vjp,
    batch=_filter_batch,
    lower=_lower,
    samples=_filter_samples,
    dtypes=type_rules.NUMERIC,
)
