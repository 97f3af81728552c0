"""Callables that are traced in the place of a function of the user's, and change its arguments or results."""

from __future__ import annotations

import copy
import functools
import types
from collections.abc import Callable
from typing import Any, Self

from hybridflow import code_traits
from hybridflow.autograph.runtime import tensor_range
from hybridflow.core.call_binding import Binder, name_of, unwrapped
from hybridflow.core.context import now
from hybridflow.tracing.trace import Trace


class PythonWrapper:
    """A callable with the name, signature and traits of the one around which it is."""

    __name__: str

    def __init__(self, python: Callable[..., Any]) -> None:
        self._python = python
        functools.update_wrapper(self, python, updated=())
        self.__name__ = name_of(python)
        traits = code_traits.of_function(python)
        if traits:
            self.__dict__["__traits__"] = traits

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        python = copy.deepcopy(self._python, memo)
        if python is self._python:
            return self
        result = copy.copy(self)
        result._python = python
        return result

    def unwrapped(self) -> tuple[Callable[..., Any], Any]:
        """The user's function, and a weak reference to the instance of a method."""
        return unwrapped(self._python)


class ConvertedResults(PythonWrapper):
    """A function whose results are what ``convert`` makes of those of another one."""

    def __init__(self, python: Callable[..., Any], convert: Callable[[Any], Any]) -> None:
        super().__init__(python)
        self._convert = convert

    def __call__(self, *args: object, **kwargs: object) -> Any:
        return self._convert(tensor_range.materialize(self._python(*args, **kwargs)))


def converted(function: Callable[..., Any], stage: str) -> Callable[..., Any]:
    """What to call in the place of a function while it is traced.  Within a compiled function's trace that sees to it;
    otherwise what is recorded on the way is forgotten: the function is traced at each call."""
    trace: Any = now().trace
    root: Trace = trace.root
    if root.guard_builder is not None:
        return function

    def call(*args: object, **kwargs: object) -> Any:
        from hybridflow.jit import trace_session

        name = name_of(function) or stage
        recording = trace_session.GuardBuilder(name)
        binder = Binder(function, name).for_call(args, kwargs)
        root.guard_builder = recording
        try:
            with trace_session.TraceSession(name).observing(
                recording, function, binder.parameters, binder.bind(args, kwargs)
            ):
                return function(*args, **kwargs)
        finally:
            root.guard_builder = None

    return call
