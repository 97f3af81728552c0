"""Integrals, differential equations and splines beside SciPy's, and their derivatives beside formulas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors

integrate = pytest.importorskip("scipy.integrate")
interpolate = pytest.importorskip("scipy.interpolate")

RNG = np.random.default_rng(5)
RATE = hf.asarray(np.float64(0.7))


def circle(y: hf.Tensor, t: hf.Tensor) -> hf.Tensor:
    return hf.stack([y[1], -y[0]])


def test_solution_at_times() -> None:
    t = np.linspace(0, 10, 20)
    compiled = hf.function(lambda y, t: hf.integrate.odeint(circle, y, t))
    found = compiled(np.array([1.0, 0.0]), t)
    np.testing.assert_allclose(found[:, 0], np.cos(t), atol=1e-6)
    few = hf.integrate.odeint(circle, np.array([1.0, 0.0]), t[:3])
    assert few.numpy().tobytes() == compiled(np.array([1.0, 0.0]), t[:3]).numpy().tobytes()
    back = hf.integrate.odeint(lambda y, t: -y, np.array(1.0), np.array([1.0, 0.0]))
    np.testing.assert_allclose(back[-1], np.e, rtol=1e-7)
    same = hf.integrate.odeint(lambda y, t: -y, np.array([1.0]), np.array([0.0, 0.0, 1.0]))
    np.testing.assert_allclose(same[:, 0], [1, 1, np.exp(-1)], rtol=1e-7)


def test_steps_are_those_of_scipy() -> None:
    t_eval = np.array([1.0, 2.0, 5.0])
    found = hf.integrate.solve_ivp(lambda t, y: -y, (0.0, 5.0), np.array([1.0]), t_eval=t_eval)
    theirs = integrate.solve_ivp(lambda t, y: -y, (0, 5), [1.0], t_eval=t_eval)
    assert found.success.item()
    assert found.steps.item() <= len(t_eval) + 8
    np.testing.assert_allclose(found.y[:, 0], theirs.y[0], atol=2e-3)


def test_stiff_equation() -> None:
    def van_der_pol(t: Any, y: Any, mu: Any) -> Any:
        return hf.stack([y[1], mu * (1 - y[0] ** 2) * y[1] - y[0]])

    def solve(method: str, most: int) -> Any:
        span, start = (0.0, 300.0), np.array([2.0, 0.0])
        return hf.integrate.solve_ivp(van_der_pol, span, start, method, args=(1000.0,), rtol=1e-4, max_steps=most)

    found = hf.function(lambda: solve("rosenbrock23", 1000))()
    assert found.success.item()
    assert found.steps.item() < 60
    np.testing.assert_allclose(found.y[-1], [1.77939777, -8.21415703e-04], rtol=1e-3)
    short = hf.function(lambda: solve("RK45", 100))()  # which would take a hundred thousand steps
    assert not short.success.item()
    assert np.isnan(short.y[-1]).all()


@pytest.mark.parametrize("method", ["dopri5", "rosenbrock23"])
@pytest.mark.parametrize("times", [2, 6])
def test_derivatives(method: str, times: int) -> None:
    t = np.linspace(0, 2, times)

    def total(rate: hf.Tensor) -> hf.Tensor:
        found = hf.integrate.odeint(
            lambda y, t, rate: -rate * y, np.array([1.0]), t, rate, rtol=1e-6, atol=1e-8, method=method
        )
        return hf.sum(found)

    expected = -(t * np.exp(-0.7 * t)).sum()
    np.testing.assert_allclose(hf.function(hf.grad(total))(RATE), expected, rtol=1e-4)


def test_derivative_of_the_last_time() -> None:
    def last(end: hf.Tensor) -> hf.Tensor:
        return hf.integrate.odeint(lambda y, t: -y, np.array(1.0), hf.stack([0 * end, end]))[-1]

    np.testing.assert_allclose(hf.grad(last)(hf.asarray(np.float64(1.5))), -np.exp(-1.5), rtol=1e-6)


@pytest.mark.parametrize(
    ("f", "low", "high", "expected"),
    [
        (lambda x: hf.exp(-(x**2)), -np.inf, np.inf, np.sqrt(np.pi)),
        (lambda x: 1 / (1 + x * x), 0.0, np.inf, np.pi / 2),
        (lambda x: 1 / (1 + x * x), np.inf, 0.0, -np.pi / 2),
        (hf.sqrt, 0.0, 1.0, 2 / 3),
        (lambda x: hf.sin(50 * x), 0.0, 3.0, (1 - np.cos(150)) / 50),
        (lambda x: x * 0 + 1, 2.0, 2.0, 0.0),
    ],
)
def test_integrals(f: Any, low: float, high: float, expected: float) -> None:
    call = hf.function(lambda a, b: hf.integrate.quad(f, a, b))
    found = call(np.float64(low), np.float64(high))
    np.testing.assert_allclose(found.value, expected, rtol=1e-8, atol=1e-12)
    assert found.success.item()


def test_derivative_of_an_integral() -> None:
    def integral(c: hf.Tensor) -> hf.Tensor:
        return hf.integrate.quad(lambda x, c: hf.exp(-c * x * x), np.float64(0), np.float64(1), args=(c,)).value

    expected = integrate.quad(lambda x: -x * x * np.exp(-x * x), 0, 1)[0]
    np.testing.assert_allclose(hf.grad(integral)(hf.asarray(np.float64(1.0))), expected, rtol=1e-9)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 10, 11])
def test_simpson(count: int) -> None:
    y, x = RNG.normal(size=(3, count)), np.cumsum(RNG.random(count) + 0.1)
    np.testing.assert_allclose(hf.integrate.simpson(y, x), integrate.simpson(y, x=x), atol=1e-13)
    np.testing.assert_allclose(hf.integrate.simpson(y.T, dx=0.3, axis=0), integrate.simpson(y, dx=0.3), atol=1e-13)


@pytest.mark.parametrize("ends", ["not-a-knot", "natural", "clamped"])
@pytest.mark.parametrize("count", [2, 3, 4, 9])
def test_splines(ends: str, count: int) -> None:
    x, y = np.cumsum(RNG.random(count) + 0.1), RNG.normal(size=(count, 2))
    places = np.linspace(x[0] - 0.2, x[-1] + 0.2, 17)
    ours, theirs = hf.interpolate.CubicSpline(x, y, ends), interpolate.CubicSpline(x, y, bc_type=ends)
    for nu in range(4):
        np.testing.assert_allclose(ours(places, nu), theirs(places, nu), rtol=1e-9, atol=1e-9)
    compiled = hf.function(lambda spline, at: spline(at))(ours, places)
    assert compiled.numpy().tobytes() == ours(places).numpy().tobytes()


def test_derivatives_of_splines() -> None:
    x, y = np.arange(5.0), RNG.normal(size=5)
    step = 1e-6 * np.eye(5)

    def at(y: Any) -> Any:
        return hf.interpolate.CubicSpline(x, y)(np.float64(1.3))

    numeric = [(at(y + e).item() - at(y - e).item()) / 2e-6 for e in step]
    np.testing.assert_allclose(hf.function(hf.grad(at))(y), numeric, atol=1e-7)
    spline = hf.interpolate.CubicSpline(x, y)
    np.testing.assert_allclose(hf.grad(lambda t: spline(t))(hf.asarray(np.float64(1.3))), spline(np.float64(1.3), 1))


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (lambda: hf.integrate.odeint(circle, [1.0, 0.0], [[0.0]]), errors.ShapeError),
        (lambda: hf.integrate.odeint(lambda y, t: y[0], [1.0, 0.0], [0.0, 1.0]), errors.ShapeError),
        (lambda: hf.integrate.solve_ivp(lambda t, y: y, (0.0, 1.0), [1.0], method="LSODA"), errors.ArgumentError),
        (lambda: hf.integrate.solve_ivp(lambda t, y: y, (0.0, 1.0, 2.0), [1.0]), errors.ShapeError),
        (lambda: hf.integrate.quad(lambda x: hf.sum(x), 0.0, 1.0), errors.ShapeError),
        (lambda: hf.integrate.quad(lambda x: x, [0.0], 1.0), errors.ShapeError),
        (lambda: hf.integrate.simpson(np.zeros(0)), errors.ShapeError),
        (lambda: hf.integrate.simpson(np.zeros(3), np.zeros(2)), errors.ShapeError),
        (lambda: hf.interpolate.CubicSpline([0.0, 0.0], [1.0, 2.0]), errors.ArgumentError),
        (lambda: hf.interpolate.CubicSpline([0.0], [1.0]), errors.ShapeError),
        (lambda: hf.interpolate.CubicSpline([0.0, 1.0], [1.0, 2.0], "periodic"), errors.ArgumentError),
        (lambda: hf.interpolate.CubicSpline([0.0, 1.0], [1.0, 2.0])(0.5, 4), errors.ArgumentError),
    ],
)
def test_bad_input(call: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        call()
