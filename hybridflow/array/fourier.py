"""Fourier transforms of arrays whose complex numbers are pairs of real ones along the last axis.

What is public is made of these.  Real transforms of an even number of elements are complex ones of half as many.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from hybridflow.array.elementwise import where
from hybridflow.array.shapes import concat, flip, known_extent, pad, slice_axis, stack
from hybridflow.compiler.ops import TABLE
from hybridflow.core.tensor import Tensor
from hybridflow.eager.dispatch import apply
from hybridflow.eager.operands import literal, reshape_to


def fft(x: Tensor, axis: int, *, inverse: bool = False, scale: float = 1.0) -> Tensor:
    """The transform of pairs along an axis that is not the last."""
    (found,) = apply(TABLE["fft"], x, axis=axis, inverse=inverse, scale=scale)
    return found


def parts(x: Tensor) -> tuple[Tensor, Tensor]:
    """The real and the imaginary parts of pairs."""
    front = x.shape[:-1]
    last = x.ndim - 1
    return reshape_to(slice_axis(x, last, 0, 1), front), reshape_to(slice_axis(x, last, 1, 2), front)


def pairs(real: Tensor, imaginary: Tensor) -> Tensor:
    """The pairs of these parts."""
    return stack([real, imaginary], axis=-1)


def times(x: tuple[Any, Any], y: tuple[Any, Any]) -> tuple[Any, Any]:
    """The product of complex numbers in parts."""
    return x[0] * y[0] - x[1] * y[1], x[0] * y[1] + x[1] * y[0]


@functools.lru_cache(256)
def _roots(count: int, of: int, dtype: np.dtype[Any], odd: bool) -> tuple[np.ndarray, np.ndarray]:
    k = np.arange(count)
    return unit_roots(2 * k + 1 if odd else k, of, dtype)


def unit_roots(k: np.ndarray, of: int, dtype: np.dtype[Any]) -> tuple[np.ndarray, np.ndarray]:
    """cos and sin of 2 pi k / ``of``, each rounded once.  Angles within an eighth of a turn alone are computed, so that
    what is symmetric has the same bits."""
    k = k.astype(np.int64) % of
    quarter = (8 * k + of) // (2 * of)  # the nearest quarter turn
    angle = (4 * k - quarter * of).astype(np.longdouble) / of * (np.arctan(np.longdouble(1)) * 2)
    c, s = np.cos(angle), np.sin(angle)
    turn = quarter % 4
    real, imaginary = np.choose(turn, [c, -s, -c, s]), np.choose(turn, [s, c, -s, -c])
    return real.astype(dtype), imaginary.astype(dtype)


def roots(count: int, of: int, dtype: np.dtype[Any], *, odd: bool = False) -> tuple[Tensor, Tensor]:
    """cos and sin of 2 pi k / ``of`` for the first ``count`` k, or odd k."""
    real, imaginary = _roots(count, of, dtype, odd)
    return literal(real), literal(imaginary)


def rfft(x: Tensor, *, scale: float = 1.0) -> Tensor:
    """The first n // 2 + 1 pairs of the transform of real numbers along the last axis."""
    last, front = x.ndim - 1, x.shape[:-1]
    n = known_extent(x, last, "rfft")
    if n % 2:
        whole = fft(pairs(x, x * 0.0), last, scale=scale)
        return slice_axis(whole, last, 0, n // 2 + 1)
    half = n // 2
    found = fft(reshape_to(x, (*front, half, 2)), last, scale=scale)
    found = concat([found, slice_axis(found, last, 0, 1)], axis=last)  # element half is element 0
    real, imaginary = parts(found)
    mirrored, opposite = flip(real, axis=last), flip(imaginary, axis=last)
    # The transforms of elements of even and of odd positions, and those turned into place.
    even = 0.5 * (real + mirrored), 0.5 * (imaginary - opposite)
    odd = 0.5 * (imaginary + opposite), 0.5 * (mirrored - real)
    cosine, sine = roots(half + 1, n, x.dtype)
    turned = times(odd, (cosine, -sine))
    return pairs(even[0] + turned[0], even[1] + turned[1])


def irfft(x: Tensor, n: int, *, scale: float = 1.0) -> Tensor:
    """``n`` real numbers along the last axis, whose transform begins with the n // 2 + 1 pairs in ``x``."""
    last, front = x.ndim - 2, x.shape[:-2]
    real, imaginary = parts(x)
    half = n // 2
    ends = np.zeros(half + 1, np.bool_)
    ends[0] = True
    ends[half] |= n % 2 == 0
    imaginary = where(literal(ends), 0.0, imaginary)
    if n % 2:
        real = concat([real, flip(slice_axis(real, last, 1, half + 1), axis=last)], axis=last)
        imaginary = concat([imaginary, -flip(slice_axis(imaginary, last, 1, half + 1), axis=last)], axis=last)
        return parts(fft(pairs(real, imaginary), last, inverse=True, scale=scale))[0]
    mirrored, opposite = flip(real, axis=last), flip(imaginary, axis=last)
    even = real + mirrored, imaginary - opposite
    cosine, sine = roots(half + 1, n, x.dtype)
    odd = times((real - mirrored, imaginary + opposite), (cosine, sine))
    whole = pairs(even[0] - odd[1], even[1] + odd[0])
    found = fft(slice_axis(whole, last, 0, half), last, inverse=True, scale=scale)
    return reshape_to(found, (*front, n))


def fit(x: Tensor, axis: int, n: int, stage: str) -> Tensor:
    """``x`` cut or padded with zeros to ``n`` elements along an axis."""
    extent = known_extent(x, axis, stage)
    if extent > n:
        return slice_axis(x, axis, 0, n)
    if extent < n:
        return pad(x, [(0, n - extent if k == axis else 0) for k in range(x.ndim)])
    return x


def good_size(n: int) -> int:
    """The least number from ``n`` on that has no prime factor above 5, and is even where it is above 1."""
    if n <= 1:
        return 1
    best = 1 << (n - 1).bit_length()
    five = 1
    while five < best:
        three = five
        while three < best:
            size = 2 * three
            while size < n:
                size *= 2
            best = min(best, size)
            three *= 3
        five *= 5
    return best
