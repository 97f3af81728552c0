"""A loop statement that runs, as Python's and as a loop of the program: what both know of it."""

from __future__ import annotations

from collections.abc import Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

from hybridflow.autograph.runtime import diagnostics
from hybridflow.autograph.runtime.branch_stack import BranchScope, scope_of, unwind
from hybridflow.autograph.runtime.exits import ExitKind, Values
from hybridflow.autograph.runtime.state import active
from hybridflow.core.context import now

if TYPE_CHECKING:
    from hybridflow.tracing.trace import Trace


class Before(NamedTuple):
    """What there was before an iteration that may have to be forgotten."""

    values: Values
    path: BranchScope | None
    trace: Trace
    mark: object
    may_alias: list[Any]
    spent: list[Any]
    appended: tuple[Any, ...]

    @classmethod
    def here(cls, values: Values, path: BranchScope | None = None) -> Before:
        """As it is, in ``path`` or the innermost one."""
        trace: Any = now().trace
        doubles, spent = list(active.may_alias), list(active.spent)
        return cls(values, path or active.scope, trace, trace.mark(), doubles, spent, active.appended)

    def back(self) -> None:
        unwind(self.path)
        self.trace.rollback_to(self.mark)
        active.may_alias, active.spent, active.appended = self.may_alias, self.spent, self.appended


class LoopStatement:
    """``names`` are those that it binds, ``outer`` the loop around it, ``lists`` those of which it only appends to
    what they hold.

    ``fresh`` says that names have values (``held``) that the code has yet to take; ``over``, that the condition is not
    to be asked any more; ``is_done``, that nothing has left the loop before its end.
    """

    # Most loops never change these.
    where: diagnostics.CodeLocation | None = None
    path: BranchScope | None = None
    before: BranchScope | None = None  # that of the iterations which Python ran before it became a loop of the program
    staged: object = None  # the loop of the program, while it is traced
    attempt: Before | None = None
    is_done = fresh = over = False
    _breaks: ExitKind | None = None
    _continues: ExitKind | None = None

    def __init__(
        self,
        frame: FrameType,
        names: Sequence[str],
        outer: LoopStatement | None,
        has_else: bool,
        lists: Sequence[str] = (),
    ) -> None:
        self.frame, self.names, self.outer, self.has_else, self.lists = frame, names, outer, has_else, lists
        self.held: Values = {}

    def enter_path(self, where: diagnostics.CodeLocation) -> None:
        """Have a path: something in the loop depends on a tensor."""
        if self.path is not None or self.staged is not None:
            return
        if self.outer is not None:
            self.outer.enter_path(where)
        self.where = self.where or where
        self.path = active.scope = BranchScope(self.frame, scope_of(self.frame), None)

    def kind(self, slot: str, what: str) -> ExitKind:
        result: ExitKind | None = getattr(self, slot)
        if result is None:
            result = ExitKind(what)
            setattr(self, slot, result)
        return result

    def offer(self, values: Values | None) -> None:
        if values is not None:
            self.held, self.fresh = values, True
            active.offered[self.frame] = values
