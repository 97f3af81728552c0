"""What a thread traces: the innermost path, and what converted code has to keep in mind until it is over."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterable, Iterator
from types import CodeType, FrameType
from typing import Any

from hybridflow.autograph.runtime import diagnostics
from hybridflow.autograph.runtime.try_ranges import TryRange
from hybridflow.core.context_manager import Nested, block
from hybridflow.errors import TraceError
from hybridflow.runtime.fork_safe_locks import thread_states, trace_states
from hybridflow.tracing.subtrace import note_conditional_error


class _Run:
    """What one run of converted code keeps in mind; each begins with a record of its own."""

    def __init__(self, guarded: Iterable[TryRange] = ()) -> None:
        self.scope: Any = (
            None  # the innermost one: a ``branch_stack.BranchScope``, which is made of what is above this module
        )
        self.conflicts: dict[
            tuple[CodeType, str], diagnostics.MismatchReport
        ] = {}  # why names that branches bound have no value
        self.spent: list[Any] = []  # iterators of which it depends on a tensor how far loops came
        self.may_alias: list[tuple[FrameType, tuple[Any, ...]]] = []
        self.loops: dict[FrameType, Any] = {}  # by the frames of generators: the loops that take their items
        self.offered: dict[FrameType, dict[str, Any]] = {}  # what loops have for names, which have yet to take it
        self.stopped: dict[FrameType, list[Any]] = {}  # the paths of generators that have stopped at a ``yield``
        self.floor: object = None  # the path from which an exception is thrown to code that began outside of it
        self.handlers = [*guarded]  # what may come to know of an error, see ``guarding``
        self.appended: tuple[Any, ...] = ()  # lists that iterations of a loop append to, and see nothing of
        self.numbers = itertools.count(1)  # of kinds: the same ones in each trace of a function
        self.facts: dict[Any, Any] = {}  # what conditions say of choices, see ``narrowing``
        self.meanings: dict[int, Any] = {}
        self.known: dict[int, frozenset[int]] = {}
        self.alive: list[Any] = []
        self.selected: dict[int, Any] = {}  # what was read of several objects, by its id, see ``doubles``
        self.chosen = False  # whether there may be choices
        self.grown = False  # whether there may be lists whose length a tensor decides, see ``growth``
        self.rowed: list[Any] = []  # tensors that are items of such lists
        self.changed: list[Any] = []  # what was changed in place
        self.lengths: list[Any] = []  # nodes that are lengths of such lists


class _Active(threading.local, _Run):
    """What this thread runs, and what runs leave to each other."""

    def __init__(self) -> None:
        _Run.__init__(self)
        self.changes = 0  # how often something was changed in place
        self.refusal: TraceError | None = None  # nobody catches it
        self.passing: BaseException | None = None  # what came through a ``finally`` that ran for it
        self.innermost: Nested | None = None  # the block of ``converting`` that it is in
        self.left: Any = None  # what names of functions around held when a function returned, if a tensor decided


active = _Active()
thread_states.append(active)
trace_states.append(active)


@block
def converting() -> Iterator[None]:
    """One run of converted code.  What is wrong with names that branches bind is said when they are read."""
    new = vars(_Run(active.handlers))
    before = {name: getattr(active, name) for name in new}
    here = Nested(active.innermost)
    try:
        active.innermost = here
        vars(active).update(new)
        yield
    except BaseException as error:
        is_conditional = _is_conditional(before["scope"])
        if here.is_open(active.innermost):
            _leave_all(before["scope"])
        if not isinstance(error, Exception):
            raise
        begun = _original_error(error)
        explained = diagnostics.explain_unbound(begun, active.conflicts) if isinstance(begun, NameError) else begun
        if is_conditional:
            note_conditional_error(explained)
        if explained is error:
            raise
        raise explained from None
    finally:
        if here.is_open(active.innermost):
            active.innermost = here.outer
            vars(active).update(before)
            active.left = active.refusal = active.passing = None


def _is_conditional(outer: object) -> bool:
    """Whether a tensor decided that the code inside of the path ``outer`` ran."""
    path = active.scope
    while path is not None and path is not outer:
        if not path.is_untraced:
            return True
        path = path.parent
    return False


def _leave_all(outer: object) -> None:
    """Leave what an exception has gone through inside of the path ``outer``: places hold what they held before."""
    while active.scope is not None and active.scope is not outer:
        left = active.scope
        while left.branches:
            left.branches.pop().leave()
        active.scope = left.parent


def _original_error(error: Exception) -> Exception:
    """The error with which it began: what could not be traced, if a ``finally`` that ran for it has failed in turn.
    It finds names whose values were those of the blocks that were given up."""
    earlier: BaseException | None = error
    while earlier is not None and earlier is not active.passing:
        earlier = earlier.__context__
    return earlier if isinstance(earlier, TraceError) else error
