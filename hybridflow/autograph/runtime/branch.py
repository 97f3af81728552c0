"""A side: one of the ways on from a condition that is a tensor, and a journal of what it changed."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from types import FrameType
from typing import Any

from hybridflow.autograph.runtime import object_trees
from hybridflow.autograph.runtime.mutable_locations import UNBOUND, Location, location_of
from hybridflow.autograph.runtime.mutation_check import MutationSnapshot
from hybridflow.autograph.runtime.phi import is_traced_in
from hybridflow.core import pytree
from hybridflow.core.context_manager import block
from hybridflow.core.pytree import instance_dict
from hybridflow.errors import ConcretizationError, TraceError
from hybridflow.tracing.subtrace import SubTrace
from hybridflow.tracing.symbolic_tensor import SymbolicTensor


class Branch:
    """A region that is traced, with a journal of the places that were changed; without a region, the journal alone.

    It is inside of the side ``around``, if any; its ``twin`` is the other side of the same condition."""

    __slots__ = (
        "_context",
        "_holders",
        "condition",
        "created_here",
        "enclosing",
        "final_values",
        "known",
        "mutation_snapshot",
        "region",
        "sibling",
        "undo_log",
    )

    def __init__(self, region: SubTrace | None, around: Branch | None = None) -> None:
        self.region, self.enclosing = region, around
        self.sibling: Branch | None = None
        self.condition: tuple[Any, bool] | None = None  # the node of what decides, and whether it is true here
        self.known: dict[int, frozenset[int]] = {}  # which options of choices are left, see ``narrowing``
        self.undo_log: dict[Any, tuple[Location, Any]] = {}  # the place, and what it held before
        self.final_values: dict[Any, Any] = {}
        self.created_here: dict[int, Any] = {}  # objects that are made in it, by id
        self._holders: frozenset[int] = frozenset()  # the ids of what was touched, once the side was left
        self.mutation_snapshot: MutationSnapshot | None = None
        self._context: Any = None

    def under(self, pred: object, truth: bool) -> Branch:
        """The side, in which a condition holds or not."""
        if isinstance(pred, SymbolicTensor):
            self.condition = pred._node, truth
        return self

    def snapshot(self, frame: FrameType) -> None:
        """Before the side is entered: see to it that what a function's names hold is not changed unseen."""
        self.mutation_snapshot = MutationSnapshot(
            value for name, value in frame.f_locals.items() if name.isidentifier()
        )

    def enter(self) -> None:
        """Go into the side, for the first time or again."""
        if self.region is not None:
            self._context = self.region.entered()
            self._context.__enter__()
        for key, value in self.final_values.items():
            self.undo_log[key][0].put(value)

    def leave(self) -> None:
        """Leave it; places hold what they held before."""
        self.final_values = {key: place.get() for key, (place, _) in self.undo_log.items()}
        self._holders = frozenset(id(place.holder) for place, _ in self.undo_log.values())
        if self.enclosing is not None:
            self.enclosing.created_here.update(self.created_here)
        for place, before in self.undo_log.values():
            place.put(before)
        if self._context is not None:
            context, self._context = self._context, None
            context.__exit__(None, None, None)

    @block
    def final_state(self) -> Iterator[None]:
        """After the side was left: places hold once more what it left in them."""
        befores = [(place, place.get()) for place, _ in self.undo_log.values()]
        for key, (place, _) in self.undo_log.items():
            place.put(self.final_values[key])
        try:
            yield
        finally:
            for place, before in befores:
                place.put(before)

    def flatten(self, value: object, whole: Collection[int] = ()) -> tuple[list[Any], pytree.Structure]:
        """The leaves of a value as the side left it, and how they are nested."""
        if not self.undo_log or not object_trees.is_container(value):
            return object_trees.flatten(value, whole)
        with self.final_state():
            return object_trees.flatten(value, whole)

    def parts(self, value: object) -> dict[int, Any]:
        """The containers inside of a value as the side left it, by id."""
        if not self.undo_log or not object_trees.is_container(value):
            return object_trees.changeable_parts(value)
        with self.final_state():
            return object_trees.changeable_parts(value)

    def items(self, value: list[Any]) -> list[Any]:
        """The items of a list as the side left it."""
        if not self.has_changed(value):
            return value
        with self.final_state():
            return list(value)

    def has_changed(self, value: object) -> bool:
        """Whether a value is a place of which the side, which was left, has kept what it held before."""
        return id(value) in self._holders or id(instance_dict(value)) in self._holders

    def final_value(self, value: object) -> Any:
        """A tensor with the value that the side, which was left, has given to a tensor in place."""
        place = location_of(value) if isinstance(value, SymbolicTensor) and self.has_changed(value) else None
        return value if place is None else self.final_values[place.identity]

    def was_created_here(self, key: object) -> bool:
        """Whether a place is of what was made in the side: nobody outside knows it."""
        before = self.undo_log[key][1] if key in self.undo_log else None
        return self.region is not None and any(is_traced_in(x, self.region) for x in object_trees.flatten(before)[0])

    def check_mutations(self) -> None:
        """After the side was left: raise TraceError if it changed what cannot be put back."""
        if self.mutation_snapshot is None:
            return
        changed = self.mutation_snapshot.first_change()
        if changed is not None:
            raise cannot_be_undone(
                f"a {type(changed).__name__} is changed", object_trees.is_created_while_tracing(changed)
            )

    def note_made(self, value: object) -> None:
        """An object was made in the side: what is done to it there is seen by nobody outside."""
        attributes = instance_dict(value)
        for one in (value, attributes) if type(attributes) is dict else (value,):
            self.created_here[id(one)] = one
            for key in [key for key, (place, _) in self.undo_log.items() if place.holder is one]:
                del self.undo_log[key]  # it was changed while it was made

    def record_write(self, place: Location, before: object = UNBOUND) -> None:
        if place.identity not in self.undo_log and id(place.holder) not in self.created_here:
            self.undo_log[place.identity] = place, place.get() if before is UNBOUND else before


def cannot_be_undone(what: str, is_noted: bool = True) -> TraceError:
    """The error; where the trace has noted what happened to what, it is known whether the code can run once more."""
    kind = ConcretizationError if is_noted else TraceError
    return kind("convert", f"{what} under a condition that is a tensor. Do it outside of that block.")
