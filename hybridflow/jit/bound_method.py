"""Functions taken from instances: see ``methods`` for what is kept of each."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from hybridflow.core.call_binding import name_of, unwrapped
from hybridflow.runtime.calls.entry import Dispatcher


class WeakMethod:
    """A method that does not keep its instance alive; callers hold the instance while they call."""

    def __init__(self, function: Callable[..., Any], reference: Callable[[], Any]) -> None:
        self._function, self._reference = function, reference
        self.__wrapped__ = function.__get__(_Unbound())  # for the signature, less self
        self.__name__ = name_of(function)

    def __call__(self, *args: object, **kwargs: object) -> Any:
        return self._function(self._reference(), *args, **kwargs)

    def unwrapped(self) -> tuple[Callable[..., Any], Any]:
        return unwrapped(self._function)[0], self._reference


class _Unbound:
    """Stands for ``self`` where only a method's signature is of interest."""


class BoundFunction(Dispatcher):
    """A Function taken from an instance: calls it with the instance held, and offers all it offers."""

    __slots__ = ("__self__", "_function")

    _function: Any  # a Function, which makes objects of this class

    def __init__(self, function: Dispatcher, instance: object) -> None:
        self._function, self.__self__ = function, instance
        self._dispatch = function._dispatch

    def _call_slow(self, *args: object, **kwargs: object) -> Any:
        result = self._function(*args, **kwargs)
        self._dispatch = self._function._dispatch
        return result

    def unwrapped(self) -> tuple[Callable[..., Any], Any]:
        return self._function.unwrapped()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._function, name)

    def __copy__(self) -> BoundFunction:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        """The method of the copy of the instance."""
        return getattr(copy.deepcopy(self.__self__, memo), name_of(self.unwrapped()[0]))

    def __reduce__(self) -> Any:
        return getattr, (self.__self__, name_of(self.unwrapped()[0]))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BoundFunction) and self._function is other._function

    def __hash__(self) -> int:
        return hash(self._function)

    def __repr__(self) -> str:
        return repr(self._function)
