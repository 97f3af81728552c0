"""Functions and classes of ordinary Python, of which ``ordinary_python.txt`` has the calls."""

# ruff: noqa
# mypy: ignore-errors

from __future__ import annotations

import collections
import contextlib
import dataclasses
import functools
import itertools
import math
import operator
from typing import NamedTuple

import numpy as np

import hybridflow as hf

SCALE = 2.0


def compose(*functions):
    def composed(x):
        for f in reversed(functions):
            x = f(x)
        return x

    return composed


def counter():
    count = 0

    def add(x):
        nonlocal count
        count += 1
        return x * count

    return lambda x: add(x) + add(x)


def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def doubling(f):
    @functools.wraps(f)
    def inner(*args, **kwargs):
        return f(*args, **kwargs) * 2

    return inner


@doubling
@doubling
def decorated(x):
    return x + 1


@functools.lru_cache(maxsize=None)
def cached(n):
    return n * 2.0


def halves(x, n):
    for _ in range(n):
        yield x
        x = x / 2


def delegating(x):
    yield from halves(x, 2)
    yield x


def generator_sum(x):
    return sum(delegating(x)) + next(halves(x, 1))


def takes_many(x, /, y, *rest, scale=1.0, **options):
    return (x + y * rest[0]) * scale + len(options)


def closure(x):
    y = x * 2
    return lambda z: y + z


def nonlocal_state(x):
    total = x

    def add(y):
        nonlocal total
        total = total + y

    for k in range(3):
        add(x * k)
    return total


def early(x):
    if hf.sum(x) > 0:
        return x
    return -x


def recursive(tree):
    if isinstance(tree, dict):
        return sum(recursive(v) for v in tree.values())
    if isinstance(tree, (list, tuple)):
        return functools.reduce(operator.add, map(recursive, tree))
    return tree * 2


def _three(a, b, c=None):
    return a + b - c


def unpacked(args, kwargs):
    return _three(*args, **kwargs)


def default_of_another(x, f=decorated):
    return f(x)


def apply_twice(f, x):
    return f(f(x))


class Layer:
    def __init__(self, scale):
        self.scale, self.calls = scale, 0

    def __call__(self, x):
        return self.forward(x)

    def forward(self, x):
        return x * self.scale

    def scaled(self, x, by):
        return self(x) * by

    @classmethod
    def make(cls, scale):
        return cls(scale * 2)

    @staticmethod
    def static(x):
        return x - 1

    @property
    def double(self):
        return hf.constant(self.scale) * 2


class Child(Layer):
    def __init__(self, scale):
        super().__init__(scale + 1)
        self.__hidden = 3.0

    def forward(self, x):
        return super().forward(x) + self.__hidden


class Vector:
    def __init__(self, value):
        self.value = value

    def __add__(self, other):
        return Vector(self.value + other.value)

    def __mul__(self, k):
        return Vector(self.value * k)

    def __getitem__(self, k):
        return self.value[k]

    def __len__(self):
        return self.value.shape[0]


@dataclasses.dataclass
class Point:
    x: object
    y: object

    def moved(self, by):
        return Point(self.x + by, self.y + by)


class Pair(NamedTuple):
    a: object
    b: object


class Countdown:
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return self

    def __next__(self):
        if self.n == 0:
            raise StopIteration
        self.n -= 1
        return self.n


class Slotted:
    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value


class Registry:
    table = {"sin": hf.sin}


class _MetaType(type):
    def kind(cls, x):
        return x * len(cls.__name__)


class Meta(metaclass=_MetaType):
    pass


class Default:
    def __init__(self, x):
        self.x = x

    def __getattr__(self, name):
        if name == "scale":
            return self.x * 3
        raise AttributeError(name)


def built(x, y):
    items = []
    items.append(x)
    items.extend([y, x])
    items.insert(0, y)
    items.pop()
    items += [x]
    items[1:3] = [x + y]
    return items


def changed_in_place(x, y):
    table = {"a": [x], "b": {"c": y}}
    table["a"].append(y)
    table["b"]["c"] = table["b"]["c"] * 2
    table.update(d=x)
    del table["d"]
    return table["a"][1] + table["b"]["c"], list(table)


def sliced(items):
    return items[1:], items[:-1], items[::2], items[-1]


def augmented(x):
    y = x
    y += 1
    y *= 2
    y -= x
    y /= 3
    y **= 2
    box = [y]
    box[0] += x
    point = Point(x, y)
    point.x *= 2
    return y, box, point.x


def matched(what, x):
    match what:
        case ("scale", float() as by):
            return x * by
        case {"shift": by}:
            return x + by
        case [first, *rest] if first == 1:
            return x * len(rest)
        case None:
            return -x
        case _:
            return x


def loops(x):
    total = x * 0
    for i in range(3):
        for j in range(i, 3):
            if (i + j) % 2:
                continue
            total = total + x * j
            if j > 1:
                break
    return total


def whiles(x, n):
    while n:
        x, n = x * 2, n - 1
    else:
        x = x + 1
    return x


def for_else(x, wanted):
    for k in range(5):
        if k == wanted:
            x = x * k
            break
    else:
        x = -x
    return x


def tries(x, key):
    try:
        return x * {"a": 2.0}[key]
    except (KeyError, IndexError) as error:
        return x * len(error.args[0])


def tries_all(x):
    log = []
    try:
        try:
            log.append(x)
            raise ValueError("no")
        except ValueError:
            log.append(x * 2)
        else:
            log.append(x * 100)
        finally:
            log.append(x * 3)
        int("q")
    except Exception as error:
        log.append(x * len(type(error).__name__))
    return log


@contextlib.contextmanager
def scaled_by(box, k):
    box.append(k)
    try:
        yield box
    finally:
        box.pop()


def with_statement(x):
    box = [1.0]
    with scaled_by(box, 3.0) as inside:
        x = x * inside[-1]
    return x * len(box)


def nested_with(x):
    with scaled_by([], 2.0) as a, scaled_by([], 3.0) as b, contextlib.suppress(KeyError):
        x = x * a[0] * b[0]
        {}["k"]
    return x


def swapped(x, y):
    x, y = y, x
    (a, b), c = (x, y), x
    return a - b + c


def starred(x):
    first, *middle, last = [x, x * 2, x * 3, x * 4]
    return first + last, middle


def global_scale(x):
    return x * SCALE


def chained(x):
    a = b = x * 2
    return (a is b) * x + b


def deleted(x):
    y = x * 2
    z = y + 1
    del y
    return z


def asserted(x):
    assert x.ndim == 1, "one axis"
    return x


def walrus_loop(x):
    n = 0
    while (n := n + 1) < 4:
        x = x + n
    return x


def conditional_import(x):
    from math import tau

    return x * tau


def annotated(x):
    y: hf.Tensor = x * 2
    z: int
    return y


def lambda_in_loop(x):
    fs = [lambda t, k=k: t * k for k in range(3)]
    return [f(x) for f in fs]


def inner_class(x):
    class Scale:
        by = 3.0

        def __call__(self, t):
            return t * self.by

    return Scale()(x)


def tensor_if(x):
    if x[0] > 0:
        y = x * 2
    elif x[1] > 0:
        y = x * 3
    else:
        y = x * 4
    return y


def tensor_while(x):
    n = 0
    while hf.sum(x * x) < 100:
        x = x * 1.5
        n += 1
    return x, n


def tensor_for(x):
    total = 0.0
    for row in x:
        total = total + row * row
    return total


def tensor_ternary(x):
    return x * 2 if x[0] > x[1] else x * 3


def tensor_bools(x, y):
    return (x[0] > 0 and y[0] > 0), (x[0] > 0 or y[0] > 0), not x[0] > 0, -10 < x[0] < 10


def tensor_break(x):
    k = 0
    while True:
        x = x * 1.5
        k = k + 1
        if hf.max(hf.abs(x)) > 50:
            break
    return x, k


def tensor_return(x):
    for row in x:
        if row > 1:
            return row
    return x[0] * 100


def tensor_nested(x, y):
    s = hf.zeros(())
    for a in x:
        for b in y:
            if a * b > 0:
                s = s + a * b
    return s


def tensor_state(x):
    layer = Layer(2.0)
    for row in x:
        if row > 0:
            layer.scale = layer.scale * 0.5
    return x * layer.scale


def tensor_counter(x):
    n = 0
    for row in x:
        if row > 0:
            n += 1
    return n, n / 2, n * x
