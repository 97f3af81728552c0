"""``tf.nn`` where its functions have other arguments, or reduce less."""

from __future__ import annotations

from typing import Any

import hybridflow as hf
from hybridflow.compat.adapters.arrays import gather
from hybridflow.compat.adapters.draws import generator_of
from hybridflow.compat.adapters.values import axes, extents, operand, operands
from hybridflow.errors import ArgumentError


def softmax_cross_entropy_with_logits(labels: Any, logits: Any, axis: int = -1, name: str | None = None) -> Any:
    """``tf.nn.softmax_cross_entropy_with_logits``: one number for each row."""
    scores = operand(logits)
    return hf.losses.softmax_cross_entropy(
        hf.astype(operand(labels), scores.dtype), scores, axis=axis, reduction="none"
    )


def sparse_softmax_cross_entropy_with_logits(labels: Any, logits: Any, name: str | None = None) -> Any:
    """``tf.nn.sparse_softmax_cross_entropy_with_logits``: one number for each label."""
    return hf.losses.softmax_cross_entropy(operand(labels), operand(logits), reduction="none")


def sigmoid_cross_entropy_with_logits(labels: Any, logits: Any, name: str | None = None) -> Any:
    """``tf.nn.sigmoid_cross_entropy_with_logits``: one number for each element."""
    y, x = operands([labels, logits], [0, 1])
    return hf.losses.sigmoid_cross_entropy(y, x, reduction="none")


def weighted_cross_entropy_with_logits(labels: Any, logits: Any, pos_weight: Any, name: str | None = None) -> Any:
    """``tf.nn.weighted_cross_entropy_with_logits``."""
    y, x = operands([labels, logits], [0, 1])
    weight = 1 + (pos_weight - 1) * y
    return (1 - y) * x + weight * hf.nn.softplus(-x)


def l2_loss(t: Any, name: str | None = None) -> Any:
    """``tf.nn.l2_loss``: half the sum of squares."""
    return hf.sum(hf.square(operand(t))) / 2


def ctc_loss(
    labels: Any, logits: Any, label_length: Any, logit_length: Any, logits_time_major: bool = True, unique: Any = None,
    blank_index: int | None = None, name: str | None = None,
) -> Any:  # fmt: skip
    """``tf.nn.ctc_loss`` of dense labels; ``unique`` only saves TPUs time."""
    return hf.nn.ctc_loss(
        operand(labels), operand(logits), operand(label_length), operand(logit_length), logits_time_major,
        blank_index or 0,
    )  # fmt: skip


def bias_add(value: Any, bias: Any, data_format: str | None = None, name: str | None = None) -> Any:
    """``tf.nn.bias_add``."""
    x, b = operands([value, bias], [0, 1])
    if data_format is not None and data_format.startswith("NC"):
        b = hf.reshape(b, (-1, *[1] * (x.ndim - 2)))
    return hf.add(x, b)


def batch_normalization(
    x: Any, mean: Any, variance: Any, offset: Any, scale: Any, variance_epsilon: Any, name: str | None = None
) -> Any:
    """``tf.nn.batch_normalization``."""
    factor = hf.rsqrt(hf.add(operand(variance), variance_epsilon))
    factor = factor if scale is None else hf.multiply(factor, scale)
    found = hf.multiply(hf.subtract(operand(x), mean), factor)
    return found if offset is None else hf.add(found, offset)


def moments(x: Any, axes: Any, shift: Any = None, keepdims: bool = False, name: str | None = None) -> tuple[Any, Any]:
    """``tf.nn.moments``: mean and variance."""
    mean, variance = hf.nn.moments(operand(x), tuple(axes) if isinstance(axes, list) else axes, keepdims=keepdims)
    return mean, variance


def embedding_lookup(params: Any, ids: Any, max_norm: Any = None, name: str | None = None) -> Any:
    """``tf.nn.embedding_lookup``."""
    rows = gather(params, ids, axis=0)
    return rows if max_norm is None else hf.optimizers.clip_by_norm(rows, max_norm, axis=-1)


def dropout(x: Any, rate: Any, noise_shape: Any = None, seed: Any = None, name: str | None = None) -> Any:
    """``tf.nn.dropout``: drops whenever it is called."""
    value = operand(x)
    if noise_shape is None or not rate:
        return hf.nn.dropout(value, rate, generator=None if seed is None else generator_of(seed))
    shape = [own if wanted is None else wanted for own, wanted in zip(value.shape, noise_shape)]
    kept = generator_of(seed).bernoulli(1 - rate, extents(shape))
    return hf.where(kept, hf.multiply(value, 1 / (1 - rate)), 0)


def _inner(sizes: Any, rank: int, data_format: str | None, what: str) -> Any:
    """The numbers of the places' axes, where TensorFlow also takes those of batch and channels."""
    if isinstance(sizes, int) or sizes is None:
        return 1 if sizes is None else sizes
    given = list(sizes)
    if len(given) == 1:
        return given[0]
    if len(given) == rank + 2:
        first = data_format is not None and data_format.startswith("NC")
        outer = given[:2] if first else [given[0], given[-1]]
        if outer != [1, 1]:
            raise ArgumentError("nn", f"{what} {given} are over batch or channels too; only places have some.")
        return tuple(given[2:] if first else given[1:-1])
    return tuple(given)


def _padding(padding: Any, data_format: str | None) -> Any:
    if isinstance(padding, str):
        return padding
    pairs = [tuple(pair) for pair in padding]
    return pairs[2:] if data_format is not None and data_format.startswith("NC") else pairs[1:-1]


def _convolution(rank: int, name: str) -> Any:
    own = getattr(hf.nn, name)

    def convolve(
        input: Any, filters: Any, strides: Any = 1, padding: Any = "VALID", data_format: str | None = None,
        dilations: Any = None, name: str | None = None,
    ) -> Any:  # fmt: skip
        x, weights = operands([input, filters], [0, 1])
        steps, gaps = (_inner(v, rank, data_format, "strides") for v in (strides, dilations))
        return own(x, weights, steps, _padding(padding, data_format), data_format, gaps)

    convolve.__name__ = convolve.__qualname__ = name
    convolve.__doc__ = f"``tf.nn.{name}``."
    return convolve


conv2d, conv3d = _convolution(2, "conv2d"), _convolution(3, "conv3d")


def conv1d(
    input: Any, filters: Any, stride: Any = 1, padding: Any = "VALID", data_format: str | None = None,
    dilations: Any = None, name: str | None = None,
) -> Any:  # fmt: skip
    """``tf.nn.conv1d``."""
    x, weights = operands([input, filters], [0, 1])
    steps, gaps = (_inner(v, 1, data_format, "strides") for v in (stride, dilations))
    return hf.nn.conv1d(x, weights, steps, _padding(padding, data_format), data_format, gaps)


def depthwise_conv2d(
    input: Any, filter: Any, strides: Any, padding: Any, data_format: str | None = None, dilations: Any = None,
    name: str | None = None,
) -> Any:  # fmt: skip
    """``tf.nn.depthwise_conv2d``."""
    x, weights = operands([input, filter], [0, 1])
    steps, gaps = (_inner(v, 2, data_format, "strides") for v in (strides, dilations))
    return hf.nn.depthwise_conv2d(x, weights, steps, _padding(padding, data_format), data_format, gaps)


def separable_conv2d(
    input: Any, depthwise_filter: Any, pointwise_filter: Any, strides: Any, padding: Any,
    data_format: str | None = None, dilations: Any = None, name: str | None = None,
) -> Any:  # fmt: skip
    """``tf.nn.separable_conv2d``."""
    steps, gaps = (_inner(v, 2, data_format, "strides") for v in (strides, dilations))
    return hf.nn.separable_conv2d(
        operand(input), depthwise_filter, pointwise_filter, steps, _padding(padding, data_format), data_format, gaps
    )


def conv2d_transpose(
    input: Any, filters: Any, output_shape: Any, strides: Any, padding: Any = "SAME",
    data_format: str | None = None, dilations: Any = None, name: str | None = None,
) -> Any:  # fmt: skip
    """``tf.nn.conv2d_transpose``."""
    x, weights = operands([input, filters], [0, 1])
    steps, gaps = (_inner(v, 2, data_format, "strides") for v in (strides, dilations))
    wanted = extents(axes(output_shape))
    return hf.nn.conv2d_transpose(x, weights, wanted, steps, _padding(padding, data_format), data_format, gaps)


def _pooling(rank: int, name: str) -> Any:
    own = getattr(hf.nn, name)

    def pool(
        input: Any, ksize: Any, strides: Any, padding: Any, data_format: str | None = None, name: str | None = None
    ) -> Any:
        sizes, steps = (_inner(v, rank, data_format, "sizes") for v in (ksize, strides))
        return own(operand(input), sizes, steps, _padding(padding, data_format), data_format)

    pool.__name__ = pool.__qualname__ = name
    pool.__doc__ = f"``tf.nn.{name}``."
    return pool


max_pool1d, max_pool2d, max_pool3d = (_pooling(k, f"max_pool{k}d") for k in (1, 2, 3))
avg_pool1d, avg_pool2d, avg_pool3d = (_pooling(k, f"avg_pool{k}d") for k in (1, 2, 3))


def max_pool(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: str | None = None, name: str | None = None
) -> Any:
    """``tf.nn.max_pool``."""
    pool = (max_pool1d, max_pool2d, max_pool3d)[operand(input).ndim - 3]
    return pool(input, ksize, strides, padding, data_format)


def avg_pool(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: str | None = None, name: str | None = None
) -> Any:
    """``tf.nn.avg_pool``."""
    pool = (avg_pool1d, avg_pool2d, avg_pool3d)[operand(input).ndim - 3]
    return pool(input, ksize, strides, padding, data_format)


def silu(features: Any, beta: Any = 1.0, name: str | None = None) -> Any:
    """``tf.nn.silu``: ``x * sigmoid(beta * x)``."""
    x = operand(features)
    return hf.nn.silu(x) if isinstance(beta, float) and beta == 1.0 else x * hf.sigmoid(beta * x)


def crelu(features: Any, axis: int = -1, name: str | None = None) -> Any:
    """``tf.nn.crelu``."""
    x = operand(features)
    return hf.concat([hf.nn.relu(x), hf.nn.relu(-x)], axis)


def compute_average_loss(per_example_loss: Any, sample_weight: Any = None, global_batch_size: Any = None) -> Any:
    """``tf.nn.compute_average_loss``."""
    losses = operand(per_example_loss)
    count = losses.shape[0] if global_batch_size is None and losses.ndim else global_batch_size or 1
    losses = losses if sample_weight is None else losses * sample_weight
    return hf.sum(losses) / count


def scale_regularization_loss(regularization_loss: Any) -> Any:
    """``tf.nn.scale_regularization_loss``: of the one device."""
    return hf.sum(operand(regularization_loss))


def local_response_normalization(
    input: Any, depth_radius: int = 5, bias: float = 1, alpha: float = 1, beta: float = 0.5, name: str | None = None
) -> Any:
    """``tf.nn.local_response_normalization``, over the last axis."""
    x = operand(input)
    squares = hf.pad(hf.square(x), [*[(0, 0)] * (x.ndim - 1), (depth_radius, depth_radius)])
    channels = x.shape[-1]
    total = hf.zeros_like(x)
    for k in [*range(2 * depth_radius + 1)]:
        total = total + squares[..., k : k + channels]
    return x / hf.pow(bias + alpha * total, beta)
