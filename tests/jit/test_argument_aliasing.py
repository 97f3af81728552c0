"""One tensor in several places of a call is one value, compiled or not."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hybridflow as hf


def T(*values: float) -> hf.Tensor:
    return hf.asarray(np.array(values, np.float32))


def product_rule(a: hf.Tensor, b: hf.Tensor) -> Any:
    with hf.GradientTape() as tape:
        tape.watch(a)
        y = hf.sum(a * b)
    return tape.gradient(y, a)


def first_only(a: Any, b: Any) -> Any:
    with hf.GradientTape() as tape:
        tape.watch(a)
        y = hf.sum(hf.sin(a) * hf.exp(b))
    return tape.gradient(y, [a, b])


def by_is(a: Any, b: Any) -> Any:
    return a + 1 if a is b else a - b


def by_is_not(a: Any, b: Any) -> Any:
    return a - b if a is not b else a + 1


def by_id(a: Any, b: Any) -> Any:
    return a + len({id(a), id(b)})


def by_membership(a: Any, b: Any) -> Any:
    return a + 1 if any(x is a for x in (b, None)) else a - 1


def by_operator(a: Any, b: Any) -> Any:
    return a + 1 if operator.is_(a, b) else a - 1


def second(a: Any, b: Any) -> Any:
    with hf.GradientTape() as outer:
        outer.watch(a)
        with hf.GradientTape() as inner:
            inner.watch(b)
            y = hf.sum(a * a * b)
        first = inner.gradient(y, b)
    return [first, outer.gradient(first, a)]


OBSERVERS: list[Callable[..., Any]] = [
    product_rule,
    first_only,
    by_is,
    by_is_not,
    by_id,
    by_membership,
    by_operator,
    second,
]


def same(a: Any, b: Any) -> bool:
    flat = [list(x) if isinstance(x, (list, tuple)) else [x] for x in (a, b)]
    return len(flat[0]) == len(flat[1]) and all(
        (x is None and y is None) or (x is not None and y is not None and np.array_equal(np.array(x), np.array(y)))
        for x, y in zip(*flat)
    )


@pytest.mark.parametrize("python", OBSERVERS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("order", ["xy xx", "xx xy", "xx xx xy xy yx xx"])
def test_arguments_that_are_one_tensor(python: Callable[..., Any], order: str) -> None:
    f = hf.function(python)
    tensors = {"x": T(3.0, 0.5), "y": T(0.25, 2.0)}
    for call in order.split() * 2:
        arguments = [tensors[name] for name in call]
        assert same(f(*arguments), python(*arguments)), call
    assert len(f.concrete_functions()) <= 2


def test_the_gradient_of_a_square() -> None:
    f = hf.function(product_rule)
    x = T(3.0)
    assert np.array(f(x, T(5.0))) == 5.0
    assert np.array(f(x, x)) == 6.0


def test_native_calls_tell_them_apart_too() -> None:
    f = hf.function(product_rule)
    x, y = T(3.0), T(5.0)
    for _ in range(4):
        assert np.array(f(x, y)) == 5.0
    (variant,) = f._cache.variants()
    before = variant.native_hits
    assert before > 0
    for _ in range(3):
        assert np.array(f(x, x)) == 6.0
        assert np.array(f(x, b=x)) == 6.0
        assert np.array(f(y, x)) == 3.0
    assert variant.native_hits >= before + 3


def test_views_of_one_memory_are_two_tensors() -> None:
    f = hf.function(product_rule)
    x = T(3.0)
    view = hf.reshape(x, (1,))
    for _ in range(3):
        assert same(f(x, view), product_rule(x, view))
        assert same(f(x, T(7.0)), T(7.0))


def test_what_cannot_tell_is_not_traced_again() -> None:
    @hf.function
    def f(a: Any, b: Any, mask: Any = None) -> Any:
        c = a @ b
        return c if mask is None else hf.where(mask, c, 0)

    x, y = hf.ones((3, 3)), hf.ones((3, 3))
    for _ in range(3):
        f(x, y)
        f(x, x)
        f(x, y, mask=x > 0)
        f(x, x, mask=x > 0)
    assert len(f.concrete_functions()) == 2


def test_containers_and_keywords() -> None:
    def python(params: list[Any], scale: dict[str, Any]) -> Any:
        with hf.GradientTape() as tape:
            tape.watch(params)
            y = hf.sum(params[0] * params[1] * scale["s"])
        return tape.gradient(y, params)

    f = hf.function(python)
    x, y, z = T(2.0), T(3.0), T(5.0)
    for arguments in ([x, y], {"s": z}), ([x, x], {"s": z}), ([x, y], {"s": x}), ([x, x], {"s": x}), ([y, x], {"s": y}):
        for _ in range(2):
            assert same(f(*arguments), python(*arguments))  # type: ignore[arg-type]


def test_the_same_variable_twice() -> None:
    def python(a: Any, b: Any) -> Any:
        with hf.GradientTape() as tape:
            y = a * b
        return tape.gradient(y, a)

    f = hf.function(python)
    v, w = hf.Variable(3.0), hf.Variable(5.0)
    assert np.array(f(v, w)) == 5.0
    assert np.array(f(v, v)) == 6.0


def test_an_argument_that_is_captured_too() -> None:
    outside = T(3.0)

    def python(a: Any) -> Any:
        with hf.GradientTape() as tape:
            tape.watch(a)
            y = hf.sum(a * outside)
        return tape.gradient(y, a)

    f = hf.function(python)
    other = T(5.0)
    for x in (other, outside, other, outside, outside, other, T(1.0)):
        assert same(f(x), python(x))
    assert len(f.concrete_functions()) == 2
    outside = T(7.0)
    for x in (other, outside, other, outside):
        assert same(f(x), python(x))


def test_an_attribute_that_is_given_too() -> None:
    class Model:
        def __init__(self) -> None:
            self.w = T(3.0)

        def plain(self, a: Any, b: Any) -> Any:
            with hf.GradientTape() as tape:
                tape.watch(self.w)
                y = hf.sum(a * b * self.w)
            return tape.gradient(y, self.w)

        compiled = hf.function(plain)

    m = Model()
    x = T(2.0)
    for a, b in [(x, x), (x, m.w), (m.w, x), (m.w, m.w), (x, T(4.0)), (m.w, m.w)] * 2:
        assert same(m.compiled(a, b), m.plain(a, b))


def test_errors_are_those_of_the_call() -> None:
    def python(a: Any, b: Any) -> Any:
        with hf.GradientTape() as tape:
            tape.watch(a)
            y = hf.sum(b * 2)
        return tape.gradient(y, a) * 1.0  # None * 1.0 unless a is b

    x = T(3.0)
    f = hf.function(python)
    assert same(f(x, x), python(x, x))
    with pytest.raises(TypeError):
        f(x, T(1.0))
    assert same(f(x, x), python(x, x))


def test_concrete_functions() -> None:
    f = hf.function(product_rule)
    x, y = T(3.0), T(5.0)
    apart = f.get_concrete_function(hf.TensorSpec((1,)), hf.TensorSpec((1,)))
    assert np.array(apart(x, y)) == 5.0
    assert np.array(apart(x, x)) == 6.0
    one = f.get_concrete_function(x, x)
    assert np.array(one(x, x)) == 6.0
    with pytest.raises(hf.errors.ArgumentTypeError, match="b is another tensor"):
        one(x, y)

    @hf.function
    def outer(a: Any, b: Any) -> Any:
        return apart(a, b), apart(a, a)

    assert [float(np.array(t)[0]) for t in outer(x, y)] == [5.0, 6.0]


def test_why_it_was_traced_again() -> None:
    f = hf.function(product_rule)
    x, y = T(3.0), T(5.0)
    f(x, y)
    f(x, x)
    (retrace,) = f.retraces()
    assert (retrace.argument, retrace.new) == ("b", "the tensor of argument 0")


@pytest.mark.parametrize("shapes", [((None, 1), (None, 1)), ((None, 1), (3, None)), ((3, None), (None, None))])
def test_one_tensor_for_two_open_types_under_a_tape(shapes: Any) -> None:
    def python(a: Any, b: Any) -> Any:
        return hf.sum(hf.sin(a)) * hf.sum(b * b)

    f = hf.function(python, input_signature=[hf.TensorSpec(shape) for shape in shapes])
    x = hf.asarray(np.arange(3, dtype=np.float32).reshape(3, 1) + 1)
    other = x * 2
    for a, b in ((x, x), (x, other), (x, x)):
        found = []
        for g in (f, python):
            with hf.GradientTape() as tape:
                tape.watch([a, b])
                y = g(a, b)
            found.append([y, *tape.gradient(y, [a, b])])
        assert same(*found)
