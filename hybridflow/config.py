"""Settings of the process that are changed while it runs."""

from __future__ import annotations

from hybridflow.core.context import add_process_reason
from hybridflow.errors import ArgumentError
from hybridflow.runtime.machine import disk_cache
from hybridflow.runtime.memory import blocks

__all__ = ["cache_limit", "functions_run_eagerly", "memory_limit", "run_functions_eagerly"]

_eager = False


def run_functions_eagerly(on: bool) -> None:
    """Whether the bodies of all functions run as plain Python at each call, op by op, for debugging.

    Traces made before are kept, and used again when it is turned off.

    >>> hf.config.run_functions_eagerly(False)
    """
    global _eager
    if bool(on) != _eager:
        _eager = bool(on)
        add_process_reason(1 if _eager else -1)  # native calls must not bypass it


def functions_run_eagerly() -> bool:
    """Whether ``run_functions_eagerly(True)`` is in force.

    >>> hf.config.functions_run_eagerly()
    False
    """
    return _eager


def memory_limit(limit: int | None = None) -> int:
    """The bytes that freed tensors may keep for reuse (see ``hf.memory``); an argument sets them.

    At first 4 GiB, or an eighth of the memory that this process may use where that is less.

    >>> hf.config.memory_limit() > 0
    True
    """
    if limit is not None:
        blocks.set_limit(_size("memory_limit", limit))
    return blocks.limit()


def cache_limit(limit: int | None = None) -> int:
    """The bytes on disk that the cache of machine code may take, also HF_CACHE_LIMIT; an argument sets them.

    >>> hf.config.cache_limit() > 0
    True
    """
    if limit is not None:
        disk_cache.set_limit(_size("cache_limit", limit))
    return disk_cache.limit()


def _size(name: str, value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 62:
        raise ArgumentError(name, f"a number of bytes from 0 on is expected, got {value!r}.")
    return value
