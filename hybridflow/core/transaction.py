"""A call of a function is a transaction: when it raises, every variable has the value that it had before.

Compiled programs see to that themselves: they let no new value be seen until every check has passed.  What is written
in Python meanwhile (a body that runs eagerly, the initial values of variables that a trace makes) is noted here.  It is
taken back when the outermost call raises.  Native calls note nothing: while there is a transaction in any thread, those
that write variables leave it to Python.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from hybridflow.core.context import now, transactions, without_handlers
from hybridflow.runtime.fork_safe_locks import at_fork, thread_states

T = TypeVar("T")


class Transactional(Protocol):
    """A variable, as far as it matters here."""

    def _take_back(self, after: Any, before: Any, /) -> None:
        """Make ``before`` the value again, if it is still ``after``."""


class _Write:
    """The value of a variable before a call, and the last one that the call gave it."""

    __slots__ = ("after", "before", "variable")

    def __init__(self, variable: Transactional, before: object) -> None:
        self.variable, self.before, self.after = variable, before, before


class _Call:
    """What a call has written, by id of the variable.  It goes on while somebody holds the lock, which a ``with``
    statement lets go of whatever interrupts it."""

    __slots__ = ("is_counted", "lock", "process", "writes")

    def __init__(self) -> None:
        self.is_counted = False
        self.process = _process
        self.lock = threading.Lock()
        self.writes: dict[int, _Write] = {}

    def count(self) -> None:
        # The interpreter does not switch threads within these statements.
        transactions.value += 1
        self.is_counted = True

    def discount(self) -> None:
        if self.is_counted and self.process == _process:
            self.is_counted = False
            transactions.value -= 1

    def __del__(self) -> None:
        # Where what interrupted the end of the call kept it from that.
        self.discount()

    def take_back(self) -> None:
        """Give the variables their old values; once more does no harm."""
        for write in self.writes.values():
            write.variable._take_back(write.after, write.before)


class _Thread(threading.local):
    call: _Call | None = None  # the last one that was begun


_thread = _Thread()
thread_states.append(_thread)
_process = 0  # how many forks there were up to this process


def _count_own() -> None:
    """In the child of a fork: calls of other threads go on in the parent alone."""
    global _process
    _process += 1
    call = _open()
    if call is not None:
        call.process = _process
    transactions.value = int(call is not None and call.is_counted)


at_fork(after_in_child=_count_own)


def _open() -> _Call | None:
    call = _thread.call
    return call if call is not None and call.lock.locked() else None


def is_open() -> bool:
    """Whether a call is going on in this thread whose writes may have to be taken back."""
    return _open() is not None


def note(variable: Transactional, before: object, after: object) -> None:
    """A variable is about to be written; its old value must stay what it is."""
    call = _open()
    if call is not None:
        call.writes.setdefault(id(variable), _Write(variable, before)).after = after


def run(body: Callable[[], T]) -> T:
    """``body()``; if it raises, whatever it is, variables get back the values that they had before.

    A call inside of another is part of that.  A variable that another thread has written since keeps that value.
    """
    if is_open():
        return body()
    call = _Call()
    try:
        call.count()
        with without_handlers(is_outermost=now().trace is None), call.lock:
            _thread.call = call
            return body()
    except BaseException:
        try:
            call.take_back()
        finally:
            call.take_back()  # all of them, also if a signal handler has raised meanwhile
        raise
    finally:
        call.discount()
        _thread.call = None
