"""Attributes of objects that outlive the call, which a trace sets: each call of the program sets them anew.

``self.scores = scores`` in a layer's call is such a one.  What the trace leaves there is a result of the program like
what it returns, and the object has what it had before until the program has run.
"""

from __future__ import annotations

import dataclasses
import types
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from hybridflow.autograph.runtime import undo_log
from hybridflow.autograph.runtime.branch import Branch
from hybridflow.autograph.runtime.mutable_locations import location_of
from hybridflow.autograph.runtime.phi import same_constant
from hybridflow.core import pytree
from hybridflow.core.context import now
from hybridflow.core.pytree import instance_dict
from hybridflow.guards.code_ownership import is_of_hybridflow
from hybridflow.guards.value_checks import ATOMS
from hybridflow.tracing.symbolic_tensor import SymbolicTensor

NOTHING = object()


@dataclasses.dataclass
class AttributeSlot:
    """An attribute that was set: ``own`` holds those of ``owner``, of which it is kept alive here only."""

    owner: object
    was_present: dict[str, Any]
    name: str
    before: object  # what it held, or NOTHING
    reason: Any  # why the trace could not answer another call, unless the program sets the attribute
    was_read: bool  # before it was set, so that the trace is for calls that find what it held
    branches: list[Branch | None] = dataclasses.field(default_factory=list)  # in which it is set; None: outside of all

    @property
    def is_flag(self) -> bool:
        """Whether it held what there is little of: after a few calls that find another one, all traces are made."""
        return self.before is NOTHING or self.before is None or type(self.before) is bool

    def can_be_set(self, value: object) -> bool:
        """Whether each call of the program may set the attribute to ``value``, what the trace left there.

        Where it was read before, calls that find what this one leaves have a trace of their own.  That ends if it is
        the same, or if a flag was read (``if not self.built: self.built = True``); but counts would go on.  Where some
        ways through the code do not set it, it depends on what was there."""
        return self.is_set(()) and (not self.was_read or self.is_flag or same_constant(self.before, value))

    def set_here(self) -> None:
        """It is set where the running code is."""
        side = undo_log.innermost_branch()
        if side not in self.branches:
            self.branches.append(side)

    def is_set(self, around: Iterable[Branch | None]) -> bool:
        """Whether it has been set for sure in one of these sides (None: outside of all): there, or in both sides of a
        condition there."""
        branches = list(self.branches)
        for side in branches:  # which grows
            if side is not None and side.sibling in branches and side.enclosing not in branches:
                branches.append(side.enclosing)
        return None in branches or any(side in branches for side in around)

    def reference(self) -> Callable[[], Any]:
        """What finds the object, and keeps it alive only if it must."""
        try:
            return weakref.ref(self.owner)
        except TypeError:
            return lambda: self.owner

    def restore(self) -> None:
        if self.before is NOTHING:
            self.was_present.pop(self.name, None)
        else:
            self.was_present[self.name] = self.before


class AttributeWrites:
    """Sets attributes to what a program leaves there: called with a tuple of its result and a value for each, it
    returns the result.  An object that is gone needs nothing."""

    __slots__ = ("slots",)

    def __init__(self, places: Sequence[tuple[Callable[[], Any], str]]) -> None:
        self.slots = places

    def __call__(self, outputs: tuple[Any, ...]) -> Any:
        result, *values = outputs
        trace = now().trace
        for (reference, name), value in zip(self.slots, values, strict=True):
            owner = reference()
            if owner is None:
                continue
            if trace is not None:
                trace.on_attribute_write(owner, name)
                undo_log.record_write(location_of(owner, name))
            setattr(owner, name, value)
        return result


def has_instance_attribute(owner: object, name: str) -> bool:
    """Whether setting an attribute stores the value among the object's own, and does nothing else."""
    if isinstance(owner, (type, types.ModuleType)) or type(instance_dict(owner)) is not dict:
        return False
    for base in type(owner).__mro__:
        if "__setattr__" in vars(base) and not (base is object or is_of_hybridflow(base)):
            return False
        if hasattr(type(vars(base).get(name)), "__set__"):
            return False
    return True


def can_be_result(value: object, is_outside: Callable[[Any], bool]) -> bool:
    """Whether a program can make the value at each call: tensors and plain values, and what the trace made of them."""
    if value is NOTHING or any(map(is_outside, pytree.changeable_parts([value]).values())):
        return False
    leaves, _ = pytree.flatten(value)
    return all(isinstance(leaf, SymbolicTensor) or type(leaf) in ATOMS for leaf in leaves)


def are_apart(values: Iterable[Any]) -> bool:
    """Whether no container that can be changed is in two of the values: a program makes each of them by itself."""
    parts = [part for value in values for part in pytree.changeable_parts([value])]
    return len(parts) == len(set(parts))
