"""Convolutions, with TensorFlow's names and arguments.

``strides`` and ``dilations`` are one number for all axes of the window, one for each of them, or one for each axis of
the input.  ``padding`` is "VALID", "SAME", or pairs (before, after) for the same axes.  Inputs have their channels
last; ``data_format`` "NCW", "NCHW" and "NCDHW" say that they come first.  Filters are [*window, channels, outputs];
where the input has a multiple of a filter's channels, these are as many groups.  Operands are promoted to one dtype;
sums of float16 and bfloat16 are kept in float32 and rounded once.

Raises ShapeError for operands that do not fit, and for windows larger than the padded input.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hybridflow.array.linalg import matmul
from hybridflow.array.shapes import concat, pad
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ir.types import Extent, TensorType, is_static
from hybridflow.compiler.ops import convolution as ops
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import ArrayLike, PerAxis
from hybridflow.eager.dispatch import builder
from hybridflow.eager.operands import as_tensor, common_dtype, reshape_to, to_shape
from hybridflow.eager.public_op import operation
from hybridflow.errors import ArgumentError, DTypeError, ShapeError
from hybridflow.nn.window_geometry import channels_first, check_fits, each, images, padding_of, restored


@operation
def conv1d(
    input: ArrayLike,
    filters: ArrayLike,
    stride: PerAxis = 1,
    padding: str | Sequence[Any] = "VALID",
    data_format: str | None = None,
    dilations: PerAxis = 1,
) -> Tensor:
    """Convolution over sequences: windows over sequences [n, w, channels], times filters [k, channels, outputs].

    Args:
        input: a tensor with batch and channels around the axes of the window.
        filters: a tensor ``(*window, channels, outputs)``.
        stride: steps between windows: a number, or one for each axis.
        padding: ``"VALID"``, ``"SAME"``, or (before, after) for each axis.
        data_format: such as ``"NHWC"`` or ``"NCHW"``; channels last unless given.
        dilations: steps between the elements of a window: a number, or one for each axis.

    Returns:
        A tensor with ``outputs`` channels.

    Raises:
        ShapeError: if the shapes do not match.

    >>> hf.nn.conv1d([[[1.0], [2.0], [4.0]]], [[[1.0]], [[-1.0]]])
    <Tensor f32[1,2,1] cpu>
    [[[-1.]
      [-2.]]]
    """
    return convolved("conv1d", input, filters, stride, padding, data_format, dilations, 1)


@operation
def conv2d(
    input: ArrayLike,
    filters: ArrayLike,
    strides: PerAxis = 1,
    padding: str | Sequence[Any] = "VALID",
    data_format: str | None = None,
    dilations: PerAxis = 1,
) -> Tensor:
    """Convolution over images: windows over images [n, h, w, channels], times filters [kh, kw, channels, outputs].

    Args:
        input: a tensor with batch and channels around the axes of the window.
        filters: a tensor ``(*window, channels, outputs)``.
        strides: steps between windows: a number, or one for each axis.
        padding: ``"VALID"``, ``"SAME"``, or (before, after) for each axis.
        data_format: such as ``"NHWC"`` or ``"NCHW"``; channels last unless given.
        dilations: steps between the elements of a window: a number, or one for each axis.

    Returns:
        A tensor with ``outputs`` channels.

    Raises:
        ShapeError: if the shapes do not match.

    >>> hf.nn.conv2d(hf.ones((1, 3, 3, 1)), hf.ones((2, 2, 1, 1)), padding="SAME")[0, :, :, 0]
    <Tensor f32[3,3] cpu>
    [[4. 4. 2.]
     [4. 4. 2.]
     [2. 2. 1.]]
    """
    return convolved("conv2d", input, filters, strides, padding, data_format, dilations, 2)


@operation
def conv3d(
    input: ArrayLike,
    filters: ArrayLike,
    strides: PerAxis = 1,
    padding: str | Sequence[Any] = "VALID",
    data_format: str | None = None,
    dilations: PerAxis = 1,
) -> Tensor:
    """Convolution over volumes: windows over volumes [n, d, h, w, channels], times filters [kd, kh, kw, channels,
    outputs].

    Args:
        input: a tensor with batch and channels around the axes of the window.
        filters: a tensor ``(*window, channels, outputs)``.
        strides: steps between windows: a number, or one for each axis.
        padding: ``"VALID"``, ``"SAME"``, or (before, after) for each axis.
        data_format: such as ``"NHWC"`` or ``"NCHW"``; channels last unless given.
        dilations: steps between the elements of a window: a number, or one for each axis.

    Returns:
        A tensor with ``outputs`` channels.

    Raises:
        ShapeError: if the shapes do not match.

    >>> hf.nn.conv3d(hf.ones((1, 2, 2, 2, 3)), hf.ones((2, 2, 2, 3, 1))).shape
    (1, 1, 1, 1, 1)
    """
    return convolved("conv3d", input, filters, strides, padding, data_format, dilations, 3)


@operation
def convolution(
    input: ArrayLike,
    filters: ArrayLike,
    strides: PerAxis = 1,
    padding: str | Sequence[Any] = "VALID",
    data_format: str | None = None,
    dilations: PerAxis = 1,
    groups: int | None = None,
) -> Tensor:
    """Convolution: windows over one, two or three axes, as many as the filters have besides their channels.

    ``groups``, if given, must be the number that follows from the channels of both.

    Args:
        input: a tensor with batch and channels around the axes of the window.
        filters: a tensor ``(*window, channels, outputs)``.
        strides: steps between windows: a number, or one for each axis.
        padding: ``"VALID"``, ``"SAME"``, or (before, after) for each axis.
        data_format: such as ``"NHWC"`` or ``"NCHW"``; channels last unless given.
        dilations: steps between the elements of a window: a number, or one for each axis.
        groups: in how many groups channels are treated apart.

    Returns:
        A tensor with ``outputs`` channels.

    Raises:
        ShapeError: if the shapes do not match.

    >>> hf.nn.convolution(hf.ones((1, 5, 4)), hf.ones((3, 2, 6)), groups=2).shape
    (1, 3, 6)
    """
    filters = as_tensor(filters, "convolution")
    axes = filters.ndim - 2
    if axes not in (1, 2, 3):
        raise ShapeError("convolution", f"the filters are {filters.type}. Expected three to five axes.")
    return convolved("convolution", input, filters, strides, padding, data_format, dilations, axes, groups)


@operation
def depthwise_conv2d(
    input: ArrayLike,
    filter: object,
    strides: PerAxis = 1,
    padding: str | Sequence[Any] = "VALID",
    data_format: str | None = None,
    dilations: PerAxis = 1,
) -> Tensor:
    """Depthwise convolution over images.

    Each channel with filters of its own, [kh, kw, channels, multiplier]: channels * multiplier outputs.

    Args:
        input: a tensor with batch and channels around the axes of the window.
        filter: a tensor ``(kh, kw, channels, multiplier)``.
        strides: steps between windows: a number, or one for each axis.
        padding: ``"VALID"``, ``"SAME"``, or (before, after) for each axis.
        data_format: such as ``"NHWC"`` or ``"NCHW"``; channels last unless given.
        dilations: steps between the elements of a window: a number, or one for each axis.

    Returns:
        A tensor with ``channels * multiplier`` channels.

    Raises:
        ShapeError: if the shapes do not match.

    >>> hf.nn.depthwise_conv2d(hf.ones((1, 3, 3, 2)), hf.ones((2, 2, 2, 1))).shape
    (1, 2, 2, 2)
    """
    return depthwise("depthwise_conv2d", input, filter, strides, padding, data_format, dilations, 2)


@operation
def separable_conv2d(
    input: ArrayLike,
    depthwise_filter: ArrayLike,
    pointwise_filter: ArrayLike,
    strides: PerAxis = 1,
    padding: str | Sequence[Any] = "VALID",
    data_format: str | None = None,
    dilations: PerAxis = 1,
) -> Tensor:
    """Separable convolution over images: ``depthwise_conv2d``, and behind it ``pointwise_filter`` [1, 1, channels *
    multiplier, outputs].

    Args:
        input: a tensor with batch and channels around the axes of the window.
        depthwise_filter: a tensor ``(kh, kw, channels, multiplier)``.
        pointwise_filter: a tensor ``(1, 1, channels * multiplier, outputs)``.
        strides: steps between windows: a number, or one for each axis.
        padding: ``"VALID"``, ``"SAME"``, or (before, after) for each axis.
        data_format: such as ``"NHWC"`` or ``"NCHW"``; channels last unless given.
        dilations: steps between the elements of a window: a number, or one for each axis.

    Returns:
        A tensor with ``outputs`` channels.

    Raises:
        ShapeError: if the shapes do not match.

    >>> hf.nn.separable_conv2d(hf.ones((1, 3, 3, 2)), hf.ones((2, 2, 2, 1)), hf.ones((1, 1, 2, 5))).shape
    (1, 2, 2, 5)
    """
    stage = "separable_conv2d"
    seen = depthwise(stage, input, depthwise_filter, strides, padding, data_format, dilations, 2)
    return convolved(stage, seen, pointwise_filter, 1, "VALID", data_format, 1, 2)


@operation
def conv1d_transpose(
    input: ArrayLike,
    filters: ArrayLike,
    output_shape: object,
    strides: PerAxis = 1,
    padding: str | Sequence[Any] = "SAME",
    data_format: str | None = None,
    dilations: PerAxis = 1,
) -> Tensor:
    """Transposed convolution over sequences.

    The derivative of ``conv1d`` by its input: filters are [k, outputs, channels].

    Args:
        input: a tensor with batch and channels around the axes of the window.
        filters: a tensor ``(*window, outputs, channels)``.
        output_shape: the shape of the result, or its extents along the axes of the window.
        strides: steps between windows: a number, or one for each axis.
        padding: ``"VALID"``, ``"SAME"``, or (before, after) for each axis.
        data_format: such as ``"NHWC"`` or ``"NCHW"``; channels last unless given.
        dilations: steps between the elements of a window: a number, or one for each axis.

    Returns:
        A tensor of ``output_shape`` with ``outputs`` channels.

    Raises:
        ShapeError: if the shapes do not match.

    >>> hf.nn.conv1d_transpose([[[1.0], [2.0]]], [[[1.0]], [[10.0]]], (1, 4, 1), strides=2)[0, :, 0]
    <Tensor f32[4] cpu> [ 1. 10.  2. 20.]
    """
    return transposed("conv1d_transpose", input, filters, output_shape, strides, padding, data_format, dilations, 1)


@operation
def conv2d_transpose(
    input: ArrayLike,
    filters: ArrayLike,
    output_shape: object,
    strides: PerAxis = 1,
    padding: str | Sequence[Any] = "SAME",
    data_format: str | None = None,
    dilations: PerAxis = 1,
) -> Tensor:
    """Transposed convolution over images.

    The derivative of ``conv2d`` by its input: filters are [kh, kw, outputs, channels].

    ``output_shape`` is the shape of the result, or its extents along the axes of the window.

    Args:
        input: a tensor with batch and channels around the axes of the window.
        filters: a tensor ``(*window, outputs, channels)``.
        output_shape: the shape of the result, or its extents along the axes of the window.
        strides: steps between windows: a number, or one for each axis.
        padding: ``"VALID"``, ``"SAME"``, or (before, after) for each axis.
        data_format: such as ``"NHWC"`` or ``"NCHW"``; channels last unless given.
        dilations: steps between the elements of a window: a number, or one for each axis.

    Returns:
        A tensor of ``output_shape`` with ``outputs`` channels.

    Raises:
        ShapeError: if the shapes do not match.

    >>> hf.nn.conv2d_transpose(hf.ones((1, 2, 2, 3)), hf.ones((2, 2, 4, 3)), (1, 4, 4, 4), strides=2).shape
    (1, 4, 4, 4)
    """
    return transposed("conv2d_transpose", input, filters, output_shape, strides, padding, data_format, dilations, 2)


@operation
def conv3d_transpose(
    input: ArrayLike,
    filters: ArrayLike,
    output_shape: object,
    strides: PerAxis = 1,
    padding: str | Sequence[Any] = "SAME",
    data_format: str | None = None,
    dilations: PerAxis = 1,
) -> Tensor:
    """Transposed convolution over volumes.

    The derivative of ``conv3d`` by its input: filters are [kd, kh, kw, outputs, channels].

    Args:
        input: a tensor with batch and channels around the axes of the window.
        filters: a tensor ``(*window, outputs, channels)``.
        output_shape: the shape of the result, or its extents along the axes of the window.
        strides: steps between windows: a number, or one for each axis.
        padding: ``"VALID"``, ``"SAME"``, or (before, after) for each axis.
        data_format: such as ``"NHWC"`` or ``"NCHW"``; channels last unless given.
        dilations: steps between the elements of a window: a number, or one for each axis.

    Returns:
        A tensor of ``output_shape`` with ``outputs`` channels.

    Raises:
        ShapeError: if the shapes do not match.

    >>> hf.nn.conv3d_transpose(hf.ones((1, 1, 1, 1, 3)), hf.ones((2, 2, 2, 4, 3)), (2, 2, 2), strides=2).shape
    (1, 2, 2, 2, 4)
    """
    return transposed("conv3d_transpose", input, filters, output_shape, strides, padding, data_format, dilations, 3)


def _operands(stage: str, input: ArrayLike, filters: ArrayLike, axes: int) -> tuple[Tensor, Tensor]:
    x, f = common_dtype(stage, (input, filters))
    if dtypes.is_bool(x.dtype):
        raise DTypeError(stage, f"the input is {x.type}. Expected numbers; convert it with hf.astype first.")
    if f.ndim != axes + 2:
        raise ShapeError(stage, f"the filters are {f.type}. Expected {axes + 2} axes.")
    if is_static(f.shape) and 0 in f.shape[:axes]:
        raise ShapeError(stage, f"the filters are {f.type}. Expected windows of at least one element.")
    return x, f


def _geometry(
    stage: str,
    x: Tensor,
    extents: Any,
    size: Sequence[Any],
    strides: PerAxis,
    padding: str | Sequence[Any],
    dilations: PerAxis,
    first: bool,
) -> dict[str, Any]:
    """The attributes of the op for images with those extents, and windows of that size."""
    axes = len(size)
    step, dilation = each(stage, "strides", strides, axes, first), each(stage, "dilations", dilations, axes, first)
    low, high = padding_of(stage, padding, extents, tuple(size), step, dilation, first)
    check_fits(stage, x, extents, tuple((k - 1) * d + 1 for k, d in zip(size, dilation)), low, high)
    return {"step": step, "low": low, "high": high, "dilation": dilation}


def convolved(
    stage: str,
    input: ArrayLike,
    filters: ArrayLike,
    strides: PerAxis,
    padding: str | Sequence[Any],
    data_format: str | None,
    dilations: PerAxis,
    axes: int,
    groups: int | None = None,
) -> Tensor:
    """The convolution over ``axes`` axes that ``stage`` is."""
    x, f = _operands(stage, input, filters, axes)
    batch = images(stage, x, axes, data_format)
    channels, channels_in, outputs = batch.x.shape[-1], f.shape[-2], f.shape[-1]
    group_count = channels // channels_in if channels_in else 1
    if (
        channels != group_count * channels_in
        or (group_count and outputs % group_count)
        or (channels_in and not group_count)
    ):
        raise ShapeError(
            stage,
            f"the input is {x.type}, with {channels} channels, the filters are {f.type}, for {channels_in}. Expected "
            "equal numbers, or for groups a multiple of the filters', by which outputs can be divided.",
        )
    if groups is not None and groups != group_count:
        raise ArgumentError(
            stage, f"groups is {groups}, and the channels make {group_count} groups: {x.type} and {f.type}."
        )
    attrs = _geometry(stage, x, batch.extents, f.shape[:axes], strides, padding, dilations, batch.first)
    seen = reshape_to(batch.x, (*batch.x.shape[:-1], group_count, channels_in))
    out = builder.convolve(seen, reshape_to(f, (*f.shape[:-1], group_count, outputs // group_count)), **attrs)
    return restored(batch, reshape_to(out, (*out.shape[:-2], outputs)))


def convolve_integers(
    stage: str,
    x: Tensor,
    quantize_input: Callable[[Tensor], Tensor],
    matrix: Tensor,
    size: Sequence[int],
    finish: Callable[[Tensor], Tensor],
    strides: PerAxis,
    padding: str | Sequence[Any],
    data_format: str | None,
    dilations: PerAxis,
    axes: int,
    groups: int,
) -> Tensor:
    """What ``finish`` makes of a convolution of int8 images, with sums in int32 and channels last.

    ``quantize_input`` makes the images of padded floats.  The filters are a ``matrix``, ``[elements of a window,
    outputs]``.  Windows lie side by side: it is one product.
    """
    batch = images(stage, x, axes, data_format)
    geometry = _geometry(stage, x, batch.extents, size, strides, padding, dilations, batch.first)
    around = [(0, 0), *zip(geometry["low"], geometry["high"]), (0, 0)]
    x = quantize_input(pad(batch.x, around) if any(pair != (0, 0) for pair in around) else batch.x)
    parts = window_parts(x, size, geometry["step"], geometry["dilation"])
    channels, outputs = x.shape[-1] // groups, matrix.shape[-1] // groups
    sums = []
    for k in range(groups):
        cut = slice(k * channels, (k + 1) * channels)
        rows = parts if groups == 1 else [part[..., cut] for part in parts]
        filters = matrix if groups == 1 else matrix[:, k * outputs : (k + 1) * outputs]
        windows = concat(rows, axis=-1) if len(rows) > 1 else rows[0]
        sums.append(matmul(windows, filters, sum_dtype=dtypes.int32))
    return restored(batch, finish(concat(sums, axis=-1) if groups > 1 else sums[0]))


def window_parts(x: Tensor, size: Sequence[int], step: Sequence[int], dilation: Sequence[int]) -> list[Tensor]:
    """For each place in a window of ``[batch, *extents, channels]``, the elements that lie there."""
    parts = []
    for place in np.ndindex(*size):
        cuts = [slice(None)]
        for axis, (k, d, s, n) in enumerate(zip(place, dilation, step, size), 1):
            count = (x.shape[axis] - (n - 1) * d - 1) // s + 1
            cuts.append(slice(k * d, k * d + (count - 1) * s + 1, s))
        parts.append(x[tuple(cuts)])
    return parts


def depthwise(
    stage: str,
    input: ArrayLike,
    filter: Any,
    strides: PerAxis,
    padding: str | Sequence[Any],
    data_format: str | None,
    dilations: PerAxis,
    axes: int,
) -> Tensor:
    """Each channel with filters of its own, over ``axes`` axes."""
    x, f = _operands(stage, input, filter, axes)
    batch = images(stage, x, axes, data_format)
    if batch.x.shape[-1] != f.shape[-2]:
        raise ShapeError(
            stage,
            f"the input is {x.type}, with {batch.x.shape[-1]} channels, the filter is {f.type}, for {f.shape[-2]}. "
            "Expected equal numbers.",
        )
    attrs = _geometry(stage, x, batch.extents, f.shape[:axes], strides, padding, dilations, batch.first)
    seen = reshape_to(batch.x, (*batch.x.shape, 1))
    out = builder.convolve(seen, reshape_to(f, (*f.shape[:axes], 1, *f.shape[axes:])), **attrs)
    return restored(batch, reshape_to(out, (*out.shape[:-2], f.shape[-2] * f.shape[-1])))


def transposed(
    stage: str,
    input: ArrayLike,
    filters: ArrayLike,
    output_shape: object,
    strides: PerAxis,
    padding: str | Sequence[Any],
    data_format: str | None,
    dilations: PerAxis,
    axes: int,
) -> Tensor:
    """The derivative of a convolution over ``axes`` axes by its input."""
    x, f = _operands(stage, input, filters, axes)
    batch = images(stage, x, axes, data_format)
    outputs, channels = f.shape[-2:]
    if batch.x.shape[-1] != channels:
        raise ShapeError(
            stage,
            f"the input is {x.type}, with {batch.x.shape[-1]} channels, the filters are {f.type}, for {channels}. "
            "Expected equal numbers.",
        )
    extents = _output_extents(stage, output_shape, axes, batch.x.shape[0], outputs, data_format)
    attrs = _geometry(stage, x, extents, f.shape[:axes], strides, padding, dilations, batch.first)
    spans = [(k - 1) * d + 1 for k, d in zip(f.shape, attrs["dilation"])]
    places = tuple(
        (n + low + high - span) // step + 1
        for n, low, high, span, step in zip(extents, attrs["low"], attrs["high"], spans, attrs["step"])
    )
    if places != tuple(batch.extents):
        raise ShapeError(
            stage,
            f"the input is {x.type}; windows over an output of {list(extents)} have {list(places)} places. Expected "
            "the extents of the input. Choose another output_shape.",
        )
    cotangents = reshape_to(batch.x, (*batch.x.shape[:-1], 1, channels))
    image = TensorType((batch.x.shape[0], *extents, 1, outputs), x.dtype)
    filter = reshape_to(f, (*f.shape[:-1], 1, channels))
    out = ops.to_image(builder, cotangents, filter, image, {**attrs, "interior": (0,) * axes})
    return restored(batch, reshape_to(out, (*out.shape[:-2], outputs)))


def _output_extents(
    stage: str, output_shape: object, axes: int, count: Extent, outputs: object, data_format: str | None
) -> Sequence[Any]:
    shape = to_shape(output_shape, stage)
    first = channels_first(stage, axes, data_format)
    if len(shape) == axes:
        return shape
    if len(shape) < axes + 2:
        raise ArgumentError(stage, f"output_shape is {shape}. Expected {axes} or {axes + 2} extents.")
    extents = shape[-axes:] if first else shape[-axes - 1 : -1]
    leading: Any = 1
    for extent in shape[: -axes - 1]:
        leading = leading * extent
    if leading != count or shape[-axes - 1 if first else -1] != outputs:
        raise ShapeError(
            stage,
            f"output_shape is {shape}. Expected {count} examples of {outputs} channels, as input and filters have.",
        )
    return extents
