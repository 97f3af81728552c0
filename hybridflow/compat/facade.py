"""Stand-ins for classes of TensorFlow that are made in another way than the class here which they are."""

from __future__ import annotations

__traits__ = ("between",)

from collections.abc import Callable
from typing import Any, Union


class Facade:
    """Called, it makes an object of ``kind`` from TensorFlow's arguments; otherwise it is that class: ``isinstance``
    says so, attributes are the class's, less those in ``own``, and subclasses of it are subclasses of ``kind``."""

    def __init__(self, kind: type, make: Callable[..., Any], extra: dict[str, Any] | None = None) -> None:
        self._kind, self._make, self._own = kind, make, extra or {}
        self.__doc__, self.__name__ = kind.__doc__, kind.__name__
        self.__wrapped__ = make

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._make(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        extra = self.__dict__.get("_own", {})
        return extra[name] if name in extra else getattr(self.__dict__["_kind"], name)

    def __instancecheck__(self, instance: object) -> bool:
        return isinstance(instance, self._kind)

    def __subclasscheck__(self, kind: type) -> bool:
        return issubclass(kind, self._kind)

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        return (self._kind,)

    def __or__(self, other: object) -> Any:
        return Union[self._kind, other]  # of values, not of written types

    def __ror__(self, other: object) -> Any:
        return Union[other, self._kind]

    def __repr__(self) -> str:
        return repr(self._kind)
