"""TensorFlow 1's functions that give tensors other shapes, put them together and take them apart."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import hybridflow as hf
from hybridflow.compat.adapters import arrays
from hybridflow.compat.v1.arguments import as_extent, as_extents, as_ints, is_whole
from hybridflow.compat.v1.literals import literal
from hybridflow.compat.v1.recording import Sizes
from hybridflow.compat.v1.table import Table
from hybridflow.compiler.ir.extents import Dim
from hybridflow.core.tensor import Tensor as Value

if TYPE_CHECKING:
    from hybridflow.compat.export import TensorLike
    from hybridflow.core.type_aliases import ArrayLike, DTypeLike


TABLE = Table()
op = TABLE.op

op("Shape", "shape", of_sizes=lambda input, out_type=None: Sizes((len(input),)))(
    lambda input, out_type=None: Sizes(input.shape if hasattr(input, "shape") else np.shape(input))
)


@op("Size")
def size(input: Value, out_type: DTypeLike | None = None) -> Any:
    return math.prod(input.shape)


@op("Rank")
def rank(input: Value) -> Any:
    return len(input.shape)


@op("Identity", of_sizes=lambda input: input)
def identity(input: ArrayLike) -> Any:
    return hf.asarray(input)


def _sizes_reshaped(tensor: object, shape: object) -> Any:
    if isinstance(tensor, Sizes) and shape in ([-1], (-1,), -1):
        return tensor
    return NotImplemented


@op("Reshape", of_sizes=_sizes_reshaped)
def reshape(tensor: ArrayLike, shape: TensorLike) -> Any:
    return hf.reshape(tensor, as_extents(shape))


def _sizes_stacked(values: Iterable[Any], axis: int = 0) -> Any:
    if axis != 0 or not all(isinstance(x, (int, Dim)) or is_whole(x) for x in values):
        return NotImplemented
    return Sizes([as_extent(x) for x in values])


@op("Pack", "stack", "pack", default="stack", of_sizes=_sizes_stacked)
def stack(values: Sequence[Any], axis: int = 0) -> Any:
    return hf.stack(
        [literal(x) if not isinstance(x, Value) else x for x in values]
        if isinstance(values, (list, tuple))
        else values,
        axis=axis,
    )


def _sizes_joined(values: Iterable[object], axis: object = 0) -> Any:
    parts: list[Any] = []
    for x in values:
        if isinstance(x, Sizes):
            parts += x
        elif isinstance(x, (list, tuple)):
            parts += [as_extent(y) for y in x]
        elif isinstance(x, Value) and len(x.shape) == 1 and (type(x) is Value or x._known() is not None):
            parts += as_extents(x)
        else:
            return NotImplemented
    return Sizes(parts)


@op("ConcatV2", "concat", default="concat", of_sizes=_sizes_joined)
def concat(values: Iterable[Any], axis: Any) -> Any:
    if isinstance(values, int):  # the order of before TensorFlow 1.0
        values, axis = axis, values
    return hf.concat([x if isinstance(x, Value) else literal(x) for x in values], axis=as_ints(axis))


@op("Unpack", "unstack", "unpack", default="unstack")
def unstack(value: ArrayLike, num: int | None = None, axis: int = 0) -> Any:
    return list(hf.unstack(value, axis=axis))


@op("Split", default="split")
def split(value: Value, num_or_size_splits: TensorLike, axis: TensorLike = 0, num: object = None) -> Any:
    if isinstance(num_or_size_splits, int):
        return list(hf.split(value, num_or_size_splits, axis=as_ints(axis)))
    sizes = list(as_extents(num_or_size_splits))
    starts, result, begin = as_ints(axis), [], 0
    total = value.shape[starts]
    sizes = [total - sum(x for x in sizes if x != -1) if x == -1 else x for x in sizes]
    for count in sizes:
        key = [slice(None)] * len(value.shape)
        key[starts] = slice(begin, begin + count)
        result.append(value[tuple(key)])
        begin += count
    return result


@op("Transpose", default="transpose")
def transpose(a: Value, perm: Any = None, conjugate: bool = False) -> Any:
    axes = list(reversed(range(len(a.shape)))) if perm is None else as_ints(perm)
    return hf.permute_dims(a, tuple(axes))


@op("Transpose", "matrix_transpose", "transpose_matrix", default="matrix_transpose")
def matrix_transpose(a: ArrayLike) -> Any:
    return hf.matrix_transpose(a)


@op("Squeeze")
def squeeze(input: Value, axis: Any = None, squeeze_dims: Any = None) -> Any:
    axis = as_ints(squeeze_dims if axis is None else axis)
    if axis is None or axis == []:
        axis = [k for k, extent in enumerate(input.shape) if isinstance(extent, int) and extent == 1]
    return hf.squeeze(input, tuple(axis) if isinstance(axis, list) else axis)


@op("ExpandDims")
def expand_dims(input: Any, axis: TensorLike | None = None, dim: TensorLike | None = None) -> Any:
    return hf.expand_dims(input if isinstance(input, Value) else literal(input), as_ints(dim if axis is None else axis))


@op("GatherV2", "gather", default="GatherV2")
def gather(
    params: ArrayLike, indices: ArrayLike, validate_indices: object = None, axis: Any = 0, batch_dims: int = 0
) -> Any:
    return (
        hf.gather(params, indices, axis=as_ints(axis), batch_dims=batch_dims)
        if batch_dims
        else hf.take(params, indices, axis=as_ints(axis))
    )


@op("GatherNd")
def gather_nd(params: ArrayLike, indices: ArrayLike) -> Any:
    return hf.gather_nd(params, indices)


@op("Tile")
def tile(input: ArrayLike, multiples: TensorLike) -> Any:
    return hf.tile(input, as_extents(multiples))


@op("Pad")
def pad(tensor: ArrayLike, paddings: TensorLike, mode: str = "CONSTANT", constant_values: ArrayLike = 0) -> Any:
    widths = as_ints(paddings)
    if mode.upper() == "CONSTANT":
        return hf.pad(tensor, widths, constant_values=constant_values)
    return hf.pad(tensor, widths, mode=mode.lower())


@op("ReverseV2", "reverse", default="ReverseV2")
def reverse(tensor: ArrayLike, axis: TensorLike) -> Any:
    axes = as_ints(axis)
    return hf.flip(tensor, axis=tuple(axes) if isinstance(axes, list) else axes)


@op("ReverseSequence")
def reverse_sequence(
    input: Value,
    seq_lengths: ArrayLike,
    seq_axis: int | None = None,
    batch_axis: int | None = None,
    seq_dim: int | None = None,
    batch_dim: int | None = None,
) -> Any:
    """Each row along ``batch_axis`` with its first so many elements along ``seq_axis`` in opposite order."""
    time, batch = (seq_dim if seq_axis is None else seq_axis), (batch_dim if batch_axis is None else batch_axis) or 0
    if time is None:
        raise ValueError("tf.reverse_sequence needs a seq_axis, along which rows are reversed.")
    if time % len(input.shape) == batch % len(input.shape):
        raise ValueError(f"seq_axis and batch_axis must be two axes, both are {time}.")
    x = hf.moveaxis(input, (batch, time), (0, 1))
    steps, ends = hf.arange(x.shape[1], dtype=hf.int32), hf.expand_dims(hf.astype(seq_lengths, hf.int32), 1)
    places = hf.where(steps < ends, ends - 1 - steps, steps)
    return hf.moveaxis(hf.gather(x, places, axis=1, batch_dims=1), (0, 1), (batch, time))


@op("Select", "where")
def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    condition, x, y = (literal(v) if isinstance(v, (list, tuple)) else v for v in (condition, x, y))
    if x is None:
        return hf.stack(list(hf.nonzero(condition)), axis=-1)
    if len(condition.shape) == 1 and hasattr(x, "shape") and len(x.shape) > 1:
        condition = hf.reshape(condition, (*condition.shape, *[1] * (len(x.shape) - 1)))
    return hf.where(condition, x, y)


@op("OneShotScatter", "scatter_nd")
def scatter_nd(indices: TensorLike, updates: TensorLike, shape: TensorLike) -> Any:
    return arrays.scatter_nd(indices, updates if isinstance(updates, Value) else literal(updates), as_extents(shape))


@op("SpaceToBatch")
def space_to_batch(
    input: object, paddings: TensorLike, block_size: int | None = None, block_shape: TensorLike | None = None
) -> Any:
    return arrays.space_to_batch(literal(input), block_shape or [block_size] * 2, paddings)


@op("BatchToSpace")
def batch_to_space(
    input: object, crops: TensorLike, block_size: int | None = None, block_shape: TensorLike | None = None
) -> Any:
    return arrays.batch_to_space(literal(input), block_shape or [block_size] * 2, crops)


@op("SparseToDense")
def sparse_to_dense(
    sparse_indices: TensorLike,
    output_shape: TensorLike,
    sparse_values: TensorLike,
    default_value: TensorLike = 0,
    validate_indices: bool = True,
) -> Any:
    """Values at some places of a tensor that is ``default_value`` elsewhere."""
    places, values = literal(sparse_indices), literal(sparse_values)
    start = hf.full(as_extents(output_shape), default_value, dtype=values.dtype)
    if start.ndim == 1:
        places = hf.reshape(places, (-1, 1))
    return arrays.tensor_scatter_nd_update(start, hf.reshape(places, (-1, start.ndim)), values)
