"""Work behind: what makes later calls faster is made by threads of their own while programs run.

There are two queues, each with one thread, in which one piece of work follows the other: one of low priority, for
better code of what runs already, and one for what calls do without until it is there.  On a busy machine low priority
may mean seconds for a tenth of a second's work.  None of it begins where the process is to run on one thread, whose
callers make themselves what they need.  Better code begins when no first call is being traced or compiled: each of the
two would take the interpreter's lock from the other, and who holds it at low priority may do so for long.  A fork waits
for the pieces that are at work, and goes on with the others in both processes; so does a child that finds a thread at
work nevertheless.  The end of the process waits for those pieces, too, as LLVM's memory goes then, and drops the
others.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable

from hybridflow.runtime import fork_safe_locks, gc_pause, uninterruptible
from hybridflow.runtime.thread_pool_words import THREADS, words
from hybridflow.runtime.threads import thread_count

_NICENESS = 10  # a tenth of the time of what else wants the core
_LONGEST = 0.5  # seconds for which better code waits for first calls, and for any one of them
_LOOK = 0.002  # seconds between two looks whether one is at work

_lock = fork_safe_locks.make()  # around the queues; taken by work that is apart alone, and as a process forks or ends
_is_held = False  # whether no piece of work begins for now


class StoppedError(Exception):
    """Work behind is to end here, and begins anew if it is wanted any more."""


def is_on() -> bool:
    """Whether there is to be work behind: programs of the process may run on several threads."""
    return (words[THREADS] or thread_count.number()) > 1


class _Queue:
    """Pieces of work, and the thread that does them."""

    def __init__(self, niceness: int) -> None:
        self._niceness = niceness
        self.waiting: deque[Callable[[], object]] = deque()  # the first one is at work, if there is a thread
        self.thread: uninterruptible.Job[None] | None = None

    def add(self, work: Callable[[], object]) -> bool:
        with _lock:
            self.waiting.append(work)
            if self.go_on():
                return True
            self.waiting.remove(work)
            return False

    def go_on(self) -> bool:
        """Have a thread, if there is work; False where none can be had."""
        if self.thread is None and self.waiting and not _is_held:
            try:
                self.thread = uninterruptible.Job(self._run, is_waited_for=False)
            except RuntimeError:
                return False
        return True

    def _run(self) -> None:
        if self._niceness and sys.platform == "linux":  # elsewhere a thread's number may be that of another process
            with contextlib.suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), self._niceness)
        _here.is_behind = True
        while True:
            with _lock:
                if _is_held or not self.waiting:
                    self.thread = None
                    return
                work = self.waiting[0]
            if self._niceness and not FirstCalls.give_way():
                continue
            try:
                with gc_pause.paused():  # in this thread it would run finalizers of the user's
                    work()
            except StoppedError:
                continue
            except BaseException as error:  # whatever it is: else who waits for the thread would wait for good
                _note_failure(error)
            with _lock:
                if self.waiting and self.waiting[0] is work:
                    self.waiting.popleft()


class FirstCalls:
    """When one was begun last, and when one was over: a thread that is interrupted in between leaves nothing behind
    that would have others wait for good."""

    began = over = 0.0

    @classmethod
    def begin(cls) -> None:
        cls.began = time.monotonic()

    @classmethod
    def end(cls) -> None:
        cls.over = time.monotonic()

    @classmethod
    def is_at_work(cls) -> bool:
        return cls.over < cls.began and time.monotonic() < cls.began + _LONGEST

    @classmethod
    def give_way(cls) -> bool:
        """Wait for them, but not for long; whether work is to begin then."""
        end = time.monotonic() + _LONGEST
        while cls.is_at_work() and time.monotonic() < end and not _is_held:
            time.sleep(_LOOK)
        return not _is_held


_needed, _better = _Queue(0), _Queue(_NICENESS)
_queues = (_needed, _better)


def begin(work: Callable[[], object], is_needed: bool = False) -> bool:
    """Have ``work`` done behind, after what was asked for before; False where it is not to be or no thread can be had.
    What ``is_needed`` for calls to be fast at all has a thread of its own, whose priority is not low.

    It may be run again from its beginning, in the child of a fork.  Its errors are in ``failures``, and the first one
    is said: programs go on without what it makes, and who needs that meets them again."""
    queue = _needed if is_needed else _better
    return is_on() and uninterruptible.run_uninterruptible(lambda: queue.add(work))


failures: deque[str] = deque(maxlen=8)  # the errors of the last pieces of work that had one


def _note_failure(error: BaseException) -> None:
    is_first = not failures
    failures.append(f"{type(error).__name__}: {error}")
    if is_first and not uninterruptible._is_ending:
        import logging  # only where there is something to say

        with contextlib.suppress(Exception):  # of handlers
            logging.getLogger("hybridflow").warning(
                "code that makes calls faster cannot be made: %s. Calls go on with the code that there is. "
                "f.explain() says so for each function.",
                failures[-1],
            )


def check() -> None:
    """In work that has parts: raises StoppedError where it is to end, which ``_run`` takes."""
    if _is_held and is_behind():
        raise StoppedError


def is_at_work() -> bool:
    """Whether there is a thread behind."""
    return any(queue.thread is not None for queue in _queues)


def wait() -> None:
    """Wait until nothing is at work behind any more.  The thread itself, where a finalizer of the user's may run, does
    not wait for itself."""
    while not is_behind() and (threads := [thread for queue in _queues if (thread := queue.thread) is not None]):
        for thread in threads:
            thread.wait()


def is_behind() -> bool:
    """Whether the running thread is one of those behind."""
    return getattr(_here, "is_behind", False)


_here = threading.local()


def _hold() -> None:
    """Before a fork: wait for the parts that are at work."""
    global _is_held
    _is_held = True
    wait()


def _let_go() -> None:
    global _is_held
    _is_held = False
    if any(queue.waiting for queue in _queues):
        uninterruptible.run_uninterruptible(_resume)


def _resume() -> None:
    with _lock:
        for queue in _queues:
            queue.go_on()


def _let_go_in_child() -> None:
    for queue in _queues:
        queue.thread = None
    _let_go()


def _finish() -> None:
    """As the process ends."""
    global _is_held
    _is_held = True
    for queue in _queues:
        queue.waiting.clear()


atexit.register(_finish)  # before ``apart`` waits for threads
fork_safe_locks.at_fork(before=_hold, after_in_parent=_let_go, after_in_child=_let_go_in_child)
