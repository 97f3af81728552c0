"""Functions of square matrices: exponential, square root and logarithm, which are not those of the elements."""

from __future__ import annotations

from hybridflow.array.decompositions import computed, matrix
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import ArrayLike
from hybridflow.errors import entered


@entered
def expm(x: ArrayLike, /) -> Tensor:
    """The matrix exponential ``I + x + x @ x / 2 + ...``, by scaling and squaring.

    Args:
        x: a tensor of shape ``(..., n, n)``.

    Returns:
        A float tensor of the shape of ``x``.

    Raises:
        ShapeError: if the input is not a stack of square matrices.

    >>> hf.linalg.expm(hf.asarray([[0.0, 1.0], [0.0, 0.0]])).tolist()
    [[1.0, 1.0], [0.0, 1.0]]
    """
    return computed("expm", matrix(x, "expm"))[0]


@entered
def sqrtm(x: ArrayLike, /) -> Tensor:
    """The principal square root: the y with ``y @ y == x`` whose eigenvalues have no negative real part.

    A symmetric matrix may have eigenvalues that are zero.  Any other needs a root that is real: none of its eigenvalues
    is zero or negative.  Matrices that are not finite give NaN.

    Args:
        x: a tensor of shape ``(..., n, n)``.

    Returns:
        A float tensor of the shape of ``x``.

    Raises:
        LinAlgError: where there is no real principal square root.
        ShapeError: if the input is not a stack of square matrices.

    >>> hf.linalg.sqrtm(hf.asarray([[4.0, 0.0], [0.0, 9.0]])).tolist()
    [[2.0, 0.0], [0.0, 3.0]]
    """
    return computed("sqrtm", matrix(x, "sqrtm"))[0]


@entered
def logm(x: ArrayLike, /) -> Tensor:
    """The principal matrix logarithm: the y with ``expm(y) == x`` whose eigenvalues have imaginary parts within pi.

    No eigenvalue of ``x`` may be zero or negative.  Matrices that are not finite give NaN.

    Args:
        x: a tensor of shape ``(..., n, n)``.

    Returns:
        A float tensor of the shape of ``x``.

    Raises:
        LinAlgError: where there is no real logarithm.
        ShapeError: if the input is not a stack of square matrices.

    >>> hf.linalg.logm(hf.asarray([[1.0, 2.0], [0.0, 1.0]])).tolist()
    [[0.0, 2.0], [0.0, 0.0]]
    """
    return computed("logm", matrix(x, "logm"))[0]
