"""Kernels of concat and pad whose rows are short: the elements of all parts of a row, in vectors along the rows, which
are written side by side (``loops.weaving``)."""

from __future__ import annotations

from hybridflow.compiler.codegen.core.llvm_values import Val
from hybridflow.compiler.codegen.nests.interleaved_access import InterleavedAccess
from hybridflow.compiler.codegen.nests.loop_nest import LoopNest
from hybridflow.compiler.index.index_expr import Index, LoopVar, variable
from hybridflow.compiler.ir.graph import Node
from hybridflow.compiler.loops.interleaved_concat import InterleavedRows, Part


class InterleavedConcat(LoopNest):
    def _write(self) -> None:
        weave = self.schedule.interleaving
        assert weave is not None
        with self._loops(weave.outer):
            self._vector_loop(weave.rows, lambda mask: self._rows(weave, mask))

    def _rows(self, weave: InterleavedRows, mask: Val | None) -> None:
        """Make a vector of rows."""
        node, e = self.kernel.cluster.anchor, self.e
        rows: dict[int, Val] = {}
        for part in weave.parts:
            values = self._part(node.inputs[part.number], part, weave, mask)
            rows.update((part.first + k, value) for k, value in enumerate(values))
        count = weave.along.extent
        assert isinstance(count, int)
        values = [rows[k] if k in rows else e.const(node.attrs["value"], node.dtype) for k in range(count)]
        pointer, position = self.pointers[node], weave.row * count + variable(weave.along)
        iterations = self._iterations_of(weave.along, weave.rows, mask)
        if not iterations[0].store_group(values, pointer, position):
            for iteration, value in zip(iterations, values):
                iteration.store(value, pointer, position)

    def _part(self, source: Node, part: Part, weave: InterleavedRows, mask: Val | None) -> list[Val]:
        """An input's elements of the rows."""
        index = Index(source.shape, linear=weave.position(part))
        return [iteration.value(source, index) for iteration in self._iterations_of(part.along, weave.rows, mask)]

    def _iterations_of(self, along: LoopVar, rows: LoopVar, mask: Val | None) -> list[InterleavedAccess]:
        """Elements at each turn of a loop within rows."""
        assert isinstance(along.extent, int)
        result: list[InterleavedAccess] = []
        for iteration in range(along.extent):
            first = result[0] if result else None
            result.append(
                InterleavedAccess(self.code, self.counters, rows, self.places, {}, mask, along, iteration, first)
            )
        return result
