"""Cliffs that no timing of a kernel shows: calls that take longer than their kernels, and kernels that do more work for
several threads than for one.

    python benchmarks/cliffs.py [--threads N] [--only WORDS] [--json]

Each program of ``benchmarks.suite`` is called on one thread, and its kernels are timed there and as they are cut for
``--threads``.  Those pieces run one after the other in the thread of the caller, so that the figure is the work that is
done, whoever else uses the machine: dividing it among threads can make it no smaller.  All figures are the least of
several runs, in turn.

call       a call, over what its kernels take on one thread
pieces     the kernels of a program as they are cut for threads, over what they take on one
kernel     the same of its single worst kernel

A program has a cliff where a call takes more than ``LIMIT`` times as long as its kernels, or where a kernel does so
much more work for N threads that it would take longer on these than on one, and where what is lost is more than
``LEAST`` seconds.  The exit status is 1 where there are any.
"""

from __future__ import annotations

import argparse
import ctypes
import functools
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
os.environ.setdefault("HF_OPT", "2")  # what is timed runs the code that calls have at last

import numpy as np

import hybridflow as hf
from benchmarks.suite.case import made_ready
from benchmarks.suite.libraries import HybridFlow, NotOffered
from benchmarks.suite.programs import CASES
from hybridflow.runtime.host_interface import TYPES
from hybridflow.runtime.native import native_functions
from hybridflow.runtime.native.ir_builder import I64, PTR, VOID, Module, i64
from hybridflow.runtime.native.records import TEAM_HOST
from hybridflow.runtime.profiling_host import ProfilingHost
from hybridflow.runtime.thread_pool_words import words
from hybridflow.runtime.threads import thread_pool, thread_pool_code

LIMIT = 1.3
LEAST = 20e-6  # seconds that are worth a look
ROUNDS, SECONDS = 5, 0.3  # the fewest rounds, and about how long those of one program last

_IN_TURN = "hf_in_turn_for"


@dataclass
class Row:
    """What one program takes, in seconds: a call, its kernels on one thread, and cut for several; the ratios are those
    of the module's text, ``worst`` is the name of the kernel with the largest one."""

    program: str
    call: float
    kernels: float
    pieces: float
    kernel: float
    worst: str

    def cliffs(self, threads: int) -> list[str]:
        """What is wrong with it, in words."""
        found = []
        if self.call > LIMIT * self.kernels and self.call - self.kernels > LEAST:
            found.append(f"a call takes {self.call / self.kernels:.2f} times as long as its kernels")
        if self.kernel > threads:
            found.append(f"{self.worst} does {self.kernel:.2f} times as much for several threads")
        return found


@functools.cache
def _in_turn() -> int:
    """The address of a function that cuts a job as the team does for the workers of its host, and runs the pieces one
    after the other in the calling thread."""

    def build() -> str:
        f = Module().function(_IN_TURN, VOID, PTR, PTR, PTR, I64, I64, I64, I64)
        host, task, args, units, grain, least, work = f.args
        members = thread_pool_code.members_of(f, TEAM_HOST.at(f, host).workers, units, grain, work)
        with f.b.if_else(f.b.icmp_signed("<=", members, i64(1))) as (alone, cut):
            with alone:
                f.call_pointer(task, VOID, args, i64(0), units, i64(0))
            with cut:
                piece, begin = thread_pool_code.piece_for(f, members, units, grain, least, work), f.local(I64, i64(0))
                with f.loop(lambda: f.b.icmp_signed("<", f.get(begin, I64), units)):
                    first = f.get(begin, I64)
                    end = f.b.add(first, piece)
                    last = f.b.select(f.b.icmp_signed("<", end, units), end, units)
                    f.call_pointer(task, VOID, args, first, last, i64(0))
                    f.set(begin, last)
        f.ret()
        return str(f.module.ir)

    imports = {"team_words": ctypes.addressof(words)}
    return native_functions.load(build, ("pieces in turn",), (_IN_TURN,), imports)[_IN_TURN]


def _timed(concrete: Any, leaves: Sequence[Any], threads: int) -> Callable[[], np.ndarray]:
    """What runs the kernels of a call, as they are cut for so many threads, and returns the seconds of each."""
    hf.config.set_num_threads(threads)
    executable, arrays, changed = concrete.timed(leaves)
    host = executable.timing_team(arrays)
    if host is not None:
        host.parallel_for = TYPES["parallel_for"](_in_turn())
    timing = ProfilingHost(len(executable.program.tasks), host)
    kernels = np.array(executable.program.tasks, np.int64)

    def run() -> np.ndarray:
        given = [array.copy() if i in changed else array for i, array in enumerate(arrays)]
        timing.begin()
        executable.compute(given, executable.in_place, timing.struct)
        return np.bincount(kernels, timing.seconds(), len(executable.program.kernels))

    run.names = [kernel.name for kernel in executable.program.kernels]  # type: ignore[attr-defined]
    return run


def measured(name: str, threads: int) -> Row | None:
    """One program; None where it has no kernels that can be timed."""
    function, given = made_ready(CASES[name], HybridFlow(1))
    if not hasattr(function, "profile"):
        return None
    hf.config.set_num_threads(1)
    for _ in range(3):
        function(*given)
    request = function._request(*function._import_foreign_arrays(tuple(given), {}))
    concrete = function._answering(request)
    alone, cut = (_timed(concrete, request.leaves, count) for count in (1, threads))
    if not alone.names:  # type: ignore[attr-defined]
        return None
    calls, samples = [], ([], [])
    end = time.perf_counter() + SECONDS
    while len(calls) < ROUNDS or time.perf_counter() < end:
        hf.config.set_num_threads(1)
        function(*given)
        start = time.perf_counter()
        function(*given)
        calls.append(time.perf_counter() - start)
        for run, found in zip((alone, cut), samples):
            run()
            found.append(run())
    one, several = (np.min(found, axis=0) for found in samples)
    ratios = np.where(several - one > LEAST, several / np.maximum(one, 1e-9), 1.0)
    worst = int(np.argmax(ratios))
    name_of = alone.names[worst]  # type: ignore[attr-defined]
    return Row(name, min(calls), float(one.sum()), float(several.sum()), float(ratios[worst]), name_of)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2, help="for how many threads kernels are cut (2)")
    parser.add_argument("--only", help="programs whose names have one of these parts, divided by commas")
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    given = parser.parse_args(arguments)
    parts = given.only.split(",") if given.only else [""]
    rows, cliffs = [], 0
    for name in (name for name in CASES if any(part.strip() in name for part in parts)):
        try:
            row = measured(name, given.threads)
        except NotOffered:
            continue
        if row is None:
            continue
        rows.append(row)
        found = row.cliffs(given.threads)
        cliffs += bool(found)
        if not given.json:
            figures = f"{1e6 * row.call:10.1f} {1e6 * row.kernels:10.1f} {1e6 * row.pieces:10.1f}  {row.kernel:5.2f}"
            print(f"{name[:44]:44} {figures}  {'; '.join(found)}", flush=True)
    if given.json:
        print(json.dumps([asdict(row) for row in rows]))
    else:
        print(f"{cliffs} of {len(rows)} programs have a cliff (call, kernels, pieces in microseconds)")
    return 1 if cliffs else 0


if __name__ == "__main__":
    thread_pool.is_on()
    sys.exit(main())
