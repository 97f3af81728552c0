"""Kernels with a short inner loop: vectors run along another loop, and the short one is unrolled within.

Three kinds: the short loop is folded (norms of vectors of three); it is kept and nothing is folded (colours of pixels),
or it is kept and others are folded (forces on points).  Folds have the order that is laid down for them, lane by lane.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

from hybridflow.compiler.codegen.core.elements import Elements
from hybridflow.compiler.codegen.core.kernel_builder import KernelBuilder, Ref
from hybridflow.compiler.codegen.core.llvm_values import Val
from hybridflow.compiler.codegen.core.nontemporal import nontemporal_stores
from hybridflow.compiler.codegen.core.tile_transpose import transpose_in_registers
from hybridflow.compiler.codegen.nests.contiguous_inner import ContiguousInner
from hybridflow.compiler.codegen.nests.interleaved_access import InterleavedAccess
from hybridflow.compiler.codegen.nests.loop_nest import LoopNest
from hybridflow.compiler.codegen.nests.reduction import (
    Cascade,
    Fold,
    State,
    depth_for,
    fold_lanes,
    known_product,
    position_within,
)
from hybridflow.compiler.index.index_expr import Index, IndexExpr, LoopVar, is_contiguous_along
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.graph import Node
from hybridflow.compiler.ir.types import static_size
from hybridflow.compiler.loops.reduction_stages import ReductionStage
from hybridflow.compiler.loops.tuning import MAX_REMAINDER_ITERATIONS, REMAINDER_WORK


class TransposedLoads:
    """Reads that lie along a folded loop, for vectors across it: blocks turned in registers, in buffers that hold, for
    each read, as many steps as a vector has lanes.

    As in ``tiles``, but a step along the loop may have a few elements side by side, one for each turn of a short loop.
    """

    def __init__(
        self,
        code: KernelBuilder,
        allocate: Callable[[int], str],
        reads: Sequence[tuple[Node, IndexExpr]],
        inner: LoopVar,
        pointers: dict[Node, str],
    ) -> None:
        self.code, self.reads, self.inner, self.pointers = code, reads, inner, pointers
        self.width = code.e.width
        self.buffers = [allocate(self.width**2 * self._side_by_side(ix) * n.dtype.itemsize) for n, ix in reads]

    def _side_by_side(self, position: IndexExpr) -> int:
        """Elements of a step."""
        return static_size((self.inner.extent,)) if position.depends_on(self.inner) else 1

    def fill(self, at: Callable[[int], Elements]) -> None:
        """Read the block whose first step is current; ``at(k)`` are elements at the k-th lane."""
        code, e, width = self.code, self.code.e, self.width
        for (node, position), buffer in zip(self.reads, self.buffers):
            dtype = dt.uint8 if dt.is_bool(node.dtype) else node.dtype
            starts = [code.at(self.pointers[node], at(k).ref(position), dtype.itemsize) for k in range(width)]
            for part in range(self._side_by_side(position)):
                rows = [e.load(code.at(start, part * width, dtype.itemsize), dtype) for start in starts]
                for k, row in enumerate(transpose_in_registers(e, rows)):
                    e.store(row, code.at(buffer, (part * width + k) * width, dtype.itemsize))

    def addresses(self, step: Ref, iteration: int) -> dict[tuple[str, IndexExpr], str]:
        """Where the vectors of a step lie, for a turn of the short loop."""
        code, result = self.code, {}
        for (node, position), buffer in zip(self.reads, self.buffers):
            count = self._side_by_side(position)
            at = code.mul(code.add(code.mul(step, count), iteration if count > 1 else 0), self.width)
            result[self.pointers[node], position] = code.at(buffer, at, node.dtype.itemsize)
        return result


UnrolledElements = list[InterleavedAccess]


class OuterVectorized(LoopNest):
    """``values`` are statistics that are ready, for each turn of the short loop."""

    @cached_property
    def within(self) -> IndexExpr:
        return position_within(self.space)

    @cached_property
    def inner(self) -> LoopVar:
        assert self.schedule.unrolled_loop is not None
        return self.schedule.unrolled_loop

    @property
    def iterations(self) -> range:
        return range(static_size((self.inner.extent,)))

    def _write(self) -> None:
        lane = self.schedule.vector_loop
        assert lane is not None
        outer = [v for v in self.space.kept if v not in (lane, self.inner)]
        last = self.schedule.written_last if is_contiguous_along(self.space.full, self.inner, lane) else ()
        with nontemporal_stores(self.code, self.kernel, self.pointers, last, lane.extent), self._loops(outer):
            self._vector_loop(lane, self._run, halves=self._is_short() and self._has_long_remainder(lane))

    def _is_short(self) -> bool:
        """Whether the body may be written again for rests."""
        iterations, work = len(self.iterations), sum(stage.work for stage in self.schedule.stages)
        return iterations <= MAX_REMAINDER_ITERATIONS and iterations * work <= REMAINDER_WORK

    def _run(self, mask: Val | None) -> None:
        folds_inner = self.inner in self.space.folded
        shared: dict[Node, Val] = {}
        self.values = [shared if folds_inner else {} for _ in self.iterations]
        elements = self._at_iterations(mask)
        for stage in self.schedule.stages:
            self._finish(elements, stage.ready)
            if folds_inner or not self.space.folded:
                self._store(elements, stage.roots, self.space.full)
                if stage.folds:
                    self._fold_iterations(elements, stage)
            elif stage.folds or stage.roots:
                self._fold_terms(stage, mask)
                elements = self._at_iterations(mask)

    def _at_iterations(
        self, mask: Val | None, blocks: TransposedLoads | None = None, step: Ref = 0
    ) -> UnrolledElements:
        """Elements at each turn of the short loop; ``blocks`` have what is turned, at this step along them."""
        lane = self.schedule.vector_loop
        assert lane is not None
        result: UnrolledElements = []
        for iteration in self.iterations:
            first = result[0] if result else None
            values, transposed = self.values[iteration], blocks.addresses(step, iteration) if blocks else None
            args = (self.code, self.counters, lane, self.places, values, mask, self.inner, iteration, first, transposed)
            result.append(InterleavedAccess(*args))
        return result

    def _finish(self, elements: UnrolledElements, nodes: Sequence[Node]) -> None:
        """What follows from the statistics of the stages before."""
        for node in nodes:
            for iteration in self._rows(elements):
                iteration.given[node] = iteration.value(node, Index(node.shape, linear=self.space.row))
            self._store_row(elements, node)

    def _rows(self, elements: UnrolledElements) -> UnrolledElements:
        """Where the turns of the short loop have statistics of their own, all of them."""
        return elements[:1] if self.inner in self.space.folded else elements

    def _store_row(self, elements: UnrolledElements, node: Node) -> None:
        if node in self.kernel.roots:
            rows = self._rows(elements)
            self._store_values(rows, [iteration.given[node] for iteration in rows], node, self.space.row)

    def _store(self, elements: UnrolledElements, roots: Sequence[Node], position: IndexExpr) -> None:
        """Compute all, then store all: a root may be written over what another one reads."""
        if self.schedule.contiguous and elements[0].mask is None and elements[0].in_order(position):
            self._store_contiguous(elements, roots, position)
            return
        for iteration in elements:
            self._compute(iteration, roots)
        values = [
            [iteration.value(root, Index(root.shape, linear=position)) for iteration in elements] for root in roots
        ]
        for root, of_root in zip(roots, values):
            self._store_values(elements, of_root, root, position)

    def _store_contiguous(self, elements: UnrolledElements, roots: Sequence[Node], position: IndexExpr) -> None:
        """The same for vectors of neighbours in memory."""
        vectors = [ContiguousInner(elements, number) for number in self.iterations]
        for vector in vectors:
            self._compute(vector, roots)
        values = [[vector.value(root, Index(root.shape, linear=position)) for vector in vectors] for root in roots]
        for root, of_root in zip(roots, values):
            for number, value in enumerate(of_root):
                elements[0].store_neighbours(value, self.pointers[root], position, number)

    def _store_values(self, elements: UnrolledElements, values: Sequence[Val], root: Node, position: IndexExpr) -> None:
        pointer = self.pointers[root]
        if len(elements) > 1 and elements[0].store_group(values, pointer, position):
            return
        for iteration, value in zip(elements, values):
            iteration.store(value, pointer, position)

    def _states(self, iteration: InterleavedAccess, folds: Sequence[Fold]) -> list[State]:
        self._compute(iteration, [n for fold in folds for n in fold.node.inputs])
        return [fold.lift(iteration, self.space.full, self.within) for fold in folds]

    def _fold_iterations(self, elements: UnrolledElements, stage: ReductionStage) -> None:
        folds = [Fold(node) for node in stage.folds]
        total = fold_lanes(self.e, folds, [self._states(iteration, folds) for iteration in elements])
        for fold, state in zip(folds, total):
            elements[0].given.update(self._finished_values(fold, state))
        for node in self._fold_results(*stage.folds):
            self._store_row(elements, node)

    def _terms(self, var: LoopVar, mask: Val | None, term: Callable[[TransposedLoads | None, Ref], None]) -> None:
        """``term(blocks, step)`` at each turn of the innermost folded loop.  What lies along that loop, with gaps along
        the vectors, is read in blocks and turned."""
        code, extent, width = self.code, self.code.extent(var.extent), self.e.width
        whole: Ref = 0
        lane = self.schedule.vector_loop
        assert lane is not None
        reads = self.schedule.transposed.reads if self.schedule.transposed else ()
        if reads and width > 1 and mask is None:
            whole = code.sub(extent, code.rem(extent, width))
            blocks = TransposedLoads(code, self._allocate, reads, self.inner, self.pointers)
            with code.loop(0, whole, width) as block:
                start, first = {**self.counters, var: block.index, self.inner: 0}, self.counters[lane]

                def at(k: int) -> Elements:
                    return Elements(code, {**start, lane: code.add(first, k)}, None, self.places, {})

                blocks.fill(at)
                with code.loop(0, width) as step:
                    self.counters[var] = code.add(block.index, step.index)
                    term(blocks, step.index)
        with code.loop(whole, extent) as remainder:
            self.counters[var] = remainder.index
            term(None, 0)

    def _fold_terms(self, stage: ReductionStage, mask: Val | None) -> None:
        code, e, folded = self.code, self.e, self.space.folded
        folds = [Fold(node) for node in stage.folds]
        depth = depth_for(known_product([v.extent for v in folded]))
        cascade = Cascade(code, self._allocate, folds, depth, len(self.iterations) * e.width)

        def each(action: Callable[[Ref], None]) -> None:
            for iteration in self.iterations:
                action(iteration * e.width)

        cascade.start(each)

        def term(blocks: TransposedLoads | None, step: Ref) -> None:
            elements = self._at_iterations(mask, blocks, step)
            self._store(elements, stage.roots, self.space.full)
            for iteration in elements:
                cascade.add(iteration.iteration * e.width, self._states(iteration, folds))
            cascade.carry(code.add(self._position(folded), 1), each)

        with self._loops(folded[:-1]):
            self._terms(folded[-1], mask, term)
        totals = cascade.finish(each)
        elements = self._at_iterations(mask)
        for iteration in elements:
            for fold, state in zip(folds, totals.load(iteration.iteration * e.width)):
                iteration.given.update(self._finished_values(fold, state))
        for node in self._fold_results(*stage.folds):
            self._store_row(elements, node)
