"""Dead-code elimination: what no result needs goes, except what has an effect."""

from __future__ import annotations

from hybridflow.compiler.ir.graph import Effect, Graph, Node


def dce(graph: Graph) -> Graph:
    """Keeps a node with an effect even when nobody reads it: an error in the user's program is never optimised away."""
    live: set[Node] = set(graph.results)
    for node in reversed(graph.nodes):
        if node in live or node.effect is not Effect.NONE:
            live.add(node)
            live.update(node.inputs)
    kept = [node for node in graph.nodes if node in live]
    return graph if len(kept) == len(graph.nodes) else graph.rebuild({}, kept)
