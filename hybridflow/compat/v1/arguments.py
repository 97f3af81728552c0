"""Arguments of TensorFlow 1's functions as hybridflow takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hybridflow.compat.v1.recording import Sizes
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ir.extents import Dim
from hybridflow.core.tensor import Tensor as Value

if TYPE_CHECKING:
    from hybridflow.compat.export import TensorLike


def as_extents(shape: TensorLike) -> Any:
    """A shape as hybridflow takes it: from a list, a tensor whose value is known, extents of another."""
    if isinstance(shape, Value):
        known = shape._known()
        return tuple(np.atleast_1d(shape.numpy() if known is None else known).tolist())
    if hasattr(shape, "as_list"):
        return tuple(shape.as_list())
    if isinstance(shape, np.ndarray):
        return tuple(np.atleast_1d(shape).tolist())
    if isinstance(shape, (list, tuple)):
        return tuple([as_extent(x) for x in shape])
    return (as_extent(shape),)


def as_extent(value: Any) -> Any:
    if isinstance(value, Value):
        known = value._known()
        return int(value.numpy() if known is None else known)
    return value if isinstance(value, Dim) else int(value)


def as_ints(value: Any) -> Any:
    """An axis or a permutation, which must be known, as Python's ints."""
    if isinstance(value, Value):
        known = value._known()
        return (value.numpy() if known is None else known).tolist()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, (list, tuple)):
        return [as_ints(x) for x in value]
    return None if value is None else int(value)


def as_number(x: TensorLike) -> Any:
    """The number that a tensor is known to be, or the value."""
    if not isinstance(x, Value):
        return x
    known = x._known()
    return (x.numpy() if known is None else known).item()


def is_whole(x: TensorLike) -> bool:
    return (
        isinstance(x, Value)
        and not x.shape
        and dtypes.is_integer(x.dtype)
        and (type(x) is Value or x._known() is not None)
    )


def aligned(x: object, y: object) -> tuple[Any, Any]:
    """Operands; an array takes the dtype of the tensor that it meets, as TensorFlow converts it."""
    if isinstance(x, np.ndarray) and isinstance(y, Value):
        x = x.astype(y.dtype)
    elif isinstance(y, np.ndarray) and isinstance(x, Value):
        y = y.astype(x.dtype)
    return (list(x) if isinstance(x, Sizes) else x), (list(y) if isinstance(y, Sizes) else y)
