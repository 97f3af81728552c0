"""Gradients kept within bounds: by the norm of each, or of all together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hybridflow.array.elementwise import (
    divide,
    equal,
    greater,
    isfinite,
    less,
    logical_or,
    multiply,
    sqrt,
    square,
    where,
)
from hybridflow.array.reductions import sum
from hybridflow.compiler.ir import dtypes
from hybridflow.core.tensor import Tensor
from hybridflow.core.variable import Variable
from hybridflow.eager.operands import cast, float_operand
from hybridflow.effects.runtime_raise import check_all
from hybridflow.errors import ArgumentError

if TYPE_CHECKING:
    from hybridflow.core.type_aliases import ArrayLike


def global_norm(tensors: Sequence[Any]) -> Tensor:
    """Global norm: the Euclidean norm of all elements of all tensors together.

    Args:
        tensors: tensors, or what becomes some, ints as float32; None among them counts as nothing.

    Returns:
        A tensor ``[]``, of float64 if one of them is, else float32; 0 for no tensors.

    >>> hf.optimizers.global_norm([hf.asarray([3.0, 0.0]), None, hf.asarray([[4.0]])])
    <Tensor f32[] cpu> 5.0
    """
    return sqrt(_sum_of_squares([float_operand(t, "global_norm") for t in tensors if t is not None]))


def clip_by_norm(tensor: object, clip_norm: object, axis: int | tuple[int, ...] | None = None) -> Tensor:
    """Gradient clipping by norm: scale a tensor down so that its Euclidean norm is at most ``clip_norm``.

    Tensors within the bound, which may be infinite, keep their bits, those of shape ``()`` and without elements too.

    Args:
        tensor: a tensor or array-like value, ints as float32.
        clip_norm: the largest norm. It may be a tensor, which the gradient flows through; it broadcasts.
        axis: an axis, a tuple of axes, or None for all elements together.

    Returns:
        A tensor of the same shape and dtype.

    Raises:
        ArgumentError: unless ``clip_norm`` is positive.

    >>> hf.optimizers.clip_by_norm([3.0, 4.0], 1.0)
    <Tensor f32[2] cpu> [0.6 0.8]
    """
    bound = _bound(clip_norm, "clip_by_norm")
    x = float_operand(tensor, "clip_by_norm")
    wide = _widened(x)
    norm = sqrt(sum(square(wide), axis=axis, keepdims=axis is not None))
    return cast(multiply(wide, _factor(bound, norm)), x.dtype)


def clip_by_global_norm(
    tensors: Sequence[Any], clip_norm: object, use_norm: object = None
) -> tuple[list[Tensor | None], Tensor]:
    """Gradient clipping by global norm: all tensors are scaled by one factor.

    Where the norm is infinite or NaN, and the bound is not infinite, all of them become NaN, as in TensorFlow: there is
    no direction to keep. Source: Pascanu, Mikolov and Bengio, "On the difficulty of training recurrent neural
    networks", 2013.

    Args:
        tensors: tensors, or what becomes some, ints as float32; None among them stays None.
        clip_norm: the largest norm.
        use_norm: the global norm, if it is known.

    Returns:
        The list of the scaled tensors, of the same shapes and dtypes, and their norm before, a tensor ``[]``.

    Raises:
        ArgumentError: unless ``clip_norm`` is positive.

    >>> clipped, norm = hf.optimizers.clip_by_global_norm([hf.asarray([3.0]), hf.asarray([4.0])], 1.0)
    >>> clipped, norm
    ([<Tensor f32[1] cpu> [0.6], <Tensor f32[1] cpu> [0.8]], <Tensor f32[] cpu> 5.0)
    """
    bound = _bound(clip_norm, "clip_by_global_norm")
    operands = [None if t is None else float_operand(t, "clip_by_global_norm") for t in tensors]
    norm = global_norm(operands) if use_norm is None else float_operand(use_norm, "clip_by_global_norm")
    known = logical_or(isfinite(norm), equal(bound, math.inf))
    scale = where(known, _factor(bound, norm), math.nan)
    return [None if t is None else _scaled(t, scale) for t in operands], norm


def _scaled(tensor: Tensor, scale: Tensor) -> Tensor:
    wide = _widened(tensor)
    return cast(multiply(wide, cast(scale, wide.dtype)), tensor.dtype)


def _factor(bound: ArrayLike, norm: Tensor) -> Tensor:
    """What brings a norm down to a bound.  One as large as the bound follows it, but for an infinite one."""
    bound = cast(bound, norm.dtype) if isinstance(bound, Tensor) else bound
    return where(logical_or(less(norm, bound), equal(bound, math.inf)), 1.0, divide(bound, norm))


def _bound(value: Any, stage: str) -> float | Tensor:
    """The bound as a number, or as the tensor that it is."""
    if isinstance(value, (Tensor, Variable)):
        bound = float_operand(value, stage)
        text = f"[{stage}] clip_norm is not positive."
        check_all(greater(bound, 0.0), ArgumentError, _refusal, [stage, bound], text)
        return bound
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = 0.0
    if not number > 0:
        raise _refusal(stage, value)
    return number


def _refusal(stage: str, value: object) -> ArgumentError:
    shown = value.tolist() if isinstance(value, Tensor) else value
    return ArgumentError(stage, f"clip_norm is {shown!r}; it must be a positive number.")


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
