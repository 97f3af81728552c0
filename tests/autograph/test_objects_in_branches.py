"""Instances of the user's classes are joined attribute by attribute where branches and turns bind others, and two names
of one object go on to be that."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import pytest

import hybridflow as hf
from hybridflow.errors import TraceError

T = TypeVar("T")


class Shape(abc.ABC):
    tag = 3

    def __init__(self, x: Any) -> None:
        self.x = x

    @abc.abstractmethod
    def area(self) -> Any: ...


class Rectangle(Shape):
    def __init__(self, x: Any, y: Any) -> None:
        super().__init__(x)
        self._y = y

    @property
    def y(self) -> Any:
        return self._y * 2

    def area(self) -> Any:
        return self.x * self.y + self.tag

    def __eq__(self, other: object) -> bool:
        return False

    __hash__ = None  # type: ignore[assignment]


class Frozen(Generic[T]):
    v: T

    def __init__(self, v: T) -> None:
        object.__setattr__(self, "v", v)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("frozen")


class Holder:
    def __init__(self, items: Any, name: str = "n") -> None:
        self.items, self.name = items, name


class Slots:
    __slots__ = ("a", "b")

    def __init__(self, a: Any) -> None:
        self.a = a  # and b is not set


class SlotsAndMore(Slots):
    def __init__(self, a: Any, c: Any) -> None:
        super().__init__(a)
        self.c = c


class Point:
    def __init__(self, x: Any) -> None:
        self.x = x


def inherited(x: Any) -> Any:
    s = Rectangle(x, 1.0)
    if x > 0:
        s = Rectangle(x * 2, 3.0)
    return s.area()


def frozen(x: Any) -> Any:
    f = Frozen(x)
    while f.v < 3:
        f = Frozen(f.v * 2 + 1.5)
    return f.v


def slots(x: Any) -> Any:
    s = SlotsAndMore(x, 1)
    if x > 0:
        s = SlotsAndMore(-x, 2)
    return s.a * s.c, hasattr(s, "b")


def another_is_changed_afterwards(x: Any) -> Any:
    p = Point(x)
    if x > 0:
        p = Point(x * 2)
    p.x = p.x + 1
    return p.x


def two_names_of_one(x: Any) -> Any:
    p = q = Point(x)
    if x > 0:
        p = q = Point(x * 2)
    return p is q, p.x


def changed_on_one_side_and_bound_on_the_other(x: Any) -> Any:
    p = Point(x)
    q = p
    if x > 0:
        p.x = x * 3
    else:
        p = Point(-x)
    return p.x, q.x


def holds_a_list(x: Any) -> Any:
    h = Holder([x, 1.0])
    if x > 0:
        h = Holder([x * 2, 3.0])
    other = h
    h.items[0] = h.items[0] + 1
    return other.items[0], h.items[1], len(h.name)


def in_a_list(x: Any) -> Any:
    points = [Point(x), Point(x + 1)]
    for _ in range(3):
        if points[0].x < points[1].x:
            points[0], points[1] = points[1], points[0]
        points[0] = Point(points[0].x - 1.5)
    return points[0].x, points[1].x


def leading_back_to_themselves(x: Any) -> Any:
    p, q = Point(x), Point(x + 1)
    p.other, q.other = q, p
    if x > 0:
        p.x = x * 5
    while q.x < 4:
        q.x = q.x + 1
    return p.x, p.other.x


def over_rows(x: Any) -> Any:
    p = Point(x)
    seen = []
    for row in hf.stack([x] * 12):
        p = Point(p.x * 0.5 + row)
        seen.append(p)
    return p.x, seen[3].x, seen[-1].x, seen[-1] is p


def nested(x: Any) -> Any:
    h = Holder([Point(x), {"k": Point(x + 1)}])
    if x > 0:
        h = Holder([Point(x * 3), {"k": Point(-x)}])
    return h.items[1]["k"].x + h.items[0].x


def attribute_in_a_loop(x: Any) -> Any:
    p = Point(x)
    while p.x < 5:
        p.x = p.x + 1
    return p.x


def many_that_share_parts(x: Any) -> Any:
    """Each holds the one before twice: as a tree it has a million nodes."""
    p = Point(x)
    for _ in range(20):
        p = Holder([p, p])
    if x > 0:
        p = p.items[0]
    while x < 1:
        x = x + 1
    return x


def attributes_that_one_side_lacks(x: Any) -> Any:
    p = Point(x)
    if x > 0:
        p = Point(x)
        p.extra = 1  # type: ignore[attr-defined]
    return p.x, hasattr(p, "extra"), getattr(p, "extra", 7)


def returned(x: Any) -> Any:
    def made(x: Any) -> Any:
        if x > 0:
            return Point(x * 2)
        return Point(x)

    return made(x).x


PROGRAMS = [f for n, f in list(globals().items()) if getattr(f, "__module__", "") == __name__ and n.islower()]
PROGRAMS = [f for f in PROGRAMS if not isinstance(f, type)]


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_compiled_is_eager(function: Callable[..., Any]) -> None:
    compiled = hf.function(function)
    for value in (2.0, -0.5, 0.25):
        x = hf.constant(value)
        want, got = function(x), compiled(x)
        assert [float(v) for v in hf.tree.leaves(got)] == [float(v) for v in hf.tree.leaves(want)]

    def total(x: Any) -> Any:
        return sum(v for v in hf.tree.leaves(function(x)) if isinstance(v, hf.Tensor))

    for value in (2.0, -0.5):
        x = hf.constant(value)
        assert float(hf.function(hf.grad(total))(x)) == float(hf.grad(total)(x))


def test_an_object_from_outside_is_none_of_the_traces() -> None:
    """What it holds is read where the user reads it, so that changes are seen."""
    outside = Point(hf.constant(1.0))

    @hf.function
    def f(x: Any) -> Any:
        p = Point(x)
        if x > 0:
            p = Point(outside.x * x)
        return p.x

    assert float(f(hf.constant(2.0))) == 2
    outside.x = hf.constant(5.0)
    assert float(f(hf.constant(2.0))) == 10


def changes_one_of_two(x: Any) -> Any:
    p = Point(x)
    q = p
    if x > 0:
        p = Point(x * 2)
    p.x = p.x + 1
    return q.x, p.x


def changes_the_first(x: Any) -> Any:
    p = Point(x)
    first = p
    while p.x < 5:
        p = Point(p.x + 1)
    first.x = x * 100
    return p.x, first.x


@pytest.mark.parametrize("function", [changes_one_of_two, changes_the_first])
def test_which_of_several_is_changed_must_be_known(function: Callable[..., Any]) -> None:
    with pytest.raises(TraceError, match="a Point is changed in place, and it depends on a tensor which of several"):
        hf.function(function, strict=True)(hf.constant(1.0))
