"""Eager execution of one op."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from hybridflow.compiler.ir.dtypes import INTEGERS
from hybridflow.compiler.ops import Kind
from hybridflow.core.tensor import Tensor, wrap
from hybridflow.core.variable import Variable
from hybridflow.eager import one_op, placement
from hybridflow.errors import HybridflowError

Attrs = Mapping[str, Any]

_shortcuts: dict[Any, tuple[Callable[..., Any] | None, Attrs]] = {}
_MOST_SHORTCUTS = 4096  # kinds of applications that are remembered


def execute(op: Any, inputs: tuple[Tensor, ...], attrs: Attrs) -> tuple[Tensor, Attrs]:
    """The op's result, and its canonical attributes, which derivative rules see.

    From the second application on to tensors of the same types, which need not be checked again, there is a native
    shortcut.  Raises the op's argument errors, and DeviceError for inputs on several devices.
    """
    if attrs or op.kind is not _ELEMENTWISE:
        key = _key(op, inputs, attrs)
    elif len(inputs) == 2:  # most of all: spelled out
        key = (op, inputs[0]._array.dtype.num, inputs[1]._array.dtype.num)
    else:
        key = (op, *[x._array.dtype.num for x in inputs])
    try:
        known = _shortcuts.get(key)
    except TypeError:  # an attribute that is no canonical one yet, such as a list
        return _execute(op, inputs, attrs)
    if known is None:
        out, canonical = _execute(op, inputs, attrs)
        if op.kind not in _NO_SHORTCUT:
            _remember(key, None, canonical)
        return out, canonical
    shortcut, attrs = known
    if shortcut is None:
        shortcut = one_op.shortcut(op, tuple([x.type for x in inputs]), attrs)
        if shortcut is None:
            return _execute(op, inputs, attrs)
        _remember(key, shortcut, attrs)
    try:
        result = shortcut(*inputs)
        if result is NotImplemented:
            # Strided arrays are made contiguous; what then remains are other devices.
            result = shortcut(*[_contiguous(x) for x in inputs])
            if result is NotImplemented:
                return _execute(op, inputs, attrs)
    except HybridflowError as error:
        raise _explained(error, op, inputs, attrs) from None
    return result, attrs


def try_pair(op: Any, x: Tensor, y: Tensor) -> Tensor | None:
    """The result of an elementwise op by its shortcut, None where there is none (yet): for callers that know that
    nothing records, and want to spare themselves the rest."""
    known = _shortcuts.get((op, x._array.dtype.num, y._array.dtype.num))
    if known is None or known[0] is None:
        return None
    try:
        result = known[0](x, y)
    except HybridflowError as error:
        raise _explained(error, op, (x, y), known[1]) from None
    return None if result is NotImplemented else result


def _key(op: Any, inputs: tuple[Tensor, ...], attrs: Attrs) -> tuple[Any, ...]:
    """What decides whether a shortcut fits, but for the device and layout, which it looks at itself.

    Of an elementwise op the shapes do not matter; a dtype's number hashes faster than the dtype.
    """
    if op.kind is _ELEMENTWISE:
        return (op, *attrs.values(), *[x._array.dtype.num for x in inputs])
    key = [op, *attrs.items()]
    for x in inputs:
        array = x._array
        key += (array.dtype.num, array.shape)
    return tuple(key)


_ELEMENTWISE = Kind.ELEMENTWISE


# Attributes of these hold numbers, of which equal ones may differ (0.0 and -0.0); and creation has no inputs.
_NO_SHORTCUT = frozenset({Kind.SEGMENT, Kind.CREATE})


def _remember(key: Any, shortcut: Callable[..., Any] | None, attrs: Attrs) -> None:
    if len(_shortcuts) >= _MOST_SHORTCUTS:
        _shortcuts.clear()
    _shortcuts[key] = shortcut, attrs


def _contiguous(x: Tensor) -> Tensor:
    return wrap(np.ascontiguousarray(x._array)) if type(x._array) is np.ndarray else x


def _execute(op: Any, inputs: tuple[Tensor, ...], attrs: Attrs) -> tuple[Tensor, Attrs]:
    types = tuple([x.type for x in inputs])
    if op.canon is not None:
        attrs = op.canon(types, dict(attrs))
    out = op.result(types, attrs)
    placement.common(op.name, inputs)
    try:
        array = one_op.run(op, tuple([x._array for x in inputs]), attrs, out)
    except HybridflowError as error:
        raise _explained(error, op, inputs, attrs) from None
    return wrap(np.asarray(array, out.dtype) if isinstance(array, (np.ndarray, np.generic)) else array), attrs


def _explained(error: HybridflowError, op: Any, inputs: tuple[Tensor, ...], attrs: Attrs) -> HybridflowError:
    """The error of a check at run time with the operands' own types: the program, which serves all shapes, knows only
    those of its normal form, but the op's reference raises the same error."""
    try:
        op.reference(*[np.asarray(x.numpy()) for x in inputs], **attrs)
    except HybridflowError as exact:
        return exact
    return error


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


def try_unary(op: Any, x: Any) -> Tensor | None:
    """The short way for one tensor while nothing records: None when there is none for this op and this type."""
    if op.numpy is None or type(x) is not Tensor:
        return None
    a = x._array
    if type(a) is not np.ndarray or a.dtype.kind not in op.numpy_kinds:
        return None
    out = _quiet.run(op.numpy, a)
    return wrap(out if type(out) is np.ndarray else np.asarray(out))


def try_binary(op: Any, x: Any, y: Any) -> Tensor | None:
    """The short way for two tensors of one dtype, or a tensor and a Python number, while nothing records.

    None when there is none for this op and these types, or when the long way has an error to explain.
    """
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
    if dtype.kind not in op.numpy_kinds:
        return None
    try:
        out = _quiet.run(op.numpy, a, b)
    except ValueError:  # shapes that do not broadcast
        return None
    return wrap(out if type(out) is np.ndarray else np.asarray(out))


def _operand(value: Any) -> Any:
    """The array of a variable, a Python number as it is, and None for anything else."""
    kind = type(value)
    if kind is float or kind is int:
        return value
    return value._current()._array if kind is Variable else None


def _fits(value: Any, dtype: Any) -> bool:
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
