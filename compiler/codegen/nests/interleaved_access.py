"""Elements of a short loop that lie side by side in memory, for vectors along another loop: colours of pixels,
coordinates of points.

Vectors along the pixels would read, and write, every third element.  Instead as many whole vectors as there are colours
are read and taken apart by shuffles, once for all colours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from hybridflow.compiler.codegen.core.elements import Elements, MemoryPlace
from hybridflow.compiler.codegen.core.kernel_builder import KernelBuilder, Ref
from hybridflow.compiler.codegen.core.llvm_values import Val, mask_of
from hybridflow.compiler.codegen.core.shuffles import deinterleave, interleave, pick_lanes
from hybridflow.compiler.index.index_expr import Index, IndexExpr, LoopVar, is_contiguous_along
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.graph import Node
from hybridflow.compiler.ir.types import static_size


class InterleavedAccess(Elements):
    """Elements at one turn of the loop ``inner``.  ``first`` is that of turn 0, which has what all turns share."""

    def __init__(
        self,
        code: KernelBuilder,
        counters: dict[LoopVar, Ref],
        lane: LoopVar,
        places: dict[Node, MemoryPlace],
        values: dict[Node, Val],
        mask: Val | None,
        inner: LoopVar,
        iteration: int,
        first: InterleavedAccess | None,
        transposed: Mapping[tuple[str, IndexExpr], str] | None = None,
    ) -> None:
        super().__init__(code, {**counters, inner: iteration}, lane, places, values, mask, transposed)
        self.inner, self.iteration = inner, iteration
        self.first = self if first is None else first
        self._groups: dict[tuple[str, IndexExpr], list[Val]] = {}
        # By whether the last lane comes first, and the block that they are in.
        self._group_masks: dict[tuple[bool, str], list[Val]] = {}
        self._origins: dict[str, tuple[Sequence[Val], list[int]]] = {}  # of values as they were read, by their text

    def value(self, node: Node, index: Index) -> Val:
        if self.first is not self and not index.linear.depends_on(self.inner):
            return self.first.value(node, index)
        return super().value(node, index)

    def load(self, pointer: str, dtype: np.dtype, position: IndexExpr) -> Val:
        if not self.is_contiguous(position):
            return super().load(pointer, dtype, position)
        groups = self.first._groups
        if (pointer, position) not in groups:
            groups[pointer, position] = self.first._load_group(pointer, dtype, position)
        return groups[pointer, position][self.iteration]

    def is_contiguous(self, position: IndexExpr) -> bool:
        lane = self.lane_var
        if self.e.width == 1 or lane is None or not position.is_affine:
            return False
        return is_contiguous_along(position, self.inner, lane)

    def _load_group(self, pointer: str, dtype: np.dtype, position: IndexExpr) -> list[Val]:
        e, count = self.e, static_size((self.inner.extent,))
        stored = dt.uint8 if dt.is_bool(dtype) else dtype
        masks = self._masks(position)
        vectors = [self.neighbours(pointer, stored, position, k, masks[k]) for k in range(count)]
        result = self._in_order(deinterleave(e, vectors), position)
        result = [e.ne(v, 0) for v in result] if dt.is_bool(dtype) else result
        for iteration, value in enumerate(result):
            self._origins[value.ref] = vectors, [self.place(iteration, lane, position) for lane in range(e.width)]
        return result

    def neighbours(
        self, pointer: str, dtype: np.dtype, position: IndexExpr, vector: int, mask: Val | None = None
    ) -> Val:
        """One of the vectors that a group fills, as it lies in memory."""
        return self.e.load(self._address(pointer, position, vector, dtype), dtype, mask)

    def _masks(self, position: IndexExpr) -> Sequence[Val | None]:
        """For the vectors of a group, which of their lanes belong to lanes that are active: the first few of these."""
        e, count = self.e, static_size((self.inner.extent,))
        if self.mask is None:
            return [None] * count
        behind = self._reversed(position)[1]
        known = self.first._group_masks
        if (behind, e.block) not in known:
            active = self.code.mul(self.code.lanes_of(self.mask), count)
            numbers = range(count * e.width)
            if behind:  # the first lanes come last
                numbers = numbers[::-1]
            groups = [numbers[k : k + e.width] for k in range(0, count * e.width, e.width)]
            if isinstance(active, int):
                known[behind, e.block] = [mask_of([number < active for number in group]) for group in groups]
            else:
                limit = e.splat(e.convert(self.code.value(active), dt.int32))
                known[behind, e.block] = [e.lt(e.numbers(group, dt.int32), limit) for group in groups]
        return known[behind, e.block]

    def place(self, iteration: int, lane: int, position: IndexExpr) -> int:
        """Which element of a group a lane of a turn has."""
        count = static_size((self.inner.extent,))
        iterations, lanes = self._reversed(position)
        return count * (self.e.width - 1 - lane if lanes else lane) + (
            count - 1 - iteration if iterations else iteration
        )

    def store_group(self, values: Sequence[Val], pointer: str, position: IndexExpr) -> bool:
        """Store the values of all turns if they lie side by side; whether they do."""
        if not self.is_contiguous(position):
            return False
        e = self.e
        stored = [e.convert(v, dt.uint8) if dt.is_bool(v.dtype) else v for v in values]
        masks = self._masks(position)
        vectors = self._moved(values, position) or interleave(e, self._in_order(stored, position))
        for k, vector in enumerate(vectors):
            self.store_neighbours(vector, pointer, position, k, masks[k])
        return True

    def store_neighbours(
        self, value: Val, pointer: str, position: IndexExpr, vector: int, mask: Val | None = None
    ) -> None:
        """Store one of the vectors that a group fills."""
        self.e.store(value, self._address(pointer, position, vector, value.dtype), mask, array=pointer)

    def in_order(self, position: IndexExpr) -> bool:
        """Whether turns, and groups of them, lie in memory one behind the other."""
        return self.is_contiguous(position) and not any(self._reversed(position))

    def _moved(self, values: Sequence[Val], position: IndexExpr) -> list[Val]:
        """The vectors of a group whose values are those of one that was read: its lanes in another order, not taken
        apart.  Empty where that is not so."""
        origins = [self.first._origins.get(value.ref) for value in values]
        first = origins[0]
        if first is None or any(origin is None or origin[0] is not first[0] for origin in origins):
            return []
        width = self.e.width
        places = [0] * (len(values) * width)
        for iteration, origin in enumerate(origins):
            assert origin is not None
            for lane, source in enumerate(origin[1]):
                places[self.place(iteration, lane, position)] = source
        sources = [divmod(place, width) for place in places]
        return [pick_lanes(self.e, first[0], sources[k : k + width]) for k in range(0, len(sources), width)]

    def _in_order(self, vectors: Sequence[Val], position: IndexExpr) -> list[Val]:
        """Vectors for all turns in their order in memory, or such from memory in the order of turns."""
        iterations, lanes = self._reversed(position)
        ordered = [self.e.reverse(v) for v in vectors] if lanes else list(vectors)
        return ordered[::-1] if iterations else ordered

    def _reversed(self, position: IndexExpr) -> tuple[bool, bool]:
        """Whether the last turn comes first in memory, and whether the last lane does."""
        assert self.lane_var is not None
        return position.coefficient(self.inner) == -1, position.coefficient(self.lane_var) == -1 * self.inner.extent

    def _address(self, pointer: str, position: IndexExpr, vector: int, dtype: np.dtype) -> str:
        iterations, lanes = self._reversed(position)
        count = static_size((self.inner.extent,))
        before = iterations * (count - 1) + lanes * count * (self.e.width - 1)
        at = self.code.add(self.first.ref(position), vector * self.e.width - before)
        return self.code.at(pointer, at, dtype.itemsize)
