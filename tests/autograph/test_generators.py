"""Generators in compiled functions, in which a tensor decides whether they come to a ``yield``."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from typing import Any

import pytest

import hybridflow as hf
from hybridflow.errors import TraceError

pytestmark = pytest.mark.code


def yields_in_a_branch(x):
    def items():
        for k in range(3):
            if x[k] > 0:
                yield x[k] * 2

    total = x[0] * 0
    for item in items():
        total = total + item
    return total


def yields_in_both_branches(x):
    def items():
        for k in range(3):
            if x[k] > 0:
                yield x[k]
            else:
                yield -x[k] * 10
                yield x[k]

    total, count = x[0] * 0, 0
    for item in items():
        total = total * 2 + item
        count += 1
    return total, count


def yields_in_nested_branches(x):
    def items():
        if x[0] > 0:
            yield x[0]
            if x[1] > 0:
                yield x[1]
            yield x[2]

    total = x[0] * 0
    for item in items():
        total = total * 2 + item
    return total


def returns_early(x):
    def items():
        for k in range(3):
            if x[k] < 0:
                return
            yield x[k]

    total = x[0] * 0
    for item in items():
        total = total + item
    return total


def branches_in_turns(x):
    def items():
        for k in range(3):
            if x[k] > 0:
                yield x[k]

    total, largest = x[0] * 0, x[0]
    for item in items():
        if item > largest:
            largest = item
        else:
            total = total - item
    return total, largest


def effects_in_turns(x):
    class Sums:
        def __init__(self):
            self.total = x[0] * 0

    def items():
        for k in range(3):
            print("before", k)
            if x[k] > 0:
                yield x[k]
            print("after", k)

    sums, kept = Sums(), [x[0] * 0]
    for item in items():
        print("item", item)
        sums.total = sums.total + item
        kept[0] = item
    return sums.total, kept[0]


def generator_of_a_generator(x):
    def inner():
        for k in range(3):
            if x[k] > 0:
                yield x[k]

    def outer():
        for item in inner():
            yield item * 2

    total = x[0] * 0
    for item in outer():
        total = total + item
    return total


def the_last_item(x):
    def items():
        yield x[1]
        if x[0] > 0:
            yield x[0]

    for item in items():
        last = item
    return last + item


def catches_in_a_generator(x):
    def items():
        for k in range(3):
            try:
                if x[k] < 0:
                    raise ValueError(k)
                value = x[k]
            except ValueError:
                value = x[k] * 100
            yield value

    total = x[0] * 0
    for item in items():
        total = total + item
    return total


def raises_in_a_generator(x):
    def items():
        for k in range(3):
            if x[k] < 0:
                raise ValueError(f"item {k}")
            yield x[k]

    total = x[0] * 0
    try:
        for item in items():
            total = total + item
    except ValueError as error:
        print(error)
    return total


def the_body_has_conditions(x):
    def items():
        held = x[0]
        for k in range(3):
            if held > 1:
                held = held - x[k]
            else:
                held = held + x[k]
            yield held

    return sum(items())


def a_name_of_one_branch(x):
    positive = x[0] > 0
    if positive:
        held = x[1] * 2
    y = x[2]
    if positive:
        y = y + held
    return y


def the_names_of_a_loop(x):
    for k in range(3):
        if x[k] > 0:
            y = x[k]
        else:
            y = x[k] * 2
    return y * k


PROGRAMS = [
    yields_in_a_branch, yields_in_both_branches, yields_in_nested_branches, returns_early, branches_in_turns,
    effects_in_turns, generator_of_a_generator, the_last_item, catches_in_a_generator, raises_in_a_generator,
    the_body_has_conditions, a_name_of_one_branch, the_names_of_a_loop,
]  # fmt: skip
VALUES = ([1.0, 2.0, 3.0], [-1.0, 2.0, -3.0], [1.0, -2.0, 3.0], [-1.0, -2.0, -3.0], [float("nan"), 0.0, 2.0])


def outcome(function: Callable[..., Any], values: list[float]) -> Any:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        found = function(hf.asarray(values))
    parts = found if isinstance(found, tuple) else (found,)
    return [repr(float(part)) for part in parts], printed.getvalue()


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda function: function.__name__)
def test_generators_give_what_they_give_eagerly(function: Callable[..., Any]) -> None:
    compiled = hf.function(function)
    for values in VALUES:
        assert outcome(compiled, values) == outcome(function, values), values
    assert len(compiled.signatures()) == 1


@pytest.mark.parametrize("is_sure", [True, False])
def test_a_loop_that_is_left_inside_of_the_generators_condition_is_refused(is_sure: bool) -> None:
    @hf.function(strict=True)
    def f(x):
        def items():
            for k in range(3):
                if x[k] > 0:
                    yield x[k]

        total = x[0]
        for item in items():
            total = total + item
            if is_sure or item > 1:
                break
        return total

    with pytest.raises(TraceError, match=r"items is inside of a condition that is a tensor.*test_generators.py:"):
        f(hf.asarray([1.0, 2.0, 3.0]))


def test_a_turn_may_be_skipped() -> None:
    def f(x):
        def items():
            for k in range(3):
                if x[k] > 0:
                    yield k, x[k]

        total = x[0]
        for k, item in items():
            if k == 1:
                continue
            total = total + item
        return total

    for values in VALUES:
        assert outcome(hf.function(f), values) == outcome(f, values)


def test_items_that_others_take_are_refused() -> None:
    @hf.function(strict=True)
    def f(x):
        def items():
            if x[0] > 0:
                yield x[0]

        return list(items())

    with pytest.raises(TraceError, match=r"yield stands under a condition.*Take the items in a for statement"):
        f(hf.asarray([1.0, 2.0]))
