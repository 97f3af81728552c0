"""Containers and objects that a branch makes, and fills, are its own: the other branch knows nothing of them."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

import pytest

import hybridflow as hf


class Box:
    """Holds what it is given."""


class Slotted:
    __slots__ = ("name", "value")


class Lazy:
    def __init__(self) -> None:
        self.inner = Box()

    @property
    def name(self) -> str:
        if not hasattr(self.inner, "name"):
            self.inner.name = "lazy"
        return str(self.inner.name)


class Single:
    """One object at most: who makes one may be given that of another."""

    only: Any = None

    def __new__(cls) -> Any:
        if cls.only is None:
            cls.only = super().__new__(cls)
        return cls.only


def filled(x: Any) -> Any:
    made: Any = {}
    made["a"] = x * 2
    made["b"] = made["a"] + 1
    return made


def a_dict(x: Any) -> Any:
    if hf.sum(x) > 0:
        d = {}
        d["a"] = x * 2
        y = d["a"] + 1
    else:
        y = x
    return y


def a_dict_of_a_function(x: Any) -> Any:
    return filled(x)["b"] if hf.sum(x) > 0 else x


def an_object(x: Any) -> Any:
    if hf.sum(x) > 0:
        box: Any = Box()
        box.value = x * 3
        y = box.value + 1
    else:
        y = x
    return y


def slots(x: Any) -> Any:
    if hf.sum(x) > 0:
        box = Slotted()
        box.name, box.value = "a", x * 3
        y = box.value * len(box.name)
    else:
        y = x
    return y


def a_lazy_property(x: Any) -> Any:
    if hf.sum(x) > 0:
        made = Lazy()
        y = x * len(made.name + made.name)
    else:
        y = x
    return y


def in_both(x: Any) -> Any:
    if hf.sum(x) > 0:
        box: Any = Box()
        box.value = x * 2
    else:
        box = Box()
        box.value = x
    return box.value


def two_returns(x: Any) -> Any:
    if hf.sum(x) > 0:
        out = {}
        out["a"], out["b"] = x, x * 2
        return out
    return {"a": x * 3, "b": x}


def of_the_standard_library(x: Any) -> Any:
    if hf.sum(x) > 0:
        counts = collections.Counter("aab")
        counts["a"] += 1
        rows = collections.defaultdict(list)
        rows["p"].append(x)
        rows["p"].append(x * 2)
        last = collections.deque(maxlen=2)
        for k in range(3):
            last.append(x * k)
        seen = set()
        seen.add(1)
        seen.add(2)
        y = sum(rows["p"]) * counts["a"] + last[0] * len(seen)
    else:
        y = x
    return y


def a_memo(x: Any) -> Any:
    def value(n: int, memo: Any) -> Any:
        if n not in memo:
            memo[n] = x if n < 2 else value(n - 1, memo) + value(n - 2, memo)
        return memo[n]

    return value(5, {}) if hf.sum(x) > 0 else x


def filled_in_a_branch_within(x: Any) -> Any:
    y = x
    if hf.sum(x) > 0:
        d: Any = {"n": x}
        if hf.max(x) > 1:
            d["n"] = d["n"] * 2
            more: Any = {}
            more["m"] = x
            d["n"] = d["n"] + more["m"]
        y = d["n"] + 1
    return y


def filled_after_a_branch_within(x: Any) -> Any:
    y = x
    if hf.sum(x) > 0:
        if hf.max(x) > 1:
            box: Any = {}
            box["v"] = x * 5
        else:
            box = {}
            box["v"] = x * 7
        box["w"] = box["v"] + 1
        y = box["w"]
    return y


def handed_out(x: Any) -> Any:
    kept: list[Any] = [x]
    if hf.sum(x) > 0:
        d: Any = {}
        d["a"] = x * 2
        kept[0] = d["a"]
    return kept[0]


def in_turns(x: Any) -> Any:
    n = hf.asarray(0)
    while n < 3:
        d: Any = {}
        d["a"] = x * 2
        d.setdefault("rows", []).append(x)
        x = d["a"] + d["rows"][0]
        if hf.max(x) > 10:
            box: Any = Box()
            box.value = x / 2
            x = box.value
        n = n + 1
    return x


def in_a_comprehension(x: Any) -> Any:
    if hf.sum(x) > 0:
        rows = [x * k for k in range(3)]
        rows[0] = x
        named = {k: x * k for k in range(3)}
        named[1] = x * 9
        y = sum(rows) + named[1]
    else:
        y = x
    return y


def a_layer(x: Any) -> Any:
    return hf.layers.Rescaling(2.0)(x) if hf.sum(x) > 0 else x


PROGRAMS = [
    *(a_dict, a_dict_of_a_function, an_object, slots, a_lazy_property, in_both, two_returns, of_the_standard_library),
    *(a_memo, filled_in_a_branch_within, filled_after_a_branch_within, handed_out, in_turns, in_a_comprehension),
    a_layer,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_compiled_is_eager(program: Callable[[Any], Any]) -> None:
    compiled = hf.function(program)
    for values in ([1.0, 2.0], [-1.0, -2.0], [0.5, 0.25], [30.0, 1.0], [-4.0, 1.0]):
        x = hf.asarray(values)
        found, expected = compiled(x), program(x)
        assert hf.tree.structure(found) == hf.tree.structure(expected)
        for a, b in zip(hf.tree.leaves(found), hf.tree.leaves(expected)):
            assert a.numpy().tobytes() == b.numpy().tobytes(), values


def test_what_a_class_may_have_made_before_is_of_all_branches() -> None:
    def levels(run: Callable[[Any], Any]) -> list[Any]:
        Single.only = None
        known = Single()

        def f(x: Any) -> Any:
            if hf.sum(x) > 0:
                Single().level = 3
            return x * getattr(known, "level", 1)

        return [run(f)(hf.asarray([value])).tolist() for value in (-1.0, 1.0, -1.0)]

    assert levels(hf.function) == levels(lambda f: f) == [[-1.0], [3.0], [-3.0]]


def test_derivatives_go_through_what_a_branch_makes() -> None:
    compiled = hf.function(hf.grad(lambda x: hf.sum(filled_in_a_branch_within(x) ** 2)))
    for values in ([1.0, 2.0], [-1.0, -2.0], [0.5, 0.25]):
        x = hf.asarray(values)
        assert compiled(x).tolist() == hf.grad(lambda x: hf.sum(filled_in_a_branch_within(x) ** 2))(x).tolist()
