"""The processes that share a program's replicas out, as what is done once for all of them sees it.

A process that is alone does everything.  ``hf.distribute`` says where there are others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Processes(Protocol):
    """The processes of a run, of which this is one."""

    rank: int

    def once(self, what: str, do: Callable[[], None]) -> None:
        """Have the first process do something, while the others wait."""


_all: Processes | None = None


def join(others: Processes | None) -> None:
    """This process is one of several, or alone."""
    global _all
    _all = others


def is_first() -> bool:
    """Whether this process does what is done once for all."""
    return _all is None or _all.rank == 0


def once(what: str, do: Callable[[], None]) -> None:
    """Do something in the first process alone.  It is done when this returns, and where it fails all raise."""
    if _all is None:
        do()
    else:
        _all.once(what, do)
