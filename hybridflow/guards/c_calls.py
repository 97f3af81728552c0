"""Calls of functions and methods written in C, each by what it is known to read and change."""

from __future__ import annotations

import _string
import contextlib
import contextvars
import functools
import operator
import string
import sys
import types
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hybridflow.core.context import current
from hybridflow.effects.printing import print_later
from hybridflow.errors import TraceEnd
from hybridflow.guards import c_function_models
from hybridflow.guards.attribute_reads import (
    MISSING,
    get_plain_attribute,
    in_class,
    read_attribute,
)
from hybridflow.guards.builtin_reads import SPECIAL, get_attribute, get_item
from hybridflow.guards.c_state import note_c_state
from hybridflow.guards.class_calls import constructor
from hybridflow.guards.code_ownership import is_users_class
from hybridflow.guards.container_reads import (
    base_container,
    consume,
    is_plain,
    note_write,
    read_elements,
    read_entry,
    read_item,
    read_items,
    read_text,
)
from hybridflow.guards.guard_builder import GuardBuilder, caller_globals
from hybridflow.guards.opaque_calls import Consuming, is_pure, is_python, is_stateful, unknown
from hybridflow.guards.value_checks import MAPPINGS, SameResult

BUILTIN = (types.BuiltinFunctionType, types.MethodWrapperType)

DESCRIPTORS = (types.MethodDescriptorType, types.WrapperDescriptorType, types.ClassMethodDescriptorType)

_IDENTITY = (id, operator.is_, operator.is_not)

_EXCEPTION_STATE = frozenset(f for f in (sys.exc_info, getattr(sys, "exception", None)) if f is not None)


def builtin(recording: GuardBuilder, f: Any) -> Consuming | Callable[..., Any]:
    owner = f.__self__
    of_module = isinstance(owner, types.ModuleType) and not isinstance(f, types.MethodWrapperType)
    if owner is not None and not of_module and not isinstance(owner, type):
        return _method(recording, f, owner)
    if f in _IDENTITY and current.trace is not None:
        current.trace.depends_on_identity = True
    name = f.__name__
    if isinstance(f, types.MethodWrapperType) and isinstance(owner, type):
        return _wrapper_of_class(recording, f, owner)
    module = f.__module__ or ("builtins" if owner is None else getattr(owner, "__module__", None) or "")
    if isinstance(owner, type):
        module = owner.__module__
    special = SPECIAL.get(f) if module == "builtins" else None
    if special is not None:
        return functools.partial(special, recording)
    if f is globals or f is locals:
        recording.root(caller_globals(), "globals()")
        return f
    if f in _EXCEPTION_STATE:
        return functools.partial(_exception_state, recording, f)
    if (module, name) in c_function_models.OF_CALLER:
        unknown(recording, f)
        return f  # it looks at the frame that calls it
    if f is print:
        return functools.partial(prints, recording, _print)
    if is_pure(recording, module, name):
        return Consuming(recording, f)
    return unknown(recording, f)


def _wrapper_of_class(recording: GuardBuilder, f: Callable[..., Any], kind: type) -> Any:
    """A special method of a class's own class, as ``super().__call__`` in a metaclass finds it."""
    if f.__name__ == "__call__":
        return constructor(recording, kind)(f)
    if f.__name__ == "__getattribute__":

        def get(attribute: str) -> Any:
            recording.note(read_attribute, kind, attribute, MISSING)
            return f(attribute)

        return get
    if f.__name__ in ("__setattr__", "__delattr__"):
        recording.effect(kind, "sets an attribute of {}")
    return Consuming(recording, f)


def descriptor(recording: GuardBuilder, f: Callable[..., Any]) -> Callable[..., Any]:
    """``list.append``, ``object.__setattr__``: methods taken from a class, which get their instance as an argument."""

    def call(*args: Any, **kwargs: object) -> Any:
        if f is object.__getattribute__ and len(args) == 2:
            return get_plain_attribute(recording, *args, f)
        if f in (object.__setattr__, object.__delattr__) and args:
            recording.note(note_write, args[0], str(args[1]) if len(args) > 1 else "")
            return f(*args)
        if args and not is_plain(args[0]):
            recording.note(_note_method, args[0], f.__name__, args[1:])
        return Consuming(recording, f)(*args, **kwargs)

    return call


def _method(recording: GuardBuilder, f: Any, owner: Any) -> Consuming | Callable[..., Any]:
    """A method written in C, taken from its instance."""
    name = f.__name__
    if name == "__getattribute__" and not isinstance(f, types.BuiltinFunctionType):

        def get(attribute: str) -> Any:
            return get_plain_attribute(recording, owner, attribute, getattr(f.__objclass__, name))

        return get
    if name in ("format", "format_map") and type(owner) is str:
        return functools.partial(_format, recording, f)
    if name in ("__setattr__", "__delattr__"):
        note_write(recording, owner, "an attribute")
        return f
    if name == "__get__" and isinstance(owner, (types.MemberDescriptorType, types.GetSetDescriptorType)):
        return lambda value, *kind: get_attribute(recording, value, owner.__name__)
    if isinstance(owner, contextvars.ContextVar):
        return _context_variable(recording, f, owner)
    if is_stateful(type(owner).__module__ or ""):
        return unknown(recording, f)
    if recording.slot_of(f) is not None and recording.slot_of(owner) is None:
        recording.root(owner, f"{recording.text_of(f)}.__self__")  # the method was kept, and its instance with it
    if name == "get" and base_container(owner) in MAPPINGS and not is_python(in_class(type(owner), "get")):
        return functools.partial(_get, recording, owner, f)
    _note_method(recording, owner, name, ())
    return Consuming(recording, f)


def _note_method(recording: GuardBuilder, owner: object, name: str, args: Sequence[Any]) -> None:
    """Note what a method written in C reads and changes of its instance."""
    outside = recording.slot_of(owner) is not None or recording.is_copy(owner)
    if not outside or is_plain(owner):
        return
    if isinstance(owner, np.ndarray):
        if name in c_function_models.ARRAY_MUTATORS:
            recording.effect(owner, f"calls {{}}.{name}")
        elif name in c_function_models.ARRAY_WRITERS:
            recording.reason(f"calls {name} of an array", "call it outside", is_effect=True)
        else:
            read_elements(recording, owner)
    elif base_container(owner) is not None:
        if name in c_function_models.MUTATORS:
            if name in c_function_models.TAKING:
                read_items(recording, owner)
            recording.effect(owner, f"calls {{}}.{name}")
        elif name == "__getitem__" and args:
            read_item(recording, owner, args[0], *_look_up(owner, args[0]))
        elif name in c_function_models.SHALLOW:
            read_items(recording, owner)
        else:
            consume(recording, owner)
    elif hasattr(type(owner), "__next__") or (isinstance(owner, BaseException) and name in _OF_EXCEPTIONS):
        recording.effect(owner, f"calls {{}}.{name}")
    elif note_c_state(recording, owner):
        return
    elif is_users_class(type(owner)):
        consume(recording, owner)
    elif not is_pure(recording, type(owner).__module__ or "", name):
        recording.reason(
            f"calls {type(owner).__name__}.{name}, which is not known", "call it outside and pass the result"
        )


# Methods that change exceptions.  Of iterators, any method may show how far they are.
_OF_EXCEPTIONS = frozenset(("__setstate__", "add_note", "with_traceback"))


def _look_up(owner: Any, key: object) -> tuple[Any, bool]:
    try:
        return owner[key], False
    except (LookupError, TypeError):
        return MISSING, True


def _get(recording: GuardBuilder, owner: object, f: Callable[..., Any], key: object, default: object = None) -> Any:
    """``mapping.get``: one entry, or its absence."""
    recording.note(_note_entry, owner, key)
    return f(key, default)


def _note_entry(recording: GuardBuilder, owner: Any, key: Any) -> None:
    slot = recording.slot_of(owner)
    if slot is None:
        return
    entry = dict.get(owner, key, MISSING)
    if entry is MISSING:
        recording.guard_absent(slot, "item", key, f"{recording.texts[slot]}[{key!r}]")
    else:
        read_entry(recording, owner, key, entry)


def _format(recording: GuardBuilder, f: Any, /, *args: object, **named: object) -> Any:
    """``text.format(...)``, which reads the attributes and items that its fields name."""
    values = args[0] if f.__name__ == "format_map" and args else named
    with contextlib.suppress(Exception):  # of which the call itself says more
        _read_fields(recording, f.__self__, args, values)
    return Consuming(recording, f)(*args, **named)


def _read_fields(recording: GuardBuilder, text: str, args: Sequence[Any], named: object) -> None:
    number = 0
    for _, field, specification, _ in string.Formatter().parse(text):
        if field is None:
            continue
        first, rest = _string.formatter_field_name_split(field)
        if first == "":
            first, number = number, number + 1
        value = args[first] if type(first) is int else get_item(recording, named, first)
        for is_attribute, key in rest:
            value = (get_attribute if is_attribute else get_item)(recording, value, key)
        if specification:
            _read_fields(recording, specification, args, named)


def _context_variable(recording: GuardBuilder, f: Callable[..., object], variable: contextvars.ContextVar[Any]) -> Any:
    if f.__name__ != "get":
        recording.effect(variable, "changes the context variable {}")
        return f

    def get(*default: object) -> Any:
        value = f(*default)
        recording.note(_note_result, variable, variable.name, lambda v: v.get(*default), value)
        return value

    return get


def _exception_state(recording: GuardBuilder, f: Callable[..., Any]) -> Any:
    """``sys.exc_info``: that nothing is being handled can be asked again; what ends a trace no call will meet."""
    error = sys.exc_info()[1]
    if error is None:
        recording.add_guard(recording.root(f, f"sys.{f.__name__}"), "call", _nothing_is_handled)
    elif not isinstance(error, TraceEnd):
        recording.note(unknown, f)
    return f()


def _nothing_is_handled(_: object) -> bool:
    return sys.exc_info()[1] is None


def dereference(recording: GuardBuilder, reference: weakref.ref[Any]) -> Any:
    value = reference()
    recording.note(_note_result, reference, "a weak reference", lambda r: r(), value)
    return value


def call_lru_cache(recording: GuardBuilder, f: Any, /, *args: object, **kwargs: object) -> Any:
    """``functools.lru_cache``: what is in the cache counts, not what it was computed from."""
    misses, held = f.cache_info().misses, recording.items_of_watched()
    value = recording.note(lambda _: f(*args, **kwargs))
    if f.cache_info().misses != misses:
        recording.keep_changes(held)  # a run of the code finds the result in the cache
    text = f.__wrapped__.__name__
    recording.note(_note_result, f, text, lambda g: g(*args, **kwargs), value, (args, tuple(kwargs.items())))
    return value


def _note_result(
    recording: GuardBuilder,
    source: object,
    text: str,
    function: Callable[[Any], Any],
    value: object,
    key: object = None,
) -> None:
    """What ``function(source)`` gave: asked again by a guard."""
    recording.add_guard(recording.weak_root(source, text), "call", SameResult(function, value), ("result", key))
    if not is_plain(value):
        recording.weak_root(value, f"{text}()")


def logs(recording: GuardBuilder, method: types.MethodType) -> Any:
    """A method of a logger: whether it is enabled for a level is asked again by a guard, and where it is not, nothing
    is done."""
    logger: Any = method.__self__
    name = method.__name__

    def call(*args: object, **kwargs: object) -> Any:
        level = c_function_models.LEVELS.get(name, args[0] if args else kwargs.get("level"))
        if type(level) is not int:  # an error
            return recording.note(unknown, method)(*args, **kwargs)
        is_enabled = recording.note(lambda _: logger.isEnabledFor(level))
        if is_enabled and name != "isEnabledFor":
            return recording.note(unknown, method)(*args, **kwargs)
        recording.note(
            _note_result, logger, "a logger", lambda one: one.isEnabledFor(level), is_enabled, ("isEnabledFor", level)
        )
        return is_enabled if name == "isEnabledFor" else None

    return call


def getter(recording: GuardBuilder, f: Any, value: object) -> Any:
    """What ``operator.attrgetter``, ``itemgetter`` and ``methodcaller`` do, step by step."""
    _, args = f.__reduce__()[:2]
    if isinstance(f, operator.methodcaller):
        return recording.note(recording.prepare, get_attribute(recording, value, args[0]))(*args[1:])
    parts = []
    for name in args:
        part = value
        if isinstance(f, operator.attrgetter):
            for step in name.split("."):
                part = get_attribute(recording, part, step)
        else:
            part = get_item(recording, value, name)
        parts.append(part)
    return parts[0] if len(args) == 1 else tuple(parts)


def prints(recording: GuardBuilder, f: Callable[..., object], /, *values: object, **options: object) -> Any:
    """A function that shows what it is given, when the program runs: nothing is done with what it writes to."""
    for value in values:
        recording.note(read_text, value)
    return recording.note(lambda _: f(*values, **options))


def _print(*values: Any, **options: Any) -> None:
    """Python's own."""
    later = current.trace is not None and options.keys() <= {"sep", "end", "file", "flush"}
    (print_later if later else print)(*values, **options)
