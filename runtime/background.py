"""Work behind: what makes later calls faster is made by one thread of low priority while programs run.

One piece of work follows the other.  None of it begins where the process is to run on one thread, whose callers make
themselves what they need.  A fork waits for the piece that is at work, and goes on with the others in both processes;
so does a child that finds the thread at work nevertheless.  The end of the process waits for that piece, too, as LLVM's
memory goes then, and drops the others.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
from collections import deque
from collections.abc import Callable

from hybridflow.runtime import fork_safe_locks, gc_pause, uninterruptible
from hybridflow.runtime.thread_pool_words import THREADS, words
from hybridflow.runtime.threads import thread_count

_NICENESS = 10  # a tenth of the time of what else wants the core

_waiting: deque[Callable[[], object]] = deque()  # the first one is at work, if there is a thread
_thread: uninterruptible.Job[None] | None = None
_lock = fork_safe_locks.make()  # around the two; taken by work that is apart alone, and as a process forks or ends
_is_held = False  # whether no piece of work begins for now


class StoppedError(Exception):
    """Work behind is to end here, and begins anew if it is wanted any more."""


def is_on() -> bool:
    """Whether there is to be work behind: programs of the process may run on several threads."""
    return (words[THREADS] or thread_count.number()) > 1


def begin(work: Callable[[], object]) -> bool:
    """Have ``work`` done behind, after what was asked for before; False where it is not to be or no thread can be had.

    It may be run again from its beginning, in the child of a fork.  Its errors are dropped: who needs what it makes
    meets them again."""
    return is_on() and uninterruptible.run_uninterruptible(lambda: _begin(work))


def check() -> None:
    """In work that has parts: raises StoppedError where it is to end, which ``_run`` takes."""
    if _is_held and _is_behind():
        raise StoppedError


def wait() -> None:
    """Wait until nothing is at work behind any more.  The thread itself, where a finalizer of the user's may run, does
    not wait for itself."""
    while (thread := _thread) is not None and not _is_behind():
        thread.wait()


def _is_behind() -> bool:
    return getattr(_here, "is_behind", False)


_here = threading.local()


def _begin(work: Callable[[], object]) -> bool:
    with _lock:
        _waiting.append(work)
        if _go_on():
            return True
        _waiting.remove(work)
        return False


def _go_on() -> bool:
    """Have a thread, if there is work; False where none can be had."""
    global _thread
    if _thread is None and _waiting and not _is_held:
        try:
            _thread = uninterruptible.Job(_run, is_waited_for=False)
        except RuntimeError:
            return False
    return True


def _run() -> None:
    global _thread
    if sys.platform == "linux":  # elsewhere the number of a thread may be that of another process
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)
    _here.is_behind = True
    while True:
        with _lock:
            if _is_held or not _waiting:
                _thread = None
                return
            work = _waiting[0]
        try:
            with gc_pause.paused():  # in this thread it would run finalizers of the user's
                work()
        except StoppedError:
            continue
        except BaseException:  # whatever it is: who waits for the thread would wait for good if it ended here
            pass
        with _lock:
            if _waiting and _waiting[0] is work:
                _waiting.popleft()


def _hold() -> None:
    """Before a fork: wait for the part that is at work."""
    global _is_held
    _is_held = True
    wait()


def _let_go() -> None:
    global _is_held
    _is_held = False
    if _waiting:
        uninterruptible.run_uninterruptible(_resume)


def _resume() -> None:
    with _lock:
        _go_on()


def _let_go_in_child() -> None:
    global _thread
    _thread = None
    _let_go()


def _finish() -> None:
    """As the process ends."""
    global _is_held
    _is_held = True
    _waiting.clear()


atexit.register(_finish)  # before ``apart`` waits for threads
fork_safe_locks.at_fork(before=_hold, after_in_parent=_let_go, after_in_child=_let_go_in_child)
