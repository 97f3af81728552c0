"""Array functions with NumPy's names beside NumPy itself: eagerly, compiled, with open extents, mapped, differentiated.

Inputs have NaN, infinities, signed zeros, one element and none.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors

RNG = np.random.default_rng(25)
ODD = np.array([1.5, -0.0, np.nan, -3.0, np.inf, 0.0, 2.0, 2.0, -np.inf, np.nan, 0.5])
PLAIN = RNG.normal(size=11)
MATRIX = np.where(RNG.uniform(size=(4, 7)) < 0.3, np.nan, RNG.normal(size=(4, 7)))
FULL = RNG.normal(size=(4, 7))
WHOLE = RNG.integers(-5, 6, 11)
BYTES = RNG.integers(0, 256, (3, 5)).astype(np.uint8)
CUBE = RNG.normal(size=(2, 3, 4))
PLACES = np.cumsum(RNG.uniform(0.1, 1.0, 11))

Call = Callable[[Any, Any], Any]
# The function of a module, hf or NumPy, and of an array, with the arrays that it is tried on.
CASES: dict[str, tuple[Call, tuple[np.ndarray, ...]]] = {
    "nansum": (lambda m, x: [m.nansum(x), m.nansum(x, axis=-1, keepdims=True)], (ODD[:3], MATRIX, WHOLE)),
    "nanprod": (lambda m, x: m.nanprod(x, axis=-1), (ODD[:4], MATRIX, WHOLE)),
    "nanmean": (lambda m, x: [m.nanmean(x), m.nanmean(x, axis=0)], (ODD, MATRIX, MATRIX[:, :0], ODD[2:3])),
    "nanmax": (lambda m, x: [m.nanmax(x), m.nanmin(x, axis=-1)], (ODD, MATRIX, WHOLE, ODD[2:3])),
    "nanargmax": (lambda m, x: [m.nanargmax(x), m.nanargmin(x, axis=-1)], (ODD, MATRIX, WHOLE)),
    "cov without observations": (lambda m, x: [m.cov(x), m.cov(FULL, ddof=9)], (FULL[:, :0], FULL[:, :1])),
    "average": (
        lambda m, x: [m.average(x), *m.average(x, axis=-1, weights=np.arange(1.0, 1 + x.shape[-1]), returned=True)],
        (PLAIN, FULL, CUBE),
    ),
    "average, keepdims": (lambda m, x: m.average(x, axis=(0, 1), keepdims=True), (FULL, CUBE)),
    "ptp": (lambda m, x: [m.ptp(x), m.ptp(x, axis=0, keepdims=True)], (FULL, WHOLE, ODD)),
    "cov": (lambda m, x: [m.cov(x), m.cov(x, rowvar=False, bias=True), m.cov(x, x[::-1], ddof=0)], (FULL, PLAIN)),
    "corrcoef": (lambda m, x: [m.corrcoef(x), m.corrcoef(x, rowvar=False)], (FULL, PLAIN)),
    "nancumsum": (lambda m, x: [m.nancumsum(x, axis=-1), m.nancumprod(x, axis=0)], (ODD[:3], MATRIX, WHOLE)),
    "nanpercentile": (lambda m, x: m.nanpercentile(x, [10.0, 60.0], axis=-1), (MATRIX, PLAIN)),
    "diag": (lambda m, x: [m.diag(x, k) for k in (-2, 0, 1)], (ODD, FULL, WHOLE, PLAIN[:0], PLAIN[:1])),
    "ediff1d": (lambda m, x: [m.ediff1d(x), m.ediff1d(x, 3, [1, 2])], (ODD, WHOLE, FULL, ODD[:1], ODD[:0])),
    "trapezoid": (lambda m, x: [m.trapezoid(x, axis=0), m.trapezoid(x, dx=0.25)], (PLAIN, FULL, PLAIN[:1])),
    "gradient": (lambda m, x: [m.gradient(x), m.gradient(x, 0.5, edge_order=2)], (PLAIN, PLAIN[:3])),
    "gradient of places": (lambda m, x: [m.gradient(x, PLACES, edge_order=k) for k in (1, 2)], (PLAIN,)),
    "gradient, axes": (lambda m, x: m.gradient(x, 2.0, 0.5, axis=(1, 0)), (FULL, CUBE)),
    "unwrap": (lambda m, x: [m.unwrap(3 * x), m.unwrap(9 * x, discont=4.0, axis=0)], (PLAIN, FULL, PLAIN[:1])),
    "unwrap, period": (lambda m, x: m.unwrap(x, period=2.5), (PLAIN, np.array([0.0, 1.25, 0.0, -1.25, 5.0]))),
    "interp": (lambda m, x: m.interp(x, PLACES, PLAIN), (ODD, FULL * 9, PLACES, ODD[:0])),
    "interp, ends": (lambda m, x: m.interp(x, [0.0, 0.0, 1.0], [1.0, 5.0, 3.0], -7.0, 9.0), (ODD, PLAIN)),
    "interp, infinite values": (
        lambda m, x: m.interp(x, [-2.0, -1.0, 0.0, 1.0, 2.0], [1.0, np.inf, np.inf, -np.inf, 3.0]),
        (ODD, FULL, np.array([-2.0, -1.0, -0.5, 0.0, 1.0, 2.0])),
    ),
    "interp of one": (lambda m, x: m.interp(x, [0.5], [3.0]), (PLAIN, np.array([-np.inf, np.inf]))),
    "interp, period": (lambda m, x: m.interp(x, [190.0, -190, 350, -350], [5.0, 10, 3, 4], period=360), (9 * FULL,)),
    "convolve": (lambda m, x: [m.convolve(x, PLACES[:4], k) for k in ("full", "same", "valid")], (PLAIN, PLAIN[:2])),
    "convolve ints": (lambda m, x: m.convolve(x, WHOLE[:3]), (WHOLE, WHOLE[:1])),
    "correlate": (lambda m, x: [m.correlate(x, PLACES[:4], k) for k in ("full", "same", "valid")], (PLAIN, PLAIN[:2])),
    "polyval": (lambda m, x: [m.polyval([2.0, -1.0, 0.5], x), m.polyval(WHOLE[:0], x)], (ODD, FULL)),
    "polyfit": (lambda m, x: m.polyfit(PLACES, x, 3), (PLAIN,)),
    "polyfit, weights": (lambda m, x: m.polyfit(PLACES, x, 2, w=PLACES), (PLAIN, RNG.normal(size=(11, 2)))),
    "digitize": (lambda m, x: [m.digitize(x, [-1.0, 0.0, 2.0], right=r) for r in (False, True)], (ODD, FULL, WHOLE)),
    "digitize, down": (lambda m, x: [m.digitize(x, [2, 0, -1], right=r) for r in (False, True)], (ODD, FULL, WHOLE)),
    "lexsort": (lambda m, x: m.lexsort((x, x > 0)), (PLAIN, WHOLE, PLAIN[:1])),
    "partition": (lambda m, x: [m.sort(m.partition(x, 1, axis=0), axis=0), m.partition(x, -2)[..., -2]], (PLAIN, FULL)),
    "select": (lambda m, x: m.select([x < 0, x > 1], [x * 2, x * x], -7), (ODD, FULL, WHOLE)),
    "piecewise": (lambda m, x: m.piecewise(x, [x < 0, x >= 2], [-1, lambda t: t * t, lambda t: t + 1]), (ODD, WHOLE)),
    "piecewise, no other": (lambda m, x: m.piecewise(x, [x < 0, x >= 2], [lambda t, k: k * t, 5], 3), (ODD, WHOLE)),
    "choose": (lambda m, x: [m.choose(x, [x, 2 * x, -x], mode=k) for k in ("wrap", "clip")], (WHOLE,)),
    "rot90": (lambda m, x: [m.rot90(x, k, axes=(-1, 0)) for k in range(-2, 4)], (FULL, CUBE, FULL[:0])),
    "kron": (lambda m, x: [m.kron(x, FULL[:2]), m.kron(PLACES[:2], x)], (PLAIN, CUBE, WHOLE, PLAIN[:0])),
    "vander": (
        lambda m, x: [m.vander(x), m.vander(x, 4, increasing=True), m.vander(x, 0)],
        (PLAIN, WHOLE, PLAIN[:0], (WHOLE * 9).astype(np.int8)),
    ),
    "unravel_index": (lambda m, x: m.unravel_index(abs(x) % 24, (2, 3, 4)), (WHOLE, BYTES.astype(np.int64))),
    "ravel_multi_index": (
        lambda m, x: [m.ravel_multi_index((x, x + 1), (4, 5), mode=k) for k in ("wrap", "clip", ("clip", "wrap"))],
        (WHOLE,),
    ),
    "bits": (
        lambda m, x: m.bitwise_count(x),
        (WHOLE, BYTES, np.array([-128, 127, -1], np.int8), WHOLE.astype(np.int32)),
    ),
    "extremes of int64": (lambda m, x: m.bitwise_count(x), (np.array([-(2**63), 2**63 - 1, 0]), np.array([2**64 - 1]))),
    "packbits": (
        lambda m, x: [m.packbits(x, k, b) for k in (None, -1) for b in ("big", "little")],
        (WHOLE, BYTES % 3, FULL > 0, WHOLE[:0]),
    ),
    "unpackbits": (lambda m, x: [m.unpackbits(x), m.unpackbits(x, 0, bitorder="little")], (BYTES, BYTES[:0])),
    "unpackbits, count": (lambda m, x: [m.unpackbits(x, -1, k) for k in (0, 7, 60, -3)], (BYTES,)),
    "divmod": (lambda m, x: m.divmod(x, 3), (PLAIN, WHOLE)),
    "gcd": (
        lambda m, x: [m.gcd(x, 12), m.lcm(x, 6), m.gcd(x, x[::-1] * 4), m.lcm(x, x[::-1])],
        (WHOLE, WHOLE.astype(np.int16), np.array([2**62, 3 * 2**40, 0, -1])),
    ),
    "fmod": (lambda m, x: [m.fmod(x, 1.25), m.fmod(x, -np.inf)], (ODD, FULL)),
    "fmod of ints": (lambda m, x: [m.fmod(x, 3), m.fmod(x, -3)], (WHOLE, np.array([-(2**63), 2**63 - 1]))),
    "float_power": (lambda m, x: m.float_power(x, 3), (PLAIN, WHOLE, BYTES)),
    "exp2": (lambda m, x: m.exp2(x), (ODD, FULL)),
    "angles": (lambda m, x: [m.deg2rad(x), m.rad2deg(x)], (ODD,)),
    "fmax": (lambda m, x: [m.fmax(x, 0.25), m.fmin(x, x[::-1])], (ODD, MATRIX)),
    "fmax of ints": (lambda m, x: [m.fmax(x, 2), m.fmin(x, x[::-1])], (WHOLE, BYTES)),
    "heaviside": (lambda m, x: m.heaviside(x, 0.25), (ODD,)),
    "isposinf": (lambda m, x: [m.isposinf(x), m.isneginf(x)], (ODD, FULL)),
    "modf": (lambda m, x: m.modf(x), (ODD, FULL)),
    "cbrt": (lambda m, x: m.cbrt(x), (ODD, FULL)),
    "frexp": (lambda m, x: m.frexp(x), (ODD, FULL, np.array([5e-324, -1.7e308, 2.0**-1022]))),
    "ldexp": (lambda m, x: [m.ldexp(x, 3), m.ldexp(x, np.arange(-5, 6) * 200)], (ODD, 1e-290 * PLAIN, 1e290 * PLAIN)),
    "tri": (lambda m, x: [m.tri(3, dtype="float64"), m.tri(3, 5, 1, dtype=bool), m.tri(4, 2, -2, dtype=int)], (PLAIN,)),
    "grids": (lambda m, x: [m.mgrid[0:3], m.mgrid[1:7:2, 0:2], *m.ogrid[2:4, 0:3, 1:2]], (PLAIN,)),
    "ix_": (lambda m, x: x[m.ix_([1, 0], [1, 1, 0])], (FULL, CUBE)),
    "put_along_axis": (lambda m, x: _put(m, x, np.array([[1], [0], [2], [1]]), -1), (FULL,)),
}
STEPS = {"exp2": 1e-12, "polyfit": 1e-9, "polyfit, weights": 1e-9}


def _put(m: Any, x: Any, places: np.ndarray, axis: int) -> Any:
    if m is hf:
        return hf.put_along_axis(x, places, 9.0, axis)
    out = x.copy()
    np.put_along_axis(out, places, 9.0, axis)
    return out


def leaves(value: Any) -> list[Any]:
    return [leaf for part in value for leaf in leaves(part)] if isinstance(value, (list, tuple)) else [value]


def agree(found: Any, expected: Any, rtol: float) -> None:
    found, expected = leaves(found), leaves(expected)
    assert len(found) == len(expected)
    for one, other in zip(found, map(np.asarray, expected)):
        assert isinstance(one, hf.Tensor) and one.shape == other.shape and one.dtype == other.dtype
        np.testing.assert_allclose(one.numpy(), other, rtol=rtol, atol=rtol)


def same_bits(found: Any, expected: Any) -> None:
    for one, other in zip(leaves(found), leaves(expected), strict=True):
        assert one.type == other.type and one.numpy().tobytes() == other.numpy().tobytes()


@pytest.mark.parametrize("name", CASES)
def test_as_numpy_eagerly_and_compiled(name: str) -> None:
    call, arrays = CASES[name]
    for x in arrays:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = call(np, x)
        found = call(hf, hf.asarray(x))
        agree(found, expected, STEPS.get(name, 1e-13))
        same_bits(hf.function(lambda x, call=call: call(hf, x))(hf.asarray(x)), found)


OPEN = (
    "nanmean nanmax nancumsum ediff1d trapezoid gradient unwrap interp convolve correlate digitize lexsort select "
    "packbits bits fmod modf choose vander kron"
)


@pytest.mark.parametrize("name", OPEN.split())
def test_open_extents(name: str) -> None:
    """One program for vectors of any length."""
    call = CASES[name][0]
    f = hf.function(lambda x: call(hf, x))
    whole = name in ("bits", "packbits", "choose")
    for n in (5, 6, 7, 9, 12, 30):
        x = RNG.integers(-4, 5, n) if whole else RNG.normal(size=n)
        agree(f(hf.asarray(x)), call(np, x), 1e-11)
    assert len(f.concrete_functions()) <= 4  # some know whether there is a rest


@pytest.mark.parametrize("op", ["cummax", "cummin", "cumlogsumexp"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8", "float16"])
def test_running_extremes(op: str, dtype: str) -> None:
    pick = {"cummax": np.maximum, "cummin": np.minimum, "cumlogsumexp": np.logaddexp}[op]
    f = getattr(hf, op)
    for shape in ((0,), (1,), (7,), (3, 0), (3, 131), (2, 70, 3), (20001,)):
        x = (RNG.normal(size=shape) * 20).astype(dtype)
        for axis in range(len(shape)):
            found = f(hf.asarray(x), axis=axis)
            wide = x.astype(np.float64) if op == "cumlogsumexp" else x
            expected = pick.accumulate(wide, axis=axis)
            kind = dtype if op != "cumlogsumexp" or "float" in dtype else "float32"
            assert found.dtype == np.dtype(kind)
            rtol = {"float16": 2e-3, "float32": 1e-5}.get(kind, 1e-13) if op == "cumlogsumexp" else 0
            np.testing.assert_allclose(found.numpy().astype(np.float64), expected, rtol=rtol, atol=rtol)
            same_bits(hf.function(lambda x, axis=axis: f(x, axis=axis))(hf.asarray(x)), found)


def test_running_extremes_of_nan_and_zeros() -> None:
    x = hf.asarray([-0.0, 0.0, -0.0, 1.0, np.nan, 2.0])
    assert np.signbit(hf.cummax(x).numpy()[:4]).tolist() == [True, False, False, False]
    assert np.signbit(hf.cummin(x).numpy()[:4]).tolist() == [True] * 4
    assert np.isnan(hf.cummax(x).numpy()).tolist() == [False] * 4 + [True] * 2
    low = hf.asarray([-np.inf, -np.inf, 0.0, np.inf, 1.0])
    np.testing.assert_array_equal(hf.cumlogsumexp(low), np.float32([-np.inf, -np.inf, 0.0, np.inf, np.inf]))
    with pytest.raises(errors.ArgumentError, match="axis must be given"):
        hf.cummax(hf.ones((2, 2)))


def test_derivatives_of_running_extremes_go_to_what_is_taken() -> None:
    weights = hf.asarray([1.0, 2.0, 4.0, 8.0, 16.0])
    f = hf.grad(lambda x: hf.sum(hf.cummax(x) * weights))
    assert f(hf.asarray([3.0, 1.0, 3.0, 5.0, 2.0])).tolist() == [3.0, 0.0, 4.0, 24.0, 0.0]
    assert hf.function(f)(hf.asarray([1.0, 2.0, np.nan, 5.0, 2.0])).tolist() == [1.0, 2.0, 28.0, 0.0, 0.0]
    g = hf.grad(lambda x: hf.sum(hf.cumlogsumexp(x)))
    np.testing.assert_array_equal(g(hf.asarray([-np.inf, 0.0])), np.float32([1.0, 1.0]))


SMOOTH: dict[str, Callable[[Any], Any]] = {
    "cummax": lambda x: hf.cummax(x, axis=0),
    "cummin": lambda x: hf.cummin(x, axis=0),
    "cumlogsumexp": lambda x: hf.cumlogsumexp(x, axis=0),
    "nanvar": lambda x: hf.nanvar(hf.concat([x, hf.asarray([np.nan])]), correction=1),
    "nanmax": lambda x: hf.nanmax(hf.concat([x, hf.asarray([np.nan])])),
    "interp": lambda x: hf.interp(x, PLACES - 3, PLAIN),
    "interp of values": lambda x: hf.interp([0.3, 1.7], PLACES[:8], x),
    "interp of places": lambda x: hf.interp([0.3, 1.7], hf.sort(x), PLAIN[:8]),
    "gradient": lambda x: hf.gradient(x, edge_order=2),
    "trapezoid": lambda x: hf.trapezoid(x, x * x),
    "unwrap": lambda x: hf.unwrap(x * 5),
    "convolve": lambda x: hf.convolve(x, x[:3]),
    "correlate": lambda x: hf.correlate(x, x[2:6], "same"),
    "polyval": lambda x: hf.polyval(x[:3], x),
    "polyfit": lambda x: hf.polyfit(PLACES[:8], x, 2),
    "select": lambda x: hf.select([x < 0, x > 0.5], [x * x, 3 * x], x),
    "put_along_axis": lambda x: hf.put_along_axis(x * x, [1, 3], x[:2]),
    "kron": lambda x: hf.kron(x[:2], x),
    "rolling": lambda x: hf.rolling(x, 3, "max", min_count=1) + hf.rolling(x, 2, min_count=1),
    "rolling, long": lambda x: hf.rolling(x, 30, "sum", min_count=1),
    "reduce_window": lambda x: hf.reduce_window(x, 3, "prod", padding="same", strides=2),
    "sliding_window_view": lambda x: hf.sliding_window_view(x, 3) ** 2,
    "apply_along_axis": lambda x: hf.apply_along_axis(lambda v: v * hf.sum(v), 0, hf.reshape(x, (4, 2))),
    "fmod": lambda x: hf.fmod(x, 0.7),
    "cov": lambda x: hf.cov(x, x[::-1] * x),
    "average": lambda x: hf.average(x, weights=x * x),
    "cbrt": lambda x: hf.cbrt(x) + hf.exp2(x),
    "frexp": lambda x: hf.frexp(x)[0] + hf.ldexp(x * x, [1, 2, -1, 0, 3, 0, 0, -5]),
    "unique": lambda x: hf.unique(x, size=8) ** 2,
}


@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives_against_finite_differences(name: str) -> None:
    x, f = RNG.normal(size=8), SMOOTH[name]
    shape = f(hf.asarray(x)).shape
    weights = RNG.normal(size=shape)

    def total(x: Any) -> Any:
        return hf.sum(f(x) * weights)

    found = hf.grad(total)(hf.asarray(x))
    step = 1e-6 * np.eye(8)
    numeric = [(float(total(hf.asarray(x + d))) - float(total(hf.asarray(x - d)))) / 2e-6 for d in step]
    np.testing.assert_allclose(found.numpy(), numeric, rtol=1e-5, atol=1e-7)
    direction = RNG.normal(size=8)
    _, tangent = hf.jvp(total, (hf.asarray(x),), (hf.asarray(direction),))
    np.testing.assert_allclose(float(tangent), float(np.dot(found.numpy(), direction)), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", [*SMOOTH])
def test_mapped_as_one_after_another(name: str) -> None:
    x, f = RNG.normal(size=(3, 8)), SMOOTH[name]
    found = hf.vmap(f)(hf.asarray(x)).numpy()
    for one, row in zip(found, x):
        np.testing.assert_allclose(one, f(hf.asarray(row)).numpy(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("correction", [0, 1, 3])
def test_nanvar(correction: int) -> None:
    for x in (MATRIX, ODD, np.full((2, 3), np.nan), np.array([[1.0, np.nan], [2.0, 4.0]])):
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = np.nanvar(x, axis=-1, ddof=correction), np.nanstd(x, ddof=correction, keepdims=True)
        found = hf.nanvar(x, axis=-1, correction=correction), hf.nanstd(x, correction=correction, keepdims=True)
        agree(found, expected, 1e-13)
    x = hf.asarray([30000.0, np.nan, -30000.0], dtype="float16")
    assert hf.nanmean(x).tolist() == 0 and hf.nanstd(x).tolist() == 30000


@pytest.mark.parametrize("equal_nan", [True, False])
def test_unique(equal_nan: bool) -> None:
    for x in (ODD, WHOLE, ODD[:0], BYTES, FULL > 0):
        options = {"return_index": True, "return_inverse": True, "return_counts": True, "equal_nan": equal_nan}
        expected = np.unique(x, **options)
        found = hf.unique(x, **options)
        agree(found, expected, 0)
        agree(hf.unique(x, equal_nan=equal_nan), expected[0], 0)
        count = len(expected[0])
        if x.size:
            compiled = hf.function(lambda x, count=count, o=options: hf.unique(x, size=count, **o))(hf.asarray(x))
            agree(compiled, expected, 0)
    rows = np.array([[2, 1], [0, 5], [2, 1], [2, 0]])
    for axis in (0, 1, -1):
        agree(
            hf.unique(rows, return_index=True, return_inverse=True, axis=axis),
            np.unique(rows, return_index=True, return_inverse=True, axis=axis),
            0,
        )
    agree(np.unique(hf.asarray(rows), return_counts=True), np.unique(rows, return_counts=True), 0)
    with pytest.raises(errors.TraceError, match=r"unique\(x, size=...\)"):
        hf.function(lambda x: hf.unique(x)).get_concrete_function(hf.ones(3))
    with pytest.raises(errors.ArgumentError, match="no axis"):
        hf.unique(rows, axis=0, size=2)
    first = hf.unique(rows, return_index=1, return_counts=np.False_)
    agree(first, np.unique(rows, return_index=True), 0)
    for flag in ("return_index", "return_inverse", "return_counts", "equal_nan"):
        for wrong in ("yes", 2, 1.0, None, hf.ones(2)):
            with pytest.raises(errors.ArgumentTypeError, match=f"{flag} is .* Expected True or False"):
                hf.unique(rows, **{flag: wrong})


@pytest.mark.parametrize("weights", [None, RNG.uniform(size=50)])
@pytest.mark.parametrize("density", [False, True])
def test_histogramdd(weights: Any, density: bool) -> None:
    points = RNG.normal(size=(50, 2))
    points[0] = np.nan
    for bins, span in ((4, ((-1, 1), (-2, 2))), ((3, [-1.0, 0.0, 0.5]), ((0, 1), None)), (([-1, 0, 2], [-3, 3]), None)):
        wanted, edges = np.histogramdd(points, bins, span, density, weights)
        found = hf.histogramdd(points, bins, span, density, weights)
        np.testing.assert_allclose(found.counts, wanted, rtol=1e-12)
        for one, other in zip(found.edges, edges, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)
    columns = [points[1:, 0], points[1:, 1]]
    for sample in (columns, [list(column) for column in columns], tuple(map(tuple, columns))):
        np.testing.assert_array_equal(hf.histogramdd(sample, 5).counts, np.histogramdd(sample, 5)[0])
    for flat in ((0, 0), [1.0, np.float32(2.0), 1.5], ()):
        found = hf.histogramdd(flat, 3, [(0, 2)])
        np.testing.assert_array_equal(found.counts, np.histogramdd(flat, 3, [(0, 2)])[0])
    with pytest.raises(errors.ShapeError, match="3 bins"):
        hf.histogramdd(points, (1, 2, 3))
    for columns in ([hf.ones(3), hf.ones(4)], [hf.ones(3), hf.ones(1)], [hf.ones(()), hf.ones(())], [hf.ones((2, 2))]):
        with pytest.raises(errors.ShapeError, match="vectors of one size"):
            hf.histogramdd(columns)
    with pytest.raises(errors.ShapeError, match="a row for each"):
        hf.histogramdd(CUBE)


@pytest.mark.parametrize("conditions", [[True], [False], [True, True], [np.True_, np.False_], [np.array(True)], True])
def test_piecewise_of_a_number(conditions: Any) -> None:
    several = conditions if isinstance(conditions, list) else [conditions]
    for functions in ([3.0, lambda t: -t][: len(several)], [3.0, lambda t: -t, 7.0][: len(several) + 1]):
        expected = np.piecewise(np.array(1.5), conditions, functions)
        agree(hf.piecewise(np.array(1.5), conditions, functions), expected, 0)
    x = np.arange(2.0)
    if len(several) == 2:
        agree(hf.piecewise(x, conditions, [5.0, 6.0]), np.piecewise(x, conditions, [5.0, 6.0]), 0)


WINDOWS = [
    (size, strides, dilation, padding)
    for size in ((1, 1), (2, 3), (3, 1), (2, 30))
    for strides in (1, (2, 3))
    for dilation in (1, (2, 1))
    for padding in ("valid", "same", ((1, 0), (0, 2)))
]


def windows_reference(x: Any, how: str, size: Any, strides: Any, dilation: Any, padding: Any) -> np.ndarray:
    each = [np.broadcast_to(v, 2) for v in (size, strides, dilation)]
    spans = [(n - 1) * d + 1 for n, d in zip(each[0], each[2])]
    if padding == "same":
        total = [max((-(-n // s) - 1) * s + k - n, 0) for n, s, k in zip(x.shape, each[1], spans)]
        padding = [(t // 2, t - t // 2) for t in total]
    elif padding == "valid":
        padding = ((0, 0), (0, 0))
    wide = np.pad(x.astype(float), padding, constant_values=np.nan)
    seen = np.lib.stride_tricks.sliding_window_view(wide, spans)[:: each[1][0], :: each[1][1]]
    seen = seen[:, :, :: each[2][0], :: each[2][1]]
    nothing = {"max": -np.inf, "min": np.inf}.get(how)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of windows of nothing but padding
        result = getattr(np, f"nan{how}")(seen, axis=(2, 3))
    return result if nothing is None else np.where(np.isnan(result), nothing, result)


@pytest.mark.parametrize("reduction", ["sum", "mean", "max", "min", "prod"])
def test_reductions_of_windows(reduction: str) -> None:
    x = RNG.normal(size=(9, 70))
    for size, strides, dilation, padding in WINDOWS:
        expected = windows_reference(x, reduction, size, strides, dilation, padding)
        call = lambda x, o=(size, reduction), s=strides, d=dilation, p=padding: hf.reduce_window(  # noqa: E731
            x, *o, strides=s, dilation=d, padding=p
        )
        found = call(hf.asarray(x))
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-13)
        same_bits(hf.function(call)(hf.asarray(x)), found)


def test_windows_of_integers_and_their_edges() -> None:
    assert hf.reduce_window([-3, -1, -2], 2, padding="same").tolist() == [-1, -1, -2]
    assert hf.reduce_window([True, False], 2, "sum").tolist() == [1]
    assert hf.reduce_window([1, 2, 4], 2, "mean").dtype == hf.float32
    for call, kind, message in (
        (lambda: hf.reduce_window([1, 2], 3), errors.ShapeError, "a window takes 3"),
        (lambda: hf.reduce_window(hf.ones((0,)), 1), errors.ShapeError, "a window takes 1"),
        (lambda: hf.reduce_window([1, 2], 0), errors.ArgumentError, "1 or more"),
        (lambda: hf.reduce_window([1, 2], 1, "mode"), errors.ArgumentError, "Expected one of 'sum'"),
        (lambda: hf.reduce_window(hf.ones((2, 2)), 1), errors.ArgumentError, "along which axis"),
        (lambda: hf.reduce_window([1, 2], 1, padding="full"), errors.ArgumentError, "'valid', 'same'"),
        (lambda: hf.sliding_window_view([1, 2], 3), errors.ShapeError, "a window takes 3"),
        (lambda: hf.rolling([1, 2], 2, min_count=3), errors.ArgumentError, "Expected 1 to 2"),
    ):
        with pytest.raises(kind, match=message):
            call()


def test_sliding_windows() -> None:
    view = np.lib.stride_tricks.sliding_window_view
    for x, size, axis in (
        (PLAIN, 3, None),
        (FULL, (2, 3), None),
        (CUBE, 2, 1),
        (CUBE, (2, 2), (2, 0)),
        (FULL, (2, 3), (1, 1)),
    ):
        expected = view(x, size, axis)
        agree(hf.sliding_window_view(x, size, axis), expected, 0)
        agree(hf.function(lambda x, s=size, a=axis: hf.sliding_window_view(x, s, a))(hf.asarray(x)), expected, 0)
    f = hf.function(lambda x: hf.sliding_window_view(x, 3))
    for n in (5, 6, 7, 3, 20):
        agree(f(hf.arange(n)), view(np.arange(n), 3), 0)


@pytest.mark.parametrize("window", [1, 2, 5, 40])
@pytest.mark.parametrize("least", [None, 1, 2])
def test_rolling(window: int, least: int | None) -> None:
    x = RNG.normal(size=(2, 33))
    need = window if least is None else least
    if need > window:
        return
    for how in ("sum", "mean", "max", "min", "prod"):
        expected = np.full(x.shape, np.nan)
        for k in range(x.shape[1]):
            part = x[:, max(0, k + 1 - window) : k + 1]
            if part.shape[1] >= need:
                expected[:, k] = getattr(np, how)(part, axis=1)
        found = hf.rolling(x, window, how, min_count=least)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-13)
        np.testing.assert_allclose(
            hf.rolling(x.T, window, how, axis=0, min_count=least).T, expected, rtol=1e-9, atol=1e-13
        )


def test_rolling_sums_do_not_drift() -> None:
    """A large number leaves the window without a trace, and so does NaN."""
    x = np.array([1e30, 1.0, 2.0, *RNG.normal(size=97)])
    x[50] = np.nan
    found = hf.rolling(x, 30, "sum", min_count=1).numpy()
    np.testing.assert_allclose(found[31:50], [x[k - 29 : k + 1].sum() for k in range(31, 50)], rtol=1e-12)
    assert np.isnan(found[50:80]).all() and np.isfinite(found[80:]).all()


def test_functions_of_vectors_along_an_axis() -> None:
    for axis in (0, 1, -1):
        for theirs, ours in (
            (lambda v: v.sum(), hf.sum),
            (lambda v: v[::-1], lambda v: v[::-1]),
            (lambda v: np.outer(v, [1.0, 2.0]), lambda v: hf.outer(v, hf.asarray([1.0, 2.0], dtype="float64"))),
        ):
            agree(hf.apply_along_axis(ours, axis, CUBE), np.apply_along_axis(theirs, axis, CUBE), 1e-13)
    with pytest.raises(errors.ArgumentTypeError, match="returns None"):
        hf.apply_along_axis(lambda v: None, 0, FULL)


COMPLEX = np.array([1 + 2j, 3 - 1j, 0.5j, -2.0])


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_numbers_are_as_numpys_or_refused(dtype: str) -> None:
    z = COMPLEX.astype(dtype)
    t = hf.asarray(z)
    for call in (
        lambda m, x: m.nansum(x), lambda m, x: m.nanmean(x), lambda m, x: m.ediff1d(x), lambda m, x: m.trapezoid(x),
        lambda m, x: m.gradient(x), lambda m, x: m.polyval([1.0, 2.0], x), lambda m, x: m.kron(x, x),
        lambda m, x: m.average(x), lambda m, x: m.cov(x, x[::-1]), lambda m, x: m.vander(x, 3), lambda m, x: m.diag(x),
        lambda m, x: m.unique(x), lambda m, x: m.convolve(x, x[::-1]),
    ):  # fmt: skip
        np.testing.assert_allclose(call(hf, t), call(np, z), rtol=1e-5)
    holes = np.stack([z, np.append(z[:-1], np.nan), np.array([complex(1, np.nan), *z[1:]]).astype(dtype)])
    for name in ("nanvar", "nanstd"):
        for axis in (None, 0, 1):
            found = getattr(hf, name)(hf.asarray(holes), axis=axis, correction=1)
            expected = getattr(np, name)(holes, axis=axis, ddof=1)
            assert found.dtype == expected.dtype
            np.testing.assert_allclose(found, expected, rtol=1e-5)
    for refused in (
        lambda x: hf.interp([0.5], [0.0, 1.0, 2.0, 3.0], x), lambda x: hf.polyfit([0.0, 1.0, 2.0, 3.0], x, 1),
        lambda x: hf.heaviside(x, x), lambda x: hf.deg2rad(x), lambda x: hf.histogramdd([x, x]), hf.nanmax, hf.cummax,
        hf.cbrt, hf.unwrap, lambda x: hf.partition(x, 1), lambda x: hf.fmax(x, x),
        lambda x: hf.corrcoef(x, x), hf.frexp, hf.modf, hf.bitwise_count, hf.packbits, hf.nanmin,
    ):  # fmt: skip
        with pytest.raises(errors.DTypeError):
            refused(t)


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: hf.nanargmax([np.nan, np.nan]), errors.ArgumentError, "are NaN"),
        (lambda: hf.nanmax(hf.ones((0,))), errors.ShapeError, "no elements"),
        (lambda: hf.partition([1, 2], 2), errors.ArgumentError, "kth is 2"),
        (lambda: hf.lexsort(()), errors.ArgumentError, "no keys"),
        (lambda: hf.lexsort(([1], [1, 2])), errors.ShapeError, "one shape"),
        (lambda: hf.choose([2], [[1], [2]]), errors.IndexRangeError, "2"),
        (lambda: hf.choose([0.5], [[1]]), errors.DTypeError, "Expected integers"),
        (lambda: hf.select([[1]], [[2]]), errors.DTypeError, "Expected bool"),
        (lambda: hf.select([[True]], []), errors.ArgumentError, "1 conditions for 0 choices"),
        (lambda: hf.piecewise([1.0], [[True]], [1, 2, 3]), errors.ArgumentError, "1 conditions for 3"),
        (lambda: hf.piecewise(1.0, [[True, False]], [1]), errors.ShapeError, "Expected those of f32"),
        (lambda: hf.piecewise([1.0], [[True]], [hf.ones((2, 1))]), errors.ShapeError, "Expected those of f32"),
        (lambda: hf.interp([1.0], [1.0, 2.0], [1.0]), errors.ShapeError, "vectors of one size"),
        (lambda: hf.interp([1.0], [], []), errors.ShapeError, "vectors of one size"),
        (lambda: hf.interp([1.0], [1.0], [1.0], period=0), errors.ArgumentError, "period is 0"),
        (lambda: hf.convolve([], [1]), errors.ShapeError, "vectors with elements"),
        (lambda: hf.convolve([1], [1], "all"), errors.ArgumentError, "mode is 'all'"),
        (lambda: hf.gradient([1.0, 2.0], edge_order=2), errors.ShapeError, "three elements"),
        (lambda: hf.gradient([1.0, 2.0], 1.0, 2.0), errors.ArgumentError, "2 spacings for 1 axes"),
        (lambda: hf.trapezoid([1.0, 2.0], [1.0]), errors.ShapeError, "do not fit"),
        (lambda: hf.polyfit([1.0], [1.0, 2.0], 1), errors.ShapeError, "as many values"),
        (lambda: hf.polyfit([1.0], [1.0], -1), errors.ArgumentError, "deg is -1"),
        (lambda: hf.unravel_index([6], (2, 3)), errors.IndexRangeError, "not in 6 elements"),
        (lambda: hf.ravel_multi_index(([1], [3]), (2, 3)), errors.IndexRangeError, "not in 3 elements"),
        (lambda: hf.ravel_multi_index(([1],), (2, 3)), errors.ShapeError, "1 rows"),
        (lambda: hf.packbits([0.5]), errors.DTypeError, "bools or integers"),
        (lambda: hf.unpackbits([1]), errors.DTypeError, "Expected uint8"),
        (lambda: hf.packbits([1], bitorder="middle"), errors.ArgumentError, "bitorder"),
        (lambda: hf.bitwise_count([0.5]), errors.DTypeError, "Expected integers"),
        (lambda: hf.average([1.0, 2.0], weights=[1.0]), errors.ShapeError, "say which axis"),
        (lambda: hf.cov(hf.ones((2, 2, 2))), errors.ShapeError, "more than 2 axes"),
        (lambda: hf.diag(1.0), errors.ShapeError, "neither a vector nor a matrix"),
        (lambda: hf.gcd([1.0], 2), errors.DTypeError, "Expected"),
        (lambda: hf.ldexp([1.0], [0.5]), errors.DTypeError, "Expected integers"),
        (lambda: hf.mgrid[:], errors.ArgumentTypeError, "no slice with an end"),
        (lambda: hf.rot90([[1]], axes=(0, 0)), errors.ArgumentError, "Expected two"),
        (lambda: hf.vander([[1]]), errors.ShapeError, "Expected one axis"),
        (lambda: hf.divmod([1], 0), errors.DivisionError, "divided by zero"),
        (lambda: hf.put_along_axis([1, 2], [2], 5), errors.IndexRangeError, "2"),
    ],
)
def test_bad_input(call: Callable[[], Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        call()


def test_open_meshes_and_grids() -> None:
    x = np.arange(12).reshape(3, 4)
    mask = np.array([True, False, True])
    np.testing.assert_array_equal(hf.asarray(x)[hf.ix_(mask, [1, 3])], x[np.ix_(mask, [1, 3])])
    np.testing.assert_allclose(hf.mgrid[0:1:5j, 0:3], np.mgrid[0:1:5j, 0:3], rtol=1e-6)
    for one, other in zip(hf.ogrid[0:2, -1:1:3j], np.ogrid[0:2, -1:1:3j]):
        np.testing.assert_array_equal(one, other)


def test_accumulations_of_numpy() -> None:
    x = hf.asarray(FULL)
    for ufunc in (np.maximum, np.minimum, np.logaddexp):
        np.testing.assert_allclose(ufunc.accumulate(x, axis=1), ufunc.accumulate(FULL, axis=1), rtol=1e-12)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_two_sequences_of_open_extents(mode: str) -> None:
    spec = hf.TensorSpec((None,), "float64")
    f = hf.function(lambda x, y: [hf.convolve(x, y, mode), hf.correlate(x, y, mode)], input_signature=[spec, spec])
    for n, m in ((5, 3), (3, 5), (4, 4), (1, 3), (7, 1), (9, 3)):
        x, y = RNG.normal(size=n), RNG.normal(size=m)
        agree(f(x, y), [np.convolve(x, y, mode), np.correlate(x, y, mode)], 1e-13)
