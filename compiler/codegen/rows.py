"""Kernels whose last loop is reduced: for every row the stages that its reductions need, vectors along the row.  A
statistic of the row is a scalar."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from hybridflow.compiler.codegen.elements import Place
from hybridflow.compiler.codegen.emitter import Emitter
from hybridflow.compiler.codegen.reduction import Cascade, Fold, LaneFold, State
from hybridflow.compiler.codegen.stages import Staged, known_product
from hybridflow.compiler.codegen.structured import Code, Ref
from hybridflow.compiler.codegen.values import Val
from hybridflow.compiler.ir.graph import Node
from hybridflow.compiler.ir.types import factors
from hybridflow.compiler.loops.index import Index, Ix, LoopVar
from hybridflow.compiler.loops.kernel import CHEAP, IsLeaf, Kernel, accesses
from hybridflow.compiler.loops.space import Space
from hybridflow.compiler.program import Size

LIGHT = 48  # instructions of a body that may be repeated for each vector of a reduction's step


class Kept(NamedTuple):
    """A value that is kept for later stages: where it is computed, and the scratch memory of a row that holds it."""

    node: Node
    position: Ix
    pointer: str


class Rows(Staged):
    def __init__(
        self, e: Emitter, code: Code, kernel: Kernel, space: Space, is_leaf: IsLeaf, pointers: dict[Node, str]
    ) -> None:
        super().__init__(e, code, kernel, space, is_leaf, pointers)
        of_node = accesses(kernel, space, is_leaf).of_node
        # Of the nodes that are computed at a single position, which.
        self.only_at = {node: next(iter(positions)) for node, positions in of_node.items() if len(positions) == 1}

    def _write(self) -> None:
        space = self.space
        with self._loops(space.kept):
            for stage in range(self.stages + 1):
                with self.code.width(1):
                    self._finish_row(self._row_nodes(stage))
                if stage == self.stages:
                    break
                roots, kept = self._roots_of(stage), self._keep(stage)
                self._stage(self._folds_of(stage), roots, kept)
                for node, _, pointer in kept:
                    self.places[node] = Place(pointer, self.within)
                for node in roots:
                    self.places[node] = Place(self.pointers[node])

    def _finish_row(self, nodes: Sequence[Node]) -> None:
        elements = self._elements(None)
        for node in nodes:
            self.given[node] = elements.value(node, Index(node.shape, linear=self.space.row))
        for node in self.kernel.roots:
            if node in nodes:
                elements.store(self.given[node], self.pointers[node], self.space.row)

    def _stage(self, folds: Sequence[Fold], roots: Sequence[Node], kept: Sequence[Kept]) -> None:
        code, e, space = self.code, self.e, self.space
        row_var, sequence = space.vars[-1], space.folded[:-1]
        # Once per row, not once per vector: statistics of the row in every lane.
        scalars = dict(self.given)
        with code.width(self.width):
            for node in self.given:
                self.given[node] = e.splat(self.given[node])

        def body(mask: Val | None) -> list[State]:
            elements = self._elements(row_var, mask)
            self._store_roots(elements, roots, space.full)
            self._compute(elements, [*(node for node, _, _ in kept), *(fold.node.inputs[0] for fold in folds)])
            for node, position, pointer in kept:
                value = elements.value(node, Index(node.shape, linear=position))
                elements.store(value, pointer, self.within)
            return [self._lift(elements, fold) for fold in folds]

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
        light = self.width > 1 and self._work([*roots, *(f.node.inputs[0] for f in folds)]) <= LIGHT
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

    def _keep(self, stage: int) -> list[Kept]:
        """What later stages need of this one and should not compute again, to be stored now.

        A root is simply read back from its own buffer.
        """
        if self._is_gpu:
            return []  # memory for a row of every thread would cost more than computing again
        stack: list[Node] = []
        for later in range(stage + 1, self.stages):
            stack += self._roots_of(later)
            stack += (fold.node.inputs[0] for fold in self._folds_of(later))
        stack.reverse()
        wanted: dict[Node, None] = {}
        seen: set[Node] = set()
        while stack:
            node = stack.pop()
            if node in seen or node in self.places or node.is_parameter or node in self.rows:
                continue
            seen.add(node)
            known = node in self.first and self.first[node] <= stage
            if known and (node in self.kernel.roots or (node in self.only_at and self._work([node]) > CHEAP)):
                wanted.setdefault(node)
            else:
                stack += reversed(node.inputs)
        inner = [node for node in wanted if node not in self.kernel.roots]
        return [Kept(node, self.only_at[node], self._reserve(node.dtype.itemsize)) for node in inner]

    def _reserve(self, itemsize: int) -> str:
        """Scratch memory for a row of elements; its pointer."""
        factor, names = factors(tuple(v.extent for v in self.space.folded))
        at: Ref = 0
        for size in self.scratch:
            for number, symbols in size.terms:
                part: Ref = number
                for name in symbols:
                    part = self.code.mul(part, self.code.extent(name))
                at = self.code.add(at, part)
        # A multiple of 64 bytes, whatever the extents turn out to be.
        self.scratch.append(Size(((64 * -(-factor * itemsize // 64), names),)))
        return self.code.at("%scratch", at, 1)
