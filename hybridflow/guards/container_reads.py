"""Reads of what is inside: items of containers, elements of arrays, everything that a library may look at."""

from __future__ import annotations

import collections
import decimal
import functools
import operator
import types
from collections.abc import Iterator
from typing import Any

import numpy as np

from hybridflow.core.pytree import instance_dict
from hybridflow.core.tensor import Tensor
from hybridflow.core.variable import Variable
from hybridflow.guards import c_function_models
from hybridflow.guards.attribute_reads import (
    IMMUTABLE,
    MISSING,
    before_attribute,
    in_class,
    lookup_of,
    read_attribute,
)
from hybridflow.guards.c_state import fields_of_exceptions, note_c_state, note_context
from hybridflow.guards.code_ownership import is_of_hybridflow, is_recorded, is_users_class
from hybridflow.guards.guard_builder import GuardBuilder
from hybridflow.guards.instrumented_code import follow, is_generated
from hybridflow.guards.value_checks import (
    ATOMS,
    MAPPINGS,
    ArrayContents,
    ArrayType,
    SameItems,
    SameResult,
    container_of,
    items_of,
    keys_of,
    length_of,
    same_items,
)
from hybridflow.runtime.calls.entry import Dispatcher

_MOST_ITEMS = 256  # of a container whose items are checked one by one
_MOST_OBJECTS = 4096  # of one with objects among them, each of which has a guard in any case
_DEPTH = 16  # of containers in containers; what lies deeper is compared by identity
_FUNCTIONS = (
    types.FunctionType,
    types.MethodType,
    types.BuiltinFunctionType,
    functools.partial,
    Dispatcher,
)
# Methods that Python calls when a class is made or an instance ends: a library that is given an instance calls others.
_NOT_CALLED = frozenset(("__new__", "__init__", "__init_subclass__", "__class_getitem__", "__set_name__", "__del__"))


def is_plain(value: object) -> bool:
    """Whether there is nothing to be read of a value besides itself."""
    return type(value) in ATOMS or isinstance(value, (Tensor, Variable, type, types.ModuleType, np.generic))


def base_container(value: object) -> type | None:
    """The built-in container that a value is, or that its class extends; None for other values."""
    return container_of(type(value))


def read_length(recording: GuardBuilder, value: Any) -> None:
    slot = recording.slot_of(value)
    if slot is None:
        return
    if type(value) in (list, tuple, dict, set, frozenset):
        recording.add_guard(slot, "length", len(value))
    else:
        recording.add_guard(slot, "call", SameResult(length_of, length_of(value)), "length")


def read_items(recording: GuardBuilder, value: object, depth: int = 0) -> None:
    """Note all items of an outside container, in their order; of containers in it too, ``depth`` levels down."""
    slot = recording.slot_of(value)
    if slot is not None:
        ordered = isinstance(value, (list, tuple, dict))
        if ordered and (
            length_of(value) <= _MOST_ITEMS
            or (length_of(value) <= _MOST_OBJECTS and not all(map(is_plain, items_of(value))))
        ):
            read_length(recording, value)
            for key, item in _pairs(value):
                recording.guard_read(
                    slot, "item" if isinstance(value, dict) else "index", key, item, _entry(recording, slot, key)
                )
            if isinstance(value, dict):
                _read_keys(recording, slot, value)
        else:
            recording.add_guard(slot, "call", SameItems(value), "items")
            for k, item in enumerate(items_of(value)):
                if not is_plain(item):
                    _contained_in(recording, slot, k, item)
    if depth > 0:
        for item in items_of(value):
            consume(recording, item, depth - 1)


def _read_keys(recording: GuardBuilder, slot: int, mapping: dict[Any, Any]) -> None:
    """Note which keys there are and in which order, where that does not follow from their number and the items."""
    keys = keys_of(mapping)
    if len(keys) > 1 or any(type(key) is not str for key in keys):
        recording.add_guard(slot, "call", KeyOrder(mapping), "order")
    for key in keys:
        if not is_plain(key):
            recording.weak_root(key, f"a key of {recording.texts[slot]}")


class KeyOrder:
    """Whether the keys of a dict are the same, in the same order."""

    is_of_keys = True  # see ``guard_program``

    def __init__(self, mapping: object) -> None:
        self._keys = keys_of(mapping)

    def __call__(self, mapping: object) -> bool:
        return same_items(keys_of(mapping), self._keys)


def _pairs(value: object) -> Iterator[tuple[Any, Any]]:
    if not isinstance(value, dict):
        return enumerate(keys_of(value))
    held = items_of(value)
    return zip(held[::2], held[1::2])


def _entry(recording: GuardBuilder, slot: int, key: object) -> str:
    return f'{recording.texts[slot]}["{key}"]' if isinstance(key, str) else f"{recording.texts[slot]}[{key!r}]"


def _contained_in(recording: GuardBuilder, slot: int, position: int, item: object) -> None:
    """An object inside a container that is compared as a whole: it is outside too."""
    recording.weak_root(item, f"{recording.texts[slot]}[{position}]")


def read_item(recording: GuardBuilder, value: Any, key: Any, item: object, missing: bool) -> None:
    """Note that ``value[key]`` gave ``item``, or that there was nothing."""
    slot, base = recording.slot_of(value), base_container(value)
    if isinstance(value, np.ndarray):
        _read_element(recording, value, key, item)
        return
    if base is None or _overrides(value, "__getitem__"):
        if slot is not None and is_foreign_array(value):
            recording.opaque_array(value)
        before_operator(recording, value, "__getitem__", "__class_getitem__")
        return
    if slot is None:
        return
    if base in MAPPINGS:
        if missing:
            recording.guard_absent(slot, "item", key, _entry(recording, slot, key))
            before_operator(recording, value, "__missing__")
            adds = in_class(type(value), "__missing__") is _ADDS_KEY
            if adds and value.default_factory is not None:
                recording.effect(value, "adds a key to {}")
        else:
            read_entry(recording, value, key, item)
    elif base in (list, tuple) and type(key) is not slice and not missing:
        position = operator.index(key)
        if position < 0:
            read_length(recording, value)
            position += length_of(value)
        recording.guard_read(slot, "index", position, item, _entry(recording, slot, key))
    elif base is types.MappingProxyType and not missing:
        recording.add_guard(slot, "call", SameResult(operator.itemgetter(key), item), ("key", key))
        if not is_plain(item):
            recording.weak_root(item, _entry(recording, slot, key))
    else:
        read_items(recording, value)


_ADDS_KEY = collections.defaultdict.__dict__["__missing__"]


def read_entry(recording: GuardBuilder, mapping: object, key: object, item: object) -> None:
    """Note that an outside mapping holds ``item`` under a key."""
    slot = recording.slot_of(mapping)
    if slot is not None:
        recording.guard_read(slot, "item", key, item, _entry(recording, slot, key))


def _read_element(recording: GuardBuilder, array: np.ndarray, key: object, item: object) -> None:
    slot = recording.slot_of(array)
    if slot is None:
        return
    if not isinstance(item, np.ndarray):
        recording.add_guard(slot, "call", SameResult(operator.itemgetter(key), item), ("key", repr(key)))
        if not is_plain(item):
            recording.weak_root(item, _entry(recording, slot, key))
    elif item.base is not None and np.may_share_memory(item, array):
        recording.add_guard(slot, "call", ArrayType(array), "type")
        recording.root(item, f"{recording.texts[slot]}[...]")  # a view: its elements are the array's
    else:
        read_elements(recording, array)


def read_elements(recording: GuardBuilder, array: np.ndarray) -> None:
    """Note the elements of an outside array."""
    slot = recording.slot_of(array)
    if slot is None:
        return
    recording.add_guard(slot, "call", ArrayContents(array), "elements")
    recording.on_array_shared(array)
    if array.dtype.hasobject:
        for position, item in enumerate(array.ravel().tolist()):
            if not is_plain(item):
                _contained_in(recording, slot, position, item)
                consume(recording, item)


def consume(
    recording: GuardBuilder, value: object, depth: int = _DEPTH, live: bool = False, whole: bool = False
) -> None:
    """Note all that code which is not recorded may read of a value that it is given.

    ``live`` says that the code makes tensors of arrays and does nothing else with them, ``whole`` that it may look at
    the attributes of objects.
    """
    if type(value) is decimal.Decimal:
        _note_context(recording)
    if is_plain(value):
        return
    if isinstance(value, np.ndarray):
        if recording.slot_of(value) is None:
            return
        if live and can_be_live(value):
            recording.add_guard(recording.slot_of(value) or 0, "call", ArrayType(value), "type")
            recording.live[id(value)] = value
        else:
            read_elements(recording, value)
    elif base_container(value) is not None:
        if recording.slot_of(value) is not None:
            read_items(recording, value)
        if depth > 0:
            items = items_of(value)
            if len(items) > _WALKED and not all(map(is_plain, items)):
                recording.reason(f"hands on more than {_WALKED} objects in one container", "pass them as arguments")
            for item in items[:_WALKED]:
                consume(recording, item, depth - 1, whole=whole)  # an array in a list is copied with it
        if is_users_class(type(value)):
            follow_methods(recording, value, depth, whole)
            before_operator(recording, value, "keys")
    elif isinstance(value, _FUNCTIONS):
        recording.prepare(recording, value)
    elif recording.slot_of(value) is not None and _is_iterator_in_c(type(value)):
        recording.effect(value, "takes items from {}, which outlives the call")
    elif is_foreign_array(value):
        if recording.slot_of(value) is not None:
            recording.opaque_array(value)
    elif note_c_state(recording, value):
        return
    elif isinstance(value, BaseException):
        _read_exception(recording, value, depth)
    elif is_users_class(type(value)):
        follow_methods(recording, value, depth, whole)
    elif _has_recorded_methods(type(value)):  # ``UserList``, the views of ``UserDict``
        follow_methods(recording, value, depth, whole)
        read_state(recording, value, min(depth, _STATE_DEPTH))
    elif instance_dict(value) is not None:
        read_state(recording, value, min(depth, _STATE_DEPTH))


def _read_exception(recording: GuardBuilder, error: BaseException, depth: int) -> None:
    if recording.slot_of(error) is None or (id(error), True) in recording.consumed:
        return
    for name in fields_of_exceptions(type(error)):
        held = getattr(error, name, MISSING)
        read_attribute(recording, error, name, held)
        if depth > 0:
            consume(recording, held, depth - 1, whole=True)
    if is_users_class(type(error)):
        follow_methods(recording, error, depth, whole=True)
    else:
        read_state(recording, error)


def _is_iterator_in_c(kind: type) -> bool:
    """Whether nothing shows how far an iterator is: its class, or the one that the user's class extends, is in C."""
    step = in_class(kind, "__next__")
    return step is not MISSING and not isinstance(step, types.FunctionType)


def is_foreign_array(value: object) -> bool:
    """Whether a library's object, which is not an array of NumPy's, holds elements where no attribute shows them."""
    kind = type(value)
    if is_plain(value) or isinstance(value, np.ndarray) or is_users_class(kind):
        return False
    return hasattr(kind, "__array__") or hasattr(kind, "__dlpack__")


def _note_context(recording: GuardBuilder) -> None:
    """Decimal numbers are rounded as the context of the thread says."""
    where = recording.root(decimal.getcontext, "decimal.getcontext")
    note_context(recording, where, decimal.getcontext, lambda get: get())


def read_text(recording: GuardBuilder, value: object) -> None:
    """Note what turning a value into text reads: the value, and how NumPy is told to print arrays."""
    consume(recording, value)
    if not is_plain(value) or isinstance(value, np.generic):
        where = recording.root(np.get_printoptions, "numpy.get_printoptions")
        recording.add_guard(where, "call", SameResult(_options_text, _options_text(np.get_printoptions)), "options")


def _options_text(get: Any) -> str:
    return repr(get())


_WALKED = 4096  # items of one container that are looked into


def can_be_live(array: np.ndarray) -> bool:
    """Whether a program may read the elements of an array where they lie, at each call anew."""
    return (
        array.size > 1
        and type(array) is np.ndarray
        and array.flags.c_contiguous
        and array.flags.aligned
        and array.dtype.isnative
        and not array.dtype.hasobject
    )


def follow_methods(recording: GuardBuilder, value: object, depth: int = 0, whole: bool = False) -> None:
    """Follow every special method that the user's classes define, since a library may call any of them; note all that
    the object holds if it may look at that (``whole``), or has methods that the standard library wrote from its fields.
    """
    key = id(value), whole
    if key in recording.consumed:
        return
    recording.consumed.add(key)
    kind = type(value)
    if kind not in recording.special:
        recording.special[kind] = [method for base in kind.__mro__ for method in _special_methods(base)]
    if not is_of_hybridflow(kind):
        for name in _ASKED_IN_C:
            if not isinstance(in_class(kind, name), types.FunctionType):
                lookup_of(recording, value, name)
    for name, function in recording.special[kind]:
        if is_recorded(function.__code__):
            lookup_of(recording, value, name)
            follow(recording, function)
            whole = whole or is_generated(function.__code__)
        else:
            whole = True  # a library's, of which nothing is recorded when it runs
    if whole and recording.slot_of(value) is not None:
        for name, held in _fields(value):
            read_attribute(recording, value, name, held)
            if depth > 0:
                consume(recording, held, depth - 1, whole=True)


def _special_methods(kind: type) -> list[tuple[str, types.FunctionType]]:
    """The methods written in Python that a class itself has and that code in C may call."""
    return [
        (name, function)
        for name, function in list(kind.__dict__.items())
        if name.startswith("__")
        and name.endswith("__")
        and name not in _NOT_CALLED
        and isinstance(function, types.FunctionType)
    ]


def _has_recorded_methods(kind: type) -> bool:
    """Whether a library's class has special methods in Python that are recorded as they run."""
    return any(is_recorded(function.__code__) for base in kind.__mro__ for _, function in _special_methods(base))


def _fields(value: object) -> list[tuple[str, Any]]:
    """What an object holds, in its dict and its slots, by name."""
    slots = [
        (name, member.__get__(value))
        for base in type(value).__mro__
        for name, member in base.__dict__.items()
        if isinstance(member, types.MemberDescriptorType) and hasattr(value, name)
    ]
    return slots + list((instance_dict(value) or {}).items())


def _overrides(value: object, name: str) -> bool:
    """Whether a class defines a special method in Python."""
    return isinstance(in_class(type(value), name), types.FunctionType)


# Methods that code in C asks any object for: a class that has none, or one in C, may be given its own later.
_ASKED_IN_C = (
    *(
        "__eq__",
        "__hash__",
        "__bool__",
        "__len__",
        "__iter__",
        "__getitem__",
        "__contains__",
        "__reversed__",
        "__call__",
    ),
    *("__str__", "__repr__", "__format__", "__index__", "__int__", "__float__", "__array__"),
)
# Special methods that show what an object holds.
_LOOKING = frozenset(("__getitem__", "__iter__", "__next__", "__len__", "__contains__", "__bool__", "__call__"))
_STATE_DEPTH = 4  # of objects in objects of libraries


def _is_librarys(method: object) -> bool:
    """Whether a special method belongs to a library: nothing is recorded when it runs."""
    return method is not MISSING and not (isinstance(method, types.FunctionType) and is_recorded(method.__code__))


def read_state(recording: GuardBuilder, value: object, depth: int = _STATE_DEPTH) -> None:
    """Note all that an object of a library's class holds: the library's methods may read any of it.

    What is written in C and not known shows nothing of its state: a trace that uses it serves one call.
    """
    kind, slot = type(value), recording.slot_of(value)
    if slot is None or is_plain(value) or isinstance(value, (np.ndarray, *_FUNCTIONS)) or base_container(value):
        return
    if note_c_state(recording, value):
        return
    attributes, module = instance_dict(value), kind.__module__ or ""
    if attributes is None:
        if kind in _WITH_STATE or not c_function_models.is_pure_module(module, recording.pure_packages):
            text = f"uses an object of {module}.{kind.__name__}, whose state is not known"
            recording.reason(text, "use it outside and pass the result")
    elif (id(value), True) not in recording.consumed and not is_of_hybridflow(kind):
        recording.consumed.add((id(value), True))
        recording.guard_instance_dict(slot, value, attributes)
        read_items(recording, attributes)
        if depth > 0:
            for held in list(attributes.values()):
                consume(recording, held, depth - 1, whole=True)


_WITH_STATE = (np.flatiter, np.nditer)


def before_operator(recording: GuardBuilder, value: object, *names: str) -> None:
    """Follow the special methods of the user's class that an operator may call."""
    kind = type(value)
    if any(name in _LOOKING and _is_librarys(in_class(kind, name)) for name in names):
        read_state(recording, value)
    if kind.__flags__ & IMMUTABLE:
        return
    for name in names:
        function = in_class(kind, name)
        if isinstance(function, types.FunctionType) and is_followed_class(kind):
            lookup_of(recording, value, name)
            follow(recording, function)
        elif is_users_class(kind) and (function is MISSING or not is_of_hybridflow(kind)):
            lookup_of(recording, value, name)  # what it has from a class in C, too: it may be given a method of its own


def is_followed_class(kind: type) -> bool:
    return not issubclass(kind, (Tensor, Variable, Dispatcher, np.ndarray))


def outlives(recording: GuardBuilder, value: object) -> bool:
    """Whether others see a change of the value."""
    return recording.slot_of(value) is not None or recording.is_copy(value)


def note_write(recording: GuardBuilder, value: object, name: str) -> None:
    """An attribute is set or deleted: an effect, if others see that."""
    shared = isinstance(value, (type, types.ModuleType)) or value is decimal.getcontext()
    if shared or outlives(recording, value):
        recording.on_attribute_write(value, name)


def before_write(recording: GuardBuilder, value: object, name: str) -> None:
    """Note that an attribute is about to be set or deleted, and follow what that runs."""
    note_write(recording, value, name)
    before_attribute(recording, value, name)
    before_operator(recording, value, "__setattr__", "__delattr__")
