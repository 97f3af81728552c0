"""How a value that was read from outside is recognised when it is read again: by its bits, its type or its identity.

``check_of`` chooses.  Plain numbers and texts are compared by type and bits, so that an equal one does not matter;
containers by their type alone, since what is read of them is checked by itself; everything else by identity, through a
weak reference where there can be one, so that a cached program keeps nothing alive that the user has let go.
"""

from __future__ import annotations

import array
import collections
import datetime
import decimal
import enum
import fractions
import operator
import struct
import types
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from hybridflow.compiler.ir.extents import Dim
from hybridflow.core.shape import is_tuple
from hybridflow.tracing.symbolic_float import SymbolicFloat

# Containers of the standard library, whose items are what counts.
CONTAINERS = (
    list,
    tuple,
    dict,
    set,
    frozenset,
    collections.deque,
    collections.OrderedDict,
    collections.defaultdict,
    collections.Counter,
    types.MappingProxyType,
    *map(type, ({}.keys(), {}.values(), {}.items())),
    bytearray,
    array.array,
    memoryview,
)
_CONTAINERS = frozenset(CONTAINERS)
MAPPINGS = (dict, collections.OrderedDict, collections.defaultdict, collections.Counter)
# Values that cannot change, and are told apart by type and equality.
_EQUAL = frozenset(
    (
        range,
        decimal.Decimal,
        fractions.Fraction,
        datetime.date,
        datetime.datetime,
        datetime.time,
        datetime.timedelta,
        datetime.timezone,
    )
)
_NAMES = (
    types.ModuleType,
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
    types.ClassMethodDescriptorType,
    types.CodeType,
    type,
    enum.Enum,
    np.ufunc,
)
# Values that hold nothing that could be read of them, besides themselves.
ATOMS = frozenset(
    (
        type(None),
        bool,
        int,
        float,
        complex,
        str,
        bytes,
        type(Ellipsis),
        type(NotImplemented),
        slice,
        types.CodeType,
        Dim,
        SymbolicFloat,
        *_EQUAL,
    )
)


def check_of(value: object) -> tuple[str, Any]:
    """The check of a ``Step``, and what it expects, by which a value is recognised."""
    kind = type(value)
    if kind is int or kind is float:
        return "number", value
    if kind is str or kind is bytes:
        return "text", value
    if kind in (bool, type(None)) or isinstance(value, _NAMES):
        return "is", value
    if kind in CONTAINERS or kind is types.MethodType:
        return "type", kind
    if kind in _EQUAL:
        return "call", Equal(value)
    if kind is complex or kind is slice or isinstance(value, (np.generic, np.dtype)):
        return "call", SameBits(value)
    try:
        return "weak", weakref.ref(value)
    except TypeError:
        return ("type", kind) if isinstance(value, tuple) else ("is", value)


class Equal:
    """Whether a value has the type of another one and is written alike, which says more than ``==`` (1.0 and 1.00).

    ``is_settled`` (of other predicates, too): whether the answer is always the same for the very same value."""

    def __init__(self, value: object) -> None:
        self._kind, self._text = type(value), repr(value)
        self.is_settled = type(value) is not fractions.Fraction  # whose fields can be set

    def __call__(self, value: object) -> bool:
        return type(value) is self._kind and repr(value) == self._text


class SameBits:
    """Whether a value has the type and the bits of another one."""

    def __init__(self, value: object) -> None:
        self._bits = bits_of(value)
        held = value.dtype if isinstance(value, np.generic) else value
        self.is_settled = not isinstance(held, np.dtype) or (held.isbuiltin > 0 and not held.hasobject)

    def __call__(self, value: object) -> bool:
        return bits_of(value) == self._bits


def bits_of(value: Any) -> Any:
    """Something hashable that is equal for values of one type with the same bits; None for values that have no bits."""
    kind = type(value)
    if kind is float:
        return kind, struct.pack("<d", value)
    if kind is complex:
        return kind, struct.pack("<dd", value.real, value.imag)
    if kind is slice:
        return kind, bits_of(value.start), bits_of(value.stop), bits_of(value.step)
    if isinstance(value, np.generic):
        return kind, value.dtype.str, value.tobytes()
    if isinstance(value, np.dtype):
        return np.dtype, value.str, value.num
    if kind in (int, bool, str, bytes, type(None)):
        return kind, value
    if kind in _EQUAL:
        return kind, repr(value)
    return kind, id(value)


_COPIED = 1 << 20  # bytes of an array up to which a copy is kept to compare with; a digest of larger ones


class ArrayContents:
    """Whether an array has the type, the shape and the elements that it had."""

    def __init__(self, array: np.ndarray) -> None:
        self._type = type(array), array.dtype, array.shape
        self._elements = self._look(array)

    def __call__(self, array: Any) -> bool:
        if (type(array), getattr(array, "dtype", None), getattr(array, "shape", None)) != self._type:
            return False
        if isinstance(self._elements, SameItems):
            return self._elements(array.ravel().tolist())
        return bool(self._look(array) == self._elements)

    @staticmethod
    def _look(array: np.ndarray) -> Any:
        if array.dtype.hasobject:
            return SameItems(array.ravel().tolist())
        if array.nbytes <= _COPIED:
            return array.tobytes()
        import hashlib  # few programs need it

        return hashlib.blake2b(np.ascontiguousarray(array).data).digest()


class ArrayType:
    """Whether an array has the dtype and the shape that it had."""

    def __init__(self, array: np.ndarray) -> None:
        self._type = type(array), array.dtype, array.shape

    def __call__(self, array: object) -> bool:
        return (type(array), getattr(array, "dtype", None), getattr(array, "shape", None)) == self._type


class SameItems:
    """Whether a container holds the very items that it held, in their order: for long ones, and those without order."""

    def __init__(self, container: object) -> None:
        self._items = items_of(container)
        self.is_settled = type(container) is tuple

    def __call__(self, container: object) -> bool:
        return same_items(items_of(container), self._items)


def container_of(kind: type) -> type | None:
    """The container of the standard library that a class is, or extends; None for other classes."""
    return next((base for base in kind.__mro__ if base in _CONTAINERS), None)


def keys_of(container: Any) -> list[Any]:
    """What iterating over a container gives, whatever methods its class has of its own."""
    kind = type(container)
    base: Any = container_of(kind)
    return list(container if base is None or base is kind else base.__iter__(container))


def items_of(container: object) -> list[Any]:
    """What a container holds, in its order; a mapping's keys and values."""
    kind = type(container)
    if not issubclass(kind, (dict, types.MappingProxyType)):
        return keys_of(container)
    base: Any = container_of(kind)
    return [part for pair in base.items(container) for part in pair]


def length_of(container: Any) -> int:
    """How many items a container holds, whatever its class says."""
    base: Any = container_of(type(container))
    return len(container) if base is None or base is type(container) else base.__len__(container)


def same_items(a: list[Any], b: list[Any]) -> bool:
    """Whether two lists hold the same items: the very same objects, or plain values of the same bits."""
    if len(a) != len(b):
        return False
    return all(map(operator.is_, a, b)) or all(map(_same, a, b))  # mostly they are the very same


def _same(a: Any, b: Any) -> bool:
    if a is b:
        return True
    if is_tuple(a) and is_tuple(b):
        return same_items(list(a), list(b))
    return type(a) in ATOMS and bits_of(a) == bits_of(b)


class SameResult:
    """Whether calling a function again gives what it gave: for what is read in ways that no guard can repeat."""

    def __init__(self, function: Callable[..., Any], value: object) -> None:
        self._function = function
        self._check, self._expected = check_of(value)

    def __call__(self, owner: object) -> bool:
        return passes_check(self._function(owner), self._check, self._expected)


def passes_check(value: object, check: str, expected: Any) -> bool:
    """Whether a value passes a check of ``check_of``."""
    if check == "is":
        return value is expected
    if check in ("number", "text"):
        return bits_of(value) == bits_of(expected)
    if check == "type":
        return type(value) is expected
    if check == "weak":
        return value is not None and expected() is value
    return bool(expected(value))
