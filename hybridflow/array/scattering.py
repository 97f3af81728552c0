"""Tensors changed at places that other tensors name, for the methods of variables (see ``assignment``).

``IndexedSlices`` name rows.  ``indices`` name elements or slices: their last axis holds one position for each leading
axis of the tensor.  Updates of one place add up; of several values set there, the last one counts.
"""

from __future__ import annotations

from hybridflow.array.creation import full_like, iota
from hybridflow.array.elementwise import (
    add,
    divide,
    equal,
    floor_divide,
    less,
    logical_and,
    maximum,
    minimum,
    multiply,
    negative,
    not_equal,
    where,
)
from hybridflow.array.indexed_slices import IndexedSlices
from hybridflow.array.indexing import getitem, scatter_add
from hybridflow.array.setitem import updated
from hybridflow.array.shapes import concat, expand_dims, flip
from hybridflow.array.sorting import argsort
from hybridflow.compiler.ir.dtypes import is_integer
from hybridflow.compiler.ir.types import product
from hybridflow.core.promotion import default_int
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import ArrayLike
from hybridflow.eager.operands import as_tensor, cast, expand, reshape_to
from hybridflow.errors import ArgumentTypeError, ShapeError, SymbolicExtentError


def added_at(x: Tensor, indices: ArrayLike, updates: ArrayLike) -> Tensor:
    """``x`` with ``updates`` added at the places ``indices``; raises IndexRangeError for those that are not there."""
    key = _key(x, indices)
    count = product(x.shape)
    chosen = getitem(reshape_to(iota((count,), 0, default_int), x.shape), key)
    values = expand(as_tensor(updates, "scatter_nd", x.dtype), chosen.shape)
    size = (product(chosen.shape),)
    added = scatter_add(reshape_to(x, (count,)), reshape_to(chosen, size), reshape_to(cast(values, x.dtype), size))
    return reshape_to(added, x.shape)


def set_at(x: Tensor, indices: ArrayLike, updates: ArrayLike) -> Tensor:
    """``x`` with ``updates`` in the places ``indices``; raises IndexRangeError for those that are not there."""
    return updated(x, _key(x, indices), as_tensor(updates, "scatter_nd", x.dtype))


def _key(x: Tensor, indices: ArrayLike) -> tuple[Tensor, ...]:
    places = as_tensor(indices, "scatter_nd", default_int)
    depth = places.shape[-1] if places.ndim else 0
    if not isinstance(depth, int) or not 0 < depth <= x.ndim:
        raise ShapeError("scatter_nd", f"the last axis of the indices {places.type} must hold places in {x.type}.")
    return tuple([places[..., k] for k in range(depth)])


def largest_at(x: Tensor, indices: ArrayLike, updates: ArrayLike) -> Tensor:
    """``x`` with the largest of what it and ``updates`` have at the places ``indices``; raises as ``set_at`` does."""
    return maximum(x, _set_in_order(x, indices, updates, descending=False))


def smallest_at(x: Tensor, indices: ArrayLike, updates: ArrayLike) -> Tensor:
    """``x`` with the smallest of what it and ``updates`` have at the places ``indices``; raises as ``set_at`` does."""
    return minimum(x, _set_in_order(x, indices, updates, descending=True))


def _set_in_order(x: Tensor, indices: ArrayLike, updates: ArrayLike, descending: bool) -> Tensor:
    """``x`` with ``updates`` set in their order by size: of those of one place, the last one stays."""
    count = product(x.shape)
    chosen = getitem(reshape_to(iota((count,), 0, default_int), x.shape), _key(x, indices))
    values = cast(expand(as_tensor(updates, "scatter_nd", x.dtype), chosen.shape), x.dtype)
    size = (product(chosen.shape),)
    values, places = reshape_to(values, size), reshape_to(chosen, size)
    order = argsort(values, descending=descending)
    result = updated(reshape_to(x, (count,)), getitem(places, order), getitem(values, order))
    return reshape_to(result, x.shape)


def subtracted_at(x: Tensor, indices: ArrayLike, updates: ArrayLike) -> Tensor:
    """``x`` with ``updates`` subtracted at the places ``indices``; raises as ``added_at`` does."""
    return added_at(x, indices, negative(as_tensor(updates, "scatter_nd", x.dtype)))


def rows_added(x: Tensor, slices: object) -> Tensor:
    """``x`` with rows added to those at their indices.  Raises ArgumentTypeError for other than slices."""
    sparse = _slices(slices)
    return scatter_add(x, sparse.indices, sparse.values)


def rows_subtracted(x: Tensor, slices: object) -> Tensor:
    """``x`` with rows subtracted from those at their indices; raises as ``rows_added`` does."""
    sparse = _slices(slices)
    return scatter_add(x, sparse.indices, negative(sparse.values))


def rows_set(x: Tensor, slices: object) -> Tensor:
    """``x`` with other rows at their indices; raises as ``rows_added`` does."""
    sparse = _slices(slices)
    return updated(x, sparse.indices, sparse.values)


def rows_multiplied(x: Tensor, slices: object) -> Tensor:
    """``x`` with the rows at the indices multiplied by others; raises as ``rows_added`` does."""
    first, later = _factors(x, _slices(slices))
    return multiply(multiply(x, first), later)


def rows_divided(x: Tensor, slices: object) -> Tensor:
    """``x`` with the rows at the indices divided by others, integers towards 0; raises as ``rows_added`` does."""
    first, later = _factors(x, _slices(slices))
    return _quotient(_quotient(x, first), later)


def _quotient(x: Tensor, y: Tensor) -> Tensor:
    if not is_integer(x.dtype):
        return divide(x, y)
    quotient = floor_divide(x, y)
    is_below = logical_and(not_equal(multiply(quotient, y), x), less(quotient, 0))
    return add(quotient, cast(is_below, x.dtype))


def _factors(x: Tensor, sparse: IndexedSlices) -> tuple[Tensor, Tensor]:
    """The first of all rows that are given for each row of ``x``, and the product of the others, 1 where there are
    none: along the rows in the order of their indices, products of runs of equal ones that double in length."""
    count = sparse.indices.shape[0]
    one = full_like(x, 1)
    if not isinstance(count, int):
        raise SymbolicExtentError("scatter", f"how many rows are given, {count}, is open; products need a number.")
    if count < 2:
        return updated(one, sparse.indices, sparse.values), one
    order = argsort(sparse.indices)
    places, rows = getitem(sparse.indices, order), getitem(sparse.values, order)
    first = updated(one, flip(places), flip(rows, axis=0))
    products = concat([full_like(rows[:1], 1), where(_same(places, 1, x.ndim), rows[1:], 1)], axis=0)
    step = 1
    while step < count:
        longer = multiply(getitem(products, slice(step, None)), getitem(products, slice(None, -step)))
        behind = where(_same(places, step, x.ndim), longer, getitem(products, slice(step, None)))
        products = concat([getitem(products, slice(None, step)), behind], axis=0)
        step *= 2
    return first, updated(one, places, products)


def _same(places: Tensor, step: int, ndim: int) -> Tensor:
    """Whether each place from ``step`` on is the one that many before it, for rows of ``ndim - 1`` axes."""
    same = equal(getitem(places, slice(step, None)), getitem(places, slice(None, -step)))
    return reshape_to(same, (places.shape[0] - step, *[1] * (ndim - 1)))


def rows_set_in_batch(x: Tensor, slices: object) -> Tensor:
    """``x`` with other rows at the indices within each part of a batch; raises as ``rows_added`` does."""
    sparse = _slices(slices)
    shape = sparse.indices.shape
    if len(shape) > x.ndim:
        raise ShapeError("scatter", f"the indices {sparse.indices.type} have more axes than {x.type}.")
    parts = [iota(shape, axis, default_int) for axis in range(len(shape) - 1)]
    return updated(x, (*parts, sparse.indices), sparse.values)


def rows_largest(x: Tensor, slices: IndexedSlices) -> Tensor:
    """``x`` with the largest of its rows and those that are given for them; raises as ``rows_added`` does."""
    sparse = _slices(slices)
    return largest_at(x, expand_dims(sparse.indices, -1), sparse.values)


def rows_smallest(x: Tensor, slices: IndexedSlices) -> Tensor:
    """``x`` with the smallest of its rows and those that are given for them; raises as ``rows_added`` does."""
    sparse = _slices(slices)
    return smallest_at(x, expand_dims(sparse.indices, -1), sparse.values)


def _slices(sparse: object) -> IndexedSlices:
    if not isinstance(sparse, IndexedSlices):
        raise ArgumentTypeError("scatter", f"{type(sparse).__name__} is no IndexedSlices(values, indices).")
    return sparse
