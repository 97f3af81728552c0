"""Kernels of concat and pad for a GPU: units are elements of one part after another, or vectors of neighbours.

A thread finds the part that its unit is of by halving.  So it asks few questions however many parts there are, and
threads of a warp most often give the same answers.
"""

from __future__ import annotations

from collections.abc import Sequence

from hybridflow.compiler.codegen.core.kernel_builder import Ref
from hybridflow.compiler.codegen.core.llvm_values import Val
from hybridflow.compiler.codegen.gpu.shared_memory_operands import is_aligned
from hybridflow.compiler.codegen.nests.concat_segments import (
    ConcatSegments,
    Segment,
    loops_of_part,
    reads_of_part,
    segments_of,
)
from hybridflow.compiler.codegen.nests.loop_nest import PhaseText
from hybridflow.compiler.index.index_expr import IndexExpr, LoopVar
from hybridflow.compiler.index.iteration_space import Space
from hybridflow.compiler.ir.extents import Extent
from hybridflow.compiler.ir.types import product
from hybridflow.compiler.loops.tuning import MAX_ELEMENTS_PER_THREAD, VECTOR_BYTES

Laid = tuple[Segment, Space, IndexExpr, int]
"""A part, its loops, where its elements lie, and how many neighbours a unit has."""


class GroupConcatSegments(ConcatSegments):
    """Writes the kernel of a SEGMENT node whose parts do not overlap."""

    def write(self) -> list[PhaseText]:
        parts = [self._laid(part) for part in segments_of(self.kernel.cluster.anchor) if 0 not in part.shape]
        starts: list[Extent] = [0]
        for _, space, _, lanes in parts:
            starts.append(starts[-1] + _units(space, lanes))
        unit = LoopVar("unit", starts[-1])
        with self._phase([unit]):
            self.node = self.kernel.cluster.anchor
            first = self._bounds(unit)[0]
            if parts:  # else there is nothing to write
                self._choose(parts, starts, first)
        return self.phases

    def _laid(self, part: Segment) -> Laid:
        space, position = loops_of_part(self.kernel.cluster.anchor, part, self.is_leaf)
        return part, space, position, self._lanes(part, space, position)

    def _lanes(self, part: Segment, space: Space, position: IndexExpr) -> int:
        """As many neighbours as a thread can move at once, if they are neighbours wherever they lie."""
        if not space.vars or not isinstance(space.vars[-1].extent, int):
            return 1
        last, positions = space.vars[-1], [position, *reads_of_part(part, space, self.is_leaf)]
        widest = max(n.dtype.itemsize for n in (*self.kernel.inputs, *self.kernel.roots))
        lanes = min(VECTOR_BYTES // widest, MAX_ELEMENTS_PER_THREAD)
        while lanes > 1 and not (
            last.extent % lanes == 0
            and position.coefficient(last) == 1
            and all(is_aligned(ix, last, lanes) for ix in positions)
        ):
            lanes //= 2
        return max(lanes, 1)

    def _choose(self, parts: Sequence[Laid], starts: Sequence[Extent], unit: Ref) -> None:
        """Code for a unit of these parts, which begin at these numbers."""
        code, middle = self.code, len(parts) // 2
        if middle == 0:
            self._move(*parts[0], code.sub(unit, code.extent(starts[0])))
            return
        is_before = code.compare("slt", unit, code.extent(starts[middle]))
        with code.when(is_before):
            self._choose(parts[:middle], starts[: middle + 1], unit)
        with code.when(code.negation(is_before)):
            self._choose(parts[middle:], starts[middle:], unit)

    def _move(self, part: Segment, space: Space, position: IndexExpr, lanes: int, unit: Ref) -> None:
        if not space.vars:
            self._store(part.source, part.shape, space, position, None)
            return
        last = space.vars[-1]

        def store(i: Ref, mask: Val | None) -> None:
            self.counters[last] = i
            self._store(part.source, part.shape, space, position, last, mask)

        with self._unit(space.vars, lanes, unit), self._loops(space.vars[:-1]):
            start, stop = self._bounds(last)
            if lanes == 1:
                store(start, None)
            else:
                self.width = lanes
                self._one_vector(start, stop, store)


def _units(space: Space, lanes: int) -> Extent:
    extents = [v.extent for v in space.vars]
    return product((*extents[:-1], -(-extents[-1] // lanes))) if extents else 1
