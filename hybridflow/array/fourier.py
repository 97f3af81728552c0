"""Fourier transforms of arrays whose complex numbers are pairs of real ones along the last axis.

What is public is made of these.  Real transforms of an even number of elements are complex ones of half as many.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

from hybridflow.array.elementwise import where
from hybridflow.array.shapes import concat, flip, known_extent, pad, slice_axis, stack
from hybridflow.compiler.ops import TABLE, fourier_plan
from hybridflow.core.tensor import Tensor
from hybridflow.eager.dispatch import apply
from hybridflow.eager.operands import literal, reshape_to


def fft(x: Tensor, axis: int, *, inverse: bool = False, scale: float = 1.0) -> Tensor:
    """The transform of pairs along an axis that is not the last."""
    n = known_extent(x, axis, "fft")
    if n == 0:
        return x
    if fourier_plan.is_smooth(n):
        return apply(TABLE["fft"], x, _constants(n, x.dtype), axis=axis, inverse=inverse, scale=scale)
    return _by_chirps(x, axis, n, inverse, scale)


@functools.lru_cache(64)
def _table(n: int, dtype: np.dtype[Any]) -> np.ndarray:
    return fourier_plan.table(n, dtype)


def _constants(n: int, dtype: np.dtype[Any]) -> Tensor:
    return literal(_table(n, dtype))


@functools.lru_cache(64)
def _chirps(n: int, size: int, dtype: np.dtype[Any]) -> tuple[np.ndarray, ...]:
    """exp(-i pi k^2 / n), and the transform of its conjugate, continued evenly, of ``size`` numbers."""
    k = np.arange(n, dtype=np.int64)
    real, imaginary = fourier_plan.unit_roots(k * k % (2 * n), 2 * n, np.dtype(np.float64))
    kernel = np.zeros(size, np.complex128)
    kernel[:n] = real + 1j * imaginary
    kernel[size - n + 1 :] = kernel[n - 1 : 0 : -1]
    spectrum = np.fft.fft(kernel)
    return tuple(v.astype(dtype) for v in (real, -imaginary, spectrum.real, spectrum.imag))


def _by_chirps(x: Tensor, axis: int, n: int, inverse: bool, scale: float) -> Tensor:
    """Any length, as a convolution with a chirp (Bluestein): j k = (j^2 + k^2 - (j - k)^2) / 2."""
    size = smooth_size(2 * n - 1)
    along = [1] * (x.ndim - 1)
    along[axis] = -1
    real, imaginary, *rest = (literal(v.reshape(along)) for v in _chirps(n, size, x.dtype))
    chirp = real, -imaginary if inverse else imaginary
    spectrum = rest[0], -rest[1] if inverse else rest[1]
    turned = pairs(*times(parts(x), chirp))
    found = parts(fft(fit(turned, axis, size, "fft"), axis, inverse=inverse))
    found = parts(fft(pairs(*times(found, spectrum)), axis, inverse=not inverse, scale=1 / size))
    real, imaginary = (slice_axis(part, axis, 0, n) for part in found)
    result = pairs(*times((real, imaginary), chirp))
    return result if scale == 1 else result * scale


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
    return fourier_plan.unit_roots(2 * k + 1 if odd else k, of, dtype)


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


@functools.lru_cache(1024)
def smooth_size(n: int) -> int:
    """The least even number from ``n`` on that has no prime factor above 7, or 1."""
    if n <= 1:
        return 1
    best = 1 << (n - 1).bit_length()
    for seven in _powers(7, best):
        for five in _powers(5, best // seven):
            for three in _powers(3, best // (seven * five)):
                odd = seven * five * three
                best = min(best, odd << max(1, (-(-n // odd) - 1).bit_length()))
    return best


def _powers(base: int, limit: int) -> Iterator[int]:
    power = 1
    while power <= limit:
        yield power
        power *= base
