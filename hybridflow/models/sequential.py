"""Layers one after another."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self

from hybridflow.core import layer_context
from hybridflow.errors import ArgumentError, ArgumentTypeError
from hybridflow.layers.functional_graph import Input, InputLayer
from hybridflow.layers.keras_tensor import Symbol
from hybridflow.layers.layer import Layer, as_layer, describe
from hybridflow.layers.naming import settle
from hybridflow.models.functional import fitting
from hybridflow.models.model import Model


class Sequential(Model):
    """Sequential model: a list of layers or functions, each of which is called with the previous one's result.

    If the first entry is an ``hf.Input``, or the first layer has an ``input_shape``, layers are built when they are
    added. Otherwise they are built when the model is first called.

    Args:
        layers: layers, in order.
        **options: ``name``, ``dtype`` and ``trainable``.

    >>> model = hf.Sequential([hf.layers.Dense(8, "relu"), hf.layers.Dense(2)])
    >>> model(hf.ones((4, 3))).shape
    (4, 2)
    >>> [v.shape for v in model.variables]
    [(3, 8), (8,), (8, 2), (2,)]
    """

    layers: list[Callable[..., Any]] = []  # each has a list of its own

    def __init__(self, layers: Iterable[Callable[..., Any]] = (), **options: object) -> None:
        super().__init__(**options)
        self.layers = []
        self._start: Symbol | None = None
        self._ends: list[Symbol] = []  # what layers make of it, one by one
        for layer in layers:
            self.add(layer)

    def add(self, layer: Any) -> None:
        """Append a layer.

        Args:
            layer: a layer, a function of a tensor, or an input as the first.

        Raises:
            ArgumentTypeError: for what cannot be called.
            ArgumentError: for an input that is not the first.
        """
        if isinstance(layer, (Symbol, InputLayer)):
            if self.layers or self._start is not None:
                raise ArgumentError(self.name, "an input is the first of the layers.")
            self._start = layer.output if isinstance(layer, InputLayer) else layer
            return
        if not callable(layer):
            raise ArgumentTypeError(self.name, f"{layer!r} is no layer: it cannot be called.")
        if not self.layers and self._start is None and getattr(layer, "_sample_shape", None) is not None:
            self._start = Input(layer._sample_shape, layer._sample_count)
        settle([*self.layers, layer], self.name)
        if self._start is not None:
            self._connect(layer)
        self.layers.append(layer)
        self._steps_anew()

    def _connect(self, layer: Layer) -> None:
        """Build a layer for what the one before it gives."""
        last = self._ends[-1] if self._ends else self._start
        if not isinstance(layer, Layer) or not isinstance(last, Symbol):
            raise ArgumentTypeError(
                self.name, f"{layer!r} is a plain function behind an input; use hf.layers.Lambda for it."
            )
        token = layer_context.enter_making(self._label)
        try:
            self._ends.append(layer(last))
        finally:
            layer_context.leave_making(token)
        self.built = True

    def pop(self) -> Callable[..., Any]:
        """Remove the last layer, and return it.

        Returns:
            The layer.

        Raises:
            IndexError: where there is none.
        """
        if self._ends:
            self._ends.pop()
        self._steps_anew()
        return self.layers.pop()

    @property
    def inputs(self) -> list[Symbol]:
        """The symbol of the input, where there is one."""
        return [] if self._start is None else [self._start]

    @property
    def outputs(self) -> list[Symbol]:
        """The symbol of the output, where there is an input."""
        return self._ends[-1:]

    @property
    def input(self) -> Any:
        """The symbol of the input.  Raises ArgumentError where there is none."""
        return self._start if self._start is not None else super().input

    @property
    def output(self) -> Any:
        """The symbol of the output.  Raises ArgumentError where there is no input."""
        return self._ends[-1] if self._ends else super().output

    def _cast(self, value: object) -> Any:
        return value if self._narrow is not None else super()._cast(value)  # each layer has a policy of its own

    def call(self, inputs: object, training: bool | None = None) -> Any:
        """What the layers make of the inputs, one after the other.

        Args:
            inputs: what the first layer takes.
            training: whether the model is being trained.

        Returns:
            The result of the last layer.
        """
        if self._start is not None:
            if isinstance(inputs, (list, tuple)) and len(inputs) == 1 and inputs[0].ndim == len(self._start.shape):
                (inputs,) = inputs  # a list of all inputs, as models with several take
            inputs = fitting(inputs, self._start, self.name)
        for layer in self.layers:
            inputs = layer(inputs)
        return inputs

    def get_config(self) -> dict[str, Any]:
        """The arguments, and the layers by their descriptions.

        Returns:
            A dict from names to values.

        Raises:
            ArgumentTypeError: for plain functions among the layers: use ``hf.layers.Lambda`` or subclasses of
                ``Layer``.
        """
        for layer in self.layers:
            if not isinstance(layer, Layer):
                raise ArgumentTypeError(self.name, f"{layer!r} is no layer, and has no configuration.")
        first = [] if self._start is None else [self._start.call.layer]
        return super().get_config() | {"layers": [describe(layer) for layer in [*first, *self.layers]]}

    @classmethod
    def _from_config(cls, config: Mapping[str, Any]) -> Self:
        """One with such layers, without their weights.  Raises ArgumentError for a class that there is not."""
        return cls(**{**config, "layers": [as_layer(entry) for entry in config["layers"]]})
