"""The dtypes: NumPy dtype objects, and the few facts about them that the compiler needs.

NumPy does not know bfloat16's kind, so every question about a dtype is asked here and never of ``dtype.kind``.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np

DType = np.dtype

bool_ = np.dtype(np.bool_)
int8, int16, int32, int64 = (np.dtype(f"int{n}") for n in (8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (np.dtype(f"uint{n}") for n in (8, 16, 32, 64))
float16, float32, float64 = np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.float64)
bfloat16 = np.dtype(ml_dtypes.bfloat16)

SIGNED = (int8, int16, int32, int64)
UNSIGNED = (uint8, uint16, uint32, uint64)
INTEGERS = SIGNED + UNSIGNED
FLOATS = (float16, bfloat16, float32, float64)
ALL = (bool_, *INTEGERS, *FLOATS)

SHORT = {
    bool_: "bool",
    **{d: f"i{8 * d.itemsize}" for d in SIGNED},
    **{d: f"u{8 * d.itemsize}" for d in UNSIGNED},
    **{d: f"f{8 * d.itemsize}" for d in (float16, float32, float64)},
    bfloat16: "bf16",
}
FROM_SHORT = {text: dtype for dtype, text in SHORT.items()}
CODE = {dtype: code for code, dtype in enumerate(ALL)}  # small integers for native code and cache keys

_NARROW = frozenset((float16, bfloat16))
_FLOAT_SET, _SIGNED_SET, _UNSIGNED_SET = frozenset(FLOATS), frozenset(SIGNED), frozenset(UNSIGNED)


def is_float(dtype: DType) -> bool:
    return dtype in _FLOAT_SET


def is_signed(dtype: DType) -> bool:
    return dtype in _SIGNED_SET


def is_unsigned(dtype: DType) -> bool:
    return dtype in _UNSIGNED_SET


def is_integer(dtype: DType) -> bool:
    return dtype in _SIGNED_SET or dtype in _UNSIGNED_SET


def is_bool(dtype: DType) -> bool:
    return dtype == bool_


def is_narrow_float(dtype: DType) -> bool:
    """float16 and bfloat16: stored narrow, computed in float32 inside each op, rounded at its end."""
    return dtype in _NARROW


def compute_dtype(dtype: DType) -> DType:
    """The dtype in which an op's scalar expression is evaluated."""
    return float32 if is_narrow_float(dtype) else dtype


def embeds(a: DType, b: DType) -> bool:
    """Whether every value of ``a`` is a value of ``b``, so that converting there and back changes nothing."""
    if a == b or is_bool(a):
        return True
    if is_bool(b) or (is_float(a) and not is_float(b)):
        return False
    if not is_float(b):
        return np.iinfo(b).min <= np.iinfo(a).min and np.iinfo(a).max <= np.iinfo(b).max
    to = ml_dtypes.finfo(b)
    if is_float(a):
        from_ = ml_dtypes.finfo(a)
        return bool(from_.nmant <= to.nmant and from_.maxexp <= to.maxexp and from_.minexp >= to.minexp)
    # The widest integer sets all bits but the sign's; the mantissa's first bit is not stored.  Ranges then fit, too.
    return 8 * a.itemsize - is_signed(a) <= to.nmant + 1


def promote(a: DType, b: DType) -> DType:
    """The array API standard's same-kind promotion; an integer with a float gives the float, bool gives way.

    Raises TypeError for uint64 with a signed integer, which no integer dtype holds.
    """
    if a == b:
        return a
    if is_bool(a):
        return b
    if is_bool(b):
        return a
    if is_float(a) != is_float(b):
        return a if is_float(a) else b
    if is_float(a):
        if is_narrow_float(a) and is_narrow_float(b):
            return float32
        return a if a.itemsize > b.itemsize else b
    if is_signed(a) == is_signed(b):
        return a if a.itemsize > b.itemsize else b
    signed, unsigned = (a, b) if is_signed(a) else (b, a)
    if signed.itemsize > unsigned.itemsize:
        return signed
    if unsigned.itemsize == 8:
        raise TypeError(f"{unsigned} with {signed}: no integer dtype holds both")
    return np.dtype(f"int{16 * unsigned.itemsize}")
