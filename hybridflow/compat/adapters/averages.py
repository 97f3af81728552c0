"""``tf.train.ExponentialMovingAverage``."""

from __future__ import annotations

from typing import Any

import hybridflow as hf
from hybridflow.compat.export import tf_export
from hybridflow.core.context import suspended
from hybridflow.core.type_aliases import ArrayLike
from hybridflow.errors import ArgumentError


@tf_export("train.ExponentialMovingAverage")
class ExponentialMovingAverage:
    """``decay`` times the average plus the rest times the variable, at each ``apply``; the first average is the first
    value.  With ``num_updates`` the decay is at most ``(1 + n) / (10 + n)``."""

    def __init__(
        self,
        decay: Any,
        num_updates: ArrayLike | None = None,
        zero_debias: bool = False,
        name: str = "ExponentialMovingAverage",
    ) -> None:
        if zero_debias:
            raise ArgumentError("ExponentialMovingAverage", "there is no zero_debias here: averages begin as values.")
        self._decay, self._updates, self.name = decay, num_updates, name
        self._averages: dict[int, tuple[Any, Any]] = {}  # by id: the variable, and its average

    def apply(self, var_list: Any) -> None:
        """Move the averages of these variables."""
        decay = self._decay
        if self._updates is not None:
            count = hf.astype(hf.asarray(self._updates), hf.float32)
            decay = hf.minimum(hf.asarray(decay, hf.float32), (1.0 + count) / (10.0 + count))
        for variable in var_list:
            if id(variable) not in self._averages:
                with suspended():  # made once, be it in a function
                    average = hf.Variable(variable.value(), trainable=False)
                self._averages[id(variable)] = variable, average
            average = self._averages[id(variable)][1]
            average.assign_sub(hf.astype((1.0 - decay) * (average - variable), average.dtype))

    def average(self, var: object) -> Any:
        """The variable that holds the average of one, or None."""
        return self._averages.get(id(var), (None, None))[1]

    def average_name(self, var: Any) -> str:
        """What the average of a variable is called."""
        return f"{var.name}/{self.name}"
