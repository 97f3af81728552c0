"""hf.vmap and hf.vectorized_map: against the examples one after another."""

from __future__ import annotations

import copy
import itertools
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors

X = np.linspace(-1.5, 2.0, 12).reshape(4, 3)
WAYS = pytest.mark.parametrize("way", [lambda f: f, hf.function], ids=["eager", "compiled"])


def collatz(n: Any) -> Any:
    count = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        count = count + 1
    return count


def grown(x: Any) -> Any:
    while hf.sum(hf.abs(x)) < 20.0:
        x = x * 1.5 + 0.25
    return x


def counted(x: Any) -> Any:
    """A loop whose condition is the same for all examples, with a carry that comes to depend on them in the second
    turn."""
    total, last = hf.asarray(0.0, dtype=hf.float64), hf.asarray(1.0, dtype=hf.float64)
    for _ in range(hf.asarray(4)):
        total, last = total * last, hf.sum(x)
        total = total + 1.0
    return total, last


def chosen(x: Any) -> Any:
    return hf.switch_case(hf.argmax(x), [lambda: x, lambda: 2 * x, lambda: hf.exp(x)])


def branched(x: Any) -> Any:
    if x[0] > 0:
        return hf.sqrt(x[0]) * x
    if hf.sum(x) < -1:
        return -x
    return x * 0.5


def scanned(x: Any) -> Any:
    return hf.scan(lambda a, b: a * 0.5 + b, x), hf.foldr(lambda a, b: a * b + 1.0, x, hf.sum(x))


def mapped(x: Any) -> Any:
    return hf.map_fn(lambda a: hf.cond(a > 0, lambda: a * a, lambda: hf.sum(x)), x)


def looked_up(x: Any) -> Any:
    """An index that is out of range for the examples that do not come to it."""
    table = hf.arange(3.0, dtype=hf.float64)
    i = hf.astype(hf.floor(hf.sum(x)), hf.int64)
    return hf.cond((i >= 0) & (i < 3), lambda: table[i], lambda: hf.asarray(-1.0, dtype=hf.float64))


def walked(x: Any) -> Any:
    """A loop that would read beyond the end where it went on for examples that are done."""
    i = hf.asarray(0)
    total = hf.asarray(0.0, dtype=hf.float64)
    n = hf.astype(hf.clip(hf.ceil(hf.sum(x)), 0, 3), hf.int64)
    while i < n:
        total = total + x[i]
        i = i + 1
    return total


@hf.custom_gradient
def doubled(x: Any) -> Any:
    return x * x, lambda g: g * 100 * x


def rooted(x: Any) -> Any:
    """Newton's method, whose step is 0 / 0 once the root is exact."""
    r = hf.ones((), dtype=hf.float64)
    while r * r != 4.0:
        r = r - (r * r - 4.0) / (2.0 * r) + 0.0 * hf.sqrt((r * r - 4.0) * (r * r - 4.0)) * x[0]
    return r * x


FUNCTIONS = [grown, counted, chosen, branched, scanned, mapped, looked_up, walked, doubled, rooted]


def one_after_another(f: Any, x: Any) -> Any:
    rows = [hf.tree.leaves(f(hf.asarray(row))) for row in x]
    return [np.stack([np.asarray(r) for r in column]) for column in zip(*rows)]


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
@WAYS
def test_control_flow_has_the_bits_of_each_example(f: Any, way: Any) -> None:
    compiled = hf.function(f)
    wanted = one_after_another(compiled, X)
    for g in (f, compiled):
        found = hf.tree.leaves(way(hf.vmap(g))(hf.asarray(X)))
        for one, other in zip(wanted, found):
            np.testing.assert_array_equal(other.numpy(), one)


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_gradients_within_and_around(f: Any) -> None:
    def loss(x: Any) -> Any:
        return sum(hf.sum(part) for part in hf.tree.leaves(f(x)))

    each = hf.function(hf.grad(loss))
    wanted = np.stack([each(hf.asarray(row)).numpy() for row in X])
    x = hf.asarray(X)
    inside = hf.vmap(hf.grad(loss))(x)
    around = hf.function(hf.grad(lambda x: hf.sum(hf.vmap(loss)(x))))(x)
    with hf.GradientTape() as tape:
        tape.watch(x)
        y = hf.vmap(loss)(x)
    for found in (inside, around, tape.gradient(y, x, unconnected_gradients="zero")):
        np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-13)


@WAYS
def test_loops_that_end_at_different_times(way: Any) -> None:
    n = hf.arange(1, 9)
    assert way(hf.vmap(collatz))(n).tolist() == [0, 1, 7, 2, 5, 8, 16, 3]
    assert way(hf.vmap(hf.vmap(collatz)))(hf.reshape(n, (2, 4))).tolist() == [[0, 1, 7, 2], [5, 8, 16, 3]]


AXES = [(a, b, o) for a, b in itertools.product([0, 1, -1, None], [0, -2, None]) if (a, b) != (None, None)
        for o in (0, -1)]  # fmt: skip


@pytest.mark.parametrize(("a", "b", "out"), AXES)
def test_axes(a: Any, b: Any, out: int) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3,) if a is None else np.insert((3,), a if a >= 0 else 1, 4))
    y = rng.normal(size=(3, 2) if b is None else np.insert((3, 2), b if b >= 0 else 1, 4))

    def f(x: Any, y: Any) -> Any:
        return {"p": x @ y, "q": x}

    def row(z: Any, axis: Any, k: int) -> Any:
        return hf.asarray(z if axis is None else np.take(z, k, axis))

    rows = [f(row(x, a, k), row(y, b, k)) for k in range(4)]
    found = hf.vmap(f, (a, b), {"p": out, "q": 0})(hf.asarray(x), hf.asarray(y))
    np.testing.assert_array_equal(found["p"].numpy(), np.stack([r["p"].numpy() for r in rows], out))
    np.testing.assert_array_equal(found["q"].numpy(), np.stack([r["q"].numpy() for r in rows]))


def test_nested_arguments_and_what_is_no_tensor() -> None:
    params = {"w": hf.asarray(X), "b": hf.asarray(2.0)}

    def f(p: Any, mode: Any, *, scale: Any) -> Any:
        assert mode == "wide" and p["w"].shape == (3,)
        return (hf.sum(p["w"]) * p["b"] * scale, None, "kept", 3)

    found = hf.vmap(f, in_axes=({"w": 0, "b": None}, None))(params, "wide", scale=hf.arange(4.0))
    np.testing.assert_allclose(found[0].numpy(), X.sum(1) * 2 * np.arange(4), rtol=1e-6)
    assert found[1:3] == (None, "kept") and found[3].tolist() == [3] * 4


@pytest.mark.parametrize("size", [0, 1, 3])
def test_numbers_of_examples(size: int) -> None:
    x = np.ones((size, 2), np.float32)
    for way in (lambda f: f, hf.function):
        assert way(hf.vmap(lambda v: hf.sum(v) + hf.ones(())))(x).tolist() == [3.0] * size
        assert way(hf.vmap(lambda v: 1.0))(x).shape == (size,)
    assert hf.vmap(lambda: hf.asarray(2.0), axis_size=size)().tolist() == [2.0] * size


def test_an_open_number_of_examples_compiles_once() -> None:
    f = hf.function(hf.vmap(grown), input_signature=[hf.TensorSpec([None, 3], hf.float64)])
    for rows in (X, X[:2], X[:3]):
        np.testing.assert_array_equal(f(hf.asarray(rows)).numpy(), one_after_another(hf.function(grown), rows)[0])
    assert len(f.signatures()) == 1


def test_elems_of_a_vectorized_map() -> None:
    found = hf.vectorized_map(
        lambda e: {"s": e[0] @ e[1], "c": e[2]}, (np.ones((5, 2, 3)), np.ones((5, 3)), np.arange(5))
    )
    assert found["s"].tolist() == [[3.0, 3.0]] * 5 and found["c"].tolist() == [0, 1, 2, 3, 4]


def test_a_generator_is_not_known_by_the_name_of_its_state() -> None:
    own = hf.Variable(np.array([3, 0], np.uint64), trainable=False, name="random_state")
    x = np.ones((3, 2), np.uint64)
    assert hf.vmap(lambda row: row + own, randomness="error")(x).tolist() == [[4, 1]] * 3
    assert own.numpy().tolist() == [3, 0]
    for generator in (hf.random.Generator(1), copy.deepcopy(hf.random.Generator(1))):
        drawn = hf.vmap(lambda row, g=generator: row + g.bits((2,)), randomness="different")(
            np.zeros((3, 2), np.uint32)
        )
        assert len(np.unique(drawn.numpy(), axis=0)) == 3
        assert generator.state.name == "random_state"


def test_random_numbers() -> None:
    x = hf.zeros((5, 3))

    def noisy(v: Any) -> Any:
        return v + hf.random.normal((3,)) + 0 * hf.random.uniform(())

    for way in (lambda f: f, hf.function):
        f = way(hf.vmap(noisy))
        hf.random.set_seed(1)
        first, second = f(x).numpy(), f(x).numpy()
        assert len(np.unique(np.concatenate([first, second]))) == 30
        hf.random.set_seed(1)
        np.testing.assert_array_equal(way(hf.vmap(noisy))(x).numpy(), first)
        assert len(np.unique(way(hf.vmap(noisy, randomness="same"))(x).numpy())) == 3
    with pytest.raises(errors.ArgumentError, match="draws random numbers, and randomness is 'error'"):
        hf.vmap(noisy, randomness="error")(x)
    state = hf.random.global_generator().state.numpy().copy()
    assert hf.vmap(noisy)(x).shape == (5, 3)
    assert hf.random.global_generator().state.numpy()[1] == state[1] + 3  # five seeds of two words


@WAYS
def test_variables(way: Any) -> None:
    v = hf.Variable(1.0)

    def f(x: Any) -> Any:
        v.assign_add(2.0)
        return x * v

    assert way(hf.vmap(f))(hf.arange(3.0)).tolist() == [0.0, 3.0, 6.0] and v.numpy() == 3.0

    def g(x: Any) -> Any:
        v.assign_add(x)
        return x * v

    with pytest.raises(errors.ArgumentError, match="is assigned a value of each example"):
        way(hf.vmap(g))(hf.arange(3.0))
    assert v.numpy() == 3.0
    with hf.GradientTape() as tape:
        y = way(hf.vmap(lambda x: x * v))(hf.arange(3.0))
    assert tape.gradient(y, v).numpy() == 3.0


def test_errors() -> None:
    x = hf.ones((4, 3))
    with pytest.raises(errors.AxisError, match=r"argument 1 is f32.*To hand it on as it is, give None as its axis"):
        hf.vmap(lambda a, b: a)(x, 2.0)
    with pytest.raises(errors.ShapeError, match=r"argument 0 is .* mapped over its axis 0, and argument 1 is"):
        hf.vmap(lambda a, b: a)(x, hf.ones(3))
    with pytest.raises(errors.ArgumentError, match="in_axes has 1 entries, and the call 2"):
        hf.vmap(lambda a, b: a, in_axes=(0,))(x, x)
    with pytest.raises(errors.ArgumentTypeError, match="is nested otherwise"):
        hf.vmap(lambda a: a, in_axes=({"b": 0},))({"a": x})
    with pytest.raises(errors.ArgumentError, match="no argument is mapped"):
        hf.vmap(lambda a: a, in_axes=None)(x)
    with pytest.raises(errors.ArgumentError, match="out_axes is None for a result that depends on the examples"):
        hf.vmap(lambda a: a, out_axes=None)(x)
    with pytest.raises(errors.AxisError, match="out_axes has 2"):
        hf.vmap(lambda a: a, out_axes=2)(x)
    with pytest.raises(errors.ArgumentError, match="randomness is 'all'"):
        hf.vmap(lambda a: a, randomness="all")
    with pytest.raises(errors.IndexRangeError):
        hf.vmap(lambda a, i: a[i])(x, hf.asarray([0, 1, 2, 3]))


@WAYS
def test_effects_happen_for_each_example_that_comes_to_them(way: Any, capsys: Any) -> None:
    def f(x: Any) -> Any:
        hf.print("x", x)
        if x > 0:
            hf.print("positive", x)
            x = x + 1
        return x

    assert way(hf.vmap(f))(hf.arange(3.0)).tolist() == [0.0, 2.0, 3.0]
    found = capsys.readouterr()
    lines = (found.out + found.err).splitlines()
    assert lines == ["x 0.0", "x 1.0", "x 2.0", "positive 1.0", "positive 2.0"]


@WAYS
def test_control_flow_of_no_examples_makes_none(way: Any) -> None:
    """Also where how many there are is known only at the call."""

    def each(x: Any) -> Any:
        def example(v: Any) -> Any:
            kept = hf.cond(v > 0, lambda: v * 2, lambda: v - 1)
            (looped,) = hf.while_loop(lambda a: a < 10.0, lambda a: (hf.abs(a) * 2 + 1,), (v,))
            return kept, looped

        return hf.vectorized_map(example, x)

    spec = hf.TensorSpec((None,), hf.float32)
    symbolic = each if way is not hf.function else hf.function(each, input_signature=[spec])
    for function in (way(each), symbolic):
        assert [r.numpy().tolist() for r in function(hf.asarray([1.0, -1.0]))] == [[2.0, -2.0], [15.0, 15.0]]
        assert [(r.shape, r.dtype) for r in function(hf.zeros((0,)))] == 2 * [((0,), hf.float32)]
