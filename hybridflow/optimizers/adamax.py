"""Adamax: Adam with the infinity norm."""

from __future__ import annotations

from hybridflow.array.elementwise import abs, maximum
from hybridflow.core.tensor import Tensor
from hybridflow.core.variable import Variable
from hybridflow.eager.operands import cast
from hybridflow.optimizers.adam_base import _AdamBase


class Adamax(_AdamBase):
    """Adamax: Adam with the largest gradient, fading, in the place of the root of the velocity.

    Source: Kingma and Ba, "Adam: A Method for Stochastic Optimization", 2015, section 7.1.

    Args:
        learning_rate: a number, a variable, a schedule, or a function without arguments.
        beta_1: the decay rate of the mean of gradients.
        beta_2: the decay rate of the mean of squared gradients.
        epsilon: a small number that keeps divisions finite.
        **options: ``weight_decay``, ``clipnorm``, ``clipvalue``, ``global_clipnorm``, ``use_ema`` and what else
            ``hf.optimizers.Optimizer`` takes.

    >>> w = hf.Variable([1.0, 2.0])
    >>> hf.optimizers.Adamax(0.1).apply_gradients([(hf.asarray([5.0, -0.5]), w)])
    >>> w
    <Variable f32[2] cpu> [0.9 2.1]
    """

    _is_elementwise = True

    def update_step(self, gradient: Tensor, variable: Variable, learning_rate: Tensor) -> None:
        momentum = self._momentum(gradient, variable)
        largest = self.get_slot(variable, "velocity")
        self.assign(largest, maximum(self.beta_2 * largest, abs(gradient)))
        rate = learning_rate / cast(self._missing(self.beta_1), learning_rate.dtype)
        self.assign_sub(variable, rate * momentum / (largest + self.epsilon))
