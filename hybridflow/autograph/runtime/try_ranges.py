"""The lines of a function whose errors its clauses come to know."""

from __future__ import annotations

import builtins
import contextlib
from types import FrameType
from typing import Any, NamedTuple

from hybridflow.errors import short_location


class TryRange(NamedTuple):
    """Lines of a function whose errors something comes to know: ``except`` clauses, which catch the exceptions of the
    names ``catches`` (an empty one stands for whatever they may be); ``finally``, which runs after them; or the
    ``manager`` of a ``with``, to whom it matters."""

    frame: FrameType
    first: int
    last: int
    catches: tuple[str, ...]
    names: tuple[str, ...] = ()  # what its blocks bind
    is_finally: bool = False
    is_group: bool = False  # except*
    manager: Any = None

    @property
    def location(self) -> str:
        line = self.first if self.manager is not None else self.first - 1
        return short_location(f"{self.frame.f_code.co_filename}:{line}")

    def covers(self, frame: FrameType) -> bool:
        return self.frame is frame and self.first <= frame.f_lineno <= self.last

    def may_catch(self, kind: type[BaseException] | None) -> bool:
        """Whether exceptions of a kind, or some of any kind, may be caught, or come to be known."""
        if self.manager is not None:
            is_suppress = isinstance(self.manager, contextlib.suppress)
            return not is_suppress or kind is None or issubclass(kind, self.manager._exceptions)
        if kind is None:
            return bool(self.catches)
        return any(_catches(self.frame, name, kind) for name in self.catches)

    def is_same(self, other: TryRange) -> bool:
        return self.frame is other.frame and self[1:4] == other[1:4] and self.is_finally == other.is_finally


def _catches(frame: FrameType, name: str, kind: type[BaseException]) -> bool:
    """Whether an except clause for ``name`` may catch exceptions of a kind."""
    first, *rest = name.split(".")
    for names in (frame.f_locals, frame.f_globals, vars(builtins)):
        if first in names:
            value = names[first]
            for part in rest:
                value = getattr(value, part, None)
            kinds = value if isinstance(value, tuple) else (value,)
            return not all(isinstance(one, type) for one in kinds) or issubclass(kind, kinds)
    return True
