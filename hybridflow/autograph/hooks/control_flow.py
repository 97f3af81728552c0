"""What instrumented code calls at branches, loops, ``try`` and ``return``: see ``autograph.transform.control_flow``."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Sequence
from typing import Any

from hybridflow.array.elementwise import logical_not
from hybridflow.autograph.hooks import dynamic_list_reads, per_choice
from hybridflow.autograph.hooks.builtin_overrides import is_open
from hybridflow.autograph.runtime import (  # noqa: F401  # the last is told of ops
    branch_stack,
    continuations,
    diagnostics,
    except_clauses,
    exception_handlers,
    exits,
    iterator_advance,
    narrowing,
    op_errors,
    state,
    try_ranges,
    with_statements,
)
from hybridflow.autograph.runtime.choices import is_choice
from hybridflow.autograph.runtime.conditional import Conditional, truth
from hybridflow.autograph.runtime.exits import bound_names
from hybridflow.autograph.runtime.loop import Loop
from hybridflow.autograph.runtime.mutable_locations import UNBOUND
from hybridflow.core.context import current
from hybridflow.guards import builtin_reads
from hybridflow.guards.guard_builder import active
from hybridflow.guards.read_events import INERT, note_truth


class Branches:
    """The calls of control flow; the recorder has them with those of reads and writes."""

    __slots__ = ()

    def iterate(self, value: Any, depth: int = 0) -> Any:
        """What is iterated over, or unpacked; the items, too, so many levels down."""
        recording = active.recording
        if is_choice(value):
            value = per_choice.iterate(value, sys._getframe(1))
        if dynamic_list_reads.is_grown(value):
            return dynamic_list_reads.iterate(value)
        if recording is not None and type(value) not in INERT:
            recording.note(builtin_reads.iterate, value, depth)
            iterator_advance.check_takes(value)
        return value

    def unpacked(self, value: object) -> Any:
        """``[*value]``"""
        return value if dynamic_list_reads.is_grown(value) else self.iterate(value)

    def test(self, value: object) -> Any:
        """A value whose truth is asked for."""
        recording = active.recording
        if recording is not None and type(value) not in INERT:
            recording.note(note_truth, value)
        return value

    unbound = UNBOUND
    failures = Exception
    anything = BaseException
    stays = object()
    Conditional = Conditional

    def fork(self, value: object, names: Sequence[str], loop: Loop | None) -> Any:
        """The condition of a statement or operator: a bool, or a Fork where it is a tensor."""
        if value is True or value is False:
            return value
        value = _known_condition(value, loop)
        if is_open(value):
            frame = sys._getframe(1)
            return _new_conditional(value, frame, bound_names(names), loop)
        return bool(self.test(value))

    def fork_not(self, value: object, names: Sequence[str], loop: Loop | None) -> Any:
        """As ``fork``, of the opposite."""
        value = _known_condition(value, loop)
        if is_open(value):
            return _new_conditional(logical_not(truth(value)), sys._getframe(1), bound_names(names), loop)
        return not self.test(value)

    def negated(self, value: object) -> Any:
        """``not value``"""
        value = _truth(value)
        return logical_not(truth(value)) if is_open(value) else not self.test(value)

    @staticmethod
    def took(fork: object, value: object) -> Any:
        """The first value of ``one if ... else other``."""
        return fork.set_then_value(value) if type(fork) is Conditional else value

    @staticmethod
    def chosen(fork: Any, one: object, other: object) -> Any:
        """``one if ... else other``"""
        return one if fork is True else other if fork is False else fork.value(one, other)

    @staticmethod
    def second(first: object, second: object, fork: Any, is_and: bool) -> Any:
        """``first and second``, ``first or second``, where ``fork`` says whether it is the second."""
        if fork is True:
            return second
        if fork is False:
            return first
        fork.set_then_value(second)
        fork.begin_else()
        result = fork.value(second, first, binds=False)
        narrowing.note_meaning(result, is_and, fork.pred, second)
        return result

    def truth_of_second(self, first: object, second: object, fork: Any, is_and: bool) -> Any:
        """As ``second``, where nothing but its truth matters."""
        if fork is True:
            return second
        if fork is False:
            return first
        second = _truth(second)
        second = truth(second) if is_open(second) else bool(self.test(second))
        fork.set_then_value(second)
        fork.begin_else()
        result = fork.value(second, not is_and, binds=False)
        narrowing.note_meaning(result, is_and, fork.pred, second)
        return result

    @staticmethod
    def condition(value: object) -> Any:
        """The condition of a ``while``."""
        return _truth(value)

    @staticmethod
    def bound(value: object) -> Any:
        """A local name that may have no value is read."""
        return per_choice.bound(value, sys._getframe(1)) if is_choice(value) else value

    @staticmethod
    def live() -> bool:
        """Whether what follows a statement that may leave is come to."""
        path = state.active.scope
        return path is None or path.exits is None or path.frame is not sys._getframe(1)

    def returns(self, value: object, names: Sequence[str]) -> Any:
        """What ``return`` returns in fact, or ``stays``; ``finally`` may yet read the names."""
        if state.active.scope is None:
            state.active.left = None
            return narrowing.narrow(value)
        return continuations.return_value(sys._getframe(1), value, self.stays, bound_names(names))

    def returned_by_end(self, names: Sequence[str]) -> Any:
        """What a function returns that has come to its end."""
        if state.active.scope is None:
            state.active.left = None
            return None
        return continuations.return_value(sys._getframe(1), None, None, bound_names(names))

    @staticmethod
    def left(names: Sequence[str]) -> Any:
        """What variables of functions around hold when a function returns, where a tensor has decided about that."""
        values = state.active.left
        if values is None:
            return None
        frame = sys._getframe(1)
        return exits.values_for_code(values, bound_names(names), frame, diagnostics.here(frame, "return"))

    @staticmethod
    def yields(value: object) -> Any:
        """Before ``yield``."""
        path = state.active.scope
        if path is not None:
            frame = sys._getframe(1)
            continuations.suspend_generator(frame)
            loop = state.active.loops.get(frame)
            if loop is None:
                branch_stack.check_unconditional(frame, "yield stands", "Take the items in a for statement.")
            else:
                loop.stops()
        return value

    @staticmethod
    def resumed(value: object) -> Any:
        """After ``yield``."""
        if state.active.stopped:
            continuations.resume_generator(sys._getframe(1))
        return value

    @staticmethod
    def depth() -> tuple[branch_stack.BranchScope | None, int]:
        """Before ``try`` or ``with``."""
        return branch_stack.scope_depth()

    @staticmethod
    def pause(since: tuple[branch_stack.BranchScope | None, int], names: Sequence[str], one: object = None) -> Any:
        """At the end of a block that may have been left, but at whose end something is to run: ``one`` if it is that of
        a ``with``."""
        suspended = (
            None if state.active.scope is None else continuations.pause(sys._getframe(1), since, bound_names(names))
        )
        return one.pause(suspended) if type(one) is with_statements.With else suspended

    @staticmethod
    def leaving(one: object, names: Sequence[str]) -> Any:
        """After a pause at the end of a ``with``: whether its manager is to be left."""
        return one.leaving(bound_names(names)) if type(one) is with_statements.With else False

    @staticmethod
    def common(bundle: Any, names: Sequence[str]) -> list[Any]:
        """When ``finally`` begins after a pause."""
        return continuations.common(sys._getframe(1), bundle, bound_names(names))

    @staticmethod
    def resume(bundle: Any, names: Sequence[str], ended: int, one: object = None) -> list[Any]:
        """After such a block; ``ended`` is the line at which a block with ``finally`` begins, 0 for others."""
        frame = sys._getframe(1)
        if type(one) is with_statements.With:
            bundle = one.resumed(bundle, bound_names(names))
        if ended:
            continuations.apply_merged_names(frame, bundle)
            returned, bundle = bundle.return_kind, except_clauses.passed_on(frame, bundle, ended)
            bundle.return_kind = returned
        return continuations.resume(frame, bundle, bound_names(names))

    @staticmethod
    def caught_really(since: Any) -> None:
        """When ``except`` has caught something."""
        continuations.resume_generator(sys._getframe(1))
        continuations.check_caught(since)

    @staticmethod
    def passed(since: tuple[branch_stack.BranchScope | None, int]) -> None:
        """When ``finally`` begins."""
        continuations.resume_generator(sys._getframe(1))
        continuations.begin_finally(since[0])

    @staticmethod
    def tries(
        first: int, last: int, catches: tuple[str, ...], names: tuple[str, ...], is_group: bool, loop: Loop | None
    ) -> Any:
        """Before ``try``, of whose lines some may raise what it ``catches``."""
        if current.trace is None:
            return None
        frame = sys._getframe(1)
        if loop is not None:
            loop.enter_path(diagnostics.here(frame, "try"))
        guarded = try_ranges.TryRange(frame, first, last, catches, bound_names(names), is_group=is_group)
        exception_handlers.push_handler(guarded)
        return except_clauses.Try(frame, guarded)

    @staticmethod
    def arrived(one: Any) -> bool:
        """Whether a ``try`` has errors to catch of which a tensor decides."""
        return (
            type(one) in (except_clauses.Try, with_statements.With) and state.active.scope is not None and one.arrived()
        )

    @staticmethod
    def finally_(first: int, last: int, names: tuple[str, ...], loop: Loop | None) -> None:
        """Before ``try`` with ``finally``, and the lines after which that runs."""
        if current.trace is not None:
            frame = sys._getframe(1)
            if loop is not None:
                loop.enter_path(diagnostics.here(frame, "try"))
            exception_handlers.push_handler(
                try_ranges.TryRange(frame, first, last, (), bound_names(names), is_finally=True)
            )

    @staticmethod
    def managed(value: object, first: int, last: int, names: tuple[str, ...], loop: Loop | None) -> Any:
        """The manager of a ``with``, and its lines."""
        frame = sys._getframe(1)
        result = with_statements.manage(value, frame, first, last, bound_names(names))
        if result is not value and loop is not None:
            loop.enter_path(diagnostics.here(frame, "with"))
        return result

    @staticmethod
    def threw(since: tuple[branch_stack.BranchScope | None, int]) -> bool:
        """Whether an exception has left a block in the program."""
        continuations.resume_generator(sys._getframe(1))
        return except_clauses.leaves_by_error(sys._getframe(1), since)

    @staticmethod
    def is_staged() -> bool:
        """Whether it depends on a tensor that the running line is come to."""
        return state.active.scope is not None and branch_stack.is_conditional(sys._getframe(1))

    @staticmethod
    def raises_later(error: object, cause: object) -> None:
        """``raise error from cause`` where it depends on a tensor whether that is come to."""
        except_clauses.raise_later(sys._getframe(1), _exception(error), _exception(cause))

    @staticmethod
    def raises_again() -> None:
        """``raise`` there."""
        error = sys.exc_info()[1]
        if error is None:
            error = RuntimeError("No active exception to reraise")
        except_clauses.raise_later(sys._getframe(1), error, error.__cause__)

    @staticmethod
    def require(value: object, *message: object) -> None:
        """``assert value, message`` of a tensor."""
        except_clauses.require(sys._getframe(1), truth(_truth(value)), AssertionError(*message))

    is_open = staticmethod(is_open)
    assertion = AssertionError

    @staticmethod
    def loop(names: Sequence[str], outer: Loop | None, has_else: bool) -> Loop:
        """A ``while`` begins."""
        return Loop(sys._getframe(1), bound_names(names), outer, has_else)

    def each(
        self, names: Sequence[str], outer: Loop | None, has_else: bool, lists: Sequence[str], value: object
    ) -> Loop:
        """A ``for`` over ``value`` begins; of what the names ``lists`` hold its body does nothing but append to it."""
        result = Loop(sys._getframe(1), bound_names(names), outer, has_else, lists)
        result.over_items(self.iterate(value))
        return result

    def listed(self, extend: Callable[[list[Any], Any], None], items: object) -> list[Any]:
        """A list comprehension over items, which ``extend`` puts into a list."""
        result: list[Any] = []
        extend(result, items)
        return result

    def loop_over(self, items: object, body: Callable[..., Any], several: bool) -> None:
        """``for item in items: body(item)``; the item is unpacked where there are ``several`` in it."""
        loop = Loop(sys._getframe(1), bound_names(()), None, False)
        loop.over_items(dynamic_list_reads.as_rows(self.iterate(items, several)))
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
    return dynamic_list_reads.truth(value) if dynamic_list_reads.is_grown(value) else per_choice.truth(value)


def _known_condition(value: object, loop: Loop | None) -> Any:
    """The condition of a statement: known, where it is one of how many items a list has and in no loop."""
    if state.active.grown and loop is None:
        return dynamic_list_reads.decide_truth(value)
    return _truth(value)


def _new_conditional(value: object, frame: types.FrameType, names: Sequence[str], loop: Loop | None) -> Conditional:
    where = diagnostics.here(frame, "if")
    if loop is not None:
        loop.enter_path(where)
    recording, active.recording = active.recording, None
    try:
        return Conditional(value, frame, names, where)
    finally:
        active.recording = recording


def _exception(value: object) -> Any:
    """What ``raise`` makes of its operand."""
    if isinstance(value, type) and issubclass(value, BaseException):
        value = value()
    if value is not None and not isinstance(value, BaseException):
        raise TypeError("exceptions must derive from BaseException")
    return value
