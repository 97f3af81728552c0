"""Which graphs and sessions are open, and whether functions record."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any

GRAPHS: ContextVar[tuple[Any, ...]] = ContextVar("hybridflow_graphs", default=())
COMPUTES: ContextVar[bool] = ContextVar("hybridflow_computes", default=False)
SESSIONS: ContextVar[tuple[Any, ...]] = ContextVar("hybridflow_sessions", default=())


class Process:
    """The graph of those who open none, and whether functions record where no graph is open: as each module's are
    used to (None), or everywhere, or nowhere."""

    graph: Any = None
    session: object = None  # of InteractiveSession
    records: bool | None = None


def default_session() -> Any:
    opened = SESSIONS.get()
    return opened[-1] if opened else Process.session


def open_session(session: object) -> AbstractContextManager[Any]:
    """Let a session be the default one in a block."""
    return _in_session(session)


@contextmanager
def _in_session(session: object) -> Iterator[Any]:
    token = SESSIONS.set((*SESSIONS.get(), session))
    try:
        yield session
    finally:
        SESSIONS.reset(token)


def interactive(session: object) -> None:
    """Make a session the default one of the process; None for none."""
    Process.session = session


def set_recording(records: bool | None) -> None:
    """Whether functions record where no graph is open: everywhere, nowhere, or (None) as each module's do."""
    Process.records = records


@contextmanager
def computing() -> Iterator[None]:
    """Compute at once in the block, whatever graph is open: in functions that a pipeline calls."""
    token = COMPUTES.set(True)
    try:
        yield
    finally:
        COMPUTES.reset(token)


def is_recording(by_default: bool) -> bool:
    """Whether a function that records ``by_default`` does so here."""
    if COMPUTES.get():
        return False
    if GRAPHS.get():
        return True
    return by_default if Process.records is None else Process.records
