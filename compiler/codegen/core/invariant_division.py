"""Quotients in vectors: of integers by a division of floats, and by a number that stays the same through a loop.

The latter are products with the number's reciprocal, and have the bits of a division.

Let y be 1 / b, rounded to nearest.  Then q = a y is within two units of a / b, q + (a - b q) y within one.  A second
such step rounds as a division does: to nearest, if y is rounded to nearest, q within one unit and the remainder exact
(Markstein; Muller et al., Handbook of Floating-Point Arithmetic, on division by fma).  All that holds while nothing
leaves the range of normal numbers; vectors in which something might are divided.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridflow.compiler.codegen.core.conversions import Conversions
from hybridflow.compiler.codegen.core.llvm_values import Operand, Val
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.target import Target

_THROUGH: dict[int, np.dtype] = {1: dt.float32, 2: dt.float32, 4: dt.float64}  # by bytes


class IntegerQuotients(Conversions):
    """Quotients of integers in vectors, for which processors have no instruction: by a division of floats.

    Let a and b be integers, both less than 2**k, and floats have more than k + 1 bits.  If a / b is no integer, it lies
    at least 1 / b away from the next one, and rounding moves it by less than that: a / b 2**-(k + 2) < 1 / b.  So the
    rounded quotient, truncated, is that of the integers.  Bytes and words are divided in float32, 32 bits in float64.
    """

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


class _Range(NamedTuple):
    """Exponents.  Within these bounds no quotient is subnormal or infinite, and no remainder on the way inexact."""

    divisor: int  # |b| lies in [2**-divisor, 2**divisor]
    dividend: int  # |a| in [2**-dividend, 2**dividend), or a is +0


_RANGES = {dt.float32: _Range(24, 100), dt.float64: _Range(100, 800)}


class _Fixed(NamedTuple):
    line: int  # a place among the lines, outside of the loop
    scalar: Val


class _Prepared(NamedTuple):
    minus: Val
    reciprocal: Val
    outside: Val  # whether it is out of range


class Quotients(IntegerQuotients):
    """Division that knows of divisors which were announced.  This pays with AVX-512, whose division takes two to three
    times as long as that of narrower vectors for each element."""

    def __init__(self, target: Target, width: int = 1, fastmath: bool = False) -> None:
        super().__init__(target, width, fastmath)
        self._fixed: dict[str, _Fixed] = {}  # by operand
        self._prepared: dict[str, _Prepared] = {}

    def fixed(self, scalar: Val) -> Val:
        """A scalar in every lane, that the loop which follows does not change."""
        value = self.splat(scalar)
        if value.dtype in _RANGES and self.has_wide(value) and not value.is_constant and not self.fastmath:
            self._fixed[value.ref] = _Fixed(len(self.lines), scalar)
            self.lines.append("")  # what dividing by it takes, if something is
        return value

    def div(self, a: Operand, b: Operand) -> Val:
        if not isinstance(b, Val) or b.ref not in self._fixed:
            return super().div(a, b)
        if b.ref not in self._prepared:
            self._prepared[b.ref] = self._prepare(b)
        a, _ = self._pair(a, b)
        return self._quotient(a, b, self._prepared[b.ref])

    def _prepare(self, b: Val) -> _Prepared:
        line, scalar = self._fixed[b.ref]
        lines, self.lines = self.lines, []
        with self.strict():
            size, bound = self.abs(scalar), 2.0 ** _RANGES[b.dtype].divisor
            inside = self.and_(self.ge(size, 1 / bound), self.le(size, bound))
            prepared = _Prepared(self.neg(b), self.splat(super().div(1.0, scalar)), self.not_(inside))
        lines[line] = "\n".join(self.lines)
        self.lines = lines
        return prepared

    def _quotient(self, a: Val, b: Val, fixed: _Prepared) -> Val:
        quotient = self.mul(a, fixed.reciprocal)
        for _ in range(2):
            quotient = self.fma(self.fma(quotient, fixed.minus, a), fixed.reciprocal, quotient)
        before, unusual, after = self.block, self.new_label("unusual"), self.new_label("after")
        outside = self.or_(Val(self.any(self._unusual(a)), dt.bool_, 1), fixed.outside)
        self.branch_if(outside.ref, unusual, after, seldom=True)
        self.label(unusual)
        divided = super().div(a, b)
        self.branch(after)
        self.label(after)
        return self.phi((quotient, before), (divided, unusual))

    def _unusual(self, a: Val) -> Val:
        """Where a dividend is out of range."""
        bits = self.bitcast(a, dt.uint32 if a.dtype == dt.float32 else dt.uint64)
        least, beyond = (
            2 * int(a.dtype.type(2.0**exponent).view(bits.dtype))
            for exponent in (-_RANGES[a.dtype].dividend, _RANGES[a.dtype].dividend)
        )
        size = self.add(bits, bits)  # without the sign
        return self.and_(self.ge(self.sub(size, least), beyond - least), self.ne(bits, 0))
