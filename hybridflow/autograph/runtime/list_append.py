"""Lists that a loop of known length appends to: what its iterations append is stacked, and the list holds the rows
then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import FrameType
from typing import Any

from hybridflow.array.indexing import getitem
from hybridflow.autograph.runtime import dynamic_list, object_trees
from hybridflow.autograph.runtime.aliasing import alias_classes, record_may_alias
from hybridflow.autograph.runtime.branch import Branch
from hybridflow.autograph.runtime.loop_vars import ExitValues
from hybridflow.autograph.runtime.mutable_locations import Location, location_of
from hybridflow.autograph.runtime.phi import is_constant, is_traced_in
from hybridflow.autograph.runtime.state import active
from hybridflow.autograph.runtime.undo_log import logged_write
from hybridflow.core.tensor import Tensor
from hybridflow.errors import TraceError
from hybridflow.tracing.subtrace import SubTrace
from hybridflow.tracing.symbolic_tensor import SymbolicTensor

Link = tuple[Tensor, Any, Any]


def _row(stack: Tensor, k: int) -> Tensor:
    row = getitem(stack, k)
    return row.is_row(stack, k) if isinstance(row, SymbolicTensor) else row


def _is_created(item: object, leaves: Sequence[Any], side: Branch) -> bool:
    """Whether an iteration has made an item, if it is one that may be changed."""
    is_changeable = object_trees.is_container(item) and not isinstance(item, tuple)
    return not is_changeable or any(is_traced_in(x, side.region) for x in leaves)


class _Stack:
    """One list, and what the latest iteration appended to it."""

    __slots__ = ("items", "length", "location")

    def __init__(self, place: Location) -> None:
        self.location, self.length = place, len(place.holder)
        self.items: list[Any] = []


class Stacks:
    """The lists that ``names`` hold, which code does nothing with but append to them."""

    def __init__(self, frame: FrameType, names: Sequence[str]) -> None:
        held = frame.f_locals
        lists = [held[name] for name in names if type(held.get(name)) is list]
        several = [x for x in lists if sum(x is other for other in held.values()) > 1]
        places = [location_of(x) for x in lists if not any(x is one for one in several)]
        self._stacks = [_Stack(place) for place in places if place is not None]
        self._outside = active.appended
        self._added: list[list[Any]] = []
        self._created: list[Tensor] = []

    def begin(self) -> None:
        """An iteration begins."""
        active.appended = (*self._outside, *(stack.location.holder for stack in self._stacks))

    def finish(self, side: Branch, changes: bool) -> None:
        """An iteration is over, and its side left: take what it appended.  Raises TraceError where that cannot be
        stacked."""
        active.appended = self._outside
        for stack in self._stacks:
            key = stack.location.identity
            side.undo_log.pop(key, None)
            stack.items = side.final_values.pop(key, stack.location.holder)[stack.length :]
            for item in stack.items:
                leaves = object_trees.flatten(item, object_trees.changeable_parts(item))[0]
                is_stacked = all((isinstance(x, Tensor) and not changes) or is_constant(x) for x in leaves)
                if not is_stacked or not _is_created(item, leaves, side):
                    raise TraceError(
                        "for", "an iteration appends what it changes, what it found, or what is no tensor."
                    )

    def give_up(self) -> None:
        """How much is appended depends on a tensor: such lists are carried, see ``growth``."""
        active.appended = self._outside
        self._stacks = []

    def grow(self, side: Branch) -> bool:
        """Whether a tensor decides how much the iteration has appended whose side was left."""
        finals = (side.final_values.get(stack.location.identity) for stack in self._stacks)
        return any(dynamic_list.is_dynamic(items) for items in finals)

    def outputs(self, side: Branch, region: SubTrace) -> list[Tensor]:
        """The tensors that each iteration makes, to be stacked."""
        late = ExitValues()
        self._added = [[late.add(item, side, region) for item in stack.items] for stack in self._stacks]
        self._created = late.outputs
        return late.outputs

    def take(
        self, stacks: Sequence[Tensor], length: int, ends: Mapping[int, Tensor], links: Sequence[Link], side: Branch
    ) -> None:
        """After the loop: the lists hold what all iterations appended.  ``ends`` are the objects that names and places
        hold now, by the ids of what the last iteration made; ``links`` those of ``LoopVars.links``."""
        if not any(self._added):
            return
        rows = [[_row(x, k) for x in stacks] for k in range(length - 1)]
        rows.append([_last_row(x, length - 1, ends.get(id(created))) for x, created in zip(stacks, self._created)])
        self._note_links(rows, links, side)
        for stack, added in zip(self._stacks, self._added):
            if added:
                new = [ExitValues.rebuild(one, row) for row in rows for one in added]
                logged_write(stack.location, [*stack.location.get(), *new])
                for created, item in zip(new[-len(added) :], stack.items):
                    record_may_alias(ExitValues.alias_pairs(created, item, side))

    def _note_links(self, rows: Sequence[Sequence[Tensor]], links: Sequence[Link], side: Branch) -> None:
        """Rows of what iterations find, or chose, are one object where they come from one: of an iteration before, or
        one that was there."""
        origins = _Origins(links, side)
        for k, row in enumerate(rows):
            is_last = k == len(rows) - 1
            for created, one in zip(self._created, row):
                origins.of(created, k).append(one)
                if is_last and id(created) in origins.kin:  # and so it is with the names for what it may be
                    origins.of(created, k).append(created)
            origins.iteration(k)
        record_may_alias([tuple(group) for group in origins.groups() if len(group) > 1])


class _Origins:
    """Where the objects of iterations come from.  Objects have keys, and those that may be one have one group."""

    def __init__(self, links: Sequence[Link], side: Branch) -> None:
        self._links, self._region = links, side.region
        self._known: dict[int, Any] = {id(end): id(start) for end, start, _ in links}
        self._groups: dict[Any, list[Any]] = {}
        self.kin = alias_classes(self._known.keys())
        for _, *both in links:
            for x in both:
                if self._is_around(x):
                    self._groups[id(x)] = [x]

    def _is_around(self, x: object) -> bool:
        """Whether a tensor was there before the loop."""
        trace: Any = self._region
        while trace is not None and isinstance(x, SymbolicTensor):
            trace = trace.parent
            if x._trace is trace:
                return True
        return isinstance(x, Tensor) and not isinstance(x, SymbolicTensor)

    def of(self, x: object, iteration: int) -> list[Any]:
        """The group of what is ``x`` in an iteration."""
        return self._groups.setdefault(self._key(x, iteration), [])

    def _key(self, x: object, iteration: int) -> Any:
        if id(x) in self._known:
            return self._known[id(x)]
        if id(x) in self._groups:
            return id(x)
        others = self.kin.get(id(x))
        if others is None:
            return id(x), iteration
        key = id(others), iteration
        if key not in self._groups:
            known = [self._known[id(x)] for x in others if id(x) in self._known]
            for x in filter(self._is_around, others):
                self._groups.setdefault(id(x), [x])
                known.append(id(x))
            first, *rest = [self._groups.setdefault(one, []) for one in known] or [[]]
            self._groups[key] = first
            for group in rest:
                self._unite(first, group)
        return key

    def _unite(self, one: list[Any], other: list[Any]) -> None:
        if one is not other:
            one += other
            self._groups = {key: one if group is other else group for key, group in self._groups.items()}

    def iteration(self, number: int) -> None:
        """An iteration is over: what it made is what the next one finds."""
        self._known = {id(end_value): self._key(end, number) for end_value, _, end in self._links}

    def groups(self) -> list[list[Any]]:
        return list({id(group): group for group in self._groups.values()}.values())


def _last_row(stack: Tensor, k: int, held: Tensor | None) -> Tensor:
    """The last row: the object that something else holds after the loop, if anything does."""
    if held is None:
        return _row(stack, k)
    return held.is_row(stack, k) if isinstance(held, SymbolicTensor) else held


def is_appended(value: object) -> bool:
    """Whether a value is a list that iterations append to."""
    return any(value is one for one in active.appended)


def check_read(value: object) -> Any:
    """What was read of an object.  Raises TraceError for a list of which nobody knows while tracing what is in it."""
    if active.appended and is_appended(value):
        raise TraceError("for", "a list that each iteration appends to is read in an iteration.")
    return value
