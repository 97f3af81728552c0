"""Carries of loops that are written in place: which they are, and that results are those of eager runs, to the bit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.compiler.ir.graph import Graph, graphs_in
from hybridflow.compiler.pipeline import Planning, optimize
from hybridflow.runtime.machine import host_target
from tests.support.bits import same_bits

RNG = np.random.default_rng(5)
ROWS = RNG.normal(size=(12, 7)).astype(np.float32)
FLAT = RNG.normal(size=40).astype(np.float32)
SQUARE = RNG.normal(size=(40, 40)).astype(np.float32)
N = np.int64(9)

PROGRAMS: list[tuple[Callable[..., Any], tuple[Any, ...], list[bool]]] = []
"""Programs, what they are given, and for each array that a loop carries whether it stays where it is."""


def _program(*given: Any, stays: list[bool]) -> Callable[[Any], Any]:
    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        PROGRAMS.append((function, given, stays))
        return function

    return add


@_program(FLAT, N, stays=[True])
def elements(x: Any, n: Any) -> Any:
    x = +x
    for k in range(n):
        x[k] = x[k] * 2.0 + x[k + 1]
    return x


@_program(ROWS, N, stays=[True])
def rows(x: Any, n: Any) -> Any:
    x = +x
    for k in range(1, n):
        x[k] = hf.tanh(x[k - 1] + x[k])
    return x


@_program(ROWS, N, stays=[True])
def columns(x: Any, n: Any) -> Any:
    x = +x
    for k in range(1, n - 3):
        x[:, k] = x[:, k - 1] * 0.5
    return x


@_program(ROWS, N, stays=[True])
def rows_of_sums(x: Any, n: Any) -> Any:
    """What is written is made of all that was there before."""
    x = +x
    for k in range(n):
        x[k] = hf.sum(x, axis=0)
    return x


@_program(ROWS, N, np.int64(7), stays=[True, True])
def table(x: Any, n: Any, m: Any) -> Any:
    """Dynamic programming: the outer loop hands its array on to the inner one."""
    x = +x
    for i in range(1, n):
        for j in range(1, m):
            x[i, j] = hf.maximum(x[i - 1, j], x[i, j - 1]) + x[i - 1, j - 1]
    return x


@_program(ROWS, N, stays=[True])
def in_one_branch(x: Any, n: Any) -> Any:
    x = +x
    for k in range(n):
        if x[k, 0] > 0:
            x[k] = x[k + 1] * 2.0
    return x


@_program(ROWS, N, stays=[True])
def in_both_branches(x: Any, n: Any) -> Any:
    x = +x
    for k in range(n):
        if x[k, 0] > 0:
            x[k] = 1.0
        else:
            x[k + 1] = x[k]
    return x


@_program(FLAT, N, stays=[True])
def everywhere(x: Any, n: Any) -> Any:
    """Element by element."""
    for _ in range(n):
        x = x * 0.5 + 1.0
    return x


@_program(FLAT, N, stays=[True, True])
def momentum(x: Any, n: Any) -> Any:
    m = hf.zeros(40)
    for _ in range(n):
        m = m * 0.9 + x
        x = x - m * 0.1
    return x, m


@_program(FLAT, N, stays=[False])
def backwards(x: Any, n: Any) -> Any:
    """Each element is made of another one, which may have been written."""
    for _ in range(n):
        x = x * 0.5 + hf.flip(x, axis=0)
    return x


@_program(FLAT, FLAT[::-1].copy(), N, stays=[False, True])
def change_places(x: Any, y: Any, n: Any) -> Any:
    for _ in range(n):
        x, y = y, x * 0.5
    return x, y


@_program(FLAT, N, stays=[False, True])
def keeps_the_old_value(x: Any, n: Any) -> Any:
    """One carry is what the other one was before."""
    x = +x
    before = x
    for k in range(n):
        before = +x
        x[k] = x[k] + 1.0
    return before, x


@_program(FLAT, N, stays=[True, True])
def from_one_array(x: Any, n: Any) -> Any:
    """Two carries begin as one array, which is read after the loop, too."""
    y, z = +x, +x
    for k in range(n):
        y[k] = 1.0
        z[k + 1] = y[k] + z[k]
    return x, y, z


@_program(FLAT, N, stays=[True])
def reads_the_first_value(x: Any, n: Any) -> Any:
    y = +x
    for k in range(n):
        y[k] = y[k + 1] - hf.sum(x)
    return y


@_program(ROWS, N, stays=[True, True])
def old_and_new(x: Any, n: Any) -> Any:
    """The old value is read after the new one is made of it, in the program's order."""
    x, total = +x, hf.zeros(7)
    for k in range(n):
        old = +x
        x[k] = x[k] * 2.0
        total = total + old[k] - x[k]
    return x, total


@_program(FLAT, np.int64([3, 5, 3, 39]), N, stays=[True])
def several_places(x: Any, at: Any, n: Any) -> Any:
    x = +x
    for _ in range(n):
        x[at] = x[at] + x[at - 1]
    return x


@_program(FLAT, np.int64([3, 5, 3, 39]), N, stays=[True])
def added(x: Any, at: Any, n: Any) -> Any:
    def body(k: Any, x: Any) -> Any:
        return k + 1, hf.scatter_add(x, at, hf.take(x, at, axis=0) * 0.5)

    return hf.while_loop(lambda k, x: k < n, body, (0, x))[1]


@_program(ROWS, FLAT, stays=[True])
def scanned(rows: Any, x: Any) -> Any:
    def body(carries: Any, row: Any) -> Any:
        k, x = carries
        return (k + 1, hf.scatter_add(x, hf.reshape(k, (1,)), hf.reshape(hf.sum(row) + x[k], (1,))))

    return hf.scan(body, rows, (hf.asarray(0), x))[1][-1]


@_program(ROWS, N, np.int64(3), stays=[True, True, True])
def deep(x: Any, n: Any, m: Any) -> Any:
    x = +x
    for i in range(n):
        for j in range(n - 2):
            if j < i:
                for k in range(m):
                    x[i, j] = x[i, j] - x[i, k] * x[k, j]
    return x


@_program(SQUARE, N, stays=[True])
def first_row(x: Any, n: Any) -> Any:
    """Places that are known are written like those that are found."""
    x = +x
    for k in range(n):
        x[0] = x[0] * 0.5 + x[k]
    return x


@_program(SQUARE, N, stays=[True])
def edges(x: Any, n: Any) -> Any:
    """What is written is part of the array as it was a moment before."""
    x = +x
    for k in range(n):
        x[:, 0] = x[:, 1]
        x[:, -1] = x[:, -2]
        x[0:2] = x[k] + 1.0
        x[-1] = x[-2]
    return x


@_program(SQUARE, N, stays=[True])
def passes(x: Any, n: Any) -> Any:
    """A pass over the array is made anyway."""
    x = +x
    for _ in range(n):
        x = x * 0.5
        x[0] = 1.0
    return x


@_program(np.ones(200, bool), np.int64(200), stays=[True, True])
def sieve(s: Any, n: Any) -> Any:
    s = +s
    i = 2
    while i * i < n:
        if s[i]:
            j = i * i
            while j < n:
                s[j] = False
                j += i
        i += 1
    return s


@pytest.fixture(params=[1, 2, 3])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = hf.config.get_num_threads()
    hf.config.set_num_threads(request.param)
    yield request.param
    hf.config.set_num_threads(before)


def _tensors(given: tuple[Any, ...]) -> list[Any]:
    return [hf.asarray(x) for x in given]


def _leaves(found: Any) -> list[np.ndarray]:
    return [x.numpy() for x in (found if isinstance(found, tuple) else (found,))]


def _stays(graph: Graph) -> list[bool]:
    """For each array that a loop carries, in program order, whether it stays where it is; loops inside come after."""
    planning, found = Planning(host_target.target()), list[bool]()

    def look(graph: Graph) -> None:
        for node in graph.nodes:
            if node.op.name in ("while", "scan"):
                body = node.attrs["body"]
                wanted = planning.aliases.wanted_pairs(node)
                overwrites = planning.planned(body, wanted)[1].overwrites
                found.extend(overwrites.get(k) == k for k, _ in wanted)
            for inner in graphs_in(node.attrs):
                look(inner)

    look(optimize(graph, host_target.target()))
    return found


@pytest.mark.parametrize(("function", "given", "stays"), PROGRAMS, ids=[f.__name__ for f, _, _ in PROGRAMS])
def test_which_carries_stay_where_they_are(function: Any, given: Any, stays: Any) -> None:
    concrete = hf.function(function).get_concrete_function(*_tensors(given))
    assert _stays(concrete.graph) == stays


@pytest.mark.parametrize(("function", "given", "stays"), PROGRAMS, ids=[f.__name__ for f, _, _ in PROGRAMS])
def test_results_are_those_of_eager_runs(function: Any, given: Any, stays: Any, threads: int) -> None:
    compiled = hf.function(function)
    for _ in range(2):
        tensors = _tensors(given)
        for got, want in zip(_leaves(compiled(*tensors)), _leaves(function(*_tensors(given))), strict=True):
            assert same_bits(got, want)
        for x, was in zip(tensors, given):
            assert same_bits(x.numpy(), np.asarray(was))  # what comes from outside is not written


@pytest.mark.parametrize("turns", [0, 1, 2, 3])
def test_any_number_of_turns(turns: int) -> None:
    compiled = hf.function(rows)
    assert same_bits(compiled(ROWS, turns + 1).numpy(), rows(hf.asarray(ROWS), turns + 1).numpy())
    compiled = hf.function(elements)
    assert same_bits(compiled(FLAT, turns).numpy(), elements(hf.asarray(FLAT), turns).numpy())


def test_large_arrays_on_several_threads(threads: int) -> None:
    """A turn is work for all, and pieces of the array are written by one each."""
    x = RNG.normal(size=(50, 40_000)).astype(np.float32)

    def f(x: Any, n: Any) -> Any:
        x = +x
        for k in range(1, n):
            x[k] = hf.exp(-hf.abs(x[k - 1])) + x[k]
            x = x * 0.5
        return x

    assert same_bits(hf.function(f)(x, 4).numpy(), f(hf.asarray(x), 4).numpy())


def test_gradients(threads: int) -> None:
    """Turns are walked backwards with what they kept, and cotangents of arrays are carries, too."""

    def loss(x: Any, n: Any) -> Any:
        y = +x
        for k in range(1, n):
            y[k] = hf.tanh(y[k - 1]) * y[k]
        return hf.sum(y * y)

    def gradient(x: Any, n: Any) -> Any:
        with hf.GradientTape() as tape:
            tape.watch(x)
            value = loss(x, n)
        return value, tape.gradient(value, x)

    x = hf.asarray(ROWS)
    for got, want in zip(_leaves(hf.function(gradient)(x, hf.asarray(9))), _leaves(gradient(x, 9)), strict=True):
        assert np.allclose(got, want, rtol=2e-6, atol=1e-7)


def test_variables_and_what_is_given_up(threads: int) -> None:
    v = hf.Variable(FLAT)

    @hf.function
    def step(n: Any) -> Any:
        x = +v
        for k in range(n):
            x[k] = x[k] + 1.0
        v.assign(x)
        return hf.sum(x)

    given_up = hf.function(elements, donate_argnums=(0,))
    want, moved = FLAT.copy(), hf.asarray(FLAT)
    for _ in range(3):
        step(hf.asarray(9))
        want[:9] += np.float32(1)
        moved = given_up(moved, 9)
    assert same_bits(v.numpy(), want)
    again = hf.asarray(FLAT)
    for _ in range(3):
        again = elements(again, 9)
    assert same_bits(moved.numpy(), again.numpy())


def test_what_fails_leaves_state_as_it_was() -> None:
    v = hf.Variable(FLAT)

    @hf.function
    def step(n: Any) -> Any:
        x = +v
        for k in range(n):
            x[k] = x[k] + 1.0
        v.assign(x)

    with pytest.raises(IndexError):
        step(hf.asarray(41))
    assert same_bits(v.numpy(), FLAT)
