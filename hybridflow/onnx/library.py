"""The package ``onnx``: the one module that imports it, when it is asked for."""

from __future__ import annotations

import functools
from types import ModuleType


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
