"""py_function and numpy_function: the user's own Python, called from compiled functions as from eager ones."""

from __future__ import annotations

import gc
import traceback
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors

pytestmark = pytest.mark.code

X = [1.0, 2.0]


def cube(x: Any) -> Any:
    return x * x * x


def straight(x):
    return hf.sum(hf.py_function(cube, [x], x) * 2)


def in_loops(x):
    for _ in range(2):
        x = hf.py_function(hf.tanh, [x], x) * 1.5
        if hf.sum(x) > 1.5:
            x = x + hf.numpy_function(lambda a: a / 2, [x], x)
        else:
            x = hf.py_function(cube, [x], x)
    n = 0
    while hf.sum(x) > 0.2 and n < 3:
        x = hf.py_function(cube, [x], x) * 0.9
        n += 1
    return hf.sum(x)


def of_several(x):
    a, n, b = hf.py_function(lambda x, k: (x + k, k, [1.0, 2.0]), [x, 3], [x, hf.TensorSpec((), "int64"), x])
    return hf.sum(a * b) * n


@pytest.mark.parametrize("function", [straight, in_loops, of_several])
def test_values_and_gradients_are_those_of_eager_mode(function: Callable[..., Any]) -> None:
    for values in (X, [0.1, -0.3]):
        x = hf.constant(values)
        for f in (hf.function(function), function):
            assert f(x).numpy().tobytes() == function(x).numpy().tobytes()
        expected = hf.grad(function)(x).numpy()
        assert hf.grad(hf.function(function))(x).numpy().tobytes() == expected.tobytes()
        assert hf.function(hf.grad(function))(x).numpy().tobytes() == expected.tobytes()


def test_second_derivatives() -> None:
    def second(f: Callable[..., Any]) -> Callable[..., Any]:
        return hf.grad(lambda x: hf.sum(hf.grad(f)(x)))

    x = hf.constant(X)
    for f in (second(straight), second(hf.function(straight)), hf.function(second(straight))):
        assert f(x).numpy().tolist() == [12.0, 24.0]


def test_it_is_called_each_time_in_order_with_tensors_that_have_values() -> None:
    seen: list[Any] = []

    def f(x, n):
        hf.py_function(lambda x: seen.append(("first", x.numpy().tolist())), [x], None)
        for i in range(n):
            hf.numpy_function(lambda i, a: seen.append((int(i), a.tolist())), [i, x], [])
            x = x + 1
        hf.py_function(lambda: seen.append("last") or 1.0, [], hf.TensorSpec(()))
        return x

    x, compiled, expected = hf.constant(X), hf.function(f), None
    for function in (f, compiled, compiled):
        seen.clear()
        function(x, hf.constant(2))
        expected = expected or list(seen)
        assert seen == expected and len(expected) == 4


WRONG: dict[str, tuple[Callable[..., Any], type[Exception], str]] = {
    "none": (lambda x: None, errors.ArgumentTypeError, "returned NoneType"),
    "text": (lambda x: "a", errors.ArgumentTypeError, "returned str"),
    "shape": (lambda x: x[0], errors.ShapeError, r"returned f32\[\]. Expected the shape \(2,\)"),
    "dtype": (lambda x: hf.astype(x, hf.int32), errors.DTypeError, r"returned i32\[2\]. Expected float32"),
    "object": (lambda x: object(), errors.ArgumentTypeError, "object"),
}


@pytest.mark.parametrize("name", WRONG)
def test_results_that_tout_does_not_say(name: str) -> None:
    returns, kind, text = WRONG[name]
    v = hf.Variable(1.0)

    def f(x):
        v.assign(2.0)
        return hf.py_function(returns, [x], x)

    for function in (f, hf.function(f)):
        v.assign(1.0)
        with pytest.raises(kind, match=text):
            function(hf.constant(X))
        assert function is f or v.numpy() == 1.0


def test_a_number_of_results_and_what_is_not_known() -> None:
    x = hf.constant(X)
    with pytest.raises(errors.ArgumentTypeError, match=r"returned int\. Expected 2"):
        hf.function(lambda x: hf.py_function(lambda x: 1, [x], [x, x]))(x)
    with pytest.raises(errors.ArgumentError, match=r"the shape of what it returned at .* is not known"):
        hf.function(lambda x: hf.py_function(cube, [x], hf.float32))(x)
    assert hf.py_function(cube, [x], hf.float32).shape == (2,)
    with pytest.raises(errors.ArgumentTypeError, match="func is a int"):
        hf.py_function(1, [x], x)


class Mine(Exception):
    pass


@pytest.mark.parametrize("kind", [Mine, KeyboardInterrupt, KeyError])
def test_what_it_raises_leaves_the_compiled_function_as_it_is(kind: type[BaseException]) -> None:
    error, later = kind("mine"), []
    v = hf.Variable(0.0)

    def raises(i: Any) -> None:
        if i == 2:
            raise error

    @hf.function
    def f(n):
        i = 0
        while i < n:
            v.assign_add(1.0)
            hf.py_function(raises, [i], None)
            i += 1
        hf.py_function(lambda: later.append(1), [], None)
        return v.value()

    with pytest.raises(kind) as info:
        f(hf.constant(5))
    assert info.value is error
    names = [frame.name for frame in traceback.extract_tb(info.value.__traceback__)]
    assert names[-1] == "raises"
    assert v.numpy() == 0.0 and not later
    assert f(hf.constant(2)).numpy() == 2.0 and later == [1]


def test_it_may_read_the_variables_that_the_program_updates() -> None:
    v, seen = hf.Variable(np.zeros(1000, np.float32)), []

    @hf.function
    def f(x):
        v.assign_add(x)
        hf.py_function(lambda: seen.append(float(v.numpy()[0])), [], None)
        v.assign_add(x)

    for _ in range(3):
        f(hf.ones(1000))
    assert seen == [0.0, 2.0, 4.0]  # a call's updates are seen when it is over
    assert v.numpy()[0] == 6.0


def test_another_function_is_called_when_a_name_is_bound_anew() -> None:
    global helper
    helper = lambda x: x + 1  # noqa: E731
    f = hf.function(lambda x: hf.py_function(helper, [x], x))
    assert f(hf.constant(1.0)).numpy() == 2.0
    helper = lambda x: x + 10  # noqa: E731
    assert f(hf.constant(1.0)).numpy() == 11.0
    assert f(hf.constant(1.0)).numpy() == 11.0


helper: Any = None


def test_a_function_of_an_example_is_not_kept() -> None:
    class Held:
        __hash__ = None  # type: ignore[assignment]

        def __call__(self, x: Any) -> Any:
            return x * 2

    def doubled(held: Held) -> weakref.ref[Held]:
        found = hf.vmap(lambda x: hf.py_function(held, [x], x))(hf.ones((3, 2)))
        assert found.tolist() == [[2.0, 2.0]] * 3
        return weakref.ref(held)

    gone = doubled(Held())
    gc.collect()
    assert gone() is None
