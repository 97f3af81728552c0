"""Functions in Python whose results get their shapes later: by ``set_shape``, ``ensure_shape`` or a reshape."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hybridflow as hf
import hybridflow.compat.tf as tf
from hybridflow import errors

pytestmark = pytest.mark.code

X = np.array([3.0, -1.0, 2.0], np.float32)


def test_each_result_is_said_when_it_is_needed() -> None:
    seen: list[Any] = []

    def both(a: np.ndarray) -> Any:
        seen.append("both")
        return a * 2, np.int64(len(a)), a[:1]

    @hf.function
    def f(x):
        a, n, _unused = hf.numpy_function(both, [x], [hf.float32, hf.int64, hf.float32])
        hf.py_function(lambda: seen.append("after"), [], None)
        a.set_shape((None,))
        a.set_shape(x.shape)
        b = a + 1
        n.set_shape(())
        return b, n, a.shape[0]

    for x in (X, X[:2], np.concatenate([X, X])):
        seen.clear()
        b, n, size = f(hf.constant(x))
        np.testing.assert_array_equal(b.numpy(), x * 2 + 1)
        assert n.numpy() == size == len(x) and seen == ["both", "after"]  # in the order of the program


def test_a_shape_may_be_said_in_branches_and_loops() -> None:
    @hf.function
    def f(x, up):
        y = hf.py_function(lambda a: a * 3, [x], hf.float32)
        z = hf.numpy_function(np.sort, [x], hf.float32)
        if up:
            y.set_shape(x.shape)
            out = y + 1
        else:
            y.set_shape(x.shape)
            out = y - 1
        for _ in range(2):
            z.set_shape((3,))
            out = out + z
        i = hf.constant(0)
        while i < 3:
            w = hf.py_function(lambda a, k: a + k.numpy(), [x, i], hf.float32)
            w.set_shape((3,))
            out = out + w
            i += 1
        return out + y + z

    for up in (True, False):
        wanted = X * 3 + (1 if up else -1) + 2 * np.sort(X) + 3 * X + 3 + X * 3 + np.sort(X)
        np.testing.assert_allclose(f(hf.constant(X), hf.constant(up)).numpy(), wanted)


@pytest.mark.parametrize("compiled", [False, True])
def test_derivatives(compiled: bool) -> None:
    def loss(x):
        a, b = hf.py_function(lambda x: (x**3, x[:2] * x[1:]), [x], [hf.float32, hf.float32])
        a.set_shape((3,))
        column = hf.reshape(b, (2, 1))
        return hf.sum(a * x) + hf.sum(column * hf.constant([[2.0], [5.0]]))

    def gradients(x):
        with hf.GradientTape() as outer:
            outer.watch(x)
            with hf.GradientTape() as tape:
                tape.watch(x)
                value = loss(x)
            first = tape.gradient(value, x)
        return value, first, outer.gradient(first, x)

    value, first, second = (hf.function(gradients) if compiled else gradients)(hf.constant(X))
    x = X.astype(np.float64)
    assert value.numpy() == pytest.approx((x**4).sum() + 2 * x[0] * x[1] + 5 * x[1] * x[2])
    np.testing.assert_allclose(first.numpy(), 4 * x**3 + [2 * x[1], 2 * x[0] + 5 * x[2], 5 * x[1]], rtol=1e-6)
    np.testing.assert_allclose(second.numpy(), 12 * x**2 + [2, 7, 5], rtol=1e-6)


@pytest.mark.parametrize("inside", [False, True])
def test_derivatives_of_what_is_said_in_branches(inside: bool) -> None:
    def value(x, up):
        y = hf.py_function(lambda a: a * a, [x], hf.float32)
        if up:
            y.set_shape((3,))
            out = y * 2
        else:
            y.set_shape((3,))
            out = y * x
        return hf.sum(out + y)

    @hf.function
    def f(x, up):
        with hf.GradientTape() as tape:
            tape.watch(x)
            found = value(x, up)
        return tape.gradient(found, x)

    for up in (True, False):
        x, flag = hf.constant(X), hf.constant(up)
        if inside:
            found = f(x, flag)
        else:
            with hf.GradientTape() as tape:
                tape.watch(x)
                out = hf.function(value)(x, flag)
            found = tape.gradient(out, x)
        np.testing.assert_allclose(found.numpy(), 6 * X if up else 3 * X**2 + 2 * X, rtol=1e-6)


def test_what_is_returned_must_have_the_shape() -> None:
    def f(x, how):
        y = hf.numpy_function(lambda a: a[1:], [x], hf.float32)
        if how == "set":
            y.set_shape(x.shape)
            return y
        if how == "rank":
            y.set_shape((1, 2))
            return y
        return hf.reshape(y, (3, 1))

    for how in ("set", "rank", "reshape"):
        with pytest.raises(errors.ShapeError, match=r"returned f32\[2\]\. Expected"):
            hf.function(f)(hf.constant(X), how)
    open_ = hf.function(lambda x: f(x, "set"), input_signature=[hf.TensorSpec([None])])
    with pytest.raises(errors.HybridflowError):
        open_(hf.constant(X))


def test_uses_before_the_shape_is_known() -> None:
    uses = {
        "+": lambda y: y + 1,
        "shape": lambda y: y.shape,
        "return": lambda y: y,
        "-1": lambda y: hf.reshape(y, (-1, 1)),
        "partly": lambda y: y.set_shape((None,)) or hf.sum(y),
    }
    for use in uses.values():

        @hf.function
        def f(x, use=use):
            return use(hf.numpy_function(np.sort, [x], hf.float32))

        with pytest.raises(errors.ArgumentError, match=r"at test_deferred_shapes\.py:\d+ is not known.*set_shape"):
            f(hf.constant(X))

    @hf.function
    def twice(x):
        y = hf.numpy_function(np.sort, [x], hf.float32)
        y.set_shape((None, 2))
        y.set_shape((3,))

    with pytest.raises(errors.ShapeError, match="was said to be"):
        twice(hf.constant(X))


def test_ensure_shape_says_it() -> None:
    @tf.function
    def f(x):
        return tf.ensure_shape(tf.numpy_function(np.sort, [x], tf.float32), [3]) * 2

    np.testing.assert_array_equal(f(tf.constant(X)).numpy(), np.sort(X) * 2)
