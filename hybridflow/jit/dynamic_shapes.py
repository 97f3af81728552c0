"""Signatures that are relaxed by themselves, so that numbers and extents which vary do not trace forever.

Calls whose arguments differ in nothing but extents and the values of Python's floats and ints are one *family*.  The
first of them is traced for what it is.  Where another one differs, what differs is open in the next trace: an extent is
a symbol, a float an input of the program, an int a symbol too.  Extents of 0 and 1 stay known, as in a TensorSpec, and
so do ints below 2.

Where the code needs the number itself (``range(n)``, ``if lr > 0.1``) the trace is given up, and that place stays
known from then on: each value is a trace of its own, and what is said of those traces says why.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hybridflow.compiler.ir.extents import LEAST
from hybridflow.errors import short_location
from hybridflow.jit.cache_key import Key, LeafKey, NumberKey, TensorKey
from hybridflow.jit.value_key import ValueKey
from hybridflow.runtime import fork_safe_locks

if TYPE_CHECKING:
    from hybridflow.core.pytree import Structure


LeafPosition = tuple[int, int]  # of a leaf, and its axis; the axis of a number is 0
_MOST = 64  # families of one function that are remembered


class _Family:
    """``known`` are the leaves of its keys as they were where they did not vary yet; ``open`` the places that vary, and
    ``pinned`` those among them that stay known, with the reason."""

    __slots__ = ("is_pinned", "known", "open", "pinned")

    def __init__(self, leaves: tuple[LeafKey, ...]) -> None:
        self.known = list(leaves)
        self.open: set[LeafPosition] = set()
        self.pinned: dict[LeafPosition, str] = {}
        self.is_pinned = False  # everywhere: its traces are not kept

    def observe(self, leaves: tuple[LeafKey, ...]) -> None:
        for k, (old, new) in enumerate(zip(self.known, leaves)):
            if isinstance(old, TensorKey) and isinstance(new, TensorKey):
                pairs = list(enumerate(zip(old.shape, new.shape)))
                self.open.update((k, axis) for axis, (a, b) in pairs if a != b and _can_vary(a) and _can_vary(b))
                shape = tuple(a if _can_vary(a) else b for _, (a, b) in pairs)
                self.known[k] = old if shape == old.shape else TensorKey(shape, old.dtype, is_weak=old.is_weak)
            elif old != new and isinstance(old, ValueKey) and isinstance(new, ValueKey):
                if _is_any(old) and _is_any(new):
                    self.open.add((k, 0))
                elif _is_any(new):
                    self.known[k] = new

    def generalize(self, leaves: tuple[LeafKey, ...]) -> tuple[LeafKey, ...]:
        """The leaves of a key with those places open that vary and are not pinned."""
        if self.is_pinned:
            return leaves
        generalized = list(leaves)
        for k, axis in self.open - self.pinned.keys():
            leaf = generalized[k]
            if isinstance(leaf, TensorKey):
                if _can_vary(leaf.shape[axis]):
                    shape = (*leaf.shape[:axis], None, *leaf.shape[axis + 1 :])
                    generalized[k] = TensorKey(shape, leaf.dtype, self._declared(k, leaf), leaf.is_weak)
            elif isinstance(leaf, ValueKey) and _is_any(leaf):
                generalized[k] = NumberKey(leaf.kind)
        return tuple(generalized)

    def _declared(self, k: int, leaf: TensorKey) -> tuple[Any, ...]:
        """The shape that a leaf has where no extent is 0 or 1."""
        is_open = self.open - self.pinned.keys()
        return tuple(None if (k, axis) in is_open else extent for axis, extent in enumerate(leaf.shape))


def _can_vary(extent: object) -> bool:
    return isinstance(extent, int) and extent >= LEAST


def _is_any(key: ValueKey) -> bool:
    """Whether a number is one of those that a NumberKey stands for."""
    return key.kind is float or (key.kind is int and NumberKey(int).accepts(key.bits))


def _kind_of(leaf: LeafKey) -> Any:
    """What leaves of one family have in common."""
    if isinstance(leaf, TensorKey):
        return leaf.dtype, len(leaf.shape), leaf.is_weak
    return leaf.kind if isinstance(leaf, ValueKey) and leaf.kind in (int, float) else leaf


class DynamicShapes:
    """The families of one function."""

    __slots__ = ("_families", "_lock")

    def __init__(self) -> None:
        self._families: OrderedDict[Any, _Family] = OrderedDict()
        self._lock = fork_safe_locks.make()

    def _name(self, key: Key) -> tuple[Structure, tuple[Any, ...]]:
        return key.structure, tuple(map(_kind_of, key.leaves))

    def generalize(self, key: Key) -> Key | None:
        """The key under which a call with this one may have been traced; None where nothing is open."""
        family = self._families.get(self._name(key))
        return None if family is None else _with(key, family)

    def observe(self, key: Key) -> Key | None:
        """As ``generalize``, for a call that no known trace serves, which is learned from."""
        name = self._name(key)
        with self._lock:
            family = self._families.get(name)
            if family is None:
                family = self._families[name] = _Family(key.leaves)
            self._families.move_to_end(name)
            while len(self._families) > _MOST:
                self._families.popitem(last=False)
            family.observe(key.leaves)
            return _with(key, family)

    def pin(self, key: Key, places: Mapping[LeafPosition, str | None]) -> None:
        """Keep places known, because the code needs their numbers at these lines."""
        family = self._families.get(self._name(key))
        if family is not None:
            for place, where in places.items():
                line = f" ({short_location(where)})" if where else ""
                family.pinned[place] = f"the code needs its value{line}"

    def pin_all(self, key: Key, reason: str) -> bool:
        """Keep all places known that vary so far.  Returns whether there are such."""
        family = self._families.get(self._name(key))
        places = set() if family is None else family.open - family.pinned.keys()
        for place in places:
            family.pinned[place] = reason  # type: ignore[union-attr]
        return bool(places)

    def stop(self, key: Key) -> None:
        """Keep everything known: traces of this family are not kept."""
        family = self._families.get(self._name(key))
        if family is not None:
            family.is_pinned = True

    def reason(self, key: Key, position: int) -> str | None:
        """Why a leaf that varies is not open."""
        family = self._families.get(self._name(key))
        pinned = {} if family is None else family.pinned
        return next((reason for (k, _), reason in sorted(pinned.items()) if k == position), None)

    def clear(self) -> None:
        with self._lock:
            self._families.clear()


def _with(key: Key, family: _Family) -> Key | None:
    leaves = family.generalize(key.leaves)
    return None if leaves == key.leaves else Key(key.structure, leaves)
