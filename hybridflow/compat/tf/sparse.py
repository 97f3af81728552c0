"""TensorFlow's ``tf.sparse``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

import hybridflow as hf
from hybridflow.compat.adapters.values import axes, extents
from hybridflow.compat.export import Operand, TensorLike, export, tf_export
from hybridflow.core.type_aliases import DTypeLike
from hybridflow.errors import ArgumentError, ShapeError

if TYPE_CHECKING:
    from hybridflow.core.type_aliases import ArrayLike, AxisLike
    from hybridflow.sparse.formats import COO, SparseBase


@tf_export("sparse.add")
def add(a: Any, b: Any, name: str | None = None) -> Any:
    """The sum of two sparse tensors, or of a sparse and a dense one."""
    total = hf.sparse.add(a=a, b=b)
    return total.coalesce() if isinstance(total, hf.sparse.COO) else total


@tf_export("sparse.concat")
def concat(axis: TensorLike, sp_inputs: object, name: str | None = None) -> Any:
    """Sparse tensors joined along an axis."""
    return hf.sparse.reorder(hf.sparse.concat(axis=axis, sp_inputs=sp_inputs))


@tf_export("sparse.eye")
def eye(num_rows: object, num_columns: object = None, dtype: DTypeLike | None = None, name: str | None = None) -> Any:
    """The identity matrix."""
    return hf.sparse.eye(num_rows=num_rows, num_columns=num_columns, dtype=dtype)


@tf_export("sparse.from_dense")
def from_dense(tensor: ArrayLike, name: str | None = None) -> Any:
    """The sparse tensor of the elements that are not zero, in row-major order."""
    return hf.sparse.from_dense(x=tensor)


@tf_export("sparse.reduce_max")
def reduce_max(sp_input: SparseBase, axis: AxisLike = -1, name: str | None = None) -> Any:
    """The largest entry of each line along an axis, as a dense tensor; elements that are no entries play no part."""
    return hf.sparse.reduce_max(x=sp_input, axis=axis)


@tf_export("sparse.reduce_sum")
def reduce_sum(sp_input: object, axis: object = None, keepdims: bool = False, name: str | None = None) -> Any:
    """The sums of elements along axes, as a dense tensor."""
    return hf.sparse.reduce_sum(x=sp_input, axis=axis, keepdims=keepdims)


@tf_export("sparse.reorder")
def reorder(sp_input: COO, name: str | None = None) -> Any:
    """The tensor with its entries in row-major order; those at one place stay apart, in their order."""
    return hf.sparse.reorder(x=sp_input)


@tf_export("sparse.softmax")
def softmax(sp_input: COO, name: str | None = None) -> Any:
    """Softmax along the last axis over the entries alone, as if all others were minus infinity."""
    return hf.sparse.softmax(x=sp_input)


@tf_export("sparse.sparse_dense_matmul")
def sparse_dense_matmul(
    sp_a: object, b: TensorLike, adjoint_a: bool = False, adjoint_b: bool = False, name: str | None = None
) -> Any:
    """The product of a sparse and a dense matrix, under TensorFlow's name and arguments."""
    return hf.sparse.sparse_dense_matmul(sp_a=sp_a, b=b, adjoint_a=adjoint_a, adjoint_b=adjoint_b)


@tf_export("sparse.to_dense")
def to_dense(
    sp_input: Any, default_value: ArrayLike | None = None, validate_indices: bool = True, name: str | None = None
) -> Any:
    """The dense tensor, in which entries at one place are added up."""
    return hf.sparse.to_dense(x=sp_input, default_value=default_value, validate_indices=validate_indices)


@tf_export("sparse.transpose")
def transpose(sp_input: Any, perm: Any = None, name: str | None = None) -> Any:
    """The tensor with its axes in another order."""
    return hf.sparse.transpose(x=sp_input, perm=perm)


@tf_export("sparse.retain")
def retain(sp_input: Any, to_retain: Operand) -> Any:
    """The entries that a vector of bools keeps."""
    if to_retain.shape != sp_input.values.shape:
        raise ShapeError("sparse.retain", f"to_retain is {to_retain.type}. Expected a bool for each entry.")
    kept = np.flatnonzero(to_retain.numpy())
    at, values = hf.take(sp_input.indices, kept, axis=0), hf.take(sp_input.values, kept, axis=0)
    return hf.sparse.COO(at, values, sp_input.shape)


@tf_export("sparse.slice")
def slice(sp_input: Any, start: object, size: object, name: str | None = None) -> Any:
    """The entries between ``start`` and ``start + size``, with a shape that ends where the tensor does."""
    first, wide = (np.asarray([int(n) for n in extents(axes(part))], np.int64) for part in (start, size))
    whole = np.asarray(sp_input.shape, np.int64)
    if first.shape != whole.shape or wide.shape != whole.shape:
        raise ShapeError(
            "sparse.slice", f"start and size have {first.size} and {wide.size} numbers for {whole.size} axes."
        )
    last = np.minimum(first + wide, whole)
    at = sp_input.indices
    kept = hf.all(hf.logical_and(at >= first.astype(at.dtype), at < last.astype(at.dtype)), axis=1)
    part = retain(sp_input, kept)
    sizes = tuple(np.maximum(last - first, 0).tolist())
    return hf.sparse.COO(part.indices - first.astype(at.dtype), part.values, sizes)


@tf_export("sparse.map_values")
def map_values(op: Callable[..., Any], *args: object, **kwargs: object) -> Any:
    """A function of the values of sparse tensors, which have the same indices."""
    sparse = [x for x in (*args, *kwargs.values()) if isinstance(x, hf.sparse.COO)]
    if not sparse:
        raise ArgumentError("sparse.map_values", "no argument is sparse.")
    first = sparse[0]
    for other in sparse[1:]:
        if other.shape != first.shape or other.indices.shape != first.indices.shape:
            raise ShapeError("sparse.map_values", f"{first!r} and {other!r} have other entries.")
        hf.debugging.assert_equal(other.indices, first.indices, message="sparse.map_values: indices differ")
    take = lambda x: x.values if isinstance(x, hf.sparse.COO) else x  # noqa: E731
    values = op(*map(take, args), **{name: take(x) for name, x in kwargs.items()})
    return hf.sparse.COO(first.indices, values, first.shape)


@tf_export("sparse.reshape")
def reshape(sp_input: Any, shape: TensorLike, name: str | None = None) -> Any:
    """The tensor with other axes; one extent may be -1."""
    count = int(np.prod(sp_input.shape, dtype=np.int64))
    wanted = [int(n) for n in extents(axes(shape))]
    known = int(np.prod([n for n in wanted if n != -1], dtype=np.int64))
    sizes = [count // max(known, 1) if n == -1 else n for n in wanted]
    if wanted.count(-1) > 1 or int(np.prod(sizes, dtype=np.int64)) != count:
        raise ShapeError("sparse.reshape", f"{count} elements do not have the shape {wanted}.")
    place = sp_input.positions(range(sp_input.ndim))
    columns: list[Any] = []
    for extent in reversed(sizes):
        columns.insert(0, hf.remainder(place, extent))
        place = hf.floor_divide(place, extent)
    return hf.sparse.COO(hf.stack(columns, axis=1), sp_input.values, tuple(sizes))


@tf_export("sparse.expand_dims")
def expand_dims(sp_input: COO, axis: object = None, name: str | None = None) -> Any:
    """The tensor with one more axis, of one element."""
    sizes = list(sp_input.shape)
    place = int(axes(-1 if axis is None else axis))
    sizes.insert(place + len(sizes) + 1 if place < 0 else place, 1)
    return reshape(sp_input, sizes)


export(hf.sparse.COO, "sparse.SparseTensor", "SparseTensor")
