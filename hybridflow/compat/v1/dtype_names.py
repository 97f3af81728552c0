"""Dtypes as programs of TensorFlow 1 write them: objects, NumPy's, or names, of which ``"float"`` has 32 bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from hybridflow.compat.adapters.values import DType, as_dtype, string

STRING = np.dtype(object)


def kind_of(dtype: object) -> np.dtype[Any]:
    """NumPy's dtype of what a program gives as one.  Raises DTypeError for what is none here."""
    if isinstance(dtype, np.dtype):
        return dtype
    if dtype is object or dtype is string or dtype in ("string", "str") or dtype is str or dtype is bytes:
        return STRING
    return as_dtype(dtype).dtype


def shown(dtype: object) -> Any:
    """The object that a tensor or variable has as its dtype; None where it is found when it is run."""
    if dtype is None or isinstance(dtype, DType):
        return dtype
    return string if dtype == STRING else as_dtype(dtype)


__all__ = ["STRING", "kind_of", "shown", "string"]
