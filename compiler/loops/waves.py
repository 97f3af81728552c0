"""Waves: in which order kernels run, and which may do so side by side.

Kernels of one wave do not need each other, and all that they write and read is in memory at once.  The order from which
they come was chosen so that values die early.  Kernels that could run long before their turn (all that an unrolled loop
does to its inputs) would keep their results for as long; so a kernel runs only a little ahead of it, and what has been
written ahead is never more than ``MOST_BYTES``.  And only small kernels share a wave: a large one has units enough for
every worker, and would gain nothing by keeping another's values alive.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence, Set as AbstractSet

from hybridflow.compiler.ir.results import TupleType
from hybridflow.compiler.ir.types import product
from hybridflow.compiler.loops.kernel import Kernel

SMALL = 1 << 16  # bytes that a kernel of a shared wave writes at the most
MOST_BYTES = 1 << 19  # that are written ahead of turn: about as much waves may add to a program's memory
AHEAD = 32  # places that a kernel runs before its turn, at the most


def waves(kernels: Sequence[Kernel], after: Mapping[Kernel, AbstractSet[Kernel]]) -> tuple[list[Kernel], list[int]]:
    """The kernels in the order of their waves, and the wave of each.  Each kernel runs after those that ``after``
    gives; the order of ``kernels`` is kept otherwise."""
    queue = _Queue(kernels, after)
    ordered: list[Kernel] = []
    numbers: list[int] = []
    wave = 0
    while queue.ready:
        group = queue.next()
        ordered += group
        numbers += [wave] * len(group)
        wave += 1
    return ordered, numbers


class _Queue:
    """Kernels that wait for others, or for their turn.  ``ready`` holds the places of those that wait for no other."""

    def __init__(self, kernels: Sequence[Kernel], after: Mapping[Kernel, AbstractSet[Kernel]]) -> None:
        self.kernels = kernels
        place = {kernel: k for k, kernel in enumerate(kernels)}
        self.missing = [len(after[kernel]) for kernel in kernels]
        self.released_by: list[list[int]] = [[] for _ in kernels]
        for k, kernel in enumerate(kernels):
            for earlier in after[kernel]:
                self.released_by[place[earlier]].append(k)
        self.bytes = [_bytes(kernel) for kernel in kernels]
        self.ready = [k for k, missing in enumerate(self.missing) if not missing]
        self._ahead: list[tuple[int, int]] = []  # place and bytes of those that have run ahead of turn
        self._total = 0

    def next(self) -> list[Kernel]:
        """The kernels of the next wave, which leave the queue."""
        first = heapq.heappop(self.ready)
        while self._ahead and self._ahead[0][0] < first:
            self._total -= heapq.heappop(self._ahead)[1]
        taken, left = [first], []
        while self.bytes[first] <= SMALL and self.ready and self.ready[0] <= first + AHEAD:
            k = heapq.heappop(self.ready)
            if self.bytes[k] <= SMALL and self._total + self.bytes[k] <= MOST_BYTES:
                taken.append(k)
                heapq.heappush(self._ahead, (k, self.bytes[k]))
                self._total += self.bytes[k]
            else:
                left.append(k)
        for k in left:
            heapq.heappush(self.ready, k)
        for k in taken:
            for later in self.released_by[k]:
                self.missing[later] -= 1
                if not self.missing[later]:
                    heapq.heappush(self.ready, later)
        return [self.kernels[k] for k in taken]


def _bytes(kernel: Kernel) -> int:
    """Bytes that a kernel writes.  Results of symbolic size count for nothing: their memory is never used again."""
    tensors = (root for root in kernel.roots if not isinstance(root.type, TupleType))
    sizes = (product(root.shape) * root.dtype.itemsize for root in tensors)
    return sum(size for size in sizes if isinstance(size, int))
