"""Arithmetic and reductions, where TensorFlow's differ."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np

import hybridflow as hf
from hybridflow.compat.adapters.values import Extents, axes, count_up_to, extent_by, operand, operands
from hybridflow.compiler.ir import dtypes
from hybridflow.core.tensor import Operators
from hybridflow.errors import ArgumentError, ShapeError


def divide(x: Any, y: Any, name: str | None = None) -> Any:
    """``tf.divide``: ints divide to float64, those of 8 and 16 bits to float32."""
    if not isinstance(x, Operators) and not isinstance(y, Operators) and np.ndim(x) == np.ndim(y) == 0:
        return x / y
    a, b = operands([x, y], [0, 1])
    kinds = [v.dtype for v in (a, b) if isinstance(v, Operators)]
    if all(dtypes.is_integer(kind) for kind in kinds) and not isinstance(a, float) and not isinstance(b, float):
        wide = dtypes.float64 if max(kind.itemsize for kind in kinds) > 2 else dtypes.float32
        a, b = (hf.astype(v, wide) if isinstance(v, Operators) else v for v in (a, b))
    return hf.divide(a, b)


def divide_no_nan(x: Any, y: Any, name: str | None = None) -> Any:
    """``tf.math.divide_no_nan``: 0 where ``y`` is."""
    a, b = operands([x, y], [0, 1])
    none = hf.equal(b, 0)
    return hf.where(none, 0.0, hf.divide(a, hf.where(none, 1, b)))


def multiply_no_nan(x: Any, y: Any, name: str | None = None) -> Any:
    """``tf.math.multiply_no_nan``: 0 where ``y`` is, whatever ``x`` is there."""
    a, b = operands([x, y], [0, 1])
    none = hf.equal(b, 0)
    product = hf.multiply(hf.where(hf.logical_and(none, hf.logical_not(hf.isfinite(a))), 0, a), b)
    return hf.where(none, product + 0.0, product)  # which depends on ``y`` there, too


def truncatediv(x: Any, y: Any, name: str | None = None) -> Any:
    """``tf.truncatediv``: the quotient towards 0."""
    a, b = operands([x, y], [0, 1])
    if not any(isinstance(v, Operators) and dtypes.is_float(v.dtype) for v in (a, b)):
        whole = hf.floor_divide(a, b)
        rest = hf.not_equal(hf.multiply(whole, b), a)
        return hf.where(hf.logical_and(hf.less(whole, 0), rest), whole + 1, whole)
    return hf.trunc(hf.divide(a, b))


def truncatemod(x: Any, y: Any, name: str | None = None) -> Any:
    """``tf.truncatemod``: the remainder with the sign of ``x``."""
    a, b = operands([x, y], [0, 1])
    return hf.subtract(a, hf.multiply(truncatediv(a, b), b))


def squared_difference(x: Any, y: Any, name: str | None = None) -> Any:
    """``tf.math.squared_difference``."""
    a, b = operands([x, y], [0, 1])
    return hf.square(hf.subtract(a, b))


def add_n(inputs: Any, name: str | None = None) -> Any:
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


def xlogy(x: Any, y: Any, name: str | None = None) -> Any:
    """``tf.math.xlogy``: ``x * log(y)``, 0 where ``x`` is."""
    a, b = operands([x, y], [0, 1])
    none = hf.equal(a, 0)
    return hf.where(none, 0.0, hf.multiply(a, hf.log(hf.where(none, 1.0, b))))


def xdivy(x: Any, y: Any, name: str | None = None) -> Any:
    """``tf.math.xdivy``: ``x / y``, 0 where ``x`` is."""
    a, b = operands([x, y], [0, 1])
    none = hf.equal(a, 0)
    return hf.where(none, 0.0, hf.divide(a, hf.where(none, 1.0, b)))


def reduce_sum(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Any:
    """``tf.reduce_sum``: in the operand's dtype."""
    x = operand(input_tensor)
    return hf.sum(x, axis=axes(axis), dtype=x.dtype, keepdims=keepdims)


def reduce_prod(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Any:
    """``tf.reduce_prod``: in the operand's dtype."""
    if isinstance(input_tensor, Extents):
        result: Any = 1
        for extent in input_tensor:
            result = extent * result
        return result
    x = operand(input_tensor)
    return hf.prod(x, axis=axes(axis), dtype=x.dtype, keepdims=keepdims)


def reduce_mean(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Any:
    """``tf.reduce_mean``: of ints it is an int."""
    x = operand(input_tensor)
    if not dtypes.is_integer(x.dtype):
        return hf.mean(x, axis=axes(axis), keepdims=keepdims)
    total = hf.sum(x, axis=axes(axis), dtype=x.dtype, keepdims=True)
    count = hf.sum(hf.ones_like(x), axis=axes(axis), dtype=x.dtype, keepdims=True)
    mean = truncatediv(total, count)
    return mean if keepdims else hf.squeeze(mean, axes(axis))


def reduce_max(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Any:
    """``tf.reduce_max``: of no elements it is the least value of the dtype."""
    return _extreme(hf.max, operand(input_tensor), axes(axis), keepdims, least=True)


def reduce_min(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Any:
    """``tf.reduce_min``: of no elements it is the greatest value of the dtype."""
    return _extreme(hf.min, operand(input_tensor), axes(axis), keepdims, least=False)


def _extreme(reduce: Any, x: Any, axis: Any, keepdims: bool, least: bool) -> Any:
    """``hf.max`` or ``hf.min``; of no elements, the value to which every other one is preferred."""
    x = hf.asarray(x)
    if 0 not in x.shape or x.dtype == dtypes.bool_:
        return reduce(x, axis=axis, keepdims=keepdims)
    if dtypes.is_integer(x.dtype):
        limit: Any = getattr(ml_dtypes.iinfo(x.dtype), "min" if least else "max")
    else:
        limit = -math.inf if least else math.inf
    return hf.sum(x, axis=axis, dtype=x.dtype, keepdims=keepdims) + limit  # a sum of none is 0


def reduce_all(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Any:
    """``tf.reduce_all``."""
    return hf.all(operand(input_tensor), axis=axes(axis), keepdims=keepdims)


def reduce_any(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Any:
    """``tf.reduce_any``."""
    return hf.any(operand(input_tensor), axis=axes(axis), keepdims=keepdims)


def reduce_std(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Any:
    """``tf.math.reduce_std``."""
    return hf.std(operand(input_tensor), axis=axes(axis), keepdims=keepdims)


def reduce_variance(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Any:
    """``tf.math.reduce_variance``."""
    return hf.var(operand(input_tensor), axis=axes(axis), keepdims=keepdims)


def reduce_logsumexp(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Any:
    """``tf.reduce_logsumexp``."""
    return hf.logsumexp(operand(input_tensor), axis=axes(axis), keepdims=keepdims)


def reduce_euclidean_norm(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Any:
    """``tf.math.reduce_euclidean_norm``."""
    return hf.linalg.vector_norm(operand(input_tensor), axis=axes(axis), keepdims=keepdims)


def count_nonzero(
    input: Any, axis: Any = None, keepdims: bool | None = None, dtype: Any = dtypes.int64, name: str | None = None
) -> Any:
    """``tf.math.count_nonzero``."""
    return hf.astype(hf.count_nonzero(operand(input), axis=axes(axis), keepdims=bool(keepdims)), dtype)


def zero_fraction(value: Any, name: str | None = None) -> Any:
    """``tf.math.zero_fraction``: float32."""
    return hf.mean(hf.astype(hf.equal(operand(value), 0), dtypes.float32))


def cumsum(x: Any, axis: int = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None) -> Any:
    """``tf.cumsum``."""
    return _running(hf.cumulative_sum, operand(x), axis, exclusive, reverse)


def cumprod(x: Any, axis: int = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None) -> Any:
    """``tf.math.cumprod``."""
    return _running(hf.cumulative_prod, operand(x), axis, exclusive, reverse)


def _running(fold: Any, x: Any, axis: Any, exclusive: bool, reverse: bool) -> Any:
    along = axes(axis)
    x = hf.flip(x, along) if reverse else x
    totals = fold(x, axis=along, dtype=x.dtype, include_initial=exclusive)
    if exclusive:
        key = [slice(None)] * x.ndim
        key[along] = slice(None, -1)
        totals = totals[tuple(key)]
    return hf.flip(totals, along) if reverse else totals


def clip_by_value(t: Any, clip_value_min: Any, clip_value_max: Any, name: str | None = None) -> Any:
    """``tf.clip_by_value``."""
    return hf.clip(operand(t), clip_value_min, clip_value_max)


def round(x: Any, name: str | None = None) -> Any:
    """``tf.round``: halves go to the even neighbour."""
    return hf.round(operand(x))


def polyval(coeffs: Any, x: Any, name: str | None = None) -> Any:
    """``tf.math.polyval``: the coefficient of the highest power comes first."""
    at = operand(x)
    result = hf.zeros_like(at)
    for coefficient in coeffs:
        result = result * at + coefficient
    return result


def bincount(
    arr: Any, weights: Any = None, minlength: int | None = None, maxlength: int | None = None,
    dtype: Any = dtypes.int32, name: str | None = None, axis: int | None = None, binary_output: bool = False,
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


def confusion_matrix(
    labels: Any, predictions: Any, num_classes: Any = None, weights: Any = None, dtype: Any = dtypes.int32,
    name: str | None = None,
) -> Any:  # fmt: skip
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


def _count(segment_ids: Any) -> Any:
    """How many segments there are, by the number of the last one."""
    remedy = "Use the function of unsorted segments, which is told how many there are"
    return extent_by(segment_ids, lambda _, ids: ids[-1] + 1, "math.segment", remedy)


def segment_sum(data: Any, segment_ids: Any, name: str | None = None) -> Any:
    """``tf.math.segment_sum``."""
    ids = operand(segment_ids)
    return unsorted_segment_sum(data, ids, _count(segment_ids))


def segment_mean(data: Any, segment_ids: Any, name: str | None = None) -> Any:
    """``tf.math.segment_mean``: 0 for a segment without elements."""
    ids = operand(segment_ids)
    return unsorted_segment_mean(data, ids, _count(segment_ids))


def _unsorted(function: Any, data: Any, segment_ids: Any, num_segments: Any) -> Any:
    """What a function of ours makes of segments, whose numbers must be below ``num_segments``; negative ones are left
    out."""
    values, ids, count = operand(data), operand(segment_ids), int(num_segments)
    hf.debugging.assert_less(ids, count, message=f"a segment is not below num_segments, {count}")
    return function(values, ids, count)


def unsorted_segment_sum(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Any:
    """``tf.math.unsorted_segment_sum``."""
    values = operand(data)
    return hf.astype(_unsorted(hf.segment_sum, values, segment_ids, num_segments), values.dtype)


def unsorted_segment_mean(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Any:
    """``tf.math.unsorted_segment_mean``: 0 for a segment without elements."""
    return _unsorted(hf.segment_mean, data, segment_ids, num_segments)


def in_top_k(targets: Any, predictions: Any, k: int, name: str | None = None) -> Any:
    """``tf.math.in_top_k``: whether fewer than ``k`` predictions are above the target's."""
    scores, right = operand(predictions), operand(targets)
    target_scores = hf.take_along_axis(scores, hf.expand_dims(right, axis=-1), axis=-1)
    return hf.logical_and(
        hf.sum(hf.astype(scores > target_scores, dtypes.int32), axis=-1) < k, hf.isfinite(target_scores[..., 0])
    )


def is_non_decreasing(x: Any, name: str | None = None) -> Any:
    """``tf.math.is_non_decreasing``."""
    flat = hf.reshape(operand(x), (-1,))
    return hf.all(flat[1:] >= flat[:-1])


def is_strictly_increasing(x: Any, name: str | None = None) -> Any:
    """``tf.math.is_strictly_increasing``."""
    flat = hf.reshape(operand(x), (-1,))
    return hf.all(flat[1:] > flat[:-1])


def approximate_equal(x: Any, y: Any, tolerance: float = 1e-05, name: str | None = None) -> Any:
    """``tf.math.approximate_equal``."""
    a, b = operands([x, y], [0, 1])
    return hf.less(hf.abs(hf.subtract(a, b)), tolerance)


def sigmoid(x: Any, name: str | None = None) -> Any:
    """``tf.sigmoid``."""
    return hf.sigmoid(operand(x))


def l2_normalize(x: Any, axis: Any = None, epsilon: float = 1e-12, name: str | None = None) -> Any:
    """``tf.math.l2_normalize``: over all axes unless some are given."""
    value = operand(x)
    total = hf.sum(hf.square(value), axis=axes(axis), keepdims=True)
    return hf.multiply(value, hf.rsqrt(hf.maximum(total, epsilon)))


def softmax(logits: Any, axis: int | None = None, name: str | None = None) -> Any:
    """``tf.nn.softmax``."""
    return hf.nn.softmax(operand(logits), axis=-1 if axis is None else axis)


def log_softmax(logits: Any, axis: int | None = None, name: str | None = None) -> Any:
    """``tf.nn.log_softmax``."""
    return hf.nn.log_softmax(operand(logits), axis=-1 if axis is None else axis)


def reciprocal_no_nan(x: Any, name: str | None = None) -> Any:
    """``tf.math.reciprocal_no_nan``: 0 where ``x`` is."""
    return divide_no_nan(1.0, x)


def _sharing(function: Any) -> Any:
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


def unsorted_segment_max(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Any:
    """``tf.math.unsorted_segment_max``: the smallest number that is finite for a segment without elements."""
    maxima = _unsorted(_sharing(hf.segment_max), data, segment_ids, num_segments)
    return hf.maximum(maxima, float(ml_dtypes.finfo(maxima.dtype).min)) if dtypes.is_float(maxima.dtype) else maxima


def unsorted_segment_min(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Any:
    """``tf.math.unsorted_segment_min``: the largest number that is finite for a segment without elements."""
    minima = _unsorted(_sharing(hf.segment_min), data, segment_ids, num_segments)
    return hf.minimum(minima, float(ml_dtypes.finfo(minima.dtype).max)) if dtypes.is_float(minima.dtype) else minima


def unsorted_segment_prod(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Any:
    """``tf.math.unsorted_segment_prod``: 1 for a segment without elements."""
    values = operand(data)
    return hf.astype(_unsorted(hf.segment_prod, values, segment_ids, num_segments), values.dtype)


def _of_sorted(folded: Any, name: str) -> Any:
    """The same of segments in order, 0 for those without elements."""

    def segments(data: Any, segment_ids: Any, name: str | None = None) -> Any:
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


def segment_prod(data: Any, segment_ids: Any, name: str | None = None) -> Any:
    """``tf.math.segment_prod``."""
    ids = operand(segment_ids)
    return unsorted_segment_prod(data, ids, _count(segment_ids))


def unsorted_segment_sqrt_n(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Any:
    """``tf.math.unsorted_segment_sqrt_n``: sums over the square roots of how many there are."""
    total = unsorted_segment_sum(data, segment_ids, num_segments)
    ids = operand(segment_ids)
    count = unsorted_segment_sum(hf.ones(ids.shape, total.dtype), ids, num_segments)
    return total / hf.reshape(hf.sqrt(hf.maximum(count, 1)), (-1, *[1] * (total.ndim - 1)))
