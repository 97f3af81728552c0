"""Transposed reads in maps: square tiles turned in registers.

A map whose vectors run along one axis may read an input whose neighbours lie along another (a transpose).  Element by
element that touches a cache line for each.  Instead a tile of W x W elements is read as W vectors along the input's own
axis, forwards or backwards.  They are transposed by log2(W) rounds of shuffles, and left in a small buffer from which
the map's vectors are read.
"""

from __future__ import annotations

from collections.abc import Callable

from hybridflow.compiler.codegen.core.emitter import Emitter
from hybridflow.compiler.codegen.core.kernel_builder import KernelBuilder, Ref
from hybridflow.compiler.codegen.core.llvm_values import Val
from hybridflow.compiler.index.index_expr import IndexExpr
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.graph import Node
from hybridflow.compiler.loops.schedule import TransposedReads


class TransposedTile:
    """Buffers for one tile of each turned read."""

    def __init__(
        self, code: KernelBuilder, allocate: Callable[[int], str], transposed: TransposedReads, width: int
    ) -> None:
        self.code, self.transposed, self.width = code, transposed, width
        self.buffers = [allocate(width * width * node.dtype.itemsize) for node, _ in transposed.reads]

    def fill(self, address: Callable[[IndexExpr], Ref], move: Callable[[int], None], pointers: dict[Node, str]) -> None:
        """Read the tile whose first element is current.  ``address`` is a position's value after ``move(k)`` has gone k
        steps along the map's last loop."""
        code, e = self.code, self.code.e
        for (node, position), buffer in zip(self.transposed.reads, self.buffers):
            dtype = dt.uint8 if dt.is_bool(node.dtype) else node.dtype
            rows = []
            backwards = position.coefficient(self.transposed.vector_loop) == -1
            for k in range(self.width):
                move(k)
                first = code.sub(address(position), self.width - 1) if backwards else address(position)
                row = e.load(code.at(pointers[node], first, dtype.itemsize), dtype)
                rows.append(e.reverse(row) if backwards else row)
            for k, row in enumerate(transpose_in_registers(e, rows)):
                e.store(row, code.at(buffer, k * self.width, dtype.itemsize))
        move(0)

    def row(self, k: Ref, pointers: dict[Node, str]) -> dict[tuple[str, IndexExpr], str]:
        """Where the map finds the vectors of row ``k`` of the tile: addresses by pointer and position."""
        at = self.code.mul(k, self.width)
        return {
            (pointers[node], position): self.code.at(buffer, at, node.dtype.itemsize)
            for (node, position), buffer in zip(self.transposed.reads, self.buffers)
        }


def join_halves(e: Emitter, halves: list[tuple[Val, Val]]) -> list[Val]:
    """The rows of a square matrix, each given as its two halves, after its off-diagonal halves were swapped: what was
    read from memory in halves needs no shuffles for that."""
    half = len(halves) // 2
    pairs = [(halves[i][side], halves[i + half][side]) for side in (0, 1) for i in range(half)]
    return e.opaque([e.shuffle(a, b, range(2 * half)) for a, b in pairs])


def transpose_in_registers(e: Emitter, rows: list[Val], distance: int | None = None) -> list[Val]:
    """The transpose of a square matrix, a power of two in size: swap off-diagonal halves, then quarters within halves,
    and so on.  Vectors longer than there are rows hold several squares side by side.  Blocks of ``distance`` rows have
    been swapped already, where that is given."""
    rows = list(rows)
    lanes, distance = rows[0].width, distance or len(rows)
    while distance > 1:
        distance //= 2
        low = [i if not i & distance else lanes + i - distance for i in range(lanes)]
        high = [i + distance if not i & distance else lanes + i for i in range(lanes)]
        for i in range(len(rows)):
            if not i & distance:
                a, b = rows[i], rows[i + distance]
                rows[i], rows[i + distance] = e.shuffle(a, b, low), e.shuffle(a, b, high)
        rows = e.opaque(rows)
    return rows
