"""Training with weights of float32 and computations in float16 or bfloat16: ``hf.mixed_precision``."""

from __future__ import annotations

from hybridflow.layers.policy import Policy, global_policy, set_global_policy
from hybridflow.optimizers.scaling import LossScaleOptimizer

__all__ = ["LossScaleOptimizer", "Policy", "global_policy", "set_global_policy"]
