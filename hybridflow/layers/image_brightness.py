"""Layers that change the light of images by chance while training: brightness and contrast."""

from __future__ import annotations

from typing import Any, Unpack

from hybridflow.array import random
from hybridflow.array.elementwise import astype, clip
from hybridflow.array.reductions import mean
from hybridflow.core.tensor import Tensor
from hybridflow.errors import ArgumentError, ShapeError
from hybridflow.layers.layer import Layer, LayerOptions


class _Light(Layer, one_tensor=True):
    """While training, each image of a batch is changed by a number between the two of ``_bounds``, and kept within
    ``value_range``."""

    _bounds: tuple[float, float]

    def __init__(
        self,
        factor: object,
        value_range: tuple[float, float] = (0, 255),
        seed: int | None = None,
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**options)
        self.factor, self.seed = factor, seed
        if len(value_range) != 2 or not value_range[0] < value_range[1]:
            raise ArgumentError(self.name, f"value_range is {value_range!r}; it must be two numbers that rise.")
        self.value_range = tuple(value_range)
        self.generator = None if seed is None else random.Generator(seed)

    def call(self, inputs: Tensor, training: bool | None = True) -> Any:
        """While training pictures whose light is changed at random; else the pictures as they are.

        Args:
            inputs: pictures [batch, rows, columns, channels], or one without the batch.
            training: whether the model is being trained.

        Returns:
            A tensor of the same shape.

        Raises:
            ShapeError: for inputs of other axes.
        """
        if inputs.ndim not in (3, 4):
            raise ShapeError(self.name, f"the input is {inputs.type}; it must be [batch, rows, columns, channels].")
        x = astype(inputs, self.compute_dtype)
        if not training:
            return x
        source = self.generator or random.global_generator()
        drawn = source.uniform((x.shape[0], 1, 1, 1) if x.ndim == 4 else (1, 1, 1), *self._bounds)
        return clip(self._changed(x, astype(drawn, x.dtype)), *self.value_range)

    def _changed(self, x: Tensor, drawn: Tensor) -> Any:
        raise NotImplementedError


class RandomContrast(_Light, one_tensor=True):
    """Random contrast: while training, what differs from an image's mean, channel by channel, is multiplied.

    The factor is between ``1 - factor`` and ``1 + factor``, or of a pair the one below and the other above 1.

    Args:
        factor: the range to draw from.
        value_range: the least and the largest value of a pixel.
        seed: a number, a generator, or None for the global one.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> x = hf.asarray([[[[10.0], [20.0]]]])
    >>> layer = hf.layers.RandomContrast(0.5, seed=1)
    >>> y = layer(x, training=True)
    >>> hf.mean(y).item(), bool(hf.all(hf.abs(y - 15.0) <= 7.5)), bool(hf.all(layer(x, training=False) == x))
    (15.0, True, True)
    """

    def __init__(
        self,
        factor: object,
        value_range: tuple[float, float] = (0, 255),
        seed: int | None = None,
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(factor, value_range, seed, **options)
        lower, upper = factor if isinstance(factor, (tuple, list)) else (factor, factor)
        if not (0 <= lower <= 1 and upper >= 0):
            raise ArgumentError(self.name, f"factor is {factor!r}; it must be from 0 to 1, or two such numbers.")
        self._bounds = (1.0 - lower, 1.0 + upper)

    def _changed(self, x: Tensor, drawn: Tensor) -> Tensor:
        middle = mean(x, axis=(-3, -2), keepdims=True)
        return (x - middle) * drawn + middle


class RandomBrightness(_Light, one_tensor=True):
    """Random brightness.

    While training, a share of the span of ``value_range`` is added to each image: between ``-factor`` and ``factor``,
    or between the two of a pair.

    Args:
        factor: the range to draw from.
        value_range: the least and the largest value of a pixel.
        seed: a number, a generator, or None for the global one.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> layer = hf.layers.RandomBrightness((0.25, 0.5), value_range=(0, 1), seed=1)
    >>> y = layer(hf.zeros((1, 2, 2, 1)), training=True)
    >>> bool(hf.all(y >= 0.25)), bool(hf.all(y < 0.5)), bool(hf.all(y == y[0, 0, 0, 0]))
    (True, True, True)
    """

    def __init__(
        self,
        factor: Any,
        value_range: tuple[float, float] = (0, 255),
        seed: int | None = None,
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(factor, value_range, seed, **options)
        lower, upper = sorted(factor) if isinstance(factor, (tuple, list)) else (-abs(factor), abs(factor))
        if not -1 <= lower <= upper <= 1:
            raise ArgumentError(self.name, f"factor is {factor!r}; it must be from -1 to 1, or two such numbers.")
        self._bounds = (float(lower), float(upper))

    def _changed(self, x: Tensor, drawn: Tensor) -> Tensor:
        return x + drawn * (self.value_range[1] - self.value_range[0])
