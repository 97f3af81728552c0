"""Forward mode of compiled functions has the bits of eager mode: tangents are pushed op by op in both.

A transposed backward pass would have them too but for the last bits, and where 0 meets infinity: the tangent of
``sqrt(x * x)`` at 0 is 0 by the rules of the ops, and NaN by a transposed pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from tests.support.bits import same_bits

X = np.array([0.0, 1.3, -0.7, 2.1], np.float32)
MOVED = np.array([1.0, 0.5, -2.0, 0.25], np.float32)
START = np.array([1.5, -2.0, 3.0, 0.0], np.float32)

variable = hf.Variable(START)


@hf.custom_gradient
def tripled(x: Any) -> Any:
    return hf.sin(x), lambda dy: dy * 3.0 * x


def assigned(x: Any) -> Any:
    variable.assign(variable * 1.0 + x)
    y = variable * x
    variable.assign_add(y)
    return variable * y


def looped(x: Any) -> Any:
    while hf.sum(x) < 50.0:
        x = x * 1.7 + 0.3
    return x


def folded(x: Any) -> Any:
    total = x * 0.0
    for _ in hf.arange(4):
        total = hf.tanh(total + x)
    return total


def chosen(x: Any) -> Any:
    if hf.sum(x) > 0:
        y = hf.sqrt(x * x)
    else:
        y = x * 2.0
    return y


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "sqrt of a square": lambda x: hf.sqrt(x * x),
    "norm": lambda x: hf.sqrt(hf.sum(x * x)),
    "logarithm of 0": lambda x: hf.log(hf.abs(x)),
    "0 over 0": lambda x: x / (x * x),
    "quotient": lambda x: hf.exp(x) / (1 + x * x),
    "softmax": hf.nn.softmax,
    "product with itself": lambda x: hf.tanh(x) * x + x,
    "shielded": lambda x: hf.where(x == 0, 0.0, x * hf.log(hf.abs(x))),
    "matrices": lambda x: hf.reshape(x, (2, 2)) @ hf.reshape(x, (2, 2)),
    "equations": lambda x: hf.linalg.inv(hf.reshape(x, (2, 2)) + hf.asarray([[1.0, 0.5], [0.2, 1.3]])),
    "sorted": lambda x: (hf.sort(x), hf.cumulative_sum(x * x)),
    "looked up": lambda x: hf.take(x, [0, 1, 1, 2]),
    "an argument among results": lambda x: (x, x * 2.0),
    "clipped": lambda x: hf.optimizers.clip_by_norm(x, 2.0),
    "clipped by infinity": lambda x: hf.optimizers.clip_by_norm(x, float("inf")),
    "a gradient of its own": lambda x: tripled(x) * x,
    "variables": assigned,
    "while": looped,
    "for": folded,
    "if": chosen,
}


def parts(result: Any) -> list[Any]:
    return list(result) if isinstance(result, (tuple, list)) else [result]


def loss(results: Sequence[Any]) -> Any:
    return sum(hf.sum(hf.sin(y)) for y in results)


def tangents(function: Callable[[Any], Any], x: Any, moved: Any) -> list[Any]:
    with hf.ForwardAccumulator([x, variable], [moved, hf.asarray(MOVED * 0.1)]) as accumulator:
        found = parts(function(x))
    return [*found, *(accumulator.jvp(y) for y in found)]


def tangents_of_gradients(function: Callable[[Any], Any], x: Any, moved: Any) -> list[Any]:
    with hf.ForwardAccumulator(x, moved) as accumulator:
        with hf.GradientTape() as tape:
            tape.watch(x)
            total = loss(parts(function(x)))
        found = tape.gradient(total, [x, variable])
    return [*found, *(None if g is None else accumulator.jvp(g) for g in found)]


def gradients_of_tangents(function: Callable[[Any], Any], x: Any, moved: Any) -> list[Any]:
    with hf.GradientTape() as tape:
        tape.watch([x, moved])
        with hf.ForwardAccumulator(x, moved) as accumulator:
            found = parts(function(x))
        total = loss([t for y in found if (t := accumulator.jvp(y)) is not None])
    return list(tape.gradient(total, [x, moved]))


def linearized(function: Callable[[Any], Any], x: Any, moved: Any) -> list[Any]:
    _, push = hf.linearize(function, x)
    return parts(push(moved))


def jacobian(function: Callable[[Any], Any], x: Any, moved: Any) -> list[Any]:
    return parts(hf.jacfwd(function)(x))


WAYS = [tangents, tangents_of_gradients, gradients_of_tangents, linearized, jacobian]


def outcome(way: Callable[..., list[Any]], function: Callable[[Any], Any]) -> list[np.ndarray | None]:
    variable.assign(START)
    found = way(function, hf.asarray(X), hf.asarray(MOVED))
    return [None if x is None else np.asarray(x) for x in found]


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_compiled_and_eager_tangents_have_the_same_bits(way: Callable[..., list[Any]], name: str) -> None:
    function = FUNCTIONS[name]
    if way is gradients_of_tangents and name == "a gradient of its own":
        pytest.skip("cotangents of a function with a gradient of its own are added up in another order")
    expected = outcome(way, function)
    compiled = hf.function(function)
    for _ in range(3):
        for k, (a, b) in enumerate(zip(expected, outcome(way, compiled), strict=True)):
            assert (a is None) == (b is None), k
            assert a is None or b is None or same_bits(a, b), f"{k}: eager {a}, compiled {b}"


def test_the_tangent_of_a_root_at_0_is_that_of_its_rules() -> None:
    x, moved = hf.asarray([0.0, -0.0, 3.0]), hf.asarray([1.0, 2.0, 3.0])
    with hf.ForwardAccumulator(x, moved) as accumulator:
        y = hf.function(lambda x: hf.sqrt(x * x))(x)
    assert accumulator.jvp(y).tolist() == [0.0, 0.0, 3.0]


def test_open_extents() -> None:
    """One program pushes the tangents of arguments of all sizes."""
    function = hf.function(lambda x: hf.exp(x) / hf.sum(hf.exp(x)))
    for size in (3, 5, 8, 2, 13):
        x, moved = hf.asarray(np.linspace(-1, 1, size)), hf.asarray(np.linspace(1, 2, size))
        for call in (function, lambda x: hf.exp(x) / hf.sum(hf.exp(x))):
            with hf.ForwardAccumulator(x, moved) as accumulator:
                y = call(x)
            p, t = y.numpy(), moved.numpy()
            np.testing.assert_allclose(accumulator.jvp(y).numpy(), p * (t - np.sum(p * t)), rtol=1e-12)
