"""Ftrl: follow the regularized leader."""

from __future__ import annotations

from typing import Unpack

from hybridflow.array.elementwise import clip, pow, square
from hybridflow.core.tensor import Tensor
from hybridflow.core.variable import Variable
from hybridflow.optimizers.optimizer import Optimizer, OptimizerOptions, Rate


class Ftrl(Optimizer):
    """FTRL (follow the regularized leader), with learning rates per coordinate.

    It is for linear models with many sparse features.

    Source: McMahan et al., "Ad Click Prediction: a View from the Trenches", 2013, algorithm 1, with ``beta`` as there,
    ``l1_regularization_strength`` and ``l2_regularization_strength`` its lambdas, and ``l2_shrinkage`` added to the
    gradient only.  Other arguments are Optimizer's.

    Args:
        learning_rate: a number, a variable, a schedule, or a function without arguments.
        learning_rate_power: the power of accumulators, not above 0.
        initial_accumulator_value: what accumulators start from.
        l1_regularization_strength: the factor of absolute values.
        l2_regularization_strength: the factor of squares.
        l2_shrinkage_regularization_strength: the factor of squares beside the gradient.
        beta: what is added to the learning rate's divisor.
        **options: ``weight_decay``, ``clipnorm``, ``clipvalue``, ``global_clipnorm``, ``use_ema`` and what else
            ``hf.optimizers.Optimizer`` takes.

    >>> w = hf.Variable([1.0, 2.0])
    >>> hf.optimizers.Ftrl(0.1).apply_gradients([(hf.asarray([0.0, 0.0]), w)])
    >>> w
    <Variable f32[2] cpu> [0. 0.]
    """

    _is_elementwise = True

    def __init__(
        self,
        learning_rate: Rate = 0.001,
        learning_rate_power: float = -0.5,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        l2_shrinkage_regularization_strength: float = 0.0,
        beta: float = 0.0,
        **options: Unpack[OptimizerOptions],
    ) -> None:
        super().__init__(learning_rate, **options)
        self.learning_rate_power = float(learning_rate_power)
        self.initial_accumulator_value = float(initial_accumulator_value)
        self.l1_regularization_strength = float(l1_regularization_strength)
        self.l2_regularization_strength = float(l2_regularization_strength)
        self.l2_shrinkage_regularization_strength = float(l2_shrinkage_regularization_strength)
        self.beta = float(beta)
        if not learning_rate_power <= 0:
            raise self._wrong("learning_rate_power", learning_rate_power, "0 or less")
        for name, value in list(self._arguments().items())[1:]:
            if not value >= 0:
                raise self._wrong(name, value, "0 or more")

    def _arguments(self) -> dict[str, float]:
        rates = "l1_regularization_strength", "l2_regularization_strength", "l2_shrinkage_regularization_strength"
        names = "learning_rate_power", "initial_accumulator_value", *rates, "beta"
        return {name: getattr(self, name) for name in names}

    def create_slots(self, variable: Variable) -> None:
        self.add_slot(variable, "accumulator", initializer=self.initial_accumulator_value)
        self.add_slot(variable, "linear")

    def update_step(self, gradient: Tensor, variable: Variable, learning_rate: Tensor) -> None:
        accumulator, linear = self.get_slot(variable, "accumulator"), self.get_slot(variable, "linear")
        power, l1 = -self.learning_rate_power, self.l1_regularization_strength
        l2 = self.l2_regularization_strength + self.beta / (2.0 * learning_rate)
        shrinkage = self.l2_shrinkage_regularization_strength
        total = accumulator + square(gradient)
        grown = (pow(total, power) - pow(accumulator, power)) / learning_rate
        pulled = gradient + 2 * shrinkage * variable if shrinkage else gradient
        self.assign_add(linear, pulled - grown * variable)
        quadratic = pow(total, power) / learning_rate + 2 * l2
        self.assign(variable, (clip(linear, -l1, l1) - linear) / quadratic)
        self.assign(accumulator, total)
