"""Large matrices of ``hf.linalg``, which are computed by blocks: backward errors, bits on any number of threads, on any
machine and in compiled functions, and what has no result."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors
from hybridflow.eager import blocked_linalg
from hybridflow.runtime.machine import host_target
from tests.support.bits import assert_same_bits
from tests.support.jit_helper import runnable_targets

pytestmark = [pytest.mark.code, pytest.mark.sample(4)]

L = hf.linalg
RNG = np.random.default_rng(11)
TARGETS = runnable_targets()
EPS = {"float32": 2.0**-24, "float64": 2.0**-53}
DTYPES = ("float32", "float64")


@pytest.fixture(autouse=True)
def from_blocks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """All ops from one size on, so that matrices of a test need not be larger than it takes."""
    monkeypatch.setattr(blocked_linalg, "LEAST", dict.fromkeys(blocked_linalg.LEAST, 33))
    before = hf.config.get_num_threads()
    yield
    hf.config.set_num_threads(before)


def positive(n: int, dtype: str, condition: float = 10.0) -> np.ndarray:
    q, _ = np.linalg.qr(RNG.normal(size=(n, n)))
    a = (q * np.geomspace(1, condition, n)) @ q.T
    return ((a + a.T) / 2).astype(dtype)


def triangle(n: int, dtype: str) -> np.ndarray:
    """A matrix of which either triangle may be solved for."""
    a = RNG.normal(size=(n, n)) / np.sqrt(n)
    np.fill_diagonal(a, 1 + RNG.uniform(size=n))
    return a.astype(dtype)


def calls(n: int, m: int, dtype: str) -> dict[str, Any]:
    a, y = RNG.normal(size=(n, n)).astype(dtype), RNG.normal(size=(n, m)).astype(dtype)
    return {
        "cholesky": (lambda a: L.cholesky(a), [positive(n, dtype)]),
        "triangular_solve": (lambda a, y: L.triangular_solve(a, y), [triangle(n, dtype), y]),
        "upper": (lambda a, y: L.triangular_solve(a, y, lower=False), [triangle(n, dtype), y]),
        "transposed": (lambda a, y: L.triangular_solve(a, y, transpose=True), [triangle(n, dtype), y]),
        "vector": (lambda a, y: L.triangular_solve(a, y), [triangle(n, dtype), y[:, 0]]),
        "upper, vector": (lambda a, y: L.triangular_solve(a, y, lower=False), [triangle(n, dtype), y[:, 0]]),
        "transposed, vector": (lambda a, y: L.triangular_solve(a, y, transpose=True), [triangle(n, dtype), y[:, 0]]),
        "lu": (lambda a: L.lu_factor(a), [a]),
        "qr": (lambda a: L.qr(a), [a]),
        "solve": (lambda a, y: L.solve(a, y), [a, y]),
        "inv": (lambda a: L.inv(a), [a]),
        "slogdet": (lambda a: L.slogdet(a), [a]),
    }


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [33, 64, 65, 129, 300])
def test_cholesky_factors(n: int, dtype: str) -> None:
    for condition in (10.0, 1e5 if dtype == "float32" else 1e13):
        a = positive(n, dtype, condition)
        for upper in (False, True):
            given = np.triu(a) if upper else np.tril(a)  # the other triangle is not read
            given[np.triu_indices(n, 1) if not upper else np.tril_indices(n, -1)] = np.nan
            found = L.cholesky(given, upper=upper).numpy()
            assert np.array_equal(found, np.triu(found) if upper else np.tril(found)) and (np.diagonal(found) > 0).all()
            factor = (found.T if upper else found).astype(float)
            error = np.abs(factor @ factor.T - a)
            # Higham, "Accuracy and Stability", theorem 10.3
            assert (error <= (n + 2) * EPS[dtype] * (np.abs(factor) @ np.abs(factor).T)).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("n", "m"), [(33, 1), (40, 7), (64, 64), (100, 33), (259, 130), (130, 1), (300, 1)])
def test_triangular_systems(n: int, m: int, dtype: str) -> None:
    a, y = triangle(n, dtype), RNG.normal(size=(n, m)).astype(dtype)
    for lower in (True, False):
        for transpose in (True, False):
            given = a.copy()
            given[np.triu_indices(n, 1) if lower else np.tril_indices(n, -1)] = np.nan
            x = L.triangular_solve(given, y, lower=lower, transpose=transpose).numpy().astype(float)
            whole = (np.tril(a) if lower else np.triu(a)).astype(float)
            whole = whole.T if transpose else whole
            error = np.abs(whole @ x - y)
            assert (error <= (n + 2) * EPS[dtype] * (np.abs(whole) @ np.abs(x))).all()  # theorem 8.5


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(33, 33), (65, 65), (200, 200), (150, 47), (47, 150), (130, 33), (35, 300)])
def test_lu_factors(shape: tuple[int, int], dtype: str) -> None:
    a = RNG.normal(size=shape).astype(dtype)
    both, order = (x.numpy() for x in L.lu_factor(a))
    k = min(shape)
    lower = np.tril(both, -1)[:, :k].astype(float) + np.eye(shape[0], k)
    upper = np.triu(both)[:k].astype(float)
    assert np.abs(lower).max() <= 1 and sorted(order.tolist()) == [*range(shape[0])]
    error = np.abs(lower @ upper - a[order])
    assert (error <= (k + 2) * EPS[dtype] * (np.abs(lower) @ np.abs(upper))).all()  # theorem 9.3


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "shape", [(33, 33), (64, 64), (65, 65), (200, 200), (150, 47), (47, 150), (130, 33), (35, 300)]
)
def test_qr_factors(shape: tuple[int, int], dtype: str) -> None:
    a = RNG.normal(size=shape).astype(dtype)
    a[:, 5] = a[:, 4]  # of lower rank
    a[:, 7] = 0
    scale = 1e-30 if dtype == "float32" else 1e-200  # whose squares vanish
    for at, size in ((a, 1.0), (a * a.dtype.type(scale), scale)):
        for mode in ("reduced", "complete"):
            q, r = (x.numpy().astype(float) for x in L.qr(at, mode=mode))
            inner = shape[0] if mode == "complete" else min(shape)
            assert q.shape == (shape[0], inner) and r.shape == (inner, shape[1]) and np.array_equal(r, np.triu(r))
            bound = 10 * min(shape) * EPS[dtype]
            assert np.abs(q.T @ q - np.eye(inner)).max() <= bound
            # Higham, theorem 19.4, by columns
            error = np.linalg.norm(q @ (r / size) - at / size, axis=0)
            assert (error <= bound * np.linalg.norm(at / size, axis=0)).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_equations_inverses_and_determinants(dtype: str) -> None:
    n = 150
    a, y = RNG.normal(size=(n, n)).astype(dtype), RNG.normal(size=(n, 3)).astype(dtype)
    wide = a.astype(float)
    x = L.solve(a, y).numpy().astype(float)
    growth = np.abs(wide).sum(-1).max() * 50  # random matrices grow little
    assert np.abs(wide @ x - y).max() <= n * EPS[dtype] * growth * np.abs(x).max()
    assert (
        np.abs(wide @ L.inv(a).numpy() - np.eye(n)).max() <= n * EPS[dtype] * growth * np.abs(np.linalg.inv(wide)).max()
    )
    sign, size = L.slogdet(a)
    expected = np.linalg.slogdet(wide)
    assert sign.item() == expected[0]
    assert size.item() == pytest.approx(expected[1], rel=1e-4 if dtype == "float32" else 1e-12)
    swapped = a[[1, 0, *range(2, n)]]
    assert L.slogdet(swapped).sign.item() == -expected[0]


@pytest.mark.parametrize("dtype", DTYPES)
def test_bits_on_any_number_of_threads_and_compiled(dtype: str) -> None:
    for n, m in ((97, 5), (300, 290)):
        for function, arrays in calls(n, m, dtype).values():
            given = [hf.asarray(x) for x in arrays]
            hf.config.set_num_threads(1)
            expected = function(*given)
            for threads in (1, 2, 3):
                hf.config.set_num_threads(threads)
                assert_same_bits(function(*given), expected)
                assert_same_bits(hf.function(function)(*given), expected)


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_bits_on_any_machine(name: str) -> None:
    for dtype in DTYPES:
        for function, arrays in calls(140, 70, dtype).values():
            given = [hf.asarray(x) for x in arrays]
            expected = function(*given)
            with host_target.use(TARGETS[name]):
                assert_same_bits(function(*given), expected)


def test_a_matrix_has_the_bits_that_it_has_in_a_stack() -> None:
    for function, arrays in calls(70, 9, "float64").values():
        arrays = [x if x.ndim == 2 else x[:, None] for x in arrays]  # a stack of vectors would be a matrix
        stack = [hf.asarray(np.stack([x, x[::-1].copy() if x.shape[0] != x.shape[1] else x])) for x in arrays]
        found = function(*stack)
        alone = [function(*[x[k] for x in stack]) for k in range(2)]
        for k in range(2):
            parts = [x[k] for x in hf.tree.leaves(found)]
            assert_same_bits(parts, hf.tree.leaves(alone[k]))
        assert_same_bits(hf.vmap(function)(*stack), found)


def test_open_extents() -> None:
    f = hf.function(lambda a, y: (L.cholesky(a), L.triangular_solve(a, y), L.lu_factor(a), L.solve(a, y)))
    for n in (20, 40, 33, 80, 7):
        given = hf.asarray(positive(n, "float64")), hf.asarray(RNG.normal(size=(n, 3)))
        assert_same_bits(f(*given), f.python_function(*given))


def test_memory_that_is_not_in_order() -> None:
    a, y = triangle(80, "float64"), RNG.normal(size=(80, 6))
    expected = L.triangular_solve(a, y)
    assert_same_bits(L.triangular_solve(np.asfortranarray(a), np.asfortranarray(y)), expected)
    assert_same_bits(L.triangular_solve(np.repeat(a, 2, 1)[:, ::2], np.repeat(y, 3, 0)[::3]), expected)
    x = hf.asarray(a)
    assert_same_bits(L.triangular_solve(x.T, y, lower=False, transpose=True), expected)


def test_what_has_no_result() -> None:
    a = positive(100, "float64")
    a[70, 70] = -1
    for at in (a, np.full((100, 100), np.nan), np.zeros((100, 100))):
        for run in (L.cholesky, hf.function(lambda x: L.cholesky(x))):
            with pytest.raises(errors.LinAlgError, match="not positive definite"):
                run(hf.asarray(at))
    singular = triangle(100, "float64")
    singular[40, 40] = 0
    with pytest.raises(errors.LinAlgError, match="Singular"):
        L.triangular_solve(singular, np.ones(100))
    singular = RNG.normal(size=(2, 100, 100))
    singular[1, :, 7] = 0
    for function in (L.inv, lambda x: L.solve(x, x)):
        with pytest.raises(errors.LinAlgError, match=r"at \[1\] of the stack: Singular"):
            function(singular)
    assert L.slogdet(singular).sign.tolist()[1] == 0 and L.slogdet(singular).logabsdet.tolist()[1] == -np.inf
    assert L.lu_factor(singular).LU.shape == (2, 100, 100)
    one = np.eye(40)
    assert_same_bits(L.qr(one).Q, one)
    holes = RNG.normal(size=(40, 40))
    holes[39, 0] = np.nan
    assert np.isnan(L.qr(holes).R.numpy()[0]).all()


def test_what_is_not_finite_stays_in_its_columns() -> None:
    a, y = triangle(100, "float64"), RNG.normal(size=(100, 4))
    expected = L.triangular_solve(a, y).numpy()
    y[0, 1], y[50, 2] = np.nan, np.inf
    found = L.triangular_solve(a, y).numpy()
    assert np.isnan(found[:, 1]).all() and not np.isfinite(found[51:, 2]).all() and np.isfinite(found[:50, 2]).all()
    assert_same_bits(found[:, [0, 3]], expected[:, [0, 3]])
    assert L.triangular_solve(a, np.ones((100, 0))).shape == (100, 0)


@pytest.mark.parametrize("n", [70, 140])
def test_gradients(n: int) -> None:
    """Along random directions."""
    weight, side = RNG.normal(size=(n, n)) / n, RNG.normal(size=(n, 2))

    def through(x: Any) -> Any:
        a = (x + x.mT) / 2
        factor = L.cholesky(a)
        solved = L.cholesky_solve(factor, hf.asarray(side))
        both = L.lu_solve(L.lu_factor(x), hf.asarray(side))
        q, r = L.qr(x)
        return (
            hf.sum(q * weight)
            + hf.sum(r * weight)
            + hf.sum(factor * weight)
            + hf.sum(solved**2)
            + hf.sum(both)
            + L.slogdet(x).logabsdet
        )

    at = positive(n, "float64")
    found = hf.grad(through)(hf.asarray(at)).numpy()
    compiled = hf.function(hf.grad(through))(hf.asarray(at)).numpy()
    np.testing.assert_allclose(compiled, found, rtol=1e-9, atol=1e-12)
    for _ in range(2):
        d = RNG.normal(size=(n, n))
        high, low = (through(hf.asarray(at + s * 1e-5 * d)).item() for s in (1, -1))
        assert (found * d).sum() == pytest.approx((high - low) / 2e-5, rel=1e-6)
