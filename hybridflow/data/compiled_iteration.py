"""Datasets in compiled functions: the elements come when the program runs.

A ``for`` over a dataset is one loop of the program.  It asks Python for each element, in the order of effects, so that
what the pipeline does, prints or raises is what and when it is eagerly.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from hybridflow.autograph.runtime.iterables import IterationSpace
from hybridflow.compiler.ir.dtypes import bool_, int64
from hybridflow.compiler.ir.types import TensorType
from hybridflow.core import pytree
from hybridflow.core.context import suspended
from hybridflow.core.string_tensor import StringTensor, StringType, codes_of, is_string, of_codes
from hybridflow.core.tensor import Tensor
from hybridflow.errors import ShapeError, TraceError
from hybridflow.guards.guard_builder import active
from hybridflow.jit.tensor_spec import TensorSpec
from hybridflow.tracing.effect_token import call_in_order

_FLAG, _NUMBER = TensorType((), bool_), TensorType((), int64)
_MOST_RUNS = 64  # that programs which failed have left behind


class Elements:
    """What a program knows of elements: how they are nested, and the types of their tensors."""

    def __init__(self, spec: Callable[[], Any]) -> None:
        recording, active.recording = active.recording, None  # no reads of the traced function's
        try:
            with suspended():
                leaves, self.structure = pytree.flatten(spec())
        finally:
            active.recording = recording
        self.kinds = [_type(leaf) for leaf in leaves]
        self.types = [TensorType(kind.shape, int64) if is_string(kind.dtype) else kind for kind in self.kinds]

    def arrays(self, element: object) -> list[np.ndarray]:
        """The arrays of an element that is there.  Raises ShapeError where it is another than it was to be."""
        leaves, structure = pytree.flatten(element)
        kinds = [leaf.type if isinstance(leaf, Tensor) else type(leaf).__name__ for leaf in leaves]
        if structure != self.structure or kinds != self.kinds:
            shown = ", ".join(map(str, self.kinds))
            raise ShapeError("Dataset", f"an element is of {', '.join(map(str, kinds))}. Expected {shown}, as before.")
        return [codes_of(leaf.texts) if type(leaf) is StringTensor else leaf.numpy() for leaf in leaves]

    def nothing(self) -> list[np.ndarray]:
        """In the place of an element, where there is none."""
        return [np.zeros(type.shape, type.dtype) for type in self.types]

    def element(self, tensors: Sequence[Tensor]) -> Any:
        outcome = [of_codes(x) if is_string(kind.dtype) else x for x, kind in zip(tensors, self.kinds)]
        return pytree.unflatten(self.structure, outcome)


def _type(spec: object) -> TensorType:
    if not isinstance(spec, TensorSpec):
        raise TraceError("Dataset", f"its elements hold {spec!r}, which compiled functions have no values for.")
    if any(n is None for n in spec.shape):
        raise TraceError(
            "Dataset",
            f"its elements are {spec!r}, whose shapes may differ, and a loop of a compiled function knows the shapes "
            "that it goes through. Give all of them one shape, as with batch(n, drop_remainder=True), or iterate "
            "outside of the compiled function, and pass each element.",
        )
    kind = StringType if is_string(spec.dtype) else TensorType
    return kind(tuple([int(n) for n in spec.shape if n is not None]), spec.dtype)


class ElementIterations(IterationSpace):
    """A turn for each element of what ``begin`` gives when the program comes to the loop; ``counted`` from a number on
    where each comes with its number.

    A derivative asks once more what Python has answered, but does nothing once more.  So each answer is to be one to
    what was done just before, and is an error where that is not so.
    """

    def __init__(self, spec: Callable[[], Any], begin: Callable[[], Any], is_shared: bool = False) -> None:
        self._known, self._make, self._is_shared = Elements(spec), begin, is_shared
        self.counted: int | None = None
        self._runs: dict[int, _Run] = {}
        self._numbers = itertools.count(1)
        self._latest = threading.local()
        self._number: Any = None

    def __iter__(self) -> Iterator[Any]:
        raise TraceError(
            "Dataset",
            "a compiled function takes the elements of a dataset when it runs, with a for statement of its own.",
        )

    def begin(self) -> None:
        """The loop begins."""
        call_in_order(self._begin, [], [])
        (self._number,) = call_in_order(self._take_number, [], [_NUMBER])
        self.start = self._take_next(0 if self.counted is None else self.counted)

    def numbered(self, begin: int) -> IterationSpace:
        self.counted = begin
        return self

    def element(self, index: Any) -> Any:
        element = self._known.element(index[2:])
        return element if self.counted is None else (index[1], element)

    def has_index(self, index: Any) -> Any:
        return index[0]

    def next_index(self, index: Any) -> Any:
        return self._take_next(index[1] + 1 if self.counted is not None else index[1])

    def _take_next(self, count: object) -> tuple[Any, ...]:
        call_in_order(self._take, [self._number], [])
        flag, *tensors = call_in_order(self._answer, [self._number], [_FLAG, *self._known.types])
        return flag, count, *tensors

    def finish(self) -> None:
        call_in_order(self._end, [self._number], [])

    # What the program calls.

    def _begin(self) -> None:
        with suspended():
            self._latest.number = number = next(self._numbers)
            self._runs[number] = _Run(self._make())
            for left in list(self._runs)[:-_MOST_RUNS]:
                self._close(left)

    def _take_number(self) -> np.ndarray:
        number, self._latest.number = getattr(self._latest, "number", None), None
        if number is None:
            raise _once_more()
        return np.asarray(number)

    def _take(self, number: np.ndarray) -> None:
        run = self._runs[int(number)]
        with suspended():
            try:
                run.taken = [np.asarray(True), *self._known.arrays(next(run.elements))]
            except StopIteration:
                run.taken = [np.asarray(False), *self._known.nothing()]

    def _answer(self, number: np.ndarray) -> list[np.ndarray]:
        run = self._runs.get(int(number))
        if run is None or run.taken is None:
            raise _once_more()
        taken, run.taken = run.taken, None
        return taken

    def _end(self, number: np.ndarray) -> None:
        self._close(int(number))

    def _close(self, number: int) -> None:
        run = self._runs.pop(number, None)
        if run is not None and not self._is_shared:
            run.elements.close()


class _Run:
    """One loop that goes on: where the elements come from, and the arrays of one that the program has not yet got."""

    __slots__ = ("elements", "taken")

    def __init__(self, elements: Any) -> None:
        self.elements = elements
        self.taken: list[np.ndarray] | None = None


def _once_more() -> TraceError:
    return TraceError(
        "Dataset",
        "a derivative of a loop over a dataset would have to take its elements once more. Open the tape inside of the "
        "loop, and take the gradient of each element.",
    )


class Taken:
    """``next`` of an iterator in a program."""

    def __init__(self, spec: Callable[[], Any], take: Callable[[], Any]) -> None:
        self._known, self._next = Elements(spec), take
        self._arrays = threading.local()

    def element(self) -> Any:
        call_in_order(self._take, [], [])
        return self._known.element(call_in_order(self._answer, [], self._known.types))

    def optional(self) -> tuple[Tensor, Any]:
        """Whether there is an element, and that; zeros in the place of one that is not there."""
        call_in_order(self._take_if_any, [], [])
        flag, *tensors = call_in_order(self._answer, [], [_FLAG, *self._known.types])
        return flag, self._known.element(tensors)

    def _take(self) -> None:
        with suspended():
            self._arrays.made = self._known.arrays(self._next())

    def _take_if_any(self) -> None:
        with suspended():
            try:
                self._arrays.made = [np.asarray(True), *self._known.arrays(self._next())]
            except StopIteration:
                self._arrays.made = [np.asarray(False), *self._known.nothing()]

    def _answer(self) -> Any:
        arrays, self._arrays.made = getattr(self._arrays, "made", None), None
        if arrays is None:
            raise _once_more()
        return arrays[0] if len(arrays) == 1 else arrays
