"""Norms, powers and cross products of vectors and matrices.  Integers become float32 where a root is taken."""

from __future__ import annotations

import math
from typing import Any

from hybridflow.array.creation import eye
from hybridflow.array.decompositions import inv, slogdet, svdvals
from hybridflow.array.elementwise import (
    abs,
    divide,
    equal,
    isfinite,
    isnan,
    logical_not,
    multiply,
    not_equal,
    pow,
    square,
    subtract,
    where,
)
from hybridflow.array.linalg import matmul
from hybridflow.array.reductions import any, count_nonzero, max, min, root, sum
from hybridflow.array.shapes import expand_dims, moveaxis, roll
from hybridflow.compiler.ir.dtypes import is_complex
from hybridflow.compiler.ops import type_rules
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import ArrayLike, AxisLike
from hybridflow.eager.operands import broadcast_all, cast, common_dtype, expand, float_operand, reshape_to
from hybridflow.eager.public_op import operation
from hybridflow.errors import ArgumentError, ShapeError, entered


@entered
def vector_norm(x: ArrayLike, /, *, axis: AxisLike = None, keepdims: bool = False, ord: object = 2) -> Tensor:
    """The ``ord``-norm of the elements over ``axis`` (None: all, an int or several): ``sum(|x|**ord)**(1/ord)``.

    inf and -inf are the largest and smallest magnitude, 0 the number of elements that are not zero.

    Args:
        x: a tensor, array, nested list or number.
        axis: an axis, a tuple of axes, or None for all.
        keepdims: whether reduced axes are kept with size 1.
        ord: which norm.

    Returns:
        A float tensor without the reduced axes.

    Raises:
        AxisError: for an axis out of range.

    >>> hf.linalg.vector_norm(hf.asarray([3.0, 4.0])).item()
    5.0
    """
    x = float_operand(x, "vector_norm")
    if not isinstance(ord, (int, float)):
        raise ArgumentError("vector_norm", f"ord is {ord!r}; it must be a number.")
    axes = type_rules.axes("vector_norm", x.type, axis)
    if ord == 2:
        return _root_of_squares(x, axes, keepdims)
    if ord == 0:
        return cast(count_nonzero(x, axes, keepdims), abs(x).dtype)
    size = abs(x)
    if ord == math.inf:
        return _largest(size, axes, keepdims)
    if ord == -math.inf:
        return min(size, axes, keepdims)
    if ord == 1:
        return sum(size, axes, keepdims=keepdims)
    return _root(sum(pow(size, float(ord)), axes, keepdims=keepdims), float(ord))


def _largest(sizes: Tensor, axes: AxisLike, keepdims: bool = False) -> Tensor:
    """The largest of numbers that are not negative: 0 of none, whose norms are 0."""
    places = type_rules.axes("norm", sizes.type, axes)
    if 0 in [sizes.shape[k] for k in places]:
        return sum(sizes, axes, keepdims=keepdims)
    return max(sizes, axes, keepdims)


def _root(total: Tensor, ord: float) -> Tensor:
    """The root has no derivative at 0; that of a norm is taken to be 0 there."""
    if ord < 0:
        return pow(total, 1.0 / ord)
    there = not_equal(total, 0)
    return where(there, pow(where(there, total, 1), 1.0 / ord), 0)


def _root_of_squares(x: Tensor, axes: AxisLike, keepdims: bool) -> Tensor:
    lengths = abs(x) if is_complex(x.dtype) else x
    return root(sum(square(lengths), axes, keepdims=keepdims))


@entered
def matrix_norm(x: ArrayLike, /, *, keepdims: bool = False, ord: object = "fro") -> Tensor:
    """A norm of each matrix.

    ``ord`` is "fro" (root of the sum of squares), "nuc" (sum of singular values), 2 and -2 (largest and smallest
    singular value). 1 and -1 are the largest and smallest sum of magnitudes of a column, inf and -inf of a row.

    Args:
        x: a tensor of shape ``(..., m, n)``.
        keepdims: whether reduced axes are kept with size 1.
        ord: which norm.

    Returns:
        A float tensor of shape ``(...)``.

    Raises:
        ShapeError: for fewer than two axes.

    >>> hf.linalg.matrix_norm(hf.asarray([[1.0, -2.0], [3.0, 4.0]]), ord=1).item()
    6.0
    """
    x = float_operand(x, "matrix_norm")
    if x.ndim < 2:
        raise ShapeError("matrix_norm", f"{x.type} is not a matrix or a stack of matrices.")
    kept_shape = (*x.shape[:-2], 1, 1)
    if ord == "fro":
        return _root_of_squares(x, (x.ndim - 2, x.ndim - 1), keepdims)
    if ord == "nuc":
        out = sum(svdvals(x), -1)
    elif ord in (2, -2):
        out = (_largest if ord == 2 else min)(svdvals(x), -1)
    elif ord in (1, -1, math.inf, -math.inf):
        sums = sum(abs(x), -2 if ord in (1, -1) else -1)
        out = (_largest if ord > 0 else min)(sums, -1)
    else:
        raise ArgumentError("matrix_norm", f"ord is {ord!r}; it must be 'fro', 'nuc', 1, -1, 2, -2, inf or -inf.")
    return reshape_to(out, kept_shape) if keepdims else out


@entered
def norm(x: ArrayLike, /, ord: object = None, axis: AxisLike = None, keepdims: bool = False) -> Tensor:
    """A norm of vectors or matrices, chosen as ``numpy.linalg.norm`` does.

    With a pair of axes it is ``matrix_norm`` over these, with one axis ``vector_norm``.  Without axes it is the length
    of all elements, or with an ``ord`` the norm of the vector or matrix that ``x`` then must be.

    Args:
        x: a tensor, array or nested list.
        ord: which norm, as ``vector_norm`` or ``matrix_norm`` say.
        axis: an axis, a pair of axes, or None for all.
        keepdims: whether reduced axes are kept with size 1.

    Returns:
        A float tensor without the reduced axes.

    Raises:
        AxisError: for an axis out of range.
        ShapeError: for an ``ord`` without axes where ``x`` has more than two.

    >>> hf.linalg.norm(hf.asarray([[3.0, 0.0], [0.0, 4.0]])).item()
    5.0
    """
    x = float_operand(x, "norm")
    if axis is None and (ord is None or x.ndim == 1):
        return vector_norm(x, ord=2 if ord is None else ord, keepdims=keepdims)
    if axis is None and x.ndim != 2:
        raise ShapeError("norm", f"{x.type} is neither a vector nor a matrix. Say which axes: axis=(-2, -1).")
    axes = (0, 1) if axis is None else axis
    if isinstance(axes, (tuple, list)) and len(axes) == 2:
        places = type_rules.axes("norm", x.type, tuple(axes))
        order = [type_rules.axis("norm", x.type, a) for a in axes]
        result = matrix_norm(moveaxis(x, order, (-2, -1)), ord="fro" if ord is None else ord)
        return expand_dims(result, tuple(sorted(places))) if keepdims else result
    return vector_norm(x, axis=axes, ord=2 if ord is None else ord, keepdims=keepdims)


@entered
def cond(x: Any, /, p: Any = None) -> Tensor:
    """The condition number: how much the error of a right-hand side may grow in the solution.

    It is the largest singular value over the smallest, or in another norm that of ``x`` times that of its inverse. A
    singular matrix has inf, and so has one with infinite elements; of NaN it is NaN.

    Args:
        x: a tensor of shape ``(..., m, n)``; square but for the default and ``p`` 2 and -2.
        p: the norm, as ``matrix_norm`` says; None and 2 are the largest singular value.

    Returns:
        A float tensor of shape ``(...)``.

    Raises:
        ShapeError: for fewer than two axes, or is empty.

    >>> hf.linalg.cond(hf.asarray([[2.0, 0.0], [0.0, 4.0]])).item()
    2.0
    """
    x = float_operand(x, "cond")
    if x.ndim < 2 or x.shape[-1] == 0 or x.shape[-2] == 0:
        raise ShapeError("cond", f"{x.type} is not a matrix with elements, or a stack of these.")
    both = (-2, -1)
    bad = any(logical_not(isfinite(x)), both, keepdims=True)  # LAPACK may not end with such
    number = _condition(where(bad, 0, x), p)
    return where(any(isnan(x), both), math.nan, where(reshape_to(bad, number.shape), math.inf, number))


def _condition(x: Tensor, p: ArrayLike) -> Tensor:
    if p in (None, 2, -2):
        values = svdvals(x)
        largest, least = values[..., 0], values[..., -1]
        # Of the zero matrix too, for which the quotient would be NaN.
        is_singular = equal(least, 0)
        quotient = where(is_singular, math.inf, divide(largest, where(is_singular, 1, least)))
        return divide(1, quotient) if p == -2 else quotient
    is_singular = equal(slogdet(x).sign, 0)
    safe = where(reshape_to(is_singular, (*x.shape[:-2], 1, 1)), eye(x.shape[-1], dtype=x.dtype), x)
    return where(is_singular, math.inf, multiply(matrix_norm(x, ord=p), matrix_norm(inv(safe), ord=p)))


@entered
def matrix_power(x: ArrayLike, n: int, /) -> Tensor:
    """The square matrix multiplied by itself ``n`` times: the identity for 0, powers of the inverse below.

    Args:
        x: a tensor of shape ``(..., n, n)``.
        n: the exponent.

    Returns:
        A tensor of the shape of ``x``.

    Raises:
        ShapeError: if the input is not a stack of square matrices.

    >>> hf.linalg.matrix_power(hf.asarray([[1.0, 1.0], [0.0, 1.0]]), 3).tolist()
    [[1.0, 3.0], [0.0, 1.0]]
    """
    x = float_operand(x, "matrix_power")
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError("matrix_power", f"{x.type} is not a square matrix or a stack of them.")
    times = type_rules.integer("matrix_power", "n", n)
    if times < 0:
        x, times = inv(x), -times
    if times == 0:
        return expand(eye(x.shape[-1], dtype=x.dtype), x.shape)
    result, power = None, x
    while True:
        if times & 1:
            result = power if result is None else matmul(result, power)
        times >>= 1
        if not times:
            assert result is not None
            return result
        power = matmul(power, power)


@operation
def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Tensor:
    """The cross products of vectors of three elements along ``axis``; other axes broadcast.

    Raises ShapeError if the shapes do not match and AxisError for an axis out of range.

    Args:
        x1: the first operand: a tensor, array, nested list or number.
        x2: the second operand; the shapes broadcast, the dtypes are promoted.
        axis: the axis of vectors.

    Returns:
        A tensor of the common shape.

    >>> hf.linalg.cross(hf.asarray([1.0, 0.0, 0.0]), hf.asarray([0.0, 1.0, 0.0])).tolist()
    [0.0, 0.0, 1.0]
    """
    x, y = common_dtype("cross", (x1, x2))
    for t in (x, y):
        if t.shape[type_rules.axis("cross", t.type, axis)] != 3:
            raise ShapeError("cross", f"axis {axis} of {t.type} does not have extent 3.")
    x, y = broadcast_all("cross", (x, y))
    axis = type_rules.axis("cross", x.type, axis)
    forward, back = ([roll(t, -shift, axis) for t in (x, y)] for shift in (1, 2))
    return subtract(multiply(forward[0], back[1]), multiply(back[0], forward[1]))
