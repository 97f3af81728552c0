"""Built-in functions that read one thing of what they are given, as they are called while recording."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from hybridflow.compiler.ir.extents import Dim
from hybridflow.core.shape import is_tuple
from hybridflow.errors import TraceError
from hybridflow.guards.attribute_reads import (
    IMMUTABLE,
    MISSING,
    before_attribute,
    in_class,
    lookup,
    note_mro,
    read_attribute,
)
from hybridflow.guards.code_ownership import is_users_class, is_users_function
from hybridflow.guards.container_reads import (
    base_container,
    before_operator,
    before_write,
    consume,
    is_plain,
    read_elements,
    read_item,
    read_items,
    read_length,
)
from hybridflow.guards.guard_builder import GuardBuilder
from hybridflow.guards.value_checks import ATOMS, SameResult, keys_of


def sought(container: object, key: object) -> Any:
    """What to look for in a container that finds things by their hash: a symbolic extent that is not in it may be
    there as the number that it is, so it is that number from now on; within tuples too."""
    if not isinstance(container, (dict, set, frozenset)) or not _has_extents(key):
        return key
    try:
        return key if key in container else _as_numbers(key)
    except TypeError:  # not hashable: the caller's own lookup says so
        return key


def _has_extents(key: Any) -> bool:
    return isinstance(key, Dim) or (is_tuple(key) and any(map(_has_extents, key)))


def _as_numbers(key: Any) -> Any:
    if isinstance(key, Dim):
        return int(key)
    return tuple(map(_as_numbers, key)) if is_tuple(key) else key


def get_item(recording: GuardBuilder, value: Any, key: Any) -> Any:
    """``value[key]``, noted."""
    if isinstance(value, type):
        recording.note(before_operator, value, "__getitem__")
        return value[key]  # type: ignore[index]  # a generic class
    if type(key) not in ATOMS:
        recording.note(consume, key)
    if base_container(value) is None and not isinstance(value, np.ndarray):
        recording.note(read_item, value, key, None, False)
        return value[key]
    recording.note(before_operator, value, "__getitem__")
    was_missing = isinstance(value, dict) and not dict.__contains__(value, key)
    if was_missing:
        recording.note(read_item, value, key, None, True)
    try:
        item = value[key]
    except LookupError:
        recording.note(read_length, value)
        raise
    if not was_missing:
        recording.note(read_item, value, key, item, False)
    return item


def get_attribute(recording: GuardBuilder, value: object, name: str, *default: object) -> Any:
    """``getattr``, noted."""
    if type(name) is not str:
        return getattr(value, name, *default)
    recording.note(before_attribute, value, name)
    try:
        attribute = getattr(value, name)
    except AttributeError:
        recording.note(read_attribute, value, name, MISSING)
        if default:
            return default[0]
        raise
    recording.note(read_attribute, value, name, attribute)
    return attribute


def _hasattr(recording: GuardBuilder, value: object, name: str) -> bool:
    return get_attribute(recording, value, name, MISSING) is not MISSING


def _setattr(recording: GuardBuilder, value: object, name: str, new: object) -> None:
    recording.note(before_write, value, name)
    setattr(value, name, new)


def _delattr(recording: GuardBuilder, value: object, name: str) -> None:
    recording.note(before_write, value, name)
    delattr(value, name)


def note_class(recording: GuardBuilder, value: object) -> None:
    slot = recording.slot_of(value)
    if slot is not None:
        recording.guard_read(slot, "class", None, type(value), f"type({recording.texts[slot]})")


def _isinstance(recording: GuardBuilder, value: object, kinds: object) -> bool:
    recording.note(note_class, value)
    return _ask_kinds(recording, isinstance, value, kinds)


def _issubclass(recording: GuardBuilder, value: object, kinds: object) -> bool:
    return _ask_kinds(recording, issubclass, value, kinds)


_HOOKS: dict[Any, str] = {isinstance: "__instancecheck__", issubclass: "__subclasscheck__"}


def _ask_kinds(recording: GuardBuilder, question: Callable[..., bool], value: object, kinds: object) -> bool:
    """``isinstance`` and ``issubclass``: metaclasses of the user's are recorded as they answer; those of libraries are
    asked again by a guard, since abstract base classes may come to know a class, and protocols look at the instance."""
    if isinstance(kinds, tuple):
        recording.note(read_items, kinds, _NESTED)
    recording.note(_note_subject, type(value) if question is isinstance else value, kinds)
    asked = []
    for kind in _each_kind(kinds):
        answers = in_class(type(kind), _HOOKS[question])
        recording.note(_note_metaclass, kind)
        recording.note(lookup, type(kind), _HOOKS[question])
        if is_users_function(answers):
            recording.note(before_operator, kind, "__instancecheck__", "__subclasscheck__")
        elif answers is not vars(type)[_HOOKS[question]]:  # which looks at the bases alone
            asked.append(kind)
    result = question(value, kinds)
    if asked:
        recording.note(_note_kinds, question, value, kinds, asked, result)
    return result


def _note_metaclass(recording: GuardBuilder, kind: object) -> None:
    """Of a class whose metaclass can be another one later, note which it has."""
    metaclass: Any = type(kind)
    if isinstance(kind, type) and not metaclass.__flags__ & IMMUTABLE:
        slot = recording.root(kind, kind.__name__)
        recording.guard_read(slot, "class", None, metaclass, f"type({recording.texts[slot]})")


_NESTED = 8  # tuples of classes in tuples


def _note_subject(recording: GuardBuilder, kind: object, kinds: object) -> None:
    """Of the class that is asked about, its bases say whether it is one of ``kinds``, unless it is the very same."""
    if isinstance(kind, type) and all(kind is not other for other in _each_kind(kinds)):
        note_mro(recording, kind)


def _each_kind(kinds: object) -> Iterator[Any]:
    """The classes among what ``isinstance`` takes: a class, a tuple of such, a union."""
    if isinstance(kinds, (tuple, types.UnionType)):
        for part in kinds if isinstance(kinds, tuple) else kinds.__args__:
            yield from _each_kind(part)
    else:
        yield kinds


def _note_kinds(
    recording: GuardBuilder, question: Callable[..., bool], value: Any, kinds: object, asked: list[Any], answer: bool
) -> None:
    if question is isinstance and recording.slot_of(value) is None:  # made by the trace: what counts is its class
        question, value = issubclass, type(value)
        if any(getattr(kind, "_is_protocol", False) for kind in asked):
            return
    slot = recording.root(value, value.__name__) if question is issubclass else recording.slot_of(value)
    check = SameResult(lambda v: question(v, kinds), answer)
    recording.add_guard(slot or 0, "call", check, (question.__name__, *map(id, asked)))


def _len(recording: GuardBuilder, value: Any) -> int:
    recording.note(_note_length, value)
    return len(value)


def _note_length(recording: GuardBuilder, value: object) -> None:
    if base_container(value) is not None and not isinstance(in_class(type(value), "__len__"), types.FunctionType):
        read_length(recording, value)
    elif isinstance(value, np.ndarray):
        read_attribute(recording, value, "shape", value.shape)
    before_operator(recording, value, "__len__")


def _vars(recording: GuardBuilder, *args: object) -> dict[str, Any]:
    if args:
        return get_attribute(recording, args[0], "__dict__")
    raise TraceError(recording.name, "vars() without an argument cannot be used here. Use locals().")


def _iter(recording: GuardBuilder, value: Any, *sentinel: object) -> Any:
    recording.note(iterate, value)
    return iter(value, *sentinel)


def _next(recording: GuardBuilder, iterator: Any, *default: object) -> Any:
    recording.note(_note_next, iterator)
    return next(iterator, *default)


def _is_asked_later(value: object) -> bool:
    """Whether a program takes the items of a value when it runs."""
    return hasattr(type(value), "_program_iterations")


def _note_next(recording: GuardBuilder, iterator: object) -> None:
    if _is_asked_later(iterator):
        return
    if recording.slot_of(iterator) is not None:
        recording.effect(iterator, "takes an item from {}, which outlives the call")
    before_operator(recording, iterator, "__next__")


def iterate(recording: GuardBuilder, value: object, depth: int = 0) -> None:
    """Note what iterating over a value reads, and over the containers in it, ``depth`` levels down."""
    if is_plain(value) or _is_asked_later(value):
        return
    if isinstance(value, np.ndarray):
        read_elements(recording, value)
    elif base_container(value) is not None:
        if recording.slot_of(value) is not None:
            read_items(recording, value)
        if is_users_class(type(value)):
            before_operator(recording, value, "__iter__", "__getitem__", "__len__", "keys")
        for item in keys_of(value) if depth > 0 else ():
            iterate(recording, item, depth - 1)
    elif hasattr(type(value), "__next__") and recording.slot_of(value) is not None:
        recording.effect(value, "takes items from {}, which outlives the call")
        before_operator(recording, value, "__iter__", "__next__")
    else:
        before_operator(recording, value, "__iter__", "__next__", "__getitem__", "__len__", "keys")


SPECIAL: dict[Any, Callable[..., Any]] = {
    getattr: get_attribute,
    hasattr: _hasattr,
    setattr: _setattr,
    delattr: _delattr,
    isinstance: _isinstance,
    issubclass: _issubclass,
    len: _len,
    vars: _vars,
    iter: _iter,
    next: _next,
}
