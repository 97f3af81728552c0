"""The error function's family over the emitter: its complement, scaled and plain, and their inverses.

All of them are computed in float64, whatever comes in.  Polynomials interpolate at Chebyshev's points; their relative
errors stand beside the coefficients.  The scaled complement is one polynomial in (x - 4) / (x + 4) (Shepherd and
Laframboise, Chebyshev approximation of (1 + 2x) exp(x**2) erfc(x), 1981).
"""

from __future__ import annotations

import math

from hybridflow.compiler.ops import elementary
from hybridflow.compiler.ops.elementary_common import (
    Emit,
    Pair,
    Value,
    clamp_above,
    clamp_below,
    elementary as _elementary,
    in_some_lanes,
    polynomial,
    through_float64,
    two_product,
)
from hybridflow.compiler.ops.elementary_exp import exp_pair

# (1 + 2x) exp(x**2) erfc(x) - 1.25 in (x - 4) / (x + 4), to 2**-59.1
_SCALED = (
    *(-0.01700488137444749, -0.1396211168405625, 0.01537965210261959, 0.0680970542546913, -0.1010390660362999),
    *(0.0937328349984105, -0.06633036581219905, 0.03716751553632399, -0.01619773405968329, 0.0050319699895242515),
    *(-0.000757773262030915, -0.00019925676026410458, 0.00015062149237837335, -2.43989944557621e-05),
    *(-1.1221292615314274e-05, 5.709314113532492e-06, 2.9198219084548256e-07, -8.25078338681245e-07),
    *(7.74606863568198e-08, 1.1025271999000152e-07, -2.05545313698593e-08, -1.4806988146925795e-08),
    *(3.1672611119361695e-09, 1.825695118953907e-09, -2.655726616312575e-10, -1.4311318470928162e-10),
)
# erfinv(x) / x - 1 in x**2 - 0.28125, |x| <= 3/4, to 2**-60.3
_CENTRAL = (
    *(-0.03597836237617296, 0.33232999405768204, 0.2489351110036538, 0.23252305015382857, 0.2412832168253087),
    *(0.26625172706277994, 0.30588531013539366, 0.361552855901622, 0.43647348990862606, 0.5355805653534325),
    *(0.6657678356863944, 0.8363764027320281, 1.0598469486498017, 1.3530890186729125, 1.7412609428836978),
    *(2.249438897185941, 2.8622860441779596, 3.728964473072721, 5.636104298830154, 7.412533724682639),
    *(3.406425507286827, 4.42146602802311, 36.43670186173931, 48.487529137122486),
)
# erfcinv(exp(-s**2)) / s - 1
# 1.17 <= s <= 2, in s - 1.585, to 2**-60.1
_TAIL_2 = (
    *(-0.22177655723414272, 0.16712143532640714, -0.09417365915849542, 0.04486911555469886, -0.01814034669436363),
    *(0.005753481551447191, -0.0009169977373096407, -0.0005076988412379346, 0.0006477436947563527),
    *(-0.0004416006966065892, 0.00022926295645086286, -9.274231877450727e-05, 2.438960844053912e-05),
    *(2.094109072428109e-06, -8.205772684715567e-06, 7.094101117738747e-06, -4.767040125654573e-06),
    *(2.040455582835942e-06,),
)
# 2 <= s <= 3.5, in s - 2.75, to 2**-59.9
_TAIL_3 = (
    *(-0.10764245225908212, 0.0553098577970348, -0.022047891742589254, 0.007854449308099982, -0.002597414599234775),
    *(0.0008067503250736843, -0.00023524578239907936, 6.368402011222851e-05, -1.5546184498757458e-05),
    *(3.1653959632772086e-06, -3.8589752829697485e-07, -7.970915148084773e-08, 8.708065023689295e-08),
    *(-4.518656897604807e-08, 1.8766571390601866e-08, -6.755608643154987e-09, 2.2904973226764007e-09),
    *(-8.336455088411679e-10, 2.1531876213006622e-10),
)
# 3.5 <= s <= 6.5, in s - 5, to 2**-59.0
_TAIL_6 = (
    *(-0.0441230282733329, 0.013748742983982693, -0.0033529232040403283, 0.0007414093539917376),
    *(-0.0001551793719761186, 3.129885305567205e-05, -6.137056192956444e-06, 1.17526372926882e-06),
    *(-2.203296624567987e-07, 4.0471998248696675e-08, -7.282185428727696e-09, 1.281733115568175e-09),
    *(-2.2011820426577743e-10, 3.6706754104255785e-11, -5.876343501955519e-12, 8.951163945923883e-13),
    *(-1.345845642619139e-13, 1.7754621284855257e-14, -8.933414537179697e-17, -4.2041684030908824e-16),
)
# 6.5 <= s <= 28, in 1 / s - CENTER, to 2**-58.9
_TAIL_28 = (
    *(-0.013201987006001085, -0.23179406345120437, -0.7323321703596796, 1.695022466811812, -4.591852586261415),
    *(19.533082701494717, -103.91503421572257, 626.2644352938461, -4123.693638741483, 28975.58151924772),
    *(-213798.2088299241, 1639600.7068425969, -13032635.990626074, 105827891.72546776, -824128326.8143996),
    *(6900864565.130714, -89472802447.67789, 800217688272.9026, 4879109449096.428, -49825501337384.64),
    *(-2712700274958059.5, 2.5703427670006548e16, 3.0621442747922106e17, -2.9319881642107356e18),
    *(-2.675545026366485e19, 2.5405676331567068e20),
)
_CENTER_28 = 0.09478021978021978
_FAR = 1e30  # from here on (x - 4) / (x + 4) is 1


def _scaled_of_positive(e: Emit, x: Value) -> Value:
    inside = clamp_above(e, x, _FAR)
    t = e.div(e.sub(inside, 4.0), e.add(inside, 4.0))
    return e.div(e.mul(e.add(polynomial(e, t, _SCALED), 1.25), 0.5), e.add(x, 0.5))


def _square(e: Emit, size: Value) -> Pair:
    return two_product(e, size, size)


@_elementary
@through_float64
def erfcx(e: Emit, x: Value) -> Value:
    """exp(x**2) erfc(x); for negative x by 2 exp(x**2) - erfcx(-x)."""
    size = e.abs(x)
    positive = _scaled_of_positive(e, size)
    return in_some_lanes(e, e.lt(x, 0.0), positive, _reflected_erfcx, size, positive)


def _reflected_erfcx(e: Emit, size: Value, positive: Value) -> Value:
    twice = e.mul(exp_pair(e, _square(e, clamp_above(e, size, 30.0))), 2.0)
    return e.sub(twice, positive)


@_elementary
@through_float64
def erfc(e: Emit, x: Value) -> Value:
    """1 - erf(x), without cancelling: exp(-x**2) erfcx(x) from 1/2 on."""
    size = e.abs(x)
    inside = clamp_above(e, size, 30.0)
    square = _square(e, inside)
    tail = e.mul(exp_pair(e, Pair(e.neg(square.hi), e.neg(square.lo))), _scaled_of_positive(e, inside))
    far = e.select(e.lt(x, 0.0), e.sub(2.0, tail), tail)
    return in_some_lanes(e, e.lt(size, 0.5), far, _erfc_near_zero, x)


def _erfc_near_zero(e: Emit, x: Value) -> Value:
    return e.sub(1.0, elementary.erf(e, x))


def _central(e: Emit, x: Value) -> Value:
    """erfinv(x) for |x| <= 3/4."""
    small = e.lt(e.abs(x), 1e-150)
    square = e.mul_where(e.not_(small), x, x)
    return e.select(e.eq(x, 0.0), x, e.fma(x, polynomial(e, e.sub(square, 0.28125), _CENTRAL), x))


def _tail(e: Emit, p: Value) -> Value:
    """erfcinv(p) for p <= 1/4."""
    s = e.sqrt(e.neg(elementary.log(e, p)))
    near = clamp_above(e, s, 7.0)
    rest = polynomial(e, e.sub(near, 1.585), _TAIL_2)
    rest = in_some_lanes(e, e.not_lt(s, 2.0), rest, _rest_of_tail_3, near)
    rest = in_some_lanes(e, e.not_lt(s, 3.5), rest, _rest_of_far_tail, s, near)
    return e.fma(s, rest, s)


def _rest_of_tail_3(e: Emit, near: Value) -> Value:
    return polynomial(e, e.sub(near, 2.75), _TAIL_3)


def _rest_of_far_tail(e: Emit, s: Value, near: Value) -> Value:
    return e.select(
        e.lt(s, 6.5),
        polynomial(e, e.sub(near, 5.0), _TAIL_6),
        polynomial(e, e.sub(e.div(1.0, clamp_below(e, s, 6.0)), _CENTER_28), _TAIL_28),
    )


@_elementary
@through_float64
def erfcinv(e: Emit, p: Value) -> Value:
    """The inverse of erfc: of 1 - p in the middle, of the logarithm towards both ends."""
    upper = e.gt(p, 1.0)
    near = e.select(upper, e.sub(2.0, p), p)
    far = e.lt(near, 0.25)
    tail = _tail(e, e.select(far, near, 0.25))
    tail = e.select(upper, e.neg(tail), tail)
    result = e.select(far, tail, _central(e, e.select(far, 0.0, e.sub(1.0, p))))
    return _at_ends(e, p, near, result)


def _at_ends(e: Emit, x: Value, distance: Value, result: Value) -> Value:
    """Infinite where the ``distance`` to an end is 0, NaN beyond."""
    result = e.select(e.eq(distance, 0.0), e.copysign(math.inf, result), result)
    return e.select(e.lt(distance, 0.0), math.nan, e.select(e.is_nan(x), x, result))


@_elementary
@through_float64
def erfinv(e: Emit, x: Value) -> Value:
    """The inverse of erf: an odd polynomial up to 3/4, then by what is left to 1, which is exact."""
    distance = e.sub(1.0, e.abs(x))
    far = e.lt(distance, 0.25)
    tail = e.copysign(_tail(e, e.select(far, distance, 0.25)), x)
    return _at_ends(e, x, distance, e.select(far, tail, _central(e, e.select(far, 0.0, x))))
