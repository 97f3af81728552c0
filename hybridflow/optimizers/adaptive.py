"""Optimizers that divide by what squared gradients have added up to: Adagrad, Adadelta, RMSprop and Ftrl."""

from __future__ import annotations

from typing import Any

from hybridflow.array.elementwise import clip, pow, rsqrt, sqrt, square
from hybridflow.core.tensor import Tensor
from hybridflow.core.variable import Variable
from hybridflow.optimizers.optimizer import Optimizer, Rate
from hybridflow.optimizers.rows import Rows


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

    def __init__(
        self,
        learning_rate: Rate = 0.001,
        initial_accumulator_value: float = 0.1,
        epsilon: float = 1e-7,
        **options: Any,
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

    def update_rows(self, rows: Rows, variable: Variable, learning_rate: Tensor) -> None:
        accumulator = self.get_slot(variable, "accumulator")
        sums = rows.of(accumulator) + square(rows.gradient)
        rows.set(accumulator, sums)
        rows.set(variable, rows.of(variable) - learning_rate * rows.gradient / sqrt(sums + self.epsilon))

    def _leaves_rows(self) -> bool:
        """With neither a start nor an epsilon 0 is divided by 0."""
        return super()._leaves_rows() and self.epsilon > 0


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

    def __init__(self, learning_rate: Rate = 0.001, rho: float = 0.95, epsilon: float = 1e-7, **options: Any) -> None:
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


class RMSprop(Optimizer):
    """RMSprop: steps ``learning_rate * gradient / sqrt(velocity + epsilon)``, velocity the moving average of squared
    gradients.

    ``rho`` is what of an average stays.  With ``centered`` the square of the gradient's moving average is taken from
    the velocity; with ``momentum`` the steps add up like SGD's.  Source: Hinton, "Neural Networks for Machine
    Learning", lecture 6e, 2012.  Other arguments are Optimizer's.

    Args:
        learning_rate: a number, a variable, a schedule, or a function without arguments.
        rho: how much of the running mean is kept at each step.
        momentum: how much of the running value is kept at each step.
        epsilon: a small number that keeps divisions finite.
        centered: whether squares are taken about the running mean.
        **options: ``weight_decay``, ``clipnorm``, ``clipvalue``, ``global_clipnorm``, ``use_ema`` and what else
            ``hf.optimizers.Optimizer`` takes.

    >>> w = hf.Variable([1.0])
    >>> hf.optimizers.RMSprop(0.1, rho=0.75).apply_gradients([(hf.asarray([3.0]), w)])
    >>> w
    <Variable f32[1] cpu> [0.79999995]
    """

    def __init__(
        self,
        learning_rate: Rate = 0.001,
        rho: float = 0.9,
        momentum: float = 0.0,
        epsilon: float = 1e-7,
        centered: bool = False,
        **options: Any,
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

    def __init__(
        self,
        learning_rate: Rate = 0.001,
        learning_rate_power: float = -0.5,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        l2_shrinkage_regularization_strength: float = 0.0,
        beta: float = 0.0,
        **options: Any,
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
