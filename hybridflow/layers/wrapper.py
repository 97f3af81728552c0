"""Layers around another one."""

from __future__ import annotations

from typing import Any, Unpack

from hybridflow.errors import ArgumentTypeError
from hybridflow.layers.layer import Layer, LayerOptions, as_layer


class Wrapper(Layer):
    """A layer around another one, for subclasses, which define ``call``.

    The layer inside is built for the inputs of this one.  Raises ArgumentTypeError for what is not a layer.

    Args:
        layer: the layer that is wrapped.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> class Twice(hf.layers.Wrapper):
    ...     def call(self, inputs):
    ...         return 2 * self.layer(inputs)
    >>> Twice(hf.layers.Dense(1, kernel_initializer="ones"))([[1.0, 2.0]])
    <Tensor f32[1,1] cpu>
    [[6.]]
    """

    def __init__(self, layer: Layer, **options: Unpack[LayerOptions]) -> None:
        super().__init__(**options)
        self.layer = as_layer(layer)
        if not isinstance(self.layer, Layer):
            raise ArgumentTypeError(self.name, f"{layer!r:.60} is no layer.")

    def build(self, input_shape: Any = None) -> None:
        """Make the weights of the layer within.

        Args:
            input_shape: the shape of the inputs, with None for unknown extents.
        """
        if not self.layer.built:
            self.layer.build(input_shape)
            self.layer.built = True
