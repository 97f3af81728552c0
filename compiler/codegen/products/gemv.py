"""Products of a matrix with a vector whose sums go in the order of a row reduction (``evaluation_order.py``).

Each line of the matrix is multiplied with the vector, element by element, and the products are summed like a row of
them: the result is that of ``sum(line * vector)``, in the dtype of the sums.  Lines whose elements lie side by side are
folded one by one, in vectors along the line, and finished in vectors across lines.  Where neighbouring lines lie side
by side instead, vectors run across a strip of them, all of whose lanes are in the first cache: so memory is read in the
order in which it lies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from hybridflow.compiler.codegen.core.emitter import Emitter
from hybridflow.compiler.codegen.core.kernel_builder import KernelBuilder, Ref, lanes_for
from hybridflow.compiler.codegen.core.llvm_values import Val
from hybridflow.compiler.codegen.core.operand import Operand, OperandAccess
from hybridflow.compiler.codegen.nests.reduction import LaneFold, State, Sum, fold_lanes
from hybridflow.compiler.codegen.products.packing import BATCH, DEPTH, FREE
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.extents import Extent
from hybridflow.compiler.loops.tuning import CACHE_LINE, FOLDED, LANE_CELLS, LANE_GROUPS, LONG_LINES, SIDE_BY_SIDE
from hybridflow.compiler.ops.evaluation_order import CHUNK, LANES, SUPERCHUNK

Work = tuple[tuple[Extent, ...], int, Extent]
"""What a kernel does: its units, the grain at which they may be cut, and bytes of scratch."""

Finish = Callable[[Val, Ref, Ref, "Val | None"], None]
"""``finish(sums, entry, line, mask)`` stores the sums of ``e.width`` lines of a batch entry from ``line``."""

AreNeeded = Callable[[Ref, Ref, Ref], "str | bool"]
"""``are_seen(entry, first, end)``: whether anybody looks at the sums of these lines, ``e.width`` at the most."""

_Fold = Callable[[OperandAccess, OperandAccess, Ref, Ref, Ref], None]
"""``fold(matrix, vector, entry, first, last)`` finishes the lines [first, last) of a batch entry."""


@dataclass(frozen=True)
class GemvOperands:
    """``count`` lines (the free part of ``matrix``) of ``depth`` elements in each entry of the batch, and the entry's
    vector, whose free part has one element."""

    matrix: Operand
    vector: Operand
    dtype: np.dtype  # of the sums
    batch: tuple[Extent, ...]
    count: Extent
    depth: Extent


def emit_gemv(c: KernelBuilder, lines: GemvOperands, finish: Finish, are_seen: AreNeeded, along: bool) -> Work:
    """The body of a kernel whose units are lines, folded ``along`` their elements or neighbouring ones at once.  Where
    nobody looks lines may be left out."""
    return _Gemv(c, lines, finish, are_seen).emit(along)


def go_along(lines: GemvOperands) -> bool:
    """Whether lines are folded along their elements, rather than neighbouring ones at once."""
    matrix, vector = lines.matrix, lines.vector
    one_loop = len(matrix.loops[DEPTH]) == len(vector.loops[DEPTH]) == 1
    return one_loop and matrix.along(DEPTH) >= matrix.along(FREE)


def or_nothing(e: Emitter, total: Val) -> Val:
    """A total as it leaves the kernel: the sum of nothing is 0.0, not the identity -0.0."""
    return e.add(e.const(0.0, total.dtype), total) if dt.is_float(total.dtype) else total


@dataclass(frozen=True)
class _GemvTile:
    """``count`` neighbouring lines from position ``first`` of the matrix's last loop, and vectors of them."""

    matrix: OperandAccess
    vector: OperandAccess
    first: Ref
    count: Ref
    width: int


class _Gemv:
    def __init__(self, c: KernelBuilder, lines: GemvOperands, finish: Finish, are_seen: AreNeeded) -> None:
        self.c, self.e, self.lines, self.finish, self.are_seen = c, c.e, lines, finish, are_seen
        self.count, self.depth = c.extent(lines.count), c.extent(lines.depth)
        self.known = lines.depth if isinstance(lines.depth, int) else None
        self.sum = Sum(lines.dtype)
        self.scratch = 0

    def emit(self, along: bool) -> Work:
        c, lines = self.c, self.lines
        matrix, vector = lines.matrix, lines.vector
        fold, grain = self._along() if along else self._across()
        with c.spans("%begin", "%end", self.count) as (entry, first, last):
            line = vector.start.at(BATCH, entry).at(FREE, 0)
            fold(matrix.start.at(BATCH, entry), line, entry, first, last)
        return (*lines.batch, lines.count), grain, self.scratch

    def _allocate(self, nbytes: int) -> str:
        """A piece of scratch."""
        start, self.scratch = self.scratch, self.scratch + -(-nbytes // 64) * 64
        return self.c.at("%scratch", start, 1)

    def _widened(self, value: Val) -> Val:
        return self.e.splat(self.e.convert(value, self.lines.dtype))

    def _finish(self, total: Val, entry: Ref, line: Ref, mask: Val | None) -> None:
        self.finish(or_nothing(self.e, total), entry, line, mask)

    # ---- lines one by one

    def _along(self) -> tuple[_Fold, int]:
        c, e, dtype = self.c, self.e, self.lines.dtype
        width = min(e.target.lanes(8 * dtype.itemsize), LANES)
        # What finishes the sums may take longer than they do, so it has vectors, too.
        together = lanes_for(e.target, dtype, self.lines.count)
        totals = self._allocate(together * dtype.itemsize) if together > 1 else ""
        count = min(together, self._side_by_side(LANES // width))
        fold = LaneFold(c, self._allocate, [self.sum] * count, self.known, light=True)
        loops = [operand.loops[DEPTH][-1] for operand in (self.lines.matrix, self.lines.vector)]

        def totals_of(matrix: OperandAccess, vector: OperandAccess, lines: list[Ref]) -> list[Val]:
            """The sums of lines that go side by side: they share the vector, and none waits for another."""
            rows = [matrix.at(FREE, line) for line in lines]

            def products(k: Ref, mask: Val | None) -> list[State]:
                a = [self._widened(row.value({loops[0]: k}, loops[0], mask)) for row in rows]
                b = self._widened(vector.value({loops[1]: k}, loops[1], mask))
                return [(e.mul(elements, b),) for elements in a]

            with c.width(width):
                return [total for (total,) in fold.run(self.depth, products)]

        def run(matrix: OperandAccess, vector: OperandAccess, entry: Ref, first: Ref, last: Ref) -> None:
            def finish(line: Ref, mask: Val | None) -> None:
                place = c.at(totals, c.sub(line, block.index), dtype.itemsize)
                self._finish(e.load(place, dtype, mask), entry, line, mask)

            if together == 1:
                with c.width(1), c.loop(first, last) as line:
                    (total,) = totals_of(matrix, vector, [line.index])
                    self._finish(total, entry, line.index, None)
                return
            with c.loop(first, last, together) as block:
                end = c.min(c.add(block.index, together), last)
                with c.width(together):
                    seen = self.are_seen(entry, block.index, end)
                with c.when(seen), c.width(1), c.loop(block.index, end, count) as line:
                    lines_read = [c.add(line.index, k) for k in range(count)]
                    # Behind the end the last line is summed again, for nobody: code for fewer lines would be as much.
                    lines = lines_read if count == 1 else [c.min(at, c.sub(end, 1)) for at in lines_read]
                    for at, total in zip(lines_read, totals_of(matrix, vector, lines)):
                        e.store(total, c.at(totals, c.sub(at, block.index), dtype.itemsize))
                c.vector_loop(block.index, end, together, finish)

        return run, 1

    def _side_by_side(self, vectors: int) -> int:
        """How many lines, a power of two, to fold side by side, each in so many registers."""
        if self.known is None or self.known <= LANES:
            return 1
        target, matrix = self.e.target, self.lines.matrix
        held = target.registers // (2 * vectors)
        if self.known >= LONG_LINES:
            # Each line is a stream of its own to what fetches ahead; where memory is waited for, sums have the time to
            # leave their registers and come back.
            size = self.lines.count if isinstance(self.lines.count, int) else 0
            far = 2 * size * self.known * matrix.dtype.itemsize > target.l3
            held = SIDE_BY_SIDE if far else target.registers // vectors
        most = max(1, min(SIDE_BY_SIDE, held))
        return 1 << (most.bit_length() - 1)

    # ---- neighbouring lines at once

    def _across(self) -> tuple[_Fold, int]:
        c, lines = self.c, self.lines
        size = lines.dtype.itemsize
        self.most = LANE_CELLS // (LANES * size)
        width = min(lanes_for(c.e.target, lines.dtype, lines.matrix.loops[FREE][-1].extent), self.most)
        self.lanes = self._allocate(LANES * self.most * size)
        one_chunk = self.known is not None and self.known <= CHUNK
        self.later = self.lanes if one_chunk else self._allocate(LANES * self.most * size)
        self.totals = self._allocate(self.most * size)

        def run(matrix: OperandAccess, vector: OperandAccess, entry: Ref, first: Ref, last: Ref) -> None:
            with matrix.runs(FREE, first, last) as (outer, begin, end, behind):
                here = matrix.with_(outer)
                with c.loop(begin, end, self.most) as strip:
                    tile = _GemvTile(here, vector, strip.index, c.min(self.most, c.sub(end, strip.index)), width)
                    self._sum_across(tile)
                    line = c.add(strip.index, behind)

                    def finish(j: Ref, mask: Val | None) -> None:
                        total = self.e.load(self._cell(self.totals, 0, j), lines.dtype, mask)
                        self._finish(total, entry, c.add(line, j), mask)

                    self._each(tile, finish)

        return run, max(min(CACHE_LINE // size, self.most), 1)

    def _sum_across(self, strip: _GemvTile) -> None:
        """The totals of a strip of lines."""
        c = self.c
        if self.known is not None and self.known <= SUPERCHUNK:
            self._superchunk(strip, 0, self.known)
            self._fold(strip, lambda j, mask, total: self._store(total, self.totals, 0, j, mask))
            return
        self._clear(strip, self.totals, 1)
        with c.loop(0, self.depth, SUPERCHUNK) as outer:
            self._superchunk(strip, outer.index, c.min(c.add(outer.index, SUPERCHUNK), self.depth))

            def add(j: Ref, mask: Val | None, total: Val) -> None:
                before = self._load(self.totals, 0, j, mask)
                self._store(self.e.add(before, total), self.totals, 0, j, mask)

            self._fold(strip, add)

    def _superchunk(self, strip: _GemvTile, begin: Ref, end: Ref) -> None:
        """The lanes of the superchunk [begin, end), into ``later``."""
        c = self.c
        if self.later is self.lanes:
            self._chunk(strip, begin, end)
            return
        self._clear(strip, self.later, LANES)
        with c.loop(begin, end, CHUNK) as chunk:
            self._chunk(strip, chunk.index, c.min(c.add(chunk.index, CHUNK), end))
            with c.loop(0, LANES) as lane:

                def add(j: Ref, mask: Val | None) -> None:
                    before, new = (self._load(cells, lane.index, j, mask) for cells in (self.later, self.lanes))
                    self._store(self.e.add(before, new), self.later, lane.index, j, mask)

                self._each(strip, add)

    def _chunk(self, strip: _GemvTile, begin: Ref, end: Ref) -> None:
        """The lanes of the chunk [begin, end), into ``lanes``: element after element of all lines, as they lie in
        memory, a few turns of lanes at once."""
        c = self.c
        self._clear(strip, self.lanes, LANES)
        iterations = c.mul(c.div(c.sub(end, begin), LANE_GROUPS * LANES), LANE_GROUPS * LANES)
        with c.loop(begin, c.add(begin, iterations), LANE_GROUPS * LANES) as iteration, c.loop(0, LANES) as lane:
            first = c.add(iteration.index, lane.index)
            self._add_elements(strip, lane.index, [c.add(first, LANES * t) for t in range(LANE_GROUPS)])
        with c.loop(c.add(begin, iterations), end) as at:
            self._add_elements(strip, c.rem(c.sub(at.index, begin), LANES), [at.index])

    def _add_elements(self, strip: _GemvTile, lane: Ref, elements: Sequence[Ref]) -> None:
        """Add the products of some elements of all lines to a lane, in order."""
        e, free = self.e, strip.matrix.operand.loops[FREE][-1]
        rows = [strip.matrix.at(DEPTH, k) for k in elements]
        with self.c.width(1):
            factors = [self._factor(strip.vector, k) for k in elements]

        def add(j: Ref, mask: Val | None) -> None:
            total = self._load(self.lanes, lane, j, mask)
            for row, factor in zip(rows, factors):
                value = row.value({free: self.c.add(strip.first, j)}, free, mask)
                total = e.add(total, e.mul(self._widened(value), e.splat(factor)))
            self._store(total, self.lanes, lane, j, mask)

        self._each(strip, add)

    def _factor(self, vector: OperandAccess, k: Ref) -> Val:
        return self._widened(vector.value(vector.counters_at(DEPTH, k)))

    def _fold(self, strip: _GemvTile, action: Callable[[Ref, Val | None, Val], None]) -> None:
        """``action(line, mask, sums)`` for the folded lanes of each vector of lines.  Lanes that the fold brings
        together first go together, and leave their sum in the place of the first of them."""
        c, e, groups = self.c, self.e, LANES // FOLDED

        def folded(lanes: Sequence[Ref], j: Ref, mask: Val | None) -> Val:
            states: list[list[State]] = [[(self._load(self.later, lane, j, mask),)] for lane in lanes]
            ((total,),) = fold_lanes(e, [self.sum], states)
            return total

        def fold(j: Ref, mask: Val | None) -> None:
            with c.loop(0, groups) as at:
                lanes = [c.add(at.index, groups * k) for k in range(FOLDED)]
                self._store(folded(lanes, j, mask), self.later, at.index, j, mask)
            action(j, mask, folded(range(groups), j, mask))

        self._each(strip, fold)

    def _clear(self, strip: _GemvTile, cells: str, lanes: int) -> None:
        """Lanes of nothing."""
        ((identity,),) = (self.sum.start(self.e),)
        with self.c.loop(0, lanes) as lane:
            self._each(strip, lambda j, mask: self._store(self.e.splat(identity), cells, lane.index, j, mask))

    def _each(self, strip: _GemvTile, body: Callable[[Ref, Val | None], None]) -> None:
        """For each vector of a strip's lines."""
        narrow = strip.width // 2 if strip.width > 2 and not self.e.target.masked else None
        self.c.vector_loop(0, strip.count, strip.width, body, rest_width=narrow)

    def _load(self, cells: str, lane: Ref, line: Ref, mask: Val | None) -> Val:
        return self.e.load(self._cell(cells, lane, line), self.lines.dtype, mask)

    def _store(self, value: Val, cells: str, lane: Ref, line: Ref, mask: Val | None) -> None:
        self.e.store(value, self._cell(cells, lane, line), mask)

    def _cell(self, cells: str, lane: Ref, line: Ref) -> str:
        """The address of a lane's sum of one line of a strip."""
        return self.c.at(cells, self.c.add(self.c.mul(lane, self.most), line), self.lines.dtype.itemsize)
