"""``hf.fft`` against ``numpy.fft``: values, dtypes, norms, lengths, axes, derivatives, bits, wrong arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors, fft
from tests.support.bits import same_bits

RNG = np.random.default_rng(11)
DTYPES = ("float32", "float64", "complex64", "complex128")
ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
FROM_REAL = ("rfft", "ihfft", "rfft2", "rfftn")
TO_REAL = ("irfft", "hfft", "irfft2", "irfftn")


def drawn(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    x = RNG.normal(size=shape)
    return (x + 1j * RNG.normal(size=shape) if dtype.startswith("c") else x).astype(dtype)


def close(found: Any, expected: np.ndarray) -> None:
    found = np.asarray(found)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    limit = 20 * np.finfo(expected.dtype).eps * max(1.0, np.abs(expected).max(initial=0))
    np.testing.assert_allclose(found, expected, rtol=0, atol=limit)


@pytest.mark.parametrize("name", ONE)
def test_one_axis(name: str) -> None:
    ours, theirs = getattr(fft, name), getattr(np.fft, name)
    for dtype in DTYPES:
        if name in FROM_REAL and dtype.startswith("c"):
            continue
        for n in (1, 2, 3, 4, 5, 8, 17, 30, 34):
            x = drawn((3, n), dtype)
            for norm in (None, "backward", "ortho", "forward"):
                if not (name in TO_REAL and n == 1):
                    close(ours(x, norm=norm), theirs(x, norm=norm))
            for m in (n + 3, max(1, n - 2)):
                close(ours(x, m), theirs(x, m))
        x = drawn((4, 6, 2), dtype)
        close(ours(x, axis=1), theirs(x, axis=1))
        close(ours(x, 5, 0), theirs(x, 5, 0))


@pytest.mark.parametrize("name", [n + k for n in ("fft", "ifft", "rfft", "irfft") for k in ("2", "n")])
def test_several_axes(name: str) -> None:
    ours, theirs = getattr(fft, name), getattr(np.fft, name)
    for dtype in ("float32", "complex128"):
        if name in FROM_REAL and dtype.startswith("c"):
            continue
        x = drawn((4, 6, 5), dtype)
        close(ours(x), theirs(x))
        close(ours(x, norm="ortho"), theirs(x, norm="ortho"))
        close(ours(x, s=(3, 8), axes=(0, 1)), theirs(x, s=(3, 8), axes=(0, 1)))
        close(ours(x, axes=(2, 0)), theirs(x, axes=(2, 0)))
        close(ours(x, s=(-1, 4), axes=(0, 2)), theirs(x, s=(-1, 4), axes=(0, 2)))
    if name.endswith("n"):
        close(ours(x, s=(3,)), theirs(x, s=(3,), axes=(-1,)))


def test_no_axes_and_nothing() -> None:
    x = drawn((2, 3), "complex128")
    np.testing.assert_array_equal(fft.fftn(x, axes=()), x)
    assert fft.fft(hf.zeros((0, 4))).shape == (0, 4)
    assert fft.rfft(hf.zeros((0, 4))).shape == (0, 3)
    assert hf.function(fft.irfft)(hf.zeros((0, 3))).shape == (0, 4)


def test_numbers_become_complex() -> None:
    assert fft.fft([1, 2]).dtype == np.complex64
    assert fft.rfft([True, False]).dtype == np.complex64
    assert fft.fft(hf.ones(4, "float16")).dtype == np.complex64
    assert fft.irfft(hf.ones(4, "bfloat16")).dtype == np.float32
    assert fft.fft(np.ones(4)).dtype == np.complex128


def test_frequencies_and_shifts() -> None:
    for n in (1, 2, 4, 5, 9):
        for d in (1.0, 0.3):
            np.testing.assert_array_equal(fft.fftfreq(n, d, dtype="float64"), np.fft.fftfreq(n, d))
            np.testing.assert_array_equal(fft.rfftfreq(n, d, dtype="float64"), np.fft.rfftfreq(n, d))
        x = drawn((n, 3), "float32")
        for axes in (None, 0, (1,), (0, 1)):
            np.testing.assert_array_equal(fft.fftshift(x, axes=axes), np.fft.fftshift(x, axes))
            np.testing.assert_array_equal(fft.ifftshift(x, axes=axes), np.fft.ifftshift(x, axes))
    assert fft.fftfreq(4).dtype == np.float32
    assert fft.fftshift(hf.asarray(3.0)).shape == ()


@pytest.mark.parametrize("name", ONE)
def test_derivatives_are_differences(name: str) -> None:
    function = getattr(fft, name)
    for n in (5, 6, 17):
        z = drawn((n,), "float64" if name in FROM_REAL else "complex128")
        weights = drawn(function(z).shape, "float64" if name in TO_REAL else "complex128")

        def total(x: Any, weights: np.ndarray = weights) -> Any:
            return hf.sum(hf.real(function(x) * weights))

        x = hf.asarray(z)
        with hf.GradientTape() as tape:
            tape.watch(x)
            y = total(x)
        gradient = np.asarray(tape.gradient(y, x))
        for k in range(n):
            for unit in (1, 1j) if z.dtype.kind == "c" else (1,):
                step = np.zeros_like(z)
                step[k] = unit
                slope = float(total(hf.asarray(z + step))) - float(total(x))
                part = gradient[k] * np.conj(unit)
                np.testing.assert_allclose(part.real, slope, atol=1e-10)
        with hf.ForwardAccumulator(x, x) as forward:
            y = function(x)
        np.testing.assert_allclose(forward.jvp(y), y, atol=1e-12)


@pytest.mark.parametrize("name", (*ONE, "fftn", "irfft2"))
def test_compiled_functions_and_examples_have_the_bits_of_eager_ones(name: str) -> None:
    function = getattr(fft, name)
    compiled = hf.function(lambda x: function(x * 2.0) + 1.0)
    for rows in (1, 2, 3, 4):  # the extent is open from the second on
        for n in (6, 17):
            x = hf.asarray(drawn((rows, n, 4), "float32" if name in FROM_REAL else "complex64"))
            expected = np.asarray(function(x * 2.0) + 1.0)
            assert same_bits(np.asarray(compiled(x)), expected)
    if name in ONE:
        assert same_bits(np.asarray(hf.vmap(function)(x)), np.asarray(function(x)))


WRONG = [
    (lambda: fft.fft([]), errors.ArgumentError, "numbers to transform"),
    (lambda: fft.fft([1.0], 0), errors.ArgumentError, "numbers to transform"),
    (lambda: fft.fft([1.0], 2.5), errors.HybridflowError, "n "),
    (lambda: fft.fft([1.0], axis=1), errors.AxisError, "axis"),
    (lambda: fft.fft(1.0), errors.ShapeError, "1 axes or more"),
    (lambda: fft.fft([1.0], norm="none"), errors.ArgumentError, "norm"),
    (lambda: fft.hfft([1.0], 4, norm="none"), errors.ArgumentError, "norm"),
    (lambda: fft.rfft([1j]), errors.DTypeError, "real numbers"),
    (lambda: fft.irfft([1.0]), errors.ArgumentError, "n is 0"),
    (lambda: fft.fftn([[1.0]], s=(1,), axes=(0, 1)), errors.ArgumentError, "one for each"),
    (lambda: fft.fftn([1.0], s=(1, 1)), errors.ShapeError, "axes"),
    (lambda: fft.rfftn([1.0], axes=()), errors.ArgumentError, "no axes"),
    (lambda: fft.fftn([1.0], axes=0), errors.ArgumentError, "axes is 0"),
    (lambda: fft.fftfreq(0), errors.ArgumentError, "n is 0"),
    (lambda: fft.fftfreq(4, dtype="int32"), errors.DTypeError, "float"),
    (lambda: fft.fftshift([1.0], axes=2), errors.AxisError, "axis"),
]


@pytest.mark.parametrize("call, error, words", WRONG)
def test_wrong_arguments(call: Callable[[], Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()
