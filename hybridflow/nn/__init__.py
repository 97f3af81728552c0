"""Functions of neural networks: activations, normalisations, dropout, and the losses of ``hf.losses``."""

from __future__ import annotations

from hybridflow.array.elementwise import sigmoid, tanh
from hybridflow.array.indexing import one_hot
from hybridflow.nn.functional import (
    dropout,
    elu,
    gelu,
    hard_sigmoid,
    hard_swish,
    l2_normalize,
    layer_norm,
    leaky_relu,
    log_sigmoid,
    log_softmax,
    moments,
    relu,
    relu6,
    rms_norm,
    selu,
    silu,
    softmax,
    softplus,
    softsign,
    swish,
)
from hybridflow.nn.losses import (
    huber,
    mean_absolute_error,
    mean_squared_error,
    sigmoid_cross_entropy,
    softmax_cross_entropy,
)

__all__ = [
    "dropout",
    "elu",
    "gelu",
    "hard_sigmoid",
    "hard_swish",
    "huber",
    "l2_normalize",
    "layer_norm",
    "leaky_relu",
    "log_sigmoid",
    "log_softmax",
    "mean_absolute_error",
    "mean_squared_error",
    "moments",
    "one_hot",
    "relu",
    "relu6",
    "rms_norm",
    "selu",
    "sigmoid",
    "sigmoid_cross_entropy",
    "silu",
    "softmax",
    "softmax_cross_entropy",
    "softplus",
    "softsign",
    "swish",
    "tanh",
]
