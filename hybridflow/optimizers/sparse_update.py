"""Sparse updates: an optimizer that leaves elements with a gradient of 0 alone updates only the rows looked up.

The bits are those of an update of all rows.  See ``compiler/ops/sparse_grad.py`` and ``autodiff/sparse_gradient.py``
for where such gradients come from.
"""

from __future__ import annotations

from typing import NamedTuple

from hybridflow.array.shapes import concat, reshape
from hybridflow.autodiff.sparse_gradient import traced_rows
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ir.types import product
from hybridflow.compiler.ops import TABLE
from hybridflow.compiler.ops.sparse_grad import (
    MAX_FEW_ROWS,
    GatheredRows,
    SparseGrad,
    Terms,
    count,
    densify,
    lookups,
    replaced,
)
from hybridflow.core.tensor import Tensor
from hybridflow.core.variable import Variable
from hybridflow.eager.dispatch import apply, builder
from hybridflow.eager.operands import cast, filled


class SparseRows(NamedTuple):
    """``indices``, int64[n], with the gradient of the row at each.  An index that comes several times has the whole
    gradient at its last occurrence, and 0 at the others."""

    indices: Tensor
    gradient: Tensor

    def gather(self, variable: Variable) -> Tensor:
        """The rows of a variable."""
        return apply(TABLE["take"], variable._read(), self.indices, axis=0)

    def scatter(self, variable: Variable, rows: Tensor) -> None:
        """Assign rows; of several for one index the last stays.  ``sparse_rows_of`` has checked the indices."""
        rows = cast(rows, variable.dtype)
        variable.assign(apply(TABLE["scatter_set"], variable._read(), self.indices, rows, axis=0, known=True))


def sparse_rows_of(gradient: Tensor | SparseGrad) -> SparseRows | None:
    """A sparse gradient with each row's sum, where updating rows pays; else None."""
    sum = gradient if isinstance(gradient, SparseGrad) else traced_rows(gradient)
    if sum is None:
        return None
    length, total = sum.type.shape[0], count(sum.terms)
    if isinstance(length, int) and isinstance(total, int) and total * MAX_FEW_ROWS > length:
        return None
    index_parts = [reshape(cast(x.indices, dtypes.int64), (product(x.indices.shape),)) for x in lookups(sum.terms)]
    indices = index_parts[0] if len(index_parts) == 1 else concat(index_parts)
    # The last place at which each row comes, found through a table of all rows.
    numbers = apply(TABLE["iota"], shape=(total,), axis=0, dtype=dtypes.int32)
    table = apply(TABLE["scatter_set"], filled(0, dtypes.int32, (length,), "rows"), indices, numbers, axis=0)
    shape = total, *sum.type.shape[1:]
    places = iter([apply(TABLE["take"], table, part, axis=0) for part in index_parts])

    def at_last_places(lookup: GatheredRows) -> GatheredRows:
        return GatheredRows(next(places), reshape(lookup.rows, (product(lookup.indices.shape), *shape[1:])))

    return SparseRows(indices, densify(builder, sum.type.with_shape(shape), replaced(at_last_places, sum.terms)))


def terms_of(gradient: Tensor | Terms) -> Terms | None:
    """The rows of a gradient that is known to be sparse; else None."""
    if not isinstance(gradient, Tensor):
        return gradient
    sum = traced_rows(gradient)
    return None if sum is None else sum.terms
