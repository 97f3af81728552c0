"""Indexing: ``x[...]`` with NumPy's meaning, and the functions that look elements up by position.

Everything becomes slice, reverse, reshape, transpose and take ops, so gradients flow.  Negative positions count from
the end.  A position out of range raises IndexRangeError: Python ints at once, positions in tensors when the op runs.
"""

from __future__ import annotations

import builtins
import math
from typing import Any, NamedTuple

import numpy as np

from hybridflow.array.creation import iota
from hybridflow.array.elementwise import (
    add,
    equal,
    floor_divide,
    greater_equal,
    less,
    logical_and,
    minimum,
    multiply,
    remainder,
    subtract,
    where,
)
from hybridflow.array.reductions import count_nonzero, cumulative_sum
from hybridflow.array.shapes import expand_dims, known_extent, moveaxis, reshape, slice_axis, unstack
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ir.extents import Dim, Extent
from hybridflow.compiler.ir.types import Shape, is_static, same_extents
from hybridflow.compiler.ops import TABLE, type_rules
from hybridflow.core.context import busy, reasons
from hybridflow.core.promotion import default_float, default_int, to_dtype
from hybridflow.core.tensor import Operators, Tensor, wrap
from hybridflow.core.type_aliases import ArrayLike, DTypeLike
from hybridflow.eager.dispatch import apply
from hybridflow.eager.operands import (
    as_tensor,
    broadcast_all,
    cast,
    common_dtype,
    expand,
    filled,
    fresh,
    from_numpy,
    literal,
    reshape_to,
)
from hybridflow.eager.public_op import operation
from hybridflow.errors import ArgumentTypeError, DTypeError, IndexRangeError, ShapeError, TraceError
from hybridflow.runtime import uninterruptible


class New(NamedTuple):
    """A new axis of extent 1."""


class Position(NamedTuple):
    """One position of an axis, which goes away."""

    at: Extent


class Range(NamedTuple):
    """``start, start + step, ...`` below ``stop`` with step >= 1, then in reverse order if asked."""

    start: Any
    stop: Any
    step: int
    reverse: bool


class Lookup(NamedTuple):
    """Positions of an axis in an integer tensor."""

    at: Tensor


_Entry = Any  # one of the four


def getitem(x: Operators, key: object) -> Tensor:
    """``x[key]``: ints, slices, None, Ellipsis, integer arrays and bool masks, combined as NumPy combines them.

    A mask's result has a size that depends on values, which calls of compiled functions find.  TraceError is raised in
    what has to be one program.
    """
    out = _take_as_numpy(x, key) if not busy.value or reasons.none_here() else None
    if out is not None:
        return out
    x = as_tensor(x, "getitem")
    parts = [key_part(p) for p in (key if isinstance(key, tuple) else (key,))]
    x = _unfolded(x, parts)
    entries = entries_of(x, parts)
    if not builtins.any(isinstance(e, Lookup) for e in entries):
        return fresh(_basic(x, entries), x)
    # NumPy counts ints as arrays here, and an Ellipsis as something in between even where it stands for no axis.
    places = [k for k, p in enumerate(parts) if isinstance(p, (int, Dim, Tensor))]
    return _lookup(x, entries, together=places == list(range(places[0], places[-1] + 1)))


def _take_as_numpy(x: ArrayLike, key: object) -> Tensor | None:
    """NumPy's own way for one mask, or one tensor of positions, while nothing records: elements change places and not
    their bits.  None where there is none, or an error to explain."""
    if type(x) is not Tensor or type(key) is not Tensor:
        return None
    array, index = x._array, key._array
    if type(array) is not np.ndarray or type(index) is not np.ndarray or not index.ndim or index.dtype.kind not in "bi":
        return None
    try:
        return wrap(np.asarray(array[index]))
    except IndexError:
        return None


# ---- reading the key


def entries_of(x: Tensor, parts: list[Any]) -> list[_Entry]:
    """What the parts of the key ask of each axis of ``x``, with new axes in between."""
    if builtins.sum(p is Ellipsis for p in parts) > 1:
        raise ArgumentTypeError("getitem", "an index may contain one Ellipsis ('...') only.")
    used = builtins.sum(_axes_used(p) for p in parts)
    if used > x.ndim:
        raise IndexRangeError("getitem", f"{used} indices are too many for {x.type}, which has {x.ndim} axes.")
    if not builtins.any(p is Ellipsis for p in parts):
        parts = [*parts, Ellipsis]
    entries: list[_Entry] = []
    axis = 0
    for part in parts:
        if part is None:
            entries.append(New())
        elif part is Ellipsis:
            entries.extend(Range(0, x.shape[axis + k], 1, False) for k in range(x.ndim - used))
            axis += x.ndim - used
        elif isinstance(part, slice):
            entries.append(_range(x, axis, part))
            axis += 1
        elif isinstance(part, (int, Dim)):
            entries.append(_position(x, axis, part))
            axis += 1
        elif dtypes.is_bool(part.dtype):
            entries.extend(_mask(x, axis, part))
            axis += part.ndim
        else:
            entries.append(Lookup(part))
            axis += 1
    return entries


def key_part(part: Any) -> Any:
    """One part of the key: None, Ellipsis, a slice, an int, or an index tensor (int64 or bool)."""
    if part is None or part is Ellipsis or isinstance(part, slice) or type(part) in (int, Dim):
        return part
    if isinstance(part, (bool, np.bool_)):
        raise ArgumentTypeError(
            "getitem", "a Python bool is no index. Use hf.where(condition, x, y), or x[None] for True."
        )
    if isinstance(part, float):
        raise ArgumentTypeError("getitem", f"{part!r} is a float; an index must be an integer. Use int(...) or //.")
    if isinstance(part, (list, Operators, np.ndarray, tuple, range)) or _is_foreign_array(part):
        if isinstance(part, (list, tuple, range)) and len(part) == 0:
            return as_tensor([], "getitem", default_int)
        index = as_tensor(part, "getitem")
        if dtypes.is_bool(index.dtype):
            return index
        if not dtypes.is_integer(index.dtype):
            raise ArgumentTypeError("getitem", f"an index of {index.type} is not an integer or a bool mask.")
        return _signed(index)
    try:
        return int(part.__index__())
    except (AttributeError, TypeError):
        raise ArgumentTypeError(
            "getitem",
            f"{type(part).__name__} is no index; use ints, slices, None, '...', integer arrays or bool masks.",
        ) from None


@uninterruptible.loaded
def _foreign() -> Any:
    from hybridflow.core import interop  # which a first operation does without

    return interop


def _is_foreign_array(part: object) -> bool:
    return bool(_foreign().is_array(part))


def _unfolded(x: Tensor, parts: list[Any]) -> Tensor:
    """``x`` with an axis of extent 1 where a scalar mask stands, which becomes a mask of that axis in ``parts``."""
    for k, part in enumerate(parts):
        if isinstance(part, Tensor) and dtypes.is_bool(part.dtype) and not part.ndim:
            behind = builtins.any(p is Ellipsis for p in parts[:k])
            used = builtins.sum(map(_axes_used, parts[k + 1 :] if behind else parts[:k]))
            x = expand_dims(x, builtins.min(builtins.max(x.ndim - used if behind else used, 0), x.ndim))
            parts[k] = reshape_to(part, (1,))
    return x


def _axes_used(part: object) -> int:
    if part is None or part is Ellipsis:
        return 0
    return part.ndim if isinstance(part, Tensor) and dtypes.is_bool(part.dtype) else 1


def _position(x: Tensor, axis: int, index: Extent) -> _Entry:
    extent = x.shape[axis]
    if not -extent <= index < extent:
        raise IndexRangeError(
            "getitem",
            f"index {index} is out of range for axis {axis} of {x.type}. Expected -{extent} <= index < {extent}.",
        )
    return Position(index if index >= 0 else index + extent)


def _range(x: Tensor, axis: int, part: slice) -> Range:
    extent = x.shape[axis]
    bounds = [None if v is None else type_rules.whole("getitem", "a slice bound", v) for v in (part.start, part.stop)]
    step = 1 if part.step is None else type_rules.integer("getitem", "a slice step", part.step)
    if step == 0:
        raise ArgumentTypeError("getitem", "a slice step must not be 0.")
    if not all(v is None or isinstance(v, int) for v in (extent, *bounds)):
        return _symbolic_range(extent, bounds[0], bounds[1], step)
    indices = range(*slice(bounds[0], bounds[1], step).indices(extent))
    if len(indices) == 0:
        return Range(0, 0, 1, False)
    first, last = (indices[0], indices[-1]) if step > 0 else (indices[-1], indices[0])
    return Range(first, last + 1, builtins.abs(step), step < 0)


def _symbolic_range(extent: Extent, start: Extent | None, stop: Extent | None, step: int) -> Range:
    """What Python's slices mean, of extents."""
    low, high = (0, extent) if step > 0 else (-1, extent - 1)

    def clamped(bound: Extent | None, default: Extent) -> Extent:
        if bound is None:
            return default
        bound = bound if bound >= 0 else bound + extent
        return low if bound < low else high if bound > high else bound

    first, behind = clamped(start, low if step > 0 else high), clamped(stop, high if step > 0 else low)
    length = behind - first if step > 0 else first - behind
    if length <= 0:
        return Range(0, 0, 1, False)
    if step > 0:
        return Range(first, behind, step, False)
    return Range(first - (length - 1) // -step * -step, first + 1, -step, True)


def _mask(x: Tensor, axis: int, mask: Tensor) -> list[_Entry]:
    """A mask over the axes from ``axis`` as the positions where it is true."""
    covered = x.shape[axis : axis + mask.ndim]
    if builtins.any(m != 0 and m != n for m, n in zip(mask.shape, covered)):  # one of no elements fits, as in NumPy
        raise IndexRangeError(
            "getitem", f"the mask {mask.type} does not have the shape of the axes it covers in {x.type}."
        )
    array = mask._known()
    if array is not None:
        return [Lookup(from_numpy(index, "getitem")) for index in np.nonzero(array)]
    count = count_nonzero(mask)._to_extent(
        lambda: TraceError(
            "getitem",
            f"the mask {mask!r} selects as many elements as its values say, so the result has no shape while tracing. "
            "Keep the shape with hf.where(mask, x, 0), say how many there may be, hf.boolean_mask(x, mask, size=...), "
            "or select outside the traced function.",
        )
    )
    return [Lookup(index) for index in positions_of_true(mask, count)]


# ---- applying it


def _sliced(x: Tensor, entries: list[_Entry]) -> Tensor:
    """``x`` with its ranges cut out and positions cut to extent 1; looked-up axes stay whole."""
    starts, stops, steps, reversed_axes = [], [], [], []
    for axis, entry in enumerate(e for e in entries if not isinstance(e, New)):
        if isinstance(entry, Range):
            start, stop, step = entry.start, entry.stop, entry.step
            if entry.reverse:
                reversed_axes.append(axis)
        elif isinstance(entry, Position):
            start, stop, step = entry.at, entry.at + 1, 1
        else:
            start, stop, step = 0, x.shape[axis], 1
        starts.append(start)
        stops.append(stop)
        steps.append(step)
    whole = same_extents(tuple(starts), (0,) * x.ndim) and same_extents(tuple(stops), x.shape)
    if not whole or builtins.any(s != 1 for s in steps):
        x = apply(TABLE["slice"], x, start=tuple(starts), stop=tuple(stops), step=tuple(steps))
    return apply(TABLE["reverse"], x, axes=tuple(reversed_axes)) if reversed_axes else x


def _basic(x: Tensor, entries: list[_Entry]) -> Tensor:
    x = _sliced(x, entries)
    shape, axis = [], 0
    for entry in entries:
        if isinstance(entry, New):
            shape.append(1)
        else:
            if isinstance(entry, Range):
                shape.append(x.shape[axis])
            axis += 1
    return reshape_to(x, tuple(shape))


def _lookup(x: Tensor, entries: list[_Entry], together: bool) -> Tensor:
    """Indexing with arrays, whose axes go where they stand in the key when they stand together, in front otherwise."""
    x = _sliced(x, entries)
    first = next(k for k, e in enumerate(entries) if isinstance(e, (Lookup, Position)))
    remaining = [e for e in entries if not isinstance(e, New)]
    x = reshape_to(x, tuple(n for n, e in zip(x.shape, remaining) if not isinstance(e, Position)))
    axes = [k for k, e in enumerate(e for e in remaining if not isinstance(e, Position)) if isinstance(e, Lookup)]
    indices = broadcast_all("getitem", [e.at for e in entries if isinstance(e, Lookup)])

    # The looked-up axes become one axis at ``place``, which one take replaces by the axes of the index.
    place = axes[0]
    if axes != list(range(place, place + len(axes))):
        x, axes, place = moveaxis(x, axes, list(range(len(axes)))), list(range(len(axes))), 0
    if len(axes) == 1:
        index = indices[0]
    else:
        extents = tuple(x.shape[k] for k in axes)
        index = _linear_index(indices, extents, x)
        x = reshape_to(x, (*x.shape[:place], math.prod(extents), *x.shape[axes[-1] + 1 :]))
    x = apply(TABLE["take"], x, index, axis=place)
    if not together and place:
        x = moveaxis(x, list(range(place, place + index.ndim)), list(range(index.ndim)))
        place = 0

    rest = iter((*x.shape[:place], *x.shape[place + index.ndim :]))
    shape: list[Any] = [] if together else list(index.shape)
    for k, entry in enumerate(entries):
        if together and k == first:
            shape.extend(index.shape)
        if isinstance(entry, New):
            shape.append(1)
        elif isinstance(entry, Range):
            shape.append(next(rest))
    return reshape_to(x, tuple(shape))


def _linear_index(indices: list[Tensor], extents: Shape, x: Tensor) -> Tensor:
    """Positions in the axes ``extents`` as positions in those axes flattened."""
    arrays = [array for x in indices if (array := x._known()) is not None]
    if len(arrays) == len(indices) and is_static(extents):
        for array, extent in zip(arrays, extents):
            outside = array[(array < -extent) | (array >= extent)]
            if outside.size:
                raise IndexRangeError(
                    "getitem", f"index {outside.flat[0]} is out of range for an axis of {extent} of {x.type}."
                )
        wrapped = tuple(array % extent if array.size else array for array, extent in zip(arrays, extents))
        return literal(np.asarray(np.ravel_multi_index(wrapped, extents) if arrays[0].size else arrays[0], np.int64))
    linear, inside = None, None
    for index, extent in zip(indices, extents):
        index = where(less(index, 0), add(index, extent), index)
        valid = logical_and(greater_equal(index, 0), less(index, extent))
        linear = index if linear is None else add(multiply(linear, extent), index)
        inside = valid if inside is None else logical_and(inside, valid)
    assert linear is not None and inside is not None
    # A position outside its own axis could be inside the flattened one: send it where take raises.
    return where(inside, linear, math.prod(extents))


# ---- functions


def _indices(indices: ArrayLike, stage: str) -> Tensor:
    positions = as_tensor(indices, stage)
    if isinstance(indices, (list, tuple)) and len(indices) == 0:
        return cast(positions, default_int)
    if not dtypes.is_integer(positions.dtype):
        raise DTypeError(
            stage, f"the indices are {positions.type}; they must be integers. Convert them with hf.astype."
        )
    return positions if positions.dtype in (dtypes.int32, dtypes.int64) else _signed(positions)


def _signed(indices: Tensor) -> Tensor:
    """Indices as int64.  Numbers of uint64 that are none of int64 would count from the end; they stay behind it."""
    if indices.dtype == dtypes.uint64:
        indices = minimum(indices, np.uint64(np.iinfo(np.int64).max))
    return cast(indices, default_int)


@operation
def take(x: ArrayLike, indices: ArrayLike, /, axis: int | None = None) -> Tensor:
    """The elements of ``x`` at ``indices`` along ``axis`` (needed unless ``x`` has one axis), which become the axes of
    ``indices``.  Raises IndexRangeError for a position out of range.

    Args:
        x: a tensor, array, nested list or number.
        indices: integers; negative ones count from the end.
        axis: an axis; negative ones count from the end.

    Returns:
        A tensor in the dtype of ``x``, with the axes of ``indices`` in the place of ``axis``.

    Raises:
        AxisError: for an axis out of range.

    >>> hf.take([10, 20, 30], [2, 0])
    <Tensor i64[2] cpu> [30 10]
    """
    x = as_tensor(x, "take")
    if axis is None:
        if x.ndim != 1:
            raise ShapeError("take", f"axis must be given for {x.type}.")
        axis = 0
    return apply(TABLE["take"], x, _indices(indices, "take"), axis=type_rules.axis("take", x.type, axis))


@operation
def take_along_axis(x: ArrayLike, indices: ArrayLike, /, axis: int = -1) -> Tensor:
    """For each element of ``indices``, the element of ``x`` at that position along ``axis`` and that place otherwise.

    Both have the same number of axes; the extents of the other axes broadcast.

    Args:
        x: a tensor, array, nested list or number.
        indices: integers, of as many axes as ``x``.
        axis: an axis; negative ones count from the end.

    Returns:
        A tensor of the shape of ``indices``, broadcast, in the dtype of ``x``.

    Raises:
        AxisError: for an axis out of range.

    >>> hf.take_along_axis([[1, 2], [3, 4]], [[1], [0]])
    <Tensor i64[2,1] cpu>
    [[2]
     [3]]
    """
    x, indices = as_tensor(x, "take_along_axis"), _indices(indices, "take_along_axis")
    axis = type_rules.axis("take_along_axis", x.type, axis)
    x, indices = _matched(x, indices, axis, "take_along_axis")
    return apply(TABLE["take_along_axis"], x, indices, axis=axis)


def _matched(x: Tensor, indices: Tensor, axis: int, stage: str) -> tuple[Tensor, Tensor]:
    """Both with equal extents on all axes but ``axis``."""
    if indices.ndim != x.ndim:
        raise ShapeError(stage, f"the indices {indices.type} must have as many axes as {x.type}.")
    shapes = []
    for n, m in zip(x.shape, indices.shape):
        shapes.append(m if n == 1 else n)
    for k, (n, m) in enumerate(zip(x.shape, indices.shape)):
        if (k != axis and shapes[k] not in (n, m)) or (k != axis and m not in (1, shapes[k])):
            raise ShapeError(stage, f"axis {k} of the indices {indices.type} does not fit {x.type}.")
    others = [(*shapes[:axis], t.shape[axis], *shapes[axis + 1 :]) for t in (x, indices)]
    return expand(x, others[0]), expand(indices, others[1])


@operation
def gather(params: ArrayLike, indices: ArrayLike, axis: int | None = None, batch_dims: int = 0) -> Tensor:
    """Gather slices of ``params`` along ``axis`` at ``indices``.

    The first ``batch_dims`` axes of both go together, and the one behind them is ``axis`` if it is not given. The
    result has the shape ``params.shape[:axis] + indices.shape[batch_dims:] + params.shape[axis + 1:]``.

    Args:
        params: what is taken from.
        indices: integers.
        axis: the axis that they index.
        batch_dims: how many first axes both share.

    Returns:
        A tensor in the dtype of ``params``.

    Raises:
        AxisError: for an axis out of range.
        IndexRangeError: where an index is out of range.

    >>> hf.gather([[1, 2], [3, 4]], [1, 0, 1])
    <Tensor i64[3,2] cpu>
    [[3 4]
     [1 2]
     [3 4]]
    """
    params, indices = as_tensor(params, "gather"), _indices(indices, "gather")
    axis = type_rules.axis("gather", params.type, batch_dims if axis is None else axis)
    if not 0 <= batch_dims <= builtins.min(axis, indices.ndim):
        raise ShapeError("gather", f"batch_dims {batch_dims} must lie in [0, min(axis, indices.ndim)].")
    if batch_dims == 0:
        return apply(TABLE["take"], params, indices, axis=axis)
    if params.shape[:batch_dims] != indices.shape[:batch_dims]:
        raise ShapeError("gather", f"the first {batch_dims} axes of {params.type} and {indices.type} differ.")
    batch = [
        iota((*indices.shape[:batch_dims], *(1,) * (indices.ndim - batch_dims)), k, default_int)
        for k in range(batch_dims)
    ]
    moved = moveaxis(params, axis, batch_dims)
    result = getitem(moved, (*batch, indices))
    inner = list(range(batch_dims, indices.ndim))
    return moveaxis(result, inner, [k + axis - batch_dims for k in inner])


@operation
def gather_nd(params: ArrayLike, indices: ArrayLike) -> Tensor:
    """The elements or slices of ``params`` at the index vectors in the last axis of ``indices``; all of ``params`` for
    an index vector without elements.

    Args:
        params: what is taken from.
        indices: integers; the last axis holds vectors of indices.

    Returns:
        A tensor of shape ``indices.shape[:-1] + params.shape[indices.shape[-1]:]``.

    Raises:
        IndexRangeError: where an index is out of range.

    >>> hf.gather_nd([[1, 2], [3, 4]], [[0, 1], [1, 0]])
    <Tensor i64[2] cpu> [2 3]
    """
    params, indices = as_tensor(params, "gather_nd"), _indices(indices, "gather_nd")
    depth = known_extent(indices, indices.ndim - 1, "gather_nd") if indices.ndim else None
    if depth is None or depth > params.ndim:
        raise ShapeError(
            "gather_nd", f"the last axis of {indices.type} must index at most the {params.ndim} axes of {params.type}."
        )
    if depth == 0:
        return expand(params, (*indices.shape[:-1], *params.shape))
    return getitem(params, unstack(indices, -1))


@operation
def scatter_add(x: ArrayLike, indices: ArrayLike, updates: ArrayLike, axis: int = 0) -> Tensor:
    """Scatter-add: ``x`` with ``updates`` added at ``indices`` along ``axis``; a position given twice receives both.

    Args:
        x: what is added to.
        indices: integers; negative ones count from the end.
        updates: what is added, of the shape of ``hf.take(x, indices, axis)``, or broadcast to it.
        axis: the axis that ``indices`` are of.

    Returns:
        A tensor of the shape of ``x``, in the dtype to which ``x`` and ``updates`` are promoted.

    Raises:
        AxisError: for an axis out of range.
        ShapeError: where ``updates`` do not fit.
        IndexRangeError: where an index is out of range.

    >>> hf.scatter_add([0, 0, 0], [2, 0, 2], [1, 2, 3])
    <Tensor i64[3] cpu> [2 0 4]
    """
    x, updates = common_dtype("scatter_add", (as_tensor(x, "scatter_add"), updates))
    indices = _indices(indices, "scatter_add")
    axis = type_rules.axis("scatter_add", x.type, axis)
    shape = (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])
    try:
        updates = expand(updates, shape) if updates.ndim <= len(shape) else updates
    except ShapeError:
        raise ShapeError("scatter_add", f"the updates {updates.type} do not fit {list(shape)}.") from None
    return apply(TABLE["scatter_add"], x, indices, updates, axis=axis)


@operation
def one_hot(indices: ArrayLike, depth: int, axis: int = -1, dtype: DTypeLike = default_float) -> Tensor:
    """One-hot encoding: 1 at the position that each index names along a new axis of extent ``depth``, 0 elsewhere.

    An index outside [0, depth) gives zeros.

    Args:
        indices: integers.
        depth: the extent of the new axis.
        axis: where the new axis is in the result.
        dtype: the dtype of the result.

    Returns:
        A tensor with one axis more than ``indices``.

    Raises:
        AxisError: for an axis out of range.

    >>> hf.one_hot([0, 2], 3)
    <Tensor f32[2,3] cpu>
    [[1. 0. 0.]
     [0. 0. 1.]]
    """
    indices = _indices(indices, "one_hot")
    extent = type_rules.extent("one_hot", "depth", depth)
    axis = type_rules.axis("one_hot", expand_dims(indices).type, axis)
    wide = expand_dims(indices, axis)
    positions = iota((*wide.shape[:axis], extent, *wide.shape[axis + 1 :]), axis, indices.dtype)
    return cast(equal(wide, positions), to_dtype(dtype, "one_hot"))


def first_positions(chosen: Tensor, size: Extent) -> Tensor:
    """The positions of the first ``size`` that are true; where there are fewer, any others behind them.

    Each position is written where the next one that is true belongs, so that those stay which are true themselves;
    what belongs behind the last place is written there, and cut off.
    """
    count = chosen.shape[0]
    flags = cast(chosen, default_int)
    before = minimum(subtract(cumulative_sum(flags), flags), size)
    empty = filled(0, default_int, (size + 1,), "nonzero")
    places = apply(TABLE["scatter_set"], empty, before, iota((count,), 0, default_int), axis=0, known=True)
    return slice_axis(places, 0, 0, size)


def positions_of_true(chosen: Tensor, count: Extent) -> tuple[Tensor, ...]:
    """The positions of all that are true, which are so many, one tensor for each axis."""
    places = first_positions(reshape(chosen, (-1,)), count)
    return (places,) if chosen.ndim == 1 else unraveled(places, chosen.shape)


def unraveled(places: Tensor, shape: Shape) -> tuple[Tensor, ...]:
    """The positions along each axis of places in row-major order."""
    positions = []
    for extent in reversed(shape):
        positions.append(remainder(places, extent) if extent != 0 else places)
        places = floor_divide(places, extent) if extent != 0 else places
    return tuple(reversed(positions))
