"""A signal handler that raises, wherever Python looks for signals as a block is entered or left: nothing stays open."""

from __future__ import annotations

import contextlib
import dis
import functools
import gc
import itertools
import os
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.autodiff import tape
from hybridflow.autograph.runtime import state as flow
from hybridflow.core import context, context_manager, devices, tier_up, transaction
from hybridflow.core.context import current, suspended
from hybridflow.core.context_manager import Block
from hybridflow.errors import of_user
from hybridflow.guards import untracked_code
from hybridflow.guards.guard_builder import active
from hybridflow.runtime.calls import entry, variable_locks
from hybridflow.tracing.trace import Trace
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


@contextlib.contextmanager
def in_the_midst(number: int, act: Callable[[], object]) -> Iterator[None]:
    """Have ``act`` called as a trace of the block records its op of that number."""
    ops = itertools.count(1)

    def look(frame: types.FrameType, event: str, argument: object) -> None:
        if event == "call" and frame.f_code is Trace.record.__code__ and next(ops) == number:
            act()

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        yield
    finally:
        sys.setprofile(before)


def counted(x: hf.Tensor) -> hf.Tensor:
    total = hf.zeros(())
    if hf.sum(x) > 1:
        total = total + 1
        y = total * 2
        if hf.sum(x) > 2:
            total = y + 1
    return total


@pytest.mark.parametrize("number", range(1, 8))
def test_a_block_that_ends_in_the_midst_of_another_trace(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """An interrupt comes as the block of a trace is left, whose generator ends when nobody holds it any more."""
    kept: list[Any] = []
    leave = Block.__exit__

    def leaving(self: Block[Any], kind: Any, error: Any, at: Any) -> None:
        if isinstance(error, Interrupt):
            kept.append(self)
            raise Interrupt
        leave(self, kind, error, at)

    def interrupted(x: hf.Tensor) -> hf.Tensor:
        raise Interrupt

    with monkeypatch.context() as patches:
        patches.setattr(Block, "__exit__", leaving)
        with pytest.raises(Interrupt):
            hf.function(interrupted)(hf.ones(2))
    assert kept
    f = hf.function(counted)
    with in_the_midst(number, kept.clear):
        assert f(hf.ones(3)).item() == 3.0
    assert f(hf.ones(2)).item() == 1.0
    assert not kept and active.recording is None and flow.active.scope is None


def test_an_interrupt_as_the_end_of_a_collection_is_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Python drops it, and what was to be done there."""
    dropped: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda found: dropped.append(found.exc_type))

    def interrupt(*_: object) -> None:
        raise Interrupt

    def collect() -> None:
        at = gc.callbacks.index(untracked_code._collection_stops)
        before, gc.callbacks[at] = gc.callbacks[at], interrupt
        gc.collect()
        gc.callbacks[at] = before

    with caplog.at_level("WARNING", "hybridflow"), in_the_midst(3, collect):
        assert hf.function(counted)(hf.ones(3)).item() == 3.0
    assert dropped and set(dropped) == {Interrupt}
    assert not any("was not recorded" in record.getMessage() for record in caplog.records)


def test_two_interrupts_as_a_trace_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second one comes before the block of the trace is left: the call leaves it."""
    leave = context._Begun.__exit__
    late: list[Any] = []

    def leaving(self: Any, *error: Any) -> None:
        if error[0] is Interrupt and not late:
            late.append(self)
            raise Interrupt
        leave(self, *error)

    def interrupted(x: hf.Tensor) -> hf.Tensor:
        raise Interrupt

    monkeypatch.setattr(context._Begun, "__exit__", leaving)
    with pytest.raises(Interrupt):
        hf.function(interrupted)(hf.ones(2))
    assert late and context.now().trace is None
    late[0]._handlers.__exit__(None, None, None)
    late.clear()
    assert hf.function(counted)(hf.ones(3)).item() == 3.0 and context.reasons.none_here()
