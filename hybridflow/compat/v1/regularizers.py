"""Regularizers of TensorFlow 1: what variables add to the loss."""

from __future__ import annotations

from typing import Any

from hybridflow.compat.v1.functions import TABLE as tf
from hybridflow.compat.v1.neural import TABLE as nn


def l2_regularizer(scale: float, scope: str | None = None) -> Any:
    """``scale * sum(w**2) / 2``."""
    return lambda weights: tf["multiply"](float(scale), nn["l2_loss"](weights), name="l2_regularizer")


def l1_regularizer(scale: float, scope: str | None = None) -> Any:
    return lambda weights: tf["multiply"](float(scale), tf["reduce_sum"](tf["abs"](weights)), name="l1_regularizer")
