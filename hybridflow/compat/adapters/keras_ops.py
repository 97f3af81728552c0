"""``keras.ops`` where its arguments are not those of a function of ``tf`` or of hybridflow."""

from __future__ import annotations

import functools
import math
from itertools import pairwise
from typing import Any

import hybridflow as hf
from hybridflow.compat.adapters import images, linear, maths, network
from hybridflow.compat.adapters.values import array_of, axes, count_up_to, operand, operands
from hybridflow.compiler.ir import dtypes
from hybridflow.errors import ArgumentError


def shape(x: Any) -> tuple[Any, ...]:
    """``keras.ops.shape``: a tuple; extents that are not numbers yet stay extents."""
    return tuple(operand(x).shape)


def take(x: Any, indices: Any, axis: int | None = None) -> Any:
    """``keras.ops.take``: of all elements without an axis."""
    value, places = operand(x), operand(indices)
    return hf.take(hf.reshape(value, (-1,)) if axis is None else value, places, axis=axis or 0)


def split(x: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """``keras.ops.split``: equal parts, or those between positions."""
    value = operand(x)
    if isinstance(indices_or_sections, int):
        return list(hf.split(value, indices_or_sections, axis))
    ends = [0, *indices_or_sections, value.shape[axis]]
    return list(hf.split(value, [after - before for before, after in pairwise(ends)], axis))


def unravel_index(indices: Any, shape: Any) -> tuple[Any, ...]:
    """``keras.ops.unravel_index``: a tensor for each axis."""
    places = operand(indices)
    size = math.prod(shape)
    return hf.unravel_index(hf.where(places < 0, places + size, places), shape)


def swapaxes(x: Any, axis1: int, axis2: int) -> Any:
    """``keras.ops.swapaxes``."""
    value = operand(x)
    order = list(range(value.ndim))
    order[axis1], order[axis2] = order[axis2], order[axis1]
    return hf.permute_dims(value, tuple(order))


def segment_sum(data: Any, segment_ids: Any, num_segments: int | None = None, sorted: bool = False) -> Any:
    """``keras.ops.segment_sum``."""
    if num_segments is None:
        return maths.segment_sum(data, segment_ids)
    return maths.unsorted_segment_sum(data, segment_ids, num_segments)


def extract_patches(image: Any, size: Any, strides: Any = None, dilation_rate: Any = 1, padding: str = "valid") -> Any:
    """``keras.ops.image.extract_patches``: next to each other without ``strides``."""
    size, rate = _pair(size), _pair(dilation_rate)
    step = size if strides is None else _pair(strides)
    return images.extract_patches(operand(image), [1, *size, 1], [1, *step, 1], [1, *rate, 1], padding)


def _pair(value: Any) -> tuple[int, int]:
    first, second = (value, value) if isinstance(value, int) else value
    return first, second


def ctc_loss(target: Any, output: Any, target_length: Any, output_length: Any, mask_index: int = 0) -> Any:
    """``keras.ops.ctc_loss``: logits are (batch, steps, classes)."""
    lengths = operand(target_length), operand(output_length)
    return hf.nn.ctc_loss(operand(target), operand(output), *lengths, logits_time_major=False, blank_index=mask_index)


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """``keras.ops.norm``: of vectors or matrices, the Euclidean one without ``ord``."""
    value = operand(x)
    along = (0, 1) if axis is None and value.ndim == 2 and ord is not None else axis
    return linear.norm(value, "euclidean" if ord is None else ord, along, keepdims)


def dot(x1: Any, x2: Any) -> Any:
    """``keras.ops.dot``: over the last axis of one and the last but one of the other."""
    a, b = operands([x1, x2], [0, 1])
    return a * b if not a.ndim or not b.ndim else hf.tensordot(a, b, axes=[[a.ndim - 1], [max(b.ndim - 2, 0)]])


def allclose(x1: Any, x2: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Any:
    """``keras.ops.allclose``."""
    a, b = operands([x1, x2], [0, 1])
    return hf.all(hf.isclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan))


def append(x1: Any, x2: Any, axis: int | None = None) -> Any:
    """``keras.ops.append``."""
    a, b = operands([x1, x2], [0, 1])
    return hf.concat([hf.reshape(a, (-1,)), hf.reshape(b, (-1,))] if axis is None else [a, b], axis=axis or 0)


def associative_scan(f: Any, elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """``keras.ops.associative_scan``."""
    return hf.associative_scan(f, elems, reverse=reverse, axis=axis)


def average(x: Any, axis: Any = None, weights: Any = None) -> Any:
    """``keras.ops.average``."""
    value = operand(x)
    if weights is None:
        return hf.mean(value, axis=axes(axis))
    w = operand(weights)
    if w.ndim < value.ndim:
        w = hf.reshape(w, [-1 if k == axis % value.ndim else 1 for k in range(value.ndim)])
    w = hf.broadcast_to(hf.astype(w, value.dtype), value.shape)
    return hf.sum(value * w, axis=axes(axis)) / hf.sum(w, axis=axes(axis))


def conv(
    inputs: Any, kernel: Any, strides: Any = 1, padding: str = "valid", data_format: str | None = None,
    dilation_rate: Any = 1,
) -> Any:  # fmt: skip
    """``keras.ops.conv``."""
    layout = _layout(operand(inputs), data_format)
    return network.convolution(inputs, kernel, strides, padding.upper(), layout, dilation_rate)


def _layout(inputs: Any, data_format: str | None) -> str:
    """What ``tf.nn`` calls it.  Raises ArgumentError for an unknown one."""
    places = {1: "W", 2: "HW", 3: "DHW"}.get(inputs.ndim - 2)
    if places is None or data_format not in (None, "channels_last", "channels_first"):
        raise ArgumentError("ops", f"data_format is {data_format!r}, of {inputs.type}, with 1 to 3 axes of places.")
    return f"NC{places}" if data_format == "channels_first" else f"N{places}C"


def _pool(kind: str, inputs: Any, pool_size: Any, strides: Any, padding: str, data_format: str | None) -> Any:
    x, step = operand(inputs), pool_size if strides is None else strides
    return network.pool(x, pool_size, kind, step, padding.upper(), _layout(x, data_format))


def max_pool(
    inputs: Any, pool_size: Any, strides: Any = None, padding: str = "valid", data_format: str | None = None
) -> Any:
    """``keras.ops.max_pool``."""
    return _pool("MAX", inputs, pool_size, strides, padding, data_format)


def average_pool(
    inputs: Any, pool_size: Any, strides: Any = None, padding: str = "valid", data_format: str | None = None
) -> Any:
    """``keras.ops.average_pool``."""
    return _pool("AVG", inputs, pool_size, strides, padding, data_format)


def deg2rad(x: Any) -> Any:
    """``keras.ops.deg2rad``."""
    return operand(x) * (math.pi / 180)


def rad2deg(x: Any) -> Any:
    """``keras.ops.rad2deg``."""
    return operand(x) * (180 / math.pi)


def diff(a: Any, n: int = 1, axis: int = -1) -> Any:
    """``keras.ops.diff``."""
    return hf.diff(operand(a), n=n, axis=axis)


def digitize(x: Any, bins: Any) -> Any:
    """``keras.ops.digitize``."""
    value = operand(x)
    value = value if dtypes.is_float(value.dtype) else hf.astype(value, dtypes.float64)  # edges may lie between ints
    return hf.astype(hf.searchsorted(hf.asarray(array_of(bins), value.dtype), value, side="right"), dtypes.int32)


def fliplr(x: Any) -> Any:
    """``keras.ops.fliplr``."""
    return hf.flip(operand(x), axis=1)


def flipud(x: Any) -> Any:
    """``keras.ops.flipud``."""
    return hf.flip(operand(x), axis=0)


def fmax(x1: Any, x2: Any) -> Any:
    """``keras.ops.fmax``: the other one where one is NaN."""
    a, b = operands([x1, x2], [0, 1])
    return hf.where(hf.isnan(a), b, hf.where(hf.isnan(b), a, hf.maximum(a, b)))


def fmin(x1: Any, x2: Any) -> Any:
    """``keras.ops.fmin``: the other one where one is NaN."""
    a, b = operands([x1, x2], [0, 1])
    return hf.where(hf.isnan(a), b, hf.where(hf.isnan(b), a, hf.minimum(a, b)))


def get_item(x: Any, key: Any) -> Any:
    """``keras.ops.get_item``."""
    return operand(x)[key]


def heaviside(x1: Any, x2: Any) -> Any:
    """``keras.ops.heaviside``."""
    a, b = operands([x1, x2], [0, 1])
    kind = hf.result_type(a, b, dtypes.float32) if dtypes.is_integer(a.dtype) else a.dtype
    return hf.where(a > 0, 1.0, hf.where(a < 0, 0.0, hf.astype(hf.asarray(b), kind)))


def hstack(xs: Any) -> Any:
    """``keras.ops.hstack``."""
    parts = [operand(x) for x in xs]
    return hf.concat(parts, axis=0 if parts[0].ndim == 1 else 1)


def vstack(xs: Any) -> Any:
    """``keras.ops.vstack``."""
    return hf.concat([hf.expand_dims(x, axis=0) if x.ndim < 2 else x for x in map(operand, xs)], axis=0)


def inner(x1: Any, x2: Any) -> Any:
    """``keras.ops.inner``: over the last axes."""
    a, b = operands([x1, x2], [0, 1])
    return a * b if not a.ndim or not b.ndim else hf.tensordot(a, b, axes=[[a.ndim - 1], [b.ndim - 1]])


def kron(x1: Any, x2: Any) -> Any:
    """``keras.ops.kron``, of matrices."""
    a, b = operands([x1, x2], [0, 1])
    products = hf.einsum("ij,kl->ikjl", a, b)
    return hf.reshape(products, (a.shape[0] * b.shape[0], a.shape[1] * b.shape[1]))


def logspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: float = 10, dtype: Any = None) -> Any:
    """``keras.ops.logspace``."""
    return hf.exp(hf.linspace(start, stop, num, endpoint=endpoint, dtype=dtype) * math.log(base))


def median(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """``keras.ops.median``."""
    return hf.median(operand(x), axis, keepdims=keepdims)


def quantile(x: Any, q: Any, axis: Any = None, method: str = "linear", keepdims: bool = False) -> Any:
    """``keras.ops.quantile``."""
    return hf.quantile(operand(x), q, axis, method=method, keepdims=keepdims)


def multi_hot(
    inputs: Any, num_classes: int | None = None, axis: int = -1, dtype: Any = None, sparse: bool = False, **old: Any
) -> Any:
    """``keras.ops.multi_hot``: 1 where a class is among those of a row."""
    x = operand(inputs)
    count = int(old.get("num_tokens") or num_classes or 0)
    reduce = 1 if x.ndim > 1 else 0
    return hf.max(hf.one_hot(x, count, axis, dtypes.float32 if dtype is None else dtype), axis=reduce)


def psnr(x1: Any, x2: Any, max_val: float) -> Any:
    """``keras.ops.psnr``: decibels, of all elements together."""
    a, b = operands([x1, x2], [0, 1])
    return 20 * hf.log10(hf.asarray(max_val, a.dtype)) - 10 * hf.log10(hf.mean(hf.square(a - b)))


def rot90(array: Any, k: int = 1, axes: Any = (0, 1)) -> Any:
    """``keras.ops.rot90``: ``k`` quarters of a turn from the first of the axes towards the second."""
    x = operand(array)
    for _ in range(k % 4):
        x = swapaxes(hf.flip(x, axis=axes[1]), *axes)
    return x


def scan(
    f: Any, init: Any, xs: Any = None, length: int | None = None, reverse: bool = False, unroll: int = 1
) -> tuple[Any, Any]:
    """``keras.ops.scan``: ``f(carry, x)`` returns the next carry and what is stacked."""
    steps = hf.arange(int(length or 0)) if xs is None else hf.tree.map(operand, xs)
    start = hf.tree.map(operand, init)
    first = hf.tree.map(lambda x: x[-1 if reverse else 0], steps)
    _, output = f(start, None if xs is None else first)

    def step(both: Any, x: Any) -> Any:
        carry, out = f(both[0], None if xs is None else x)
        return carry, both[1] if out is None else out

    scanned = hf.scan(
        step, steps, (start, hf.tree.map(hf.zeros_like, hf.asarray(0.0) if output is None else output)), reverse
    )
    last = hf.tree.map(lambda x: x[0 if reverse else -1], scanned[0])
    return last, None if output is None else scanned[1]


def segment_max(data: Any, segment_ids: Any, num_segments: int | None = None, sorted: bool = False) -> Any:
    """``keras.ops.segment_max``."""
    ids = operand(segment_ids)
    if num_segments is None:
        num_segments = count_up_to(segment_ids, "ops.segment_max", "Give num_segments")
    return maths.unsorted_segment_max(data, ids, num_segments)


def select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    """``keras.ops.select``: the first choice whose condition holds."""
    result: Any = default
    for chosen, choice in zip(reversed(list(condlist)), reversed(list(choicelist))):
        result = hf.where(operand(chosen), operand(choice), result)
    return result


def slice_update(inputs: Any, start_indices: Any, updates: Any) -> Any:
    """``keras.ops.slice_update``."""
    x, new = operands([inputs, updates], [0, 1])
    result = hf.asarray(x).copy()
    starts = [int(s) for s in start_indices]
    result[tuple(slice(s, s + n) for s, n in zip(starts, new.shape))] = new
    return result


def solve_triangular(a: Any, b: Any, lower: bool = False) -> Any:
    """``keras.ops.solve_triangular``."""
    x, y = operands([a, b], [0, 1])
    return hf.linalg.triangular_solve(x, y, lower=lower)


def svd(x: Any, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    """``keras.ops.svd``: left vectors, values, and right vectors as rows."""
    return (
        tuple(hf.linalg.svd(operand(x), full_matrices=full_matrices)) if compute_uv else hf.linalg.svdvals(operand(x))
    )


def switch(index: Any, branches: Any, *operands: Any) -> Any:
    """``keras.ops.switch``."""
    return hf.switch_case(index, [functools.partial(branch, *operands) for branch in branches])


def trapezoid(y: Any, x: Any = None, dx: float = 1.0, axis: int = -1) -> Any:
    """``keras.ops.trapezoid``."""
    values = hf.moveaxis(operand(y), axis, -1)
    steps: Any = dx if x is None else hf.diff(operand(x) if operand(x).ndim == 1 else hf.moveaxis(operand(x), axis, -1))
    return hf.sum((values[..., 1:] + values[..., :-1]) * steps, axis=-1) / 2


def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = dtypes.float32) -> Any:
    """``keras.ops.tri``."""
    return hf.tril(hf.ones((N, N if M is None else M), dtype), k=k)


def vectorize(pyfunc: Any, *, excluded: Any = None, signature: Any = None) -> Any:
    """``keras.ops.vectorize``, of functions of scalars."""
    if excluded or signature:
        raise ArgumentError("ops.vectorize", "there is no excluded or signature here; use tf.vectorized_map.")

    def call(*args: Any) -> Any:
        arrays = hf.broadcast_arrays(*map(operand, args))
        shape = arrays[0].shape
        results = hf.vmap(pyfunc)(*[hf.reshape(x, (-1,)) for x in arrays])
        return hf.reshape(results, shape)

    return call


def layer_normalization(
    x: Any, gamma: Any = None, beta: Any = None, axis: Any = -1, epsilon: float | None = None,
    rms_scaling: bool = False,
) -> Any:  # fmt: skip
    """``keras.ops.layer_normalization``."""
    value = operand(x)
    if rms_scaling:
        raise ArgumentError("layer_normalization", "rms_scaling is not here: write keras.ops.rms_normalization.")
    mean, variance = hf.mean(value, axis=axes(axis), keepdims=True), hf.var(value, axis=axes(axis), keepdims=True)
    normalized = (value - mean) * hf.rsqrt(variance + (1e-7 if epsilon is None else epsilon))
    normalized = normalized if gamma is None else normalized * gamma
    return normalized if beta is None else normalized + beta


def rms_normalization(x: Any, scale: Any = 1, axis: Any = -1, epsilon: float | None = None) -> Any:
    """``keras.ops.rms_normalization``."""
    value = operand(x)
    mean = hf.mean(hf.square(value), axis=axes(axis), keepdims=True)
    return value * hf.rsqrt(mean + (1e-7 if epsilon is None else epsilon)) * scale


def batch_normalization(
    x: Any, mean: Any, variance: Any, axis: int, offset: Any = None, scale: Any = None, epsilon: float = 1e-3
) -> Any:
    """``keras.ops.batch_normalization``."""
    value = operand(x)
    shape = [-1 if k == axis % value.ndim else 1 for k in range(value.ndim)]

    def along(part: Any) -> Any:
        return None if part is None else hf.reshape(operand(part), shape)

    return network.batch_normalization(value, along(mean), along(variance), along(offset), along(scale), epsilon)
