"""Making tensors, and moving their elements, with TensorFlow's arguments."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, SupportsIndex

import numpy as np

import hybridflow as hf
from hybridflow.array import scattering
from hybridflow.autograph.runtime.tensor_range import LazyArange
from hybridflow.compat.adapters.ragged_shapes import DynamicRaggedShape
from hybridflow.compat.adapters.values import (
    Extents,
    TensorShape,
    array_of,
    as_dtype,
    as_extent,
    as_extents,
    axes,
    check_channels_last,
    convert_to_tensor,
    count_up_to,
    extents,
    operand,
    operands,
)
from hybridflow.compat.export import Operand, TensorLike, export, tf_export
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ir.extents import Dim
from hybridflow.core.context import now, suspended
from hybridflow.core.tensor import Operators, Tensor
from hybridflow.errors import ArgumentError, IndexRangeError, ShapeError
from hybridflow.ragged import Ragged
from hybridflow.tracing.symbolic_tensor import SymbolicTensor

if TYPE_CHECKING:
    from hybridflow.core.type_aliases import ArrayLike, AxisLike, DTypeLike


class TopK(NamedTuple):
    """What ``tf.math.top_k`` returns."""

    values: Tensor
    indices: Tensor


class Unique(NamedTuple):
    """What ``tf.unique`` returns."""

    y: object
    idx: object


class UniqueWithCounts(NamedTuple):
    """What ``tf.unique_with_counts`` returns."""

    y: object
    idx: object
    count: Any


class ListDiff(NamedTuple):
    """What ``tf.setdiff1d`` of TensorFlow 1 returns."""

    out: object
    idx: object


@tf_export("range")
def range(
    start: TensorLike,
    limit: object = None,
    delta: ArrayLike = 1,
    dtype: DTypeLike | None = None,
    name: str | None = None,
) -> Any:
    """``tf.range``: int32 for Python's ints.  In a traced function bounds may be tensors, for a ``for`` statement."""
    first, last = (0, start) if limit is None else (start, limit)
    tensors = [bound for bound in (first, last, delta) if isinstance(bound, SymbolicTensor)]
    if tensors:
        kind = tensors[0].dtype if dtype is None else dtype
        return LazyArange(
            *(first, last, delta),
            element_of=lambda number: hf.astype(number, kind),
            make=lambda: hf.arange(first, last, delta, dtype=kind),
        )
    bounds = [array_of(x).item() if isinstance(x, Operators) else x for x in (first, last, delta)]
    bound_dtypes = [x.dtype for x in (first, last, delta) if isinstance(x, (Operators, np.generic))]
    if dtype is None:
        floats = any(isinstance(x, float) for x in bounds)
        dtype = bound_dtypes[0] if bound_dtypes else dtypes.float32 if floats else dtypes.int32
    return hf.arange(bounds[0], bounds[1], bounds[2], dtype=dtype)


@tf_export("keras.backend.zeros", "keras.ops.empty", "keras.ops.zeros", "zeros")
def zeros(shape: object, dtype: DTypeLike = dtypes.float32, name: str | None = None, layout: object = None) -> Any:
    """``tf.zeros``; of texts empty ones."""
    if isinstance(shape, DynamicRaggedShape):
        return shape.rows_of(zeros(shape.flat, dtype))
    if as_dtype(dtype).dtype is hf.strings.constant("").dtype:
        return hf.broadcast_to(hf.strings.constant(""), extents(shape))
    return hf.zeros(extents(shape), as_dtype(dtype).dtype)


@tf_export("keras.backend.ones", "keras.ops.ones", "ones")
def ones(shape: object, dtype: DTypeLike = dtypes.float32, name: str | None = None, layout: object = None) -> Any:
    """``tf.ones``."""
    if isinstance(shape, DynamicRaggedShape):
        return shape.rows_of(ones(shape.flat, dtype))
    return hf.ones(extents(shape), as_dtype(dtype).dtype)


@tf_export("fill")
def fill(dims: object, value: TensorLike, name: str | None = None, layout: object = None) -> Any:
    """``tf.fill``: the dtype is that of ``tf.constant(value)``."""
    if isinstance(dims, DynamicRaggedShape):
        return dims.rows_of(fill(dims.flat, value))
    return hf.broadcast_to(operand(value), extents(dims))


@tf_export("linalg.eye", "eye")
def eye(
    num_rows: int,
    num_columns: int | None = None,
    batch_shape: object = None,
    dtype: DTypeLike | None = dtypes.float32,
    name: str | None = None,
) -> Any:
    """``tf.eye``."""
    identity = hf.eye(num_rows, num_columns, dtype=dtype)
    return identity if batch_shape is None else hf.broadcast_to(identity, (*extents(batch_shape), *identity.shape))


@tf_export("linspace")
def linspace(start: TensorLike, stop: TensorLike, num: SupportsIndex, name: str | None = None, axis: int = 0) -> Any:
    """``tf.linspace``: both ends are among the ``num`` values."""
    low, high = (operand(x) for x in (start, stop))
    if not dtypes.is_float(low.dtype):
        low, high = (hf.astype(x, dtypes.float64) for x in (low, high))  # as TensorFlow divides ints
    if not low.ndim and not isinstance(low, SymbolicTensor) and not isinstance(high, SymbolicTensor):
        return hf.linspace(low.item(), high.item(), as_extent(num), dtype=low.dtype)
    step = hf.linspace(0.0, 1.0, as_extent(num), dtype=low.dtype)
    spread = hf.expand_dims(low, axis=0) + hf.reshape(step, (-1, *[1] * low.ndim)) * hf.expand_dims(high - low, axis=0)
    return hf.moveaxis(spread, 0, axis)


@tf_export("one_hot")
def one_hot(
    indices: TensorLike,
    depth: SupportsIndex,
    on_value: TensorLike | None = None,
    off_value: TensorLike | None = None,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    name: str | None = None,
) -> Any:
    """``tf.one_hot``."""
    kind = dtype or next((operand(x).dtype for x in (on_value, off_value) if x is not None), dtypes.float32)
    numbers = operand(indices)
    if dtypes.is_float(numbers.dtype):  # labels of arrays, which Keras's data often are
        numbers = hf.astype(numbers, dtypes.int64)
    result = hf.one_hot(numbers, as_extent(depth), -1 if axis is None else axis, kind)
    if on_value is None and off_value is None:
        return result
    on, off = 1 if on_value is None else on_value, 0 if off_value is None else off_value
    return hf.where(result == 1, hf.astype(operand(on), kind), hf.astype(operand(off), kind))


@tf_export("reshape")
def reshape(tensor: ArrayLike, shape: object, name: str | None = None) -> Any:
    """``tf.reshape``."""
    if isinstance(shape, DynamicRaggedShape):
        return shape.rows_of(reshape(tensor.flat_values if isinstance(tensor, Ragged) else tensor, shape.flat))
    return hf.reshape(operand(tensor), extents(shape))


@tf_export("broadcast_to")
def broadcast_to(input: TensorLike, shape: object, name: str | None = None) -> Any:
    """``tf.broadcast_to``."""
    return hf.broadcast_to(operand(input), extents(shape))


@tf_export("transpose")
def transpose(a: TensorLike, perm: object = None, conjugate: bool = False, name: str | None = None) -> Any:
    """``tf.transpose``."""
    return hf.permute_dims(operand(a), axes(perm))


@tf_export("squeeze")
def squeeze(input: TensorLike, axis: Any = None, name: str | None = None) -> Any:
    """``tf.squeeze``."""
    x, wanted = operand(input), axes(axis)
    return hf.squeeze(x, None if wanted == () else wanted)


def _joined_rows(parts: list[Any], axis: int) -> Any:
    """Ragged tensors, and tensors beside them, joined along their rows or within these."""
    whole = [part if isinstance(part, Ragged) else Ragged.from_tensor(operand(part)) for part in parts]
    if axis % (whole[0].values.ndim + 1) == 0:
        lengths = hf.concat([part.row_lengths() for part in whole])
        values = [part.values for part in whole]
        together = _joined_rows(values, 0) if isinstance(values[0], Ragged) else hf.concat(values)
        return Ragged.from_row_lengths(together, lengths)
    if axis % (whole[0].values.ndim + 1) != 1:
        inner = hf.concat([part.values for part in whole], axis - 1 if axis > 0 else axis)
        return whole[0].with_values(inner)
    if any(isinstance(part.values, Ragged) for part in whole):
        of_rows = [_joined_rows([part[k] for part in whole], 0) for k in range(len(whole[0]))]
        lengths = hf.asarray([row.shape[0] for row in of_rows], dtypes.int64)
        return Ragged.from_row_lengths(_joined_rows(of_rows, 0), lengths)
    order = hf.argsort(hf.concat([part.value_rowids() for part in whole]), stable=True)
    lengths = functools.reduce(hf.add, [part.row_lengths() for part in whole])
    return Ragged.from_row_lengths(hf.take(hf.concat([part.values for part in whole]), order, axis=0), lengths)


def _reversed_rows(x: Ragged, along: tuple[int, ...]) -> Ragged:
    """A ragged tensor with rows, or what is in them, in opposite order."""
    wanted = {axis % x.ndim for axis in along}
    if 0 in wanted:
        x = x[::-1]
    if 1 in wanted and isinstance(x.values, Ragged):
        x = x[:, ::-1]
    elif 1 in wanted:
        rows = x.value_rowids()
        ends = hf.take(x.row_splits, rows + 1, axis=0) + hf.take(x.row_splits, rows, axis=0)
        x = x.with_values(hf.take(x.values, ends - 1 - hf.arange(x.values.shape[0]), axis=0))
    behind = tuple(axis - 1 for axis in sorted(wanted) if axis > 1)
    return x.with_values(reverse(x.values, behind)) if behind else x


@tf_export("concat")
def concat(values: Iterable[Any], axis: TensorLike, name: str | None = None) -> Any:
    """``tf.concat``."""
    if isinstance(values, Operators):
        return values if not values.ndim else hf.concat(hf.unstack(values), axes(axis))
    parts = list(values)
    if any(isinstance(part, Extents) for part in parts) and not any(isinstance(part, Operators) for part in parts):
        return Extents([extent for part in parts for extent in part])
    if any(isinstance(part, Ragged) for part in parts):
        return _joined_rows(parts, int(axes(axis)))
    return hf.concat(operands(parts, [*_indices(parts)]), axes(axis))


@tf_export("stack", "parallel_stack")
def stack(values: Iterable[Any], axis: int = 0, name: str | None = None) -> Any:
    """``tf.stack``."""
    parts = list(values)
    if any(type(part) is Dim for part in parts) and all(isinstance(part, (int, Dim)) for part in parts):
        return Extents(parts)
    return hf.stack(operands(parts, [*_indices(parts)]), axis)


def _indices(parts: list[Any]) -> Any:
    return (k for k, _ in enumerate(parts))


@tf_export("unstack")
def unstack(value: TensorLike, num: int | None = None, axis: int = 0, name: str | None = None) -> list[Any]:
    """``tf.unstack``."""
    x = operand(value)
    if num is not None and x.shape[axis] != num:
        raise ShapeError("unstack", f"num is {num}, axis {axis} of {x.type} has {x.shape[axis]} slices.")
    return list(hf.unstack(x, axis))


@tf_export("split")
def split(
    value: TensorLike, num_or_size_splits: object, axis: object = 0, num: int | None = None, name: str | None = None
) -> list[Any]:
    """``tf.split``: a number of equal parts, or their sizes, one of which may be -1 for what is left."""
    x, along = operand(value), axes(axis)
    if isinstance(num_or_size_splits, Operators) and num_or_size_splits.ndim and now().trace is not None:
        return _split_at(x, as_extents(num_or_size_splits), along)
    sizes = axes(num_or_size_splits)
    if isinstance(sizes, tuple):
        if -1 in sizes:
            left = x.shape[along] - sum(size for size in sizes if size != -1)
            sizes = tuple(left if size == -1 else size for size in sizes)
        sizes = list(sizes)
    return list(hf.split(x, sizes, along))


def _split_at(x: ArrayLike, sizes: Sequence[Any], axis: int) -> list[Any]:
    """Parts of sizes that calls find."""
    ends = [0, *itertools.accumulate(sizes)]
    return [hf.take(x, hf.arange(start, end), axis=axis) for start, end in itertools.pairwise(ends)]


@tf_export("reverse_sequence", v1_names={"seq_dim": "seq_axis", "batch_dim": "batch_axis"}, op_type="ReverseSequence")
def reverse_sequence(
    input: TensorLike,
    seq_lengths: TensorLike,
    seq_axis: int | None = None,
    batch_axis: int | None = None,
    name: str | None = None,
) -> Any:
    """``tf.reverse_sequence``: the start of each sequence, of its length, in reverse."""
    if seq_axis is None:
        raise ArgumentError("reverse_sequence", "seq_axis is not given: along which axis do sequences go?")
    x, lengths = operand(input), operand(seq_lengths)
    along, of_batch = seq_axis % x.ndim, (batch_axis or 0) % x.ndim
    if along == of_batch or lengths.ndim != 1:
        raise ArgumentError(
            "reverse_sequence", f"seq_axis is {seq_axis}, batch_axis {batch_axis}, seq_lengths {lengths.type}; "
            "give two axes, and one length for each sequence."
        )  # fmt: skip
    place = hf.reshape(
        hf.arange(x.shape[along], dtype=lengths.dtype), [-1 if k == along else 1 for k, _ in enumerate(x.shape)]
    )
    length = hf.reshape(lengths, [-1 if k == of_batch else 1 for k, _ in enumerate(x.shape)])
    index = hf.where(place < length, length - 1 - place, place)
    return hf.take_along_axis(x, hf.broadcast_to(index, x.shape), axis=along)


@tf_export("tile")
def tile(input: TensorLike, multiples: object, name: str | None = None) -> Any:
    """``tf.tile``."""
    if isinstance(input, Ragged):
        times = [int(n) for n in extents(axes(multiples))]
        within = _joined_rows([input] * times[1], 1) if times[1] else input[:, :0]
        return _joined_rows([within] * times[0], 0) if times[0] else within[:0]
    return hf.tile(operand(input), extents(axes(multiples)))


@tf_export("repeat")
def repeat(input: TensorLike, repeats: object, axis: int | None = None, name: str | None = None) -> Any:
    """``tf.repeat``."""
    return hf.repeat(operand(input), axes(repeats) if isinstance(repeats, np.ndarray) else repeats, axis=axis)


@tf_export("pad")
def pad(
    tensor: TensorLike,
    paddings: Iterable[Any],
    mode: str = "CONSTANT",
    constant_values: ArrayLike = 0,
    name: str | None = None,
) -> Any:
    """``tf.pad``."""
    pairs = [as_extents(pair) for pair in (list(operand(paddings)) if isinstance(paddings, Operators) else paddings)]
    x = operand(tensor)
    if isinstance(x, hf.strings.StringTensor) and isinstance(constant_values, (str, bytes)):
        constant_values = hf.strings.constant(constant_values)
    if not isinstance(constant_values, Operators) or mode.upper() != "CONSTANT":
        return hf.pad(x, pairs, mode.lower(), constant_values)
    inside = hf.pad(hf.ones(x.shape, bool), pairs, "constant", False)
    is_text = isinstance(constant_values, hf.strings.StringTensor)
    fill = constant_values if is_text else hf.astype(constant_values, x.dtype)
    return hf.where(inside, hf.pad(x, pairs, "constant", 0), fill)


@tf_export("gather")
def gather(
    params: TensorLike,
    indices: TensorLike,
    validate_indices: object = None,
    axis: int | None = None,
    batch_dims: int = 0,
    name: str | None = None,
) -> Any:
    """``tf.gather``: along ``batch_dims`` unless an axis is given."""
    if isinstance(indices, Ragged) and not isinstance(params, Ragged):
        return indices.with_flat_values(gather(params, indices.flat_values, validate_indices, axis, batch_dims))
    if isinstance(params, Ragged) and not batch_dims and axis in (None, 0):
        numbers = operand(indices)
        return params[int(numbers)] if not numbers.ndim else params[numbers]
    return hf.gather(operand(params), operand(indices), batch_dims if axis is None else axes(axis), batch_dims)


@tf_export("gather_nd")
def gather_nd(params: TensorLike, indices: TensorLike, batch_dims: int = 0, name: str | None = None) -> Any:
    """``tf.gather_nd``."""
    look = hf.gather_nd
    for _ in [None] * batch_dims:
        look = hf.vmap(look)
    return look(operand(params), operand(indices))


@tf_export("slice")
def slice_(input_: TensorLike, begin: Any, size: Any, name: str | None = None) -> Any:
    """``tf.slice``: a size of -1 is all that is left. Raises IndexRangeError for a slice that is not inside."""
    x, starts = operand(input_), list(operand(begin)) if isinstance(begin, Operators) else list(begin)
    counts = as_extents(size)
    if not len(starts) == len(counts) == x.ndim:
        raise ShapeError(
            "slice",
            f"begin has {len(starts)} entries and size has {len(counts)}, and x is {x.type}. Give one of each for "
            "each axis.",
        )
    key = []
    for axis, (start, extent) in enumerate(zip(starts, counts)):
        is_rest, whole = isinstance(extent, int) and extent == -1, x.shape[axis]
        if isinstance(start, SymbolicTensor) and not is_rest and 0 <= extent <= whole:
            first = hf.where(start < 0, whole, start)  # never counted from the end
            x = hf.take(x, first + hf.arange(extent), axis=axis)  # one program for all starts
            key.append(slice(None))
        else:
            start = as_extent(start)
            if start < 0 or start > whole or not (is_rest or 0 <= extent <= whole - start):
                raise IndexRangeError(
                    "slice",
                    f"{'the rest' if is_rest else extent} from {start} on is not inside of axis {axis} of {x.type}. "
                    "Expected 0 <= begin <= begin + size <= extent, or a size of -1 for the rest.",
                )
            key.append(slice(start, None if is_rest else start + extent))
    return x[tuple(key)]


@tf_export("strided_slice")
def strided_slice(
    input_: TensorLike, begin: object, end: object, strides: object = None, begin_mask: int = 0, end_mask: int = 0,
    ellipsis_mask: int = 0, new_axis_mask: int = 0, shrink_axis_mask: int = 0, var: object = None,
    name: str | None = None,
) -> Any:  # fmt: skip
    """``tf.strided_slice``."""
    starts, ends = axes(begin), axes(end)
    steps = [1] * len(starts) if strides is None else axes(strides)
    key: list[Any] = []
    for k, (start, stop, step) in enumerate(zip(starts, ends, steps)):
        if ellipsis_mask >> k & 1:
            key.append(Ellipsis)
        elif new_axis_mask >> k & 1:
            key.append(None)
        elif shrink_axis_mask >> k & 1:
            key.append(start)
        else:
            key.append(slice(None if begin_mask >> k & 1 else start, None if end_mask >> k & 1 else stop, step))
    return operand(input_)[tuple(key)]


@tf_export("reverse")
def reverse(tensor: TensorLike, axis: TensorLike, name: str | None = None) -> Any:
    """``tf.reverse``."""
    if isinstance(tensor, Ragged):
        wanted = axes(axis)
        return _reversed_rows(tensor, tuple(wanted) if isinstance(wanted, (list, tuple)) else (wanted,))
    return hf.flip(operand(tensor), axes(axis))


@tf_export("roll")
def roll(input: TensorLike, shift: TensorLike, axis: object, name: str | None = None) -> Any:
    """``tf.roll``."""
    return hf.roll(operand(input), _shifts(shift), axes(axis))


def _shifts(shift: object) -> Any:
    if isinstance(shift, Operators):
        return tuple(as_extents(shift)) if shift.ndim else as_extent(shift)
    return axes(shift)


@tf_export("where")
def where(condition: TensorLike, x: object = None, y: object = None, name: str | None = None) -> Any:
    """``tf.where``: without ``x`` and ``y`` the places where the condition holds, one in each row."""
    chosen = operand(condition)
    if x is None and y is None:
        return hf.stack(list(hf.nonzero(chosen)), axis=1)
    if x is None or y is None:
        raise ArgumentError("where", "x and y are given together, or neither.")
    left, right = operands([x, y], [0, 1])
    return hf.where(hf.astype(chosen, dtypes.bool_), left, right)


@tf_export("boolean_mask")
def boolean_mask(tensor: TensorLike, mask: TensorLike, axis: int | None = None, name: str = "boolean_mask") -> Any:
    """``tf.boolean_mask``."""
    return hf.boolean_mask(operand(tensor), operand(mask), axis)


@tf_export("sequence_mask")
def sequence_mask(
    lengths: TensorLike, maxlen: object = None, dtype: DTypeLike = dtypes.bool_, name: str | None = None
) -> Any:
    """``tf.sequence_mask``."""
    counts = operand(lengths)
    longest = count_up_to(lengths, "sequence_mask", "Give maxlen") - 1 if maxlen is None else maxlen
    mask = hf.less(hf.arange(longest, dtype=counts.dtype), hf.expand_dims(counts, axis=-1))
    return mask if dtype == dtypes.bool_ else hf.astype(mask, dtype)


@tf_export("unique")
def unique(x: TensorLike, out_idx: DTypeLike = dtypes.int32, name: str | None = None) -> Unique:
    """``tf.unique``: values in the order in which they come first, and where each element went."""
    y, idx, _ = _in_order(x, out_idx)
    return Unique(y, idx)


@tf_export("unique_with_counts")
def unique_with_counts(x: TensorLike, out_idx: DTypeLike = dtypes.int32, name: str | None = None) -> UniqueWithCounts:
    """``tf.unique_with_counts``."""
    return UniqueWithCounts(*_in_order(x, out_idx))


def _in_order(x: TensorLike, out_idx: DTypeLike) -> tuple[Any, Any, Any]:
    values = operand(x)
    if values.ndim != 1:
        raise ShapeError("unique", f"the operand is {values.type}; one axis is needed.")
    unique = hf.unique_all(values)
    order = hf.argsort(unique.indices)
    place = hf.argsort(order)
    ordered = (hf.take(unique.values, order), hf.take(place, unique.inverse_indices), hf.take(unique.counts, order))
    return ordered[0], hf.astype(ordered[1], out_idx), hf.astype(ordered[2], out_idx)


@tf_export("unravel_index")
def unravel_index(indices: TensorLike, dims: TensorLike, name: str | None = None) -> Any:
    """``tf.unravel_index``: a row for each axis of a tensor of the shape ``dims``, of positions in all its elements."""
    places = operand(indices)
    return hf.stack([hf.astype(row, places.dtype) for row in hf.unravel_index(places, array_of(dims).tolist())])


def setdiff1d(x: TensorLike, y: TensorLike, index_dtype: DTypeLike = dtypes.int32, name: str | None = None) -> ListDiff:
    """``tf.setdiff1d``: the values of ``x`` that are not in ``y``, in their order, and where they are."""
    values, others = operands([x, y], [0, 1])
    (idx,) = hf.nonzero(~hf.isin(values, others))
    return ListDiff(hf.take(values, idx), hf.astype(idx, index_dtype))


@tf_export("math.argmax", "argmax")
def argmax(
    input: ArrayLike, axis: object = None, output_type: DTypeLike = dtypes.int64, name: str | None = None
) -> Any:
    """``tf.argmax``: along axis 0 unless another is given."""
    positions = hf.argmax(operand(input), 0 if axis is None else axes(axis))
    return positions if output_type == dtypes.int64 else hf.astype(positions, output_type)


@tf_export("math.argmin", "argmin")
def argmin(
    input: TensorLike, axis: object = None, output_type: DTypeLike = dtypes.int64, name: str | None = None
) -> Any:
    """``tf.argmin``: along axis 0 unless another is given."""
    positions = hf.argmin(operand(input), 0 if axis is None else axes(axis))
    return positions if output_type == dtypes.int64 else hf.astype(positions, output_type)


def _descends(direction: str) -> bool:
    if direction not in ("ASCENDING", "DESCENDING"):
        raise ArgumentError("sort", f"direction is {direction!r}; it must be 'ASCENDING' or 'DESCENDING'.")
    return direction == "DESCENDING"


@tf_export("sort")
def sort(values: TensorLike, axis: int = -1, direction: str = "ASCENDING", name: str | None = None) -> Any:
    """``tf.sort``."""
    return hf.sort(operand(values), axis=axis, descending=_descends(direction))


@tf_export("argsort")
def argsort(
    values: TensorLike, axis: int = -1, direction: str = "ASCENDING", stable: bool = False, name: str | None = None
) -> Any:
    """``tf.argsort``: int32."""
    return hf.astype(hf.argsort(operand(values), axis=axis, descending=_descends(direction)), dtypes.int32)


@tf_export("math.top_k", "nn.top_k")
def top_k(
    input: TensorLike, k: int = 1, sorted: bool = True, index_type: DTypeLike = dtypes.int32, name: str | None = None
) -> TopK:
    """``tf.math.top_k``."""
    values, indices = hf.top_k(operand(input), as_extent(k))
    return TopK(values, hf.astype(indices, index_type))


@tf_export("searchsorted")
def searchsorted(
    sorted_sequence: object,
    values: TensorLike,
    side: str = "left",
    output_type: DTypeLike = dtypes.int32,
    name: str | None = None,
) -> Any:
    """``tf.searchsorted``."""
    rows, wanted = operands([sorted_sequence, values], [0, 1])
    if rows.ndim == 1:
        return hf.astype(hf.searchsorted(rows, wanted, side=side), output_type)
    beside = hf.less_equal if side == "right" else hf.less
    below = beside(hf.expand_dims(rows, axis=-2), hf.expand_dims(wanted, axis=-1))
    return hf.sum(hf.astype(below, output_type), axis=-1, dtype=output_type)


def _places(indices: TensorLike) -> tuple[Any, ...]:
    positions = operand(indices)
    if not positions.ndim or positions.shape[-1] == 0:
        raise ShapeError(
            "scatter_nd", f"the indices are {positions.type}; their last axis must have an element at least."
        )
    return tuple([positions[..., k] for k, _ in enumerate([None] * positions.shape[-1])])


@tf_export("scatter_nd")
def scatter_nd(indices: TensorLike, updates: TensorLike, shape: object, name: str | None = None) -> Any:
    """``tf.scatter_nd``: what goes to one place adds up."""
    values = operand(updates)
    return tensor_scatter_nd_add(hf.zeros(extents(shape), values.dtype), indices, values)


@tf_export("tensor_scatter_nd_add")
def tensor_scatter_nd_add(tensor: TensorLike, indices: TensorLike, updates: TensorLike, name: str | None = None) -> Any:
    """``tf.tensor_scatter_nd_add``."""
    x, values = operands([tensor, updates], [0, 1])
    places = operand(indices)
    depth = places.shape[-1]
    rows = hf.reshape(x, (int(np.prod(x.shape[:depth], dtype=np.int64)), *x.shape[depth:]))
    flat = hf.zeros(places.shape[:-1], dtypes.int64)
    for extent, part in zip(x.shape[:depth], _places(places)):
        _check_range(part, extent)
        flat = flat * extent + hf.astype(part, dtypes.int64)
    count = int(np.prod(places.shape[:-1], dtype=np.int64))
    scattered = hf.scatter_add(rows, hf.reshape(flat, (count,)), hf.reshape(values, (count, *x.shape[depth:])))
    return hf.reshape(scattered, x.shape)


def _check_range(index: object, extent: int) -> None:
    """Numbers of several axes make one, which would lie in range though they do not."""
    message = f"an index lies outside an axis of {extent}"
    hf.debugging.assert_less(index, extent, message=message)
    hf.debugging.assert_non_negative(index, message=message)


@tf_export("tensor_scatter_nd_sub")
def tensor_scatter_nd_sub(tensor: TensorLike, indices: TensorLike, updates: TensorLike, name: str | None = None) -> Any:
    """``tf.tensor_scatter_nd_sub``."""
    return tensor_scatter_nd_add(tensor, indices, -operand(updates))


def _extreme_at(function: Callable[..., Any], tensor: TensorLike, indices: TensorLike, updates: TensorLike) -> Any:
    """The derivative of an element is shared evenly by all that are equal to it, as TensorFlow has it."""
    x, values = operands([tensor, updates], [0, 1])
    places = operand(indices)
    _places(places)
    if not dtypes.is_float(x.dtype):
        return function(x, places, values)

    @hf.custom_gradient
    def extreme(x: Any, values: Any) -> Any:
        extreme_values = function(x, places, values)

        def gradient(upstream: Any) -> Any:
            of_x = hf.astype(x == extreme_values, upstream.dtype)
            of_values = hf.astype(values == hf.gather_nd(extreme_values, places), upstream.dtype)
            share = upstream / hf.maximum(tensor_scatter_nd_add(of_x, places, of_values), 1)
            return share * of_x, hf.gather_nd(share, places) * of_values

        return extreme_values, gradient

    return extreme(x, values)


@tf_export("tensor_scatter_nd_max")
def tensor_scatter_nd_max(tensor: TensorLike, indices: TensorLike, updates: TensorLike, name: str | None = None) -> Any:
    """``tf.tensor_scatter_nd_max``."""
    return _extreme_at(scattering.largest_at, tensor, indices, updates)


@tf_export("tensor_scatter_nd_min")
def tensor_scatter_nd_min(tensor: TensorLike, indices: TensorLike, updates: TensorLike, name: str | None = None) -> Any:
    """``tf.tensor_scatter_nd_min``."""
    return _extreme_at(scattering.smallest_at, tensor, indices, updates)


@tf_export("tensor_scatter_nd_update")
def tensor_scatter_nd_update(
    tensor: TensorLike, indices: TensorLike, updates: TensorLike, name: str | None = None
) -> Any:
    """``tf.tensor_scatter_nd_update``."""
    x, values = operands([tensor, updates], [0, 1])
    result = hf.asarray(x).copy()
    result[_places(indices)] = values
    return result


@tf_export("keras.ops.meshgrid", "meshgrid")
def meshgrid(*args: Any, indexing: str = "xy", name: str | None = None) -> list[Any]:
    """``tf.meshgrid``."""
    return list(hf.meshgrid(*[operand(x) for x in args], indexing=indexing))


@tf_export("ensure_shape")
def ensure_shape(x: TensorLike, shape: Any, name: str | None = None) -> Any:
    """``tf.ensure_shape``.  Raises ShapeError where the tensor has another."""
    result = operand(x)
    if getattr(result, "_is_shapeless", False):
        result.set_shape(shape)
        return result
    wanted = tuple(shape)
    if len(wanted) != result.ndim or any(
        w is not None and isinstance(d, int) and w != d for w, d in zip(wanted, result.shape)
    ):
        raise ShapeError("ensure_shape", f"the tensor is {result.type}. Expected {wanted}.")
    return result


@tf_export("identity")
def identity(input: TensorLike, name: str | None = None) -> Any:
    """``tf.identity``: the value of a variable now."""
    return input.read_value() if isinstance(input, hf.Variable) else hf.tree.map(hf.positive, _tensors(input))


def _tensors(value: TensorLike) -> Any:
    return value if isinstance(value, (Operators, Ragged)) else convert_to_tensor(value)


@tf_export("math.invert_permutation")
def invert_permutation(x: TensorLike, name: str | None = None) -> Any:
    """``tf.math.invert_permutation``."""
    permutation = operand(x)
    return hf.astype(hf.argsort(permutation), permutation.dtype)


@tf_export("keras.backend.zeros_like", "zeros_like")
def zeros_like(input: Operand, dtype: DTypeLike | None = None, name: str | None = None, layout: object = None) -> Any:
    """``tf.zeros_like``; of texts empty ones."""
    if isinstance(input, hf.strings.StringTensor) and dtype is None:
        return hf.where(hf.equal(input, input), hf.strings.constant(""), input)
    return hf.zeros_like(input, dtype)


@tf_export("keras.backend.ones_like", "ones_like")
def ones_like(input: Operand, dtype: DTypeLike | None = None, name: str | None = None, layout: object = None) -> Any:
    """``tf.ones_like``."""
    return hf.ones_like(input, dtype)


@tf_export("nn.space_to_depth")
def space_to_depth(input: TensorLike, block_size: int, data_format: str = "NHWC", name: str | None = None) -> Any:
    """``tf.nn.space_to_depth``, of images with channels last.  Raises ArgumentError for others."""
    check_channels_last("nn.space_to_depth", data_format)
    n, h, w, c = operand(input).shape
    parts = hf.reshape(operand(input), (n, h // block_size, block_size, w // block_size, block_size, c))
    moved = hf.permute_dims(parts, (0, 1, 3, 2, 4, 5))
    return hf.reshape(moved, (n, h // block_size, w // block_size, block_size * block_size * c))


@tf_export("nn.depth_to_space")
def depth_to_space(input: TensorLike, block_size: int, data_format: str = "NHWC", name: str | None = None) -> Any:
    """``tf.nn.depth_to_space``, of images with channels last.  Raises ArgumentError for others."""
    check_channels_last("nn.depth_to_space", data_format)
    n, h, w, c = operand(input).shape
    parts = hf.reshape(operand(input), (n, h, w, block_size, block_size, c // (block_size * block_size)))
    moved = hf.permute_dims(parts, (0, 1, 3, 2, 4, 5))
    return hf.reshape(moved, (n, h * block_size, w * block_size, c // (block_size * block_size)))


@tf_export("broadcast_static_shape")
def broadcast_static_shape(shape_x: Any, shape_y: Any) -> Any:
    """``tf.broadcast_static_shape``."""
    return TensorShape(hf.broadcast_shapes(tuple(shape_x), tuple(shape_y)))


@tf_export("broadcast_dynamic_shape")
def broadcast_dynamic_shape(shape_x: Any, shape_y: Any) -> Any:
    """``tf.broadcast_dynamic_shape``: of shapes that are tensors, or extents that are not known yet."""
    sides = [
        tuple(x) if isinstance(x, (tuple, list, Extents)) else tuple(array_of(x).tolist()) for x in (shape_x, shape_y)
    ]
    extents_of_result = hf.broadcast_shapes(*sides)
    whole = all(isinstance(extent, int) for extent in extents_of_result)
    return hf.asarray(list(extents_of_result), dtypes.int32) if whole else Extents(extents_of_result)


def _block(block_shape: TensorLike, crops: TensorLike) -> tuple[list[int], list[list[int]]]:
    return [int(n) for n in array_of(block_shape)], [[int(n) for n in pair] for pair in array_of(crops)]


@tf_export("space_to_batch")
def space_to_batch(input: TensorLike, block_shape: TensorLike, paddings: TensorLike, name: str | None = None) -> Any:
    """``tf.space_to_batch``: the elements of blocks, after padding, become examples of their own."""
    sizes, pads = _block(block_shape, paddings)
    x, m = operand(input), len(sizes)
    x = hf.pad(x, [(0, 0), *map(tuple, pads), *[(0, 0)] * (x.ndim - 1 - m)])
    inner = [extent for k in _numbers(m) for extent in (x.shape[1 + k] // sizes[k], sizes[k])]
    parts = hf.reshape(x, (x.shape[0], *inner, *x.shape[1 + m :]))
    blocks, places = [2 + 2 * k for k in _numbers(m)], [1 + 2 * k for k in _numbers(m)]
    rest = [1 + 2 * m + k for k, _ in enumerate(x.shape[1 + m :])]
    moved = hf.permute_dims(parts, (*blocks, 0, *places, *rest))
    extents_ = [x.shape[1 + k] // sizes[k] for k in _numbers(m)]
    return hf.reshape(moved, (-1, *extents_, *x.shape[1 + m :]))


@tf_export("batch_to_space")
def batch_to_space(input: TensorLike, block_shape: TensorLike, crops: TensorLike, name: str | None = None) -> Any:
    """``tf.batch_to_space``: what ``space_to_batch`` undoes."""
    sizes, cut = _block(block_shape, crops)
    x, m = operand(input), len(sizes)
    count = int(np.prod(sizes))
    parts = hf.reshape(x, (*sizes, x.shape[0] // count, *x.shape[1:]))
    order = [m, *[axis for k in _numbers(m) for axis in (m + 1 + k, k)]]
    rest = [2 * m + 1 + k for k, _ in enumerate(x.shape[1 + m :])]
    moved = hf.permute_dims(parts, (*order, *rest))
    whole = [x.shape[1 + k] * sizes[k] for k in _numbers(m)]
    spread = hf.reshape(moved, (x.shape[0] // count, *whole, *x.shape[1 + m :]))
    return spread[(slice(None), *[slice(a, n - b) for n, (a, b) in zip(whole, cut)])]


def _numbers(count: int) -> list[int]:
    return [k for k, _ in enumerate([None] * count)]


@tf_export("histogram_fixed_width_bins")
def histogram_fixed_width_bins(
    values: TensorLike,
    value_range: TensorLike,
    nbins: int = 100,
    dtype: DTypeLike = dtypes.int32,
    name: str | None = None,
) -> Any:
    """``tf.histogram_fixed_width_bins``: which of ``nbins`` equal bins each is in; what is outside goes to the ends."""
    x = operand(values)
    low, high = (float(end) for end in array_of(value_range))
    share = (hf.astype(x, dtypes.float64) - low) / (high - low)
    return hf.astype(hf.clip(hf.floor(share * nbins), 0, nbins - 1), dtype)


@tf_export("histogram_fixed_width")
def histogram_fixed_width(
    values: TensorLike,
    value_range: TensorLike,
    nbins: int = 100,
    dtype: DTypeLike = dtypes.int32,
    name: str | None = None,
) -> Any:
    """``tf.histogram_fixed_width``: how many values are in each of ``nbins`` equal bins."""
    places = hf.reshape(histogram_fixed_width_bins(values, value_range, nbins), (-1,))
    return hf.astype(hf.bincount(places, length=nbins), dtype)


@tf_export("dynamic_partition")
def dynamic_partition(
    data: TensorLike, partitions: TensorLike, num_partitions: int, name: str | None = None
) -> list[Any]:
    """``tf.dynamic_partition``: the elements of each number; sizes depend on what is there."""
    x, numbers = operand(data), operand(partitions)
    return [hf.boolean_mask(x, numbers == k) for k in _numbers(int(num_partitions))]


@tf_export("dynamic_stitch")
def dynamic_stitch(indices: Any, data: Any, name: str | None = None) -> Any:
    """``tf.dynamic_stitch``: elements at the places that are given for them, of equal ones the last."""
    rest = operand(data[0]).shape[operand(indices[0]).ndim :]
    rows = [hf.reshape(operand(x), (-1, *rest)) for x in data]
    every = hf.concat([hf.reshape(operand(i), (-1,)) for i in indices])
    count = count_up_to(every, "dynamic_stitch", "Give the indices as lists or arrays")
    result = hf.zeros((count, *rest), rows[0].dtype).copy()
    result[every] = hf.concat(rows, axis=0)
    return result


@tf_export("expand_dims")
def expand_dims(input: Operand, axis: AxisLike = 0, name: str | None = None) -> Any:
    """Insert axes: ``x`` with axes of extent 1 inserted, so that they stand at ``axis`` (an int or several) of the
    result."""
    return hf.expand_dims(input, axis=axis)


@tf_export("stop_gradient")
def stop_gradient(input: Operand, name: str | None = None) -> Any:
    """Stop the gradient: ``x``, through which no gradient flows."""
    return hf.stop_gradient(input)


export(hf.ragged.Ragged, "RaggedTensor")
export(hf.Tensor, "Tensor")
export(hf.newaxis, "newaxis")
export(hf.recompute_grad, "recompute_grad")


@tf_export("py_function")
def py_function(
    func: Callable[..., Any] | None = None, inp: object = None, Tout: DTypeLike | None = None, name: str | None = None
) -> Any:
    """``tf.py_function``; without a function it decorates one."""
    if func is None:
        return lambda function: functools.wraps(function)(lambda *args: hf.py_function(function, list(args), Tout))
    return hf.py_function(func, inp, Tout)


export(hf.numpy_function, "numpy_function")
export(suspended, "init_scope")
