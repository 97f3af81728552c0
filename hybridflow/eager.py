"""Eager execution of one op."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Mapping
from typing import Any

import numpy as np

from hybridflow import devices, one_op
from hybridflow.compiler.ops import TABLE
from hybridflow.tensor import Tensor, wrap


def execute(op: Any, inputs: tuple[Tensor, ...], attrs: Mapping[str, Any]) -> Tensor:
    types = tuple(x.type for x in inputs)
    if op.canon is not None:
        attrs = op.canon(types, dict(attrs))
    out = op.infer(*types, **attrs)
    devices.common(op.name, inputs)
    array = one_op.run(op, tuple(x._array for x in inputs), attrs, out)
    return wrap(np.asarray(array, out.dtype) if isinstance(array, (np.ndarray, np.generic)) else array)


class _Quiet(threading.local):
    """``run(ufunc, ...)`` calls a ufunc without NumPy's warnings: in a context of this thread that has them off, which
    costs a tenth of ``np.errstate`` and leaves the user's settings alone."""

    def __init__(self) -> None:
        context = contextvars.Context()
        context.run(np.seterr, all="ignore")
        self.run = context.run


_quiet = _Quiet()

# Operations whose bits IEEE 754 (or two's complement) fixes: NumPy's are as good as ours, and quicker to call.
_EXACT = {
    TABLE[name]: (getattr(np, name), kinds)
    for names, kinds in (
        (("add", "subtract", "multiply"), "fiu"),
        (("divide",), "f"),
        (("equal", "not_equal"), "fiub"),
        (("less", "less_equal", "greater", "greater_equal"), "fiu"),
        (("bitwise_and", "bitwise_or", "bitwise_xor"), "iub"),
    )
    for name in names
}
_NO_UFUNC = (None, "")


def try_binary(op: Any, x: Tensor, y: Tensor) -> Tensor | None:
    """The short way for two tensors while nothing records: None when there is none for this op and these types."""
    ufunc, kinds = _EXACT.get(op, _NO_UFUNC)
    a, b = x._array, y._array
    if a.dtype is not b.dtype or a.dtype.kind not in kinds or not type(a) is type(b) is np.ndarray:
        return None
    try:
        out = _quiet.run(ufunc, a, b)
    except ValueError:  # shapes that do not broadcast: the long way explains
        return None
    return wrap(out if type(out) is np.ndarray else np.asarray(out))
