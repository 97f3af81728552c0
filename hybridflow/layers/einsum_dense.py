"""A dense layer whose product of inputs and kernel is any that Einstein's notation says."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Unpack

from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import Identifier
from hybridflow.errors import ArgumentError, ShapeError
from hybridflow.layers.activation_functions import activation as activation_of
from hybridflow.layers.layer import Layer, LayerOptions
from hybridflow.quantize.quantized_weight import contract


class EinsumDense(Layer, one_tensor=True):
    """Dense layer by an einsum: ``activation(einsum(equation, inputs, kernel) + bias)``, for equations
    ``inputs,kernel->outputs``.

    ``output_shape`` is that of the outputs without the batch, with None for extents that come from the inputs;
    ``bias_axes`` are the letters of the outputs that the bias has.  ``...`` at the beginning or the end of inputs and
    outputs stands for axes that stay.

    Args:
        equation: an equation of ``hf.einsum`` for input and kernel.
        output_shape: the shape of a result, without the batch.
        activation: a function, its name, or None.
        bias_axes: the labels of the axes of the bias.
        kernel_initializer: the initializer of the kernel.
        bias_initializer: the initializer of the bias.
        kernel_regularizer: a regularizer of the kernel.
        bias_regularizer: a regularizer of the bias.
        kernel_constraint: a constraint that is applied to the kernel after each update.
        bias_constraint: a constraint that is applied to the bias after each update.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> layer = hf.layers.EinsumDense("abc,cd->abd", output_shape=(None, 8), bias_axes="d")
    >>> layer(hf.ones((2, 5, 3))).shape, layer.kernel.shape, layer.bias.shape
    ((2, 5, 8), (3, 8), (8,))
    """

    _quantizes_inputs = True

    def __init__(
        self,
        equation: str,
        output_shape: Any,
        activation: Identifier = None,
        bias_axes: str | None = None,
        kernel_initializer: Identifier = "glorot_uniform",
        bias_initializer: Identifier = "zeros",
        kernel_regularizer: Identifier = None,
        bias_regularizer: Identifier = None,
        kernel_constraint: Identifier = None,
        bias_constraint: Identifier = None,
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**options)
        self.equation, self.bias_axes = equation.replace(" ", ""), bias_axes
        self.output_shape = (output_shape,) if isinstance(output_shape, int) else tuple(output_shape)
        match = re.fullmatch(r"((?:\.\.\.)?\w+(?:\.\.\.)?),(\w+)->((?:\.\.\.)?\w+(?:\.\.\.)?)", self.equation)
        if match is None:
            raise ArgumentError(self.name, f"equation is {equation!r}; it must be like 'abc,cd->abd'.")
        self._parts = match.groups()
        if set(bias_axes or "") - set(self._parts[2]):
            raise ArgumentError(self.name, f"bias_axes is {bias_axes!r}; the outputs have {self._parts[2]!r}.")
        self.activation = activation_of(activation)
        self._settle("kernel", kernel_initializer, kernel_regularizer, kernel_constraint)
        self._settle("bias", bias_initializer, bias_regularizer, bias_constraint)

    def _quantized_axes(self) -> dict[str, tuple[int, ...]]:
        return {"kernel": tuple(axis for axis, letter in enumerate(self._parts[1]) if letter in self._parts[2])}

    def build(self, input_shape: tuple[Any, ...]) -> None:
        inputs, kernel, outputs = self._parts
        extents = self._extents(inputs, input_shape)
        letters = outputs.replace("...", "")
        letters_kept = letters if outputs.startswith("...") else letters[1:]
        if len(letters_kept) > len(self.output_shape):
            raise ShapeError(self.name, f"output_shape is {self.output_shape}; the outputs are {outputs!r}.")
        extents |= {
            letter: extent
            for letter, extent in zip(reversed(letters_kept), reversed(self.output_shape))
            if extent is not None and letter not in extents
        }
        self.kernel = self._weight("kernel", [self._extent(extents, letter) for letter in kernel])
        self.bias = self._weight("bias", self._bias_shape(letters, extents, input_shape)) if self.bias_axes else None

    def _bias_shape(self, letters: str, extents: dict[str, Any], input_shape: Sequence[Any]) -> list[int]:
        """From the first axis that the bias has on; 1 where it has none."""
        assert self.bias_axes is not None
        first = min(letters.index(letter) for letter in self.bias_axes)
        shape = [self._extent(extents, one) if one in self.bias_axes else 1 for one in letters[first:]]
        behind = self._parts[2].endswith("...")
        return shape + [1] * (len(input_shape) - len(self._parts[0].replace("...", ""))) * behind

    def _extents(self, spec: str, shape: object) -> dict[str, Any]:
        letters = spec.replace("...", "")
        if not isinstance(shape, tuple) or len(shape) < len(letters) or (spec == letters and len(shape) > len(letters)):
            raise ShapeError(
                self.name, f"the input has the shape {shape}; the equation {self.equation!r} is for another."
            )
        seen = shape[len(shape) - len(letters) :] if spec.startswith("...") else shape[: len(letters)]
        return dict(zip(letters, seen))

    def _extent(self, extents: dict[str, Any], letter: str) -> int:
        extent = extents.get(letter)
        if extent is None:
            raise ShapeError(
                self.name, f"the extent of {letter!r} in {self.equation!r} must be known: it is a weight's."
            )
        return int(extent)

    def call(self, inputs: Tensor) -> Any:
        """The activation of the contraction of inputs and kernel, plus the bias.

        Args:
            inputs: a tensor with the axes that the equation names.

        Returns:
            A tensor with the axes that the equation names.

        Raises:
            ShapeError: for inputs of other axes or extents.
        """
        out = contract(inputs, self.kernel, self.equation)
        return self.activation(out if self.bias is None else out + self.bias)
