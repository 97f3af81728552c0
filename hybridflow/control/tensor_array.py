"""TensorArray: elements of one shape that a loop writes one after the other."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable
from typing import Any, Self

import numpy as np

from hybridflow.array import elementwise
from hybridflow.array.creation import zeros
from hybridflow.array.indexing import take
from hybridflow.array.setitem import updated
from hybridflow.array.shapes import pad
from hybridflow.compiler.ir.types import Shape, same_extents
from hybridflow.core.promotion import to_dtype, weak_kind
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import ArrayLike, DTypeLike
from hybridflow.eager.operands import as_tensor, reshape_to, to_shape
from hybridflow.errors import ArgumentError, ConcretizationError, DTypeError, ShapeError, TraceError, entered

shape_of_either: list[Callable[[Any], Shape | None]] = []
"""What it gives of elements that are there or not, as a tensor decides, is their shape or None, decided alike."""

one_of_either: list[Callable[[Any, ArgumentError | None], tuple[Tensor | None, Tensor | None]]] = []
"""It gives the elements that may be there, and what decides whether they are; the program raises the error, where there
is one, unless they are."""


@dataclasses.dataclass(frozen=True)
class _Form:
    """What is known before the first element is."""

    dtype: np.dtype[Any]
    size: Any


class _Growing(_Form):
    """That of an array which becomes longer: a type and no field, which a loop would carry."""


@dataclasses.dataclass(init=False, eq=False)
class TensorArray:
    """Array of tensors of one dtype and shape, written and read by index; elements are 0 until they are written.

    It is immutable: ``write`` returns a new array. So it can be a loop variable, and gradients flow through reads and
    writes.

    ``hf.while_loop``, ``hf.cond`` and their like need the ``element_shape``. A compiled ``for`` or ``while`` is much
    faster with it: without, each iteration copies the array.

    With ``dynamic_size``, writing past the end makes the array longer, except in compiled loops. A ``for`` over a
    dynamic extent is then unrolled.

    Args:
        dtype: the dtype of the elements.
        size: the number of elements.
        element_shape: the shape of an element; None for that of the first element written.
        dynamic_size: whether writing past the end makes the array longer.

    >>> @hf.function
    ... def squares(n):
    ...     def body(i, found):
    ...         return i + 1, found.write(i, i * i)
    ...     return hf.while_loop(lambda i, _: i < n, body, (0, hf.TensorArray(hf.int64, 5, ())))[1].stack()
    ...
    >>> squares(hf.asarray(4))
    <Tensor i64[5] cpu> [0 1 4 9 0]
    """

    _form: _Form
    _values: Tensor | None  # or a choice of them, of which a tensor decides

    def __init__(
        self, dtype: DTypeLike, size: object, element_shape: object = None, dynamic_size: bool = False
    ) -> None:
        (extent,) = to_shape(size, "TensorArray")
        self._form = (_Growing if dynamic_size else _Form)(to_dtype(dtype, "TensorArray"), extent)
        self._values = None if element_shape is None else self._zeros(to_shape(element_shape, "TensorArray"))

    def _zeros(self, shape: Shape) -> Tensor:
        return zeros((self._form.size, *shape), dtype=self._form.dtype)

    def _with(self, values: Tensor) -> Self:
        result = object.__new__(type(self))
        result._form = _Growing(self.dtype, values.shape[0]) if self.grows else self._form
        result._values = values
        return result

    def _known(self, stage: str) -> Tensor:
        values = self._values
        if isinstance(values, Tensor):
            return values
        error = ArgumentError(stage, "no element was written yet, and no element_shape given. Give it to TensorArray.")
        elements = None if values is None else one_of_either[0](values, error)[0]
        if elements is None:
            raise error
        return elements

    def _to_write(self, element: Tensor) -> Tensor:
        """The elements that a write of this one changes, 0 where none was written."""
        if isinstance(self._values, Tensor):
            return self._values
        values, is_there = (None, None) if self._values is None else one_of_either[0](self._values, None)
        if values is None:
            return self._zeros(element.shape)
        if is_there is None:
            return values
        if self.grows or not same_extents(element.shape, values.shape[1:]):
            raise ConcretizationError(
                "TensorArray.write",
                f"the value is {element.type}, and a tensor decides whether elements of shape {_text(values)} were "
                "written before. Give TensorArray its size and element_shape.",
            )
        return elementwise.where(is_there, values, self._zeros(element.shape))

    @property
    def grows(self) -> bool:
        """Whether writing behind the end makes it longer."""
        return isinstance(self._form, _Growing)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._form.dtype

    @property
    def element_shape(self) -> Shape | None:
        values = self._values
        if values is None or isinstance(values, Tensor):
            return None if values is None else values.shape[1:]
        return shape_of_either[0](values)

    def size(self) -> Any:
        """How many elements there are.

        Returns:
            An int, or an int64 tensor.
        """
        return self._form.size

    @entered
    def write(self, index: ArrayLike, value: Any) -> TensorArray:
        """The array with ``value`` at ``index``.

        Args:
            index: an integer.
            value: a tensor of the shape and dtype of elements.

        Returns:
            A new array.

        Raises:
            DTypeError: where the value has another dtype.
            ShapeError: where the value has another shape.
            IndexRangeError: for an index out of range.

        >>> a = hf.TensorArray("float32", 2).write(0, 1.0).write(1, 2.0)
        >>> a.stack().tolist()
        [1.0, 2.0]
        """
        stage = "TensorArray.write"
        element = as_tensor(value, stage, self.dtype if weak_kind(value) is not None else None)
        if element.dtype != self.dtype:
            raise DTypeError(
                stage,
                f"the value is {element.type}, of an array of {self.dtype}. Convert it with hf.astype(x, "
                f"hf.{self.dtype}).",
            )
        values = self._to_write(element)
        if not same_extents(element.shape, values.shape[1:]):
            raise ShapeError(
                stage, f"the value is {element.type}. Expected the shape of all elements, {_text(values)}."
            )
        if self.grows:
            values = _long_enough(values, index)
        return self._with(updated(values, index, element))

    @entered
    def read(self, index: object) -> Tensor:
        """The element at ``index``.

        Args:
            index: an integer.

        Returns:
            A tensor.

        Raises:
            IndexRangeError: for an index out of range.
        """
        return self._known("TensorArray.read")[index]

    def stack(self) -> Tensor:
        """All elements, along a first axis.

        Returns:
            A tensor with one axis more than elements have.
        """
        return self._known("TensorArray.stack")

    def gather(self, indices: ArrayLike) -> Tensor:
        """The elements at ``indices``, along a first axis.

        Args:
            indices: integers.

        Returns:
            A tensor of shape ``indices.shape + element.shape``.
        """
        return take(self._known("TensorArray.gather"), indices, axis=0)

    @entered
    def unstack(self, values: ArrayLike) -> TensorArray:
        """The array whose elements are the slices of ``values``.

        Args:
            values: a tensor with a first axis of the elements.

        Returns:
            A new array.

        Raises:
            ShapeError: where the number of slices or their dtype is another.
        """
        stage = "TensorArray.unstack"
        x = as_tensor(values, stage, self.dtype if isinstance(values, (list, tuple)) else None)
        fits = bool(x.shape) and (self.grows or same_extents(x.shape[:1], (self._form.size,)))
        if x.dtype != self.dtype or not fits:
            raise ShapeError(stage, f"the values are {x.type}. Expected {self._form.size} slices of {self.dtype}.")
        return self._with(x)

    def concat(self) -> Tensor:
        """The elements one behind the other, along their first axis.

        Returns:
            A tensor with as many axes as elements have.

        Raises:
            ShapeError: for elements without axes.
        """
        values = self._known("TensorArray.concat")
        if len(values.shape) < 2:
            raise ShapeError("TensorArray.concat", f"elements are {_text(values)}. Expected at least one axis.")
        return reshape_to(values, (values.shape[0] * values.shape[1], *values.shape[2:]))

    def __repr__(self) -> str:
        shape = "?" if self._values is None else _text(self._values)
        return f"<TensorArray of {self._form.size} {self.dtype}, each {shape}>"


def _long_enough(values: Tensor, index: Any) -> Tensor:
    """The elements, and zeros behind them up to ``index``.  Raises TraceError where that is not known."""
    known = index._known() if isinstance(index, Tensor) and type(index) is not Tensor else index
    if known is None:
        raise TraceError(
            "TensorArray.write", "how long the array becomes is not known while tracing. Give TensorArray its size."
        )
    missing = operator.index(known) + 1 - values.shape[0]
    return values if missing <= 0 else pad(values, [(0, missing), *[(0, 0)] * (len(values.shape) - 1)])


def _text(values: Tensor) -> str:
    return f"[{','.join(map(str, values.shape[1:]))}]"
