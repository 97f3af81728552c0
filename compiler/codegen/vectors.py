"""Products of a matrix with a vector whose sums go in the order of a row reduction (``order.py``).

Each line of the matrix is multiplied with the vector, element by element, and the products are summed like a row of
them: the result is that of ``sum(line * vector)``, in the dtype of the sums.  Lines whose elements lie side by side are
folded one by one, in vectors along the line, and finished in vectors across lines.  Where neighbouring lines lie side
by side instead, vectors run across lines, and a few of the 64 logical lanes are summed at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from hybridflow.compiler.codegen.emitter import Emitter
from hybridflow.compiler.codegen.operand import Operand, Reading
from hybridflow.compiler.codegen.packing import BATCH, DEPTH, FREE
from hybridflow.compiler.codegen.reduction import LaneFold, State, Sum, fold_lanes
from hybridflow.compiler.codegen.structured import Code, Ref, lanes_for
from hybridflow.compiler.codegen.values import Val
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.extents import Extent
from hybridflow.compiler.loops.limits import FOLDED, LONG_LINES, NEIGHBOURS, SIDE_BY_SIDE
from hybridflow.compiler.ops.order import CHUNK, LANES, SUPERCHUNK

Work = tuple[tuple[Extent, ...], int, Extent]
"""What a kernel does: its units, the grain at which they may be cut, and bytes of scratch."""

Finish = Callable[[Val, Ref, Ref, "Val | None"], None]
"""``finish(sums, entry, line, mask)`` stores the sums of ``e.width`` lines of a batch entry from ``line``."""

_Fold = Callable[[Reading, Reading, Ref, Ref, Ref], None]
"""``fold(matrix, vector, entry, first, last)`` finishes the lines [first, last) of a batch entry."""


@dataclass(frozen=True)
class Lines:
    """``count`` lines (the free part of ``matrix``) of ``depth`` elements in each entry of the batch, and the entry's
    vector, whose free part has one element."""

    matrix: Operand
    vector: Operand
    dtype: np.dtype  # of the sums
    batch: tuple[Extent, ...]
    count: Extent
    depth: Extent


def emit_lines(c: Code, lines: Lines, finish: Finish) -> Work:
    """The body of a kernel whose units are lines."""
    return _Lines(c, lines, finish).emit()


def go_along(lines: Lines) -> bool:
    """Whether lines are folded along their elements, rather than neighbouring ones at once."""
    matrix, vector = lines.matrix, lines.vector
    one_loop = len(matrix.loops[DEPTH]) == len(vector.loops[DEPTH]) == 1
    return one_loop and matrix.along(DEPTH) >= matrix.along(FREE)


def or_nothing(e: Emitter, total: Val) -> Val:
    """A total as it leaves the kernel: the sum of nothing is 0.0, not the identity -0.0."""
    return e.add(e.const(0.0, total.dtype), total) if dt.is_float(total.dtype) else total


_GROUPS = LANES // FOLDED  # of lanes which a fold by halving brings together first: every ``_GROUPS``-th


class _Lines:
    def __init__(self, c: Code, lines: Lines, finish: Finish) -> None:
        self.c, self.e, self.lines, self.finish = c, c.e, lines, finish
        self.count, self.depth = c.extent(lines.count), c.extent(lines.depth)
        self.known = lines.depth if isinstance(lines.depth, int) else None
        self.sum = Sum(lines.dtype)
        self.scratch = 0

    def emit(self) -> Work:
        c, lines = self.c, self.lines
        matrix, vector = lines.matrix, lines.vector
        fold, grain = self._along() if go_along(lines) else self._across()
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

        def totals_of(matrix: Reading, vector: Reading, lines: list[Ref]) -> list[Val]:
            """The sums of lines that go side by side: they share the vector, and none waits for another."""
            rows = [matrix.at(FREE, line) for line in lines]

            def products(k: Ref, mask: Val | None) -> list[State]:
                a = [self._widened(row.value({loops[0]: k}, loops[0], mask)) for row in rows]
                b = self._widened(vector.value({loops[1]: k}, loops[1], mask))
                return [(e.mul(elements, b),) for elements in a]

            with c.width(width):
                return [total for (total,) in fold.run(self.depth, products)]

        def run(matrix: Reading, vector: Reading, entry: Ref, first: Ref, last: Ref) -> None:
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
                with c.width(1), c.loop(block.index, end, count) as line:
                    own = [c.add(line.index, k) for k in range(count)]
                    # Behind the end the last line is summed again, for nobody: code for fewer lines would be as much.
                    lines = own if count == 1 else [c.min(at, c.sub(end, 1)) for at in own]
                    for at, total in zip(own, totals_of(matrix, vector, lines)):
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
        width, most = 1, 1
        if len(lines.matrix.loops[FREE]) == 1:
            width = lanes_for(c.e.target, lines.dtype, lines.count)
            most = width * _vectors(lines.count, width, min(NEIGHBOURS, c.e.target.registers // (2 * FOLDED)))
        cells = self._allocate((FOLDED + _GROUPS) * most * lines.dtype.itemsize)
        rest_width = None if isinstance(lines.count, int) and c.e.target.masked else width

        def run(matrix: Reading, vector: Reading, entry: Ref, first: Ref, last: Ref) -> None:
            def fold(line: Ref, mask: Val | None) -> None:
                at = matrix.with_(matrix.counters_at(FREE, line))
                self._finish(self._fold_across(at, vector, mask, cells), entry, line, mask)

            c.vector_loop(first, last, most, fold, rest_width=rest_width)

        return run, most

    def _fold_across(self, matrix: Reading, vector: Reading, mask: Val | None, cells: str) -> Val:
        """The sums of ``e.width`` lines.  Lanes that the fold brings together first are summed together, and stay in
        registers from the first element to the last."""
        c, e = self.c, self.e

        def folded(lanes: Sequence[Val]) -> Val:
            ((total,),) = fold_lanes(e, [self.sum], [[(lane,)] for lane in lanes])
            return total

        def superchunk(begin: Ref, end: Ref) -> Val:
            with c.loop(0, _GROUPS) as at:
                lanes = self._lanes_across(matrix, vector, mask, cells, begin, end, at.index)
                e.store(folded(lanes), self._cell(cells, c.add(at.index, FOLDED)))
            return folded([self._at(cells, FOLDED + k) for k in range(_GROUPS)])

        if self.known is not None and self.known <= SUPERCHUNK:
            return superchunk(0, self.known) if self.known else self._identity()
        with c.loop(0, self.depth, SUPERCHUNK, [self._identity()]) as outer:
            found = superchunk(outer.index, c.min(c.add(outer.index, SUPERCHUNK), self.depth))
            outer.next = [e.add(outer.carried[0], found)]
        return outer.carried[0]

    def _lanes_across(
        self, matrix: Reading, vector: Reading, mask: Val | None, cells: str, begin: Ref, end: Ref, lane: Ref
    ) -> list[Val]:
        """The group of lanes from ``lane`` on, of the superchunk [begin, end)."""
        c, e = self.c, self.e
        if self.known is not None and self.known <= CHUNK:
            return self._chunk_across(matrix, vector, mask, cells, begin, end, lane)
        with c.loop(begin, end, CHUNK, [self._identity()] * FOLDED) as chunk:
            last = c.min(c.add(chunk.index, CHUNK), end)
            found = self._chunk_across(matrix, vector, mask, cells, chunk.index, last, lane)
            chunk.next = [e.add(before, new) for before, new in zip(chunk.carried, found)]
        return chunk.carried

    def _chunk_across(
        self, matrix: Reading, vector: Reading, mask: Val | None, cells: str, begin: Ref, end: Ref, lane: Ref
    ) -> list[Val]:
        """The same of the chunk [begin, end)."""
        c, e = self.c, self.e
        free = matrix.operand.loops[FREE][-1]

        def term(k: Ref) -> Val:
            elements = self._widened(matrix.value(matrix.counters_at(DEPTH, k), free, mask))
            with c.width(1):
                factor = self._widened(vector.value(vector.counters_at(DEPTH, k)))
            return e.mul(elements, e.splat(factor))

        rest = c.rem(c.sub(end, begin), LANES)
        whole = c.sub(end, rest)
        with c.loop(begin, whole, LANES, [self._identity()] * FOLDED) as turn:
            first = c.add(turn.index, lane)
            turn.next = [e.add(lanes, term(c.add(first, _GROUPS * k))) for k, lanes in enumerate(turn.carried)]
        if rest == 0:
            return turn.carried
        for k, found in enumerate(turn.carried):
            e.store(found, self._cell(cells, k))
        with c.loop(lane, rest, _GROUPS) as at:
            cell = self._cell(cells, c.div(at.index, _GROUPS))
            e.store(e.add(e.load(cell, self.lines.dtype), term(c.add(whole, at.index))), cell)
        return [self._at(cells, k) for k in range(FOLDED)]

    def _identity(self) -> Val:
        ((identity,),) = (self.sum.start(self.e),)
        return identity

    def _at(self, cells: str, number: int) -> Val:
        return self.e.load(self._cell(cells, number), self.lines.dtype)

    def _cell(self, cells: str, number: Ref) -> str:
        """The address of a vector of sums, one for each line."""
        return self.c.at(cells, self.c.mul(number, self.e.width), self.lines.dtype.itemsize)


def _vectors(count: Extent, width: int, most: int) -> int:
    """How many vectors of neighbouring lines to fold at once: more, unless they would be empty."""
    if not isinstance(count, int):
        return most
    sizes = [1 << power for power in range(most.bit_length())]
    return min(sizes, key=lambda vectors: -(-count // (vectors * width)) * (vectors + 1))
