"""Krylov methods, which need products with a matrix and not its elements: conjugate gradients, GMRES and Lanczos.

They are loops of the program.  Systems along leading axes are solved side by side; those that are done stay as they are
until the last one is.

The derivative of a solution is that of the equation and not of the iterations: a cotangent is solved for with the
transposed matrix, to the same tolerance, and reaches what the matrix is computed of.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from hybridflow.array.creation import iota, zeros_like
from hybridflow.array.decompositions import lstsq
from hybridflow.array.elementwise import (
    add,
    astype,
    divide,
    equal,
    greater,
    less_equal,
    logical_and,
    maximum,
    multiply,
    sqrt,
    stop_gradient,
    subtract,
    where,
)
from hybridflow.array.linalg import matmul
from hybridflow.array.reductions import any as any_, sum as sum_
from hybridflow.array.shapes import concat, expand_dims, matrix_transpose
from hybridflow.autodiff.custom import custom_gradient
from hybridflow.autodiff.jacobians import vjp
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ops import type_rules
from hybridflow.control.loops import fori_loop, while_loop
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import ArrayLike
from hybridflow.eager.operands import as_tensor, cast, expand, float_operand
from hybridflow.errors import ArgumentError, ShapeError, entered

if TYPE_CHECKING:
    from hybridflow.compiler.ir.extents import Dim


Operator = Callable[[Tensor], Tensor]


class IterativeSolution(NamedTuple):
    """What ``cg`` and ``gmres`` return."""

    solution: Tensor
    iterations: Tensor
    residual_norm: Tensor
    converged: Tensor


class LanczosResult(NamedTuple):
    """What ``lanczos`` returns."""

    diagonal: Tensor
    off_diagonal: Tensor
    basis: Tensor


def _operator(stage: str, a: ArrayLike, b: Tensor, name: str = "A") -> Operator:
    """A matrix, or a function, as a function of vectors along the last axis."""
    if callable(a):

        def checked(x: Tensor) -> Tensor:
            y = as_tensor(a(x), stage)
            if y.shape != x.shape or y.dtype != x.dtype:
                raise ShapeError(stage, f"{name} returned {y.type} for {x.type}. Expected the same shape and dtype.")
            return y

        return checked
    matrix = float_operand(a, stage)
    if matrix.ndim < 2 or matrix.shape[-1] != matrix.shape[-2] or matrix.shape[-1] != b.shape[-1]:
        raise ShapeError(
            stage,
            f"{name} is {matrix.type}. Expected square matrices of {b.shape[-1]} rows, as the vector {b.type} has.",
        )
    matrix = cast(matrix, b.dtype)
    return lambda x: matmul(matrix, expand_dims(x, -1))[..., 0]


def _transposed(stage: str, a: ArrayLike, b: Tensor) -> Any:
    """What acts as the transposed matrix."""
    if not callable(a):
        return matrix_transpose(as_tensor(a, stage))
    _, pull = vjp(a, zeros_like(b))
    return lambda x: pull(x)[0]


def _vector(stage: str, b: ArrayLike, name: str = "b") -> Tensor:
    b = float_operand(b, stage)
    if not b.ndim:
        raise ShapeError(stage, f"{name} is {b.type}. Expected a vector, or vectors along the last axis.")
    return b


def _start(stage: str, x0: ArrayLike, b: Tensor) -> Tensor:
    if x0 is None:
        return zeros_like(b)
    x = cast(as_tensor(x0, stage), b.dtype)
    if x.shape != b.shape:
        raise ShapeError(stage, f"x0 is {x.type}. Expected the shape of b, {b.type}.")
    return x


def _dot(x: Tensor, y: Tensor) -> Tensor:
    return sum_(multiply(x, y), axis=-1, keepdims=True)


def _identity(x: Tensor) -> Tensor:
    return x


def _most(stage: str, name: str, value: Any, default: Any) -> Any:
    most = default if value is None else type_rules.integer(stage, name, value)
    if value is not None and most < 0:
        raise ArgumentError(stage, f"{name} is {value}. Expected 0 or more.")
    return most


def _implicit(x: Tensor, apply: Operator, b: Tensor, solve_transposed: Operator) -> Tensor:
    """``x``, with the derivative of the solution of ``apply(x) = b``."""
    x = stop_gradient(x)

    @custom_gradient
    def correction(residual: ArrayLike) -> Any:
        return zeros_like(residual), solve_transposed

    return add(x, correction(subtract(b, apply(x))))


@entered
def cg(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    tol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
) -> IterativeSolution:
    """Conjugate gradients: the x with ``A @ x == b`` for symmetric positive definite matrices.

    It stops where the norm of ``b - A @ x`` is at most ``max(tol * norm(b), atol)``.

    Args:
        A: matrices ``(..., n, n)``, or a function of ``(..., n)`` that multiplies with them.
        b: right-hand sides ``(..., n)``.
        x0: where to start; zeros by default.
        tol: the relative tolerance.
        atol: the absolute tolerance.
        maxiter: the largest number of iterations; ``10 * n`` by default.
        M: a preconditioner, of the form of ``A``: about the inverse of ``A``, symmetric positive definite.

    Returns:
        A named tuple: ``solution`` ``(..., n)``, ``iterations`` ``()``, ``residual_norm`` ``(...)`` and ``converged``
        ``(...)``.

    Raises:
        ShapeError: if the shapes do not match.

    >>> hf.linalg.cg(hf.asarray([[4.0, 0.0], [0.0, 2.0]]), hf.asarray([4.0, 4.0])).solution
    <Tensor f32[2] cpu> [1. 2.]
    """
    b = _vector("cg", b)
    apply = _operator("cg", A, b)
    precondition = _identity if M is None else _operator("cg", M, b, "M")
    most = _most("cg", "maxiter", maxiter, b.shape[-1] * 10)
    target, start = stop_gradient(b), stop_gradient(_start("cg", x0, b))
    limit = maximum(multiply(sqrt(_dot(target, target)), tol), atol)

    def is_active(r: Tensor) -> Tensor:
        return greater(sqrt(_dot(r, r)), limit)

    def step(k: Tensor, x: Tensor, r: Tensor, p: Tensor, rz: Tensor) -> tuple[Tensor, ...]:
        active, ap = is_active(r), apply(p)
        curvature = _dot(p, ap)
        # No descent where a matrix is not positive definite: such a system stays as it is.
        good = logical_and(active, greater(curvature, 0))
        alpha = where(good, divide(rz, where(good, curvature, 1)), 0)
        x, r = add(x, multiply(alpha, p)), subtract(r, multiply(alpha, ap))
        z = precondition(r)
        after = _dot(r, z)
        beta = where(good, divide(after, where(equal(rz, 0), 1, rz)), 0)
        return k + 1, x, r, where(good, add(z, multiply(beta, p)), p), where(good, after, rz)

    r = subtract(target, apply(start))
    z = precondition(r)
    k, x, r, _, _ = while_loop(
        lambda k, x, r, p, rz: logical_and(any_(is_active(r)), k < most),
        step,
        (as_tensor(0, "cg"), start, r, z, _dot(r, z)),
    )
    size = sqrt(_dot(r, r))

    def solve_transposed(g: Tensor) -> Tensor:
        return cg(A, g, tol=tol, atol=atol, maxiter=maxiter, M=M).solution

    converged = less_equal(size, limit)[..., 0]
    return IterativeSolution(_implicit(x, apply, b, solve_transposed), k, size[..., 0], converged)


@entered
def gmres(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    tol: float = 1e-5,
    atol: float = 0.0,
    restart: int = 20,
    maxiter: int | None = None,
    M: Any = None,
) -> IterativeSolution:
    """GMRES with restarts: the x with ``A @ x == b`` for any regular matrices.

    Each cycle makes a basis of ``restart`` vectors, orthogonalised twice, and takes the x of least residual.  It stops
    where the norm of ``b - A @ x`` is at most ``max(tol * norm(b), atol)``.

    Args:
        A: matrices ``(..., n, n)``, or a function of ``(..., n)`` that multiplies with them.
        b: right-hand sides ``(..., n)``.
        x0: where to start; zeros by default.
        tol: the relative tolerance.
        atol: the absolute tolerance.
        restart: how many vectors a cycle has, at most n.
        maxiter: the largest number of cycles; ``10 * n`` by default.
        M: a preconditioner from the right, of the form of ``A``: about the inverse of ``A``.

    Returns:
        A named tuple: ``solution`` ``(..., n)``, ``iterations`` ``()``, which counts cycles, ``residual_norm``
        ``(...)`` and ``converged`` ``(...)``.

    Raises:
        ShapeError: if the shapes do not match.

    >>> hf.linalg.gmres(hf.asarray([[1.0, 1.0], [0.0, 2.0]]), hf.asarray([3.0, 4.0])).converged.item()
    True
    """
    b = _vector("gmres", b)
    apply = _operator("gmres", A, b)
    precondition = _identity if M is None else _operator("gmres", M, b, "M")
    most = _most("gmres", "maxiter", maxiter, b.shape[-1] * 10)
    size = type_rules.integer("gmres", "restart", restart)
    if size < 1:
        raise ArgumentError("gmres", f"restart is {restart}. Expected 1 or more.")
    size = min(size, b.shape[-1]) if isinstance(b.shape[-1], int) else size
    target, start = stop_gradient(b), stop_gradient(_start("gmres", x0, b))
    limit = maximum(multiply(sqrt(_dot(target, target)), tol), atol)

    def cycle(k: Tensor, x: Tensor, r: Tensor) -> tuple[Tensor, ...]:
        length = sqrt(_dot(r, r))
        active = greater(length, limit)
        basis, upper = _arnoldi(lambda v: apply(precondition(v)), r, length, max(size, 1))
        first = _unit(length, max(size, 1) + 1)
        weights = lstsq(upper, expand_dims(first, -1)).solution[..., 0]
        moved = _combined(basis[..., :-1, :], weights)
        x = where(active, add(x, precondition(moved)), x)
        return k + 1, x, where(active, subtract(target, apply(x)), r)

    k, x, r = while_loop(
        lambda k, x, r: logical_and(any_(greater(sqrt(_dot(r, r)), limit)), k < most),
        cycle,
        (as_tensor(0, "gmres"), start, subtract(target, apply(start))),
    )
    residual = sqrt(_dot(r, r))

    def solve_transposed(g: Tensor) -> Tensor:
        turned, left = _transposed("gmres", A, g), None if M is None else _transposed("gmres", M, g)
        return gmres(turned, g, tol=tol, atol=atol, restart=restart, maxiter=maxiter, M=left).solution

    converged = less_equal(residual, limit)[..., 0]
    return IterativeSolution(_implicit(x, apply, b, solve_transposed), k, residual[..., 0], converged)


def _combined(basis: Tensor, weights: Tensor) -> Tensor:
    """The sum of the rows of ``basis``, times weights."""
    return matmul(expand_dims(weights, -2), basis)[..., 0, :]


def _unit(length: Tensor, size: int) -> Tensor:
    """Vectors of ``size`` elements, the first of which is ``length``."""
    return where(equal(iota((size,), 0, dtypes.int64), 0), length, 0)


def _normalized(x: Tensor, length: Tensor) -> Tensor:
    """Zeros where there is no length: the space is complete."""
    there = greater(length, 0)
    return where(there, divide(x, where(there, length, 1)), 0)


def _row(number: ArrayLike, values: Tensor, into: Tensor) -> Tensor:
    """``into`` with ``values`` as one of its rows."""
    return where(equal(iota((into.shape[-2], 1), 0, dtypes.int64), number), expand_dims(values, -2), into)


def _orthogonalized(basis: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """``x`` without its parts along rows of ``basis``, and how long these are; by Gram and Schmidt, twice."""
    total = None
    for _ in range(2):
        parts = matmul(basis, expand_dims(x, -1))[..., 0]
        x = subtract(x, _combined(basis, parts))
        total = parts if total is None else add(total, parts)
    assert total is not None
    return x, total


def _is_new(length: Tensor, before: Tensor) -> Tensor:
    """Whether a vector has a part outside of a space that is more than rounding errors of what it was."""
    eps = 2.0**-23 if before.dtype == dtypes.float32 else 2.0**-52
    return greater(length, multiply(before, 10 * eps))


def _arnoldi(apply: Operator, start: Tensor, length: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Rows of an orthonormal basis, one more than ``size``, and the Hessenberg matrix [..., size + 1, size]."""
    first = expand_dims(_normalized(start, length), -2)
    kept = (*start.shape[:-1], size, start.shape[-1])
    basis = concat([first, _zeros(start, kept)], axis=-2)
    rows = _zeros(start, (*start.shape[:-1], size, size + 1))  # the columns of the Hessenberg matrix

    def step(j: Tensor, state: Sequence[Tensor]) -> Any:
        basis, rows = state
        w = apply(_picked(basis, j))
        before = sqrt(_dot(w, w))
        w, parts = _orthogonalized(basis, w)
        beyond = sqrt(_dot(w, w))
        beyond = where(_is_new(beyond, before), beyond, 0)
        basis = _row(j + 1, _normalized(w, beyond), basis)
        column = where(equal(iota((size + 1,), 0, dtypes.int64), j + 1), beyond, parts)
        return basis, _row(j, column, rows)

    basis, rows = fori_loop(0, size, step, (basis, rows))
    return basis, matrix_transpose(rows)


def _zeros(like: Tensor, shape: tuple[int | Dim, ...]) -> Tensor:
    return expand(cast(as_tensor(0.0, "zeros"), like.dtype), shape)


def _picked(basis: Tensor, number: ArrayLike) -> Tensor:
    """One row."""
    chosen = equal(iota((basis.shape[-2],), 0, dtypes.int64), number)
    return _combined(basis, expand(astype(chosen, basis.dtype), basis.shape[:-1]))


@entered
def lanczos(A: Any, v0: ArrayLike, num_steps: int) -> LanczosResult:
    """Lanczos: a symmetric matrix as a small tridiagonal one, ``basis @ A @ basis.mT``.

    Eigenvalues of the small matrix come near the outer ones of ``A``.  Vectors are orthogonalised against all before.
    Where the space is complete, what follows is zero.

    Args:
        A: symmetric matrices ``(..., n, n)``, or a function of ``(..., n)`` that multiplies with them.
        v0: the first vectors, ``(..., n)``, of any length but zero.
        num_steps: how many vectors the basis has, at most n.

    Returns:
        A named tuple: ``diagonal`` ``(..., num_steps)`` and ``off_diagonal`` ``(..., num_steps - 1)`` of the small
        matrix, and ``basis`` ``(..., num_steps, n)`` with orthonormal rows.

    Raises:
        ShapeError: if the shapes do not match.

    >>> hf.linalg.lanczos(hf.asarray([[2.0, 1.0], [1.0, 2.0]]), hf.asarray([1.0, 0.0]), 2).off_diagonal
    <Tensor f32[1] cpu> [1.]
    """
    v = _vector("lanczos", v0, "v0")
    if not callable(A) and not isinstance(A, Tensor):
        A = as_tensor(A, "lanczos")
    size = type_rules.integer("lanczos", "num_steps", num_steps)
    if size < 1 or (isinstance(v.shape[-1], int) and size > v.shape[-1]):
        raise ArgumentError("lanczos", f"num_steps is {num_steps}. Expected 1 to {v.shape[-1]}, as v0 is {v.type}.")
    basis, upper = _arnoldi(_operator("lanczos", A, v), v, sqrt(_dot(v, v)), size)
    places = range(size)
    diagonal = concat([upper[..., k : k + 1, k] for k in places], axis=-1)
    beside = [upper[..., k + 1 : k + 2, k] for k in places[:-1]]
    off = concat(beside, axis=-1) if beside else diagonal[..., :0]
    return LanczosResult(diagonal, off, basis[..., :-1, :])
