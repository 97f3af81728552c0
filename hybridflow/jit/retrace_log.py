"""Why a function was traced again: found by comparing cache keys, recorded, and said aloud when it keeps happening."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from hybridflow import flags
from hybridflow.core import pytree
from hybridflow.core.call_binding import Binder
from hybridflow.errors import short_location
from hybridflow.jit.cache_key import OPEN_EXTENT, Key, LeafKey, difference
from hybridflow.runtime import uninterruptible

if TYPE_CHECKING:
    import logging

_MAX_RETRACES = 256  # retraces remembered per function
_WARN_AT = 3  # retraces of one cause
_FIXED_SIZES = "pass size= where an operation takes it, which gives one shape to all calls"
_OUTSIDE = "value from outside"  # the kind of a cause that is no argument


@uninterruptible.loaded
def logger() -> logging.Logger:
    import logging  # three milliseconds that most processes need not spend

    return logging.getLogger("hybridflow")


@dataclass(frozen=True)
class Retrace:
    """One call that had to trace although the function had been traced before."""

    function: str
    where: str | None  # the call, file:line
    argument: str  # path of the first argument that differs from the closest earlier signature
    old: str
    new: str
    others: int  # how many more arguments differ
    trace_ms: float
    compile_ms: float
    suggestion: str

    def __str__(self) -> str:
        more = f" and {self.others} more" if self.others else ""
        place = f" at {short_location(self.where)}" if self.where else ""
        return (
            f"{self.function}{place}: {self.argument}: {self.old} → {self.new}{more}"
            f" ({self.trace_ms:.1f} ms to trace, {self.compile_ms:.1f} ms to compile); {self.suggestion}"
        )

    __repr__ = __str__


class Cause(NamedTuple):
    """What made a key differ from the closest one that was known."""

    argument: str
    kind: str
    old: str
    new: str
    others: int
    suggestion: str

    @property
    def subject(self) -> str:
        """What differs, in words."""
        if self.kind == _OUTSIDE:
            return f"{self.argument}, which is read from outside,"
        return f"the {self.kind} of argument {self.argument}"

    def __str__(self) -> str:
        more = f" and {self.others} more" if self.others else ""
        return f"{self.argument}: {self.old} → {self.new}{more}. To avoid it: {self.suggestion}"


def _shape_of(structure: pytree.Structure) -> str:
    """A structure in words: ``list of 3``."""
    if structure.kind is None:
        return "a single value"
    name = structure.kind.__name__
    if structure.kind in pytree.MAPPINGS:
        return f"{name} with keys {', '.join(map(repr, structure.order))}" if structure.order else f"empty {name}"
    return f"{name} of {len(structure.children)}"


def _structure_cause(binder: Binder, old: pytree.Structure, new: pytree.Structure) -> Cause:
    """The first place where two structures differ."""
    steps = [(name, a, b) for name, a, b in zip(binder.parameters, old.children, new.children)]
    while steps:
        path, a, b = steps.pop(0)
        if a == b:
            continue
        if a.same_container(b):
            names = pytree.child_paths(a, path)
            steps = [(name, x, y) for name, x, y in zip(names, a.children, b.children)]
            continue
        suggestion = "pass one structure: the same containers, lengths and keys"
        if a.labels and a.same_labels(b):
            suggestion += ", in one order"
        return Cause(path, "structure", _shape_of(a), _shape_of(b), 0, suggestion)
    raise AssertionError("the structures are equal")


def captured_value_cause(text: str, old: str, new: str) -> Cause:
    """A value that was read from outside is another one."""
    suggestion = "pass it as an argument (a tensor, if it is a number), or keep it in an hf.Variable"
    return Cause(text, _OUTSIDE, old, _other(old, new), 0, suggestion)


def _other(old: str, new: str) -> str:
    """What a new value is called, beside an old one: an object may look as another did, and lie where that lay."""
    return "another one" if old == new else new


def argument_cause(binder: Binder, new: Key, known: Iterable[Key]) -> Cause | None:
    """How ``new`` differs from the closest of the ``known`` keys, the later one of two that are as close."""
    best: tuple[int, list[tuple[str, LeafKey, LeafKey]]] | None = None
    other: pytree.Structure | None = None
    for old in known:
        if old.structure != new.structure:
            other = old.structure
            continue
        keys = zip(binder.paths(new.structure), old.leaves, new.leaves)
        differing = [(path, a, b) for path, a, b in keys if a != b]
        if differing and (best is None or len(differing) <= best[0]):
            best = len(differing), differing
    if best is None:
        return None if other is None else _structure_cause(binder, other, new.structure)
    path, a, b = best[1][0]
    kind, suggestion = difference(a, b)
    return Cause(path, kind, str(a), _other(str(a), str(b)), best[0] - 1, suggestion)


class RetraceLog:
    """The retraces of one function.  An argument that is ``not_the_users`` holds the sizes that a program finds, and no
    warning tells of it."""

    __slots__ = ("_counts", "_name", "last_at", "not_the_users", "records")

    def __init__(self, name: str) -> None:
        self._name = name
        self._counts: dict[tuple[str, str], int] = {}
        self.records: deque[Retrace] = deque(maxlen=_MAX_RETRACES)
        self.last_at = 0  # how many calls were answered when the last one was over
        self.not_the_users: str | None = None

    def add(self, cause: Cause, where: str | None, trace_ms: float, compile_ms: float, calls: int) -> Retrace:
        """Record one retrace after so many calls, and warn at the third of one cause, unless it cannot go on."""
        is_users = self.not_the_users is None or not cause.argument.startswith(self.not_the_users)
        if not is_users:
            cause = cause._replace(argument="sizes that values decide", suggestion=_FIXED_SIZES)
        record = Retrace(
            self._name,
            where,
            cause.argument,
            cause.old,
            cause.new,
            cause.others,
            trace_ms,
            compile_ms,
            cause.suggestion,
        )
        self.records.append(record)
        self.last_at = calls
        if flags.logs("retrace"):
            print(f"[retrace] {record}", file=sys.stderr)
        if not is_users:
            return record
        counted = cause.argument, cause.kind
        self._counts[counted] = self._counts.get(counted, 0) + 1
        if self._counts[counted] == _WARN_AT and cause.kind != OPEN_EXTENT:
            logger().warning(
                "%s was traced again %d times because %s changes (last %s → %s%s). To avoid it: %s.",
                self._name,
                _WARN_AT,
                cause.subject,
                cause.old,
                cause.new,
                f", at {short_location(where)}" if where else "",
                cause.suggestion,
            )
        return record

    @property
    def last(self) -> Retrace | None:
        return self.records[-1] if self.records else None

    def clear(self) -> None:
        self._counts.clear()
        self.records.clear()

    def describe_last(self, calls: int) -> str:
        """``last retrace 3 calls ago (x: f32[31,8] → f32[32,8])``; empty when there was none."""
        last = self.last
        if last is None:
            return ""
        ago = calls - self.last_at
        when = "just now" if ago == 0 else f"{ago} call{'s' if ago != 1 else ''} ago"
        return f"last retrace {when} ({last.argument}: {last.old} → {last.new})"
