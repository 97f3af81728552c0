"""``tf.experimental.DynamicRaggedShape``, what ``tf.shape`` is of a ragged tensor, and ``RowPartition``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import hybridflow as hf
from hybridflow.compat.export import tf_export
from hybridflow.core.promotion import to_dtype
from hybridflow.errors import ArgumentError, ShapeError
from hybridflow.ragged import Ragged

if TYPE_CHECKING:
    from hybridflow.core.type_aliases import DTypeLike


@tf_export("experimental.RowPartition")
class RowPartition:
    """``tf.experimental.RowPartition``: how values are put into rows."""

    def __init__(self, splits: object) -> None:
        self._splits = np.asarray(splits, np.int64)

    @classmethod
    def from_row_splits(cls, row_splits: object, validate: bool = True, dtype: DTypeLike | None = None) -> RowPartition:
        """By where rows end."""
        return cls(np.asarray(row_splits))

    @classmethod
    def from_row_lengths(
        cls, row_lengths: object, validate: bool = True, dtype: DTypeLike | None = None
    ) -> RowPartition:
        """By the length of each row."""
        return cls(np.concatenate([[0], np.cumsum(np.asarray(row_lengths, np.int64))]))

    @classmethod
    def from_uniform_row_length(cls, uniform_row_length: int, nvals: int, nrows: Any = None) -> RowPartition:
        """Rows of one length."""
        count = nvals // uniform_row_length if nrows is None else int(nrows)
        return cls(np.arange(count + 1) * uniform_row_length)

    @classmethod
    def from_value_rowids(cls, value_rowids: object, nrows: Any = None, validate: bool = True) -> RowPartition:
        """By the row of each value."""
        rows = np.asarray(value_rowids, np.int64)
        count = (int(rows.max(initial=-1)) + 1) if nrows is None else int(nrows)
        return cls.from_row_lengths(np.bincount(rows, minlength=count))

    def row_splits(self) -> Any:
        """Where rows end, after a 0."""
        return hf.asarray(self._splits)

    def row_lengths(self) -> Any:
        """The length of each row."""
        return hf.asarray(np.diff(self._splits))

    def value_rowids(self) -> Any:
        """The row of each value."""
        return hf.asarray(np.repeat(np.arange(len(self._splits) - 1), np.diff(self._splits)))

    def nrows(self) -> int:
        """The number of rows."""
        return len(self._splits) - 1

    def nvals(self) -> int:
        """The number of values."""
        return int(self._splits[-1])

    @property
    def extent(self) -> int | tuple[int, ...]:
        """The one length of rows, or the length of each."""
        lengths = np.diff(self._splits).tolist()
        return lengths[0] if lengths and len(set(lengths)) == 1 and self._is_uniform else tuple(lengths)

    _is_uniform = False

    def __repr__(self) -> str:
        return f"tf.RowPartition(row_splits={self._splits.tolist()})"


class _UniformPartition(RowPartition):
    _is_uniform = True


@tf_export("experimental.DynamicRaggedShape")
class DynamicRaggedShape:
    """``tf.experimental.DynamicRaggedShape``: extents, of which some are lengths of rows.

    Args:
        row_partitions: How values are put into rows, the outermost first.
        inner_shape: The shape of the values.
    """

    def __init__(self, row_partitions: Sequence[RowPartition], inner_shape: object, dtype: object = None) -> None:
        self.row_partitions = tuple(row_partitions)
        self._inner = tuple(int(n) for n in np.asarray(inner_shape).reshape(-1))
        self._dtype = to_dtype(np.int64 if dtype is None else getattr(dtype, "dtype", dtype), "DynamicRaggedShape")
        counts = [*(part.nrows() for part in self.row_partitions[1:]), *self._inner[:1]]
        for part, count in zip(self.row_partitions, counts):
            if part.nvals() != count:
                raise ShapeError("DynamicRaggedShape", f"rows have {part.nvals()} values, and {count} follow.")

    @classmethod
    def from_lengths(cls, lengths: Sequence[Any], num_row_partitions: int | None = None) -> DynamicRaggedShape:
        """By extents: a number, or a tuple of the length of each row."""
        last = max((k for k, n in enumerate(lengths) if isinstance(n, (list, tuple))), default=0)
        last = last if num_row_partitions is None else num_row_partitions
        count, parts = int(lengths[0]) if lengths else 1, []
        for n in lengths[1 : last + 1]:
            uniform = not isinstance(n, (list, tuple))
            rows = [int(n)] * count if uniform else list(n)
            if len(rows) != count:
                raise ShapeError("DynamicRaggedShape", f"there are {len(rows)} lengths for {count} rows.")
            parts.append((_UniformPartition if uniform else RowPartition).from_row_lengths(rows))
            count = sum(rows)
        return cls(parts, [count, *lengths[last + 1 :]] if lengths else [])

    @classmethod
    def from_tensor(cls, t: Any, dtype: DTypeLike | None = None) -> DynamicRaggedShape:
        """The shape of a tensor, or of a ragged one."""
        if not isinstance(t, Ragged):
            return cls([], hf.asarray(t).shape, dtype)
        return cls([RowPartition(splits.numpy()) for splits in t.nested_row_splits], t.flat_values.shape, dtype)

    @property
    def flat(self) -> tuple[int, ...]:
        """The shape of the values."""
        return self._inner

    @property
    def inner_shape(self) -> Any:
        """The shape of the values, as a tensor."""
        return hf.asarray(np.array(self._inner, self._dtype))

    @property
    def num_row_partitions(self) -> int:
        """The number of axes that rows make."""
        return len(self.row_partitions)

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self.row_partitions) + len(self._inner)

    def static_lengths(self) -> list[Any]:
        """The extents: numbers, and for axes of rows the length of each."""
        if not self.row_partitions:
            return list(self._inner)
        return [self.row_partitions[0].nrows(), *(part.extent for part in self.row_partitions), *self._inner[1:]]

    def is_uniform(self, axis: int) -> bool:
        """Whether all rows have one length along an axis."""
        return not isinstance(self.static_lengths()[axis], tuple)

    def rows_of(self, values: object) -> Any:
        """Values in the rows of this shape."""
        for part in reversed(self.row_partitions):
            values = Ragged(values, part.row_splits())
        return values

    def __getitem__(self, index: Any) -> Any:
        lengths = self.static_lengths()
        if isinstance(index, slice):
            if index.start not in (None, 0) or index.step not in (None, 1):
                raise ArgumentError("DynamicRaggedShape", f"the slice {index} does not begin with the first axis.")
            return DynamicRaggedShape.from_lengths(lengths[index])
        extent = lengths[int(index)]
        if isinstance(extent, tuple):
            raise ArgumentError("DynamicRaggedShape", f"Index {index} is not uniform")
        return hf.asarray(self._dtype.type(extent))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DynamicRaggedShape) and self.static_lengths() == other.static_lengths()

    def __hash__(self) -> int:
        return hash(tuple(self.static_lengths()))

    def __repr__(self) -> str:
        words = ", ".join(map(str, self.static_lengths()))
        return f"<DynamicRaggedShape lengths=[{words}] num_row_partitions={self.num_row_partitions}>"
