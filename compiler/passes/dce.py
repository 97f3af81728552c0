"""Dead-code elimination: what no result needs goes, except what may raise."""

from __future__ import annotations

from hybridflow.compiler.ir.graph import Graph, Node


def dce(graph: Graph) -> Graph:
    """Keeps a node that may raise even when nobody reads it: an error in the user's program is never optimised away."""
    live: set[Node] = set(graph.results)
    for node in reversed(graph.nodes):
        if node in live or node.may_raise:
            live.add(node)
            live.update(node.inputs)
    kept = [node for node in graph.nodes if node in live]
    return graph if len(kept) == len(graph.nodes) else graph.rebuild({}, kept)
