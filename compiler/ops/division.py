"""Floor division and remainder: Python's, for integers and floats.

The quotient is rounded down, and the remainder has the sign of the divisor.  Dividing an integer by zero raises at
run time; a float quotient by zero is an infinity or NaN, and the remainder NaN.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ops import arrays, rules, samples
from hybridflow.compiler.ops.table import NOT_DIFFERENTIABLE, Kind, define
from hybridflow.compiler.program import Check
from hybridflow.errors import DivisionError

_MESSAGE = "an integer is divided by zero. Expected a divisor without zeros. Guard it with where, or divide floats."


def _reference(name: str, function: Any) -> Any:
    def reference(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        if not dt.is_float(x.dtype) and not np.all(y):
            raise DivisionError(name, _MESSAGE)
        return arrays.in_compute(function)(x, y)

    return reference


def _integer_parts(e: Any, name: str, x: Any, y: Any) -> tuple[Any, Any]:
    """Quotient rounded down, and remainder."""
    zero, one = e.const(0, x.dtype), e.const(1, x.dtype)
    by_zero = e.eq(y, zero)
    e.raise_if(by_zero, Check(DivisionError.__name__, name, _MESSAGE, e.where))
    divisor = e.select(by_zero, one, y)
    quotient, remainder = e.idiv(x, divisor), e.irem(x, divisor)
    if dt.is_unsigned(x.dtype):
        return quotient, remainder
    below = e.and_(e.ne(remainder, zero), e.lt(e.xor(remainder, divisor), zero))
    return e.select(below, e.sub(quotient, one), quotient), e.select(below, e.add(remainder, divisor), remainder)


def _float_parts(e: Any, x: Any, y: Any) -> tuple[Any, Any]:
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


def _truncated_remainder(e: Any, x: Any, y: Any) -> Any:
    return e.sub(x, e.mul(e.trunc(e.div(x, y)), y))


def _scalar(name: str, part: int) -> Any:
    def scalar(e: Any, x: Any, y: Any) -> Any:
        return (_float_parts(e, x, y) if dt.is_float(x.dtype) else _integer_parts(e, name, x, y))[part]

    return scalar


def _samples(rng: np.random.Generator, dtype: Any) -> list[samples.Sample]:
    found = samples.elementwise(2)(rng, dtype)
    if dt.is_float(dtype):
        return found
    return [((x, np.where(y == 0, dtype.type(3), y)), attrs) for (x, y), attrs in found]


def _divides_integers(types: Any, attrs: Any) -> bool:
    return not dt.is_float(types[0].dtype)


define(
    "floor_divide",
    Kind.ELEMENTWISE,
    2,
    doc="x // y, rounded down.  Its derivative is 0 almost everywhere, and a step elsewhere: there is none.",
    infer=rules.same_type("floor_divide", rules.NUMERIC),
    reference=_reference("floor_divide", np.floor_divide),
    scalar=_scalar("floor_divide", 0),
    vjp=NOT_DIFFERENTIABLE,
    raises=_divides_integers,
    samples=_samples,
    dtypes=rules.NUMERIC,
    facts={"exact": True},
)

define(
    "remainder",
    Kind.ELEMENTWISE,
    2,
    doc="x % y, with the sign of y; exact in floats.",
    infer=rules.same_type("remainder", rules.NUMERIC),
    reference=_reference("remainder", np.remainder),
    scalar=_scalar("remainder", 1),
    vjp=lambda b, g, out, x, y: (g, lambda: b.negative(b.multiply(g, b.floor_divide(x, y)))),
    raises=_divides_integers,
    samples=_samples,
    dtypes=rules.NUMERIC,
    facts={"exact": True, "domain": ((0.1, 0.9), (1.1, 2.0))},
)
