"""Concrete functions that print, assert and call Python, called from other compiled functions: with the functions that
are theirs, in the order of the program, and as often as eager mode calls them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hybridflow as hf

pytestmark = pytest.mark.code

X = [1.0, 2.0, 3.0]


def named(name: str, most: float, told: list[Any]) -> Callable[[Any], Any]:
    """A function whose effects all say its name."""

    def scaled(array: np.ndarray) -> np.ndarray:
        told.append((name, array.tolist()))
        return (array * most).astype(np.float32)

    def tell(array: np.ndarray) -> np.ndarray:
        told.append((name, "tell", array.tolist()))
        return array

    def inner(x):
        print(name, x)
        assert hf.all(x < most), f"{name} is given {x}"
        total = x * 0
        if hf.sum(x) > 3:
            print(name, "much", hf.sum(x))
            for i in hf.arange(2):
                print(name, "turn", i)
                total = total + hf.numpy_function(scaled, [x], hf.TensorSpec((3,)))
                if i == 1:
                    hf.numpy_function(tell, [i], hf.TensorSpec((), hf.int64))
        return total

    return inner


def of_both(a: Callable[[Any], Any], b: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def outer(x):
        print("begin", x)
        y = a(x)
        for i in hf.arange(3):
            if i == 1:
                y = y + b(x + i)
            else:
                y = y - a(x)
            print("after turn", i)
        assert hf.all(x < 7), "outer"
        y = y + b(x) + a(x)
        print("end", y)
        return y

    return outer


def outcome(function: Callable[[Any], Any], told: list[Any], capsys: Any, *xs: Any) -> list[Any]:
    """What calls give, or raise, print and tell."""
    found: list[Any] = []
    for x in xs:
        told.clear()
        try:
            found.append(function(hf.asarray(x)).numpy().tolist())
        except AssertionError as error:
            found.append(str(error).splitlines()[0])  # pytest adds to what eager asserts say
        found.append((list(told), capsys.readouterr().out))
    return found


def test_effects_of_concrete_functions_are_their_own(capsys) -> None:
    told: list[Any] = []
    a, b = named("a", 5.0, told), named("b", 8.0, told)
    x = hf.asarray(X)
    both = [hf.function(f).get_concrete_function(x) for f in (a, b)]
    given = [X, [0.0, 0.5, 0.0], [6.0, 0.0, 0.0], [4.5, 4.0, 4.0], [2.0, 2.0, 7.5]]
    wanted = outcome(of_both(a, b), told, capsys, *given)
    once = hf.function(of_both(*both))
    assert outcome(once, told, capsys, *given) == wanted
    # Inside of a function that is concrete itself, whose own effects have other numbers.
    inner = once.get_concrete_function(x)
    other, plain = hf.function(of_both(inner, both[0])), of_both(of_both(a, b), a)
    wanted = outcome(plain, told, capsys, *given)
    assert outcome(other, told, capsys, *given) == wanted


def test_effects_between_calls_keep_their_order(capsys) -> None:
    told: list[Any] = []
    concrete = hf.function(named("a", 5.0, told)).get_concrete_function(hf.asarray(X))

    @hf.function
    def f(x):
        concrete(x)
        print("between")
        concrete(x + 1)
        print("last")

    f(hf.asarray([0.0, 0.0, 0.0]))
    assert capsys.readouterr().out == "a [0. 0. 0.]\nbetween\na [1. 1. 1.]\nlast\n"


@pytest.mark.parametrize("within", [False, True])
def test_derivatives_through_concrete_functions_with_effects(capsys, within: bool) -> None:
    def inner(x):
        print("inner", x)
        assert hf.all(x > 0), "not positive"
        for _ in hf.arange(2):
            x = x * x
            print("turn", x)
        return x

    concrete = hf.function(inner).get_concrete_function(hf.asarray(X))

    def slope(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def f(x):
            with hf.GradientTape() as tape:
                tape.watch(x)
                y = hf.sum(function(x) * function(x + 1))
            return tape.gradient(y, x)

        return f

    def outer(x):
        print("outer")
        return concrete(x)

    used = slope(hf.function(outer)) if not within else hf.function(slope(concrete))
    lines = [] if within else ["outer\n"]
    wanted = slope(inner)(hf.asarray(X)).numpy()
    printed = capsys.readouterr().out
    assert np.array_equal(used(hf.asarray(X)).numpy(), wanted)
    assert capsys.readouterr().out.replace("".join(lines) or "outer", "") == printed


def test_each_example_has_the_effects_of_a_concrete_function(capsys) -> None:
    told: list[Any] = []
    a = named("a", 5.0, told)
    concrete = hf.function(a).get_concrete_function(hf.asarray(X))
    rows = hf.asarray([X, [0.0, 1.0, 0.0], [2.0, 2.0, 2.0]])

    def of_rows(function: Callable[[Any], Any]) -> tuple[Any, Any, Any]:
        told.clear()
        made = hf.vmap(function)(rows).numpy().tolist()
        return made, sorted(map(str, told)), sorted(capsys.readouterr().out.splitlines())

    wanted = of_rows(a)
    assert of_rows(concrete) == wanted
    assert of_rows(lambda x: hf.function(lambda y: concrete(y))(x)) == wanted


def test_tapes_pass_by_the_calls_of_examples() -> None:
    seen: list[Any] = []

    def one(x):
        assert hf.all(x > 0)
        hf.numpy_function(lambda a: seen.append(a.tolist()), [x], [])
        return hf.sum(x * x)

    def slope(x):
        with hf.GradientTape() as tape:
            tape.watch(x)
            y = hf.sum(hf.vmap(one)(x))
        return tape.gradient(y, x)

    rows = hf.asarray([[1.0, 2.0], [3.0, 4.0]])
    assert np.array_equal(slope(rows).numpy(), 2 * rows.numpy())
    assert np.array_equal(hf.function(slope)(rows).numpy(), 2 * rows.numpy())
    assert seen == 2 * rows.numpy().tolist()
