"""Operators that look elements up, sort and scatter them."""

from __future__ import annotations

from typing import Any

import numpy as np

from hybridflow.array import elementwise as ew, indexing, scattering, shapes
from hybridflow.array.creation import arange, asarray, zeros
from hybridflow.array.sorting import argsort, sort, top_k
from hybridflow.compiler.ir import dtypes
from hybridflow.core.tensor import Tensor
from hybridflow.eager.operands import expand
from hybridflow.onnx.meanings.shapes import axis_of
from hybridflow.onnx.operators import operator
from hybridflow.onnx.running import Call


def counted(call: Call, indices: Tensor, extent: object) -> Tensor:
    """Indices counted from the front."""
    wide = ew.astype(indices, dtypes.int64)
    if not dtypes.is_signed(indices.dtype):
        return wide
    return ew.where(ew.less(wide, 0), wide + extent, wide)


@operator("Gather", raw=(1,))
def gather(call: Call, x: Tensor, indices: object, *, axis: int = 0) -> Tensor:
    axis = axis_of(call, axis, x.ndim)
    if isinstance(indices, np.ndarray) and indices.dtype != object and indices.ndim <= 1 and indices.size == 1:
        place = int(indices.reshape(()))  # one row is a slice
        extent = x.shape[axis]
        if isinstance(extent, int) and not -extent <= place < extent:
            raise call.fault(f"the index {place} lies outside of axis {axis} of {x.type}.")
        key = (slice(None),) * axis
        if indices.ndim == 0:
            return x[(*key, place)]
        return shapes.expand_dims(x[(*key, place)], axis=axis)
    return indexing.take(x, call.tensor(indices), axis=axis)


@operator("GatherElements", since=11)
def gather_elements(call: Call, x: Tensor, indices: Tensor, *, axis: int = 0) -> Tensor:
    axis = axis_of(call, axis, x.ndim)
    for k in range(x.ndim):
        if k != axis and x.shape[k] != indices.shape[k]:
            x = shapes.slice_axis(x, k, 0, indices.shape[k])
    return indexing.take_along_axis(x, indices, axis=axis)


@operator("GatherND", since=11)
def gather_nd(call: Call, x: Tensor, indices: Tensor, *, batch_dims: int = 0) -> Tensor:
    if not batch_dims:
        return indexing.gather_nd(x, indices)
    rows = shapes.reshape(x, (-1, *x.shape[batch_dims:]))
    depth = indices.shape[-1]
    places = shapes.reshape(indices, (rows.shape[0], -1, depth))
    count = rows.shape[0]
    first = expand(shapes.reshape(ew.astype(arange(count), indices.dtype), (count, 1, 1)), (*places.shape[:2], 1))
    gathered = indexing.gather_nd(rows, shapes.concat([first, places], axis=2))
    return shapes.reshape(gathered, (*indices.shape[:-1], *x.shape[batch_dims + depth :]))


def _combined(call: Call, x: Tensor, indices: Tensor, updates: Tensor, reduction: str) -> Tensor:
    """Updates put, or combined with what is there; ``indices`` are vectors of places in their last axis."""
    if reduction in ("none", ""):
        return scattering.set_at(x, indices, updates)
    if reduction == "add":
        return scattering.added_at(x, indices, updates)
    if reduction == "max":
        return scattering.largest_at(x, indices, updates)
    if reduction == "min":
        return scattering.smallest_at(x, indices, updates)
    if reduction == "mul":
        return _multiplied_at(call, x, indices, updates)
    raise call.fault(f"the reduction {reduction!r} is not known.")


def _multiplied_at(call: Call, x: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    """Products for equal places, by the sum of what there is no product of here: in order, one after another."""
    places = call.numbers(indices)
    rows = shapes.reshape(updates, (-1, *updates.shape[places.ndim - 1 :]))
    for number, place in enumerate(places.reshape(-1, places.shape[-1])):
        vector = asarray(place[None])
        old = indexing.gather_nd(x, vector)
        x = scattering.set_at(x, vector, old * rows[number : number + 1])
    return x


@operator("ScatterND", since=11)
def scatter_nd(call: Call, x: Tensor, indices: Tensor, updates: Tensor, *, reduction: str = "none") -> Tensor:
    places = ew.astype(indices, dtypes.int64)
    depth = indices.shape[-1]
    limits = asarray(np.array([int(n) for n in x.shape[:depth]], np.int64))
    places = ew.where(ew.less(places, 0), places + limits, places)
    return _combined(call, x, places, updates, reduction)


@operator("ScatterElements", "Scatter", since=9)
def scatter_elements(
    call: Call, x: Tensor, indices: Tensor, updates: Tensor, *, axis: int = 0, reduction: str = "none"
) -> Tensor:
    axis = axis_of(call, axis, x.ndim)
    places = counted(call, indices, x.shape[axis])
    vectors = []
    for k, extent in enumerate(indices.shape):
        if k == axis:
            vectors.append(places)
        else:
            form = tuple(extent if j == k else 1 for j in range(indices.ndim))
            vectors.append(expand(shapes.reshape(arange(extent), form), indices.shape))
    return _combined(call, x, shapes.stack(vectors, axis=-1), updates, reduction)


@operator("OneHot", since=9, raw=(1,))
def one_hot(call: Call, indices: Tensor, depth: object, values: Tensor, *, axis: int = -1) -> Tensor:
    count = call.extents(depth)[0]
    call.check_size([*indices.shape, count])
    ndim = indices.ndim + 1
    axis = axis_of(call, axis, ndim)
    wide = ew.astype(indices, dtypes.int64)
    wide = ew.where(ew.less(wide, 0), wide + count, wide)
    rows = shapes.reshape(arange(count), tuple(count if k == axis else 1 for k in range(ndim)))
    hot = ew.equal(shapes.expand_dims(wide, axis=axis), rows)
    return ew.where(hot, values[1], values[0])


@operator("TopK", since=10, raw=(1,))
def top(call: Call, x: Tensor, k: object, *, axis: int = -1, largest: int = 1, sorted: int = 1) -> Any:
    count = call.extents(k)[0]
    axis = axis_of(call, axis, x.ndim)
    if largest and axis == x.ndim - 1 and dtypes.is_float(x.dtype):
        return tuple(top_k(x, count))
    order = shapes.slice_axis(argsort(x, axis=axis, descending=bool(largest)), axis, 0, count)
    return indexing.take_along_axis(x, order, axis=axis), order


@operator("NonZero", since=9)
def non_zero(call: Call, x: Tensor) -> Any:
    """How many there are is known when it runs: a compiled model runs eagerly."""
    return asarray(np.stack(np.nonzero(call.numbers(x))).astype(np.int64))


@operator("Compress", since=9)
def compress(call: Call, x: Tensor, condition: Tensor, *, axis: int | None = None) -> Tensor:
    if axis is None:
        x, axis = shapes.reshape(x, (-1,)), 0
    places = np.flatnonzero(call.numbers(condition))
    return indexing.take(x, asarray(places.astype(np.int64)), axis=axis_of(call, axis, x.ndim))


@operator("Unique", since=11)
def unique(call: Call, x: Tensor, *, axis: int | None = None, sorted: int = 1) -> Any:
    array = call.numbers(x)
    values, first, inverse, counts = np.unique(
        array, return_index=True, return_inverse=True, return_counts=True, axis=axis
    )
    inverse = inverse.reshape(-1)
    if not sorted:
        order = np.argsort(first)
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        values = np.take(values, order, axis=axis or 0)
        first, counts, inverse = first[order], counts[order], rank[inverse]
    return tuple(
        asarray(np.ascontiguousarray(part))
        for part in (values, first.astype(np.int64), inverse.astype(np.int64), counts.astype(np.int64))
    )


@operator("TensorScatter", since=24)
def tensor_scatter(
    call: Call, cache: Tensor, update: Tensor, starts: Tensor | None = None, *, axis: int = -2, mode: str = "linear"
) -> Tensor:
    """Rows of a cache replaced, for each example from a place of its own on."""
    axis = axis_of(call, axis, cache.ndim)
    steps, extent, count = update.shape[axis], cache.shape[axis], cache.shape[0]
    begin = zeros((count,), dtype=dtypes.int64) if starts is None else ew.astype(starts, dtypes.int64)
    form = (count, *(1,) * (cache.ndim - 1))
    places = shapes.reshape(arange(steps), tuple(steps if k == axis else 1 for k in range(cache.ndim)))
    places = shapes.reshape(begin, form) + places
    if mode == "circular":
        places = ew.remainder(places, extent)
    return scatter_elements(call, cache, expand(places, update.shape), update, axis=axis)


@operator("NonMaxSuppression", since=10)
def non_max_suppression(
    call: Call,
    boxes: Tensor,
    scores: Tensor,
    most: object = None,
    overlap: object = None,
    least: object = None,
    *,
    center_point_box: int = 0,
) -> Tensor:
    """How many boxes are left is known when it runs: a compiled model runs eagerly."""
    limit = 0 if most is None else int(call.numbers(most).reshape(-1)[0])
    ratio = 0.0 if overlap is None else float(call.numbers(overlap).reshape(-1)[0])
    low = -np.inf if least is None else float(call.numbers(least).reshape(-1)[0])
    selected = []
    all_boxes, all_scores = call.numbers(boxes), call.numbers(scores)
    for batch in range(all_scores.shape[0]):
        corners = _corners(all_boxes[batch], center_point_box)
        for kind in range(all_scores.shape[1]):
            selected += [
                (batch, kind, box) for box in _non_max_suppression(corners, all_scores[batch, kind], limit, ratio, low)
            ]
    return asarray(np.array(selected, np.int64).reshape(-1, 3))


def _corners(boxes: np.ndarray, center_point_box: int) -> np.ndarray:
    if center_point_box:
        x, y, width, height = boxes.T
        return np.stack([y - height / 2, x - width / 2, y + height / 2, x + width / 2], 1)
    low, high = np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])
    return np.concatenate([low, high], 1)


def _non_max_suppression(boxes: np.ndarray, scores: np.ndarray, limit: int, ratio: float, low: float) -> list[int]:
    order = [k for k in np.argsort(-scores, kind="stable") if scores[k] > low]
    areas = np.prod(boxes[:, 2:] - boxes[:, :2], axis=1)
    kept: list[int] = []
    for k in order:
        if len(kept) >= limit:
            break
        if kept:
            others = boxes[kept]
            sides = np.minimum(others[:, 2:], boxes[k, 2:]) - np.maximum(others[:, :2], boxes[k, :2])
            common = np.prod(np.maximum(sides, 0), axis=1)
            union = areas[kept] + areas[k] - common
            if (common > ratio * union).any():
                continue
        kept.append(int(k))
    return kept


__all__ = ["sort"]
