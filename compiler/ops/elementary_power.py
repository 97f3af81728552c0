"""pow, hypot, cbrt, rsqrt."""

from __future__ import annotations

import math
from typing import NamedTuple

from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ops.elementary_common import (
    Emit,
    Pair,
    Value,
    clamp_above,
    clamp_below,
    elementary,
    fast_two_sum,
    pair_product,
    polynomial,
    power_of_two,
    round_shifted,
    two_product,
)
from hybridflow.compiler.ops.elementary_exp import exp, exp_pair
from hybridflow.compiler.ops.elementary_log import log, split


class Constant(NamedTuple):
    """A double word that is known."""

    hi: float
    lo: float


# ((log((1 + s) / (1 - s)) - 2 s) / s**3 - 2/3) / s**2 in s**2 <= 0.02945, to 2**-73.5 of the logarithm
_LOG = (
    *(0.3999999999999998, 0.28571428571445145, 0.22222222217527546, 0.18181818871422442),
    *(0.1538455679468826, 0.13336320378222802, 0.11674758032797984, 0.11989519756159443),
)
_TWO_THIRDS = Constant(0.6666666666666666, 3.700743415417188e-17)
_LN2 = Constant(0.6931471805599453, 2.3190468138462996e-17)


def _log_pair(e: Emit, x: Value) -> Pair:
    """log x as a double word, to about 2**-66, for positive finite x: Tang's series with double-word first terms."""
    k, m = split(e, x)
    f = e.sub(m, 1.0)
    denominator = e.add(f, 2.0)
    denominator_lo = e.sub(f, e.sub(denominator, 2.0))
    s = e.div(f, denominator)
    remainder = e.fma(e.neg(s), denominator_lo, e.fma(e.neg(s), denominator, f))
    s_pair = Pair(s, e.div(remainder, denominator))
    square = pair_product(e, s_pair, s_pair)
    rest = e.mul(square.hi, polynomial(e, square.hi, _LOG))
    series = fast_two_sum(e, e.const(_TWO_THIRDS.hi, x.dtype, x.width), e.add(rest, _TWO_THIRDS.lo))
    cubic = pair_product(e, pair_product(e, square, s_pair), series)
    twice = Pair(e.add(s, s), e.add(s_pair.lo, s_pair.lo))
    near = fast_two_sum(e, twice.hi, cubic.hi)
    near = Pair(near.hi, e.add(near.lo, e.add(twice.lo, cubic.lo)))
    powers = two_product(e, k, _LN2.hi)
    total = fast_two_sum(e, powers.hi, near.hi)
    low = e.add(total.lo, e.add(near.lo, e.fma(k, _LN2.lo, powers.lo)))
    return fast_two_sum(e, total.hi, low)


def _magnitude(e: Emit, x: Value, y: Value) -> Value:
    """x**y for x >= 0 in float64: exp(y log x), the logarithm and the product in double words."""
    inner = e.select(e.and_(e.gt(x, 0.0), e.lt(x, math.inf)), x, 1.0)
    logarithm = _log_pair(e, inner)
    # Beyond these the power is 0, 1 or infinite; within them nothing overflows on the way.
    factor = clamp_below(e, clamp_above(e, y, 2.0**80), -(2.0**80))
    product = two_product(e, logarithm.hi, factor)
    power = exp_pair(e, Pair(product.hi, e.fma(logarithm.lo, factor, product.lo)))
    # At 0 and infinity (and NaN) the plain formula is exact.
    edge = exp(e, e.mul(y, log(e, x)))
    return e.select(e.and_(e.gt(x, 0.0), e.lt(x, math.inf)), power, edge)


@elementary
def pow(e: Emit, x: Value, y: Value) -> Value:
    """x**y with the special cases of C99, annex F."""
    a = e.abs(x)
    if x.dtype == dt.float32:
        # float64 has the 29 bits to spare that y log x can lose.
        wide = e.mul(e.convert(y, dt.float64), log(e, e.convert(a, dt.float64)))
        magnitude = e.convert(exp(e, wide), dt.float32)
    else:
        magnitude = _magnitude(e, a, y)
    integral = e.eq(e.trunc(y), y)
    half = e.mul(y, 0.5)
    odd = e.and_(integral, e.ne(e.trunc(half), half))
    negative = e.lt(e.copysign(1.0, x), 0.0)
    result = e.select(e.and_(negative, odd), e.neg(magnitude), magnitude)
    nowhere = e.and_(e.and_(e.lt(x, 0.0), e.gt(x, -math.inf)), e.not_(integral))
    result = e.select(nowhere, math.nan, result)
    one = e.or_(e.eq(y, 0.0), e.eq(x, 1.0))
    one = e.or_(one, e.and_(e.eq(x, -1.0), e.eq(e.abs(y), math.inf)))
    return e.select(one, 1.0, result)


@elementary
def hypot(e: Emit, x: Value, y: Value) -> Value:
    """sqrt(x**2 + y**2); infinite if either is, whatever the other."""
    a, b = e.abs(x), e.abs(y)
    if x.dtype == dt.float32:
        # In float64 the squares are exact and in range.
        a64, b64 = e.convert(a, dt.float64), e.convert(b, dt.float64)
        result = e.convert(e.sqrt(e.fma(a64, a64, e.mul(b64, b64))), dt.float32)
    else:
        larger, smaller = e.maximum(a, b), e.minimum(a, b)
        huge, small = e.gt(larger, 2.0**500), e.lt(larger, 2.0**-500)

        def factor(for_huge: float, for_small: float) -> Value:
            return e.select(huge, for_huge, e.select(small, e.const(for_small, x.dtype, x.width), 1.0))

        down = factor(2.0**-600, 2.0**600)
        larger, smaller = e.mul(larger, down), e.mul(smaller, down)
        result = e.mul(e.sqrt(e.fma(larger, larger, e.mul(smaller, smaller))), factor(2.0**600, 2.0**-600))
    return e.select(e.or_(e.eq(a, math.inf), e.eq(b, math.inf)), math.inf, result)


# The cube root on [sqrt(1/2), sqrt(2)], to 2**-19.6
_CUBE_ROOT = (
    *(0.42168970150994184, 1.056015437631645, -0.8360704663395441, 0.5109665376303091),
    *(-0.17955718213942948, 0.026954984903447467),
)
_CUBE_ROOT_OF_2 = 1.2599210498948732


@elementary
def cbrt(e: Emit, x: Value) -> Value:
    """2**q y with y**3 = 2**(k - 3 q) m for x = 2**k m: a polynomial and one step of Halley's, of which the residual
    counts in twice the precision."""
    size = e.abs(x)
    plain = e.and_(e.gt(size, 0.0), e.lt(size, math.inf))
    k, m = split(e, e.select(plain, size, 1.0))
    shifted, q = round_shifted(e, k, 1 / 3)
    left = e.fma(q, -3.0, k)
    y = polynomial(e, m, _CUBE_ROOT)
    up, down = e.gt(left, 0.5), e.lt(left, -0.5)
    y = e.mul(y, e.select(up, _CUBE_ROOT_OF_2, e.select(down, e.const(1 / _CUBE_ROOT_OF_2, x.dtype, x.width), 1.0)))
    m = e.mul(m, e.select(up, 2.0, e.select(down, e.const(0.5, x.dtype, x.width), 1.0)))
    square = two_product(e, y, y)
    residual = e.sub(e.fma(e.neg(square.hi), y, m), e.mul(square.lo, y))
    slope = e.fma(e.mul(square.hi, 2.0), y, m)
    root = e.add(y, e.div(e.mul(residual, y), slope))
    root = e.mul(root, power_of_two(e, shifted))
    return e.copysign(e.select(plain, root, size), x)


@elementary
def rsqrt(e: Emit, x: Value) -> Value:
    """1 / sqrt(x)."""
    return e.div(1.0, e.sqrt(x))
