"""Threads of a GPU that run a graph together: all of a launch go through its kernels, one after another.

A unit of a kernel is a thread's, or a warp's, as at the top of a program; a barrier stands where a program would have
the next launch.  All threads come to each barrier: what decides the way there lies in memory that all of them see, and
is the same for each of them between two barriers.

Blocks meet at a word of memory that counts arrivals.  They wait for each other, so all of them must be on the device at
once, as they are in a cooperative launch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from hybridflow.compiler.codegen.core.emitter import Emitter
from hybridflow.compiler.codegen.core.kernel_builder import KernelBuilder, Loop, Ref
from hybridflow.compiler.codegen.core.llvm_module import LLVMModule
from hybridflow.compiler.codegen.core.phases import Phase
from hybridflow.compiler.codegen.gpu.thread_group import ThreadGroup, number_and_count, special_register
from hybridflow.compiler.ir.extents import Extent, aligned, larger
from hybridflow.compiler.ir.types import product
from hybridflow.compiler.loops.buffer_assignment import ALIGNMENT
from hybridflow.compiler.loops.tuning import (
    COOPERATIVE_SCRATCH_BYTES,
    MAX_COOPERATIVE_THREADS,
    MIN_COOPERATIVE_THREADS,
    WARP,
)

BARRIER = "everyone"  # the name of the function that is a barrier
PAUSE = 20  # nanoseconds between two looks at the others
_WIDTHS = (16, 4, 1)  # bytes that a thread copies at once


class CooperativeThreads:
    """Those that run the ``code`` together, at whose beginning it is made: how many, and the number of this one."""

    def __init__(self, code: KernelBuilder, number: Ref, count: Ref) -> None:
        self.code, self.e, self.number, self.count = code, code.e, number, count
        self.warp, self.warps = code.div(number, WARP), code.div(count, WARP)
        self.is_first = str(code.compare("eq", number, 0))

    def barrier(self) -> None:
        """Wait for the others, wherever each of them comes from; what they have written by then can be read."""
        raise NotImplementedError

    def distribute(self, group: int) -> tuple[Ref, Ref]:
        """The first unit of this thread's team, and how far it is from each to the next."""
        return (self.number, self.count) if group == 1 else (self.warp, self.warps)

    @contextmanager
    def units(self, count: Ref, group: int, threads: Ref | None = None) -> Iterator[Loop]:
        """A turn for each unit of this thread, or of its team; ``threads`` are as many as take part."""
        first, step = self.distribute(group)
        if threads is None:
            with self.code.loop(first, count, step) as unit:
                yield unit
            return
        takes_part, stride = self.code.compare("slt", self.number, threads), self.code.min(step, threads)
        with self.code.when(takes_part), self.code.loop(first, count, stride) as unit:
            yield unit

    def copy(self, target: str, source: str, size: Ref) -> None:
        """Copy bytes; the target is the source, or none of it."""
        if size == 0:
            return
        code, e = self.code, self.e
        wider: str | bool = False
        for width in _WIDTHS:
            whole = code.compare("eq", code.rem(size, width), 0)
            fits = code.both(code.multiples([target, source], width), whole)
            with (
                code.when(code.both(fits, code.negation(wider))),
                code.loop(self.number, code.div(size, width), self.count) as k,
            ):
                kind, value = f"i{8 * width}", e.fresh("w")
                e.line(f"{value} = load {kind}, ptr {code.at(source, k.index, width)}, align {width}")
                e.line(f"store {kind} {value}, ptr {code.at(target, k.index, width)}, align {width}")
            wider = fits


class CooperativeGrid(CooperativeThreads):
    """All threads of a launch.  Their blocks meet at the ``word``, the address of an i64 that was 0 when they began."""

    def __init__(self, module: LLVMModule, code: KernelBuilder, word: str) -> None:
        super().__init__(code, *number_and_count(code, 1))
        self.word = word
        self._barrier = _write_barrier(module)

    def barrier(self) -> None:
        self.e.line(f"call void @{self._barrier}(ptr {self.word})")


class CooperativeBlock(CooperativeThreads):
    """All threads of a block, so many, of which a team may be a warp or all of them."""

    def __init__(self, code: KernelBuilder, size: int) -> None:
        self._team = ThreadGroup(code, size)
        super().__init__(code, self._team.rank, size)

    def barrier(self) -> None:
        self._team.barrier()

    def distribute(self, group: int) -> tuple[Ref, Ref]:
        return (0, 1) if group == self._team.size else super().distribute(group)


def _write_barrier(module: LLVMModule) -> str:
    """Add the function at which all threads of a launch meet; its name."""
    e = Emitter(module.target, 1)
    code = KernelBuilder(e, ())
    one_block = code.compare("eq", special_register(e, "nctaid.x"), 1)
    blocks = special_register(e, "nctaid.x")
    sync = "llvm.nvvm.barrier.cta.sync.all"
    e.declare(f"declare void @{sync}(i32)")
    e.declare("declare void @llvm.nvvm.nanosleep(i32)")
    with code.when(code.negation(one_block)):
        e.line(f"call void @{sync}(i32 0)")
        with code.when(code.compare("eq", special_register(e, "tid.x"), 0)):
            before, now = e.fresh("i"), e.fresh("i")
            e.line('fence syncscope("device") acq_rel')  # atomicrmw has no order in PTX
            e.line(f'{before} = atomicrmw add ptr %word, i64 1 syncscope("device") monotonic, align 8')
            all_there = code.mul(code.add(code.div(before, blocks), 1), blocks)
            wait, met, pause = e.new_label("wait"), e.new_label("met"), e.new_label("pause")
            e.branch(wait)
            e.label(wait)
            e.line(f'{now} = load atomic i64, ptr %word syncscope("device") acquire, align 8')
            e.branch_if(str(code.compare("sge", now, all_there)), met, pause)
            e.label(pause)
            e.line(f"call void @llvm.nvvm.nanosleep(i32 {PAUSE})")
            e.branch(wait)
            e.label(met)
            e.line('fence syncscope("device") acq_rel')
    e.line(f"call void @{sync}(i32 0)")
    e.line("ret void")
    return module.function(e, BARRIER, "ptr %word", linkage="internal", attributes="noinline")


def threads_for(phases: Iterable[Phase]) -> Extent:
    """The threads that have something to do when they run these."""
    wanted: Extent = 1
    for phase in phases:
        wanted = larger(
            wanted, phase.useful_threads if phase.cooperative else product((*phase.units, phase.group_size))
        )
    return wanted


def block_of(wanted: Extent) -> int:
    """The threads of a block, where that many have something to do."""
    threads = MIN_COOPERATIVE_THREADS
    while threads < MAX_COOPERATIVE_THREADS and not (isinstance(wanted, int) and wanted <= threads):
        threads *= 2
    return threads


def threads_of_scratch(scratch: Extent) -> int:
    """How many threads have scratch memory, of so many bytes each: not known ones may be many."""
    if not isinstance(scratch, int):
        return WARP
    return max(1, min(MAX_COOPERATIVE_THREADS, COOPERATIVE_SCRATCH_BYTES // max(scratch, 1)))


def scratch_bytes(scratch: Extent) -> Extent:
    """The memory of all threads that have scratch memory."""
    return 0 if scratch == 0 else threads_of_scratch(scratch) * aligned(scratch, ALIGNMENT)
