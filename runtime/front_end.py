"""What the runtime knows of the front end: its Tensor class, and the counter of reasons not to take shortcuts."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np

from hybridflow.errors import ArgumentError


@dataclass(frozen=True)
class _Setup:
    tensor_type: type
    array_slot: str
    busy: ctypes.c_int32


_setup: _Setup | None = None


def setup(tensor_type: type, busy: ctypes.c_int32, array_slot: str = "_array") -> None:
    """Tell the entry about the front end: its Tensor class, the slot that holds the array, and the counter of reasons
    not to take shortcuts.  Called once, at import; native code reads ``busy`` at its address from then on."""
    global _setup
    if _setup is not None and _setup.tensor_type is not tensor_type:
        raise ArgumentError("runtime", "the native entry is already set up for another Tensor class.")
    _setup = _setup or _Setup(tensor_type, array_slot, busy)


def known() -> _Setup:
    """What ``setup`` was told."""
    if _setup is None:
        raise ArgumentError("runtime", "front_end.setup(Tensor, busy) has not been called.")
    return _setup


def tensor_type() -> type:
    return known().tensor_type


def is_idle() -> bool:
    """Whether calls may take shortcuts."""
    return _setup is not None and not _setup.busy.value


def wrap(array: np.ndarray) -> Any:
    """A Tensor over ``array``."""
    tensor: Any = object.__new__(tensor_type())
    setattr(tensor, known().array_slot, array)
    return tensor
