"""Kronecker products, block diagonals and Toeplitz matrices against NumPy and their definitions."""

from __future__ import annotations

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors
from tests.support.bits import assert_same_bits

L = hf.linalg
RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    "shapes", [((2, 3), (4, 5)), ((3,), (2, 2)), ((), (2, 3)), ((2, 3, 2), (2, 2)), ((0, 2), (3, 3)), ((1,), (1,))]
)
def test_kronecker_products(shapes: tuple[tuple[int, ...], ...]) -> None:
    x, y = (RNG.normal(size=shape) for shape in shapes)
    np.testing.assert_array_equal(L.kron(x, y), np.kron(x, y))
    assert_same_bits(hf.function(lambda x, y: L.kron(x, y))(hf.asarray(x), hf.asarray(y)), L.kron(x, y))


def test_block_diagonals() -> None:
    x, y, z = RNG.normal(size=(2, 3)), RNG.normal(size=(4, 2, 2, 1)), RNG.normal(size=(2, 0, 2))
    found = L.block_diag(x, y, z).numpy()
    expected = np.zeros((4, 2, 4, 6))
    expected[..., :2, :3], expected[..., 2:4, 3:4] = x, y
    np.testing.assert_array_equal(found, expected)
    assert L.block_diag(2.0, [3.0, 4.0]).tolist() == [[2, 0, 0], [0, 3, 4]]
    assert L.block_diag([[1]], [[2.5]]).dtype == hf.float32
    with pytest.raises(errors.ArgumentError, match="no matrices"):
        L.block_diag()
    with pytest.raises(errors.ShapeError, match="broadcast"):
        L.block_diag(np.ones((2, 1, 1)), np.ones((3, 1, 1)))


def test_toeplitz_matrices() -> None:
    for m, n in ((4, 3), (1, 1), (1, 4), (3, 1), (0, 3), (2, 0)):
        c, r = RNG.normal(size=(2, m)), RNG.normal(size=(3, 1, n))
        found = L.toeplitz(c, r).numpy()
        assert found.shape == (3, 2, m, n)
        for a, b, i, j in np.ndindex(found.shape):
            assert found[a, b, i, j] == (c[b, i - j] if i >= j else r[a, 0, j - i])
    symmetric = L.toeplitz(np.arange(4)).numpy()
    np.testing.assert_array_equal(symmetric, np.abs(np.subtract.outer(range(4), range(4))))
    with pytest.raises(errors.ShapeError, match="scalar"):
        L.toeplitz(1.0)
    with pytest.raises(errors.ShapeError, match="broadcast"):
        L.toeplitz(np.ones((2, 3)), np.ones((3, 3)))
    f = hf.function(lambda c: L.toeplitz(c))
    for n in (2, 3, 4, 5):
        assert_same_bits(f(hf.arange(n)), L.toeplitz(np.arange(n)))
