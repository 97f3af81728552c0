"""Recurrent layers: cells along sequences ``[batch, steps, features]``, as one loop."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack

from hybridflow.array.creation import zeros, zeros_like
from hybridflow.array.elementwise import add, divide, multiply, where
from hybridflow.array.shapes import concat, expand_dims, flip, moveaxis, reshape
from hybridflow.control.eager_loops import run_for
from hybridflow.control.loop_state import Nest
from hybridflow.core.allocation_limit import take_room
from hybridflow.core.tensor import Tensor
from hybridflow.core.variable import Variable
from hybridflow.errors import ArgumentError, ArgumentTypeError, ShapeError
from hybridflow.layers import cells
from hybridflow.layers.layer import Layer, LayerOptions, as_layer, describe
from hybridflow.layers.wrapper import Wrapper

if TYPE_CHECKING:
    from hybridflow.core.type_aliases import ArrayLike


class RNN(Layer, one_tensor=True):
    """Recurrent layer: a cell along the steps of a sequence, ``[batch, steps, features]`` to ``[batch, units]``, the
    last output.

    A cell is a layer with ``call(inputs, states)``, which returns an output and the new states, and ``state_size``, an
    int or a list; a list of cells is ``StackedRNNCells``.

    - ``return_sequences``: all outputs, ``[batch, steps, units]``;
    - ``return_state``: a tuple of the result and each state after the last step;
    - ``go_backwards``: from the last step to the first, which is the order of the outputs too;
    - ``stateful``: each call begins with the states of the one before, until ``reset_state()``;
    - ``unroll``: accepted for Keras's sake; compiled loops need no unrolling, and the results are the same;
    - ``zero_output_for_mask``: outputs are 0 at steps that are masked, else those of the step before.

    States do not change at steps that are masked.  ``initial_state`` is a list of the states to begin with.

    Args:
        cell: a cell, or a list of cells.
        return_sequences: whether all steps are returned rather than the last.
        return_state: whether the last state is returned, too.
        go_backwards: whether it begins with the last step.
        stateful: whether the state of one batch is where the next begins.
        unroll: has no effect on results: whether the loop is traced step by step.
        zero_output_for_mask: whether results of masked steps are 0.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> class Sum(hf.layers.Layer):
    ...     state_size = 2
    ...     def call(self, inputs, states):
    ...         return states[0] + inputs, [states[0] + inputs]
    >>> hf.layers.RNN(Sum(), return_sequences=True)([[[1.0, 0.0], [2.0, 1.0], [3.0, 0.0]]])
    <Tensor f32[1,3,2] cpu>
    [[[1. 0.]
      [3. 1.]
      [6. 1.]]]
    """

    supports_masking = True

    def __init__(
        self,
        cell: Layer,
        return_sequences: bool = False,
        return_state: bool = False,
        go_backwards: bool = False,
        stateful: bool = False,
        unroll: bool = False,
        zero_output_for_mask: bool = False,
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**options)
        self.cell = cells.StackedRNNCells(cell) if isinstance(cell, (list, tuple)) else as_layer(cell)
        cells.check_cell(self.cell, self)
        self.return_sequences, self.return_state = bool(return_sequences), bool(return_state)
        self.go_backwards, self.stateful = bool(go_backwards), bool(stateful)
        self.unroll, self.zero_output_for_mask = bool(unroll), bool(zero_output_for_mask)
        self.states: object = None

    def build(self, input_shape: tuple[Any, ...]) -> None:
        if len(input_shape) != 3 and (len(input_shape) < 3 or cells.takes_vectors(self.cell)):
            raise ShapeError(self.name, f"the input has the shape {input_shape}; it must be [batch, steps, features].")
        cells.build_cell(self.cell, (input_shape[0], *input_shape[2:]))
        if self.stateful:
            if input_shape[0] is None:
                raise ShapeError(self.name, "a stateful layer is first called with a batch of known size.")
            take_room(self.name, (input_shape[0],))
            first = Nest(cells.initial_state(self.cell, input_shape[0], self.compute_dtype), "states")
            self.states = first.filled([Variable(x, trainable=False, name="state") for x in first.values])

    def get_initial_state(self, batch_size: int) -> list[Any]:
        """The states that a batch begins with, where none are given.

        Args:
            batch_size: the number of rows.

        Returns:
            A list of tensors.
        """
        return cells.initial_state(self.cell, batch_size, self.compute_dtype)

    def _passing(self) -> list[Any]:
        return super()._passing() + ([] if self.states is None else list(Nest(self.states, "states").values))

    def reset_state(self) -> None:
        """Make the states of a stateful layer 0."""
        if self.states is not None:
            for state in Nest(self.states, "states").values:
                state.assign(zeros_like(state))

    def reset_states(self) -> None:
        """Keras 2's name for ``reset_state``."""
        self.reset_state()

    def call(
        self,
        inputs: Any,
        initial_state: Any = None,
        mask: Any = None,
        training: bool | None = None,
    ) -> Any:
        """The last output of the cell, or all outputs, and its states, as the layer says.

        Args:
            inputs: a tensor [batch, steps, features].
            initial_state: the states to begin with, a list of tensors; by default what the cell has.
            mask: a bool tensor [batch, steps], False where a step is left out, or None.
            training: whether the model is being trained.

        Returns:
            A tensor [batch, units], or [batch, steps, units] for ``return_sequences``. With ``return_state`` a tuple:
            that, and each state.

        Raises:
            ShapeError: for inputs of other axes.
        """
        if inputs.ndim != 3 and (inputs.ndim < 3 or cells.takes_vectors(self.cell)):
            raise ShapeError(self.name, f"the input is {inputs.type}; it must be [batch, steps, features].")
        outputs, last, states = self._scan(inputs, self._first(inputs, initial_state), mask, training)
        if self.stateful:
            for variable, state in zip(Nest(self.states, "states").values, Nest(states, "states").values):
                variable.assign(state)
        result = moveaxis(outputs, 0, 1) if self.return_sequences else last
        return (result, *states) if self.return_state else result

    def _first(self, inputs: Tensor, initial_state: Any) -> list[Any]:
        """The states to begin with."""
        batch = inputs.shape[0]
        if initial_state is None and self.stateful:
            initial_state = self.states
            held = Nest(initial_state, "states").values[0].shape[0]
            if batch != held:
                raise ShapeError(self.name, f"the batch is {batch}; the states are of a batch of {held}.")
        if initial_state is None:
            return cells.initial_state(self.cell, batch, self.compute_dtype)
        states = list(initial_state) if isinstance(initial_state, (list, tuple)) else [initial_state]
        sizes = self.cell.state_size
        count = len(sizes) if isinstance(sizes, (list, tuple)) else 1
        if len(states) != count:
            raise ArgumentError(self.name, f"there are {len(states)} initial states; the cell has {count}.")
        return [self._converted(state) for state in states]

    def _scan(
        self, inputs: Tensor, states: list[Tensor], mask: ArrayLike, training: bool | None
    ) -> tuple[Any, Any, list[Any]]:
        """The outputs step by step if these are asked for, the last output, and the last states."""
        project, step = cells.prepared(self.cell, inputs.shape[0], training)
        sequence = project(moveaxis(inputs, 1, 0))
        output = zeros((inputs.shape[0], *cells.output_shape(self.cell)), dtype=self.compute_dtype)
        carried = Nest([output, states], "the states")

        def iteration(values: Sequence[Any], slices: Sequence[Tensor]) -> tuple[list[Any], list[Any]]:
            before, old = carried.filled(values)
            out, new = step(slices[0], old)
            new = new if isinstance(new, (list, tuple)) else [new]
            if mask is not None:
                out = _chosen(slices[1], out, zeros_like(out) if self.zero_output_for_mask else before)
                pairs = zip(Nest(list(new), "").values, Nest(old, "").values)
                after = [_chosen(slices[1], x, y) for x, y in pairs]
            else:
                after = Nest(list(new), "").values
            return [out, *after], [out] if self.return_sequences else []

        walked = [sequence] if mask is None else [sequence, moveaxis(mask, 1, 0)]
        values, stacks = run_for(
            self.name, inputs.shape[1], iteration, carried.values, walked, carried.names, self.go_backwards
        )
        last, after = carried.filled(values)
        if not self.return_sequences:
            return None, last, after
        return flip(stacks[0], axis=0) if self.go_backwards else stacks[0], last, after

    def compute_mask(self, inputs: object, mask: Tensor | None = None) -> Any:
        """The mask of the outputs: that of the inputs where all steps are returned.

        Args:
            inputs: the inputs.
            mask: the mask of the inputs, or None.

        Returns:
            A bool tensor or None; a list of it with ``return_state``.
        """
        output_mask = mask if self.return_sequences else None
        return [output_mask] if self.return_state else output_mask

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"cell": describe(self.cell)} | self._walking()

    def _walking(self) -> dict[str, Any]:
        names = "return_sequences", "return_state", "go_backwards", "stateful", "unroll", "zero_output_for_mask"
        return {name: getattr(self, name) for name in names}


def _chosen(there: Tensor, new: Tensor, old: ArrayLike) -> Any:
    for _ in range(new.ndim - there.ndim):
        there = expand_dims(there, axis=-1)
    return where(there, new, old)


# Arguments of a recurrent layer that are not its cell's.
OF_LAYERS = frozenset(inspect.signature(Layer.__init__).parameters) | frozenset(
    name for name in inspect.signature(RNN.__init__).parameters if name != "cell"
)


# The order of arguments without a name, which is Keras's: it differs from layer to layer.
_STARTS = "kernel_initializer", "recurrent_initializer", "bias_initializer"
_RULES = (
    *("kernel_regularizer", "recurrent_regularizer", "bias_regularizer", "activity_regularizer"),
    *("kernel_constraint", "recurrent_constraint", "bias_constraint", "dropout", "recurrent_dropout"),
)
_SCANS = "return_sequences", "return_state", "go_backwards", "stateful"
_GATED = "activation", "recurrent_activation", "use_bias", *_STARTS
REMEMBERING = (*_GATED, "unit_forget_bias", *_RULES, "seed", *_SCANS)


def split_arguments(layer: str, order: Sequence[str], values: Sequence[Any], options: Any) -> tuple[Any, Any]:
    """Arguments of a recurrent layer that makes its own cell, without and with a name: the cell's, and the layer's.

    Raises ArgumentTypeError, which names the layer, for one that comes twice, or too many.
    """
    if len(values) > len(order):
        raise ArgumentTypeError(
            layer, f"there are {len(values)} arguments without a name; at most {len(order)} may be."
        )
    named = dict(zip(order, values))
    for name in named:
        if name in options:
            raise ArgumentTypeError(layer, f"{name} is given twice: once without its name.")
    of_cell = named | options
    layer_options = {name: of_cell.pop(name) for name in list(of_cell) if name in OF_LAYERS}
    return of_cell | {
        name: layer_options[name] for name in ("dtype", "trainable") if name in layer_options
    }, layer_options


class _OfOneCell(RNN):
    """A recurrent layer that makes its own cell: arguments are those of the cell, and of ``RNN``."""

    _kind: type[cells.Cell]
    _order: tuple[str, ...]

    def __init__(self, units: int, *arguments: object, **options: Any) -> None:
        of_cell, layer_options = split_arguments(type(self).__name__, self._order, arguments, options)
        kind: Any = self._kind
        super().__init__(kind(units, **of_cell), **layer_options)

    def get_config(self) -> dict[str, Any]:
        return self.cell.get_config() | Layer.get_config(self) | self._walking()


class SimpleRNN(_OfOneCell):
    """Fully connected recurrent layer.

    ``activation(inputs @ kernel + bias + state @ recurrent_kernel)`` at each step: see ``SimpleRNNCell`` and ``RNN``,
    whose arguments it takes.

    Args:
        units: how many outputs, or elements of the state.
        *arguments: those of the class of the cell or layer, see there.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> hf.layers.SimpleRNN(4)(hf.ones((2, 5, 3))).shape
    (2, 4)
    """

    _kind = cells.SimpleRNNCell
    _order = ("activation", "use_bias", *_STARTS, *_RULES, *_SCANS, "unroll", "seed")


class LSTM(_OfOneCell):
    """Long short-term memory (LSTM) along a sequence.

    A long short-term memory: see ``LSTMCell`` and ``RNN``, whose arguments it takes.

    Args:
        units: how many outputs, or elements of the state.
        *arguments: those of the class of the cell or layer, see there.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> layer = hf.layers.LSTM(4, return_sequences=True, return_state=True)
    >>> [x.shape for x in layer(hf.ones((2, 5, 3)))]
    [(2, 5, 4), (2, 4), (2, 4)]
    """

    _kind = cells.LSTMCell
    _order = (*REMEMBERING, "unroll")


class GRU(_OfOneCell):
    """Gated recurrent unit (GRU) along a sequence.

    Gated recurrent units: see ``GRUCell`` and ``RNN``, whose arguments it takes.

    Args:
        units: how many outputs, or elements of the state.
        *arguments: those of the class of the cell or layer, see there.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> hf.layers.GRU(4, return_sequences=True)(hf.ones((2, 5, 3))).shape
    (2, 5, 4)
    """

    _kind = cells.GRUCell
    _order = (*_GATED, *_RULES, "seed", *_SCANS, "unroll", "reset_after")


_MERGES = {"sum": add, "mul": multiply}


class Bidirectional(Layer, one_tensor=True):
    """Bidirectional recurrent layer: two layers like the given one, one of which goes backwards, or
    ``backward_layer``; and their outputs as one.

    ``weights`` are the first values of all weights, as ``set_weights`` takes them.
    ``merge_mode`` is "concat", "sum", "mul", "ave", or None for a tuple of both.  With ``return_state`` the states of
    the one and then the other follow.

    Args:
        layer: the layer that is wrapped.
        merge_mode: how both directions are put together: ``"concat"``, ``"sum"``, ``"mul"``, ``"ave"``, or None for
            a list.
        weights: the first values of the weights.
        backward_layer: the layer that goes backwards; a copy of the other unless given.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> hf.layers.Bidirectional(hf.layers.GRU(4, return_sequences=True))(hf.ones((2, 5, 3))).shape
    (2, 5, 8)
    """

    supports_masking = True

    def __init__(
        self,
        layer: Layer,
        merge_mode: str | None = "concat",
        weights: Any = None,
        backward_layer: object = None,
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**options)
        if merge_mode not in ("concat", "sum", "mul", "ave", None):
            raise ArgumentError(
                self.name, f"merge_mode is {merge_mode!r}; it must be 'concat', 'sum', 'mul', 'ave' or None."
            )
        forward = as_layer(layer)
        if not isinstance(forward, RNN):
            raise ArgumentTypeError(self.name, f"{layer!r:.60} is no recurrent layer.")
        config = forward.get_config()
        self.merge_mode = merge_mode
        name = forward.name.removeprefix("forward_")  # which it has in a configuration of ours
        self.forward_layer: Any = type(forward).from_config(config | {"name": f"forward_{name}"})
        if backward_layer is None:
            turned = {"go_backwards": not forward.go_backwards, "name": f"backward_{name}"}
            self.backward_layer: Any = type(forward).from_config(config | turned)
        else:
            self.backward_layer = as_layer(backward_layer)
        self._check()
        self.return_sequences, self.return_state = forward.return_sequences, forward.return_state
        for one in (self.forward_layer, self.backward_layer):
            one.zero_output_for_mask = self.return_sequences
        self._first = None if weights is None else list(weights)

    def build(self, input_shape: tuple[Any, ...]) -> None:
        if self._first is None:
            return
        for one in (self.forward_layer, self.backward_layer):
            if not one.built:
                one.build(input_shape)
                one.built = True
        self.set_weights(self._first)

    def _check(self) -> None:
        one, other = self.forward_layer, self.backward_layer
        if one.go_backwards == other.go_backwards:
            raise ArgumentError(self.name, "one of the two layers has to go backwards, and the other not.")
        for name in ("stateful", "return_sequences", "return_state"):
            if getattr(one, name) != getattr(other, name):
                raise ArgumentError(self.name, f"both layers must have the same {name}.")

    def call(
        self,
        inputs: Tensor,
        initial_state: Any = None,
        mask: Tensor | None = None,
        training: bool | None = None,
    ) -> Any:
        """The outputs of both layers, one of which reads the steps backwards.

        Args:
            inputs: a tensor [batch, steps, features].
            initial_state: the states of the one layer, then those of the other, or None.
            mask: a bool tensor [batch, steps], False where a step is left out, or None.
            training: whether the model is being trained.

        Returns:
            A tensor, as ``merge_mode`` says; two where that is None. With ``return_state`` a tuple: that, and each
            state.

        Raises:
            ShapeError: for inputs of other axes.
        """
        half = None if initial_state is None else len(initial_state) // 2
        starts = (None, None) if half is None else (initial_state[:half], initial_state[half:])
        one = self.forward_layer(inputs, initial_state=starts[0], mask=mask, training=training)
        other = self.backward_layer(inputs, initial_state=starts[1], mask=mask, training=training)
        states: tuple[Any, ...] = ()
        if self.return_state:
            states = (*one[1:], *other[1:])
            one, other = one[0], other[0]
        if self.return_sequences:
            other = flip(other, axis=1)
        merged = self._merged(one, other)
        if self.merge_mode is None:
            return (*merged, *states)
        return (merged, *states) if self.return_state else merged

    def _merged(self, one: Tensor, other: Tensor) -> Any:
        if self.merge_mode is None:
            return one, other
        if self.merge_mode == "concat":
            return concat([one, other], axis=-1)
        return divide(add(one, other), 2) if self.merge_mode == "ave" else _MERGES[self.merge_mode](one, other)

    def reset_state(self) -> None:
        """Make the states of both layers 0."""
        self.forward_layer.reset_state()
        self.backward_layer.reset_state()

    def reset_states(self) -> None:
        """Keras 2's name for ``reset_state``."""
        self.reset_state()

    def compute_mask(self, inputs: object, mask: Tensor | None = None) -> Any:
        """The mask of the outputs: that of the inputs where all steps are returned.

        Args:
            inputs: the inputs.
            mask: the mask of the inputs, or None.

        Returns:
            A bool tensor or None; a list where there are several outputs.
        """
        output_mask = mask if self.return_sequences else None
        if self.merge_mode is None:
            return [output_mask, output_mask]
        return [output_mask] if self.return_state else output_mask

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {
            "layer": describe(self.forward_layer),
            "merge_mode": self.merge_mode,
            "backward_layer": describe(self.backward_layer),
        }


class TimeDistributed(Wrapper, one_tensor=True):
    """A layer at each step of ``[batch, steps, ...]``.

    All steps are done at once, as if they were more of the batch. A layer with weights that are not trained, such as
    ``BatchNormalization``, is called for one step after another while it trains.

    Args:
        layer: the layer that is wrapped.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> hf.layers.TimeDistributed(hf.layers.Dense(4))(hf.ones((2, 5, 3))).shape
    (2, 5, 4)
    """

    supports_masking = True

    def build(self, input_shape: Any = None) -> None:
        if len(input_shape) < 3:
            raise ShapeError(self.name, f"the input has the shape {input_shape}; it must be [batch, steps, ...].")

    def call(self, inputs: Tensor, training: bool | None = None, mask: Tensor | None = None) -> Any:
        """What the layer makes of each step.

        Args:
            inputs: a tensor [batch, steps, ...].
            training: whether the model is being trained.
            mask: a bool tensor [batch, steps], or None.

        Returns:
            A tensor [batch, steps, ...].
        """
        parts = [inputs] if mask is None or not self.layer._takes_mask else [inputs, mask]
        lead = inputs.shape[:2]
        if training and lead[1] != 0 and (not self.layer.built or self.layer.non_trainable_weights):
            return self._scan(parts)
        count = lead[0] * lead[1]
        out = self._step([_joined(part, count) for part in parts])
        return reshape(out, (*lead, *out.shape[1:]))

    def _step(self, parts: list[Any]) -> Any:
        """What the layer makes of inputs, and their mask if it is given."""
        return self.layer(parts[0]) if len(parts) == 1 else self.layer(parts[0], mask=parts[1])

    def _scan(self, parts: list[Any]) -> Any:
        """What the layer makes of one step after another; the first builds it, which loops do not."""
        first = self._step([part[:, 0] for part in parts])
        rest = [moveaxis(part[:, 1:], 1, 0) for part in parts]
        _, (stacks,) = run_for(
            self.name, rest[0].shape[0], lambda carried, slices: ([], [self._step(slices)]), [], rest, []
        )
        return concat([expand_dims(first, axis=1), moveaxis(stacks, 0, 1)], axis=1)


def _joined(x: Tensor, count: int) -> Any:
    """``[batch, steps, ...]`` to ``[batch * steps, ...]``."""
    return reshape(x, (count, *x.shape[2:]))
