"""What comes to run where a block or a function is over, which may have been left before: what follows a ``return``, a
``finally``, the clauses that catch an error."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any

from hybridflow.array import elementwise
from hybridflow.errors import ConcretizationError, TraceError
from hybridflow.tracing.flow import blame, guarding, narrowing
from hybridflow.tracing.flow.choices import Choice
from hybridflow.tracing.flow.clauses import Guarded
from hybridflow.tracing.flow.guarding import Raised
from hybridflow.tracing.flow.joins import either
from hybridflow.tracing.flow.outcomes import (
    ERROR,
    NORMAL,
    VALUE,
    Bundle,
    Kind,
    Values,
    given_back,
    renamed,
    values_of,
)
from hybridflow.tracing.flow.paths import Path, depth, path_in, unwound
from hybridflow.tracing.flow.places import is_unbound
from hybridflow.tracing.flow.state import active
from hybridflow.tracing.flow.texts import Conflict


def returned(frame: FrameType, value: Any, stays: Any, names: Sequence[str] = ()) -> Any:
    """What a function returns in fact; ``stays`` where it goes on, because a condition above was a tensor.  ``names``
    hold what outlives its blocks."""
    active.left = None
    path: Path | None = active.path
    value = narrowing.narrowed(value)
    if path is None or path.frame is not frame:
        return value
    block = path
    while block.is_plain and not block.is_base:
        assert block.parent is not None
        block = block.parent
    if not block.is_base:
        path.bundle = Bundle({path.returned: {**values_of(frame, names), VALUE: value}})
        return stays
    while path is not block:
        path.drop()
        assert path.parent is not None
        path = path.parent
    if block.is_plain:
        block.drop()
        return value
    if any(one.covers(frame) for one in active.guarded):  # errors are yet to be caught
        block.bundle = block.bundle or Bundle({block.returned: {**values_of(frame, names), VALUE: value}})
        return stays
    return closed(block, {**values_of(frame, names), VALUE: value})


def closed(path: Path, values: Values) -> Any:
    """What a function returns that ends in its outermost path; what it raises comes to the path around it."""
    kind = path.returned
    bundle = path.settled(path.bundle or Bundle({kind: values}), {})
    active.path = path.parent
    if bundle.has_raised:
        return None
    if kind not in bundle.kinds:
        raise ConcretizationError(
            "raise",
            f"{path.frame.f_code.co_name} raises errors on all of its ways, and it depends on a tensor which of them "
            "is caught. Raise them in the function that catches them.",
        )
    if len(bundle.kinds) > 1:
        assert path.parent is not None
        active.left = path.parent.take(renamed(bundle, {kind: NORMAL}))
    else:
        active.left = bundle.kinds[kind]
    found = active.left and active.left[VALUE]
    if isinstance(found, Conflict):
        raise blame.returns(found)
    if isinstance(found, Choice):
        found.where = blame.here(path.frame, "return").location
    return found


def pause(frame: FrameType, since: tuple[Path | None, int], names: Sequence[str]) -> Bundle | None:
    """Close what was opened ``since``, so that something may run however the block was left; None if nothing was."""
    path: Path | None = active.path
    if path is None or path.frame is not frame:
        return None
    count = since[1] if since[0] is path else 0
    if len(path.opens) == count and path.bundle is None:
        return None
    found = path.settled(path.bundle or Bundle({NORMAL: values_of(frame, names)}), {}, count)
    found.returned = path.returned
    return found


def common(frame: FrameType, bundle: Bundle, names: Sequence[str]) -> list[Any]:
    """What names hold after ``pause``, however the block was left."""
    (_, values), *others = bundle.kinds.items()
    for kind, other in others:
        assert bundle.code is not None
        values = either(elementwise.equal(bundle.code, kind.number), other, values, names)
    given = given_back(values, names, frame, blame.here(frame, "if"))
    bundle.common = dict(zip(names, given))
    return given


def changed(frame: FrameType, bundle: Bundle) -> None:
    """What began with ``common`` is over: what it bound is what names hold now, however the block was left."""
    now_held = values_of(frame, list(bundle.common))
    bound = {name: value for name, value in now_held.items() if not _is_one(value, bundle.common[name])}
    for values in bundle.kinds.values():
        values.update(bound)


def _is_one(a: Any, b: Any) -> bool:
    return a is b or (is_unbound(a) and is_unbound(b))


def resume(frame: FrameType, bundle: Bundle, names: Sequence[str]) -> list[Any]:
    """Go on after ``pause``."""
    path = path_in(frame)
    path.returned = bundle.returned or path.returned  # what has run meanwhile may have been a path of its own
    taken = path.take(bundle)
    return given_back(taken or {}, names, frame, blame.here(frame, "if"))


def stopped(frame: FrameType) -> None:
    """Before a generator stops: the code that takes its items has paths of its own, and errors that have left the
    generator have left that."""
    _hand_over(frame)
    path: Path | None = active.path
    plain = []
    while path is not None and path.frame is frame and path.is_plain:
        plain.append(path)
        path = active.path = path.parent
    if plain:
        active.stopped[frame] = plain


def resumed(frame: FrameType) -> None:
    """A generator goes on."""
    for path in reversed(active.stopped.pop(frame, ())):
        path.parent, active.path = active.path, path


def _hand_over(frame: FrameType) -> None:
    path: Path | None = active.path
    if path is None or path.frame is not frame or path.is_dead or path.is_plain or not path.is_base:
        return
    kinds = [kind for one in path.opens for kind in one.bundle.kinds]
    if len(path.sides) != len(path.opens) or not all(_leaves_by_error(kind, frame) for kind in kinds):
        return
    caller = guarding.caller(frame)
    if caller is None:
        return
    around = path.parent if path.parent is not None and path.parent.frame is caller else Path(caller, path.parent, None)
    around.opens += path.opens
    around.sides += path.sides
    path.opens, path.sides, path.parent = [], [], around


def _leaves_by_error(kind: Kind, frame: FrameType) -> bool:
    return isinstance(kind, Raised) and kind.guarded.frame is not frame


def leave_by(guarded: Guarded, path: Path, error: Any) -> None:
    """The running block, which is ``path``, is left by an error that comes to what guards it."""
    frame = guarded.frame
    path.bundle = Bundle({Raised(guarded): {**values_of(frame, guarded.names), ERROR: error}})
    _have_path(frame)


def _have_path(frame: FrameType) -> None:
    """See to it that a frame which runs has a path."""
    inside, running = set(), sys._getframe(1)
    while running is not frame and running is not None:
        inside.add(running)
        running = running.f_back  # type: ignore[assignment]
    above, path = None, active.path
    while path is not None and path.frame in inside:
        above, path = path, path.parent
    if path is not None and path.frame is frame:
        return
    made = Path(frame, path, None)
    if above is None:
        active.path = made
    else:
        above.parent = made


def caught(since: tuple[Path | None, int]) -> None:
    """An exception was caught.  Raises TraceError if it came out of a branch, which may not run."""
    error = sys.exc_info()[1]
    if isinstance(error, TraceError) and (error is active.refusal or _is_of_flow(error)):
        unwound(since[0])
        raise error
    while active.path is not None and active.path is not since[0] and active.path.is_plain:
        active.path.drop()
    if active.path is not None and active.path is active.floor:
        return
    if depth() != since:
        unwound(since[0])
        if isinstance(error, TraceError):
            raise error
        raise ConcretizationError(
            "except",
            "an exception was raised under a condition that is a tensor, and it is not known while tracing whether "
            "that holds. Choose the value with hf.where, or raise and catch outside of the compiled function.",
        )


def _is_of_flow(error: BaseException) -> bool:
    """Whether an error says that control flow cannot be traced, which nobody catches."""
    entry = error.__traceback__
    while entry is not None and entry.tb_next is not None:
        entry = entry.tb_next
    return entry is not None and any(converted(entry.tb_frame) for converted in guarding.is_converted)


def passed(path: Path | None) -> None:
    """A ``finally`` begins, which stood in ``path``."""
    error = sys.exc_info()[1]
    if error is not None:
        unwound(path)
        if isinstance(error, TraceError):
            active.passing = active.passing or error
