"""``tf.signal``: transforms of the last axes, whose lengths are lists, and windows that are periodic where they are
even."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, SupportsIndex

import hybridflow as hf
from hybridflow.array import fourier
from hybridflow.compat.adapters.values import axes, operand
from hybridflow.compat.export import Operand, TensorLike, export, tf_export
from hybridflow.compiler.ir import dtypes
from hybridflow.core.tensor import Operators
from hybridflow.errors import ArgumentError

if TYPE_CHECKING:
    from hybridflow.core.type_aliases import DTypeLike


def _samples(value: TensorLike) -> Any:
    """What is transformed: arrays and lists are of single precision, as TensorFlow makes tensors of them here."""
    x = operand(value)
    if isinstance(value, Operators):
        return x
    return hf.astype(x, {dtypes.float64: dtypes.float32, dtypes.complex128: dtypes.complex64}.get(x.dtype, x.dtype))


def _lengths(fft_length: object) -> Any:
    return None if fft_length is None else axes(fft_length)


def _over(count: int, function: Callable[..., Any]) -> Callable[..., Any]:
    """A transform of the last ``count`` axes."""

    def transform(input_tensor: TensorLike, name: str | None = None) -> Any:
        return function(_samples(input_tensor), axes=tuple(range(-count, 0)))

    return transform


def _real_over(count: int, function: Callable[..., Any]) -> Callable[..., Any]:
    """The same of real numbers, with lengths."""

    def transform(input_tensor: TensorLike, fft_length: object = None, name: str | None = None) -> Any:
        return function(_samples(input_tensor), s=_lengths(fft_length), axes=tuple(range(-count, 0)))

    return transform


def _of_axes(function: Callable[..., Any]) -> Callable[..., Any]:
    def transform(
        input_tensor: TensorLike,
        fft_length: object = None,
        axes: Iterable[Any] | None = None,
        norm: str | None = None,
        name: str | None = None,
    ) -> Any:
        along = None if axes is None else tuple(int(axis) for axis in axes)
        return function(_samples(input_tensor), s=_lengths(fft_length), axes=along, norm=norm)

    return transform


fft, fft2d, fft3d = (_over(count, hf.fft.fftn) for count in (1, 2, 3))
ifft, ifft2d, ifft3d = (_over(count, hf.fft.ifftn) for count in (1, 2, 3))
rfft, rfft2d, rfft3d = (_real_over(count, hf.fft.rfftn) for count in (1, 2, 3))
irfft, irfft2d, irfft3d = (_real_over(count, hf.fft.irfftn) for count in (1, 2, 3))
fftnd, ifftnd, rfftnd, irfftnd = map(_of_axes, (hf.fft.fftn, hf.fft.ifftn, hf.fft.rfftn, hf.fft.irfftn))


@tf_export("signal.fftshift")
def fftshift(x: TensorLike, axes: Sequence[SupportsIndex] | None = None, name: str | None = None) -> Any:
    """``tf.signal.fftshift``."""
    return hf.fft.fftshift(operand(x), axes=axes)


@tf_export("signal.ifftshift")
def ifftshift(x: TensorLike, axes: Sequence[SupportsIndex] | None = None, name: str | None = None) -> Any:
    """``tf.signal.ifftshift``."""
    return hf.fft.ifftshift(operand(x), axes=axes)


@tf_export("signal.dct")
def dct(
    input: TensorLike, type: int = 2, n: object = None, axis: int = -1, norm: str | None = None, name: str | None = None
) -> Any:
    """``tf.signal.dct``."""
    return hf.signal.dct(operand(input), type, n, axis, norm)


@tf_export("signal.idct")
def idct(
    input: TensorLike, type: int = 2, n: object = None, axis: int = -1, norm: str | None = None, name: str | None = None
) -> Any:
    """``tf.signal.idct``, which without a norm has no factor: the transform of the dual type."""
    if norm == "ortho":
        return hf.signal.idct(operand(input), type, n, axis, norm)
    return hf.signal.dct(operand(input), {2: 3, 3: 2}.get(type, type), n, axis, norm)


@tf_export("signal.hann_window")
def hann_window(
    window_length: Any, periodic: bool = True, dtype: DTypeLike = dtypes.float32, name: str | None = None
) -> Any:
    """``tf.signal.hann_window``."""
    return hf.signal.hann_window(window_length, periodic and window_length % 2 == 0, dtype)


@tf_export("signal.hamming_window")
def hamming_window(
    window_length: Any, periodic: bool = True, dtype: DTypeLike = dtypes.float32, name: str | None = None
) -> Any:
    """``tf.signal.hamming_window``."""
    return hf.signal.hamming_window(window_length, periodic and window_length % 2 == 0, dtype)


@tf_export("signal.frame")
def frame(
    signal: TensorLike,
    frame_length: TensorLike,
    frame_step: TensorLike,
    pad_end: bool = False,
    pad_value: TensorLike = 0,
    axis: int = -1,
    name: str | None = None,
) -> Any:
    """``tf.signal.frame``."""
    return hf.signal.frame(operand(signal), frame_length, frame_step, pad_end, pad_value, axis)


@tf_export("signal.stft")
def stft(
    signals: TensorLike,
    frame_length: object,
    frame_step: object,
    fft_length: object = None,
    window_fn: object = hann_window,
    pad_end: bool = False,
    name: str | None = None,
) -> Any:
    """``tf.signal.stft``."""
    return hf.signal.stft(operand(signals), frame_length, frame_step, fft_length, window_fn, pad_end)


@tf_export("signal.inverse_stft")
def inverse_stft(
    stfts: TensorLike,
    frame_length: Any,
    frame_step: object,
    fft_length: Any = None,
    window_fn: Callable[..., object] = hann_window,
    name: str | None = None,
) -> Any:
    """``tf.signal.inverse_stft``, which undoes a window by that of ``inverse_stft_window_fn``."""
    size = 1 << (int(frame_length) - 1).bit_length() if fft_length is None else int(fft_length)
    frames = hf.fft.irfft(operand(stfts), size)
    frames = fourier.fit(frames, frames.ndim - 1, int(frame_length), "inverse_stft")
    if window_fn is not None:
        frames = frames * window_fn(frame_length, dtype=frames.dtype)
    return hf.signal.overlap_and_add(frames, frame_step)


@tf_export("signal.inverse_stft_window_fn")
def inverse_stft_window_fn(
    frame_step: Any, forward_window_fn: Callable[..., Any] = hann_window, name: str | None = None
) -> Callable[..., Any]:
    """``tf.signal.inverse_stft_window_fn``."""

    def window(frame_length: Any, dtype: DTypeLike) -> Any:
        forward = forward_window_fn(frame_length, dtype=dtype)
        overlaps = -(-frame_length // frame_step)
        squares = hf.pad(hf.square(forward), [(0, overlaps * frame_step - frame_length)])
        total = hf.tile(hf.sum(hf.reshape(squares, (overlaps, frame_step)), axis=0), (overlaps,))
        return forward / total[:frame_length]

    return window


@tf_export("signal.mfccs_from_log_mel_spectrograms")
def mfccs_from_log_mel_spectrograms(log_mel_spectrograms: TensorLike, name: str | None = None) -> Any:
    """``tf.signal.mfccs_from_log_mel_spectrograms``."""
    x = operand(log_mel_spectrograms)
    count = x.shape[-1]
    if count == 0:
        raise ArgumentError("mfccs_from_log_mel_spectrograms", f"{x.type} has no bands. Expected some.")
    return hf.signal.dct(x) * (1 / math.sqrt(2 * count))


@tf_export("signal.kaiser_bessel_derived_window")
def kaiser_bessel_derived_window(
    window_length: object, beta: float = 12.0, dtype: DTypeLike = "float32", name: str | None = None
) -> Any:
    """The Kaiser-Bessel-derived window: the squares of its halves add up to 1, as the modified cosine transform
    needs."""
    return hf.signal.kaiser_bessel_derived_window(window_length=window_length, beta=beta, dtype=dtype)


@tf_export("signal.kaiser_window")
def kaiser_window(
    window_length: object, beta: float = 12.0, dtype: DTypeLike = "float32", name: str | None = None
) -> Any:
    """The Kaiser window, symmetric."""
    return hf.signal.kaiser_window(window_length=window_length, beta=beta, dtype=dtype)


@tf_export("signal.overlap_and_add")
def overlap_and_add(signal: Operand, frame_step: object, name: str | None = None) -> Any:
    """The sum of frames, each ``frame_step`` samples behind the one before: the transpose of ``frame``."""
    return hf.signal.overlap_and_add(signal, frame_step)


@tf_export("signal.vorbis_window")
def vorbis_window(window_length: object, dtype: DTypeLike = "float32", name: str | None = None) -> Any:
    """The window of Vorbis: the squares of its halves add up to 1, as the modified cosine transform needs."""
    return hf.signal.vorbis_window(window_length=window_length, dtype=dtype)


export(fft2d, "signal.fft2d")
export(fft3d, "signal.fft3d")
export(fft, "signal.fft")
export(fftnd, "signal.fftnd", "fftnd")
export(ifft2d, "signal.ifft2d")
export(ifft3d, "signal.ifft3d")
export(ifft, "signal.ifft")
export(ifftnd, "signal.ifftnd", "ifftnd")
export(irfft2d, "signal.irfft2d")
export(irfft3d, "signal.irfft3d")
export(irfft, "signal.irfft")
export(irfftnd, "signal.irfftnd", "irfftnd")
export(rfft2d, "signal.rfft2d")
export(rfft3d, "signal.rfft3d")
export(rfft, "signal.rfft")
export(rfftnd, "signal.rfftnd", "rfftnd")
export(hf.signal.linear_to_mel_weight_matrix, "signal.linear_to_mel_weight_matrix")
