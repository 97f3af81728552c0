"""One observed run of a user's function: everything that ``trace`` needs to know which values it depends on."""

from __future__ import annotations

import gc
import sys
import types
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from hybridflow.autograph.hooks.bytecode_recorder import CODE_RECORDER
from hybridflow.autograph.hooks.recorder import RECORDER, recording_to
from hybridflow.autograph.runtime.state import converting
from hybridflow.core import pytree
from hybridflow.core.call_binding import unwrapped
from hybridflow.core.context_manager import block
from hybridflow.guards import calls
from hybridflow.guards.code_ownership import is_recorded
from hybridflow.guards.container_reads import is_plain
from hybridflow.guards.guard_builder import GuardBuilder
from hybridflow.guards.instrumented_code import CodeSwaps, follow, is_instrumented
from hybridflow.guards.untracked_code import end_trace, watch_untracked_code
from hybridflow.jit.guard_report import Report, hide_recorder, untracked_reason
from hybridflow.jit.trace_cache import Guards


class TraceSession:
    """Makes the recordings of one function, and remembers which functions its traces ran unseen."""

    __slots__ = ("_name", "_report", "_untracked_reason")
    end_trace = staticmethod(end_trace)

    def __init__(self, name: str) -> None:
        self._name, self._report = name, Report(name)
        self._untracked_reason: list[weakref.ref[types.FunctionType]] = []

    @block
    def observing(
        self, recording: GuardBuilder, python: Callable[..., Any], paths: Sequence[str], values: Any
    ) -> Iterator[None]:
        """Record what the block, a call of ``python`` with the bound arguments ``values``, reads and changes."""
        recording.swaps, recording.prepare = CodeSwaps(RECORDER, CODE_RECORDER), calls.prepare
        for path, value in zip(paths, values):
            _note_argument(recording, path, value)
        try:
            _enter(recording, python)
            for reference in self._untracked_reason:
                function = reference()
                if function is not None:
                    follow(recording, function)
            with watch_untracked_code(recording), recording_to(recording), converting():
                yield
        except BaseException as error:
            hide_recorder(error)
            recording.rollback()
            raise
        finally:
            recording.swaps.undo()

    def guards(self, recording: GuardBuilder) -> Guards | None:
        """When a finished recording's trace may answer another call; None if never."""
        reason = untracked_reason(recording)
        if reason is not None:
            recording.reasons.append(reason)
        return None if recording.reasons else _used(recording)

    def report_unguarded(self, recording: GuardBuilder, strict: bool) -> None:
        """A trace cannot answer another call: say why, once.  Raises TraceError if ``strict``.

        Functions that ran unseen are remembered, so that the next recording sees them; that is not worth a word.
        """
        known = {id(reference()) for reference in self._untracked_reason}
        functions = [f for f in _functions_of(recording.untracked) if id(f) not in known]
        self._untracked_reason += map(weakref.ref, functions)
        if strict or not functions or len(recording.reasons) > 1:
            self._report.warn_untracked(recording, strict)


def _enter(recording: GuardBuilder, python: Callable[..., Any]) -> None:
    """Note the function itself, and the instance if it is a method."""
    python, instance = unwrapped(python)
    if instance is not None:
        if instance() is not None:
            recording.weak_root(instance(), "self")
    elif isinstance(python, types.MethodType):
        recording.weak_root(python.__self__, "self")
    elif not isinstance(python, types.FunctionType):
        recording.weak_root(python, getattr(python, "__name__", type(python).__name__))
    if not isinstance(python, types.FunctionType):
        calls.prepare(recording, python)
    elif not is_recorded(python.__code__):
        wrapped = getattr(python, "__wrapped__", None)
        if wrapped is not None:
            calls.prepare(recording, wrapped)
    else:
        for name, cell in zip(python.__code__.co_freevars, python.__closure__ or ()):
            recording.root(cell, name)  # always there, like the function
        follow(recording, python)


def _note_argument(recording: GuardBuilder, path: str, value: object) -> None:
    if pytree.is_container(value):
        recording.copied_argument(value, path)
        for name, item in pytree.children(value, path):
            _note_argument(recording, name, item)
    elif not is_plain(value):
        recording.weak_root(value, path)


def _functions_of(codes: Iterable[types.CodeType]) -> list[types.FunctionType]:
    """The functions that run these code objects, as far as there are any."""
    wanted = [code for code in codes if not is_instrumented(code)]
    if not wanted:
        return []
    result = [f for f in gc.get_referrers(*wanted) if isinstance(f, types.FunctionType)]
    if gc.get_freeze_count():  # the collector does not know of frozen objects
        known = {f.__code__ for f in result}
        result += [f for code in wanted if code not in known for f in _named_like(code)]
    return result


def _named_like(code: types.CodeType) -> Iterator[types.FunctionType]:
    """The functions that run a code object, where modules and their classes have them under its name."""
    *names, last = code.co_qualname.split(".")
    for module in list(sys.modules.values()):
        holder: object = module if isinstance(module, types.ModuleType) else None
        for name in names:
            holder = vars(holder).get(name) if isinstance(holder, (types.ModuleType, type)) else None
        if not isinstance(holder, (types.ModuleType, type)):
            continue
        for value in list(vars(holder).values()) if last == "<lambda>" else [vars(holder).get(last)]:
            value = value.__func__ if isinstance(value, (staticmethod, classmethod)) else value
            value = value.fget if isinstance(value, property) else value
            if isinstance(value, types.FunctionType) and value.__code__ is code:
                yield value


def _used(recording: GuardBuilder) -> Guards:
    """The steps that look at something: not those that only name an object of which nothing was read."""
    steps = recording.steps
    needed = {step.owner for step in steps} | {step.expected for step in steps if step.check == "same"}
    kept = [
        k for k, step in enumerate(steps) if k in needed or step.check != "any" or step.read not in ("root", "weak")
    ]
    place = {k: position for position, k in enumerate(kept)} | {-1: -1}
    moved = [
        steps[k]._replace(
            owner=place[steps[k].owner],
            expected=place[steps[k].expected] if steps[k].check == "same" else steps[k].expected,
        )
        for k in kept
    ]
    return Guards(tuple(moved), tuple(recording.texts[k] for k in kept))
