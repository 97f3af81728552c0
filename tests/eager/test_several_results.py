"""Ops with several results in the front end: eager, in functions, under tapes."""

from __future__ import annotations

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.compiler.ops import TABLE
from hybridflow.eager.dispatch import apply

pytestmark = pytest.mark.code

X = np.array([[1.0, 7.0, 3.0], [5.0, 2.0, 5.0]], np.float32)


def extreme(x, axis=1):
    return apply(TABLE["max_with_position"], x, axes=(axis,))


def scored(x):
    value, position = extreme(hf.sin(x))
    return hf.sum(value * value) + hf.sum(hf.astype(position, hf.float32)), value, position


def test_eager_and_graph_agree():
    x = hf.constant(X)
    for axis in (0, 1):
        for _ in range(3):  # eager ops may have a shortcut from the second time on
            value, position = extreme(x, axis)
            assert value.numpy().tolist() == X.max(axis).tolist()
            assert position.numpy().tolist() == X.argmax(axis).tolist()
    compiled = hf.function(scored)
    for _ in range(3):
        for got, want in zip(compiled(x), scored(x)):
            assert got.dtype == want.dtype and got.numpy().tobytes() == want.numpy().tobytes()


@pytest.mark.parametrize("where", ["eager", "function", "outside", "nested"])
def test_gradients(where):
    """All of it goes to the first largest element, in a tape around a function as well as in one inside."""

    def gradient(x, f=scored):
        with hf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)[0]
        return tape.gradient(y, x)

    x = hf.constant(X)
    compute = {
        "eager": gradient,
        "function": hf.function(gradient),
        "outside": lambda x: gradient(x, hf.function(scored)),
        "nested": hf.function(lambda x: gradient(x, hf.function(scored))),
    }[where]
    s = np.sin(X.astype(np.float64))
    want = np.zeros_like(s)
    for row, column in enumerate(s.argmax(1)):
        want[row, column] = 2 * s[row, column] * np.cos(np.float64(X[row, column]))
    np.testing.assert_allclose(compute(x).numpy(), want, rtol=1e-5)


def test_second_derivatives():
    x = hf.constant(X)
    with hf.GradientTape() as outer:
        outer.watch(x)
        with hf.GradientTape() as inner:
            inner.watch(x)
            value, _ = extreme(x)
            y = hf.sum(value * value * value)
        first = inner.gradient(y, x)
    second = outer.gradient(first, x)
    want = np.zeros_like(X)
    want[np.arange(2), X.argmax(1)] = 6 * X.max(1)
    assert second.numpy().tolist() == want.tolist()


def test_a_concrete_function_within_a_trace():
    concrete = hf.function(scored).get_concrete_function(hf.TensorSpec((2, 3), hf.float32))
    outer = hf.function(lambda x: concrete(x)[1] + 1)
    assert outer(hf.constant(X)).numpy().tobytes() == (scored(hf.constant(X))[1] + 1).numpy().tobytes()
