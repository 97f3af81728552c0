"""Dead-code elimination: what no result needs goes, except what has an effect."""

from __future__ import annotations

from collections.abc import Hashable

from hybridflow.compiler.ir.graph import Effect, Graph, Node
from hybridflow.compiler.ops import Kind


def dce(graph: Graph) -> Graph:
    """Keeps a node with an observable effect even when nobody reads it: an error in the user's program is never
    optimised away.  One that would only look at indices again goes: where they are out of range, the program has failed
    before."""
    live: set[Node] = set(graph.results)
    repeated = _repeated_checks(graph)
    for node in reversed(graph.nodes):
        if node in live or (node.effect.is_observable and node not in repeated):
            live.add(node)
            live.update(node.inputs)
    kept = [node for node in graph.nodes if node in live]
    return graph if len(kept) == len(graph.nodes) else graph.rebuild({}, kept)


def _repeated_checks(graph: Graph) -> set[Node]:
    """The nodes that look at indices into an axis at which an earlier node looks, for slices of the same shape."""
    looked: set[Hashable] = set()
    repeated = set()
    for node in graph.nodes:
        if node.effect is Effect.RAISES and (node.op.kind is Kind.GATHER or node.op.kind is Kind.SCATTER):
            x, indices = node.inputs[:2]
            key = indices, x.shape, node.attrs["axis"], node.op.paired
            if key in looked:
                repeated.add(node)
            looked.add(key)
    return repeated
