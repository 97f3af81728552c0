"""The package ``onnx``, and dtypes as it numbers them: the one module that imports it, when it is asked for."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

import numpy as np

from hybridflow.compiler.ir import dtypes
from hybridflow.errors import OnnxError


@functools.cache
def onnx() -> ModuleType:
    """The package, with those of its modules that are used.  Raises ImportError that says how to install it."""
    try:
        import onnx
        import onnx.checker
        import onnx.defs
        import onnx.external_data_helper
        import onnx.helper
        import onnx.numpy_helper
    except ImportError:
        raise ImportError(
            "hf.onnx reads files through the package onnx, which is not installed: pip install 'hybridflow[onnx]' or "
            "onnx."
        ) from None
    return onnx


@functools.cache
def schema_version(domain: str, op: str, opset: int) -> int | None:
    """Since which opset the operator has had its meaning of ``opset``; None where the package does not know it."""
    defs = onnx().defs
    try:
        schema = defs.get_schema(op, opset, domain)
    except defs.SchemaError:
        return None
    return None if schema.deprecated else schema.since_version


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
