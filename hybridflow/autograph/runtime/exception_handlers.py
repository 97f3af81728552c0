"""Who comes to know of an error that is raised where a tensor decides whether it is."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from hybridflow.autograph.runtime.exits import ExitKind
from hybridflow.autograph.runtime.state import active
from hybridflow.autograph.runtime.try_ranges import TryRange
from hybridflow.autograph.source.bytecode import ExceptClauses, except_clauses
from hybridflow.autograph.transform.instrument_bytecode import original_of
from hybridflow.core.context_manager import block
from hybridflow.eager.host_ops import LinAlgError
from hybridflow.errors import ConcretizationError, DivisionError, IndexRangeError, TraceError, is_internal
from hybridflow.tracing import number_errors
from hybridflow.tracing.trace import watchers

if TYPE_CHECKING:
    from hybridflow.compiler.ops.op_table import OpDef


class RaisedExit(ExitKind):
    """A side raises an error, which comes to what guards the line."""

    __slots__ = ("guarded",)

    def __init__(self, guarded: TryRange) -> None:
        super().__init__("raises")
        self.guarded = guarded


def push_handler(guarded: TryRange) -> None:
    """Something comes to know of errors from now on."""
    for k, known in enumerate(active.handlers):
        if known.is_same(guarded):
            active.handlers[k] = guarded
            return
    active.handlers.append(guarded)


def pop_handler(guarded: TryRange) -> None:
    """Something comes to know of no more errors."""
    active.handlers = [one for one in active.handlers if not one.is_same(guarded)]


is_converted: list[Callable[[FrameType], bool]] = []
"""Whether the code of a frame is converted, or stands for what converted code does: ``jit`` adds what knows that."""


def converted_caller(frame: FrameType) -> FrameType | None:
    """The frame of converted code of the user's that has the code of ``frame`` run; None if there is none, or other
    code lies in between."""
    caller = frame.f_back
    while caller is not None and is_internal(caller.f_code.co_filename):
        caller = caller.f_back
    return caller if caller is not None and any(converted(caller) for converted in is_converted) else None


def handler_for(kind: type[BaseException], raising: FrameType, users_alone: bool = False) -> TryRange | None:
    """What is the first to know of an exception that ``raising`` raises, if anything is; ``users_alone`` leaves out
    what code of ours tidies up.  Raises TraceError if that cannot be told while tracing, or if code that is not
    converted lies in between."""
    frame: FrameType | None = raising
    inside: list[FrameType] = []
    while frame is not None:
        _check_bytecode(frame, kind)
        covering = [
            one for one in reversed(active.handlers) if one.covers(frame)
        ]  # of two over the same lines the inner one
        if users_alone and is_internal(frame.f_code.co_filename):
            covering = []
        for one in sorted(covering, key=lambda one: one.last - one.first):
            if one.is_finally or one.may_catch(kind):
                _check_way(kind, one, inside)
                return one
        inside.append(frame)
        frame = frame.f_back
    return None


def _check_way(kind: Any, one: TryRange, inside: Sequence[FrameType]) -> None:
    """Raise TraceError if an exception cannot come to ``one`` through what lies in between."""
    if one.is_group:
        raise _not_caught(kind, one, "it is caught by except*")
    for frame in inside:
        if not any(converted(frame) for converted in is_converted):
            raise _not_caught(kind, one, f"it is caught outside of {frame.f_code.co_name}, which is no converted code,")


def _check_bytecode(frame: FrameType, kind: type[BaseException] | None) -> None:
    """Raise TraceError if a function without text may catch an exception in this frame: its clauses are Python's own,
    which see what tracing raises and nothing of what the program raises."""
    code = original_of(frame.f_code)
    if code is None:
        return
    if code not in _clauses:
        _clauses[code] = except_clauses(code)
    for clauses in _clauses[code]:
        one = TryRange(frame, clauses.first, clauses.last, clauses.catches)
        if one.covers(frame) and one.may_catch(kind):
            raise _not_caught(kind, one, f"it is caught in {code.co_name}, whose text is not known,")


_clauses: WeakKeyDictionary[CodeType, list[ExceptClauses]] = WeakKeyDictionary()


def _not_caught(kind: type[BaseException] | None, one: TryRange, what: str) -> TraceError:
    word = "with" if one.manager is not None else "try"
    name = "an error" if kind is None else kind.__name__
    refusal = ConcretizationError(
        word,
        f"whether {name} is raised depends on a tensor, and {what} after the {word} at {one.location}. Choose "
        "values with if or hf.where, raise it in an if of the function that catches it, or catch it outside of the "
        "compiled function.",
    )
    active.refusal = refusal
    return refusal


def check_not_caught(kind: type[BaseException] | None, finally_too: bool = True) -> None:
    """Raise TraceError if somebody may catch an exception (any one if no kind is known) that the program, once it runs,
    raises where the code is."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        _check_bytecode(frame, kind)
        for one in active.handlers:
            if not one.covers(frame):
                continue
            if one.is_finally and finally_too:
                raise _not_caught(kind, one, "a finally block runs")
            if one.may_catch(kind):
                raise _not_caught(kind, one, "it is caught")
        frame = frame.f_back


@block
def without_handlers() -> Iterator[None]:
    """Ops of the block raise no error: what they are given has been looked at."""
    before, active.handlers = active.handlers, []
    try:
        yield
    finally:
        active.handlers = before


number_errors.guards.append(check_not_caught)


def _check_op(op: OpDef) -> None:
    """Raise TraceError if the error that an op may raise when the program runs would be caught."""
    if op.name not in ("require", "cond", "while", "scan", "call"):
        is_division = op.name in ("floor_divide", "remainder")
        kind = LinAlgError if op.calls_host else DivisionError if is_division else IndexRangeError
        check_not_caught(kind, finally_too=False)


watchers.append(_check_op)
