"""Elementwise functions, reductions, shape manipulation, products and sorting against NumPy."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors

pytestmark = pytest.mark.code

EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 1.5, 2.5, 30.0, -30.0, 1e-30, 3e38, np.inf, -np.inf, np.nan]


def assert_same(ours, theirs, dtype=None):
    """Equal shape, dtype and values, NaN and the sign of zeros included."""
    theirs = np.asarray(theirs, dtype)
    assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
    np.testing.assert_array_equal(ours.numpy(), theirs)
    if theirs.dtype.kind == "f":
        real = ~np.isnan(theirs)
        np.testing.assert_array_equal(np.signbit(ours.numpy()[real]), np.signbit(theirs[real]))


def assert_close(ours, theirs, dtype, rtol=None):
    theirs = np.asarray(theirs)
    assert ours.dtype == np.dtype(dtype) and ours.shape == theirs.shape
    rtol = rtol or {"float32": 3e-6, "float64": 1e-13}[str(np.dtype(dtype))]
    np.testing.assert_allclose(ours.numpy(), theirs.astype(dtype), rtol=rtol, atol=rtol * 1e-2)


def values(dtype, shape=(3, 4, 5), seed=0):
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if np.dtype(dtype).kind in "iu":
        return rng.integers(0 if dtype.startswith("u") else -9, 10, shape).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


# ---- elementwise

FLOAT_FUNCTIONS = {
    name: getattr(np, numpy_name)
    for name, numpy_name in {
        "exp": "exp",
        "expm1": "expm1",
        "log": "log",
        "log1p": "log1p",
        "log2": "log2",
        "log10": "log10",
        "sqrt": "sqrt",
        "reciprocal": "reciprocal",
        "sin": "sin",
        "cos": "cos",
        "tan": "tan",
        "asin": "arcsin",
        "acos": "arccos",
        "atan": "arctan",
        "sinh": "sinh",
        "cosh": "cosh",
        "tanh": "tanh",
        "asinh": "arcsinh",
        "acosh": "arccosh",
        "atanh": "arctanh",
    }.items()
} | {
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "erf": np.vectorize(math.erf, otypes=[float]),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", FLOAT_FUNCTIONS)
def test_float_functions(name, dtype):
    x = np.concatenate([values(dtype, (50,)), values(dtype, (50,)) * 10, np.array(EDGES, dtype)])
    with np.errstate(all="ignore"):
        expected = FLOAT_FUNCTIONS[name](x.astype(np.float64))
        assert_close(getattr(hf, name)(x), expected, dtype)


@pytest.mark.parametrize("name", FLOAT_FUNCTIONS)
def test_float_functions_take_integers_as_float32(name):
    with np.errstate(all="ignore"):
        expected = FLOAT_FUNCTIONS[name](np.array([0.0, 1.0, 2.0]))
    assert_close(getattr(hf, name)([0, 1, 2]), expected, "float32")
    assert getattr(hf, name)(hf.asarray([True])).dtype == np.float32


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("name", ["negative", "abs", "square", "floor", "ceil", "round", "trunc", "sign"])
def test_exact_functions(name, dtype):
    with np.errstate(all="ignore"):
        x = np.array(EDGES).astype(dtype)
        expected = getattr(np, {"round": "rint"}.get(name, name))(x)
    if name == "sign":
        np.testing.assert_array_equal(hf.sign(x).numpy(), expected)
    else:
        assert_same(getattr(hf, name)(x), expected)


@pytest.mark.parametrize("name", ["isnan", "isinf", "isfinite"])
def test_predicates(name):
    for x in (np.array(EDGES, np.float32), np.array([0, 1, -5]), np.array([True, False])):
        assert_same(getattr(hf, name)(x), getattr(np, name)(x))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64"])
def test_integer_functions(dtype):
    x = values(dtype, (20,))
    for name in ("abs", "square", "sign"):
        assert_same(getattr(hf, name)(x), getattr(np, name)(x))
    for name in ("floor", "ceil", "round", "trunc"):
        assert_same(getattr(hf, name)(x), x)


@pytest.mark.parametrize(
    "name, theirs",
    [
        ("maximum", np.maximum),
        ("minimum", np.minimum),
        ("atan2", np.arctan2),
        ("hypot", np.hypot),
        ("copysign", np.copysign),
        ("logaddexp", np.logaddexp),
        ("pow", np.power),
    ],
)
def test_binary_functions_on_edges(name, theirs):
    edges = [v for v in EDGES if abs(v) < 100 or not math.isfinite(v)]
    a, b = (np.array(column) for column in zip(*itertools.product(edges, edges)))
    with np.errstate(all="ignore"):
        expected = theirs(a, b)
    assert_close(getattr(hf, name)(a, b), expected, "float64", rtol=1e-12)
    ours = getattr(hf, name)(a.astype("float32"), b.astype("float32"))
    with np.errstate(all="ignore"):
        expected = theirs(a.astype("float32").astype("float64"), b.astype("float32").astype("float64"))
        assert_close(ours, expected, "float32")


def test_division_and_powers_of_integers():
    assert hf.divide([7], [2]).tolist() == [3.5] and hf.divide([7], [2]).dtype == np.float32
    assert hf.divide(hf.asarray([1], dtype=hf.float64), 3).dtype == np.float64
    assert hf.pow([2, -3], 3).tolist() == [8, -27]
    assert hf.pow(2.0, -1).item() == 0.5
    with pytest.raises(errors.ArgumentError, match="power -1"):
        hf.pow([2], -1)
    for a, b in itertools.product((-7, 7, 0), (-2, 2, 3)):
        assert (hf.asarray(a) // b).item() == a // b and (hf.asarray(a) % b).item() == a % b
        assert (hf.asarray(float(a)) % b).item() == a % b
    with pytest.raises(errors.DivisionError):
        hf.remainder([1], [0])


def test_logic_takes_truth_values():
    a, b = [0.0, 2.0, np.nan, 0.0], [1, 0, 3, 0]
    assert_same(hf.logical_and(a, b), np.logical_and(a, b))
    assert_same(hf.logical_or(a, b), np.logical_or(a, b))
    assert_same(hf.logical_xor(a, b), np.logical_xor(a, b))
    assert_same(hf.logical_not(a), np.logical_not(a))


def test_where():
    x = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    assert_same(hf.where(x > 2, x, -1), np.where(x > 2, x, np.float32(-1)))
    assert_same(hf.where([[True], [False]], x, [1, 2, 3]), np.where([[True], [False]], x, np.float32([1, 2, 3])))
    assert hf.where(True, 1, 2).dtype == np.int64 and hf.where(False, 1, 2.5).dtype == np.float32
    with pytest.raises(errors.DTypeError, match="must be bool"):
        hf.where([1, 0], 1, 2)


def test_clip():
    x = np.array(EDGES, np.float32)
    assert_same(hf.clip(x, -1, 2), np.clip(x, -1, 2))
    assert_same(hf.clip(x, None, 0.5), np.clip(x, None, 0.5))
    assert hf.clip([1, 5, 9], 2, 6).tolist() == [2, 5, 6]
    assert hf.clip(hf.asarray([1, 200], dtype=hf.uint8), 5).dtype == np.uint8
    assert_same(hf.clip(x, np.full(x.shape, -1.0, np.float32)), np.maximum(x, -1))
    with pytest.raises(errors.DTypeError, match="min is a float"):
        hf.clip([1, 2], 0.5)


def test_astype():
    x = np.array([1.9, -1.9, np.nan, np.inf, -np.inf, 300, -0.0])
    assert hf.astype(x, hf.int8).tolist() == [1, -1, 0, 127, -128, 127, 0]
    assert hf.astype(x, hf.bool).tolist() == [True] * 6 + [False]
    assert hf.astype([300, -1], hf.uint8).tolist() == [44, 255]
    assert (
        hf.astype([1.0, 2.0**-9], hf.bfloat16).numpy().tolist() == np.array([1.0, 2.0**-9], ml_dtypes.bfloat16).tolist()
    )
    with pytest.raises(errors.DTypeError, match="not a dtype"):
        hf.astype([1], "complex256")


def test_isclose_and_nan_to_num():
    a, b = [1.0, np.inf, np.nan, 1.0, np.inf], [1.0 + 1e-7, np.inf, np.nan, 1.1, -np.inf]
    assert_same(hf.isclose(a, b), np.isclose(a, b))
    assert_same(hf.isclose(a, b, equal_nan=True), np.isclose(a, b, equal_nan=True))
    for dtype in ("float32", "float16"):
        x = np.array([np.nan, np.inf, -np.inf, 2], dtype)
        assert_same(hf.nan_to_num(x), np.nan_to_num(x))
    assert hf.nan_to_num(hf.asarray([np.inf], dtype=hf.bfloat16)).item() == float(ml_dtypes.finfo("bfloat16").max)


# ---- reductions

AXES = [None, 0, -1, (0, 2), (2, 0, 1), ()]


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", AXES, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8", "bool"])
def test_reductions(dtype, axis, keepdims):
    x = values(dtype)
    wide = x.astype(np.float64)
    arguments = {"axis": axis, "keepdims": keepdims}
    is_float = x.dtype.kind == "f"
    total = np.sum(wide, **arguments)
    if is_float:
        assert_close(hf.sum(x, **arguments), total, dtype, rtol=1e-5)
        assert_close(hf.prod(x, **arguments), np.prod(wide, **arguments), dtype, rtol=1e-4)
    else:
        integer = "uint64" if dtype == "uint8" else "int64"
        assert_same(hf.sum(x, **arguments), total, integer)
        assert_same(hf.prod(x, **arguments), np.prod(x.astype(integer), **arguments), integer)
    out = dtype if is_float else "float32"
    assert_close(hf.mean(x, **arguments), np.mean(wide, **arguments), out, rtol=1e-5)
    assert_close(hf.var(x, **arguments), np.var(wide, **arguments), out, rtol=1e-5)
    assert_close(hf.std(x, **arguments), np.std(wide, **arguments), out, rtol=1e-5)
    assert_same(hf.any(x > 0, **arguments), np.any(x > 0, **arguments))
    assert_same(hf.all(x, **arguments), np.all(x, **arguments))
    assert_same(hf.count_nonzero(x, **arguments), np.count_nonzero(x, **arguments), np.int64)
    if dtype != "bool":
        assert_same(hf.max(x, **arguments), np.max(x, **arguments))
        assert_same(hf.min(x, **arguments), np.min(x, **arguments))


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("keepdims", [False, True])
def test_positions_of_extremes(axis, keepdims):
    x = np.array([[1, 3, 3, -2], [np.nan, 5, np.nan, -9], [0, 0, 0, 0]], np.float32)
    for name in ("argmax", "argmin"):
        ours = getattr(hf, name)(x, axis=axis, keepdims=keepdims)
        assert_same(ours, getattr(np, name)(x, axis=axis, keepdims=keepdims), np.int64)


def test_reductions_of_nan_and_signed_zeros():
    x = np.array([[1, np.nan], [np.inf, -np.inf]], np.float32)
    for name in ("max", "min", "sum", "mean"):
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(getattr(hf, name)(x, axis=1).numpy(), getattr(np, name)(x, axis=1))
    assert math.copysign(1, hf.sum(hf.zeros((0,))).item()) == 1


def test_reductions_over_nothing():
    empty = hf.zeros((0, 3))
    assert hf.sum(empty, axis=0).tolist() == [0, 0, 0] and hf.prod(empty, axis=0).tolist() == [1, 1, 1]
    assert np.isnan(hf.mean(empty, axis=0).numpy()).all() and np.isnan(hf.var(empty, axis=0).numpy()).all()
    assert hf.max(empty, axis=1).shape == (0,)
    assert hf.all(empty).item() is True and hf.any(empty).item() is False
    assert hf.logsumexp(empty, axis=0).tolist() == [-np.inf] * 3
    for name in ("max", "min", "argmax", "argmin"):
        with pytest.raises(errors.ShapeError, match=rf"\[{name}\] f32\[0,3\] has no elements along axis 0"):
            getattr(hf, name)(empty, axis=0)


def test_variance_with_correction():
    x = values("float64", (7,))
    assert_close(hf.var(x, correction=1), np.var(x, ddof=1), "float64", rtol=1e-12)
    assert_close(hf.std(x, correction=1), np.std(x, ddof=1), "float64", rtol=1e-12)
    assert np.isnan(hf.var([1.0], correction=1).item()) and np.isnan(hf.var([1.0], correction=3).item())
    assert hf.var(hf.full((1000,), 1e4)).item() == 0


def test_narrow_means_do_not_overflow():
    for dtype in (hf.float16, hf.bfloat16):
        x = hf.full((4096,), 60000.0).astype(dtype)
        assert hf.mean(x).dtype == dtype and hf.mean(x).item() == x[0].item()


def test_logsumexp():
    x = values("float64") * 100
    expected = np.log(np.sum(np.exp(x - x.max()), axis=(0, 2))) + x.max()
    assert_close(hf.logsumexp(x, axis=(0, 2)), expected, "float64", rtol=1e-12)
    assert hf.logsumexp(x, axis=1, keepdims=True).shape == (3, 1, 5)
    assert hf.logsumexp([-np.inf, -np.inf]).item() == -np.inf
    assert hf.logsumexp([np.inf, 1.0]).item() == np.inf
    assert np.isnan(hf.logsumexp([np.nan, 1.0]).item())
    with hf.GradientTape() as tape:
        v = hf.Variable([1.0, 2.0, 3.0])
        out = hf.logsumexp(v)
    np.testing.assert_allclose(tape.gradient(out, v).numpy(), np.exp([1, 2, 3]) / np.exp([1, 2, 3]).sum(), rtol=1e-6)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_cumulative_sum(axis):
    x = values("int32")
    assert_same(hf.cumulative_sum(x, axis), np.cumsum(x, axis, dtype=np.int64))
    out = hf.cumulative_sum(x, axis, include_initial=True)
    assert out.shape[axis] == x.shape[axis] + 1
    np.testing.assert_array_equal(out.numpy(), np.cumulative_sum(x, axis=axis, include_initial=True))
    assert hf.cumulative_sum([1.0, 2.0, 3.0]).tolist() == [1, 3, 6]
    with pytest.raises(errors.ArgumentError, match="axis must be given"):
        hf.cumulative_sum(x)


def test_axis_errors():
    x = hf.ones((2, 3))
    with pytest.raises(errors.ShapeError, match=r"\[sum\] axis 2 is out of range for f32\[2,3\]"):
        hf.sum(x, axis=2)
    with pytest.raises(errors.ShapeError, match="twice"):
        hf.mean(x, axis=(0, -2))
    with pytest.raises(errors.ArgumentTypeError, match=r"axis is 1\.0"):
        hf.max(x, axis=1.0)
    with pytest.raises(errors.ShapeError, match="scalar has no axes"):
        hf.sum(1.0, axis=0)


# ---- shapes


def test_reshape():
    x = np.arange(24)
    for shape in ((2, 3, 4), (-1, 6), (24, -1, 1), (4, 6)):
        assert_same(hf.reshape(x, shape), x.reshape(shape))
    assert hf.reshape(x, -1).shape == (24,) and hf.reshape([5], ()).item() == 5
    assert hf.reshape(hf.zeros((0, 3)), (3, -1)).shape == (3, 0)
    with pytest.raises(errors.ShapeError, match=r"i64\[24\] does not have as many elements as the shape \[5,5\]"):
        hf.reshape(x, (5, 5))
    with pytest.raises(errors.ShapeError, match="24 is not a multiple of 7"):
        hf.reshape(x, (-1, 7))
    with pytest.raises(errors.ShapeError, match="only one"):
        hf.reshape(x, (-1, -1))
    with pytest.raises(errors.ShapeError, match="not determined"):
        hf.reshape(hf.zeros((0,)), (0, -1))


@pytest.mark.parametrize("axes", list(itertools.permutations(range(3))))
def test_permutations_of_axes(axes):
    x = values("float32")
    assert_same(hf.permute_dims(x, axes), x.transpose(axes))
    assert_same(hf.moveaxis(x, axes[0], axes[1]), np.moveaxis(x, axes[0], axes[1]))
    assert_same(hf.moveaxis(x, axes[:2], axes[1:]), np.moveaxis(x, axes[:2], axes[1:]))


def test_other_shape_functions():
    x = values("int32")
    assert_same(hf.permute_dims(x), x.T)
    assert_same(hf.matrix_transpose(x), np.swapaxes(x, -1, -2))
    assert_same(hf.expand_dims(x, -1), x[..., None])
    assert_same(hf.expand_dims(x, (0, -1)), x[None, ..., None])
    assert_same(hf.squeeze(x[:1, :, :1]), x[0, :, 0])
    assert_same(hf.squeeze(x[:1, :, :1], axis=-1), x[:1, :, 0])
    assert_same(hf.broadcast_to(x[:, :1], (2, 3, 4, 5)), np.broadcast_to(x[:, :1], (2, 3, 4, 5)))
    assert_same(hf.broadcast_to(3, (2, 2)), np.full((2, 2), 3))
    a, b = hf.broadcast_arrays(x[:, :1], x[0])
    assert a.shape == b.shape == (3, 4, 5)
    for axis in (None, 0, (0, 2)):
        assert_same(hf.flip(x, axis), np.flip(x, axis))
    for shift, axis in ((2, None), (-1, 0), (7, 2), ((1, -2), (0, 1)), (1, (0, 0))):
        assert_same(hf.roll(x, shift, axis), np.roll(x, shift, axis))
    assert hf.roll(hf.zeros((0,)), 3).shape == (0,)
    for repetitions in (2, (2, 1), (1, 0, 2), (2, 1, 3, 1)):
        assert_same(hf.tile(x, repetitions), np.tile(x, repetitions))
    for repeats, axis in ((2, None), (3, 1), (0, 0), ([1, 0, 2], 0)):
        assert_same(hf.repeat(x, repeats, axis), np.repeat(x, repeats, axis))
    with pytest.raises(errors.ShapeError, match="extent 4"):
        hf.squeeze(x, 1)
    with pytest.raises(errors.ShapeError, match="does not broadcast"):
        hf.broadcast_to(x, (3, 4, 1))
    with pytest.raises(errors.ShapeError, match="no permutation"):
        hf.permute_dims(x, (0, 0, 1))


def test_joining_and_splitting():
    x, y = values("int32"), values("float32", (3, 2, 5))
    assert_same(hf.concat([x, y], axis=1), np.concatenate([x.astype(np.float32), y], 1))
    assert_same(hf.concat([x, y], axis=None), np.concatenate([x.astype(np.float32), y], None))
    assert_same(hf.concat([x[:0], x]), x)
    for axis in (0, 1, -1):
        assert_same(hf.stack([x, x], axis), np.stack([x, x], axis))
        for ours, theirs in zip(hf.unstack(x, axis), np.moveaxis(x, axis, 0), strict=True):
            assert_same(ours, theirs)
    for ours, theirs in zip(hf.split(x, 2, axis=1), np.split(x, 2, axis=1), strict=True):
        assert_same(ours, theirs)
    assert [p.shape[2] for p in hf.split(x, [1, -1, 2], axis=2)] == [1, 2, 2]
    with pytest.raises(errors.ShapeError, match="along axis 0 only"):
        hf.concat([x, y])
    with pytest.raises(errors.ShapeError, match="shapes differ"):
        hf.stack([x, y])
    with pytest.raises(errors.ShapeError, match="3 equal parts"):
        hf.split(x, 3, axis=1)
    with pytest.raises(errors.ArgumentError, match="at least one"):
        hf.concat([])
    with pytest.raises(errors.ShapeError, match=r"hf\.stack"):
        hf.concat([1, 2])


@pytest.mark.parametrize("mode", ["constant", "reflect", "symmetric", "edge"])
def test_pad(mode):
    x = values("int32")
    paddings = [(1, 2), (0, 3), (2, 0)]
    assert_same(hf.pad(x, paddings, mode), np.pad(x, paddings, mode=mode))
    assert_same(hf.pad(x, np.array(paddings), mode), np.pad(x, paddings, mode=mode))
    for paddings in (1, (1, 2), [(1, 2)], np.array(1), np.array([1, 2])):
        assert_same(hf.pad(x, paddings, mode), np.pad(x, paddings, mode=mode))
        assert_same(np.pad(hf.asarray(x), paddings, mode=mode), np.pad(x, paddings, mode=mode))
    for paddings in ([(1, 1), (1, 1)], (1, 2, 3), [(1, 2, 3)], []):
        with pytest.raises(errors.ShapeError, match="not one"):
            hf.pad(x, paddings, mode)


def test_pad_values_and_limits():
    x = np.ones((2, 2), np.float32)
    assert_same(hf.pad(x, [(1, 0), (0, 1)], constant_values=-7), np.pad(x, [(1, 0), (0, 1)], constant_values=-7))
    with pytest.raises(errors.ShapeError, match="more than 1 along axis 0"):
        hf.pad(x, [(2, 0), (0, 0)], "reflect")
    with pytest.raises(errors.ArgumentError, match="'wrap'"):
        hf.pad(x, [(1, 1), (1, 1)], "wrap")


# ---- products


@pytest.mark.parametrize(
    "a, b",
    [
        ((3,), (3,)),
        ((2, 3), (3,)),
        ((3,), (3, 4)),
        ((2, 3), (3, 4)),
        ((5, 2, 3), (3, 4)),
        ((2, 3), (5, 3, 4)),
        ((5, 2, 3), (5, 3, 4)),
        ((6, 1, 2, 3), (5, 3, 4)),
        ((3,), (5, 3, 4)),
        ((5, 2, 3), (3,)),
        ((0, 3), (3, 4)),
        ((2, 0), (0, 4)),
    ],
)
@pytest.mark.parametrize("dtype", ["float64", "int64"])
def test_matmul(a, b, dtype):
    x, y = values(dtype, a), values(dtype, b, 1)
    expected = x @ y
    ours = hf.matmul(x, y)
    assert ours.shape == expected.shape and ours.dtype == np.dtype(dtype)
    np.testing.assert_allclose(ours.numpy(), expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal((hf.asarray(x) @ y).numpy(), ours.numpy())


@pytest.mark.parametrize(
    "dtype, sum_dtype", [("int8", "int32"), ("uint8", "int64"), ("bfloat16", "float32"), ("float32", "float64")]
)
def test_sums_of_products_in_a_wider_dtype(dtype, sum_dtype):
    rng = np.random.default_rng(4)
    x, y = ((100 * rng.standard_normal(shape)).astype(np.dtype(dtype)) for shape in ((3, 70), (70, 5)))
    exact = x.astype(np.float64) @ y.astype(np.float64)
    for a, b, expected in ((x, y, exact), (x, y[:, 0], exact[:, 0]), (x[0], y, exact[0])):
        out = hf.matmul(a, b, sum_dtype=sum_dtype)
        assert str(out.dtype) == sum_dtype
        np.testing.assert_allclose(out.numpy(), expected, rtol=1e-2 if dtype == "bfloat16" else 1e-12, atol=1)
        compiled = hf.function(lambda a, b: hf.matmul(a, b, sum_dtype=sum_dtype))(hf.constant(a), hf.constant(b))
        assert compiled.numpy().tobytes() == out.numpy().tobytes()
    assert hf.matmul(x, y).dtype == x.dtype
    with pytest.raises(hf.errors.DTypeError, match="Expected a dtype of the same kind that holds all"):
        hf.matmul(x, y, sum_dtype="int16" if "float" in dtype else "float32")


def test_gradients_of_products_with_wider_sums_have_the_dtype_of_the_factors():
    x, y = (hf.constant(np.random.default_rng(k).standard_normal((4, 4)), "bfloat16") for k in (1, 2))
    with hf.GradientTape() as tape:
        tape.watch([x, y])
        out = hf.sum(hf.matmul(x, y, sum_dtype="float32"))
    for g, other, axis in zip(tape.gradient(out, [x, y]), (y, x), (1, 0)):
        assert g.dtype == x.dtype
        sums = other.numpy().astype(np.float64).sum(axis)
        expected = np.broadcast_to(sums[None] if axis else sums[:, None], (4, 4))
        np.testing.assert_allclose(g.numpy().astype(np.float64), expected, rtol=0.01)


def test_products_with_one_column_have_the_bits_of_eager_however_the_matrix_is_made():
    rng = np.random.default_rng(5)
    x, v = (hf.constant(rng.standard_normal(shape), "float32") for shape in ((70, 70), (70,)))
    for function in (
        lambda x, v: x @ v,
        lambda x, v: v @ x,
        lambda x, v: x.T @ v,
        lambda x, v: v @ x.T,
        lambda x, v: v @ v,
        lambda x, v: hf.tanh(x @ v + v),
        lambda x, v: hf.tanh(x.T @ hf.reshape(v, (70, 1)) + 1),
        lambda x, v: hf.reshape(x, (7, 10, 70)) @ v,
        lambda x, v: hf.matmul(hf.reshape(v, (7, 1, 10)), hf.reshape(v, (7, 10, 1))),
    ):
        assert hf.function(function)(x, v).numpy().tobytes() == function(x, v).numpy().tobytes()


def test_matmul_errors():
    with pytest.raises(
        errors.ShapeError, match=r"x is f32\[2,3\], y is f32\[4,3\].*y\.shape\[-2\].*Did you mean x @ y\.T"
    ):
        hf.ones((2, 3)) @ hf.ones((4, 3))
    with pytest.raises(errors.ShapeError, match=r"Did you mean x\.T @ y"):
        hf.ones((3, 2)) @ hf.ones((3, 4))
    with pytest.raises(errors.ShapeError, match="leading axes"):
        hf.ones((2, 3, 3)) @ hf.ones((4, 3, 3))
    with pytest.raises(errors.ShapeError, match="scalars"):
        hf.ones((2, 3)) @ 2.0
    with pytest.raises(errors.DTypeError, match="bool"):
        hf.ones((2, 2), hf.bool) @ hf.ones((2, 2), hf.bool)


def test_other_products():
    x, y = values("float64", (2, 3, 4)), values("float64", (4, 3, 5), 1)
    for axes in (1, 0, ([1, 2], [1, 0]), ([2], [0]), (1, 1)):
        np.testing.assert_allclose(hf.tensordot(x, y, axes).numpy(), np.tensordot(x, y, axes), rtol=1e-12)
    np.testing.assert_allclose(hf.tensordot(x, x, 3).numpy(), np.tensordot(x, x, 3), rtol=1e-12)
    np.testing.assert_allclose(hf.vecdot(x, x[0]).numpy(), np.vecdot(x, x[0]), rtol=1e-12)
    np.testing.assert_allclose(hf.vecdot(x, x, axis=0).numpy(), (x * x).sum(0), rtol=1e-12)
    assert_same(hf.outer([1, 2], [3, 4, 5]), np.outer([1, 2], [3, 4, 5]))
    for shape, offset in itertools.product(((4, 3), (3, 4), (2, 5, 3)), (-5, -2, -1, 0, 1, 2, 7)):
        z = values("int64", shape)
        assert_same(hf.diagonal(z, offset), np.diagonal(z, offset, -2, -1))
        assert_same(hf.trace(z, offset), np.trace(z, offset, -2, -1))
    with pytest.raises(errors.ShapeError, match="different extents"):
        hf.tensordot(x, y, ([0], [0]))


@pytest.mark.parametrize(
    "equation, shapes",
    [
        ("ij,jk->ik", [(2, 3), (3, 4)]),
        ("ij,jk", [(2, 3), (3, 4)]),
        ("ba,cb", [(2, 3), (4, 2)]),
        ("bij,bjk->bik", [(5, 2, 3), (5, 3, 4)]),
        ("bhqd,bhkd->bhqk", [(2, 3, 4, 5), (2, 3, 6, 5)]),
        ("...ij,...jk->...ik", [(5, 2, 3), (3, 4)]),
        ("...ij,jk", [(6, 5, 2, 3), (3, 4)]),
        ("i...,i...->...", [(3, 1, 4), (3, 2, 1)]),
        ("ii", [(3, 3)]),
        ("ii->i", [(3, 3)]),
        ("iij->ji", [(3, 3, 2)]),
        ("ijkij->k", [(2, 3, 4, 2, 3)]),
        ("ij->ji", [(2, 3)]),
        ("ij->", [(2, 3)]),
        ("i,j->ij", [(2,), (3,)]),
        ("i,i->i", [(3,), (3,)]),
        ("i,i", [(3,), (3,)]),
        ("ij,ij->i", [(2, 3), (2, 3)]),
        ("ij,j->i", [(2, 3), (1,)]),
        ("a,ab,b->", [(2,), (2, 3), (3,)]),
        ("ab,bc,cd,de->ae", [(2, 3), (3, 4), (4, 2), (2, 5)]),
        ("ij,kl->", [(2, 3), (4, 5)]),
        ("abc,cd,d->ab", [(2, 3, 4), (4, 5), (5,)]),
        (" i j , j k -> i k ", [(2, 3), (3, 4)]),
        (",ij->ij", [(), (2, 3)]),
        ("ijk,jil->kl", [(3, 4, 5), (4, 3, 2)]),
        ("Ab,bC->AC", [(2, 3), (3, 4)]),
        ("ij,jk->ik", [(2, 0), (0, 4)]),
    ],
)
def test_einsum(equation, shapes):
    operands = [values("float64", shape, k) for k, shape in enumerate(shapes)]
    expected = np.einsum(equation, *operands)
    ours = hf.einsum(equation, *operands)
    assert ours.shape == expected.shape
    np.testing.assert_allclose(ours.numpy(), expected, rtol=1e-12, atol=1e-12)
    integers = [values("int32", shape, k) for k, shape in enumerate(shapes)]
    assert_same(hf.einsum(equation, *integers), np.einsum(equation, *integers))


@pytest.mark.parametrize(
    "equation, shapes, message",
    [
        ("ij,jk->ik", [(2, 3)], "names 2 operands, 1 are given"),
        ("ij->ik", [(2, 3)], "'k' in the output but in no operand"),
        ("ij->ii", [(2, 3)], "'i' twice in the output"),
        ("ijk->i", [(2, 3)], r"3 labels, but that operand is f32\[2,3\]"),
        ("i->i", [(2, 3)], "1 labels"),
        ("i1->i", [(2, 3)], "not letters"),
        ("...i->i", [(2, 3)], "lacks"),
        ("ij,jk->ik", [(2, 3), (4, 5)], "label 'j'.*extents 3 and 4"),
        ("ii->i", [(2, 3)], "label 'i'"),
    ],
)
def test_einsum_errors(equation, shapes, message):
    with pytest.raises(ValueError, match=rf"\[einsum\].*{message}"):
        hf.einsum(equation, *(hf.ones(shape) for shape in shapes))


# ---- sorting


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_sorting(axis, descending):
    x = np.random.default_rng(3).integers(-3, 4, (6, 7, 8)).astype(np.float32)
    x[x == 3] = np.nan
    x[0, 0, 0], x[1, 1, 1] = np.inf, -np.inf
    # The independent rule: sort stably by (is NaN, key), with the key negated for a descending order.
    positions = np.lexsort((-x if descending else x, np.isnan(x)), axis=axis)
    np.testing.assert_array_equal(hf.argsort(x, axis, descending).numpy(), positions)
    np.testing.assert_array_equal(hf.sort(x, axis, descending).numpy(), np.take_along_axis(x, positions, axis))


def test_sorting_integers_and_small_inputs():
    for dtype in ("int8", "uint64", "int64", "bool"):
        x = values(dtype, (31,))
        np.testing.assert_array_equal(hf.sort(x).numpy(), np.sort(x))
        assert hf.sort(x, descending=True).tolist() == np.sort(x)[::-1].tolist()
    assert hf.sort(hf.zeros((0,))).shape == (0,) and hf.sort([5.0]).tolist() == [5]
    with pytest.raises(errors.ShapeError, match="scalar"):
        hf.sort(1.0)


def test_top_k():
    found, positions = hf.top_k([[1.0, 9.0, 9.0, 3.0], [0.0, -1.0, -2.0, -3.0]], 2)
    assert found.tolist() == [[9, 9], [0, -1]] and positions.tolist() == [[1, 2], [0, 1]]
    assert positions.dtype == np.int64
    with pytest.raises(errors.ArgumentError, match=r"k = 5 must lie in \[0, 4\]"):
        hf.top_k([1, 2, 3, 4], 5)


def test_gradients_flow_through_compositions():
    x = hf.Variable(values("float64", (3, 4)))
    cases = [
        lambda v: hf.einsum("ij,ij->", v, v),
        lambda v: hf.sum(hf.sort(v, axis=1) * hf.arange(4.0, dtype=hf.float64)),
        lambda v: hf.sum(hf.pad(v, [(1, 1), (2, 0)], "reflect") ** 2),
        lambda v: hf.sum(hf.roll(v, 1, 0) * v),
        lambda v: hf.sum(hf.tile(v, (2, 3)) ** 2),
        lambda v: hf.sum(hf.diagonal(v) ** 2),
        lambda v: hf.var(v, correction=1),
        lambda v: hf.sum(hf.where(v > 0, hf.sqrt(hf.abs(v)), v)),
        lambda v: hf.sum(hf.cumulative_sum(v, 1) ** 2),
    ]
    for case in cases:
        with hf.GradientTape() as tape:
            out = case(x)
        gradient = tape.gradient(out, x).numpy()
        start = x.numpy()
        for i, j in ((0, 0), (1, 2), (2, 3)):
            step = np.zeros_like(start)
            step[i, j] = 1e-6
            slope = (case(hf.asarray(start + step)).item() - case(hf.asarray(start - step)).item()) / 2e-6
            assert gradient[i, j] == pytest.approx(slope, rel=1e-4, abs=1e-7)


# ---- odd arguments


@pytest.mark.parametrize("k", [2**63 - 1, -(2**63), 2**80, -(2**80)])
def test_diagonals_far_outside(k: int) -> None:
    x = np.arange(12.0, dtype=np.float32).reshape(3, 4)
    assert_same(hf.tril(x, k), np.tril(x, 9 if k > 0 else -9))
    assert_same(hf.triu(x, k), np.triu(x, 9 if k > 0 else -9))
    with pytest.raises(errors.ArgumentTypeError, match=r"\[tril\] k is 1\.5"):
        hf.tril(x, 1.5)


def test_linspace_of_integers_rounds_down() -> None:
    for bounds in ((-1, 1, 4), (0, -10, 7), (2.5, 7.5, 3)):
        assert_same(hf.linspace(*bounds, dtype=hf.int32), np.linspace(*bounds, dtype=np.int32))


def test_diff_takes_scalars_at_the_ends() -> None:
    x = np.arange(12.0, dtype=np.float32).reshape(3, 4) ** 2
    for axis in (0, 1):
        assert_same(hf.diff(x, axis=axis, prepend=0.0), np.diff(x, axis=axis, prepend=np.float32(0)))
        assert_same(hf.diff(x, axis=axis, append=1.0), np.diff(x, axis=axis, append=np.float32(1)))


@pytest.mark.parametrize(
    ("kind", "call", "message"),
    [
        (errors.ArgumentError, lambda: hf.arange(hf.nan), r"\[arange\] stop is nan"),
        (errors.ArgumentError, lambda: hf.arange(0, hf.inf), r"\[arange\] stop is inf"),
        (errors.ArgumentTypeError, lambda: hf.arange("a"), r"\[arange\] str is not"),
        (errors.ShapeError, lambda: hf.arange(hf.ones(2)), r"\[arange\] stop is f32\[2\]"),
        (errors.ShapeError, lambda: hf.linspace(hf.ones(2), 1, 3), r"\[linspace\] start is f64\[2\]"),
        (errors.ArgumentTypeError, lambda: hf.einsum(3), r"\[einsum\] the equation is"),
    ],
)
def test_odd_arguments(kind: type, call: Callable[[], object], message: str) -> None:
    with pytest.raises(kind, match=rf"{message}.*\(test_array_functions\.py:"):
        call()


RANGES: list[tuple[tuple[int, ...], str]] = [
    ((2**63, 2**63 + 3), "uint64"),
    ((2**64 - 1, 2**64 - 4, -1), "uint64"),
    ((0, 2**64, 2**62), "uint64"),
    ((2**64 - 1, 2**63, -(2**62)), "uint64"),
    ((-(2**63), 2**63, 2**62), "int64"),
    ((127, -129, -85), "int8"),
    ((0, 5, 2**70), "int64"),
    ((5, 0, 2**70), "int64"),
    ((0, -5), "uint8"),
]


@pytest.mark.parametrize(("bounds", "dtype"), RANGES, ids=str)
def test_ranges_up_to_the_ends_of_a_dtype(bounds: tuple[int, ...], dtype: str) -> None:
    for f in (lambda: hf.arange(*bounds, dtype=dtype), hf.function(lambda: hf.arange(*bounds, dtype=dtype))):
        assert f().tolist() == list(range(*bounds)) and f().dtype == dtype


@pytest.mark.parametrize(
    ("bounds", "dtype", "number"),
    [
        ((0, 2**64, 2**62), "int64", 3 * 2**62),
        ((2**63 - 2, 2**63 + 3), "int64", 2**63 + 2),
        ((-5, 5), "uint8", -5),
        ((300,), "int8", 299),
        ((129,), "int8", 128),
        ((-3.0, 3.0), "uint8", -3),
    ],
    ids=str,
)
def test_ranges_beyond_their_dtype_are_refused(bounds: tuple[Any, ...], dtype: str, number: int) -> None:
    for f in (lambda: hf.arange(*bounds, dtype=dtype), hf.function(lambda: hf.arange(*bounds, dtype=dtype))):
        with pytest.raises(errors.ArgumentError, match=rf"^\[arange\] the Python number {number} does not fit {dtype}"):
            f()


def test_ranges_of_open_extents_are_held_against_their_dtype() -> None:
    by_number = hf.function(lambda n: hf.arange(n, dtype="int8"))
    by_shape = hf.function(lambda x: hf.arange(x.shape[0], dtype="int8"))
    for n in (3, 4, 5, 100, 128, 129, 300, 7):
        for f, argument in ((by_number, n), (by_shape, hf.zeros(n))):
            if n <= 128:
                assert f(argument).tolist() == list(range(n))
            else:
                with pytest.raises(errors.ArgumentError, match="does not fit int8"):
                    f(argument)


_WITHOUT_WIDENING = """
import resource
import numpy as np
import hybridflow as hf

x = hf.asarray(np.ones(60_000_000, np.uint8))
hf.sum(x[:1000]), hf.count_nonzero(x[:1000]), hf.bincount(x[:1000], length=3)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
found = [hf.sum(x), hf.prod(x), hf.count_nonzero(x), hf.bincount(x)[1], hf.bincount(x, length=3)[1]]
print(*[int(y) for y in found], (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


def test_many_small_integers_are_folded_without_a_wider_copy() -> None:
    run = subprocess.run([sys.executable, "-c", _WITHOUT_WIDENING], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    *found, more = map(int, run.stdout.split())
    assert found == [60_000_000, 1, *[60_000_000] * 3]
    assert more < 150  # megabytes; all of them as int64 are 480


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32"])
def test_folds_of_many_integers_wrap_as_those_of_few(dtype: str) -> None:
    rng = np.random.default_rng(0)
    limits = (0, 1) if dtype == "bool" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    array = rng.integers(*limits, (300, 4, 80), dtype="int64", endpoint=True).astype(dtype)
    x, wide = hf.asarray(array), "uint64" if dtype.startswith("u") else "int64"
    for name in ("sum", "prod"):
        ours, theirs = getattr(hf, name), getattr(np, name)
        for axis, keepdims in ((None, False), (0, True), (1, False), ((0, 2), False), (-1, True), ((), False)):
            found = ours(x, axis=axis, keepdims=keepdims)
            wanted = np.asarray(theirs(array, axis=axis, keepdims=keepdims, dtype=wide))
            assert found.dtype == wide and found.shape == wanted.shape
            np.testing.assert_array_equal(found.numpy(), wanted)
        compiled = hf.function(lambda x, ours=ours: (ours(x), ours(x, axis=1)))(x)
        assert [y.numpy().tobytes() for y in compiled] == [y.numpy().tobytes() for y in (ours(x), ours(x, axis=1))]


def test_counts_of_many_integers() -> None:
    numbers = np.random.default_rng(0).integers(-3, 40, 700_000).astype(np.int16)
    x, inside = hf.asarray(numbers), numbers[numbers >= 0]
    for length in (20, 50, 0, 300_000):
        wanted = np.bincount(inside[inside < length], minlength=length)
        np.testing.assert_array_equal(hf.bincount(x, length=length).numpy(), wanted)
    np.testing.assert_array_equal(hf.bincount(hf.asarray(inside), minlength=60), np.bincount(inside, minlength=60))
    with pytest.raises(errors.ArgumentError, match="-3 is among the numbers"):
        hf.bincount(x)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float64"])
def test_distinct_elements_with_nan(dtype: str) -> None:
    array = np.array([np.nan, np.inf, 0.5, 2.5, np.nan, -1.0, 0.5, -np.inf])
    x = hf.asarray(array).astype(dtype)
    wanted = np.unique(array, return_index=True, return_inverse=True, return_counts=True, equal_nan=False)
    found = hf.unique_all(x)
    np.testing.assert_array_equal(found.values.numpy().astype(float), wanted[0])
    for ours, theirs in zip(found[1:], wanted[1:]):
        np.testing.assert_array_equal(ours.numpy(), theirs)
    np.testing.assert_array_equal(hf.unique_values(x).numpy().astype(float), wanted[0])
    known = hf.function(lambda: hf.unique_values(x))()
    np.testing.assert_array_equal(known.numpy().astype(float), wanted[0])
    sized = hf.function(lambda x: hf.unique_values(x, size=7))(x)
    np.testing.assert_array_equal(sized.numpy().astype(float), wanted[0])


def test_bools_complex_numbers_and_axes_that_are_left_out() -> None:
    """Extremes of bools are NumPy's, variances of complex numbers real; running totals without an axis are of all."""
    some = np.array([[False, True, True], [False, False, False]])
    for name in ("max", "min", "argmax", "argmin"):
        for axis in (None, 0, 1):
            found, expected = getattr(hf, name)(some, axis=axis), getattr(np, name)(some, axis=axis)
            assert found.tolist() == expected.tolist() and found.dtype == expected.dtype
    x = np.array([[1 + 2j, np.nan, 3 - 1j], [0.5j, 2, -1]])
    for name in ("nanvar", "nanstd"):
        np.testing.assert_allclose(getattr(hf, name)(x, axis=1).numpy(), getattr(np, name)(x, axis=1), strict=True)
    for name in ("nancumsum", "nancumprod"):
        np.testing.assert_allclose(getattr(hf, name)(x.real).numpy(), getattr(np, name)(x.real), strict=True)
    z = np.array([1 + 1e-200j, -1 + 1e-200j, 1 + 1e-9j])
    np.testing.assert_allclose(hf.atanh(z).numpy(), np.arctanh(z), rtol=1e-13)


def test_forms_of_decompositions() -> None:
    rng = np.random.default_rng(0)
    for shape in ((5, 3), (3, 5), (2, 4, 4)):
        x = rng.normal(size=shape)
        p, lower, upper = hf.linalg.lu(x)
        first, second = hf.linalg.lu(x, permute_l=True)
        assert first.tolist() == (p @ lower).tolist() and second.tolist() == upper.tolist()
        assert hf.linalg.qr(x, mode="r").tolist() == hf.linalg.qr(x).R.tolist()
    c = rng.normal(size=4) + 1j
    assert hf.linalg.toeplitz(c)[0, 1:].tolist() == np.conj(c[1:]).tolist()
    assert hf.linalg.norm(c, ord=0).dtype == np.float64
