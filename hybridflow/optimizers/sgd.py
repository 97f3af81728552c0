"""SGD: gradient descent, with momentum if it is asked for."""

from __future__ import annotations

from typing import Unpack

from hybridflow.core.tensor import Tensor
from hybridflow.core.variable import Variable
from hybridflow.optimizers.optimizer import Optimizer, OptimizerOptions, Rate
from hybridflow.optimizers.sparse_update import SparseRows


class SGD(Optimizer):
    """Stochastic gradient descent (SGD): gradient descent, with momentum if that is not 0.

    ``velocity = momentum * velocity - learning_rate * gradient``, and variables move by the velocity; with ``nesterov``
    by ``momentum * velocity - learning_rate * gradient``.  Source: Sutskever, Martens, Dahl and Hinton, "On the
    importance of initialization and momentum in deep learning", 2013.  Other arguments are Optimizer's.

    Args:
        learning_rate: a number, a variable, a schedule, or a function without arguments.
        momentum: the decay rate of the running average.
        nesterov: whether the gradient is that of the next place.
        **options: ``weight_decay``, ``clipnorm``, ``clipvalue``, ``global_clipnorm``, ``use_ema`` and what else
            ``hf.optimizers.Optimizer`` takes.

    >>> w = hf.Variable([1.0, 2.0])
    >>> hf.optimizers.SGD(0.1).apply_gradients([(hf.asarray([1.0, 1.0]), w)])
    >>> w
    <Variable f32[2] cpu> [0.9 1.9]
    """

    _is_elementwise = True

    def __init__(
        self,
        learning_rate: Rate = 0.01,
        momentum: float = 0.0,
        nesterov: bool = False,
        **options: Unpack[OptimizerOptions],
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

    def update_rows(self, rows: SparseRows, variable: Variable, learning_rate: Tensor) -> None:
        rows.scatter(variable, rows.gather(variable) - learning_rate * rows.gradient)

    def _leaves_rows(self) -> bool:
        return super()._leaves_rows() and not self.momentum
