"""A host that runs the tasks of a program one after another, and notes how long each takes: by the calling thread, or
by the threads that a call has.

It is native code, so that what it measures is the task and one look at the clock, some 20 ns.
"""

from __future__ import annotations

import ctypes
import functools

import numpy as np

from hybridflow.runtime.host_interface import TYPES
from hybridflow.runtime.native import native_functions
from hybridflow.runtime.native.ir_builder import I64, PTR, VOID, Module, i64
from hybridflow.runtime.threads.thread_pool import ThreadPoolHost

_FUNCTION = "hf_timed_for"


class _Timing(ThreadPoolHost):
    """The host of a team, and behind its words where the next time goes, as nanoseconds in an i64; the function
    that has the team run a task, if it does; and whether a task runs, which may share out work of its own."""

    _fields_ = [("next", ctypes.c_void_p), ("share", ctypes.c_void_p), ("inside", ctypes.c_int64)]
    next: int
    share: int | None
    inside: int


class ProfilingHost:
    """A host for the runs of a program that has the host run ``tasks`` tasks (see ``compiler/program.py``), on the
    threads of ``team`` where there is one."""

    def __init__(self, tasks: int, team: ThreadPoolHost | None = None) -> None:
        self._times = np.zeros(tasks, np.int64)
        self.struct = _Timing(workers=1)
        if team is not None:
            self.struct.workers, self.struct.work = team.workers, team.work
            self.struct.share = ctypes.cast(team.parallel_for, ctypes.c_void_p).value
        self.struct.parallel_for = TYPES["parallel_for"](_parallel_for())

    def begin(self) -> None:
        """Before each run."""
        self.struct.next, self.struct.inside = self._times.ctypes.data, 0

    def seconds(self) -> np.ndarray:
        """How long each task of the last run took."""
        return self._times * 1e-9


@functools.cache
def _parallel_for() -> int:
    """The address of the native function."""
    return native_functions.load(_build, ("timing",), (_FUNCTION,), {})[_FUNCTION]


def _build() -> str:
    """void parallel_for(ptr host, ptr task, ptr args, i64 units, i64 grain, i64 least, i64 work): all units at once, or
    by the team, between two looks at the clock.  What a task shares out is part of that task."""
    f = Module().function(_FUNCTION, VOID, PTR, PTR, PTR, I64, I64, I64, I64)
    host, task, args, units = f.args[:4]
    next_, share_, inside = (getattr(_Timing, name).offset for name in ("next", "share", "inside"))

    def run() -> None:
        share = f.load(host, share_, PTR)
        with f.b.if_else(f.is_null(share)) as (alone, shared):
            with alone:
                f.call_pointer(task, VOID, args, i64(0), units, i64(0))
            with shared:
                f.call_pointer(share, VOID, *f.args)

    with f.b.if_then(f.b.not_(f.eq(f.load(host, inside, I64), i64(0)))):
        run()
        f.ret()
    f.store(i64(1), host, inside)
    start = f.monotonic_ns()
    run()
    taken = f.b.sub(f.monotonic_ns(), start)
    f.store(i64(0), host, inside)
    place = f.load(host, next_, PTR)
    f.store(taken, place)
    f.store(f.at(place, 8), host, next_)
    f.ret()
    return str(f.module.ir)
