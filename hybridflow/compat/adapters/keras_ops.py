"""``keras.ops`` where its arguments are not those of a function of ``tf`` or of hybridflow."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import hybridflow as hf
from hybridflow.compat.adapters import images, maths
from hybridflow.compat.adapters.values import axes, operand, operands


def shape(x: Any) -> tuple[Any, ...]:
    """``keras.ops.shape``: a tuple; extents that are not numbers yet stay extents."""
    return tuple(operand(x).shape)


def take(x: Any, indices: Any, axis: int | None = None) -> Any:
    """``keras.ops.take``: of all elements without an axis."""
    value, places = operand(x), operand(indices)
    return hf.take(hf.reshape(value, (-1,)) if axis is None else value, places, axis=axis or 0)


def split(x: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """``keras.ops.split``: equal parts, or those between positions."""
    value = operand(x)
    if isinstance(indices_or_sections, int):
        return list(hf.split(value, indices_or_sections, axis))
    ends = [0, *indices_or_sections, value.shape[axis]]
    return list(hf.split(value, [after - before for before, after in pairwise(ends)], axis))


def swapaxes(x: Any, axis1: int, axis2: int) -> Any:
    """``keras.ops.swapaxes``."""
    value = operand(x)
    order = list(range(value.ndim))
    order[axis1], order[axis2] = order[axis2], order[axis1]
    return hf.permute_dims(value, tuple(order))


def segment_sum(data: Any, segment_ids: Any, num_segments: int | None = None, sorted: bool = False) -> Any:
    """``keras.ops.segment_sum``."""
    if num_segments is None:
        return maths.segment_sum(data, segment_ids)
    return maths.unsorted_segment_sum(data, segment_ids, num_segments)


def extract_patches(image: Any, size: Any, strides: Any = None, dilation_rate: Any = 1, padding: str = "valid") -> Any:
    """``keras.ops.image.extract_patches``: next to each other without ``strides``."""
    size, rate = _pair(size), _pair(dilation_rate)
    step = size if strides is None else _pair(strides)
    return images.extract_patches(operand(image), [1, *size, 1], [1, *step, 1], [1, *rate, 1], padding)


def _pair(value: Any) -> tuple[int, int]:
    first, second = (value, value) if isinstance(value, int) else value
    return first, second


def ctc_loss(target: Any, output: Any, target_length: Any, output_length: Any, mask_index: int = 0) -> Any:
    """``keras.ops.ctc_loss``: logits are (batch, steps, classes)."""
    lengths = operand(target_length), operand(output_length)
    return hf.nn.ctc_loss(operand(target), operand(output), *lengths, logits_time_major=False, blank_index=mask_index)


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """``keras.ops.norm``: of vectors or matrices, the Euclidean one without ``ord``."""
    value = operand(x)
    along = axes(axis)
    if (isinstance(along, tuple) and len(along) == 2) or (along is None and value.ndim == 2 and ord is not None):
        return hf.linalg.matrix_norm(value, ord="fro" if ord is None else ord, keepdims=keepdims)
    return hf.linalg.vector_norm(value, axis=along, ord=2 if ord is None else ord, keepdims=keepdims)


def dot(x1: Any, x2: Any) -> Any:
    """``keras.ops.dot``: over the last axis of one and the last but one of the other."""
    a, b = operands([x1, x2], [0, 1])
    return a * b if not a.ndim or not b.ndim else hf.tensordot(a, b, axes=[[a.ndim - 1], [max(b.ndim - 2, 0)]])
