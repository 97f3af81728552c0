"""Positions in sorted values."""

from __future__ import annotations

from typing import Any

from hybridflow.array.elementwise import greater_equal, less
from hybridflow.array.reductions import cumulative_sum
from hybridflow.array.shapes import reshape, slice_axis
from hybridflow.array.sorting import argsort
from hybridflow.compiler.ops import TABLE
from hybridflow.core.promotion import default_int
from hybridflow.core.tensor import Tensor
from hybridflow.eager.dispatch import apply
from hybridflow.eager.operands import as_tensor, cast, common_dtype, filled
from hybridflow.eager.operations import operation
from hybridflow.errors import ArgumentError, DTypeError, ShapeError


@operation
def searchsorted(x1: Any, x2: Any, /, *, side: str = "left", sorter: Any = None) -> Tensor:
    """Where each element of ``x2`` is to be inserted into ``x1``, which is one-dimensional and ascending and stays so:
    int64 in the shape of ``x2``.  Among equal elements that is before the first ("left") or behind the last ("right").

    ``sorter`` are the positions that sort ``x1`` where it is not sorted.  NaN comes last.

    Raises ShapeError where ``x1`` is not one-dimensional, ArgumentError for another ``side``.

    >>> hf.searchsorted(hf.asarray([1.0, 2.0, 4.0]), hf.asarray([2.0, 3.0])).tolist()
    [1, 2]
    """
    if side not in ("left", "right"):
        raise ArgumentError("searchsorted", f"side is {side!r}; it must be 'left' or 'right'.")
    x1, x2 = common_dtype("searchsorted", (x1, x2))
    if x1.ndim != 1:
        raise ShapeError("searchsorted", f"what is searched is {x1.type}; it must be one-dimensional.")
    if sorter is not None:
        positions = as_tensor(sorter, "searchsorted")
        if positions.dtype.kind not in "iu":
            raise DTypeError("searchsorted", f"the sorter is {positions.type}; it must hold integers.")
        x1 = apply(TABLE["take"], x1, cast(positions, default_int), axis=0)
    count, wanted = x1.shape[0], x2.size
    flat = reshape(x2, (wanted,))
    # Sorted together: the sort is stable, so that of equal elements those that are given first come first.
    before = side == "left"
    together = apply(TABLE["concat"], *((flat, x1) if before else (x1, flat)), axis=0)
    order = argsort(together)
    is_old = greater_equal(order, wanted) if before else less(order, count)
    passed = cumulative_sum(cast(is_old, default_int))  # elements of x1 up to each place
    nowhere = filled(0, default_int, together.shape, "searchsorted")
    found = apply(TABLE["scatter_add"], nowhere, order, passed, axis=0)
    start = 0 if before else count
    return reshape(slice_axis(found, 0, start, start + wanted), x2.shape)
