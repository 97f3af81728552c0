"""Locks that a forked child finds open.

A thread that holds a lock while another one forks does not exist in the child, where nobody would ever release it.
What these locks guard is changed by single operations of the interpreter, so it is whole wherever the fork happens.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any

# What threads keep of what they are doing, which code that interrupts it is not to see (see ``handlers``).
thread_states: list[threading.local] = []
trace_states: list[threading.local] = []  # those among them that a trace which is part of no other begins anew

# No WeakSet: its callbacks are in Python, where what interrupts them would get lost.
_locks: set[weakref.ref[Any]] = set()


def make() -> Any:
    """A new reentrant lock."""
    lock = threading.RLock()
    _locks.add(weakref.ref(lock, _locks.discard))
    return lock


def _open_in_child() -> None:
    for reference in list(_locks):
        lock = reference()
        if lock is not None and not lock._is_owned():  # by the thread that forked, which will release it
            lock._at_fork_reinit()


def _open_properties_in_child() -> None:
    """Before Python 3.12 each ``functools.cached_property`` has a lock, for all objects, while it is computed."""
    for name, module in list(sys.modules.items()):
        if name.startswith("hybridflow."):
            for owner in [value for value in vars(module).values() if isinstance(value, type)]:
                for attribute in list(vars(owner).values()):
                    lock = getattr(attribute, "lock", None) if isinstance(attribute, cached_property) else None
                    if lock is not None and not lock._is_owned():
                        lock._at_fork_reinit()


def at_fork(**steps: Callable[[], object]) -> None:
    """``os.register_at_fork``, where the system has it: where not, nothing forks.  A step ``after_in_parent`` is done
    twice: what a signal handler raises that came while the process forked meets the first one, at its beginning."""
    register = getattr(os, "register_at_fork", None)
    if register is not None:
        register(**steps)
        if "after_in_parent" in steps:
            register(after_in_parent=steps["after_in_parent"])


def load_within_fork(loads: Iterable[Callable[[], object]]) -> None:
    """Import modules in a step before a fork.  Steps of their own before it, which Python no longer comes to, are done
    here: those after it rely on them, as that of ``logging`` does, which releases a lock."""
    missed: list[Callable[[], object]] = []
    register = os.register_at_fork

    def note(**steps: Callable[[], object]) -> None:
        register(**steps)
        if "before" in steps:
            missed.append(steps["before"])

    os.register_at_fork = note  # type: ignore[assignment]
    try:
        for load in loads:
            load()
    finally:
        os.register_at_fork = register
    for step in reversed(missed):
        step()


at_fork(after_in_child=_open_in_child)
if sys.version_info < (3, 12):
    at_fork(after_in_child=_open_properties_in_child)
