"""The exponential integral, the dilogarithm and Lambert's function over the emitter, computed in float64."""

from __future__ import annotations

import math

from hybridflow.compiler.ops import elementary
from hybridflow.compiler.ops.dual_numbers import Dual, iterate, moves
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

# dilog(w) / w - 1 in w, |w| <= 1/2, to 2**-59.6
_DILOG = (
    *(0.0, 0.25000000000000006, 0.11111111111111115, 0.06249999999998125, 0.03999999999998239),
    *(0.027777777780466056, 0.0204081632678307, 0.015624999821022, 0.01234567884427106, 0.010000006692986915),
    *(0.008264469094923912, 0.006944288920338808, 0.005917013727087476, 0.005104420190272635, 0.0044466785050490685),
    *(0.003881506198345117, 0.003436977159752625, 0.0032635399687334895, 0.0029363492020346204),
    *(0.0016324320731478951, 0.001453317585769165, 0.004889089576386364, 0.004539155753206876, -0.003943892948713848),
    *(-0.0037272096820245397, 0.007366617823531229, 0.006888384734650649),
)
# t exp(t) E1(t) - 3/4 in 1 / t - 2/3, 1 <= t <= 3, to 2**-58.6
_E1_NEAR = (
    *(-0.07761499606262556, -0.2714437647651542, 0.159689576652849, -0.11182547697396775, 0.08696754725296084),
    *(-0.07266191530778526, 0.06400433421003154, -0.05873691453483243, 0.0557087992867428, -0.0542950602511307),
    *(0.05414681826795579, -0.05507084867372836, 0.056982974736821485, -0.05993754921328895, 0.06382202227705588),
    *(-0.06756785256161268, 0.07351847053038192, -0.09299626451716689, 0.10385109791439381, -0.03981828875032402),
    *(0.04251657391377339, -0.3232322726044751, 0.3736944567152086),
)
# The same in 1 / t - 13/60, 3 <= t <= 10, to 2**-58.9
_E1_MIDDLE = (
    *(0.09288908854228757, -0.5435160225752635, 0.5742143649255497, -0.7757246043385119, 1.2227067663962394),
    *(-2.147587641394909, 4.091613131598218, -8.310119178837658, 17.778215987011766, -39.71696990384336),
    *(92.0596502951269, -220.26336856753383, 541.0355092511431, -1363.7598503420816, 3598.506956715443),
    *(-9479.721771679324, 20129.390964427275, -53920.46608353258, 329648.2453106247, -935986.3434941999),
)
# t exp(t) E1(t) - 1 in 1 / t - 1/20, t >= 10, to 2**-58.2
_E1_FAR = (
    *(-0.04562909008078317, -0.835782166071071, 1.3557162125028008, -3.0774577981634224, 8.741939003390463),
    *(-29.27842911024018, 111.45799549838607, -470.577741767167, 2165.284377916512, -10718.715117102465),
    *(56511.177279338626, -314156.54062651435, 1836439.223538179, -11629725.4784427, 74451222.4658291),
    *(-341467629.2195077, 2196339320.2840257, -45020241725.88751, 336295028579.25195),
)
_EULER = 0.5772156649015329
_FAR = 40.0  # from here on the asymptotic series of the exponential integral has all digits
_STEPS = 4  # of Halley's method, each of which has three times as many digits


@_elementary
@through_float64
def expi(e: Emit, x: Value) -> Value:
    """Its power series from -1 to 40, polynomials in 1 / x below, the asymptotic series above."""
    near = e.and_(e.gt(x, -1.0), e.lt(x, _FAR))
    inside = e.select(near, x, 1.0)

    def step(number: Value, total: Dual, power: Dual) -> tuple[list[Dual], Value]:
        following = Dual(e.div(e.mul(power.value, inside), number))
        added = Dual(e.div(following.value, number))
        total = Dual(e.add(total.value, added.value))
        return [total, following], moves(e, added, total)

    zero, one = e.zero(x.dtype), e.const(1.0, x.dtype, x.width)
    sums = iterate(e, near, [Dual(zero), Dual(one)], step)[0].value
    logarithm = elementary.log(e, e.select(e.eq(inside, 0.0), 0.0, e.abs(inside)))
    series = e.add(e.add(logarithm, _EULER), sums)
    result = in_some_lanes(e, e.not_lt(x, _FAR), series, _expi_far, x)
    result = in_some_lanes(e, e.le(x, -1.0), result, _expi_of_negative, x)
    return e.select(e.is_nan(x), x, result)


def _expi_of_negative(e: Emit, x: Value) -> Value:
    return e.neg(_e1(e, e.neg(x)))


def _e1(e: Emit, t: Value) -> Value:
    """The integral from t on of exp(-s) / s, for t >= 1."""
    size = clamp_above(e, clamp_below(e, t, 1.0), 1000.0)
    inverse = e.div(1.0, size)
    near = e.add(polynomial(e, e.sub(inverse, 2 / 3), _E1_NEAR), 0.75)
    middle = e.add(polynomial(e, e.sub(inverse, 13 / 60), _E1_MIDDLE), 0.75)
    far = e.add(polynomial(e, e.sub(inverse, 0.05), _E1_FAR), 1.0)
    factor = e.select(e.lt(size, 3.0), near, e.select(e.lt(size, 10.0), middle, far))
    return e.mul(elementary.exp(e, e.neg(size)), e.mul(factor, inverse))


def _expi_far(e: Emit, x: Value) -> Value:
    """exp(x) / x (1 + 1 / x + 2 / x**2 + 6 / x**3 + ...)"""
    size = clamp_below(e, x, _FAR)
    inverse = e.div(1.0, size)
    total = e.const(1.0, x.dtype, x.width)
    for k in range(int(_FAR) - 2, 0, -1):
        total = e.fma(e.mul(total, inverse), float(k), 1.0)
    # In two factors: exp(x) overflows before the quotient does.
    half = elementary.exp(e, e.mul(size, 0.5))
    result = e.mul(e.mul(half, e.mul(inverse, total)), half)
    return e.select(e.eq(x, math.inf), math.inf, result)


@_elementary
@through_float64
def spence(e: Emit, x: Value) -> Value:
    """The dilogarithm of 1 - x: a polynomial from 1/2 to 3/2, where 1 / x and 1 - x bring the others."""
    large = e.gt(x, 1.5)
    inside = e.select(large, e.div(1.0, x), x)
    low = e.lt(inside, 0.5)
    w = e.select(low, inside, e.sub(1.0, inside))
    dilog = e.fma(w, polynomial(e, w, _DILOG), w)
    logarithm = elementary.log(e, e.select(low, inside, 1.0))
    mirrored = e.sub(math.pi**2 / 6, dilog)
    product = e.mul(logarithm, elementary.log1p(e, e.neg(w)))
    product = e.select(e.eq(inside, 0.0), 0.0, product)
    result = e.select(low, e.sub(mirrored, product), dilog)
    root = elementary.log(e, e.select(large, x, 1.0))
    far = e.sub(e.mul(e.mul(root, root), -0.5), result)
    result = e.select(large, far, result)
    return e.select(e.lt(x, 0.0), math.nan, e.select(e.is_nan(x), x, result))


@_elementary
@through_float64
def lambertw(e: Emit, x: Value) -> Value:
    """The solution w >= -1 of w exp(w) = x, by Halley's method; near the branch point by its series."""
    # 1 + e x, whose second part keeps what e as a float64 lacks
    distance = e.fma(x, math.e, 1.0)
    distance = e.fma(x, 1.4456468917292502e-16, distance)
    root = e.sqrt(e.mul(clamp_below(e, distance, 0.0), 2.0))
    branch = e.sub(
        e.mul(
            root, polynomial(e, root, (1.0, -1 / 3, 11 / 72, -43 / 540, 769 / 17280, -221 / 8505, 680863 / 43545600))
        ),
        1.0,
    )
    near_branch = e.lt(root, 0.02)
    inside = clamp_below(e, clamp_above(e, x, 1e300), -0.3678)
    w = e.select(e.lt(inside, 0.3), branch, elementary.log1p(e, clamp_below(e, inside, 0.0)))
    logarithm = elementary.log(e, clamp_below(e, inside, 3.0))
    w = e.select(e.gt(inside, 3.0), e.sub(logarithm, elementary.log(e, logarithm)), w)
    for _ in range(_STEPS):
        excess = e.sub(w, e.mul(inside, elementary.exp(e, e.neg(w))))
        more = e.add(w, 1.0)
        correction = e.div(e.mul(e.add(w, 2.0), excess), e.mul(more, 2.0))
        w = e.sub(w, e.div(excess, e.sub(more, correction)))
    w = e.select(near_branch, branch, e.select(e.lt(e.abs(x), 1e-20), x, w))
    # Beyond 1e300 one step from the logarithm has all digits.
    w = in_some_lanes(e, e.gt(x, 1e300), w, _far_lambertw, x)
    return e.select(e.lt(distance, -1e-15), math.nan, e.select(e.is_nan(x), x, w))


def _far_lambertw(e: Emit, x: Value) -> Value:
    """By Newton's method on w + log(w) = log(x)."""
    logarithm = elementary.log(e, clamp_below(e, x, 3.0))
    w = e.sub(logarithm, elementary.log(e, logarithm))
    for _ in range(_STEPS):
        excess = e.sub(e.add(w, elementary.log(e, w)), logarithm)
        w = e.sub(w, e.div(e.mul(excess, w), e.add(w, 1.0)))
    return e.select(e.eq(x, math.inf), math.inf, w)
