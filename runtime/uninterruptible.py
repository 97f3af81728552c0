"""Work that nobody interrupts: compiling, linking, and loading of code run in threads of their own.

Handlers of signals run in the main thread, between any two instructions, and may raise there; so may what is set for a
thread (``PyThreadState_SetAsyncExc``).  LLVM's objects and Python's own locks do not survive that everywhere.  A thread
that nobody knows of meets neither.  Who waits for it may be interrupted: the work then goes on by itself, and its
result is dropped.

Locks that such work takes are taken by such work alone.  Otherwise a handler could wait for work that waits for what
the code below the handler holds.  Imports have locks as well, so below an import work is done in place.
"""

from __future__ import annotations

import _thread
import atexit
import contextvars
import functools
import operator
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import CodeType
from typing import Any, Generic, TypeVar

from hybridflow.runtime import fork_safe_locks

T = TypeVar("T")

_STACK = 16 << 20  # bytes: what LLVM may need, whatever stacks the user's threads have
_IMPORTS = "<frozen importlib._bootstrap>"

_jobs: set[Job[Any]] = set()  # at work
_call: Any = operator.call
_run_all: Callable[[Iterable[Any]], None] = deque[Any](maxlen=0).extend
_is_ending = False  # whether the process is: no thread begins any more


class Job(Generic[T]):
    """Work that a thread begins at once, for one caller to wait for, or for nobody (``is_waited_for``).  Raises
    RuntimeError where none can be had."""

    def __init__(self, work: Callable[[], T], is_waited_for: bool = True) -> None:
        self._work, self._is_waited_for = work, is_waited_for
        self._thread = 0
        self._results: list[T] = []
        self._error: BaseException | None = None
        # A lock, as to wait and to wake are then one operation in C each: an interrupt finds it done, or not done.
        self._over = _thread.allocate_lock()
        self._over.acquire()
        # No longer at work, and over: in one operation in C as well, so that a fork finds both or neither.  A child in
        # which the job was not at work and not over would wait for it for good.  It is made here, as the end makes no
        # objects, which would set off collections in the thread; to use it up breaks the cycle.
        ending = (functools.partial(_jobs.discard, self), self._over.release)
        self._end = functools.partial(_run_all, map(_call, ending))
        context = contextvars.copy_context()  # settings of the caller, NumPy's among them
        steps = self._steps()
        if next(steps, steps) is steps:  # what interrupts this thread came to its first lines
            self._raise_error()
        before = _thread.stack_size(_STACK)
        try:
            _thread.start_new_thread(functools.partial(context.run, next, steps, None), ())
        finally:
            _thread.stack_size(before)

    def _steps(self) -> Iterator[None]:
        """A generator, as its caller begins it: a thread that begins has the number of the one which made it, for a
        moment.  So what is set for that one meets it right at its beginning, here within the block."""
        try:
            _jobs.add(self)  # before there is a thread: a child of a fork may be without it
            yield
            self._thread = _thread.get_ident()
            if (
                _thread._count() > 1 or not self._is_waited_for
            ):  # sys._current_frames may wait for itself where it sets off a collection
                self._results.append(self._work())
            else:
                self._work_alone()
        except GeneratorExit:  # no thread can be had
            raise
        except BaseException as error:
            self._error = error
        finally:
            self._end()

    def _work_alone(self) -> None:
        """Where the caller has the process for itself: finalizers of its objects run in its thread, not in this one."""
        from hybridflow.runtime import gc_pause  # which importing does without

        gc_pause.pause()
        try:
            self._results.append(self._work())
        finally:
            gc_pause.resume()

    def wait(self) -> None:
        with self._over:
            pass

    def result(self) -> T:
        """Wait; what the work returned, or raise what it raised."""
        self.wait()
        self._raise_error()
        return self._results.pop() if self._results else _in_place(self._work)  # else in the child of a fork

    def _raise_error(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            try:
                raise error
            finally:
                del error  # whose traceback holds this frame

    def lose(self) -> None:
        """In the child of a fork, where its thread is not: let go who waits, a handler or finalizer of whom forked."""
        if self._thread != _thread.get_ident():
            self._end()


def run_uninterruptible(work: Callable[[], T]) -> T:
    """What ``work`` returns, or raise what it raises.  An interrupt of the caller leaves the work to itself."""
    if is_uninterruptible():
        return work()
    job = None if _is_ending or _is_importing() else _begun(work)
    return _in_place(work) if job is None else job.result()


def _in_place(work: Callable[[], T]) -> T:
    return work()


def run_concurrently(works: Sequence[Callable[[], T]]) -> list[T]:
    """What each work returns, or raise what one of the first of them raises, for work that is apart: each has a thread,
    if threads can be had.  It returns when all are over.  Work in place has nobody who would wait for threads then."""
    if not any(code is _RUN for code in _callers()):
        return [work() for work in works]
    jobs = [_begun(work) for work in works[1:]]
    try:
        results = [works[0]()]
    finally:
        for job in jobs:
            if job is not None:
                job.wait()
    return results + [work() if job is None else job.result() for work, job in zip(works[1:], jobs)]


def _begun(work: Callable[[], T]) -> Job[T] | None:
    """None where no thread can be had."""
    try:
        return Job(work)
    except RuntimeError:
        return None


_RUN = Job._steps.__code__
_WORKING = _RUN, _in_place.__code__


def is_uninterruptible() -> bool:
    """Whether the running code is such work."""
    return any(code in _WORKING for code in _callers())


def _is_importing() -> bool:
    return any(code.co_filename == _IMPORTS for code in _callers())


def _callers() -> Iterator[CodeType]:
    frame = sys._getframe(2)
    while frame is not None:
        yield frame.f_code
        frame = frame.f_back  # type: ignore[assignment]


loaders: list[Callable[[], Any]] = []  # all that import what is not there at first, see ``loaded``


def loaded(load: Callable[[], T]) -> Callable[[], T]:
    """For a function that imports what is not there at first: a handler of signals never meets half a module, and a
    process with several threads imports it before it forks."""
    loaders.append(load)
    result: Callable[[], T] = once(load)
    return result


def once(compute: Callable[[], T]) -> Any:
    """``functools.cache`` for a function without arguments that must not run twice, whatever threads call it, and is
    run apart.  What it has returned is in ``results``."""
    lock = fork_safe_locks.make()
    results: list[T] = []

    def make() -> T:
        with lock:
            if not results:
                results.append(compute())
            return results[0]

    @functools.wraps(compute)
    def get() -> T:
        return results[0] if results else run_uninterruptible(make)

    get.made = results  # type: ignore[attr-defined]
    return get


def _finish() -> None:
    """As the process ends: LLVM's own memory goes then, also under a thread that is in LLVM."""
    global _is_ending
    _is_ending = True
    for job in list(_jobs):
        if job._thread:  # else an interrupt came before it began
            job.wait()


def _lose_all() -> None:
    for job in list(_jobs):
        job.lose()


atexit.register(_finish)
fork_safe_locks.at_fork(after_in_child=_lose_all)
