"""Gradients of look-ups: a variable from which rows are taken has a gradient that is 0 but for these rows.

While a function is traced such a gradient is seen to be a sum of rows that are added to zeros; outside of functions it
is a tensor that nobody has looked at.  An optimizer that
leaves alone what has a gradient of 0 computes and writes these rows only, with the bits that it would compute for all.
"""

from __future__ import annotations

from typing import NamedTuple

from hybridflow.array.shapes import concat, reshape
from hybridflow.autodiff.sparse_gradient import traced_rows
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ir.types import product
from hybridflow.compiler.ops import TABLE
from hybridflow.compiler.ops.indexed_slices import (
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
    """``indices``, int64[n], and what belongs to the row at each: for one that comes several times the gradient of the
    row is at its last place, and 0 at the others."""

    indices: Tensor
    gradient: Tensor

    def gather(self, variable: Variable) -> Tensor:
        """The rows of a variable."""
        return apply(TABLE["take"], variable._read(), self.indices, axis=0)

    def scatter(self, variable: Variable, rows: Tensor) -> None:
        """Assign rows, of several for one place the last.  They come from ``of``, which has looked at the indices."""
        found = cast(rows, variable.dtype)
        variable.assign(apply(TABLE["scatter_set"], variable._read(), self.indices, found, axis=0, known=True))


def sparse_rows_of(gradient: Tensor | SparseGrad) -> SparseRows | None:
    """A gradient as rows, where it is known to be 0 elsewhere, and there are few."""
    sum = gradient if isinstance(gradient, SparseGrad) else traced_rows(gradient)
    if sum is None:
        return None
    length, total = sum.type.shape[0], count(sum.terms)
    if isinstance(length, int) and isinstance(total, int) and total * MAX_FEW_ROWS > length:
        return None
    given = [reshape(cast(x.indices, dtypes.int64), (product(x.indices.shape),)) for x in lookups(sum.terms)]
    indices = given[0] if len(given) == 1 else concat(given)
    # The last place at which each row comes, found through a table of all rows.
    numbers = apply(TABLE["iota"], shape=(total,), axis=0, dtype=dtypes.int32)
    table = apply(TABLE["scatter_set"], filled(0, dtypes.int32, (length,), "rows"), indices, numbers, axis=0)
    shape = total, *sum.type.shape[1:]
    places = iter([apply(TABLE["take"], table, own, axis=0) for own in given])

    def at_last_places(lookup: GatheredRows) -> GatheredRows:
        return GatheredRows(next(places), reshape(lookup.rows, (product(lookup.indices.shape), *shape[1:])))

    return SparseRows(indices, densify(builder, sum.type.with_shape(shape), replaced(at_last_places, sum.terms)))


def terms_of(gradient: Tensor | Terms) -> Terms | None:
    """The rows that a gradient is known to be the sum of."""
    if not isinstance(gradient, Tensor):
        return gradient
    sum = traced_rows(gradient)
    return None if sum is None else sum.terms
