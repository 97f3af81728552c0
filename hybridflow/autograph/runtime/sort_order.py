"""The order that Python's ``list.sort`` finds, where a program compares.

It is the order of CPython to the last comparison, for NaNs (and whatever else has no order) end where the comparisons
that are made leave them: up to ``MOST`` things, a run at the beginning is found, and turned if it descends; the rest is
put in one after another, each at the place that a binary search finds.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np

from hybridflow.array import elementwise, reductions
from hybridflow.array.indexing import getitem
from hybridflow.array.shapes import concat, expand_dims, matrix_transpose, reshape
from hybridflow.autograph.runtime.exception_handlers import without_handlers
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ops import TABLE
from hybridflow.core.tensor import Tensor
from hybridflow.eager.dispatch import apply
from hybridflow.eager.operands import literal, scalar
from hybridflow.tracing.structured_control import trace_while

MOST = 63
"""Of more things CPython sorts parts, and merges these."""

_and, _or, _not = elementwise.logical_and, elementwise.logical_or, elementwise.logical_not
_where = elementwise.where


def order_of(less: Tensor, count: int) -> Tensor:
    """The numbers of ``count`` things in the order of ``sorted``, where ``less[i, j]`` says whether the thing ``i`` is
    less than the thing ``j``."""
    if count < 2:
        return _numbers(range(count))
    with without_handlers():
        return _insertion_order(less, *_first_run(less, count), count)


def total_order_of(less: Tensor, count: int) -> Tensor:
    """The same of things of which one is less, or both are equal; as many as there may be."""
    numbers = _numbers(range(count))
    one, other = expand_dims(numbers, axis=1), expand_dims(numbers, axis=0)
    before = _or(less, _and(_not(matrix_transpose(less)), elementwise.less(one, other)))
    return _inverse(reductions.sum(elementwise.astype(before, dtypes.int64), axis=0), count)


def _inverse(places: Tensor, count: int) -> Tensor:
    """The numbers of things in an order, of the place of each."""
    numbers = _numbers(range(count))
    there = elementwise.equal(expand_dims(places, axis=0), expand_dims(numbers, axis=1))
    return reductions.sum(_where(there, expand_dims(numbers, axis=0), 0), axis=1)


def _first(holds: Tensor, numbers: Tensor, count: int) -> Tensor:
    """The first of the numbers for which something holds, or ``count``."""
    return reductions.min(_where(holds, numbers, count))


def _first_run(less: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The order once the run at the beginning ascends, and how long it is."""
    numbers = _numbers(range(count))
    never = reshape(scalar(False, dtypes.bool_, "sort"), (1,))
    neighbours = range(1, count)
    falls = concat([never, _elements(less, [k * count + k - 1 for k in neighbours])])  # [k] is less than [k - 1]
    if sys.version_info >= (3, 13):
        rises = concat([never, _elements(less, [(k - 1) * count + k for k in neighbours])])
        up = _first(falls, numbers, count)  # the first that is less than the one before it
        last = elementwise.equal(numbers, elementwise.subtract(up, 1))
        descends = _and(
            elementwise.less(up, count), _not(reductions.any(_and(getitem(less, 0), last)))
        )  # what came before it is all equal
        ends = _first(_and(elementwise.greater(numbers, up), _and(_not(falls), rises)), numbers, count)
        goes_on = _not(reductions.any(_and(_element_row(less, ends, count), last)))
        further = _first(_and(elementwise.greater(numbers, ends), falls), numbers, count)
        length = _where(descends, _where(goes_on, further, ends), up)
        ends = _where(descends, ends, 0)
    else:
        first = getitem(falls, 1)
        differs = elementwise.not_equal(falls, first)
        length = _first(_and(elementwise.greater(numbers, 1), differs), numbers, count)
        ends = _where(first, length, 0)
    return _reverse_runs(falls, ends, count), length


def _reverse_runs(falls: Tensor, ends: Tensor, count: int) -> Tensor:
    """The order in which what descends, up to ``ends``, ascends; equal things stay as they are to each other."""
    numbers = _numbers(range(count))
    stretch = reductions.cumulative_sum(elementwise.astype(falls, dtypes.int64))
    one, other = expand_dims(numbers, axis=1), expand_dims(numbers, axis=0)
    run, others = expand_dims(stretch, axis=1), expand_dims(stretch, axis=0)
    comes_first = _or(
        elementwise.greater(others, run), _and(elementwise.equal(others, run), elementwise.less(other, one))
    )
    inside = elementwise.less(other, ends)
    places = reductions.sum(elementwise.astype(_and(inside, comes_first), dtypes.int64), axis=1)
    return _inverse(_where(elementwise.less(numbers, ends), places, numbers), count)


def _insertion_order(less: Tensor, order: Tensor, length: Tensor, count: int) -> Tensor:
    """The order once all that comes after a run of that length is in it."""
    numbers, flat = _numbers(range(count)), reshape(less, (-1,))

    def goes_on(carries: list[Tensor]) -> Tensor:
        return elementwise.less(carries[1], count)

    def iteration(carries: list[Tensor]) -> Sequence[Tensor]:
        order, start = carries
        pivot = _at(order, start)
        low, high = scalar(0, dtypes.int64, "sort"), start
        for _ in range(count.bit_length()):
            middle = elementwise.floor_divide(elementwise.add(low, high), 2)
            is_open = elementwise.less(low, high)
            row = elementwise.multiply(pivot, count)
            is_less = _at(flat, elementwise.add(row, _at(order, elementwise.minimum(middle, count - 1))))
            high = _where(_and(is_open, is_less), middle, high)
            low = _where(_and(is_open, _not(is_less)), elementwise.add(middle, 1), low)
        shifted = concat([getitem(order, slice(0, 1)), getitem(order, slice(0, count - 1))])
        moved = _and(elementwise.greater(numbers, low), elementwise.less_equal(numbers, start))
        placed = _where(elementwise.equal(numbers, low), pivot, _where(moved, shifted, order))
        return [placed, elementwise.add(start, 1)]

    result, _ = trace_while("sort", goes_on, iteration, [order, length])
    return result


def _elements(less: Tensor, places: Sequence[int]) -> Tensor:
    return apply(TABLE["take"], reshape(less, (-1,)), _numbers(places), axis=0)


def _element_row(less: Tensor, number: Tensor, count: int) -> Tensor:
    """The row of a number, or of the last one."""
    return apply(TABLE["take"], less, elementwise.minimum(number, count - 1), axis=0)


def _at(x: Tensor, place: Tensor) -> Tensor:
    return apply(TABLE["take"], x, place, axis=0)


def _numbers(values: Sequence[int]) -> Tensor:
    return literal(np.array(values, np.int64))
