"""Whether two nodes have the same elements: a product of such factors, each over its own axes, is symmetric."""

from __future__ import annotations

from hybridflow.compiler.index.access_maps import AccessMaps, IsLeaf
from hybridflow.compiler.index.index_expr import Index, IndexExpr, LoopVar, variable
from hybridflow.compiler.ir.attributes import same_attrs
from hybridflow.compiler.ir.graph import Node
from hybridflow.compiler.ops import Kind
from hybridflow.compiler.ops.contraction_dims import Contraction


def is_symmetric(node: Node, axes: Contraction, is_leaf: IsLeaf) -> bool:
    """Whether a contraction multiplies something with itself: its second factor has at (batch, column, depth) what the
    first one has at (batch, row, depth), and there are as many columns as rows."""
    left, right = node.inputs
    batch, rows, columns, summed = axes.extents(left.type, right.type)
    if rows != columns:
        return False
    parts = [
        tuple(variable(LoopVar(f"{name}{k}", extent)) for k, extent in enumerate(extents))
        for name, extents in (("b", batch), ("r", rows), ("k", summed))
    ]
    at = [Index(x.shape, axes=factor.arranged(*parts)) for x, factor in zip(node.inputs, axes.factors)]
    return structurally_equal(left, at[0], right, at[1], is_leaf)


def structurally_equal(a: Node, at: Index, b: Node, there: Index, is_leaf: IsLeaf) -> bool:
    """Whether the element of ``a`` at one index is the element of ``b`` at another, for all that is seen without going
    beyond what ``is_leaf``: one element of one node, or what one op makes of such elements."""
    seen: dict[tuple[Node, IndexExpr, Node, IndexExpr], bool] = {}

    def same(a: Node, at: Index, b: Node, there: Index) -> bool:
        (a, at), (b, there) = _beneath(a, at, is_leaf), _beneath(b, there, is_leaf)
        if a is b and at.linear == there.linear:
            return True
        if is_leaf(a) or is_leaf(b) or not (a.op.kind is b.op.kind is Kind.ELEMENTWISE):
            return False
        if a.op is not b.op or a.dtype != b.dtype or not same_attrs(a.attrs, b.attrs):
            return False
        key = a, at.linear, b, there.linear
        if key not in seen:
            seen[key] = all(same(x, at, y, there) for x, y in zip(a.inputs, b.inputs, strict=True))
        return seen[key]

    return same(a, at, b, there)


def _beneath(node: Node, at: Index, is_leaf: IsLeaf) -> tuple[Node, Index]:
    """What lies beneath views, and where: of those that do nothing else than to read it at another index."""
    while not is_leaf(node) and node.op.kind is Kind.VIEW:
        reads = AccessMaps(lambda _: True)
        reads.element(node, at)
        if reads.positions or len(reads.leaves) != 1:
            break
        ((node, at),) = reads.leaves
    return node, at
