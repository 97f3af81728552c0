"""Derivatives where there is none: at ties, at corners, and at the lengths of nothing.  A zero rather than NaN."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hybridflow as hf

pytestmark = pytest.mark.code

Z, ONES = np.zeros(3), np.ones(3)
NORM = hf.linalg.vector_norm

# Function, arguments, gradients.
CASES: dict[str, tuple[Any, tuple[Any, ...], tuple[Any, ...]]] = {
    "norm": (NORM, (Z,), (Z,)),
    "norm, ord 1": (lambda x: NORM(x, ord=1), (Z,), (Z,)),
    "norm, ord 3": (lambda x: NORM(x, ord=3), (Z,), (Z,)),
    "norm, ord inf": (lambda x: NORM(x, ord=np.inf), (Z,), (Z,)),
    "norm of rows": (lambda x: hf.sum(NORM(x, axis=1)), ([[0.0, 0.0], [3.0, 4.0]],), ([[0.0, 0.0], [0.6, 0.8]],)),
    "norm, ord 3, of rows": (lambda x: hf.sum(NORM(x, axis=1, ord=3)), ([[0.0], [2.0]],), ([[0.0], [1.0]],)),
    "frobenius": (hf.linalg.matrix_norm, (np.zeros((2, 2)),), (np.zeros((2, 2)),)),
    "std": (hf.std, (ONES,), (Z,)),
    "std of columns": (lambda x: hf.sum(hf.std(x, axis=0)), ([[1.0, 1.0], [1.0, 3.0]],), ([[0, -0.5], [0, 0.5]],)),
    "var": (hf.var, (ONES,), (Z,)),
    "hypot": (hf.hypot, (0.0, 0.0), (0.0, 0.0)),
    "hypot elsewhere": (hf.hypot, (3.0, 4.0), (0.6, 0.8)),
    "atan2": (hf.atan2, (0.0, 0.0), (0.0, 0.0)),
    "atan2 elsewhere": (hf.atan2, (3.0, 4.0), (0.16, -0.12)),
    "abs": (hf.abs, (0.0,), (0.0,)),
    "sign": (hf.sign, (0.0,), (0.0,)),
    "relu": (hf.nn.relu, (0.0,), (0.0,)),
    "max": (hf.max, (ONES,), (ONES / 3,)),
    "min": (hf.min, ([1.0, 1.0, 2.0],), ([0.5, 0.5, 0.0],)),
    "maximum": (hf.maximum, (1.0, 1.0), (1.0, 0.0)),
    "minimum": (hf.minimum, (1.0, 1.0), (1.0, 0.0)),
    "prod": (hf.prod, ([0.0, 2.0, 3.0],), ([6.0, 0.0, 0.0],)),
    "prod of zeros": (hf.prod, (Z,), (Z,)),
    "x**0": (lambda x: x**0, (0.0,), (0.0,)),
    "x**0.0": (lambda x: x**0.0, (0.0,), (0.0,)),
    "x**1": (lambda x: x**1, (0.0,), (1.0,)),
    "x**2": (lambda x: x**2, (0.0,), (0.0,)),
    "0**0": (hf.pow, (0.0, 0.0), (0.0, 0.0)),
    "0**2": (hf.pow, (0.0, 2.0), (0.0, 0.0)),
    "(-2)**3": (hf.pow, (-2.0, 3.0), (12.0, 0.0)),
    "sqrt behind where": (lambda x: hf.where(x > 0, hf.sqrt(x), 0.0), (0.0,), (0.0,)),
    "rsqrt behind where": (lambda x: hf.where(x > 0, hf.rsqrt(x), 0.0), (0.0,), (0.0,)),
    "log behind where": (lambda x: hf.where(x > 0, hf.log(x), 0.0), (0.0,), (0.0,)),
    "power behind where": (lambda x: hf.where(x > 0, x**0.5, 0.0), (0.0,), (0.0,)),
    "acos behind where": (lambda x: hf.where(hf.abs(x) < 1, hf.acos(x), 0.0), (1.0,), (0.0,)),
    "quotient behind where": (lambda x, y: hf.where(y != 0, x / y, 0.0), (1.0, 0.0), (0.0, 0.0)),
    "sqrt": (hf.sqrt, (0.0,), (np.inf,)),  # which it is
    "logaddexp of nothing": (hf.logaddexp, (-np.inf, -np.inf), (0.5, 0.5)),
    "softplus far away": (hf.nn.softplus, (-800.0,), (0.0,)),
    "log_sigmoid far away": (hf.nn.log_sigmoid, (-800.0,), (1.0,)),
    "elu far away": (hf.nn.elu, (800.0,), (1.0,)),
}
SMOOTH_AGAIN = [name for name in CASES if name != "sqrt"]


@pytest.mark.parametrize("name", CASES)
def test_first_derivatives(name: str) -> None:
    f, arguments, wanted = CASES[name]
    given = [hf.asarray(np.asarray(x, np.float64)) for x in arguments]
    numbers = tuple(range(len(given)))
    eager = hf.grad(f, numbers)(*given)
    compiled = hf.function(hf.grad(f, numbers))(*given)
    for found, same, gradient in zip(eager, compiled, wanted):
        np.testing.assert_allclose(found.numpy(), np.asarray(gradient, np.float64), rtol=1e-15)
        assert found.numpy().tobytes() == same.numpy().tobytes()
    moved = hf.jvp(f, tuple(given), tuple(hf.ones_like(x) for x in given))[1]
    np.testing.assert_allclose(moved.numpy(), sum(np.sum(g) for g in wanted), rtol=1e-15)


@pytest.mark.parametrize("name", SMOOTH_AGAIN)
def test_second_derivatives_are_numbers(name: str) -> None:
    f, arguments, _ = CASES[name]
    given = [hf.asarray(np.asarray(x, np.float64)) for x in arguments]

    def sums(*xs: Any) -> Any:
        return sum(hf.sum(g) for g in hf.grad(f, tuple(range(len(xs))))(*xs))

    for found in hf.grad(sums, tuple(range(len(given))))(*given):
        assert np.isfinite(found.numpy()).all(), found
