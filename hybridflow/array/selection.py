"""Elements that are chosen by their values.  How many they are depends on these: calls of compiled functions find it,
or are told how many there are to be (``size``): what is missing is filled up, what is too much is left out."""

from __future__ import annotations

import numpy as np

from hybridflow.array.creation import iota
from hybridflow.array.elementwise import (
    isnan,
    less,
    logical_and,
    logical_not,
    maximum,
    not_equal,
    where,
)
from hybridflow.array.indexing import first_positions, positions_of_true, take, unraveled
from hybridflow.array.reductions import count_nonzero, cumulative_sum, min, sum
from hybridflow.array.shapes import concat, reshape
from hybridflow.array.sorting import argsort, searchsorted, sort
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ir.extents import Dim, Extent
from hybridflow.compiler.ir.types import is_one, product
from hybridflow.compiler.ops import TABLE, type_rules
from hybridflow.core.promotion import default_int
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import ArrayLike
from hybridflow.eager.dispatch import apply
from hybridflow.eager.operands import as_tensor, cast, expand, filled, from_numpy, reshape_to, to_shape
from hybridflow.eager.public_op import operation
from hybridflow.errors import IndexRangeError, ShapeError, TraceError, entered


@entered
def nonzero(x: ArrayLike, /, *, size: int | None = None, fill_value: int = 0) -> tuple[Tensor, ...]:
    """The positions of elements that are not zero, one int64 tensor per axis.

    With ``size`` there are so many: ``fill_value`` stands where there are fewer elements, and later ones are left out;
    ``hf.count_nonzero`` says how many there were.  Raises TraceError without it in what has to be one program, such as
    a saved function, ``hf.vmap`` or a loop's body.

    Args:
        x: a tensor of one axis or more.
        size: the number of positions; unless given, calls find it.
        fill_value: the value that fills the rest.

    Returns:
        A tuple of int64 tensors of one axis, one for each axis of ``x``.

    >>> hf.nonzero([0, 5, 0, 7])
    (<Tensor i64[2] cpu> [1 3],)
    >>> hf.nonzero([0, 5, 0, 7], size=3, fill_value=-1)
    (<Tensor i64[3] cpu> [ 1  3 -1],)
    """
    x = as_tensor(x, "nonzero")
    if not x.ndim:
        raise ShapeError("nonzero", "a scalar has no positions.")
    if size is None:
        array = x._known()
        if array is not None:
            return tuple(from_numpy(index, "nonzero") for index in np.nonzero(array))
        count = count_nonzero(x)._to_extent(
            lambda: TraceError(
                "nonzero",
                f"the result's size depends on the values of {x!r}; say how many there may be, nonzero(x, size=...), "
                "call it outside, or use hf.where.",
            )
        )
        return positions_of_true(not_equal(x, 0), count)
    places, there = _indices(reshape(not_equal(x, 0), (-1,)), type_rules.extent("nonzero", "size", size))
    return tuple(where(there, positions, fill_value) for positions in unraveled(places, x.shape))


@entered
def boolean_mask(
    tensor: object,
    mask: ArrayLike,
    axis: int | None = None,
    name: str | None = None,
    *,
    size: int | None = None,
    fill_value: ArrayLike = 0,
) -> Tensor:
    """The parts of ``tensor`` where ``mask`` is true, one behind the other: ``tensor[mask]``.

    The mask covers the axes from ``axis`` on, the first unless given. With ``size`` there are so many parts, filled up
    with ``fill_value`` or cut off.

    Raises AxisError for an axis out of range, and IndexRangeError where the mask has another shape than those
    axes. In what has to be one program, such as a saved function, it raises TraceError without ``size``.

    Args:
        tensor: what is taken from.
        mask: bools.
        axis: the first axis that the mask covers.
        name: has no effect.
        size: the number of parts; unless given, calls find it.
        fill_value: the value that fills the rest.

    Returns:
        A tensor in the dtype of ``tensor``, with one axis for those that the mask covers.

    >>> hf.boolean_mask([[1, 2], [3, 4], [5, 6]], [True, False, True])
    <Tensor i64[2,2] cpu>
    [[1 2]
     [5 6]]
    >>> hf.boolean_mask([1, 2, 3], [True, False, True], size=3)
    <Tensor i64[3] cpu> [1 3 0]
    """
    x, chosen = as_tensor(tensor, "boolean_mask"), as_tensor(mask, "boolean_mask", np.dtype(np.bool_))
    if not chosen.ndim:
        raise ShapeError("boolean_mask", "the mask is a scalar; it must cover an axis.")
    start = type_rules.axis("boolean_mask", x.type, 0 if axis is None else axis)
    end = start + chosen.ndim
    if chosen.shape != x.shape[start:end]:
        raise IndexRangeError(
            "boolean_mask", f"the mask {chosen.type} does not have the shape of the axes it covers in {x.type}."
        )
    flat = reshape(x, (*x.shape[:start], -1, *x.shape[end:])) if x.size else x
    if size is None:
        array = chosen._known()
        if array is not None:
            if not x.size:
                flat = reshape(x, (*x.shape[:start], array.size, *x.shape[end:]))
            return take(flat, from_numpy(np.flatnonzero(array), "boolean_mask"), axis=start)
        count = count_nonzero(chosen)._to_extent(
            lambda: TraceError(
                "boolean_mask",
                f"the mask {chosen!r} selects as many parts as its values say; say how many there may be, "
                "boolean_mask(x, mask, size=...), call it outside, or keep the shape with hf.where.",
            )
        )
        if x.size != 0:
            return take(flat, first_positions(reshape(chosen, (-1,)), count), axis=start)
        return filled(0, x.dtype, (*x.shape[:start], count, *x.shape[end:]), "boolean_mask")
    wanted = type_rules.extent("boolean_mask", "size", size)
    if chosen.size == 0:
        shape = (*x.shape[:start], wanted, *x.shape[end:])
        return cast(filled(fill_value, x.dtype, shape, "boolean_mask"), x.dtype)
    places, there = _indices(reshape(chosen, (-1,)), wanted)
    parts = take(flat, places, axis=start)
    shown = reshape(there, (wanted, *(1 for _ in x.shape[end:])))
    return where(shown, parts, cast(as_tensor(fill_value, "boolean_mask"), x.dtype))


def unique_of(x: Tensor, size: Extent, fill_value: ArrayLike | None) -> Tensor:
    """The distinct elements in ascending order, ``size`` of them; ``fill_value``, or the least element, fills up."""
    flat = sort(reshape(x, (-1,)))
    if flat.shape[0] == 0:
        return filled(0 if fill_value is None else fill_value, x.dtype, (size,), "unique_values")
    places, there = _indices(_begins(flat), size)
    return where(there, take(flat, places), _filling(flat, fill_value))


def count_distinct(x: Tensor, equal_nan: bool = False) -> Tensor:
    """How many distinct elements there are."""
    flat = reshape(x, (-1,))
    return count_nonzero(_begins(sort(flat), equal_nan)) if flat.shape[0] != 0 else count_nonzero(flat)


def unique_parts(
    x: Tensor, size: Extent, fill_value: ArrayLike | None, equal_nan: bool = False
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """What ``unique_of`` gives, where each occurs first, which of them each element of ``x`` is, and how often each
    occurs; 0 fills up positions and counts."""
    flat = reshape(x, (-1,))
    count = flat.shape[0]
    if count == 0:
        nothing = filled(0, default_int, (size,), "unique_all")
        return unique_of(x, size, fill_value), nothing, filled(0, default_int, x.shape, "unique_all"), nothing
    order = argsort(flat)
    ordered = take(flat, order)
    begins = _begins(ordered, equal_nan)
    places, there = _indices(begins, size + 1)
    ends = where(there, places, count)[1:]
    places, there = places[:-1], there[:-1]
    values = where(there, take(ordered, places), _filling(ordered, fill_value))
    numbers = cumulative_sum(cast(begins, default_int)) - 1
    inverse = reshape(take(numbers, argsort(order)), x.shape)
    return values, where(there, take(order, places), 0), inverse, where(there, ends - places, 0)


def _begins(ordered: Tensor, equal_nan: bool = False) -> Tensor:
    """Which of sorted elements are not the one before."""
    first = filled(True, np.dtype(np.bool_), (1,), "unique_all")
    differ = not_equal(ordered[1:], ordered[:-1])
    if equal_nan and dtypes.is_float(ordered.dtype):
        differ = logical_and(differ, logical_not(isnan(ordered[:-1])))  # which comes last: the next one is NaN, too
    return concat([first, differ])


def _filling(ordered: Tensor, fill_value: ArrayLike | None) -> Tensor:
    return ordered[0] if fill_value is None else cast(as_tensor(fill_value, "unique_all"), ordered.dtype)


@operation
def repeat(
    x: ArrayLike, repeats: object, /, axis: int | None = None, *, size: int | None = None, fill_value: ArrayLike = 0
) -> Tensor:
    """Each element ``repeats`` times, next to each other, along ``axis``; None flattens first.

    ``repeats`` is an int, or one int per element of the axis.  With ``size`` the axis gets so many
    elements: ``fill_value`` stands where there are fewer, and later ones are left out; ``hf.sum(repeats)`` says how
    many there were.  Numbers below 0 are then as 0.

    Raises AxisError for an axis out of range, ShapeError for repeats of another number than the axis has elements.

    Args:
        x: a tensor, array, nested list or number.
        repeats: how many times each element comes: a number, or one for each.
        axis: the axis; None for the flattened tensor.
        size: how long the result is along ``axis``; unless given, calls find it.
        fill_value: the value that fills the rest.

    Returns:
        A tensor in the dtype of ``x``.

    >>> hf.repeat([1, 2], 2)
    <Tensor i64[4] cpu> [1 1 2 2]
    >>> hf.repeat([5, 6], hf.asarray([1, 2]), size=4)
    <Tensor i64[4] cpu> [5 6 6 0]
    """
    x = as_tensor(x, "repeat")
    if axis is None:
        x, axis = reshape_to(x, (product(x.shape),)), 0
    axis = type_rules.axis("repeat", x.type, axis)
    if size is not None:
        wanted = type_rules.extent("repeat", "size", size)
        return _repeated(x, as_tensor(repeats, "repeat", default_int), axis, wanted, fill_value)
    if isinstance(repeats, Tensor) and repeats._known() is None:
        repeats_of = as_tensor(repeats, "repeat", default_int)
        total = _total(repeats_of) * (x.shape[axis] if repeats_of.size == 1 else 1)
        wanted = total._to_extent(
            lambda: TraceError(
                "repeat",
                f"the result's size depends on the values of {repeats!r}; say how many there may be, "
                "repeat(x, repeats, size=...), or call it outside of the traced function.",
            )
        )
        return _repeated(x, repeats_of, axis, type_rules.extent("repeat", "shape", wanted), fill_value)
    extent = x.shape[axis]
    counts = to_shape(repeats, "repeat")
    if len(counts) == 1:
        wide = (*x.shape[: axis + 1], counts[0], *x.shape[axis + 1 :])
        remaining_axes = tuple(k for k in range(len(wide)) if k != axis + 1)
        spread = apply(TABLE["broadcast"], x, shape=wide, axes=remaining_axes)
        return reshape_to(spread, (*x.shape[:axis], extent * counts[0], *x.shape[axis + 1 :]))
    if len(counts) != extent:
        raise ShapeError("repeat", f"{len(counts)} repeats for the {extent} elements along axis {axis} of {x.type}.")
    rows = [i for i, count in enumerate(counts) for _ in range(int(count))]
    return apply(TABLE["take"], x, as_tensor(rows, "repeat", default_int), axis=axis)


def _total(counts: Tensor) -> Tensor:
    """How many there are together; a negative one of them, if there is any."""
    if counts.size == 0:
        return filled(0, default_int, (), "repeat")
    least = min(counts)
    return where(less(least, 0), least, sum(counts))


def _repeated(x: Tensor, counts: Tensor, axis: int, size: Extent, fill_value: ArrayLike) -> Tensor:
    """The parts along an axis ``counts`` times each, which is an integer for each of them or one for all."""
    extent = x.shape[axis]
    if counts.ndim > 1 or (counts.ndim and not is_one(counts.shape[0]) and counts.shape[0] != extent):
        raise ShapeError("repeat", f"repeats are {counts.type} for the axis {axis} of {x.type}; give one for each.")
    shape = (*x.shape[:axis], size, *x.shape[axis + 1 :])
    filling = cast(as_tensor(fill_value, "repeat"), x.dtype)
    if not isinstance(extent, Dim) and extent == 0:
        return expand(filling, shape)
    ends = cumulative_sum(expand(reshape(maximum(cast(counts, default_int), 0), (-1,)), (extent,)))
    numbers = iota((size,), 0, default_int)
    there = less(numbers, ends[-1])
    places = where(there, searchsorted(ends, numbers, side="right"), 0)
    shown = reshape(there, (size, *(1 for _ in x.shape[axis + 1 :])))
    return where(shown, take(x, places, axis=axis), filling)


def _indices(chosen: Tensor, size: Extent) -> tuple[Tensor, Tensor]:
    """The positions of the first ``size`` that are true, and which of them there are; the others are 0."""
    there = less(iota((size,), 0, default_int), count_nonzero(chosen))
    return where(there, first_positions(chosen, size), 0), there
