"""Matrix decompositions, inverses, determinants and linear equations: ``hf.linalg``.

Matrices are the last two axes, with stacks of them in front.  Everything is computed by NumPy's LAPACK, in compiled
functions too, which so have the same bits; on a GPU it raises.  But ``solve``, ``inv``, ``det`` and ``cholesky`` of
matrices with up to 16 rows (and right-hand sides) are native code.  That has many matrices side by side in a vector and
the same bits on every machine; what LAPACK says of a matrix that is singular, not positive definite or not finite holds
there as well.  Integers become float32; float16 and bfloat16 are computed in float32 and rounded.  Gradients flow
through all of it but ``matrix_rank`` and signs.

Errors: ShapeError for an input that is not a matrix, or not square where it must be; ``errors.LinAlgError``, which is
NumPy's too, where a matrix has no inverse or no such decomposition.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, overload

from hybridflow.array.creation import arange, iota, tril, triu
from hybridflow.array.elementwise import (
    abs,
    complex,
    conj,
    equal,
    greater,
    imag,
    multiply,
    real,
    square,
    subtract,
    where,
)
from hybridflow.array.indexing import take_along_axis
from hybridflow.array.linalg import matmul
from hybridflow.array.reductions import count_nonzero, max, sum
from hybridflow.array.shapes import matrix_transpose
from hybridflow.array.sorting import argsort
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ir.types import Extent, broadcast_shapes
from hybridflow.compiler.ops import TABLE
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import ArrayLike, DTypeLike
from hybridflow.eager.dispatch import apply
from hybridflow.eager.operands import as_tensor, cast, common_dtype, expand, float_operand, reshape_to, scalar
from hybridflow.errors import ArgumentError, ShapeError, entered


class EigResult(NamedTuple):
    """What ``eig`` returns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class EighResult(NamedTuple):
    """What ``eigh`` returns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class LstsqResult(NamedTuple):
    """What ``lstsq`` returns."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


class LUResult(NamedTuple):
    """What ``lu`` returns."""

    P: Tensor
    L: Tensor
    U: Tensor


class LUFactorResult(NamedTuple):
    """What ``lu_factor`` returns."""

    LU: Tensor
    permutation: Tensor


class QRResult(NamedTuple):
    """What ``qr`` returns."""

    Q: Tensor
    R: Tensor


class SlogdetResult(NamedTuple):
    """What ``slogdet`` returns."""

    sign: Tensor
    logabsdet: Tensor


class SVDResult(NamedTuple):
    """What ``svd`` returns."""

    U: Tensor
    S: Tensor
    Vh: Tensor


def matrix(x: ArrayLike, stage: str) -> Tensor:
    """A matrix, or a stack of matrices, of a float dtype."""
    x = float_operand(x, stage)
    if x.ndim < 2:
        raise ShapeError(stage, f"{x.type} is not a matrix or a stack of matrices.")
    return x


def computed(op: str, *operands: Tensor, **attrs: object) -> tuple[Tensor, ...]:
    """The results of a host op, in the dtype of its operands."""
    dtype = operands[0].dtype
    wide = dtypes.compute_dtype(dtype)
    result = apply(TABLE[op], *(cast(x, wide) for x in operands), **attrs)
    return tuple([cast(out, dtype) if out.dtype == wide else out for out in result])


def _rank(x: Tensor) -> Extent:
    """The smaller extent of the matrices."""
    rows, columns = x.shape[-2:]
    return rows if rows <= columns else columns


@entered
def cholesky(x: ArrayLike, /, *, upper: bool = False) -> Tensor:
    """The lower triangular L with ``L @ L.mH == x``, or the upper triangular U with ``U.mH @ U == x``.

    ``x`` is symmetric (complex: Hermitian) and positive definite; only one triangle of it is read.  The gradient is
    that of such a matrix.  Raises LinAlgError where it is not positive definite.

    Args:
        x: symmetric, positive definite matrices, ``(..., n, n)``.
        upper: whether the upper triangle is read and returned.

    Returns:
        A float tensor of the shape of ``x``.

    >>> hf.linalg.cholesky(hf.asarray([[4.0, 2.0], [2.0, 5.0]])).tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    """
    x = matrix(x, "cholesky")
    (lower,) = computed("cholesky", _adjoint(x) if upper else x)
    return _adjoint(lower) if upper else lower


def _adjoint(x: Tensor) -> Tensor:
    """The transpose, whose complex numbers are conjugated."""
    return conj(matrix_transpose(x)) if dtypes.is_complex(x.dtype) else matrix_transpose(x)


def _right_hand_side(stage: str, x1: ArrayLike, x2: ArrayLike) -> tuple[Tensor, Tensor, bool]:
    """The matrices and right-hand sides of one dtype, in stacks of one shape; and whether those were one vector."""
    a, y = common_dtype(stage, [float_operand(v, stage) for v in (x1, x2)])
    a = matrix(a, stage)
    if not y.ndim:
        raise ShapeError(stage, f"the right-hand side {y.type} is a scalar.")
    vector = y.ndim == 1
    if vector:
        y = reshape_to(y, (*y.shape, 1))
    try:
        front = broadcast_shapes(a.shape[:-2], y.shape[:-2])
    except ValueError:
        raise ShapeError(stage, f"leading axes do not broadcast: {a.type}, {y.type}.") from None
    return expand(a, (*front, *a.shape[-2:])), expand(y, (*front, *y.shape[-2:])), vector


def _in_dtype_of(x: Tensor, vector: bool) -> Tensor:
    return reshape_to(x, x.shape[:-1]) if vector else x


@entered
def solve(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """The x with ``x1 @ x == x2``; ``x2`` is one vector, or matrices whose columns are right-hand sides.

    Leading axes broadcast.  Raises LinAlgError for a singular matrix.

    Args:
        x1: a tensor of shape ``(..., n, n)``.
        x2: a vector ``(n,)``, or matrices ``(..., n, k)``.

    Returns:
        A float tensor of the shape of ``x2``, with the leading axes of both.

    Raises:
        ShapeError: if the shapes do not match.

    >>> hf.linalg.solve(hf.asarray([[2.0, 0.0], [0.0, 4.0]]), hf.asarray([2.0, 2.0])).tolist()
    [1.0, 0.5]
    """
    a, y, vector = _right_hand_side("solve", x1, x2)
    return _in_dtype_of(computed("solve", a, y)[0], vector)


@entered
def triangular_solve(x1: ArrayLike, x2: ArrayLike, /, *, lower: bool = True, transpose: bool = False) -> Tensor:
    """Solve a triangular system: the x with ``x1 @ x == x2``, or ``x1.mT @ x == x2`` to ``transpose``.

    Only the ``lower`` or the upper triangle of ``x1`` is read. As ``solve`` otherwise.

    Args:
        x1: a tensor of shape ``(..., n, n)``.
        x2: a vector ``(n,)``, or matrices ``(..., n, k)``.
        lower: which triangle is read.
        transpose: whether ``x1`` is transposed.

    Returns:
        A float tensor of the shape of ``x2``, with the leading axes of both.

    Raises:
        ShapeError: if the shapes do not match.

    >>> hf.linalg.triangular_solve(hf.asarray([[2.0, 9.0], [1.0, 1.0]]), hf.asarray([2.0, 3.0])).tolist()
    [1.0, 2.0]
    """
    a, y, vector = _right_hand_side("triangular_solve", x1, x2)
    attrs = {"lower": bool(lower), "transposed": bool(transpose)}
    return _in_dtype_of(computed("triangular_solve", a, y, **attrs)[0], vector)


@entered
def cholesky_solve(x1: ArrayLike, x2: ArrayLike, /, *, upper: bool = False) -> Tensor:
    """Solve with a Cholesky factor: the x with ``a @ x == x2``, where ``x1`` is ``cholesky(a, upper=upper)``.

    Args:
        x1: Cholesky factors, ``(..., n, n)``.
        x2: a vector ``(n,)``, or matrices ``(..., n, k)``.
        upper: whether ``x1`` is an upper triangle.

    Returns:
        A float tensor of the shape of ``x2``, with the leading axes of both.

    Raises:
        LinAlgError: where the diagonal has a zero.
        ShapeError: if the shapes do not match.

    >>> hf.linalg.cholesky_solve(hf.asarray([[2.0, 0.0], [1.0, 2.0]]), hf.asarray([4.0, 2.0])).tolist()
    [1.0, 0.0]
    """
    a, y, vector = _right_hand_side("cholesky_solve", x1, x2)
    if dtypes.is_complex(a.dtype):  # the adjoint's triangle is read as it stands
        other = _adjoint(a)
        first, second = (other, a) if upper else (a, other)
        return _in_dtype_of(triangular_solve(second, triangular_solve(first, y), lower=False), vector)
    half = triangular_solve(a, y, lower=not upper, transpose=upper)
    return _in_dtype_of(triangular_solve(a, half, lower=not upper, transpose=not upper), vector)


@entered
def lu_factor(x: ArrayLike, /) -> LUFactorResult:
    """LU decomposition with partial pivoting, in the form that ``lu_solve`` takes.

    A singular matrix is no error: it has zeros on the diagonal of its upper triangle.

    Args:
        x: a tensor of shape ``(..., m, n)``.

    Returns:
        A named tuple. ``LU`` ``(..., m, n)`` has the upper triangle, and below it the lower one without its ones.
        ``permutation`` ``(..., m)`` says, as int64, which row of ``x`` each row of their product is.

    Raises:
        ShapeError: for fewer than two axes.

    >>> hf.linalg.lu_factor(hf.asarray([[1.0, 2.0], [2.0, 2.0]])).LU.tolist()
    [[2.0, 2.0], [0.5, 1.0]]
    """
    x = matrix(x, "lu_factor")
    return LUFactorResult(*computed("lu", x, rank=_rank(x)))


@entered
def lu_solve(x1: tuple[ArrayLike, ArrayLike], x2: ArrayLike, /) -> Tensor:
    """Solve with what ``lu_factor`` returned: the x with ``a @ x == x2``, where ``x1`` is ``lu_factor(a)``.

    Args:
        x1: the pair ``(LU, permutation)`` of square matrices.
        x2: a vector ``(n,)``, or matrices ``(..., n, k)``.

    Returns:
        A float tensor of the shape of ``x2``, with the leading axes of both.

    Raises:
        LinAlgError: for a singular matrix.
        ShapeError: if the shapes do not match.

    >>> factors = hf.linalg.lu_factor(hf.asarray([[1.0, 2.0], [2.0, 2.0]]))
    >>> hf.linalg.lu_solve(factors, hf.asarray([3.0, 4.0])).tolist()
    [1.0, 1.0]
    """
    both, order = x1
    a, y, vector = _right_hand_side("lu_solve", both, x2)
    order = as_tensor(order, "lu_solve")
    if order.shape[-1:] != a.shape[-1:]:
        raise ShapeError(
            "lu_solve", f"the permutation is {order.type}. Expected one position for each row of {a.type}."
        )
    order = expand(order, (*a.shape[:-2], a.shape[-1]))
    moved = take_along_axis(y, expand(reshape_to(order, (*order.shape, 1)), y.shape), axis=-2)
    half = triangular_solve(_unit_lower(a), moved)
    return _in_dtype_of(triangular_solve(a, half, lower=False), vector)


def _unit_lower(both: Tensor) -> Tensor:
    """The lower triangle of ``lu_factor``, of as many columns as there are pivots."""
    inner = _rank(both)
    lower = tril(both[..., :inner], -1)
    rows, columns = (iota(lower.shape, axis, dtypes.int64) for axis in (lower.ndim - 2, lower.ndim - 1))
    return where(equal(rows, columns), 1, lower)


@overload
def lu(x: ArrayLike, /, *, permute_l: Literal[False] = False) -> LUResult: ...
@overload
def lu(x: ArrayLike, /, *, permute_l: Literal[True]) -> tuple[Tensor, Tensor]: ...
@overload
def lu(x: ArrayLike, /, *, permute_l: bool) -> LUResult | tuple[Tensor, Tensor]: ...
@entered
def lu(x: ArrayLike, /, *, permute_l: bool = False) -> LUResult | tuple[Tensor, Tensor]:
    """LU decomposition with partial pivoting: ``P @ L @ U == x``.

    Gradients flow to ``L`` and ``U``, for matrices whose first ``min(m, n)`` pivots are not zero.

    Args:
        x: a tensor of shape ``(..., m, n)``.
        permute_l: whether ``P @ L`` and ``U`` are returned, as a pair.

    Returns:
        A named tuple: a permutation ``P`` ``(..., m, m)``, ``L`` ``(..., m, k)`` with ones on its diagonal and zeros
        above, ``U`` ``(..., k, n)`` with zeros below; k is the smaller extent of ``x``. With ``permute_l`` it is the
        pair of ``P @ L`` and ``U``.

    Raises:
        ShapeError: for fewer than two axes.

    >>> hf.linalg.lu(hf.asarray([[1.0, 2.0], [2.0, 2.0]])).L.tolist()
    [[1.0, 0.0], [0.5, 1.0]]
    """
    both, order = lu_factor(x)
    rows = both.shape[-2]
    places = reshape_to(arange(rows), (rows, 1))
    lower, upper = _unit_lower(both), triu(both[..., : _rank(both), :])
    if permute_l:
        return take_along_axis(
            lower, expand(reshape_to(argsort(order), (*order.shape, 1)), lower.shape), axis=-2
        ), upper
    one = equal(places, reshape_to(order, (*order.shape[:-1], 1, rows)))
    return LUResult(cast(one, both.dtype), lower, upper)


@entered
def lstsq(x1: ArrayLike, x2: ArrayLike, /, *, rtol: object = None) -> LstsqResult:
    """Least squares: the x for which ``x1 @ x`` comes nearest to ``x2``, the shortest one where there are several.

    Singular values up to ``rtol`` times the largest count as zero (see ``pinv``).  Gradients are those of matrices
    whose rank does not change.

    Args:
        x1: a tensor of shape ``(..., m, n)``.
        x2: a vector ``(m,)``, or matrices ``(..., m, k)``.
        rtol: a number, or one for each matrix.

    Returns:
        A named tuple: ``solution`` ``(..., n, k)``, ``residuals`` ``(..., k)``, the sums of squares of
        ``x1 @ solution - x2``, ``rank`` ``(...)``, ``singular_values`` ``(..., min(m, n))``.  For a vector the last
        axis of the first two goes.

    Raises:
        ShapeError: if the shapes do not match.

    >>> hf.linalg.lstsq(hf.asarray([[2.0], [0.0]]), hf.asarray([1.0, 3.0])).residuals.item()
    9.0
    """
    a, y, vector = _right_hand_side("lstsq", x1, x2)
    if a.shape[-2] != y.shape[-2]:
        raise ShapeError("lstsq", f"{y.type} has {y.shape[-2]} rows. Expected {a.shape[-2]}, as {a.type} has.")
    limit, shape = _tolerance(a, rtol, "lstsq")
    result, values = computed("lstsq", a, y, cast(reshape_to(limit, shape), a.dtype), rank=_rank(a))
    beside = subtract(matmul(a, result), y)
    residuals = sum(square(abs(beside) if dtypes.is_complex(beside.dtype) else beside), axis=-2)
    rank = _count_above(values, limit)
    return LstsqResult(_in_dtype_of(result, vector), _in_dtype_of(residuals, vector), rank, values)


@entered
def inv(x: ArrayLike, /) -> Tensor:
    """The inverse.  Raises LinAlgError for a singular matrix; ``solve`` is quicker and more exact.

    Args:
        x: a tensor of shape ``(..., n, n)``.

    Returns:
        A float tensor of the shape of ``x``.

    Raises:
        ShapeError: where it is no stack of square matrices.

    >>> hf.linalg.inv(hf.asarray([[2.0, 0.0], [0.0, 4.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    return computed("inv", matrix(x, "inv"))[0]


@entered
def pinv(x: ArrayLike, /, *, rtol: object = None) -> Tensor:
    """The Moore-Penrose pseudo-inverse, where singular values up to ``rtol`` times the largest count as zero.

    ``rtol`` is a number, or one for each matrix; by default the larger extent times the dtype's epsilon.

    Args:
        x: a tensor of shape ``(..., m, n)``.
        rtol: a number, or one for each matrix.

    Returns:
        A float tensor of shape ``(..., n, m)``.

    Raises:
        ShapeError: for fewer than two axes.

    >>> hf.linalg.pinv(hf.asarray([[2.0], [0.0]])).tolist()
    [[0.5, 0.0]]
    """
    x = matrix(x, "pinv")
    return computed("pinv", x, cast(reshape_to(*_tolerance(x, rtol, "pinv")), x.dtype))[0]


def _tolerance(x: Tensor, rtol: object, stage: str) -> tuple[Tensor, Any]:
    """``rtol`` for each matrix in a stack, and the shape that it has as a stack of matrices."""
    front = x.shape[:-2]
    if rtol is None:
        rows, columns = x.shape[-2:]
        wide = dtypes.part_dtype(dtypes.compute_dtype(x.dtype))
        size = cast(scalar(rows if rows >= columns else columns, dtypes.int64, stage), dtypes.part_dtype(x.dtype))
        limit: Tensor = multiply(size, _epsilon(wide))
    else:
        limit = cast(as_tensor(rtol, stage), dtypes.part_dtype(x.dtype))
    try:
        fits = broadcast_shapes(limit.shape, front) == front
    except ValueError:
        fits = False
    if not fits:
        raise ShapeError(stage, f"rtol is {limit.type}; it must be one number for each matrix of {x.type}.")
    return expand(limit, front), (*front, 1, 1)


def _epsilon(dtype: DTypeLike) -> float:
    return 2.0**-23 if dtype == dtypes.float32 else 2.0**-52


@entered
def matrix_rank(x: ArrayLike, /, *, rtol: object = None) -> Tensor:
    """How many singular values are larger than ``rtol`` (see ``pinv``) times the largest, as int64.

    Args:
        x: a tensor of shape ``(..., m, n)``.
        rtol: a number, or one for each matrix.

    Returns:
        An int64 tensor of shape ``(...)``.

    Raises:
        ShapeError: for fewer than two axes.

    >>> hf.linalg.matrix_rank(hf.asarray([[1.0, 1.0], [1.0, 1.0]])).item()
    1
    """
    x = matrix(x, "matrix_rank")
    values = svdvals(x)
    return _count_above(values, _tolerance(x, rtol, "matrix_rank")[0])


def _count_above(values: Tensor, limit: Tensor) -> Tensor:
    """How many singular values are larger than ``limit`` times the largest."""
    if values.shape[-1] == 0:
        return count_nonzero(values, axis=-1)
    largest = max(values, axis=-1, keepdims=True)
    return count_nonzero(greater(values, multiply(largest, reshape_to(limit, largest.shape))), axis=-1)


@entered
def det(x: ArrayLike, /) -> Tensor:
    """The determinant; 0 for a singular matrix.

    Args:
        x: a tensor of shape ``(..., n, n)``.

    Returns:
        A float tensor of shape ``(...)``.

    Raises:
        ShapeError: if the input is not a stack of square matrices.

    >>> hf.linalg.det(hf.asarray([[2.0, 0.0], [0.0, 4.0]])).item()
    8.0
    """
    return computed("det", matrix(x, "det"))[0]


@entered
def slogdet(x: ArrayLike, /) -> SlogdetResult:
    """The sign of the determinant (0 for a singular matrix), and the natural logarithm of its magnitude, which does not
    overflow.

    Args:
        x: a tensor of shape ``(..., n, n)``.

    Returns:
        A named tuple: ``sign`` and ``logabsdet``, of shape ``(...)``.

    Raises:
        ShapeError: if the input is not a stack of square matrices.

    >>> hf.linalg.slogdet(hf.asarray([[-1.0]])).sign.item()
    -1.0
    """
    return SlogdetResult(*computed("slogdet", matrix(x, "slogdet")))


@overload
def qr(x: ArrayLike, /, *, mode: Literal["reduced", "complete"] = "reduced") -> QRResult: ...
@overload
def qr(x: ArrayLike, /, *, mode: Literal["r"]) -> Tensor: ...
@overload
def qr(x: ArrayLike, /, *, mode: str) -> Tensor | QRResult: ...
@entered
def qr(x: ArrayLike, /, *, mode: str = "reduced") -> Tensor | QRResult:
    """QR decomposition: ``Q`` with orthonormal columns and an upper triangular ``R`` with ``Q @ R == x``.

    With mode "reduced", ``Q`` has as many columns as the smaller extent of ``x``; with "complete" it is square.

    Args:
        x: a tensor of shape ``(..., m, n)``.
        mode: ``"reduced"``, ``"complete"`` or ``"r"``, for the reduced ``R`` alone.

    Returns:
        A named tuple: ``Q`` ``(..., m, k)``, ``R`` ``(..., k, n)``; with mode ``"r"`` the tensor ``R``.

    Raises:
        ArgumentError: for another mode.
        ShapeError: for fewer than two axes.

    >>> q, r = hf.linalg.qr([[2.0, 0.0], [0.0, 3.0]])
    >>> hf.abs(q @ r)
    <Tensor f32[2,2] cpu>
    [[2. 0.]
     [0. 3.]]
    """
    x = matrix(x, "qr")
    if mode not in ("reduced", "complete", "r"):
        raise ArgumentError("qr", f"mode is {mode!r}; it must be 'reduced', 'complete' or 'r'.")
    result = QRResult(*computed("qr", x, complete=mode == "complete", rank=_rank(x)))
    return result.R if mode == "r" else result


@entered
def svd(x: ArrayLike, /, *, full_matrices: bool = True) -> SVDResult:
    """Singular value decomposition (SVD): ``U``, ``S`` and ``Vh`` with ``(U * S[..., None, :]) @ Vh == x``, singular
    values in descending order.

    Unless ``full_matrices``, ``U`` has as many columns, and ``Vh`` as many rows, as there are singular values.

    Gradients need ``full_matrices=False``, but for square matrices.  Vectors of singular values that are equal, but for
    rounding, are any basis of their space; how they turn within it is left out of derivatives, as in TensorFlow.

    Args:
        x: a tensor of shape ``(..., m, n)``.
        full_matrices: whether ``U`` and ``Vh`` are square.

    Returns:
        A named tuple: ``U`` ``(..., m, k)``, ``S`` ``(..., min(m, n))``, ``Vh`` ``(..., k, n)``.

    Raises:
        ShapeError: for fewer than two axes.

    >>> hf.linalg.svd([[2.0, 0.0], [0.0, 3.0]]).S
    <Tensor f32[2] cpu> [3. 2.]
    """
    x = matrix(x, "svd")
    return SVDResult(*computed("svd", x, complete=bool(full_matrices), rank=_rank(x)))


@entered
def svdvals(x: ArrayLike, /) -> Tensor:
    """The singular values in descending order.

    Args:
        x: a tensor of shape ``(..., m, n)``.

    Returns:
        A float tensor of shape ``(..., min(m, n))``.

    Raises:
        ShapeError: for fewer than two axes.

    >>> hf.linalg.svdvals(hf.asarray([[0.0, 3.0], [4.0, 0.0]])).tolist()
    [4.0, 3.0]
    """
    x = matrix(x, "svdvals")
    return computed("svdvals", x, rank=_rank(x))[0]


@entered
def eigh(x: ArrayLike, /) -> EighResult:
    """The eigenvalues of a symmetric (complex: Hermitian) matrix, whose lower triangle is read, in ascending order, and
    the eigenvectors as columns.  The gradient is that of such a matrix.

    Vectors of eigenvalues that are equal, but for rounding, are any basis of their space; how they turn within it is
    left out of derivatives, as in TensorFlow.

    Args:
        x: a tensor of shape ``(..., n, n)``.

    Returns:
        A named tuple: ``eigenvalues`` ``(..., n)``, ``eigenvectors`` ``(..., n, n)``.

    Raises:
        ShapeError: if the input is not a stack of square matrices.

    >>> hf.linalg.eigh([[2.0, 0.0], [0.0, 3.0]]).eigenvalues
    <Tensor f32[2] cpu> [2. 3.]
    """
    return EighResult(*computed("eigh", matrix(x, "eigh")))


@entered
def eigvalsh(x: ArrayLike, /) -> Tensor:
    """The eigenvalues of a symmetric matrix, whose lower triangle is read, in ascending order.

    Args:
        x: a tensor of shape ``(..., n, n)``.

    Returns:
        A float tensor of shape ``(..., n)``.

    Raises:
        ShapeError: if the input is not a stack of square matrices.

    >>> hf.linalg.eigvalsh(hf.asarray([[3.0, 0.0], [0.0, 1.0]])).tolist()
    [1.0, 3.0]
    """
    return computed("eigvalsh", matrix(x, "eigvalsh"))[0]


def _parts(x: ArrayLike, stage: str) -> list[Tensor]:
    """A real matrix, or the two parts of a complex one."""
    x = matrix(x, stage)
    return [real(x), imag(x)] if dtypes.is_complex(x.dtype) else [x]


@entered
def eig(x: ArrayLike, /) -> EigResult:
    """The eigenvalues of a square matrix, in no order, and the eigenvectors as columns of length 1: complex numbers.

    Gradients of eigenvectors are those of functions that do not depend on the phase of each.  Where eigenvalues are
    equal, but for rounding, how vectors turn within their space is left out; a matrix without a full set of
    eigenvectors has no gradient, which is a LinAlgError.

    Args:
        x: a tensor of shape ``(..., n, n)``.

    Returns:
        A named tuple: ``eigenvalues`` ``(..., n)``, ``eigenvectors`` ``(..., n, n)``, complex64 or complex128.

    Raises:
        LinAlgError: where the matrix is not finite.
        ShapeError: if the input is not a stack of square matrices.

    >>> hf.linalg.eig(hf.asarray([[0.0, -2.0], [2.0, 0.0]])).eigenvalues.tolist()
    [2j, -2j]
    """
    wr, wi, vr, vi = computed("eig", *_parts(x, "eig"))
    return EigResult(complex(wr, wi), complex(vr, vi))


@entered
def eigvals(x: ArrayLike, /) -> Tensor:
    """The eigenvalues of a square matrix, in no order: complex numbers.

    Args:
        x: a tensor of shape ``(..., n, n)``.

    Returns:
        A complex tensor of shape ``(..., n)``.

    Raises:
        LinAlgError: where the matrix is not finite.
        ShapeError: if the input is not a stack of square matrices.

    >>> hf.linalg.eigvals(hf.asarray([[0.0, -2.0], [2.0, 0.0]])).tolist()
    [2j, -2j]
    """
    return complex(*computed("eigvals", *_parts(x, "eigvals")))
