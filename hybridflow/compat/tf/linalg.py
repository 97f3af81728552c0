"""Linear algebra with TensorFlow's arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import hybridflow as hf
from hybridflow.compat.adapters.values import array_of, axes, operand, operands
from hybridflow.compat.export import Operand, TensorLike, tf_export
from hybridflow.compiler.ir import dtypes
from hybridflow.core.tensor import Operators, Tensor
from hybridflow.errors import ArgumentError

if TYPE_CHECKING:
    from hybridflow.core.type_aliases import ArrayLike, DTypeLike


@tf_export("linalg.matmul", "matmul")
def matmul(
    a: object, b: object, transpose_a: bool = False, transpose_b: bool = False, adjoint_a: bool = False,
    adjoint_b: bool = False, a_is_sparse: bool = False, b_is_sparse: bool = False, output_type: DTypeLike | None = None,
    grad_a: bool = False, grad_b: bool = False, name: str | None = None,
) -> Any:  # fmt: skip
    """``tf.matmul``.  Both operands have two axes or more, as TensorFlow wants it."""
    x, y = operands([a, b], [0, 1])
    x = hf.matrix_transpose(x) if transpose_a or adjoint_a else x
    y = hf.matrix_transpose(y) if transpose_b or adjoint_b else y
    product = hf.matmul(x, y)
    return product if output_type is None else hf.astype(product, output_type)


@tf_export("linalg.matvec")
def matvec(
    a: TensorLike, b: TensorLike, transpose_a: bool = False, adjoint_a: bool = False, a_is_sparse: bool = False,
    b_is_sparse: bool = False, name: str | None = None,
) -> Any:  # fmt: skip
    """``tf.linalg.matvec``."""
    x, y = operands([a, b], [0, 1])
    x = hf.matrix_transpose(x) if transpose_a or adjoint_a else x
    return hf.matmul(x, hf.expand_dims(y, axis=-1))[..., 0]


@tf_export("linalg.tensordot", "tensordot")
def tensordot(a: TensorLike, b: TensorLike, axes: object, name: str | None = None) -> Any:
    """``tf.tensordot``."""
    x, y = operands([a, b], [0, 1])
    return hf.tensordot(x, y, axes=array_of(axes).tolist() if isinstance(axes, Operators) else axes)


@tf_export("linalg.einsum", "keras.ops.einsum", "einsum")
def einsum(equation: str, *inputs: object, **kwargs: object) -> Any:
    """``tf.einsum``."""
    kwargs.pop("name", None)
    kwargs.pop("optimize", None)
    if kwargs:
        raise TypeError(f"einsum() got unexpected arguments {', '.join(kwargs)}")
    tensors = list(inputs[0]) if len(inputs) == 1 and isinstance(inputs[0], (list, tuple)) else list(inputs)
    return hf.einsum(equation.replace(" ", ""), *operands(tensors, [k for k, _ in enumerate(tensors)]))


@tf_export("linalg.inv")
def inv(input: TensorLike, adjoint: bool = False, name: str | None = None) -> Any:
    """``tf.linalg.inv``."""
    inverse = hf.linalg.inv(operand(input))
    return hf.matrix_transpose(inverse) if adjoint else inverse


@tf_export("linalg.solve")
def solve(matrix: TensorLike, rhs: TensorLike, adjoint: bool = False, name: str | None = None) -> Any:
    """``tf.linalg.solve``."""
    a, b = operands([matrix, rhs], [0, 1])
    return hf.linalg.solve(hf.matrix_transpose(a) if adjoint else a, b)


@tf_export("linalg.triangular_solve")
def triangular_solve(
    matrix: TensorLike, rhs: TensorLike, lower: bool = True, adjoint: bool = False, name: str | None = None
) -> Any:
    """``tf.linalg.triangular_solve``."""
    a, b = operands([matrix, rhs], [0, 1])
    return hf.linalg.triangular_solve(a, b, lower=lower, transpose=adjoint)


@tf_export("linalg.svd")
def svd(tensor: TensorLike, full_matrices: bool = False, compute_uv: bool = True, name: str | None = None) -> Any:
    """``tf.linalg.svd``: ``s, u, v``; v is not transposed."""
    if not compute_uv:
        return hf.linalg.svdvals(operand(tensor))
    u, s, vh = hf.linalg.svd(operand(tensor), full_matrices=full_matrices)
    return s, u, hf.matrix_transpose(vh)


@tf_export("linalg.qr")
def qr(input: TensorLike, full_matrices: bool = False, name: str | None = None) -> Any:
    """``tf.linalg.qr``."""
    return hf.linalg.qr(operand(input), mode="complete" if full_matrices else "reduced")


@tf_export("linalg.logdet")
def logdet(matrix: TensorLike, name: str | None = None) -> Any:
    """``tf.linalg.logdet``, of a positive definite matrix."""
    return hf.linalg.slogdet(operand(matrix))[1]


@tf_export("linalg.lstsq")
def lstsq(
    matrix: TensorLike, rhs: TensorLike, l2_regularizer: float = 0.0, fast: bool = True, name: str | None = None
) -> Any:
    """``tf.linalg.lstsq``."""
    a, b = operands([matrix, rhs], [0, 1])
    if not l2_regularizer:
        return hf.linalg.lstsq(a, b).solution
    square = hf.matmul(hf.matrix_transpose(a), a)
    ridge = square + l2_regularizer * hf.eye(square.shape[-1], dtype=square.dtype)
    return hf.linalg.solve(ridge, hf.matmul(hf.matrix_transpose(a), b))


@tf_export("linalg.norm", "norm")
def norm(
    tensor: TensorLike,
    ord: object = "euclidean",
    axis: object = None,
    keepdims: bool | None = None,
    name: object = None,
) -> Any:
    """``tf.norm``: of all elements unless axes are given; a pair of axes is that of a matrix."""
    x, over = operand(tensor), axes(axis)
    if isinstance(over, tuple) and len(over) == 2 and ord not in ("euclidean", "fro"):
        moved = hf.moveaxis(x, over, (-2, -1))
        norms = hf.linalg.matrix_norm(moved, ord=ord)
        return hf.expand_dims(hf.expand_dims(norms, axis=min(over)), axis=max(over)) if keepdims else norms
    degree = 2 if ord in ("euclidean", "fro") else ord
    return hf.linalg.vector_norm(x, axis=over, keepdims=bool(keepdims), ord=degree)


@tf_export("linalg.normalize")
def normalize(
    tensor: TensorLike, ord: object = "euclidean", axis: object = None, name: str | None = None
) -> tuple[Any, Any]:
    """``tf.linalg.normalize``: the normalized tensor, and the norm."""
    x = operand(tensor)
    length = norm(x, ord, axis, keepdims=True)
    return x / length, length


@tf_export("linalg.diag")
def diag(diagonal: TensorLike, name: str = "diag", k: int = 0, **options: object) -> Any:
    """``tf.linalg.diag``, of one diagonal."""
    if options or not isinstance(k, int):
        raise ArgumentError("linalg.diag", "a matrix is made of one diagonal, and is square.")
    x = operand(diagonal)
    n = x.shape[-1] + abs(k)
    rows = hf.expand_dims(x, axis=-1) * hf.eye(x.shape[-1], dtype=x.dtype)
    before, behind = max(k, 0), max(-k, 0)
    return hf.pad(rows, [*[(0, 0)] * (x.ndim - 1), (behind, before), (before, behind)]) if n else rows


@tf_export("linalg.diag_part")
def diag_part(input: TensorLike, name: str = "diag_part", k: int = 0, **options: object) -> Any:
    """``tf.linalg.diag_part``, of one diagonal."""
    if options or not isinstance(k, int):
        raise ArgumentError("linalg.diag_part", "one diagonal is taken at a time.")
    return hf.diagonal(operand(input), offset=k)


@tf_export("linalg.set_diag")
def set_diag(input: TensorLike, diagonal: TensorLike, name: str = "set_diag", k: int = 0, **options: object) -> Any:
    """``tf.linalg.set_diag``, of the main diagonal."""
    if options or k != 0:
        raise ArgumentError("linalg.set_diag", "the main diagonal is set.")
    x, values = operands([input, diagonal], [0, 1])
    rows, columns = x.shape[-2:]
    short = min(rows, columns)
    on = hf.eye(rows, columns, dtype=x.dtype) == 1
    wide = hf.pad(values, [*[(0, 0)] * (values.ndim - 1), (0, rows - short)])
    return hf.where(on, hf.expand_dims(wide, axis=-1), x)


@tf_export("linalg.band_part")
def band_part(input: TensorLike, num_lower: Any, num_upper: Any, name: str | None = None) -> Any:
    """``tf.linalg.band_part``: diagonals from ``num_lower`` below to ``num_upper`` above, all of them for -1."""
    x = operand(input)
    x = x if int(num_lower) < 0 else hf.triu(x, k=-int(num_lower))
    return x if int(num_upper) < 0 else hf.tril(x, k=int(num_upper))


@tf_export("linalg.tensor_diag")
def tensor_diag(diagonal: TensorLike, name: str | None = None) -> Any:
    """``tf.linalg.tensor_diag``: the axes twice, with the elements where both say the same place."""
    x = operand(diagonal)
    return hf.reshape(diag(hf.reshape(x, (-1,))), (*x.shape, *x.shape))


@tf_export("linalg.adjoint")
def adjoint(matrix: TensorLike, name: str | None = None) -> Any:
    """``tf.linalg.adjoint``."""
    return hf.matrix_transpose(operand(matrix))


@tf_export("linalg.pinv")
def pinv(a: TensorLike, rcond: object = None, validate_args: bool = False, name: str | None = None) -> Any:
    """``tf.linalg.pinv``."""
    return hf.linalg.pinv(operand(a), rtol=rcond)


@tf_export("linalg.matrix_rank")
def matrix_rank(
    a: TensorLike, tol: ArrayLike | None = None, validate_args: bool = False, name: str | None = None
) -> Any:
    """``tf.linalg.matrix_rank``: how many singular values are above ``tol``, which is no share of the largest."""
    x = operand(a)
    if tol is None:
        return hf.astype(hf.linalg.matrix_rank(x), dtypes.int32)
    return hf.astype(hf.count_nonzero(hf.greater(hf.linalg.svdvals(x), tol), axis=-1), dtypes.int32)


@tf_export("linalg.global_norm")
def global_norm(t_list: Any, name: str | None = None) -> Any:
    """``tf.linalg.global_norm``."""
    return hf.optimizers.global_norm([t for t in t_list if t is not None])


@tf_export("clip_by_global_norm")
def clip_by_global_norm(
    t_list: Any, clip_norm: ArrayLike, use_norm: ArrayLike | None = None, name: str | None = None
) -> Any:
    """``tf.clip_by_global_norm``: the clipped tensors, and their norm."""
    clipped, length = hf.optimizers.clip_by_global_norm(list(t_list), clip_norm, use_norm)
    return list(clipped), length


@tf_export("clip_by_norm")
def clip_by_norm(t: TensorLike, clip_norm: Any, axes: Any = None, name: str | None = None) -> Any:
    """``tf.clip_by_norm``."""
    return hf.optimizers.clip_by_norm(operand(t), clip_norm, axis=axes)


class LU(NamedTuple):
    """What ``tf.linalg.lu`` returns: both triangles in one matrix, and which row each was."""

    lu: object
    p: object


@tf_export("linalg.lu")
def lu(input: TensorLike, output_idx_type: DTypeLike = dtypes.int32, name: str | None = None) -> LU:
    """``tf.linalg.lu``."""
    both, rows = hf.linalg.lu_factor(operand(input))
    return LU(both, hf.astype(rows, output_idx_type))


def _triangles(lower_upper: Any) -> tuple[Any, Any]:
    one = hf.eye(lower_upper.shape[-1], dtype=lower_upper.dtype)
    return hf.tril(lower_upper, k=-1) + one, hf.triu(lower_upper)


@tf_export("linalg.lu_solve")
def lu_solve(
    lower_upper: object, perm: TensorLike, rhs: TensorLike, validate_args: bool = False, name: str | None = None
) -> Any:
    """``tf.linalg.lu_solve``."""
    both, b = operands([lower_upper, rhs], [0, 1])
    return hf.linalg.lu_solve((both, operand(perm)), b)


@tf_export("linalg.lu_matrix_inverse")
def lu_matrix_inverse(
    lower_upper: TensorLike, perm: TensorLike, validate_args: bool = False, name: str | None = None
) -> Any:
    """``tf.linalg.lu_matrix_inverse``."""
    both = operand(lower_upper)
    one = hf.broadcast_to(hf.eye(both.shape[-1], dtype=both.dtype), both.shape)
    return lu_solve(both, perm, one)


@tf_export("linalg.lu_reconstruct")
def lu_reconstruct(
    lower_upper: TensorLike, perm: TensorLike, validate_args: bool = False, name: str | None = None
) -> Any:
    """``tf.linalg.lu_reconstruct``: the matrix."""
    lower, upper = _triangles(operand(lower_upper))
    product = hf.matmul(lower, upper)
    back = hf.argsort(operand(perm), axis=-1)
    return hf.take_along_axis(product, hf.broadcast_to(back[..., None], product.shape), axis=-2)


def _bands(diagonals: Any, diagonals_format: str) -> tuple[Any, Any, Any]:
    """Above, on and below the diagonal, each [..., n]: the last above and the first below count for nothing."""
    if diagonals_format == "sequence":
        above, on, below = (operand(x) for x in diagonals)
        return above, on, below
    x = operand(diagonals)
    if diagonals_format == "compact":
        return x[..., 0, :], x[..., 1, :], x[..., 2, :]
    if diagonals_format == "matrix":
        ends = [*[(0, 0)] * (x.ndim - 2)]
        above, below = hf.diagonal(x, offset=1), hf.diagonal(x, offset=-1)
        return hf.pad(above, [*ends, (0, 1)]), hf.diagonal(x), hf.pad(below, [*ends, (1, 0)])
    raise ArgumentError("linalg", f'diagonals_format is {diagonals_format!r}; "compact", "sequence" or "matrix".')


@tf_export("linalg.tridiagonal_solve")
def tridiagonal_solve(
    diagonals: TensorLike, rhs: TensorLike, diagonals_format: str = "compact", transpose_rhs: bool = False,
    conjugate_rhs: bool = False, name: str | None = None, partial_pivoting: bool = True,
    perturb_singular: bool = False,
) -> Any:  # fmt: skip
    """``tf.linalg.tridiagonal_solve``: the whole matrix is solved, with pivots."""
    above, on, below = _bands(diagonals, diagonals_format)
    b = operand(rhs)
    is_vector = b.ndim == on.ndim
    b = b[..., None] if is_vector else hf.matrix_transpose(b) if transpose_rhs else b
    solution = hf.linalg.solve(_whole(above, on, below), b)
    return solution[..., 0] if is_vector else solution


def _whole(above: Tensor, on: Tensor, below: Tensor) -> Any:
    n = on.shape[-1]
    one = hf.eye(n, dtype=on.dtype)
    over, under = hf.eye(n, k=1, dtype=on.dtype), hf.eye(n, k=-1, dtype=on.dtype)
    return on[..., None] * one + above[..., None] * over + below[..., None] * under


@tf_export("linalg.tridiagonal_matmul")
def tridiagonal_matmul(
    diagonals: TensorLike, rhs: TensorLike, diagonals_format: str = "compact", name: str | None = None
) -> Any:
    """``tf.linalg.tridiagonal_matmul``."""
    above, on, below = _bands(diagonals, diagonals_format)
    return hf.matmul(_whole(above, on, below), operand(rhs))


@tf_export("linalg.expm")
def expm(input: Operand, name: str | None = None) -> Any:
    """The matrix exponential ``I + x + x @ x / 2 + ...``, by scaling and squaring."""
    return hf.linalg.expm(input)


@tf_export("linalg.logm")
def logm(input: Operand, name: str | None = None) -> Any:
    """The principal matrix logarithm: the y with ``expm(y) == x`` whose eigenvalues have imaginary parts within
    pi."""
    return hf.linalg.logm(input)


@tf_export("linalg.sqrtm")
def sqrtm(input: Operand, name: str | None = None) -> Any:
    """The principal square root: the y with ``y @ y == x`` whose eigenvalues have no negative real part."""
    return hf.linalg.sqrtm(input)


@tf_export("linalg.cholesky")
def cholesky(input: Operand, name: str | None = None) -> Any:
    """The lower triangular L with ``L @ L.mH == x``, or the upper triangular U with ``U.mH @ U == x``."""
    return hf.linalg.cholesky(input)


@tf_export("linalg.cholesky_solve")
def cholesky_solve(chol: Operand, rhs: Operand, name: str | None = None) -> Any:
    """Solve with a Cholesky factor: the x with ``a @ x == x2``, where ``x1`` is ``cholesky(a, upper=upper)``."""
    return hf.linalg.cholesky_solve(chol, rhs)


@tf_export("linalg.cross")
def cross(a: Operand, b: Operand, name: str | None = None) -> Any:
    """The cross products of vectors of three elements along ``axis``; other axes broadcast."""
    return hf.linalg.cross(a, b)


@tf_export("linalg.det")
def det(input: Operand, name: str | None = None) -> Any:
    """The determinant; 0 for a singular matrix."""
    return hf.linalg.det(input)


@tf_export("linalg.eig", "eig")
def eig(tensor: Operand, name: str | None = None) -> Any:
    """The eigenvalues of a square matrix, in no order, and the eigenvectors as columns of length 1: complex
    numbers."""
    return hf.linalg.eig(tensor)


@tf_export("linalg.eigh")
def eigh(tensor: Operand, name: str | None = None) -> Any:
    """The eigenvalues of a symmetric (complex: Hermitian) matrix, whose lower triangle is read, in ascending
    order, and the eigenvectors as columns. The gradient is that of such a matrix."""
    return hf.linalg.eigh(tensor)


@tf_export("linalg.eigvals", "eigvals")
def eigvals(tensor: Operand, name: str | None = None) -> Any:
    """The eigenvalues of a square matrix, in no order: complex numbers."""
    return hf.linalg.eigvals(tensor)


@tf_export("linalg.eigvalsh")
def eigvalsh(tensor: Operand, name: str | None = None) -> Any:
    """The eigenvalues of a symmetric matrix, whose lower triangle is read, in ascending order."""
    return hf.linalg.eigvalsh(tensor)


@tf_export("linalg.matrix_transpose")
def matrix_transpose(a: Operand, conjugate: object = None, name: str | None = None) -> Any:
    """Matrix transpose: ``x`` with its last two axes swapped."""
    return hf.matrix_transpose(a)


@tf_export("linalg.slogdet")
def slogdet(input: Operand, name: str | None = None) -> Any:
    """The sign of the determinant (0 for a singular matrix), and the natural logarithm of its magnitude, which
    does not overflow."""
    return hf.linalg.slogdet(input)


@tf_export("linalg.tensor_diag_part")
def tensor_diag_part(input: Operand, name: str | None = None) -> Any:
    """The ``offset``-th diagonal of the last two axes, as the last axis."""
    return hf.diagonal(input)


@tf_export("linalg.trace", "keras.ops.trace")
def trace(x: Operand, name: str | None = None) -> Any:
    """The sum of the ``offset``-th diagonal of the last two axes, in ``dtype`` where one is given."""
    return hf.trace(x)
