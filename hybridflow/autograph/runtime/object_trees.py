"""Containers as converted code joins and carries them: those of ``pytree``, and instances of the user's own classes.

An instance counts as one if the trace has made it, so that nobody outside knows it, and if its attributes are all there
is to it.  It is then joined attribute by attribute.
"""

from __future__ import annotations

import abc
import types
import typing
import weakref
from collections.abc import Callable, Collection, Iterable
from typing import Any

from hybridflow.core import pytree
from hybridflow.core.context import now
from hybridflow.core.pytree import instance_dict

_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE of CPython's object.h
_ABSTRACT = (object, abc.ABC, typing.Generic, typing.Protocol)

is_users_class: list[Callable[[type], bool]] = []
"""Whether a class was written by the user: ``jit`` adds what knows that."""

_kinds: weakref.WeakKeyDictionary[type, bool] = weakref.WeakKeyDictionary()


def is_plain_class(kind: type) -> bool:
    """Whether instances of a class are made of their attributes alone."""
    result = _kinds.get(kind)
    if result is None:
        bases = [base for base in kind.__mro__ if base not in _ABSTRACT]
        result = bool(bases) and all(_is_plain_base(base) for base in bases) and kind.__new__ is object.__new__
        _kinds[kind] = result
    return result


def _is_plain_base(base: type) -> bool:
    return bool(base.__flags__ & _HEAP_TYPE) and any(asked(base) for asked in is_users_class)


def is_created_while_tracing(value: object) -> bool:
    """Whether the trace that goes on has made an object."""
    trace = now().trace
    builder = None if trace is None else trace.root.guard_builder
    return builder is not None and builder.slot_of(value) is None


def is_object(value: object) -> bool:
    """Whether a value is an instance of the user's that is joined attribute by attribute."""
    return is_plain_class(type(value)) and is_created_while_tracing(value)


containers: dict[type, Callable[[Any], tuple[tuple[str, ...], Iterable[Any]] | None]] = {}
"""What else is a container: names of attributes, and what these hold."""


def parts_of(value: object) -> tuple[tuple[Any, ...], Iterable[Any]] | None:
    """Labels and children of a container; None for a leaf."""
    parts = containers.get(type(value))
    if parts is not None:
        return parts(value)
    result = pytree.parts_of(value)
    if result is not None or isinstance(value, (type, types.FunctionType)) or not is_object(value):
        return result
    held = _attributes(value)
    names = tuple(sorted(held))
    return names, [held[name] for name in names]


def _attributes(value: object) -> dict[str, Any]:
    """An instance's own attributes, those in slots among them."""
    result = dict(instance_dict(value) or {})
    for base in type(value).__mro__:
        for name, member in vars(base).items():
            if isinstance(member, types.MemberDescriptorType) and hasattr(value, name):
                result[name] = getattr(value, name)
    return result


def is_container(value: object) -> bool:
    """Whether a value is nested: it has children of its own."""
    return parts_of(value) is not None


def flatten(value: object, whole: Collection[int] = ()) -> tuple[list[Any], pytree.Structure]:
    """``pytree.flatten`` of these containers.  Of an instance that is met again, in itself or beside, the first one
    counts: the others are leaves."""
    leaves: list[Any] = []
    try:
        return leaves, _flatten(value, leaves, whole, set())
    except RecursionError:
        return pytree.flatten(value, whole)  # which says what is wrong


def _flatten(value: object, leaves: list[Any], whole: Collection[int], met: set[int]) -> pytree.Structure:
    parts = None if id(value) in whole or id(value) in met else parts_of(value)
    if parts is None:
        leaves.append(value)
        return pytree.LEAF
    labels, children = parts
    if pytree.parts_of(value) is None:
        met.add(id(value))
    return pytree.structure_of(value, labels, [_flatten(child, leaves, whole, met) for child in children])


def changeable_parts(value: object) -> dict[int, Any]:
    """``pytree.changeable_parts`` of these containers."""
    return pytree.changeable_parts(value, parts_of)
