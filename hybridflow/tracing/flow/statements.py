"""A loop statement that runs, as Python's and as a loop of the program: what both know of it."""

from __future__ import annotations

from collections.abc import Sequence
from types import FrameType
from typing import Any, NamedTuple

from hybridflow.core.context import now
from hybridflow.tracing.flow import blame
from hybridflow.tracing.flow.outcomes import Kind, Values
from hybridflow.tracing.flow.paths import Path, path_in, unwound
from hybridflow.tracing.flow.state import active


class Before(NamedTuple):
    """What there was before a turn that may have to be forgotten."""

    values: Values
    path: Path | None
    trace: Any
    mark: Any
    doubles: list[Any]
    spent: list[Any]
    appended: tuple[Any, ...]

    @classmethod
    def here(cls, values: Values, path: Path | None = None) -> Before:
        """As it is, in ``path`` or the innermost one."""
        trace: Any = now().trace
        doubles, spent = list(active.doubles), list(active.spent)
        return cls(values, path or active.path, trace, trace.mark(), doubles, spent, active.appended)

    def back(self) -> None:
        unwound(self.path)
        self.trace.back_to(self.mark)
        active.doubles, active.spent, active.appended = self.doubles, self.spent, self.appended


class LoopStatement:
    """``names`` are those that it binds, ``outer`` the loop around it, ``lists`` those of which it only appends to
    what they hold.

    ``fresh`` says that names have values (``held``) that the code has yet to take; ``over``, that the condition is not
    to be asked any more; ``is_done``, that nothing has left the loop before its end.
    """

    # Most loops never change these.
    where: blame.Where | None = None
    path: Path | None = None
    before: Path | None = None  # that of the turns which Python ran before it became a loop of the program
    staged: Any = None  # the loop of the program, while it is traced
    attempt: Before | None = None
    is_done = fresh = over = False
    _breaks: Kind | None = None
    _continues: Kind | None = None

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

    def enter_path(self, where: blame.Where) -> None:
        """Have a path: something in the loop depends on a tensor."""
        if self.path is not None or self.staged is not None:
            return
        if self.outer is not None:
            self.outer.enter_path(where)
        self.where = self.where or where
        self.path = active.path = Path(self.frame, path_in(self.frame), None)

    def kind(self, slot: str, what: str) -> Kind:
        found: Kind | None = getattr(self, slot)
        if found is None:
            found = Kind(what)
            setattr(self, slot, found)
        return found

    def offer(self, values: Values | None) -> None:
        if values is not None:
            self.held, self.fresh = values, True
            active.offered[self.frame] = values
