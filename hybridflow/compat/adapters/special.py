"""``tf.math``'s special functions, by those of ``hf.special``."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import hybridflow as hf
from hybridflow.compat.adapters.values import operand, operands
from hybridflow.compat.export import TensorLike, tf_export
from hybridflow.compiler.ir import dtypes
from hybridflow.errors import ArgumentError, DTypeError


def _of_floats(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """The function of ``hf.special``, which TensorFlow has for floats alone."""

    def call(*args: object) -> Any:
        tensors = operands(args, range(len(args)))
        kind = next((x.dtype for x in tensors if hasattr(x, "dtype")), None)
        if kind is None or not dtypes.is_float(kind):
            raise DTypeError(f"math.{name}", f"the operand is {kind}; it must be a float.")
        return function(*map(operand, tensors))

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"``tf.math.{name}``: {function.__doc__}"
    return call


lgamma, digamma = _of_floats(hf.special.gammaln, "lgamma"), _of_floats(hf.special.digamma, "digamma")
zeta, _xlog1py = _of_floats(hf.special.zeta, "zeta"), _of_floats(hf.special.xlog1py, "xlog1py")
erfc, erfinv, erfcinv = (_of_floats(getattr(hf.special, name), name) for name in ("erfc", "erfinv", "erfcinv"))
ndtri, betainc = _of_floats(hf.special.ndtri, "ndtri"), _of_floats(hf.special.betainc, "betainc")
igamma, igammac = _of_floats(hf.special.gammainc, "igamma"), _of_floats(hf.special.gammaincc, "igammac")
bessel_i0, bessel_i1 = _of_floats(hf.special.i0, "bessel_i0"), _of_floats(hf.special.i1, "bessel_i1")
bessel_i0e, bessel_i1e = _of_floats(hf.special.i0e, "bessel_i0e"), _of_floats(hf.special.i1e, "bessel_i1e")


def xlog1py(x: TensorLike, y: TensorLike, name: str | None = None) -> Any:
    """``tf.math.xlog1py``: ``x * log(1 + y)``; 0 where ``x`` is, and so are its derivatives."""
    return hf.where(hf.equal(operand(x), 0), hf.stop_gradient(value := _xlog1py(x, y)), value)


@tf_export("math.polygamma")
def polygamma(a: TensorLike, x: TensorLike, name: str | None = None) -> Any:
    """``tf.math.polygamma``: the derivative of digamma whose order, one number, is ``a``."""
    order = np.asarray(operand(a)).reshape(-1)
    if order.size == 0 or np.any(order != order[0]):
        raise ArgumentError("math.polygamma", "its orders differ. Call it once for each order.")
    return hf.special.polygamma(int(order[0]), operand(x))


@tf_export("math.lbeta")
def lbeta(x: TensorLike, name: str | None = None) -> Any:
    """``tf.math.lbeta``: the logarithm of the beta function, along the last axis."""
    value = operand(x)
    return hf.sum(lgamma(value), axis=-1) - lgamma(hf.sum(value, axis=-1))


@tf_export("nn.log_poisson_loss")
def log_poisson_loss(
    targets: TensorLike, log_input: object, compute_full_loss: bool = False, name: str | None = None
) -> Any:
    """``tf.nn.log_poisson_loss``."""
    z, c = operands([targets, log_input], [0, 1])
    result = hf.exp(c) - c * z
    if not compute_full_loss:
        return result
    over = hf.where(z > 1, z, 1.0)
    stirling = over * hf.log(over) - over + 0.5 * hf.log(2 * math.pi * over)
    return result + hf.where(z > 1, stirling, 0.0)


@tf_export("math.cumulative_logsumexp")
def cumulative_logsumexp(
    x: TensorLike, axis: int = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> Any:
    """``tf.math.cumulative_logsumexp``."""
    value = operand(x)
    value = hf.flip(value, axis=axis) if reverse else value
    sums = hf.cumlogsumexp(value, axis)
    if exclusive:
        first = hf.full_like(hf.take(sums, np.array([0]), axis=axis), -math.inf)
        kept = hf.take(sums, hf.arange(value.shape[axis] - 1), axis=axis)
        sums = hf.concat([first, kept], axis=axis)
    return hf.flip(sums, axis=axis) if reverse else sums
