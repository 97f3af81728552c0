"""Kernels whose last loop is reduced: for every row the stages that its reductions need, vectors along the row.  A
statistic of the row is a scalar."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hybridflow.compiler.codegen.elements import Place
from hybridflow.compiler.codegen.nest import Nest
from hybridflow.compiler.codegen.reduction import Cascade, Fold, LaneFold, State, known_product, position_within
from hybridflow.compiler.codegen.structured import Ref
from hybridflow.compiler.codegen.values import Val
from hybridflow.compiler.ir.extents import aligned
from hybridflow.compiler.ir.graph import Node
from hybridflow.compiler.ir.types import product
from hybridflow.compiler.loops.index import Index, LoopVar
from hybridflow.compiler.loops.stages import Kept, Stage


class Rows(Nest):
    def _write(self) -> None:
        self.within = position_within(self.space)
        with self._loops(self.space.kept):
            for stage in self.schedule.stages:
                with self.code.width(1):
                    self._finish_row(stage.ready)
                if not (stage.folds or stage.roots or stage.kept):
                    continue
                kept = {k: self._reserve(k.node.dtype.itemsize) for k in stage.kept}
                self._stage(stage, kept)
                for (node, _), pointer in kept.items():
                    self.places[node] = Place(pointer, self.within)
                for node in stage.roots:
                    self.places[node] = Place(self.pointers[node])

    def _finish_row(self, nodes: Sequence[Node]) -> None:
        elements = self._elements(None)
        for node in nodes:
            self.given[node] = elements.value(node, Index(node.shape, linear=self.space.row))
        for node in self.kernel.roots:
            if node in nodes:
                elements.store(self.given[node], self.pointers[node], self.space.row)

    def _stage(self, stage: Stage, kept: dict[Kept, str]) -> None:
        """``kept`` are addresses in the scratch memory of a row."""
        code, e, space = self.code, self.e, self.space
        folds = [Fold(node) for node in stage.folds]
        row_var, sequence = space.vars[-1], space.folded[:-1]
        # Once per row, not once per vector: statistics of the row in every lane.
        scalars = dict(self.given)
        with code.width(self.width):
            for node in self.given:
                self.given[node] = e.splat(self.given[node])

        def body(mask: Val | None) -> list[State]:
            elements = self._elements(row_var, mask)
            self._store_roots(elements, stage.roots, space.full)
            self._compute(elements, [*(node for node, _ in kept), *(n for fold in stage.folds for n in fold.inputs)])
            for (node, position), pointer in kept.items():
                value = elements.value(node, Index(node.shape, linear=position))
                elements.store(value, pointer, self.within)
            return [fold.lift(elements, space.full, self.within) for fold in folds]

        if not folds:

            def plain(mask: Val | None) -> None:
                body(mask)

            with self._loops(sequence):
                self._vector_loop(row_var, plain)
            self.given = scalars
            return

        def at(i: Ref, mask: Val | None) -> list[State]:
            self.counters[row_var] = i
            return body(mask)

        extent = row_var.extent
        light = self.schedule.light(stage)
        lanes = LaneFold(code, self._allocate, folds, extent if isinstance(extent, int) else None, light)
        terms = known_product([v.extent for v in sequence])
        with code.width(self.width):
            if terms == 1:
                states = lanes.run(code.extent(extent), at)
            else:
                states = self._sequence(sequence, folds, terms, lambda: lanes.run(code.extent(extent), at))
        self.given = scalars
        with code.width(1):
            for fold, state in zip(folds, states):
                result = fold.finish(e, state)
                self.given[fold.node] = result
                if fold.node in self.kernel.roots:
                    self._elements(None).store(result, self.pointers[fold.node], space.row)

    def _sequence(
        self, sequence: Sequence[LoopVar], folds: Sequence[Fold], terms: int | None, term: Callable[[], list[State]]
    ) -> list[State]:
        """Fold ``term()`` over the loops in ``sequence``."""
        code = self.code
        cascade = Cascade(code, self._allocate, folds, terms)

        def once(action: Callable[[Ref], None]) -> None:
            with code.width(1):
                action(0)

        cascade.start(once)
        with self._loops(sequence):
            states = term()
            once(lambda at: cascade.add(at, states))
            cascade.carry(code.add(self._position(sequence), 1), once)
        totals = cascade.finish(once)
        with code.width(1):
            return totals.load(0)

    def _reserve(self, itemsize: int) -> str:
        """Scratch memory for a row of elements; its pointer."""
        at: Ref = 0
        for size in self.scratch:
            at = self.code.add(at, self.code.extent(size))
        self.scratch.append(aligned(product(tuple(v.extent for v in self.space.folded)) * itemsize, 64))
        return self.code.at("%scratch", at, 1)
