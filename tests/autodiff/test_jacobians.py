"""jvp, vjp, linearize, Jacobians, Hessians and ForwardAccumulator: against finite differences and each other."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors

pytestmark = pytest.mark.code

X = np.array([0.3, 0.7, 1.2])
V = np.array([1.0, 2.0, -1.0])
W = hf.asarray(np.random.default_rng(0).normal(size=(3, 3)))
WAYS = pytest.mark.parametrize("way", [lambda f: f, hf.function], ids=["eager", "compiled"])


def f(x: Any) -> Any:
    return hf.tanh(W @ x) * hf.sum(x**3)


def loop(x: Any) -> Any:
    while hf.sum(x * x) < 30.0:
        x = hf.where(x > 0.5, x * 1.5, x + hf.sin(x))
    return x


def branch(x: Any) -> Any:
    if hf.sum(x) > 1.0:
        return hf.exp(x) * x[0]
    return -x


def walk(x: Any) -> Any:
    return hf.scan(lambda a, b: a * b + hf.sin(b), x)


@hf.custom_gradient
def custom(x: Any) -> Any:
    y = hf.exp(x)
    return y * hf.sum(x), lambda g: g * y * hf.sum(x) + y * hf.sum(g * y) / y


FUNCTIONS = [f, hf.function(f), hf.function(loop), hf.function(branch), hf.function(walk), walk]
NAMES = ["plain", "compiled f", "loop", "branch", "walk", "plain walk"]


def jacobian_of(g: Any, x: np.ndarray = X, step: float = 1e-6) -> np.ndarray:
    """By central differences."""
    columns = []
    for e in np.eye(len(x)) * step:
        columns.append((g(hf.asarray(x + e)).numpy() - g(hf.asarray(x - e)).numpy()) / (2 * step))
    return np.stack(columns, -1)


def all_of(g: Any) -> Any:
    """Each way to a first derivative of ``g``, of which those of matrices are times V."""

    def first(x: Any, v: Any) -> Any:
        y, moved = hf.jvp(g, (x,), (v,))
        linear, push = hf.linearize(g, x)
        _, pull = hf.vjp(g, x)
        with hf.ForwardAccumulator({"x": x}, {"x": v}) as acc:
            z = g(x)
        jacobians = [way(g)(x) for way in (hf.jacrev, hf.jacfwd, hf.jacobian)]
        return y, linear, moved, push(v), acc.jvp(z), pull(v)[0], jacobians

    return first


@pytest.mark.parametrize("g", FUNCTIONS, ids=NAMES)
@WAYS
def test_first_derivatives(g: Any, way: Any) -> None:
    wanted = jacobian_of(g)
    y, linear, moved, pushed, accumulated, pulled, jacobians = way(all_of(g))(hf.asarray(X), hf.asarray(V))
    same = g(hf.asarray(X)).numpy()
    assert y.numpy().tobytes() == linear.numpy().tobytes() == same.tobytes()
    for t in (moved, pushed, accumulated):
        np.testing.assert_allclose(t.numpy(), wanted @ V, rtol=1e-7)
    np.testing.assert_allclose(pulled.numpy(), V @ wanted, rtol=1e-7)
    for j in jacobians:
        np.testing.assert_allclose(j.numpy(), wanted, rtol=1e-7)


@pytest.mark.parametrize("g", FUNCTIONS, ids=NAMES)
@WAYS
@pytest.mark.sample(4)
def test_second_derivatives_in_every_order_of_modes(g: Any, way: Any) -> None:
    def loss(x: Any) -> Any:
        return hf.sum(g(x) ** 2)

    def both(x: Any, v: Any) -> Any:
        matrices = [hf.hessian(loss)(x)]
        matrices += [a(b(loss))(x) for a, b in itertools.product((hf.jacfwd, hf.jacrev), repeat=2)]
        with hf.ForwardAccumulator(x, v) as acc:
            with hf.GradientTape() as tape:
                tape.watch(x)
                y = loss(x)
            gradient = tape.gradient(y, x)
        with hf.GradientTape() as outside:
            outside.watch(x)
            with hf.ForwardAccumulator(x, v) as inner:
                y = loss(x)
            moved = inner.jvp(y)
        with hf.ForwardAccumulator(x, v) as outer, hf.ForwardAccumulator(x, v) as inner:
            y = loss(x)
        assert inner.jvp(outer.jvp(y)) is None
        return matrices, [acc.jvp(gradient), outside.gradient(moved, x)], outer.jvp(inner.jvp(y))

    wanted = jacobian_of(hf.grad(loss))
    matrices, products, number = way(both)(hf.asarray(X), hf.asarray(V))
    for h in matrices:
        np.testing.assert_allclose(h.numpy(), wanted, rtol=1e-6)
    for p in products:
        np.testing.assert_allclose(p.numpy(), wanted @ V, rtol=1e-6)
    np.testing.assert_allclose(number.numpy(), V @ wanted @ V, rtol=1e-6)


@WAYS
def test_a_derivative_of_ones_own_has_tangents(way: Any) -> None:
    """Which it says itself: this one is not that of the function."""

    @hf.custom_gradient
    def hundred(x: Any) -> Any:
        return x * x, lambda g: g * 100 * x

    x, v = hf.asarray(X), hf.asarray(V)

    def moved(g: Any) -> Any:
        return lambda x: hf.jvp(g, (x,), (v,))[1]

    for g in (hundred, hf.function(hundred)):
        np.testing.assert_allclose(way(moved(g))(x).numpy(), 100 * X * V, rtol=1e-15)
        np.testing.assert_allclose(way(hf.jacfwd(g))(x).numpy(), np.diag(100 * X), rtol=1e-15)
        np.testing.assert_allclose(way(moved(moved(g)))(x).numpy(), 100 * V * V, rtol=1e-15)


def test_structures() -> None:
    def g(p: Any, y: Any) -> Any:
        return {"a": p["w"] * y, "b": [hf.sum(p["w"]), 2.0]}, "more"

    p, y = {"w": hf.asarray(X), "v": hf.asarray(1.0)}, hf.asarray(3.0, dtype=hf.float64)
    for way in (hf.jacrev, hf.jacfwd):
        found, aux = way(g, argnums=(0, 1), has_aux=True)(p, y)
        assert aux == "more"
        np.testing.assert_array_equal(found["a"][0]["w"].numpy(), 3 * np.eye(3))
        assert found["a"][0]["v"].tolist() == [0, 0, 0] and found["a"][1].tolist() == X.tolist()
        assert found["b"][0][0]["w"].tolist() == [1, 1, 1] and found["b"][1][0]["w"].tolist() == [0, 0, 0]
    h = hf.hessian(lambda p: hf.sum(p["w"] ** 2) * p["v"] ** 2)(p)
    np.testing.assert_allclose(h["w"]["w"].numpy(), 2 * np.eye(3))
    np.testing.assert_allclose(h["v"]["w"].numpy(), 4 * X, rtol=1e-6)
    (out, t, aux) = hf.jvp(g, (p, y), ({"w": hf.asarray(V), "v": 0.0}, 1.0), has_aux=True)
    np.testing.assert_allclose(t["a"].numpy(), 3 * V + X)
    assert aux == "more" and t["b"][1].numpy() == 0 and out["b"][1].numpy() == 2


@pytest.mark.parametrize("shape", [(), (0,), (1,), (2, 0), (1, 1)])
@pytest.mark.parametrize("dtype", [hf.float16, hf.bfloat16, hf.float32, hf.float64], ids=str)
def test_small_arrays_of_each_dtype(shape: Any, dtype: Any) -> None:
    x = hf.ones(shape, dtype=dtype) * 2
    for way in (hf.jacrev, hf.jacfwd, hf.jacobian):
        found = way(lambda x: x**3)(x)
        assert found.shape == (*shape, *shape) and found.dtype == dtype and set(found.flatten().tolist()) <= {12.0}
    found = hf.hessian(lambda x: hf.sum(x**3))(x)
    assert found.shape == (*shape, *shape) and set(found.flatten().tolist()) <= {12.0}
    with hf.GradientTape() as tape:
        tape.watch(x)
        y = hf.expand_dims(x, axis=0) * 2
    assert tape.jacobian(y, x).shape == (1, *shape, *shape)


def test_an_open_function_has_tangents_at_each_size() -> None:
    g = hf.function(lambda x: hf.sum(hf.sin(x) * x), input_signature=[hf.TensorSpec([None], hf.float64)])
    for n in (2, 3, 5):
        x = np.linspace(0.1, 1.0, n)
        np.testing.assert_allclose(hf.hessian(g)(hf.asarray(x)).numpy(), np.diag(2 * np.cos(x) - x * np.sin(x)))


@WAYS
def test_rows_one_by_one_and_batches(way: Any) -> None:
    x = np.random.default_rng(0).normal(size=(4, 3))

    def each(x: Any) -> Any:
        with hf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = hf.tanh(x @ W)
        return [
            (tape.jacobian(y, x, experimental_use_pfor=p), tape.batch_jacobian(y, x, experimental_use_pfor=p))
            for p in (True, False)
        ]

    (a, b), (c, d) = way(each)(hf.asarray(x))
    assert a.numpy().tobytes() == c.numpy().tobytes() and b.numpy().tobytes() == d.numpy().tobytes()
    np.testing.assert_allclose(np.einsum("iaib->iab", a.numpy()), b.numpy())
    wanted = np.stack([jacobian_of(lambda r: hf.tanh(r @ W), row) for row in x])
    np.testing.assert_allclose(b.numpy(), wanted, rtol=1e-7)


def test_variables_that_move() -> None:
    v = hf.Variable(2.0)
    with hf.ForwardAccumulator(v, hf.asarray(3.0)) as acc:
        y, z = v * v, hf.function(lambda: v * v * v)()
        still = hf.asarray(1.0) * 2
        v.assign(5.0)
        w = v * 2
    assert [float(acc.jvp(t)) for t in (y, z, w, v)] == [12.0, 36.0, 6.0, 3.0]
    assert acc.jvp(still) is None and acc.jvp([still], unconnected_gradients="zero")[0].numpy() == 0


def test_a_tensor_that_is_given_another_value() -> None:
    x = hf.asarray([1.0, 2.0])
    with hf.ForwardAccumulator(x, hf.asarray([1.0, 10.0])) as acc:
        y = x * 3
        y[0] = x[1] * 2
        z = y * y
    assert acc.jvp(y).tolist() == [20.0, 30.0] and acc.jvp(z).tolist() == [160.0, 360.0]


def test_errors() -> None:
    x = hf.asarray([1.0, 2.0])
    with pytest.raises(errors.ShapeError, match=r"tangent of primals is f32\[3\], and primals is f32\[2\]"):
        hf.ForwardAccumulator(x, hf.ones(3))
    with pytest.raises(errors.ArgumentError, match="as in the primals"):
        hf.ForwardAccumulator([x], x)
    with pytest.raises(errors.DTypeError, match="only floats have tangents"):
        hf.ForwardAccumulator(hf.asarray(1), hf.asarray(1))
    with pytest.raises(errors.ArgumentTypeError, match="primals are tensors or variables"):
        hf.ForwardAccumulator("x", x)
    with hf.ForwardAccumulator(x, x) as acc:
        pass
    with pytest.raises(errors.GradientError, match="has been entered already"), acc:
        pass
    with pytest.raises(errors.ArgumentTypeError, match="only tensors have tangents"):
        acc.jvp("x")
    with pytest.raises(errors.ArgumentError, match="as in the primals"):
        hf.jvp(lambda x: x, (x,), (x, x))
    with pytest.raises(errors.ArgumentTypeError, match="give a tuple, one for each argument"):
        hf.jvp(lambda x: x, x, x)
    with pytest.raises(errors.ArgumentTypeError, match="the result is a str; the function must return tensors"):
        hf.jacrev(lambda x: "no")(x)
    with pytest.raises(errors.ShapeError, match="the tangent of the result"):
        hf.vjp(lambda x: x, x)[1](hf.ones(3))
    for way in (hf.jacrev, hf.jacfwd, hf.jacobian, hf.hessian, hf.linearize, hf.vjp):
        with pytest.raises(errors.ArgumentTypeError, match="is not callable"):
            way(3)
