"""Losses: ``hf.losses``.  Labels come first and predictions second, as in Keras.

``reduction`` is "mean" over all of them, "sum" or "none"; a cross entropy takes logits, not probabilities.
"""

from __future__ import annotations

from hybridflow.nn.losses import (
    huber as huber,
    mean_absolute_error as mean_absolute_error,
    mean_squared_error as mean_squared_error,
    sigmoid_cross_entropy as sigmoid_cross_entropy,
    softmax_cross_entropy as softmax_cross_entropy,
)
