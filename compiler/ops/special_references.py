"""What the special functions mean, number by number: sums and integrals in the longest float that NumPy has.

Nothing here shares a method with the kernels, but for the recurrences of the incomplete functions: sums go further
out, Bessel functions are integrals by the trapezoidal rule (of periodic integrands, hence exact to all digits), and
inverses are roots by Newton's method.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

_Long = np.longdouble
_PI = _Long(3) + _Long(141592653589793238) / _Long(10) ** 18 + _Long(46264338327950288) / _Long(10) ** 35
_SQRT_PI = np.sqrt(_PI)
_BERNOULLI = (1 / _Long(6), -1 / _Long(30), 1 / _Long(42), -1 / _Long(30), 5 / _Long(66), -691 / _Long(2730))
_FAR = 40  # from here on asymptotic series have all digits with the terms above


def of_arrays(name: str, *arrays: np.ndarray) -> np.ndarray:
    """The function of that name, for arrays."""
    function = globals().get(name) or getattr(math, name)
    at_once = np.frompyfunc(lambda *x: float(function(*map(float, x))), len(arrays), 1)
    with np.errstate(all="ignore"):
        return np.asarray(at_once(*arrays), np.float64)


def _is_whole(x: float) -> bool:
    return math.isinf(x) or x == math.floor(x)


# ---- gamma


def log_gamma(x: float) -> float:
    if x == -math.inf or (x <= 0 and _is_whole(x)):
        return math.inf
    try:
        return math.lgamma(x)
    except OverflowError:
        return math.inf


def gamma(x: float) -> float:
    if x == 0:
        return math.copysign(math.inf, x)
    if x == -math.inf or (x < 0 and _is_whole(x)):
        return math.nan
    try:
        return math.gamma(x)
    except OverflowError:
        return math.copysign(math.inf, x)


def digamma(x: float) -> Any:
    if x == 0:
        return -math.copysign(math.inf, x)
    if x == -math.inf or (x < 0 and _is_whole(x)):
        return math.nan
    if x < 0:
        rest = _PI * (_Long(x) - round(x))
        return _digamma(1 - _Long(x)) - _PI * np.cos(rest) / np.sin(rest)
    return x if x in (math.inf,) or x != x else _digamma(_Long(x))


def _digamma(x: Any) -> Any:
    total = _Long(0)
    while x < _FAR:
        total -= 1 / x
        x += 1
    series = sum(b / (2 * k * x ** (2 * k)) for k, b in enumerate(_BERNOULLI, 1))
    return total + np.log(x) - 1 / (2 * x) - series


def trigamma(x: float) -> Any:
    if x == -math.inf or (x <= 0 and _is_whole(x)):
        return math.inf
    if x < 0:
        return (_PI / np.sin(_PI * (_Long(x) - round(x)))) ** 2 - _trigamma(1 - _Long(x))
    return x if x != x else 0.0 if x == math.inf else _trigamma(_Long(x))


def _trigamma(x: Any) -> Any:
    total = _Long(0)
    while x < _FAR:
        total += 1 / x**2
        x += 1
    return total + 1 / x + 1 / (2 * x**2) + sum(b / x ** (2 * k + 1) for k, b in enumerate(_BERNOULLI, 1))


def zeta(s: float, q: float) -> Any:
    if s != s or q != q:
        return math.nan
    if q == math.inf and s > 1:
        return 0.0
    if q <= 0:
        return math.inf if _is_whole(q) else math.nan
    if s <= 1:
        return math.inf if s == 1 else math.nan
    if s == math.inf:
        return math.inf if q < 1 else 1.0 if q == 1 else 0.0
    long, at = _Long(s), _Long(q) + _FAR
    total = sum((_Long(q) + k) ** -long for k in range(_FAR))
    power = at**-long
    if power == 0:
        return total
    total += power * (at / (long - 1) + _Long(0.5))
    factor = long / at
    for k, b in enumerate(_BERNOULLI, 1):
        total += power * factor * b / math.factorial(2 * k)
        factor *= (long + 2 * k - 1) * (long + 2 * k) / at**2
    return total


# ---- error


def erfcx(x: float) -> Any:
    if x != x:
        return x
    if x < 10:
        return 2 * np.exp(_Long(x) ** 2) - erfcx(-x) if x < -1 else np.exp(_Long(x) ** 2) * math.erfc(x)
    square = 2 * _Long(x) ** 2
    total = term = _Long(1)
    for k in range(1, 30):
        term *= -(2 * k - 1) / square
        total += term
    return total / (_Long(x) * _SQRT_PI)


def erfcinv(p: float) -> float:
    if not 0 < p < 2:
        return math.inf if p == 0 else -math.inf if p == 2 else math.nan
    if p > 1:
        return -erfcinv(2 - p)
    if p > 0.5:
        return erfinv(1 - p)
    y = math.sqrt(-math.log(p))
    for _ in range(20):  # Newton's method for the logarithm, which is nearly a parabola
        scaled = erfcx(y)
        y += float((np.log(scaled) - _Long(y) ** 2 - np.log(_Long(p))) * scaled * _SQRT_PI / 2)
    return y


def erfinv(x: float) -> float:
    if x != x or abs(x) >= 1:
        return math.copysign(math.inf, x) if abs(x) == 1 else math.nan
    if abs(x) > 0.5:
        return math.copysign(erfcinv(1 - abs(x)), x)
    y = x * math.sqrt(math.pi) / 2
    for _ in range(8):
        y -= (math.erf(y) - x) * math.exp(y * y) * math.sqrt(math.pi) / 2
    return y


# ---- Bessel

_POINTS = 400
_ANGLES = (np.arange(_POINTS).astype(_Long) + _Long(0.5)) * _PI / _POINTS


def _asymptotic(order: int, x: Any, sign: int) -> tuple[Any, Any]:
    """The even and the odd terms of 1 + sign * (4 n**2 - 1) / (8 x) + ..."""
    even, odd, term = _Long(1), _Long(0), _Long(1)
    for k in range(1, 24):
        term *= sign * (4 * order**2 - (2 * k - 1) ** 2) / (k * 8 * x)
        if k % 2:
            odd += term
        else:
            even += term
    return even, odd


def _j(order: int) -> Callable[[float], Any]:
    def value(x: float) -> Any:
        if x != x:
            return x
        size = _Long(abs(x))
        if size == math.inf:
            return 0.0
        if size < _FAR:
            value = np.mean(np.cos(order * _ANGLES - size * np.sin(_ANGLES)))
            if order and size < 0.5:  # where the integral has lost its digits
                value = sum(
                    (-1) ** k * (size / 2) ** (2 * k + 1) / math.factorial(k) / math.factorial(k + 1) for k in range(12)
                )
        else:
            # The signs of the terms go + + - -.
            p, q, term = _Long(1), _Long(0), _Long(1)
            for k in range(1, 24):
                term *= (4 * order**2 - (2 * k - 1) ** 2) / (k * 8 * size)
                if k % 2:
                    q += term * (1 if k % 4 == 1 else -1)
                else:
                    p += term * (1 if k % 4 == 0 else -1)
            sine, cosine = np.sin(size), np.cos(size)
            if order:
                value = (p * (sine - cosine) + q * (sine + cosine)) / np.sqrt(_PI * size)
            else:
                value = (p * (sine + cosine) - q * (sine - cosine)) / np.sqrt(_PI * size)
        return -value if order and math.copysign(1, x) < 0 else value

    return value


def _ie(order: int) -> Callable[[float], Any]:
    def value(x: float) -> Any:
        if x != x:
            return x
        size = _Long(abs(x))
        if size < _FAR:
            value = np.mean(np.exp(size * (np.cos(_ANGLES) - 1)) * np.cos(order * _ANGLES))
            if order and size < 0.5:
                series = sum((size / 2) ** (2 * k + 1) / math.factorial(k) / math.factorial(k + 1) for k in range(12))
                value = series * np.exp(-size)
        else:
            value = sum(_asymptotic(order, size, -1)) / np.sqrt(2 * _PI * size)
        return -value if order and math.copysign(1, x) < 0 else value

    return value


def _ke(order: int) -> Callable[[float], Any]:
    steps = np.arange(1, 4000).astype(_Long) / 200

    def value(x: float) -> Any:
        if not x > 0:
            return math.inf if x == 0 else math.nan
        long = _Long(x)
        if long > _FAR:
            return sum(_asymptotic(order, long, 1)) * np.sqrt(_PI / (2 * long))
        if long < 1e-6:  # the first terms of its series, with Euler's constant
            if order:
                return (
                    1 / long
                    + 1
                    + long * (np.log(long / 2) + _Long("0.5772156649015328606") - _Long(0.5)) / 2
                    + long / 2
                )
            return -(np.log(long / 2) + _Long("0.5772156649015328606")) * (1 + long)
        integrand = np.exp(-long * 2 * np.sinh(steps / 2) ** 2) * (np.cosh(steps) if order else 1)
        return (np.sum(integrand) + _Long(0.5)) / 200

    return value


bessel_j0, bessel_j1, bessel_i0e, bessel_i1e, bessel_k0e, bessel_k1e = (f(n) for f in (_j, _ie, _ke) for n in (0, 1))


# ---- integrals, and an inverse

_EULER = _Long("0.5772156649015328606065")


def expi(x: float) -> Any:
    if x != x or math.isinf(x) or x == 0:
        return 0.0 if x == -math.inf else -math.inf if x == 0 else x
    long = _Long(x)
    if -2 < x < 60:
        total, term, k = _EULER + np.log(abs(long)), _Long(1), 0
        while k < 2 * abs(x) + 60:
            k += 1
            term *= long / k
            total += term / k
        return total
    if x < 0:  # Gauss's continued fraction, from its end
        fraction = _Long(0)
        for k in range(400, 0, -1):
            fraction = k / (1 + k / (-long + fraction))
        return -np.exp(long) / (-long + fraction)
    total = term = _Long(1)
    for k in range(1, 40):
        term *= k / long
        total += term
    return np.exp(long) / long * total


def spence(x: float) -> Any:
    if not x >= 0 or x == math.inf:
        return math.nan if x != x or x < 0 else -math.inf
    long = _Long(x)
    if x > 1.25:
        return -(np.log(long) ** 2) / 2 - _dilogarithm(1 - 1 / long)
    return _dilogarithm(1 - long)


def _dilogarithm(w: Any) -> Any:
    if w > 0.5:
        rest = 1 - w
        return _PI**2 / 6 - (np.log(rest) * np.log(w) if rest else 0) - _dilogarithm(rest)
    return sum(w**k / k**2 for k in range(1, 80))


def lambertw(x: float) -> Any:
    if x != x or x == math.inf or x == 0:
        return x
    long = _Long(x)
    distance = 1 + long * np.exp(_Long(1))
    if distance < 0:
        return math.nan
    w = np.log1p(long) if x > 0 else -1 + np.sqrt(2 * distance) * (1 - np.sqrt(2 * distance) / 3)
    for _ in range(100):
        if w <= -1:
            return w
        if x > 1e3:
            w -= (w + np.log(w) - np.log(long)) * w / (w + 1)
        else:
            w -= (w - long * np.exp(-w)) / (w + 1)
    return w


# ---- incomplete functions

_MOST = 5_000  # terms: what has more of them is close to a limit, or no number that a test may ask for


def gammainc(a: float, x: float) -> Any:
    return _gamma_parts(a, x)[0]


def gammaincc(a: float, x: float) -> Any:
    return _gamma_parts(a, x)[1]


def _gamma_parts(a: float, x: float) -> tuple[Any, Any]:
    if not (a >= 0 and x >= 0) or (a == 0 and x == 0) or (a == math.inf and x == math.inf):
        return math.nan, math.nan
    if x == 0 or a == math.inf:
        return 0.0, 1.0
    if a == 0 or x == math.inf:
        return 1.0, 0.0
    front = _gamma_front(a, x)
    if x < a + 1:
        total = term = _Long(1)
        k = 0
        while term > total * _Long(1e-21) and k < _MOST:
            k += 1
            term *= x / (_Long(a) + k)
            total += term
        return front * total, 1 - front * total
    fraction = _Long(0)
    for k in range(_MOST if x < 4 * a + 60 else 200, 0, -1):
        fraction = k * (_Long(a) - k) / (_Long(x) + 2 * k + 1 - _Long(a) + fraction)
    upper = front * a / (_Long(x) + 1 - _Long(a) + fraction)
    return 1 - upper, upper


def _gamma_front(a: float, x: float) -> Any:
    """x**a exp(-x) / gamma(a + 1)"""
    shifted, factor = _Long(a) + 1, _Long(1)
    while shifted < _FAR:
        factor *= shifted
        shifted += 1
    series = sum(b / (2 * k * (2 * k - 1) * shifted ** (2 * k - 1)) for k, b in enumerate(_BERNOULLI, 1))
    log_gamma = (shifted - _Long(0.5)) * np.log(shifted) - shifted + np.log(2 * _PI) / 2 + series - np.log(factor)
    return np.exp(_Long(a) * np.log(_Long(x)) - x - log_gamma)


def gammainc_da(a: float, x: float) -> Any:
    """The series of gammainc, differentiated term by term."""
    if not (0 < a < math.inf and x >= 0):
        return math.nan
    if x == 0 or x == math.inf:
        return 0.0
    term, total, k = _gamma_front(a, x), _Long(0), 0
    slope = np.log(_Long(x)) - _digamma(_Long(a) + 1)
    while k < _MOST and (k < x + 10 or abs(term * slope) > abs(total) * _Long(1e-21)):
        total += term * slope
        k += 1
        term *= x / (_Long(a) + k)
        slope -= 1 / (_Long(a) + k)
    return total


def betainc(a: float, b: float, x: float) -> Any:
    if not (0 < a < math.inf and 0 < b < math.inf and 0 <= x <= 1):
        return math.nan
    if x in (0, 1):
        return x
    return _beta_series(a, b, x, False)


def betainc_da(a: float, b: float, x: float) -> Any:
    if not (0 < a < math.inf and 0 < b < math.inf and 0 <= x <= 1):
        return math.nan
    return 0.0 if x in (0, 1) else _beta_series(a, b, x, True)


def _beta_series(a: float, b: float, x: float, differentiated: bool) -> Any:
    """x**a (1 - x)**b / (a beta(a, b)) times the sum of (a + b) ... (a + b + k - 1) / ((a + 1) ... (a + k)) x**k, of
    positive terms."""
    long_a, long_b, long_x = _Long(a), _Long(b), _Long(x)
    log_front = long_a * np.log(long_x) + long_b * np.log1p(-long_x) - _log_beta(long_a, long_b) - np.log(long_a)
    slope = np.log(long_x) + _digamma(long_a + long_b) - _digamma(long_a) - 1 / long_a
    term, total, k = np.exp(log_front), _Long(0), 0
    while k < 100 or (k < _MOST and term * (1 + abs(slope)) > abs(total) * _Long(1e-21)):
        total += term * slope if differentiated else term
        k += 1
        term *= (long_a + long_b + k - 1) / (long_a + k) * long_x
        slope += 1 / (long_a + long_b + k - 1) - 1 / (long_a + k)
    return total


def _log_beta(a: Any, b: Any) -> Any:
    """By the recurrence, up to where Stirling's series has all digits."""
    total = _Long(0)
    while a < _FAR:
        total += np.log((a + b) / a)
        a += 1
    while b < _FAR:
        total += np.log((a + b) / b)
        b += 1

    def rest(y: Any) -> Any:
        return sum(c / (2 * k * (2 * k - 1) * y ** (2 * k - 1)) for k, c in enumerate(_BERNOULLI, 1))

    n = a + b
    logs = (a - _Long(0.5)) * np.log(a / n) + (b - _Long(0.5)) * np.log(b / n) - np.log(n) / 2
    return total + logs + np.log(2 * _PI) / 2 + rest(a) + rest(b) - rest(n)
