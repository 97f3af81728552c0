"""Elementary functions of complex numbers, of the real ones of their parts.

Values at infinities, NaN and signed zeros are those of Annex G of C99, which NumPy's have too; on branch cuts the sign
of a zero says which side is meant.  Where Annex G leaves a sign open, it is that of the formula here.

What is moderate is computed as it stands in textbooks, but for what cancels or overflows: logarithms near the unit
circle have their argument in twice the precision; products with an exponential that overflows are made in two steps;
inverse functions are Kahan's ("Branch cuts for complex elementary functions", 1987).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ops.complex_pairs import Pair

if TYPE_CHECKING:
    from hybridflow.compiler.ir.build import Builder


class Real:
    """A real value with Python's operators; numbers are constants of its dtype."""

    __slots__ = ("b", "node")

    def __init__(self, b: Any, node: Any) -> None:
        self.b, self.node = b, node

    def of(self, value: Any) -> Any:
        """A value, or a number as one like this, as the builder has it."""
        return value.node if isinstance(value, Real) else self.b.full(value, like=self.node.type)

    def constant(self, value: float) -> Real:
        """A number as a value like this one."""
        return Real(self.b, self.of(value))

    def _two(self, name: str, x: object, y: object) -> Real:
        return Real(self.b, getattr(self.b, name)(self.of(x), self.of(y)))

    def __add__(self, other: Any) -> Real:
        return self._two("add", self, other)

    def __radd__(self, other: Any) -> Real:
        return self._two("add", other, self)

    def __sub__(self, other: object) -> Real:
        return self._two("subtract", self, other)

    def __rsub__(self, other: object) -> Real:
        return self._two("subtract", other, self)

    def __mul__(self, other: object) -> Real:
        return self._two("multiply", self, other)

    __rmul__ = __mul__

    def __truediv__(self, other: object) -> Real:
        return self._two("divide", self, other)

    def __rtruediv__(self, other: object) -> Real:
        return self._two("divide", other, self)

    def __neg__(self) -> Real:
        return Real(self.b, self.b.negative(self.node))

    def __lt__(self, other: object) -> Real:
        return self._two("less", self, other)

    def __gt__(self, other: object) -> Real:
        return self._two("greater", self, other)

    def __ge__(self, other: object) -> Real:
        return self._two("greater_equal", self, other)

    def equals(self, other: object) -> Real:
        return self._two("equal", self, other)

    def __and__(self, other: Real) -> Real:
        return self._two("logical_and", self, other)

    def __or__(self, other: Real) -> Real:
        return self._two("logical_or", self, other)

    def __invert__(self) -> Real:
        return Real(self.b, self.b.logical_not(self.node))

    def __getattr__(self, name: str) -> Callable[..., Real]:
        """Any op, with this value as its first operand: ``x.copysign(y)``."""
        op = getattr(self.b, name)
        return lambda *others: Real(self.b, op(self.node, *map(self.of, others)))


class Z(NamedTuple):
    """A complex number, whose parts have operators."""

    re: Real
    im: Real


def _choose(condition: Real, x: Any, y: Any) -> Real:
    like = x if isinstance(x, Real) else y
    return Real(condition.b, condition.b.where(condition.node, like.of(x), like.of(y)))


def _choose_both(condition: Real, x: Z, y: Z) -> Z:
    return Z(_choose(condition, x.re, y.re), _choose(condition, x.im, y.im))


def _rule(function: Callable[[Z], Z]) -> Callable[[Any, Pair], Pair]:
    """A function of ``Z`` as a rule on pairs."""

    def rule(b: Builder, x: Pair) -> Pair:
        result = function(Z(Real(b, x.real), Real(b, x.imag)))
        return Pair(result.re.node, result.im.node)

    return rule


def _in_double(function: Callable[..., Z]) -> Callable[..., Z]:
    """A function of numbers that are float64 within: where float32 would lose digits that cost little to keep."""

    def of_any(*values: Z) -> Z:
        b, dtype = values[0].re.b, values[0].re.node.dtype
        if dtype == dt.float64:
            return function(*values)

        def converted(x: Real, to: Any) -> Real:
            return Real(b, b.convert(x.node, dtype=to))

        result = function(*[Z(*[converted(part, dt.float64) for part in z]) for z in values])
        return Z(*[converted(part, dtype) for part in result])

    return of_any


def _times_i(z: Z) -> Z:
    return Z(-z.im, z.re)


def _over_i(z: Z) -> Z:
    return Z(z.im, -z.re)


def _turned(function: Callable[[Z], Z]) -> Callable[[Z], Z]:
    """f(iz) / i: what the sine is of the hyperbolic sine."""
    return lambda z: _over_i(function(_times_i(z)))


# ---- exponentials

_STEP = {dt.float32: 64.0, dt.float64: 512.0}  # is subtracted exactly from numbers whose exponential may overflow
_LARGE = {dt.float32: 80.0, dt.float64: 700.0}


def _scaled_exp(x: Real) -> tuple[Real, Real]:
    """exp(x) as a product of two factors, so that a third one may keep it from overflowing."""
    dtype = x.node.dtype
    is_large = x > _LARGE[dtype]
    return _choose(is_large, x - _STEP[dtype], x).exp(), _choose(is_large, x.constant(math.exp(_STEP[dtype])), 1.0)


def _exp(z: Z) -> Z:
    x, y = z
    power, more = _scaled_exp(x)
    re, im = power * y.cos() * more, power * y.sin() * more
    is_endless = ~y.isfinite()
    re = _choose(is_endless & x.equals(math.inf), math.inf, re)
    im = _choose(y.equals(0.0), y, im)
    vanishes = is_endless & x.equals(-math.inf)
    return Z(_choose(vanishes, 0.0, re), _choose(vanishes, x.constant(0.0).copysign(y), im))


def _expm1(z: Z) -> Z:
    x, y = z
    half = (y * 0.5).sin()
    whole = _exp(z)
    near = x.expm1() * y.cos() - 2.0 * half * half
    re = _choose((x.abs() < 1.0) & y.isfinite(), near, whole.re - 1.0)
    return Z(_choose(y.equals(0.0), x.expm1(), re), whole.im)


# ---- logarithms


def _two_sum(a: Real, b: Real) -> tuple[Real, Real]:
    total = a + b
    back = total - a
    return total, (a - (total - back)) + (b - back)


def _squared(a: Real) -> tuple[Real, Real]:
    square = a * a
    return square, Real(a.b, a.b.multiply_add(a.node, a.node, (-square).node))


def _above_one(a: Real, b: Real) -> Real:
    """2 a + a * a + b * b, which is |1 + z| ** 2 - 1, with all its digits."""
    (square, rest), (other, more) = _squared(a), _squared(b)
    total, first = _two_sum(a + a, other)
    total, second = _two_sum(total, square)
    return total + (first + second + rest + more)


def _log_of_length(x: Real, y: Real) -> Real:
    x, y = x.abs(), y.abs()
    large, small = x.maximum(y), x.minimum(y)
    ratio = _choose(large.equals(0.0), 0.0, small / large)
    far = large.log() + 0.5 * (ratio * ratio).log1p()
    near = 0.5 * _above_one(large - 1.0, small).log1p()  # the subtraction is exact
    result = _choose((large > 0.5) & (large < 2.0), near, far)
    return _choose(large.isinf() | x.isinf() | y.isinf(), math.inf, result)


def _log(z: Z) -> Z:
    return Z(_log_of_length(*z), z.im.atan2(z.re))


def _log1p(z: Z) -> Z:
    x, y = z
    whole = x + 1.0
    is_near = (x.abs() < 0.5) & (y.abs() < 0.5)
    near = 0.5 * _above_one(_choose(is_near, x, 0.0), _choose(is_near, y, 0.0)).log1p()
    return Z(_choose(is_near, near, _log_of_length(whole, y)), y.atan2(whole))


def _scaled(function: Callable[[Z], Z], factor: float) -> Callable[[Z], Z]:
    def of(z: Z) -> Z:
        result = function(z)
        return Z(result.re * factor, result.im * factor)

    return of


# ---- roots and powers

_SCALES = {dt.float32: (2.0**126, 2.0**-100, 2.0**50), dt.float64: (2.0**1022, 2.0**-960, 2.0**108)}


def _sqrt(z: Z) -> Z:
    x, y = z
    huge, tiny, up = _SCALES[x.node.dtype]
    a, b = x.abs(), y.abs()
    is_huge, is_tiny = (a > huge) | (b > huge), (a < tiny) & (b < tiny)
    scale = _choose(is_huge, x.constant(0.25), _choose(is_tiny, x.constant(up), 1.0))
    back = _choose(is_huge, x.constant(2.0), _choose(is_tiny, x.constant(up**-0.5), 1.0))
    a, b = a * scale, b * scale
    root = (0.5 * (a + a.hypot(b))).sqrt()
    other = _choose(root.equals(0.0), 0.0, b / (root + root))
    is_right = x >= 0.0
    re, im = _choose(is_right, root, other) * back, _choose(is_right, other, root) * back
    im = im.copysign(y)
    # Infinities: of y whatever x is; of x the root, and on the other side a zero, but NaN where y is.
    x_inf = x.isinf()
    endless = Z(
        _choose(x > 0.0, x, _choose(y.isnan(), y, 0.0)),
        _choose(x > 0.0, _choose(y.isnan(), y, x.constant(0.0).copysign(y)), x.constant(math.inf).copysign(y)),
    )
    result = _choose_both(x_inf, endless, Z(re, _choose(x.isnan(), x, im)))
    result = Z(result.re, _choose(x.equals(0.0) & y.equals(0.0), y, result.im))
    return _choose_both(y.isinf(), Z(b.constant(math.inf), y), result)


def _times(a: Z, b: Z) -> Z:
    return Z(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re)


def _rsqrt(z: Z) -> Z:
    root = _sqrt(z)
    by_real = root.re.abs() >= root.im.abs()
    large, small = _choose(by_real, root.re, root.im), _choose(by_real, root.im, root.re)
    ratio = small / large
    below = large + small * ratio
    return Z(_choose(by_real, 1.0 / below, ratio / below), -_choose(by_real, ratio / below, 1.0 / below))


def _pow(z: Z, w: Z) -> Z:
    result = _exp(_times(w, _log(z)))
    base_zero, exponent_zero = z.re.equals(0.0) & z.im.equals(0.0), w.re.equals(0.0) & w.im.equals(0.0)
    grows = w.re > 0.0
    zero, nan = w.re.constant(0.0), w.re.constant(math.nan)
    of_zero = Z(_choose(grows, zero, nan), _choose(grows, zero, nan))
    return _choose_both(exponent_zero, Z(w.re.constant(1.0), zero), _choose_both(base_zero, of_zero, result))


def pow_rule(b: Builder, x: Pair, y: Pair) -> Pair:
    """exp(y log x); x to the 0 is 1, and powers of 0 need an exponent of positive real part, as in NumPy."""
    z, w = (Z(Real(b, v.real), Real(b, v.imag)) for v in (x, y))
    result = _in_double(_pow)(z, w)
    return Pair(result.re.node, result.im.node)


# ---- hyperbolic functions, and by them the trigonometric ones


def _sinh_and_cosh(x: Real) -> tuple[Real, Real, Real]:
    """sinh and cosh, each to be multiplied by a third factor that is not 1 where they overflow."""
    dtype = x.node.dtype
    is_large = x.abs() > _LARGE[dtype]
    reduced = _choose(is_large, x - x.constant(_STEP[dtype]).copysign(x), x)
    return reduced.sinh(), reduced.cosh(), _choose(is_large, x.constant(math.exp(_STEP[dtype])), 1.0)


def _sinh(z: Z) -> Z:
    x, y = z
    sinh, cosh, more = _sinh_and_cosh(x)
    re, im = sinh * y.cos() * more, cosh * y.sin() * more
    is_endless = ~y.isfinite()
    re = _choose(is_endless & (x.isinf() | x.equals(0.0)), x, re)
    re = _choose(y.equals(0.0), sinh * more, re)
    return Z(re, _choose(y.equals(0.0), y, im))


def _cosh(z: Z) -> Z:
    x, y = z
    sinh, cosh, more = _sinh_and_cosh(x)
    re, im = cosh * y.cos() * more, sinh * y.sin() * more
    is_endless = ~y.isfinite()
    re = _choose(is_endless & x.isinf(), math.inf, re)
    zero = x.constant(0.0).copysign(x) * x.constant(1.0).copysign(y)
    return Z(re, _choose(y.equals(0.0) | (is_endless & x.equals(0.0)), zero, im))


def _tanh(z: Z) -> Z:
    x, y = z
    is_large = x.abs() > (11.0 if x.node.dtype == dt.float32 else 22.0)
    tan, sinh = y.tan(), _choose(is_large, 0.0, x).sinh()
    beta = 1.0 + tan * tan
    below = 1.0 + beta * sinh * sinh
    re = beta * (1.0 + sinh * sinh).sqrt() * sinh / below
    far = 4.0 * y.sin() * y.cos() * (-2.0 * x.abs()).exp()
    far = _choose(x.isinf(), x.constant(0.0).copysign(_choose(y.isfinite(), far, y)), far)
    re, im = _choose(is_large, x.constant(1.0).copysign(x), re), _choose(is_large, far, tan / below)
    re = _choose(x.isnan(), x, _choose(x.equals(0.0), x, re))
    re = _choose(~y.isfinite() & ~x.isinf() & ~x.equals(0.0), math.nan, re)
    return Z(re, _choose(y.equals(0.0), y, im))


def _cos(z: Z) -> Z:
    return _cosh(_times_i(z))


# ---- inverse functions


def _one_minus(z: Z) -> Z:
    return Z(1.0 - z.re, -z.im)


def _one_plus(z: Z) -> Z:
    return Z(1.0 + z.re, z.im)


def _asin(z: Z) -> Z:
    x, y = z
    low, high = _sqrt(_one_minus(z)), _sqrt(_one_plus(z))
    re = x.atan2(low.re * high.re - low.im * high.im)
    im = (low.re * high.im - low.im * high.re).asinh()
    return _at_infinity(z, Z(re, im.copysign(y)), _angle_of(x, y.abs(), x))


def _angle_of(x: Real, y: Real, sign: Real) -> Real:
    """atan2 of numbers of which one is infinite."""
    return x.atan2(y).copysign(sign)


def _at_infinity(z: Z, result: Z, angle: Real) -> Z:
    """What a logarithm grows to: infinite where a part is, beside an angle; NaN where the other one is."""
    x, y = z
    is_inf = x.isinf() | y.isinf()
    endless = Z(angle, x.constant(math.inf).copysign(y))
    result = _choose_both(is_inf, endless, result)
    nan_im = ~is_inf & (x.isnan() | y.isnan())
    kept = nan_im & x.equals(0.0)
    return Z(_choose(nan_im, _choose(kept, x, math.nan), result.re), _choose(nan_im, math.nan, result.im))


def _asinh(z: Z) -> Z:
    return _times_i(_asin(_over_i(z)))


def _acos(z: Z) -> Z:
    x, y = z
    low, high = _sqrt(_one_minus(z)), _sqrt(_one_plus(z))
    re = 2.0 * low.re.atan2(high.re)
    im = (low.im * high.re - low.re * high.im).asinh()
    is_inf = x.isinf() | y.isinf()
    re = _choose(is_inf, y.abs().atan2(x), re)
    im = _choose(is_inf, -(x.constant(math.inf).copysign(y)), im.copysign(-y))
    is_nan = ~is_inf & (x.isnan() | y.isnan())
    re = _choose(is_nan, _choose(x.equals(0.0), x.constant(math.pi / 2), math.nan), re)
    return Z(re, _choose(is_nan, math.nan, im))


def _acosh(z: Z) -> Z:
    """What Annex G says: acos turned such that its real part is not negative."""
    angle = _acos(z)
    re = angle.im.abs()
    return Z(_choose(angle.re.isnan() & ~angle.im.isinf(), math.nan, re), angle.re.copysign(z.im))


def _atanh(z: Z) -> Z:
    x, y = z
    a, b = x.abs(), y.abs()
    away = 1.0 - a
    is_huge = (a > 1e8) | (b > 1e8) if x.node.dtype == dt.float32 else (a > 1e150) | (b > 1e150)
    near = 0.25 * (4.0 * a / (away * away + b * b)).log1p()
    near = _choose(away.equals(0.0) & (b < 1e-8), 0.5 * (2.0 / b).log(), near)  # where the square is 0
    # Far away 4 a / (a * a + b * b), of quotients that do not overflow.
    large, small = a.maximum(b), a.minimum(b)
    ratio = small / large
    far = _choose(large.isinf(), 0.0, a / large / (large * (1.0 + ratio * ratio)))
    re = _choose(is_huge, far, near)
    im = 0.5 * (2.0 * b).atan2(away * (1.0 + a) - b * b)
    im = _choose(is_huge, math.pi / 2, im)
    is_inf = x.isinf() | y.isinf()
    re = _choose(x.equals(0.0), a, _choose(is_inf, 0.0, re))
    im = _choose(y.isnan() | (x.isnan() & ~y.isinf()), math.nan, im)
    re = _choose(y.isnan() & ~x.isinf() & ~x.equals(0.0), math.nan, re)
    return Z(re.copysign(x), im.copysign(y))


# ---- the rules

exp, expm1 = _rule(_exp), _rule(_expm1)
log, log1p = _rule(_log), _rule(_log1p)
log2 = _rule(_scaled(_log, 1 / math.log(2)))
log10 = _rule(_scaled(_log, 1 / math.log(10)))
sqrt, rsqrt = _rule(_sqrt), _rule(_rsqrt)
sinh, cosh, tanh = _rule(_sinh), _rule(_cosh), _rule(_tanh)
sin, cos, tan = _rule(_turned(_sinh)), _rule(_cos), _rule(_turned(_tanh))
asin, acos, atan = _rule(_in_double(_asin)), _rule(_in_double(_acos)), _rule(_in_double(_turned(_atanh)))
asinh, acosh, atanh = _rule(_in_double(_asinh)), _rule(_in_double(_acosh)), _rule(_in_double(_atanh))
