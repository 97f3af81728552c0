"""Handlers of signals run in the middle of whatever the main thread does, and are no part of it.

While something goes on there that notes what is done (a trace, a transaction), each handler in Python stands behind an
``_Aside``.  That runs it in a context from before, with the states of the thread as in a new one.  A handler that is
left behind one, because an interrupt came as the block was left, does what it always did.
"""

from __future__ import annotations

import _signal
import contextvars
import ctypes
import functools
import threading
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

from hybridflow.runtime.fork_safe_locks import thread_states

Handler = Callable[[int, "FrameType | None"], Any]
_SIGNALS = sorted(map(int, _signal.valid_signals()))
_ROOM = 1 << 9  # bytes: more than a struct sigaction takes anywhere


_in_handler = contextvars.ContextVar("hybridflow.in_handler", default=False)  # that is run by an aside


class _Aside:
    """A handler in the place of another one."""

    __slots__ = ("_context", "handler")

    def __init__(self, handler: Handler, context: contextvars.Context) -> None:
        self.handler, self._context = handler, context

    def __call__(self, number: int, frame: FrameType | None) -> Any:
        kept = [(state, dict(state.__dict__)) for state in thread_states]
        try:
            for state in thread_states:
                state.__dict__.clear()
                state.__init__()  # type: ignore[misc]  # as in a new thread
            return self._context.copy().run(self.handler, number, frame)
        finally:
            try:
                _put_back(kept)
            except BaseException:  # of another handler
                _put_back(kept)
                raise


def _put_back(kept: Sequence[tuple[threading.local, dict[str, Any]]]) -> None:
    for state, values in kept:
        state.__dict__.clear()
        state.__dict__.update(values)


class HandlerThread:
    """A block in which handlers are asides, if it is the main thread's; inside of another one nothing changes.

    ``outside`` makes the context, a copy, one from before what goes on.  With ``is_outermost`` nothing goes on yet:
    handlers that were left behind asides earlier are what they were.
    """

    __slots__ = ("_asides", "_is_outermost", "_outside")

    def __init__(self, outside: Callable[[], object], is_outermost: bool = False) -> None:
        self._outside, self._is_outermost = outside, is_outermost
        self._asides: list[tuple[int, _Aside]] = []

    def __enter__(self) -> None:
        if threading.get_ident() != threading.main_thread().ident:
            return
        handlers = [pair for pair in zip(_SIGNALS, map(_signal.getsignal, _SIGNALS)) if self._is_to_move(pair[1])]
        if not handlers:
            return
        context = contextvars.copy_context()
        context.run(self._outside)
        context.run(_in_handler.set, True)
        try:
            for number, handler in handlers:
                aside = _Aside(handler.handler if type(handler) is _Aside else handler, context)
                self._asides.append((number, aside))
                _install(number, aside)
        except ValueError:  # not the main interpreter
            self._asides.clear()
        except BaseException:
            self.__exit__()
            raise

    def _is_to_move(self, handler: object) -> bool:
        """Whether a handler may run code in Python that would take part in the block."""
        if type(handler) is _Aside:
            return self._is_outermost and not _in_handler.get()
        return callable(handler) and handler is not _signal.default_int_handler

    def __exit__(self, *error: object) -> None:
        raised: BaseException | None = None
        while self._asides:
            try:
                number, aside = self._asides[-1]
                if _signal.getsignal(number) is aside:  # else the code in the block has set another
                    _install(number, aside.handler)
                self._asides.pop()
            except BaseException as interrupt:
                raised = interrupt
        if raised is not None:
            raise raised


def _install(number: int, handler: Handler) -> None:
    """Set what Python calls, and leave all else as it is: whether system calls go on, what is called in C."""
    before = ctypes.create_string_buffer(_ROOM)
    action = _sigaction()
    is_known = action is not None and action(number, None, before) == 0
    _signal.signal(number, handler)
    if is_known:
        action(number, before, None)


@functools.cache
def _sigaction() -> Any:
    return getattr(ctypes.CDLL(None), "sigaction", None)
