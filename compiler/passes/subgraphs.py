"""Passes recurse: what is done to a graph is done to the graphs inside of it first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hybridflow.compiler.ir.graph import Graph, Node
from hybridflow.compiler.ops import Kind

GraphPass = Callable[[Graph], Graph]


def everywhere(function: GraphPass, graph: Graph) -> Graph:
    """``function`` of ``graph``, after the same of each of its sub-graphs, innermost first.

    A graph in which nothing changes stays the very same, and equal ones that are one object stay one.
    """
    return function(_inside(graph, function, {}))


def _inside(graph: Graph, function: GraphPass, done: dict[Graph, Graph]) -> Graph:
    if not [node for node in graph.nodes if node.op.kind is Kind.CONTROL]:
        return graph

    def changed(value: Any) -> Any:
        if isinstance(value, Graph):
            if value not in done:
                done[value] = function(_inside(value, function, done))
            return done[value]
        if isinstance(value, tuple):
            parts = tuple([changed(part) for part in value])
            return value if all(a is b for a, b in zip(parts, value)) else parts
        return value

    new: dict[Node, Node] = {}
    nodes = []
    for old in graph.nodes:
        attrs = old.attrs
        if old.op.kind is Kind.CONTROL:
            attrs_inside = {name: changed(value) for name, value in old.attrs.items()}
            if any(attrs_inside[name] is not old.attrs[name] for name in attrs_inside):
                attrs = attrs_inside
        node = old
        if attrs is not old.attrs or any(n in new for n in old.inputs):
            node = new[old] = Node(old.op, [new.get(n, n) for n in old.inputs], attrs, old.type, old.where)
        nodes.append(node)
    return graph.rebuild(new, nodes) if new else graph
