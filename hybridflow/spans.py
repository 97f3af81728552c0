"""Spans of time, which are told to whoever records a timeline (see ``hf.profile``); mostly nobody does."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol


class Recorder(Protocol):
    """What keeps spans."""

    def add(self, name: str, category: str, start: int, end: int, details: dict[str, Any]) -> None:
        """A span of this thread, from and to nanoseconds of ``time.monotonic_ns``."""

    def record(self, graph: Any, executable: Any, functions: Any, fastmath: bool) -> Any:
        """What runs in the place of an executable of a graph, and tells of its kernels."""


recorder: Recorder | None = None


@contextmanager
def span(name: str, category: str, **details: object) -> Iterator[None]:
    """Tell of the block, where somebody records."""
    told = recorder  # another thread may end the recording at any time
    if told is None:
        yield
        return
    start = time.monotonic_ns()
    try:
        yield
    finally:
        told.add(name, category, start, time.monotonic_ns(), details)


def end(name: str, category: str, start: int, **details: object) -> None:
    """Tell of what began at ``start``, nanoseconds of ``time.monotonic_ns``, where somebody records."""
    told = recorder
    if told is not None:
        told.add(name, category, start, time.monotonic_ns(), details)
