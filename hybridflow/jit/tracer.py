"""The traces of one function: which of them answers a call, and how one is made where none does."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from hybridflow import code_traits, spans
from hybridflow.core import transaction
from hybridflow.core.call_binding import Binder
from hybridflow.errors import TraceEnd, TraceError, user_location
from hybridflow.jit import argument_aliasing, stance
from hybridflow.jit.cache_key import Key
from hybridflow.jit.concrete_function import ConcreteFunction
from hybridflow.jit.dynamic_shapes import DynamicShapes
from hybridflow.jit.retrace_log import Cause, RetraceLog, argument_cause
from hybridflow.jit.run_eagerly import EagerCalls
from hybridflow.jit.trace_cache import TraceCache, Variant
from hybridflow.jit.trace_function import (
    EagerOnlyError,
    NumbersWantedError,
    RaisedError,
    compile_for,
    trace_signature,
)
from hybridflow.runtime import background, fork_safe_locks, uninterruptible
from hybridflow.tracing.data_dependent_sizes import SizeKnownError, SizesWantedError, extent_of

if TYPE_CHECKING:
    from hybridflow.core.context_manager import Block
    from hybridflow.jit.donation import ArgumentPath
    from hybridflow.jit.trace_session import TraceSession
    from hybridflow.tracing.trace import Trace

T = TypeVar("T")

_undoing = fork_safe_locks.make()  # one call at a time that may undo what it did to objects of others
_PATIENCE = 2.0  # seconds to wait for it: the body that has it may wait for a thread that wants it


class _UndoPermit(threading.local):
    """Whether this thread may undo what traces change, or has waited long enough."""

    is_here = False


_permit = _UndoPermit()
fork_safe_locks.thread_states.append(_permit)


class _PermitWantedError(TraceEnd):
    """A trace turned out to change objects of others, in a call without a permit: the call begins again with one."""


class Options(NamedTuple):
    """What the decorator was told."""

    input_signature: tuple[Any, ...] | None
    fastmath: bool
    cache_size: int
    name: str
    strict: bool
    reduce_retracing: bool
    donated: tuple[ArgumentPath, ...]
    wait: bool


class CallRequest(NamedTuple):
    """A call that is to be answered: the leaves of its arguments, and the key of calls that one trace may answer."""

    leaves: Sequence[Any]
    key: Key


class Tracer:
    """What finds the trace that answers a call, and makes it where there is none.

    A call is looked up by its own key, then by that of all calls which differ from it in extents and numbers that vary
    (``DynamicShapes``).  What is found may tell tensors apart by identity: then the key says which arguments are one
    tensor, and is looked up again.
    """

    __slots__ = (
        *("_cache", "_dynamic", "_eager_calls", "_is_unguarded", "_lock", "_options", "_python", "_session"),
        *("_was_traced", "binder", "holds_objects", "retraces"),
    )

    def __init__(self, python: Callable[..., Any], binder: Binder, options: Options, cache: TraceCache) -> None:
        self._python, self.binder, self._options, self._cache = python, binder, options, cache
        self._lock = fork_safe_locks.make()  # one trace at a time: a first trace may create variables
        self._was_traced = False
        self.retraces = RetraceLog(options.name)
        is_dynamic = options.reduce_retracing and options.input_signature is None
        self._dynamic = DynamicShapes() if is_dynamic else None
        self._is_unguarded = False  # whether a trace was made that answers no other call
        self._eager_calls = EagerCalls()
        self._session: TraceSession | None = None  # made when it is first traced
        self.holds_objects = False  # whether what was traced keeps objects of the user's

    # Looking up

    def lookup(self, request: CallRequest) -> Variant | None:
        """The trace that is known to answer a call."""
        variant = self._lookup(request)
        if variant is None and self._dynamic is not None:
            general = self._dynamic.generalize(request.key)
            if general is not None:
                variant = self._lookup(request._replace(key=general))
        return variant

    def _lookup(self, request: CallRequest) -> Variant | None:
        """The trace of a key that is known to answer a call, whose arguments may be one tensor."""
        leaves, key = request
        while (variant := self._cache.lookup(key, leaves)) is not None:
            aliased = variant.concrete.aliases.key(key, leaves)
            if aliased is None:
                break
            key = aliased
        return variant

    def may_trace(self, request: CallRequest) -> bool:
        """Whether a call that no known trace answers is traced; else it runs eagerly.  Raises TraceError where the
        stance forbids both."""
        name = stance.current()
        if name == stance.DEFAULT:
            return True
        cause = self._cause(request.key)
        if cause is None and not self._is_unguarded:
            return True  # the first time
        if name == stance.FAIL:
            why = "it is traced at each call" if cause is None else f"it would be traced again: {cause}"
            raise TraceError(self._options.name, f'{why}. The stance is "{name}".')
        return False

    def expect(self, request: CallRequest) -> None:
        """Learn from a call what varies, without tracing or running it."""
        if self._dynamic is not None:
            self._dynamic.observe(request.key)

    def pin_for_derivative(self, request: CallRequest) -> bool:
        """Let calls like this one have traces of their own, as a derivative's code needs the numbers that vary.
        Returns whether they had none before."""
        pinned = self._dynamic is not None and self._dynamic.pin_all(request.key, "a custom gradient needs its value")
        if pinned:
            self._cache.clear()
        return pinned

    def clear(self) -> None:
        """Forget why it was traced again, and what varied."""
        self.retraces.clear()
        if self._dynamic is not None:
            self._dynamic.clear()

    # Calls that no known trace answers

    def trace_and_call(self, request: CallRequest, run_inline: Callable[[], Any]) -> tuple[Variant | None, Any]:
        """Trace a call and run it: its trace, and its result.  Where no program can do what the code does,
        ``run_inline`` runs the code itself, and there is no trace."""
        # A trace may write variables: those that it draws the first values of others from.
        return transaction.run(lambda: self._with_permit(lambda: self._trace_and_call(request, run_inline)))

    def concrete(self, request: CallRequest) -> ConcreteFunction:
        """What answers such calls, which is made if need be; nothing is run."""
        try:
            return self._with_permit(lambda: self._lookup_or_trace(request)).concrete
        except SizesWantedError as wanted:
            error: BaseException = wanted.refused(self._options.name)
            error.add_note("Calls find such sizes: explain, ir, profile and tune are of calls that were made.")
        except RaisedError as raised:
            error = raised.error
        try:
            raise error
        finally:
            del error

    def _with_permit(self, run: Callable[[], T]) -> T:
        """``run()``; with a permit to undo, if one is needed."""
        if not self._eager_calls.is_undoing or _permit.is_here:
            try:
                return run()
            except _PermitWantedError:
                pass
        has_permit = _undoing.acquire(timeout=_PATIENCE)
        _permit.is_here = True
        try:
            return run()
        finally:
            _permit.is_here = False
            if has_permit:
                _undoing.release()

    def _check_permit(self) -> None:
        """Raise _PermitWantedError in a call without a permit, if one is needed: what another thread changes, before
        this one undoes what it did, would be lost."""
        if self._eager_calls.is_undoing and not _permit.is_here:
            raise _PermitWantedError

    def _trace_and_call(self, request: CallRequest, run_inline: Callable[[], Any]) -> tuple[Variant | None, Any]:
        if self._eager_calls.is_due(self._family(request.key)):
            return None, run_inline()
        error: BaseException | None
        before = self.retraces.last
        try:
            variant = self._generalize_or_trace(request)
        except EagerOnlyError as refused:
            if self._options.strict:
                raise refused.error from None
            _report().warn_runs_eagerly(self._options.name, refused.reason, refused.error)
            self._is_unguarded = True
            self._eager_calls.note(self._family(request.key))
            error = None
        except RaisedError as raised:
            error = raised.error
        else:
            result = _call_once(variant, request.leaves, run_inline)
            if self.retraces.last is not before:
                self.retraces.last_at += 1  # this call, which is answered
            return variant, result
        try:
            # Out of the clauses: an error of this run has the context that it has in Python.
            result = run_inline()
            if error is not None:  # only tracing led to it; what came before it has happened
                raise error
            return None, result
        finally:
            del error  # whose traceback holds this frame

    def _family(self, key: Key) -> Key:
        """The key of all calls that differ from this one in what varies."""
        return key if self._dynamic is None else self._dynamic.generalize(key) or key

    def _generalize_or_trace(self, request: CallRequest) -> Variant:
        """What answers a call that no known trace does: a trace for any numbers in the places that vary, or, where
        its code needs them, for those of this call."""
        key, dynamic = request.key, self._dynamic
        failure = None
        while dynamic is not None and failure is None and (general := dynamic.observe(key)) is not None:
            try:
                return self._note_unguarded(
                    key, self._lookup_or_trace(request._replace(key=general), fail_on_specialization=True)
                )
            except NumbersWantedError as wanted:
                dynamic.pin(key, wanted.leaves)
            except Exception as error:
                failure = f"a trace for all values fails: {error}"
        variant = self._lookup_or_trace(request)  # which may raise the same error
        if dynamic is not None and failure is not None:
            dynamic.pin_all(key, failure)
        return self._note_unguarded(key, variant)

    def _note_unguarded(self, key: Key, variant: Variant) -> Variant:
        """A trace, of which it is noted whether it answers no other call."""
        if variant.guards is None:
            self._is_unguarded = True
            if self._dynamic is not None:
                self._dynamic.stop(key)
        return variant

    def _lookup_or_trace(self, request: CallRequest, fail_on_specialization: bool = False) -> Variant:
        """What answers a call of a key.  Only a trace shows whether it matters that some arguments are one tensor.

        With ``fail_on_specialization`` it raises NumbersWantedError where the code needs a number that is open.
        """
        leaves, key = request
        while True:
            try:
                variant = self._cache.lookup(key, leaves) or self._trace_new(key, leaves, fail_on_specialization)
            except NumbersWantedError:
                raise
            except Exception:
                aliased = argument_aliasing.aliased_key(key, leaves)  # with two tensors for one it may fail
                if aliased is None:
                    raise
            else:
                aliased = variant.concrete.aliases.key(key, leaves)
                if aliased is None:
                    return variant
            key = aliased

    # Tracing

    def _trace_new(self, key: Key, leaves: Sequence[Any], fail_on_specialization: bool) -> Variant:
        """The trace of a key that is not in the cache, compiled."""
        where = user_location()

        def trace() -> Variant:
            cause = self._cause(key)
            with spans.span(f"trace {self._options.name}", "trace"):
                variant = self._trace(key, leaves, fail_on_specialization)
            started = time.perf_counter()
            concrete = variant.concrete
            if concrete.aliases.key(key, leaves) is None:  # or it is not what will run
                with spans.span(f"compile {self._options.name}", "compile"):
                    compile_for(concrete, leaves)
            concrete.compile_ms = (time.perf_counter() - started) * 1e3
            if cause is not None and variant.guards is not None:  # else it is traced at each call, whatever differs
                self.retraces.add(cause, where, concrete.trace_ms, concrete.compile_ms, self._cache.count_calls())
            return variant

        background.FirstCalls.begin()
        try:
            variant = self._cache.lookup_or_trace(key, leaves, trace)
        finally:
            background.FirstCalls.end()
        self.holds_objects |= variant.concrete.holds_objects or bool(variant.guards and variant.guards.steps)
        return variant

    def _cause(self, key: Key) -> Cause | None:
        """Why the traces that are known do not answer a call."""
        known = self._cache.variants()
        for variant in reversed(known):
            if variant.concrete.key == key and variant.guards is not None:
                return _report().failed_guard_cause(variant.guards)
        result = argument_cause(self.binder.of(key.structure), key, [variant.concrete.key for variant in known])
        if result is None or self._dynamic is None:
            return result
        paths = self.binder.of(key.structure).paths(key.structure)
        reason = self._dynamic.reason(key, paths.index(result.argument)) if result.argument in paths else None
        return result if reason is None else result._replace(suggestion=f"{result.suggestion} ({reason})")

    def _trace(self, key: Key, leaves: Sequence[Any], fail_on_specialization: bool) -> Variant:
        with self._lock:
            self._check_permit()
            started = time.perf_counter()
            try:
                variant, recording, created = self._trace_once(
                    key, leaves, not self._was_traced, fail_on_specialization
                )
            except RaisedError as refused:
                if refused.reason is not None:
                    self._eager_calls.is_undoing = True
                    self._check_permit()
                raise
            if created:
                # The variables exist now.  The body must find them, as it will in every later call: a body that would
                # make them again is an error, and what computed their first values is no part of the program.
                variant, recording, _ = self._trace_once(key, leaves, False, fail_on_specialization)
            # What ends where a size is found has not come to all variables.
            self._was_traced |= not variant.concrete.staged.trace.ends_early
            if variant.guards is None:
                self._get_session().report_unguarded(recording, self._options.strict)
            elif self._options.strict:
                from hybridflow.jit import determinism_check

                again, _, _ = self._trace_once(key, leaves, False, fail_on_specialization)
                determinism_check.check(variant.concrete, again.concrete)
            variant.concrete.trace_ms = (time.perf_counter() - started) * 1e3
            return variant

    def _get_session(self) -> TraceSession:
        """What records what the function reads from outside, over all of its traces."""
        if self._session is None:
            self._session = _trace_session().TraceSession(self._options.name)
        return self._session

    def _trace_once(
        self, key: Key, leaves: Sequence[Any], may_create: bool, fail_on_specialization: bool
    ) -> tuple[Variant, Any, bool]:
        """One run of the body: the variant, what was recorded, and whether variables were made."""
        session = self._get_session()
        recording: Any = None

        def observing(trace: Trace, values: object) -> Block:
            nonlocal recording  # a run that begins anew is recorded anew
            is_step = "a step" in code_traits.of_function(self._python)
            recording = _trace_session().GuardBuilder(self._options.name, is_step)
            trace.live_arrays = recording.live
            trace.guard_builder = recording
            trace.extent_finder = extent_of
            return session.observing(recording, self._python, self.binder.of(key.structure).parameters, values)

        tracer = sys.gettrace()
        try:
            concrete, created = trace_signature(
                self._python,
                self.binder.of(key.structure),
                key,
                leaves,
                gives_up=fail_on_specialization,
                fastmath=self._options.fastmath,
                donated=self._options.donated,
                may_create_variables=may_create,
                observing=observing,
            )
        finally:
            session.end_trace(tracer)
        concrete.staged.trace.guard_builder = None  # it would keep what was recorded alive
        if created:
            recording.rollback()
        else:
            try:
                recording.finish()
            except TraceError as error:
                if not recording.can_undo:
                    raise
                reason = recording.first_effect()
                recording.undo()
                raise EagerOnlyError(error, reason) from None
        variant = Variant(concrete, session.guards(recording))
        # Where variables were made, another trace follows, and its program is the one that runs.
        if not created and recording.can_undo and any(node.may_raise for node in concrete.graph.nodes):
            variant.undo = recording.undo
            self._eager_calls.is_undoing = True
            if not _permit.is_here:
                recording.undo()
                raise _PermitWantedError
        return variant, recording, created


def _call_once(variant: Variant, leaves: Sequence[Any], run_inline: Callable[[], Any]) -> Any:
    """Run a program for the call that it was made for.  If it raises an error, the code itself says what it has done
    before that to objects that outlive the call."""
    undo, variant.undo = variant.undo, None
    if undo is None:
        return variant.concrete.call_leaves(leaves)
    if not any(node.effect.name == "ORDERED" for node in variant.concrete.graph.nodes):
        try:
            return variant.concrete.call_leaves(leaves)
        except SizeKnownError:
            undo()  # the call begins anew, with that size
            raise
        except Exception as error:
            undo()
            run_inline()
            raise error  # which the code itself did not come to
    undo()
    return run_inline()


@uninterruptible.loaded
def _report() -> ModuleType:
    from hybridflow.jit import guard_report  # where there is something to say

    return guard_report


@uninterruptible.loaded
def _trace_session() -> ModuleType:
    """The module that records what a run reads: it parses source, and is not needed to import."""
    from hybridflow.jit import trace_session

    return trace_session
