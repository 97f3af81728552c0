"""Polynomials as their coefficients, of which that of the highest power comes first."""

from __future__ import annotations

import numpy as np

from hybridflow.array.creation import eye, full_like, zeros
from hybridflow.array.decompositions import eigvals, lstsq
from hybridflow.array.elementwise import add, divide, equal, multiply, negative, sqrt, square, where
from hybridflow.array.grids import vander
from hybridflow.array.reductions import sum
from hybridflow.array.shapes import concat, known_extent
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ops import type_rules
from hybridflow.core.context import now
from hybridflow.core.promotion import default_float
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import ArrayLike
from hybridflow.eager.operands import as_tensor, cast, common_dtype, float_operand, reshape_to
from hybridflow.eager.public_op import operation
from hybridflow.errors import ArgumentError, ShapeError


@operation
def polyval(p: ArrayLike, x: ArrayLike) -> Tensor:
    """Value of a polynomial at ``x``, by Horner's rule.

    Args:
        p: the coefficients, of one axis, that of the highest power first.
        x: a tensor, array, nested list or number.

    Returns:
        A tensor of the shape of ``x`` in the common dtype.

    Raises:
        ShapeError: where the coefficients have another number of axes.

    >>> hf.polyval([1.0, 0.0, -2.0], [0.0, 1.0, 3.0])
    <Tensor f32[3] cpu> [-2. -1.  7.]
    """
    p, x = common_dtype("polyval", (p, x))
    if p.ndim != 1:
        raise ShapeError("polyval", f"the coefficients are {p.type}. Expected one axis.")
    result = full_like(x, 0)
    for k in range(known_extent(p, 0, "polyval")):
        result = add(multiply(result, x), p[k])
    return result


@operation
def roots(p: ArrayLike) -> Tensor:
    """The roots of a polynomial, in no order: the eigenvalues of its companion matrix.

    Coefficients of 0 in front are left out; while tracing, when they are not known, the first must not be 0.  Gradients
    flow where no root comes twice.

    Args:
        p: the coefficients, of one axis, that of the highest power first.

    Returns:
        A complex tensor of one axis, with as many elements as the degree.

    Raises:
        ShapeError: where the coefficients have another number of axes.
        LinAlgError: where the first is 0 in a compiled function, or one is not finite.

    >>> hf.real(hf.sort(hf.real(hf.roots([1.0, -3.0, 2.0]))))
    <Tensor f32[2] cpu> [1. 2.]
    """
    p = float_operand(p, "roots")
    if p.ndim != 1:
        raise ShapeError("roots", f"the coefficients are {p.type}. Expected one axis.")
    if now().trace is None:
        known = np.flatnonzero(p.numpy())
        p = p[known[0] :] if known.size else p[:0]
    degree = known_extent(p, 0, "roots") - 1
    if degree < 1:
        return zeros((0,), dtype=dtypes.complex_dtype(p.dtype))
    below = eye(degree, k=-1, dtype=p.dtype)[1:]
    first = reshape_to(divide(negative(p[1:]), p[0]), (1, degree))
    return eigvals(concat([first, below], axis=0))


@operation
def polyfit(x: ArrayLike, y: ArrayLike, deg: int, rcond: float | None = None, w: object = None) -> Tensor:
    """Least-squares fit of a polynomial to points.

    Where several fit as well, the coefficients are the smallest ones.

    Args:
        x: the places of the points, of one axis.
        y: their values: a vector, or a matrix with a column for each fit.
        deg: the degree of the polynomial.
        rcond: singular values below this part of the largest one count as 0; unless given, the number of points times
            the distance from 1 to the next float.
        w: what the distance of each point is multiplied by.

    Returns:
        ``deg + 1`` coefficients, that of the highest power first; for a matrix a column for each of its columns.

    Raises:
        ShapeError: where the points do not fit each other.
        ArgumentError: for a negative degree.

    >>> hf.polyfit([0.0, 1.0, 2.0, 3.0], [1.0, 3.0, 7.0, 13.0], 2).round(3) + 0.0
    <Tensor f32[3] cpu> [1. 1. 1.]
    """
    operands = common_dtype("polyfit", (x, y))
    type_rules.check_dtype("polyfit", operands[0].type, frozenset(dtypes.REAL))
    x, y = (t if dtypes.is_float(t.dtype) else cast(t, default_float) for t in operands)
    degree = type_rules.integer("polyfit", "deg", deg)
    if degree < 0:
        raise ArgumentError("polyfit", f"deg is {degree}. Expected 0 or more.")
    if x.ndim != 1 or y.ndim not in (1, 2) or y.shape[0] != x.shape[0] or x.shape[0] == 0:
        raise ShapeError("polyfit", f"x is {x.type}, and y is {y.type}. Expected a vector, and as many values or rows.")
    powers, values = vander(x, degree + 1), y if y.ndim == 2 else reshape_to(y, (y.shape[0], 1))
    if w is not None:
        weights = cast(as_tensor(w, "polyfit"), x.dtype)
        if weights.ndim != 1 or weights.shape[0] != x.shape[0]:
            raise ShapeError("polyfit", f"the weights are {weights.type}. Expected one for each point of {x.type}.")
        column = reshape_to(weights, (weights.shape[0], 1))
        powers, values = multiply(powers, column), multiply(values, column)
    if rcond is None:
        rcond = known_extent(x, 0, "polyfit") * float(np.finfo(dtypes.compute_dtype(x.dtype)).eps)
    length = sqrt(sum(square(powers), axis=0))
    length = where(equal(length, 0), 1.0, length)
    coefficients = lstsq(divide(powers, length), values, rtol=rcond).solution
    coefficients = divide(coefficients, reshape_to(length, (degree + 1, 1)))
    return coefficients if y.ndim == 2 else reshape_to(coefficients, (degree + 1,))
