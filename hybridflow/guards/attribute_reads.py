"""Reads of attributes: what Python's attribute lookup looked at on its way, as steps of a recording.

Lookup follows ``object.__getattribute__`` (Python reference, 3.3.2): descriptors of the class that set, the instance's
own dict, what else is in the class, ``__getattr__``.  The value itself is always read by Python; this module only finds
out where it came from.
"""

from __future__ import annotations

import decimal
import enum
import functools
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from hybridflow.core.pytree import instance_dict
from hybridflow.core.tensor import Tensor
from hybridflow.core.variable import Variable
from hybridflow.guards.code_ownership import is_library_module, is_of_hybridflow, is_ours, is_recorded, is_users_class
from hybridflow.guards.guard_builder import GuardBuilder
from hybridflow.guards.instrumented_code import follow
from hybridflow.guards.value_checks import ATOMS, CONTAINERS, ArrayContents, ArrayType, SameResult
from hybridflow.runtime.calls.entry import Dispatcher
from hybridflow.runtime.calls.guard_steps import is_member

MISSING = object()
_ARRAY_TYPE = frozenset(("shape", "dtype", "ndim", "size", "itemsize", "nbytes"))
_VARIABLE_STATE = frozenset(("name", "trainable"))


def in_class(kind: type, name: str) -> Any:
    """What is stored under a name in a class or its bases; MISSING if nothing is."""
    for base in kind.__mro__:
        if name in base.__dict__:  # mostly not, which is quicker so
            result = base.__dict__.get(name, MISSING)
            if result is not MISSING:
                return result
    return MISSING


def holds(attributes: dict[str, Any], name: str) -> bool:
    """Whether there is an attribute of this name among an instance's own, as attribute lookup sees it."""
    return dict.__contains__(attributes, name)


def read_attribute(recording: GuardBuilder, value: object, name: str, result: object) -> None:
    """Note what reading ``value.name`` looked at; it gave ``result``, or MISSING if it raised AttributeError."""
    kind = type(value)
    if kind in ATOMS:
        return
    is_member_of_enum = isinstance(value, enum.Enum) and "_name_" in value.__dict__  # not yet while it is made
    if is_member_of_enum and _is_of_member(kind, name):
        if name != "__class__":
            _of_member(recording, value, name.strip("_"))  # type: ignore[arg-type]  # of a member
        return
    if kind in CONTAINERS:
        _of_container(recording, value, name, result)
    elif kind is Variable:
        if name in _VARIABLE_STATE and recording.slot_of(value) is not None:
            _stored(recording, value, name, result)
    elif isinstance(value, (Tensor, np.generic)):
        return
    elif isinstance(value, types.ModuleType):
        _of_module(recording, value, name, result)
    elif isinstance(value, type):
        _of_class(recording, value, name, result)
    elif kind is super:
        _of_super(recording, value, name)
    elif isinstance(value, np.ndarray):
        _of_array(recording, value, name, result)
    elif isinstance(value, Dispatcher):
        if instance_dict(value) is not None:  # of its user's: its own are in slots
            recording.weak_root(value, name)
            read_plain_attribute(recording, value, name)
    elif kind is types.MethodType and recording.slot_of(value) is None:
        if name not in _OF_METHODS:  # the function's, which is found where the method was
            function: object = value.__func__  # type: ignore[attr-defined]
            _root_function(recording, function)
            read_attribute(recording, function, name, result)
    elif isinstance(value, decimal.Context) and name in _FLAGS_OF_CONTEXT:
        recording.reason(f"uses {kind.__name__}.{name}, which calculations set", "do that outside and pass the result")
    else:
        if is_member_of_enum:
            recording.root(value, f"{kind.__name__}.{value.__dict__['_name_']}")
        if not recording.is_set(value, name):
            _of_object(recording, value, name, result)


_FLAGS_OF_CONTEXT = frozenset(("flags", "clear_flags"))
_OF_METHODS = frozenset(("__self__", "__func__", "__class__", "__call__"))


def _root_function(recording: GuardBuilder, function: object) -> None:
    """A function that a class holds, of which the class's guard says that it stays: its attributes may change."""
    if isinstance(function, types.FunctionType):
        recording.weak_root(function, function.__name__)


def _is_of_member(kind: type, name: str) -> bool:
    """Whether an attribute of an enumeration's members is what makes them: it stays."""
    return name in _OF_MEMBERS or (name in ("name", "value") and in_class(kind, name) is enum.Enum.__dict__[name])


def _of_member(recording: GuardBuilder, member: enum.Enum, name: str) -> None:
    """The name or the value of an enumeration's member: what it holds may change, if it is a list."""
    attributes = member.__dict__
    slot = recording.root(member, f"{type(member).__name__}.{attributes['_name_']}")
    where = recording.guard_instance_dict(slot, member, attributes)
    text = f"{recording.texts[slot]}.{name}"
    recording.guard_read(where, "item", f"_{name}_", attributes[f"_{name}_"], text)


_OF_MEMBERS = frozenset(("_name_", "_value_", "__class__"))


def _of_container(recording: GuardBuilder, value: object, name: str, result: object) -> None:
    """``deque.maxlen``, ``defaultdict.default_factory``, what was set on a Counter; its methods are looked at when they
    are called."""
    if name in (instance_dict(value) or ()):
        read_plain_attribute(recording, value, name)
    elif (
        isinstance(in_class(type(value), name), _FIELDS)
        and name != "__class__"
        and recording.slot_of(value) is not None
    ):
        _stored(recording, value, name, result)


_FIELDS = (types.GetSetDescriptorType, types.MemberDescriptorType)


def before_attribute(recording: GuardBuilder, value: Any, name: str) -> None:
    """Follow the code of the user's that reading ``value.name`` will run: properties, ``__getattr__`` and the like."""
    kind = value if isinstance(value, type) else type(value)
    if isinstance(value, types.ModuleType) and name not in value.__dict__:
        _follow_modules_getattr(recording, value)
    if kind is super:
        kind = value.__self_class__
        for base in kind.__mro__:
            if name in base.__dict__:
                _follow_descriptor(recording, base.__dict__[name])
        return
    in_type = in_class(kind, name)
    if in_type is not MISSING:
        _follow_descriptor(recording, in_type)
    if isinstance(value, type):
        kind = type(value)
        _follow_descriptor(recording, in_class(kind, name))
    if not is_users_class(kind):
        return
    for hook in ("__getattribute__", "__getattr__"):
        function = in_class(kind, hook)
        if isinstance(function, types.FunctionType) and (hook == "__getattribute__" or in_type is MISSING):
            follow(recording, function)


def _follow_modules_getattr(recording: GuardBuilder, module: types.ModuleType) -> None:
    """Follow what a module answers other names by (PEP 562): a function, or anything that can be called."""
    getter = module.__dict__.get("__getattr__", MISSING)
    if isinstance(getter, types.FunctionType):
        if is_recorded(getter.__code__):
            follow(recording, getter)
    elif getter is not MISSING and not is_library_module(module.__name__):
        slot, text = recording.root(module.__dict__, module.__name__), f"{module.__name__}.__getattr__"
        recording.guard_read(slot, "item", "__getattr__", getter, text)
        recording.prepare(recording, getter)


def _follow_descriptor(recording: GuardBuilder, descriptor: object) -> None:
    if isinstance(descriptor, property):
        if isinstance(descriptor.fget, types.FunctionType):
            follow(recording, descriptor.fget)
    elif isinstance(descriptor, functools.cached_property):
        follow(recording, descriptor.func)
    elif descriptor is not MISSING and not isinstance(
        descriptor, (types.FunctionType, staticmethod, classmethod, Dispatcher)
    ):
        getter = in_class(type(descriptor), "__get__")
        if isinstance(getter, types.FunctionType) and is_recorded(getter.__code__):
            recording.weak_root(descriptor, type(descriptor).__name__)  # it reads what the descriptor holds
            lookup_of(recording, descriptor, "__get__")
            follow(recording, getter)


def class_slot(recording: GuardBuilder, kind: type) -> int:
    return recording.root(kind, kind.__name__)


def lookup(recording: GuardBuilder, kind: type, name: str) -> Any:
    """Note what a class holds under a name, its bases included, and return it (MISSING if nothing)."""
    result = in_class(kind, name)
    if kind.__flags__ & IMMUTABLE or is_ours(kind):  # native methods take the place of Python ones as they are loaded
        return result
    slot, text = class_slot(recording, kind), f"{kind.__name__}.{name}"
    if result is MISSING:
        recording.guard_absent(slot, "lookup", name, text)
    else:
        recording.guard_read(slot, "lookup", name, result, text)
    return result


def note_mro(recording: GuardBuilder, kind: type) -> None:
    """Note the method resolution order of a class."""
    if not (kind.__flags__ & IMMUTABLE or is_ours(kind)):
        recording.guard_mro(class_slot(recording, kind), kind)


def lookup_of(recording: GuardBuilder, value: object, name: str) -> Any:
    """``lookup`` in the class of an object, which must stay of that class."""
    slot = recording.slot_of(value)
    if slot is not None:
        recording.guard_read(slot, "class", None, type(value), f"type({recording.texts[slot]})")
    return lookup(recording, type(value), name)


IMMUTABLE = 1 << 8  # Py_TPFLAGSIMMUTABLETYPE of CPython's object.h


def _stored(recording: GuardBuilder, value: object, name: str, result: object) -> None:
    """An attribute that reading again shows as it is, and that runs nobody's code."""
    slot = recording.slot_of(value)
    assert slot is not None
    text, kind = f"{recording.texts[slot]}.{name}", type(value)
    read, operand = "attribute", name
    in_type = in_class(kind, name)
    if is_member(in_type) and in_type.__objclass__ is kind and not _has_hook(kind):
        recording.guard_read(class_slot(recording, kind), "lookup", name, in_type, f"{kind.__name__}.{name}")
        read, operand = "member", in_type
    if result is MISSING:
        recording.guard_absent(slot, read, operand, text)
    else:
        recording.guard_read(slot, read, operand, result, text)


def _has_hook(kind: type) -> bool:
    """Whether a class has code of its own for attributes."""
    hooks = in_class(kind, "__getattribute__"), in_class(kind, "__getattr__")
    return hooks[0] is not object.__getattribute__ or hooks[1] is not MISSING


def _of_object(recording: GuardBuilder, value: object, name: str, result: object) -> None:
    kind, slot = type(value), recording.slot_of(value)
    if isinstance(lookup_of(recording, value, "__getattribute__"), types.FunctionType):
        return  # what it reads is recorded as it reads
    shared, attributes = in_class(kind, name), instance_dict(value)
    held = attributes is not None and holds(attributes, name)
    if name == "__class__":
        if slot is not None:
            recording.guard_read(slot, "class", None, kind, f"type({recording.texts[slot]})")
    elif name == "__dict__":
        if slot is not None:
            recording.guard_instance_dict(slot, value, result)
    elif slot is not None and (_is_librarys(shared) or (shared is MISSING and not held and _is_from_c(kind, result))):
        _stored(recording, value, name, result)
    elif isinstance(shared, property) or (
        not held and shared is not MISSING and isinstance(in_class(type(shared), "__get__"), types.FunctionType)
    ):
        _through_descriptor(recording, value, name, shared, result)
    elif held:
        read_plain_attribute(recording, value, name)
    elif isinstance(shared, (types.FunctionType, Dispatcher)):
        _method(recording, value, name, shared)
    elif isinstance(shared, (staticmethod, classmethod)):
        _root_function(recording, shared.__func__)
        lookup_of(recording, value, name)
        _not_in_instance(recording, value, name)
    elif shared is MISSING:
        lookup_of(recording, value, name)
        _not_in_instance(recording, value, name)
        lookup_of(recording, value, "__getattr__")
    elif isinstance(shared, (types.MethodDescriptorType, types.WrapperDescriptorType)) or _is_shown(kind, name, shared):
        lookup_of(recording, value, name)
        _not_in_instance(recording, value, name)
    elif slot is not None:
        _stored(recording, value, name, result)
    else:
        lookup_of(recording, value, name)


def _is_shown(kind: type, name: str, shared: object) -> bool:
    """Whether instances show what one of hybridflow's classes holds as it is, whatever is done to the class of that.
    What the user's classes hold is read of the instance, which may come to have an equal value of its own."""
    base = next((base for base in kind.__mro__ if name in base.__dict__), kind)
    of_library = is_of_hybridflow(base) and not is_ours(base)
    return of_library and bool(type(shared).__flags__ & IMMUTABLE) and not hasattr(type(shared), "__get__")


def _is_librarys(attribute: object) -> bool:
    """Whether a property is Python code of a library's, of which nothing is recorded."""
    function = attribute.fget if isinstance(attribute, property) else None
    return isinstance(function, types.FunctionType) and not is_recorded(function.__code__)


def _is_from_c(kind: type, result: object) -> bool:
    """Whether an attribute that neither the class nor the instance holds comes from code of which nothing is recorded:
    a library's ``__getattr__``, one in C (``__getattr__ = dict.__getitem__``), or a class in C itself."""
    getter = in_class(kind, "__getattr__")
    if getter is MISSING:
        return result is not MISSING
    return not (isinstance(getter, types.FunctionType) and is_recorded(getter.__code__))


def read_plain_attribute(recording: GuardBuilder, value: object, name: str) -> None:
    """Note what ``object.__getattribute__(value, name)`` looks at, whatever the class makes of attributes."""
    slot, attributes = recording.slot_of(value), instance_dict(value)
    if attributes is not None and holds(attributes, name):
        if slot is not None:
            text = recording.texts[slot]
            where = recording.guard_instance_dict(slot, value, attributes)
            recording.guard_read(where, "item", name, dict.__getitem__(attributes, name), f"{text}.{name}")
    else:
        _not_in_instance(recording, value, name)
    shared = lookup_of(recording, value, name)
    if shared is not MISSING:
        _stays_behind(recording, shared)
        _follow_descriptor(recording, shared)


def _stays_behind(recording: GuardBuilder, shared: object) -> None:
    """What a class holds comes before an instance's own as soon as its class has ``__set__`` or ``__delete__``."""
    for method in ("__set__", "__delete__"):
        lookup(recording, type(shared), method)


def get_plain_attribute(recording: GuardBuilder, value: object, name: str, get: Callable[[Any, str], Any]) -> Any:
    """``get(value, name)``, which is ``object.__getattribute__`` or one of a class in C, noted."""
    recording.note(read_plain_attribute, value, name)
    try:
        attribute = get(value, name)
    except AttributeError:
        recording.note(_note_in_c, value, name, get, MISSING)
        raise
    recording.note(_note_in_c, value, name, get, attribute)
    return attribute


def _note_in_c(
    recording: GuardBuilder, value: object, name: str, get: Callable[[Any, str], Any], result: object
) -> None:
    """Note what ``get`` gave where the instance's dict and functions in Python do not say it."""
    slot, shared = recording.slot_of(value), in_class(type(value), name)
    attributes = instance_dict(value)
    in_dict = attributes is not None and holds(attributes, name)
    in_python = isinstance(shared, property) and isinstance(shared.fget, types.FunctionType)
    is_stored = isinstance(shared, (property, *_FIELDS)) and not in_python
    if slot is None or not (is_stored or (isinstance(value, type) and not in_dict)):
        return

    def again(owner: object) -> Any:
        try:
            return get(owner, name)
        except AttributeError:
            return MISSING

    recording.add_guard(slot, "call", SameResult(again, result), ("plain", name))
    if result is not MISSING and type(result) not in ATOMS:
        recording.weak_root(result, f"{recording.texts[slot]}.{name}")


def _through_descriptor(recording: GuardBuilder, value: object, name: str, shared: object, result: object) -> None:
    """The descriptor must stay the class's; what its code reads is recorded as it reads, or read again by the guard."""
    if isinstance(shared, property) and not isinstance(shared.fget, types.FunctionType):
        if recording.slot_of(value) is not None:
            _stored(recording, value, name, result)
        return
    lookup_of(recording, value, name)
    if not isinstance(shared, property) and in_class(type(shared), "__set__") is MISSING:
        _not_in_instance(recording, value, name)


def _method(recording: GuardBuilder, value: object, name: str, function: object) -> None:
    slot = recording.slot_of(value)
    plain = isinstance(function, types.FunctionType) and in_class(type(value), "__getattr__") is MISSING
    if slot is None or not plain:
        lookup_of(recording, value, name)
        _not_in_instance(recording, value, name)
        return
    recording.guard_read(slot, "method", name, function, f"{recording.texts[slot]}.{name}")


def _not_in_instance(recording: GuardBuilder, value: object, name: str) -> None:
    """The instance must not get an attribute of its own that would come first."""
    slot, attributes = recording.slot_of(value), instance_dict(value)
    if slot is None or attributes is None:
        return
    text = recording.texts[slot]
    recording.guard_absent(recording.guard_instance_dict(slot, value, attributes), "item", name, f"{text}.{name}")


def _of_class(recording: GuardBuilder, kind: type, name: str, result: object) -> None:
    if issubclass(kind, enum.Enum) and name in kind.__members__:
        return  # a member is what it is
    shared = lookup(recording, type(kind), name)
    if isinstance(shared, _FIELDS):  # __name__, __doc__, __dict__, __mro__: as Python shows them
        if isinstance(result, types.MappingProxyType):
            recording.root(result, f"vars({kind.__name__})")
        elif not kind.__flags__ & IMMUTABLE and result is not MISSING:
            recording.guard_read(class_slot(recording, kind), "attribute", name, result, f"{kind.__name__}.{name}")
        return
    class_value = lookup(recording, kind, name)
    if isinstance(class_value, (staticmethod, classmethod)):
        _root_function(recording, class_value.__func__)
    if class_value is MISSING and result is not MISSING:
        if lookup(recording, type(kind), "__getattr__") is not MISSING and _is_from_c(type(kind), result):
            recording.guard_read(class_slot(recording, kind), "attribute", name, result, f"{kind.__name__}.{name}")
    elif shared is not MISSING:
        _stays_behind(recording, shared)


def _of_super(recording: GuardBuilder, value: Any, name: str) -> None:
    """``super().name``: the classes after the present one, each asked by itself."""
    note_mro(recording, value.__self_class__)
    mro = value.__self_class__.__mro__
    for base in mro[mro.index(value.__thisclass__) + 1 :]:
        in_base = base.__dict__.get(name, MISSING)
        if not base.__flags__ & IMMUTABLE:
            text = f"{base.__name__}.{name}"
            slot = recording.root(_dict_of_class(base), f"vars({base.__name__})")
            if in_base is MISSING:
                recording.guard_absent(slot, "item", name, text)
            else:
                recording.guard_read(slot, "item", name, in_base, text)
        if in_base is not MISSING:
            return


def _dict_of_class(kind: type) -> dict[str, Any]:
    """The dict behind the read-only view of a class's attributes."""
    import gc

    return next(d for d in gc.get_referents(kind.__dict__) if type(d) is dict)


def _of_array(recording: GuardBuilder, array: np.ndarray, name: str, result: object) -> None:
    slot = recording.slot_of(array)
    if slot is None:
        return
    text = f"{recording.texts[slot]}.{name}"
    if name == "__dict__" and result is not MISSING:
        recording.guard_instance_dict(slot, array, result)
    elif name == "flags":
        recording.add_guard(slot, "call", SameResult(_flags_of, _flags_of(array)), "flags")
    elif name in _ARRAY_TYPE:
        recording.add_guard(slot, "call", ArrayType(array), "type")
    elif isinstance(result, np.ndarray):
        recording.add_guard(slot, "call", ArrayType(array), "type")
        recording.root(result, text)  # a view: its elements are the array's
    elif result is MISSING or name in (instance_dict(array) or ()):
        _stored(recording, array, name, result)
    elif not callable(result):
        recording.add_guard(slot, "call", ArrayContents(array), "elements")
        recording.on_array_shared(array)


def _flags_of(array: np.ndarray) -> int:
    return int(array.flags.num)


def _of_module(recording: GuardBuilder, module: types.ModuleType, name: str, result: object) -> None:
    if is_users_class(type(module)):
        recording.weak_root(module, module.__name__)
        _of_object(recording, module, name, result)
        return
    slot, text = recording.root(module.__dict__, module.__name__), f"{module.__name__}.{name}"
    if not is_library_module(module.__name__):  # which may come to have a class with properties
        module_slot = recording.weak_root(module, module.__name__)
        recording.guard_read(module_slot, "class", None, type(module), f"type({module.__name__})")
    if name in module.__dict__:
        recording.guard_read(slot, "item", name, module.__dict__[name], text)
    else:
        recording.guard_absent(slot, "item", name, text)
        getter = module.__dict__.get("__getattr__", MISSING)
        if getter is MISSING:
            recording.guard_absent(slot, "item", "__getattr__", f"{module.__name__}.__getattr__")
        else:
            recording.guard_read(slot, "item", "__getattr__", getter, f"{module.__name__}.__getattr__")
            is_shown = isinstance(getter, types.FunctionType) or is_library_module(module.__name__)
            if not is_shown and recording.prepare(recording, getter) is not getter:  # it is in C: look again
                _stored(recording, module, name, result)
