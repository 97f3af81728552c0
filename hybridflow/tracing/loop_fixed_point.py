"""The fixed point of a loop body: it is traced until its loop variables leave an iteration with the types they enter.

``hf.while_loop``, ``hf.scan`` and Python's loops over tensors share it.  A pass traces the body once.  Where a variable
leaves the body with a wider type, or the body assigns a ``Variable`` for the first time, another pass follows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hybridflow.core.promotion import Typed, result_dtype, weak_kind
from hybridflow.core.tensor import Tensor
from hybridflow.core.variable import Variable
from hybridflow.errors import TraceError
from hybridflow.tracing.control_nodes import assign
from hybridflow.tracing.subtrace import SubTrace
from hybridflow.tracing.symbolic_tensor import SymbolicTensor

MAX_PASSES = 64  # more than dtypes can widen and variables iteration up


def is_weak(value: object) -> bool:
    """Whether a value is a Python number, which takes the dtype of what it meets."""
    return weak_kind(value) is not None


def widened_dtype(stage: str, start: object, dtype: np.dtype[Any], end: Any) -> np.dtype[Any]:
    """The dtype that a loop variable needs: it starts with ``start``, has ``dtype`` when an iteration begins, and is
    ``end`` after it.

    A Python number takes the dtype of the tensor that it meets.  Of two tensors the latter's dtype is the answer: the
    caller says whether that is an error.
    """
    if is_weak(end):
        return result_dtype(stage, [Typed(dtype), end])
    if is_weak(start):
        met = result_dtype(stage, [Typed(end.dtype), start])
        return met if met == end.dtype else result_dtype(stage, [Typed(met), Typed(dtype)])
    result: np.dtype[Any] = end.dtype
    return result


class FixedPoint:
    """The passes over one loop body, and the variables that it assigns, which are loop variables too."""

    __slots__ = ("_passes", "_stage", "variables")

    def __init__(self, stage: str) -> None:
        self._stage, self._passes = stage, 0
        self.variables: list[Variable] = []

    def begin_pass(self) -> None:
        """Count a pass.  Raises TraceError where types never settle."""
        self._passes += 1
        if self._passes > MAX_PASSES:
            raise TraceError(self._stage, "the types of what the loop carries differ again after each iteration.")

    def variable_inputs(self, body: SubTrace) -> list[SymbolicTensor]:
        """Inputs of ``body``, a subtrace of it or of its condition, for the variables known so far."""
        return [body.carry_variable(v, v.name or f"variable{k}") for k, v in enumerate(self.variables)]

    def has_new_variables(self, body: SubTrace) -> bool:
        """Whether the pass that traced ``body`` was the first to assign a variable: another pass has to follow."""
        new = [v for v in body.assigned if all(v is not known for known in self.variables)]
        self.variables += new
        return bool(new)

    def variable_starts(self) -> list[Tensor]:
        """The values of the variables before the loop."""
        return [variable._read() for variable in self.variables]

    def variable_outputs(self, body: SubTrace) -> list[Tensor]:
        """The values of the variables at the end of ``body``."""
        return [body.value_of(variable) for variable in self.variables]

    def assign_variables(self, values: Sequence[Tensor]) -> None:
        """Assign what the variables are after the loop."""
        assign(self.variables, list(values))
