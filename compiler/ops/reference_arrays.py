"""NumPy helpers of the references: conversion with the IR's meaning, and evaluation in a wider dtype."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from hybridflow.compiler.ir import dtypes as dt

Reference = Callable[..., np.ndarray]


def convert(x: np.ndarray, dtype: dt.DType) -> np.ndarray:
    """``x`` as ``dtype`` with the meaning of the ``convert`` op, which is defined for every value (NumPy's is not).

    Floats become integers by truncation, saturating, NaN as 0.  Integers wrap.  Anything but zero becomes True.
    Complex numbers become real ones by their real part.  Narrow floats are reached through float32, as in the kernels,
    but for float64 to float16, which rounds once.
    """
    x = np.asarray(x)
    if x.dtype == dtype:
        return x
    if dt.is_stored(x.dtype):
        return convert(x.astype(dt.wide_dtype(x.dtype)), dtype)
    if dt.is_stored(dtype):
        return _stored(x, dtype)
    if dt.is_bool(dtype):
        return np.asarray(x != 0)
    if dt.is_complex(dtype):
        with np.errstate(all="ignore"):
            return x.astype(np.float32).astype(dtype) if dt.is_narrow_float(x.dtype) else x.astype(dtype)
    if dt.is_complex(x.dtype):
        x = x.real
    with np.errstate(all="ignore"):
        if dt.is_narrow_float(x.dtype):
            x = x.astype(dt.float32)
        if dt.is_narrow_float(dtype) and not (dtype == dt.float16 and x.dtype == dt.float64):
            return x.astype(dt.float32).astype(dtype)
        if dt.is_float(x.dtype) and dt.is_integer(dtype):
            info = np.iinfo(dtype)
            # Both limits as floats: -2**n and 2**n are exact, the largest integer itself may not be.
            low, above = x.dtype.type(info.min), x.dtype.type(2.0 ** (info.bits - dt.is_signed(dtype)))
            inside = (x > low) & (x < above)
            truncated = np.where(inside, x, 0).astype(dtype)
            return np.where(x >= above, dtype.type(info.max), np.where(x <= low, dtype.type(info.min), truncated))
        return x.astype(dtype)


def _stored(x: np.ndarray, dtype: dt.DType) -> np.ndarray:
    """By ml_dtypes, from float32; integers saturate and have NaN as 0, which it leaves open."""
    how = dt.DEF[dtype].stored
    with np.errstate(all="ignore"):
        if isinstance(how, dt.MiniInt):
            x = x.real if dt.is_complex(x.dtype) else x
            if dt.is_float(x.dtype):
                x = np.clip(np.nan_to_num(x.astype(np.float64), nan=0.0), *how.limits)
            return np.asarray(x.astype(np.int64).astype(np.uint8) & np.uint8((1 << how.bits) - 1)).view(dtype)
        return convert(x, dt.float32).astype(dtype)


def in_double(function: Callable[..., Any]) -> Reference:
    """The reference that evaluates ``function`` in float64 and rounds once to the dtype of the first argument."""

    @functools.wraps(function)
    def reference(*arrays: np.ndarray, **attrs: object) -> np.ndarray:
        with np.errstate(all="ignore"):
            wide = function(*(np.asarray(x, dt.promote(x.dtype, dt.float64)) for x in arrays), **attrs)
        return convert(wide, arrays[0].dtype)

    return reference


def in_compute(function: Callable[..., Any]) -> Reference:
    """The reference that evaluates ``function`` in the kernels' compute dtype, where IEEE 754 fixes the bits."""

    @functools.wraps(function)
    def reference(*arrays: np.ndarray, **attrs: object) -> np.ndarray:
        with np.errstate(all="ignore"):
            result = function(*map(computed, arrays), **attrs)
        return convert(result, arrays[0].dtype)

    return reference


def predicate(function: Callable[..., Any]) -> Reference:
    """Like ``in_compute`` for functions with a bool result."""

    @functools.wraps(function)
    def reference(*arrays: np.ndarray, **attrs: object) -> np.ndarray:
        return np.asarray(function(*map(computed, arrays), **attrs), np.bool_)

    return reference


def with_reference(fields: Mapping[str, Any], how: Callable[[Callable[..., Any]], Reference]) -> dict[str, Any]:
    """The fields of a declaration, where ``numpy`` says whose bits the op has: also its meaning, by ``how``
    (``in_compute`` or ``predicate``), and the fact that this is exact."""
    if "numpy" not in fields or "reference" in fields:
        return dict(fields)
    facts = {"exact": True, **fields.get("facts", {})}
    return {**fields, "reference": how(fields["numpy"]), "facts": facts}


def computed(x: np.ndarray) -> np.ndarray:
    """``x`` in its compute dtype."""
    return x.astype(dt.float32) if dt.is_narrow_float(x.dtype) else np.asarray(x)
