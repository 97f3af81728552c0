"""Nadam: Adam with Nesterov momentum."""

from __future__ import annotations

from typing import Any

from hybridflow.array.elementwise import pow, sqrt
from hybridflow.compiler.ir import dtypes
from hybridflow.core.context import suspended
from hybridflow.core.tensor import Tensor
from hybridflow.core.variable import Variable
from hybridflow.eager.operands import as_tensor, cast
from hybridflow.optimizers.adam_base import _AdamBase


class Nadam(_AdamBase):
    """Nadam: Adam that looks ahead as Nesterov's momentum does.

    Source: Dozat, "Incorporating Nesterov Momentum into Adam", 2015, with the momentum's warming up by 0.96.

    Args:
        *args: positional arguments, which are passed on.
        **options: ``weight_decay``, ``clipnorm``, ``clipvalue``, ``global_clipnorm``, ``use_ema`` and what else
            ``hf.optimizers.Optimizer`` takes.

    >>> w = hf.Variable([1.0, 2.0])
    >>> hf.optimizers.Nadam(0.1).apply_gradients([(hf.asarray([5.0, -0.5]), w)])
    >>> w
    <Variable f32[2] cpu> [0.8937212 2.1062787]
    """

    _is_elementwise = True

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        with suspended():  # the product of the momentum's weights in all updates so far
            self._product = Variable(1.0, trainable=False, dtype=dtypes.float64, name="momentum_product")

    def named_state(self) -> dict[str, Variable]:
        return super().named_state() | {"momentum_product": self._product}

    def _weight(self, step: Tensor) -> Tensor:
        """The momentum's share in the update of that number."""
        return self.beta_1 * (1.0 - 0.5 * pow(as_tensor(0.96, self.name, dtypes.float64), step))

    def begin_update(self) -> None:
        self._product.assign(self._product * self._weight(self._step_number()))

    def update_step(self, gradient: Tensor, variable: Variable, learning_rate: Tensor) -> None:
        now, then = self._weight(self._step_number()), self._weight(self._step_number() + 1.0)
        dtype = learning_rate.dtype
        of_momentum = cast(then / (1.0 - self._product * then), dtype)
        of_gradient = cast((1.0 - now) / (1.0 - self._product), dtype)
        momentum, velocity = self._momentum(gradient, variable), self._velocity(gradient, variable)
        ahead = of_momentum * momentum + of_gradient * gradient
        spread = sqrt(velocity / cast(self._missing(self.beta_2), dtype)) + self.epsilon
        self.assign_sub(variable, learning_rate * ahead / spread)
