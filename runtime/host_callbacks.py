"""Functions in Python that programs call: arguments out of a program's memory, and what they return back into it."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from hybridflow.compiler.program import Callback, HostFunction, Program, Slot
from hybridflow.errors import ArgumentError, DTypeError, ShapeError
from hybridflow.runtime import argument_checks
from hybridflow.runtime.dtypes import NUMPY

Functions = Sequence[Callable[..., Any]]
# What stands behind the name that a program calls from the user's line.
Named = Callable[[HostFunction, "str | None"], Callable[..., Any]]


def no_names(function: HostFunction, where: str | None) -> NoReturn:
    raise ArgumentError("callback", f"there is no function named {function.name!r} here.", where)


def check(program: Program, functions: Functions) -> None:
    """Raises ArgumentError unless there is a function for every number that the program calls."""
    numbers = [c.function for c in program.callbacks if not isinstance(c.function, HostFunction)]
    needed = max((number + 1 for number in numbers), default=0)
    if len(functions) < needed:
        raise ArgumentError(program.name, f"it calls {needed} functions in Python, {len(functions)} given.")


class HostCallbacks:
    """The calls of one run of a program, which come to ``answer`` (see ``program.HOST``).

    Functions of users are given arrays of their own.  One with several results returns a tuple or list of arrays; what
    one without results returns is not looked at.
    """

    def __init__(self, program: Program, functions: Functions, named: Named, dims: dict[str, int]) -> None:
        self.program, self.functions, self.named, self.dims = program, functions, named, dims
        self._errors: dict[int, BaseException] = {}

    def raise_error(self, place: int | None) -> None:
        """Raise what a function raised when it was called at a place, or what was wrong with the arrays that it
        returned."""
        error = None if place is None else self._errors.pop(place, None)
        self._errors.clear()
        if error is not None:
            try:
                raise error
            finally:
                del error  # whose traceback holds this frame

    def _function(self, callback: Callback) -> Callable[..., Any]:
        function = callback.function
        return self.named(function, callback.where) if isinstance(function, HostFunction) else self.functions[function]

    def answer(self, host: int, place: int, words: int) -> int:
        try:
            callback = self.program.callbacks[place]
            slots = (*callback.operands, *callback.results)
            addresses = (ctypes.c_void_p * len(slots)).from_address(words)
            arrays = [_array(address, slot, self.dims) for address, slot in zip(addresses, slots)]
            count = len(callback.operands)
            function = self._function(callback)
            is_users = not isinstance(callback.function, HostFunction)  # who may keep or change what it is given
            returned = function(*[array.copy() if is_users else array for array in arrays[:count]])
            for array, value in zip(arrays[count:], _results(callback, function, returned, arrays[count:])):
                array[...] = value
        except BaseException as error:  # KeyboardInterrupt too: it goes on where the program was called
            self._errors[place] = error
            return 1
        return 0


def _array(address: int | None, slot: Slot, dims: dict[str, int]) -> np.ndarray:
    """The memory at an address as an array."""
    shape, dtype = argument_checks.extents(slot, dims), NUMPY[slot.dtype]
    size = int(np.prod(shape)) * dtype.itemsize
    if not size:
        return np.empty(shape, dtype)
    assert address is not None
    memory: Any = (ctypes.c_char * size).from_address(address)
    return np.frombuffer(memory, dtype).reshape(shape)


def _results(
    callback: Callback, function: Callable[..., Any], returned: object, wanted: Sequence[np.ndarray]
) -> list[np.ndarray]:
    """What a function returned as arrays, of the shapes and dtypes of ``wanted``."""
    name = getattr(function, "__name__", repr(function))
    if not wanted:
        return []
    if len(wanted) == 1:
        returned = (returned,)
    elif not isinstance(returned, (tuple, list)) or len(returned) != len(wanted):
        actual = f"{len(returned)} values" if isinstance(returned, (tuple, list)) else type(returned).__name__
        raise ArgumentError("callback", f"{name} returned {actual}. Expected {len(wanted)} arrays.", callback.where)
    arrays = [np.asarray(value) for value in returned]
    for k, (array, expected) in enumerate(zip(arrays, wanted)):
        if array.dtype != expected.dtype or array.shape != expected.shape:
            error = DTypeError if array.dtype != expected.dtype else ShapeError
            message = f"{name} returned {_text(array)} as result {k}. Expected {_text(expected)}."
            raise error("callback", message, callback.where)
    return arrays


def _text(array: np.ndarray) -> str:
    return f"{array.dtype}[{','.join(map(str, array.shape))}]"
