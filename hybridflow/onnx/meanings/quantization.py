"""Quantised operators: products of bytes are summed in int32, without being widened before."""

from __future__ import annotations

from typing import Any

import numpy as np

from hybridflow.array import elementwise as ew, reductions, shapes
from hybridflow.array.creation import zeros
from hybridflow.array.linalg import matmul
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ops import packed_panels
from hybridflow.core.tensor import Tensor
from hybridflow.nn.convolution import window_parts
from hybridflow.onnx.library import dtype_of
from hybridflow.onnx.meanings.elementwise import converted
from hybridflow.onnx.meanings.shapes import axis_of
from hybridflow.onnx.meanings.windows import laid, pairs_of
from hybridflow.onnx.operators import operator
from hybridflow.onnx.running import Call, ChannelsLast
from hybridflow.runtime.machine import host_target


def _along(call: Call, x: Tensor, part: Tensor, axis: int, block: int) -> Tensor:
    """Scales or zero points, spread over what they are of."""
    if part.ndim == 0 or (part.ndim == 1 and not block and part.shape[0] == 1):
        return shapes.reshape(part, ())
    axis = axis_of(call, axis, x.ndim)
    if not block:
        return shapes.reshape(part, tuple(-1 if k == axis else 1 for k in range(x.ndim)))
    from hybridflow.array.selection import repeat

    return shapes.slice_axis(repeat(part, block, axis=axis), axis, 0, x.shape[axis])


def _limits(dtype: np.dtype[Any]) -> tuple[int, int]:
    return dtypes.limits(dtype)


def quantized(x: Tensor, scale: Tensor, zero: Tensor | None, dtype: np.dtype[Any], saturate: bool = True) -> Tensor:
    if dtypes.is_float(dtypes.wide_dtype(dtype)):
        wide = ew.divide(x, scale)
        if zero is not None:
            wide = wide + ew.astype(zero, wide.dtype)
        return converted(wide, dtype, saturate)
    low, high = _limits(dtype)
    wide = ew.round(ew.divide(x, scale))
    if zero is not None:
        wide = wide + ew.astype(zero, wide.dtype)
    return ew.astype(ew.minimum(ew.maximum(wide, low), high), dtype)


@operator("QuantizeLinear", since=10)
def quantize(
    call: Call,
    x: Tensor,
    scale: Tensor,
    zero: Tensor | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
    precision: int = 0,
    saturate: int = 1,
) -> Tensor:
    if zero is not None:
        dtype = zero.dtype
    else:
        dtype = dtype_of(output_dtype) if output_dtype else np.dtype(np.uint8)
    x = ew.astype(x, dtypes.float32) if dtypes.is_integer(x.dtype) else x
    by = dtype_of(precision) if precision else scale.dtype
    scale = _along(call, x, scale, axis, block_size)
    zero = None if zero is None else _along(call, x, zero, axis, block_size)
    return quantized(ew.astype(x, by), ew.astype(scale, by), zero, dtype, bool(saturate))


@operator("DequantizeLinear", since=10)
def dequantize(
    call: Call,
    x: Tensor,
    scale: Tensor,
    zero: Tensor | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
) -> Tensor:
    to = dtype_of(output_dtype) if output_dtype else scale.dtype
    by = _along(call, x, scale, axis, block_size)
    if zero is not None:
        origin = _along(call, x, zero, axis, block_size)
        if dtypes.is_integer(dtypes.wide_dtype(x.dtype)):
            x = ew.astype(x, dtypes.int32) - ew.astype(origin, dtypes.int32)
        elif dtypes.is_stored(x.dtype):
            x = ew.astype(x, dtypes.float32) - ew.astype(origin, dtypes.float32)
        else:
            x = x - origin
    return ew.astype(ew.astype(x, scale.dtype) * by, to)


def extremes(x: Tensor) -> tuple[Tensor, Tensor]:
    """The least and the largest number, and 0 at least between them.  Lines are folded first: of open extents, a fold
    over all axes at once divides to find what else is read."""
    lines = x.ndim > 2
    low = reductions.min(reductions.min(x, axis=-1) if lines else x)
    high = reductions.max(reductions.max(x, axis=-1) if lines else x)
    return ew.minimum(low, 0), ew.maximum(high, 0)


@operator("DynamicQuantizeLinear", since=11)
def dynamic_quantize(call: Call, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    low, high = extremes(x)
    scale = (high - low) / 255.0
    safe = ew.where(ew.equal(scale, 0), 1.0, scale)
    zero = ew.round(ew.minimum(ew.maximum(ew.divide(-low, safe), 0.0), 255.0))
    wide = ew.round(ew.divide(x, safe)) + zero
    return ew.astype(ew.minimum(ew.maximum(wide, 0.0), 255.0), dtypes.uint8), scale, ew.astype(zero, dtypes.uint8)


def _is_zero(value: object) -> bool:
    return value is None or (isinstance(value, np.ndarray) and not value.any())


def _bits_turned(array: np.ndarray) -> np.ndarray:
    return (array ^ np.uint8(128)).view(np.int8)


def signed(call: Call, value: Any) -> Any:
    """Bytes as int8, less 128 where they were unsigned: the processor multiplies int8 with int8."""
    if value.dtype != dtypes.uint8:
        return value
    if isinstance(value, np.ndarray):
        return call.constant(value, "signed", _bits_turned)
    return ew.astype(ew.bitwise_xor(value, np.uint8(128)), dtypes.int8)


def origin(call: Call, zero: object, of: Any) -> Tensor | None:
    """The zero point of bytes as ``signed`` has them; None for 0."""
    moved = of.dtype == dtypes.uint8
    if _is_zero(zero) and not moved:
        return None
    if zero is None or isinstance(zero, np.ndarray):
        values = np.asarray(np.asarray(0 if zero is None else zero, np.int32) - (128 if moved else 0))
        return None if not values.any() else call.tensor(values)
    wide = ew.astype(call.tensor(zero), dtypes.int32)
    return wide - 128 if moved else wide


def second_factor(call: Call, bits: object) -> Tensor:
    """A matrix of bytes that rows of bytes are multiplied by.  One that is known when the file is read lies in memory
    as this machine's kernels read it, and is not packed at each call; elsewhere that is a matrix like others."""
    here = host_target.target()
    width = packed_panels.panel_width(here)
    if isinstance(bits, np.ndarray) and bits.ndim == 2 and packed_panels.reads_panels(here):
        k, n = bits.shape
        if packed_panels.pays(k, n, width):
            key = "in panels", width
            panels = call.constant(bits, key, lambda array: packed_panels.panels_of_array(array, width))
            return shapes.reshape(shapes.permute_dims(call.tensor(panels), packed_panels.ORDER), (k, n))
    return call.tensor(bits)


def product_of_bytes(call: Call, a: object, b: object, zero_a: object, zero_b: object) -> Tensor:
    """``(a - zero_a) @ (b - zero_b)`` in int32: by the sums of rows and columns, so that operands stay bytes."""
    pa, pb = origin(call, zero_a, a), origin(call, zero_b, b)
    a, b = call.tensor(signed(call, a)), signed(call, b)
    total = matmul(a, second_factor(call, b), sum_dtype=dtypes.int32)
    if pa is not None and pa.ndim == 1:
        pa = shapes.reshape(pa, (-1, 1)) if pa.shape[0] != 1 else shapes.reshape(pa, ())
    if pa is not None:
        columns = call.derive(
            b,
            "columns",
            lambda array: array.sum(axis=-2, keepdims=array.ndim > 1, dtype=np.int32),
            lambda tensor: reductions.sum(tensor, axis=-2, keepdims=tensor.ndim > 1, dtype=dtypes.int32),
        )
        total = total - pa * columns
    if pb is not None:
        rows = reductions.sum(a, axis=-1, keepdims=a.ndim > 1, dtype=dtypes.int32)
        total = total - rows * pb
    if pa is not None and pb is not None:
        total = total + pa * pb * a.shape[-1]
    return total


@operator("MatMulInteger", since=10, raw=(1, 2, 3))
def matmul_integer(call: Call, a: Tensor, b: object, zero_a: object = None, zero_b: object = None) -> Tensor:
    return product_of_bytes(call, a, b, zero_a, zero_b)


def _requantized(wide: Tensor, factor: Tensor, zero: Tensor) -> Tensor:
    low, high = _limits(zero.dtype)
    scaled = ew.round(ew.astype(wide, dtypes.float32) * factor) + ew.astype(zero, dtypes.float32)
    return ew.astype(ew.minimum(ew.maximum(scaled, low), high), zero.dtype)


@operator("QLinearMatMul", since=10, raw=(2, 3, 5))
def qlinear_matmul(
    call: Call,
    a: Tensor,
    scale_a: Tensor,
    zero_a: object,
    b: Tensor,
    scale_b: Tensor,
    zero_b: object,
    scale: Tensor,
    zero: Tensor,
) -> Tensor:
    wide = product_of_bytes(call, a, b, zero_a, zero_b)
    if scale_a.ndim == 1 and scale_a.shape[0] != 1:
        scale_a = shapes.reshape(scale_a, (-1, 1))
    factor = ew.divide(
        ew.astype(scale_a, dtypes.float32) * ew.astype(scale_b, dtypes.float32), ew.astype(scale, dtypes.float32)
    )
    return _requantized(wide, factor, zero)


def convolution_of_bytes(
    call: Call,
    x: Any,
    w: Any,
    zero_x: object,
    zero_w: object,
    auto_pad: str,
    dilations: Any,
    group: int,
    pads: Any,
    strides: Any,
) -> Tensor:
    """A convolution in int32, with its channels last: windows side by side, and one product of bytes."""
    count = w.ndim - 2
    step, dilation = strides or [1] * count, dilations or [1] * count
    size = w.shape[2:]
    x = laid(call, x)
    pairs = pairs_of(auto_pad, pads, x.shape[1:-1], size, step, dilation)
    if any(pair != (0, 0) for pair in pairs):
        around = [(0, 0), *pairs, (0, 0)]
        if _is_zero(zero_x):
            x = shapes.pad(x, around)
        else:  # what is padded is the zero of the operand
            origin = shapes.reshape(call.tensor(zero_x), ())
            inside = shapes.pad(zeros((1, *x.shape[1:-1], 1), dtype=dtypes.bool_), around, constant_values=True)
            x = ew.where(inside, ew.astype(origin, x.dtype), shapes.pad(x, around))
    channels, outputs = w.shape[1], w.shape[0] // group
    order = (*range(2, count + 2), 1, 0)
    filters: Any
    if isinstance(w, np.ndarray):
        filters = call.constant(
            w, "matrix", lambda array: np.ascontiguousarray(array.transpose(order)).reshape(-1, array.shape[0])
        )
    else:
        filters = shapes.reshape(call.arranged(w, order), (-1, w.shape[0]))
    windows = window_parts(x, size, step, dilation)
    groups = []
    for k in range(group):
        cut = slice(k * channels, (k + 1) * channels)
        rows = windows if group == 1 else [part[..., cut] for part in windows]
        matrix = shapes.concat(rows, axis=-1) if len(rows) > 1 else rows[0]
        part = slice(k * outputs, (k + 1) * outputs)
        points = zero_w
        if zero_w is not None and not _is_zero(zero_w) and call.tensor(zero_w).ndim:
            points = call.tensor(zero_w)[part] if call.tensor(zero_w).shape[0] != 1 else call.tensor(zero_w)
        groups.append(product_of_bytes(call, matrix, filters[:, part] if group > 1 else filters, zero_x, points))
    return shapes.concat(groups, axis=-1) if group > 1 else groups[0]


@operator("ConvInteger", since=10, raw=(1, 2, 3), keeps_layout=True)
def conv_integer(
    call: Call,
    x: object,
    w: object,
    zero_x: object = None,
    zero_w: object = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: object = None,
    group: int = 1,
    kernel_shape: object = None,
    pads: object = None,
    strides: object = None,
) -> ChannelsLast:
    return ChannelsLast(convolution_of_bytes(call, x, w, zero_x, zero_w, auto_pad, dilations, group, pads, strides))


@operator("QLinearConv", since=10, raw=(2, 3, 5), keeps_layout=True)
def qlinear_conv(
    call: Call,
    x: object,
    scale_x: Tensor,
    zero_x: object,
    w: object,
    scale_w: Tensor,
    zero_w: object,
    scale: Tensor,
    zero: Tensor,
    bias: Tensor | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: object = None,
    group: int = 1,
    kernel_shape: object = None,
    pads: object = None,
    strides: object = None,
) -> ChannelsLast:
    wide = convolution_of_bytes(call, x, w, zero_x, zero_w, auto_pad, dilations, group, pads, strides)
    if bias is not None:
        wide = wide + bias
    return ChannelsLast(_requantized(wide, ew.divide(scale_x * scale_w, scale), zero))
