"""Elementwise ops of ``hf.special``: the gamma and the error function's families, Bessel functions, incomplete ones."""

from __future__ import annotations

import importlib
import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.build import Builder, Cotangent, Value
from hybridflow.compiler.ops import (
    reference_arrays,
    samples,
    type_rules,
)
from hybridflow.compiler.ops.emitter_protocol import Emit, Val
from hybridflow.compiler.ops.op_table import Kind, define
from hybridflow.compiler.ops.type_rules import masked
from hybridflow.errors import GradientError

# Where no method takes long, and no reference either
_EDGES = (0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 2.0, 3.5, np.nan, np.inf, -np.inf)


def _special(name: str, scalar: Callable[..., Any], *, domain: Any, **fields: Any) -> None:
    """An op on floats of one type.  ``domain``: an interval per input, smooth there."""
    several = isinstance(domain[0], tuple)
    arity = len(domain) if several else 1
    fields.setdefault("samples", _samples(domain) if several else samples.elementwise(1, domain))
    define(
        name,
        Kind.ELEMENTWISE,
        arity,
        dtypes=tuple(dt.FLOATS),
        infer=type_rules.same_type(name, dt.FLOATS),
        reference=reference_arrays.in_double(_reference(name)),
        scalar=scalar,
        facts={"domain": domain if several else (domain,)},
        **fields,
    )


def _rule(module: str, name: str) -> Callable[..., Any]:
    """The scalar rule of that name in ``special_<module>``, which is loaded when code is made of it."""

    def scalar(e: Emit, *operands: Val) -> Val:
        rules_of_family = importlib.import_module(f"{__package__}.special_{module}")
        value: Val = getattr(rules_of_family, name)(e, *operands)
        return value

    return scalar


def _reference(name: str) -> Callable[..., np.ndarray]:
    """The reference, which is loaded when somebody asks: programs do without."""

    def reference(*operands: np.ndarray) -> np.ndarray:
        from hybridflow.compiler.ops import special_references

        return special_references.of_arrays(name, *operands)

    return reference


def _samples(domain: tuple[tuple[float, float], ...]) -> samples.Samples:
    """As ``samples.elementwise``, with fewer edges: of three inputs there are too many combinations."""

    def cases(rng: np.random.Generator, dtype: np.dtype[Any]) -> list[samples.Sample]:
        result: list[samples.Sample] = [
            (tuple(samples.values(rng, dtype, shape, one) for one in domain), {}) for shape in samples.SHAPES
        ]
        edges = np.array(_EDGES).astype(dtype)
        columns = zip(*itertools.product(edges, repeat=len(domain)))
        result.append((tuple(np.array(column, dtype) for column in columns), {}))
        return result

    return cases


def _refused(name: str, parameter: str) -> Callable[[], Any]:
    """A derivative that nobody has a closed form of."""

    def refuse() -> Any:
        raise GradientError(
            name, f"there is no derivative to {parameter}. Put hf.stop_gradient around it if it is a constant."
        )

    return refuse


def _number(b: Builder, value: float, x: Value) -> Value:
    return b.full(value, like=x.type)


# ---- gamma

_special(
    "log_gamma",
    _rule("gamma", "log_gamma"),
    doc="The logarithm of the absolute value of the gamma function.",
    vjp=lambda b, g, out, x: (masked(b, g, b.digamma(x)),),
    domain=(0.25, 4.0),
)

_special(
    "gamma",
    _rule("gamma", "gamma"),
    doc="The gamma function; NaN at negative integers.",
    vjp=lambda b, g, out, x: (masked(b, g, b.multiply(out, b.digamma(x))),),
    domain=(0.25, 4.0),
)

_special(
    "digamma",
    _rule("gamma", "digamma"),
    doc="The derivative of the logarithm of the gamma function.",
    vjp=lambda b, g, out, x: (masked(b, g, b.trigamma(x)),),
    domain=(0.25, 4.0),
)


def _trigamma_vjp(b: Builder, g: Value, out: Value, x: Value) -> tuple[Cotangent, ...]:
    # -2 zeta(3, x); a negative x is reflected.
    zero, one = _number(b, 0.0, x), _number(b, 1.0, x)
    negative = b.less(x, zero)
    positive = b.where(negative, b.subtract(one, x), x)
    result = b.multiply(_number(b, -2.0, x), b.zeta(_number(b, 3.0, x), positive))
    angle = b.multiply(_number(b, math.pi, x), b.where(negative, b.subtract(x, b.round(x)), _number(b, 0.25, x)))
    sine = b.sin(angle)
    reflection = b.divide(b.multiply(_number(b, -2 * math.pi**3, x), b.cos(angle)), b.multiply(sine, b.square(sine)))
    return (masked(b, g, b.add(result, b.where(negative, reflection, zero))),)


_special(
    "trigamma",
    _rule("gamma", "trigamma"),
    doc="The second derivative of the logarithm of the gamma function.",
    vjp=_trigamma_vjp,
    domain=(0.25, 4.0),
)

_special(
    "zeta",
    _rule("gamma", "zeta"),
    doc="Hurwitz's zeta function of s and q, the sum of (q + k)**-s over k from 0 on, for s > 1 and q > 0.",
    vjp=lambda b, g, out, s, q: (
        _refused("zeta", "its exponent"),
        lambda: masked(b, g, b.multiply(b.negative(s), b.zeta(b.add(s, _number(b, 1.0, s)), q))),
    ),
    domain=((1.5, 4.0), (0.25, 4.0)),
)


# ---- error


def _gauss(b: Builder, x: Value, sign: float) -> Value:
    """exp(sign * x**2)"""
    return b.exp(b.multiply(_number(b, sign, x), b.square(x)))


_special(
    "erfc",
    _rule("error", "erfc"),
    doc="1 - erf(x), exact where that would cancel.",
    vjp=lambda b, g, out, x: (b.multiply(g, b.multiply(_number(b, -2 / math.sqrt(math.pi), x), _gauss(b, x, -1.0))),),
    domain=(-3.0, 3.0),
)

_special(
    "erfcx",
    _rule("error", "erfcx"),
    doc="exp(x**2) erfc(x), which neither vanishes nor overflows for positive x.",
    vjp=lambda b, g, out, x: (
        masked(b, g, b.subtract(b.multiply(b.add(x, x), out), _number(b, 2 / math.sqrt(math.pi), x))),
    ),
    domain=(-2.0, 3.0),
)

_special(
    "erfinv",
    _rule("error", "erfinv"),
    doc="The inverse of erf; NaN outside [-1, 1].",
    vjp=lambda b, g, out, x: (masked(b, g, b.multiply(_number(b, math.sqrt(math.pi) / 2, x), _gauss(b, out, 1.0))),),
    domain=(-0.9, 0.9),
)

_special(
    "erfcinv",
    _rule("error", "erfcinv"),
    doc="The inverse of erfc; NaN outside [0, 2].",
    vjp=lambda b, g, out, x: (masked(b, g, b.multiply(_number(b, -math.sqrt(math.pi) / 2, x), _gauss(b, out, 1.0))),),
    domain=(0.1, 1.9),
)


# ---- Bessel


def _over(b: Builder, y: Value, x: Value, at_zero: float) -> Value:
    """y / x, and the limit where x is 0."""
    there = b.not_equal(x, _number(b, 0.0, x))
    return b.where(there, b.divide(y, b.where(there, x, _number(b, 1.0, x))), _number(b, at_zero, x))


_special(
    "bessel_j0",
    _rule("bessel", "j0"),
    doc="The Bessel function of the first kind, order 0.",
    vjp=lambda b, g, out, x: (b.negative(b.multiply(g, b.bessel_j1(x))),),
    domain=(-6.0, 6.0),
)

_special(
    "bessel_j1",
    _rule("bessel", "j1"),
    doc="The Bessel function of the first kind, order 1.",
    vjp=lambda b, g, out, x: (b.multiply(g, b.subtract(b.bessel_j0(x), _over(b, out, x, 0.5))),),
    domain=(-6.0, 6.0),
)

_special(
    "bessel_i0e",
    _rule("bessel", "i0e"),
    doc="exp(-|x|) times the modified Bessel function of the first kind, order 0.",
    vjp=lambda b, g, out, x: (b.multiply(g, b.subtract(b.bessel_i1e(x), b.multiply(b.sign(x), out))),),
    domain=(0.25, 6.0),
)

_special(
    "bessel_i1e",
    _rule("bessel", "i1e"),
    doc="exp(-|x|) times the modified Bessel function of the first kind, order 1.",
    vjp=lambda b, g, out, x: (
        b.multiply(g, b.subtract(b.subtract(b.bessel_i0e(x), _over(b, out, x, 0.5)), b.multiply(b.sign(x), out))),
    ),
    domain=(0.25, 6.0),
)

_special(
    "bessel_k0e",
    _rule("bessel", "k0e"),
    doc="exp(x) times the modified Bessel function of the second kind, order 0; NaN below 0.",
    vjp=lambda b, g, out, x: (masked(b, g, b.subtract(out, b.bessel_k1e(x))),),
    domain=(0.25, 6.0),
)

_special(
    "bessel_k1e",
    _rule("bessel", "k1e"),
    doc="exp(x) times the modified Bessel function of the second kind, order 1; NaN below 0.",
    vjp=lambda b, g, out, x: (masked(b, g, b.subtract(b.subtract(out, b.divide(out, x)), b.bessel_k0e(x))),),
    domain=(0.25, 6.0),
)


# ---- integrals, and an inverse

_special(
    "expi",
    _rule("integrals", "expi"),
    doc="The exponential integral, from minus infinity to x of exp(t) / t.",
    vjp=lambda b, g, out, x: (masked(b, g, b.divide(b.exp(x), x)),),
    domain=(0.5, 4.0),
)


def _spence_vjp(b: Builder, g: Value, out: Value, x: Value) -> tuple[Cotangent, ...]:
    # log(x) / (1 - x); near 1 by its series, which has derivatives there: -(1 + r / 2 + r**2 / 3 + ...)
    rest = b.subtract(_number(b, 1.0, x), x)
    near = b.less(b.abs(rest), _number(b, 0.01, x))
    inside, outside = b.where(near, rest, _number(b, 0.0, x)), b.where(near, _number(b, 0.5, x), rest)
    series = _number(b, -1 / 9, x)
    for k in range(8, 0, -1):
        series = b.subtract(b.multiply(series, inside), _number(b, 1 / k, x))
    quotient = b.divide(b.log1p(b.negative(outside)), outside)
    return (masked(b, g, b.where(near, series, quotient)),)


_special(
    "spence",
    _rule("integrals", "spence"),
    doc="The dilogarithm of 1 - x: the integral from 1 to x of log(t) / (1 - t); NaN below 0.",
    vjp=_spence_vjp,
    domain=(0.1, 0.9),
)


def _lambertw_vjp(b: Builder, g: Value, out: Value, x: Value) -> tuple[Cotangent, ...]:
    return (masked(b, g, b.divide(b.exp(b.negative(out)), b.add(out, _number(b, 1.0, x)))),)


_special(
    "lambertw",
    _rule("integrals", "lambertw"),
    doc="The principal solution w of w exp(w) = x; NaN below -1 / e.",
    vjp=_lambertw_vjp,
    domain=(-0.25, 4.0),
)


# ---- incomplete functions


def _gamma_density(b: Builder, a: Value, x: Value) -> Value:
    """x**(a - 1) exp(-x) / gamma(a)"""
    one = _number(b, 1.0, a)
    logarithm = b.multiply(b.subtract(a, one), b.log(x))
    return b.exp(b.subtract(b.subtract(logarithm, x), b.log_gamma(a)))


_special(
    "gammainc",
    _rule("incomplete", "gammainc"),
    doc="The regularized lower incomplete gamma function of a and x.",
    vjp=lambda b, g, out, a, x: (
        lambda: masked(b, g, b.gammainc_da(a, x)),
        lambda: masked(b, g, _gamma_density(b, a, x)),
    ),
    domain=((0.25, 4.0), (0.25, 4.0)),
)

_special(
    "gammaincc",
    _rule("incomplete", "gammaincc"),
    doc="The regularized upper incomplete gamma function of a and x.",
    vjp=lambda b, g, out, a, x: (
        lambda: b.negative(masked(b, g, b.gammainc_da(a, x))),
        lambda: b.negative(masked(b, g, _gamma_density(b, a, x))),
    ),
    domain=((0.25, 4.0), (0.25, 4.0)),
)


def _gammainc_da_vjp(b: Builder, g: Value, out: Value, a: Value, x: Value) -> tuple[Cotangent, ...]:
    def for_x() -> Any:
        # The density, differentiated: log(x) - digamma(a) times itself
        return masked(b, g, b.multiply(_gamma_density(b, a, x), b.subtract(b.log(x), b.digamma(a))))

    return _refused("gammainc", "its parameter a second time"), for_x


_special(
    "gammainc_da",
    _rule("incomplete", "gammainc_da"),
    doc="The derivative of gammainc to a.",
    vjp=_gammainc_da_vjp,
    domain=((0.25, 4.0), (0.25, 4.0)),
)


def _beta_density(b: Builder, p: Value, q: Value, x: Value) -> Value:
    """x**(p - 1) (1 - x)**(q - 1) / beta(p, q)"""
    one = _number(b, 1.0, p)
    log_beta = b.subtract(b.add(b.log_gamma(p), b.log_gamma(q)), b.log_gamma(b.add(p, q)))
    powers = b.add(b.multiply(b.subtract(p, one), b.log(x)), b.multiply(b.subtract(q, one), b.log1p(b.negative(x))))
    return b.exp(b.subtract(powers, log_beta))


def _betainc_vjp(b: Builder, g: Value, out: Value, p: Value, q: Value, x: Value) -> tuple[Cotangent, ...]:
    # betainc(p, q, x) = 1 - betainc(q, p, 1 - x)
    return (
        lambda: masked(b, g, b.betainc_da(p, q, x)),
        lambda: b.negative(masked(b, g, b.betainc_da(q, p, b.subtract(_number(b, 1.0, x), x)))),
        lambda: masked(b, g, _beta_density(b, p, q, x)),
    )


_special(
    "betainc",
    _rule("incomplete", "betainc"),
    doc="The regularized incomplete beta function of two parameters and a number from 0 to 1.",
    vjp=_betainc_vjp,
    domain=((0.5, 4.0), (0.5, 4.0), (0.1, 0.9)),
)


def _betainc_da_vjp(b: Builder, g: Value, out: Value, p: Value, q: Value, x: Value) -> tuple[Cotangent, ...]:
    def for_x() -> Any:
        slope = b.subtract(b.add(b.log(x), b.digamma(b.add(p, q))), b.digamma(p))
        return masked(b, g, b.multiply(_beta_density(b, p, q, x), slope))

    again = _refused("betainc", "its parameters a second time")
    return again, again, for_x


_special(
    "betainc_da",
    _rule("incomplete", "betainc_da"),
    doc="The derivative of betainc to its first parameter.",
    vjp=_betainc_da_vjp,
    domain=((0.5, 4.0), (0.5, 4.0), (0.1, 0.9)),
)
