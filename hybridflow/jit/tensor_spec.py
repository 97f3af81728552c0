"""TensorSpec: what is said of an argument's shape and dtype in advance."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from hybridflow.compiler.ir.types import Dim, TensorType
from hybridflow.core.promotion import to_dtype
from hybridflow.errors import ArgumentError


class TensorSpec:
    """Shape, dtype and optional name of an argument.  An extent of None stands for any extent.

    Extents of 0 and 1 change broadcasting, orders of folding and what is an error, so a function has a program of its
    own for each of them; one program serves all larger extents.
    """

    __slots__ = ("dtype", "name", "shape")

    def __init__(self, shape: Iterable[int | None], dtype: Any = "float32", name: str | None = None) -> None:
        if shape is None or isinstance(shape, (int, str)):
            raise ArgumentError("TensorSpec", f"shape must be a sequence of extents such as (None, 4), got {shape!r}.")
        self.shape = tuple(None if extent is None else int(extent) for extent in shape)
        if any(extent is not None and extent < 0 for extent in self.shape):
            raise ArgumentError("TensorSpec", f"the shape {self.shape} has a negative extent.")
        self.dtype = to_dtype(dtype, "TensorSpec")
        self.name = name

    @classmethod
    def of(cls, tensor: Any, name: str | None = None) -> TensorSpec:
        """The spec that exactly ``tensor``'s shape and dtype fit."""
        return cls(tensor.shape, tensor.dtype, name)

    def accepts_shape(self, shape: tuple[Any, ...]) -> bool:
        """Whether a tensor of that shape fits."""
        return len(shape) == len(self.shape) and all(w is None or w == h for w, h in zip(self.shape, shape))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TensorSpec):
            return NotImplemented
        return (self.shape, self.dtype) == (other.shape, other.dtype)

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype))

    def __repr__(self) -> str:
        tail = f", name={self.name!r}" if self.name else ""
        return f"TensorSpec({self.shape}, {str(self.dtype)!r}{tail})"

    def __str__(self) -> str:
        return type_text(self.shape, self.dtype)


def type_text(shape: tuple[int | None, ...], dtype: np.dtype[Any]) -> str:
    """``f32[?,4]``"""
    return str(TensorType(tuple(Dim("?") if extent is None else extent for extent in shape), dtype))
