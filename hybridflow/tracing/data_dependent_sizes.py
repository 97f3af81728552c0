"""Sizes that a program finds: what a mask selects, how long a list is whose length a tensor decides, and how much room
it needs.

A program knows its extents before it runs.  So calls of such a function are made with *sizes*, which are arguments of
its own (``jit.dynamic_output_sizes``): those of the call before.  The program checks them.  Where one is another it
raises ``SizeKnownError``, which says what it is, and the call is made again; as with every call that raises, variables
are then as they were.  A size that nobody knows yet ends the trace: its program finds that size and no more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from hybridflow.array import elementwise
from hybridflow.array.shapes import reshape
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ir.graph import Node
from hybridflow.compiler.ops import Kind
from hybridflow.compiler.ops.row_writes import LIST_IS_FULL
from hybridflow.core.context import now
from hybridflow.core.tensor import Tensor
from hybridflow.eager.operands import cast, scalar
from hybridflow.errors import ConcretizationError, TraceEnd, TraceError
from hybridflow.tracing.effect_token import ORDER, require
from hybridflow.tracing.subtrace import SubTrace
from hybridflow.tracing.symbolic_tensor import SymbolicTensor
from hybridflow.tracing.trace import Trace

INITIAL_ROOM = 16  # items; twice as many each time that this is too few


class SizeKnownError(Exception):
    """A program found that a size is another one: of ``kind`` ROOM or LENGTH, ``number`` its place among those."""

    def __init__(self, kind: int, number: int, size: int) -> None:
        super().__init__(f"the size {number} is {size}")
        self.kind, self.number, self.size = kind, number, size


ROOM, LENGTH = range(2)


class SizesWantedError(TraceEnd):
    """A trace needs sizes, and is not one that is given any.  ``reason`` is what to tell who cannot give them."""

    def __init__(self, reason: Exception | None = None) -> None:
        super().__init__()
        self.reason = reason

    def refused(self, name: str) -> Exception:
        """The error for who cannot give any."""
        return self.reason or self.of_list(name)

    @staticmethod
    def of_list(name: str) -> TraceError:
        """The error where a list's length is such a size."""
        return TraceError(
            name,
            "how long a list is depends on a tensor, and calls find that in several runs. So it can be called, but is "
            "no single program. Give the list a known length: fill hf.zeros(size), and return how many there are.",
        )


class SizeEndsTrace(TraceEnd):
    """A trace is over, as nobody knows a size yet: its program finds that."""


class Sizes:
    """The sizes that a trace is given, which it takes in the order in which they are wanted."""

    __slots__ = ("_lengths", "_rooms", "_taken", "end_trace", "extents")

    def __init__(self, rooms: Sequence[Any], lengths: Sequence[Any]) -> None:
        self._rooms, self._lengths = rooms, lengths
        self._taken = [0, 0]
        self.extents: list[tuple[Any, Node, Any]] = []  # those that were taken: the trace, what computes it, the extent
        self.end_trace = False  # whether one of them is not known

    def room(self, initial: object) -> tuple[int, Any]:
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


def _sizes(refusal: Callable[[], Exception] | None = None) -> Sizes:
    """What the trace that goes on is given.  Raises SizesWantedError where that is nothing, and the ``refusal`` where
    nobody could give it any."""
    here: Any = now().trace
    traces = list(here.enclosing())
    root = traces[-1]
    if isinstance(root, SubTrace) or not isinstance(root, Trace) or root.extent_finder is None:
        raise SizesWantedError.of_list(root.name) if refusal is None else refusal()
    sizes: Sizes | None = root.sizes
    if sizes is None:
        root.sizes_wanted = SizesWantedError(None if refusal is None else refusal())  # whatever becomes of the error
        raise root.sizes_wanted
    for trace in traces:
        acts = any(v is ORDER for v in trace.assigned) if isinstance(trace, SubTrace) else trace._order is not None
        if acts:
            raise ConcretizationError(
                "convert",
                "a size depends on a tensor, and before it is known the function prints or calls Python, which would "
                "happen again when the size is found. Do that afterwards.",
            )
    return sizes


def room(initial: object) -> tuple[int, Any]:
    """Room for the items of a list that a loop makes longer: see ``Sizes.room``."""
    return _sizes().room(initial)


def check_room(number: int, needed: Tensor, capacity: object) -> None:
    """Have the program end where a list needs more room than there is."""

    def fail(needed: np.ndarray, capacity: np.ndarray) -> NoReturn:
        raise SizeKnownError(ROOM, number, max(2 * capacity.item(), needed.item()))

    limit = scalar(capacity, dtypes.int64, "convert")
    require(elementwise.less_equal(needed, limit), fail, (needed, limit), None, LIST_IS_FULL)


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


class Branches:
    """What the code is inside of, as far as tracing itself knows: nothing that a size may be handed out of."""

    def can_leave(self) -> bool:
        """Whether each call comes here once at the most: in no loop, in nothing that is traced for many examples."""
        return not isinstance(now().trace, SubTrace)

    def leave(self, count: Tensor) -> Tensor:
        """``count`` outside of the branches that the code is in."""
        return count


branches = Branches()  # that of ``autograph.runtime``, once code is converted


def extent_of(value: SymbolicTensor, refusal: Callable[[], Exception]) -> Any:
    """An integer of the program as an extent: an int, or a symbol.  Raises the ``refusal`` where it may be several in
    one run, as in a loop."""
    if not branches.can_leave():
        raise refusal()
    here: Any = now().trace
    sizes, traces = _sizes(refusal), list(here.enclosing())
    for trace, node, known in sizes.extents:
        if any(trace is one for one in traces) and _is_same(node, value._node, _DEPTH):
            return known
    known = length(cast(reshape(value, ()), dtypes.int64), branches.leave)
    sizes.extents.append((traces[0], value._node, known))
    return known


_DEPTH = 8  # of two computations that are compared


def _is_same(one: Node, other: Node, depth: int) -> bool:
    """Whether two nodes are sure to compute the same."""
    if one is other:
        return True
    if not depth or one.op is not other.op or not one.inputs or one.op.kind in (Kind.CONTROL, Kind.COLLECTIVE):
        return False
    return (
        one.type == other.type
        and len(one.inputs) == len(other.inputs)
        and one.attrs == other.attrs
        and all(_is_same(a, b, depth - 1) for a, b in zip(one.inputs, other.inputs))
    )


def _check_length(number: int, count: Tensor, ok: Tensor) -> None:
    def fail(count: np.ndarray) -> NoReturn:
        raise SizeKnownError(LENGTH, number, count.item())

    require(ok, fail, (count,), None, "a size is another one than the call was made with.")


def _end_with(number: int, count: Tensor) -> NoReturn:
    """End the trace: its program says what ``count`` is."""
    _check_length(number, count, scalar(False, dtypes.bool_, "convert"))
    raise SizeEndsTrace
