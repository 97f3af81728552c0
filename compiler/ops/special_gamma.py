"""The gamma function's family over the emitter: gamma, its logarithm, digamma, trigamma, Hurwitz's zeta function.

All of them are computed in float64, whatever comes in.  Arguments below 8 are brought to an interval of length 1 by
the recurrence; beyond stands Stirling's series (Abramowitz and Stegun 6.1.41, 6.3.18, 6.4.12); negative arguments are
reflected.  Polynomials interpolate at Chebyshev's points; their relative errors stand beside the coefficients.
"""

from __future__ import annotations

import math

from hybridflow.compiler.ops import elementary
from hybridflow.compiler.ops.elementary_common import (
    Emit,
    Value,
    clamp_above,
    clamp_below,
    elementary as _elementary,
    in_some_lanes,
    polynomial,
    through_float64,
)

HALF_LOG_2_PI = 0.9189385332046728
_LARGE = 8.0  # from here on by Stirling's series

# log(gamma(2 + s)) / s, |s| <= 1/2, to 2**-58.5
_LOG_GAMMA = (
    *(0.42278433509846713, 0.32246703342411326, -0.0673523010531981, 0.02058080842778038, -0.0073855510286719986),
    *(0.002890510331034267, -0.0011927539118428156, 0.0005096695154115458, -0.00022315475400520507),
    *(9.945767355819498e-05, -4.49263133791557e-05, 2.0505590755833454e-05, -9.438715099211532e-06),
    *(4.38470440459836e-06, -2.0439048107029907e-06, 9.200527894968101e-07, -4.3252393445604814e-07),
    *(2.78740805211359e-07, -1.3219945666117874e-07),
)
# digamma(x) / (x - root) on [1, 2], in x - 1.5, to 2**-60.9
_DIGAMMA = (
    *(0.9510558760318328, -0.42362742128146047, 0.24054248424078736, -0.14840492305391761, 0.09498872445283),
    *(-0.06192213327165706, 0.04076083394462657, -0.02697579684427536, 0.017907248195969127, -0.011908215172584002),
    *(0.007927024067961237, -0.00528001782089874, 0.0035180800751066694, -0.002344650082351321),
    *(0.0015635679757533885, -0.001042261556504223, 0.0006899717801166841, -0.0004599625144612576),
    *(0.0003268068044141764, -0.0002178682145501451, 9.173383289174792e-05, -6.11554261750751e-05),
    *(0.00012230983055406747, -8.153978973309418e-05),
)
_ROOT = (1.4616321449683622, 9.549995429965697e-17)  # of digamma, hi + lo
# Of Stirling's series, in 1 / x**2
STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400)
_STIRLING_1 = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12, -3617 / 8160)
_STIRLING_2 = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330)
# Bernoulli's numbers over factorials, B(2k) / (2k)!
_EULER_MACLAURIN = (
    *(1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000, 1 / 74724249600),
    *(-3617 / 10670622842880000, 43867 / 5109094217170944000, -174611 / 802857662698291200000),
)
_TERMS = 10  # of the zeta function that are summed


def _is_whole(e: Emit, x: Value) -> Value:
    return e.eq(e.floor(x), x)


def _pi_times_rest(e: Emit, x: Value) -> Value:
    """pi times what ``x`` is apart from the nearest integer."""
    return e.mul(e.sub(x, e.rint(x)), math.pi)


def _stirling_rest(e: Emit, y: Value, terms: tuple[float, ...]) -> Value:
    """``terms[0] / y + terms[1] / y**3 + ...``"""
    inverse = e.div(1.0, y)
    return e.mul(inverse, polynomial(e, e.mul(inverse, inverse), terms))


def _rising(e: Emit, n: Value, s: Value) -> Value:
    """(s + 2) (s + 3) ... (s + n - 1); 1 where there is none."""
    product = e.const(1.0, s.dtype, s.width)
    for j in range(2, int(_LARGE)):
        product = e.select(e.gt(n, float(j)), e.mul(product, e.add(s, float(j))), product)
    return product


def _near_two(e: Emit, y: Value) -> tuple[Value, Value, Value]:
    r"""(n, s, log(gamma(2 + s))) with y = n + s and \|s\| <= 1/2, for 0 <= y < 8."""
    n = e.floor(e.add(clamp_above(e, y, _LARGE), 0.5))
    s = e.sub(y, n)
    return n, s, e.mul(s, polynomial(e, s, _LOG_GAMMA))


def _stepped(e: Emit, n: Value, s: Value, y: Value) -> Value:
    """What gamma(2 + s) has to be multiplied by for gamma(n + s), n >= 2, and divided by else."""
    low = e.select(e.lt(n, 0.5), e.mul(s, e.add(s, 1.0)), y)
    return e.select(e.lt(n, 1.5), low, _rising(e, n, s))


def log_gamma_plus_one(e: Emit, s: Value) -> Value:
    """log(gamma(1 + s)) for s from 0 to 8, with the digits of a small s."""
    n, rest, near = _near_two(e, s)
    logarithm = elementary.log(e, e.select(e.lt(n, 1.5), 1.0, e.mul(_rising(e, n, rest), s)))
    small = e.sub(near, elementary.log1p(e, clamp_above(e, s, 1.0)))
    return e.select(e.lt(n, 0.5), small, e.add(near, logarithm))


def _log_gamma_of_positive(e: Emit, y: Value) -> Value:
    n, s, near = _near_two(e, y)
    factor = _stepped(e, n, s, y)
    large = e.not_lt(y, _LARGE)
    logarithm = elementary.log(e, e.select(large, y, factor))
    small = e.select(e.lt(n, 1.5), e.sub(near, logarithm), e.add(near, logarithm))
    beyond = e.fma(
        e.sub(y, 0.5),
        e.sub(logarithm, 1.0),
        e.add(_stirling_rest(e, clamp_below(e, y, 1.0), STIRLING), HALF_LOG_2_PI - 0.5),
    )
    return e.select(large, beyond, small)


@_elementary
@through_float64
def log_gamma(e: Emit, x: Value) -> Value:
    """The logarithm of the absolute value of gamma.  For x < 0 errors are relative to the larger part."""
    negative = e.lt(x, 0.0)
    positive = _log_gamma_of_positive(e, e.select(negative, e.sub(1.0, x), x))
    result = in_some_lanes(e, negative, positive, _reflected_log_gamma, x, positive)
    pole = e.or_(e.eq(x, math.inf), e.and_(negative, _is_whole(e, x)))
    return e.select(pole, math.inf, result)


def _reflected_log_gamma(e: Emit, x: Value, positive: Value) -> Value:
    sine = elementary.sin(e, _pi_times_rest(e, e.select(e.lt(x, 0.0), x, 0.5)))
    return e.sub(e.sub(math.log(math.pi), elementary.log(e, e.abs(sine))), positive)


@_elementary
@through_float64
def gamma(e: Emit, x: Value) -> Value:
    """By exp(log(gamma(2 + s))) and the recurrence below 8; beyond by Stirling's y**(y - 1/2), a power squared."""
    y = e.abs(x)
    n, s, near = _near_two(e, y)
    moderate, factor = elementary.exp(e, near), _stepped(e, n, s, y)
    moderate = e.select(e.lt(n, 1.5), e.div(moderate, factor), e.mul(moderate, factor))
    one = e.const(1.0, y.dtype, y.width)
    size, factor = e.rarely(e.not_lt(y, _LARGE), [moderate, one], "large_gamma", _large_gamma, y)
    result = in_some_lanes(e, e.lt(x, 0.0), e.mul(size, factor), _reflected_gamma, x, size, factor)
    return _gamma_at_poles(e, x, result)


def _large_gamma(e: Emit, y: Value) -> tuple[Value, Value]:
    """Two factors, of which the first is not too large where their product is."""
    with e.strict():
        inside = clamp_above(e, clamp_below(e, y, 1.0), 400.0)
        power = elementary.pow(e, inside, e.mul(e.sub(inside, 0.5), 0.5))
        root = e.mul(power, elementary.exp(e, e.mul(inside, -0.5)))
        scale = elementary.exp(e, e.add(_stirling_rest(e, inside, STIRLING), HALF_LOG_2_PI))
        return e.mul(root, scale), root


def _reflected_gamma(e: Emit, x: Value, positive: Value, factor: Value) -> Value:
    """-pi / (x sin(pi x) gamma(-x)), gamma(-x) as a product: it may overflow before the quotient vanishes."""
    whole = e.rint(x)
    half = e.mul(whole, 0.5)
    sine = elementary.sin(e, e.mul(e.sub(x, whole), -math.pi))
    sine = e.select(e.eq(half, e.rint(half)), sine, e.neg(sine))
    return e.div(e.div(math.pi, e.mul(e.mul(sine, x), positive)), factor)


def _gamma_at_poles(e: Emit, x: Value, result: Value) -> Value:
    result = e.select(e.and_(e.lt(x, 0.0), _is_whole(e, x)), math.nan, result)
    result = e.select(e.eq(x, math.inf), math.inf, result)
    return in_some_lanes(e, e.lt(e.abs(x), 1e-17), result, _gamma_near_zero, x)


def _gamma_near_zero(e: Emit, x: Value) -> Value:
    return e.div(1.0, e.select(e.lt(e.abs(x), 1e-17), x, 1.0))


@_elementary
@through_float64
def digamma(e: Emit, x: Value) -> Value:
    """The derivative of log_gamma.  For x < 0 errors are relative to the larger of the two parts of the reflection."""
    negative = e.lt(x, 0.0)
    y = e.select(negative, e.sub(1.0, x), x)
    result = _digamma_of_positive(e, y)
    result = in_some_lanes(e, negative, result, _reflected_digamma, x, result)
    result = e.select(e.and_(negative, _is_whole(e, x)), math.nan, result)
    return e.select(e.eq(x, 0.0), e.copysign(math.inf, e.neg(x)), result)


def _reflected_digamma(e: Emit, x: Value, positive: Value) -> Value:
    rest = _pi_times_rest(e, e.select(e.lt(x, 0.0), x, 0.25))
    return e.sub(positive, e.div(math.pi, elementary.tan(e, rest)))


def _digamma_of_positive(e: Emit, y: Value) -> Value:
    low = e.lt(y, 1.0)
    inside = clamp_above(e, y, _LARGE)
    steps = e.sub(e.floor(inside), 1.0)  # down to [1, 2)
    at = e.select(low, e.add(inside, 1.0), e.sub(inside, steps))
    root = e.sub(e.sub(at, _ROOT[0]), _ROOT[1])
    near = e.mul(root, polynomial(e, e.sub(at, 1.5), _DIGAMMA))
    numerator, denominator = e.zero(y.dtype), e.const(1.0, y.dtype, y.width)
    for k in range(int(_LARGE) - 2):
        factor = e.add(at, float(k))
        wanted = e.gt(steps, float(k))
        numerator = e.select(wanted, e.fma(numerator, factor, denominator), numerator)
        denominator = e.select(wanted, e.mul(denominator, factor), denominator)
    numerator = e.select(low, -1.0, numerator)
    small = e.add(near, e.div(numerator, e.select(low, inside, denominator)))
    return in_some_lanes(e, e.not_lt(y, _LARGE), small, _large_digamma, y)


def _large_digamma(e: Emit, y: Value) -> Value:
    large = clamp_below(e, y, 1.0)
    inverse = e.div(1.0, large)
    square = e.mul(inverse, inverse)
    series = e.fma(square, polynomial(e, square, _STIRLING_1), e.mul(inverse, 0.5))
    return e.sub(elementary.log(e, large), series)


@_elementary
@through_float64
def trigamma(e: Emit, x: Value) -> Value:
    """The derivative of digamma, 1 / x**2 + 1 / (x + 1)**2 + ...: never by differences."""
    negative = e.lt(x, 0.0)
    y = e.select(negative, e.sub(1.0, x), x)
    numerator, denominator, at = e.zero(x.dtype), e.const(1.0, x.dtype, x.width), y
    for _ in range(int(_LARGE)):
        wanted, square = e.lt(at, _LARGE), e.mul(at, at)
        numerator = e.select(wanted, e.fma(numerator, square, denominator), numerator)
        denominator = e.select(wanted, e.mul(denominator, square), denominator)
        at = e.select(wanted, e.add(at, 1.0), at)
    inverse = e.div(1.0, at)
    square = e.mul(inverse, inverse)
    series = e.fma(e.mul(square, inverse), polynomial(e, square, _STIRLING_2), e.fma(square, 0.5, inverse))
    result = e.add(series, e.div(numerator, denominator))
    result = in_some_lanes(e, negative, result, _reflected_trigamma, x, result)
    return e.select(e.and_(e.le(x, 0.0), _is_whole(e, x)), math.inf, result)


def _reflected_trigamma(e: Emit, x: Value, positive: Value) -> Value:
    sine = elementary.sin(e, _pi_times_rest(e, e.select(e.lt(x, 0.0), x, 0.5)))
    return e.sub(e.div(math.pi**2, e.mul(sine, sine)), positive)


@_elementary
@through_float64
def zeta(e: Emit, s: Value, q: Value) -> Value:
    """Hurwitz's zeta function, the sum of (q + k)**-s, for s > 1 and q > 0: ten terms, then Euler and Maclaurin."""
    total = e.zero(s.dtype)
    exponent = e.neg(s)
    for k in range(_TERMS - 1, -1, -1):
        total = e.add(total, elementary.pow(e, e.add(q, float(k)), exponent))
    at = e.add(q, float(_TERMS))
    power = elementary.pow(e, at, exponent)
    inverse = e.div(1.0, at)
    square = e.mul(inverse, inverse)
    rest = e.zero(s.dtype)
    # Horner's rule in factors (s + 2k - 1) (s + 2k) / at**2, each ratio of two terms
    for k in range(len(_EULER_MACLAURIN) - 1, 0, -1):
        ratio = e.mul(e.mul(e.add(s, 2.0 * k - 1), e.add(s, 2.0 * k)), square)
        rest = e.mul(ratio, e.add(rest, _EULER_MACLAURIN[k]))
    rest = e.mul(e.mul(s, inverse), e.add(rest, _EULER_MACLAURIN[0]))
    tail = e.mul(power, e.add(e.add(e.div(at, e.sub(s, 1.0)), 0.5), rest))
    # Where s is so large that the first term is all there is, the rest is 0 times an overflow.
    tail = e.select(e.eq(power, 0.0), 0.0, tail)
    result = e.add(total, tail)
    result = e.select(e.eq(s, 1.0), math.inf, e.select(e.lt(s, 1.0), math.nan, result))
    pole = e.and_(e.le(q, 0.0), _is_whole(e, q))
    result = e.select(e.le(q, 0.0), e.select(pole, e.const(math.inf, q.dtype, q.width), math.nan), result)
    result = e.select(e.and_(e.eq(q, math.inf), e.gt(s, 1.0)), 0.0, result)
    return e.select(e.or_(e.is_nan(s), e.is_nan(q)), math.nan, result)
