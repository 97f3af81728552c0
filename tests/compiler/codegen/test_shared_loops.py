"""What the bodies of loops and branches do is shared out by the host where it is enough, with the same bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.compiler.pipeline import compile_graph
from hybridflow.runtime import cpu
from hybridflow.runtime.machine import host_target
from tests.support.cutting_host import check_cuts, cutting
from tests.support.teams import threads

_DRAWN = np.random.default_rng(0)


def _drawn(*shape: int) -> Any:
    return hf.asarray(_DRAWN.standard_normal(shape).astype("float32") * 0.1)


ROWS, STATE, W, U = _drawn(3, 128, 128), _drawn(128, 128), _drawn(128, 128), _drawn(128, 128)


def _recurrent(x: Any, h: Any, w: Any, u: Any) -> Any:
    return hf.scan(lambda h, x: hf.tanh(x @ w + h @ u), x, h)


def _gradient(x: Any, h: Any, w: Any, u: Any) -> Any:
    return hf.grad(lambda w, u: hf.sum(_recurrent(x, h, w, u) ** 2), argnums=(0, 1))(w, u)


def _while(x: Any, h: Any, w: Any, u: Any) -> Any:
    return hf.while_loop(lambda k, h: hf.sum(hf.abs(h)) + k < 1e9, lambda k, h: (k + 4e8, hf.tanh(h @ w + u)), (0.0, h))


def _gradient_of_a_while(x: Any, h: Any, w: Any, u: Any) -> Any:
    return hf.grad(lambda w: hf.sum(_while(x, h, w, u)[1] ** 2))(w)


def _branch(x: Any, h: Any, w: Any, u: Any) -> Any:
    return hf.cond(hf.sum(h) > 1e9, lambda: h + w, lambda: hf.tanh(h @ w) @ u)


def _loop_in_a_loop(x: Any, h: Any, w: Any, u: Any) -> Any:
    def outer(h: Any, row: Any) -> Any:
        return hf.foldl(lambda h, r: hf.tanh(h @ w + r), x, h) + row

    return hf.scan(outer, x, h), h @ u  # the product may run beside the loop, and does not


def _sorted_and_summed(x: Any, h: Any, w: Any, u: Any) -> Any:
    def turn(h: Any, row: Any) -> Any:
        return hf.tanh(hf.cumulative_sum(hf.sort(row @ w, axis=-1), axis=1) + hf.sum(h @ u, axis=0) - hf.sum(h))

    return hf.scan(turn, x, h)


def _checked(x: Any, h: Any, w: Any, u: Any) -> Any:
    def turn(h: Any, row: Any) -> Any:
        places = hf.astype(hf.argmax(row @ w, axis=-1), hf.int64) + hf.astype(hf.sum(h) > 1e9, hf.int64) * 999
        return hf.take(hf.tanh(h @ u), places, axis=0)

    return hf.scan(turn, x, h)


PROGRAMS: list[Callable[..., Any]] = [
    _recurrent, _gradient, _while, _gradient_of_a_while, _branch, _loop_in_a_loop, _sorted_and_summed, _checked
]  # fmt: skip


def _bits(value: Any) -> list[bytes]:
    return [np.asarray(part).tobytes() for part in hf.tree.leaves(value)]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_any_number_of_threads(program: Callable[..., Any]) -> None:
    expected = _bits(program(ROWS, STATE, W, U))
    for number in (1, 2, 7):
        with threads(number):
            compiled = hf.function(program)
            assert _bits(compiled(ROWS, STATE, W, U)) == expected
            assert _bits(compiled(ROWS, STATE, W, U)) == expected


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_any_cuts(program: Callable[..., Any]) -> None:
    concrete = hf.function(program).get_concrete_function(ROWS, STATE, W, U)
    arguments = [ROWS, STATE, W, U]
    arrays = [x.numpy() for x in concrete.staged._inputs(arguments)]
    compiled = compile_graph(concrete.graph, host_target.target())
    check_cuts(compiled, arrays, seeds=(0, 1))
    with cutting(0) as cutter:
        cpu.load(compiled).run(arrays)
    assert any(units > 1 for units, _ in cutter.loops)  # something was handed out


def test_a_failed_check_in_a_shared_turn() -> None:
    """The error is that of one thread, whoever finds it."""

    def wrong(x: Any, h: Any, w: Any, u: Any) -> Any:
        def turn(h: Any, row: Any) -> Any:
            places = hf.astype(hf.sum(row @ w, axis=-1) > -1e9, hf.int64) * 999
            return hf.take(hf.tanh(h @ u), places, axis=0)

        return hf.scan(turn, x, h)

    for number in (1, 2, 7):
        with threads(number), pytest.raises(IndexError, match="an index is out of range"):
            hf.function(wrong)(ROWS, STATE, W, U)


def test_small_turns_are_nobody_elses() -> None:
    """Bodies that do little have no second form: their programs are compiled as ever."""

    def small(x: Any, h: Any) -> Any:
        return hf.scan(lambda h, x: hf.tanh(x @ h), x, h)

    graph = hf.function(small).get_concrete_function(_drawn(4, 8, 8), _drawn(8, 8)).graph
    assert not compile_graph(graph, host_target.target()).sharing
