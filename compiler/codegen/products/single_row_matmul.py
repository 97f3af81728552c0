"""A product of one row: each element of the other factor is wanted once, and packing it would read it twice.

The other factor is read line by line, some lines at a time, along as many columns as have their sums in the first
cache: so memory is read in long stretches.  Sums go in the order of products (``ops/evaluation_order.py``); where
elements lie side by side along the depth, see ``gemv.py``.  Integers that other products pack go by pairs of lines
where pmaddwd takes them (``MultiplyKind.WORDS``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hybridflow.compiler.codegen.core.kernel_builder import KernelBuilder, Ref
from hybridflow.compiler.codegen.core.llvm_values import Val
from hybridflow.compiler.codegen.core.operand import Operand, OperandAccess
from hybridflow.compiler.codegen.products.packed_formats import (
    PackedFormat,
    each_of,
    multiply_add,
    pair_of_words,
    pairs_of_words,
    words_of,
)
from hybridflow.compiler.codegen.products.packing import BATCH, DEPTH, FREE
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.extents import Extent
from hybridflow.compiler.ir.types import product
from hybridflow.compiler.loops.tuning import COLUMN_STRIP, LINES_AT_ONCE
from hybridflow.compiler.ops.evaluation_order import K_BLOCK

Finish = Callable[[Val, Ref, Ref, "Val | None"], None]
"""``finish(total, entry, col, mask)`` stores the totals of ``e.width`` columns from ``col``."""


class SingleRowMatmul:
    """One such product being emitted, of ``columns`` and ``depth``, by vectors of ``width`` lanes."""

    def __init__(
        self,
        c: KernelBuilder,
        form: PackedFormat,
        left: Operand,
        right: Operand,
        columns: Extent,
        depth: Extent,
        finish: Finish,
        width: int,
    ) -> None:
        self.c, self.e, self.left, self.right = c, c.e, left, right
        self.form = each_of(form)
        self.pairs = words_of(form)
        self.columns, self.depth, self.finish = c.extent(columns), c.extent(depth), finish
        self.width = width
        self.item = form.sums.itemsize
        self.one_block = isinstance(depth, int) and depth <= K_BLOCK
        self.steps = (columns + (COLUMN_STRIP - 1)) // COLUMN_STRIP
        self.most = (
            max(c.e.target.l1 // 2 // self.item // COLUMN_STRIP, 1) * COLUMN_STRIP
        )  # columns with sums in the first cache
        self.scratch = 2 * self.most * self.item  # sums of a block, and totals
        self.ahead = right.in_memory if self._is_far else None  # what is asked for

    @property
    def _is_far(self) -> bool:
        """Whether the other factor comes from memory.  Each stretch of a line is over before the machine has seen that
        it is one, so the lines of the next turn are asked for."""
        elements = product(self.right.node.shape)
        return not isinstance(elements, int) or elements * self.right.dtype.itemsize > self.c.e.target.l2

    def emit(self) -> None:
        """The body of a kernel whose units are strips of columns of each batch entry."""
        c = self.c
        self.sums, self.totals = (c.at("%scratch", k * self.most, self.item) for k in range(2))
        with c.spans("%begin", "%end", c.extent(self.steps)) as (entry, first, last):
            x, y = self.left.start.at(BATCH, entry).at(FREE, 0), self.right.start.at(BATCH, entry)
            end = c.min(c.mul(last, COLUMN_STRIP), self.columns)
            with c.loop(c.mul(first, COLUMN_STRIP), end, self.most) as part:
                count = c.min(self.most, c.sub(end, part.index))
                with c.loop(0, c.max(self.depth, 1), K_BLOCK) as block:  # an empty sum takes one turn as well
                    behind = c.min(c.add(block.index, K_BLOCK), self.depth)
                    self._sum(x, y, part.index, count, block.index, behind)
                    self._add_up(entry, part.index, count, block.index)

    def _sum(self, x: OperandAccess, y: OperandAccess, col: Ref, count: Ref, begin: Ref, end: Ref) -> None:
        """The sums of one block of the depth."""
        c, e = self.c, self.e

        def clear(j: Ref, mask: Val | None) -> None:
            e.store(e.zero(self.form.sums), c.at(self.sums, j, self.item), mask)

        c.vector_loop(0, count, self.width, clear)
        whole = c.add(begin, c.mul(c.div(c.sub(end, begin), LINES_AT_ONCE), LINES_AT_ONCE))
        for start, stop, step in ((begin, whole, LINES_AT_ONCE), (whole, end, 1)):
            with c.loop(start, stop, step) as at:
                self._add_lines(x, y, col, count, [c.add(at.index, line) for line in range(step)])

    def _add_lines(self, x: OperandAccess, y: OperandAccess, col: Ref, count: Ref, lines: Sequence[Ref]) -> None:
        """Add so many products to each sum, in order."""
        c, e, sums = self.c, self.e, self.form.sums
        of_pairs: list[Val] = []
        with c.width(1):
            factors = [e.convert(x.value(x.counters_at(DEPTH, k)), sums) for k in lines]
            if self.pairs is not None and len(lines) % 2 == 0:
                of_pairs = [pair_of_words(e, *factors[i : i + 2]) for i in range(0, len(lines), 2)]
        free, depth = self.right.loops[FREE][-1], self.right.loops[DEPTH][-1]

        def line(j: Ref, k: Ref, mask: Val | None) -> Val:
            return y.value({free: c.add(col, j), depth: k}, free, mask)

        def add(j: Ref, mask: Val | None) -> None:
            place = c.at(self.sums, j, self.item)
            if self.ahead is not None:
                for k in lines:
                    e.prefetch(y.address(*self.ahead, {free: c.add(col, j), depth: c.add(k, LINES_AT_ONCE)}))
            total = e.load(place, sums, mask)
            if self.pairs is not None and of_pairs and e.width >= self.pairs.least_width:
                for i, a in enumerate(of_pairs):
                    b = pairs_of_words(e, *(line(j, k, mask) for k in lines[2 * i : 2 * i + 2]))
                    total = multiply_add(e, self.pairs, e.splat(a), b, total)
            else:
                for k, a in zip(lines, factors):
                    total = multiply_add(e, self.form, e.splat(a), e.convert(line(j, k, mask), sums), total)
            e.store(total, place, mask)

        c.vector_loop(0, count, self.width, add)

    def _add_up(self, entry: Ref, col: Ref, count: Ref, k: Ref) -> None:
        """Totals of the blocks up to this one, handed over if it is the last."""
        c, e, sums = self.c, self.e, self.form.sums
        last = True if self.one_block else c.compare("sge", c.add(k, K_BLOCK), self.depth)
        first = True if self.one_block else c.compare("eq", k, 0)

        def total(j: Ref, mask: Val | None) -> Val:
            before = e.zero(sums)
            if first is not True:
                starts = e.splat(Val(str(first).lower(), dt.bool_, 1))
                before = e.select(starts, before, e.load(c.at(self.totals, j, self.item), sums, mask))
            return e.add(before, e.load(c.at(self.sums, j, self.item), sums, mask))

        with c.when(last):
            c.vector_loop(0, count, self.width, lambda j, m: self.finish(total(j, m), entry, c.add(col, j), m))
        with c.when(c.negation(last)):
            c.vector_loop(0, count, self.width, lambda j, m: e.store(total(j, m), c.at(self.totals, j, self.item), m))
