"""TensorFlow's ``tf.keras.activations``."""

from __future__ import annotations

from typing import Any

import hybridflow as hf
from hybridflow.compat.export import Operand, export, tf_export


@tf_export("keras.activations.elu", "keras.backend.elu", "keras.ops.elu")
def elu(x: Operand, alpha: float = 1.0, name: str | None = None) -> Any:
    """Exponential linear unit (ELU): ``x`` where positive, ``alpha * (exp(x) - 1)`` elsewhere."""
    return hf.nn.elu(x, alpha=alpha)


@tf_export("keras.activations.gelu")
def gelu(x: Operand, approximate: bool = False, name: str | None = None) -> Any:
    """Gaussian error linear unit (GELU): ``x`` times the normal distribution function at ``x``; ``approximate``
    takes the formula with tanh."""
    return hf.nn.gelu(x, approximate=approximate)


@tf_export("keras.activations.hard_sigmoid", "keras.backend.hard_sigmoid", "keras.ops.hard_sigmoid")
def hard_sigmoid(x: Operand, name: str | None = None) -> Any:
    """Hard sigmoid: ``x / 6 + 1/2`` limited to [0, 1]."""
    return hf.nn.hard_sigmoid(x)


@tf_export("keras.activations.hard_silu", "keras.activations.hard_swish", "keras.ops.hard_silu", "keras.ops.hard_swish")
def hard_silu(x: Operand, name: str | None = None) -> Any:
    """Hard swish: ``x * hard_sigmoid(x)``."""
    return hf.nn.hard_swish(x)


@tf_export("keras.activations.leaky_relu")
def leaky_relu(x: Operand, negative_slope: float = 0.2, name: str | None = None) -> Any:
    """Leaky ReLU: ``x`` where positive, ``alpha * x`` elsewhere."""
    return hf.nn.leaky_relu(x, alpha=negative_slope)


@tf_export("keras.activations.log_softmax")
def log_softmax(x: Operand, axis: Any = -1, name: str | None = None) -> Any:
    """The logarithm of ``softmax(x)``, exact where that underflows."""
    return hf.nn.log_softmax(x, axis=axis)


@tf_export("keras.activations.relu6", "keras.ops.relu6")
def relu6(x: Operand, name: str | None = None) -> Any:
    """ReLU bounded by 6: ``min(max(x, 0), 6)``. The derivative at 0 and 6 is 0."""
    return hf.nn.relu6(x)


@tf_export("keras.activations.selu", "keras.ops.selu")
def selu(x: Operand, name: str | None = None) -> Any:
    """The self-normalising ``elu`` of Klambauer et al.: scaled so that mean 0 and variance 1 are kept."""
    return hf.nn.selu(x)


@tf_export("keras.activations.sigmoid", "keras.backend.sigmoid")
def sigmoid(x: Operand, name: str | None = None) -> Any:
    """Sigmoid: ``1 / (1 + exp(-x))`` without overflow."""
    return hf.sigmoid(x)


@tf_export("keras.activations.silu", "keras.activations.swish", "keras.ops.silu", "keras.ops.swish")
def silu(x: Operand, name: str | None = None) -> Any:
    """Sigmoid linear unit (SiLU): ``x * sigmoid(x)``, also called swish."""
    return hf.nn.silu(x)


@tf_export("keras.activations.softplus", "keras.backend.softplus", "keras.ops.softplus")
def softplus(x: Operand, name: str | None = None) -> Any:
    """Softplus: ``log(1 + exp(x))`` without overflow."""
    return hf.nn.softplus(x)


@tf_export("keras.activations.softsign", "keras.backend.softsign", "keras.ops.softsign")
def softsign(x: Operand, name: str | None = None) -> Any:
    """Softsign: ``x / (1 + |x|)``."""
    return hf.nn.softsign(x)


export(hf.layers.activation_functions.activation, "keras.activations.get")
export(hf.layers.activation_functions.name_of_activation, "keras.activations.serialize")
export(hf.layers.activation_functions.linear, "keras.activations.linear")
