"""Elements of a short loop that lie side by side in memory and are left as they lie: colours of pixels that all meet
the same arithmetic.

``interleaved`` takes them apart, a vector for each colour.  Where results lie side by side too, and elements need
nothing but elements of their own colour and pixel, vectors of neighbours in memory do without a shuffle.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hybridflow.compiler.codegen.core.elements import Elements
from hybridflow.compiler.codegen.core.llvm_values import Val
from hybridflow.compiler.codegen.core.shuffles import interleave, pick_lanes
from hybridflow.compiler.codegen.nests.interleaved_access import InterleavedAccess
from hybridflow.compiler.index.index_expr import Index, IndexExpr
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.graph import Node


class ContiguousInner(Elements):
    """One of the vectors, in order of memory, that the elements at all ``turns`` of the short loop fill."""

    def __init__(self, iterations: Sequence[InterleavedAccess], number: int) -> None:
        first = iterations[0]
        assert first.lane_var is not None
        super().__init__(first.code, first.counters, None, first.places, {})
        self.iterations, self.first, self.number = iterations, first, number
        self.inner, self.lane = first.inner, first.lane_var
        width, count = self.e.width, len(iterations)
        self.sources = [divmod(number * width + k, count) for k in range(width)]  # lane and turn of each element

    def value(self, node: Node, index: Index) -> Val:
        position = index.linear
        if position.depends_on(self.inner):
            return super().value(node, index)
        key = node, position
        if key not in self._values:
            value = self.first.value(node, index)
            same = not position.depends_on(self.lane)
            self._values[key] = value if same else self.e.shuffle(value, None, [lane for lane, _ in self.sources])
        return self._values[key]

    def load(self, pointer: str, dtype: np.dtype, position: IndexExpr) -> Val:
        e, first = self.e, self.first
        if first.is_contiguous(position):
            stored = dt.uint8 if dt.is_bool(dtype) else dtype
            places = [divmod(first.place(iteration, lane, position), e.width) for lane, iteration in self.sources]
            wanted = {vector for vector, _ in places}
            vectors = {k: first.neighbours(pointer, stored, position, k) for k in wanted}
            order = sorted(wanted)
            value = pick_lanes(e, [vectors[k] for k in order], [(order.index(k), lane) for k, lane in places])
            return e.ne(value, 0) if dt.is_bool(dtype) else value
        apart = [iteration.load(pointer, dtype, position) for iteration in self.iterations]
        if not position.depends_on(self.lane):
            return pick_lanes(e, apart, [(iteration, lane) for lane, iteration in self.sources])
        return interleave(e, apart)[self.number]

    def lanes(self, ix: IndexExpr) -> Val:
        """An affine expression's value in each lane."""
        e, along, inner = self.e, ix.coefficient(self.lane), ix.coefficient(self.inner)
        assert along is not None and inner is not None
        steps = e.numbers([lane * along + iteration * inner for lane, iteration in self.sources], dt.int64)
        return e.add(e.splat(self.code.value(self.ref(ix))), steps)
