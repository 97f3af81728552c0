"""Many rows times a few numbers are elementwise ops, with the bits of products."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.compiler.ops.evaluation_order import ordered_product

RNG = np.random.default_rng(4)


def _numbers(*shape: int, dtype: str) -> np.ndarray:
    x = RNG.standard_normal(shape).astype(dtype)
    x.flat[::7] = -0.0
    x.flat[3::11] = 1e-30
    return x


def _is_product(function: Any, *given: Any) -> bool:
    return any("matmul" in row["ops"] for row in function.kernels(*given))


def _bits(x: Any) -> bytes:
    """A NaN's sign and payload are free."""
    array = np.asarray(x)
    return np.where(array != array, np.array(0, array.dtype), array).tobytes() + (array != array).tobytes()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("terms", "columns"), [*itertools.product((2, 3, 4), (1, 2, 3))])
def test_bits_are_those_of_products(terms: int, columns: int, dtype: str) -> None:
    for rows in (32, 63, 1023):
        x, y = _numbers(rows, terms, dtype=dtype), _numbers(terms, columns, dtype=dtype)
        for turned_x, turned_y in itertools.product((False, True), repeat=2):
            given = [hf.asarray(v.T.copy() if t else v) for v, t in ((x, turned_x), (y, turned_y))]

            def run(x: Any, y: Any, turned_x: bool = turned_x, turned_y: bool = turned_y) -> Any:
                return (hf.matrix_transpose(x) if turned_x else x) @ (hf.matrix_transpose(y) if turned_y else y)

            compiled = hf.function(run)
            found, eager = compiled(*given), run(*given)
            assert _bits(found) == _bits(eager)
            if columns > 1:
                assert _bits(found) == _bits(ordered_product(x, y, x.dtype))
            np.testing.assert_allclose(found.numpy(), x.astype("f8") @ y.astype("f8"), rtol=1e-5, atol=1e-5)
            assert not _is_product(compiled, *given)


def test_few_rows_times_many_columns() -> None:
    x, y = _numbers(3, 4, dtype="float32"), _numbers(4, 501, dtype="float32")
    compiled = hf.function(lambda x, y: x @ y)
    found = compiled(hf.asarray(x), hf.asarray(y))
    assert _bits(found) == _bits(ordered_product(x, y, x.dtype)) == _bits(hf.asarray(x) @ hf.asarray(y))
    assert not _is_product(compiled, hf.asarray(x), hf.asarray(y))


@pytest.mark.parametrize(("dtype", "tiny"), [("float32", 1e-30), ("float64", 1e-200)])
@pytest.mark.parametrize("columns", [1, 2, 3])
def test_sums_that_vanish_have_no_sign(columns: int, dtype: str, tiny: float) -> None:
    """The last term rounds to -0, which the sum of a product's only block may be, but not the product."""
    x, y = np.zeros((40, 3), dtype), np.zeros((3, columns), dtype)
    x[:, 2], y[2] = tiny, -tiny
    for one, other in ((x, y), (y.T.copy(), x.T.copy())):
        found = hf.function(lambda x, y: x @ y)(one, other)
        assert _bits(found) == _bits(hf.asarray(one) @ hf.asarray(other))
        assert columns == 1 or not np.signbit(found.numpy()).any()


def test_infinities_and_nan() -> None:
    x = RNG.choice(np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, 3e38], np.float32), (257, 3))
    y = RNG.choice(np.array([np.inf, 0.0, -0.0, -2.0, 3e38], np.float32), (3, 3))
    found = hf.function(lambda x, y: x @ y)(hf.asarray(x), hf.asarray(y))
    assert _bits(found) == _bits(ordered_product(x, y, x.dtype)) == _bits(hf.asarray(x) @ hf.asarray(y))


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_colours_of_images(threads: int) -> None:
    images = RNG.integers(0, 256, (130, 131, 3)).astype(np.uint8)
    mix = RNG.random((3, 3), np.float32) / 2

    def run(images: Any, mix: Any) -> Any:
        return hf.astype(hf.clip(hf.astype(images, "float32") @ mix + 0.5, 0.0, 255.0), "uint8")

    given, before = (hf.asarray(images), hf.asarray(mix)), hf.config.get_num_threads()
    hf.config.set_num_threads(threads)
    try:
        found, eager = hf.function(run)(*given), run(*given)
    finally:
        hf.config.set_num_threads(before)
    np.testing.assert_array_equal(found.numpy(), eager.numpy())
    exact = np.clip(images.astype("f8") @ mix.astype("f8") + 0.5, 0, 255)
    assert np.abs(found.numpy() - np.floor(exact)).max() <= 1  # a sum that falls beside a whole number


def test_open_numbers_of_rows_and_gradients() -> None:
    y = _numbers(3, 3, dtype="float32")

    @hf.function
    def run(x: Any, y: Any) -> Any:
        with hf.GradientTape() as tape:
            tape.watch([x, y])
            value = hf.sum((x @ y) ** 2)
        return tape.gradient(value, [x, y])

    for rows in (40, 50, 3, 77, 1):
        x = _numbers(rows, 3, dtype="float32")
        wide, other = x.astype("f8"), y.astype("f8")
        expected = 2 * (wide @ other) @ other.T, 2 * wide.T @ (wide @ other)
        for found, wanted in zip(run(hf.asarray(x), hf.asarray(y)), expected):
            np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-4, atol=1e-4)
