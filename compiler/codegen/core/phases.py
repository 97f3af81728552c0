"""What an emitted kernel is to those who run it: phases, one after another, and the memory that they need.

A phase is a function

    void k(ptr a0, ..., ptr shared, ptr scratch, ptr dims, ptr status, i64 begin, i64 end)

over the units [begin, end).  The units of a phase may be cut anywhere at a multiple of its grain.  The pieces run in
any order by any number of workers, with the same bits; a phase begins when the one before it is through.

``shared``   memory that all units and phases of the kernel see: partial results of a fold, carries of a scan.  It holds
             anything at first.  Of a phase, no two pieces write the same place, but for words in its first 64 bytes
             that all of them store alike, atomically
``scratch``  memory of the worker that runs the piece; nothing lasts in it from one piece to the next
``dims``     values of the symbolic extents
``status``   where checks are recorded (see ``Emitter.raise_if``), null where no kernel of the program has one

A result may lie where an operand does, of which the kernel then reads each element before it writes that one.  Kernels
over buffers of which that is so share their code with others.  So the pointers are not ``noalias``.  Nothing is lost:
bodies are explicit vectors that load all they need before they store, LLVM makes no checks for overlaps.  With
``noalias`` everywhere forty programs ran, and compiled, as fast as without.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hybridflow.compiler.ir.extents import Extent
from hybridflow.quick_dataclasses import dataclass


@dataclass(frozen=True)
class Phase:
    """``units`` are as many as the product of these extents says.  Cutting them at other places than multiples of
    ``grain`` is not allowed.  Pieces of less than ``least`` units pay for their beginning; fewer than ``workers`` do
    better to leave all units to one of them.  ``checks``: the kernel's checks, where it has any, are made here, or here
    too.  A ``team`` of so many threads of a GPU runs each unit; its assembler is told to leave registers for
    ``threads`` of a multiprocessor: else it may spill some to have more. ``together``: all threads of a launch run its
    one unit, in blocks of ``team``; ``wanted`` of them have something to do.  Its scratch memory is a word at which
    they meet, see ``together``.  A block of the launch is ``lent`` so many bytes of its memory; one of a kernel that a
    team runs within another one uses what that one is lent."""

    symbol: str
    units: tuple[Extent, ...]
    grain: int = 1
    checks: bool = True
    least: int = 1
    workers: int = 1
    group_size: int = 1
    threads: int = 0
    cooperative: bool = False
    useful_threads: Extent = 1
    dynamic_shared_bytes: int = 0


@dataclass(frozen=True)
class EmittedKernel:
    """An emitted kernel.  ``shared`` and ``scratch`` are bytes, the latter for each worker, or each team of threads;
    both memories begin at multiples of 64.  ``sequential`` does what the phases do, where a CPU's single thread runs
    all of its units at once.

    One that ``asks_host`` has a single unit, which the thread of the caller runs while nothing else runs: it has the
    host share out what it does itself, see ``host_tasks.store_host``, and uses the scratch memory of all workers.
    ``schedule`` says how it runs, where its emitter has decided that."""

    phases: tuple[Phase, ...]
    scratch: Extent = 0
    shared: Extent = 0
    sequential: Phase | None = None
    asks_host: bool = False
    schedule: str = ""

    def single_threaded(self) -> EmittedKernel:
        """The same for a single thread."""
        return (
            self
            if self.sequential is None
            else replace(self, phases=(self.sequential,), sequential=None, asks_host=False)
        )


def one_phase(
    symbol: str, units: Sequence[Extent], grain: int = 1, scratch: Extent = 0, least: int = 1
) -> EmittedKernel:
    return EmittedKernel((Phase(symbol, tuple(units), grain, least=least),), scratch)


def kernel_parameters(buffers: int) -> str:
    """Parameters of a phase over ``buffers`` operand and result buffers."""
    return kernel_arguments(
        [f"%a{i}" for i in range(buffers)], "%shared", "%scratch", "%dims", "%status", "%begin", "%end"
    )


def kernel_arguments(
    buffers: Sequence[str], shared: str, scratch: str, dims: str, status: str, begin: object, end: object
) -> str:
    """Arguments for a call of a phase."""
    pointers = ", ".join(f"ptr {p}" for p in (*buffers, shared, scratch, dims, status))
    return f"{pointers}, i64 {begin}, i64 {end}"
