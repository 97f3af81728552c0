"""The incomplete gamma and beta functions over the emitter, and their derivatives to the parameters.

A power series where it converges quickly, a continued fraction elsewhere (Abramowitz and Stegun 6.5.29, 6.5.31,
26.5.8), both until all lanes stand still.  What stands before them is taken as a deviance, which keeps
its digits where differences of logarithms have none (Loader, Fast and accurate computation of binomial probabilities,
2000).  Derivatives to a parameter come from the same recurrences in dual numbers.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ops import elementary, special_error, special_gamma
from hybridflow.compiler.ops.dual_numbers import (
    Dual,
    choose,
    iterate,
    lentz,
    moves,
    nonzero,
    plus,
    product,
    product_plus,
    quotient,
    settles,
    slope_of,
    with_slope,
)
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

# ---- what stands before series and fractions


def _stirling_error(e: Emit, k: Value) -> Value:
    """log(gamma(k + 1)) - (k + 1/2) log(k) + k - log(2 pi) / 2."""
    large = clamp_below(e, k, 8.0)
    inverse = e.div(1.0, large)
    series = e.mul(inverse, polynomial(e, e.mul(inverse, inverse), special_gamma.STIRLING))
    return in_some_lanes(e, e.lt(k, 8.0), series, _stirling_error_of_small, k)


def _stirling_error_of_small(e: Emit, k: Value) -> Value:
    low = clamp_above(e, k, 8.0)
    exact = special_gamma.log_gamma_plus_one(e, low)
    return e.sub(e.add(exact, low), e.fma(e.add(low, 0.5), elementary.log(e, low), special_gamma.HALF_LOG_2_PI))


def _deviance(e: Emit, k: Value, mean: Value) -> Value:
    """k log(k / mean) + mean - k."""
    distance = e.sub(mean, k)
    d = e.div(distance, k)
    near = e.lt(e.abs(d), 0.5)
    inside = e.select(near, d, 0.0)
    close = e.mul(k, e.sub(inside, elementary.log1p(e, inside)))
    return in_some_lanes(e, e.not_(near), close, _far_deviance, k, mean, distance)


def _far_deviance(e: Emit, k: Value, mean: Value, distance: Value) -> Value:
    return e.add(e.mul(k, elementary.log(e, e.div(k, mean))), distance)


def _gamma_front(e: Emit, a: Value, x: Value) -> Value:
    """x**a exp(-x) / gamma(a + 1)."""
    large = e.not_lt(a, 8.0)
    low = e.select(large, 1.0, a)
    power = e.mul(elementary.pow(e, x, low), elementary.exp(e, e.neg(x)))
    # gamma(a + 1), of which no argument is large
    factor, up = e.select(e.lt(low, 1.0), 1.0, low), e.select(e.lt(low, 1.0), e.add(low, 1.0), low)
    small = e.div(power, e.mul(special_gamma.gamma(e, up), factor))
    return in_some_lanes(e, large, small, _large_gamma_front, a, x)


def _large_gamma_front(e: Emit, a: Value, x: Value) -> Value:
    a = clamp_below(e, a, 8.0)
    deviance = e.add(_deviance(e, a, x), _stirling_error(e, a))
    return e.div(elementary.exp(e, e.neg(deviance)), e.sqrt(e.mul(a, 2 * math.pi)))


def _beta_front(e: Emit, a: Value, b: Value, x: Value, y: Value) -> Value:
    """x**a y**b / beta(a, b), for y = 1 - x."""
    n = e.add(a, b)
    errors = e.sub(e.sub(_stirling_error(e, n), _stirling_error(e, a)), _stirling_error(e, b))
    deviances = e.add(_deviance(e, a, e.mul(n, x)), _deviance(e, b, e.mul(n, y)))
    scale = e.sqrt(e.div(e.mul(a, e.div(b, n)), 2 * math.pi))
    return e.mul(scale, elementary.exp(e, e.sub(errors, deviances)))


# ---- gamma


_STEPS = 4  # of series and fractions between two divisions


def _power_of_two_below(e: Emit, x: Value) -> Value:
    """The largest power of two up to x, of a normal number."""
    return e.bitcast(e.and_(e.bitcast(x, dt.int64), 0x7FF << 52), x.dtype)


def _gamma_series(e: Emit, going: Value, a: Dual, x: Value) -> Dual:
    """1 + x / (a + 1) + x**2 / ((a + 1) (a + 2)) ..., some terms at once over their common denominator."""
    scale = e.div(1.0, _power_of_two_below(e, clamp_above(e, e.add(a.value, 1.0), 1e300)))
    scaled, base = Dual(e.mul(x, scale)), product(e, a, Dual(scale))
    square = product(e, scaled, scaled)
    last = product(e, square, square)
    one = with_slope(e, Dual(e.const(1.0, x.dtype, x.width)), a)

    def step(number: Value, total: Dual, term: Dual) -> tuple[list[Dual], Value]:
        done = e.mul(e.sub(number, 1.0), float(_STEPS))
        divisors = [product_plus(e, Dual(e.add(done, k + 1.0)), Dual(scale), base) for k in range(_STEPS)]
        below, above = divisors[-1], plus(e, scaled, divisors[-1])
        for k in range(_STEPS - 2, 0, -1):
            # Above stands the sum of the terms behind, below what is before the next.
            below = product(e, divisors[k], below)
            above = product_plus(e, scaled, above, below)
        ratio = quotient(e, term, product(e, divisors[0], below))
        following = product_plus(e, ratio, product(e, scaled, above), total)
        term = product(e, ratio, last)
        return [following, term], moves(e, term, following)

    return iterate(e, going, [one, one], step)[0]


def _gamma_fraction(e: Emit, going: Value, a: Dual, x: Value) -> Dual:
    """The continued fraction 1 / (x + 1 - a - (1 - a) / (x + 3 - a - 2 (2 - a) / ...)).

    It is found by the recurrence of its numerators and denominators: after some steps the last denominator is one again
    (Abramowitz and Stegun 3.10.1)."""
    one = Dual(e.const(1.0, x.dtype, x.width))
    scale = e.div(1.0, _power_of_two_below(e, clamp_above(e, clamp_below(e, x, 1.0), 1e300)))
    twice = e.mul(scale, 2.0)
    scaled = product(e, a, Dual(scale))
    left = Dual(e.sub(x, a.value), None if a.slope is None else e.neg(a.slope))  # x - a
    base = product(e, plus(e, left, one), Dual(scale))

    def step(number: Value, total: Dual, before: Dual, below: Dual, change: Dual) -> tuple[list[Dual], Value]:
        done = e.mul(e.sub(number, 1.0), float(_STEPS))
        above, denominator = total, one
        for k in range(_STEPS):
            n = e.add(done, k + 1.0)
            share = e.mul(n, scale)
            partial = product(e, Dual(share), plus(e, scaled, Dual(e.neg(share))))
            factor = product_plus(e, Dual(n), Dual(twice), base)
            above, before = product_plus(e, factor, above, product(e, partial, before)), above
            denominator, below = product_plus(e, factor, denominator, product(e, partial, below)), denominator
        inverse = quotient(e, one, denominator)
        following, before, below = (product(e, part, inverse) for part in (above, before, below))
        last, change = change, plus(e, following, product(e, total, Dual(e.neg(one.value))))
        change = Dual(e.abs(change.value), None if change.slope is None else e.abs(change.slope))
        return [following, before, below, change], settles(e, change, last, following)

    first = quotient(e, one, base)
    nothing = with_slope(e, Dual(e.zero(x.dtype)), a)
    far = Dual(e.const(math.inf, x.dtype, x.width), None if a.slope is None else e.const(math.inf, x.dtype, x.width))
    return product(e, iterate(e, going, [first, nothing, first, far], step)[0], Dual(scale))


def _inside_gamma(e: Emit, a: Value, x: Value) -> Value:
    """Where neither argument is an end of its domain or beyond."""
    finite = e.and_(e.lt(a, math.inf), e.lt(x, math.inf))
    return e.and_(e.and_(e.gt(a, 0.0), e.gt(x, 0.0)), finite)


def _gamma_both(e: Emit, a: Value, x: Value) -> tuple[Value, Value]:
    """The lower and the upper incomplete gamma function over gamma, ends of the domain included."""
    inside = _inside_gamma(e, a, x)
    huge = e.and_(inside, e.ge(a, _HUGE))
    inside = e.and_(inside, e.not_(huge))
    a_in, x_in = e.select(inside, a, 1.0), e.select(inside, x, 1.0)
    by_series = e.lt(x_in, e.add(a_in, 1.0))
    front = _gamma_front(e, a_in, x_in)
    lower = e.mul(front, _gamma_series(e, e.and_(inside, by_series), Dual(a_in), x_in).value)
    upper = e.mul(e.mul(front, a_in), _gamma_fraction(e, e.and_(inside, e.not_(by_series)), Dual(a_in), x_in).value)
    lower = e.select(by_series, lower, e.sub(1.0, upper))
    upper = e.select(by_series, e.sub(1.0, lower), upper)
    small = e.and_(e.lt(a_in, 0.5), e.lt(x_in, 1.1))
    upper = in_some_lanes(e, e.and_(inside, small), upper, _small_upper_gamma, a_in, x_in)
    lower, upper = e.rarely(huge, [lower, upper], "huge_gamma", _huge_gamma, a, x)
    nothing = e.or_(e.eq(x, 0.0), e.eq(a, math.inf))  # below x
    everything = e.or_(e.eq(a, 0.0), e.eq(x, math.inf))
    wrong = e.or_(e.or_(e.is_nan(a), e.is_nan(x)), e.or_(e.lt(a, 0.0), e.lt(x, 0.0)))
    wrong = e.or_(wrong, e.and_(nothing, everything))

    def with_ends(result: Value, none: float, all_: float) -> Value:
        result = e.select(nothing, none, e.select(everything, all_, result))
        return e.select(wrong, math.nan, result)

    return with_ends(lower, 0.0, 1.0), with_ends(upper, 1.0, 0.0)


_HUGE = 1e10  # where series and fractions take as many terms as its root


def _huge_gamma(e: Emit, a: Value, x: Value) -> tuple[Value, Value]:
    """Both of a huge parameter: nearly the normal distribution (Temme, The asymptotic expansion of the incomplete gamma
    functions, 1979)."""
    with e.strict():
        distance = e.div(e.sub(x, a), a)
        near = e.lt(e.abs(distance), 1e-3)
        d = e.select(near, distance, 0.0)
        close = e.mul(e.mul(a, e.mul(d, d)), polynomial(e, d, (1 / 2, -1 / 3, 1 / 4, -1 / 5, 1 / 6)))
        deviance = e.select(near, close, _deviance(e, a, x))
        correction = e.div(elementary.exp(e, e.neg(deviance)), e.sqrt(e.mul(e.div(a, 2.0), 4 * math.pi)))
        correction = e.mul(correction, e.fma(d, 1 / 12, -1 / 3))
        root = e.copysign(e.sqrt(deviance), distance)
        upper = e.fma(special_error.erfc(e, root), 0.5, correction)
        return e.sub(e.mul(special_error.erfc(e, e.neg(root)), 0.5), correction), upper


def _huge_gamma_da(e: Emit, a: Value, x: Value) -> tuple[Value, ...]:
    """The derivative of what ``_huge_gamma`` computes to its parameter.  Where it is not 0, x is near a."""
    with e.strict():
        distance = e.div(e.sub(x, a), a)
        near = e.lt(e.abs(distance), 1e-3)
        d = e.select(near, distance, 0.0)
        deviance = e.mul(e.mul(a, e.mul(d, d)), polynomial(e, d, (1 / 2, -1 / 3, 1 / 4, -1 / 5, 1 / 6)))
        front = e.div(elementary.exp(e, e.neg(deviance)), e.mul(e.sqrt(a), math.sqrt(2 * math.pi)))
        # log(x / a) over the root of 2 deviance / a, and the derivative of the correction
        main = polynomial(e, d, (1.0, -1 / 6, 1 / 12, -59 / 1080))
        logarithm = e.mul(d, polynomial(e, d, (1.0, -1 / 2, 1 / 3, -1 / 4)))
        share = e.fma(d, 1 / 12, -1 / 3)
        rest = e.div(e.fma(share, 0.5, e.div(e.add(d, 1.0), 12.0)), a)
        slope = e.sub(rest, e.fma(logarithm, share, main))
        return (e.select(near, e.mul(front, slope), 0.0),)


def _small_upper_gamma(e: Emit, a: Value, x: Value) -> Value:
    """1 - x**a / gamma(a + 1), plus the rest of an alternating series: exact where the lower function is nearly 1."""
    going = e.and_(e.lt(a, 0.5), e.lt(x, 1.1))
    a, x = clamp_above(e, a, 0.5), clamp_above(e, x, 1.1)
    exponent = e.sub(e.mul(a, elementary.log(e, x)), special_gamma.log_gamma_plus_one(e, a))

    def step(number: Value, total: Dual, power: Dual) -> tuple[list[Dual], Value]:
        following = Dual(e.div(e.neg(e.mul(power.value, x)), number))
        term = quotient(e, following, Dual(e.add(a, number)))
        added = plus(e, total, term)
        return [added, following], moves(e, term, added)

    start = [Dual(e.zero(a.dtype)), Dual(e.const(1.0, a.dtype, a.width))]
    rest = iterate(e, going, start, step)[0].value
    return e.sub(e.neg(elementary.expm1(e, exponent)), e.mul(e.mul(elementary.exp(e, exponent), a), rest))


@_elementary
@through_float64
def gammainc(e: Emit, a: Value, x: Value) -> Value:
    """The regularized lower incomplete gamma function."""
    return _gamma_both(e, a, x)[0]


@_elementary
@through_float64
def gammaincc(e: Emit, a: Value, x: Value) -> Value:
    """The regularized upper incomplete gamma function."""
    return _gamma_both(e, a, x)[1]


@_elementary
@through_float64
def gammainc_da(e: Emit, a: Value, x: Value) -> Value:
    """The derivative of gammainc to its parameter."""
    inside = _inside_gamma(e, a, x)
    huge = e.and_(inside, e.ge(a, _HUGE))
    regular = e.and_(inside, e.not_(huge))
    a_in, x_in = e.select(regular, a, 1.0), e.select(regular, x, 1.0)
    by_series = e.lt(x_in, e.add(a_in, 1.0))
    front = _gamma_front(e, a_in, x_in)
    slope = e.sub(elementary.log(e, x_in), special_gamma.digamma(e, e.add(a_in, 1.0)))
    parameter = Dual(a_in, e.const(1.0, a.dtype, a.width))
    series = _gamma_series(e, e.and_(regular, by_series), parameter, x_in)
    lower = e.mul(front, e.fma(series.value, slope, slope_of(e, series)))
    fraction = _gamma_fraction(e, e.and_(regular, e.not_(by_series)), parameter, x_in)
    # Before the fraction stands a times the front.
    upper = e.mul(front, e.fma(a_in, slope_of(e, fraction), e.mul(fraction.value, e.fma(a_in, slope, 1.0))))
    result = e.select(by_series, lower, e.neg(upper))
    (result,) = e.rarely(huge, [result], "huge_gamma_da", _huge_gamma_da, a, x)
    at_end = e.and_(e.or_(e.eq(x, 0.0), e.eq(x, math.inf)), e.and_(e.gt(a, 0.0), e.lt(a, math.inf)))
    return e.select(inside, result, e.select(at_end, e.zero(a.dtype), math.nan))


# ---- beta


def _beta_fraction(e: Emit, going: Value, a: Dual, b: Dual, x: Value) -> Dual:
    """1 / (1 + d1 / (1 + d2 / (1 + ...)))"""
    one = e.const(1.0, x.dtype, x.width)
    both = plus(e, a, b)

    def shifted(dual: Dual, number: Value) -> Dual:
        return Dual(e.add(dual.value, number), dual.slope)

    def partial(number: Value) -> Dual:
        """Of even numbers 2m: m (b - m) x / ((a + 2m - 1) (a + 2m)); of odd ones 2m + 1:
        -(a + m) (a + b + m) x / ((a + 2m) (a + 2m + 1))."""
        m = e.floor(e.mul(number, 0.5))
        middle = shifted(a, e.add(m, m))
        is_even = e.eq(e.add(m, m), number)
        factor = choose(e, is_even, Dual(m), product(e, Dual(e.neg(one)), shifted(a, m)))
        numerator = product(e, factor, choose(e, is_even, shifted(b, e.neg(m)), shifted(both, m)))
        beside = shifted(middle, e.select(is_even, e.neg(one), one))
        return product(e, Dual(x), quotient(e, numerator, product(e, middle, beside)))

    first = nonzero(e, plus(e, Dual(one), partial(one)))
    inverse = quotient(e, Dual(one), first)
    return lentz(e, going, inverse, Dual(one), inverse, lambda number: (partial(e.add(number, 1.0)), Dual(one)))


class _Beta(NamedTuple):
    """The arguments, exchanged where the fraction of the complement converges quickly."""

    inside: Value
    swapped: Value
    a: Value
    b: Value
    x: Value
    y: Value


def _beta_arguments(e: Emit, a: Value, b: Value, x: Value) -> _Beta:
    positive = e.and_(e.and_(e.gt(a, 0.0), e.lt(a, math.inf)), e.and_(e.gt(b, 0.0), e.lt(b, math.inf)))
    inside = e.and_(positive, e.and_(e.gt(x, 0.0), e.lt(x, 1.0)))
    a, b, x = e.select(inside, a, 1.0), e.select(inside, b, 1.0), e.select(inside, x, 0.5)
    y = e.sub(1.0, x)
    swapped = e.gt(x, e.div(e.add(a, 1.0), e.add(e.add(a, b), 2.0)))
    return _Beta(
        inside,
        swapped,
        e.select(swapped, b, a),
        e.select(swapped, a, b),
        e.select(swapped, y, x),
        e.select(swapped, x, y),
    )


def _beta_at_ends(e: Emit, a: Value, b: Value, x: Value, inside: Value, result: Value, at_one: float) -> Value:
    positive = e.and_(e.and_(e.gt(a, 0.0), e.lt(a, math.inf)), e.and_(e.gt(b, 0.0), e.lt(b, math.inf)))
    end = e.select(e.eq(x, 0.0), e.zero(x.dtype), e.select(e.eq(x, 1.0), e.const(at_one, x.dtype, x.width), math.nan))
    return e.select(inside, result, e.select(positive, end, math.nan))


@_elementary
@through_float64
def betainc(e: Emit, a: Value, b: Value, x: Value) -> Value:
    """The regularized incomplete beta function."""
    s = _beta_arguments(e, a, b, x)
    fraction = _beta_fraction(e, s.inside, Dual(s.a), Dual(s.b), s.x).value
    part = e.mul(e.div(_beta_front(e, s.a, s.b, s.x, s.y), s.a), fraction)
    return _beta_at_ends(e, a, b, x, s.inside, e.select(s.swapped, e.sub(1.0, part), part), 1.0)


@_elementary
@through_float64
def betainc_da(e: Emit, a: Value, b: Value, x: Value) -> Value:
    """The derivative of betainc to its first parameter; that to the second is by symmetry."""
    s = _beta_arguments(e, a, b, x)
    one, zero = e.const(1.0, a.dtype, a.width), e.zero(a.dtype)
    slope_a, slope_b = e.select(s.swapped, zero, one), e.select(s.swapped, one, zero)
    fraction = _beta_fraction(e, s.inside, Dual(s.a, slope_a), Dual(s.b, slope_b), s.x)
    front = e.div(_beta_front(e, s.a, s.b, s.x, s.y), s.a)
    # The logarithm of the front: s.a log(s.x) + s.b log(s.y) - log(beta(s.a, s.b)) - log(s.a)
    parameter, other = e.select(s.swapped, s.b, s.a), e.select(s.swapped, s.y, s.x)
    both = special_gamma.digamma(e, e.add(s.a, s.b))
    slope = e.add(elementary.log(e, other), e.sub(both, special_gamma.digamma(e, parameter)))
    slope = e.sub(slope, e.select(s.swapped, zero, e.div(1.0, s.a)))
    part = e.mul(front, e.fma(fraction.value, slope, slope_of(e, fraction)))
    return _beta_at_ends(e, a, b, x, s.inside, e.select(s.swapped, e.neg(part), part), 0.0)
