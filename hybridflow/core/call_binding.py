"""Binding of call arguments to a Python function's parameters, so that f(1, b=2) and f(1, 2) are one call."""

from __future__ import annotations

import contextlib
import copy
import functools
import inspect
import itertools
import operator
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from hybridflow.core import pytree
from hybridflow.errors import ArgumentTypeError, hands_on

_ANY = inspect.Signature(
    [
        inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL),
        inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD),
    ]
)

_BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def name_of(function: Callable[..., Any]) -> str:
    """A short name for messages, whatever kind of callable it is."""
    if isinstance(function, functools.partial):
        return name_of(function.func)
    return getattr(function, "__name__", None) or type(function).__name__


def unwrapped(function: Callable[..., Any]) -> tuple[Callable[..., Any], Any]:
    """The user's function behind what stands for it, and a weak reference to the instance of a method."""
    unwrap = getattr(function, "unwrapped", None)
    return (function, None) if unwrap is None else unwrap()


def _defaults_of(function: Callable[..., Any]) -> list[Any]:
    """The default values of a Python function, or of the one behind a method."""
    python: object = unwrapped(function)[0]
    python = getattr(python, "__func__", python)
    named = getattr(python, "__kwdefaults__", None) or {}
    return [*(getattr(python, "__defaults__", None) or ()), *named.keys(), *named.values()]


def split(parameters: Iterable[tuple[str, Any]], values: Iterable[Any]) -> tuple[list[Any], dict[str, Any]]:
    """One value per parameter, of which the kind is given, as the positional and keyword arguments of a call."""
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for (name, kind), value in zip(parameters, values):
        if kind is inspect.Parameter.VAR_POSITIONAL:
            args.extend(value)
        elif kind is inspect.Parameter.VAR_KEYWORD:
            kwargs.update(value)
        elif kind is inspect.Parameter.KEYWORD_ONLY:
            kwargs[name] = value
        else:
            args.append(value)
    return args, kwargs


def _signatures(function: Callable[..., Any]) -> tuple[inspect.Signature, inspect.Signature]:
    """What calls of a function are bound to: its own parameters, and these with names for the first of its ``*args``.
    Calls are bound to the latter where they can be.

    Such names are those of the parameters without defaults of what it wraps.  What has a default is left to ``*args``
    and ``**kwargs``: a wrapper may count its arguments, or do something to each of them.
    """
    if isinstance(function, types.MethodType):
        unnamed, named = _signatures(function.__func__)
        first = _without_first(unnamed)
        return first, first if unnamed is named else _without_first(named)
    wrapped = getattr(function, "__wrapped__", None)
    if not callable(wrapped) or "__signature__" in getattr(function, "__dict__", ()):
        signature = inspect.signature(function)
        return getattr(function, "by_place", signature), signature
    if not isinstance(function, types.FunctionType) or hands_on(function):
        return _signatures(wrapped)
    unnamed = inspect.signature(function, follow_wrapped=False)
    return unnamed, _named(unnamed, _signatures(wrapped)[1])


def _without_first(signature: inspect.Signature) -> inspect.Signature:
    """The signature of a method, less the instance."""
    parameters = list(signature.parameters.values())
    has_first = parameters and parameters[0].kind in _BY_POSITION
    return signature.replace(parameters=parameters[1:] if has_first else parameters)


def _named(unnamed: inspect.Signature, wrapped: inspect.Signature) -> inspect.Signature:
    """A signature with names for the first of ``*args``, where it can have them."""
    parameters = list(unnamed.parameters.values())
    kinds = [p.kind for p in parameters]
    if inspect.Parameter.VAR_POSITIONAL not in kinds:
        return unnamed
    rest = kinds.index(inspect.Parameter.VAR_POSITIONAL)
    inner = [p for p in wrapped.parameters.values() if p.kind in _BY_POSITION][rest:]
    names = list(itertools.takewhile(lambda p: p.default is p.empty, inner))
    if (
        not names
        or unnamed.parameters.keys() & {p.name for p in names}
        or any(p.default is not p.empty for p in parameters[:rest])
    ):
        return unnamed
    return unnamed.replace(parameters=[*parameters[:rest], *names, *parameters[rest:]])


class _Argument:
    """Stands for an argument, of which only the place matters."""

    __slots__ = ()


_ParameterSlot = tuple[pytree.Structure, int]  # the structure of an argument, and where its leaves begin
_Default = tuple[Any, pytree.Structure, int]


def _fits(binder: Binder, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    try:
        binder._signature.bind(*args, **kwargs)
    except TypeError:
        return False
    return True


class Binder:
    """The parameters of one callable.  Bound arguments are a tuple with one value per parameter."""

    __slots__ = (
        "_defaults", "_kinds", "_names", "_plain", "_signature", "_unnamed", "_without_names", "name", "parameters",
    )  # fmt: skip

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        try:
            self._unnamed, signature = _signatures(function)
        except (TypeError, ValueError, RecursionError):  # builtins without a text signature; what wraps itself
            self._unnamed = signature = _ANY
        self.name = name
        self._defaults = _defaults_of(function)
        self._take(signature)
        self._names = tuple([p for p in self.parameters if p not in self._unnamed.parameters])  # of first ``*args``
        self._without_names: Binder | None = None
        if self._unnamed.parameters.keys() != signature.parameters.keys():
            other = copy.copy(self)
            other._take(self._unnamed)
            self._without_names = other

    def _take(self, signature: inspect.Signature) -> None:
        self._signature = signature
        self.parameters = tuple(signature.parameters)
        self._kinds = tuple(p.kind for p in signature.parameters.values())
        self._plain = all(kind in _BY_POSITION for kind in self._kinds)

    def is_current(self, function: Callable[..., Any]) -> bool:
        """Whether the function still has the defaults that it had."""
        now = _defaults_of(function)
        return len(now) == len(self._defaults) and all(map(operator.is_, now, self._defaults))

    def kinds(self) -> list[tuple[str, Any]]:
        """The parameters with their kinds."""
        return list(zip(self.parameters, self._kinds))

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """One value per parameter, defaults filled in.  Raises ArgumentTypeError as a call of the function would."""
        if self._plain and not kwargs and len(args) == len(self.parameters):
            return args
        bound = self._bound(args, kwargs)
        bound.apply_defaults()
        return tuple(bound.arguments[name] for name in self.parameters)

    def _bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> inspect.BoundArguments:
        is_named = not kwargs.keys().isdisjoint(self._names)  # what a wrapper takes by position alone
        signature = self._unnamed if is_named else self._signature
        try:
            return signature.bind(*args, **kwargs)
        except TypeError as error:
            if self._unnamed is not self._signature and self._without_names is None:
                with contextlib.suppress(TypeError):
                    return self._unnamed.bind(*args, **kwargs)
            raise ArgumentTypeError(self.name, f"{error}; the signature is {self.name}{signature}.") from None

    def for_call(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Binder:
        """Itself; or, for a call in which a wrapper's ``*args`` have no names, since it gives some of these arguments
        itself or is given them by keyword, the one without names."""
        other = self._without_names
        if other is None:
            return self
        if kwargs.keys().isdisjoint(set(self.parameters) - set(other.parameters)) and _fits(self, args, kwargs):
            return self
        return other if _fits(other, args, kwargs) else self

    def of(self, structure: pytree.Structure) -> Binder:
        """The one that bound values of a structure are of: they are as many as its parameters."""
        other = self._without_names
        return self if other is None or len(structure.children) == len(self.parameters) else other

    def places(self, parameter: str) -> list[tuple[str, Any]]:
        """Where arguments for a parameter may be: a parameter, and which of the arguments that it gathers, by number
        or name; None: all that it takes."""
        if parameter in self.parameters or parameter not in self._names:
            return [(parameter, None)]
        which: dict[Any, Any] = {
            inspect.Parameter.VAR_POSITIONAL: self._names.index(parameter),
            inspect.Parameter.VAR_KEYWORD: parameter,
        }
        return [(name, which[kind]) for name, kind in self.kinds() if kind in which]

    def without_names(self, values: tuple[Any, ...]) -> tuple[Binder, tuple[Any, ...]]:
        """The parameters without the names that a wrapper's ``*args`` have here, and bound values as values of them."""
        other = self._without_names
        if other is None:
            return self, values
        first = other._kinds.index(inspect.Parameter.VAR_POSITIONAL)
        behind = first + len(self.parameters) - len(other.parameters)
        return other, (*values[:first], (*values[first:behind], *values[behind]), *values[behind + 1 :])

    def bind_with(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any], known: Callable[[str], Any]
    ) -> tuple[Any, ...]:
        """As ``bind``; what parameters are that are left out ``known`` says, or a KeyError, and not their defaults."""
        if self._plain and not kwargs and len(args) == len(self.parameters):
            return args
        try:
            arguments = self._signature.bind_partial(*args, **kwargs).arguments
        except TypeError as error:
            raise ArgumentTypeError(self.name, f"{error}; the signature is {self.name}{self._signature}.") from None
        empty: dict[Any, Any] = {inspect.Parameter.VAR_POSITIONAL: (), inspect.Parameter.VAR_KEYWORD: {}}
        values = []
        for name, kind in zip(self.parameters, self._kinds):
            try:
                values.append(arguments[name] if name in arguments else empty[kind] if kind in empty else known(name))
            except KeyError:
                raise ArgumentTypeError(
                    self.name, f"missing a required argument: {name!r}; the signature is {self.name}{self._signature}."
                ) from None
        return tuple(values)

    def slots(
        self, positional: int, names: tuple[str, ...], structure: pytree.Structure
    ) -> tuple[list[_ParameterSlot], list[_Default]]:
        """Where the arguments of a call lie in bound values of that structure, and the defaults that are used.

        The call has so many arguments by position, and others by these names, in this order.
        """
        stand_ins = [_Argument() for _ in range(positional + len(names))]
        bound = self.bind(tuple(stand_ins[:positional]), dict(zip(names, stand_ins[positional:])))
        slots_of: dict[_Argument, _ParameterSlot] = {}
        defaults: list[_Default] = []
        first = 0
        for kind, value, part in zip(self._kinds, bound, structure.children):
            if type(value) is _Argument:
                slots_of[value] = part, first
            elif kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
                inside = value if kind is inspect.Parameter.VAR_POSITIONAL else map(value.__getitem__, part.labels)
                for argument, child in zip(inside, part.children):
                    slots_of[argument] = child, first
                    first += child.leaves
                continue
            else:
                defaults.append((value, part, first))
            first += part.leaves
        return [slots_of[argument] for argument in stand_ins], defaults

    def gathered(self, entries: Sequence[Any]) -> tuple[Any, ...]:
        """Entries for arguments by position as entries for parameters: ``*args`` takes all that are left for it."""
        if inspect.Parameter.VAR_POSITIONAL not in self._kinds:
            return tuple(entries)
        first = self._kinds.index(inspect.Parameter.VAR_POSITIONAL)
        rest = tuple(entries[first:])
        return (*entries[:first], rest) if rest else tuple(entries)

    def split(self, values: tuple[Any, ...]) -> tuple[list[Any], dict[str, Any]]:
        """Bound values as the positional and keyword arguments of a call."""
        return split(self.kinds(), values)

    def paths(self, structure: pytree.Structure) -> list[str]:
        """How each leaf of bound values is reached from the parameters: ``batch["x"][0]``."""
        return [path for name, child in zip(self.parameters, structure.children) for path in pytree.paths(child, name)]
