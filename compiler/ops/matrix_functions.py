"""Functions of matrices in NumPy: the exponential, the principal square root and the principal logarithm.

Square root and logarithm are computed in float64, those of complex matrices in complex128.  A matrix is computed by its
eigenvalues where its eigenvectors stand apart, as those of a symmetric one do.  Else it is by iterations of products
and inverses (Higham, "Functions of Matrices", 2008, chapters 6 and 11).  What is not finite gives NaN; a matrix without
a real principal root or logarithm is a LinAlgError.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

# Of the approximation of degree 13 by Pade, and the norm up to which it has the accuracy of float64.
_PADE = (
    64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0, 129060195264000.0,
    10559470521600.0, 670442572800.0, 33522128640.0, 1323241920.0, 40840800.0, 960960.0, 16380.0, 182.0, 1.0,
)  # fmt: skip
_PADE_NORM = 5.371920351148152
_MOST_SQUARINGS = 1100  # with more, every element of an exponential overflows or vanishes

_LOG_NODES, _LOG_NORM = 7, 0.264  # likewise of the logarithm
_MOST_ROOTS = 100
_MOST_STEPS = 60
_ROOT_ERROR = 1e-8  # relative, of what is a square root at all
_MOST_SKEW = 100  # condition number of eigenvectors up to which they lose less than iterations do


def _norm(a: np.ndarray) -> np.ndarray:
    """The largest sum of magnitudes of a column."""
    return np.abs(a).sum(-2).max(-1, initial=0)


def expm(a: np.ndarray) -> np.ndarray:
    """The exponentials of a stack of matrices, by scaling and squaring (Higham, 2005)."""
    if not a.size:
        return a.copy()
    one = np.eye(a.shape[-1], dtype=a.dtype)
    with np.errstate(all="ignore"):
        size = _norm(a) / _PADE_NORM
        squarings = np.where(np.isfinite(size) & (size > 1), np.ceil(np.log2(size)), 0).astype(np.int64)
        squarings = np.minimum(squarings, _MOST_SQUARINGS)
        a = _scaled(a, -squarings[..., None, None].astype(np.intc))
        a2 = a @ a
        a4 = a2 @ a2
        a6 = a4 @ a2
        b = [a.dtype.type(x / _PADE[0]) for x in _PADE]  # the last ones would overflow in float32
        odd = a6 @ (b[13] * a6 + b[11] * a4 + b[9] * a2) + b[7] * a6 + b[5] * a4 + b[3] * a2 + b[1] * one
        odd = a @ odd
        even = a6 @ (b[12] * a6 + b[10] * a4 + b[8] * a2) + b[6] * a6 + b[4] * a4 + b[2] * a2 + b[0] * one
        result = np.linalg.solve(even - odd, even + odd)
        for step in range(int(squarings.max())):
            rest = squarings > step
            result[rest] = result[rest] @ result[rest]
    return result


def _scaled(a: np.ndarray, exponent: np.ndarray) -> np.ndarray:
    """Times a power of two."""
    if not np.iscomplexobj(a):
        return np.asarray(np.ldexp(a, exponent))
    result = np.empty_like(a)
    result.real, result.imag = np.ldexp(a.real, exponent), np.ldexp(a.imag, exponent)
    return result


def _of_each(function: Callable[[np.ndarray], np.ndarray], a: np.ndarray) -> np.ndarray:
    """A function of one finite matrix in float64 or complex128, of each in a stack."""
    wide = np.complex128 if np.iscomplexobj(a) else np.float64
    result = np.empty_like(a)
    for index in np.ndindex(a.shape[:-2]):
        matrix = a[index].astype(wide)
        result[index] = function(matrix) if np.isfinite(matrix).all() else np.nan
    return result


def _is_symmetric(a: np.ndarray) -> bool:
    return bool((a == a.T.conj()).all())


def _by_eigenvectors(a: np.ndarray, function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray | None:
    """A function of a matrix by its eigenvalues.  None where eigenvectors are too near each other for that, or where an
    eigenvalue is 0, or of a real matrix real and not positive."""
    values, vectors = np.linalg.eig(a)
    is_complex = np.iscomplexobj(a)
    if (values == 0 if is_complex else (values.imag == 0) & (values.real <= 0)).any():
        return None
    if not np.linalg.cond(vectors) < _MOST_SKEW:
        return None
    result = (vectors * function(values)) @ np.linalg.inv(vectors)
    return np.asarray(result if is_complex else result.real)


def sqrtm(a: np.ndarray) -> np.ndarray:
    """The principal square roots of a stack of matrices."""
    return _of_each(_square_root, a)


def _square_root(a: np.ndarray) -> np.ndarray:
    if not _is_symmetric(a):
        root = _by_eigenvectors(a, np.sqrt)
        return _iterated_root(a) if root is None else root
    values, vectors = np.linalg.eigh(a)
    least = -len(values) * np.finfo(np.float64).eps * np.abs(values).max(initial=0)
    if values.min(initial=0) < least:
        if np.iscomplexobj(a):
            return np.asarray((vectors * np.sqrt(values + 0j)) @ vectors.T.conj())
        raise np.linalg.LinAlgError("an eigenvalue is negative, so that there is no real square root")
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T.conj())


def _iterated_root(a: np.ndarray) -> np.ndarray:
    """By the product form of the iteration of Denman and Beavers, with determinants as scales."""
    try:
        with np.errstate(all="ignore"):
            x = _denman_beavers(a)
            is_root = bool(_norm(x @ x - a) <= _ROOT_ERROR * _norm(x) ** 2)
    except np.linalg.LinAlgError:
        is_root = False
    if not is_root:
        real = "" if np.iscomplexobj(a) else " real"
        raise np.linalg.LinAlgError(
            f"an eigenvalue is zero or negative, so that there is no{real} principal square root"
        )
    return x


def _denman_beavers(a: np.ndarray) -> np.ndarray:
    n, one = len(a), np.eye(len(a))
    x, m, last = a, a, np.inf
    for _ in range(_MOST_STEPS):
        inverse = np.linalg.inv(m)
        scale = float(np.exp(-np.linalg.slogdet(m)[1] / (2 * n))) if last > 1e-2 else 1.0
        x = 0.5 * scale * x @ (one + inverse / scale**2)
        m = 0.5 * (one + 0.5 * (scale**2 * m + inverse / scale**2))
        distance = float(_norm(m - one))
        if not distance < np.inf or distance < 1e-6:  # the error of the root is the square of that
            break
        last = distance
    # One more step without the product, whose rounding errors add up.
    return np.asarray(0.5 * (x + np.linalg.solve(x, a)))


def logm(a: np.ndarray) -> np.ndarray:
    """The principal logarithms of a stack of matrices."""
    return _of_each(_logarithm, a)


@functools.cache
def _log_rule() -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of Gauss and Legendre on [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(_LOG_NODES)
    return (nodes + 1) / 2, weights / 2


def _logarithm(a: np.ndarray) -> np.ndarray:
    if _is_symmetric(a):
        values, vectors = np.linalg.eigh(a)
        is_complex = np.iscomplexobj(a)
        if (values == 0).any() or (values.min(initial=1) < 0 and not is_complex):
            raise np.linalg.LinAlgError("an eigenvalue is zero or negative, so that there is no real logarithm")
        return np.asarray((vectors * np.log(values + 0j if is_complex else values)) @ vectors.T.conj())
    one, roots = np.eye(len(a)), 0
    if _norm(a - one) > _LOG_NORM:
        logarithm = _by_eigenvectors(a, np.log)
        if logarithm is not None:
            return logarithm
    while _norm(a - one) > _LOG_NORM:
        if roots == _MOST_ROOTS:
            raise np.linalg.LinAlgError("its roots do not come near the identity")
        a, roots = _iterated_root(a), roots + 1
    x = a - one
    total = np.zeros_like(x)
    for node, weight in zip(*_log_rule()):
        total += weight * np.linalg.solve(one + node * x, x)
    return np.asarray(2.0**roots * total)
