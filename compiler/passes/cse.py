"""Common subexpressions: equal ops on equal inputs with equal attributes are one value.

Every op is a function of its inputs, random bits too, so the first of two equal nodes serves for both; of two that
would raise, the first does.
"""

from __future__ import annotations

from collections.abc import Hashable

from hybridflow.compiler.ir.graph import Graph, Node
from hybridflow.compiler.passes.rewriter import value_key


def cse(graph: Graph) -> Graph:
    first: dict[Hashable, Node] = {}
    new: dict[Node, Node] = {}
    nodes: list[Node] = []
    for old in graph.nodes:
        node = old
        if not new.keys().isdisjoint(old.inputs):
            node = new[old] = Node(old.op, [new.get(n, n) for n in old.inputs], old.attrs, old.type, old.where)
        representative = first.setdefault(value_key(node), node)
        if representative is node:
            nodes.append(node)
        else:
            new[old] = representative
    return graph.rebuild(new, nodes) if new else graph
