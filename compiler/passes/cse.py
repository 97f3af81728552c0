"""Common subexpressions: equal ops on equal inputs with equal attributes are one value.

Every op is a function of its inputs, random bits too, so the first of two equal nodes serves for both; of two that
would raise, the first does.
"""

from __future__ import annotations

from collections.abc import Hashable

from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.graph import Graph, Node
from hybridflow.compiler.passes.rewrite import rewrite, value_key


def cse(graph: Graph) -> Graph:
    first: dict[Hashable, Node] = {}

    def known(b: GraphBuilder, node: Node) -> Node | None:
        found = first.setdefault(value_key(node), node)
        return None if found is node else found

    return rewrite(graph, known)
