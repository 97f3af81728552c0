"""Matrix decompositions, inverses, determinants and linear equations: ``hf.linalg``.

Matrices are the last two axes, with stacks of them in front.  Everything is computed by NumPy's LAPACK, in compiled
functions too, which so have the same bits; on a GPU it raises.  But ``solve``, ``inv``, ``det`` and ``cholesky`` of
matrices with up to 16 rows (and right-hand sides) are native code, which has many matrices side by side in a vector
and the same bits on every machine; what LAPACK says of a matrix that is singular, not positive definite or not
finite holds there as well.  Integers become float32; float16 and bfloat16 are
computed in float32 and rounded.  Gradients flow through all of it but ``matrix_rank`` and signs.

Errors: ShapeError for what is no matrix, or not square where it must be; ``errors.LinAlgError`` (also NumPy's) where a
matrix has no inverse or no such decomposition.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from hybridflow.array.elementwise import greater, multiply
from hybridflow.array.reductions import count_nonzero, max
from hybridflow.array.shapes import matrix_transpose
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ir.types import Extent, broadcast_shapes
from hybridflow.compiler.ops import TABLE
from hybridflow.core.tensor import Tensor
from hybridflow.eager.dispatch import apply
from hybridflow.eager.operands import as_tensor, cast, common_dtype, expand, float_operand, reshape_to, scalar
from hybridflow.errors import ArgumentError, ShapeError, entered


class EighResult(NamedTuple):
    """What ``eigh`` returns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


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


def _matrix(x: Any, stage: str) -> Tensor:
    x = float_operand(x, stage)
    if x.ndim < 2:
        raise ShapeError(stage, f"{x.type} is not a matrix or a stack of matrices.")
    return x


def _computed(op: str, *operands: Tensor, **attrs: Any) -> tuple[Tensor, ...]:
    """The results of a host op, in the dtype of its operands."""
    dtype = operands[0].dtype
    wide = dtypes.compute_dtype(dtype)
    return tuple([cast(out, dtype) for out in apply(TABLE[op], *(cast(x, wide) for x in operands), **attrs)])


def _rank(x: Tensor) -> Extent:
    """The smaller extent of the matrices."""
    rows, columns = x.shape[-2:]
    return rows if rows <= columns else columns


@entered
def cholesky(x: Any, /, *, upper: bool = False) -> Tensor:
    """The lower triangular L with ``L @ L.mT == x``, or the upper triangular U with ``U.mT @ U == x``.

    ``x`` is symmetric and positive definite; only one triangle of it is read.  The gradient is that of a symmetric
    matrix.  Raises LinAlgError where it is not positive definite.

    Args:
        x: symmetric, positive definite matrices, ``(..., n, n)``.
        upper: whether the upper triangle is read and returned.

    Returns:
        A float tensor of the shape of ``x``.

    >>> hf.linalg.cholesky(hf.asarray([[4.0, 2.0], [2.0, 5.0]])).tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    """
    x = _matrix(x, "cholesky")
    (lower,) = _computed("cholesky", matrix_transpose(x) if upper else x)
    return matrix_transpose(lower) if upper else lower


def _right_hand_side(stage: str, x1: Any, x2: Any) -> tuple[Tensor, Tensor, bool]:
    """The matrices and right-hand sides of one dtype, in stacks of one shape; and whether those were one vector."""
    a, y = common_dtype(stage, [float_operand(v, stage) for v in (x1, x2)])
    a = _matrix(a, stage)
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
def solve(x1: Any, x2: Any, /) -> Tensor:
    """The x with ``x1 @ x == x2``; ``x2`` is one vector, or matrices whose columns are right-hand sides.

    Leading axes broadcast.  Raises LinAlgError for a singular matrix.

    Args:
        x1: a tensor of shape ``(..., n, n)``.
        x2: a vector ``(n,)``, or matrices ``(..., n, k)``.

    Returns:
        A float tensor of the shape of ``x2``, with the leading axes of both.

    Raises:
        ShapeError: where the shapes do not fit each other.

    >>> hf.linalg.solve(hf.asarray([[2.0, 0.0], [0.0, 4.0]]), hf.asarray([2.0, 2.0])).tolist()
    [1.0, 0.5]
    """
    a, y, vector = _right_hand_side("solve", x1, x2)
    return _in_dtype_of(_computed("solve", a, y)[0], vector)


@entered
def triangular_solve(x1: Any, x2: Any, /, *, lower: bool = True, transpose: bool = False) -> Tensor:
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
        ShapeError: where the shapes do not fit each other.

    >>> hf.linalg.triangular_solve(hf.asarray([[2.0, 9.0], [1.0, 1.0]]), hf.asarray([2.0, 3.0])).tolist()
    [1.0, 2.0]
    """
    a, y, vector = _right_hand_side("triangular_solve", x1, x2)
    attrs = {"lower": bool(lower), "transposed": bool(transpose)}
    return _in_dtype_of(_computed("triangular_solve", a, y, **attrs)[0], vector)


@entered
def inv(x: Any, /) -> Tensor:
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
    return _computed("inv", _matrix(x, "inv"))[0]


@entered
def pinv(x: Any, /, *, rtol: Any = None) -> Tensor:
    """The Moore-Penrose pseudo-inverse, where singular values up to ``rtol`` times the largest count as zero.

    ``rtol`` is a number, or one for each matrix; by default the larger extent times the dtype's epsilon.

    Args:
        x: a tensor of shape ``(..., m, n)``.
        rtol: a number, or one for each matrix.

    Returns:
        A float tensor of shape ``(..., n, m)``.

    Raises:
        ShapeError: for what has fewer than two axes.

    >>> hf.linalg.pinv(hf.asarray([[2.0], [0.0]])).tolist()
    [[0.5, 0.0]]
    """
    x = _matrix(x, "pinv")
    return _computed("pinv", x, reshape_to(*_tolerance(x, rtol, "pinv")))[0]


def _tolerance(x: Tensor, rtol: Any, stage: str) -> tuple[Tensor, Any]:
    """``rtol`` for each matrix in a stack, and the shape that it has as a stack of matrices."""
    front = x.shape[:-2]
    if rtol is None:
        rows, columns = x.shape[-2:]
        wide = dtypes.compute_dtype(x.dtype)
        size = cast(scalar(rows if rows >= columns else columns, dtypes.int64, stage), x.dtype)
        limit: Tensor = multiply(size, _epsilon(wide))
    else:
        limit = cast(as_tensor(rtol, stage), x.dtype)
    try:
        fits = broadcast_shapes(limit.shape, front) == front
    except ValueError:
        fits = False
    if not fits:
        raise ShapeError(stage, f"rtol is {limit.type}; it must be one number for each matrix of {x.type}.")
    return expand(limit, front), (*front, 1, 1)


def _epsilon(dtype: Any) -> float:
    return 2.0**-23 if dtype == dtypes.float32 else 2.0**-52


@entered
def matrix_rank(x: Any, /, *, rtol: Any = None) -> Tensor:
    """How many singular values are larger than ``rtol`` (see ``pinv``) times the largest, as int64.

    Args:
        x: a tensor of shape ``(..., m, n)``.
        rtol: a number, or one for each matrix.

    Returns:
        An int64 tensor of shape ``(...)``.

    Raises:
        ShapeError: for what has fewer than two axes.

    >>> hf.linalg.matrix_rank(hf.asarray([[1.0, 1.0], [1.0, 1.0]])).item()
    1
    """
    x = _matrix(x, "matrix_rank")
    values = svdvals(x)
    limit, _ = _tolerance(x, rtol, "matrix_rank")
    if values.shape[-1] == 0:
        return count_nonzero(values, axis=-1)
    largest = max(values, axis=-1, keepdims=True)
    return count_nonzero(greater(values, multiply(largest, reshape_to(limit, largest.shape))), axis=-1)


@entered
def det(x: Any, /) -> Tensor:
    """The determinant; 0 for a singular matrix.

    Args:
        x: a tensor of shape ``(..., n, n)``.

    Returns:
        A float tensor of shape ``(...)``.

    Raises:
        ShapeError: for what is no stack of square matrices.

    >>> hf.linalg.det(hf.asarray([[2.0, 0.0], [0.0, 4.0]])).item()
    8.0
    """
    return _computed("det", _matrix(x, "det"))[0]


@entered
def slogdet(x: Any, /) -> SlogdetResult:
    """The sign of the determinant (0 for a singular matrix), and the natural logarithm of its magnitude, which does not
    overflow.

    Args:
        x: a tensor of shape ``(..., n, n)``.

    Returns:
        A named tuple: ``sign`` and ``logabsdet``, of shape ``(...)``.

    Raises:
        ShapeError: for what is no stack of square matrices.

    >>> hf.linalg.slogdet(hf.asarray([[-1.0]])).sign.item()
    -1.0
    """
    return SlogdetResult(*_computed("slogdet", _matrix(x, "slogdet")))


@entered
def qr(x: Any, /, *, mode: str = "reduced") -> QRResult:
    """QR decomposition: ``Q`` with orthonormal columns and an upper triangular ``R`` with ``Q @ R == x``.

    With mode "reduced", ``Q`` has as many columns as the smaller extent of ``x``; with "complete" it is square.

    Args:
        x: a tensor of shape ``(..., m, n)``.
        mode: ``"reduced"`` or ``"complete"``.

    Returns:
        A named tuple: ``Q`` ``(..., m, k)``, ``R`` ``(..., k, n)``.

    Raises:
        ShapeError: for what has fewer than two axes.

    >>> q, r = hf.linalg.qr([[2.0, 0.0], [0.0, 3.0]])
    >>> hf.abs(q @ r)
    <Tensor f32[2,2] cpu>
    [[2. 0.]
     [0. 3.]]
    """
    x = _matrix(x, "qr")
    if mode not in ("reduced", "complete"):
        raise ArgumentError("qr", f"mode is {mode!r}; it must be 'reduced' or 'complete'.")
    return QRResult(*_computed("qr", x, complete=mode == "complete", rank=_rank(x)))


@entered
def svd(x: Any, /, *, full_matrices: bool = True) -> SVDResult:
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
        ShapeError: for what has fewer than two axes.

    >>> hf.linalg.svd([[2.0, 0.0], [0.0, 3.0]]).S
    <Tensor f32[2] cpu> [3. 2.]
    """
    x = _matrix(x, "svd")
    return SVDResult(*_computed("svd", x, complete=bool(full_matrices), rank=_rank(x)))


@entered
def svdvals(x: Any, /) -> Tensor:
    """The singular values in descending order.

    Args:
        x: a tensor of shape ``(..., m, n)``.

    Returns:
        A float tensor of shape ``(..., min(m, n))``.

    Raises:
        ShapeError: for what has fewer than two axes.

    >>> hf.linalg.svdvals(hf.asarray([[0.0, 3.0], [4.0, 0.0]])).tolist()
    [4.0, 3.0]
    """
    x = _matrix(x, "svdvals")
    return _computed("svdvals", x, rank=_rank(x))[0]


@entered
def eigh(x: Any, /) -> EighResult:
    """The eigenvalues of a symmetric matrix, whose lower triangle is read, in ascending order, and the eigenvectors as
    columns.  The gradient is that of a symmetric matrix.

    Vectors of eigenvalues that are equal, but for rounding, are any basis of their space; how they turn within it is
    left out of derivatives, as in TensorFlow.

    Args:
        x: a tensor of shape ``(..., n, n)``.

    Returns:
        A named tuple: ``eigenvalues`` ``(..., n)``, ``eigenvectors`` ``(..., n, n)``.

    Raises:
        ShapeError: for what is no stack of square matrices.

    >>> hf.linalg.eigh([[2.0, 0.0], [0.0, 3.0]]).eigenvalues
    <Tensor f32[2] cpu> [2. 3.]
    """
    return EighResult(*_computed("eigh", _matrix(x, "eigh")))


@entered
def eigvalsh(x: Any, /) -> Tensor:
    """The eigenvalues of a symmetric matrix, whose lower triangle is read, in ascending order.

    Args:
        x: a tensor of shape ``(..., n, n)``.

    Returns:
        A float tensor of shape ``(..., n)``.

    Raises:
        ShapeError: for what is no stack of square matrices.

    >>> hf.linalg.eigvalsh(hf.asarray([[3.0, 0.0], [0.0, 1.0]])).tolist()
    [1.0, 3.0]
    """
    return _computed("eigvalsh", _matrix(x, "eigvalsh"))[0]
