"""Saying why a function is traced at each call, once; or refusing it."""

from __future__ import annotations

import gc
from collections.abc import Iterable
from typing import Any

import numpy as np

from hybridflow import code_traits
from hybridflow.core.tensor import Tensor
from hybridflow.errors import ConcretizationError, TraceError, short_location
from hybridflow.guards.guard_builder import GuardBuilder, Reason
from hybridflow.guards.value_checks import ATOMS
from hybridflow.jit.native_entry import Refusal
from hybridflow.jit.retrace_log import Cause, captured_value_cause, logger
from hybridflow.jit.trace_cache import Guards
from hybridflow.runtime.calls.guard_steps import GuardStep, failure

# What has been said in this process: a function that is made anew, in a loop or by a call, has nothing new to say.
_MAX_REPORTED = 1000
reported: dict[tuple[Any, ...], None] = {}


class Report:
    """What is said about one function."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def warn_untracked(self, recording: GuardBuilder, strict: bool) -> None:
        """Warn of the first reason that was not told yet.  Raises TraceError if ``strict``."""
        reason = recording.reasons[0]
        if strict:
            raise TraceError(self._name, f"{_sentence(reason)} {_remedy(reason)}", where=reason.where)
        if _is_new(self._name, reason.text, reason.where):
            place = f" ({short_location(reason.where)})" if reason.where else ""
            text = f"is traced anew at each call: {_sentence(reason).rstrip('.')}{place}. {_remedy(reason)}"
            _warn(self._name, text)


def warn_runs_eagerly(name: str, reason: Reason | None, error: BaseException) -> None:
    """Warn that calls of a function run eagerly, unless that was said: for a ``reason``, or as the ``error`` says."""
    is_raised = not isinstance(error, TraceError)
    if reason is None or is_raised or isinstance(error, ConcretizationError):  # without the effect it would be the same
        if _is_new(name, getattr(error, "stage", str(error)), getattr(error, "where", None)):
            cause = "a tensor decides whether it raises an error, " if is_raised else ""
            _warn(name, f"runs eagerly: {cause}{error}")
    elif _is_new(name, reason.text, reason.where):
        place = f" ({short_location(reason.where)})" if reason.where else ""
        _warn(name, f"runs eagerly: {_sentence(reason).rstrip('.')}{place}. {_remedy(reason)}")


def warn_refused(name: str, refusal: Refusal) -> None:
    """Warn that calls of a function go by way of Python, unless that was said."""
    if _is_new(name, refusal.reason, None):
        remedy = "" if refusal.remedy is None else f" To avoid it: {refusal.remedy}."
        _warn(name, f"is called by way of Python, which takes longer than natively: {refusal.reason}.{remedy}")


def _is_new(*said: object) -> bool:
    """Whether something was not said yet; it is now."""
    if said in reported:
        return False
    reported[said] = None
    if len(reported) > _MAX_REPORTED:
        reported.pop(next(iter(reported)), None)
    return True


def _warn(name: str, text: str) -> None:
    logger().warning("%s %s", name, text)


def _sentence(reason: Reason) -> str:
    then = "which each call has to repeat" if reason.is_effect else "which no guard can watch"
    return f"it {reason.text}, {then}."


def _remedy(reason: Reason) -> str:
    return f"To avoid it: {reason.remedy}."


def untracked_reason(recording: GuardBuilder) -> Reason | None:
    """Code that ran although nothing recorded it, as a reason; None if there was none."""
    if not recording.untracked:
        return None
    code = min(recording.untracked, key=lambda c: (c.co_filename, c.co_firstlineno))
    return Reason(
        f"runs {code.co_qualname}, called by code that is not recorded",
        f"{code.co_filename}:{code.co_firstlineno}",
        # The next trace records what it finds by the collector, which does not know of frozen objects.
        "call it directly" + (", or define it after gc.freeze()" if gc.get_freeze_count() else ""),
    )


def hide_recorder(error: BaseException | None) -> None:
    """Take the recorder's frames out of what an error of the user's code shows; they stand between the user's lines."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        entry = error.__traceback__
        while entry is not None:
            following = entry.tb_next
            while following is not None and "records" in code_traits.of_file(following.tb_frame.f_code.co_filename):
                following = following.tb_next
            entry.tb_next = following
            entry = following
        error = error.__cause__ or error.__context__


def failed_guard_cause(guards: Guards) -> Cause | None:
    """Which value is another one, for a signature whose guards do not hold."""
    failed = failure(guards.steps)
    if failed is None:
        return None  # another thread put it back
    position, value = failed
    step = guards.steps[position]
    if not value:
        now = "missing"
    else:
        now = _names(value[0]) if step.check == "referents" else describe(value[0])
    return captured_value_cause(guards.texts[position], _expected(step), now)


def _names(kinds: Iterable[type | None]) -> str:
    return ", ".join("a class that is gone" if kind is None else kind.__name__ for kind in kinds)


def _expected(step: GuardStep) -> str:
    """What a step wants to find, in words."""
    if step.check == "weak":
        value = step.expected()
        return "an object that is gone" if value is None else describe(value)
    if step.check == "referents":
        return _names(reference() for reference in step.expected)
    if step.check in ("is", "number", "text"):
        return describe(step.expected)
    if step.check == "type":
        return step.expected.__name__
    if step.check == "length":
        return f"{step.expected} items"
    return "missing" if step.check == "absent" else "other contents"


def describe(value: object) -> str:
    """A value in a few words."""
    kind = type(value).__name__
    if value is None:
        return "None"
    if type(value) in ATOMS or isinstance(value, np.generic):
        return f"{kind} {value!r}"
    if isinstance(value, type):
        return f"class {value.__name__}"
    if isinstance(value, np.ndarray):
        return f"array {value.dtype}{list(value.shape)}"
    if isinstance(value, Tensor):
        return f"tensor {value.type}"
    return f"{kind} object"
