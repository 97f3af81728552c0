"""Python's collector of cycles, held back while something large is made.

What is made all lives until it is finished, and counts as new for all of that time: the collector would go over it
again and again, for up to a sixth of the time of a large program, and find nothing.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from hybridflow.runtime import fork_safe_locks

_lock = fork_safe_locks.make()
_holders: set[int] = set()  # the threads that hold it back
_was_on = False  # before the first of them did


def pause() -> bool:
    """Have nothing collected from now on.  Whether this thread has not said so before, and is to ``resume``."""
    global _was_on
    thread = threading.get_ident()
    with _lock:
        if thread in _holders:
            return False
        if not _holders:
            _was_on = gc.isenabled()
        _holders.add(thread)
        gc.disable()
        return True


def resume() -> None:
    """Have things collected as before, if no other thread holds the collector back.  Nothing is, in here."""
    _release({threading.get_ident()})


@contextmanager
def paused() -> Iterator[None]:
    """Nothing is collected in here, and, if something was before, it is again when no thread is in here any more."""
    outermost = True
    try:
        outermost = pause()
        yield
    finally:
        if outermost:
            resume()


@contextmanager
def give_way() -> Iterator[None]:
    """For a thread that may hold the collector back, while it does something long that makes few objects: in here it
    holds it back no more."""
    held = threading.get_ident() in _holders
    if held:
        resume()
    try:
        yield
    finally:
        if held:
            pause()


def _release(threads: set[int]) -> None:
    with _lock:
        held = bool(_holders)
        _holders.difference_update(threads)
        if held and not _holders and _was_on:
            gc.enable()


def _release_others() -> None:
    _release(_holders - {threading.get_ident()})


fork_safe_locks.at_fork(after_in_child=_release_others)  # they do not exist in the child
