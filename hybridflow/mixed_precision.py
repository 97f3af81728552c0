"""Training with weights of float32 and computations in float16 or bfloat16: ``hf.mixed_precision``."""

from __future__ import annotations

from typing import TYPE_CHECKING as _TYPE_CHECKING

from hybridflow.core import name_hints as _name_hints
from hybridflow.layers.dtype_policy import Policy, global_policy, set_global_policy
from hybridflow.optimizers.loss_scale import LossScaleOptimizer

__all__ = ["LossScaleOptimizer", "Policy", "global_policy", "set_global_policy"]

if not _TYPE_CHECKING:  # a checker would take every name for one of ours
    __getattr__, __dir__ = _name_hints.answers(__name__, __all__)
