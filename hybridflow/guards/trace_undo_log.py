"""The undo log of a trace: what Python objects that outlive the call held before the trace changed them.

A trace runs the user's code, and that changes lists, dicts and attributes then and there.  Where it turns out that the
code has to run once more, with values, it begins with what there was.
"""

from __future__ import annotations

import collections
import functools
import inspect
import types
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from hybridflow.core.pytree import instance_dict
from hybridflow.guards.code_ownership import is_users_class

NOTHING = object()


def instance_attribute(owner: object, name: str) -> Any:
    """An attribute that a class, a module or a slot of an instance holds; or NOTHING."""
    if isinstance(owner, (type, types.ModuleType)):
        return vars(owner).get(name, NOTHING)
    return getattr(owner, name, NOTHING)


def _is_slot(owner: object, name: str) -> bool:
    return isinstance(inspect.getattr_static(type(owner), name, None), types.MemberDescriptorType)


class Log:
    """What was changed, in order.  It ``is_complete`` as long as all of it can be undone."""

    __slots__ = ("_arrays", "_known", "_restores", "is_complete")

    def __init__(self) -> None:
        self._restores: list[Callable[[], None]] = []
        self._arrays: list[tuple[np.ndarray, np.ndarray]] = []  # of these, what they held
        self._known: dict[int, Any] = {}  # the objects of which it is noted what they held
        self.is_complete = True

    def __bool__(self) -> bool:
        return bool(self._restores)

    def add(self, restore: Callable[[], None]) -> None:
        """Something is about to be changed that ``restore`` gives back what it holds."""
        self._restores.append(restore)

    def note(self, value: Any) -> bool:
        """Before ``value`` is changed: whether it can be given back what it holds."""
        if id(value) not in self._known:
            if isinstance(value, np.ndarray):
                elements = value.copy()
                self._arrays.append((value, elements))
                restore: Any = functools.partial(_restore_elements, value, elements)
            else:
                restore = _restoring(value)
            if restore is None:
                return False
            self._known[id(value)] = value
            self.add(restore)
        return True

    def note_attribute(self, owner: object, name: str) -> Callable[[], None] | None:
        """Before an attribute of ``owner`` is set or deleted that is not among the own ones of an instance: what gives
        it back what it holds, if that is kept there."""
        is_kept = isinstance(owner, (type, types.ModuleType)) or _is_slot(owner, name)
        if not is_kept:
            self.is_complete &= is_users_class(type(owner))  # code of the user's sets it, and is recorded
            return None
        before = instance_attribute(owner, name)
        self._known.setdefault(id(owner), owner)

        def restore() -> None:
            if before is not NOTHING:
                setattr(owner, name, before)
            elif instance_attribute(owner, name) is not NOTHING:
                delattr(owner, name)

        self.add(restore)
        return restore

    def find_changed_arrays(self) -> list[np.ndarray]:
        """The arrays among what was noted that hold something else now."""
        return [array for array, elements in self._arrays if array.tobytes() != elements.tobytes()]

    def undo(self) -> None:
        """Give all that was changed what it held before."""
        while self._restores:
            self._restores.pop()()
        self._known.clear()
        self._arrays.clear()


def _restore_elements(array: np.ndarray, elements: np.ndarray) -> None:
    if array.tobytes() != elements.tobytes():  # or nobody may write to it any more
        np.copyto(array, elements)


def _restoring(value: object) -> Callable[[], None] | None:
    """What gives an object back what it holds now; None where nothing is known that could."""
    for base, update in _UPDATES:
        if isinstance(value, base):
            return functools.partial(_refill, base, update, value, list(_items(base, value)))
    attributes = instance_dict(value)
    if type(attributes) is dict and is_users_class(type(value)):
        return functools.partial(_refill, dict, dict.update, attributes, list(attributes.items()))
    return None


def _items(base: Any, value: Any) -> Iterable[Any]:
    result: Iterable[Any] = base.items(value) if issubclass(base, dict) else base.__iter__(value)
    return result


def _refill(base: Any, update: Callable[..., None], value: object, held: list[Any]) -> None:
    base.clear(value)
    update(value, held)


# Containers that can be changed, and what fills them; whatever methods a class of the user's has in their place.
_UPDATES: tuple[tuple[Any, Callable[..., None]], ...] = (
    (list, list.extend),
    (collections.OrderedDict, collections.OrderedDict.update),
    (dict, dict.update),
    (set, set.update),
    (collections.deque, collections.deque.extend),
    (bytearray, bytearray.extend),
)
