"""Sorting and selection by order.  NaN comes last, in either direction; equal elements keep their order."""

from __future__ import annotations

from hybridflow.compiler.ops import TABLE, type_rules
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import ArrayLike
from hybridflow.eager.dispatch import apply
from hybridflow.eager.operands import as_tensor
from hybridflow.eager.public_op import operation
from hybridflow.errors import ArgumentError


@operation
def argsort(x: ArrayLike, /, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The positions, as int64, that sort ``x`` along ``axis``.  The sort is stable whatever ``stable`` says.

    Args:
        x: a tensor, or what becomes one: an array, a nested list or a number.
        axis: an axis; negative ones count from the end.
        descending: whether the largest comes first.
        stable: has no effect: equal elements keep their order.

    Returns:
        An int64 tensor of the shape of ``x``.

    Raises:
        AxisError: for an axis that is not there.

    >>> hf.argsort([3.0, 1.0, 2.0])
    <Tensor i64[3] cpu> [1 2 0]
    """
    x = as_tensor(x, "argsort")
    return apply(TABLE["argsort"], x, axis=type_rules.axis("argsort", x.type, axis), descending=bool(descending))


@operation
def sort(x: ArrayLike, /, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """Sort: ``x`` sorted along ``axis``.

    Args:
        x: a tensor, or what becomes one: an array, a nested list or a number.
        axis: an axis; negative ones count from the end.
        descending: whether the largest comes first.
        stable: has no effect: equal elements keep their order.

    Returns:
        A tensor of the shape and dtype of ``x``.

    Raises:
        AxisError: for an axis that is not there.

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
        x: a tensor, or what becomes one: an array, a nested list or a number.
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
