"""Convolutions and pooling."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from hybridflow.array import elementwise as ew, reductions, shapes
from hybridflow.array.creation import arange, ones, zeros
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ir.extents import holds
from hybridflow.compiler.ir.types import TensorType
from hybridflow.compiler.ops import convolution as ops
from hybridflow.core.tensor import Tensor
from hybridflow.eager.dispatch import builder
from hybridflow.eager.operands import expand
from hybridflow.nn.convolution import convolved, window_parts
from hybridflow.nn.pooling import average, largest
from hybridflow.nn.window_geometry import same_padding
from hybridflow.onnx.operators import operator
from hybridflow.onnx.running import Call, ChannelsLast


def laid(call: Call, x: Tensor | ChannelsLast) -> Tensor:
    """A tensor with its channels last."""
    return x.tensor if isinstance(x, ChannelsLast) else call.run.last(x, x.ndim)


def pairs_of(
    auto_pad: str,
    pads: Sequence[int] | None,
    extents: Sequence[Any],
    size: Sequence[int],
    step: Sequence[int],
    dilation: Sequence[int],
) -> list[tuple[Any, Any]]:
    """Padding before and behind each axis of a window."""
    count = len(size)
    if auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        pairs = [same_padding(n, (k - 1) * d + 1, s) for n, k, s, d in zip(extents, size, step, dilation)]
        return pairs if auto_pad == "SAME_UPPER" else [(b, a) for a, b in pairs]
    if auto_pad == "VALID" or pads is None:
        return [(0, 0)] * count
    return [(pads[k], pads[k + count]) for k in range(count)]


def _cropped(x: Tensor, pairs: list[tuple[Any, Any]]) -> tuple[Tensor, list[tuple[Any, Any]]]:
    """Negative padding is taken away first."""
    for axis, (before, after) in enumerate(pairs):
        if any(type(n) is int and n < 0 for n in (before, after)):
            x = shapes.slice_axis(x, axis + 1, max(-before, 0), x.shape[axis + 1] - max(-after, 0))
    return x, [
        (a if not isinstance(a, int) else max(a, 0), b if not isinstance(b, int) else max(b, 0)) for a, b in pairs
    ]


@operator("Conv", raw=(1,), keeps_layout=True)
def conv(
    call: Call,
    x: Tensor | ChannelsLast,
    w: Tensor,
    bias: Tensor | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: object = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> ChannelsLast:
    count = w.ndim - 2
    step, dilation = strides or [1] * count, dilations or [1] * count
    filters = call.arranged(w, (*range(2, count + 2), 1, 0))
    x = laid(call, x)
    pairs = pairs_of(auto_pad, pads, x.shape[1:-1], filters.shape[:count], step, dilation)
    x, pairs = _cropped(x, pairs)
    out = convolved("Conv", x, filters, step, pairs, None, dilation, count, group)
    return ChannelsLast(out if bias is None else out + bias)


@operator("ConvTranspose", raw=(1,), keeps_layout=True)
def conv_transpose(
    call: Call,
    x: ChannelsLast | Tensor,
    w: Tensor,
    bias: Tensor | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: object = None,
    output_padding: Sequence[int] | None = None,
    output_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> ChannelsLast:
    count = w.ndim - 2
    step, dilation = strides or [1] * count, dilations or [1] * count
    more = output_padding or [0] * count
    x = laid(call, x)
    size = w.shape[2:]
    spans = [(k - 1) * d + 1 for k, d in zip(size, dilation)]
    places = x.shape[1:-1]
    whole = [(n - 1) * s + span + extra for n, s, span, extra in zip(places, step, spans, more)]
    if output_shape is None and auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        output_shape = [n * s for n, s in zip(places, step)]
    if output_shape is not None:
        totals = [n - wanted for n, wanted in zip(whole, output_shape[-count:])]
        pairs = [
            (total - total // 2, total // 2) if auto_pad != "SAME_UPPER" else (total // 2, total - total // 2)
            for total in totals
        ]
    else:
        pairs = pairs_of("NOTSET", pads, places, size, step, dilation)
    filters = call.arranged(w, (*range(2, count + 2), 1, 0))  # (*window, outputs of a group, channels)
    channels, outputs = filters.shape[-1], filters.shape[-2]
    parts = []
    group_channels = channels // group
    low = tuple(0 for _ in range(count))
    for k in range(group):
        cut = slice(k * group_channels, (k + 1) * group_channels)
        cotangents = shapes.reshape(x[..., cut], (*x.shape[:-1], 1, group_channels))
        filter = shapes.reshape(filters[..., cut], (*size, outputs, 1, group_channels))
        image = TensorType((x.shape[0], *[n - extra for n, extra in zip(whole, more)], 1, outputs), x.dtype)
        attrs = {"step": tuple(step), "low": low, "high": low, "dilation": tuple(dilation), "interior": low}
        out = ops.to_image(builder, cotangents, filter, image, attrs)
        parts.append(shapes.reshape(out, (*out.shape[:-2], outputs)))
    out = shapes.concat(parts, axis=-1) if group > 1 else parts[0]
    ends = []
    for axis, ((before, after), extra) in enumerate(zip(pairs, more), 1):
        start, stop = before, out.shape[axis] + extra - after
        if stop <= out.shape[axis] and start >= 0:
            out = shapes.slice_axis(out, axis, start, stop)
            ends.append((0, 0))
        else:
            end = min(stop, out.shape[axis])
            ends.append((max(-start, 0), stop - end))
            out = shapes.slice_axis(out, axis, max(start, 0), end)
    if any(pair != (0, 0) for pair in ends):
        out = shapes.pad(out, [(0, 0), *ends, (0, 0)])
    return ChannelsLast(out if bias is None else out + bias)


class Pooling(NamedTuple):
    """Where the windows of a pooling lie.

    ``pairs`` are the padding of each axis; ``more`` how much of what is behind an axis only completes the last window,
    and ``empty`` the axes along which there is no window.
    """

    pairs: list[tuple[Any, Any]]
    more: list[Any]
    empty: list[int]

    def without_empty(self, out: Tensor) -> Tensor:
        """A result whose empty axes have one window that there is not."""
        for axis in self.empty:
            out = shapes.slice_axis(out, axis, 0, 0)
        return out


def pool_geometry(
    call: Call,
    x: Tensor,
    auto_pad: str,
    pads: Any,
    size: Any,
    step: Any,
    dilation: Any,
    ceil_mode: int,
) -> Pooling:
    """The padding of each axis, with what ``ceil_mode`` adds behind.

    A window that takes more than its padded axis, by less than a step, is there as far as the axis is: the number of
    windows is rounded towards zero, as onnxruntime does.
    """
    extents = x.shape[1:-1]
    pairs = pairs_of(auto_pad, pads, extents, size, step, dilation)
    more: list[Any] = []
    empty: list[int] = []
    for axis, (n, k, s, d) in enumerate(zip(extents, size, step, dilation)):
        before, after = pairs[axis]
        extra: object = 0
        rest = n + before + after - ((k - 1) * d + 1)
        if not holds(rest):
            if not holds(rest + 2 * s - 1):
                raise call.fault(
                    f"a window takes {(k - 1) * d + 1} elements of {n + before + after} along axis {axis}."
                )
            extra = -rest
            if not holds(rest + s - 1):
                empty.append(axis + 1)
        elif ceil_mode and auto_pad == "NOTSET":
            windows = -(-rest // s) + 1
            if (windows - 1) * s >= n + before:  # a window that begins behind the padding is none
                windows = windows - 1
            extra = max((windows - 1) * s - rest, 0) if isinstance(rest, int) else (windows - 1) * s - rest
        more.append(extra)
        pairs[axis] = before, after + extra
    return Pooling(pairs, more, empty)


def _lowest(dtype: np.dtype[Any]) -> Any:
    return -np.inf if dtypes.is_float(dtype) else int(np.iinfo(dtype).min)


@operator("MaxPool", keeps_layout=True)
def max_pool(
    call: Call,
    x: Tensor | ChannelsLast,
    *,
    kernel_shape: Sequence[int],
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    storage_order: int = 0,
    strides: Sequence[int] | None = None,
) -> Any:
    count = len(kernel_shape)
    step, dilation = strides or [1] * count, dilations or [1] * count
    x = laid(call, x)
    pooling = pool_geometry(call, x, auto_pad, pads, kernel_shape, step, dilation, ceil_mode)
    pairs = pooling.pairs
    if call.wants(1):
        results = _with_places(x, kernel_shape, step, dilation, pairs, storage_order)
        return tuple([ChannelsLast(pooling.without_empty(part)) for part in results])
    if all(d == 1 for d in dilation):
        largest_ones = largest("MaxPool", x, kernel_shape, step, pairs, None, count)
    else:
        padded = shapes.pad(x, [(0, 0), *pairs, (0, 0)], constant_values=_lowest(x.dtype))
        largest_ones = functools.reduce(ew.maximum, window_parts(padded, kernel_shape, step, dilation))
    return ChannelsLast(pooling.without_empty(largest_ones))


def _with_places(
    x: Tensor,
    size: Sequence[int],
    step: Sequence[int],
    dilation: Sequence[int],
    pairs: Sequence[tuple[Any, Any]],
    storage_order: int,
) -> tuple[Tensor, Tensor]:
    """The largest elements, and where they lie in all of the images: the first of equal ones."""
    n, *extents, channels = x.shape
    order = range(len(extents)) if not storage_order else range(len(extents) - 1, -1, -1)
    weights, weight = [0] * len(extents), 1
    for axis in reversed(list(order)):
        weights[axis] = weight
        weight = weight * extents[axis]
    places: Any = zeros((1, *(1 for _ in extents), 1), dtype=dtypes.int64)
    for axis, extent in enumerate(extents):
        form = [1] * x.ndim
        form[axis + 1] = extent
        places = places + shapes.reshape(arange(extent), tuple(form)) * weights[axis]
    around = [(0, 0), *pairs, (0, 0)]
    places = shapes.pad(places, around, constant_values=-1)
    x = shapes.pad(x, around, constant_values=_lowest(x.dtype))
    best: Any = None
    where: Any = None
    for part, at in zip(window_parts(x, size, step, dilation), window_parts(places, size, step, dilation)):
        at = expand(at, part.shape)
        if best is None:
            best, where = part, at
            continue
        larger = ew.logical_or(ew.greater(part, best), ew.logical_and(ew.less(where, 0), ew.greater_equal(at, 0)))
        best, where = ew.where(larger, part, best), ew.where(larger, at, where)
    image = shapes.reshape(arange(n), (n, *(1 for _ in extents), 1)) * (weight * channels)
    plane = arange(channels) * weight
    return best, where + image + plane


@operator("AveragePool", keeps_layout=True)
def average_pool(
    call: Call,
    x: Tensor,
    *,
    kernel_shape: Sequence[int],
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    count_include_pad: int = 0,
    dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> ChannelsLast:
    count = len(kernel_shape)
    step, dilation = strides or [1] * count, dilations or [1] * count
    x = laid(call, x)
    pooling = pool_geometry(call, x, auto_pad, pads, kernel_shape, step, dilation, ceil_mode)
    pairs, more = pooling.pairs, pooling.more
    if all(d == 1 for d in dilation) and not count_include_pad:
        means = average("AveragePool", x, kernel_shape, step, pairs, None, count)
        return ChannelsLast(pooling.without_empty(means))
    around = [(0, 0), *pairs, (0, 0)]
    counted = ones((1, *x.shape[1:-1], 1), dtype=x.dtype)
    if count_include_pad:
        inner = [(a, b - extra) for (a, b), extra in zip(pairs, more)]
        counted = shapes.pad(counted, [(0, 0), *inner, (0, 0)], constant_values=1)
        counted = shapes.pad(counted, [(0, 0), *((0, extra) for extra in more), (0, 0)])
    else:
        counted = shapes.pad(counted, around)
    x = shapes.pad(x, around)
    parts = window_parts(x, kernel_shape, step, dilation)
    numbers = window_parts(counted, kernel_shape, step, dilation)
    total, number = parts[0], numbers[0]
    for part, one in zip(parts[1:], numbers[1:]):
        total, number = total + part, number + one
    return ChannelsLast(pooling.without_empty(ew.divide(total, number)))


@operator("LpPool", since=2, keeps_layout=True)
def lp_pool(
    call: Call,
    x: Tensor | ChannelsLast,
    *,
    kernel_shape: Sequence[int],
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Sequence[int] | None = None,
    p: int = 2,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> ChannelsLast:
    count = len(kernel_shape)
    step, dilation = strides or [1] * count, dilations or [1] * count
    x = laid(call, x)
    pooling = pool_geometry(call, x, auto_pad, pads, kernel_shape, step, dilation, ceil_mode)
    powers = shapes.pad(ew.pow(ew.abs(x), float(p)), [(0, 0), *pooling.pairs, (0, 0)])
    total: Any = None
    for part in window_parts(powers, kernel_shape, step, dilation):
        total = part if total is None else total + part
    return ChannelsLast(pooling.without_empty(ew.pow(total, 1.0 / p)))


def _inner(x: Tensor) -> tuple[int, ...]:
    return tuple(range(1, x.ndim - 1))


@operator("GlobalAveragePool", keeps_layout=True)
def global_average_pool(call: Call, x: ChannelsLast | Tensor) -> ChannelsLast:
    x = laid(call, x)
    return ChannelsLast(reductions.mean(x, axis=_inner(x), keepdims=True))


@operator("GlobalMaxPool", keeps_layout=True)
def global_max_pool(call: Call, x: ChannelsLast | Tensor) -> ChannelsLast:
    x = laid(call, x)
    return ChannelsLast(reductions.max(x, axis=_inner(x), keepdims=True))


@operator("GlobalLpPool", since=2, keeps_layout=True)
def global_lp_pool(call: Call, x: ChannelsLast | Tensor, *, p: int = 2) -> ChannelsLast:
    x = laid(call, x)
    total = reductions.sum(ew.pow(ew.abs(x), float(p)), axis=_inner(x), keepdims=True)
    return ChannelsLast(ew.pow(total, 1.0 / p))


@operator("MaxUnpool", since=9, raw=(2,))
def max_unpool(
    call: Call,
    x: Tensor,
    places: Tensor,
    wanted: Any = None,
    *,
    kernel_shape: Sequence[int],
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Tensor:
    """Largest elements put back to where they came from; zeros elsewhere."""
    from hybridflow.array.scattering import set_at

    count = len(kernel_shape)
    step, pads = strides or [1] * count, pads or [0] * (2 * count)
    inner = [
        (n - 1) * s + k - pads[a] - pads[a + count] for a, (n, s, k) in enumerate(zip(x.shape[2:], step, kernel_shape))
    ]
    inner_shape = (*x.shape[:2], *inner)
    target = inner_shape if wanted is None else tuple(call.extents(wanted))
    call.check_size(target)
    total = math.prod(inner_shape)
    flat = set_at(zeros((total,), dtype=x.dtype), shapes.reshape(places, (-1, 1)), shapes.reshape(x, (-1,)))
    result = shapes.reshape(flat, inner_shape)
    if target != inner_shape:
        result = shapes.pad(result, [(0, n - m) for n, m in zip(target, inner_shape)])
    return result


@operator("LRN", keeps_layout=True)
def local_response_normalization(
    call: Call, x: ChannelsLast | Tensor, *, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0
) -> ChannelsLast:
    x = laid(call, x)
    before = (size - 1) // 2
    squares = shapes.pad(x * x, [(0, 0)] * (x.ndim - 1) + [(before, size - 1 - before)])
    channels = x.shape[-1]
    total: Any = None
    for k in range(size):
        part = squares[..., k : k + channels]
        total = part if total is None else total + part
    return ChannelsLast(ew.divide(x, ew.pow(total * (alpha / size) + bias, beta)))
