"""Elementwise ops of one input."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.build import Builder, Cotangent, Value
from hybridflow.compiler.ir.types import TensorType
from hybridflow.compiler.ops import complex_pairs, elementary, reference_arrays, samples, type_rules, value_ranges
from hybridflow.compiler.ops.elementary_common import FORMATS, whole
from hybridflow.compiler.ops.emitter_protocol import Emit, Val
from hybridflow.compiler.ops.op_table import NOT_DIFFERENTIABLE, Kind, define
from hybridflow.compiler.ops.type_rules import masked
from hybridflow.errors import ArgumentTypeError


def _unary(
    name: str, *, dtypes: tuple[Any, ...] = dt.FLOATS, domain: tuple[float, float] = (-3.0, 3.0), **fields: Any
) -> None:
    """An op whose result has its input's type.  ``domain`` is an interval on which it is smooth."""
    taken = tuple(dtypes) + (dt.COMPLEX if "pairs" in fields else ())
    fields.setdefault("infer", type_rules.same_type(name, taken))
    fields = reference_arrays.with_reference(fields, reference_arrays.in_compute)
    facts = {"domain": (domain,), **fields.pop("facts", {})}
    fields.setdefault("samples", samples.elementwise(1, domain))
    define(
        name,
        Kind.ELEMENTWISE,
        1,
        dtypes=tuple(dtypes),
        facts=facts,
        **fields,
    )


def _test(name: str, *, dtypes: tuple[Any, ...] = dt.FLOATS, **fields: Any) -> None:
    """An op with a bool result."""
    infer = type_rules.bool_result(name, tuple(dtypes) + (dt.COMPLEX if "pairs" in fields else ()))
    fields = reference_arrays.with_reference(fields, reference_arrays.predicate)
    _unary(name, dtypes=dtypes, infer=infer, vjp=NOT_DIFFERENTIABLE, **fields)


def _exponent_reference(x: np.ndarray) -> np.ndarray:
    return np.where(np.isfinite(x), np.frexp(x)[1], 0).astype(x.dtype)


def exponent_of(e: Emit, x: Val) -> Val:
    """See the op ``exponent``."""
    f = FORMATS[x.dtype]
    size = e.abs(x)
    plain = e.and_(e.gt(size, 0.0), e.lt(size, math.inf))
    subnormal = e.lt(size, f.tiny)
    bits = e.bitcast(e.select(subnormal, e.mul(size, 2.0 ** (f.mantissa + 1)), size), f.integer)
    exponent = e.sub(e.lshr(bits, f.mantissa), f.bias - 1)
    exponent = e.sub(exponent, e.select(subnormal, e.const(f.mantissa + 1, f.integer, x.width), 0))
    return e.select(plain, whole(e, exponent, x.dtype), 0.0)


def _one(b: Builder, x: Value) -> Value:
    return b.full(1, like=x.type)


# ---- sign and rounding


_unary(
    "negative",
    doc="-x; integers wrap.",
    dtypes=type_rules.NUMERIC,
    numpy=np.negative,
    pairs=complex_pairs.componentwise("negative"),
    scalar=lambda e, x: e.neg(x),
    vjp=lambda b, g, out, x: (b.negative(g),),
    facts={"involution": True, "bounds": value_ranges.negative},
)


def _abs_scalar(e: Emit, x: Val) -> Val:
    if dt.is_float(x.dtype):
        return e.abs(x)
    if dt.is_unsigned(x.dtype):
        return x
    return e.select(e.lt(x, e.const(0, x.dtype)), e.neg(x), x)


def _abs_infer(x: TensorType) -> TensorType:
    return x.with_dtype(dt.part_dtype(_numbers_abs(x).dtype))


_numbers_abs = type_rules.same_type("abs", type_rules.NUMERIC + dt.COMPLEX)


def _abs_reference(x: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return reference_arrays.convert(np.abs(reference_arrays.computed(x)), dt.part_dtype(x.dtype))


def _abs_vjp(b: Builder, g: Value, out: Value, x: Value) -> tuple[Cotangent, ...]:
    if dt.is_complex(x.type.dtype):  # the conjugate, see ``conj``
        return (b.multiply(b.convert(g, dtype=x.type.dtype), b.conj(b.sign(x))),)
    return (b.multiply(g, b.sign(x)),)


def _abs_jvp(b: Builder, tangents: tuple[Value, ...], out: Value, x: Value) -> Value:
    if dt.is_complex(x.type.dtype):
        return b.real(b.multiply(tangents[0], b.conj(b.sign(x))))
    return b.multiply(tangents[0], b.sign(x))


_unary(
    "abs",
    doc="""Absolute value, of a complex number its length; the smallest integer wraps to itself.  The derivative at 0 is
    0.""",
    dtypes=type_rules.NUMERIC,
    infer=_abs_infer,
    numpy=np.abs,
    reference=_abs_reference,
    scalar=_abs_scalar,
    pairs=lambda b, x: b.hypot(x.real, x.imag),
    vjp=_abs_vjp,
    jvp=_abs_jvp,
    facts={"idempotent": True, "bounds": value_ranges.absolute},
)


def _sign_scalar(e: Emit, x: Val) -> Val:
    zero, one = e.const(0, x.dtype), e.const(1, x.dtype)
    positive = e.gt(x, zero)
    if dt.is_unsigned(x.dtype):
        return e.select(positive, one, zero)
    result = e.select(positive, one, e.select(e.lt(x, zero), e.const(-1, x.dtype), zero))
    return e.select(e.is_nan(x), x, result) if dt.is_float(x.dtype) else result


def _sign_vjp(b: Builder, g: Value, out: Value, x: Value) -> tuple[Cotangent, ...]:
    """Of complex numbers what turns the direction: that part of the cotangent at a right angle, over the length."""
    if not dt.is_complex(x.type.dtype):
        return (b.full(0, like=x.type),)
    across = b.subtract(g, b.multiply(b.conj(g), b.square(b.conj(out))))
    length = b.convert(b.abs(x), dtype=x.type.dtype)
    return (_unless_zero(b, length, b.divide(across, b.add(length, length))),)


def _unless_zero(b: Builder, length: Value, x: Value) -> Value:
    zero = b.full(0, like=x.type)
    return b.where(b.equal(length, zero), zero, x)


def _sign_jvp(b: Builder, tangents: tuple[Value, ...], out: Value, x: Value) -> Value:
    (t,) = tangents
    if not dt.is_complex(x.type.dtype):
        return b.full(0, like=x.type)
    across = b.subtract(t, b.multiply(b.conj(t), b.square(out)))
    length = b.convert(b.abs(x), dtype=x.type.dtype)
    return _unless_zero(b, length, b.divide(across, b.add(length, length)))


_unary(
    "sign",
    doc="""-1, 0 or 1; NaN for NaN, and 0 for both zeros; x / abs(x) of complex numbers.  The derivative of real ones is
    0.""",
    dtypes=type_rules.NUMERIC,
    reference=reference_arrays.in_compute(np.sign),
    pairs=complex_pairs.sign,
    scalar=_sign_scalar,
    vjp=_sign_vjp,
    jvp=_sign_jvp,
    facts={"idempotent": True, "exact": True},
)

_unary(
    "floor",
    doc="The largest whole number <= x.",
    numpy=np.floor,
    scalar=lambda e, x: e.floor(x),
    vjp=NOT_DIFFERENTIABLE,
    facts={"idempotent": True},
)

_unary(
    "ceil",
    doc="The smallest whole number >= x.",
    numpy=np.ceil,
    scalar=lambda e, x: e.ceil(x),
    vjp=NOT_DIFFERENTIABLE,
    facts={"idempotent": True},
)

_unary(
    "round",
    doc="The nearest whole number, halves to even.",
    numpy=np.rint,
    pairs=complex_pairs.componentwise("round"),
    scalar=lambda e, x: e.rint(x),
    vjp=NOT_DIFFERENTIABLE,
    facts={"idempotent": True},
)

_unary(
    "trunc",
    doc="The whole part of x.",
    numpy=np.trunc,
    scalar=lambda e, x: e.trunc(x),
    vjp=NOT_DIFFERENTIABLE,
    facts={"idempotent": True},
)


# ---- exponentials and logarithms


_unary(
    "exp",
    doc="e to the power x.",
    reference=reference_arrays.in_double(np.exp),
    pairs=complex_pairs.elementary("exp"),
    scalar=lambda e, x: elementary.exp(e, x),
    vjp=lambda b, g, out, x: (b.multiply(g, out),),
)

_unary(
    "expm1",
    doc="exp(x) - 1, exact near 0.",
    reference=reference_arrays.in_double(np.expm1),
    pairs=complex_pairs.elementary("expm1"),
    scalar=lambda e, x: elementary.expm1(e, x),
    # Not out + 1, which is 0 where exp(x) is merely small.
    vjp=lambda b, g, out, x: (b.multiply(g, b.exp(x)),),
)

_unary(
    "log",
    doc="Natural logarithm; NaN below 0.",
    reference=reference_arrays.in_double(np.log),
    pairs=complex_pairs.elementary("log"),
    scalar=lambda e, x: elementary.log(e, x),
    vjp=lambda b, g, out, x: (masked(b, g, b.reciprocal(x)),),
    domain=(0.25, 4.0),
)

_unary(
    "exp2",
    doc="2**x.",
    reference=reference_arrays.in_double(np.exp2),
    scalar=lambda e, x: elementary.exp2(e, x),
    vjp=lambda b, g, out, x: (masked(b, g, b.multiply(out, b.full(math.log(2), like=x.type))),),
)

_unary(
    "cbrt",
    doc="The cube root, with the sign of x.",
    reference=reference_arrays.in_double(np.cbrt),
    scalar=lambda e, x: elementary.cbrt(e, x),
    vjp=lambda b, g, out, x: (masked(b, g, b.reciprocal(b.multiply(b.full(3, like=x.type), b.square(out)))),),
    domain=(0.25, 4.0),
)

_unary(
    "exponent",
    doc="The integer n for which |x| = m 2**n with m in [1/2, 1), as a float; 0 for zeros, infinities and NaN.",
    reference=reference_arrays.in_compute(_exponent_reference),
    scalar=exponent_of,
    vjp=NOT_DIFFERENTIABLE,
    facts={"exact": True},
)

_unary(
    "log1p",
    doc="log(1 + x), exact near 0.",
    reference=reference_arrays.in_double(np.log1p),
    pairs=complex_pairs.elementary("log1p"),
    scalar=lambda e, x: elementary.log1p(e, x),
    vjp=lambda b, g, out, x: (masked(b, g, b.reciprocal(b.add(x, _one(b, x)))),),
    domain=(-0.75, 3.0),
)

_unary(
    "log2",
    doc="Logarithm to base 2.",
    reference=reference_arrays.in_double(np.log2),
    pairs=complex_pairs.elementary("log2"),
    scalar=lambda e, x: elementary.log2(e, x),
    vjp=lambda b, g, out, x: (masked(b, g, b.divide(b.full(1 / math.log(2), like=x.type), x)),),
    domain=(0.25, 4.0),
)

_unary(
    "log10",
    doc="Logarithm to base 10.",
    reference=reference_arrays.in_double(np.log10),
    pairs=complex_pairs.elementary("log10"),
    scalar=lambda e, x: elementary.log10(e, x),
    vjp=lambda b, g, out, x: (masked(b, g, b.divide(b.full(1 / math.log(10), like=x.type), x)),),
    domain=(0.25, 4.0),
)


# ---- powers


_unary(
    "sqrt",
    doc="Square root, correctly rounded; NaN below 0.",
    numpy=np.sqrt,
    pairs=complex_pairs.elementary("sqrt"),
    scalar=lambda e, x: e.sqrt(x),
    vjp=lambda b, g, out, x: (masked(b, g, b.divide(b.full(0.5, like=x.type), out)),),
    domain=(0.25, 4.0),
)

_unary(
    "rsqrt",
    doc="1 / sqrt(x).",
    reference=reference_arrays.in_double(lambda x: 1 / np.sqrt(x)),
    pairs=complex_pairs.elementary("rsqrt"),
    scalar=lambda e, x: elementary.rsqrt(e, x),
    # Divided by x rather than out cubed: a division shields its own derivative from the pole, a product does not.
    vjp=lambda b, g, out, x: (masked(b, g, b.divide(b.multiply(b.full(-0.5, like=x.type), out), x)),),
    domain=(0.25, 4.0),
)


def _as_pow_has_it(e: Emit, x: Val) -> Val:
    """What has the root that pow(x, 0.5) is: the one of -0.0 is 0.0, and that of minus infinity is infinite."""
    infinity = e.const(math.inf, x.dtype)
    return e.select(e.eq(x, e.neg(infinity)), infinity, e.add(x, e.const(0.0, x.dtype)))


def _base_of_root(x: np.ndarray) -> np.ndarray:
    return np.where(x == -np.inf, x.dtype.type(np.inf), x + x.dtype.type(0))


_unary(
    "pow_half",
    doc="pow(x, 0.5): the square root, but 0.0 at -0.0 and infinite at minus infinity.",
    reference=reference_arrays.in_compute(lambda x: np.sqrt(_base_of_root(x))),
    scalar=lambda e, x: e.sqrt(_as_pow_has_it(e, x)),
    vjp=lambda b, g, out, x: (masked(b, g, b.divide(b.full(0.5, like=x.type), out)),),
    domain=(0.25, 4.0),
)

_unary(
    "pow_minus_half",
    doc="pow(x, -0.5): 1 / sqrt(x), but infinite at -0.0 and 0.0 at minus infinity.",
    reference=reference_arrays.in_double(lambda x: 1 / np.sqrt(_base_of_root(x))),
    scalar=lambda e, x: elementary.rsqrt(e, _as_pow_has_it(e, x)),
    vjp=lambda b, g, out, x: (masked(b, g, b.divide(b.multiply(b.full(-0.5, like=x.type), out), x)),),
    domain=(0.25, 4.0),
)

_unary(
    "reciprocal",
    doc="1 / x.",
    pairs=complex_pairs.reciprocal,
    reference=reference_arrays.in_compute(lambda x: np.divide(x.dtype.type(1), x)),
    scalar=lambda e, x: e.div(e.const(1, x.dtype), x),
    vjp=lambda b, g, out, x: (b.negative(masked(b, g, b.divide(out, x))),),
    domain=(0.25, 4.0),
    facts={"exact": True},
)

_unary(
    "square",
    doc="x * x; integers wrap.",
    dtypes=type_rules.NUMERIC,
    numpy=np.square,
    pairs=complex_pairs.square,
    scalar=lambda e, x: e.mul(x, x),
    vjp=lambda b, g, out, x: (b.multiply(g, b.add(x, x)),),
)


# ---- trigonometric and hyperbolic


_unary(
    "sin",
    doc="Sine of an angle in radians.",
    reference=reference_arrays.in_double(np.sin),
    pairs=complex_pairs.elementary("sin"),
    scalar=lambda e, x: elementary.sin(e, x),
    vjp=lambda b, g, out, x: (b.multiply(g, b.cos(x)),),
)

_unary(
    "cos",
    doc="Cosine of an angle in radians.",
    reference=reference_arrays.in_double(np.cos),
    pairs=complex_pairs.elementary("cos"),
    scalar=lambda e, x: elementary.cos(e, x),
    vjp=lambda b, g, out, x: (b.negative(b.multiply(g, b.sin(x))),),
)

_unary(
    "tan",
    doc="Tangent of an angle in radians.",
    reference=reference_arrays.in_double(np.tan),
    pairs=complex_pairs.elementary("tan"),
    scalar=lambda e, x: elementary.tan(e, x),
    vjp=lambda b, g, out, x: (b.multiply(g, b.add(b.square(out), _one(b, x))),),
    domain=(-1.25, 1.25),
)


def _one_minus_square(b: Builder, x: Value) -> Value:
    """1 - x**2, as a product so that nothing cancels near |x| = 1."""
    one = _one(b, x)
    return b.multiply(b.subtract(one, x), b.add(one, x))


_unary(
    "asin",
    doc="Inverse sine; NaN outside [-1, 1].",
    reference=reference_arrays.in_double(np.arcsin),
    pairs=complex_pairs.elementary("asin"),
    scalar=lambda e, x: elementary.asin(e, x),
    vjp=lambda b, g, out, x: (masked(b, g, b.rsqrt(_one_minus_square(b, x))),),
    domain=(-0.75, 0.75),
)

_unary(
    "acos",
    doc="Inverse cosine; NaN outside [-1, 1].",
    reference=reference_arrays.in_double(np.arccos),
    pairs=complex_pairs.elementary("acos"),
    scalar=lambda e, x: elementary.acos(e, x),
    vjp=lambda b, g, out, x: (b.negative(masked(b, g, b.rsqrt(_one_minus_square(b, x)))),),
    domain=(-0.75, 0.75),
)

_unary(
    "atan",
    doc="Inverse tangent.",
    reference=reference_arrays.in_double(np.arctan),
    pairs=complex_pairs.elementary("atan"),
    scalar=lambda e, x: elementary.atan(e, x),
    vjp=lambda b, g, out, x: (b.divide(g, b.add(b.square(x), _one(b, x))),),
)

_unary(
    "sinh",
    doc="Hyperbolic sine.",
    reference=reference_arrays.in_double(np.sinh),
    pairs=complex_pairs.elementary("sinh"),
    scalar=lambda e, x: elementary.sinh(e, x),
    vjp=lambda b, g, out, x: (b.multiply(g, b.cosh(x)),),
)

_unary(
    "cosh",
    doc="Hyperbolic cosine.",
    reference=reference_arrays.in_double(np.cosh),
    pairs=complex_pairs.elementary("cosh"),
    scalar=lambda e, x: elementary.cosh(e, x),
    vjp=lambda b, g, out, x: (b.multiply(g, b.sinh(x)),),
)

_unary(
    "tanh",
    doc="Hyperbolic tangent.",
    reference=reference_arrays.in_double(np.tanh),
    pairs=complex_pairs.elementary("tanh"),
    scalar=lambda e, x: elementary.tanh(e, x),
    vjp=lambda b, g, out, x: (b.multiply(g, b.subtract(_one(b, x), b.square(out))),),
)


def _asinh_vjp(b: Builder, g: Value, out: Value, x: Value) -> tuple[Cotangent, ...]:
    if dt.is_complex(x.type.dtype):
        return (b.divide(g, b.sqrt(b.add(b.square(x), _one(b, x)))),)
    return (b.divide(g, b.hypot(x, _one(b, x))),)


_unary(
    "asinh",
    doc="Inverse hyperbolic sine.",
    reference=reference_arrays.in_double(np.arcsinh),
    pairs=complex_pairs.elementary("asinh"),
    scalar=lambda e, x: elementary.asinh(e, x),
    vjp=_asinh_vjp,
)

_unary(
    "acosh",
    doc="Inverse hyperbolic cosine; NaN below 1.",
    reference=reference_arrays.in_double(np.arccosh),
    pairs=complex_pairs.elementary("acosh"),
    scalar=lambda e, x: elementary.acosh(e, x),
    # Two roots: x**2 - 1 would overflow for large x and cancel near 1.
    vjp=lambda b, g, out, x: (
        masked(b, g, b.divide(b.rsqrt(b.add(x, _one(b, x))), b.sqrt(b.subtract(x, _one(b, x))))),
    ),
    domain=(1.25, 4.0),
)

_unary(
    "atanh",
    doc="Inverse hyperbolic tangent; NaN outside [-1, 1].",
    reference=reference_arrays.in_double(np.arctanh),
    pairs=complex_pairs.elementary("atanh"),
    scalar=lambda e, x: elementary.atanh(e, x),
    vjp=lambda b, g, out, x: (masked(b, g, b.reciprocal(_one_minus_square(b, x))),),
    domain=(-0.75, 0.75),
)


# ---- other smooth functions


def _erf(x: np.ndarray) -> np.ndarray:
    return np.asarray(np.frompyfunc(math.erf, 1, 1)(x), np.float64)


_unary(
    "erf",
    doc="The error function, 2/sqrt(pi) times the integral of exp(-t**2) from 0 to x.",
    reference=reference_arrays.in_double(_erf),
    scalar=lambda e, x: elementary.erf(e, x),
    vjp=lambda b, g, out, x: (
        b.multiply(g, b.multiply(b.full(2 / math.sqrt(math.pi), like=x.type), b.exp(b.negative(b.square(x))))),
    ),
)

_unary(
    "sigmoid",
    doc="The logistic function 1 / (1 + exp(-x)).",
    reference=reference_arrays.in_double(lambda x: 1 / (1 + np.exp(-x))),
    scalar=lambda e, x: elementary.sigmoid(e, x),
    vjp=lambda b, g, out, x: (b.multiply(g, b.multiply(out, b.subtract(_one(b, x), out))),),
)


# ---- tests and bits


_test(
    "isnan",
    doc="Whether x is NaN.",
    numpy=np.isnan,
    pairs=complex_pairs.either("isnan", "logical_or"),
    scalar=lambda e, x: e.is_nan(x),
)

_test(
    "isinf",
    doc="Whether x is an infinity.",
    numpy=np.isinf,
    pairs=complex_pairs.either("isinf", "logical_or"),
    scalar=lambda e, x: e.eq(e.abs(x), e.const(math.inf, x.dtype)),
)

_test(
    "isfinite",
    doc="Whether x is neither infinite nor NaN.",
    numpy=np.isfinite,
    pairs=complex_pairs.either("isfinite", "logical_and"),
    scalar=lambda e, x: e.lt(e.abs(x), e.const(math.inf, x.dtype)),
)

_test(
    "logical_not",
    doc="not x.",
    dtypes=type_rules.BOOL,
    numpy=np.logical_not,
    scalar=lambda e, x: e.not_(x),
)

_unary(
    "bitwise_invert",
    doc="All bits of x flipped.",
    dtypes=type_rules.BITS,
    numpy=np.invert,
    scalar=lambda e, x: e.not_(x),
    vjp=NOT_DIFFERENTIABLE,
    facts={"involution": True},
)


# ---- complex numbers and their parts

# Cotangents of complex values are such that Re(g dz) is what they add: derivatives of what is differentiable as a
# complex function are products, as those of real numbers are.


def _part_infer(name: str) -> Callable[..., Any]:
    same = type_rules.same_type(name, dt.COMPLEX)
    return lambda x: x.with_dtype(dt.part_dtype(same(x).dtype))


def _complex_infer(x: TensorType, y: TensorType) -> TensorType:
    same = type_rules.same_type("complex", (dt.float32, dt.float64))(x, y)
    return same.with_dtype(dt.complex_dtype(same.dtype))


def _complex_reference(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    out = np.empty(x.shape, dt.complex_dtype(x.dtype))
    out.real, out.imag = x, y
    return out


def _complex_jvp(b: Builder, tangents: Iterable[object], out: Value, x: Value, y: Value) -> Any:
    return b.complex(*[b.full(0, like=x.type) if t is None else t for t in tangents])


def _part(name: str, doc: str, **fields: object) -> None:
    define(
        name,
        Kind.ELEMENTWISE,
        1,
        doc=doc,
        dtypes=dt.COMPLEX,
        samples=samples.elementwise(1),
        facts={"exact": True, "domain": ((-3.0, 3.0),)},
        **fields,
    )


_part(
    "real",
    "The real part.",
    infer=_part_infer("real"),
    reference=lambda x: np.ascontiguousarray(x.real).reshape(x.shape),
    scalar=lambda e, x: e.parts(x)[0],
    pairs=lambda b, x: x.real,
    vjp=lambda b, g, out, x: (b.convert(g, dtype=x.type.dtype),),
    jvp=lambda b, tangents, out, x: b.real(tangents[0]),
)

_part(
    "imag",
    "The imaginary part.",
    infer=_part_infer("imag"),
    reference=lambda x: np.ascontiguousarray(x.imag).reshape(x.shape),
    scalar=lambda e, x: e.parts(x)[1],
    pairs=lambda b, x: x.imag,
    vjp=lambda b, g, out, x: (b.complex(b.full(0, like=g.type), b.negative(g)),),
    jvp=lambda b, tangents, out, x: b.imag(tangents[0]),
)

_part(
    "conj",
    "The complex conjugate.",
    infer=type_rules.same_type("conj", dt.COMPLEX),
    reference=np.conj,
    scalar=lambda e, x: e.joined_parts(e.parts(x)[0], e.neg(e.parts(x)[1])),
    pairs=lambda b, x: complex_pairs.Pair(x.real, b.negative(x.imag)),
    vjp=lambda b, g, out, x: (b.conj(g),),
)

define(
    "complex",
    Kind.ELEMENTWISE,
    2,
    doc="The complex numbers of real and imaginary parts.",
    infer=_complex_infer,
    reference=_complex_reference,
    scalar=lambda e, x, y: e.joined_parts(x, y),
    pairs=lambda b, x, y: complex_pairs.Pair(x, y),
    vjp=lambda b, g, out, x, y: (lambda: b.real(g), lambda: b.negative(b.imag(g))),
    jvp=_complex_jvp,
    samples=samples.elementwise(2),
    dtypes=(dt.float32, dt.float64),
    facts={"exact": True},
)


# ---- conversion, and a mark for differentiation


def _convert_canon(types: tuple[TensorType, ...], attrs: dict[str, Any]) -> dict[str, Any]:
    try:
        dtype = np.dtype(attrs["dtype"])
    except TypeError:
        dtype = None
    if dtype not in dt.DEF:
        names = ", ".join(map(str, dt.ALL))
        raise ArgumentTypeError(
            "convert", f"{attrs['dtype']!r} is not a dtype that hybridflow has. Expected one of {names}."
        )
    return {"dtype": dtype}


def _convert_vjp(b: Builder, g: Value, out: Value, x: Value, dtype: dt.DType) -> tuple[Cotangent, ...]:
    return (b.convert(g, dtype=x.type.dtype) if dt.is_inexact(x.type.dtype) and dt.is_inexact(dtype) else None,)


_unary(
    "convert",
    doc="""x as another dtype.  Floats become integers by truncation, saturating, NaN as 0; integers wrap;
    everything but zero is True; complex numbers become real ones by their real part; bfloat16 and, from integers,
    float16 are reached through float32.""",
    dtypes=dt.REAL,
    canon=_convert_canon,
    infer=lambda x, dtype: x.with_dtype(dtype),
    pairs=complex_pairs.convert,
    reference=reference_arrays.convert,
    scalar=lambda e, x, dtype: e.convert(x, dtype),
    vjp=_convert_vjp,
    jvp=lambda b, tangents, out, x, dtype: b.convert(tangents[0], dtype=dtype),
    samples=samples.with_attrs(*({"dtype": dtype} for dtype in dt.REAL)),
    facts={"exact": True, "bounds": lambda result, x, dtype: value_ranges.converted(x, dtype)},
)

_unary(
    "stop_gradient",
    doc="x itself, which differentiation takes for a constant.",
    dtypes=dt.REAL,
    pairs=complex_pairs.Moved("stop_gradient"),
    reference=lambda x: x,
    scalar=lambda e, x: x,
    vjp=NOT_DIFFERENTIABLE,
    facts={"idempotent": True, "exact": True},
)

_unary(
    "transfer",
    doc="""x on a device that is named.  Programs are cut there (``compiler.parts``); within one it is x.""",
    dtypes=dt.REAL,
    pairs=complex_pairs.Moved("transfer"),
    infer=lambda x, device: x,
    reference=lambda x, device: x,
    scalar=lambda e, x, device: x,
    vjp=lambda b, g, out, x, device: (b.transfer_back(g, x),),
    jvp=lambda b, tangents, out, x, device: b.transfer(tangents[0], device=device),
    samples=samples.with_attrs({"device": "cpu"}),
    facts={"exact": True},
)
