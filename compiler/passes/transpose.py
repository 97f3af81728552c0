"""Transposes into contractions, which read an operand whose axes lie in another order as easily as a plain one.

The products and the order in which they are summed are the same either way, and so are the bits.
"""

from __future__ import annotations

from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.graph import Graph, Node
from hybridflow.compiler.ops import TABLE, Kind
from hybridflow.compiler.ops.contraction import Contraction
from hybridflow.compiler.passes.rewrite import rewrite

_TRANSPOSE = TABLE["transpose"]


def transpose_folding(graph: Graph) -> Graph:
    return rewrite(graph, _into_contraction)


def _into_contraction(b: GraphBuilder, node: Node) -> Node | None:
    if node.op.kind is not Kind.CONTRACT or all(n.op is not _TRANSPOSE for n in node.inputs):
        return None
    sources, attrs = list(node.inputs), node.attrs
    for k, source in enumerate(node.inputs):
        if source.op is not _TRANSPOSE:
            continue
        factors = list(node.op.contraction(tuple(n.type for n in sources), attrs).factors)
        factors[k] = factors[k].through(source.attrs["perm"])
        found = node.op.contracting(Contraction(factors[0], factors[1]))
        if found is not None:
            sources[k], attrs = source.inputs[0], {**attrs, **found}
    return None if sources == list(node.inputs) else b.emit(node.op, *sources, **attrs)
