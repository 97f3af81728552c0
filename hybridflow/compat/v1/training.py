"""``tf.train``: optimizers as operations of graphs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from hybridflow import optimizers
from hybridflow.array.creation import zeros
from hybridflow.compat.v1.constants import convert_to_tensor
from hybridflow.compat.v1.derivatives import gradients
from hybridflow.compat.v1.graph import default_graph
from hybridflow.compat.v1.graph_stack import computing
from hybridflow.compat.v1.nodes import Operation
from hybridflow.compat.v1.recording import is_symbolic
from hybridflow.compat.v1.update_rules import Adam, Momentum, ProximalAdagrad, ProximalGradientDescent, RMSProp
from hybridflow.compat.v1.variable_functions import trainable_variables
from hybridflow.compat.v1.variables import Variable, state_variable
from hybridflow.compiler.ir import dtypes
from hybridflow.core.context import suspended
from hybridflow.core.variable import Variable as Held


class Optimizer:
    """The base of optimizers: they compute gradients and apply them, as operations of the graph.

    ``make(rate)`` is the optimizer of hybridflow's that does the work, with a learning rate.  Its state is held in
    variables of the graph, one for each slot.
    """

    GATE_NONE, GATE_OP, GATE_GRAPH = 0, 1, 2
    _starts: dict[str, float] = {}  # of slots, where they are others than hybridflow's
    _slot_names: dict[str, str] = {}  # TensorFlow's names of slots, and hybridflow's

    def __init__(self, learning_rate: object, make: Callable[[Any], Any], name: str) -> None:
        self._rate, self._make, self._name = learning_rate, make, name
        self._slots: dict[Variable, dict[str, Variable]] = {}
        self._calls = _Calls(name)
        self._powers: list[Variable] | None = None  # of the betas of Adam

    def as_optimizer(self) -> Any:
        """The optimizer that Keras's models train with."""
        return self._make(self._rate)

    def get_name(self) -> str:
        return self._name

    def compute_gradients(
        self,
        loss: object,
        var_list: Any = None,
        gate_gradients: object = 1,
        aggregation_method: object = None,
        colocate_gradients_with_ops: bool = False,
        grad_loss: object = None,
    ) -> list[tuple[Any, Any]]:
        """Pairs of a gradient, or None, and its variable."""
        variables = list(trainable_variables() if var_list is None else var_list)
        if not variables:
            raise ValueError("No variables to optimize.")
        of_loss = gradients(loss, variables, grad_ys=grad_loss)
        return list(zip(of_loss, variables))

    def minimize(
        self,
        loss: object,
        global_step: object = None,
        var_list: object = None,
        gate_gradients: object = 1,
        aggregation_method: object = None,
        colocate_gradients_with_ops: bool = False,
        name: str | None = None,
        grad_loss: object = None,
    ) -> Operation:
        """The operation of one step."""
        pairs = self.compute_gradients(loss, var_list, grad_loss=grad_loss)
        if all(gradient is None for gradient, _ in pairs):
            names = [v.name for _, v in pairs]
            raise ValueError(f"No gradients provided for any variable, check your graph: {names} and loss {loss!r}.")
        return self.apply_gradients(pairs, global_step, name)

    def apply_gradients(
        self, grads_and_vars: Iterable[Any], global_step: Any = None, name: str | None = None
    ) -> Operation:
        """The operation that updates variables by gradients, and counts in ``global_step``."""
        pairs = [(convert_to_tensor(g), v) for g, v in grads_and_vars if g is not None]
        if not pairs:
            raise ValueError("No gradients provided for any variable.")
        graph = default_graph()
        variables = [v for _, v in pairs]
        with graph.in_body(None), graph.name_scope(None), graph.control_dependencies(None):
            self._prepare(variables)
            rate = self._rate() if callable(self._rate) and not is_symbolic(self._rate) else self._rate
            rates = [convert_to_tensor(rate, None if is_symbolic(rate) else dtypes.float32)]
        compute = _Applied(self, variables).compute
        op = graph.add(f"Apply{self._name}", name or self._name, [*[g for g, _ in pairs], *rates], [], compute)
        held = [slot for v in variables for slot in self._slots[v].values()]
        op.reads = op.writes = [*variables, *held, *(self._powers or ())]
        if global_step is None:
            return op
        with graph.control_dependencies([op]):
            return global_step.assign_add(1, name=f"{op.name.rpartition('/')[2]}/count").op

    def _prepare(self, variables: Sequence[Variable]) -> None:
        """Make the slots of variables that have none yet."""
        with suspended():
            rule = self._make(0.0)
        if self._powers is None:
            starts = rule.powers_start() if isinstance(rule, Adam) else {}
            self._powers = [state_variable(name, (), dtypes.float32, start) for name, start in starts.items()]
        for variable in variables:
            if variable in self._slots:
                continue
            with suspended():
                rule = self._make(0.0)
                sample = Held(zeros(variable.initial_shape(), dtype=np.dtype(variable.dtype)))
                rule.build([sample])
                slots = {k: (s.dtype, s.numpy()) for k, s in rule._state.slots[id(sample)].items()}
            self._slots[variable] = {
                slot: state_variable(
                    f"{variable.op.name}/{self._name}",
                    variable.initial_shape(),
                    dtype,
                    self._starts.get(slot, float(value.flat[0]) if value.size else 0.0),
                )
                for slot, (dtype, value) in slots.items()
            }

    def get_slot_names(self) -> list[str]:
        theirs = {slot: name for name, slot in self._slot_names.items()}
        return sorted({theirs.get(name, name) for slots in self._slots.values() for name in slots})

    def get_slot(self, var: Variable, name: str) -> Variable | None:
        return self._slots.get(var, {}).get(self._slot_names.get(name, name))

    def variables(self) -> list[Variable]:
        """Those that hold its state, by name."""
        slots_of_all = [slot for slots in self._slots.values() for slot in slots.values()]
        return sorted([*(self._powers or ()), *slots_of_all], key=lambda variable: variable.name)


class _Calls:
    """Stands for the number of an optimizer's updates in a session, which is none of the graph's variables."""

    dtype, trainable = dtypes.int64, False

    def __init__(self, name: str) -> None:
        self.name = name

    def initial_shape(self) -> tuple[int, ...]:
        return ()


class _Applied:
    """One update, given values: hybridflow's optimizer, over the session's variables."""

    def __init__(self, optimizer: Optimizer, variables: Sequence[Variable]) -> None:
        self._optimizer, self._variables = optimizer, list(variables)

    def compute(self, run: Any, values: Sequence[Any]) -> list[Any]:
        optimizer = self._optimizer
        *gradients_given, rate = values
        held = [run.variable(v) for v in self._variables]
        slots = [{name: run.variable(slot) for name, slot in optimizer._slots[v].items()} for v in self._variables]
        with suspended():
            rule = optimizer._make(0.0)
        rule = rule.with_state(run.variable(optimizer._calls), zip(held, slots), lambda: rate)
        if isinstance(rule, Adam):
            rule.powers = [run.variable(power) for power in optimizer._powers or ()]
        rule.apply(gradients_given, held)
        for held_variable, variable in zip(held, self._variables):
            if variable.constraint is not None:
                with computing():
                    held_variable.assign(variable.constraint(held_variable._read()))
        return []


def _optimizer(
    name: str,
    make: Callable[..., Any],
    names: Sequence[str],
    starts: dict[str, float],
    slot_names: dict[str, str] | None = None,
    **defaults: Any,
) -> type:
    """A class of ``tf.train``: its arguments in TensorFlow's order, and what makes hybridflow's optimizer of them."""

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        options = {**defaults, **dict(zip(names, args)), **kwargs}
        options.pop("use_locking", None)
        own_name = options.pop("name", None) or name
        if "learning_rate" not in options:
            raise TypeError(f"{name}Optimizer() lacks learning_rate")
        unknown = [key for key in options if key not in names]
        if unknown:
            raise TypeError(f"{name}Optimizer() got an unexpected argument {unknown[0]!r}; it takes {', '.join(names)}")
        rate = options.pop("learning_rate")
        Optimizer.__init__(self, rate, lambda value: make(value, **options), own_name)

    return type(
        f"{name}Optimizer", (Optimizer,), {"__init__": __init__, "_starts": starts, "_slot_names": slot_names or {}}
    )


GradientDescentOptimizer = _optimizer(
    "GradientDescent", lambda rate: optimizers.SGD(rate), ("learning_rate", "use_locking", "name"), {}
)
MomentumOptimizer = _optimizer(
    "Momentum",
    lambda rate, momentum, use_nesterov: Momentum(rate, momentum, use_nesterov),
    ("learning_rate", "momentum", "use_locking", "name", "use_nesterov"),
    {},
    {"momentum": "Momentum"},
    use_nesterov=False,
)
AdamOptimizer = _optimizer(
    "Adam",
    lambda rate, beta1, beta2, epsilon: Adam(rate, beta1, beta2, epsilon),
    ("learning_rate", "beta1", "beta2", "epsilon", "use_locking", "name"),
    {},
    {"m": "momentum", "v": "velocity"},
    learning_rate=0.001,
    beta1=0.9,
    beta2=0.999,
    epsilon=1e-8,
)
AdagradOptimizer = _optimizer(
    "Adagrad",
    lambda rate, initial_accumulator_value: optimizers.Adagrad(rate, initial_accumulator_value, 0.0),
    ("learning_rate", "initial_accumulator_value", "use_locking", "name"),
    {},
    initial_accumulator_value=0.1,
)
AdadeltaOptimizer = _optimizer(
    "Adadelta",
    lambda rate, rho, epsilon: optimizers.Adadelta(rate, rho, epsilon),
    ("learning_rate", "rho", "epsilon", "use_locking", "name"),
    {},
    {"accum": "accumulated_gradient", "accum_update": "accumulated_step"},
    learning_rate=0.001,
    rho=0.95,
    epsilon=1e-8,
)
RMSPropOptimizer = _optimizer(
    "RMSProp",
    lambda rate, decay, momentum, epsilon, centered: RMSProp(rate, decay, momentum, epsilon, centered),
    ("learning_rate", "decay", "momentum", "epsilon", "use_locking", "centered", "name"),
    {"velocity": 1.0},
    {"rms": "velocity", "mg": "average_gradient"},
    decay=0.9,
    momentum=0.0,
    epsilon=1e-10,
    centered=False,
)
FtrlOptimizer = _optimizer(
    "Ftrl",
    lambda rate, **options: optimizers.Ftrl(rate, **options),
    (
        "learning_rate",
        "learning_rate_power",
        "initial_accumulator_value",
        "l1_regularization_strength",
        "l2_regularization_strength",
        "use_locking",
        "name",
    ),
    {},
    {"accum": "accumulator"},
)
ProximalGradientDescentOptimizer = _optimizer(
    "ProximalGradientDescent",
    lambda rate, l1_regularization_strength, l2_regularization_strength: ProximalGradientDescent(
        rate, l1_regularization_strength, l2_regularization_strength
    ),
    ("learning_rate", "l1_regularization_strength", "l2_regularization_strength", "use_locking", "name"),
    {},
    l1_regularization_strength=0.0,
    l2_regularization_strength=0.0,
)
ProximalAdagradOptimizer = _optimizer(
    "ProximalAdagrad",
    lambda rate, initial_accumulator_value, l1_regularization_strength, l2_regularization_strength: ProximalAdagrad(
        rate, initial_accumulator_value, l1_regularization_strength, l2_regularization_strength
    ),
    (
        "learning_rate",
        "initial_accumulator_value",
        "l1_regularization_strength",
        "l2_regularization_strength",
        "use_locking",
        "name",
    ),
    {},
    initial_accumulator_value=0.1,
    l1_regularization_strength=0.0,
    l2_regularization_strength=0.0,
)


NAMES: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        Optimizer, GradientDescentOptimizer, MomentumOptimizer, AdamOptimizer, AdagradOptimizer, AdadeltaOptimizer,
        RMSPropOptimizer, FtrlOptimizer, ProximalGradientDescentOptimizer, ProximalAdagradOptimizer,
    )
}  # fmt: skip
