"""A ``for`` over a tensor is one loop of the program where its body can be one, Python's else: with the same bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.errors import HybridflowError

pytestmark = pytest.mark.code

ROWS = 20
_DRAWN = np.random.default_rng(0)
X, Y = (hf.constant(_DRAWN.standard_normal((ROWS, 3)).astype("float32")) for _ in range(2))
W = hf.constant(_DRAWN.standard_normal((3, 3)).astype("float32"))
Program = Callable[[Any, Any, Any], Any]
LOOPS: list[Program] = []  # those that are loops of the program
OTHERS: list[Program] = []  # those whose turns differ in what Python alone knows


def loop(function: Program) -> Program:
    LOOPS.append(function)
    return function


def other(function: Program) -> Program:
    OTHERS.append(function)
    return function


class State(NamedTuple):
    h: Any
    c: Any


class Cell:
    def __init__(self) -> None:
        self.h = hf.zeros(3)


@loop
def starts_with_a_number(x, y, w):
    s = 0
    for r in x:
        s = s + r * 2
    return s


@loop
def temporaries_and_the_last_row(x, y, w):
    s = hf.zeros(3)
    for r in x:
        a = r * 2
        s = hf.tanh((a + s) @ w)
    return s, a, r


@loop
def enumerated(x, y, w):
    s = hf.zeros(3)
    for i, (r, q) in enumerate(zip(x, y[:15]), 3):
        s = s + r * i - q * (i + 1)
    return s, i, q


@loop
def backwards(x, y, w):
    s = hf.zeros(3)
    for r in reversed(x):
        s = hf.tanh(s @ w + r)
    return s


@loop
def broken(x, y, w):
    s = hf.zeros(3)
    for r in x:
        if hf.sum(s) > 3:
            break
        s = s + hf.abs(r)
    else:
        s = s + 100
    return s


@loop
def never_broken(x, y, w):
    s = hf.zeros(3)
    for r in x:
        if r[0] > 0:
            continue
        if hf.sum(s) > 1000:
            break
        s = s + hf.abs(r)
    else:
        s = s + 100
    return s


@loop
def returned(x, y, w):
    for i, r in enumerate(x):
        if r[0] > 0.9:
            return i, r
    return -1, x[0]


@loop
def appended(x, y, w):
    s, outs, pairs = hf.zeros(3), [], [(hf.zeros(3), 7)]
    for i, r in enumerate(x):
        s = hf.tanh(s @ w + r)
        outs.append(s)
        pairs.append((s * 2, i))
    return hf.stack(outs), outs[3], len(outs), hf.stack([a for a, _ in pairs], axis=1), pairs[5][1], outs[-1] is outs[4]


@loop
def nothing_at_first(x, y, w):
    h = None
    for r in x:
        h = r if h is None else hf.tanh(h @ w + r)
    return h


@loop
def a_dict(x, y, w):
    state = {"h": hf.zeros(3), "c": hf.zeros(3)}
    for r in x:
        state["h"] = hf.tanh(state["h"] + r)
        state["c"] = state["c"] + state["h"]
    return state


@loop
def a_named_tuple(x, y, w):
    state = State(hf.zeros(3), hf.ones(3))
    for r in x:
        state = State(state.c, hf.tanh(state.h + r))
    return state


@loop
def an_attribute(x, y, w):
    cell = Cell()
    for r in x:
        cell.h = hf.tanh(cell.h @ w + r)
    return cell.h


@loop
def two_deep(x, y, w):
    s = hf.zeros(())
    for r in x:
        for q in y:
            s = s + hf.sum(r * q)
        s = s * 0.5
    return s


@loop
def a_while_inside(x, y, w):
    s = hf.zeros(())
    for r in x:
        a = hf.sum(r)
        while a > 0.1:
            a = a / 2
            s = s + 1
    return s


@loop
def a_gradient(x, y, w):
    with hf.GradientTape() as tape:
        tape.watch([w, x])
        s = hf.zeros(3)
        for r in x:
            s = hf.tanh(s @ w + r)
        total = hf.sum(s * s)
    return tape.gradient(total, [w, x])


@loop
def gradients_inside(x, y, w):
    g = hf.zeros((3, 3))
    for r in x:
        with hf.GradientTape() as tape:
            tape.watch(w)
            total = hf.sum(hf.tanh(r @ w))
        g = g + tape.gradient(total, w)
    return g


@loop
def in_a_branch(x, y, w):
    s = hf.zeros(3)
    if x[0, 0] > 0:
        for r in x:
            s = s + r
    else:
        for r in y:
            s = s - r
    return s


@loop
def left_in_order(x, y, w):
    s = hf.zeros(3)
    for r in x:
        try:
            s = s + r
        finally:
            s = s * 0.9
    return s


@other
def read_what_was_appended(x, y, w):
    outs = [hf.zeros(3)]
    for r in x:
        outs.append(outs[-1] * 0.5 + r)
    return hf.stack(outs)


@other
def counted_what_was_appended(x, y, w):
    outs, s = [], hf.zeros(3)
    for r in x:
        if len(outs) < 3:
            s = s + r
        outs.append(s)
    return hf.stack(outs)


@other
def read_through_another_name(x, y, w):
    outs = []
    box = {"outs": outs}
    for r in x:
        last = box["outs"][-1] if box["outs"] else hf.zeros(3)
        outs.append(last * 0.5 + r)
    return hf.stack(outs)


@other
def appended_what_changes(x, y, w):
    outs, state = [], {"h": hf.zeros(3)}
    for r in x:
        state["h"] = state["h"] + r
        outs.append(state)
    return outs[0]["h"], outs[0] is outs[5]


@other
def appended_a_tensor_that_changes(x, y, w):
    outs, s = [], +x[0]
    for r in x:
        s[0] = s[0] * 0.5 + r[1]
        outs.append(s)
    return hf.stack(outs)


@other
def of_lists(x, y, w):
    functions, s = [hf.sin, hf.cos], hf.zeros(3)
    for i, r in enumerate(x):
        s = s + functions[i % 2](r)
    return s


@other
def counted(x, y, w):
    n, s = 0, hf.zeros(3)
    for r in x:
        s, n = s + r, n + 1
    return s / n, hf.zeros(n)


@other
def growing(x, y, w):
    s = x[:1]
    for r in x:
        s = hf.concat([s, hf.reshape(r, (1, 3))], axis=0)
    return s


@other
def taken_from_an_iterator(x, y, w):
    numbers, s = iter(range(100)), hf.zeros(3)
    for r in x:
        s = s + r * next(numbers)
    return s


@other
def left_differently_by_each_turn(x, y, w):
    s, p = hf.zeros(3), 0.5
    for r in x:
        s = s + r * p
        p = -p if r[0] > r[1] else p
        if s[0] > 1:
            continue
        s = s * 0.9
    return s, p


@other
def part_of_a_zip(x, y, w):
    pairs = zip(x, y)
    first = next(iter(pairs))
    s = first[0] * 10
    for r, q in pairs:
        s = s + r * q
    return s, len(list(pairs))


def form(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: form(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return list(map(form, value))
    array = np.asarray(value)
    return str(array.dtype), array.shape, array.tobytes()


def _is_rolled(text: str) -> bool:
    return " scan" in text or " while" in text


@pytest.mark.parametrize("program", LOOPS, ids=lambda program: program.__name__)
def test_one_loop(program: Program) -> None:
    compiled = hf.function(program)
    assert form(compiled(X, Y, W)) == form(program(X, Y, W))
    assert form(compiled(-X, Y, W)) == form(program(-X, Y, W))
    text = compiled.ir(X, Y, W)
    assert _is_rolled(text)
    assert program is appended or len(text.splitlines()) < 160  # and nothing is unrolled beside it


@pytest.mark.parametrize("program", OTHERS, ids=lambda program: program.__name__)
def test_turns_of_pythons(program: Program) -> None:
    compiled = hf.function(program)
    assert form(compiled(X, Y, W)) == form(program(X, Y, W))


@pytest.mark.parametrize("program", [*LOOPS, *OTHERS], ids=lambda program: program.__name__)
def test_over_what_is_captured(program: Program) -> None:
    """Tensors that a function finds around it are walked over as its arguments are."""
    x, y, w = X, Y, W
    compiled = hf.function(lambda: program(x, y, w))
    assert form(compiled()) == form(program(x, y, w))
    assert _is_rolled(compiled.ir()) == _is_rolled(hf.function(program).ir(x, y, w))


def test_gradients_over_what_is_captured() -> None:
    def loss(w: Any) -> Any:
        s = hf.zeros(3)
        for r in X:
            s = hf.tanh(s @ w + r)
        return hf.sum(s * s)

    compiled = hf.function(hf.grad(loss))
    assert form(compiled(W)) == form(hf.grad(loss)(W))
    assert _is_rolled(compiled.ir(W))


def test_short_ones_are_unrolled() -> None:
    compiled = hf.function(backwards)
    assert form(compiled(X[:4], Y, W)) == form(backwards(X[:4], Y, W))
    assert not _is_rolled(compiled.ir(X[:4], Y, W))


def test_stacks_of_rows_are_the_stack_itself() -> None:
    @hf.function
    def f(x: Any) -> Any:
        outs = []
        for r in x:
            outs.append(hf.tanh(r) * 2)
        return hf.stack(outs)

    assert "concat" not in f.ir(X)
    assert np.array_equal(f(X), hf.tanh(X) * 2)


def test_variables_and_errors() -> None:
    v = hf.Variable(np.ones(3, "float32"))

    def train(x: Any) -> Any:
        for r in x:
            v.assign(v * 0.9 + r)
        return v + 0

    want = form(train(X))
    v.assign(np.ones(3, "float32"))
    assert form(hf.function(train)(X)) == want

    @hf.function
    def wrong(x: Any) -> Any:
        s = hf.zeros(3)
        for r in x:
            s = s + hf.reshape(r, (7,))  # here
        return s

    with pytest.raises(HybridflowError, match=r"test_for_loops.py:\d+") as caught:
        wrong(X)
    assert "(7,)" in str(caught.value) or "7" in str(caught.value)
    assert form(hf.function(train)(X))  # and what was begun is over


def test_numbers_of_a_range_are_pythons() -> None:
    def f(k: Any, n: Any) -> Any:
        for i in range(n):
            k = k + i
        return k

    k, n = hf.constant([1, 2], dtype=hf.int32), hf.constant(5)
    assert form(hf.function(f)(k, n)) == form(f(k, n))
