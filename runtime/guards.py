"""Guards: what must still be as it was for a native call, besides its arguments.

Each is compared by identity, in native code (``entry_match``) or in Python (``holds``).
"""

from __future__ import annotations

from dataclasses import dataclass
from types import CellType
from typing import Any

from hybridflow.runtime.records import ABSENT, ATTRIBUTE, CELL, DICT_ITEM, LIST


@dataclass(frozen=True)
class CellGuard:
    """A closure cell that must still hold this object."""

    cell: CellType
    expected: Any


@dataclass(frozen=True)
class ItemGuard:
    """A dict, such as a module's globals, that must still hold this object."""

    mapping: dict[str, Any]
    key: str
    expected: Any


@dataclass(frozen=True)
class AttributeGuard:
    """An attribute that must still be this object."""

    owner: Any
    name: str
    expected: Any


@dataclass(frozen=True)
class ListGuard:
    """A list that must still hold these objects, and no more."""

    owner: list[Any]
    expected: tuple[Any, ...]


@dataclass(frozen=True)
class AbsentGuard:
    """A dict, such as an instance's, that must still lack this key."""

    mapping: dict[str, Any]
    key: str


Guard = CellGuard | ItemGuard | AttributeGuard | ListGuard | AbsentGuard


def holds(guard: Guard) -> bool:
    """Whether all is as it was."""
    try:
        if isinstance(guard, ListGuard):
            return tuple(map(id, guard.owner)) == tuple(map(id, guard.expected))
        if isinstance(guard, AbsentGuard):
            return guard.key not in guard.mapping
        if isinstance(guard, CellGuard):
            return guard.cell.cell_contents is guard.expected
        if isinstance(guard, ItemGuard):
            return guard.mapping[guard.key] is guard.expected
        return getattr(guard.owner, guard.name) is guard.expected
    except Exception:  # gone, or a property that fails: not what it was
        return False


def guard_item(guard: Guard) -> tuple[int, ...]:
    """The guard as an item of a record."""
    if isinstance(guard, ListGuard):
        return LIST.pack(*map(id, guard.expected), owner=id(guard.owner), count=len(guard.expected))
    if isinstance(guard, AbsentGuard):
        return ABSENT.pack(owner=id(guard.mapping), name=id(guard.key))
    if isinstance(guard, CellGuard):
        return CELL.pack(owner=id(guard.cell), expected=id(guard.expected))
    if isinstance(guard, ItemGuard):
        return DICT_ITEM.pack(owner=id(guard.mapping), name=id(guard.key), expected=id(guard.expected))
    return ATTRIBUTE.pack(owner=id(guard.owner), name=id(guard.name), expected=id(guard.expected))
    

@dataclass(frozen=True)
class Step:
    read: str
    owner: int
    operand: Any
    check: str
    expected: Any


_NULL = object()


def _lookup(owner: Any, name: str) -> Any:
    for base in owner.__mro__:
        if name in base.__dict__:
            return base.__dict__[name]
    return _NULL


def _read(step: Step, slots: list[Any]) -> Any:
    import types

    kind = step.read
    owner = slots[step.owner] if step.owner >= 0 else None
    if kind == "root":
        return step.operand
    if kind == "weak":
        v = step.operand()
        return _NULL if v is None else v
    if kind == "slot":
        return owner
    if kind == "item":
        return dict.get(owner, step.operand, _NULL)
    if kind == "attribute":
        return getattr(owner, step.operand, _NULL)
    if kind == "method":
        if step.operand in getattr(owner, "__dict__", ()):
            return _NULL
        v = _lookup(type(owner), step.operand)
        return v if isinstance(v, types.FunctionType) else _NULL
    if kind == "class":
        return type(owner)
    if kind == "lookup":
        return _lookup(owner, step.operand)
    if kind == "own":
        return owner.__dict__
    if kind == "index":
        return owner[step.operand] if step.operand < len(owner) else _NULL
    if kind == "cell":
        try:
            return owner.cell_contents
        except ValueError:
            return _NULL
    raise AssertionError(kind)


def _passes(step: Step, value: Any, slots: list[Any]) -> bool:
    import struct

    c, e = step.check, step.expected
    if c == "absent":
        return value is _NULL
    if value is _NULL:
        return False
    if c == "any":
        return True
    if c == "is":
        return value is e
    if c == "weak":
        return e() is value
    if c == "same":
        return value is slots[e]
    if c == "type":
        return type(value) is e
    if c == "number":
        if type(value) is not type(e):
            return False
        return value == e if type(e) is int else struct.pack("<d", value) == struct.pack("<d", e)
    if c == "text":
        return type(value) is type(e) and value == e
    if c == "length":
        return len(value) == e
    if c == "call":
        return bool(e(value))
    raise AssertionError(c)


def first_failing(steps: Any) -> int | None:
    slots: list[Any] = []
    for k, step in enumerate(steps):
        try:
            value = _read(step, slots)
            slots.append(value)
            if not _passes(step, value, slots):
                return k
        except Exception:
            return k
    return None


def holds_all(steps: Any) -> bool:
    return first_failing(steps) is None


def failing(steps: Any) -> Any:
    slots: list[Any] = []
    for k, step in enumerate(steps):
        value = _NULL
        try:
            value = _read(step, slots)
            slots.append(value)
            if not _passes(step, value, slots):
                return k, value
        except Exception:
            return k, value
    return None, None
