"""Cells: what recurrent layers do at one step of a sequence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Unpack

from hybridflow import initializers
from hybridflow.array import random
from hybridflow.array.creation import ones, zeros
from hybridflow.array.shapes import concat, split
from hybridflow.compiler.ir.extents import Dim
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import DTypeLike
from hybridflow.core.variable import Variable
from hybridflow.errors import ArgumentError
from hybridflow.layers.activation_functions import activation as activation_of
from hybridflow.layers.basic import positive
from hybridflow.layers.layer import Layer, LayerOptions, as_layer, check_last_extent, check_rate, last_extent
from hybridflow.nn.functional import dropout as dropped
from hybridflow.quantize.quantized_weight import contract

Project = Callable[[Any], Any]
Step = Callable[[Any, Any], tuple[Any, Any]]


class Cell(Layer, one_tensor=True):
    """The base of the cells here: ``activation`` of a product of the input with ``kernel`` and of the state with
    ``recurrent_kernel``, for each of ``_gates`` parts of these.

    While training, each element of inputs and states is dropped with probability ``dropout`` or ``recurrent_dropout``:
    in a layer the same ones at all steps, and for all gates.
    """

    _gates: int
    bias_initializer: Any
    kernel: Variable
    recurrent_kernel: Variable
    bias: Variable | None

    def __init__(
        self,
        units: int,
        activation: object,
        use_bias: bool,
        kernel_initializer: object = "glorot_uniform",
        recurrent_initializer: object = "orthogonal",
        bias_initializer: object = "zeros",
        kernel_regularizer: object = None,
        recurrent_regularizer: object = None,
        bias_regularizer: object = None,
        kernel_constraint: object = None,
        recurrent_constraint: object = None,
        bias_constraint: object = None,
        dropout: float = 0.0,
        recurrent_dropout: float = 0.0,
        seed: int | None = None,
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**options)
        self.units = positive(units, "units", self)
        self.activation, self.use_bias = activation_of(activation), bool(use_bias)
        self._settle("kernel", kernel_initializer, kernel_regularizer, kernel_constraint)
        self._settle("recurrent", recurrent_initializer, recurrent_regularizer, recurrent_constraint)
        self._settle("bias", bias_initializer, bias_regularizer, bias_constraint)
        for name, rate in (("dropout", dropout), ("recurrent_dropout", recurrent_dropout)):
            check_rate(self, name, rate)
        self.dropout, self.recurrent_dropout, self.seed = float(dropout), float(recurrent_dropout), seed
        self.generator = None if seed is None else random.Generator(seed)

    @property
    def state_size(self) -> Any:
        """The extents of the states: one, or a list."""
        return self.units

    @property
    def output_size(self) -> int:
        """The extent of the output."""
        return self.units

    def get_initial_state(self, batch_size: int | Dim | None = None) -> list[Any]:
        """The states that a cell begins with: zeros.

        Args:
            batch_size: the number of rows.

        Returns:
            A list of tensors [batch, units].
        """
        return zero_states(self, batch_size)

    def build(self, input_shape: tuple[Any, ...]) -> None:
        self.kernel = self._weight("kernel", (last_extent(self, input_shape), self._gates * self.units))
        self.recurrent_kernel = self._weight("recurrent", (self.units, self._gates * self.units))
        self.bias = self._bias() if self.use_bias else None

    def _quantized_axes(self) -> dict[str, tuple[int, ...]]:
        return {"kernel": (-1,), "recurrent_kernel": (-1,)}

    def _bias(self) -> Variable:
        return self._weight("bias", (self._gates * self.units,))

    def call(self, inputs: Tensor, states: Sequence[Tensor], training: bool | None = None) -> tuple[Any, list[Any]]:
        """One step: the output, and the states after it.

        Args:
            inputs: a tensor [batch, features].
            states: a list of tensors [batch, units].
            training: whether the model is being trained.

        Returns:
            The output [batch, units], and a list of states.
        """
        state_list = list(states) if isinstance(states, (list, tuple)) else [states]
        project, step = self.prepared(inputs.shape[0], training)
        return step(project(inputs), state_list)

    def prepared(self, batch: object, training: bool | None) -> tuple[Project, Step]:
        """The two parts of a step for one sequence, with what is dropped chosen now.

        Args:
            batch: the number of rows.
            training: whether the model is being trained.

        Returns:
            A function of inputs, of one step or of all at once; and a function of its result and the states that makes
            a step.
        """
        of_inputs = dropout_mask(self, self.dropout, (batch, self.kernel.shape[0]), training)
        of_states = dropout_mask(self, self.recurrent_dropout, (batch, self.units), training)

        def project(inputs: object) -> Any:
            check_last_extent(self, inputs, self.kernel.shape[0])
            return self._projected(inputs if of_inputs is None else inputs * of_inputs)

        def step(projected: Tensor, states: Sequence[Any]) -> tuple[Any, list[Any]]:
            seen = states[0] if of_states is None else states[0] * of_states
            return self._step(projected, seen, states)

        return project, step

    def _projected(self, inputs: Any) -> Any:
        """``[..., features]`` to what a step needs of them."""
        out = contract(inputs, self.kernel)
        return out if self.bias is None else out + self.bias

    def _step(self, projected: object, seen: object, states: object) -> tuple[Any, list[Any]]:
        """For subclasses: output and new states, from the projected input, the first state less what is dropped of it,
        and the states."""
        raise NotImplementedError(f"{type(self).__name__} has to define _step(self, projected, seen, states)")


def dropout_mask(cell: Any, rate: float, shape: tuple[Any, ...], training: bool | None) -> Any:
    """What a cell multiplies by at all steps; None where nothing is dropped."""
    if not training or not rate:
        return None
    return dropped(ones(shape, dtype=cell.compute_dtype), rate, generator=cell.generator)


class SimpleRNNCell(Cell):
    """A step of a fully connected recurrent layer: ``activation(inputs @ kernel + bias + state @ recurrent_kernel)``,
    which is the next state too.

    Args:
        units: how many outputs, or elements of the state.
        activation: a function, its name, or None.
        use_bias: whether a bias is added.
        *arguments: those of the class of the cell or layer, see there.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> cell = hf.layers.SimpleRNNCell(2, kernel_initializer="ones", recurrent_initializer="ones", activation="relu")
    >>> output, states = cell(hf.ones((1, 3)), [hf.ones((1, 2))])
    >>> output.tolist()
    [[5.0, 5.0]]
    """

    _gates = 1

    def __init__(
        self, units: int, activation: object = "tanh", use_bias: bool = True, *arguments: Any, **options: Any
    ) -> None:
        super().__init__(units, activation, use_bias, *arguments, **options)

    def _step(self, projected: Any, seen: Any, states: Any) -> tuple[Any, list[Any]]:
        out = self.activation(projected + contract(seen, self.recurrent_kernel))
        return out, [out]


class _Gated(Cell):
    def __init__(
        self,
        units: int,
        activation: object = "tanh",
        recurrent_activation: object = "sigmoid",
        use_bias: bool = True,
        *arguments: Any,
        **options: Any,
    ) -> None:
        super().__init__(units, activation, use_bias, *arguments, **options)
        self.recurrent_activation = activation_of(recurrent_activation)


class LSTMCell(_Gated):
    """A step of a long short-term memory: its states are the output and what it remembers.

    Kernels and bias have four parts: the input gate, the forget gate, the candidate and the output gate. The forget
    gate's bias starts from 1 with ``unit_forget_bias``.

    Source: Hochreiter and Schmidhuber, "Long Short-Term Memory", 1997.

    Args:
        units: how many outputs, or elements of the state.
        activation: a function, its name, or None.
        recurrent_activation: the function of the gates.
        use_bias: whether a bias is added.
        kernel_initializer: the initializer of the kernel.
        recurrent_initializer: the initializer of the recurrent kernel.
        bias_initializer: the initializer of the bias.
        unit_forget_bias: whether the bias of the forget gate starts from 1.
        *arguments: those of the class of the cell or layer, see there.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> cell = hf.layers.LSTMCell(4)
    >>> output, states = cell(hf.ones((2, 3)), cell.get_initial_state(2))
    >>> output.shape, [state.shape for state in states]
    ((2, 4), [(2, 4), (2, 4)])
    """

    _gates = 4

    def __init__(
        self,
        units: int,
        activation: object = "tanh",
        recurrent_activation: object = "sigmoid",
        use_bias: bool = True,
        kernel_initializer: object = "glorot_uniform",
        recurrent_initializer: object = "orthogonal",
        bias_initializer: object = "zeros",
        unit_forget_bias: bool = True,
        *arguments: object,
        **options: object,
    ) -> None:
        starts = kernel_initializer, recurrent_initializer, bias_initializer
        super().__init__(units, activation, recurrent_activation, use_bias, *starts, *arguments, **options)
        self.unit_forget_bias = bool(unit_forget_bias)

    @property
    def state_size(self) -> Any:
        return [self.units, self.units]

    def _bias(self) -> Variable:
        if not self.unit_forget_bias:
            return super()._bias()
        return self._weight("bias", (4 * self.units,), initializer=self._first_bias)

    def _first_bias(self, shape: Sequence[int], dtype: DTypeLike) -> Any:
        one = (self.units,)
        start = self.bias_initializer
        return concat([start(one, dtype), initializers.Ones()(one, dtype), start((2 * self.units,), dtype)])

    def _step(self, projected: Any, seen: Any, states: Any) -> tuple[Any, list[Any]]:
        parts = split(projected + contract(seen, self.recurrent_kernel), 4, axis=-1)
        entry, gates = self.recurrent_activation(parts[0]), self.recurrent_activation(parts[1])
        memory = gates * states[1] + entry * self.activation(parts[2])
        out = self.recurrent_activation(parts[3]) * self.activation(memory)
        return out, [out, memory]


class GRUCell(_Gated):
    """A step of a gated recurrent unit, whose output is its state.

    The parts of kernels and bias are those of the update gate, the reset gate and the candidate.  With ``reset_after``
    the reset gate applies to the product of the state, and there are two biases, one of each product.

    Source: Cho and others, "Learning Phrase Representations using RNN Encoder-Decoder", 2014.

    Args:
        units: how many outputs, or elements of the state.
        activation: a function, its name, or None.
        recurrent_activation: the function of the gates.
        use_bias: whether a bias is added.
        *arguments: those of the class of the cell or layer, see there.
        reset_after: whether the reset gate comes after the product.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> cell = hf.layers.GRUCell(4)
    >>> output, states = cell(hf.ones((2, 3)), cell.get_initial_state(2))
    >>> output.shape, cell.bias.shape
    ((2, 4), (2, 12))
    """

    _gates = 3

    def __init__(
        self,
        units: int,
        activation: object = "tanh",
        recurrent_activation: object = "sigmoid",
        use_bias: bool = True,
        *arguments: object,
        reset_after: bool = True,
        **options: object,
    ) -> None:
        super().__init__(units, activation, recurrent_activation, use_bias, *arguments, **options)
        self.reset_after = bool(reset_after)

    def _bias(self) -> Variable:
        return self._weight("bias", (2, 3 * self.units)) if self.reset_after else super()._bias()

    def _projected(self, inputs: Any) -> Any:
        if self.bias is None or not self.reset_after:
            return super()._projected(inputs)
        return contract(inputs, self.kernel) + self.bias[0]

    def _step(self, projected: Any, seen: Any, states: Any) -> tuple[Any, list[Any]]:
        update, reset, candidate = split(projected, 3, axis=-1)
        if self.reset_after:
            product = contract(seen, self.recurrent_kernel)
            if self.bias is not None:
                product = product + self.bias[1]
            gates, last = product[..., : 2 * self.units], product[..., 2 * self.units :]
        else:
            gates = seen @ self.recurrent_kernel[:, : 2 * self.units]
        update = self.recurrent_activation(update + gates[..., : self.units])
        reset = self.recurrent_activation(reset + gates[..., self.units :])
        if self.reset_after:
            last = reset * last
        else:
            last = (reset * seen) @ self.recurrent_kernel[:, 2 * self.units :]
        out = update * states[0] + (1 - update) * self.activation(candidate + last)
        return out, [out]


class StackedRNNCells(Layer, one_tensor=True):
    """Cells one after another as one: each takes the output of the one before.  Its states are lists of theirs.

    Args:
        cells: a list of cells.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> cell = hf.layers.StackedRNNCells([hf.layers.GRUCell(4), hf.layers.LSTMCell(5)])
    >>> cell.state_size
    [4, [5, 5]]
    """

    def __init__(self, cells: Iterable[Any], **options: Any) -> None:
        super().__init__(**options)
        self.cells = [as_layer(cell) for cell in cells]
        for cell in self.cells:
            check_cell(cell, self)
        if not self.cells:
            raise ArgumentError(self.name, "there are no cells.")

    @property
    def state_size(self) -> list[Any]:
        """The extents of the states of each cell."""
        return [cell.state_size for cell in self.cells]

    @property
    def output_size(self) -> int:
        """The extent of the last cell's output."""
        return output_size(self.cells[-1])

    def get_initial_state(self, batch_size: int | Dim | None = None) -> list[Any]:
        """The states that the cells begin with.

        Args:
            batch_size: the number of rows.

        Returns:
            A list with the states of each cell.
        """
        return [initial_state(cell, batch_size, self.compute_dtype) for cell in self.cells]

    def build(self, input_shape: tuple[Any, ...]) -> None:
        for cell in self.cells:
            build_cell(cell, input_shape)
            input_shape = (*input_shape[:-1], output_size(cell))

    def call(self, inputs: Tensor, states: Sequence[Tensor], training: bool | None = None) -> tuple[Any, list[Any]]:
        """One step: the output of the last cell, and the states of all after it.

        Args:
            inputs: a tensor [batch, features].
            states: a list with the states of each cell.
            training: whether the model is being trained.

        Returns:
            The output [batch, units], and a list with the states of each cell.
        """
        project, step = self.prepared(inputs.shape[0], training)
        return step(project(inputs), states)

    def prepared(self, batch: object, training: bool | None) -> tuple[Project, Step]:
        """The two parts of a step for one sequence; the first cell's inputs are known for all steps.

        Args:
            batch: the number of rows.
            training: whether the model is being trained.

        Returns:
            A function of inputs, of one step or of all at once; and a function of its result and the states that makes
            a step.
        """
        parts = [prepared(cell, batch, training) for cell in self.cells]

        def step(x: Tensor, states: Sequence[Tensor]) -> tuple[Any, list[Any]]:
            after = []
            for number, ((project, own_step), cell_states) in enumerate(zip(parts, states)):
                x, new = own_step(project(x) if number else x, cell_states)
                after.append(list(new) if isinstance(new, (list, tuple)) else [new])
            return x, after

        return parts[0][0], step


# What recurrent layers ask of cells, those of users too


def check_cell(cell: object, layer: Layer) -> None:
    """Raise ArgumentError unless it has what makes a cell."""
    if not callable(cell) or not hasattr(cell, "state_size"):
        raise ArgumentError(layer.name, f"{cell!r:.60} is no cell: it needs call(inputs, states) and state_size.")


def takes_vectors(cell: object) -> bool:
    """Whether it is known that its inputs are [batch, features], as those of the cells here are."""
    return isinstance(cell, Cell) or (isinstance(cell, StackedRNNCells) and takes_vectors(cell.cells[0]))


def build_cell(cell: object, shape: object) -> None:
    """Make the weights of a cell for inputs of one step."""
    if isinstance(cell, Layer) and not cell.built:
        cell.build(shape)
        cell.built = True


def prepared(cell: Layer, batch: Any, training: bool | None) -> tuple[Project, Step]:
    """As ``Cell.prepared``, of any cell."""
    if hasattr(cell, "prepared"):
        result: tuple[Project, Step] = cell.prepared(batch, training)
        return result
    return _same, cell


def _same(inputs: object) -> Any:
    return inputs


def output_size(cell: object) -> int:
    """The last extent of a cell's output."""
    return output_shape(cell)[-1]


def output_shape(cell: Any) -> tuple[int, ...]:
    """The extents of a cell's output but for the batch: those of its first state unless it says so."""
    size = getattr(cell, "output_size", None)
    if size is None:
        size = cell.state_size[0] if isinstance(cell.state_size, list) else cell.state_size
    if isinstance(size, int):
        return (size,)
    shape: tuple[int, ...] = tuple(size)
    return shape


def initial_state(cell: Any, batch: Any, dtype: DTypeLike) -> list[Any]:
    """The states that a cell begins with, as a list."""
    if hasattr(cell, "get_initial_state"):
        state = cell.get_initial_state(batch_size=batch)
        return list(state) if isinstance(state, (list, tuple)) else [state]
    sizes = cell.state_size if isinstance(cell.state_size, (list, tuple)) else [cell.state_size]
    return [zeros((batch, size), dtype=dtype) for size in sizes]


def zero_states(cell: Cell, batch: Any) -> list[Any]:
    """A state of zeros for each extent."""
    sizes = cell.state_size if isinstance(cell.state_size, list) else [cell.state_size]
    return [zeros((batch, size), dtype=cell.compute_dtype) for size in sizes]
