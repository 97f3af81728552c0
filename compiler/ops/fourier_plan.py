"""How Fourier transforms are computed: the order of operations, which depends on the length alone, and its constants.

A transform of n = n1 * n2 numbers is made of n2 transforms of n1 numbers, n2 apart, and of n1 transforms of n2 numbers
(Cooley and Tukey; Bailey's four steps where n is large):

    s[k1, c] = w^(c k1) * sum over i of x[i n2 + c] w1^(i k1)            w = exp(-2i pi / n), w1 = w^n2
    y[k2 n1 + k1] = sum over c of s[k1, c] w2^(c k2)                     w2 = w^n1

Both are split on, until ``butterfly`` computes them; a tree says how.  Constants w are rounded once from extended
precision.  They multiply by re = fma(xr, wr, -(xi wi)), im = fma(xr, wi, xi wr).  Each lane of a vector does the same
to numbers of its own, so the bits depend on no width, on no number of threads and on no layout.

Lengths have no prime factor above 13 (``is_smooth``).  The front end makes others of these.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from hybridflow.compiler.ops.exact_fma import two_product
from hybridflow.quick_dataclasses import dataclass

PRIMES = (2, 3, 5, 7, 11, 13)
MOST_AT_ONCE = 16  # numbers of a butterfly: as many as registers hold
_LANES = 16  # by which lengths of parts are compared
Complex = tuple[Any, Any]


def is_smooth(n: int) -> bool:
    """Whether there is a plan for transforms of n numbers."""
    for p in PRIMES:
        while n > 1 and n % p == 0:
            n //= p
    return n == 1


@dataclass(frozen=True)
class Split:
    """A transform of ``n`` numbers: of ``first`` numbers each, and then of ``second``; without them it is a butterfly.
    ``offset`` is where its own constants begin in the table: ``first.n`` rows of ``second.n`` real parts, and as many
    imaginary ones."""

    n: int
    offset: int = 0
    first: Split | None = None
    second: Split | None = None

    @property
    def parts(self) -> tuple[Split, Split]:
        assert self.first is not None and self.second is not None
        return self.first, self.second

    @property
    def is_butterfly(self) -> bool:
        return self.first is None


@functools.lru_cache(1024)
def plan(n: int) -> Split:
    """The tree for a smooth length."""
    return _planned(n, 0)[0]


def table_size(n: int) -> int:
    """How many numbers the table of a length has."""
    return _planned(n, 0)[1]


@functools.lru_cache(4096)
def _planned(n: int, offset: int) -> tuple[Split, int]:
    """The tree whose constants begin at ``offset``, and where they end."""
    if n <= MOST_AT_ONCE:
        return Split(n), offset
    first, second = _factors(n)
    left, end = _planned(first, offset + 2 * n)
    right, end = _planned(second, end)
    return Split(n, offset, left, right), end


def _factors(n: int) -> tuple[int, int]:
    """Two factors that fill vectors well, and are alike."""

    def filled(k: int) -> int:
        return -(-k // _LANES) * _LANES

    pairs = [(k, n // k) for k in range(2, n // 2 + 1) if n % k == 0]
    return min(pairs, key=lambda p: (filled(p[0]) * p[1] + p[0] * filled(p[1]), p[0] + p[1], p[0]))


def unit_roots(k: np.ndarray, of: int, dtype: np.dtype[Any]) -> tuple[np.ndarray, np.ndarray]:
    """cos and sin of 2 pi k / ``of``, each rounded from twice the precision of float64 by operations that IEEE 754
    fixes, so on any machine alike.  Angles within an eighth of a turn alone are computed, so that what is symmetric has
    the same bits."""
    k = k.astype(np.int64) % of
    quarter = (8 * k + of) // (2 * of)  # the nearest quarter turn
    distance = 4 * k - quarter * of  # from there, in quarter turns times ``of``
    unit = math.gcd(4, of)
    if 2 * k.size * unit > of:  # many of them are the same
        c, s = _cos_sin(np.arange(0, of // 2 + 1, unit), of, dtype)
        place = np.abs(distance) // unit
        c, s = c[place], np.where(distance < 0, -s[place], s[place])
    else:
        c, s = _cos_sin(distance, of, dtype)
    quadrant = quarter % 4
    return np.choose(quadrant, [c, -s, -c, s]), np.choose(quadrant, [s, c, -s, -c])


_TERMS = 14  # of the series of both functions: those left out are below 2^-107 of the result


def _cos_sin(distance: np.ndarray, of: int, dtype: np.dtype[Any]) -> tuple[np.ndarray, np.ndarray]:
    """cos and sin of so many quarter turns over ``of``, by their series."""
    from fractions import Fraction  # which few programs need

    def inverse_factorial(n: int) -> _Double:
        exact = Fraction(1, math.factorial(n))
        high = np.float64(float(exact))
        return high, np.float64(float(exact - Fraction(float(high))))

    x, size = distance.astype(np.float64), np.float64(of)
    high = x / size
    product, rest = two_product(high, size)
    quarter_turn = np.float64(math.pi / 2), np.float64(6.123233995736766e-17)
    angle = _product((high, ((x - product) - rest) / size), quarter_turn)
    high, low = _product(angle, angle)
    square = -high, -low
    zero = np.zeros_like(x)
    cosine, sine = (zero, zero), (zero, zero)
    for j in reversed(range(_TERMS + 1)):
        cosine = _sum(_product(cosine, square), inverse_factorial(2 * j))
        sine = _sum(_product(sine, square), inverse_factorial(2 * j + 1))
    return cosine[0].astype(dtype), _product(sine, angle)[0].astype(dtype)


_Double = tuple[Any, Any]  # a number as the sum of two of float64, of which the second is a rounding error of the first


def _normal(high: Any, low: Any) -> _Double:
    total = high + low
    return total, low - (total - high)


def _product(a: _Double, b: _Double) -> _Double:
    high, low = two_product(a[0], b[0])
    return _normal(high, low + (a[0] * b[1] + a[1] * b[0]))


def _sum(a: _Double, b: _Double) -> _Double:
    high = a[0] + b[0]
    moved = high - a[0]
    low = (a[0] - (high - moved)) + (b[0] - moved)
    return _normal(high, low + (a[1] + b[1]))


def table(n: int, dtype: np.dtype[Any]) -> np.ndarray:
    """The constants of a length."""
    values = np.empty(table_size(n), dtype)

    def fill(split: Split) -> None:
        if split.is_butterfly:
            return
        first, second = split.parts
        exponents = np.arange(first.n, dtype=np.int64)[:, None] * np.arange(second.n)
        real, imaginary = unit_roots(exponents.reshape(-1), split.n, dtype)
        values[split.offset : split.offset + split.n] = real
        values[split.offset + split.n : split.offset + 2 * split.n] = -imaginary
        fill(first)
        fill(second)

    fill(plan(n))
    return values


# ---- arithmetic


class Arithmetic(Protocol):
    """What computes, element by element."""

    def add(self, a: Any, b: Any) -> Any: ...

    def sub(self, a: Any, b: Any) -> Any: ...

    def mul(self, a: Any, b: Any) -> Any: ...

    def fma(self, a: Any, b: Any, c: Any) -> Any: ...

    def neg(self, a: Any) -> Any: ...


def times(e: Arithmetic, x: Complex, w: Complex) -> Complex:
    """The product of complex numbers."""
    (xr, xi), (wr, wi) = x, w
    return e.fma(xr, wr, e.neg(e.mul(xi, wi))), e.fma(xr, wi, e.mul(xi, wr))


def is_one(split: Split, k1: object) -> bool:
    """Whether a row of constants is left out: that of number 0, where a butterfly has it."""
    return split.parts[0].is_butterfly and isinstance(k1, int) and k1 == 0


def butterfly(e: Arithmetic, xs: Sequence[Complex], dtype: np.dtype[Any]) -> list[Complex]:
    """The transform of up to 16 numbers."""
    n = len(xs)
    if n == 1:
        return list(xs)
    if n == 2:
        return [_plus(e, *xs), _minus(e, *xs)]
    if n == 4:
        return _four(e, xs)
    if n in PRIMES:
        return _odd(e, xs, dtype)
    n1 = next(k for k in ((4,) if n == 16 else (2, 3, 5)) if n % k == 0)
    n2 = n // n1
    rows: list[list[Any]] = [[None] * n2 for _ in range(n1)]
    for c in range(n2):
        for k1, x in enumerate(butterfly(e, xs[c::n2], dtype)):
            rows[k1][c] = _turned(e, x, c * k1, n, dtype)
    ys: list[Any] = [None] * n
    for k1 in range(n1):
        ys[k1::n1] = butterfly(e, rows[k1], dtype)
    return ys


def _plus(e: Arithmetic, x: Complex, y: Complex) -> Complex:
    return e.add(x[0], y[0]), e.add(x[1], y[1])


def _minus(e: Arithmetic, x: Complex, y: Complex) -> Complex:
    return e.sub(x[0], y[0]), e.sub(x[1], y[1])


def _four(e: Arithmetic, xs: Sequence[Complex]) -> list[Complex]:
    a, b, c, d = _plus(e, xs[0], xs[2]), _minus(e, xs[0], xs[2]), _plus(e, xs[1], xs[3]), _minus(e, xs[1], xs[3])
    return [
        _plus(e, a, c),
        (e.add(b[0], d[1]), e.sub(b[1], d[0])),
        _minus(e, a, c),
        (e.sub(b[0], d[1]), e.add(b[1], d[0])),
    ]


@functools.lru_cache(1024)
def _root(k: int, of: int, dtype: np.dtype[Any]) -> tuple[Any, Any]:
    real, imaginary = unit_roots(np.array([k]), of, dtype)
    return real[0], -imaginary[0]


def _turned(e: Arithmetic, x: Complex, k: int, of: int, dtype: np.dtype[Any]) -> Complex:
    """x times exp(-2i pi k / of)."""
    k %= of
    if k == 0:
        return x
    if 4 * k == of:
        return x[1], e.neg(x[0])
    if 2 * k == of:
        return e.neg(x[0]), e.neg(x[1])
    w = _root(k, of, dtype)
    if 8 * k == of:
        return e.mul(e.add(x[0], x[1]), w[0]), e.mul(e.sub(x[1], x[0]), w[0])
    if 8 * k == 3 * of:
        return e.mul(e.sub(x[0], x[1]), w[0]), e.mul(e.add(x[0], x[1]), w[0])
    return times(e, x, w)


def _odd(e: Arithmetic, xs: Sequence[Complex], dtype: np.dtype[Any]) -> list[Complex]:
    """By sums and differences of numbers that lie opposite."""
    p, half = len(xs), len(xs) // 2
    sums = [_plus(e, xs[j], xs[p - j]) for j in range(1, half + 1)]
    differences = [_minus(e, xs[j], xs[p - j]) for j in range(1, half + 1)]
    ys: list[Any] = [functools.reduce(lambda x, y: _plus(e, x, y), sums, xs[0])] + [None] * (p - 1)
    for k in range(1, half + 1):
        alike, apart = [], []
        for part in (0, 1):
            total, other = xs[0][part], None
            for j in range(1, half + 1):
                cosine, sine = _root(j * k % p, p, dtype)
                total = e.fma(sums[j - 1][part], cosine, total)
                d = differences[j - 1][part]
                other = e.mul(d, -sine) if other is None else e.fma(d, -sine, other)
            alike.append(total)
            apart.append(other)
        ys[k] = e.add(alike[0], apart[1]), e.sub(alike[1], apart[0])
        ys[p - k] = e.sub(alike[0], apart[1]), e.add(alike[1], apart[0])
    return ys


# ---- the same in NumPy


class _NumPy:
    def add(self, a: Any, b: Any) -> Any:
        return a + b

    def sub(self, a: Any, b: Any) -> Any:
        return a - b

    def mul(self, a: Any, b: Any) -> Any:
        return a * b

    def neg(self, a: Any) -> Any:
        return -a

    def fma(self, a: Any, b: Any, c: Any) -> Any:
        from hybridflow.compiler.ops.exact_fma import fma  # which few programs need

        return fma(*np.broadcast_arrays(a, b, c))


def reference(x: np.ndarray, inverse: bool = False, scale: float = 1.0) -> np.ndarray:
    """The transform of pairs along the last axis but one, with the bits of the kernel."""
    dtype, n = x.dtype, x.shape[-2]
    constants, e = table(n, dtype), _NumPy()
    real, imaginary = (np.moveaxis(x[..., part], -1, 0) for part in (0, 1))

    def run(split: Split, xs: list[Complex]) -> list[Complex]:
        if split.is_butterfly:
            return butterfly(e, xs, dtype)
        first, second = split.parts
        rows: list[list[Any]] = [[None] * second.n for _ in range(first.n)]
        for c in range(second.n):
            for k1, value in enumerate(run(first, xs[c :: second.n])):
                at = split.offset + k1 * second.n + c
                w = constants[at], constants[at + n_of(split)]
                rows[k1][c] = value if is_one(split, k1) else times(e, value, w)
        ys: list[Any] = [None] * split.n
        for k1 in range(first.n):
            ys[k1 :: first.n] = run(second, rows[k1])
        return ys

    def n_of(split: Split) -> int:
        return split.n

    with np.errstate(all="ignore"):
        xs = list(zip(imaginary, real) if inverse else zip(real, imaginary))
        ys = run(plan(n), xs)
        pairs = [(i, r) for r, i in ys] if inverse else ys
        if scale != 1:
            pairs = [(r * dtype.type(scale), i * dtype.type(scale)) for r, i in pairs]
    stacked = np.array([[np.asarray(part) for part in pair] for pair in pairs], dtype)  # [n, 2, ...]
    return np.ascontiguousarray(np.moveaxis(stacked, (0, 1), (-2, -1)))
