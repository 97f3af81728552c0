"""Arithmetic and reductions, where TensorFlow's differ."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

import hybridflow as hf
from hybridflow.compat.adapters import special
from hybridflow.compat.adapters.values import Extents, axes, count_up_to, extent_by, operand, operands
from hybridflow.compat.export import Operand, TensorLike, export, tf_export
from hybridflow.compiler.ir import dtypes
from hybridflow.core.tensor import Operators, Tensor
from hybridflow.errors import ArgumentError, ShapeError

if TYPE_CHECKING:
    from hybridflow.core.type_aliases import ArrayLike, AxisLike, DTypeLike


_OLD = {"keep_dims": "keepdims", "reduction_indices": "axis"}  # TensorFlow 1's names of arguments


@tf_export("math.divide", "math.truediv", "divide", "truediv", "realdiv")
def divide(x: Any, y: Any, name: str | None = None) -> Any:
    """``tf.divide``: ints divide to float64, those of 8 and 16 bits to float32."""
    if isinstance(x, hf.ragged.Ragged):
        return x._with(divide, y)
    if isinstance(y, hf.ragged.Ragged):
        return y._with(lambda b, a: divide(a, b), x)
    if not isinstance(x, Operators) and not isinstance(y, Operators) and np.ndim(x) == np.ndim(y) == 0:
        return x / y
    a, b = operands([x, y], [0, 1])
    kinds = [v.dtype for v in (a, b) if isinstance(v, Operators)]
    if all(dtypes.is_integer(kind) for kind in kinds) and not isinstance(a, float) and not isinstance(b, float):
        wide = dtypes.float64 if max(kind.itemsize for kind in kinds) > 2 else dtypes.float32
        a, b = (hf.astype(v, wide) if isinstance(v, Operators) else v for v in (a, b))
    return hf.divide(a, b)


@tf_export("math.divide_no_nan")
def divide_no_nan(x: Operand, y: Operand, name: str | None = None) -> Any:
    """``tf.math.divide_no_nan``: 0 where ``y`` is."""
    a, b = x, y
    none = hf.equal(b, 0)
    return hf.where(none, 0.0, hf.divide(a, hf.where(none, 1, b)))


@tf_export("math.multiply_no_nan")
def multiply_no_nan(x: Operand, y: Operand, name: str | None = None) -> Any:
    """``tf.math.multiply_no_nan``: 0 where ``y`` is, whatever ``x`` is there."""
    a, b = x, y
    none = hf.equal(b, 0)
    product = hf.multiply(hf.where(hf.logical_and(none, hf.logical_not(hf.isfinite(a))), 0, a), b)
    return hf.where(none, product + 0.0, product)  # which depends on ``y`` there, too


@tf_export("truncatediv")
def truncatediv(x: object, y: object, name: str | None = None) -> Any:
    """``tf.truncatediv``: the quotient towards 0."""
    a, b = operands([x, y], [0, 1])
    if not any(isinstance(v, Operators) and dtypes.is_float(v.dtype) for v in (a, b)):
        whole = hf.floor_divide(a, b)
        rest = hf.not_equal(hf.multiply(whole, b), a)
        return hf.where(hf.logical_and(hf.less(whole, 0), rest), whole + 1, whole)
    return hf.trunc(hf.divide(a, b))


@tf_export("truncatemod")
def truncatemod(x: TensorLike, y: TensorLike, name: str | None = None) -> Any:
    """``tf.truncatemod``: the remainder with the sign of ``x``."""
    a, b = operands([x, y], [0, 1])
    return hf.subtract(a, hf.multiply(truncatediv(a, b), b))


@tf_export("math.squared_difference")
def squared_difference(x: Operand, y: Operand, name: str | None = None) -> Any:
    """``tf.math.squared_difference``."""
    a, b = x, y
    return hf.square(hf.subtract(a, b))


@tf_export("math.add_n", "math.accumulate_n", "add_n")
def add_n(inputs: Iterable[Any], name: str | None = None) -> Any:
    """``tf.add_n``."""
    parts = [inputs] if isinstance(inputs, Operators) else list(inputs)
    if not parts:
        raise ArgumentError("add_n", "there is nothing to add.")
    parts = operands(parts, [k for k, _ in enumerate(parts)])
    total = parts[0] if len(parts) > 1 else hf.positive(parts[0])
    for part in parts[1:]:
        if part.shape != parts[0].shape:
            raise ShapeError("add_n", f"the operands are {parts[0].type} and {part.type}; they must have one shape.")
        total = hf.add(total, part)
    return total


@tf_export("math.xlogy")
def xlogy(x: Operand, y: Operand, name: str | None = None) -> Any:
    """``tf.math.xlogy``: ``x * log(y)``, 0 where ``x`` is."""
    a, b = x, y
    none = hf.equal(a, 0)
    return hf.where(none, 0.0, hf.multiply(a, hf.log(hf.where(none, 1.0, b))))


@tf_export("math.xdivy")
def xdivy(x: Operand, y: Operand, name: str | None = None) -> Any:
    """``tf.math.xdivy``: ``x / y``, 0 where ``x`` is."""
    a, b = x, y
    none = hf.equal(a, 0)
    return hf.where(none, 0.0, hf.divide(a, hf.where(none, 1.0, b)))


@tf_export("math.reduce_sum", "reduce_sum", v1_names=_OLD, op_type="Sum")
def reduce_sum(input_tensor: TensorLike, axis: object = None, keepdims: bool = False, name: str | None = None) -> Any:
    """``tf.reduce_sum``: in the operand's dtype."""
    if isinstance(input_tensor, hf.ragged.Ragged):
        return input_tensor.sum(axes(axis))
    x = operand(input_tensor)
    return hf.sum(x, axis=axes(axis), dtype=x.dtype, keepdims=keepdims)


@tf_export("math.reduce_prod", "reduce_prod", v1_names=_OLD, op_type="Prod")
def reduce_prod(input_tensor: TensorLike, axis: object = None, keepdims: bool = False, name: str | None = None) -> Any:
    """``tf.reduce_prod``: in the operand's dtype."""
    if isinstance(input_tensor, Extents):
        result: object = 1
        for extent in input_tensor:
            result = extent * result
        return result
    x = operand(input_tensor)
    return hf.prod(x, axis=axes(axis), dtype=x.dtype, keepdims=keepdims)


@tf_export("math.reduce_mean", "reduce_mean", v1_names=_OLD, op_type="Mean")
def reduce_mean(input_tensor: TensorLike, axis: object = None, keepdims: bool = False, name: str | None = None) -> Any:
    """``tf.reduce_mean``: of ints it is an int."""
    if isinstance(input_tensor, hf.ragged.Ragged):
        return _mean_of_rows(input_tensor, axes(axis))
    x = operand(input_tensor)
    if not dtypes.is_integer(x.dtype):
        return hf.mean(x, axis=axes(axis), keepdims=keepdims)
    total = hf.sum(x, axis=axes(axis), dtype=x.dtype, keepdims=True)
    count = hf.sum(hf.ones_like(x), axis=axes(axis), dtype=x.dtype, keepdims=True)
    mean = truncatediv(total, count)
    return mean if keepdims else hf.squeeze(mean, axes(axis))


def _mean_of_rows(rows: hf.ragged.Ragged, axis: int | None) -> Any:
    """Means along rows: NaN of empty ones, and float64 of ints."""
    values = rows.map(lambda x: hf.astype(x, dtypes.float64) if dtypes.is_integer(x.dtype) else x)
    return values.sum(axis) / values.map(hf.ones_like).sum(axis)


@tf_export("math.reduce_max", "reduce_max", v1_names=_OLD, op_type="Max")
def reduce_max(input_tensor: TensorLike, axis: object = None, keepdims: bool = False, name: str | None = None) -> Any:
    """``tf.reduce_max``: of no elements it is the least value of the dtype."""
    if isinstance(input_tensor, hf.ragged.Ragged):
        return input_tensor.max(axes(axis))
    return _extreme(hf.max, operand(input_tensor), axes(axis), keepdims, least=True)


@tf_export("math.reduce_min", "reduce_min", v1_names=_OLD, op_type="Min")
def reduce_min(input_tensor: TensorLike, axis: object = None, keepdims: bool = False, name: str | None = None) -> Any:
    """``tf.reduce_min``: of no elements it is the greatest value of the dtype."""
    if isinstance(input_tensor, hf.ragged.Ragged):
        return input_tensor.min(axes(axis))
    return _extreme(hf.min, operand(input_tensor), axes(axis), keepdims, least=False)


def _extreme(reduce: Callable[..., object], x: ArrayLike, axis: AxisLike, keepdims: bool, least: bool) -> Any:
    """``hf.max`` or ``hf.min``; of no elements, the value to which every other one is preferred."""
    x = hf.asarray(x)
    if 0 not in x.shape or x.dtype == dtypes.bool_:
        return reduce(x, axis=axis, keepdims=keepdims)
    if dtypes.is_integer(x.dtype):
        limit: Any = getattr(ml_dtypes.iinfo(x.dtype), "min" if least else "max")
    else:
        limit = -math.inf if least else math.inf
    return hf.sum(x, axis=axis, dtype=x.dtype, keepdims=keepdims) + limit  # a sum of none is 0


@tf_export(
    "math.reduce_all",
    "keras.backend.all",
    "reduce_all",
    v1_names=_OLD,
    op_type="All",
)
def reduce_all(input_tensor: TensorLike, axis: object = None, keepdims: bool = False, name: str | None = None) -> Any:
    """``tf.reduce_all``."""
    return hf.all(operand(input_tensor), axis=axes(axis), keepdims=keepdims)


@tf_export(
    "math.reduce_any",
    "keras.backend.any",
    "reduce_any",
    v1_names=_OLD,
    op_type="Any",
)
def reduce_any(input_tensor: TensorLike, axis: object = None, keepdims: bool = False, name: str | None = None) -> Any:
    """``tf.reduce_any``."""
    return hf.any(operand(input_tensor), axis=axes(axis), keepdims=keepdims)


@tf_export("math.reduce_std", v1_names=_OLD)
def reduce_std(input_tensor: TensorLike, axis: object = None, keepdims: bool = False, name: str | None = None) -> Any:
    """``tf.math.reduce_std``."""
    return hf.std(operand(input_tensor), axis=axes(axis), keepdims=keepdims)


@tf_export("math.reduce_variance", v1_names=_OLD)
def reduce_variance(
    input_tensor: TensorLike, axis: object = None, keepdims: bool = False, name: str | None = None
) -> Any:
    """``tf.math.reduce_variance``."""
    return hf.var(operand(input_tensor), axis=axes(axis), keepdims=keepdims)


@tf_export(
    "math.reduce_logsumexp",
    "reduce_logsumexp",
    v1_names=_OLD,
    op_type="ReduceLogSumExp",
)
def reduce_logsumexp(
    input_tensor: TensorLike, axis: object = None, keepdims: bool = False, name: str | None = None
) -> Any:
    """``tf.reduce_logsumexp``."""
    return hf.logsumexp(operand(input_tensor), axis=axes(axis), keepdims=keepdims)


@tf_export("math.reduce_euclidean_norm", v1_names=_OLD)
def reduce_euclidean_norm(
    input_tensor: TensorLike, axis: object = None, keepdims: bool = False, name: str | None = None
) -> Any:
    """``tf.math.reduce_euclidean_norm``."""
    return hf.linalg.vector_norm(operand(input_tensor), axis=axes(axis), keepdims=keepdims)


@tf_export(
    "math.count_nonzero",
    v1_names={"input_tensor": "input", "keep_dims": "keepdims", "reduction_indices": "axis"},
    op_type="CountNonzero",
)
def count_nonzero(
    input: TensorLike,
    axis: object = None,
    keepdims: bool | None = None,
    dtype: DTypeLike = dtypes.int64,
    name: str | None = None,
) -> Any:
    """``tf.math.count_nonzero``."""
    return hf.astype(hf.count_nonzero(operand(input), axis=axes(axis), keepdims=bool(keepdims)), dtype)


@tf_export("math.zero_fraction", "nn.zero_fraction")
def zero_fraction(value: TensorLike, name: str | None = None) -> Any:
    """``tf.math.zero_fraction``: float32."""
    return hf.mean(hf.astype(hf.equal(operand(value), 0), dtypes.float32))


@tf_export("math.cumsum", "cumsum")
def cumsum(
    x: TensorLike, axis: int = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> Any:
    """``tf.cumsum``."""
    return _running(hf.cumulative_sum, operand(x), axis, exclusive, reverse)


@tf_export("math.cumprod")
def cumprod(
    x: TensorLike, axis: int = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> Any:
    """``tf.math.cumprod``."""
    return _running(hf.cumulative_prod, operand(x), axis, exclusive, reverse)


def _running(fold: Callable[..., Any], x: Tensor, axis: object, exclusive: bool, reverse: bool) -> Any:
    along = axes(axis)
    x = hf.flip(x, along) if reverse else x
    totals = fold(x, axis=along, dtype=x.dtype, include_initial=exclusive)
    if exclusive:
        key = [slice(None)] * x.ndim
        key[along] = slice(None, -1)
        totals = totals[tuple(key)]
    return hf.flip(totals, along) if reverse else totals


@tf_export("keras.backend.clip", "clip_by_value")
def clip_by_value(
    t: Operand, clip_value_min: ArrayLike | None, clip_value_max: ArrayLike | None, name: str | None = None
) -> Any:
    """``tf.clip_by_value``."""
    return hf.clip(t, clip_value_min, clip_value_max)


@tf_export("math.round", "math.rint", "keras.backend.round", "keras.ops.round", "round")
def round(x: Operand, name: str | None = None) -> Any:
    """``tf.round``: halves go to the even neighbour."""
    return hf.round(x)


@tf_export("math.polyval")
def polyval(coeffs: Iterable[object], x: TensorLike, name: str | None = None) -> Any:
    """``tf.math.polyval``: the coefficient of the highest power comes first."""
    at = operand(x)
    result = hf.zeros_like(at)
    for coefficient in coeffs:
        result = result * at + coefficient
    return result


@tf_export("math.bincount")
def bincount(
    arr: TensorLike, weights: TensorLike | None = None, minlength: int | None = None, maxlength: int | None = None,
    dtype: DTypeLike = dtypes.int32, name: str | None = None, axis: int | None = None, binary_output: bool = False,
) -> Any:  # fmt: skip
    """``tf.math.bincount``: of all elements, or with the axis -1 of each row; its length is what is there and the
    limits.  Raises ArgumentError for other axes."""
    values = operand(arr)
    if axis not in (None, 0, -1) or (axis == -1 and values.ndim > 2):
        raise ArgumentError("math.bincount", f"axis is {axis}, of {values.type}; all is counted, or rows of a matrix.")
    hf.debugging.assert_non_negative(values, message="what is counted is negative")
    values = values if axis == -1 and values.ndim == 2 else hf.reshape(values, (1, -1))
    least = minlength or 0
    if maxlength is None or least < maxlength:
        largest = count_up_to(arr, "math.bincount", "Give minlength and maxlength alike")
        least = max(largest, least)
    length = least if maxlength is None else min(least, maxlength)
    rows = values.shape[0]
    counted = None if weights is None else hf.reshape(operand(weights), (-1,))
    places = hf.expand_dims(hf.arange(rows, dtype=values.dtype), axis=-1) * length + values
    places = hf.where(hf.less(values, length), places, -1)  # what lies beyond is left out
    counts = hf.bincount(hf.reshape(places, (-1,)), counted, length=rows * length)
    counts = hf.astype(counts, dtype if counted is None else counted.dtype)
    counts = hf.reshape(counts, (rows, length) if axis == -1 and operand(arr).ndim == 2 else (length,))
    return hf.astype(hf.greater(counts, 0), dtype) if binary_output else counts


@tf_export("math.confusion_matrix")
def confusion_matrix(
    labels: TensorLike,
    predictions: TensorLike,
    num_classes: Any = None,
    weights: TensorLike | None = None,
    dtype: DTypeLike = dtypes.int32,
    name: str | None = None,
) -> Any:
    """``tf.math.confusion_matrix``: rows are labels."""
    rows, columns = operand(labels), operand(predictions)
    if num_classes is None:
        classes = max(count_up_to(x, "math.confusion_matrix", "Give num_classes") for x in (labels, predictions))
    else:
        classes = int(num_classes)
    counted = hf.ones(rows.shape, dtype) if weights is None else hf.astype(operand(weights), dtype)
    for numbers in (rows, columns):
        hf.debugging.assert_less(numbers, classes, message=f"a class is not below num_classes, {classes}")
        hf.debugging.assert_non_negative(numbers, message="a class is negative")
    flat = hf.scatter_add(hf.zeros((classes * classes,), dtype), rows * classes + columns, counted)
    return hf.reshape(flat, (classes, classes))


def _count(segment_ids: TensorLike) -> Any:
    """How many segments there are, by the number of the last one."""
    remedy = "Use the function of unsorted segments, which is told how many there are"
    return extent_by(segment_ids, lambda _, ids: ids[-1] + 1, "math.segment", remedy)


@tf_export("math.segment_sum")
def segment_sum(data: TensorLike, segment_ids: TensorLike, name: str | None = None) -> Any:
    """``tf.math.segment_sum``."""
    ids = operand(segment_ids)
    return unsorted_segment_sum(data, ids, _count(segment_ids))


@tf_export("math.segment_mean")
def segment_mean(data: TensorLike, segment_ids: TensorLike, name: str | None = None) -> Any:
    """``tf.math.segment_mean``: 0 for a segment without elements."""
    ids = operand(segment_ids)
    return unsorted_segment_mean(data, ids, _count(segment_ids))


def _unsorted(function: Callable[..., object], data: TensorLike, segment_ids: TensorLike, num_segments: Any) -> Any:
    """What a function of ours makes of segments, whose numbers must be below ``num_segments``; negative ones are left
    out."""
    values, ids, count = operand(data), operand(segment_ids), int(num_segments)
    hf.debugging.assert_less(ids, count, message=f"a segment is not below num_segments, {count}")
    return function(values, ids, count)


@tf_export("math.unsorted_segment_sum")
def unsorted_segment_sum(
    data: TensorLike, segment_ids: TensorLike, num_segments: TensorLike, name: str | None = None
) -> Any:
    """``tf.math.unsorted_segment_sum``."""
    values = operand(data)
    return hf.astype(_unsorted(hf.segment_sum, values, segment_ids, num_segments), values.dtype)


@tf_export("math.unsorted_segment_mean")
def unsorted_segment_mean(
    data: TensorLike, segment_ids: TensorLike, num_segments: TensorLike, name: str | None = None
) -> Any:
    """``tf.math.unsorted_segment_mean``: 0 for a segment without elements."""
    return _unsorted(hf.segment_mean, data, segment_ids, num_segments)


@tf_export("math.in_top_k", "nn.in_top_k", "keras.ops.in_top_k")
def in_top_k(targets: TensorLike, predictions: TensorLike, k: int, name: str | None = None) -> Any:
    """``tf.math.in_top_k``: whether fewer than ``k`` predictions are above the target's."""
    scores, right = operand(predictions), operand(targets)
    target_scores = hf.take_along_axis(scores, hf.expand_dims(right, axis=-1), axis=-1)
    return hf.logical_and(
        hf.sum(hf.astype(scores > target_scores, dtypes.int32), axis=-1) < k, hf.isfinite(target_scores[..., 0])
    )


@tf_export("math.is_non_decreasing")
def is_non_decreasing(x: TensorLike, name: str | None = None) -> Any:
    """``tf.math.is_non_decreasing``."""
    flat = hf.reshape(operand(x), (-1,))
    return hf.all(flat[1:] >= flat[:-1])


@tf_export("math.is_strictly_increasing")
def is_strictly_increasing(x: TensorLike, name: str | None = None) -> Any:
    """``tf.math.is_strictly_increasing``."""
    flat = hf.reshape(operand(x), (-1,))
    return hf.all(flat[1:] > flat[:-1])


@tf_export("math.approximate_equal")
def approximate_equal(x: TensorLike, y: TensorLike, tolerance: float = 1e-05, name: str | None = None) -> Any:
    """``tf.math.approximate_equal``."""
    a, b = operands([x, y], [0, 1])
    return hf.less(hf.abs(hf.subtract(a, b)), tolerance)


@tf_export("math.sigmoid", "nn.sigmoid", "keras.ops.sigmoid", "sigmoid")
def sigmoid(x: Operand, name: str | None = None) -> Any:
    """``tf.sigmoid``."""
    return hf.sigmoid(x)


@tf_export("math.l2_normalize", "linalg.l2_normalize", "nn.l2_normalize", v1_names={"dim": "axis"})
def l2_normalize(x: TensorLike, axis: object = None, epsilon: float = 1e-12, name: str | None = None) -> Any:
    """``tf.math.l2_normalize``: over all axes unless some are given."""
    value = operand(x)
    total = hf.sum(hf.square(value), axis=axes(axis), keepdims=True)
    return hf.multiply(value, hf.rsqrt(hf.maximum(total, epsilon)))


@tf_export("math.softmax", "nn.softmax", v1_names={"dim": "axis"})
def softmax(logits: TensorLike, axis: int | None = None, name: str | None = None) -> Any:
    """``tf.nn.softmax``."""
    return hf.nn.softmax(operand(logits), axis=-1 if axis is None else axis)


@tf_export("math.log_softmax", "nn.log_softmax", v1_names={"dim": "axis"})
def log_softmax(logits: TensorLike, axis: int | None = None, name: str | None = None) -> Any:
    """``tf.nn.log_softmax``."""
    return hf.nn.log_softmax(operand(logits), axis=-1 if axis is None else axis)


@tf_export("math.reciprocal_no_nan")
def reciprocal_no_nan(x: TensorLike, name: str | None = None) -> Any:
    """``tf.math.reciprocal_no_nan``: 0 where ``x`` is."""
    return divide_no_nan(1.0, x)


def _sharing(function: Callable[..., Any]) -> Any:
    """The extreme of each segment, whose derivative is shared evenly by equal elements, as TensorFlow has it."""

    def shared(values: Any, ids: Any, count: int) -> Any:
        if not dtypes.is_float(values.dtype) or count == 0:
            return function(values, ids, count)

        @hf.custom_gradient
        def extremes(values: Any) -> Any:
            extremes_of_segments = function(values, ids, count)
            inside = ids >= 0
            at = hf.where(inside, ids, 0)
            there = hf.reshape(inside, (*ids.shape, *[1] * (values.ndim - ids.ndim)))
            taken = hf.logical_and(there, values == hf.take(extremes_of_segments, at, axis=0))

            def gradient(upstream: Any) -> Any:
                ties = hf.astype(hf.segment_sum(hf.astype(taken, upstream.dtype), ids, count), upstream.dtype)
                return hf.where(taken, hf.take(upstream / hf.maximum(ties, 1), at, axis=0), 0)

            return extremes_of_segments, gradient

        return extremes(values)

    return shared


@tf_export("math.unsorted_segment_max")
def unsorted_segment_max(
    data: TensorLike, segment_ids: TensorLike, num_segments: TensorLike, name: str | None = None
) -> Any:
    """``tf.math.unsorted_segment_max``: the smallest number that is finite for a segment without elements."""
    maxima = _unsorted(_sharing(hf.segment_max), data, segment_ids, num_segments)
    return hf.maximum(maxima, float(ml_dtypes.finfo(maxima.dtype).min)) if dtypes.is_float(maxima.dtype) else maxima


@tf_export("math.unsorted_segment_min")
def unsorted_segment_min(
    data: TensorLike, segment_ids: TensorLike, num_segments: TensorLike, name: str | None = None
) -> Any:
    """``tf.math.unsorted_segment_min``: the largest number that is finite for a segment without elements."""
    minima = _unsorted(_sharing(hf.segment_min), data, segment_ids, num_segments)
    return hf.minimum(minima, float(ml_dtypes.finfo(minima.dtype).max)) if dtypes.is_float(minima.dtype) else minima


@tf_export("math.unsorted_segment_prod")
def unsorted_segment_prod(
    data: TensorLike, segment_ids: TensorLike, num_segments: TensorLike, name: str | None = None
) -> Any:
    """``tf.math.unsorted_segment_prod``: 1 for a segment without elements."""
    values = operand(data)
    return hf.astype(_unsorted(hf.segment_prod, values, segment_ids, num_segments), values.dtype)


def _of_sorted(folded: Callable[..., Any], name: str) -> Any:
    """The same of segments in order, 0 for those without elements."""

    def segments(data: ArrayLike, segment_ids: ArrayLike, name: str | None = None) -> Any:
        ids = operand(segment_ids)
        count = _count(segment_ids)
        folded_values = folded(data, ids, count)
        is_there = hf.bincount(ids, length=count) > 0
        return hf.where(hf.reshape(is_there, (-1, *[1] * (folded_values.ndim - 1))), folded_values, 0)

    segments.__name__ = segments.__qualname__ = name
    segments.__doc__ = f"``tf.math.{name}``: 0 for a segment without elements."
    return segments


segment_max = _of_sorted(unsorted_segment_max, "segment_max")
segment_min = _of_sorted(unsorted_segment_min, "segment_min")


@tf_export("math.segment_prod")
def segment_prod(data: TensorLike, segment_ids: TensorLike, name: str | None = None) -> Any:
    """``tf.math.segment_prod``."""
    ids = operand(segment_ids)
    return unsorted_segment_prod(data, ids, _count(segment_ids))


@tf_export("math.unsorted_segment_sqrt_n")
def unsorted_segment_sqrt_n(
    data: TensorLike, segment_ids: TensorLike, num_segments: TensorLike, name: str | None = None
) -> Any:
    """``tf.math.unsorted_segment_sqrt_n``: sums over the square roots of how many there are."""
    total = unsorted_segment_sum(data, segment_ids, num_segments)
    ids = operand(segment_ids)
    count = unsorted_segment_sum(hf.ones(ids.shape, total.dtype), ids, num_segments)
    return total / hf.reshape(hf.sqrt(hf.maximum(count, 1)), (-1, *[1] * (total.ndim - 1)))


@tf_export("math.abs", "keras.backend.abs", "keras.ops.fabs", "keras.ops.abs", "keras.ops.absolute", "abs")
def abs(x: Operand, name: str | None = None) -> Any:
    """The absolute value. Its derivative at 0 is 0."""
    return hf.abs(x)


@tf_export("math.acos", "keras.ops.arccos", "acos")
def acos(x: Operand, name: str | None = None) -> Any:
    """The angle in [0, pi] whose cosine is ``x``; NaN outside [-1, 1]."""
    return hf.acos(x)


@tf_export("math.acosh", "keras.ops.arccosh", "acosh")
def acosh(x: Operand, name: str | None = None) -> Any:
    """The non-negative inverse of ``cosh``; NaN below 1."""
    return hf.acosh(x)


@tf_export("math.add", "add")
def add(x: Operand, y: Operand, name: str | None = None) -> Any:
    """Elementwise sum: ``x1 + x2``. Integers wrap around."""
    return hf.add(x, y)


@tf_export("math.asin", "keras.ops.arcsin", "asin")
def asin(x: Operand, name: str | None = None) -> Any:
    """The angle in [-pi/2, pi/2] whose sine is ``x``; NaN outside [-1, 1]."""
    return hf.asin(x)


@tf_export("math.asinh", "keras.ops.arcsinh", "asinh")
def asinh(x: Operand, name: str | None = None) -> Any:
    """The inverse of ``sinh``."""
    return hf.asinh(x)


@tf_export("math.atan", "keras.ops.arctan", "atan")
def atan(x: Operand, name: str | None = None) -> Any:
    """The angle in [-pi/2, pi/2] whose tangent is ``x``."""
    return hf.atan(x)


@tf_export("math.atan2", "atan2")
def atan2(y: Operand, x: Operand, name: str | None = None) -> Any:
    """The angle of the point (``x2``, ``x1``) in [-pi, pi]."""
    return hf.atan2(y, x)


@tf_export("math.atanh", "keras.ops.arctanh", "atanh")
def atanh(x: Operand, name: str | None = None) -> Any:
    """The inverse of ``tanh``; NaN outside [-1, 1]."""
    return hf.atanh(x)


@tf_export("math.cos", "keras.backend.cos", "keras.ops.cos", "cos")
def cos(x: Operand, name: str | None = None) -> Any:
    """The cosine of ``x`` radians."""
    return hf.cos(x)


@tf_export("math.cosh", "keras.ops.cosh", "cosh")
def cosh(x: Operand, name: str | None = None) -> Any:
    """The hyperbolic cosine."""
    return hf.cosh(x)


@tf_export("math.equal", "keras.backend.equal", "equal")
def equal(x: Operand, y: Operand, name: str | None = None) -> Any:
    """Elementwise equality: ``x1 == x2``; NaN equals nothing."""
    return hf.equal(x, y)


@tf_export("math.exp", "keras.activations.exponential", "keras.backend.exp", "keras.ops.exp", "exp")
def exp(x: Operand, name: str | None = None) -> Any:
    """e to the power ``x``."""
    return hf.exp(x)


@tf_export("math.floor", "keras.ops.floor", "floor")
def floor(x: Operand, name: str | None = None) -> Any:
    """The largest whole number not above ``x``, in the dtype of ``x``."""
    return hf.floor(x)


@tf_export("math.greater", "keras.backend.greater", "greater")
def greater(x: Operand, y: Operand, name: str | None = None) -> Any:
    """Elementwise comparison: ``x1 > x2``."""
    return hf.greater(x, y)


@tf_export("math.greater_equal", "keras.backend.greater_equal", "greater_equal")
def greater_equal(x: Operand, y: Operand, name: str | None = None) -> Any:
    """Elementwise comparison: ``x1 >= x2``."""
    return hf.greater_equal(x, y)


@tf_export("math.less", "keras.backend.less", "less")
def less(x: Operand, y: Operand, name: str | None = None) -> Any:
    """Elementwise comparison: ``x1 < x2``."""
    return hf.less(x, y)


@tf_export("math.less_equal", "keras.backend.less_equal", "less_equal")
def less_equal(x: Operand, y: Operand, name: str | None = None) -> Any:
    """Elementwise comparison: ``x1 <= x2``."""
    return hf.less_equal(x, y)


@tf_export("math.logical_and", "logical_and")
def logical_and(x: Operand, y: Operand, name: str | None = None) -> Any:
    """Both are true; anything but zero is true."""
    return hf.logical_and(x, y)


@tf_export("math.logical_not", "keras.ops.logical_not", "logical_not")
def logical_not(x: Operand, name: str | None = None) -> Any:
    """Where ``x`` is zero."""
    return hf.logical_not(x)


@tf_export("math.logical_or", "logical_or")
def logical_or(x: Operand, y: Operand, name: str | None = None) -> Any:
    """Either is true; anything but zero is true."""
    return hf.logical_or(x, y)


@tf_export("math.maximum", "keras.backend.maximum", "maximum")
def maximum(x: Operand, y: Operand, name: str | None = None) -> Any:
    """The larger operand; NaN if either is. The gradient of a tie goes to ``x1``."""
    return hf.maximum(x, y)


@tf_export("math.minimum", "keras.backend.minimum", "minimum")
def minimum(x: Operand, y: Operand, name: str | None = None) -> Any:
    """The smaller operand; NaN if either is. The gradient of a tie goes to ``x1``."""
    return hf.minimum(x, y)


@tf_export("math.multiply", "multiply")
def multiply(x: Operand, y: Operand, name: str | None = None) -> Any:
    """Elementwise product: ``x1 * x2``. Integers wrap around."""
    return hf.multiply(x, y)


@tf_export("math.negative", "keras.ops.negative", "negative")
def negative(x: Operand, name: str | None = None) -> Any:
    """Elementwise negation: ``-x``. Unsigned integers wrap around; raises DTypeError for bool."""
    return hf.negative(x)


@tf_export("math.not_equal", "keras.backend.not_equal", "not_equal")
def not_equal(x: Operand, y: Operand, name: str | None = None) -> Any:
    """Elementwise inequality: ``x1 != x2``; NaN differs from everything."""
    return hf.not_equal(x, y)


@tf_export("math.pow", "pow")
def pow(x: Operand, y: Operand, name: str | None = None) -> Any:
    """Elementwise power: ``x1 ** x2``."""
    return hf.pow(x, y)


@tf_export("math.scalar_mul", "scalar_mul")
def scalar_mul(scalar: Operand, x: Operand, name: str | None = None) -> Any:
    """Elementwise product: ``x1 * x2``. Integers wrap around."""
    return hf.multiply(scalar, x)


@tf_export("math.sign", "keras.backend.sign", "keras.ops.sign", "sign")
def sign(x: Operand, name: str | None = None) -> Any:
    """Sign: -1, 0 or 1; NaN for NaN."""
    return hf.sign(x)


@tf_export("math.sin", "keras.backend.sin", "keras.ops.sin", "sin")
def sin(x: Operand, name: str | None = None) -> Any:
    """The sine of ``x`` radians."""
    return hf.sin(x)


@tf_export("math.sinh", "keras.ops.sinh", "sinh")
def sinh(x: Operand, name: str | None = None) -> Any:
    """The hyperbolic sine."""
    return hf.sinh(x)


@tf_export("math.sqrt", "keras.ops.sqrt", "sqrt")
def sqrt(x: Operand, name: str | None = None) -> Any:
    """The square root; NaN below 0."""
    return hf.sqrt(x)


@tf_export("math.square", "keras.backend.square", "keras.ops.square", "square")
def square(x: Operand, name: str | None = None) -> Any:
    """Elementwise square: ``x * x``."""
    return hf.square(x)


@tf_export("math.subtract", "subtract")
def subtract(x: Operand, y: Operand, name: str | None = None) -> Any:
    """Elementwise difference: ``x1 - x2``. Integers wrap around."""
    return hf.subtract(x, y)


@tf_export("math.tan", "keras.ops.tan", "tan")
def tan(x: Operand, name: str | None = None) -> Any:
    """The tangent of ``x`` radians."""
    return hf.tan(x)


@tf_export("math.tanh", "nn.tanh", "keras.activations.tanh", "keras.backend.tanh", "keras.ops.tanh", "tanh")
def tanh(x: Operand, name: str | None = None) -> Any:
    """The hyperbolic tangent."""
    return hf.tanh(x)


@tf_export("math.floordiv", "floordiv")
def floordiv(x: Operand, y: Operand, name: str | None = None) -> Any:
    """Floor division: ``x1 // x2``, rounded towards minus infinity. Raises DivisionError for an integer divided by
    zero."""
    return hf.floor_divide(x, y)


@tf_export("math.lgamma")
def lgamma(x: Operand, name: str | None = None) -> Any:
    """``tf.math.lgamma``: The logarithm of the absolute value of the gamma function; infinite at 0 and negative
    integers."""
    return special.lgamma(x)


@tf_export("math.digamma")
def digamma(x: Operand, name: str | None = None) -> Any:
    """``tf.math.digamma``: The digamma function: the derivative of ``gammaln``; NaN at negative integers."""
    return special.digamma(x)


@tf_export("math.erfc", "keras.ops.erfc")
def erfc(x: Operand, name: str | None = None) -> Any:
    """``tf.math.erfc``: The complementary error function ``1 - erf(x)``, exact where that would cancel."""
    return special.erfc(x)


@tf_export("math.erfinv", "keras.ops.erfinv")
def erfinv(x: Operand, name: str | None = None) -> Any:
    """``tf.math.erfinv``: The inverse of ``erf``; infinite at -1 and 1, NaN beyond."""
    return special.erfinv(x)


@tf_export("math.erfcinv")
def erfcinv(x: Operand, name: str | None = None) -> Any:
    """``tf.math.erfcinv``: The inverse of ``erfc``; infinite at 0 and 2, NaN beyond."""
    return special.erfcinv(x)


@tf_export("math.ndtri")
def ndtri(x: Operand, name: str | None = None) -> Any:
    """``tf.math.ndtri``: The quantile of the standard normal distribution, the inverse of ``ndtr``."""
    return special.ndtri(x)


@tf_export("math.xlog1py")
def xlog1py(x: Operand, y: Operand, name: str | None = None) -> Any:
    """``tf.math.xlog1py``: ``x * log(1 + y)``; 0 where ``x`` is, and so are its derivatives."""
    return special.xlog1py(x, y)


@tf_export("math.bessel_i0")
def bessel_i0(x: Operand, name: str | None = None) -> Any:
    """``tf.math.bessel_i0``: The modified Bessel function of the first kind of order 0; see ``i0e`` for large
    ``x``."""
    return special.bessel_i0(x)


@tf_export("math.bessel_i0e")
def bessel_i0e(x: Operand, name: str | None = None) -> Any:
    """``tf.math.bessel_i0e``: The exponentially scaled modified Bessel function ``exp(-|x|) I0(x)``."""
    return special.bessel_i0e(x)


@tf_export("math.bessel_i1")
def bessel_i1(x: Operand, name: str | None = None) -> Any:
    """``tf.math.bessel_i1``: The modified Bessel function of the first kind of order 1; see ``i1e`` for large
    ``x``."""
    return special.bessel_i1(x)


@tf_export("math.bessel_i1e")
def bessel_i1e(x: Operand, name: str | None = None) -> Any:
    """``tf.math.bessel_i1e``: The exponentially scaled modified Bessel function ``exp(-|x|) I1(x)``."""
    return special.bessel_i1e(x)


@tf_export("math.betainc")
def betainc(a: Operand, b: Operand, x: Operand, name: str | None = None) -> Any:
    """``tf.math.betainc``: The regularized incomplete beta function: the distribution function of the beta
    distribution."""
    return special.betainc(a, b, x)


@tf_export("math.igamma")
def igamma(a: Operand, x: Operand, name: str | None = None) -> Any:
    """``tf.math.igamma``: The regularized lower incomplete gamma function: the distribution function of the gamma
    distribution."""
    return special.igamma(a, x)


@tf_export("math.igammac")
def igammac(a: Operand, x: Operand, name: str | None = None) -> Any:
    """``tf.math.igammac``: The regularized upper incomplete gamma function, ``1 - gammainc(a, x)`` without
    cancelling."""
    return special.igammac(a, x)


@tf_export("math.zeta")
def zeta(x: Operand, q: Operand, name: str | None = None) -> Any:
    """``tf.math.zeta``: Hurwitz's zeta function: the sum of ``(q + k)**-x`` over ``k`` from 0 on, for ``x > 1``
    and ``q > 0``."""
    return special.zeta(x, q)


@tf_export("math.floormod", "math.mod")
def floormod(x: Operand, y: Operand, name: str | None = None) -> Any:
    """Elementwise remainder: ``x1 % x2``, with the sign of ``x2``. Raises DivisionError for an integer remainder
    by zero."""
    return hf.remainder(x, y)


@tf_export("math.angle")
def angle(input: Operand, name: str | None = None) -> Any:
    """The angle of a complex number in radians, from -pi to pi; 0 or pi of a real one."""
    return hf.angle(input)


@tf_export("math.ceil", "keras.ops.ceil")
def ceil(x: Operand, name: str | None = None) -> Any:
    """The smallest whole number not below ``x``, in the dtype of ``x``."""
    return hf.ceil(x)


@tf_export("math.conj", "keras.ops.conj", "keras.ops.conjugate")
def conj(x: Operand, name: str | None = None) -> Any:
    """The complex conjugate: ``x`` itself where it is real."""
    return hf.conj(x)


@tf_export("math.erf", "keras.ops.erf")
def erf(x: Operand, name: str | None = None) -> Any:
    """The error function."""
    return hf.erf(x)


@tf_export("math.expm1", "keras.ops.expm1")
def expm1(x: Operand, name: str | None = None) -> Any:
    """Exponential less one: ``exp(x) - 1``, exact near 0."""
    return hf.expm1(x)


@tf_export("math.imag")
def imag(input: Operand, name: str | None = None) -> Any:
    """The imaginary part: zeros where ``x`` is real."""
    return hf.imag(input)


@tf_export("math.is_finite", "keras.ops.isfinite")
def is_finite(x: Operand, name: str | None = None) -> Any:
    """Where ``x`` is neither infinite nor NaN, as bool."""
    return hf.isfinite(x)


@tf_export("math.is_inf", "keras.ops.isinf")
def is_inf(x: Operand, name: str | None = None) -> Any:
    """Where ``x`` is infinite, as bool."""
    return hf.isinf(x)


@tf_export("math.is_nan", "keras.ops.isnan")
def is_nan(x: Operand, name: str | None = None) -> Any:
    """Where ``x`` is NaN, as bool."""
    return hf.isnan(x)


@tf_export("math.log", "keras.backend.log", "keras.ops.log")
def log(x: Operand, name: str | None = None) -> Any:
    """The natural logarithm: -inf at 0, NaN below."""
    return hf.log(x)


@tf_export("math.log1p", "keras.ops.log1p")
def log1p(x: Operand, name: str | None = None) -> Any:
    """Logarithm of one plus x: ``log(1 + x)``, exact near 0."""
    return hf.log1p(x)


@tf_export("math.log_sigmoid", "keras.activations.log_sigmoid", "keras.ops.log_sigmoid")
def log_sigmoid(x: Operand, name: str | None = None) -> Any:
    """Log-sigmoid: ``log(sigmoid(x))`` without underflow."""
    return hf.nn.log_sigmoid(x)


@tf_export("math.logical_xor")
def logical_xor(x: Operand, y: Operand, name: str | None = None) -> Any:
    """Exactly one is true; anything but zero is true."""
    return hf.logical_xor(x, y)


@tf_export("math.nextafter", "keras.ops.nextafter")
def nextafter(x1: Operand, x2: Operand, name: str | None = None) -> Any:
    """The float next to ``x1`` in the direction of ``x2``; no gradient flows through it."""
    return hf.nextafter(x1, x2)


@tf_export("math.real")
def real(input: Operand, name: str | None = None) -> Any:
    """The real part: ``x`` itself where it is real."""
    return hf.real(input)


@tf_export("math.reciprocal", "keras.ops.reciprocal")
def reciprocal(x: Operand, name: str | None = None) -> Any:
    """Elementwise reciprocal: ``1 / x`` in floats."""
    return hf.reciprocal(x)


@tf_export("math.rsqrt", "keras.ops.rsqrt")
def rsqrt(x: Operand, name: str | None = None) -> Any:
    """Reciprocal square root: ``1 / sqrt(x)``."""
    return hf.rsqrt(x)


@tf_export("math.softplus", "nn.softplus")
def softplus(features: Operand, name: str | None = None) -> Any:
    """Softplus: ``log(1 + exp(x))`` without overflow."""
    return hf.nn.softplus(features)


@tf_export("math.softsign", "nn.softsign")
def softsign(features: Operand, name: str | None = None) -> Any:
    """Softsign: ``x / (1 + |x|)``."""
    return hf.nn.softsign(features)


export(segment_max, "math.segment_max")
export(segment_min, "math.segment_min")
