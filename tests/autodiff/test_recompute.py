"""hf.recompute_grad: the same derivatives, in less memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors

pytestmark = pytest.mark.code

WAYS = pytest.mark.parametrize("way", [lambda f: f, hf.function], ids=["eager", "compiled"])
X = np.linspace(0.5, 2.0, 8).astype(np.float32)


def layer(x: Any, w: Any) -> Any:
    for _ in range(4):
        x = hf.tanh(x @ w) * 1.1
    return x


def step(x: Any, weights: Any, wrap: Any) -> Any:
    with hf.GradientTape() as tape:
        tape.watch(x)
        y = x
        for w in weights:
            y = wrap(lambda y, w=w: layer(y, w))(y)
        y = hf.sum(y)
    return y, tape.gradient(y, [x, *weights])


def test_the_bits_are_the_same_and_the_memory_is_less() -> None:
    rng = np.random.default_rng(0)
    weights = [hf.Variable(rng.normal(size=(16, 16)).astype(np.float32)) for _ in range(6)]
    x = hf.asarray(rng.normal(size=(64, 16)).astype(np.float32))
    kept = hf.function(lambda x: step(x, weights, lambda f: f))
    again = hf.function(lambda x: step(x, weights, hf.recompute_grad))
    wanted = hf.tree.leaves(step(x, weights, lambda f: f))
    for found in (step(x, weights, hf.recompute_grad), kept(x), again(x)):
        assert [t.numpy().tobytes() for t in hf.tree.leaves(found)] == [t.numpy().tobytes() for t in wanted]

    def arena(f: Any) -> int:
        (row,) = [line for line in str(f.memory_plan(x)).splitlines() if line.startswith("arena")]
        return int(row.split()[-1])

    assert arena(again) < 0.5 * arena(kept)


@WAYS
def test_random_numbers_are_the_same_the_second_time(way: Any) -> None:
    generator = hf.random.Generator(3)

    def drop(x: Any) -> Any:
        return hf.where(generator.uniform(x.shape) > 0.5, x * x, 0.0)

    def f(x: Any) -> Any:
        with hf.GradientTape() as tape:
            tape.watch(x)
            y = hf.recompute_grad(drop)(x)
        before = generator.uniform((3,))
        return y, tape.gradient(y, x), before, generator.uniform((3,))

    y, g, *rest = way(f)(hf.asarray(X))
    np.testing.assert_array_equal(g.numpy(), np.where(y.numpy() != 0, 2 * X, 0))
    stream = hf.random.Generator(3)
    stream.uniform((8,))
    for found in rest:
        np.testing.assert_array_equal(found.numpy(), stream.uniform((3,)).numpy())


@WAYS
def test_variables_are_what_they_were(way: Any) -> None:
    v, count = hf.Variable(2.0), hf.Variable(0.0, trainable=False)

    def scaled(x: Any) -> Any:
        count.assign_add(1.0)
        return hf.exp(x) * v * count

    def f(x: Any) -> Any:
        with hf.GradientTape() as tape:
            tape.watch(x)
            y = hf.sum(hf.recompute_grad(scaled)(x))
        v.assign(100.0)
        count.assign_add(10.0)
        return tape.gradient(y, [x, v])

    gx, gv = way(f)(hf.asarray(X))
    np.testing.assert_allclose(gx.numpy(), 2 * np.exp(X), rtol=1e-6)
    np.testing.assert_allclose(gv.numpy(), np.exp(X).sum(), rtol=1e-6)
    assert v.numpy() == 100.0 and count.numpy() == 11.0


@WAYS
@pytest.mark.parametrize("inner", [lambda f: f, hf.function], ids=["plain", "program"])
@pytest.mark.parametrize("depth", [1, 2])
def test_what_is_only_assigned_stays_what_it_is(way: Any, depth: int, inner: Any) -> None:
    v = hf.Variable(0.0, trainable=depth == 1)

    def noted(x: Any) -> Any:
        v.assign(1.0)
        return hf.exp(x)

    block = inner(noted)
    for _ in range(depth):
        block = hf.recompute_grad(block)

    def f(x: Any) -> Any:
        with hf.GradientTape() as tape:
            tape.watch(x)
            y = hf.sum(block(x))
        seen = +v
        v.assign(99.0)
        return tape.gradient(y, x), seen, +v

    g, *seen = way(f)(hf.asarray(X))
    np.testing.assert_allclose(g.numpy(), np.exp(X), rtol=1e-6)
    assert [x.numpy() for x in (*seen, v)] == [1.0, 99.0, 99.0]


@WAYS
def test_derivatives_of_any_order(way: Any) -> None:
    again = hf.recompute_grad(lambda x, s: (hf.exp(x * s) * x, {"s": hf.sum(x)}))

    def f(x: Any, wrap: Any) -> Any:
        y, more = wrap(x, 2.0)
        return hf.sum(y) * more["s"]

    def plain(x: Any, s: Any) -> Any:
        return hf.exp(x * s) * x, {"s": hf.sum(x)}

    x = hf.asarray(X[:3].astype(np.float64))
    for order in (hf.grad, hf.hessian, lambda g: hf.jacrev(hf.hessian(g))):
        wanted = order(lambda x: f(x, plain))(x).numpy()
        found = way(order(lambda x: f(x, again)))(x).numpy()
        np.testing.assert_allclose(found, wanted, rtol=1e-12)
    rows = way(hf.vmap(hf.grad(lambda x: f(x, again))))(hf.stack([x, 2 * x]))
    np.testing.assert_allclose(rows[1].numpy(), hf.grad(lambda x: f(x, plain))(2 * x).numpy(), rtol=1e-12)


def test_in_loops_and_branches() -> None:
    def block(x: Any) -> Any:
        if hf.sum(x) > 0:
            return hf.sin(x) * x
        return x

    def f(x: Any, wrap: Any) -> Any:
        for _ in range(hf.asarray(3)):
            x = wrap(block)(x)
        return hf.sum(x)

    x = hf.asarray(X)
    wanted = hf.function(hf.grad(lambda x: f(x, lambda b: b)))(x).numpy()
    inside = hf.function(hf.grad(lambda x: f(x, hf.recompute_grad)))(x)
    outside = hf.grad(hf.function(lambda x: f(x, hf.recompute_grad)))(x)
    for found in (inside, outside):
        np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-6)


def test_errors() -> None:
    with pytest.raises(errors.ArgumentTypeError, match="3 is not callable"):
        hf.recompute_grad(3)
    with pytest.raises(errors.ShapeError, match="inner sizes differ"):
        hf.recompute_grad(lambda x: x @ x)(hf.ones((2, 3)))


def test_captured_tensors_have_derivatives() -> None:
    def loss(w: Any, b: Any, x: Any, recomputed: bool) -> Any:
        inner = w * 2

        def block(x: Any) -> Any:
            return hf.tanh(x * inner + hf.asarray([1.0, 2.0])) * b

        return hf.sum((hf.recompute_grad(block) if recomputed else block)(x) ** 2)

    values = hf.asarray([0.5, -1.0]), hf.asarray([2.0, 0.25]), hf.asarray([1.5, 0.1])

    def gradients(recomputed: bool) -> Any:
        return hf.grad(lambda w, b, x: loss(w, b, x, recomputed), argnums=(0, 1, 2))

    def second(recomputed: bool) -> Any:
        return hf.grad(lambda w, b, x: hf.sum(gradients(recomputed)(w, b, x)[0] ** 2), argnums=(0, 1, 2))

    for made in (gradients, second):
        want = [g.tolist() for g in made(False)(*values)]
        assert all(any(g) for g in want)
        for got in (made(True)(*values), hf.function(made(True))(*values)):
            for g, w in zip(got, want):
                assert g.tolist() == pytest.approx(w, rel=1e-5)
