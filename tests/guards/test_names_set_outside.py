"""Globals, variables of enclosing functions, attributes and items that a function sets to what tensors decide."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from __future__ import annotations

import gc
import weakref

import pytest

import hybridflow as hf
from tests.support.agreement import Corpus, check, scalar

pytestmark = pytest.mark.code

program = Corpus()
SCALARS = [scalar(t) for t in (-2.0, -0.5, 0.0, 0.25, 1.5, 7.0, float("nan"))]


class Settings:
    pass


TOTAL, COUNT, LAST, BOTH = 0.0, 0, None, ()
SETTINGS = Settings()
ITEMS: dict[str, object] = {}
SEEN: list[object] = []


class Pair:
    def __init__(self, a, b):
        self.a, self.b = a, b


def counter():
    count = 0

    def add(t):
        nonlocal count
        if t > 0:
            count += 1
        return count * t

    def get():
        return count

    def clear():
        nonlocal count
        count = 0

    return add, get, clear


add, get, clear = counter()


def reset():
    global TOTAL, COUNT, LAST, BOTH
    TOTAL, COUNT, LAST, BOTH = 0.0, 0, None, ()
    vars(SETTINGS).clear()
    SETTINGS.n, SETTINGS.best = 0, 0.0
    ITEMS.clear()
    ITEMS["n"] = 0
    SEEN.clear()
    clear()


def state():
    held = [TOTAL, COUNT, LAST, BOTH, dict(vars(SETTINGS)), dict(ITEMS), list(SEEN), get()]
    assert type(COUNT) is int and type(get()) is int and type(ITEMS["n"]) is int
    return held


def outside(function):
    return program(*SCALARS, reset=reset, state=state)(function)


@outside
def totals(t):
    global TOTAL
    if t > 0:
        TOTAL = TOTAL + t
    for k in range(3):
        if t > k:
            TOTAL += t
    return TOTAL


@outside
def counts(t):
    global COUNT
    if t > 0:
        COUNT += 1
    while t > 1:
        t = t / 2
        COUNT += 1
    return t * COUNT


@outside
def unconditional(t):
    global LAST, TOTAL
    LAST = t
    TOTAL = t.shape, t * 2, {"a": t}
    return t


@outside
def none_or_a_tensor(t):
    global LAST
    if t > 0:
        LAST = t
    return t


@outside
def texts(t):
    global LAST, COUNT
    LAST = "pos" if t > 0 else "neg"
    COUNT = COUNT + 1 if t > 0 else COUNT - 1
    print(COUNT)
    return COUNT


@outside
def of_an_enclosing_function(t):
    return add(t) + add(-t) + add(t)


@outside
def attributes(t):
    if t > 1:
        SETTINGS.best = t
    else:
        SETTINGS.n += 1
    return t + SETTINGS.n


@outside
def items(t):
    if t > 0:
        ITEMS["n"] += 1
    ITEMS["last"] = t * 2 if t > 0 else 0.0
    SEEN.append(t)
    SEEN.append("big" if t > 1 else None)
    return t


@outside
def objects(t):
    global LAST, BOTH
    LAST = Pair(t, 1.0 if t > 0 else 2.0)
    BOTH = (Pair(t * 2, "a"), [t])
    return LAST.a


@outside
def functions(t):
    global LAST
    LAST = abs if t > 0 else len
    return t


@program.parametrized()
def test_compiled_is_eager(case) -> None:
    check(case)


def test_what_is_set_has_derivatives() -> None:
    def f(t):
        global LAST
        LAST = t * t if t > 0 else t * 3
        return t

    found = []
    for function in (f, hf.function(f)):
        for value in (2.0, -2.0):
            t = scalar(value)
            with hf.GradientTape() as tape:
                tape.watch(t)
                function(t)
                loss = LAST * 2
            found.append(float(tape.gradient(loss, t).numpy()))
    assert found == [8.0, 6.0, 8.0, 6.0]


def test_a_call_that_raises_has_set_what_comes_before() -> None:
    @hf.function
    def f(t):
        global COUNT, LAST
        LAST = t
        if t > 0:
            COUNT += 1
        if t > 1:
            raise ValueError("big")
        COUNT += 10
        return t

    reset()
    with pytest.raises(ValueError, match="big"):
        f(scalar(2.0))
    assert COUNT == 1 and float(LAST.numpy()) == 2.0
    f(scalar(1.0))
    assert COUNT == 12 and float(LAST.numpy()) == 1.0
    reset()


def test_a_trace_that_fails_leaves_nothing_of_it() -> None:
    @hf.function
    def f(t):
        global LAST, COUNT
        LAST = t * 2
        COUNT = 1 if t > 0 else 2
        SEEN.append(t)
        return hf.reshape(t, (3, 3))

    reset()
    with pytest.raises(hf.errors.ShapeError):
        f(scalar(2.0))
    assert LAST is None or isinstance(LAST.numpy().item(), float)
    assert type(COUNT) is int and all(float(x.numpy()) == 2.0 for x in SEEN)
    reset()


def test_the_trace_is_not_kept_alive() -> None:
    class Kept:
        pass

    kept = Kept()
    reference = weakref.ref(kept)

    @hf.function
    def f(t):
        kept.last = t if t > 0 else t * 2
        return t

    f(scalar(1.0))
    assert float(kept.last.numpy()) == 1.0
    kept = f = None
    gc.collect()
    assert reference() is None
