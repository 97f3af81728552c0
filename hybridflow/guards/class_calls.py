"""Calls of classes: what making an instance reads and runs."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from hybridflow.guards.attribute_reads import (
    MISSING,
    in_class,
    lookup,
)
from hybridflow.guards.builtin_reads import note_class
from hybridflow.guards.code_ownership import is_users_class
from hybridflow.guards.container_reads import (
    is_followed_class,
)
from hybridflow.guards.guard_builder import GuardBuilder
from hybridflow.guards.instrumented_code import follow
from hybridflow.guards.opaque_calls import Consuming, is_pure, is_python, is_stateful, unknown


def class_(recording: GuardBuilder, kind: type) -> Consuming | Callable[..., Any] | type:
    if kind is type:
        return functools.partial(_type_of, recording)
    if kind is super:
        return kind
    if is_users_class(kind) and is_followed_class(kind):
        call = in_class(type(kind), "__call__")
        if is_python(call):
            lookup(recording, type(kind), "__call__")
            follow(recording, call)
        return constructor(recording, kind)(kind)
    if is_python(in_class(kind, "__init__")):
        follow(recording, in_class(kind, "__init__"))
        return kind
    module = kind.__module__ or ""
    if is_stateful(module) or not is_pure(recording, module, kind.__name__):
        return kind if issubclass(kind, BaseException) else unknown(recording, kind)
    return Consuming(recording, kind)


def constructor(recording: GuardBuilder, kind: type) -> Callable[[Any], Any]:
    """Note what making an instance of a user's class runs; how to call what makes it."""
    is_c = False
    for name in ("__new__", "__init__", "__post_init__"):
        function = lookup(recording, kind, name)
        function = function.__func__ if isinstance(function, staticmethod) else function
        if is_python(function):
            follow(recording, function)
        elif function is not MISSING and function is not object.__dict__[name]:
            is_c = True
    for field in getattr(kind, "__dataclass_fields__", {}).values():
        if callable(field.default_factory):
            recording.prepare(recording, field.default_factory)
    return functools.partial(Consuming, recording) if is_c else _as_it_is


def _as_it_is(f: object) -> Any:
    return f


def _type_of(recording: GuardBuilder, *args: object) -> Any:
    if len(args) == 1:
        recording.note(note_class, args[0])
    return type(*args)
