"""Overlapping frames of a signal, and the signal of overlapping frames."""

from __future__ import annotations

from typing import Any

import numpy as np

from hybridflow.array.creation import zeros
from hybridflow.array.segment_ops import segment_sum
from hybridflow.array.shapes import known_extent, moveaxis, pad, slice_axis
from hybridflow.compiler.ops import TABLE, type_rules
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import ArrayLike
from hybridflow.eager.dispatch import apply
from hybridflow.eager.operands import as_tensor, literal, reshape_to
from hybridflow.errors import ArgumentError, ShapeError, entered

_MOST_SHIFTS = 32  # sums of so many shifted arrays are written out


def _positive(value: object, name: str, stage: str) -> int:
    number = type_rules.integer(stage, name, value)
    if number < 1:
        raise ArgumentError(stage, f"{name} is {number}. Expected 1 or more.")
    return number


@entered
def frame(
    signal: ArrayLike,
    frame_length: object,
    frame_step: object,
    pad_end: bool = False,
    pad_value: object = 0,
    axis: int = -1,
) -> Tensor:
    """Cut a signal into frames that may overlap.

    Frames are a view of the signal: what is computed of them reads the signal itself.

    Args:
        signal: a tensor or array-like value.
        frame_length: samples of a frame.
        frame_step: samples between the starts of adjacent frames.
        pad_end: whether the last frames go on behind the end, with ``pad_value`` there; else they are left out.
        pad_value: the number behind the end.
        axis: the axis of samples.

    Returns:
        A tensor in which ``axis`` has become two: frames, and the samples of a frame.

    Raises:
        ArgumentError: where a length or a step is below 1.
        AxisError: for an axis out of range.

    >>> hf.signal.frame([1, 2, 3, 4, 5], 3, 2)
    <Tensor i64[2,3] cpu>
    [[1 2 3]
     [3 4 5]]
    """
    stage = "frame"
    x = as_tensor(signal, stage)
    length, step = _positive(frame_length, "frame_length", stage), _positive(frame_step, "frame_step", stage)
    axis = type_rules.axis(stage, x.type, axis)
    n = known_extent(x, axis, stage)
    if pad_end:
        behind = max(0, (-(-n // step) - 1) * step + length - n)
        x = pad(x, [(0, behind if k == axis else 0) for k in range(x.ndim)], constant_values=pad_value)
        n += behind
    if n < length:
        return zeros((*x.shape[:axis], 0, length, *x.shape[axis + 1 :]), x.dtype)
    return apply(TABLE["windows"], x, axes=(axis,), size=(length,), step=(step,))


@entered
def overlap_and_add(signal: ArrayLike, frame_step: object) -> Tensor:
    """The sum of frames, each ``frame_step`` samples behind the one before: the transpose of ``frame``.

    Args:
        signal: a tensor of shape ``(..., frames, frame_length)``.
        frame_step: samples between the starts of adjacent frames.

    Returns:
        A tensor of shape ``(..., (frames - 1) * frame_step + frame_length)``.

    Raises:
        ArgumentError: where the step is below 1.
        ShapeError: for fewer than two axes.

    >>> hf.signal.overlap_and_add([[1, 1, 1], [2, 2, 2]], 2)
    <Tensor i64[5] cpu> [1 1 3 2 2]
    """
    stage = "overlap_and_add"
    x, step = as_tensor(signal, stage), _positive(frame_step, "frame_step", stage)
    if x.ndim < 2:
        raise ShapeError(stage, f"signal is {x.type}. Expected frames and their samples in the last two axes.")
    count, length = (known_extent(x, k, stage) for k in (x.ndim - 2, x.ndim - 1))
    front, last = x.shape[:-2], x.ndim - 1
    if count == 0:
        return zeros((*front, 0), x.dtype)
    size = (count - 1) * step + length
    shifts = -(-length // step)
    if shifts > _MOST_SHIFTS:
        places = (np.arange(count)[:, None] * step + np.arange(length)).reshape(-1)
        rows = moveaxis(reshape_to(x, (*front, count * length)), -1, 0)
        return moveaxis(segment_sum(rows, literal(places), size), 0, -1)
    x = pad(x, [*[(0, 0)] * last, (0, shifts * step - length)])
    total: Any = None
    for k in range(shifts):
        part = slice_axis(x, last, k * step, (k + 1) * step)
        part = pad(part, [*[(0, 0)] * (last - 1), (k, shifts - 1 - k), (0, 0)])
        total = part if total is None else total + part
    if total is None:
        return zeros((*front, size), x.dtype)
    whole = reshape_to(total, (*front, (count + shifts - 1) * step))
    if step >= length:  # every part has its place alone
        whole = pad(whole, [*[(0, 0)] * (last - 1), (0, max(0, size - (count + shifts - 1) * step))])
    return slice_axis(whole, last - 1, 0, size)
