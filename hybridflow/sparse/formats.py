"""Sparse tensors as nested values of dense ones: entries with their coordinates (COO), and matrices in rows (CSR).

The parts are dataclass fields, so that functions, ``vmap``, datasets and checkpoints take the whole leaf by leaf.  The
shape travels as that of a part without elements.

Entries may come in any order, and those at one place add up.  Indices are checked where an object is made: at once, or
in a compiled function when it runs.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hybridflow.array.creation import arange
from hybridflow.array.elementwise import add, divide, logical_and, multiply, negative, subtract
from hybridflow.array.indexing import getitem, take
from hybridflow.array.reductions import all as all_, sum as sum_, sum_dtype
from hybridflow.array.shapes import concat, permute_dims, stack
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ir.types import product
from hybridflow.compiler.ops import type_rules
from hybridflow.core.promotion import default_int, promote, to_dtype
from hybridflow.core.string_tensor import as_strings, holds_texts, is_string
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import DTypeLike
from hybridflow.eager.operands import as_tensor, cast, filled, from_numpy, reshape_to, to_shape
from hybridflow.effects.runtime_raise import check_all
from hybridflow.errors import (
    ArgumentError,
    ArgumentTypeError,
    DTypeError,
    IndexRangeError,
    ShapeError,
    TraceError,
    entered,
)
from hybridflow.ragged import row_of_each
from hybridflow.sparse.products import coo_product, csr_product, in_rows, summed


def _check(stage: str, holds: Any, kind: type[Exception], message: str) -> None:
    check_all(holds, kind, lambda: kind(stage, message), (), message)


def _fits_int32(extent: object) -> bool:
    return not isinstance(extent, int) or extent <= np.iinfo(np.int32).max


def _indices(stage: str, value: object, name: str, ndim: int, bounds: Sequence[Any]) -> Tensor:
    x = as_tensor(value, stage)
    if not x.size and isinstance(value, (list, tuple)):
        x = cast(x, default_int)
    if not dtypes.is_integer(x.dtype):
        raise DTypeError(stage, f"{name} are {x.type}. Expected integers.")
    if x.ndim != ndim:
        raise ShapeError(stage, f"{name} are {x.type}. Expected {ndim} {'axis' if ndim == 1 else 'axes'}.")
    return x if x.dtype == dtypes.int32 and all(_fits_int32(n) for n in bounds) else cast(x, default_int)


def _values(stage: str, value: object, indices: Tensor) -> Tensor:
    values = as_strings(value, stage) if holds_texts(value) else as_tensor(value, stage)
    if values.ndim != 1 or values.shape != indices.shape[:1]:
        raise ShapeError(stage, f"values are {values.type} for indices {indices.type}. Expected one for each index.")
    return values


def _outline(stage: str, shape: object, ndim: int | None) -> Tensor:
    """A tensor without elements that says a shape."""
    extents = to_shape(shape, stage)
    if not extents or (ndim is not None and len(extents) != ndim):
        raise ShapeError(stage, f"the shape is {extents}. Expected {'one axis or more' if ndim is None else ndim}.")
    return filled(0, dtypes.int8, (*extents, 0), stage)


class SparseBase:
    """What the formats have in common."""

    values: Tensor
    outline: Tensor
    __array_ufunc__ = None  # NumPy's operators leave it to ours

    @property
    def shape(self) -> tuple[Any, ...]:
        """The extents of the dense tensor."""
        return tuple(self.outline.shape[:-1])

    def to_dense(self) -> Tensor:
        """The whole matrix."""
        raise NotImplementedError

    def to_coo(self) -> COO:
        """The same in coordinates."""
        raise NotImplementedError

    @property
    def ndim(self) -> int:
        return self.outline.ndim - 1

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.values.dtype

    @property
    def nnz(self) -> Any:
        """The number of entries, those that are 0 and those at one place included."""
        return self.values.shape[-1]

    def with_values(self, values: object) -> Any:
        """The tensor with the same indices and other values.

        Args:
            values: a value for each entry.

        Returns:
            A sparse tensor of the same format.

        Raises:
            ShapeError: where there are not as many values as entries.

        Example:
            >>> hf.sparse.from_dense([[0.0, 2.0]]).with_values([5.0]).to_dense().tolist()
            [[0.0, 5.0]]
        """
        new = as_tensor(values, "with_values")
        if new.shape != self.values.shape:
            raise ShapeError("with_values", f"values are {new.type}. Expected the shape of {self.values.type}.")
        return self.replaced(new)

    def astype(self, dtype: DTypeLike) -> Any:
        """The tensor with its values converted to a dtype.

        Args:
            dtype: the dtype.

        Returns:
            A sparse tensor of the same places.
        """
        return self.replaced(cast(self.values, to_dtype(dtype, "astype")))

    def replaced(self, values: Tensor) -> Any:
        """The tensor with other values at the same places, which are not looked at.

        Args:
            values: a tensor with as many values.

        Returns:
            A sparse tensor.
        """
        parts: Any = self
        return made(
            type(self), **{f.name: getattr(self, f.name) for f in dataclasses.fields(parts)} | {"values": values}
        )

    def __neg__(self) -> Any:
        return self.replaced(negative(self.values))

    @entered
    def __mul__(self, other: object) -> Any:
        """Products of the entries with a number, or with the elements of a dense tensor at their places."""
        return self._scaled("sparse multiply", multiply, other)

    __rmul__ = __mul__

    @entered
    def __truediv__(self, other: object) -> Any:
        """Quotients of the entries and a number, or the elements of a dense tensor at their places."""
        return self._scaled("sparse divide", divide, other)

    def _scaled(self, stage: str, function: Callable[..., Any], other: Any) -> Any:
        if isinstance(other, SparseBase):
            raise ArgumentTypeError(stage, "both operands are sparse. Expected a dense one: call to_dense() on it.")
        dense = as_tensor(other, stage)
        if not dense.ndim:
            return self.replaced(function(self.values, other))
        first = self.ndim - dense.ndim
        if first < 0 or any(n not in (1, m) for n, m in zip(dense.shape, self.shape[first:])):
            raise ShapeError(
                stage, f"{self!r} and {dense.type}. Expected a shape that broadcasts to that of the first."
            )
        axes = [k for k, n in enumerate(dense.shape) if n != 1]
        dense = reshape_to(dense, tuple(dense.shape[k] for k in axes))
        coo = self.to_coo()
        if axes:
            dense = getitem(dense, tuple(coo.coordinate(first + k) for k in axes))
        return self.replaced(function(self.values, dense))

    @entered
    def __add__(self, other: object) -> Any:
        """The sum: of two sparse tensors the entries of both, with a dense one a dense tensor."""
        return self._joined(other) if isinstance(other, SparseBase) else add(*self._dense("sparse add", other))

    __radd__ = __add__

    @entered
    def __sub__(self, other: object) -> Any:
        """The difference: sparse, or dense where one is dense."""
        return self._joined(-other) if isinstance(other, SparseBase) else subtract(*self._dense("sparse add", other))

    @entered
    def __rsub__(self, other: object) -> Any:
        matrix, dense = self._dense("sparse add", other)
        return subtract(dense, matrix)

    def _joined(self, other: object) -> Any:
        raise NotImplementedError

    def _dense(self, stage: str, other: object) -> tuple[Tensor, Tensor]:
        if isinstance(other, (bool, int, float, complex)):
            raise ArgumentTypeError(
                stage, f"{self!r} and {other!r}: a number would fill all that is not kept. Use to_dense() first."
            )
        dense = as_tensor(other, stage)
        if tuple(dense.shape) != self.shape:
            raise ShapeError(stage, f"{self!r} and {dense.type}. Expected equal shapes.")
        return self.to_dense(), dense

    def __repr__(self) -> str:
        extents = ",".join(map(str, self.shape))
        dtype = "string" if is_string(self.dtype) else dtypes.SHORT[self.dtype]
        return f"<{type(self).__name__} {dtype}[{extents}] nnz={self.nnz}>"


def made(kind: type, **parts: object) -> Any:
    """An object of parts that fit each other."""
    result: object = object.__new__(kind)
    for name, part in parts.items():
        object.__setattr__(result, name, part)
    return result


def _operand(matrix: SparseBase, other: object) -> Tensor:
    """What a matrix is multiplied with from the right, in the dtype of the product."""
    stage = "sparse matmul"
    if isinstance(other, SparseBase):
        raise ArgumentTypeError(stage, "both operands are sparse. Expected a dense one: call to_dense() on it.")
    x = as_tensor(other, stage)
    if matrix.ndim != 2 or x.ndim not in (1, 2) or x.shape[0] != matrix.shape[1]:
        raise ShapeError(
            stage,
            f"{matrix!r} is multiplied with {x.type}. Expected a matrix, and a vector or matrix of as many rows as it "
            "has columns.",
        )
    dtype = promote(matrix.dtype, x.dtype, stage)
    if dtypes.is_bool(dtype):
        raise DTypeError(stage, "both operands are bools. Expected numbers.")
    return cast(x, dtype)


def _from_left(matrix: Any, other: Any) -> Tensor:
    """``other @ matrix``."""
    x = as_tensor(other, "sparse matmul")
    if x.ndim == 1:
        result: Tensor = matrix.T @ x
        return result
    if x.ndim != 2:
        raise ShapeError("sparse matmul", f"{x.type} is multiplied with {matrix!r}. Expected a vector or a matrix.")
    return permute_dims(matrix.T @ permute_dims(x, (1, 0)), (1, 0))


def _scipy(name: str) -> Any:
    try:
        module = importlib.import_module("scipy.sparse")
    except ImportError:
        raise ArgumentError("to_scipy", "SciPy is not installed. Install scipy.") from None
    return getattr(module, name)


@dataclasses.dataclass(frozen=True, eq=False, repr=False, init=False)
class COO(SparseBase):
    """Sparse tensor: values, each with its coordinates; all other elements are 0.

    Entries may come in any order; those at one place add up.  ``tf.SparseTensor`` is this class.

    Args:
        indices: integers ``[nnz, ndim]``: the coordinates of each entry.
        values: a tensor ``[nnz]``.
        dense_shape: the shape of the dense tensor.

    Raises:
        ShapeError: if the parts do not match.
        DTypeError: for indices that are not integers.
        IndexRangeError: for an index out of range.

    Example:
        >>> a = hf.sparse.COO([[0, 1], [2, 0]], [5.0, 7.0], (3, 2))
        >>> a
        <COO f32[3,2] nnz=2>
        >>> a.to_dense().tolist()
        [[0.0, 5.0], [0.0, 0.0], [7.0, 0.0]]
    """

    coords: Tensor
    values: Tensor
    outline: Tensor

    @entered
    def __init__(self, indices: object, values: object, dense_shape: object) -> None:
        stage = "COO"
        outline = _outline(stage, dense_shape, None)
        at = as_tensor(indices, stage)
        ndim = outline.ndim - 1
        bounds = outline.shape[:-1]
        at = _indices(stage, reshape_to(at, (0, ndim)) if at.size == 0 and at.ndim < 2 else at, "indices", 2, bounds)
        if at.shape[1] != ndim:
            raise ShapeError(stage, f"indices are {at.type} for {ndim} axes. Expected a row of {ndim} for each entry.")
        held = _values(stage, values, at)
        for axis, extent in enumerate(bounds):
            along = getitem(at, (slice(None), axis))
            inside = all_(logical_and(along >= 0, along < extent))
            _check(stage, inside, IndexRangeError, f"an index is out of range for axis {axis} of {extent} elements.")
        for name, part in (("coords", permute_dims(at, (1, 0))), ("values", held), ("outline", outline)):
            object.__setattr__(self, name, part)

    @property
    def indices(self) -> Tensor:
        """The coordinates of each entry: ``[nnz, ndim]``."""
        return permute_dims(self.coords, (*range(self.coords.ndim - 2), -1, -2))

    @property
    def dense_shape(self) -> tuple[Any, ...]:
        """The shape, under TensorFlow's name."""
        return self.shape

    def as_column(self) -> Any:
        """The rows, as the elements of a dataset.

        Returns:
            A column of ``hybridflow.data``.
        """
        return importlib.import_module("hybridflow.sparse.rows").SparseColumn(self)

    def spec_of_row(self) -> Any:
        """Of what is the spec of a tensor: the spec of its rows.

        Returns:
            A ``COO`` of specs.
        """
        return importlib.import_module("hybridflow.sparse.rows").sparse_spec(self.outline.shape[1:-1], self.values)

    def coordinate(self, axis: int) -> Tensor:
        """The coordinates of entries along an axis.

        Args:
            axis: the axis.

        Returns:
            An integer tensor [entries].
        """
        return getitem(self.coords, axis)

    def positions(self, axes: Sequence[int]) -> Tensor:
        """The row-major position of each entry along some axes.

        Args:
            axes: the axes.

        Returns:
            An int64 tensor [entries].
        """
        at = filled(0, default_int, self.values.shape, "sparse")
        for axis in axes:
            at = at * self.shape[axis] + cast(self.coordinate(axis), default_int)
        return at

    def to_dense(self) -> Tensor:
        """The dense tensor, in which entries at one place are added up.

        Returns:
            A tensor of ``shape``.

        Example:
            >>> hf.sparse.COO([[1], [1]], [2, 3], (3,)).to_dense().tolist()
            [0, 5, 0]
        """
        if is_string(self.dtype):  # each place has the number of its entry
            numbers = arange(1, self.values.shape[0] + 1)
            at = summed(numbers, self.positions(range(self.ndim)), product(self.shape))
            return reshape_to(take(concat([as_strings([b""], "sparse"), self.values]), at), self.shape)
        is_bool = dtypes.is_bool(self.dtype)
        values = cast(self.values, dtypes.int32) if is_bool else self.values
        flat = summed(values, self.positions(range(self.ndim)), product(self.shape))
        return reshape_to(cast(flat, dtypes.bool_) if is_bool else flat, self.shape)

    def to_coo(self) -> COO:
        """The tensor itself.

        Returns:
            This tensor.
        """
        return self

    def to_csr(self) -> CSR:
        """The matrix in rows: entries of a row stay in their order.

        Returns:
            A ``CSR`` matrix.

        Raises:
            ShapeError: where it has other than two axes.
        """
        if self.ndim != 2:
            raise ShapeError("to_csr", f"{self!r} is no matrix. Expected two axes.")
        order, indptr = in_rows(self.coordinate(0), self.shape[0])
        columns, values = take(self.coordinate(1), order, axis=0), take(self.values, order, axis=0)
        result: CSR = made(CSR, indptr=indptr, indices=columns, values=values, outline=self.outline)
        return result

    def coalesce(self) -> COO:
        """Entries in row-major order, those at one place added up.

        How many are left depends on the indices, so compiled functions cannot do it: ``reorder`` sorts alone.

        Returns:
            A ``COO`` tensor without duplicates.

        Raises:
            TraceError: in a compiled function.

        Example:
            >>> hf.sparse.COO([[1], [0], [1]], [2, 3, 4], (2,)).coalesce().values.tolist()
            [3, 6]
        """
        flat = self.positions(range(self.ndim))
        places, inverse = np.unique(flat.numpy(), return_inverse=True)
        values = summed(self.values, from_numpy(inverse.reshape(-1), "coalesce"), len(places))
        coords = np.stack(np.unravel_index(places, self.shape)) if len(places) else np.zeros((self.ndim, 0), np.int64)
        at = cast(from_numpy(coords.astype(np.int64), "coalesce"), self.coords.dtype)
        result: COO = made(COO, coords=at, values=values, outline=self.outline)
        return result

    def transpose(self, axes: Sequence[int] | None = None) -> COO:
        """The tensor with its axes in another order.

        Args:
            axes: the old axis of each new one; in opposite order by default.

        Returns:
            A ``COO`` tensor.

        Raises:
            ArgumentError: where ``axes`` are no permutation.
        """
        order = tuple(range(self.ndim))[::-1] if axes is None else tuple(axes)
        wanted = [type_rules.integer("transpose", "an axis", axis) for axis in order]
        wanted = [axis + self.ndim if axis < 0 else axis for axis in wanted]
        if sorted(wanted) != list(range(self.ndim)):
            raise ArgumentError("transpose", f"axes are {order} for {self.ndim} axes. Expected each of them once.")
        coords = stack([self.coordinate(axis) for axis in wanted])
        result: COO = made(
            COO, coords=coords, values=self.values, outline=permute_dims(self.outline, (*wanted, self.ndim))
        )
        return result

    @property
    def T(self) -> COO:
        return self.transpose()

    def sum(self, axis: object = None, keepdims: bool = False) -> Tensor:
        """The sums of elements along axes, as a dense tensor, in the dtype that ``hf.sum`` has.

        Args:
            axis: an axis, or several; all by default.
            keepdims: whether reduced axes stay, with one element.

        Returns:
            A tensor of the axes that are left.

        Raises:
            AxisError: for an axis out of range.

        Example:
            >>> hf.sparse.from_dense([[1.0, 0.0], [2.0, 3.0]]).sum(axis=1).tolist()
            [1.0, 5.0]
        """
        axes = type_rules.axes("sum", self.outline.type.with_shape(self.shape), axis)
        left = [k for k in range(self.ndim) if k not in axes]
        values = cast(self.values, sum_dtype(self.dtype))
        if left:
            total = summed(values, self.positions(left), product(tuple(self.shape[k] for k in left)))
        else:
            total = sum_(values)
        kept = [1 if k in axes else extent for k, extent in enumerate(self.shape) if keepdims or k not in axes]
        return reshape_to(total, tuple(kept))

    def __matmul__(self, other: object) -> Tensor:
        x = _operand(self, other)
        return coo_product(self.coordinate(0), self.coordinate(1), cast(self.values, x.dtype), self.shape[0], x)

    def __rmatmul__(self, other: object) -> Tensor:
        return _from_left(self, other)

    def _joined(self, other: Any) -> COO:
        right = other.to_coo()
        if right.shape != self.shape:
            raise ShapeError("sparse add", f"shapes are {self.shape} and {right.shape}. Expected equal ones.")
        dtype = promote(self.dtype, right.dtype, "sparse add")
        values = concat([cast(self.values, dtype), cast(right.values, dtype)])
        coords = concat([cast(x.coords, default_int) for x in (self, right)], axis=1)
        result: COO = made(COO, coords=coords, values=values, outline=self.outline)
        return result

    def to_scipy(self) -> Any:
        """The matrix as ``scipy.sparse.coo_array``.

        Returns:
            A matrix of SciPy's.

        Raises:
            ArgumentError: where SciPy is not installed.
        """
        return _scipy("coo_array")((self.values.numpy(), tuple(self.coords.numpy())), shape=self.shape)


@dataclasses.dataclass(frozen=True, eq=False, repr=False, init=False)
class CSR(SparseBase):
    """Sparse matrix in rows: row ``i`` has the entries ``indptr[i]`` to before ``indptr[i + 1]``.

    Columns of a row may come in any order; entries at one place add up.

    Args:
        indptr: integers ``[rows + 1]`` that do not fall, from 0 to the number of entries.
        indices: integers ``[nnz]``: the column of each entry.
        values: a tensor ``[nnz]``.
        shape: the shape of the matrix.

    Raises:
        ShapeError: if the parts do not match.
        DTypeError: for indices that are not integers.
        IndexRangeError: for a column out of range.
        ArgumentError: for splits that go backwards, or do not begin at 0 and end at the number of entries.

    Example:
        >>> a = hf.sparse.CSR([0, 1, 1, 3], [1, 0, 1], [5.0, 7.0, 8.0], (3, 2))
        >>> (a @ [1.0, 10.0]).tolist()
        [50.0, 0.0, 87.0]
    """

    indptr: Tensor
    indices: Tensor
    values: Tensor
    outline: Tensor

    @entered
    def __init__(self, indptr: object, indices: object, values: object, shape: object) -> None:
        stage = "CSR"
        outline = _outline(stage, shape, 2)
        rows, across = outline.shape[:-1]
        columns, splits = _indices(stage, indices, "indices", 1, (across,)), _indices(stage, indptr, "indptr", 1, ())
        if splits.shape != (rows + 1,):
            raise ShapeError(stage, f"indptr is {splits.type} for {rows} rows. Expected one more than there are rows.")
        held = _values(stage, values, columns)
        inside = all_(logical_and(columns >= 0, columns < across))
        _check(stage, inside, IndexRangeError, f"an index is out of range for axis 1 of {across} elements.")
        ends = logical_and(getitem(splits, 0) == 0, getitem(splits, -1) == columns.shape[0])
        forwards = all_(getitem(splits, slice(1, None)) >= getitem(splits, slice(None, -1)))
        said = "indptr goes backwards, or does not begin at 0 and end at the number of entries."
        _check(stage, logical_and(ends, forwards), ArgumentError, said)
        if columns.dtype != splits.dtype:
            columns, splits = cast(columns, default_int), cast(splits, default_int)
        for name, part in (("indptr", splits), ("indices", columns), ("values", held), ("outline", outline)):
            object.__setattr__(self, name, part)

    def _rows(self) -> Tensor:
        """The row of each entry."""
        return row_of_each(self.indptr, self.nnz)

    def to_coo(self) -> COO:
        """The matrix as entries with coordinates, in the same order.

        Returns:
            A ``COO`` tensor.
        """
        result: COO = made(COO, coords=stack([self._rows(), self.indices]), values=self.values, outline=self.outline)
        return result

    def to_csr(self) -> CSR:
        """The matrix itself.

        Returns:
            This matrix.
        """
        return self

    def to_dense(self) -> Tensor:
        """The dense matrix, in which entries at one place are added up.

        Returns:
            A tensor of the same shape.
        """
        return self.to_coo().to_dense()

    def coalesce(self) -> CSR:
        """Columns of rows in order, entries at one place added up; not in compiled functions.

        Returns:
            A matrix of the same values.
        """
        return self.to_coo().coalesce().to_csr()

    def transpose(self) -> CSR:
        """The transposed matrix, in rows too.

        Returns:
            A ``CSR`` matrix.

        Example:
            >>> hf.sparse.from_dense([[1.0, 2.0]], format="csr").T.indptr.tolist()
            [0, 1, 2]
        """
        order, indptr = in_rows(self.indices, self.shape[1])
        columns, values = take(self._rows(), order, axis=0), take(self.values, order, axis=0)
        result: CSR = made(
            CSR, indptr=indptr, indices=columns, values=values, outline=permute_dims(self.outline, (1, 0, 2))
        )
        return result

    @property
    def T(self) -> CSR:
        return self.transpose()

    def sum(self, axis: object = None, keepdims: bool = False) -> Tensor:
        """The sums of elements along axes, as a dense tensor: see ``COO.sum``.

        Args:
            axis: an axis, a tuple of axes, or None for all.
            keepdims: whether reduced axes are kept with size 1.

        Returns:
            A tensor without the axes.
        """
        return self.to_coo().sum(axis, keepdims)

    def __getitem__(self, key: object) -> CSR:
        """Rows from one to another: a slice of step 1.  Raises TraceError in a compiled function, where the number of
        entries is not known."""
        stage = "CSR"
        if not isinstance(key, slice) or key.step not in (None, 1):
            raise ArgumentTypeError(stage, f"rows are {key!r}. Expected a slice of step 1.")
        if not isinstance(self.shape[0], int):
            raise ShapeError(stage, "rows cannot be cut where their number is not known.")
        first, last, _ = key.indices(self.shape[0])
        last = max(first, last)
        splits = getitem(self.indptr, slice(first, last + 1))
        known = splits._known()
        if known is None:
            said = "the number of entries of some rows depends on the values of indptr. Cut them outside."
            raise TraceError(stage, said)
        begin, end = int(known[0]), int(known[-1])
        outline = getitem(self.outline, slice(first, last))
        columns, values = (getitem(x, slice(begin, end)) for x in (self.indices, self.values))
        result: CSR = made(CSR, indptr=splits - begin, indices=columns, values=values, outline=outline)
        return result

    def __matmul__(self, other: object) -> Tensor:
        x = _operand(self, other)
        return csr_product(self.indptr, self.indices, cast(self.values, x.dtype), x)

    def __rmatmul__(self, other: object) -> Tensor:
        return _from_left(self, other)

    def _joined(self, other: object) -> CSR:
        return (self.to_coo() + other).to_csr()

    def to_scipy(self) -> Any:
        """The matrix as ``scipy.sparse.csr_array``.

        Returns:
            A matrix of SciPy's.

        Raises:
            ArgumentError: where SciPy is not installed.
        """
        parts = self.values.numpy(), self.indices.numpy(), self.indptr.numpy()
        return _scipy("csr_array")(parts, shape=self.shape)
