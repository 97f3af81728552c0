"""Weighted means, ranges, and how variables vary together."""

from __future__ import annotations

from typing import Any

from hybridflow.array.elementwise import clip, conj, divide, maximum, multiply, sqrt, subtract
from hybridflow.array.linalg import diagonal, matmul, outer
from hybridflow.array.reductions import max, mean, min, sum
from hybridflow.array.shapes import concat, permute_dims
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ops import type_rules
from hybridflow.core.promotion import result_dtype
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import ArrayLike, AxisLike
from hybridflow.eager.operands import as_tensor, cast, expand, float_operand, reshape_to
from hybridflow.eager.public_op import operation
from hybridflow.errors import ShapeError


@operation
def average(
    x: ArrayLike,
    /,
    axis: AxisLike = None,
    weights: ArrayLike | None = None,
    returned: bool = False,
    keepdims: bool = False,
) -> Any:
    """Weighted mean over ``axis``; integers and bools become float32.

    Args:
        x: a tensor, array, nested list or number.
        axis: an axis, a tuple of axes, or None for all.
        weights: the weight of each element, or of each position along one axis; all the same unless given.
        returned: whether to give the sum of weights, too.
        keepdims: whether reduced axes are kept with size 1.

    Returns:
        A float tensor without the reduced axes; with ``returned`` a tuple of it and the sum of weights.

    Raises:
        AxisError: for an axis out of range.
        ShapeError: where the weights do not fit.

    >>> hf.average([1.0, 2.0, 6.0], weights=[1.0, 1.0, 2.0])
    <Tensor f32[] cpu> 3.75
    """
    x = float_operand(x, "average")
    axes = type_rules.axes("average", x.type, axis)
    if weights is None:
        weights = as_tensor(1, "average", x.dtype)
        weights = expand(weights, x.shape)
    else:
        weights = as_tensor(weights, "average")
        if weights.shape != x.shape:
            if len(axes) != 1 or axis is None or weights.ndim != 1 or weights.shape[0] != x.shape[axes[0]]:
                raise ShapeError(
                    "average", f"weights are {weights.type}, and x is {x.type}; say which axis they weigh."
                )
            weights = reshape_to(weights, tuple(n if k == axes[0] else 1 for k, n in enumerate(x.shape)))
            weights = expand(weights, x.shape)
    dtype = result_dtype("average", (x, weights))
    total = sum(cast(weights, dtype), axis, keepdims=keepdims)
    result = divide(sum(multiply(cast(x, dtype), cast(weights, dtype)), axis, keepdims=keepdims), total)
    return (result, total) if returned else result


@operation
def ptp(x: ArrayLike, /, axis: AxisLike = None, keepdims: bool = False) -> Tensor:
    """Peak to peak: the largest element less the smallest one, over ``axis``.

    Args:
        x: a tensor, array, nested list or number.
        axis: an axis, a tuple of axes, or None for all.
        keepdims: whether reduced axes are kept with size 1.

    Returns:
        A tensor in the dtype of ``x`` without the axes that were reduced.

    Raises:
        AxisError: for an axis out of range.
        ShapeError: if there are no elements to choose from.

    >>> hf.ptp([[1, 5], [2, 9]], axis=1)
    <Tensor i64[2] cpu> [4 7]
    """
    return subtract(max(x, axis, keepdims), min(x, axis, keepdims))


@operation
def cov(
    x: ArrayLike, /, y: ArrayLike | None = None, rowvar: bool = True, bias: bool = False, ddof: int | None = None
) -> Tensor:
    """Covariance matrix of variables, of which each row has the observations of one.

    Args:
        x: a matrix, or a vector for one variable; integers and bools become float32.
        y: further variables, in the same form.
        rowvar: whether the rows are variables, and not the columns.
        bias: whether to divide by the number of observations, and not by one less.
        ddof: what is taken from the number of observations instead.

    Returns:
        A float tensor with a row and a column for each variable; a scalar for one.

    Raises:
        ShapeError: for more than two axes.

    >>> hf.cov([[1.0, 2.0, 3.0], [2.0, 4.0, 7.0]])
    <Tensor f32[2,2] cpu>
    [[1.        2.5      ]
     [2.5       6.3333335]]
    """
    rows = _variables("cov", x, rowvar)
    if y is not None:
        rows = concat([rows, _variables("cov", y, rowvar)])
    centred = subtract(rows, mean(rows, axis=1, keepdims=True))
    freedom = rows.shape[1] - ((0 if bias else 1) if ddof is None else ddof)
    divisor: Any = freedom if isinstance(freedom, int) and freedom > 0 else maximum(freedom, 0)
    result = divide(matmul(centred, conj(permute_dims(centred, (1, 0)))), divisor)
    return reshape_to(result, ()) if result.shape == (1, 1) else result


def _variables(stage: str, x: ArrayLike, rowvar: bool) -> Tensor:
    x = float_operand(x, stage)
    if x.ndim > 2:
        raise ShapeError(stage, f"{x.type} has more than 2 axes.")
    x = x if x.ndim == 2 else reshape_to(x, (1, x.size))
    return x if rowvar or x.shape[0] == 1 else permute_dims(x, (1, 0))


@operation
def corrcoef(x: ArrayLike, /, y: ArrayLike | None = None, rowvar: bool = True) -> Tensor:
    """Correlation coefficients of variables, of which each row has the observations of one.

    Args:
        x: a matrix, or a vector for one variable; integers and bools become float32.
        y: further variables, in the same form.
        rowvar: whether the rows are variables, and not the columns.

    Returns:
        A float tensor with a row and a column for each variable; a scalar for one.

    Raises:
        ShapeError: for more than two axes.

    >>> hf.corrcoef([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0]])
    <Tensor f32[2,2] cpu>
    [[1. 1.]
     [1. 1.]]
    """
    both = cov(x, y, rowvar)
    if both.ndim == 0:
        return divide(both, both)
    type_rules.check_dtype("corrcoef", both.type, frozenset(dtypes.FLOATS))
    scale = sqrt(diagonal(both))
    return clip(divide(both, outer(scale, scale)), -1, 1)
