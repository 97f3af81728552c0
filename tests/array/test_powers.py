"""Powers by Python's small numbers are products, quotients and roots: their values, bits and derivatives."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import hybridflow as hf

pytestmark = pytest.mark.code

EDGES = [0.0, -0.0, 1.0, -1.0, 2.0, -3.0, 0.1, -0.7, math.inf, -math.inf, math.nan, 1e-30, -1e-30, 3e38]
SMALL = [0, 1, 2, 3, 4, -1, 0.5, -0.5]


def bits(x: Any) -> bytes:
    return np.asarray(x).tobytes()


@pytest.mark.parametrize("exponent", SMALL)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_values_are_those_of_ieee_pow(exponent: float, dtype: str) -> None:
    with np.errstate(over="ignore"):
        x = np.array(EDGES).astype(dtype)
    got = np.asarray(hf.asarray(x) ** exponent)
    assert got.dtype == x.dtype
    for value, result in zip(x.astype(float), got.astype(float)):
        try:
            exact = math.pow(value, exponent)  # C's pow, which is IEEE 754's
        except ValueError:  # a pole, or a root of something negative
            exact = math.nan if value else math.copysign(math.inf, value if exponent == -1 else 1)
        except OverflowError:
            exact = math.copysign(math.inf, value) ** exponent
        with np.errstate(over="ignore"):
            wanted = float(np.array(exact).astype(dtype))
        if math.isnan(wanted):
            assert math.isnan(result)
        else:
            assert math.copysign(1, result) == math.copysign(1, wanted), (value, exponent)
            assert result == pytest.approx(wanted, rel=3 * float(np.finfo(dtype).eps)), (value, exponent)


@pytest.mark.parametrize("exponent", [*SMALL, 2.0, np.float32(2), np.int64(3), np.float64(-0.5)])
def test_every_way_to_write_it_has_the_same_bits(exponent: Any) -> None:
    x = hf.asarray(np.array(EDGES, np.float32))
    forms = [lambda x: x**exponent, lambda x: hf.pow(x, exponent), lambda x: hf.power(x, exponent)]
    first = bits(forms[0](x))
    for form in forms:
        assert bits(form(x)) == bits(hf.function(form)(x)) == bits(form(hf.Variable(x))) == first


def test_a_numpy_scalar_that_is_an_argument_is_looked_at_when_it_comes() -> None:
    x = hf.asarray(np.random.default_rng(0).normal(size=1000).astype(np.float32))
    f = hf.function(lambda x, p: x**p)
    for exponent in [*map(np.float64, SMALL), np.float64(1.7)]:
        assert bits(f(x, exponent)) == bits(x**exponent)
    assert len(f.signatures().rows) == 1
    n = hf.asarray([3, -4, 7])
    for power in (0, 1, 2, 3, 5):
        assert bits(hf.function(lambda n, p: n**p)(n, np.int64(power))) == bits(n**power)


@pytest.mark.parametrize("exponent", SMALL)
def test_neither_graphs_nor_gradients_keep_a_power(exponent: float) -> None:
    def gradient(x: Any) -> Any:
        with hf.GradientTape() as tape:
            tape.watch(x)
            y = hf.sum(x**exponent)
        return tape.gradient(y, x)

    x = hf.asarray([0.5, 2.0, 3.0])
    compiled = hf.function(gradient)
    assert " pow(" not in compiled.ir(x)
    assert bits(compiled(x)) == bits(gradient(x))
    assert np.asarray(gradient(x)) == pytest.approx(exponent * np.asarray(x, np.float64) ** (exponent - 1.0), rel=1e-6)


def test_the_derivative_of_the_power_0_is_0_and_not_missing() -> None:
    x = hf.asarray([0.0, math.nan])
    with hf.GradientTape() as tape:
        tape.watch(x)
        y = x**0
    assert np.asarray(y).tolist() == [1, 1]
    assert np.asarray(tape.gradient(y, x)).tolist() == [0, 0]


def test_dtypes_of_powers_of_integers() -> None:
    n, b = hf.asarray([3, -2], dtype=hf.int8), hf.asarray([True, False])
    assert (n**2).dtype == (n**3).dtype == hf.int8 and np.asarray(n**3).tolist() == [27, -8]
    assert (n**2.0).dtype == (n**0.5).dtype == (n**-1.0).dtype == hf.float32
    assert np.asarray(n**-1.0).tolist() == pytest.approx([1 / 3, -0.5])
    assert (b**2).dtype == hf.int64 and (b**0).dtype == hf.int64
    assert np.asarray(hf.asarray([200], dtype=hf.uint8) ** 2).tolist() == [200 * 200 % 256]
    with pytest.raises(hf.errors.ArgumentError, match="an integer to the power -1 is not an integer"):
        n**-1
    with pytest.raises(hf.errors.ArgumentError, match="an integer to the power -1 is not an integer"):
        n ** np.int64(-1)


def test_second_derivatives() -> None:
    x = hf.asarray([0.7, 2.0])
    for exponent in SMALL:
        with hf.GradientTape() as outer:
            outer.watch(x)
            with hf.GradientTape() as inner:
                inner.watch(x)
                y = hf.sum(x**exponent)
            dy = inner.gradient(y, x)
        found = outer.gradient(dy, x, unconnected_gradients="zero")
        wanted = exponent * (exponent - 1) * np.asarray(x, np.float64) ** (exponent - 2.0)
        assert np.asarray(found) == pytest.approx(wanted, rel=1e-5, abs=1e-6)
