"""Cells and loops of recurrent networks: ``tf.nn.rnn_cell``, ``tf.nn.dynamic_rnn`` and ``tf.nn.static_rnn``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hybridflow.compat.v1.constants import convert_to_tensor
from hybridflow.compat.v1.control import scan
from hybridflow.compat.v1.functions import TABLE as tf
from hybridflow.compat.v1.initializers import constant_initializer, zeros_initializer
from hybridflow.compat.v1.nn import TABLE as nn
from hybridflow.compat.v1.nodes import Tensor
from hybridflow.compat.v1.scopes import VariableScope, get_variable, variable_scope
from hybridflow.compiler.ir import dtypes
from hybridflow.core import pytree

if TYPE_CHECKING:
    from hybridflow.compat.export import TensorLike
    from hybridflow.core.type_aliases import ArrayLike, DTypeLike


class LSTMStateTuple(NamedTuple):
    """What a long short-term memory remembers, and its output."""

    c: object
    h: object


class RNNCell:
    """The base of cells: ``output, state = cell(inputs, state)``.  Subclasses define ``call``, and their sizes."""

    def __init__(self, name: str, activation: Any = None, reuse: Any = None) -> None:
        self._name, self._activation, self._reuse = name, activation or nn["tanh"], reuse
        self._scope: object = None

    @property
    def state_size(self) -> Any:
        raise NotImplementedError

    @property
    def output_size(self) -> int:
        raise NotImplementedError

    def call(self, inputs: Tensor, state: object) -> tuple[Any, Any]:
        raise NotImplementedError

    def zero_state(self, batch_size: object, dtype: object = dtypes.float32) -> Any:
        """A state of zeros, for a batch of a size."""
        sizes, structure = pytree.flatten(self.state_size)
        return pytree.unflatten(structure, [tf["zeros"](tf["stack"]([batch_size, size]), dtype) for size in sizes])

    def __call__(self, inputs: Tensor, state: object, scope: str | VariableScope | None = None) -> tuple[Any, Any]:
        if self._scope is None:  # a cell has one set of variables, wherever it is called again
            with variable_scope(scope or self._name, reuse=self._reuse) as self._scope:
                return self.call(convert_to_tensor(inputs), state)
        with variable_scope(self._scope, reuse=True):
            return self.call(convert_to_tensor(inputs), state)

    _kernel: object = None  # initializers, where the cell has its own
    _bias: object = None

    def _linear(self, parts: Sequence[Any], size: int, name: str = "", bias: Any = None) -> Any:
        joined = tf["concat"](list(parts), 1)
        width = sum(int(part.shape[1]) for part in parts)
        kernel = get_variable(f"{name}kernel", [width, size], initializer=self._kernel)
        bias = self._bias if self._bias is not None else bias
        return nn["bias_add"](
            tf["matmul"](joined, kernel), get_variable(f"{name}bias", [size], initializer=bias or zeros_initializer())
        )


class BasicRNNCell(RNNCell):
    """``tanh(inputs @ w + state @ u + b)``."""

    def __init__(
        self,
        num_units: int,
        activation: object = None,
        reuse: object = None,
        name: str | None = None,
        dtype: object = None,
    ) -> None:
        super().__init__(name or "basic_rnn_cell", activation, reuse)
        self._units = num_units

    @property
    def state_size(self) -> int:
        return self._units

    output_size = state_size

    def call(self, inputs: Tensor, state: object) -> tuple[Any, Any]:
        output = self._activation(self._linear([inputs, state], self._units))
        return output, output


class GRUCell(BasicRNNCell):
    """Gated recurrent units, with the reset gate before the product."""

    def __init__(
        self,
        num_units: int,
        activation: object = None,
        reuse: object = None,
        kernel_initializer: object = None,
        bias_initializer: object = None,
        name: str | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(num_units, activation, reuse, name or "gru_cell")
        self._kernel, self._bias = kernel_initializer, bias_initializer

    def call(self, inputs: Tensor, state: Any) -> tuple[Any, Any]:
        gates = nn["sigmoid"](self._linear([inputs, state], 2 * self._units, "gates/", constant_initializer(1.0)))
        reset, update = tf["split"](gates, 2, axis=1)
        candidate = self._activation(self._linear([inputs, reset * state], self._units, "candidate/"))
        output = update * state + (1 - update) * candidate
        return output, output


class BasicLSTMCell(RNNCell):
    """A long short-term memory; ``forget_bias`` is added to what opens the forget gate."""

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        state_is_tuple: bool = True,
        activation: object = None,
        reuse: object = None,
        name: str | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(name or "basic_lstm_cell", activation, reuse)
        self._units, self._forget_bias, self._is_tuple = num_units, forget_bias, state_is_tuple

    @property
    def state_size(self) -> Any:
        return LSTMStateTuple(self._units, self._units) if self._is_tuple else 2 * self._units

    @property
    def output_size(self) -> int:
        return self._units

    def call(self, inputs: Tensor, state: Any) -> tuple[Any, Any]:
        c, h = state if self._is_tuple else tf["split"](state, 2, axis=1)
        i, j, f, o = tf["split"](self._linear([inputs, h], 4 * self._units), 4, axis=1)
        c = nn["sigmoid"](f + self._forget_bias) * c + nn["sigmoid"](i) * self._activation(j)
        h = nn["sigmoid"](o) * self._activation(c)
        return h, LSTMStateTuple(c, h) if self._is_tuple else tf["concat"]([c, h], 1)


class LSTMCell(BasicLSTMCell):
    """As BasicLSTMCell; peepholes and projections are not there."""

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        cell_clip: object = None,
        initializer: object = None,
        num_proj: object = None,
        proj_clip: object = None,
        num_unit_shards: object = None,
        num_proj_shards: object = None,
        forget_bias: float = 1.0,
        state_is_tuple: bool = True,
        activation: object = None,
        reuse: object = None,
        name: str | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        if use_peepholes or num_proj is not None or cell_clip is not None or proj_clip is not None:
            raise NotImplementedError("LSTMCell has no peepholes, projections or clipping in hybridflow.")
        if (num_unit_shards or 1) != 1 or (num_proj_shards or 1) != 1:
            raise NotImplementedError("LSTMCell has its variables in one part in hybridflow: leave out the shards.")
        super().__init__(num_units, forget_bias, state_is_tuple, activation, reuse, name or "lstm_cell")
        self._kernel = initializer


class MultiRNNCell(RNNCell):
    """Cells on top of each other."""

    def __init__(self, cells: Sequence[RNNCell], state_is_tuple: bool = True) -> None:
        if not state_is_tuple:
            raise NotImplementedError("MultiRNNCell has states that are tuples alone in hybridflow.")
        super().__init__("multi_rnn_cell")
        self._cells = list(cells)

    @property
    def state_size(self) -> Any:
        return tuple([cell.state_size for cell in self._cells])

    @property
    def output_size(self) -> int:
        return self._cells[-1].output_size

    def call(self, inputs: Tensor, state: Any) -> tuple[Any, Any]:
        states = []
        for k, (cell, cell_state) in enumerate(zip(self._cells, state)):
            with variable_scope(f"cell_{k}"):
                inputs, after = cell(inputs, cell_state)
            states.append(after)
        return inputs, tuple(states)


class DropoutWrapper(RNNCell):
    """A cell whose inputs and outputs are dropped out."""

    def __init__(
        self,
        cell: RNNCell,
        input_keep_prob: object = 1.0,
        output_keep_prob: object = 1.0,
        state_keep_prob: object = 1.0,
        variational_recurrent: bool = False,
        input_size: object = None,
        dtype: DTypeLike | None = None,
        seed: int | None = None,
        dropout_state_filter_visitor: object = None,
    ) -> None:
        """``input_size`` and ``dtype`` are for ``variational_recurrent``, and the visitor for states."""
        if not (isinstance(state_keep_prob, (int, float)) and state_keep_prob == 1) or variational_recurrent:
            raise NotImplementedError("DropoutWrapper drops inputs and outputs alone in hybridflow, each time anew.")
        super().__init__("dropout_wrapper")
        self._cell, self._into, self._out = cell, input_keep_prob, output_keep_prob
        self._seeds = (None, None) if seed is None else (2 * seed, 2 * seed + 1)  # what comes in and goes out differ

    @property
    def state_size(self) -> Any:
        return self._cell.state_size

    @property
    def output_size(self) -> int:
        return self._cell.output_size

    def __call__(self, inputs: Tensor, state: object, scope: str | VariableScope | None = None) -> tuple[Any, Any]:
        output, after = self._cell(_apply_dropout(inputs, self._into, self._seeds[0]), state, scope)
        return _apply_dropout(output, self._out, self._seeds[1]), after


def _apply_dropout(x: object, share: object, seed: int | None) -> Any:
    return x if isinstance(share, (int, float)) and share == 1 else nn["dropout"](x, keep_prob=share, seed=seed)


def dynamic_rnn(
    cell: RNNCell,
    inputs: ArrayLike,
    sequence_length: TensorLike | None = None,
    initial_state: object = None,
    dtype: Any = None,
    parallel_iterations: object = None,
    swap_memory: bool = False,
    time_major: bool = False,
    scope: str | VariableScope | None = None,
) -> tuple[Any, Any]:
    """The outputs of a cell along the second axis (with ``time_major`` the first), and its last state.

    Rows end after ``sequence_length`` steps: from there on outputs are 0 and the state stays.
    """
    if initial_state is None and dtype is None:
        raise ValueError("If there is no initial_state, you must give a dtype.")
    with variable_scope(scope or "rnn"):
        x = convert_to_tensor(inputs)
        x = x if time_major else tf["transpose"](x, [1, 0, *range(2, x.shape.ndims or 3)])
        sizes = tf["shape"](x)
        start = cell.zero_state(sizes[1], x.dtype) if initial_state is None else initial_state
        blank = tf["zeros"](tf["stack"]([sizes[1], cell.output_size]), x.dtype)
        lengths = None if sequence_length is None else tf["cast"](convert_to_tensor(sequence_length), np.dtype("int32"))

        def step(before: Any, row: Any) -> Any:
            step_inputs, number = row
            output, state = cell(step_inputs, before[1])
            return (output, state) if lengths is None else _ended(number < lengths, output, state, before[1])

        outputs, states = scan(step, (x, tf["range"](sizes[0])), (blank, start))
        outputs.set_shape([None, None, cell.output_size])
        leaves, structure = pytree.flatten(states)
        for leaf, size in zip(leaves, pytree.flatten(cell.state_size)[0]):
            leaf.set_shape([None, None, size])
        last = pytree.unflatten(structure, [leaf[-1] for leaf in leaves])
        return (outputs if time_major else tf["transpose"](outputs, [1, 0, 2])), last


def _ended(goes_on: object, output: object, state: object, before: object) -> tuple[Any, Any]:
    """What a step makes of the rows that go on; of others the output is 0 and the state stays."""
    leaves, structure = pytree.flatten(state)
    kept = [tf["where"](goes_on, a, b) for a, b in zip(leaves, pytree.flatten(before)[0])]
    return tf["where"](goes_on, output, tf["zeros_like"](output)), pytree.unflatten(structure, kept)


def bidirectional_dynamic_rnn(
    cell_fw: RNNCell,
    cell_bw: RNNCell,
    inputs: ArrayLike,
    sequence_length: Any = None,
    initial_state_fw: Any = None,
    initial_state_bw: object = None,
    dtype: Any = None,
    parallel_iterations: object = None,
    swap_memory: bool = False,
    time_major: bool = False,
    scope: Any = None,
) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """A cell forwards and another one backwards: pairs of their outputs and of their last states."""
    time, batch = (0, 1) if time_major else (1, 0)

    def turned(x: TensorLike) -> Any:
        if sequence_length is None:
            return tf["reverse"](x, [time])
        return tf["reverse_sequence"](x, sequence_length, time, batch)

    with variable_scope(scope or "bidirectional_rnn"):
        with variable_scope("fw") as scope_of_cell:
            there = dynamic_rnn(
                cell_fw, inputs, sequence_length, initial_state_fw, dtype, time_major=time_major, scope=scope_of_cell
            )
        with variable_scope("bw") as scope_of_cell:
            outputs, state = dynamic_rnn(
                cell_bw,
                turned(inputs),
                sequence_length,
                initial_state_bw,
                dtype,
                time_major=time_major,
                scope=scope_of_cell,
            )
    return (there[0], turned(outputs)), (there[1], state)


def static_rnn(
    cell: RNNCell,
    inputs: Sequence[Any],
    initial_state: object = None,
    dtype: DTypeLike | None = None,
    sequence_length: Any = None,
    scope: str | VariableScope | None = None,
) -> tuple[list[Any], Any]:
    """The outputs for a list of inputs, one for each step, and the last state; rows end as those of ``dynamic_rnn``."""
    with variable_scope(scope or "rnn"):
        first = convert_to_tensor(inputs[0])
        state = cell.zero_state(tf["shape"](first)[0], dtype or first.dtype) if initial_state is None else initial_state
        outputs = []
        lengths = None if sequence_length is None else tf["cast"](convert_to_tensor(sequence_length), np.dtype("int32"))
        for number, x in enumerate(inputs):
            before = state
            output, state = cell(x, before)
            if lengths is not None:
                output, state = _ended(number < lengths, output, state, before)
            outputs.append(output)
        return outputs, state


def static_bidirectional_rnn(
    cell_fw: RNNCell,
    cell_bw: RNNCell,
    inputs: Sequence[Any],
    initial_state_fw: object = None,
    initial_state_bw: object = None,
    dtype: DTypeLike | None = None,
    sequence_length: object = None,
    scope: str | VariableScope | None = None,
) -> tuple[list[Any], Any, Any]:
    """A cell forwards and another one backwards over a list of inputs: both outputs of each step side by side, and the
    last states of the two."""

    def turned(steps: Sequence[Any]) -> list[Any]:
        if sequence_length is None:
            return list(reversed(steps))
        result: list[Any] = tf["unstack"](tf["reverse_sequence"](tf["stack"](list(steps)), sequence_length, 0, 1))
        return result

    with variable_scope(scope or "bidirectional_rnn"):
        with variable_scope("fw") as scope_of_cell:
            there, last = static_rnn(cell_fw, inputs, initial_state_fw, dtype, sequence_length, scope_of_cell)
        with variable_scope("bw") as scope_of_cell:
            back, first = static_rnn(cell_bw, turned(inputs), initial_state_bw, dtype, sequence_length, scope_of_cell)
    return [tf["concat"]([a, b], 1) for a, b in zip(there, turned(back))], last, first


NAMES = {
    "RNNCell": RNNCell, "BasicRNNCell": BasicRNNCell, "GRUCell": GRUCell, "BasicLSTMCell": BasicLSTMCell,
    "LSTMCell": LSTMCell, "MultiRNNCell": MultiRNNCell, "DropoutWrapper": DropoutWrapper,
    "LSTMStateTuple": LSTMStateTuple,
}  # fmt: skip
