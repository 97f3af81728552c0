"""Special functions.

They are computed in float64 and rounded once, whatever float comes in.  Bounds of errors are stated in units in the
last place (ulp) of float64; results in float32 are within 0.51 ulp wherever the bound is relative.
"""

from __future__ import annotations

import math

import numpy as np

from hybridflow.array.elementwise import (
    abs,
    exp,
    expm1,
    floor,
    isnan,
    log,
    log1p,
    logaddexp,
    logical_and,
    logical_not,
    logical_or,
    round,
    sigmoid,
    sin,
    tan,
    where,
)
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ops import TABLE
from hybridflow.core.promotion import default_float, result_dtype
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import ArrayLike
from hybridflow.eager.dispatch import apply
from hybridflow.eager.operands import broadcast_all, float_operand, strong, weak_cast
from hybridflow.eager.public_op import operation
from hybridflow.errors import ArgumentError


def _floats(stage: str, *operands: object) -> list[Tensor]:
    """The operands in one float dtype and shape; integers and bools become float32."""
    tensors = [strong(x, stage) for x in operands]
    dtype = result_dtype(stage, tuple(tensors))
    dtype = dtype if dtypes.is_float(dtype) else default_float
    return broadcast_all(stage, [weak_cast(x, dtype, stage) for x in tensors])


def _gamma_sign(x: Tensor) -> Tensor:
    """The sign of gamma: -1 between a negative odd integer and the next."""
    half = 0.5 * floor(x)
    return where(logical_and(x < 0.0, floor(half) != half), -1.0, 1.0)


def _stirling(x: Tensor) -> Tensor:
    """``gammaln(x)`` less its leading terms, for large ``x``."""
    square = 1.0 / (x * x)
    series = 1 / 12 + square * (-1 / 360 + square * (1 / 1260 + square * (-1 / 1680 + square * (1 / 1188))))
    return series / x


@operation
def gamma(x: ArrayLike, /) -> Tensor:
    """The gamma function; NaN at negative integers, infinite at 0.

    Errors are below 5 ulp.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A tensor of the shape of ``x``, in its dtype if that is a float, else in float32.

    >>> hf.special.gamma([0.5, 5.0, -0.5])
    <Tensor f32[3] cpu> [ 1.7724539 24.        -3.5449078]
    """
    return apply(TABLE["gamma"], float_operand(x, "gamma"))


@operation
def gammaln(x: ArrayLike, /) -> Tensor:
    """The logarithm of the absolute value of the gamma function; infinite at 0 and negative integers.

    Errors are below 6 ulp; for x < 0 relative to the larger part of the reflection.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A tensor of the shape of ``x``, in its dtype if that is a float, else in float32.

    >>> hf.special.gammaln([0.5, 5.0, 100.0])
    <Tensor f32[3] cpu> [  0.5723649   3.1780539 359.13422  ]
    """
    return apply(TABLE["log_gamma"], float_operand(x, "gammaln"))


@operation
def digamma(x: ArrayLike, /) -> Tensor:
    """The digamma function: the derivative of ``gammaln``; NaN at negative integers.

    Errors are below 5 ulp; for x < 0 relative to the larger part of the reflection.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A tensor of the shape of ``x``, in its dtype if that is a float, else in float32.

    >>> hf.special.digamma([0.5, 1.0, 10.0])
    <Tensor f32[3] cpu> [-1.96351   -0.5772157  2.2517526]
    """
    return apply(TABLE["digamma"], float_operand(x, "digamma"))


@operation
def erfc(x: ArrayLike, /) -> Tensor:
    """The complementary error function ``1 - erf(x)``, exact where that would cancel.

    Errors are below 4 ulp.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A tensor of the shape of ``x``, in its dtype if that is a float, else in float32.

    >>> hf.special.erfc([-1.0, 0.0, 5.0])
    <Tensor f32[3] cpu> [1.8427008e+00 1.0000000e+00 1.5374598e-12]
    """
    return apply(TABLE["erfc"], float_operand(x, "erfc"))


@operation
def erfcx(x: ArrayLike, /) -> Tensor:
    """The scaled complementary error function ``exp(x**2) erfc(x)``.

    Errors are below 6 ulp.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A tensor of the shape of ``x``, in its dtype if that is a float, else in float32.

    >>> hf.special.erfcx([0.0, 1.0, 100.0])
    <Tensor f32[3] cpu> [1.         0.42758358 0.00564161]
    """
    return apply(TABLE["erfcx"], float_operand(x, "erfcx"))


@operation
def erfinv(x: ArrayLike, /) -> Tensor:
    """The inverse of ``erf``; infinite at -1 and 1, NaN beyond.

    Errors are below 4 ulp.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A tensor of the shape of ``x``, in its dtype if that is a float, else in float32.

    >>> hf.special.erfinv([-0.5, 0.0, 0.9])
    <Tensor f32[3] cpu> [-0.47693628  0.          1.1630871 ]
    """
    return apply(TABLE["erfinv"], float_operand(x, "erfinv"))


@operation
def erfcinv(x: ArrayLike, /) -> Tensor:
    """The inverse of ``erfc``; infinite at 0 and 2, NaN beyond.

    Errors are below 4 ulp.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A tensor of the shape of ``x``, in its dtype if that is a float, else in float32.

    >>> hf.special.erfcinv([0.1, 1.0, 1.9])
    <Tensor f32[3] cpu> [ 1.1630871  0.        -1.1630871]
    """
    return apply(TABLE["erfcinv"], float_operand(x, "erfcinv"))


@operation
def i0e(x: ArrayLike, /) -> Tensor:
    """The exponentially scaled modified Bessel function ``exp(-|x|) I0(x)``.

    Errors are below 5 ulp.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A tensor of the shape of ``x``, in its dtype if that is a float, else in float32.

    >>> hf.special.i0e([0.0, 1.0, 100.0])
    <Tensor f32[3] cpu> [1.         0.4657596  0.03994438]
    """
    return apply(TABLE["bessel_i0e"], float_operand(x, "i0e"))


@operation
def i1e(x: ArrayLike, /) -> Tensor:
    """The exponentially scaled modified Bessel function ``exp(-|x|) I1(x)``.

    Errors are below 5 ulp.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A tensor of the shape of ``x``, in its dtype if that is a float, else in float32.

    >>> hf.special.i1e([0.0, 1.0, 100.0])
    <Tensor f32[3] cpu> [0.         0.20791042 0.03974415]
    """
    return apply(TABLE["bessel_i1e"], float_operand(x, "i1e"))


@operation
def j0(x: ArrayLike, /) -> Tensor:
    """The Bessel function of the first kind of order 0.

    Errors are below 6 ulp of 1 near 0, of sqrt(2 / (pi x)) far away.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A tensor of the shape of ``x``, in its dtype if that is a float, else in float32.

    >>> hf.special.j0([0.0, 1.0, 10.0])
    <Tensor f32[3] cpu> [ 1.          0.7651977  -0.24593577]
    """
    return apply(TABLE["bessel_j0"], float_operand(x, "j0"))


@operation
def j1(x: ArrayLike, /) -> Tensor:
    """The Bessel function of the first kind of order 1.

    Errors are below 6 ulp of 1 near 0, of sqrt(2 / (pi x)) far away.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A tensor of the shape of ``x``, in its dtype if that is a float, else in float32.

    >>> hf.special.j1([0.0, 1.0, 10.0])
    <Tensor f32[3] cpu> [0.         0.44005057 0.04347274]
    """
    return apply(TABLE["bessel_j1"], float_operand(x, "j1"))


@operation
def k0e(x: ArrayLike, /) -> Tensor:
    """The exponentially scaled modified Bessel function ``exp(x) K0(x)``; infinite at 0, NaN below.

    Errors are below 10 ulp.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A tensor of the shape of ``x``, in its dtype if that is a float, else in float32.

    >>> hf.special.k0e([0.1, 1.0, 100.0])
    <Tensor f32[3] cpu> [2.682326   1.1444631  0.12517563]
    """
    return apply(TABLE["bessel_k0e"], float_operand(x, "k0e"))


@operation
def k1e(x: ArrayLike, /) -> Tensor:
    """The exponentially scaled modified Bessel function ``exp(x) K1(x)``; infinite at 0, NaN below.

    Errors are below 10 ulp.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A tensor of the shape of ``x``, in its dtype if that is a float, else in float32.

    >>> hf.special.k1e([0.1, 1.0, 100.0])
    <Tensor f32[3] cpu> [10.8901825   1.6361535   0.12579995]
    """
    return apply(TABLE["bessel_k1e"], float_operand(x, "k1e"))


@operation
def expi(x: ArrayLike, /) -> Tensor:
    """The exponential integral: the principal value of ``exp(t) / t`` from minus infinity to ``x``.

    Errors are below 12 ulp; near the zero 0.3725 of 1.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A tensor of the shape of ``x``, in its dtype if that is a float, else in float32.

    >>> hf.special.expi([-1.0, 0.5, 2.0])
    <Tensor f32[3] cpu> [-0.21938394  0.4542199   4.954234  ]
    """
    return apply(TABLE["expi"], float_operand(x, "expi"))


@operation
def spence(x: ArrayLike, /) -> Tensor:
    """Spence's function: the dilogarithm of ``1 - x``; NaN below 0.

    Errors are below 6 ulp.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A tensor of the shape of ``x``, in its dtype if that is a float, else in float32.

    >>> hf.special.spence([0.0, 0.5, 2.0])
    <Tensor f32[3] cpu> [ 1.644934   0.5822405 -0.822467 ]
    """
    return apply(TABLE["spence"], float_operand(x, "spence"))


@operation
def lambertw(x: ArrayLike, /) -> Tensor:
    """Lambert's function: the real ``w >= -1`` with ``w exp(w) = x``; NaN below ``-1 / e``.

    Errors are below 4 ulp; near -1 / e as the argument's own rounding has it.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A tensor of the shape of ``x``, in its dtype if that is a float, else in float32.

    >>> hf.special.lambertw([0.0, 1.0, 10.0])
    <Tensor f32[3] cpu> [0.         0.56714326 1.745528  ]
    """
    return apply(TABLE["lambertw"], float_operand(x, "lambertw"))


@operation
def zeta(x: ArrayLike, q: ArrayLike, /) -> Tensor:
    """Hurwitz's zeta function: the sum of ``(q + k)**-x`` over ``k`` from 0 on, for ``x > 1`` and ``q > 0``.

    Errors are below 10 ulp.

    Args:
        x: the exponent.
        q: where the series begins; 1 is Riemann's zeta function; the shapes broadcast, the dtypes are promoted.

    Returns:
        A float tensor of the common shape; float32 where all operands are integers or bools.

    Raises:
        ShapeError: if the shapes do not broadcast.

    >>> hf.special.zeta([2.0, 4.0], [1.0, 0.5])
    <Tensor f32[2] cpu> [ 1.644934 16.234848]
    """
    return apply(TABLE["zeta"], *_floats("zeta", x, q))


@operation
def gammainc(a: ArrayLike, x: ArrayLike, /) -> Tensor:
    """The regularized lower incomplete gamma function: the distribution function of the gamma distribution.

    Relative errors are below 4e-13 for parameters up to 1e6. NaN where 200 000 terms are too few, from about 1e9 on.

    Args:
        a: the shape parameter, positive.
        x: the end of the integral, not negative; the shapes broadcast, the dtypes are promoted.

    Returns:
        A float tensor of the common shape; float32 where all operands are integers or bools.

    Raises:
        ShapeError: if the shapes do not broadcast.

    >>> hf.special.gammainc([0.5, 3.0], [1.0, 2.0])
    <Tensor f32[2] cpu> [0.8427008  0.32332358]
    """
    return apply(TABLE["gammainc"], *_floats("gammainc", a, x))


@operation
def gammaincc(a: ArrayLike, x: ArrayLike, /) -> Tensor:
    """The regularized upper incomplete gamma function, ``1 - gammainc(a, x)`` without cancelling.

    Relative errors are below 4e-13 for parameters up to 1e6. NaN where 200 000 terms are too few, from about 1e9 on.

    Args:
        a: the shape parameter, positive.
        x: the beginning of the integral, not negative; the shapes broadcast, the dtypes are promoted.

    Returns:
        A float tensor of the common shape; float32 where all operands are integers or bools.

    Raises:
        ShapeError: if the shapes do not broadcast.

    >>> hf.special.gammaincc([0.5, 3.0], [1.0, 20.0])
    <Tensor f32[2] cpu> [1.5729921e-01 4.5551496e-07]
    """
    return apply(TABLE["gammaincc"], *_floats("gammaincc", a, x))


@operation
def i0(x: ArrayLike, /) -> Tensor:
    """The modified Bessel function of the first kind of order 0; see ``i0e`` for large ``x``.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A tensor of the shape of ``x``, in its dtype if that is a float, else in float32.

    >>> hf.special.i0([0.0, 1.0, 10.0])
    <Tensor f32[3] cpu> [1.0000000e+00 1.2660658e+00 2.8157166e+03]
    """
    x = float_operand(x, "i0")
    return exp(abs(x)) * i0e(x)


@operation
def i1(x: ArrayLike, /) -> Tensor:
    """The modified Bessel function of the first kind of order 1; see ``i1e`` for large ``x``.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A tensor of the shape of ``x``, in its dtype if that is a float, else in float32.

    >>> hf.special.i1([0.0, 1.0, 10.0])
    <Tensor f32[3] cpu> [0.0000000e+00 5.6515908e-01 2.6709883e+03]
    """
    x = float_operand(x, "i1")
    return exp(abs(x)) * i1e(x)


@operation
def k0(x: ArrayLike, /) -> Tensor:
    """The modified Bessel function of the second kind of order 0; infinite at 0, NaN below.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A tensor of the shape of ``x``, in its dtype if that is a float, else in float32.

    >>> hf.special.k0([0.1, 1.0, 10.0])
    <Tensor f32[3] cpu> [2.4270689e+00 4.2102444e-01 1.7780063e-05]
    """
    x = float_operand(x, "k0")
    return exp(-x) * k0e(x)


@operation
def k1(x: ArrayLike, /) -> Tensor:
    """The modified Bessel function of the second kind of order 1; infinite at 0, NaN below.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A tensor of the shape of ``x``, in its dtype if that is a float, else in float32.

    >>> hf.special.k1([0.1, 1.0, 10.0])
    <Tensor f32[3] cpu> [9.8538446e+00 6.0190725e-01 1.8648774e-05]
    """
    x = float_operand(x, "k1")
    return exp(-x) * k1e(x)


@operation
def exp1(x: ArrayLike, /) -> Tensor:
    """The exponential integral E1: the integral of ``exp(-t) / t`` from ``x`` on; NaN below 0.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A tensor of the shape of ``x``, in its dtype if that is a float, else in float32.

    >>> hf.special.exp1([0.5, 1.0, 10.0])
    <Tensor f32[3] cpu> [5.5977362e-01 2.1938394e-01 4.1569688e-06]
    """
    x = float_operand(x, "exp1")
    return where(x < 0.0, math.nan, -expi(-x))


@operation
def ndtr(x: ArrayLike, /) -> Tensor:
    """The cumulative distribution of the standard normal distribution.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A tensor of the shape of ``x``, in its dtype if that is a float, else in float32.

    >>> hf.special.ndtr([-2.0, 0.0, 2.0])
    <Tensor f32[3] cpu> [0.02275013 0.5        0.97724986]
    """
    x = float_operand(x, "ndtr")
    return 0.5 * erfc(x * -math.sqrt(0.5))


@operation
def ndtri(x: ArrayLike, /) -> Tensor:
    """The quantile of the standard normal distribution, the inverse of ``ndtr``.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A tensor of the shape of ``x``, in its dtype if that is a float, else in float32.

    >>> hf.special.ndtri([0.025, 0.5, 0.975])
    <Tensor f32[3] cpu> [-1.9599639  0.         1.9599643]
    """
    x = float_operand(x, "ndtri")
    return -math.sqrt(2.0) * erfcinv(2.0 * x) + 0.0


@operation
def log_ndtr(x: ArrayLike, /) -> Tensor:
    """The logarithm of ``ndtr``, exact in both tails.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A tensor of the shape of ``x``, in its dtype if that is a float, else in float32.

    >>> hf.special.log_ndtr([-30.0, 0.0, 5.0])
    <Tensor f32[3] cpu> [-4.5432126e+02 -6.9314718e-01 -2.8665161e-07]
    """
    x = float_operand(x, "log_ndtr")
    below = x < -1.0
    tail = where(below, x, -1.0) * -math.sqrt(0.5)
    far = log(0.5 * erfcx(tail)) - tail * tail
    return where(below, far, log1p(-0.5 * erfc(where(below, -1.0, x) * math.sqrt(0.5))))


@operation
def expit(x: ArrayLike, /) -> Tensor:
    """The logistic function ``1 / (1 + exp(-x))``, the inverse of ``logit``.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A tensor of the shape of ``x``, in its dtype if that is a float, else in float32.

    >>> hf.special.expit([-2.0, 0.0, 2.0])
    <Tensor f32[3] cpu> [0.11920292 0.5        0.880797  ]
    """
    x = float_operand(x, "expit")
    return sigmoid(x)


@operation
def logit(x: ArrayLike, /) -> Tensor:
    """The logarithm of the odds, ``log(x / (1 - x))``; infinite at 0 and 1, NaN beyond.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A tensor of the shape of ``x``, in its dtype if that is a float, else in float32.

    >>> hf.special.logit([0.1, 0.5, 0.9])
    <Tensor f32[3] cpu> [-2.1972246  0.         2.1972244]
    """
    x = float_operand(x, "logit")
    # In the middle both logarithms cancel: there by the distance from 1/2, which is exact.
    near = abs(x - 0.5) < 0.25
    rest = 2.0 * (where(near, x, 0.5) - 0.5)
    return where(near, log1p(rest) - log1p(-rest), log(x) - log1p(-x))


@operation
def log_expit(x: ArrayLike, /) -> Tensor:
    """The logarithm of ``expit``.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A tensor of the shape of ``x``, in its dtype if that is a float, else in float32.

    >>> hf.special.log_expit([-100.0, 0.0, 100.0])
    <Tensor f32[3] cpu> [-1.000000e+02 -6.931472e-01 -3.783506e-44]
    """
    x = float_operand(x, "log_expit")
    return -logaddexp(0.0, -x)


@operation
def entr(x: ArrayLike, /) -> Tensor:
    """The entropy of one outcome, ``-x log(x)``: 0 at 0, minus infinity below.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A tensor of the shape of ``x``, in its dtype if that is a float, else in float32.

    >>> hf.special.entr([0.0, 0.5, 1.0])
    <Tensor f32[3] cpu> [ 0.         0.3465736 -0.       ]
    """
    x = float_operand(x, "entr")
    positive = x > 0.0
    inside = -x * log(where(positive, x, 1.0))
    return where(positive, inside, where(x == 0.0, 0.0, where(x < 0.0, -math.inf, x)))


# Quotients whose divisor may be 0 are series near it, as all their derivatives are then.
_EXPREL = [1 / math.factorial(k + 1) for k in range(19)]
_SINC = [(-1) ** k / math.factorial(2 * k + 1) for k in range(11)]


def _series(x: Tensor, coefficients: list[float]) -> Tensor:
    result = x * coefficients[-1] + coefficients[-2]
    for coefficient in reversed(coefficients[:-2]):
        result = result * x + coefficient
    return result


@operation
def exprel(x: ArrayLike, /) -> Tensor:
    """Relative exponential: ``(exp(x) - 1) / x``, which is 1 at 0.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A tensor of the shape of ``x``, in its dtype if that is a float, else in float32.

    >>> hf.special.exprel([0.0, 1e-3, 1.0])
    <Tensor f32[3] cpu> [1.        1.0005002 1.7182819]
    """
    x = float_operand(x, "exprel")
    near = abs(x) < 1.0
    value = where(near, _series(where(near, x, 0.0), _EXPREL), expm1(x) / where(near, 1.0, x))
    return where(x == math.inf, math.inf, value)


@operation
def sinc(x: ArrayLike, /) -> Tensor:
    """Normalised sinc: ``sin(pi x) / (pi x)``, which is 1 at 0.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A tensor of the shape of ``x``, in its dtype if that is a float, else in float32.

    >>> hf.special.sinc([0.0, 0.5, 1.5])
    <Tensor f32[3] cpu> [ 1.          0.63661975 -0.21220659]
    """
    x = float_operand(x, "sinc")
    angle = x * math.pi
    near = abs(angle) < 1.0
    far = where(near, 1.0, angle)
    return where(near, _series(where(near, angle, 0.0) ** 2, _SINC), sin(far) / far)


@operation
def xlogy(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """Product of x and a logarithm: ``x1 log(x2)``, which is 0 where ``x1`` is 0.

    Args:
        x1: the first operand: a tensor, array, nested list or number.
        x2: the second operand; the shapes broadcast, the dtypes are promoted.

    Returns:
        A float tensor of the common shape; float32 where all operands are integers or bools.

    Raises:
        ShapeError: if the shapes do not broadcast.

    >>> hf.special.xlogy([0.0, 2.0], [0.0, 3.0])
    <Tensor f32[2] cpu> [0.        2.1972246]
    """
    x1, x2 = _floats("xlogy", x1, x2)
    nothing = logical_and(x1 == 0.0, logical_not(isnan(x2)))
    outside = logical_and(nothing, logical_not(logical_and(x2 > 0.0, x2 < math.inf)))
    product = x1 * log(where(outside, 1.0, x2))
    return where(nothing, product + 0.0, product)  # no -0.0; its derivative by x1 is the logarithm


@operation
def xlog1py(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """Product of x and a logarithm near 1: ``x1 log(1 + x2)``, which is 0 where ``x1`` is 0.

    Args:
        x1: the first operand: a tensor, array, nested list or number.
        x2: the second operand; the shapes broadcast, the dtypes are promoted.

    Returns:
        A float tensor of the common shape; float32 where all operands are integers or bools.

    Raises:
        ShapeError: if the shapes do not broadcast.

    >>> hf.special.xlog1py([0.0, 2.0], [-1.0, 3.0])
    <Tensor f32[2] cpu> [0.        2.7725887]
    """
    x1, x2 = _floats("xlog1py", x1, x2)
    nothing = logical_and(x1 == 0.0, logical_not(isnan(x2)))
    outside = logical_and(nothing, logical_not(logical_and(x2 > -1.0, x2 < math.inf)))
    product = x1 * log1p(where(outside, 0.0, x2))
    return where(nothing, product + 0.0, product)


@operation
def rel_entr(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """The relative entropy of one outcome, ``x1 log(x1 / x2)``: 0 where ``x1`` is 0, else infinite where it is not
    defined.

    Args:
        x1: the first operand: a tensor, array, nested list or number.
        x2: the second operand; the shapes broadcast, the dtypes are promoted.

    Returns:
        A float tensor of the common shape; float32 where all operands are integers or bools.

    Raises:
        ShapeError: if the shapes do not broadcast.

    >>> hf.special.rel_entr([0.0, 0.5], [0.5, 0.25])
    <Tensor f32[2] cpu> [0.        0.3465736]
    """
    x1, x2 = _floats("rel_entr", x1, x2)
    inside = logical_and(x1 > 0.0, x2 > 0.0)
    upper, lower = where(inside, x1, 1.0), where(inside, x2, 1.0)
    ratio = upper / lower
    within = logical_and(ratio > np.finfo(np.float32).tiny, ratio < math.inf)
    value = x1 * where(within, log(where(within, ratio, 1.0)), log(upper) - log(lower))
    nothing = logical_and(x1 == 0.0, x2 >= 0.0)
    other = where(logical_or(isnan(x1), isnan(x2)), math.nan, where(nothing, 0.0, math.inf))
    return where(inside, value, other)


@operation
def kl_div(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """The Kullback-Leibler divergence of one outcome, ``x1 log(x1 / x2) - x1 + x2``.

    Args:
        x1: the first operand: a tensor, array, nested list or number.
        x2: the second operand; the shapes broadcast, the dtypes are promoted.

    Returns:
        A float tensor of the common shape; float32 where all operands are integers or bools.

    Raises:
        ShapeError: if the shapes do not broadcast.

    >>> hf.special.kl_div([0.0, 0.5], [0.5, 0.25])
    <Tensor f32[2] cpu> [0.5        0.09657359]
    """
    x1, x2 = _floats("kl_div", x1, x2)
    entropy = rel_entr(x1, x2)
    return where(entropy == math.inf, math.inf, entropy - x1 + x2)


@operation
def betaln(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """The logarithm of the absolute value of the beta function, for positive operands.

    Args:
        x1: the first operand: a tensor, array, nested list or number.
        x2: the second operand; the shapes broadcast, the dtypes are promoted.

    Returns:
        A float tensor of the common shape; float32 where all operands are integers or bools.

    Raises:
        ShapeError: if the shapes do not broadcast.

    >>> hf.special.betaln([0.5, 3.0], [2.0, 1e6])
    <Tensor f32[2] cpu> [  0.28768206 -40.753387  ]
    """
    x1, x2 = _floats("betaln", x1, x2)
    first = x1 <= x2  # where both are equal, each has a derivative of its own
    small, large = where(first, x1, x2), where(first, x2, x1)
    total = small + large
    # Where one is large, the difference of two logarithms of gamma is a series, not a difference.
    far = large > 10.0
    low, high = where(far, small, 1.0), where(far, large, 11.0)
    ratio = low / high
    series = _stirling(high) - _stirling(low + high)
    difference = -(high - 0.5) * log1p(ratio) - low * log(low + high) + low + series
    value = gammaln(small) + where(far, difference, gammaln(large) - gammaln(total))
    # Where both are, only small terms are left of all three.
    both = small > 10.0
    low, high = where(both, small, 11.0), where(both, large, 11.0)
    ratio = low / high
    leading = 0.5 * (math.log(2.0 * math.pi) - log(high)) + (low - 0.5) * (log(ratio) - log1p(ratio))
    value = where(both, leading - high * log1p(ratio) + _stirling(low) + _stirling(high) - _stirling(low + high), value)
    return where(logical_and(small > 0.0, large == math.inf), -math.inf, value)


@operation
def beta(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """The beta function ``gamma(x1) gamma(x2) / gamma(x1 + x2)``.

    Args:
        x1: the first operand: a tensor, array, nested list or number.
        x2: the second operand; the shapes broadcast, the dtypes are promoted.

    Returns:
        A float tensor of the common shape; float32 where all operands are integers or bools.

    Raises:
        ShapeError: if the shapes do not broadcast.

    >>> hf.special.beta([0.5, 3.0], [2.0, 4.0])
    <Tensor f32[2] cpu> [1.3333333  0.01666667]
    """
    x1, x2 = _floats("beta", x1, x2)
    return _gamma_sign(x1) * _gamma_sign(x2) * _gamma_sign(x1 + x2) * exp(betaln(x1, x2))


@operation
def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike, /) -> Tensor:
    """The regularized incomplete beta function: the distribution function of the beta distribution.

    Relative errors are below 1e-12 for parameters up to 1e6. NaN where 200 000 terms are too few, from about 1e9 on.

    Args:
        a: the first shape parameter, positive.
        b: the second shape parameter, positive.
        x: the end of the integral, from 0 to 1; the shapes broadcast, the dtypes are promoted.

    Returns:
        A float tensor of the common shape; float32 where all operands are integers or bools.

    Raises:
        ShapeError: if the shapes do not broadcast.

    >>> hf.special.betainc([0.5, 2.0], 3.0, 0.25)
    <Tensor f32[2] cpu> [0.79296875 0.26171875]
    """
    return apply(TABLE["betainc"], *_floats("betainc", a, b, x))


@operation
def polygamma(n: int, x: ArrayLike, /) -> Tensor:
    """The polygamma function: the ``n``-th derivative of ``digamma``.

    Args:
        n: which derivative: 0 or a larger integer of Python's.
        x: a tensor or array-like value; infinite at 0 and negative integers.

    Returns:
        A tensor of the shape of ``x``, in its dtype if that is a float, else in float32.

    Raises:
        ArgumentError: where ``n`` is not an integer or negative.

    >>> hf.special.polygamma(1, [0.5, 1.0])
    <Tensor f32[2] cpu> [4.934802 1.644934]
    """
    if isinstance(n, bool) or not isinstance(n, int) or n < 0:
        raise ArgumentError("polygamma", f"n is {n!r}. Expected an integer, 0 or more.")
    x = float_operand(x, "polygamma")
    if n == 0:
        return digamma(x)
    if n == 1:
        return apply(TABLE["trigamma"], x)
    below = logical_and(x < 0.0, x != floor(x))
    value = (-1.0) ** (n + 1) * math.factorial(n) * zeta(n + 1.0, where(below, 1.0 - x, x))
    return where(below, (-1.0) ** n * value - _cotangent_derivative(n, where(below, x, 0.5)), value)


def _cotangent_derivative(n: int, x: Tensor) -> Tensor:
    """The ``n``-th derivative of ``pi cot(pi x)``: a polynomial of the cotangent."""
    coefficients = np.array([0.0, 1.0])
    for _ in range(n):
        slope = np.polynomial.polynomial.polyder(coefficients)
        coefficients = -np.polynomial.polynomial.polymul(slope, [1.0, 0.0, 1.0])
    cotangent = 1.0 / tan(math.pi * (x - round(x)))
    result = cotangent * coefficients[-1] + coefficients[-2]
    for coefficient in reversed(coefficients[:-2]):
        result = result * cotangent + coefficient
    return math.pi ** (n + 1) * result


@operation
def multigammaln(a: ArrayLike, d: int, /) -> Tensor:
    """The logarithm of the multivariate gamma function.

    Args:
        a: a tensor or array-like value; above ``(d - 1) / 2``.
        d: the dimension, an integer of Python's, 1 or more.

    Returns:
        A tensor of the shape of ``a``, in its dtype if that is a float, else in float32.

    Raises:
        ArgumentError: where ``d`` is not an integer or not positive.

    >>> hf.special.multigammaln([2.0, 5.0], 3)
    <Tensor f32[2] cpu> [1.5963125 9.140644 ]
    """
    if isinstance(d, bool) or not isinstance(d, int) or d < 1:
        raise ArgumentError("multigammaln", f"d is {d!r}. Expected an integer, 1 or more.")
    a = float_operand(a, "multigammaln")
    total = gammaln(a)
    for k in range(1, d):
        total = total + gammaln(a - 0.5 * k)
    return total + 0.25 * d * (d - 1) * math.log(math.pi)
