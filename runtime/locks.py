"""Locks that a forked child finds open.

A thread that holds a lock while another one forks does not exist in the child, where nobody would ever release it.
What these locks guard is changed by single operations of the interpreter, so it is whole wherever the fork happens.
"""

from __future__ import annotations

import functools
import os
import threading
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

_locks: weakref.WeakSet[Any] = weakref.WeakSet()


def make() -> Any:
    """A new reentrant lock."""
    lock = threading.RLock()
    _locks.add(lock)
    return lock


def once(compute: Callable[[], T]) -> Any:
    """``functools.cache`` for a function without arguments that must not run twice, whatever threads call it."""
    lock = make()
    cached = functools.cache(compute)

    @functools.wraps(compute)
    def get() -> T:
        with lock:
            return cached()

    get.cache_info = cached.cache_info  # type: ignore[attr-defined]
    return get


def _open_in_child() -> None:
    for lock in list(_locks):
        if not lock._is_owned():  # by the thread that forked, which will release it
            lock._at_fork_reinit()


def at_fork(**steps: Callable[[], object]) -> None:
    """``os.register_at_fork``, where the system has it: where not, nothing forks."""
    register = getattr(os, "register_at_fork", None)
    if register is not None:
        register(**steps)


at_fork(after_in_child=_open_in_child)
