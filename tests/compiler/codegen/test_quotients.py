"""Division by what a loop does not change: products with a reciprocal that have the bits of a division."""

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.compiler.ir import dtypes as dt
from tests.support.bits import same_bits
from tests.support.jit_helper import compile_loop, host_target, runnable_targets

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

RUNNABLE = runnable_targets()
WIDEST = 32


def divided(dtype: np.dtype, width: int, target: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """x / y, where neighbouring ``width`` elements have the first one's divisor."""

    def build(e, x, y):
        return e.div(x, e.fixed(e.extract(y, 0)))

    return compile_loop(build, [dtype, dtype], width, RUNNABLE[target])(x, np.repeat(y, x.size // y.size))


def hardest(dtype: np.dtype, count: int) -> tuple[np.ndarray, np.ndarray]:
    """``WIDEST`` dividends for each divisor: quotients as close to the middle of two neighbours as there are any.

    With integers B of p bits, M of p + 1 that is odd, and A 2**(p + 1) = B M + 1 or B M - 1, A / B is that close.
    Half of the B are just below a power of two, where errors of reciprocals are largest.
    """
    rng, bits = np.random.default_rng(4), np.finfo(dtype).nmant + 1
    x, y = [], []
    while len(y) < count:
        least = (1 << bits - 1) - (1 << bits - 7) if len(y) % 2 else 1 << bits - 2
        b = int(rng.integers(least, 1 << bits - 1)) * 2 + 1
        m = pow(b, -1, 2 << bits)
        close = [(b * n - r) >> bits + 1 for n, r in ((m, 1), ((2 << bits) - m, -1)) if n >> bits]
        x.append(np.resize(close, WIDEST))
        y.append(b)
    return np.array(x, np.int64).astype(dtype), np.array(y, np.int64).astype(dtype)


def pairs(dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """``WIDEST`` dividends for each divisor: hard quotients, at all exponents of both, and what is no normal number."""
    rng, info = np.random.default_rng(3), np.finfo(dtype)
    x, y = hardest(dtype, 8000)
    middle = len(y) // 2
    shifts = rng.integers(-info.maxexp - info.nmant, info.maxexp, (2, middle))
    x[middle:], y[middle:] = np.ldexp(x[middle:], shifts[0][:, None]), np.ldexp(y[middle:], shifts[1])
    x[::5, 1::2] *= -1
    y[::3] *= -1
    # Of one vector in four one element is something else, and some divisors are.
    odd = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, info.max, info.tiny, -info.smallest_subnormal], dtype)
    x[np.arange(0, len(y), 4), rng.integers(0, WIDEST, len(y) // 4)] = np.resize(odd, len(y) // 4)
    y[::41] = np.resize(odd, len(y[::41]))
    y[1::41] = np.resize([2 - info.eps, 1 + info.eps, 1, 0.5], len(y[1::41]))
    return x.ravel(), y


@pytest.mark.parametrize("target", RUNNABLE, ids=str)
@pytest.mark.parametrize("dtype", [dt.float32, dt.float64], ids=str)
def test_quotients_have_the_bits_of_a_division(dtype, target):
    x, y = pairs(dtype)
    expected = x / np.repeat(y, WIDEST)
    for width in (1, 2, 4, 8, 16, WIDEST):
        assert same_bits(divided(dtype, width, target, x, y), expected), width


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_divided_by_a_statistic_have_the_bits_of_a_division(dtype):
    rng = np.random.default_rng(5)
    x = rng.standard_normal((40, 300)).astype(dtype)
    x[1, 7], x[2, 0], x[3, 299], x[4] = np.inf, -0.0, np.nan, 0
    x[5] *= 1e-30
    x[6, ::3] *= np.finfo(dtype).tiny
    x[7] *= dt.float64.type(2) ** -np.arange(300) if dtype == "float64" else 2.0**-100
    given = hf.asarray(x)
    for function in (lambda x: x / hf.max(x, axis=1, keepdims=True), lambda x: hf.max(x, axis=1, keepdims=True) / x):
        expected = function(given).numpy()
        assert same_bits(hf.function(function)(given).numpy(), expected)
    assert same_bits((given / hf.max(given, axis=1, keepdims=True)).numpy(), x / np.max(x, axis=1, keepdims=True))


@pytest.mark.skipif(not host_target().masked, reason="narrow vectors are divided as quickly")
def test_short_rows_are_divided():
    """A reciprocal for a few quotients takes longer than it saves."""
    for columns, multiplied in ((40, False), (4000, True)):
        x = np.ones((30, columns), np.float32)
        text = str(hf.function(lambda x: x / hf.sum(x, axis=1, keepdims=True)).ir(x, stage="llvm"))
        assert ("llvm.fma" in text) == multiplied, columns
