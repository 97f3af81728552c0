"""Minima and roots beside SciPy's, and their derivatives beside those of formulas."""

from __future__ import annotations

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors

optimize = pytest.importorskip("scipy.optimize")


def rosenbrock(x: hf.Tensor) -> hf.Tensor:
    return hf.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


@pytest.mark.parametrize("method", ["bfgs", "lbfgs"])
def test_minima(method: str) -> None:
    start = np.array([1.3, 0.7, 0.8, 1.9, 1.2])
    eager = hf.optimize.minimize(rosenbrock, start, method=method)
    compiled = hf.function(lambda x: hf.optimize.minimize(rosenbrock, x, method=method))(start)
    theirs = optimize.minimize(optimize.rosen, start, jac=optimize.rosen_der, method="BFGS")
    assert eager.converged.item()
    assert eager.evaluations.item() <= 1.5 * theirs.nfev
    np.testing.assert_allclose(eager.x, np.ones(5), atol=1e-5)
    for one, other in zip(eager, compiled, strict=True):
        assert one.numpy().tobytes() == other.numpy().tobytes()
    single = hf.optimize.minimize(rosenbrock, start.astype(np.float32), method=method)
    assert single.x.dtype == np.float32
    np.testing.assert_allclose(single.x, np.ones(5), atol=1e-3)


def test_derivative_of_a_minimum() -> None:
    def found(a: hf.Tensor) -> hf.Tensor:
        return hf.optimize.minimize(lambda x: hf.sum((x - a) ** 2 + x**4), np.zeros(3), tol=1e-10).x

    a = hf.asarray(np.array([0.5, 1.0, 2.0]))
    expected = 2 / (2 + 12 * found(a).numpy() ** 2)
    np.testing.assert_allclose(hf.function(hf.jacobian(found))(a), np.diag(expected), atol=1e-8)
    np.testing.assert_allclose(hf.grad(lambda a: hf.sum(found(a)))(a), expected, atol=1e-8)


def test_shapes_and_stops() -> None:
    found = hf.optimize.minimize(lambda x: hf.sum((x - 2.0) ** 2), np.zeros((2, 3)))
    np.testing.assert_allclose(found.x, np.full((2, 3), 2.0))
    assert hf.optimize.minimize(lambda x: hf.sum(x), [0.0], maxiter=0).iterations.item() == 0
    assert not hf.optimize.minimize(lambda x: hf.sum(x) * np.nan, [1.0]).converged.item()
    assert hf.optimize.minimize(lambda x: hf.sum(x * x), np.zeros(0)).converged.item()
    below = hf.optimize.minimize(lambda x: hf.sum(x), [0.0], maxiter=5)
    assert not below.converged.item()


@pytest.mark.parametrize(
    ("f", "theirs", "bracket"),
    [
        (lambda x: hf.cos(x) - x, lambda x: np.cos(x) - x, (0.0, 1.0)),
        (lambda x: x**3 - 2 * x - 5, lambda x: x**3 - 2 * x - 5, (2.0, 3.0)),
        (lambda x: hf.exp(x) - 1e-8, lambda x: np.exp(x) - 1e-8, (-50.0, 10.0)),
        (lambda x: x, lambda x: x, (0.0, 1.0)),
        (lambda x: x, lambda x: x, (-1.0, 0.0)),
    ],
)
def test_brent_takes_the_same_steps(f: object, theirs: object, bracket: tuple[float, float]) -> None:
    found = hf.optimize.root_scalar(f, bracket=np.array(bracket))
    root, report = optimize.brentq(theirs, *bracket, full_output=True)
    np.testing.assert_allclose(found.root, root, rtol=1e-14)
    # SciPy says nothing, and what its memory held, where the root is an end of the bracket.
    theirs_taken = report.iterations if report.function_calls > 2 else 0
    assert found.iterations.item() <= theirs_taken + 1
    assert found.converged.item()


def test_derivative_of_a_root() -> None:
    def brent(a: hf.Tensor) -> hf.Tensor:
        return hf.optimize.root_scalar(lambda x: x**2 - a, bracket=np.array([0.0, 10.0])).root

    def newton(a: hf.Tensor) -> hf.Tensor:
        return hf.optimize.root_scalar(lambda x, a: x**2 - a, args=(a,), x0=np.float64(1.0)).root

    np.testing.assert_allclose(hf.grad(brent)(hf.asarray(np.float64(2.0))), 0.5 / np.sqrt(2))
    several = hf.function(hf.vmap(hf.grad(newton)))(np.array([2.0, 9.0]))
    np.testing.assert_allclose(several, [0.5 / np.sqrt(2), 1 / 6])


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (lambda: hf.optimize.minimize(rosenbrock, [1.0, 1.0], method="powell"), errors.ArgumentError),
        (lambda: hf.optimize.minimize(lambda x: x, [1.0, 1.0]), errors.ShapeError),
        (lambda: hf.optimize.minimize(3, [1.0]), errors.ArgumentTypeError),
        (lambda: hf.optimize.minimize(rosenbrock, [1.0, 1.0], memory=0), errors.ArgumentError),
        (lambda: hf.optimize.root_scalar(lambda x: x), errors.ArgumentError),
        (lambda: hf.optimize.root_scalar(lambda x: x, bracket=(1.0, 2.0, 3.0)), errors.ShapeError),
        (lambda: hf.optimize.root_scalar(lambda x: x * x + 1, bracket=(0.0, 1.0)), errors.ArgumentError),
        (lambda: hf.optimize.root_scalar(lambda x: x, x0=1.0, method="ridder"), errors.ArgumentError),
    ],
)
def test_bad_input(call: object, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        call()  # type: ignore[operator]
