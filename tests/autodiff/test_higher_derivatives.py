"""Derivatives of higher order, with tapes around compiled functions, against eager mode bit for bit."""

from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from tests.support.bits import same_bits

pytestmark = pytest.mark.code

rng = np.random.default_rng(0)


def made(*shape):
    return hf.asarray(rng.normal(size=shape).astype("float32"))


X, C, W = made(9), made(9), made(9, 9)
V, V2 = hf.Variable(made(9)), hf.Variable(made(9, 9))


def square(x):
    return hf.reshape(x, (3, 3))


def normalised(x):
    return (x - hf.mean(x)) / hf.sqrt(hf.var(x) + 1e-3) * x


def repeated(x, times, step):
    for _ in range(times):
        x = step(x)
    return x


COMPILED = hf.function(normalised)

FUNCTIONS = {
    "outer": lambda x: hf.outer(x, x),
    "layer_norm": hf.nn.layer_norm,
    "layer_norm of rows": lambda x: hf.nn.layer_norm(square(x)) * square(x),
    "layer_norm twice": lambda x: hf.nn.layer_norm(hf.nn.layer_norm(x) * x),
    "softmax": hf.nn.softmax,
    "log_softmax": hf.nn.log_softmax,
    "l2_normalize": lambda x: x / hf.sqrt(hf.sum(x * x) + 1e-6),
    "l2_normalize rows": lambda x: square(x) / hf.sqrt(hf.sum(square(x) ** 2, axis=1, keepdims=True) + 1e-3),
    "batch_norm": lambda x: (square(x) - hf.mean(square(x), axis=0)) / hf.sqrt(hf.var(square(x), axis=0) + 1e-3),
    "var": lambda x: hf.sqrt(hf.var(x) + 1.0),
    "logsumexp": hf.logsumexp,
    "normalised": normalised,
    "product": lambda x: hf.tanh(W @ hf.tanh(W @ x)),
    "attention": lambda x: hf.nn.softmax(square(x) @ square(x).T) @ square(x),
    "power": lambda x: x**3 + 2 * x**2,
    "sin": lambda x: hf.sin(x) * hf.cos(x) + x,
    "rows and columns": lambda x: hf.sum(x[:, None] * x[None, :] + x[:, None], axis=0) * x,
    "kernel": lambda x: hf.exp(-((x[:, None] - x[None, :]) ** 2)),
    "bias": lambda x: hf.tanh(square(x) + x[:3]) * x[3:6],
    "gates": lambda x: hf.sigmoid(square(x)[:, :1]) * hf.tanh(square(x)[:, 1:2]) - square(x)[:, 2:],
    "elements": lambda x: repeated((x[0], 0), 8, lambda s: (hf.tanh(s[0] * x[s[1]] + x[s[1] + 1]), s[1] + 1))[0],
    "stencil": lambda x: repeated(x, 3, lambda x: hf.tanh(x[:-2] * 2 - x[1:-1] + x[2:])),
    "even and odd": lambda x: x[::2][:4] * hf.exp(x[1::2]),
    "cumulative_sum": lambda x: hf.cumulative_sum(x * x) * x,
    "sort": lambda x: hf.sort(x) * x,
    "take": lambda x: x[np.array([1, 3, 3, 0])] * hf.sum(x),
    "max": lambda x: hf.max(x) * x,
    "prod": lambda x: hf.prod(x) * x,
    "where": lambda x: hf.where(x > 0, x * x, hf.exp(x)),
    "gelu": hf.nn.gelu,
    "swish": lambda x: x * hf.sigmoid(x * hf.sum(x)),
    "concat": lambda x: hf.concat([x, x * x, hf.sin(x)], axis=0) * hf.sum(x),
    "pad": lambda x: hf.pad(x, [(1, 2)]) * hf.sum(x),
    "tile": lambda x: hf.tile(x, 2) * hf.sum(x * x),
    "roll": lambda x: hf.roll(x, 1) * x,
    "triangle": lambda x: hf.tril(hf.outer(x, x)),
    "clip": lambda x: hf.clip(x, -1, 1) * hf.mean(x),
    "extremes": lambda x: hf.minimum(x, x * x) * hf.maximum(x, 0.0),
    "one element": lambda x: x * x[0] + x[1],
    "stop_gradient": lambda x: x * hf.stop_gradient(hf.sum(x) * x),
    "steps": lambda x: repeated(x, 4, lambda x: hf.tanh(x * hf.mean(x) + x)),
    "residual": lambda x: repeated(x, 3, lambda x: x + hf.tanh(W @ x)),
    "variables": lambda x: hf.tanh(V2 @ x) * V + x * V,
    "captured": lambda x: C * x * hf.sum(C * x),
    "nested": lambda x: COMPILED(x) * COMPILED(hf.sin(x)),
    "two results": lambda x: (x * x, hf.outer(x, hf.sin(x))),
    "a dict": lambda x: {"a": x * hf.sum(x), "b": hf.outer(x, x)},
    "its argument": lambda x: (x * x, x),
    "its capture": lambda x: (C, C * x),
    "its variable": lambda x: (V.value(), V * x),
}


def total(result):
    parts = result.values() if isinstance(result, dict) else result if isinstance(result, tuple) else [result]
    return sum((hf.sum(hf.sin(part) * part + part) for part in parts), hf.zeros(()))


def nested_tapes(f, order, persistent=False):
    """The gradients of every order, with respect to an argument, a captured tensor and variables, of two calls."""
    found = []

    def value(level):
        if level == 0:
            return total(f(X)) + total(f(hf.cos(X))) * hf.sum(X)
        with hf.GradientTape(persistent=persistent) as tape:
            tape.watch([X, C])
            y = value(level - 1)
        gradients = [g for g in tape.gradient(y, [X, C, V, V2]) if g is not None]
        found.extend(gradients)
        return sum((hf.sum(g * g + hf.sin(g)) for g in gradients), hf.zeros(()))

    value(order)
    return found


def jacobian(f):
    with hf.GradientTape() as outer:
        outer.watch(X)
        with hf.GradientTape() as inner:
            inner.watch(X)
            y = total(f(X))
        gradient = inner.gradient(y, X)
    return [outer.jacobian(gradient, X)]


def one_tape(f):
    """A persistent tape that records its own gradients."""
    with hf.GradientTape(persistent=True) as tape:
        tape.watch(X)
        first = tape.gradient(total(f(X)), X)
        second = tape.gradient(hf.sum(first * first), X)
        loss = hf.zeros(()) if second is None else hf.sum(second * hf.sin(second))
    return [first, second, tape.gradient(loss, X)]


def tape_after_the_call(f):
    with hf.GradientTape() as inner:
        inner.watch(X)
        y = total(f(X))
    with hf.GradientTape() as outer:
        outer.watch(X)
        gradient = inner.gradient(y, X)
        loss = hf.sum(gradient * gradient)
    return [gradient, outer.gradient(loss, X)]


def other_sources(f):
    """The outer tape watches other things than the inner one."""
    with hf.GradientTape() as outer:
        outer.watch(C)
        with hf.GradientTape() as inner:
            inner.watch(X)
            y = total(f(X))
        loss = hf.sum(inner.gradient(y, X) ** 3)
    return outer.gradient(loss, [C, V, V2])


WAYS = {
    "second": lambda f: nested_tapes(f, 2),
    "second, persistent": lambda f: nested_tapes(f, 2, True),
    "third": lambda f: nested_tapes(f, 3),
    "jacobian": jacobian,
    "one tape": one_tape,
    "tape after the call": tape_after_the_call,
    "other sources": other_sources,
}


def same(a, b):
    if a is None or b is None:
        return a is b
    return same_bits(np.asarray(a), np.asarray(b))


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.sample(4)
def test_higher_derivatives_around_compiled_functions(name):
    f = FUNCTIONS[name]
    compiled = hf.function(f)
    for way, derive in WAYS.items():
        eager = derive(f)
        for _ in range(2):  # traced, then found
            found = derive(compiled)
            assert len(found) == len(eager) and all(map(same, found, eager)), way


def test_several_compiled_functions_and_updates_between():
    step = hf.function(lambda x: (V.assign(hf.tanh(V * x)), hf.outer(V, x))[1])
    scale = hf.function(lambda y, x: hf.nn.softmax(y) * hf.mean(x))
    start = V.value()

    def derive(step, scale):
        V.assign(start)
        with hf.GradientTape() as outer:
            outer.watch(X)
            with hf.GradientTape() as inner:
                inner.watch(X)
                y = scale(step(X), X)
                y = hf.sum(scale(step(hf.sum(y, axis=0)), hf.sum(y, axis=1)) * V[None, :])
            gradient = inner.gradient(y, X)
            loss = hf.sum(gradient * gradient)
        return [gradient, outer.gradient(loss, X), V.value()]

    eager = derive(step.python_function, scale.python_function)
    for _ in range(2):
        assert all(map(same, derive(step, scale), eager))
    V.assign(start)


def test_a_compiled_function_inside_of_a_custom_gradient():
    inner = hf.function(lambda x: hf.outer(x, x) * V)

    @hf.custom_gradient
    def doubled(x):
        y = hf.sum(inner(x), axis=0)
        return y, lambda g, variables=None: ([2 * g * hf.sum(inner(x), axis=1)], [None for _ in variables or ()])

    def derive(f):
        with hf.GradientTape() as outer:
            outer.watch(X)
            with hf.GradientTape() as tape:
                tape.watch(X)
                y = hf.sum(hf.sin(f(X)))
            gradient = tape.gradient(y, X)
        return [gradient, outer.gradient(gradient, X)]

    with hf.GradientTape() as tape:
        tape.watch(X)
        assert tape.gradient(hf.sum(doubled(X)), X) is not None
    assert all(map(same, derive(hf.function(doubled)), derive(doubled)))


def own_value(v: hf.Variable) -> Any:
    old = v.value()
    v.assign(old)
    return old, v**2


def another_and_back(v: hf.Variable) -> Any:
    old = v.value()
    v.assign(old * 0.5)
    between = hf.exp(v)
    v.assign(old)
    return old, between, v**2


@pytest.mark.parametrize("body", [own_value, another_and_back])
def test_a_variable_that_ends_with_its_own_value(body: Any) -> None:
    """What is read after an assignment is another value to the tapes, whose cotangents come together apart."""

    def second_derivatives(wrapped: Any) -> list[np.ndarray]:
        v = hf.Variable(np.random.default_rng(0).standard_normal(40).astype(np.float32))

        @wrapped
        def program() -> Any:
            return body(v)

        with hf.GradientTape() as outer:
            with hf.GradientTape() as inner:
                losses = [hf.sum(hf.sin(y)) for y in program()]
            first = inner.gradient(losses, v)
            target = hf.sum(first * first)
        return [np.array(first), np.array(outer.gradient(target, v))]

    eager, compiled = second_derivatives(lambda python: python), second_derivatives(hf.function)
    assert all(map(np.array_equal, eager, compiled))
