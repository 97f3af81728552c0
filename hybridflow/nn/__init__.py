"""Functions of neural networks: activations, normalisations, dropout, attention, convolutions, pooling, and the
losses of ``hf.losses``."""

from __future__ import annotations

__traits__ = ("quiet",)

from typing import TYPE_CHECKING as _TYPE_CHECKING

from hybridflow.array.elementwise import sigmoid, tanh
from hybridflow.array.indexing import one_hot
from hybridflow.core import name_hints as _name_hints
from hybridflow.nn.attention import scaled_dot_product_attention
from hybridflow.nn.convolution import (
    conv1d,
    conv1d_transpose,
    conv2d,
    conv2d_transpose,
    conv3d,
    conv3d_transpose,
    convolution,
    depthwise_conv2d,
    separable_conv2d,
)
from hybridflow.nn.ctc import ctc_loss
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
from hybridflow.nn.pooling import (
    avg_pool,
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    max_pool,
    max_pool1d,
    max_pool2d,
    max_pool3d,
)

__all__ = [
    "avg_pool",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "conv1d",
    "conv1d_transpose",
    "conv2d",
    "conv2d_transpose",
    "conv3d",
    "conv3d_transpose",
    "convolution",
    "ctc_loss",
    "depthwise_conv2d",
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
    "max_pool",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "mean_absolute_error",
    "mean_squared_error",
    "moments",
    "one_hot",
    "relu",
    "relu6",
    "rms_norm",
    "scaled_dot_product_attention",
    "selu",
    "separable_conv2d",
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

if not _TYPE_CHECKING:  # a checker would take every name for one of ours
    __getattr__, __dir__ = _name_hints.answers(__name__, __all__)
