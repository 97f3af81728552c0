"""Fourier transforms of complex tensors: what is public is made of these.

Real transforms of an even number of elements are complex ones of half as many, of which each pair of real elements is
one number.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

from hybridflow.array.creation import zeros_like
from hybridflow.array.elementwise import complex, imag, real, where
from hybridflow.array.shapes import concat, flip, known_extent, pad, slice_axis, stack
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ops import TABLE, fourier_plan
from hybridflow.core.context import suspended
from hybridflow.core.tensor import Tensor, wrap
from hybridflow.eager.dispatch import apply
from hybridflow.eager.operands import literal, reshape_to

_LARGE = 1 << 15  # numbers of a transform of which few tables are kept


def fft(x: Tensor, axis: int, *, inverse: bool = False, scale: float = 1.0) -> Tensor:
    """The transform of complex numbers along an axis, or of pairs along one that is not the last."""
    n = known_extent(x, axis, "fft")
    if n == 0:
        return x
    if fourier_plan.is_smooth(n):
        return apply(
            TABLE["fft"], x, _constants(n, dtypes.part_dtype(x.dtype)), axis=axis, inverse=inverse, scale=scale
        )
    return _by_chirps(x, axis, n, inverse, scale)


_table = functools.lru_cache(256)(fourier_plan.table)
_large_table = functools.lru_cache(4)(fourier_plan.table)


def _constants(n: int, dtype: np.dtype[Any]) -> Tensor:
    return literal((_table if n < _LARGE else _large_table)(n, dtype))


@functools.lru_cache(64)
def _chirps(n: int, size: int, dtype: np.dtype[Any]) -> tuple[np.ndarray, ...]:
    """exp(-i pi k^2 / n), and the transform of its conjugate, continued evenly, of ``size`` numbers."""
    k = np.arange(n, dtype=np.int64)
    real, imaginary = fourier_plan.unit_roots(k * k % (2 * n), 2 * n, np.dtype(np.float64))
    kernel = np.zeros((size, 2))
    kernel[:n] = np.stack([real, imaginary], axis=-1)
    kernel[size - n + 1 :] = kernel[n - 1 : 0 : -1]
    with suspended():  # a constant, whoever asks first
        spectrum = np.asarray(fft(wrap(kernel), 0))
    return tuple(v.astype(dtype) for v in (real, -imaginary, spectrum[:, 0], spectrum[:, 1]))


def _by_chirps(x: Tensor, axis: int, n: int, inverse: bool, scale: float) -> Tensor:
    """Any length, as a convolution with a chirp (Bluestein): j k = (j^2 + k^2 - (j - k)^2) / 2."""
    is_complex = dtypes.is_complex(x.dtype)
    join = complex if is_complex else _pairs
    size = smooth_size(2 * n - 1)
    along = [1] * (x.ndim if is_complex else x.ndim - 1)
    along[axis] = -1
    cosine, sine, *rest = (literal(v.reshape(along)) for v in _chirps(n, size, dtypes.part_dtype(x.dtype)))
    chirp = cosine, -sine if inverse else sine
    spectrum = rest[0], -rest[1] if inverse else rest[1]
    turned = join(*_times(_parts(x), chirp))
    numbers = _parts(fft(fit(turned, axis, size, "fft"), axis, inverse=inverse))
    numbers = _parts(fft(join(*_times(numbers, spectrum)), axis, inverse=not inverse, scale=1 / size))
    real, imaginary = _times((slice_axis(numbers[0], axis, 0, n), slice_axis(numbers[1], axis, 0, n)), chirp)
    return join(real, imaginary) if scale == 1 else join(real * scale, imaginary * scale)


def _parts(x: Tensor) -> tuple[Tensor, Tensor]:
    """The real and the imaginary parts of complex numbers or pairs."""
    if dtypes.is_complex(x.dtype):
        return real(x), imag(x)
    front, last = x.shape[:-1], x.ndim - 1
    return reshape_to(slice_axis(x, last, 0, 1), front), reshape_to(slice_axis(x, last, 1, 2), front)


def _pairs(real: Tensor, imaginary: Tensor) -> Tensor:
    return stack([real, imaginary], axis=-1)


def _times(x: tuple[Any, Any], y: tuple[Any, Any]) -> tuple[Any, Any]:
    """The product of complex numbers in parts."""
    return x[0] * y[0] - x[1] * y[1], x[0] * y[1] + x[1] * y[0]


@functools.lru_cache(256)
def _roots(count: int, of: int, dtype: np.dtype[Any], odd: bool) -> tuple[np.ndarray, np.ndarray]:
    k = np.arange(count)
    return fourier_plan.unit_roots(2 * k + 1 if odd else k, of, dtype)


def roots(count: int, of: int, dtype: np.dtype[Any], *, odd: bool = False) -> tuple[Tensor, Tensor]:
    """cos and sin of 2 pi k / ``of`` for the first ``count`` k, or odd k."""
    cosine, sine = _roots(count, of, dtype, odd)
    return literal(cosine), literal(sine)


def rfft(x: Tensor, *, scale: float = 1.0) -> Tensor:
    """The first n // 2 + 1 complex numbers of the transform of real ones along the last axis."""
    last, front = x.ndim - 1, x.shape[:-1]
    n = known_extent(x, last, "rfft")
    if n % 2:
        return slice_axis(fft(complex(x, zeros_like(x)), last, scale=scale), last, 0, n // 2 + 1)
    half = n // 2
    spectrum = fft(reshape_to(x, (*front, half, 2)), last, scale=scale)
    spectrum = concat([spectrum, slice_axis(spectrum, last, 0, 1)], axis=last)  # element half is element 0
    re, im = _parts(spectrum)
    mirrored, opposite = flip(re, axis=last), flip(im, axis=last)
    # The transforms of elements of even and of odd positions, and those turned into place.
    even = 0.5 * (re + mirrored), 0.5 * (im - opposite)
    odd = 0.5 * (im + opposite), 0.5 * (mirrored - re)
    cosine, sine = roots(half + 1, n, x.dtype)
    turned = _times(odd, (cosine, -sine))
    return complex(even[0] + turned[0], even[1] + turned[1])


def irfft(x: Tensor, n: int, *, scale: float = 1.0) -> Tensor:
    """``n`` real numbers along the last axis, whose transform begins with the n // 2 + 1 complex ones in ``x``."""
    last, front = x.ndim - 1, x.shape[:-1]
    re, im = _parts(x)
    half = n // 2
    ends = np.zeros(half + 1, np.bool_)
    ends[0] = True
    ends[half] |= n % 2 == 0
    im = where(literal(ends), 0.0, im)
    if n % 2:
        re = concat([re, flip(slice_axis(re, last, 1, half + 1), axis=last)], axis=last)
        im = concat([im, -flip(slice_axis(im, last, 1, half + 1), axis=last)], axis=last)
        return real(fft(complex(re, im), last, inverse=True, scale=scale))
    mirrored, opposite = flip(re, axis=last), flip(im, axis=last)
    even = re + mirrored, im - opposite
    cosine, sine = roots(half + 1, n, re.dtype)
    odd = _times((re - mirrored, im + opposite), (cosine, sine))
    whole = _pairs(even[0] - odd[1], even[1] + odd[0])
    signal = fft(slice_axis(whole, last, 0, half), last, inverse=True, scale=scale)
    return reshape_to(signal, (*front, n))


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
