"""TensorFlow 1's functions that make tensors of shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import hybridflow as hf
from hybridflow.compat.adapters import arrays
from hybridflow.compat.tf import linalg as linear
from hybridflow.compat.v1.arguments import as_extent, as_extents, as_number
from hybridflow.compat.v1.dtype_names import kind_of
from hybridflow.compat.v1.literals import literal
from hybridflow.compat.v1.table import Table
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ir.extents import Dim

if TYPE_CHECKING:
    from hybridflow.compat.export import TensorLike
    from hybridflow.core.type_aliases import ArrayLike, DTypeLike


TABLE = Table()
op = TABLE.op


@op("ZerosLike")
def zeros_like(tensor: ArrayLike, dtype: DTypeLike | None = None, optimize: bool = True) -> Any:
    return hf.zeros_like(tensor, dtype=None if dtype is None else kind_of(dtype))


@op("OnesLike")
def ones_like(tensor: ArrayLike, dtype: DTypeLike | None = None, optimize: bool = True) -> Any:
    return hf.ones_like(tensor, dtype=None if dtype is None else kind_of(dtype))


@op("Fill", "zeros", default="zeros")
def zeros(shape: TensorLike, dtype: DTypeLike = dtypes.float32) -> Any:
    return hf.zeros(as_extents(shape), dtype=kind_of(dtype))


@op("Fill", "ones", default="ones")
def ones(shape: TensorLike, dtype: DTypeLike = dtypes.float32) -> Any:
    return hf.ones(as_extents(shape), dtype=kind_of(dtype))


@op("Fill")
def fill(dims: TensorLike, value: TensorLike) -> Any:
    return hf.broadcast_to(literal(value), as_extents(dims))


@op("Range")
def range_(
    start: TensorLike, limit: TensorLike | None = None, delta: TensorLike = 1, dtype: DTypeLike | None = None
) -> Any:
    if limit is None:
        start, limit = 0, start
    values: list[Any] = [as_number(x) for x in (start, limit, delta)]
    is_whole = all(isinstance(x, (int, Dim, np.integer)) for x in values)
    return hf.arange(values[0], values[1], values[2], dtype=kind_of(dtype or (hf.int32 if is_whole else hf.float32)))


@op("LinSpace", "linspace", "lin_space")
def linspace(start: Any, stop: Any, num: Any) -> Any:
    return hf.linspace(start, stop, int(num))


@op("Eye")
def eye(
    num_rows: int,
    num_columns: int | None = None,
    batch_shape: TensorLike | None = None,
    dtype: DTypeLike = dtypes.float32,
) -> Any:
    identity = hf.eye(num_rows, num_columns, dtype=kind_of(dtype))
    return identity if batch_shape is None else hf.broadcast_to(identity, (*as_extents(batch_shape), *identity.shape))


@op("OneHot")
def one_hot(
    indices: TensorLike,
    depth: Any,
    on_value: ArrayLike | None = None,
    off_value: ArrayLike | None = None,
    axis: Any = None,
    dtype: DTypeLike | None = None,
) -> Any:
    kind = None if dtype is None else kind_of(dtype)
    return arrays.one_hot(indices, as_extent(depth), on_value, off_value, axis, kind)


@op("Diag")
def diag(diagonal: TensorLike) -> Any:
    return linear.tensor_diag(diagonal)


@op("MatrixDiag")
def matrix_diag(diagonal: TensorLike) -> Any:
    return linear.diag(diagonal)
