"""Losses: ``hf.losses``.  Labels come first and predictions second, as in Keras.

The functions have a ``reduction``, "mean" over all of them, "sum" or "none"; their cross entropies take logits, not
probabilities.  The classes are Keras's, with its names, arguments and defaults: an object is called with labels,
predictions, and weights of the samples.
"""

from __future__ import annotations

from hybridflow.losses.objects import (
    BinaryCrossentropy,
    CategoricalCrossentropy,
    CosineSimilarity,
    Hinge,
    Huber,
    KLDivergence,
    LogCosh,
    Loss,
    MeanAbsoluteError,
    MeanSquaredError,
    Poisson,
    SparseCategoricalCrossentropy,
    SquaredHinge,
)
from hybridflow.nn.losses import (
    huber,
    mean_absolute_error,
    mean_squared_error,
    sigmoid_cross_entropy,
    softmax_cross_entropy,
)

__all__ = [
    "BinaryCrossentropy",
    "CategoricalCrossentropy",
    "CosineSimilarity",
    "Hinge",
    "Huber",
    "KLDivergence",
    "LogCosh",
    "Loss",
    "MeanAbsoluteError",
    "MeanSquaredError",
    "Poisson",
    "SparseCategoricalCrossentropy",
    "SquaredHinge",
    "huber",
    "mean_absolute_error",
    "mean_squared_error",
    "sigmoid_cross_entropy",
    "softmax_cross_entropy",
]
