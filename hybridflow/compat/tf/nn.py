"""``tf.nn`` where its functions have other arguments, or reduce less."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np

import hybridflow as hf
from hybridflow.compat.adapters.arrays import gather
from hybridflow.compat.adapters.draws import generator_of
from hybridflow.compat.adapters.values import array_of, axes, check_channels_last, extents, operand, operands
from hybridflow.compat.export import Operand, TensorLike, export, tf_export
from hybridflow.compiler.ir import dtypes
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import PerAxis, ShapeLike
from hybridflow.errors import ArgumentError

if TYPE_CHECKING:
    from hybridflow.core.type_aliases import ArrayLike, AxisLike, DTypeLike


@tf_export("nn.softmax_cross_entropy_with_logits")
def softmax_cross_entropy_with_logits(
    labels: TensorLike, logits: TensorLike, axis: int = -1, name: str | None = None
) -> Any:
    """``tf.nn.softmax_cross_entropy_with_logits``: one number for each row."""
    scores = operand(logits)
    return hf.losses.softmax_cross_entropy(
        hf.astype(operand(labels), scores.dtype), scores, axis=axis, reduction="none"
    )


@tf_export("nn.sparse_softmax_cross_entropy_with_logits")
def sparse_softmax_cross_entropy_with_logits(labels: TensorLike, logits: TensorLike, name: str | None = None) -> Any:
    """``tf.nn.sparse_softmax_cross_entropy_with_logits``: one number for each label."""
    return hf.losses.softmax_cross_entropy(operand(labels), operand(logits), reduction="none")


@tf_export("nn.sigmoid_cross_entropy_with_logits")
def sigmoid_cross_entropy_with_logits(labels: TensorLike, logits: TensorLike, name: str | None = None) -> Any:
    """``tf.nn.sigmoid_cross_entropy_with_logits``: one number for each element."""
    y, x = operands([labels, logits], [0, 1])
    return hf.losses.sigmoid_cross_entropy(y, x, reduction="none")


@tf_export("nn.weighted_cross_entropy_with_logits")
def weighted_cross_entropy_with_logits(labels: object, logits: object, pos_weight: Any, name: str | None = None) -> Any:
    """``tf.nn.weighted_cross_entropy_with_logits``."""
    y, x = operands([labels, logits], [0, 1])
    weight = 1 + (pos_weight - 1) * y
    return (1 - y) * x + weight * hf.nn.softplus(-x)


@tf_export("nn.l2_loss")
def l2_loss(t: TensorLike, name: str | None = None) -> Any:
    """``tf.nn.l2_loss``: half the sum of squares."""
    return hf.sum(hf.square(operand(t))) / 2


@tf_export("nn.ctc_loss")
def ctc_loss(
    labels: TensorLike, logits: TensorLike, label_length: TensorLike, logit_length: TensorLike,
    logits_time_major: bool = True, unique: object = None,
    blank_index: int | None = None, name: str | None = None,
) -> Any:  # fmt: skip
    """``tf.nn.ctc_loss`` of dense labels; ``unique`` only saves TPUs time."""
    return hf.nn.ctc_loss(
        operand(labels), operand(logits), operand(label_length), operand(logit_length), logits_time_major,
        blank_index or 0,
    )  # fmt: skip


@tf_export("nn.bias_add")
def bias_add(value: TensorLike, bias: object, data_format: str | None = None, name: str | None = None) -> Any:
    """``tf.nn.bias_add``."""
    x, b = operands([value, bias], [0, 1])
    if data_format is not None and data_format.startswith("NC"):
        b = hf.reshape(b, (-1, *[1] * (x.ndim - 2)))
    return hf.add(x, b)


@tf_export("nn.batch_normalization")
def batch_normalization(
    x: Any,
    mean: ArrayLike,
    variance: Any,
    offset: ArrayLike,
    scale: ArrayLike,
    variance_epsilon: ArrayLike,
    name: str | None = None,
) -> Any:
    """``tf.nn.batch_normalization``."""
    factor = hf.rsqrt(hf.add(operand(variance), variance_epsilon))
    factor = factor if scale is None else hf.multiply(factor, scale)
    normalized = hf.multiply(hf.subtract(operand(x), mean), factor)
    return normalized if offset is None else hf.add(normalized, offset)


@tf_export("nn.moments")
def moments(
    x: TensorLike, axes: AxisLike, shift: TensorLike | None = None, keepdims: bool = False, name: str | None = None
) -> tuple[Any, Any]:
    """``tf.nn.moments``: mean and variance."""
    mean, variance = hf.nn.moments(operand(x), tuple(axes) if isinstance(axes, list) else axes, keepdims=keepdims)
    return mean, variance


@tf_export("nn.embedding_lookup")
def embedding_lookup(params: TensorLike, ids: TensorLike, max_norm: object = None, name: str | None = None) -> Any:
    """``tf.nn.embedding_lookup``."""
    rows = gather(params, ids, axis=0)
    return rows if max_norm is None else hf.optimizers.clip_by_norm(rows, max_norm, axis=-1)


@tf_export("nn.dropout")
def dropout(
    x: TensorLike, rate: float, noise_shape: Any = None, seed: int | None = None, name: str | None = None
) -> Any:
    """``tf.nn.dropout``: drops whenever it is called."""
    value = operand(x)
    if noise_shape is None or not rate:
        return hf.nn.dropout(value, rate, generator=None if seed is None else generator_of(seed))
    shape = [extent if wanted is None else wanted for extent, wanted in zip(value.shape, noise_shape)]
    kept = generator_of(seed).bernoulli(1 - rate, extents(shape))
    return hf.where(kept, hf.multiply(value, 1 / (1 - rate)), 0)


def _inner(sizes: Any, rank: int, data_format: str | None, what: str) -> Any:
    """The numbers of the places' axes, where TensorFlow also takes those of batch and channels."""
    if isinstance(sizes, int) or sizes is None:
        return 1 if sizes is None else sizes
    extents_given = list(sizes)
    if len(extents_given) == 1:
        return extents_given[0]
    if len(extents_given) == rank + 2:
        first = data_format is not None and data_format.startswith("NC")
        outer = extents_given[:2] if first else [extents_given[0], extents_given[-1]]
        if outer != [1, 1]:
            raise ArgumentError("nn", f"{what} {extents_given} are over batch or channels too; only places have some.")
        return tuple(extents_given[2:] if first else extents_given[1:-1])
    return tuple(extents_given)


def _padding(padding: str | Sequence[Sequence[SupportsIndex]], data_format: str | None) -> Any:
    if isinstance(padding, str):
        return padding
    pairs = [tuple(pair) for pair in padding]
    return pairs[2:] if data_format is not None and data_format.startswith("NC") else pairs[1:-1]


def _convolution(rank: int, name: str) -> Any:
    of_nn = getattr(hf.nn, name)

    def convolve(
        input: TensorLike,
        filters: object,
        strides: object = 1,
        padding: str | Sequence[Sequence[SupportsIndex]] = "VALID",
        data_format: str | None = None,
        dilations: object = None,
        name: str | None = None,
    ) -> Any:
        x, weights = operands([input, filters], [0, 1])
        steps, gaps = (_inner(v, rank, data_format, "strides") for v in (strides, dilations))
        return of_nn(x, weights, steps, _padding(padding, data_format), data_format, gaps)

    convolve.__name__ = convolve.__qualname__ = name
    convolve.__doc__ = f"``tf.nn.{name}``."
    return convolve


conv2d, conv3d = _convolution(2, "conv2d"), _convolution(3, "conv3d")


@tf_export("nn.conv1d")
def conv1d(
    input: TensorLike,
    filters: object,
    stride: object = 1,
    padding: str | Sequence[Sequence[SupportsIndex]] = "VALID",
    data_format: str | None = None,
    dilations: object = None,
    name: str | None = None,
) -> Any:
    """``tf.nn.conv1d``."""
    x, weights = operands([input, filters], [0, 1])
    steps, gaps = (_inner(v, 1, data_format, "strides") for v in (stride, dilations))
    return hf.nn.conv1d(x, weights, steps, _padding(padding, data_format), data_format, gaps)


@tf_export("nn.depthwise_conv2d")
def depthwise_conv2d(
    input: TensorLike,
    filter: object,
    strides: object,
    padding: str | Sequence[Sequence[SupportsIndex]],
    data_format: str | None = None,
    dilations: object = None,
    name: str | None = None,
) -> Any:
    """``tf.nn.depthwise_conv2d``."""
    x, weights = operands([input, filter], [0, 1])
    steps, gaps = (_inner(v, 2, data_format, "strides") for v in (strides, dilations))
    return hf.nn.depthwise_conv2d(x, weights, steps, _padding(padding, data_format), data_format, gaps)


@tf_export("nn.separable_conv2d")
def separable_conv2d(
    input: Any,
    depthwise_filter: Any,
    pointwise_filter: ArrayLike,
    strides: object,
    padding: Any,
    data_format: str | None = None,
    dilations: object = None,
    name: str | None = None,
) -> Any:
    """``tf.nn.separable_conv2d``."""
    steps, gaps = (_inner(v, 2, data_format, "strides") for v in (strides, dilations))
    return hf.nn.separable_conv2d(
        operand(input), depthwise_filter, pointwise_filter, steps, _padding(padding, data_format), data_format, gaps
    )


@tf_export("nn.conv2d_transpose")
def conv2d_transpose(
    input: object,
    filters: object,
    output_shape: object,
    strides: object,
    padding: str | Sequence[Sequence[SupportsIndex]] = "SAME",
    data_format: str | None = None,
    dilations: object = None,
    name: str | None = None,
) -> Any:
    """``tf.nn.conv2d_transpose``."""
    x, weights = operands([input, filters], [0, 1])
    steps, gaps = (_inner(v, 2, data_format, "strides") for v in (strides, dilations))
    wanted = extents(axes(output_shape))
    return hf.nn.conv2d_transpose(x, weights, wanted, steps, _padding(padding, data_format), data_format, gaps)


def _is_over_channels(ksize: Any, data_format: str | None) -> bool:
    sizes = [] if isinstance(ksize, int) or ksize is None else list(ksize)
    return len(sizes) == 4 and sizes[:3] == [1, 1, 1] and sizes[3] > 1 and data_format in (None, "NHWC")


def _pooled_channels(x: Tensor, sizes: list[int], steps: list[int]) -> Any:
    """The greatest of each so many channels."""
    count = sizes[3]
    if steps != sizes or x.shape[-1] % count:
        raise ArgumentError(
            "nn.max_pool", f"over channels the strides are {sizes}, which they divide: {steps}, {x.shape[-1]} channels."
        )
    return hf.max(hf.reshape(x, (*x.shape[:-1], x.shape[-1] // count, count)), axis=-1)


def _pooling(rank: int, name: str) -> Any:
    of_nn, over_channels = getattr(hf.nn, name), name == "max_pool2d"

    def pool(
        input: Any,
        ksize: Any,
        strides: Any,
        padding: str | Sequence[Sequence[SupportsIndex]],
        data_format: str | None = None,
        name: str | None = None,
    ) -> Any:
        if over_channels and _is_over_channels(ksize, data_format):
            steps = [1, strides, strides, 1] if isinstance(strides, int) else list(strides)
            return _pooled_channels(operand(input), list(ksize), steps)
        sizes, steps = (_inner(v, rank, data_format, "sizes") for v in (ksize, strides))
        return of_nn(operand(input), sizes, steps, _padding(padding, data_format), data_format)

    pool.__name__ = pool.__qualname__ = name
    pool.__doc__ = f"``tf.nn.{name}``."
    return pool


max_pool1d, max_pool2d, max_pool3d = (_pooling(k, f"max_pool{k}d") for k in (1, 2, 3))
avg_pool1d, avg_pool2d, avg_pool3d = (_pooling(k, f"avg_pool{k}d") for k in (1, 2, 3))


@tf_export("nn.max_pool")
def max_pool(
    input: TensorLike,
    ksize: object,
    strides: object,
    padding: object,
    data_format: str | None = None,
    name: str | None = None,
) -> Any:
    """``tf.nn.max_pool``."""
    pool = (max_pool1d, max_pool2d, max_pool3d)[operand(input).ndim - 3]
    return pool(input, ksize, strides, padding, data_format)


@tf_export("nn.avg_pool")
def avg_pool(
    input: TensorLike,
    ksize: object,
    strides: object,
    padding: object,
    data_format: str | None = None,
    name: str | None = None,
) -> Any:
    """``tf.nn.avg_pool``."""
    pool = (avg_pool1d, avg_pool2d, avg_pool3d)[operand(input).ndim - 3]
    return pool(input, ksize, strides, padding, data_format)


@tf_export("nn.silu", "nn.swish")
def silu(features: Operand, beta: TensorLike = 1.0, name: str | None = None) -> Any:
    """``tf.nn.silu``: ``x * sigmoid(beta * x)``."""
    return hf.nn.silu(features) if isinstance(beta, float) and beta == 1.0 else features * hf.sigmoid(beta * features)


@tf_export("nn.crelu")
def crelu(features: TensorLike, axis: int = -1, name: str | None = None) -> Any:
    """``tf.nn.crelu``."""
    x = operand(features)
    return hf.concat([hf.nn.relu(x), hf.nn.relu(-x)], axis)


@tf_export("nn.compute_average_loss")
def compute_average_loss(
    per_example_loss: TensorLike, sample_weight: TensorLike | None = None, global_batch_size: object = None
) -> Any:
    """``tf.nn.compute_average_loss``."""
    losses = operand(per_example_loss)
    count = losses.shape[0] if global_batch_size is None and losses.ndim else global_batch_size or 1
    losses = losses if sample_weight is None else losses * sample_weight
    return hf.sum(losses) / count


@tf_export("nn.scale_regularization_loss")
def scale_regularization_loss(regularization_loss: TensorLike) -> Any:
    """``tf.nn.scale_regularization_loss``: of the one device."""
    return hf.sum(operand(regularization_loss))


@tf_export("nn.local_response_normalization", "nn.lrn")
def local_response_normalization(
    input: TensorLike,
    depth_radius: int = 5,
    bias: float = 1,
    alpha: float = 1,
    beta: float = 0.5,
    name: str | None = None,
) -> Any:
    """``tf.nn.local_response_normalization``, over the last axis."""
    x = operand(input)
    squares = hf.pad(hf.square(x), [*[(0, 0)] * (x.ndim - 1), (depth_radius, depth_radius)])
    channels = x.shape[-1]
    total = hf.zeros_like(x)
    for k in [*range(2 * depth_radius + 1)]:
        total = total + squares[..., k : k + channels]
    return x / hf.pow(bias + alpha * total, beta)


@tf_export("nn.convolution")
def convolution(
    input: TensorLike,
    filters: Any,
    strides: Any = None,
    padding: str | Sequence[Sequence[SupportsIndex]] = "VALID",
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> Any:
    """``tf.nn.convolution``, over one, two or three axes of places."""
    rank = operand(input).ndim - 2
    if rank == 1:
        return conv1d(input, filters, 1 if strides is None else strides, padding, data_format, dilations)
    if rank not in (2, 3):
        raise ArgumentError("nn.convolution", f"the input {operand(input).type} has {rank} axes of places, not 1 to 3.")
    return (conv2d if rank == 2 else conv3d)(input, filters, strides, padding, data_format, dilations)


@tf_export("nn.atrous_conv2d")
def atrous_conv2d(value: TensorLike, filters: object, rate: int, padding: object, name: str | None = None) -> Any:
    """``tf.nn.atrous_conv2d``: with ``rate - 1`` holes between the taps."""
    return conv2d(value, filters, 1, padding, None, rate)


def _transposed(rank: int, name: str) -> Any:
    of_nn = getattr(hf.nn, name)

    def convolve(
        input: TensorLike,
        filters: object,
        output_shape: object,
        strides: object,
        padding: str | Sequence[Sequence[SupportsIndex]] = "SAME",
        data_format: str | None = None,
        dilations: object = None,
        name: str | None = None,
    ) -> Any:
        x, weights = operands([input, filters], [0, 1])
        steps, gaps = (_inner(v, rank, data_format, "strides") for v in (strides, dilations))
        wanted = extents(axes(output_shape))
        return of_nn(x, weights, wanted, steps, _padding(padding, data_format), data_format, gaps)

    convolve.__name__ = convolve.__qualname__ = name
    convolve.__doc__ = f"``tf.nn.{name}``."
    return convolve


conv1d_transpose, conv3d_transpose = _transposed(1, "conv1d_transpose"), _transposed(3, "conv3d_transpose")


@tf_export("nn.conv_transpose")
def conv_transpose(
    input: TensorLike,
    filters: TensorLike,
    output_shape: ShapeLike,
    strides: PerAxis,
    padding: str | Sequence[Sequence[SupportsIndex]] = "SAME",
    data_format: str | None = None,
    dilations: PerAxis | None = None,
    name: str | None = None,
) -> Any:
    """``tf.nn.conv_transpose``, over one, two or three axes of places."""
    convolve = (conv1d_transpose, conv2d_transpose, conv3d_transpose)[operand(input).ndim - 3]
    return convolve(input, filters, output_shape, strides, padding, data_format, dilations)


@tf_export("nn.pool")
def pool(
    input: TensorLike, window_shape: object, pooling_type: str, strides: object = None, padding: str = "VALID",
    data_format: str | None = None, dilations: Any = None, name: str | None = None,
) -> Any:  # fmt: skip
    """``tf.nn.pool``: "AVG" or "MAX".  Raises ArgumentError for others, and for windows with holes."""
    kinds = {"AVG": avg_pool, "MAX": max_pool}
    if pooling_type not in kinds or (dilations is not None and any(d != 1 for d in np.atleast_1d(dilations))):
        raise ArgumentError("nn.pool", f"pooling_type is {pooling_type!r}, dilations {dilations}.")
    return kinds[pooling_type](input, window_shape, 1 if strides is None else strides, padding, data_format)


@tf_export("nn.max_pool_with_argmax")
def max_pool_with_argmax(
    input: TensorLike, ksize: object, strides: object, padding: str, data_format: str = "NHWC",
    output_dtype: DTypeLike = dtypes.int64,
    include_batch_in_index: bool = False, name: str | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    """``tf.nn.max_pool_with_argmax``: the largest of each window, and where it is, ``(row * width + column) * channels
    + channel``; of equal ones the first.  Raises ArgumentError where channels do not come last."""
    check_channels_last("nn.max_pool_with_argmax", data_format)
    x = operand(input)
    (high, wide), (down, right) = (_pair_of(_inner(v, 2, data_format, "sizes")) for v in (ksize, strides))
    before = [(0, 0), (0, 0)]
    if padding.upper() == "SAME":
        missing = [max((-(-n // s) - 1) * s + k - n, 0) for n, s, k in zip(x.shape[1:3], (down, right), (high, wide))]
        before = [(m // 2, m - m // 2) for m in missing]
    n, rows, columns, channels = x.shape
    places = hf.reshape(hf.arange(rows * columns * channels), (1, rows, columns, channels))
    least = -np.inf if dtypes.is_float(x.dtype) else int(np.iinfo(x.dtype).min)
    padded = hf.pad(x, [(0, 0), *before, (0, 0)], constant_values=least)
    numbered = hf.pad(places, [(0, 0), *before, (0, 0)], constant_values=0)
    tall, broad = ((size - k) // s + 1 for size, k, s in zip(padded.shape[1:3], (high, wide), (down, right)))
    cuts = [
        (slice(None), slice(i, i + (tall - 1) * down + 1, down), slice(j, j + (broad - 1) * right + 1, right))
        for i in range(high)
        for j in range(wide)
    ]
    windows = hf.stack([padded[cut] for cut in cuts], axis=-1)
    numbers = hf.stack([numbered[cut] for cut in cuts], axis=-1)
    best = hf.argmax(windows, axis=-1)[..., None]
    flat_positions = hf.take_along_axis(hf.broadcast_to(numbers, windows.shape), best, axis=-1)[..., 0]
    if include_batch_in_index:
        flat_positions = flat_positions + hf.reshape(hf.arange(n) * (rows * columns * channels), (-1, 1, 1, 1))
    return hf.take_along_axis(windows, best, axis=-1)[..., 0], hf.astype(flat_positions, output_dtype)


def _pair_of(value: Any) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else tuple(value)


def _morphology(
    input: object, filters: object, strides: object, padding: str, data_format: str, dilations: object, erodes: bool
) -> Any:
    """The largest of windows to which a filter is added, or the smallest of those from which it is taken.

    Raises ArgumentError where channels do not come last."""
    check_channels_last("nn.erosion2d" if erodes else "nn.dilation2d", data_format)
    x, weights = operands([input, filters], [0, 1])
    (down, right), (apart, beside) = (_pair_of(_inner(v, 2, None, "strides")) for v in (strides, dilations))
    high, wide, _ = weights.shape
    spans = (high - 1) * apart + 1, (wide - 1) * beside + 1
    around = [(0, 0), (0, 0)]
    if padding.upper() == "SAME":
        missing = [max((-(-n // s) - 1) * s + k - n, 0) for n, s, k in zip(x.shape[1:3], (down, right), spans)]
        around = [(m // 2, m - m // 2) for m in missing]
    x = hf.pad(x, [(0, 0), *around, (0, 0)], constant_values=np.inf if erodes else -np.inf)
    rows, columns = ((n - k) // s + 1 for n, k, s in zip(x.shape[1:3], spans, (down, right)))
    result: Any = None
    for i in range(high):
        for j in range(wide):
            top, left = i * apart, j * beside
            part = x[:, top : top + (rows - 1) * down + 1 : down, left : left + (columns - 1) * right + 1 : right]
            part = part - weights[high - 1 - i, wide - 1 - j] if erodes else part + weights[i, j]
            result = part if result is None else (hf.minimum if erodes else hf.maximum)(result, part)
    return result


@tf_export("nn.dilation2d")
def dilation2d(
    input: TensorLike,
    filters: object,
    strides: object,
    padding: str,
    data_format: str,
    dilations: object,
    name: str | None = None,
) -> Any:
    """``tf.nn.dilation2d``: the largest of windows to which a filter is added."""
    return _morphology(input, filters, strides, padding, data_format, dilations, erodes=False)


@tf_export("nn.erosion2d")
def erosion2d(
    value: TensorLike,
    filters: object,
    strides: object,
    padding: str,
    data_format: str,
    dilations: object,
    name: str | None = None,
) -> Any:
    """``tf.nn.erosion2d``: the smallest of windows from which a filter is taken."""
    return _morphology(value, filters, strides, padding, data_format, dilations, erodes=True)


@tf_export("nn.weighted_moments", v1_names={"keep_dims": "keepdims"})
def weighted_moments(
    x: TensorLike, axes: PerAxis, frequency_weights: TensorLike, keepdims: bool = False, name: str | None = None
) -> tuple[Any, Any]:
    """``tf.nn.weighted_moments``: mean and variance."""
    value, weights = operands([x, frequency_weights], [0, 1])
    along = tuple(axes) if isinstance(axes, list) else axes
    weights = hf.broadcast_to(weights, value.shape)
    total = hf.sum(weights, axis=along, keepdims=True)
    mean = hf.sum(weights * value, axis=along, keepdims=True) / total
    variance = hf.sum(weights * hf.square(value - mean), axis=along, keepdims=True) / total
    return (mean, variance) if keepdims else (hf.squeeze(mean, along), hf.squeeze(variance, along))


@tf_export("nn.sufficient_statistics")
def sufficient_statistics(
    x: TensorLike, axes: PerAxis, shift: TensorLike | None = None, keepdims: bool = False, name: str | None = None
) -> tuple[Any, Any, Any, Any]:
    """``tf.nn.sufficient_statistics``: the count, the sum, the sum of squares, and the shift."""
    value = operand(x)
    along = tuple(axes) if isinstance(axes, list) else axes
    count = hf.sum(hf.ones_like(value), axis=along, keepdims=False)
    count = hf.reshape(count, (-1,))[0]
    value = value if shift is None else value - shift
    return (
        count, hf.sum(value, axis=along, keepdims=keepdims), hf.sum(value * value, axis=along, keepdims=keepdims), shift
    )  # fmt: skip


@tf_export("nn.normalize_moments")
def normalize_moments(
    counts: Any, mean_ss: Any, variance_ss: Any, shift: Any, name: str | None = None
) -> tuple[Any, Any]:
    """``tf.nn.normalize_moments``: mean and variance of what ``sufficient_statistics`` found."""
    shifted = mean_ss / counts
    return (shifted if shift is None else shifted + shift), variance_ss / counts - hf.square(shifted)


@tf_export("nn.collapse_repeated")
def collapse_repeated(labels: TensorLike, seq_length: TensorLike, name: str | None = None) -> tuple[Any, Any]:
    """``tf.nn.collapse_repeated``: rows without repetitions, and their lengths.  Its size depends on what is there."""
    rows, lengths = array_of(labels), array_of(seq_length)
    kept = [[int(v) for k, v in enumerate(row[:n]) if not k or v != row[k - 1]] for row, n in zip(rows, lengths)]
    width = max(map(len, kept), default=0)
    collapsed = np.zeros((len(kept), width), rows.dtype)
    for k, row in enumerate(kept):
        collapsed[k, : len(row)] = row
    return hf.asarray(collapsed), hf.asarray(np.array([len(row) for row in kept], lengths.dtype))


@tf_export("nn.elu")
def elu(features: Operand, name: str | None = None) -> Any:
    """Exponential linear unit (ELU): ``x`` where positive, ``alpha * (exp(x) - 1)`` elsewhere."""
    return hf.nn.elu(features)


@tf_export("nn.gelu")
def gelu(features: Operand, approximate: bool = False, name: str | None = None) -> Any:
    """Gaussian error linear unit (GELU): ``x`` times the normal distribution function at ``x``; ``approximate``
    takes the formula with tanh."""
    return hf.nn.gelu(features, approximate=approximate)


@tf_export("nn.leaky_relu")
def leaky_relu(features: Operand, alpha: float = 0.2, name: str | None = None) -> Any:
    """Leaky ReLU: ``x`` where positive, ``alpha * x`` elsewhere."""
    return hf.nn.leaky_relu(features, alpha=alpha)


@tf_export("nn.relu")
def relu(features: Operand, name: str | None = None) -> Any:
    """Rectified linear unit (ReLU): ``max(x, 0)``; NaN stays NaN. The derivative at 0 is 0."""
    return hf.nn.relu(features)


@tf_export("nn.relu6")
def relu6(features: Operand, name: str | None = None) -> Any:
    """ReLU bounded by 6: ``min(max(x, 0), 6)``. The derivative at 0 and 6 is 0."""
    return hf.nn.relu6(features)


@tf_export("nn.selu")
def selu(features: Operand, name: str | None = None) -> Any:
    """The self-normalising ``elu`` of Klambauer et al.: scaled so that mean 0 and variance 1 are kept."""
    return hf.nn.selu(features)


export(conv1d_transpose, "nn.conv1d_transpose")
export(conv3d_transpose, "nn.conv3d_transpose")
export(avg_pool1d, "nn.avg_pool1d")
export(avg_pool2d, "nn.avg_pool2d")
export(avg_pool3d, "nn.avg_pool3d")
export(conv2d, "nn.conv2d")
export(conv3d, "nn.conv3d")
export(max_pool1d, "nn.max_pool1d")
export(max_pool2d, "nn.max_pool2d")
export(max_pool3d, "nn.max_pool3d")
