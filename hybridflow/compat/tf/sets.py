"""``tf.sets``: operations on sets that lie along the last axis of tensors; results are sparse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import hybridflow as hf
from hybridflow.compat.adapters.values import operand
from hybridflow.compat.export import TensorLike, tf_export
from hybridflow.errors import DTypeError, ShapeError


def _rows(x: TensorLike) -> tuple[tuple[int, ...], list[set[Any]], Any]:
    """The leading extents, the sets, and the dtype of a tensor or a sparse one."""
    if isinstance(x, hf.sparse.COO):
        places, values = np.asarray(x.indices), np.asarray(x.values).tolist()
        shape = tuple(int(n) for n in x.shape)[:-1]
        rows: list[set[Any]] = [set() for _ in range(int(np.prod(shape, dtype=np.int64)))]
        for place, value in zip(places, values):
            rows[int(np.ravel_multi_index(tuple(place[:-1]), shape)) if shape else 0].add(value)
        return shape, rows, x.values.dtype
    outcome = operand(x)
    array = np.asarray(outcome)
    if array.ndim < 1:
        raise ShapeError("sets", f"{outcome.type} has no axis of sets.")
    return array.shape[:-1], [set(row) for row in array.reshape(-1, array.shape[-1]).tolist()], outcome.dtype


def _combined(a: TensorLike, b: TensorLike, function: Callable[[set[Any], set[Any]], set[Any]]) -> Any:
    shape, ones, dtype = _rows(a)
    other_shape, others, other_dtype = _rows(b)
    if shape != other_shape:
        raise ShapeError("sets", f"the leading extents are {shape} and {other_shape}. Expected equal ones.")
    if dtype != other_dtype:
        raise DTypeError("sets", f"the dtypes are {dtype} and {other_dtype}. Expected equal ones.")
    rows = [sorted(function(one, other)) for one, other in zip(ones, others)]
    places = [
        (*np.unravel_index(k, shape), n) if shape else (n,) for k, row in enumerate(rows) for n in range(len(row))
    ]
    values = [value for row in rows for value in row]
    converted = hf.strings.constant(values) if dtype.kind == "O" else hf.asarray(np.array(values, dtype))
    width = max(map(len, rows), default=0)
    return hf.sparse.COO(np.array(places, np.int64).reshape(-1, len(shape) + 1), converted, (*shape, width))


@tf_export("sets.union")
def union(a: TensorLike, b: TensorLike, validate_indices: bool = True) -> Any:
    """``tf.sets.union``."""
    return _combined(a, b, lambda one, other: one | other)


@tf_export("sets.intersection")
def intersection(a: TensorLike, b: TensorLike, validate_indices: bool = True) -> Any:
    """``tf.sets.intersection``."""
    return _combined(a, b, lambda one, other: one & other)


@tf_export("sets.difference")
def difference(a: TensorLike, b: TensorLike, aminusb: bool = True, validate_indices: bool = True) -> Any:
    """``tf.sets.difference``."""
    return _combined(a, b, lambda one, other: one - other if aminusb else other - one)


@tf_export("sets.size")
def size(a: TensorLike, validate_indices: bool = True) -> Any:
    """``tf.sets.size``: int32."""
    shape, rows, _ = _rows(a)
    return hf.asarray(np.array([len(row) for row in rows], np.int32).reshape(shape))
