"""Logarithms, and the inverse hyperbolic functions and logaddexp made of them.

x = 2**k m with m in [sqrt(1/2), sqrt(2)), then log x = k ln2 + log1p(f) with f = m - 1, exact.  float32 takes log1p(f)
as f - f**2/2 + f**3 p(f); float64 as the series of log((1 + s) / (1 - s)) with s = f / (2 + f), which needs half the
terms (Tang).  The polynomials are minimax (Remez).  Sums are ordered so that only the last addition rounds noticeably.
"""

from __future__ import annotations

import math

import numpy as np

from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ops.elementary_common import (
    FORMATS,
    Emit,
    Pair,
    Value,
    elementary,
    fast_two_sum,
    polynomial,
    through_float64,
    two_product,
    two_sum,
    whole,
)
from hybridflow.compiler.ops.elementary_exp import exp_pair
from hybridflow.quick_dataclasses import dataclass

# (log(1 + f) - f + f**2 / 2) / f**3 on [sqrt(1/2) - 1, sqrt(2) - 1], to 2**-27.3
_LOG_F32 = (
    *(0.33333316445350647, -0.25000810623168945, 0.2000228613615036, -0.16624553501605988),
    *(0.14181189239025116, -0.13128753006458282, 0.1288166642189026, -0.07859637588262558),
)
# (log((1 + s) / (1 - s)) - 2 s) / s**3 in s**2 <= 0.02945, to 2**-65.7
_LOG_F64 = (
    *(0.6666666666666666, 0.4000000000000626, 0.28571428569081925, 0.2222222264741628),
    *(0.1818177561458754, 0.1538709303036818, 0.1325006602561543, 0.13251809593991237),
)


@dataclass(frozen=True)
class _Base:
    """1 / ln(base) and log_base(2), each as hi + lo."""

    inverse: tuple[float, float]
    two: tuple[float, float]


_LN2 = {
    dt.float32: (0.6931471824645996, -1.9046542121259336e-09),
    dt.float64: (0.6931471805599453, 2.3190468138462996e-17),
}
_BASES: dict[tuple[int, np.dtype], _Base] = {
    (2, dt.float32): _Base((1.4426950216293335, 1.925963033500011e-08), (1.0, 0.0)),
    (2, dt.float64): _Base((1.4426950408889634, 2.0355273740931033e-17), (1.0, 0.0)),
    (10, dt.float32): _Base(
        (0.4342944920063019, -1.0103049952192578e-08), (0.3010300099849701, -1.432098883924482e-08)
    ),
    (10, dt.float64): _Base((0.4342944819032518, 1.098319650216765e-17), (0.3010299956639812, -2.8037281277851704e-18)),
}


def _split(e: Emit, x: Value) -> tuple[Value, Value]:
    """(k, m) with x = 2**k m and m in [sqrt(1/2), sqrt(2)), for normal x; k an integer."""
    f = FORMATS[x.dtype]
    bits = e.bitcast(x, f.integer)
    root = int(np.array(math.sqrt(0.5), x.dtype).view(f.integer))
    k = e.ashr(e.sub(bits, root), f.mantissa)
    return k, e.bitcast(e.sub(bits, e.shl(k, f.mantissa)), x.dtype)


def split(e: Emit, x: Value) -> tuple[Value, Value]:
    """(k, m) with x = 2**k m and m in [sqrt(1/2), sqrt(2)), for all positive x; k a float."""
    f = FORMATS[x.dtype]
    subnormal = e.lt(x, f.tiny)
    k, m = _split(e, e.select(subnormal, e.mul(x, 2.0 ** (f.mantissa + 1)), x))
    offset = e.select(subnormal, e.const(-(f.mantissa + 1), f.integer, x.width), 0)
    return whole(e, e.add(k, offset), x.dtype), m


def _tail(e: Emit, f: Value) -> Value:
    """log1p(f) - f."""
    if f.dtype == dt.float32:
        square = e.mul(f, f)
        return e.mul(square, e.fma(f, polynomial(e, f, _LOG_F32, square), -0.5))
    half = e.mul(e.mul(f, f), 0.5)
    s = e.div(f, e.add(f, 2.0))
    z = e.mul(s, s)
    return e.fma(s, e.fma(z, polynomial(e, z, _LOG_F64), half), e.neg(half))


def _unless_small(e: Emit, size: Value, x: Value) -> Value:
    """x, or 0 where ``size`` says that no power of x counts beside x (see ``elementary_common.squared``)."""
    return e.select(e.lt(size, FORMATS[x.dtype].small), 0.0, x)


def _natural(e: Emit, k: Value, f: Value, tail: Value) -> Value:
    """k ln2 + f + tail."""
    hi, lo = _LN2[f.dtype]
    near = e.fma(k, hi, f)
    dropped = e.add(e.fma(k, hi, e.neg(near)), f)
    return e.add(near, e.add(tail, e.fma(k, lo, dropped)))


def _outside(e: Emit, x: Value, result: Value) -> Value:
    """The logarithm's special arguments: 0, negative, infinite, NaN."""
    result = e.select(e.lt(x, math.inf), result, x)
    pole = e.select(e.lt(x, 0.0), e.const(math.nan, x.dtype, x.width), -math.inf)
    return e.select(e.le(x, 0.0), pole, result)


@elementary
def log(e: Emit, x: Value) -> Value:
    """k ln2 + f + (log1p(f) - f)."""
    k, m = split(e, x)
    f = e.sub(m, 1.0)
    return _outside(e, x, _natural(e, k, f, _tail(e, f)))


@elementary
def log1p(e: Emit, x: Value) -> Value:
    """log of 1 + x as a double word: what the addition drops joins f."""
    return _log1p_pair(e, x, None, x)


def _log1p_pair(e: Emit, x: Value, lo: Value | None, sign: Value) -> Value:
    """log1p(x + lo); the result takes its sign from ``sign``."""
    fmt = FORMATS[x.dtype]
    u, dropped = two_sum(e, e.const(1.0, x.dtype, x.width), x)
    if lo is not None:
        dropped = e.add(dropped, lo)
    k, m = _split(e, u)
    # 2**-k, or 0 where that is no normal number and what was dropped is nothing beside u.
    scale = e.bitcast(e.shl(e.sub(fmt.bias, e.minimum(k, fmt.bias)), fmt.mantissa), x.dtype)
    f = e.fma(dropped, scale, e.sub(m, 1.0))
    result = _natural(e, whole(e, k, x.dtype), f, _tail(e, _unless_small(e, e.abs(f), f)))
    return e.copysign(_outside(e, u, result), sign)


def _other_base(e: Emit, x: Value, base: int) -> Value:
    """(log1p(f) as a double word) / ln(base) + k log_base(2): exact for powers of two in base 2."""
    b = _BASES[base, x.dtype]
    k, m = split(e, x)
    f = e.sub(m, 1.0)
    natural = fast_two_sum(e, f, _tail(e, f))
    part = two_product(e, natural.hi, b.inverse[0])
    part_lo = e.fma(natural.hi, b.inverse[1], e.fma(natural.lo, b.inverse[0], part.lo))
    powers = two_product(e, k, b.two[0])
    near = fast_two_sum(e, powers.hi, part.hi)
    low = e.add(near.lo, e.add(part_lo, e.fma(k, b.two[1], powers.lo)))
    return _outside(e, x, e.add(near.hi, low))


@elementary
def log2(e: Emit, x: Value) -> Value:
    """As log, the parts scaled by 1 / ln2 in double words."""
    return _other_base(e, x, 2)


@elementary
def log10(e: Emit, x: Value) -> Value:
    """As log, the parts scaled by 1 / ln10 in double words."""
    return _other_base(e, x, 10)


@elementary
@through_float64
def asinh(e: Emit, x: Value) -> Value:
    """log1p(a + a**2 / (1 + sqrt(1 + a**2))) for a = |x|; log(2a) where a**2 drowns the 1."""
    a = e.abs(x)
    huge = e.gt(a, 2.0**28)
    inside = e.select(huge, 1.0, a)
    base = _unless_small(e, inside, inside)
    square = two_product(e, base, base)
    root = e.sqrt(e.add(square.hi, 1.0))
    small = two_sum(e, inside, e.div(square.hi, e.add(root, 1.0)))
    result = _log1p_pair(e, *small, x)
    return e.select(huge, e.copysign(e.add(log(e, a), math.log(2)), x), result)


@elementary
@through_float64
def acosh(e: Emit, x: Value) -> Value:
    """log1p(t + sqrt(2t + t**2)) for t = x - 1; log(2x) where that is the same."""
    huge = e.gt(x, 2.0**28)
    inside = e.select(huge, 2.0, e.select(e.lt(x, 1.0), math.nan, x))
    t = e.sub(inside, 1.0)
    twice = e.add(t, t)
    radicand = e.fma(t, t, twice)
    radicand_lo = e.fma(t, t, e.sub(twice, radicand))
    root = e.sqrt(radicand)
    # The smallest normal number keeps 0 / 0 away and changes no other quotient.
    rest = e.add(e.fma(e.neg(root), root, radicand), radicand_lo)
    root_lo = e.div(rest, e.add(e.add(root, root), FORMATS[x.dtype].tiny))
    hi, lo = two_sum(e, t, root)
    result = _log1p_pair(e, hi, e.add(lo, root_lo), hi)
    return e.select(huge, e.add(log(e, x), math.log(2)), result)


@elementary
@through_float64
def atanh(e: Emit, x: Value) -> Value:
    """log1p(2a / (1 - a)) / 2 for a = |x|."""
    a = e.abs(x)
    rest = fast_two_sum(e, e.const(1.0, x.dtype, x.width), e.neg(_unless_small(e, a, a)))
    quotient = e.div(e.add(a, a), rest.hi)
    remainder = e.fma(e.neg(quotient), rest.lo, e.fma(e.neg(quotient), rest.hi, e.add(a, a)))
    finite = e.lt(e.abs(quotient), math.inf)
    low = e.select(finite, e.div(remainder, rest.hi), 0.0)
    return e.mul(_log1p_pair(e, quotient, low, x), 0.5)


@elementary
@through_float64
def logaddexp(e: Emit, x: Value, y: Value) -> Value:
    """max + log1p(exp(-|x - y|)).

    Where the two parts cancel, near 0, the error is relative to the larger part.
    """
    larger = e.maximum(x, y)
    smaller = e.minimum(x, y)
    difference = two_sum(e, smaller, e.neg(larger))
    # Equal infinities are no distance apart.
    equal = e.eq(x, y)
    difference = Pair(e.select(equal, 0.0, difference.hi), e.select(equal, 0.0, difference.lo))
    return e.add(larger, log1p(e, exp_pair(e, difference)))
