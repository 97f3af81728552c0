"""Layers, with Keras's names, arguments and defaults: ``hf.layers``."""

from __future__ import annotations

from hybridflow.layers.activations import ELU, Activation, LeakyReLU, ReLU, Softmax
from hybridflow.layers.attention import MultiHeadAttention
from hybridflow.layers.basic import Dense, Dropout, Flatten, Identity, Lambda, Permute, RepeatVector, Reshape
from hybridflow.layers.cells import GRUCell, LSTMCell, SimpleRNNCell, StackedRNNCells
from hybridflow.layers.embedding import Embedding, Masking
from hybridflow.layers.graph import InputLayer
from hybridflow.layers.layer import Layer
from hybridflow.layers.merging import Add, Average, Concatenate, Dot, Maximum, Minimum, Multiply, Subtract
from hybridflow.layers.noise import GaussianDropout, GaussianNoise, SpatialDropout1D, SpatialDropout2D
from hybridflow.layers.normalization import (
    BatchNormalization,
    GroupNormalization,
    LayerNormalization,
    RMSNormalization,
    UnitNormalization,
)
from hybridflow.layers.pooling import (
    GlobalAveragePooling1D,
    GlobalAveragePooling2D,
    GlobalMaxPooling1D,
    GlobalMaxPooling2D,
)
from hybridflow.layers.recurrent import GRU, LSTM, RNN, Bidirectional, SimpleRNN, TimeDistributed

__all__ = [
    "Activation",
    "Add",
    "Average",
    "BatchNormalization",
    "Bidirectional",
    "Concatenate",
    "Dense",
    "Dot",
    "Dropout",
    "ELU",
    "Embedding",
    "Flatten",
    "GRU",
    "GRUCell",
    "GaussianDropout",
    "GaussianNoise",
    "GlobalAveragePooling1D",
    "GlobalAveragePooling2D",
    "GlobalMaxPooling1D",
    "GlobalMaxPooling2D",
    "GroupNormalization",
    "Identity",
    "InputLayer",
    "LSTM",
    "LSTMCell",
    "Lambda",
    "Layer",
    "LayerNormalization",
    "LeakyReLU",
    "Masking",
    "Maximum",
    "Minimum",
    "MultiHeadAttention",
    "Multiply",
    "Permute",
    "RMSNormalization",
    "RNN",
    "ReLU",
    "RepeatVector",
    "Reshape",
    "SimpleRNN",
    "SimpleRNNCell",
    "Softmax",
    "SpatialDropout1D",
    "SpatialDropout2D",
    "StackedRNNCells",
    "Subtract",
    "TimeDistributed",
    "UnitNormalization",
]
