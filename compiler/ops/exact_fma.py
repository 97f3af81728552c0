"""Fused multiply-add in NumPy, rounded once, of which the references of summation orders are made."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from hybridflow.compiler.ir import dtypes as dt

_SMALLEST = 2.0**-126  # the least normal float32
_BEYOND = (1 << 29) - 1  # the bits of a float64 that a float32 does not have
_HALF = 1 << 28  # these bits of a number in the middle between two of float32


def fma(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """a b + c, rounded once, for arrays of one dtype, float32 or float64, that broadcast."""
    with np.errstate(all="ignore"):
        return _fma_single(a, b, c) if a.dtype == dt.float32 else _fma_double(a, b, c)


def _fma_single(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Rounded to float64 and again to float32.  That is another number than rounding once only where the first result
    lies in the middle between two of float32, which denormal ones do elsewhere: there it is rounded to odd."""
    product, c = np.multiply(a, b, dtype=np.float64), c.astype(np.float64)
    total = np.asarray(product + c)
    doubtful = (np.ascontiguousarray(total).view(np.int64).reshape(total.shape) & _BEYOND) == _HALF
    doubtful |= np.abs(total) < 2 * _SMALLEST
    if doubtful.any():
        product, c = (np.broadcast_to(x, total.shape)[doubtful] for x in (product, c))
        total[doubtful] = _rounded_to_odd(product, c)
    return total.astype(np.float32)


def fma_flushed(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """``fma`` in float32 to which denormal numbers are zeros of their sign.  A result counts as denormal when it would
    be too small with the exponent unbounded, that is after rounding to 24 bits."""
    a, b, c = (flushed(x) for x in (a, b, c))
    with np.errstate(all="ignore"):
        total = _sum_to_odd(a, b, c)
        tiny = np.abs(total) < _SMALLEST * (1 - 2.0**-25)
        return np.where(tiny, np.copysign(0.0, total), total).astype(np.float32)


def flushed(x: np.ndarray) -> np.ndarray:
    """Denormal float32 numbers as zeros of their sign."""
    return np.where(np.abs(x) < np.float32(_SMALLEST), np.copysign(np.float32(0), x), x)


def _sum_to_odd(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """a b + c of float32 numbers, in float64 and rounded to odd, so that rounding again to float32 rounds rightly."""
    product, c = np.multiply(a, b, dtype=np.float64), c.astype(np.float64)
    return _rounded_to_odd(product, c)


def _rounded_to_odd(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a + b in float64; where that is not exact, of its two neighbours the one whose last bit is set."""
    total, error = _two_sum(a, b)
    bits = np.ascontiguousarray(total).view(np.int64)
    inexact = np.isfinite(total) & (error != 0) & (bits & 1 == 0)
    outwards = (error > 0) == (total > 0)
    return np.where(inexact, bits + np.where(outwards, 1, -1), bits).view(np.float64).reshape(total.shape)


def _two_sum(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rounded sum, and what rounding took away."""
    total = np.asarray(a + b)
    other = total - a
    return total, np.asarray((a - (total - other)) + (b - other))


def two_product(a: Any, b: Any) -> tuple[Any, Any]:
    """The rounded product, and what rounding took away, where nothing over- or underflows (Dekker)."""
    (a_high, a_low), (b_high, b_low) = _halves(a), _halves(b)
    product = a * b
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def _halves(x: Any) -> tuple[Any, Any]:
    scaled = x * (2.0**27 + 1)
    high = scaled - (scaled - x)
    return high, x - high


def _fma_double(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Sums of a product's two halves and c, the small ones rounded to odd; exactly where exponents are extreme."""
    a, b, c = (np.ascontiguousarray(x) for x in np.broadcast_arrays(a, b, c))
    product, low = two_product(a, b)
    plain = np.where(np.isfinite(a) & np.isfinite(b) & ~np.isfinite(c), c, product + c)  # no product is infinite
    small, smaller = _two_sum(c, low)
    high, rest = _two_sum(product, small)
    out = high + _rounded_to_odd(smaller, rest)
    simple = ~np.isfinite(a) | ~np.isfinite(b) | ~np.isfinite(c) | (a == 0) | (b == 0)
    safe = [(np.abs(x) > 2.0**-450) & (np.abs(x) < 2.0**450) for x in (a, b)]
    safe.append((c == 0) | (np.abs(c) > 2.0**-800) & (np.abs(c) < 2.0**1000))
    out = np.where(simple, plain, out)
    for place in zip(*np.nonzero(~simple & ~np.logical_and.reduce(safe))):
        out[place] = _rounded(Fraction(a[place]) * Fraction(b[place]) + Fraction(c[place]))
    return out


def _rounded(exact: Fraction) -> float:
    try:
        return exact.numerator / exact.denominator
    except OverflowError:
        return float("inf") if exact > 0 else float("-inf")
