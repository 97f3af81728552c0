"""Products with sparse matrices: sums over the entries of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.build import Builder, Cotangent, Value
from hybridflow.compiler.ir.types import Extent, TensorType, product, same_shape
from hybridflow.compiler.ops import complex_pairs, reference_arrays, samples, type_rules
from hybridflow.compiler.ops.batching_rules import axis_to_front
from hybridflow.compiler.ops.emitter_protocol import ElementSource, Val
from hybridflow.compiler.ops.op_table import Kind, OpDef, define
from hybridflow.errors import ShapeError

if TYPE_CHECKING:
    from hybridflow.compiler.index.index_expr import IndexExpr


_INDEX = frozenset((dt.int32, dt.int64))


def _infer(x: TensorType, values: TensorType, columns: TensorType, starts: TensorType, ends: TensorType) -> TensorType:
    name = "csr_matmul"
    type_rules.check_dtype(name, x, frozenset(type_rules.NUMERIC + dt.COMPLEX))
    type_rules.check_same(name, x.with_shape(()), values.with_shape(()))
    for index in (columns, starts, ends):
        type_rules.check_dtype(name, index, _INDEX, "a type of indices")
    if not x.ndim or values.ndim != 1 or not same_shape(columns.shape, values.shape):
        raise ShapeError(name, f"values are {values}, columns {columns}, x is {x}. Expected a column for each value.")
    if starts.ndim != 1 or not same_shape(ends.shape, starts.shape):
        raise ShapeError(name, f"starts are {starts}, ends {ends}. Expected one of each for each row.")
    return x.with_shape((*starts.shape, *x.shape[1:]))


def _element(g: ElementSource, index: Any) -> Val:
    """One entry after the other; each product and each sum is rounded."""
    e, (x, values, columns, *_) = g.e, g.types
    wide = dt.compute_dtype(x.dtype)
    if 0 in (*x.shape, *values.shape):  # nothing is read, but all are operands
        nowhere = g.linear(index) * 0
        for k, type in enumerate(g.types):
            g.inside(k, (nowhere,) * type.ndim, [(nowhere, 0)], 0)
        return e.zero(x.dtype)

    def add(entry: IndexExpr, total: Val) -> Val:
        column = g.clamp(g.load(2, (entry,)), x.shape[0])
        factor = e.convert(g.load(1, (entry,)), wide)
        return e.add(total, e.mul(factor, e.convert(g.load(0, (column, *index[1:])), wide)))

    first, last = g.load(3, index[:1]), g.load(4, index[:1])
    return e.convert(g.fold(first, last, columns.shape[0], x.shape[0], e.zero(wide), add, len(x.shape) == 1), x.dtype)


def _reference(
    x: np.ndarray, values: np.ndarray, columns: np.ndarray, starts: np.ndarray, ends: np.ndarray
) -> np.ndarray:
    wide, x = reference_arrays.computed(values), reference_arrays.computed(x)
    out = np.zeros((len(starts), *x.shape[1:]), x.dtype)
    with np.errstate(all="ignore"):
        for row, (first, last) in enumerate(zip(starts, ends)):
            for k in range(max(first, 0), min(last, len(values))) if x.size else ():
                out[row] += wide[k] * x[np.clip(columns[k], 0, len(x) - 1)]
    return out.astype(values.dtype)


def _filled(b: Builder, value: Extent, type: TensorType) -> Value:
    if isinstance(value, int):
        return b.full(value, like=type)
    return b.broadcast(b.extent(value=value, dtype=type.dtype), shape=type.shape, axes=())


def _rows(b: Builder, count: Extent, ends: Value) -> Any:
    """The row of each entry, where the entries of rows lie one behind another: how many rows end before it."""
    places = b.maximum(b.minimum(ends, _filled(b, count, ends.type)), b.full(0, like=ends.type))
    zeros = b.full(0, like=TensorType((count + 1,), ends.type.dtype))
    ended = b.cumulative_sum(b.scatter_add(zeros, places, b.full(1, like=ends.type), axis=0), axis=0)
    before = b.slice(ended, start=(0,), stop=(count,), step=(1,))
    return b.minimum(before, _filled(b, ends.type.shape[0] - 1, before.type))


def _nearest(b: Builder, columns: Value, x: TensorType) -> Value:
    """The columns as the product takes them: those out of range for the nearest ones."""
    last = _filled(b, x.shape[0] - 1, columns.type)
    return b.maximum(b.minimum(columns, last), b.full(0, like=columns.type))


def _over_columns(b: Builder, per_entry: Value, x: TensorType) -> Value:
    """A number for each entry, as often as there are columns."""
    count = per_entry.type.shape[0]
    return b.broadcast(per_entry, shape=(count, *x.shape[1:]), axes=(0,))


def _vjp(
    b: Builder, g: Value, out: Value, x: Value, values: Value, columns: Value, starts: Value, ends: Value
) -> tuple[Cotangent, ...]:
    """Of values: products of the rows of two dense matrices at the places of entries (SDDMM).  Of x: the product with
    the transposed matrix, in the order of its entries."""
    count = values.type.shape[0]

    def rows_and_inside() -> tuple[Value, Value]:
        """Entries that are in no row count for nothing, wherever they seem to be."""
        rows = _rows(b, count, ends)
        if 0 in rows.type.shape or 0 in starts.type.shape:
            return rows, b.full(True, like=rows.type.with_dtype(dt.bool_))
        entries = b.iota(shape=(count,), axis=0, dtype=ends.type.dtype)
        inside = b.logical_and(
            b.greater_equal(entries, b.convert(b.take(starts, rows, axis=0), dtype=entries.type.dtype)),
            b.less(entries, b.take(ends, rows, axis=0)),
        )
        return rows, inside

    def of_values() -> Value:
        if 0 in (*g.type.shape, *x.type.shape, *values.type.shape):
            return b.full(0, like=values.type)
        rows, inside = rows_and_inside()
        left, right = b.take(g, rows, axis=0), b.take(x, _nearest(b, columns, x.type), axis=0)
        axes = tuple(range(1, x.type.ndim))
        products = b.vecdot(left, right, axes=axes, sum_dtype=x.type.dtype) if axes else b.multiply(left, right)
        return b.where(inside, products, b.full(0, like=products.type))

    def of_x() -> Value:
        if 0 in (*g.type.shape, *x.type.shape, *values.type.shape):
            return b.full(0, like=x.type)
        rows, inside = rows_and_inside()
        kept = b.where(inside, values, b.full(0, like=values.type))
        places = _nearest(b, columns, x.type)
        if x.type.ndim == 1:  # not by the number of columns, which may be open: derivatives of the two differ in bits
            wide = dt.compute_dtype(x.type.dtype)
            factors = (_over_columns(b, kept, x.type), b.take(g, rows, axis=0))
            terms = b.multiply(*[type_rules.as_dtype(b, part, wide) for part in factors])
            total = b.scatter_add(b.full(0, like=x.type.with_dtype(wide)), places, terms, axis=0)
            return type_rules.as_dtype(b, total, x.type.dtype)
        order = b.argsort(places, axis=0, descending=False)
        ordered = b.take(places, order, axis=0)
        numbers = b.iota(shape=(x.type.shape[0],), axis=0, dtype=places.type.dtype)
        ends_there = b.search(ordered, numbers, right=True, batch=0)
        starts_there = b.search(ordered, numbers, right=False, batch=0)
        kept, rows = b.take(kept, order, axis=0), b.take(rows, order, axis=0)
        return b.csr_matmul(g, kept, rows, starts_there, ends_there)

    return of_x, of_values, None, None, None


def _batch(
    b: Builder,
    op: OpDef,
    size: int,
    batched: Sequence[bool],
    x: Value,
    values: Value,
    columns: Value,
    starts: Value,
    ends: Value,
) -> Value:
    """One matrix takes the examples side by side; several are the blocks of one along its diagonal."""
    if not any(batched[1:]):
        ndim = x.type.ndim
        moved = b.transpose(x, perm=(1, 0, *range(2, ndim)))
        return b.transpose(b.csr_matmul(moved, values, columns, starts, ends), perm=(1, 0, *range(2, ndim)))
    parts = [
        axis_to_front(b, part, is_batched, size)
        for part, is_batched in zip((x, values, columns, starts, ends), batched)
    ]
    x, values, columns, starts, ends = parts
    count, shape = values.type.shape[1], x.type.shape

    def moved_by(indices: Value, step: Extent) -> Value:
        wide = indices if indices.type.dtype == dt.int64 else b.convert(indices, dtype=dt.int64)
        block = b.multiply(b.iota(shape=wide.type.shape, axis=0, dtype=dt.int64), _filled(b, step, wide.type))
        return b.reshape(b.add(wide, block), shape=(product(wide.type.shape),))

    def between(indices: Value, last: Extent) -> Value:  # which the op would do, were it not for the other blocks
        return b.maximum(b.minimum(indices, _filled(b, last, indices.type)), b.full(0, like=indices.type))

    out = b.csr_matmul(
        b.reshape(x, shape=(shape[0] * shape[1], *shape[2:])),
        b.reshape(values, shape=(size * count,)),
        moved_by(columns, shape[1]),
        moved_by(between(starts, count), count),
        moved_by(between(ends, count), count),
    )
    return b.reshape(out, shape=(*starts.type.shape, *shape[2:]))


def _pairs(
    b: Builder, x: complex_pairs.Pair, values: complex_pairs.Pair, columns: Value, starts: Value, ends: Value
) -> complex_pairs.Pair:
    def times(left: Value, right: Value) -> Value:
        return b.csr_matmul(right, left, columns, starts, ends)

    real = b.subtract(times(values.real, x.real), times(values.imag, x.imag))
    return complex_pairs.Pair(real, b.add(times(values.real, x.imag), times(values.imag, x.real)))


def _samples(rng: np.random.Generator, dtype: np.dtype[Any]) -> list[samples.Sample]:
    result: list[samples.Sample] = []
    cases = [((5, 3), 4, 9), ((5,), 4, 9), ((1, 70), 3, 7), ((6, 2, 5), 1, 4), ((3, 0), 2, 2), ((4, 2), 3, 0)]
    for shape, rows, count in (*cases, ((0, 2), 2, 0), ((7, 33), 0, 0)):
        for kind in (dt.int32, dt.int64):
            splits = np.sort(np.concatenate([[0, count], rng.integers(0, count + 1, max(rows - 1, 0))])).astype(kind)
            columns = rng.integers(0, max(shape[0], 1), count).astype(kind)
            arrays = samples.values(rng, dtype, shape), samples.values(rng, dtype, (count,)), columns
            result.append(((*arrays, splits[:rows], splits[1 : rows + 1]), {}))
    return result


define(
    "csr_matmul",
    Kind.SPARSE,
    5,
    doc="""The product of a sparse matrix and x: row i is the sum of values[k] * x[columns[k]] for k from starts[i] to
    before ends[i], one after another in the dtype of sums; each product is rounded.  Indices out of range are taken for
    the nearest ones.  Rows are to lie one behind another, or derivatives are those of another matrix.""",
    infer=_infer,
    reference=_reference,
    element=_element,
    pairs=_pairs,
    vjp=_vjp,
    batch=_batch,
    samples=_samples,
    dtypes=type_rules.NUMERIC,
)
