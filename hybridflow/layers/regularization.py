"""Layers that disturb what they are given while they train."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Unpack

from hybridflow.array import random
from hybridflow.array.elementwise import where
from hybridflow.core.tensor import Tensor
from hybridflow.errors import ArgumentError, ShapeError
from hybridflow.layers.layer import Layer, LayerOptions, check_rate
from hybridflow.layers.window_arguments import format_of


class _Noise(Layer, one_tensor=True):
    """With a ``seed`` the layer draws from a generator of its own, else from the global one."""

    supports_masking = True

    def __init__(self, seed: int | None = None, **options: Unpack[LayerOptions]) -> None:
        super().__init__(**options)
        self.seed = seed
        self.generator = None if seed is None else random.Generator(seed)

    def call(self, inputs: Tensor, training: bool | None = None) -> Any:
        """While training the inputs with noise; else the inputs as they are.

        Args:
            inputs: a tensor.
            training: whether the model is being trained.

        Returns:
            A tensor of the same shape.
        """
        if not training:
            return inputs
        return self.disturbed(inputs, self.generator or random.global_generator())

    def disturbed(self, inputs: Tensor, source: random.Generator) -> Any:
        """For subclasses: the inputs with noise.

        Args:
            inputs: a tensor.
            source: the generator that it is drawn from.

        Returns:
            A tensor of the same shape.
        """
        raise NotImplementedError(f"{type(self).__name__} has to define disturbed(self, inputs, source)")


class GaussianNoise(_Noise):
    """Gaussian noise: while training, plus normally distributed numbers of mean 0.

    Args:
        stddev: the standard deviation of the noise.
        seed: a number, a generator, or None for the global one.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> layer = hf.layers.GaussianNoise(0.1, seed=1)
    >>> layer([1.0, 2.0])
    <Tensor f32[2] cpu> [1. 2.]
    >>> hf.std(layer(hf.zeros(10000), training=True)).item().__round__(2)
    0.1
    """

    def __init__(self, stddev: float, seed: int | None = None, **options: Unpack[LayerOptions]) -> None:
        super().__init__(seed, **options)
        if not stddev >= 0:
            raise ArgumentError(self.name, f"stddev is {stddev!r}; it must not be negative.")
        self.stddev = float(stddev)

    def disturbed(self, inputs: Tensor, source: random.Generator) -> Any:
        return inputs + source.normal(inputs.shape, 0.0, self.stddev, inputs.dtype)


class GaussianDropout(_Noise):
    """Gaussian dropout: while training, times normally distributed numbers of mean 1 and variance ``rate / (1 -
    rate)``.

    Args:
        rate: the fraction of the elements to drop, from 0 to 1.
        seed: a number, a generator, or None for the global one.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> layer = hf.layers.GaussianDropout(0.2, seed=1)
    >>> hf.std(layer(hf.ones(10000), training=True)).item().__round__(2)
    0.5
    """

    def __init__(self, rate: float, seed: int | None = None, **options: Unpack[LayerOptions]) -> None:
        super().__init__(seed, **options)
        check_rate(self, "rate", rate)
        self.rate = float(rate)

    def disturbed(self, inputs: Tensor, source: random.Generator) -> Any:
        deviation = math.sqrt(self.rate / (1 - self.rate))
        return inputs * source.normal(inputs.shape, 1.0, deviation, inputs.dtype)


class _SpatialDropout(_Noise):
    """Dropout of whole channels, which are one axis of ``_axes``."""

    _axes: int

    def __init__(self, rate: float, seed: int | None = None, **options: Unpack[LayerOptions]) -> None:
        super().__init__(seed, **options)
        check_rate(self, "rate", rate)
        self.rate = float(rate)

    def disturbed(self, inputs: Tensor, source: random.Generator) -> Any:
        if inputs.ndim != self._axes:
            raise ShapeError(self.name, f"the input is {inputs.type}; it must have {self._axes} axes.")
        extents: list[Any] = [inputs.shape[0]] + [1] * (self._axes - 1)
        extents[self._channels()] = inputs.shape[self._channels()]
        keep_mask = source.bernoulli(1 - self.rate, tuple(extents))
        return where(keep_mask, inputs * (1 / (1 - self.rate)), 0)

    def _channels(self) -> int:
        """The axis of the channels."""
        return -1


class SpatialDropout1D(_SpatialDropout):
    """Spatial dropout.

    Dropout of whole channels of ``[batch, steps, channels]``: each is kept at all steps, or 0 at all.

    Args:
        rate: the fraction of the elements to drop, from 0 to 1.
        seed: a number, a generator, or None for the global one.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> layer = hf.layers.SpatialDropout1D(0.5, seed=1)
    >>> x = layer(hf.ones((1, 3, 4)), training=True)
    >>> hf.all(x == x[:, :1]).item()
    True
    """

    _axes = 3


class _OfChannels(_SpatialDropout):
    def __init__(
        self, rate: float, data_format: str | None = None, seed: int | None = None, **options: Unpack[LayerOptions]
    ) -> None:
        super().__init__(rate, seed, **options)
        self.data_format = format_of(data_format, self)

    def _channels(self) -> int:
        return 1 if self.data_format == "channels_first" else -1


class SpatialDropout2D(_OfChannels):
    """Spatial dropout: dropout of whole channels of ``[batch, rows, columns, channels]``, or with
    ``data_format="channels_first"`` of ``[batch, channels, rows, columns]``.

    Args:
        rate: the fraction of the elements to drop, from 0 to 1.
        data_format: ``"channels_last"``, the default, or ``"channels_first"``.
        seed: a number, a generator, or None for the global one.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> layer = hf.layers.SpatialDropout2D(0.5, seed=1)
    >>> x = layer(hf.ones((1, 3, 3, 4)), training=True)
    >>> hf.all(x == x[:, :1, :1]).item()
    True
    """

    _axes = 4


class SpatialDropout3D(_OfChannels):
    """Spatial dropout: dropout of whole channels of ``[batch, planes, rows, columns, channels]``, or with
    ``data_format="channels_first"`` of ``[batch, channels, planes, rows, columns]``.

    Args:
        rate: the fraction of the elements to drop, from 0 to 1.
        data_format: ``"channels_last"``, the default, or ``"channels_first"``.
        seed: a number, a generator, or None for the global one.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> layer = hf.layers.SpatialDropout3D(0.5, seed=1)
    >>> x = layer(hf.ones((1, 2, 2, 2, 4)), training=True)
    >>> hf.all(x == x[:, :1, :1, :1]).item()
    True
    """

    _axes = 5


class AlphaDropout(_Noise):
    """Alpha dropout.

    While training, elements become the least that ``selu`` gives, with probability ``rate``; then all are scaled so
    that mean 0 and variance 1 stay.

    Source: Klambauer and others, "Self-Normalizing Neural Networks", 2017.

    Args:
        rate: the fraction of the elements to drop, from 0 to 1.
        noise_shape: the shape of the mask, which is broadcast.
        seed: a number, a generator, or None for the global one.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> layer = hf.layers.AlphaDropout(0.2, seed=1)
    >>> hf.std(layer(hf.random.normal((10000,)), training=True)).item().__round__(1)
    1.0
    """

    def __init__(
        self,
        rate: float,
        noise_shape: Sequence[int | None] | None = None,
        seed: int | None = None,
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(seed, **options)
        check_rate(self, "rate", rate)
        self.rate, self.noise_shape = float(rate), noise_shape

    def disturbed(self, inputs: Tensor, source: random.Generator) -> Any:
        noise_shape = (None,) * inputs.ndim if self.noise_shape is None else self.noise_shape
        shape = tuple(n if one is None else one for n, one in zip(inputs.shape, noise_shape))
        keep_mask = source.bernoulli(1 - self.rate, shape)
        scale = ((1 - self.rate) * (1 + self.rate * _LEAST**2)) ** -0.5
        return where(keep_mask, inputs, _LEAST) * scale - scale * _LEAST * self.rate


_LEAST = -1.6732632423543772 * 1.0507009873554805  # what selu tends to
