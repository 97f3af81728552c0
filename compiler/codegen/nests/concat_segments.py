"""Kernels of concat and pad: one loop nest for each input that is laid into the output, after those that fill what none
is laid into.

Inputs that are computed rather than stored are computed here, so a concat of activations needs no copies.  A unit is a
part of the output: each nest runs the turns that fall into it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import NamedTuple

from hybridflow.compiler.codegen.core.elements import Elements
from hybridflow.compiler.codegen.core.kernel_builder import Ref
from hybridflow.compiler.codegen.core.llvm_values import Val
from hybridflow.compiler.codegen.core.nontemporal import nontemporal_stores
from hybridflow.compiler.codegen.nests.interleaved_access import InterleavedAccess
from hybridflow.compiler.codegen.nests.loop_nest import LoopNest
from hybridflow.compiler.index import iteration_space as spaces
from hybridflow.compiler.index.access_maps import AccessMaps
from hybridflow.compiler.index.index_expr import Index, IndexExpr, LoopVar, variable
from hybridflow.compiler.ir.extents import Extent, compare
from hybridflow.compiler.ir.graph import Node
from hybridflow.compiler.ir.types import Shape, product
from hybridflow.compiler.loops.interleaved_concat import InterleavedRows, Part
from hybridflow.compiler.loops.kernel import IsLeaf


class Segment(NamedTuple):
    """A part of the output: what is laid into it, its shape, where it begins and how far its elements are apart."""

    source: Node | None
    shape: Shape
    offsets: Sequence[Extent]
    steps: Sequence[Extent]


def segments_of(node: Node) -> list[Segment]:
    """The parts of a node's output, in the order in which they are laid."""
    assert node.op.segments is not None
    parts = node.op.segments(tuple([n.type for n in node.inputs]), node.type, **node.attrs)
    return [Segment(None if k is None else node.inputs[k], *rest) for k, *rest in parts]


def loops_of_part(node: Node, part: Segment, is_leaf: IsLeaf) -> tuple[spaces.Space, IndexExpr]:
    """The loops over a part of a node's elements, and where these lie among all."""

    def target(space: spaces.Space) -> IndexExpr:
        axes = Index(part.shape, linear=space.full).axes
        return Index(node.shape, axes=[ix * s + o for o, ix, s in zip(part.offsets, axes, part.steps)]).linear

    space = spaces.over(part.shape)
    space = spaces.merged(space, [target(space), *reads_of_part(part, space, is_leaf)])
    return space, target(space)


def reads_of_part(part: Segment, space: spaces.Space, is_leaf: IsLeaf) -> list[IndexExpr]:
    """Where a part is read."""
    if part.source is None:
        return []
    reads = AccessMaps(is_leaf)
    reads.follow(part.source, Index(part.shape, linear=space.full))
    return [index.linear for _, index in reads.leaves] + reads.positions


class ConcatSegments(LoopNest):
    """Writes the kernel of a SEGMENT node; ``space`` has the loops over its elements."""

    def _write(self) -> None:
        self.node = node = self.kernel.cluster.anchor
        # Elements of the output in a unit, and those that this call writes.
        self.unit = product(tuple(v.extent for v in self.space.vars[len(self.schedule.parallel) :]))
        size = self.code.extent(self.unit)
        begin, end = self._units()
        self.first, self.end = self.code.mul(begin, size), self.code.mul(end, size)
        for part in segments_of(node):
            self._lay(part)

    def _lay(self, part: Segment) -> None:
        source, shape = part.source, part.shape
        if 0 in shape:
            return
        space, position = loops_of_part(self.kernel.cluster.anchor, part, self.is_leaf)
        at = self.code.extent(position.strides.get(None, 0))
        run = space.vars[-1].extent if space.vars else 1
        with ExitStack() as stack:
            stack.enter_context(nontemporal_stores(self.code, self.kernel, self.pointers, [self.node], run))
            for k, var in enumerate(space.vars[:-1]):
                begin, end = self._part(position, space.vars, k, at)
                self.counters[var] = stack.enter_context(self.code.loop(begin, end)).index
                stride = self.code.extent(position.strides[var])
                at = self.code.add(at, self.code.mul(self.counters[var], stride))
            if not space.vars:
                inside = self.code.both(
                    self.code.compare("sle", self.first, at), self.code.compare("slt", at, self.end)
                )
                stack.enter_context(self.code.when(inside))
                self._store(source, shape, space, position, None)
                return
            last = space.vars[-1]

            def store(i: Ref, mask: Val | None) -> None:
                self.counters[last] = i
                self._store(source, shape, space, position, last, mask)

            begin, end = self._part(position, space.vars, len(space.vars) - 1, at)
            self._vectors(begin, end, store)

    def _vectors(self, begin: Ref, end: Ref, store: Callable[[Ref, Val | None], None]) -> None:
        """Store elements [begin, end) of a line.  Where masks are dear the last vector begins before its turn: no
        buffer that is read is written, so that elements may be made twice."""
        code, width, wide = self.code, self.width, self.width * self.schedule.vectors
        if self.e.target.masked or width == 1:
            code.vector_loop(begin, end, width, store)
            return
        count = code.sub(end, begin)
        first: Ref = begin
        for step in dict.fromkeys((wide, width)):
            last = code.add(begin, code.mul(code.div(count, step), step))
            with code.loop(first, last, step) as at, code.width(step):
                store(at.index, None)
            first = last
        whole = code.compare("sge", count, width)
        with code.when(code.both(whole, code.compare("slt", first, end))), code.width(width):
            store(code.sub(end, width), None)
        with code.when(code.negation(whole)), code.loop(first, end) as at, code.width(1):
            store(at.index, None)

    def _part(self, position: IndexExpr, vars: Sequence[LoopVar], k: int, at: Ref) -> tuple[Ref, Ref]:
        """The turns of loop ``k`` that write elements of this call's units, where turn 0 of it and of all within it
        writes element ``at``."""
        code, extent = self.code, self.code.extent(vars[k].extent)
        if self._stays_in_a_unit(position, vars, k):
            return 0, extent
        stride = code.extent(position.strides[vars[k]])
        within: Ref = 0  # the last element of a turn, from its first
        for var in vars[k + 1 :]:
            last = code.sub(code.extent(var.extent), 1)
            within = code.add(within, code.mul(last, code.extent(position.strides[var])))

        def iterations_before(element: Ref, from_start: Ref) -> Ref:
            """How many turns begin, or end, before an element."""
            gone = code.max(code.sub(code.sub(element, at), from_start), 0)
            return code.min(code.div(code.add(gone, code.sub(stride, 1)), stride), extent)

        return iterations_before(self.first, within), iterations_before(self.end, 0)

    def _stays_in_a_unit(self, position: IndexExpr, vars: Sequence[LoopVar], k: int) -> bool:
        """Whether all turns of loop ``k`` write one unit, which the loops around it have found to be this call's."""
        strides, unit = position.strides, self.unit
        outer = [strides.get(None, 0), *(strides[v] for v in vars[:k])]
        within: Extent = outer[0] % unit
        for var in vars[k:]:
            within = within + strides[var] * (var.extent - 1)
        return all(n % unit == 0 for n in outer[1:]) and compare(unit, within + 1) is True

    def _store(
        self,
        source: Node | None,
        shape: Shape,
        space: spaces.Space,
        target: IndexExpr,
        lane: LoopVar | None,
        mask: Val | None = None,
    ) -> None:
        elements = Elements(self.code, self.counters, lane, self.places, {}, mask)
        if source is None:
            value = self.e.const(self.node.attrs["value"], self.node.dtype)
        else:
            value = elements.value(source, Index(shape, linear=space.full))
        elements.store(value, self.pointers[self.node], target)


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
