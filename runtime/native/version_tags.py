"""Version tags: the words in which CPython counts the changes of dicts and of classes.

A dict has a tag of 64 bits that no other dict has, or had (PEP 509); each change gives it another one.  A class has a
tag of 32 bits, 0 while there is none; a change of it, or of a base, takes the tag away, and none is given twice.  As
long as an instance has the same class, of the same tag, and the same dict, of the same tag, whatever was read of these
is still there.

CPython says nothing of how long it will have them, so ``tracks_changes`` tries: changes of every kind, also those by
code that the interpreter has specialised.  Where one of them is not seen, nothing relies on tags.

From 3.13 on, attributes may lie in the instance while there is a dict that shares them (a *split* dict); setting such
an attribute leaves the tag of the dict as it is.  A *combined* dict, which native code makes of it, holds them itself.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from hybridflow.runtime.native import object_layout

DICT_USED, DICT_VERSION, DICT_VALUES = 16, 24, 40  # the values of a split dict are elsewhere: null for a combined one
TYPE_VERSION = 384
# Where an instance has its dict: before its header, if its class has this flag, or at an offset that the class knows.
HAS_MANAGED_DICT, MANAGED_DICT, TYPE_DICT_OFFSET = 1 << 4, -24, 288
TAGS_OF_SPLIT_DICTS = sys.version_info < (3, 13)  # whether they count, too


@functools.cache
def tracks_changes() -> bool:
    """Whether tags tell of every change."""
    return object_layout.problem() is None and all(_seen())


def _seen() -> Iterator[bool]:
    """Of fields and changes of every kind: whether tags lie where they should, and tell of it."""
    for kind in (_Derived, int, type(np.float32(0)), ValueError, np.ndarray):
        python_class: Any = kind
        managed = bool(python_class.__flags__ & HAS_MANAGED_DICT)
        yield managed or _word(id(kind) + TYPE_DICT_OFFSET) == python_class.__dictoffset__ % (1 << 64)
    owner: object = _Derived()
    held = vars(owner)
    yield _word(id(owner) + MANAGED_DICT) == id(held) and _word(id(held) + DICT_USED) == 2
    if not TAGS_OF_SPLIT_DICTS:
        held.update([held.popitem()])
    yield TAGS_OF_SPLIT_DICTS or _word(id(held) + DICT_VALUES) == 0
    tags = {_word(id(held) + DICT_VERSION)}
    assigned: list[Callable[[], Any]] = [functools.partial(_assign, owner)] * 40
    for change in (*assigned, *_changes(owner, held)):
        change()
        tag = _word(id(held) + DICT_VERSION)
        yield tag not in tags and _word(id(owner) + MANAGED_DICT) == id(held)
        tags.add(tag)
    for fresh in ({}, {"a": 1}, dict(held), held.copy(), vars(_Derived())):
        yield _word(id(fresh) + DICT_VERSION) not in tags
    yield from _classes_seen()


class _Base:
    def __init__(self) -> None:
        self.a = self.b = 0


class _Derived(_Base):
    pass


class _Other:
    pass


def _assign(owner: Any) -> None:
    owner.a += 1  # the interpreter specialises this assignment


def _changes(owner: object, held: dict[str, Any]) -> tuple[Callable[[], Any], ...]:
    return (
        lambda: object.__setattr__(owner, "a", "other"),
        lambda: setattr(owner, "a", 101),
        lambda: setattr(owner, "c", 102),
        lambda: delattr(owner, "c"),
        lambda: held.__setitem__("a", 103),
        lambda: held.update(a=104, d=105),
        lambda: held.pop("d"),
        lambda: held.setdefault("e", 106),
        held.popitem,
        lambda: held.__ior__({"a": 107}),
        held.clear,
        lambda: held.update({"a": 108}),
        lambda: held.__delitem__("a"),
    )


def _classes_seen() -> Iterator[bool]:
    base: Any = type("Base", (), {})
    derived: Any = type("Derived", (base,), {})
    changes: tuple[Callable[[], Any], ...] = (
        lambda: setattr(base, "x", 1),
        lambda: setattr(base, "x", 2),
        lambda: setattr(derived, "x", 3),
        lambda: delattr(derived, "x"),
        lambda: setattr(base, "__getattribute__", lambda *_: None),
        lambda: delattr(base, "__getattribute__"),
        lambda: setattr(derived, "__bases__", (_Other,)),
    )
    tags: set[int] = set()
    for change in changes:
        getattr(derived, "x", None)  # what is looked up has a tag
        tag = _int(id(derived) + TYPE_VERSION)
        yield tag != 0 and tag not in tags
        tags.add(tag)
        change()
        yield _int(id(derived) + TYPE_VERSION) == 0


def _word(address: int) -> int:
    return ctypes.c_uint64.from_address(address).value


def _int(address: int) -> int:
    return ctypes.c_uint32.from_address(address).value
