"""Iterators: what is taken from them cannot be put back."""

from __future__ import annotations

from typing import Any

from hybridflow.errors import TraceError
from hybridflow.tracing.flow.journal import sides_around
from hybridflow.tracing.flow.sides import cannot_be_undone
from hybridflow.tracing.flow.state import active
from hybridflow.tracing.flow.witnesses import BUFFERS, is_iterator


def check_takes(*values: Any) -> None:
    """Before something may take items from ``values``: raise TraceError if one is an iterator that was there before
    the branch, or of which it depends on a tensor how far a loop came."""
    for value in values:
        if value is None or not is_iterator(value):
            continue
        if any(value is one for one in active.spent):
            raise TraceError(
                "convert",
                f"how many items a loop took from a {type(value).__name__} depends on a tensor, and it is used again. "
                "Loop over a list instead.",
            )
        if any(side.witnesses is not None and id(value) in side.witnesses.iterators for side in sides_around()):
            raise cannot_be_undone(f"items are taken from a {type(value).__name__}")


def takes_are_watched() -> bool:
    """Whether there are iterators to look out for."""
    return bool(active.spent) or any(side.witnesses is not None and side.witnesses.iterators for side in sides_around())


def saw(value: Any) -> None:
    """A global was read, which was there before the branch."""
    for side in sides_around():
        if side.witnesses is not None and (isinstance(value, BUFFERS) or is_iterator(value)):
            side.witnesses.add(value)
            return
