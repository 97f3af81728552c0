"""Questions about dtypes, under the names of the array API standard."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from hybridflow.compiler.ir import dtypes
from hybridflow.core.promotion import Typed, result_dtype, to_dtype, weak_kind
from hybridflow.core.tensor import Operators
from hybridflow.core.type_aliases import DTypeLike
from hybridflow.errors import ArgumentError, DTypeError, entered

_KINDS = {
    "bool": dtypes.is_bool,
    "signed integer": dtypes.is_signed,
    "unsigned integer": dtypes.is_unsigned,
    "integral": dtypes.is_integer,
    "real floating": dtypes.is_float,
    "complex floating": dtypes.is_complex,
    "numeric": lambda dtype: not dtypes.is_bool(dtype) and not dtypes.is_stored(dtype),
}


def _dtype_of(value: object, stage: str) -> np.dtype[Any]:
    return value.dtype if isinstance(value, (Operators, np.ndarray)) else to_dtype(value, stage)


@entered
def result_type(*values: object) -> np.dtype[Any]:
    """The dtype that an operation on ``values`` (tensors, arrays, dtypes and Python scalars) computes in.

    Raises DTypeError when two of them do not combine, ArgumentError without any.

    Args:
        *values: tensors, dtypes and Python's numbers.

    Returns:
        A dtype.

    >>> hf.result_type(hf.ones(2), 1, np.float64(2))
    dtype('float32')
    """
    if not values:
        raise ArgumentError("result_type", "at least one tensor, dtype or number is needed.")
    return result_dtype(
        "result_type", [v if weak_kind(v) is not None else Typed(_dtype_of(v, "result_type")) for v in values]
    )


@entered
def can_cast(source: object, target: object, /) -> bool:
    """Whether a tensor or dtype combines with the dtype ``target`` to give that dtype.

    Args:
        source: a tensor or dtype.
        target: a dtype.

    Returns:
        A bool.

    >>> hf.can_cast(hf.int32, hf.float64)
    True
    """
    start, goal = _dtype_of(source, "can_cast"), to_dtype(target, "can_cast")
    try:
        return dtypes.promote(start, goal) == goal
    except TypeError:
        return False


@entered
def isdtype(dtype: DTypeLike, kind: object) -> bool:
    """Whether ``dtype`` is of a ``kind``.

    Kinds are a dtype, a name, or a tuple of those. Names are "bool", "signed integer", "unsigned integer", "integral",
    "real floating", "complex floating" and "numeric". Raises ArgumentError for another name.

    Args:
        dtype: a dtype.
        kind: what it may be.

    Returns:
        A bool.

    >>> hf.isdtype(hf.int8, "integral")
    True
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    dtype_known = to_dtype(dtype, "isdtype")
    if not isinstance(kind, str):
        return dtype_known == to_dtype(kind, "isdtype")
    if kind not in _KINDS:
        raise ArgumentError("isdtype", f"{kind!r} is no kind; the kinds are {', '.join(map(repr, _KINDS))}.")
    return _KINDS[kind](dtype_known)


@dataclass(frozen=True)
class FloatInfo:
    """The limits of a float dtype, as Python numbers.  ``resolution`` is the power of ten of its decimal digits."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    tiny: float
    resolution: float
    dtype: np.dtype[Any]


@entered
def finfo(dtype: DTypeLike, /) -> FloatInfo:
    """The limits of a float dtype (or of a tensor's): bits, eps, max, min, smallest_normal; numbers are Python floats.

    Those of a complex dtype are its parts'.

    Args:
        dtype: a float dtype, or a tensor of one.

    Returns:
        An object with ``bits``, ``eps``, ``max``, ``min``, ``smallest_normal``.

    Raises:
        DTypeError: where it is not a float dtype.

    >>> hf.finfo(hf.float32).eps
    1.1920928955078125e-07
    """
    known_dtype = _dtype_of(dtype, "finfo")
    if not dtypes.is_inexact(dtypes.wide_dtype(known_dtype)):
        raise DTypeError("finfo", f"{known_dtype} is not a float dtype.")
    known_dtype = dtypes.part_dtype(known_dtype)
    limits = ml_dtypes.finfo(known_dtype)
    return FloatInfo(
        bits=int(limits.bits),
        eps=float(limits.eps),
        max=float(limits.max),
        min=float(limits.min),
        smallest_normal=float(limits.smallest_normal),
        tiny=float(limits.tiny),
        resolution=float(limits.resolution),
        dtype=known_dtype,
    )


@entered
def iinfo(dtype: DTypeLike, /) -> Any:
    """The limits of an integer dtype (or of a tensor's): bits, max, min.

    Args:
        dtype: an integer dtype, or a tensor of one.

    Returns:
        An object with ``bits``, ``max``, ``min``.

    Raises:
        DTypeError: where it is not an integer dtype.

    >>> hf.iinfo(hf.int8).max
    127
    """
    known_dtype = _dtype_of(dtype, "iinfo")
    if not dtypes.is_integer(dtypes.wide_dtype(known_dtype)):
        raise DTypeError("iinfo", f"{known_dtype} is not an integer dtype.")
    return ml_dtypes.iinfo(known_dtype) if dtypes.is_stored(known_dtype) else np.iinfo(known_dtype)
