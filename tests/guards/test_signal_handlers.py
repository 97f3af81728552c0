"""Handlers of signals that use hybridflow, in the middle of a first call: they are no part of the trace."""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.autograph.runtime import state as flow
from hybridflow.core import transaction
from hybridflow.core.context import now, tracing, without_handlers
from hybridflow.guards import untracked_code
from hybridflow.guards.guard_builder import active
from hybridflow.runtime import signal_handlers
from hybridflow.tracing.trace import Trace

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="needs POSIX signals")

SIGNAL = getattr(signal, "SIGUSR1", 0)


class Stop(BaseException):
    pass


LINUX = sys.platform.startswith("linux") and sys.maxsize > 2**32


@pytest.fixture
def handled() -> Iterator[Callable[[Callable[[], Any]], list[Any]]]:
    """Has a function called when the signal comes; the list of what it returned."""
    before = signal.getsignal(SIGNAL)
    found: list[Any] = []

    def set_handler(function: Callable[[], Any]) -> list[Any]:
        signal.signal(SIGNAL, lambda number, frame: found.append(function()))
        return found

    yield set_handler
    signal.signal(SIGNAL, before)


def interrupt() -> None:
    """The signal comes here, in the middle of whatever goes on."""
    signal.raise_signal(SIGNAL)


v = hf.Variable([1.0, 2.0])
HITS = [0]


def helper(x: Any) -> Any:
    HITS[0] += 1
    return x + 1.0


def body(x: Any, n: Any, come: Callable[[], None] = interrupt) -> Any:
    """Comes to ``come`` in each kind of place."""
    total = hf.asarray(0.0)
    counted = [0]
    come()
    with hf.GradientTape() as tape:
        y = hf.sum(hf.tanh(x * v))
        come()
    for i in range(n):
        if hf.sum(x) > i:
            come()
            total = total + y
        else:
            total = total - 1.0
        counted[0] += 1
    while total > 100.0:
        come()
        total = total * 0.5
    (gradient,) = hf.vmap(lambda a: (a * 2.0, come())[:1])(tape.gradient(y, v))
    return total, gradient, counted[0]


def in_handler() -> Any:
    """All that a program does."""
    HITS[0] += 1
    a = hf.asarray([1.0, 2.0, 3.0])
    double = hf.function(lambda x: hf.sum(helper(x) * 2.0) + len(HITS))
    with hf.GradientTape() as tape:
        tape.watch(a)
        y = hf.sum(a * a)
    state = now()
    assert state.trace is None and not state.tapes and active.recording is None and not transaction.is_open()
    return double(a).item(), double(a).item(), tape.gradient(y, a).tolist(), type(HITS[0])


def test_what_a_handler_does_is_no_part_of_a_trace(handled: Any) -> None:
    x, n = hf.asarray([0.5, -1.0]), hf.asarray(3)
    expected = [np.asarray(part) for part in body(x, n, lambda: None)]
    silent = hf.function(lambda x, n: body(x, n, lambda: None)).get_concrete_function(x, n)
    found = handled(in_handler)
    before, HITS[0] = len(found), 0
    noisy = hf.function(lambda x, n: body(x, n))
    for _ in range(3):
        for part, wanted in zip(noisy(x, n), expected):
            np.testing.assert_array_equal(np.asarray(part), wanted)
    graph = hf.function(lambda x, n: body(x, n)).get_concrete_function(x, n).graph
    assert [node.op.name for node in graph.nodes] == [node.op.name for node in silent.graph.nodes]
    assert len(found) > before + 4 and set(map(str, found)) == {"(19.0, 19.0, [2.0, 4.0, 6.0], <class 'int'>)"}
    assert HITS[0] == 3 * len(found)  # ``double`` is traced each time, as what it changes is not to be repeated


def test_the_function_that_is_traced_may_be_called(handled: Any) -> None:
    @hf.function
    def f(x: Any) -> Any:
        y = hf.exp(x)
        interrupt()
        return y * 2.0

    depth = [0]

    def again() -> Any:
        depth[0] += 1
        return f(hf.zeros(2)).tolist() if depth[0] < 3 else None

    found = handled(again)
    assert f(hf.zeros(2)).tolist() == [2.0, 2.0]
    assert found[:3] == [None, [2.0, 2.0], [2.0, 2.0]]


def test_a_handler_that_raises_keeps_what_it_has_assigned(handled: Any) -> None:
    w, flag = hf.Variable(1.0), hf.Variable(0.0)

    def stop() -> None:
        flag.assign(flag + 7.0)
        raise Stop

    @hf.function
    def f(x: Any) -> Any:
        w.assign(x)
        interrupt()
        return w * 2.0

    handled(stop)
    for count in (1, 2):
        hf.config.run_functions_eagerly(count == 2)
        try:
            with pytest.raises(Stop):
                f(hf.zeros(()))
        finally:
            hf.config.run_functions_eagerly(False)
        assert flag.numpy() == 7 * count and w.numpy() == 1
        assert now().trace is None and active.recording is None and not transaction.is_open() and gc.isenabled()


def test_handlers_are_what_they_were(handled: Any) -> None:
    own = signal.getsignal(SIGNAL)
    seen: list[Any] = []

    @hf.function
    def f(x: Any) -> Any:
        seen.append(signal.getsignal(SIGNAL))
        return x * 1.0

    handled(lambda: None)
    own = signal.getsignal(SIGNAL)
    f(hf.ones(2))
    assert signal.getsignal(SIGNAL) is own and type(seen[0]) is signal_handlers._Aside and seen[0].handler is own

    def other(*_: Any) -> None:
        pass

    @hf.function
    def sets(x: Any) -> Any:
        signal.signal(SIGNAL, other)
        return x * 1.0

    sets(hf.ones(2))
    assert signal.getsignal(SIGNAL) is other
    signal.signal(SIGNAL, seen[0])  # as code does that puts back, later, what it has seen while tracing
    with without_handlers(is_outermost=True):
        pass
    assert signal.getsignal(SIGNAL) is own


def _flags(number: int) -> bytes:
    action = ctypes.create_string_buffer(512)
    assert ctypes.CDLL(None).sigaction(number, None, action) == 0
    return action.raw[:16] + action.raw[136:140]  # the function, the first of the signals that it blocks, and flags


@pytest.mark.skipif(not LINUX, reason="reads a struct of Linux")
def test_whether_system_calls_go_on_stays_as_it_was(handled: Any) -> None:
    handled(lambda: None)
    for interrupts in (False, True):
        signal.siginterrupt(SIGNAL, interrupts)
        before = _flags(SIGNAL)
        hf.function(lambda x: x + 1.0)(hf.ones(2))
        assert _flags(SIGNAL) == before


def test_only_the_main_thread_has_handlers(handled: Any) -> None:
    handled(lambda: None)
    own, seen = signal.getsignal(SIGNAL), []

    def work() -> None:
        with tracing(Trace("t")):
            seen.append(signal.getsignal(SIGNAL))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [own]


def test_a_collection_whose_end_was_not_told_is_no_silence() -> None:
    """An interrupt of the callback gets lost, and what is read then is not recorded: such a trace answers once."""

    @hf.function
    def f(x: Any) -> Any:
        untracked_code._collection_starts("start", {})
        factor = float(HITS[0])
        untracked_code._collection_starts("start", {})
        untracked_code._collection_stops("stop", {})
        return x * factor

    for HITS[0] in (2, 5, 3):
        assert f(hf.ones(2)).tolist() == [HITS[0]] * 2


_IMPORTS = """
    import sys, threading
    import numpy as np
    import hybridflow as hf

    def hook(event, arguments):
        if event == "import" and threading.get_ident() == main:
            frame = sys._getframe(1)
            while frame is not None and "importlib" in frame.f_code.co_filename:
                frame = frame.f_back
            imported.append((arguments[0], frame.f_code.co_filename, frame.f_lineno))

    imported, main = [], threading.get_ident()
    sys.addaudithook(hook)
    x, v = hf.ones((8, 8)), hf.Variable(hf.ones((8, 8)))
    hf.exp(x), x + x, x @ x, x[1:3], x.numpy(), hf.sum(x), x.repeat(2), hf.take(x, [0, 1], axis=0), hf.asarray(range(3))
    v.assign_add(x), v.assign(v * 2)

    class Model(hf.Module):
        def __init__(self):
            self.w = hf.Variable(hf.ones((8,)))

        @hf.function
        def __call__(self, x):
            return hf.sum(x * self.w)

    @hf.function
    def f(x, n):
        total = hf.asarray(0.0)
        for i in range(n):
            if hf.sum(x) > i:
                total = total + hf.sum(hf.tanh(x @ v))
            else:
                total = total - 1.0
        while total > 100:
            total = total * 0.5
        v.assign_add(x * 0.01)
        hf.print("", end="")
        return total, hf.sort(x), hf.take(x, [0], axis=0), hf.cumulative_sum(x, axis=0)

    model = Model()
    for n in (2, 3, 4, hf.asarray(3), hf.asarray(4)):
        f(x, n), model(x)
        with hf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = hf.sum(hf.sin(x) * hf.take(x, [0, 1, 0], axis=0)[0]) + f(x, n)[0] + model(x)
        tape.gradient(y, [x, v]), tape.jacobian(y, x)
        hf.function(hf.grad(lambda x: hf.sum(f(x, 3)[0])))(x)
    hf.vmap(lambda a: hf.sum(a * a))(x)
    hf.random.normal((3,)), hf.linalg.inv(x + hf.eye(8) * 9)
    try:
        hf.function(lambda x: hf.debugging.assert_positive(x))(x - 9)
    except hf.errors.InvalidArgumentError:
        pass
    f.explain(x, 2), f.retraces(), hf.memory.stats()
    large = hf.ones((1 << 21,))
    step = hf.function(lambda a: hf.exp(a) * 2)
    step(large), step(large)
    print(imported)
"""


@pytest.mark.parametrize("kept", ["new", "again"])
def test_calls_import_nothing_in_the_main_thread(kept: str, tmp_path_factory: Any) -> None:
    """Handlers run there, and would find half of a module where it is imported."""
    folder = tmp_path_factory.getbasetemp() / "cache of handlers"
    environment = {**os.environ, "HF_CACHE_DIR": str(folder)}
    command = [sys.executable, "-c", textwrap.dedent(_IMPORTS)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert done.stdout == "[]\n", (done.stdout[-2000:], done.stderr[-2000:])


def test_a_trace_begins_with_nothing_of_an_earlier_one() -> None:
    """Interrupts in quick succession may come while that is put back what a trace has set."""
    flow.active.scope, flow.active.refusal = object(), hf.errors.TraceError("f", "left behind.")
    active.recording = object()  # type: ignore[assignment]
    doubled = hf.function(lambda x, n: x * 2.0 if n > 1 else x)
    assert doubled(hf.ones(2), hf.asarray(3)).tolist() == [2.0, 2.0]
    assert flow.active.scope is None and flow.active.refusal is None and active.recording is None
