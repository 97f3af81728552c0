"""What instrumented code calls at branches, loops, ``try`` and ``return``: see ``tracing.convert.flow``."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Sequence
from typing import Any

from hybridflow.array.elementwise import logical_not
from hybridflow.core.context import current
from hybridflow.effects import caught, managers, op_errors  # noqa: F401  # the last is told of ops
from hybridflow.jit.guards import choosing, list_reads, questions
from hybridflow.jit.guards.notes import INERT, note_truth
from hybridflow.jit.guards.recording import active
from hybridflow.jit.guards.specials import is_open
from hybridflow.tracing.flow import blame, clauses, endings, guarding, narrowing, outcomes, paths, state, taking
from hybridflow.tracing.flow.choices import Choice
from hybridflow.tracing.flow.forks import Fork, truth
from hybridflow.tracing.flow.loops import Loop
from hybridflow.tracing.flow.outcomes import listed
from hybridflow.tracing.flow.places import UNBOUND


class Branches:
    """The calls of control flow; the recorder has them with those of reads and writes."""

    __slots__ = ()

    def iterate(self, value: Any, depth: int = 0) -> Any:
        """What is iterated over, or unpacked; the items, too, so many levels down."""
        recording = active.recording
        if isinstance(value, Choice):
            value = choosing.iterated(value, sys._getframe(1))
        if list_reads.is_grown(value):
            return list_reads.iterated(value)
        if recording is not None and type(value) not in INERT:
            recording.note(questions.iterate, value, depth)
            taking.check_takes(value)
        return value

    def unpacked(self, value: Any) -> Any:
        """``[*value]``"""
        return value if list_reads.is_grown(value) else self.iterate(value)

    def test(self, value: Any) -> Any:
        """A value whose truth is asked for."""
        recording = active.recording
        if recording is not None and type(value) not in INERT:
            recording.note(note_truth, value)
        return value

    unbound = UNBOUND
    failures = Exception
    anything = BaseException
    stays = object()
    Fork = Fork

    def fork(self, value: Any, names: Sequence[str], loop: Loop | None) -> Any:
        """The condition of a statement or operator: a bool, or a Fork where it is a tensor."""
        if value is True or value is False:
            return value
        value = _decided(value, loop)
        if is_open(value):
            frame = sys._getframe(1)
            return _forked(value, frame, listed(names), loop)
        return bool(self.test(value))

    def fork_not(self, value: Any, names: Sequence[str], loop: Loop | None) -> Any:
        """As ``fork``, of the opposite."""
        value = _decided(value, loop)
        if is_open(value):
            return _forked(logical_not(truth(value)), sys._getframe(1), listed(names), loop)
        return not self.test(value)

    def negated(self, value: Any) -> Any:
        """``not value``"""
        value = _truth(value)
        return logical_not(truth(value)) if is_open(value) else not self.test(value)

    @staticmethod
    def took(fork: Any, value: Any) -> Any:
        """The first value of ``one if ... else other``."""
        return fork.took(value) if type(fork) is Fork else value

    @staticmethod
    def chosen(fork: Any, one: Any, other: Any) -> Any:
        """``one if ... else other``"""
        return one if fork is True else other if fork is False else fork.value(one, other)

    @staticmethod
    def second(first: Any, second: Any, fork: Any, is_and: bool) -> Any:
        """``first and second``, ``first or second``, where ``fork`` says whether it is the second."""
        if fork is True:
            return second
        if fork is False:
            return first
        fork.took(second)
        fork.between()
        found = fork.value(second, first, binds=False)
        narrowing.note_meaning(found, is_and, fork.pred, second)
        return found

    def truth_of_second(self, first: Any, second: Any, fork: Any, is_and: bool) -> Any:
        """As ``second``, where nothing but its truth matters."""
        if fork is True:
            return second
        if fork is False:
            return first
        second = _truth(second)
        second = truth(second) if is_open(second) else bool(self.test(second))
        fork.took(second)
        fork.between()
        found = fork.value(second, not is_and, binds=False)
        narrowing.note_meaning(found, is_and, fork.pred, second)
        return found

    @staticmethod
    def condition(value: Any) -> Any:
        """The condition of a ``while``."""
        return _truth(value)

    @staticmethod
    def bound(value: Any) -> Any:
        """A local name that may have no value is read."""
        return choosing.bound(value, sys._getframe(1)) if isinstance(value, Choice) else value

    @staticmethod
    def live() -> bool:
        """Whether what follows a statement that may leave is come to."""
        path = state.active.path
        return path is None or path.bundle is None or path.frame is not sys._getframe(1)

    def returns(self, value: Any, names: Sequence[str]) -> Any:
        """What ``return`` returns in fact, or ``stays``; ``finally`` may yet read the names."""
        if state.active.path is None:
            state.active.left = None
            return narrowing.narrowed(value)
        return endings.returned(sys._getframe(1), value, self.stays, listed(names))

    def returned_by_end(self, names: Sequence[str]) -> Any:
        """What a function returns that has come to its end."""
        if state.active.path is None:
            state.active.left = None
            return None
        return endings.returned(sys._getframe(1), None, None, listed(names))

    @staticmethod
    def left(names: Sequence[str]) -> Any:
        """What variables of functions around hold when a function returns, where a tensor has decided about that."""
        values = state.active.left
        if values is None:
            return None
        frame = sys._getframe(1)
        return outcomes.given_back(values, listed(names), frame, blame.here(frame, "return"))

    @staticmethod
    def yields(value: Any) -> Any:
        """Before ``yield``."""
        path = state.active.path
        if path is not None:
            frame = sys._getframe(1)
            endings.stopped(frame)
            loop = state.active.loops.get(frame)
            if loop is None:
                paths.check_not_staged(frame, "yield stands", "Take the items in a for statement.")
            else:
                loop.stops()
        return value

    @staticmethod
    def resumed(value: Any) -> Any:
        """After ``yield``."""
        if state.active.stopped:
            endings.resumed(sys._getframe(1))
        return value

    @staticmethod
    def depth() -> Any:
        """Before ``try`` or ``with``."""
        return paths.depth()

    @staticmethod
    def pause(since: Any, names: Sequence[str], one: Any = None) -> Any:
        """At the end of a block that may have been left, but at whose end something is to run: ``one`` if it is that of
        a ``with``."""
        found = None if state.active.path is None else endings.pause(sys._getframe(1), since, listed(names))
        return one.pause(found) if type(one) is managers.With else found

    @staticmethod
    def leaving(one: Any, names: Sequence[str]) -> Any:
        """After a pause at the end of a ``with``: whether its manager is to be left."""
        return one.leaving(listed(names)) if type(one) is managers.With else False

    @staticmethod
    def common(bundle: Any, names: Sequence[str]) -> list[Any]:
        """When ``finally`` begins after a pause."""
        return endings.common(sys._getframe(1), bundle, listed(names))

    @staticmethod
    def resume(bundle: Any, names: Sequence[str], ended: int, one: Any = None) -> list[Any]:
        """After such a block; ``ended`` is the line at which a block with ``finally`` begins, 0 for others."""
        frame = sys._getframe(1)
        if type(one) is managers.With:
            bundle = one.resumed(bundle, listed(names))
        if ended:
            endings.changed(frame, bundle)
            returned, bundle = bundle.returned, caught.passed_on(frame, bundle, ended)
            bundle.returned = returned
        return endings.resume(frame, bundle, listed(names))

    @staticmethod
    def caught_really(since: Any) -> None:
        """When ``except`` has caught something."""
        endings.resumed(sys._getframe(1))
        endings.caught(since)

    @staticmethod
    def passed(since: Any) -> None:
        """When ``finally`` begins."""
        endings.resumed(sys._getframe(1))
        endings.passed(since[0])

    @staticmethod
    def tries(
        first: int, last: int, catches: tuple[str, ...], names: tuple[str, ...], is_group: bool, loop: Loop | None
    ) -> Any:
        """Before ``try``, of whose lines some may raise what it ``catches``."""
        if current.trace is None:
            return None
        frame = sys._getframe(1)
        if loop is not None:
            loop.enter_path(blame.here(frame, "try"))
        guarded = clauses.Guarded(frame, first, last, catches, listed(names), is_group=is_group)
        guarding.guard(guarded)
        return caught.Try(frame, guarded)

    @staticmethod
    def arrived(one: Any) -> bool:
        """Whether a ``try`` has errors to catch of which a tensor decides."""
        return type(one) in (caught.Try, managers.With) and state.active.path is not None and one.arrived()

    @staticmethod
    def finally_(first: int, last: int, names: tuple[str, ...], loop: Loop | None) -> None:
        """Before ``try`` with ``finally``, and the lines after which that runs."""
        if current.trace is not None:
            frame = sys._getframe(1)
            if loop is not None:
                loop.enter_path(blame.here(frame, "try"))
            guarding.guard(clauses.Guarded(frame, first, last, (), listed(names), is_finally=True))

    @staticmethod
    def managed(value: Any, first: int, last: int, names: tuple[str, ...], loop: Loop | None) -> Any:
        """The manager of a ``with``, and its lines."""
        frame = sys._getframe(1)
        found = managers.managed(value, frame, first, last, listed(names))
        if found is not value and loop is not None:
            loop.enter_path(blame.here(frame, "with"))
        return found

    @staticmethod
    def threw(since: Any) -> bool:
        """Whether an exception has left a block in the program."""
        endings.resumed(sys._getframe(1))
        return caught.threw(sys._getframe(1), since)

    @staticmethod
    def is_staged() -> bool:
        """Whether it depends on a tensor that the running line is come to."""
        return state.active.path is not None and paths.is_staged(sys._getframe(1))

    @staticmethod
    def raises_later(error: Any, cause: Any) -> None:
        """``raise error from cause`` where it depends on a tensor whether that is come to."""
        caught.raise_later(sys._getframe(1), _exception(error), _exception(cause))

    @staticmethod
    def raises_again() -> None:
        """``raise`` there."""
        error = sys.exc_info()[1]
        if error is None:
            error = RuntimeError("No active exception to reraise")
        caught.raise_later(sys._getframe(1), error, error.__cause__)

    @staticmethod
    def require(value: Any, *message: Any) -> None:
        """``assert value, message`` of a tensor."""
        caught.require(sys._getframe(1), truth(_truth(value)), AssertionError(*message))

    is_open = staticmethod(is_open)
    assertion = AssertionError

    @staticmethod
    def loop(names: Sequence[str], outer: Loop | None, has_else: bool) -> Loop:
        """A ``while`` begins."""
        return Loop(sys._getframe(1), listed(names), outer, has_else)

    def each(self, names: Sequence[str], outer: Loop | None, has_else: bool, lists: Sequence[str], value: Any) -> Loop:
        """A ``for`` over ``value`` begins; of what the names ``lists`` hold its body does nothing but append to it."""
        found = Loop(sys._getframe(1), listed(names), outer, has_else, lists)
        found.over_items(self.iterate(value))
        return found

    def listed(self, made: Callable[[list[Any], Any], None], items: Any) -> list[Any]:
        """A list comprehension over items, which ``made`` puts into a list."""
        found: list[Any] = []
        made(found, items)
        return found

    def walk(self, items: Any, body: Callable[..., Any], several: bool) -> None:
        """``for item in items: body(item)``; the item is unpacked where there are ``several`` in it."""
        loop = Loop(sys._getframe(1), listed(()), None, False)
        loop.over_items(list_reads.as_rows(self.iterate(items, several)))
        for item in loop:
            if loop.fresh:
                loop.values(())
            if loop.again:
                continue
            try:
                body(*self.iterate(item)) if several else body(item)
            except Exception:
                if not loop.failed():
                    raise
        if loop.fresh:
            loop.values(())
        loop.leave(())


def _truth(value: Any) -> Any:
    """Something of which nothing but the truth is wanted."""
    return list_reads.truth(value) if list_reads.is_grown(value) else choosing.truth(value)


def _decided(value: Any, loop: Loop | None) -> Any:
    """The condition of a statement: known, where it is one of how many items a list has and in no loop."""
    if state.active.grown and loop is None:
        return list_reads.decided(value)
    return _truth(value)


def _forked(value: Any, frame: types.FrameType, names: Sequence[str], loop: Loop | None) -> Fork:
    where = blame.here(frame, "if")
    if loop is not None:
        loop.enter_path(where)
    recording, active.recording = active.recording, None
    try:
        return Fork(value, frame, names, where)
    finally:
        active.recording = recording


def _exception(value: Any) -> Any:
    """What ``raise`` makes of its operand."""
    if isinstance(value, type) and issubclass(value, BaseException):
        value = value()
    if value is not None and not isinstance(value, BaseException):
        raise TypeError("exceptions must derive from BaseException")
    return value
