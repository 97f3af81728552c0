"""Fourier transforms of pairs against direct sums in extended precision: errors, bits of compiled code, derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors
from hybridflow.array import fourier
from hybridflow.compiler.ops import TABLE, fourier_plan
from hybridflow.eager.dispatch import apply
from hybridflow.runtime.machine import host_target
from tests.support.bits import same_bits
from tests.support.jit_helper import runnable_targets

TARGETS = runnable_targets()
SIZES = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15, 16, 17, 24, 25, 29, 32, 36, 49, 64, 97, 100, 121, 128, 169, 240)
DTYPES = ("float32", "float64")
ERROR = 4.0  # of the root mean square, in units of the dtype's epsilon: what is allowed of the root mean square result


def direct(x: np.ndarray, inverse: bool = False) -> np.ndarray:
    """The sum of the definition along the last axis, in long double; angles are exact fractions of a turn."""
    n = x.shape[-1]
    turn = (np.arange(n)[:, None] * np.arange(n)) % n
    angle = 2 * np.arctan2(np.longdouble(0), np.longdouble(-1)) * turn.astype(np.longdouble) / n
    matrix = np.cos(angle) + (1j if inverse else -1j) * np.sin(angle)
    return np.asarray(x.astype(np.clongdouble) @ matrix)


def numbers(shape: tuple[int, ...], dtype: str, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(*shape, 2)).astype(dtype)


def as_complex(x: Any) -> np.ndarray:
    x = np.asarray(x)
    if x.dtype.kind == "c":
        return x.astype(np.clongdouble)
    return np.asarray(x[..., 0].astype(np.longdouble) + 1j * x[..., 1].astype(np.longdouble))


def relative(found: Any, expected: np.ndarray) -> float:
    """The root mean square error relative to that of the result, in units of the dtype's epsilon."""
    error = np.abs(as_complex(found) - expected)
    size = np.sqrt(np.mean(np.abs(expected) ** 2))
    return float(np.sqrt(np.mean(error**2)) / size / np.finfo(np.asarray(found).dtype).eps)


@pytest.mark.parametrize("dtype", DTYPES)
def test_transforms_are_the_sums_of_the_definition(dtype: str) -> None:
    for n in SIZES:
        x = numbers((3, n), dtype, n)
        for inverse in (False, True):
            expected = direct(as_complex(x), inverse)
            assert relative(fourier.fft(hf.asarray(x), 1, inverse=inverse), expected) < ERROR, n


@pytest.mark.parametrize("dtype", DTYPES)
def test_real_transforms(dtype: str) -> None:
    for n in SIZES:
        x = np.random.default_rng(n).normal(size=(2, n)).astype(dtype)
        found = fourier.rfft(hf.asarray(x))
        assert found.shape == (2, n // 2 + 1)
        assert relative(found, direct(x.astype(np.longdouble))[:, : n // 2 + 1]) < ERROR, n
        back = np.asarray(fourier.irfft(found, n, scale=1 / n))
        np.testing.assert_allclose(back, x, atol=40 * np.finfo(dtype).eps)


def test_imaginary_parts_that_no_real_signal_has_are_not_looked_at() -> None:
    for n in (8, 9):
        x = numbers((n // 2 + 1,), "float64")
        other = x.copy()
        other[0, 1] = np.nan
        if n % 2 == 0:
            other[-1, 1] = np.nan
        given, expected = (fourier.irfft(hf.complex(v[:, 0], v[:, 1]), n) for v in (other, x))
        np.testing.assert_array_equal(given, expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_axes_and_batches_do_not_change_bits(dtype: str) -> None:
    for n in (2, 5, 8, 48, 60, 64, 256):
        x = numbers((3, n, 5), dtype)
        whole = np.asarray(fourier.fft(hf.asarray(x), 1))
        rows = np.moveaxis(np.asarray(fourier.fft(hf.asarray(np.moveaxis(x, 1, 2)), 2)), 2, 1)
        assert same_bits(whole, np.ascontiguousarray(rows)), n
        for i in range(3):
            for k in (0, 4):
                one = fourier.fft(hf.asarray(np.ascontiguousarray(x[i, :, k])), 0)
                assert same_bits(np.ascontiguousarray(whole[i, :, k]), np.asarray(one)), n


@pytest.mark.parametrize("dtype", DTYPES)
def test_compiled_functions_have_the_bits_of_eager_ones(dtype: str) -> None:
    @hf.function
    def around(x: Any) -> Any:
        return fourier.fft(fourier.fft(x, 1), 1, inverse=True, scale=0.5) * 2.0

    for rows in (1, 2, 3, 4):  # symbolic from the second on
        for n in (4, 7, 30, 64):
            x = hf.asarray(numbers((rows, n), dtype))
            eager = fourier.fft(fourier.fft(x, 1), 1, inverse=True, scale=0.5) * 2.0
            assert same_bits(np.asarray(around(x)), np.asarray(eager))


def test_bits_are_those_of_any_number_of_threads() -> None:
    before = hf.config.get_num_threads()
    results: dict[int, list[bytes]] = {}
    try:
        for threads in (1, 2, 3):
            hf.config.set_num_threads(threads)
            results[threads] = []
            for dtype in DTYPES:
                for shape in ((4096,), (70, 240), (33, 1000), (16384,)):
                    x = hf.asarray(numbers(shape, dtype))
                    compiled = hf.function(lambda x: fourier.fft(x, x.ndim - 2) + 0.0)
                    found = np.asarray(fourier.fft(x, len(shape) - 1))
                    assert same_bits(np.asarray(compiled(x)), found + 0.0)
                    results[threads].append(found.tobytes())
    finally:
        hf.config.set_num_threads(before)
    assert results[1] == results[2] == results[3]


def test_nothing_and_one() -> None:
    for shape in ((0, 4), (3, 0), (0,)):
        x = hf.asarray(numbers(shape, "float32"))
        assert fourier.fft(x, len(shape) - 1).shape == (*shape, 2)
        assert hf.function(lambda x: fourier.fft(x, x.ndim - 2))(x).shape == (*shape, 2)
    x = numbers((2, 1), "float64")
    np.testing.assert_array_equal(fourier.fft(hf.asarray(x), 1, scale=0.5), x * 0.5)


def test_what_is_not_finite_stays_in_its_row() -> None:
    for n in (4, 7, 16, 60):
        x = numbers((3, n), "float64")
        x[1, 2 % n, 0] = np.nan
        found = np.asarray(fourier.fft(hf.asarray(x), 1))
        assert np.isnan(found[1]).any(-1).all()
        assert np.isfinite(found[[0, 2]]).all()
        x[1, 2 % n, 0] = np.inf
        assert not np.isfinite(np.asarray(fourier.fft(hf.asarray(x), 1))[1]).all(-1).any()


def test_derivatives_are_those_of_a_linear_function() -> None:
    for n in (1, 4, 5, 12, 17):
        x, v = hf.asarray(numbers((2, n), "float64")), numbers((2, n), "float64", 1)
        with hf.GradientTape() as tape:
            tape.watch(x)
            y = hf.sum(fourier.fft(x, 1, scale=0.25) * v)
        gradient = np.asarray(tape.gradient(y, x))
        expected = 0.25 * direct(as_complex(v), inverse=True)
        np.testing.assert_allclose(as_complex(gradient).astype(complex), expected.astype(complex), atol=1e-13)
        real = hf.asarray(v[..., 0])
        with hf.GradientTape() as tape:
            tape.watch(real)
            back = fourier.irfft(fourier.rfft(real), n, scale=1 / n)
            y = hf.sum(back * back)
        np.testing.assert_allclose(tape.gradient(y, real), 2 * v[..., 0], atol=1e-13)


def test_tangents_and_examples() -> None:
    x, v = hf.asarray(numbers((3, 6), "float64")), hf.asarray(numbers((3, 6), "float64", 1))
    with hf.ForwardAccumulator(x, v) as forward:
        y = fourier.fft(x, 1)
    np.testing.assert_allclose(forward.jvp(y), fourier.fft(v, 1), atol=1e-14)
    each = hf.vmap(lambda row: fourier.fft(row, 0))(x)
    np.testing.assert_array_equal(each, fourier.fft(x, 1))


def test_roots_are_symmetric_and_rounded_once() -> None:
    for of in (1, 2, 3, 8, 12, 1000, 1009):
        k = np.arange(of)
        real, imaginary = fourier_plan.unit_roots(k, of, np.dtype("float64"))
        angle = 2 * np.arctan2(np.longdouble(0), np.longdouble(-1)) * k / of
        np.testing.assert_allclose(real, np.cos(angle).astype(float), rtol=0, atol=2**-54)
        np.testing.assert_array_equal(real[1:], real[:0:-1])
        np.testing.assert_array_equal(imaginary[1:], -imaginary[:0:-1])
        if of % 4 == 0:
            assert real[of // 4] == imaginary[0] == 0 and imaginary[of // 4] == 1


def test_smooth_sizes() -> None:
    powers = [(a, b, c, d) for a in range(1, 13) for b in range(9) for c in range(6) for d in range(5)]
    smooth = sorted({2**a * 3**b * 5**c * 7**d for a, b, c, d in powers} | {1})
    for n in range(1, 3000):
        assert fourier.smooth_size(n) == next(k for k in smooth if k >= n)
    assert [n for n in range(1, 40) if not fourier_plan.is_smooth(n)] == [17, 19, 23, 29, 31, 34, 37, 38]


def test_wrong_operands() -> None:
    with pytest.raises(errors.ShapeError, match="pairs of real numbers"):
        fourier.fft(hf.ones((4, 3)), 0)
    with pytest.raises(errors.ShapeError, match="holds the parts"):
        fourier.fft(hf.ones((4, 2)), 1)
    with pytest.raises(errors.DTypeError):
        fourier.fft(hf.ones((4, 2), "int32"), 0)
    for n, size in ((4, 5), (17, 0)):
        with pytest.raises(errors.HybridflowError, match=r"table of constants|prime factor"):
            apply(TABLE["fft"], hf.ones((n, 2)), hf.ones((size,)), axis=0)
    with pytest.raises(errors.ShapeError, match="table of constants"):
        apply(TABLE["fft"], hf.ones((4, 2)), hf.ones((0,), "float64"), axis=0)


# Lengths of each sort: butterflies, parts that fill vectors of any width or leave a rest, several levels.
PLANNED = (*range(1, 17), 18, 20, 26, 33, 35, 48, 64, 121, 240, 512, 1000)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(TARGETS))
def test_bits_are_those_of_the_reference_on_any_machine(name: str, some: Callable[..., list[int]]) -> None:
    lengths = (7, 16, 35, 64) if name == "sse2" else PLANNED
    with host_target.use(TARGETS[name]):
        for dtype in DTYPES:
            for n in some(lengths, 8):
                x = numbers((7 if n <= 16 else 2, n, 3), dtype, n)
                rows = np.ascontiguousarray(np.moveaxis(x, 1, 2))
                expected = fourier_plan.reference(rows, n % 2 == 1, 0.75)
                found = np.asarray(fourier.fft(hf.asarray(x), 1, inverse=n % 2 == 1, scale=0.75))
                assert same_bits(np.ascontiguousarray(np.moveaxis(found, 1, 2)), expected), n
                found = np.asarray(fourier.fft(hf.asarray(rows), 2, inverse=n % 2 == 1, scale=0.75))
                assert same_bits(found, expected), n
