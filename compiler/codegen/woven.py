"""Kernels of concat and pad whose rows are short: the elements of all parts of a row, in vectors along the rows, which
are written side by side (``loops.weaving``)."""

from __future__ import annotations

from hybridflow.compiler.codegen.interleaved import Interleaved
from hybridflow.compiler.codegen.nest import Nest
from hybridflow.compiler.codegen.values import Val
from hybridflow.compiler.ir.graph import Node
from hybridflow.compiler.loops.index import Index, LoopVar, variable
from hybridflow.compiler.loops.weaving import Part, Weave


class Woven(Nest):
    def _write(self) -> None:
        weave = self.schedule.weave
        assert weave is not None
        with self._loops(weave.outer):
            self._vector_loop(weave.rows, lambda mask: self._rows(weave, mask))

    def _rows(self, weave: Weave, mask: Val | None) -> None:
        """Make a vector of rows."""
        node, e = self.kernel.cluster.anchor, self.e
        found: dict[int, Val] = {}
        for part in weave.parts:
            values = self._part(node.inputs[part.number], part, weave, mask)
            found.update((part.first + k, value) for k, value in enumerate(values))
        count = weave.along.extent
        assert isinstance(count, int)
        values = [found[k] if k in found else e.const(node.attrs["value"], node.dtype) for k in range(count)]
        pointer, position = self.pointers[node], weave.row * count + variable(weave.along)
        turns = self._turns_of(weave.along, weave.rows, mask)
        if not turns[0].store_group(values, pointer, position):
            for turn, value in zip(turns, values):
                turn.store(value, pointer, position)

    def _part(self, source: Node, part: Part, weave: Weave, mask: Val | None) -> list[Val]:
        """An input's elements of the rows."""
        index = Index(source.shape, linear=weave.position(part))
        return [turn.value(source, index) for turn in self._turns_of(part.along, weave.rows, mask)]

    def _turns_of(self, along: LoopVar, rows: LoopVar, mask: Val | None) -> list[Interleaved]:
        """Elements at each turn of a loop within rows."""
        assert isinstance(along.extent, int)
        found: list[Interleaved] = []
        for turn in range(along.extent):
            first = found[0] if found else None
            found.append(Interleaved(self.code, self.counters, rows, self.places, {}, mask, along, turn, first))
        return found
