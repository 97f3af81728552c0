"""Many rows, or columns, times a few numbers, op by op: points that are turned, colours that are mixed.

Kernels of products fill their vectors along the columns of the result.  Where it has three, most of a vector is empty,
and packing rows of three takes longer than the three products of each element.  As elementwise ops they run along the
rows, in one kernel with what comes before and after.  The order of the terms, and so the bits, are those of products.
"""

from __future__ import annotations

from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.graph import Node
from hybridflow.compiler.ir.types import Extent

_FEW, _MANY = 3, 32
_MOST_TERMS = 4  # of an element: those of a row are read with gaps of as many


def small_matmul_as_fma(b: GraphBuilder, node: Node) -> Node | None:
    """The value of a ``matmul`` of that kind."""
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
