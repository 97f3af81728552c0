"""Lion: steps by the sign of a running average."""

from __future__ import annotations

from typing import Unpack

from hybridflow.array.elementwise import sign
from hybridflow.core.tensor import Tensor
from hybridflow.core.variable import Variable
from hybridflow.optimizers.optimizer import Optimizer, OptimizerOptions, Rate


class Lion(Optimizer):
    """Lion: steps of one size, in the direction that the sign of gradient and momentum together gives.

    ``variable -= learning_rate * sign(beta_1 * momentum + (1 - beta_1) * gradient)``, then ``momentum = beta_2 *
    momentum + (1 - beta_2) * gradient``.  Source: Chen et al., "Symbolic Discovery of Optimization Algorithms", 2023.
    Other arguments are Optimizer's.

    Args:
        learning_rate: a number, a variable, a schedule, or a function without arguments.
        beta_1: the decay rate of the mean of gradients.
        beta_2: the decay rate of the mean of squared gradients.
        **options: ``weight_decay``, ``clipnorm``, ``clipvalue``, ``global_clipnorm``, ``use_ema`` and what else
            ``hf.optimizers.Optimizer`` takes.

    >>> w = hf.Variable([1.0, 2.0])
    >>> hf.optimizers.Lion(0.1).apply_gradients([(hf.asarray([5.0, -0.5]), w)])
    >>> w
    <Variable f32[2] cpu> [0.9 2.1]
    """

    _is_elementwise = True

    def __init__(
        self,
        learning_rate: Rate = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.99,
        **options: Unpack[OptimizerOptions],
    ) -> None:
        super().__init__(learning_rate, **options)
        self.beta_1, self.beta_2 = float(beta_1), float(beta_2)
        self._in_unit(beta_1=beta_1, beta_2=beta_2)

    def create_slots(self, variable: Variable) -> None:
        self.add_slot(variable, "momentum")

    def update_step(self, gradient: Tensor, variable: Variable, learning_rate: Tensor) -> None:
        momentum = self.get_slot(variable, "momentum")
        direction = sign(self.beta_1 * momentum + (1 - self.beta_1) * gradient)
        self.assign_sub(variable, learning_rate * direction)
        self.assign(momentum, self.beta_2 * momentum + (1 - self.beta_2) * gradient)
