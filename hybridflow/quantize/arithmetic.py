"""Affine quantization: integers of few bits for floats, ``float = (quantized - zero_point) * scale``."""

from __future__ import annotations

from typing import Any

import numpy as np

from hybridflow.array.elementwise import abs as absolute, astype, clip, divide, round as rounded, stop_gradient, where
from hybridflow.array.reductions import max as largest
from hybridflow.array.shapes import reshape
from hybridflow.compiler.ir import dtypes
from hybridflow.core.promotion import to_dtype
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import ArrayLike, AxisLike, DTypeLike
from hybridflow.eager.operands import as_tensor
from hybridflow.errors import ArgumentError, DTypeError

QUANTIZED_DTYPES = (dtypes.int8, dtypes.uint8, dtypes.int4, dtypes.uint4)


def quantized_dtype(stage: str, dtype: DTypeLike) -> np.dtype[Any]:
    """A dtype of quantized values.  Raises DTypeError for another one."""
    chosen = to_dtype(dtype, stage)
    if chosen not in QUANTIZED_DTYPES:
        raise DTypeError(stage, f"dtype is {chosen}. Expected int8, uint8, int4 or uint4.")
    return chosen


def bounds(dtype: np.dtype[Any], symmetric: bool = False) -> tuple[int, int]:
    """The least and the largest quantized value; symmetric ones leave out the least of a signed dtype."""
    low, high = dtypes.limits(dtype)
    return (-high, high) if symmetric and low < 0 else (low, high)


def _float(stage: str, x: ArrayLike) -> Tensor:
    tensor = as_tensor(x, stage)
    if not dtypes.is_float(dtypes.wide_dtype(tensor.dtype)):
        raise DTypeError(stage, f"x is {tensor.type}. Expected floats.")
    return tensor


def _along(stage: str, part: ArrayLike, x: Tensor, axis: int | None) -> Tensor:
    """Scales or zero points, with the axes of what they belong to."""
    tensor = as_tensor(part, stage)
    if axis is None:
        return tensor
    if tensor.ndim != 1 or not -x.ndim <= axis < x.ndim or tensor.shape[0] != x.shape[axis]:
        raise ArgumentError(
            stage, f"x is {x.type}, and along axis {axis} there are {tensor.type}. Expected a vector of its extent."
        )
    return reshape(tensor, tuple(-1 if k == axis % x.ndim else 1 for k in range(x.ndim)))


def _point(stage: str, zero_point: ArrayLike, x: Tensor, axis: int | None) -> Tensor:
    point = _along(stage, zero_point, x, axis)
    if not dtypes.is_integer(dtypes.wide_dtype(point.dtype)):
        raise DTypeError(stage, f"zero_point is {point.type}. Expected integers.")
    return point


def find_scale(x: ArrayLike, axis: AxisLike = None, dtype: DTypeLike = "int8") -> Tensor:
    """The scale with which the largest amount of ``x`` becomes the largest quantized value, symmetrically around 0.

    Args:
        x: floats of any shape.
        axis: the axes that share a scale; all by default.
        dtype: int8 or int4, the dtype of the quantized values.

    Returns:
        A tensor of floats with the axes of ``x``, of extent 1 where they share a scale; 1 where all of ``x`` is 0.

    Raises:
        DTypeError: for another dtype, or where ``x`` is not floats.

    Example:
        >>> hf.quantize.find_scale([[1.27, -0.5], [0.0, 0.0]], axis=1)
        <Tensor f32[2,1] cpu>
        [[0.01]
         [1.  ]]
    """
    tensor = _float("find_scale", x)
    low, high = bounds(quantized_dtype("find_scale", dtype), symmetric=True)
    if not low:
        raise DTypeError("find_scale", f"dtype is {dtype}, which has no negative values. Expected int8 or int4.")
    scale = divide(largest(absolute(tensor), axis=axis, keepdims=True), high)
    return where(scale == 0, 1, scale)


def quantize(
    x: ArrayLike,
    scale: ArrayLike,
    zero_point: ArrayLike | None = None,
    dtype: DTypeLike = "int8",
    axis: int | None = None,
) -> Tensor:
    """The quantized values of floats: ``round(x / scale) + zero_point``, clipped to what ``dtype`` holds.

    Ties are rounded to even.

    Args:
        x: floats of any shape.
        scale: positive floats, that broadcast with ``x``; with ``axis`` a vector.
        zero_point: the quantized value of 0, of the same shape; 0 by default.
        dtype: int8, uint8, int4 or uint4.
        axis: the axis of ``x`` along which scales and zero points are given.

    Returns:
        A tensor of ``dtype`` and the shape of ``x``.

    Raises:
        DTypeError: for another dtype, or where ``x`` is not floats.
        ArgumentError: where scales are not along ``axis``.

    Example:
        >>> hf.quantize.quantize([0.04, -1.0, 9.0], 0.01)
        <Tensor i8[3] cpu> [   4 -100  127]
    """
    tensor, chosen = _float("quantize", x), quantized_dtype("quantize", dtype)
    low, high = bounds(chosen)
    quantized = rounded(divide(tensor, _along("quantize", scale, tensor, axis)))
    if zero_point is not None:
        quantized = quantized + astype(_point("quantize", zero_point, tensor, axis), quantized.dtype)
    return astype(clip(quantized, low, high), chosen)


def dequantize(
    x: ArrayLike,
    scale: ArrayLike,
    zero_point: ArrayLike | None = None,
    axis: int | None = None,
    dtype: DTypeLike = "float32",
) -> Tensor:
    """The floats of quantized values: ``(x - zero_point) * scale``.

    Args:
        x: quantized values of any shape.
        scale: floats, that broadcast with ``x``; with ``axis`` a vector.
        zero_point: the quantized value of 0, of the same shape; 0 by default.
        axis: the axis of ``x`` along which scales and zero points are given.
        dtype: that of the result.

    Returns:
        A tensor of floats with the shape of ``x``.

    Raises:
        DTypeError: where ``x`` or ``zero_point`` is not integers, or ``dtype`` not floats.
        ArgumentError: where scales are not along ``axis``.

    Example:
        >>> hf.quantize.dequantize(hf.asarray([4, -100], dtype="int8"), 0.5)
        <Tensor f32[2] cpu> [  2. -50.]
    """
    tensor, to = as_tensor(x, "dequantize"), to_dtype(dtype, "dequantize")
    kept = dtypes.wide_dtype(tensor.dtype)
    if not dtypes.is_integer(kept) or (kept.itemsize > 2 and kept != dtypes.int32):
        raise DTypeError("dequantize", f"x is {tensor.type}. Expected integers that int32 holds.")
    if not dtypes.is_float(dtypes.wide_dtype(to)):
        raise DTypeError("dequantize", f"dtype is {to}. Expected floats.")
    wide = astype(tensor, dtypes.int32)
    if zero_point is not None:
        wide = wide - astype(_point("dequantize", zero_point, tensor, axis), dtypes.int32)
    return astype(wide, to) * astype(_along("dequantize", scale, tensor, axis), to)


def fake_quantize(
    x: ArrayLike,
    scale: ArrayLike,
    zero_point: ArrayLike | None = None,
    dtype: DTypeLike = "int8",
    axis: int | None = None,
) -> Tensor:
    """What is left of ``x`` by ``dequantize(quantize(x))``, with a straight-through gradient.

    The gradient is that of ``x`` itself where it lies in the range, and 0 outside.

    Source: Bengio, Léonard and Courville, "Estimating or Propagating Gradients Through Stochastic Neurons", 2013.

    Args:
        x: floats of any shape.
        scale: positive floats, that broadcast with ``x``; with ``axis`` a vector.  No gradient goes there.
        zero_point: the quantized value of 0, of the same shape; 0 by default.
        dtype: int8, uint8, int4 or uint4.
        axis: the axis of ``x`` along which scales and zero points are given.

    Returns:
        A tensor of the dtype and shape of ``x``.

    Raises:
        DTypeError: for another dtype, or where ``x`` is not floats.
        ArgumentError: where scales are not along ``axis``.

    Example:
        >>> x = hf.asarray([0.26, 9.0])
        >>> hf.quantize.fake_quantize(x, 0.05)
        <Tensor f32[2] cpu> [0.25 6.35]
        >>> hf.grad(lambda x: hf.sum(hf.quantize.fake_quantize(x, 0.05)))(x)
        <Tensor f32[2] cpu> [1. 0.]
    """
    tensor, chosen = _float("fake_quantize", x), quantized_dtype("fake_quantize", dtype)
    wide = astype(tensor, dtypes.compute_dtype(tensor.dtype))
    by = stop_gradient(astype(_along("fake_quantize", scale, tensor, axis), wide.dtype))
    point: Any = 0
    if zero_point is not None:
        point = astype(_point("fake_quantize", zero_point, tensor, axis), wide.dtype)
    low, high = bounds(chosen)
    quantized = clip(rounded(divide(stop_gradient(wide), by)) + point, low, high)
    inside = clip(wide, (low - point) * by, (high - point) * by)  # whose gradient is 1 in the range
    return astype((quantized - point) * by + (inside - stop_gradient(inside)), tensor.dtype)
