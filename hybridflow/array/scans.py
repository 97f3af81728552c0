"""Running extremes and running log-sum-exp along an axis."""

from __future__ import annotations

from hybridflow.compiler.ops import TABLE, type_rules
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import ArrayLike
from hybridflow.eager.dispatch import apply
from hybridflow.eager.operands import as_tensor, float_operand
from hybridflow.eager.public_op import operation
from hybridflow.errors import ArgumentError


def _along(op: str, x: Tensor, axis: int | None, stage: str) -> Tensor:
    if axis is None:
        if x.ndim != 1:
            raise ArgumentError(stage, f"axis must be given for {x.type}.")
        axis = 0
    return apply(TABLE[op], x, axis=type_rules.axis(stage, x.type, axis))


@operation
def cummax(x: ArrayLike, /, axis: int | None = None) -> Tensor:
    """Running maximum along ``axis``; NaN from the first NaN on.

    The derivative goes to the last element that equals the maximum so far.

    Args:
        x: a tensor, array, nested list or number.
        axis: the axis; optional for a one-dimensional tensor.

    Returns:
        A tensor of the shape and dtype of ``x``.

    Raises:
        AxisError: for an axis out of range.
        ArgumentError: for several axes where none is named.

    >>> hf.cummax([1, 3, 2, 5])
    <Tensor i64[4] cpu> [1 3 3 5]
    """
    return _along("cumulative_max", as_tensor(x, "cummax"), axis, "cummax")


@operation
def cummin(x: ArrayLike, /, axis: int | None = None) -> Tensor:
    """Running minimum along ``axis``; NaN from the first NaN on.

    The derivative goes to the last element that equals the minimum so far.

    Args:
        x: a tensor, array, nested list or number.
        axis: the axis; optional for a one-dimensional tensor.

    Returns:
        A tensor of the shape and dtype of ``x``.

    Raises:
        AxisError: for an axis out of range.
        ArgumentError: for several axes where none is named.

    >>> hf.cummin([4, 3, 5, 1])
    <Tensor i64[4] cpu> [4 3 3 1]
    """
    return _along("cumulative_min", as_tensor(x, "cummin"), axis, "cummin")


@operation
def cumlogsumexp(x: ArrayLike, /, axis: int | None = None) -> Tensor:
    """Running log-sum-exp along ``axis``: the logarithm of the running sum of exponentials, without overflow.

    Args:
        x: a tensor, array, nested list or number.
        axis: the axis; optional for a one-dimensional tensor.

    Returns:
        A tensor of the shape of ``x``, in its dtype if that is a float, else in float32.

    Raises:
        AxisError: for an axis out of range.
        ArgumentError: for several axes where none is named.

    >>> hf.cumlogsumexp([0.0, 0.0, 1000.0])
    <Tensor f32[3] cpu> [0.000000e+00 6.931472e-01 1.000000e+03]
    """
    return _along("cumulative_logsumexp", float_operand(x, "cumlogsumexp"), axis, "cumlogsumexp")
