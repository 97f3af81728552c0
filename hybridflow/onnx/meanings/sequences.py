"""Sequences, which are lists of Python, and optional values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hybridflow.array import shapes
from hybridflow.onnx.meanings.shapes import axis_of
from hybridflow.onnx.operators import operator
from hybridflow.onnx.running import Call

if TYPE_CHECKING:
    from hybridflow.core.tensor import Tensor


_MANY = range(1024)


@operator("SequenceConstruct", raw=_MANY)
def construct(call: Call, *values: object) -> list[Any]:
    return list(values)


@operator("SequenceEmpty")
def empty(call: Call, *, dtype: int = 1) -> list[Any]:
    return []


def _place(call: Call, sequence: list[Any], place: object, more: int = 0) -> int:
    at = int(call.numbers(place).reshape(()))
    count = len(sequence)
    if not -count <= at < count + more:
        raise call.fault(f"the place {at} lies outside of a sequence of {count}.")
    return at + count if at < 0 else at


@operator("SequenceAt", raw=(1,))
def at(call: Call, sequence: list[Any], place: object) -> Any:
    return sequence[_place(call, sequence, place)]


@operator("SequenceErase", raw=(1,))
def erase(call: Call, sequence: list[Any], place: object = None) -> list[Any]:
    k = len(sequence) - 1 if place is None else _place(call, sequence, place)
    return sequence[:k] + sequence[k + 1 :]


@operator("SequenceInsert", raw=(1, 2))
def insert(call: Call, sequence: list[Any], value: object, place: object = None) -> list[Any]:
    k = len(sequence) if place is None else _place(call, sequence, place, 1)
    return [*sequence[:k], value, *sequence[k:]]


@operator("SequenceLength")
def length(call: Call, sequence: list[Any]) -> np.ndarray:
    return np.array(len(sequence), np.int64)


@operator("ConcatFromSequence")
def concat(call: Call, sequence: list[Any], *, axis: int, new_axis: int = 0) -> Any:
    tensors = [call.tensor(value) for value in sequence]
    if new_axis:
        return shapes.stack(tensors, axis=axis)
    return shapes.concat(tensors, axis=axis_of(call, axis, tensors[0].ndim))


@operator("SplitToSequence", raw=(1,))
def split(call: Call, x: Tensor, sizes: object = None, *, axis: int = 0, keepdims: int = 1) -> list[Any]:
    axis = axis_of(call, axis, x.ndim)
    extent = x.shape[axis]
    if sizes is None:
        parts = [shapes.slice_axis(x, axis, k, k + 1) for k in range(int(extent))]
        return parts if keepdims else [shapes.squeeze(part, axis) for part in parts]
    numbers = call.numbers(sizes)
    if numbers.ndim == 0:
        step = int(numbers)
        starts = list(range(0, int(extent), step))
        return [shapes.slice_axis(x, axis, k, min(k + step, int(extent))) for k in starts]
    slices, start = [], 0
    for count in call.extents(sizes):
        slices.append(shapes.slice_axis(x, axis, start, start + count))
        start += count
    return slices


@operator("Optional", raw=(0,))
def optional(call: Call, value: object = None, *, type: object = None) -> Any:
    return value


@operator("OptionalHasElement", raw=(0,))
def has_element(call: Call, value: object = None) -> np.ndarray:
    return np.array(value is not None)


@operator("OptionalGetElement", raw=(0,))
def get_element(call: Call, value: object) -> Any:
    return value
