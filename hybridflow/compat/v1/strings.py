"""Texts in graphs: bytes, or arrays of them, in Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hybridflow.compat.v1.dtype_names import STRING, kind_of
from hybridflow.core.type_aliases import DTypeLike

if TYPE_CHECKING:
    from hybridflow.compat.export import TensorLike


def is_text(value: object, dtype: DTypeLike | None = None) -> bool:
    """Whether a value is a text, bytes, or a list of them."""
    while isinstance(value, (list, tuple)) and value:
        value = value[0]
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "SUO"
    return isinstance(value, (str, bytes)) or (dtype is not None and kind_of(dtype) == STRING)


def encoded(value: TensorLike) -> Any:
    """A text as bytes, or an array of them."""
    if isinstance(value, (str, bytes)):
        return value.encode() if isinstance(value, str) else value
    array = np.asarray(value, dtype=object)
    return np.array([encoded(x) for x in array.ravel()], dtype=object).reshape(array.shape)
