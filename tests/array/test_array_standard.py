"""What the array API standard asks for beyond the ops themselves, against NumPy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors

pytestmark = pytest.mark.code

RNG = np.random.default_rng(0)


def same(found: Any, expected: Any) -> None:
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.dtype == expected.dtype and found.shape == expected.shape
    np.testing.assert_array_equal(found, expected)


FLOATS = np.array([3.0, -0.0, np.nan, 1.5, 0.0, -np.inf, 1.5, np.nan, np.inf, 3.0], np.float32)


@pytest.mark.parametrize("array", [FLOATS, np.array([[3, 1], [1, 2]]), np.array([True, False, True]), np.ones((0,))])
def test_unique(array: np.ndarray) -> None:
    values, indices, inverse, counts = np.unique(
        array, return_index=True, return_inverse=True, return_counts=True, equal_nan=False
    )
    found = hf.unique_all(hf.asarray(array))
    for one, other in zip(found, (values, indices, inverse.reshape(array.shape), counts)):
        same(one, other)
    assert np.all(np.diff(np.asarray(hf.unique_values(array)).astype(float)) >= 0) or np.isnan(array).any()
    same(hf.unique_counts(array).counts, counts)
    same(hf.unique_inverse(array).inverse_indices, inverse.reshape(array.shape))


def test_unique_while_tracing_and_its_gradient() -> None:
    with pytest.raises(errors.TraceError, match=r"unique_values.*depends on the values"):
        hf.function(lambda x: hf.unique_values(x)).get_concrete_function(hf.ones(3))
    x = hf.asarray([2.0, 1.0, 2.0])
    with hf.GradientTape() as tape:
        tape.watch(x)
        y = hf.sum(hf.unique_values(x) * hf.asarray([10.0, 1.0]))
    same(tape.gradient(y, x), np.float32([1, 10, 0]))


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("sizes", [(0, 3), (1, 4), (50, 40)])
def test_searchsorted(side: str, sizes: tuple[int, int]) -> None:
    a, v = (RNG.integers(0, 9, size).astype(np.float32) for size in sizes)
    v = np.concatenate([v, [np.nan, -0.0, np.inf]]).astype(np.float32)
    order = np.argsort(a)
    expected = np.searchsorted(a, v, side, order)
    for run in (lambda f: f, hf.function):
        same(run(lambda a, v, s: hf.searchsorted(a, v, side=side, sorter=s))(*map(hf.asarray, (a, v, order))), expected)
        same(run(lambda a, v: hf.searchsorted(a, v, side=side))(hf.asarray(a[order]), hf.asarray(v)), expected)


def test_searchsorted_with_symbolic_extents() -> None:
    f = hf.function(lambda a, v: hf.searchsorted(a, v))
    for n in (4, 5, 6, 1, 0, 9):
        a, v = np.sort(RNG.normal(size=n)), RNG.normal(size=(n, 2))
        same(f(hf.asarray(a), hf.asarray(v)), np.searchsorted(a, v))
    with pytest.raises(errors.ArgumentError, match="side"):
        hf.searchsorted([1], [1], side="middle")
    with pytest.raises(errors.ShapeError, match="one-dimensional"):
        hf.searchsorted([[1]], [1])


@pytest.mark.parametrize("invert", [False, True])
def test_isin(invert: bool) -> None:
    for x, y in ((FLOATS, FLOATS[2:5]), (np.arange(12).reshape(3, 4), np.array([[3], [30]])), (np.ones(2), np.ones(0))):
        for run in (lambda f: f, hf.function):
            same(
                run(lambda x, y: hf.isin(x, y, invert=invert))(hf.asarray(x), hf.asarray(y)),
                np.isin(x, y, invert=invert),
            )
    same(hf.isin([True, False], [True]), [True, False])


@pytest.mark.parametrize("dtype", ["uint64", "int8", "float16", "bool"])
def test_a_number_to_look_for_has_no_say_in_the_dtype(dtype: str) -> None:
    """Next to unsigned integers of 64 bits an int64 would find no dtype."""
    x = hf.asarray([0, 1, 1], dtype=dtype)
    for number in (1, np.int64(1)):
        for run in (lambda f: f, hf.function):
            same(run(lambda x, number=number: hf.isin(x, number))(x), [False, True, True])
            same(run(lambda x, number=number: hf.isin(number, x))(x), True)
            same(run(lambda x, number=number: hf.searchsorted(x, number))(x), 1)
    if dtype == "uint64":
        same(hf.searchsorted(hf.asarray([1, 2**63], dtype=dtype), 2**63), 1)


@pytest.mark.parametrize("n", [0, 1, 2, 7])
@pytest.mark.parametrize("dtype", ["int32", "uint8", "float64", "bool"])
def test_diff(n: int, dtype: str) -> None:
    x = RNG.integers(0, 2 if dtype == "bool" else 100, (3, 5)).astype(dtype)
    for axis in (0, -1):
        end = np.take(x, [0], axis)
        same(hf.diff(x, n, axis), np.diff(x, n, axis))
        same(hf.diff(x, n=n, axis=axis, prepend=end, append=end), np.diff(x, n, axis, end, end))


@pytest.mark.parametrize("dtype", ["int32", "uint64", "float32", "float64"])
def test_cumulative_prod(dtype: str) -> None:
    x = RNG.integers(1, 3, (3, 70)).astype(dtype)  # powers of two, which are exact in any order
    wide = {"int32": np.int64}.get(dtype, np.dtype(dtype))
    for axis in (0, 1):
        expected = np.cumprod(x, axis, dtype=wide)
        same(hf.cumulative_prod(hf.asarray(x), axis=axis), expected)
        same(hf.function(lambda x, axis=axis: hf.cumulative_prod(x, axis=axis))(hf.asarray(x)), expected)
        first = np.ones_like(np.take(expected, [0], axis))
        found = hf.cumulative_prod(x, axis=axis, include_initial=True)
        same(found, np.concatenate([first, expected], axis))


def test_the_gradient_of_a_running_product_passes_zeros() -> None:
    x, g = np.array([2.0, 0.0, 3.0, 0.0, 5.0]), np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    expected = [sum(g[j] * np.prod(np.delete(x[: j + 1], k)) for j in range(k, 5)) for k in range(5)]
    t = hf.asarray(x)
    with hf.GradientTape() as tape:
        tape.watch(t)
        y = hf.cumulative_prod(t)
    same(tape.gradient(y, t, hf.asarray(g)), expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nextafter_and_signbit(dtype: Any) -> None:
    tiny = np.finfo(dtype).smallest_subnormal
    edges = np.array([0.0, -0.0, tiny, -tiny, 1, -1, np.finfo(dtype).max, np.inf, -np.inf, np.nan, -np.nan], dtype)
    x, y = (a.reshape(-1) for a in np.meshgrid(edges, edges))
    for run in (lambda f: f, hf.function):
        found = np.asarray(run(lambda x, y: hf.nextafter(x, y))(hf.asarray(x), hf.asarray(y)))
        with np.errstate(all="ignore"):
            expected = np.nextafter(x, y)
        number = ~np.isnan(expected)
        same(found.view(f"i{dtype().itemsize}")[number], expected.view(f"i{dtype().itemsize}")[number])
        assert np.isnan(found[~number]).all()
        same(run(lambda x: hf.signbit(x))(hf.asarray(edges)), np.signbit(edges))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("to", [np.inf, -np.inf, 0.0, 1.0, np.nan])
def test_nextafter_of_all_narrow_floats(dtype: Any, to: float) -> None:
    x = np.arange(1 << 16, dtype=np.uint16).view(dtype)
    y = np.full_like(x, to)
    with np.errstate(all="ignore"):
        expected = np.nextafter(x, y)
        expected[x == y] = y[x == y]  # of zeros the sign is that of y
    number = ~np.isnan(expected.astype(np.float32))
    for f in (hf.nextafter, hf.function(lambda x, y: hf.nextafter(x, y))):
        found = np.asarray(f(hf.asarray(x), hf.asarray(y)))
        same(found.view(np.uint16)[number], expected.view(np.uint16)[number])
        assert np.isnan(found[~number].astype(np.float32)).all()


def test_signs_of_infinite_numbers() -> None:
    x = np.array([np.inf, -np.inf + 3j, 1j * np.inf, complex(-2.0, -np.inf), complex(np.inf, np.inf), 3 - 4j, 0])
    for f in (hf.sign, hf.function(lambda x: hf.sign(x))):
        same(np.asarray(f(hf.asarray(x))), np.sign(x))


def test_parts_of_real_numbers() -> None:
    x = hf.asarray([1.0, -2.0])
    same(hf.conj(x), x)
    same(hf.real(x), x)
    same(hf.imag(x), np.zeros(2, np.float32))
    with pytest.raises(errors.DTypeError):
        hf.real(hf.asarray(True))


def test_creation() -> None:
    for function in (hf.zeros, hf.ones, hf.empty):
        assert function((2,), dtype=None, device="cpu").dtype == hf.float32
        assert function((2,), dtype=hf.int8).dtype == hf.int8
    x = hf.asarray([1, 2], dtype=hf.int16)
    for like in (hf.zeros_like, hf.ones_like, hf.empty_like):
        assert like(x, device="cpu").type == x.type and like(x, dtype=hf.float64).dtype == hf.float64
    same(hf.full_like(x, 3, device="cpu"), np.int16([3, 3]))
    same(hf.arange(3, device="cpu"), np.arange(3))
    same(hf.linspace(0, 1, 3, device="cpu"), np.linspace(0, 1, 3, dtype=np.float32))
    same(hf.eye(2, k=2**63, device="cpu"), np.zeros((2, 2), np.float32))
    with pytest.raises(errors.DeviceError):
        hf.zeros(2, device="tpu")


def test_copies_that_are_not_allowed() -> None:
    x = hf.ones(2)
    assert hf.asarray(x, copy=False) is x
    for value, options in ((np.ones(2), {}), ([1], {}), (x, {"dtype": hf.float64})):
        with pytest.raises(errors.ArgumentError, match="without a copy"):
            hf.asarray(value, copy=False, **options)
    with pytest.raises(BufferError):
        hf.from_dlpack(np.ones(4)[::2], copy=False)
    with pytest.raises(errors.ArgumentTypeError):
        hf.from_dlpack([1])


def test_scalar_masks() -> None:
    x = np.arange(6.0).reshape(2, 3)
    t = hf.asarray(x)
    for value in (True, False):
        mask = np.array(value)
        same(t[hf.asarray(value)], x[mask])
        same(t[hf.asarray(value), 1], x[mask, 1])
        same(t[..., hf.asarray(value)], x[..., mask])
        same(t[:, hf.asarray(value)], x[:, mask])
    same(hf.asarray(1.0)[hf.asarray(True)], np.float32([1]))


def test_axis_errors() -> None:
    with pytest.raises(IndexError):
        hf.expand_dims(hf.ones(2), axis=5)
    with pytest.raises(errors.AxisError) as caught:
        hf.sum(hf.ones(2), axis=3)
    assert isinstance(caught.value, (errors.ShapeError, ValueError))


def test_limits() -> None:
    for dtype in (hf.float16, hf.bfloat16, hf.float32, hf.float64):
        found = hf.finfo(dtype)
        assert all(type(v) is float for v in (found.eps, found.max, found.min, found.smallest_normal))
    assert hf.finfo(hf.float32).max == float(np.finfo(np.float32).max) and hf.finfo(hf.ones(2)).bits == 32


def test_shapes() -> None:
    assert hf.broadcast_shapes() == () and hf.broadcast_shapes((2, 1), 3, (1, 1, 1)) == (1, 2, 3)
    with pytest.raises(errors.ShapeError, match="broadcast_shapes"):
        hf.broadcast_shapes((2,), (3,))
    same(hf.trace(hf.ones((2, 2), dtype=hf.int8), dtype=hf.float64), np.float64(2))


def test_the_namespace() -> None:
    info = hf.__array_namespace_info__()
    assert isinstance(info.devices(), list) and info.default_device() in info.devices()
    assert info.default_dtypes(device="cpu") == {
        "real floating": hf.float32,
        "complex floating": hf.complex64,
        "integral": hf.int64,
        "indexing": hf.int64,
    }
    assert info.dtypes(kind="bool") == {"bool": hf.bool} and len(info.dtypes()) == 13
    assert set(info.dtypes(kind=("integral", "bool"))) == {
        "bool",
        *(f"{u}int{n}" for u in ("", "u") for n in (8, 16, 32, 64)),
    }
    assert info.capabilities()["data-dependent shapes"] is True
    with pytest.raises(errors.ArgumentError):
        info.dtypes(kind="numbers")
    assert hf.ones(1).__array_namespace__(api_version="2024.12") is hf
    with pytest.raises(errors.ArgumentError, match="1234"):
        hf.ones(1).__array_namespace__(api_version="1234")
