"""``tf.signal`` against NumPy, SciPy and TensorFlow's definitions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hybridflow.compat import tf

RNG = np.random.default_rng(2)


def test_transforms_of_the_last_axes() -> None:
    z = (RNG.normal(size=(2, 3, 4)) + 1j * RNG.normal(size=(2, 3, 4))).astype("complex64")
    for ours, axes in ((tf.signal.fft, (2,)), (tf.signal.fft2d, (1, 2)), (tf.signal.fft3d, (0, 1, 2))):
        np.testing.assert_allclose(ours(z), np.fft.fftn(z, axes=axes), atol=1e-5)
    np.testing.assert_allclose(tf.signal.ifft2d(z), np.fft.ifftn(z, axes=(1, 2)), atol=1e-6)
    x = z.real
    np.testing.assert_allclose(tf.signal.rfft(x, [6]), np.fft.rfft(x, 6), atol=1e-5)
    np.testing.assert_allclose(tf.signal.irfft2d(z, fft_length=[3, 5]), np.fft.irfftn(z, (3, 5), (1, 2)), atol=1e-5)
    np.testing.assert_allclose(tf.signal.fftnd(z, [2, 2], axes=[0, 1]), np.fft.fftn(z, (2, 2), (0, 1)), atol=1e-5)
    np.testing.assert_array_equal(tf.signal.fftshift(x, axes=[1]), np.fft.fftshift(x, 1))


def test_inverse_cosine_transforms_without_a_norm_have_no_factor() -> None:
    x = RNG.normal(size=9).astype("float32")
    np.testing.assert_allclose(tf.signal.idct(tf.signal.dct(x)), 18 * x, atol=1e-4)
    np.testing.assert_allclose(tf.signal.idct(tf.signal.dct(x, norm="ortho"), norm="ortho"), x, atol=1e-6)
    mel = RNG.normal(size=(2, 8)).astype("float32")
    k, j = np.arange(8)[:, None], np.arange(8)
    expected = mel @ (2 * np.cos(np.pi * k * (2 * j + 1) / 16)).T / 4
    np.testing.assert_allclose(tf.signal.mfccs_from_log_mel_spectrograms(mel), expected, atol=1e-5)


def test_windows_are_periodic_where_they_are_even() -> None:
    np.testing.assert_allclose(tf.signal.hann_window(4), [0, 0.5, 1, 0.5], atol=1e-7)
    np.testing.assert_allclose(tf.signal.hann_window(5), [0, 0.5, 1, 0.5, 0], atol=1e-7)
    np.testing.assert_allclose(tf.signal.hamming_window(4, periodic=False), np.hamming(4), atol=1e-7)
    np.testing.assert_allclose(tf.signal.kaiser_window(6, beta=4.0), np.kaiser(6, 4.0), atol=1e-6)


@pytest.mark.parametrize("length, step", [(50, 25), (48, 12), (30, 30)])
def test_a_signal_comes_back(length: int, step: int) -> None:
    x = RNG.normal(size=300).astype("float32")

    @tf.function
    def around(x: Any) -> Any:
        spectra = tf.signal.stft(x, length, step, window_fn=tf.signal.hamming_window)
        window = tf.signal.inverse_stft_window_fn(step, forward_window_fn=tf.signal.hamming_window)
        return tf.signal.inverse_stft(spectra, length, step, window_fn=window)

    found = np.asarray(around(tf.constant(x)))
    inside = slice(length, len(found) - length)
    np.testing.assert_allclose(found[inside], x[: len(found)][inside], atol=1e-5)


def test_frames_and_their_sum() -> None:
    frames = tf.signal.frame(tf.range(5), 3, 2, pad_end=True, pad_value=9)
    np.testing.assert_array_equal(frames, [[0, 1, 2], [2, 3, 4], [4, 9, 9]])
    np.testing.assert_array_equal(tf.signal.overlap_and_add([[1.0, 1.0], [1.0, 1.0]], 1), [1, 2, 1])
