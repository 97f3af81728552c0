"""``tf.image``: boxes in pictures, [y1, x1, y2, x2] each.

How many boxes stay when they are suppressed depends on them: inside compiled functions use
``non_max_suppression_padded`` with ``pad_to_max_output_size``, or ``combined_non_max_suppression``, whose results have
sizes of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, SupportsIndex

import numpy as np

import hybridflow as hf
from hybridflow.compat.adapters.values import array_of, as_extent, extent_by, operand
from hybridflow.compat.export import TensorLike, tf_export
from hybridflow.compiler.ir import dtypes
from hybridflow.core.tensor import Tensor
from hybridflow.errors import ArgumentError

if TYPE_CHECKING:
    from hybridflow.core.type_aliases import ArrayLike


@tf_export("image.crop_and_resize")
def crop_and_resize(
    image: TensorLike, boxes: TensorLike, box_indices: TensorLike, crop_size: TensorLike, method: str = "bilinear",
    extrapolation_value: float = 0.0, name: str | None = None,
) -> Any:  # fmt: skip
    """``tf.image.crop_and_resize``: parts of a batch's pictures, all of one size, as float32.

    Corners of boxes are shares of the height and width less 1.  Raises ArgumentError for an unknown method.
    """
    if method not in ("bilinear", "nearest"):
        raise ArgumentError("image.crop_and_resize", f'method is {method!r}; there are "bilinear" and "nearest".')
    x, corners = hf.astype(operand(image), dtypes.float32), operand(boxes)
    height, width = (int(n) for n in array_of(crop_size))
    rows = _places(corners[:, 0], corners[:, 2], height, x.shape[1])
    columns = _places(corners[:, 1], corners[:, 3], width, x.shape[2])
    whose = hf.reshape(operand(box_indices), (-1, 1, 1))

    def at(y: Any, z: Any) -> Any:
        inside = [hf.astype(hf.clip(p, 0, n - 1), dtypes.int64) for p, n in ((y, x.shape[1]), (z, x.shape[2]))]
        return x[whose, inside[0][:, :, None], inside[1][:, None, :]]

    if method == "nearest":
        sampled = at(hf.floor(rows + 0.5), hf.floor(columns + 0.5))
    else:
        top, left = hf.floor(rows), hf.floor(columns)
        down, right = (rows - top)[:, :, None, None], (columns - left)[:, None, :, None]
        above = at(top, left) + (at(top, left + 1) - at(top, left)) * right
        below = at(top + 1, left) + (at(top + 1, left + 1) - at(top + 1, left)) * right
        sampled = above + (below - above) * down
    kept = [hf.logical_and(p >= 0, p <= n - 1) for p, n in ((rows, x.shape[1]), (columns, x.shape[2]))]
    there = hf.logical_and(kept[0][:, :, None, None], kept[1][:, None, :, None])
    return hf.where(there, sampled, float(extrapolation_value))


def _places(first: Any, last: Any, count: int, extent: int) -> Any:
    """Where the ``count`` elements along an axis of a box lie, [boxes, count]."""
    if count == 1:
        return (0.5 * (first + last) * (extent - 1))[:, None]
    step = (last - first) * (extent - 1) / (count - 1)
    return (first * (extent - 1))[:, None] + hf.arange(count, dtype=first.dtype) * step[:, None]


class Selected(NamedTuple):
    """What ``combined_non_max_suppression`` returns."""

    nmsed_boxes: object
    nmsed_scores: object
    nmsed_classes: object
    valid_detections: object


def _overlaps(boxes: Tensor) -> Any:
    """How much any two boxes have in common, as a share of what they cover together, [..., n, n]."""
    y = hf.sort(boxes[..., ::2], axis=-1)
    x = hf.sort(boxes[..., 1::2], axis=-1)

    def common(side: Any) -> Any:
        low = hf.maximum(side[..., :, None, 0], side[..., None, :, 0])
        return hf.maximum(hf.minimum(side[..., :, None, 1], side[..., None, :, 1]) - low, 0.0)

    both = common(y) * common(x)
    area = (y[..., 1] - y[..., 0]) * (x[..., 1] - x[..., 0])
    together = area[..., :, None] + area[..., None, :] - both
    real = hf.logical_and((area > 0)[..., :, None], (area > 0)[..., None, :])
    return hf.where(real, both / hf.where(real, together, 1.0), 0.0)


def _chosen(
    overlaps: ArrayLike, scores: Any, most: int, limit: Any, least: object, sigma: float = 0.0
) -> tuple[Any, Any, Any]:
    """Up to ``most`` positions along the last axis of the scores, the best first, each of which overlaps none before it
    by more than the limit; with them their scores, and whether there was one.  ``sigma`` lowers scores of those that
    overlap, by a bell curve, instead of leaving them out."""
    if not most:
        none = hf.zeros((*scores.shape[:-1], 0), dtypes.int64)
        return none, hf.astype(none, scores.dtype), hf.astype(none, dtypes.bool_)
    left = scores
    places, values, are_there = [], [], []
    for _ in range(most):
        best = hf.argmax(left, axis=-1)
        value = hf.take_along_axis(left, best[..., None], axis=-1)[..., 0]
        is_there = hf.logical_and(value > least, value > -np.inf)
        places.append(hf.where(is_there, best, 0))
        values.append(hf.where(is_there, value, 0.0))
        are_there.append(is_there)
        shared = hf.take_along_axis(overlaps, best[..., None, None], axis=-2)[..., 0, :]
        if sigma > 0:
            left = left * hf.exp(-0.5 * shared * shared / sigma)
        else:
            left = hf.where(shared > limit, -np.inf, left)
        itself = hf.arange(left.shape[-1]) == best[..., None]
        left = hf.where(itself, -np.inf, left)
    return tuple(hf.stack(part, axis=-1) for part in (places, values, are_there))  # type: ignore[return-value]


def _some(scores: Any, most: SupportsIndex) -> Any:
    return min(as_extent(most), int(scores.shape[-1]))


def _how_many(are_there: TensorLike) -> Any:
    remedy = "Use tf.image.non_max_suppression_padded with pad_to_max_output_size=True"
    return extent_by(are_there, lambda xp, values: xp.count_nonzero(values), "image.non_max_suppression", remedy)


@tf_export("image.non_max_suppression")
def non_max_suppression(
    boxes: TensorLike, scores: Any, max_output_size: SupportsIndex, iou_threshold: float = 0.5,
    score_threshold: float = float("-inf"), name: str | None = None,
) -> Any:  # fmt: skip
    """``tf.image.non_max_suppression``: the positions of the boxes that stay, as int32."""
    return non_max_suppression_with_scores(boxes, scores, max_output_size, iou_threshold, score_threshold)[0]


@tf_export("image.non_max_suppression_with_scores")
def non_max_suppression_with_scores(
    boxes: TensorLike, scores: TensorLike, max_output_size: SupportsIndex, iou_threshold: float = 0.5,
    score_threshold: float = float("-inf"), soft_nms_sigma: float = 0.0, name: str | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    """``tf.image.non_max_suppression_with_scores``: the positions of the boxes that stay, and their scores."""
    values = operand(scores)
    most = _some(values, max_output_size)
    places, kept, are_there = _chosen(
        _overlaps(operand(boxes)), values, most, iou_threshold, score_threshold, soft_nms_sigma
    )
    count = _how_many(are_there)
    return hf.astype(places[:count], dtypes.int32), kept[:count]


@tf_export("image.non_max_suppression_overlaps")
def non_max_suppression_overlaps(
    overlaps: TensorLike, scores: TensorLike, max_output_size: SupportsIndex, overlap_threshold: float = 0.5,
    score_threshold: float = float("-inf"), name: str | None = None,
) -> Any:  # fmt: skip
    """``tf.image.non_max_suppression_overlaps``: as ``non_max_suppression``, by overlaps that are given."""
    values = operand(scores)
    places, _, are_there = _chosen(
        hf.matrix_transpose(operand(overlaps)),
        values,
        _some(values, max_output_size),
        overlap_threshold,
        score_threshold,
    )
    return hf.astype(places[: _how_many(are_there)], dtypes.int32)


@tf_export("image.non_max_suppression_padded")
def non_max_suppression_padded(
    boxes: TensorLike, scores: TensorLike, max_output_size: TensorLike, iou_threshold: float = 0.5,
    score_threshold: float = float("-inf"), pad_to_max_output_size: bool = False, name: str | None = None,
    sorted_input: bool = False, canonicalized_coordinates: bool = False, tile_size: int = 512,
) -> tuple[Any, Any]:  # fmt: skip
    """``tf.image.non_max_suppression_padded``: positions, and how many of them count; batches too."""
    values = operand(scores)
    most = int(array_of(max_output_size))
    places, _, are_there = _chosen(
        _overlaps(operand(boxes)), values, _some(values, most), iou_threshold, score_threshold
    )
    count = hf.sum(hf.astype(are_there, dtypes.int32), axis=-1, dtype=dtypes.int32)
    places = hf.astype(places, dtypes.int32)
    if not pad_to_max_output_size:
        return (places[: _how_many(are_there)] if not count.ndim else places), count
    missing = most - places.shape[-1]
    return hf.pad(places, [*[(0, 0)] * (places.ndim - 1), (0, missing)]), count


@tf_export("image.combined_non_max_suppression")
def combined_non_max_suppression(
    boxes: TensorLike, scores: TensorLike, max_output_size_per_class: Any, max_total_size: TensorLike,
    iou_threshold: float = 0.5,
    score_threshold: float = float("-inf"), pad_per_class: bool = False, clip_boxes: bool = True,
    name: str | None = None,
) -> Selected:  # fmt: skip
    """``tf.image.combined_non_max_suppression``: of boxes [batch, n, 1 or classes, 4], scores [batch, n, classes]."""
    corners, values = operand(boxes), hf.matrix_transpose(operand(scores))
    corners = hf.moveaxis(corners, 2, 1)
    classes, per_class = values.shape[1], _some(values, max_output_size_per_class)
    total = int(array_of(max_total_size))
    if pad_per_class:
        total = min(total, int(array_of(max_output_size_per_class)) * classes)
    corners = hf.broadcast_to(corners, (corners.shape[0], classes, *corners.shape[2:]))
    places, kept, are_there = _chosen(_overlaps(corners), values, per_class, iou_threshold, score_threshold)
    chosen = hf.take_along_axis(corners, hf.broadcast_to(places[..., None], (*places.shape, 4)), axis=2)
    batch, every = values.shape[0], classes * per_class
    flat = hf.where(hf.reshape(are_there, (batch, every)), hf.reshape(kept, (batch, every)), -np.inf)
    order = hf.argsort(flat, axis=-1, descending=True)[:, :total]
    there = hf.take_along_axis(flat, order, axis=-1) > -np.inf
    found_boxes = hf.take_along_axis(
        hf.reshape(chosen, (batch, every, 4)), hf.broadcast_to(order[..., None], (*order.shape, 4)), axis=1
    )
    found_boxes = hf.clip(found_boxes, 0.0, 1.0) if clip_boxes else found_boxes
    missing = max(total - every, 0)
    fill = lambda x: hf.pad(x, [(0, 0), (0, missing), *[(0, 0)] * (x.ndim - 2)])  # noqa: E731
    return Selected(
        fill(hf.where(there[..., None], found_boxes, 0.0)),
        fill(hf.where(there, hf.take_along_axis(flat, order, axis=-1), 0.0)),
        fill(hf.where(there, hf.astype(order // per_class, dtypes.float32), 0.0)),
        hf.sum(hf.astype(there, dtypes.int32), axis=-1, dtype=dtypes.int32),
    )


@tf_export("image.draw_bounding_boxes")
def draw_bounding_boxes(
    images: TensorLike, boxes: TensorLike, colors: TensorLike | None = None, name: str | None = None
) -> Any:
    """``tf.image.draw_bounding_boxes``: lines of one pixel, of boxes whose corners are shares of height and width."""
    x, corners = operand(images), hf.astype(operand(boxes), dtypes.float32)
    height, width = x.shape[1:3]
    palette = ((1,),) if colors is None and x.shape[-1] == 1 else _COLORS if colors is None else array_of(colors)
    rows, columns = hf.arange(height)[:, None], hf.arange(width)[None, :]
    for k in range(corners.shape[1]):
        ends = [
            hf.astype(corners[:, k, side] * (n - 1), dtypes.int64)[:, None, None]
            for side, n in enumerate((height, width, height, width))
        ]
        top, left, bottom, right = ends
        in_rows = hf.logical_and(rows >= top, rows <= bottom)
        in_columns = hf.logical_and(columns >= left, columns <= right)
        across = hf.logical_and(hf.logical_or(rows == top, rows == bottom), in_columns)
        along = hf.logical_and(hf.logical_or(columns == left, columns == right), in_rows)
        color = hf.asarray(np.asarray(palette[k % len(palette)], np.float32)[: x.shape[-1]], x.dtype)
        x = hf.where(hf.logical_or(across, along)[..., None], color, x)
    return x


_COLORS = (
    (1, 1, 0, 1), (0, 0, 1, 1), (1, 0, 0, 1), (0, 1, 0, 1), (0.5, 0, 0.5, 1), (0.5, 0.5, 0, 1), (0.5, 0, 0, 1),
    (0, 0, 0.5, 1), (0, 1, 1, 1), (1, 0, 1, 1),
)  # fmt: skip
