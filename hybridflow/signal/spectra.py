"""Spectra of frames, and the scale on which pitches are heard."""

from __future__ import annotations

from typing import Any, SupportsIndex

import numpy as np

from hybridflow.array import fourier
from hybridflow.array.creation import ones
from hybridflow.array.elementwise import imag, real, sqrt, where
from hybridflow.array.shapes import broadcast_to, known_extent
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ops import type_rules
from hybridflow.core.promotion import to_dtype
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import ArrayLike, DTypeLike
from hybridflow.eager.operands import as_tensor, cast, float_operand, literal
from hybridflow.errors import ArgumentError, DTypeError, ShapeError, entered
from hybridflow.fft import irfft
from hybridflow.signal.framing import frame, overlap_and_add
from hybridflow.signal.windows import hann_window

_HIGH_FREQUENCY_Q, _BREAK_FREQUENCY = 1127.0, 700.0


@entered
def stft(
    signal: ArrayLike,
    frame_length: object,
    frame_step: object,
    fft_length: object = None,
    window: object = hann_window,
    pad_end: bool = False,
) -> Tensor:
    """The short-time Fourier transform: the transforms of overlapping frames, each times a window.

    Args:
        signal: real samples, ``(..., samples)``.
        frame_length: samples of a frame.
        frame_step: samples between the starts of adjacent frames.
        fft_length: samples of a transform, behind those of the frame zeros; by default the least power of two that
            is no less than ``frame_length``.
        window: a function of a length and ``dtype=``, which gives the weights of a frame's samples; the weights
            themselves; or None.
        pad_end: whether the last frames go on behind the end, with zeros there.

    Returns:
        A complex tensor of shape ``(..., frames, fft_length // 2 + 1)``.

    Raises:
        ArgumentError: where a length or a step is below 1.
        DTypeError: for complex samples.
        ShapeError: where the window does not fit a frame.

    >>> hf.signal.stft([1.0, 1.0, 1.0, 1.0], 4, 2, window=None)
    <Tensor c64[1,3] cpu>
    [[4.+0.j 0.+0.j 0.+0.j]]
    """
    return _short_time("stft", signal, frame_length, frame_step, fft_length, window, pad_end)


@entered
def istft(
    spectra: ArrayLike,
    frame_length: object,
    frame_step: object,
    fft_length: object = None,
    window: object = hann_window,
) -> Tensor:
    """The inverse of ``stft``: the signal whose frames, each times the window, come nearest to the given ones.

    Frames are weighted by the window again, added up, and divided by the sum of its squares; where that is 0, the
    signal is 0.

    Args:
        spectra: what ``stft`` returns, ``(..., frames, fft_length // 2 + 1)``.
        frame_length: samples of a frame.
        frame_step: samples between the starts of adjacent frames.
        fft_length: samples of a transform; by default the least power of two that is no less than ``frame_length``.
        window: that of ``stft``.

    Returns:
        A float tensor of shape ``(..., (frames - 1) * frame_step + frame_length)``.

    Raises:
        ArgumentError: where a length or a step is below 1.
        ShapeError: where the window does not fit a frame, or spectra do not fit the length of a transform.

    >>> hf.signal.istft(hf.signal.stft([1.0, 2.0, 3.0, 4.0], 2, 1, window=None), 2, 1, window=None)
    <Tensor f32[4] cpu> [1. 2. 3. 4.]
    """
    stage = "istft"
    x = as_tensor(spectra, stage)
    if x.ndim < 2:
        raise ShapeError(stage, f"spectra are {x.type}. Expected frames and their numbers in the last two axes.")
    length = type_rules.integer(stage, "frame_length", frame_length)
    if length < 1:
        raise ArgumentError(stage, f"frame_length is {length}. Expected 1 or more.")
    size = _transform_length(fft_length, length, stage)
    if known_extent(x, x.ndim - 1, stage) != size // 2 + 1:
        raise ShapeError(stage, f"spectra are {x.type}. Expected {size // 2 + 1} numbers, those of {size} samples.")
    frames = irfft(x, size)
    frames = fourier.fit(frames, frames.ndim - 1, length, stage)
    weights = _weights(window, length, frames.dtype, stage)
    if weights is None:
        weights = ones((length,), frames.dtype)
    total = overlap_and_add(frames * weights, frame_step)
    squares = overlap_and_add(broadcast_to(weights * weights, frames.shape[-2:]), frame_step)
    return where(squares > 0.0, total / where(squares > 0.0, squares, 1.0), 0.0)


@entered
def spectrogram(
    signal: ArrayLike,
    frame_length: object,
    frame_step: object,
    fft_length: object = None,
    window: object = hann_window,
    pad_end: bool = False,
    power: float = 2.0,
) -> Tensor:
    """The squared magnitudes of the Fourier transforms of overlapping frames.

    Args:
        signal: real samples, ``(..., samples)``.
        frame_length: samples of a frame.
        frame_step: samples between the starts of adjacent frames.
        fft_length: samples of a transform, behind those of the frame zeros; by default the least power of two that
            is no less than ``frame_length``.
        window: a function of a length and ``dtype=``, which gives the weights of a frame's samples; the weights
            themselves; or None.
        pad_end: whether the last frames go on behind the end, with zeros there.
        power: 2 for squared magnitudes, 1 for magnitudes.

    Returns:
        A float tensor of shape ``(..., frames, fft_length // 2 + 1)``.

    Raises:
        ArgumentError: where a length or a step is below 1, or ``power`` is neither 1 nor 2.
        ShapeError: where the window does not fit a frame.

    >>> hf.signal.spectrogram([1.0, 1.0, 1.0, 1.0], 4, 2, window=None)
    <Tensor f32[1,3] cpu>
    [[16.  0.  0.]]
    """
    stage = "spectrogram"
    if power not in (1, 2):
        raise ArgumentError(stage, f"power is {power!r}. Expected 1 or 2.")
    numbers = _short_time(stage, signal, frame_length, frame_step, fft_length, window, pad_end)
    re, im = real(numbers), imag(numbers)
    squares = re * re + im * im
    return squares if power == 2 else sqrt(squares)


def _short_time(
    stage: str,
    signal: object,
    frame_length: object,
    frame_step: object,
    fft_length: object,
    window: object,
    pad_end: bool,
) -> Tensor:
    """The transforms of frames."""
    x = float_operand(signal, stage)
    if not x.ndim:
        raise ShapeError(stage, "signal is a scalar. Expected samples along its last axis.")
    if dtypes.is_complex(x.dtype):
        raise DTypeError(stage, f"signal is {x.type}. Expected real samples.")
    frames = frame(x, frame_length, frame_step, pad_end)
    length = known_extent(frames, frames.ndim - 1, stage)
    size = _transform_length(fft_length, length, stage)
    weights = _weights(window, length, x.dtype, stage)
    if weights is not None:
        frames = frames * weights
    wide = dtypes.compute_dtype(x.dtype)
    fitted = fourier.fit(cast(frames, wide), frames.ndim - 1, size, stage)
    return fourier.rfft(fitted)


def _transform_length(value: object, length: int, stage: str) -> int:
    size = 1 << (length - 1).bit_length() if value is None else type_rules.integer(stage, "fft_length", value)
    if size < 1:
        raise ArgumentError(stage, f"fft_length is {size}. Expected 1 or more.")
    return size


def _weights(window: object, length: int, dtype: np.dtype[Any], stage: str) -> Tensor | None:
    """The weights of a frame's samples."""
    if window is None:
        return None
    weights = cast(as_tensor(window(length, dtype=dtype) if callable(window) else window, stage), dtype)
    if weights.shape != (length,):
        raise ShapeError(stage, f"the window is {weights.type}. Expected {length} weights, one for each sample.")
    return weights


@entered
def linear_to_mel_weight_matrix(
    num_mel_bins: SupportsIndex = 20,
    num_spectrogram_bins: SupportsIndex = 129,
    sample_rate: float = 8000,
    lower_edge_hertz: float = 125.0,
    upper_edge_hertz: float = 3800.0,
    dtype: DTypeLike = "float32",
) -> Tensor:
    """The matrix that takes spectra to the mel scale: ``spectrogram @ matrix``.

    Each column is a triangle over the frequencies of a band, with the height 1 at its centre; centres lie evenly on the
    mel scale of HTK, ``1127 log(1 + f / 700)``.

    Args:
        num_mel_bins: how many bands.
        num_spectrogram_bins: how many frequencies a spectrum has, from 0 to half the sample rate.
        sample_rate: samples in a second.
        lower_edge_hertz: the lower end of the lowest band.
        upper_edge_hertz: the upper end of the highest band.
        dtype: a float dtype.

    Returns:
        A tensor of shape ``(num_spectrogram_bins, num_mel_bins)``.

    Raises:
        ArgumentError: where a number of bins is below 1, or the edges are not 0 <= lower < upper <= sample_rate / 2.
        DTypeError: for a dtype that is not a float.

    >>> hf.signal.linear_to_mel_weight_matrix(2, 5, 8000, 0.0, 4000.0).shape
    (5, 2)
    """
    stage = "linear_to_mel_weight_matrix"
    bands = type_rules.integer(stage, "num_mel_bins", num_mel_bins)
    bins = type_rules.integer(stage, "num_spectrogram_bins", num_spectrogram_bins)
    rate, lower, upper = float(sample_rate), float(lower_edge_hertz), float(upper_edge_hertz)
    for name, value in (("num_mel_bins", bands), ("num_spectrogram_bins", bins)):
        if value < 1:
            raise ArgumentError(stage, f"{name} is {value}. Expected 1 or more.")
    if not 0 <= lower < upper <= rate / 2:
        raise ArgumentError(
            stage, f"edges are {lower} and {upper} Hz. Expected 0 <= lower < upper <= {rate / 2}, half the sample rate."
        )
    kind = to_dtype(dtype, stage)
    if not dtypes.is_float(kind):
        raise DTypeError(stage, f"dtype is {kind}. Expected a float dtype.")

    def mel(hertz: Any) -> Any:
        return _HIGH_FREQUENCY_Q * np.log1p(hertz / _BREAK_FREQUENCY)

    at = mel(np.linspace(0.0, rate / 2, bins))[1:, None]  # the lowest frequency has no weight anywhere
    edges = np.linspace(mel(lower), mel(upper), bands + 2)
    rising = (at - edges[:-2]) / (edges[1:-1] - edges[:-2])
    falling = (edges[2:] - at) / (edges[2:] - edges[1:-1])
    weights = np.maximum(0.0, np.minimum(rising, falling))
    return literal(np.concatenate([np.zeros((1, bands)), weights]).astype(kind))
