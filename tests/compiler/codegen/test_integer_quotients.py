"""Quotients and remainders of integers, which vectors find by dividing floats: NumPy's, for all pairs of bytes, and for
numbers beside multiples of the divisor, where rounding would show."""

from __future__ import annotations

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.errors import DivisionError


@hf.function
def parts(a, b):
    return a // b, a % b


def pairs(dtype: str) -> tuple[np.ndarray, np.ndarray]:
    limits, rng = np.iinfo(dtype), np.random.default_rng(0)
    if limits.bits == 8:
        every = np.arange(limits.min, limits.max + 1)
        a, b = np.meshgrid(every, every)
        return a.ravel().astype(dtype), b.ravel().astype(dtype)
    near = [limits.min, limits.min + 1, limits.max, limits.max - 1, limits.max // 2, limits.max // 3, 0, 1, 2, 3]
    near = np.array([*near, *((-1, -2, -3) if limits.min else ())], dtype)
    most = 1 << limits.bits // 2 - 1
    factors, divisors = (rng.integers(1, most, 20_000).astype(dtype) for _ in range(2))
    one = np.array(1, dtype)
    beside = [factors * divisors - one, factors * divisors, factors * divisors + one]
    every = rng.integers(limits.min, limits.max, (2, 20_000), dtype, True)
    large = limits.max - rng.integers(0, 1000, 20_000).astype(dtype)
    a = np.concatenate([np.repeat(near, near.size), *beside, every[0], large])
    return a, np.concatenate([np.tile(near, near.size), *[divisors] * 3, every[1], divisors])


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"])
def test_quotients_are_those_of_numpy(dtype):
    a, b = pairs(dtype)
    a, b = a[b != 0], b[b != 0]
    for count in (1, 7, 37, a.size):
        quotients, remainders = parts(a[:count], b[:count])
        with np.errstate(all="ignore"):
            assert np.array_equal(quotients, a[:count] // b[:count])
            assert np.array_equal(remainders, a[:count] % b[:count])


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32"])
def test_a_zero_raises_wherever_it_stands(dtype):
    a = np.arange(1, 38).astype(dtype)
    for place in (0, 20, 36):
        b = a.copy()
        b[place] = 0
        with pytest.raises(DivisionError, match="divided by zero"):
            parts(a, b)


def test_fastmath_divides_integers_exactly():
    a, b = pairs("uint8")
    a, b = a[b != 0], b[b != 0]
    quotients, remainders = hf.function(lambda a, b: (a // b, a % b), fastmath=True)(a, b)
    assert np.array_equal(quotients, a // b) and np.array_equal(remainders, a % b)
