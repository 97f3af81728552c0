"""TensorFlow's ``tf.sparse``."""

from __future__ import annotations

from typing import Any

import hybridflow as hf
from hybridflow.compat.export import export, tf_export


@tf_export("sparse.add")
def add(a: Any, b: Any, name: str | None = None) -> Any:
    """The sum of two sparse tensors, or of a sparse and a dense one."""
    return hf.sparse.add(a=a, b=b)


@tf_export("sparse.concat")
def concat(axis: Any, sp_inputs: Any, name: str | None = None) -> Any:
    """Sparse tensors joined along an axis."""
    return hf.sparse.concat(axis=axis, sp_inputs=sp_inputs)


@tf_export("sparse.eye")
def eye(num_rows: Any, num_columns: Any = None, dtype: Any = None, name: str | None = None) -> Any:
    """The identity matrix."""
    return hf.sparse.eye(num_rows=num_rows, num_columns=num_columns, dtype=dtype)


@tf_export("sparse.from_dense")
def from_dense(tensor: Any, name: str | None = None) -> Any:
    """The sparse tensor of the elements that are not zero, in row-major order."""
    return hf.sparse.from_dense(x=tensor)


@tf_export("sparse.reduce_max")
def reduce_max(sp_input: Any, axis: Any = -1, name: str | None = None) -> Any:
    """The largest entry of each line along an axis, as a dense tensor; elements that are no entries play no part."""
    return hf.sparse.reduce_max(x=sp_input, axis=axis)


@tf_export("sparse.reduce_sum")
def reduce_sum(sp_input: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Any:
    """The sums of elements along axes, as a dense tensor."""
    return hf.sparse.reduce_sum(x=sp_input, axis=axis, keepdims=keepdims)


@tf_export("sparse.reorder")
def reorder(sp_input: Any, name: str | None = None) -> Any:
    """The tensor with its entries in row-major order; those at one place stay apart, in their order."""
    return hf.sparse.reorder(x=sp_input)


@tf_export("sparse.softmax")
def softmax(sp_input: Any, name: str | None = None) -> Any:
    """Softmax along the last axis over the entries alone, as if all others were minus infinity."""
    return hf.sparse.softmax(x=sp_input)


@tf_export("sparse.sparse_dense_matmul")
def sparse_dense_matmul(
    sp_a: Any, b: Any, adjoint_a: bool = False, adjoint_b: bool = False, name: str | None = None
) -> Any:
    """The product of a sparse and a dense matrix, under TensorFlow's name and arguments."""
    return hf.sparse.sparse_dense_matmul(sp_a=sp_a, b=b, adjoint_a=adjoint_a, adjoint_b=adjoint_b)


@tf_export("sparse.to_dense")
def to_dense(sp_input: Any, default_value: Any = None, validate_indices: bool = True, name: str | None = None) -> Any:
    """The dense tensor, in which entries at one place are added up."""
    return hf.sparse.to_dense(x=sp_input, default_value=default_value, validate_indices=validate_indices)


@tf_export("sparse.transpose")
def transpose(sp_input: Any, perm: Any = None, name: str | None = None) -> Any:
    """The tensor with its axes in another order."""
    return hf.sparse.transpose(x=sp_input, perm=perm)


export(hf.sparse.COO, "sparse.SparseTensor", "SparseTensor")
