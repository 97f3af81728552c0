"""TensorSpec: what is said of an argument's shape and dtype in advance."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

import numpy as np

from hybridflow.compiler.ir.extents import Dim
from hybridflow.compiler.ir.types import TensorType, shape_fault
from hybridflow.core.promotion import to_dtype
from hybridflow.core.shape import Shape
from hybridflow.core.string_tensor import StringType, is_string, names_strings, string
from hybridflow.core.type_aliases import DTypeLike
from hybridflow.errors import ArgumentError, entered

Wanted = int | str | None  # an extent, the name of one, or any


class TensorSpec:
    """Type of an argument: its shape, dtype and optional name.

    None stands for a dimension of any size, and so does a name such as "batch". Dimensions with the same name have
    equal sizes, in all arguments.

    Sizes 0 and 1 affect broadcasting, the order of reductions and errors. So a function has separate programs for
    them; one program serves all larger sizes.

    Args:
        shape: extents: ints, None or names.
        dtype: the dtype of the argument.
        name: the name of the argument.

    >>> hf.TensorSpec(["rows", 3], hf.float64)
    TensorSpec(('rows', 3), 'float64')
    """

    __slots__ = ("dtype", "name", "shape")

    @entered
    def __init__(self, shape: Iterable[Wanted], dtype: DTypeLike = "float32", name: str | None = None) -> None:
        if shape is None or isinstance(shape, (int, str)):
            raise ArgumentError("TensorSpec", f"shape must be a sequence of extents such as (None, 4), got {shape!r}.")
        self.shape = Shape(map(_wanted, shape))
        fault = shape_fault(tuple(extent for extent in self.shape if isinstance(extent, int)))
        if fault is not None:
            raise ArgumentError("TensorSpec", f"the shape {fault}")
        self.dtype = string if names_strings(dtype) else to_dtype(dtype, "TensorSpec")
        self.name = name

    @classmethod
    def of(cls, tensor: Any, name: str | None = None) -> TensorSpec:
        """The spec that exactly ``tensor``'s shape and dtype fit.

        Args:
            tensor: a tensor, or what has a shape and a dtype.
            name: the name of the spec, or None.

        Returns:
            A new spec.

        >>> hf.TensorSpec.of(hf.ones((2, 3)))
        TensorSpec((2, 3), 'float32')
        """
        return cls(tensor.shape, tensor.dtype, name)

    def accepts_shape(self, shape: tuple[Any, ...]) -> bool:
        """Whether a tensor of that shape fits.

        Args:
            shape: a tuple of ints.

        Returns:
            True or False.
        """
        return accepts(self.shape, shape)

    def is_compatible_with(self, value: Any) -> bool:
        """Whether a tensor, or what another spec says, fits.

        Args:
            value: a tensor or a spec.

        Returns:
            True or False.

        >>> hf.TensorSpec([None, 3]).is_compatible_with(hf.ones((2, 3)))
        True
        """
        return self.dtype == value.dtype and self.shape.is_compatible_with(value.shape)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TensorSpec):
            return NotImplemented
        return (self.shape, self.dtype) == (other.shape, other.dtype)

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype))

    def __repr__(self) -> str:
        tail = f", name={self.name!r}" if self.name else ""
        return f"TensorSpec({self.shape}, {'string' if is_string(self.dtype) else str(self.dtype)!r}{tail})"

    def __str__(self) -> str:
        return type_text(self.shape, self.dtype)


def _wanted(extent: Any) -> Wanted:
    """One extent of a TensorSpec.  Raises ArgumentError for nonsense."""
    if extent is None:
        return None
    if isinstance(extent, str):
        if not extent.isidentifier():
            raise ArgumentError("TensorSpec", f"{extent!r} is no name for an extent; use one such as 'batch'.")
        return extent
    try:
        size = operator.index(extent)
    except TypeError:
        raise ArgumentError("TensorSpec", f"{extent!r} is no extent: give an int, None, or a name.") from None
    if size < 0 or isinstance(extent, (bool, Dim)):
        raise ArgumentError("TensorSpec", f"{extent!r} is no extent: it must be an int of 0 or more, None, or a name.")
    return size


def accepts(wanted: tuple[Wanted, ...], shape: tuple[Any, ...]) -> bool:
    """Whether a tensor of that shape fits."""
    return len(shape) == len(wanted) and all(not isinstance(w, int) or w == h for w, h in zip(wanted, shape))


def type_text(shape: tuple[Wanted, ...], dtype: np.dtype[Any]) -> str:
    """``f32[?,4]``"""
    kind = StringType if is_string(dtype) else TensorType
    return str(kind(tuple(e if isinstance(e, int) else Dim(e or "?") for e in shape), dtype))


def closed_spec(type: TensorType) -> TensorSpec:
    """The spec of tensors of a graph's type, whose symbols stand for any extent."""
    return TensorSpec([None if isinstance(extent, Dim) else extent for extent in type.shape], type.dtype)
