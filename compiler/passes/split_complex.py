"""What is computed of complex values becomes real: what comes after this pass computes with real dtypes alone.

In memory, and wherever values are moved as they are, complex numbers keep their dtype: to the emitter they are bits,
which ``real``, ``imag`` and ``complex`` take apart and put together.  In between a value is two real ones, see
``ops.complex_pairs``.  So a program takes and returns complex arrays as NumPy has them, and a gather or a transpose
moves whole numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.graph import Graph, Node, graphs_in
from hybridflow.compiler.ir.results import ValueType, parts_of
from hybridflow.compiler.ir.types import TensorType
from hybridflow.compiler.ops import TABLE, Kind
from hybridflow.compiler.ops.complex_pairs import Moved, Pair
from hybridflow.errors import DTypeError

_MOVING = (Kind.VIEW, Kind.SEGMENT, Kind.GATHER)


def split_complex(graph: Graph) -> Graph:
    """``graph`` with real arithmetic in the place of complex; the very same where there is none."""
    return _Split(graph).graph() if _computes_complex(graph) else graph


def _is_complex(type: ValueType) -> bool:
    if isinstance(type, TensorType):
        return dt.is_complex(type.dtype)
    return any(dt.is_complex(part.dtype) for part in parts_of(type))


def _is_split(node: Node) -> bool:
    """Whether a node is one that the pass leaves: no complex numbers, or those of memory."""
    if node.op.kind in (Kind.CONTROL, Kind.PROJECT, Kind.TRANSFORM) or node.op.name in ("real", "imag", "complex"):
        return True
    return not _is_complex(node.type) and not any(_is_complex(source.type) for source in node.inputs)


def _computes_complex(graph: Graph) -> bool:
    if any(_is_complex(node.type) for node in (*graph.inputs, *graph.nodes)) and not all(map(_is_split, graph.nodes)):
        return True
    inner = [part for node in graph.nodes if node.op.kind is Kind.CONTROL for part in graphs_in(node.attrs)]
    return any(map(_computes_complex, inner))


class _Value:
    """A complex value: whole as it lies in memory, as a pair, or both; each is made when it is first asked for."""

    __slots__ = ("_pair", "is_stored", "whole")

    def __init__(self, whole: Node | None = None, pair: Pair | None = None) -> None:
        self.whole, self._pair = whole, pair
        self.is_stored = whole is not None  # and not computed as a pair: it is best moved as it is

    def pair(self, b: GraphBuilder) -> Pair:
        if self._pair is None:
            self._pair = Pair(b.real(self.whole), b.imag(self.whole))
        return self._pair

    def join(self, b: GraphBuilder) -> Node:
        if self.whole is None:
            assert self._pair is not None
            self.whole = b.complex(*self._pair)
        return self.whole


class _Split:
    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._b = GraphBuilder(TABLE, graph.name)
        self._values: dict[Node, Any] = {}  # nodes, and a _Value for each that is complex
        self._done: dict[Graph, Graph] = {}

    def graph(self) -> Graph:
        b, graph = self._b, self._graph
        for node in graph.inputs:
            b.inputs.append(node)
            self._values[node] = _Value(node) if _is_complex(node.type) else node
        for node in graph.nodes:
            b.location = node.where
            self._values[node] = self._split(node)
        outputs = [self._in_memory(node) for node in graph.outputs]
        updates = {k: self._in_memory(node) for k, node in graph.updates.items()}
        return Graph(graph.name, tuple(b.inputs), tuple(b.nodes), tuple(outputs), updates, graph.conditions)

    def _in_memory(self, node: Node) -> Node:
        value = self._values[node]
        if not isinstance(value, _Value):
            return value
        return value.join(self._b)

    def _split(self, node: Node) -> Node | _Value:
        b, op = self._b, node.op
        values = [self._values[n] for n in node.inputs]
        if op.kind is Kind.CONTROL:
            return self._emit(node, [self._in_memory(n) for n in node.inputs], self._attrs(node.attrs))
        if op.kind is Kind.TRANSFORM:
            emitted = self._emit(node, [self._in_memory(n) for n in node.inputs], node.attrs)
            return _Value(emitted) if _is_complex(node.type) else emitted
        complexes = [value for value in values if isinstance(value, _Value)]
        if op.kind is Kind.PROJECT or (not complexes and not _is_complex(node.type)):
            emitted = self._emit(node, values, node.attrs)
            return _Value(emitted) if _is_complex(node.type) else emitted
        rule = op.pairs or (Moved(op.name) if op.kind in _MOVING else None)
        if rule is None:
            raise DTypeError(op.name, f"there is no {op.name} of complex numbers.", node.where)
        if isinstance(rule, Moved) and all(value.is_stored for value in complexes):
            whole: list[Any] = [value.whole if isinstance(value, _Value) else value for value in values]
            return _Value(self._emit(node, whole, node.attrs))
        result = rule(b, *[v.pair(b) if isinstance(v, _Value) else v for v in values], **node.attrs)
        return _Value(pair=result) if isinstance(result, Pair) else result

    def _emit(self, node: Node, inputs: list[Node], attrs: Mapping[str, Any]) -> Node:
        """The node with other inputs, or attributes; itself where they are the same."""
        if attrs is node.attrs and all(a is b for a, b in zip(inputs, node.inputs)):
            self._b.nodes.append(node)
            return node
        node_emitted: Node = self._b.emit(node.op, *inputs, **attrs)
        return node_emitted

    def _attrs(self, attrs: Mapping[str, Any]) -> Mapping[str, Any]:
        """Attributes whose graphs are split, too."""
        attrs_of_parts = {name: self._attr(value) for name, value in attrs.items()}
        return attrs_of_parts if any(attrs_of_parts[name] is not attrs[name] for name in attrs_of_parts) else attrs

    def _attr(self, value: object) -> Any:
        if isinstance(value, Graph):
            if value not in self._done:
                self._done[value] = split_complex(value)
            return self._done[value]
        if isinstance(value, tuple):
            parts = tuple([self._attr(part) for part in value])
            return value if all(a is b for a, b in zip(parts, value)) else parts
        return value
