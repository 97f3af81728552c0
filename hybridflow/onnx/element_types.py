"""Dtypes as ONNX numbers them."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from hybridflow.compiler.ir import dtypes
from hybridflow.errors import OnnxError
from hybridflow.onnx.library import onnx

_HERE = frozenset(dtypes.ALL)


@functools.cache
def dtype_of(element: int) -> np.dtype[Any]:
    """The dtype.  Raises OnnxError for one that tensors here do not have."""
    if element == 8:  # strings, which are values of hosts alone
        return np.dtype(object)
    try:
        dtype = np.dtype(onnx().helper.tensor_dtype_to_np_dtype(element))
    except (KeyError, TypeError, ValueError):
        raise OnnxError("onnx", f"there is no dtype with the number {element}.") from None
    if dtype not in _HERE:
        name = onnx().TensorProto.DataType.Name(element)
        raise OnnxError("onnx", f"tensors of {name.lower()} are not supported.")
    return dtype


@functools.cache
def element_of(dtype: np.dtype[Any]) -> int:
    """The number of a dtype."""
    return int(onnx().helper.np_dtype_to_tensor_dtype(dtype))
