"""How many elements have each value, or lie between each two edges."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from numbers import Number
from typing import Any, NamedTuple

import numpy as np

from hybridflow.array.creation import linspace
from hybridflow.array.differences import diff
from hybridflow.array.elementwise import (
    add,
    divide,
    equal,
    greater,
    greater_equal,
    less,
    logical_or,
    maximum,
    multiply,
    subtract,
    where,
)
from hybridflow.array.reductions import max, min, sum, sum_dtype
from hybridflow.array.segment_ops import added_up, numbers
from hybridflow.array.shapes import flip
from hybridflow.array.sorting import searchsorted
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ir.types import product
from hybridflow.compiler.ops import type_rules
from hybridflow.core.context import now
from hybridflow.core.promotion import default_float, default_int
from hybridflow.core.tensor import Tensor, wrap
from hybridflow.core.type_aliases import ArrayLike, DTypeLike
from hybridflow.core.variable import Variable
from hybridflow.eager.operands import as_tensor, cast, common_dtype, filled, reshape_to
from hybridflow.eager.public_op import operation
from hybridflow.errors import ArgumentError, ShapeError, TraceError, entered


class Histogram(NamedTuple):
    """What ``histogram`` returns."""

    counts: Tensor
    edges: Tensor


class HistogramND(NamedTuple):
    """What ``histogramdd`` returns."""

    counts: Tensor
    edges: list[Tensor]


@entered
def bincount(x: ArrayLike, /, weights: Any = None, minlength: int = 0, *, length: object = None) -> Tensor:
    """Count occurrences of each number from 0 on in ``x`` (1-d, integers), as int64.

    With ``weights`` it is their sums, in their dtype (integers as int64 or uint64). There are as many as the largest
    number says, ``minlength`` at least, and negative ones are an ArgumentError. With ``length``, which compiled
    functions need, there are so many whatever ``minlength`` is, and numbers outside of them are left out.

    Raises ShapeError for other axes and where ``weights`` has another shape, DTypeError for floats, and TraceError
    without ``length`` in a compiled function.

    Args:
        x: integers of one axis, not negative.
        weights: what is added up, of the shape of ``x``.
        minlength: how many numbers are counted at least.
        length: how many numbers are counted; unless given, calls find it.

    Returns:
        A tensor of one axis.

    >>> hf.bincount([1, 3, 1])
    <Tensor i64[4] cpu> [0 2 0 1]
    >>> hf.bincount([1, 3, 1], length=3)
    <Tensor i64[3] cpu> [0 2 0]
    """
    if weights is None and (few := _small_integers(x)) is not None:
        return _counted_in_parts(few, minlength, length)
    values = numbers(x, "bincount")
    if values.ndim != 1:
        raise ShapeError("bincount", f"the numbers are {values.type}; they must be one-dimensional.")
    counted = _weights("bincount", weights, values)
    if length is not None:
        return _counted(values, counted, type_rules.extent("bincount", "length", length))
    known = values._known()
    if known is not None:
        return _counted(values, counted, _length_of(known, minlength))
    least = _least_length(minlength)
    if values.shape[0] == 0:
        return _counted(values, counted, least)
    smallest, largest = min(values), max(values)
    size = where(less(smallest, 0), smallest, maximum(add(largest, 1), least))._to_extent(
        lambda: TraceError(
            "bincount",
            f"the result's size depends on the values of {values!r}; say how many numbers there may be, "
            "bincount(x, length=...), or call it outside of the traced function.",
        )
    )
    if size < 0:
        raise _is_negative(size)
    return _counted(values, counted, size)


def _length_of(known: np.ndarray, minlength: object) -> int:
    """How many numbers are counted, by those that there are."""
    if known.size and known.min() < 0:
        raise _is_negative(known.min())
    least = _least_length(minlength)
    largest = int(known.max()) + 1 if known.size else 0
    return largest if largest > least else least


def _is_negative(number: object) -> ArgumentError:
    return ArgumentError("bincount", f"{number} is among the numbers; they must not be negative.")


def _least_length(minlength: object) -> int:
    least = type_rules.integer("bincount", "minlength", minlength)
    if least < 0:
        raise ArgumentError("bincount", f"minlength is {least}; it must not be negative.")
    return least


_PART = 1 << 18  # numbers that are counted at once


def _small_integers(x: ArrayLike) -> np.ndarray | None:
    """Many integers along one axis, of less than 64 bits, that are known outside of a trace; None for others."""
    if not isinstance(x, (Tensor, Variable)) or now().trace is not None:
        return None
    array = as_tensor(x, "bincount")._array
    if type(array) is not np.ndarray or array.ndim != 1 or array.size < 2 * _PART or array.dtype.itemsize == 8:
        return None
    return array if dtypes.is_integer(array.dtype) else None


def _counted_in_parts(array: np.ndarray, minlength: object, length: object) -> Tensor:
    """So that not all of them have to be there as int64."""
    if length is None:
        count = _length_of(array, minlength)
    else:
        count = int(type_rules.extent("bincount", "length", length))
    total = np.zeros(count, np.int64)
    for start in builtins.range(0, array.size, part := builtins.max(_PART, count)):
        few = wrap(np.ascontiguousarray(array[start : start + part]))
        total += _counted(numbers(few, "bincount"), None, count)._array
    return wrap(total)


def _weights(stage: str, weights: ArrayLike, x: Tensor) -> Tensor | None:
    """Weights along one axis, in the dtype of their sums."""
    if weights is None:
        return None
    weights_known = as_tensor(weights, stage)
    if weights_known.shape != x.shape:
        raise ShapeError(stage, f"the weights {weights_known.type} do not have the shape of {x.type}.")
    return reshape_to(cast(weights_known, sum_dtype(weights_known.dtype)), (product(x.shape),))


@operation
def _counted(x: Tensor, weights: Tensor | None, length: object) -> Tensor:
    values = filled(1, default_int, x.shape, "bincount") if weights is None else weights
    return added_up(values, x, length)


@entered
def histogram(
    x: ArrayLike,
    /,
    bins: int | ArrayLike = 10,
    range: Sequence[float] | None = None,
    *,
    weights: Any = None,
    density: bool | None = False,
) -> Histogram:
    """How many elements of ``x`` lie in each bin, as int64, and the edges of the bins, of which there is one more.

    ``bins`` are so many of one width over ``range``, (lowest, highest), which is that of the elements unless given; or
    they are between edges, which ascend.  A bin holds its lower edge, the last one both; what lies outside, and NaN, is
    left out.  With ``weights``, of the shape of ``x``, their sums are given in their dtype (integers as int64 or
    uint64); with ``density`` all is divided by its sum and by the widths.  Edges are of the dtype of ``x``, float32 for
    bools and integers, unless a tensor or an array gives them.

    Args:
        x: a tensor, array, nested list or number.
        bins: how many, or the edges.
        range: lowest and highest edge.
        weights: what is added up, of the shape of ``x``.
        density: whether the integral is to be 1.

    Returns:
        A named tuple: ``counts`` for each bin, ``edges``, one more.

    Raises:
        ArgumentError: for a range that is not finite or descends, edges that descend, and less than one bin. In
            compiled functions elements that have no finite range give edges of NaN instead.

    >>> hf.histogram([1.0, 2.0, 1.0, 4.0], 3)
    Histogram(counts=<Tensor i64[3] cpu> [2 1 1], edges=<Tensor f32[4] cpu> [1. 2. 3. 4.])
    """
    x = as_tensor(x, "histogram")
    counted = _weights("histogram", weights, x)
    if not dtypes.is_float(x.dtype):
        dtype, x = default_float, cast(x, dtypes.float64)
    else:
        dtype = x.dtype
    x = reshape_to(x, (product(x.shape),))
    edges, shown = _edges_of("histogram", x, bins, range, dtype)
    return Histogram(_within(x, edges, counted, bool(density)), shown)


@entered
def histogramdd(
    sample: object,
    bins: object = 10,
    range: Sequence[float] | None = None,
    density: bool | None = None,
    weights: ArrayLike | None = None,
) -> HistogramND:
    """How many points lie in each bin of a grid, as float64, and the edges of the bins of each axis.

    Args:
        sample: the points: a tensor or an array with a row for each, or a sequence of vectors with a coordinate each.
        bins: how many, or for each axis how many or the edges.
        range: lowest and highest edge for each axis, or None; those of the points unless given.
        density: whether the integral is to be 1.
        weights: what is added up, one for each point.

    Returns:
        A named tuple: ``counts``, a float64 tensor with an axis for each coordinate, and ``edges``, a list of vectors.

    Raises:
        ArgumentError: for a range that is not finite or descends, edges that descend, and less than one bin.
        ShapeError: where ``bins``, ``range`` or ``weights`` do not fit the points. Also for points of more than two
            axes, and for coordinates that are not vectors of one size.

    >>> hf.histogramdd([[0.0, 1.0, 1.0], [0.0, 3.0, 2.5]], (2, 2)).counts
    <Tensor f64[2,2] cpu>
    [[1. 0.]
     [0. 2.]]
    """
    stage = "histogramdd"
    columns = _coordinates(stage, sample)
    for column in columns:
        type_rules.check_dtype(stage, column.type, frozenset(dtypes.REAL))
    columns = [x if dtypes.is_float(x.dtype) else cast(x, dtypes.float64) for x in columns]
    several = list(bins) if isinstance(bins, (list, tuple)) else [bins] * len(columns)
    ranges = [None] * len(columns) if range is None else list(range)
    if len(several) != len(columns) or len(ranges) != len(columns):
        raise ShapeError(stage, f"{len(several)} bins and {len(ranges)} ranges for points of {len(columns)} axes.")
    edges = [_edges_of(stage, x, b, r)[0] for x, b, r in zip(columns, several, ranges)]
    values = None if weights is None else cast(as_tensor(weights, stage), dtypes.float64)
    if values is not None and values.shape != columns[0].shape:
        raise ShapeError(
            stage, f"the weights are {values.type}. Expected one for each of {columns[0].shape[0]} points."
        )
    return HistogramND(_within_grid(columns, edges, values, bool(density)), edges)


def _coordinates(stage: str, sample: object) -> list[Tensor]:
    """A vector for each axis of the points."""
    if not isinstance(sample, (list, tuple)) or builtins.all(isinstance(one, Number) for one in sample):
        points = as_tensor(sample, stage)
        if points.ndim > 2:
            raise ShapeError(stage, f"the points are {points.type}. Expected a row for each.")
        if points.ndim < 2:
            return [reshape_to(points, (product(points.shape),))]
        return [points[:, k] for k in builtins.range(points.shape[1])]
    columns = [as_tensor(column, stage) for column in sample]
    for column in columns:
        if column.ndim != 1 or column.shape != columns[0].shape:
            raise ShapeError(
                stage, f"coordinates are {columns[0].type} and {column.type}. Expected vectors of one size."
            )
    return columns


@operation
def _within_grid(columns: list[Tensor], edges: list[Tensor], weights: Tensor | None, density: bool) -> Tensor:
    places, size = filled(0, default_int, (), "histogramdd"), 1
    missing: Any = False
    for x, limits in zip(columns, edges):
        count = limits.shape[0] - 1
        number = _bin_of(x, limits)
        missing = logical_or(missing, logical_or(less(number, 0), greater_equal(number, count)))
        places, size = add(multiply(places, count), number), size * count
    total = cast(_counted(where(missing, -1, places), weights, size), dtypes.float64)
    shape = tuple(limits.shape[0] - 1 for limits in edges)
    total = reshape_to(total, shape)
    if not density:
        return total
    whole = sum(total)
    for axis, limits in enumerate(edges):
        widths = diff(cast(limits, dtypes.float64))
        total = divide(total, reshape_to(widths, tuple(n if k == axis else 1 for k, n in enumerate(shape))))
    return divide(total, whole)


@operation
def digitize(x: ArrayLike, bins: ArrayLike, /, right: bool = False) -> Tensor:
    """Numbers of the bins that elements lie in.

    Bin i goes from ``bins[i - 1]`` up to ``bins[i]``; 0 lies before the first edge, and their number behind the last.

    Args:
        x: a tensor, array, nested list or number.
        bins: the edges, of one axis, which ascend or descend as the first and the last one say.
        right: whether a bin holds its upper edge and not its lower one.

    Returns:
        An int64 tensor of the shape of ``x``.

    Raises:
        ShapeError: for edges of other axes.

    >>> hf.digitize([0.5, 1.0, 9.0], [0.0, 1.0, 2.0])
    <Tensor i64[3] cpu> [1 2 3]
    """
    edges, x = common_dtype("digitize", (bins, x))
    if edges.ndim != 1:
        raise ShapeError("digitize", f"the edges are {edges.type}. Expected one axis.")
    side = "left" if right else "right"
    up = searchsorted(edges, x, side=side)
    if edges.shape[0] == 0:
        return up
    down = subtract(edges.shape[0], searchsorted(flip(edges), x, side=side))
    return where(greater(edges[0], edges[-1]), down, up)


def _edges_of(stage: str, x: Tensor, bins: Any, range: Any, dtype: Any = None) -> tuple[Tensor, Tensor]:
    """The edges to compare with, and those that are shown, in ``dtype`` unless a tensor or an array gives them."""
    dtype = x.dtype if dtype is None else dtype
    if isinstance(bins, str):
        raise ArgumentError(stage, f"bins is {bins!r}; it must be how many there are, or their edges.")
    if np.ndim(bins) == 0:
        edges = _edges(stage, x, type_rules.integer(stage, "bins", bins), range)
        return edges, cast(edges, dtype)
    edges = as_tensor(bins, stage, x.dtype if isinstance(bins, (list, tuple)) else None)
    shown = cast(edges, dtype) if isinstance(bins, (list, tuple)) else edges
    if edges.ndim != 1 or edges.shape[0] == 0:
        raise ShapeError(stage, f"the edges are {edges.type}; they must be one-dimensional, and there.")
    known = edges._known()
    if known is not None and not np.all(known[:-1] <= known[1:]):
        raise ArgumentError(stage, "the edges in bins must ascend.")
    return edges, shown


def _edges(stage: str, x: Tensor, bins: int, range: Sequence[float] | None) -> Tensor:
    """The edges of bins of one width, in the dtype of ``x``."""
    if bins < 1:
        raise ArgumentError(stage, f"bins is {bins}; there must be one at least.")
    if range is not None:
        low, high = (as_tensor(end, stage, dtypes.float64) for end in range)
        what = "range"
    elif x.shape[0] == 0:
        low, high, what = as_tensor(0.0, stage), as_tensor(1.0, stage), ""
    else:
        low, high, what = min(x), max(x), "the range of the elements"
    ends = [end._known() for end in (low, high)]
    for end in ends:
        if end is not None and not np.all(np.isfinite(end)):
            raise ArgumentError(stage, f"{what} is [{ends[0]}, {ends[1]}]; it must be finite.")
    if ends[0] is not None and ends[1] is not None and np.any(ends[0] > ends[1]):
        raise ArgumentError(stage, f"{what} is [{ends[0]}, {ends[1]}]; it must not descend.")
    return _spaced(low, high, bins, x.dtype)


@operation
def _spaced(low: Tensor, high: Tensor, bins: int, dtype: DTypeLike) -> Tensor:
    low, high = cast(low, dtypes.float64), cast(high, dtypes.float64)
    space = where(equal(low, high), 0.5, 0.0)
    return linspace(subtract(low, space), add(high, space), bins + 1, dtype)


def _bin_of(x: Tensor, edges: Tensor) -> Tensor:
    """The number of the bin of each element; -1 before the first edge, and that of the bins behind the last one."""
    values, limits = common_dtype("histogram", (x, edges))
    number = subtract(searchsorted(limits, values, side="right"), 1)
    return where(equal(values, limits[-1:]), limits.shape[0] - 2, number)


@operation
def _within(x: Tensor, edges: Tensor, weights: Tensor | None, density: bool) -> Tensor:
    total = _counted(_bin_of(x, edges), weights, edges.shape[0] - 1)
    if not density:
        return total
    widths = diff(edges if dtypes.is_float(edges.dtype) else cast(edges, default_float))
    total = total if dtypes.is_float(total.dtype) else cast(total, widths.dtype)
    return divide(divide(total, widths), sum(total))
