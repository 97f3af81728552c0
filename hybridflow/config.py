"""Settings of the process that are changed while it runs."""

from __future__ import annotations

__traits__ = ("impure",)

import threading as _threading
from collections.abc import Iterator
from types import ModuleType
from typing import TYPE_CHECKING as _TYPE_CHECKING

from hybridflow.core import name_hints as _name_hints
from hybridflow.core.context import add_process_reason
from hybridflow.core.context_manager import block
from hybridflow.errors import ArgumentError
from hybridflow.runtime import uninterruptible
from hybridflow.runtime.machine import disk_cache
from hybridflow.runtime.memory import memory_pool

__all__ = [
    "cache_limit",
    "functions_run_eagerly",
    "get_num_threads",
    "memory_limit",
    "run_functions_eagerly",
    "set_num_threads",
]

if not _TYPE_CHECKING:  # a checker would take every name for one of ours
    __getattr__, __dir__ = _name_hints.answers(__name__, __all__)

_eager = False


def run_functions_eagerly(on: bool) -> None:
    """Let the bodies of all functions run as plain Python at each call, op by op, for debugging.

    Traces made before are kept, and used again when it is turned off.

    Args:
        on: whether they do.

    Returns:
        None.

    >>> hf.config.run_functions_eagerly(False)
    """
    global _eager
    if bool(on) != _eager:
        _eager = bool(on)
        add_process_reason(1 if _eager else -1)  # native calls must not bypass it


def functions_run_eagerly() -> bool:
    """Whether compiled functions run eagerly now.

    Returns:
        True while ``hf.config.run_functions_eagerly(True)`` is in force, or a function of ``hf.eager`` runs.

    >>> hf.config.functions_run_eagerly()
    False
    """
    return _eager or _running.depth > 0


class _Running(_threading.local):
    depth = 0  # of functions of ``hf.eager`` in this thread


_running, _counting = _Running(), _threading.Lock()


@block
def running_eagerly() -> Iterator[None]:
    """In the block, this thread runs the bodies of all functions as plain Python."""
    _running.depth += 1
    with _counting:
        add_process_reason(1)
    try:
        yield
    finally:
        with _counting:
            add_process_reason(-1)
        _running.depth -= 1


def memory_limit(limit: int | None = None) -> int:
    """Limit on the bytes that freed tensors may keep for reuse; see ``hf.memory``.

    At first 4 GiB, or an eighth of the memory that this process may use where that is less.

    Args:
        limit: the new limit, in bytes; None leaves it.

    Returns:
        The limit, an int.

    Raises:
        ArgumentError: unless ``limit`` is an int from 0 on.

    >>> hf.config.memory_limit() > 0
    True
    """
    if limit is not None:
        memory_pool.set_limit(_size("memory_limit", limit))
    return memory_pool.limit()


def cache_limit(limit: int | None = None) -> int:
    """Limit on the bytes on disk that the cache of machine code may take; at first HF_CACHE_LIMIT.

    Args:
        limit: the new limit, in bytes; None leaves it.

    Returns:
        The limit, an int.

    Raises:
        ArgumentError: unless ``limit`` is an int from 0 on.

    >>> hf.config.cache_limit() > 0
    True
    """
    if limit is not None:
        disk_cache.set_limit(_size("cache_limit", limit))
    return disk_cache.limit()


def set_num_threads(number: int) -> None:
    """Set how many threads programs run on that start from now on.

    Results have the same bits on any number. Small programs run on their caller's thread alone; the others are made
    when they are needed first, and one that has nothing to do sleeps.

    Args:
        number: how many, the caller's among them: 1 for no others. More than there are cores is allowed.

    Returns:
        None.

    Raises:
        ArgumentError: unless ``number`` is an int from 1 to 256.

    >>> hf.config.set_num_threads(hf.config.get_num_threads())
    """
    _team().set_threads(number)


def get_num_threads() -> int:
    """How many threads a program may run on.

    At first HF_NUM_THREADS, else OMP_NUM_THREADS, else as many as this process has cores: by its affinity, and by what
    its control group grants it.

    Returns:
        An int from 1 on.

    >>> hf.config.get_num_threads() >= 1
    True
    """
    return _team().threads()


@uninterruptible.loaded
def _team() -> ModuleType:
    from hybridflow.runtime.threads import thread_pool  # only where somebody asks, or there is a program

    return thread_pool


def _size(name: str, value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 62:
        raise ArgumentError(name, f"a number of bytes from 0 on is expected, got {value!r}.")
    return value
