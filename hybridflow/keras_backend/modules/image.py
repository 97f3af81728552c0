"""``keras.ops.image``."""

from __future__ import annotations

import builtins
import itertools

import numpy as np
from keras.src import backend
from keras.src.backend.common import standardize_dtype
from keras.src.random.seed_generator import draw_seed

import hybridflow as hf
from hybridflow.keras_backend.modules import nn
from hybridflow.keras_backend.modules.core import convert_to_tensor

RESIZE_INTERPOLATIONS = ("bilinear", "nearest", "lanczos3", "lanczos5", "bicubic")
AFFINE_TRANSFORM_INTERPOLATIONS = {"nearest": 0, "bilinear": 1}
AFFINE_TRANSFORM_FILL_MODES = {"constant", "nearest", "wrap", "mirror", "reflect"}
MAP_COORDINATES_FILL_MODES = AFFINE_TRANSFORM_FILL_MODES


# ---- checks


def _check_rank(images):
    if images.ndim not in (3, 4):
        raise ValueError(
            "Invalid images rank: expected rank 3 (single image) or rank 4 (batch of images). "
            f"Received input with shape: images.shape={images.shape}"
        )


def _check_one_of(name, value, known):
    if value not in known:
        raise ValueError(f"Invalid value for argument `{name}`. Expected of one {set(known)}. Received: {name}={value}")


def _check_floats(images):
    if not backend.is_float_dtype(images.dtype):
        raise ValueError(
            "Invalid images dtype: expected float dtype. "
            f"Received: images.dtype={backend.standardize_dtype(images.dtype)}"
        )


def _channels_axis(data_format):
    return -1 if backend.standardize_data_format(data_format) == "channels_last" else -3


def _in_batch(function):
    """A function of a batch with channels last, for one image as well, and for channels first."""

    def call(images, data_format, *args):
        is_single = images.ndim == 3
        images = images[None] if is_single else images
        is_first = backend.standardize_data_format(data_format) == "channels_first"
        images = hf.moveaxis(images, 1, -1) if is_first else images
        out = function(images, *args)
        out = hf.moveaxis(out, -1, 1) if is_first else out
        return out[0] if is_single else out

    return call


# ---- colours


def rgb_to_grayscale(images, data_format=None):
    images = convert_to_tensor(images)
    axis = _channels_axis(data_format)
    _check_rank(images)
    if images.shape[axis] not in (1, 3):
        raise ValueError(
            "Invalid channel size: expected 3 (RGB) or 1 (Grayscale). "
            f"Received input with shape: images.shape={images.shape}"
        )
    if images.shape[axis] == 1:
        return images
    dtype = standardize_dtype(images.dtype)
    images = convert_to_tensor(images, backend.result_type(dtype, float))
    weights = convert_to_tensor([0.2989, 0.5870, 0.1140], images.dtype)
    grey = hf.tensordot(images, weights, axes=([axis], [-1]))
    return convert_to_tensor(hf.expand_dims(grey, axis), dtype)


def _planes(images, axis):
    return [hf.squeeze(plane, axis) for plane in hf.split(images, 3, axis)]


def rgb_to_hsv(images, data_format=None):
    images = convert_to_tensor(images)
    axis = _channels_axis(data_format)
    _check_rank(images)
    _check_floats(images)
    images = hf.where(hf.abs(images) < float(hf.finfo(images.dtype).eps), 0.0, images)
    red, green, blue = _planes(images, axis)
    value = hf.maximum(hf.maximum(red, green), blue)
    spread = value - hf.minimum(hf.minimum(red, green), blue)
    saturation = hf.where(value > 0, spread / hf.where(value > 0, value, 1.0), 0.0)
    norm = 1.0 / (6.0 * hf.where(spread > 0, spread, 1.0))
    hue = hf.where(value == green, norm * (blue - red) + 2.0 / 6.0, norm * (red - green) + 4.0 / 6.0)
    hue = hf.where(value == red, norm * (green - blue), hue)
    hue = hf.where(spread > 0, hue, 0.0)
    hue = hue + hf.astype(hue < 0.0, hue.dtype)
    return hf.stack([hue, saturation, value], axis=axis)


def hsv_to_rgb(images, data_format=None):
    images = convert_to_tensor(images)
    axis = _channels_axis(data_format)
    _check_rank(images)
    _check_floats(images)
    hue, saturation, value = _planes(images, axis)
    sextant = hf.remainder(hue, 1.0) * 6.0
    parts = hf.abs(sextant - 3.0) - 1.0, 2.0 - hf.abs(sextant - 2.0), 2.0 - hf.abs(sextant - 4.0)
    rest = 1.0 - saturation
    return hf.stack([value * (rest + saturation * hf.clip(part, 0.0, 1.0)) for part in parts], axis=axis)


# ---- other sizes


def _linear(x):
    return hf.maximum(0.0, 1.0 - x)


def _cubic(x):
    near = ((1.5 * x - 2.5) * x) * x + 1.0
    far = ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0
    return hf.where(x >= 2.0, 0.0, hf.where(x >= 1.0, far, near))


def _lanczos(radius):
    def kernel(x):
        weights = hf.special.sinc(x) * hf.special.sinc(x / radius)
        return hf.where(x > radius, 0.0, weights)

    return kernel


_KERNELS = {
    **dict.fromkeys(("linear", "bilinear", "trilinear"), _linear),
    **dict.fromkeys(("cubic", "bicubic", "tricubic"), _cubic),
    "lanczos3": _lanczos(3.0),
    "lanczos5": _lanczos(5.0),
}
SCALE_AND_TRANSLATE_METHODS = set(_KERNELS)


def _weights(here, wanted, scale, translation, method, antialias):
    """What part of each of ``wanted`` elements each of ``here`` elements is: a matrix (here, wanted)."""
    inverse = 1.0 / convert_to_tensor(scale, "float32")
    width = hf.maximum(inverse, 1.0) if antialias else 1.0
    places = (hf.arange(wanted, dtype="float32") + 0.5 - translation) * inverse - 0.5
    distances = hf.abs(places[None, :] - hf.arange(here, dtype="float32")[:, None]) / width
    weights = _KERNELS[method](distances)
    total = hf.sum(weights, axis=0, keepdims=True)
    is_some = hf.abs(total) > 1000.0 * float(np.finfo(np.float32).eps)
    weights = hf.where(is_some, weights / hf.where(total != 0, total, 1.0), 0.0)
    is_inside = hf.logical_and(places >= -0.5, places <= here - 0.5)
    return hf.where(is_inside[None, :], weights, 0.0)


def _resampled(x, axis, weights):
    dtype = x.dtype
    out = hf.tensordot(
        convert_to_tensor(x, "float32") if dtype.itemsize < 4 else x,
        hf.astype(weights, "float64" if str(dtype) == "float64" else "float32"),
        axes=([axis], [0]),
    )
    return hf.astype(hf.moveaxis(out, -1, axis), dtype)


def scale_and_translate(images, output_shape, scale, translation, spatial_dims, method, antialias=True):
    _check_one_of("method", method, SCALE_AND_TRANSLATE_METHODS)
    images = convert_to_tensor(images)
    images = convert_to_tensor(images, backend.result_type(images.dtype, float))
    scale, translation = convert_to_tensor(scale, "float32"), convert_to_tensor(translation, "float32")
    for i, axis in enumerate(spatial_dims):
        wanted = output_shape[axis]
        weights = _weights(images.shape[axis], wanted, scale[i], translation[i], method, antialias)
        images = _resampled(images, axis % images.ndim, weights)
    return images


def resize(
    images,
    size,
    interpolation="bilinear",
    antialias=False,
    crop_to_aspect_ratio=False,
    pad_to_aspect_ratio=False,
    fill_mode="constant",
    fill_value=0.0,
    data_format=None,
):
    _check_one_of("interpolation", interpolation, RESIZE_INTERPOLATIONS)
    if fill_mode != "constant":
        raise ValueError(
            f"Invalid value for argument `fill_mode`. Only `'constant'` is supported. Received: fill_mode={fill_mode}"
        )
    if pad_to_aspect_ratio and crop_to_aspect_ratio:
        raise ValueError("Only one of `pad_to_aspect_ratio` & `crop_to_aspect_ratio` can be `True`.")
    if len(size) != 2:
        raise ValueError(f"Argument `size` must be a tuple of two elements (height, width). Received: size={size}")
    images = convert_to_tensor(images)
    _check_rank(images)
    return _resize(
        images,
        data_format,
        tuple(size),
        interpolation,
        antialias,
        crop_to_aspect_ratio,
        pad_to_aspect_ratio,
        fill_value,
    )


@_in_batch
def _resize(images, size, interpolation, antialias, crop, padded, fill_value):
    height, width = images.shape[1:3]
    target_height, target_width = size
    if crop:
        h = builtins.max(builtins.min(height, int(width * target_height / target_width)), 1)
        w = builtins.max(builtins.min(width, int(height * target_width / target_height)), 1)
        top, left = (height - h) // 2, (width - w) // 2
        images = images[:, top : top + h, left : left + w]
    elif padded:
        h = builtins.max(height, int(width * target_height / target_width))
        w = builtins.max(width, int(height * target_width / target_height))
        top, left = (h - height) // 2, (w - width) // 2
        if top > 0:
            left = 0
        images = hf.pad(
            images,
            [(0, 0), (top, top), (left, left), (0, 0)],
            constant_values=fill_value,
        )
    if interpolation != "nearest":
        images = convert_to_tensor(images, backend.result_type(images.dtype, float))
    for axis, wanted in ((1, target_height), (2, target_width)):
        here = images.shape[axis]
        if isinstance(here, int) and here == wanted:
            continue
        scale = hf.asarray(wanted, dtype="float32") / hf.asarray(here, dtype="float32")
        if interpolation == "nearest":
            places = hf.floor((hf.arange(wanted, dtype="float32") + 0.5) / scale)
            images = hf.take(images, hf.clip(hf.astype(places, "int64"), 0, here - 1), axis=axis)
        else:
            images = _resampled(images, axis, _weights(here, wanted, scale, 0.0, interpolation, antialias))
    return images


# ---- other places


def _index(places, extent, mode):
    """Places of an axis as indices within it, and whether they are within."""
    inside = hf.logical_and(places >= 0, places < extent)
    if mode == "constant":
        return hf.clip(places, 0, extent - 1), inside
    if mode == "nearest":
        return hf.clip(places, 0, extent - 1), None
    if mode == "wrap":
        return hf.remainder(places, extent), None
    if mode == "mirror":
        period = builtins.max(2 * (extent - 1), 1) if isinstance(extent, int) else 2 * (extent - 1)
        folded = hf.remainder(places, period)
        return hf.minimum(folded, period - folded) if not (
            isinstance(extent, int) and extent == 1
        ) else places * 0, None
    folded = hf.remainder(places, 2 * extent)  # reflect
    return hf.minimum(folded, 2 * extent - 1 - folded), None


def _at(x, coordinates, order, mode, fill_value):
    """``x`` at places between its elements: ``coordinates`` holds one tensor for each of its first axes."""
    dtype = x.dtype
    is_float = dtype.kind in "fV"
    values = x if is_float else convert_to_tensor(x, "float32")
    fill = convert_to_tensor(fill_value, values.dtype)
    kinds = []
    for axis, place in enumerate(coordinates):
        place = convert_to_tensor(place, values.dtype) if place.dtype.kind not in "fV" else place
        if order == 0:
            choices = [(hf.floor(place + 0.5), None)]
        else:
            low = hf.floor(place)
            upper = place - low
            choices = [(low, 1 - upper), (low + 1, upper)]
        axis_taps = []
        for where, weight in choices:
            index, inside = _index(hf.astype(where, "int64"), x.shape[axis], mode)
            axis_taps.append((index, inside, weight))
        kinds.append(axis_taps)
    total = None
    for corner in itertools.product(*kinds):
        part = values[tuple(index for index, _, _ in corner)]
        for _, inside, _ in corner:
            if inside is not None:
                part = hf.where(_wide(inside, part), part, fill)
        for _, _, weight in corner:
            if weight is not None:
                part = part * _wide(hf.astype(weight, part.dtype), part)
        total = part if total is None else total + part
    if not is_float:
        total = hf.astype(hf.round(total), dtype)
    return total


def _wide(x, like):
    return hf.reshape(x, tuple(x.shape) + (1,) * (like.ndim - x.ndim))


def map_coordinates(inputs, coordinates, order, fill_mode="constant", fill_value=0.0):
    inputs, coordinates = convert_to_tensor(inputs), convert_to_tensor(coordinates)
    if coordinates.shape[0] != inputs.ndim:
        raise ValueError(
            "First dim of `coordinates` must be the same as the rank of `inputs`. "
            f"Received inputs with shape: {inputs.shape} and coordinate leading dim of {coordinates.shape[0]}"
        )
    if coordinates.ndim < 2:
        raise ValueError(
            f"Invalid coordinates rank: expected at least rank 2. Received input with shape: {coordinates.shape}"
        )
    if fill_mode not in MAP_COORDINATES_FILL_MODES:
        raise ValueError(
            "Invalid value for argument `fill_mode`. Expected one of "
            f"{set(MAP_COORDINATES_FILL_MODES)}. Received: fill_mode={fill_mode}"
        )
    if order not in range(2):
        raise ValueError(f"Invalid value for argument `order`. Expected one of {[0, 1]}. Received: order={order}")
    return _at(inputs, [coordinates[i] for i in range(inputs.ndim)], order, fill_mode, fill_value)


def _grid(height, width):
    rows, columns = hf.meshgrid(hf.arange(height, dtype="float32"), hf.arange(width, dtype="float32"), indexing="ij")
    return rows, columns


def _picked(images, rows, columns, order, mode, fill_value):
    """Each image of a batch at places (batch, rows, columns) of its own."""
    count = images.shape[0]
    rows, columns = hf.broadcast_arrays(rows, columns)
    numbers = hf.reshape(hf.arange(count, dtype="float32"), (-1, 1, 1))
    batch = hf.broadcast_to(numbers, rows.shape)
    return _at(images, [batch, rows, columns], order, mode, fill_value)


def affine_transform(images, transform, interpolation="bilinear", fill_mode="constant", fill_value=0, data_format=None):
    _check_one_of("interpolation", interpolation, AFFINE_TRANSFORM_INTERPOLATIONS)
    _check_one_of("fill_mode", fill_mode, AFFINE_TRANSFORM_FILL_MODES)
    images, transform = convert_to_tensor(images), convert_to_tensor(transform)
    _check_rank(images)
    if transform.ndim not in (1, 2):
        raise ValueError(
            "Invalid transform rank: expected rank 1 (single transform) or rank 2 (batch of transforms). "
            f"Received input with shape: transform.shape={transform.shape}"
        )
    return _affine(images, data_format, transform, interpolation, fill_mode, fill_value)


@_in_batch
def _affine(images, transform, interpolation, fill_mode, fill_value):
    transform = convert_to_tensor(transform[None] if transform.ndim == 1 else transform, "float32")
    rows, columns = _grid(*images.shape[1:3])
    a = [hf.reshape(transform[:, i], (-1, 1, 1)) for i in range(8)]
    x = a[0] * columns + a[1] * rows + a[2]
    y = a[3] * columns + a[4] * rows + a[5]
    shape = (images.shape[0], *images.shape[1:3])
    places = hf.broadcast_to(y, shape), hf.broadcast_to(x, shape)
    return _picked(images, *places, AFFINE_TRANSFORM_INTERPOLATIONS[interpolation], fill_mode, fill_value)


def perspective_transform(images, start_points, end_points, interpolation="bilinear", fill_value=0, data_format=None):
    _check_one_of("interpolation", interpolation, AFFINE_TRANSFORM_INTERPOLATIONS)
    images, start_points, end_points = (convert_to_tensor(x) for x in (images, start_points, end_points))
    _check_rank(images)
    for name, points in (("start_points", start_points), ("end_points", end_points)):
        if tuple(points.shape[-2:]) != (4, 2) or points.ndim not in (2, 3):
            raise ValueError(
                f"Invalid {name} shape: expected (4,2) for a single image or (N,4,2) for a batch. "
                f"Received shape: {points.shape}"
            )
    if start_points.shape != end_points.shape:
        raise ValueError(
            "start_points and end_points must have the same shape. "
            f"Received start_points.shape={start_points.shape}, end_points.shape={end_points.shape}"
        )
    points = [x[None] if x.ndim == 2 else x for x in (start_points, end_points)]
    matrix = compute_homography_matrix(*[convert_to_tensor(x, "float32") for x in points])
    return _perspective(images, data_format, matrix, interpolation, fill_value)


@_in_batch
def _perspective(images, matrix, interpolation, fill_value):
    rows, columns = _grid(*images.shape[1:3])
    a = [hf.reshape(matrix[:, i], (-1, 1, 1)) for i in range(8)]
    depth = a[6] * columns + a[7] * rows + 1.0
    x = (a[0] * columns + a[1] * rows + a[2]) / depth
    y = (a[3] * columns + a[4] * rows + a[5]) / depth
    shape = (images.shape[0], *images.shape[1:3])
    places = hf.broadcast_to(y, shape), hf.broadcast_to(x, shape)
    return _picked(images, *places, AFFINE_TRANSFORM_INTERPOLATIONS[interpolation], "constant", fill_value)


def compute_homography_matrix(start_points, end_points):
    start_points, end_points = convert_to_tensor(start_points), convert_to_tensor(end_points)
    u, v = start_points[..., 0], start_points[..., 1]
    x, y = end_points[..., 0], end_points[..., 1]
    zeros, ones = hf.zeros_like(x), hf.ones_like(x)
    rows = [
        hf.stack([x, y, ones, zeros, zeros, zeros, -u * x, -u * y], axis=-1),
        hf.stack([zeros, zeros, zeros, x, y, ones, -v * x, -v * y], axis=-1),
    ]
    target = hf.concat([u, v], axis=-1)
    return hf.linalg.solve(hf.concat(rows, axis=1), target[..., None])[..., 0]


# ---- filters


def _depthwise(images, kernel):
    """A kernel (rows, columns) over each channel."""
    channels = images.shape[-1]
    kernel = hf.broadcast_to(kernel[:, :, None, None], (*kernel.shape, channels, 1))
    return nn.depthwise_conv(images, kernel, 1, "same", "channels_last")


def gaussian_blur(images, kernel_size=(3, 3), sigma=(1.0, 1.0), data_format=None):
    images = convert_to_tensor(images)
    _check_rank(images)
    sigma = convert_to_tensor(sigma, images.dtype)
    return _blurred(images, data_format, tuple(kernel_size), sigma)


@_in_batch
def _blurred(images, kernel_size, sigma):
    def of_axis(size, spread):
        x = hf.arange(size, dtype=images.dtype) - convert_to_tensor((size - 1) / 2, images.dtype)
        weights = hf.exp(-0.5 * hf.square(x / spread))
        return weights / hf.sum(weights)

    columns, rows = of_axis(kernel_size[0], sigma[0]), of_axis(kernel_size[1], sigma[1])
    return _depthwise(images, rows[:, None] * columns[None, :])


def elastic_transform(
    images,
    alpha=20.0,
    sigma=5.0,
    interpolation="bilinear",
    fill_mode="reflect",
    fill_value=0.0,
    seed=None,
    data_format=None,
):
    _check_one_of("interpolation", interpolation, AFFINE_TRANSFORM_INTERPOLATIONS)
    _check_one_of("fill_mode", fill_mode, AFFINE_TRANSFORM_FILL_MODES)
    images = convert_to_tensor(images)
    _check_rank(images)
    return _elastic(images, data_format, alpha, sigma, interpolation, fill_mode, fill_value, seed)


@_in_batch
def _elastic(images, alpha, sigma, interpolation, fill_mode, fill_value, seed):
    spread = float(sigma)
    size = (int(6 * spread) | 1, int(6 * spread) | 1)
    key = convert_to_tensor(draw_seed(seed))
    shape = tuple(images.shape[:3])
    shifts = []
    for part in range(2):
        noise = hf.random.stateless_normal(shape, hf.random.fold_in(key, part)) * spread
        blurred = gaussian_blur(noise[..., None], size, (spread, spread), "channels_last")
        shifts.append(blurred[..., 0] * convert_to_tensor(alpha, "float32"))
    rows, columns = _grid(*images.shape[1:3])
    order = AFFINE_TRANSFORM_INTERPOLATIONS[interpolation]
    return _picked(images, rows + shifts[1], columns + shifts[0], order, fill_mode, fill_value)


def sobel_edges(images, data_format=None):
    images = convert_to_tensor(images)
    is_first = data_format == "channels_first"
    images = hf.moveaxis(images, 1, -1) if is_first else images
    across = np.array([[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]], np.float32)
    edges = [_depthwise(images, convert_to_tensor(kernel, images.dtype)) for kernel in (across.T.copy(), across)]
    edges = [hf.moveaxis(edge, -1, 1) if is_first else edge for edge in edges]
    return hf.stack(edges, axis=-1)
