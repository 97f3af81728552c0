"""Kernels whose last loop is kept: for every tile of columns the stages over the reduced loops, vectors across columns.
A statistic is an element of the tile."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import cached_property

import numpy as np

from hybridflow.compiler.codegen.core.elements import Elements, MemoryPlace
from hybridflow.compiler.codegen.core.kernel_builder import KernelBuilder, Ref
from hybridflow.compiler.codegen.core.llvm_values import Val
from hybridflow.compiler.codegen.nests.loop_nest import LoopNest
from hybridflow.compiler.codegen.nests.reduction import (
    Cascade,
    Cells,
    Fold,
    State,
    depth_for,
    known_product,
    pack_states,
    position_within,
    starts,
    unpack_states,
)
from hybridflow.compiler.index.index_expr import Index, IndexExpr, LoopVar
from hybridflow.compiler.ir.graph import Node
from hybridflow.compiler.ir.types import static_size
from hybridflow.compiler.loops.reduction_stages import ReductionStage
from hybridflow.compiler.loops.tuning import BUSY
from hybridflow.compiler.ops.evaluation_order import TERMS


class NarrowOuterReduction(Elements):
    """Elements of columns fewer than a vector has lanes: what the lanes behind the last one compute is dropped.

    Vectors of the columns ``lane`` at a turn of the loop ``row`` that is not its last: where rows lie one behind the
    other, those lanes read the next one.
    """

    def __init__(
        self,
        code: KernelBuilder,
        counters: dict[LoopVar, Ref],
        lane: LoopVar,
        places: dict[Node, MemoryPlace],
        values: Mapping[Node, Val],
        row: LoopVar,
    ) -> None:
        super().__init__(code, counters, lane, places, dict(values))
        self.lane, self.row = lane, row

    def load(self, pointer: str, dtype: np.dtype, position: IndexExpr) -> Val:
        if not position.depends_on(self.lane) or position.depends_on(self.row):
            return super().load(pointer, dtype, position)
        first = self.counters[self.lane]
        assert isinstance(first, int)
        count, e = static_size((self.lane.extent,)) - first, self.e
        inside = self.code.lanes_below(count) if count < e.width else None
        return e.load(self.code.at(pointer, self.ref(position), dtype.itemsize), dtype, inside)


class OuterReduction(LoopNest):
    """``cells`` are the statistics of the tile that are ready: addresses of ``slots`` elements each."""

    @cached_property
    def within(self) -> IndexExpr:
        return position_within(self.space)

    @property
    def column(self) -> LoopVar:
        return self.space.vars[-1]

    def _write(self) -> None:
        stages = self.schedule.stages
        with self._tiles():
            for k, stage in enumerate(stages):
                goes_on = any(later.ready or later.folds or later.roots for later in stages[k + 1 :])
                self._finish(stage.ready, wanted=goes_on or bool(stage.folds or stage.roots))
                if stage.folds or stage.roots:
                    self._stage(stage, wanted=goes_on)
                for node in stage.roots:
                    self.places[node] = MemoryPlace(self.pointers[node])

    @contextmanager
    def _tiles(self, *more: LoopVar) -> Iterator[None]:
        """Tiles of columns, in ``more`` loops within the other kept ones."""
        code, self.slots = self.code, self.schedule.tile
        self.cells: dict[Node, str] = {}
        with self._loops((*self.space.kept[:-1], *more)):
            start, stop = self._bounds(self.column)
            with code.loop(start, stop, self.slots) as tile:
                self.begin, self.end = tile.index, code.min(code.add(tile.index, self.slots), stop)
                yield

    def _columns(self, action: Callable[[Val | None], None]) -> None:
        """``action(mask)`` at each vector of the tile."""

        def at(i: Ref, mask: Val | None) -> None:
            self.counters[self.column] = i
            action(mask)

        extent = self.column.extent
        exact = isinstance(extent, int) and extent % self.width == 0
        self.code.vector_loop(self.begin, self.end, self.width, at, exact, masks=self._masks)

    @cached_property
    def _masks(self) -> bool:
        """Whether columns that fill no vector are done as one with a mask where masks are dear, since one by one they
        cost more: AVX2 has masks for elements of four and eight bytes."""
        sizes = {node.dtype.itemsize for node in (*self.kernel.inputs, *self.kernel.roots)}
        long = any(stage.work >= BUSY for stage in self.schedule.stages)
        return self.e.is_x86 and self.e.target.vector_bits >= 256 and sizes <= {4, 8} and long

    def _slot(self) -> Ref:
        """The current column's place in the tile."""
        return self.code.sub(self.counters[self.column], self.begin)

    def _cell(self, pointer: str, node: Node) -> str:
        return self.code.at(pointer, self._slot(), node.dtype.itemsize)

    def _column_elements(self, mask: Val | None) -> Elements:
        """Elements at the current vector of columns, the statistics that are ready being read from their cells."""
        elements = self._elements(self.column, mask)
        elements.given = {
            node: self.e.load(self._cell(pointer, node), node.dtype, self._cell_mask(mask))
            for node, pointer in self.cells.items()
        }
        return elements

    def _keep(self, elements: Elements, node: Node, value: Val, pointer: str | None) -> None:
        """Put a statistic into its cell, if it has one, and where the result is wanted."""
        if pointer is not None:
            self.e.store(value, self._cell(pointer, node), self._cell_mask(elements.mask))
        if node in self.kernel.roots:
            elements.store(value, self.pointers[node], self.space.row)

    def _cell_mask(self, mask: Val | None) -> Val | None:
        """There are cells for whole vectors."""
        return None

    def _new_cells(self, nodes: Sequence[Node]) -> dict[Node, str]:
        return {node: self._allocate(self.slots * node.dtype.itemsize) for node in nodes}

    def _finish(self, nodes: Sequence[Node], wanted: bool = True) -> None:
        """What follows from the statistics of the stages before; whether it is ``wanted`` behind."""
        if not nodes:
            return
        new = self._new_cells(nodes) if wanted else {}

        def action(mask: Val | None) -> None:
            elements = self._column_elements(mask)
            for node in nodes:
                value = elements.value(node, Index(node.shape, linear=self.space.row))
                self._keep(elements, node, value, new.get(node))

        self._columns(action)
        self.cells.update(new)

    def _stage(self, stage: ReductionStage, wanted: bool) -> None:
        code, folded = self.code, self.space.folded
        cascade = self._cascade(stage.folds, depth_for(known_product([v.extent for v in folded])))
        with self._remaining_terms(stage, cascade) if self.interleave_accumulators(stage) else nullcontext():
            self._fold(stage, cascade, lambda: code.add(self._position(folded), 1))
        if stage.folds:
            self._finish_folds(stage.folds, cascade.finish(self._each_slot), wanted)

    def _cascade(self, folds: Sequence[Node], depth: int) -> Cascade:
        cascade = Cascade(self.code, self._allocate, [Fold(node) for node in folds], depth, self.slots)
        if folds:
            cascade.start(self._each_slot)
        return cascade

    def _each_slot(self, action: Callable[[Ref], None]) -> None:
        """``action(slot)`` at each vector of a cascade's cells, of which there are whole ones."""
        code = self.code
        with code.loop(0, code.sub(self.end, self.begin), self.width) as at, code.width(self.width):
            action(at.index)

    def _fold(self, stage: ReductionStage, cascade: Cascade, count: Callable[[], Ref]) -> None:
        """Do what the stage does with each element of the tile's columns.  ``count`` are the terms that are through."""
        code, last = self.code, self.space.folded[-1]
        folds = [Fold(node) for node in stage.folds]

        def term(mask: Val | None) -> list[State]:
            elements = self._column_elements(mask)
            self._store_roots(elements, stage.roots, self.space.full)
            self._compute(elements, [n for fold in folds for n in fold.node.inputs])
            return [fold.lift(elements, self.space.full, self.within) for fold in folds]

        def iterations(begin: Ref, end: Ref, together: int) -> None:
            with code.loop(begin, end, together) as iteration:
                numbers = [code.add(iteration.index, k) for k in range(together)]

                def body(mask: Val | None) -> None:
                    terms = []
                    for number in numbers:
                        self.counters[last] = number
                        terms.append(term(mask))
                    if folds:
                        cascade.add(self._slot(), *terms)

                self._columns(body)
                self.counters[last] = numbers[-1]
                if folds:
                    cascade.carry(count(), self._each_slot)

        with self._loops(self.space.folded[:-1]):
            begin, end = self._bounds(last)
            together = self.schedule.terms_per_iteration(stage)
            if not isinstance(last.extent, int) or last.extent % together:
                whole = code.sub(end, code.rem(code.sub(end, begin), together))
                iterations(begin, whole, together)
                begin = whole
                together = 1
            iterations(begin, end, together)

    def interleave_accumulators(self, stage: ReductionStage) -> bool:
        """Whether a stage folds several runs of terms at once."""
        return self.schedule.accumulators > 1 and bool(stage.folds) and not stage.roots

    @contextmanager
    def _remaining_terms(self, stage: ReductionStage, cascade: Cascade) -> Iterator[None]:
        """Fold several runs at once, and have the code within do the terms that are left."""
        end = self.code.extent(self.space.folded[-1].extent)
        with self._cut(self.space.folded, self._fold_interleaved(stage, cascade, 0, end), end):
            yield

    def _fold_interleaved(self, stage: ReductionStage, cascade: Cascade, begin: Ref, end: Ref) -> Ref:
        """Of the terms [begin, end), fold several runs at once, whose states stay in registers; where the others begin.
        The last row is one of those: vectors reach beyond its end."""
        code, e, (row,) = self.code, self.e, self.space.folded
        folds, runs = [Fold(node) for node in stage.folds], self.schedule.accumulators
        columns, several = range(0, static_size((self.column.extent,)), self.width), TERMS * runs
        count = code.sub(code.min(end, static_size((row.extent,)) - 1), begin)
        whole = code.mul(code.div(count, several), several)
        vectors = [(run, column) for run in range(runs) for column in columns]

        def states(run: int, column: int) -> list[State]:
            self.counters[row] = code.add(code.add(code.add(begin, block.index), run * TERMS), iteration.index)
            self.counters[self.column] = column
            values = self._column_elements(None).given
            elements = NarrowOuterReduction(code, self.counters, self.column, self.places, values, row)
            self._compute(elements, [n for fold in folds for n in fold.node.inputs])
            return [fold.lift(elements, self.space.full, self.within) for fold in folds]

        with code.width(self.width), code.loop(0, whole, several) as block:
            with code.loop(0, TERMS, 1, pack_states([starts(e, folds) for _ in vectors])) as iteration:
                pairs = zip(unpack_states(folds, iteration.carried), [states(*vector) for vector in vectors])
                iteration.next = pack_states(
                    [[f.later(e, *pair) for f, *pair in zip(folds, old, new)] for old, new in pairs]
                )
            for (run, column), ended in zip(vectors, unpack_states(folds, iteration.carried)):
                cascade.levels[1].fold_in(column, ended)
                if column == columns[-1]:
                    cascade.carry(code.add(block.index, (run + 1) * TERMS), self._each_slot)
        return code.add(begin, whole)

    def _finish_folds(self, nodes: Sequence[Node], totals: Cells, wanted: bool = True) -> None:
        folds = [Fold(node) for node in nodes]
        new = self._new_cells(self._fold_results(*nodes)) if wanted else {}

        def store(mask: Val | None) -> None:
            elements = self._elements(self.column, mask)
            for fold, state in zip(folds, totals.load(self._slot())):
                for node, result in self._finished_values(fold, state):
                    self._keep(elements, node, result, new.get(node))

        self._columns(store)
        self.cells.update(new)
