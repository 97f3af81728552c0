"""Calls of functions whose sizes a program finds, see ``tracing.data_dependent_sizes``: with those of the call before,
and again where a program says that one is another."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable
from typing import Any

from hybridflow.autograph.runtime import dynamic_list, tensor_range
from hybridflow.core.context import now
from hybridflow.errors import ArgumentError, TraceEnd
from hybridflow.jit.python_wrappers import PythonWrapper
from hybridflow.tracing.data_dependent_sizes import LENGTH, SizeKnownError, Sizes

_Sizes = tuple[tuple[int, ...], tuple[int, ...]]  # rooms and lengths
_MOST = 1 << 40  # items of a list


class _Runs(threading.local):
    """``any`` says that this thread ran the code of a function."""

    any = False


class _Signature(inspect.Signature):
    """A signature that begins with sizes, of which messages do not tell."""

    def __str__(self) -> str:
        return str(inspect.Signature(list(self.parameters.values())[1:]))


class Sized(PythonWrapper):
    """A function of the user's with sizes as its first argument.  ``runs`` says whether its code ran, ``packs`` that
    lists in its results are to be unpacked, see ``dynamic_list.Packed``."""

    def __init__(self, python: Callable[..., Any]) -> None:
        super().__init__(python)
        self.runs, self.packs = _Runs(), False
        self.parameter = "sizes"
        try:
            signature = inspect.signature(python)
        except (TypeError, ValueError):
            return
        parameters = list(signature.parameters.values())
        while self.parameter in signature.parameters:
            self.parameter += "_"
        sizes = inspect.Parameter(self.parameter, inspect.Parameter.POSITIONAL_ONLY)
        self.__signature__ = _Signature([sizes, *parameters])

    def __call__(self, sizes: _Sizes, /, *args: object, **kwargs: object) -> Any:
        self.runs.any = True
        trace: Any = now().trace
        if trace is None:
            return self._python(*args, **kwargs)
        trace.sizes = sizes_taken = Sizes(*sizes)
        try:
            result = tensor_range.materialize(self._python(*args, **kwargs))
            values_set = [] if trace.guard_builder is None else trace.guard_builder.written_values()
            if values_set:
                return dynamic_list.materialize_lists((result, values_set))[0]
            self.packs |= dynamic_list.pack(result)
            return result
        except (TraceEnd, Exception):
            if sizes_taken.end_trace:
                return None
            raise


class SizedCalls:
    """A route of calls: with sizes.  ``run`` is the function as one that is traced and compiled; ``sizes`` are those of
    the last call."""

    __slots__ = ("_sized", "run", "sizes")
    means = "find sizes"

    def __init__(self, sized: Sized, run: Callable[..., Any]) -> None:
        self._sized, self.run = sized, run
        self.sizes: _Sizes = ((), ())

    def arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of ``run`` for such a call, with the sizes of the last one."""
        return (self.sizes, *args), kwargs

    def correct(self, error: SizeKnownError) -> None:
        """Let the sizes be those that a program found."""
        self.sizes = _with(self.sizes, error)

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        sizes, are_found = self.sizes, not self.sizes[1]
        while True:
            self._sized.runs.any = False
            try:
                result = self.run(sizes, *args, **kwargs)
            except SizeKnownError as error:
                sizes = _with(sizes, error)
                are_found = True
            except Exception:
                if are_found or not self._sized.runs.any:
                    raise
                sizes, are_found = (sizes[0], ()), True  # traced for the lengths of another call
            else:
                self.sizes = sizes
                return dynamic_list.unpack(result) if self._sized.packs else result


def _with(sizes: _Sizes, error: SizeKnownError) -> _Sizes:
    """The sizes with the one that was found; those behind it may be others."""
    rooms, lengths = sizes
    if error.size > _MOST:
        raise ArgumentError("convert", f"a tensor or a list would have {error.size} items.")
    if error.kind == LENGTH:
        return rooms, (*lengths[: error.number], error.size)
    rooms = (*rooms, *[0] * (error.number + 1 - len(rooms)))
    return (*rooms[: error.number], max(error.size, rooms[error.number]), *rooms[error.number + 1 :]), ()
