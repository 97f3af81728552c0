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

from hybridflow.array import decompositions, norms, special
from hybridflow.array.creation import arange, asarray, full_like, zeros_like
from hybridflow.array.datatypes import isdtype, result_type
from hybridflow.array.elementwise import (
    abs,
    add,
    astype,
    atan2,
    clip,
    divide,
    equal,
    floor_divide,
    greater,
    isclose,
    isinf,
    isnan,
    less,
    logical_or,
    maximum,
    minimum,
    multiply,
    pow,
    remainder,
    round,
    sign,
    sqrt,
    subtract,
    trunc,
    where as where_,
)
from hybridflow.array.indexing import take, take_along_axis
from hybridflow.array.linalg import diagonal as diagonal_, matmul, outer, tensordot, trace as trace_, vecdot
from hybridflow.array.reductions import all, cumulative_prod, max, mean as mean_, min, prod, sum
from hybridflow.array.searching import searchsorted
from hybridflow.array.selection import nonzero
from hybridflow.array.shapes import broadcast_to, concat, expand_dims, flip, moveaxis, pad, permute_dims, reshape, stack
from hybridflow.array.sorting import argsort, sort
from hybridflow.array.tensor_methods import method_of
from hybridflow.core.context import now
from hybridflow.core.tensor import Tensor
from hybridflow.eager.operands import as_tensor
from hybridflow.errors import ArgumentError, ShapeError


def _float(x: Any, name: str) -> Tensor:
    """``x`` in NumPy's default precision for what is no float yet."""
    x = as_tensor(x, name)
    return x if isdtype(x.dtype, "real floating") else astype(x, "float64")


def _mask(x: Any, where: Any, identity: Any) -> Any:
    return x if where is True else where_(where, x, full_like(as_tensor(x, "where"), identity))


# Reductions


def sum_of(
    a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False, initial: Any = 0, where: Any = True
) -> Any:
    total = sum(_mask(a, where, 0), axis=axis, dtype=dtype, keepdims=keepdims)
    return total if _is_plain_zero(initial) else add(total, initial)


def _is_plain_zero(value: Any) -> bool:
    return value is np._NoValue or (isinstance(value, int) and value == 0)


def prod_of(
    a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False, initial: Any = 1, where: Any = True
) -> Any:
    total = prod(_mask(a, where, 1), axis=axis, dtype=dtype, keepdims=keepdims)
    return total if initial is np._NoValue or (isinstance(initial, int) and initial == 1) else multiply(total, initial)


def _extremum(reduce: Callable[..., Any], join: Callable[..., Any]) -> Callable[..., Any]:
    def of(a: Any, axis: Any = None, keepdims: bool = False, initial: Any = np._NoValue, where: Any = True) -> Any:
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


def average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, keepdims: bool = False) -> Any:
    a = _float(a, "average")
    if weights is None:
        result = mean_(a, axis=axis, keepdims=keepdims)
        total = full_like(result, a.size / builtins.max(result.size, 1))
    else:
        weights = as_tensor(weights, "average")
        if weights.shape != a.shape:
            if axis is None or weights.ndim != 1:
                raise ShapeError(
                    "average", f"weights are {weights.type}, and a is {a.type}; say which axis they weigh."
                )
            weights = reshape(weights, tuple(-1 if k == axis % a.ndim else 1 for k in range(a.ndim)))
        total = sum(add(weights, zeros_like(a)), axis=axis, keepdims=keepdims)
        result = divide(sum(multiply(a, weights), axis=axis, keepdims=keepdims), total)
    return (result, total) if returned else result


def cov(m: Any, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: int | None = None) -> Any:
    rows = _rows(m, rowvar)
    if y is not None:
        rows = concat([rows, _rows(y, rowvar)])
    centred = subtract(rows, mean_(rows, axis=1, keepdims=True))
    freedom = rows.shape[1] - ((0 if bias else 1) if ddof is None else ddof)
    result = divide(matmul(centred, permute_dims(centred, (1, 0))), freedom)
    return reshape(result, ()) if result.shape == (1, 1) else result


def _rows(m: Any, rowvar: bool) -> Tensor:
    m = _float(m, "cov")
    if m.ndim > 2:
        raise ShapeError("cov", f"{m.type} has more than 2 axes.")
    m = _at_least(m, 2)
    return m if rowvar or m.shape[0] == 1 else permute_dims(m, (1, 0))


def corrcoef(x: Any, y: Any = None, rowvar: bool = True) -> Any:
    c = cov(x, y, rowvar)
    if c.ndim == 0:
        return divide(c, c)
    scale = sqrt(diagonal_(c))
    return clip(divide(c, outer(scale, scale)), -1, 1)


def ptp(a: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return subtract(max(a, axis=axis, keepdims=keepdims), min(a, axis=axis, keepdims=keepdims))


def _there(a: Any) -> tuple[Tensor, Tensor]:
    a = as_tensor(a, "nan")
    return a, isnan(a) if isdtype(a.dtype, "real floating") else zeros_like(a, dtype="bool")


def nansum(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    a, missing = _there(a)
    return sum(where_(missing, zeros_like(a), a), axis=axis, dtype=dtype, keepdims=keepdims)


def nanprod(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    a, missing = _there(a)
    return prod(where_(missing, full_like(a, 1), a), axis=axis, dtype=dtype, keepdims=keepdims)


def nanmean(a: Any, axis: Any = None, keepdims: bool = False) -> Any:
    a = _float(a, "nanmean")
    return divide(nansum(a, axis, keepdims=keepdims), _count(a, axis, keepdims))


def _count(a: Tensor, axis: Any, keepdims: bool) -> Tensor:
    return sum(astype(equal(a, a), a.dtype), axis=axis, keepdims=keepdims)  # NaN equals nothing


def nanvar(a: Any, axis: Any = None, ddof: int = 0, keepdims: bool = False) -> Any:
    a = _float(a, "nanvar")
    squares = pow(subtract(a, nanmean(a, axis, keepdims=True)), 2)
    return divide(nansum(squares, axis, keepdims=keepdims), subtract(_count(a, axis, keepdims), ddof))


def nanstd(a: Any, axis: Any = None, ddof: int = 0, keepdims: bool = False) -> Any:
    return sqrt(nanvar(a, axis, ddof, keepdims))


def _nan_extremum(reduce: Callable[..., Any], least: float) -> Callable[..., Any]:
    def of(a: Any, axis: Any = None, keepdims: bool = False) -> Any:
        a, missing = _there(a)
        if not isdtype(a.dtype, "real floating"):
            return reduce(a, axis=axis, keepdims=keepdims)
        result = reduce(where_(missing, full_like(a, least), a), axis=axis, keepdims=keepdims)
        return where_(all(missing, axis=axis, keepdims=keepdims), full_like(result, math.nan), result)

    return of


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    y = moveaxis(as_tensor(y, "trapezoid"), axis, -1)
    if x is None:
        width: Any = dx
    else:
        x = as_tensor(x, "trapezoid")
        x = x if x.ndim == 1 else moveaxis(x, axis, -1)
        width = x[..., 1:] - x[..., :-1]
    return sum(divide(multiply(width, y[..., 1:] + y[..., :-1]), 2.0), axis=-1)


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
    def of(*arys: Any) -> Any:
        results = tuple(function(as_tensor(x, "atleast")) for x in arys)
        return results[0] if len(results) == 1 else results

    return of


def _stacked(axis: int, least: int) -> Callable[..., Any]:
    def of(tup: Any) -> Any:
        parts = [_at_least(as_tensor(part, "concat"), least) for part in tup]
        return concat(parts, axis=0 if parts[0].ndim == 1 else axis)

    return of


def dstack(tup: Any) -> Any:
    return concat([_at_least_3d(as_tensor(part, "dstack")) for part in tup], axis=2)


def column_stack(tup: Any) -> Any:
    parts = [as_tensor(part, "column_stack") for part in tup]
    return concat([reshape(part, (-1, 1)) if part.ndim < 2 else part for part in parts], axis=1)


def block(arrays: Any) -> Any:
    depth = _depth(arrays)

    def joined(nest: Any, level: int) -> Tensor:
        if not isinstance(nest, list):
            return _at_least(as_tensor(nest, "block"), builtins.max(depth, 1))
        parts = [joined(item, level + 1) for item in nest]
        return concat(parts, axis=parts[0].ndim - depth + level)

    return joined(arrays, 0)


def _depth(nest: Any) -> int:
    return 1 + builtins.max((_depth(item) for item in nest), default=0) if isinstance(nest, list) else 0


def swapaxes(a: Any, axis1: int, axis2: int) -> Any:
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


def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    extent = as_tensor(ary, "split").shape[axis]
    if isinstance(indices_or_sections, (int, np.integer)) and extent % int(indices_or_sections):
        raise ShapeError("split", f"axis {axis} has {extent} elements, which are no {indices_or_sections} equal parts.")
    return array_split(ary, indices_or_sections, axis)


def _split_along(axis: int) -> Callable[..., Any]:
    def of(ary: Any, indices_or_sections: Any) -> Any:
        along = 0 if axis == 1 and as_tensor(ary, "hsplit").ndim == 1 else axis
        return split(ary, indices_or_sections, along)

    return of


def rot90(m: Any, k: int = 1, axes: Sequence[int] = (0, 1)) -> Any:
    m = as_tensor(m, "rot90")
    first, second = (axis % m.ndim for axis in axes)
    k %= 4
    if k == 0:
        return m
    if k == 2:
        return flip(m, axis=(first, second))
    turned = swapaxes(flip(m, axis=second) if k == 1 else m, first, second)
    return turned if k == 1 else flip(turned, axis=second)


def append(arr: Any, values: Any, axis: int | None = None) -> Any:
    arr, values = as_tensor(arr, "append"), as_tensor(values, "append")
    if axis is None:
        return concat([reshape(arr, (-1,)), reshape(values, (-1,))])
    return concat([arr, values], axis=axis)


def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Any:
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


def diag(v: Any, k: int = 0) -> Any:
    v = as_tensor(v, "diag")
    if v.ndim == 2:
        return diagonal_(v, k)
    if v.ndim != 1:
        raise ShapeError("diag", f"{v.type} is neither a vector nor a matrix.")
    width = v.shape[0] + builtins.abs(k)
    rows, columns = reshape(arange(width), (-1, 1)), arange(width)
    padded = pad(v, [(0, builtins.abs(k))])
    lines = reshape(padded, (-1, 1)) if k >= 0 else padded
    return where_(equal(columns - rows, k), lines, zeros_like(lines))


def _diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    return diagonal_(moveaxis(a, (axis1, axis2), (-2, -1)), offset)


def _trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Any:
    return trace_(moveaxis(a, (axis1, axis2), (-2, -1)), offset, dtype)


def unravel_index(indices: Any, shape: Sequence[int]) -> Any:
    found: list[Any] = []
    for extent in reversed(tuple(shape)):
        found.append(remainder(indices, extent))
        indices = floor_divide(indices, extent)
    return tuple(reversed(found))


# Products


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    x = as_tensor(x, "norm")
    if axis is None and (ord is None or x.ndim == 1):
        return norms.vector_norm(x, ord=2 if ord is None else ord, keepdims=keepdims)
    axes = tuple(range(x.ndim)) if axis is None else axis
    if isinstance(axes, (tuple, list)) and len(axes) == 2:
        result = norms.matrix_norm(moveaxis(x, axes, (-2, -1)), ord="fro" if ord is None else ord)
        return expand_dims(result, tuple(sorted(a % x.ndim for a in axes))) if keepdims else result
    return norms.vector_norm(x, axis=axes, ord=2 if ord is None else ord, keepdims=keepdims)


def cond(x: Any, p: Any = None) -> Any:
    if p in (None, 2, -2):
        values = decompositions.svdvals(x)
        return divide(values[..., -1], values[..., 0]) if p == -2 else divide(values[..., 0], values[..., -1])
    return multiply(norms.matrix_norm(x, ord=p), norms.matrix_norm(decompositions.inv(x), ord=p))


def inner(a: Any, b: Any) -> Any:
    a, b = as_tensor(a, "inner"), as_tensor(b, "inner")
    return multiply(a, b) if 0 in (a.ndim, b.ndim) else tensordot(a, b, axes=([a.ndim - 1], [b.ndim - 1]))


def kron(a: Any, b: Any) -> Any:
    a, b = as_tensor(a, "kron"), as_tensor(b, "kron")
    axes = builtins.max(a.ndim, b.ndim)
    a, b = _at_least(a, axes), _at_least(b, axes)
    blocks = multiply(
        reshape(a, tuple(n for extent in a.shape for n in (extent, 1))),
        reshape(b, tuple(n for extent in b.shape for n in (1, extent))),
    )
    return reshape(blocks, tuple(m * n for m, n in zip(a.shape, b.shape)))


def multi_dot(arrays: Any) -> Any:
    return functools.reduce(matmul, arrays)


def convolve(a: Any, v: Any, mode: str = "full") -> Any:
    a, v = _at_least(as_tensor(a, "convolve"), 1), _at_least(as_tensor(v, "convolve"), 1)
    if a.ndim != 1 or v.ndim != 1 or not a.size or not v.size:
        raise ShapeError("convolve", f"{a.type} and {v.type} must be vectors with elements.")
    if v.shape[0] > a.shape[0]:
        a, v = v, a
    size = v.shape[0]
    around = {"full": (size - 1, size - 1), "same": (size // 2, (size - 1) // 2), "valid": (0, 0)}
    if mode not in around:
        raise ArgumentError("convolve", f"mode is {mode!r}; it must be 'full', 'same' or 'valid'.")
    dtype = result_type(a, v)
    wide = pad(astype(a, dtype), [around[mode]])
    count = wide.shape[0] - size + 1
    windows = take(wide, reshape(arange(count), (-1, 1)) + arange(size))
    return matmul(windows, flip(astype(v, dtype)))


def correlate(a: Any, v: Any, mode: str = "valid") -> Any:
    a, v = as_tensor(a, "correlate"), as_tensor(v, "correlate")
    turned = convolve(a, flip(v), mode)
    if v.size > a.size and mode == "same":  # what is centred is the longer of the two
        return flip(convolve(v, flip(a), mode))
    return turned


# Elements


def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None) -> Any:
    x, xp, fp = _float(x, "interp"), _float(xp, "interp"), _float(fp, "interp")
    if xp.ndim != 1 or fp.shape != xp.shape or not xp.size:
        raise ShapeError("interp", f"xp is {xp.type}, and fp is {fp.type}; they must be vectors of one size.")
    last = xp.shape[0] - 1
    after = clip(searchsorted(xp, x, side="right"), 1, builtins.max(last, 1))
    low, high = clip(after - 1, 0, last), clip(after, 0, last)
    x0, y0 = take(xp, low), take(fp, low)
    span = take(xp, high) - x0
    slope = divide(take(fp, high) - y0, where_(equal(span, 0), full_like(span, 1), span))
    result = slope * (x - x0) + y0
    result = where_(less(x, xp[0]), fp[0] if left is None else left, result)
    result = where_(
        equal(x, xp[last]), fp[last], where_(greater(x, xp[last]), fp[last] if right is None else right, result)
    )
    return where_(isnan(x), x, result)


def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    if edge_order != 1:
        raise ArgumentError("gradient", f"edge_order is {edge_order!r}; it must be 1 here.")
    f = _float(f, "gradient")
    axes = range(f.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    axes = [k % f.ndim for k in axes]
    spacings = list(varargs) * len(axes) if len(varargs) == 1 else list(varargs) or [1.0] * len(axes)
    if len(spacings) != len(axes):
        raise ArgumentError("gradient", f"{len(varargs)} spacings for {len(axes)} axes.")
    results = tuple(moveaxis(_slopes(moveaxis(f, k, -1), h), -1, k) for k, h in zip(axes, spacings))
    return results[0] if len(results) == 1 else results


def _slopes(f: Tensor, spacing: Any) -> Tensor:
    """Differences along the last axis: central ones, one-sided at the ends."""
    if f.shape[-1] < 2:
        raise ShapeError("gradient", f"{f.type} needs at least two elements along each axis.")
    steps = as_tensor(spacing, "gradient")
    if steps.ndim == 0:
        inside = divide(f[..., 2:] - f[..., :-2], multiply(2.0, spacing))
        ends: Any = (spacing, spacing)
    else:
        h = steps[1:] - steps[:-1]
        back, on = h[:-1], h[1:]
        a, b, c = -(on) / (back * (back + on)), (on - back) / (back * on), back / (on * (back + on))
        inside = a * f[..., :-2] + b * f[..., 1:-1] + c * f[..., 2:]
        ends = (h[0], h[-1])
    first, last = divide(f[..., 1:2] - f[..., :1], ends[0]), divide(f[..., -1:] - f[..., -2:-1], ends[1])
    return concat([first, inside, last], axis=-1)


def polyval(p: Any, x: Any) -> Any:
    x = as_tensor(x, "polyval")
    coefficients = list(p) if isinstance(p, (list, tuple)) else [p[k] for k in range(p.shape[0])]
    return functools.reduce(lambda y, c: add(multiply(y, x), c), coefficients, zeros_like(x))


def digitize(x: Any, bins: Any, right: bool = False) -> Any:
    """``bins`` go up or down, as their first and last say."""
    bins = as_tensor(bins, "digitize")
    side = "left" if right else "right"
    if not bins.size:
        return searchsorted(bins, x, side=side)
    down = subtract(bins.shape[0], searchsorted(flip(bins), x, side=side))
    return where_(greater(bins[0], bins[-1]), down, searchsorted(bins, x, side=side))


def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Any:
    if len(condlist) != len(choicelist) or not condlist:
        raise ArgumentError("select", f"{len(condlist)} conditions for {len(choicelist)} choices.")
    pairs = reversed(list(zip(condlist, choicelist)))
    return functools.reduce(lambda rest, pair: where_(pair[0], pair[1], rest), pairs, default)


def piecewise(x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **kw: Any) -> Any:
    """A function is called with all of ``x``, and must be one of elements."""
    x = as_tensor(x, "piecewise")
    conditions = list(condlist) if isinstance(condlist, (list, tuple)) else [condlist]
    conditions = [asarray(condition) for condition in conditions]
    if len(funclist) == len(conditions) + 1:
        conditions.append(equal(functools.reduce(logical_or, conditions), False))
    if len(funclist) != len(conditions):
        raise ArgumentError("piecewise", f"{len(conditions)} conditions for {len(funclist)} functions.")
    result = zeros_like(x)
    for condition, function in zip(conditions, funclist):
        value = function(x, *args, **kw) if callable(function) else function
        result = where_(condition, astype(as_tensor(value, "piecewise"), x.dtype), result)
    return result


def _either(join: Callable[..., Any]) -> Callable[..., Any]:
    """As ``join``, where NaN counts as missing."""

    def of(x1: Any, x2: Any) -> Any:
        return where_(isnan(x1), x2, where_(isnan(x2), x1, join(x1, x2)))

    return of


def heaviside(x1: Any, x2: Any) -> Any:
    return where_(isnan(x1), x1, where_(equal(x1, 0), x2, astype(greater(x1, 0), result_type(x1, x2))))


def sinc(x: Any) -> Any:
    return special.sinc(_float(x, "sinc"))


def angle(z: Any, deg: bool = False) -> Any:
    z = _float(z, "angle")
    result = atan2(zeros_like(z), z)
    return multiply(result, 180 / math.pi) if deg else result


def modf(x: Any) -> Any:
    whole = trunc(x)
    return where_(isinf(x), zeros_like(whole), subtract(x, whole)), whole


def cumprod(a: Any, axis: Any = None, dtype: Any = None) -> Any:
    a = as_tensor(a, "cumprod")
    return cumulative_prod(a.ravel() if axis is None else a, axis=0 if axis is None else axis, dtype=dtype)


def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    return nonzero(condition) if x is None and y is None else where_(condition, x, y)


def size(a: Any, axis: int | None = None) -> Any:
    return a.size if axis is None else a.shape[axis]


def _answer(value: Any) -> Any:
    """A bool, but while tracing: a tensor then, which statements take."""
    return value if now().trace is not None else bool(value)


def allclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Any:
    return _answer(all(isclose(a, b, rtol, atol, equal_nan)))


def array_equal(a1: Any, a2: Any) -> Any:
    return _answer(all(equal(a1, a2))) if np.shape(a1) == np.shape(a2) else False


# Order


def lexsort(keys: Any, axis: int = -1) -> Any:
    keys = [as_tensor(key, "lexsort") for key in keys]
    order = argsort(keys[0], axis=axis, stable=True)
    for key in keys[1:]:
        again = argsort(take_along_axis(key, order, axis=axis), axis=axis, stable=True)
        order = take_along_axis(order, again, axis=axis)
    return order


def partition(a: Any, kth: Any, axis: int | None = -1) -> Any:
    return sort(reshape(a, (-1,))) if axis is None else sort(a, axis=axis)


def argpartition(a: Any, kth: Any, axis: int | None = -1) -> Any:
    return argsort(reshape(a, (-1,))) if axis is None else argsort(a, axis=axis)


def argwhere(a: Any) -> Any:
    return stack(nonzero(a), axis=1)


FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.allclose: allclose,
    np.amax: _extremum(max, maximum),
    np.amin: _extremum(min, minimum),
    np.angle: angle,
    np.append: append,
    np.argpartition: argpartition,
    np.argwhere: argwhere,
    np.around: method_of("round"),
    np.array_equal: array_equal,
    np.array_split: array_split,
    np.atleast_1d: _of_each(lambda x: _at_least(x, 1)),
    np.atleast_2d: _of_each(lambda x: _at_least(x, 2)),
    np.atleast_3d: _of_each(_at_least_3d),
    np.average: average,
    np.block: block,
    np.cbrt: lambda x: multiply(sign(x), pow(abs(x), 1 / 3)),
    np.column_stack: column_stack,
    np.convolve: convolve,
    np.corrcoef: corrcoef,
    np.correlate: correlate,
    np.cov: cov,
    np.cross: norms.cross,
    np.cumprod: cumprod,
    np.deg2rad: lambda x: multiply(x, math.pi / 180),
    np.delete: delete,
    np.diag: diag,
    np.diagflat: lambda v, k=0: diag(reshape(v, (-1,)), k),
    np.diagonal: _diagonal,
    np.digitize: digitize,
    np.divmod: lambda x1, x2: (floor_divide(x1, x2), remainder(x1, x2)),
    np.dsplit: _split_along(2),
    np.dstack: dstack,
    np.exp2: lambda x: pow(2.0, x),
    np.fabs: abs,
    np.fix: trunc,
    np.flatnonzero: lambda a: nonzero(reshape(a, (-1,)))[0],
    np.fliplr: lambda m: flip(m, axis=1),
    np.flipud: lambda m: flip(m, axis=0),
    np.fmax: _either(maximum),
    np.fmin: _either(minimum),
    np.gradient: gradient,
    np.heaviside: heaviside,
    np.hsplit: _split_along(1),
    np.hstack: _stacked(1, 1),
    np.inner: inner,
    np.insert: insert,
    np.interp: interp,
    np.isneginf: lambda x: equal(x, -math.inf),
    np.isposinf: lambda x: equal(x, math.inf),
    np.kron: kron,
    np.lexsort: lexsort,
    np.linalg.cond: cond,
    np.linalg.multi_dot: multi_dot,
    np.linalg.norm: norm,
    np.max: _extremum(max, maximum),
    np.min: _extremum(min, minimum),
    np.modf: modf,
    np.nanmax: _nan_extremum(max, -math.inf),
    np.nanmean: nanmean,
    np.nanmin: _nan_extremum(min, math.inf),
    np.nanprod: nanprod,
    np.nanstd: nanstd,
    np.nansum: nansum,
    np.nanvar: nanvar,
    np.ndim: lambda a: a.ndim,
    np.outer: lambda a, b: outer(reshape(a, (-1,)), reshape(b, (-1,))),
    np.partition: partition,
    np.piecewise: piecewise,
    np.polyval: polyval,
    np.prod: prod_of,
    np.ptp: ptp,
    np.rad2deg: lambda x: multiply(x, 180 / math.pi),
    np.rint: round,
    np.rot90: rot90,
    np.select: select,
    np.shape: lambda a: a.shape,
    np.sinc: sinc,
    np.size: size,
    np.split: split,
    np.sum: sum_of,
    np.swapaxes: swapaxes,
    np.trace: _trace,
    np.trapezoid: trapezoid,
    np.unravel_index: unravel_index,
    np.vdot: lambda a, b: vecdot(reshape(a, (-1,)), reshape(b, (-1,))),
    np.vsplit: _split_along(0),
    np.vstack: _stacked(0, 2),
    np.where: where,
}
