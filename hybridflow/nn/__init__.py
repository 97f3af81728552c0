"""Functions of neural networks: activations, normalisations, dropout, and the losses of ``hf.losses``."""

from __future__ import annotations

from hybridflow.nn.functional import (
    dropout as dropout,
    elu as elu,
    gelu as gelu,
    hard_sigmoid as hard_sigmoid,
    hard_swish as hard_swish,
    huber as huber,
    l2_normalize as l2_normalize,
    layer_norm as layer_norm,
    leaky_relu as leaky_relu,
    log_sigmoid as log_sigmoid,
    log_softmax as log_softmax,
    mean_absolute_error as mean_absolute_error,
    mean_squared_error as mean_squared_error,
    moments as moments,
    one_hot as one_hot,
    relu as relu,
    relu6 as relu6,
    rms_norm as rms_norm,
    selu as selu,
    sigmoid as sigmoid,
    sigmoid_cross_entropy as sigmoid_cross_entropy,
    silu as silu,
    softmax as softmax,
    softmax_cross_entropy as softmax_cross_entropy,
    softplus as softplus,
    softsign as softsign,
    swish as swish,
    tanh as tanh,
)
