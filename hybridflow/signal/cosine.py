"""Discrete cosine transforms, by the formulas and normalisations of ``scipy.fft``."""

from __future__ import annotations

import math

import numpy as np

from hybridflow.array import fourier
from hybridflow.array.creation import zeros_like
from hybridflow.array.elementwise import complex, imag, real
from hybridflow.array.shapes import concat, flip, known_extent, moveaxis, slice_axis, stack
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ops import type_rules
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import ArrayLike
from hybridflow.eager.operands import cast, float_operand, literal, reshape_to
from hybridflow.errors import ArgumentError, DTypeError, ShapeError, entered


@entered
def dct(x: ArrayLike, type: int = 2, n: object = None, axis: int = -1, norm: str | None = None) -> Tensor:
    """The discrete cosine transform of type 1, 2, 3 or 4.

    Type 2 is *the* cosine transform: ``2 * sum(x[j] * cos(pi * k * (j + 0.5) / n))``.

    Args:
        x: a tensor or array-like value; integers become float32.
        type: 1, 2, 3 or 4.
        n: elements that are transformed: ``x`` is cut or padded with zeros; by default all.
        axis: the axis along which they lie.
        norm: None or "backward" for no factor, "ortho" for an orthogonal transform, "forward" for the factor that
            ``idct`` has otherwise.

    Returns:
        A float tensor in which ``axis`` has ``n`` elements.

    Raises:
        ArgumentError: for another type or norm, or where ``n`` is too small.
        AxisError: for an axis out of range.
        DTypeError: for complex numbers.

    >>> hf.signal.dct([1.0, 1.0, 1.0, 1.0])
    <Tensor f32[4] cpu> [8. 0. 0. 0.]
    """
    return _cosine("dct", x, type, n, axis, norm, inverse=False)


@entered
def idct(x: ArrayLike, type: int = 2, n: object = None, axis: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of ``dct`` of the same type and norm.

    Args:
        x: a tensor or array-like value; integers become float32.
        type: 1, 2, 3 or 4.
        n: elements that are transformed: ``x`` is cut or padded with zeros; by default all.
        axis: the axis along which they lie.
        norm: None or "backward" for the whole factor, "ortho" for an orthogonal transform, "forward" for none.

    Returns:
        A float tensor in which ``axis`` has ``n`` elements.

    Raises:
        ArgumentError: for another type or norm, or where ``n`` is too small.
        AxisError: for an axis out of range.
        DTypeError: for complex numbers.

    >>> hf.signal.idct([8.0, 0.0, 0.0, 0.0])
    <Tensor f32[4] cpu> [1. 1. 1. 1.]
    """
    return _cosine("idct", x, type, n, axis, norm, inverse=True)


def _cosine(stage: str, x: object, kind: object, n: object, axis: object, norm: str | None, inverse: bool) -> Tensor:
    if kind not in _TRANSFORMS:
        raise ArgumentError(stage, f"type is {kind!r}. Expected 1, 2, 3 or 4.")
    if norm not in (None, "backward", "ortho", "forward"):
        raise ArgumentError(stage, f"norm is {norm!r}. Expected None, 'backward', 'ortho' or 'forward'.")
    x = float_operand(x, stage)
    if dtypes.is_complex(x.dtype):
        raise DTypeError(stage, f"x is {x.type}. Expected real numbers; transform both parts.")
    if not x.ndim:
        raise ShapeError(stage, "x is a scalar. Expected elements along an axis.")
    axis = type_rules.axis(stage, x.type, axis)
    size = known_extent(x, axis, stage) if n is None else type_rules.integer(stage, "n", n)
    if size < (2 if kind == 1 else 1):
        raise ArgumentError(stage, f"n is {size}. Expected {2 if kind == 1 else 1} or more for type {kind}.")
    rows = moveaxis(fourier.fit(x, axis, size, stage), axis, -1)
    rows = cast(rows, dtypes.compute_dtype(x.dtype))
    period = 2 * (size - 1 if kind == 1 else size)
    if inverse:
        kind = {2: 3, 3: 2}.get(kind, kind)
    if norm == "ortho":
        rows = _orthogonal(rows, kind, size, period)
    else:
        rows = _TRANSFORMS[kind](rows, size, 1 / period if inverse == (norm != "forward") else 1.0)
    return cast(moveaxis(rows, -1, axis), x.dtype)


def _orthogonal(x: Tensor, kind: int, n: int, period: int) -> Tensor:
    """Ends are weighted so that rows of the matrix are orthogonal."""
    ends = np.ones(n)
    ends[0] = math.sqrt(2)
    if kind == 1:
        ends[-1] = math.sqrt(2)
    before, after = kind in (1, 3), kind in (1, 2)
    if before:
        x = x * literal(ends.astype(x.dtype))
    x = _TRANSFORMS[kind](x, n, 1 / math.sqrt(period))
    return x * literal((1 / ends).astype(x.dtype)) if after else x


def _first(x: Tensor, n: int, scale: float) -> Tensor:
    """Type 1: the transform of the signal mirrored at both ends."""
    last = x.ndim - 1
    inner = flip(slice_axis(x, last, 1, n - 1), axis=last)
    return real(fourier.rfft(concat([x, inner], axis=last), scale=scale))


def _second(x: Tensor, n: int, scale: float) -> Tensor:
    """Type 2: even positions and then odd ones backwards make a signal of which the transform is turned a little."""
    last = x.ndim - 1
    even, odd = slice_axis(x, last, 0, n, 2), slice_axis(x, last, min(1, n), n, 2)
    spectrum = fourier.rfft(concat([even, flip(odd, axis=last)], axis=last), scale=2 * scale)
    re, im = real(spectrum), imag(spectrum)
    mirrored, opposite = (flip(slice_axis(part, last, 1, (n + 1) // 2), axis=last) for part in (re, im))
    cosine, sine = fourier.roots(n, 4 * n, x.dtype)
    return concat([re, mirrored], axis=last) * cosine + concat([im, -opposite], axis=last) * sine


def _third(x: Tensor, n: int, scale: float) -> Tensor:
    """Type 3, the transpose of type 2 but for the first element."""
    last, half = x.ndim - 1, n // 2 + 1
    behind = concat([zeros_like(slice_axis(x, last, 0, 1)), flip(slice_axis(x, last, 1, n), axis=last)], axis=last)
    cosine, sine = fourier.roots(half, 4 * n, x.dtype)
    numbers = complex(slice_axis(x, last, 0, half), -slice_axis(behind, last, 0, half))
    signal = fourier.irfft(numbers * complex(cosine, sine), n, scale=scale)
    even, odd = slice_axis(signal, last, 0, (n + 1) // 2), flip(slice_axis(signal, last, (n + 1) // 2, n), axis=last)
    return _alternating(even, odd, n)


def _alternating(even: Tensor, odd: Tensor, n: int) -> Tensor:
    """Elements of both in turn."""
    last, front = even.ndim - 1, even.shape[:-1]
    count = n // 2
    both = reshape_to(stack([slice_axis(even, last, 0, count), odd], axis=-1), (*front, 2 * count))
    return concat([both, slice_axis(even, last, count, count + 1)], axis=last) if n % 2 else both


def _fourth(x: Tensor, n: int, scale: float) -> Tensor:
    """Type 4, as a part of a transform of 2 n numbers that are turned before and after."""
    last = x.ndim - 1
    cosine, sine = fourier.roots(n, 4 * n, x.dtype)
    turned = complex(x * cosine, -(x * sine))
    spectrum = fourier.fft(fourier.fit(turned, last, 2 * n, "dct"), last, scale=2 * scale)
    spectrum = slice_axis(spectrum, last, 0, n)
    cosine, sine = fourier.roots(n, 8 * n, x.dtype, odd=True)
    return real(spectrum) * cosine + imag(spectrum) * sine


_TRANSFORMS = {1: _first, 2: _second, 3: _third, 4: _fourth}
