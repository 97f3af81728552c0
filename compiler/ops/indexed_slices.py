"""Rows added to zeros, not yet added up: what the derivative of a look-up is before anybody needs it whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from hybridflow.compiler.ir.types import Extent, TensorType, product
from hybridflow.compiler.ops.op_table import Deferred

MAX_FEW_ROWS = 4  # times as many rows as are looked up must there be, or they are not told from the whole
_LARGE = 1 << 14  # elements: to fill fewer with zeros costs no more than to keep rows apart


class GatheredRows(NamedTuple):
    """Rows that are added to zeros, one after another: those at ``indices`` along the first axis."""

    indices: Any
    rows: Any


class SumOfSlices(NamedTuple):
    """The sum of two such values."""

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
    """The same sum of what ``function`` makes of the look-ups, from left to right."""
    if isinstance(terms, GatheredRows):
        return function(terms)
    return SumOfSlices(replaced(function, terms.first), replaced(function, terms.second))


def mapped(function: Callable[[Any], Any], terms: Terms) -> Terms:
    """The same sum of what ``function`` makes of indices and rows."""
    return replaced(lambda lookup: GatheredRows(*map(function, lookup)), terms)


def densify(b: Any, type: TensorType, terms: Terms) -> Any:
    """The value of that type, with the bits that it has if it is never anything else."""
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
    """A value of that type, as a derivative rule returns it: call it for the value itself."""

    __slots__ = ("_builder", "terms", "type")

    def __init__(self, b: Any, type: TensorType, terms: Terms) -> None:
        self._builder, self.type, self.terms = b, type, terms

    def __call__(self) -> Any:
        return densify(self._builder, self.type, self.terms)

    def plus(self, other: SparseGrad) -> SparseGrad:
        return SparseGrad(self._builder, self.type, SumOfSlices(self.terms, other.terms))


def is_few(rows: SparseGrad) -> bool:
    """Whether it pays to keep rows apart: not for a whole whose size nobody knows yet, but for any number of rows."""
    size, total = product(rows.type.shape), count(rows.terms)
    if not isinstance(size, int) or size < _LARGE:
        return False
    return not isinstance(total, int) or total * MAX_FEW_ROWS <= rows.type.shape[0]


def is_small(rows: SparseGrad) -> bool:
    """Whether it costs next to nothing to have the rows beside the whole, for those who want to see them."""
    size, total = product(rows.type.shape), count(rows.terms)
    few = isinstance(size, int) and isinstance(total, int) and rows.type.shape[0] > 0
    return few and size < _LARGE and total * (size // rows.type.shape[0]) < _LARGE
