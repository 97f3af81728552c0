"""Iterators: what is taken from them cannot be put back."""

from __future__ import annotations

from hybridflow.autograph.runtime.branch import cannot_be_undone
from hybridflow.autograph.runtime.mutation_check import BUFFERS, is_iterator
from hybridflow.autograph.runtime.state import active
from hybridflow.autograph.runtime.undo_log import enclosing_branches
from hybridflow.errors import TraceError


def check_takes(*values: object) -> None:
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
        if any(
            side.mutation_snapshot is not None and id(value) in side.mutation_snapshot.iterators
            for side in enclosing_branches()
        ):
            raise cannot_be_undone(f"items are taken from a {type(value).__name__}")


def takes_are_watched() -> bool:
    """Whether there are iterators to look out for."""
    return bool(active.spent) or any(
        side.mutation_snapshot is not None and side.mutation_snapshot.iterators for side in enclosing_branches()
    )


def saw(value: object) -> None:
    """A global was read, which was there before the branch."""
    for side in enclosing_branches():
        if side.mutation_snapshot is not None and (isinstance(value, BUFFERS) or is_iterator(value)):
            side.mutation_snapshot.add(value)
            return
