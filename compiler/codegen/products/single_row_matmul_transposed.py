"""A product of one row where elements of the other factor lie side by side along the depth, and sums go in the order of
products all the same (``ops/evaluation_order.py``; sums by lanes are in ``gemv.py``).

Squares of the other factor are turned in registers, so that vectors run across columns, and go from there into the
sums: each element is wanted once, and packing it would be the most of the work.
"""

from __future__ import annotations

from hybridflow.compiler.codegen.core.kernel_builder import KernelBuilder, Ref
from hybridflow.compiler.codegen.core.llvm_values import Val
from hybridflow.compiler.codegen.core.operand import Operand, OperandAccess
from hybridflow.compiler.codegen.core.tile_transpose import join_halves, transpose_in_registers
from hybridflow.compiler.codegen.products.gemv import AreNeeded
from hybridflow.compiler.codegen.products.packed_formats import PackedFormat, multiply_add
from hybridflow.compiler.codegen.products.packing import BATCH, DEPTH, FREE
from hybridflow.compiler.codegen.products.single_row_matmul import Finish
from hybridflow.compiler.index.index_expr import LoopVar
from hybridflow.compiler.ir.extents import Extent
from hybridflow.compiler.loops.tuning import COLUMN_STRIP, FAR
from hybridflow.compiler.ops.evaluation_order import K_BLOCK


class SingleRowMatmulTransposed:
    """One such product being emitted, of ``columns`` and ``depth``: so many ``squares`` of ``width`` at once."""

    def __init__(
        self,
        c: KernelBuilder,
        form: PackedFormat,
        left: Operand,
        right: Operand,
        columns: Extent,
        depth: Extent,
        finish: Finish,
        are_seen: AreNeeded,
        width: int,
        squares: int,
        by_halves: bool,
    ) -> None:
        self.c, self.e, self.form, self.left, self.right = c, c.e, form, left, right
        self.columns, self.depth, self.finish, self.are_seen = c.extent(columns), c.extent(depth), finish, are_seen
        self.width = width
        self.item = form.sums.itemsize
        self.squares, self.by_halves = squares, by_halves
        self.steps = (columns + (COLUMN_STRIP - 1)) // COLUMN_STRIP
        self.scratch = self.squares * self.width * self.item

    def emit(self) -> None:
        """The body of a kernel whose units are strips of columns of each batch entry."""
        c, together = self.c, self.squares * self.width
        with c.spans("%begin", "%end", c.extent(self.steps)) as (entry, first, last):
            x, y = self.left.start.at(BATCH, entry).at(FREE, 0), self.right.start.at(BATCH, entry)
            end = c.min(c.mul(last, COLUMN_STRIP), self.columns)
            with c.loop(c.mul(first, COLUMN_STRIP), end, together) as part:
                with c.width(together):
                    seen = self.are_seen(entry, part.index, end)
                with c.when(seen):
                    self._store(self._totals(x, y, part.index))

                def hand_over(j: Ref, mask: Val | None) -> None:
                    total = self.e.load(c.at("%scratch", j, self.item), self.form.sums, mask)
                    self.finish(total, entry, c.add(part.index, j), mask)

                c.vector_loop(0, c.min(together, c.sub(end, part.index)), self.width, hand_over)

    def _totals(self, x: OperandAccess, y: OperandAccess, column: Ref) -> list[Val]:
        """Those of the columns of all squares."""
        c, e, square = self.c, self.e, self.width
        last = c.sub(self.columns, 1)  # which stands for columns behind it
        lines = [y.at(FREE, c.min(c.add(column, t), last)).opaque() for t in range(self.squares * square)]
        with c.width(square):
            zeros = [e.zero(self.form.sums)] * self.squares
            with c.loop(0, self.depth, K_BLOCK, zeros) as block:
                end = c.min(c.add(block.index, K_BLOCK), self.depth)
                whole = c.add(block.index, c.mul(c.div(c.sub(end, block.index), square), square))
                with c.loop(block.index, whole, square, zeros) as at:
                    at.next = self._add_squares(x, lines, at.index, at.carried)
                with c.loop(whole, end, 1, at.carried) as one:
                    one.next = self._add_column(x, lines, one.index, one.carried)
                block.next = [e.add(total, new) for total, new in zip(block.carried, one.carried)]
        return block.carried

    def _factor(self, x: OperandAccess, k: Ref) -> Val:
        """An element of the row, for all columns."""
        with self.c.width(1):
            value = self.e.convert(x.value(x.counters_at(DEPTH, k)), self.form.sums)
        return self.e.splat(value)

    def _add_squares(self, x: OperandAccess, lines: list[OperandAccess], k: Ref, sums: list[Val]) -> list[Val]:
        """The sums with the products of as many elements along the depth as a square has."""
        c, e, (depth,) = self.c, self.e, self.right.loops[DEPTH]
        factors = [self._factor(x, c.add(k, t)) for t in range(self.width)]
        result = []
        for number, total in enumerate(sums):
            block = lines[number * self.width : (number + 1) * self.width]
            for a, b in zip(factors, self._transposed(block, k, depth)):
                total = multiply_add(e, self.form, a, b, total)
            result.append(total)
        return result

    def _transposed(self, lines: list[OperandAccess], k: Ref, depth: LoopVar) -> list[Val]:
        """The columns of a square."""
        c, e, half = self.c, self.e, self.width // 2

        def read(line: OperandAccess, at: Ref) -> Val:
            return e.convert(line.value({depth: at}, depth), self.form.sums)

        if not self.by_halves:
            rows = [read(line, k) for line in lines]
            self._prefetch_later(lines, k)
            return transpose_in_registers(e, rows)
        with c.width(half):
            halves = [(read(line, k), read(line, c.add(k, half))) for line in lines]
        self._prefetch_later(lines, k)
        return transpose_in_registers(e, join_halves(e, halves), half)

    def _prefetch_later(self, lines: list[OperandAccess], k: Ref) -> None:
        """Ask for the same of the lines that follow, where lines are so short that these lie just behind."""
        c, operand = self.c, self.right
        place, (free,), size = operand.in_memory, operand.loops[FREE], operand.dtype.itemsize
        if place is None or not place[1].is_affine:
            return
        pitch = place[1].strides.get(free, 0)
        if not (isinstance(pitch, int) and pitch * size <= FAR):
            return
        for line in lines:
            start = line.address(*place, {operand.loops[DEPTH][-1]: k})
            self.e.prefetch(c.at(start, self.squares * self.width * pitch, size))

    def _add_column(self, x: OperandAccess, lines: list[OperandAccess], k: Ref, sums: list[Val]) -> list[Val]:
        """The same for a single one."""
        c, e, (depth,) = self.c, self.e, self.right.loops[DEPTH]
        a = self._factor(x, k)
        with c.width(1):
            for t, line in enumerate(lines):
                e.store(e.convert(line.value({depth: k}), self.form.sums), c.at("%scratch", t, self.item))
        return [multiply_add(e, self.form, a, b, total) for b, total in zip(self._stored(), sums)]

    def _stored(self) -> list[Val]:
        places = (self.c.at("%scratch", number * self.width, self.item) for number in range(self.squares))
        return [self.e.load(place, self.form.sums) for place in places]

    def _store(self, totals: list[Val]) -> None:
        with self.c.width(self.width):
            for number, total in enumerate(totals):
                self.e.store(total, self.c.at("%scratch", number * self.width, self.item))
