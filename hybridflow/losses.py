"""Losses: ``hf.losses``.  Labels come first and predictions second, as in Keras.

``reduction`` is "mean" over all of them, "sum" or "none"; a cross entropy takes logits, not probabilities.
"""

from __future__ import annotations

from hybridflow.nn.losses import (
    huber,
    mean_absolute_error,
    mean_squared_error,
    sigmoid_cross_entropy,
    softmax_cross_entropy,
)

__all__ = [
    "huber",
    "mean_absolute_error",
    "mean_squared_error",
    "sigmoid_cross_entropy",
    "softmax_cross_entropy",
]
