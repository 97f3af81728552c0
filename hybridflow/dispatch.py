"""The choke point: every op, eager or traced, recorded on tapes or not, passes through ``apply``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from hybridflow import eager
from hybridflow.compiler.ir.build import Builder
from hybridflow.compiler.ir.types import TensorType
from hybridflow.compiler.ops import TABLE
from hybridflow.context import current
from hybridflow.tensor import Tensor, wrap


def apply(op: Any, *inputs: Tensor, **given: Any) -> Tensor:
    """Apply a primitive op to tensors whose shapes and dtypes already fit: run it, or record it while tracing.

    Raises the op's ShapeError, DTypeError or ArgumentError.
    """
    attrs: Mapping[str, Any] = given
    trace = current.trace
    if trace is not None:
        out: Tensor = trace.record(op, inputs, given)
        if current.tapes and op.canon is not None:
            attrs = op.canon(tuple([x.type for x in inputs]), given)
    else:
        out, attrs = eager.execute(op, inputs, given)
    for tape in current.tapes:
        tape.record(op, inputs, attrs, out)
    return out


class TensorBuilder(Builder):
    """The builder over live or symbolic tensors: derivative rules run through it."""

    emit = staticmethod(apply)

    def full(self, value: Any, like: TensorType | Tensor) -> Tensor:
        if current.trace is not None or current.device is not None:
            return super().full(value, like)
        array: Any = np.empty(like.shape, like.dtype)
        array.fill(value)
        return wrap(array)


builder = TensorBuilder(TABLE)
