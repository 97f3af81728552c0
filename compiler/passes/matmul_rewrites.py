"""Products and convolutions of forms that other ops compute faster, with the same bits."""

from __future__ import annotations

from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.graph import Graph, Node
from hybridflow.compiler.ir.types import Extent, product
from hybridflow.compiler.ops import Kind
from hybridflow.compiler.ops.contraction_dims import Factor
from hybridflow.compiler.passes.rewriter import rewrite

LEAST_PLACES = 32  # fewer do not fill the lanes of a tile


def filters_to_matmul(graph: Graph) -> Graph:
    """Convolutions of one channel by one filter along one axis, as products of the filter with windows of the input.

    The tile of a convolution has its columns in lanes, and here is one column.  The product reads the input once for
    each element of the filter, with the places in lanes; no window is copied.  Both have the order of a product's
    blocks (``ops/evaluation_order.py``), so the bits are the same.
    """
    return rewrite(graph, _as_matmul)


def _as_matmul(b: GraphBuilder, node: Node) -> Node | None:
    if node.op.name != "convolve" or node.dtype not in (dt.float32, dt.float64):
        return None
    x, f = node.inputs
    if x.type.ndim != 4 or (*x.shape[2:], *f.shape[1:]) != (1,) * 5:
        return None
    ((low,), (high,)) = (node.attrs[name] for name in ("low", "high"))
    count, length = x.shape[:2]
    size, places = f.shape[0], node.shape[1]
    is_plain = node.attrs["step"] == (1,) and node.attrs["interior"] == (0,) and min(low, high) >= 0
    if not is_plain or not isinstance(places, int) or places < LEAST_PLACES or not isinstance(length, int):
        return None
    lines = b.reshape(x, shape=(count, length))
    if low or high:
        lines = b.pad(lines, low=(0, low), high=(0, high), value=0.0)
    seen = b.windows(lines, axes=(1,), size=(places,), step=node.attrs["dilation"], dilation=(1,))
    weights = b.broadcast(b.reshape(f, shape=(size,)), shape=(count, 1, size), axes=(2,))
    return b.reshape(b.matmul(weights, seen, lanes=False), shape=node.shape)


MAX_TERMS = 16  # terms of sums whose neighbours lie side by side, to read them together
MAX_TERMS_ALONG = 8  # ... of those whose terms do: they are taken apart first


def small_k_to_reductions(graph: Graph) -> Graph:
    """Products of a matrix with a vector of few elements, as sums over the last axis: the colours of each pixel
    weighted, the coordinates of each point.

    Where each sum has a handful of terms a kernel for products has nothing to reuse, and does more between sums than
    for them.  A fold is one more op of the loops around it, with what the factors are made of and what becomes of the
    results.  They run across many sums at once.  Products by lanes are summed in the order of a fold
    (``ops/evaluation_order.py``), so the bits are the same.
    """
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


_FEW, _MANY = 3, 32
_MOST_TERMS = 4  # of an element: those of a row are read with gaps of as many


def small_matmul_as_fma(b: GraphBuilder, node: Node) -> Node | None:
    """Many rows, or columns, times a few numbers, op by op: points that are turned, colours that are mixed.

    Kernels of products fill their vectors along the columns of the result.  Where it has three, most of a vector is
    empty, and packing rows of three takes longer than the three products of each element.  As elementwise ops they run
    along the rows, in one kernel with what comes before and after.  The order of the terms, and so the bits, are those
    of products.
    """
    x, y = node.inputs
    attrs = node.attrs
    if x.type.ndim != 2 or x.dtype not in (dt.float32, dt.float64) or attrs["sum_dtype"] != x.dtype:
        return None
    rows, columns = node.shape
    terms = x.shape[0 if attrs["transpose_a"] else 1]
    if not isinstance(terms, int) or "precision" in attrs:
        return None
    if not 2 <= terms <= _MOST_TERMS:
        return None
    if not (_small_and_large_side(columns, rows) or (_small_and_large_side(rows, columns) and not attrs["lanes"])):
        return None
    left = b.transpose(x, perm=(1, 0)) if attrs["transpose_a"] else x
    right = b.transpose(y, perm=(1, 0)) if attrs["transpose_b"] else y
    if attrs["lanes"]:
        column = b.broadcast(b.reshape(right, shape=(terms,)), shape=left.shape, axes=(1,))
        return b.reshape(b.sum(b.multiply(left, column), axes=(1,)), shape=node.shape)
    zero = total = b.full(0, node.type)
    for k in range(terms):
        factor = b.reshape(b.slice(left, start=(0, k), stop=(rows, k + 1)), shape=(rows,))
        number = b.reshape(b.slice(right, start=(k, 0), stop=(k + 1, columns)), shape=(columns,))
        sides = (b.broadcast(v, shape=node.shape, axes=(a,)) for a, v in enumerate((factor, number)))
        total = b.multiply_add(*sides, total)
    return b.add(zero, total)  # as blocks of a product are added up: a sum that rounds to -0 is +0 in the end


def _small_and_large_side(few: Extent, many: Extent) -> bool:
    return isinstance(few, int) and few <= _FEW and not (isinstance(many, int) and many < _MANY)
