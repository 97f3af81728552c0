"""Layers one after another."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self

from hybridflow.errors import ArgumentTypeError
from hybridflow.layers.layer import Layer, as_layer, describe
from hybridflow.models.model import Model


class Sequential(Model):
    """Layers, or any functions, each of which takes what the one before gives.

    >>> model = hf.Sequential([hf.layers.Dense(8, "relu"), hf.layers.Dense(2)])
    >>> model(hf.ones((4, 3))).shape
    (4, 2)
    >>> [v.shape for v in model.variables]
    [(3, 8), (8,), (8, 2), (2,)]
    """

    layers: list[Callable[..., Any]] = []  # each has a list of its own

    def __init__(self, layers: Iterable[Callable[..., Any]] = (), **options: Any) -> None:
        super().__init__(**options)
        self.layers = []
        for layer in layers:
            self.add(layer)

    def add(self, layer: Callable[..., Any]) -> None:
        """Append a layer.  Raises ArgumentTypeError for what cannot be called."""
        if not callable(layer):
            raise ArgumentTypeError(self.name, f"{layer!r} is no layer: it cannot be called.")
        self.layers.append(layer)

    def pop(self) -> Callable[..., Any]:
        """Remove the last layer, and return it."""
        return self.layers.pop()

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        for layer in self.layers:
            inputs = layer(inputs)
        return inputs

    def get_config(self) -> dict[str, Any]:
        """The arguments, layers by their descriptions.  Raises ArgumentTypeError for plain functions among them: use
        ``hf.layers.Lambda`` and subclasses of ``Layer`` in models that are to be made again."""
        for layer in self.layers:
            if not isinstance(layer, Layer):
                raise ArgumentTypeError(self.name, f"{layer!r} is no layer, and has no configuration.")
        return super().get_config() | {"layers": [describe(layer) for layer in self.layers]}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """One with such layers, without their weights.  Raises ArgumentError for a class that there is not."""
        return cls(**{**config, "layers": [as_layer(given) for given in config["layers"]]})
