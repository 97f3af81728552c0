"""Conjugate gradients, GMRES and Lanczos against direct solutions, and their derivatives against finite differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors
from tests.support.bits import assert_same_bits

L = hf.linalg
RNG = np.random.default_rng(7)
N = 12
A = RNG.normal(size=(3, N, N))
SPD = A @ A.swapaxes(-1, -2) + N * np.eye(N)
GENERAL = A + 4 * np.eye(N)
B = RNG.normal(size=(3, N))
SOLVERS = {"cg": (L.cg, SPD), "gmres": (L.gmres, GENERAL)}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", SOLVERS)
def test_solutions(name: str, dtype: str) -> None:
    solver, matrix = SOLVERS[name]
    a, b = matrix.astype(dtype), B.astype(dtype)
    tol = 1e-5 if dtype == "float32" else 1e-12
    for run in (lambda a, b: solver(a, b, tol=tol), hf.function(lambda a, b: solver(a, b, tol=tol))):
        found = run(hf.asarray(a), hf.asarray(b))
        left = np.linalg.norm((a.astype(float) @ found.solution.numpy()[..., None].astype(float))[..., 0] - b, axis=-1)
        assert found.solution.dtype == a.dtype and found.converged.numpy().all()
        assert (left <= 3 * tol * np.linalg.norm(b, axis=-1)).all()
        np.testing.assert_allclose(found.residual_norm, left, atol=2 * tol * np.abs(b).max())
    assert_same_bits(found, solver(a, b, tol=tol))


@pytest.mark.parametrize("name", SOLVERS)
def test_functions_starts_and_preconditioners(name: str) -> None:
    solver, matrix = SOLVERS[name]
    a, b = hf.asarray(matrix[0] * np.logspace(0, 3, N)[:, None] if name == "gmres" else matrix[0]), hf.asarray(B[0])
    exact = np.linalg.solve(a.numpy(), B[0])
    for m in (None, hf.asarray(np.diag(1 / np.diagonal(a.numpy()))), lambda r: r / hf.diagonal(a)):
        found = (
            solver(lambda x: a @ x, b, tol=1e-12, M=m, restart=6) if name == "gmres" else solver(a, b, tol=1e-12, M=m)
        )
        np.testing.assert_allclose(found.solution, exact, rtol=1e-7, atol=1e-9)
    again = solver(a, b, exact, tol=1e-8)
    assert again.iterations.item() == 0 and again.converged.item()
    few = solver(a, b, tol=1e-14, maxiter=0)
    assert not few.converged.item() and np.array_equal(few.solution.numpy(), np.zeros(N))


@pytest.mark.parametrize("name", SOLVERS)
def test_derivatives_are_those_of_the_equation(name: str) -> None:
    solver, matrix = SOLVERS[name]
    weight = RNG.normal(size=(3, N))

    def loss(a: Any, b: Any) -> Any:
        if name == "cg":
            a = (a + a.mT) / 2
        return hf.sum(solver(a, b, tol=1e-13).solution * weight)

    def through_function(a: Any, b: Any) -> Any:
        if name == "cg":
            a = (a + a.mT) / 2
        return hf.sum(solver(lambda x: (a @ x[..., None])[..., 0], b, tol=1e-13).solution * weight)

    a, b = hf.asarray(matrix), hf.asarray(B)
    x = np.linalg.solve(matrix, B[..., None])
    back = np.linalg.solve(matrix.swapaxes(-1, -2), weight[..., None])
    wanted = -back @ x.swapaxes(-1, -2)
    if name == "cg":
        wanted = (wanted + wanted.swapaxes(-1, -2)) / 2
    for function in (loss, through_function):
        for run in (hf.grad(function, argnums=(0, 1)), hf.function(hf.grad(function, argnums=(0, 1)))):
            of_a, of_b = run(a, b)
            np.testing.assert_allclose(of_b, back[..., 0], rtol=1e-8, atol=1e-10)
            np.testing.assert_allclose(of_a, wanted, rtol=1e-7, atol=1e-9)


def test_what_cannot_be_solved_ends() -> None:
    indefinite = L.cg(np.diag([1.0, -1.0]), np.ones(2))
    assert not indefinite.converged.item() and np.isfinite(indefinite.solution.numpy()).all()
    singular = L.gmres(np.diag([1.0, 0.0]), np.ones(2), maxiter=5)
    assert not singular.converged.item() and singular.iterations.item() == 5
    for solver in (L.cg, L.gmres):
        assert not solver(np.eye(2), np.array([1.0, np.nan])).converged.item()
        assert solver(np.eye(2), np.zeros(2)).converged.item()
        assert solver(np.zeros((0, 0)), np.zeros(0)).solution.shape == (0,)
        with pytest.raises(errors.ShapeError, match="square"):
            solver(np.ones((2, 3)), np.ones(2))
        with pytest.raises(errors.ShapeError, match="x0"):
            solver(np.eye(2), np.ones(2), np.ones(3))
        with pytest.raises(errors.ShapeError, match="A returned"):
            solver(lambda x: x[:1], np.ones(2))
        with pytest.raises(errors.ArgumentError, match="maxiter"):
            solver(np.eye(2), np.ones(2), maxiter=-1)
    with pytest.raises(errors.ArgumentError, match="restart"):
        L.gmres(np.eye(2), np.ones(2), restart=0)


def test_lanczos() -> None:
    for k in (1, 4, N):
        diagonal, off, basis = (x.numpy() for x in L.lanczos(SPD, B, k))
        assert diagonal.shape == (3, k) and off.shape == (3, k - 1) and basis.shape == (3, k, N)
        np.testing.assert_allclose(basis @ basis.swapaxes(-1, -2), np.broadcast_to(np.eye(k), (3, k, k)), atol=1e-13)
        small = basis @ SPD @ basis.swapaxes(-1, -2)
        expected = np.stack([np.diag(d) + np.diag(o, 1) + np.diag(o, -1) for d, o in zip(diagonal, off)])
        np.testing.assert_allclose(small, expected, atol=1e-10)
    values = np.linalg.eigvalsh(expected)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(SPD), rtol=1e-10)
    closed = L.lanczos(np.diag([1.0, 2.0, 3.0]), np.array([1.0, 1.0, 0.0]), 3)
    assert closed.off_diagonal.numpy()[1] == 0 and np.array_equal(closed.basis.numpy()[2], np.zeros(3))
    assert_same_bits(hf.function(lambda a, v: L.lanczos(a, v, 4))(hf.asarray(SPD), hf.asarray(B)), L.lanczos(SPD, B, 4))
    for steps in (0, N + 1):
        with pytest.raises(errors.ArgumentError, match="num_steps"):
            L.lanczos(SPD, B, steps)


def test_derivatives_of_lanczos() -> None:
    weight = RNG.normal(size=4)

    def function(a: Any) -> Any:
        return hf.sum(L.lanczos((a + a.mT) / 2, hf.asarray(B[0]), 4).diagonal * weight)

    found = hf.grad(function)(hf.asarray(SPD[0])).numpy()
    for _ in range(3):
        d = RNG.normal(size=(N, N))
        high, low = (function(hf.asarray(SPD[0] + s * 1e-5 * d)).item() for s in (1, -1))
        assert (found * d).sum() == pytest.approx((high - low) / 2e-5, rel=1e-6)
    compiled = hf.function(hf.grad(function))
    np.testing.assert_allclose(compiled(hf.asarray(SPD[0])), found, rtol=1e-10)
