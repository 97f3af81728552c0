"""What functions take, as types: for editors and type checkers, which read signatures of public functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, SupportsIndex

import numpy as np

from hybridflow.compiler.ir.extents import Dim
from hybridflow.core.tensor import Operators


class _HasArray(Protocol):
    def __array__(self, *args: Any, **kwargs: Any) -> Any: ...


class _HasDLPack(Protocol):
    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...


# Tensors, variables, numbers, extents, nested lists and tuples of them, NumPy's arrays and scalars, others' arrays.
ArrayLike = Operators | float | Dim | list[Any] | tuple[Any, ...] | range | np.generic | _HasArray | _HasDLPack
DTypeLike = np.dtype[Any] | type[Any] | str
# An extent or several; what is computed from ``x.shape`` while extents are open has an index, too.
ShapeLike = SupportsIndex | Dim | Sequence[SupportsIndex | Dim] | Operators | np.ndarray
# One axis, several, or None for all.
AxisLike = SupportsIndex | Sequence[SupportsIndex] | None
# A number for all axes of a window, or one for each: sizes, strides, dilations.
PerAxis = SupportsIndex | Sequence[SupportsIndex]
# An initializer, regularizer, constraint or activation: its name, its configuration, an object or function; or None.
Identifier = str | Mapping[str, Any] | Callable[..., Any] | None
