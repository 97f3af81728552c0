"""Fourier transforms and what goes with them.  Complex numbers are pairs along the last axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from hybridflow.array import fourier, shapes
from hybridflow.array.creation import arange, zeros
from hybridflow.array.elementwise import astype, complex
from hybridflow.array.indexing import take
from hybridflow.compiler.ir import dtypes
from hybridflow.core.tensor import Tensor
from hybridflow.onnx.library import dtype_of
from hybridflow.onnx.meanings.shapes import axis_of
from hybridflow.onnx.operators import operator
from hybridflow.onnx.running import Call


def transformed(call: Call, x: Tensor, length: Any, axis: int, inverse: int, onesided: int) -> Tensor:
    axis = axis_of(call, axis, x.ndim)
    extent = x.shape[axis]
    if length is None:
        length = 2 * (extent - 1) if inverse and onesided else extent
    length = int(length)
    call.check_size([length])
    dtype = x.dtype
    x = astype(x, dtypes.compute_dtype(dtype)) if dtype != dtypes.compute_dtype(dtype) else x
    if x.shape[-1] == 1:
        x = shapes.concat([x, zeros(x.shape, dtype=x.dtype)], axis=-1)
    if inverse and onesided:
        moved = fourier.fit(shapes.moveaxis(x, axis, -2), x.ndim - 2, length // 2 + 1, "DFT")
        real = fourier.irfft(complex(moved[..., 0], moved[..., 1]), length, scale=1.0 / length)
        result = shapes.expand_dims(shapes.moveaxis(real, -1, axis), axis=-1)
    else:
        x = fourier.fit(x, axis, length, "DFT")
        result = fourier.fft(x, axis, inverse=bool(inverse), scale=1.0 / length if inverse else 1.0)
        if onesided:
            result = shapes.slice_axis(result, axis, 0, length // 2 + 1)
    return astype(result, dtype) if result.dtype != dtype else result


@operator("DFT", since=20, raw=(1, 2))
def dft(
    call: Call, x: Tensor, length: object = None, axis: object = None, *, inverse: int = 0, onesided: int = 0
) -> Tensor:
    place = -2 if axis is None else call.extents(axis)[0]
    return transformed(call, x, None if length is None else call.extents(length)[0], place, inverse, onesided)


@operator("DFT", since=17, until=17, raw=(1,))
def dft_by_attribute(
    call: Call, x: Tensor, length: object = None, *, axis: int = 1, inverse: int = 0, onesided: int = 0
) -> Tensor:
    return transformed(call, x, None if length is None else call.extents(length)[0], axis, inverse, onesided)


@operator("STFT", since=17, raw=(1, 3))
def stft(
    call: Call, x: Tensor, step: object, window: Tensor | None = None, length: object = None, *, onesided: int = 1
) -> Tensor:
    """Frames [batch, frames, length // 2 + 1, 2] of signals [batch, samples, 1 or 2]."""
    hop = int(call.extents(step)[0])
    if length is not None:
        size = int(call.extents(length)[0])
    else:
        size = int(x.shape[-2] if window is None else window.shape[0])
    if hop < 1 or size < 1:
        raise call.fault(f"its frames have {size} samples, {hop} apart.")
    count = (x.shape[-2] - size) // hop + 1
    places = shapes.reshape(arange(count) * hop, (count, 1)) + arange(size)
    frames = take(x, places, axis=x.ndim - 2)
    if window is not None:
        frames = frames * shapes.reshape(window, (size, 1))
    return transformed(call, frames, size, frames.ndim - 2, 0, onesided)


@operator("MelWeightMatrix", since=17, raw=range(5))
def mel_weight_matrix(
    call: Call, bins: object, length: object, rate: object, lower: object, upper: object, *, output_datatype: int = 1
) -> np.ndarray:
    """Triangles over the bins of a spectrum, with their corners even on the scale of mel."""
    count, size, samples = (int(call.extents(part)[0]) for part in (bins, length, rate))
    low, high = (2595 * np.log10(1 + float(call.numbers(part).reshape(-1)[0]) / 700) for part in (lower, upper))
    rows = size // 2 + 1
    call.check_size([rows, count])
    mel = np.arange(count + 2) * ((high - low) / (count + 2)) + low
    corners = (((size + 1) * 700 * np.expm1(mel / 2595 * np.log(10))) // samples).astype(int)
    matrix = np.zeros((rows, count))
    for k in range(count):
        left, middle, right = corners[k : k + 3]
        if not 0 <= left <= middle <= right <= rows:
            raise call.fault("its edges lie outside of the spectrum.")
        if left == middle:
            matrix[middle, k] = 1
        else:
            matrix[left : middle + 1, k] = (np.arange(left, middle + 1) - left) / (middle - left)
        if right > middle:
            matrix[middle:right, k] = (right - np.arange(middle, right)) / (right - middle)
    return matrix.astype(dtype_of(output_datatype))
