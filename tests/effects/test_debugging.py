"""Assertions about tensors: the same errors in compiled functions, in loops and branches, and for gradients."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors
from hybridflow.compiler.pipeline import compile_graph
from hybridflow.compiler.target import CUDA_SM90
from tests.support.teams import threads

pytestmark = pytest.mark.code

D = hf.debugging
X = [1.0, -2.0, 3.0]
# (the call, a tensor that passes, one that does not, what is said)
CASES: dict[str, tuple[Callable[..., Any], Any, Any, str]] = {
    "equal": (
        lambda x: D.assert_equal(x, [1.0, 2.0]),
        [1.0, 2.0],
        [1.0, 3.0],
        r"1 of 2 elements at \[1\]: 3.0 and 2.0",
    ),
    "none_equal": (lambda x: D.assert_none_equal(x, 0), X, [0.0, 0.0], "2 of 2 elements"),
    "less": (lambda x: D.assert_less(x, 4), X, [9.0], r"x < y does not hold for 1 of 1"),
    "less_equal": (lambda x: D.assert_less_equal(x, 3), X, [3.5], "<="),
    "greater": (lambda x: D.assert_greater(x, -3), X, [-3.0], ">"),
    "greater_equal": (lambda x: D.assert_greater_equal(x, -2), X, [-3.0], ">="),
    "near": (lambda x: D.assert_near(x, 1.0), [1.0, 1.0000001], [1.0, 1.1], "is near"),
    "positive": (lambda x: D.assert_positive(x, "mine"), [1.0], X, r"mine\. x > y"),
    "non_negative": (lambda x: D.assert_non_negative(x), [0.0], X, ">="),
    "negative": (lambda x: D.assert_negative(x), [-1.0], X, "<"),
    "non_positive": (lambda x: D.assert_non_positive(x), [0.0], X, "<="),
    "finite": (
        lambda x: D.assert_all_finite(x),
        X,
        [1.0, np.nan, np.inf, np.inf],
        "1 NaN and 2 infinite of 4 elements",
    ),
    "numerics": (
        lambda x: D.check_numerics(x, "the loss"),
        X,
        [np.nan, 2.0, 4.0],
        "the loss has 1 NaN.*between 2 and 4",
    ),
    "assert": (lambda x: D.Assert(hf.all(x > 0), ["values", x]), [1.0], X, r"values, \[ 1. -2.  3.\]"),
}


@pytest.mark.parametrize("name", CASES)
def test_what_does_not_hold_is_an_error_with_the_values(name: str) -> None:
    call, right, wrong, said = CASES[name]
    v = hf.Variable(0.0)

    def f(x):
        v.assign_add(1.0)
        call(x * 1)  # whose result nobody needs
        return x + 1

    compiled = hf.function(f)
    texts = []
    for function in (f, compiled, compiled):
        function(hf.constant(right))
        before = v.numpy()
        with pytest.raises(errors.InvalidArgumentError, match=said) as info:
            function(hf.constant(wrong))
        assert isinstance(info.value, (ValueError, AssertionError)) and "test_debugging.py" in str(info.value)
        texts.append(re.sub(r" It was made by .*?\.py:\d+\.", "", str(info.value)))
        assert function is f or v.numpy() == before
    assert texts[0] == texts[1] == texts[2]


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("size", [3, 1 << 21])
def test_on_several_threads(number: int, size: int) -> None:
    """Native calls hand programs a host that calls no Python: the call is made again, and raises in Python."""
    total = hf.Variable(0.0)

    def stateful(x: Any, k: Any) -> Any:
        total.assign_add(1.0)
        D.assert_positive(k, "k")
        return hf.sum(hf.exp(x) * 2 + k)

    def looping(x: Any, k: Any) -> Any:
        y = hf.fori_loop(0, 2, lambda _, y: D.check_numerics(y + hf.log(k), "y"), hf.exp(x) * 2)
        D.assert_positive(k, "k")
        return hf.sum(y)

    x, right, wrong = hf.ones((size,)), hf.asarray(1.0), hf.asarray(-1.0)
    for function, said in ((stateful, r"k\. x > y does not hold"), (looping, "y has .* NaN")):
        compiled = hf.function(function)
        with threads(number, all_programs=size == 3):
            wanted = [compiled(x, right).item() for _ in range(4)]
            for _ in range(3):
                before = total.numpy()
                with pytest.raises(errors.InvalidArgumentError, match=said + r".*test_debugging\.py"):
                    compiled(x, wrong)
                assert total.numpy() == before
                assert compiled(x, right).item() == wanted[0] == function(x, right).item()
        assert [variant.native_calls for variant in compiled._cache.variants()] != [{}]


def test_in_loops_and_branches() -> None:
    def f(x, n):
        for i in range(n):
            if i > 1:
                D.assert_less(x, 10.0, f"turn {i}")
            x = D.check_numerics(x * 2, "x")
        return x

    for function in (f, hf.function(f)):
        assert function(hf.constant(1.0), hf.constant(4)).numpy() == 16.0
        with pytest.raises(errors.InvalidArgumentError, match=r"turn 4\. x < y does not hold"):
            function(hf.constant(1.0), hf.constant(9))


def test_gradients_are_checked_as_well() -> None:
    def f(x):
        y = D.check_numerics(x, "the input")
        return hf.sum(hf.sqrt(y))

    x = hf.constant([0.0, 4.0])
    for function in (hf.grad(f), hf.grad(hf.function(f)), hf.function(hf.grad(f))):
        assert function(x + 4).shape == (2,)
        with pytest.raises(errors.InvalidArgumentError, match=r"the gradient of the input.*test_debugging.*1 infinite"):
            function(x)


def test_a_compiled_error_names_the_operation() -> None:
    @hf.function
    def f(x):
        y = hf.log(x)
        D.check_numerics(y, "y")
        return hf.sum(y * 2)

    line = f.__wrapped__.__code__.co_firstlineno + 2
    with pytest.raises(errors.InvalidArgumentError, match=rf"made by log at test_debugging\.py:{line}"):
        f(hf.constant([0.0, 1.0]))


def test_types_are_checked_at_once() -> None:
    x = hf.ones((2, 3))
    wrong: list[tuple[Callable[[Any], Any], type[Exception]]] = [
        (lambda x: D.assert_rank(x, 1), errors.ShapeError),
        (lambda x: D.assert_rank_at_least(x, 3, "message"), errors.ShapeError),
        (lambda x: D.assert_rank_in(x, (0, 1)), errors.ShapeError),
        (lambda x: D.assert_scalar(x), errors.ShapeError),
        (lambda x: D.assert_type(x, hf.int32), errors.DTypeError),
        (lambda x: D.assert_shapes([(x, ("N", "N"))]), errors.ShapeError),
        (lambda x: D.assert_shapes([(x, (2, 4))]), errors.ShapeError),
        (lambda x: D.assert_near(hf.astype(x, hf.int32), 1), errors.DTypeError),
    ]
    for call, kind in wrong:
        for function in (call, hf.function(call)):
            with pytest.raises(kind):
                function(x)
    D.assert_shapes([(x, ("N", None)), (hf.ones(2), "N")])


def test_assertions_are_part_of_programs_for_gpus_and_prints_are_an_error() -> None:
    @hf.function
    def f(x, n):
        D.assert_positive(x)
        return hf.fori_loop(0, n, lambda i, y: D.check_numerics(y * 2, "y"), x)

    x = hf.constant([1.0, 2.0])
    program = compile_graph(f.get_concrete_function(x, hf.constant(3)).graph, CUDA_SM90)
    assert [check.message for check in program.checks] == [
        "[assert_positive] does not hold.", "[check_numerics] does not hold."
    ]  # fmt: skip
    assert not program.callbacks
    with pytest.raises(errors.CompileError, match="a GPU cannot call a function in Python"):
        compile_graph(hf.function(lambda x: hf.print(x)).get_concrete_function(x).graph, CUDA_SM90)
