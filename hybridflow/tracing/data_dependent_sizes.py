"""Sizes that a program finds: how long a list is whose length a tensor decides, and how much room it needs.

A program knows its extents before it runs.  So calls of such a function are made with *sizes*, which are arguments of
its own (``jit.sizing``): those of the call before.  The program checks them.  Where one is another it raises
``SizeKnownError``, which says what it is, and the call is made again; as with every call that raises, variables are
then as they were.  A size that nobody knows yet ends the trace: its program finds that size and no more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from hybridflow.array import elementwise
from hybridflow.compiler.ir import dtypes
from hybridflow.core.context import now
from hybridflow.core.tensor import Tensor
from hybridflow.eager.operands import scalar
from hybridflow.errors import ConcretizationError, TraceError
from hybridflow.tracing.effect_token import ORDER, require
from hybridflow.tracing.subtrace import SubTrace
from hybridflow.tracing.trace import Trace

INITIAL_ROOM = 16  # items; twice as many each time that this is too few


class SizeKnownError(Exception):
    """A program found that a size is another one: of ``kind`` ROOM or LENGTH, ``number`` its place among those."""

    def __init__(self, kind: int, number: int, size: int) -> None:
        super().__init__(f"the size {number} is {size}")
        self.kind, self.number, self.size = kind, number, size


ROOM, LENGTH = range(2)


class SizesWantedError(BaseException):
    """A trace needs sizes, and is not one that is given any.

    No Exception: code that is traced must not catch it.
    """

    @staticmethod
    def refused(name: str) -> TraceError:
        """The error for who cannot give any."""
        return TraceError(
            name,
            "how long a list is depends on a tensor, and calls find that in several runs. So it can be called, but is "
            "no single program. Give the list a known length: fill hf.zeros(size), and return how many there are.",
        )


class SizeEndsTrace(BaseException):
    """A trace is over, as nobody knows a size yet: its program finds that."""


class Sizes:
    """The sizes that a trace is given, which it takes in the order in which they are wanted."""

    __slots__ = ("_lengths", "_rooms", "_taken", "end_trace")

    def __init__(self, rooms: Sequence[Any], lengths: Sequence[Any]) -> None:
        self._rooms, self._lengths = rooms, lengths
        self._taken = [0, 0]
        self.end_trace = False  # whether one of them is not known

    def room(self, initial: Any) -> tuple[int, Any]:
        """The number of the next room, and how many items it has; ``initial`` where nobody knows better."""
        number = self._next(ROOM)
        known = self._rooms[number] if number < len(self._rooms) else 0
        return number, initial if type(known) is int and known == 0 else known

    def length(self) -> tuple[int, Any]:
        """The number of the next length, and what it is; None where nobody knows."""
        number = self._next(LENGTH)
        return number, self._lengths[number] if number < len(self._lengths) else None

    def _next(self, kind: int) -> int:
        self._taken[kind] += 1
        return self._taken[kind] - 1


def _traces() -> list[Any]:
    """The trace that goes on, and those around it."""
    result, trace = [], now().trace
    while trace is not None:
        result.append(trace)
        trace = trace.parent  # type: ignore[attr-defined]
    return result


def _sizes() -> Sizes:
    """What the trace that goes on is given.  Raises SizesWantedError where that is nothing."""
    traces = _traces()
    root = traces[-1]
    if isinstance(root, SubTrace) or not isinstance(root, Trace):
        raise SizesWantedError.refused(root.name)
    sizes: Sizes | None = root.sizes
    if sizes is None:
        root.wants_sizes = True  # whatever becomes of the error
        raise SizesWantedError
    for trace in traces:
        acts = any(v is ORDER for v in trace.assigned) if isinstance(trace, SubTrace) else trace._order is not None
        if acts:
            raise ConcretizationError(
                "convert",
                "the length of a list depends on a tensor, and before it is known the function prints or calls "
                "Python, which would happen again when the length is found. Do that afterwards.",
            )
    return sizes


def room(initial: Any) -> tuple[int, Any]:
    """Room for the items of a list that a loop makes longer: see ``Sizes.room``."""
    return _sizes().room(initial)


def check_room(number: int, needed: Tensor, capacity: Any) -> None:
    """Have the program end where a list needs more room than there is."""

    def fail(needed: np.ndarray, capacity: np.ndarray) -> NoReturn:
        raise SizeKnownError(ROOM, number, max(2 * capacity.item(), needed.item()))

    limit = scalar(capacity, dtypes.int64, "convert")
    require(elementwise.less_equal(needed, limit), fail, (needed, limit), "a list needs more room.")


def length(count: Tensor, leave: Callable[[Tensor], Tensor]) -> Any:
    """``count``, of which a tensor decides, as an extent: an int, or a symbol.  ``leave`` hands it out of the branches
    that the code is in, where it ends the trace."""
    sizes = _sizes()
    number, known = sizes.length()
    if known is None:
        size = leave(count)
        sizes.end_trace = True
        _end_with(number, size)
    _check_length(number, count, elementwise.equal(count, scalar(known, dtypes.int64, "convert")))
    return known


def _check_length(number: int, count: Tensor, ok: Tensor) -> None:
    def fail(count: np.ndarray) -> NoReturn:
        raise SizeKnownError(LENGTH, number, count.item())

    require(ok, fail, (count,), "a list has another length.")


def _end_with(number: int, count: Tensor) -> NoReturn:
    """End the trace: its program says what ``count`` is."""
    _check_length(number, count, scalar(False, dtypes.bool_, "convert"))
    raise SizeEndsTrace
