"""Optimizers that follow the gradient, or its sign, with momentum: SGD and Lion."""

from __future__ import annotations

from typing import Any

from hybridflow.array.elementwise import sign
from hybridflow.core.tensor import Tensor
from hybridflow.core.variable import Variable
from hybridflow.optimizers.optimizer import Optimizer, Rate
from hybridflow.optimizers.rows import Rows


class SGD(Optimizer):
    """Stochastic gradient descent (SGD): gradient descent, with momentum if that is not 0.

    ``velocity = momentum * velocity - learning_rate * gradient``, and variables move by the velocity; with ``nesterov``
    by ``momentum * velocity - learning_rate * gradient``.  Source: Sutskever, Martens, Dahl and Hinton, "On the
    importance of initialization and momentum in deep learning", 2013.  Other arguments are Optimizer's.

    Args:
        learning_rate: a number, a variable, a schedule, or a function without arguments.
        momentum: how much of the running value is kept at each step.
        nesterov: whether the gradient is that of the next place.
        **options: ``weight_decay``, ``clipnorm``, ``clipvalue``, ``global_clipnorm``, ``use_ema`` and what else
            ``hf.optimizers.Optimizer`` takes.

    >>> w = hf.Variable([1.0, 2.0])
    >>> hf.optimizers.SGD(0.1).apply_gradients([(hf.asarray([1.0, 1.0]), w)])
    >>> w
    <Variable f32[2] cpu> [0.9 1.9]
    """

    def __init__(
        self, learning_rate: Rate = 0.01, momentum: float = 0.0, nesterov: bool = False, **options: Any
    ) -> None:
        super().__init__(learning_rate, **options)
        self.momentum, self.nesterov = float(momentum), bool(nesterov)
        if not 0 <= momentum <= 1:
            raise self._wrong("momentum", momentum, "from 0 to 1")

    def create_slots(self, variable: Variable) -> None:
        if self.momentum:
            self.add_slot(variable, "momentum")

    def update_step(self, gradient: Tensor, variable: Variable, learning_rate: Tensor) -> None:
        step = learning_rate * gradient
        if not self.momentum:
            self.assign_sub(variable, step)
            return
        velocity = self.get_slot(variable, "momentum")
        self.assign(velocity, self.momentum * velocity - step)
        self.assign_add(variable, self.momentum * velocity - step if self.nesterov else velocity)

    def update_rows(self, rows: Rows, variable: Variable, learning_rate: Tensor) -> None:
        rows.set(variable, rows.of(variable) - learning_rate * rows.gradient)

    def _leaves_rows(self) -> bool:
        return super()._leaves_rows() and not self.momentum


class Lion(Optimizer):
    """Lion: steps of one size, in the direction that the sign of gradient and momentum together gives.

    ``variable -= learning_rate * sign(beta_1 * momentum + (1 - beta_1) * gradient)``, then ``momentum = beta_2 *
    momentum + (1 - beta_2) * gradient``.  Source: Chen et al., "Symbolic Discovery of Optimization Algorithms", 2023.
    Other arguments are Optimizer's.

    Args:
        learning_rate: a number, a variable, a schedule, or a function without arguments.
        beta_1: how much of the mean of gradients is kept at each step.
        beta_2: how much of the mean of squared gradients is kept at each step.
        **options: ``weight_decay``, ``clipnorm``, ``clipvalue``, ``global_clipnorm``, ``use_ema`` and what else
            ``hf.optimizers.Optimizer`` takes.

    >>> w = hf.Variable([1.0, 2.0])
    >>> hf.optimizers.Lion(0.1).apply_gradients([(hf.asarray([5.0, -0.5]), w)])
    >>> w
    <Variable f32[2] cpu> [0.9 2.1]
    """

    def __init__(self, learning_rate: Rate = 0.001, beta_1: float = 0.9, beta_2: float = 0.99, **options: Any) -> None:
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
