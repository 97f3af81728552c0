"""Operators that move elements by their places alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hybridflow.array import creation, shapes
from hybridflow.array.elementwise import astype
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ir.extents import Dim
from hybridflow.core.tensor import Tensor
from hybridflow.eager.operands import expand as expand_to
from hybridflow.onnx.host_values import extents, slice_of
from hybridflow.onnx.library import dtype_of
from hybridflow.onnx.operators import operator
from hybridflow.onnx.running import Call, ChannelsLast

if TYPE_CHECKING:
    from hybridflow.core.shape import Shape


def axis_of(call: Call, axis: int, ndim: int) -> int:
    """An axis that is counted from the front."""
    if not -ndim <= axis < max(ndim, 1):
        raise call.fault(f"there is no axis {axis} of {ndim}.")
    return axis + ndim if axis < 0 else axis


@operator("Constant")
def constant(
    call: Call,
    *,
    value: object = None,
    value_float: object = None,
    value_floats: object = None,
    value_int: object = None,
    value_ints: object = None,
    value_string: object = None,
    value_strings: object = None,
    sparse_value: object = None,
) -> Any:
    for array in (value, sparse_value):
        if array is not None:
            return array
    if value_float is not None or value_floats is not None:
        return np.array(value_floats if value_float is None else value_float, np.float32)
    if value_int is not None or value_ints is not None:
        return np.array(value_ints if value_int is None else value_int, np.int64)
    return np.array(value_strings if value_string is None else value_string, str)


@operator("Shape", keeps_layout=True)
def shape(call: Call, x: Tensor | ChannelsLast, *, start: int = 0, end: int | None = None) -> np.ndarray:
    return extents(tuple(x.shape)[start:end])


@operator("Size", keeps_layout=True)
def size(call: Call, x: Tensor) -> np.ndarray:
    total: object = 1
    for extent in x.shape:
        total = total * extent
    return extents([total]).reshape(())


@operator("Reshape", since=5, raw=(1,))
def reshape(call: Call, x: Tensor, shape: object, *, allowzero: int = 0) -> Tensor:
    wanted = call.extents(shape)
    if not allowzero:
        wanted = [x.shape[k] if type(n) is int and n == 0 else n for k, n in enumerate(wanted)]
    return shapes.reshape(x, tuple(_inferred(x.shape, wanted)))


def _inferred(shape: Shape, wanted: list[Any]) -> list[Any]:
    """The extents, where -1 stands for what is left: known when all others stand in the shape too."""
    if -1 not in [n for n in wanted if type(n) is int]:
        return wanted
    place = next(k for k, n in enumerate(wanted) if type(n) is int and n == -1)
    left, others = list(shape), [n for k, n in enumerate(wanted) if k != place]
    for extent in list(others):
        if isinstance(extent, Dim) and any(isinstance(n, Dim) and n == extent for n in left):
            left.remove(extent)
            others.remove(extent)
    if all(isinstance(n, int) for n in others) and all(isinstance(n, int) for n in left) and math.prod(others):
        total, known = math.prod(left), math.prod(others)
        if total % known == 0:
            wanted = [*wanted]
            wanted[place] = total // known
    return wanted


@operator("Flatten")
def flatten(call: Call, x: Tensor, *, axis: int = 1) -> Tensor:
    axis = axis + x.ndim if axis < 0 else axis
    rows: Any = 1
    for extent in x.shape[:axis]:
        rows = rows * extent
    columns: Any = 1
    for extent in x.shape[axis:]:
        columns = columns * extent
    return shapes.reshape(x, (rows, columns))


def squeezed(call: Call, x: Tensor, axes: list[int] | None) -> Tensor:
    if axes is None:
        axes = [k for k, n in enumerate(x.shape) if type(n) is int and n == 1]
    return shapes.squeeze(x, tuple(axis_of(call, n, x.ndim) for n in axes))


@operator("Squeeze", since=13, raw=(1,))
def squeeze(call: Call, x: Tensor, axes: object = None) -> Tensor:
    return squeezed(call, x, None if axes is None else call.extents(axes))


@operator("Squeeze", until=11)
def squeeze_by_attribute(call: Call, x: Tensor, *, axes: list[int] | None = None) -> Tensor:
    return squeezed(call, x, axes)


def unsqueezed(call: Call, x: Tensor, axes: list[int]) -> Tensor:
    ndim = x.ndim + len(axes)
    places = {axis_of(call, n, ndim) for n in axes}
    if len(places) != len(axes):
        raise call.fault(f"axes {axes} are not distinct.")
    rest = iter(x.shape)
    return shapes.reshape(x, tuple(1 if k in places else next(rest) for k in range(ndim)))


@operator("Unsqueeze", since=13, raw=(1,))
def unsqueeze(call: Call, x: Tensor, axes: object) -> Tensor:
    return unsqueezed(call, x, call.extents(axes))


@operator("Unsqueeze", until=11)
def unsqueeze_by_attribute(call: Call, x: Tensor, *, axes: list[int]) -> Tensor:
    return unsqueezed(call, x, axes)


@operator("Transpose", keeps_layout=True)
def transpose(call: Call, x: Tensor | ChannelsLast, *, perm: Any = None) -> Tensor:
    perm = tuple(reversed(range(x.ndim))) if perm is None else tuple(perm)
    if isinstance(x, ChannelsLast):  # axis k of ONNX is this axis of the tensor
        places = (0, x.ndim - 1, *range(1, x.ndim - 1))
        perm, x = tuple(places[k] for k in perm), x.tensor
    return shapes.permute_dims(x, perm) if perm != tuple(range(x.ndim)) else x


@operator("Concat", since=4, keeps_layout=True)
def concat(call: Call, *tensors: Tensor | ChannelsLast, axis: int) -> Tensor | ChannelsLast:
    laid = [isinstance(x, ChannelsLast) for x in tensors]
    axis = axis_of(call, axis, tensors[0].ndim)
    if any(laid):
        ndim = tensors[0].ndim
        parts = [x.tensor if isinstance(x, ChannelsLast) else call.run.last(x, ndim) for x in tensors]
        return ChannelsLast(shapes.concat(parts, axis=(0, ndim - 1, *range(1, ndim - 1))[axis]))
    return shapes.concat([call.tensor(x) for x in tensors], axis=axis)


def parts_of(call: Call, x: Any, sizes: list[Any] | None, count: int | None, axis: int) -> Any:
    axis = axis_of(call, axis, x.ndim)
    if sizes is None:
        extent = x.shape[axis]
        count = call.results if count is None else count
        if count <= 0:
            raise call.fault(f"it has {count} results.")
        part = -(-extent // count)
        sizes = [part] * (count - 1) + [extent - part * (count - 1)]
    if isinstance(x, ChannelsLast):
        place = (0, x.ndim - 1, *range(1, x.ndim - 1))[axis]
        return tuple(ChannelsLast(part) for part in _split(x.tensor, sizes, place))
    return tuple(_split(x, sizes, axis))


def _split(x: Tensor, sizes: list[Any], axis: int) -> list[Tensor]:
    parts, start = [], 0
    for count in sizes:
        parts.append(shapes.slice_axis(x, axis, start, start + count))
        start = start + count
    return parts


@operator("Split", since=13, raw=(1,), keeps_layout=True)
def split(call: Call, x: object, sizes: object = None, *, axis: int = 0, num_outputs: int | None = None) -> Any:
    return parts_of(call, x, None if sizes is None else call.extents(sizes), num_outputs, axis)


@operator("Split", since=2, until=11, keeps_layout=True)
def split_by_attribute(call: Call, x: Tensor, *, axis: int = 0, split: list[int] | None = None) -> Any:
    return parts_of(call, x, split, None, axis)


def sliced(
    call: Call,
    x: Tensor | ChannelsLast,
    starts: Any,
    ends: Any,
    axes: Any,
    steps: Any,
) -> Tensor | ChannelsLast:
    axes = list(range(len(starts))) if axes is None else axes
    steps = [1] * len(starts) if steps is None else steps
    parts = [slice(None)] * x.ndim
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        parts[axis_of(call, axis, x.ndim)] = slice_of(start, end, step)
    if isinstance(x, ChannelsLast):
        return ChannelsLast(x.tensor[(parts[0], *parts[2:], parts[1])])
    return x[tuple(parts)] if parts else x


@operator("Slice", since=10, raw=(1, 2, 3, 4), keeps_layout=True)
def slice_(
    call: Call, x: Tensor | ChannelsLast, starts: object, ends: object, axes: object = None, steps: object = None
) -> Tensor | ChannelsLast:
    axes, steps = (None if part is None else call.extents(part) for part in (axes, steps))
    return sliced(call, x, call.extents(starts), call.extents(ends), axes, steps)


@operator("Slice", until=1, keeps_layout=True)
def slice_by_attributes(
    call: Call,
    x: ChannelsLast | Tensor,
    *,
    starts: Sequence[int],
    ends: Sequence[int],
    axes: Sequence[int] | None = None,
) -> Any:
    return sliced(call, x, starts, ends, axes, None)


@operator("Expand", since=8, raw=(1,))
def expand(call: Call, x: Tensor, shape: object) -> Tensor:
    wanted = shapes.broadcast_shapes(tuple(x.shape), tuple(call.extents(shape)))
    call.check_size(wanted)
    return expand_to(x, wanted)


@operator("Tile", since=6, raw=(1,))
def tile(call: Call, x: Tensor, repeats: object) -> Tensor:
    counts = call.extents(repeats)
    call.check_size([n * count for n, count in zip(x.shape, counts, strict=True)])
    return shapes.tile(x, tuple(counts))


@operator("ConstantOfShape", since=9, raw=(0,))
def constant_of_shape(call: Call, shape: object, *, value: np.ndarray | None = None) -> Tensor:
    wanted = call.extents(shape)
    call.check_size(wanted)
    value = np.zeros(1, np.float32) if value is None else value
    return creation.full(tuple(wanted), value.reshape(())[()], value.dtype)


@operator("Range", since=11, raw=(0, 1, 2))
def range_(call: Call, start: Any, limit: object, delta: object) -> Tensor:
    dtype = dtypes.int64 if start.dtype.kind == "O" else start.dtype
    values: list[Any] = [call.numbers(part).reshape(())[()] for part in (start, limit, delta)]
    first, last, step = values
    if dtypes.is_integer(dtype):
        first, last, step = ((n if isinstance(n, Dim) else int(n)) for n in values)
        call.check_size([max((last - first) // step, 0)] if not isinstance(last - first, Dim) else [])
        return creation.arange(first, last, step, dtype=dtype)
    count = max(math.ceil((float(last) - float(first)) / float(step)), 0)
    call.check_size([count])
    places = astype(creation.arange(count), dtypes.float64)
    return astype(places * float(step) + float(first), dtype)


@operator("EyeLike", since=9)
def eye_like(call: Call, x: Tensor, *, dtype: int | None = None, k: int = 0) -> Tensor:
    rows, columns = x.shape
    return creation.eye(rows, columns, k=k, dtype=x.dtype if dtype is None else dtype_of(dtype))


@operator("Trilu", since=14, raw=(1,))
def triangle(call: Call, x: Tensor, k: object = None, *, upper: int = 1) -> Tensor:
    diagonal = 0 if k is None else call.extents(k)[0]
    return (creation.triu if upper else creation.tril)(x, k=diagonal)


def padded(call: Call, x: Tensor, pads: list[Any], axes: list[int], mode: str, value: Any) -> Tensor:
    """Negative pads take away."""
    pairs: list[tuple[Any, Any]] = [(0, 0)] * x.ndim
    for k, axis in enumerate(axes):
        pairs[axis_of(call, axis, x.ndim)] = pads[k], pads[k + len(axes)]
    for axis, (before, after) in enumerate(pairs):
        if any(type(n) is int and n < 0 for n in (before, after)):
            start, stop = max(-before, 0), x.shape[axis] - max(-after, 0)
            x = shapes.slice_axis(x, axis, start, stop)
            pairs[axis] = max(before, 0), max(after, 0)
    call.check_size([n + sum(pair) for n, pair in zip(x.shape, pairs)])
    if not any(n != 0 for pair in pairs for n in pair):
        return x
    if mode == "constant":
        if value is not None and not isinstance(value, np.ndarray):
            inside = shapes.pad(creation.ones(x.shape, dtype=dtypes.bool_), pairs, constant_values=False)
            from hybridflow.array.elementwise import where

            return where(inside, shapes.pad(x, pairs), shapes.reshape(value, ()))
        fill = 0 if value is None else value.reshape(-1)[0].item() if value.size else 0
        return shapes.pad(x, pairs, constant_values=fill)
    if mode == "wrap":
        for axis, (before, after) in enumerate(pairs):
            if before != 0 or after != 0:
                extent = x.shape[axis]
                copies = -(-before // extent), -(-after // extent)
                x = shapes.concat([x] * (copies[0] + 1 + copies[1]), axis=axis)
                start = copies[0] * extent - before
                x = shapes.slice_axis(x, axis, start, start + before + extent + after)
        return x
    return shapes.pad(x, pairs, mode=mode)


@operator("Pad", since=11, raw=(1, 2, 3))
def pad(
    call: Call, x: Tensor, pads: object, value: object = None, axes: object = None, *, mode: str = "constant"
) -> Tensor:
    places = list(range(x.ndim)) if axes is None else call.extents(axes)
    return padded(call, x, call.extents(pads), places, mode, value)


@operator("Pad", since=2, until=2)
def pad_by_attributes(call: Call, x: Tensor, *, pads: list[int], mode: str = "constant", value: float = 0.0) -> Tensor:
    return padded(call, x, pads, list(range(x.ndim)), mode, np.array(value))


@operator("DepthToSpace")
def depth_to_space(call: Call, x: Tensor, *, blocksize: int, mode: str = "DCR") -> Tensor:
    n, c, *sizes = x.shape
    count = len(sizes)
    inner = c // blocksize**count
    blocks = (blocksize,) * count
    if mode == "DCR":
        x = shapes.reshape(x, (n, *blocks, inner, *sizes))
        order = [0, count + 1] + [k for axis in range(count) for k in (count + 2 + axis, 1 + axis)]
    else:
        x = shapes.reshape(x, (n, inner, *blocks, *sizes))
        order = [0, 1] + [k for axis in range(count) for k in (count + 2 + axis, 2 + axis)]
    return shapes.reshape(shapes.permute_dims(x, order), (n, inner, *(s * blocksize for s in sizes)))


@operator("SpaceToDepth")
def space_to_depth(call: Call, x: Tensor, *, blocksize: int, mode: str = "DCR") -> Tensor:
    n, c, *sizes = x.shape
    count = len(sizes)
    split = [k for s in sizes for k in (s // blocksize, blocksize)]
    x = shapes.reshape(x, (n, c, *split))
    blocks, rest = [3 + 2 * k for k in range(count)], [2 + 2 * k for k in range(count)]
    order = [0, *blocks, 1, *rest] if mode == "DCR" else [0, 1, *blocks, *rest]
    x = shapes.permute_dims(x, order)
    return shapes.reshape(x, (n, c * blocksize**count, *(s // blocksize for s in sizes)))


@operator("ReverseSequence", since=10)
def reverse_sequence(call: Call, x: Tensor, lengths: Tensor, *, batch_axis: int = 1, time_axis: int = 0) -> Tensor:
    from hybridflow.array.elementwise import less, where
    from hybridflow.array.indexing import take_along_axis

    steps = x.shape[time_axis]
    at = [1] * x.ndim
    at[time_axis] = steps
    places = shapes.reshape(creation.arange(steps), tuple(at))
    at = [1] * x.ndim
    at[batch_axis] = x.shape[batch_axis]
    counts = shapes.reshape(astype(lengths, dtypes.int64), tuple(at))
    sources = where(less(places, counts), counts - 1 - places, places)
    return take_along_axis(x, expand_to(sources, x.shape), axis=time_axis)


@operator("Col2Im", since=18, raw=(1, 2))
def columns_to_image(
    call: Call,
    x: Tensor,
    image: object,
    block: object,
    *,
    dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Tensor:
    """The sum of blocks where they overlap."""
    sizes, blocks = call.extents(image), call.extents(block)
    count = len(sizes)
    dilation, step = dilations or [1] * count, strides or [1] * count
    pads = pads or [0] * (2 * count)
    whole = [n + pads[k] + pads[k + count] for k, n in enumerate(sizes)]
    call.check_size(whole)
    places = [(w - d * (b - 1) - 1) // s + 1 for w, d, b, s in zip(whole, dilation, blocks, step)]
    n, channels = x.shape[0], x.shape[1] // math.prod(blocks)
    x = shapes.reshape(x, (n, channels, *blocks, *places))
    total: Any = None
    for offset in np.ndindex(*blocks):
        part = x[(slice(None), slice(None), *offset)]
        pairs = [(0, 0), (0, 0)]
        for k in range(count):
            start = offset[k] * dilation[k]
            pairs.append((start, 0))
        part = _spread(part, places, step, whole, [o * d for o, d in zip(offset, dilation)])
        total = part if total is None else total + part
    cuts = tuple(slice(pads[k], pads[k] + n) for k, n in enumerate(sizes))
    return total[(slice(None), slice(None), *cuts)]


def _spread(
    x: Tensor, places: Sequence[Any], step: Sequence[Any], whole: Sequence[Any], start: Sequence[Any]
) -> Tensor:
    """Elements put ``step`` apart, from ``start`` on, into zeros."""
    from hybridflow.eager.dispatch import builder

    span = [(n - 1) * s + 1 for n, s in zip(places, step)]
    high = [w - b - n for w, b, n in zip(whole, start, span)]
    return builder.pad(x, low=(0, 0, *start), high=(0, 0, *high), interior=(0, 0, *(s - 1 for s in step)), value=0)
