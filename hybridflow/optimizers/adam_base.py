"""What optimizers of the Adam family share: running averages of gradients and of their squares."""

from __future__ import annotations

from typing import Unpack

from hybridflow.array.elementwise import pow, square
from hybridflow.compiler.ir import dtypes
from hybridflow.core.tensor import Tensor
from hybridflow.core.variable import Variable
from hybridflow.eager.operands import as_tensor, cast
from hybridflow.optimizers.optimizer import Optimizer, OptimizerOptions, Rate


class _AdamBase(Optimizer):
    """What they share: ``beta_1`` and ``beta_2`` are what of the averages stays, ``epsilon`` keeps divisors off 0."""

    def __init__(
        self,
        learning_rate: Rate = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
        **options: Unpack[OptimizerOptions],
    ) -> None:
        super().__init__(learning_rate, **options)
        self.beta_1, self.beta_2, self.epsilon = float(beta_1), float(beta_2), float(epsilon)
        self._in_unit(beta_1=beta_1, beta_2=beta_2)
        if not epsilon >= 0:
            raise self._wrong("epsilon", epsilon, "0 or more")

    def create_slots(self, variable: Variable) -> None:
        self.add_slot(variable, "momentum")
        self.add_slot(variable, "velocity")

    def _step_number(self) -> Tensor:
        """The number of this update, from 1 on, as float64: powers of betas near 1 are subtracted from 1."""
        return cast(as_tensor(self.iterations, self.name), dtypes.float64) + 1.0

    def _missing(self, beta: float) -> Tensor:
        """What a moving average that started at zero lacks: ``1 - beta**t``."""
        return 1.0 - pow(as_tensor(beta, self.name, dtypes.float64), self._step_number())

    def _momentum(self, gradient: Tensor, variable: Variable) -> Variable:
        momentum = self.get_slot(variable, "momentum")
        self.assign_add(momentum, (gradient - momentum) * (1 - self.beta_1))
        return momentum

    def _velocity(self, gradient: Tensor, variable: Variable) -> Variable:
        velocity = self.get_slot(variable, "velocity")
        self.assign_add(velocity, (square(gradient) - velocity) * (1 - self.beta_2))
        return velocity
