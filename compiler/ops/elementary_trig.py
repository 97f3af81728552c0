"""sin, cos, tan and their inverses, right over the whole range.

x = k pi/2 + r with |r| <= pi/4.  Moderate arguments take Cody and Waite's reduction with a three-part pi/2, whose first
product-sum is exact through fma; the others, one in a great many, Payne and Hanek's idea: of the bits of 2/pi only
those are multiplied that can change the quadrant or the remainder.  r is a double word, so that the result is good next
to every multiple of pi/2 too.  The polynomials are minimax (Remez).
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
    clamp_above,
    clamp_below,
    elementary,
    fast_two_sum,
    polynomial,
    round_shifted,
    squared,
    through_float64,
    two_product,
    two_sum,
)
from hybridflow.quick_dataclasses import dataclass


@dataclass(frozen=True)
class _Constants:
    half_pi: tuple[float, float, float]
    moderate: float  # up to here the three-part reduction is exact enough
    sin: tuple[float, ...]  # (sin(r) - r) / r**3 in r**2, |r| <= pi/4
    cos: tuple[float, ...]  # (cos(r) - 1 + r**2 / 2) / r**4 in r**2, |r| <= pi/4
    asin: tuple[float, ...]  # (asin(s) - s) / s**3 in s**2 <= 1/4
    atan: tuple[float, ...]  # (atan(t) - t) / t**3 in t**2, |t| <= tan(pi/8)
    right: float  # atan rounds to pi/2 here and beyond


_CONSTANTS: dict[np.dtype, _Constants] = {
    dt.float32: _Constants(
        half_pi=(1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15),
        moderate=2.0**15,
        sin=(-0.16666655242443085, 0.008332177996635437, -0.00019517220789566636),  # 2**-28.1
        cos=(0.04166664555668831, -0.0013887366512790322, 2.4438364562229253e-05),  # 2**-33.3
        asin=(
            *(0.16666659712791443, 0.07500512152910233, 0.044515471905469894, 0.03181980550289154),
            *(0.014393841847777367, 0.03757811710238457),
        ),  # 2**-31.7
        atan=(
            *(-0.33333316445350647, 0.1999848484992981, -0.14243768155574799),
            *(0.10595367103815079, -0.060817599296569824),
        ),  # 2**-30.5
        right=2.0**30,
    ),
    dt.float64: _Constants(
        half_pi=(1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33),
        moderate=2.0**30,
        sin=(
            *(-0.16666666666666666, 0.008333333333333323, -0.00019841269841255118, 2.755731921421768e-06),
            *(-2.5052104918832792e-08, 1.605836756824328e-10, -7.578745347272807e-13),
        ),  # 2**-68.8
        cos=(
            *(0.0416666666666666, -0.0013888888888874123, 2.4801587289480748e-05),
            *(-2.755731435187022e-07, 2.0875723204804634e-09, -1.1359644006899062e-11),
        ),  # 2**-64.2
        asin=(
            *(0.16666666666666763, 0.074999999999701, 0.04464285717528546, 0.030381942675304918),
            *(0.022372215905197466, 0.017351595513795285, 0.013981018352741828, 0.011397294706114816),
            *(0.010789311042660073, 0.003672225826541671, 0.02179054304099205, -0.021116566428032613),
            0.03270206369504083,
        ),  # 2**-59.8
        atan=(
            *(-0.33333333333333326, 0.19999999999997678, -0.1428571428538895, 0.11111111088235538),
            *(-0.09090908146583608, 0.07692282804632873, -0.06666227430271796, 0.058770283377484425),
            *(-0.05218446206481124, 0.045037184435212055, -0.03347837000679946, 0.015199106968670969),
        ),  # 2**-64.2
        right=2.0**60,
    ),
}

_TWO_OVER_PI_BITS = 1280
_TWO_OVER_PI = int(
    "a2f9836e4e441529fc2757d1f534ddc0db6295993c439041fe5163abdebbc561b7246e3a424dd2e0"
    "06492eea09d1921cfe1deb1cb129a73ee88235f52ebb4484e99c7026b45f7e413991d639835339f4"
    "9c845f8bbdf9283b1ff897ffde05980fef2f118b5a0a6d1f6d367ecf27cb09b74f463f669e5fea2d"
    "7527bac7ebe5f17b3d0739f78a5292ea6bfb5fb11f8d5d0856033046fc7b6babf0cfbc209af4361d",
    16,
)  # floor(2/pi * 2**1280)
_GROUPS = 32


def _two_over_pi() -> np.ndarray:
    """Row g holds 2**(32 (g - 1)) * 2/pi modulo 4 as four 53-bit pieces, 2**2 down to 2**-210."""
    rows = []
    for group in range(-1, _GROUPS - 1):
        shift = 32 * group
        value = _TWO_OVER_PI << shift if shift >= 0 else _TWO_OVER_PI >> -shift
        for piece in range(1, 5):
            window = (value >> (_TWO_OVER_PI_BITS + 2 - 53 * piece)) & ((1 << 53) - 1)
            rows.append(math.ldexp(window, 2 - 53 * piece))
    return np.array(rows, np.float64)


def _reduce_far(e: Emit, a: Value) -> tuple[Value, Value, Value]:
    """Payne and Hanek's reduction of float64 a >= 2**30, in floats: (r hi, r lo, shifted k).

    a = X 2**(32 g) with X an integer, so that X times 2**(32 g) 2/pi may be taken modulo 4 piece by piece.  The
    products are exact (fma), and so is taking them modulo 4.
    """
    f = FORMATS[dt.float64]
    a = clamp_below(e, a, _CONSTANTS[dt.float64].moderate)  # other lanes, of which nothing is used
    exponent = e.sub(e.lshr(e.bitcast(a, dt.uint64), f.mantissa), f.bias + 20)
    row = e.maximum(e.ashr(e.bitcast(exponent, dt.int64), 5), 0)
    down = e.bitcast(e.shl(e.sub(f.bias + 32, e.shl(row, 5)), f.mantissa), dt.float64)
    scaled = e.mul(a, down)
    table = e.table(_two_over_pi(), "two_over_pi")
    first = e.shl(row, 2)
    products = [
        two_product(e, scaled, e.gather(table, dt.float64, e.add(first, piece) if piece else first))
        for piece in range(4)
    ]

    def modulo4(x: Value) -> Value:
        return e.fma(e.rint(e.mul(x, 0.25)), -4.0, x)

    half_turns, rest1 = two_sum(e, modulo4(products[0].hi), modulo4(products[0].lo))
    half_turns, rest2 = two_sum(e, half_turns, modulo4(products[1].hi))
    shifted = e.add(half_turns, f.magic)
    hi = e.sub(half_turns, e.sub(shifted, f.magic))
    rest, lo = two_sum(e, rest1, rest2)
    for part in (rest, products[1].lo, products[2].hi):
        hi, dropped = two_sum(e, hi, part)
        lo = e.add(lo, dropped)
    lo = e.add(lo, e.add(products[2].lo, products[3].hi))
    hi, lo = fast_two_sum(e, hi, lo)
    c = _CONSTANTS[dt.float64].half_pi
    r = two_product(e, hi, e.const(c[0], dt.float64, a.width))
    return r.hi, e.fma(hi, c[1], e.fma(lo, c[0], r.lo)), shifted


def _reduce_any_far(e: Emit, a: Value) -> tuple[Value, Value, Value]:
    """The same for both dtypes; float32 goes by way of float64, where most of its far numbers are not far."""
    if a.dtype == dt.float64:
        return _reduce_far(e, a)
    wide, quadrant = _reduced(e, e.convert(a, dt.float64))
    top = e.convert(wide.hi, a.dtype)
    rest = e.convert(e.add(e.sub(wide.hi, e.convert(top, dt.float64)), wide.lo), a.dtype)
    return top, rest, e.bitcast(e.convert(quadrant, FORMATS[a.dtype].integer), a.dtype)


def _reduced(e: Emit, a: Value) -> tuple[Pair, Value]:
    """(r, q): a = q pi/2 + r modulo 2 pi, for a >= 0; the low two bits of the integer q count."""
    c = _CONSTANTS[a.dtype]
    f = FORMATS[a.dtype]
    shifted, k = round_shifted(e, a, 2 / math.pi)
    near = e.fma(k, -c.half_pi[0], a)
    product = two_product(e, k, e.const(-c.half_pi[1], a.dtype, a.width))
    hi, lo = two_sum(e, near, product.hi)
    lo = e.add(lo, e.fma(k, -c.half_pi[2], product.lo))

    hi, lo, shifted = e.rarely(e.ge(a, c.moderate), [hi, lo, shifted], "reduce_far", _reduce_any_far, a)
    return Pair(hi, lo), e.bitcast(shifted, f.integer)


def _square(e: Emit, a: Value, r: Pair) -> Value:
    """r**2, or 0 where that does not count.  No remainder is small but that of a small argument."""
    return squared(e, a, r.hi)


def _sin_kernel(e: Emit, r: Pair, square: Value) -> Pair:
    """sin(r) as a double word not normalised."""
    c = _CONSTANTS[square.dtype]
    return Pair(r.hi, e.fma(e.mul(square, r.hi), polynomial(e, square, c.sin), r.lo))


def _cos_kernel(e: Emit, r: Pair, square: Value) -> Pair:
    """cos(r) as a double word; 1 - r**2 / 2 keeps what its subtraction drops."""
    c = _CONSTANTS[square.dtype]
    hi = e.fma(square, -0.5, 1.0)
    dropped = e.fma(square, -0.5, e.sub(1.0, hi))
    quartic = e.fma(e.mul(square, square), polynomial(e, square, c.cos), dropped)
    return Pair(hi, e.fma(e.neg(r.hi), r.lo, quartic))


def _wave(e: Emit, x: Value, ahead: int) -> Value:
    """sin(|x| + ahead pi/2)."""
    f = FORMATS[x.dtype]
    a = e.abs(x)
    r, quadrant = _reduced(e, a)
    if ahead:
        quadrant = e.add(quadrant, ahead)
    square = _square(e, a, r)
    sine, cosine = _sin_kernel(e, r, square), _cos_kernel(e, r, square)
    crossed = e.ne(e.and_(quadrant, 1), 0)
    value = e.select(crossed, e.add(cosine.hi, cosine.lo), e.add(sine.hi, sine.lo))
    sign = e.shl(e.and_(quadrant, 2), f.mantissa + _exponent_bits(x.dtype) - 1)
    return e.bitcast(e.xor(e.bitcast(value, f.integer), sign), x.dtype)


def _exponent_bits(dtype: np.dtype) -> int:
    return 8 * dtype.itemsize - 1 - FORMATS[dtype].mantissa


@elementary
def sin(e: Emit, x: Value) -> Value:
    """sin |x| with the sign of x."""
    f = FORMATS[x.dtype]
    sign = e.and_(e.bitcast(x, f.integer), np.iinfo(f.integer).min)
    return e.bitcast(e.xor(e.bitcast(_wave(e, x, 0), f.integer), sign), x.dtype)


@elementary
def cos(e: Emit, x: Value) -> Value:
    """sin(|x| + pi/2)."""
    return _wave(e, x, 1)


@elementary
def tan(e: Emit, x: Value) -> Value:
    """sin / cos or -cos / sin as double words, the quotient corrected by its remainder."""
    f = FORMATS[x.dtype]
    a = e.abs(x)
    r, quadrant = _reduced(e, a)
    square = _square(e, a, r)
    sine = fast_two_sum(e, *_sin_kernel(e, r, square))
    cosine = fast_two_sum(e, *_cos_kernel(e, r, square))
    crossed = e.ne(e.and_(quadrant, 1), 0)
    top, top_lo = (e.select(crossed, c, s) for c, s in zip(cosine, sine))
    bottom, bottom_lo = (e.select(crossed, s, c) for c, s in zip(cosine, sine))
    quotient = e.div(top, bottom)
    remainder = e.fma(e.neg(quotient), bottom_lo, e.add(e.fma(e.neg(quotient), bottom, top), top_lo))
    value = e.add(quotient, e.div(remainder, bottom))
    flip = e.xor(e.shl(quadrant, 8 * x.dtype.itemsize - 1), e.bitcast(x, f.integer))
    sign = e.and_(flip, np.iinfo(f.integer).min)
    return e.bitcast(e.xor(e.bitcast(value, f.integer), sign), x.dtype)


def _arc(e: Emit, x: Value) -> tuple[Value, Pair, Value]:
    """(large, s, p) with asin |x| = s + p, or pi/2 - 2 (s + p) where |x| is large (above 1/2)."""
    c = _CONSTANTS[x.dtype]
    a = e.abs(x)
    large = e.gt(a, 0.5)
    square = e.select(large, e.fma(a, -0.5, 0.5), squared(e, a, a))
    root = e.sqrt(square)
    # The smallest normal number keeps 0 / 0 away and changes no other quotient.
    root_lo = e.div(e.fma(e.neg(root), root, square), e.add(e.add(root, root), FORMATS[x.dtype].tiny))
    s = Pair(e.select(large, root, a), e.select(large, root_lo, 0.0))
    return large, s, e.fma(e.mul(s.hi, square), polynomial(e, square, c.asin), s.lo)


@elementary
def asin(e: Emit, x: Value) -> Value:
    """An odd polynomial up to 1/2; beyond, pi/2 - 2 asin(sqrt((1 - |x|) / 2)) with a double-word root."""
    hi, lo, _ = _CONSTANTS[x.dtype].half_pi
    large, s, p = _arc(e, x)
    near = fast_two_sum(e, e.const(hi, x.dtype, x.width), e.mul(s.hi, -2.0))
    beyond = e.add(near.hi, e.add(near.lo, e.fma(p, -2.0, lo)))
    return e.copysign(e.select(large, beyond, e.add(s.hi, p)), x)


@elementary
def acos(e: Emit, x: Value) -> Value:
    """2 asin(sqrt((1 - x) / 2)) near 1, pi minus that near -1, pi/2 - asin(x) between."""
    hi, lo, _ = _CONSTANTS[x.dtype].half_pi
    large, s, p = _arc(e, x)
    negative = e.lt(x, 0.0)
    # base + factor (s + p), where base is 0, pi or pi/2
    factor = e.select(large, e.select(negative, e.const(-2.0, x.dtype, x.width), 2.0), e.copysign(1.0, e.neg(x)))
    multiple = e.select(large, e.select(negative, e.const(2.0, x.dtype, x.width), 0.0), 1.0)
    near = fast_two_sum(e, e.mul(multiple, hi), e.mul(factor, s.hi))
    return e.add(near.hi, e.add(near.lo, e.fma(factor, p, e.mul(multiple, lo))))


def _arctangent(e: Emit, y: Value, x: Value, behind: Value | None = None) -> Value:
    """atan(y / x) for y, x >= 0, not both 0; pi minus that where ``behind`` holds.

    The quotient n / d of the smaller by the larger, or (smaller - larger) / (smaller + larger) where it is above
    tan(pi/8), is a double word.
    """
    c = _CONSTANTS[x.dtype]
    steep = e.gt(y, x)
    larger, smaller = e.select(steep, y, x), e.select(steep, x, y)
    middle = e.gt(smaller, e.mul(larger, math.tan(math.pi / 8)))
    difference = fast_two_sum(e, e.neg(larger), smaller)
    total = fast_two_sum(e, larger, smaller)
    n, n_lo = e.select(middle, difference.hi, smaller), e.select(middle, difference.lo, 0.0)
    d, d_lo = e.select(middle, total.hi, larger), e.select(middle, total.lo, 0.0)
    t = e.div(n, d)
    remainder = e.add(e.fma(e.neg(t), d, n), e.fma(e.neg(t), d_lo, n_lo))
    square = squared(e, e.abs(t), t)
    p = e.fma(e.mul(square, t), polynomial(e, square, c.atan), e.div(remainder, d))
    # The angle is quarters * pi/4 + factor * (t + p).
    factor = e.select(steep, e.const(-1.0, x.dtype, x.width), 1.0)
    quarters = e.select(middle, e.const(1.0, x.dtype, x.width), 0.0)
    quarters = e.select(steep, e.sub(2.0, quarters), quarters)
    if behind is not None:
        factor = e.select(behind, e.neg(factor), factor)
        quarters = e.select(behind, e.sub(4.0, quarters), quarters)
    hi, lo, _ = c.half_pi
    base = two_product(e, quarters, e.const(hi / 2, x.dtype, x.width))
    near = fast_two_sum(e, base.hi, e.mul(factor, t))
    return e.add(near.hi, e.add(near.lo, e.fma(factor, p, e.fma(quarters, lo / 2, base.lo))))


@elementary
def atan(e: Emit, x: Value) -> Value:
    """The angle of (1, |x|), with the sign of x."""
    a = clamp_above(e, e.abs(x), _CONSTANTS[x.dtype].right)
    return e.copysign(_arctangent(e, a, e.const(1.0, x.dtype, x.width)), x)


@elementary
@through_float64
def atan2(e: Emit, y: Value, x: Value) -> Value:
    """The angle of (x, y) in (-pi, pi], signs of zero and infinities as in C99."""
    a, b = e.abs(y), e.abs(x)
    # Infinities are as good as 1 beside 0; two zeros as good as 0 beside 1; a power of two keeps the rest in range.
    endless = e.or_(e.eq(a, math.inf), e.eq(b, math.inf))
    one, zero = e.const(1.0, x.dtype, x.width), e.const(0.0, x.dtype, x.width)
    larger = e.select(e.gt(a, b), a, b)
    scale = e.select(e.gt(larger, 2.0**1000), e.const(2.0**-30, x.dtype, x.width), 1.0)
    scale = e.select(e.lt(larger, 2.0**-900), e.const(2.0**100, x.dtype, x.width), scale)
    height = e.select(endless, e.select(e.eq(a, math.inf), one, zero), e.mul(a, scale))
    width = e.select(endless, e.select(e.eq(b, math.inf), one, zero), e.mul(b, scale))
    width = e.select(e.eq(larger, 0.0), 1.0, width)
    behind = e.lt(e.copysign(1.0, x), 0.0)
    angle = e.copysign(_arctangent(e, height, width, behind), y)
    return e.select(e.is_nan(x), x, e.select(e.is_nan(y), y, angle))
