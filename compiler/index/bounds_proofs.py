"""Proofs that programs stay inside of their arrays, for every call that their conditions allow.

Nothing is believed of a program that comes from a file.  Its nodes are held against the rules of their ops
(``ir.verify``), whose ``canon`` and ``infer`` say what index maps rely on (``extents.required``).  Then the element
rule of each op is run with a prover in place of an emitter, which looks at the bounds of each index expression.  What
does not follow from the bounds of loops and from ``Graph.conditions`` is a fault.

Kernels of their own (products, convolutions, scans, sorts, scatters) find positions by the extents of their operands,
which ``infer`` fixes, and look at indices that are data when they run.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, NoReturn

from hybridflow.compiler.index.access_maps import ANYTHING, SymbolicSource
from hybridflow.compiler.index.index_expr import Index, IndexExpr, as_index, variable
from hybridflow.compiler.index.iteration_space import over
from hybridflow.compiler.ir.extents import Conditions, Dim, Extent, affine, from_products, judged_by, symbols
from hybridflow.compiler.ir.graph import Graph, Node, graphs_in
from hybridflow.compiler.ir.polynomial import Bound, bound, limited_effort, plus, times
from hybridflow.compiler.ir.results import is_token, parts_of
from hybridflow.compiler.ir.text import node_text, value_names
from hybridflow.compiler.ir.types import MAX_SIZE, Shape, product
from hybridflow.compiler.ir.verify import verify
from hybridflow.compiler.ops import Kind
from hybridflow.errors import CompileError, VerifyError

_EFFORT = 1 << 23  # terms of extents that may be looked at
_TIMES = 1 << 12  # so many times the elements of an input can be counted: inputs lie in memory


def check_in_bounds(graph: Graph) -> None:
    """Raise VerifyError where a node breaks a rule of the IR, or an element may be read where there is none.

    Raises SymbolicExtentError where extents are such that it takes too long to tell.
    """
    prover = _Prover(graph)
    with judged_by(prover.conditions), limited_effort(_EFFORT):
        verify(graph)
        for _ in prover.recording_failures():
            if prover.conditions.missing:
                prover.fail(f"relies on {prover.conditions.missing[0]} >= 0, which is not assumed")
    if prover.conditions.missing:  # of a rule of the IR
        raise VerifyError(
            "verify", f"{graph.name} relies on {prover.conditions.missing[0]} >= 0, which is not assumed."
        )


def with_conditions(graph: Graph, conditions: Sequence[Extent]) -> Graph:
    """The graph with these conditions, and all others that it relies on.

    Raises VerifyError where it relies on extents that are found when it runs.
    """
    graph = replace(graph, conditions=tuple(conditions))
    prover = _Prover(graph)
    conditions_needed: dict[Dim, None] = {}
    with judged_by(prover.conditions):
        verify(graph)
        for _ in prover.recording_failures():
            pass
        for one in prover.conditions.missing:
            if not prover.told.issuperset(symbols(one)):
                raise VerifyError("verify", f"{graph.name} relies on {one} >= 0, which no call says.")
            conditions_needed[one] = None
    return replace(graph, conditions=(*graph.conditions, *conditions_needed))


class _Prover:
    """Looks at one node of a graph after the other; ``conditions`` notes what is missing."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.conditions = Conditions(graph.conditions)
        inputs = [node.type.shape for node in graph.inputs]
        self.told = {s[0] for s in map(affine, (n for shape in inputs for n in shape)) if s is not None}
        self._counted = [_elements(shape) * _TIMES for shape in inputs]
        self._known: set[Extent | Shape] = set()
        self._node: Node | None = None
        self._names: Mapping[Node, str] = {}

    def recording_failures(self) -> Iterator[None]:
        """Go on when what is missing was taken note of."""
        yield from self._in_graph(self.graph)

    def _in_graph(self, graph: Graph) -> Iterator[None]:
        names = value_names(graph)
        for node in (*graph.inputs, *graph.nodes):
            self._node, self._names = node, names
            for type in parts_of(node.type):
                self._analyze_shape(type.shape)
            if not node.is_parameter:
                self._analyze_node(node)
            yield
            for inner in graphs_in(node.attrs):
                yield from self._in_graph(inner)

    def fail(self, what: str) -> NoReturn:
        node = self._node
        assert node is not None
        raise VerifyError(
            "verify",
            f"{self._names.get(node, 'a value')} {what}.\n  in: {node_text(node, self._names)}",
            node.where or "",
        )

    # ---- extents

    def _analyze_shape(self, shape: Shape) -> None:
        """Extents are not negative, and elements can be counted."""
        open_ = [extent for extent in shape if isinstance(extent, Dim)]
        if not open_ or shape in self._known:
            return
        self._known.add(shape)
        for extent in open_:
            if extent.symbol is None and extent not in self._known:
                self._known.add(extent)
                self.require(bound(extent))
        size = _elements(shape)
        if self.told.issuperset(symbols(size)) and not any(self._follows(n - size) for n in self._counted):
            self.require(bound(MAX_SIZE - 1 - size))

    def _follows(self, extent: Extent) -> bool:
        silent = Conditions(self.conditions.values)
        return extent >= 0 if isinstance(extent, int) else silent.required(extent) and not silent.missing

    def require(self, room: Bound | None) -> None:
        """Take note unless a bound, of a whole number, is 0 or more."""
        if room is None:
            self.fail("reads at a position without a bound")
            return
        scale = math.lcm(*(Fraction(factor).denominator for factor in room.values()))
        extent = from_products((int(factor * scale), names) for names, factor in room.items())
        if isinstance(extent, int):
            if extent < 0:
                self.fail("reads outside of an array")
        elif not self.conditions.required(extent):
            self.fail(f"relies on {extent} >= 0, which is not so")

    # ---- index maps

    def _analyze_node(self, node: Node) -> None:
        op = node.op
        internal = () if isinstance(op.internal, bool) else op.internal
        for what in [op.name] if op.internal is True else [name for name in internal if name in node.attrs]:
            self.fail(f"has {what!r}, which passes alone write")
        if is_token(node.type) or any(0 in part.shape for part in parts_of(node.type)):
            return
        try:
            if op.kind is Kind.SEGMENT:
                self._analyze_segments(node)
            elif op.element is not None:
                index = Index(node.shape, axes=[variable(v) for v in over(node.shape).vars])
                op.element(_Source(self, node, index), index, **node.attrs)
        except CompileError as error:
            self.fail(f"has an index map that cannot be followed: {error}")

    def _analyze_segments(self, node: Node) -> None:
        types = tuple(n.type for n in node.inputs)
        for k, shape, offsets, steps in node.op.segments(types, node.type, **node.attrs):
            if k is not None:
                for part_extent, extent in zip(types[k].shape, shape):
                    self.require(bound(part_extent - extent))
            if 0 not in shape:
                for all_, extent, offset, step in zip(node.shape, shape, offsets, steps):
                    self.require(bound(offset))
                    self.require(bound(all_ - 1 - offset - (extent - 1) * step))

    def within(self, position: IndexExpr, extent: Extent) -> None:
        """Take note unless a position is one of ``extent``, wherever the loops turn."""
        low, high = position.bounds
        self.require(low)
        self.require(None if high is None else plus(bound(extent - 1), times(high, -1)))


class _Source(SymbolicSource):
    """Proves that what is read is there."""

    def __init__(self, prover: _Prover, node: Node, index: Index) -> None:
        super().__init__(node)
        self.prover, self._index = prover, index
        self._never: list[IndexExpr] = []  # indices of which none is in range

    def load(self, k: int, index: tuple[IndexExpr, ...]) -> Any:
        for position, extent in zip(index, self.types[k].shape, strict=True):
            if not any(position is one for one in self._never):
                self.prover.within(as_index(position), extent)
        return ANYTHING

    def load_linear(self, k: int, position: IndexExpr) -> Any:
        size = product(self.types[k].shape)
        if position == self._index.linear:
            # It counts the elements of the result, whatever its extents are: those of (n - 2) * m are not to be seen
            # from the bounds of its terms.
            self.prover.require(bound(size - product(self.out.shape)))
        else:
            self.prover.within(position, size)
        return ANYTHING

    def inside(self, k: int, index: Any, where: Sequence[tuple[IndexExpr, Extent]], otherwise: object) -> Any:
        looked_at = [(as_index(position), extent) for position, extent in where]
        for position, extent in zip(index, self.types[k].shape, strict=True):
            if (as_index(position), extent) not in looked_at:
                self.prover.within(as_index(position), extent)
        return ANYTHING

    def value(self, ix: IndexExpr | Extent) -> Any:
        return ANYTHING

    def check_index(self, value: Any, extent: Extent, check: Any) -> IndexExpr:
        result = super().check_index(value, extent, check)
        if extent == 0:  # no index is in range: the check ends the program
            self._never.append(result)
        return result

    def literal(self, value: Any, index: Index) -> Any:
        if value.type.shape:
            self.prover.within(index.linear, value.type.size)
        return ANYTHING


def _elements(shape: Shape) -> Extent:
    """The number of elements, where extents of 0 count as 1: strides are products of the others."""
    return product(tuple(extent for extent in shape if not isinstance(extent, int) or extent))
