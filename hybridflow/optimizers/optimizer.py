"""What all optimizers share: a learning rate, state for each variable, what is done to gradients, and one program."""

from __future__ import annotations

import copy
import functools
import inspect
import math
import numbers
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Self, TypedDict

import numpy as np

from hybridflow import initializers
from hybridflow.array.creation import full, zeros, zeros_like
from hybridflow.array.elementwise import equal, maximum, minimum, multiply, remainder, where
from hybridflow.array.indexed_slices import IndexedSlices
from hybridflow.autodiff.sparse_gradient import few_rows
from hybridflow.autodiff.tape import GradientTape
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ops.batching_rules import Share
from hybridflow.compiler.ops.sparse_grad import SparseGrad, Terms, lookups
from hybridflow.control.cond import cond
from hybridflow.core.context import idle, now, suspended, users
from hybridflow.core.serialization import Configured, description
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import ArrayLike
from hybridflow.core.variable import Variable
from hybridflow.eager.dispatch import builder
from hybridflow.eager.operands import as_tensor, cast
from hybridflow.errors import ArgumentError, ArgumentTypeError, DTypeError, GradientError, ShapeError, entered
from hybridflow.jit.function import function
from hybridflow.optimizers import schedules
from hybridflow.optimizers.clipping import clip_by_global_norm, clip_by_norm
from hybridflow.optimizers.schedules import LearningRateSchedule
from hybridflow.optimizers.sharded_state import share_out, updated_in_parts
from hybridflow.optimizers.sparse_update import SparseRows, sparse_rows_of
from hybridflow.tracing.replica_axes import of_all_replicas, strategy_axis, sums_over_replicas

Rate = float | LearningRateSchedule | Callable[[], Any]


class _State:
    """The variables that have been trained, and their state.

    An object of its own: to make state is no effect of the user's subclass, which a trace would have to repeat.
    """

    __slots__ = ("slots", "trained")

    def __init__(self, trained: Iterable[Variable] = (), slots: Iterable[dict[str, Variable]] = ()) -> None:
        self.trained = list(trained)
        # By id of the variable, which ``trained`` keeps alive.
        self.slots = {id(v): variable_slots for v, variable_slots in zip(self.trained, slots)}

    def __reduce__(self) -> Any:
        return _State, (self.trained, [self.slots[id(v)] for v in self.trained])


class SharedOptions(TypedDict, total=False):
    """What all optimizers take by name, and pass on, but for the decay of weights, which some take themselves."""

    clipnorm: float | None
    clipvalue: float | None
    global_clipnorm: float | None
    use_ema: bool
    ema_momentum: float
    ema_overwrite_frequency: int | None
    loss_scale_factor: float | None
    gradient_accumulation_steps: int | None
    name: str | None


class OptimizerOptions(SharedOptions, total=False):
    """What all optimizers take by name, and pass on."""

    weight_decay: float | None


class Optimizer(Configured):
    """The base of all optimizers, and of your own.

    ``learning_rate`` is a number, a schedule, or a function without arguments that returns one.  Numbers may be
    changed later (``optimizer.learning_rate = 0.01``) without a new trace.  What is done at each update, in this order:

    - gradients are clipped: each element to ``clipvalue``, each gradient's norm to ``clipnorm``, or the norm of all
      together to ``global_clipnorm``; one of the three;
    - ``weight_decay``: variables shrink by that times the learning rate times themselves (Loshchilov and Hutter,
      "Decoupled Weight Decay Regularization", 2019), but for those of ``exclude_from_weight_decay``;
    - the subclass's ``update_step`` for each variable, and its constraint if it has one (see ``hf.constraints``);
    - ``use_ema``: averages of the variables move, ``ema_momentum`` times themselves plus the rest times the variable;
      each ``ema_overwrite_frequency`` updates the variables become their averages, and so they do in
      ``finalize_variable_values``.

    ``loss_scale_factor`` is what ``scale_loss`` multiplies losses by, and ``apply`` divides gradients by.
    With ``gradient_accumulation_steps=n`` all this is done at each n-th call, with the mean of n gradients; but as in
    Keras averages move at each call, and a schedule is asked for the rate at the number of calls.

    Arguments are attributes too, which may be changed until the first update.

    The gradient of a look-up means what the whole tensor means that it stands for: rows that were looked up several
    times add up first, and averages fade in rows without a gradient too (but see ``hf.optimizers.LazyAdam``).  So it is
    with Keras on JAX and PyTorch.  With Keras on TensorFlow the second moments of Adam, RMSprop, Adagrad and others add
    up the squares of each look-up apart.  That is less than the square of their sum where these agree in sign.

    Variables of float16 and bfloat16 are updated in float32, in which their state is held, and rounded once.  Eagerly,
    an update of any number of variables is one compiled program; inside compiled functions it is part of theirs.

    A subclass defines ``update_step``, ``create_slots`` if it has state, and ``get_config`` if it takes arguments; or,
    as with Keras, ``build``, which calls that of its base and ``add_variable_from_reference``:

    Args:
        learning_rate: a number, a variable, a schedule, or a function without arguments.
        weight_decay: which part of the weights is taken off at each step, times the learning rate.
        clipnorm: the largest norm of each gradient.
        clipvalue: the largest absolute value of an element of a gradient.
        global_clipnorm: the largest norm of all gradients together.
        use_ema: whether running means of the weights are kept.
        ema_momentum: how much of these means is kept at each step.
        ema_overwrite_frequency: after how many steps the weights become these means.
        loss_scale_factor: what the loss is multiplied with.
        gradient_accumulation_steps: how many steps' gradients make one update.
        name: what it is called in files.

    >>> class Momentum(hf.optimizers.Optimizer):
    ...     def create_slots(self, variable):
    ...         self.add_slot(variable, "velocity")
    ...     def update_step(self, gradient, variable, learning_rate):
    ...         velocity = self.get_slot(variable, "velocity")
    ...         self.assign(velocity, 0.9 * velocity - learning_rate * gradient)
    ...         self.assign_add(variable, velocity)
    >>> w = hf.Variable([1.0, 2.0])
    >>> Momentum(0.1).apply_gradients([(hf.asarray([1.0, 1.0]), w)])
    >>> w
    <Variable f32[2] cpu> [0.9 1.9]
    """

    def __init__(
        self,
        learning_rate: Rate = 0.001,
        *,
        weight_decay: float | None = None,
        clipnorm: float | None = None,
        clipvalue: float | None = None,
        global_clipnorm: float | None = None,
        use_ema: bool = False,
        ema_momentum: float = 0.99,
        ema_overwrite_frequency: int | None = None,
        loss_scale_factor: float | None = None,
        gradient_accumulation_steps: int | None = None,
        name: str | None = None,
    ) -> None:
        self.name = name or type(self).__name__.lower()
        self._check_bounds(clipnorm=clipnorm, clipvalue=clipvalue, global_clipnorm=global_clipnorm)
        if not 0 <= ema_momentum <= 1:
            raise self._wrong("ema_momentum", ema_momentum, "from 0 to 1")
        for label, steps in (
            ("ema_overwrite_frequency", ema_overwrite_frequency),
            ("gradient_accumulation_steps", gradient_accumulation_steps),
        ):
            if steps is not None and not (isinstance(steps, int) and steps >= 1):
                raise self._wrong(label, steps, "a positive integer, or None")
        if loss_scale_factor is not None and not 0 < loss_scale_factor < math.inf:
            raise self._wrong("loss_scale_factor", loss_scale_factor, "positive and finite, or None")
        self._check_decay("weight_decay", weight_decay)
        self.loss_scale_factor = loss_scale_factor
        self.weight_decay = weight_decay
        self._undecayed: tuple[tuple[Variable, ...], tuple[str, ...]] = (), ()
        self.clipnorm, self.clipvalue, self.global_clipnorm = clipnorm, clipvalue, global_clipnorm
        self.use_ema, self.ema_momentum = bool(use_ema), float(ema_momentum)
        self.ema_overwrite_frequency = ema_overwrite_frequency
        self.gradient_accumulation_steps = gradient_accumulation_steps
        self._state = _State()
        with suspended():
            self._calls = Variable(0, trainable=False, dtype=dtypes.int64, name="iterations")
        self._rate = self._rate_of(learning_rate)

    def __setattr__(self, name: str, value: object) -> None:
        """Raises ArgumentError for an argument after the first update, whose program has the value that it had."""
        state = vars(self).get("_state") if name in vars(self) and not name.startswith("_") else None
        if state is not None and state.trained and name in _settings(type(self)):
            raise ArgumentError(
                type(self).__name__, f"{name} comes before the first update; it stays {getattr(self, name)!r}."
            )
        object.__setattr__(self, name, value)

    # The learning rate

    def _rate_of(self, rate: object) -> Variable | Callable[..., Any]:
        if callable(rate):
            return rate
        with suspended():
            return Variable(self._number(rate), trainable=False, dtype=dtypes.float64, name="learning_rate")

    def _number(self, value: Any) -> float:
        try:
            rate = float(value)
        except (TypeError, ValueError):
            raise ArgumentTypeError(
                type(self).__name__, f"learning_rate is {value!r}; give a number, a schedule or a function."
            ) from None
        if not math.isfinite(rate):
            raise self._wrong("learning_rate", value, "finite")
        return rate

    @property
    def learning_rate(self) -> Any:
        """The rate of the next update: a float64 variable, or the scalar that a schedule gives."""
        if isinstance(self._rate, Variable):
            return self._rate
        rate = users(self._rate, "learning_rate")
        return rate(self._calls) if isinstance(self._rate, LearningRateSchedule) else rate()

    @learning_rate.setter
    def learning_rate(self, value: ArrayLike) -> None:
        if not isinstance(self._rate, Variable) or callable(value):
            raise ArgumentTypeError(
                type(self).__name__,
                "a schedule or function as learning_rate is there from the beginning, or not at all; make another "
                "optimizer.",
            )
        self._rate.assign(value if isinstance(value, Tensor) else self._number(value))

    # State

    @property
    def iterations(self) -> Any:
        """How many updates there have been: an int64 variable, or a scalar where gradients are accumulated."""
        if self.gradient_accumulation_steps is None:
            return self._calls
        return self._calls // self.gradient_accumulation_steps

    @property
    def variables(self) -> list[Variable]:
        """All state: calls so far, the learning rate if it is a number, slots variable by variable."""
        return [
            *self.named_state().values(),
            *(slot for v in self._state.trained for slot in self._state.slots[id(v)].values()),
        ]

    def named_state(self) -> dict[str, Variable]:
        """The state that belongs to no variable.

        Returns:
            A dict from names to variables.
        """
        rate = {"learning_rate": self._rate} if isinstance(self._rate, Variable) else {}
        return {"iterations": self._calls} | rate

    def build(self, variables: Iterable[Variable]) -> None:
        """Make the state of variables that have none yet; ``apply`` does it for those that it meets.

        A variable made while a function is traced starts there from nothing that is traced, so any trace may do it.

        Args:
            variables: the variables.
        """
        new = {id(v): v for v in variables if id(v) not in self._state.slots}
        with suspended():
            for number, variable in new.items():
                self._state.slots[number] = {}
                self._state.trained.append(variable)
                if self.use_ema:
                    self.add_slot(variable, "average")
                if self.gradient_accumulation_steps is not None:
                    self.add_slot(variable, "accumulated")
                self.create_slots(variable)

    def _forget(self, variables: Iterable[Variable]) -> None:
        """Let go of the state of variables that are trained no more."""
        gone = {id(v) for v in variables}
        self._state.trained = [v for v in self._state.trained if id(v) not in gone]
        for number in gone:
            self._state.slots.pop(number, None)

    def _checkpoint_variables(self) -> dict[str, Variable]:
        return self.named_state()

    def _checkpoint_slots(self) -> Iterator[tuple[Variable, dict[str, Variable]]]:
        return ((variable, self._state.slots[id(variable)]) for variable in self._state.trained)

    def _create_checkpoint_slots(self, variables: Iterable[Variable]) -> Callable[[], None]:
        state, count = self._state, len(self._state.trained)
        self.build(variables)

        def undo() -> None:
            for variable in state.trained[count:]:
                del state.slots[id(variable)]
            del state.trained[count:]

        return undo

    @property
    def built(self) -> bool:
        """Whether there is state of variables."""
        return bool(self._state.trained)

    def add_variable_from_reference(
        self, reference_variable: Variable, name: str | None = None, initializer: object = "zeros"
    ) -> Variable:
        """State of a variable's shape, as Keras's optimizers make it in their ``build``: see ``add_slot``.

        Args:
            reference_variable: the variable.
            name: the name of the state; by default it is numbered.
            initializer: anything that ``hf.initializers.get`` takes, which makes its first value.

        Returns:
            The state, a variable.
        """
        start = initializers.get(initializer)
        with suspended():
            slots = self._state.slots.setdefault(id(reference_variable), {})
            value = start(reference_variable.shape, _computed(reference_variable.dtype))
            return self.add_slot(reference_variable, name or f"slot{len(slots)}", value)

    def _get_variable_index(self, variable: Variable) -> int:
        """The place of a variable among those of ``build``, by which optimizers written for Keras find their state."""
        for place, known in enumerate(self._state.trained):
            if known is variable:
                return place
        raise ArgumentError(type(self).__name__, f"{variable._title()} is none of the variables of build.")

    _is_elementwise = False  # whether ``update_step`` of the class computes each element from the same one of others

    def create_slots(self, variable: Variable) -> None:
        """For subclasses: make the state of a variable, by ``add_slot``.

        Args:
            variable: a variable that is trained.
        """

    def add_slot(self, variable: Variable, name: str, initializer: object = "zeros") -> Variable:
        """State of the variable's shape, and its dtype or float32 if that is narrower.

        Args:
            variable: a variable that is trained.
            name: the name of the state.
            initializer: what it starts from: "zeros", a number, or a tensor or variable, whose shape it then has.

        Returns:
            The state, a variable.

        Raises:
            ArgumentError: for another text.
        """
        dtype = _computed(variable.dtype)
        if isinstance(initializer, str):
            if initializer != "zeros":
                raise self._wrong("initializer", initializer, "'zeros', a number or a tensor")
            start = zeros(variable.shape, dtype=dtype, device=variable.device)
        elif isinstance(initializer, (Tensor, Variable)):
            start = cast(as_tensor(initializer, "add_slot"), dtype)
        else:
            start = full(variable.shape, initializer, dtype=dtype, device=variable.device)
        label = f"{variable.name or 'variable'}/{name}"
        slot = self._state.slots[id(variable)][name] = Variable(start, trainable=False, name=label)
        return slot

    def get_slot(self, variable: Variable, name: str) -> Variable:
        """State that ``add_slot`` made.

        Args:
            variable: a variable that is trained.
            name: the name of the state.

        Returns:
            The state, a variable.

        Raises:
            ArgumentError: where there is none of that name.
        """
        try:
            return self._state.slots[id(variable)][name]
        except KeyError:
            raise ArgumentError(
                type(self).__name__, f"{variable._title()} has no slot {name!r}; call build, or apply gradients, first."
            ) from None

    def has_trained(self, variable: Variable) -> bool:
        """Whether there is state for this variable: it was among those of ``build`` or of an update.

        Args:
            variable: a variable that is trained.

        Returns:
            True or False.
        """
        return id(variable) in self._state.slots

    # Updates

    def scale_loss(self, loss: Any) -> Tensor:
        """What gradients are to be taken of: the loss, times ``loss_scale_factor`` if that is given.

        Args:
            loss: a scalar.

        Returns:
            A scalar.
        """
        return loss if self.loss_scale_factor is None else multiply(loss, self.loss_scale_factor)

    @entered
    def apply_gradients(self, grads_and_vars: Iterable[tuple[Any, Variable]]) -> None:
        """Update variables by gradients.  A pair with None as gradient is left out, with a warning.

        Args:
            grads_and_vars: pairs of a gradient and its variable.

        Raises:
            GradientError: if all gradients are None.
            ArgumentError: for a variable that comes twice.
            ShapeError: where a gradient has not the shape of its variable.
            DTypeError: where a gradient or its variable holds no floats.

        >>> w = hf.Variable([1.0, 2.0])
        >>> hf.optimizers.SGD(0.5).apply_gradients([(hf.ones(2), w)])
        >>> w.numpy().tolist()
        [0.5, 1.5]
        """
        pairs = [tuple(pair) for pair in grads_and_vars]
        if any(len(pair) != 2 for pair in pairs):
            raise ArgumentError(type(self).__name__, "apply_gradients takes pairs (gradient, variable), as zip makes.")
        self._apply(*zip(*pairs) if pairs else ((), ()))

    @entered
    def apply(self, gradients: Sequence[Any], variables: Sequence[Variable] | None = None) -> None:
        """Update variables by gradients: see ``apply_gradients``.

        Args:
            gradients: a gradient for each variable, or None for one that is left out.
            variables: the variables; by default those of ``build``.

        Raises:
            ArgumentError: where there are not as many gradients as variables.
            GradientError: if all gradients are None.
        """
        chosen = self._state.trained if variables is None else list(variables)
        if len(gradients) != len(chosen):
            raise ArgumentError(
                type(self).__name__, f"there are {len(gradients)} gradients for {len(chosen)} variables; give one each."
            )
        self._apply(gradients, chosen)

    @entered
    def minimize(self, loss: object, var_list: Sequence[Variable], tape: GradientTape | None = None) -> None:
        """Differentiate a loss and update variables.

        Args:
            loss: a function without arguments, or a tensor that ``tape`` has recorded.
            var_list: a list of variables.
            tape: the tape that records the loss; by default a new one.

        Raises:
            ArgumentTypeError: for a variable in the place of a list, or a tensor without its tape.

        >>> w = hf.Variable(2.0)
        >>> hf.optimizers.SGD(0.5).minimize(lambda: w * w, [w])
        >>> w.numpy().item()
        0.0
        """
        if isinstance(var_list, Variable):
            raise ArgumentTypeError(type(self).__name__, "var_list is a variable; give a list of variables.")
        if callable(loss):
            with tape or GradientTape() as tape:
                loss = loss()
        elif tape is None:
            raise ArgumentTypeError(
                type(self).__name__, "minimize takes a function that returns the loss, or a tensor and its tape."
            )
        variables = list(var_list)
        self._apply(tape.gradient(loss, variables), variables)

    def _apply(self, gradients: Sequence[Any], variables: Sequence[Variable]) -> None:
        pairs = self._pairs(gradients, variables)
        pairs = list(zip(_of_all_replicas([g for g, _ in pairs]), [v for _, v in pairs]))
        if any(id(v) not in self._state.slots for _, v in pairs):
            users(self.build, self.name)([v for _, v in pairs])
        axis = strategy_axis()
        if axis is not None and axis.share is not None and axis.shards_state:
            self._share_out(pairs, axis.share)
        if now() is idle:
            for _, variable in pairs:
                variable._reclaim()  # which tapes have let go of, so that it is updated where it lies
        self._update([_as_rows(g) for g, _ in pairs], [v for _, v in pairs])

    def _share_out(self, pairs: Sequence[tuple[Tensor | IndexedSlices, Variable]], share: Share) -> None:
        """Let this process have its part of the state alone.  State of look-ups stays whole."""
        kind = next(kind for kind in type(self).__mro__ if "update_step" in vars(kind))
        if not vars(kind).get("_is_elementwise"):
            raise ArgumentError(
                type(self).__name__,
                "its update computes elements of a variable from others of it, so processes cannot share out its "
                "state: leave shard_optimizer of the strategy off.",
            )
        for gradient, variable in pairs:
            if not isinstance(gradient, IndexedSlices) and few_rows(gradient) is None:
                share_out(variable, self._state.slots[id(variable)], share)

    def _pairs(
        self, gradients: Sequence[Any], variables: Sequence[Variable]
    ) -> list[tuple[Tensor | IndexedSlices, Variable]]:
        """The gradients that there are, as tensors or rows, each with its variable."""
        stage, result, seen = type(self).__name__, [], set()
        missing = []
        for gradient, variable in zip(gradients, variables):
            if not isinstance(variable, Variable):
                raise ArgumentTypeError(
                    stage, f"{_short_repr(variable)} is no variable; pairs are (gradient, variable)."
                )
            if id(variable) in seen:
                raise ArgumentError(stage, f"{variable._title()} comes twice; add its gradients.")
            seen.add(id(variable))
            if gradient is None:
                missing.append(variable)
                continue
            is_rows = isinstance(gradient, IndexedSlices) or few_rows(gradient) is not None
            value = gradient if is_rows else as_tensor(gradient, stage)
            if value.shape != variable.shape:
                raise ShapeError(stage, f"the gradient {value.type} of {variable._title()} must have its shape.")
            if not dtypes.is_float(value.dtype) or not dtypes.is_float(variable.dtype):
                raise DTypeError(stage, f"the gradient {value.type} and {variable._title()} must both be floats.")
            result.append((value, variable))
        if missing and not result:
            raise GradientError(
                stage,
                f"no variable has a gradient, {missing[0]._title()} among them: the loss does not depend on them, or "
                "was computed outside of the tape.",
            )
        if missing:
            titles = ", ".join(v._title() for v in missing[:3]) + (", ..." if len(missing) > 3 else "")
            warnings.warn(f"no gradient for {titles}: left as they are", stacklevel=2)
        return result

    @function
    def _update(self, gradients_given: list[Tensor | Terms], variables: list[Variable]) -> None:
        """One call of ``apply``, as a program."""
        sums: Sequence[Tensor | SparseGrad] = [_as_sum(g, v) for g, v in zip(gradients_given, variables)]
        if self.loss_scale_factor is not None:
            sums = [_densify(gradient) / self.loss_scale_factor for gradient in sums]
        every = self.gradient_accumulation_steps
        if every is None:
            self._update_now(sums, variables)
        else:
            gradients = list(map(_densify, sums))
            is_last = equal(remainder(self._calls + 1, every), 0)
            cond(
                is_last,
                lambda: self._update_now(self._means(gradients, variables, every), variables),
                lambda: self._accumulate(gradients, variables),
            )
        if self.use_ema:
            self._move_averages(variables)
        self._calls.assign_add(1)

    def _accumulate(self, gradients: Sequence[Tensor], variables: Sequence[Variable]) -> None:
        for gradient, variable in zip(gradients, variables):
            self.assign_add(self.get_slot(variable, "accumulated"), gradient)

    def _means(self, gradients: Sequence[Tensor], variables: Sequence[Variable], count: int) -> list[Tensor]:
        """The mean gradients of this call and those since the last update; the sums begin anew."""
        means = []
        for gradient, variable in zip(gradients, variables):
            total = self.get_slot(variable, "accumulated")
            means.append((total + gradient) / count)
            total.assign(zeros_like(total))
        return means

    def _update_now(self, gradients: Sequence[Tensor | SparseGrad], variables: Sequence[Variable]) -> None:
        rate = as_tensor(self.learning_rate, type(self).__name__, dtypes.float64)
        users(self.begin_update, self.name)()
        update_step = users(self.update_step, self.name)
        for gradient, variable in zip(self._clipped(gradients), variables):
            dtype = _computed(variable.dtype)
            own_rate = cast(rate, dtype)
            decay = None if self._is_undecayed(variable) else self._decay_of(variable)
            rows = (
                sparse_rows_of(gradient) if not decay and variable.constraint is None and self._leaves_rows() else None
            )
            if rows is not None:
                self.update_rows(rows._replace(gradient=cast(rows.gradient, dtype)), variable, own_rate)
                continue
            gradient = cast(_densify(gradient), dtype)

            def update(part: Variable, gradient: Tensor, decay: Any = decay, own_rate: Tensor = own_rate) -> None:
                if decay:
                    self.assign_sub(part, part * (decay * own_rate))
                update_step(gradient, part, own_rate)

            axis = strategy_axis()
            if axis is None or not updated_in_parts(variable, gradient, self._state.slots, axis, update):
                update(variable, gradient)
            if variable.constraint is not None:
                self.assign(variable, users(variable.constraint, f"{variable.name}.constraint")(variable))

    def begin_update(self) -> None:
        """For subclasses: what an update does once, before the first variable."""

    def update_step(self, gradient: Tensor, variable: Variable, learning_rate: Tensor) -> None:
        """For subclasses: update one variable and its slots, by ``assign``, ``assign_add`` and ``assign_sub``.

        Gradient and learning rate have the variable's dtype, or float32 if that is narrower.

        Args:
            gradient: its gradient.
            variable: a variable that is trained.
            learning_rate: the learning rate, a scalar.

        Raises:
            NotImplementedError: where a subclass has to define it.
        """
        raise NotImplementedError(f"{type(self).__name__} has to define update_step(gradient, variable, learning_rate)")

    def update_rows(self, rows: SparseRows, variable: Variable, learning_rate: Tensor) -> None:
        """What ``update_step`` does, where it changes nothing but rows whose gradient is not 0.

        A class defines it beside its ``update_step``.

        Args:
            rows: the rows of its gradient that are not 0.
            variable: a variable that is trained.
            learning_rate: the learning rate, a scalar.

        Raises:
            NotImplementedError: where a class updates no single rows.
        """
        raise NotImplementedError(f"{type(self).__name__} does not update single rows")

    def _leaves_rows(self) -> bool:
        """Whether rows without a gradient stay as they are."""
        owner = next(kind for kind in type(self).__mro__ if "update_step" in vars(kind))
        return "update_rows" in vars(owner) and owner is not Optimizer

    def assign(self, variable: Variable, value: ArrayLike) -> None:
        """Set a variable or a slot, rounded to its dtype.

        Args:
            variable: a variable or a slot.
            value: its new value.
        """
        variable.assign(cast(as_tensor(value, type(self).__name__), variable.dtype))

    def assign_add(self, variable: Variable, delta: object) -> None:
        """Add to a variable or a slot, rounded once.

        Args:
            variable: a variable or a slot.
            delta: what is added.
        """
        self.assign(variable, variable + delta)

    def assign_sub(self, variable: Variable, delta: object) -> None:
        """Subtract from a variable or a slot, rounded once.

        Args:
            variable: a variable or a slot.
            delta: what is subtracted.
        """
        self.assign(variable, variable - delta)

    def with_state(
        self, calls: Variable, slots: Iterable[tuple[Variable, dict[str, Variable]]], rate: Rate | None = None
    ) -> Self:
        """One that does the same over state held elsewhere.

        Args:
            calls: the number of updates, an integer variable.
            slots: pairs of a variable and its slots by name.
            rate: another learning rate, or None.

        Returns:
            A new optimizer.
        """
        again = copy.copy(self)
        pairs = list(slots)
        again._state = _State(
            [variable for variable, _ in pairs], [slots_of_variable for _, slots_of_variable in pairs]
        )
        again._calls = calls
        if rate is not None:
            again._rate = self._rate_of(rate)
        return again

    # What is done to gradients and variables

    def _clipped(self, gradients_given: Sequence[Tensor | SparseGrad]) -> Sequence[Any]:
        if self.clipvalue is self.clipnorm is self.global_clipnorm is None:
            return gradients_given
        gradients = list(map(_densify, gradients_given))
        if self.clipvalue is not None:
            return [maximum(minimum(g, self.clipvalue), -self.clipvalue) for g in gradients]
        if self.clipnorm is not None:
            return [clip_by_norm(g, self.clipnorm) for g in gradients]
        return clip_by_global_norm(gradients, self.global_clipnorm or 0.0)[0]

    def exclude_from_weight_decay(
        self, var_list: Iterable[Variable] | None = None, var_names: Iterable[str] | None = None
    ) -> None:
        """Name variables that weight decay leaves alone.

        Args:
            var_list: the variables, or None.
            var_names: texts that their names contain, or None.

        Raises:
            ArgumentError: once there was an update.
        """
        if self._state.trained:
            raise ArgumentError(type(self).__name__, "exclude_from_weight_decay comes before the first update.")
        self._undecayed = tuple(var_list or ()), tuple(var_names or ())

    def _decay_of(self, variable: Variable) -> float | None:
        """The share by which a variable shrinks, times the learning rate."""
        return self.weight_decay

    def _is_undecayed(self, variable: Variable) -> bool:
        variables, names = self._undecayed
        return any(v is variable for v in variables) or any(name in (variable.name or "") for name in names)

    def _move_averages(self, variables: Sequence[Variable]) -> None:
        every = self.ema_overwrite_frequency
        done = self.iterations + 1
        momentum = where(equal(done, 1), 0.0, self.ema_momentum)  # the first average is the first value
        for variable in variables:
            average = self.get_slot(variable, "average")
            share = cast(momentum, average.dtype)
            self.assign(average, share * average + (1 - share) * variable)
            if every is not None:
                value = cast(as_tensor(average, "average"), variable.dtype)
                self.assign(variable, where(equal(remainder(done, every), 0), value, variable))

    def finalize_variable_values(self, var_list: Iterable[Variable]) -> None:
        """With ``use_ema``, make the averages the variables' values: the end of training.

        Args:
            var_list: the variables.
        """
        if self.use_ema:
            for variable in var_list:
                self.assign(variable, self.get_slot(variable, "average"))

    # Configuration

    def get_config(self) -> dict[str, Any]:
        """The arguments that make another one like this.

        Returns:
            A dict of numbers, texts and None; of a schedule a dict of these.
        """
        rate: object = self._rate.item() if isinstance(self._rate, Variable) else self._rate
        if isinstance(rate, LearningRateSchedule):
            rate = description(rate)
        return {
            "name": self.name,
            "learning_rate": rate,
            "weight_decay": self.weight_decay,
            "clipnorm": self.clipnorm,
            "clipvalue": self.clipvalue,
            "global_clipnorm": self.global_clipnorm,
            "use_ema": self.use_ema,
            "ema_momentum": self.ema_momentum,
            "ema_overwrite_frequency": self.ema_overwrite_frequency,
            "loss_scale_factor": self.loss_scale_factor,
            "gradient_accumulation_steps": self.gradient_accumulation_steps,
        } | self._own_arguments(Optimizer)

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """An instance with the arguments that ``get_config`` returned, without its state.

        Args:
            config: what ``get_config`` returned.

        Returns:
            A new optimizer.
        """
        arguments = dict(config)
        rate = arguments.get("learning_rate")
        if isinstance(rate, dict):
            arguments["learning_rate"] = schedules.from_config(rate)
        return cls(**arguments)

    def __repr__(self) -> str:
        rate = self._rate.item() if isinstance(self._rate, Variable) else self._rate
        return f"<{type(self).__name__} learning_rate={rate!r}, {len(self._state.trained)} variables>"

    def _check_bounds(self, **bounds: float | None) -> None:
        chosen = {name: bound for name, bound in bounds.items() if bound is not None}
        if len(chosen) > 1:
            raise ArgumentError(type(self).__name__, f"{' and '.join(chosen)} are given; at most one of them may be.")
        for name, bound in chosen.items():
            if not bound > 0:
                raise self._wrong(name, bound, "positive")

    def _check_decay(self, name: str, share: object) -> None:
        if share is not None and not (isinstance(share, numbers.Real) and 0 <= float(share) < math.inf):
            raise self._wrong(name, share, "0 or more, and finite, or None")

    def _wrong(self, name: str, value: object, expected: str) -> ArgumentError:
        return ArgumentError(type(self).__name__, f"{name} is {value!r}; it must be {expected}.")

    def _in_unit(self, **shares: float) -> None:
        """Raise ArgumentError unless each is at least 0 and less than 1."""
        for name, share in shares.items():
            if not 0 <= share < 1:
                raise self._wrong(name, share, "at least 0 and less than 1")


def _settings(kind: type[Any]) -> frozenset[str]:
    """The arguments of a class here, or of those behind one of the user's, that updates have as they were."""
    owner = (one for one in kind.__mro__ if one.__module__.startswith(f"{__package__}.") and "__init__" in vars(one))
    return frozenset().union(*map(_arguments_of, owner))


@functools.cache  # of the classes here alone: the user's come and go
def _arguments_of(kind: type[Any]) -> frozenset[str]:
    return frozenset(inspect.signature(kind).parameters) - {"args", "options", "learning_rate", "name"}


def _of_all_replicas(gradients: Sequence[Tensor | IndexedSlices]) -> list[Tensor | IndexedSlices]:
    """Inside of a replica of a strategy: the gradients of the sum of all replicas' losses."""
    if strategy_axis() is None:
        return list(gradients)
    dense = iter(sums_over_replicas([as_tensor(g, "optimizer") for g in gradients if not isinstance(g, IndexedSlices)]))
    return [_rows_of_all(g) if isinstance(g, IndexedSlices) else next(dense) for g in gradients]


def _rows_of_all(gradient: IndexedSlices) -> IndexedSlices:
    values, indices = of_all_replicas(gradient.values), of_all_replicas(gradient.indices)
    return IndexedSlices(values, indices, gradient.dense_shape)


def _as_rows(gradient: Tensor | IndexedSlices) -> Tensor | Terms:
    """The rows of a gradient that nobody has looked at."""
    if isinstance(gradient, IndexedSlices):
        return gradient._rows()
    rows = few_rows(gradient)
    return gradient if rows is None else rows


def _as_sum(gradient: Tensor | Terms, variable: Variable) -> Tensor | SparseGrad:
    if isinstance(gradient, Tensor):
        return gradient
    dtype = next(lookups(gradient)).rows.dtype
    return SparseGrad(builder, variable.type.with_dtype(dtype), gradient)


def _densify(gradient: Tensor | SparseGrad) -> Tensor:
    return gradient() if isinstance(gradient, SparseGrad) else gradient


def _computed(dtype: np.dtype[Any]) -> Any:
    """The dtype in which variables of a dtype are updated, and their state is held."""
    return dtypes.float32 if dtypes.is_narrow_float(dtype) else dtype


def _short_repr(value: object) -> str:
    return f"{value!r:.60}".partition("\n")[0]
