"""Functions of NumPy that others make up, with its parameters: what ``numpy_protocols`` answers beyond equal names.

Each gives what NumPy gives, in operations of ours, so that it is compiled, differentiated and mapped like them.
"""

from __future__ import annotations

import builtins
import functools
import itertools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hybridflow.array import norms, special
from hybridflow.array.creation import asarray, full_like
from hybridflow.array.datatypes import isdtype
from hybridflow.array.elementwise import (
    abs,
    add,
    angle as angle_,
    astype,
    equal,
    isclose,
    maximum,
    minimum,
    multiply,
    round,
    trunc,
    where as where_,
)
from hybridflow.array.indexing import take
from hybridflow.array.linalg import diag, diagonal as diagonal_, matmul, outer, tensordot, trace as trace_, vecdot
from hybridflow.array.reductions import all, cumulative_prod, max, min, prod, sum
from hybridflow.array.selection import nonzero
from hybridflow.array.shapes import broadcast_to, concat, expand_dims, flip, moveaxis, permute_dims, reshape, stack
from hybridflow.array.tensor_methods import method_of
from hybridflow.array.windows import sliding_window_view
from hybridflow.compiler.ir.dtypes import is_complex
from hybridflow.core.context import now
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import ArrayLike, AxisLike, DTypeLike
from hybridflow.eager.operands import as_tensor
from hybridflow.errors import ArgumentError, ShapeError


def _float(x: ArrayLike, name: str) -> Tensor:
    """``x`` in NumPy's default precision for what is not a float yet."""
    x = as_tensor(x, name)
    return x if isdtype(x.dtype, "real floating") else astype(x, "float64")


def _mask(x: ArrayLike, where: ArrayLike, identity: ArrayLike) -> Any:
    return x if where is True else where_(where, x, full_like(as_tensor(x, "where"), identity))


# Reductions


def sum_of(
    a: ArrayLike,
    axis: AxisLike = None,
    dtype: DTypeLike | None = None,
    keepdims: bool = False,
    initial: ArrayLike = 0,
    where: ArrayLike = True,
) -> Any:
    total = sum(_mask(a, where, 0), axis=axis, dtype=dtype, keepdims=keepdims)
    return total if _is_plain_zero(initial) else add(total, initial)


def _is_plain_zero(value: ArrayLike) -> bool:
    return value is np._NoValue or (isinstance(value, int) and value == 0)


def prod_of(
    a: ArrayLike,
    axis: AxisLike = None,
    dtype: DTypeLike | None = None,
    keepdims: bool = False,
    initial: ArrayLike = 1,
    where: ArrayLike = True,
) -> Any:
    total = prod(_mask(a, where, 1), axis=axis, dtype=dtype, keepdims=keepdims)
    return total if initial is np._NoValue or (isinstance(initial, int) and initial == 1) else multiply(total, initial)


def _extremum(reduce: Callable[..., Any], join: Callable[..., Any]) -> Callable[..., Any]:
    def of(
        a: ArrayLike,
        axis: AxisLike = None,
        keepdims: bool = False,
        initial: Any = np._NoValue,
        where: Any = True,
    ) -> Any:
        if initial is np._NoValue:
            if where is not True:
                raise ArgumentError(reduce.__name__, "where= needs initial=: there may be no elements.")
            return reduce(a, axis=axis, keepdims=keepdims)
        a = as_tensor(a, reduce.__name__)
        a = a if where is True else where_(where, a, initial)
        if a.size == 0:
            return full_like(sum(a, axis=axis, keepdims=keepdims), initial, dtype=a.dtype)
        return join(reduce(a, axis=axis, keepdims=keepdims), initial)

    return of


# Shapes


def _at_least(x: Tensor, axes: int) -> Tensor:
    """``x`` with axes of one element in front."""
    return expand_dims(x, tuple(range(axes - x.ndim))) if x.ndim < axes else x


def _at_least_3d(x: Tensor) -> Tensor:
    x = _at_least(x, 1)
    if x.ndim == 1:
        return expand_dims(x, (0, 2))
    return expand_dims(x, 2) if x.ndim == 2 else x


def _of_each(function: Callable[[Tensor], Tensor]) -> Callable[..., Any]:
    def of(*arys: object) -> Any:
        results = tuple(function(as_tensor(x, "atleast")) for x in arys)
        return results[0] if len(results) == 1 else results

    return of


def _stacked(axis: int, least: int) -> Callable[..., Any]:
    def of(tup: Sequence[ArrayLike]) -> Any:
        parts = [_at_least(as_tensor(part, "concat"), least) for part in tup]
        return concat(parts, axis=0 if parts[0].ndim == 1 else axis)

    return of


def dstack(tup: Sequence[ArrayLike]) -> Any:
    return concat([_at_least_3d(as_tensor(part, "dstack")) for part in tup], axis=2)


def column_stack(tup: Sequence[ArrayLike]) -> Any:
    parts = [as_tensor(part, "column_stack") for part in tup]
    return concat([reshape(part, (-1, 1)) if part.ndim < 2 else part for part in parts], axis=1)


def block(arrays: object) -> Any:
    depth = _depth(arrays)

    def joined(nest: object, level: int) -> Tensor:
        if not isinstance(nest, list):
            return _at_least(as_tensor(nest, "block"), builtins.max(depth, 1))
        parts = [joined(item, level + 1) for item in nest]
        return concat(parts, axis=parts[0].ndim - depth + level)

    return joined(arrays, 0)


def _depth(nest: object) -> int:
    return 1 + builtins.max((_depth(item) for item in nest), default=0) if isinstance(nest, list) else 0


def swapaxes(a: ArrayLike, axis1: int, axis2: int) -> Any:
    a = as_tensor(a, "swapaxes")
    order = list(range(a.ndim))
    order[axis1], order[axis2] = order[axis2], order[axis1]
    return permute_dims(a, order)


def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    ary = as_tensor(ary, "array_split")
    extent = ary.shape[axis]
    if isinstance(indices_or_sections, (int, np.integer)):
        size, more = divmod(extent, int(indices_or_sections))
        sizes = [size + 1] * more + [size] * (int(indices_or_sections) - more)
        ends = np.cumsum([0, *sizes]).tolist()
    else:
        ends = [0, *map(operator.index, indices_or_sections), extent]
    before = (slice(None),) * (axis % ary.ndim)
    return [ary[(*before, slice(a, b))] for a, b in itertools.pairwise(ends)]


def split(ary: object, indices_or_sections: object, axis: int = 0) -> Any:
    extent = as_tensor(ary, "split").shape[axis]
    if isinstance(indices_or_sections, (int, np.integer)) and extent % int(indices_or_sections):
        raise ShapeError("split", f"axis {axis} has {extent} elements, which are no {indices_or_sections} equal parts.")
    return array_split(ary, indices_or_sections, axis)


def _split_along(axis: int) -> Callable[..., Any]:
    def of(ary: object, indices_or_sections: object) -> Any:
        along = 0 if axis == 1 and as_tensor(ary, "hsplit").ndim == 1 else axis
        return split(ary, indices_or_sections, along)

    return of


def append(arr: object, values: ArrayLike, axis: int | None = None) -> Any:
    arr, values = as_tensor(arr, "append"), as_tensor(values, "append")
    if axis is None:
        return concat([reshape(arr, (-1,)), reshape(values, (-1,))])
    return concat([arr, values], axis=axis)


def insert(arr: Any, obj: Any, values: ArrayLike, axis: int | None = None) -> Any:
    arr = as_tensor(arr, "insert")
    if axis is None:
        arr, axis = reshape(arr, (-1,)), 0
    axis %= arr.ndim
    extent, at = arr.shape[axis], operator.index(obj)
    if not -extent <= at <= extent:
        raise ArgumentError("insert", f"index {at} is out of range for axis {axis} of {arr.type}.")
    at += extent if at < 0 else 0
    values = astype(as_tensor(values, "insert"), arr.dtype)
    if arr.ndim > 1 and values.ndim == arr.ndim - 1:
        values = expand_dims(values, axis)
    count = values.shape[axis] if values.ndim == arr.ndim else 1
    lines = broadcast_to(values, (*arr.shape[:axis], count, *arr.shape[axis + 1 :]))
    before = (slice(None),) * axis
    return concat([arr[(*before, slice(0, at))], lines, arr[(*before, slice(at, None))]], axis=axis)


def delete(arr: Any, obj: Any, axis: int | None = None) -> Any:
    arr = as_tensor(arr, "delete")
    if axis is None:
        arr, axis = reshape(arr, (-1,)), 0
    left = np.delete(np.arange(arr.shape[axis]), obj)
    return take(arr, asarray(left), axis=axis)


def _diagonal(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    return diagonal_(moveaxis(a, (axis1, axis2), (-2, -1)), offset)


def _trace(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: DTypeLike | None = None) -> Any:
    return trace_(moveaxis(a, (axis1, axis2), (-2, -1)), offset, dtype)


# Products


def inner(a: object, b: object) -> Any:
    a, b = as_tensor(a, "inner"), as_tensor(b, "inner")
    return multiply(a, b) if 0 in (a.ndim, b.ndim) else tensordot(a, b, axes=([a.ndim - 1], [b.ndim - 1]))


def multi_dot(arrays: Sequence[ArrayLike]) -> Any:
    return functools.reduce(matmul, arrays)


# Elements


def sinc(x: ArrayLike) -> Any:
    return special.sinc(_float(x, "sinc"))


def angle(z: object, deg: bool = False) -> Any:
    z = as_tensor(z, "angle")
    result = angle_(z if is_complex(z.dtype) else _float(z, "angle"))
    return multiply(result, 180 / math.pi) if deg else result


def cumprod(a: Any, axis: Any = None, dtype: DTypeLike | None = None) -> Any:
    a = as_tensor(a, "cumprod")
    return cumulative_prod(a.ravel() if axis is None else a, axis=0 if axis is None else axis, dtype=dtype)


def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    return nonzero(condition) if x is None and y is None else where_(condition, x, y)


def size(a: Any, axis: int | None = None) -> Any:
    return a.size if axis is None else a.shape[axis]


def _answer(value: ArrayLike) -> Any:
    """A bool, but while tracing: a tensor then, which statements take."""
    return value if now().trace is not None else bool(value)


def allclose(a: ArrayLike, b: ArrayLike, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Any:
    return _answer(all(isclose(a, b, rtol, atol, equal_nan)))


def array_equal(a1: Any, a2: Any) -> Any:
    return _answer(all(equal(a1, a2))) if np.shape(a1) == np.shape(a2) else False


# Order


def argwhere(a: ArrayLike) -> Any:
    return stack(nonzero(a), axis=1)


FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.lib.stride_tricks.sliding_window_view: sliding_window_view,
    np.allclose: allclose,
    np.amax: _extremum(max, maximum),
    np.amin: _extremum(min, minimum),
    np.angle: angle,
    np.append: append,
    np.argwhere: argwhere,
    np.around: method_of("round"),
    np.array_equal: array_equal,
    np.array_split: array_split,
    np.atleast_1d: _of_each(lambda x: _at_least(x, 1)),
    np.atleast_2d: _of_each(lambda x: _at_least(x, 2)),
    np.atleast_3d: _of_each(_at_least_3d),
    np.block: block,
    np.column_stack: column_stack,
    np.cross: norms.cross,
    np.cumprod: cumprod,
    np.delete: delete,
    np.diagflat: lambda v, k=0: diag(reshape(v, (-1,)), k),
    np.diagonal: _diagonal,
    np.dsplit: _split_along(2),
    np.dstack: dstack,
    np.fabs: abs,
    np.fix: trunc,
    np.flatnonzero: lambda a: nonzero(reshape(a, (-1,)))[0],
    np.fliplr: lambda m: flip(m, axis=1),
    np.flipud: lambda m: flip(m, axis=0),
    np.hsplit: _split_along(1),
    np.hstack: _stacked(1, 1),
    np.inner: inner,
    np.insert: insert,
    np.linalg.cond: norms.cond,
    np.linalg.multi_dot: multi_dot,
    np.linalg.norm: norms.norm,
    np.max: _extremum(max, maximum),
    np.min: _extremum(min, minimum),
    np.ndim: lambda a: a.ndim,
    np.outer: lambda a, b: outer(reshape(a, (-1,)), reshape(b, (-1,))),
    np.prod: prod_of,
    np.rint: round,
    np.shape: lambda a: a.shape,
    np.sinc: sinc,
    np.size: size,
    np.split: split,
    np.sum: sum_of,
    np.swapaxes: swapaxes,
    np.trace: _trace,
    np.vdot: lambda a, b: vecdot(reshape(a, (-1,)), reshape(b, (-1,))),
    np.vsplit: _split_along(0),
    np.vstack: _stacked(0, 2),
    np.where: where,
}
