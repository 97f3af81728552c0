"""Tensors whose elements are assigned to in a loop or branch, and whose name is bound anew there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hybridflow as hf


def halved(x: Any, n: Any) -> Any:
    c = x * 2.0
    for i in range(n):
        c[0] = c[1]
        c = c * 0.5
        c[i] = 3.0
    return c


def replaced(x: Any, n: Any) -> Any:
    a, c = x * 2.0, hf.ones(6)
    for _ in range(n):
        c[0] = c[1] + 1.0
        c = +a
    return a, c


def replaced_while_both_change(x: Any, n: Any) -> Any:
    a, c = x * 2.0, hf.ones(6)
    for _ in range(n):
        c[0] = c[1]
        a[1] = hf.sum(c)
        c = +a
        c[1] = 3.0
    return a, c


def in_while(x: Any, n: Any) -> Any:
    c, k = x * 2.0, 0
    while k < n:
        c[k] = c[0] + 1.0
        c = c + x
        k += 1
    return c


def nested(x: Any, n: Any) -> Any:
    c = x * 2.0
    for i in range(n):
        for j in range(n):
            c[j] = c[i] - 1.0
            c = c * 0.5
        c[0] = 1.0
    return c


def over_a_tensor(x: Any, n: Any) -> Any:
    c, total = x * 2.0, hf.asarray(0.0)
    for v in x:
        c[2] = v
        total = total + hf.sum(c)
        c = c - v
    return c, total


def in_a_branch(x: Any, n: Any) -> Any:
    c = x * 2.0
    if n > 2:
        c[0] = c[1]
        c = c * 2.0
    else:
        c = c - 1.0
        c[3] = 0.0
    return c


def in_a_branch_of_a_loop(x: Any, n: Any) -> Any:
    c = x * 2.0
    for i in range(n):
        if c[i] > 1.0:
            c[0] = c[1] + 1.0
            c = c * 0.5
        c[i] = 2.0
    return c


PROGRAMS = [
    halved, replaced, replaced_while_both_change, in_while, nested, over_a_tensor, in_a_branch, in_a_branch_of_a_loop
]  # fmt: skip


def flat(value: Any) -> list[Any]:
    return list(value) if isinstance(value, tuple) else [value]


@pytest.mark.parametrize("n", [0, 1, 2, 4])
@pytest.mark.parametrize("program", PROGRAMS)
def test_compiled_is_eager(program: Callable[..., Any], n: int) -> None:
    x = hf.asarray(np.random.default_rng(n).normal(size=6).astype(np.float32))
    for found, expected in zip(flat(hf.function(program)(x, hf.asarray(n))), flat(program(x, n))):
        np.testing.assert_array_equal(found.numpy(), expected.numpy())


@pytest.mark.parametrize("program", PROGRAMS)
def test_gradients(program: Callable[..., Any]) -> None:
    x = hf.asarray(np.random.default_rng(7).normal(size=6).astype(np.float32))
    compiled = hf.function(program)

    def total(f: Callable[..., Any], n: Any) -> Callable[[Any], Any]:
        return lambda x: sum(hf.sum(value * value) for value in flat(f(x, n)))

    found, expected = hf.grad(total(compiled, hf.asarray(3)))(x), hf.grad(total(program, 3))(x)
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-5, atol=1e-5)
