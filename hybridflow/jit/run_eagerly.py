"""``eager``: a function whose body runs op by op, for debugging."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from hybridflow import config
from hybridflow.core.context import now
from hybridflow.errors import ArgumentTypeError, TraceError

P = ParamSpec("P")
R = TypeVar("R")


def eager(function: Callable[P, R], /) -> Callable[P, R]:
    """Run a function eagerly: its body, and everything that it calls, runs as plain Python, op by op.

    Compiled functions that it calls run eagerly too. So a debugger, ``print`` and exceptions see concrete values.

    A compiled function cannot call it, because its result has no value while the function is traced; that raises a
    TraceError.

    Args:
        function: a function, compiled or not.

    Returns:
        A function of the same arguments that returns what ``function`` does.

    Raises:
        ArgumentTypeError: for what cannot be called, and for generators and coroutines.

    >>> @hf.function
    ... def double(x):
    ...     return x * 2
    >>> hf.eager(double)(hf.constant([1.0, 2.0]))
    <Tensor f32[2] cpu> [2. 4.]
    """
    if not callable(function):
        raise ArgumentTypeError("eager", f"a {type(function).__name__} is no function. Call it as hf.eager(f).")
    python: Callable[P, R] = getattr(function, "python_function", function)
    name = getattr(python, "__name__", type(python).__name__)
    if _runs_later(python) or _runs_later(type(python).__call__):
        raise ArgumentTypeError(
            "eager",
            f"{name} is a generator or a coroutine: its body runs after the call. Give the function that uses it.",
        )

    @functools.wraps(python, updated=())
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        if now().trace is not None:
            raise _called_while_tracing(name)
        with config.running_eagerly():
            return python(*args, **kwargs)

    return run


class EagerCalls:
    """The signatures whose calls run eagerly, as no program can do what the code does.  It may have been done once, so
    they are traced again, ever more rarely: at the second, fourth, eighth call."""

    __slots__ = ("_counts", "is_undoing")

    def __init__(self) -> None:
        self._counts: dict[Any, int] = {}
        self.is_undoing = False  # whether calls may undo what was done to objects that other threads have, too

    def note(self, key: object) -> None:
        """A trace of a call with this key has shown it."""
        if len(self._counts) >= _MOST_SIGNATURES and key not in self._counts:
            self._counts.clear()
        self._counts.setdefault(key, 1)

    def is_due(self, key: object) -> bool:
        """Whether a call with this key is to run eagerly at once."""
        count = self._counts.get(key)
        if count is None:
            return False
        self._counts[key] = count + 1
        return (count + 1) & count != 0


_MOST_SIGNATURES = 256


def _runs_later(function: object) -> bool:
    kinds = (inspect.isgeneratorfunction, inspect.iscoroutinefunction, inspect.isasyncgenfunction)
    return any(kind(function) for kind in kinds)


def _called_while_tracing(name: str) -> Any:
    return TraceError(
        "eager",
        f"{name} runs eagerly, and is called by a function that is compiled, which has no values yet. Run that one "
        f"eagerly, hf.eager(f), or call {name} outside of it.",
    )
