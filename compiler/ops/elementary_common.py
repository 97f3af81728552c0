"""What the elementary functions share: float formats, polynomials, double-word arithmetic.

A double word is an unevaluated sum hi + lo of two floats with |lo| at most half a unit in the last place of hi.  The
error-free transformations are Dekker's, Knuth's and Møller's, as in Muller et al., Handbook of Floating-Point
Arithmetic, chapters 4 and 14.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ops.emitter_protocol import Emit, Operand, Val
from hybridflow.quick_dataclasses import dataclass

Value = Val


class Pair(NamedTuple):
    """A double word."""

    hi: Value
    lo: Value


@dataclass(frozen=True)
class Format:
    """A binary floating-point format, and how to take its bits apart."""

    integer: np.dtype  # of the same size
    mantissa: int  # stored bits
    bias: int
    magic: float  # beside it the unit in the last place is 1, so that adding it rounds to an integer
    tiny: float  # the smallest normal number
    small: float  # what is smaller has no power that counts beside it, and from here on cubes are normal numbers
    trace: float  # a normal number, as is its square, that changes no number of which 1 + x makes more than 1

    @property
    def magic_bits(self) -> int:
        return (self.mantissa + self.bias << self.mantissa) | 1 << self.mantissa - 1


FORMATS = {
    dt.float32: Format(dt.int32, 23, 127, 1.5 * 2.0**23, 2.0**-126, 2.0**-30, 2.0**-50),
    dt.float64: Format(dt.int64, 52, 1023, 1.5 * 2.0**52, 2.0**-1022, 2.0**-60, 2.0**-110),
}


def elementary(function: Callable[..., Value]) -> Callable[..., Value]:
    """Marks a function whose roundings are its method: fastmath does not reach into it.  Kernels that use it often need
    not have it as often."""

    @functools.wraps(function)
    def strictly(e: Emit, *operands: Value) -> Value:
        with e.strict():
            return e.shared(function.__name__, function, *operands)

    return strictly


def through_float64(function: Callable[..., Value]) -> Callable[..., Value]:
    """float32 operands take the float64 method and round its result once: 0.5 ULP and no work of their own."""

    @functools.wraps(function)
    def widened(e: Emit, *operands: Value) -> Value:
        if operands[0].dtype != dt.float32:
            return function(e, *operands)
        return e.convert(function(e, *(e.convert(x, dt.float64) for x in operands)), dt.float32)

    return widened


def in_some_lanes(
    e: Emit, condition: Value, elsewhere: Value, function: Callable[..., Value], *operands: Value
) -> Value:
    """``function(e, *operands)`` in the lanes where ``condition`` holds, ``elsewhere`` in the others.

    Its code is skipped where no lane needs it.  Modules hold it once, by its name.
    """

    def strictly(e: Emit, *operands: Value) -> list[Value]:
        with e.strict():
            return [function(e, *operands)]

    return e.rarely(condition, [elsewhere], function.__name__.lstrip("_"), strictly, *operands)[0]


def polynomial(e: Emit, x: Value, coefficients: Sequence[float], square: Value | None = None) -> Value:
    """c0 + c1 x + c2 x**2 ... as Horner's rule in x**2 over pairs c + c' x: half the latency for one product more.

    ``square`` is x**2 where the caller has it.
    """
    pairs = [
        e.fma(x, coefficients[i + 1], coefficients[i]) if i + 1 < len(coefficients) else coefficients[i]
        for i in range(0, len(coefficients), 2)
    ]
    square = e.mul(x, x) if square is None else square
    result = pairs[-1]
    for pair in reversed(pairs[:-1]):
        result = e.fma(square, result, pair)
    assert isinstance(result, Val)  # of more than one coefficient
    return result


def squared(e: Emit, size: Value, x: Value) -> Value:
    """x**2, or 0 where ``size`` says that no power of x counts beside x.  They would be subnormal numbers, with which
    processors take a hundred times as long."""
    return e.mul_where(e.not_lt(size, FORMATS[x.dtype].small), x, x)


def two_sum(e: Emit, a: Value, b: Value) -> Pair:
    """a + b exactly (Knuth)."""
    hi = e.add(a, b)
    b_part = e.sub(hi, a)
    return Pair(hi, e.add(e.sub(a, e.sub(hi, b_part)), e.sub(b, b_part)))


def fast_two_sum(e: Emit, a: Value, b: Value) -> Pair:
    """a + b exactly when |a| >= |b| or a is zero (Dekker)."""
    hi = e.add(a, b)
    return Pair(hi, e.sub(b, e.sub(hi, a)))


def two_product(e: Emit, a: Value, b: Operand) -> Pair:
    """a * b exactly."""
    hi = e.mul(a, b)
    return Pair(hi, e.fma(a, b, e.neg(hi)))


def pair_product(e: Emit, a: Pair, b: Pair) -> Pair:
    """a * b to about twice the precision."""
    hi, lo = two_product(e, a.hi, b.hi)
    return fast_two_sum(e, hi, e.fma(a.hi, b.lo, e.fma(a.lo, b.hi, lo)))


def clamp_above(e: Emit, x: Value, limit: float) -> Value:
    """min(x, limit), NaN staying NaN."""
    return e.select(e.gt(x, limit), limit, x)


def clamp_below(e: Emit, x: Value, limit: float) -> Value:
    """max(x, limit), NaN staying NaN."""
    return e.select(e.lt(x, limit), limit, x)


def round_shifted(e: Emit, x: Value, factor: float) -> tuple[Value, Value]:
    """(t, k): k is x * factor rounded to an integer, and the low bits of t are k in two's complement."""
    magic = FORMATS[x.dtype].magic
    shifted = e.fma(x, factor, magic)
    return shifted, e.sub(shifted, magic)


def power_of_two(e: Emit, shifted: Value, offset: int = 0) -> Value:
    """2**(k + offset) from round_shifted's first value, where that is a normal number."""
    f = FORMATS[shifted.dtype]
    exponent = e.add(e.bitcast(shifted, f.integer), f.bias + offset)
    return e.bitcast(e.shl(exponent, f.mantissa), shifted.dtype)


def whole(e: Emit, k: Value, dtype: np.dtype) -> Value:
    """A small integer as a float.  By bits: few processors convert 64-bit integers in vectors."""
    f = FORMATS[dtype]
    if dtype == dt.float32:
        return e.convert(k, dtype)
    return e.sub(e.bitcast(e.add(k, f.magic_bits), dtype), f.magic)


def while_any(
    e: Emit, start: Sequence[Val], condition: Callable[..., Val], body: Callable[..., Sequence[Val]]
) -> Sequence[Val]:
    """``while any(condition(*values)): values = body(*values)``; a body keeps the values of lanes that are done."""
    head, inside, after = (e.new_label(hint) for hint in ("head", "inside", "after"))
    before = e.block
    e.branch(head)
    e.label(head)
    first_phi = len(e.lines)
    values = [e.phi((v, before)) for v in start]
    e.branch_if(e.any(condition(*values)), inside, after)
    e.label(inside)
    following = body(*values)
    for k, v in enumerate(following):
        e.lines[first_phi + k] += f", [ {v.ref}, %{e.block} ]"
    e.branch(head)
    e.label(after)
    return values
