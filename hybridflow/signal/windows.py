"""Windows: weights of the samples of a frame.  Each value is computed in float64 and rounded once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ops import type_rules
from hybridflow.core.promotion import to_dtype
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import DTypeLike
from hybridflow.eager.operands import literal
from hybridflow.errors import ArgumentError, DTypeError, entered


def _length(value: object, stage: str) -> int:
    length = type_rules.integer(stage, "window_length", value)
    if length < 0:
        raise ArgumentError(stage, f"window_length is {length}. Expected 0 or more.")
    return length


def _window(values: np.ndarray, dtype: DTypeLike, stage: str) -> Tensor:
    kind = to_dtype(dtype, stage)
    if not dtypes.is_float(kind):
        raise DTypeError(stage, f"dtype is {kind}. Expected a float dtype.")
    return literal(values.astype(kind))


def _raised_cosine(length: int, periodic: bool, a: float, b: float) -> np.ndarray:
    if length <= 1:
        return np.ones(length)
    return a - b * np.cos(2 * np.pi * np.arange(length) / (length if periodic else length - 1))


@entered
def hann_window(window_length: object, periodic: bool = True, dtype: DTypeLike = "float32") -> Tensor:
    """The Hann window, ``0.5 - 0.5 cos(2 pi k / n)``.

    Args:
        window_length: the number of samples.
        periodic: whether the window is one period of a longer signal, as spectral analysis wants it; else symmetric.
        dtype: a float dtype.

    Returns:
        A tensor of shape ``(window_length,)``.

    Raises:
        ArgumentError: for a negative length.
        DTypeError: for a dtype that is not a float.

    >>> hf.signal.hann_window(4)
    <Tensor f32[4] cpu> [0.  0.5 1.  0.5]
    """
    length = _length(window_length, "hann_window")
    return _window(_raised_cosine(length, bool(periodic), 0.5, 0.5), dtype, "hann_window")


@entered
def hamming_window(window_length: object, periodic: bool = True, dtype: DTypeLike = "float32") -> Tensor:
    """The Hamming window, ``0.54 - 0.46 cos(2 pi k / n)``.

    Args:
        window_length: the number of samples.
        periodic: whether the window is one period of a longer signal, as spectral analysis wants it; else symmetric.
        dtype: a float dtype.

    Returns:
        A tensor of shape ``(window_length,)``.

    Raises:
        ArgumentError: for a negative length.
        DTypeError: for a dtype that is not a float.

    >>> hf.signal.hamming_window(4)
    <Tensor f32[4] cpu> [0.08 0.54 1.   0.54]
    """
    length = _length(window_length, "hamming_window")
    return _window(_raised_cosine(length, bool(periodic), 0.54, 0.46), dtype, "hamming_window")


@entered
def kaiser_window(window_length: object, beta: float = 12.0, dtype: DTypeLike = "float32") -> Tensor:
    """The Kaiser window, symmetric.

    Args:
        window_length: the number of samples.
        beta: the shape: the larger, the lower the side lobes and the wider the main lobe.
        dtype: a float dtype.

    Returns:
        A tensor of shape ``(window_length,)``.

    Raises:
        ArgumentError: for a negative length.
        DTypeError: for a dtype that is not a float.

    >>> hf.signal.kaiser_window(3, beta=0.0)
    <Tensor f32[3] cpu> [1. 1. 1.]
    """
    length = _length(window_length, "kaiser_window")
    return _window(np.kaiser(length, float(beta)), dtype, "kaiser_window")


def _power_complementary(half: Callable[[int], np.ndarray], length: int, stage: str) -> np.ndarray:
    if length % 2:
        raise ArgumentError(stage, f"window_length is {length}. Expected an even number.")
    half_window = half(length // 2)
    return np.concatenate([half_window, half_window[::-1]])


@entered
def kaiser_bessel_derived_window(window_length: object, beta: float = 12.0, dtype: DTypeLike = "float32") -> Tensor:
    """The Kaiser-Bessel-derived window: the squares of its halves add up to 1, as the modified cosine transform needs.

    Args:
        window_length: the number of samples, which is even.
        beta: the shape of the Kaiser window that it is derived from.
        dtype: a float dtype.

    Returns:
        A tensor of shape ``(window_length,)``.

    Raises:
        ArgumentError: for a length that is odd or negative.
        DTypeError: for a dtype that is not a float.

    >>> hf.signal.kaiser_bessel_derived_window(2)
    <Tensor f32[2] cpu> [0.70710677 0.70710677]
    """
    stage = "kaiser_bessel_derived_window"

    def half(count: int) -> np.ndarray:
        if count == 0:
            return np.ones(0)
        sums = np.cumsum(np.kaiser(count + 1, float(beta)))
        return np.sqrt(sums[:-1] / sums[-1])

    return _window(_power_complementary(half, _length(window_length, stage), stage), dtype, stage)


@entered
def vorbis_window(window_length: object, dtype: DTypeLike = "float32") -> Tensor:
    """The window of Vorbis: the squares of its halves add up to 1, as the modified cosine transform needs.

    Args:
        window_length: the number of samples, which is even.
        dtype: a float dtype.

    Returns:
        A tensor of shape ``(window_length,)``.

    Raises:
        ArgumentError: for a length that is odd or negative.
        DTypeError: for a dtype that is not a float.

    >>> hf.signal.vorbis_window(2)
    <Tensor f32[2] cpu> [0.70710677 0.70710677]
    """
    stage = "vorbis_window"

    def half(count: int) -> np.ndarray:
        angle = np.pi * (np.arange(count) + 0.5) / (2 * count) if count else np.ones(0)
        return np.sin(np.pi / 2 * np.sin(angle) ** 2)

    return _window(_power_complementary(half, _length(window_length, stage), stage), dtype, stage)
