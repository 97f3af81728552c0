"""Functions of neural networks: activations, normalisations, dropout.

They are compositions of primitives, which the compiler fuses.  float16 and bfloat16 inputs of softmax and the
normalisations are computed in float32 and rounded once.
"""

from __future__ import annotations

__traits__ = ("makes tensors",)

import math
from typing import Any

import numpy as np

from hybridflow.array import random
from hybridflow.array.creation import zeros_like
from hybridflow.array.elementwise import (
    abs,
    add,
    divide,
    erf,
    exp,
    expm1,
    greater,
    log,
    logaddexp,
    maximum,
    minimum,
    multiply,
    negative,
    rsqrt,
    sigmoid,
    square,
    stop_gradient,
    subtract,
    tanh,
    where,
)
from hybridflow.array.reductions import max, mean, sum, var
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ops import type_rules
from hybridflow.core.promotion import weak_kind
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import ArrayLike, AxisLike
from hybridflow.eager.operands import cast, exclusive, float_operand
from hybridflow.eager.public_op import operation
from hybridflow.errors import ArgumentError, ArgumentTypeError

# ---- activations


@operation
def relu(x: ArrayLike) -> Tensor:
    """Rectified linear unit (ReLU): ``max(x, 0)``; NaN stays NaN.  The derivative at 0 is 0.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A float tensor of the shape of ``x``.

    >>> hf.nn.relu([-1.0, 2.0])
    <Tensor f32[2] cpu> [0. 2.]
    """
    return maximum(0, x)  # the gradient of a tie goes to the first operand


@operation
def relu6(x: ArrayLike) -> Tensor:
    """ReLU bounded by 6: ``min(max(x, 0), 6)``.  The derivative at 0 and 6 is 0.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A float tensor of the shape of ``x``.

    >>> hf.nn.relu6([-1.0, 2.0, 9.0])
    <Tensor f32[3] cpu> [0. 2. 6.]
    """
    return minimum(6, relu(x))


@operation
def leaky_relu(x: ArrayLike, alpha: float = 0.2) -> Tensor:
    """Leaky ReLU: ``x`` where positive, ``alpha * x`` elsewhere.

    Args:
        x: a tensor, array, nested list or number.
        alpha: the slope below 0.

    Returns:
        A float tensor of the shape of ``x``.

    >>> hf.nn.leaky_relu([-1.0, 2.0])
    <Tensor f32[2] cpu> [-0.2  2. ]
    """
    x = float_operand(x, "leaky_relu")
    return where(greater(x, 0), x, multiply(x, alpha))


@operation
def elu(x: ArrayLike, alpha: float = 1.0) -> Tensor:
    """Exponential linear unit (ELU): ``x`` where positive, ``alpha * (exp(x) - 1)`` elsewhere.

    Args:
        x: a tensor, array, nested list or number.
        alpha: the value for large negative ``x``, negated.

    Returns:
        A float tensor of the shape of ``x``.

    >>> hf.nn.elu([-1.0, 2.0])
    <Tensor f32[2] cpu> [-0.63212055  2.        ]
    """
    x = float_operand(x, "elu")
    return where(greater(x, 0), x, multiply(expm1(minimum(x, 0)), alpha))


@operation
def selu(x: ArrayLike) -> Tensor:
    """The self-normalising ``elu`` of Klambauer et al.: scaled so that mean 0 and variance 1 are kept.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A float tensor of the shape of ``x``.

    >>> hf.nn.selu([-1.0, 2.0])
    <Tensor f32[2] cpu> [-1.1113307  2.101402 ]
    """
    return multiply(elu(x, 1.6732632423543772), 1.0507009873554805)


@operation
def gelu(x: ArrayLike, approximate: bool = False) -> Tensor:
    """Gaussian error linear unit (GELU): ``x`` times the normal distribution function at ``x``; ``approximate`` takes
    the formula with tanh.

    Args:
        x: a tensor, array, nested list or number.
        approximate: whether the formula with tanh is taken.

    Returns:
        A float tensor of the shape of ``x``.

    >>> hf.nn.gelu([-1.0, 2.0])
    <Tensor f32[2] cpu> [-0.15865526  1.9544997 ]
    """
    x = float_operand(x, "gelu")
    if approximate:
        inner = multiply(add(x, multiply(multiply(square(x), x), 0.044715)), math.sqrt(2 / math.pi))
        return multiply(multiply(x, 0.5), add(tanh(inner), 1))
    return multiply(multiply(x, 0.5), add(erf(multiply(x, math.sqrt(0.5))), 1))


@operation
def silu(x: ArrayLike) -> Tensor:
    """Sigmoid linear unit (SiLU): ``x * sigmoid(x)``, also called swish.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A float tensor of the shape of ``x``.

    >>> hf.nn.silu([-1.0, 2.0])
    <Tensor f32[2] cpu> [-0.26894143  1.761594  ]
    """
    x = float_operand(x, "silu")
    return multiply(x, sigmoid(x))


swish = silu


@operation
def hard_sigmoid(x: ArrayLike) -> Tensor:
    """Hard sigmoid: ``x / 6 + 1/2`` limited to [0, 1].

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A float tensor of the shape of ``x``.

    >>> hf.nn.hard_sigmoid([-4.0, 0.0, 4.0])
    <Tensor f32[3] cpu> [0.  0.5 1. ]
    """
    x = float_operand(x, "hard_sigmoid")
    return divide(relu6(add(x, 3)), 6)


@operation
def hard_swish(x: ArrayLike) -> Tensor:
    """Hard swish: ``x * hard_sigmoid(x)``.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A float tensor of the shape of ``x``.

    >>> hf.nn.hard_swish([-4.0, 1.0, 4.0])
    <Tensor f32[3] cpu> [-0.         0.6666667  4.       ]
    """
    x = float_operand(x, "hard_swish")
    return multiply(x, hard_sigmoid(x))


@operation
def softplus(x: ArrayLike) -> Tensor:
    """Softplus: ``log(1 + exp(x))`` without overflow.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A float tensor of the shape of ``x``.

    >>> hf.nn.softplus([0.0, 100.0])
    <Tensor f32[2] cpu> [  0.6931472 100.       ]
    """
    x = float_operand(x, "softplus")
    return logaddexp(x, zeros_like(x))


@operation
def log_sigmoid(x: ArrayLike) -> Tensor:
    """Log-sigmoid: ``log(sigmoid(x))`` without underflow.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A float tensor of the shape of ``x``.

    >>> hf.nn.log_sigmoid([0.0, 100.0])
    <Tensor f32[2] cpu> [-6.931472e-01 -3.783506e-44]
    """
    return negative(softplus(negative(float_operand(x, "log_sigmoid"))))


@operation
def softsign(x: ArrayLike) -> Tensor:
    """Softsign: ``x / (1 + |x|)``.

    Args:
        x: a tensor, array, nested list or number.

    Returns:
        A float tensor of the shape of ``x``.

    >>> hf.nn.softsign([-1.0, 3.0])
    <Tensor f32[2] cpu> [-0.5   0.75]
    """
    x = float_operand(x, "softsign")
    return divide(x, add(abs(x), 1))


# ---- normalisations


def _wide(x: ArrayLike, stage: str) -> tuple[Tensor, Any]:
    """``x`` in the dtype to compute in, and the dtype of the result."""
    x = float_operand(x, stage)
    return cast(x, dtypes.compute_dtype(x.dtype)), x.dtype


def _shifted(x: Tensor, axis: AxisLike) -> Tensor:
    """``x`` less its maximum, through which no gradient needs to flow: softmax does not change under a shift.  Of no
    elements there is no maximum, and nothing to shift."""
    if any(x.shape[k] == 0 for k in type_rules.axes("softmax", x.type, axis)):
        return x
    return subtract(x, stop_gradient(max(x, axis, keepdims=True)))


@operation
def softmax(x: ArrayLike, axis: AxisLike = -1) -> Tensor:
    """Softmax: ``exp(x) / sum(exp(x))`` over ``axis`` without overflow.

    Args:
        x: a tensor, array, nested list or number.
        axis: an axis, or several.

    Returns:
        A float tensor of the shape of ``x``.

    Raises:
        AxisError: for an axis out of range.

    >>> hf.nn.softmax([0.0, 0.0, 0.0, 0.0])
    <Tensor f32[4] cpu> [0.25 0.25 0.25 0.25]
    """
    x, dtype = _wide(x, "softmax")
    powers = exp(_shifted(x, axis))
    return cast(divide(powers, sum(powers, axis, keepdims=True)), dtype)


@operation
def log_softmax(x: ArrayLike, axis: AxisLike = -1) -> Tensor:
    """The logarithm of ``softmax(x)``, exact where that underflows.

    Args:
        x: a tensor, array, nested list or number.
        axis: an axis, or several.

    Returns:
        A float tensor of the shape of ``x``.

    Raises:
        AxisError: for an axis out of range.

    >>> hf.nn.log_softmax([0.0, 0.0])
    <Tensor f32[2] cpu> [-0.6931472 -0.6931472]
    """
    x, dtype = _wide(x, "log_softmax")
    shifted = _shifted(x, axis)
    return cast(subtract(shifted, log(sum(exp(shifted), axis, keepdims=True))), dtype)


@operation
def moments(x: ArrayLike, axis: AxisLike, keepdims: bool = False) -> tuple[Tensor, Tensor]:
    """Mean and variance over ``axis``.

    Args:
        x: a tensor, array, nested list or number.
        axis: an axis, a tuple of axes, or None for all.
        keepdims: whether reduced axes are kept with size 1.

    Returns:
        Two float tensors without the axes that were reduced: mean and variance.

    Raises:
        AxisError: for an axis out of range.

    >>> hf.nn.moments([1.0, 3.0], axis=0)
    (<Tensor f32[] cpu> 2.0, <Tensor f32[] cpu> 1.0)
    """
    return mean(x, axis, keepdims=keepdims), var(x, axis, keepdims=keepdims)


@operation
def layer_norm(
    x: ArrayLike,
    scale: Any = None,
    offset: ArrayLike | None = None,
    axis: AxisLike = -1,
    epsilon: float = 1e-5,
) -> Tensor:
    """Layer normalization: ``(x - mean) / sqrt(variance + epsilon) * scale + offset``, with mean and variance over
    ``axis``.

    Args:
        x: a tensor, array, nested list or number.
        scale: a factor that broadcasts; None for none.
        offset: what is added; None for nothing.
        axis: an axis, or several.
        epsilon: what is added to the variance.

    Returns:
        A float tensor of the shape of ``x``.

    Raises:
        AxisError: for an axis out of range.

    >>> hf.nn.layer_norm([[1.0, 3.0], [2.0, 8.0]], epsilon=0.0)
    <Tensor f32[2,2] cpu>
    [[-1.  1.]
     [-1.  1.]]
    """
    x, dtype = _wide(x, "layer_norm")
    centred = subtract(x, mean(x, axis, keepdims=True))
    variance = mean(square(centred), axis, keepdims=True)
    return _affine(multiply(centred, rsqrt(add(variance, epsilon))), scale, offset, dtype)


@operation
def rms_norm(x: ArrayLike, scale: Any = None, axis: AxisLike = -1, epsilon: float = 1e-6) -> Tensor:
    """RMS normalization: ``x / sqrt(mean(x**2) + epsilon) * scale``, with the mean over ``axis``.

    Args:
        x: a tensor, array, nested list or number.
        scale: a factor that broadcasts; None for none.
        axis: an axis, or several.
        epsilon: what is added to the mean square.

    Returns:
        A float tensor of the shape of ``x``.

    Raises:
        AxisError: for an axis out of range.

    >>> hf.nn.rms_norm([3.0, 4.0], epsilon=0.0)
    <Tensor f32[2] cpu> [0.84852815 1.1313709 ]
    """
    x, dtype = _wide(x, "rms_norm")
    return _affine(multiply(x, rsqrt(add(mean(square(x), axis, keepdims=True), epsilon))), scale, None, dtype)


def _affine(x: Tensor, scale: ArrayLike, offset: Any, dtype: np.dtype[Any]) -> Tensor:
    if scale is not None:
        x = multiply(x, scale)
    if offset is not None:
        x = add(x, offset)
    return cast(x, dtype)


@operation
def l2_normalize(x: ArrayLike, axis: AxisLike = -1, epsilon: float = 1e-12) -> Tensor:
    """L2 normalization: ``x / sqrt(max(sum(x**2), epsilon))``, with the sum over ``axis``.

    Args:
        x: a tensor, array, nested list or number.
        axis: an axis, a tuple of axes, or None for all.
        epsilon: the least sum of squares.

    Returns:
        A float tensor of the shape of ``x``.

    Raises:
        AxisError: for an axis out of range.

    >>> hf.nn.l2_normalize([3.0, 4.0])
    <Tensor f32[2] cpu> [0.6 0.8]
    """
    x, dtype = _wide(x, "l2_normalize")
    return cast(multiply(x, rsqrt(maximum(sum(square(x), axis, keepdims=True), epsilon))), dtype)


# ---- dropout


@operation
def dropout(
    x: ArrayLike, rate: float, training: bool = True, generator: object = None, seed: ArrayLike | None = None
) -> Tensor:
    """Dropout: ``x`` with elements zeroed with probability ``rate`` and the others scaled by ``1 / (1 - rate)``.

    The choice comes from ``generator`` (a ``hf.random.Generator``), is a function of ``seed`` (two integers), or comes
    from the global generator.  Without ``training``, or at rate 0, ``x`` is returned as it is.
    Raises ArgumentError for a rate outside [0, 1).

    Args:
        x: a tensor, array, nested list or number.
        rate: the probability, from 0 on and below 1.
        training: whether anything is left out.
        generator: where numbers are drawn from.
        seed: two integers.

    Returns:
        A tensor of the shape and dtype of ``x``.

    >>> hf.nn.dropout(hf.ones(4), 0.0)
    <Tensor f32[4] cpu> [1. 1. 1. 1.]
    """
    x = float_operand(x, "dropout")
    if weak_kind(rate) is None or not 0 <= rate < 1:
        raise ArgumentError("dropout", f"the rate is {rate!r}; it must be a Python number in [0, 1).")
    if generator is not None and not isinstance(generator, random.Generator):
        raise ArgumentTypeError("dropout", f"the generator is {generator!r:.60}; give an hf.random.Generator.")
    if generator is not None and seed is not None:
        raise ArgumentError("dropout", "a generator and a seed are both given; give one.")
    if not training or rate == 0:
        return exclusive(x)
    if seed is not None:
        keep_mask = random.stateless_bernoulli(1 - rate, seed, x.shape)
    else:
        keep_mask = (generator or random.global_generator()).bernoulli(1 - rate, x.shape)
    return where(keep_mask, multiply(x, 1 / (1 - rate)), 0)
