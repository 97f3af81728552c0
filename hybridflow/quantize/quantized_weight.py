"""Weights of layers that are held in few bits: they take the places of the variables, and stand for floats."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from hybridflow.array.elementwise import (
    astype,
    bitwise_and,
    bitwise_right_shift,
    clip,
    divide,
    isfinite,
    logical_and,
    logical_or,
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
from hybridflow.autodiff.custom import with_derivative
from hybridflow.autodiff.jacobians import vjp
from hybridflow.compiler.ir import dtypes
from hybridflow.core import layer_context
from hybridflow.core.context import now
from hybridflow.core.shape import Shape
from hybridflow.core.tensor import Operators, Tensor
from hybridflow.core.type_aliases import DTypeLike
from hybridflow.core.variable import Variable
from hybridflow.errors import ArgumentError
from hybridflow.module import Module
from hybridflow.nn.convolution import convolve_integers, convolved
from hybridflow.quantize.arithmetic import bounds, fake_quantize, find_scale, quantize
from hybridflow.quantize.scheme import Scheme
from hybridflow.tracing.replica_axes import over_replicas

_OFFSET = 8  # what two values of four bits in a byte are stored with, so that none is negative


class DynamicRange(Module):
    """Inputs are quantized by their absolute maximum: each row of features has a scale of its own."""

    def quantized(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """Quantized values, scales and zero points of ``[..., features]``."""
        scale = find_scale(x, axis=-1)
        return quantize(x, scale), scale, None

    def fake_quantized(self, x: Tensor) -> Tensor:
        """An input whose products are those of floats."""
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

    def fake_quantized(self, x: Tensor) -> Tensor:
        return fake_quantize(x, self.scale, self.zero_point)


class Observer(Module):
    """The range of a layer's inputs while a model is calibrated or trained: it widens, or is a moving average.

    Inputs that are not finite leave it as it is.
    """

    def __init__(self, momentum: float | None = None) -> None:
        self.momentum = momentum
        self.low = Variable(np.float32(0), trainable=False, name="low")
        self.high = Variable(np.float32(0), trainable=False, name="high")
        self.is_set = Variable(np.bool_(False), trainable=False, name="is_set")

    def observe(self, x: Tensor) -> None:
        """Take an input into the range."""
        if 0 in x.shape:
            return
        low, high = astype(minimum(least(x), 0), dtypes.float32), astype(maximum(largest(x), 0), dtypes.float32)
        low, high = over_replicas(low, "mean"), over_replicas(high, "mean")
        is_finite = logical_and(isfinite(low), isfinite(high))
        if self.momentum is None:
            new_low, new_high = minimum(self.low, low), maximum(self.high, high)
        else:
            kept = where(self.is_set, self.momentum, 0.0)
            new_low, new_high = self.low * kept + low * (1 - kept), self.high * kept + high * (1 - kept)
        self.low.assign(where(is_finite, new_low, self.low))
        self.high.assign(where(is_finite, new_high, self.high))
        self.is_set.assign(logical_or(self.is_set, is_finite))

    def fake_quantized(self, x: Tensor) -> Tensor:
        if layer_context.training_now():
            self.observe(x)
        span = self.high - self.low
        scale = where(span == 0, 1, divide(span, 255))
        zero_point = clip(rounded(-128 - divide(self.low, scale)), -128, 127)
        return where(span == 0, x, fake_quantize(x, scale, astype(zero_point, dtypes.int32)))

    def as_static(self, title: str) -> StaticRange:
        """The static range: that which was observed.  Raises ArgumentError where no finite input was seen."""
        if not bool(self.is_set):
            raise ArgumentError(
                "quantize",
                f"{title}: the layer was given no finite input while it was observed. Call the model with samples, "
                "with training=True where it is prepared for training.",
            )
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
        out = matmul(
            layout.flat(self.fake_quantized_input(x)), matrix_transpose(matrix) if layout.is_turned else matrix
        )
        return layout.spread(out)

    def fake_quantized_input(self, x: Tensor) -> Tensor:
        """An input whose products are those of floats, rounded where its range is known."""
        return x if self.input_range is None else self.input_range.fake_quantized(x)

    def convolution(self, x: Tensor, stage: str, *geometry: Any) -> Tensor:
        """The convolution with it, by the arguments of ``convolved``."""
        return convolved(stage, self.fake_quantized_input(x), self, *geometry)

    def rows(self, indices: Tensor) -> Tensor:
        """The rows at these indices of the first axis."""
        return gather(self._whole(), indices)


class _StraightThrough:
    """The straight-through derivative of quantized products: that of the dequantized ones.

    A file can do without it: it then has the products alone.
    """

    is_dispensable = True

    def __init__(self, pullback: Callable[[Tensor], Any]) -> None:
        self._pullback = pullback

    def __call__(self, g: Tensor | None) -> list[Any]:
        return [None if g is None else self._pullback(g)]


def _straight_through(function: Callable[[Tensor], Tensor], pullback: Callable[[Tensor], Any], x: Tensor) -> Tensor:
    result: Tensor = with_derivative((x,), function(stop_gradient(x)), _StraightThrough(pullback))
    return result


class QuantizedWeight(Weight):
    """Values of 8 or 4 bits with a scale for each channel, or for groups of values in each."""

    def __init__(
        self, scheme: Scheme, shape: Sequence[int], channels: Sequence[int], dtype: np.dtype[Any], name: str
    ) -> None:
        self._scheme, self._layout, self._dtype = scheme, _Layout(shape, channels), dtype
        self._name = name
        layout = self._layout
        rows, group = layout.rows, scheme.group_size
        if group is not None and scheme.inputs != "float":
            raise ArgumentError("quantize", f"{scheme.name!r}: groups are for weights alone, as in 'int4_weights_128'.")
        self._packs = scheme.dtype == "int4"
        self._groups = 1 if group is None else -(-rows // group)
        stored = -(-rows // 2) if self._packs else rows
        zeros = np.zeros(self._size(stored), np.uint8 if self._packs else np.int8)
        self.quantized = Variable(zeros, trainable=False, name=f"{name}_quantized")
        self.scale = Variable(np.ones(self._size(self._groups), dtypes.float32), trainable=False, name=f"{name}_scale")
        self.column_sums: Variable | None = None
        if scheme.inputs == "dynamic":
            self.input_range = DynamicRange()
        elif scheme.inputs == "static":
            self.input_range = StaticRange()
            self.column_sums = Variable(np.zeros(layout.columns, np.int32), trainable=False, name=f"{name}_sums")

    @property
    def _sums_fit(self) -> bool:
        """Whether sums of products fit int32, whatever the quantized values are."""
        return self._layout.rows * 127 * (255 if self.column_sums is not None else 127) < 2**31

    def _size(self, rows: int) -> tuple[int, int]:
        return (self._layout.columns, rows) if self._layout.is_turned else (rows, self._layout.columns)

    def _attributes(self) -> Iterator[tuple[str, Any]]:
        # In files the values have been called numbers from the first version on.
        for name, value in super()._attributes():
            yield ("numbers" if name == "quantized" else name), value

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update({"quantized" if name == "numbers" else name: value for name, value in state.items()})

    def __repr__(self) -> str:
        return f"<QuantizedWeight {self._name!r} {self._scheme.name} {list(self._layout.shape)}>"

    def fill(self, weight: Tensor) -> None:
        """Take the quantized values that are nearest to a weight's elements."""
        layout, axis = self._layout, self._layout.axis
        matrix = np.asarray(layout.matrix(astype(weight, dtypes.float32)))
        if not np.isfinite(matrix).all():
            raise ArgumentError("quantize", f"the weight {self._name!r} has elements that are not finite.")
        group = self._scheme.group_size or layout.rows
        cuts = range(0, layout.rows, group) if layout.rows else ()
        parts = [matrix[(slice(None),) * axis + (slice(at, at + group),)] for at in cuts]
        scales = [np.asarray(find_scale(part, axis=axis, dtype=self._scheme.dtype)) for part in parts]
        _, high = bounds(np.dtype(self._scheme.dtype) if not self._packs else dtypes.int4, symmetric=True)
        quantized = [np.clip(np.rint(part / scale), -high, high).astype(np.int8) for part, scale in zip(parts, scales)]
        if parts:
            self.scale.assign(np.concatenate(scales, axis))
            whole = np.concatenate(quantized, axis)
            self.quantized.assign(self._pack(whole) if self._packs else whole)
            if self.column_sums is not None:
                self.column_sums.assign(whole.sum(axis, dtype=np.int32))

    def _pack(self, quantized: np.ndarray) -> np.ndarray:
        """Two values in a byte: the first half of them low, the second half high."""
        axis, half = self._layout.axis, -(-self._layout.rows // 2)
        low, high = np.split((quantized + _OFFSET).astype(np.uint8), [half], axis)
        missing = [(0, low.shape[k] - high.shape[k]) for k in (0, 1)]
        packed: np.ndarray = low | (np.pad(high, missing) << 4)
        return packed

    def _halves(self, dtype: DTypeLike) -> tuple[Tensor, Tensor]:
        """The quantized values of a packed matrix: its first half, and the rest."""
        layout = self._layout
        low = astype(bitwise_and(self.quantized, np.uint8(15)), dtype) - _OFFSET
        high = astype(bitwise_right_shift(self.quantized, np.uint8(4)), dtype) - _OFFSET
        return low, slice_axis(high, layout.axis, 0, layout.rows // 2)

    def _matrix(self, dtype: DTypeLike) -> Tensor:
        """The quantized values, without their scales."""
        return concat(self._halves(dtype), axis=self._layout.axis) if self._packs else astype(self.quantized, dtype)

    def _scales(self, dtype: DTypeLike) -> Tensor:
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

    def _scaled(self, dtype: np.dtype[Any]) -> Tensor:
        """The matrix that is stood for."""
        wide = dtypes.compute_dtype(dtype)
        return astype(self._matrix(wide) * self._scales(wide), dtype)

    def _whole(self) -> Tensor:
        narrow = now().narrow
        return self._layout.weight(self._scaled(self._dtype if narrow is None else narrow))

    def product(self, x: Tensor) -> Tensor:
        layout = self._layout
        if layout.is_turned or not layout.rows or (self.input_range is None and dtypes.is_narrow_float(x.dtype)):
            return super().product(x)
        rows = layout.flat(x)
        if self.input_range is not None:
            if not self._sums_fit:
                return super().product(x)
            return layout.spread(self._integer_product(rows))
        parts = self._halves(x.dtype) if self._packs else (astype(self.quantized, x.dtype),)
        scales = self._scales(x.dtype)
        terms, at = [], 0
        for part in parts:
            end = at + int(part.shape[0])
            terms.append(matmul(rows[..., at:end], part if self._groups == 1 else part * scales[at:end]))
            at = end
        out = terms[0] + terms[1] if self._packs else terms[0]
        return layout.spread(out if self._groups > 1 else out * scales[0])

    def _floats(self, total: Tensor, zero_point: Tensor | None, scale: Tensor, dtype: DTypeLike) -> Tensor:
        """What sums of products of quantized values stand for."""
        if zero_point is not None:
            total = total - zero_point * self.column_sums
        return astype(total, dtype) * (scale * astype(self.scale[0], dtype))

    def _integer_product(self, rows: Tensor) -> Tensor:
        """Sums of products of quantized values, in int32, times both scales.  The derivative is that of the floats."""

        def product(x: Tensor) -> Any:
            wide = dtypes.compute_dtype(x.dtype)
            quantized, scale, zero_point = self.input_range.quantized(astype(x, wide))
            total = matmul(quantized, self._matrix(dtypes.int8), sum_dtype=dtypes.int32)
            return astype(self._floats(total, zero_point, scale, wide), x.dtype)

        def pullback(g: Tensor) -> Tensor:
            return matmul(g, matrix_transpose(self._scaled(rows.dtype)))

        return _straight_through(product, pullback, rows)

    def convolution(self, x: Tensor, stage: str, *geometry: Any) -> Tensor:
        if not isinstance(self.input_range, StaticRange) or not self._layout.rows or not self._sums_fit:
            return super().convolution(x, stage, *geometry)
        size = self._layout.shape[:-2]
        strides, padding, data_format, dilations, axes, groups = geometry

        def convolution(x: Tensor) -> Any:
            known = self.input_range

            wide = dtypes.compute_dtype(x.dtype)

            def quantize_input(padded: Tensor) -> Tensor:
                return known.quantized(astype(padded, wide))[0]

            def finish(total: Tensor) -> Tensor:
                return astype(self._floats(total, known.zero_point.value(), astype(known.scale, wide), wide), x.dtype)

            matrix = self._matrix(dtypes.int8)
            return convolve_integers(
                stage, x, quantize_input, matrix, size, finish, strides, padding, data_format, dilations, axes, groups
            )

        def pullback(g: Tensor) -> Any:
            return vjp(lambda x: convolved(stage, x, self, *geometry), x)[1](g)[0]

        return _straight_through(convolution, pullback, x)

    def rows(self, indices: Tensor) -> Tensor:
        layout = self._layout
        if not layout.is_turned or len(layout.channels) != 1:
            return super().rows(indices)
        seen = gather(self.quantized, indices)
        if self._packs:
            low = astype(bitwise_and(seen, np.uint8(15)), self._dtype) - _OFFSET
            high = astype(bitwise_right_shift(seen, np.uint8(4)), self._dtype) - _OFFSET
            wide = concat([low, high[..., : layout.rows // 2]], axis=-1)
        else:
            wide = astype(seen, self._dtype)
        scale = astype(gather(self.scale, indices), self._dtype)
        if self._groups > 1:
            scale = repeat(scale, self._scheme.group_size, axis=-1)[..., : layout.rows]
        out = wide * scale
        return reshape(out, (*indices.shape, *layout.shape[1:]))


class FakeQuantizedWeight(Weight):
    """A variable that is trained, with fake quantization."""

    def __init__(self, scheme: Scheme, variable: Variable, channels: Sequence[int], quantizes_input: bool) -> None:
        self._scheme, self._layout, self._dtype = scheme, _Layout(variable.shape, channels), variable.dtype
        self.variable = variable
        self.input_range = Observer(0.99) if quantizes_input else None

    def __repr__(self) -> str:
        return f"<FakeQuantizedWeight {self.variable!r}>"

    def _whole(self) -> Tensor:
        weight = self.variable._seen()
        scale = find_scale(stop_gradient(weight), axis=self._layout.contracted, dtype=self._scheme.dtype)
        return fake_quantize(weight, scale, dtype=self._scheme.dtype)


class ObservedWeight(Weight):
    """A variable whose inputs are looked at."""

    def __init__(self, variable: Variable, channels: Sequence[int]) -> None:
        self._layout, self._dtype, self.variable = _Layout(variable.shape, channels), variable.dtype, variable
        self.input_range = Observer()

    def fake_quantized_input(self, x: Tensor) -> Tensor:
        self.input_range.observe(x)
        return x

    def _whole(self) -> Tensor:
        return self.variable._seen()


def contract(x: Tensor, weight: Variable | Weight, equation: str | None = None) -> Tensor:
    """``einsum(equation, x, weight)`` for a layer's weight of any kind; ``x @ weight`` without an equation."""
    if not isinstance(weight, Weight):
        return x @ weight if equation is None else einsum(equation, x, weight)
    if not dtypes.is_float(dtypes.wide_dtype(x.dtype)):
        x = astype(x, now().narrow or weight.dtype)
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
        return einsum(equation, weight.fake_quantized_input(x), weight)
    product = weight.product(permute_dims(x, [left.index(letter) for letter in (*kept, *summed)]))
    letters = kept + channels
    return permute_dims(product, [letters.index(letter) for letter in out])


def convolve(stage: str, x: Tensor, weight: Variable | Weight, *geometry: Any) -> Tensor:
    """``convolved`` for a layer's weight of any kind."""
    if isinstance(weight, Weight):
        if not dtypes.is_float(dtypes.wide_dtype(x.dtype)):
            x = astype(x, now().narrow or weight.dtype)
        return weight.convolution(x, stage, *geometry)
    return convolved(stage, x, weight, *geometry)


def rows_of(weight: Variable | Weight, indices: Tensor) -> Tensor:
    """The rows of a table of vectors."""
    return weight.rows(indices) if isinstance(weight, Weight) else gather(weight, indices)
