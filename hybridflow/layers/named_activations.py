"""Activations that are asked for by name alone: Keras's, beside those of ``hf.nn``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hybridflow.array.creation import arange, asarray
from hybridflow.array.elementwise import (
    abs,
    astype,
    clip,
    expm1,
    maximum,
    minimum,
    sigmoid,
    sign,
    sqrt,
    square,
    tanh,
    where,
)
from hybridflow.array.reductions import cumulative_sum, sum
from hybridflow.array.shapes import moveaxis, split
from hybridflow.array.sorting import sort
from hybridflow.core.tensor import Tensor
from hybridflow.nn.functional import softplus

if TYPE_CHECKING:
    from hybridflow.core.type_aliases import ArrayLike


def celu(x: Tensor, alpha: float = 1.0) -> Any:
    """``x`` where it is above 0, ``alpha * (exp(x / alpha) - 1)`` elsewhere."""
    return where(x > 0, x, alpha * expm1(minimum(x, 0) / alpha))


def glu(x: ArrayLike, axis: int = -1) -> Any:
    """The first half along an axis, times the sigmoid of the second."""
    first, second = split(x, 2, axis)
    return first * sigmoid(second)


def threshold(x: Tensor, threshold: float, default_value: float) -> Any:
    """``x`` where it is above ``threshold``, ``default_value`` elsewhere."""
    return where(x > threshold, x, asarray(default_value, x.dtype))


def sparsemax(x: ArrayLike, axis: int = -1) -> Any:
    """Martins and Astudillo, "From Softmax to Sparsemax", 2016."""
    logits = moveaxis(x, axis, -1)
    ordered = sort(logits, axis=-1, descending=True)
    count = astype(arange(1, logits.shape[-1] + 1), logits.dtype)
    sums = cumulative_sum(ordered, axis=-1)
    support = astype(1 + count * ordered > sums, logits.dtype)
    size = sum(support, axis=-1, keepdims=True)
    limit = (sum(ordered * support, axis=-1, keepdims=True) - 1) / size
    return moveaxis(maximum(logits - limit, 0), -1, axis)


def squareplus(x: Tensor, b: float = 4) -> Any:
    """``(x + sqrt(x**2 + b)) / 2``."""
    return (x + sqrt(x * x + b)) / 2


def sparse_plus(x: Tensor) -> Any:
    """0 up to -1, ``x`` from 1 on, a parabola between."""
    return where(x <= -1, 0.0, where(x < 1, 0.25 * square(x + 1), x))


def mish(x: ArrayLike) -> Any:
    """``x * tanh(softplus(x))``."""
    return x * tanh(softplus(x))


def hard_tanh(x: ArrayLike) -> Any:
    """``x`` from -1 to 1."""
    return clip(x, -1.0, 1.0)


def sparse_sigmoid(x: Tensor) -> Any:
    """``(x + 1) / 2`` from 0 to 1."""
    return clip(0.5 * (x + 1), 0.0, 1.0)


def tanh_shrink(x: ArrayLike) -> Any:
    """``x - tanh(x)``."""
    return x - tanh(x)


def hard_shrink(x: ArrayLike, threshold: float = 0.5) -> Any:
    """``x`` where it is further than ``threshold`` from 0, 0 elsewhere."""
    return where(abs(x) > threshold, x, 0.0)


def soft_shrink(x: ArrayLike, threshold: float = 0.5) -> Any:
    """``x``, nearer to 0 by ``threshold``."""
    return sign(x) * maximum(abs(x) - threshold, 0.0)


FURTHER = {
    function.__name__: function
    for function in (
        celu, glu, hard_shrink, hard_tanh, mish, soft_shrink, sparse_plus, sparse_sigmoid, sparsemax, squareplus,
        tanh_shrink, threshold,
    )
}  # fmt: skip
