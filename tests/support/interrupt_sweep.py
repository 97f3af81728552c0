"""Interrupts anywhere in a trace, a compilation and a run: no crash, no hang, and everything goes on as before.

``python -m tests.support.interrupt_sweep --seconds 3600`` interrupts for an hour, in processes of their own;
``--attempts N`` stops after so many. What interrupts is Ctrl-C, a handler that raises, or an exception that is set for
the thread, once or in a burst; what was raised is kept in cycles, as debuggers and notebooks keep it. After each
attempt all that could have stayed open is looked at. It prints what went wrong, with the numbers that repeat it.

An interrupt may come while Python runs a finalizer or a callback of a weak reference: Python drops it there, says so
(``sys.unraisablehook``) and goes on, in every program. Such are counted as ``dropped by Python``; what the work itself
drops is ``lost``, and wrong.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import ctypes
import faulthandler
import gc
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import hybridflow as hf
from hybridflow.autograph.runtime import state as flow
from hybridflow.core import transaction
from hybridflow.core.context import busy, everywhere, now, reasons
from hybridflow.guards.guard_builder import active
from hybridflow.runtime import uninterruptible

HANG = 600  # seconds for one attempt
BURST = 0.0005  # seconds between two interrupts of a burst
ATTEMPTS = 50  # of a process: crashes come later than what leads to them
LATE = 0.0005  # seconds from a request for an exception in the thread until it must be raised
KINDS = ("sigint", "alarm", "async")
COUNTS = ("single", "singles that hit", "burst", "bursts that hit", "after the work", "dropped by Python")


class Stop(BaseException):
    pass


# ---- what is interrupted: each makes something new, and returns what it is to give


class Work:
    """What the attempts of a process share."""

    def __init__(self, number: int) -> None:
        self.number = number  # none that an earlier process had: its kernels are in the folder of the sweep
        self.x = hf.asarray(np.arange(-2.0, 4.0).reshape(2, 3) / 4)  # sums are exact
        self.total = hf.Variable(np.zeros(5))
        self.pair = hf.Variable(np.zeros(40_000)), hf.Variable(np.zeros(40_000))

        @hf.function
        def long(n: Any) -> Any:
            return hf.fori_loop(0, n, lambda i, c: hf.tanh(c) + 0.5, hf.asarray(1.0))

        @hf.function
        def both(step: Any) -> Any:
            for v in self.pair:
                v.assign_add(step)
            return self.pair[0][0] - self.pair[1][-1]

        self.long, self.both = long, both
        self.called = hf.function(lambda x: hf.sum(x * 2.0))
        self.long(hf.asarray(3)), self.both(hf.asarray(0.0)), self.called(self.x)

    def next(self) -> float:
        self.number += 1
        return float(self.number)

    def trace(self) -> Any:
        k, helper = self.next(), self.helper
        counted = [0]

        @hf.function
        def f(x: Any, n: Any) -> Any:
            total = hf.zeros((), dtype=x.dtype)
            for i in range(n):
                if hf.sum(x) > i:
                    total = total + hf.sum(helper(x))
                else:
                    total = total - k
            for _ in range(12):
                x = hf.sin(helper(x)) * 0.5
            counted[0] += 1
            return total + hf.sum(x)

        return f(self.x, hf.asarray(3))

    def helper(self, x: Any) -> Any:
        with contextlib.suppress(KeyError):
            return x + self.next.__name__.__len__() * 0.25
        return x

    def compile(self) -> Any:
        k = self.next()

        @hf.function
        def f(x: Any) -> Any:
            y = x @ hf.matrix_transpose(x)
            for i in range(6):
                y = hf.tanh(y @ y) + k * 0.001 + i
            return hf.sort(y, axis=0), hf.cumulative_sum(y, axis=1), hf.nn.softmax(y)

        return f(self.x)[0]

    def run(self) -> Any:
        self.total.assign_add(1.0)
        self.both(hf.asarray(1.0))
        for _ in range(200):
            self.called(self.x)
        self.both(hf.asarray(1.0))
        self.long(hf.asarray(2_000_000))
        self.both(hf.asarray(1.0))
        return self.called(self.x)

    def derive(self) -> Any:
        k = self.next()
        with hf.GradientTape() as tape:
            tape.watch(self.x)
            y = self.x
            for i in range(10):
                y = hf.sin(y * 1.5) + hf.exp(y * 0.1) + k * 0.01 + i
            loss = hf.sum(hf.function(lambda y: y * k)(y))
        gradient = tape.gradient(loss, self.x)
        assert gradient is not None
        return hf.vmap(lambda row: hf.sum(row * k))(gradient)

    # ---- what has to hold then

    def check(self) -> None:
        assert now().trace is None and not now().tapes, "a trace or a tape is open"
        assert reasons.none_here(), f"{busy.value} states are counted, {everywhere.value} of them of all contexts"
        k = self.next()
        assert hf.function(lambda x: x * k)(self.x)[1, 2].item() == 0.75 * k, "a wrong value of a new function"
        assert active.recording is None and flow.active.scope is None, "reads are recorded"
        assert not transaction.is_open(), "a transaction is open"
        end = time.monotonic() + HANG / 2
        while uninterruptible._jobs:  # it holds the collector back
            assert time.monotonic() < end, "work never ends"
            time.sleep(0.001)
        assert gc.isenabled(), "the collector is off"
        assert signal.getsignal(signal.SIGALRM) is stop, "another handler"
        assert sys.gettrace() is None, "calls are traced"
        for v in (self.total, *self.pair):
            array = v.numpy()
            assert (array == array[0]).all(), "a variable is torn"
        assert self.pair[0].numpy()[0] == self.pair[1].numpy()[0], "one of two variables is updated"
        assert self.called(self.x).item() == float(np.sum(self.x.numpy() * 2.0)), "a wrong value"
        assert self.both(hf.asarray(0.0)).item() == 0.0, "a wrong difference"

    def check_locks(self) -> None:
        """Nothing that other threads need stays taken."""
        ends: list[Any] = []

        def other() -> None:
            k = self.next()
            ends.append(hf.function(lambda x: hf.tanh(x) * k)(self.x).shape)

        thread = threading.Thread(target=other, daemon=True)
        thread.start()
        thread.join(HANG / 2)
        assert ends == [(2, 3)], "another thread waits"


PHASES = ("trace", "compile", "run", "derive")


# ---- interrupts


came: list[tuple[float, str]] = []  # when interrupts were raised, and where
dropped: list[object] = []  # those which Python dropped


def stop(number: int, frame: Any) -> None:
    """The handler of signals."""
    came.append((time.perf_counter(), "".join(traceback.format_stack(frame, 8))))
    raise Stop if number == signal.SIGALRM else KeyboardInterrupt


def note_dropped(unraisable: Any) -> None:
    """Python's hook for what is raised where nobody can catch it."""
    if isinstance(unraisable.exc_value, (Stop, KeyboardInterrupt)):
        dropped.append(None)
    else:
        sys.__unraisablehook__(unraisable)


def interrupt_after(kind: str, delay: float, burst: bool, over: threading.Event, threads: list[Any]) -> None:
    """Interrupt the main thread after so many seconds, until it is ``over``."""
    if kind == "alarm":
        signal.setitimer(signal.ITIMER_REAL, delay, BURST if burst else 0)
        return
    main, pid = threading.get_ident(), os.getpid()

    def interrupt() -> None:
        over.wait(delay)
        while not over.is_set():
            if kind == "sigint":
                os.kill(pid, signal.SIGINT)
            else:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(main), ctypes.py_object(Stop))
                came.append((time.perf_counter(), ""))
            if not burst:
                return
            time.sleep(BURST)

    threads.append(threading.Thread(target=interrupt, daemon=True))
    threads[0].start()


def quiet(over: threading.Event, threads: list[Any]) -> None:
    """Have no interrupt come any more; those that still do are over."""
    while True:
        try:
            signal.setitimer(signal.ITIMER_REAL, 0)
            over._flag = True  # type: ignore[attr-defined]  # its methods have locks, which interrupts leave taken
            while any(thread.is_alive() for thread in threads):
                time.sleep(0.0005)
            for _ in range(1000):
                pass
            return
        except (Stop, KeyboardInterrupt):
            continue


def attempt(work: Callable[[], Any], kind: str, delay: float, burst: bool) -> tuple[float, float] | None:
    """When the work began and ended, or None where it was interrupted; what was raised is in a cycle with a frame."""
    took: list[tuple[float, float]] = []
    over, threads = threading.Event(), []
    for _ in range(3):  # an interrupt may come between any two lines, and one of a burst behind another
        try:
            if not over.is_set():
                _interrupted(work, kind, delay, burst, over, threads, took)
            quiet(over, threads)
        except (Stop, KeyboardInterrupt):
            over._flag = True  # type: ignore[attr-defined]
    return took[0] if took else None


def _interrupted(
    work: Callable[[], Any], kind: str, delay: float, burst: bool, over: threading.Event, threads: list[Any], took: Any
) -> None:
    begin = time.perf_counter()
    try:
        interrupt_after(kind, delay, burst, over, threads)
        work()
        took.append((begin, time.perf_counter()))
    except (Stop, KeyboardInterrupt) as error:
        kept = [error]
        kept.append(kept)  # type: ignore[arg-type]


# ---- processes


def child(seed: int, attempts: int, seconds: float) -> None:
    """Make attempts and print what came of them, as JSON."""
    faulthandler.enable()
    warnings.simplefilter("ignore")
    rng = random.Random(seed)
    if rng.random() < 0.5:
        gc.set_threshold(rng.choice([1, 10, 100]))
    sys.setswitchinterval(rng.choice([1e-5, 5e-3]))
    signal.signal(signal.SIGALRM, stop)
    # Shells have what is in the background ignore it. Python's own handler is run in other places than others are.
    signal.signal(signal.SIGINT, rng.choice([stop, signal.default_int_handler]))
    sys.unraisablehook = note_dropped
    hf.config.set_num_threads(rng.choice([1, 2]))
    counts: collections.Counter[str] = collections.Counter(dict.fromkeys(COUNTS, 0))
    took: dict[str, float] = {}
    work = Work(seed * 100_000)
    end = time.monotonic() + seconds
    for number in range(attempts):
        if time.monotonic() > end:
            break
        phase, kind, burst = rng.choice(PHASES), rng.choice(KINDS), rng.random() < 0.25
        function = getattr(work, phase)
        print(json.dumps([seed, number, phase, kind, burst]), file=sys.stderr, flush=True)
        faulthandler.dump_traceback_later(HANG, exit=True)
        if phase not in took:
            begin = time.perf_counter()
            function()
            took[phase] = time.perf_counter() - begin
        came.clear(), dropped.clear()
        times = attempt(function, kind, rng.uniform(0.0, took[phase]), burst)
        counts["burst" if burst else "single"] += 1
        if times is None:
            counts["bursts that hit" if burst else "singles that hit"] += 1
        else:  # later times are shorter, and interrupts are to come within
            took[phase] = min(took[phase], times[1] - times[0])
            lost = [(when, where) for when, where in came if when < times[1] - LATE]
            counts["dropped by Python"] += bool(dropped)
            counts["after the work"] += len(came) > len(lost)
            assert len(lost) <= len(dropped), f"lost {times[1] - lost[0][0]} s before the end:\n{lost[0][1]}"
        if rng.random() < 0.3:
            gc.collect()
        work.check()
        if rng.random() < 0.2:
            work.check_locks()
    work.check_locks()
    faulthandler.cancel_dump_traceback_later()
    print(json.dumps(counts))


def _caches(seed: int, folder: str) -> str:
    """Where a process finds the code that all processes compile: three of four; every fourth compiles that as well."""
    return "off" if seed % 4 == 0 else folder


def sweep(seed: int, seconds: float, attempts: int, say: Callable[[str], object] = print) -> tuple[Any, list[str]]:
    """What came of so many attempts, or of those in so many seconds, and what went wrong."""
    total: collections.Counter[str] = collections.Counter()
    wrong: list[str] = []
    end = time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() < end and (left := attempts - total["single"] - total["burst"]) > 0:
            command = [sys.executable, "-m", "tests.support.interrupt_sweep", "--child", str(seed)]
            command += ["--seconds", str(end - time.monotonic()), "--attempts", str(left)]
            environment = {**os.environ, "HF_CACHE_DIR": _caches(seed, folder)}
            done = subprocess.run(command, capture_output=True, text=True, env=environment)
            if done.returncode == 0:
                total.update(json.loads(done.stdout))
            else:
                total["single"] += 1
                wrong.append(f"seed {seed}: ended with {done.returncode}\n{done.stderr[-6000:]}")
                say(wrong[-1])
            seed += 1
    return total, wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--attempts", type=int, default=1 << 30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--child", type=int, help="run the attempts of this seed, in this process")
    options = parser.parse_args()
    if options.child is not None:
        child(options.child, min(ATTEMPTS, options.attempts), options.seconds)
        return 0
    total, wrong = sweep(options.seed, options.seconds, options.attempts)
    print(f"{dict(total)}, {len(wrong)} processes failed, Python {sys.version.split()[0]}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
