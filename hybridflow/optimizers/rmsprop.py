"""RMSprop: steps by a running average of squared gradients."""

from __future__ import annotations

from typing import Any, Unpack

from hybridflow.array.elementwise import rsqrt, square
from hybridflow.core.tensor import Tensor
from hybridflow.core.variable import Variable
from hybridflow.optimizers.optimizer import Optimizer, OptimizerOptions, Rate


class RMSprop(Optimizer):
    """RMSprop: steps ``learning_rate * gradient / sqrt(velocity + epsilon)``, velocity the moving average of squared
    gradients.

    ``rho`` is what of an average stays.  With ``centered`` the square of the gradient's moving average is taken from
    the velocity; with ``momentum`` the steps add up like SGD's.  Source: Hinton, "Neural Networks for Machine
    Learning", lecture 6e, 2012.  Other arguments are Optimizer's.

    Args:
        learning_rate: a number, a variable, a schedule, or a function without arguments.
        rho: how much of the running mean is kept at each step.
        momentum: the decay rate of the running average.
        epsilon: a small number that keeps divisions finite.
        centered: whether squares are taken about the running mean.
        **options: ``weight_decay``, ``clipnorm``, ``clipvalue``, ``global_clipnorm``, ``use_ema`` and what else
            ``hf.optimizers.Optimizer`` takes.

    >>> w = hf.Variable([1.0])
    >>> hf.optimizers.RMSprop(0.1, rho=0.75).apply_gradients([(hf.asarray([3.0]), w)])
    >>> w
    <Variable f32[1] cpu> [0.79999995]
    """

    _is_elementwise = True

    def __init__(
        self,
        learning_rate: Rate = 0.001,
        rho: float = 0.9,
        momentum: float = 0.0,
        epsilon: float = 1e-7,
        centered: bool = False,
        **options: Unpack[OptimizerOptions],
    ) -> None:
        super().__init__(learning_rate, **options)
        self.rho, self.momentum = float(rho), float(momentum)
        self.epsilon, self.centered = float(epsilon), bool(centered)
        self._in_unit(rho=rho)
        if not 0 <= momentum <= 1:
            raise self._wrong("momentum", momentum, "from 0 to 1")

    def create_slots(self, variable: Variable) -> None:
        self.add_slot(variable, "velocity")
        if self.centered:
            self.add_slot(variable, "average_gradient")
        if self.momentum:
            self.add_slot(variable, "momentum")

    def update_step(self, gradient: Tensor, variable: Variable, learning_rate: Tensor) -> None:
        velocity = self.get_slot(variable, "velocity")
        self.assign(velocity, self.rho * velocity + (1 - self.rho) * square(gradient))
        spread: Any = velocity
        if self.centered:
            average = self.get_slot(variable, "average_gradient")
            self.assign(average, self.rho * average + (1 - self.rho) * gradient)
            spread = velocity - square(average)
        step: Any = learning_rate * gradient * rsqrt(spread + self.epsilon)
        if self.momentum:
            momentum = self.get_slot(variable, "momentum")
            self.assign(momentum, self.momentum * momentum + step)
            step = momentum
        self.assign_sub(variable, step)
