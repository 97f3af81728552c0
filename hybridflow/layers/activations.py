"""Activations as layers."""

from __future__ import annotations

from typing import Any, Unpack

from hybridflow.array.creation import asarray
from hybridflow.array.datatypes import finfo
from hybridflow.array.elementwise import minimum, multiply, where
from hybridflow.compiler.ir import dtypes
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import Identifier
from hybridflow.layers.activation_functions import activation as activation_of
from hybridflow.layers.layer import Layer, LayerOptions
from hybridflow.nn.functional import (
    elu,
    leaky_relu,
    relu,
    relu6,
    softmax,
)


class Activation(Layer, one_tensor=True):
    """An activation, by name or as a function, as a layer.

    Args:
        activation: a function, its name, or None.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> hf.layers.Activation("relu")([-1.0, 2.0])
    <Tensor f32[2] cpu> [0. 2.]
    """

    supports_masking = True

    def __init__(self, activation: Identifier, **options: Unpack[LayerOptions]) -> None:
        super().__init__(**options)
        self.activation = activation_of(activation)

    def call(self, inputs: Tensor) -> Any:
        """The activation of the inputs.

        Args:
            inputs: a tensor, or what the function takes.

        Returns:
            A tensor of the same shape.
        """
        return self.activation(inputs)


class ReLU(Layer, one_tensor=True):
    """Rectified linear unit (ReLU): ``max(x, 0)``, at most ``max_value``; up to ``threshold`` it is ``negative_slope *
    (x - threshold)``.

    Args:
        max_value: the largest result.
        negative_slope: the slope below the threshold.
        threshold: below which value a result is 0.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> hf.layers.ReLU(max_value=3.0, negative_slope=0.1)([-1.0, 2.0, 5.0])
    <Tensor f32[3] cpu> [-0.1  2.   3. ]
    """

    supports_masking = True

    def __init__(
        self,
        max_value: float | None = None,
        negative_slope: float = 0.0,
        threshold: float = 0.0,
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**options)
        self.max_value, self.negative_slope, self.threshold = max_value, negative_slope, threshold

    def call(self, inputs: Tensor) -> Any:
        """Rectified inputs, with the layer's slope, threshold and upper bound.

        Args:
            inputs: a tensor.

        Returns:
            A tensor of the same shape.
        """
        slope, most, threshold = self.negative_slope, self.max_value, self.threshold
        if slope and most is None and not threshold:
            return leaky_relu(inputs, slope)
        if threshold:
            above = where(inputs > threshold, inputs, 0.0)
        elif most == 6:  # where the derivative is 0
            above, most = relu6(inputs), None
        else:
            above = relu(inputs)
        if most is not None:
            above = minimum(above, most)
        return above - multiply(relu(threshold - inputs), slope) if slope else above


class LeakyReLU(Layer, one_tensor=True):
    """Leaky ReLU: ``x`` where that is positive, else ``negative_slope * x``.

    Args:
        negative_slope: the slope below the threshold.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> hf.layers.LeakyReLU(0.5)([-1.0, 2.0])
    <Tensor f32[2] cpu> [-0.5  2. ]
    """

    supports_masking = True

    def __init__(self, negative_slope: float = 0.3, **options: Unpack[LayerOptions]) -> None:
        super().__init__(**options)
        self.negative_slope = negative_slope

    def call(self, inputs: Tensor) -> Any:
        """Rectified inputs: negative ones times the slope.

        Args:
            inputs: a tensor.

        Returns:
            A tensor of the same shape.
        """
        return leaky_relu(inputs, self.negative_slope)


class PReLU(Layer, one_tensor=True):
    """Parametric ReLU: ``x`` where that is positive, else ``alpha * x``.

    ``alpha`` is a weight for each place behind the batch, but one for all along ``shared_axes``, which count from 1.

    Args:
        alpha_initializer: what the slopes start from.
        alpha_regularizer: a regularizer of the slopes.
        alpha_constraint: what the slopes are projected onto after each update.
        shared_axes: axes along which slopes are shared.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> hf.layers.PReLU(alpha_initializer="ones")([[-1.0, 2.0]])
    <Tensor f32[1,2] cpu>
    [[-1.  2.]]
    """

    supports_masking = True

    def __init__(
        self,
        alpha_initializer: Identifier = "zeros",
        alpha_regularizer: Identifier = None,
        alpha_constraint: Identifier = None,
        shared_axes: Any = None,
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**options)
        self._settle("alpha", alpha_initializer, alpha_regularizer, alpha_constraint)
        self.shared_axes = [shared_axes] if isinstance(shared_axes, int) else list(shared_axes or ())

    def build(self, input_shape: tuple[Any, ...]) -> None:
        shape = [1 if axis in self.shared_axes else n for axis, n in enumerate(input_shape)]
        self.alpha = self._weight("alpha", shape[1:])

    def call(self, inputs: Tensor) -> Any:
        """Rectified inputs: negative ones times ``alpha``, which is trained.

        Args:
            inputs: a tensor.

        Returns:
            A tensor of the same shape.
        """
        return where(inputs > 0, inputs, self.alpha * inputs)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | self._settled("alpha") | {"shared_axes": self.shared_axes or None}


class ELU(Layer, one_tensor=True):
    """Exponential linear unit (ELU): ``x`` where that is positive, else ``alpha * (exp(x) - 1)``.

    Args:
        alpha: the value for large negative inputs, negated.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> hf.layers.ELU()([-1.0, 2.0])
    <Tensor f32[2] cpu> [-0.63212055  2.        ]
    """

    supports_masking = True

    def __init__(self, alpha: float = 1.0, **options: Unpack[LayerOptions]) -> None:
        super().__init__(**options)
        self.alpha = alpha

    def call(self, inputs: Tensor) -> Any:
        """The exponential linear unit of the inputs.

        Args:
            inputs: a tensor.

        Returns:
            A tensor of the same shape.
        """
        return elu(inputs, self.alpha)


class Softmax(Layer, one_tensor=True):
    """Softmax: exponentials that add up to 1 along ``axis``.  Elements that a ``mask`` of as many axes leaves out have
    no share; one of fewer axes is of whole steps, and changes nothing.

    Args:
        axis: the axis or axes that it works along.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> hf.layers.Softmax()([0.0, 0.0])
    <Tensor f32[2] cpu> [0.5 0.5]
    >>> hf.layers.Softmax()([0.0, 0.0, 0.0], mask=hf.asarray([True, False, True]))
    <Tensor f32[3] cpu> [0.5 0.  0.5]
    """

    supports_masking = True

    def __init__(self, axis: int = -1, **options: Unpack[LayerOptions]) -> None:
        super().__init__(**options)
        self.axis = axis

    def call(self, inputs: Tensor, mask: Tensor | None = None) -> Any:
        """The shares of the exponentials of the inputs along the axis.

        Args:
            inputs: a tensor.
            mask: a bool tensor of the same axes, False where an input does not count, or None.

        Returns:
            A tensor of the same shape.
        """
        if mask is not None:
            there = asarray(mask, dtype=dtypes.bool_)
            if there.ndim == inputs.ndim:
                inputs = where(there, inputs, finfo(inputs.dtype).min)
        return softmax(inputs, self.axis)
