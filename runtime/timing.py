"""A host that runs the tasks of a program one after another, and notes how long each takes: by the calling thread, or
by the threads that a call has.

It is native code, so that what it measures is the task and one look at the clock, some 20 ns.
"""

from __future__ import annotations

import ctypes
import functools
import time

import llvmlite.ir as ir
import numpy as np

from hybridflow.runtime.native import functions
from hybridflow.runtime.native.ir_builder import I32, I64, PTR, VOID, Function, Module, i32, i64
from hybridflow.runtime.program_host import TYPES
from hybridflow.runtime.threads.team import TeamHost

_FUNCTION = "hf_timed_for"


class _Timing(TeamHost):
    """The host of a team, and behind its words where the next time goes, as nanoseconds in an i64, and the function
    that has the team run a task, if it does."""

    _fields_ = [("next", ctypes.c_void_p), ("share", ctypes.c_void_p)]
    next: int
    share: int


class TimingHost:
    """A host for the runs of a program that has the host run ``tasks`` tasks (see ``compiler/program.py``), on the
    threads of ``team`` where there is one."""

    def __init__(self, tasks: int, team: TeamHost | None = None) -> None:
        self._times = np.zeros(tasks, np.int64)
        self.struct = _Timing(workers=1)
        if team is not None:
            self.struct.workers, self.struct.work = team.workers, team.work
            self.struct.share = ctypes.cast(team.parallel_for, ctypes.c_void_p).value
        self.struct.parallel_for = TYPES["parallel_for"](_parallel_for())

    def begin(self) -> None:
        """Before each run."""
        self.struct.next = self._times.ctypes.data

    def seconds(self) -> np.ndarray:
        """How long each task of the last run took."""
        return self._times * 1e-9


@functools.cache
def _parallel_for() -> int:
    """The address of the native function."""
    return functions.load(_build, ("timing",), (_FUNCTION,), {})[_FUNCTION]


def _build() -> str:
    """void parallel_for(ptr host, ptr task, ptr args, i64 units, i64 grain, i64 least, i64 work): all units at once, or
    by the team, between two looks at the clock."""
    f = Module().function(_FUNCTION, VOID, PTR, PTR, PTR, I64, I64, I64, I64)
    host, task, args, units = f.args[:4]
    share = f.load(host, _Timing.share.offset, PTR)  # type: ignore[attr-defined]  # a field of ctypes
    start = _now(f)
    with f.b.if_else(f.is_null(share)) as (alone, shared):
        with alone:
            f.call_pointer(task, VOID, args, i64(0), units, i64(0))
        with shared:
            f.call_pointer(share, VOID, *f.args)
    taken = f.b.sub(_now(f), start)
    place = f.load(host, _Timing.next.offset, PTR)  # type: ignore[attr-defined]  # a field of ctypes
    f.store(taken, place)
    f.store(f.at(place, 8), host, _Timing.next.offset)  # type: ignore[attr-defined]
    f.ret()
    return str(f.module.ir)


def _now(f: Function) -> ir.Value:
    """Nanoseconds, of a clock that nobody sets."""
    moment = f.local(ir.ArrayType(I64, 2))  # struct timespec of 64-bit systems: seconds, nanoseconds
    f.call("clock_gettime", I32, i32(time.CLOCK_MONOTONIC), moment)
    return f.b.add(f.b.mul(f.load(moment, 0, I64), i64(10**9)), f.load(moment, 8, I64))
