"""Matrices that are made of smaller ones or of vectors: block diagonals and Toeplitz matrices."""

from __future__ import annotations

import builtins
import functools

from hybridflow.array.creation import arange
from hybridflow.array.elementwise import conj
from hybridflow.array.indexing import take
from hybridflow.array.shapes import concat, flip, pad
from hybridflow.compiler.ir.types import broadcast_shapes
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import ArrayLike
from hybridflow.eager.operands import as_tensor, common_dtype, expand, reshape_to
from hybridflow.errors import ArgumentError, ShapeError, entered


def _with_axes(x: Tensor, axes: int) -> Tensor:
    return reshape_to(x, (*[1] * builtins.max(axes - x.ndim, 0), *x.shape))


@entered
def block_diag(*arrays: object) -> Tensor:
    """The matrix with the given ones along its diagonal, and zeros elsewhere.

    Leading axes broadcast.  A vector counts as one row, a number as a matrix of one element.

    Args:
        *arrays: tensors of shapes ``(..., m, n)``; dtypes are promoted.

    Returns:
        A tensor of shape ``(..., sum of m, sum of n)``.

    Raises:
        ShapeError: where leading axes do not broadcast.

    >>> hf.linalg.block_diag([[1, 2]], [[3], [4]])
    <Tensor i64[3,3] cpu>
    [[1 2 0]
     [0 0 3]
     [0 0 4]]
    """
    if not arrays:
        raise ArgumentError("block_diag", "no matrices are given. Expected one or more.")
    blocks = [_with_axes(x, 2) for x in common_dtype("block_diag", arrays)]
    try:
        front = functools.reduce(broadcast_shapes, (x.shape[:-2] for x in blocks))
    except ValueError:
        types = ", ".join(str(x.type) for x in blocks)
        raise ShapeError("block_diag", f"leading axes do not broadcast: {types}.") from None
    before, total = [0], builtins.sum(x.shape[-1] for x in blocks)
    for x in blocks:
        before.append(before[-1] + x.shape[-1])
    unpadded = [(0, 0)] * (len(front) + 1)
    lines = [
        pad(expand(x, (*front, *x.shape[-2:])), [*unpadded, (start, total - stop)])
        for x, start, stop in zip(blocks, before, before[1:])
    ]
    return concat(lines, axis=-2)


@entered
def toeplitz(c: ArrayLike, r: ArrayLike | None = None) -> Tensor:
    """The Toeplitz matrix, whose diagonals are constant, with the first column ``c`` and the first row ``r``.

    Leading axes broadcast.  The corner is ``c[..., 0]``; ``r[..., 0]`` is not looked at.

    Args:
        c: a tensor of shape ``(..., m)``.
        r: a tensor of shape ``(..., n)``; the conjugate of ``c`` by default, for a Hermitian matrix.

    Returns:
        A tensor of shape ``(..., m, n)``.

    Raises:
        ShapeError: for scalars, and where leading axes do not broadcast.

    >>> hf.linalg.toeplitz([1, 2, 3], [1, 10])
    <Tensor i64[3,2] cpu>
    [[ 1 10]
     [ 2  1]
     [ 3  2]]
    """
    column, row = common_dtype("toeplitz", (c, conj(c) if r is None else r))
    for x in (column, row):
        if not x.ndim:
            raise ShapeError("toeplitz", f"{x.type} is a scalar. Expected a vector.")
    try:
        front = broadcast_shapes(column.shape[:-1], row.shape[:-1])
    except ValueError:
        raise ShapeError("toeplitz", f"leading axes do not broadcast: {column.type}, {row.type}.") from None
    column, row = (expand(x, (*front, x.shape[-1])) for x in (column, row))
    m, n = column.shape[-1], row.shape[-1]
    if n == 0 or m == 0:
        return reshape_to(column[..., :0], (*front, m, n))
    values = concat([flip(column, axis=-1), row[..., 1:]], axis=-1)
    place = as_tensor(m - 1, "toeplitz") - reshape_to(arange(m), (m, 1)) + arange(n)
    return take(values, place, axis=-1)
