"""LU, least squares and functions of matrices: backward errors, references of more digits, gradients against finite
differences, eager against compiled."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors
from tests.support.bits import assert_same_bits

L = hf.linalg
RNG = np.random.default_rng(3)
EPS = {"float32": 2.0**-23, "float64": 2.0**-52}


def gradient(function: Callable[[Any], Any], at: np.ndarray, g: np.ndarray) -> np.ndarray:
    """By central differences."""
    out, step = np.zeros_like(at), 1e-6
    for index in np.ndindex(at.shape):
        d = np.zeros_like(at)
        d[index] = step
        high, low = (np.asarray(function(hf.asarray(at + s * d))) for s in (1, -1))
        out[index] = ((high - low) * g).sum() / (2 * step)
    return out


def regular(*shape: int) -> np.ndarray:
    """Matrices without eigenvalues that are near zero or negative."""
    n = shape[-1]
    a = RNG.normal(size=shape)
    return a @ a.swapaxes(-1, -2) + 0.3 * RNG.normal(size=shape) + n * np.eye(n)


SQUARE, TALL, WIDE = (RNG.normal(size=(2, *shape)) for shape in ((4, 4), (5, 3), (3, 5)))
SIDES = RNG.normal(size=(2, 5, 2))
FACTOR = np.linalg.cholesky(regular(2, 4, 4) + regular(2, 4, 4).swapaxes(-1, -2))
DEFICIENT = np.stack([np.outer([1.0, 2, 3, 4], [1.0, -1, 2]), np.outer([1.0, 0, 0, 1], [0.0, 1, 2])])


def _measured(w: Any) -> Any:
    """Real numbers that see both parts, in whatever order eigenvalues come."""
    return hf.sum(hf.real(w) ** 2 + 0.3 * hf.imag(w) ** 2 + hf.exp(hf.real(w)) * hf.cos(hf.imag(w)), axis=-1)


GRADIENTS = {
    "lu, L": (lambda x: L.lu(x).L, SQUARE),
    "lu, U": (lambda x: L.lu(x).U, SQUARE),
    "lu, both": (lambda x: L.lu_factor(x).LU, SQUARE),
    "lu, tall": (lambda x: hf.concat([L.lu(x).L, L.lu(x).U], axis=-2), TALL),
    "lu, wide": (lambda x: hf.concat([L.lu(x).L, L.lu(x).U], axis=-1), WIDE),
    "lu_solve": (lambda x: L.lu_solve(L.lu_factor(x), hf.asarray(SIDES[:, :4])), SQUARE),
    "cholesky_solve, factor": (lambda x: L.cholesky_solve(x, hf.asarray(SIDES[:, :4])), FACTOR),
    "cholesky_solve, upper": (lambda x: L.cholesky_solve(x.mT, hf.asarray(SIDES[:, :4]), upper=True), FACTOR),
    "lstsq, matrix": (lambda x: L.lstsq(x, hf.asarray(SIDES)).solution, TALL),
    "lstsq, residuals": (lambda x: L.lstsq(x, hf.asarray(SIDES)).residuals, TALL),
    "lstsq, values": (lambda x: L.lstsq(x, hf.asarray(SIDES)).singular_values, TALL),
    "lstsq, wide": (lambda x: L.lstsq(x, hf.asarray(SIDES[:, :3])).solution, WIDE),
    "lstsq, sides": (lambda x: L.lstsq(hf.asarray(TALL), x).solution, SIDES),
    "lstsq, lower rank": (lambda x: L.lstsq(hf.asarray(DEFICIENT), x).solution, SIDES[:, :4]),
    "expm": (lambda x: L.expm(x), SQUARE),
    "expm, large": (lambda x: L.expm(3 * x), SQUARE),
    "sqrtm": (lambda x: L.sqrtm(x), regular(2, 3, 3)),
    "logm": (lambda x: L.logm(x), regular(2, 3, 3)),
    "eigvals": (lambda x: _measured(L.eigvals(x)), SQUARE),
    "eig, values": (lambda x: _measured(L.eig(x).eigenvalues), SQUARE),
    "eig, vectors": (lambda x: hf.abs(L.eig(x).eigenvectors) ** 2, SQUARE),
    "eig, complex": (lambda x: _measured(L.eig(hf.complex(x[0], x[1])).eigenvalues), SQUARE),
    "eig, complex vectors": (lambda x: hf.abs(L.eig(hf.complex(x[0], x[1])).eigenvectors) ** 2, SQUARE),
    "norm": (lambda x: L.norm(x, "nuc", axis=(-2, -1)), TALL),
    "cond": (lambda x: L.cond(x), SQUARE),
    "cond 1": (lambda x: L.cond(x, 1), SQUARE),
    "kron": (lambda x: L.kron(x[0], x[1]), TALL),
    "block_diag": (lambda x: L.block_diag(x[0], 2 * x[1]), TALL),
    "toeplitz": (lambda x: L.toeplitz(x[0], x[1]), TALL),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_and_compiled_functions(name: str) -> None:
    function, at = GRADIENTS[name]
    x, g = hf.asarray(at), RNG.normal(size=function(hf.asarray(at)).shape)
    found = []
    for run in (function, hf.function(function)):
        with hf.GradientTape() as tape:
            tape.watch(x)
            y = run(x)
        found.append((y, tape.gradient(y, x, hf.asarray(g))))
    np.testing.assert_allclose(found[0][1], gradient(function, at, g), rtol=2e-5, atol=2e-6)
    assert_same_bits(found[1], found[0])
    assert_same_bits(hf.function(function)(x), found[0][0])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "shape", [(1, 1), (2, 3, 3), (31, 31), (70, 70), (90, 33), (33, 90), (2, 2, 40, 40), (5, 1), (1, 5)]
)
def test_lu(shape: tuple[int, ...], dtype: str) -> None:
    a = RNG.normal(size=shape).astype(dtype)
    p, lower, upper = (x.numpy() for x in L.lu(a))
    m, n = shape[-2:]
    k = min(m, n)
    assert lower.shape[-2:] == (m, k) and upper.shape[-2:] == (k, n) and p.dtype == a.dtype
    assert np.abs(lower).max() <= 1 and np.array_equal(lower, np.tril(lower)) and np.array_equal(upper, np.triu(upper))
    assert np.array_equal(np.diagonal(lower, axis1=-2, axis2=-1), np.ones((*shape[:-2], k)))
    assert np.array_equal(p.sum(-1), np.ones(shape[:-1])) and np.array_equal(p.sum(-2), np.ones(shape[:-1]))
    error = np.abs(p.astype(float) @ (lower.astype(float) @ upper.astype(float)) - a).max(initial=0)
    size = (np.abs(lower).astype(float) @ np.abs(upper).astype(float)).max(initial=0)
    assert error <= k * EPS[dtype] * size  # Higham, "Accuracy and Stability", theorem 9.3
    both, order = L.lu_factor(a)
    assert order.dtype == hf.int64 and np.array_equal(
        np.sort(order.numpy(), -1), np.broadcast_to(np.arange(m), shape[:-1])
    )
    assert_same_bits(hf.function(lambda x: L.lu_factor(x))(hf.asarray(a)), (both, order))


@pytest.mark.parametrize("transposed", [False, True])
def test_what_is_solved_with_factors(transposed: bool) -> None:
    a, y = RNG.normal(size=(3, 50, 50)), RNG.normal(size=(50, 2))
    if transposed:  # strides of another order
        a = np.ascontiguousarray(a.swapaxes(-1, -2)).swapaxes(-1, -2)
    x = L.lu_solve(L.lu_factor(a), y).numpy()
    size = np.abs(a).sum(-1).max() * np.abs(x).max() + np.abs(y).max()
    assert np.abs(a @ x - y).max() <= 50 * EPS["float64"] * size
    spd = a @ a.swapaxes(-1, -2) + np.eye(50)
    for upper in (False, True):
        x = L.cholesky_solve(L.cholesky(spd, upper=upper), y[:, 0], upper=upper).numpy()
        size = np.abs(spd).sum(-1).max() * np.abs(x).max() + np.abs(y).max()
        assert x.shape == (3, 50) and np.abs((spd @ x[..., None])[..., 0] - y[:, 0]).max() <= 50 * EPS["float64"] * size


def test_singular_and_odd_matrices_have_lu_factors() -> None:
    zero = L.lu(np.zeros((3, 3)))
    assert np.array_equal(zero.U.numpy(), np.zeros((3, 3))) and np.array_equal(zero.L.numpy(), np.eye(3))
    holes = L.lu(np.array([[1.0, np.nan], [2.0, 1.0]]))
    assert np.isnan(holes.U.numpy()).any()
    for shape in ((0, 0), (0, 3), (3, 0), (0, 2, 2), (2, 0, 0)):
        both, order = L.lu_factor(np.zeros(shape))
        assert both.shape == shape and order.shape == shape[:-1]
    with pytest.raises(errors.LinAlgError):
        L.lu_solve(L.lu_factor(np.ones((2, 2))), np.ones(2))
    with pytest.raises(errors.ShapeError, match="not a matrix"):
        L.lu(np.ones(3))
    with pytest.raises(errors.ShapeError, match="permutation"):
        L.lu_solve((np.eye(3), np.arange(2)), np.ones(3))


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4), (1, 1), (2, 6, 2)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_least_squares(shape: tuple[int, ...], dtype: str) -> None:
    a, y = RNG.normal(size=shape).astype(dtype), RNG.normal(size=(*shape[:-1], 2)).astype(dtype)
    x, residuals, rank, values = L.lstsq(a, y)
    tolerance = 200 * EPS[dtype]
    for index in np.ndindex(shape[:-2]):
        expected = np.linalg.lstsq(a[index].astype(float), y[index].astype(float), rcond=None)
        scale = np.linalg.cond(a[index]) ** 2 * tolerance
        np.testing.assert_allclose(x.numpy()[index], expected[0], rtol=scale, atol=scale)
        np.testing.assert_allclose(values.numpy()[index], expected[3], rtol=tolerance)
        assert rank.numpy()[index] == expected[2] == min(shape[-2:])
        left = ((a[index] @ expected[0] - y[index]) ** 2).sum(0)
        np.testing.assert_allclose(residuals.numpy()[index], left, rtol=scale, atol=scale)
    one = L.lstsq(a, y[..., 0] if len(shape) == 2 else y[0, :, 0])
    assert one.solution.shape == (*shape[:-2], shape[-1]) and one.residuals.shape == shape[:-2]


def test_least_squares_of_lower_rank_is_the_shortest() -> None:
    y = RNG.normal(size=(2, 4, 1))
    found = L.lstsq(DEFICIENT, y)
    np.testing.assert_allclose(found.solution, np.linalg.pinv(DEFICIENT) @ y, atol=1e-14)
    assert found.rank.tolist() == [1, 1]
    assert L.lstsq(np.diag([1.0, 1e-3]), np.ones(2), rtol=1e-2).solution.tolist() == [1, 0]
    assert L.lstsq(np.zeros((3, 0)), np.ones(3)).residuals.item() == 3
    with pytest.raises(errors.ShapeError, match=r"has 3 rows. Expected 2"):
        L.lstsq(np.eye(2), np.ones(3))


def _exact(function: str, a: np.ndarray) -> np.ndarray:
    mpmath = pytest.importorskip("mpmath", reason="the references need mpmath")
    with mpmath.workdps(60):
        found = getattr(mpmath, function)(mpmath.matrix(a.tolist()))
        return np.array([[float(mpmath.re(found[i, j])) for j in range(len(a))] for i in range(len(a))])


DEFECTIVE = np.array([[2.0, 1.0, 0.0], [0.0, 2.0, 1.0], [0.0, 0.0, 2.0]])
ROTATION = np.array([[math.cos(3.0), -math.sin(3.0)], [math.sin(3.0), math.cos(3.0)]])
FUNCTIONS_AT = {
    "defective": DEFECTIVE,
    "nearly defective": DEFECTIVE + 1e-9 * RNG.normal(size=(3, 3)),
    "rotation": ROTATION,
    "symmetric": regular(4, 4) + regular(4, 4).T,
    "general": regular(5, 5),
    "graded": np.diag([1e-4, 1.0, 1e4]) + np.triu(np.ones((3, 3)), 1),
    "near one": np.eye(3) + 1e-7 * RNG.normal(size=(3, 3)),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", FUNCTIONS_AT)
def test_functions_of_matrices(name: str, dtype: str) -> None:
    a = FUNCTIONS_AT[name].astype(dtype)
    eps = EPS[dtype]
    if name != "graded":  # whose exponential overflows
        expected = _exact("expm", a / np.abs(a).max())
        found = L.expm(a / np.abs(a).max()).numpy()
        assert found.dtype == a.dtype and np.abs(found - expected).max() <= 20 * eps * np.abs(expected).max()
    root = L.sqrtm(a).numpy().astype(float)
    size = np.linalg.norm(root) ** 2
    assert np.linalg.norm(root @ root - a) <= 20 * eps * size
    assert (np.linalg.eigvals(root).real > 0).all()
    exact = _exact("logm", a)
    found = L.logm(a).numpy()
    sensitive = np.linalg.cond(a.astype(float)) if name == "graded" else 30.0
    assert np.abs(found - exact).max() <= 20 * eps * max(np.abs(exact).max(), 1.0) * sensitive


def test_exponentials_that_are_large_small_or_not_finite() -> None:
    big = np.array([[0.0, 30.0], [-30.0, 0.0]])
    np.testing.assert_allclose(L.expm(big), [[math.cos(30), math.sin(30)], [-math.sin(30), math.cos(30)]], atol=1e-13)
    both = L.expm(np.stack([np.zeros((2, 2)), np.full((2, 2), 800.0), np.diag([-1e5, 1.0]), np.full((2, 2), np.nan)]))
    found = both.numpy()
    assert np.array_equal(found[0], np.eye(2)) and not np.isfinite(found[1]).any() and np.isnan(found[3]).all()
    np.testing.assert_allclose(found[2], np.diag([0.0, math.e]), rtol=1e-9)
    assert not np.isfinite(L.expm(np.array([[math.inf]])).numpy()).any()
    for shape in ((0, 0), (0, 2, 2)):
        assert L.expm(np.zeros(shape)).shape == L.sqrtm(np.zeros(shape)).shape == L.logm(np.zeros(shape)).shape == shape


def test_roots_and_logarithms_that_are_not_real() -> None:
    assert np.array_equal(L.sqrtm(np.diag([4.0, 0.0])).numpy(), np.diag([2.0, 0.0]))
    assert np.isnan(L.sqrtm(np.full((2, 2), np.nan)).numpy()).all() and np.isnan(L.logm([[math.inf]]).numpy()).all()
    negative = np.array([[1.0, 2.0], [0.0, -1.0]])
    for function in (L.sqrtm, L.logm):
        for at in (-np.eye(2), negative, np.array([[0.0, 1.0], [0.0, 0.0]])):
            for run in (function, hf.function(function)):
                with pytest.raises(errors.LinAlgError, match=r"no real|roots"):
                    run(hf.asarray(at))
    with pytest.raises(errors.LinAlgError, match=r"at \[1\] of the stack: an eigenvalue is negative"):
        L.sqrtm(np.stack([np.eye(2), -np.eye(2)]))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_eigenvalues_of_any_matrices(dtype: str) -> None:
    a = RNG.normal(size=(3, 6, 6)).astype(dtype)
    if "complex" in dtype:
        a = (a + 1j * RNG.normal(size=a.shape)).astype(dtype)
    eps, wide = (2.0**-23 if dtype in ("float32", "complex64") else 2.0**-52), a.astype(complex)
    for run in (L.eig, hf.function(lambda x: L.eig(x))):
        w, v = (x.numpy() for x in run(hf.asarray(a)))
        assert w.dtype == v.dtype == np.result_type(dtype, np.complex64)
        assert np.abs(wide @ v - v * w[:, None]).max() <= 50 * eps * np.abs(a).sum(-1).max()
        np.testing.assert_allclose(np.linalg.norm(v, axis=-2), 1, rtol=20 * eps)
    np.testing.assert_allclose(np.sort_complex(L.eigvals(a)), np.sort_complex(w), rtol=3e3 * eps, atol=100 * eps)
    assert_same_bits(hf.function(lambda x: L.eigvals(x))(hf.asarray(a)), L.eigvals(a))
    assert_same_bits(hf.vmap(lambda x: L.eig(x))(hf.asarray(a)), L.eig(a))


def test_edges_of_eigenvalues() -> None:
    assert L.eigvals(np.zeros((2, 0, 0))).shape == (2, 0) and L.eig(np.zeros((0, 3, 3))).eigenvectors.shape == (0, 3, 3)
    assert L.eigvals([[5]]).tolist() == [5 + 0j] and L.eigvals([[5]]).dtype == hf.complex64
    assert np.array_equal(L.eigvals(DEFECTIVE).numpy(), [2, 2, 2])
    with pytest.raises(errors.LinAlgError, match=r"at \[1\] of the stack"):
        L.eigvals(np.stack([np.eye(2), np.full((2, 2), np.nan)]))
    with pytest.raises(errors.ShapeError, match="square"):
        L.eig(np.ones((2, 3)))
    same = hf.grad(lambda x: hf.sum(hf.real(L.eigvals(x))))(hf.eye(3, dtype=hf.float64))
    np.testing.assert_allclose(same, np.eye(3), atol=1e-12)


def test_errors_name_the_matrix_in_the_stack() -> None:
    stack = np.broadcast_to(np.eye(20), (2, 3, 20, 20)).copy()
    stack[1, 2] = 0
    for function in (L.inv, L.cholesky, lambda x: L.solve(x, x), lambda x: L.triangular_solve(x, x)):
        for run in (function, hf.function(function)):
            with pytest.raises(errors.LinAlgError, match=r"f64\[2,3,20,20\].*, at \[1, 2\] of the stack: "):
                run(hf.asarray(stack))
    small = np.stack([np.eye(2), np.ones((2, 2))])
    with pytest.raises(errors.LinAlgError, match=r"at \[1\] of the stack: Singular"):
        L.inv(small)
    with pytest.raises(errors.LinAlgError) as caught:
        L.inv(np.zeros((2, 2)))
    assert "of the stack" not in str(caught.value)


def test_norms_and_conditions_are_numpys() -> None:
    x = RNG.normal(size=(3, 4, 4))
    for order in (None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
        for axis in ((0, 1), (-1, 0), (1, 2)):
            for keepdims in (False, True):
                expected = np.linalg.norm(x, order, axis, keepdims)
                np.testing.assert_allclose(L.norm(x, order, axis, keepdims), expected, rtol=1e-12)
        if order != 0:
            np.testing.assert_allclose(L.norm(x[0], order), np.linalg.norm(x[0], order), rtol=1e-12)
        np.testing.assert_allclose(L.cond(x, order), np.linalg.cond(x, order), rtol=1e-10)
        for empty in (np.zeros((0, 3)), np.zeros((2, 3, 0))):
            if order not in (-1, -2, -np.inf):  # there is no least one of none
                expected = np.zeros(empty.shape[:-2])
                np.testing.assert_array_equal(L.norm(empty, order, (-2, -1)), expected)
        assert L.cond([[np.inf, np.inf], [np.inf, np.inf]], order).item() == np.inf
        assert np.isnan(L.cond(np.array([[1.0, np.nan], [1.0, 1.0]]), order).item())
    for order in (None, 0, 1, 3, -np.inf):
        np.testing.assert_allclose(L.norm(x, order, 1), np.linalg.norm(x, order, 1), rtol=1e-12)
        np.testing.assert_allclose(L.norm(x[0, 0], order), np.linalg.norm(x[0, 0], order), rtol=1e-12)
    assert L.norm(x).item() == pytest.approx(np.linalg.norm(x))
    with pytest.raises(errors.ShapeError, match="Say which axes"):
        L.norm(x, 1)
    singular = np.stack([np.array([[1.0, 2], [2, 4]]), np.zeros((2, 2)), np.eye(2)])
    assert L.cond(singular, 1).tolist() == [math.inf, math.inf, 1.0]
    assert L.cond(singular).tolist()[1:] == [math.inf, 1.0] and L.cond(singular, -2).tolist()[1:] == [0.0, 1.0]
    assert L.cond(TALL).shape == (2,)
    with pytest.raises(errors.ShapeError, match="matrix with elements"):
        L.cond(np.ones((0, 0)))


def test_maps_and_open_extents() -> None:
    x, y = hf.asarray(regular(4, 6, 6)), hf.asarray(RNG.normal(size=(4, 6)))
    functions = (
        lambda x, y: L.lu_solve(L.lu_factor(x), y),
        lambda x, y: L.lu(x).U @ y,
        lambda x, y: L.lstsq(x[:, :4], y).solution,
        lambda x, y: L.expm(x / 10) @ y,
        lambda x, y: L.sqrtm(x) @ y,
        lambda x, y: L.norm(x) + L.cond(x, 1),
        lambda x, y: L.toeplitz(y) + L.block_diag(x[:2, :3], x[2:, 3:]),
    )
    for function in functions:
        found = hf.vmap(function)(x, y)
        expected = hf.stack([function(x[k], y[k]) for k in range(4)])
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11)
    open_ = hf.function(lambda x: (L.lu(x).L, L.lu(x).U, L.lstsq(x, x).rank, L.expm(x @ x.mT), L.cond(x)))
    for m, n in ((4, 3), (5, 3), (6, 3), (2, 3), (3, 3), (5, 8), (1, 1)):
        at = hf.asarray(RNG.normal(size=(m, n)))
        assert_same_bits(open_(at), open_.python_function(at))
