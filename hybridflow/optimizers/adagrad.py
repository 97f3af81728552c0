"""Adagrad: steps by the sum of squared gradients."""

from __future__ import annotations

from typing import Unpack

from hybridflow.array.elementwise import sqrt, square
from hybridflow.core.tensor import Tensor
from hybridflow.core.variable import Variable
from hybridflow.optimizers.optimizer import Optimizer, OptimizerOptions, Rate
from hybridflow.optimizers.sparse_update import SparseRows


class Adagrad(Optimizer):
    """Adagrad: ``accumulator += gradient**2``; ``variable -= learning_rate * gradient / sqrt(accumulator + epsilon)``.

    Source: Duchi, Hazan and Singer, "Adaptive Subgradient Methods", 2011.  Other arguments are Optimizer's.

    Args:
        learning_rate: a number, a variable, a schedule, or a function without arguments.
        initial_accumulator_value: what accumulators start from.
        epsilon: a small number that keeps divisions finite.
        **options: ``weight_decay``, ``clipnorm``, ``clipvalue``, ``global_clipnorm``, ``use_ema`` and what else
            ``hf.optimizers.Optimizer`` takes.

    >>> w = hf.Variable([1.0, 2.0])
    >>> hf.optimizers.Adagrad(0.1, initial_accumulator_value=0.0).apply_gradients([(hf.asarray([5.0, -5.0]), w)])
    >>> w
    <Variable f32[2] cpu> [0.9 2.1]
    """

    _is_elementwise = True

    def __init__(
        self,
        learning_rate: Rate = 0.001,
        initial_accumulator_value: float = 0.1,
        epsilon: float = 1e-7,
        **options: Unpack[OptimizerOptions],
    ) -> None:
        super().__init__(learning_rate, **options)
        self.initial_accumulator_value, self.epsilon = float(initial_accumulator_value), float(epsilon)
        if not initial_accumulator_value >= 0:
            raise self._wrong("initial_accumulator_value", initial_accumulator_value, "0 or more")

    def create_slots(self, variable: Variable) -> None:
        self.add_slot(variable, "accumulator", initializer=self.initial_accumulator_value)

    def update_step(self, gradient: Tensor, variable: Variable, learning_rate: Tensor) -> None:
        accumulator = self.get_slot(variable, "accumulator")
        self.assign_add(accumulator, square(gradient))
        self.assign_sub(variable, learning_rate * gradient / sqrt(accumulator + self.epsilon))

    def update_rows(self, rows: SparseRows, variable: Variable, learning_rate: Tensor) -> None:
        accumulator = self.get_slot(variable, "accumulator")
        sums = rows.gather(accumulator) + square(rows.gradient)
        rows.scatter(accumulator, sums)
        rows.scatter(variable, rows.gather(variable) - learning_rate * rows.gradient / sqrt(sums + self.epsilon))

    def _leaves_rows(self) -> bool:
        """With neither a start nor an epsilon 0 is divided by 0."""
        return super()._leaves_rows() and self.epsilon > 0
