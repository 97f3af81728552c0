"""Batches of other sizes than those that come."""

from __future__ import annotations

from typing import Any

from hybridflow.core import pytree
from hybridflow.data import elements
from hybridflow.data.batch import rows_of_batch
from hybridflow.data.pipeline import Elements, Node, PipelineIterator, Stepwise
from hybridflow.data.strings import joined, leaf_of, with_shape


class Rebatch(Node):
    """The rows of batches in batches of ``sizes``, by turns; the last has fewer, or is left out."""

    def __init__(self, source: Node, sizes: list[int], drop_remainder: bool) -> None:
        self.source, self.sizes, self.drop_remainder = source, sizes, drop_remainder

    def runner(self) -> PipelineIterator:
        return RebatchRun(self)

    def spec(self) -> Any:
        extent = self.sizes[0] if self.drop_remainder and len({*self.sizes}) == 1 else None
        return elements.mapped_spec(lambda s: with_shape(s, (extent, *s.shape[1:])), self.source.spec())


class RebatchRun(Stepwise):
    state_fields = ("held", "used", "turn")

    def __init__(self, node: Rebatch) -> None:
        super().__init__(node.source)
        self.node, self.turn = node, 0
        self.held: list[Any] = []  # batches of which rows are left
        self.used = 0  # rows of the first one that were given

    def run(self) -> Elements:
        node = self.node
        left = sum(_length(batch) for batch in self.held) - self.used
        iterator = self.source.run()
        while True:
            while left >= (size := node.sizes[self.turn]):
                left -= size
                yield self._next_rows(size)
            batch = next(iterator, None)
            if batch is None:
                break
            self.held.append(batch)
            left += _length(batch)
        while left and not node.drop_remainder:
            size = min(left, node.sizes[self.turn])
            left -= size
            yield self._next_rows(size)

    def _next_rows(self, count: int) -> Any:
        """The next rows: a view where they are of one batch."""
        self.turn = (self.turn + 1) % len(self.node.sizes)
        parts = []
        while count:
            leaves, structure = pytree.flatten(self.held[0])
            arrays = rows_of_batch(leaves)
            stop = min(self.used + count, arrays[0].shape[0])
            parts.append([array[self.used : stop] for array in arrays])
            count -= stop - self.used
            self.used = stop
            if stop == arrays[0].shape[0]:
                self.used = 0
                del self.held[0]
        whole = parts[0] if len(parts) == 1 else [joined(column) for column in zip(*parts)]
        return pytree.unflatten(structure, map(leaf_of, whole))


def _length(batch: object) -> int:
    return int(rows_of_batch(pytree.flatten(batch)[0])[0].shape[0])
