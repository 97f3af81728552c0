"""Dense layers, dropout, and layers that give an input another shape."""

from __future__ import annotations

import inspect
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

from hybridflow.array import random
from hybridflow.array.creation import zeros_like
from hybridflow.array.elementwise import where
from hybridflow.array.selection import repeat
from hybridflow.array.shapes import expand_dims, moveaxis, permute_dims, reshape
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import Identifier
from hybridflow.core.variable import Variable
from hybridflow.errors import ArgumentError, ArgumentTypeError, ShapeError
from hybridflow.layers.activation_functions import activation as activation_of
from hybridflow.layers.layer import Layer, LayerOptions, SharedOptions, check_last_extent, last_extent
from hybridflow.layers.window_arguments import format_of
from hybridflow.nn.functional import dropout
from hybridflow.quantize.quantized_weight import contract
from hybridflow.regularizers import L1L2

if TYPE_CHECKING:
    from hybridflow.layers.keras_tensor import Symbol


class Dense(Layer, one_tensor=True):
    """Dense (fully connected) layer.

    ``activation(inputs @ kernel + bias)``: ``[samples, ..., n]`` to ``[samples, ..., units]``.

    Args:
        units: how many outputs, or elements of the state.
        activation: a function, its name, or None.
        use_bias: whether a bias is added.
        kernel_initializer: the initializer of the kernel.
        bias_initializer: the initializer of the bias.
        kernel_regularizer: a regularizer of the kernel.
        bias_regularizer: a regularizer of the bias.
        activity_regularizer: a regularizer of the result.
        kernel_constraint: a constraint that is applied to the kernel after each update.
        bias_constraint: a constraint that is applied to the bias after each update.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> layer = hf.layers.Dense(2, kernel_initializer="ones", activation="relu")
    >>> layer([[1.0, 2.0, 3.0]])
    <Tensor f32[1,2] cpu>
    [[6. 6.]]
    """

    supports_masking = True
    _quantizes_inputs = True
    kernel: Variable
    bias: Variable | None

    def __init__(
        self,
        units: int,
        activation: Identifier = None,
        use_bias: bool = True,
        kernel_initializer: Identifier = "glorot_uniform",
        bias_initializer: Identifier = "zeros",
        kernel_regularizer: Identifier = None,
        bias_regularizer: Identifier = None,
        activity_regularizer: Identifier = None,
        kernel_constraint: Identifier = None,
        bias_constraint: Identifier = None,
        **options: Unpack[SharedOptions],
    ) -> None:
        super().__init__(activity_regularizer=activity_regularizer, **options)
        self.units = positive(units, "units", self)
        self.activation, self.use_bias = activation_of(activation), bool(use_bias)
        self._settle("kernel", kernel_initializer, kernel_regularizer, kernel_constraint)
        self._settle("bias", bias_initializer, bias_regularizer, bias_constraint)

    def build(self, input_shape: tuple[Any, ...]) -> None:
        self.kernel = self._weight("kernel", (last_extent(self, input_shape), self.units))
        self.bias = self._weight("bias", (self.units,)) if self.use_bias else None

    def _quantized_axes(self) -> dict[str, tuple[int, ...]]:
        return {"kernel": (-1,)}

    def _check_first(self, inputs: Sequence[Tensor | Symbol]) -> None:
        super()._check_first(inputs)
        if self._one_tensor and inputs and inputs[0].ndim < 2:
            raise ShapeError(
                self.name,
                f"the input is {inputs[0].type}; the layer takes batches, [samples, ..., n]. One sample is no batch: "
                "see Dataset.batch, or x[None].",
            )

    def call(self, inputs: Tensor) -> Any:
        """The activation of the product of the inputs and the kernel, plus the bias.

        Args:
            inputs: a tensor [..., features].

        Returns:
            A tensor [..., units].

        Raises:
            ShapeError: for another number of features.
        """
        check_last_extent(self, inputs, self.kernel.shape[0])
        out = contract(inputs, self.kernel)
        return self.activation(out if self.bias is None else out + self.bias)


class Identity(Layer):
    """The input itself.

    Args:
        trainable: whether its weights are trained.
        name: the name in summaries, logs and files; by default made from the class's name.
        dtype: the dtype of weights and results, or a policy of ``hf.mixed_precision``; the global policy unless
            given.
        input_shape: the shape of one sample, so that it is built at once.
        input_dim: the size of the last axis of the input, so that it is built at once.
        batch_input_shape: the same, including the batch axis.
        activity_regularizer: a regularizer of the result.

    >>> hf.layers.Identity()([1.0, 2.0])
    <Tensor f32[2] cpu> [1. 2.]
    """

    supports_masking = True

    def call(self, inputs: Tensor) -> Any:
        """The inputs as they are.

        Args:
            inputs: a tensor, or several in a nest.

        Returns:
            The inputs.
        """
        return inputs


class Lambda(Layer):
    """A function as a layer: ``function(inputs, **arguments)``, and ``mask`` and ``training`` if it takes these.

    ``mask`` is that of the result, or a function of inputs and their mask.  Variables that the function reads are not
    the layer's.

    Args:
        function: a function of the input.
        output_shape: the shape of a result, without the batch.
        mask: a mask, or a function that makes one.
        arguments: what the function is given by name.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> hf.layers.Lambda(lambda x, by: x * by, arguments={"by": 2.0})([1.0, 2.0])
    <Tensor f32[2] cpu> [2. 4.]
    """

    def __init__(
        self,
        function: Callable[..., Any],
        output_shape: object = None,
        mask: Tensor | Callable[..., Any] | None = None,
        arguments: Mapping[str, Any] | None = None,
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**options)
        if not callable(function):
            raise ArgumentTypeError(self.name, f"{function!r} is no function.")
        self.function, self.output_shape, self.mask = function, output_shape, mask
        self.arguments = dict(arguments or {})
        self._taken = {"mask", "training"}.intersection(inspect.signature(function).parameters)

    def call(self, inputs: object, mask: Tensor | None = None, training: bool | None = None) -> Any:
        """What the function makes of the inputs.

        Args:
            inputs: what the function takes.
            mask: the mask of the inputs, for a function with an argument of that name.
            training: whether the model is being trained, for a function with an argument of that name.

        Returns:
            The function's result.
        """
        more = dict(self.arguments)
        if "mask" in self._taken:
            more["mask"] = mask
        if "training" in self._taken:
            more["training"] = training
        return self.function(inputs, **more)

    def compute_mask(self, inputs: object, mask: Tensor | None = None) -> Any:
        return self.mask(inputs, mask) if callable(self.mask) else self.mask

    def get_config(self) -> dict[str, Any]:
        config = {"function": self.function, "output_shape": self.output_shape, "mask": self.mask}
        return super().get_config() | config | {"arguments": self.arguments}


class ActivityRegularization(Layer, one_tensor=True):
    """Activity regularization.

    The input itself, whose elements are penalized: ``l1`` times their amounts, ``l2`` times their squares.

    Args:
        l1: the factor of the sum of absolute values.
        l2: the factor of the sum of squares.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> layer = hf.layers.ActivityRegularization(l1=0.5)
    >>> _ = layer([[1.0, -3.0]])
    >>> layer.losses
    [<Tensor f32[] cpu> 2.0]
    """

    supports_masking = True

    def __init__(self, l1: float = 0.0, l2: float = 0.0, **options: Any) -> None:
        super().__init__(activity_regularizer=L1L2(l1, l2), **options)
        self.l1, self.l2 = l1, l2

    def call(self, inputs: Tensor) -> Any:
        """The inputs as they are, whose penalty is one of ``losses``.

        Args:
            inputs: a tensor [batch, ...].

        Returns:
            The inputs.
        """
        return inputs

    def get_config(self) -> dict[str, Any]:
        config = super().get_config() | {"l1": self.l1, "l2": self.l2}
        del config["activity_regularizer"]
        return config


class Flatten(Layer, one_tensor=True):
    """Flatten: ``[batch, a, b, ...]`` to ``[batch, a * b * ...]``.

    With ``data_format="channels_first"`` the axis after the batch comes last before that, so that weights trained on
    images of the one format do for the other.

    Args:
        data_format: ``"channels_last"``, the default, or ``"channels_first"``.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> hf.layers.Flatten()(hf.ones((2, 3, 4))).shape
    (2, 12)
    """

    def __init__(self, data_format: str | None = None, **options: Unpack[LayerOptions]) -> None:
        super().__init__(**options)
        self.data_format = format_of(data_format, self)

    def call(self, inputs: Tensor) -> Any:
        """The inputs with one axis behind the batch.

        Args:
            inputs: a tensor [batch, ...].

        Returns:
            A tensor [batch, features].
        """
        if self.data_format == "channels_first" and inputs.ndim > 2:
            inputs = moveaxis(inputs, 1, -1)
        if inputs.ndim < 2:
            return reshape(inputs, (inputs.shape[0] if inputs.ndim else 1, 1))
        return reshape(inputs, (inputs.shape[0], math.prod(inputs.shape[1:])))


class Reshape(Layer, one_tensor=True):
    """Reshape: ``[batch, ...]`` to ``[batch, *target_shape]``; one extent may be -1, which is then what is left.

    Args:
        target_shape: the shape of one sample; one extent may be -1.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> hf.layers.Reshape((2, -1))(hf.ones((5, 6))).shape
    (5, 2, 3)
    """

    def __init__(self, target_shape: Sequence[int], **options: Unpack[LayerOptions]) -> None:
        super().__init__(**options)
        self.target_shape = tuple(target_shape)

    def call(self, inputs: Tensor) -> Any:
        """The inputs in another shape.

        Args:
            inputs: a tensor [batch, ...].

        Returns:
            A tensor [batch, *target_shape].

        Raises:
            ShapeError: for inputs without axes, or where the number of elements differs.
        """
        if not inputs.ndim:
            raise ShapeError(self.name, f"the input is {inputs.type}; it must be [batch, ...].")
        return reshape(inputs, (inputs.shape[0], *self.target_shape))


class Permute(Layer, one_tensor=True):
    """Axes in another order; they count from 1, the batch stays first.

    Args:
        dims: for each axis of the result the one of the input, counted from 1, without the batch.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> hf.layers.Permute((2, 1))(hf.ones((5, 2, 3))).shape
    (5, 3, 2)
    """

    def __init__(self, dims: Sequence[int], **options: Unpack[LayerOptions]) -> None:
        super().__init__(**options)
        self.dims = tuple(dims)
        if sorted(self.dims) != list(range(1, len(self.dims) + 1)):
            raise ArgumentError(self.name, f"dims is {self.dims}; it must name each axis from 1 on once.")

    def call(self, inputs: Tensor) -> Any:
        """The inputs with their axes behind the batch in another order.

        Args:
            inputs: a tensor [batch, ...].

        Returns:
            A tensor with the same elements.
        """
        return permute_dims(inputs, (0, *self.dims))


class RepeatVector(Layer, one_tensor=True):
    """Repeat a vector: ``[batch, features]`` to ``[batch, n, features]``.

    Args:
        n: how many times.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> hf.layers.RepeatVector(3)(hf.ones((5, 2))).shape
    (5, 3, 2)
    """

    def __init__(self, n: int, **options: Unpack[LayerOptions]) -> None:
        super().__init__(**options)
        self.n = positive(n, "n", self)

    def call(self, inputs: Tensor) -> Any:
        """The inputs as many times as the layer says, along a new axis.

        Args:
            inputs: a tensor [batch, features].

        Returns:
            A tensor [batch, n, features].

        Raises:
            ShapeError: for inputs of other axes.
        """
        if inputs.ndim != 2:
            raise ShapeError(self.name, f"the input is {inputs.type}; it must be [batch, features].")
        return repeat(expand_dims(inputs, axis=1), self.n, axis=1)


class Dropout(Layer, one_tensor=True):
    """Dropout: while training, elements become 0 with probability ``rate``, and the others ``1 / (1 - rate)`` times
    themselves.

    With a ``seed`` the layer draws from a generator of its own, else from the global one.  ``noise_shape`` is the shape
    of what is drawn: along an axis of extent 1 all elements are kept or none, and None is the input's extent.

    Args:
        rate: the fraction of the elements to drop, from 0 to 1.
        noise_shape: the shape of the mask, which is broadcast.
        seed: a number, a generator, or None for the global one.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> layer = hf.layers.Dropout(0.5, seed=3)
    >>> layer([1.0, 1.0, 1.0, 1.0])
    <Tensor f32[4] cpu> [1. 1. 1. 1.]
    >>> layer(hf.ones(1000), training=True).max()
    <Tensor f32[] cpu> 2.0
    """

    supports_masking = True

    def __init__(
        self,
        rate: float,
        noise_shape: Sequence[int | None] | None = None,
        seed: int | None = None,
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**options)
        if not 0 <= rate <= 1:
            raise ArgumentError(self.name, f"rate is {rate!r}; it must be from 0 to 1.")
        self.rate, self.seed = float(rate), seed
        self.noise_shape = None if noise_shape is None else tuple(noise_shape)
        self.generator = None if seed is None else random.Generator(seed)

    def call(self, inputs: Tensor, training: bool | None = None) -> Any:
        """While training the inputs with some elements set to 0, the others scaled up; else the inputs as they are.

        Args:
            inputs: a tensor.
            training: whether the model is being trained.

        Returns:
            A tensor of the same shape.

        Raises:
            ShapeError: where ``noise_shape`` has other axes.
        """
        if not training or self.rate == 0:
            return inputs
        if self.rate == 1:
            return zeros_like(inputs)  # of infinities too
        if self.noise_shape is None:
            return dropout(inputs, self.rate, training=True, generator=self.generator)
        if len(self.noise_shape) != inputs.ndim:
            raise ShapeError(self.name, f"the input is {inputs.type}; noise_shape {self.noise_shape} has other axes.")
        drawn = tuple(n if one is None else one for n, one in zip(inputs.shape, self.noise_shape))
        keep_mask = (self.generator or random.global_generator()).bernoulli(1 - self.rate, drawn)
        return where(keep_mask, inputs * (1 / (1 - self.rate)), 0)


def positive(value: Any, name: str, layer: Layer) -> int:
    """A positive int, or what is one as an index.  Raises ArgumentError, which names the layer, for anything else."""
    try:
        result = 0 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        result = 0
    if result < 1:
        raise ArgumentError(layer.name, f"{name} is {value!r}; it must be a positive integer.")
    return result
