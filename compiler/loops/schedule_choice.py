"""Which of the schedules of a kernel is taken: the first one, unless a measurement or a test has chosen another.

A kernel's facts, as text, are the key under which a measurement is kept; the schedule's text is what is kept.  So a
choice outlives the program that it was measured in, and one that the compiler no longer offers is forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Protocol, TypeVar

S = TypeVar("S")

MOST = 32  # schedules of a kernel that are compared


class Choose(Protocol):
    """Takes one of the schedules that there are for a kernel of such facts, of which the first is the usual one."""

    def __call__(self, facts: Any, schedules: Iterable[S]) -> S: ...


def take_first(facts: object, schedules: Iterable[S]) -> S:
    """The usual choice."""
    return next(iter(schedules))


@dataclass(frozen=True)
class Choices:
    """How a program's schedules are chosen: those ``measured`` for facts, else the usual ones, or for each kernel the
    one of number ``forced``, where those that have fewer begin anew."""

    forced: int | None = None
    measured: Mapping[str, str] = field(default_factory=dict)


USUAL = Choices()


class Chooser:
    """Chooses the schedule of one kernel, and notes what there was to choose from."""

    def __init__(self, choices: Choices) -> None:
        self.choices = choices
        self.facts, self.count = "", 1

    def __call__(self, facts: Any, schedules: Iterable[S]) -> S:
        forced, measured = self.choices.forced, self.choices.measured
        if forced is None and not measured:
            return take_first(facts, schedules)
        self.facts = str(facts)
        options = list(_distinct(schedules))
        self.count = len(options)
        wanted = measured.get(self.facts)
        for option in options:
            if wanted is not None and str(option) == wanted:
                return option
        return options[(forced or 0) % len(options)]


def _distinct(schedules: Iterable[S]) -> Iterator[S]:
    """Those that differ as text, ``MOST`` at the most."""
    seen: set[str] = set()
    for schedule in islice(schedules, MOST):
        text = str(schedule)
        if text not in seen:
            seen.add(text)
            yield schedule
