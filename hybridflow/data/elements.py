"""What datasets are made of: nested tensors, one after another, and what is done to whole lists of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hybridflow.core import pytree
from hybridflow.core.string_tensor import StringTensor, of_texts
from hybridflow.core.tensor import Tensor, wrap
from hybridflow.data.strings import TextSpec, is_text, spec_of_text, text_of, with_shape
from hybridflow.eager.operands import as_tensor
from hybridflow.errors import ArgumentTypeError, ShapeError
from hybridflow.jit.tensor_spec import TensorSpec


class Nested:
    """What may be an element beside tensors: a dataset (of ``window``), which ``Dataset`` derives from."""

    __slots__ = ()

    @property
    def element_spec(self) -> Any:
        raise NotImplementedError


def converted(value: Any, stage: str) -> Any:
    """A value as an element: tuples, dicts, namedtuples and dataclasses stay, and what they hold become tensors.

    Lists become tensors as a whole.  Raises ArgumentTypeError for what is not a tensor.
    """
    kind = type(value)
    if kind is Tensor or isinstance(value, Nested):
        return value
    if kind is tuple:
        for part in value:
            if type(part) is not Tensor:
                return tuple([converted(part, stage) for part in value])
        return value
    if kind is dict:
        return {key: converted(part, stage) for key, part in value.items()}
    if kind is not list and pytree.is_container(value):
        leaves, structure = pytree.flatten(value)
        return pytree.unflatten(structure, [converted(leaf, stage) for leaf in leaves])
    if value is None:
        raise ArgumentTypeError(stage, "the function returned None where an element is wanted. Return a tensor.")
    text = text_of(value, stage)
    return as_tensor(value, stage) if text is None else text


def fresh(element: object) -> Any:
    """The element as other objects: what users assign to items of the one is not seen in the other."""
    return mapped(lambda leaf: leaf if not isinstance(leaf, Tensor) or is_text(leaf) else wrap(leaf._array), element)


def mapped(function: Callable[[Any], Any], element: Any) -> Any:
    """``function`` of each leaf of an element, as an element of that structure."""
    kind = type(element)
    if kind is Tensor:
        return function(element)
    if kind is tuple:
        return tuple([mapped(function, part) for part in element])
    leaves, structure = pytree.flatten(element)
    return pytree.unflatten(structure, [function(leaf) for leaf in leaves])


def size_of(element: object) -> int:
    """The bytes of the tensors of an element."""
    leaves = [element] if type(element) is Tensor else pytree.flatten(element)[0]
    return sum([int(leaf.size) * leaf.dtype.itemsize for leaf in leaves if isinstance(leaf, Tensor)])


def caller(function: Callable[..., Any]) -> Callable[[Any], Any]:
    """``function``, which takes the parts of elements that are tuples as arguments, as a function of the element."""

    def call(element: object) -> Any:
        return function(*element) if type(element) is tuple else function(element)

    return call


def columns(elements: Sequence[Any], stack: Callable[[list[Any]], Any], stage: str) -> Any:
    """An element whose leaves are ``stack`` of those of several elements.

    Raises ShapeError for elements of other structures than the first.
    """
    first = elements[0]
    kind = type(first)
    if kind is Tensor and len({*map(type, elements)}) == 1:
        return stack(list(elements))
    if kind is tuple and all(type(e) is tuple and len(e) == len(first) for e in elements):
        return tuple([columns(column, stack, stage) for column in zip(*elements)])
    flat = [pytree.flatten(e) for e in elements]
    structure = flat[0][1]
    for number, (_, other) in enumerate(flat):
        if not other.same_entries(structure):
            raise ShapeError(
                stage,
                f"elements of one batch differ in structure: {structure!r} and, element {number} of the batch, "
                f"{other!r}.",
            )
    return pytree.unflatten(structure, [stack(list(column)) for column in zip(*[leaves for leaves, _ in flat])])


def arrays_of(leaves: list[Any], stage: str) -> list[np.ndarray]:
    """The arrays of leaves.  Raises for leaves that are not tensors, or differ in dtype."""
    arrays = _arrays(leaves, stage)
    dtype = arrays[0].dtype
    for number, array in enumerate(arrays):
        if array.dtype is not dtype and array.dtype != dtype:
            raise ShapeError(
                stage,
                f"elements of one batch differ in dtype: {dtype} and, element {number} of the batch, {array.dtype}.",
            )
    return arrays


def _arrays(leaves: list[Any], stage: str) -> list[np.ndarray]:
    try:
        return [leaf._array if type(leaf) is Tensor else _array(leaf) for leaf in leaves]
    except AttributeError:
        raise ArgumentTypeError(stage, f"{type(leaves[0]).__name__} cannot be put into a batch.") from None


def _array(leaf: object) -> np.ndarray:
    if isinstance(leaf, Tensor):
        return leaf.numpy()
    raise AttributeError


def stacked(leaves: list[Any], stage: str) -> Any:
    """Tensors, or texts, of one shape as the rows of another.  Raises ShapeError where shapes or dtypes differ."""
    if is_text(leaves[0]):
        return stacked_texts(leaves, stage)
    rows = _rows(_arrays(leaves, stage))
    if rows is not None:
        return wrap(rows)
    arrays = arrays_of(leaves, stage)
    shape = arrays[0].shape
    for number, array in enumerate(arrays):
        if array.shape != shape:
            raise ShapeError(
                stage,
                f"elements of one batch differ in shape: {shape} and, element {number} of the batch, {array.shape}. "
                "Pad them with padded_batch.",
            )
    if not all(isinstance(array, np.ndarray) for array in arrays):  # on a GPU
        arrays = [leaf.numpy() for leaf in leaves]
    return wrap(np.array(arrays))


def _rows(arrays: list[np.ndarray]) -> np.ndarray | None:
    """Arrays as the rows of another; None where they have no axes, are not all NumPy's, or differ.

    NumPy looks at all but their first extents while it joins them, which saves a look at each array.
    """
    shape = arrays[0].shape
    if not shape or {*map(type, arrays)} != {np.ndarray}:
        return None
    try:
        if {*map(len, arrays)} != {shape[0]}:
            return None
        joined = np.concatenate(arrays, dtype=arrays[0].dtype, casting="no")
    except (TypeError, ValueError):
        return None
    return joined.reshape(len(arrays), *shape)


def stacked_texts(leaves: list[Any], stage: str) -> Any:
    """Texts, or arrays of them, of one shape as the rows of an array.  Raises ShapeError where they differ."""
    specs: list[Any] = [spec_of_text(leaf) if is_text(leaf) else TensorSpec.of(leaf) for leaf in leaves]
    for spec in specs:
        if spec != specs[0]:
            raise ShapeError(stage, f"elements of one batch differ: {specs[0]} and {spec}.")
    out: Any = np.empty((len(leaves), *specs[0].shape), object)
    for number, leaf in enumerate(leaves):
        out[number] = leaf.numpy() if type(leaf) is StringTensor else leaf
    if type(leaves[0]) is StringTensor:
        return of_texts(out)
    out.flags.writeable = False
    return out


def batched(elements: Sequence[Any], stage: str = "Dataset.batch") -> Any:
    """Elements stacked leaf by leaf."""
    return columns(elements, lambda leaves: stacked(leaves, stage), stage)


def spec_of(element: object) -> Any:
    """The element with a TensorSpec for each tensor, and a TextSpec for texts."""
    return mapped(_spec_of_leaf, element)


def _spec_of_leaf(leaf: object) -> TextSpec | TensorSpec:
    if isinstance(leaf, Nested):
        return leaf.element_spec
    return spec_of_text(leaf) if is_text(leaf) else TensorSpec.of(leaf)


def mapped_spec(function: Callable[[Any], Any], spec: object) -> Any:
    """``function`` of each TensorSpec of nested ones."""
    leaves, structure = pytree.flatten(spec)
    return pytree.unflatten(structure, [function(leaf) for leaf in leaves])


def common(specs: Sequence[Any], stage: str) -> Any:
    """The spec that all elements of several specs fit.  Raises ShapeError where structures, ranks or dtypes differ."""
    flat = [pytree.flatten(spec) for spec in specs]
    structure = flat[0][1]
    columns_ = list(zip(*[leaves for leaves, _ in flat]))
    for (_, other), spec in zip(flat, specs):
        if not other.same_entries(structure):
            raise ShapeError(stage, f"the datasets have other elements: {specs[0]!r} and {spec!r}.")
    return pytree.unflatten(structure, [_common(list(column), stage) for column in columns_])


def _common(specs: list[Any], stage: str) -> Any:
    first = specs[0]
    for spec in specs:
        if spec.dtype != first.dtype or len(spec.shape) != len(first.shape):
            raise ShapeError(stage, f"the datasets have other elements: {first} and {spec}.")
    shape = [extents[0] if len({*extents}) == 1 else None for extents in zip(*[spec.shape for spec in specs])]
    return with_shape(first, shape)
