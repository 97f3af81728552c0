"""Layers one after another."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from hybridflow.errors import ArgumentTypeError
from hybridflow.layers.layer import Layer


class Sequential(Layer):
    """Layers, or any functions, each of which takes what the one before gives.

    >>> model = hf.Sequential([hf.layers.Dense(8, "relu"), hf.layers.Dense(2)])
    >>> model(hf.ones((4, 3))).shape
    (4, 2)
    >>> [v.shape for v in model.variables]
    [(3, 8), (8,), (8, 2), (2,)]
    """

    def __init__(self, layers: Iterable[Callable[..., Any]] = (), **options: Any) -> None:
        super().__init__(**options)
        self.layers: list[Callable[..., Any]] = []
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
