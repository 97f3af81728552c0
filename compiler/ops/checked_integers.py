"""Arithmetic of Python's ints in 64 bits: what needs more is an error when the program runs.

These ops are what operators of Python's make of numbers that a tensor decides about.  Eager code has ints of any size
there, so a result that wraps would be another number; and since eager code raises nothing, a result that nobody reads
is no error.  Where the range of the operands is known, the pass ``overflow`` puts the ops in their place that wrap.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.graph import Effect
from hybridflow.compiler.ops import elementwise_binary, elementwise_unary, samples, type_rules, value_ranges  # noqa: F401
from hybridflow.compiler.ops.emitter_protocol import Emit, Val
from hybridflow.compiler.ops.op_table import NOT_DIFFERENTIABLE, TABLE, Kind, define
from hybridflow.compiler.program import Check
from hybridflow.errors import IntegerOverflowError

_MESSAGE = (
    "an int that a tensor decides about outgrew the 64 bits that it has in compiled functions. "
    "Keep it below 2**63, or use floats."
)
_LEAST, _MOST = -(2**63), 2**63 - 1
_BITS = 63

WRAPPING: dict[str, str] = {}
"""The op that computes the same where nothing needs more than 64 bits, by the names of those that check it."""

Exact = Callable[..., int]


def _reference(name: str, exact: Exact) -> Callable[..., Any]:
    def one(*xs: Any) -> int:
        result = exact(*map(int, xs))
        if not _LEAST <= result <= _MOST:
            raise IntegerOverflowError(name, _MESSAGE)
        return result

    def reference(*arrays: np.ndarray) -> np.ndarray:
        results = [one(*xs) for xs in zip(*(array.ravel() for array in arrays))]
        return np.array(results, dt.int64).reshape(arrays[0].shape)

    return reference


def _checked(wraps: str, arity: int, exact: Exact, scalar: Callable[..., tuple[Val, Val]], **facts: Any) -> None:
    """The op that computes as ``wraps`` does, and fails where ``scalar`` says so beside the result."""
    name = f"checked_{wraps}"
    rule = TABLE[wraps].facts["bounds"]  # which another module of these has declared

    def raising(e: Emit, *xs: Val) -> Val:
        result, outgrows = scalar(e, *xs)
        e.raise_if(outgrows, Check(IntegerOverflowError.__name__, wraps, _MESSAGE, e.where))
        return result

    def clipped(dtype: np.dtype, *operands: value_ranges.Bounds) -> value_ranges.Bounds:
        """What is beyond the range is never a result."""
        low, high = rule(dtype, *operands)
        low, high = max(low, _LEAST), min(high, _MOST)
        return (low, high) if low <= high else (_LEAST, _MOST)

    define(
        name,
        Kind.ELEMENTWISE,
        arity,
        doc=f"{wraps} of ints whose exact result 64 bits hold; another one is an error.",
        infer=type_rules.same_type(name, (dt.int64,)),
        reference=_reference(wraps, exact),
        scalar=raising,
        vjp=NOT_DIFFERENTIABLE,
        raises=lambda types, attrs: True,
        effect=Effect.CHECKED,
        samples=_samples(arity, exact),
        dtypes=(dt.int64,),
        facts={"exact": True, "bounds": clipped, **facts},
    )
    WRAPPING[name] = wraps


def _samples(arity: int, exact: Exact) -> samples.Samples:
    """Those that fit."""

    def fits(*xs: Any) -> bool:
        return _LEAST <= exact(*map(int, xs)) <= _MOST

    def result(rng: np.random.Generator, dtype: dt.DType) -> list[samples.Sample]:
        result = []
        for arrays, attrs in samples.elementwise(arity)(rng, dtype):
            kept = np.array([fits(*xs) for xs in zip(*(x.ravel() for x in arrays))], bool).reshape(arrays[0].shape)
            result.append((tuple([np.where(kept, x, dtype.type(1)) for x in arrays]), attrs))
        return result

    return result


# ---- what each is, exactly and in 64 bits


def _exact_shift(x: int, y: int) -> int:
    """Of a negative amount what ``bitwise_left_shift`` says; of a large one no more bits than show that it is large."""
    return x << min(y, _BITS + 1) if y >= 0 else 0


def _exact_power(x: int, y: int) -> int:
    if y < 0:
        return x if abs(x) == 1 and y & 1 else int(abs(x) == 1)
    return int(x**y) if abs(x) < 2 or y <= _BITS else _MOST + 1


def _of_two(name: str) -> Callable[[Emit, Val, Val], tuple[Val, Val]]:
    return lambda e, x, y: e.with_overflow(name, x, y)


def _negative(e: Emit, x: Val) -> tuple[Val, Val]:
    return e.with_overflow("sub", e.const(0, x.dtype), x)


def _absolute(e: Emit, x: Val) -> tuple[Val, Val]:
    return e.abs(x), e.eq(x, e.const(_LEAST, x.dtype))


def _scalar_of(name: str) -> Any:
    scalar = TABLE[name].scalar
    assert scalar is not None
    return scalar


def _shifted(e: Emit, x: Val, y: Val) -> tuple[Val, Val]:
    result, zero = _scalar_of("bitwise_left_shift")(e, x, y), e.const(0, x.dtype)
    back = _scalar_of("bitwise_right_shift")(e, result, y)
    return result, e.and_(e.ge(y, zero), e.ne(back, x))


def _power(e: Emit, x: Val, y: Val) -> tuple[Val, Val]:
    """Repeated squaring.  A square that needs more bits matters where a later bit of the exponent takes it, or one that
    is made of it: then the power needs more, too."""
    zero, one = e.const(0, x.dtype), e.const(1, x.dtype)
    power, square = one, x
    lost = outgrows = e.const(False, dt.bool_, x.width)
    bits = _BITS if y.integer is None or y.integer < 0 else y.integer.bit_length()
    for bit in range(bits):
        taken = e.ne(e.and_(y, e.const(1 << bit, x.dtype)), zero)
        product, beyond = e.with_overflow("mul", power, square)
        outgrows = e.or_(outgrows, e.and_(taken, e.or_(lost, beyond)))
        power = e.select(taken, product, power)
        if bit < bits - 1:
            square, beyond = e.with_overflow("mul", square, square)
            lost = e.or_(lost, beyond)
    negative = e.lt(y, zero)
    return e.select(negative, _scalar_of("pow")(e, x, y), power), e.and_(outgrows, e.not_(negative))


_checked("add", 2, operator.add, _of_two("add"), commutative=True)
_checked("subtract", 2, operator.sub, _of_two("sub"))
_checked("multiply", 2, operator.mul, _of_two("mul"), commutative=True)
_checked("negative", 1, operator.neg, _negative)
_checked("abs", 1, abs, _absolute)
_checked("bitwise_left_shift", 2, _exact_shift, _shifted)
_checked("pow", 2, _exact_power, _power)
