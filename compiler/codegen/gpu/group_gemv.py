"""Products of a matrix with a vector by teams of GPU threads, in the order of a row reduction (see ``gemv.py``).

Lines whose elements lie side by side are folded like rows, by a warp or by more.  Where neighbouring lines lie side by
side instead, a team has as many of them as a warp has threads; of each of them every warp sums some of the 64 logical
lanes, which come together by halving: first those of a thread, then those of the warps, through memory of the block.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hybridflow.compiler.codegen.core.kernel_builder import KernelBuilder, Ref
from hybridflow.compiler.codegen.core.llvm_values import Val
from hybridflow.compiler.codegen.core.operand import OperandAccess
from hybridflow.compiler.codegen.gpu.group_reduction import GroupReduction
from hybridflow.compiler.codegen.gpu.thread_group import ThreadGroup
from hybridflow.compiler.codegen.nests.reduction import State, Sum
from hybridflow.compiler.codegen.products.gemv import Finish, GemvOperands, go_along, or_nothing
from hybridflow.compiler.codegen.products.packing import BATCH, DEPTH, FREE
from hybridflow.compiler.ir.extents import Extent
from hybridflow.compiler.loops.schedule import group_of_rows
from hybridflow.compiler.loops.tuning import WARP
from hybridflow.compiler.ops.evaluation_order import CHUNK, LANES, SUPERCHUNK

WARPS = 8  # of a team whose threads have a line each
OWN = LANES // WARPS  # logical lanes of a thread


@dataclass(frozen=True)
class GroupWork:
    """What a team does: its units, its threads, and that in words."""

    units: tuple[Extent, ...]
    group_size: int
    how: str


def emit_group_gemv(c: KernelBuilder, lines: GemvOperands, finish: Finish) -> GroupWork:
    """The body of a kernel whose units are lines, or as many neighbours as a warp has threads."""
    return _along(c, lines, finish) if go_along(lines) else _Across(c, lines, finish).emit()


def _along(c: KernelBuilder, lines: GemvOperands, finish: Finish) -> GroupWork:
    e, dtype = c.e, lines.dtype
    size = group_of_rows(lines.depth, dtype.itemsize)
    group = ThreadGroup(c, size)
    known = lines.depth if isinstance(lines.depth, int) else None
    fold = GroupReduction(c, group, [Sum(dtype)], known, group.warps * LANES * dtype.itemsize)
    first, second = (operand.loops[DEPTH][-1] for operand in (lines.matrix, lines.vector))
    with c.loop("%begin", "%end") as unit:
        count = c.extent(lines.count)
        entry, line = c.div(unit.index, count), c.rem(unit.index, count)
        matrix = lines.matrix.start.at(BATCH, entry).at(FREE, line)
        vector = lines.vector.start.at(BATCH, entry).at(FREE, 0)

        def products(k: Ref, mask: Val | None) -> list[State]:
            a, b = matrix.value({first: k}, first, mask), vector.value({second: k}, second, mask)
            return [(e.mul(e.convert(a, dtype), e.convert(b, dtype)),)]

        ((total,),) = fold.run(c.extent(lines.depth), products)
        with c.when(group.is_first):
            finish(or_nothing(e, total), entry, line, None)
    return GroupWork((*lines.batch, lines.count), size, f"a line a team of {size}")


class _Across:
    def __init__(self, c: KernelBuilder, lines: GemvOperands, finish: Finish) -> None:
        self.c, self.e, self.lines, self.finish = c, c.e, lines, finish
        self.group = ThreadGroup(c, WARPS * WARP)
        self.memory = self.group.memory(WARPS * WARP * lines.dtype.itemsize)
        self.depth = c.extent(lines.depth)
        self.sum = Sum(lines.dtype)

    def emit(self) -> GroupWork:
        c, lines = self.c, self.lines
        groups = (lines.count + (WARP - 1)) // WARP
        with c.loop("%begin", "%end") as unit:
            entry = c.div(unit.index, c.extent(groups))
            line = c.add(c.mul(c.rem(unit.index, c.extent(groups)), WARP), self.group.lane)
            count = c.extent(lines.count)
            matrix = lines.matrix.start.at(BATCH, entry).at(FREE, c.min(line, c.sub(count, 1)))
            vector = lines.vector.start.at(BATCH, entry).at(FREE, 0)
            total = self._total(lambda k: self._product(matrix, vector, k))
            is_own = c.both(c.compare("slt", line, count), c.compare("eq", self.group.warp, 0))
            with c.when(is_own):
                self.finish(or_nothing(self.e, total), entry, line, None)
        return GroupWork((*lines.batch, groups), self.group.size, f"{WARP} lines a team of {self.group.size}")

    def _product(self, matrix: OperandAccess, vector: OperandAccess, k: Ref) -> Val:
        e, dtype = self.e, self.lines.dtype
        a, b = (at.value(at.counters_at(DEPTH, k)) for at in (matrix, vector))
        return e.mul(e.convert(a, dtype), e.convert(b, dtype))

    def _total(self, term: Callable[[Ref], Val]) -> Val:
        c, e = self.c, self.e
        with c.loop(0, self.depth, SUPERCHUNK, self._start(1)) as block:
            end = c.min(c.add(block.index, SUPERCHUNK), self.depth)
            with c.loop(block.index, end, CHUNK, self._start(OWN)) as chunk:
                last = c.min(c.add(chunk.index, CHUNK), end)
                chunk.next = _sums(self, chunk.carried, self._chunk(chunk.index, last, term))
            block.next = [e.add(block.carried[0], self._folded(chunk.carried))]
        return block.carried[0]

    def _start(self, count: int) -> list[Val]:
        return [*self.sum.start(self.e)] * count

    def _chunk(self, begin: Ref, end: Ref, term: Callable[[Ref], Val]) -> list[Val]:
        """The thread's lanes, the warp's number and those that are so many warps further on, of one chunk."""
        c, e = self.c, self.e
        whole = c.add(begin, c.mul(c.div(c.sub(end, begin), LANES), LANES))
        with c.loop(begin, whole, LANES, self._start(OWN)) as step:
            at = c.add(step.index, self.group.warp)
            step.next = [e.add(lane, term(c.add(at, WARPS * k))) for k, lane in enumerate(step.carried)]
        result, at = [], c.add(whole, self.group.warp)
        for k, lane in enumerate(step.carried):
            line = c.add(at, WARPS * k)
            with c.loop(line, c.min(c.add(line, 1), end), 1, [lane]) as remainder:  # at most one turn
                remainder.next = [e.add(remainder.carried[0], term(remainder.index))]
            result.append(remainder.carried[0])
        return result

    def _folded(self, lanes: list[Val]) -> Val:
        """All lanes of a superchunk as one, in the order of halving."""
        c, e, item = self.c, self.e, self.lines.dtype.itemsize
        while len(lanes) > 1:
            lanes = _sums(self, lanes[: len(lanes) // 2], lanes[len(lanes) // 2 :])
        e.store(lanes[0], c.at(self.memory, self.group.rank, item))
        self.group.barrier()
        lanes = [
            e.load(c.at(self.memory, c.add(self.group.lane, WARP * k), item), lanes[0].dtype) for k in range(WARPS)
        ]
        self.group.barrier()
        while len(lanes) > 1:
            lanes = _sums(self, lanes[: len(lanes) // 2], lanes[len(lanes) // 2 :])
        return lanes[0]


def _sums(across: _Across, a: list[Val], b: list[Val]) -> list[Val]:
    return [across.e.add(x, y) for x, y in zip(a, b, strict=True)]
