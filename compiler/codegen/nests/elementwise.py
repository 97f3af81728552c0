"""Kernels without reductions: loops over all axes, vectors along the last."""

from __future__ import annotations

from contextlib import ExitStack

from hybridflow.compiler.codegen.core.elements import Elements
from hybridflow.compiler.codegen.core.kernel_builder import Ref
from hybridflow.compiler.codegen.core.llvm_values import Val
from hybridflow.compiler.codegen.core.nontemporal import nontemporal_stores
from hybridflow.compiler.codegen.core.tile_transpose import TransposedTile
from hybridflow.compiler.codegen.nests.loop_nest import LoopNest
from hybridflow.compiler.index.index_expr import ZERO, IndexExpr
from hybridflow.compiler.loops.schedule import TransposedReads


class ElementwiseNest(LoopNest):
    def _write(self) -> None:
        space, roots = self.space, self.kernel.roots
        if not space.vars:
            self._store_roots(self._elements(None), roots, ZERO)
            return
        if self.schedule.transposed is not None:
            self._map_in_tiles(self.schedule.transposed)
            return
        last = space.vars[-1]

        def store(mask: Val | None) -> None:
            self._store_roots(self._elements(last, mask), roots, space.full)

        with (
            nontemporal_stores(self.code, self.kernel, self.pointers, roots, last.extent),
            self._loops(space.vars[:-1]),
        ):
            self._vector_loop(last, store, halves=self._has_long_remainder(last))

    def _map_in_tiles(self, transposed: TransposedReads) -> None:
        """A map over square tiles of its last loop and the one along which the turned inputs lie."""
        code, space, roots, width = self.code, self.space, self.kernel.roots, self.width
        across, last = transposed.vector_loop, space.vars[-1]
        tile = TransposedTile(code, self._allocate, transposed, width)
        end = code.extent(last.extent)

        def move(k: int) -> None:
            self.counters[last] = code.add(column.index, k)

        def store(mask: Val | None, rows: dict[tuple[str, IndexExpr], str] | None = None) -> None:
            elements = Elements(code, self.counters, last, self.places, self.given, mask, rows)
            self._store_roots(elements, roots, space.full)

        def at(i: Ref, mask: Val | None) -> None:
            self.counters[last] = i
            store(mask)

        with ExitStack() as around:
            around.enter_context(self._loops([v for v in space.vars[:-1] if v is not across]))
            start, stop = self._bounds(across)
            row = around.enter_context(code.loop(start, stop, width))
            column = around.enter_context(code.loop(0, end, width))
            bottom, right = code.add(row.index, width), code.add(column.index, width)
            whole = code.both(code.compare("sle", bottom, stop), code.compare("sle", right, end))
            with code.when(whole), code.width(width):
                self.counters[across] = row.index
                tile.fill(lambda ix: self._elements(last).ref(ix), move, self.pointers)
                with code.loop(0, width) as k:
                    self.counters[across] = code.add(row.index, k.index)
                    store(None, tile.row(k.index, self.pointers))
            with code.when(code.negation(whole)), code.loop(row.index, code.min(bottom, stop)) as k:
                self.counters[across] = k.index
                code.vector_loop(column.index, code.min(right, end), width, at)
