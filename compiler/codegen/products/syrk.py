"""Symmetric products: what lies above the diagonal is what lies below it.

A product of a matrix and its own transpose sums, for the elements (i, j) and (j, i), the same products in the same
order.  So the bits of one are those of the other.  Of a grid of tiles those with an element on or below the diagonal
are computed.  All others lie opposite, and are filled from there: elements are turned in blocks as wide and as high as
a panel of columns, and handed on as a tile of sums that was computed in its place.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hybridflow.compiler.codegen.core.kernel_builder import KernelBuilder, Ref
from hybridflow.compiler.codegen.core.tile_transpose import transpose_in_registers
from hybridflow.compiler.codegen.products.micro_kernel import Tile
from hybridflow.compiler.index.access_maps import AccessMaps, IsLeaf
from hybridflow.compiler.index.index_expr import Index, IndexExpr, LoopVar, variable
from hybridflow.compiler.ir.attributes import same_attrs
from hybridflow.compiler.ir.graph import Node
from hybridflow.compiler.loops.tuning import TRANSPOSE_SQUARE
from hybridflow.compiler.ops import Kind
from hybridflow.compiler.ops.contraction_dims import Contraction

Finish = Callable[[str, Ref, Ref, Ref, Ref], None]
"""``finish(totals, row, height, col, width)`` reads the finished sums of ``height`` rows and ``width`` columns.
The rows lie a tile's columns apart at the address ``totals``."""


class SymmetricFill:
    """Turns what was computed in panels of a grid of ``tile``.  ``room``: the address of a block, ``size`` elements."""

    def __init__(self, code: KernelBuilder, sums: np.dtype, tile: Tile, room: str) -> None:
        self.c, self.sums, self.tile, self.room = code, sums, tile, room

    @staticmethod
    def size(tile: Tile) -> int:
        return tile.columns**2

    def first_row(self, top: Ref, col: Ref) -> Ref:
        """How far below ``top``, where a tile begins, the first tile is that has an element on or below the diagonal in
        the panel from column ``col``."""
        c, rows = self.c, self.tile.rows
        return c.mul(c.div(c.max(c.sub(col, top), 0), rows), rows)

    def columns(self, col: Ref, length: Ref, end: Ref) -> Ref:
        """How many of the ``length`` columns from ``col``, where a panel begins, are in panels with an element on or
        below the diagonal, of the rows up to ``end``."""
        c, columns = self.c, self.tile.columns
        panels = c.div(c.add(c.max(c.sub(end, col), 0), columns - 1), columns)
        return c.min(length, c.mul(panels, columns))

    def fill_upper(self, source: str, pitch: Ref, top: Ref, height: Ref, col: Ref, finish: Finish) -> None:
        """Hand on what lies opposite of ``height`` rows from ``top`` of the panel from column ``col``, whose sums from
        there on are at ``source``, with rows ``pitch`` elements apart.

        Blocks are as wide as panels, so that one half of a tile never has to be filled: where the tiles of a block's
        columns begin to be computed is the same for all of them.  Panels that have a block below are whole."""
        c, columns, rows = self.c, self.tile.columns, self.tile.rows
        end = c.add(top, height)
        first = c.max(c.mul(c.div(top, columns), columns), c.add(col, columns))
        with c.loop(first, end, columns) as block:
            begin, behind = c.max(block.index, top), c.min(c.add(block.index, columns), end)
            count = c.sub(behind, begin)
            missing = c.min(c.sub(c.mul(c.div(block.index, rows), rows), col), columns)
            with c.when(c.compare("sgt", missing, 0)):
                self._transpose(source, pitch, c.sub(begin, top), count)
                finish(self.room, col, missing, begin, count)

    def _transpose(self, source: str, pitch: Ref, first: Ref, count: Ref) -> None:
        """Turn ``count`` rows of a panel from the ``first`` one."""
        c, e, columns, size = self.c, self.c.e, self.tile.columns, self.sums.itemsize
        square = min(self.tile.width, TRANSPOSE_SQUARE)
        with c.loop(0, count, square) as down, c.loop(0, columns, square) as across, c.width(square):
            rows = []
            for i in range(square):
                row = c.add(first, c.min(c.add(down.index, i), c.sub(count, 1)))
                at = c.at(source, c.add(c.mul(row, pitch), across.index), size)
                rows.append(e.load(at, self.sums))
            for i, transposed in enumerate(transpose_in_registers(e, rows)):
                at = c.at(self.room, c.add(c.mul(c.add(across.index, i), columns), down.index), size)
                e.store(transposed, at)


def is_symmetric(node: Node, axes: Contraction, is_leaf: IsLeaf) -> bool:
    """Whether a contraction multiplies something with itself: its second factor has at (batch, column, depth) what the
    first one has at (batch, row, depth), and there are as many columns as rows."""
    left, right = node.inputs
    batch, rows, columns, summed = axes.extents(left.type, right.type)
    if rows != columns:
        return False
    parts = [
        tuple(variable(LoopVar(f"{name}{k}", extent)) for k, extent in enumerate(extents))
        for name, extents in (("b", batch), ("r", rows), ("k", summed))
    ]
    at = [Index(x.shape, axes=factor.arranged(*parts)) for x, factor in zip(node.inputs, axes.factors)]
    return structurally_equal(left, at[0], right, at[1], is_leaf)


def structurally_equal(a: Node, at: Index, b: Node, there: Index, is_leaf: IsLeaf) -> bool:
    """Whether the element of ``a`` at one index is the element of ``b`` at another, for all that is seen without going
    beyond what ``is_leaf``: one element of one node, or what one op makes of such elements."""
    seen: dict[tuple[Node, IndexExpr, Node, IndexExpr], bool] = {}

    def same(a: Node, at: Index, b: Node, there: Index) -> bool:
        (a, at), (b, there) = _beneath(a, at, is_leaf), _beneath(b, there, is_leaf)
        if a is b and at.linear == there.linear:
            return True
        if is_leaf(a) or is_leaf(b) or not (a.op.kind is b.op.kind is Kind.ELEMENTWISE):
            return False
        if a.op is not b.op or a.dtype != b.dtype or not same_attrs(a.attrs, b.attrs):
            return False
        key = a, at.linear, b, there.linear
        if key not in seen:
            seen[key] = all(same(x, at, y, there) for x, y in zip(a.inputs, b.inputs, strict=True))
        return seen[key]

    return same(a, at, b, there)


def _beneath(node: Node, at: Index, is_leaf: IsLeaf) -> tuple[Node, Index]:
    """What lies beneath views, and where: of those that do nothing else than to read it at another index."""
    while not is_leaf(node) and node.op.kind is Kind.VIEW:
        reads = AccessMaps(lambda _: True)
        reads.element(node, at)
        if reads.positions or len(reads.leaves) != 1:
            break
        ((node, at),) = reads.leaves
    return node, at
