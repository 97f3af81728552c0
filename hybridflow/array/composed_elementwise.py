"""Elementwise functions that are made of those of ``elementwise``, with NumPy's names and special cases."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from hybridflow.array.elementwise import (
    abs,
    bitwise_and,
    bitwise_right_shift,
    clip,
    copysign,
    equal,
    floor_divide,
    greater,
    isinf,
    isnan,
    less,
    logical_and,
    maximum,
    minimum,
    multiply,
    negative,
    not_equal,
    pow,
    remainder,
    signbit,
    stop_gradient,
    subtract,
    trunc,
    where,
)
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ops import TABLE, type_rules
from hybridflow.core.promotion import default_float
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import ArrayLike
from hybridflow.eager.dispatch import apply
from hybridflow.eager.operands import as_tensor, broadcast_all, cast, common_dtype, float_operand
from hybridflow.eager.public_op import operation
from hybridflow.errors import DTypeError

# ---- quotients and powers


@operation
def divmod(x1: ArrayLike, x2: ArrayLike, /) -> tuple[Tensor, Tensor]:
    """Quotient and remainder: ``floor_divide`` and ``remainder`` of the same operands.

    Args:
        x1: the first operand: a tensor, array, nested list or number.
        x2: the second operand; the shapes broadcast, the dtypes are promoted.

    Returns:
        Two tensors of the common shape and dtype of the operands.

    Raises:
        ShapeError: if the shapes do not broadcast.
        DTypeError: where an operand is bool.
        DivisionError: for an integer divided by zero.

    >>> hf.divmod([7, -7], 2)
    (<Tensor i64[2] cpu> [ 3 -4], <Tensor i64[2] cpu> [1 1])
    """
    return floor_divide(x1, x2), remainder(x1, x2)


@operation
def fmod(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """Remainder of the truncated quotient, as C has it: with the sign of ``x1``, exact in floats.

    Args:
        x1: the first operand: a tensor, array, nested list or number.
        x2: the second operand; the shapes broadcast, the dtypes are promoted.

    Returns:
        A tensor of the common shape and dtype of the operands.

    Raises:
        ShapeError: if the shapes do not broadcast.
        DTypeError: where an operand is bool.
        DivisionError: for an integer divided by zero.

    >>> hf.fmod([7, -7], 3)
    <Tensor i64[2] cpu> [ 1 -1]
    """
    x1, x2 = broadcast_all("fmod", common_dtype("fmod", (x1, x2)))
    if dtypes.is_float(x1.dtype):
        below = signbit(x1)
        rest = remainder(where(below, negative(x1), x1), abs(x2))
        return where(below, negative(rest), rest)
    rest = remainder(x1, x2)
    if dtypes.is_unsigned(x1.dtype):
        return rest
    crossed = logical_and(not_equal(rest, 0), not_equal(less(x1, 0), less(x2, 0)))
    return where(crossed, subtract(rest, x2), rest)


@operation
def float_power(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """Power in float64, whatever the operands are; in complex128 where one of them is complex.

    Args:
        x1: the base.
        x2: the exponent; the shapes broadcast.

    Returns:
        A float64 or complex128 tensor of the common shape of the operands.

    Raises:
        ShapeError: if the shapes do not broadcast.

    >>> hf.float_power([2, 3], -1)
    <Tensor f64[2] cpu> [0.5        0.33333333]
    """
    operands = [as_tensor(x, "float_power") for x in (x1, x2)]
    is_complex = dtypes.is_complex(operands[0].dtype) or dtypes.is_complex(operands[1].dtype)
    return pow(*(cast(x, dtypes.complex128 if is_complex else dtypes.float64) for x in operands))


@operation
def gcd(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """Greatest common divisor of the absolute values of integers.

    Args:
        x1: integers, or what becomes a tensor of them.
        x2: others; the shapes broadcast, the dtypes are promoted.

    Returns:
        A tensor of the common shape and dtype of the operands.

    Raises:
        DTypeError: for floats and bools.
        ShapeError: if the shapes do not broadcast.

    >>> hf.gcd([12, -18, 0], 8)
    <Tensor i64[3] cpu> [4 2 8]
    """
    return apply(TABLE["gcd"], *broadcast_all("gcd", common_dtype("gcd", (x1, x2))))


@operation
def lcm(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """Least common multiple of the absolute values of integers; 0 where one is 0.

    Args:
        x1: integers, or what becomes a tensor of them.
        x2: others; the shapes broadcast, the dtypes are promoted.

    Returns:
        A tensor of the common shape and dtype of the operands.

    Raises:
        DTypeError: for floats and bools.
        ShapeError: if the shapes do not broadcast.

    >>> hf.lcm([12, -18, 0], 8)
    <Tensor i64[3] cpu> [24 72  0]
    """
    x1, x2 = broadcast_all("lcm", common_dtype("lcm", (x1, x2)))
    divisor = apply(TABLE["gcd"], x1, x2)
    return multiply(floor_divide(abs(x1), where(equal(divisor, 0), 1, divisor)), abs(x2))


# ---- angles


@operation
def deg2rad(x: ArrayLike, /) -> Tensor:
    """Degrees in radians; integers and bools become float32.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A float tensor of the shape of ``x``.

    >>> hf.deg2rad([180.0, 90.0])
    <Tensor f32[2] cpu> [3.1415927 1.5707964]
    """
    return _scaled("deg2rad", x, math.pi / 180)


@operation
def rad2deg(x: ArrayLike, /) -> Tensor:
    """Radians in degrees; integers and bools become float32.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A float tensor of the shape of ``x``.

    >>> hf.rad2deg([hf.pi, 1.0])
    <Tensor f32[2] cpu> [180.       57.29578]
    """
    return _scaled("rad2deg", x, 180 / math.pi)


def _scaled(stage: str, x: ArrayLike, factor: float) -> Tensor:
    x = float_operand(x, stage)
    type_rules.check_dtype(stage, x.type, frozenset(dtypes.FLOATS))
    return multiply(x, factor)


# ---- smaller and larger, signs and parts


def _either(stage: str, join: Callable[..., Tensor], x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """As ``join``, where NaN counts as missing."""
    x1, x2 = broadcast_all(stage, common_dtype(stage, (x1, x2)))
    if not dtypes.is_float(x1.dtype):
        return join(x1, x2)
    return where(isnan(x1), x2, where(isnan(x2), x1, join(x1, x2)))


@operation
def fmax(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """Larger of two elements, and the other one where one is NaN.

    Args:
        x1: the first operand: a tensor, array, nested list or number.
        x2: the second operand; the shapes broadcast, the dtypes are promoted.

    Returns:
        A tensor of the common shape and dtype of the operands.

    Raises:
        ShapeError: if the shapes do not broadcast.

    >>> hf.fmax([1.0, hf.nan], [2.0, 3.0])
    <Tensor f32[2] cpu> [2. 3.]
    """
    return _either("fmax", maximum, x1, x2)


@operation
def fmin(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """Smaller of two elements, and the other one where one is NaN.

    Args:
        x1: the first operand: a tensor, array, nested list or number.
        x2: the second operand; the shapes broadcast, the dtypes are promoted.

    Returns:
        A tensor of the common shape and dtype of the operands.

    Raises:
        ShapeError: if the shapes do not broadcast.

    >>> hf.fmin([1.0, hf.nan], [2.0, 3.0])
    <Tensor f32[2] cpu> [1. 3.]
    """
    return _either("fmin", minimum, x1, x2)


@operation
def heaviside(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """Heaviside step function: 0 below zero, 1 above it, ``x2`` at zero; NaN stays.

    Args:
        x1: where the step is looked at.
        x2: the value at zero; the shapes broadcast.

    Returns:
        A float tensor of the common shape; float32 where both are integers or bools.

    Raises:
        ShapeError: if the shapes do not broadcast.

    >>> hf.heaviside([-1.5, 0.0, 2.0], 0.5)
    <Tensor f32[3] cpu> [0.  0.5 1. ]
    """
    x1, x2 = broadcast_all("heaviside", common_dtype("heaviside", (x1, x2)))
    type_rules.check_dtype("heaviside", x1.type, frozenset(dtypes.REAL))
    if not dtypes.is_float(x1.dtype):
        x1, x2 = cast(x1, default_float), cast(x2, default_float)
    step = where(equal(x1, 0), x2, cast(greater(x1, 0), x1.dtype))
    return where(isnan(x1), math.nan, step)


@operation
def isposinf(x: ArrayLike, /) -> Tensor:
    """Where ``x`` is positive infinity, as bool.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A bool tensor of the shape of ``x``.

    >>> hf.isposinf([1.0, hf.inf, -hf.inf])
    <Tensor bool[3] cpu> [False  True False]
    """
    return logical_and(isinf(x), greater(x, 0))


@operation
def isneginf(x: ArrayLike, /) -> Tensor:
    """Where ``x`` is negative infinity, as bool.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A bool tensor of the shape of ``x``.

    >>> hf.isneginf([1.0, hf.inf, -hf.inf])
    <Tensor bool[3] cpu> [False False  True]
    """
    return logical_and(isinf(x), less(x, 0))


@operation
def modf(x: ArrayLike, /) -> tuple[Tensor, Tensor]:
    """Fraction and whole part, both with the sign of ``x``; integers and bools become float32.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        Two float tensors of the shape of ``x``: the fraction, and the whole part.

    >>> hf.modf([2.5, -0.25, hf.inf])
    (<Tensor f32[3] cpu> [ 0.5  -0.25  0.  ], <Tensor f32[3] cpu> [ 2. -0. inf])
    """
    x = float_operand(x, "modf")
    whole = trunc(x)
    return copysign(where(isinf(x), 0.0, subtract(x, whole)), x), whole


@operation
def ldexp(x: ArrayLike, n: ArrayLike, /) -> Tensor:
    """Multiplication by a power of two: ``x * 2 ** n``, rounded once.

    Args:
        x: floats; integers and bools become float32.
        n: integers; the shapes broadcast.

    Returns:
        A tensor of the common shape in the dtype of ``x``.

    Raises:
        DTypeError: for exponents that are not integers.
        ShapeError: if the shapes do not broadcast.

    >>> hf.ldexp([0.75, -1.0], [2, 10])
    <Tensor f32[2] cpu> [    3. -1024.]
    """
    x, n = float_operand(x, "ldexp"), as_tensor(n, "ldexp")
    if not dtypes.is_integer(n.dtype):
        raise DTypeError("ldexp", f"the exponents are {n.type}. Expected integers.")
    wide = dtypes.compute_dtype(x.dtype)
    if n.dtype.itemsize > 1:
        n = clip(n, 0 if dtypes.is_unsigned(n.dtype) else -5000, 5000)  # beyond, all is infinite or 0
    operands = broadcast_all("ldexp", [cast(x, wide), cast(n, wide)])
    return cast(apply(TABLE["ldexp"], *operands), x.dtype)


@operation
def frexp(x: ArrayLike, /) -> tuple[Tensor, Tensor]:
    """Fraction and exponent: ``x = fraction * 2 ** exponent`` with ``0.5 <= abs(fraction) < 1``.

    Zeros, infinities and NaN are their own fractions, with the exponent 0.

    Args:
        x: floats; integers and bools become float32.

    Returns:
        The fractions in the dtype of ``x``, and the exponents as int32.

    >>> hf.frexp([8.0, -0.375, 0.0])
    (<Tensor f32[3] cpu> [ 0.5  -0.75  0.  ], <Tensor i32[3] cpu> [ 4 -1  0])
    """
    x = float_operand(x, "frexp")
    wide = cast(x, dtypes.compute_dtype(x.dtype))
    n = apply(TABLE["exponent"], stop_gradient(wide))
    return cast(apply(TABLE["ldexp"], wide, negative(n)), x.dtype), cast(n, dtypes.int32)


# ---- bits

_MASKS = (0x5555555555555555, 0x3333333333333333, 0x0F0F0F0F0F0F0F0F, 0x0101010101010101)


@operation
def bitwise_count(x: ArrayLike, /) -> Tensor:
    """Number of bits that are set in the absolute value of an integer.

    Args:
        x: integers, or what becomes a tensor of them.

    Returns:
        A uint8 tensor of the shape of ``x``.

    Raises:
        DTypeError: for floats and bools.

    >>> hf.bitwise_count([0, 7, 255, -1])
    <Tensor u8[4] cpu> [0 3 8 1]
    """
    x = as_tensor(x, "bitwise_count")
    if not dtypes.is_integer(x.dtype):
        raise DTypeError("bitwise_count", f"x is {x.type}. Expected integers.")
    width = 8 * x.dtype.itemsize
    word = np.dtype(f"uint{width}")
    odd, pairs, nibbles, ones = (mask & (1 << width) - 1 for mask in _MASKS)
    n = cast(abs(x), word)
    n = subtract(n, bitwise_and(bitwise_right_shift(n, 1), odd))
    n = bitwise_and(n, pairs) + bitwise_and(bitwise_right_shift(n, 2), pairs)
    n = bitwise_and(n + bitwise_right_shift(n, 4), nibbles)
    n = n if width == 8 else bitwise_right_shift(multiply(n, ones), width - 8)
    return cast(n, dtypes.uint8)
