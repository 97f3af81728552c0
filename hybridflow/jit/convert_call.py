"""Functions of the user's that are traced without being compiled: Python's control flow is converted all the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hybridflow.core.call_binding import Binder, name_of
from hybridflow.core.context import now
from hybridflow.tracing.trace import Trace


def converted(function: Callable[..., Any], stage: str) -> Callable[..., Any]:
    """What to call in the place of a function while it is traced.  Within a compiled function's trace that sees to it;
    otherwise what is recorded on the way is forgotten: the function is traced at each call."""
    trace: Any = now().trace
    root: Trace = trace.root
    if root.guard_builder is not None:
        return function

    def call(*args: Any, **kwargs: Any) -> Any:
        from hybridflow.jit import trace_session

        name = name_of(function) or stage
        recording = trace_session.GuardBuilder(name)
        binder = Binder(function, name).for_call(args, kwargs)
        root.guard_builder = recording
        try:
            with trace_session.TraceSession(name).observing(
                recording, function, binder.parameters, binder.bind(args, kwargs)
            ):
                return function(*args, **kwargs)
        finally:
            root.guard_builder = None

    return call
