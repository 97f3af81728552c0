"""Reductions and running totals that leave NaN out, with NumPy's names.  Integers and bools have none to leave out."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from hybridflow.array.elementwise import abs, divide, isnan, less_equal, logical_not, real, square, subtract, where
from hybridflow.array.reductions import (
    all,
    any,
    argmax,
    argmin,
    count_nonzero,
    cumulative_prod,
    cumulative_sum,
    max,
    min,
    prod,
    root,
    sum,
)
from hybridflow.array.shapes import squeeze
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ir.types import product
from hybridflow.compiler.ops import type_rules
from hybridflow.core.context import now
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import ArrayLike, AxisLike, DTypeLike
from hybridflow.eager.operands import as_tensor, cast, float_operand, reshape_to
from hybridflow.eager.public_op import operation
from hybridflow.errors import ArgumentError, entered


def _without_nan(x: ArrayLike, stage: str, value: float) -> Tensor:
    """``x`` with ``value`` in place of NaN."""
    x = as_tensor(x, stage)
    return x if dtypes.is_integer(x.dtype) or dtypes.is_bool(x.dtype) else where(isnan(x), value, x)


@operation
def nansum(x: ArrayLike, /, axis: AxisLike = None, dtype: DTypeLike | None = None, keepdims: bool = False) -> Tensor:
    """Sum of the elements that are not NaN, over ``axis``; 0 where there are none.

    Args:
        x: a tensor, array, nested list or number.
        axis: an axis, a tuple of axes, or None for all.
        dtype: the dtype of the result. By default that of ``x``, int64 or uint64 for bools and integers.
        keepdims: whether reduced axes are kept with size 1.

    Returns:
        A tensor without the reduced axes.

    Raises:
        AxisError: for an axis out of range.

    >>> hf.nansum([[1.0, hf.nan], [3.0, 4.0]], axis=0)
    <Tensor f32[2] cpu> [4. 4.]
    """
    return sum(_without_nan(x, "nansum", 0.0), axis, dtype, keepdims)


@operation
def nanprod(x: ArrayLike, /, axis: AxisLike = None, dtype: DTypeLike | None = None, keepdims: bool = False) -> Tensor:
    """Product of the elements that are not NaN, over ``axis``; 1 where there are none.

    Args:
        x: a tensor, array, nested list or number.
        axis: an axis, a tuple of axes, or None for all.
        dtype: the dtype of the result. By default that of ``x``, int64 or uint64 for bools and integers.
        keepdims: whether reduced axes are kept with size 1.

    Returns:
        A tensor without the reduced axes.

    Raises:
        AxisError: for an axis out of range.

    >>> hf.nanprod([[2.0, hf.nan], [3.0, 4.0]], axis=0)
    <Tensor f32[2] cpu> [6. 4.]
    """
    return prod(_without_nan(x, "nanprod", 1.0), axis, dtype, keepdims)


@operation
def nanmean(x: ArrayLike, /, axis: AxisLike = None, keepdims: bool = False) -> Tensor:
    """Mean of the elements that are not NaN, over ``axis``; NaN where there are none.

    Args:
        x: a tensor, array, nested list or number.
        axis: an axis, a tuple of axes, or None for all.
        keepdims: whether reduced axes are kept with size 1.

    Returns:
        A float tensor without the reduced axes.

    Raises:
        AxisError: for an axis out of range.

    >>> hf.nanmean([[1.0, hf.nan], [3.0, 4.0]], axis=0)
    <Tensor f32[2] cpu> [2. 4.]
    """
    x = float_operand(x, "nanmean")
    _missing, there, count = _counted(x, axis, keepdims)
    return cast(divide(sum(there, axis, keepdims=keepdims), count), x.dtype)


def _counted(x: Tensor, axis: AxisLike, keepdims: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Where ``x`` is NaN, ``x`` with 0 there in the dtype of its sums, and how many are not."""
    wide = cast(x, dtypes.compute_dtype(x.dtype))
    missing = isnan(wide)
    count = cast(count_nonzero(logical_not(missing), axis, keepdims), wide.dtype)
    return missing, where(missing, 0.0, wide), count


@operation
def nanvar(x: ArrayLike, /, axis: AxisLike = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """Variance of the elements that are not NaN, over ``axis``; NaN where there are no more than ``correction``.

    Args:
        x: a tensor, array, nested list or number.
        axis: an axis, a tuple of axes, or None for all.
        correction: subtracted from the number of elements in the divisor; 1 for the sample estimate.
        keepdims: whether reduced axes are kept with size 1.

    Returns:
        A float tensor without the reduced axes.

    Raises:
        AxisError: for an axis out of range.

    >>> hf.nanvar([1.0, hf.nan, 3.0])
    <Tensor f32[] cpu> 1.0
    """
    x = float_operand(x, "nanvar")
    missing, there, count = _counted(x, axis, True)
    centred = where(missing, 0.0, subtract(there, divide(sum(there, axis, keepdims=True), count)))
    freedom = subtract(real(count), float(correction))
    total = sum(square(abs(centred) if dtypes.is_complex(x.dtype) else centred), axis, keepdims=True)
    result = cast(where(less_equal(freedom, 0), math.nan, divide(total, freedom)), abs(x).dtype)
    return result if keepdims else squeeze(result, type_rules.axes("nanvar", x.type, axis))


@operation
def nanstd(x: ArrayLike, /, axis: AxisLike = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """Standard deviation of the elements that are not NaN: the square root of ``nanvar``.

    Args:
        x: a tensor, array, nested list or number.
        axis: an axis, a tuple of axes, or None for all.
        correction: subtracted from the number of elements in the divisor; 1 for the sample estimate.
        keepdims: whether reduced axes are kept with size 1.

    Returns:
        A float tensor without the reduced axes.

    Raises:
        AxisError: for an axis out of range.

    >>> hf.nanstd([1.0, hf.nan, 3.0])
    <Tensor f32[] cpu> 1.0
    """
    x = float_operand(x, "nanstd")
    return cast(root(nanvar(cast(x, dtypes.compute_dtype(x.dtype)), axis, correction, keepdims)), abs(x).dtype)


@operation
def nanmax(x: ArrayLike, /, axis: AxisLike = None, keepdims: bool = False) -> Tensor:
    """Largest of the elements that are not NaN, over ``axis``; NaN where there are none.

    Args:
        x: a tensor, array, nested list or number.
        axis: an axis, a tuple of axes, or None for all.
        keepdims: whether reduced axes are kept with size 1.

    Returns:
        A tensor in the dtype of ``x`` without the axes that were reduced.

    Raises:
        AxisError: for an axis out of range.
        ShapeError: if there are no elements to choose from.

    >>> hf.nanmax([[1.0, hf.nan], [3.0, 4.0]], axis=1)
    <Tensor f32[2] cpu> [1. 4.]
    """
    return _extreme(max, as_tensor(x, "nanmax"), -math.inf, axis, keepdims)


@operation
def nanmin(x: ArrayLike, /, axis: AxisLike = None, keepdims: bool = False) -> Tensor:
    """Smallest of the elements that are not NaN, over ``axis``; NaN where there are none.

    Args:
        x: a tensor, array, nested list or number.
        axis: an axis, a tuple of axes, or None for all.
        keepdims: whether reduced axes are kept with size 1.

    Returns:
        A tensor in the dtype of ``x`` without the axes that were reduced.

    Raises:
        AxisError: for an axis out of range.
        ShapeError: if there are no elements to choose from.

    >>> hf.nanmin([[1.0, hf.nan], [3.0, 4.0]], axis=1)
    <Tensor f32[2] cpu> [1. 3.]
    """
    return _extreme(min, as_tensor(x, "nanmin"), math.inf, axis, keepdims)


def _extreme(reduce: Callable[..., Any], x: Tensor, least: float, axis: AxisLike, keepdims: bool) -> Tensor:
    if not dtypes.is_float(dtypes.wide_dtype(x.dtype)):
        return reduce(x, axis, keepdims)
    missing = isnan(x)
    result = reduce(where(missing, least, x), axis, keepdims)
    return where(all(missing, axis, keepdims), math.nan, result)


@entered
def nanargmax(x: ArrayLike, /, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Position of the largest element that is not NaN.

    Compiled functions give -1 where all elements are NaN.

    Args:
        x: a tensor, array, nested list or number.
        axis: an axis, or None for positions in the flattened tensor.
        keepdims: whether reduced axes are kept with size 1.

    Returns:
        An int64 tensor without the axis.

    Raises:
        AxisError: for an axis out of range.
        ArgumentError: where all elements are NaN.
        ShapeError: if there are no elements to choose from.

    >>> hf.nanargmax([[hf.nan, 5.0, 2.0], [7.0, hf.nan, 3.0]], axis=1)
    <Tensor i64[2] cpu> [1 0]
    """
    return _position("nanargmax", argmax, -math.inf, x, axis, keepdims)


@entered
def nanargmin(x: ArrayLike, /, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Position of the smallest element that is not NaN.

    Compiled functions give -1 where all elements are NaN.

    Args:
        x: a tensor, array, nested list or number.
        axis: an axis, or None for positions in the flattened tensor.
        keepdims: whether reduced axes are kept with size 1.

    Returns:
        An int64 tensor without the axis.

    Raises:
        AxisError: for an axis out of range.
        ArgumentError: where all elements are NaN.
        ShapeError: if there are no elements to choose from.

    >>> hf.nanargmin([[hf.nan, 5.0, 2.0], [7.0, hf.nan, 3.0]], axis=1)
    <Tensor i64[2] cpu> [2 2]
    """
    return _position("nanargmin", argmin, math.inf, x, axis, keepdims)


def _position(
    stage: str, find: Callable[..., Any], least: float, x: ArrayLike, axis: int | None, keepdims: bool
) -> Tensor:
    x = as_tensor(x, stage)
    if not dtypes.is_float(dtypes.wide_dtype(x.dtype)):
        return find(x, axis, keepdims)
    result = _position_or_none(x, find is argmax, least, axis, keepdims)
    if now().trace is None and bool(any(result < 0)):
        raise ArgumentError(stage, f"all elements of {x.type}, or of a part of it along axis {axis}, are NaN.")
    return result


@operation
def _position_or_none(x: Tensor, largest: bool, least: float, axis: int | None, keepdims: bool) -> Tensor:
    missing = isnan(x)
    position = (argmax if largest else argmin)(where(missing, least, x), axis, keepdims)
    return where(all(missing, axis, keepdims), -1, position)


def _along(x: Tensor, axis: int | None) -> tuple[Tensor, int]:
    return (reshape_to(x, (product(x.shape),)), 0) if axis is None else (x, axis)


@operation
def nancumsum(x: ArrayLike, /, axis: int | None = None, dtype: DTypeLike | None = None) -> Tensor:
    """Running sum along ``axis`` in which NaN counts as 0.

    Args:
        x: a tensor, array, nested list or number.
        axis: the axis; None for the flattened tensor.
        dtype: the dtype of the result. By default that of ``x``, int64 or uint64 for bools and integers.

    Returns:
        A tensor of the shape of ``x``, of one axis where none is named.

    Raises:
        AxisError: for an axis out of range.

    >>> hf.nancumsum([1.0, hf.nan, 3.0])
    <Tensor f32[3] cpu> [1. 1. 4.]
    """
    return cumulative_sum(*_along(_without_nan(x, "nancumsum", 0.0), axis), dtype)


@operation
def nancumprod(x: ArrayLike, /, axis: int | None = None, dtype: DTypeLike | None = None) -> Tensor:
    """Running product along ``axis`` in which NaN counts as 1.

    Args:
        x: a tensor, array, nested list or number.
        axis: the axis; None for the flattened tensor.
        dtype: the dtype of the result. By default that of ``x``, int64 or uint64 for bools and integers.

    Returns:
        A tensor of the shape of ``x``, of one axis where none is named.

    Raises:
        AxisError: for an axis out of range.

    >>> hf.nancumprod([2.0, hf.nan, 3.0])
    <Tensor f32[3] cpu> [2. 2. 6.]
    """
    return cumulative_prod(*_along(_without_nan(x, "nancumprod", 1.0), axis), dtype)
