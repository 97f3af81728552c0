"""What is noted, in the innermost side, before code changes something that outlives the side."""

from __future__ import annotations

from collections.abc import Iterator
from types import FrameType
from typing import Any

from hybridflow.autograph.runtime.branch import Branch, cannot_be_undone
from hybridflow.autograph.runtime.mutable_locations import UNBOUND, Location, alias, is_container, location_of
from hybridflow.autograph.runtime.state import active
from hybridflow.core.context import now
from hybridflow.tracing.subtrace import SubTrace
from hybridflow.tracing.symbolic_tensor import SymbolicTensor


def record_write(place: Location | None, before: object = UNBOUND) -> None:
    """Note that a place is about to be changed, or was, when it held ``before``."""
    side = innermost_branch()
    if side is not None and place is not None:
        side.record_write(place, before)


def innermost_branch() -> Branch | None:
    """The side that the running code is in; None outside of all."""
    path = active.scope
    while path is not None and not path.branches:
        path = path.parent
    return None if path is None else path.branches[-1]


def note_made(value: object) -> None:
    """An object was made in the innermost side, outside of which nobody knows it."""
    side = innermost_branch()
    if side is not None:
        side.note_made(value)


_MAKING = ("__init__", "__post_init__")


def record_attribute_write(value: object, name: str, frame: FrameType) -> None:
    """``frame`` is about to change an attribute.  What an object is given while it is made belongs to the side that
    makes it, and nobody else knows it."""
    path = active.scope
    while path is not None and not path.branches:
        path = path.parent
    place = location_of(value, name)
    if path is None or place is None:
        return
    news = path.branches[-1].created_here
    if id(value) in news:
        return
    if frame.f_code.co_name in _MAKING and _first(frame) is value and _first(path.frame) is not value:
        news[id(value)] = value
    else:
        record_write(place)


def _first(frame: FrameType) -> Any:
    """The first argument of a function."""
    code = frame.f_code
    return frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None


def logged_write(place: Location, value: object) -> None:
    record_write(place)
    place.put(value)


def containers_of(frame: FrameType) -> list[Location]:
    """The containers that a function's names hold, which functions in C may change unseen."""
    locations = [location_of(value) for value in frame.f_locals.values() if is_container(value)]
    return [place for place in locations if place is not None]


def record_rebinding(x: SymbolicTensor) -> None:
    """Before ``x[i] = v``: let it take a value of the branch that is traced."""
    trace = now().trace
    if active.scope is None or x.is_argument or trace is x._trace or not isinstance(trace, SubTrace):
        return
    record_write(location_of(x))
    x._node, x._trace = trace.node_of(alias(x)), trace


def enclosing_branches() -> Iterator[Branch]:
    """All that the running code is inside of."""
    path = active.scope
    while path is not None:
        yield from path.branches
        path = path.parent


def check_can_be_undone(what: str) -> None:
    """Raise TraceError if it depends on a tensor whether ``what`` happens, which cannot be taken back."""
    if any(side.region is not None for side in enclosing_branches()):
        raise cannot_be_undone(what)
