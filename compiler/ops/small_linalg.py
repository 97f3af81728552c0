"""Small matrices: the order of what is done to each, and its twin in NumPy.

LAPACK is made for one large matrix.  Of matrices with up to MOST rows there are usually many, and a call for each takes
longer than what is computed; ``codegen/products/batched_small_linalg.py`` computes many at once, a matrix in each lane
of a vector. All is elimination without blocks:

**Rows are exchanged** so that pivots are large: in step k each row i below row k, one after the other, changes places
with it if its element of column k has the larger magnitude.

**Steps.**  With f = a[i, k] / a[k, k], every later element of row i, right-hand sides included, becomes
fma(-f, a[k, j], a[i, j]).  Unknowns follow from the last to the first: x[k] = y[k] / a[k, k], and y[i] of the rows
above becomes fma(-a[i, k], x[k], y[i]).  Of the inverse the right-hand sides are the identity's columns.

**Determinants** are the product of the pivots from the first to the last, negated where exchanges are odd in number.

**Cholesky.**  d = sqrt(a[k, k]), l[i, k] = a[i, k] / d, then a[i, j] becomes fma(-l[i, k], l[j, k], a[i, j]).

A matrix for which something is not finite or not positive that should be, or whose determinant is not a normal number,
is LAPACK's (``irregular``).  So are its errors.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hybridflow.compiler.ir.types import Shape
from hybridflow.compiler.ops.exact_fma import fma

MOST = 16  # rows, and right-hand sides
OPS = ("solve", "inv", "det", "cholesky")


def is_small(op: str, shapes: Sequence[Shape]) -> bool:
    """Whether an op on arrays of these shapes is computed so.  Of symbolic extents a program does not know it: it asks
    the host, which does."""
    return op in OPS and all(isinstance(n, int) and 1 <= n <= MOST for shape in shapes for n in shape[-2:])


def solve(a: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The twin of solve, before LAPACK has its part."""
    n = a.shape[-1]
    a, y, _ = _eliminated(a, y)
    x = np.empty_like(y)
    with np.errstate(all="ignore"):
        for k in reversed(range(n)):
            x[..., k, :] = y[..., k, :] / a[..., k, k, None]
            for i in range(k):
                y[..., i, :] = fma(-a[..., i, k, None], x[..., k, :], y[..., i, :])
    return x


def inv(a: np.ndarray) -> np.ndarray:
    """The twin of inv."""
    return solve(a, np.broadcast_to(np.eye(a.shape[-1], dtype=a.dtype), a.shape))


def det(a: np.ndarray) -> np.ndarray:
    """The twin of det."""
    a, _, odd = _eliminated(a, a[..., :0])
    with np.errstate(all="ignore"):
        product = a[..., 0, 0]
        for k in range(1, a.shape[-1]):
            product = product * a[..., k, k]
    return np.where(odd, -product, product)


def cholesky(a: np.ndarray) -> np.ndarray:
    """The twin of cholesky."""
    a, n = np.tril(a), a.shape[-1]
    with np.errstate(all="ignore"):
        for k in range(n):
            a[..., k, k] = np.where(a[..., k, k] > 0, np.sqrt(a[..., k, k]), np.nan)
            a[..., k + 1 :, k] /= a[..., k, k, None]
            for i in range(k + 1, n):
                for j in range(k + 1, i + 1):
                    a[..., i, j] = fma(-a[..., i, k], a[..., j, k], a[..., i, j])
    return a


def _eliminated(a: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Both after all steps, and whether the exchanges were odd in number."""
    n = a.shape[-1]
    rows = np.concatenate([a, y], -1)
    odd = np.zeros(a.shape[:-2], np.bool_)
    with np.errstate(all="ignore"):
        for k in range(n):
            for i in range(k + 1, n):
                larger = np.abs(rows[..., i, k]) > np.abs(rows[..., k, k])
                pair = rows[..., [k, i], :]
                rows[..., [k, i], :] = np.where(larger[..., None, None], pair[..., ::-1, :], pair)
                odd ^= larger
            for i in range(k + 1, n):
                factor = rows[..., i, k] / rows[..., k, k]
                rows[..., i, k + 1 :] = fma(-factor[..., None], rows[..., k, k + 1 :], rows[..., i, k + 1 :])
    return rows[..., :n], rows[..., n:], odd


def irregular(op: str, results: np.ndarray) -> np.ndarray:
    """Which of the results are LAPACK's to say."""
    if op == "det":
        size = np.abs(results)
        return ~((size >= np.finfo(results.dtype).tiny) & (size < np.inf))
    return ~np.isfinite(results).all((-1, -2))
