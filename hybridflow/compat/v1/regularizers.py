"""Regularizers of TensorFlow 1: what variables add to the loss."""

from __future__ import annotations

from typing import Any

from hybridflow.compat.v1.functions import TABLE as tf
from hybridflow.compat.v1.nn import TABLE as nn
from hybridflow.compat.v1.recording import Recorded
from hybridflow.regularizers import L1L2, Regularizer


def penalty(regularizer: Any, weights: Any) -> Any:
    """What a function of the graph's tensors, or a regularizer of Keras, adds for weights."""
    if isinstance(regularizer, Regularizer):
        return Recorded(
            lambda values: regularizer(values), "Regularizer", "add" if isinstance(regularizer, L1L2) else "mul"
        )(weights)
    return regularizer(weights)


def l2_regularizer(scale: float, scope: str | None = None) -> Any:
    """``scale * sum(w**2) / 2``."""
    return lambda weights: tf["multiply"](float(scale), nn["l2_loss"](weights), name="l2_regularizer")


def l1_regularizer(scale: float, scope: str | None = None) -> Any:
    return lambda weights: tf["multiply"](float(scale), tf["reduce_sum"](tf["abs"](weights)), name="l1_regularizer")
