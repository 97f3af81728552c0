"""hf.grad, hf.value_and_grad and hf.tree."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np
import pytest

import hybridflow as hf

pytestmark = pytest.mark.code


@dataclasses.dataclass
class Layer:
    w: Any
    b: Any


class Pair(NamedTuple):
    first: Any
    second: Any


def loss(layer: Layer, x: Any) -> Any:
    return hf.sum((x @ layer.w + layer.b) ** 2)


LAYER = Layer(hf.asarray([[1.0, 2.0], [3.0, 4.0]]), hf.asarray([0.5, -0.5]))
X = hf.asarray([[1.0, -1.0], [2.0, 0.0], [0.0, 1.0]])


def by_hand() -> tuple[float, np.ndarray, np.ndarray]:
    w, b, x = (np.asarray(t, np.float64) for t in (LAYER.w, LAYER.b, X))
    out = x @ w + b
    return float((out**2).sum()), x.T @ (2 * out), (2 * out).sum(0)


@pytest.mark.parametrize("wrap", [lambda f: f, hf.function], ids=["eager", "compiled"])
@pytest.mark.parametrize("inner", [loss, hf.function(loss)], ids=["plain", "of a compiled function"])
def test_values_and_structures(wrap: Any, inner: Any) -> None:
    value, gradient = wrap(hf.value_and_grad(inner))(LAYER, X)
    wanted, w, b = by_hand()
    assert value.item() == pytest.approx(wanted)
    assert isinstance(gradient, Layer)
    np.testing.assert_allclose(np.asarray(gradient.w), w)
    np.testing.assert_allclose(np.asarray(gradient.b), b)
    alone = wrap(hf.grad(inner))(LAYER, X)
    assert alone.w.tolist() == gradient.w.tolist()


def test_argnums_and_aux() -> None:
    def f(a: Any, b: Any, *, scale: float) -> Any:
        return hf.sum(a * b) * scale, {"a": a}

    a, b = hf.asarray([1.0, 2.0]), hf.asarray([3.0, 5.0])
    gradients, aux = hf.grad(f, argnums=(0, -1), has_aux=True)(a, b, scale=2.0)
    assert [g.tolist() for g in gradients] == [[6, 10], [2, 4]]
    assert aux["a"].tolist() == [1, 2]
    (value, _), gradient = hf.value_and_grad(f, argnums=1, has_aux=True)(a, b, scale=2.0)
    assert value.item() == 26 and gradient.tolist() == [2, 4]


def test_one_tensor_in_two_places_is_two_arguments() -> None:
    x = hf.asarray([2.0, 3.0])
    assert hf.grad(lambda x, y: hf.sum(x * y))(x, x).tolist() == [2, 3]
    assert hf.grad(lambda y: hf.sum(x * y))(x).tolist() == [2, 3]
    assert hf.function(hf.grad(lambda x, y: hf.sum(x * y)))(x, x).tolist() == [2, 3]


def test_higher_derivatives_and_numbers() -> None:
    third = hf.grad(hf.grad(hf.grad(lambda x: x**4)))
    assert third(2.0).item() == hf.function(third)(hf.asarray(2.0)).item() == 48
    assert hf.grad(lambda p: p[0] * p[1][0])((2.0, [np.float32(3)]))[1][0].item() == 2
    assert hf.grad(lambda x, y: y * 1.0)(2.0, 3.0).item() == 0  # not used: zero, not None


def test_variables_as_arguments() -> None:
    v = hf.Variable([1.0, 2.0])
    assert hf.grad(lambda v: hf.sum(v * v))(v).tolist() == [2, 4]
    assert hf.grad(lambda p: hf.sum(p["v"] * v))({"v": hf.asarray([1.0, 1.0])})["v"].tolist() == [1, 2]


def test_tapes_outside_see_through() -> None:
    x = hf.asarray(3.0)
    with hf.GradientTape() as tape:
        tape.watch(x)
        y = hf.grad(lambda x: x**3)(x)
    assert tape.gradient(y, x).item() == 18


RATE = 2.0


def test_what_a_differentiated_function_reads_is_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    f = hf.function(hf.grad(lambda x: hf.sum(x) * RATE))
    assert f(hf.ones(2)).tolist() == [2, 2]
    monkeypatch.setitem(globals(), "RATE", 3.0)
    assert f(hf.ones(2)).tolist() == [3, 3]


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda: hf.grad(3), hf.errors.ArgumentTypeError, "3 is not callable"),
        (lambda: hf.grad(lambda x: x)(X), hf.errors.ShapeError, r"returned f32\[3,2\]; a gradient is that of a scalar"),
        (lambda: hf.grad(lambda x: x, 2)(1.0), hf.errors.ArgumentError, "positional argument 2, and the call has 1"),
        (lambda: hf.grad(lambda x: x, (0, -1))(1.0), hf.errors.ArgumentError, "an argument twice"),
        (lambda: hf.grad(lambda x: x, "a")(1.0), hf.errors.ArgumentTypeError, "argnums is"),
        (lambda: hf.grad(lambda x: x)({"k": [1]}), hf.errors.DTypeError, r'argument 0\["k"\]\[0\] is i64\[\]'),
        (lambda: hf.grad(lambda x: x)("abc"), hf.errors.ArgumentTypeError, "argument 0 is a str"),
        (lambda: hf.grad(lambda x: (x, 1))(1.0), hf.errors.ArgumentTypeError, "has_aux=True"),
        (lambda: hf.grad(lambda x: x, has_aux=True)(1.0), hf.errors.ArgumentTypeError, "must return a pair"),
        (lambda: hf.grad(lambda x: x > 1)(1.0), hf.errors.DTypeError, r"returned bool\[\]"),
        (lambda: hf.grad(lambda x: "1")(1.0), hf.errors.ArgumentTypeError, "returned a str"),
        (lambda: hf.tree.map(1, [2]), hf.errors.ArgumentTypeError, "the function comes first"),
        (lambda: hf.tree.map(max, [1], [1, 2]), hf.errors.ArgumentError, "tree 2 has 2 entries"),
        (lambda: hf.tree.map(max, {"a": 1}, {"b": 1}), hf.errors.ArgumentError, "as in the first tree"),
        (lambda: hf.tree.unflatten([1], [1]), hf.errors.ArgumentTypeError, "the structure comes first"),
        (lambda: hf.tree.unflatten(hf.tree.structure([1]), [1, 2]), hf.errors.ArgumentError, "2 leaves for list"),
    ],
)
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


def test_trees() -> None:
    tree = {"b": Pair(1, [2]), "a": (3, None)}
    leaves, structure = hf.tree.flatten(tree)
    assert leaves == hf.tree.leaves(tree) == [3, None, 1, 2]
    assert hf.tree.structure(tree) == structure
    again = hf.tree.unflatten(structure, leaves)
    assert again == tree and list(again) == ["b", "a"] and isinstance(again["b"], Pair)
    assert hf.tree.map(lambda a, b: (a, b), [1, 2], [3, {"x": 4}]) == [(1, 3), (2, {"x": 4})]
    updated = hf.function(lambda p, g: hf.tree.map(lambda p, g: p - 0.1 * g, p, g))(LAYER, LAYER)
    np.testing.assert_allclose(np.asarray(updated.b), [0.45, -0.45], rtol=1e-6)
    nested: list[Any] = []
    nested.append(nested)
    with pytest.raises(hf.errors.ArgumentError, match="contains itself"):
        hf.tree.map(lambda x: x, nested)
