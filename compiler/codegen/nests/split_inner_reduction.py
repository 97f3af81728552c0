"""Few long rows: partial results of pieces of them, which any threads may make; then each row's fold of its pieces, in
the order of one thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property

from hybridflow.compiler.codegen.core.elements import MemoryPlace
from hybridflow.compiler.codegen.core.kernel_builder import Ref
from hybridflow.compiler.codegen.core.llvm_values import Val
from hybridflow.compiler.codegen.gpu.group_reduction import StoredGroupReduction
from hybridflow.compiler.codegen.nests.inner_reduction import InnerReduction
from hybridflow.compiler.codegen.nests.loop_nest import PhaseText
from hybridflow.compiler.codegen.nests.reduction import Cells, Fold, State, StoredLanes, nothing
from hybridflow.compiler.index.index_expr import LoopVar
from hybridflow.compiler.ir.graph import Node
from hybridflow.compiler.ir.types import Extent, product
from hybridflow.compiler.loops.reduction_stages import ReductionStage
from hybridflow.compiler.ops.evaluation_order import CHUNK, LANES, SUPERCHUNK


class SplitInnerReduction(InnerReduction):
    """``ready`` are values of rows that earlier phases have left in shared memory, ``stored`` the results of the full
    space that they have written."""

    def write(self) -> list[PhaseText]:
        self.ready: list[Node] = []
        self.stored: list[Node] = []
        folded: tuple[Node, ...] = ()
        for stage in self.schedule.stages:
            if folded or stage.ready:
                with self._phase(self.space.kept, group=self.schedule.finish_group_size), self._rows():
                    self._finish_rows(folded, stage.ready)
                self.ready += (*self._fold_results(*folded), *stage.ready)
            if stage.folds or stage.roots:
                units = (*self.space.kept, *self.space.folded[:-1], self.split_size)
                with self._phase(units, group=self.schedule.group_size), self._rows():
                    self._splits(stage)
                self.stored += stage.roots
            folded = stage.folds
        return self.phases

    @cached_property
    def run(self) -> Extent:
        """Elements that fold in lanes: the last loop."""
        return self.space.vars[-1].extent

    @cached_property
    def split_size(self) -> LoopVar:
        return LoopVar("piece", -(-self.run // self.schedule.split_size))

    @property
    def by_chunk(self) -> bool:
        """Whether a piece leaves the 64 lanes of a chunk, not a single state."""
        return self.schedule.split_size == CHUNK and self.run != CHUNK

    @contextmanager
    def _rows(self) -> Iterator[None]:
        """The kept loops, with what is known of their rows."""
        self.places.update((node, MemoryPlace(self.pointers[node])) for node in self.stored)
        with self._loops(self.space.kept), self.code.width(1):
            for node in self.ready:
                self.given[node] = self.e.load(self._result(node), node.dtype)
            yield

    def _result(self, node: Node) -> str:
        """The address of the current row's value."""
        kept = self.space.kept
        pointer = self.shared.result(self.code, node, product(tuple(v.extent for v in kept)))
        return self.code.at(pointer, self._position(kept), node.dtype.itemsize)

    def _partials(self, nodes: Sequence[Node]) -> Cells:
        lines = product(tuple(v.extent for v in (*self.space.vars[:-1], self.split_size)))
        return self.shared.partial(self.code, nodes, lines * (LANES if self.by_chunk else 1))

    def _first_partial(self, pieces: Ref = 0) -> Ref:
        """The place of the current line's piece of that number."""
        code = self.code
        line = self._position((*self.space.kept, *self.space.folded[:-1]))
        at = code.add(code.mul(line, code.extent(self.split_size.extent)), pieces)
        return code.mul(at, LANES) if self.by_chunk else at

    # ---- phases of pieces

    def _splits(self, stage: ReductionStage) -> None:
        code, body = self.code, self._body(stage, {})
        vectors = self.schedule.vectors_of(stage)
        with self._loops((*self.space.folded[:-1], self.split_size)), self._statistics_in_lanes(vectors):
            begin = code.mul(self.counters[self.split_size], self.schedule.split_size)
            end = code.min(code.add(begin, self.schedule.split_size), code.extent(self.run))
            if stage.folds:
                with code.width(self.width):
                    self._fold_split(stage, begin, end, body)
                return
            with self._cut(self.space.vars[-1:], begin, end):
                self._only_write(stage, body)

    def _fold_split(
        self, stage: ReductionStage, begin: Ref, end: Ref, body: Callable[[Val | None], list[State]]
    ) -> None:
        code, along = self.code, self._along(body)
        cells, at = self._partials(stage.folds), self._first_partial(self.counters[self.split_size])
        with self._lane_fold(stage) as lanes:
            if self.by_chunk:
                lanes.store_chunk(cells, at, begin, end, along)
                return
            whole = self.split_size.extent == 1
            states = lanes.run(code.extent(self.run), along) if whole else lanes.superchunk(begin, end, along)
        with code.width(1), self._once():
            cells.store(at, states)

    # ---- phases of rows

    def _finish_rows(self, nodes: Sequence[Node], ready: Sequence[Node]) -> None:
        if nodes:
            folds = [Fold(node) for node in nodes]
            cells = self._partials(nodes)
            self._finish_folds(folds, self._sequence(folds, lambda: self._line(folds, cells)))
        self._finish_row(ready)
        places = {node: self._result(node) for node in (*self._fold_results(*nodes), *ready)}
        with self._once():
            for node, place in places.items():
                self.e.store(self.given[node], place)

    def _line(self, folds: Sequence[Fold], cells: Cells) -> list[State]:
        """The states of one run, from those of its pieces."""
        code, first = self.code, self._first_partial()
        if self.by_chunk:
            with code.width(self.width):
                known = self.run if isinstance(self.run, int) else None
                if self.thread_group is not None:
                    memory = self.schedule.shared_memory_bytes
                    stored = StoredGroupReduction(code, self.thread_group, folds, known, memory, cells, first)
                    return stored.run(code.extent(self.run))
                lanes = StoredLanes(code, self._allocate, folds, known, cells, first)
                return lanes.run(code.extent(self.run), nothing)
        if self.split_size.extent == 1:
            return cells.load(first)
        assert self.schedule.split_size == SUPERCHUNK
        total = Cells(code, self._allocate, folds, 1)
        total.store(0, [fold.start(self.e) for fold in folds])
        with code.loop(0, code.extent(self.split_size.extent)) as loop:
            total.fold_in(0, cells.load(code.add(first, loop.index)))
        return total.load(0)
