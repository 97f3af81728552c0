"""Layers that put zeros around, cut edges off, or repeat elements."""

from __future__ import annotations

from typing import Any, Unpack

from hybridflow.array.elementwise import astype
from hybridflow.array.selection import repeat
from hybridflow.array.shapes import moveaxis, pad
from hybridflow.core.tensor import Tensor
from hybridflow.errors import ArgumentError, ShapeError
from hybridflow.layers.layer import LayerOptions
from hybridflow.layers.window_arguments import WindowLayer
from hybridflow.nn.image_resize import SAMPLERS, resized


class _ZeroPadding(WindowLayer, one_tensor=True):
    def __init__(self, padding: object = 1, data_format: str | None = None, **options: Unpack[LayerOptions]) -> None:
        super().__init__(data_format, **options)
        self.padding = self._pairs(padding, "padding")

    def call(self, inputs: Tensor) -> Any:
        """The inputs with zeros around them.

        Args:
            inputs: a tensor [batch, *space, channels], with channels first if ``data_format`` says so.

        Returns:
            A tensor with larger spatial extents.

        Raises:
            ShapeError: for inputs of other axes.
        """
        self._check(inputs)
        return pad(inputs, self._around(self.padding))


class ZeroPadding1D(_ZeroPadding):
    """Zero padding of steps: zeros before the first and behind the last step; ``padding`` is a number, or one for each
    side.

    Args:
        padding: what is added: a number, one for each axis, or a pair for each.
        data_format: ``"channels_last"``, the default, or ``"channels_first"``.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> hf.layers.ZeroPadding1D((1, 2))(hf.ones((2, 5, 3))).shape
    (2, 8, 3)
    """

    _places = 1


class ZeroPadding2D(_ZeroPadding):
    """Zero padding of images: zeros around images; ``padding`` is a number, one for each axis, or a pair for each.

    Args:
        padding: what is added: a number, one for each axis, or a pair for each.
        data_format: ``"channels_last"``, the default, or ``"channels_first"``.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> hf.layers.ZeroPadding2D(((1, 0), (2, 2)))(hf.ones((2, 5, 5, 3))).shape
    (2, 6, 9, 3)
    """

    _places = 2


class ZeroPadding3D(_ZeroPadding):
    """Zero padding of volumes: zeros around volumes; ``padding`` is a number, one for each axis, or a pair for each.

    Args:
        padding: what is added: a number, one for each axis, or a pair for each.
        data_format: ``"channels_last"``, the default, or ``"channels_first"``.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> hf.layers.ZeroPadding3D()(hf.ones((2, 2, 2, 2, 3))).shape
    (2, 4, 4, 4, 3)
    """

    _places = 3


class _Cropping(WindowLayer, one_tensor=True):
    def __init__(self, cropping: object, data_format: str | None = None, **options: Unpack[LayerOptions]) -> None:
        super().__init__(data_format, **options)
        self.cropping = self._pairs(cropping, "cropping")

    def call(self, inputs: Tensor) -> Any:
        """The inputs without their borders.

        Args:
            inputs: a tensor [batch, *space, channels], with channels first if ``data_format`` says so.

        Returns:
            A tensor with smaller spatial extents.

        Raises:
            ShapeError: for inputs of other axes, or where more is cut off than there is.
        """
        self._check(inputs)
        cuts = self._around(self.cropping)
        for axis, (before, after) in enumerate(cuts):
            if not before + after <= inputs.shape[axis]:
                raise ShapeError(
                    self.name, f"({before}, {after}) is cut off axis {axis} of {inputs.type}, which has fewer elements."
                )
        return inputs[tuple(slice(before, n - after) for (before, after), n in zip(cuts, inputs.shape))]


class Cropping1D(_Cropping):
    """Cropping of steps: steps without the first and the last ones; ``cropping`` is a number, or one for each side.

    Args:
        cropping: what is cut off: a number, one for each axis, or a pair for each.
        data_format: ``"channels_last"``, the default, or ``"channels_first"``.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> hf.layers.Cropping1D((1, 2))(hf.ones((2, 5, 3))).shape
    (2, 2, 3)
    """

    _places = 1

    def __init__(
        self, cropping: object = (1, 1), data_format: str | None = None, **options: Unpack[LayerOptions]
    ) -> None:
        super().__init__(cropping, data_format, **options)


class Cropping2D(_Cropping):
    """Cropping of images: images without their edges; ``cropping`` is a number, one for each axis, or a pair for each.

    Args:
        cropping: what is cut off: a number, one for each axis, or a pair for each.
        data_format: ``"channels_last"``, the default, or ``"channels_first"``.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> hf.layers.Cropping2D(((1, 0), (2, 2)))(hf.ones((2, 5, 5, 3))).shape
    (2, 4, 1, 3)
    """

    _places = 2

    def __init__(
        self, cropping: object = ((0, 0), (0, 0)), data_format: str | None = None, **options: Unpack[LayerOptions]
    ) -> None:
        super().__init__(cropping, data_format, **options)


class Cropping3D(_Cropping):
    """Cropping of volumes: volumes without their edges; ``cropping`` is a number, one for each axis, or a pair for
    each.

    Args:
        cropping: what is cut off: a number, one for each axis, or a pair for each.
        data_format: ``"channels_last"``, the default, or ``"channels_first"``.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> hf.layers.Cropping3D()(hf.ones((2, 3, 3, 3, 1))).shape
    (2, 1, 1, 1, 1)
    """

    _places = 3

    def __init__(
        self,
        cropping: object = ((1, 1), (1, 1), (1, 1)),
        data_format: str | None = None,
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(cropping, data_format, **options)


class _UpSampling(WindowLayer, one_tensor=True):
    def __init__(self, size: object = 2, data_format: str | None = None, **options: Unpack[LayerOptions]) -> None:
        super().__init__(data_format, **options)
        self.size = self._each(size, "size")

    def call(self, inputs: Tensor) -> Any:
        """The inputs with each element repeated.

        Args:
            inputs: a tensor [batch, *space, channels], with channels first if ``data_format`` says so.

        Returns:
            A tensor with larger spatial extents.

        Raises:
            ShapeError: for inputs of other axes.
        """
        self._check(inputs)
        first = 1 if self.data_format == "channels_last" else 2
        for axis, times in enumerate(self.size, first):
            inputs = repeat(inputs, times, axis=axis)
        return inputs


class UpSampling1D(_UpSampling):
    """Upsampling of steps: each step ``size`` times.

    Args:
        size: how often each element is repeated along each axis.
        data_format: ``"channels_last"``, the default, or ``"channels_first"``.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> hf.layers.UpSampling1D(3)(hf.ones((2, 5, 3))).shape
    (2, 15, 3)
    """

    _places = 1


class UpSampling2D(_UpSampling):
    """Upsampling of images: each row and each column ``size`` times.  ``interpolation`` is "nearest" or "bilinear".

    Args:
        size: how often each element is repeated along each axis.
        data_format: ``"channels_last"``, the default, or ``"channels_first"``.
        interpolation: ``"nearest"``, ``"bilinear"`` or another way to read between pixels.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> hf.layers.UpSampling2D((2, 3))(hf.ones((2, 5, 5, 3))).shape
    (2, 10, 15, 3)
    """

    _places = 2

    def __init__(
        self,
        size: object = (2, 2),
        data_format: str | None = None,
        interpolation: str = "nearest",
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(size, data_format, **options)
        if interpolation not in SAMPLERS:
            raise ArgumentError(
                self.name, f"interpolation is {interpolation!r}; it must be one of {', '.join(SAMPLERS)}."
            )
        self.interpolation = interpolation

    def call(self, inputs: Tensor) -> Any:
        """Pictures made larger, by the layer's interpolation.

        Args:
            inputs: a tensor [batch, *space, channels], with channels first if ``data_format`` says so.

        Returns:
            A tensor with larger spatial extents.

        Raises:
            ShapeError: for inputs of other axes.
        """
        if self.interpolation == "nearest":
            return super().call(inputs)
        self._check(inputs)
        first = self.data_format == "channels_first"
        x = moveaxis(inputs, 1, -1) if first else inputs
        x = resized(x, x.shape[1] * self.size[0], x.shape[2] * self.size[1], self.interpolation)
        return astype(moveaxis(x, -1, 1) if first else x, inputs.dtype)


class UpSampling3D(_UpSampling):
    """Upsampling of volumes: each element of a volume ``size`` times along each axis.

    Args:
        size: how often each element is repeated along each axis.
        data_format: ``"channels_last"``, the default, or ``"channels_first"``.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> hf.layers.UpSampling3D()(hf.ones((2, 2, 2, 2, 3))).shape
    (2, 4, 4, 4, 3)
    """

    _places = 3
