"""Large matrices of host ops, by recursion over blocks down to the native steps of
``compiler/codegen/products/blocked_linalg.py``.

A matrix is halved until a block fits one step; what joins two halves is a product, where nearly all of the time goes.
The threads of programs share out columns, so that bits do not depend on their number.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from hybridflow.runtime import uninterruptible
from hybridflow.runtime.host_interface import TASK
from hybridflow.runtime.machine import host_target, machine_code
from hybridflow.runtime.memory import memory_pool
from hybridflow.runtime.threads import thread_pool

# Rows, and columns, from which on it takes less time than NumPy's.
LEAST = {"cholesky": 160, "triangular_solve": 33, "lu": 33, "qr": 300, "solve": 400, "inv": 400, "slogdet": 400}

_LINE, _ALIASES = 64, 512  # bytes: of a line of cache; and a pitch with that divisor meets few sets


def computed(op: str, arrays: Sequence[np.ndarray], attrs: Mapping[str, Any]) -> tuple[np.ndarray, ...] | None:
    """The results for contiguous arrays, None where matrices are not large or not of an op that is here.  Raises
    NumPy's LinAlgError."""
    function, first = _OPS.get(op), arrays[0]
    if function is None or min(first.shape[-2:]) < LEAST[op] or not all(x.size for x in arrays):
        return None
    steps = _steps(first.dtype, host_target.target())
    return function(steps, *arrays, **attrs)


@uninterruptible.loaded
def _code() -> Any:
    from hybridflow.compiler.codegen.products import blocked_linalg  # only where something is compiled

    return blocked_linalg


class Steps:
    """The native functions for a dtype.  Arrays are two-dimensional views whose rows lie without gaps."""

    def __init__(self, dtype: np.dtype, target: Any) -> None:
        code = _code()
        text = code.text(dtype, target)
        self.dtype, self._code = (
            dtype,
            machine_code.cached_code(
                machine_code.object_key(text, target),
                lambda: machine_code.compile_object(text, target),
                *code.WORDS,
                label="blocked linear algebra",
            ),
        )
        self.tile, self.columns = code.tile_for(target, dtype), code.solve_columns(target, dtype)
        self.block, self.square = code.BLOCK, code.square_for(target, dtype)
        self._tasks = {name: self._code.addresses[name] for name in code.TASKS}
        self._words = {name: ctypes.c_int64 * len(words) for name, words in code.WORDS.items()}
        plain, task = ctypes.CFUNCTYPE(None, ctypes.c_void_p), TASK
        self._calls: dict[str, Callable[..., None]] = {
            name: (task if name in code.TASKS else plain)(self._code.addresses[name]) for name in code.WORDS
        }

    def _run_shared(self, name: str, units: int, work: int, *words: int) -> None:
        """A task, by the threads of programs where it is worth it."""
        shared = self._words[name](*words)
        host = thread_pool.host(work) if units > 1 else None
        if host is None:
            self._calls[name](ctypes.addressof(shared), 0, units, 0)
        else:
            place = ctypes.addressof(host)
            host.parallel_for(place, self._tasks[name], ctypes.addressof(shared), units, 1, 1, work)

    def _pitch(self, x: np.ndarray) -> int:
        return x.strides[0] // x.itemsize

    def update(self, c: np.ndarray, a: np.ndarray, b: np.ndarray, upper: bool = False) -> None:
        """c -= a @ b; a may have any strides."""
        (m, k), n = a.shape, b.shape[1]
        if not (m and n and k):
            return
        tiles = -(-m // self.tile.rows)
        packed = memory_pool.empty((tiles * self.tile.rows * k,), self.dtype)
        row, column = (stride // a.itemsize for stride in a.strides)
        where = packed.ctypes.data
        self._run_shared("pack", tiles, 16 * m * k, a.ctypes.data, row, column, where, m, k)
        panels = -(-n // self.tile.columns)
        measures = (self._pitch(c), where, b.ctypes.data, self._pitch(b), m, n, k, int(upper))
        self._run_shared("update", panels, 4 * m * n * k, c.ctypes.data, *measures)

    def solve(self, a: np.ndarray, x: np.ndarray, unit: bool = False) -> None:
        """x = inv(a) @ x for a lower triangle, or one with ones on its diagonal."""
        n, columns = x.shape
        if columns == 1 and self._solve_vector(a, x, unit):
            return
        if n <= self.block:
            a = np.array(a, order="C") if unit else np.ascontiguousarray(a)
            if unit:
                np.fill_diagonal(a, 1)
            units = -(-columns // self.columns)
            self._run_shared(
                "solve", units, 8 * n * n * columns, a.ctypes.data, x.ctypes.data, self._pitch(x), n, columns
            )
            return
        half = self._half(n)
        self.solve(a[:half, :half], x[:half], unit)
        self.update(x[half:], a[half:, :half], x[:half])
        self.solve(a[half:, half:], x[half:], unit)

    def _solve_vector(self, a: np.ndarray, x: np.ndarray, unit: bool) -> bool:
        """For one vector that lies in steps of one, as rows or columns of the triangle do; whether it does."""
        row, column = (stride // a.itemsize for stride in a.strides)
        sign = self._pitch(x)
        if abs(sign) != 1 or sign not in (row, column):
            return False
        name, pitch = ("solve_dots", row) if column == sign else ("solve_axpys", column)
        words = self._words[name](a.ctypes.data, pitch, sign, x.ctypes.data, len(x), int(unit))
        self._calls[name](ctypes.addressof(words))
        return True

    def _half(self, n: int) -> int:
        """About the half, in whole blocks."""
        return -(-n // (2 * self.block)) * self.block

    def cholesky(self, a: np.ndarray) -> None:
        """The upper factor, above and on the diagonal."""
        n = len(a)
        if n <= self.block:
            words = self._words["cholesky"](a.ctypes.data, self._pitch(a), n, 0)
            self._calls["cholesky"](ctypes.addressof(words))
            if words[3] >= 0:
                raise np.linalg.LinAlgError("Matrix is not positive definite")
            return
        half = self._half(n)
        self.cholesky(a[:half, :half])
        right = a[:half, half:]
        self.solve(a[:half, :half].T, right)
        self.update(a[half:, half:], right.T, right, upper=True)
        self.cholesky(a[half:, half:])

    def lu(self, a: np.ndarray, pivots: np.ndarray) -> None:
        """Both factors, and in ``pivots`` with which row each row changed places, in order."""
        m, n = a.shape
        if m == 0:
            return
        if n <= min(m, self.block):
            words = self._words["lu"](a.ctypes.data, self._pitch(a), m, n, pivots.ctypes.data)
            self._calls["lu"](ctypes.addressof(words))
            return
        # Of a wide matrix the columns beyond the last pivot are solved for at once.
        half = m if n > m else self._half(n)
        self.lu(a[:, :half], pivots[:half])
        right = a[:, half:]
        self._swap(right, pivots[:half])
        self.solve(a[:half, :half], right[:half], unit=True)
        self.update(right[half:], a[half:, :half], right[:half])
        self.lu(a[half:, half:], pivots[half:])
        self._swap(a[half:, :half], pivots[half:])
        pivots[half:] += half

    def _swap(self, a: np.ndarray, pivots: np.ndarray) -> None:
        words = self._words["swap"](a.ctypes.data, self._pitch(a), pivots.ctypes.data, len(pivots), a.shape[1])
        self._calls["swap"](ctypes.addressof(words))

    def qr(self, a: np.ndarray, tau: np.ndarray) -> None:
        """Reflections below the diagonal and in ``tau``, and on and above it what they make of the matrix."""
        n = len(tau)
        for start in range(0, n, self.block):
            stop = min(start + self.block, n)
            part, factors = a[start:, start:stop], tau[start:stop]
            words = self._words["qr"](part.ctypes.data, self._pitch(part), *part.shape, factors.ctypes.data)
            self._calls["qr"](ctypes.addressof(words))
            self.reflect(part, factors, a[start:, stop:], transposed=True)

    def reflect(self, a: np.ndarray, tau: np.ndarray, c: np.ndarray, transposed: bool) -> None:
        """c becomes the product of several reflections with it, or that of the ``transposed`` ones.

        The product of reflections is I - V T V^T.  The inverse of T has the factors' inverses on its diagonal and above
        it the products of vectors (Joffrain and others, "Accumulating Householder transformations", 2006).
        """
        k, n = a.shape[1], c.shape[1]
        if not n:
            return
        vectors, turned = _copy(a), _empty(a)
        vectors[:k] = np.tril(a[:k], -1)
        np.fill_diagonal(vectors, 1)
        turned = np.negative(vectors, out=turned).T
        products, parts = np.zeros((k, k), self.dtype), memory_pool.empty((k, n), self.dtype)
        parts[...] = 0
        self.update(products, turned, vectors, upper=True)
        with np.errstate(divide="ignore"):
            np.fill_diagonal(products, 1 / tau)
        self.update(parts, turned, c)
        if transposed:
            self.solve(products.T, parts)
        else:
            self.solve(products[::-1, ::-1], parts[::-1])
        self.update(c, vectors, parts)

    def transposed(self, a: np.ndarray, out: np.ndarray, lower: bool = False, upper: bool = False) -> np.ndarray:
        """``out`` is a square matrix with rows and columns exchanged: of its lower triangle alone, or of its upper one
        with zeros beside."""
        n = len(a)
        words = a.ctypes.data, self._pitch(a), out.ctypes.data, self._pitch(out), n, int(lower), int(upper)
        self._run_shared("transpose", -(-n // self.square), 16 * n * n, *words)
        return out


@functools.cache
def _steps(dtype: np.dtype, target: object) -> Steps:
    return Steps(dtype, target)


def _empty(like: np.ndarray) -> np.ndarray:
    """Memory that has been used before, if there is some: fresh pages take as long as much of the work."""
    return memory_pool.empty(like.shape, like.dtype)


def _copy(a: np.ndarray) -> np.ndarray:
    out = _empty(a)
    out[...] = a
    return out


def _spread(like: np.ndarray, into: np.ndarray | None = None) -> np.ndarray:
    """A copy of a matrix in memory where rows of a block of columns do not all come to the same places of a cache; that
    may be ``into``."""
    rows, columns = like.shape
    beyond = _LINE // like.itemsize if columns * like.itemsize % _ALIASES == 0 else 0
    if into is None or beyond:
        into = memory_pool.empty((rows, columns + beyond), like.dtype)[:, :columns]
    out = into
    out[...] = like
    return out


def _cholesky(steps: Steps, a: np.ndarray) -> tuple[np.ndarray]:
    out, upper = _empty(a), memory_pool.empty(a.shape[-2:], a.dtype)
    for index in np.ndindex(a.shape[:-2]):
        steps.transposed(a[index], upper, lower=True)
        steps.cholesky(upper)
        steps.transposed(upper, out[index], upper=True)
    return (out,)


def _check_diagonal(a: np.ndarray) -> None:
    if (np.diagonal(a) == 0).any():
        raise np.linalg.LinAlgError("Singular matrix")


def _triangular_solve(steps: Steps, a: np.ndarray, y: np.ndarray, lower: bool, transposed: bool) -> tuple[np.ndarray]:
    out = _copy(y)
    for index in np.ndindex(a.shape[:-2]):
        _check_diagonal(a[index])
        _solve_triangle(steps, a[index].T if transposed else a[index], out[index], lower != transposed)
    return (out,)


def _solve_triangle(steps: Steps, a: np.ndarray, x: np.ndarray, lower: bool) -> None:
    """An upper triangle is a lower one in which everything is read from behind."""
    if lower:
        steps.solve(a, x)
    else:
        steps.solve(a[::-1, ::-1], x[::-1])


def _factored(steps: Steps, a: np.ndarray, into: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Both factors of a copy of one matrix, where its rows come from, and the exchanges."""
    both, pivots = _spread(a, into), np.zeros(min(a.shape), np.int64)
    steps.lu(both, pivots)
    order = [*range(len(a))]
    for k, p in enumerate(pivots.tolist()):
        order[k], order[p] = order[p], order[k]
    return both, np.array(order, np.int64), pivots


def _lu(steps: Steps, a: np.ndarray, rank: object) -> tuple[np.ndarray, np.ndarray]:
    out, order = _empty(a), np.empty(a.shape[:-1], np.int64)
    for index in np.ndindex(a.shape[:-2]):
        place = out[index]
        both, order[index], _ = _factored(steps, a[index], place)
        if both is not place:
            place[...] = both
    return out, order


def _qr(steps: Steps, a: np.ndarray, complete: bool, rank: object) -> tuple[np.ndarray, np.ndarray]:
    m, n = a.shape[-2:]
    k = min(m, n)
    inner = m if complete else k
    q = memory_pool.empty((*a.shape[:-2], m, inner), a.dtype)
    r = memory_pool.empty((*a.shape[:-2], inner, n), a.dtype)
    for index in np.ndindex(a.shape[:-2]):
        both, tau, out = _spread(a[index]), np.zeros(k, a.dtype), q[index]
        steps.qr(both, tau)
        _keep_upper(both[:inner], r[index], steps.block)
        out[...] = 0
        np.fill_diagonal(out, 1)
        for start in reversed(range(0, k, steps.block)):
            stop = min(start + steps.block, k)
            steps.reflect(both[start:, start:stop], tau[start:stop], out[start:, start:], transposed=False)
    return q, r


def _keep_upper(a: np.ndarray, out: np.ndarray, block: int) -> None:
    """A copy with zeros below the diagonal."""
    for start in range(0, len(a), block):
        rows = slice(start, start + block)
        out[rows, :start] = 0
        out[rows, start:] = a[rows, start:]
        out[rows, rows] = np.triu(a[rows, rows])


def _solve(steps: Steps, a: np.ndarray, y: np.ndarray) -> tuple[np.ndarray]:
    out = _empty(y)
    for index in np.ndindex(a.shape[:-2]):
        both, order, _ = _factored(steps, a[index])
        _check_diagonal(both)
        out[index] = y[index][order]
        steps.solve(both, out[index], unit=True)
        _solve_triangle(steps, both, out[index], False)
    return (out,)


def _inv(steps: Steps, a: np.ndarray) -> tuple[np.ndarray]:
    return _solve(steps, a, np.broadcast_to(np.eye(a.shape[-1], dtype=a.dtype), a.shape))


def _slogdet(steps: Steps, a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    sign, size = np.empty(a.shape[:-2], a.dtype), np.empty(a.shape[:-2], a.dtype)
    for index in np.ndindex(a.shape[:-2]):
        both, _, pivots = _factored(steps, a[index])
        diagonal = np.diagonal(both)
        odd = np.count_nonzero(pivots != np.arange(len(pivots))) % 2
        with np.errstate(all="ignore"):
            sign[index] = np.prod(np.sign(diagonal)) * (-1 if odd else 1)
            size[index] = np.log(np.abs(diagonal)).sum()
    return sign, size


_OPS: dict[str, Callable[..., tuple[np.ndarray, ...]]] = {
    "cholesky": _cholesky,
    "triangular_solve": _triangular_solve,
    "lu": _lu,
    "qr": _qr,
    "solve": _solve,
    "inv": _inv,
    "slogdet": _slogdet,
}
