"""The functions of instances: what a method that is an hf.function keeps for each object that it is taken from.

They are no attributes of the instance, whose ``vars`` are the user's, and which may be unhashable or have slots.  The
table belongs to the method's own Function; it finds an instance by its id, and forgets it when the instance goes.

What a function holds may refer back to its instance: a result that is an object, the closure of a custom gradient.
Such an instance would never go while the table held the function.  Python's collector can free the two together only
if the function belongs to the instance, so it does, for as long as a collection of everything lasts.
"""

from __future__ import annotations

import contextlib
import gc
import sys
import weakref
from collections.abc import Callable
from typing import Any, Protocol

from hybridflow.runtime import uninterruptible

_FULL = 2 if sys.version_info < (3, 14) else 1  # collections of this generation on see all that a cycle consists of


class InstanceFunction(Protocol):
    """What a table holds."""

    @property
    def holds_objects(self) -> bool:
        """Whether it keeps objects of the user's alive."""


class Held:
    """The function of one instance.  ``strong`` is None while the instance itself holds it."""

    __slots__ = ("instance", "strong", "weak")

    def __init__(self, instance: weakref.ref[Any], function: InstanceFunction) -> None:
        self.instance, self.weak = instance, weakref.ref(function)
        self.strong: InstanceFunction | None = function

    def lend(self, attribute: str) -> bool:
        """Let the instance hold the function; says whether it does.  One without attributes cannot."""
        instance, function = self.instance(), self.strong
        if instance is None or function is None or not function.holds_objects or not type(instance).__dictoffset__:
            return False
        # What its class says about setting attributes is not asked: a frozen dataclass refuses.
        (type if isinstance(instance, type) else object).__setattr__(instance, attribute, function)
        self.strong = None
        return True

    def take_back(self, attribute: str) -> None:
        """Undo ``lend``, if both are still alive."""
        self.strong = self.weak()
        instance = self.instance()
        if instance is not None:
            with contextlib.suppress(AttributeError):  # a finalizer emptied the instance meanwhile
                (type if isinstance(instance, type) else object).__delattr__(instance, attribute)


class InstanceTable:
    """Functions by instance, held weakly."""

    __slots__ = ("__weakref__", "_attribute", "_held", "_lent")

    def __init__(self) -> None:
        self._held: dict[int, Held] = {}
        self._lent: list[Held] = []
        self._attribute = f"_hf_function_{id(self):x}"  # where instances hold their functions during a collection

    def get(self, instance: object) -> Any:
        """The function of ``instance``, or None."""
        held = self._held.get(id(instance))
        if held is None or held.instance() is not instance:
            return None
        return held.strong or held.weak()

    def add(self, instance: object, make: Callable[[weakref.ref[Any]], InstanceFunction]) -> Any:
        """The function of ``instance``, made of a weak reference to it unless another thread was faster.

        Raises TypeError for an object that cannot be weakly referenced.
        """
        table, number = self._held, id(instance)

        def forget(gone: weakref.ref[Any]) -> None:
            held = table.get(number)
            if held is not None and held.instance is gone:  # not that of a later object at the same address
                del table[number]

        reference = weakref.ref(instance, forget)
        fresh = Held(reference, make(reference))
        held = table.setdefault(number, fresh)
        if held.instance() is not instance:
            held = table[number] = fresh
        _tables.add(weakref.ref(self, _tables.discard))
        _listen()
        return held.strong or held.weak()

    def lend(self) -> None:
        """Let the instances hold the functions that may refer back to them."""
        self._lent += [held for held in list(self._held.values()) if held.lend(self._attribute)]

    def take_back(self) -> None:
        """Undo ``lend``."""
        while self._lent:
            self._lent.pop().take_back(self._attribute)


_tables: set[weakref.ref[InstanceTable]] = set()


@uninterruptible.once
def _listen() -> None:
    """Hear of collections from now on: once, however often there is a first table."""
    gc.callbacks.append(_around_collection)


def _around_collection(phase: str, info: dict[str, int]) -> None:
    if info["generation"] >= _FULL:
        for table in filter(None, [reference() for reference in list(_tables)]):
            if phase == "start":
                table.lend()
            else:
                table.take_back()
