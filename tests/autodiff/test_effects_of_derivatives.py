"""What derivatives do besides, which functions say or run themselves: checks in branches and loops, prints of second
runs, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors

pytestmark = pytest.mark.code


def with_derivative(told: Callable[[Any], Any]) -> Callable[[Any], Any]:
    @hf.custom_gradient
    def twice(x):
        def backward(g):
            told(g)
            return 2 * g

        return x * 2, backward

    return twice


def in_a_branch(f: Callable[[Any], Any], x: Any) -> Any:
    if hf.sum(x) > 0:
        x = f(x)
    return hf.sum(x * x)


def in_a_while(f: Callable[[Any], Any], x: Any) -> Any:
    while hf.sum(x) < 20:
        x = f(x)
    return hf.sum(x * x)


def over_rows(f: Callable[[Any], Any], x: Any) -> Any:
    for row in hf.asarray([[0.5, 1.0]] * 5):
        x = f(x) * row
    return hf.sum(x * x)


def in_both(f: Callable[[Any], Any], x: Any) -> Any:
    for row in hf.asarray([[0.5, 1.0]] * 5):
        if hf.sum(x) > 0:
            x = f(x) * row
    return hf.sum(x * x)


PLACES = [in_a_branch, in_a_while, over_rows, in_both]


def slopes(place: Any, f: Callable[[Any], Any]) -> tuple[Callable[[Any], Any], ...]:
    """The derivative of a program in eager mode, in a compiled function, and of one."""
    return (
        hf.grad(lambda x: place(f, x)),
        hf.function(hf.grad(lambda x: place(f, x))),
        hf.grad(hf.function(lambda x: place(f, x))),
    )


def outcome(run: Callable[[Any], Any], x: list[float]) -> Any:
    try:
        return run(hf.asarray(x)).numpy().tolist()
    except errors.InvalidArgumentError as error:
        return str(error).split("(")[0]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("most", [3.0, 50.0, 1e9])
def test_checks_of_derivatives_in_control_flow(place: Any, most: float) -> None:
    def told(g: Any) -> None:
        hf.debugging.assert_less(hf.max(g), most, message="steep")

    eager, *compiled = slopes(place, with_derivative(told))
    for x in ([1.0, 2.0], [4.0, 0.5]):
        wanted = outcome(eager, x)
        assert isinstance(wanted, str) >= (most == 3.0) and isinstance(wanted, list) >= (most == 1e9)
        assert [outcome(run, x) for run in compiled] == [wanted] * 2


@pytest.mark.parametrize("place", [in_a_branch, in_a_while])
@pytest.mark.parametrize("effect", ["print", "assign", "py_function"])
def test_what_derivatives_of_control_flow_cannot_do(place: Any, effect: str) -> None:
    count = hf.Variable(0.0)

    def told(g: Any) -> None:
        if effect == "print":
            print(g)
        elif effect == "assign":
            count.assign_add(1.0)
        else:
            hf.py_function(lambda g: None, [g], [])

    for run in slopes(place, with_derivative(told))[1:]:
        with pytest.raises(errors.TraceError, match="the derivative of a custom_gradient or recompute_grad function"):
            run(hf.asarray([1.0, 2.0]))
    assert count.numpy() == 0


def test_second_runs_print_again(capsys) -> None:
    @hf.recompute_grad
    def block(x):
        print("block", x)
        return hf.tanh(x)

    def f(x):
        print("begin")
        y = block(block(x))
        print("end")
        return hf.sum(y)

    def gradient(x):
        with hf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        g = tape.gradient(y, x)
        print("done", g)
        return g

    x = hf.asarray([0.5, 1.0])
    wanted, lines = gradient(x), capsys.readouterr().out
    assert lines.count("block") == 4
    found = hf.function(gradient)(x)
    assert np.array_equal(found.numpy(), wanted.numpy())
    assert capsys.readouterr().out == lines
    found = hf.grad(hf.function(f))(x)
    assert np.array_equal(found.numpy(), wanted.numpy())
    assert capsys.readouterr().out == lines[: lines.index("done")]


def test_hessians_of_functions_in_python() -> None:
    def cubes(x: Any) -> Any:
        return hf.sum(hf.py_function(lambda a: a * a * a, [x], x))

    def guarded(x: Any) -> Any:
        if hf.sum(x) > 0:
            x = hf.py_function(lambda a: a * a * a, [x], x)
        return hf.sum(x)

    x = hf.asarray([1.0, 2.0])
    for f in (cubes, guarded):
        for order in (hf.hessian, lambda f: hf.jacrev(hf.jacrev(f))):
            assert np.array_equal(hf.function(order(f))(x).numpy(), np.diag([6.0, 12.0]))


def test_what_examples_raise_is_the_users() -> None:
    def checked(x):
        if x > 2:
            raise ValueError(f"bad {x}")
        return x * x

    rows = hf.vmap(checked)
    for run in (rows, hf.function(rows), hf.jacobian(rows), lambda x: hf.vmap(rows)(hf.stack([x, x]))):
        with pytest.raises(ValueError) as raised:
            run(hf.asarray([0.0, 5.0]))
        assert type(raised.value) is ValueError
        assert str(raised.value) == "bad 5.0"
