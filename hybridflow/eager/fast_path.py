"""The short way of most eager operations: NumPy's own function, where IEEE 754 fixes the bits.

Nothing must record, and both operands must be what NumPy takes as we do; None is the answer for everything else.
"""

from __future__ import annotations

import contextvars
import math
import threading
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from hybridflow.compiler.ir.dtypes import INTEGERS
from hybridflow.core.tensor import Tensor, wrap
from hybridflow.core.tier_up import OPERATORS
from hybridflow.core.variable import Variable
from hybridflow.runtime import uninterruptible

if TYPE_CHECKING:
    from hybridflow.compiler.ops.op_table import OpDef


class _Quiet(threading.local):
    """``run(ufunc, ...)`` calls a ufunc without NumPy's warnings: in a context of this thread that has them off, which
    costs a tenth of ``np.errstate`` and leaves the user's settings alone."""

    def __init__(self) -> None:
        context = contextvars.Context()
        context.run(np.seterr, all="ignore")
        self.run = context.run


_quiet = _Quiet()
_INT_LIMITS = {d: (np.iinfo(d).min, np.iinfo(d).max) for d in INTEGERS}
_EXACT_INT = 2**11  # every float dtype that NumPy knows holds the integers up to here


LARGE = 1 << 20  # bytes of a result that are worth native code at once: its memory comes from the pool

natives: dict[Any, Callable[..., Any]] = {}  # native functions of ops, which give NotImplemented for what they lack
taped_calls: dict[Any, Callable[..., Any]] = {}  # of ops behind Python's operators: what does the same, and tells tapes
_uses_left: float = OPERATORS.threshold  # loading native code takes as long as many operators in Python


def note_use(nbytes: int) -> None:
    """An operator was answered in Python, with a result of so many bytes."""
    global _uses_left
    _uses_left -= OPERATORS.threshold if nbytes >= LARGE else 1
    if _uses_left <= 0 and _native_operators().is_ready():
        _uses_left = math.inf  # it is tried once
        make_native()


def note_taped_call(op: object, whole: Callable[..., Any]) -> None:
    """``whole`` does what an operator does whose op this is, and tells tapes of it by one native call."""
    taped_calls[op] = whole
    if natives:
        _native_operators().give(op, whole)


def make_native() -> bool:
    """Let native code answer operators; whether it does."""
    native_operators = _native_operators()
    natives.update(native_operators.install())
    for op, whole in list(taped_calls.items()) if natives else ():
        native_operators.give(op, whole)
    return bool(natives)


@uninterruptible.loaded
def _native_operators() -> ModuleType:
    from hybridflow.eager import native_operators  # which a program of few operators does without

    return native_operators


def make_python() -> None:
    """Let Python answer operators again."""
    from hybridflow.runtime.calls import operators

    operators.uninstall()
    natives.clear()


def try_unary(op: OpDef, x: object) -> Tensor | None:
    """The short way for one tensor while nothing records: None when there is none for this op and this type."""
    native = natives.get(op)
    if native is not None:
        out = native(x)
        if out is not NotImplemented:
            return out
    if op.numpy is None or type(x) is not Tensor:
        return None
    a = x._array
    if type(a) is not np.ndarray or a.dtype.char not in op.numpy_chars:
        return None
    out = _quiet.run(op.numpy, a)
    note_use(out.nbytes)
    return wrap(out if type(out) is np.ndarray else np.asarray(out))


def try_binary(op: OpDef, x: object, y: object) -> Tensor | None:
    """The short way for two tensors of one dtype, or a tensor and a Python number, while nothing records.

    None when there is none for this op and these types, or when the long way has an error to explain.
    """
    native = natives.get(op)
    if native is not None:
        out = native(x, y)
        if out is not NotImplemented:
            return out
    if op.numpy is None:
        return None
    a = x._array if type(x) is Tensor else _operand(x)
    b = y._array if type(y) is Tensor else _operand(y)
    if type(a) is np.ndarray:
        dtype = a.dtype
        if type(b) is np.ndarray:
            if b.dtype is not dtype:
                return None
        elif not _fits(b, dtype):
            return None
    elif type(b) is np.ndarray:
        dtype = b.dtype
        if not _fits(a, dtype):
            return None
    else:
        return None
    if dtype.char not in op.numpy_chars:
        return None
    try:
        out = _quiet.run(op.numpy, a, b)
    except ValueError:  # shapes that do not broadcast
        return None
    note_use(out.nbytes)
    return wrap(out if type(out) is np.ndarray else np.asarray(out))


def _operand(value: Any) -> Any:
    """The array of a variable, a Python number as it is, that of a NumPy scalar, and None for anything else."""
    kind = type(value)
    if kind is float or kind is int:
        return value
    if kind is Variable:
        return value._current()._array
    return value.item() if isinstance(value, np.generic) else None


def _fits(value: Any, dtype: np.dtype[Any]) -> bool:
    """Whether NumPy takes the Python number ``value`` as we do, next to an array of ``dtype``."""
    kind = type(value)
    if kind is float:
        return dtype.kind == "f"
    if kind is not int:
        return False
    if dtype.kind == "f":
        return -_EXACT_INT <= value <= _EXACT_INT
    low, high = _INT_LIMITS.get(dtype, (0, -1))
    return low <= value <= high
