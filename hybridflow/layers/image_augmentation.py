"""Layers for pictures, [rows, columns, channels] or batches of these: of another size, or moved about in training."""

from __future__ import annotations

import math
from typing import Any, Unpack

from hybridflow.array import random
from hybridflow.array.creation import arange
from hybridflow.array.elementwise import astype, clip, cos, floor, logical_and, remainder, sin, where
from hybridflow.array.indexing import take
from hybridflow.array.shapes import expand_dims, reshape, squeeze
from hybridflow.compiler.ir import dtypes
from hybridflow.core.tensor import Tensor
from hybridflow.errors import ArgumentError, ShapeError
from hybridflow.layers.basic import positive
from hybridflow.layers.layer import Layer, LayerOptions
from hybridflow.nn.image_resize import SAMPLERS, resized


def _checked(layer: Layer, x: Tensor, open_: bool = False) -> Any:
    if x.ndim not in (3, 4):
        raise ShapeError(layer.name, f"the input is {x.type}; it must be [batch, rows, columns, channels].")
    if not open_ and any(not isinstance(extent, int) for extent in x.shape[-3:-1]):
        raise ShapeError(layer.name, f"the input is {x.type}, whose rows or columns are open. Give hf.Input numbers.")
    return x


def _one_of(layer: Layer, what: str, value: Any, known: Any) -> str:
    if value not in known:
        raise ArgumentError(layer.name, f"{what} is {value!r}; it must be one of {', '.join(map(repr, known))}.")
    return value


class Resizing(Layer, one_tensor=True):
    """Resizing of images: pictures of another size, "bilinear" or "nearest"; ``crop_to_aspect_ratio`` cuts their edges
    off rather than stretch them.

    Args:
        height: the height of the result in pixels.
        width: the width of the result in pixels.
        interpolation: ``"nearest"``, ``"bilinear"`` or another way to read between pixels.
        crop_to_aspect_ratio: whether to cut off what does not fit rather than to distort.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> hf.layers.Resizing(1, 2)(hf.ones((5, 4, 4, 3))).shape
    (5, 1, 2, 3)
    """

    def __init__(
        self,
        height: int,
        width: int,
        interpolation: str = "bilinear",
        crop_to_aspect_ratio: bool = False,
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**options)
        self.height, self.width = positive(height, "height", self), positive(width, "width", self)
        self.interpolation = _one_of(self, "interpolation", interpolation, SAMPLERS)
        self.crop_to_aspect_ratio = bool(crop_to_aspect_ratio)

    def call(self, inputs: Tensor) -> Any:
        """Pictures of the layer's size.

        Args:
            inputs: pictures [batch, rows, columns, channels], or one without the batch.

        Returns:
            A tensor [batch, height, width, channels].

        Raises:
            ShapeError: for inputs of other axes.
        """
        x = _checked(self, inputs, open_=not self.crop_to_aspect_ratio)
        if self.crop_to_aspect_ratio:
            x = _of_ratio(x, self.height, self.width)
        return astype(resized(x, self.height, self.width, self.interpolation), self.compute_dtype)


class CenterCrop(Layer, one_tensor=True):
    """Center crop: the middle of pictures; smaller ones are made larger first, and keep their ratio.

    Args:
        height: the height of the result in pixels.
        width: the width of the result in pixels.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> hf.layers.CenterCrop(1, 2)(hf.reshape(hf.arange(9.0), (3, 3, 1)))[..., 0].tolist()
    [[3.0, 4.0]]
    """

    def __init__(self, height: int, width: int, **options: Unpack[LayerOptions]) -> None:
        super().__init__(**options)
        self.height, self.width = positive(height, "height", self), positive(width, "width", self)

    def call(self, inputs: Tensor) -> Any:
        """The middle of pictures; smaller ones are made larger first.

        Args:
            inputs: pictures [batch, rows, columns, channels], or one without the batch.

        Returns:
            A tensor [batch, height, width, channels].

        Raises:
            ShapeError: for inputs of other axes.
        """
        x = astype(_checked(self, inputs, open_=True), self.compute_dtype)
        if not all(isinstance(extent, int) for extent in x.shape[-3:-1]):
            return _middle(x, self.height, self.width)
        if x.shape[-3] < self.height or x.shape[-2] < self.width:
            result = resized(_of_ratio(x, self.height, self.width), self.height, self.width, "bilinear")
            return astype(result, self.compute_dtype)
        return _middle(x, self.height, self.width)


class RandomCrop(Layer, one_tensor=True):
    """Random crop: a part of pictures while training, at a place drawn by chance, the same one for all of a batch.

    Otherwise, and where pictures are smaller, it is the largest middle part of the same ratio, made to that size.

    Args:
        height: the height of the result in pixels.
        width: the width of the result in pixels.
        seed: a number, a generator, or None for the global one.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> hf.layers.RandomCrop(2, 3, seed=1)(hf.ones((5, 4, 4, 1)), training=True).shape
    (5, 2, 3, 1)
    """

    def __init__(self, height: int, width: int, seed: int | None = None, **options: Unpack[LayerOptions]) -> None:
        super().__init__(**options)
        self.height, self.width = positive(height, "height", self), positive(width, "width", self)
        self.seed = seed
        self.generator = None if seed is None else random.Generator(seed)

    def call(self, inputs: Tensor, training: bool | None = True) -> Any:
        """While training a part of pictures at a random place; else they are scaled, and their middle is taken.

        Args:
            inputs: pictures [batch, rows, columns, channels], or one without the batch.
            training: whether the model is being trained.

        Returns:
            A tensor [batch, height, width, channels].

        Raises:
            ShapeError: for inputs of other axes.
        """
        x = astype(_checked(self, inputs), self.compute_dtype)
        if training and x.shape[-3] >= self.height and x.shape[-2] >= self.width:
            return self._part(self._part(x, -3, self.height), -2, self.width)
        result = resized(_of_ratio(x, self.height, self.width), self.height, self.width, "bilinear")
        return astype(result, self.compute_dtype)

    def _part(self, x: Tensor, axis: int, extent: int) -> Any:
        source = self.generator or random.global_generator()
        first = source.randint((), 0, x.shape[axis] - extent + 1)
        return take(x, first + arange(extent), axis=axis)


def _of_ratio(x: Tensor, height: int, width: int) -> Any:
    """The largest middle part of pictures whose ratio is that of ``height`` and ``width``."""
    rows, columns = x.shape[-3], x.shape[-2]
    return _middle(x, min(rows, int(columns * height / width)), min(columns, int(rows * width / height)))


def _middle(x: Tensor, height: int, width: int) -> Any:
    above, before = (x.shape[-3] - height) // 2, (x.shape[-2] - width) // 2
    return x[..., above : above + height, before : before + width, :]


class _Moved(Layer, one_tensor=True):
    """While training, each picture is sampled at places that an affine map of its own says.

    Places outside are mirrored at the edge ("reflect"), are the nearest inside ("nearest") or ``fill_value``
    ("constant").  With a ``seed`` the layer draws from a generator of its own, else from the global one.
    """

    def __init__(
        self,
        fill_mode: str = "reflect",
        interpolation: str = "bilinear",
        seed: int | None = None,
        fill_value: float = 0.0,
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**options)
        self.fill_mode = _one_of(self, "fill_mode", fill_mode, ("reflect", "nearest", "constant"))
        self.interpolation = _one_of(self, "interpolation", interpolation, SAMPLERS)
        self.seed, self.fill_value = seed, float(fill_value)
        self.generator = None if seed is None else random.Generator(seed)

    def call(self, inputs: Tensor, training: bool | None = True) -> Any:
        """While training pictures that are moved at random; else the pictures as they are.

        Args:
            inputs: pictures [batch, rows, columns, channels], or one without the batch.
            training: whether the model is being trained.

        Returns:
            A tensor of the same shape.

        Raises:
            ShapeError: for inputs of other axes.
        """
        x = astype(_checked(self, inputs), self.compute_dtype)
        if not training:
            return x
        return squeeze(self._sampled(expand_dims(x, axis=0)), axis=0) if x.ndim == 3 else self._sampled(x)

    def _sampled(self, x: Tensor) -> Any:
        rows, columns = x.shape[-3], x.shape[-2]
        y = reshape(arange(rows, dtype=dtypes.float32), (1, rows, 1))
        z = reshape(arange(columns, dtype=dtypes.float32), (1, 1, columns))
        places = self.places(y - (rows - 1) / 2, z - (columns - 1) / 2, x)
        y, z = (_inside(p + (n - 1) / 2, n, self.fill_mode) for p, n in zip(places, (rows, columns)))
        if self.interpolation == "nearest":
            return self._at(x, floor(y + 0.5), floor(z + 0.5))
        top, left = floor(y), floor(z)
        down, right = (astype(expand_dims(part, axis=-1), x.dtype) for part in (y - top, z - left))
        upper = self._at(x, top, left) * (1 - right) + self._at(x, top, left + 1) * right
        lower = self._at(x, top + 1, left) * (1 - right) + self._at(x, top + 1, left + 1) * right
        return upper * (1 - down) + lower * down

    def _at(self, x: Tensor, y: Tensor, z: Tensor) -> Any:
        """The elements at whole places."""
        rows, columns = x.shape[-3], x.shape[-2]
        each = reshape(arange(x.shape[0]), (x.shape[0], 1, 1))
        result = x[each, astype(clip(y, 0, rows - 1), dtypes.int64), astype(clip(z, 0, columns - 1), dtypes.int64)]
        if self.fill_mode != "constant":
            return result
        there = logical_and(logical_and(y >= 0, y < rows), logical_and(z >= 0, z < columns))
        return where(expand_dims(there, axis=-1), result, self.fill_value)

    def places(self, y: Tensor, z: Tensor, x: Tensor) -> tuple[Any, Any]:
        """For subclasses: where the pixels of the result come from, counted from the middle of the picture.

        Args:
            y: the rows of the result.
            z: the columns of the result.
            x: the pictures.

        Returns:
            Rows and columns to sample at.

        Raises:
            NotImplementedError: where a subclass has to define it.
        """
        raise NotImplementedError(f"{type(self).__name__} has to define places(self, y, z, x)")

    def _drawn(self, x: Tensor, bounds: tuple[float, float]) -> Any:
        """A number for each picture."""
        source = self.generator or random.global_generator()
        return source.uniform((x.shape[0], 1, 1), bounds[0], bounds[1], dtypes.float32)

    def _factor(self, what: str, value: Any) -> tuple[float, float]:
        """A pair of bounds; a number is one for both sides."""
        low, high = (-value, value) if isinstance(value, (int, float)) else value
        if not low <= high:
            raise ArgumentError(self.name, f"{what} is {value!r}; it must be a number, or a pair that rises.")
        return float(low), float(high)


def _inside(place: Tensor, extent: int, fill_mode: str) -> Any:
    if fill_mode == "reflect":
        turned = remainder(place + 0.5, 2.0 * extent)
        place = where(turned > extent, 2.0 * extent - turned, turned) - 0.5
    return place if fill_mode == "constant" else clip(place, 0.0, extent - 1.0)


class RandomRotation(_Moved):
    """Random rotation.

    While training, pictures are turned about their middle, by ``factor`` turns counter-clockwise: a number for both
    directions, or a pair of bounds.

    Args:
        factor: the range to draw from.
        *args: positional arguments, which are passed on.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> layer = hf.layers.RandomRotation((0.25, 0.25))
    >>> hf.round(layer(hf.reshape(hf.arange(4.0), (2, 2, 1)), training=True))[..., 0].tolist()
    [[1.0, 3.0], [0.0, 2.0]]
    """

    def __init__(self, factor: object, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.factor = self._factor("factor", factor)

    def places(self, y: Tensor, z: Tensor, x: Tensor) -> tuple[Any, Any]:
        angle = self._drawn(x, self.factor) * (2 * math.pi)
        return sin(angle) * z + cos(angle) * y, cos(angle) * z - sin(angle) * y


class _ByBoth(_Moved):
    """With a factor for rows, and one for columns."""

    def __init__(self, height_factor: object, width_factor: object, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.height_factor = self._factor("height_factor", height_factor)
        self.width_factor = None if width_factor is None else self._factor("width_factor", width_factor)


class RandomTranslation(_ByBoth):
    """Random translation: while training, pictures are moved down and to the right by parts of their height and width.

    A number is for both directions; a pair has bounds.

    Args:
        height_factor: the range to draw from, as parts of the height.
        width_factor: the range to draw from, as parts of the width.
        *args: positional arguments, which are passed on.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> layer = hf.layers.RandomTranslation((0.5, 0.5), 0, fill_mode="constant")
    >>> layer(hf.ones((2, 2, 1)), training=True)[..., 0].tolist()
    [[0.0, 0.0], [1.0, 1.0]]
    """

    def places(self, y: Tensor, z: Tensor, x: Tensor) -> tuple[Any, Any]:
        down, right = self._drawn(x, self.height_factor), self._drawn(x, self.width_factor or self.height_factor)
        return y - down * x.shape[-3], z - right * x.shape[-2]


class RandomZoom(_ByBoth):
    """Random zoom: while training, pictures are made smaller by parts of their size, larger where these are negative;
    without a ``width_factor`` their ratio stays.

    Args:
        height_factor: the range to draw from, as parts of the height.
        width_factor: the range to draw from, as parts of the width.
        *args: positional arguments, which are passed on.
        **options: ``name``, ``dtype``, ``trainable`` and other options of the base class.

    >>> layer = hf.layers.RandomZoom((1.0, 1.0), fill_mode="constant")
    >>> layer(hf.ones((4, 4, 1)), training=True).sum()
    <Tensor f32[] cpu> 4.0
    """

    def __init__(self, height_factor: object, width_factor: object = None, *args: object, **options: object) -> None:
        super().__init__(height_factor, width_factor, *args, **options)

    def places(self, y: Tensor, z: Tensor, x: Tensor) -> tuple[Any, Any]:
        rows = self._drawn(x, self.height_factor)
        columns = rows if self.width_factor is None else self._drawn(x, self.width_factor)
        return y * (1 + rows), z * (1 + columns)
