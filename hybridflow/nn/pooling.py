"""Pooling, with TensorFlow's names and arguments: the maximum or the mean of each window.

``ksize`` and ``strides`` are one number for all axes of the window, one for each of them, or one for each axis of the
input; ``padding`` is "VALID", "SAME", or pairs (before, after) for the same axes.  What is padded is in no maximum, and
does not count in a mean.  Of equal maxima the first one has the derivative.

Raises ShapeError for an input that has too few axes, and for windows larger than the padded input.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hybridflow.array.creation import ones
from hybridflow.array.elementwise import add, divide, maximum
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ir.extents import Dim, Extent
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import ArrayLike, PerAxis
from hybridflow.eager.dispatch import builder
from hybridflow.eager.operands import as_tensor, cast, float_operand
from hybridflow.eager.public_op import operation
from hybridflow.errors import ArgumentError, ShapeError
from hybridflow.nn.window_geometry import Each, check_fits, each, images, padding_of, restored


@operation
def max_pool1d(
    input: ArrayLike, ksize: PerAxis, strides: PerAxis, padding: str | Sequence[Any], data_format: str | None = None
) -> Tensor:
    """Max pooling over sequences: the largest element of each window over sequences [n, w, channels].

    Args:
        input: a tensor with batch and channels around the axes of the window.
        ksize: the size of the window: a number, or one for each axis.
        strides: steps between windows: a number, or one for each axis.
        padding: ``"VALID"``, ``"SAME"``, or (before, after) for each axis.
        data_format: such as ``"NHWC"`` or ``"NCHW"``; channels last unless given.

    Returns:
        A tensor in the dtype of ``input``, an element for each window and channel.

    Raises:
        ShapeError: if the shapes do not match.

    >>> hf.nn.max_pool1d([[[1.0], [3.0], [2.0]]], 2, 1, "VALID")[0, :, 0]
    <Tensor f32[2] cpu> [3. 3.]
    """
    return largest("max_pool1d", as_tensor(input, "max_pool1d"), ksize, strides, padding, data_format, 1)


@operation
def max_pool2d(
    input: ArrayLike, ksize: PerAxis, strides: PerAxis, padding: str | Sequence[Any], data_format: str | None = None
) -> Tensor:
    """Max pooling over images: the largest element of each window over images [n, h, w, channels].

    Args:
        input: a tensor with batch and channels around the axes of the window.
        ksize: the size of the window: a number, or one for each axis.
        strides: steps between windows: a number, or one for each axis.
        padding: ``"VALID"``, ``"SAME"``, or (before, after) for each axis.
        data_format: such as ``"NHWC"`` or ``"NCHW"``; channels last unless given.

    Returns:
        A tensor in the dtype of ``input``, an element for each window and channel.

    Raises:
        ShapeError: if the shapes do not match.

    >>> hf.nn.max_pool2d(hf.reshape(hf.arange(16.0), (1, 4, 4, 1)), 2, 2, "VALID")[0, :, :, 0]
    <Tensor f32[2,2] cpu>
    [[ 5.  7.]
     [13. 15.]]
    """
    return largest("max_pool2d", as_tensor(input, "max_pool2d"), ksize, strides, padding, data_format, 2)


@operation
def max_pool3d(
    input: ArrayLike, ksize: PerAxis, strides: PerAxis, padding: str | Sequence[Any], data_format: str | None = None
) -> Tensor:
    """Max pooling over volumes: the largest element of each window over volumes [n, d, h, w, channels].

    Args:
        input: a tensor with batch and channels around the axes of the window.
        ksize: the size of the window: a number, or one for each axis.
        strides: steps between windows: a number, or one for each axis.
        padding: ``"VALID"``, ``"SAME"``, or (before, after) for each axis.
        data_format: such as ``"NHWC"`` or ``"NCHW"``; channels last unless given.

    Returns:
        A tensor in the dtype of ``input``, an element for each window and channel.

    Raises:
        ShapeError: if the shapes do not match.

    >>> hf.nn.max_pool3d(hf.ones((1, 4, 4, 4, 2)), 2, 2, "VALID").shape
    (1, 2, 2, 2, 2)
    """
    return largest("max_pool3d", as_tensor(input, "max_pool3d"), ksize, strides, padding, data_format, 3)


@operation
def max_pool(
    input: ArrayLike, ksize: PerAxis, strides: PerAxis, padding: str | Sequence[Any], data_format: str | None = None
) -> Tensor:
    """Max pooling over one, two or three axes.

    The largest element of each window over one, two or three axes: those of the input but the first and the last.

    Args:
        input: a tensor with batch and channels around the axes of the window.
        ksize: the size of the window: a number, or one for each axis.
        strides: steps between windows: a number, or one for each axis.
        padding: ``"VALID"``, ``"SAME"``, or (before, after) for each axis.
        data_format: such as ``"NHWC"`` or ``"NCHW"``; channels last unless given.

    Returns:
        A tensor in the dtype of ``input``, an element for each window and channel.

    Raises:
        ShapeError: if the shapes do not match.

    >>> hf.nn.max_pool([[[1.0], [3.0], [2.0]]], 2, 1, "SAME")[0, :, 0]
    <Tensor f32[3] cpu> [3. 3. 2.]
    """
    x = as_tensor(input, "max_pool")
    return largest("max_pool", x, ksize, strides, padding, data_format, _axes("max_pool", x))


@operation
def avg_pool1d(
    input: ArrayLike, ksize: PerAxis, strides: PerAxis, padding: str | Sequence[Any], data_format: str | None = None
) -> Tensor:
    """Average pooling over sequences: the mean of each window over sequences [n, w, channels].

    Args:
        input: a tensor with batch and channels around the axes of the window.
        ksize: the size of the window: a number, or one for each axis.
        strides: steps between windows: a number, or one for each axis.
        padding: ``"VALID"``, ``"SAME"``, or (before, after) for each axis.
        data_format: such as ``"NHWC"`` or ``"NCHW"``; channels last unless given.

    Returns:
        A tensor in the dtype of ``input``, an element for each window and channel.

    Raises:
        ShapeError: if the shapes do not match.

    >>> hf.nn.avg_pool1d([[[1.0], [3.0], [2.0]]], 2, 1, "SAME")[0, :, 0]
    <Tensor f32[3] cpu> [2.  2.5 2. ]
    """
    return average("avg_pool1d", float_operand(input, "avg_pool1d"), ksize, strides, padding, data_format, 1)


@operation
def avg_pool2d(
    input: ArrayLike, ksize: PerAxis, strides: PerAxis, padding: str | Sequence[Any], data_format: str | None = None
) -> Tensor:
    """Average pooling over images: the mean of each window over images [n, h, w, channels].

    Args:
        input: a tensor with batch and channels around the axes of the window.
        ksize: the size of the window: a number, or one for each axis.
        strides: steps between windows: a number, or one for each axis.
        padding: ``"VALID"``, ``"SAME"``, or (before, after) for each axis.
        data_format: such as ``"NHWC"`` or ``"NCHW"``; channels last unless given.

    Returns:
        A tensor in the dtype of ``input``, an element for each window and channel.

    Raises:
        ShapeError: if the shapes do not match.

    >>> hf.nn.avg_pool2d(hf.reshape(hf.arange(16.0), (1, 4, 4, 1)), 2, 2, "VALID")[0, :, :, 0]
    <Tensor f32[2,2] cpu>
    [[ 2.5  4.5]
     [10.5 12.5]]
    """
    return average("avg_pool2d", float_operand(input, "avg_pool2d"), ksize, strides, padding, data_format, 2)


@operation
def avg_pool3d(
    input: ArrayLike, ksize: PerAxis, strides: PerAxis, padding: str | Sequence[Any], data_format: str | None = None
) -> Tensor:
    """Average pooling over volumes: the mean of each window over volumes [n, d, h, w, channels].

    Args:
        input: a tensor with batch and channels around the axes of the window.
        ksize: the size of the window: a number, or one for each axis.
        strides: steps between windows: a number, or one for each axis.
        padding: ``"VALID"``, ``"SAME"``, or (before, after) for each axis.
        data_format: such as ``"NHWC"`` or ``"NCHW"``; channels last unless given.

    Returns:
        A tensor in the dtype of ``input``, an element for each window and channel.

    Raises:
        ShapeError: if the shapes do not match.

    >>> hf.nn.avg_pool3d(hf.ones((1, 4, 4, 4, 2)), 2, 2, "VALID").shape
    (1, 2, 2, 2, 2)
    """
    return average("avg_pool3d", float_operand(input, "avg_pool3d"), ksize, strides, padding, data_format, 3)


@operation
def avg_pool(
    input: ArrayLike, ksize: PerAxis, strides: PerAxis, padding: str | Sequence[Any], data_format: str | None = None
) -> Tensor:
    """Average pooling over one, two or three axes.

    The mean of each window over one, two or three axes: those of the input but the first and the last.

    Args:
        input: a tensor with batch and channels around the axes of the window.
        ksize: the size of the window: a number, or one for each axis.
        strides: steps between windows: a number, or one for each axis.
        padding: ``"VALID"``, ``"SAME"``, or (before, after) for each axis.
        data_format: such as ``"NHWC"`` or ``"NCHW"``; channels last unless given.

    Returns:
        A tensor in the dtype of ``input``, an element for each window and channel.

    Raises:
        ShapeError: if the shapes do not match.

    >>> hf.nn.avg_pool([[[1.0], [3.0], [2.0]]], 2, 1, "VALID")[0, :, 0]
    <Tensor f32[2] cpu> [2.  2.5]
    """
    x = float_operand(input, "avg_pool")
    return average("avg_pool", x, ksize, strides, padding, data_format, _axes("avg_pool", x))


def _axes(stage: str, x: Tensor) -> int:
    if not 3 <= x.ndim <= 5:
        raise ShapeError(stage, f"the input is {x.type}. Expected three to five axes.")
    return x.ndim - 2


def _folded(combine: Callable[[Any, Any], Tensor], x: Tensor, axis: int, size: int, step: int) -> Tensor:
    """Elements of each window along one axis, combined in their order."""
    extent: Any = x.shape[axis]
    count = (extent - size) // step + 1
    if isinstance(count, int) and count < 1:  # of no places
        return _cut(x, axis, 0, 0, 1)
    result: Tensor | None = None
    for first in range(size):
        part = _cut(x, axis, first, first + (count - 1) * step + 1, step)
        result = part if result is None else combine(result, part)
    assert result is not None
    return result


def _cut(x: Tensor, axis: int, first: int, stop: Extent, step: int) -> Tensor:
    """Every ``step``-th row along one axis."""
    starts = tuple(first if a == axis else 0 for a in range(x.ndim))
    stops = tuple(stop if a == axis else n for a, n in enumerate(x.shape))
    steps = tuple(step if a == axis else 1 for a in range(x.ndim))
    return builder.slice(x, start=starts, stop=stops, step=steps)


def _padded(x: Tensor, low: Sequence[Extent], high: Sequence[Extent], value: ArrayLike) -> Tensor:
    if not _is_padded(low, high):
        return x
    return builder.pad(x, low=(0, *low, 0), high=(0, *high, 0), interior=(0,) * x.ndim, value=value)


def _is_padded(low: Sequence[Extent], high: Sequence[Extent]) -> bool:
    """Whether anything may be put around: of what depends on open extents, as on whether they are odd, nobody asks."""
    return any(isinstance(n, Dim) or n != 0 for n in (*low, *high))


def _over_windows(combine: Callable[[Any, Any], Tensor], x: Tensor, size: Each, step: Each) -> Tensor:
    """The last axis first, so that elements come in row-major order: the first of equal maxima is the first one."""
    for axis in range(len(size), 0, -1):
        if size[axis - 1] > 1 or step[axis - 1] > 1:
            x = _folded(combine, x, axis, size[axis - 1], step[axis - 1])
    return x


def _geometry(
    stage: str,
    x: Tensor,
    extents: Any,
    ksize: Any,
    strides: PerAxis,
    padding: str | Sequence[Any],
    first: bool,
) -> Any:
    axes = len(extents)
    size, step = each(stage, "ksize", ksize, axes, first), each(stage, "strides", strides, axes, first)
    low, high = padding_of(stage, padding, extents, size, step, (1,) * axes, first)
    if not isinstance(padding, str) and any(max(pair) >= k for k, *pair in zip(size, low, high)):
        raise ArgumentError(stage, f"padding is {padding} for windows of {size}. Expected less than a window takes.")
    check_fits(stage, x, extents, size, low, high)
    return size, step, low, high


def largest(
    stage: str,
    x: Tensor,
    ksize: PerAxis,
    strides: PerAxis,
    padding: str | Sequence[Any],
    data_format: str | None,
    axes: int,
) -> Tensor:
    """The largest element of each window over ``axes`` axes."""
    batch = images(stage, x, axes, data_format)
    size, step, low, high = _geometry(stage, x, batch.extents, ksize, strides, padding, batch.first)
    if dtypes.is_float(x.dtype):
        least: Any = -float("inf")
    else:
        least = bool(0) if dtypes.is_bool(x.dtype) else int(np.iinfo(x.dtype).min)
    maxima = _over_windows(maximum, _padded(batch.x, low, high, least), size, step)
    return restored(batch, maxima)


def average(
    stage: str,
    x: Tensor,
    ksize: PerAxis,
    strides: PerAxis,
    padding: str | Sequence[Any],
    data_format: str | None,
    axes: int,
) -> Tensor:
    """The mean of each window over ``axes`` axes."""
    batch = images(stage, x, axes, data_format)
    size, step, low, high = _geometry(stage, x, batch.extents, ksize, strides, padding, batch.first)
    wide = cast(batch.x, dtypes.compute_dtype(x.dtype))
    total = _over_windows(add, _padded(wide, low, high, 0), size, step)
    if _is_padded(low, high):
        counted = _padded(ones((1, *batch.extents, 1), dtype=wide.dtype), low, high, 0)
        mean = divide(total, _over_windows(add, counted, size, step))
    else:
        mean = divide(total, int(np.prod(size)))
    return restored(batch, cast(mean, x.dtype))
