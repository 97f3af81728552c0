"""Keys of Python values that are told apart by what they are: equal exactly when no code can tell the values apart.

Python's own equality will not do: 1 == True == 1.0, 0.0 == -0.0, Decimal("1.0") == Decimal("1.00"), and a NaN equals
nothing.  A key holds the type and the exact bits, of the parts too; values of types that may change have none.
"""

from __future__ import annotations

import enum
import struct
import sys
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from hybridflow.core.shape import is_tuple


class ValueKey:
    """Key of a Python value: its type and its bits."""

    __slots__ = ("_hash", "bits", "kind", "text")

    def __init__(self, value: object, bits: object, text: str | None = None) -> None:
        self.kind, self.bits = type(value), bits
        self.text = repr(value) if text is None else text
        self._hash = hash((self.kind, bits))

    @property
    def may_be_recognised(self) -> bool:
        """Whether the very object is the value at all times; instances of subclasses may get attributes."""
        known = self.kind in _VALUE_KEYS or _is_known(self.kind)
        return known or issubclass(self.kind, (enum.Enum, np.dtype, np.generic))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return type(other) is ValueKey and self.kind is other.kind and self.bits == other.bits

    def __str__(self) -> str:
        return "None" if self.text == "None" else f"{self.kind.__name__} {self.text}"


def value_key(value: object) -> ValueKey | None:
    """The key of a value that is told apart by type and bits; None for other values."""
    kind = type(value)
    make = _VALUE_KEYS.get(kind)
    if make is not None:
        return make(value)
    if isinstance(value, enum.Enum):
        # Members are told apart by name, but combinations of flags may have none, or an incomplete one.
        return ValueKey(value, (value._name_, value._value_ if isinstance(value, enum.Flag) else None))
    if isinstance(value, np.dtype):
        return ValueKey(value, (value.num, value))
    if isinstance(value, np.generic):
        return None if value.dtype.hasobject else ValueKey(value, (value.dtype, value.tobytes()))
    if _is_known(kind):
        return _reduced(value)
    for base, exact in _BASES.items():
        if isinstance(value, base):
            return _parts(value, (exact(value),)) if _adds_nothing(value, base) else None
    return None


def _instance_bits(value: object) -> ValueKey:
    return ValueKey(value, value)


def _parts(value: object, parts: Iterable[Any]) -> ValueKey | None:
    """The key of a value that is made of ``parts``; None if one of them has no key."""
    keys = tuple([_part(part) for part in parts])
    return None if None in keys else ValueKey(value, keys)


def _part(value: Any) -> ValueKey | None:
    """A tuple, which is no leaf where it is an argument, may be inside of a value."""
    return _parts(value, value) if is_tuple(value) else value_key(value)


_VALUE_KEYS: dict[type, Callable[[Any], ValueKey | None]] = {
    bool: _instance_bits,
    int: _instance_bits,
    str: _instance_bits,
    bytes: _instance_bits,
    type(None): _instance_bits,
    type(Ellipsis): _instance_bits,
    type(NotImplemented): lambda v: ValueKey(v, None),
    float: lambda v: ValueKey(v, struct.pack("<d", v)),
    complex: lambda v: ValueKey(v, struct.pack("<dd", v.real, v.imag)),
    range: lambda v: _parts(v, (v.start, v.stop, v.step)),
    slice: lambda v: _parts(v, (v.start, v.stop, v.step)),
    frozenset: lambda v: _parts(v, v),  # in the order in which code meets the elements
}

# Types of the standard library whose values never change, and are what ``__reduce_ex__`` says.  By name, because most
# programs need not import them.
_KNOWN = {
    "datetime": ("date", "datetime", "time", "timedelta", "timezone"),
    "decimal": ("Decimal",),
    "fractions": ("Fraction",),
    "operator": ("attrgetter", "itemgetter", "methodcaller"),
    "pathlib": ("PosixPath", "PurePosixPath", "PureWindowsPath", "WindowsPath"),
    "time": ("struct_time",),
    "zoneinfo": ("ZoneInfo",),
}
_MODULE_OF = {name: module for module, names in _KNOWN.items() for name in names}


def _is_known(kind: type) -> bool:
    module = sys.modules.get(_MODULE_OF.get(kind.__name__, ""))
    return module is not None and getattr(module, kind.__name__, None) is kind


def _reduced(value: Any) -> ValueKey | None:
    try:
        make, arguments, *state = value.__reduce_ex__(4)
    except Exception:  # a time zone that was read from a file cannot be pickled
        return None
    if make is not type(value) and getattr(make, "__self__", None) is not type(value):
        return None  # the function holds a part of the value
    flat = [tuple(part.items()) if type(part) is dict else part for part in (*arguments, *state)]
    return _parts(value, flat)


# How the value of a subclass is seen without the methods that it may override.
_BASES: dict[type, Callable[[Any], Any]] = {
    int: int.__pos__,
    float: float.__pos__,
    complex: complex.__pos__,
    str: str.__str__,
    bytes: lambda v: bytes.__getitem__(v, slice(None)),
    tuple: lambda v: tuple.__getitem__(v, slice(None)),
    frozenset: frozenset,
}


def _adds_nothing(value: object, base: type) -> bool:
    """Whether an instance of a subclass holds nothing but the value of ``base``."""
    added = type(value).__mro__[: type(value).__mro__.index(base)]
    slots = [cls.__dict__.get("__slots__") for cls in added]
    return not getattr(value, "__dict__", None) and not any(slots) and not hasattr(value, "n_fields")
