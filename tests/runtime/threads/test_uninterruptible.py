"""Work in threads of its own: interrupts leave it alone, and it leaves those who wait for it alone."""

from __future__ import annotations

import _thread
import contextvars
import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from hybridflow.runtime import uninterruptible

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs POSIX signals")


class Stop(BaseException):
    pass


def signal_until(handled: threading.Event) -> None:
    """In work that has begun, however long that took: send signals to the main thread until one was handled.  One that
    comes right before Python waits for a lock does not wake it.  The next one may come within the handler: that asks in
    one operation in C, as ``list.pop`` is, whether it is the first."""
    main = threading.main_thread().ident
    assert main is not None
    while not handled.wait(0.05):
        signal.pthread_kill(main, signal.SIGALRM)


@pytest.fixture
def interrupt() -> Iterator[Callable[[], None]]:
    """For work that has begun: raises Stop in the main thread, once."""
    wanted: list[threading.Event] = []

    def stop(*_: Any) -> None:
        try:
            wanted.pop().set()
        except IndexError:
            return
        raise Stop

    def send() -> None:
        handled = threading.Event()
        wanted.append(handled)
        signal_until(handled)

    before = signal.signal(signal.SIGALRM, stop)
    yield send
    signal.signal(signal.SIGALRM, before)


def run(program: str, **environment: str) -> str:
    """What a program prints, which has to end by itself."""
    command = [sys.executable, "-X", "faulthandler", "-c", textwrap.dedent(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env={**os.environ, **environment})
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(params=["thread", "in place"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    def refused(*_: Any) -> None:
        raise RuntimeError("can't start new thread")

    if request.param == "in place":
        monkeypatch.setattr(_thread, "start_new_thread", refused)
    return str(request.param)


def test_results_errors_and_nested_work(way: str) -> None:
    here = threading.get_ident()

    def failing() -> None:
        raise KeyError("why")

    outer, inner = uninterruptible.run_uninterruptible(
        lambda: (threading.get_ident(), uninterruptible.run_uninterruptible(threading.get_ident))
    )
    assert outer == inner and (outer == here) == (way == "in place")
    assert (
        uninterruptible.run_uninterruptible(uninterruptible.is_uninterruptible)
        and not uninterruptible.is_uninterruptible()
    )
    for _ in range(2):
        with pytest.raises(KeyError, match="why"):
            uninterruptible.run_uninterruptible(failing)
    assert uninterruptible.run_uninterruptible(
        lambda: uninterruptible.run_concurrently([lambda k=k: k * k for k in range(5)])
    ) == [0, 1, 4, 9, 16]
    with pytest.raises(KeyError, match="why"):
        uninterruptible.run_uninterruptible(lambda: uninterruptible.run_concurrently([lambda: 1, failing, lambda: 2]))
    assert not uninterruptible._jobs


def test_settings_are_those_of_the_caller(way: str) -> None:
    variable = contextvars.ContextVar("variable", default=0)
    variable.set(3)
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        uninterruptible.run_uninterruptible(lambda: np.ones(1) / variable.get() / 0)


def test_below_an_import_it_is_done_in_place(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work that imports would wait for the lock of the very module."""
    code = """
    import threading
    from hybridflow.runtime import uninterruptible
    def work():
        import importing_itself
        return threading.get_ident()
    found = uninterruptible.run_uninterruptible(work)
"""
    (tmp_path / "importing_itself.py").write_text(textwrap.dedent(code))
    monkeypatch.syspath_prepend(tmp_path)
    import importing_itself  # type: ignore[import-not-found]

    assert importing_itself.found == threading.get_ident()


def test_an_interrupt_leaves_at_once_and_the_work_goes_on(interrupt: Callable[[], None]) -> None:
    go_on, done = threading.Event(), threading.Event()

    def work() -> None:
        interrupt()
        assert go_on.wait(300)
        done.set()

    for _ in range(20):
        with pytest.raises(Stop):
            uninterruptible.run_uninterruptible(work)
    assert len(uninterruptible._jobs) == 20
    go_on.set()
    assert done.wait(300)
    while uninterruptible._jobs:
        time.sleep(0.01)


def test_a_handler_may_wait_for_work_of_its_own() -> None:
    made: list[int] = []
    handled = threading.Event()

    @uninterruptible.once
    def thing() -> float:
        signal_until(handled)  # the handler is about to wait for this very work
        made.append(1)
        return 1.0

    def handler(*_: Any) -> None:
        try:
            wanted.pop().set()
        except IndexError:
            return
        found.append(thing())

    found: list[float] = []
    wanted = [handled]
    before = signal.signal(signal.SIGALRM, handler)
    try:
        assert thing() == 1.0 and found == [1.0] and made == [1]
    finally:
        signal.signal(signal.SIGALRM, before)


def test_once_is_once_for_all_threads() -> None:
    made = []

    @uninterruptible.once
    def thing() -> int:
        time.sleep(0.02)
        made.append(1)
        return len(made)

    assert thing.made == []
    threads = [threading.Thread(target=thing) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert thing() == 1 and made == [1] == thing.made


def test_finalizers_of_the_callers_objects_run_in_its_thread() -> None:
    program = """
        import gc, threading
        from hybridflow.runtime import uninterruptible

        where = []
        class Cycle:
            def __init__(self):
                self.itself = self
            def __del__(self):
                where.append(threading.get_ident())

        def work():
            for _ in range(2000):
                Cycle()

        gc.set_threshold(5)
        uninterruptible.run_uninterruptible(work)
        assert gc.isenabled() and not where
        gc.collect()
        print(set(where) == {threading.get_ident()}, len(where))
"""
    assert run(program) == "True 2000\n"


def test_callers_may_have_little_stack() -> None:
    """LLVM needs more than the 64 KiB that some programs give their threads."""
    program = """
        import threading
        import hybridflow as hf

        def work():
            x = hf.ones((40, 40))
            for _ in range(5):
                x = hf.tanh(x @ x)
            ends.append(x.shape)

        ends = []
        x = hf.ones((40, 40))
        f = hf.function(lambda x: hf.sum(hf.tanh(x @ x)))
        concrete = f.get_concrete_function(x)
        threading.stack_size(96 << 10)
        thread = threading.Thread(target=lambda: ends.append(concrete.staged.compile() is not None))
        thread.start(), thread.join()
        print(ends)
    """
    assert run(program, HF_CACHE_DIR="off") == "[True]\n"


def test_the_process_ends_after_work_that_was_left() -> None:
    program = """
        import signal, threading, time
        from hybridflow.runtime import uninterruptible

        class Stop(Exception): pass
        def stop(*_):
            try:
                wanted.pop().set()
            except IndexError:
                return
            raise Stop
        def work():
            while not left.wait(0.05):  # one signal alone may come right before the lock is waited for
                signal.pthread_kill(threading.main_thread().ident, signal.SIGALRM)
            said.wait()
            time.sleep(0.1)  # for the end of the process to begin; it may come later
            print("worked", flush=True)

        left, said = threading.Event(), threading.Event()
        wanted = [left]
        signal.signal(signal.SIGALRM, stop)
        try:
            uninterruptible.run_uninterruptible(work)
        except Stop:
            print("left", flush=True)
            said.set()
"""
    assert run(program) == "left\nworked\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_handler_that_forks_while_work_goes_on() -> None:
    """The child does the work itself, as it has no thread that would."""
    program = """
        import os, signal, threading, warnings
        from hybridflow.runtime import uninterruptible
        from hybridflow.runtime.machine import machine_code
        warnings.simplefilter("ignore")
        for load in uninterruptible.loaders:  # else they are imported before the fork
            load()

        def fork(*_):
            global child
            try:
                event = wanted.pop()
            except IndexError:  # while it forks
                return
            child = os.fork()
            if child:
                event.set()

        def work():
            while os.getpid() == parent and not forked.wait(0.05):
                signal.pthread_kill(threading.main_thread().ident, signal.SIGALRM)
            return os.getpid()

        parent, child, forked = os.getpid(), None, threading.Event()
        wanted = [forked]
        signal.signal(signal.SIGALRM, fork)
        found = uninterruptible.run_uninterruptible(work)
        if child == 0:
            signal.alarm(300)
            again = uninterruptible.run_uninterruptible(work)
            os._exit(found != os.getpid() or bool(uninterruptible._jobs) or again != os.getpid())
        print(found == os.getpid(), os.waitpid(child, 0)[1])
"""
    assert run(program) == "True 0\n"


def test_what_was_raised_keeps_nothing_alive() -> None:
    class Large:
        pass

    def failing() -> None:
        held = Large()
        seen.append(id(held))
        raise ValueError

    seen: list[int] = []
    gc.collect()
    gc.disable()
    try:
        with pytest.raises(ValueError):
            uninterruptible.run_uninterruptible(failing)
        assert not [x for x in gc.get_objects() if type(x) is Large]
    finally:
        gc.enable()


def test_what_is_set_for_the_caller_meets_the_caller() -> None:
    """A thread that begins has the number of the one which made it, for a moment."""
    program = """
        import ctypes, _thread, threading
        from hybridflow.runtime import uninterruptible

        class Stop(BaseException):
            pass

        def begun(function, arguments):
            made = start(function, arguments)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(caller), ctypes.py_object(Stop))
            return made

        def work():
            return 1

        start, _thread.start_new_thread = _thread.start_new_thread, begun
        caller, met = _thread.get_ident(), 0
        for _ in range(300):
            try:
                assert uninterruptible.run_uninterruptible(work) == 1
            except Stop:
                met += 1
        print(met)
"""
    assert run(program) == "300\n"


def test_what_comes_as_a_job_begins_is_raised_as_it_is() -> None:
    """At every instruction of the part that the caller's thread runs; at every line on Python 3.12, which crashes where
    a generator whose instructions are traced goes on in another thread."""
    left, is_by_line = 0, sys.version_info[:2] == (3, 12)

    def look(frame: types.FrameType, event: str, argument: object) -> Any:
        nonlocal left
        if frame.f_code is not uninterruptible._RUN:
            return None
        frame.f_trace_opcodes = not is_by_line
        if event == ("line" if is_by_line else "opcode"):
            left -= 1
            if left == -1:
                raise Stop
        return look

    for count in range(1000):
        left = count
        sys.settrace(look)
        try:
            job = uninterruptible.Job(lambda: 7)
        except Stop:
            pass
        else:
            assert job.result() == 7
            break
        finally:
            sys.settrace(None)
    assert (1 if is_by_line else 5) < count < 999
    assert uninterruptible.run_uninterruptible(lambda: 3) == 3
    while uninterruptible._jobs:
        pass


def test_a_job_is_at_work_or_over_at_every_instruction() -> None:
    """Whoever forks finds it so: else a child would wait for it for good."""
    seen: list[tuple[bool, bool]] = []

    def look(frame: types.FrameType, event: str, argument: object) -> Any:
        seen.append((job in uninterruptible._jobs, job._over.locked()))
        frame.f_trace_opcodes = True
        return look

    def work() -> None:
        begun.wait()
        frame = sys._getframe(1)
        while frame.f_code is not uninterruptible._RUN:
            assert frame.f_back is not None
            frame = frame.f_back
        frame.f_trace, frame.f_trace_opcodes = look, True
        sys.settrace(look)

    begun = threading.Event()
    job = uninterruptible.Job(work)
    begun.set()
    job.result()
    while uninterruptible._jobs:
        pass
    assert len(seen) > 5 and (True, True) in seen
    assert (False, True) not in seen


def test_a_job_whose_thread_a_child_never_had() -> None:
    """A fork right where the thread begins: the child does the work itself."""
    program = """
        import _thread, os
        from hybridflow.runtime import uninterruptible

        real, done = _thread.start_new_thread, []

        def fork_then_start(function, arguments):
            if os.fork():
                _, status = os.wait()
                print(status, flush=True)
                return real(function, arguments)
            return 0

        _thread.start_new_thread = fork_then_start
        job = uninterruptible.Job(lambda: "done")
        _thread.start_new_thread = real
        assert job.result() == "done" and not uninterruptible._jobs
"""
    assert run(program) == "0\n"
