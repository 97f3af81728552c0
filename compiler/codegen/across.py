"""Kernels with a short inner loop: vectors run along another loop, and the short one is unrolled within.

Three kinds: the short loop is folded (norms of vectors of three), it is kept and nothing is folded (colours of pixels),
or it is kept and others are folded (forces on points).  Folds have the order that is laid down for them, lane by lane.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

from hybridflow.compiler.codegen.blocks import Blocks
from hybridflow.compiler.codegen.elements import Elements
from hybridflow.compiler.codegen.flat import Flat
from hybridflow.compiler.codegen.interleaved import Interleaved
from hybridflow.compiler.codegen.nest import Nest
from hybridflow.compiler.codegen.past_caches import past_caches
from hybridflow.compiler.codegen.reduction import (
    Cascade,
    Fold,
    State,
    depth_for,
    fold_lanes,
    known_product,
    position_within,
)
from hybridflow.compiler.codegen.structured import Ref
from hybridflow.compiler.codegen.values import Val
from hybridflow.compiler.ir.graph import Node
from hybridflow.compiler.ir.types import static_size
from hybridflow.compiler.loops.index import Index, Ix, LoopVar, lies_side_by_side
from hybridflow.compiler.loops.limits import MOST_TURNS_OF_RESTS, REST_WORK
from hybridflow.compiler.loops.stages import Stage

Turns = list[Interleaved]


class Across(Nest):
    """``values`` are statistics that are ready, for each turn of the short loop."""

    @cached_property
    def within(self) -> Ix:
        return position_within(self.space)

    @cached_property
    def inner(self) -> LoopVar:
        assert self.schedule.inner is not None
        return self.schedule.inner

    @property
    def turns(self) -> range:
        return range(static_size((self.inner.extent,)))

    def _write(self) -> None:
        lane = self.schedule.lane
        assert lane is not None
        outer = [v for v in self.space.kept if v not in (lane, self.inner)]
        last = self.schedule.written_last if lies_side_by_side(self.space.full, self.inner, lane) else ()
        with past_caches(self.code, self.kernel, self.pointers, last, lane.extent), self._loops(outer):
            self._vector_loop(lane, self._run, halves=self._is_short() and self._has_long_rest(lane))

    def _is_short(self) -> bool:
        """Whether the body may be written again for rests."""
        turns, work = len(self.turns), sum(stage.work for stage in self.schedule.stages)
        return turns <= MOST_TURNS_OF_RESTS and turns * work <= REST_WORK

    def _run(self, mask: Val | None) -> None:
        folds_inner = self.inner in self.space.folded
        shared: dict[Node, Val] = {}
        self.values = [shared if folds_inner else {} for _ in self.turns]
        elements = self._at_turns(mask)
        for stage in self.schedule.stages:
            self._finish(elements, stage.ready)
            if folds_inner or not self.space.folded:
                self._store(elements, stage.roots, self.space.full)
                if stage.folds:
                    self._fold_turns(elements, stage)
            elif stage.folds or stage.roots:
                self._fold_terms(stage, mask)
                elements = self._at_turns(mask)

    def _at_turns(self, mask: Val | None, blocks: Blocks | None = None, step: Ref = 0) -> Turns:
        """Elements at each turn of the short loop; ``blocks`` have what is turned, at this step along them."""
        lane = self.schedule.lane
        assert lane is not None
        found: Turns = []
        for turn in self.turns:
            first = found[0] if found else None
            given, turned = self.values[turn], blocks.addresses(step, turn) if blocks else None
            args = (self.code, self.counters, lane, self.places, given, mask, self.inner, turn, first, turned)
            found.append(Interleaved(*args))
        return found

    def _finish(self, elements: Turns, nodes: Sequence[Node]) -> None:
        """What follows from the statistics of the stages before."""
        for node in nodes:
            for turn in self._rows(elements):
                turn.given[node] = turn.value(node, Index(node.shape, linear=self.space.row))
            self._store_row(elements, node)

    def _rows(self, elements: Turns) -> Turns:
        """Where the turns of the short loop have statistics of their own, all of them."""
        return elements[:1] if self.inner in self.space.folded else elements

    def _store_row(self, elements: Turns, node: Node) -> None:
        if node in self.kernel.roots:
            rows = self._rows(elements)
            self._store_values(rows, [turn.given[node] for turn in rows], node, self.space.row)

    def _store(self, elements: Turns, roots: Sequence[Node], position: Ix) -> None:
        """Compute all, then store all: a root may be written over what another one reads."""
        if self.schedule.flat and elements[0].mask is None and elements[0].in_order(position):
            self._store_flat(elements, roots, position)
            return
        for turn in elements:
            self._compute(turn, roots)
        values = [[turn.value(root, Index(root.shape, linear=position)) for turn in elements] for root in roots]
        for root, found in zip(roots, values):
            self._store_values(elements, found, root, position)

    def _store_flat(self, elements: Turns, roots: Sequence[Node], position: Ix) -> None:
        """The same for vectors of neighbours in memory."""
        vectors = [Flat(elements, number) for number in self.turns]
        for vector in vectors:
            self._compute(vector, roots)
        values = [[vector.value(root, Index(root.shape, linear=position)) for vector in vectors] for root in roots]
        for root, found in zip(roots, values):
            for number, value in enumerate(found):
                elements[0].store_neighbours(value, self.pointers[root], position, number)

    def _store_values(self, elements: Turns, values: Sequence[Val], root: Node, position: Ix) -> None:
        pointer = self.pointers[root]
        if len(elements) > 1 and elements[0].store_group(values, pointer, position):
            return
        for turn, value in zip(elements, values):
            turn.store(value, pointer, position)

    def _states(self, turn: Interleaved, folds: Sequence[Fold]) -> list[State]:
        self._compute(turn, [n for fold in folds for n in fold.node.inputs])
        return [fold.lift(turn, self.space.full, self.within) for fold in folds]

    def _fold_turns(self, elements: Turns, stage: Stage) -> None:
        folds = [Fold(node) for node in stage.folds]
        total = fold_lanes(self.e, folds, [self._states(turn, folds) for turn in elements])
        for fold, state in zip(folds, total):
            elements[0].given.update(self._finished(fold, state))
        for node in self._made_by(*stage.folds):
            self._store_row(elements, node)

    def _terms(self, var: LoopVar, mask: Val | None, term: Callable[[Blocks | None, Ref], None]) -> None:
        """``term(blocks, step)`` at each turn of the innermost folded loop.  What lies along that loop, with gaps along
        the vectors, is read in blocks and turned."""
        code, extent, width = self.code, self.code.extent(var.extent), self.e.width
        whole: Ref = 0
        lane = self.schedule.lane
        assert lane is not None
        reads = self.schedule.turned.reads if self.schedule.turned else ()
        if reads and width > 1 and mask is None:
            whole = code.sub(extent, code.rem(extent, width))
            blocks = Blocks(code, self._allocate, reads, self.inner, self.pointers)
            with code.loop(0, whole, width) as block:
                start, first = {**self.counters, var: block.index, self.inner: 0}, self.counters[lane]

                def at(k: int) -> Elements:
                    return Elements(code, {**start, lane: code.add(first, k)}, None, self.places, {})

                blocks.fill(at)
                with code.loop(0, width) as step:
                    self.counters[var] = code.add(block.index, step.index)
                    term(blocks, step.index)
        with code.loop(whole, extent) as rest:
            self.counters[var] = rest.index
            term(None, 0)

    def _fold_terms(self, stage: Stage, mask: Val | None) -> None:
        code, e, folded = self.code, self.e, self.space.folded
        folds = [Fold(node) for node in stage.folds]
        depth = depth_for(known_product([v.extent for v in folded]))
        cascade = Cascade(code, self._allocate, folds, depth, len(self.turns) * e.width)

        def each(action: Callable[[Ref], None]) -> None:
            for turn in self.turns:
                action(turn * e.width)

        cascade.start(each)

        def term(blocks: Blocks | None, step: Ref) -> None:
            elements = self._at_turns(mask, blocks, step)
            self._store(elements, stage.roots, self.space.full)
            for turn in elements:
                cascade.add(turn.turn * e.width, self._states(turn, folds))
            cascade.carry(code.add(self._position(folded), 1), each)

        with self._loops(folded[:-1]):
            self._terms(folded[-1], mask, term)
        totals = cascade.finish(each)
        elements = self._at_turns(mask)
        for turn in elements:
            for fold, state in zip(folds, totals.load(turn.turn * e.width)):
                turn.given.update(self._finished(fold, state))
        for node in self._made_by(*stage.folds):
            self._store_row(elements, node)
