"""Patterns of ``match`` and their subjects, where what is compared may be a tensor.

Classes, lengths and keys are Python's; they say at once whether a subject fits.  Values are compared in the program.
Of one of several subjects, of which a tensor decides, each is matched by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hybridflow.array import elementwise
from hybridflow.autograph.hooks.comparisons import both, either, equal, truth
from hybridflow.autograph.hooks.per_choice import frame_of_user
from hybridflow.autograph.runtime import branch_merge, narrowing
from hybridflow.autograph.runtime.choices import Choice, is_choice
from hybridflow.autograph.runtime.indexed_select import select
from hybridflow.guards import builtin_reads
from hybridflow.guards.attribute_reads import MISSING
from hybridflow.guards.guard_builder import active
from hybridflow.tracing.symbolic_number import is_number, number_of

Pattern = tuple[Any, ...]
Captures = dict[int, Any]
MatchResult = tuple[Any, Captures]  # whether it fits, a bool or a tensor of one, and what the names are

_SEQUENCE, _MAPPING = 1 << 5, 1 << 6  # Py_TPFLAGS_SEQUENCE, Py_TPFLAGS_MAPPING of CPython's object.h
_OF_THEMSELVES = (bool, bytearray, bytes, dict, float, frozenset, int, list, set, str, tuple)
_NOTHING: MatchResult = False, {}


class Case:
    """What came of a pattern."""

    __slots__ = ("captured", "holds")

    def __init__(self, holds: Any, captured: Captures) -> None:
        self.holds = holds if isinstance(holds, bool) else number_of(holds)
        self.captured = captured


class Matcher:
    """``operands`` are the classes and values of patterns; ``isinstance`` is Python's as converted code asks it."""

    def __init__(self, operands: Sequence[Any], isinstance: Callable[[Any, Any], bool]) -> None:
        self._operands, self._isinstance = operands, isinstance

    def case(self, subject: object, pattern: Pattern) -> Case:
        return Case(*self._match(subject, pattern))

    def _match(self, subject: object, pattern: Pattern) -> MatchResult:
        subject = narrowing.narrow(subject)
        kind, *parts = pattern
        if kind == "as" and parts[0] is None:
            return True, {} if parts[1] < 0 else {parts[1]: subject}
        if is_choice(subject):
            return self._of_each(subject, pattern)
        result: MatchResult = getattr(self, f"_{kind}")(subject, *parts)
        return result

    def _of_each(self, choice: Choice, pattern: Pattern) -> MatchResult:
        left = narrowing.remaining_options(choice)
        matches = {k: self._match(choice.options[k], pattern) for k in left}
        fits = [k for k in left if matches[k][0] is not False]
        if not fits:
            return _NOTHING
        if all(matches[k][0] is True for k in fits):
            holds = truth(narrowing.is_one_of(choice, fits))
        else:
            holds = False
            for k in fits:
                holds = either(holds, both(elementwise.equal(choice.code, k), matches[k][0]))
        captures = {}
        for name in matches[fits[0]][1]:
            values = [matches[k if k in fits else fits[0]][1][name] for k in range(len(choice.options))]
            captures[name] = values[0] if len(fits) == 1 else select(choice.code, values, frame_of_user())
        return holds, captures

    def _all(self, values: Sequence[Any], patterns: Sequence[Pattern]) -> MatchResult:
        holds: Any = True
        captures: Captures = {}
        for value, pattern in zip(values, patterns):
            one, match = self._match(value, pattern)
            if one is False:
                return _NOTHING
            holds = both(holds, one)
            captures.update(match)
        return holds, captures

    def _value(self, subject: object, operand: int) -> MatchResult:
        return equal(subject, self._operands[operand]), {}

    def _singleton(self, subject: Any, value: object) -> MatchResult:
        if is_number(subject) and isinstance(value, bool):
            if subject.kind is not bool:
                return (False, {}) if subject.narrow is not bool else _undecided(subject)
            return truth(subject if value else elementwise.logical_not(subject)), {}
        return subject is value, {}

    def _as(self, subject: object, pattern: Pattern, name: int) -> MatchResult:
        holds, captures = self._match(subject, pattern)
        return holds, captures if name < 0 else {**captures, name: subject}

    def _or(self, subject: object, patterns: Sequence[Pattern]) -> MatchResult:
        holds, captures = _NOTHING
        for pattern in patterns:
            one, match = self._match(subject, pattern)
            if one is False:
                continue
            if holds is False:
                captures = match
            elif match:
                frame = frame_of_user()
                captures = {name: branch_merge.select(holds, captures[name], match[name], frame) for name in match}
            holds = either(holds, one)
            if holds is True or one is True:
                return True, captures
        return holds, captures

    def _sequence(self, subject: Any, star: int, patterns: Sequence[Pattern]) -> MatchResult:
        if not type(subject).__flags__ & _SEQUENCE:
            return _NOTHING
        count, wanted = len(subject), len(patterns)
        if star < 0:
            if count != wanted:
                return _NOTHING
            return self._all([subject[k] for k in range(count)], patterns)
        if count < wanted - 1:
            return _NOTHING
        after = wanted - 1 - star
        values = [subject[k] for k in range(count)]
        middle = values[star : count - after]
        return self._all([*values[:star], middle, *values[count - after :]], patterns)

    def _mapping(self, subject: Any, keys: Sequence[int], patterns: Sequence[Pattern], rest: int) -> MatchResult:
        if not type(subject).__flags__ & _MAPPING:
            return _NOTHING
        names = [self._operands[key] for key in keys]
        values = [subject.get(name, MISSING) for name in names]
        if any(value is MISSING for value in values):
            return _NOTHING
        holds, captures = self._all(values, patterns)
        if rest >= 0 and holds is not False:
            captures[rest] = {key: value for key, value in dict(subject).items() if key not in names}
        return holds, captures

    def _class(
        self, subject: object, kind: int, patterns: Sequence[Pattern], names: Sequence[str], named: Sequence[Pattern]
    ) -> MatchResult:
        cls = self._operands[kind]
        if not isinstance(cls, type):
            raise TypeError("called match pattern must be a class")
        if not self._isinstance(subject, cls):
            return _NOTHING
        places = self._positions(subject, cls, len(patterns))
        for name in names:
            if name in places:
                raise TypeError(f"{cls.__name__}() got multiple sub-patterns for attribute '{name}'")
        values = []
        for place in (*places, *names):
            value = subject if place is None else self._attribute(subject, place)
            if value is MISSING:
                return _NOTHING
            values.append(value)
        return self._all(values, [*patterns, *named])

    def _attribute(self, subject: object, name: str) -> Any:
        recording = active.recording
        if recording is None:
            return getattr(subject, name, MISSING)
        return builtin_reads.get_attribute(recording, subject, name, MISSING)

    def _positions(self, subject: object, cls: type, count: int) -> Sequence[str | None]:
        """The attributes that positional patterns look at; None for the subject itself."""
        if not count:
            return ()
        names = getattr(cls, "__match_args__", None)
        if names is None and issubclass(cls, _OF_THEMSELVES):
            names = (None,)
        names = names or ()
        if count > len(names):
            many = "" if len(names) == 1 else "s"
            raise TypeError(f"{cls.__name__}() accepts {len(names)} positional sub-pattern{many} ({count} given)")
        result: Sequence[str | None] = names[:count]
        return result


def _undecided(number: Any) -> MatchResult:
    raise number.undecided("match asks which")
