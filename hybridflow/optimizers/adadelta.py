"""Adadelta: steps by running averages of squared gradients and updates."""

from __future__ import annotations

from typing import Unpack

from hybridflow.array.elementwise import sqrt, square
from hybridflow.core.tensor import Tensor
from hybridflow.core.variable import Variable
from hybridflow.optimizers.optimizer import Optimizer, OptimizerOptions, Rate


class Adadelta(Optimizer):
    """Adadelta.

    Steps as large as earlier steps were for such gradients: moving averages of both squares, that of steps behind.

    ``rho`` is what of an average stays.  Source: Zeiler, "ADADELTA: An Adaptive Learning Rate Method", 2012; its own
    learning rate is 1.0.  Other arguments are Optimizer's.

    Args:
        learning_rate: a number, a variable, a schedule, or a function without arguments.
        rho: how much of the running mean is kept at each step.
        epsilon: a small number that keeps divisions finite.
        **options: ``weight_decay``, ``clipnorm``, ``clipvalue``, ``global_clipnorm``, ``use_ema`` and what else
            ``hf.optimizers.Optimizer`` takes.

    >>> w = hf.Variable([1.0])
    >>> hf.optimizers.Adadelta(1.0, epsilon=1e-2).apply_gradients([(hf.asarray([3.0]), w)])
    >>> w
    <Variable f32[1] cpu> [0.55767417]
    """

    _is_elementwise = True

    def __init__(
        self, learning_rate: Rate = 0.001, rho: float = 0.95, epsilon: float = 1e-7, **options: Unpack[OptimizerOptions]
    ) -> None:
        super().__init__(learning_rate, **options)
        self.rho, self.epsilon = float(rho), float(epsilon)
        self._in_unit(rho=rho)

    def create_slots(self, variable: Variable) -> None:
        self.add_slot(variable, "accumulated_gradient")
        self.add_slot(variable, "accumulated_step")

    def update_step(self, gradient: Tensor, variable: Variable, learning_rate: Tensor) -> None:
        gradients = self.get_slot(variable, "accumulated_gradient")
        steps = self.get_slot(variable, "accumulated_step")
        self.assign(gradients, self.rho * gradients + (1 - self.rho) * square(gradient))
        step = sqrt(steps + self.epsilon) / sqrt(gradients + self.epsilon) * gradient
        self.assign(steps, self.rho * steps + (1 - self.rho) * square(step))
        self.assign_sub(variable, learning_rate * step)
