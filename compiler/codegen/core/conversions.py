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
        nearest even.  To bool is "unequal to zero".  bfloat16 and smaller floats go through float32, as in ml_dtypes.
        """
        if a.dtype == dtype:
            return a
        if dt.is_stored(a.dtype):
            return self.convert(self._widen_stored(a), dtype)
        if dt.is_stored(dtype):
            return self._narrow_stored(a, dtype)
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

    def _widen_stored(self, a: Val) -> Val:
        """A byte's number in the wide dtype of its format."""
        how = dt.DEF[a.dtype].stored
        byte = Val(a.ref, dt.uint8, a.width)
        if isinstance(how, dt.MiniInt):
            rest = 8 - how.bits
            if not how.signed:
                return self.and_(byte, (1 << how.bits) - 1)
            return self.ashr(self.bitcast(self.shl(byte, rest), dt.int8), rest)
        assert how is not None
        bits, rest = self._cast("zext", byte, dt.uint32), 23 - how.mantissa
        magnitude = self.shl(self.and_(bits, how.sign - 1), rest)
        sign = self.shl(self.and_(bits, how.sign), 32 - how.bits)
        # As for float16: the product puts the exponent right, and normalises subnormals.
        wide = self.bitcast(self.mul(self.bitcast(magnitude, dt.float32), 2.0 ** (127 - how.bias)), dt.uint32)
        if how.one_zero:
            wide = self.select(self.eq(self.and_(bits, 0xFF), how.beyond), 0x7FC00000, wide)
        elif how.nan is not None:
            wide = self.select(self.gt(magnitude, how.largest << rest), 0x7FC00000, wide)
            if how.beyond != how.nan:
                wide = self.select(self.eq(magnitude, how.beyond << rest), 0x7F800000, wide)
        return self.bitcast(self.or_(wide, sign), dt.float32)

    def _narrow_stored(self, a: Val, dtype: np.dtype) -> Val:
        how = dt.DEF[dtype].stored
        if isinstance(how, dt.MiniInt):
            if dt.is_float(a.dtype):  # saturating, NaN as 0
                a = self.convert(a, dt.float32) if dt.is_narrow_float(a.dtype) else a
                low, high = how.limits
                a = self.select(self.gt(a, high), high, a)
                a = self.select(self.lt(a, low), low, a)
                a = self.truncate_to_int(self.select(self.is_nan(a), 0.0, a), dt.int32)
            byte = self.and_(self.convert(a, dt.uint8), (1 << how.bits) - 1)
            return Val(byte.ref, dtype, byte.width)
        assert how is not None
        a = self.convert(a, dt.float32)
        bits, rest = self.bitcast(a, dt.uint32), 23 - how.mantissa
        magnitude, sign = self.and_(bits, 0x7FFFFFFF), self.lshr(self.and_(bits, 0x80000000), 32 - how.bits)
        # As for float16, see there.
        odd = self.and_(self.lshr(magnitude, rest), 1)
        below = (1 << (rest - 1)) - 1 - ((127 - how.bias) << 23)
        normal = self.lshr(self.add(self.add(magnitude, odd), below % (1 << 32)), rest)
        beside = 2.0 ** (1 - how.bias + rest)  # whose unit in the last place is that of the subnormals
        subnormal = self.bitcast(self.add(self.bitcast(magnitude, dt.float32), beside), dt.uint32)
        subnormal = self.sub(subnormal, (127 + 1 - how.bias + rest) << 23)
        code = self.select(self.lt(magnitude, (128 - how.bias) << 23), subnormal, normal)
        code = self.select(self.gt(code, how.largest), how.beyond, code)
        is_nan = self.gt(magnitude, 0x7F800000)
        if how.nan is not None:
            code = self.select(is_nan, how.nan, code)
        else:  # without NaN it is a zero of the other sign, as in ml_dtypes
            code, sign = self.select(is_nan, 0, code), self.select(is_nan, self.xor(sign, how.sign), sign)
        if how.one_zero:
            sign = self.select(self.eq(self.and_(code, how.sign - 1), 0), 0, sign)
        result = self._cast("trunc", self.or_(code, sign), dt.uint8)
        return Val(result.ref, dtype, a.width)

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
