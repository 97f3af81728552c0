"""Training with weights of float32 and computations in float16 or bfloat16: ``hf.mixed_precision``."""

from __future__ import annotations

from typing import TYPE_CHECKING as _TYPE_CHECKING

from hybridflow.core import other_names as _other_names
from hybridflow.layers.policy import Policy, global_policy, set_global_policy
from hybridflow.optimizers.scaling import LossScaleOptimizer

__all__ = ["LossScaleOptimizer", "Policy", "global_policy", "set_global_policy"]

if not _TYPE_CHECKING:  # a checker would take every name for one of ours
    __getattr__, __dir__ = _other_names.answers(__name__, __all__)
