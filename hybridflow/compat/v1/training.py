"""``tf.train``: optimizers as operations, learning rates, averages, and savers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hybridflow import optimizers
from hybridflow.array.creation import zeros
from hybridflow.array.elementwise import astype, cos, maximum, minimum, rsqrt, sign
from hybridflow.compat.v1.constants import convert_to_tensor
from hybridflow.compat.v1.derivatives import gradients
from hybridflow.compat.v1.functions import TABLE
from hybridflow.compat.v1.graph import Operation, Tensor, computing, default_graph
from hybridflow.compat.v1.grouping import group
from hybridflow.compat.v1.initializers import constant_initializer
from hybridflow.compat.v1.recording import Recorded, as_graph_tensor, is_symbolic
from hybridflow.compat.v1.variable_functions import trainable_variables
from hybridflow.compat.v1.variables import AVERAGED, GLOBAL, Variable
from hybridflow.compiler.ir import dtypes
from hybridflow.core.context import suspended
from hybridflow.core.tensor import Tensor as Value
from hybridflow.core.variable import Variable as Held

GLOBAL_STEP = "global_step"


class _Heavy(optimizers.Optimizer):
    """Momentum as TensorFlow 1 has it: the learning rate is that of the step, not of the gradients behind it."""

    def __init__(self, learning_rate: Any, momentum: Any, nesterov: bool) -> None:
        super().__init__(learning_rate)
        self._momentum, self._nesterov = momentum, nesterov

    def create_slots(self, variable: Held) -> None:
        self.add_slot(variable, "Momentum")

    def update_step(self, gradient: Value, variable: Held, learning_rate: Value) -> None:
        slot = self.get_slot(variable, "Momentum")
        self.assign(slot, self._momentum * slot + gradient)
        step = gradient + self._momentum * slot if self._nesterov else slot
        self.assign_sub(variable, learning_rate * step)


def _nearest(x: Any, rate: Any, l1: float, l2: float) -> Any:
    """What a step towards 0 makes of elements, by as much as penalties of their size and of its square ask for."""
    return sign(x) * maximum(abs(x) - rate * l1, 0.0) / (1.0 + rate * l2)


class _Proximal(optimizers.Optimizer):
    """Gradient descent whose penalties are taken into account behind the step.

    Source: Duchi and Singer, "Efficient Learning using Forward-Backward Splitting", 2009.
    """

    def __init__(self, learning_rate: Any, l1: float, l2: float) -> None:
        super().__init__(learning_rate)
        self._l1, self._l2 = l1, l2

    def update_step(self, gradient: Value, variable: Held, learning_rate: Value) -> None:
        self.assign(variable, _nearest(variable - learning_rate * gradient, learning_rate, self._l1, self._l2))


class _ProximalAdagrad(_Proximal):
    """The same with a learning rate for each element, of the squares of its gradients."""

    def __init__(self, learning_rate: Any, start: float, l1: float, l2: float) -> None:
        super().__init__(learning_rate, l1, l2)
        self._start = start

    def create_slots(self, variable: Held) -> None:
        self.add_slot(variable, "accumulator", self._start)

    def update_step(self, gradient: Value, variable: Held, learning_rate: Value) -> None:
        slot = self.get_slot(variable, "accumulator")
        self.assign(slot, slot + gradient * gradient)
        super().update_step(gradient, variable, learning_rate * rsqrt(slot))


class Optimizer:
    """The base of optimizers: they compute gradients and apply them, as operations of the graph.

    ``make(rate)`` is the optimizer of hybridflow's that does the work, with a learning rate.  Its state is held in
    variables of the graph, one for each slot.
    """

    GATE_NONE, GATE_OP, GATE_GRAPH = 0, 1, 2
    _starts: dict[str, float] = {}  # of slots, where they are others than hybridflow's
    _slot_names: dict[str, str] = {}  # TensorFlow's names of slots, and hybridflow's

    def __init__(self, learning_rate: Any, make: Callable[[Any], Any], name: str) -> None:
        self._rate, self._make, self._name = learning_rate, make, name
        self._slots: dict[Variable, dict[str, Variable]] = {}
        self._count: Variable | None = None

    def get_name(self) -> str:
        return self._name

    def compute_gradients(
        self,
        loss: Any,
        var_list: Any = None,
        gate_gradients: Any = 1,
        aggregation_method: Any = None,
        colocate_gradients_with_ops: bool = False,
        grad_loss: Any = None,
    ) -> list[tuple[Any, Any]]:
        """Pairs of a gradient, or None, and its variable."""
        variables = list(trainable_variables() if var_list is None else var_list)
        if not variables:
            raise ValueError("No variables to optimize.")
        found = gradients(loss, variables, grad_ys=grad_loss)
        return list(zip(found, variables))

    def minimize(
        self,
        loss: Any,
        global_step: Any = None,
        var_list: Any = None,
        gate_gradients: Any = 1,
        aggregation_method: Any = None,
        colocate_gradients_with_ops: bool = False,
        name: str | None = None,
        grad_loss: Any = None,
    ) -> Operation:
        """The operation of one step."""
        pairs = self.compute_gradients(loss, var_list, grad_loss=grad_loss)
        if all(gradient is None for gradient, _ in pairs):
            names = [v.name for _, v in pairs]
            raise ValueError(f"No gradients provided for any variable, check your graph: {names} and loss {loss!r}.")
        return self.apply_gradients(pairs, global_step, name)

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Operation:
        """The operation that updates variables by gradients, and counts in ``global_step``."""
        pairs = [(convert_to_tensor(g), v) for g, v in grads_and_vars if g is not None]
        if not pairs:
            raise ValueError("No gradients provided for any variable.")
        graph = default_graph()
        variables = [v for _, v in pairs]
        with graph.in_body(None), graph.name_scope(None), graph.control_dependencies(None):
            self._prepare(variables)
            rate = self._rate() if callable(self._rate) and not is_symbolic(self._rate) else self._rate
            given = [convert_to_tensor(rate, None if is_symbolic(rate) else dtypes.float32)]
        compute = _Applied(self, variables).compute
        op = graph.add(f"Apply{self._name}", name or self._name, [*[g for g, _ in pairs], *given], [], compute)
        held = [slot for v in variables for slot in self._slots[v].values()]
        assert self._count is not None
        op.reads = op.writes = [*variables, *held, self._count]
        if global_step is None:
            return op
        with graph.control_dependencies([op]):
            return global_step.assign_add(1, name=f"{op.name.rpartition('/')[2]}/count").op

    def _prepare(self, variables: Sequence[Variable]) -> None:
        """Make the slots of variables that have none yet."""
        if self._count is None:
            self._count = _state(f"{self._name}/iterations", (), dtypes.int64, 0)
        for variable in variables:
            if variable in self._slots:
                continue
            with suspended():
                rule = self._make(0.0)
                sample = Held(zeros(variable.initial_shape(), dtype=np.dtype(variable.dtype)))
                rule.build([sample])
                slots = {k: (s.dtype, s.numpy()) for k, s in rule._state.slots[id(sample)].items()}
            self._slots[variable] = {
                slot: _state(
                    f"{variable.op.name}/{self._name}" + (f"_{k}" if k else ""),
                    variable.initial_shape(),
                    dtype,
                    self._starts.get(slot, float(value.flat[0]) if value.size else 0.0),
                )
                for k, (slot, (dtype, value)) in enumerate(slots.items())
            }

    def get_slot_names(self) -> list[str]:
        theirs = {own: name for name, own in self._slot_names.items()}
        return sorted({theirs.get(name, name) for slots in self._slots.values() for name in slots})

    def get_slot(self, var: Variable, name: str) -> Variable | None:
        return self._slots.get(var, {}).get(self._slot_names.get(name, name))

    def variables(self) -> list[Variable]:
        """Those that hold its state."""
        own = [slot for slots in self._slots.values() for slot in slots.values()]
        return own if self._count is None else [self._count, *own]


def _state(name: str, shape: tuple[int, ...], dtype: Any, start: float) -> Variable:
    initial = constant_initializer(start)
    return Variable(lambda: initial(shape, dtype), trainable=False, name=name)


class _Applied:
    """One update, given values: hybridflow's optimizer, over the session's variables."""

    def __init__(self, optimizer: Optimizer, variables: Sequence[Variable]) -> None:
        self._optimizer, self._variables = optimizer, list(variables)

    def compute(self, run: Any, values: Sequence[Any]) -> list[Any]:
        optimizer = self._optimizer
        *given, rate = values
        held = [run.variable(v) for v in self._variables]
        slots = [{name: run.variable(slot) for name, slot in optimizer._slots[v].items()} for v in self._variables]
        with suspended():
            rule = optimizer._make(0.0)
        rule = rule.with_state(run.variable(optimizer._count), zip(held, slots), lambda: rate)
        rule.apply(given, held)
        for own, variable in zip(held, self._variables):
            if variable.constraint is not None:
                with computing():
                    own.assign(variable.constraint(own._read()))
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
        given = {**defaults, **dict(zip(names, args)), **kwargs}
        given.pop("use_locking", None)
        own_name = given.pop("name", None) or name
        if "learning_rate" not in given:
            raise TypeError(f"{name}Optimizer() lacks learning_rate")
        unknown = [key for key in given if key not in names]
        if unknown:
            raise TypeError(f"{name}Optimizer() got an unexpected argument {unknown[0]!r}; it takes {', '.join(names)}")
        rate = given.pop("learning_rate")
        Optimizer.__init__(self, rate, lambda value: make(value, **given), own_name)

    return type(
        f"{name}Optimizer", (Optimizer,), {"__init__": __init__, "_starts": starts, "_slot_names": slot_names or {}}
    )


GradientDescentOptimizer = _optimizer(
    "GradientDescent", lambda rate: optimizers.SGD(rate), ("learning_rate", "use_locking", "name"), {}
)
MomentumOptimizer = _optimizer(
    "Momentum",
    lambda rate, momentum, use_nesterov: _Heavy(rate, momentum, use_nesterov),
    ("learning_rate", "momentum", "use_locking", "name", "use_nesterov"),
    {},
    {"momentum": "Momentum"},
    use_nesterov=False,
)
AdamOptimizer = _optimizer(
    "Adam",
    lambda rate, beta1, beta2, epsilon: optimizers.Adam(rate, beta1, beta2, epsilon),
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
    lambda rate, decay, momentum, epsilon, centered: optimizers.RMSprop(rate, decay, momentum, epsilon, centered),
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
    lambda rate, **given: optimizers.Ftrl(rate, **given),
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
    lambda rate, l1_regularization_strength, l2_regularization_strength: _Proximal(
        rate, l1_regularization_strength, l2_regularization_strength
    ),
    ("learning_rate", "l1_regularization_strength", "l2_regularization_strength", "use_locking", "name"),
    {},
    l1_regularization_strength=0.0,
    l2_regularization_strength=0.0,
)
ProximalAdagradOptimizer = _optimizer(
    "ProximalAdagrad",
    lambda rate, initial_accumulator_value, l1_regularization_strength, l2_regularization_strength: _ProximalAdagrad(
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


# ---- steps and rates


def create_global_step(graph: Any = None) -> Variable:
    """The variable that counts steps.  Raises ValueError where there is one."""
    if get_global_step() is not None:
        raise ValueError('"global_step" already exists.')
    start = constant_initializer(0)
    return Variable(lambda: start((), dtypes.int64), False, [GLOBAL, GLOBAL_STEP], name="global_step")


def get_global_step(graph: Any = None) -> Any:
    found = default_graph().get_collection(GLOBAL_STEP)
    if found:
        return found[0]
    return next((v for v in default_graph().get_collection(GLOBAL) if v.name == "global_step:0"), None)


def get_or_create_global_step(graph: Any = None) -> Any:
    found = get_global_step()
    return create_global_step() if found is None else found


def global_step(sess: Any, global_step_tensor: Any) -> int:
    return int(sess.run(global_step_tensor))


def _scheduled(type: str, schedule: Callable[..., Any], step: Any, name: str | None) -> Tensor:
    recorded = Recorded(lambda now: astype(schedule(now), dtypes.float32), type)
    found: Tensor = recorded(as_graph_tensor(step) if is_symbolic(step) else convert_to_tensor(step), name=name or type)
    return found


def exponential_decay(
    learning_rate: float,
    global_step: Any,
    decay_steps: Any,
    decay_rate: float,
    staircase: bool = False,
    name: str | None = None,
) -> Any:
    return _scheduled(
        "ExponentialDecay",
        optimizers.schedules.ExponentialDecay(learning_rate, decay_steps, decay_rate, staircase),
        global_step,
        name,
    )


def inverse_time_decay(
    learning_rate: float,
    global_step: Any,
    decay_steps: Any,
    decay_rate: float,
    staircase: bool = False,
    name: str | None = None,
) -> Any:
    return _scheduled(
        "InverseTimeDecay",
        optimizers.schedules.InverseTimeDecay(learning_rate, decay_steps, decay_rate, staircase),
        global_step,
        name,
    )


def polynomial_decay(
    learning_rate: float,
    global_step: Any,
    decay_steps: Any,
    end_learning_rate: float = 0.0001,
    power: float = 1.0,
    cycle: bool = False,
    name: str | None = None,
) -> Any:
    return _scheduled(
        "PolynomialDecay",
        optimizers.schedules.PolynomialDecay(learning_rate, decay_steps, end_learning_rate, power, cycle),
        global_step,
        name,
    )


def piecewise_constant(x: Any, boundaries: Any, values: Any, name: str | None = None) -> Any:
    return _scheduled(
        "PiecewiseConstant", optimizers.schedules.PiecewiseConstantDecay(list(boundaries), list(values)), x, name
    )


def cosine_decay(
    learning_rate: float, global_step: Any, decay_steps: Any, alpha: float = 0.0, name: str | None = None
) -> Any:
    return _scheduled(
        "CosineDecay", optimizers.schedules.CosineDecay(learning_rate, decay_steps, alpha), global_step, name
    )


def cosine_decay_restarts(
    learning_rate: float,
    global_step: Any,
    first_decay_steps: Any,
    t_mul: float = 2.0,
    m_mul: float = 1.0,
    alpha: float = 0.0,
    name: str | None = None,
) -> Any:
    schedule = optimizers.schedules.CosineDecayRestarts(learning_rate, first_decay_steps, t_mul, m_mul, alpha)
    return _scheduled("CosineDecayRestarts", schedule, global_step, name)


def linear_cosine_decay(
    learning_rate: float,
    global_step: Any,
    decay_steps: Any,
    num_periods: float = 0.5,
    alpha: float = 0.0,
    beta: float = 0.001,
    name: str | None = None,
) -> Any:
    """``learning_rate * ((alpha + linear) * cosine + beta)``, which fall from 1 to 0 and from 1 to -1."""

    def schedule(step: Any) -> Any:
        done = minimum(astype(step, dtypes.float32), float(decay_steps)) / float(decay_steps)
        cosine = 0.5 * (1.0 + cos(float(np.pi) * 2.0 * num_periods * done))
        return learning_rate * ((alpha + 1.0 - done) * cosine + beta)

    return _scheduled("LinearCosineDecay", schedule, global_step, name)


def natural_exp_decay(
    learning_rate: float,
    global_step: Any,
    decay_steps: Any,
    decay_rate: float,
    staircase: bool = False,
    name: str | None = None,
) -> Any:
    return exponential_decay(learning_rate, global_step, decay_steps, float(np.exp(-decay_rate)), staircase, name)


class ExponentialMovingAverage:
    """Averages of variables that follow them: ``average -= (1 - decay) * (average - variable)``.

    With ``num_updates`` the decay is at most ``(1 + n) / (10 + n)``.  Averages of variables begin with their values,
    those of other tensors with 0, of which ``zero_debias`` frees them.
    """

    def __init__(
        self, decay: float, num_updates: Any = None, zero_debias: bool = False, name: str = "ExponentialMovingAverage"
    ) -> None:
        self._decay, self._updates, self._name = decay, num_updates, name
        self._zero_debias = zero_debias
        self._averages: dict[Any, Variable] = {}
        self._biased: dict[Any, tuple[Variable, Variable]] = {}  # averages from 0 on, and how often they moved

    def apply(self, var_list: Any = None) -> Operation:
        """The operation that moves the averages."""
        chosen = list(trainable_variables() if var_list is None else var_list)
        decay: Any = self._decay
        if self._updates is not None:
            count = TABLE["cast"](self._updates, dtypes.float32)
            decay = TABLE["minimum"](decay, (1.0 + count) / (10.0 + count))
        moves = []
        for variable in chosen:
            if variable not in self._averages:
                self._averages[variable] = self._made(variable)
                if isinstance(variable, Variable):
                    default_graph().add_to_collection(AVERAGED, variable)
            average = self._averages[variable]
            if variable in self._biased:
                moves.append(self._freed(variable, average, decay))
            else:
                moves.append(average.assign_sub((1.0 - decay) * (average - variable)))
        return group(*moves, name=self._name)

    def _made(self, variable: Any) -> Variable:
        graph = default_graph()
        with graph.name_scope(None), graph.control_dependencies(None):
            if isinstance(variable, Variable):
                return Variable(variable.initialized_value(), False, name=f"{variable.op.name}/{self._name}")
            name, extents, kind = f"{variable.op.name}/{self._name}", tuple(variable.shape.as_list()), variable.dtype
            if self._zero_debias:
                self._biased[variable] = (
                    _state(f"{name}/biased", extents, kind, 0.0), _state(f"{name}/local_step", (), dtypes.float32, 0.0)
                )  # fmt: skip
            return _state(name, extents, kind, 0.0)

    def _freed(self, variable: Any, average: Variable, decay: Any) -> Tensor:
        """The average without its beginning, which was 0 and no value of the variable's."""
        biased, steps = self._biased[variable]
        moved = biased.assign_sub((1.0 - decay) * (biased - variable))
        return average.assign(moved / (1.0 - TABLE["pow"](decay, steps.assign_add(1.0))))

    def average(self, var: Any) -> Any:
        return self._averages.get(var)

    def average_name(self, var: Any) -> str:
        return f"{var.op.name}/{self._name}"

    def variables_to_restore(self, moving_avg_variables: Any = None) -> dict[str, Variable]:
        """What a saver takes to restore averages into variables."""
        found = {self.average_name(v): v for v in trainable_variables()}
        for variable in default_graph().get_collection(GLOBAL):
            if variable not in trainable_variables() and variable not in self._averages.values():
                found[variable.op.name] = variable
        return found
