"""Memory that the phases of a kernel share: partial results and statistics."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hybridflow.compiler.codegen.core.kernel_builder import KernelBuilder
from hybridflow.compiler.codegen.nests.reduction import Cells, Fold
from hybridflow.compiler.ir.extents import Extent, aligned
from hybridflow.compiler.ir.graph import Node


class PhaseMemory:
    """Hands out the memory of one kernel, the same to every phase.  ``size`` are the bytes so far."""

    def __init__(self) -> None:
        self.size: Extent = 0
        self._results: dict[Node, Extent] = {}
        self._partial: dict[tuple[int, tuple[Node, ...]], list[Extent]] = {}

    def _reserve(self, nbytes: Extent) -> Extent:
        offset = self.size
        self.size = offset + aligned(nbytes, 64)
        return offset

    def result(self, code: KernelBuilder, node: Node, count: Extent) -> str:
        """Where ``count`` elements of a node lie."""
        if node not in self._results:
            self._results[node] = self._reserve(count * node.dtype.itemsize)
        return code.at("%shared", code.extent(self._results[node]), 1)

    def partial(self, code: KernelBuilder, nodes: Sequence[Node], count: Extent, level: int = 0) -> Cells:
        """``count`` states of the folds that these nodes are, of which there may be several levels."""
        key = level, tuple(nodes)
        known = self._partial.get(key)
        offsets = iter(known or ())
        areas = self._partial[key] = []
        reserve: Callable[[Extent], Extent] = self._reserve if known is None else lambda nbytes: next(offsets)

        def allocate(nbytes: Extent) -> str:
            areas.append(reserve(nbytes))
            return code.at("%shared", code.extent(areas[-1]), 1)

        return Cells(code, allocate, [Fold(node) for node in nodes], count)
