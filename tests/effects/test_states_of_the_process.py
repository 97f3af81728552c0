"""Warnings, generators of random numbers, and classes and copies that a function makes: as eager code has them."""

from __future__ import annotations

import collections
import copy
import dataclasses
import random
import typing
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hybridflow as hf

HIGH, LOW = (np.array(values, np.float32) for values in ([1, 2, 3], [-1, -2, -3]))
Case = Callable[[Any], Callable[..., Any]]


def warns_in_a_block(function: Any) -> Callable[..., Any]:
    @function
    def f(x: Any) -> Any:
        if hf.sum(x) > 3:
            warnings.warn("large", stacklevel=1)
        return x + 1

    return f


def warns(function: Any) -> Callable[..., Any]:
    @function
    def f(x: Any) -> Any:
        warnings.warn("always", DeprecationWarning, stacklevel=2)
        return x + 1

    return f


def draws_in_a_block(function: Any) -> Callable[..., Any]:
    generator = np.random.default_rng(1)

    @function
    def f(x: Any) -> Any:
        if hf.sum(x) > 3:
            x = x * generator.random()
        return x + generator.random()

    return f


def draws_in_a_loop(function: Any) -> Callable[..., Any]:
    generator = np.random.default_rng(1)

    @function
    def f(x: Any) -> Any:
        while hf.max(hf.abs(x)) < 10:
            x = x * (1 + generator.random())
        return x

    return f


def draws_from_python_in_a_block(function: Any) -> Callable[..., Any]:
    generator = random.Random(1)

    @function
    def f(x: Any) -> Any:
        if hf.sum(x) > 3:
            x = x * generator.random()
        return x + generator.random()

    return f


def has_a_generator_of_its_own(function: Any) -> Callable[..., Any]:
    @function
    def f(x: Any) -> Any:
        generator = np.random.default_rng(7)
        numbers = generator.normal(size=3).astype("float32")
        generator.shuffle(numbers)
        return x * numbers + generator.integers(3)

    return f


class Slotted:
    __slots__ = ("a", "b")

    def __init__(self, a: Any, b: Any) -> None:
        self.a, self.b = a, b


def copies_slots(function: Any) -> Callable[..., Any]:
    held = Slotted(1.0, [1, 2])

    @function
    def f(x: Any) -> Any:
        made, kept = copy.copy(Slotted(x, 2.0)), copy.copy(held)
        made.a = made.a * 2
        kept.a += 1
        kept.b.append(3)
        return made.a * made.b + x * kept.a + len(held.b)

    return f


def copies_slots_in_blocks(function: Any) -> Callable[..., Any]:
    @function
    def f(x: Any) -> Any:
        made = Slotted(x, 1.0)
        for _ in hf.arange(3):
            other = copy.copy(made)
            other.a = other.a + 1.0
            made = other
        return made.a

    return f


def makes_classes(function: Any) -> Callable[..., Any]:
    @function
    def f(x: Any) -> Any:
        pair = collections.namedtuple("pair", "a b")(x, x * 2)

        class Typed(typing.NamedTuple):
            a: Any
            b: float = 2.0

            def both(self) -> Any:
                return self.a * self.b

        @dataclasses.dataclass
        class Data:
            a: Any
            b: float = 2.0

            def both(self) -> Any:
                return self.a * self.b if self.b < 2.5 else self.a

        data = Data(x)
        data.b = 3.0
        return pair.a + pair.b + Typed(x).both() + data.both() + dataclasses.replace(data, b=1.0).both()

    return f


CASES: tuple[Case, ...] = (
    warns_in_a_block,
    warns,
    draws_in_a_block,
    draws_in_a_loop,
    draws_from_python_in_a_block,
    has_a_generator_of_its_own,
    copies_slots,
    copies_slots_in_blocks,
    makes_classes,
)


@pytest.mark.runs_eagerly  # where a block warns or draws
@pytest.mark.parametrize("values", [HIGH, LOW], ids=["high", "low"])
@pytest.mark.parametrize("case", CASES)
def test_the_same_as_eager_code_at_each_call(case: Case, values: np.ndarray) -> None:
    x = hf.asarray(values)
    seen = []
    for function in (lambda python: python, hf.function):
        f = case(function)
        for _ in range(3):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                result = f(x).tolist()
            said = [str(w.message) for w in caught if "eagerly" not in str(w.message) and "anew" not in str(w.message)]
            seen.append((result, said))
    assert seen[:3] == seen[3:]
