"""``tf.math``'s special functions.  They are computed in float64, whatever comes in, and rounded once."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import hybridflow as hf
from hybridflow.compat.adapters.values import operand, operands
from hybridflow.compiler.ir import dtypes
from hybridflow.errors import DTypeError

_HALF_LOG_2_PI = 0.5 * math.log(2 * math.pi)
# By Bernoulli's numbers: Stirling's series, and those of its derivatives (Abramowitz, Stegun 6.1.41, 6.3.18, 6.4.12)
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400)
_DIGAMMA = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)
_TRIGAMMA = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)
_SHIFT = 9  # from where the series are as good as float64


def _in_float64(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """The function of floats of any width, computed in float64."""

    def call(*args: Any) -> Any:
        given = operands(args, range(len(args)))
        kind = next((x.dtype for x in given if hasattr(x, "dtype")), None)
        if kind is None or not dtypes.is_float(kind):
            raise DTypeError(f"math.{name}", f"the operand is {kind}; it must be a float.")
        return hf.astype(function(*[hf.astype(operand(x), dtypes.float64) for x in given]), kind)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = function.__doc__
    return call


def _series(x: Any, terms: tuple[float, ...]) -> Any:
    """The sum of ``terms[k] / x**(2 k)``."""
    square = 1.0 / (x * x)
    found: Any = terms[-1]
    for term in reversed(terms[:-1]):
        found = found * square + term
    return found


def _raised(x: Any) -> tuple[Any, Any]:
    """Where ``x`` is small the number ``_SHIFT`` above it, and where that is."""
    small = x < _SHIFT
    return hf.where(small, x + _SHIFT, x), small


def _sin_pi(x: Any) -> Any:
    """``sin(pi x)``, exactly 0 at integers."""
    rest = x - 2.0 * hf.round(x / 2.0)
    return hf.sin(math.pi * hf.where(hf.abs(rest) > 0.5, hf.sign(rest) - rest, rest))


@hf.custom_gradient
def _lgamma(x: Any) -> Any:
    """``tf.math.lgamma``: the logarithm of the absolute value of the gamma function."""
    mirrored = x < 0.5
    at, small = _raised(hf.where(mirrored, 1.0 - x, x))
    low = hf.where(small, at - _SHIFT, 1.0)
    product = low
    for k in range(1, _SHIFT):
        product = product * hf.where(small, low + k, 1.0)
    stirling = (at - 0.5) * hf.log(at) - at + _HALF_LOG_2_PI + _series(at, _STIRLING) / at
    found = hf.where(hf.isinf(at), at, stirling - hf.log(product))
    sine = hf.abs(_sin_pi(hf.where(mirrored, x, 0.5)))
    found = hf.where(mirrored, math.log(math.pi) - hf.log(sine) - found, found)
    return hf.where(hf.isinf(x), math.inf, found), lambda upstream: upstream * _digamma(x)


def _below(x: Any, step: Callable[[Any], Any], small: Any) -> Any:
    """The sum of ``step(x + k)`` over the numbers that ``_raised`` went over."""
    found: Any = 0.0
    for k in range(_SHIFT):
        found = found + hf.where(small, step(hf.where(small, x + k, 1.0)), 0.0)
    return found


@hf.custom_gradient
def _digamma(x: Any) -> Any:
    """``tf.math.digamma``: the derivative of ``lgamma``."""
    mirrored = x <= 0.0
    positive = hf.where(mirrored, 1.0 - x, x)
    at, small = _raised(positive)
    found = hf.log(at) - 0.5 / at - _series(at, _DIGAMMA) / (at * at) - _below(positive, hf.reciprocal, small)
    inside = hf.where(mirrored, x, 0.5)
    turned = found - math.pi * hf.cos(math.pi * (inside - hf.round(inside))) / _sin_of_rest(inside)
    found = hf.where(mirrored, hf.where(hf.floor(x) == x, math.nan, turned), found)
    return found, lambda upstream: upstream * _trigamma(x)


def _sin_of_rest(x: Any) -> Any:
    """``sin(pi r)`` of what ``x`` is above the next integer, 1 at integers: its cotangent is that of ``x``."""
    rest = x - hf.round(x)
    return hf.where(rest == 0, 1.0, hf.sin(math.pi * rest))


def _trigamma(x: Any) -> Any:
    mirrored = x <= 0.0
    positive = hf.where(mirrored, 1.0 - x, x)
    at, small = _raised(positive)
    found = (1.0 + 0.5 / at + _series(at, _TRIGAMMA) / (at * at)) / at
    found = found + _below(positive, lambda y: 1.0 / (y * y), small)
    turned = hf.square(math.pi / _sin_of_rest(hf.where(mirrored, x, 0.5))) - found
    return hf.where(mirrored, turned, found)


_TAIL = 64  # steps of the continued fraction, from 2 on


@hf.custom_gradient
def _erfc(x: Any) -> Any:
    """``tf.math.erfc``: ``1 - erf(x)``, as exact where that is small."""
    far = x > 2.0
    at = hf.where(far, hf.minimum(x, 1e3), 2.0)
    rest: Any = 0.0
    for k in range(_TAIL, 0, -1):  # Laplace's continued fraction
        rest = (k / 2) / (at + rest)
    tail = hf.exp(-at * at) / (math.sqrt(math.pi) * (at + rest))
    found = hf.where(far, tail, 1.0 - hf.erf(x))
    return found, lambda upstream: upstream * (-2 / math.sqrt(math.pi)) * hf.exp(-x * x)


def _first_guess(y: Any, rest: Any) -> Any:
    """Of ``erfinv`` (Winitzki), good to 2e-3; ``rest`` is ``1 - abs(y)``."""
    log = hf.log(rest) + hf.log1p(hf.abs(y))
    first = 2 / (math.pi * 0.147) + log / 2
    return hf.sign(y) * hf.sqrt(hf.maximum(hf.sqrt(first * first - log / 0.147) - first, 0.0))


@hf.custom_gradient
def _erfinv(y: Any) -> Any:
    """``tf.math.erfinv``."""
    found = _inverse(y, 1.0 - hf.abs(y))
    return found, lambda upstream: upstream * (math.sqrt(math.pi) / 2) * hf.exp(found * found)


def _inverse(y: Any, rest: Any) -> Any:
    """``erfinv(y)``, where ``rest``, which is ``1 - abs(y)``, says more than ``y`` does near 1."""
    inside = rest > 0
    left = hf.where(inside, rest, 1.0)
    at = hf.where(inside, y, 0.0)
    x = hf.stop_gradient(_first_guess(at, left))  # which has no derivative at 0; that of the result is of the steps
    near = left > 0.5
    far = left < 1e-3
    for _ in range(3):  # Halley's method; what is far out by Newton's, of logarithms
        tail = _erfc(hf.abs(x))
        error = hf.where(near, at - hf.erf(x), hf.sign(x) * (tail - left))
        step = hf.where(far, 0.0, error * hf.exp(hf.where(far, 0.0, x * x)) * (math.sqrt(math.pi) / 2))
        by_log = hf.log(tail / left) * tail * hf.exp(hf.where(far, x * x, 0.0)) * (math.sqrt(math.pi) / 2)
        x = x + hf.where(far, hf.sign(x) * by_log, step / (1.0 - x * step))
    return hf.where(inside, x, hf.where(rest == 0, hf.sign(y) * math.inf, math.nan))


@hf.custom_gradient
def _erfcinv(x: Any) -> Any:
    """``tf.math.erfcinv``."""
    found = _inverse(1.0 - x, hf.minimum(x, 2.0 - x))
    return found, lambda upstream: upstream * (-math.sqrt(math.pi) / 2) * hf.exp(found * found)


def _ndtri(p: Any) -> Any:
    """``tf.math.ndtri``: the quantiles of the normal distribution."""
    return 0.0 - math.sqrt(2) * _erfcinv(2.0 * p)


def _xlog1py(x: Any, y: Any) -> Any:
    """``tf.math.xlog1py``: ``x * log(1 + y)``, 0 where ``x`` is."""
    none = hf.equal(x, 0)
    return hf.where(none, 0.0, x * hf.log1p(hf.where(none, 0.0, y)))


lgamma, digamma = _in_float64(_lgamma, "lgamma"), _in_float64(_digamma, "digamma")
erfc, erfinv, erfcinv = _in_float64(_erfc, "erfc"), _in_float64(_erfinv, "erfinv"), _in_float64(_erfcinv, "erfcinv")
ndtri, xlog1py = _in_float64(_ndtri, "ndtri"), _in_float64(_xlog1py, "xlog1py")


def lbeta(x: Any, name: str | None = None) -> Any:
    """``tf.math.lbeta``: the logarithm of the beta function, along the last axis."""
    value = operand(x)
    return hf.sum(lgamma(value), axis=-1) - lgamma(hf.sum(value, axis=-1))


def log_poisson_loss(targets: Any, log_input: Any, compute_full_loss: bool = False, name: str | None = None) -> Any:
    """``tf.nn.log_poisson_loss``."""
    z, c = operands([targets, log_input], [0, 1])
    found = hf.exp(c) - c * z
    if not compute_full_loss:
        return found
    over = hf.where(z > 1, z, 1.0)
    stirling = over * hf.log(over) - over + 0.5 * hf.log(2 * math.pi * over)
    return found + hf.where(z > 1, stirling, 0.0)


def cumulative_logsumexp(
    x: Any, axis: int = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> Any:
    """``tf.math.cumulative_logsumexp``."""
    value = operand(x)
    value = hf.flip(value, axis=axis) if reverse else value
    found = hf.associative_scan(hf.logaddexp, value, axis=axis)
    if exclusive:
        first = hf.full_like(hf.take(found, np.array([0]), axis=axis), -math.inf)
        kept = hf.take(found, hf.arange(value.shape[axis] - 1), axis=axis)
        found = hf.concat([first, kept], axis=axis)
    return hf.flip(found, axis=axis) if reverse else found


def _bessel(order: int, x: Any) -> Any:
    """The modified Bessel function of an order, times ``exp(-|x|)``: by the trapezoidal rule of its integral over half
    a turn, whose error falls faster than any power; for large ``x``, where that is narrow, by Hankel's series
    (Abramowitz, Stegun 9.7.1)."""
    angles = (np.arange(256) + 0.5) * (math.pi / 512)  # and those beyond a quarter, which are had with them
    weights = np.cos(order * angles) / 512
    size = hf.abs(x)
    both = [_scaled_power(hf.expand_dims(x, axis=-1), sign * np.cos(angles), order) for sign in (1.0, -1.0)]
    found = hf.sum((both[0] - both[1] if order % 2 else both[0] + both[1]) * weights, axis=-1)
    large = hf.where(size > 1e3, size, 1e3)
    term: Any = 1.0
    total: Any = 1.0
    for k in range(1, 6):
        term = term * ((2 * k - 1) ** 2 - 4 * order * order) / (8.0 * k * large)
        total = total + term
    far = total / hf.sqrt(2 * math.pi * large)
    return hf.where(size > 1e3, far * hf.sign(x) if order else far, found)


def _scaled_power(x: Any, cosines: Any, order: int) -> Any:
    """``exp(x * cosines - |x|)``, less 1 for a higher order, whose weights add up to 0: a small sum keeps its digits.

    |x| has no derivative at 0, where those of the rest have to be right: it stands alone, and not before a cosine.
    """
    exponent = x * cosines - hf.abs(x)
    exact = hf.where(x < 0, x * (cosines + 1.0), x * (cosines - 1.0))
    return (hf.expm1 if order else hf.exp)(exponent + hf.stop_gradient(exact - exponent))


def _bessel_i0e(x: Any) -> Any:
    """``tf.math.bessel_i0e``: the modified Bessel function of order 0, times ``exp(-|x|)``."""
    return _bessel(0, x)


def _bessel_i1e(x: Any) -> Any:
    """``tf.math.bessel_i1e``: the modified Bessel function of order 1, times ``exp(-|x|)``."""
    return _bessel(1, x)


bessel_i0e, bessel_i1e = _in_float64(_bessel_i0e, "bessel_i0e"), _in_float64(_bessel_i1e, "bessel_i1e")


def bessel_i0(x: Any, name: str | None = None) -> Any:
    """``tf.math.bessel_i0``."""
    value = operand(x)
    return bessel_i0e(value) * hf.exp(hf.abs(value))


def bessel_i1(x: Any, name: str | None = None) -> Any:
    """``tf.math.bessel_i1``."""
    value = operand(x)
    return bessel_i1e(value) * hf.exp(hf.abs(value))
