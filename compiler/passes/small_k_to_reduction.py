"""Products of a matrix with a vector of few elements, as sums over the last axis: the colours of each pixel weighted,
the coordinates of each point.

Where each sum has a handful of terms a kernel for products has nothing to reuse, and does more between sums than for
them.  A fold is one more op of the loops around it, which run across many sums at once, with what the factors are made
of and what becomes of the results.  Products by lanes are summed in the order of a fold (``ops/evaluation_order.py``),
so the bits are the same.
"""

from __future__ import annotations

from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.graph import Graph, Node
from hybridflow.compiler.ir.types import product
from hybridflow.compiler.ops import Kind
from hybridflow.compiler.ops.contraction_dims import Factor
from hybridflow.compiler.passes.rewriter import rewrite

MAX_TERMS = 16  # terms of sums whose neighbours lie side by side, to read them together
MAX_TERMS_ALONG = 8  # ... of those whose terms do: they are taken apart first


def small_k_to_reductions(graph: Graph) -> Graph:
    return rewrite(graph, _as_reduction)


def _as_reduction(b: GraphBuilder, node: Node) -> Node | None:
    if node.op.kind is not Kind.CONTRACT:
        return None
    types = tuple(n.type for n in node.inputs)
    axes = node.op.contraction(types, node.attrs)
    extents = axes.extents(*types)
    terms, is_column = product(extents.summed), product(extents.columns) == 1
    matrix = axes.left if is_column else axes.right
    along = max(matrix.summed) > max(matrix.free)
    if not axes.lanes or not isinstance(terms, int) or not 0 < terms <= (MAX_TERMS_ALONG if along else MAX_TERMS):
        return None
    batch, lines = extents.batch, extents.rows if is_column else extents.columns
    shape = *batch, *lines, *extents.summed
    summed = tuple(range(len(batch) + len(lines), len(shape)))

    def arranged(source: Node, parts: Factor, is_matrix: bool) -> Node:
        """A factor's elements at each line and term."""
        perm = *parts.batch, *parts.free, *parts.summed
        if perm != tuple(range(len(perm))):
            source = b.transpose(source, perm=perm)
        if is_matrix:
            return source
        vector = b.reshape(source, shape=(*batch, *extents.summed))
        return b.broadcast(vector, shape=shape, axes=(*range(len(batch)), *summed))

    left = arranged(node.inputs[0], axes.left, is_column)
    right = arranged(node.inputs[1], axes.right, not is_column)
    total = b.vecdot(left, right, axes=summed, sum_dtype=node.dtype)
    return b.reshape(total, shape=node.shape)
