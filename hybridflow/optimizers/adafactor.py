"""Adafactor: second moments of matrices by rows and columns."""

from __future__ import annotations

from typing import Any, Unpack

from hybridflow.array.creation import zeros
from hybridflow.array.elementwise import maximum, minimum, pow, sqrt, square
from hybridflow.array.reductions import mean
from hybridflow.array.shapes import expand_dims
from hybridflow.core.tensor import Tensor
from hybridflow.core.variable import Variable
from hybridflow.eager.operands import as_tensor, cast
from hybridflow.optimizers.optimizer import Optimizer, OptimizerOptions, Rate


class Adafactor(Optimizer):
    """Adafactor: steps over the root of averages of squared gradients, with less memory than Adam takes.

    For matrices only the averages of rows and columns are kept. Steps are relative to the root mean square of the
    variable (at least ``epsilon_2``), and their own is at most ``clip_threshold``. The learning rate is at most 1 /
    sqrt(t): with ``relative_step`` or, as in Keras, without. Averages keep ``1 - t**beta_2_decay``; ``epsilon_1`` is
    added to squares.

    Source: Shazeer and Stern, "Adafactor: Adaptive Learning Rates with Sublinear Memory Cost", 2018. Other arguments
    are Optimizer's.

    Args:
        learning_rate: a number, a variable, a schedule, or a function without arguments.
        beta_2_decay: how fast the share of old squares falls.
        epsilon_1: a small number beside squared gradients.
        epsilon_2: a small number beside the scale of weights.
        clip_threshold: the largest root mean square of an update.
        relative_step: whether the learning rate follows from the number of steps.
        **options: ``weight_decay``, ``clipnorm``, ``clipvalue``, ``global_clipnorm``, ``use_ema`` and what else
            ``hf.optimizers.Optimizer`` takes.

    >>> w = hf.Variable([[1.0, 2.0], [3.0, 4.0]])
    >>> hf.optimizers.Adafactor(0.1).apply_gradients([(hf.asarray([[5.0, -0.5], [2.0, 1.0]]), w)])
    >>> w
    <Variable f32[2,2] cpu>
    [[0.788812  2.1017215]
     [2.8101656 3.542818 ]]
    """

    def __init__(
        self,
        learning_rate: Rate = 0.001,
        beta_2_decay: float = -0.8,
        epsilon_1: float = 1e-30,
        epsilon_2: float = 1e-3,
        clip_threshold: float = 1.0,
        relative_step: bool = True,
        **options: Unpack[OptimizerOptions],
    ) -> None:
        super().__init__(learning_rate, **options)
        self.beta_2_decay, self.relative_step = float(beta_2_decay), bool(relative_step)
        self.epsilon_1, self.epsilon_2 = float(epsilon_1), float(epsilon_2)
        self.clip_threshold = float(clip_threshold)
        if not beta_2_decay <= 0:
            raise self._wrong("beta_2_decay", beta_2_decay, "0 or less")
        for name, value in (("epsilon_1", epsilon_1), ("epsilon_2", epsilon_2)):
            if not value >= 0:
                raise self._wrong(name, value, "0 or more")
        if not clip_threshold > 0:
            raise self._wrong("clip_threshold", clip_threshold, "positive")

    def create_slots(self, variable: Variable) -> None:
        shape = variable.shape
        if len(shape) < 2:
            self.add_slot(variable, "velocity")
            return
        self.add_slot(variable, "rows", zeros(shape[:-1]))
        self.add_slot(variable, "columns", zeros((*shape[:-2], shape[-1])))

    def update_step(self, gradient: Tensor, variable: Variable, learning_rate: Tensor) -> None:
        step = cast(as_tensor(self.iterations, self.name), gradient.dtype) + 1.0
        most = 1.0 / sqrt(step)
        rate = minimum(learning_rate, most)
        value = cast(as_tensor(variable, self.name), gradient.dtype)
        size = maximum(_root_mean_square(value), self.epsilon_2) * rate
        decay = 1.0 - pow(step, self.beta_2_decay)
        update = gradient / sqrt(self._averages(square(gradient) + self.epsilon_1, variable, decay))
        update = update / maximum(_root_mean_square(update) / self.clip_threshold, 1.0)
        self.assign_sub(variable, size * update)

    def _averages(self, squares: Tensor, variable: Variable, kept: Tensor) -> Any:
        """The averages of squared gradients: for matrices what those of rows and columns say of each element."""
        if squares.ndim < 2:
            velocity = self.get_slot(variable, "velocity")
            self.assign(velocity, kept * velocity + (1.0 - kept) * squares)
            return velocity
        rows, columns = self.get_slot(variable, "rows"), self.get_slot(variable, "columns")
        self.assign(rows, kept * rows + (1.0 - kept) * mean(squares, axis=-1))
        self.assign(columns, kept * columns + (1.0 - kept) * mean(squares, axis=-2))
        shares = rows / mean(rows, axis=-1, keepdims=True)
        return expand_dims(shares, axis=-1) * expand_dims(columns, axis=-2)


def _root_mean_square(x: Tensor) -> Tensor:
    return sqrt(mean(square(x)))
