"""Positions in sorted values."""

from __future__ import annotations

from typing import Any

from hybridflow.compiler.ops import TABLE
from hybridflow.core.promotion import default_int
from hybridflow.core.tensor import Tensor
from hybridflow.eager.dispatch import apply
from hybridflow.eager.operands import as_tensor, cast, common_dtype
from hybridflow.eager.public_op import operation
from hybridflow.errors import ArgumentError, DTypeError, ShapeError


@operation
def searchsorted(x1: Any, x2: Any, /, *, side: str = "left", sorter: Any = None) -> Tensor:
    """Binary search for places of insertion.

    Where each element of ``x2`` is to be inserted into ``x1``, which is one-dimensional and ascending and stays so:
    int64 in the shape of ``x2``.  Among equal elements that is before the first ("left") or behind the last ("right").

    ``sorter`` are the positions that sort ``x1`` where it is not sorted.  NaN comes last.

    Raises ShapeError where ``x1`` is not one-dimensional, ArgumentError for another ``side``.

    Args:
        x1: sorted elements, of one axis.
        x2: what has to be put in.
        side: "left" or "right" of equal elements.
        sorter: positions that sort ``x1``.

    Returns:
        An int64 tensor of the shape of ``x2``.

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
    return apply(TABLE["search"], x1, x2, right=side == "right")
