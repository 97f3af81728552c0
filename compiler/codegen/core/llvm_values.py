"""Values of LLVM IR: their types, and constants as text.

Representation: bool is i1 (i8 in memory), integers iN, float16 half, bfloat16 its 16 bits (storage only: convert to
float32 to compute), float32 float, float64 double.  Complex numbers are storage, too: the bits of both parts as
one integer, the real part's the lower ones.  Floats of 8 bits and integers of 4 are storage as well: bytes.
"""

from __future__ import annotations

import math
import re
import struct
import sys
from collections.abc import Sequence

import numpy as np

from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ops.emitter_protocol import Number as Number, Operand as Operand, Val as Val

LLVM = {
    dt.bool_: "i1",
    **{d: f"i{8 * d.itemsize}" for d in dt.INTEGERS},
    dt.float16: "half",
    dt.bfloat16: "i16",
    dt.float32: "float",
    dt.float64: "double",
    **{d: f"i{8 * d.itemsize}" for d in (*dt.COMPLEX, *dt.STORED)},
}
_MANGLED = {d: {"half": "f16", "float": "f32", "double": "f64"}.get(text, text) for d, text in LLVM.items()}
_BIT = re.compile("true|false")
_types: dict[tuple[np.dtype, int], str] = {}
_manglings: dict[tuple[np.dtype, int], str] = {}


def type_text(dtype: np.dtype, width: int = 1) -> str:
    """The LLVM type of a value."""
    text = _types.get((dtype, width))
    if text is None:
        scalar = LLVM[dtype]
        text = _types[dtype, width] = scalar if width == 1 else f"<{width} x {scalar}>"
    return text


def memory_type(dtype: np.dtype, width: int = 1) -> str:
    """The LLVM type of a value as it lies in memory: a bool is a byte."""
    return type_text(dt.uint8 if dtype == dt.bool_ else dtype, width)


def mangle(dtype: np.dtype, width: int) -> str:
    text = _manglings.get((dtype, width))
    if text is None:
        scalar = _MANGLED[dtype]
        text = _manglings[dtype, width] = scalar if width == 1 else f"v{width}{scalar}"
    return text


def alignment(dtype: np.dtype) -> int:
    """Bytes of which the address of an element is a multiple: that of one of its parts."""
    return dt.part_dtype(dtype).itemsize


def mask_of(lanes: Sequence[bool]) -> Val:
    """A constant mask."""
    bits = [f"i1 {str(bool(lane)).lower()}" for lane in lanes]
    return Val(f"<{', '.join(bits)}>" if len(bits) > 1 else bits[0][3:], dt.bool_, len(bits))


def known_lanes(mask: Val) -> list[bool] | None:
    """Which lanes a mask has on, if it is a constant."""
    if not mask.is_constant:
        return None
    bits = [bit == "true" for bit in _BIT.findall(mask.ref)]
    return bits * (mask.width if mask.ref.startswith("splat") else 1)


def struct_text(values: Sequence[Val]) -> str:
    return f"{{ {', '.join(type_text(v.dtype, v.width) for v in values)} }}"


def _rounded_to_float32(value: float) -> float:
    try:
        return struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def literal_text(value: Number | np.generic, dtype: np.dtype) -> str:
    """A scalar constant as LLVM writes it; floats in hexadecimal, hence exact."""
    if dtype == dt.float64:
        return f"0x{struct.pack('>d', value).hex().upper()}"
    if dtype == dt.float32:  # written as the double of the same value
        return f"0x{struct.pack('>d', _rounded_to_float32(float(value))).hex().upper()}"
    if dtype == dt.bool_:
        return "true" if value else "false"
    if dtype == dt.float16:
        with np.errstate(over="ignore"):
            return f"0xH{int(np.float16(value).view(np.uint16)):04X}"
    if dtype == dt.bfloat16:
        return str(int(np.asarray(value).astype(dtype).view(np.uint16)))
    if dt.is_complex(dtype) or dt.is_stored(dtype):
        return str(int.from_bytes(np.asarray(value, dtype).tobytes(), sys.byteorder))
    return str(int(value))
