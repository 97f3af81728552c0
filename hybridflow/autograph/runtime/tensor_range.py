"""Numbers up to a tensor: what ``range``, ``hf.arange`` and ``np.arange`` of a tensor are to a ``for`` statement."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from hybridflow.array import elementwise
from hybridflow.array.shapes import reshape
from hybridflow.autograph.runtime.iterables import IterationSpace, TensorIterable, iterable_over
from hybridflow.compiler.ir import dtypes
from hybridflow.core import pytree
from hybridflow.core.context import now
from hybridflow.core.tensor import Operators, Tensor
from hybridflow.eager.operands import as_tensor, cast
from hybridflow.errors import ConcretizationError, DTypeError, ShapeError, TraceError
from hybridflow.tracing import number_errors
from hybridflow.tracing.subtrace import SubTrace
from hybridflow.tracing.symbolic_number import number_of, number_tensor


def integer(x: object, what: str) -> Any:
    """The one integer of a tensor as a number of Python's; other values as they are.  Raises DTypeError or ShapeError
    as ``operator.index`` does."""
    if not isinstance(x, Tensor):
        return x
    if not dtypes.is_integer(x.dtype):
        raise DTypeError("index", f"{x.type} is not an integer, so it cannot be {what}.")
    if x.size != 1:
        raise ShapeError("index", f"{x.type} has {x.size} elements, and one is needed. Take one with x[0].")
    return number_of(cast(elementwise.stop_gradient(reshape(x, ())), dtypes.int64))


class Counted(IterationSpace):
    """Iterations that are counted from 0 up to ``count``; ``item`` makes what an iteration is given of its number."""

    def __init__(self, count: object, item: Callable[[Any], Any]) -> None:
        super().__init__(count)
        self._item = item

    def element(self, index: object) -> Any:
        return self._item(index)

    def __iter__(self) -> Iterator[Any]:
        raise ConcretizationError(
            "for",
            "how many items there are is not known while tracing. Use a for statement, or hf.stack after the loop.",
        )

    __len__ = __bool__ = __iter__

    def numbered(self, begin: int) -> IterationSpace:
        return Counted(self.stop, lambda k: (k + begin, self._item(k)))


class TensorRange(IterationSpace):
    """``range`` of numbers of which a tensor decides.  ``element_of`` makes what an iteration is given instead of the
    number itself.

    Where the step is known an iteration's index is its number; else iterations are counted.
    """

    def __init__(self, *bounds: object, element_of: Callable[[Any], Any] | None = None) -> None:
        start, stop, step = (0, *bounds, 1) if len(bounds) == 1 else (*bounds, 1)[:3]
        start, stop, step = (integer(bound, "an index or a size") for bound in (start, stop, step))
        self._element_of = element_of
        self._bounds = start, stop, step
        if isinstance(step, Tensor):
            values = [number_tensor(bound, int) for bound in self._bounds]
            number_errors.fail_unless(elementwise.not_equal(values[2], 0), range, (ValueError,), *values)
            super().__init__(self.count)
        else:
            super().__init__(start, stop, operator.index(step) or len(range(0, 0, 0)))

    @property
    def _is_counted(self) -> bool:
        return isinstance(self._bounds[2], Tensor)

    @property
    def count(self) -> Any:
        """How many numbers there are, as one of Python's."""
        start, stop, step = (number_tensor(bound, int) for bound in self._bounds)
        upwards = elementwise.greater(step, 0)
        distance = elementwise.where(upwards, elementwise.subtract(stop, start), elementwise.subtract(start, stop))
        by = elementwise.maximum(elementwise.abs(step), 1)
        count = elementwise.floor_divide(elementwise.add(distance, elementwise.subtract(by, 1)), by)
        return number_of(elementwise.maximum(count, 0))

    def at(self, position: Any) -> Any:
        """What an iteration is given, by its position among all."""
        start, _, step = self._bounds
        number = start + position * step
        return number if self._element_of is None else self._element_of(number)

    def element(self, index: object) -> Any:
        if self._is_counted:
            return self.at(index)
        return index if self._element_of is None else self._element_of(index)

    def numbered(self, begin: int) -> IterationSpace:
        return Counted(self.count, lambda k: (k + begin, self.at(k)))

    def backwards(self) -> IterationSpace:
        """The same numbers, from the last one on."""
        count = self.count
        return Counted(count, lambda k: self.at(count - 1 - k))

    def total(self) -> Any:
        """The sum of all."""
        count, (start, _, step) = self.count, self._bounds
        return count * start + step * (count * (count - 1) // 2)

    def why_no_result(self) -> TraceError:
        """Why a compiled function cannot return it."""
        return self._unknown()

    def holds(self, value: object) -> Any:
        """Whether a number is one of them."""
        start, _, step = self._bounds
        position = (value - start) // step
        inside = elementwise.logical_and(position >= 0, position < self.count)
        return number_of(elementwise.logical_and(inside, start + position * step == value))

    def __getitem__(self, position: Any) -> Any:
        position, count = integer(position, "an index or a size"), self.count
        if isinstance(position, slice):
            raise self._unknown()
        fits = elementwise.logical_and(position >= -count, position < count)
        values = [number_tensor(value, int) for value in (*self._bounds, position)]
        number_errors.fail_unless(fits, _item_of_range, (IndexError,), *values)
        return self.at(elementwise.where(position < 0, position + count, position))

    def __len__(self) -> int:
        raise self._unknown()

    def __iter__(self) -> Iterator[Any]:
        raise self._unknown()

    __bool__ = __array__ = __len__

    def _unknown(self) -> TraceError:
        return ConcretizationError(
            "range", "how many numbers a range over a tensor has is not known while tracing. Use for i in range(n)."
        )


class LazyArange(TensorRange, Operators):
    """``arange`` of numbers of which a tensor decides: a range to a ``for`` statement, a tensor to all else.  ``make``
    makes that tensor, and raises an error where calls cannot find how long it is."""

    def __init__(self, *bounds: object, element_of: Callable[[Any], Any], make: Callable[[], Any]) -> None:
        super().__init__(*bounds, element_of=element_of)
        self._make = make
        self._tensor: Tensor | None = None  # of the trace of the function itself

    def _whole(self) -> Tensor:
        if self._tensor is not None:
            return self._tensor
        tensor = as_tensor(self._make(), "arange")
        if not isinstance(now().trace, SubTrace):
            self._tensor = tensor
        return tensor

    def as_result(self) -> Tensor:
        """What a compiled function returns for it."""
        return self._whole()

    def __setitem__(self, key: object, value: object) -> None:
        raise ConcretizationError(
            "setitem", "how long a range is depends on a tensor, and it is changed in place. Change a copy: x = +x."
        )

    @property
    def shape(self) -> Any:
        return self._whole().shape

    @property
    def dtype(self) -> Any:
        return self._whole().dtype

    def __getitem__(self, key: object) -> Any:
        return self._whole()[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._whole())

    def __len__(self) -> int:
        return len(self._whole())

    def __bool__(self) -> bool:
        return bool(self._whole())

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        return self._whole().__array__(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._whole(), name)


def materialize(value: object) -> Any:
    """A value in which all that stands for a tensor until it is returned (``as_result``), as ranges do, is that."""
    leaves, structure = pytree.flatten(value)
    if not any(hasattr(type(leaf), "as_result") for leaf in leaves):
        return value
    results = [leaf.as_result() if hasattr(type(leaf), "as_result") else leaf for leaf in leaves]
    return pytree.unflatten(structure, results)


def check_kept(values: object) -> None:
    """Raise ConcretizationError where what outlives the call holds a range that is a tensor."""
    if any(type(leaf) is LazyArange for leaf in pytree.flatten(values)[0]):
        raise ConcretizationError(
            "arange", "how long a range is depends on a tensor, and it is kept in an object. Keep a copy: +x."
        )


def _item_of_range(start: int, stop: int, step: int, position: int) -> int:
    return range(start, stop, step)[position]


def zip_ranges(values: Sequence[Any]) -> IterationSpace | None:
    """``zip`` of ranges over tensors and of what else a program can walk over; None where there is no such range."""
    if not any(isinstance(value, (TensorRange, Counted)) for value in values):
        return None
    parts: list[Callable[[Any], Any]] = []
    length: object = None
    for value in values:
        walk = value if isinstance(value, (TensorRange, Counted)) else iterable_over(value)
        if walk is None or (isinstance(walk, TensorIterable) and walk.consumed):
            raise ConcretizationError(
                "zip",
                f"a {type(value).__name__} is paired with a range over a tensor. Pair tensors, or index with the "
                "number of the iteration.",
            )
        count = (
            walk.length
            if isinstance(walk, TensorIterable)
            else walk.count
            if isinstance(walk, TensorRange)
            else walk.stop
        )
        length = count if length is None else number_of(elementwise.minimum(_tensor(length), _tensor(count)))
        parts.append(walk.at if isinstance(walk, TensorRange) else walk.element)
    return Counted(length, lambda k: tuple([part(k) for part in parts]))


def _tensor(count: object) -> Tensor:
    return number_tensor(count, int)
