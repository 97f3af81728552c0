"""A signal handler that raises, wherever Python looks for signals as a block is entered or left: nothing stays open."""

from __future__ import annotations

import contextlib
import dis
import functools
import itertools
import os
import sys
import types

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.autodiff import tape
from hybridflow.core import context, context_manager, devices, tier_up, transaction
from hybridflow.core.context import current, suspended
from hybridflow.errors import of_user
from hybridflow.guards import untracked_code
from hybridflow.runtime.calls import entry, variable_locks
from tests.support.paths import ROOT

WHERE = {os.path.basename(module.__file__ or "") for module in (tape, context, devices, transaction, variable_locks)}
OURS = (os.path.dirname(hf.__file__), str(ROOT / "tests"))


class Interrupt(BaseException):
    pass


@functools.cache
def looks(code):
    """Where the interpreter looks for signals: as a function begins, and after each call."""
    instructions = list(dis.get_instructions(code))
    return {
        after.offset
        for before, after in itertools.pairwise(instructions)
        if before.opname.startswith(("RESUME", "CALL"))
    }


def interrupted(block, at, exits=False, where=WHERE):
    """Run ``block`` and raise where the interpreter looks for signals for the ``at``-th time, in files of the names
    ``where``; whether it came so far.

    As an ``__exit__`` in Python begins only where ``exits`` is true: Python does not promise that it ever runs.
    """
    count = 0

    def local(frame, event, argument):
        nonlocal count
        code = frame.f_code
        if event == "opcode" and frame.f_lasti in looks(code):
            if not exits and code.co_name == "__exit__" and frame.f_lasti == min(looks(code)):
                return local
            count += 1
            if count == at:
                sys.settrace(None)
                raise Interrupt
        return local

    def every(frame, event, argument):
        path = frame.f_code.co_filename
        if path.startswith(OURS) and os.path.basename(path) in where and frame.f_code.co_name != "__del__":
            frame.f_trace_opcodes = True
            return local
        return None

    before = sys.gettrace()
    sys.settrace(every)
    try:
        block()
    except Interrupt:
        return True
    finally:
        sys.settrace(before)
    return False


def in_tape():
    with hf.GradientTape():
        pass


@pytest.fixture
def in_python(monkeypatch):
    """Tapes are opened and closed in Python."""
    for _ in range(tier_up.TAPES.threshold):
        hf.GradientTape()  # native code is loaded by now
    monkeypatch.setattr(hf.GradientTape, "__enter__", hf.GradientTape._enter)
    monkeypatch.setattr(hf.GradientTape, "__exit__", hf.GradientTape._exit)


def in_device():
    with hf.device("cpu"):
        pass


def without_trace():
    with suspended():
        pass


@pytest.mark.slow
@pytest.mark.parametrize("block", [in_tape, in_device, without_trace])
def test_no_block_stays_open(block, in_python):
    interrupted(block, 0)  # Python 3.12 does not trace the instructions of the first run
    for at in range(1, 200):
        came_so_far = interrupted(block, at)
        assert (current.tapes, current.trace, current.device) == ((), None, None), at
        if not came_so_far:
            break
    assert at > 5


@pytest.mark.slow
def test_a_gradient_that_is_interrupted_anywhere_leaves_no_tape_open():
    if entry.enable() is None:
        pytest.skip("tapes are opened in Python")
    x = hf.asarray([1.0, 2.0])

    def gradient():
        with hf.GradientTape() as t:
            t.watch(x)
            y = hf.sum(x * x)
        return t.gradient(y, x)

    where = {*WHERE, os.path.basename(__file__)}
    for _ in range(4):
        gradient()
    interrupted(gradient, 0, True, where)
    for at in itertools.count(1):
        came_so_far = interrupted(gradient, at, True, where)
        assert current.tapes == (), at
        if not came_so_far:
            break
    np.testing.assert_array_equal(gradient(), [2.0, 4.0])


def test_a_transaction_is_over_whatever_happens():
    v, w = hf.Variable([1.0, 2.0]), hf.Variable([3.0])

    def body():
        v.assign_add(1.0)
        w.assign_add(1.0)
        v.assign_add(1.0)
        raise ValueError

    def call():
        with contextlib.suppress(ValueError):
            transaction.run(body)

    interrupted(call, 0)
    for at in range(1, 300):
        came_so_far = interrupted(call, at)
        assert not transaction.is_open(), at
        assert v.numpy().tolist() == [1.0, 2.0] and w.numpy().tolist() == [3.0], at
        if not came_so_far:
            break
    assert at > 20


@pytest.mark.parametrize("way", ["running_in_place", "at_once"])
def test_no_variable_stays_taken(way):
    gates = [variable_locks.VariableLock() for _ in range(3)]

    def call():
        if way == "at_once":
            variable_locks.try_with_lock(gates[0], lambda: True)
        else:
            variable_locks.run_in_place(gates, lambda: True)

    interrupted(call, 0)
    for at in range(1, 100):
        came_so_far = interrupted(call, at)
        assert [gate.words[:] for gate in gates] == [[0, 0, 0]] * 3, at
        if not came_so_far:
            break
    assert at > 2


def test_an_interrupt_between_lines_stays_what_it_is():
    """Instructions of no line have none in tracebacks, which are cut to the user's frames."""

    def interrupt():
        raise KeyboardInterrupt

    without_lines = types.FunctionType(interrupt.__code__.replace(co_linetable=b""), {})
    with pytest.raises(KeyboardInterrupt):
        hf.function(lambda x: without_lines())(hf.ones(2))
    with pytest.raises(KeyboardInterrupt) as caught:
        without_lines()
    entry = of_user(caught.value).__traceback__
    while entry.tb_next is not None:
        entry = entry.tb_next
    assert entry.tb_frame.f_code is without_lines.__code__


def test_calls_are_watched_no_more_after_an_interrupt_at_the_end_of_a_trace(monkeypatch):
    """It comes as the block is left, before the generator goes on that ends it."""
    leave, kept = context_manager.Block.__exit__, []

    def interrupted(self, *error):
        if self._generator.gi_code is untracked_code._trace_calls.__wrapped__.__code__:
            kept.append(self)  # as an exception does that somebody keeps
            raise Interrupt
        return leave(self, *error)

    before = sys.gettrace()
    with monkeypatch.context() as patch:
        patch.setattr(context_manager.Block, "__exit__", interrupted)
        patch.setattr(untracked_code, "_tool", lambda: None)  # as on Python 3.11
        with pytest.raises(Interrupt):
            hf.function(lambda x: x + 1)(hf.constant(1.0))
        assert kept and sys.gettrace() is before
    kept.clear()
    assert sys.gettrace() is before
    assert hf.function(lambda x: x + 1)(hf.constant(1.0)) == 2.0
