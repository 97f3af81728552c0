"""exp and what is made of it: expm1, tanh, sigmoid, sinh, cosh, erf.

All of them reduce x = k ln2 + r with |r| <= ln2 / 2 (Cody and Waite's two-part ln2; the first product-sum is exact
through fma), then exp(r) = 1 + r + r**2 q(r) with q a minimax polynomial (Remez; its errors stand beside the
coefficients).  What differs is how 2**k (1 + r + ...) is put together so that nothing cancels.
"""

from __future__ import annotations

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
    power_of_two,
    round_shifted,
    squared,
)
from hybridflow.quick_dataclasses import dataclass

_LOG2E, _LN2 = 1.4426950408889634, 0.6931471805599453


@dataclass(frozen=True)
class _Constants:
    ln2: tuple[float, float]  # hi + lo
    q: tuple[float, ...]  # (exp(r) - 1 - r) / r**2 on |r| <= ln2 / 2
    overflow: float  # exp overflows here and beyond
    vanish: float  # exp rounds to 0 here and below
    normal: float  # exp(x) is a normal number up to |x|
    one: float  # tanh rounds to 1 here and beyond; expm1(-2 one) to -1
    exponent: int  # k with a 2**k that is nothing beside 1, and times what is nothing beside 1 still a normal number
    sinh: tuple[float, ...]  # (sinh(x) - x) / x**3 in x**2, |x| <= 1
    tanh: tuple[float, ...]  # (tanh(x) - x) / x**3 in x**2, |x| <= 0.55
    erf: tuple[float, ...]  # erf(x) / x - 1 in x**2, |x| <= 1
    log_erfc: tuple[float, ...]  # log(1 - erf(x)) from 1 to where erf rounds to 1
    erf_one: float


_CONSTANTS: dict[np.dtype, _Constants] = {
    dt.float32: _Constants(
        ln2=(0.6931471824645996, -1.9046542121259336e-09),
        q=(0.5, 0.1666654348373413, 0.04166628047823906, 0.008366583846509457, 0.0013946450781077147),  # 2**-26.2
        overflow=89.0,
        vanish=-104.5,
        normal=86.0,
        one=9.02,
        exponent=-80,
        sinh=(0.1666666716337204, 0.008333350531756878, 0.0001983606634894386, 2.8174395083624404e-06),  # 2**-34
        tanh=(-0.33332958817481995, 0.13320942223072052, -0.052684150636196136, 0.016458772122859955),  # 2**-24.8
        erf=(
            *(0.12837916612625122, -0.3761262595653534, 0.11283600330352783, -0.026854444295167923),
            *(0.005189535208046436, -0.0008020841632969677, 7.88912147982046e-05),
        ),  # 2**-29.7
        log_erfc=(
            *(-0.0003537204465828836, -1.1270400285720825, -0.6382256746292114, -0.10303735733032227),
            *(0.02180531434714794, -0.002939606085419655, 0.0001855738810263574),
        ),  # 2**-29.9 of 1
        erf_one=4.0,
    ),
    dt.float64: _Constants(
        ln2=(0.6931471805599453, 2.3190468138462996e-17),
        q=(
            *(0.5, 0.16666666666666677, 0.0416666666666667, 0.008333333333321615, 0.0013888888888866848),
            *(0.00019841269886158457, 2.4801587360537186e-05, 2.7557244181930083e-06, 2.75572427751515e-07),
            *(2.510904490706645e-08, 2.092443883798963e-09),
        ),  # 2**-61.7
        overflow=709.9,
        vanish=-746.0,
        normal=707.0,
        one=19.1,
        exponent=-900,
        sinh=(
            *(0.16666666666666666, 0.008333333333333333, 0.0001984126984126959, 2.755731922412024e-06),
            *(2.5052108345641634e-08, 1.6059050705856927e-10, 7.646476361495928e-13, 2.848398289906455e-15),
        ),  # 2**-73.6
        tanh=(
            *(-0.333333333333333, 0.13333333333326833, -0.05396825396387899, 0.021869488389112058),
            *(-0.00886323265290875, 0.003592092533586131, -0.0014555459899824369, 0.0005884570706603796),
            *(-0.00023341277786502343, 8.336013355043411e-05, -1.9521063987544943e-05),
        ),  # 2**-60.7
        erf=(
            *(0.1283791670955126, -0.3761263890318375, 0.11283791670954885, -0.026866170645077875),
            *(0.00522397762482842, -0.0008548326981424853, 0.00012055331132928127, -1.4925595771473032e-05),
            *(1.6461008466019026e-06, -1.6350396095544204e-07, 1.4660327861449936e-08, -1.1374952420539345e-09),
            5.960679793735879e-11,
        ),  # 2**-62.8
        log_erfc=(
            *(-5.132111640037383e-07, -1.1283739920088756, 0.36335594625896617 - 1, -0.10270229361689079),
            *(0.01898804943795876, 0.0004135260699240861, -0.001918934350242003, 0.0007730337190600358),
            *(-0.00013654810418049765, -1.9526925042872813e-05, 2.253451393604741e-05, -8.579295911238801e-06),
            *(2.114924206249877e-06, -3.695881195962365e-07, 4.593623262265853e-08, -3.890290191360889e-09),
            *(2.0204991299906098e-10, -4.865510319957718e-12),
        ),  # 2**-57.1 of 1
        erf_one=6.0,
    ),
}


def _reduced(e: Emit, x: Value, c: _Constants) -> tuple[Value, Value, Value]:
    """(t, k, r): exp(x) = 2**k exp(r), t as round_shifted gives it."""
    shifted, k = round_shifted(e, x, _LOG2E)
    return shifted, k, e.fma(k, -c.ln2[1], e.fma(k, -c.ln2[0], x))


def _near_one(e: Emit, r: Value, c: _Constants) -> Value:
    """exp(r) - 1."""
    square = e.mul(r, r)
    return e.fma(square, polynomial(e, r, c.q, square), r)


@elementary
def exp(e: Emit, x: Value) -> Value:
    """2**k times a polynomial in r, scaled in one rounding so that underflow is gradual."""
    return e.mostly(_is_plain, _plain_exp, "exp.general", _general_exp, x)


def _general_exp(e: Emit, x: Value) -> Value:
    c = _CONSTANTS[x.dtype]
    _, k, r = _reduced(e, clamp_above(e, x, c.overflow), c)
    return e.scale2(_exp_of_rest(e, r, c), k, e.not_lt(x, c.vanish))


def _is_plain(e: Emit, x: Value) -> Value:
    """Where exp is a normal number, by some margin; not for NaN."""
    return e.le(e.abs(x), _CONSTANTS[x.dtype].normal)


def _plain_exp(e: Emit, x: Value) -> Value:
    """exp there: to multiply by 2**k is to add k to the exponent."""
    c, f = _CONSTANTS[x.dtype], FORMATS[x.dtype]
    shifted, _, r = _reduced(e, x, c)
    added = e.shl(e.bitcast(shifted, f.integer), f.mantissa)  # leaves nothing of the bits above k
    return e.bitcast(e.add(e.bitcast(_exp_of_rest(e, r, c), f.integer), added), x.dtype)


def _exp_of_rest(e: Emit, r: Value, c: _Constants) -> Value:
    """exp(r)."""
    return e.add(_near_one(e, _traced(e, r), c), 1.0)


def _traced(e: Emit, r: Value) -> Value:
    """r with a trace that changes no 1 + r, so that the square of a small r is a normal number."""
    return e.add(r, FORMATS[r.dtype].trace)


@elementary
def exp2(e: Emit, x: Value) -> Value:
    """2**k exp(r ln2) with r = x - k, which is exact."""
    c, f = _CONSTANTS[x.dtype], FORMATS[x.dtype]
    largest = float(f.bias + 1)
    inside = clamp_below(e, clamp_above(e, x, largest), -2 * largest)
    _, k = round_shifted(e, inside, 1.0)
    r = e.mul(e.sub(inside, k), _LN2)
    return e.scale2(_exp_of_rest(e, r, c), k, e.not_lt(x, float(-f.bias - f.mantissa - 1)))


def exp_pair(e: Emit, x: Pair) -> Value:
    """exp(hi + lo)."""
    c = _CONSTANTS[x.hi.dtype]
    inside = clamp_above(e, x.hi, c.overflow)
    # Beyond the range the low word, which may be large, has no say.
    low = e.select(e.eq(inside, x.hi), x.lo, 0.0)
    _, k = round_shifted(e, inside, _LOG2E)
    r, dropped = fast_two_sum(e, e.fma(k, -c.ln2[0], inside), e.fma(k, -c.ln2[1], low))
    r = _traced(e, r)
    square = e.mul(r, r)
    rest = e.fma(square, polynomial(e, r, c.q, square), dropped)
    return e.scale2(e.add(e.add(r, rest), 1.0), k, e.not_lt(x.hi, c.vanish))


@elementary
def expm1(e: Emit, x: Value) -> Value:
    """(2**k - 1) + 2**k (r + rest), the sum of the first two parts taken exactly (after Tang).

    Everything is halved until the end, for 2**k may overflow where the result does not.
    """
    c = _CONSTANTS[x.dtype]
    inside = clamp_below(e, clamp_above(e, x, c.overflow), -2 * c.one)
    shifted, k = round_shifted(e, inside, _LOG2E)
    exact = e.fma(k, -c.ln2[0], inside)
    r = e.fma(k, -c.ln2[1], exact)
    dropped = e.fma(k, -c.ln2[1], e.sub(exact, r))
    square = squared(e, e.abs(r), r)
    rest = e.fma(square, polynomial(e, r, c.q, square), dropped)
    scale = power_of_two(e, shifted, -1)
    hi, lo = fast_two_sum(e, e.sub(scale, 0.5), e.mul(scale, r))
    half = e.add(hi, e.fma(scale, rest, lo))
    # Halving costs subnormal numbers a bit, and -0.0 its sign: there the result is x.
    return e.select(e.lt(e.abs(x), 2.0**-60), x, e.add(half, half))


@elementary
def tanh(e: Emit, x: Value) -> Value:
    """An odd polynomial up to about 1/2, then 1 - 2 / (exp(2a) + 1) for a = |x|, which no longer cancels.

    With 2a = k ln2 + 2r half the denominator is 2**k h + (2**k + 1) / 2, where h = (exp(2r) - 1) / 2.
    """
    c = _CONSTANTS[x.dtype]
    magnitude = clamp_above(e, e.abs(x), c.one)
    shifted, k = round_shifted(e, magnitude, 2 * _LOG2E)
    r = e.fma(k, -c.ln2[0] / 2, magnitude)  # an error of k ulp(ln2) vanishes beside exp(2a)
    square = squared(e, magnitude, r)
    h = e.fma(square, polynomial(e, r, [q * 2.0 ** (i + 1) for i, q in enumerate(c.q)], square), r)
    scale = power_of_two(e, shifted)
    denominator = e.fma(scale, h, e.fma(scale, 0.5, 0.5))
    far = e.sub(1.0, e.div(1.0, denominator))
    square = squared(e, magnitude, x)
    near = e.fma(e.mul(x, square), polynomial(e, square, c.tanh), x)
    return e.copysign(e.select(e.lt(magnitude, 0.55), near, far), x)


@elementary
def sigmoid(e: Emit, x: Value) -> Value:
    """1 / (1 + exp(-x)), the denominator scaled where it is large so that a small result loses nothing.

    With -x = k ln2 + r and p = 2**-|k| the denominator is 1 + p exp(r), or 2**k (p + exp(r)) for positive k.
    """
    c = _CONSTANTS[x.dtype]
    _, k, r = _reduced(e, clamp_below(e, clamp_above(e, e.neg(x), -c.vanish), c.vanish), c)
    v = _near_one(e, _traced(e, r), c)
    # Smaller powers count for nothing beside 1, and would make subnormal numbers.
    p = power_of_two(e, e.add(clamp_below(e, e.neg(e.abs(k)), c.exponent), FORMATS[x.dtype].magic))
    large = e.gt(k, 0.0)
    one = fast_two_sum(e, e.const(1.0, x.dtype, x.width), p)
    denominator = e.add(one.hi, e.add(e.select(large, v, e.mul(p, v)), one.lo))
    return e.scale2(e.div(1.0, denominator), e.select(large, e.neg(k), 0.0), e.not_lt(x, c.vanish))


@elementary
def sinh(e: Emit, x: Value) -> Value:
    """exp(|x|) / 2 - exp(-|x|) / 2, and an odd polynomial below 1 where that would cancel."""
    c = _CONSTANTS[x.dtype]
    half = _half_exp(e, x, c)
    large = e.copysign(e.sub(half, e.div(0.25, half)), x)
    magnitude = e.abs(x)
    square = squared(e, magnitude, x)
    small = e.fma(e.mul(x, square), polynomial(e, square, c.sinh), x)
    return e.select(e.lt(magnitude, 1.0), small, large)


@elementary
def cosh(e: Emit, x: Value) -> Value:
    """exp(|x|) / 2 + exp(-|x|) / 2."""
    half = _half_exp(e, x, _CONSTANTS[x.dtype])
    return e.add(half, e.div(0.25, half))


def _half_exp(e: Emit, x: Value, c: _Constants) -> Value:
    """exp(|x|) / 2, which overflows later than exp."""
    _, k, r = _reduced(e, clamp_above(e, e.abs(x), c.overflow + 1), c)
    return e.scale2(e.add(_near_one(e, _traced(e, r), c), 1.0), e.sub(k, 1.0))


@elementary
def erf(e: Emit, x: Value) -> Value:
    """x + x p(x**2) below 1, and 1 - exp(q(|x|)) beyond, q being the logarithm of the complement."""
    c = _CONSTANTS[x.dtype]
    # What is smaller has no powers that count.
    size = clamp_below(e, e.abs(x), FORMATS[x.dtype].small)
    small = e.fma(x, polynomial(e, e.mul(size, size), c.erf), x)
    magnitude = clamp_above(e, size, c.erf_one)
    shifted, _, r = _reduced(e, polynomial(e, magnitude, c.log_erfc), c)
    large = e.fma(e.neg(power_of_two(e, shifted)), e.add(_near_one(e, r, c), 1.0), 1.0)
    return e.select(e.lt(magnitude, 1.0), small, e.copysign(large, x))
