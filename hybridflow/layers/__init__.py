"""Layers, with Keras's names, arguments and defaults: ``hf.layers``."""

from __future__ import annotations

from hybridflow.layers.activations import ELU, Activation, LeakyReLU, ReLU, Softmax
from hybridflow.layers.basic import Dense, Dropout, Flatten, Permute, RepeatVector, Reshape
from hybridflow.layers.layer import Layer

__all__ = [
    "ELU",
    "Activation",
    "Dense",
    "Dropout",
    "Flatten",
    "Layer",
    "LeakyReLU",
    "Permute",
    "ReLU",
    "RepeatVector",
    "Reshape",
    "Softmax",
]
