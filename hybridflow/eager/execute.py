"""Eager execution of one op."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from hybridflow.compiler.ir.results import TupleType
from hybridflow.compiler.ops import Kind
from hybridflow.core.tensor import Tensor, wrap
from hybridflow.core.tier_up import SINGLE_OPS, remember
from hybridflow.eager import placement
from hybridflow.errors import HybridflowError
from hybridflow.runtime import uninterruptible

if TYPE_CHECKING:
    from hybridflow.compiler.ops.op_table import OpDef


Attrs = Mapping[str, Any]

operand_types: dict[type[Tensor], Callable[[Any, tuple[Tensor, ...], Attrs], Any]] = {}
"""Classes of tensors that no kernel takes, each with what applies an op to operands of which some are of the class."""

_shortcuts: dict[Any, tuple[Callable[..., Any] | None, Attrs]] = {}


def execute(op: OpDef, inputs: tuple[Tensor, ...], attrs: Attrs) -> tuple[Any, Attrs]:
    """The op's result, a tuple where there are several, and its canonical attributes, which derivative rules see.

    From the second application on to tensors of the same types, which need not be checked again, there is a native
    shortcut.  Raises the op's argument errors, and DeviceError for inputs on several devices.
    """
    key: tuple[Any, ...] | None
    if attrs or op.kind is not _ELEMENTWISE:
        key = _key(op, inputs, attrs)
    elif len(inputs) == 2:  # most of all: spelled out
        key = (op, inputs[0]._array.dtype.num, inputs[1]._array.dtype.num)
    else:
        key = (op, *[x._array.dtype.num for x in inputs])
    try:
        known = _shortcuts.get(key)
    except TypeError:  # an attribute that is no canonical one yet, such as a list
        known = key = None
    if known is None:
        for x in inputs:
            if type(x) in operand_types:
                return operand_types[type(x)](op, inputs, attrs), attrs
        out, canonical = _execute(op, inputs, attrs)
        if key is not None and op.kind not in _NO_SHORTCUT:
            _remember(key, None, canonical)
        return out, canonical
    shortcut, attrs = known
    if shortcut is None:
        shortcut = _one_op().shortcut(op, tuple([x.type for x in inputs]), attrs)
        if shortcut is None:
            return _execute(op, inputs, attrs)
        _remember(key, shortcut, attrs)
    try:
        result = shortcut(*inputs)
        if result is NotImplemented:  # strided arrays are made contiguous
            result = shortcut(*[_contiguous(x) for x in inputs])
    except HybridflowError as error:
        raise _explained(error, op, inputs, attrs) from None
    if result is NotImplemented:  # on another device, or an error of the arguments
        return _execute(op, inputs, attrs)
    return result, attrs


def try_pair(op: object, x: Tensor, y: Tensor) -> Tensor | None:
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


def _key(op: OpDef, inputs: tuple[Tensor, ...], attrs: Attrs) -> tuple[Any, ...]:
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


def _remember(key: object, shortcut: Callable[..., Any] | None, attrs: Attrs) -> None:
    remember(_shortcuts, key, (shortcut, attrs), SINGLE_OPS.capacity)


def _contiguous(x: Tensor) -> Tensor:
    return wrap(np.asarray(x._array, order="C")) if type(x._array) is np.ndarray else x


def _execute(op: OpDef, inputs: tuple[Tensor, ...], attrs: Attrs) -> tuple[Any, Attrs]:
    types = tuple([x.type for x in inputs])
    if op.canon is not None:
        attrs = op.canon(types, dict(attrs))
    out = op.result(types, attrs)
    placement.common(op.name, inputs)
    try:
        array = _one_op().run(op, tuple([x._array for x in inputs]), attrs, out)
    except HybridflowError as error:
        raise _explained(error, op, inputs, attrs) from None
    if isinstance(out, TupleType):
        return tuple([wrap(part) for part in array]), attrs
    return wrap(np.asarray(array, out.dtype) if isinstance(array, (np.ndarray, np.generic)) else array), attrs


def _explained(error: HybridflowError, op: Any, inputs: tuple[Tensor, ...], attrs: Attrs) -> HybridflowError:
    """The error of a check at run time with the operands' own types: the program, which serves all shapes, knows only
    those of its normal form, but the op's reference raises the same error."""
    if op.calls_host:
        return error
    try:
        op.reference(*[np.asarray(x.numpy()) for x in inputs], **attrs)
    except HybridflowError as exact:
        return exact
    return error


@uninterruptible.loaded
def _one_op() -> ModuleType:
    from hybridflow.eager import single_op_programs  # which ops that NumPy does need not have

    return single_op_programs
