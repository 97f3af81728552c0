"""A host that runs the tasks of a program, and notes when each of their pieces began and ended, and by which thread.

It is native code, as threads without Python run pieces.
"""

from __future__ import annotations

import ctypes
import functools

import numpy as np

from hybridflow.runtime.host_interface import TYPES
from hybridflow.runtime.native import native_functions
from hybridflow.runtime.native.ir_builder import I64, PTR, VOID, Function, Module, i64
from hybridflow.runtime.threads.thread_pool import ThreadPoolHost

_FUNCTION, _PIECE = "hf_recorded_for", "hf_recorded_piece"
_WORDS = 4  # of a note: the task's place in the run, the thread, nanoseconds when it began and ended


class _Recording(ThreadPoolHost):
    """The host of a team, and behind its words: the function that has the team run a task, if it does; whether a task
    runs; how many have begun; where notes go, how many there are, and how many have room."""

    _fields_ = [
        ("share", ctypes.c_void_p),
        ("inside", ctypes.c_int64),
        ("begun", ctypes.c_int64),
        ("notes", ctypes.c_void_p),
        ("count", ctypes.c_int64),
        ("room", ctypes.c_int64),
    ]
    share: int | None
    inside: int
    begun: int
    notes: int
    count: int
    room: int


class RecordingHost:
    """A host for runs of programs whose tasks are all run by the host (see ``compiler/program.py``), on the threads of
    ``team`` where there is one.

    Args:
        room: how many pieces of a run are noted, at most.
        team: the threads that a call has.
    """

    def __init__(self, room: int, team: ThreadPoolHost | None = None) -> None:
        self._notes = np.zeros((room, _WORDS), np.int64)
        self.struct = _Recording(workers=1, room=room, notes=self._notes.ctypes.data)
        if team is not None:
            self.struct.workers, self.struct.work = team.workers, team.work
            self.struct.share = ctypes.cast(team.parallel_for, ctypes.c_void_p).value
        self.struct.parallel_for = TYPES["parallel_for"](_parallel_for())

    def notes(self) -> list[list[int]]:
        """Of each piece of the run its task, by the order in which they began, its thread (0 called), and when it
        began and ended."""
        records: list[list[int]] = self._notes[: min(self.struct.count, len(self._notes))].tolist()
        return records


@functools.cache
def _parallel_for() -> int:
    """The address of the native function."""
    return native_functions.load(_build, ("recording",), (_FUNCTION,), {})[_FUNCTION]


def _build() -> str:
    """void parallel_for(ptr host, ptr task, ptr args, i64 units, i64 grain, i64 least, i64 work), runs pieces of the
    task by way of: void piece(ptr words, i64 begin, i64 end, i64 thread)."""
    module = Module()
    piece = module.function(_PIECE, VOID, PTR, I64, I64, I64)
    _write_piece(piece)
    f = module.function(_FUNCTION, VOID, PTR, PTR, PTR, I64, I64, I64, I64)
    host, task, args, units = f.args[:4]
    share_, inside_, begun_ = (getattr(_Recording, name).offset for name in ("share", "inside", "begun"))
    share = f.load(host, share_, PTR)
    with f.b.if_then(f.ne(f.load(host, inside_, I64), i64(0))):  # what a task shares out is part of it
        _run(f, share, task, args, units)
        f.ret()
    words = f.local_words(4)
    for k, value in enumerate((task, args, host)):
        f.store(value, words, 8 * k)
    begun = f.load(host, begun_, I64)
    f.store(begun, words, 24)
    f.store(f.b.add(begun, i64(1)), host, begun_)
    f.store(i64(1), host, inside_)
    _run(f, share, f.address_of(_PIECE), words, units)
    f.store(i64(0), host, inside_)
    f.ret()
    return str(module.ir)


def _run(f: Function, share: object, task: object, args: object, units: object) -> None:
    """Call a task for all units, or have the team do so."""
    host, *_, grain, least, work = f.args
    with f.b.if_else(f.is_null(share)) as (alone, shared):
        with alone:
            f.call_pointer(task, VOID, args, i64(0), units, i64(0))
        with shared:
            f.call_pointer(share, VOID, host, task, args, units, grain, least, work)


def _write_piece(f: Function) -> None:
    words, begin, end, thread = f.args
    task, args, host = (f.load(words, 8 * k, PTR) for k in range(3))
    notes_, count_, room_ = (getattr(_Recording, name).offset for name in ("notes", "count", "room"))
    start = f.monotonic_ns()
    f.call_pointer(task, VOID, args, begin, end, thread)
    stop = f.monotonic_ns()
    number = f.fetch_add(f.at(host, count_), i64(1))
    with f.b.if_then(f.b.icmp_signed("<", number, f.load(host, room_, I64))):
        note = f.at(f.load(host, notes_, PTR), f.b.mul(number, i64(8 * _WORDS)))
        for k, value in enumerate((f.load(words, 24, I64), thread, start, stop)):
            f.store(value, note, 8 * k)
    f.ret()
