"""What comes to run where a block or a function is over, which may have been left before: what follows a ``return``, a
``finally``, the clauses that catch an error."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any

from hybridflow.array import elementwise
from hybridflow.autograph.runtime import diagnostics, exception_handlers, narrowing
from hybridflow.autograph.runtime.branch_merge import merge_values
from hybridflow.autograph.runtime.branch_stack import BranchScope, scope_depth, scope_of, unwind
from hybridflow.autograph.runtime.choices import is_choice
from hybridflow.autograph.runtime.exception_handlers import RaisedExit
from hybridflow.autograph.runtime.exits import (
    ERROR,
    NORMAL,
    VALUE,
    ExitKind,
    Exits,
    Values,
    current_values,
    relabel,
    values_for_code,
)
from hybridflow.autograph.runtime.mutable_locations import is_unbound
from hybridflow.autograph.runtime.state import active
from hybridflow.autograph.runtime.try_ranges import TryRange
from hybridflow.autograph.runtime.type_mismatch import TypeMismatch
from hybridflow.errors import ConcretizationError, TraceError


def return_value(frame: FrameType, value: object, stays: object, names: Sequence[str] = ()) -> Any:
    """What a function returns in fact; ``stays`` where it goes on, because a condition above was a tensor.  ``names``
    hold what outlives its blocks."""
    active.left = None
    path: BranchScope | None = active.scope
    value = narrowing.narrow(value)
    if path is None or path.frame is not frame:
        return value
    block = path
    while block.is_untraced and not block.is_function_body:
        assert block.parent is not None
        block = block.parent
    if not block.is_function_body:
        path.exits = Exits({path.return_kind: {**current_values(frame, names), VALUE: value}})
        return stays
    while path is not block:
        path.drop()
        assert path.parent is not None
        path = path.parent
    if block.is_untraced:
        block.drop()
        return value
    if any(one.covers(frame) for one in active.handlers):  # errors are yet to be caught
        block.exits = block.exits or Exits({block.return_kind: {**current_values(frame, names), VALUE: value}})
        return stays
    return close_path(block, {**current_values(frame, names), VALUE: value})


def close_path(path: BranchScope, values: Values) -> Any:
    """What a function returns that ends in its outermost path; what it raises comes to the path around it."""
    kind = path.return_kind
    bundle = path.close(path.exits or Exits({kind: values}), {})
    active.scope = path.parent
    if bundle.always_raises:
        return None
    if kind not in bundle.by_kind:
        raise ConcretizationError(
            "raise",
            f"{path.frame.f_code.co_name} raises errors on all of its ways, and it depends on a tensor which of them "
            "is caught. Raise them in the function that catches them.",
        )
    if len(bundle.by_kind) > 1:
        assert path.parent is not None
        active.left = path.parent.resume_with(relabel(bundle, {kind: NORMAL}))
    else:
        active.left = bundle.by_kind[kind]
    result = active.left and active.left[VALUE]
    if isinstance(result, TypeMismatch):
        raise diagnostics.returns(result)
    if is_choice(result):
        result.where = diagnostics.here(path.frame, "return").location
    return result


def pause(frame: FrameType, since: tuple[BranchScope | None, int], names: Sequence[str]) -> Exits | None:
    """Close what was opened ``since``, so that something may run however the block was left; None if nothing was."""
    path: BranchScope | None = active.scope
    if path is None or path.frame is not frame:
        return None
    count = since[1] if since[0] is path else 0
    if len(path.open_conditionals) == count and path.exits is None:
        return None
    result = path.close(path.exits or Exits({NORMAL: current_values(frame, names)}), {}, count)
    result.return_kind = path.return_kind
    return result


def common(frame: FrameType, bundle: Exits, names: Sequence[str]) -> list[Any]:
    """What names hold after ``pause``, however the block was left."""
    (_, values), *others = bundle.by_kind.items()
    for kind, other in others:
        assert bundle.code is not None
        values = merge_values(elementwise.equal(bundle.code, kind.number), other, values, names)
    merged = values_for_code(values, names, frame, diagnostics.here(frame, "if"))
    bundle.common = dict(zip(names, merged))
    return merged


def apply_merged_names(frame: FrameType, bundle: Exits) -> None:
    """What began with ``common`` is over: what it bound is what names hold now, however the block was left."""
    now_held = current_values(frame, list(bundle.common))
    bound = {name: value for name, value in now_held.items() if not _is_one(value, bundle.common[name])}
    for values in bundle.by_kind.values():
        values.update(bound)


def _is_one(a: object, b: object) -> bool:
    return a is b or (is_unbound(a) and is_unbound(b))


def resume(frame: FrameType, bundle: Exits, names: Sequence[str]) -> list[Any]:
    """Go on after ``pause``."""
    path = scope_of(frame)
    path.return_kind = bundle.return_kind or path.return_kind  # what has run meanwhile may have been a path of its own
    values = path.resume_with(bundle)
    return values_for_code(values or {}, names, frame, diagnostics.here(frame, "if"))


def suspend_generator(frame: FrameType) -> None:
    """Before a generator stops: the code that takes its items has paths of its own, and errors that have left the
    generator have left that."""
    _hand_over(frame)
    path: BranchScope | None = active.scope
    plain = []
    while path is not None and path.frame is frame and path.is_untraced:
        plain.append(path)
        path = active.scope = path.parent
    if plain:
        active.stopped[frame] = plain


def resume_generator(frame: FrameType) -> None:
    """A generator goes on."""
    for path in reversed(active.stopped.pop(frame, ())):
        path.parent, active.scope = active.scope, path


def _hand_over(frame: FrameType) -> None:
    path: BranchScope | None = active.scope
    if path is None or path.frame is not frame or path.has_exited or path.is_untraced or not path.is_function_body:
        return
    kinds = [kind for one in path.open_conditionals for kind in one.exits.by_kind]
    if len(path.branches) != len(path.open_conditionals) or not all(_leaves_by_error(kind, frame) for kind in kinds):
        return
    caller = exception_handlers.converted_caller(frame)
    if caller is None:
        return
    around = (
        path.parent
        if path.parent is not None and path.parent.frame is caller
        else BranchScope(caller, path.parent, None)
    )
    around.open_conditionals += path.open_conditionals
    around.branches += path.branches
    path.open_conditionals, path.branches, path.parent = [], [], around


def _leaves_by_error(kind: ExitKind, frame: FrameType) -> bool:
    return isinstance(kind, RaisedExit) and kind.guarded.frame is not frame


def leave_by(guarded: TryRange, path: BranchScope, error: object) -> None:
    """The running block, which is ``path``, is left by an error that comes to what guards it."""
    frame = guarded.frame
    path.exits = Exits({RaisedExit(guarded): {**current_values(frame, guarded.names), ERROR: error}})
    _have_path(frame)


def _have_path(frame: FrameType) -> None:
    """See to it that a frame which runs has a path."""
    inside, running = set(), sys._getframe(1)
    while running is not frame and running is not None:
        inside.add(running)
        running = running.f_back  # type: ignore[assignment]
    above, path = None, active.scope
    while path is not None and path.frame in inside:
        above, path = path, path.parent
    if path is not None and path.frame is frame:
        return
    scope = BranchScope(frame, path, None)
    if above is None:
        active.scope = scope
    else:
        above.parent = scope


def check_caught(since: tuple[BranchScope | None, int]) -> None:
    """An exception was caught.  Raises TraceError if it came out of a branch, which may not run."""
    error = sys.exc_info()[1]
    if isinstance(error, TraceError) and (error is active.refusal or _is_of_flow(error)):
        unwind(since[0])
        raise error
    while active.scope is not None and active.scope is not since[0] and active.scope.is_untraced:
        active.scope.drop()
    if active.scope is not None and active.scope is active.floor:
        return
    if scope_depth() != since:
        unwind(since[0])
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
    return entry is not None and any(converted(entry.tb_frame) for converted in exception_handlers.is_converted)


def begin_finally(path: BranchScope | None) -> None:
    """A ``finally`` begins, which stood in ``path``."""
    error = sys.exc_info()[1]
    if error is not None:
        unwind(path)
        if isinstance(error, TraceError):
            active.passing = active.passing or error
