"""Elementwise ops of two inputs, ``where``, and ``multiply_add``.

Entries of a vjp's result may be functions without arguments: they are called only when that cotangent is wanted.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.build import Builder, Cotangent, Value
from hybridflow.compiler.ir.types import TensorType
from hybridflow.compiler.ops import complex_pairs, elementary, reference_arrays, samples, type_rules, value_ranges
from hybridflow.compiler.ops.elementary_common import FORMATS, power_of_two, round_shifted, while_any
from hybridflow.compiler.ops.elementwise_unary import exponent_of
from hybridflow.compiler.ops.emitter_protocol import Emit, Val
from hybridflow.compiler.ops.op_table import NOT_DIFFERENTIABLE, Kind, define
from hybridflow.compiler.ops.type_rules import masked

_WIDE = ((-3.0, 3.0), (-3.0, 3.0))


def _binary(
    name: str,
    *,
    dtypes: tuple[Any, ...] = type_rules.NUMERIC,
    domain: tuple[tuple[float, float], ...] = _WIDE,
    **fields: Any,
) -> None:
    """An op on two inputs of one type, which is the result's too.  ``domain``: an interval per input, smooth there."""
    taken = tuple(dtypes) + (dt.COMPLEX if "pairs" in fields else ())
    fields.setdefault("infer", type_rules.same_type(name, taken))
    fields.setdefault("samples", samples.elementwise(2))
    fields = reference_arrays.with_reference(fields, reference_arrays.in_compute)
    facts = {"domain": domain, **fields.pop("facts", {})}
    define(name, Kind.ELEMENTWISE, 2, dtypes=tuple(dtypes), facts=facts, **fields)


def _relation(name: str, *, dtypes: tuple[Any, ...] = dt.REAL, **fields: Any) -> None:
    """An op with a bool result."""
    fields = reference_arrays.with_reference(fields, reference_arrays.predicate)
    infer = type_rules.bool_result(name, tuple(dtypes) + (dt.COMPLEX if "pairs" in fields else ()))
    _binary(name, dtypes=dtypes, infer=infer, vjp=NOT_DIFFERENTIABLE, **fields)


# ---- arithmetic


_binary(
    "add",
    doc="x + y; integers wrap.",
    numpy=np.add,
    pairs=complex_pairs.componentwise("add"),
    scalar=lambda e, x, y: e.add(x, y),
    vjp=lambda b, g, out, x, y: (g, g),
    facts={"commutative": True, "identity": -0.0, "bounds": value_ranges.at_ends(operator.add)},
)

_binary(
    "subtract",
    doc="x - y; integers wrap.",
    numpy=np.subtract,
    pairs=complex_pairs.componentwise("subtract"),
    scalar=lambda e, x, y: e.sub(x, y),
    vjp=lambda b, g, out, x, y: (g, lambda: b.negative(g)),
    facts={"right_identity": 0.0, "bounds": value_ranges.at_ends(operator.sub)},
)


def _multiply_vjp(b: Builder, g: Value, out: Value, x: Value, y: Value) -> tuple[Cotangent, ...]:
    if x is y:  # the two shares of a square are one product
        share = b.multiply(g, x)
        return b.add(share, share), None
    return lambda: b.multiply(g, y), lambda: b.multiply(g, x)


_binary(
    "multiply",
    doc="x * y; integers wrap.",
    numpy=np.multiply,
    pairs=complex_pairs.multiply,
    scalar=lambda e, x, y: e.mul(x, y),
    vjp=_multiply_vjp,
    facts={"commutative": True, "identity": 1.0, "bounds": value_ranges.at_ends(operator.mul)},
)


def _divide_vjp(b: Builder, g: Value, out: Value, x: Value, y: Value) -> tuple[Cotangent, ...]:
    # A zero cotangent gives zero even over a zero divisor (see type_rules.masked).
    zero = b.full(0, like=g.type)
    pole = b.logical_and(b.equal(g, zero), b.logical_not(b.isfinite(out)))
    quotient = b.where(pole, zero, b.divide(g, y))
    return quotient, lambda: b.negative(b.multiply(quotient, b.where(pole, zero, out)))


_binary(
    "divide",
    doc="x / y of floats.",
    dtypes=dt.FLOATS,
    numpy=np.divide,
    pairs=complex_pairs.divide,
    scalar=lambda e, x, y: e.div(x, y),
    vjp=_divide_vjp,
    domain=((-3.0, 3.0), (0.5, 3.0)),
    facts={"right_identity": 1.0},
)


# ---- powers and angles


def _pow_reference(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    if dt.is_complex(x.dtype):
        return reference_arrays.in_double(np.power)(x, y)
    if dt.is_float(x.dtype):
        # Not np.power: for a single exponent 0.5 it takes square roots, which is wrong at -0.0 and -inf.
        return reference_arrays.in_double(np.float_power)(x, y)
    positive = np.power(x, np.maximum(y, 0), dtype=x.dtype)
    if dt.is_unsigned(x.dtype):
        return np.asarray(positive)
    inverse = np.where(x == 1, 1, np.where(x == -1, np.where(y & 1, -1, 1), 0)).astype(x.dtype)
    return np.where(y < 0, inverse, positive)


def _pow_scalar(e: Emit, x: Val, y: Val) -> Val:
    """Floats: elementary.pow.  Integers: repeated squaring over the bits of the exponent, which wraps as it should."""
    dtype = x.dtype
    if dt.is_float(dtype):
        return elementary.pow(e, x, y)
    zero, one = e.const(0, dtype), e.const(1, dtype)
    power, square = one, x
    bits = 8 * dtype.itemsize - dt.is_signed(dtype)
    for bit in range(bits):
        taken = e.ne(e.and_(y, e.const(1 << bit, dtype)), zero)
        power = e.select(taken, e.mul(power, square), power)
        if bit < bits - 1:
            square = e.mul(square, square)
    if dt.is_unsigned(dtype):
        return power
    # 1/x truncated: 1 and -1 are their own inverses, and everything else (0 too) gives 0.
    odd = e.ne(e.and_(y, one), zero)
    minus = e.const(-1, dtype)
    inverse = e.select(e.eq(x, one), one, e.select(e.eq(x, minus), e.select(odd, minus, one), zero))
    return e.select(e.lt(y, zero), inverse, power)


def _pow_vjp(b: Builder, g: Value, out: Value, x: Value, y: Value) -> tuple[Cotangent, ...]:
    zero, one = b.full(0, like=x.type), b.full(1, like=x.type)

    def for_base() -> Value:
        # For y = 0 the factor g * y masks x**-1, which is infinite at x = 0.
        return masked(b, b.multiply(g, y), b.pow(x, b.subtract(y, one)))

    def for_exponent() -> Value:
        if dt.is_complex(x.type.dtype):
            return b.multiply(g, b.where(b.equal(x, zero), zero, b.multiply(out, b.log(x))))
        # out * log(x) for a positive base.  A base of 0 stays 0; a negative one has no real derivative: 0 too.
        positive = b.greater(x, zero)
        return masked(b, g, b.multiply(b.where(positive, out, zero), b.log(b.where(positive, x, one))))

    return for_base, for_exponent


def _pow_samples(rng: np.random.Generator, dtype: dt.DType) -> list[samples.Sample]:
    result = samples.elementwise(2)(rng, dtype)
    if dt.is_float(dtype):
        result += [
            ((samples.values(rng, dtype, shape, (0.25, 4.0)), samples.values(rng, dtype, shape)), {})
            for shape in samples.SHAPES
        ]
    return result


_binary(
    "pow",
    doc="""x to the power y; pow(x, 0) and pow(1, y) are 1 even for NaN.  Integers wrap; with a negative exponent
    they give 1/x truncated: 1 or -1 for the bases 1 and -1, and 0 for all others.""",
    reference=_pow_reference,
    pairs=complex_pairs.elementary("pow_rule"),
    scalar=_pow_scalar,
    vjp=_pow_vjp,
    samples=_pow_samples,
    domain=((0.25, 3.0), (-2.0, 3.0)),
    facts={"bounds": value_ranges.power},
)


_binary(
    "after",
    doc="""x, in a program that has made y before.  What is made of it is told from what is made of x, so that it is
    computed once more, and not before y.""",
    dtypes=dt.REAL,
    pairs=complex_pairs.Moved("after"),
    reference=lambda x, y: x,
    scalar=lambda e, x, y: x,
    vjp=lambda b, g, out, x, y: (g, lambda: b.full(0, like=y.type)),
    facts={"exact": True},
)


_binary(
    "transfer_back",
    doc="""x on the device where y lies: what ``transfer`` does to derivatives.""",
    dtypes=dt.REAL,
    pairs=complex_pairs.Moved("transfer_back"),
    reference=lambda x, y: x,
    scalar=lambda e, x, y: x,
    vjp=lambda b, g, out, x, y: (b.transfer_back(g, x), lambda: b.full(0, like=y.type)),
    facts={"exact": True},
)


def _over(b: Builder, x: Value, length: Value) -> Value:
    """``x / length``, and 0 where the length is: no direction is preferred there."""
    zero = b.full(0, like=length.type)
    there = b.not_equal(length, zero)
    return b.where(there, b.divide(x, b.where(there, length, b.full(1, like=length.type))), zero)


def _atan2_vjp(b: Builder, g: Value, out: Value, x: Value, y: Value) -> tuple[Cotangent, ...]:
    # Over hypot twice instead of the sum of squares, which under- and overflows.
    length = b.hypot(x, y)
    return (
        lambda: masked(b, g, _over(b, _over(b, y, length), length)),
        lambda: b.negative(masked(b, g, _over(b, _over(b, x, length), length))),
    )


_binary(
    "atan2",
    doc="The angle of the point (y, x): the first input is the ordinate.",
    dtypes=dt.FLOATS,
    reference=reference_arrays.in_double(np.arctan2),
    scalar=lambda e, x, y: elementary.atan2(e, x, y),
    vjp=_atan2_vjp,
    domain=((-3.0, 3.0), (0.5, 3.0)),
)

_binary(
    "hypot",
    doc="sqrt(x**2 + y**2) without overflow.",
    dtypes=dt.FLOATS,
    reference=reference_arrays.in_double(np.hypot),
    scalar=lambda e, x, y: elementary.hypot(e, x, y),
    vjp=lambda b, g, out, x, y: (lambda: masked(b, g, _over(b, x, out)), lambda: masked(b, g, _over(b, y, out))),
    domain=((0.5, 3.0), (-3.0, 3.0)),
    facts={"commutative": True},
)


def _logaddexp_vjp(b: Builder, g: Value, out: Value, x: Value, y: Value) -> tuple[Cotangent, ...]:
    # Equal infinities share the cotangent evenly; their difference would be NaN.  That of equal numbers is 0, but the
    # shares have a derivative: it has to be calculated.
    alike = b.logical_and(b.equal(x, y), b.logical_not(b.isfinite(x)))
    difference = b.where(alike, b.full(0, like=x.type), b.subtract(x, y))
    return lambda: b.multiply(g, b.sigmoid(difference)), lambda: b.multiply(g, b.sigmoid(b.negative(difference)))


_binary(
    "logaddexp",
    doc="log(exp(x) + exp(y)) without overflow.",
    dtypes=dt.FLOATS,
    reference=reference_arrays.in_double(np.logaddexp),
    scalar=lambda e, x, y: elementary.logaddexp(e, x, y),
    vjp=_logaddexp_vjp,
    facts={"commutative": True},
)

_binary(
    "copysign",
    doc="The magnitude of x with the sign of y (zeros and NaN have signs).",
    dtypes=dt.FLOATS,
    numpy=np.copysign,
    scalar=lambda e, x, y: e.copysign(x, y),
    vjp=lambda b, g, out, x, y: (
        lambda: b.multiply(g, b.multiply(b.sign(x), b.copysign(b.full(1, like=y.type), y))),
        lambda: b.full(0, like=y.type),
    ),
    domain=((0.5, 3.0), (0.5, 3.0)),
)


def _next_after(e: Emit, x: Val, y: Val) -> Val:
    """Floats of one sign are in the order of their bits."""
    integer = FORMATS[x.dtype].integer
    bits = e.bitcast(x, integer)
    towards_zero = e.xor(e.gt(y, x), e.gt(x, 0))
    moved = e.bitcast(e.select(towards_zero, e.sub(bits, 1), e.add(bits, 1)), x.dtype)
    least = e.copysign(e.bitcast(e.const(1, integer), x.dtype), y)
    neighbour = e.select(e.eq(x, y), y, e.select(e.eq(x, 0), least, moved))
    return e.select(e.or_(e.is_nan(x), e.is_nan(y)), e.add(x, y), neighbour)


_binary(
    "nextafter",
    doc="The float next to x in the direction of y; y itself where they are equal.",
    dtypes=(dt.float32, dt.float64),
    numpy=np.nextafter,
    scalar=_next_after,
    vjp=NOT_DIFFERENTIABLE,
)


def _gcd(e: Emit, x: Val, y: Val) -> Val:
    """Euclid's algorithm, until all lanes are done."""
    zero, one = e.const(0, x.dtype), e.const(1, x.dtype)

    def size(value: Val) -> Val:
        return e.select(e.lt(value, zero), e.neg(value), value) if dt.is_signed(value.dtype) else value

    def step(a: Val, b: Val) -> list[Val]:
        done = e.eq(b, zero)
        rest = e.irem(a, e.select(done, one, b))
        return [e.select(done, a, b), e.select(done, zero, size(rest))]

    return while_any(e, [size(x), size(y)], lambda a, b: e.ne(b, zero), step)[0]


_binary(
    "gcd",
    doc="The greatest common divisor of integers; 0 of zeros.",
    dtypes=dt.INTEGERS,
    numpy=np.gcd,
    scalar=_gcd,
    vjp=NOT_DIFFERENTIABLE,
    facts={"commutative": True, "associative": True},
)


def _scaled_reference(x: np.ndarray, n: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        result = np.ldexp(x, np.clip(np.rint(n), -5000, 5000).astype(np.int32))  # NaN as anything
        return np.where(np.isnan(n), n, result).astype(x.dtype)


def _scaled(e: Emit, x: Val, n: Val) -> Val:
    """From the fraction, whose exponent the processor's instruction for it has room for."""
    f = FORMATS[x.dtype]
    exponent, most = exponent_of(e, x), 2.0 * f.bias
    plain = e.and_(e.ne(x, 0.0), e.lt(e.abs(x), math.inf))
    half = e.trunc(e.mul(e.neg(exponent), 0.5))
    first = e.mul(e.select(plain, x, 1.0), _power(e, half))
    fraction = e.mul(first, _power(e, e.sub(e.neg(exponent), half)))
    moved = e.add(exponent, e.rint(n))
    moved = e.select(e.gt(moved, most), most, e.select(e.lt(moved, -most), e.const(-most, x.dtype, x.width), moved))
    result = e.select(plain, e.scale2(fraction, e.select(e.is_nan(moved), 0.0, moved)), x)
    return e.select(e.is_nan(n), n, result)


def _power(e: Emit, k: Val) -> Val:
    """2**k for an integral float, where that is a normal number."""
    shifted, _ = round_shifted(e, k, 1.0)
    return power_of_two(e, shifted)


_binary(
    "ldexp",
    doc="x times 2**n, rounded once; n, which is rounded to an integer, has no derivative.",
    dtypes=dt.FLOATS,
    reference=reference_arrays.in_compute(_scaled_reference),
    scalar=_scaled,
    vjp=lambda b, g, out, x, n: (lambda: b.ldexp(g, n), lambda: b.full(0, like=n.type)),
    facts={"exact": True},
)


# ---- smaller and larger


def _extreme(pick: Callable[..., Any], signed: bool) -> Callable[..., Any]:
    """np.minimum or np.maximum with -0.0 < 0.0, which NumPy leaves open."""

    def extreme(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        if not dt.is_float(x.dtype):
            return pick(x, y)
        return np.where(x == y, np.where(np.signbit(x) == signed, x, y), pick(x, y))

    return reference_arrays.in_compute(extreme)


def _choice_vjp(first: str) -> Callable[..., Any]:
    """All of the cotangent to the input that was taken; to the first when they are equal."""

    def vjp(b: Builder, g: Value, out: Value, x: Value, y: Value) -> tuple[Any, ...]:
        zero = b.full(0, like=g.type)
        taken = getattr(b, first)(x, y)
        return lambda: b.where(taken, g, zero), lambda: b.where(taken, zero, g)

    return vjp


_EXTREME = {"commutative": True, "associative": True, "idempotent": True, "exact": True}

_binary(
    "minimum",
    doc="The smaller of x and y; NaN if either is NaN, and -0.0 < 0.0.",
    reference=_extreme(np.minimum, signed=True),
    scalar=lambda e, x, y: e.minimum(x, y) if dt.is_float(x.dtype) else e.select(e.lt(x, y), x, y),
    vjp=_choice_vjp("less_equal"),
    facts={**_EXTREME, "identity": math.inf, "bounds": value_ranges.minimum},
)

_binary(
    "maximum",
    doc="The larger of x and y; NaN if either is NaN, and -0.0 < 0.0.",
    reference=_extreme(np.maximum, signed=False),
    scalar=lambda e, x, y: e.maximum(x, y) if dt.is_float(x.dtype) else e.select(e.gt(x, y), x, y),
    vjp=_choice_vjp("greater_equal"),
    facts={**_EXTREME, "identity": -math.inf, "bounds": value_ranges.maximum},
)


# ---- comparisons


_relation(
    "equal",
    doc="x == y; NaN equals nothing.",
    pairs=complex_pairs.either("equal", "logical_and"),
    numpy=np.equal,
    scalar=lambda e, x, y: e.eq(x, y),
    facts={"commutative": True},
)

_relation(
    "not_equal",
    doc="x != y; True where either is NaN.",
    pairs=complex_pairs.either("not_equal", "logical_or"),
    numpy=np.not_equal,
    scalar=lambda e, x, y: e.ne(x, y),
    facts={"commutative": True},
)

_relation(
    "less",
    doc="x < y.",
    dtypes=type_rules.NUMERIC,
    numpy=np.less,
    scalar=lambda e, x, y: e.lt(x, y),
)

_relation(
    "less_equal",
    doc="x <= y.",
    dtypes=type_rules.NUMERIC,
    numpy=np.less_equal,
    scalar=lambda e, x, y: e.le(x, y),
)

_relation(
    "greater",
    doc="x > y.",
    dtypes=type_rules.NUMERIC,
    numpy=np.greater,
    scalar=lambda e, x, y: e.gt(x, y),
)

_relation(
    "greater_equal",
    doc="x >= y.",
    dtypes=type_rules.NUMERIC,
    numpy=np.greater_equal,
    scalar=lambda e, x, y: e.ge(x, y),
)


# ---- logic and bits


_relation(
    "logical_and",
    doc="x and y.",
    dtypes=type_rules.BOOL,
    numpy=np.logical_and,
    scalar=lambda e, x, y: e.and_(x, y),
    facts={"commutative": True, "associative": True, "idempotent": True, "identity": True, "absorbing": False},
)

_relation(
    "logical_or",
    doc="x or y.",
    dtypes=type_rules.BOOL,
    numpy=np.logical_or,
    scalar=lambda e, x, y: e.or_(x, y),
    facts={"commutative": True, "associative": True, "idempotent": True, "identity": False, "absorbing": True},
)

_relation(
    "logical_xor",
    doc="Whether exactly one of x and y is True.",
    dtypes=type_rules.BOOL,
    numpy=np.logical_xor,
    scalar=lambda e, x, y: e.xor(x, y),
    facts={"commutative": True, "associative": True, "identity": False},
)

_binary(
    "bitwise_and",
    doc="Bits set in both.",
    dtypes=type_rules.BITS,
    numpy=np.bitwise_and,
    scalar=lambda e, x, y: e.and_(x, y),
    vjp=NOT_DIFFERENTIABLE,
    facts={
        "commutative": True,
        "associative": True,
        "idempotent": True,
        "absorbing": 0,
        "bounds": value_ranges.common_bits,
    },
)

_binary(
    "bitwise_or",
    doc="Bits set in either.",
    dtypes=type_rules.BITS,
    numpy=np.bitwise_or,
    scalar=lambda e, x, y: e.or_(x, y),
    vjp=NOT_DIFFERENTIABLE,
    facts={
        "commutative": True,
        "associative": True,
        "idempotent": True,
        "identity": 0,
        "bounds": value_ranges.all_bits,
    },
)

_binary(
    "bitwise_xor",
    doc="Bits set in exactly one.",
    dtypes=type_rules.BITS,
    numpy=np.bitwise_xor,
    scalar=lambda e, x, y: e.xor(x, y),
    vjp=NOT_DIFFERENTIABLE,
    facts={"commutative": True, "associative": True, "identity": 0, "bounds": value_ranges.all_bits},
)


def _within(e: Emit, y: Val) -> Val:
    """Whether a shift amount lies in 0 .. width-1; outside, LLVM's shifts have no value."""
    unsigned = np.dtype(f"u{y.dtype.itemsize}")
    return e.lt(e.convert(y, unsigned), e.const(8 * y.dtype.itemsize, unsigned))


def _shift_left_scalar(e: Emit, x: Val, y: Val) -> Val:
    zero, within = e.const(0, x.dtype), _within(e, y)
    return e.select(within, e.shl(x, e.select(within, y, zero)), zero)


def _shift_right_scalar(e: Emit, x: Val, y: Val) -> Val:
    within, last = _within(e, y), e.const(8 * x.dtype.itemsize - 1, x.dtype)
    if dt.is_signed(x.dtype):
        return e.ashr(x, e.select(within, y, last))
    zero = e.const(0, x.dtype)
    return e.select(within, e.lshr(x, e.select(within, y, zero)), zero)


_binary(
    "bitwise_left_shift",
    doc="x shifted left by y bits; 0 when y is negative or not less than the width.",
    dtypes=dt.INTEGERS,
    reference=reference_arrays.in_compute(np.left_shift),
    scalar=_shift_left_scalar,
    vjp=NOT_DIFFERENTIABLE,
    facts={"right_identity": 0, "exact": True, "bounds": value_ranges.shifted_left},
)

_binary(
    "bitwise_right_shift",
    doc="x shifted right by y bits, keeping its sign; 0 or -1 when y is negative or not less than the width.",
    dtypes=dt.INTEGERS,
    reference=reference_arrays.in_compute(np.right_shift),
    scalar=_shift_right_scalar,
    vjp=NOT_DIFFERENTIABLE,
    facts={"right_identity": 0, "exact": True, "bounds": value_ranges.shifted_right},
)


# ---- choice


def _where_infer(condition: TensorType, x: TensorType, y: TensorType) -> TensorType:
    type_rules.check_dtype("where", condition, frozenset(type_rules.BOOL), "the condition")
    type_rules.check_same("where", x, y)
    type_rules.check_same("where", condition.with_dtype(x.dtype), x)
    return x


def _where_vjp(b: Builder, g: Value, out: Value, condition: Value, x: Value, y: Value) -> tuple[Cotangent, ...]:
    zero = b.full(0, like=g.type)
    return None, lambda: b.where(condition, g, zero), lambda: b.where(condition, zero, g)


def _where_samples(rng: np.random.Generator, dtype: dt.DType) -> list[samples.Sample]:
    return [((rng.random(x.shape) < 0.5, x, y), {}) for (x, y), _ in samples.elementwise(2)(rng, dtype)]


define(
    "where",
    Kind.ELEMENTWISE,
    3,
    doc="x where the condition holds, else y.  The cotangent of what was not taken is exactly 0.",
    infer=_where_infer,
    reference=lambda condition, x, y: np.where(condition, x, y),
    scalar=lambda e, condition, x, y: e.select(condition, x, y),
    pairs=complex_pairs.Moved("where"),
    vjp=_where_vjp,
    samples=_where_samples,
    dtypes=dt.REAL,
    facts={"exact": True},
)


# ---- multiply_add


def _multiply_add_samples(rng: np.random.Generator, dtype: dt.DType) -> list[samples.Sample]:
    pairs = samples.elementwise(2)(rng, dtype)
    return [((x, y, np.roll(y, 1).reshape(y.shape)), attrs) for (x, y), attrs in pairs]


def _multiplied_and_added(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    from hybridflow.compiler.ops import exact_fma  # which importing does without

    return exact_fma.fma(x, y, z).reshape(x.shape)


define(
    "multiply_add",
    Kind.ELEMENTWISE,
    3,
    doc="x * y + z, rounded once: a term of a product, which small ones are made of.",
    infer=type_rules.same_type("multiply_add", dt.FLOATS),
    reference=reference_arrays.in_compute(_multiplied_and_added),
    scalar=lambda e, x, y, z: e.fma(x, y, z),
    vjp=lambda b, g, out, x, y, z: (lambda: b.multiply(g, y), lambda: b.multiply(g, x), g),
    samples=_multiply_add_samples,
    dtypes=dt.FLOATS,
    internal=True,
    facts={"domain": (*_WIDE, _WIDE[0])},
)
