"""Tensors whose rows are elements: of ragged ones here, of sparse ones by what these know of their rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from hybridflow.core import pytree
from hybridflow.core.tensor import Tensor
from hybridflow.data.pipeline import Table
from hybridflow.data.strings import array_of, leaf_of, spec_of_array, with_shape
from hybridflow.jit.tensor_spec import TensorSpec
from hybridflow.ragged import Ragged, made as made_of_rows


class Column(Protocol):
    """The rows of one leaf."""

    length: int

    def row(self, number: int) -> Any:
        """A row."""

    def pick(self, numbers: np.ndarray) -> Any:
        """Several rows."""

    def spec(self) -> Any:
        """The spec of a row."""

    def spec_of_several(self, extent: int | None) -> Any:
        """The spec of several rows."""


@runtime_checkable
class HasRows(Protocol):
    """What knows of its rows: a sparse tensor, or the spec of one."""

    def as_column(self) -> Column:
        """The rows."""

    def spec_of_row(self) -> Any:
        """The spec of a row, of what is a spec."""


class ColumnTable(Table):
    """The rows of columns of any kind, in a structure."""

    def __init__(self, columns: Sequence[Column], structure: pytree.Structure) -> None:
        self.columns, self.structure = list(columns), structure
        self.length = min([column.length for column in columns])

    def row(self) -> Callable[[int], Any]:
        return lambda k: pytree.unflatten(self.structure, [column.row(k) for column in self.columns])

    def span(self, start: int, stop: int) -> Any:
        return self.pick(np.arange(start, stop))

    def pick(self, numbers: np.ndarray) -> Any:
        return pytree.unflatten(self.structure, [column.pick(numbers) for column in self.columns])

    def spec(self) -> Any:
        return pytree.unflatten(self.structure, [column.spec() for column in self.columns])

    def span_spec(self, extent: int | None) -> Any:
        return pytree.unflatten(self.structure, [column.spec_of_several(extent) for column in self.columns])


class DenseColumn:
    """The rows of an array."""

    def __init__(self, array: np.ndarray) -> None:
        self.array, self.length = array, array.shape[0]

    def row(self, number: int) -> Any:
        return leaf_of(self.array[number, ...])

    def pick(self, numbers: np.ndarray) -> Any:
        return leaf_of(self.array.take(numbers, axis=0))

    def spec(self) -> Any:
        return spec_of_array(self.array.shape[1:], self.array)

    def spec_of_several(self, extent: int | None) -> Any:
        return spec_of_array((extent, *self.array.shape[1:]), self.array)


class RaggedColumn:
    """The rows of a ragged tensor: tensors, or ragged ones."""

    def __init__(self, value: Ragged) -> None:
        self.value, self.length = value, int(value.nrows())

    def row(self, number: int) -> Any:
        return self.value[int(number)]

    def pick(self, numbers: np.ndarray) -> Any:
        return self.value[numbers]

    def spec(self) -> Any:
        return _spec_of(self.value.values)

    def spec_of_several(self, extent: int | None) -> Any:
        splits = None if extent is None else extent + 1
        return made_of_rows(self.spec(), TensorSpec((splits,), self.value.row_splits.dtype))


def _spec_of(values: Ragged | Tensor) -> Any:
    """The spec of some of the values of rows."""
    if isinstance(values, Ragged):
        return made_of_rows(_spec_of(values.values), TensorSpec((None,), values.row_splits.dtype))
    return spec_of_array((None, *values.shape[1:]), array_of(values))


def spec_of_row(spec: object) -> Any:
    """The spec of a row of what has a spec."""
    if type(spec) is tuple:
        return tuple(map(spec_of_row, spec))
    if type(spec) is dict:
        return {key: spec_of_row(part) for key, part in spec.items()}
    if isinstance(spec, Ragged):
        inside = spec.values
        return inside if isinstance(inside, Ragged) else with_shape(inside, (None, *inside.shape[1:]))
    if isinstance(spec, HasRows):
        return spec.spec_of_row()
    return with_shape(spec, getattr(spec, "shape", ())[1:])


def column_of(value: object) -> Column:
    """The rows of a ragged or sparse tensor, or of an array."""
    if isinstance(value, Ragged):
        return RaggedColumn(value)
    if isinstance(value, np.ndarray):
        return DenseColumn(value)
    assert isinstance(value, HasRows)
    return value.as_column()
