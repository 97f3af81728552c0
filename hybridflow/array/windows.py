"""Windows that slide over a tensor, and reductions of each of them."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hybridflow.array.creation import iota
from hybridflow.array.elementwise import add, divide, less, maximum, minimum, multiply, where
from hybridflow.array.shapes import moveaxis, pad, slice_axis, stack
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ir.types import product
from hybridflow.compiler.ops import TABLE, type_rules
from hybridflow.core.promotion import default_int
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import ArrayLike, AxisLike, PerAxis
from hybridflow.eager.dispatch import apply
from hybridflow.eager.operands import as_tensor, cast, float_operand, reshape_to
from hybridflow.eager.public_op import operation
from hybridflow.errors import ArgumentError, ShapeError

Each = tuple[int, ...]


def _each(stage: str, what: str, value: ArrayLike, count: int) -> Each:
    """A number for each axis: given so, or one for all of them."""
    several = tuple(value) if isinstance(value, (list, tuple)) else (value,) * count
    numbers = tuple(type_rules.integer(stage, what, n) for n in several)
    if len(numbers) != count or builtins.min(numbers, default=1) < 1:
        raise ArgumentError(stage, f"{what} is {value!r}. Expected {count} numbers, 1 or more.")
    return numbers


def _axes(stage: str, x: Tensor, size: Any, axis: AxisLike) -> tuple[Each, Each]:
    """The axes that windows slide along, and how long a window is along each."""
    if axis is None:
        axes = tuple(range(x.ndim))
    else:
        axes_listed = axis if isinstance(axis, (list, tuple)) else (axis,)
        axes = tuple(type_rules.axis(stage, x.type, a) for a in axes_listed)
    if axis is None and not isinstance(size, (list, tuple)) and x.ndim != 1:
        raise ArgumentError(stage, f"a window of {size!r} for {x.type}. Say along which axis it slides.")
    return axes, _each(stage, "window_shape", size, len(axes))


@operation
def sliding_window_view(x: ArrayLike, window_shape: PerAxis, axis: AxisLike = None) -> Tensor:
    """Sliding windows: all parts of a size, one next to the other.

    No element is copied where what comes next is compiled with it.

    Args:
        x: a tensor, array, nested list or number.
        window_shape: how many elements a window has along each axis that it slides along.
        axis: the axes that it slides along, which may come twice; all of them unless given.

    Returns:
        A tensor in the dtype of ``x``: its axes, which count the windows, and behind them the axes of a window.

    Raises:
        AxisError: for an axis out of range.
        ArgumentError: where there are not as many numbers as axes, or one is below 1.
        ShapeError: for a window that is larger than ``x``.

    >>> hf.sliding_window_view([1, 2, 3, 4], 3)
    <Tensor i64[2,3] cpu>
    [[1 2 3]
     [2 3 4]]
    """
    stage = "sliding_window_view"
    x = as_tensor(x, stage)
    axes, size = _axes(stage, x, window_shape, axis)
    ndim = x.ndim
    for a, n in zip(axes, size):
        x = _windows(stage, x, a, n, ndim)
    return x


def _windows(stage: str, x: Tensor, axis: int, size: int, ndim: int) -> Tensor:
    """Windows along one of the first ``ndim`` axes; their elements lie along a new last axis."""
    extent = x.shape[axis]
    if extent < size:
        raise ShapeError(stage, f"a window takes {size} elements along axis {axis} of {x.type}, which has fewer.")
    if isinstance(extent, int):
        seen = apply(TABLE["windows"], x, axes=(axis,), size=(size,), step=(1,), dilation=(1,))
        return moveaxis(seen, axis + 1, -1)
    count = extent - size + 1
    return stack([slice_axis(x, axis, k, k + count) for k in range(size)], axis=-1)


def _join(reduction: str, x: Tensor) -> tuple[Callable[[Any, Any], Tensor], Any]:
    """How two partial results are joined, and that of nothing."""
    if reduction in ("max", "min"):
        larger = reduction == "max"
        if dtypes.is_float(x.dtype):
            least: object = -math.inf if larger else math.inf
        elif dtypes.is_bool(x.dtype):
            least = not larger
        else:
            limits = np.iinfo(x.dtype)
            least = int(limits.min if larger else limits.max)
        return (maximum if larger else minimum), least
    return (multiply, 1) if reduction == "prod" else (add, 0)


_REDUCTIONS = ("sum", "mean", "max", "min", "prod")


def _checked(stage: str, reduction: object) -> str:
    if reduction not in _REDUCTIONS:
        raise ArgumentError(stage, f"reduction is {reduction!r}. Expected one of {', '.join(map(repr, _REDUCTIONS))}.")
    return str(reduction)


def _operand(stage: str, x: ArrayLike, reduction: str) -> Tensor:
    """What is reduced: means of floats; sums and products of bools as int64."""
    if reduction == "mean":
        return float_operand(x, stage)
    x = as_tensor(x, stage)
    return cast(x, default_int) if dtypes.is_bool(x.dtype) and reduction in ("sum", "prod") else x


@operation
def reduce_window(
    x: ArrayLike,
    window_shape: PerAxis,
    reduction: str = "max",
    axis: AxisLike = None,
    *,
    strides: ArrayLike = 1,
    dilation: ArrayLike = 1,
    padding: str | Sequence[Any] = "valid",
) -> Tensor:
    """Reduction of each window: pooling with any reduction, over any axes.

    What is padded is not counted. Of equal extremes the first has the derivative.

    Args:
        x: a tensor, array, nested list or number.
        window_shape: how many elements a window has along each axis that it slides along.
        reduction: "sum", "mean", "max", "min" or "prod".
        axis: the axes that it slides along; all of them unless given.
        strides: steps between windows: a number, or one for each axis.
        dilation: steps between the elements of a window: a number, or one for each axis.
        padding: "valid", "same" for as many windows as elements over strides, or (before, after) for each axis.

    Returns:
        A tensor in the dtype of ``x``, with an element for each window; means of integers are float32, sums of bools
        int64.

    Raises:
        AxisError: for an axis out of range.
        ArgumentError: for another reduction, and where there are not as many numbers as axes.
        ShapeError: for a window that is larger than what is padded.

    >>> hf.reduce_window([1, 5, 2, 4], 2, "max", strides=2)
    <Tensor i64[2] cpu> [5 4]
    >>> hf.reduce_window([[1.0, 2.0], [3.0, 4.0]], (2, 2), "sum", padding="same")
    <Tensor f32[2,2] cpu>
    [[10.  6.]
     [ 7.  4.]]
    """
    stage = "reduce_window"
    reduction = _checked(stage, reduction)
    x = _operand(stage, x, reduction)
    axes, size = _axes(stage, x, window_shape, axis)
    if len(set(axes)) < len(axes):
        raise ArgumentError(stage, f"axes are {axes}. Expected each once.")
    steps, apart = _each(stage, "strides", strides, len(axes)), _each(stage, "dilation", dilation, len(axes))
    spans = tuple((n - 1) * d + 1 for n, d in zip(size, apart))
    pairs = _pairs(stage, padding, x, axes, spans, steps)
    dtype = x.dtype
    wide = cast(x, dtypes.compute_dtype(dtype)) if reduction in ("sum", "mean", "prod") else x
    result = _reduced(stage, reduction, wide, axes, size, steps, apart, pairs)
    if reduction == "mean":
        if builtins.any(n != 0 for pair in pairs for n in pair):
            ones = cast(as_tensor(np.ones((1,) * x.ndim), stage), wide.dtype)
            counted = apply(TABLE["broadcast"], reshape_to(ones, ()), shape=x.shape, axes=())
            result = divide(result, _reduced(stage, "sum", counted, axes, size, steps, apart, pairs))
        else:
            result = divide(result, product(size))
    return cast(result, dtype)


def _pairs(stage: str, padding: Any, x: Tensor, axes: Each, spans: Each, steps: Each) -> list[tuple[Any, Any]]:
    """How much is padded before and behind, along each axis."""
    if isinstance(padding, str) and padding.lower() == "valid":
        return [(0, 0)] * len(axes)
    if isinstance(padding, str) and padding.lower() == "same":
        pairs: list[tuple[Any, Any]] = []
        for a, span, step in zip(axes, spans, steps):
            extent: Any = x.shape[a]
            total = (-(-extent // step) - 1) * step + span - extent
            total = total if total > 0 else 0
            pairs.append((total // 2, total - total // 2))
        return pairs
    if isinstance(padding, str) or len(padding) != len(axes) or builtins.any(np.shape(p) != (2,) for p in padding):
        raise ArgumentError(stage, f"padding is {padding!r}. Expected 'valid', 'same' or a pair for each axis.")
    pair_list = [tuple(type_rules.integer(stage, "padding", n) for n in pair) for pair in padding]
    if builtins.any(n < 0 for pair in pair_list for n in pair):
        raise ArgumentError(stage, f"padding is {padding!r}. Expected numbers of 0 or more.")
    return [(low, high) for low, high in pair_list]


def _reduced(
    stage: str, reduction: str, x: Tensor, axes: Each, size: Each, steps: Each, apart: Each, pairs: Sequence[Any]
) -> Tensor:
    """Axis after axis, the last one first, so that elements come in row-major order."""
    join, nothing = _join(reduction, x)
    around = dict(zip(axes, pairs))
    if builtins.any(n != 0 for pair in pairs for n in pair):
        x = pad(x, [around.get(a, (0, 0)) for a in range(x.ndim)], constant_values=nothing)
    for a, n, step, d in sorted(zip(axes, size, steps, apart), reverse=True):
        extent: Any = x.shape[a]
        span = (n - 1) * d + 1
        if extent < span:
            raise ShapeError(stage, f"a window takes {span} elements along axis {a} of {x.type}, which has fewer.")
        count = (extent - span) // step + 1
        if d == 1 and n >= _MANY:
            x = _of_long_windows(join, nothing, x, a, n)
            x = slice_axis(x, a, 0, (count - 1) * step + 1, step)
        else:
            parts = [slice_axis(x, a, k * d, k * d + (count - 1) * step + 1, step) for k in range(n)]
            x = parts[0]
            for part in parts[1:]:
                x = join(x, part)
    return x


_MANY = 24  # elements of a window from which two running reductions are faster than one after another
_SCANS = {maximum: "cumulative_max", minimum: "cumulative_min", add: "cumulative_sum"}


def _of_long_windows(join: Callable[..., Any], nothing: ArrayLike, x: Tensor, axis: int, size: int) -> Tensor:
    """Windows next to each other, each the end of one block and the beginning of the next one (van Herk): what is
    read off two running reductions of blocks as long as a window."""
    extent: Any = x.shape[axis]
    count = extent - size + 1
    blocks = (extent + size - 1) // size
    x = pad(x, [(0, blocks * size - extent if a == axis else 0) for a in range(x.ndim)], constant_values=nothing)
    before, after = x.shape[:axis], x.shape[axis + 1 :]
    split = reshape_to(x, (*before, blocks, size, *after))
    begins = reshape_to(_running(join, split, axis + 1), x.shape)
    turned = apply(TABLE["reverse"], split, axes=(axis + 1,))
    ends = reshape_to(apply(TABLE["reverse"], _running(join, turned, axis + 1), axes=(axis + 1,)), x.shape)
    head, tail = slice_axis(ends, axis, 0, count), slice_axis(begins, axis, size - 1, size - 1 + count)
    if join is maximum or join is minimum:
        return join(head, tail)
    # The window that is a block is in both.
    whole = apply(TABLE["iota"], shape=(count,), axis=0, dtype=default_int) % size
    shown = reshape_to(whole, (count, *(1 for _ in after)))
    return where(shown == 0, tail, join(head, tail))


def _running(join: Callable[..., Tensor], x: Tensor, axis: int) -> Tensor:
    if join is multiply:
        return multiply(apply(TABLE["exclusive_product"], x, axis=axis), x)
    return apply(TABLE[_SCANS[join]], x, axis=axis)


@operation
def rolling(
    x: ArrayLike, window: int, reduction: str = "mean", axis: int = -1, *, min_count: int | None = None
) -> Tensor:
    """Rolling reduction: of each element and those before it, as many as a window has.

    Args:
        x: a tensor, array, nested list or number.
        window: how many elements a window has.
        reduction: "sum", "mean", "max", "min" or "prod".
        axis: the axis to go along; negative ones count from the end.
        min_count: how many elements a result needs at least; a whole window unless given.

    Returns:
        A float tensor of the shape of ``x``; NaN where there are too few elements.

    Raises:
        AxisError: for an axis out of range.
        ArgumentError: for another reduction, a window below 1, and a ``min_count`` outside of it.

    >>> hf.rolling([1.0, 2.0, 6.0, 4.0], 2)
    <Tensor f32[4] cpu> [nan 1.5 4.  5. ]
    >>> hf.rolling([1.0, 2.0, 6.0, 4.0], 2, "max", min_count=1)
    <Tensor f32[4] cpu> [1. 2. 6. 6.]
    """
    stage = "rolling"
    reduction = _checked(stage, reduction)
    x = float_operand(x, stage)
    axis = type_rules.axis(stage, x.type, axis)
    (size,) = _each(stage, "window", window, 1)
    least = size if min_count is None else type_rules.integer(stage, "min_count", min_count)
    if not 1 <= least <= size:
        raise ArgumentError(stage, f"min_count is {least}. Expected 1 to {size}.")
    wide = cast(x, dtypes.compute_dtype(x.dtype))
    result = _reduced(stage, reduction, wide, (axis,), (size,), (1,), (1,), [(size - 1, 0)])
    if least == 1 and reduction != "mean":
        return cast(result, x.dtype)
    place = iota(x.shape, axis, default_int)
    if reduction == "mean":
        result = divide(result, cast(minimum(place + 1, size), wide.dtype))
    return cast(where(less(place, least - 1), math.nan, result), x.dtype)
