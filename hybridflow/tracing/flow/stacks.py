"""Lists that a loop of known length appends to: what its turns append is stacked, and the list holds the rows then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import FrameType
from typing import Any

from hybridflow.array.indexing import getitem
from hybridflow.core.tensor import Tensor
from hybridflow.errors import TraceError
from hybridflow.tracing.flow import growth, trees
from hybridflow.tracing.flow.carries import Late
from hybridflow.tracing.flow.doubles import kin, note_doubles
from hybridflow.tracing.flow.journal import put
from hybridflow.tracing.flow.places import Place, place_of
from hybridflow.tracing.flow.sides import Side
from hybridflow.tracing.flow.state import active
from hybridflow.tracing.flow.values import is_atom, is_of
from hybridflow.tracing.region import Region
from hybridflow.tracing.symbolic import SymbolicTensor

Link = tuple[Tensor, Any, Any]


def _row(stack: Tensor, k: int) -> Tensor:
    row = getitem(stack, k)
    return row.is_row(stack, k) if isinstance(row, SymbolicTensor) else row


def _is_made(item: Any, leaves: Sequence[Any], side: Side) -> bool:
    """Whether a turn has made an item, if it is one that may be changed."""
    is_changeable = trees.is_container(item) and not isinstance(item, tuple)
    return not is_changeable or any(is_of(x, side.region) for x in leaves)


class _Stack:
    """One list, and what the latest turn appended to it."""

    __slots__ = ("items", "length", "place")

    def __init__(self, place: Place) -> None:
        self.place, self.length = place, len(place.holder)
        self.items: list[Any] = []


class Stacks:
    """The lists that ``names`` hold, which code does nothing with but append to them."""

    def __init__(self, frame: FrameType, names: Sequence[str]) -> None:
        held = frame.f_locals
        lists = [held[name] for name in names if type(held.get(name)) is list]
        several = [x for x in lists if sum(x is other for other in held.values()) > 1]
        places = [place_of(x) for x in lists if not any(x is one for one in several)]
        self._stacks = [_Stack(place) for place in places if place is not None]
        self._outside = active.appended
        self._added: list[list[Any]] = []
        self._made: list[Tensor] = []

    def begin(self) -> None:
        """A turn begins."""
        active.appended = (*self._outside, *(stack.place.holder for stack in self._stacks))

    def end(self, side: Side, changes: bool) -> None:
        """A turn is over, and its side left: take what it appended.  Raises TraceError where that cannot be stacked."""
        active.appended = self._outside
        for stack in self._stacks:
            key = stack.place.identity
            side.touched.pop(key, None)
            stack.items = side.finals.pop(key, stack.place.holder)[stack.length :]
            for item in stack.items:
                leaves = trees.flatten(item, trees.changeable_parts(item))[0]
                is_stacked = all((isinstance(x, Tensor) and not changes) or is_atom(x) for x in leaves)
                if not is_stacked or not _is_made(item, leaves, side):
                    raise TraceError("for", "a turn appends what it changes, what it found, or what is no tensor.")

    def give_up(self) -> None:
        """How much is appended depends on a tensor: such lists are carried, see ``growth``."""
        active.appended = self._outside
        self._stacks = []

    def grow(self, side: Side) -> bool:
        """Whether a tensor decides how much the turn has appended whose side was left."""
        finals = (side.finals.get(stack.place.identity) for stack in self._stacks)
        return any(growth.has_grown(items) for items in finals)

    def outputs(self, side: Side, region: Region) -> list[Tensor]:
        """The tensors that each turn makes, to be stacked."""
        late = Late()
        self._added = [[late.add(item, side, region) for item in stack.items] for stack in self._stacks]
        self._made = late.outputs
        return late.outputs

    def take(
        self, stacks: Sequence[Tensor], length: int, ends: Mapping[int, Tensor], links: Sequence[Link], side: Side
    ) -> None:
        """After the loop: the lists hold what all turns appended.  ``ends`` are the objects that names and places hold
        now, by the ids of what the last turn made; ``links`` those of ``Carried.links``."""
        if not any(self._added):
            return
        rows = [[_row(x, k) for x in stacks] for k in range(length - 1)]
        rows.append([_last_row(x, length - 1, ends.get(id(made))) for x, made in zip(stacks, self._made)])
        self._note_links(rows, links, side)
        for stack, added in zip(self._stacks, self._added):
            if added:
                new = [Late.taken(one, row) for row in rows for one in added]
                put(stack.place, [*stack.place.get(), *new])
                for made, item in zip(new[-len(added) :], stack.items):
                    note_doubles(Late.doubles(made, item, side))

    def _note_links(self, rows: Sequence[Sequence[Tensor]], links: Sequence[Link], side: Side) -> None:
        """Rows of what turns find, or chose, are one object where they come from one: of a turn before, or one that was
        there."""
        origins = _Origins(links, side)
        for k, row in enumerate(rows):
            is_last = k == len(rows) - 1
            for made, one in zip(self._made, row):
                origins.of(made, k).append(one)
                if is_last and id(made) in origins.kin:  # and so it is with the names for what it may be
                    origins.of(made, k).append(made)
            origins.turn(k)
        note_doubles([tuple(group) for group in origins.groups() if len(group) > 1])


class _Origins:
    """Where the objects of turns come from.  Objects have keys, and those that may be one have one group."""

    def __init__(self, links: Sequence[Link], side: Side) -> None:
        self._links, self._region = links, side.region
        self._found: dict[int, Any] = {id(found): id(start) for found, start, _ in links}
        self._groups: dict[Any, list[Any]] = {}
        self.kin = kin(self._found.keys())
        for _, *both in links:
            for x in both:
                if self._is_around(x):
                    self._groups[id(x)] = [x]

    def _is_around(self, x: Any) -> bool:
        """Whether a tensor was there before the loop."""
        trace: Any = self._region
        while trace is not None and isinstance(x, SymbolicTensor):
            trace = trace.parent
            if x._trace is trace:
                return True
        return isinstance(x, Tensor) and not isinstance(x, SymbolicTensor)

    def of(self, x: Any, turn: int) -> list[Any]:
        """The group of what is ``x`` in a turn."""
        return self._groups.setdefault(self._key(x, turn), [])

    def _key(self, x: Any, turn: int) -> Any:
        if id(x) in self._found:
            return self._found[id(x)]
        if id(x) in self._groups:
            return id(x)
        others = self.kin.get(id(x))
        if others is None:
            return id(x), turn
        key = id(others), turn
        if key not in self._groups:
            known = [self._found[id(x)] for x in others if id(x) in self._found]
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

    def turn(self, number: int) -> None:
        """A turn is over: what it made is what the next one finds."""
        self._found = {id(found): self._key(end, number) for found, _, end in self._links}

    def groups(self) -> list[list[Any]]:
        return list({id(group): group for group in self._groups.values()}.values())


def _last_row(stack: Tensor, k: int, held: Tensor | None) -> Tensor:
    """The last row: the object that something else holds after the loop, if anything does."""
    if held is None:
        return _row(stack, k)
    return held.is_row(stack, k) if isinstance(held, SymbolicTensor) else held


def is_appended(value: Any) -> bool:
    """Whether a value is a list that turns append to."""
    return any(value is one for one in active.appended)


def seen(value: Any) -> Any:
    """What was read of an object.  Raises TraceError for a list of which nobody knows while tracing what is in it."""
    if active.appended and is_appended(value):
        raise TraceError("for", "a list that each turn appends to is read in a turn.")
    return value
