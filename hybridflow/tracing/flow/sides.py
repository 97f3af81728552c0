"""A side: one of the ways on from a condition that is a tensor, and a journal of what it changed."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from types import FrameType
from typing import Any

from hybridflow.core import pytree
from hybridflow.core.blocks import block
from hybridflow.errors import ConcretizationError, TraceError
from hybridflow.tracing.flow import trees
from hybridflow.tracing.flow.places import UNBOUND, Place, place_of
from hybridflow.tracing.flow.values import is_of
from hybridflow.tracing.flow.witnesses import Witnesses
from hybridflow.tracing.region import Region
from hybridflow.tracing.symbolic import SymbolicTensor


class Side:
    """A region that is traced, with a journal of the places that were changed; without a region, the journal alone.

    It is inside of the side ``around``, if any; its ``twin`` is the other side of the same condition."""

    __slots__ = (
        "_context",
        "_holders",
        "around",
        "condition",
        "finals",
        "known",
        "news",
        "region",
        "touched",
        "twin",
        "witnesses",
    )

    def __init__(self, region: Region | None, around: Side | None = None) -> None:
        self.region, self.around = region, around
        self.twin: Side | None = None
        self.condition: tuple[Any, bool] | None = None  # the node of what decides, and whether it is true here
        self.known: dict[int, frozenset[int]] = {}  # which options of choices are left, see ``narrowing``
        self.touched: dict[Any, tuple[Place, Any]] = {}  # the place, and what it held before
        self.finals: dict[Any, Any] = {}
        self.news: dict[int, Any] = {}  # objects that are made in it, by id
        self._holders: frozenset[int] = frozenset()  # the ids of what was touched, once the side was left
        self.witnesses: Witnesses | None = None
        self._context: Any = None

    def under(self, pred: Any, truth: bool) -> Side:
        """The side, in which a condition holds or not."""
        if isinstance(pred, SymbolicTensor):
            self.condition = pred._node, truth
        return self

    def watch(self, frame: FrameType) -> None:
        """Before the side is entered: see to it that what a function's names hold is not changed unseen."""
        self.witnesses = Witnesses(value for name, value in frame.f_locals.items() if name.isidentifier())

    def enter(self) -> None:
        """Go into the side, for the first time or again."""
        if self.region is not None:
            self._context = self.region.entered()
            self._context.__enter__()
        for key, value in self.finals.items():
            self.touched[key][0].put(value)

    def leave(self) -> None:
        """Leave it; places hold what they held before."""
        self.finals = {key: place.get() for key, (place, _) in self.touched.items()}
        self._holders = frozenset(id(place.holder) for place, _ in self.touched.values())
        if self.around is not None:
            self.around.news.update(self.news)
        for place, before in self.touched.values():
            place.put(before)
        if self._context is not None:
            context, self._context = self._context, None
            context.__exit__(None, None, None)

    @block
    def seen(self) -> Iterator[None]:
        """After the side was left: places hold once more what it left in them."""
        befores = [(place, place.get()) for place, _ in self.touched.values()]
        for key, (place, _) in self.touched.items():
            place.put(self.finals[key])
        try:
            yield
        finally:
            for place, before in befores:
                place.put(before)

    def flatten(self, value: Any, whole: Collection[int] = ()) -> tuple[list[Any], pytree.Structure]:
        """The leaves of a value as the side left it, and how they are nested."""
        if not self.touched or not trees.is_container(value):
            return trees.flatten(value, whole)
        with self.seen():
            return trees.flatten(value, whole)

    def parts(self, value: Any) -> dict[int, Any]:
        """The containers inside of a value as the side left it, by id."""
        if not self.touched or not trees.is_container(value):
            return trees.changeable_parts(value)
        with self.seen():
            return trees.changeable_parts(value)

    def items(self, value: list[Any]) -> list[Any]:
        """The items of a list as the side left it."""
        if not self.has_touched(value):
            return value
        with self.seen():
            return list(value)

    def has_touched(self, value: Any) -> bool:
        """Whether a value is a place of which the side, which was left, has kept what it held before."""
        return id(value) in self._holders or id(getattr(value, "__dict__", None)) in self._holders

    def end(self, value: Any) -> Any:
        """A tensor with the value that the side, which was left, has given to a tensor in place."""
        place = place_of(value) if isinstance(value, SymbolicTensor) and self.has_touched(value) else None
        return value if place is None else self.finals[place.identity]

    def made(self, key: Any) -> bool:
        """Whether a place is of what was made in the side: nobody outside knows it."""
        before = self.touched[key][1] if key in self.touched else None
        return self.region is not None and any(is_of(x, self.region) for x in trees.flatten(before)[0])

    def check(self) -> None:
        """After the side was left: raise TraceError if it changed what cannot be put back."""
        if self.witnesses is None:
            return
        changed = self.witnesses.changed()
        if changed is not None:
            raise cannot_be_undone(f"a {type(changed).__name__} is changed", trees.is_made_here(changed))

    def note_made(self, value: Any) -> None:
        """An object was made in the side: what is done to it there is seen by nobody outside."""
        own = getattr(value, "__dict__", None)
        for one in (value, own) if type(own) is dict else (value,):
            self.news[id(one)] = one
            for key in [key for key, (place, _) in self.touched.items() if place.holder is one]:
                del self.touched[key]  # it was changed while it was made

    def touch(self, place: Place, before: Any = UNBOUND) -> None:
        if place.identity not in self.touched and id(place.holder) not in self.news:
            self.touched[place.identity] = place, place.get() if before is UNBOUND else before


def cannot_be_undone(what: str, is_noted: bool = True) -> TraceError:
    """The error; where the trace has noted what happened to what, it is known whether the code can run once more."""
    kind = ConcretizationError if is_noted else TraceError
    return kind("convert", f"{what} under a condition that is a tensor. Do it outside of that block.")
