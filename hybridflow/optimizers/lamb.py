"""Lamb: Adam with layer-wise trust ratios."""

from __future__ import annotations

from hybridflow.array.elementwise import logical_and, sqrt, square, where
from hybridflow.array.reductions import sum
from hybridflow.core.tensor import Tensor
from hybridflow.core.variable import Variable
from hybridflow.eager.operands import as_tensor, cast
from hybridflow.optimizers.adam_base import _AdamBase


class Lamb(_AdamBase):
    """LAMB: layer-wise adaptive moments.

    Adam's direction, with a step for each variable in proportion to its norm: for very large batches.

    Source: You et al., "Large Batch Optimization for Deep Learning: Training BERT in 76 minutes", 2020.

    Args:
        learning_rate: a number, a variable, a schedule, or a function without arguments.
        beta_1: the decay rate of the mean of gradients.
        beta_2: the decay rate of the mean of squared gradients.
        epsilon: a small number that keeps divisions finite.
        **options: ``weight_decay``, ``clipnorm``, ``clipvalue``, ``global_clipnorm``, ``use_ema`` and what else
            ``hf.optimizers.Optimizer`` takes.

    >>> w = hf.Variable([3.0, 4.0])
    >>> hf.optimizers.Lamb(0.1).apply_gradients([(hf.asarray([5.0, 0.0]), w)])
    >>> w
    <Variable f32[2] cpu> [2.5 4. ]
    """

    def update_step(self, gradient: Tensor, variable: Variable, learning_rate: Tensor) -> None:
        dtype = learning_rate.dtype
        momentum = self._momentum(gradient, variable) / cast(self._missing(self.beta_1), dtype)
        velocity = self._velocity(gradient, variable) / cast(self._missing(self.beta_2), dtype)
        direction = momentum / (sqrt(velocity) + self.epsilon)
        weight_norm, step = sqrt(sum(square(cast(as_tensor(variable, self.name), dtype)))), sqrt(sum(square(direction)))
        trust = where(logical_and(weight_norm > 0, step > 0), weight_norm / step, 1.0)
        self.assign_sub(variable, learning_rate * trust * direction)
