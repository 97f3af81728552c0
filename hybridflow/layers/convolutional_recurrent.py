"""Convolutional recurrent layers: memories whose products are convolutions, along sequences of images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from hybridflow import initializers
from hybridflow.array import random
from hybridflow.array.creation import zeros
from hybridflow.array.shapes import concat, reshape, split
from hybridflow.compiler.ir.extents import Dim
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import DTypeLike, Identifier, PerAxis
from hybridflow.core.variable import Variable
from hybridflow.errors import ShapeError
from hybridflow.layers.activation_functions import activation as activation_of, name_of_activation
from hybridflow.layers.basic import positive
from hybridflow.layers.cells import Project, Step, dropout_mask
from hybridflow.layers.layer import Layer, LayerOptions, check_rate
from hybridflow.layers.recurrent import REMEMBERING, RNN, split_arguments
from hybridflow.layers.window_arguments import WindowLayer
from hybridflow.nn.convolution import convolved


class ConvLSTMCell(WindowLayer, one_tensor=True):
    """A step of a long short-term memory whose products are convolutions: of the input with ``kernel``, and of the
    output before with ``recurrent_kernel``, which keeps its extents.  States are ``[batch, *places, filters]``.

    Kernels and bias have the parts of ``LSTMCell``'s.
    """

    kernel: Variable
    recurrent_kernel: Variable
    bias: Variable | None
    bias_initializer: initializers.Initializer
    _input_shape: tuple[int, ...] = ()  # of one step, without the batch: known when it is built
    _out_shape: tuple[int, ...] = ()

    def __init__(
        self,
        places: int,
        filters: int,
        kernel_size: PerAxis,
        strides: PerAxis = 1,
        padding: str = "valid",
        data_format: str | None = None,
        dilation_rate: PerAxis = 1,
        activation: Identifier = "tanh",
        recurrent_activation: Identifier = "sigmoid",
        use_bias: bool = True,
        kernel_initializer: Identifier = "glorot_uniform",
        recurrent_initializer: Identifier = "orthogonal",
        bias_initializer: Identifier = "zeros",
        unit_forget_bias: bool = True,
        kernel_regularizer: Identifier = None,
        recurrent_regularizer: Identifier = None,
        bias_regularizer: Identifier = None,
        kernel_constraint: Identifier = None,
        recurrent_constraint: Identifier = None,
        bias_constraint: Identifier = None,
        dropout: float = 0.0,
        recurrent_dropout: float = 0.0,
        seed: int | None = None,
        **options: Unpack[LayerOptions],
    ) -> None:
        self._places = places
        super().__init__(data_format, **options)
        self.filters = positive(filters, "filters", self)
        self.kernel_size, self.strides = self._each(kernel_size, "kernel_size"), self._each(strides, "strides")
        self.padding, self.dilation_rate = self._padding(padding), self._each(dilation_rate, "dilation_rate")
        self.activation, self.use_bias = activation_of(activation), bool(use_bias)
        self.recurrent_activation = activation_of(recurrent_activation)
        self.unit_forget_bias = bool(unit_forget_bias)
        self._settle("kernel", kernel_initializer, kernel_regularizer, kernel_constraint)
        self._settle("recurrent", recurrent_initializer, recurrent_regularizer, recurrent_constraint)
        self._settle("bias", bias_initializer, bias_regularizer, bias_constraint)
        for name, rate in (("dropout", dropout), ("recurrent_dropout", recurrent_dropout)):
            check_rate(self, name, rate)
        self.dropout, self.recurrent_dropout, self.seed = float(dropout), float(recurrent_dropout), seed
        self.generator = None if seed is None else random.Generator(seed)

    def build(self, input_shape: tuple[Any, ...]) -> None:
        if len(input_shape) != self._places + 2 or None in input_shape[1:]:
            raise ShapeError(
                self.name, f"a step has the shape {input_shape}; it must have {self._places + 2} axes of known extents."
            )
        channels = input_shape[self._channel_axis]
        self.kernel = self._weight("kernel", (*self.kernel_size, channels, 4 * self.filters))
        self.recurrent_kernel = self._weight("recurrent", (*self.kernel_size, self.filters, 4 * self.filters))
        self.bias = self._weight("bias", (4 * self.filters,), initializer=self._first_bias) if self.use_bias else None
        self._input_shape = tuple(input_shape[1:])
        self._out_shape = self._shape_after(input_shape)

    def _first_bias(self, shape: Sequence[int], dtype: DTypeLike) -> Any:
        start, n = self.bias_initializer, self.filters
        if not self.unit_forget_bias:
            return start((4 * n,), dtype)
        return concat([start((n,), dtype), initializers.Ones()((n,), dtype), start((2 * n,), dtype)])

    def _shape_after(self, shape: Any) -> tuple[int, ...]:
        places = shape[1:-1] if self.data_format == "channels_last" else shape[2:]
        extents = []
        for n, k, stride, rate in zip(places, self.kernel_size, self.strides, self.dilation_rate):
            least = 0 if self.padding == "same" else (k - 1) * rate
            extents.append((n - least + stride - 1) // stride)
        return (*extents, self.filters) if self.data_format == "channels_last" else (self.filters, *extents)

    @property
    def state_size(self) -> list[tuple[int, ...]]:
        """The extents of the states."""
        return [self._out_shape, self._out_shape]

    @property
    def output_size(self) -> tuple[int, ...]:
        """The extents of the output."""
        return self._out_shape

    def get_initial_state(self, batch_size: Any = None) -> list[Any]:
        """States of zeros."""
        return [zeros((batch_size, *self._out_shape), dtype=self.compute_dtype) for _ in range(2)]

    def call(self, inputs: Tensor, states: Sequence[Tensor], training: bool | None = None) -> tuple[Any, list[Any]]:
        """The output, and the states after it."""
        project, step = self.prepared(inputs.shape[0], training)
        return step(project(inputs), states)

    def prepared(self, batch: int | Dim, training: bool | None) -> tuple[Project, Step]:
        """What is done to inputs, of one step or of all at once, and what then is done at each."""
        of_inputs = dropout_mask(self, self.dropout, (batch, *self._input_shape), training)
        of_states = dropout_mask(self, self.recurrent_dropout, (batch, *self._out_shape), training)

        def project(inputs: Tensor) -> Any:
            seen = inputs if of_inputs is None else inputs * of_inputs
            lead = seen.shape[: seen.ndim - len(self._input_shape)]
            together = reshape(seen, (-1, *seen.shape[len(lead) :]))
            geometry = self.strides, self.padding, self.data_format, self.dilation_rate
            out = self._with_bias(convolved(self.name, together, self.kernel, *geometry, self._places))
            return reshape(out, (*lead, *out.shape[1:]))

        def step(projected: Tensor, states: Sequence[Tensor]) -> tuple[Any, list[Any]]:
            before, memory = states
            seen = before if of_states is None else before * of_states
            product = convolved(self.name, seen, self.recurrent_kernel, 1, "same", self.data_format, 1, self._places)
            gates = projected + product
            entry, kept, candidate, shown = split(gates, 4, axis=self._channel_axis)
            memory = self.recurrent_activation(kept) * memory
            memory = memory + self.recurrent_activation(entry) * self.activation(candidate)
            out = self.recurrent_activation(shown) * self.activation(memory)
            return out, [out, memory]

        return project, step

    def _with_bias(self, out: object) -> Any:
        if self.bias is None:
            return out
        last = self.data_format == "channels_last"
        return out + (self.bias if last else reshape(self.bias, (-1, *(1,) * self._places)))

    def get_config(self) -> dict[str, Any]:
        names = "filters", "kernel_size", "strides", "padding", "dilation_rate", "use_bias", "unit_forget_bias"
        config = {name: getattr(self, name) for name in (*names, "dropout", "recurrent_dropout", "seed")}
        functions = {
            "activation": name_of_activation(self.activation),
            "recurrent_activation": name_of_activation(self.recurrent_activation),
        }
        return super().get_config() | config | functions | self._settled("kernel", "recurrent", "bias")


class _ConvLSTM(RNN, one_tensor=True):
    """``RNN`` with a ``ConvLSTMCell`` that it makes: arguments are those of both."""

    _places: int

    def __init__(self, filters: int, kernel_size: PerAxis, *arguments: object, **options: Any) -> None:
        order = "strides", "padding", "data_format", "dilation_rate", *REMEMBERING
        of_cell, layer_options = split_arguments(type(self).__name__, order, arguments, options)
        kind: Any = ConvLSTMCell
        super().__init__(kind(self._places, filters, kernel_size, **of_cell), **layer_options)

    def build(self, input_shape: tuple[Any, ...]) -> None:
        if len(input_shape) != self._places + 3:
            raise ShapeError(
                self.name, f"the input has the shape {input_shape}; it must be [batch, steps] and what a step has."
            )
        super().build(input_shape)

    def get_config(self) -> dict[str, Any]:
        return self.cell.get_config() | Layer.get_config(self) | self._walking()


class ConvLSTM1D(_ConvLSTM):
    """Convolutional LSTM along sequences.

    A convolutional memory along sequences ``[batch, steps, places, channels]``: see ``ConvLSTM2D``.

    Args:
        filters: the number of channels of the result.
        kernel_size: the size of the window: a number, or one for each axis.
        *arguments: those of the class of the cell or layer, see there.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> hf.layers.ConvLSTM1D(4, 3, padding="same", return_sequences=True)(hf.ones((2, 5, 8, 3))).shape
    (2, 5, 8, 4)
    """

    _places = 1


class ConvLSTM2D(_ConvLSTM):
    """Convolutional LSTM along images.

    A long short-term memory whose products are convolutions, along sequences of images, ``[batch, steps, rows, columns,
    channels]`` (with ``data_format="channels_first"`` the channels come after the steps).

    Arguments are those of ``Conv2D`` for the convolutions of the inputs, ``dilation_rate`` too (those of the states
    keep the extents), of ``LSTM`` and of ``RNN``.

    Source: Shi and others, "Convolutional LSTM Network: A Machine Learning Approach for Precipitation Nowcasting",
    2015.

    Args:
        filters: the number of channels of the result.
        kernel_size: the size of the window: a number, or one for each axis.
        *arguments: those of the class of the cell or layer, see there.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> hf.layers.ConvLSTM2D(4, (3, 3))(hf.ones((2, 5, 8, 8, 3))).shape
    (2, 6, 6, 4)
    """

    _places = 2


class ConvLSTM3D(_ConvLSTM):
    """Convolutional LSTM along volumes.

    A convolutional memory along sequences of volumes: see ``ConvLSTM2D``.

    Args:
        filters: the number of channels of the result.
        kernel_size: the size of the window: a number, or one for each axis.
        *arguments: those of the class of the cell or layer, see there.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> hf.layers.ConvLSTM3D(2, 2)(hf.ones((1, 3, 4, 4, 4, 1))).shape
    (1, 3, 3, 3, 2)
    """

    _places = 3
