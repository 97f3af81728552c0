"""Rows put together by the numbers of their segments, which need not be sorted.

``segment_ids`` has the shape of the first axes of ``data``, and the result a row for each of ``num_segments``: without
it as many as the largest number says.  Rows whose number is negative, or not
below ``num_segments``, are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hybridflow.array.elementwise import divide, greater_equal, less, logical_and, maximum, where
from hybridflow.array.indexed_slices import IndexedSlices
from hybridflow.array.indexing import getitem, scatter_add
from hybridflow.array.reductions import max as largest, sum_dtype
from hybridflow.array.scattering import rows_largest, rows_multiplied, rows_smallest
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ir.extents import Dim, Extent
from hybridflow.compiler.ir.types import product
from hybridflow.compiler.ops import type_rules
from hybridflow.core.promotion import default_int
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import ArrayLike
from hybridflow.eager.operands import as_tensor, cast, filled, float_operand, reshape_to
from hybridflow.eager.public_op import operation
from hybridflow.errors import DTypeError, ShapeError, TraceError, entered


@entered
def segment_sum(data: ArrayLike, segment_ids: ArrayLike, num_segments: object = None) -> Tensor:
    """The sums of the rows of each segment; 0 where there are none.  Bools and integers are summed as int64 (uint64 for
    unsigned ones).

    Raises ShapeError where ``segment_ids`` does not fit ``data``, DTypeError where it holds no integers, and TraceError
    without ``num_segments`` in a compiled function.

    Args:
        data: rows: a tensor of one axis or more.
        segment_ids: the segment of each row: integers; rows outside of 0 to ``num_segments`` - 1 are ignored.
        num_segments: the number of segments; unless given, calls find it.

    Returns:
        A tensor of shape ``(num_segments, *data.shape[1:])``.

    >>> hf.segment_sum([1.0, 2.0, 3.0], [0, 2, 0])
    <Tensor f32[3] cpu> [4. 0. 2.]
    """
    return _summed(*_parts("segment_sum", data, segment_ids, num_segments))


@entered
def segment_mean(data: ArrayLike, segment_ids: ArrayLike, num_segments: object = None) -> Tensor:
    """The means of the rows of each segment, in float32 for bools and integers; 0 where there are none.  Raises as
    ``segment_sum`` does.

    Args:
        data: rows: a tensor of one axis or more.
        segment_ids: the segment of each row: integers; rows outside of 0 to ``num_segments`` - 1 are ignored.
        num_segments: the number of segments; unless given, calls find it.

    Returns:
        A tensor of shape ``(num_segments, *data.shape[1:])``.

    >>> hf.segment_mean([1.0, 2.0, 3.0], [0, 2, 0])
    <Tensor f32[3] cpu> [2. 0. 2.]
    """
    values, ids, count = _parts("segment_mean", data, segment_ids, num_segments)
    return _averaged(float_operand(values, "segment_mean"), ids, count)


@entered
def segment_max(data: ArrayLike, segment_ids: ArrayLike, num_segments: object = None) -> Tensor:
    """The largest of the rows of each segment, element by element; the smallest number of the dtype (-inf for floats)
    where there are none.  NaN if there is one; of equal elements the last one gets the derivative.  Raises as
    ``segment_sum`` does.

    Args:
        data: rows: a tensor of one axis or more.
        segment_ids: the segment of each row: integers; rows outside of 0 to ``num_segments`` - 1 are ignored.
        num_segments: the number of segments; unless given, calls find it.

    Returns:
        A tensor of shape ``(num_segments, *data.shape[1:])``.

    >>> hf.segment_max([1.0, 2.0, 3.0], [0, 1, 0])
    <Tensor f32[2] cpu> [3. 2.]
    """
    return _extreme("segment_max", *_parts("segment_max", data, segment_ids, num_segments), "largest")


@entered
def segment_min(data: ArrayLike, segment_ids: ArrayLike, num_segments: object = None) -> Tensor:
    """The smallest of the rows of each segment, element by element; the largest number of the dtype (inf for floats)
    where there are none.  NaN if there is one; of equal elements the last one gets the derivative.  Raises as
    ``segment_sum`` does.

    Args:
        data: rows: a tensor of one axis or more.
        segment_ids: the segment of each row: integers; rows outside of 0 to ``num_segments`` - 1 are ignored.
        num_segments: the number of segments; unless given, calls find it.

    Returns:
        A tensor of shape ``(num_segments, *data.shape[1:])``.

    >>> hf.segment_min([1.0, 2.0, 3.0], [0, 1, 0])
    <Tensor f32[2] cpu> [1. 2.]
    """
    return _extreme("segment_min", *_parts("segment_min", data, segment_ids, num_segments), "smallest")


@entered
def segment_prod(data: ArrayLike, segment_ids: ArrayLike, num_segments: object = None) -> Tensor:
    """The products of the rows of each segment, element by element; 1 where there are none.  Bools and integers are
    multiplied as int64 (uint64).  Raises as ``segment_sum`` does.

    Args:
        data: rows: a tensor of one axis or more.
        segment_ids: the segment of each row: integers; rows outside of 0 to ``num_segments`` - 1 are ignored.
        num_segments: the number of segments; unless given, calls find it.

    Returns:
        A tensor of shape ``(num_segments, *data.shape[1:])``.

    >>> hf.segment_prod([4.0, 2.0, 3.0], [0, 1, 0])
    <Tensor f32[2] cpu> [12.  2.]
    """
    values, ids, count = _parts("segment_prod", data, segment_ids, num_segments)
    return _folded(cast(values, sum_dtype(values.dtype)), ids, count, "product")


def _parts(stage: str, data: object, segment_ids: ArrayLike, num_segments: object) -> tuple[Tensor, Tensor, Extent]:
    """The rows along one axis, the numbers of their segments, and how many of these there are."""
    values, ids = as_tensor(data, stage), numbers(segment_ids, stage)
    if not ids.ndim or ids.shape != values.shape[: ids.ndim]:
        raise ShapeError(
            stage, f"the segments' numbers {ids.type} do not have the shape of the first axes of {values.type}."
        )
    if num_segments is None:
        known = ids._known()
        count: Extent
        if known is not None:
            count = max(int(known.max()) + 1, 0) if known.size else 0
        else:
            count = _segment_count(ids)._to_extent(
                lambda: TraceError(
                    stage,
                    f"how many segments there are depends on the values of {ids!r}; say so, "
                    f"{stage}(data, segment_ids, num_segments), or call it outside of the traced function.",
                )
            )
    else:
        count = type_rules.extent(stage, "num_segments", num_segments)
    rows = product(ids.shape)
    return reshape_to(values, (rows, *values.shape[ids.ndim :])), reshape_to(ids, (rows,)), count


def _segment_count(ids: Tensor) -> Tensor:
    """As many as the largest number says."""
    return filled(0, default_int, (), "segments") if product(ids.shape) == 0 else maximum(largest(ids) + 1, 0)


def numbers(values: ArrayLike, stage: str) -> Tensor:
    """Numbers of segments or bins, as int64; those of uint64 that are none stay too large."""
    result = as_tensor(values, stage)
    if isinstance(values, (list, tuple)) and result.size == 0:
        return cast(result, default_int)
    if dtypes.is_float(dtypes.wide_dtype(result.dtype)):
        raise DTypeError(stage, f"the numbers are {result.type}; they must be integers. Convert them with hf.astype.")
    if result.dtype == dtypes.uint64:
        most = np.iinfo(np.int64).max
        result = where(less(result, np.uint64(most)), result, np.uint64(most))
    return cast(result, default_int)


@operation
def added_up(values: Tensor, ids: Tensor, count: Any) -> Tensor:
    """The sums of ``values``, one for each of ``ids``, over ``count`` numbers."""
    wide = cast(values, dtypes.compute_dtype(values.dtype))
    if not isinstance(count, Dim) and count == 0:
        return _nothing(values)
    # Rows that are of no segment are added to one more, so that nothing has to be written in their place.
    start = filled(0, wide.dtype, (count + 1, *values.shape[1:]), "segment_sum")
    total = scatter_add(start, where(_there(ids, count), ids, count), wide)
    return cast(getitem(total, slice(None, count)), values.dtype)


def _summed(values: Tensor, ids: Tensor, count: Extent) -> Tensor:
    return added_up(cast(values, sum_dtype(values.dtype)), ids, count)


@operation
def _averaged(values: Tensor, ids: Tensor, count: int | Dim) -> Tensor:
    wide = cast(values, dtypes.compute_dtype(values.dtype))
    total = added_up(wide, ids, count)
    there = added_up(filled(1, default_int, ids.shape, "segment_mean"), ids, count)
    shares = reshape_to(cast(maximum(there, 1), wide.dtype), (count, *[1] * (values.ndim - 1)))
    return cast(divide(total, shares), values.dtype)


_FOLDS: dict[str, Callable[[Tensor, IndexedSlices], Tensor]] = {
    "largest": rows_largest,
    "smallest": rows_smallest,
    "product": rows_multiplied,
}


def _extreme(stage: str, values: Tensor, ids: Tensor, count: Extent, fold: str) -> Tensor:
    if not dtypes.is_bool(values.dtype):
        type_rules.check_dtype(stage, values.type, frozenset(type_rules.NUMERIC))
    return _folded(values, ids, count, fold)


@operation
def _folded(values: Tensor, ids: Tensor, count: int | Dim, fold: str) -> Tensor:
    if not isinstance(count, Dim) and count == 0:
        return _nothing(values)
    if dtypes.is_bool(values.dtype):
        return cast(_folded(cast(values, dtypes.uint8), ids, count, fold), dtypes.bool_)
    neutral = _neutral(fold, values.dtype)
    start = filled(neutral, values.dtype, (count, *values.shape[1:]), "segments")
    if not isinstance(ids.shape[0], Dim) and ids.shape[0] == 0:
        return start
    places, there = _placed(ids, count, values.ndim)
    return _FOLDS[fold](start, IndexedSlices(where(there, values, start[:1]), places))


def _neutral(fold: str, dtype: np.dtype[Any]) -> Any:
    """What changes nothing."""
    if fold == "product":
        return 1
    if dtypes.is_float(dtype):
        return -np.inf if fold == "largest" else np.inf
    limits = np.iinfo(dtype)
    return int(limits.min if fold == "largest" else limits.max)


def _placed(ids: Tensor, count: Extent, axes: int) -> tuple[Tensor, Tensor]:
    """The rows that are meant, the first for numbers of none, and which are of one, for tensors of so many axes."""
    there = _there(ids, count)
    return where(there, ids, 0), reshape_to(there, (*ids.shape, *[1] * (axes - 1)))


def _there(ids: Tensor, count: Extent) -> Tensor:
    """Which numbers are those of a segment."""
    return logical_and(greater_equal(ids, 0), less(ids, count))


def _nothing(values: Tensor) -> Tensor:
    return filled(0, values.dtype, (0, *values.shape[1:]), "segments")
