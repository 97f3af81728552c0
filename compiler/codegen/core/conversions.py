"""Conversions between dtypes as LLVM IR, with one result on every target.

A float becomes an integer by truncation; too large a number saturates, and NaN is 0, so that no lane is undefined.
Narrowing floats round to nearest even, in software where the target has no instruction.
"""

from __future__ import annotations

import numpy as np

from hybridflow.compiler.codegen.core.avx512 import Avx512
from hybridflow.compiler.codegen.core.llvm_values import Val, type_text
from hybridflow.compiler.ir import dtypes as dt


class Conversions(Avx512):
    def bitcast(self, a: Val, dtype: np.dtype) -> Val:
        """The same bits as another dtype of the same size."""
        old, new = type_text(a.dtype, a.width), type_text(dtype, a.width)
        return Val(a.ref, dtype, a.width) if old == new else self._cast("bitcast", a, dtype)

    def convert(self, a: Val, dtype: np.dtype) -> Val:
        """``a`` as ``dtype``.

        Float to integer truncates, saturates, and turns NaN into 0, so that no lane is undefined.  Narrowing rounds to
        nearest even.  To bool is "unequal to zero".  bfloat16 goes through float32, as in ml_dtypes.
        """
        if a.dtype == dtype:
            return a
        if dt.is_narrow_float(a.dtype):
            wide = self._widen_half(a) if a.dtype == dt.float16 else self._widen_bfloat(a)
            return self.convert(wide, dtype)
        if dtype == dt.float16:
            if a.dtype == dt.float64:
                # Rounding twice is harmless when the first rounding leaves a trace of what it dropped.
                return self._narrow_half(self._narrow_to_odd(a))
            return self._narrow_half(self.convert(a, dt.float32))
        if dtype == dt.bfloat16:
            return self._narrow_bfloat(self.convert(a, dt.float32))
        if dtype == dt.bool_:
            return self.ne(a, 0)
        if dt.is_float(a.dtype):
            if dt.is_float(dtype):
                return self._cast("fpext" if dtype == dt.float64 else "fptrunc", a, dtype)
            return self._float_to_int(a, dtype)
        signed = dt.is_signed(a.dtype)
        if dt.is_float(dtype):
            return self._cast("sitofp" if signed else "uitofp", a, dtype)
        if a.dtype != dt.bool_ and dtype.itemsize <= a.dtype.itemsize:
            return self.bitcast(a, dtype) if dtype.itemsize == a.dtype.itemsize else self._cast("trunc", a, dtype)
        return self._cast("sext" if signed else "zext", a, dtype)

    def truncate_to_int(self, a: Val, dtype: np.dtype) -> Val:
        """Float to integer where the caller knows that every lane fits; other lanes are undefined."""
        return self._cast("fptosi" if dt.is_signed(dtype) else "fptoui", a, dtype)

    def _float_to_int(self, a: Val, dtype: np.dtype) -> Val:
        # Compares and selects rather than llvm.fptosi.sat, which x86 takes lane by lane.
        info = np.iinfo(dtype)
        value_bits = info.bits - (info.min < 0)
        limit = 2.0**value_bits
        exact = value_bits <= np.finfo(a.dtype).nmant + 1
        largest = limit - 1 if exact else float(np.nextafter(a.dtype.type(limit), a.dtype.type(0)))
        if info.min == 0:
            inside = self.select(self.gt(a, 0.0), a, 0.0)  # NaN is not greater
            inside = self.select(self.gt(inside, largest), largest, inside)
        else:
            inside = self.select(self.gt(a, largest), largest, a)
            inside = self.select(self.lt(a, float(info.min)), float(info.min), inside)
            inside = self.select(self.is_nan(a), 0.0, inside)
        # Bytes and words go through int32, whose conversion every processor has.
        through = dtype if info.bits >= 32 else dt.int32
        result = self.convert(self.truncate_to_int(inside, through), dtype)
        return result if exact else self.select(self.ge(a, limit), info.max, result)

    def _narrow_to_odd(self, a: Val) -> Val:
        """float64 to float32, towards zero, the last bit set when anything was dropped (von Neumann rounding)."""
        near = self._cast("fptrunc", a, dt.float32)
        back = self._cast("fpext", near, dt.float64)
        bits = self.bitcast(near, dt.uint32)
        # A result of too large a magnitude steps back to the next smaller one; infinity becomes the largest number.
        bits = self.select(self.gt(self.abs(back), self.abs(a)), self.sub(bits, 1), bits)
        inexact = self.and_(self.ne(back, a), self.eq(a, a))
        return self.bitcast(self.select(inexact, self.or_(bits, 1), bits), dt.float32)

    def _widen_half(self, a: Val) -> Val:
        if self.target.half:
            return self._cast("fpext", a, dt.float32)
        bits = self._cast("zext", self.bitcast(a, dt.uint16), dt.uint32)
        magnitude, sign = self.shl(self.and_(bits, 0x7FFF), 13), self.shl(self.and_(bits, 0x8000), 16)
        # As float32 bits the exponent is 112 too small; the product puts that right and normalises subnormals.
        finite = self.bitcast(self.mul(self.bitcast(magnitude, dt.float32), 2.0**112), dt.uint32)
        special = self.or_(magnitude, 0x7F800000)
        quiet = self.select(self.gt(magnitude, 0x7C00 << 13), self.or_(special, 0x400000), special)
        return self.bitcast(self.or_(self.select(self.lt(magnitude, 0x7C00 << 13), finite, quiet), sign), dt.float32)

    def _narrow_half(self, a: Val) -> Val:
        # Of constants LLVM may join it to a conversion from float64 before; x86 has only a library's function for that.
        joined = self.is_x86 and a.width == 1
        if self.target.half and not joined:
            return self._cast("fptrunc", a, dt.float16)
        bits = self.bitcast(a, dt.uint32)
        magnitude, sign = self.and_(bits, 0x7FFFFFFF), self.lshr(self.and_(bits, 0x80000000), 16)
        # Normal: add just under half a unit, plus one when the kept part is odd; a carry moves into the exponent.
        odd = self.and_(self.lshr(magnitude, 13), 1)
        normal = self.lshr(self.add(self.add(magnitude, odd), 0xFFF - (112 << 23)), 13)
        # Subnormal: beside 0.5 the unit in the last place of a float32 is that of float16's subnormals.
        beside = self.add(self.bitcast(magnitude, dt.float32), 0.5)
        subnormal = self.sub(self.bitcast(beside, dt.uint32), 0x3F000000)
        finite = self.select(self.lt(magnitude, 0x38800000), subnormal, normal)
        finite = self.select(self.ge(magnitude, 0x47800000), 0x7C00, finite)
        nan = self.or_(self.and_(self.lshr(magnitude, 13), 0x3FF), 0x7E00)
        result = self.or_(self.select(self.gt(magnitude, 0x7F800000), nan, finite), sign)
        return self.bitcast(self._cast("trunc", result, dt.uint16), dt.float16)

    def _widen_bfloat(self, a: Val) -> Val:
        bits = self._cast("zext", Val(a.ref, dt.uint16, a.width), dt.uint32)
        return self.bitcast(self.shl(bits, 16), dt.float32)

    def _narrow_bfloat(self, a: Val) -> Val:
        bits = self.bitcast(a, dt.uint32)
        odd = self.and_(self.lshr(bits, 16), 1)
        rounded = self.add(self.add(bits, odd), 0x7FFF)
        # Rounding could carry a NaN into infinity: keep its upper bits and make it quiet.
        result = self.lshr(self.select(self.is_nan(a), self.or_(bits, 0x400000), rounded), 16)
        return Val(self._cast("trunc", result, dt.uint16).ref, dt.bfloat16, a.width)
