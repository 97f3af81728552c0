"""Factors of products on their way to memory of a block of GPU threads (see ``group_matmul.py``).

Whatever a factor is made of is computed where it is read.  At the edges the last row or column is read again; behind
the end of the depth there are zeros.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hybridflow.compiler.codegen.core.kernel_builder import KernelBuilder, Ref
from hybridflow.compiler.codegen.core.llvm_values import Val
from hybridflow.compiler.codegen.core.operand import Operand, OperandAccess
from hybridflow.compiler.codegen.gpu.thread_group import ThreadGroup
from hybridflow.compiler.codegen.products.packed_formats import PackedFormat, factor
from hybridflow.compiler.codegen.products.packing import BATCH, DEPTH, FREE
from hybridflow.compiler.index.index_expr import IndexExpr, LoopVar
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.extents import Extent
from hybridflow.compiler.loops.tuning import VECTOR_BYTES

DEAR = 16  # instructions of an element from which on no code is written for vectors besides that for single elements


@dataclass(frozen=True)
class Slot:
    """What a thread brings of a factor at a time: neighbours from a place in the tile and along the depth on."""

    free: Ref
    depth: Ref


class SharedOperand:
    """One factor on its way to memory of the block: [depth][row or column].

    ``along`` is the part whose neighbours lie side by side.  What is read at one place comes from three methods:
    ``line`` says what is known of a row or column of a batch entry, ``at_depth`` of a place along the depth, and
    ``values`` reads at pairs of these.  ``step`` elements of the depth make a part, of ``tile`` rows or columns."""

    def __init__(
        self,
        code: KernelBuilder,
        group: ThreadGroup,
        form: PackedFormat,
        first: bool,
        tile: int,
        step: int,
        extent: Ref,
        k: Ref,
        along: int,
        width: int,
    ) -> None:
        self.c, self.e, self.form, self.first = code, code.e, form, first
        self.tile, self.step, self.extent, self.k, self.along, self.width = tile, step, extent, k, along, width
        each = tile * step // group.size
        self.slots = [self._slot(group, number) for number in range(each // self.width)]

    def line(self, entry: Ref, free: Ref) -> Any:
        raise NotImplementedError

    def at_depth(self, begin: Ref, depth: Ref) -> Any:
        """``begin`` is where the part begins, 0 where the slot may not lie in one that begins at a multiple."""
        raise NotImplementedError

    def values(self, places: Sequence[tuple[Any, Any]]) -> list[Val]:
        """Packed elements, ``width`` of them along ``along`` from each place on."""
        raise NotImplementedError

    def _slot(self, group: ThreadGroup, number: int) -> Slot:
        """The threads go along what lies side by side, then along the other."""
        c, width = self.c, self.width
        line = (self.step if self.along == DEPTH else self.tile) // width
        along: Ref
        iterations: Ref
        if line >= group.size:
            along, iterations = (
                c.add(group.rank, number % (line // group.size) * group.size),
                number // (line // group.size),
            )
        else:
            along, iterations = c.rem(group.rank, line), c.add(c.div(group.rank, line), number * (group.size // line))
        along = c.mul(along, width)
        return Slot(iterations, along) if self.along == DEPTH else Slot(along, iterations)

    def lines(self, entry: Ref, begin: Ref) -> list[Any]:
        """Where the slots read in the tile that begins there; behind the end the last ones again."""
        c, read = self.c, dict[Ref, Any]()
        last = c.sub(self.extent, self.width if self.along == FREE else 1)
        for slot in self.slots:
            if slot.free not in read:
                read[slot.free] = self.line(entry, c.min(c.add(begin, slot.free), last))
        return [read[slot.free] for slot in self.slots]

    def read(self, lines: Sequence[Any], begin: Ref) -> list[Val]:
        """What this thread brings of the elements along the depth from ``begin`` on: zeros behind the end."""
        c, e, k = self.c, self.e, self.k
        if isinstance(k, int) and k % self.step == 0:
            start = c.min(begin, k - self.step)
            places = [self.at_depth(start, slot.depth) for slot in self.slots]
            return self.values(list(zip(lines, places)))
        depths = [c.add(begin, slot.depth) for slot in self.slots]
        last = c.sub(k, self.width if self.along == DEPTH else 1)
        values = self.values([(line, self.at_depth(0, c.min(depth, last))) for line, depth in zip(lines, depths)])
        with c.width(self.width):
            inside = [e.splat(Val(str(c.compare("slt", depth, k)).lower(), dt.bool_, 1)) for depth in depths]
            return [e.select(some, value, e.zero(value.dtype)) for some, value in zip(inside, values)]

    def either(
        self, pointers: Sequence[str], vectors: Callable[[], list[Val]], gathered: Callable[[], list[Val]]
    ) -> list[Val]:
        """Vectors as they are read where all buffers begin at multiples of them, or else one by one."""
        return self.c.either_way(self.c.multiples(pointers, VECTOR_BYTES), vectors, gathered)

    def write(self, values: Sequence[Val], to: str, pitch: int) -> None:
        """Put what was read into memory of the block, where rows of one depth lie ``pitch`` apart."""
        c, e, item = self.c, self.e, self.form.packed.itemsize
        for slot, value in zip(self.slots, values):
            start = c.at(to, c.add(c.mul(slot.depth, pitch), slot.free), item)
            if self.along == FREE and self.width > 1:
                e.store(value, start, align=min(VECTOR_BYTES, self.width * item))
                continue
            for k in range(self.width):
                e.store(e.extract(value, k), c.at(start, k * pitch, item))

    def write_lines(self, values: Sequence[Val], to: str, pitch: int) -> None:
        """The same as [row or column][depth], for vectors along the depth."""
        c, e, item = self.c, self.e, self.form.packed.itemsize
        for slot, value in zip(self.slots, values):
            start = c.at(to, c.add(c.mul(slot.free, pitch), slot.depth), item)
            e.store(value, start, align=min(VECTOR_BYTES, self.width * item))


def widest(operand: Operand, lane: LoopVar, extent: Ref | Extent, each: int, step: int) -> int:
    """How many neighbours along a loop, all of a part of ``extent``, are read at once by a thread that reads ``each``
    elements of ``step`` along the depth."""
    width = min(VECTOR_BYTES // operand.dtype.itemsize, each, step)
    even = isinstance(extent, int) and operand.work < DEAR
    while width > 1 and not (
        even and extent % width == 0 and all(is_aligned(ix, lane, width) for ix in operand.accesses)
    ):
        width //= 2
    return max(width, 1)


def is_aligned(position: IndexExpr, lane: LoopVar, width: int) -> bool:
    """Whether vectors of that width lie at multiples of it, if what is read begins at one."""
    if not position.is_affine or position.coefficient(lane) not in (0, 1):
        return False
    return all(factor % width == 0 for (atom, _), factor in position.terms if atom is not lane)


@dataclass(frozen=True)
class OperandLine:
    """A row or column: its number, the factor there and in its whole batch entry, and what else that is known by."""

    free: Ref
    there: OperandAccess
    entry: OperandAccess
    offset: Ref = 0


class FactorOperand(SharedOperand):
    """A factor by the parts batch, rows or columns, and depth, whose vectors along the depth lie within runs of so many
    elements (0: all)."""

    def __init__(
        self,
        code: KernelBuilder,
        group: ThreadGroup,
        form: PackedFormat,
        first: bool,
        tile: int,
        step: int,
        extent: Ref,
        k: Ref,
        operand: Operand,
        within: int = 0,
    ) -> None:
        self.operand = operand
        along = DEPTH if operand.along(DEPTH) > operand.along(FREE) else FREE
        self.lane, width = operand.loops[along][-1], 1
        if len(operand.loops[along]) == 1:
            width = widest(
                operand, self.lane, extent if along == FREE else within or k, tile * step // group.size, step
            )
        super().__init__(code, group, form, first, tile, step, extent, k, along, width)

    def line(self, entry: Ref, free: Ref) -> OperandLine:
        whole = self.operand.start.at(BATCH, entry)
        return OperandLine(free, whole.at(FREE, free), whole)

    def at_depth(self, begin: Ref, depth: Ref) -> Ref:
        return self.c.add(begin, depth)

    def values(self, places: Sequence[tuple[OperandLine, Ref]]) -> list[Val]:
        if self.width == 1:
            return [self._element(line.there, depth) for line, depth in places]
        pointers = [place.pointer for place in self.operand.places.values()]
        return self.either(
            pointers,
            lambda: [self._vector(*place) for place in places],
            lambda: [self._gathered(*place) for place in places],
        )

    def _vector(self, line: OperandLine, depth: Ref) -> Val:
        with self.c.width(self.width):
            value = line.there.value(line.there.counters_at(DEPTH, depth), self.lane)
            return factor(self.e, value, self.form, self.first)

    def _gathered(self, line: OperandLine, depth: Ref) -> Val:
        add, numbers = self.c.add, range(self.width)
        if self.along == DEPTH:
            return self.e.vector_of([self._element(line.there, add(depth, k)) for k in numbers])
        return self.e.vector_of([self._element(line.entry.at(FREE, add(line.free, k)), depth) for k in numbers])

    def _element(self, there: OperandAccess, depth: Ref) -> Val:
        with self.c.width(1):
            return factor(self.e, there.value(there.counters_at(DEPTH, depth)), self.form, self.first)


OperandPair = Callable[[KernelBuilder, ThreadGroup], tuple[SharedOperand, SharedOperand]]
"""Both factors, for the team that runs the code."""
