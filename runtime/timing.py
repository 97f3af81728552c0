"""A host that runs the tasks of a program one after another, and notes how long each takes.

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
from hybridflow.runtime.program_host import TYPES, Host

_FUNCTION = "hf_timed_for"


class _Timing(Host):
    """The host, and behind its words where the next time goes, as nanoseconds in an i64."""

    _fields_ = [("next", ctypes.c_void_p)]
    next: int


class TimingHost:
    """A host for the runs of a program that has the host run ``tasks`` tasks (see ``compiler/program.py``)."""

    def __init__(self, tasks: int) -> None:
        self._times = np.zeros(tasks, np.int64)
        self.struct = _Timing(workers=1)
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
    """void parallel_for(ptr host, ptr task, ptr args, i64 units, i64 grain, i64 least, i64 work): all units at once,
    between two looks at the clock."""
    f = Module().function(_FUNCTION, VOID, PTR, PTR, PTR, I64, I64, I64, I64)
    host, task, args, units = f.args[:4]
    start = _now(f)
    f.call_pointer(task, VOID, args, i64(0), units, i64(0))
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
