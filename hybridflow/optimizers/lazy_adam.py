"""LazyAdam: Adam that updates rows of embeddings with a gradient alone."""

from __future__ import annotations

from collections.abc import Sequence

from hybridflow.array.elementwise import maximum, not_equal, sqrt, square, where
from hybridflow.array.reductions import any
from hybridflow.core.tensor import Tensor
from hybridflow.core.variable import Variable
from hybridflow.eager.operands import as_tensor, cast
from hybridflow.optimizers.adam import Adam
from hybridflow.optimizers.sparse_update import SparseRows


class LazyAdam(Adam):
    """Lazy Adam.

    Adam for tables of which a step looks up a few rows: rows whose gradient is 0 stay as they are, averages and all.

    Adam itself moves every row in each step, for its averages fade: the whole table is read and written.  Here what a
    step costs depends on the rows that it looks up.  A row is what one index of the first axis has.  Arguments are
    Adam's.  torch.optim.SparseAdam does the same.

    Args:
        learning_rate: a number, a variable, a schedule, or a function without arguments.
        beta_1: the decay rate of the mean of gradients.
        beta_2: the decay rate of the mean of squared gradients.
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
        state = [variable, *self._slots(variable)]
        before = [cast(as_tensor(v, self.name), gradient.dtype) for v in state]
        for v, value in zip(state, self._moved(gradient, before, learning_rate)):
            self.assign(v, value)

    def update_rows(self, rows: SparseRows, variable: Variable, learning_rate: Tensor) -> None:
        state = [variable, *self._slots(variable)]
        before = [cast(rows.gather(v), rows.gradient.dtype) for v in state]
        for v, value in zip(state, self._moved(rows.gradient, before, learning_rate)):
            rows.scatter(v, value)

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
