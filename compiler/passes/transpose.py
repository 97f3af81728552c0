"""Transposes into contractions: a matmul reads a transposed matrix as easily as a plain one.

The products and the order in which they are summed are the same either way, and so are the bits.
"""

from __future__ import annotations

from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.graph import Graph, Node
from hybridflow.compiler.passes.rewrite import rewrite


def transpose_folding(graph: Graph) -> Graph:
    return rewrite(graph, _into_matmul)


def _into_matmul(b: GraphBuilder, node: Node) -> Node | None:
    if node.op.name != "matmul" or not any(map(_swaps_matrix, node.inputs)):
        return None
    flags = [node.attrs["transpose_a"], node.attrs["transpose_b"]]
    sources = list(node.inputs)
    for i, source in enumerate(node.inputs):
        if _swaps_matrix(source):
            sources[i], flags[i] = source.inputs[0], not flags[i]
    return b.matmul(*sources, transpose_a=flags[0], transpose_b=flags[1])


def _swaps_matrix(node: Node) -> bool:
    """Whether ``node`` transposes exactly the last two axes."""
    if node.op.name != "transpose":
        return False
    n = node.type.ndim
    return n >= 2 and node.attrs["perm"] == (*range(n - 2), n - 1, n - 2)
