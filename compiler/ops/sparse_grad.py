"""Sparse gradients: the derivative of a look-up as a sum of rows, before anything needs the dense tensor.

A sparse gradient is made here, by the derivative rule of a look-up.  ``autodiff/sparse_gradient.py`` turns it into a
tensor, which is densified on first read.  ``optimizers/sparse_update.py`` updates its rows alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from hybridflow.compiler.ir.types import Extent, TensorType, product
from hybridflow.compiler.ops.op_table import Deferred

if TYPE_CHECKING:
    from hybridflow.compiler.ir.build import Builder


MAX_FEW_ROWS = 4  # a table has at least so many times the rows that are looked up, else its gradient is dense
_LARGE = 1 << 14  # elements: filling fewer with zeros costs no more than a sparse gradient


class GatheredRows(NamedTuple):
    """Rows that are added to zeros in their order, at ``indices`` along the first axis."""

    indices: Any
    rows: Any


class SumOfSlices(NamedTuple):
    """The sum of two sparse gradients."""

    first: GatheredRows | SumOfSlices
    second: GatheredRows | SumOfSlices


Terms = GatheredRows | SumOfSlices


def lookups(terms: Terms) -> Iterator[GatheredRows]:
    """All look-ups of a sum, from left to right."""
    if isinstance(terms, GatheredRows):
        yield terms
    else:
        yield from lookups(terms.first)
        yield from lookups(terms.second)


def replaced(function: Callable[[GatheredRows], GatheredRows], terms: Terms) -> Terms:
    """The same sum, with ``function`` applied to each look-up, from left to right."""
    if isinstance(terms, GatheredRows):
        return function(terms)
    return SumOfSlices(replaced(function, terms.first), replaced(function, terms.second))


def mapped(function: Callable[[Any], Any], terms: Terms) -> Terms:
    """The same sum, with ``function`` applied to all indices and rows."""
    return replaced(lambda lookup: GatheredRows(*map(function, lookup)), terms)


def densify(b: Builder, type: TensorType, terms: Terms) -> Any:
    """The dense gradient, with the bits that it has if it was dense from the start."""
    if isinstance(terms, GatheredRows):
        return b.scatter_add(b.full(0, like=type), terms.indices, terms.rows, axis=0)
    return b.add(densify(b, type, terms.first), densify(b, type, terms.second))


def count(terms: Terms) -> Extent:
    """How many rows are added."""
    total: Extent = 0
    for lookup in lookups(terms):
        total = total + product(lookup.indices.type.shape)
    return total


class SparseGrad(Deferred):
    """A sparse gradient as a derivative rule returns it.  Call it for the dense value."""

    __slots__ = ("_builder", "terms", "type")

    def __init__(self, b: Any, type: TensorType, terms: Terms) -> None:
        self._builder, self.type, self.terms = b, type, terms

    def __call__(self) -> Any:
        return densify(self._builder, self.type, self.terms)

    def plus(self, other: SparseGrad) -> SparseGrad:
        return SparseGrad(self._builder, self.type, SumOfSlices(self.terms, other.terms))


def is_few(rows: SparseGrad) -> bool:
    """Whether a sparse gradient pays: the table is large, of known size, and few of its rows were looked up."""
    size, total = product(rows.type.shape), count(rows.terms)
    if not isinstance(size, int) or size < _LARGE:
        return False
    return not isinstance(total, int) or total * MAX_FEW_ROWS <= rows.type.shape[0]


def is_small(rows: SparseGrad) -> bool:
    """Whether keeping the rows beside the dense gradient costs next to nothing, for code that reads ``values``."""
    size, total = product(rows.type.shape), count(rows.terms)
    few = isinstance(size, int) and isinstance(total, int) and rows.type.shape[0] > 0
    return few and size < _LARGE and total * (size // rows.type.shape[0]) < _LARGE
