"""Everything at once, and interrupts at any time: updates are whole, nothing is lost, and calls go on as before."""

from __future__ import annotations

import contextlib
import gc
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.core.context import State, busy, current, pop_tape
from hybridflow.errors import IndexRangeError
from tests.jit.test_function_threads import run_all
from tests.support.paths import ROOT

SECONDS = 1.5
ENOUGH = 20  # rounds that were interrupted
SMALL, LARGE = 16, 300_000  # elements of a variable: below and above what a call computes without the GIL


def is_one_value(array: np.ndarray) -> bool:
    return bool((array == array[0]).all())


@pytest.mark.slow
@pytest.mark.parametrize("n", [SMALL, LARGE])
def test_steps_readers_tapes_and_new_shapes_at_once(n: int) -> None:
    """Variables of equal elements stay such, seen from anywhere; no step is lost; what was read earlier stays."""
    v, w, steps = hf.Variable(np.zeros(n)), hf.Variable(np.zeros(n)), [0, 0]
    one = hf.asarray(np.ones(n))

    @hf.function
    def step(x: Any) -> Any:
        v.assign_add(x)
        w.assign(w + x)
        return hf.min(v), hf.max(v), hf.min(w), hf.max(w)

    @hf.function
    def look(x: Any) -> Any:
        y = v * x
        return hf.min(y), hf.max(y), y[:3]

    @hf.function
    def any_shape(x: Any) -> Any:
        return hf.sum(x * x) + v[0] * 0

    end = time.monotonic() + SECONDS

    def stepping(k: int) -> Callable[[], None]:
        def work() -> None:
            while time.monotonic() < end or not steps[k]:
                low, high, w_low, w_high = step(one)
                steps[k] += 1
                assert low == high and w_low == w_high

        return work

    def reading() -> None:
        last = 0.0
        while time.monotonic() < end:
            held = v.value()
            copy = held.numpy().copy()
            assert is_one_value(copy) and copy[0] >= last
            last = copy[0]
            assert is_one_value(w.numpy())
            low, high, part = look(one)
            assert low == high and is_one_value(part.numpy())
            assert np.array_equal(held.numpy(), copy)

    def with_tapes() -> None:
        while time.monotonic() < end:
            with hf.GradientTape() as tape:
                low, high, part = look(one)
                y = hf.sum(part)
            g = tape.gradient(y, v).numpy()
            assert low == high and g[:3].tolist() == [1.0] * 3 and not g[3:].any()

    def with_new_shapes() -> None:
        k = 0
        while time.monotonic() < end:
            k += 1
            x = np.arange(float(1 + k % 40))
            assert any_shape(x).item() == (x * x).sum()
            if k % 10 == 0:
                any_shape.cache_clear()

    run_all([stepping(0), stepping(1), reading, reading, with_tapes, with_new_shapes])
    assert sum(steps) > 0 and v.numpy()[0] == w.numpy()[0] == sum(steps) and busy.value == 0


# ---- interrupts


class Work:
    """Calls of many kinds, and what must hold between any two of them however they ended."""

    def __init__(self) -> None:
        self.v, self.w = hf.Variable(np.zeros(40)), hf.Variable(np.zeros(40))
        self.x, self.bad = hf.asarray(np.ones(40)), hf.asarray(np.array([1, 99]))
        self.rounds = self.left_open = self.lost = 0
        v, w = self.v, self.w

        @hf.function
        def step(x: Any) -> Any:
            v.assign_add(x)
            w.assign_add(x)
            return hf.sum(v)

        @hf.function
        def failing(x: Any, i: Any) -> Any:
            v.assign_add(x)
            w.assign_add(x * hf.take(x, i)[0])
            return hf.sum(v)

        self.step, self.failing, self.loss = step, failing, hf.function(lambda x: hf.sum(hf.tanh(x * v) * x))

    def __call__(self) -> None:
        """One round: native calls, eager ones, a tape, an error, a first call."""
        self.rounds += 1
        for _ in range(20):
            self.step(self.x)
        hf.sum(hf.tanh(self.x) + self.x)
        with hf.GradientTape() as tape:
            y = self.loss(self.x)
        tape.gradient(y, self.v)
        with contextlib.suppress(IndexRangeError):
            self.failing(self.x, self.bad)
        rounds = self.rounds
        hf.function(lambda x: x * rounds + self.v)(self.x)

    def check(self) -> None:
        v, w = self.v.numpy(), self.w.numpy()
        assert is_one_value(v) and np.array_equal(v, w), "half of an update"
        # Python cannot promise that a with block is left once an interrupt arrives as it is entered or left.
        for tape in current.tapes:
            self.left_open += 1
            pop_tape(tape)
        assert current.tapes == () and current.trace is None, "a trace goes on"

    def works_as_before(self, interrupts: int) -> None:
        assert interrupts > ENOUGH and self.left_open <= interrupts // 5
        gc.collect()
        # Nor that a finalizer runs where an interrupt arrives at its first instruction: calls then ask their context.
        assert busy.value <= self.lost, "calls would look at their context for ever"
        before = self.v.numpy()[0]
        assert self.step(self.x).item() == 40 * (before + 1)
        self.check()

    def note_lost(self, unraisable: Any) -> None:
        """Count finalizers of states that an interrupt keeps from running."""
        self.lost += unraisable.object is State.__del__
        sys.__unraisablehook__(unraisable)


class Interrupt(BaseException):
    """Not an Exception: nothing may swallow it."""


def run(program: str) -> str:
    """Run a program that interrupts ``Work``, in a process of its own: finalizers are interrupted as well, whose errors
    go to standard error in any case."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(_BEGIN) + textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=900,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


_BEGIN = """
    import ctypes, faulthandler, random, signal, sys, threading, time
    from tests.runtime.threads.test_stress import ENOUGH, Interrupt, Work

    faulthandler.dump_traceback_later(600, exit=True)
    work, rng, whole = Work(), random.Random(1), 0
    sys.unraisablehook = work.note_lost
    work()
"""


@pytest.mark.slow
def test_interrupts_from_another_thread() -> None:
    """An exception set asynchronously arrives between any two byte codes."""
    out = run("""
        ready, stop, torn = threading.Event(), threading.Event(), []

        def loop():
            global whole
            while not stop.is_set():
                try:
                    ready.set()
                    while True:
                        work()
                except Interrupt:
                    pass
                try:  # behind the except block, whose traceback holds what was going on
                    work.check()
                    whole += 1
                except AssertionError as error:
                    torn.append(str(error))
                except Interrupt:
                    pass

        def interrupt():
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(Interrupt))

        thread = threading.Thread(target=loop, daemon=True)
        thread.start()
        ready.wait(300)
        end = time.monotonic() + 3
        while time.monotonic() < end or whole <= ENOUGH:
            time.sleep(rng.random() * 0.02)
            interrupt()
        stop.set()
        while thread.is_alive():
            interrupt()
            thread.join(0.05)
        assert not torn, set(torn)
        work.works_as_before(whole)
        print("whole")
        """)
    assert out == "whole\n"


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers that send signals")
def test_interrupts_by_signals() -> None:
    """Ctrl-C at random times: the handler runs wherever Python looks for signals."""
    out = run("""
        def on_alarm(number, frame):
            while frame is not None:  # on a busy machine the next alarm comes before the timer is stopped
                if frame.f_code is Work.__call__.__code__:
                    raise Interrupt
                frame = frame.f_back

        signal.signal(signal.SIGALRM, on_alarm)
        end = time.monotonic() + 3
        while time.monotonic() < end or whole <= ENOUGH:
            try:
                # Again and again: where Python cannot raise (in a finalizer), it prints the exception instead.
                signal.setitimer(signal.ITIMER_REAL, 0.0002 + rng.random() * 0.02, 0.02)
                while True:
                    work()
            except Interrupt:
                signal.setitimer(signal.ITIMER_REAL, 0)
            work.check()  # behind the except block, whose traceback holds what was going on
            whole += 1
        work.works_as_before(whole)
        print("whole")
        """)
    assert out == "whole\n"
