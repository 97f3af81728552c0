"""Weights of layers that are held in few bits: they take the places of the variables, and stand for floats."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from hybridflow.array.elementwise import (
    abs as absolute,
    astype,
    bitwise_and,
    bitwise_right_shift,
    clip,
    divide,
    maximum,
    minimum,
    round as rounded,
    stop_gradient,
    where,
)
from hybridflow.array.indexing import gather
from hybridflow.array.linalg import einsum, matmul
from hybridflow.array.reductions import max as largest, min as least
from hybridflow.array.selection import repeat
from hybridflow.array.shapes import (
    broadcast_to,
    concat,
    expand_dims,
    matrix_transpose,
    permute_dims,
    reshape,
    slice_axis,
)
from hybridflow.autodiff.custom import custom_gradient
from hybridflow.autodiff.jacobians import vjp
from hybridflow.compiler.ir import dtypes
from hybridflow.core import layer_context
from hybridflow.core.context import now
from hybridflow.core.shape import Shape
from hybridflow.core.tensor import Operators, Tensor
from hybridflow.core.variable import Variable
from hybridflow.errors import ArgumentError
from hybridflow.module import Module
from hybridflow.nn.convolution import convolved, convolved_numbers
from hybridflow.quantize.arithmetic import bounds, fake_quantize, find_scale, quantize
from hybridflow.quantize.scheme import Scheme

_OFFSET = 8  # what two numbers of four bits in a byte are stored with, so that none is negative


class DynamicRange(Module):
    """Inputs are quantized by their largest amount: each row of features has a scale of its own."""

    def quantized(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """Numbers, scales and zero points of ``[..., features]``."""
        scale = divide(largest(absolute(x), axis=-1, keepdims=True), 127)
        scale = where(scale == 0, 1, scale)
        return quantize(x, scale), scale, None

    def round_input(self, x: Tensor) -> Tensor:
        """What is left of an input whose products are not those of numbers."""
        return x


class StaticRange(Module):
    """Inputs are quantized by a range that is known, from what a model was shown."""

    def __init__(self, low: float = 0.0, high: float = 0.0) -> None:
        low, high = min(low, 0.0), max(high, 0.0)  # 0, which pads, is held exactly
        scale = np.float32((high - low) / 255) or np.float32(1)
        self.scale = Variable(scale, trainable=False, name="scale")
        zero = np.int32(np.clip(np.rint(-128 - low / scale), -128, 127))
        self.zero_point = Variable(zero, trainable=False, name="zero_point")

    def quantized(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        scale = astype(self.scale, x.dtype)
        return quantize(x, scale, self.zero_point), scale, self.zero_point.value()

    def round_input(self, x: Tensor) -> Tensor:
        return fake_quantize(x, self.scale, self.zero_point)


class MovingRange(Module):
    """The range of inputs while a model is trained or shown samples: it widens, or follows them by a moving average."""

    def __init__(self, momentum: float | None = None) -> None:
        self.momentum = momentum
        self.low = Variable(np.float32(0), trainable=False, name="low")
        self.high = Variable(np.float32(0), trainable=False, name="high")

    def observe(self, x: Tensor) -> None:
        """Take an input into the range."""
        if 0 in x.shape:
            return
        low, high = astype(minimum(least(x), 0), dtypes.float32), astype(maximum(largest(x), 0), dtypes.float32)
        if self.momentum is None:
            self.low.assign(minimum(self.low, low))
            self.high.assign(maximum(self.high, high))
            return
        is_new = self.high == self.low
        kept = where(is_new, 0.0, self.momentum)
        self.low.assign(self.low * kept + low * (1 - kept))
        self.high.assign(self.high * kept + high * (1 - kept))

    def round_input(self, x: Tensor) -> Tensor:
        if layer_context.training_now():
            self.observe(x)
        span = self.high - self.low
        scale = where(span == 0, 1, divide(span, 255))
        zero_point = clip(rounded(-128 - divide(self.low, scale)), -128, 127)
        return where(span == 0, x, fake_quantize(x, scale, zero_point))

    def settled(self) -> StaticRange:
        """The range as it is now."""
        return StaticRange(float(self.low), float(self.high))


class _Layout:
    """How a weight is a matrix: ``[contracted, channels]``, or the other way around where channels come first."""

    def __init__(self, shape: Sequence[int], channels: Sequence[int]) -> None:
        self.shape = tuple(shape)
        self.channels = tuple(axis % len(shape) for axis in channels)
        self.contracted = tuple(axis for axis in range(len(shape)) if axis not in self.channels)
        self.rows = math.prod(self.shape[axis] for axis in self.contracted)
        self.columns = math.prod(self.shape[axis] for axis in self.channels)
        self.is_turned = self.channels == tuple(range(len(self.channels))) and bool(self.contracted)
        self.order = (*self.channels, *self.contracted) if self.is_turned else (*self.contracted, *self.channels)
        self.axis = 1 if self.is_turned else 0  # that is summed over

    def matrix(self, weight: Tensor) -> Tensor:
        size = (self.columns, self.rows) if self.is_turned else (self.rows, self.columns)
        return reshape(permute_dims(weight, self.order), size)

    def weight(self, matrix: Tensor) -> Tensor:
        spread = reshape(matrix, tuple(self.shape[axis] for axis in self.order))
        return permute_dims(spread, tuple(np.argsort(self.order).tolist()))

    def flat(self, x: Tensor) -> Tensor:
        """``[..., *contracted]`` as rows of features."""
        return reshape(x, (*x.shape[: x.ndim - len(self.contracted)], self.rows))

    def spread(self, product: Tensor) -> Tensor:
        return reshape(product, (*product.shape[:-1], *(self.shape[axis] for axis in self.channels)))


class Weight(Module, Operators):
    """The base of what takes the place of a layer's variable."""

    _layout: _Layout
    _dtype: np.dtype[Any]
    input_range: Any = None

    @property
    def shape(self) -> Shape:
        return Shape(self._layout.shape)

    @property
    def dtype(self) -> Any:
        return self._dtype

    def __hash__(self) -> int:
        return object.__hash__(self)

    def numpy(self) -> np.ndarray:
        """The floats that it stands for."""
        return self._whole().numpy()

    def product(self, x: Tensor) -> Tensor:
        """The sums of products of ``[..., *contracted]`` with it: ``[..., *channels]``."""
        layout = self._layout
        matrix = layout.matrix(self._whole())
        out = matmul(layout.flat(self.round_input(x)), matrix_transpose(matrix) if layout.is_turned else matrix)
        return layout.spread(out)

    def round_input(self, x: Tensor) -> Tensor:
        """What is left of an input whose products are not those of numbers."""
        return x if self.input_range is None else self.input_range.round_input(x)

    def convolution(self, x: Tensor, stage: str, *geometry: Any) -> Tensor:
        """The convolution with it, by the arguments of ``convolved``."""
        return convolved(stage, self.round_input(x), self, *geometry)

    def rows(self, numbers: Tensor) -> Tensor:
        """The rows of those numbers, along the first axis."""
        return gather(self._whole(), numbers)


class QuantizedWeight(Weight):
    """Numbers of 8 or 4 bits with a scale for each channel, or for groups of numbers in each."""

    def __init__(self, scheme: Scheme, shape: Sequence[int], channels: Sequence[int], dtype: Any, name: str) -> None:
        self._scheme, self._layout, self._dtype = scheme, _Layout(shape, channels), dtype
        self._name = name
        layout = self._layout
        rows, group = layout.rows, scheme.group_size
        if group is not None and scheme.inputs != "float":
            raise ArgumentError("quantize", f"{scheme.name!r}: groups are for weights alone, as in 'int4_weights_128'.")
        self._packs = scheme.dtype == "int4"
        self._groups = 1 if group is None else -(-rows // group)
        stored = -(-rows // 2) if self._packs else rows
        numbers = np.zeros(self._size(stored), np.uint8 if self._packs else np.int8)
        self.numbers = Variable(numbers, trainable=False, name=f"{name}_numbers")
        self.scale = Variable(np.ones(self._size(self._groups), dtypes.float32), trainable=False, name=f"{name}_scale")
        self.column_sums: Variable | None = None
        if scheme.inputs == "dynamic":
            self.input_range = DynamicRange()
        elif scheme.inputs == "static":
            self.input_range = StaticRange()
            self.column_sums = Variable(np.zeros(layout.columns, np.int32), trainable=False, name=f"{name}_sums")

    def _size(self, rows: int) -> tuple[int, int]:
        return (self._layout.columns, rows) if self._layout.is_turned else (rows, self._layout.columns)

    def __repr__(self) -> str:
        return f"<QuantizedWeight {self._name!r} {self._scheme.name} {list(self._layout.shape)}>"

    def fill(self, weight: Tensor) -> None:
        """Take the numbers that are nearest to a weight's elements."""
        layout, axis = self._layout, self._layout.axis
        matrix = np.asarray(layout.matrix(astype(weight, dtypes.float32)))
        if not np.isfinite(matrix).all():
            raise ArgumentError("quantize", f"the weight {self._name!r} has elements that are not finite.")
        group = self._scheme.group_size or layout.rows
        cuts = range(0, layout.rows, group) if layout.rows else ()
        parts = [matrix[(slice(None),) * axis + (slice(at, at + group),)] for at in cuts]
        scales = [np.asarray(find_scale(part, axis=axis, dtype=self._scheme.dtype)) for part in parts]
        _, high = bounds(np.dtype(self._scheme.dtype) if not self._packs else dtypes.int4, symmetric=True)
        numbers = [np.clip(np.rint(part / scale), -high, high).astype(np.int8) for part, scale in zip(parts, scales)]
        if parts:
            self.scale.assign(np.concatenate(scales, axis))
            whole = np.concatenate(numbers, axis)
            self.numbers.assign(self._packed(whole) if self._packs else whole)
            if self.column_sums is not None:
                self.column_sums.assign(whole.sum(axis, dtype=np.int32))

    def _packed(self, numbers: np.ndarray) -> np.ndarray:
        """Two numbers in a byte: the first half of them low, the second half high."""
        axis, half = self._layout.axis, -(-self._layout.rows // 2)
        low, high = np.split((numbers + _OFFSET).astype(np.uint8), [half], axis)
        missing = [(0, low.shape[k] - high.shape[k]) for k in (0, 1)]
        packed: np.ndarray = low | (np.pad(high, missing) << 4)
        return packed

    def _halves(self, dtype: Any) -> tuple[Tensor, Tensor]:
        """The numbers of a packed matrix: its first half, and the rest."""
        layout = self._layout
        low = astype(bitwise_and(self.numbers, np.uint8(15)), dtype) - _OFFSET
        high = astype(bitwise_right_shift(self.numbers, np.uint8(4)), dtype) - _OFFSET
        return low, slice_axis(high, layout.axis, 0, layout.rows // 2)

    def _matrix(self, dtype: Any) -> Tensor:
        """The numbers, without their scales."""
        return concat(self._halves(dtype), axis=self._layout.axis) if self._packs else astype(self.numbers, dtype)

    def _scales(self, dtype: Any) -> Tensor:
        """The scale of each number, or for each channel where it is one."""
        layout, scale = self._layout, astype(self.scale, dtype)
        if self._groups == 1:
            return scale
        group = self._scheme.group_size or layout.rows
        if layout.rows % group:
            return slice_axis(repeat(scale, group, axis=layout.axis), layout.axis, 0, layout.rows)
        spread = expand_dims(scale, layout.axis + 1)
        shape = list(spread.shape)
        shape[layout.axis + 1] = group
        return reshape(broadcast_to(spread, shape), self._size(layout.rows))  # which a product takes in

    def _scaled(self, dtype: Any) -> Tensor:
        """The matrix that is stood for."""
        return self._matrix(dtype) * self._scales(dtype)

    def _whole(self) -> Tensor:
        narrow = now().narrow
        return self._layout.weight(self._scaled(self._dtype if narrow is None else narrow))

    def product(self, x: Tensor) -> Tensor:
        layout = self._layout
        if layout.is_turned or not layout.rows:
            return super().product(x)
        rows = layout.flat(x)
        if self.input_range is not None:
            return layout.spread(self._product_of_numbers(rows))
        parts = self._halves(x.dtype) if self._packs else (astype(self.numbers, x.dtype),)
        scales = self._scales(x.dtype)
        terms, at = [], 0
        for part in parts:
            end = at + int(part.shape[0])
            terms.append(matmul(rows[..., at:end], part if self._groups == 1 else part * scales[at:end]))
            at = end
        out = terms[0] + terms[1] if self._packs else terms[0]
        return layout.spread(out if self._groups > 1 else out * scales[0])

    def _floats(self, total: Tensor, zero_point: Tensor | None, scale: Tensor, dtype: Any) -> Tensor:
        """What sums of products of numbers stand for."""
        if zero_point is not None:
            total = total - zero_point * self.column_sums
        return astype(total, dtype) * (scale * astype(self.scale[0], dtype))

    def _product_of_numbers(self, rows: Tensor) -> Tensor:
        """Sums of products of numbers, in int32, times both scales.  The derivative is that of the floats."""

        def product(x: Tensor) -> Any:
            numbers, scale, zero_point = self.input_range.quantized(x)
            total = matmul(numbers, self._matrix(dtypes.int8), sum_dtype=dtypes.int32)
            out = self._floats(total, zero_point, scale, x.dtype)
            return out, lambda g: matmul(g, matrix_transpose(self._scaled(x.dtype)))

        out: Tensor = custom_gradient(product)(rows)
        return out

    def convolution(self, x: Tensor, stage: str, *geometry: Any) -> Tensor:
        if not isinstance(self.input_range, StaticRange) or not self._layout.rows:
            return super().convolution(x, stage, *geometry)
        size = self._layout.shape[:-2]
        strides, padding, data_format, dilations, axes, groups = geometry

        def convolution(x: Tensor) -> Any:
            known = self.input_range

            def numbers(padded: Tensor) -> Tensor:
                return known.quantized(padded)[0]

            def finish(total: Tensor) -> Tensor:
                return self._floats(total, known.zero_point.value(), astype(known.scale, x.dtype), x.dtype)

            matrix = self._matrix(dtypes.int8)
            out = convolved_numbers(
                stage, x, numbers, matrix, size, finish, strides, padding, data_format, dilations, axes, groups
            )
            return out, lambda g: vjp(lambda x: convolved(stage, x, self, *geometry), x)[1](g)[0]

        out: Tensor = custom_gradient(convolution)(x)
        return out

    def rows(self, numbers: Tensor) -> Tensor:
        layout = self._layout
        if not layout.is_turned or self._groups > 1 or len(layout.channels) != 1:
            return super().rows(numbers)
        seen = gather(self.numbers, numbers)
        if self._packs:
            low = astype(bitwise_and(seen, np.uint8(15)), self._dtype) - _OFFSET
            high = astype(bitwise_right_shift(seen, np.uint8(4)), self._dtype) - _OFFSET
            wide = concat([low, high[..., : layout.rows // 2]], axis=-1)
        else:
            wide = astype(seen, self._dtype)
        out = wide * astype(gather(self.scale, numbers), self._dtype)
        return reshape(out, (*numbers.shape, *layout.shape[1:]))


class RoundedWeight(Weight):
    """A variable that is trained, and stands for what is left of it by quantization."""

    def __init__(self, scheme: Scheme, variable: Variable, channels: Sequence[int], quantizes_input: bool) -> None:
        self._scheme, self._layout, self._dtype = scheme, _Layout(variable.shape, channels), variable.dtype
        self.variable = variable
        self.input_range = MovingRange(0.99) if quantizes_input else None

    def __repr__(self) -> str:
        return f"<RoundedWeight {self.variable!r}>"

    def _whole(self) -> Tensor:
        weight = self.variable._seen()
        scale = find_scale(stop_gradient(weight), axis=self._layout.contracted, dtype=self._scheme.dtype)
        return fake_quantize(weight, scale, dtype=self._scheme.dtype)


class ObservedWeight(Weight):
    """A variable whose inputs are looked at."""

    def __init__(self, variable: Variable, channels: Sequence[int]) -> None:
        self._layout, self._dtype, self.variable = _Layout(variable.shape, channels), variable.dtype, variable
        self.input_range = MovingRange()

    def round_input(self, x: Tensor) -> Tensor:
        self.input_range.observe(x)
        return x

    def _whole(self) -> Tensor:
        return self.variable._seen()


def contract(x: Tensor, weight: Variable | Weight, equation: str | None = None) -> Tensor:
    """``einsum(equation, x, weight)`` for a layer's weight of any kind; ``x @ weight`` without an equation."""
    if not isinstance(weight, Weight):
        return x @ weight if equation is None else einsum(equation, x, weight)
    if equation is None:
        return weight.product(x)
    left, right, out = re.split(",|->", equation)
    if "..." in left:
        spare = "".join(map(chr, range(0x100, 0x100 + x.ndim - len(left) + 3)))
        left, out = left.replace("...", spare), out.replace("...", spare)
    summed = [letter for letter in right if letter not in out]
    kept = [letter for letter in left if letter not in summed]
    channels = [letter for letter in right if letter in out]
    if set(kept) & set(channels) or len(set(left)) < len(left) or not set(summed) <= set(left):
        return einsum(equation, weight.round_input(x), weight)
    product = weight.product(permute_dims(x, [left.index(letter) for letter in (*kept, *summed)]))
    letters = kept + channels
    return permute_dims(product, [letters.index(letter) for letter in out])


def convolve(stage: str, x: Tensor, weight: Variable | Weight, *geometry: Any) -> Tensor:
    """``convolved`` for a layer's weight of any kind."""
    if isinstance(weight, Weight):
        return weight.convolution(x, stage, *geometry)
    return convolved(stage, x, weight, *geometry)


def rows_of(weight: Variable | Weight, numbers: Tensor) -> Tensor:
    """The rows of a table of vectors."""
    return weight.rows(numbers) if isinstance(weight, Weight) else gather(weight, numbers)
