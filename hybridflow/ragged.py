"""Ragged tensors: rows of different lengths, as their values one behind another and where each row ends.

``Ragged`` is a dataclass of two tensors, so that functions, ``vmap``, datasets and checkpoints take it leaf by leaf.
Names are those of ``tf.RaggedTensor`` and ``tf.ragged``.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING as _TYPE_CHECKING, Any, SupportsIndex

import numpy as np

from hybridflow.array import elementwise, reductions
from hybridflow.array.creation import arange
from hybridflow.array.elementwise import divide, less, logical_and, maximum, subtract, where
from hybridflow.array.indexing import getitem, scatter_add, take
from hybridflow.array.reductions import all as _all, cumulative_sum
from hybridflow.array.segment_ops import segment_max, segment_mean, segment_min, segment_prod, segment_sum
from hybridflow.array.shapes import concat as _concat
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ir.extents import Extent
from hybridflow.compiler.ops import TABLE, type_rules
from hybridflow.core import name_hints as _name_hints
from hybridflow.core.promotion import default_int, promote, to_dtype
from hybridflow.core.string_tensor import as_strings, holds_texts, is_string, names_strings
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import ArrayLike, DTypeLike
from hybridflow.eager.dispatch import apply
from hybridflow.eager.operands import as_tensor, cast, expand, filled, float_operand, reshape_to
from hybridflow.effects.runtime_raise import check_all
from hybridflow.errors import (
    ArgumentError,
    ArgumentTypeError,
    AxisError,
    DTypeError,
    IndexRangeError,
    ShapeError,
    TraceError,
    entered,
)

__all__ = ["Ragged", "concat", "constant", "lookup", "map_flat_values", "row_splits_to_segment_ids"]

if not _TYPE_CHECKING:  # a checker would take every name for one of ours
    __getattr__, __dir__ = _name_hints.answers(__name__, __all__)


def row_of_each(splits: Tensor, count: Extent) -> Tensor:
    """The row of each value: how many rows end before it."""
    ends = getitem(splits, slice(1, None))
    ended = scatter_add(
        filled(0, ends.dtype, (count + 1,), "ragged"), ends, filled(1, ends.dtype, ends.shape, "ragged")
    )
    return getitem(cumulative_sum(cast(ended, ends.dtype)), slice(None, count))


def _integers(stage: str, value: object, name: str) -> Tensor:
    x = as_tensor(value, stage)
    if not x.size and isinstance(value, (list, tuple)):
        x = cast(x, default_int)
    if not dtypes.is_integer(x.dtype):
        raise DTypeError(stage, f"{name} are {x.type}. Expected integers.")
    if x.ndim != 1:
        raise ShapeError(stage, f"{name} are {x.type}. Expected one axis.")
    return cast(x, default_int)


def _known(stage: str, x: Tensor, what: str) -> np.ndarray:
    """The elements of a tensor, where they decide about a shape."""
    value = x._known()
    if value is None:
        raise TraceError(stage, f"{what} depends on values that a compiled function does not know. Call it outside.")
    return value


@dataclasses.dataclass(frozen=True, eq=False, repr=False, init=False)
class Ragged:
    """Rows of different lengths: row ``i`` has the values ``row_splits[i]`` to before ``row_splits[i + 1]``.

    ``tf.RaggedTensor`` is this class.

    Args:
        values: a tensor ``[total, ...]``: the values of all rows.
        row_splits: integers ``[rows + 1]`` that do not fall, from 0 to ``total``.

    Raises:
        ShapeError: if the parts do not match.
        DTypeError: for splits that are not integers.
        ArgumentError: for splits that go backwards, or do not begin at 0 and end at the number of values.

    Example:
        >>> hf.ragged.Ragged([1, 2, 3], [0, 2, 2, 3])
        <Ragged i64[3,None] [[1, 2], [], [3]]>
    """

    values: Any  # a tensor, or a ragged one, whose rows are the elements of rows
    row_splits: Tensor
    __array_ufunc__ = None  # operators of tensors and of NumPy leave it to ours

    @entered
    def __init__(self, values: object, row_splits: object) -> None:
        stage = "Ragged"
        held = values if isinstance(values, Ragged) else _dense(values, stage)
        splits = _integers(stage, row_splits, "row_splits")
        if not held.ndim or (isinstance(splits.shape[0], int) and splits.shape[0] < 1):
            raise ShapeError(stage, f"values are {held.shape}, row_splits {splits.type}. Expected an axis and a split.")
        ends = logical_and(getitem(splits, 0) == 0, getitem(splits, -1) == held.shape[0])
        forwards = _all(getitem(splits, slice(1, None)) >= getitem(splits, slice(None, -1)))
        said = "row_splits go backwards, or do not begin at 0 and end at the number of values."
        check_all(logical_and(ends, forwards), ArgumentError, lambda: ArgumentError(stage, said), (), said)
        object.__setattr__(self, "values", held)
        object.__setattr__(self, "row_splits", splits)

    # ---- construction

    @classmethod
    def from_row_splits(
        cls, values: object, row_splits: object, name: str | None = None, validate: bool = True
    ) -> Ragged:
        """Rows by where they begin and end, as ``Ragged(values, row_splits)`` has them.

        Args:
            values: a tensor, array, nested list or ragged tensor with a first axis of all values.
            row_splits: rising integers, one more than rows: row i is ``values[row_splits[i] : row_splits[i + 1]]``.
            name: ignored.
            validate: ignored.

        Returns:
            A ragged tensor.

        Raises:
            ArgumentError: for splits that do not rise, or do not end with the number of values.
        """
        return Ragged(values, row_splits)

    @classmethod
    @entered
    def from_row_lengths(
        cls, values: object, row_lengths: object, name: str | None = None, validate: bool = True
    ) -> Ragged:
        """Rows of given lengths.

        Args:
            values: a tensor, array, nested list or ragged tensor with a first axis of all values.
            row_lengths: an integer for each row.
            name: ignored.
            validate: ignored.

        Returns:
            A ragged tensor.

        Raises:
            ArgumentError: where lengths do not add up to the number of values.

        >>> hf.ragged.Ragged.from_row_lengths([1, 2, 3], [2, 0, 1]).to_list()
        [[1, 2], [], [3]]
        """
        lengths = _integers("Ragged", row_lengths, "row_lengths")
        zero = filled(0, default_int, (1,), "Ragged")
        return Ragged(values, _concat([zero, cumulative_sum(lengths)]))

    @classmethod
    @entered
    def from_value_rowids(
        cls,
        values: object,
        value_rowids: object,
        nrows: SupportsIndex | None = None,
        name: str | None = None,
        validate: bool = True,
    ) -> Ragged:
        """Rows by the number of the row of each value.

        Args:
            values: a tensor, array, nested list or ragged tensor with a first axis of all values.
            value_rowids: an integer for each value; they may not fall.
            nrows: the number of rows, which compiled functions need; by default the last number and 1.
            name: ignored.
            validate: ignored.

        Returns:
            A ragged tensor.

        Raises:
            IndexRangeError: for a row out of range.
            ArgumentError: for numbers that fall.

        >>> hf.ragged.Ragged.from_value_rowids([1, 2, 3], [0, 0, 2]).to_list()
        [[1, 2], [], [3]]
        """
        stage = "Ragged"
        rows = _integers(stage, value_rowids, "value_rowids")
        if nrows is None:
            known = _known(stage, rows, "the number of rows")
            count = int(known[-1]) + 1 if known.size else 0
        else:
            count = type_rules.integer(stage, "nrows", nrows)
        inside = logical_and(_all(rows >= 0), _all(rows < count))
        rises = _all(getitem(rows, slice(1, None)) >= getitem(rows, slice(None, -1)))
        outside, falls = f"a row is out of range for {count} rows.", "value_rowids go backwards."
        check_all(inside, IndexRangeError, lambda: IndexRangeError(stage, outside), (), outside)
        check_all(rises, ArgumentError, lambda: ArgumentError(stage, falls), (), falls)
        lengths = segment_sum(filled(1, default_int, rows.shape, stage), rows, count)
        return cls.from_row_lengths(values, lengths)

    @classmethod
    @entered
    def from_tensor(
        cls, tensor: ArrayLike, lengths: object = None, padding: object = None, name: str | None = None
    ) -> Ragged:
        """The rows of a dense tensor, cut at their ends.

        Args:
            tensor: a tensor with two axes or more.
            lengths: the length of each row, or None.
            padding: the value that is cut off at the ends of rows, or None.
            name: ignored.

        Returns:
            A ragged tensor.

        Raises:
            ShapeError: for fewer axes, or where there are not as many lengths as rows.

        >>> hf.ragged.Ragged.from_tensor([[1, 0], [2, 3]], padding=0).to_list()
        [[1], [2, 3]]
        """
        stage = "Ragged"
        x = as_tensor(tensor, stage)
        if x.ndim < 2:
            raise ShapeError(stage, f"the tensor is {x.type}. Expected two axes or more.")
        rows, width = x.shape[:2]
        if lengths is None and padding is None:
            splits = arange(rows + 1) * width
            return Ragged(reshape_to(x, (rows * width, *x.shape[2:])), splits)
        if lengths is None:
            array = _known(stage, x, "the length of a row")
            there = (array != padding).reshape(rows, width, -1).any(-1)
            known = np.where(there.any(1), width - np.argmax(there[:, ::-1], axis=1), 0)
        else:
            known = np.clip(_known(stage, _integers(stage, lengths, "lengths"), "the length of a row"), 0, width)
        if len(known) != rows:
            raise ShapeError(stage, f"there are {len(known)} lengths for {x.type}. Expected one for each row.")
        kept = np.flatnonzero(np.arange(width) < known[:, None])
        return cls.from_row_lengths(take(reshape_to(x, (rows * width, *x.shape[2:])), kept, axis=0), known)

    @classmethod
    @entered
    def from_nested_row_splits(
        cls, flat_values: Any, nested_row_splits: Sequence[Any], name: str | None = None, validate: bool = True
    ) -> Ragged:
        """Rows of rows, by the splits of each level, the outermost first.

        Args:
            flat_values: a tensor, array or nested list with a first axis of all innermost values.
            nested_row_splits: the splits of each level.
            name: ignored.
            validate: ignored.

        Returns:
            A ragged tensor.
        """
        return functools.reduce(lambda values, splits: Ragged(values, splits), reversed(nested_row_splits), flat_values)

    @classmethod
    @entered
    def from_nested_row_lengths(
        cls, flat_values: Any, nested_row_lengths: Sequence[Any], name: str | None = None, validate: bool = True
    ) -> Ragged:
        """Rows of rows, by the lengths of each level, the outermost first.

        Args:
            flat_values: a tensor, array or nested list with a first axis of all innermost values.
            nested_row_lengths: the lengths of each level.
            name: ignored.
            validate: ignored.

        Returns:
            A ragged tensor.
        """
        return functools.reduce(
            lambda values, lengths: cls.from_row_lengths(values, lengths), reversed(nested_row_lengths), flat_values
        )

    @classmethod
    @entered
    def from_uniform_row_length(
        cls, values: object, uniform_row_length: int, nrows: int | None = None, validate: bool = True,
        name: str | None = None,
    ) -> Ragged:  # fmt: skip
        """Rows of one length.

        Args:
            values: a tensor, array, nested list or ragged tensor with a first axis of all values.
            uniform_row_length: the length, an int.
            nrows: the number of rows, which is needed where the length is 0.
            validate: ignored.
            name: ignored.

        Returns:
            A ragged tensor.
        """
        stage = "Ragged"
        width = type_rules.integer(stage, "uniform_row_length", uniform_row_length)
        held = values if isinstance(values, Ragged) else _dense(values, stage)
        count = nrows if nrows is not None else held.shape[0] // width if width else 0
        return Ragged(held, arange(type_rules.integer(stage, "nrows", count) + 1) * width)

    # ---- what it is

    @property
    def flat_values(self) -> Tensor:
        """The innermost values of all rows, one behind another."""
        values: Tensor = self.values.flat_values if isinstance(self.values, Ragged) else self.values
        return values

    @property
    def nested_row_splits(self) -> tuple[Tensor, ...]:
        """The splits of each level, the outermost first."""
        return (self.row_splits, *(self.values.nested_row_splits if isinstance(self.values, Ragged) else ()))

    def nested_row_lengths(self, name: str | None = None) -> tuple[Tensor, ...]:
        """The lengths of rows of each level, the outermost first.

        Args:
            name: ignored.

        Returns:
            A tuple of int64 tensors.
        """
        return (self.row_lengths(), *(self.values.nested_row_lengths() if isinstance(self.values, Ragged) else ()))

    @property
    def ndim(self) -> int:
        """The number of axes."""
        axes: int = self.values.ndim + 1
        return axes

    def bounding_shape(
        self, axis: int | None = None, name: str | None = None, out_type: DTypeLike | None = None
    ) -> Tensor:
        """The extents of the dense tensor that has room for all rows.

        Args:
            axis: an axis, or None for all.
            name: ignored.
            out_type: the dtype of the result, int64 unless given.

        Returns:
            A tensor: the extent of the axis, or of all.
        """
        longest = _known("Ragged", self.row_lengths(), "the length of the longest row").max(initial=0)
        within = self.values.bounding_shape().numpy() if isinstance(self.values, Ragged) else self.values.shape
        sizes = np.array([self.nrows(), longest, *within[1:]], np.int64 if out_type is None else out_type)
        return as_tensor(sizes if axis is None else sizes[axis], "Ragged")

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.flat_values.dtype

    @property
    def shape(self) -> tuple[Any, ...]:
        """The extents, None for that of rows."""
        count = self.row_splits.shape[0]
        return (count if count is None else count - 1, None, *self.values.shape[1:])  # of a spec it may be None

    @property
    def ragged_rank(self) -> int:
        """The number of axes whose extents differ: 1, or more of rows of rows."""
        return len(self.nested_row_splits)

    def nrows(self) -> Any:
        """The number of rows.

        Returns:
            An int, or an extent of the trace.
        """
        return self.shape[0]

    def __len__(self) -> int:
        return int(self.nrows())

    def row_lengths(self, axis: int = 1, name: str | None = None) -> Any:
        """The length of each row.

        Args:
            axis: 1, or an axis further in.
            name: ignored.

        Returns:
            An int64 tensor; for an axis further in a ragged one.
        """
        if axis > 1 and isinstance(self.values, Ragged):
            return made(self.values.row_lengths(axis - 1), self.row_splits)
        return subtract(getitem(self.row_splits, slice(1, None)), getitem(self.row_splits, slice(None, -1)))

    def value_rowids(self) -> Tensor:
        """The row of each value.

        Returns:
            An int64 tensor.
        """
        return row_of_each(self.row_splits, self.values.shape[0])

    @entered
    def __getitem__(self, key: object) -> Any:
        """A row, or rows by a slice, integers or bools; what stands behind a comma is of the elements of rows.

        Not in compiled functions, where lengths are not known.
        """
        stage = "Ragged"
        splits = _known(stage, self.row_splits, "the length of a row")
        count = len(splits) - 1
        key, *behind = key if isinstance(key, tuple) and key else (key,)
        if isinstance(key, slice):
            rows = np.arange(count)[key]
        elif isinstance(key, (list, np.ndarray)) or (isinstance(key, Tensor) and key.ndim):
            row_key = np.zeros(0, np.int64) if isinstance(key, list) and not key else key  # of [] it is not said
            rows = _rows(_known(stage, as_tensor(row_key, stage), "the rows"), count)
        else:
            row = type_rules.integer(stage, "the row", key)
            if not -count <= row < count:
                raise IndexRangeError(stage, f"row {row} is out of range for {count} rows.")
            row %= count
            values = _part(self.values, slice(int(splits[row]), int(splits[row + 1])))
            return _part(values, tuple(behind)) if behind else values
        starts, lengths = splits[rows], np.diff(splits)[rows]
        across = behind[0] if behind else slice(None)
        if not isinstance(across, slice):
            raise ArgumentTypeError(stage, f"elements of several rows are {across!r}. Expected a slice.")
        places: slice | np.ndarray
        if across != slice(None):
            ranges = [range(*across.indices(int(n))) for n in lengths]
            places = np.concatenate(
                [np.zeros(0, np.int64), *(s + np.array(r, np.int64) for s, r in zip(starts, ranges))]
            )
            lengths = np.array([len(r) for r in ranges], np.int64)
        elif isinstance(key, slice) and key.step in (None, 1):
            places = slice(int(starts[0]), int(starts[-1] + lengths[-1])) if len(rows) else slice(0)
        else:
            places = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths - starts, lengths)
        values = _part(self.values, places)
        if behind[1:]:
            values = _part(values, (slice(None), *behind[1:]))
        return Ragged.from_row_lengths(values, lengths)

    def __iter__(self) -> Any:
        return (self[k] for k in range(len(self)))

    # ---- conversion

    def to_list(self) -> list[Any]:
        """The rows as nested lists.

        Returns:
            A list of lists.
        """
        return [row.tolist() for row in self]

    tolist = to_list

    @entered
    def to_tensor(self, default_value: Any = 0, name: str | None = None, shape: Any = None) -> Tensor:
        """The rows side by side in a dense tensor, filled up at their ends.

        Args:
            default_value: what fills up.
            name: ignored.
            shape: extents of the result, None where they follow; compiled code finds the width unless given.

        Returns:
            A tensor ``(rows, width, ...)``, where longer rows are cut.

        Raises:
            TraceError: without a width, in code that is traced and cannot find sizes.

        Example:
            >>> hf.ragged.constant([[1, 2], [3]]).to_tensor().tolist()
            [[1, 2], [3, 0]]
        """
        stage = "Ragged.to_tensor"
        if isinstance(self.values, Ragged):
            within = [None, *shape[2:]] if isinstance(shape, (list, tuple)) else None
            return made(self.values.to_tensor(default_value, shape=within), self.row_splits).to_tensor(
                default_value, shape=shape
            )
        width = shape[1] if isinstance(shape, (list, tuple)) and len(shape) > 1 else None
        lengths = self.row_lengths()
        if width is None:
            known = lengths._known()
            if known is None:
                refusal = "the width depends on values that a compiled function does not know. Call it outside."
                width = reductions.max(lengths)._to_extent(lambda: TraceError(stage, refusal))
            else:
                width = int(known.max()) if known.size else 0
        width = type_rules.integer(stage, "the width", width)
        rows, total = self.nrows(), self.values.shape[0]
        is_of_texts = is_string(self.dtype)
        supplied = b"" if is_of_texts and type(default_value) is int and not default_value else default_value
        fill = as_strings(supplied, stage) if is_of_texts else cast(as_tensor(supplied, stage), self.dtype)
        whole = (rows, width, *self.values.shape[1:])
        if 0 in (width, rows, total):
            return expand(reshape_to(fill, (1,) * len(whole)), whole)
        columns = arange(width)
        starts = getitem(self.row_splits, slice(None, -1))
        there = less(columns, reshape_to(lengths, (rows, 1)))
        places = where(there, reshape_to(starts, (rows, 1)) + columns, 0)
        filled_rows = take(self.values, places, axis=0)
        return where(reshape_to(there, (rows, width, *[1] * (self.values.ndim - 1))), filled_rows, fill)

    def numpy(self) -> np.ndarray:
        """The rows as a NumPy array of arrays.

        Returns:
            An object array with an array for each row.
        """
        rows = np.empty(len(self), object)
        for k, row in enumerate(self):
            rows[k] = row.numpy()
        return rows

    # ---- computing

    def with_values(self, values: Any) -> Ragged:
        """The same rows of other values.

        Args:
            values: a tensor with as many values.

        Returns:
            A ragged tensor.

        Raises:
            ShapeError: for another number of values.
        """
        new = values if isinstance(values, Ragged) else as_tensor(values, "with_values")
        if not new.ndim or new.shape[0] != self.values.shape[0]:
            raise ShapeError("with_values", f"values are {new.shape}. Expected as many as {self.values.shape}.")
        return made(new, self.row_splits)

    def with_flat_values(self, values: object) -> Ragged:
        """The same rows of other innermost values.

        Args:
            values: a tensor with as many values.

        Returns:
            A ragged tensor.

        Raises:
            ShapeError: for another number of values.
        """
        inner = self.values.with_flat_values(values) if isinstance(self.values, Ragged) else values
        return self.with_values(inner)

    def map(self, function: Callable[[Tensor], Any]) -> Ragged:
        """What a function makes of the values of all rows at once.

        Args:
            function: a function of a tensor that keeps its first extent.

        Returns:
            A ragged tensor.

        >>> hf.ragged.Ragged([1, 2, 3], [0, 2, 3]).map(lambda x: x * 10).to_list()
        [[10, 20], [30]]
        """
        return self.with_flat_values(function(self.flat_values))

    def _reduced(self, name: str, axis: Any) -> Any:
        of_segments, of_all = _FOLDS[name]
        if axis is None:
            return of_all(self.flat_values)
        axis = type_rules.integer("Ragged", "axis", axis)
        last = self.values.ndim
        if not -last - 1 <= axis <= last:
            raise AxisError("Ragged", f"axis is {axis}. Expected one of {last + 1}.")
        axis %= last + 1
        if isinstance(self.values, Ragged):
            if axis > 1:
                return self.with_values(self.values._reduced(name, axis - 1))
            if axis == 1 and not isinstance(self.values.values, Ragged):
                return self._reduced_across(of_segments)
            raise ArgumentError("Ragged", f"axis is {axis} of rows of rows. Expected one from 1 on, or None.")
        if axis > 1:
            return self.with_values(of_all(self.values, axis - 1))
        if axis == 1:
            return of_segments(self.values, self.value_rowids(), self.nrows())
        lengths = _known("Ragged", self.row_lengths(), "the length of the longest row")
        starts = take(self.row_splits, self.value_rowids(), axis=0)
        columns = subtract(arange(self.values.shape[0]), starts)
        return of_segments(self.values, columns, int(lengths.max()) if lengths.size else 0)

    def _reduced_across(self, of_segments: Callable[..., Tensor]) -> Ragged:
        """The elements at one place of the rows of each row put together: rows as long as the longest of these."""
        inner = self.values
        lengths = _known("Ragged", inner.row_lengths(), "the length of the longest row")
        outer = _known("Ragged", self.row_splits, "the number of rows")
        widths = np.array([lengths[a:b].max(initial=0) for a, b in itertools.pairwise(outer)], np.int64)
        begins = np.repeat(np.concatenate([[0], np.cumsum(widths)[:-1]])[: len(widths)], np.diff(outer))
        starts = _known("Ragged", inner.row_splits, "the length of a row")[:-1]
        places = np.arange(lengths.sum()) + np.repeat(begins - starts, lengths)
        sums = of_segments(inner.values, as_tensor(places.astype(np.int64), "Ragged"), int(widths.sum()))
        return Ragged.from_row_lengths(sums, widths)

    def sum(self, axis: int | None = 1) -> Any:
        """The sum of each row; with axis 0 of each column, with None of all values.

        Args:
            axis: 1 for each row, 0 for each column, None for all values.

        Returns:
            A tensor.

        >>> hf.ragged.Ragged([1, 2, 3], [0, 2, 3]).sum().tolist()
        [3, 3]
        """
        return self._reduced("sum", axis)

    def prod(self, axis: int | None = 1) -> Any:
        """The product of each row; 1 of an empty one.

        Args:
            axis: 1 for each row, 0 for each column, None for all values.

        Returns:
            A tensor.
        """
        return self._reduced("prod", axis)

    def mean(self, axis: int | None = 1) -> Any:
        """The mean of each row; 0 of an empty one.

        Args:
            axis: 1 for each row, 0 for each column, None for all values.

        Returns:
            A tensor.
        """
        return self._reduced("mean", axis)

    def max(self, axis: int | None = 1) -> Any:
        """The largest value of each row; the smallest number of the dtype for an empty one.

        Args:
            axis: 1 for each row, 0 for each column, None for all values.

        Returns:
            A tensor.
        """
        return self._reduced("max", axis)

    def min(self, axis: int | None = 1) -> Any:
        """The smallest value of each row; the largest number of the dtype for an empty one.

        Args:
            axis: 1 for each row, 0 for each column, None for all values.

        Returns:
            A tensor.
        """
        return self._reduced("min", axis)

    def _beside(self, x: Tensor) -> Tensor:
        """A dense operand for each value: numbers, one for each row, or for the axes behind that of rows."""
        flat, said = self.flat_values, x.type
        inner = () if isinstance(self.values, Ragged) else flat.shape[1:]
        if x.ndim < flat.ndim and all(n == m or 1 in (n, m) for n, m in zip(reversed(x.shape), reversed(flat.shape))):
            return x
        if x.ndim < self.ndim:
            x = reshape_to(x, (*[1] * (self.ndim - x.ndim), *x.shape))
        is_column = x.ndim == self.ndim and x.shape[1] == 1 and x.shape[0] in (1, self.nrows())
        if is_column and all(n == m or 1 in (n, m) for n, m in zip(x.shape[2:], inner)):
            rows = reshape_to(x, (x.shape[0], *x.shape[2:]))
            return rows if x.shape[0] == 1 else take(rows, self.value_rowids(), axis=0)
        raise ShapeError(
            "Ragged",
            f"the operand is {said} beside {self.shape}. Expected a number, a ragged tensor, or what has one element "
            "along the axis of rows.",
        )

    def _with(self, function: Callable[[Any, Any], Tensor], other: object) -> Ragged:
        if isinstance(other, Ragged):
            if other.values.shape[:1] != self.values.shape[:1] or other.row_splits.shape != self.row_splits.shape:
                raise ShapeError(
                    "Ragged", f"shapes are {self.shape} and {other.shape}. Expected rows of equal lengths."
                )
            same, said = _all(other.row_splits == self.row_splits), "rows have different lengths."
            check_all(same, ShapeError, lambda: ShapeError("Ragged", said), (), said)
            if isinstance(self.values, Ragged):
                return self.with_values(self.values._with(function, other.values))
            return self.with_values(function(self.values, other.values))
        x = as_tensor(other, "Ragged")
        beside = self._beside(x) if x.ndim else other
        if isinstance(self.values, Ragged) and x.ndim >= self.flat_values.ndim:
            return self.with_values(self.values._with(function, beside))
        return self.with_flat_values(function(self.flat_values, beside))

    def __repr__(self) -> str:
        if not isinstance(self.flat_values, Tensor):  # of specs
            return f"Ragged({self.values!r}, {self.row_splits!r})"
        extents = ",".join(map(str, self.shape))
        known = self.row_splits._known()
        rows = "" if known is None or self.flat_values._known() is None or known[-1] > 20 else f" {self.to_list()}"
        name = "string" if is_string(self.dtype) else dtypes.SHORT[self.dtype]
        return f"<Ragged {name}[{extents}]{rows}>"


def _dense(values: object, stage: str) -> Tensor:
    return as_strings(values, stage) if holds_texts(values) else as_tensor(values, stage)


def _part(values: Any, key: object) -> Any:
    """Elements of values along their first axis, or deeper."""
    if isinstance(values, Ragged):
        return values[key]
    return take(values, key, axis=0) if isinstance(key, np.ndarray) else getitem(values, key)


def _rows(numbers_or_mask: np.ndarray, count: int) -> np.ndarray:
    """Numbers of rows, of integers or of a bool for each row."""
    stage = "Ragged"
    if numbers_or_mask.ndim != 1 or numbers_or_mask.dtype.kind not in "iub":
        raise ArgumentTypeError(
            stage, f"rows are {numbers_or_mask.dtype} with {numbers_or_mask.ndim} axes. Expected integers or bools."
        )
    if numbers_or_mask.dtype.kind == "b":
        if len(numbers_or_mask) != count:
            raise ShapeError(stage, f"there are {len(numbers_or_mask)} bools for {count} rows.")
        return np.flatnonzero(numbers_or_mask)
    if ((numbers_or_mask < -count) | (numbers_or_mask >= count)).any():
        raise IndexRangeError(stage, f"a row is out of range for {count} rows.")
    numbers = numbers_or_mask.astype(np.int64)  # narrow ones have no room for the number of rows
    return np.where(numbers < 0, numbers + count, numbers)


_FOLDS: dict[str, tuple[Callable[..., Tensor], Callable[..., Tensor]]] = {
    "sum": (segment_sum, reductions.sum),
    "prod": (segment_prod, reductions.prod),
    "mean": (segment_mean, reductions.mean),
    "max": (segment_max, reductions.max),
    "min": (segment_min, reductions.min),
}
_OF_TWO: dict[str, Callable[[Any, Any], Tensor]] = {
    "add": elementwise.add,
    "sub": elementwise.subtract,
    "mul": elementwise.multiply,
    "truediv": elementwise.divide,
    "floordiv": elementwise.floor_divide,
    "mod": elementwise.remainder,
    "pow": elementwise.pow,
    "and": elementwise.bitwise_and,
    "or": elementwise.bitwise_or,
    "xor": elementwise.bitwise_xor,
    "lshift": elementwise.bitwise_left_shift,
    "rshift": elementwise.bitwise_right_shift,
}
_COMPARISONS: dict[str, Callable[[Any, Any], Tensor]] = {
    "lt": elementwise.less,
    "le": elementwise.less_equal,
    "gt": elementwise.greater,
    "ge": elementwise.greater_equal,
}
_OF_ONE: dict[str, Callable[[Any], Tensor]] = {
    "neg": elementwise.negative,
    "abs": elementwise.abs,
    "invert": elementwise.bitwise_invert,
}


def _of_two(function: Callable[[Any, Any], Tensor], swapped: bool = False) -> Callable[[Ragged, Any], Ragged]:
    @functools.wraps(function)
    def of_rows(self: Ragged, other: object) -> Ragged:
        return self._with((lambda x, y: function(y, x)) if swapped else function, other)

    return entered(of_rows)


def _of_one(function: Callable[[Any], Tensor]) -> Callable[[Ragged], Ragged]:
    @functools.wraps(function)
    def of_rows(self: Ragged) -> Ragged:
        return self.map(function)

    return entered(of_rows)


# What Tensor has in hybridflow.array.operators, of the values; == is that of objects, as programs compare them.
for _name, _function in {**_OF_TWO, **_COMPARISONS}.items():
    setattr(Ragged, f"__{_name}__", _of_two(_function))
for _name, _function in _OF_TWO.items():
    setattr(Ragged, f"__r{_name}__", _of_two(_function, swapped=True))
for _name, _of_values in _OF_ONE.items():
    setattr(Ragged, f"__{_name}__", _of_one(_of_values))


def made(values: object, row_splits: object) -> Ragged:
    """A ragged tensor of parts that fit each other; of their specs, the spec of one."""
    result: Ragged = object.__new__(Ragged)
    object.__setattr__(result, "values", values)
    object.__setattr__(result, "row_splits", row_splits)
    return result


@entered
def constant(pylist: Sequence[Any], dtype: object = None, ragged_rank: int | None = None) -> Ragged:
    """The ragged tensor of a list of rows.

    Args:
        pylist: rows: lists, arrays or tensors of different lengths.
        dtype: the dtype; that of the rows by default.
        ragged_rank: the number of axes whose extents differ; by default as many as it takes.

    Returns:
        A ``Ragged`` tensor.

    Raises:
        ArgumentTypeError: for anything but a list of rows.

    Example:
        >>> hf.ragged.constant([[1.0, 2.0], []]).row_lengths().tolist()
        [2, 0]
    """
    stage = "ragged.constant"
    if not isinstance(pylist, (list, tuple)):
        raise ArgumentTypeError(stage, f"{pylist!r} is no list of rows.")
    if ragged_rank is not None and type_rules.integer(stage, "ragged_rank", ragged_rank) < 1:
        raise ArgumentError(stage, f"ragged_rank is {ragged_rank}. Expected 1 or more.")
    if (ragged_rank or _least_rank(pylist)) > 1:
        if not all(isinstance(row, (list, tuple)) or np.ndim(row) for row in pylist):
            raise ArgumentTypeError(stage, f"ragged_rank is {ragged_rank}, and a row is a number. Expected a list.")
        elements = [one for row in pylist for one in row]
        rows_within = constant(elements, dtype, None if ragged_rank is None else ragged_rank - 1)
        return Ragged.from_row_lengths(rows_within, np.array([len(row) for row in pylist], np.int64))
    is_of_texts = any(holds_texts(row) for row in pylist if not isinstance(row, (list, tuple)) or row)
    if is_of_texts or names_strings(dtype):
        texts = [as_strings(row, stage) for row in pylist if not isinstance(row, (list, tuple)) or row]
        flat = _concat(texts) if texts else as_strings([], stage)
        return Ragged.from_row_lengths(flat, np.array([len(row) for row in pylist], np.int64))
    rows = [as_tensor(row, stage) for row in pylist]
    if any(not row.ndim for row in rows):
        raise ArgumentTypeError(stage, "a row is a number. Expected a list for each row.")
    some = [row for row in rows if row.shape[0] != 0]
    row_dtype = None if dtype is None else to_dtype(dtype, stage)
    if row_dtype is None:
        row_dtype = np.dtype(np.float32) if not some else some[0].dtype
        for row in some[1:]:
            row_dtype = promote(row_dtype, row.dtype, stage)
    values = _concat([cast(row, row_dtype) for row in some]) if some else filled(0, row_dtype, (0,), stage)
    return Ragged.from_row_lengths(values, np.array([row.shape[0] for row in rows], np.int64))


def _least_rank(rows: Sequence[Any]) -> int:
    """2 where elements of rows are lists of different shapes, else 1."""
    lists = [one for row in rows if isinstance(row, (list, tuple)) for one in row if isinstance(one, (list, tuple))]
    shapes = {_shape_of_lists(one) for one in lists}
    return 2 if len(shapes) > 1 or None in shapes else 1


def _shape_of_lists(value: object) -> tuple[int, ...] | None:
    """The extents of nested lists, None where they are ragged."""
    if not isinstance(value, (list, tuple)):
        return ()
    inner = {_shape_of_lists(one) for one in value}
    if len(inner) > 1 or None in inner:
        return None
    (first,) = inner or {()}
    return (len(value), *(first or ()))


@entered
def map_flat_values(op: Callable[..., Any], *args: object, **kwargs: object) -> Ragged:
    """A function of the values of ragged tensors, whose rows have the same lengths.

    Args:
        op: a function that takes values of all rows at once, and returns as many.
        *args: arguments: of ragged ones it is given the values.
        **kwargs: more arguments, handed on as they are.

    Returns:
        A ``Ragged`` tensor.

    Raises:
        ArgumentTypeError: where no argument is ragged.
        ShapeError: where the numbers of values differ.

    Example:
        >>> hf.ragged.map_flat_values(hf.add, hf.ragged.constant([[1], [2, 3]]), 10).to_list()
        [[11], [12, 13]]
    """
    stage = "ragged.map_flat_values"
    ragged = [x for x in args if isinstance(x, Ragged)]
    if not ragged or not callable(op):
        raise ArgumentTypeError(stage, "no argument is ragged, or the function is none.")
    for other in ragged[1:]:
        ragged[0]._with(lambda x, y: x, other)
    flat = op(*[x.flat_values if isinstance(x, Ragged) else x for x in args], **kwargs)
    return ragged[0].with_flat_values(flat)


@entered
def concat(values: Sequence[Any]) -> Ragged:
    """The rows of ragged tensors, one behind another.

    Args:
        values: ragged tensors.

    Returns:
        A ``Ragged`` tensor.

    Raises:
        ArgumentTypeError: for anything but a list of ragged tensors.

    Example:
        >>> hf.ragged.concat([hf.ragged.constant([[1]]), hf.ragged.constant([[2, 3]])]).to_list()
        [[1], [2, 3]]
    """
    if not isinstance(values, (list, tuple)) or not values or not all(isinstance(x, Ragged) for x in values):
        raise ArgumentTypeError("ragged.concat", "expected a list of ragged tensors.")
    return Ragged.from_row_lengths(_concat([x.values for x in values]), _concat([x.row_lengths() for x in values]))


@entered
def row_splits_to_segment_ids(splits: object) -> Tensor:
    """The row of each value, by where rows end.

    Args:
        splits: integers that do not fall, from 0.

    Returns:
        An int64 tensor.

    Raises:
        ArgumentError: for splits that go backwards.
        TraceError: in a compiled function, where the number of values is not known.

    Example:
        >>> hf.ragged.row_splits_to_segment_ids([0, 2, 3]).tolist()
        [0, 0, 1]
    """
    stage = "ragged.row_splits_to_segment_ids"
    ends = _integers(stage, splits, "splits")
    known = _known(stage, ends, "the number of values")
    count = int(known[-1]) if known.size else 0
    return Ragged(filled(0, dtypes.int8, (max(count, 0),), stage), ends).value_rowids()


@entered
def lookup(params: object, ids: object, weights: object = None, combiner: str = "sum") -> Tensor:
    """Rows of a table put together: for each row of numbers the sum, or mean, of the rows of the table.

    The rows that are looked up are not kept: the sum is one kernel.

    Args:
        params: a table ``(n, ...)`` of floats.
        ids: a ragged tensor of numbers of rows of the table.
        weights: a factor for each number: ragged, of the same lengths.
        combiner: "sum", or "mean", which divides by the sum of the weights.

    Returns:
        A tensor ``(rows, ...)``; 0 for rows without numbers.

    Raises:
        ArgumentTypeError: where ``ids`` are dense.
        ArgumentError: for another combiner.
        DTypeError: for numbers that are not integers.
        IndexRangeError: for one out of range.

    Example:
        >>> table = [[1.0, 2.0], [3.0, 4.0]]
        >>> hf.ragged.lookup(table, hf.ragged.constant([[0, 1], [1]])).tolist()
        [[4.0, 6.0], [3.0, 4.0]]
    """
    stage = "ragged.lookup"
    if combiner not in ("sum", "mean"):
        raise ArgumentError(stage, f"combiner is {combiner!r}. Expected 'sum' or 'mean'.")
    if not isinstance(ids, Ragged) or not (weights is None or isinstance(weights, Ragged)):
        raise ArgumentTypeError(stage, "ids and weights are dense. Expected ragged tensors.")
    table, numbers = float_operand(params, stage), ids.values
    if not table.ndim or numbers.ndim != 1:
        raise ShapeError(stage, f"params are {table.type}, the numbers {numbers.type}. Expected a table, and numbers.")
    if numbers.shape[0] == 0:
        numbers = cast(numbers, default_int)
    if not dtypes.is_integer(numbers.dtype):
        raise DTypeError(stage, f"the numbers are {numbers.type}. Expected integers.")
    numbers = cast(numbers, default_int)
    inside = logical_and(_all(numbers >= 0), _all(numbers < table.shape[0]))
    said = f"a number is out of range for a table of {table.shape[0]} rows."
    check_all(inside, IndexRangeError, lambda: IndexRangeError(stage, said), (), said)
    if weights is None:
        factors = filled(1, table.dtype, numbers.shape, stage)
    else:
        ids._with(lambda x, y: x, weights)
        factors = cast(weights.values, table.dtype)
    starts, ends = getitem(ids.row_splits, slice(None, -1)), getitem(ids.row_splits, slice(1, None))
    total: Tensor = apply(TABLE["csr_matmul"], table, factors, numbers, starts, ends)
    if combiner == "sum":
        return total
    if weights is None:
        shares = maximum(cast(ids.row_lengths(), table.dtype), 1)
    else:
        shares = segment_sum(factors, ids.value_rowids(), ids.nrows())
        shares = where(shares == 0, 1, shares)
    return divide(total, reshape_to(cast(shares, table.dtype), (*shares.shape, *[1] * (total.ndim - 1))))
