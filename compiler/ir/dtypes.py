"""The dtypes: NumPy dtype objects, and the few facts about them that the compiler needs.

NumPy does not know bfloat16's kind, so every question about a dtype is asked here and never of ``dtype.kind``.
"""

from __future__ import annotations

import enum
from typing import NamedTuple

import ml_dtypes
import numpy as np

DType = np.dtype

bool_ = np.dtype(np.bool_)
int8, int16, int32, int64 = (np.dtype(f"int{n}") for n in (8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (np.dtype(f"uint{n}") for n in (8, 16, 32, 64))
float16, float32, float64 = np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.float64)
bfloat16 = np.dtype(ml_dtypes.bfloat16)

complex64, complex128 = np.dtype(np.complex64), np.dtype(np.complex128)
float8_e4m3fn, float8_e5m2 = np.dtype(ml_dtypes.float8_e4m3fn), np.dtype(ml_dtypes.float8_e5m2)
float8_e4m3fnuz, float8_e5m2fnuz = np.dtype(ml_dtypes.float8_e4m3fnuz), np.dtype(ml_dtypes.float8_e5m2fnuz)
float4_e2m1fn = np.dtype(ml_dtypes.float4_e2m1fn)
int2, int4, uint2, uint4 = (np.dtype(t) for t in (ml_dtypes.int2, ml_dtypes.int4, ml_dtypes.uint2, ml_dtypes.uint4))


class DTypeDef(NamedTuple):
    """What there is to know of a dtype: one row of the table."""

    dtype: DType
    short: str  # in the text of graphs and in programs
    kind: Kind
    compute: DType  # in which an op's scalar expression is evaluated
    part: DType  # of the two real numbers of a complex one; itself where it is real
    stored: MiniFloat | MiniInt | None = None  # how a byte holds it, where numbers of it are stored and no more


class Kind(enum.Enum):
    BOOL = "bool"
    SIGNED = "signed integer"
    UNSIGNED = "unsigned integer"
    FLOAT = "real floating"
    COMPLEX = "complex floating"
    STORED = "stored"  # in a byte: converted, moved and kept; computed in a wider dtype alone

    __hash__ = object.__hash__


class MiniFloat(NamedTuple):
    """A float of eight bits or fewer.  The sign is the highest bit, the exponent's bits follow."""

    bits: int
    mantissa: int
    bias: int
    largest: int  # the code of the largest number
    beyond: int  # ... of what is larger: an infinity, NaN, or the largest number again
    nan: int | None  # ... of NaN beside the sign, None where there is none
    one_zero: bool = False  # no -0: its code is the one NaN
    wide: DType = float32  # which holds all of its values

    @property
    def sign(self) -> int:
        return 1 << (self.bits - 1)


class MiniInt(NamedTuple):
    """An integer in the lower bits of a byte, whose upper ones do not count."""

    bits: int
    signed: bool
    wide: DType

    @property
    def limits(self) -> tuple[int, int]:
        low = -(1 << (self.bits - 1)) if self.signed else 0
        return low, low + (1 << self.bits) - 1


def _row(dtype: DType, short: str, kind: Kind, compute: DType | None = None, part: DType | None = None) -> DTypeDef:
    return DTypeDef(dtype, short, kind, compute or dtype, part or dtype)


def _stored(dtype: DType, short: str, how: MiniFloat | MiniInt) -> DTypeDef:
    return DTypeDef(dtype, short, Kind.STORED, dtype, dtype, how)


ROWS = (
    _row(bool_, "bool", Kind.BOOL),
    *(_row(d, f"i{8 * d.itemsize}", Kind.SIGNED) for d in (int8, int16, int32, int64)),
    *(_row(d, f"u{8 * d.itemsize}", Kind.UNSIGNED) for d in (uint8, uint16, uint32, uint64)),
    _row(float16, "f16", Kind.FLOAT, compute=float32),
    _row(bfloat16, "bf16", Kind.FLOAT, compute=float32),
    _row(float32, "f32", Kind.FLOAT),
    _row(float64, "f64", Kind.FLOAT),
    _row(complex64, "c64", Kind.COMPLEX, part=float32),
    _row(complex128, "c128", Kind.COMPLEX, part=float64),
    _stored(float8_e4m3fn, "f8e4m3fn", MiniFloat(8, 3, 7, 0x7E, 0x7F, 0x7F)),
    _stored(float8_e5m2, "f8e5m2", MiniFloat(8, 2, 15, 0x7B, 0x7C, 0x7E)),
    _stored(float8_e4m3fnuz, "f8e4m3fnuz", MiniFloat(8, 3, 8, 0x7F, 0x80, 0x80, one_zero=True)),
    _stored(float8_e5m2fnuz, "f8e5m2fnuz", MiniFloat(8, 2, 16, 0x7F, 0x80, 0x80, one_zero=True)),
    _stored(float4_e2m1fn, "f4e2m1fn", MiniFloat(4, 1, 1, 0x7, 0x7, None)),
    _stored(int4, "i4", MiniInt(4, True, int8)),
    _stored(int2, "i2", MiniInt(2, True, int8)),
    _stored(uint4, "u4", MiniInt(4, False, uint8)),
    _stored(uint2, "u2", MiniInt(2, False, uint8)),
)
"""The table, in the order in which messages name dtypes."""

DEF = {row.dtype: row for row in ROWS}


def _of(*kinds: Kind) -> tuple[DType, ...]:
    return tuple([row.dtype for row in ROWS if row.kind in kinds])


SIGNED, UNSIGNED = _of(Kind.SIGNED), _of(Kind.UNSIGNED)
INTEGERS = SIGNED + UNSIGNED
FLOATS, COMPLEX = _of(Kind.FLOAT), _of(Kind.COMPLEX)
REAL = (bool_, *INTEGERS, *FLOATS)
"""The dtypes that kernels know: complex numbers are two real ones there, see ``passes.split_complex``."""
STORED = _of(Kind.STORED)
"""Those that ops convert and move, and do not compute with."""
ALL = (*REAL, *COMPLEX, *STORED)

SHORT = {row.dtype: row.short for row in ROWS}
FROM_SHORT = {text: dtype for dtype, text in SHORT.items()}

_NARROW = frozenset(row.dtype for row in ROWS if row.compute != row.dtype)
_FLOAT_SET, _SIGNED_SET, _UNSIGNED_SET = frozenset(FLOATS), frozenset(SIGNED), frozenset(UNSIGNED)
_COMPLEX_SET, _INEXACT_SET = frozenset(COMPLEX), frozenset(FLOATS + COMPLEX)


def is_float(dtype: DType) -> bool:
    """Whether it is a dtype of real floating-point numbers."""
    return dtype in _FLOAT_SET


def is_complex(dtype: DType) -> bool:
    return dtype in _COMPLEX_SET


def is_inexact(dtype: DType) -> bool:
    """Whether it is real or complex floating-point: what has derivatives."""
    return dtype in _INEXACT_SET


def is_signed(dtype: DType) -> bool:
    return dtype in _SIGNED_SET


def is_unsigned(dtype: DType) -> bool:
    return dtype in _UNSIGNED_SET


def is_integer(dtype: DType) -> bool:
    return dtype in _SIGNED_SET or dtype in _UNSIGNED_SET


def is_bool(dtype: DType) -> bool:
    return dtype == bool_


def is_stored(dtype: DType) -> bool:
    """Whether numbers of it are stored and moved, and computed only after a conversion."""
    return dtype in DEF and DEF[dtype].stored is not None


def wide_dtype(dtype: DType) -> DType:
    """The dtype in which a product takes its factors: one that can be computed with and has all their values.  Of what
    is no dtype of tensors it is that."""
    stored = DEF[dtype].stored if dtype in DEF else None
    return dtype if stored is None else stored.wide


def limits(dtype: DType) -> tuple[int, int]:
    """The least and the largest number of an integer dtype, a stored one included."""
    stored = DEF[dtype].stored
    if isinstance(stored, MiniInt):
        return stored.limits
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


def is_narrow_float(dtype: DType) -> bool:
    """float16 and bfloat16: stored narrow, computed in float32 inside each op, rounded at its end."""
    return dtype in _NARROW


def compute_dtype(dtype: DType) -> DType:
    """The dtype in which an op's scalar expression is evaluated."""
    return float32 if dtype in _NARROW else dtype


def part_dtype(dtype: DType) -> DType:
    """The dtype of a complex number's real and imaginary part; a real dtype itself."""
    return DEF[dtype].part


def complex_dtype(dtype: DType) -> DType:
    """The narrowest complex dtype that holds numbers of ``dtype`` as the promotion of dtypes has it."""
    return dtype if is_complex(dtype) else complex128 if dtype == float64 else complex64


def embeds(a: DType, b: DType) -> bool:
    """Whether every value of ``a`` is a value of ``b``, so that converting there and back changes nothing."""
    if a == b or is_bool(a):
        return True
    if is_stored(a) or is_stored(b):
        return not is_stored(b) and not is_bool(b) and embeds(wide_dtype(a), b)
    if is_complex(b):
        return embeds(part_dtype(a), part_dtype(b))
    if is_bool(b) or is_complex(a) or (is_float(a) and not is_float(b)):
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
    A real dtype with a complex one gives a complex one whose parts hold both floats.

    Raises TypeError for uint64 with a signed integer, which no integer dtype holds, and for stored dtypes with others.
    """
    if a == b:
        return a
    if is_stored(a) or is_stored(b):
        raise TypeError(f"{a} with {b}: numbers of {a if is_stored(a) else b} are stored, and combine with no others")
    if is_bool(a):
        return b
    if is_bool(b):
        return a
    if is_complex(a) or is_complex(b):
        return _promoted_complex(a, b)
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


def _promoted_complex(a: DType, b: DType) -> DType:
    if is_complex(a) != is_complex(b) and not (is_float(a) or is_float(b)):  # integers say nothing of the precision
        return a if is_complex(a) else b
    return complex_dtype(promote(part_dtype(a), part_dtype(b)))
