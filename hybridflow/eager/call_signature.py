"""Forms of calls: what those have in common that one compiled program may answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hybridflow.core.shape import Shape
from hybridflow.core.tensor import Tensor
from hybridflow.core.variable import Variable

_LEAST_OPEN = 2  # extents of 0 and 1 have programs of their own
_OBJECT = object()  # what a part is of, that tells one object from others
_MOST_PARTS = 48  # each tensor's extents are open: compiling takes a quarter of a second for 32, ten for 400


def form_of(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """What calls that one plan may answer have in common; None where there can be none, or it would take longer to make
    than it saves."""
    try:
        parts = [_part(value) for value in args]
        for name, value in kwargs.items():
            parts += (name, _part(value))
    except RecursionError:  # a list that contains itself, of which only the truth was asked
        return None
    return None if None in parts or len(parts) > _MOST_PARTS else tuple(parts)


def names_objects(form: tuple[Any, ...]) -> bool:
    """Whether calls of a form have an object in common, as variables are: another one makes another form."""
    return any(type(part) is tuple and (part[0] is _OBJECT or names_objects(part)) for part in form if part)


def _part(value: Any) -> Any:
    kind = type(value)
    if kind is Tensor:
        array = value._array
        if type(array) is not np.ndarray:
            return None
        return array.dtype.num, array.flags.c_contiguous, *[n if n < _LEAST_OPEN else "n" for n in array.shape]
    if kind is float:
        return kind, value.hex()  # 0.0 and -0.0 differ, a NaN equals itself
    if kind in _BY_VALUE:
        return kind, value
    if isinstance(value, np.dtype):
        return np.dtype, value.num
    if kind is np.ndarray or isinstance(value, np.generic):
        return kind, value.dtype.num, *[n if n < _LEAST_OPEN else "n" for n in value.shape]
    if kind is Variable or getattr(kind, "has_plans", False):
        return _OBJECT, kind, id(value)
    if kind is tuple or kind is list or kind is Shape:
        if len(value) > _MOST_PARTS:
            return None
        parts = [_part(item) for item in value]
        return None if None in parts else (kind, *parts)
    return None


_BY_VALUE = frozenset((bool, int, str, type, type(None)))
