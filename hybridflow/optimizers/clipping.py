"""Gradients kept within bounds: by the norm of each, or of all together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hybridflow.array.elementwise import divide, isfinite, maximum, multiply, sqrt, square, where
from hybridflow.array.reductions import sum
from hybridflow.compiler.ir import dtypes
from hybridflow.core.tensor import Tensor
from hybridflow.eager.operands import cast, float_operand
from hybridflow.errors import ArgumentError


def global_norm(tensors: Sequence[Any]) -> Tensor:
    """The Euclidean norm of all elements of all tensors together: a scalar, float64 if one of them is, else float32.

    None among them counts as nothing; of no tensors the norm is 0.  Raises DTypeError for one that is no float.

    >>> hf.optimizers.global_norm([hf.asarray([3.0, 0.0]), None, hf.asarray([[4.0]])])
    <Tensor f32[] cpu> 5.0
    """
    return sqrt(_sum_of_squares([float_operand(t, "global_norm") for t in tensors if t is not None]))


def clip_by_norm(tensor: Any, clip_norm: float, axis: int | tuple[int, ...] | None = None) -> Tensor:
    """``tensor`` scaled down so that its Euclidean norm (along ``axis``, if given) is at most ``clip_norm``.

    Tensors within the bound keep their bits, those of shape ``()`` and without elements too.  Raises ArgumentError
    unless the bound is positive, DTypeError for a tensor that is no float.

    >>> hf.optimizers.clip_by_norm([3.0, 4.0], 1.0)
    <Tensor f32[2] cpu> [0.6 0.8]
    """
    bound = _bound(clip_norm, "clip_by_norm")
    x = float_operand(tensor, "clip_by_norm")
    wide = _widened(x)
    norm = sqrt(sum(square(wide), axis=axis, keepdims=axis is not None))
    return cast(multiply(wide, divide(bound, maximum(norm, bound))), x.dtype)


def clip_by_global_norm(
    tensors: Sequence[Any], clip_norm: float, use_norm: Any = None
) -> tuple[list[Tensor | None], Tensor]:
    """All tensors scaled by one factor so that their global norm is at most ``clip_norm``; and that norm before.

    ``use_norm`` is the norm where it is known already.  None among the tensors stays None.  Where the norm is infinite
    or NaN all of them become NaN, as in TensorFlow: there is no direction to keep.  Source: Pascanu, Mikolov and
    Bengio, "On the difficulty of training recurrent neural networks", 2013.  Raises as ``clip_by_norm`` does.

    >>> clipped, norm = hf.optimizers.clip_by_global_norm([hf.asarray([3.0]), hf.asarray([4.0])], 1.0)
    >>> clipped, norm
    ([<Tensor f32[1] cpu> [0.6], <Tensor f32[1] cpu> [0.8]], <Tensor f32[] cpu> 5.0)
    """
    bound = _bound(clip_norm, "clip_by_global_norm")
    found = [None if t is None else float_operand(t, "clip_by_global_norm") for t in tensors]
    norm = global_norm(found) if use_norm is None else float_operand(use_norm, "clip_by_global_norm")
    scale = where(isfinite(norm), divide(bound, maximum(norm, bound)), float("nan"))
    return [None if t is None else _scaled(t, scale) for t in found], norm


def _scaled(tensor: Tensor, scale: Tensor) -> Tensor:
    wide = _widened(tensor)
    return cast(multiply(wide, cast(scale, wide.dtype)), tensor.dtype)


def _bound(value: Any, stage: str) -> float:
    try:
        bound = float(value)
    except (TypeError, ValueError):
        bound = 0.0
    if not bound > 0:
        raise ArgumentError(stage, f"clip_norm is {value!r}; it must be a positive number.")
    return bound


def _widened(tensor: Tensor) -> Tensor:
    """As float32 where it is narrower: squares of float16 overflow at 256."""
    return cast(tensor, dtypes.float32) if dtypes.is_narrow_float(tensor.dtype) else tensor


def _sum_of_squares(tensors: Sequence[Tensor]) -> Tensor:
    dtype = dtypes.float64 if any(t.dtype == dtypes.float64 for t in tensors) else dtypes.float32
    total: Any = None
    for tensor in tensors:
        part = sum(square(cast(tensor, dtype)))
        total = part if total is None else total + part
    return float_operand(0.0, "global_norm") if total is None else total
