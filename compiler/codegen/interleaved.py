"""Elements of a short loop that lie side by side in memory, for vectors along another loop: colours of pixels,
coordinates of points.

Vectors along the pixels would read, and write, every third element.  Instead as many whole vectors as there are colours
are read and taken apart by shuffles, once for all colours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from hybridflow.compiler.codegen.elements import Elements, Place
from hybridflow.compiler.codegen.shuffles import joined, picked, separated
from hybridflow.compiler.codegen.structured import Code, Ref
from hybridflow.compiler.codegen.values import Val, mask_of
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.graph import Node
from hybridflow.compiler.ir.types import static_size
from hybridflow.compiler.loops.index import Index, Ix, LoopVar, lies_side_by_side


class Interleaved(Elements):
    """Elements at one turn of the loop ``inner``.  ``first`` is that of turn 0, which has what all turns share."""

    def __init__(
        self,
        code: Code,
        counters: dict[LoopVar, Ref],
        lane: LoopVar,
        places: dict[Node, Place],
        given: dict[Node, Val],
        mask: Val | None,
        inner: LoopVar,
        turn: int,
        first: Interleaved | None,
        turned: Mapping[tuple[str, Ix], str] | None = None,
    ) -> None:
        super().__init__(code, {**counters, inner: turn}, lane, places, given, mask, turned)
        self.inner, self.turn = inner, turn
        self.first = self if first is None else first
        self._groups: dict[tuple[str, Ix], list[Val]] = {}
        # By whether the last lane comes first, and the block that they are in.
        self._group_masks: dict[tuple[bool, str], list[Val]] = {}
        self._origins: dict[str, tuple[Sequence[Val], list[int]]] = {}  # of values as they were read, by their text

    def value(self, node: Node, index: Index) -> Val:
        if self.first is not self and not index.linear.depends_on(self.inner):
            return self.first.value(node, index)
        return super().value(node, index)

    def load(self, pointer: str, dtype: np.dtype, position: Ix) -> Val:
        if not self.side_by_side(position):
            return super().load(pointer, dtype, position)
        groups = self.first._groups
        if (pointer, position) not in groups:
            groups[pointer, position] = self.first._load_group(pointer, dtype, position)
        return groups[pointer, position][self.turn]

    def side_by_side(self, position: Ix) -> bool:
        lane = self.lane_var
        if self.e.width == 1 or lane is None or not position.is_affine:
            return False
        return lies_side_by_side(position, self.inner, lane)

    def _load_group(self, pointer: str, dtype: np.dtype, position: Ix) -> list[Val]:
        e, count = self.e, static_size((self.inner.extent,))
        stored = dt.uint8 if dt.is_bool(dtype) else dtype
        masks = self._masks(position)
        vectors = [self.neighbours(pointer, stored, position, k, masks[k]) for k in range(count)]
        found = self._in_order(separated(e, vectors), position)
        found = [e.ne(v, 0) for v in found] if dt.is_bool(dtype) else found
        for turn, value in enumerate(found):
            self._origins[value.ref] = vectors, [self.place(turn, lane, position) for lane in range(e.width)]
        return found

    def neighbours(self, pointer: str, dtype: np.dtype, position: Ix, vector: int, mask: Val | None = None) -> Val:
        """One of the vectors that a group fills, as it lies in memory."""
        return self.e.load(self._address(pointer, position, vector, dtype), dtype, mask)

    def _masks(self, position: Ix) -> Sequence[Val | None]:
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

    def place(self, turn: int, lane: int, position: Ix) -> int:
        """Which element of a group a lane of a turn has."""
        count = static_size((self.inner.extent,))
        turns, lanes = self._reversed(position)
        return count * (self.e.width - 1 - lane if lanes else lane) + (count - 1 - turn if turns else turn)

    def store_group(self, values: Sequence[Val], pointer: str, position: Ix) -> bool:
        """Store the values of all turns if they lie side by side; whether they do."""
        if not self.side_by_side(position):
            return False
        e = self.e
        stored = [e.convert(v, dt.uint8) if dt.is_bool(v.dtype) else v for v in values]
        masks = self._masks(position)
        vectors = self._moved(values, position) or joined(e, self._in_order(stored, position))
        for k, vector in enumerate(vectors):
            self.store_neighbours(vector, pointer, position, k, masks[k])
        return True

    def store_neighbours(self, value: Val, pointer: str, position: Ix, vector: int, mask: Val | None = None) -> None:
        """Store one of the vectors that a group fills."""
        self.e.store(value, self._address(pointer, position, vector, value.dtype), mask, array=pointer)

    def in_order(self, position: Ix) -> bool:
        """Whether turns, and groups of them, lie in memory one behind the other."""
        return self.side_by_side(position) and not any(self._reversed(position))

    def _moved(self, values: Sequence[Val], position: Ix) -> list[Val]:
        """The vectors of a group whose values are those of one that was read: its lanes in another order, not taken
        apart.  Empty where that is not so."""
        origins = [self.first._origins.get(value.ref) for value in values]
        first = origins[0]
        if first is None or any(origin is None or origin[0] is not first[0] for origin in origins):
            return []
        width = self.e.width
        places = [0] * (len(values) * width)
        for turn, origin in enumerate(origins):
            assert origin is not None
            for lane, source in enumerate(origin[1]):
                places[self.place(turn, lane, position)] = source
        sources = [divmod(place, width) for place in places]
        return [picked(self.e, first[0], sources[k : k + width]) for k in range(0, len(sources), width)]

    def _in_order(self, vectors: Sequence[Val], position: Ix) -> list[Val]:
        """Vectors for all turns in their order in memory, or such from memory in the order of turns."""
        turns, lanes = self._reversed(position)
        found = [self.e.reverse(v) for v in vectors] if lanes else list(vectors)
        return found[::-1] if turns else found

    def _reversed(self, position: Ix) -> tuple[bool, bool]:
        """Whether the last turn comes first in memory, and whether the last lane does."""
        assert self.lane_var is not None
        return position.coefficient(self.inner) == -1, position.coefficient(self.lane_var) == -1 * self.inner.extent

    def _address(self, pointer: str, position: Ix, vector: int, dtype: np.dtype) -> str:
        turns, lanes = self._reversed(position)
        count = static_size((self.inner.extent,))
        before = turns * (count - 1) + lanes * count * (self.e.width - 1)
        at = self.code.add(self.first.ref(position), vector * self.e.width - before)
        return self.code.at(pointer, at, dtype.itemsize)
