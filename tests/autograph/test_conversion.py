"""Ordinary Python whose conditions are tensors: compiled functions do what the functions do, to the bit."""

from __future__ import annotations

import types
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from tests.support import control_programs
from tests.support.control_programs import PROGRAMS, STATE, Py


def tensor(value: Any) -> Any:
    return value.value if isinstance(value, Py) else hf.asarray(value)


def same(found: Any, expected: Any) -> bool:
    """Whether results have the same bits; where a function returns numbers of Python's, the program has tensors."""
    ours, theirs = hf.tree.flatten(found)[0], hf.tree.flatten(expected)[0]
    for a, b in zip(ours, theirs, strict=True):
        if isinstance(b, (bool, int, float)):
            b = np.asarray(b, np.asarray(a).dtype)
        if (a is None) != (b is None):
            return False
        if a is not None and (np.asarray(a).dtype, np.asarray(a).tobytes()) != (
            np.asarray(b).dtype,
            np.asarray(b).tobytes(),
        ):
            return False
    return True


@pytest.mark.parametrize("name", PROGRAMS)
def test_compiled_is_eager(name: str) -> None:
    function, inputs = PROGRAMS[name]
    compiled = hf.function(function)
    for arguments in inputs:
        STATE.assign(1.0)
        expected = function(*map(tensor, arguments))
        after = STATE.numpy()
        STATE.assign(1.0)
        found = compiled(*map(tensor, arguments))
        assert same(found, expected), (arguments, found, expected)
        assert STATE.numpy() == after


@pytest.mark.parametrize("name", PROGRAMS)
def test_one_trace_serves_all_values(name: str) -> None:
    function, inputs = PROGRAMS[name]
    compiled = hf.function(function)
    kinds = set()
    for arguments in inputs:
        STATE.assign(1.0)
        compiled(*map(tensor, arguments))
        kinds.add(tuple(a.value if isinstance(a, Py) else np.shape(a) for a in arguments))
    assert len(compiled.signatures()) == len(kinds)
    assert control_programs.STATE is STATE


@pytest.mark.parametrize("rows", [2, 3, 7])
def test_rows_of_which_nobody_knows_how_many_there_are(rows: int) -> None:
    def positive(xs: Any) -> Any:
        s = xs[0] * 0
        for x in xs:
            if hf.sum(x) < 0:
                continue
            s = s + x
            if s[0] > 6:
                break
        return s

    concrete = hf.function(positive).get_concrete_function(hf.TensorSpec((None, 2)))
    xs = hf.asarray(np.arange(2 * rows, dtype=np.float32).reshape(rows, 2) - 3)
    assert same(concrete(xs), positive(xs))


def test_ten_thousand_turns_are_one_loop_of_the_program() -> None:
    def steps(n: Any) -> Any:
        x, i = hf.constant(0.5), 0
        while i < n:
            x = 3.7 * x * (1 - x)
            i = i + 1
        return x

    compiled = hf.function(steps)
    assert same(compiled(hf.constant(10_000)), steps(hf.constant(10_000)))
    assert [node.op.name for node in compiled.get_concrete_function(hf.TensorSpec((), hf.int64)).graph.nodes].count(
        "while"
    ) == 1


def test_turns_of_which_a_tensor_decides_whether_they_are_the_last_are_one_loop_of_the_program() -> None:
    def iterated(x: Any, most: int, first: int) -> Any:
        value = 0.0
        for turn in range(most):
            x = hf.cos(x)
            if turn >= first and abs(x - value) < 1e-4:
                break
            value = x
        return x, turn

    compiled, x = hf.function(iterated), hf.constant(0.5)
    for most, first in ((1000, 0), (1000, 3), (12, 3), (12, 11)):
        for got, want in zip(compiled(x, most, first), iterated(x, most, first), strict=True):
            assert np.asarray(got).tobytes() == np.asarray(want).tobytes()
    for first in (0, 3):
        nodes = compiled.get_concrete_function(x, 1000, first).graph.nodes
        assert [node.op.name for node in nodes].count("cos") == first
        assert [node.op.name for node in nodes].count("while") == 1


def test_a_function_is_the_same_program_each_time_it_is_traced() -> None:
    function, inputs = PROGRAMS["while_return"]
    arguments = list(map(tensor, inputs[0]))
    assert hf.function(function).ir(*arguments) == hf.function(function).ir(*arguments)


def test_attributes_of_classes_and_modules() -> None:
    module = types.ModuleType("settings")

    def f(x: Any) -> Any:
        class Own:
            n = 1

        module.n = 0  # type: ignore[attr-defined]
        if x > 0:
            Own.n += 5
        else:
            setattr(Own, "n", 7)  # noqa: B010
            module.n = 0  # type: ignore[attr-defined]
        return x + Own.n + module.n  # type: ignore[attr-defined]

    compiled = hf.function(f)
    for x in (2.0, -2.0):
        assert same(compiled(hf.constant(x)), f(hf.constant(x)))
