"""Differences of neighbouring elements."""

from __future__ import annotations

import math
from typing import Any

from hybridflow.array.elementwise import (
    abs,
    add,
    divide,
    equal,
    greater,
    less,
    logical_and,
    multiply,
    not_equal,
    remainder,
    subtract,
    where,
)
from hybridflow.array.reductions import cumulative_sum, sum
from hybridflow.array.shapes import concat, moveaxis, slice_axis
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ir.types import product
from hybridflow.compiler.ops import type_rules
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import ArrayLike, AxisLike
from hybridflow.eager.operands import as_tensor, cast, exclusive, expand, float_operand, reshape_to
from hybridflow.eager.public_op import operation
from hybridflow.errors import ArgumentError, ShapeError


@operation
def diff(x: ArrayLike, /, n: int = 1, axis: int = -1, prepend: object = None, append: object = None) -> Tensor:
    """Finite differences: ``x[i + 1] - x[i]`` along ``axis``, ``n`` times; of bools where neighbours differ.
    ``prepend`` and ``append`` are put in front of ``x`` and behind it first, a scalar once in each place.  Unsigned
    integers wrap around.

    Raises ShapeError for a scalar, ArgumentError for a negative ``n``.

    Args:
        x: a tensor, array, nested list or number.
        n: how many times.
        axis: an axis; negative ones count from the end.
        prepend: what is put in front first.
        append: what is put behind first.

    Returns:
        A tensor that is ``n`` shorter along ``axis``.

    Raises:
        AxisError: for an axis out of range.

    >>> hf.diff(hf.asarray([1, 4, 9])).tolist()
    [3, 5]
    """
    x = as_tensor(x, "diff")
    if not x.ndim:
        raise ShapeError("diff", f"a scalar ({x.type}) has no neighbours.")
    axis = type_rules.axis("diff", x.type, axis)
    times = type_rules.integer("diff", "n", n)
    if times < 0:
        raise ArgumentError("diff", f"n is {times}; it must not be negative.")
    if not times:
        return exclusive(x)
    ends = [None if part is None else _end(part, x, axis) for part in (prepend, append)]
    parts = [part for part in (ends[0], x, ends[1]) if part is not None]
    x = concat(parts, axis=axis) if len(parts) > 1 else x
    step = not_equal if dtypes.is_bool(x.dtype) else subtract
    for _ in range(times):
        extent = x.shape[axis]
        if extent == 0:
            return exclusive(x)
        x = step(slice_axis(x, axis, 1, extent), slice_axis(x, axis, 0, extent - 1))
    return x


def _end(part: object, x: Tensor, axis: int) -> Tensor:
    """What stands at one end of ``x``."""
    part = as_tensor(part, "diff")
    return part if part.ndim else expand(part, (*x.shape[:axis], 1, *x.shape[axis + 1 :]))


@operation
def ediff1d(x: ArrayLike, /, to_end: object = None, to_begin: object = None) -> Tensor:
    """Differences of consecutive elements of the flattened tensor.

    Args:
        x: a tensor, array, nested list or number.
        to_end: what is put behind the differences.
        to_begin: what is put in front of them.

    Returns:
        A tensor of one axis in the dtype of ``x``.

    >>> hf.ediff1d([[1, 4], [9, 16]], to_end=0)
    <Tensor i64[4] cpu> [3 5 7 0]
    """
    x = as_tensor(x, "ediff1d")
    between = diff(reshape_to(x, (product(x.shape),)))
    ends = [None if end is None else cast(as_tensor(end, "ediff1d"), x.dtype) for end in (to_begin, to_end)]
    begin, end = (None if part is None else reshape_to(part, (product(part.shape),)) for part in ends)
    parts = [part for part in (begin, between, end) if part is not None]
    return concat(parts) if len(parts) > 1 else between


@operation
def trapezoid(y: ArrayLike, x: ArrayLike | None = None, dx: object = 1.0, axis: int = -1) -> Tensor:
    """Integral by the trapezoidal rule, along an axis.

    Args:
        y: the values of the function.
        x: their places, of one axis or in the shape of ``y``; ``dx`` apart unless given.
        dx: the distance between places.
        axis: an axis; negative ones count from the end.

    Returns:
        A float tensor without the axis.

    Raises:
        AxisError: for an axis out of range.
        ShapeError: where the places do not fit.

    >>> hf.trapezoid([1.0, 2.0, 3.0], dx=2.0)
    <Tensor f32[] cpu> 8.0
    """
    y = float_operand(y, "trapezoid")
    axis = type_rules.axis("trapezoid", y.type, axis)
    width: Any = dx
    if x is not None:
        places = as_tensor(x, "trapezoid")
        along = 0 if places.ndim == 1 else axis
        if places.ndim not in (1, y.ndim) or places.shape[along] != y.shape[axis]:
            raise ShapeError("trapezoid", f"the places {places.type} do not fit axis {axis} of {y.type}.")
        width = diff(places, axis=along)
        if places.ndim == 1:
            width = reshape_to(width, (width.shape[0], *(1 for _ in range(y.ndim - 1 - axis))))
    extent = y.shape[axis]
    if extent == 0:
        return sum(y, axis)
    pairs = add(slice_axis(y, axis, 1, extent), slice_axis(y, axis, 0, extent - 1))
    return sum(divide(multiply(width, pairs), 2.0), axis)


@operation
def gradient(f: ArrayLike, *varargs: object, axis: AxisLike = None, edge_order: int = 1) -> Any:
    """Gradient of sampled values: central differences of second order, one-sided ones at the ends.

    ``hf.grad`` differentiates functions.

    Args:
        f: the values of a function on a grid.
        *varargs: the distance between places for all axes, or for each one a distance or the places themselves; 1
            unless given.
        axis: an axis, a tuple of axes, or None for all.
        edge_order: the order at the ends: 1 or 2.

    Returns:
        A float tensor of the shape of ``f``; a list of them, one for each axis, for several.

    Raises:
        AxisError: for an axis out of range.
        ArgumentError: where there are not as many distances as axes, and for another order.
        ShapeError: for less than ``edge_order + 1`` elements along an axis.

    >>> hf.gradient([1.0, 2.0, 4.0, 7.0])
    <Tensor f32[4] cpu> [1.  1.5 2.5 3. ]
    """
    f = float_operand(f, "gradient")
    if edge_order not in (1, 2):
        raise ArgumentError("gradient", f"edge_order is {edge_order!r}. Expected 1 or 2.")
    axes = type_rules.axes("gradient", f.type, axis) if axis is None else _in_order(f, axis)
    steps: list[Any] = list(varargs) * len(axes) if len(varargs) == 1 else list(varargs) or [1.0] * len(axes)
    if len(steps) != len(axes):
        raise ArgumentError("gradient", f"{len(varargs)} spacings for {len(axes)} axes.")
    results = [moveaxis(_slopes(moveaxis(f, k, -1), h, edge_order), -1, k) for k, h in zip(axes, steps)]
    return results[0] if len(results) == 1 else results


def _in_order(f: Tensor, axis: AxisLike) -> list[int]:
    return [type_rules.axis("gradient", f.type, k) for k in (axis if isinstance(axis, (list, tuple)) else [axis])]


def _slopes(f: Tensor, spacing: object, edge_order: int) -> Tensor:
    """Differences along the last axis."""
    extent = f.shape[-1]
    if extent < edge_order + 1:
        raise ShapeError("gradient", f"{f.type} needs at least {_NUMBERS[edge_order + 1]} elements along each axis.")
    steps = as_tensor(spacing, "gradient", f.dtype if isinstance(spacing, (int, float)) else None)
    before, at, behind = f[..., :-2], f[..., 1:-1], f[..., 2:]
    if steps.ndim == 0:
        inside = divide(subtract(behind, before), multiply(2.0, steps))
        h = [steps] * 4
    else:
        if steps.ndim != 1 or steps.shape[0] != extent:
            raise ShapeError("gradient", f"the places are {steps.type}. Expected one for each of {extent} elements.")
        widths = cast(diff(steps), f.dtype)
        low, high = widths[:-1], widths[1:]
        whole = add(low, high)
        inside = add(
            add(multiply(divide(-high, multiply(low, whole)), before), multiply(divide(high - low, low * high), at)),
            multiply(divide(low, multiply(high, whole)), behind),
        )
        h = [widths[0], widths[1 if edge_order == 2 else 0], widths[-2 if edge_order == 2 else -1], widths[-1]]
    if edge_order == 1:
        first, last = divide(f[..., 1:2] - f[..., :1], h[0]), divide(f[..., -1:] - f[..., -2:-1], h[3])
    else:
        first = _end_slope(f[..., 0:1], f[..., 1:2], f[..., 2:3], h[0], h[1])
        last = _end_slope(f[..., -1:], f[..., -2:-1], f[..., -3:-2], -h[3], -h[2])
    return concat([first, inside, last], axis=-1)


_NUMBERS = {2: "two", 3: "three"}


def _end_slope(y0: Tensor, y1: Tensor, y2: Tensor, h1: Tensor, h2: Tensor) -> Tensor:
    """The derivative at the first of three places, of the parabola through them."""
    whole = add(h1, h2)
    a, b, c = -(h1 + whole) / (h1 * whole), whole / (h1 * h2), -h1 / (h2 * whole)
    return a * y0 + b * y1 + c * y2


@operation
def unwrap(x: ArrayLike, /, discont: float | None = None, axis: int = -1, period: float = 2 * math.pi) -> Tensor:
    """Phases without jumps: periods are added so that no two neighbours are more than half a period apart.

    Args:
        x: phases; integers and bools become float32.
        discont: jumps up to this size stay; half a period unless given, which is the least.
        axis: the axis to go along; negative ones count from the end.
        period: the size of a period.

    Returns:
        A float tensor of the shape of ``x``.

    Raises:
        AxisError: for an axis out of range.

    >>> hf.unwrap([0.0, 3.0, -3.0, 0.0])
    <Tensor f32[4] cpu> [0.        3.        3.2831855 6.2831855]
    """
    x = float_operand(x, "unwrap")
    axis = type_rules.axis("unwrap", x.type, axis)
    extent, half = x.shape[axis], period / 2
    if extent == 0:
        return exclusive(x)
    jump = diff(x, axis=axis)
    turned = subtract(remainder(add(jump, half), period), half)
    turned = where(logical_and(equal(turned, -half), greater(jump, 0)), half, turned)
    correction = where(less(abs(jump), half if discont is None else discont), 0.0, subtract(turned, jump))
    rest = add(slice_axis(x, axis, 1, extent), cumulative_sum(correction, axis))
    return concat([slice_axis(x, axis, 0, 1), rest], axis=axis)
