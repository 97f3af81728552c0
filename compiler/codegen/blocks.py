"""Reads that lie along a folded loop, for vectors across it: blocks turned in registers.

As in ``tiles``, but a step along the loop may have a few elements side by side, one for each turn of a short loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hybridflow.compiler.codegen.elements import Elements
from hybridflow.compiler.codegen.structured import Code, Ref
from hybridflow.compiler.codegen.tiles import transposed
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.graph import Node
from hybridflow.compiler.ir.types import static_size
from hybridflow.compiler.loops.index import Ix, LoopVar


class Blocks:
    """Buffers that hold, for each read, as many steps as a vector has lanes."""

    def __init__(
        self,
        code: Code,
        allocate: Callable[[int], str],
        reads: Sequence[tuple[Node, Ix]],
        inner: LoopVar,
        pointers: dict[Node, str],
    ) -> None:
        self.code, self.reads, self.inner, self.pointers = code, reads, inner, pointers
        self.width = code.e.width
        self.buffers = [allocate(self.width**2 * self._side_by_side(ix) * n.dtype.itemsize) for n, ix in reads]

    def _side_by_side(self, position: Ix) -> int:
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
                for k, row in enumerate(transposed(e, rows)):
                    e.store(row, code.at(buffer, (part * width + k) * width, dtype.itemsize))

    def addresses(self, step: Ref, turn: int) -> dict[tuple[str, Ix], str]:
        """Where the vectors of a step lie, for a turn of the short loop."""
        code, found = self.code, {}
        for (node, position), buffer in zip(self.reads, self.buffers):
            count = self._side_by_side(position)
            at = code.mul(code.add(code.mul(step, count), turn if count > 1 else 0), self.width)
            found[self.pointers[node], position] = code.at(buffer, at, node.dtype.itemsize)
        return found
