"""Sorting and selection by order.  NaN comes last, in either direction; equal elements keep their order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hybridflow.compiler.ir.types import product
from hybridflow.compiler.ops import TABLE, type_rules
from hybridflow.core.promotion import default_int
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import ArrayLike
from hybridflow.eager.dispatch import apply
from hybridflow.eager.operands import as_tensor, cast, common_dtype, reshape_to
from hybridflow.eager.public_op import operation
from hybridflow.errors import ArgumentError, DTypeError, ShapeError


@operation
def argsort(x: ArrayLike, /, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The positions, as int64, that sort ``x`` along ``axis``.  The sort is stable whatever ``stable`` says.

    Args:
        x: a tensor, array, nested list or number.
        axis: an axis; negative ones count from the end.
        descending: whether the largest comes first.
        stable: has no effect: equal elements keep their order.

    Returns:
        An int64 tensor of the shape of ``x``.

    Raises:
        AxisError: for an axis out of range.

    >>> hf.argsort([3.0, 1.0, 2.0])
    <Tensor i64[3] cpu> [1 2 0]
    """
    x = as_tensor(x, "argsort")
    return apply(TABLE["argsort"], x, axis=type_rules.axis("argsort", x.type, axis), descending=bool(descending))


@operation
def sort(x: ArrayLike, /, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """Sort: ``x`` sorted along ``axis``.

    Args:
        x: a tensor, array, nested list or number.
        axis: an axis; negative ones count from the end.
        descending: whether the largest comes first.
        stable: has no effect: equal elements keep their order.

    Returns:
        A tensor of the shape and dtype of ``x``.

    Raises:
        AxisError: for an axis out of range.

    >>> hf.sort([3, 1, 2], descending=True)
    <Tensor i64[3] cpu> [3 2 1]
    """
    x = as_tensor(x, "sort")
    return apply(TABLE["sort"], x, axis=type_rules.axis("sort", x.type, axis), descending=bool(descending))


@operation
def top_k(x: ArrayLike, k: int) -> tuple[Tensor, Tensor]:
    """The ``k`` largest elements along the last axis in descending order, and their positions as int64.

    Of equal elements the first comes first.  Raises ArgumentError when the axis has fewer than ``k`` elements.

    Args:
        x: a tensor, array, nested list or number.
        k: how many.

    Returns:
        Two tensors with ``k`` elements along the last axis: values in the dtype of ``x``, positions as int64.

    >>> hf.top_k([1, 7, 3], 2)
    (<Tensor i64[2] cpu> [7 3], <Tensor i64[2] cpu> [1 2])
    """
    x = as_tensor(x, "top_k")
    axis = type_rules.axis("top_k", x.type, -1)
    extent = x.shape[axis]
    count = type_rules.whole("top_k", "k", k)
    if not 0 <= count <= extent:
        raise ArgumentError("top_k", f"k = {count} must lie in [0, {extent}] for {x.type}.")
    positions = apply(TABLE["first_positions"], x, axis=axis, descending=True, count=count)
    return apply(TABLE["take_along_axis"], x, positions, axis=axis), positions


@operation
def partition(x: ArrayLike, kth: object, /, axis: int | None = -1) -> Tensor:
    """Partition: the element ``kth`` stands where a sort would put it, with no larger one before, no smaller behind.

    Here all elements are sorted, which is such an order.

    Args:
        x: a tensor, array, nested list or number.
        kth: a position along ``axis``, or several; negative ones count from the end.
        axis: an axis, or None for the flattened tensor.

    Returns:
        A tensor in the dtype of ``x``.

    Raises:
        AxisError: for an axis out of range.
        ArgumentError: for a position out of range.

    >>> hf.partition([3, 1, 2], 1)
    <Tensor i64[3] cpu> [1 2 3]
    """
    x, along = _partitioned("partition", x, kth, axis)
    return sort(x, along)


@operation
def argpartition(x: ArrayLike, kth: object, /, axis: int | None = -1) -> Tensor:
    """Positions that partition: with no larger element before the position ``kth`` and no smaller one behind it.

    Here they sort all elements.

    Args:
        x: a tensor, array, nested list or number.
        kth: a position along ``axis``, or several; negative ones count from the end.
        axis: an axis, or None for the flattened tensor.

    Returns:
        An int64 tensor.

    Raises:
        AxisError: for an axis out of range.
        ArgumentError: for a position out of range.

    >>> hf.argpartition([3, 1, 2], 1)
    <Tensor i64[3] cpu> [1 2 0]
    """
    x, along = _partitioned("argpartition", x, kth, axis)
    return argsort(x, along)


def _partitioned(stage: str, x: ArrayLike, kth: object, axis: int | None) -> tuple[Tensor, int]:
    x = as_tensor(x, stage)
    if axis is None:
        x, axis = reshape_to(x, (product(x.shape),)), 0
    axis = type_rules.axis(stage, x.type, axis)
    for place in kth if isinstance(kth, (list, tuple)) else [kth]:
        k, extent = type_rules.integer(stage, "kth", place), x.shape[axis]
        if not -extent <= k < extent:
            raise ArgumentError(stage, f"kth is {k}, and there are {extent} elements along axis {axis} of {x.type}.")
    return x, axis


@operation
def lexsort(keys: Iterable[Any], /, axis: int = -1) -> Tensor:
    """Positions that sort by several keys, of which the last one counts first.

    Args:
        keys: a sequence of tensors of one shape, or a tensor whose first axis counts them.
        axis: the axis of a key to sort along; negative ones count from the end.

    Returns:
        An int64 tensor of the shape of a key.

    Raises:
        AxisError: for an axis out of range.
        ArgumentError: without keys.
        ShapeError: where the keys have other shapes.

    >>> hf.lexsort(([9, 4, 0], [1, 5, 1]))
    <Tensor i64[3] cpu> [2 0 1]
    """
    parts = [as_tensor(key, "lexsort") for key in keys]
    if not parts:
        raise ArgumentError("lexsort", "there are no keys.")
    if any(key.shape != parts[0].shape for key in parts):
        raise ShapeError("lexsort", f"the keys are {', '.join(str(key.type) for key in parts)}. Expected one shape.")
    along = type_rules.axis("lexsort", parts[0].type, axis)
    order = argsort(parts[0], along)
    for key in parts[1:]:
        again = argsort(apply(TABLE["take_along_axis"], key, order, axis=along), along)
        order = apply(TABLE["take_along_axis"], order, again, axis=along)
    return order


@operation
def searchsorted(x1: Any, x2: Any, /, *, side: str = "left", sorter: ArrayLike | None = None) -> Tensor:
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
