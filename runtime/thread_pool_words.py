"""Numbers that decide when threads pay, and what native code reads of the team, all of it in one place of memory.

`benchmarks/threads.py` measures what the numbers stand for.
"""

from __future__ import annotations

import ctypes

from hybridflow.compiler.program import LEAST_SHARED

MOST = 256  # threads of a process, however many it is asked for

# Work is counted as ``Program.work`` is: some 300 to 1000 of it take a nanosecond.
MIN_PIECE = 1 << 20  # of a piece, at the least: 1 to 3 us
MIN_JOB = LEAST_SHARED  # of a job that threads are given while they look for work
MIN_WAKING = 1 << 23  # of a program for which they are woken
PIECES = 16  # for each member, at the most: the last ones to work wait for a part of a sixteenth

SPIN_CHECK = 30_000  # nanoseconds for which a thread without work looks for some
WAIT = 20_000  # ... and for which the caller of a job looks whether the last pieces are done
SINGLE_THREAD = 2_000  # of both, for which they do so without offering their core to others
STACK = 8 << 20  # bytes: what a main thread has; musl gives others too little for kernels

# The number of threads, 0 while nobody asked for it; the address of ``parallel_for``, 0 while it is not loaded; and how
# much work a program, a piece of a job, a job, and a program for which threads are woken do at the least.
THREADS, PARALLEL_FOR, LEAST, PIECE, LOOKING, SLEEPING = range(6)
words = (ctypes.c_int64 * 6)(0, 0, LEAST_SHARED, MIN_PIECE, MIN_JOB, MIN_WAKING)

CORE_QUERY = 1  # in the place of the address of a program's entry for a host: it can be made
