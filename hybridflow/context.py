"""What the current thread is doing: tracing, recording gradients, or neither.

``busy`` counts, over all threads, the reasons for which a call may not take a native shortcut (an active tape or
trace, functions run eagerly, a device scope).  It is a C integer because native code reads it; a thread that has no
reason of its own merely takes the Python path meanwhile, which looks at the thread's own state.  A forked child has
one thread, and counts its reasons anew.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hybridflow.runtime import locks

if TYPE_CHECKING:
    from hybridflow.tape import GradientTape
    from hybridflow.trace import Trace

busy = ctypes.c_int32(0)
_busy_lock = locks.make()
_of_process = 0  # those of the reasons that are no thread's own


def _add_busy(step: int) -> None:
    with _busy_lock:
        busy.value += step


def add_process_reason(step: int) -> None:
    """One reason more, or less, for all threads."""
    global _of_process
    _of_process += step
    _add_busy(step)


def add_reason(step: int) -> None:
    """Reasons more, or less, of the current thread, other than active tapes."""
    current.reasons += step
    _add_busy(step)


class _Context(threading.local):
    """Per-thread state.  ``tapes`` are the active tapes, outermost first."""

    def __init__(self) -> None:
        self.trace: Trace | None = None
        self.tapes: tuple[GradientTape, ...] = ()
        self.device: str | None = None  # of the innermost hf.device scope
        self.reasons = 0  # in ``busy``, besides one per active tape


current = _Context()


def _recount_in_child() -> None:
    busy.value = _of_process + current.reasons + len(current.tapes)


os.register_at_fork(after_in_child=_recount_in_child)


@contextmanager
def tracing(trace: Trace) -> Iterator[None]:
    """Record ops into ``trace``.  Tapes from outside do not see what happens inside."""
    before = current.trace, current.tapes
    hidden = len(before[1])  # active tapes that are out of sight meanwhile
    current.reasons += hidden
    add_reason(1)  # before the block that takes it back: if interrupted here, one too many is slow, not wrong
    try:
        current.trace, current.tapes = trace, ()
        yield
    finally:
        current.trace, current.tapes = before
        current.reasons -= hidden
        add_reason(-1)


@contextmanager
def suspended() -> Iterator[None]:
    """Run eagerly and unrecorded, whatever surrounds the block."""
    before = current.trace, current.tapes
    current.trace, current.tapes = None, ()
    try:
        yield
    finally:
        current.trace, current.tapes = before


def push_tape(tape: GradientTape) -> None:
    current.tapes = (*current.tapes, tape)
    _add_busy(1)


def pop_tape(tape: GradientTape) -> None:
    tapes = current.tapes
    current.tapes = tapes[:-1] if tapes and tapes[-1] is tape else tuple([t for t in tapes if t is not tape])
    _add_busy(-1)
