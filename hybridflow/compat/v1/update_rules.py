"""Optimizers as TensorFlow 1 has them, where hybridflow's update otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hybridflow import optimizers
from hybridflow.array.elementwise import maximum, rsqrt, sign, sqrt
from hybridflow.core.tensor import Tensor as Value
from hybridflow.core.variable import Variable as Held
from hybridflow.eager.operands import cast
from hybridflow.optimizers.optimizer import Rate


class Momentum(optimizers.Optimizer):
    """Momentum as TensorFlow 1 has it: the learning rate is that of the step, not of the gradients behind it."""

    def __init__(self, learning_rate: Rate, momentum: object, nesterov: bool) -> None:
        super().__init__(learning_rate)
        self.momentum, self.nesterov = momentum, nesterov

    def create_slots(self, variable: Held) -> None:
        self.add_slot(variable, "Momentum")

    def update_step(self, gradient: Value, variable: Held, learning_rate: Value) -> None:
        slot = self.get_slot(variable, "Momentum")
        self.assign(slot, self.momentum * slot + gradient)
        step = gradient + self.momentum * slot if self.nesterov else slot
        self.assign_sub(variable, learning_rate * step)


class Adam(optimizers.Adam):
    """Adam whose powers of the betas are variables beside the averages, as they are in TensorFlow's checkpoints."""

    powers: Sequence[Held] = ()  # beta_1**t and beta_2**t, where t counts updates from 1 on

    def __init__(self, learning_rate: Rate, beta_1: float, beta_2: float, epsilon: float) -> None:
        # The betas as float32 has them: what is missing from an average must be what the powers say.
        super().__init__(learning_rate, float(np.float32(beta_1)), float(np.float32(beta_2)), epsilon)

    def powers_start(self) -> dict[str, float]:
        """The names of the powers, and what they start from."""
        return {"beta1_power": self.beta_1, "beta2_power": self.beta_2}

    def update_step(self, gradient: Value, variable: Held, learning_rate: Value) -> None:
        first, second = (cast(+power._read(), learning_rate.dtype) for power in self.powers)
        momentum, velocity = self._momentum(gradient, variable), self._velocity(gradient, variable)
        rate = learning_rate * sqrt(1.0 - second) / (1.0 - first)
        self.assign_sub(variable, momentum * rate / (sqrt(velocity) + self.epsilon))

    def apply(self, gradients: Sequence[Any], variables: Sequence[Held] | None = None) -> None:
        super().apply(gradients, variables)
        for power, beta in zip(self.powers, (self.beta_1, self.beta_2)):
            power.assign(power * beta)


class RMSProp(optimizers.RMSprop):
    """RMSProp that has a variable for the momentum where that is 0, too, as TensorFlow's checkpoints do."""

    def create_slots(self, variable: Held) -> None:
        super().create_slots(variable)
        if not self.momentum:
            self.add_slot(variable, "momentum")


def _nearest(x: Any, rate: Any, l1: float, l2: float) -> Any:
    """What a step towards 0 makes of elements, by as much as penalties of their size and of its square ask for."""
    return sign(x) * maximum(abs(x) - rate * l1, 0.0) / (1.0 + rate * l2)


class ProximalGradientDescent(optimizers.Optimizer):
    """Gradient descent whose penalties are taken into account behind the step.

    Source: Duchi and Singer, "Efficient Learning using Forward-Backward Splitting", 2009.
    """

    def __init__(self, learning_rate: Rate, l1: float, l2: float) -> None:
        super().__init__(learning_rate)
        self._l1, self._l2 = l1, l2

    def update_step(self, gradient: Value, variable: Held, learning_rate: Value) -> None:
        self.assign(variable, _nearest(variable - learning_rate * gradient, learning_rate, self._l1, self._l2))


class ProximalAdagrad(ProximalGradientDescent):
    """The same with a learning rate for each element, of the squares of its gradients."""

    def __init__(self, learning_rate: Rate, start: float, l1: float, l2: float) -> None:
        super().__init__(learning_rate, l1, l2)
        self._start = start

    def create_slots(self, variable: Held) -> None:
        self.add_slot(variable, "accumulator", self._start)

    def update_step(self, gradient: Value, variable: Held, learning_rate: Value) -> None:
        slot = self.get_slot(variable, "accumulator")
        self.assign(slot, slot + gradient * gradient)
        super().update_step(gradient, variable, learning_rate * rsqrt(slot))
