"""``keras.ops.nn``."""

from __future__ import annotations

import builtins
import math

import numpy as np
from keras.src import backend
from keras.src.backend.common import dtypes, standardize_dtype
from keras.src.backend.common.backend_utils import (
    check_conv_input_channels,
    check_conv_transpose_input_channels,
    compute_conv_transpose_padding_args_for_jax,
)

import hybridflow as hf
from hybridflow.keras_backend.modules.core import cast, convert_to_tensor, scan


def _of(function):
    def call(x):
        return function(convert_to_tensor(x))

    return call


# ---- activations

relu = _of(lambda x: hf.maximum(x, 0) if x.dtype.kind in "iu" else hf.nn.relu(x))
relu6 = _of(lambda x: hf.clip(x, 0, 6))
sigmoid = _of(hf.sigmoid)
sparse_sigmoid = _of(lambda x: hf.where(x <= -1, 0.0, hf.where(x >= 1, 1.0, 0.5 * (x + 1))))
tanh = _of(hf.tanh)
tanh_shrink = _of(lambda x: x - hf.tanh(x))
softplus = _of(hf.nn.softplus)
softsign = _of(hf.nn.softsign)
silu = _of(hf.nn.silu)
log_sigmoid = _of(hf.nn.log_sigmoid)
hard_sigmoid = _of(lambda x: hf.clip(x / 6.0 + 0.5, 0.0, 1.0))
hard_silu = _of(lambda x: x * hf.clip(x / 6.0 + 0.5, 0.0, 1.0))
selu = _of(hf.nn.selu)
hard_tanh = _of(lambda x: hf.clip(x, -1.0, 1.0))
sparse_plus = _of(lambda x: hf.where(x <= -1, 0.0, hf.where(x < 1, 0.25 * hf.square(x + 1), x)))


def soft_shrink(x, threshold=0.5):
    x = convert_to_tensor(x)
    return hf.where(x > threshold, x - threshold, hf.where(x < -threshold, x + threshold, hf.zeros_like(x)))


def squareplus(x, b=4):
    x = convert_to_tensor(x)
    return (x + hf.sqrt(hf.square(x) + b)) / 2


def leaky_relu(x, negative_slope=0.2):
    x = convert_to_tensor(x)
    return hf.where(x >= 0, x, x * negative_slope)


def elu(x, alpha=1.0):
    return hf.nn.elu(convert_to_tensor(x), alpha)


def gelu(x, approximate=True):
    return hf.nn.gelu(convert_to_tensor(x), approximate)


def celu(x, alpha=1.0):
    x = convert_to_tensor(x)
    return hf.maximum(x, 0.0) + alpha * hf.expm1(hf.minimum(x, 0.0) / alpha)


def glu(x, axis=-1):
    x = convert_to_tensor(x)
    if x.shape[axis] % 2 != 0:
        raise ValueError(f"axis size must be divisible by 2. Received: x.shape={x.shape} with axis={axis}")
    first, second = hf.split(x, 2, axis)
    return first * hf.sigmoid(second)


def hard_shrink(x, threshold=0.5):
    x = convert_to_tensor(x)
    return hf.where(hf.abs(x) > threshold, x, hf.zeros_like(x))


def threshold(x, threshold, default_value):
    x = convert_to_tensor(x)
    return hf.where(x > threshold, x, convert_to_tensor(default_value, x.dtype))


def softmax(x, axis=-1):
    return hf.nn.softmax(convert_to_tensor(x), tuple(axis) if isinstance(axis, list) else axis)


def log_softmax(x, axis=-1):
    return hf.nn.log_softmax(convert_to_tensor(x), tuple(axis) if isinstance(axis, list) else axis)


def sparsemax(x, axis=-1):
    x = convert_to_tensor(x)
    ordered = hf.sort(x, axis=axis, descending=True)
    sums = hf.cumulative_sum(ordered, axis=axis)
    shape = [1] * x.ndim
    shape[axis] = -1
    ranks = hf.reshape(hf.astype(hf.arange(1, x.shape[axis] + 1), x.dtype), shape)
    support = ordered - (sums - 1) / ranks > 0
    count = hf.sum(hf.astype(support, x.dtype), axis=axis, keepdims=True)
    total = hf.sum(hf.where(support, ordered, hf.zeros_like(ordered)), axis=axis, keepdims=True)
    return hf.maximum(x - (total - 1) / count, 0.0)


# ---- windows


def _per_axis(value, axes):
    return (value,) * axes if isinstance(value, int) else tuple(value)


def _layout(x, data_format):
    """How many axes windows have, and the data format."""
    return x.ndim - 2, backend.standardize_data_format(data_format)


def _pool(function, inputs, pool_size, strides, padding, data_format):
    inputs = convert_to_tensor(inputs)
    if padding not in ("same", "valid"):
        raise ValueError(f"Invalid padding '{padding}', must be 'same' or 'valid'.")
    axes, data_format = _layout(inputs, data_format)
    size = _per_axis(pool_size, axes)
    strides = size if strides is None else _per_axis(strides, axes)
    return function(inputs, size, strides, padding.upper(), data_format)


def max_pool(inputs, pool_size, strides=None, padding="valid", data_format=None):
    return _pool(hf.nn.max_pool, inputs, pool_size, strides, padding, data_format)


def average_pool(inputs, pool_size, strides=None, padding="valid", data_format=None):
    return _pool(hf.nn.avg_pool, inputs, pool_size, strides, padding, data_format)


def _adaptive(reduce, inputs, output_size, data_format):
    """Windows that end where the next begin, or overlap it by one: they differ in size by one at most."""
    inputs = convert_to_tensor(inputs)
    axes, data_format = _layout(inputs, data_format)
    first = 1 if data_format == "channels_last" else 2
    for axis, count in enumerate(_per_axis(output_size, axes), first):
        extent = inputs.shape[axis]
        starts = [i * extent // count for i in range(count)]
        ends = [-(-(i + 1) * extent // count) for i in range(count)]
        before = (builtins.slice(None),) * axis
        parts = [
            reduce(inputs[(*before, builtins.slice(a, b))], axis=axis, keepdims=True) for a, b in zip(starts, ends)
        ]
        inputs = hf.concat(parts, axis=axis)
    return inputs


def adaptive_average_pool(inputs, output_size, data_format=None):
    return _adaptive(hf.mean, inputs, output_size, data_format)


def adaptive_max_pool(inputs, output_size, data_format=None):
    return _adaptive(hf.max, inputs, output_size, data_format)


def _together(*operands):
    operands = [convert_to_tensor(x) for x in operands]
    dtype = dtypes.result_type(*[x.dtype for x in operands])
    return [convert_to_tensor(x, dtype) for x in operands]


def _padding(padding):
    return padding.upper() if isinstance(padding, str) else padding


def conv(inputs, kernel, strides=1, padding="valid", data_format=None, dilation_rate=1):
    inputs, kernel = _together(inputs, kernel)
    axes, data_format = _layout(inputs, data_format)
    channels = inputs.shape[-1 if data_format == "channels_last" else 1]
    if channels % kernel.shape[-2] > 0:
        raise ValueError(
            "The number of input channels must be evenly divisible by kernel's in_channels. "
            f"Received input channels {channels} and kernel in_channels {kernel.shape[-2]}. "
        )
    strides, rate = _per_axis(strides, axes), _per_axis(dilation_rate, axes)
    return hf.nn.convolution(inputs, kernel, strides, _padding(padding), data_format, rate)


def depthwise_conv(inputs, kernel, strides=1, padding="valid", data_format=None, dilation_rate=1):
    inputs, kernel = _together(inputs, kernel)
    data_format = backend.standardize_data_format(data_format)
    check_conv_input_channels(inputs, kernel, data_format)
    kernel = hf.reshape(kernel, (*kernel.shape[:-2], 1, kernel.shape[-2] * kernel.shape[-1]))
    return conv(inputs, kernel, strides, padding, data_format, dilation_rate)


def separable_conv(
    inputs, depthwise_kernel, pointwise_kernel, strides=1, padding="valid", data_format=None, dilation_rate=1
):
    data_format = backend.standardize_data_format(data_format)
    between = depthwise_conv(inputs, depthwise_kernel, strides, padding, data_format, dilation_rate)
    return conv(between, pointwise_kernel, 1, "valid", data_format, dilation_rate)


def conv_transpose(inputs, kernel, strides=1, padding="valid", output_padding=None, data_format=None, dilation_rate=1):
    inputs, kernel = _together(inputs, kernel)
    axes, data_format = _layout(inputs, data_format)
    check_conv_transpose_input_channels(inputs, kernel, data_format)
    pads = compute_conv_transpose_padding_args_for_jax(
        input_shape=inputs.shape,
        kernel_shape=kernel.shape,
        strides=strides,
        padding=padding,
        output_padding=output_padding,
        dilation_rate=dilation_rate,
    )
    strides, rate = _per_axis(strides, axes), _per_axis(dilation_rate, axes)
    if data_format == "channels_first":
        inputs = hf.moveaxis(inputs, 1, -1)
    spatial = inputs.shape[1:-1]
    spans = [(k - 1) * d + 1 for k, d in zip(kernel.shape, rate)]
    whole = [(n - 1) * s + span for n, s, span in zip(spatial, strides, spans)]
    functions = {1: hf.nn.conv1d_transpose, 2: hf.nn.conv2d_transpose, 3: hf.nn.conv3d_transpose}
    shape = (inputs.shape[0], *whole, kernel.shape[-2])
    step = strides if axes > 1 else strides[0]
    if all(d == 1 for d in rate) or axes == 2:
        extra = {} if axes != 2 else {"dilations": rate}
        out = functions[axes](inputs, kernel, shape, step, "VALID", **extra)
    else:
        out = functions[axes](inputs, _spread(kernel, rate), shape, step, "VALID")
    key = [builtins.slice(None)]
    widths = [(0, 0)]
    for (low, high), span, n in zip(pads, spans, whole):
        low, high = low - (span - 1), high - (span - 1)  # what is to be added to the whole, or cut from it
        key.append(builtins.slice(builtins.max(-low, 0), n - builtins.max(-high, 0)))
        widths.append((builtins.max(low, 0), builtins.max(high, 0)))
    out = out[tuple(key)]
    if any(width != (0, 0) for width in widths):
        out = hf.pad(out, [*widths, (0, 0)])
    return hf.moveaxis(out, -1, 1) if data_format == "channels_first" else out


def _spread(kernel, rate):
    """A kernel with zeros between its elements, for functions that know no dilation."""
    for axis, d in enumerate(rate):
        if d > 1:
            n = kernel.shape[axis]
            kernel = hf.expand_dims(kernel, axis + 1)
            kernel = hf.pad(kernel, [(0, d - 1) if i == axis + 1 else (0, 0) for i in range(kernel.ndim)])
            shape = (*kernel.shape[:axis], n * d, *kernel.shape[axis + 2 :])
            kernel = hf.reshape(kernel, shape)[(builtins.slice(None),) * axis + (builtins.slice(0, (n - 1) * d + 1),)]
    return kernel


def _pair(value):
    return (value, value) if isinstance(value, int) else tuple(value)


def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    x = convert_to_tensor(input)
    k, d, p, s = map(_pair, (kernel_size, dilation, padding, stride))
    x = hf.pad(x, [(0, 0), (0, 0), (p[0], p[0]), (p[1], p[1])])
    rows = (x.shape[2] - (k[0] - 1) * d[0] - 1) // s[0] + 1
    columns = (x.shape[3] - (k[1] - 1) * d[1] - 1) // s[1] + 1
    parts = [
        x[
            :,
            :,
            i * d[0] : i * d[0] + (rows - 1) * s[0] + 1 : s[0],
            j * d[1] : j * d[1] + (columns - 1) * s[1] + 1 : s[1],
        ]
        for i in range(k[0])
        for j in range(k[1])
    ]
    return hf.reshape(hf.stack(parts, axis=2), (x.shape[0], x.shape[1] * k[0] * k[1], rows * columns))


def fold(x, output_size, kernel_size, dilation=1, padding=0, stride=1):
    x = convert_to_tensor(x)
    size, k, d, p, s = map(_pair, (output_size, kernel_size, dilation, padding, stride))
    padded = [n + 2 * q for n, q in zip(size, p)]
    rows, columns = ((n - e * (m - 1) - 1) // t + 1 for n, e, m, t in zip(padded, d, k, s))
    channels = x.shape[1] // (k[0] * k[1])
    x = hf.reshape(x, (x.shape[0], channels, k[0], k[1], rows, columns))
    total = None
    for i in range(k[0]):
        for j in range(k[1]):
            part = x[:, :, i, j]
            for axis, count, step, start, extent in (
                (2, rows, s[0], i * d[0], padded[0]),
                (3, columns, s[1], j * d[1], padded[1]),
            ):
                part = _placed(part, axis, count, step, start, extent)
            total = part if total is None else total + part
    return total[:, :, p[0] : padded[0] - p[0], p[1] : padded[1] - p[1]]


def _placed(x, axis, count, step, start, extent):
    """The elements of an axis at every ``step``-th place from ``start`` on, among zeros."""
    if step > 1:
        x = hf.expand_dims(x, axis + 1)
        x = hf.pad(x, [(0, step - 1) if i == axis + 1 else (0, 0) for i in range(x.ndim)])
        x = hf.reshape(x, (*x.shape[:axis], count * step, *x.shape[axis + 2 :]))
        x = x[(builtins.slice(None),) * axis + (builtins.slice(0, (count - 1) * step + 1),)]
    after = extent - start - ((count - 1) * step + 1)
    return hf.pad(x, [(start, after) if i == axis else (0, 0) for i in range(x.ndim)])


def depth_to_space(x, block_size, data_format="channels_last"):
    x = convert_to_tensor(x)
    b = block_size
    if data_format == "channels_last":
        n, h, w, c = x.shape
        x = hf.permute_dims(hf.reshape(x, (n, h, w, b, b, c // b**2)), (0, 1, 3, 2, 4, 5))
        return hf.reshape(x, (n, h * b, w * b, c // b**2))
    n, c, h, w = x.shape
    x = hf.permute_dims(hf.reshape(x, (n, c // b**2, b, b, h, w)), (0, 1, 4, 2, 5, 3))
    return hf.reshape(x, (n, c // b**2, h * b, w * b))


def space_to_depth(x, block_size, data_format="channels_last"):
    x = convert_to_tensor(x)
    b = block_size
    if data_format == "channels_last":
        n, h, w, c = x.shape
        x = hf.permute_dims(hf.reshape(x, (n, h // b, b, w // b, b, c)), (0, 1, 3, 2, 4, 5))
        return hf.reshape(x, (n, h // b, w // b, c * b**2))
    n, c, h, w = x.shape
    x = hf.permute_dims(hf.reshape(x, (n, c, h // b, b, w // b, b)), (0, 1, 3, 5, 2, 4))
    return hf.reshape(x, (n, c * b**2, h // b, w // b))


# ---- classes


def one_hot(x, num_classes, axis=-1, dtype=None, sparse=False):
    if sparse:
        raise ValueError("Unsupported value `sparse=True` with hybridflow backend")
    return hf.one_hot(convert_to_tensor(x, "int64"), num_classes, axis=axis, dtype=dtype or "float32")


def multi_hot(x, num_classes, axis=-1, dtype=None, sparse=False):
    if sparse:
        raise ValueError("Unsupported value `sparse=True` with hybridflow backend")
    x = convert_to_tensor(x)
    along = 1 if x.ndim > 1 else 0
    if isinstance(x.shape[along], int) and x.shape[along] == 0:
        shape = (x.shape[0], num_classes) if along else (num_classes,)
        return hf.zeros(shape, dtype=dtype or "float32")
    return hf.max(one_hot(cast(x, "int32"), num_classes, axis=axis, dtype=dtype), axis=along)


def _compare(target, output):
    if len(target.shape) != len(output.shape) or any(
        isinstance(a, int) and isinstance(b, int) and a != b for a, b in zip(target.shape, output.shape)
    ):
        raise ValueError(
            "Arguments `target` and `output` must have the same shape. Received: "
            f"target.shape={target.shape}, output.shape={output.shape}"
        )


def _log_probabilities(output, from_logits, axis):
    if from_logits:
        return hf.nn.log_softmax(output, axis)
    output = output / hf.sum(output, axis=axis, keepdims=True)
    return hf.log(hf.clip(output, backend.epsilon(), 1.0 - backend.epsilon()))


def categorical_crossentropy(target, output, from_logits=False, axis=-1):
    target, output = convert_to_tensor(target), convert_to_tensor(output)
    _compare(target, output)
    if target.ndim < 1:
        raise ValueError(
            "Arguments `target` and `output` must be at least rank 1. Received: "
            f"target.shape={target.shape}, output.shape={output.shape}"
        )
    return -hf.sum(target * _log_probabilities(output, from_logits, axis), axis=axis)


def sparse_categorical_crossentropy(target, output, from_logits=False, axis=-1):
    target, output = convert_to_tensor(target, "int32"), convert_to_tensor(output)
    if target.ndim == output.ndim and isinstance(target.shape[-1], int) and target.shape[-1] == 1:
        target = hf.squeeze(target, -1)
    if output.ndim < 1:
        raise ValueError(f"Argument `output` must be at least rank 1. Received: output.shape={output.shape}")
    if target.ndim != output.ndim - 1 or any(
        isinstance(a, int) and isinstance(b, int) and a != b for a, b in zip(target.shape, output.shape)
    ):
        raise ValueError(
            "Arguments `target` and `output` must have the same shape up until the last dimension: "
            f"target.shape={target.shape}, output.shape={output.shape}"
        )
    chosen = hf.one_hot(target, output.shape[axis], axis=axis, dtype=standardize_dtype(output.dtype))
    return -hf.sum(chosen * _log_probabilities(output, from_logits, axis), axis=axis)


def binary_crossentropy(target, output, from_logits=False):
    target, output = convert_to_tensor(target), convert_to_tensor(output)
    _compare(target, output)
    if from_logits:
        return hf.maximum(output, 0.0) - output * target + hf.log1p(hf.exp(-hf.abs(output)))
    output = hf.clip(output, backend.epsilon(), 1.0 - backend.epsilon())
    return -(target * hf.log(output) + (1.0 - target) * hf.log(1.0 - output))


# ---- normalization


def moments(x, axes, keepdims=False, synchronized=False):
    if synchronized:
        raise NotImplementedError("Argument synchronized=True is not supported with hybridflow.")
    x = convert_to_tensor(x)
    axes = tuple(axes) if isinstance(axes, (list, tuple)) else axes
    dtype = standardize_dtype(x.dtype)
    mean, variance = hf.nn.moments(cast(x, "float32") if dtype == "float16" else x, axes, keepdims=keepdims)
    if dtype == "float16":
        most = float(np.finfo(np.float16).max)
        mean, variance = (cast(hf.clip(part, -most, most), dtype) for part in (mean, variance))
    return mean, variance


def batch_normalization(x, mean, variance, axis, offset=None, scale=None, epsilon=1e-3):
    x = convert_to_tensor(x)
    shape = [1] * x.ndim
    shape[axis] = -1
    mean, variance = (hf.reshape(convert_to_tensor(part), shape) for part in (mean, variance))
    factor = hf.rsqrt(variance + epsilon)
    if scale is not None:
        factor = factor * hf.reshape(convert_to_tensor(scale), shape)
    shift = -mean * factor
    if offset is not None:
        shift = shift + hf.reshape(convert_to_tensor(offset), shape)
    return hf.astype(x * factor + shift, dtypes.result_type(x.dtype, mean.dtype))


def psnr(x1, x2, max_val):
    x1, x2 = convert_to_tensor(x1), convert_to_tensor(x2)
    if x1.shape != x2.shape:
        raise ValueError(f"Input shapes {x1.shape} and {x2.shape} must match for PSNR calculation. ")
    max_val = convert_to_tensor(max_val, x2.dtype)
    return 20 * hf.log10(max_val) - 10 * hf.log10(hf.mean(hf.square(x1 - x2)))


# ---- sequences


def ctc_loss(target, output, target_length, output_length, mask_index=0):
    """As other backends of Keras: a label may be the blank's number, and is a label all the same."""
    output = convert_to_tensor(output)
    output = cast(output, backend.result_type(output.dtype, "float32"))
    target = convert_to_tensor(target, "int32")
    places, steps = convert_to_tensor(target_length, "int32"), convert_to_tensor(output_length, "int32")
    scores = hf.permute_dims(hf.nn.log_softmax(output), (1, 0, 2))
    count = scores.shape[0]
    labels = hf.broadcast_to(target, (count, *target.shape))
    of_labels, of_blank = hf.take_along_axis(scores, labels, axis=2), scores[..., mask_index : mask_index + 1]
    never = -1e5  # the logarithm of what hardly ever is
    repeated = hf.pad(hf.astype(target[:, :-1] == target[:, 1:], output.dtype), [(0, 0), (0, 1)])

    def with_ways(blanks, ways):
        return hf.concat([blanks[:, :1], hf.logaddexp(blanks[:, 1:], ways)], axis=1)

    def step(before, now):
        blanks, emitted = before
        number, said, silent = now
        ready = with_ways(blanks, emitted + never * repeated)
        new_emitted = hf.logaddexp(ready[:, :-1], emitted) + said
        new_blanks = with_ways(ready + silent, emitted + silent + never * (1.0 - repeated))
        counts = (number < steps)[:, None]
        return (hf.where(counts, new_blanks, blanks), hf.where(counts, new_emitted, emitted)), None

    first = hf.where(hf.arange(target.shape[1] + 1) == 0, 0.0, never)
    blanks = hf.astype(hf.broadcast_to(first, (target.shape[0], target.shape[1] + 1)), output.dtype)
    emitted = hf.full_like(of_labels[0], never)
    numbers = hf.arange(count, dtype="int32")
    (blanks, emitted), _ = scan(step, (blanks, emitted), (numbers, of_labels, of_blank))
    last = with_ways(blanks, emitted)
    return -hf.take_along_axis(last, hf.astype(places, "int64")[:, None], axis=1)[:, 0]


def _greedy(inputs, lengths, merge_repeated, mask_index):
    steps, classes = inputs.shape[1:]
    mask_index = classes - 1 if mask_index is None else mask_index
    indices = convert_to_tensor(hf.argmax(inputs, axis=-1), "int32")
    scores = hf.max(inputs, axis=-1)
    is_over = hf.arange(steps)[None, :] >= lengths[:, None]
    indices = hf.where(is_over, convert_to_tensor(mask_index, "int32"), indices)
    scores = hf.where(is_over, hf.zeros_like(scores), scores)
    if merge_repeated:
        repeated = hf.pad(indices[:, 1:] == indices[:, :-1], [(0, 0), (1, 0)])
        indices = hf.where(repeated, convert_to_tensor(mask_index, "int32"), indices)
    is_blank = indices == mask_index
    indices = hf.where(is_blank, convert_to_tensor(-1, "int32"), indices)
    order = hf.argsort(hf.where(is_blank, hf.asarray(steps), hf.arange(steps)[None, :]), axis=-1)
    return hf.take_along_axis(indices, order, axis=-1)[None], -hf.sum(scores, axis=1)[:, None]


def _beam_search(inputs, lengths, beam_width, top_paths, mask_index):
    """Beams as Python's: what is kept depends on values, and there is no gradient."""
    inputs = np.asarray(hf.nn.log_softmax(inputs), dtype=np.float64)
    count, steps, classes = inputs.shape
    mask_index = classes - 1 if mask_index is None else mask_index
    paths = np.full((top_paths, count, steps), -1, np.int32)
    scores = np.full((count, top_paths), -np.inf, np.float32)
    for b, length in enumerate(np.asarray(lengths)):
        beams = {(): (0.0, -np.inf)}  # of a path: log probabilities that end in the blank, and that do not
        for row in inputs[b, : int(length)]:
            extended = {}

            def add(path, blank, emitted, extended=extended):
                old = extended.get(path, (-np.inf, -np.inf))
                extended[path] = (np.logaddexp(old[0], blank), np.logaddexp(old[1], emitted))

            for path, (blank, emitted) in beams.items():
                both = np.logaddexp(blank, emitted)
                add(path, both + row[mask_index], emitted + row[path[-1]] if path else -np.inf)
                for c in range(classes):
                    if c != mask_index:
                        start = blank if path and path[-1] == c else both
                        add((*path, c), -np.inf, start + row[c])
            kept = sorted(extended.items(), key=lambda item: -np.logaddexp(*item[1]))[:beam_width]
            beams = dict(kept)
        best = sorted(beams.items(), key=lambda item: -np.logaddexp(*item[1]))[:top_paths]
        for i, (path, log_shares) in enumerate(best):
            paths[i, b, : len(path)] = path
            scores[b, i] = np.logaddexp(*log_shares)
    return convert_to_tensor(paths), convert_to_tensor(scores)


def ctc_decode(
    inputs, sequence_lengths, strategy="greedy", beam_width=100, top_paths=1, merge_repeated=True, mask_index=0
):
    inputs = convert_to_tensor(inputs)
    inputs = cast(inputs, backend.result_type(inputs.dtype, "float32"))
    lengths = convert_to_tensor(sequence_lengths, "int32")
    if strategy == "greedy":
        return _greedy(inputs, lengths, merge_repeated, mask_index)
    if strategy == "beam_search":
        return _beam_search(inputs, lengths, beam_width, top_paths, mask_index)
    raise ValueError(f"Invalid strategy {strategy}. Supported values are 'greedy' and 'beam_search'.")


def dot_product_attention(
    query,
    key,
    value,
    bias=None,
    mask=None,
    scale=None,
    is_causal=False,
    flash_attention=None,
    attn_logits_soft_cap=None,
):
    if flash_attention:
        raise ValueError("Flash attention is not supported in hybridflow backend.")
    query, key, value = (convert_to_tensor(x) for x in (query, key, value))
    if query.ndim != 4:
        raise ValueError(
            "`dot_product_attention` only supports 4D inputs. "
            f"Received: query.shape={query.shape}, key.shape={key.shape}, value.shape={value.shape}."
        )
    dtype = backend.result_type(query.dtype, key.dtype, value.dtype)
    query, key, value = (cast(x, dtype) for x in (query, key, value))
    scale = 1.0 / math.sqrt(key.shape[-1]) if scale is None else scale
    if bias is None and attn_logits_soft_cap is None:
        kept = None if mask is None else convert_to_tensor(mask, "bool")
        heads_first = [hf.permute_dims(x, (0, 2, 1, 3)) for x in (query, key, value)]
        if key.shape[2] == query.shape[2]:
            out = hf.nn.scaled_dot_product_attention(*heads_first, attn_mask=kept, is_causal=is_causal, scale=scale)
            return hf.permute_dims(out, (0, 2, 1, 3))
    if key.shape[2] != query.shape[2]:
        key, value = (hf.repeat(x, query.shape[2] // x.shape[2], axis=2) for x in (key, value))
    logits = cast(hf.einsum("btnh,bsnh->bnts", query, key), dtypes.result_type(dtype, "float32")) * scale
    if bias is not None:
        logits = logits + convert_to_tensor(bias, logits.dtype)
    if attn_logits_soft_cap is not None:
        logits = hf.tanh(logits / attn_logits_soft_cap) * attn_logits_soft_cap
    kept = None if mask is None else convert_to_tensor(mask, "bool")
    if is_causal:
        past = hf.tril(hf.ones(logits.shape[2:], dtype="bool"))[None, None]
        kept = past if kept is None else hf.logical_and(kept, past)
    if kept is not None:
        logits = hf.where(kept, logits, convert_to_tensor(-0.7 * 3.38953e38, logits.dtype))
    return hf.einsum("bnts,bsnh->btnh", cast(hf.nn.softmax(logits), dtype), value)
