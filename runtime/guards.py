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
