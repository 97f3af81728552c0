"""What the runtime knows of the front end: its Tensor class, and the reasons not to take shortcuts."""

from __future__ import annotations

import ctypes
from contextvars import ContextVar
from typing import Any

import numpy as np

from hybridflow.errors import ArgumentError
from hybridflow.quick_dataclasses import dataclass


@dataclass(frozen=True)
class Reasons:
    """Why calls may not take shortcuts.  Where ``busy`` is zero there is none; else ``everywhere`` counts those of the
    whole process, and there are others in the contexts in which ``state`` has another value than ``idle``.

    Where that value's slot ``only_tape`` holds anything, a call may take a shortcut all the same, of which it then
    tells what is there, a ``guard_builder.GuardBuilder``: in words, or by ``record_whole(native call, result,
    *arguments)``.
    """

    busy: ctypes.c_int32
    everywhere: ctypes.c_int32
    state: ContextVar[Any]
    idle: object
    transactions: ctypes.c_int32  # calls under way, in any thread, whose writes of variables may have to be taken back

    def none_here(self) -> bool:
        return not self.busy.value or (not self.everywhere.value and self.state.get() is self.idle)


@dataclass(frozen=True)
class _Setup:
    tensor_type: type
    variable_type: type
    array_slot: str
    reasons: Reasons


_setup: _Setup | None = None


def setup(tensor_type: type, variable_type: type, reasons: Reasons, array_slot: str = "_array") -> None:
    """Tell the entry about the front end: its Tensor class, the slot that holds the array, its Variable class (see
    ``native_call.VariableInput``), and the reasons not to take shortcuts.  Called once, at import; native code reads
    the counters at their addresses from then on."""
    global _setup
    if _setup is not None and _setup.tensor_type is not tensor_type:
        raise ArgumentError("runtime", "the native entry is already set up for another Tensor class.")
    _setup = _setup or _Setup(tensor_type, variable_type, array_slot, reasons)


def known() -> _Setup:
    """What ``setup`` was told."""
    if _setup is None:
        raise ArgumentError("runtime", "front_end.setup(Tensor, Variable, reasons) has not been called.")
    return _setup


def tensor_type() -> type:
    return known().tensor_type


def is_idle() -> bool:
    """Whether calls of the running code may take shortcuts."""
    return _setup is not None and _setup.reasons.none_here()


def wrap(array: np.ndarray) -> Any:
    """A Tensor over ``array``."""
    tensor: Any = object.__new__(tensor_type())
    setattr(tensor, known().array_slot, array)
    return tensor
