"""``keras.ops`` where its arguments are not those of a function of ``tf`` or of hybridflow."""

from __future__ import annotations

import builtins
import functools
import math
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, SupportsIndex

import hybridflow as hf
from hybridflow.compat.adapters import arrays, control, models, values
from hybridflow.compat.adapters.values import array_of, axes, count_up_to, operand, operands
from hybridflow.compat.export import Operand, TensorLike, export, tf_export
from hybridflow.compat.tf import image as pictures, linalg as linear, math as maths, nn as network
from hybridflow.compiler.ir import dtypes
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import PerAxis, ShapeLike
from hybridflow.errors import ArgumentError

if TYPE_CHECKING:
    from hybridflow.core.type_aliases import ArrayLike, AxisLike, DTypeLike


@tf_export("keras.ops.shape")
def shape(x: TensorLike) -> tuple[Any, ...]:
    """``keras.ops.shape``: a tuple; extents that are not numbers yet stay extents."""
    return tuple(operand(x).shape)


@tf_export("keras.ops.take")
def take(x: ArrayLike, indices: TensorLike, axis: int | None = None) -> Any:
    """``keras.ops.take``: of all elements without an axis."""
    value, places = operand(x), operand(indices)
    return hf.take(hf.reshape(value, (-1,)) if axis is None else value, places, axis=axis or 0)


@tf_export("keras.ops.split")
def split(x: TensorLike, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """``keras.ops.split``: equal parts, or those between positions."""
    value = operand(x)
    if isinstance(indices_or_sections, int):
        return list(hf.split(value, indices_or_sections, axis))
    ends = [0, *indices_or_sections, value.shape[axis]]
    return list(hf.split(value, [after - before for before, after in pairwise(ends)], axis))


@tf_export("keras.ops.unravel_index")
def unravel_index(indices: TensorLike, shape: Any) -> tuple[Any, ...]:
    """``keras.ops.unravel_index``: a tensor for each axis."""
    places = operand(indices)
    size = math.prod(shape)
    return hf.unravel_index(hf.where(places < 0, places + size, places), shape)


@tf_export("keras.ops.swapaxes")
def swapaxes(x: TensorLike, axis1: int, axis2: int) -> Any:
    """``keras.ops.swapaxes``."""
    value = operand(x)
    order = list(range(value.ndim))
    order[axis1], order[axis2] = order[axis2], order[axis1]
    return hf.permute_dims(value, tuple(order))


@tf_export("keras.ops.segment_sum")
def segment_sum(
    data: TensorLike, segment_ids: TensorLike, num_segments: int | None = None, sorted: bool = False
) -> Any:
    """``keras.ops.segment_sum``."""
    if num_segments is None:
        return maths.segment_sum(data, segment_ids)
    return maths.unsorted_segment_sum(data, segment_ids, num_segments)


@tf_export("keras.ops.image.extract_patches")
def extract_patches(
    image: TensorLike, size: object, strides: object = None, dilation_rate: object = 1, padding: str = "valid"
) -> Any:
    """``keras.ops.image.extract_patches``: next to each other without ``strides``."""
    size, rate = _pair(size), _pair(dilation_rate)
    step = size if strides is None else _pair(strides)
    return pictures.extract_patches(operand(image), [1, *size, 1], [1, *step, 1], [1, *rate, 1], padding)


def _pair(value: Any) -> tuple[int, int]:
    first, second = (value, value) if isinstance(value, int) else value
    return first, second


@tf_export("keras.ops.ctc_loss")
def ctc_loss(
    target: TensorLike, output: TensorLike, target_length: TensorLike, output_length: TensorLike, mask_index: int = 0
) -> Any:
    """``keras.ops.ctc_loss``: logits are (batch, steps, classes)."""
    lengths = operand(target_length), operand(output_length)
    return hf.nn.ctc_loss(operand(target), operand(output), *lengths, logits_time_major=False, blank_index=mask_index)


@tf_export("keras.ops.norm")
def norm(x: TensorLike, ord: object = None, axis: object = None, keepdims: bool = False) -> Any:
    """``keras.ops.norm``: of vectors or matrices, the Euclidean one without ``ord``."""
    value = operand(x)
    along = (0, 1) if axis is None and value.ndim == 2 and ord is not None else axis
    return linear.norm(value, "euclidean" if ord is None else ord, along, keepdims)


@tf_export("keras.ops.dot", "keras.ops.vdot")
def dot(x1: TensorLike, x2: TensorLike) -> Any:
    """``keras.ops.dot``: over the last axis of one and the last but one of the other."""
    a, b = operands([x1, x2], [0, 1])
    return a * b if not a.ndim or not b.ndim else hf.tensordot(a, b, axes=[[a.ndim - 1], [builtins.max(b.ndim - 2, 0)]])


@tf_export("keras.ops.allclose")
def allclose(x1: TensorLike, x2: TensorLike, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Any:
    """``keras.ops.allclose``."""
    a, b = operands([x1, x2], [0, 1])
    return hf.all(hf.isclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan))


@tf_export("keras.ops.append")
def append(x1: object, x2: object, axis: int | None = None) -> Any:
    """``keras.ops.append``."""
    a, b = operands([x1, x2], [0, 1])
    return hf.concat([hf.reshape(a, (-1,)), hf.reshape(b, (-1,))] if axis is None else [a, b], axis=axis or 0)


@tf_export("keras.ops.associative_scan")
def associative_scan(f: Callable[[Any, Any], Any], elems: object, reverse: bool = False, axis: int = 0) -> Any:
    """``keras.ops.associative_scan``."""
    return hf.associative_scan(f, elems, reverse=reverse, axis=axis)


@tf_export("keras.ops.average")
def average(x: TensorLike, axis: object = None, weights: TensorLike | None = None) -> Any:
    """``keras.ops.average``."""
    value = operand(x)
    if weights is None:
        return hf.mean(value, axis=axes(axis))
    w = operand(weights)
    if w.ndim < value.ndim:
        w = hf.reshape(w, [-1 if k == axis % value.ndim else 1 for k in range(value.ndim)])
    w = hf.broadcast_to(hf.astype(w, value.dtype), value.shape)
    return hf.sum(value * w, axis=axes(axis)) / hf.sum(w, axis=axes(axis))


@tf_export("keras.ops.conv")
def conv(
    inputs: TensorLike, kernel: object, strides: object = 1, padding: str = "valid", data_format: str | None = None,
    dilation_rate: object = 1,
) -> Any:  # fmt: skip
    """``keras.ops.conv``."""
    layout = _layout(operand(inputs), data_format)
    return network.convolution(inputs, kernel, strides, padding.upper(), layout, dilation_rate)


def _layout(inputs: Tensor, data_format: str | None) -> str:
    """What ``tf.nn`` calls it.  Raises ArgumentError for an unknown one."""
    places = {1: "W", 2: "HW", 3: "DHW"}.get(inputs.ndim - 2)
    if places is None or data_format not in (None, "channels_last", "channels_first"):
        raise ArgumentError("ops", f"data_format is {data_format!r}, of {inputs.type}, with 1 to 3 axes of places.")
    return f"NC{places}" if data_format == "channels_first" else f"N{places}C"


def _pool(
    kind: str, inputs: TensorLike, pool_size: TensorLike, strides: Any, padding: str, data_format: str | None
) -> Any:
    x, step = operand(inputs), pool_size if strides is None else strides
    return network.pool(x, pool_size, kind, step, padding.upper(), _layout(x, data_format))


@tf_export("keras.ops.max_pool")
def max_pool(
    inputs: TensorLike,
    pool_size: TensorLike,
    strides: TensorLike | None = None,
    padding: str = "valid",
    data_format: str | None = None,
) -> Any:
    """``keras.ops.max_pool``."""
    return _pool("MAX", inputs, pool_size, strides, padding, data_format)


@tf_export("keras.ops.average_pool")
def average_pool(
    inputs: TensorLike,
    pool_size: TensorLike,
    strides: TensorLike | None = None,
    padding: str = "valid",
    data_format: str | None = None,
) -> Any:
    """``keras.ops.average_pool``."""
    return _pool("AVG", inputs, pool_size, strides, padding, data_format)


@tf_export("keras.ops.deg2rad")
def deg2rad(x: TensorLike) -> Any:
    """``keras.ops.deg2rad``."""
    return operand(x) * (math.pi / 180)


@tf_export("keras.ops.rad2deg")
def rad2deg(x: TensorLike) -> Any:
    """``keras.ops.rad2deg``."""
    return operand(x) * (180 / math.pi)


@tf_export("keras.ops.diff")
def diff(a: TensorLike, n: int = 1, axis: int = -1) -> Any:
    """``keras.ops.diff``."""
    return hf.diff(operand(a), n=n, axis=axis)


@tf_export("keras.ops.digitize")
def digitize(x: TensorLike, bins: TensorLike) -> Any:
    """``keras.ops.digitize``."""
    value = operand(x)
    value = value if dtypes.is_float(value.dtype) else hf.astype(value, dtypes.float64)  # edges may lie between ints
    return hf.astype(hf.searchsorted(hf.asarray(array_of(bins), value.dtype), value, side="right"), dtypes.int32)


@tf_export("keras.ops.fliplr")
def fliplr(x: TensorLike) -> Any:
    """``keras.ops.fliplr``."""
    return hf.flip(operand(x), axis=1)


@tf_export("keras.ops.flipud")
def flipud(x: TensorLike) -> Any:
    """``keras.ops.flipud``."""
    return hf.flip(operand(x), axis=0)


@tf_export("keras.ops.fmax")
def fmax(x1: TensorLike, x2: TensorLike) -> Any:
    """``keras.ops.fmax``: the other one where one is NaN."""
    a, b = operands([x1, x2], [0, 1])
    return hf.where(hf.isnan(a), b, hf.where(hf.isnan(b), a, hf.maximum(a, b)))


@tf_export("keras.ops.fmin")
def fmin(x1: TensorLike, x2: TensorLike) -> Any:
    """``keras.ops.fmin``: the other one where one is NaN."""
    a, b = operands([x1, x2], [0, 1])
    return hf.where(hf.isnan(a), b, hf.where(hf.isnan(b), a, hf.minimum(a, b)))


@tf_export("keras.ops.get_item")
def get_item(x: TensorLike, key: object) -> Any:
    """``keras.ops.get_item``."""
    return operand(x)[key]


@tf_export("keras.ops.heaviside")
def heaviside(x1: TensorLike, x2: TensorLike) -> Any:
    """``keras.ops.heaviside``."""
    a, b = operands([x1, x2], [0, 1])
    kind = hf.result_type(a, b, dtypes.float32) if dtypes.is_integer(a.dtype) else a.dtype
    return hf.where(a > 0, 1.0, hf.where(a < 0, 0.0, hf.astype(hf.asarray(b), kind)))


@tf_export("keras.ops.hstack")
def hstack(xs: Iterable[Any]) -> Any:
    """``keras.ops.hstack``."""
    parts = [operand(x) for x in xs]
    return hf.concat(parts, axis=0 if parts[0].ndim == 1 else 1)


@tf_export("keras.ops.vstack")
def vstack(xs: Iterable[Any]) -> Any:
    """``keras.ops.vstack``."""
    return hf.concat([hf.expand_dims(x, axis=0) if x.ndim < 2 else x for x in builtins.map(operand, xs)], axis=0)


@tf_export("keras.ops.inner")
def inner(x1: TensorLike, x2: TensorLike) -> Any:
    """``keras.ops.inner``: over the last axes."""
    a, b = operands([x1, x2], [0, 1])
    return a * b if not a.ndim or not b.ndim else hf.tensordot(a, b, axes=[[a.ndim - 1], [b.ndim - 1]])


@tf_export("keras.ops.kron")
def kron(x1: TensorLike, x2: TensorLike) -> Any:
    """``keras.ops.kron``, of matrices."""
    a, b = operands([x1, x2], [0, 1])
    products = hf.einsum("ij,kl->ikjl", a, b)
    return hf.reshape(products, (a.shape[0] * b.shape[0], a.shape[1] * b.shape[1]))


@tf_export("keras.ops.logspace")
def logspace(
    start: object, stop: object, num: int = 50, endpoint: bool = True, base: float = 10, dtype: DTypeLike | None = None
) -> Any:
    """``keras.ops.logspace``."""
    return hf.exp(hf.linspace(start, stop, num, endpoint=endpoint, dtype=dtype) * math.log(base))


@tf_export("keras.ops.median")
def median(x: TensorLike, axis: AxisLike = None, keepdims: bool = False) -> Any:
    """``keras.ops.median``."""
    return hf.median(operand(x), axis, keepdims=keepdims)


@tf_export("keras.ops.quantile")
def quantile(x: TensorLike, q: ArrayLike, axis: AxisLike = None, method: str = "linear", keepdims: bool = False) -> Any:
    """``keras.ops.quantile``."""
    return hf.quantile(operand(x), q, axis, method=method, keepdims=keepdims)


@tf_export("keras.ops.multi_hot")
def multi_hot(
    inputs: TensorLike,
    num_classes: int | None = None,
    axis: int = -1,
    dtype: DTypeLike | None = None,
    sparse: bool = False,
    **old: Any,
) -> Any:
    """``keras.ops.multi_hot``: 1 where a class is among those of a row."""
    x = operand(inputs)
    count = int(old.get("num_tokens") or num_classes or 0)
    reduce = 1 if x.ndim > 1 else 0
    return hf.max(hf.one_hot(x, count, axis, dtypes.float32 if dtype is None else dtype), axis=reduce)


@tf_export("keras.ops.psnr")
def psnr(x1: TensorLike, x2: TensorLike, max_val: float) -> Any:
    """``keras.ops.psnr``: decibels, of all elements together."""
    a, b = operands([x1, x2], [0, 1])
    return 20 * hf.log10(hf.asarray(max_val, a.dtype)) - 10 * hf.log10(hf.mean(hf.square(a - b)))


@tf_export("keras.ops.rot90")
def rot90(array: TensorLike, k: int = 1, axes: Sequence[Any] = (0, 1)) -> Any:
    """``keras.ops.rot90``: ``k`` quarters of a turn from the first of the axes towards the second."""
    x = operand(array)
    for _ in range(k % 4):
        x = swapaxes(hf.flip(x, axis=axes[1]), *axes)
    return x


@tf_export("keras.ops.scan")
def scan(
    f: Callable[..., Any],
    init: object,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int = 1,
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


@tf_export("keras.ops.segment_max")
def segment_max(
    data: TensorLike, segment_ids: TensorLike, num_segments: int | None = None, sorted: bool = False
) -> Any:
    """``keras.ops.segment_max``."""
    ids = operand(segment_ids)
    if num_segments is None:
        num_segments = count_up_to(segment_ids, "ops.segment_max", "Give num_segments")
    return maths.unsorted_segment_max(data, ids, num_segments)


@tf_export("keras.ops.select")
def select(condlist: Any, choicelist: Any, default: ArrayLike = 0) -> Any:
    """``keras.ops.select``: the first choice whose condition holds."""
    result: Any = default
    for chosen, choice in zip(reversed(list(condlist)), reversed(list(choicelist))):
        result = hf.where(operand(chosen), operand(choice), result)
    return result


@tf_export("keras.ops.slice_update")
def slice_update(inputs: TensorLike, start_indices: Iterable[Any], updates: TensorLike) -> Any:
    """``keras.ops.slice_update``."""
    x, new = operands([inputs, updates], [0, 1])
    result = hf.asarray(x).copy()
    starts = [int(s) for s in start_indices]
    result[tuple(builtins.slice(s, s + n) for s, n in zip(starts, new.shape))] = new
    return result


@tf_export("keras.ops.solve_triangular")
def solve_triangular(a: TensorLike, b: TensorLike, lower: bool = False) -> Any:
    """``keras.ops.solve_triangular``."""
    x, y = operands([a, b], [0, 1])
    return hf.linalg.triangular_solve(x, y, lower=lower)


@tf_export("keras.ops.svd")
def svd(x: TensorLike, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    """``keras.ops.svd``: left vectors, values, and right vectors as rows."""
    return (
        tuple(hf.linalg.svd(operand(x), full_matrices=full_matrices)) if compute_uv else hf.linalg.svdvals(operand(x))
    )


@tf_export("keras.ops.switch")
def switch(index: Any, branches: Iterable[Any], *operands: Any) -> Any:
    """``keras.ops.switch``."""
    return hf.switch_case(index, [functools.partial(branch, *operands) for branch in branches])


@tf_export("keras.ops.trapezoid")
def trapezoid(y: TensorLike, x: TensorLike | None = None, dx: float = 1.0, axis: int = -1) -> Any:
    """``keras.ops.trapezoid``."""
    values = hf.moveaxis(operand(y), axis, -1)
    steps: object = (
        dx if x is None else hf.diff(operand(x) if operand(x).ndim == 1 else hf.moveaxis(operand(x), axis, -1))
    )
    return hf.sum((values[..., 1:] + values[..., :-1]) * steps, axis=-1) / 2


@tf_export("keras.ops.tri")
def tri(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike = dtypes.float32) -> Any:
    """``keras.ops.tri``."""
    return hf.tril(hf.ones((N, N if M is None else M), dtype), k=k)


@tf_export("keras.ops.vectorize")
def vectorize(pyfunc: Callable[..., object], *, excluded: object = None, signature: object = None) -> Any:
    """``keras.ops.vectorize``, of functions of scalars."""
    if excluded or signature:
        raise ArgumentError("ops.vectorize", "there is no excluded or signature here; use tf.vectorized_map.")

    def call(*args: Any) -> Any:
        arrays = hf.broadcast_arrays(*builtins.map(operand, args))
        shape = arrays[0].shape
        results = hf.vmap(pyfunc)(*[hf.reshape(x, (-1,)) for x in arrays])
        return hf.reshape(results, shape)

    return call


@tf_export("keras.ops.layer_normalization")
def layer_normalization(
    x: TensorLike, gamma: TensorLike | None = None, beta: TensorLike | None = None, axis: object = -1,
    epsilon: float | None = None,
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


@tf_export("keras.ops.rms_normalization")
def rms_normalization(x: TensorLike, scale: TensorLike = 1, axis: object = -1, epsilon: float | None = None) -> Any:
    """``keras.ops.rms_normalization``."""
    value = operand(x)
    mean = hf.mean(hf.square(value), axis=axes(axis), keepdims=True)
    return value * hf.rsqrt(mean + (1e-7 if epsilon is None else epsilon)) * scale


@tf_export("keras.ops.batch_normalization")
def batch_normalization(
    x: TensorLike,
    mean: Any,
    variance: Any,
    axis: int,
    offset: Any = None,
    scale: Any = None,
    epsilon: float = 1e-3,
) -> Any:
    """``keras.ops.batch_normalization``."""
    value = operand(x)
    shape = [-1 if k == axis % value.ndim else 1 for k in range(value.ndim)]

    def along(part: TensorLike) -> Any:
        return None if part is None else hf.reshape(operand(part), shape)

    return network.batch_normalization(value, along(mean), along(variance), along(offset), along(scale), epsilon)


@tf_export("keras.ops.bincount")
def bincount(
    x: TensorLike, weights: TensorLike | None = None, minlength: int | None = None, name: str | None = None
) -> Any:
    """``tf.math.bincount``: of all elements, or with the axis -1 of each row; its length is what is there and the
    limits. Raises ArgumentError for other axes."""
    return maths.bincount(arr=x, weights=weights, minlength=minlength)


@tf_export("keras.ops.cbrt")
def cbrt(x: Operand, name: str | None = None) -> Any:
    """Elementwise cube root, with the sign of ``x``; integers and bools become float32."""
    return hf.cbrt(x)


@tf_export("keras.ops.cholesky")
def cholesky(x: Operand, name: str | None = None) -> Any:
    """The lower triangular L with ``L @ L.mH == x``, or the upper triangular U with ``U.mH @ U == x``."""
    return hf.linalg.cholesky(x)


@tf_export("keras.ops.det")
def det(x: Operand, name: str | None = None) -> Any:
    """The determinant; 0 for a singular matrix."""
    return hf.linalg.det(x)


@tf_export("keras.ops.eigh")
def eigh(x: Operand, name: str | None = None) -> Any:
    """The eigenvalues of a symmetric (complex: Hermitian) matrix, whose lower triangle is read, in ascending
    order, and the eigenvectors as columns. The gradient is that of such a matrix."""
    return hf.linalg.eigh(x)


@tf_export("keras.ops.empty_like", "keras.ops.zeros_like")
def empty_like(x: Operand, dtype: DTypeLike | None = None, name: str | None = None) -> Any:
    """Zeros with the shape and dtype of ``x``."""
    return hf.zeros_like(x, dtype=dtype)


@tf_export("keras.ops.exp2")
def exp2(x: Operand, name: str | None = None) -> Any:
    """Elementwise power of two: ``2 ** x``; integers and bools become float32."""
    return hf.exp2(x)


@tf_export("keras.ops.hypot")
def hypot(x1: Operand, x2: Operand, name: str | None = None) -> Any:
    """Hypotenuse: ``sqrt(x1**2 + x2**2)`` without overflow in between."""
    return hf.hypot(x1, x2)


@tf_export("keras.ops.inv")
def inv(x: Operand, name: str | None = None) -> Any:
    """The inverse. Raises LinAlgError for a singular matrix; ``solve`` is quicker and more exact."""
    return hf.linalg.inv(x)


@tf_export("keras.ops.isin")
def isin(x1: Operand, x2: Operand, name: str | None = None) -> Any:
    """Where an element of ``x1`` is one of ``x2``, or where it is none if ``invert``: bool in the shape of ``x1``."""
    return hf.isin(x1, x2)


@tf_export("keras.ops.logaddexp")
def logaddexp(x1: Operand, x2: Operand, name: str | None = None) -> Any:
    """Logarithm of the sum of exponentials: ``log(exp(x1) + exp(x2))`` without overflow."""
    return hf.logaddexp(x1, x2)


@tf_export("keras.ops.logdet")
def logdet(x: TensorLike, name: str | None = None) -> Any:
    """``tf.linalg.logdet``, of a positive definite matrix."""
    return linear.logdet(matrix=x)


@tf_export("keras.ops.lstsq")
def lstsq(a: TensorLike, b: TensorLike, name: str | None = None) -> Any:
    """``tf.linalg.lstsq``."""
    return linear.lstsq(matrix=a, rhs=b)


@tf_export("keras.ops.matrix_rank")
def matrix_rank(x: TensorLike, name: str | None = None) -> Any:
    """``tf.linalg.matrix_rank``: how many singular values are above ``tol``, which is no share of the largest."""
    return linear.matrix_rank(a=x)


@tf_export("keras.ops.nan_to_num")
def nan_to_num(
    x: Operand, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None, name: str | None = None
) -> Any:
    """Replace NaN and infinities: ``x`` with NaN and the infinities replaced; by default by 0 and the dtype's
    extreme finite values."""
    return hf.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf)


@tf_export("keras.ops.pinv")
def pinv(x: Operand, name: str | None = None) -> Any:
    """The Moore-Penrose pseudo-inverse, where singular values up to ``rtol`` times the largest count as zero."""
    return hf.linalg.pinv(x)


@tf_export("keras.ops.qr")
def qr(x: TensorLike, name: str | None = None) -> Any:
    """``tf.linalg.qr``."""
    return linear.qr(input=x)


@tf_export("keras.ops.slogdet")
def slogdet(x: Operand, name: str | None = None) -> Any:
    """The sign of the determinant (0 for a singular matrix), and the natural logarithm of its magnitude, which
    does not overflow."""
    return hf.linalg.slogdet(x)


@tf_export("keras.ops.solve")
def solve(a: TensorLike, b: TensorLike, name: str | None = None) -> Any:
    """``tf.linalg.solve``."""
    return linear.solve(matrix=a, rhs=b)


@tf_export("keras.ops.trunc")
def trunc(x: Operand, name: str | None = None) -> Any:
    """Truncate: ``x`` without its fraction."""
    return hf.trunc(x)


@tf_export("keras.ops.saturate_cast")
def saturate_cast(x: TensorLike, dtype: DTypeLike, name: str | None = None) -> Any:
    """``tf.saturate_cast``: what is out of range becomes the nearest value in it."""
    return values.saturate_cast(value=x, dtype=dtype)


@tf_export("keras.ops.signbit")
def signbit(x: Operand, name: str | None = None) -> Any:
    """Where the sign of ``x`` is set, as bool: below zero, at -0.0, and for NaN with that sign."""
    return hf.signbit(x)


@tf_export("keras.ops.add")
def add(x1: Operand, x2: Operand, name: str | None = None) -> Any:
    """Elementwise sum: ``x1 + x2``. Integers wrap around."""
    return hf.add(x1, x2)


@tf_export("keras.ops.all")
def all(x: TensorLike, axis: object = None, keepdims: bool = False, name: str | None = None) -> Any:
    """``tf.reduce_all``."""
    return maths.reduce_all(input_tensor=x, axis=axis, keepdims=keepdims)


@tf_export("keras.ops.any")
def any(x: TensorLike, axis: object = None, keepdims: bool = False, name: str | None = None) -> Any:
    """``tf.reduce_any``."""
    return maths.reduce_any(input_tensor=x, axis=axis, keepdims=keepdims)


@tf_export("keras.ops.arctan2")
def arctan2(x1: Operand, x2: Operand, name: str | None = None) -> Any:
    """The angle of the point (``x2``, ``x1``) in [-pi, pi]."""
    return hf.atan2(x1, x2)


@tf_export("keras.ops.argmax")
def argmax(x: Operand, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Any:
    """The position of the first largest element along ``axis`` (of the flattened tensor for None), as int64."""
    return hf.argmax(x, axis=axis, keepdims=keepdims)


@tf_export("keras.ops.argmin")
def argmin(x: Operand, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Any:
    """The position of the first smallest element along ``axis`` (of the flattened tensor for None), as int64."""
    return hf.argmin(x, axis=axis, keepdims=keepdims)


@tf_export("keras.ops.argsort")
def argsort(x: Operand, axis: Any = -1, name: str | None = None) -> Any:
    """The positions, as int64, that sort ``x`` along ``axis``. The sort is stable whatever ``stable`` says."""
    return hf.argsort(x, axis=axis)


@tf_export("keras.ops.array", "keras.ops.convert_to_tensor")
def array(x: ArrayLike, dtype: Any = None, name: str | None = None) -> Any:
    """``tf.convert_to_tensor``."""
    return values.convert_to_tensor(value=x, dtype=dtype)


@tf_export("keras.ops.broadcast_to")
def broadcast_to(x: TensorLike, shape: object, name: str | None = None) -> Any:
    """``tf.broadcast_to``."""
    return arrays.broadcast_to(input=x, shape=shape)


@tf_export("keras.ops.clip")
def clip(x: Operand, x_min: Operand, x_max: Operand, name: str | None = None) -> Any:
    """Clamp: ``x`` limited to [``min``, ``max``]; a bound of None is no bound. The result has the dtype of ``x``."""
    return hf.clip(x, x_min, x_max)


@tf_export("keras.ops.concatenate")
def concatenate(xs: Any, axis: Any = 0, name: str | None = None) -> Any:
    """``tf.concat``."""
    return arrays.concat(values=xs, axis=axis)


@tf_export("keras.ops.cond")
def cond(
    pred: ArrayLike,
    true_fn: Callable[..., object] | None = None,
    false_fn: Callable[..., object] | None = None,
    name: str | None = None,
) -> Any:
    """``tf.cond``."""
    return control.cond(pred=pred, true_fn=true_fn, false_fn=false_fn)


@tf_export("keras.ops.convert_to_numpy")
def convert_to_numpy(x: TensorLike, name: str | None = None) -> Any:
    """The values of a tensor, a list or an array. Raises TraceError while there are none."""
    return values.array_of(value=x)


@tf_export("keras.ops.copy")
def copy(x: Operand, name: str | None = None) -> Any:
    """Elementwise plus."""
    return hf.positive(x)


@tf_export("keras.ops.count_nonzero")
def count_nonzero(x: TensorLike, axis: object = None, name: str | None = None) -> Any:
    """``tf.math.count_nonzero``."""
    return maths.count_nonzero(input=x, axis=axis)


@tf_export("keras.ops.cross")
def cross(x1: Operand, x2: Operand, name: str | None = None) -> Any:
    """The cross products of vectors of three elements along ``axis``; other axes broadcast."""
    return hf.linalg.cross(x1, x2)


@tf_export("keras.ops.cumprod")
def cumprod(x: Operand, axis: Any = None, name: str | None = None) -> Any:
    """The running product along ``axis`` (not needed for one axis); ``include_initial`` puts a 1 in front."""
    return hf.cumulative_prod(x, axis=axis)


@tf_export("keras.ops.cumsum")
def cumsum(x: Operand, axis: Any = None, name: str | None = None) -> Any:
    """Cumulative sum along ``axis``, which is optional for one axis; ``include_initial`` puts a 0 in front."""
    return hf.cumulative_sum(x, axis=axis)


@tf_export("keras.ops.diag")
def diag(x: TensorLike, name: str | None = None) -> Any:
    """``tf.linalg.diag``, of one diagonal."""
    return linear.diag(diagonal=x)


@tf_export("keras.ops.diagonal")
def diagonal(x: Operand, name: str | None = None) -> Any:
    """The ``offset``-th diagonal of the last two axes, as the last axis."""
    return hf.diagonal(x)


@tf_export("keras.ops.divide", "keras.ops.true_divide")
def divide(x1: ArrayLike, x2: ArrayLike, name: str | None = None) -> Any:
    """``tf.divide``: ints divide to float64, those of 8 and 16 bits to float32."""
    return maths.divide(x=x1, y=x2)


@tf_export("keras.ops.divide_no_nan")
def divide_no_nan(x1: TensorLike, x2: TensorLike, name: str | None = None) -> Any:
    """``tf.math.divide_no_nan``: 0 where ``y`` is."""
    return maths.divide_no_nan(x=x1, y=x2)


@tf_export("keras.ops.equal")
def equal(x1: Operand, x2: Operand, name: str | None = None) -> Any:
    """Elementwise equality: ``x1 == x2``; NaN equals nothing."""
    return hf.equal(x1, x2)


@tf_export("keras.ops.expand_dims")
def expand_dims(x: Operand, axis: AxisLike = 0, name: str | None = None) -> Any:
    """Insert axes: ``x`` with axes of extent 1 inserted, so that they stand at ``axis`` (an int or several) of the
    result."""
    return hf.expand_dims(x, axis=axis)


@tf_export("keras.ops.eye")
def eye(N: int, M: int | None = None, dtype: DTypeLike = dtypes.float32, name: str | None = None) -> Any:
    """``tf.eye``."""
    return arrays.eye(num_rows=N, num_columns=M, dtype=dtype)


@tf_export("keras.ops.flip")
def flip(x: Operand, axis: Any = None, name: str | None = None) -> Any:
    """Reverse the order of elements."""
    return hf.flip(x, axis=axis)


@tf_export("keras.ops.floor_divide")
def floor_divide(x1: Operand, x2: Operand, name: str | None = None) -> Any:
    """Floor division: ``x1 // x2``, rounded towards minus infinity. Raises DivisionError for an integer divided by
    zero."""
    return hf.floor_divide(x1, x2)


@tf_export("keras.ops.full")
def full(shape: ShapeLike, fill_value: TensorLike, dtype: DTypeLike | None = None, name: str | None = None) -> Any:
    """A tensor of ``shape`` that holds the scalar ``fill_value`` everywhere, in its own dtype unless one is given."""
    return hf.full(shape=shape, fill_value=fill_value, dtype=dtype)


@tf_export("keras.ops.full_like")
def full_like(x: Operand, fill_value: object, dtype: DTypeLike | None = None, name: str | None = None) -> Any:
    """The scalar ``fill_value`` everywhere, with the shape and dtype of ``x``."""
    return hf.full_like(x, fill_value, dtype=dtype)


@tf_export("keras.ops.gelu")
def gelu(x: Operand, approximate: bool = True, name: str | None = None) -> Any:
    """Gaussian error linear unit (GELU): ``x`` times the normal distribution function at ``x``; ``approximate``
    takes the formula with tanh."""
    return hf.nn.gelu(x, approximate=approximate)


@tf_export("keras.ops.greater")
def greater(x1: Operand, x2: Operand, name: str | None = None) -> Any:
    """Elementwise comparison: ``x1 > x2``."""
    return hf.greater(x1, x2)


@tf_export("keras.ops.greater_equal")
def greater_equal(x1: Operand, x2: Operand, name: str | None = None) -> Any:
    """Elementwise comparison: ``x1 >= x2``."""
    return hf.greater_equal(x1, x2)


@tf_export("keras.ops.identity")
def identity(n: int, dtype: DTypeLike = dtypes.float32, name: str | None = None) -> Any:
    """``tf.eye``."""
    return arrays.eye(num_rows=n, dtype=dtype)


@tf_export("keras.ops.isclose")
def isclose(x1: Operand, x2: Operand, name: str | None = None) -> Any:
    """Where ``|x1 - x2| <= atol + rtol * |x2|``; equal infinities are close, NaN only with ``equal_nan``."""
    return hf.isclose(x1, x2)


@tf_export("keras.ops.leaky_relu")
def leaky_relu(x: Operand, negative_slope: float = 0.2, name: str | None = None) -> Any:
    """Leaky ReLU: ``x`` where positive, ``alpha * x`` elsewhere."""
    return hf.nn.leaky_relu(x, alpha=negative_slope)


@tf_export("keras.ops.less")
def less(x1: Operand, x2: Operand, name: str | None = None) -> Any:
    """Elementwise comparison: ``x1 < x2``."""
    return hf.less(x1, x2)


@tf_export("keras.ops.less_equal")
def less_equal(x1: Operand, x2: Operand, name: str | None = None) -> Any:
    """Elementwise comparison: ``x1 <= x2``."""
    return hf.less_equal(x1, x2)


@tf_export("keras.ops.linspace")
def linspace(start: TensorLike, stop: TensorLike, num: int = 50, name: str | None = None) -> Any:
    """Evenly spaced values: ``num`` of them from ``start`` to ``stop``, which is the last one exactly when
    ``endpoint``."""
    return hf.linspace(start, stop, num=num)


@tf_export("keras.ops.log10")
def log10(x: Operand, name: str | None = None) -> Any:
    """The logarithm to base 10."""
    return hf.log10(x)


@tf_export("keras.ops.log2")
def log2(x: Operand, name: str | None = None) -> Any:
    """The logarithm to base 2."""
    return hf.log2(x)


@tf_export("keras.ops.log_softmax")
def log_softmax(x: ArrayLike, axis: Any = -1, name: str | None = None) -> Any:
    """``tf.nn.log_softmax``."""
    return maths.log_softmax(logits=x, axis=axis)


@tf_export("keras.ops.logical_and")
def logical_and(x1: Operand, x2: Operand, name: str | None = None) -> Any:
    """Both are true; anything but zero is true."""
    return hf.logical_and(x1, x2)


@tf_export("keras.ops.logical_or")
def logical_or(x1: Operand, x2: Operand, name: str | None = None) -> Any:
    """Either is true; anything but zero is true."""
    return hf.logical_or(x1, x2)


@tf_export("keras.ops.logical_xor")
def logical_xor(x1: Operand, x2: Operand, name: str | None = None) -> Any:
    """Exactly one is true; anything but zero is true."""
    return hf.logical_xor(x1, x2)


@tf_export("keras.ops.logsumexp")
def logsumexp(x: TensorLike, axis: object = None, keepdims: bool = False, name: str | None = None) -> Any:
    """``tf.reduce_logsumexp``."""
    return maths.reduce_logsumexp(input_tensor=x, axis=axis, keepdims=keepdims)


@tf_export("keras.ops.map")
def map(f: Callable[..., object], xs: Any, name: str | None = None) -> Any:
    """``tf.map_fn``; the dtype of what the function returns is checked where one is given."""
    return control.map_fn(fn=f, elems=xs)


@tf_export("keras.ops.matmul")
def matmul(x1: object, x2: object, name: str | None = None) -> Any:
    """``tf.matmul``. Both operands have two axes or more, as TensorFlow wants it."""
    return linear.matmul(a=x1, b=x2)


@tf_export("keras.ops.maximum")
def maximum(x1: Operand, x2: Operand, name: str | None = None) -> Any:
    """The larger operand; NaN if either is. The gradient of a tie goes to ``x1``."""
    return hf.maximum(x1, x2)


@tf_export("keras.ops.minimum")
def minimum(x1: Operand, x2: Operand, name: str | None = None) -> Any:
    """The smaller operand; NaN if either is. The gradient of a tie goes to ``x1``."""
    return hf.minimum(x1, x2)


@tf_export("keras.ops.mod")
def mod(x1: Operand, x2: Operand, name: str | None = None) -> Any:
    """Elementwise remainder: ``x1 % x2``, with the sign of ``x2``. Raises DivisionError for an integer remainder
    by zero."""
    return hf.remainder(x1, x2)


@tf_export("keras.ops.moments")
def moments(x: TensorLike, axes: PerAxis, keepdims: bool = False, name: str | None = None) -> Any:
    """``tf.nn.moments``: mean and variance."""
    return network.moments(x=x, axes=axes, keepdims=keepdims)


@tf_export("keras.ops.moveaxis")
def moveaxis(x: Operand, source: object, destination: object, name: str | None = None) -> Any:
    """Move axes: ``x`` with the ``source`` axes at the ``destination`` places; the other axes keep their order."""
    return hf.moveaxis(x, source, destination)


@tf_export("keras.ops.multiply")
def multiply(x1: Operand, x2: Operand, name: str | None = None) -> Any:
    """Elementwise product: ``x1 * x2``. Integers wrap around."""
    return hf.multiply(x1, x2)


@tf_export("keras.ops.nonzero")
def nonzero(x: Operand, name: str | None = None) -> Any:
    """The positions of elements that are not zero, one int64 tensor per axis."""
    return hf.nonzero(x)


@tf_export("keras.ops.normalize")
def normalize(x: TensorLike, axis: object = -1, name: str | None = None) -> Any:
    """``tf.math.l2_normalize``: over all axes unless some are given."""
    return maths.l2_normalize(x=x, axis=axis)


@tf_export("keras.ops.not_equal")
def not_equal(x1: Operand, x2: Operand, name: str | None = None) -> Any:
    """Elementwise inequality: ``x1 != x2``; NaN differs from everything."""
    return hf.not_equal(x1, x2)


@tf_export("keras.ops.one_hot")
def one_hot(x: Any, num_classes: SupportsIndex, axis: Any = -1, dtype: Any = None, name: str | None = None) -> Any:
    """``tf.one_hot``."""
    return arrays.one_hot(indices=x, depth=num_classes, axis=axis, dtype=dtype)


@tf_export("keras.ops.ones_like")
def ones_like(x: Operand, dtype: DTypeLike | None = None, name: str | None = None) -> Any:
    """Ones with the shape and dtype of ``x``."""
    return hf.ones_like(x, dtype=dtype)


@tf_export("keras.ops.outer")
def outer(x1: Operand, x2: Operand, name: str | None = None) -> Any:
    """All products of the elements of two vectors: ``out[i, j] = x1[i] * x2[j]``."""
    return hf.linalg.outer(x1, x2)


@tf_export("keras.ops.pad")
def pad(x: ArrayLike, pad_width: Any, mode: str = "constant", constant_values: Any = 0, name: str | None = None) -> Any:
    """``tf.pad``."""
    return arrays.pad(tensor=x, paddings=pad_width, mode=mode, constant_values=constant_values)


@tf_export("keras.ops.power")
def power(x1: Operand, x2: Operand, name: str | None = None) -> Any:
    """Elementwise power: ``x1 ** x2``."""
    return hf.pow(x1, x2)


@tf_export("keras.ops.relu")
def relu(x: Operand, name: str | None = None) -> Any:
    """Rectified linear unit (ReLU): ``max(x, 0)``; NaN stays NaN. The derivative at 0 is 0."""
    return hf.nn.relu(x)


@tf_export("keras.ops.repeat")
def repeat(x: TensorLike, repeats: ArrayLike, axis: Any = None, name: str | None = None) -> Any:
    """``tf.repeat``."""
    return arrays.repeat(input=x, repeats=repeats, axis=axis)


@tf_export("keras.ops.reshape")
def reshape(x: ArrayLike, newshape: object, name: str | None = None) -> Any:
    """``tf.reshape``."""
    return arrays.reshape(tensor=x, shape=newshape)


@tf_export("keras.ops.roll")
def roll(x: Operand, shift: ArrayLike, axis: AxisLike = None, name: str | None = None) -> Any:
    """Roll: ``x`` shifted cyclically by ``shift`` places along ``axis``; None rolls the flattened tensor."""
    return hf.roll(x, shift, axis=axis)


@tf_export("keras.ops.scatter")
def scatter(indices: TensorLike, values: TensorLike, shape: object, name: str | None = None) -> Any:
    """``tf.scatter_nd``: what goes to one place adds up."""
    return arrays.scatter_nd(indices=indices, updates=values, shape=shape)


@tf_export("keras.ops.scatter_update")
def scatter_update(inputs: TensorLike, indices: TensorLike, updates: TensorLike, name: str | None = None) -> Any:
    """``tf.tensor_scatter_nd_update``."""
    return arrays.tensor_scatter_nd_update(tensor=inputs, indices=indices, updates=updates)


@tf_export("keras.ops.searchsorted")
def searchsorted(sorted_sequence: TensorLike, values: TensorLike, side: str = "left", name: str | None = None) -> Any:
    """``tf.searchsorted``."""
    return arrays.searchsorted(sorted_sequence=sorted_sequence, values=values, side=side)


@tf_export("keras.ops.size")
def size(x: TensorLike, name: str | None = None) -> Any:
    """``tf.size``: a scalar tensor."""
    return values.size(input=x)


@tf_export("keras.ops.slice")
def slice(inputs: ArrayLike, start_indices: TensorLike, shape: TensorLike, name: str | None = None) -> Any:
    """``tf.slice``: a size of -1 is all that is left."""
    return arrays.slice_(input_=inputs, begin=start_indices, size=shape)


@tf_export("keras.ops.sort")
def sort(x: ArrayLike, axis: Any = -1, name: str | None = None) -> Any:
    """``tf.sort``."""
    return arrays.sort(values=x, axis=axis)


@tf_export("keras.ops.squeeze")
def squeeze(x: Any, axis: object = None, name: str | None = None) -> Any:
    """``tf.squeeze``."""
    return arrays.squeeze(input=x, axis=axis)


@tf_export("keras.ops.stop_gradient")
def stop_gradient(variable: Operand, name: str | None = None) -> Any:
    """Stop the gradient: ``x``, through which no gradient flows."""
    return hf.stop_gradient(variable)


@tf_export("keras.ops.subtract")
def subtract(x1: Operand, x2: Operand, name: str | None = None) -> Any:
    """Elementwise difference: ``x1 - x2``. Integers wrap around."""
    return hf.subtract(x1, x2)


@tf_export("keras.ops.take_along_axis")
def take_along_axis(x: Operand, indices: Operand, axis: Any = -1, name: str | None = None) -> Any:
    """For each element of ``indices``, the element of ``x`` at that position along ``axis`` and that place
    otherwise."""
    return hf.take_along_axis(x, indices, axis=axis)


@tf_export("keras.ops.tensordot")
def tensordot(x1: TensorLike, x2: TensorLike, axes: object = 2, name: str | None = None) -> Any:
    """``tf.tensordot``."""
    return linear.tensordot(a=x1, b=x2, axes=axes)


@tf_export("keras.ops.tile")
def tile(x: TensorLike, repeats: object, name: str | None = None) -> Any:
    """``tf.tile``."""
    return arrays.tile(input=x, multiples=repeats)


@tf_export("keras.ops.top_k")
def top_k(x: TensorLike, k: int = 1, name: str | None = None) -> Any:
    """``tf.math.top_k``."""
    return arrays.top_k(input=x, k=k)


@tf_export("keras.ops.transpose")
def transpose(x: TensorLike, axes: object = None, name: str | None = None) -> Any:
    """``tf.transpose``."""
    return arrays.transpose(a=x, perm=axes)


@tf_export("keras.ops.tril")
def tril(x: Operand, k: int = 0, name: str | None = None) -> Any:
    """Lower triangle: ``x`` with zeros above the ``k``-th diagonal of the last two axes."""
    return hf.tril(x, k=k)


@tf_export("keras.ops.triu")
def triu(x: Operand, k: int = 0, name: str | None = None) -> Any:
    """Upper triangle: ``x`` with zeros below the ``k``-th diagonal of the last two axes."""
    return hf.triu(x, k=k)


@tf_export("keras.ops.unstack")
def unstack(x: ArrayLike, num: Any = None, axis: Any = 0, name: str | None = None) -> Any:
    """``tf.unstack``."""
    return arrays.unstack(value=x, num=num, axis=axis)


@tf_export("keras.ops.vectorized_map")
def vectorized_map(function: Callable[[Any], Any], elements: object, name: str | None = None) -> Any:
    """``tf.vectorized_map``."""
    return control.vectorized_map(fn=function, elems=elements)


@tf_export("keras.ops.where")
def where(condition: TensorLike, x1: ArrayLike | None = None, x2: Any = None, name: str | None = None) -> Any:
    """``tf.where``: without ``x`` and ``y`` the places where the condition holds, one in each row."""
    return arrays.where(condition=condition, x=x1, y=x2)


@tf_export("keras.ops.while_loop")
def while_loop(cond: Callable[..., Any], body: Callable[..., Any], loop_vars: object, name: str | None = None) -> Any:
    """``tf.while_loop``: Python's ints among the variables are int32; ``shape_invariants`` let what is carried
    grow where Python runs the loop, outside of functions."""
    return control.while_loop(cond=cond, body=body, loop_vars=loop_vars)


@tf_export("keras.ops.categorical_crossentropy")
def categorical_crossentropy(
    target: TensorLike, output: TensorLike, from_logits: bool = False, name: str | None = None
) -> Any:
    """``tf.keras.losses.categorical_crossentropy``: the loss of each sample."""
    return models.categorical_crossentropy(y_true=target, y_pred=output, from_logits=from_logits)


@tf_export("keras.ops.image.resize")
def resize(images: ArrayLike, size: TensorLike, interpolation: Any = "bilinear", name: str | None = None) -> Any:
    """``tf.image.resize``: float32, but by "nearest". Raises ArgumentError for a method that is not there."""
    return pictures.resize(images=images, size=size, method=interpolation)


export(hf.custom_gradient, "keras.ops.custom_gradient")
export(hf.fori_loop, "keras.ops.fori_loop")
