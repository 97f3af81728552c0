"""Ordinary programs in which a tensor chooses: values, functions, objects, numbers of turns, and what is raised.

``PROGRAMS`` has each with the arguments of its calls; ``tests/autograph/test_chosen_python.py`` runs them eagerly and
compiled.
"""

# ruff: noqa
# mypy: ignore-errors

from __future__ import annotations

import collections
import contextlib
import dataclasses
import enum
import functools
import math
import operator
from typing import NamedTuple

import numpy as np

import hybridflow as hf

PROGRAMS = {}
GRADIENTS = set()
OPEN = set()  # programs that take vectors of any length


def program(*calls, gradient=False, open=False):
    def add(function):
        name = function.__name__
        assert name not in PROGRAMS, name
        PROGRAMS[name] = function, [call if isinstance(call, tuple) else (call,) for call in calls]
        if gradient:
            GRADIENTS.add(name)
        if open:
            OPEN.add(name)
        return function

    return add


def v(*values, dtype="float32"):
    return hf.asarray(np.array(values, dtype=dtype))


def s(value, dtype="float32"):
    return hf.asarray(np.array(value, dtype=dtype))


def i(value):
    return s(value, "int64")


def ints(*values):
    return v(*values, dtype="int64")


VECTORS = v(3.0, -1.0, 2.0), v(-5.0, 4.0, 4.0), v(0.5, 0.5, 0.5), v(-1.0, -2.0, -0.0)
SCALARS = s(-2.0), s(-0.5), s(0.0), s(0.25), s(1.5), s(7.0)

COUNT, LAST = 0, None
CACHE = {}
TOTAL = hf.Variable(0.0)


class Settings:
    scale = None
    best = None
    calls = 0


SETTINGS = Settings()


def _closure():
    seen = hf.constant(0.0)

    def set_seen(x):
        nonlocal seen
        if x > 0:
            seen = x
        else:
            seen = x - 1
        return x * 2

    return set_seen, lambda: seen


SET_SEEN, SEEN = _closure()


# ---- ranges


@program((i(0), i(10), i(3)), (i(10), i(0), i(-4)), (i(0), i(10), i(-1)), (i(3), i(3), i(1)), (i(-5), i(6), i(5)))
def range_with_a_step(a, b, c):
    total, last = 0, -1
    for k in range(a, b, c):
        total += k * k
        last = k
    return total, last


@program((i(0),), (i(2),), (i(-1),))
def range_of_a_step_that_may_be_zero(c):
    total = 0
    for k in range(0, 7, c):
        total += k
    return total


@program((v(1.0, 2.0), i(0)), (v(1.0, 2.0), i(1)), (v(1.0, 2.0), i(4)), gradient=True)
def counting_down(x, n):
    for k in reversed(range(n)):
        x = x * 0.5 + k
    return x


@program((v(1.0, 2.0), i(0)), (v(1.0, 2.0), i(3)), gradient=True)
def numpy_counts(x, n):
    for k in np.arange(n):
        x = x * 0.5 + float(k)
    return x


@program((v(1.0, 2.0, 5.0), i(0)), (v(1.0, 2.0, 5.0), i(3)))
def own_counts(x, n):
    total = hf.constant(0.0)
    for k in hf.arange(n):
        total = total + x[k] * hf.astype(k, "float32")
    return total


@program((i(0),), (i(1),), (i(5),))
def properties_of_a_range(n):
    r = range(1, n, 2)
    return len(r), len(range(n)), 3 in r, n in range(4), sum(range(n)), list(range(3))[0]


@program((v(1.0, 2.0, 5.0), i(0)), (v(1.0, 2.0, 5.0), i(2)), (v(1.0, 2.0, 5.0), i(7)))
def numbered_and_paired(x, n):
    total = hf.constant(0.0)
    for k, j in enumerate(range(n), 1):
        total = total + k * j
    for j, row in zip(range(n), x):
        total = total + j * row
    return total


@program((i(1),), (i(4),), (i(8),))
def triangle(n):
    total = 0
    for a in range(n):
        for b in range(a, n, a + 1):
            total = total + a * b + 1
    return total


@program((i(1), i(4), s(2, "int32")), (i(-2), i(1), s(2, "int32")))
def numbers_of_a_range_are_pythons(a, b, x):
    for k in range(a, b):
        x = x * k + 1
    return x


@program(*((i(k), i(3)) for k in (0, -1, 5, -6, 6, -7)))
def item_of_a_range(k, n):
    return range(n, 20, 3)[k]


@program(*((i(a), i(b)) for a, b in ((3, 1), (3, 2), (8, 7), (8, 9), (2, -1))))
def membership_in_a_range(n, k):
    return k in range(1, n, 2), k * 1.0 in range(n), k * 0.5 in range(n), k not in range(n, -5, -3)


@program(s(3, "uint8"), s(0, "int16"), s(2.0), v(3, dtype="int64"), s(True, "bool"))
def bounds_of_all_kinds(n):
    total = 0
    for k in range(n):
        total += k + 1
    return total


# ---- names bound in one branch


@program(*SCALARS, gradient=True)
def bound_and_used_under_one_condition(x):
    flag = x > 0
    if flag:
        root = hf.sqrt(x)
    y = x * 2
    if flag:
        y = y + root
    return y


@program(*SCALARS)
def bound_but_not_on_all_ways(x):
    if x > 0:
        y = x + 1
    if x > 1:
        return y
    elif x < -1:
        return y
    return x


@program(*SCALARS)
def first_turn_binds(x):
    for k in range(3):
        if k == 0 or x > 100:
            best = x
        elif x * k > 1:
            best = best + k
    return best


@program((v(1.0, 2.0), i(0)), (v(1.0, 2.0), i(1)), (v(1.0, 2.0), i(3)))
def first_turn_of_the_program_binds(x, n):
    for k in range(n):
        if k == 0:
            total = x
        else:
            total = total + x * k
    return total


@program((v(1.0, 2.0), i(0)), (v(1.0, 2.0), i(1)), (v(1.0, 2.0), i(3)))
def name_of_a_loop_afterwards(x, n):
    for k in range(n):
        x = x + k
    return x, k


@program(*SCALARS)
def bound_in_a_while(x):
    while x < 3:
        step = hf.abs(x) * 0.5 + 1
        x = x + step
    return step


@program(*SCALARS)
def nothing_until_something(x):
    best = None
    for k in range(3):
        candidate = x * k - 1
        if candidate > 0:
            if best is None or candidate < best:
                best = candidate
    return (-1.0 if best is None else best) * x


@program(*VECTORS, v(-1.0, -1.0, -1.0))
def nothing_until_something_in_rows(x):
    best, where = None, None
    for k, row in enumerate(x):
        if row > 0 and (best is None or row < best):
            best, where = row, k
    if best is not None:
        return best * 10, where
    return x[0], -1


@program(*SCALARS)
def found_or_else(x):
    found = None
    if x > 0:
        found = x * 2
    y = x
    if found is not None:
        y = y + found
    if not found:
        y = y - 100
    return y


@program(*SCALARS)
def optional_argument(x):
    def scaled(t, by=None):
        if by is None:
            by = 3.0
        return t * by

    factor = x if x > 1 else None
    return scaled(x, factor) + scaled(x)


# ---- functions and strings that a branch chooses


@program(*SCALARS, gradient=True)
def chosen_function(x):
    f = hf.tanh if x > 0 else hf.sin
    return f(x) * 2


@program(*SCALARS, gradient=True)
def chosen_function_of_the_users(x):
    def double(t, by=2.0):
        return t * by

    def square(t, by=1.0):
        return t * t * by

    if x > 1:
        f = double
    elif x > 0:
        f = square
    else:
        f = lambda t, by=3.0: t - by
    return f(x) + f(x, by=0.5)


@program(*SCALARS)
def chosen_text(x):
    kind = "positive" if x > 0 else "other"
    if kind == "positive":
        y = x * 2
    else:
        y = x - 1
    return y * len(kind)


class Mode(enum.Enum):
    FAST = 1
    SLOW = 2
    OFF = 3


@program(*SCALARS)
def state_machine(x):
    mode, total = Mode.SLOW, x
    for _ in range(4):
        if mode is Mode.SLOW:
            total = total + 1
            if total > 2:
                mode = Mode.FAST
        elif mode is Mode.FAST:
            total = total * 2
            if total > 10:
                mode = Mode.OFF
        else:
            total = total - 0.5
    return total


@program(*SCALARS)
def state_machine_in_a_while(x):
    state, n = "grow", 0
    while state != "done":
        if state == "grow":
            x = x * 2 + 1
            if x > 5 or x < -5:
                state = "shrink"
        elif state == "shrink":
            x = x / 2
            if hf.abs(x) < 2:
                state = "done"
        n += 1
    return x, n


@program(*SCALARS)
def chosen_method(x):
    class Thing:
        def __init__(self, w):
            self.w = w

        def up(self, t):
            return t * self.w

        def down(self, t):
            return t - self.w

    thing = Thing(3.0)
    act = thing.up if x > 0 else thing.down
    return act(x)


class Scaling(hf.Module):
    def __init__(self, w):
        self.w = hf.Variable(w)

    def __call__(self, x):
        return x * self.w


EXPERTS = [Scaling(2.0), Scaling(-1.0), Scaling(0.5)]


@program(*SCALARS)
def chosen_layer(x):
    layer = EXPERTS[0] if x > 0 else EXPERTS[1]
    return layer(x)


# ---- objects of the user's


class Vector:
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __add__(self, other):
        return Vector(self.x + other.x, self.y + other.y)

    def __mul__(self, k):
        return Vector(self.x * k, self.y * k)

    __rmul__ = __mul__

    def norm(self):
        return hf.sqrt(self.x * self.x + self.y * self.y)


@program(*SCALARS, gradient=True)
def vector_in_branches(x):
    p = Vector(x, 1.0)
    if x > 0:
        p = p + Vector(2.0, x)
    else:
        p = p * 3
    return p.norm()


@program((s(0.5), i(0)), (s(0.5), i(1)), (s(0.5), i(5)), gradient=True)
def vector_in_a_loop(x, n):
    p, q = Vector(x, x * 0.0), Vector(x * 0.5, 1.0 + x)
    for _ in range(n):
        p, q = p + 0.5 * q, q * 0.9
    return p.norm() + q.x


class Money(NamedTuple):
    amount: object
    rate: float = 0.0

    def grown(self):
        return self._replace(amount=self.amount * (1 + self.rate))


@program(*SCALARS)
def named_tuple_in_branches(x):
    m = Money(x, 0.1)
    if x > 0:
        m = m.grown()
    elif x < -1:
        m = Money(x * 5, 0.1)
    while m.amount > 1.0:
        m = Money(m.amount - 1.0, m.rate)
    return m.amount


@dataclasses.dataclass(frozen=True)
class Frozen:
    lo: object
    hi: object

    def halves(self):
        mid = (self.lo + self.hi) / 2
        return Frozen(self.lo, mid), Frozen(mid, self.hi)


@program(s(2.0), s(7.0), s(9.0))
def bisection_of_frozen(x):
    span = Frozen(0.0 * x, x + 1.0)
    while span.hi - span.lo > 0.01:
        left, right = span.halves()
        if right.lo * right.lo > x:
            span = left
        else:
            span = right
    return span.lo


@dataclasses.dataclass(slots=True)
class Slotted:
    a: object
    b: int = 0


class Particle:
    __slots__ = ("position", "velocity")

    def __init__(self, position, velocity):
        self.position, self.velocity = position, velocity


@program(*SCALARS)
def slots_in_branches(x):
    p = Particle(x, 1.0)
    t = Slotted(x)
    if x > 0:
        p = Particle(x * 2, -p.velocity)
        t = Slotted(x + 1, 4)
    return p.position * p.velocity + t.a * t.b


class Account:
    def __init__(self, balance):
        self.balance = balance
        self.moves = 0

    def withdraw(self, amount):
        if amount > self.balance:
            raise ValueError("insufficient")
        self.balance = self.balance - amount
        self.moves += 1
        return self


@program(*SCALARS)
def account(x):
    a = Account(hf.constant(2.0))
    try:
        a.withdraw(x)
        a.withdraw(x * 2)
    except ValueError:
        a.balance = a.balance - 0.25
    return a.balance, a.moves


class Node:
    def __init__(self, value, left=None, right=None):
        self.value, self.left, self.right = value, left, right


@program(*SCALARS)
def tree(x):
    leaf = Node(x)
    root = Node(x * 2, leaf, Node(x + 1)) if x > 0 else Node(x * 3, Node(x - 1), leaf)

    def total(node):
        return 0.0 if node is None else node.value + total(node.left) + total(node.right)

    return total(root)


class Interval:
    def __init__(self, lo, hi):
        self.lo, self.hi = lo, hi

    def __contains__(self, x):
        return self.lo <= x <= self.hi

    def __and__(self, other):
        return Interval(max(self.lo, other.lo), min(self.hi, other.hi))

    def __bool__(self):
        return self.lo <= self.hi

    def __lt__(self, other):
        return self.hi < other.lo

    def __len__(self):
        return 3


@program(*((s(a), s(b)) for a in (-1.0, 0.5, 4.0) for b in (-3.0, 2.0)))
def operators_of_an_object(a, b):
    one, two = Interval(a, a + 2), Interval(b, b + 3)
    both = one & two
    y = both.hi - both.lo
    if one < two:
        y = y * 10
    return y
