"""Convolutions as layers."""

from __future__ import annotations

from typing import Any, Unpack

from hybridflow.array.shapes import reshape
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import Identifier, PerAxis
from hybridflow.core.variable import Variable
from hybridflow.errors import ArgumentError, ShapeError
from hybridflow.layers.activation_functions import activation as activation_of
from hybridflow.layers.basic import positive
from hybridflow.layers.layer import LayerOptions, SharedOptions
from hybridflow.layers.window_arguments import WindowLayer
from hybridflow.nn.convolution import convolved, depthwise, transposed
from hybridflow.quantize.quantized_weight import convolve


class _Convolution(WindowLayer):
    """Arguments of all convolutions, bias and activation."""

    kernel: Variable
    bias: Variable | None

    def __init__(
        self,
        kernel_size: PerAxis,
        strides: PerAxis,
        padding: str,
        data_format: str | None,
        dilation_rate: PerAxis,
        activation: Identifier,
        use_bias: bool,
        _bias: tuple[Any, Any, Any],
        _paddings: tuple[str, ...] = (),
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(data_format, **options)
        self.kernel_size, self.strides = self._each(kernel_size, "kernel_size"), self._each(strides, "strides")
        self.padding = self._padding(padding, *_paddings)
        self.dilation_rate = self._each(dilation_rate, "dilation_rate")
        self.activation, self.use_bias = activation_of(activation), bool(use_bias)
        self._settle("bias", *_bias)

    def _channels(self, input_shape: Any) -> int:
        if len(input_shape) != self._places + 2 or not isinstance(input_shape[self._channel_axis], int):
            raise ShapeError(
                self.name,
                f"the input has the shape {input_shape}; it must have {self._places + 2} axes and a known number of "
                "channels.",
            )
        channels: int = input_shape[self._channel_axis]
        return channels

    def _build_bias(self, outputs: int) -> None:
        self.bias = self._weight("bias", (outputs,)) if self.use_bias else None

    def _finished(self, out: Tensor) -> Tensor:
        if self.bias is not None:
            last = self.data_format == "channels_last"
            out = out + (self.bias if last else reshape(self.bias, (-1, *(1,) * self._places)))
        return self.activation(out)

    def _geometry(self) -> tuple[Any, Any, str, Any]:
        """Strides, padding, format and dilations for ``hf.nn``."""
        padding: object = self.padding
        if padding == "causal":
            padding = [((k - 1) * d, 0) for k, d in zip(self.kernel_size, self.dilation_rate)]
        return self.strides, padding, self.data_format, self.dilation_rate


class _Filters(_Convolution, one_tensor=True):
    """A convolution with one kernel, ``[*kernel_size, channels, filters]``."""

    _quantizes_inputs = True

    _paddings: tuple[str, ...] = ()

    def __init__(
        self,
        filters: int,
        kernel_size: PerAxis,
        strides: PerAxis = 1,
        padding: str = "valid",
        data_format: str | None = None,
        dilation_rate: PerAxis = 1,
        groups: int = 1,
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
        bias = bias_initializer, bias_regularizer, bias_constraint
        super().__init__(
            kernel_size, strides, padding, data_format, dilation_rate, activation, use_bias, bias, self._paddings,
            activity_regularizer=activity_regularizer,
            **options,
        )  # fmt: skip
        self.filters, self.groups = positive(filters, "filters", self), positive(groups, "groups", self)
        if self.filters % self.groups:
            raise ArgumentError(self.name, f"{self.filters} filters cannot be divided by {self.groups} groups.")
        self._settle("kernel", kernel_initializer, kernel_regularizer, kernel_constraint)

    def _quantized_axes(self) -> dict[str, tuple[int, ...]]:
        return {"kernel": (-1,)}

    def build(self, input_shape: tuple[Any, ...]) -> None:
        channels = self._channels(input_shape)
        if channels % self.groups:
            raise ShapeError(self.name, f"{channels} channels cannot be divided by {self.groups} groups.")
        self.kernel = self._weight("kernel", (*self.kernel_size, channels // self.groups, self.filters))
        self._build_bias(self.filters)

    def call(self, inputs: Tensor) -> Any:
        """The convolution of the inputs with the kernel, plus the bias, through the activation.

        Args:
            inputs: a tensor [batch, *space, channels], with channels first if ``data_format`` says so.

        Returns:
            A tensor [batch, *new space, filters].

        Raises:
            ShapeError: for inputs of other axes or channels.
        """
        self._check(inputs)
        return self._finished(convolve(self.name, inputs, self.kernel, *self._geometry(), self._places, self.groups))


class Conv1D(_Filters):
    """Convolution over steps: ``[batch, steps, channels]`` to ``[batch, new steps, filters]``.

    ``padding`` may also be "causal": what is padded lies before the first step.

    Args:
        filters: the number of channels of the result.
        kernel_size: the size of the window: a number, or one for each axis.
        strides: steps between windows: a number, or one for each axis.
        padding: ``"valid"``, ``"same"`` or ``"causal"``.
        data_format: ``"channels_last"``, the default, or ``"channels_first"``.
        dilation_rate: steps between the elements of a window: a number, or one for each axis.
        groups: the number of channel groups.
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

    >>> hf.layers.Conv1D(4, 3, padding="causal")(hf.ones((2, 5, 3))).shape
    (2, 5, 4)
    """

    _places = 1
    _paddings = ("causal",)


class Conv2D(_Filters):
    """Convolution over images: ``[batch, rows, columns, channels]`` to ``[batch, new rows, new columns, filters]``.

    Args:
        filters: the number of channels of the result.
        kernel_size: the size of the window: a number, or one for each axis.
        strides: steps between windows: a number, or one for each axis.
        padding: ``"valid"`` or ``"same"``.
        data_format: ``"channels_last"``, the default, or ``"channels_first"``.
        dilation_rate: steps between the elements of a window: a number, or one for each axis.
        groups: the number of channel groups.
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

    >>> hf.layers.Conv2D(4, 3, activation="relu")(hf.ones((2, 8, 8, 3))).shape
    (2, 6, 6, 4)
    """

    _places = 2


class Conv3D(_Filters):
    """Convolution over volumes, ``[batch, a, b, c, channels]``.

    Args:
        filters: the number of channels of the result.
        kernel_size: the size of the window: a number, or one for each axis.
        strides: steps between windows: a number, or one for each axis.
        padding: ``"valid"`` or ``"same"``.
        data_format: ``"channels_last"``, the default, or ``"channels_first"``.
        dilation_rate: steps between the elements of a window: a number, or one for each axis.
        groups: the number of channel groups.
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

    >>> hf.layers.Conv3D(4, 2, strides=2)(hf.ones((2, 4, 4, 4, 1))).shape
    (2, 2, 2, 2, 4)
    """

    _places = 3


class _Transposed(_Convolution, one_tensor=True):
    """The derivative of a convolution by its input; the kernel is ``[*kernel_size, filters, channels]``."""

    def __init__(
        self,
        filters: int,
        kernel_size: PerAxis,
        strides: PerAxis = 1,
        padding: str = "valid",
        output_padding: object = None,
        data_format: str | None = None,
        dilation_rate: PerAxis = 1,
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
        bias = bias_initializer, bias_regularizer, bias_constraint
        super().__init__(
            kernel_size, strides, padding, data_format, dilation_rate, activation, use_bias, bias,
            activity_regularizer=activity_regularizer,
            **options,
        )  # fmt: skip
        self.filters = positive(filters, "filters", self)
        self.output_padding = None if output_padding is None else self._each(output_padding, "output_padding", 0)
        if self.output_padding is not None and any(p >= s for p, s in zip(self.output_padding, self.strides)):
            raise ArgumentError(
                self.name, f"output_padding is {output_padding}; it must be less than the strides {self.strides}."
            )
        self._settle("kernel", kernel_initializer, kernel_regularizer, kernel_constraint)

    def _quantized_axes(self) -> dict[str, tuple[int, ...]]:
        return {"kernel": (-2,)}

    def build(self, input_shape: tuple[Any, ...]) -> None:
        self.kernel = self._weight("kernel", (*self.kernel_size, self.filters, self._channels(input_shape)))
        self._build_bias(self.filters)

    def call(self, inputs: Tensor) -> Any:
        """The transposed convolution of the inputs with the kernel, plus the bias, through the activation.

        Args:
            inputs: a tensor [batch, *space, channels], with channels first if ``data_format`` says so.

        Returns:
            A tensor [batch, *new space, filters].

        Raises:
            ShapeError: for inputs of other axes or channels.
        """
        self._check(inputs)
        last = self.data_format == "channels_last"
        extents = inputs.shape[1:-1] if last else inputs.shape[2:]
        shape, pairs = zip(*map(self._extent, extents, range(self._places)))
        strides, _, data_format, dilations = self._geometry()
        out = transposed(self.name, inputs, self.kernel, shape, strides, pairs, data_format, dilations, self._places)
        return self._finished(out)

    def _extent(self, extent: Any, axis: int) -> tuple[Any, tuple[int, int]]:
        """How many elements there are along an axis of the result, and how a convolution over these is padded."""
        stride = self.strides[axis]
        span = (self.kernel_size[axis] - 1) * self.dilation_rate[axis] + 1
        more = None if self.output_padding is None else self.output_padding[axis]
        if self.padding == "valid":
            over = max(span - stride, 0) if more is None else span - stride + more
            return extent * stride + over, (0, 0)
        if more is None:
            result, before = extent * stride, max(span - stride, 0) // 2
        else:
            result, before = (extent - 1) * stride + span % 2 + more, max(span - span % 2 - more, 0) // 2
        return result, (before, max((extent - 1) * stride + span - result - before, 0))


class Conv1DTranspose(_Transposed):
    """Transposed convolution over steps: ``[batch, steps, channels]`` to ``[batch, new steps, filters]``.

    Args:
        filters: the number of channels of the result.
        kernel_size: the size of the window: a number, or one for each axis.
        strides: steps between windows: a number, or one for each axis.
        padding: ``"valid"``, ``"same"`` or ``"causal"``.
        output_padding: what is added to one side of the result: a number, or one for each axis.
        data_format: ``"channels_last"``, the default, or ``"channels_first"``.
        dilation_rate: steps between the elements of a window: a number, or one for each axis.
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

    >>> hf.layers.Conv1DTranspose(4, 3, strides=2, padding="same")(hf.ones((2, 5, 3))).shape
    (2, 10, 4)
    """

    _places = 1


class Conv2DTranspose(_Transposed):
    """Transposed convolution over images: ``[batch, rows, columns, channels]`` to ``[batch, new rows, new columns,
    filters]``.

    Args:
        filters: the number of channels of the result.
        kernel_size: the size of the window: a number, or one for each axis.
        strides: steps between windows: a number, or one for each axis.
        padding: ``"valid"`` or ``"same"``.
        output_padding: what is added to one side of the result: a number, or one for each axis.
        data_format: ``"channels_last"``, the default, or ``"channels_first"``.
        dilation_rate: steps between the elements of a window: a number, or one for each axis.
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

    >>> hf.layers.Conv2DTranspose(4, 3, strides=2)(hf.ones((2, 5, 5, 3))).shape
    (2, 11, 11, 4)
    """

    _places = 2


class Conv3DTranspose(_Transposed):
    """Transposed convolution over volumes, ``[batch, a, b, c, channels]``. Where arguments have no names
    ``data_format`` comes before ``output_padding``, as in Keras.

    Args:
        filters: the number of channels of the result.
        kernel_size: the size of the window: a number, or one for each axis.
        strides: steps between windows: a number, or one for each axis.
        padding: ``"valid"`` or ``"same"``.
        data_format: ``"channels_last"``, the default, or ``"channels_first"``.
        output_padding: what is added to one side of the result: a number, or one for each axis.
        *arguments: those of the class of the cell or layer, see there.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> hf.layers.Conv3DTranspose(4, 2, strides=2)(hf.ones((2, 2, 2, 2, 3))).shape
    (2, 4, 4, 4, 4)
    """

    _places = 3

    def __init__(
        self,
        filters: int,
        kernel_size: PerAxis,
        strides: PerAxis = 1,
        padding: str = "valid",
        data_format: str | None = None,
        output_padding: object = None,
        *arguments: Any,
        **options: Any,
    ) -> None:
        super().__init__(filters, kernel_size, strides, padding, output_padding, data_format, *arguments, **options)


class _Depthwise(_Convolution, one_tensor=True):
    """Filters for each channel by itself; the kernel is ``[*kernel_size, channels, depth_multiplier]``."""

    def __init__(
        self,
        kernel_size: PerAxis,
        strides: PerAxis = 1,
        padding: str = "valid",
        depth_multiplier: int = 1,
        data_format: str | None = None,
        dilation_rate: PerAxis = 1,
        activation: Identifier = None,
        use_bias: bool = True,
        depthwise_initializer: Identifier = "glorot_uniform",
        bias_initializer: Identifier = "zeros",
        depthwise_regularizer: Identifier = None,
        bias_regularizer: Identifier = None,
        activity_regularizer: Identifier = None,
        depthwise_constraint: Identifier = None,
        bias_constraint: Identifier = None,
        **options: Unpack[SharedOptions],
    ) -> None:
        bias = bias_initializer, bias_regularizer, bias_constraint
        super().__init__(
            kernel_size, strides, padding, data_format, dilation_rate, activation, use_bias, bias,
            activity_regularizer=activity_regularizer,
            **options,
        )  # fmt: skip
        self.depth_multiplier = positive(depth_multiplier, "depth_multiplier", self)
        self._settle("depthwise", depthwise_initializer, depthwise_regularizer, depthwise_constraint)

    def _quantized_axes(self) -> dict[str, tuple[int, ...]]:
        return {"kernel": (-2, -1)}

    def build(self, input_shape: tuple[Any, ...]) -> None:
        channels = self._channels(input_shape)
        self.kernel = self._weight("depthwise", (*self.kernel_size, channels, self.depth_multiplier))
        self._build_bias(channels * self.depth_multiplier)

    def call(self, inputs: Tensor) -> Any:
        """The convolution of each channel with filters of its own, plus the bias, through the activation.

        Args:
            inputs: a tensor [batch, *space, channels], with channels first if ``data_format`` says so.

        Returns:
            A tensor [batch, *new space, channels * depth_multiplier].

        Raises:
            ShapeError: for inputs of other axes or channels.
        """
        self._check(inputs)
        return self._finished(depthwise(self.name, inputs, self.kernel, *self._geometry(), self._places))


class DepthwiseConv1D(_Depthwise):
    """Depthwise convolution over steps: filters over steps for each channel by itself.

    Args:
        kernel_size: the size of the window: a number, or one for each axis.
        strides: steps between windows: a number, or one for each axis.
        padding: ``"valid"`` or ``"same"``.
        depth_multiplier: the number of output channels for each input channel.
        data_format: ``"channels_last"``, the default, or ``"channels_first"``.
        dilation_rate: steps between the elements of a window: a number, or one for each axis.
        activation: a function, its name, or None.
        use_bias: whether a bias is added.
        depthwise_initializer: the initializer of the depthwise kernel.
        bias_initializer: the initializer of the bias.
        depthwise_regularizer: a regularizer of the depthwise kernel.
        bias_regularizer: a regularizer of the bias.
        activity_regularizer: a regularizer of the result.
        depthwise_constraint: a constraint that is applied to the depthwise kernel after each update.
        bias_constraint: a constraint that is applied to the bias after each update.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> hf.layers.DepthwiseConv1D(3, depth_multiplier=2)(hf.ones((2, 5, 3))).shape
    (2, 3, 6)
    """

    _places = 1


class DepthwiseConv2D(_Depthwise):
    """Depthwise convolution over images: filters over images for each channel by itself.

    Args:
        kernel_size: the size of the window: a number, or one for each axis.
        strides: steps between windows: a number, or one for each axis.
        padding: ``"valid"`` or ``"same"``.
        depth_multiplier: the number of output channels for each input channel.
        data_format: ``"channels_last"``, the default, or ``"channels_first"``.
        dilation_rate: steps between the elements of a window: a number, or one for each axis.
        activation: a function, its name, or None.
        use_bias: whether a bias is added.
        depthwise_initializer: the initializer of the depthwise kernel.
        bias_initializer: the initializer of the bias.
        depthwise_regularizer: a regularizer of the depthwise kernel.
        bias_regularizer: a regularizer of the bias.
        activity_regularizer: a regularizer of the result.
        depthwise_constraint: a constraint that is applied to the depthwise kernel after each update.
        bias_constraint: a constraint that is applied to the bias after each update.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> hf.layers.DepthwiseConv2D(3, padding="same")(hf.ones((2, 5, 5, 3))).shape
    (2, 5, 5, 3)
    """

    _places = 2


class _Separable(_Convolution, one_tensor=True):
    """Filters for each channel by itself, ``[*kernel_size, channels, depth_multiplier]``, and then
    ``pointwise_kernel`` ``[1, ..., channels * depth_multiplier, filters]``."""

    depthwise_kernel: Variable
    pointwise_kernel: Variable
    _paddings: tuple[str, ...] = ()

    def __init__(
        self,
        filters: int,
        kernel_size: PerAxis,
        strides: PerAxis = 1,
        padding: str = "valid",
        data_format: str | None = None,
        dilation_rate: PerAxis = 1,
        depth_multiplier: int = 1,
        activation: Identifier = None,
        use_bias: bool = True,
        depthwise_initializer: Identifier = "glorot_uniform",
        pointwise_initializer: Identifier = "glorot_uniform",
        bias_initializer: Identifier = "zeros",
        depthwise_regularizer: Identifier = None,
        pointwise_regularizer: Identifier = None,
        bias_regularizer: Identifier = None,
        activity_regularizer: Identifier = None,
        depthwise_constraint: Identifier = None,
        pointwise_constraint: Identifier = None,
        bias_constraint: Identifier = None,
        **options: Unpack[SharedOptions],
    ) -> None:
        bias = bias_initializer, bias_regularizer, bias_constraint
        super().__init__(
            kernel_size, strides, padding, data_format, dilation_rate, activation, use_bias, bias, self._paddings,
            activity_regularizer=activity_regularizer,
            **options,
        )  # fmt: skip
        self.filters = positive(filters, "filters", self)
        self.depth_multiplier = positive(depth_multiplier, "depth_multiplier", self)
        self._settle("depthwise", depthwise_initializer, depthwise_regularizer, depthwise_constraint)
        self._settle("pointwise", pointwise_initializer, pointwise_regularizer, pointwise_constraint)

    def _quantized_axes(self) -> dict[str, tuple[int, ...]]:
        return {"depthwise_kernel": (-2, -1), "pointwise_kernel": (-1,)}

    def build(self, input_shape: tuple[Any, ...]) -> None:
        channels, ones = self._channels(input_shape), (1,) * self._places
        seen = channels * self.depth_multiplier
        self.depthwise_kernel = self._weight("depthwise", (*self.kernel_size, channels, self.depth_multiplier))
        self.pointwise_kernel = self._weight("pointwise", (*ones, seen, self.filters))
        self._build_bias(self.filters)

    def call(self, inputs: Tensor) -> Any:
        """The convolution of each channel with filters of its own, then of all channels at each position.

        Args:
            inputs: a tensor [batch, *space, channels], with channels first if ``data_format`` says so.

        Returns:
            A tensor [batch, *new space, filters].

        Raises:
            ShapeError: for inputs of other axes or channels.
        """
        self._check(inputs)
        seen = depthwise(self.name, inputs, self.depthwise_kernel, *self._geometry(), self._places)
        return self._finished(
            convolved(self.name, seen, self.pointwise_kernel, 1, "valid", self.data_format, 1, self._places)
        )


class SeparableConv1D(_Separable):
    """Separable convolution over steps: filters over steps for each channel by itself, and then a dense layer over
    channels.

    Args:
        filters: the number of channels of the result.
        kernel_size: the size of the window: a number, or one for each axis.
        strides: steps between windows: a number, or one for each axis.
        padding: ``"valid"`` or ``"same"``.
        data_format: ``"channels_last"``, the default, or ``"channels_first"``.
        dilation_rate: steps between the elements of a window: a number, or one for each axis.
        depth_multiplier: the number of output channels for each input channel.
        activation: a function, its name, or None.
        use_bias: whether a bias is added.
        depthwise_initializer: the initializer of the depthwise kernel.
        pointwise_initializer: the initializer of the pointwise kernel.
        bias_initializer: the initializer of the bias.
        depthwise_regularizer: a regularizer of the depthwise kernel.
        pointwise_regularizer: a regularizer of the pointwise kernel.
        bias_regularizer: a regularizer of the bias.
        activity_regularizer: a regularizer of the result.
        depthwise_constraint: a constraint that is applied to the depthwise kernel after each update.
        pointwise_constraint: a constraint that is applied to the pointwise kernel after each update.
        bias_constraint: a constraint that is applied to the bias after each update.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> hf.layers.SeparableConv1D(4, 3)(hf.ones((2, 5, 3))).shape
    (2, 3, 4)
    """

    _places = 1
    _paddings = ("causal",)


class SeparableConv2D(_Separable):
    """Separable convolution over images: filters over images for each channel by itself, and then a dense layer over
    channels.

    Args:
        filters: the number of channels of the result.
        kernel_size: the size of the window: a number, or one for each axis.
        strides: steps between windows: a number, or one for each axis.
        padding: ``"valid"`` or ``"same"``.
        data_format: ``"channels_last"``, the default, or ``"channels_first"``.
        dilation_rate: steps between the elements of a window: a number, or one for each axis.
        depth_multiplier: the number of output channels for each input channel.
        activation: a function, its name, or None.
        use_bias: whether a bias is added.
        depthwise_initializer: the initializer of the depthwise kernel.
        pointwise_initializer: the initializer of the pointwise kernel.
        bias_initializer: the initializer of the bias.
        depthwise_regularizer: a regularizer of the depthwise kernel.
        pointwise_regularizer: a regularizer of the pointwise kernel.
        bias_regularizer: a regularizer of the bias.
        activity_regularizer: a regularizer of the result.
        depthwise_constraint: a constraint that is applied to the depthwise kernel after each update.
        pointwise_constraint: a constraint that is applied to the pointwise kernel after each update.
        bias_constraint: a constraint that is applied to the bias after each update.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> hf.layers.SeparableConv2D(4, 3, depth_multiplier=2)(hf.ones((2, 5, 5, 3))).shape
    (2, 3, 3, 4)
    """

    _places = 2
