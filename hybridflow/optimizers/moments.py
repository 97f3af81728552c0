"""Optimizers that keep moving averages of gradients and of their squares: Adam and its relatives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hybridflow.array.elementwise import abs, logical_and, maximum, not_equal, pow, sqrt, square, where
from hybridflow.array.reductions import any, sum
from hybridflow.compiler.ir import dtypes
from hybridflow.core.context import suspended
from hybridflow.core.tensor import Tensor
from hybridflow.core.variable import Variable
from hybridflow.eager.operands import as_tensor, cast
from hybridflow.optimizers.optimizer import Optimizer, Rate
from hybridflow.optimizers.rows import Rows


class _OfMoments(Optimizer):
    """What they share: ``beta_1`` and ``beta_2`` are what of the averages stays, ``epsilon`` keeps divisors off 0."""

    def __init__(
        self,
        learning_rate: Rate = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
        **options: Any,
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


class Adam(_OfMoments):
    """Adam: ``variable -= learning_rate * momentum / (sqrt(velocity) + epsilon)``, averages corrected for their start
    at 0.

    ``epsilon`` is the paper's epsilon-hat, as in TensorFlow; with ``amsgrad`` the largest velocity so far takes the
    place of the last.  Sources: Kingma and Ba, "Adam: A Method for Stochastic Optimization", 2015; Reddi, Kale and
    Kumar, "On the Convergence of Adam and Beyond", 2018.  Other arguments are Optimizer's.

    Args:
        learning_rate: a number, a variable, a schedule, or a function without arguments.
        beta_1: how much of the mean of gradients is kept at each step.
        beta_2: how much of the mean of squared gradients is kept at each step.
        epsilon: a small number that keeps divisions finite.
        amsgrad: whether the largest mean of squares so far is used.
        **options: ``weight_decay``, ``clipnorm``, ``clipvalue``, ``global_clipnorm``, ``use_ema`` and what else
            ``hf.optimizers.Optimizer`` takes.

    >>> w = hf.Variable([1.0, 2.0])
    >>> hf.optimizers.Adam(0.1).apply_gradients([(hf.asarray([5.0, -0.5]), w)])
    >>> w
    <Variable f32[2] cpu> [0.90000004 2.0999994 ]
    """

    def __init__(
        self,
        learning_rate: Rate = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
        amsgrad: bool = False,
        **options: Any,
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


class LazyAdam(Adam):
    """Lazy Adam.

    Adam for tables of which a step looks up a few rows: rows whose gradient is 0 stay as they are, averages and all.

    Adam itself moves every row in each step, for its averages fade: the whole table is read and written.  Here what a
    step costs depends on the rows that it looks up.  A row is what one index of the first axis has.  Arguments are
    Adam's.  torch.optim.SparseAdam does the same.

    Args:
        learning_rate: a number, a variable, a schedule, or a function without arguments.
        beta_1: how much of the mean of gradients is kept at each step.
        beta_2: how much of the mean of squared gradients is kept at each step.
        epsilon: a small number that keeps divisions finite.
        amsgrad: whether the largest mean of squares so far is used.
        **options: ``weight_decay``, ``clipnorm``, ``clipvalue``, ``global_clipnorm``, ``use_ema`` and what else
            ``hf.optimizers.Optimizer`` takes.

    >>> w = hf.Variable([[1.0, 2.0], [3.0, 4.0]])
    >>> hf.optimizers.LazyAdam(0.1).apply_gradients([(hf.asarray([[5.0, 0.0], [0.0, 0.0]]), w)])
    >>> w.tolist()
    [[0.9000000357627869, 2.0], [3.0, 4.0]]
    """

    def update_step(self, gradient: Tensor, variable: Variable, learning_rate: Tensor) -> None:
        own = [variable, *self._slots(variable)]
        before = [cast(as_tensor(v, self.name), gradient.dtype) for v in own]
        for v, value in zip(own, self._moved(gradient, before, learning_rate)):
            self.assign(v, value)

    def update_rows(self, rows: Rows, variable: Variable, learning_rate: Tensor) -> None:
        own = [variable, *self._slots(variable)]
        before = [cast(rows.of(v), rows.gradient.dtype) for v in own]
        for v, value in zip(own, self._moved(rows.gradient, before, learning_rate)):
            rows.set(v, value)

    def _slots(self, variable: Variable) -> list[Variable]:
        names = ["momentum", "velocity"] + ["velocity_max"] * self.amsgrad
        return [self.get_slot(variable, name) for name in names]

    def _moved(self, gradient: Tensor, before: Sequence[Tensor], learning_rate: Tensor) -> list[Tensor]:
        """What values and slots of some rows become."""
        correction = sqrt(self._missing(self.beta_2)) / self._missing(self.beta_1)
        value, momentum, velocity, *largest = before
        momentum = momentum + (gradient - momentum) * (1 - self.beta_1)
        velocity = velocity + (square(gradient) - velocity) * (1 - self.beta_2)
        largest = [maximum(x, velocity) for x in largest]
        rate = learning_rate * cast(correction, learning_rate.dtype)
        value = value - rate * momentum / (sqrt(largest[0] if largest else velocity) + self.epsilon)
        is_moved = any(not_equal(gradient, 0), axis=tuple(range(1, gradient.ndim)), keepdims=True)
        return [where(is_moved, new, old) for new, old in zip((value, momentum, velocity, *largest), before)]


class AdamW(Adam):
    """AdamW: Adam with weight decay apart from the gradient.

    Source: Loshchilov and Hutter, "Decoupled Weight Decay Regularization", 2019.

    Args:
        learning_rate: a number, a variable, a schedule, or a function without arguments.
        weight_decay: which part of the weights is taken off at each step, times the learning rate.
        *args: positional arguments that are handed on.
        **options: ``weight_decay``, ``clipnorm``, ``clipvalue``, ``global_clipnorm``, ``use_ema`` and what else
            ``hf.optimizers.Optimizer`` takes.

    >>> w = hf.Variable([1.0, 2.0])
    >>> hf.optimizers.AdamW(0.1, weight_decay=0.5).apply_gradients([(hf.asarray([5.0, -0.5]), w)])
    >>> w
    <Variable f32[2] cpu> [0.85      1.9999993]
    """

    def __init__(self, learning_rate: Rate = 0.001, weight_decay: float = 0.004, *args: Any, **options: Any) -> None:
        super().__init__(learning_rate, *args, weight_decay=weight_decay, **options)


class Adamax(_OfMoments):
    """Adamax: Adam with the largest gradient, fading, in the place of the root of the velocity.

    Source: Kingma and Ba, "Adam: A Method for Stochastic Optimization", 2015, section 7.1.

    Args:
        learning_rate: a number, a variable, a schedule, or a function without arguments.
        beta_1: how much of the mean of gradients is kept at each step.
        beta_2: how much of the mean of squared gradients is kept at each step.
        epsilon: a small number that keeps divisions finite.
        **options: ``weight_decay``, ``clipnorm``, ``clipvalue``, ``global_clipnorm``, ``use_ema`` and what else
            ``hf.optimizers.Optimizer`` takes.

    >>> w = hf.Variable([1.0, 2.0])
    >>> hf.optimizers.Adamax(0.1).apply_gradients([(hf.asarray([5.0, -0.5]), w)])
    >>> w
    <Variable f32[2] cpu> [0.9 2.1]
    """

    def update_step(self, gradient: Tensor, variable: Variable, learning_rate: Tensor) -> None:
        momentum = self._momentum(gradient, variable)
        largest = self.get_slot(variable, "velocity")
        self.assign(largest, maximum(self.beta_2 * largest, abs(gradient)))
        rate = learning_rate / cast(self._missing(self.beta_1), learning_rate.dtype)
        self.assign_sub(variable, rate * momentum / (largest + self.epsilon))


class Nadam(_OfMoments):
    """Nadam: Adam that looks ahead as Nesterov's momentum does.

    Source: Dozat, "Incorporating Nesterov Momentum into Adam", 2015, with the momentum's warming up by 0.96.

    Args:
        *args: positional arguments that are handed on.
        **options: ``weight_decay``, ``clipnorm``, ``clipvalue``, ``global_clipnorm``, ``use_ema`` and what else
            ``hf.optimizers.Optimizer`` takes.

    >>> w = hf.Variable([1.0, 2.0])
    >>> hf.optimizers.Nadam(0.1).apply_gradients([(hf.asarray([5.0, -0.5]), w)])
    >>> w
    <Variable f32[2] cpu> [0.8937212 2.1062787]
    """

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


class Lamb(_OfMoments):
    """LAMB: layer-wise adaptive moments.

    Adam's direction, with a step for each variable in proportion to its norm: for very large batches.

    Source: You et al., "Large Batch Optimization for Deep Learning: Training BERT in 76 minutes", 2020.

    Args:
        learning_rate: a number, a variable, a schedule, or a function without arguments.
        beta_1: how much of the mean of gradients is kept at each step.
        beta_2: how much of the mean of squared gradients is kept at each step.
        epsilon: a small number that keeps divisions finite.
        **options: ``weight_decay``, ``clipnorm``, ``clipvalue``, ``global_clipnorm``, ``use_ema`` and what else
            ``hf.optimizers.Optimizer`` takes.

    >>> w = hf.Variable([3.0, 4.0])
    >>> hf.optimizers.Lamb(0.1).apply_gradients([(hf.asarray([5.0, 0.0]), w)])
    >>> w
    <Variable f32[2] cpu> [2.5 4. ]
    """

    def update_step(self, gradient: Tensor, variable: Variable, learning_rate: Tensor) -> None:
        dtype = learning_rate.dtype
        momentum = self._momentum(gradient, variable) / cast(self._missing(self.beta_1), dtype)
        velocity = self._velocity(gradient, variable) / cast(self._missing(self.beta_2), dtype)
        direction = momentum / (sqrt(velocity) + self.epsilon)
        own, step = sqrt(sum(square(cast(as_tensor(variable, self.name), dtype)))), sqrt(sum(square(direction)))
        trust = where(logical_and(own > 0, step > 0), own / step, 1.0)
        self.assign_sub(variable, learning_rate * trust * direction)
