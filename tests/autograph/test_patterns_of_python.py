"""``match`` with patterns that look into what holds tensors, and with guards that tensors decide."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from __future__ import annotations

import dataclasses
import enum

import pytest

import hybridflow as hf
from hybridflow.errors import TraceError
from tests.support.agreement import Corpus, check, integer, scalar, vector

pytestmark = pytest.mark.code

program = Corpus()
NAN = float("nan")
SCALARS = [scalar(t) for t in (-2.0, -0.5, 0.0, 0.25, 1.0, 1.5, 7.0, NAN)]
INTEGERS = [integer(n) for n in (-3, 0, 1, 2, 5)]
VECTORS = [vector(*values) for values in ((3.0, -1.0, 2.0), (-5.0, 4.0, 4.0), (0.0, 0.0, 1.0), (NAN, 1.0, 2.0))]


@dataclasses.dataclass
class Point:
    x: object
    y: object


class Rectangle:
    __match_args__ = ("w", "h")

    def __init__(self, w, h):
        self.w, self.h = w, h

    @property
    def area(self):
        return self.w * self.h


class Colour(enum.Enum):
    RED = 1
    GREEN = 2


@program(*SCALARS, gradient=True)
def sequences_with_guards(t):
    match (t, 1):
        case (a, 1) if a > 0:
            return a * 3
        case (a, b):
            return a - b


@program(*SCALARS, gradient=True)
def classes(t):
    match Point(t, t * 2):
        case Point(x=0):
            return t + 10
        case Point(x=x, y=y) if x > 1:
            return x * y
        case Point(x, y):
            return x - y


@program(*SCALARS)
def properties_and_what_is_missing(t):
    match Rectangle(t, 2.0):
        case Rectangle(depth=d):
            return d
        case Rectangle(area=a) if a > 2:
            return a
        case Rectangle(w, h):
            return w + h


@program(*SCALARS)
def mappings(t):
    match {"kind": "scale", "by": t}:
        case {"kind": "shift", "by": b}:
            return b
        case {"kind": "scale", "by": b} if b > 0:
            return b * 3
        case {"kind": "scale", **rest}:
            return rest["by"] - len(rest)


@program(*SCALARS)
def mappings_by_value(t):
    match {"x": t, "y": 2}:
        case {"x": 0}:
            return t + 1
        case {"x": 1.5 | 7, "y": y}:
            return t * y
        case {"z": z}:
            return z
        case _:
            return -t


@program(*VECTORS, gradient=True)
def stars(x):
    match [x[0], x[1], x[2]]:
        case [a, *rest] if a > 0:
            return a + sum(rest)
        case [*_, 0, c]:
            return c * 7
        case [a, b, c]:
            return a * b * c


@program(*SCALARS)
def of_one_of_several(t):
    command = ("go", t) if t > 0 else ("stop",)
    shape = Rectangle(t, 2.0) if t > 0 else Point(t, 1.0)
    match shape:
        case Rectangle(w, h):
            area = w * h
        case Point(x=a):
            area = a
    match command:
        case ("go", d) if d > 1:
            return d * 2, area
        case ("go", d):
            return d, area
        case ("stop",):
            return t - 1, area


@program(*SCALARS)
def of_none_or_a_tensor(t):
    best = t if t > 0 else None
    match (best, 1):
        case (None, _):
            return t * 0
        case (value, 1) if value > 1:
            return value + 1
        case (value, _):
            return value


@program(*SCALARS)
def truths(t):
    match (bool(t > 0), bool(t > 1)):
        case (True, True):
            return t * 4
        case (True, False):
            return t * 2
        case _:
            return -t


@program(*SCALARS)
def tensors_are_not_true(t):
    match (t > 0, t):
        case (True, _):
            return t * 4
        case (_, float()):
            return t * 2
        case (_, hf.Tensor()) if t > 0:
            return t * 3
        case _:
            return t


@program(*INTEGERS)
def numbers(n):
    match int(n) % 3, int(n) % 2:
        case 0, 0:
            return 1
        case 0, _:
            return 2
        case (1 | 2) as k, 1:
            return k
        case int(k), _ if k > 1:
            return k + 10
        case _:
            return -1


@program(*INTEGERS)
def alternatives_that_bind(n):
    match (int(n), 5):
        case (0, k) | (k, 6) | (2, k):
            return k
        case (k, _):
            return k * 100


@program(*SCALARS)
def nested(t):
    match [t, [t * 2, 3], Colour.RED]:
        case [a, [b, 3], Colour.GREEN]:
            return a
        case [a, [b, 3], Colour.RED as c] if b > 1:
            print(c)
            return a + b
        case [a, [_, n], _]:
            return a * n


@program(*SCALARS)
def names_that_a_failed_guard_has_bound(t):
    x = 100.0
    match (t, 2.0):
        case (0, x):
            pass
        case (x, y) if x > 1:
            x = y
        case _:
            pass
    return x


@program(*INTEGERS)
def in_a_loop(n):
    total = 0
    for k in range(n):
        match (k % 3, total):
            case (0, _):
                continue
            case (1, s) if s > 4:
                break
            case (r, s):
                total = s + r + 1
    return total


@program(*SCALARS)
def that_no_case_fits(t):
    found = t
    match (t, 1, 2):
        case (a, b):
            found = a + b
        case [a, b, 3]:
            found = a * b
    return found


@program(*SCALARS)
def too_many_parts(t):
    match Point(t, 1.0):
        case Point(x, y, z):
            return x + y + z
    return t


@program(*SCALARS)
def a_name_for_all(t):
    match [t, 2.0]:
        case [a, 2.0] as whole if a > 0:
            return whole[0] + whole[1]
        case whole:
            return whole[0]


@program.parametrized()
def test_compiled_is_eager(case) -> None:
    check(case)


def test_what_patterns_look_at_is_guarded() -> None:
    point = Point(2.0, 1.0)

    @hf.function
    def f(t):
        match point:
            case Point(x=0):
                return t
            case Point(x, y) if t > 0:
                return t * x + y
            case _:
                return -t

    assert float(f(scalar(3.0)).numpy()) == 7.0
    point.x = 5.0
    assert float(f(scalar(3.0)).numpy()) == 16.0
    point.x = 0
    assert float(f(scalar(3.0)).numpy()) == 3.0
    assert float(f(scalar(-3.0)).numpy()) == -3.0


def test_names_of_patterns_in_functions_of_guards_stay_python() -> None:
    @hf.function
    def f(t, limits):
        match (t, 3):
            case (a, n) if all(limit < n for limit in limits):
                return a * n
            case _:
                return t

    assert float(f(scalar(2.0), [1, 2]).numpy()) == 6.0
    assert float(f(scalar(2.0), [1, 4]).numpy()) == 2.0


def test_a_number_that_may_be_a_truth_is_refused() -> None:
    @hf.function(strict=True)
    def f(t):
        match (True if t > 0 else 2, 1):
            case (True, _):
                return t
            case _:
                return -t

    with pytest.raises(TraceError, match="bool or int"):
        f(scalar(1.0))
