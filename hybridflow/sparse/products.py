"""Products with sparse matrices that are given as their parts."""

from __future__ import annotations

from typing import Any

from hybridflow.array.creation import arange
from hybridflow.array.indexing import getitem, scatter_add, take
from hybridflow.array.sorting import argsort, searchsorted
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ir.extents import Extent
from hybridflow.compiler.ops import TABLE
from hybridflow.core.tensor import Tensor
from hybridflow.eager.dispatch import apply
from hybridflow.eager.operands import cast, expand, filled, reshape_to

_FEW = 8  # columns of a product, of fewer of which unsorted entries are added up as they come


def csr_product(indptr: Tensor, columns: Tensor, values: Tensor, x: Tensor) -> Tensor:
    """The product of a matrix in rows and a dense one, each row of which is a loop over its entries."""
    starts, ends = getitem(indptr, slice(None, -1)), getitem(indptr, slice(1, None))
    result: Tensor = apply(TABLE["csr_matmul"], x, values, columns, starts, ends)
    return result


def coo_product(rows: Tensor, columns: Tensor, values: Tensor, count: Extent, x: Tensor) -> Tensor:
    """The product of entries in any order and a dense matrix or vector: those of a row add up in their order."""
    if x.ndim == 1 or (isinstance(x.shape[1], int) and x.shape[1] < _FEW):
        terms = take(_wide(x), columns, axis=0)
        return cast(summed(terms * expand_values(_wide(values), terms), rows, count), x.dtype)
    order, indptr = in_rows(rows, count)
    return csr_product(indptr, take(columns, order, axis=0), take(values, order, axis=0), x)


def summed(terms: Tensor, rows: Tensor, count: Extent) -> Tensor:
    """The sums of terms, one for each row, in their order and the dtype of sums."""
    wide = _wide(terms)
    return cast(scatter_add(filled(0, wide.dtype, (count, *terms.shape[1:]), "sparse"), rows, wide), terms.dtype)


def _wide(x: Tensor) -> Tensor:
    return cast(x, dtypes.compute_dtype(x.dtype))


def expand_values(values: Tensor, like: Tensor) -> Tensor:
    """A number for each entry beside what is looked up for it."""
    return expand(reshape_to(values, (*values.shape, *[1] * (like.ndim - 1))), like.shape)


def in_rows(rows: Tensor, count: Extent) -> tuple[Tensor, Tensor]:
    """The order that puts entries into rows, and where the rows begin and end then."""
    order = argsort(rows)
    places = arange(count + 1, dtype=rows.dtype)
    return order, cast(searchsorted(take(rows, order, axis=0), places), rows.dtype)


def dots(x: Tensor, rows: Tensor, y: Tensor, columns: Tensor) -> Tensor:
    """The products of rows of two matrices, one for each pair of numbers."""
    left, right = take(x, rows, axis=0), take(y, columns, axis=0)
    result: Any = apply(TABLE["vecdot"], left, right, axes=(1,), sum_dtype=x.dtype)
    return result
