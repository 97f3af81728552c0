"""Extents that code under open sizes treats as the plain numbers that they are in eager mode: divided, looked up,
returned, counted with; and what such a function costs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from tests.support.outcomes import outcome, same

pytestmark = pytest.mark.code

SIZES = (7, 0, 1, 2, 3, 4, 5, 6, 17, 64, 3, 7)
ANY = [hf.TensorSpec([None])]
WEIGHTS = {3: 10.0, 5: 20.0}
TEN = 10


def array(n: int) -> hf.Tensor:
    return hf.asarray(np.random.default_rng(n).normal(size=n).astype(np.float32))


def assigned(n: int) -> dict[int, int]:
    table = {3: 1, 5: 2}
    table[n] = 0
    table.update({n + 1: 3})
    return table


BODIES: dict[str, Callable[[Any], Any]] = {
    "a quotient by what may be 0 or less": lambda x: x + 10 // (x.shape[0] - 3),
    "a remainder by what may be 0 or less": lambda x: x + 10 % (x.shape[0] - 3),
    "a quotient of extents": lambda x: x + x.shape[0] * 7 // (x.shape[0] - 3),
    "a quotient of what is negative": lambda x: x + (2 - x.shape[0] * 3) // (x.shape[0] - 4),
    "both": lambda x: x + sum(divmod(x.shape[0] + 1, 4 - x.shape[0])),
    "an index that is a remainder": lambda x: x[-1 % (x.shape[0] - 2) :],
    "rows that may not fit": lambda x: hf.reshape(x, (x.shape[0] // 2, 2)),
    "found in a dict": lambda x: x * WEIGHTS[x.shape[0]] if x.shape[0] in WEIGHTS else x,
    "missing in a dict": lambda x: x * WEIGHTS[x.shape[0]],
    "a shape in a set": lambda x: x * 2 if x.shape in {(3,), (5,)} else x,
    "a member of a display": lambda x: x * len({x.shape[0], 3}),
    "a member of a comprehension": lambda x: x * len({2 * n for n in (*x.shape, 3, 5)}),
    "a member of a union": lambda x: x * len({x.shape[0]} | {3, 4}),
    "a member of an operand": lambda x: x * len({3, 4}.union(x.shape)),
    "a member of what is made": lambda x: x * len(frozenset([x.shape[0], 3])),
    "a key of a display": lambda x: x * len({x.shape: 1, (3,): 2, (5,): 3}),
    "a key of what is made": lambda x: x * len(dict.fromkeys((*x.shape, 3))),
    "a key that is set": lambda x: x * len(assigned(x.shape[0])),
    "its hash": lambda x: x * (hash(x.shape[0]) % 5),
    "its own key": lambda x: x * {x.shape[0]: 3.0}[x.shape[0]],
    "returned": lambda x: (x + 1, x.shape[0] * 2, x[1:].shape, [x.size // 3]),
    "returned alone": lambda x: x.shape[0],
}


@pytest.mark.parametrize("name", BODIES)
def test_extents_as_numbers(name: str) -> None:
    body = BODIES[name]
    f = hf.function(body, input_signature=ANY)
    for n in SIZES:
        x = array(n)
        for _ in range(2):
            assert same(outcome(f, x), outcome(body, x)), n


def test_numbers_of_a_concrete_function_in_a_trace() -> None:
    inner = hf.function(lambda x: (x * 2, 3 * x.shape[0]), input_signature=ANY).get_concrete_function()

    def outer(x: Any) -> Any:
        y, n = inner(x[2:])
        return hf.zeros((n, 2)) + hf.sum(y)

    f = hf.function(outer, input_signature=ANY)
    for n in (4, 9, 17):
        assert f(array(n)).shape == (3 * (n - 2), 2)


@pytest.mark.parametrize(
    ("body", "most"),
    [
        (lambda x: hf.sum(hf.reshape(x, (-1, 2)), axis=1) * TEN, 4),
        (lambda x: x * math.sqrt(TEN) if x.shape[0] == 6 else x + TEN, 4),
        (lambda x: x[1:] + x[:3] if x.shape[0] > TEN - 6 else x, 8),
    ],
)
def test_traces_that_began_anew_are_kept(body: Callable[[Any], Any], most: int) -> None:
    f = hf.function(body, input_signature=ANY)
    for _ in range(3):
        for n in range(0, 40, 2):
            x = array(n)
            assert same(outcome(f, x), outcome(body, x)), n
    assert 0 < len(f.concrete_functions()) <= most
    assert len(f.retraces()) < most


HUGE: dict[str, Callable[[Any], Any]] = {
    "a broadcast": lambda x: hf.broadcast_to(hf.sum(x), (x.shape[0] * 2**40, x.shape[0] * 2**40))[1, 1],
    "a product": lambda x: hf.sum(x[:, None] * hf.ones((x.shape[0] * 2**57,))),
    "a count": lambda x: hf.arange(x.shape[0] ** 7 * 2**40)[0],
    "beside an axis of 0": lambda x: hf.broadcast_to(hf.zeros((0, 1)), (0, x.shape[0] * 2**59)),
    "past 64 bits": lambda x: hf.broadcast_to(hf.sum(x), (x.shape[0] ** 4 * 2**50, x.shape[0] ** 5))[0, 0],
}


@pytest.mark.parametrize("name", HUGE)
def test_too_many_elements(name: str) -> None:
    body = HUGE[name]
    f = hf.function(body, input_signature=ANY)
    for n in (3, 2, 9, 100, 3):
        x = array(n)
        eager = outcome(body, x)
        if isinstance(eager, type) and issubclass(eager, MemoryError):
            continue  # what is fused needs none
        assert same(outcome(f, x), eager), n


def test_a_size_that_grows_too_large_for_a_trace_that_serves_smaller_ones() -> None:
    def body(x: Any) -> Any:
        return hf.broadcast_to(hf.sum(x), (x.shape[0] * 2**40, x.shape[0] * 2**10))[1, 1]

    f = hf.function(body, input_signature=ANY)
    for n in (3, 5, 2, 40, 3000, 5, 2**17):
        x = hf.ones((n,))
        assert same(outcome(f, x), outcome(body, x)), n


@pytest.mark.parametrize(
    "body",
    [
        lambda x: hf.cumulative_sum(x),
        lambda x: hf.cumulative_sum(x[1::3]),
        lambda x: hf.sum(hf.reshape(hf.pad(x, ((0, -x.shape[0] % 8),)), (-1, 8)), axis=0),
        lambda x: hf.sort(x[: x.shape[0] // 2]),
        lambda x: hf.reshape(x, (-1, 4))[:, 1],
    ],
)
def test_memory_that_is_divided_is_counted_by_native_code(body: Callable[[Any], Any]) -> None:
    f = hf.function(body, input_signature=ANY)
    for n in (8, 16, 20000, 8, 4096, 64):
        x = array(n)
        assert same(outcome(f, x), outcome(body, x)), n
    kept = len(f.concrete_functions())
    assert kept <= 2
    assert sum(call.calls for call in f._cache.native_calls()) >= 6 - 2 * kept


def test_an_open_extent_is_the_number_that_it_meets_without_a_call() -> None:
    """Where the program is made from a signature alone, a shape that has to broadcast says what the extent is."""
    mean = hf.Variable([1.0, 2.0, 3.0])
    f = hf.function(lambda x: x - mean, input_signature=[hf.TensorSpec([None, None])])
    concrete = f.get_concrete_function()
    assert concrete.structured_outputs.shape == (None, 3)
    assert concrete(hf.ones((2, 3))).tolist() == [[0.0, -1.0, -2.0]] * 2
    assert f(hf.ones((1, 3))).tolist() == [[0.0, -1.0, -2.0]]
    with pytest.raises(hf.errors.ShapeError):
        f(hf.ones((2, 4)))
    both = hf.function(lambda x, y: x * y + mean, input_signature=[hf.TensorSpec([None]), hf.TensorSpec([None])])
    assert both.get_concrete_function().structured_outputs.shape == (3,)
    wrong = hf.function(lambda x: (x - mean) + hf.ones((2,)), input_signature=[hf.TensorSpec([None])])
    with pytest.raises(hf.errors.ShapeError, match="do not broadcast"):
        wrong.get_concrete_function()


def test_without_a_call_each_one_says_whether_open_extents_have_a_divisor() -> None:
    """Where no open extent alone can be such that a shape fits, the program is for calls in which it does."""
    f = hf.function(lambda x: hf.reshape(x, (-1, 6)) * 2.0)
    concrete = f.get_concrete_function(hf.TensorSpec([None, None, None], hf.float32))
    assert concrete.structured_outputs.shape == (None, 6)
    x = np.arange(48, dtype=np.float32)
    assert concrete(x.reshape(2, 8, 3)).numpy().tolist() == (x.reshape(8, 6) * 2).tolist()
    with pytest.raises(hf.errors.ShapeError, match="6"):
        concrete(np.ones((2, 4, 4), np.float32))
    with hf.GradientTape() as tape:
        start = hf.Variable(x.reshape(4, 4, 3))
        end = hf.sum(concrete(start * 1.0) ** 2)
    assert np.allclose(tape.gradient(end, start).numpy(), 8 * x.reshape(4, 4, 3))


def test_equal_extents_are_one_member_and_one_key() -> None:
    def counted(x: Any, y: Any) -> Any:
        return x[0] * len({x.shape[0], y.shape[0]}) + y[0] * len({v.shape: v for v in (x, y)}), {len(x)} == {len(y)}

    f = hf.function(counted)
    for n, m in ((3, 3), (4, 4), (5, 4), (4, 4), (6, 6), (3, 6)):
        assert same(outcome(f, array(n), array(m)), outcome(counted, array(n), array(m))), (n, m)
