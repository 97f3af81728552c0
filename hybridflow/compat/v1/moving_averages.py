"""Averages of variables that follow them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hybridflow.compat.export import TensorLike
from hybridflow.compat.v1.functions import TABLE
from hybridflow.compat.v1.graph import default_graph
from hybridflow.compat.v1.grouping import group
from hybridflow.compat.v1.nodes import Operation, Tensor
from hybridflow.compat.v1.variable_functions import trainable_variables
from hybridflow.compat.v1.variables import AVERAGED, GLOBAL, Variable, state_variable
from hybridflow.compiler.ir import dtypes


class ExponentialMovingAverage:
    """Averages of variables that follow them: ``average -= (1 - decay) * (average - variable)``.

    With ``num_updates`` the decay is at most ``(1 + n) / (10 + n)``.  Averages of variables begin with their values,
    those of other tensors with 0, of which ``zero_debias`` frees them.
    """

    def __init__(
        self,
        decay: float,
        num_updates: TensorLike | None = None,
        zero_debias: bool = False,
        name: str = "ExponentialMovingAverage",
    ) -> None:
        self._decay, self._updates, self._name = decay, num_updates, name
        self._zero_debias = zero_debias
        self._averages: dict[Any, Variable] = {}
        self._biased: dict[Any, tuple[Variable, Variable]] = {}  # averages from 0 on, and how often they moved

    def apply(self, var_list: Iterable[Any] | None = None) -> Operation:
        """The operation that moves the averages."""
        chosen = list(trainable_variables() if var_list is None else var_list)
        decay: Any = self._decay
        if self._updates is not None:
            count = TABLE["cast"](self._updates, dtypes.float32)
            decay = TABLE["minimum"](decay, (1.0 + count) / (10.0 + count))
        moves = []
        for variable in chosen:
            if variable not in self._averages:
                self._averages[variable] = self._create_average(variable)
                if isinstance(variable, Variable):
                    default_graph().add_to_collection(AVERAGED, variable)
            average = self._averages[variable]
            if variable in self._biased:
                moves.append(self._freed(variable, average, decay))
            else:
                moves.append(average.assign_sub((1.0 - decay) * (average - variable)))
        return group(*moves, name=self._name)

    def _create_average(self, variable: Variable) -> Variable:
        graph = default_graph()
        with graph.name_scope(None), graph.control_dependencies(None):
            if isinstance(variable, Variable):
                return Variable(variable.initialized_value(), False, name=f"{variable.op.name}/{self._name}")
            name, extents, kind = f"{variable.op.name}/{self._name}", tuple(variable.shape.as_list()), variable.dtype
            if self._zero_debias:
                biased = state_variable(f"{name}/biased", extents, kind, 0.0)
                self._biased[variable] = biased, state_variable(f"{name}/local_step", (), dtypes.float32, 0.0)
            return state_variable(name, extents, kind, 0.0)

    def _freed(self, variable: Any, average: Variable, decay: Any) -> Tensor:
        """The average without its beginning, which was 0 and no value of the variable's."""
        biased, steps = self._biased[variable]
        moved = biased.assign_sub((1.0 - decay) * (biased - variable))
        return average.assign(moved / (1.0 - TABLE["pow"](decay, steps.assign_add(1.0))))

    def average(self, var: object) -> Any:
        return self._averages.get(var)

    def average_name(self, var: Variable) -> str:
        return f"{var.op.name}/{self._name}"

    def variables_to_restore(self, moving_avg_variables: object = None) -> dict[str, Variable]:
        """What a saver takes to restore averages into variables."""
        result = {self.average_name(v): v for v in trainable_variables()}
        for variable in default_graph().get_collection(GLOBAL):
            if variable not in trainable_variables() and variable not in self._averages.values():
                result[variable.op.name] = variable
        return result
