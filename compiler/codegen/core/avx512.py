"""Arithmetic for which AVX-512 has single instructions, where other machines take several."""

from __future__ import annotations

import math

from hybridflow.compiler.codegen.core.arithmetic import Arithmetic
from hybridflow.compiler.codegen.core.llvm_values import Val, type_text
from hybridflow.compiler.ir import dtypes as dt

_RANGES = {"minimum": 4, "maximum": 5}  # VRANGE's immediate operand: the result with the sign that it has


class Avx512(Arithmetic):
    """``Arithmetic``, with these instructions where the target has them."""

    def has_wide(self, a: Val) -> bool:
        """Whether they take operands such as ``a``, a vector of floats."""
        return self.is_x86 and self.target.masked and a.width * a.dtype.itemsize >= 16

    def scalef(self, a: Val, exponent: Val, kept: Val | None) -> Val:
        """a * 2**exponent where ``kept`` holds, and 0 in the other lanes, in which nothing is computed."""
        return self._wide("scalef", a, exponent, "", kept)

    def mul_where(self, kept: Val, a: Val, b: Val) -> Val:
        if not self.has_wide(a):
            return super().mul_where(kept, a, b)
        return self.select(kept, self.mul(a, b), 0.0)  # one instruction

    def _float_extremum(self, name: str, a: Val, b: Val) -> Val:
        """VRANGE has an order for zeros, but takes the number where the other operand is NaN.  With a constant for an
        operand LLVM knows short ways of its own."""
        if not self.has_wide(a) or a.is_constant or b.is_constant:
            return super()._float_extremum(name, a, b)
        unordered = self.assign(f"fcmp uno {type_text(a.dtype, a.width)} {a.ref}, {b.ref}", dt.bool_, a.width)
        return self.select(unordered, math.nan, self._wide("range", a, b, f", i32 {_RANGES[name]}", None))

    def _wide(self, name: str, a: Val, b: Val, immediate: str, kept: Val | None) -> Val:
        """The instruction's result where ``kept`` holds, and 0 in the other lanes."""
        bits = 8 * a.width * a.dtype.itemsize
        if bits > 512:
            half = a.width // 2
            low, high = (
                self._wide(
                    name,
                    self.shuffle(a, None, part),
                    self.shuffle(b, None, part),
                    immediate,
                    None if kept is None else self.shuffle(kept, None, part),
                )
                for part in (range(half), range(half, a.width))
            )
            return self.shuffle(low, high, range(a.width))
        symbol = f"@llvm.x86.avx512.mask.{name}.{'ps' if a.dtype == dt.float32 else 'pd'}.{bits}"
        vector, mask = type_text(a.dtype, a.width), f"i{max(8, a.width)}"
        active = "-1" if kept is None else self._mask_bits(kept)
        number = ", i32" if immediate else ""
        # At full width an instruction also takes a rounding mode; 4 is the current one.
        mode = ", i32" if bits == 512 else ""
        self.declare(f"declare {vector} {symbol}({vector}, {vector}{number}, {vector}, {mask}{mode})")
        return self.assign(
            f"call {vector} {symbol}({vector} {a.ref}, {vector} {b.ref}{immediate}, "
            f"{vector} zeroinitializer, {mask} {active}{mode and ', i32 4'})",
            a.dtype,
            a.width,
        )

    def _mask_bits(self, mask: Val) -> str:
        """A mask as these instructions take it: the bits of an integer, of 8 at least."""
        width = max(8, mask.width)
        if mask.width < width:
            mask = self.shuffle(mask, None, [min(lane, mask.width - 1) for lane in range(width)])
        return self.assign(f"bitcast <{width} x i1> {mask.ref} to i{width}", mask.dtype, 1).ref
