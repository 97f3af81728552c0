"""Products of small matrices: tiles of sums in registers over factors that are read as they lie.

A product of a few tiles is over before packing would have paid.  Many of them (a stack of 4 x 4 matrices) have no time
for a call or for totals in memory either.  Extents are static, so that edges are tiles of their own size.  Sums go in
the one order of ``ops/evaluation_order.py``: these products have one k-block.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hybridflow.compiler.codegen.core.kernel_builder import KernelBuilder, Ref
from hybridflow.compiler.codegen.core.llvm_values import Val
from hybridflow.compiler.codegen.core.operand import Operand, OperandAccess
from hybridflow.compiler.codegen.products.micro_kernel import Tile
from hybridflow.compiler.codegen.products.packed_formats import PackedFormat, multiply_add
from hybridflow.compiler.codegen.products.packing import BATCH, DEPTH, FREE

Finish = Callable[[Val, Ref, Ref, Ref, "Val | None"], None]
"""``finish(sums, entry, row, col, mask)`` stores the sums of ``e.width`` columns from ``col``."""

FinishTile = Callable[[str, Ref, Ref, Ref, Ref, Ref], None]
"""``finish_tile(totals, entry, row, height, col, width)`` stores a tile of sums, with rows a tile's columns apart."""

IsNeeded = Callable[[Ref, Ref, Ref, Ref, Ref], "str | bool"]
"""``is_seen(entry, row, height, col, width)``: whether anybody looks at a tile's sums, which else are zeros."""

_COPIES = 16  # of the code that stores a vector of sums; where there would be more it is a loop over sums in memory


@dataclass(frozen=True)
class ColumnPiece:
    """``width`` columns from column ``start`` of a tile, of which ``count`` are there."""

    start: int
    width: int
    count: int


class UnpackedMatmul:
    """One such product being emitted, m x n of depth k."""

    def __init__(
        self,
        c: KernelBuilder,
        form: PackedFormat,
        left: Operand,
        right: Operand,
        tile: Tile,
        m: int,
        n: int,
        k: int,
        finish: Finish,
        finish_tile: FinishTile,
        is_seen: IsNeeded,
    ) -> None:
        self.c, self.e, self.form, self.left, self.right, self.tile = c, c.e, form, left, right, tile
        self.m, self.n, self.k, self.rows = m, n, k, min(tile.rows, m)
        self.finish, self.finish_tile, self.is_needed = finish, finish_tile, is_seen
        widths = [tile.columns] * (n >= tile.columns) + [n % tile.columns]
        pieces = sum(len(self._pieces(width)) for width in widths)
        self.copied = pieces * (self.rows + m % self.rows) <= _COPIES

    @property
    def scratch(self) -> int:
        """Bytes."""
        return 0 if self.copied else self.rows * self.tile.columns * self.form.sums.itemsize

    @property
    def steps(self) -> int:
        """Tiles down the rows: the units of each batch entry."""
        return -(-self.m // self.rows)

    def emit(self) -> None:
        """The body of a kernel over units of all batch entries."""
        c, (whole, remainder) = self.c, divmod(self.m, self.rows)
        with c.spans("%begin", "%end", self.steps, as_written=False) as (entry, first, last):
            x, y = self.left.start.at(BATCH, entry), self.right.start.at(BATCH, entry)
            if self.steps == 1:
                self._down(x, y, entry, 0, self.m)
                return
            with c.loop(first, c.min(last, whole)) as tile:
                self._down(x, y, entry, c.mul(tile.index, self.rows), self.rows)
            if remainder:
                with c.when(c.compare("sgt", last, whole)):
                    self._down(x, y, entry, whole * self.rows, remainder)

    def _down(self, x: OperandAccess, y: OperandAccess, entry: Ref, row: Ref, height: int) -> None:
        """The tiles along ``height`` rows."""
        c, columns = self.c, self.tile.columns
        lines = [x.at(FREE, c.add(row, r)) for r in range(height)]
        whole = self.n // columns * columns
        if whole == columns:
            self._tile(lines, y, entry, row, 0, columns)
        elif whole:
            with c.loop(0, whole, columns) as panel:
                self._tile(lines, y, entry, row, panel.index, columns)
        if whole < self.n:
            self._tile(lines, y, entry, row, whole, self.n - whole)

    def _tile(self, lines: list[OperandAccess], y: OperandAccess, entry: Ref, row: Ref, col: Ref, width: int) -> None:
        c, e, sums = self.c, self.e, self.form.sums
        pieces = self._pieces(width)
        zeros = [e.zero(sums, piece.width) for piece in pieces]
        masks = [self._mask(piece) for piece in pieces]
        depth = c.choose(self.is_needed(entry, row, len(lines), col, width), self.k, 0)
        with c.loop(0, depth, 1, zeros * len(lines), as_written=False) as iteration:
            b = [self._columns(y, col, piece, iteration.index, mask) for piece, mask in zip(pieces, masks)]
            before, after = iter(iteration.carried), []
            for line in lines:
                with c.width(1):
                    a = e.convert(line.value(line.counters_at(DEPTH, iteration.index)), sums)
                for piece, factor in zip(pieces, b):
                    with c.width(piece.width):
                        after.append(multiply_add(e, self.form, e.splat(a), factor, next(before)))
            iteration.next = after
        totals = iter(iteration.carried)
        for r in range(len(lines)):
            for piece, mask, zero in zip(pieces, masks, zeros):
                with c.width(piece.width):
                    self._total(e.add(zero, next(totals)), entry, row, r, col, piece, mask)
        if not self.copied:
            self.finish_tile("%scratch", entry, row, len(lines), col, width)

    def _total(self, total: Val, entry: Ref, row: Ref, r: int, col: Ref, piece: ColumnPiece, mask: Val | None) -> None:
        """Store a vector of finished sums, of row ``r`` of a tile."""
        c, e = self.c, self.e
        if not self.copied:
            e.store(total, c.at("%scratch", r * self.tile.columns + piece.start, self.form.sums.itemsize))
            return
        e.mask = mask
        self.finish(total, entry, c.add(row, r), c.add(col, piece.start), mask)
        e.mask = None

    def _mask(self, piece: ColumnPiece) -> Val | None:
        with self.c.width(piece.width):
            return None if piece.count == piece.width else self.c.lanes_below(piece.count)

    def _columns(self, y: OperandAccess, col: Ref, piece: ColumnPiece, k: Ref, mask: Val | None) -> Val:
        loop = self.right.loops[FREE][-1]
        with self.c.width(piece.width):
            value = y.value({loop: self.c.add(col, piece.start), self.right.loops[DEPTH][-1]: k}, loop, mask)
            return self.e.convert(value, self.form.sums)

    def _pieces(self, count: int) -> list[ColumnPiece]:
        """Vectors of so many columns, and for the rest a masked one, or shorter ones where masks are dear."""
        result, start, width = [], 0, self.tile.width
        while count:
            if count < width and not self.e.target.masked:
                width //= 2
                continue
            result.append(ColumnPiece(start, width, min(count, width)))
            start, count = start + width, count - min(count, width)
        return result
