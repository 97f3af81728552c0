"""Callables that are traced in the place of a function of the user's, and change its arguments or results."""

from __future__ import annotations

import copy
import functools
import types
from collections.abc import Callable
from typing import Any, Self

from hybridflow import code_traits
from hybridflow.autograph.runtime import tensor_range
from hybridflow.core.call_binding import name_of, unwrapped


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

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
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

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._convert(tensor_range.materialize(self._python(*args, **kwargs)))
