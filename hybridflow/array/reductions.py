"""Reductions: ``axis`` is None (all axes), an int or several; ``keepdims`` leaves reduced axes with extent 1.

The order in which floats are summed depends on shape and axes alone, so results have the same bits everywhere.
Errors: ShapeError for axes out of range or given twice, and for an extreme over no elements.
"""

from __future__ import annotations

__traits__ = ("makes tensors",)

import builtins
from typing import TYPE_CHECKING, Any

import numpy as np

from hybridflow.array.elementwise import (
    add,
    divide,
    exp,
    isfinite,
    log,
    multiply,
    not_equal,
    sqrt,
    square,
    stop_gradient,
    subtract,
    where,
)
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ir.types import product
from hybridflow.compiler.ops import TABLE, type_rules
from hybridflow.core.context import now
from hybridflow.core.promotion import default_int, to_dtype
from hybridflow.core.tensor import Tensor, wrap
from hybridflow.core.type_aliases import ArrayLike, AxisLike, DTypeLike
from hybridflow.eager.dispatch import apply
from hybridflow.eager.operands import as_tensor, cast, expand, float_operand, reshape_to, scalar
from hybridflow.eager.public_op import operation
from hybridflow.errors import ArgumentError, ShapeError, entered

if TYPE_CHECKING:
    from hybridflow.compiler.ops.op_table import OpDef


def _reduce(op: OpDef, x: Tensor, axes: tuple[int, ...], keepdims: bool) -> Tensor:
    out = apply(op, x, axes=axes)
    return keep_axes(out, x, axes) if keepdims else out


def keep_axes(out: Tensor, x: Tensor, axes: tuple[int, ...]) -> Tensor:
    """The reduction ``out`` of ``x`` with its axes back, at extent 1."""
    return reshape_to(out, tuple(1 if k in axes else extent for k, extent in enumerate(x.shape)))


def sum_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Small integers and bools are summed in 64 bits, floats that are stored only in float32."""
    dtype = dtypes.wide_dtype(dtype)
    if dtypes.is_inexact(dtype):
        return dtype
    return dtypes.uint64 if dtypes.is_unsigned(dtype) else dtypes.int64


_ALL_AXES = [tuple(range(ndim)) for ndim in range(65)]  # NumPy's bound on axes is 64


_LARGE = 1 << 16  # elements, from which on a fold does not have all of them in a wider dtype first


def _folded_at_once(name: str, x: Tensor, wanted: np.dtype[Any], axis: AxisLike, keepdims: bool) -> Tensor | None:
    """The sum or product of many small integers by NumPy, which widens a few at a time, and has the same bits: those of
    integers do not depend on an order.  None while tracing, and for others."""
    if now().trace is not None or type(x._array) is not np.ndarray or x._array.size < _LARGE:
        return None
    if not np.can_cast(x.dtype, wanted, "same_kind"):  # of which NumPy makes no such sum
        return None
    fold: Any = np.add if name == "sum" else np.multiply
    axes = type_rules.axes(name, x.type, axis)
    return wrap(np.asarray(fold.reduce(x._array, axis=axes, dtype=wanted, keepdims=bool(keepdims))))


def _fold(name: str, x: ArrayLike, axis: AxisLike, dtype: DTypeLike | None, keepdims: bool) -> Tensor:
    if type(x) is not Tensor:
        x = as_tensor(x, name)
    if axis is None and dtype is None and not keepdims and dtypes.is_inexact(x.dtype):  # the usual loss
        return apply(TABLE[name], x, axes=_ALL_AXES[len(x.shape)])
    wanted = sum_dtype(x.dtype) if dtype is None else to_dtype(dtype, name)
    if x.dtype.itemsize < wanted.itemsize and not dtypes.is_inexact(wanted):
        result = _folded_at_once(name, x, wanted, axis, keepdims)
        if result is not None:
            return result
    return _reduce(
        TABLE[name], x if x.dtype == wanted else cast(x, wanted), type_rules.axes(name, x.type, axis), keepdims
    )


@operation
def sum(x: ArrayLike, /, axis: AxisLike = None, dtype: DTypeLike | None = None, keepdims: bool = False) -> Tensor:
    """The sum over ``axis``; 0 for no elements.  Bools and integers are summed as int64 (uint64 for unsigned ones).

    Args:
        x: a tensor, array, nested list or number.
        axis: an axis, a tuple of axes, or None for all.
        dtype: the dtype of the result. By default that of ``x``, int64 or uint64 for bools and integers.
        keepdims: whether reduced axes are kept with size 1.

    Returns:
        A tensor without the reduced axes.

    Raises:
        AxisError: for an axis out of range.

    >>> hf.sum([[1, 2], [3, 4]], axis=0)
    <Tensor i64[2] cpu> [4 6]
    """
    return _fold("sum", x, axis, dtype, keepdims)


@operation
def prod(x: ArrayLike, /, axis: AxisLike = None, dtype: DTypeLike | None = None, keepdims: bool = False) -> Tensor:
    """The product over ``axis``; 1 for no elements.  Bools and integers are multiplied as int64 (uint64).

    Args:
        x: a tensor, array, nested list or number.
        axis: an axis, a tuple of axes, or None for all.
        dtype: the dtype of the result. By default that of ``x``, int64 or uint64 for bools and integers.
        keepdims: whether reduced axes are kept with size 1.

    Returns:
        A tensor without the reduced axes.

    Raises:
        AxisError: for an axis out of range.

    >>> hf.prod([[1, 2], [3, 4]], axis=1)
    <Tensor i64[2] cpu> [ 2 12]
    """
    return _fold("prod", x, axis, dtype, keepdims)


def _extreme(name: str, x: ArrayLike, axis: AxisLike, keepdims: bool) -> Tensor:
    x = as_tensor(x, name)
    axes = type_rules.axes(name, x.type, axis)
    for k in axes:
        if x.shape[k] == 0:
            raise ShapeError(name, f"{x.type} has no elements along axis {k}, and no elements have no {name}.")
    if dtypes.is_bool(x.dtype):
        return _reduce(TABLE["any" if name == "max" else "all"], x, axes, keepdims)
    return _reduce(TABLE[name], x, axes, keepdims)


@operation
def max(x: ArrayLike, /, axis: AxisLike = None, keepdims: bool = False) -> Tensor:
    """The largest element over ``axis``; NaN if there is one.  The gradient is shared evenly by ties.

    Args:
        x: a tensor, array, nested list or number.
        axis: an axis, a tuple of axes, or None for all.
        keepdims: whether reduced axes are kept with size 1.

    Returns:
        A tensor without the reduced axes, in the dtype of ``x``.

    Raises:
        AxisError: for an axis out of range.
        ShapeError: if there are no elements to choose from.

    >>> hf.max([[1, 5], [7, 3]], axis=0)
    <Tensor i64[2] cpu> [7 5]
    """
    return _extreme("max", x, axis, keepdims)


@operation
def min(x: ArrayLike, /, axis: AxisLike = None, keepdims: bool = False) -> Tensor:
    """The smallest element over ``axis``; NaN if there is one.  The gradient is shared evenly by ties.

    Args:
        x: a tensor, array, nested list or number.
        axis: an axis, a tuple of axes, or None for all.
        keepdims: whether reduced axes are kept with size 1.

    Returns:
        A tensor without the reduced axes, in the dtype of ``x``.

    Raises:
        AxisError: for an axis out of range.
        ShapeError: if there are no elements to choose from.

    >>> hf.min([[1, 5], [7, 3]], axis=0)
    <Tensor i64[2] cpu> [1 3]
    """
    return _extreme("min", x, axis, keepdims)


def _arg_extreme(name: str, x: ArrayLike, axis: int | None, keepdims: bool) -> Tensor:
    x = as_tensor(x, name)
    if axis is not None:
        axis = type_rules.axis(name, x.type, axis)
    axes = type_rules.axes(name, x.type, axis)
    for k in axes:
        if x.shape[k] == 0:
            raise ShapeError(name, f"{x.type} has no elements along axis {k}, so none of them is the extreme one.")
    if dtypes.is_bool(x.dtype):
        x = cast(x, dtypes.uint8)
    return _reduce(TABLE[name], x, axes, keepdims)


@operation
def argmax(x: ArrayLike, /, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The position of the first largest element along ``axis`` (of the flattened tensor for None), as int64.

    NaN counts as the largest.

    Args:
        x: a tensor, array, nested list or number.
        axis: an axis, or None for positions in the flattened tensor.
        keepdims: whether reduced axes are kept with size 1.

    Returns:
        An int64 tensor without the axis.

    Raises:
        AxisError: for an axis out of range.
        ShapeError: if there are no elements to choose from.

    >>> hf.argmax([[1, 5, 2], [7, 0, 3]], axis=1)
    <Tensor i64[2] cpu> [1 0]
    """
    return _arg_extreme("argmax", x, axis, keepdims)


@operation
def argmin(x: ArrayLike, /, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The position of the first smallest element along ``axis`` (of the flattened tensor for None), as int64.

    NaN counts as the smallest.

    Args:
        x: a tensor, array, nested list or number.
        axis: an axis, or None for positions in the flattened tensor.
        keepdims: whether reduced axes are kept with size 1.

    Returns:
        An int64 tensor without the axis.

    Raises:
        AxisError: for an axis out of range.
        ShapeError: if there are no elements to choose from.

    >>> hf.argmin([[1, 5, 2], [7, 0, 3]], axis=1)
    <Tensor i64[2] cpu> [0 1]
    """
    return _arg_extreme("argmin", x, axis, keepdims)


@operation
def all(x: ArrayLike, /, axis: AxisLike = None, keepdims: bool = False) -> Tensor:
    """Whether all elements over ``axis`` are true (not zero); True for no elements.

    Args:
        x: a tensor, array, nested list or number.
        axis: an axis, a tuple of axes, or None for all.
        keepdims: whether reduced axes are kept with size 1.

    Returns:
        A bool tensor without the axes that were reduced.

    Raises:
        AxisError: for an axis out of range.

    >>> hf.all([[True, False], [True, True]], axis=1)
    <Tensor bool[2] cpu> [False  True]
    """
    x = as_tensor(x, "all", dtypes.bool_)
    return _reduce(TABLE["all"], x, type_rules.axes("all", x.type, axis), keepdims)


@operation
def any(x: ArrayLike, /, axis: AxisLike = None, keepdims: bool = False) -> Tensor:
    """Whether an element over ``axis`` is true (not zero); False for no elements.

    Args:
        x: a tensor, array, nested list or number.
        axis: an axis, a tuple of axes, or None for all.
        keepdims: whether reduced axes are kept with size 1.

    Returns:
        A bool tensor without the axes that were reduced.

    Raises:
        AxisError: for an axis out of range.

    >>> hf.any([[True, False], [False, False]], axis=1)
    <Tensor bool[2] cpu> [ True False]
    """
    x = as_tensor(x, "any", dtypes.bool_)
    return _reduce(TABLE["any"], x, type_rules.axes("any", x.type, axis), keepdims)


@operation
def count_nonzero(x: ArrayLike, /, axis: AxisLike = None, keepdims: bool = False) -> Tensor:
    """How many elements over ``axis`` are not zero, as int64.

    Args:
        x: a tensor, array, nested list or number.
        axis: an axis, a tuple of axes, or None for all.
        keepdims: whether reduced axes are kept with size 1.

    Returns:
        An int64 tensor without the axes that were reduced.

    Raises:
        AxisError: for an axis out of range.

    >>> hf.count_nonzero([[0, 1, 2], [3, 0, 0]], axis=1)
    <Tensor i64[2] cpu> [2 1]
    """
    x = as_tensor(x, "count_nonzero")
    return sum(x if dtypes.is_bool(x.dtype) else not_equal(x, 0), axis, default_int, keepdims)


def _count(x: Tensor, axes: tuple[int, ...], correction: float, dtype: np.dtype[Any]) -> Tensor:
    """The number of elements over ``axes`` less ``correction``, not below 0, as a scalar."""
    extents = tuple(x.shape[k] for k in axes)
    size = product(extents)
    if isinstance(size, int):
        return scalar(builtins.max(0.0, size - float(correction)), dtype, "count")
    count = subtract(scalar(size, dtypes.float64, "count"), float(correction))
    return cast(apply(TABLE["maximum"], scalar(0, dtypes.float64, "count"), count), dtype)


def _accurate(x: Tensor) -> Tensor:
    """Narrow floats as float32: a mean of them must not overflow on the way."""
    return cast(x, dtypes.compute_dtype(x.dtype))


@operation
def mean(x: ArrayLike, /, axis: AxisLike = None, dtype: DTypeLike | None = None, keepdims: bool = False) -> Tensor:
    """The arithmetic mean over ``axis``, in float32 for bools and integers; NaN for no elements.

    Args:
        x: a tensor, array, nested list or number.
        axis: an axis, a tuple of axes, or None for all.
        dtype: the dtype of the result. By default that of ``x``, float32 for bools and integers.
        keepdims: whether reduced axes are kept with size 1.

    Returns:
        A tensor without the reduced axes.

    Raises:
        AxisError: for an axis out of range.

    >>> hf.mean([[1.0, 5.0], [7.0, 3.0]], axis=0)
    <Tensor f32[2] cpu> [4. 4.]
    """
    x = float_operand(x, "mean")
    out_dtype = x.dtype if dtype is None else to_dtype(dtype, "mean")
    axes = type_rules.axes("mean", x.type, axis)
    x = _accurate(cast(x, out_dtype))
    total = _reduce(TABLE["sum"], x, axes, keepdims)
    return cast(divide(total, _count(x, axes, 0, x.dtype)), out_dtype)


@operation
def var(x: ArrayLike, /, axis: AxisLike = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The variance over ``axis``: the mean squared distance from the mean, divided by ``n - correction``.

    Args:
        x: a tensor, array, nested list or number.
        axis: an axis, a tuple of axes, or None for all.
        correction: subtracted from the number of elements in the divisor; 1 for the sample estimate.
        keepdims: whether reduced axes are kept with size 1.

    Returns:
        A float tensor without the reduced axes.

    Raises:
        AxisError: for an axis out of range.

    >>> hf.var([1.0, 3.0])
    <Tensor f32[] cpu> 1.0
    """
    x = float_operand(x, "var")
    out_dtype = x.dtype
    axes = type_rules.axes("var", x.type, axis)
    x = _accurate(x)
    centred = subtract(x, mean(x, axes, keepdims=True))
    if dtypes.is_complex(x.dtype):  # of squared distances, which are real
        centred = apply(TABLE["abs"], centred)
        out_dtype = dtypes.part_dtype(out_dtype)
    total = _reduce(TABLE["sum"], square(centred), axes, keepdims)
    return cast(divide(total, _count(x, axes, correction, total.dtype)), out_dtype)


@operation
def std(x: ArrayLike, /, axis: AxisLike = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The standard deviation over ``axis``: the square root of ``var``.  Where it is 0, so is its derivative.

    Args:
        x: a tensor, array, nested list or number.
        axis: an axis, a tuple of axes, or None for all.
        correction: subtracted from the number of elements in the divisor; 1 for the sample estimate.
        keepdims: whether reduced axes are kept with size 1.

    Returns:
        A float tensor without the reduced axes.

    Raises:
        AxisError: for an axis out of range.

    >>> hf.std([1.0, 3.0])
    <Tensor f32[] cpu> 1.0
    """
    return root(var(x, axis, correction, keepdims))


def root(total: Tensor) -> Tensor:
    """The square root, whose derivative at 0 is taken to be 0: that of a length."""
    there = not_equal(total, 0)
    return where(there, sqrt(where(there, total, 1)), 0)


@operation
def logsumexp(x: ArrayLike, axis: AxisLike = None, keepdims: bool = False) -> Tensor:
    """Log-sum-exp: ``log(sum(exp(x)))`` over ``axis`` without overflow; -inf for no elements.

    Args:
        x: a tensor, array, nested list or number.
        axis: an axis, a tuple of axes, or None for all.
        keepdims: whether reduced axes are kept with size 1.

    Returns:
        A float tensor without the reduced axes.

    Raises:
        AxisError: for an axis out of range.

    >>> hf.logsumexp([1000.0, 1000.0])
    <Tensor f32[] cpu> 1000.6932
    """
    x = float_operand(x, "logsumexp")
    axes = type_rules.axes("logsumexp", x.type, axis)
    if builtins.any(x.shape[k] == 0 for k in axes):
        return log(_reduce(TABLE["sum"], exp(x), axes, keepdims))
    highest = stop_gradient(_reduce(TABLE["max"], x, axes, True))
    shift = where(isfinite(highest), highest, 0)  # inf - inf would be NaN
    total = _reduce(TABLE["sum"], exp(subtract(x, shift)), axes, True)
    out = add(log(total), shift)
    return out if keepdims else reshape_to(out, tuple(n for k, n in enumerate(x.shape) if k not in axes))


def _running(stage: str, x: ArrayLike, axis: int | None, dtype: DTypeLike | None) -> tuple[Tensor, int]:
    """What a running sum or product goes over, in the dtype of its result, and the axis."""
    x = as_tensor(x, stage)
    if axis is None:
        if x.ndim != 1:
            raise ArgumentError(stage, f"axis must be given for {x.type}.")
        axis = 0
    axis = type_rules.axis(stage, x.type, axis)
    return cast(x, sum_dtype(x.dtype) if dtype is None else to_dtype(dtype, stage)), axis


@operation
def cumulative_sum(
    x: ArrayLike, /, axis: int | None = None, dtype: DTypeLike | None = None, include_initial: bool = False
) -> Tensor:
    """Cumulative sum along ``axis``, which is optional for one axis; ``include_initial`` puts a 0 in front.

    Args:
        x: a tensor, array, nested list or number.
        axis: the axis; optional for a one-dimensional tensor.
        dtype: the dtype of the result. By default that of ``x``, int64 or uint64 for bools and integers.
        include_initial: whether the result begins with the value of no elements.

    Returns:
        A tensor of the shape of ``x``; one longer along ``axis`` with ``include_initial``.

    Raises:
        AxisError: for an axis out of range.

    >>> hf.cumulative_sum([1, 2, 3])
    <Tensor i64[3] cpu> [1 3 6]
    """
    x, axis = _running("cumulative_sum", x, axis, dtype)
    out = apply(TABLE["cumulative_sum"], x, axis=axis)
    if not include_initial:
        return out
    first = expand(scalar(0, x.dtype, "cumulative_sum"), (*x.shape[:axis], 1, *x.shape[axis + 1 :]))
    return apply(TABLE["concat"], first, out, axis=axis)


@entered
def cumulative_prod(
    x: ArrayLike, /, axis: int | None = None, dtype: DTypeLike | None = None, include_initial: bool = False
) -> Tensor:
    """The running product along ``axis`` (not needed for one axis); ``include_initial`` puts a 1 in front.

    Bools and integers are multiplied as int64 (uint64).

    Args:
        x: a tensor, array, nested list or number.
        axis: the axis; optional for a one-dimensional tensor.
        dtype: the dtype of the result. By default that of ``x``, int64 or uint64 for bools and integers.
        include_initial: whether the result begins with the value of no elements.

    Returns:
        A tensor of the shape of ``x``; one longer along ``axis`` with ``include_initial``.

    Raises:
        AxisError: for an axis out of range.

    >>> hf.cumulative_prod(hf.asarray([2, 3, 4])).tolist()
    [2, 6, 24]
    """
    x, axis = _running("cumulative_prod", x, axis, dtype)
    out = multiply(apply(TABLE["exclusive_product"], x, axis=axis), x)
    if not include_initial:
        return out
    first = expand(scalar(1, x.dtype, "cumulative_prod"), (*x.shape[:axis], 1, *x.shape[axis + 1 :]))
    return apply(TABLE["concat"], first, out, axis=axis)


# TensorFlow's names for the most used ones.
reduce_sum, reduce_mean, reduce_max, reduce_min, reduce_prod = sum, mean, max, min, prod
