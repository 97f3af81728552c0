"""``keras.ops`` of segments, sequences and spectra."""

from __future__ import annotations

from keras.src.backend.common import dtypes, standardize_dtype

import hybridflow as hf
from hybridflow.keras_backend.modules.core import convert_to_tensor


def _segments(function):
    def call(data, segment_ids, num_segments=None, sorted=False):
        data, ids = convert_to_tensor(data), convert_to_tensor(segment_ids, "int64")
        count = int(hf.max(ids)) + 1 if num_segments is None else num_segments
        return function(data, ids, count)

    return call


segment_sum = _segments(hf.segment_sum)
segment_prod = _segments(hf.segment_prod)
segment_max = _segments(hf.segment_max)
segment_min = _segments(hf.segment_min)


def top_k(x, k, sorted=True):
    values, places = hf.top_k(convert_to_tensor(x), k)
    return values, convert_to_tensor(places, "int32")


def in_top_k(targets, predictions, k):
    targets, predictions = convert_to_tensor(targets, "int32"), convert_to_tensor(predictions)
    target_scores = hf.take_along_axis(predictions, targets[:, None], axis=-1)
    return hf.any(target_scores >= hf.top_k(predictions, k)[0], axis=-1)


def logsumexp(x, axis=None, keepdims=False):
    x = convert_to_tensor(x)
    x = convert_to_tensor(x, dtypes.result_type(x.dtype, float))
    return hf.logsumexp(x, axis=tuple(axis) if isinstance(axis, list) else axis, keepdims=keepdims)


def cdist(x, y):
    x, y = convert_to_tensor(x), convert_to_tensor(y)
    if x.ndim < 2 or y.ndim < 2:
        raise ValueError("`cdist` inputs must have rank >= 2")
    if x.shape[-1] != y.shape[-1]:
        raise ValueError("Last dimension of inputs to `cdist` must match")
    dtype = dtypes.result_type(x.dtype, y.dtype, float)
    x, y = convert_to_tensor(x, dtype), convert_to_tensor(y, dtype)
    squares = hf.sum(hf.square(x[..., :, None, :] - y[..., None, :, :]), axis=-1)
    is_zero = squares == 0  # whose root has no derivative
    return hf.where(is_zero, hf.zeros_like(squares), hf.sqrt(hf.where(is_zero, hf.ones_like(squares), squares)))


def extract_sequences(x, sequence_length, sequence_stride):
    return hf.signal.frame(convert_to_tensor(x), sequence_length, sequence_stride)


def _get_complex_tensor_from_tuple(x):
    if not isinstance(x, (tuple, list)) or len(x) != 2:
        raise ValueError(f"Input `x` should be a tuple of two tensors - real and imaginary.Received: x={x}")
    real, imag = (convert_to_tensor(part) for part in x)
    if real.shape != imag.shape:
        raise ValueError(
            "Input `x` should be a tuple of two tensors - real and imaginary."
            "Both the real and imaginary parts should have the same shape. "
            f"Received: x[0].shape = {real.shape}, x[1].shape = {imag.shape}"
        )
    if real.dtype.kind not in "fV" or imag.dtype.kind not in "fV":
        raise ValueError(f"At least one tensor in input `x` is not of type float.Received: x={x}.")
    return hf.complex(real, imag)


def _parts(x):
    return hf.real(x), hf.imag(x)


def fft(x):
    return _parts(hf.fft.fft(_get_complex_tensor_from_tuple(x)))


def fft2(x):
    return _parts(hf.fft.fft2(_get_complex_tensor_from_tuple(x)))


def ifft2(x):
    return _parts(hf.fft.ifft2(_get_complex_tensor_from_tuple(x)))


def rfft(x, fft_length=None):
    return _parts(hf.fft.rfft(convert_to_tensor(x), n=fft_length))


def irfft(x, fft_length=None):
    return hf.fft.irfft(_get_complex_tensor_from_tuple(x), n=fft_length)


def _window(window, sequence_length, fft_length, dtype):
    """The weights of a frame of ``fft_length``, in whose middle the sequence is."""
    before = (fft_length - sequence_length) // 2
    if window is None:
        return hf.ones((fft_length,), dtype=dtype)
    if isinstance(window, str):
        make = {"hann": hf.signal.hann_window, "hamming": hf.signal.hamming_window}[window]
        weights = make(sequence_length, dtype=standardize_dtype(dtype))
    else:
        weights = convert_to_tensor(window, standardize_dtype(dtype))
    if weights.ndim != 1 or weights.shape[-1] != sequence_length:
        raise ValueError(
            f"The shape of `window` must be equal to [sequence_length].Received: window shape={weights.shape}"
        )
    return hf.pad(weights, [(before, fft_length - sequence_length - before)])


def stft(x, sequence_length, sequence_stride, fft_length, window="hann", center=True):
    x = convert_to_tensor(x)
    if standardize_dtype(x.dtype) not in {"float32", "float64"}:
        raise TypeError(f"Invalid input type. Expected `float32` or `float64`. Received: input type={x.dtype}")
    if fft_length < sequence_length:
        raise ValueError(
            "`fft_length` must equal or larger than `sequence_length`. "
            f"Received: sequence_length={sequence_length}, fft_length={fft_length}"
        )
    if isinstance(window, str) and window not in {"hann", "hamming"}:
        raise ValueError(
            f'If a string is passed to `window`, it must be one of `"hann"`, `"hamming"`. Received: window={window}'
        )
    if center:
        x = hf.pad(x, [(0, 0)] * (x.ndim - 1) + [(fft_length // 2, fft_length // 2)], mode="reflect")
    frames = hf.signal.frame(x, fft_length, sequence_stride)
    return _parts(hf.fft.rfft(frames * _window(window, sequence_length, fft_length, x.dtype), n=fft_length))


def istft(x, sequence_length, sequence_stride, fft_length, length=None, window="hann", center=True):
    x = _get_complex_tensor_from_tuple(x)
    frames = hf.fft.irfft(x, n=fft_length)
    weights = _window(window, sequence_length, fft_length, frames.dtype)
    whole = hf.signal.overlap_and_add(frames * weights, sequence_stride)
    norms = hf.signal.overlap_and_add(hf.broadcast_to(hf.square(weights), (x.shape[-2], fft_length)), sequence_stride)
    whole = hf.where(norms > 1e-10, whole / hf.where(norms > 1e-10, norms, hf.ones_like(norms)), whole)
    start = fft_length // 2 if center else 0
    if length is not None:
        end = start + length
    else:
        end = whole.shape[-1] - (fft_length // 2 if center else 0)
    return whole[..., start:end]


def rsqrt(x):
    x = convert_to_tensor(x)
    return hf.rsqrt(convert_to_tensor(x, dtypes.result_type(x.dtype, float)))


def _float_function(function):
    def call(x):
        x = convert_to_tensor(x)
        return function(convert_to_tensor(x, dtypes.result_type(x.dtype, float)))

    return call


erf = _float_function(hf.erf)
erfc = _float_function(hf.special.erfc)
erfinv = _float_function(hf.special.erfinv)


def logdet(x):
    return hf.linalg.slogdet(convert_to_tensor(x))[1]
