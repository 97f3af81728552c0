"""Frozen dataclasses that are made quickly, for modules that every import of hybridflow loads.

``dataclasses`` compiles the text of six functions for each class, which takes a millisecond.  Here the constructor
alone is compiled; what compares, hashes and shows objects, and keeps them from changing, is the same for all classes.
Fields, ``replace`` and ``fields`` are those of ``dataclasses``.
"""

from __future__ import annotations

import dataclasses
import reprlib
from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any

_GENERATED = ("__init__", "__eq__", "__hash__", "__setattr__", "__delattr__")


class _Factory:
    """Stands in a signature for a value that is made where none is given."""

    def __repr__(self) -> str:
        return "<factory>"


_FACTORY = _Factory()


def _set_frozen(self: object, name: str, value: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _delete_frozen(self: object, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _frozen(cls: type[Any], eq: bool) -> type[Any]:
    assert not any(name in cls.__dict__ for name in _GENERATED), f"{cls.__qualname__} defines a method of its own"
    cls.__doc__ = cls.__doc__ or cls.__name__  # else the signature would be found, and printed
    names = [field.name for field in dataclasses.fields(dataclasses.dataclass(init=False, repr=False, eq=False)(cls))]
    values = _values_of(names)

    @reprlib.recursive_repr()
    def show(self: object) -> str:
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    def equal(self: object, other: object) -> Any:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    def hashed(self: object) -> int:
        return hash(values(self))

    methods: dict[str, Any] = {"__repr__": show, **vars(cls), "__init__": _constructor(cls)}
    methods |= {"__setattr__": _set_frozen, "__delattr__": _delete_frozen}
    if eq:
        methods |= {"__eq__": equal, "__hash__": hashed}
    for name in ("__repr__", *_GENERATED):
        if name in methods:
            setattr(cls, name, methods[name])
    return cls


def _values_of(names: list[str]) -> Callable[[Any], Any]:
    """What gives the values of an object's fields."""
    return attrgetter(*names) if len(names) > 1 else lambda self: tuple([getattr(self, name) for name in names])


def _constructor(cls: type[Any]) -> Callable[..., None]:
    space: dict[str, Any] = {"__name__": cls.__module__, "_set": object.__setattr__, "_factory": _FACTORY}
    parameters, lines = [], []
    for field in dataclasses.fields(cls):
        assert field.init and field.compare and field.repr and not field.kw_only, f"{cls.__qualname__}.{field.name}"
        name, value = field.name, field.name
        if field.default is not dataclasses.MISSING:
            space[f"_default_{name}"] = field.default
            parameters.append(f"{name}=_default_{name}")
        elif field.default_factory is not dataclasses.MISSING:
            space[f"_factory_{name}"] = field.default_factory
            parameters.append(f"{name}=_factory")
            value = f"_factory_{name}() if {name} is _factory else {name}"
        else:
            parameters.append(name)
        lines.append(f" _set(self, {name!r}, {value})")
    if hasattr(cls, "__post_init__"):
        lines.append(" self.__post_init__()")
    text = f"def __init__({', '.join(('self', *parameters))}):\n" + ("\n".join(lines) or " pass")
    exec(compile(text, __file__, "exec"), space)  # of this file: code of the package, whoever asks whose it is
    init: Callable[..., None] = space["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    init.__annotations__ = {field.name: field.type for field in dataclasses.fields(cls)} | {"return": None}
    return init


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(*, frozen: bool, eq: bool = True) -> Callable[[type[Any]], type[Any]]:
        """``dataclasses.dataclass`` of frozen classes whose fields are plain, and that define none of its methods but
        ``__repr__``."""
        assert frozen
        return lambda cls: _frozen(cls, eq)
