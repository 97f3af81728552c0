"""The processes that share a program's replicas out, as what is done once for all of them sees it.

A process that is alone does everything.  ``hf.distribute`` says where there are others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

COME_AGAIN = 75  # the exit code of who was told to end, and has saved what it needs to go on: EX_TEMPFAIL
MISSED = 76  # the exit code of who waits in vain for another, which has failed before: EX_PROTOCOL


class Processes(Protocol):
    """The processes of a run, of which this is one."""

    rank: int
    size: int

    def say(self, what: str, numbers: Sequence[int]) -> list[list[int]]:
        """The numbers that each process says here."""

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


def place() -> tuple[int, int]:
    """The rank of this process, and how many there are."""
    return (0, 1) if _all is None else (_all.rank, _all.size)


def is_alone() -> bool:
    """Whether no other process shares the replicas out with this one."""
    return _all is None


def once(what: str, do: Callable[[], None]) -> None:
    """Do something in the first process alone.  It is done when this returns, and where it fails all raise."""
    if _all is None:
        do()
    else:
        _all.once(what, do)


def say(what: str, numbers: Sequence[int]) -> list[list[int]]:
    """The numbers that each process says, in the order of their ranks.  All must come here."""
    return [list(numbers)] if _all is None else _all.say(what, numbers)
