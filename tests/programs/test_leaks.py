"""No call of a function keeps or loses a reference: counted per call for each way that a call can go."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.errors import IndexRangeError
from hybridflow.runtime.memory import memory_pool
from tests.support.garbage import collect_all

CALLS = 300

Case = tuple[Callable[[], Any], list[Any]]  # what is called, and the objects whose references are counted


def vector(*values: float) -> hf.Tensor:
    return hf.asarray(np.array(values, np.float32))


def plain() -> Case:
    x, y = vector(1, 2, 3), vector(4, 5, 6)
    f = hf.function(lambda x, y: x * y + x)
    return lambda: f(x, y), [x, y, f]


def several_results() -> Case:
    x = vector(1, 2, 3)
    f = hf.function(lambda x: (x + 1, [x * 2], {"a": x - 1}))
    return lambda: f(x), [x]


def an_argument_returned() -> Case:
    x = vector(1, 2, 3)
    f = hf.function(lambda x: (x, x + 1))
    return lambda: f(x), [x]


def keywords_and_scalars() -> Case:
    x, scale, text = vector(1, 2, 3), 1e9 + 7, "a mode that is not interned"
    f = hf.function(lambda x, k=1.0, mode="": x * k)
    return lambda: (f(x, k=scale), f(x, scale), f(x, mode=text)), [x, scale, text]


def nested_arguments() -> Case:
    x, y = vector(1, 2, 3), vector(4, 5, 6)
    tree = {"a": [x, y], "b": (x,)}
    f = hf.function(lambda t: t["a"][0] + t["b"][0])
    return lambda: f(tree), [x, y, tree, tree["a"]]


def arrays() -> Case:
    x = np.ones(3, np.float32)
    strided = np.ones(6, np.float32)[::2]
    f = hf.function(lambda x: x + 1)
    return lambda: (f(x), f(strided)), [x, strided]


def captured_and_guarded() -> Case:
    class Model:
        def __init__(self) -> None:
            self.w, self.rate, self.layers = vector(1, 2, 3), 0.1234, [vector(1, 1, 1)]

        @hf.function
        def __call__(self, x: Any) -> Any:
            return x * self.w * self.rate + self.layers[0] + offset

    model, offset, x = Model(), vector(3, 2, 1), vector(1, 2, 3)
    return lambda: model(x), [model, model.w, model.rate, model.layers, model.layers[0], offset, x]


def variables() -> Case:
    v, w, x = hf.Variable(np.ones(3, np.float32)), hf.Variable(np.ones(3, np.float32)), vector(1, 2, 3)

    @hf.function
    def step(x: Any) -> Any:
        v.assign_add(x)
        w.assign(v * 0.5)
        return hf.sum(v)

    return lambda: step(x), [v, w, x]


def earlier_values_held() -> Case:
    v, x = hf.Variable(np.ones(3, np.float32)), vector(1, 2, 3)

    @hf.function
    def step(x: Any) -> Any:
        v.assign_add(x)
        return v.value()

    def call() -> Any:
        held = v.value()
        return step(x), held

    return call, [v, x]


def an_error() -> Case:
    v, x, bad = hf.Variable(np.ones(3, np.float32)), vector(1, 2, 3), hf.asarray(np.array([7]))

    @hf.function
    def step(x: Any, i: Any) -> Any:
        v.assign_add(hf.take(x, i))
        return v.value()

    def call() -> None:
        with pytest.raises(IndexRangeError):
            step(x, bad)

    return call, [v, v.value(), x, bad]


def a_tape_around() -> Case:
    v, x = hf.Variable(np.ones(3, np.float32)), vector(1, 2, 3)
    f = hf.function(lambda x: hf.sum(hf.tanh(x * v)))

    def call() -> Any:
        with hf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return tape.gradient(y, [x, v])

    return call, [v, v.value(), x]


def second_derivatives() -> Case:
    x = vector(1, 2, 3)
    f = hf.function(lambda x: hf.sum(hf.sin(x * x)))

    def call() -> Any:
        with hf.GradientTape() as outer:
            outer.watch(x)
            with hf.GradientTape() as inner:
                inner.watch(x)
                y = f(x)
            g = inner.gradient(y, x)
        return outer.gradient(g, x)

    return call, [x]


def open_extents() -> Case:
    x, y = vector(1, 2, 3), vector(1, 2, 3, 4)
    f = hf.function(lambda x: x * 2, input_signature=[hf.TensorSpec((None,))])
    return lambda: (f(x), f(y)), [x, y]


def eager() -> Case:
    x, y = vector(1, 2, 3), vector(4, 5, 6)
    return lambda: (x + y, hf.tanh(x), x * 2.0, x[::-1], hf.sum(x)), [x, y]


CASES = (
    plain,
    several_results,
    an_argument_returned,
    keywords_and_scalars,
    nested_arguments,
    arrays,
    captured_and_guarded,
    variables,
    earlier_values_held,
    an_error,
    a_tape_around,
    second_derivatives,
    open_extents,
    eager,
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
@pytest.mark.sample(4)
def test_calls_keep_nothing(case: Callable[[], Case]) -> None:
    call, watched = case()
    watched += [hf.Tensor, hf.Variable, np.ndarray, np.dtype(np.float32), np.dtype(np.int64), None, True, (), 0, 1]

    def calls() -> None:
        for _ in range(CALLS):
            call()

    def counts() -> tuple[list[int], int, int]:
        """References of the watched objects, bytes of live buffers, and blocks of Python's memory."""
        collect_all()
        return [sys.getrefcount(o) for o in watched], memory_pool.stats().live, sys.getallocatedblocks()

    calls()
    grown = []
    while not grown or (grown[-1] >= CALLS // 4 and len(grown) < 8):
        references, live, allocated = counts()
        calls()
        again, live_again, allocated_again = counts()
        kept = {repr(o)[:60]: b - a for o, a, b in zip(watched, references, again) if abs(b - a) >= CALLS // 2}
        assert not kept, kept
        assert live_again <= live  # less, where something of an earlier test went
        grown.append(allocated_again - allocated)
    assert grown[-1] < CALLS // 4, grown  # Python's own free lists and caches grow a few times, a leak each time


@pytest.mark.parametrize("case", [plain, variables, captured_and_guarded, keywords_and_scalars, an_error],
                         ids=lambda case: case.__name__)  # fmt: skip
def test_calls_leave_nothing_to_the_collector(case: Callable[[], Case]) -> None:
    call, _ = case()
    for _ in range(20):
        call()
    collect_all()
    gc.disable()
    try:
        for _ in range(CALLS):
            call()
        assert gc.collect() < CALLS
    finally:
        gc.enable()


def test_results_are_owned_once() -> None:
    x = vector(1, 2, 3)
    f = hf.function(lambda x: (x + 1, x * 2))
    for _ in range(5):  # by way of Python at first, natively later
        found, made = f(x), (vector(1, 1, 1), vector(1, 1, 1))
        assert sys.getrefcount(found) == sys.getrefcount(made)
        for tensor, reference in zip(found, made):
            assert sys.getrefcount(tensor) == sys.getrefcount(reference)
            assert sys.getrefcount(tensor._array) == sys.getrefcount(reference._array)


def test_new_functions_and_shapes_are_given_back() -> None:
    """What is made for a function goes with it; the cache of one function is bounded."""
    kept = hf.function(lambda x: x * 2 + 1, cache_size=4)

    def make(k: int) -> None:
        f = hf.function(lambda x: hf.sum(x) + 1)
        f(vector(*range(1 + k % 3)))
        kept(vector(*range(1 + k % 9)))

    for k in range(20):
        make(k)
    collect_all()
    allocated, objects = sys.getallocatedblocks(), len(gc.get_objects())
    for k in range(40):
        make(k)
    collect_all()
    assert len(gc.get_objects()) - objects < 40 * 5
    assert sys.getallocatedblocks() - allocated < 40 * 40


def test_signatures_that_cannot_be_traced_leave_nothing() -> None:
    @hf.function
    def refuses(x: hf.Tensor, name: str) -> hf.Tensor:
        raise ValueError(name)

    def call(k: int) -> None:
        with pytest.raises(ValueError, match="name"):
            refuses(vector(1, 2), f"name {k}")

    for k in range(100):  # some of them are remembered, up to a number
        call(k)
    collect_all()
    objects = len(gc.get_objects())
    for k in range(100, 160):
        call(k)
    collect_all()
    assert len(gc.get_objects()) - objects < 60
