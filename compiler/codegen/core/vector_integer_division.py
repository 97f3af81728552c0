"""Quotients of integers in vectors, for which processors have no instruction: by a division of floats.

Let a and b be integers, both less than 2**k, and floats have more than k + 1 bits.  If a / b is no integer, it lies at
least 1 / b away from the next one, and rounding moves it by less than that: a / b 2**-(k + 2) < 1 / b.  So the rounded
quotient, truncated, is that of the integers.  Bytes and words are divided in float32, 32 bits in float64.
"""

from __future__ import annotations

import numpy as np

from hybridflow.compiler.codegen.core.conversions import Conversions
from hybridflow.compiler.codegen.core.llvm_values import Operand, Val
from hybridflow.compiler.ir import dtypes as dt

_THROUGH: dict[int, np.dtype] = {1: dt.float32, 2: dt.float32, 4: dt.float64}  # by bytes


class IntegerQuotients(Conversions):
    def idiv(self, a: Operand, b: Operand) -> Val:
        a, b = self._pair(a, b)
        if not self._pays_in_floats(a, b):
            return super().idiv(a, b)
        if a.dtype != dt.int32:
            return self._as_integers(self._divided_in_floats(a, b), a.dtype)
        minus = self.eq(b, -1)  # 2**31 is no int32
        return self.select(
            minus, self.neg(a), self._as_integers(self._divided_in_floats(a, self.select(minus, 1, b)), a.dtype)
        )

    def irem(self, a: Operand, b: Operand) -> Val:
        a, b = self._pair(a, b)
        if not self._pays_in_floats(a, b):
            return super().irem(a, b)
        quotient = self._divided_in_floats(a, b)
        x, y = (self.convert(v, quotient.dtype) for v in (a, b))
        with self.strict():
            remainder = self.fma(self.neg(quotient), y, x)
        return self._as_integers(remainder, a.dtype)

    def _pays_in_floats(self, a: Val, b: Val) -> bool:
        """Whether it is quicker than a division for each lane; by a known number there is none at all."""
        return a.width > 1 and b.integer is None and a.dtype.itemsize in _THROUGH and self.target.kind == "cpu"

    def _divided_in_floats(self, a: Val, b: Val) -> Val:
        """Truncated, as a float."""
        x, y = (self.convert(v, _THROUGH[a.dtype.itemsize]) for v in (a, self._divisor(b)))
        with self.strict():
            return self.trunc(self.div(x, y))

    def _as_integers(self, a: Val, dtype: np.dtype) -> Val:
        """A whole number that is one of the dtype, or, of bytes and words, wraps."""
        return self.convert(self.truncate_to_int(a, dtype if dtype.itemsize == 4 else dt.int32), dtype)
