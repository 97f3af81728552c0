"""What is noted, in the innermost side, before code changes something that outlives the side."""

from __future__ import annotations

from collections.abc import Iterator
from types import FrameType
from typing import Any

from hybridflow.core.context import now
from hybridflow.tracing.flow.places import UNBOUND, Place, alias, is_container, place_of
from hybridflow.tracing.flow.sides import Side, cannot_be_undone
from hybridflow.tracing.flow.state import active
from hybridflow.tracing.region import Region
from hybridflow.tracing.symbolic import SymbolicTensor


def touch(place: Place | None, before: Any = UNBOUND) -> None:
    """Note that a place is about to be changed, or was, when it held ``before``."""
    side = innermost()
    if side is not None and place is not None:
        side.touch(place, before)


def innermost() -> Side | None:
    """The side that the running code is in; None outside of all."""
    path = active.path
    while path is not None and not path.sides:
        path = path.parent
    return None if path is None else path.sides[-1]


def note_made(value: Any) -> None:
    """An object was made in the innermost side, outside of which nobody knows it."""
    side = innermost()
    if side is not None:
        side.note_made(value)


_MAKING = ("__init__", "__post_init__")


def touch_attribute(value: Any, name: str, frame: FrameType) -> None:
    """``frame`` is about to change an attribute.  What an object is given while it is made belongs to the side that
    makes it, and nobody else knows it."""
    path = active.path
    while path is not None and not path.sides:
        path = path.parent
    place = place_of(value, name)
    if path is None or place is None:
        return
    news = path.sides[-1].news
    if id(value) in news:
        return
    if frame.f_code.co_name in _MAKING and _first(frame) is value and _first(path.frame) is not value:
        news[id(value)] = value
    else:
        touch(place)


def _first(frame: FrameType) -> Any:
    """The first argument of a function."""
    code = frame.f_code
    return frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None


def put(place: Place, value: Any) -> None:
    touch(place)
    place.put(value)


def containers_of(frame: FrameType) -> list[Place]:
    """The containers that a function's names hold, which functions in C may change unseen."""
    found = [place_of(value) for value in frame.f_locals.values() if is_container(value)]
    return [place for place in found if place is not None]


def rebound(x: SymbolicTensor) -> None:
    """Before ``x[i] = v``: let it take a value of the branch that is traced."""
    trace = now().trace
    if active.path is None or x.is_given or trace is x._trace or not isinstance(trace, Region):
        return
    touch(place_of(x))
    x._node, x._trace = trace.node_of(alias(x)), trace


def sides_around() -> Iterator[Side]:
    """All that the running code is inside of."""
    path = active.path
    while path is not None:
        yield from path.sides
        path = path.parent


def check_can_be_undone(what: str) -> None:
    """Raise TraceError if it depends on a tensor whether ``what`` happens, which cannot be taken back."""
    if any(side.region is not None for side in sides_around()):
        raise cannot_be_undone(what)
