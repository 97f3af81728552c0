"""Objects that are made of plain arguments: they say which, and can be made again from them."""

from __future__ import annotations

import copy
import dataclasses
import difflib
import functools
import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Self, TypeVar

from hybridflow import code_traits
from hybridflow.errors import ArgumentError, ArgumentTypeError

T = TypeVar("T")


_custom_objects: ContextVar[Mapping[str, Any]] = ContextVar("hybridflow.configured", default={})  # noqa: B039 (never changed)


@contextmanager
def custom_objects(objects: Mapping[str, Any]) -> Iterator[None]:
    """Within this, descriptions that name one of these mean that class."""
    token = _custom_objects.set({**_custom_objects.get(), **objects})
    try:
        yield
    finally:
        _custom_objects.reset(token)


class Configured:
    """What has a configuration: a dict of plain arguments.

    That of a dataclass is its fields.  Classes of this library whose attributes are called as the arguments are need no
    ``get_config``: that of their base class adds ``_own_arguments``.
    """

    def get_config(self) -> dict[str, Any]:
        """The arguments that make another one like this.

        Returns:
            A dict from names to values.

        Raises:
            NotImplementedError: where a subclass has to define it.
        """
        if not dataclasses.is_dataclass(self):
            raise NotImplementedError(f"{type(self).__name__} has to define get_config(self)")
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    def _own_arguments(self, base: type) -> dict[str, Any]:
        """The arguments that classes of this library have beside those of ``base``: attributes of the same names."""
        kind = next(kind for kind in type(self).__mro__ if _is_ours(kind) and not _is_compat(kind))
        names = _argument_names(kind, base)
        return {name: self._plain_argument(name, getattr(self, name)) for name in names}

    def _noted(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Remember what a class of the user's is made of, for its configuration, if all of that is plain."""
        kind: type = type(self)
        if _is_ours(kind):
            return
        names, _ = _parameters_of(kind)
        arguments = {**dict(zip(names, args)), **kwargs}
        if len(args) <= len(names) and all(map(_is_plain, arguments.values())):
            self.__dict__["_given_arguments"] = copy.deepcopy(arguments)

    def _with_given(self, config: dict[str, Any], base: type) -> dict[str, Any]:
        """A configuration with the arguments that an object was made of, where no class of the user's says them, and
        none of ours that it extends has arguments: ``units`` of a Dense may follow from others of the user's."""
        kind: type = type(self)
        owner = next(owner for owner in kind.__mro__ if "get_config" in vars(owner))
        arguments = self.__dict__.get("_given_arguments")
        if arguments is None or not _is_ours(owner) or _argument_names(next(filter(_is_ours, kind.__mro__)), base):
            return config
        names, takes_more = _parameters_of(kind)
        ignored = inspect.signature(base.__init__).parameters  # type: ignore[misc]
        whole = config | {name: value for name, value in arguments.items() if name not in ignored}
        return whole if takes_more else {name: value for name, value in whole.items() if name in names}

    def _plain_argument(self, name: str, value: object) -> Any:
        """An argument as it stands in a configuration."""
        return value

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """An instance with the arguments that ``get_config`` returned.

        Args:
            config: what ``get_config`` returned.

        Returns:
            A new instance.
        """
        return cls(**config)


@functools.cache
def _parameters_of(kind: type) -> tuple[tuple[str, ...], bool]:
    """The names of what the ``__init__`` of a class takes, and whether it takes any others."""
    parameters = list(inspect.signature(kind.__init__).parameters.values())[1:]  # type: ignore[misc]
    plain = [p.name for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    return tuple(plain), any(p.kind is p.VAR_KEYWORD for p in parameters)


def _is_plain(value: object) -> bool:
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    if isinstance(value, dict):
        return all(isinstance(key, str) for key in value) and all(map(_is_plain, value.values()))
    return value is None or isinstance(value, (bool, int, float, str))


@functools.cache
def _argument_names(kind: type, base: type) -> tuple[str, ...]:
    """What the ``__init__`` of a class takes, and those of the classes to which it passes what else it is given.

    Left out are the arguments of ``base`` and those whose names begin with an underscore.  A class that has a
    ``get_config`` of its own says its arguments itself, and those of classes that are derived from it.
    """
    classes = kind.__mro__[: kind.__mro__.index(base)]
    silent = max((place + 1 for place, owner in enumerate(classes) if "get_config" in vars(owner)), default=0)
    names: dict[str, None] = {}
    for owner in classes[silent:]:
        if "__init__" not in vars(owner):
            continue
        parameters = inspect.signature(owner.__init__).parameters.values()  # type: ignore[misc]
        passed_on = {p.name for p in parameters if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}
        names |= dict.fromkeys(p.name for p in parameters if p.name not in passed_on)
        if not passed_on:
            break
    ignored = inspect.signature(base.__init__).parameters  # type: ignore[misc]
    return tuple(name for name in names if name not in ignored and not name.startswith("_"))


def description(value: Configured) -> dict[str, Any]:
    """The object as a dict of plain values: the name of its class, its module if that is not ours, and its
    configuration."""
    kind = type(value)
    location = {} if _is_ours(kind) else {"module": kind.__module__}
    return {"class_name": kind.__name__, **location, "config": value.get_config()}


def described(kinds: Mapping[str, type[T]], description: Mapping[str, Any], stage: str) -> T:
    """The object that ``description`` describes; without a configuration it is made of defaults.  Raises ArgumentError
    for a class that is not among ``kinds``, and where something else stands in the place of the configuration."""
    kind: Any = kind_of(kinds, description.get("class_name"), stage)
    other = next((key for key in description if key not in ("class_name", "module")), None)
    if "config" not in description and other is not None:
        raise ArgumentError(stage, f"the description of {kind.__name__} has {other!r}, and no 'config'.")
    result: T = kind.from_config(description.get("config", {}))
    return result


def described_of(base: type[T], description: Mapping[str, Any], stage: str) -> T:
    """The object that ``description`` describes, of a class that is derived from ``base``.

    A class of the user's may be called like one of ours: the module says which is meant.  Where its module has another
    name by now, as that of a script has, it is the class of that name that was defined last.
    """
    module = description.get("module")
    if not isinstance(module, str) or module.partition(".")[0] in _OF_THE_FIELD:
        return described(kinds_of(base), description, stage)
    users = [kind for kind in _derived(base) if not _is_ours(kind)]
    users.sort(key=lambda kind: kind.__module__ == module)  # keeps the order in which they were defined, but for these
    return described({kind.__name__: kind for kind in users}, description, stage)


def identified(kinds: Mapping[str, type[T]], identifier: object, stage: str, what: str) -> Any:
    """What is meant: an object of one of the kinds by name or by description, or the identifier itself.

    Raises ArgumentError for an unknown name, ArgumentTypeError for anything else that cannot be called.
    """
    if isinstance(identifier, str):
        return kind_of(kinds, identifier, stage)()
    if isinstance(identifier, dict):
        return described(kinds, identifier, stage)
    if not callable(identifier):
        raise ArgumentTypeError(stage, f"{identifier!r} is neither a name nor {what}.")
    return identifier


def kind_of(kinds: Mapping[str, type[T]], name: object, stage: str) -> type[T]:
    """The class of that name, ``HeNormal`` or ``he_normal``.  Raises ArgumentError, which names the nearest."""
    custom = _custom_objects.get().get(name) if isinstance(name, str) else None
    if isinstance(custom, type):
        return custom
    by_name = {_flat(known): kind for known, kind in kinds.items()}
    if isinstance(name, str) and _flat(name) in by_name:
        return by_name[_flat(name)]
    near = difflib.get_close_matches(_flat(str(name)), by_name, 1, 0.4)
    hint = f"did you mean {by_name[near[0]].__name__!r}?" if near else f"there are {', '.join(sorted(kinds))}."
    raise ArgumentError(stage, f"nothing is called {name!r}; {hint}")


def kinds_of(base: type[T]) -> dict[str, type[T]]:
    """A class and all that are derived from it, by name.

    Our own names mean our classes, whatever else is called so; of two of the user's classes of one name it is the one
    that was defined last.  Classes of ``compat`` are found by who imports them, not by name.
    """
    derived = [kind for kind in _derived(base) if not _is_compat(kind)]
    users = {kind.__name__: kind for kind in derived if not _is_ours(kind)}
    return users | {kind.__name__: kind for kind in derived if _is_ours(kind)}


def _derived(base: type[T]) -> Iterator[type[T]]:
    yield base
    for derived in base.__subclasses__():
        yield from _derived(derived)


_OF_THE_FIELD = ("hybridflow", "keras", "tensorflow", "tf_keras")  # where Keras's names mean what they mean here


def _is_ours(kind: type) -> bool:
    return kind.__module__.partition(".")[0] == "hybridflow"


def _is_compat(kind: type) -> bool:
    return "compat" in code_traits.of_module(kind.__module__)


def _flat(name: str) -> str:
    return name.replace("_", "").lower()


def snake_case(name: str) -> str:
    """The name of a class in lower case, with underscores between its words: ``conv2d_transpose``."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z0-9])(?=[A-Z][a-z])", "_", name.lstrip("_")).lower()
