"""Tables: elements that lie in memory, or follow from their number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from hybridflow.core import pytree
from hybridflow.core.promotion import is_supported
from hybridflow.core.string_tensor import StringTensor
from hybridflow.core.tensor import Tensor, wrap
from hybridflow.data.pipeline import Positions, Rows, Table
from hybridflow.data.strings import array_of, leaf_of, spec_of_array, text_of, with_shape
from hybridflow.eager.operands import as_tensor
from hybridflow.errors import ArgumentError, ShapeError
from hybridflow.jit.tensor_spec import TensorSpec
from hybridflow.ragged import Ragged
from hybridflow.runtime import uninterruptible


class ArrayTable(Table):
    """The rows of arrays along their first axes, in a structure."""

    def __init__(self, arrays: Sequence[np.ndarray], structure: pytree.Structure) -> None:
        self.arrays, self.structure = list(arrays), structure
        self.length = min([array.shape[0] for array in arrays])
        self.is_flat = structure.kind is tuple and len(structure.children) == structure.leaves

    def row(self) -> Callable[[int], Any]:
        arrays = self.arrays
        if self.structure.kind is None:
            (array,) = arrays
            if array.dtype.hasobject:
                return lambda k: leaf_of(array[k, ...])
            if array.ndim > 1:
                return lambda k: wrap(array[k])  # sooner than with an ellipsis, of which only numbers have need
            return lambda k: wrap(array[k, ...])
        if self.is_flat:
            return lambda k: tuple([leaf_of(array[k, ...]) for array in arrays])
        structure = self.structure
        return lambda k: pytree.unflatten(structure, [leaf_of(array[k, ...]) for array in arrays])

    def span(self, start: int, stop: int) -> Any:
        return self._built([array[start:stop] for array in self.arrays])

    def pick(self, numbers: np.ndarray) -> Any:
        return self._built([array.take(numbers, axis=0) for array in self.arrays])

    def _built(self, arrays: list[np.ndarray]) -> Any:
        if self.is_flat:
            return tuple(map(leaf_of, arrays))
        return pytree.unflatten(self.structure, map(leaf_of, arrays))

    def spec(self) -> Any:
        return pytree.unflatten(self.structure, [spec_of_array(a.shape[1:], a) for a in self.arrays])


class OneRow(ArrayTable):
    """Nested arrays as one element."""


class NumberTable(Table):
    """The numbers of a range, as tensors without axes."""

    def __init__(self, start: int, step: int, length: int, dtype: np.dtype[Any]) -> None:
        self.start, self.step, self.length, self.dtype = start, step, length, dtype

    def row(self) -> Callable[[int], Any]:
        start, step, dtype, array = self.start, self.step, self.dtype, np.array
        return lambda k: wrap(array(start + k * step, dtype))

    def span(self, start: int, stop: int) -> Any:
        return self._numbers(np.arange(start, stop, dtype=np.int64))

    def pick(self, numbers: np.ndarray) -> Any:
        return self._numbers(numbers)

    def _numbers(self, positions: np.ndarray) -> Tensor:
        return wrap((positions * self.step + self.start).astype(self.dtype))

    def spec(self) -> Any:
        return TensorSpec((), self.dtype)


class ZippedTables(Table):
    """Rows of several tables, put together."""

    def __init__(self, tables: Sequence[Table], structure: pytree.Structure) -> None:
        self.tables, self.structure = list(tables), structure
        self.length = min([table.length for table in tables])

    def row(self) -> Callable[[int], Any]:
        rows = [table.row() for table in self.tables]
        structure = self.structure
        if structure.kind is tuple and len(structure.children) == structure.leaves:
            return lambda k: tuple([row(k) for row in rows])
        return lambda k: pytree.unflatten(structure, [row(k) for row in rows])

    def span(self, start: int, stop: int) -> Any:
        return pytree.unflatten(self.structure, [table.span(start, stop) for table in self.tables])

    def pick(self, numbers: np.ndarray) -> Any:
        return pytree.unflatten(self.structure, [table.pick(numbers) for table in self.tables])

    def spec(self) -> Any:
        return pytree.unflatten(self.structure, [table.spec() for table in self.tables])


def rows_of(value: object) -> Table:
    """The rows of nested arrays.  Raises ShapeError where they differ in number or there are none."""
    stage = "Dataset.from_tensor_slices"
    parts, structure = _parts(value, has_rows=True)
    if any(map(is_of_rows, parts)):
        return _columns().ColumnTable(_columns_of(parts, structure, stage), structure)
    arrays = [resident(part, stage) for part in parts]
    if not arrays:
        raise ArgumentError(stage, "there is nothing to slice. Pass at least one array.")
    for path, array in zip(pytree.paths(structure, "tensors"), arrays):
        if not array.ndim:
            raise ShapeError(stage, f"{path} has no axis to slice along. Use Dataset.from_tensors for one element.")
        if array.shape[0] != arrays[0].shape[0]:
            raise ShapeError(stage, f"{path} has {array.shape[0]} rows, others have {arrays[0].shape[0]}.")
    return ArrayTable(arrays, structure)


def is_of_rows(value: object) -> bool:
    """Whether a value is a ragged tensor, or a sparse one of coordinates."""
    return isinstance(value, Ragged) or hasattr(type(value), "as_column")


def holds_rows(element: object) -> bool:
    """Whether there is such a tensor in an element, or the spec of one in a spec."""
    if type(element) is tuple:
        return any(map(holds_rows, element))
    return any(map(holds_rows, element.values())) if type(element) is dict else is_of_rows(element)


def spec_of_row(spec: object) -> Any:
    """The spec of a row of what has a spec."""
    if holds_rows(spec):
        return _columns().spec_of_row(spec)
    leaves, structure = pytree.flatten(spec)
    return pytree.unflatten(structure, [with_shape(leaf, leaf.shape[1:]) for leaf in leaves])


@uninterruptible.loaded
def _columns() -> ModuleType:
    from hybridflow.data import row_columns  # which only data of such tensors have need of

    return row_columns


def _columns_of(parts: Sequence[Any], structure: pytree.Structure, stage: str) -> list[Any]:
    columns = [_columns().column_of(part if is_of_rows(part) else resident(part, stage)) for part in parts]
    for path, column in zip(pytree.paths(structure, "tensors"), columns):
        if column.length != columns[0].length:
            raise ShapeError(stage, f"{path} has {column.length} rows, others have {columns[0].length}.")
    return columns


def one_row(value: object) -> Table:
    """Nested arrays as one element."""
    parts, structure = _parts(value)
    return OneRow([resident(part, "Dataset.from_tensors")[None] for part in parts], structure)


class _FullTable:
    """A list, which is an array and no structure."""

    def __init__(self, value: object) -> None:
        self.value = value


def _full_table(value: object, has_rows: bool) -> Any:
    """A nested value whose lists are leaves, and so are ragged and sparse tensors if it ``has_rows``."""
    if isinstance(value, list) or type(value) is StringTensor or (has_rows and is_of_rows(value)):
        return _FullTable(value)
    if type(value) is tuple:
        return tuple([_full_table(part, has_rows) for part in value])
    if type(value) is dict:
        return {key: _full_table(part, has_rows) for key, part in value.items()}
    return value


def _parts(value: object, has_rows: bool = False) -> tuple[list[Any], pytree.Structure]:
    """The arrays of a nested value, and their structure."""
    leaves, structure = pytree.flatten(_full_table(value, has_rows))
    return [leaf.value if type(leaf) is _FullTable else leaf for leaf in leaves], structure


def resident(value: object, stage: str) -> np.ndarray:
    """A value as an array that nobody writes to: arrays that can be written to are copied, once."""
    if type(value) is np.ndarray or isinstance(value, np.memmap):
        array = np.asarray(value)
        if _is_locked(array) and array.flags.c_contiguous and array.dtype.isnative and is_supported(array.dtype):
            return array.view(np.ndarray)
    text = text_of(value, stage)
    return as_tensor(value, stage).numpy() if text is None else array_of(text)


def _is_locked(array: object) -> bool:
    """Whether neither an array nor one that it is a view of can be written to."""
    while isinstance(array, np.ndarray):
        if array.flags.writeable:
            return False
        array = array.base
    return True


def zipped(rows: Sequence[Rows | None], structure: pytree.Structure) -> Table | None:
    """The rows of several tables put together, where all of them come in their order."""
    tables = [row.table for row in rows if row is not None and isinstance(row.numbers, Positions)]
    return ZippedTables(tables, structure) if len(tables) == len(rows) else None
