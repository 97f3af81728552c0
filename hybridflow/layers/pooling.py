"""Layers that make one number of some places of a channel: of all of them, or of those in a window."""

from __future__ import annotations

from typing import Any, Unpack

from hybridflow.array.elementwise import where
from hybridflow.array.reductions import max, mean, sum
from hybridflow.array.shapes import broadcast_to, expand_dims
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import PerAxis
from hybridflow.eager.operands import cast
from hybridflow.errors import ArgumentError
from hybridflow.layers.layer import Layer, LayerOptions
from hybridflow.layers.window_arguments import WindowLayer, check_ndim
from hybridflow.nn.pooling import average, largest


class _GlobalPooling(Layer):
    """Over all ``_places`` axes that are neither batch nor channels; with ``keepdims`` their extents become 1."""

    _places: int

    def __init__(self, data_format: str | None = None, keepdims: bool = False, **options: Unpack[LayerOptions]) -> None:
        super().__init__(**options)
        if data_format not in (None, "channels_last", "channels_first"):
            raise ArgumentError(
                self.name, f"data_format is {data_format!r}; it must be 'channels_last' or 'channels_first'."
            )
        self.data_format, self.keepdims = data_format or "channels_last", bool(keepdims)

    @property
    def _axes(self) -> tuple[int, ...]:
        first = 1 if self.data_format == "channels_last" else 2
        return tuple(range(first, first + self._places))

    def _check(self, inputs: object) -> None:
        check_ndim(self, inputs, self._places + 2)


class _GlobalAverage(_GlobalPooling, one_tensor=True):
    def call(self, inputs: Tensor) -> Any:
        """The mean over all positions.

        Args:
            inputs: a tensor [batch, *space, channels], with channels first if ``data_format`` says so.

        Returns:
            A tensor [batch, channels]; with spatial extents of 1 where ``keepdims`` is True.

        Raises:
            ShapeError: for inputs of other axes.
        """
        self._check(inputs)
        return mean(inputs, self._axes, keepdims=self.keepdims)


class _GlobalMax(_GlobalPooling, one_tensor=True):
    def call(self, inputs: Tensor) -> Any:
        """The largest element over all positions.

        Args:
            inputs: a tensor [batch, *space, channels], with channels first if ``data_format`` says so.

        Returns:
            A tensor [batch, channels]; with spatial extents of 1 where ``keepdims`` is True.

        Raises:
            ShapeError: for inputs of other axes.
        """
        self._check(inputs)
        return max(inputs, self._axes, keepdims=self.keepdims)


class GlobalAveragePooling1D(_GlobalPooling, one_tensor=True):
    """Global average pooling: ``[batch, steps, channels]`` to the mean over the steps that are not masked, ``[batch,
    channels]``.

    Args:
        data_format: ``"channels_last"``, the default, or ``"channels_first"``.
        keepdims: whether reduced axes are kept with size 1.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> hf.layers.GlobalAveragePooling1D()([[[1.0, 2.0], [3.0, 4.0]]])
    <Tensor f32[1,2] cpu>
    [[2. 3.]]
    """

    _places = 1

    def call(self, inputs: Tensor, mask: Tensor | None = None) -> Any:
        """The mean over all steps, or over those that the mask has.

        Args:
            inputs: a tensor [batch, steps, channels], with channels first if ``data_format`` says so.
            mask: a bool tensor [batch, steps], or None.

        Returns:
            A tensor [batch, channels]; with one step where ``keepdims`` is True.

        Raises:
            ShapeError: for inputs of other axes.
        """
        self._check(inputs)
        if mask is None:
            return mean(inputs, self._axes, keepdims=self.keepdims)
        there = expand_dims(mask, axis=2 if self.data_format == "channels_last" else 1)
        count = sum(cast(broadcast_to(there, inputs.shape), inputs.dtype), self._axes, keepdims=self.keepdims)
        return sum(where(there, inputs, 0), self._axes, keepdims=self.keepdims) / count


class GlobalMaxPooling1D(_GlobalMax):
    """Global max pooling: ``[batch, steps, channels]`` to the maximum over the steps, ``[batch, channels]``.

    Args:
        data_format: ``"channels_last"``, the default, or ``"channels_first"``.
        keepdims: whether reduced axes are kept with size 1.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> hf.layers.GlobalMaxPooling1D()([[[1.0, 2.0], [3.0, 0.0]]])
    <Tensor f32[1,2] cpu>
    [[3. 2.]]
    """

    _places = 1


class GlobalAveragePooling2D(_GlobalAverage):
    """Global average pooling: ``[batch, rows, columns, channels]`` to the mean over both, ``[batch, channels]``.

    Args:
        data_format: ``"channels_last"``, the default, or ``"channels_first"``.
        keepdims: whether reduced axes are kept with size 1.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> hf.layers.GlobalAveragePooling2D()(hf.ones((2, 5, 5, 3))).shape
    (2, 3)
    """

    _places = 2


class GlobalMaxPooling2D(_GlobalMax):
    """Global max pooling: ``[batch, rows, columns, channels]`` to the maximum over both, ``[batch, channels]``.

    Args:
        data_format: ``"channels_last"``, the default, or ``"channels_first"``.
        keepdims: whether reduced axes are kept with size 1.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> hf.layers.GlobalMaxPooling2D()(hf.ones((2, 5, 5, 3))).shape
    (2, 3)
    """

    _places = 2


class GlobalAveragePooling3D(_GlobalAverage):
    """Global average pooling: ``[batch, planes, rows, columns, channels]`` to the mean over all places, ``[batch,
    channels]``.

    Args:
        data_format: ``"channels_last"``, the default, or ``"channels_first"``.
        keepdims: whether reduced axes are kept with size 1.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> hf.layers.GlobalAveragePooling3D()(hf.ones((2, 4, 5, 5, 3))).shape
    (2, 3)
    """

    _places = 3


class GlobalMaxPooling3D(_GlobalMax):
    """Global max pooling: ``[batch, planes, rows, columns, channels]`` to the maximum over all places, ``[batch,
    channels]``.

    Args:
        data_format: ``"channels_last"``, the default, or ``"channels_first"``.
        keepdims: whether reduced axes are kept with size 1.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> hf.layers.GlobalMaxPooling3D()(hf.ones((2, 4, 5, 5, 3))).shape
    (2, 3)
    """

    _places = 3


class _Pooling(WindowLayer):
    """Over windows of ``pool_size`` places, which begin every ``strides`` places: its own size, unless given."""

    def __init__(
        self,
        pool_size: PerAxis = 2,
        strides: PerAxis | None = None,
        padding: str = "valid",
        data_format: str | None = None,
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(data_format, **options)
        self.pool_size = self._each(pool_size, "pool_size")
        self.strides = self.pool_size if strides is None else self._each(strides, "strides")
        self.padding = self._padding(padding)

    def _arguments(self) -> tuple[Any, ...]:
        return self.pool_size, self.strides, self.padding, self.data_format, self._places


class _MaxPooling(_Pooling, one_tensor=True):
    def call(self, inputs: Tensor) -> Any:
        """The largest element of each window.

        Args:
            inputs: a tensor [batch, *space, channels], with channels first if ``data_format`` says so.

        Returns:
            A tensor [batch, *new space, channels].

        Raises:
            ShapeError: for inputs of other axes.
        """
        self._check(inputs)
        return largest(self.name, inputs, *self._arguments())


class _AveragePooling(_Pooling, one_tensor=True):
    def call(self, inputs: Tensor) -> Any:
        """The mean of each window.

        Args:
            inputs: a tensor [batch, *space, channels], with channels first if ``data_format`` says so.

        Returns:
            A tensor [batch, *new space, channels].

        Raises:
            ShapeError: for inputs of other axes.
        """
        self._check(inputs)
        return average(self.name, inputs, *self._arguments())


class MaxPooling1D(_MaxPooling):
    """Max pooling over steps: the largest element of each window over steps.

    Args:
        pool_size: the size of the window: a number, or one for each axis.
        strides: steps between windows: a number, or one for each axis.
        padding: ``"valid"`` or ``"same"``.
        data_format: ``"channels_last"``, the default, or ``"channels_first"``.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> hf.layers.MaxPooling1D()(hf.ones((2, 6, 3))).shape
    (2, 3, 3)
    """

    _places = 1


class MaxPooling2D(_MaxPooling):
    """Max pooling over images: the largest element of each window over images.

    Args:
        pool_size: the size of the window: a number, or one for each axis.
        strides: steps between windows: a number, or one for each axis.
        padding: ``"valid"`` or ``"same"``.
        data_format: ``"channels_last"``, the default, or ``"channels_first"``.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> hf.layers.MaxPooling2D()(hf.ones((2, 6, 6, 3))).shape
    (2, 3, 3, 3)
    """

    _places = 2


class MaxPooling3D(_MaxPooling):
    """Max pooling over volumes: the largest element of each window over volumes.

    Args:
        pool_size: the size of the window: a number, or one for each axis.
        strides: steps between windows: a number, or one for each axis.
        padding: ``"valid"`` or ``"same"``.
        data_format: ``"channels_last"``, the default, or ``"channels_first"``.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> hf.layers.MaxPooling3D()(hf.ones((2, 4, 4, 4, 3))).shape
    (2, 2, 2, 2, 3)
    """

    _places = 3


class AveragePooling1D(_AveragePooling):
    """Average pooling over steps: the mean of each window over steps.

    Args:
        pool_size: the size of the window: a number, or one for each axis.
        strides: steps between windows: a number, or one for each axis.
        padding: ``"valid"`` or ``"same"``.
        data_format: ``"channels_last"``, the default, or ``"channels_first"``.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> hf.layers.AveragePooling1D()(hf.ones((2, 6, 3))).shape
    (2, 3, 3)
    """

    _places = 1


class AveragePooling2D(_AveragePooling):
    """Average pooling over images: the mean of each window over images.

    Args:
        pool_size: the size of the window: a number, or one for each axis.
        strides: steps between windows: a number, or one for each axis.
        padding: ``"valid"`` or ``"same"``.
        data_format: ``"channels_last"``, the default, or ``"channels_first"``.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> hf.layers.AveragePooling2D()(hf.ones((2, 6, 6, 3))).shape
    (2, 3, 3, 3)
    """

    _places = 2


class AveragePooling3D(_AveragePooling):
    """Average pooling over volumes: the mean of each window over volumes.

    Args:
        pool_size: the size of the window: a number, or one for each axis.
        strides: steps between windows: a number, or one for each axis.
        padding: ``"valid"`` or ``"same"``.
        data_format: ``"channels_last"``, the default, or ``"channels_first"``.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> hf.layers.AveragePooling3D()(hf.ones((2, 4, 4, 4, 3))).shape
    (2, 2, 2, 2, 3)
    """

    _places = 3
