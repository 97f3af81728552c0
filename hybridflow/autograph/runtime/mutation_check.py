"""What a branch or an iteration may change unseen, or cannot take back: it is remembered how that was, and compared.

Functions in C change what they are given without asking: ``a.fill(1)``, ``np.add(a, 1, out=a)``.  What was reachable
from the names of a function when a side of it began, and is another when it ends, would be changed on both sides.
Iterators cannot be looked at without taking from them, so those are known by who they are.
"""

from __future__ import annotations

import array
import collections
import functools
import types
from collections.abc import Iterable
from typing import Any

import numpy as np

from hybridflow.autograph.runtime.mutable_locations import CONTAINERS
from hybridflow.core.pytree import instance_dict
from hybridflow.core.tensor import Tensor
from hybridflow.core.variable import Variable
from hybridflow.tracing.symbolic_number import SymbolicNumber
from hybridflow.tracing.symbolic_tensor import SymbolicTensor

_MOST_OBJECTS = 1000
_MOST_BYTES = 1 << 16  # of an array that is compared whole; of a larger one, so many elements are
_LEAVES = (Tensor, Variable, type, types.ModuleType, types.CodeType, np.generic, str, bytes, int, float)
_PLAIN = frozenset((int, float, bool, str, bytes, SymbolicTensor, SymbolicNumber, Tensor, Variable))
BUFFERS = (np.ndarray, bytearray, array.array, memoryview)
_COLLECTIONS = (list, tuple, dict, set, frozenset, collections.deque)


def reachable_objects(values: Iterable[Any]) -> list[Any]:
    """The objects that can be come to from ``values`` and may change, nearest first."""
    reachable: dict[int, Any] = {}
    waiting = collections.deque(values)
    while waiting and len(reachable) < _MOST_OBJECTS:
        value = waiting.popleft()
        if value is None or type(value) in _PLAIN or id(value) in reachable or isinstance(value, _LEAVES):
            continue
        reachable[id(value)] = value
        waiting.extend(_contents_of(value))
    return list(reachable.values())


def refers_to(values: Iterable[Any], wanted: Iterable[Any]) -> bool:
    """Whether ``values`` are, or hold, one of the ``wanted`` objects."""
    ids = set(map(id, wanted))
    values = list(values)
    return any(id(value) in ids for value in values) or any(
        id(value) in ids or any(id(part) in ids for part in _contents_of(value)) for value in reachable_objects(values)
    )


def _contents_of(value: object) -> list[Any]:
    if isinstance(value, dict):
        held = list(dict.values(value))
    elif isinstance(value, _COLLECTIONS):
        held = list(value)
    elif isinstance(value, types.FunctionType):
        return [cell.cell_contents for cell in value.__closure__ or () if not _is_empty(cell)]
    elif isinstance(value, types.MethodType):
        return [value.__self__]
    elif isinstance(value, functools.partial):
        return [value.func, *value.args, *value.keywords.values()]
    else:
        held = []
    attributes = instance_dict(value)
    return [*held, *attributes.values()] if type(attributes) is dict else held


def _is_empty(cell: types.CellType) -> bool:
    try:
        return cell.cell_contents is None
    except ValueError:
        return True


def is_iterator(value: object) -> bool:
    """Whether to take an item from a value changes it, unseen."""
    step = getattr(type(value), "__next__", None)
    return step is not None and not isinstance(step, types.FunctionType)


def state_of(value: object) -> Any:
    """What there is to compare; None for what does not change unseen, or is a place."""
    if isinstance(value, np.ndarray):
        if value.nbytes <= _MOST_BYTES:
            return value.shape, value.strides, value.tobytes()
        return value.shape, value.strides, value.flat[:: max(value.size * value.itemsize // _MOST_BYTES, 1)].tobytes()
    if isinstance(value, BUFFERS):
        return value.tobytes() if not isinstance(value, bytearray) else bytes(value)
    if type(value) in CONTAINERS:
        return None
    if isinstance(value, dict):
        return [*dict.keys(value), *dict.values(value)]
    return list(value) if isinstance(value, (list, set, collections.deque)) else None


def is_unchanged(before: object, after: Any) -> bool:
    if isinstance(before, list):
        return len(before) == len(after) and all(a is b for a, b in zip(before, after))
    return bool(before == after)


class MutationSnapshot:
    """What was reachable when a side began."""

    __slots__ = ("iterators", "states")

    def __init__(self, values: Iterable[Any]) -> None:
        self.iterators: dict[int, Any] = {}
        self.states: list[tuple[Any, Any]] = []
        for value in reachable_objects(values):
            self.add(value)

    def add(self, value: object) -> None:
        if is_iterator(value):
            self.iterators[id(value)] = value
        elif (state := state_of(value)) is not None:
            self.states.append((value, state))

    def first_change(self) -> Any:
        """The first that is not what it was; None if there is none."""
        return next((value for value, before in self.states if not is_unchanged(before, state_of(value))), None)
