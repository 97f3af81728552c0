"""Texts among elements: ``str`` and ``bytes``, which are not tensors.

A text alone is Python's own; those of a batch are an array of NumPy's of dtype object, which is not written to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hybridflow.core.string_tensor import StringTensor, of_texts, string
from hybridflow.core.tensor import Tensor, wrap
from hybridflow.errors import ArgumentError, ArgumentTypeError
from hybridflow.jit.tensor_spec import TensorSpec, Wanted, accepts

KINDS = {"str": str, "bytes": bytes}


class TextSpec:
    """Type of texts in elements of a dataset: their shape, and whether they are ``str`` or ``bytes``.

    Args:
        shape: extents, None for any; ``()`` for a single text.
        dtype: "str" or "bytes".

    >>> hf.data.Dataset.from_tensor_slices(["a", "b"]).batch(2).element_spec
    TextSpec((None,), 'str')
    """

    __slots__ = ("dtype", "shape")

    def __init__(self, shape: Sequence[int | None] = (), dtype: str = "str") -> None:
        self.shape: tuple[Wanted, ...] = tuple(shape)
        self.dtype: str = getattr(dtype, "__name__", dtype)
        if self.dtype not in KINDS:
            raise ArgumentError("TextSpec", f"dtype is {dtype!r}; it must be str or bytes.")

    def accepts_shape(self, shape: tuple[Any, ...]) -> bool:
        """Whether texts of that shape fit.

        Args:
            shape: a tuple of ints.

        Returns:
            True or False.
        """
        return accepts(self.shape, shape)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TextSpec):
            return NotImplemented
        return (self.shape, self.dtype) == (other.shape, other.dtype)

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype))

    def __repr__(self) -> str:
        return f"TextSpec({self.shape}, {self.dtype!r})"


def is_text(value: Any) -> bool:
    """Whether a leaf of an element is a text, or an array of texts."""
    kind = type(value)
    return kind is StringTensor or isinstance(value, (str, bytes)) or (kind is np.ndarray and value.dtype.hasobject)


def text_of(value: object, stage: str) -> Any:
    """A text, an array or nested list of texts as a leaf; None for what holds no texts.

    Raises ArgumentTypeError for an array of objects of which some are no texts, or of both kinds.
    """
    if type(value) is StringTensor:
        return value
    if isinstance(value, np.generic) and value.dtype.kind in "US":
        return value.item()
    if isinstance(value, (str, bytes)):
        return value
    if type(value) is list:
        if not isinstance(_first(value), (str, bytes)):
            return None
        value = np.array(value, object)
    elif not isinstance(value, np.ndarray) or value.dtype.kind not in "USO":
        return None
    return locked(np.array(value, object), stage)


def _first(value: object) -> Any:
    while isinstance(value, list) and value:
        value = value[0]
    return value


def locked(array: np.ndarray, stage: str) -> Any:
    """An array of objects of our own as a leaf.  Raises ArgumentTypeError where it holds other things than texts."""
    kinds = {_kind(text) for text in array.flat}
    if len(kinds) > 1 or not kinds <= {"str", "bytes"}:
        listed = ", ".join(sorted(kinds))
        raise ArgumentTypeError(stage, f"an array of objects holds {listed}; elements hold either str or bytes.")
    array.flags.writeable = False
    return array if array.ndim else array.item()


def spec_of_text(leaf: Any) -> TextSpec | TensorSpec:
    """The spec of a text, an array of texts, or a tensor of them."""
    if type(leaf) is StringTensor:
        return TensorSpec(leaf.shape, string)
    if isinstance(leaf, (str, bytes)):
        return TextSpec((), "str" if isinstance(leaf, str) else "bytes")
    return TextSpec(leaf.shape, _kind(leaf.flat[0]) if leaf.size else "str")


def _kind(text: object) -> str:
    """What a text is, which may be one of a class of its own, by name; of another object its class's."""
    return next((name for name, kind in KINDS.items() if isinstance(text, kind)), type(text).__name__)


def array_of(leaf: object) -> np.ndarray:
    """The values of a leaf as an array."""
    if type(leaf) is StringTensor:
        return leaf.texts
    if isinstance(leaf, Tensor):
        return leaf.numpy()
    return leaf if isinstance(leaf, np.ndarray) else np.array(leaf, object)


def leaf_of(array: np.ndarray) -> Any:
    """An array as a leaf: a tensor, or texts."""
    if not array.dtype.hasobject:
        return wrap(array)
    if array.dtype.metadata is not None:
        return of_texts(array)
    return array if array.ndim else array.item()


def spec_of_array(shape: tuple[Any, ...], array: np.ndarray) -> TextSpec | TensorSpec:
    """The spec of leaves of that shape out of an array."""
    if not array.dtype.hasobject:
        return TensorSpec(shape, array.dtype)
    return TensorSpec(shape, string) if array.dtype.metadata is not None else TextSpec(shape, _spec(array).dtype)


def _spec(array: np.ndarray) -> TextSpec:
    return TextSpec(array.shape, _kind(array.flat[0]) if array.size else "str")


def joined(arrays: Sequence[Any]) -> np.ndarray:
    """Arrays one behind another, those of tensors of texts as one of these."""
    return np.concatenate(arrays).view(arrays[0].dtype)


def nothing_of(leaf: object) -> str | bytes:
    """The empty text of the kind that a leaf holds."""
    return b"" if type(leaf) is StringTensor else KINDS[str(spec_of_text(leaf).dtype)]()


def with_shape(spec: Any, shape: Sequence[int | None]) -> Any:
    """A spec of another shape."""
    return type(spec)(shape, spec.dtype)
