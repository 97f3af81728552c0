"""Kernels whose last loop is reduced: for every row the stages that its reductions need, vectors along the row.  A
statistic of the row is a scalar."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property

from hybridflow.compiler.codegen.core.elements import Elements, MemoryPlace
from hybridflow.compiler.codegen.core.kernel_builder import Ref
from hybridflow.compiler.codegen.core.llvm_values import Val
from hybridflow.compiler.codegen.core.nontemporal import nontemporal_stores
from hybridflow.compiler.codegen.gpu.group_reduction import GroupReduction
from hybridflow.compiler.codegen.nests.argmax import ArgExtremum, is_arg_extremum
from hybridflow.compiler.codegen.nests.loop_nest import LoopNest
from hybridflow.compiler.codegen.nests.reduction import (
    Body,
    Cascade,
    Fold,
    LaneFold,
    State,
    depth_for,
    known_product,
    position_within,
)
from hybridflow.compiler.index.index_expr import Index, IndexExpr, variable
from hybridflow.compiler.index.iteration_space import Space
from hybridflow.compiler.ir.graph import Node
from hybridflow.compiler.ir.types import is_static, static_size
from hybridflow.compiler.loops.kernel import accesses, raises
from hybridflow.compiler.loops.reduction_stages import KeptStatistic, ReductionStage
from hybridflow.compiler.loops.schedule import folded_by, line_by_line
from hybridflow.compiler.loops.tuning import CHEAP, CHUNKS_OF_ONE_STREAM, LONG_ROW
from hybridflow.compiler.ops.evaluation_order import CHUNK, LANES


class InnerReduction(LoopNest):
    """``_statistics`` are those of the current row as vectors, by their width."""

    _statistics: dict[int, dict[Node, Val]]

    @cached_property
    def within(self) -> IndexExpr:
        return position_within(self.space)

    def _write(self) -> None:
        last, run = self.schedule.written_last, self.space.vars[-1].extent
        with nontemporal_stores(self.code, self.kernel, self.pointers, last, run), self._loops(self.space.kept):
            for stage in self.schedule.stages:
                with self.code.width(1):
                    self._finish_row(stage.ready)
                if not (stage.folds or stage.roots or stage.kept):
                    continue
                kept = {k: self._row_of_scratch(k.node.dtype.itemsize) for k in stage.kept}
                self._stage(stage, kept)
                for (node, _), pointer in kept.items():
                    self.places[node] = MemoryPlace(pointer, self.within)
                for node in stage.roots:
                    self.places[node] = MemoryPlace(self.pointers[node])
                if stage.roots and self.thread_group is not None:
                    self.thread_group.barrier()

    def _finish_row(self, nodes: Sequence[Node]) -> None:
        elements = self._elements(None)
        for node in nodes:
            self.given[node] = elements.value(node, Index(node.shape, linear=self.space.row))
        for node in self.kernel.roots:
            if node in nodes:
                self._store_of_row(elements, node)

    def _store_of_row(self, elements: Elements, node: Node) -> None:
        with self._once():
            elements.store(self.given[node], self.pointers[node], self.space.row)

    def _stage(self, stage: ReductionStage, kept: dict[KeptStatistic, str]) -> None:
        """``kept`` are addresses in the scratch memory of a row."""
        code, space = self.code, self.space
        row_var, sequence = space.vars[-1], space.folded[:-1]
        body = self._body(stage, kept)
        with self._statistics_in_lanes(self.schedule.vectors_of(stage)):
            if not stage.folds:
                with self._loops(sequence):
                    self._only_write(stage, body)
                return
            folds = [Fold(node) for node in stage.folds]
            extent = code.extent(row_var.extent)
            with code.width(self.width), self._fold_of(stage) as lanes:
                states = self._sequence(folds, lambda: lanes.run(extent, self._along(body)))
        self._finish_folds(folds, states)

    @contextmanager
    def _statistics_in_lanes(self, vectors: int = 1) -> Iterator[None]:
        """Statistics of the row in every lane: once per row, not once per vector."""
        scalars, extent = dict(self.given), self.space.vars[-1].extent
        long = isinstance(extent, int) and extent >= LONG_ROW * self.width
        self._statistics = {}
        for width in dict.fromkeys((self.width * vectors, self.width)):
            with self.code.width(width):
                lanes = {n: (self.e.fixed if long else self.e.splat)(scalar) for n, scalar in scalars.items()}
            self._statistics[width] = self.given = lanes
        yield
        self.given = scalars

    def _only_write(self, stage: ReductionStage, body: Callable[[Val | None], list[State]]) -> None:
        """A stage that folds nothing, along what is run of the row now."""
        if not stage.line:
            self._vector_loop(self.space.vars[-1], lambda mask: self._drop(body(mask)))
            return
        code, space = self.code, line_by_line(self.space, stage.line)
        *_, line, along = space.vars
        body = self._body(stage, {}, space)
        start, stop = self._bounds(self.space.vars[-1])
        with (
            self._kept_along(space),
            code.spans(start, stop, code.extent(along.extent)) as (self.counters[line], first, end),
            self._cut((along,), first, end),
        ):
            self._vector_loop(along, lambda mask: self._drop(body(mask)))

    @contextmanager
    def _kept_along(self, space: Space) -> Iterator[None]:
        """What stages before have kept lies at places of the row; along the loops of ``space`` it is read by those."""
        places, within = dict(self.places), position_within(space)
        for node, place in places.items():
            if place.position is self.within:
                self.places[node] = MemoryPlace(place.pointer, within)
        yield
        self.places = places

    def _body(
        self, stage: ReductionStage, kept: dict[KeptStatistic, str], space: Space | None = None
    ) -> Callable[[Val | None], list[State]]:
        """What a stage does with a vector of elements; ``space`` if its loops are not the kernel's."""
        space, folds = space or self.space, [Fold(node) for node in stage.folds]
        is_in_memory = bool(stage.line and folds)

        def body(mask: Val | None) -> list[State]:
            elements = self._elements(space.vars[-1], mask)
            if mask is None and stage is self._second:
                self._prefetch_next(elements)
            self._compute(elements, [*(node for node, _ in kept), *(n for fold in stage.folds for n in fold.inputs)])
            for (node, position), pointer in kept.items():
                value = elements.value(node, Index(node.shape, linear=position))
                elements.store(value, pointer, self.within)
            states = [fold.lift(elements, space.full, self.within) for fold in folds]
            if not is_in_memory:  # else they are written where they are made
                self._store_roots(elements, stage.roots, space.full)  # last: one may be written over what is read here
            return states

        return body

    # ---- rows to come

    @cached_property
    def _second(self) -> ReductionStage | None:
        """The stage that has time to ask for what the first one of the next row reads: one that folds what is in the
        cache by then.  None where rows need not come from memory, or no loop tells where the next one is."""
        stages, e = self.schedule.stages, self.e
        rows = self.space.kept
        sizes = tuple(var.extent for var in self.space.vars)
        if e.target.kind != "cpu" or len(stages) < 3 or not stages[1].folds or not rows or not is_static(sizes):
            return None
        return stages[1] if static_size(sizes) * self._widest > e.target.l2 else None

    @cached_property
    def _read_first(self) -> set[Node]:
        """The inputs that the first stage reads."""
        stage, inputs = self.schedule.stages[0], set(self.kernel.inputs)
        first_reads: set[Node] = set()
        waiting = [*stage.roots, *(n for n, _ in stage.kept), *(n for fold in stage.folds for n in fold.inputs)]
        while waiting:
            node = waiting.pop()
            if node not in first_reads:
                first_reads.add(node)
                waiting += () if node in inputs else node.inputs
        return first_reads & inputs

    @property
    def _widest(self) -> int:
        """The bytes of an element of the widest input."""
        return max((n.dtype.itemsize for n in self.kernel.inputs), default=0)

    def _prefetch_next(self, elements: Elements) -> None:
        code, (row, along) = self.code, (self.space.kept[-1], self.space.vars[-1])
        for node, positions in accesses(self.kernel, self.space, self.is_leaf).of_input.items():
            for position in positions if node in self._read_first else ():
                step = position.coefficient(row)
                if position.coefficient(along) == 1 and step:
                    at = code.add(elements.ref(position), step)
                    self.e.prefetch(code.at(self.places[node].pointer, at, node.dtype.itemsize))

    def _along(self, body: Callable[[Val | None], list[State]]) -> Body:
        """The body as one at an element of the row."""

        def at(i: Ref, mask: Val | None) -> list[State]:
            self.counters[self.space.vars[-1]] = i
            self.given = self._statistics.get(self.e.width, self._statistics[self.width])
            return body(mask)

        return at

    @staticmethod
    def _drop(states: list[State]) -> None:
        """A body that only writes."""

    @contextmanager
    def _lane_fold(self, stage: ReductionStage) -> Iterator[LaneFold | GroupReduction]:
        extent, folds = self.space.vars[-1].extent, [Fold(node) for node in stage.folds]
        known = extent if isinstance(extent, int) else None
        if self.thread_group is not None:
            yield GroupReduction(self.code, self.thread_group, folds, known, self.schedule.shared_memory_bytes)
            return
        places = dict(self.places)
        lines = self._line_by_line(stage) if stage.line else None
        light, vectors = lines is not None or self.schedule.light(stage), self.schedule.vectors_of(stage)
        yield LaneFold(self.code, self._allocate, folds, known, light, lines, vectors, self._streams)
        self.places = places

    @property
    def _streams(self) -> int:
        """Chunks of the only array that is read to read in turn: several where it comes from memory."""
        along, inputs = self.space.vars[-1], accesses(self.kernel, self.space, self.is_leaf).of_input
        read = [(n, p) for n, positions in inputs.items() for p in positions if p.coefficient(along) == 1]
        far = [is_static(n.shape) and static_size(n.shape) * n.dtype.itemsize > self.e.target.l3 for n, _ in read]
        return CHUNKS_OF_ONE_STREAM if far == [True] else 1

    # ---- lines of a row

    def _line_by_line(self, stage: ReductionStage) -> Callable[[Ref, Ref], None]:
        """What makes a chunk of the values that the stage folds, line by line, and says where they lie.  What it writes
        is written on the way: it may take the place of what is read."""
        nodes = [node for node in folded_by(stage) if stage.roots or node not in self.places]
        read = {node: self.places[node] for node in nodes if node in self.places}
        buffers = [(node, self._allocate(CHUNK * node.dtype.itemsize)) for node in nodes]
        space = line_by_line(self.space, stage.line)
        code, full, (*_, line, along) = self.code, space.full, space.vars
        within, row = variable(line) * along.extent + variable(along), self.space.vars[-1]
        exact = isinstance(along.extent, int) and along.extent % self.width == 0  # and so are chunks

        def prepare(begin: Ref, end: Ref) -> None:
            starts = {n: code.at(buffer, code.sub(0, begin), n.dtype.itemsize) for n, buffer in buffers}

            def at(i: Ref, mask: Val | None) -> None:
                self.counters[along] = i
                elements = self._elements(along, mask)
                self._compute(elements, nodes, full)
                values = [elements.value(node, Index(node.shape, linear=full)) for node in nodes]
                for node, value in zip(nodes, values):
                    elements.store(value, starts[node], within)
                self._store_roots(elements, stage.roots, full)

            for node in nodes:
                self.places.pop(node, None)
                if node in read:
                    self.places[node] = read[node]
            with (
                self._kept_along(space),
                code.spans(begin, end, code.extent(along.extent)) as (self.counters[line], first, last),
            ):
                code.vector_loop(first, last, self.width, at, exact)
            self.places.update((node, MemoryPlace(start, variable(row))) for node, start in starts.items())

        return prepare

    @contextmanager
    def _fold_of(self, stage: ReductionStage) -> Iterator[ArgExtremum | LaneFold | GroupReduction]:
        best = None if stage.line else self._first_best(stage)
        if best is not None:
            yield best
            return
        with self._lane_fold(stage) as lanes:
            yield lanes

    def _first_best(self, stage: ReductionStage) -> ArgExtremum | None:
        """The fold of a long row for the position of an element that may be made twice; None for others."""
        extent, plain = self.space.vars[-1].extent, not (stage.roots or stage.kept or raises(self.kernel))
        short = isinstance(extent, int) and extent <= LANES
        if self.thread_group is not None or short or not plain or stage.work > CHEAP or len(stage.folds) != 1:
            return None
        fold = Fold(stage.folds[0])
        return ArgExtremum(self.code, self._allocate, fold) if is_arg_extremum(self.e, fold) else None

    def _finish_folds(self, folds: Sequence[Fold], states: list[State]) -> None:
        with self.code.width(1):
            for fold, state in zip(folds, states):
                for node, result in self._finished_values(fold, state):
                    self.given[node] = result
                    if node in self.kernel.roots:
                        self._store_of_row(self._elements(None), node)

    def _sequence(self, folds: Sequence[Fold], term: Callable[[], list[State]]) -> list[State]:
        """Fold ``term()``, the states of one run, over the folded loops outside of it."""
        code, sequence = self.code, self.space.folded[:-1]
        terms = known_product([v.extent for v in sequence])
        if terms == 1:
            return term()
        cascade = Cascade(code, self._allocate, folds, depth_for(terms))

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
