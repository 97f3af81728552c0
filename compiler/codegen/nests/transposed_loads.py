"""Reads that lie along a folded loop, for vectors across it: blocks turned in registers.

As in ``tiles``, but a step along the loop may have a few elements side by side, one for each turn of a short loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hybridflow.compiler.codegen.core.elements import Elements
from hybridflow.compiler.codegen.core.kernel_builder import KernelBuilder, Ref
from hybridflow.compiler.codegen.core.tile_transpose import transpose_in_registers
from hybridflow.compiler.index.index_expr import IndexExpr, LoopVar
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.graph import Node
from hybridflow.compiler.ir.types import static_size


class TransposedLoads:
    """Buffers that hold, for each read, as many steps as a vector has lanes."""

    def __init__(
        self,
        code: KernelBuilder,
        allocate: Callable[[int], str],
        reads: Sequence[tuple[Node, IndexExpr]],
        inner: LoopVar,
        pointers: dict[Node, str],
    ) -> None:
        self.code, self.reads, self.inner, self.pointers = code, reads, inner, pointers
        self.width = code.e.width
        self.buffers = [allocate(self.width**2 * self._side_by_side(ix) * n.dtype.itemsize) for n, ix in reads]

    def _side_by_side(self, position: IndexExpr) -> int:
        """Elements of a step."""
        return static_size((self.inner.extent,)) if position.depends_on(self.inner) else 1

    def fill(self, at: Callable[[int], Elements]) -> None:
        """Read the block whose first step is current; ``at(k)`` are elements at the k-th lane."""
        code, e, width = self.code, self.code.e, self.width
        for (node, position), buffer in zip(self.reads, self.buffers):
            dtype = dt.uint8 if dt.is_bool(node.dtype) else node.dtype
            starts = [code.at(self.pointers[node], at(k).ref(position), dtype.itemsize) for k in range(width)]
            for part in range(self._side_by_side(position)):
                rows = [e.load(code.at(start, part * width, dtype.itemsize), dtype) for start in starts]
                for k, row in enumerate(transpose_in_registers(e, rows)):
                    e.store(row, code.at(buffer, (part * width + k) * width, dtype.itemsize))

    def addresses(self, step: Ref, iteration: int) -> dict[tuple[str, IndexExpr], str]:
        """Where the vectors of a step lie, for a turn of the short loop."""
        code, result = self.code, {}
        for (node, position), buffer in zip(self.reads, self.buffers):
            count = self._side_by_side(position)
            at = code.mul(code.add(code.mul(step, count), iteration if count > 1 else 0), self.width)
            result[self.pointers[node], position] = code.at(buffer, at, node.dtype.itemsize)
        return result
