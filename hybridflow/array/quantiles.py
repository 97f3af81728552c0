"""Quantiles: the values that shares of the elements lie below.  Integers and bools become float32.

They are read from the sorted elements, so derivatives go to those they lie between.  ``axis`` is None (all axes), an
int or several; several quantiles, of whatever shape, become the first axes of the result.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hybridflow.array.elementwise import (
    add,
    ceil,
    divide,
    equal,
    floor,
    greater_equal,
    isfinite,
    isnan,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    maximum,
    minimum,
    multiply,
    round,
    subtract,
    where,
)
from hybridflow.array.indexing import take, take_along_axis
from hybridflow.array.reductions import count_nonzero
from hybridflow.array.shapes import moveaxis, permute_dims
from hybridflow.array.sorting import sort
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ir.types import product
from hybridflow.compiler.ops import type_rules
from hybridflow.core.promotion import default_int
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import ArrayLike, AxisLike
from hybridflow.eager.operands import as_tensor, cast, filled, float_operand, reshape_to, scalar
from hybridflow.eager.public_op import operation
from hybridflow.errors import ArgumentError, entered

_METHODS = ("linear", "lower", "higher", "nearest", "midpoint")


@entered
def quantile(
    x: ArrayLike, q: ArrayLike, /, axis: AxisLike = None, *, method: str = "linear", keepdims: bool = False
) -> Tensor:
    """The value over ``axis`` that the share ``q`` of the elements, within [0, 1], lies below.

    Between two elements ``method`` decides: a line from one to the other ("linear"), the "lower", "higher" or "nearest"
    one, or the middle ("midpoint").  NaN where an element is NaN, and of no elements.  Raises ArgumentError for a ``q``
    outside [0, 1], which gives NaN where a compiled function computes it.

    Args:
        x: a tensor, array, nested list or number.
        q: a number or a tensor of numbers that say which part lies below.
        axis: an axis, a tuple of axes, or None for all.
        method: how to choose between two elements: "linear", "lower", "higher", "midpoint" or "nearest".
        keepdims: whether reduced axes are kept with size 1.

    Returns:
        A float tensor: the axes of ``q``, then the axes of ``x`` that were not reduced.

    Raises:
        AxisError: for an axis out of range.

    >>> hf.quantile([4.0, 1.0, 3.0, 2.0], [0.25, 0.5])
    <Tensor f32[2] cpu> [1.75 2.5 ]
    """
    return _checked("quantile", x, q, 1, axis, method, keepdims, False)


@entered
def percentile(
    x: ArrayLike, q: ArrayLike, /, axis: AxisLike = None, *, method: str = "linear", keepdims: bool = False
) -> Tensor:
    """Percentile: ``quantile`` with ``q`` in percent, within [0, 100].

    Args:
        x: a tensor, array, nested list or number.
        q: a number or a tensor of numbers that say which part lies below.
        axis: an axis, a tuple of axes, or None for all.
        method: how to choose between two elements: "linear", "lower", "higher", "midpoint" or "nearest".
        keepdims: whether reduced axes are kept with size 1.

    Returns:
        A float tensor: the axes of ``q``, then the axes of ``x`` that were not reduced.

    Raises:
        AxisError: for an axis out of range.

    >>> hf.percentile([4.0, 1.0, 3.0, 2.0], 25)
    <Tensor f32[] cpu> 1.75
    """
    return _checked("percentile", x, q, 100, axis, method, keepdims, False)


@entered
def median(x: ArrayLike, /, axis: AxisLike = None, *, keepdims: bool = False) -> Tensor:
    """The middle one of the sorted elements over ``axis``, or halfway between the two in the middle.

    It is NaN where an element is NaN, and of no elements.

    Args:
        x: a tensor, array, nested list or number.
        axis: an axis, a tuple of axes, or None for all.
        keepdims: whether reduced axes are kept with size 1.

    Returns:
        A float tensor without the reduced axes.

    Raises:
        AxisError: for an axis out of range.

    >>> hf.median([[5.0, 1.0], [2.0, 4.0], [9.0, 3.0]], axis=0)
    <Tensor f32[2] cpu> [5. 3.]
    """
    return _checked("median", x, 0.5, 1, axis, "linear", keepdims, False)


@entered
def nanquantile(
    x: ArrayLike, q: ArrayLike, /, axis: AxisLike = None, *, method: str = "linear", keepdims: bool = False
) -> Tensor:
    """Quantile without NaN: ``quantile`` of the elements that are not NaN; NaN where all are.

    Args:
        x: a tensor, array, nested list or number.
        q: a number or a tensor of numbers that say which part lies below.
        axis: an axis, a tuple of axes, or None for all.
        method: how to choose between two elements: "linear", "lower", "higher", "midpoint" or "nearest".
        keepdims: whether reduced axes are kept with size 1.

    Returns:
        A float tensor: the axes of ``q``, then the axes of ``x`` that were not reduced.

    Raises:
        AxisError: for an axis out of range.

    >>> hf.nanquantile([4.0, hf.nan, 3.0, 2.0], 0.25)
    <Tensor f32[] cpu> 2.5
    """
    return _checked("nanquantile", x, q, 1, axis, method, keepdims, True)


@entered
def nanmedian(x: ArrayLike, /, axis: AxisLike = None, *, keepdims: bool = False) -> Tensor:
    """Median without NaN: ``median`` of the elements that are not NaN; NaN where all are.

    Args:
        x: a tensor, array, nested list or number.
        axis: an axis, a tuple of axes, or None for all.
        keepdims: whether reduced axes are kept with size 1.

    Returns:
        A float tensor without the reduced axes.

    Raises:
        AxisError: for an axis out of range.

    >>> hf.nanmedian([[5.0, 1.0], [2.0, hf.nan], [9.0, 3.0]], axis=0)
    <Tensor f32[2] cpu> [5. 2.]
    """
    return _checked("nanmedian", x, 0.5, 1, axis, "linear", keepdims, True)


@entered
def nanpercentile(
    x: ArrayLike, q: ArrayLike, /, axis: AxisLike = None, *, method: str = "linear", keepdims: bool = False
) -> Tensor:
    """Percentile without NaN: ``nanquantile`` with ``q`` in percent, within [0, 100].

    Args:
        x: a tensor, array, nested list or number.
        q: a number or a tensor of numbers that say which part lies below.
        axis: an axis, a tuple of axes, or None for all.
        method: how to choose between two elements: "linear", "lower", "higher", "midpoint" or "nearest".
        keepdims: whether reduced axes are kept with size 1.

    Returns:
        A float tensor: the axes of ``q``, then the axes of ``x`` that were not reduced.

    Raises:
        AxisError: for an axis out of range.

    >>> hf.nanpercentile([4.0, hf.nan, 3.0, 2.0], 50)
    <Tensor f32[] cpu> 3.0
    """
    return _checked("nanpercentile", x, q, 100, axis, method, keepdims, True)


def _checked(
    stage: str, x: ArrayLike, q: ArrayLike, whole: int, axis: AxisLike, method: str, keepdims: bool, without_nan: bool
) -> Tensor:
    if method not in _METHODS:
        raise ArgumentError(stage, f"method is {method!r}; it must be one of {', '.join(map(repr, _METHODS))}.")
    share = as_tensor(q, stage, dtypes.float64)
    known = share._known()
    if known is not None and not np.all((known >= 0) & (known <= whole)):
        raise ArgumentError(stage, f"q is {q!r:.60}; it must lie in [0, {whole}].")
    share = share if whole == 1 else divide(share, whole)
    return _quantile(stage, x, share, axis, method, bool(keepdims), without_nan)


@operation
def _quantile(
    stage: str, x: ArrayLike, share: Tensor, axis: AxisLike, method: str, keepdims: bool, without_nan: bool
) -> Tensor:
    x = float_operand(x, stage)
    out_dtype, axes = x.dtype, type_rules.axes(stage, x.type, axis)
    rest = tuple(k for k in range(x.ndim) if k not in axes)
    kept_shape = tuple(x.shape[k] for k in rest)
    count = product(tuple(x.shape[k] for k in axes))
    shape = tuple(1 if k in axes else n for k, n in enumerate(x.shape)) if keepdims else kept_shape
    if count == 0:
        return filled(np.nan, out_dtype, (*share.shape, *shape), stage)
    ordered = sort(reshape_to(permute_dims(x, (*rest, *axes)), (*kept_shape, count)))
    ordered = cast(ordered, dtypes.compute_dtype(out_dtype))
    shares = reshape_to(share, (product(share.shape),))
    last: Any = scalar(count, dtypes.float64, stage)
    if without_nan:
        last = cast(count_nonzero(logical_not(isnan(ordered)), axis=-1, keepdims=True), dtypes.float64)
    last = maximum(subtract(last, 1), 0)
    inside = logical_and(greater_equal(shares, 0), less_equal(shares, 1))
    result = _between(ordered, multiply(where(inside, shares, 0), last), last, method)
    if not without_nan:
        highest = ordered[..., -1:]
        result = where(isnan(highest), highest, result)
    result = cast(where(inside, result, np.nan), out_dtype)
    return reshape_to(moveaxis(result, -1, 0), (*share.shape, *shape))


def _between(ordered: Tensor, places: Tensor, last: Tensor, method: str) -> Tensor:
    """What is at places, which may lie between two, of elements sorted along the last axis."""

    def at(place: Tensor) -> Tensor:
        position = cast(minimum(place, last), default_int)
        if position.ndim == 1:
            return take(ordered, position, axis=-1)
        return take_along_axis(ordered, position, axis=-1)

    if method == "nearest":
        return at(round(places))
    if method == "higher":
        return at(ceil(places))
    below = floor(places)
    low = at(below)
    if method == "lower":
        return low
    high = at(ceil(places))
    weight = subtract(places, below)
    if method == "midpoint":
        weight = where(equal(weight, 0), 0.0, 0.5)
    weight = cast(weight, ordered.dtype)
    # From the nearer end, so that it lies between the two; where one is infinite, or the gap is, in another way.
    gap, rest = subtract(high, low), subtract(1, weight)
    near = where(less(weight, 0.5), add(low, multiply(gap, weight)), subtract(high, multiply(gap, rest)))
    shared = add(multiply(low, rest), multiply(high, weight))
    far = where(logical_or(equal(weight, 0), equal(low, high)), low, shared)
    near = where(logical_and(equal(low, 0), equal(high, 0)), shared, near)  # which keeps the sign of zeros
    return where(isfinite(gap), near, far)
