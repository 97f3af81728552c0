"""Optimizers, with Keras's names, arguments and formulas: ``hf.optimizers``."""

from __future__ import annotations

from hybridflow.optimizers import schedules
from hybridflow.optimizers.adaptive import Adadelta, Adagrad, Ftrl, RMSprop
from hybridflow.optimizers.clipping import clip_by_global_norm, clip_by_norm, global_norm
from hybridflow.optimizers.descent import SGD, Lion
from hybridflow.optimizers.moments import Adam, Adamax, AdamW, Lamb, Nadam
from hybridflow.optimizers.optimizer import Optimizer

__all__ = [
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Ftrl",
    "Lamb",
    "Lion",
    "Nadam",
    "Optimizer",
    "RMSprop",
    "clip_by_global_norm",
    "clip_by_norm",
    "global_norm",
    "schedules",
]
