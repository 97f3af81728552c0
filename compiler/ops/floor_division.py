"""Floor division and remainder: Python's, for integers and floats.

The quotient is rounded down, and the remainder has the sign of the divisor.  Dividing an integer by zero raises at
run time; a float quotient by zero is an infinity or NaN, and the remainder NaN.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ops import reference_arrays, samples, type_rules, value_ranges
from hybridflow.compiler.ops.emitter_protocol import Emit, Val
from hybridflow.compiler.ops.op_table import NOT_DIFFERENTIABLE, Kind, define
from hybridflow.compiler.program import Check
from hybridflow.errors import DivisionError

if TYPE_CHECKING:
    from hybridflow.compiler.ir.types import TensorType


_MESSAGE = "an integer is divided by zero. Expected a divisor without zeros. Guard it with where, or divide floats."


def _reference(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def reference(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        if not dt.is_float(x.dtype) and not np.all(y):
            raise DivisionError(name, _MESSAGE)
        return reference_arrays.in_compute(function)(x, y)

    return reference


def _integer_parts(e: Emit, name: str, x: Val, y: Val) -> tuple[Val, Val]:
    """Quotient rounded down, and remainder."""
    if y.integer is not None and y.integer > 0:
        return _parts_by_known(e, x, y, y.integer)
    zero, one = e.const(0, x.dtype), e.const(1, x.dtype)
    by_zero = e.eq(y, zero)
    e.raise_if(by_zero, Check(DivisionError.__name__, name, _MESSAGE, e.where))
    divisor = e.select(by_zero, one, y)
    quotient, remainder = e.idiv(x, divisor), e.irem(x, divisor)
    if dt.is_unsigned(x.dtype):
        return quotient, remainder
    below = e.and_(e.ne(remainder, zero), e.lt(e.xor(remainder, divisor), zero))
    return e.select(below, e.sub(quotient, one), quotient), e.select(below, e.add(remainder, divisor), remainder)


def _parts_by_known(e: Emit, x: Val, y: Val, divisor: int) -> tuple[Val, Val]:
    """The same by a number above zero: without a check, and without correcting a quotient that was truncated.

    The complement of a negative x is not negative, and the complement of its quotient is that of x, rounded down."""
    if divisor & (divisor - 1) == 0:
        shift = e.ashr if dt.is_signed(x.dtype) else e.lshr
        return shift(x, divisor.bit_length() - 1), e.and_(x, divisor - 1)
    if dt.is_unsigned(x.dtype):
        return e.idiv(x, y), e.irem(x, y)
    unsigned = np.dtype(f"uint{8 * x.dtype.itemsize}")
    sign = e.ashr(x, 8 * x.dtype.itemsize - 1)
    positive = e.bitcast(e.xor(x, sign), unsigned)
    quotient = e.xor(e.bitcast(e.idiv(positive, divisor), x.dtype), sign)
    return quotient, e.sub(x, e.mul(quotient, y))


def _float_parts(e: Emit, x: Val, y: Val) -> tuple[Val, Val]:
    """Quotient rounded down, and remainder, from the remainder of the division truncated (which is exact)."""
    dtype = x.dtype
    zero, one = e.const(0.0, dtype), e.const(1.0, dtype)
    remainder = _truncated_remainder(e, x, y)
    quotient = e.div(e.sub(x, remainder), y)
    below = e.and_(e.ne(remainder, zero), e.ne(e.lt(remainder, zero), e.lt(y, zero)))
    quotient = e.select(below, e.sub(quotient, one), quotient)
    remainder = e.select(below, e.add(remainder, y), remainder)
    remainder = e.select(e.eq(remainder, zero), e.copysign(zero, y), remainder)
    # The quotient is whole but for its rounding error.
    floor = e.floor(quotient)
    floor = e.select(e.gt(e.sub(quotient, floor), e.const(0.5, dtype)), e.add(floor, one), floor)
    floor = e.select(e.eq(quotient, zero), e.copysign(zero, e.div(x, y)), floor)
    return e.select(e.eq(y, zero), e.div(x, y), floor), remainder


def _truncated_remainder(e: Emit, x: Val, y: Val) -> Val:
    """x - trunc(x / y) * y without any rounding, with the sign of x; NaN for an infinite x or a zero y.

    This is C's fmod, for which no target has an instruction.  Each turn takes off the rounded quotient times the
    divisor with one fma, which is exact: what a rounded quotient leaves is representable.  It may have either sign.
    Quotients below 2**24 (float32) or 2**53 (float64) need one turn; larger ones another for each as many bits.
    """
    dtype = x.dtype
    zero = e.const(0.0, dtype)
    with e.strict():
        size, infinity = e.abs(y), e.const(math.inf, dtype)
        # Both are False for NaN too.  Lanes with nothing to compute take part as 0 and 1, so that the loop ends.
        defined = e.and_(e.lt(e.abs(x), infinity), e.gt(size, zero))
        finite = e.and_(defined, e.lt(size, infinity))
        divisor = e.select(finite, size, e.const(1.0, dtype))
        start = e.select(finite, x, zero)
        step, done = e.new_label("turn"), e.new_label("done")
        before = e.block
        e.branch(step)
        e.label(step)
        position = len(e.lines)
        rest = e.phi((start, before))
        scaled = _scaled(e, e.abs(rest), divisor)
        left = e.fma(e.neg(e.trunc(e.div(rest, scaled))), scaled, rest)
        again = e.any(e.ge(e.abs(left), divisor))
        e.lines[position] += f", [ {left.ref}, %{e.block} ]"
        e.branch_if(again, step, done)
        e.label(done)
        crossed = e.and_(e.ne(left, zero), e.ne(e.lt(left, zero), e.lt(x, zero)))
        left = e.select(crossed, e.add(left, e.copysign(divisor, x)), left)
        return e.select(finite, e.copysign(left, x), e.select(defined, x, e.const(math.nan, dtype)))


def _scaled(e: Emit, size: Val, divisor: Val) -> Val:
    """The divisor times a power of two, where the quotient would overflow otherwise."""
    scale = e.const(2.0**100 if size.dtype == dt.float32 else 2.0**900, size.dtype)
    for _ in range(2):  # the largest float over the smallest is below 2**278 (float32) or 2**2098
        larger = e.mul(divisor, scale)
        divisor = e.select(e.ge(size, larger), larger, divisor)
    return divisor


def _scalar(name: str, part: int) -> Callable[..., Any]:
    def scalar(e: Emit, x: Val, y: Val) -> Val:
        return (_float_parts(e, x, y) if dt.is_float(x.dtype) else _integer_parts(e, name, x, y))[part]

    return scalar


def _samples(rng: np.random.Generator, dtype: np.dtype[Any]) -> list[samples.Sample]:
    result = samples.elementwise(2)(rng, dtype)
    if dt.is_float(dtype):
        return result
    return [((x, np.where(y == 0, dtype.type(3), y)), attrs) for (x, y), attrs in result]


def _divides_integers(types: tuple[TensorType, ...], attrs: object) -> bool:
    return not dt.is_float(types[0].dtype)


define(
    "floor_divide",
    Kind.ELEMENTWISE,
    2,
    doc="x // y, rounded down.  Its derivative is 0 almost everywhere, and a step elsewhere: there is none.",
    infer=type_rules.same_type("floor_divide", type_rules.NUMERIC),
    reference=_reference("floor_divide", np.floor_divide),
    scalar=_scalar("floor_divide", 0),
    vjp=NOT_DIFFERENTIABLE,
    raises=_divides_integers,
    samples=_samples,
    dtypes=type_rules.NUMERIC,
    facts={"exact": True, "bounds": value_ranges.at_ends(operator.floordiv, least=1)},
)

define(
    "remainder",
    Kind.ELEMENTWISE,
    2,
    doc="x % y, with the sign of y; exact in floats.",
    infer=type_rules.same_type("remainder", type_rules.NUMERIC),
    reference=_reference("remainder", np.remainder),
    scalar=_scalar("remainder", 1),
    vjp=lambda b, g, out, x, y: (g, lambda: b.negative(b.multiply(g, b.floor_divide(x, y)))),
    raises=_divides_integers,
    samples=_samples,
    dtypes=type_rules.NUMERIC,
    facts={"exact": True, "domain": ((0.1, 0.9), (1.1, 2.0)), "bounds": value_ranges.remainder},
)
