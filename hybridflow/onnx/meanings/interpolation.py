"""Elements between elements, at places that tensors say: GridSample, RoiAlign, DeformConv."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from hybridflow.array import elementwise as ew, reductions, shapes
from hybridflow.array.creation import arange
from hybridflow.array.indexing import take
from hybridflow.array.linalg import matmul
from hybridflow.compiler.ir import dtypes
from hybridflow.core.tensor import Tensor
from hybridflow.onnx.meanings.windows import laid
from hybridflow.onnx.operators import operator
from hybridflow.onnx.running import Call, ChannelsLast


def _reflected(x: Tensor, low: float, high: float) -> Tensor:
    """Places mirrored at the borders until they lie within."""
    span = high - low
    if span <= 0:
        return x * 0 + low
    beyond = ew.where(ew.less(x, low), low - x, x - high)
    reflections = ew.floor(beyond / span)
    rest = beyond - reflections * span
    even = ew.equal(ew.remainder(reflections, 2.0), 0.0)
    from_low = ew.where(even, low + rest, high - rest)
    from_high = ew.where(even, high - rest, low + rest)
    return ew.where(ew.less(x, low), from_low, ew.where(ew.greater(x, high), from_high, x))


def _cubic(x: Tensor) -> list[Tensor]:
    a = -0.75
    outer = ((a * (x + 1) - 5 * a) * (x + 1) + 8 * a) * (x + 1) - 4 * a
    inner = ((a + 2) * x - (a + 3)) * x * x + 1
    rest = 1 - x
    other = ((a + 2) * rest - (a + 3)) * rest * rest + 1
    last = ((a * (2 - x) - 5 * a) * (2 - x) + 8 * a) * (2 - x) - 4 * a
    return [outer, inner, other, last]


def sampled(x: Tensor, places: list[Tensor], mode: str, padding: str, align: int) -> Tensor:
    """Elements of images ``[n, *extents, channels]`` at ``places``: for each axis a tensor ``[n, *wanted]``."""
    count, *extents, channels = x.shape
    rows = shapes.reshape(x, (-1, channels))
    taps: list[list[tuple[Tensor, Tensor | None, Tensor | None]]] = []  # index, weight, whether it is inside
    for place, extent in zip(places, extents):
        low, high = (0.0, extent - 1.0) if align else (-0.5, extent - 0.5)
        at = ew.round(place) if mode == "nearest" else place
        if padding == "border":
            at = ew.minimum(ew.maximum(at, 0.0), float(extent - 1))
        elif padding == "reflection":
            at = _reflected(at, low, high)
        base = ew.floor(at) if mode != "nearest" else ew.trunc(at)
        part = at - base
        weights: list[Tensor | None] = [None]
        offsets = [0]
        if mode == "linear":
            offsets, weights = [0, 1], [1 - part, part]
        elif mode == "cubic":
            offsets, weights = [-1, 0, 1, 2], [*_cubic(part)]
        axis_taps: list[tuple[Tensor, Tensor | None, Tensor | None]] = []
        for offset, weight in zip(offsets, weights):
            index = base + float(offset)
            inside = None
            if padding == "zeros":
                inside = ew.logical_and(ew.greater_equal(index, 0.0), ew.less(index, float(extent)))
            elif padding == "reflection":
                index = ew.trunc(_reflected(index, low, high))
            index = ew.astype(ew.minimum(ew.maximum(index, 0.0), float(extent - 1)), dtypes.int64)
            axis_taps.append((index, weight, inside))
        taps.append(axis_taps)
    image = shapes.reshape(arange(count), (count, *(1,) * (places[0].ndim - 1)))
    total: Any = None
    for chosen in itertools.product(*taps):
        where: Any = image
        joint: Any = None
        for (place, share, inside), extent in zip(chosen, extents):
            where = where * extent + place
            if inside is not None:
                zero_or_share = ew.astype(inside, x.dtype) if share is None else ew.where(inside, share, 0.0)
                share = zero_or_share
            if share is not None:
                joint = share if joint is None else joint * share
        value = take(rows, where, axis=0)
        if joint is not None:
            value = value * shapes.expand_dims(ew.astype(joint, x.dtype), axis=-1)
        total = value if total is None else total + value
    return total


@operator("GridSample", since=16, keeps_layout=True)
def grid_sample(
    call: Call,
    x: ChannelsLast | Tensor,
    grid: Tensor | ChannelsLast,
    *,
    align_corners: int = 0,
    mode: str = "linear",
    padding_mode: str = "zeros",
) -> ChannelsLast:
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
    if mode not in ("nearest", "linear", "cubic"):
        raise call.fault(f"the mode {mode!r} is not known.")
    x, grid = laid(call, x), call.tensor(grid)
    extents = x.shape[1:-1]
    places = []
    for k, extent in enumerate(extents):
        at = grid[..., len(extents) - 1 - k]
        places.append((at + 1) / 2.0 * (extent - 1) if align_corners else ((at + 1) * extent - 1) / 2.0)
    return ChannelsLast(sampled(x, places, mode, padding_mode, align_corners))


@operator("RoiAlign", since=10, keeps_layout=True)
def roi_align(
    call: Call,
    x: ChannelsLast | Tensor,
    rois: Tensor | ChannelsLast,
    batches: Tensor | ChannelsLast,
    *,
    coordinate_transformation_mode: str | None = None,
    mode: str = "avg",
    output_height: int = 1,
    output_width: int = 1,
    sampling_ratio: int = 0,
    spatial_scale: float = 1.0,
) -> ChannelsLast:
    x, rois, batches = laid(call, x), call.tensor(rois), call.tensor(batches)
    if coordinate_transformation_mode is None:
        coordinate_transformation_mode = "half_pixel" if call.version >= 16 else "output_half_pixel"
    middle = coordinate_transformation_mode == "half_pixel"
    _, height, width, channels = x.shape
    corners = rois * spatial_scale - (0.5 if middle else 0.0)
    rows = []
    for start, end, extent, bins in ((1, 3, height, output_height), (0, 2, width, output_width)):
        low, size = corners[:, start], corners[:, end] - corners[:, start]
        if not middle:
            size = ew.maximum(size, 1.0)
        part = size / float(bins)
        samples = part * 0 + float(sampling_ratio) if sampling_ratio > 0 else ew.maximum(ew.ceil(part), 1.0)
        most = sampling_ratio if sampling_ratio > 0 else int(call.numbers(samples).max())
        steps = ew.astype(arange(most), x.dtype)
        column = shapes.reshape(low, (-1, 1, 1)), shapes.reshape(part, (-1, 1, 1)), shapes.reshape(samples, (-1, 1, 1))
        first, each, count = column
        bin_ = shapes.reshape(ew.astype(arange(bins), x.dtype), (1, -1, 1))
        place = first + bin_ * each + (steps + 0.5) * each / count
        rows.append((place, ew.less(steps, count), samples, extent))
    (y, use_y, count_y, _), (z, use_z, count_z, _) = rows
    y = shapes.reshape(y, (*y.shape[:2], 1, y.shape[2], 1))
    z = shapes.reshape(z, (z.shape[0], 1, z.shape[1], 1, z.shape[2]))
    shape = shapes.broadcast_shapes(y.shape, z.shape)
    y, z = shapes.broadcast_to(y, shape), shapes.broadcast_to(z, shape)
    use = ew.logical_and(
        shapes.reshape(use_y, (use_y.shape[0], 1, 1, -1, 1)), shapes.reshape(use_z, (use_z.shape[0], 1, 1, 1, -1))
    )
    within = ew.logical_and(
        ew.logical_and(ew.greater_equal(y, -1.0), ew.less_equal(y, float(height))),
        ew.logical_and(ew.greater_equal(z, -1.0), ew.less_equal(z, float(width))),
    )
    flat = shapes.reshape(x, (-1, channels))
    parts = []
    axes = []
    for place, extent in ((y, height), (z, width)):
        place = ew.minimum(ew.maximum(place, 0.0), float(extent - 1))
        base = ew.minimum(ew.floor(place), float(extent - 1))
        upper = ew.minimum(base + 1.0, float(extent - 1))
        share = place - base
        axes.append(((base, 1 - share), (upper, share)))
    image = shapes.reshape(ew.astype(batches, dtypes.int64), (-1, 1, 1, 1, 1)) * (height * width)
    for (row, row_share), (column_, column_share) in itertools.product(*axes):
        index = image + ew.astype(row, dtypes.int64) * width + ew.astype(column_, dtypes.int64)
        weight = ew.where(within, row_share * column_share, 0.0)
        parts.append(take(flat, index, axis=0) * shapes.expand_dims(weight, axis=-1))
    mask = shapes.expand_dims(shapes.broadcast_to(use, shape), axis=-1)
    if mode == "max":
        best = parts[0]
        for part in parts[1:]:
            best = ew.maximum(best, part)
        return ChannelsLast(reductions.max(ew.where(mask, best, -math.inf), axis=(3, 4)))
    total = parts[0] + parts[1] + parts[2] + parts[3]
    sums = reductions.sum(ew.where(mask, total, 0.0), axis=(3, 4))
    return ChannelsLast(sums / shapes.reshape(count_y * count_z, (-1, 1, 1, 1)))


@operator("DeformConv", since=19, raw=(1,), keeps_layout=True)
def deform_conv(
    call: Call,
    x: ChannelsLast | Tensor,
    w: Tensor,
    offset: Tensor | ChannelsLast,
    bias: Tensor | None = None,
    mask: object = None,
    *,
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: object = None,
    offset_group: int = 1,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> ChannelsLast:
    """A convolution whose windows take elements off their places, by tensors that say how far."""
    if w.ndim != 4:
        raise call.fault("it is supported over two axes alone.")
    x, offset = laid(call, x), call.tensor(offset)
    step, dilation, pads = strides or [1, 1], dilations or [1, 1], pads or [0] * 4
    rows, columns = w.shape[2:]
    n, _, _, channels = x.shape
    height, width = offset.shape[2:]
    offsets = shapes.reshape(offset, (n, offset_group, rows, columns, 2, height, width))
    if mask is not None:
        mask = shapes.reshape(call.tensor(mask), (n, offset_group, rows, columns, height, width))
    group_channels = channels // offset_group
    top = shapes.reshape(ew.astype(arange(height), x.dtype) * float(step[0]) - float(pads[0]), (-1, 1))
    left = ew.astype(arange(width), x.dtype) * float(step[1]) - float(pads[1])
    windows = []
    for i, j in itertools.product(range(rows), range(columns)):
        parts = []
        for g in range(offset_group):
            y = top + float(i * dilation[0]) + offsets[:, g, i, j, 0]
            z = left + float(j * dilation[1]) + offsets[:, g, i, j, 1]
            part = sampled(x[..., g * group_channels : (g + 1) * group_channels], [y, z], "linear", "zeros", 1)
            if mask is not None:
                part = part * shapes.expand_dims(mask[:, g, i, j], axis=-1)
            parts.append(part)
        windows.append(shapes.concat(parts, axis=-1) if len(parts) > 1 else parts[0])
    filters = call.arranged(w, (2, 3, 1, 0))
    inputs, outputs = channels // group, w.shape[0] // group
    groups = []
    for g in range(group):
        cut = [part[..., g * inputs : (g + 1) * inputs] for part in windows]
        matrix = shapes.reshape(filters[..., g * outputs : (g + 1) * outputs], (-1, outputs))
        groups.append(matmul(shapes.concat(cut, axis=-1), matrix))
    result = shapes.concat(groups, axis=-1) if group > 1 else groups[0]
    return ChannelsLast(result if bias is None else result + bias)
