"""Few long columns: partial results of groups of their terms, which any threads may make, and then each column's fold
of its groups in order.

On a GPU, where a column's thread is alone with that, groups are joined by others first, as many at a time as the order
of folds takes together anyway."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property

from hybridflow.compiler.codegen.core.elements import MemoryPlace
from hybridflow.compiler.codegen.core.kernel_builder import Ref
from hybridflow.compiler.codegen.core.llvm_values import Val
from hybridflow.compiler.codegen.nests.loop_nest import PhaseText
from hybridflow.compiler.codegen.nests.outer_reduction import OuterReduction
from hybridflow.compiler.codegen.nests.reduction import Cascade, Cells
from hybridflow.compiler.index.index_expr import LoopVar
from hybridflow.compiler.ir.graph import Node
from hybridflow.compiler.ir.types import Extent, product
from hybridflow.compiler.loops.reduction_stages import ReductionStage
from hybridflow.compiler.ops.evaluation_order import TERMS


class SplitOuterReduction(OuterReduction):
    """``ready`` are values of columns that earlier phases have left in shared memory, ``stored`` the results of the
    full space that they have written."""

    def write(self) -> list[PhaseText]:
        self.ready: list[Node] = []
        self.stored: list[Node] = []
        folded: tuple[Node, ...] = ()
        outer, grain = self.space.kept[:-1], self.schedule.grain
        cut = () if self.schedule.accumulators > 1 else (self.column,)
        for stage in self.schedule.stages:
            if folded or stage.ready:
                with self._phase((*outer, *cut), grain), self._known_tiles():
                    if folded:
                        self._finish_groups(folded)
                    self._finish(stage.ready)
                self.ready += (*self._fold_results(*folded), *stage.ready)
            if stage.folds or stage.roots:
                with self._phase((*outer, self.group, *cut), grain), self._known_tiles(self.group):
                    self._group(stage)
                self.stored += stage.roots
            if stage.folds and self.joins:
                with self._phase((*outer, self.joined, *cut), grain), self._known_tiles(self.joined):
                    self._join(stage.folds)
            folded = stage.folds
        return self.phases

    @cached_property
    def terms(self) -> Extent:
        return product(tuple(v.extent for v in self.space.folded))

    @cached_property
    def group(self) -> LoopVar:
        return LoopVar("group", -(-self.terms // self.schedule.split_size))

    @cached_property
    def joins(self) -> bool:
        """Whether groups are joined before a column folds them."""
        return self.code.e.target.kind == "cuda" and self.schedule.split_size == TERMS and not self._few

    @cached_property
    def joined(self) -> LoopVar:
        return LoopVar("joined", -(-self.group.extent // TERMS))

    @property
    def _few(self) -> bool:
        """Whether a column's groups are known to be taken together."""
        return isinstance(self.group.extent, int) and self.group.extent <= TERMS

    @contextmanager
    def _known_tiles(self, *more: LoopVar) -> Iterator[None]:
        """Tiles of columns, with what is known of them."""
        self.places.update((node, MemoryPlace(self.pointers[node])) for node in self.stored)
        with self._tiles(*more):
            self.cells = self._new_cells(self.ready)
            yield

    def _new_cells(self, nodes: Sequence[Node]) -> dict[Node, str]:
        """Statistics lie in shared memory, one for each result."""
        code, kept = self.code, self.space.kept
        count = product(tuple(v.extent for v in kept))
        first = code.add(code.mul(self._position(kept[:-1]), code.extent(self.column.extent)), self.begin)
        return {n: code.at(self.shared.result(code, n, count), first, n.dtype.itemsize) for n in nodes}

    def _cell_mask(self, mask: Val | None) -> Val | None:
        """Behind a tile's last column lie others'."""
        return mask

    def _partials(self, nodes: Sequence[Node], of: LoopVar) -> Cells:
        """The states of groups, or of those that are joined."""
        lines = product(tuple(v.extent for v in (*self.space.kept, of)))
        return self.shared.partial(self.code, nodes, lines, 0 if of is self.group else 1)

    def _partial_at(self, number: Ref, of: LoopVar) -> Ref:
        """The place of the current column's state of that number."""
        code = self.code
        line = code.add(code.mul(self._position(self.space.kept[:-1]), code.extent(of.extent)), number)
        return code.add(code.mul(line, code.extent(self.column.extent)), self.counters[self.column])

    def _group(self, stage: ReductionStage) -> None:
        code, size = self.code, self.schedule.split_size
        group = self.counters[self.group]
        first = code.mul(group, size)
        end = code.min(code.add(first, size), code.extent(self.terms))
        cascade = self._cascade(stage.folds, 1 if size == TERMS else 2)
        begin = self._fold_interleaved(stage, cascade, first, end) if self.interleave_accumulators(stage) else first
        with self._cut(self.space.folded, begin, end):
            self._fold(stage, cascade, lambda: code.add(code.sub(self._position(self.space.folded), first), 1))
        if not stage.folds:
            return
        self._leave(stage.folds, cascade, self.group)

    def _leave(self, nodes: Sequence[Node], cascade: Cascade, of: LoopVar) -> None:
        """Leave what a cascade has made to later phases."""
        totals, cells, number = cascade.finish(self._each_slot), self._partials(nodes, of), self.counters[of]
        self._columns(lambda mask: cells.store(self._partial_at(number, of), totals.load(self._slot()), mask))

    def _join(self, nodes: Sequence[Node]) -> None:
        code, cascade = self.code, self._cascade(nodes, 1)
        first = code.mul(self.counters[self.joined], TERMS)
        self._add_groups(
            nodes, cascade, self.group, first, code.min(code.add(first, TERMS), code.extent(self.group.extent))
        )
        self._leave(nodes, cascade, self.joined)

    def _finish_groups(self, nodes: tuple[Node, ...]) -> None:
        of = self.joined if self.joins else self.group
        cascade = self._cascade(
            nodes, 2 if self.schedule.split_size == TERMS and not self._few and not self.joins else 1
        )
        self._add_groups(nodes, cascade, of, 0, self.code.extent(of.extent))
        self._finish_folds(nodes, cascade.finish(self._each_slot))

    def _add_groups(self, nodes: Sequence[Node], cascade: Cascade, of: LoopVar, begin: Ref, end: Ref) -> None:
        code, cells = self.code, self._partials(nodes, of)
        with code.loop(begin, end) as loop:
            at = loop.index
            self._columns(lambda mask: cascade.add(self._slot(), cells.load(self._partial_at(at, of), mask)))
            cascade.carry(code.add(code.sub(at, begin), 1), self._each_slot)
