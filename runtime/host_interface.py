"""The host that a CPU program may ask to run its tasks (see ``compiler/program.py``), as ctypes see it."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from hybridflow.compiler.program import HOST

POINTER, I64 = ctypes.c_void_p, ctypes.c_int64
TASK = ctypes.CFUNCTYPE(None, POINTER, I64, I64, I64)

TYPES: dict[str, type] = {
    "parallel_for": ctypes.CFUNCTYPE(None, POINTER, POINTER, POINTER, I64, I64, I64, I64),
    "callback": ctypes.CFUNCTYPE(ctypes.c_int32, POINTER, I64, POINTER),
    "alloc": ctypes.CFUNCTYPE(POINTER, POINTER, I64),
    "free": ctypes.CFUNCTYPE(None, POINTER, POINTER),
    "workers": I64,
}


class Host(ctypes.Structure):
    """A host.  Functions that are not given are null: programs that need none of them may run on it."""

    _fields_ = [(name, TYPES[name]) for name in HOST]
    workers: int
    callback: object
    parallel_for: Any


def calling(callback: Callable[[int, int, int], int], runner: Host | None) -> Host:
    """A host that calls ``callback(host, number, args)`` and has ``runner``, where there is one, run tasks."""
    result = Host(workers=1)
    result.callback = TYPES["callback"](callback)
    if runner is not None:
        address, function = ctypes.addressof(runner), runner.parallel_for
        # Its functions are given its own address: it may look for more behind its words.
        hand_on = TYPES["parallel_for"](lambda _, *task: function(address, *task))
        result.parallel_for, result.workers = hand_on, runner.workers
    return result


functions: dict[str, int] = {}  # addresses of what programs call by name, once it is loaded
_current: Host | None = None


def current() -> Host | None:
    """The host of programs that Python starts; None lets them run in place."""
    return _current


@contextmanager
def use(host: Host) -> Iterator[None]:
    """Run programs on ``host`` inside the block."""
    global _current
    before, _current = _current, host
    try:
        yield
    finally:
        _current = before
