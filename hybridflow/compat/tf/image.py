"""``tf.image``: pictures of shape [height, width, channels], or batches of them with one axis before these."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

import hybridflow as hf
from hybridflow.compat.adapters.draws import generator_of, stateless_uniform
from hybridflow.compat.adapters.values import as_extents, convert_to_tensor, operand, saturate_cast
from hybridflow.compat.export import TensorLike, export, tf_export
from hybridflow.compiler.ir import dtypes
from hybridflow.core.context import now
from hybridflow.core.tensor import Tensor
from hybridflow.errors import ArgumentError, ShapeError
from hybridflow.nn.image_resize import SAMPLERS, resized

if TYPE_CHECKING:
    from hybridflow.core.type_aliases import ArrayLike, DTypeLike


_ROWS, _COLUMNS = -3, -2


def _picture(stage: str, image: TensorLike) -> Any:
    """The tensor.  Raises ShapeError where it is neither a picture nor a batch of them."""
    x = operand(image)
    if x.ndim not in (3, 4):
        raise ShapeError(
            f"image.{stage}", f"{x.type} is no [height, width, channels], nor a batch of them. Reshape it."
        )
    return x


@tf_export("image.flip_left_right")
def flip_left_right(image: TensorLike) -> Any:
    """``tf.image.flip_left_right``."""
    return hf.flip(_picture("flip_left_right", image), axis=_COLUMNS)


@tf_export("image.flip_up_down")
def flip_up_down(image: TensorLike) -> Any:
    """``tf.image.flip_up_down``."""
    return hf.flip(_picture("flip_up_down", image), axis=_ROWS)


@tf_export("image.transpose")
def transpose(image: TensorLike, name: str | None = None) -> Any:
    """``tf.image.transpose``: rows become columns."""
    x = _picture("transpose", image)
    return hf.permute_dims(x, (*range(x.ndim - 3), x.ndim - 2, x.ndim - 3, x.ndim - 1))


@tf_export("image.rot90")
def rot90(image: TensorLike, k: int = 1, name: str | None = None) -> Any:
    """``tf.image.rot90``: ``k`` quarters of a turn to the left."""
    quarter_turns = k % 4
    if quarter_turns == 2:
        return flip_up_down(flip_left_right(image))
    return (
        operand(image)
        if quarter_turns == 0
        else (flip_up_down if quarter_turns == 1 else flip_left_right)(transpose(image))
    )


def _flipped_by_chance(flip: Callable[[Any], Any]) -> Callable[..., Any]:
    def flipped(image: TensorLike, seed: object = None) -> Any:
        """As TensorFlow does: each picture of a batch by a chance of its own."""
        x = operand(image)
        chance = generator_of(seed).uniform((x.shape[0], 1, 1, 1) if x.ndim == 4 else (), 0.0, 1.0)
        return hf.where(chance < 0.5, flip(x), x)

    return flipped


random_flip_left_right = _flipped_by_chance(flip_left_right)
random_flip_up_down = _flipped_by_chance(flip_up_down)


@tf_export("image.crop_to_bounding_box")
def crop_to_bounding_box(
    image: TensorLike, offset_height: int, offset_width: int, target_height: int, target_width: int
) -> Any:
    """``tf.image.crop_to_bounding_box``.  Raises ShapeError where the box does not lie in the picture."""
    x = _picture("crop_to_bounding_box", image)
    bottom, right = offset_height + target_height, offset_width + target_width
    if min(offset_height, offset_width) < 0 or bottom > x.shape[_ROWS] or right > x.shape[_COLUMNS]:
        raise ShapeError("image.crop_to_bounding_box", f"rows to {bottom} and columns to {right} of {x.type}.")
    return x[..., offset_height:bottom, offset_width:right, :]


@tf_export("image.pad_to_bounding_box")
def pad_to_bounding_box(
    image: TensorLike, offset_height: int, offset_width: int, target_height: int, target_width: int
) -> Any:
    """``tf.image.pad_to_bounding_box``: zeros around it.  Raises ShapeError where the picture does not fit."""
    x = _picture("pad_to_bounding_box", image)
    below = target_height - offset_height - x.shape[_ROWS]
    behind = target_width - offset_width - x.shape[_COLUMNS]
    if min(offset_height, offset_width, below, behind) < 0:
        raise ShapeError("image.pad_to_bounding_box", f"{x.type} does not fit in {target_height} x {target_width}.")
    return hf.pad(x, [*[(0, 0)] * (x.ndim - 3), (offset_height, below), (offset_width, behind), (0, 0)])


@tf_export("image.resize_with_crop_or_pad")
def resize_with_crop_or_pad(image: TensorLike, target_height: int, target_width: int) -> Any:
    """``tf.image.resize_with_crop_or_pad``: the middle of it, or zeros around it."""
    x = _picture("resize_with_crop_or_pad", image)
    height, width = x.shape[_ROWS], x.shape[_COLUMNS]
    rows, columns = min(height, target_height), min(width, target_width)
    x = crop_to_bounding_box(
        x, max((height - target_height) // 2, 0), max((width - target_width) // 2, 0), rows, columns
    )
    above, before = max((target_height - height) // 2, 0), max((target_width - width) // 2, 0)
    return pad_to_bounding_box(x, above, before, target_height, target_width)


@tf_export("image.central_crop")
def central_crop(image: TensorLike, central_fraction: float) -> Any:
    """``tf.image.central_crop``.  Raises ArgumentError for a fraction outside of (0, 1]."""
    if not 0.0 < central_fraction <= 1.0:
        raise ArgumentError("image.central_crop", f"central_fraction is {central_fraction}. Expected one in (0, 1].")
    x = _picture("central_crop", image)
    above, before = (int((n - n * central_fraction) / 2) for n in (x.shape[_ROWS], x.shape[_COLUMNS]))
    return crop_to_bounding_box(x, above, before, x.shape[_ROWS] - 2 * above, x.shape[_COLUMNS] - 2 * before)


@tf_export("image.random_crop")
def random_crop(value: ArrayLike, size: Any, seed: object = None, name: str | None = None) -> Any:
    """``tf.image.random_crop``: a part of that size, one extent for each axis, at a place drawn by chance.

    Raises ShapeError where the size does not fit.
    """
    source = generator_of(seed)
    draw = lambda _, n: source.randint((), 0, n, dtypes.int64)  # noqa: E731
    return _cropped("image.random_crop", operand(value), size, draw)


def _cropped(stage: str, x: Tensor, size: Any, draw: Callable[[int, int], Any]) -> Any:
    """A part that begins along each axis where ``draw`` says, of the axis and the number of places."""
    wanted = [int(n) for n in size]
    if len(wanted) != x.ndim or any(n > extent for n, extent in zip(wanted, x.shape)):
        raise ShapeError(stage, f"a part of size {wanted} of {x.type}.")
    for axis, n in enumerate(wanted):
        if n != x.shape[axis]:
            start = hf.astype(draw(axis, x.shape[axis] - n + 1), dtypes.int64)
            x = hf.take(x, start + hf.arange(n), axis=axis)
    return x


@tf_export("image.rgb_to_grayscale", "keras.ops.image.rgb_to_grayscale")
def rgb_to_grayscale(images: TensorLike, name: str | None = None) -> Any:
    """``tf.image.rgb_to_grayscale``: one channel."""
    x = operand(images)
    weights = hf.asarray(np.array([0.2989, 0.5870, 0.1140], np.float32))
    grey = hf.sum(convert_image_dtype(x, dtypes.float32) * weights, axis=-1, keepdims=True)
    return convert_image_dtype(grey, x.dtype)


@tf_export("image.grayscale_to_rgb")
def grayscale_to_rgb(images: TensorLike, name: str | None = None) -> Any:
    """``tf.image.grayscale_to_rgb``: the one channel three times."""
    return hf.concat([operand(images)] * 3, axis=-1)


@tf_export("image.convert_image_dtype")
def convert_image_dtype(image: TensorLike, dtype: DTypeLike, saturate: bool = False, name: str | None = None) -> Any:
    """``tf.image.convert_image_dtype``: floats from 0 to 1, ints from 0 to their largest."""
    x, wanted = operand(image), np.dtype(getattr(dtype, "dtype", dtype))
    if x.dtype == wanted:
        return x
    from_ints, to_ints = dtypes.is_integer(x.dtype), dtypes.is_integer(wanted)
    if from_ints and to_ints:
        return _shifted(x, wanted, saturate)
    if to_ints:
        scaled = x * (float(np.iinfo(wanted).max) + 0.5)
        return saturate_cast(scaled, wanted) if saturate else hf.astype(scaled, wanted)
    converted = hf.astype(x, wanted)
    return converted * (1.0 / float(np.iinfo(x.dtype).max)) if from_ints else converted


def _shifted(x: Tensor, wanted: np.dtype[Any], saturate: bool) -> Any:
    """Ints whose largest is that of another dtype, by a whole factor."""
    most, least = int(np.iinfo(x.dtype).max), int(np.iinfo(wanted).max)
    if most > least:
        scaled = x // ((most + 1) // (least + 1))
        return saturate_cast(scaled, wanted) if saturate else hf.astype(scaled, wanted)
    return hf.astype(x, wanted) * ((least + 1) // (most + 1))


class _NoGradient:
    """The derivative of what TensorFlow has none for."""

    is_dispensable = True  # files leave it out

    def __init__(self, op_type: str) -> None:
        self._op_type = op_type

    def __call__(self, *cotangents: object) -> Any:
        raise LookupError(f"gradient registry has no entry for: {self._op_type}")


def _without_gradient(op_type: str, function: Callable[..., Any], *operands: Any) -> Any:
    """What a function makes of tensors, of which a tape gives no gradient."""
    tensors = [convert_to_tensor(x) for x in operands]
    if not now().tapes:
        return function(*tensors)
    return hf.custom_gradient(lambda *xs: (function(*xs), _NoGradient(op_type)))(*tensors)


def _in_floats(function: Callable[[Any], Any], image: TensorLike) -> Any:
    """What a function makes of the picture in floats, in its own dtype."""
    x = operand(image)
    if not dtypes.is_integer(x.dtype):
        return function(x)
    return convert_image_dtype(function(convert_image_dtype(x, dtypes.float32)), x.dtype, saturate=True)


@tf_export("image.adjust_brightness")
def adjust_brightness(image: TensorLike, delta: TensorLike) -> Any:
    """``tf.image.adjust_brightness``."""
    return _in_floats(lambda x: x + delta, image)


@tf_export("image.adjust_contrast")
def adjust_contrast(images: TensorLike, contrast_factor: TensorLike) -> Any:
    """``tf.image.adjust_contrast``: each channel around its mean."""

    def adjusted(x: Any, factor: Any) -> Any:
        middle = hf.mean(x, axis=(_ROWS, _COLUMNS), keepdims=True)
        return (x - middle) * hf.astype(factor, x.dtype) + middle

    return _without_gradient(
        "AdjustContrastv2", lambda x, factor: _in_floats(lambda x: adjusted(x, factor), x), images, contrast_factor
    )


@tf_export("image.adjust_gamma")
def adjust_gamma(image: TensorLike, gamma: float = 1, gain: float = 1) -> Any:
    """``tf.image.adjust_gamma``."""
    return _in_floats(lambda x: gain * x**gamma, image)


@tf_export("image.random_brightness")
def random_brightness(image: TensorLike, max_delta: float, seed: object = None) -> Any:
    """``tf.image.random_brightness``."""
    return adjust_brightness(image, generator_of(seed).uniform((), -max_delta, max_delta))


@tf_export("image.random_contrast")
def random_contrast(image: TensorLike, lower: float, upper: float, seed: object = None) -> Any:
    """``tf.image.random_contrast``."""
    return adjust_contrast(image, generator_of(seed).uniform((), lower, upper))


@tf_export("image.per_image_standardization")
def per_image_standardization(image: TensorLike) -> Any:
    """``tf.image.per_image_standardization``: mean 0 and deviation 1, but for pictures of nearly one value."""
    x = hf.astype(_picture("per_image_standardization", image), dtypes.float32)
    every = (_ROWS, _COLUMNS, -1)
    count = x.shape[-3] * x.shape[-2] * x.shape[-1]
    deviation = hf.std(x, axis=every, keepdims=True)
    return (x - hf.mean(x, axis=every, keepdims=True)) / hf.maximum(deviation, count**-0.5)


@tf_export("image.resize")
def resize(
    images: TensorLike,
    size: Any,
    method: str = "bilinear",
    preserve_aspect_ratio: bool = False,
    antialias: bool = False,
    name: str | None = None,
) -> Any:
    """``tf.image.resize``: float32, but by "nearest".  Raises ArgumentError for a method that is not there."""
    x = _picture("resize", images)
    height, width = as_extents(size)
    if preserve_aspect_ratio:
        scale = min(height / x.shape[_ROWS], width / x.shape[_COLUMNS])
        height, width = round(x.shape[_ROWS] * scale), round(x.shape[_COLUMNS] * scale)
    if method not in SAMPLERS:
        raise ArgumentError("image.resize", f"there is no method {method!r}; there are {', '.join(SAMPLERS)}.")
    return resized(x, height, width, method, antialias)


@tf_export("image.resize_with_pad")
def resize_with_pad(
    image: TensorLike, target_height: int, target_width: int, method: str = "bilinear", antialias: bool = False
) -> Any:
    """``tf.image.resize_with_pad``: as large as it fits into that size with its own ratio, and zeros around it."""
    x = _picture("resize_with_pad", image)
    ratio = max(x.shape[_ROWS] / target_height, x.shape[_COLUMNS] / target_width)
    height, width = x.shape[_ROWS] / ratio, x.shape[_COLUMNS] / ratio
    above, before = (int(max(wanted - n, 0) // 2) for wanted, n in ((target_height, height), (target_width, width)))
    resized = resize(x, (int(height), int(width)), method, antialias=antialias)
    return pad_to_bounding_box(resized, above, before, target_height, target_width)


@tf_export("image.ResizeMethod")
class ResizeMethod:
    """``tf.image.ResizeMethod``."""

    AREA, BICUBIC, BILINEAR, GAUSSIAN = "area", "bicubic", "bilinear", "gaussian"
    LANCZOS3, LANCZOS5, MITCHELLCUBIC, NEAREST_NEIGHBOR = "lanczos3", "lanczos5", "mitchellcubic", "nearest"


@tf_export("image.total_variation")
def total_variation(images: TensorLike, name: str | None = None) -> Any:
    """``tf.image.total_variation``: the sum of the differences of neighbours, of each picture."""
    x = _picture("total_variation", images)
    every = (_ROWS, _COLUMNS, -1)
    down, right = x[..., 1:, :, :] - x[..., :-1, :, :], x[..., :, 1:, :] - x[..., :, :-1, :]
    return hf.sum(hf.abs(down), axis=every) + hf.sum(hf.abs(right), axis=every)


@tf_export("image.image_gradients")
def image_gradients(image: TensorLike) -> tuple[Any, Any]:
    """``tf.image.image_gradients``: differences to the next row and column, 0 in the last.

    Raises ShapeError where it is no batch.
    """
    x = operand(image)
    if x.ndim != 4:
        raise ShapeError("image.image_gradients", f"{x.type} is no [batch, height, width, channels].")
    down, right = x[:, 1:] - x[:, :-1], x[:, :, 1:] - x[:, :, :-1]
    return hf.pad(down, [(0, 0), (0, 1), (0, 0), (0, 0)]), hf.pad(right, [(0, 0), (0, 0), (0, 1), (0, 0)])


@tf_export("image.psnr")
def psnr(a: TensorLike, b: TensorLike, max_val: float, name: str | None = None) -> Any:
    """``tf.image.psnr``: decibels, of each picture."""
    both = [convert_image_dtype(operand(x), dtypes.float32) for x in (a, b)]
    whole = float(max_val) / (np.iinfo(operand(a).dtype).max if dtypes.is_integer(operand(a).dtype) else 1.0)
    error = hf.mean(hf.square(both[0] - both[1]), axis=(_ROWS, _COLUMNS, -1))
    return 20.0 * hf.log10(hf.asarray(whole, dtypes.float32)) - 10.0 * hf.log10(error)


@tf_export("image.extract_patches")
def extract_patches(
    images: TensorLike, sizes: Any, strides: Any, rates: Any, padding: str, name: str | None = None
) -> Any:
    """``tf.image.extract_patches``: windows of a batch, each as one row of channels."""
    x = _picture("extract_patches", images)
    (_, high, wide, _), (_, down, right, _), (_, apart, beside, _) = sizes, strides, rates
    spans = (high - 1) * apart + 1, (wide - 1) * beside + 1
    if padding.upper() == "SAME":
        missing = [
            max((-(-n // step) - 1) * step + span - n, 0) for n, step, span in zip(x.shape[1:3], (down, right), spans)
        ]
        x = hf.pad(x, [(0, 0), *((m // 2, m - m // 2) for m in missing), (0, 0)])
    rows, columns = ((n - span) // step + 1 for n, step, span in zip(x.shape[1:3], (down, right), spans))
    parts = [
        x[:, i : i + (rows - 1) * down + 1 : down, j : j + (columns - 1) * right + 1 : right]
        for i in range(0, spans[0], apart)
        for j in range(0, spans[1], beside)
    ]
    return hf.concat(parts, axis=-1)


@tf_export("image.rgb_to_hsv")
def rgb_to_hsv(images: TensorLike, name: str | None = None) -> Any:
    """``tf.image.rgb_to_hsv``: hue (from 0 to 1), saturation and value in the place of red, green and blue."""
    x = operand(images)
    red, green, blue = x[..., 0], x[..., 1], x[..., 2]
    value, least = hf.max(x, axis=-1), hf.min(x, axis=-1)
    spread = value - least
    over = hf.where(spread > 0, spread, 1.0)
    of_red = hf.remainder((green - blue) / over, 6.0)
    of_others = hf.where(value == green, (blue - red) / over + 2.0, (red - green) / over + 4.0)
    hue = hf.where(spread > 0, hf.where(value == red, of_red, of_others) / 6.0, 0.0)
    return hf.stack([hue, hf.where(value > 0, spread / hf.where(value > 0, value, 1.0), 0.0), value], axis=-1)


@tf_export("image.hsv_to_rgb")
def hsv_to_rgb(images: TensorLike, name: str | None = None) -> Any:
    """``tf.image.hsv_to_rgb``."""
    x = operand(images)
    hue, saturation, value = x[..., 0] * 6.0, x[..., 1], x[..., 2]
    shares = [hf.abs(hue - 3.0) - 1.0, 2.0 - hf.abs(hue - 2.0), 2.0 - hf.abs(hue - 4.0)]
    return hf.stack([((hf.clip(part, 0.0, 1.0) - 1.0) * saturation + 1.0) * value for part in shares], axis=-1)


@tf_export("image.adjust_hue")
def adjust_hue(image: TensorLike, delta: TensorLike, name: str | None = None) -> Any:
    """``tf.image.adjust_hue``: turned by ``delta`` of a whole turn."""

    def adjusted(x: Any, delta: Any) -> Any:
        hue, saturation, value = hf.unstack(rgb_to_hsv(x), axis=-1)
        return hsv_to_rgb(hf.stack([hf.remainder(hue + hf.astype(delta, x.dtype), 1.0), saturation, value], axis=-1))

    return _without_gradient("AdjustHue", lambda x, delta: _in_floats(lambda x: adjusted(x, delta), x), image, delta)


@tf_export("image.adjust_saturation")
def adjust_saturation(image: TensorLike, saturation_factor: object, name: str | None = None) -> Any:
    """``tf.image.adjust_saturation``."""

    def adjusted(x: Any, factor: Any) -> Any:
        hue, saturation, value = hf.unstack(rgb_to_hsv(x), axis=-1)
        saturation = hf.clip(saturation * hf.astype(factor, x.dtype), 0.0, 1.0)
        return hsv_to_rgb(hf.stack([hue, saturation, value], axis=-1))

    return _without_gradient(
        "AdjustSaturation", lambda x, factor: _in_floats(lambda x: adjusted(x, factor), x), image, saturation_factor
    )


@tf_export("image.random_hue")
def random_hue(image: TensorLike, max_delta: float, seed: object = None) -> Any:
    """``tf.image.random_hue``."""
    return adjust_hue(image, generator_of(seed).uniform((), -max_delta, max_delta))


@tf_export("image.random_saturation")
def random_saturation(image: TensorLike, lower: float, upper: float, seed: object = None) -> Any:
    """``tf.image.random_saturation``."""
    return adjust_saturation(image, generator_of(seed).uniform((), lower, upper))


@tf_export("image.stateless_random_brightness")
def stateless_random_brightness(image: TensorLike, max_delta: float, seed: ArrayLike) -> Any:
    """``tf.image.stateless_random_brightness``."""
    return adjust_brightness(image, stateless_uniform((), seed, -max_delta, max_delta))


@tf_export("image.stateless_random_contrast")
def stateless_random_contrast(image: TensorLike, lower: float, upper: float, seed: ArrayLike) -> Any:
    """``tf.image.stateless_random_contrast``."""
    return adjust_contrast(image, stateless_uniform((), seed, lower, upper))


@tf_export("image.stateless_random_hue")
def stateless_random_hue(image: TensorLike, max_delta: float, seed: ArrayLike) -> Any:
    """``tf.image.stateless_random_hue``."""
    return adjust_hue(image, stateless_uniform((), seed, -max_delta, max_delta))


@tf_export("image.stateless_random_saturation")
def stateless_random_saturation(image: TensorLike, lower: float, upper: float, seed: ArrayLike) -> Any:
    """``tf.image.stateless_random_saturation``."""
    return adjust_saturation(image, stateless_uniform((), seed, lower, upper))


def _flipped_by_seed(flip: Callable[[Any], Any]) -> Callable[..., Any]:
    def flipped(image: TensorLike, seed: ArrayLike) -> Any:
        """As TensorFlow does: each picture of a batch by a chance of its own."""
        x = operand(image)
        if x.ndim == 4:
            return hf.where(stateless_uniform((x.shape[0], 1, 1, 1), seed) > 0.5, flip(x), x)
        return hf.where(stateless_uniform((), seed) < 0.5, flip(x), x)

    return flipped


stateless_random_flip_left_right = _flipped_by_seed(flip_left_right)
stateless_random_flip_up_down = _flipped_by_seed(flip_up_down)


@tf_export("image.stateless_random_crop")
def stateless_random_crop(value: TensorLike, size: Any, seed: ArrayLike, name: str | None = None) -> Any:
    """``tf.image.stateless_random_crop``: see ``random_crop``."""
    x = operand(value)
    starts = stateless_uniform((x.ndim,), seed, 0, 2**31 - 1, dtypes.int32)
    return _cropped("image.stateless_random_crop", x, size, lambda axis, n: hf.remainder(starts[axis], n))


@tf_export("image.sobel_edges")
def sobel_edges(image: TensorLike) -> Any:
    """``tf.image.sobel_edges``: how much a batch of pictures changes downwards, and to the right, along a last axis."""
    x = hf.pad(_picture("sobel_edges", image), [(0, 0), (1, 1), (1, 1), (0, 0)], mode="reflect")
    across = x[:, :, :-2] + 2 * x[:, :, 1:-1] + x[:, :, 2:]
    along = x[:, :-2] + 2 * x[:, 1:-1] + x[:, 2:]
    return hf.stack([across[:, 2:] - across[:, :-2], along[:, :, 2:] - along[:, :, :-2]], axis=-1)


def _in_colors(matrix: object, name: str) -> Callable[..., Any]:
    """A function that multiplies colors by a matrix."""

    def converted(images: Any, name: str | None = None) -> Any:
        x = operand(images)
        return hf.matmul(x, hf.asarray(np.asarray(matrix), x.dtype))

    converted.__name__ = converted.__qualname__ = name
    converted.__doc__ = f"``tf.image.{name}``."
    return converted


_TO_YIQ = ((0.299, 0.59590059, 0.2115), (0.587, -0.27455667, -0.52273617), (0.114, -0.32134392, 0.31119955))
_TO_YUV = ((0.299, -0.14714119, 0.61497538), (0.587, -0.28886916, -0.51496512), (0.114, 0.43601035, -0.10001026))
_FROM_YIQ = ((1.0, 1.0, 1.0), (0.95598634, -0.27201283, -1.10674021), (0.6208248, -0.64720424, 1.70423049))
_FROM_YUV = ((1.0, 1.0, 1.0), (0.0, -0.394642334, 2.03206185), (1.13988303, -0.58062185, 0.0))
rgb_to_yiq, yiq_to_rgb = _in_colors(_TO_YIQ, "rgb_to_yiq"), _in_colors(_FROM_YIQ, "yiq_to_rgb")
rgb_to_yuv, yuv_to_rgb = _in_colors(_TO_YUV, "rgb_to_yuv"), _in_colors(_FROM_YUV, "yuv_to_rgb")


@tf_export("image.ssim")
def ssim(
    img1: TensorLike, img2: TensorLike, max_val: float, filter_size: int = 11, filter_sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03, return_index_map: bool = False,
) -> Any:  # fmt: skip
    """``tf.image.ssim``: how alike pictures are (Wang et al., "Image Quality Assessment", 2004), of each picture."""
    a, b, most = _as_floats(img1, img2, max_val)
    alike, _ = _likeness(a, b, most, filter_size, filter_sigma, k1, k2)
    return hf.mean(alike, axis=-1) if return_index_map else hf.mean(alike, axis=(_ROWS, _COLUMNS, -1))


_SCALES = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333)


@tf_export("image.ssim_multiscale")
def ssim_multiscale(
    img1: TensorLike, img2: TensorLike, max_val: float, power_factors: Any = _SCALES, filter_size: int = 11,
    filter_sigma: float = 1.5, k1: float = 0.01, k2: float = 0.03,
) -> Any:  # fmt: skip
    """``tf.image.ssim_multiscale``, of each picture: ``ssim`` at sizes that halve."""
    a, b, most = _as_floats(img1, img2, max_val)
    similarity: Any = 1.0
    for k, power in enumerate(power_factors):
        if k:
            a, b = (_halved(x) for x in (a, b))
        alike, contrast = _likeness(a, b, most, filter_size, filter_sigma, k1, k2)
        part = alike if k == len(power_factors) - 1 else contrast
        similarity = similarity * hf.nn.relu(hf.mean(part, axis=(_ROWS, _COLUMNS))) ** power
    return hf.mean(similarity, axis=-1)


def _halved(x: Tensor) -> Any:
    odd = [n % 2 for n in x.shape[-3:-1]]
    lead = x.shape[:-3]
    pictures = hf.reshape(x, (-1, *x.shape[-3:]))
    if any(odd):
        pictures = hf.pad(pictures, [(0, 0), (0, odd[0]), (0, odd[1]), (0, 0)], mode="symmetric")
    small = hf.nn.avg_pool2d(pictures, 2, 2, "VALID")
    return hf.reshape(small, (*lead, *small.shape[1:]))


def _as_floats(img1: TensorLike, img2: TensorLike, max_val: float) -> tuple[Any, Any, float]:
    """Both pictures in float32, and the largest value in their scale."""
    image = operand(img1)
    top = float(np.iinfo(image.dtype).max) if dtypes.is_integer(image.dtype) else 1.0
    a, b = (convert_image_dtype(operand(x), dtypes.float32) for x in (image, img2))
    return a, b, float(max_val) / top


def _likeness(a: Tensor, b: Tensor, most: float, size: int, sigma: float, k1: float, k2: float) -> tuple[Any, Any]:
    """The index of each window and channel, and its factor of contrast and structure."""
    places = np.arange(size) - (size - 1) / 2
    bell = np.exp(-places * places / (2 * sigma * sigma))
    weights = bell / bell.sum()

    def averaged(x: Any) -> Any:
        for axis in (x.ndim - 3, x.ndim - 2):
            count = x.shape[axis] - size + 1
            if count < 1:
                raise ShapeError("image.ssim", f"a window of {size} does not fit in {x.type}.")
            key: list[Any] = [slice(None)] * x.ndim
            total: Any = 0.0
            for k, weight in enumerate(weights):
                key[axis] = slice(k, k + count)
                total = total + x[tuple(key)] * float(weight)
            x = total
        return x

    c1, c2 = (k1 * most) ** 2, (k2 * most) ** 2
    mean_a, mean_b = averaged(a), averaged(b)
    both, squares = mean_a * mean_b * 2.0, mean_a * mean_a + mean_b * mean_b
    luminance = (both + c1) / (squares + c1)
    contrast = (averaged(a * b) * 2.0 - both + c2) / (averaged(a * a + b * b) - squares + c2)
    return luminance * contrast, contrast


export(rgb_to_yiq, "image.rgb_to_yiq")
export(rgb_to_yuv, "image.rgb_to_yuv")
export(yiq_to_rgb, "image.yiq_to_rgb")
export(yuv_to_rgb, "image.yuv_to_rgb")
export(random_flip_left_right, "image.random_flip_left_right")
export(random_flip_up_down, "image.random_flip_up_down")
export(stateless_random_flip_left_right, "image.stateless_random_flip_left_right")
export(stateless_random_flip_up_down, "image.stateless_random_flip_up_down")
