"""Quantiles and medians: NumPy's, eager and compiled with the same bits, with their derivatives."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors

pytestmark = pytest.mark.code

RNG = np.random.default_rng(8)
METHODS = ["linear", "lower", "higher", "nearest", "midpoint"]
SHARES = np.array([[0.0, 0.1, 0.5], [0.3, 0.999, 1.0]])
ARRAYS = {
    "some": RNG.standard_normal((4, 5, 3)),
    "one": np.array([[[2.5]]]),
    "ties": RNG.integers(0, 3, (3, 7, 2)).astype(float),
    "odd": RNG.standard_normal((1, 31, 1)) * 1e300,
    "flat": np.arange(11.0).reshape(1, 11, 1)[:, ::-1],
}
AXES: list[Any] = [None, 0, -2, (0, 2), (-1, 0, 1)]


def both(f: Any, *args: Any) -> Any:
    """The result, which has the same bits in a compiled function with fixed and with open extents."""
    eager = np.asarray(f(*args))
    signature = [hf.TensorSpec([None] * np.ndim(a), np.asarray(a).dtype) for a in args]
    for compiled in (hf.function(f), hf.function(f, input_signature=signature)):
        found = np.asarray(compiled(*args))
        assert found.dtype == eager.dtype and found.shape == eager.shape and found.tobytes() == eager.tobytes()
    return eager


@pytest.mark.parametrize("axis", AXES, ids=str)
@pytest.mark.parametrize("name", ARRAYS)
def test_quantiles_are_numpys(name: str, axis: Any) -> None:
    x = ARRAYS[name]
    for method in METHODS:
        keepdims = method in ("linear", "higher")
        wanted = np.quantile(x, SHARES, axis, method=method, keepdims=keepdims)  # type: ignore[call-overload]
        found = hf.quantile(x, SHARES, axis, method=method, keepdims=keepdims)
        np.testing.assert_allclose(found, wanted, rtol=1e-14, atol=1e-15 if abs(x).max() < 1e9 else 1e285)
    assert hf.percentile(x, 30, axis).numpy().tolist() == np.percentile(x, 30, axis).tolist()
    np.testing.assert_allclose(hf.median(x, axis, keepdims=True), np.median(x, axis, keepdims=True), rtol=1e-15)


@pytest.mark.parametrize("method", METHODS)
def test_compiled_quantiles_have_the_same_bits(method: str) -> None:
    x = RNG.standard_normal((3, 6, 5)).astype("float32")
    both(lambda x: hf.quantile(x, [0.1, 0.8], (0, 1), method=method, keepdims=True), x)
    shares = np.array([0.1, 0.5, 1.0])
    given = both(lambda x, q: hf.quantile(x, q, 1, method=method), x, shares)
    assert given.tolist() == hf.quantile(x, shares, 1, method=method).tolist()
    both(lambda x: hf.nanquantile(x, 0.3, 1, method=method), np.where(abs(x) > 1, np.float32("nan"), x))


def test_what_is_not_finite() -> None:
    inf, nan = np.inf, np.nan
    for values, q, wanted in (
        ([1, inf], [0, 0.3, 1], [1, inf, inf]),
        ([-inf, 5.0], [0, 0.3, 0.7, 1], [-inf, -inf, -inf, 5]),
        ([inf, inf], [0, 0.5], [inf, inf]),
        ([-inf, inf], [0, 0.5, 1], [-inf, nan, inf]),
        ([-1.5e308, 1.5e308], [0.25, 0.5], [-7.5e307, 0]),
        ([1, nan, 2], [0, 0.5, 1], [nan] * 3),
        ([], [0, 0.5], [nan] * 2),
    ):
        found = both(lambda x, q=tuple(q): hf.quantile(x, list(q)), np.array(values, float))
        np.testing.assert_array_equal(found, wanted)
    rows = np.array([[1, nan, 2, 4], [nan] * 4, [3, 1, 2, nan], [0, 1, 2, 3]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for axis in (None, 0, 1):
            np.testing.assert_array_equal(both(lambda x, a=axis: hf.median(x, a), rows), np.median(rows, axis))
            np.testing.assert_array_equal(both(lambda x, a=axis: hf.nanmedian(x, a), rows), np.nanmedian(rows, axis))
            for method in METHODS:
                wanted = np.nanquantile(rows, SHARES, axis, method=method)  # type: ignore[call-overload]
                np.testing.assert_allclose(hf.nanquantile(rows, SHARES, axis, method=method), wanted, rtol=1e-14)
    assert hf.median(np.zeros((0, 3)), 1).shape == (0,) and np.isnan(hf.median(np.zeros((0, 3)), 0)).all()


def test_between_negative_zeros_lie_negative_zeros() -> None:
    for method in METHODS:
        for n in (1, 2, 4):
            found = both(lambda x, m=method: hf.quantile(x, [0.0, 0.3, 0.5, 0.8, 1.0], method=m), -np.zeros(n))
            assert np.signbit(found).all() and not np.any(found)


def test_dtypes() -> None:
    for x in ([3, 1, 2], np.array([3, 1, 2], "uint8"), [True, False, True, True]):
        found = hf.quantile(x, 0.4)
        assert found.dtype == np.float32 and found.item() == np.float32(np.quantile(np.asarray(x, float), 0.4))
    half = np.array([60000, -60000], "float16")
    assert hf.median(half).dtype == np.float16 and hf.median(half).item() == 0
    assert hf.median(hf.asarray(half, dtype=hf.bfloat16)).dtype == hf.bfloat16
    assert isinstance(np.percentile(hf.ones(3), 50), hf.Tensor) and np.median(hf.asarray([1.0, 5.0])).item() == 3


@pytest.mark.parametrize("method", ["linear", "midpoint", "lower"])
def test_derivatives(method: str) -> None:
    x, q, cotangent = RNG.standard_normal((3, 5)), np.array([0.1, 0.5, 0.77]), RNG.standard_normal((3, 3))

    def loss(x: Any) -> Any:
        return hf.sum(hf.quantile(x, q, 1, method=method) * cotangent)

    wanted = np.zeros_like(x)
    for place in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[place] = 1e-6
        wanted[place] = (loss(x + step) - loss(x - step)).item() / 2e-6
    for f in (hf.grad(loss), hf.function(hf.grad(loss))):
        np.testing.assert_allclose(f(hf.asarray(x)), wanted, atol=1e-8)
    if method == "linear":
        of_q = hf.grad(lambda q: hf.quantile(hf.asarray([1.0, 4.0, 9.0]), q))(hf.asarray(0.6, dtype=hf.float64))
        np.testing.assert_allclose(of_q, 10.0)
        assert hf.grad(hf.median)(hf.asarray([1.0, 1.0])).tolist() == [0.5, 0.5]


def test_in_parts() -> None:
    x = RNG.standard_normal((4, 7))
    np.testing.assert_array_equal(hf.vmap(hf.median)(x), np.median(x, 1))
    q = np.array([0.1, 0.4, 0.6, 1.0])
    found = hf.vmap(lambda x, q: hf.quantile(x, q))(x, q)
    np.testing.assert_allclose(found, [np.quantile(*pair) for pair in zip(x, q, strict=True)], rtol=1e-14)


def test_errors() -> None:
    x = hf.asarray([1.0, 2.0])
    for q in (1.5, -0.1, [0.5, np.nan]):
        with pytest.raises(errors.ArgumentError, match=r"must lie in \[0, 1\]"):
            hf.quantile(x, q)
    with pytest.raises(errors.ArgumentError, match=r"must lie in \[0, 100\]"):
        hf.percentile(x, 101)
    with pytest.raises(errors.ArgumentError, match="method is 'cubic'"):
        hf.quantile(x, 0.5, method="cubic")
    with pytest.raises(errors.AxisError):
        hf.median(x, 1)
    with pytest.raises(errors.ShapeError, match="twice"):
        hf.median(hf.ones((2, 2)), (0, -2))
    computed = hf.function(lambda x, q: hf.quantile(x, q))(x, hf.asarray([1.5, -0.1, np.nan, 1.0]))
    np.testing.assert_array_equal(computed, [np.nan, np.nan, np.nan, 2])
    for _ in range(5):  # plans of the calls before do not answer this one
        hf.quantile(x, 0.5)
    with pytest.raises(errors.ArgumentError):
        hf.quantile(x, 2.0)
