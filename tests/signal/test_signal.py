"""``hf.signal`` against SciPy and the definitions: values, bits of compiled code, derivatives, wrong arguments."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors, signal
from tests.support.bits import same_bits

RNG = np.random.default_rng(3)


def compiled_too(function: Callable[..., Any], *arrays: np.ndarray) -> np.ndarray:
    """What the function gives, compiled with the same bits."""
    tensors = [hf.asarray(x) for x in arrays]
    eager = np.asarray(function(*tensors))
    assert same_bits(np.asarray(hf.function(function)(*tensors)), eager)
    return eager


def test_windows() -> None:
    windows = pytest.importorskip("scipy.signal.windows")
    for n in (0, 1, 2, 3, 8, 9, 64):
        for periodic in (True, False):
            np.testing.assert_allclose(
                signal.hann_window(n, periodic, "float64"), windows.hann(n, not periodic), atol=1e-15
            )
            hamming = signal.hamming_window(n, periodic, dtype="float64")
            np.testing.assert_allclose(hamming, windows.hamming(n, not periodic), atol=1e-15)
        np.testing.assert_allclose(signal.kaiser_window(n, 8.0, "float64"), windows.kaiser(n, 8.0), atol=1e-15)
    for n in (2, 8, 64):
        derived = signal.kaiser_bessel_derived_window(n, 4 * np.pi, "float64")
        np.testing.assert_allclose(derived, windows.kaiser_bessel_derived(n, 4 * np.pi), atol=1e-15)
        for window in (derived, signal.vorbis_window(n, "float64")):
            square = np.asarray(window) ** 2
            np.testing.assert_allclose(square[: n // 2] + square[n // 2 :], 1)
    assert signal.hann_window(4).dtype == np.float32
    assert signal.hann_window(4, dtype="bfloat16").dtype == hf.bfloat16


def framed(x: np.ndarray, length: int, step: int) -> np.ndarray:
    starts = range(0, x.shape[-1] - length + 1, step)
    rows = [x[..., k : k + length] for k in starts]
    return np.stack(rows, -2) if rows else np.zeros((*x.shape[:-1], 0, length), x.dtype)


@pytest.mark.parametrize("n, length, step", [(10, 3, 2), (10, 4, 4), (10, 3, 5), (70, 65, 1), (3, 5, 2), (0, 2, 1)])
def test_frames_and_their_sum(n: int, length: int, step: int) -> None:
    x = RNG.normal(size=(2, n))
    found = compiled_too(lambda x: signal.frame(x, length, step), x)
    np.testing.assert_array_equal(found, framed(x, length, step))
    count = -(-n // step)
    padded = np.concatenate([x, np.full((2, max(0, (count - 1) * step + length - n)), 7.0)], -1)
    expected = framed(padded, length, step)[:, :count]
    np.testing.assert_array_equal(signal.frame(x, length, step, True, 7.0), expected)
    np.testing.assert_array_equal(signal.frame(x.T, length, step, axis=0), np.moveaxis(framed(x, length, step), 0, -1))
    frames = RNG.normal(size=(2, 6, length))
    total = np.zeros((2, 5 * step + length))
    for k in range(6):
        total[:, k * step : k * step + length] += frames[:, k]
    found = compiled_too(lambda x: signal.overlap_and_add(x, step), frames)
    np.testing.assert_allclose(found, total, atol=1e-13)


def test_overlap_and_add_is_the_transpose_of_frame() -> None:
    x, v = hf.asarray(RNG.normal(size=20)), RNG.normal(size=(6, 4))
    with hf.GradientTape() as tape:
        tape.watch(x)
        y = hf.sum(signal.frame(x, 4, 3) * v)
    expected = np.asarray(signal.overlap_and_add(v, 3))
    np.testing.assert_allclose(tape.gradient(y, x), np.pad(expected, (0, 20 - expected.size)), atol=1e-14)


def test_frames_and_sums_of_nothing() -> None:
    assert signal.overlap_and_add(hf.zeros((2, 0, 4)), 2).shape == (2, 0)
    assert signal.overlap_and_add(hf.zeros((2, 3, 0)), 2).shape == (2, 4)


@pytest.mark.parametrize("kind", [1, 2, 3, 4])
def test_cosine_transforms(kind: int) -> None:
    fft = pytest.importorskip("scipy.fft")
    for n in (1, 2, 3, 4, 5, 8, 9, 16, 31):
        if kind == 1 and n == 1:
            continue
        for norm in (None, "ortho", "forward"):
            x = RNG.normal(size=(2, n))
            for ours, theirs in ((signal.dct, fft.dct), (signal.idct, fft.idct)):
                np.testing.assert_allclose(ours(x, kind, norm=norm), theirs(x, kind, norm=norm), atol=1e-12)
            back = signal.idct(signal.dct(x, kind, norm=norm), kind, norm=norm)
            np.testing.assert_allclose(back, x, atol=1e-13)
    x = RNG.normal(size=(9, 3)).astype("float32")
    found = compiled_too(lambda x: signal.dct(x, kind, n=12, axis=0, norm="ortho"), x)
    np.testing.assert_allclose(found, fft.dct(x, kind, n=12, axis=0, norm="ortho"), atol=1e-5)
    assert found.dtype == np.float32


def test_the_derivative_of_an_orthogonal_transform_is_its_inverse() -> None:
    x, v = hf.asarray(RNG.normal(size=10)), hf.asarray(RNG.normal(size=10))
    for kind in (2, 3, 4):
        with hf.GradientTape() as tape:
            tape.watch(x)
            y = hf.sum(signal.dct(x, kind, norm="ortho") * v)
        np.testing.assert_allclose(tape.gradient(y, x), signal.idct(v, kind, norm="ortho"), atol=1e-13)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_convolutions(mode: str) -> None:
    scipy = pytest.importorskip("scipy.signal")
    for m, n in ((5, 3), (3, 5), (1, 4), (4, 4), (7, 2), (400, 300)):
        x, y = RNG.normal(size=m), RNG.normal(size=n)
        for method in ("direct", "fft", "auto"):
            for ours, theirs in ((signal.convolve, scipy.convolve), (signal.correlate, scipy.correlate)):
                found, expected = np.asarray(ours(x, y, mode, method)), theirs(x, y, mode)
                assert found.shape == expected.shape
                np.testing.assert_allclose(found, expected, atol=1e-11)
    x, y = RNG.normal(size=(6, 7)), RNG.normal(size=(3, 2))
    for method in ("direct", "fft"):
        found = compiled_too(functools.partial(signal.convolve, mode=mode, method=method), x, y)
        np.testing.assert_allclose(found, scipy.convolve(x, y, mode), atol=1e-12)
    found = compiled_too(lambda x, y: signal.fftconvolve(x, y, mode, axes=1), x, y[:1])
    np.testing.assert_allclose(found, scipy.fftconvolve(x, y[:1], mode, axes=1), atol=1e-12)


def test_complex_signals() -> None:
    scipy = pytest.importorskip("scipy.signal")
    x, y = (RNG.normal(size=(5, n)) + 1j * RNG.normal(size=(5, n)) for n in (7, 3))
    for method in ("direct", "fft"):
        np.testing.assert_allclose(signal.convolve(x, y, "same", method), scipy.convolve(x, y, "same"), atol=1e-12)
        np.testing.assert_allclose(signal.correlate(x, y, "full", method), scipy.correlate(x, y, "full"), atol=1e-12)
    z = RNG.normal(size=(4, 3, 6))
    found = signal.fftconvolve(z, z[:, :2], axes=(0, 1))
    np.testing.assert_allclose(found, scipy.fftconvolve(z, z[:, :2], axes=(0, 1)), atol=1e-12)
    b, a = [1.0, 0.5j], [1.0, -0.25 + 0.5j]
    np.testing.assert_allclose(signal.lfilter(b, a, x), scipy.lfilter(b, a, x), atol=1e-12)


def test_integers_are_convolved_exactly() -> None:
    found = signal.convolve([1, 2, 3], [2**40, 1])
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found, np.convolve([1, 2, 3], [2**40, 1]))


def test_linear_filters() -> None:
    scipy = pytest.importorskip("scipy.signal")
    b, a = scipy.butter(4, 0.2)
    x = RNG.normal(size=(3, 50))
    np.testing.assert_allclose(compiled_too(signal.lfilter, b, a, x), scipy.lfilter(b, a, x), atol=1e-12)
    state = RNG.normal(size=(3, 4))
    found, expected = signal.lfilter(b, a, x, zi=state), scipy.lfilter(b, a, x, zi=state)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-12)
    found = signal.lfilter(b, [2.0], x.T, axis=0)
    np.testing.assert_allclose(found, scipy.lfilter(b, [2.0], x.T, axis=0), atol=1e-12)
    np.testing.assert_allclose(signal.lfilter([3.0], [2.0], x), x * 1.5)
    assert signal.lfilter(b, a, hf.zeros((2, 0), "float64")).shape == (2, 0)


def test_derivatives_of_a_filter_are_differences() -> None:
    b, a, x = (hf.asarray(v) for v in (RNG.normal(size=3), np.array([1.0, -0.5, 0.25]), RNG.normal(size=8)))

    def total(b: Any, a: Any, x: Any) -> Any:
        y = signal.lfilter(b, a, x)
        return hf.sum(y * y)

    with hf.GradientTape() as tape:
        tape.watch([b, a, x])
        y = total(b, a, x)
    gradients = tape.gradient(y, [b, a, x])
    for number, gradient in enumerate(gradients):
        for k in range(gradient.shape[0]):
            ends = []
            for step in (1e-6, -1e-6):
                moved = [np.array(v) for v in (b, a, x)]
                moved[number][k] += step
                ends.append(float(total(*map(hf.asarray, moved))))
            np.testing.assert_allclose(gradient[k], (ends[0] - ends[1]) / 2e-6, rtol=1e-6, atol=1e-6)


def test_spectrograms() -> None:
    x = RNG.normal(size=(2, 200))
    weights = np.asarray(signal.hann_window(50, dtype="float64"))
    expected = np.abs(np.fft.rfft(framed(x, 50, 20) * weights, 64)) ** 2
    np.testing.assert_allclose(signal.spectrogram(x, 50, 20), expected, atol=1e-12)
    found = compiled_too(lambda x: signal.spectrogram(x, 50, 20, 64, window=weights, power=1), x)
    np.testing.assert_allclose(found, np.sqrt(expected), atol=1e-13)
    shorter = np.abs(np.fft.rfft(framed(x, 50, 20), 32)) ** 2
    np.testing.assert_allclose(signal.spectrogram(x, 50, 20, 32, window=None), shorter, atol=1e-12)


def test_short_time_transforms_and_back() -> None:
    x = RNG.normal(size=(2, 200))
    weights = np.asarray(signal.hann_window(50, dtype="float64"))
    found = compiled_too(lambda x: signal.stft(x, 50, 20), x)
    np.testing.assert_allclose(found, np.fft.rfft(framed(x, 50, 20) * weights, 64), atol=1e-13)
    back = compiled_too(lambda x: signal.istft(x, 50, 20), found)
    assert back.shape == (2, 190)
    np.testing.assert_allclose(back[:, 1:], x[:, 1:190], atol=1e-12)
    assert (back[:, 0] == 0).all()  # where the window is 0
    plain = signal.istft(signal.stft(x, 30, 30, window=None), 30, 30, window=None)
    np.testing.assert_allclose(plain, x[:, :180], atol=1e-13)


def test_mel_weights() -> None:
    found = np.asarray(signal.linear_to_mel_weight_matrix(10, 65, 8000, 125.0, 3800.0, "float64"))
    edges = 700 * (np.exp(np.linspace(*(1127 * np.log1p(np.array([125, 3800]) / 700)), 12) / 1127) - 1)
    at = np.linspace(0, 4000, 65)
    for k in range(10):
        assert (found[(at <= edges[k]) | (at >= edges[k + 2]), k] == 0).all()
        assert (found[(at > edges[k] + 1e-6) & (at < edges[k + 2] - 1e-6), k] > 0).all()
        assert abs(at[found[:, k].argmax()] - edges[k + 1]) <= 4000 / 64
    assert found.max() <= 1 and (found[0] == 0).all()


WRONG = [
    (lambda: signal.hann_window(-1), errors.ArgumentError, "window_length"),
    (lambda: signal.hann_window(4, dtype="int32"), errors.DTypeError, "float"),
    (lambda: signal.vorbis_window(3), errors.ArgumentError, "even"),
    (lambda: signal.frame([1.0], 0, 1), errors.ArgumentError, "frame_length"),
    (lambda: signal.frame([1.0], 1, 1, axis=1), errors.AxisError, "axis"),
    (lambda: signal.overlap_and_add([1.0], 1), errors.ShapeError, "last two axes"),
    (lambda: signal.dct([1.0], 5), errors.ArgumentError, "type is 5"),
    (lambda: signal.dct([1.0], 1), errors.ArgumentError, "2 or more"),
    (lambda: signal.dct([1.0], norm="none"), errors.ArgumentError, "norm"),
    (lambda: signal.dct(1.0), errors.ShapeError, "scalar"),
    (lambda: signal.dct([1j]), errors.DTypeError, "real numbers"),
    (lambda: signal.convolve([1.0], [[1.0]]), errors.ShapeError, "numbers of axes"),
    (lambda: signal.convolve([1.0], [1.0], "half"), errors.ArgumentError, "mode"),
    (lambda: signal.convolve([1.0], [1.0], method="slow"), errors.ArgumentError, "method"),
    (lambda: signal.convolve([], [1.0]), errors.ShapeError, "empty"),
    (lambda: signal.convolve([1], [1], method="fft"), errors.DTypeError, "integers"),
    (lambda: signal.convolve([[1.0, 2.0]], [[1.0], [2.0]], "valid"), errors.ShapeError, "contains"),
    (lambda: signal.lfilter([], [1.0], [1.0]), errors.ShapeError, "b is"),
    (lambda: signal.lfilter([1.0], [1.0, 2.0], [1.0], zi=[1.0, 2.0]), errors.ShapeError, "zi is"),
    (lambda: signal.spectrogram([1.0], 1, 1, power=3), errors.ArgumentError, "power"),
    (lambda: signal.spectrogram([1.0, 2.0], 2, 1, window=[1.0]), errors.ShapeError, "window"),
    (lambda: signal.stft([1j], 1, 1), errors.DTypeError, "real samples"),
    (lambda: signal.istft([[1.0, 2.0]], 8, 1), errors.ShapeError, "Expected 5 numbers"),
    (lambda: signal.linear_to_mel_weight_matrix(upper_edge_hertz=9e9), errors.ArgumentError, "edges"),
]


@pytest.mark.parametrize("call, error, words", WRONG)
def test_wrong_arguments(call: Callable[[], Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()
