"""A graph's nodes applied anew: through any builder, to values whose extents are known better than the graph's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from hybridflow.compiler.autodiff import Record, Results
from hybridflow.compiler.ir.build import Builder, GraphBuilder
from hybridflow.compiler.ir.extents import Dim, Extent, affine, substituted, symbols
from hybridflow.compiler.ir.graph import Graph, Node
from hybridflow.compiler.ir.results import TupleType, is_token, parts_of
from hybridflow.compiler.ops.op_table import TABLE, Kind


def extents_of(values: Mapping[Node, Any]) -> dict[str, Extent]:
    """What the symbols of a graph's inputs are, where those inputs are ``values``."""
    result: dict[str, Extent] = {}
    for wanted, actual in [pair for node, x in values.items() for pair in zip(node.type.shape, x.shape)]:
        source = affine(wanted)
        if source is not None:
            result.setdefault(source[0], (actual - source[2]) // source[1])
    return result


def symbols_in(part: Any) -> list[str]:
    """The symbols in the types and the attributes of nodes, those of sub-graphs too."""
    if isinstance(part, Dim):
        return list(symbols(part))
    if isinstance(part, Node):
        types = [] if is_token(part.type) else [one.shape for one in parts_of(part.type)]
        return [name for one in (*types, *part.attrs.values()) for name in symbols_in(one)]
    if isinstance(part, Graph):
        part = (*part.inputs, *part.nodes)
    if isinstance(part, (tuple, list)):
        return [name for one in part for name in symbols_in(one)]
    return []


def symbols_of_input(node: Node) -> set[str]:
    """The symbols that can be read from the extents of an input."""
    return {source[0] for source in map(affine, node.type.shape) if source is not None}


Numbering = Callable[[int], int]  # what the function of a number is called in the program that goes on


def with_extents(attribute: object, extents: Mapping[str, Extent], number: Numbering | None = None) -> Any:
    """An attribute, or several, with what its symbols are; functions in Python are called by a new ``number``."""
    if isinstance(attribute, Dim):
        return substituted(attribute, extents)
    if isinstance(attribute, tuple):
        return tuple([with_extents(part, extents, number) for part in attribute])
    if isinstance(attribute, Graph):
        return _graph_with_extents(attribute, extents, number)
    if isinstance(attribute, Mapping):
        return {name: with_extents(value, extents, number) for name, value in attribute.items()}
    return attribute


def _graph_with_extents(graph: Graph, extents: Mapping[str, Extent], number: Numbering | None) -> Graph:
    """A sub-graph with what its symbols are, but for those that it is told inside."""
    b = GraphBuilder(TABLE, graph.name)
    values: dict[Node, Node] = {}
    for node in graph.inputs:
        b.location = node.where
        type = node.type if is_token(node.type) else node.type.with_shape(with_extents(node.shape, extents))
        values[node] = b.parameter(type, node.attrs["name"])
    for node in graph.nodes:
        b.location = node.where
        values[node] = b.emit(node.op, *(values[n] for n in node.inputs), **_attrs(node, extents, number))
    return b.finish([values[n] for n in graph.outputs])


def _attrs(node: Node, extents: Mapping[str, Extent], number: Numbering | None) -> dict[str, Any]:
    """The attributes of a node with what its symbols are, but for one that its sub-graph is told when it is run."""
    if node.op is TABLE["sized"]:
        extents = {**extents, node.attrs["symbol"]: Dim(node.attrs["symbol"])}
    attrs = with_extents(node.attrs, extents, number)
    if number is not None and node.op.calls_host and "number" in attrs:
        attrs["number"] = number(attrs["number"])
    return attrs


def apply_again(
    b: Builder,
    nodes: Iterable[Node],
    values: dict[Node, Any],
    extents: Mapping[str, Extent],
    number: Numbering | None = None,
) -> list[Record]:
    """Apply nodes through builder ``b``, and put their values into ``values``, of those with several results tuples.

    What is there already is not computed.  The records are those of the reverse walk (``compiler.autodiff``).
    """
    records = []
    for node in nodes:
        if node.op.kind is Kind.PROJECT:
            values[node] = values[node.inputs[0]][node.attrs["index"]]
            continue
        inputs = tuple([values[n] for n in node.inputs])
        attrs = _attrs(node, extents, number)
        emitted = values.get(node)
        if emitted is None:
            emitted = b.emit(node.op, *inputs, **attrs)
            if isinstance(node.type, TupleType):
                emitted = b.results(emitted)
            values[node] = emitted
        outputs = Results(emitted) if isinstance(node.type, TupleType) else (emitted,)
        records.append(Record(node.op, inputs, attrs, outputs))
    return records
