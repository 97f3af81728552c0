"""Guards: what must still be as it was, besides the arguments, for a program to answer a call; as a small program.

It is a row of steps, of which each reads a value, by itself or out of the value of an earlier step, and checks it;
step k leaves its value in slot k.  The call is answered when every check passes.  Native code runs the steps
(``guard_program``); ``first_failing`` is the same in Python, for the slow path.

A value is null where there is none: a missing key, attribute or index, an empty cell, a dead weak reference.  Null
passes the check "absent" and no other.  An Exception that a read or a check raises makes the step fail; any other
BaseException, such as KeyboardInterrupt, goes to the caller.
"""

from __future__ import annotations

import ctypes
import struct
import sys
import types
import weakref
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

from hybridflow.errors import ArgumentError


class GuardStep(NamedTuple):
    """One step: what to read, and what must be true of it.

    ``read``      the value
    "root"        the object ``operand``, which the step keeps alive
    "weak"        the referent of the weak reference ``operand``
    "slot"        the value of slot ``owner`` again
    "item"        what the dict ``owner`` (or a subclass's instance) stores under the key ``operand``
    "index"       element ``operand`` of the list or tuple ``owner`` (or a subclass's instance); -1 is the last
    "cell"        the contents of the closure cell ``owner``
    "code"        the code of the Python function ``owner``, its own where other code stands in for it (``stand_ins``)
    "defaults", "keyword defaults", "closure"   what the Python function ``owner`` has, or None
    "class"       the type of ``owner``
    "member"      what ``owner`` has in the slot (of ``__slots__``) of the descriptor ``operand``; ``owner`` is of the
                  very class that has the slot
    "own"         the dict of the instance ``owner``, which must be no class
    "attribute"   the attribute ``operand`` of ``owner``, by whatever code that takes
    "lookup"      what the class ``owner`` or the first of its bases that has it stores as ``operand``, unbound
    "mro"         the tuple of classes that attributes of the class ``owner`` are looked up in (its ``__mro__``)
    "method"      the function that ``owner.operand(...)`` calls with ``owner`` as first argument; a failure if it calls
                  anything else

    ``check``     passes when the value
    "any"         is there
    "absent"      is not there
    "is"          is the object ``expected``, which the step keeps alive
    "weak"        is the live referent of the weak reference ``expected``
    "referents"   is a tuple of the live referents of the weak references in the tuple ``expected``
    "same"        is the value of slot ``expected``
    "type"        has exactly the type ``expected``
    "number"      has the type of ``expected``, float or int, and its bits or value
    "text"        has the type of ``expected``, str or bytes, and equals it
    "length"      is a list, tuple, dict, set, frozenset or str, no subclass's instance, of length ``expected``
    "call"        makes ``expected(value)`` true
    """

    read: str
    owner: int = -1
    operand: Any = None
    check: str = "any"
    expected: Any = None


_OF_FUNCTIONS = {"defaults": "__defaults__", "keyword defaults": "__kwdefaults__", "closure": "__closure__"}
_READS = (
    *("root", "weak", "slot", "item", "index", "cell", "code", *_OF_FUNCTIONS),
    *("class", "member", "own", "attribute", "lookup", "mro", "method"),
)
_CHECKS = ("any", "absent", "is", "weak", "referents", "same", "type", "number", "text", "length", "call")
READ = {name: code for code, name in enumerate(_READS)}
CHECK = {name: code for code, name in enumerate(_CHECKS)}
HAS_OWNER = frozenset(READ) - {"root", "weak"}
SIZED = (list, tuple, dict, set, frozenset, str)

_NULL = object()


def checked(steps: Sequence[GuardStep]) -> tuple[GuardStep, ...]:
    """The steps as native code takes them, names interned.  Raises ArgumentError for a step that means nothing."""
    for k, step in enumerate(steps):
        fits = (
            step.read in READ
            and step.check in CHECK
            and (step.read not in HAS_OWNER or (type(step.owner) is int and 0 <= step.owner < k))
            and _operand_fits(step)
            and _expected_fits(step, k)
        )
        if not fits:
            raise ArgumentError("guards", f"step {k} makes no sense: {step.read!r}, {step.check!r}.")
    # Classes remember what they looked up by the address of the name.
    return tuple([s._replace(operand=sys.intern(s.operand)) if type(s.operand) is str else s for s in steps])


def _operand_fits(step: GuardStep) -> bool:
    if step.read == "weak":
        return isinstance(step.operand, weakref.ref)
    if step.read == "index":
        return type(step.operand) is int and -(1 << 62) <= step.operand < 1 << 62
    if step.read in ("attribute", "lookup", "method"):
        return type(step.operand) is str
    if step.read == "member":
        return is_member(step.operand)
    return step.read != "item" or isinstance(step.operand, Hashable)


def _expected_fits(step: GuardStep, k: int) -> bool:
    expected = step.expected
    return {
        "weak": isinstance(expected, weakref.ref),
        "referents": type(expected) is tuple and all(isinstance(each, weakref.ref) for each in expected),
        "same": type(expected) is int and 0 <= expected < k,
        "type": isinstance(expected, type),
        "number": type(expected) in (float, int),
        "text": type(expected) in (str, bytes),
        "length": type(expected) is int and 0 <= expected < 1 << 62,
        "call": callable(expected),
    }.get(step.check, True)


# The same in Python.


def holds(steps: Sequence[GuardStep]) -> bool:
    """Whether every step passes."""
    return first_failing(steps) is None


def first_failing(steps: Sequence[GuardStep]) -> int | None:
    """The index of the first step that fails, or None."""
    failed = failure(steps)
    return None if failed is None else failed[0]


def failure(steps: Sequence[GuardStep]) -> tuple[int, list[Any]] | None:
    """The index of the first step that fails, and the value that it read, in a list that is empty if there was none;
    None when all pass."""
    slots: list[Any] = []
    for k, step in enumerate(steps):
        value = _NULL
        try:
            value = _read(step, slots)
            if not _passes(step, value, slots):
                return k, [value] if value is not _NULL else []
        except Exception:
            return k, [value] if value is not _NULL else []
        slots.append(value)
    return None


def _read(step: GuardStep, slots: list[Any]) -> Any:
    if step.read not in HAS_OWNER:
        return step.operand if step.read == "root" else _referent(step.operand)
    owner = slots[step.owner]
    if step.read == "slot":
        return owner
    if owner is _NULL:
        raise LookupError("nothing to read of")
    return _READERS[step.read](owner, step.operand)


def _passes(step: GuardStep, value: Any, slots: list[Any]) -> bool:
    if value is _NULL or step.check == "absent":
        return value is _NULL and step.check == "absent"
    if step.check == "same":
        return value is slots[step.expected]
    return bool(_TESTS[step.check](value, step.expected))


def _referent(reference: weakref.ref[Any]) -> Any:
    value = reference()
    return _NULL if value is None else value


def _index(owner: Any, index: int) -> Any:
    kind = list if issubclass(type(owner), list) else tuple
    try:
        return kind.__getitem__(owner, index)
    except IndexError:
        return _NULL


def _contents(owner: types.CellType, _: object) -> Any:
    if type(owner) is not types.CellType:
        raise TypeError("not a cell")
    try:
        return owner.cell_contents
    except ValueError:
        return _NULL


# Code that a function runs for a while in place of its own, by id.  Native code does not know of it and lets the call
# go the slow way.
stand_ins: dict[int, types.CodeType] = {}


def _code(owner: object, _: object) -> types.CodeType:
    if type(owner) is not types.FunctionType:
        raise TypeError("no Python function")
    code = owner.__code__
    return stand_ins.get(id(code), code)


def _of_function(name: str) -> Callable[[Any, Any], Any]:
    def read(owner: object, _: object) -> Any:
        if type(owner) is not types.FunctionType:
            raise TypeError("no Python function")
        return getattr(owner, name)

    return read


def is_member(value: object) -> bool:
    """Whether a value is the descriptor of a slot that holds any object, or none."""
    if type(value) is not types.MemberDescriptorType:
        return False
    return bool(value.__objclass__.__flags__ & _IS_HEAP_TYPE)  # in C they may hold other things


_IS_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE of CPython's object.h


def _member(owner: object, descriptor: types.MemberDescriptorType) -> Any:
    if type(owner) is not descriptor.__objclass__:
        raise TypeError("of another class")
    try:
        return descriptor.__get__(owner)
    except AttributeError:
        return _NULL


def _instance_dict(owner: object, _: object) -> Any:
    if isinstance(owner, type):
        raise TypeError("a class")
    if sys.implementation.name != "cpython":
        return object.__getattribute__(owner, "__dict__")
    return _generic_dict(owner, None)  # whatever the class calls __dict__


if sys.implementation.name == "cpython":
    _generic_dict = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object, ctypes.c_void_p)(
        ("PyObject_GenericGetDict", ctypes.pythonapi)
    )


def has_own_dict(owner: object, instance_dict: object) -> bool:
    """Whether "own" reads this dict of an instance.  Some classes show another as ``__dict__``: an object of
    ``threading.local`` has one for each thread."""
    try:
        return _instance_dict(owner, None) is instance_dict
    except (AttributeError, TypeError):
        return False


def _attribute(owner: object, name: str) -> Any:
    try:
        return getattr(owner, name)
    except AttributeError:
        return _NULL


_mro_of = type.__dict__["__mro__"].__get__
_dict_of = type.__dict__["__dict__"].__get__


def lookup(owner: type, name: str) -> Any:
    """What a class or its first base that has it stores under the name.  Raises AttributeError, TypeError."""
    result = _lookup(owner, name)
    if result is _NULL:
        raise AttributeError(name)
    return result


def mro_of(owner: type) -> tuple[type, ...]:
    """The classes that attributes of a class are looked up in, whatever its metaclass calls ``__mro__``."""
    mro: tuple[type, ...] = _mro_of(owner)
    return mro


def _lookup(owner: type, name: str) -> Any:
    for base in _mro_of(owner):
        result = _dict_of(base).get(name, _NULL)
        if result is not _NULL:
            return result
    return _NULL


_IS_METHOD = 1 << 17  # of a type: its instances bind as functions do


def method(owner: object, name: str) -> Callable[..., Any]:
    """The function that ``owner.name(...)`` calls with ``owner`` as first argument.  Raises TypeError where it calls
    anything else."""
    kind = type(owner)
    getter = _lookup(kind, "__getattribute__")
    custom = type(getter) is not types.WrapperDescriptorType or _lookup(kind, "__getattr__") is not _NULL
    if custom or issubclass(kind, _UNUSUAL):
        raise TypeError("its class looks attributes up in a way of its own")
    result = _lookup(kind, name)
    if result is _NULL or not type(result).__flags__ & _IS_METHOD:
        raise TypeError("not a method")
    bound = getattr(owner, name)  # which runs none of the user's code
    if getattr(bound, "__self__", None) is not owner or getattr(bound, "__func__", result) is not result:
        raise TypeError("the instance has another")
    return result


_UNUSUAL = (type, types.ModuleType, types.MethodType, super, *weakref.ProxyTypes)


def _are_referents(value: object, references: tuple[weakref.ref[Any], ...]) -> bool:
    if type(value) is not tuple or len(value) != len(references):
        return False
    return all(each is not None and each is reference() for each, reference in zip(value, references))


def _same_number(value: object, expected: object) -> bool:
    if type(value) is not type(expected):
        return False
    return struct.pack("<d", value) == struct.pack("<d", expected) if type(value) is float else value == expected


_READERS: dict[str, Callable[[Any, Any], Any]] = {
    "item": lambda owner, key: dict.get(owner, key, _NULL),
    "index": _index,
    "cell": _contents,
    "code": _code,
    **{read: _of_function(name) for read, name in _OF_FUNCTIONS.items()},
    "class": lambda owner, _: type(owner),
    "member": _member,
    "own": _instance_dict,
    "attribute": _attribute,
    "lookup": _lookup,
    "mro": lambda owner, _: mro_of(owner),
    "method": method,
}
_TESTS: dict[str, Callable[[Any, Any], Any]] = {
    "any": lambda value, _: True,
    "is": lambda value, expected: value is expected,
    "weak": lambda value, expected: value is not None and value is expected(),
    "referents": _are_referents,
    "type": lambda value, expected: type(value) is expected,
    "number": _same_number,
    "text": lambda value, expected: type(value) is type(expected) and value == expected,
    "length": lambda value, expected: type(value) in SIZED and len(value) == expected,
    "call": lambda value, expected: expected(value),
}
