"""Matrix decompositions and what is computed by them: functions of the host, which are NumPy's LAPACK.

Programs call these by name (``HostCall``), eager mode calls the references: the same code, so the same bits.  Small
matrices are computed otherwise, in both (``elimination``).  All take
float32 or float64 matrices in the last two axes, some complex ones too, with stacks of them in front.  They have
several results, of which there may be one alone.  A matrix for which there is no result is a LinAlgError when the op
runs.

Derivatives are made of matrix products, and of these functions again.  Those of ``det`` and ``pinv`` need no inverse.
Singular vectors and eigenvectors of values that are equal, but for rounding, are any basis of their space.  How they
turn within it, by an infinite angle, is left out of derivatives, as in TensorFlow: what the derivative of a function of
the matrix has between two such vectors is not in the cotangents.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.build import Builder, Cotangent, Value
from hybridflow.compiler.ir.extents import Extent, equal
from hybridflow.compiler.ir.results import TupleType
from hybridflow.compiler.ir.types import TensorType, same_shape
from hybridflow.compiler.ops import type_rules
from hybridflow.compiler.ops.batching_rules import axis_to_front
from hybridflow.compiler.ops.lowering import HostCall
from hybridflow.compiler.ops.op_table import Kind, define
from hybridflow.compiler.program import HostFunction
from hybridflow.errors import DTypeError, GradientError, ShapeError

_FLOATS = frozenset((dt.float32, dt.float64))
_NUMBERS = _FLOATS | frozenset(dt.COMPLEX)
_HOLOMORPHIC = frozenset(("solve", "triangular_solve", "inv", "det", "slogdet", "lu", "expm", "sqrtm", "logm"))
"""The ops whose derivatives are products with transposes, and so those of complex matrices as they stand."""
_BY_ADJOINTS = frozenset(("cholesky", "pinv", "lstsq", "qr", "svd", "svdvals", "eigh", "eigvalsh"))
"""Those whose rules are of cotangents that pair as ``Re(conj(g) * dx)``: the conjugates of ours."""
_TAKES_COMPLEX = _HOLOMORPHIC | _BY_ADJOINTS


# ---- declarations


def _check(name: str, square: bool, *types: TensorType) -> None:
    """All are stacks of matrices of one dtype, the first of square ones if ``square``."""
    for x in types:
        type_rules.check_dtype(name, x, _NUMBERS if name in _TAKES_COMPLEX else _FLOATS)
        if x.ndim < 2:
            raise ShapeError(name, f"the input is {x}. Expected a matrix or a stack of matrices.")
        if x.dtype != types[0].dtype:
            raise DTypeError(name, f"dtypes differ: {types[0]} and {x}. Expected equal dtypes.")
        if not same_shape(x.shape[:-2], types[0].shape[:-2]):
            raise ShapeError(name, f"{types[0]} and {x} are stacks of different shapes. Broadcast one first.")
    if square and not same_shape(types[0].shape[-1:], types[0].shape[-2:-1]):
        raise ShapeError(name, f"the input is {types[0]}. Expected square matrices.")


def _stacked(x: TensorType, *shape: Extent) -> TensorType:
    return x.with_shape((*x.shape[:-2], *shape))


def _host(
    name: str,
    arity: int | None,
    reference: Callable[..., Any],
    results: Callable[..., Any],
    *,
    square: bool = True,
    **fields: Any,
) -> None:
    """``results(*types, **attrs)`` are the types of what ``reference`` makes."""

    def infer(*types: TensorType, **attrs: object) -> TupleType:
        _check(name, square, *types)
        return TupleType(tuple(results(*types, **attrs)))

    def call(run: Any, *arrays: np.ndarray, **attrs: Any) -> tuple[np.ndarray, ...]:
        results = reference(*arrays, **attrs)
        return tuple([_in_dtype(part, arrays[0].dtype) for part in results])

    def lowered(types: Sequence[TensorType], attrs: Mapping[str, Any]) -> HostCall:
        from hybridflow.compiler.ops.small_linalg import is_small  # which few programs need

        is_quick = not dt.is_complex(types[0].dtype) and is_small(name, [x.shape for x in types])
        return HostCall(HostFunction(name, tuple(sorted(attrs.items()))), is_quick)

    fields.setdefault("canon", lambda types, attrs: attrs)
    if name in _BY_ADJOINTS:
        fields["vjp"] = _of_conjugates(fields["vjp"])
    define(
        name,
        Kind.CONTROL,
        arity,
        infer=infer,
        reference=call,
        lower=lowered,
        calls_host=True,
        raises=lambda types, attrs: True,
        batch=functools.partial(_batch, arity),
        samples=lambda rng, dtype: [],
        dtypes=(),
        **fields,
    )


def _in_dtype(part: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Numbers in the dtype of the operands; positions stay integers."""
    array = np.asarray(part)
    if array.dtype == dt.int64:
        return array
    return array.astype(dtype if np.iscomplexobj(array) else dt.part_dtype(dtype), copy=False)


def _of_conjugates(rule: Callable[..., Any]) -> Callable[..., Any]:
    """The derivative rule whose cotangents are the conjugates of those of ``rule``; the same for real ones."""

    def turned(b: Builder, g: Any) -> Any:
        if callable(g):
            return lambda: turned(b, g())
        return g if g is None else _conj(b, g)

    def vjp(b: Builder, gs: Iterable[object], outs: Any, *inputs: Value, **attrs: Any) -> Any:
        gradients = rule(b, tuple([turned(b, g) for g in gs]), outs, *inputs, **attrs)
        return tuple([turned(b, g) for g in gradients])

    return vjp


def _batch(
    arity: int | None, b: Builder, op: Any, size: Any, batched: Sequence[bool], *inputs: Any, **attrs: Any
) -> Any:
    """Examples are one axis more in front of the stacks."""
    inputs = tuple(x if is_batched else axis_to_front(b, x, is_batched, size) for x, is_batched in zip(inputs, batched))
    return b.emit(op, *inputs, **attrs)


# ---- words for derivatives


def _t(b: Builder, x: Value) -> Value:
    n = len(x.type.shape)
    return b.transpose(x, perm=(*range(n - 2), n - 1, n - 2))


def _conj(b: Builder, x: Value) -> Value:
    return b.conj(x) if dt.is_complex(x.type.dtype) else x


def _h(b: Builder, x: Value) -> Value:
    """The adjoint: the transpose of real matrices."""
    return _conj(b, _t(b, x))


def _as(b: Builder, x: Value, like: Any) -> Value:
    """Real numbers as those of a dtype that may be complex."""
    return type_rules.as_dtype(b, x, like.dtype)


def _real(x: TensorType) -> TensorType:
    return x.with_dtype(dt.part_dtype(x.dtype))


def _mul(b: Builder, *factors: Value) -> Value:
    """The matrix product."""
    return functools.reduce(lambda x, y: b.matmul(x, y, sum_dtype=x.type.dtype), factors)


def _one(b: Builder, value: object) -> Value:
    """The result of an op that has one."""
    (result,) = b.results(value)
    return result


def _scaled(b: Builder, x: Value, factor: float) -> Value:
    return b.multiply(x, b.full(factor, like=x.type))


def _across(b: Builder, v: Value, like: Any, axis: int) -> Value:
    """Vectors as the columns (``axis`` -1 counts along rows: element j in column j) of matrices of a type."""
    n = like.ndim
    kept = n - 1 if axis == -1 else n - 2
    return b.broadcast(v, shape=like.shape, axes=(*range(n - 2), kept))


def _number(b: Builder, v: Value, like: Any) -> Value:
    """One number for each matrix, everywhere in it."""
    return b.broadcast(v, shape=like.shape, axes=tuple(range(like.ndim - 2)))


def _diagonal_mask(b: Builder, like: Any, keep: str) -> Value:
    """Where row and column compare: ``keep`` is "equal", or "greater_equal" for the lower triangle ..."""
    rows = b.iota(shape=like.shape, axis=like.ndim - 2, dtype=dt.int64)
    columns = b.iota(shape=like.shape, axis=like.ndim - 1, dtype=dt.int64)
    return getattr(b, keep)(rows, columns)


def _masked(b: Builder, x: Value, keep: str) -> Value:
    return b.where(_diagonal_mask(b, x.type, keep), x, b.full(0, like=x.type))


def _lower_half(b: Builder, x: Value) -> Value:
    """The lower triangle with half the diagonal."""
    half = b.where(_diagonal_mask(b, x.type, "equal"), b.full(0.5, like=x.type), b.full(1, like=x.type))
    return _masked(b, b.multiply(x, half), "greater_equal")


def _symmetric(b: Builder, x: Value) -> Value:
    return _scaled(b, b.add(x, _h(b, x)), 0.5)


def _zero_or(b: Builder, g: Value | None, like: Any) -> Value:
    return b.full(0, like=like.type) if g is None else g


_EQUAL = 8  # rounding errors of the largest value, up to which two are equal


def _rounding_error(b: Builder, v: Value, like: Any, share: float) -> Value:
    """A share of the largest magnitude of vectors, for every element of the matrices made of them."""
    axes = tuple(range(len(v.type.shape) - 1))
    largest = b.max(b.abs(b.stop_gradient(v)), axes=(len(axes),))
    return b.broadcast(_scaled(b, largest, share), shape=like.shape, axes=axes)


def _reciprocal(b: Builder, x: Value, v: Value) -> Value:
    """1 / x of sums or differences of the elements of vectors, and 0 where that is nothing but rounding error."""
    if v.type.shape[-1] == 0:
        return x
    none = b.less_equal(b.abs(x), _rounding_error(b, v, x.type, _EQUAL * float(np.finfo(x.type.dtype).eps)))
    zero, one = b.full(0, like=x.type), b.full(1, like=x.type)
    return b.where(none, zero, b.divide(one, b.where(none, one, x)))


def _antisymmetric(b: Builder, x: Value) -> Value:
    return _scaled(b, b.subtract(x, _h(b, x)), 0.5)


def _by_differences(b: Builder, v: Value, skew: Any, size: Any) -> Value:
    """Divided differences: the antisymmetric part of ``skew`` over v[j] - v[i], and 0 where the two are equal.

    Where two values are close, a difference that is nothing but rounding error of columns of a ``size`` would grow to
    any number: it is 0, though it has a derivative.  Of values that are so close that they may have been equal, the
    derivatives of both would be divided twice and cancel in no digit: there they are left out.
    """
    like, eps = _real(skew.type), float(np.finfo(skew.type.dtype).eps)
    x = _antisymmetric(b, skew)
    if v.type.shape[-1] == 0:
        return x
    differences = b.subtract(_across(b, v, like, -1), _across(b, v, like, -2))

    def within(share: float) -> Any:
        return b.less_equal(b.abs(differences), _rounding_error(b, v, like, share))

    error = _scaled(b, b.add(_across(b, size, like, -1), _across(b, size, like, -2)), eps)
    nothing = b.logical_and(within(eps**0.5), b.less_equal(b.abs(x), error))
    x = b.subtract(x, b.stop_gradient(b.where(nothing, x, b.full(0, like=x.type))))
    quotients = b.multiply(x, _as(b, _reciprocal(b, differences, v), x.type))
    return b.where(within(eps**0.75), b.stop_gradient(quotients), quotients)


def _size(b: Builder, g: Value) -> Value:
    """The lengths of columns, of which no derivative is taken."""
    axis = len(g.type.shape) - 2
    return b.sqrt(b.sum(b.square(_magnitude(b, b.stop_gradient(g))), axes=(axis,)))


def _magnitude(b: Builder, x: Value) -> Value:
    return b.abs(x) if dt.is_complex(x.type.dtype) else x


def _sums(b: Builder, v: Value, like: object) -> Value:
    """1 / (v[j] + v[i]), and 0 where the two are."""
    return _reciprocal(b, b.add(_across(b, v, like, -1), _across(b, v, like, -2)), v)


# ---- Cholesky, and triangles


def _cholesky_vjp(b: Builder, gs: Any, outs: Any, a: Value) -> tuple[Cotangent, ...]:
    """Of the symmetric matrix whose lower triangle was read."""
    (factor,), (g,) = outs, gs
    inner = _lower_half(b, _mul(b, _h(b, factor), g))

    def left(x: Any) -> Any:
        """Solved by the adjoint of the factor."""
        return _conj(b, _one(b, b.triangular_solve(factor, _conj(b, x), lower=True, transposed=True)))

    return (_symmetric(b, left(_h(b, left(_h(b, inner))))),)


_host(
    "cholesky",
    1,
    lambda a: (np.linalg.cholesky(a),),
    lambda a: (a,),
    doc="The lower triangular L with L @ L.T = a (its adjoint for complex a), for a symmetric (Hermitian) positive "
    "definite a, whose lower triangle is read.",
    vjp=_cholesky_vjp,
)

_BLOCK = 32  # rows that are solved at once; below, everything is a matrix product


def _substitute(a: np.ndarray, y: np.ndarray, lower: bool) -> np.ndarray:
    """Solve by blocks: NumPy offers LAPACK's general solver only, which for a small triangle is as good."""
    out, n = np.empty_like(y), a.shape[-1]
    starts = list(range(0, n, _BLOCK))
    for start in starts if lower else reversed(starts):
        rows = slice(start, start + _BLOCK)
        done = slice(0, start) if lower else slice(start + _BLOCK, n)
        left = y[..., rows, :] - a[..., rows, done] @ out[..., done, :]
        out[..., rows, :] = np.linalg.solve(a[..., rows, rows], left)
    return out


def _triangular_solve(a: np.ndarray, y: np.ndarray, lower: bool, transposed: bool) -> tuple[np.ndarray]:
    triangle = np.tril(a) if lower else np.triu(a)
    if transposed:
        triangle = np.ascontiguousarray(np.swapaxes(triangle, -1, -2))
    return (_substitute(triangle, y, lower != transposed),)


def _solution_type(name: str, a: TensorType, y: TensorType) -> tuple[TensorType]:
    if not same_shape(a.shape[-1:], y.shape[-2:-1]):
        raise ShapeError(name, f"{y} has {y.shape[-2]} rows. Expected {a.shape[-1]}, as {a} has.")
    return (y,)


def _triangular_solve_vjp(
    b: Builder, gs: Any, outs: Any, a: Value, y: Value, lower: bool, transposed: bool
) -> tuple[Cotangent, ...]:
    (x,), (g,) = outs, gs
    back = _one(b, b.triangular_solve(a, g, lower=lower, transposed=not transposed))

    def of_matrix() -> Any:
        whole = _mul(b, x, _t(b, back)) if transposed else _mul(b, back, _t(b, x))
        return b.negative(_masked(b, whole, "greater_equal" if lower else "less_equal"))

    return of_matrix, back


_host(
    "triangular_solve",
    2,
    _triangular_solve,
    lambda a, y, lower, transposed: _solution_type("triangular_solve", a, y),
    doc="The x with a @ x = y, or a.T @ x = y, where only the lower or the upper triangle of a is read.",
    vjp=_triangular_solve_vjp,
)


# ---- linear equations


def _solve_vjp(b: Builder, gs: Any, outs: Any, a: Value, y: Value) -> tuple[Cotangent, ...]:
    (x,), (g,) = outs, gs
    back = _one(b, b.solve(_t(b, a), g))
    return lambda: b.negative(_mul(b, back, _t(b, x))), back


_host(
    "solve",
    2,
    lambda a, y: (np.linalg.solve(a, y),),
    lambda a, y: _solution_type("solve", a, y),
    doc="The x with a @ x = y.",
    vjp=_solve_vjp,
)


def _inv_vjp(b: Builder, gs: Any, outs: Sequence[Any], a: Value) -> tuple[Cotangent, ...]:
    (g,), turned = gs, _t(b, outs[0])
    return (b.negative(_mul(b, turned, g, turned)),)


_host("inv", 1, lambda a: (np.linalg.inv(a),), lambda a: (a,), doc="The inverse.", vjp=_inv_vjp)


def _pinv(a: np.ndarray, tolerance: np.ndarray) -> tuple[np.ndarray]:
    return (np.ascontiguousarray(np.linalg.pinv(a, rcond=tolerance[..., 0, 0].real)),)


def _pinv_vjp(b: Builder, gs: Any, outs: Any, a: Value, tolerance: object) -> tuple[Cotangent, ...]:
    """For matrices whose rank does not change nearby."""
    (p,), (g,) = outs, gs
    pt, gt = _h(b, p), _h(b, g)
    rows, columns = _mul(b, gt, p, pt), _mul(b, pt, p, gt)
    beyond_rows = b.subtract(rows, _mul(b, a, _mul(b, p, rows)))
    beyond_columns = b.subtract(columns, _mul(b, _mul(b, columns, p), a))
    return b.add(b.subtract(beyond_rows, _mul(b, pt, g, pt)), beyond_columns), None


_host(
    "pinv",
    2,
    _pinv,
    lambda a, tolerance: (_stacked(a, a.shape[-1], a.shape[-2]),),
    square=False,
    doc="The pseudo-inverse, where singular values up to the tolerance (one number for each matrix, [..., 1, 1]) times "
    "the largest count as zero.",
    vjp=_pinv_vjp,
)


def _lstsq(a: np.ndarray, y: np.ndarray, tolerance: np.ndarray, rank: object) -> tuple[np.ndarray, np.ndarray]:
    if a.shape[-2] > 2 * a.shape[-1] > 0 and np.isfinite(a).all():  # singular values of the triangle are those of all
        q, a = np.linalg.qr(a)
        y = _adjoint_of(q) @ y
    u, s, vt = np.linalg.svd(a, full_matrices=False)
    is_seen = s > tolerance[..., 0].real * s.max(-1, keepdims=True, initial=0)
    weights = np.divide(1, s, out=np.zeros_like(s), where=is_seen | np.isnan(s))
    return _adjoint_of(vt) @ (weights[..., None] * (_adjoint_of(u) @ y)), s


def _adjoint_of(x: np.ndarray) -> np.ndarray:
    turned = np.swapaxes(x, -1, -2)
    return turned.conj() if np.iscomplexobj(x) else turned


def _lstsq_types(a: TensorType, y: TensorType, tolerance: TensorType, rank: Extent) -> tuple[TensorType, TensorType]:
    if not same_shape(a.shape[-2:-1], y.shape[-2:-1]):
        raise ShapeError("lstsq", f"{y} has {y.shape[-2]} rows. Expected {a.shape[-2]}, as {a} has.")
    return _stacked(a, a.shape[-1], y.shape[-1]), _real(_stacked(a, rank))


def _lstsq_vjp(
    b: Builder, gs: Any, outs: Sequence[Any], a: Value, y: Value, tolerance: Any, rank: Extent
) -> tuple[Cotangent, ...]:
    """For matrices whose rank does not change nearby."""
    x, (gx, gs_values) = outs[0], gs
    of_values = None if gs_values is None else _of_singular_values(b, gs_values, a, rank)
    if gx is None:
        return of_values, None, None
    p = _one(b, b.pinv(a, tolerance))
    pt = _h(b, p)
    back = _mul(b, pt, gx)

    def of_matrix() -> Any:
        beyond_rows = _mul(b, b.subtract(y, _mul(b, a, x)), _h(b, _mul(b, p, back)))
        beyond_columns = _mul(b, _mul(b, pt, x), _h(b, b.subtract(gx, _mul(b, _h(b, a), back))))
        whole = b.subtract(b.add(beyond_rows, beyond_columns), _mul(b, back, _h(b, x)))
        return whole if of_values is None else b.add(whole, of_values)

    return of_matrix, back, None


_host(
    "lstsq",
    3,
    _lstsq,
    _lstsq_types,
    square=False,
    doc="The shortest x for which a @ x comes nearest to y, with a tolerance as of pinv; and the singular values of a, "
    "of which there are ``rank``.",
    vjp=_lstsq_vjp,
)


# ---- LU


def _lu(a: np.ndarray, rank: int) -> tuple[np.ndarray, np.ndarray]:
    """By blocks of columns, with the largest element of each column as its pivot."""
    m, n = a.shape[-2:]
    matrices = a.reshape(math.prod(a.shape[:-2]), m, n).copy()
    order = np.broadcast_to(np.arange(m), matrices.shape[:-1]).copy()
    each, last = np.arange(len(matrices)), min(m, n)
    with np.errstate(all="ignore"):
        for start in range(0, last if len(matrices) else 0, _BLOCK):
            stop = min(start + _BLOCK, last)
            for k in range(start, stop):
                pivots = k + np.abs(matrices[:, k:, k]).argmax(-1)
                for x in (matrices, order):
                    x[each, k], x[each, pivots] = x[each, pivots], x[each, k]
                pivot = matrices[:, k, k, None]
                matrices[:, k + 1 :, k] /= np.where(pivot == 0, 1, pivot)
                matrices[:, k + 1 :, k + 1 : stop] -= matrices[:, k + 1 :, k, None] * matrices[:, None, k, k + 1 : stop]
            lower = np.tril(matrices[:, start:stop, start:stop], -1) + np.eye(stop - start, dtype=a.dtype)
            right = np.linalg.solve(lower, matrices[:, start:stop, stop:])
            matrices[:, start:stop, stop:] = right
            matrices[:, stop:, stop:] -= matrices[:, stop:, start:stop] @ right
    return matrices.reshape(a.shape), order.reshape(a.shape[:-1])


def _lu_types(a: TensorType, rank: Extent) -> tuple[TensorType, TensorType]:
    return a, TensorType(a.shape[:-1], dt.int64)


def _lu_vjp(b: Builder, gs: Sequence[Any], outs: Any, a: Value, rank: Extent) -> tuple[Cotangent, ...]:
    (both, order), g, shape = outs, gs[0], a.type.shape
    m, n = shape[-2:]

    def part(x: object, rows: tuple[Extent, Extent], columns: tuple[Extent, Extent]) -> Any:
        front = shape[:-2]
        start, stop = ((*(0 for _ in front), rows[0], columns[0]), (*front, rows[1], columns[1]))
        return b.slice(x, start=start, stop=stop, step=(1,) * len(shape))

    def square(x: object) -> Any:
        return part(x, (0, rank), (0, rank))

    def unit_lower(x: Any) -> Any:
        one = b.where(_diagonal_mask(b, x.type, "equal"), b.full(1, like=x.type), b.full(0, like=x.type))
        return b.add(_masked(b, x, "greater"), one)

    def right_of_upper(x: Any, upper: Any) -> Any:
        """x @ inv(upper).mT"""
        return _t(b, _one(b, b.triangular_solve(upper, _t(b, x), lower=False, transposed=False)))

    def left_of_lower(x: Any) -> Any:
        """inv(lower).mT @ x"""
        return _one(b, b.triangular_solve(lower, x, lower=True, transposed=True))

    lower, upper = unit_lower(square(both)), _masked(b, square(both), "less_equal")
    g_lower, g_upper = square(g), square(g)
    rest = None
    rows: tuple[Extent, Extent]
    columns: tuple[Extent, Extent]
    if not equal(rank, m):  # rows below
        rows, columns = (rank, m), (0, rank)
        rest = right_of_upper(part(g, rows, columns), upper)
        g_upper = b.subtract(g_upper, _mul(b, _t(b, part(both, rows, columns)), rest))
    if not equal(rank, n):  # columns to the right
        rows, columns = (0, rank), (rank, n)
        rest = left_of_lower(part(g, rows, columns))
        g_lower = b.subtract(g_lower, _mul(b, rest, _t(b, part(both, rows, columns))))
    middle = b.add(
        _masked(b, _mul(b, _t(b, lower), _masked(b, g_lower, "greater")), "greater"),
        _masked(b, _mul(b, _masked(b, g_upper, "less_equal"), _t(b, upper)), "less_equal"),
    )
    whole = left_of_lower(right_of_upper(middle, upper))
    if rest is not None:
        whole = b.concat(whole, rest, axis=len(shape) - (2 if equal(rank, n) else 1))
    # Rows go back to where they came from: column k of the permutation has its one in row order[k].
    squares = TensorType((*shape[:-2], m, m), dt.int64)
    moved = b.equal(b.iota(shape=squares.shape, axis=len(shape) - 2, dtype=dt.int64), _across(b, order, squares, -1))
    ones = TensorType(squares.shape, a.type.dtype)
    return (_mul(b, b.where(moved, b.full(1, like=ones), b.full(0, like=ones)), whole),)


_host(
    "lu",
    1,
    _lu,
    _lu_types,
    square=False,
    doc="A lower triangle, whose diagonal of ones is left out, and an upper one in one matrix, and which row of a each "
    "row of their product is.  ``rank`` is the smaller of a's extents.",
    vjp=_lu_vjp,
)


# ---- determinants


def _cofactors(a: np.ndarray, *along: np.ndarray) -> tuple[np.ndarray]:
    n = a.shape[-1]
    if len(along) >= n:
        return (np.zeros_like(a),)
    if n <= 3:
        return (_few_cofactors(a, along),)
    # Between the bases of singular values the matrix is diagonal: all minors are products of these, without those of
    # the rows and columns that the others take, and no inverse is needed.
    u, s, vt = np.linalg.svd(a)
    sign = np.sign(np.linalg.det(u) * np.linalg.det(vt))[..., None, None]
    ut, v = np.swapaxes(u, -1, -2), np.swapaxes(vt, -1, -2)
    turned = [ut @ x @ v for x in along]
    places = list(range(len(along) + 1))
    others, cofactors = _products_without(s, len(places)), np.zeros_like(a)
    for columns in itertools.permutations(places):
        odd = sum(x > y for x, y in itertools.combinations(columns, 2)) % 2
        terms: list[Any] = [others, [..., *places]]
        for x, row in zip(turned, places):
            terms += [x, [..., row, columns[row]]]
        last, column = places[-1], columns[-1]
        summed = np.einsum(*terms, [..., last, column] if column != last else [..., last])
        part = summed if column != last else summed[..., None] * np.eye(n, dtype=a.dtype)
        cofactors = cofactors - part if odd else cofactors + part
    return (sign * (u @ cofactors @ vt),)


def _few_cofactors(a: np.ndarray, along: Sequence[np.ndarray]) -> np.ndarray:
    """Those of up to three rows, element by element."""
    n = a.shape[-1]
    if n == 0 or n == 1:
        return np.ones_like(a)

    def turned(x: np.ndarray, rows: int, columns: int) -> np.ndarray:
        return np.roll(x, (-rows, -columns), (-2, -1))

    if n == 2:
        (x,) = along or (a,)
        return turned(x, 1, 1) * np.array([[1, -1], [-1, 1]], a.dtype)

    def minors(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return turned(x, 1, 1) * turned(y, 2, 2) - turned(x, 1, 2) * turned(y, 2, 1)

    x, y = (*along, a, a)[:2]
    return minors(x, y) + minors(y, x) if along else minors(x, y)


def _products_without(s: np.ndarray, count: int) -> np.ndarray:
    """The products of all numbers but ``count``, by the places of those; 0 where a place comes twice.  Nothing is
    divided by numbers that may be 0."""
    n = s.shape[-1]
    one = np.ones((*s.shape[:-1], 1), s.dtype)
    if count > 2:
        result = np.zeros((*s.shape[:-1], *[n] * count), s.dtype)
        for k in range(n):
            left = s.copy()
            left[..., k] = 1
            rest = _products_without(left, count - 1)
            for axis in range(1, count):
                place: Any = (..., k, *[slice(None)] * (axis - 1))
                rest[place] = 0
            result[..., k] = rest
        return result
    before = np.concatenate([one, np.cumprod(s, -1)[..., :-1]], -1)
    behind = np.concatenate([np.cumprod(s[..., ::-1], -1)[..., -2::-1], one], -1)
    if count == 1:
        return before * behind
    upper = np.triu(np.ones((n, n), bool), 1)
    up_to = np.cumprod(np.where(upper, s[..., None, :], one[..., None]), -1)  # from i + 1 to j
    between = np.concatenate([np.broadcast_to(one[..., None], (*s.shape, 1)), up_to[..., :-1]], -1)
    result = np.where(upper, before[..., :, None] * between * behind[..., None, :], 0)
    return np.asarray(result + np.swapaxes(result, -1, -2), s.dtype)


def _cofactors_vjp(b: Builder, gs: Any, outs: object, a: Value, *along: Any) -> tuple[Cotangent, ...]:
    """A derivative along several matrices is the same in whatever order these come."""
    (g,) = gs

    def of(k: int) -> Any:
        return lambda: _one(b, b.cofactors(a, *along[:k], g, *along[k + 1 :]))

    return (lambda: _one(b, b.cofactors(a, *along, g)), *map(of, range(len(along))))


_host(
    "cofactors",
    None,
    _cofactors,
    lambda a, *along: (a,),
    doc="The matrix of cofactors, the derivative of the determinant; with further matrices its derivative along them.",
    vjp=_cofactors_vjp,
)


def _det_vjp(b: Builder, gs: Sequence[Any], outs: Sequence[Any], a: Value) -> tuple[Cotangent, ...]:
    if dt.is_complex(a.type.dtype):  # of matrices that have an inverse
        share = _number(b, b.multiply(gs[0], outs[0]), a.type)
        return (b.multiply(share, _t(b, _one(b, b.inv(a)))),)
    return (b.multiply(_number(b, gs[0], a.type), _one(b, b.cofactors(a))),)


_host(
    "det",
    1,
    lambda a: (np.linalg.det(a),),
    lambda a: (_stacked(a),),
    doc="The determinant.",
    vjp=_det_vjp,
)


def _slogdet_vjp(b: Builder, gs: Any, outs: Sequence[Any], a: Value) -> tuple[Cotangent, ...]:
    of_sign, g = gs
    if dt.is_complex(a.type.dtype):  # whose sign turns as the logarithm's imaginary part says
        zero = b.full(0, like=outs[1].type)
        turned = zero if of_sign is None else b.imag(b.multiply(of_sign, outs[0]))
        g = b.complex(zero if g is None else g, turned)
    return (None if g is None else b.multiply(_number(b, g, a.type), _t(b, _one(b, b.inv(a)))),)


_host(
    "slogdet",
    1,
    lambda a: tuple(np.linalg.slogdet(a)),
    lambda a: (_stacked(a), _real(_stacked(a))),
    doc="The sign of the determinant (0 for a singular matrix), and the logarithm of its magnitude.",
    vjp=_slogdet_vjp,
)


# ---- QR


def _qr(a: np.ndarray, complete: bool, rank: int) -> tuple[np.ndarray, np.ndarray]:
    q, r = np.linalg.qr(a, "complete" if complete else "reduced")
    return np.ascontiguousarray(q), np.ascontiguousarray(r)


def _qr_types(a: TensorType, complete: bool, rank: Extent) -> tuple[TensorType, TensorType]:
    m, n = a.shape[-2:]
    inner = m if complete else rank
    return _stacked(a, m, inner), _stacked(a, inner, n)


def _square_qr_cotangent(b: Builder, q: Value, r: Any, gq: Any, gr: Any) -> Any:
    """Of q @ r where r is square."""
    m = b.subtract(_mul(b, r, _h(b, gr)), _mul(b, _h(b, gq), q))
    lower = _masked(b, m, "greater")
    both = _masked(b, m, "greater_equal")
    if dt.is_complex(m.type.dtype):  # the diagonal of r is real
        both = b.where(_diagonal_mask(b, m.type, "equal"), _as(b, b.real(m), m.type), lower)
    symmetric = b.add(both, _h(b, lower))
    right = b.add(gq, _mul(b, q, symmetric))
    return _h(b, _one(b, b.triangular_solve(r, _h(b, right), lower=False, transposed=False)))


def _qr_vjp(b: Builder, gs: Sequence[Any], outs: Any, a: Value, complete: bool, rank: Extent) -> tuple[Cotangent, ...]:
    (q, r), shape = outs, a.type.shape
    m, n = shape[-2:]
    gq, gr = _zero_or(b, gs[0], q), _zero_or(b, gs[1], r)
    if equal(rank, n):
        if complete and not equal(m, n):
            raise GradientError("qr", f"the complete form of {a.type} has no derivative. Use mode='reduced'.")
        return (_square_qr_cotangent(b, q, r, gq, gr),)
    # a is wide: [x, y] = q @ [u, v], with v = q.mH @ y
    start, size = (0,) * len(shape), len(shape)
    cut = (*shape[:-1], m)
    steps = (1,) * size

    def left(x: Any) -> Any:
        return b.slice(x, start=start, stop=(*x.type.shape[:-1], m), step=steps)

    def right(x: Any) -> Any:
        return b.slice(x, start=(*start[:-1], m), stop=x.type.shape, step=steps)

    y, gv = right(a), right(gr)
    gx = _square_qr_cotangent(b, q, left(r), b.add(gq, _mul(b, y, _h(b, gv))), left(gr))
    assert gx.type.shape == cut
    return (b.concat(gx, _mul(b, q, gv), axis=size - 1),)


_host(
    "qr",
    1,
    _qr,
    _qr_types,
    square=False,
    doc="q with orthonormal columns and an upper triangular r with q @ r = a.  ``rank`` is the smaller of a's extents, "
    "which is the extent between q and r unless it is ``complete``.",
    vjp=_qr_vjp,
)


# ---- singular values


def _svd(a: np.ndarray, complete: bool, rank: object) -> tuple[np.ndarray, ...]:
    return tuple([np.ascontiguousarray(part) for part in np.linalg.svd(a, full_matrices=complete)])


def _svd_types(a: TensorType, complete: bool, rank: Extent) -> tuple[TensorType, ...]:
    m, n = a.shape[-2:]
    return (
        _stacked(a, m, m if complete else rank),
        _real(_stacked(a, rank)),
        _stacked(a, n if complete else rank, n),
    )


def _svd_vjp(b: Builder, gs: Sequence[Any], outs: Any, a: Value, complete: bool, rank: Extent) -> tuple[Cotangent, ...]:
    u, s, vt = outs
    m, n = a.type.shape[-2:]
    if complete and not equal(m, n):
        raise GradientError("svd", f"the complete form of {a.type} has no derivative. Use full_matrices=False.")
    total = None
    if gs[1] is not None:
        total = _mul(b, b.multiply(u, _across(b, _as(b, gs[1], u.type), u.type, -1)), vt)
    if gs[0] is None and gs[2] is None:
        return (total,)
    # How the bases turn where rows and columns do alike, and where they do not: only the former is infinite where
    # singular values are equal.
    alike: Any = None
    apart: Any = None
    size: Any = None
    if gs[0] is not None:
        alike = apart = _mul(b, _h(b, u), gs[0])
        size = _size(b, gs[0])
        total = _plus(b, total, _outside(b, u, gs[0], s, vt))
    if gs[2] is not None:
        turned = _mul(b, vt, _h(b, gs[2]))
        alike, apart = _plus(b, alike, turned), b.negative(turned) if apart is None else b.subtract(apart, turned)
        size = _plus(b, size, _size(b, _t(b, gs[2])))
        total = _plus(b, total, _h(b, _outside(b, _h(b, vt), _h(b, gs[2]), s, _h(b, u))))
    middle = b.add(
        _by_differences(b, s, alike, size),
        b.multiply(_antisymmetric(b, apart), _as(b, _sums(b, s, _real(apart.type)), apart.type)),
    )
    return (_plus(b, total, _mul(b, u, middle, vt)),)


def _plus(b: Builder, x: Value | None, y: Any) -> Value:
    return y if x is None else b.add(x, y)


def _outside(b: Builder, u: Value, g: Value, s: Value, vt: Value) -> Any:
    """What a cotangent of ``u`` says of directions outside of its columns."""
    beyond = b.subtract(g, _mul(b, u, _mul(b, _h(b, u), g)))
    return _mul(b, b.multiply(beyond, _across(b, _as(b, _reciprocal(b, s, s), g.type), beyond.type, -1)), vt)


_host(
    "svd",
    1,
    _svd,
    _svd_types,
    square=False,
    doc="u, s, vt with u * s @ vt = a, orthonormal columns of u and rows of vt, and descending s.  ``rank`` is the "
    "smaller of a's extents, and the extent between them unless they are ``complete``.",
    vjp=_svd_vjp,
)


def _svdvals_vjp(b: Builder, gs: Sequence[Any], outs: object, a: Value, rank: Extent) -> tuple[Cotangent, ...]:
    return (_of_singular_values(b, gs[0], a, rank),)


def _of_singular_values(b: Builder, g: Value, a: Value, rank: Extent) -> Value:
    u, _, vt = b.results(b.svd(a, complete=False, rank=rank))
    return _mul(b, b.multiply(u, _across(b, _as(b, g, u.type), u.type, -1)), vt)


_host(
    "svdvals",
    1,
    lambda a, rank: (np.linalg.svd(a, compute_uv=False),),
    lambda a, rank: (_real(_stacked(a, rank)),),
    square=False,
    doc="The singular values in descending order, of which there are ``rank``.",
    vjp=_svdvals_vjp,
)


# ---- eigenvalues of symmetric matrices


def _eigh(a: np.ndarray) -> tuple[np.ndarray, ...]:
    return tuple([np.ascontiguousarray(part) for part in np.linalg.eigh(a)])


def _eigh_vjp(b: Builder, gs: Sequence[Any], outs: Any, a: Value) -> tuple[Cotangent, ...]:
    w, v = outs
    inner = b.full(0, like=a.type)
    if gs[0] is not None:
        values = _across(b, _as(b, gs[0], a.type), a.type, -1)
        inner = b.where(_diagonal_mask(b, a.type, "equal"), values, inner)
    if gs[1] is not None:
        inner = b.add(inner, _by_differences(b, w, _mul(b, _h(b, v), gs[1]), _size(b, gs[1])))
    return (_symmetric(b, _mul(b, v, inner, _h(b, v))),)


_host(
    "eigh",
    1,
    _eigh,
    lambda a: (_real(_stacked(a, a.shape[-1])), a),
    doc="The eigenvalues of a symmetric (Hermitian) matrix, whose lower triangle is read, in ascending order, and the "
    "eigenvectors as columns.",
    vjp=_eigh_vjp,
)


def _eigvalsh_vjp(b: Builder, gs: Sequence[Any], outs: object, a: Value) -> tuple[Cotangent, ...]:
    _, v = b.results(b.eigh(a))
    return (_symmetric(b, _mul(b, b.multiply(v, _across(b, _as(b, gs[0], v.type), v.type, -1)), _h(b, v))),)


_host(
    "eigvalsh",
    1,
    lambda a: (np.linalg.eigvalsh(a),),
    lambda a: (_real(_stacked(a, a.shape[-1])),),
    doc="The eigenvalues of a symmetric (Hermitian) matrix, whose lower triangle is read, in ascending order.",
    vjp=_eigvalsh_vjp,
)


# ---- eigenvalues of any matrices: complex numbers as pairs of a real and an imaginary part


Pair = tuple[Any, Any]


def _whole(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Complex matrices of two parts; real ones of one."""
    return parts[0] if len(parts) == 1 else parts[0] + 1j * parts[1]


def _eig(*parts: np.ndarray) -> tuple[np.ndarray, ...]:
    values, vectors = np.linalg.eig(_whole(parts))
    return values.real, values.imag, vectors.real, vectors.imag


def _eigvals(*parts: np.ndarray) -> tuple[np.ndarray, ...]:
    values = np.linalg.eigvals(_whole(parts))
    return values.real, values.imag


def _pair_product(b: Builder, x: Pair, y: Pair) -> Pair:
    real = b.subtract(_mul(b, x[0], y[0]), _mul(b, x[1], y[1]))
    return real, b.add(_mul(b, x[0], y[1]), _mul(b, x[1], y[0]))


def _adjoint(b: Builder, x: Pair) -> Pair:
    return _t(b, x[0]), b.negative(_t(b, x[1]))


def _pair_solve(b: Builder, a: Pair, y: Pair) -> Pair:
    """By the real matrix of twice the size that acts on both parts."""
    shape = a[0].type.shape
    n, axis = shape[-1], len(shape) - 2
    above, below = b.concat(a[0], b.negative(a[1]), axis=axis + 1), b.concat(a[1], a[0], axis=axis + 1)
    x = _one(b, b.solve(b.concat(above, below, axis=axis), b.concat(*y, axis=axis)))
    start, step = (0,) * len(shape), (1,) * len(shape)
    front = shape[:-2]
    real = b.slice(x, start=start, stop=(*front, n, n), step=step)
    return real, b.slice(x, start=(*start[:-2], n, 0), stop=(*front, 2 * n, n), step=step)


def _eig_cotangent(b: Builder, gs: Sequence[Any], outs: Sequence[Any], inputs: Sequence[Value]) -> Any:
    """Of eigenvalues, and of what does not depend on the phase of each eigenvector (Boeddeker and others, "On the
    Computation of Complex-valued Gradients with Application to Statistically Optimum Beamforming", 2017)."""
    wr, wi, *vectors = outs
    v: Pair = (vectors[0], vectors[1])
    like = v[0].type
    on_diagonal = _diagonal_mask(b, like, "equal")
    zero = b.full(0, like=like)
    middle: Pair = (zero, zero)
    adjoint = _adjoint(b, v)
    if gs[2] is not None or gs[3] is not None:
        g = _zero_or(b, gs[2], v[0]), _zero_or(b, gs[3], v[1])
        turned = _pair_product(b, adjoint, g)
        along = b.sum(b.where(on_diagonal, turned[0], zero), axes=(like.ndim - 2,))
        lengths = _across(b, along, like, -1)
        square = _pair_product(b, adjoint, v)
        turned = tuple([b.subtract(x, b.multiply(y, lengths)) for x, y in zip(turned, square)])
        dr, di = (b.subtract(_across(b, x, like, -1), _across(b, x, like, -2)) for x in (wr, wi))
        size = b.add(b.multiply(dr, dr), b.multiply(di, di))
        largest = b.max(b.abs(b.stop_gradient(b.add(b.abs(wr), b.abs(wi)))), axes=(like.ndim - 2,))
        least = _scaled(b, largest, _EQUAL * float(np.finfo(like.dtype).eps))
        none = b.less_equal(size, _number(b, b.multiply(least, least), like))
        safe = b.where(none, b.full(1, like=like), size)
        # Divided by the conjugate of the difference.
        real = b.divide(b.subtract(b.multiply(turned[0], dr), b.multiply(turned[1], di)), safe)
        imag = b.divide(b.add(b.multiply(turned[0], di), b.multiply(turned[1], dr)), safe)
        middle = b.where(none, zero, real), b.where(none, zero, imag)
    parts = [_across(b, b.full(0, like=wr.type) if g is None else g, like, -1) for g in gs[:2]]
    middle = b.where(on_diagonal, parts[0], middle[0]), b.where(on_diagonal, parts[1], middle[1])
    cotangent = _pair_solve(b, adjoint, _pair_product(b, middle, adjoint))
    return cotangent[: len(inputs)]


def _eig_vjp(b: Builder, gs: Sequence[Any], outs: Sequence[Any], *inputs: Value) -> tuple[Cotangent, ...]:
    return _eig_cotangent(b, gs, outs, inputs)


def _eigvals_vjp(b: Builder, gs: Any, outs: object, *inputs: Value) -> tuple[Cotangent, ...]:
    return _eig_cotangent(b, (*gs, None, None), b.results(b.eig(*inputs)), inputs)


def _eigvals_types(*parts: TensorType) -> tuple[TensorType, ...]:
    return (_stacked(parts[0], parts[0].shape[-1]),) * 2


_host(
    "eig",
    None,
    _eig,
    lambda *parts: (*_eigvals_types(*parts), parts[0], parts[0]),
    doc="The eigenvalues of real matrices, or of complex ones in two parts, and the eigenvectors as columns; all in "
    "two parts.",
    vjp=_eig_vjp,
)

_host("eigvals", None, _eigvals, _eigvals_types, doc="The eigenvalues alone, in two parts.", vjp=_eigvals_vjp)


# ---- functions of matrices


def _matrix_function(name: str, doc: str) -> None:
    """The derivative of f at x along g stands beside f(x) in f of the matrix [[x, g], [0, x]]; to pull a cotangent back
    is to take the derivative at the transposed matrix."""

    def reference(a: np.ndarray) -> tuple[np.ndarray]:
        from hybridflow.compiler.ops import matrix_functions  # which few programs need

        return (getattr(matrix_functions, name)(a),)

    def vjp(b: Builder, gs: Sequence[Any], outs: object, a: Value) -> Any:
        turned, shape = _t(b, a), a.type.shape
        n, last = shape[-1], len(shape) - 1
        above = b.concat(turned, gs[0], axis=last)
        below = b.concat(b.full(0, like=a.type), turned, axis=last)
        both = _one(b, getattr(b, name)(b.concat(above, below, axis=last - 1)))
        start = (*(0 for _ in shape[:-1]), n)
        return (b.slice(both, start=start, stop=(*shape[:-1], 2 * n), step=(1,) * len(shape)),)

    _host(name, 1, reference, lambda a: (a,), doc=doc, vjp=vjp)


_matrix_function("expm", "The exponential of a matrix.")
_matrix_function("sqrtm", "The principal square root of a matrix.")
_matrix_function("logm", "The principal logarithm of a matrix.")
