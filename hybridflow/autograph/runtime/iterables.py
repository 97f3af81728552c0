"""What a ``for`` walks over where that is a tensor: its rows, and ``zip``, ``enumerate`` and ``reversed`` of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from hybridflow.array import elementwise, shapes
from hybridflow.array.indexing import getitem
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ir.extents import Dim
from hybridflow.core.context import now
from hybridflow.core.tensor import Tensor
from hybridflow.eager.operands import scalar
from hybridflow.errors import ConcretizationError
from hybridflow.tracing.symbolic_number import SymbolicNumber, number_of
from hybridflow.tracing.symbolic_tensor import SymbolicTensor


class IterationSpace:
    """Iterations that have numbers, from ``start`` on while these are less (or more) than ``stop``."""

    length: Any = None  # how many there are, where that is an extent

    def __init__(self, *bounds: Any) -> None:
        start, stop, step = (0, *bounds, 1) if len(bounds) == 1 else (*bounds, 1)[:3]
        self.start, self.stop, self.step = start, stop, step

    def element(self, index: object) -> Any:
        """What an iteration is given."""
        return index

    def next_index(self, index: object) -> SymbolicNumber | int:
        """The index of the next iteration."""
        return index + self.step

    def begin(self) -> None:
        """Before the loop."""

    def numbered(self, begin: int) -> IterationSpace:
        """The same iterations, each with its number."""
        raise NotImplementedError

    def finish(self) -> None:
        """After the loop."""

    def has_index(self, index: Any) -> Any:
        """Whether there is an iteration with this index."""
        return elementwise.less(index, self.stop) if self.step > 0 else elementwise.greater(index, self.stop)


class Numbers(IterationSpace):
    """The numbers of a ``range`` of Python's."""

    def __init__(self, numbers: range) -> None:
        super().__init__(numbers.start, numbers.stop, numbers.step)
        self.length = len(numbers)

    def has_index(self, index: object) -> Any:
        """Whether there is an iteration with this index."""
        return super().has_index(scalar(index, dtypes.int64, "for") if isinstance(index, int) else index)


class TensorIterable(IterationSpace):
    """Items that tensors have one after another, as many as ``length`` says: an int, or an extent.

    As an iterator it gives them as the function that it stands for does.
    """

    def __init__(self, length: object) -> None:
        super().__init__(length if isinstance(length, int) else number_of(scalar(length, dtypes.int64, "for")))
        self.length = length
        self.consumed = 0  # items that are gone

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if not isinstance(self.length, int):
            raise ConcretizationError(
                "for", "how many items there are is not known while tracing. Use a for statement."
            )
        if self.consumed >= self.length:
            raise StopIteration
        self.consumed += 1
        return self.element(self.consumed - 1)

    def sources(self) -> list[Tensor]:
        """Tensors of which each iteration is given a slice, in the order of iterations."""
        raise NotImplementedError

    def remaining_length(self) -> Any:
        """How many items are not gone yet."""
        return self.length - self.consumed

    def tensors(self) -> list[Tensor]:
        """Those whose rows the items are, or are made of: one for each time that an item reads it."""
        return self.sources()

    def remaining_sources(self) -> list[Tensor]:
        """The sources without what is gone."""
        return [getitem(x, slice(self.consumed, None)) if self.consumed else x for x in self.sources()]

    def item_from_slices(self, slices: Iterator[Tensor]) -> Any:
        """The item of an iteration that is given these slices of the sources."""
        raise NotImplementedError


def _is_counting(x: Tensor) -> bool:
    """Whether a tensor is the integers from 0 on."""
    if not isinstance(x, SymbolicTensor) or not dtypes.is_integer(x.dtype):
        return False
    node = x._node.inputs[0] if x._node.op.name == "convert" else x._node
    return node.op.name == "iota" and len(node.type.shape) == 1


class Rows(TensorIterable):
    """A tensor's slices along its first axis."""

    def __init__(self, x: Tensor) -> None:
        super().__init__(x.shape[0])
        self._x, self.counts = x, _is_counting(x)

    def element(self, index: object) -> Any:
        if self.counts and type(index) is int:
            return scalar(index, self._x.dtype, "for")  # whose value is known
        return getitem(self._x, index)

    def sources(self) -> list[Tensor]:
        return [self._x]

    def item_from_slices(self, slices: Iterator[Tensor]) -> Any:
        return next(slices)


class Reversed(TensorIterable):
    def __init__(self, x: Tensor) -> None:
        super().__init__(x.shape[0])
        self._x = x

    def element(self, index: Any) -> Any:
        return getitem(self._x, (self.length - 1 if isinstance(self.length, int) else self.stop - 1) - index)

    def tensors(self) -> list[Tensor]:
        return [self._x]

    def sources(self) -> list[Tensor]:
        return [shapes.flip(self._x, axis=0)]

    def item_from_slices(self, slices: Iterator[Tensor]) -> Any:
        return next(slices)


class Zipped(TensorIterable):
    def __init__(self, parts: Sequence[TensorIterable], length: object) -> None:
        super().__init__(length)
        self._parts = parts

    def element(self, index: object) -> Any:
        return tuple([part.element(index) for part in self._parts])

    def tensors(self) -> list[Tensor]:
        return [x for part in self._parts for x in part.tensors()]

    def sources(self) -> list[Tensor]:
        arrays = [x for part in self._parts for x in part.sources()]
        return [x if x.shape[0] == self.length else getitem(x, slice(0, self.length)) for x in arrays]

    def item_from_slices(self, slices: Iterator[Tensor]) -> Any:
        return tuple([part.item_from_slices(slices) for part in self._parts])


class Enumerated(TensorIterable):
    def __init__(self, part: TensorIterable, begin: int) -> None:
        super().__init__(part.length)
        self._part, self._begin = part, begin

    def element(self, index: Any) -> Any:
        return index + self._begin, self._part.element(index)

    def tensors(self) -> list[Tensor]:
        return self._part.tensors()

    def sources(self) -> list[Tensor]:
        from hybridflow.array import creation

        return [creation.arange(self._begin, self._begin + self.length), *self._part.sources()]

    def item_from_slices(self, slices: Iterator[Tensor]) -> Any:
        return number_of(next(slices)), self._part.item_from_slices(slices)


class Numbered(TensorIterable):
    """A walk whose items are read by their numbers: see ``structured_control.read_elsewhere``."""

    def __init__(self, part: TensorIterable) -> None:
        super().__init__(part.length)
        self._part, self.consumed = part, part.consumed

    def sources(self) -> list[Tensor]:
        from hybridflow.array import creation

        return [creation.arange(self.length)]

    def item_from_slices(self, slices: Iterator[Tensor]) -> Any:
        return self._part.element(number_of(next(slices)))


def iterations_of(value: object) -> IterationSpace | None:
    """The iterations that only a program takes: numbers up to a tensor, the elements of a dataset; None if none."""
    if isinstance(value, IterationSpace) and not isinstance(value, TensorIterable):
        return value
    if now().trace is None:
        return None
    method = getattr(type(value), "_program_iterations", None)
    return None if method is None else method(value)


def iterable_over(value: object) -> TensorIterable | None:
    """The walk that a ``for`` over ``value`` is; None for what is none."""
    if isinstance(value, TensorIterable):
        return value
    rows = rows_of(value)
    return None if rows is None else Rows(rows)


def rows_of(value: object) -> Tensor | None:
    """``value``, if it is a tensor over whose rows the program can walk: an argument, or captured."""
    return value if isinstance(value, Tensor) and value.shape and now().trace is not None else None


def enumerate_space(value: object, begin: Any = 0) -> IterationSpace | None:
    space: IterationSpace | None = (
        None if isinstance(value, TensorIterable) or type(begin) is not int else iterations_of(value)
    )
    if space is not None:
        return space.numbered(begin)
    walk = iterable_over(value)
    return None if walk is None or type(begin) is not int or walk.consumed else Enumerated(walk, begin)


def zip_tensors(values: Sequence[Any], strict: bool) -> TensorIterable | None:
    walks = [iterable_over(value) for value in values]
    known = [walk for walk in walks if walk is not None and not walk.consumed]
    if not known or len(known) < len(values):
        return None
    lengths = [walk.length for walk in known]
    if any(isinstance(n, Dim) for n in lengths):
        return Zipped(known, lengths[0]) if all(n is lengths[0] or n == lengths[0] for n in lengths) else None
    return None if strict and len(set(lengths)) > 1 else Zipped(known, min(lengths))
