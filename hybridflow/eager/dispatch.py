"""The choke point: every op, eager or traced, recorded on tapes or not, passes through ``apply``."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from hybridflow.compiler.ir.build import Builder
from hybridflow.compiler.ops import TABLE, Kind
from hybridflow.core.context import everywhere, idle, now
from hybridflow.core.string_tensor import StringTensor
from hybridflow.core.tensor import Tensor, wrap
from hybridflow.eager import nan_checks
from hybridflow.eager.execute import execute, operand_types, try_pair
from hybridflow.runtime import uninterruptible

if TYPE_CHECKING:
    from hybridflow.compiler.ops.op_table import OpDef


def apply(op: OpDef, *inputs: Tensor, **attributes: object) -> Any:
    """Apply a primitive op to tensors whose shapes and dtypes already fit: run it, or record it while tracing.  The
    result is a tensor, of an op with several results a tuple of them.

    Raises the op's ShapeError, DTypeError or ArgumentError.
    """
    attrs: Mapping[str, Any] = attributes
    state = now()
    trace = state.trace
    if trace is not None:
        for x in inputs:
            if type(x) in operand_types:
                return operand_types[type(x)](op, inputs, attributes)
        if op.raises is not None:
            for guard in guards:
                caught = guard(op, inputs, attributes)
                if caught is not None:
                    return caught
        out: object = trace.record(op, inputs, attributes)
        if state.tapes and op.canon is not None:
            attrs = op.canon(tuple([x.type for x in inputs]), attributes)
    else:
        out, attrs = execute(op, inputs, attributes)
        if nan_checks.is_on:
            nan_checks.check(op, inputs, out)
    for tape in state.tapes:
        tape.record(op, inputs, attrs, out)
    return out


def _on_strings(op: object, inputs: tuple[Tensor, ...], attributes: Mapping[str, Any]) -> Any:
    return _string_ops().apply(apply, op, inputs, attributes)


@uninterruptible.loaded
def _string_ops() -> ModuleType:
    from hybridflow.eager import string_ops  # of which few programs have any

    return string_ops


operand_types[StringTensor] = _on_strings


guards: list[Any] = []
"""Each is asked, with the op, its inputs and attributes, what comes of an op that may raise an error when the program
that is traced runs: None if it is to be recorded as it is.  ``effects`` adds what knows who catches errors."""


class TensorBuilder(Builder):
    """The builder over live or symbolic tensors: derivative rules run through it."""

    emit = staticmethod(apply)

    def __getattr__(self, name: str) -> Any:
        general = super().__getattr__(name)
        op = TABLE[name]
        if op.kind is not Kind.ELEMENTWISE or op.arity != 2:
            return general

        def of_two(x: Tensor, y: Tensor) -> Tensor:
            if now() is idle and not everywhere.value:
                out = try_pair(op, x, y)
                if out is not None:
                    return out
            return apply(op, x, y)

        self.__dict__[name] = of_two
        return of_two

    def results(self, value: Any) -> tuple[Tensor, ...]:
        result: tuple[Tensor, ...] = value
        return result

    def full(self, value: object, like: Any) -> Tensor:
        state = now()
        if state.trace is not None or state.device is not None:
            return super().full(value, like)
        if type(like) is Tensor:
            like = like._array  # whose attributes cost no Python call
        array: Any = np.empty(like.shape, like.dtype)
        array.fill(value)
        return wrap(array)

    def broadcast(self, x: Tensor, shape: tuple[int, ...], axes: tuple[int, ...]) -> Tensor:
        """One element is filled in rather than viewed with strides of 0, which every reader would have to copy."""
        state = now()
        if (
            type(x) is Tensor
            and state.trace is None
            and not state.tapes
            and type(x._array) is np.ndarray
            and x._array.size == 1
        ):
            array: Any = np.empty(shape, x._array.dtype)
            array[...] = x._array
            return wrap(array)
        return apply(_BROADCAST, x, shape=shape, axes=axes)


_BROADCAST = TABLE["broadcast"]


builder = TensorBuilder(TABLE)
