"""Transposes into contractions, which read an operand whose axes lie in another order as easily as a plain one, and
make rows of columns as easily as rows.

The products and the order in which they are summed are the same either way, and so are the bits.
"""

from __future__ import annotations

from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.graph import Graph, Node
from hybridflow.compiler.ops import TABLE, Kind
from hybridflow.compiler.ops.contraction_dims import Contraction
from hybridflow.compiler.passes.rewriter import rewrite

_TRANSPOSE = TABLE["transpose"]


def transpose_folding(graph: Graph) -> Graph:
    return _out_of_contractions(rewrite(graph, _into_contraction))


def _into_contraction(b: GraphBuilder, node: Node) -> Node | None:
    if node.op.kind is not Kind.CONTRACT or all(n.op is not _TRANSPOSE for n in node.inputs):
        return None
    sources, attrs = list(node.inputs), node.attrs
    for k, source in enumerate(node.inputs):
        if source.op is not _TRANSPOSE:
            continue
        factors = list(node.op.contraction(tuple(n.type for n in sources), attrs).factors)
        factors[k] = factors[k].through(source.attrs["perm"])
        contracting = node.op.contracting(Contraction(factors[0], factors[1]))
        if contracting is not None:
            sources[k], attrs = source.inputs[0], {**attrs, **contracting}
    return None if sources == list(node.inputs) else b.emit(node.op, *sources, **attrs)


def _out_of_contractions(graph: Graph) -> Graph:
    """Contractions that are wanted with columns for rows, and by nobody as they are, with their operands swapped."""
    turned = {n for n in graph.nodes if n.op is _TRANSPOSE and _is_contraction(n.inputs[0])}
    if not turned:
        return graph
    users, results = graph.users(), set(graph.results)
    b = GraphBuilder(TABLE)
    new: dict[Node, Node] = {}
    for old in graph.nodes:
        node = old
        if not new.keys().isdisjoint(old.inputs):
            node = new[old] = Node(old.op, [new.get(n, n) for n in old.inputs], old.attrs, old.type, old.where)
        if old in turned and users[old.inputs[0]] == [old] and old.inputs[0] not in results:
            b.location = old.inputs[0].where
            swapped = _swapped(b, node)
            if swapped is not None:
                new[old] = swapped
                continue
        b.nodes.append(node)
    return graph.rebuild(new, b.nodes) if any(old.op is _TRANSPOSE for old in new) else graph


def _is_contraction(node: Node) -> bool:
    return not node.is_parameter and node.op.kind is Kind.CONTRACT


def _swapped(b: GraphBuilder, node: Node) -> Node | None:
    """The contraction under a transpose that exchanges rows and columns, made so at once."""
    (product,) = node.inputs
    types = tuple(n.type for n in product.inputs)
    axes = product.op.contraction(types, product.attrs)
    batch, rows, columns = (len(part) for part in axes.extents(*types)[:3])
    exchanged = (*range(batch), *range(batch + rows, batch + rows + columns), *range(batch, batch + rows))
    if node.attrs["perm"] != exchanged:
        return None
    contracting = product.op.contracting(Contraction(axes.right, axes.left, axes.lanes, axes.precision))
    return (
        None if contracting is None else b.emit(product.op, *product.inputs[::-1], **{**product.attrs, **contracting})
    )
