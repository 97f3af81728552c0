"""Values as TensorFlow makes tensors of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

import hybridflow as hf
from hybridflow.compat.v1.arguments import as_extents
from hybridflow.compat.v1.dtype_names import kind_of
from hybridflow.compat.v1.recording import Sizes
from hybridflow.compiler.ir.extents import Dim
from hybridflow.core.tensor import Tensor as Value

if TYPE_CHECKING:
    from hybridflow.compat.export import TensorLike


def literal(value: object, dtype: object = None, shape: TensorLike | None = None) -> Any:
    """A value as TensorFlow makes it: Python's ints are int32 where they fit."""
    if isinstance(value, (Value, Sizes, Dim)):
        tensor = hf.asarray(value)
        return tensor if dtype is None else hf.astype(tensor, kind_of(dtype))
    if isinstance(value, (list, tuple)) and _holds_values(value):
        return _stacked(value, dtype)
    array = np.asarray(value, dtype=None if dtype is None else kind_of(dtype))
    if dtype is None and not isinstance(value, (np.ndarray, np.generic)):
        if array.dtype == np.float64:
            array = array.astype(np.float32)
        elif array.dtype == np.int64 and np.all((array >= -(2**31)) & (array < 2**31)) and not _has_numpy(value):
            array = array.astype(np.int32)
    if shape is not None:
        extents = as_extents(shape)
        array = np.full(extents, array) if array.size == 1 else array.reshape(extents)
    return hf.constant(array)


def _holds_values(value: Any) -> bool:
    """Whether there are tensors in nested lists: these are stacked, so that derivatives know of them."""
    return any(isinstance(x, Value) or (isinstance(x, (list, tuple)) and _holds_values(x)) for x in value)


def _stacked(values: Iterable[object], dtype: Any) -> Any:
    parts = [x if isinstance(x, Value) else _stacked(x, dtype) if isinstance(x, (list, tuple)) else x for x in values]
    wanted = next((x.dtype for x in parts if isinstance(x, Value)), None) if dtype is None else kind_of(dtype)
    return hf.stack([literal(x, wanted) for x in parts])


def _has_numpy(value: object) -> bool:
    while isinstance(value, (list, tuple)) and value:
        value = value[0]
    return isinstance(value, (np.ndarray, np.generic))
