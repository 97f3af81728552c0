"""TensorFlow's ``tf.ragged``."""

from __future__ import annotations

import builtins
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

import hybridflow as hf
from hybridflow.compat.adapters.arrays import concat
from hybridflow.compat.adapters.values import TensorShape, TensorSpec, axes, constant as constant_of, operand
from hybridflow.compat.export import export, tf_export
from hybridflow.compiler.ir import dtypes
from hybridflow.core.type_aliases import ShapeLike
from hybridflow.errors import ArgumentError, ArgumentTypeError, ShapeError
from hybridflow.ragged import made

if TYPE_CHECKING:
    from hybridflow.core.type_aliases import DTypeLike


@tf_export("ragged.constant")
def constant(
    pylist: Any,
    dtype: object = None,
    ragged_rank: int | None = None,
    inner_shape: object = None,
    name: str | None = None,
    row_splits_dtype: object = None,
) -> Any:
    """The ragged tensor of a list of rows; its innermost lists are its innermost rows."""
    if not isinstance(pylist, (list, tuple)):
        return constant_of(pylist, dtype)
    if ragged_rank is None:
        inner = 0 if inner_shape is None else len(axes(inner_shape))
        ragged_rank = _depth(pylist) - 1 - inner
    if ragged_rank < 1:
        return constant_of(pylist, dtype)
    try:
        rows = hf.ragged.constant(pylist, dtype, ragged_rank)
    except (ArgumentTypeError, ShapeError) as error:
        raise ArgumentError(
            "ragged.constant", f"the elements are of several types or depths: {pylist!r:.200}"
        ) from error
    if dtype is not None or rows.dtype != dtypes.int64 or not _is_of_ints(pylist):
        return rows
    flat = rows.flat_values
    low, high = (flat.numpy().min(), flat.numpy().max()) if flat.size else (0, 0)
    return rows.with_flat_values(hf.astype(flat, dtypes.int32)) if -(2**31) <= low <= high < 2**31 else rows


def _depth(value: Any) -> int:
    """How deep lists are nested."""
    if not isinstance(value, (list, tuple)):
        return np.ndim(value)
    return 1 + max(map(_depth, value), default=0)


def _is_of_ints(value: object) -> bool:
    if isinstance(value, (list, tuple)):
        return all(map(_is_of_ints, value))
    return type(value) is int


@tf_export("ragged.range")
def range(
    starts: Any, limits: Any = None, deltas: Any = 1, dtype: Any = None, name: str | None = None,
    row_splits_dtype: Any = None,
) -> Any:  # fmt: skip
    """Rows of numbers: from each start to before each limit; one argument is the limits."""
    if limits is None:
        starts, limits = 0, starts
    parts: Any = np.broadcast_arrays(*(np.atleast_1d(operand(x).numpy()) for x in (starts, limits, deltas)))
    rows = [np.arange(a, b, d, dtype=np.result_type(a, b)) for a, b, d in zip(*parts)]
    values = np.concatenate(rows) if rows else np.zeros(0, parts[0].dtype)
    lengths = np.array([len(row) for row in rows], np.int64)
    kind = dtypes.int32 if dtype is None and parts[1].dtype == np.int32 else dtype
    return hf.ragged.Ragged.from_row_lengths(hf.asarray(values, kind), lengths)


@tf_export("ragged.stack")
def stack(values: Iterable[Any], axis: object = 0, name: str | None = None) -> Any:
    """Tensors, and ragged ones, as the rows of one."""
    parts = [part if isinstance(part, hf.ragged.Ragged) else operand(part) for part in values]
    if int(axes(axis)) != 0:
        raise ArgumentError("ragged.stack", f"axis is {axis}; rows are stacked along axis 0.")
    lengths = np.array([part.shape[0] for part in parts], np.int64)
    return hf.ragged.Ragged.from_row_lengths(concat(parts, 0), lengths)


@tf_export("RaggedTensorSpec")
def spec(
    shape: ShapeLike | None = None, dtype: DTypeLike = dtypes.float32, ragged_rank: int | None = None,
    row_splits_dtype: object = None,
    flat_values_spec: object = None,
) -> Any:  # fmt: skip
    """``tf.RaggedTensorSpec``: the ragged tensor whose parts are specs."""
    sizes = list(TensorShape(shape if shape is not None else [None, None]))
    rank = len(sizes) - 1 if ragged_rank is None else ragged_rank
    if rank < 1:
        raise ArgumentError("RaggedTensorSpec", f"the shape is {sizes}, with no axis of rows.")
    values: object = flat_values_spec or TensorSpec((None, *sizes[rank + 1 :]), dtype)
    for level in builtins.range(rank, 0, -1):
        count = sizes[0] if level == 1 else None
        values = made(values, TensorSpec((None if count is None else count + 1,), row_splits_dtype or dtypes.int64))
    return values


@tf_export("ragged.row_splits_to_segment_ids")
def row_splits_to_segment_ids(splits: object, name: str | None = None) -> Any:
    """The row of each value, by where rows end."""
    return hf.ragged.row_splits_to_segment_ids(splits=splits)


export(hf.ragged.map_flat_values, "ragged.map_flat_values")
