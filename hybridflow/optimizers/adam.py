"""Adam: adaptive moment estimation."""

from __future__ import annotations

from typing import Any, Unpack

from hybridflow.array.elementwise import maximum, sqrt
from hybridflow.core.tensor import Tensor
from hybridflow.core.variable import Variable
from hybridflow.eager.operands import cast
from hybridflow.optimizers.adam_base import _AdamBase
from hybridflow.optimizers.optimizer import OptimizerOptions, Rate


class Adam(_AdamBase):
    """Adam: ``variable -= learning_rate * momentum / (sqrt(velocity) + epsilon)``, averages corrected for their start
    at 0.

    ``epsilon`` is the paper's epsilon-hat, as in TensorFlow; with ``amsgrad`` the largest velocity so far takes the
    place of the last.  Sources: Kingma and Ba, "Adam: A Method for Stochastic Optimization", 2015; Reddi, Kale and
    Kumar, "On the Convergence of Adam and Beyond", 2018.  Other arguments are Optimizer's.

    Args:
        learning_rate: a number, a variable, a schedule, or a function without arguments.
        beta_1: the decay rate of the mean of gradients.
        beta_2: the decay rate of the mean of squared gradients.
        epsilon: a small number that keeps divisions finite.
        amsgrad: whether the largest mean of squares so far is used.
        **options: ``weight_decay``, ``clipnorm``, ``clipvalue``, ``global_clipnorm``, ``use_ema`` and what else
            ``hf.optimizers.Optimizer`` takes.

    >>> w = hf.Variable([1.0, 2.0])
    >>> hf.optimizers.Adam(0.1).apply_gradients([(hf.asarray([5.0, -0.5]), w)])
    >>> w
    <Variable f32[2] cpu> [0.90000004 2.0999994 ]
    """

    _is_elementwise = True

    def __init__(
        self,
        learning_rate: Rate = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
        amsgrad: bool = False,
        **options: Unpack[OptimizerOptions],
    ) -> None:
        super().__init__(learning_rate, beta_1, beta_2, epsilon, **options)
        self.amsgrad = bool(amsgrad)

    def create_slots(self, variable: Variable) -> None:
        super().create_slots(variable)
        if self.amsgrad:
            self.add_slot(variable, "velocity_max")

    def update_step(self, gradient: Tensor, variable: Variable, learning_rate: Tensor) -> None:
        correction = sqrt(self._missing(self.beta_2)) / self._missing(self.beta_1)
        momentum: Any = self._momentum(gradient, variable)
        velocity: Any = self._velocity(gradient, variable)
        if self.amsgrad:
            largest = self.get_slot(variable, "velocity_max")
            self.assign(largest, maximum(largest, velocity))
            velocity = largest
        rate = learning_rate * cast(correction, learning_rate.dtype)
        self.assign_sub(variable, rate * momentum / (sqrt(velocity) + self.epsilon))
