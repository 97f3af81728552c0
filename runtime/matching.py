"""The rules by which a Python value is taken as an argument; each mirrors a function of ``entry_match``."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from hybridflow.runtime import front_end
from hybridflow.runtime.dtypes import NUMPY

SYMBOL = {"f32": "float to f32", "f64": "float to f64", "i32": "int to i32", "i64": "int to i64"}
NUMBER = {"f32": "number to f32", "f64": "number to f64", "i32": "int to i32", "i64": "int to i64"}
MISS = object()  # the result of a call that does not fit


def fitting(value: Any, dtype: np.dtype[Any], shape: tuple[int | str, ...], dims: dict[str, int]) -> np.ndarray | None:
    """The array of a Tensor of this dtype and shape, C-contiguous; binds symbolic extents."""
    if type(value) is not front_end.tensor_type():
        return None
    array = getattr(value, front_end.known().array_slot, None)
    if type(array) is not np.ndarray or array.dtype != dtype or array.ndim != len(shape):
        return None
    if not (array.flags.c_contiguous and array.flags.aligned):
        return None
    for extent, expected in zip(array.shape, shape):
        if extent != (dims.setdefault(expected, extent) if isinstance(expected, str) else expected):
            return None
    return array


def number(value: Any, dtype: Any, code: str) -> np.ndarray | None:
    """A Python number as a 0-d array, if its type is one that the code takes and an int is representable."""
    dtype = NUMPY[dtype] if isinstance(dtype, str) else dtype
    if type(value) is float and code.startswith(("float", "number")):
        with np.errstate(over="ignore"):
            return np.array(value, dtype)
    if type(value) is int and code.startswith(("int", "number")):
        if code.startswith("number"):
            reach = 1 << (24 if dtype.itemsize == 4 else 53)
        else:
            reach = 1 << (8 * dtype.itemsize - 1)
        # Two's complement reaches one further below zero; among floats the power of two itself is exact.
        if -reach <= value < reach or (value == reach and code.startswith("number")):
            return np.array(value, dtype)
    return None


def same_literal(value: Any, expected: Any) -> bool:
    """Whether a value is the one that was there at the trace: floats and ints by type and bits."""
    if type(value) is float and type(expected) is float:
        return bits(value) == bits(expected)
    if type(value) is int and type(expected) is int:
        return value == expected
    return value is expected


def bits(value: float) -> int:
    """The 64 bits of a float."""
    return struct.unpack("<Q", struct.pack("<d", value))[0]


def canonical(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The one dtype object that arrays made by NumPy and by us carry, which native code compares by address."""
    return _CANONICAL[dtype]


_CANONICAL = {dtype: dtype for dtype in NUMPY.values()}
