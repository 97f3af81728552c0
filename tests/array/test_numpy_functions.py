"""Functions that NumPy makes of others of its own, eagerly and compiled, beside NumPy itself."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors

RNG = np.random.default_rng(5)
MATRIX = RNG.normal(size=(6, 5))
SQUARE = MATRIX @ MATRIX.T + 6 * np.eye(6)
VECTOR = np.array([0.5, -1.25, 2.0, 0.0, 3.5, -0.75])
HOLES = np.array([[1.0, np.nan, 3.0], [np.nan, np.nan, np.nan], [-0.0, np.inf, -2.0]])
WHOLE = np.array([3, 1, 2, 3, 0, 7])
CUBE = RNG.normal(size=(2, 3, 4))

CALLS: list[tuple[str, Callable[[Any], Any], Any]] = [
    ("sum, initial", lambda x: np.sum(x, axis=0, initial=2.0), MATRIX),
    ("sum, where", lambda x: np.sum(x, where=x > 0), MATRIX),
    ("prod, where", lambda x: np.prod(x, axis=1, where=x > 0, initial=2.0), MATRIX),
    ("max, initial", lambda x: np.max(x, axis=1, initial=0.5), MATRIX),
    ("max, where", lambda x: np.max(x, initial=-1.0, where=x < 0), MATRIX),
    ("max of nothing", lambda x: np.max(x[:0], initial=3.0), VECTOR),
    ("min of no columns", lambda x: np.min(x[:, :0], axis=1, initial=3.0), MATRIX),
    ("min", lambda x: np.min(x, keepdims=True), MATRIX),
    ("ptp", lambda x: np.ptp(x, axis=1), MATRIX),
    ("average", lambda x: np.average(x), MATRIX),
    ("average, weights", lambda x: np.average(x, axis=0, weights=np.arange(6.0)), MATRIX),
    ("average, returned", lambda x: np.average(x, weights=np.arange(6.0), returned=True), VECTOR),
    ("cov", lambda x: np.cov(x), MATRIX),
    ("cov of columns", lambda x: np.cov(x, rowvar=False, bias=True), MATRIX),
    ("cov of two", lambda x: np.cov(x, x[::-1]), VECTOR),
    ("cov of one", lambda x: np.cov(x), VECTOR),
    ("corrcoef", lambda x: np.corrcoef(x), MATRIX),
    ("nansum", lambda x: np.nansum(x, axis=1), HOLES),
    ("nanprod", lambda x: np.nanprod(x, axis=0), HOLES),
    ("nansum of ints", lambda x: np.nansum(x), WHOLE),
    ("nanmean", lambda x: np.nanmean(x, axis=0), HOLES),
    ("nanmean of none", lambda x: np.nanmean(x, axis=1), HOLES),
    ("nanmax", lambda x: np.nanmax(x, axis=1), HOLES),
    ("nanmin", lambda x: np.nanmin(x), HOLES),
    ("nanmax of ints", lambda x: np.nanmax(x), WHOLE),
    ("nanstd", lambda x: np.nanstd(x[::2, ::2], axis=0, ddof=1), HOLES),
    ("nanvar", lambda x: np.nanvar(x[:1], axis=1), HOLES),
    ("trapezoid", lambda x: np.trapezoid(x, dx=0.5), MATRIX),
    ("trapezoid, places", lambda x: np.trapezoid(x, np.arange(6.0) ** 2, axis=0), MATRIX),
    ("atleast_1d", lambda x: np.atleast_1d(x[0], x), VECTOR),
    ("atleast_2d", lambda x: np.atleast_2d(x), VECTOR),
    ("atleast_3d", lambda x: [np.atleast_3d(x), np.atleast_3d(x[0])], MATRIX),
    ("dstack", lambda x: np.dstack([x, x]), MATRIX),
    ("dstack of vectors", lambda x: np.dstack([x, x]), VECTOR),
    ("column_stack", lambda x: np.column_stack([x, x[:, 0]]), MATRIX),
    ("block", lambda x: np.block([[x, np.zeros((6, 1))], [np.ones((1, 6))]]), MATRIX),
    ("block of vectors", lambda x: np.block([x, 1.0, x]), VECTOR),
    ("split", lambda x: np.split(x, 3), VECTOR),
    ("split at", lambda x: np.split(x, [1, 4], axis=1), MATRIX),
    ("array_split", lambda x: np.array_split(x, 4), VECTOR),
    ("hsplit", lambda x: np.hsplit(x, [2]), MATRIX),
    ("vsplit", lambda x: np.vsplit(x, 2), MATRIX),
    ("dsplit", lambda x: np.dsplit(x, 2), CUBE),
    *((f"rot90, {k}", lambda x, k=k: np.rot90(x, k, axes=(1, 2)), CUBE) for k in range(-1, 4)),
    ("fliplr", lambda x: [np.fliplr(x), np.flipud(x)], MATRIX),
    ("append", lambda x: np.append(x, [1.0, 2.0]), VECTOR),
    ("append, axis", lambda x: np.append(x, x[:1], axis=0), MATRIX),
    ("insert", lambda x: np.insert(x, 2, 9.0), VECTOR),
    ("insert, several", lambda x: np.insert(x, -1, [9.0, 8.0]), VECTOR),
    ("insert, axis", lambda x: np.insert(x, 1, x[:, 0], axis=1), MATRIX),
    ("delete", lambda x: np.delete(x, 2), VECTOR),
    ("delete, several", lambda x: np.delete(x, [0, -1], axis=1), MATRIX),
    *((f"diag, {k}", lambda x, k=k: [np.diag(x, k), np.diag(x[:2], k)], VECTOR) for k in range(-2, 3)),
    ("diag of NaN", lambda x: np.diag(x), np.array([np.nan, np.inf])),
    ("diag of a matrix", lambda x: np.diag(x, 1), MATRIX),
    ("diagflat", lambda x: np.diagflat(x[:2, :2]), MATRIX),
    ("unravel_index", lambda x: np.unravel_index(np.argmax(x), x.shape), CUBE),
    ("cond", lambda x: [np.linalg.cond(x), np.linalg.cond(x, -2), np.linalg.cond(x, 1)], SQUARE),
    ("inner", lambda x: [np.inner(x, x), np.inner(x[0], 2.0)], MATRIX),
    ("kron", lambda x: np.kron(x[:2], x[:, :2]), MATRIX),
    ("kron of unlike", lambda x: np.kron(np.arange(3.0), x), MATRIX),
    ("multi_dot", lambda x: np.linalg.multi_dot([x.T, x, x.T]), MATRIX),
    ("vdot", lambda x: np.vdot(x, x), MATRIX),
    ("cross", lambda x: np.cross(x[:, :3], x[:, 1:4]), MATRIX),
    *(
        (f"convolve, {mode}, {n}", lambda x, mode=mode, n=n: np.convolve(x, np.arange(1.0, n + 1), mode), VECTOR)
        for mode in ("full", "same", "valid")
        for n in (1, 2, 3, 6, 8)
    ),
    *(
        (f"correlate, {mode}, {n}", lambda x, mode=mode, n=n: np.correlate(x, np.arange(1.0, n + 1), mode), VECTOR)
        for mode in ("full", "same", "valid")
        for n in (1, 2, 3, 6, 7, 8)
    ),
    ("convolve ints", lambda x: np.convolve(x, [1, 2]), WHOLE),
    ("interp", lambda x: np.interp(x, [-1.0, 0.0, 0.5, 2.0], [3.0, 1.0, -1.0, 0.0]), VECTOR),
    ("interp, ends", lambda x: np.interp(x, [-1.0, 0.0], [3.0, 1.0], left=-9.0, right=9.0), VECTOR),
    ("interp of one", lambda x: np.interp(x, [0.5], [3.0]), VECTOR),
    ("interp, NaN", lambda x: np.interp(x, [0.0, 1.0], [3.0, 4.0]), HOLES),
    ("interp, twice a place", lambda x: np.interp(x, [0.0, 0.5, 0.5, 1.0], [1.0, 2.0, 3.0, 4.0]), VECTOR),
    ("gradient", lambda x: np.gradient(x), VECTOR),
    ("gradient of two", lambda x: np.gradient(x[:2], 0.5), VECTOR),
    ("gradient of a matrix", lambda x: np.gradient(x, 2.0, 0.5), MATRIX),
    ("gradient, places", lambda x: np.gradient(x, np.arange(6.0) ** 2), VECTOR),
    ("gradient, axis", lambda x: np.gradient(x, axis=1), CUBE),
    ("polyval", lambda x: np.polyval([1.0, 2.0, 3.0], x), VECTOR),
    ("digitize", lambda x: np.digitize(x, [-1.0, 0.0, 2.0]), VECTOR),
    ("digitize, right", lambda x: np.digitize(x, [-1.0, 0.0, 2.0], right=True), VECTOR),
    ("digitize, down", lambda x: np.digitize(x, [2.0, 0.0, -1.0]), VECTOR),
    ("digitize, down, right", lambda x: np.digitize(x, [2.0, 0.0, -1.0], right=True), VECTOR),
    ("select", lambda x: np.select([x < 0, x > 1], [x * 2, x * x], -7.0), VECTOR),
    ("piecewise", lambda x: np.piecewise(x, [x < 0, x >= 2], [-1.0, lambda t: t * t, lambda t: t + 1]), VECTOR),
    ("fmax", lambda x: [np.fmax(x, 0.0), np.fmin(0.5, x)], HOLES),
    ("heaviside", lambda x: np.heaviside(x, 0.25), HOLES),
    ("sinc", lambda x: np.sinc(x), VECTOR),
    ("angle", lambda x: [np.angle(x), np.angle(x, deg=True)], HOLES),
    ("modf", lambda x: np.modf(x), HOLES),
    ("rint", lambda x: [np.rint(x * 1.5), np.fix(x)], VECTOR),
    ("isposinf", lambda x: [np.isposinf(x), np.isneginf(-x)], HOLES),
    ("lexsort", lambda x: np.lexsort((x, x > 0)), VECTOR),
    ("partition", lambda x: np.partition(x, 2)[2], VECTOR),
    ("argpartition", lambda x: np.argpartition(x, 2)[2], VECTOR),
    ("outer", lambda x: [np.multiply.outer(x, x), np.add.outer(x, np.ones((2, 2)))], VECTOR),
]


def same(found: Any, expected: Any) -> None:
    if isinstance(expected, (list, tuple)):
        assert len(found) == len(expected)
        for one, other in zip(found, expected):
            same(one, other)
        return
    expected = np.asarray(expected)
    assert isinstance(found, hf.Tensor) and found.shape == expected.shape and found.dtype == expected.dtype
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("call", "x"), [pytest.param(call, x, id=name) for name, call, x in CALLS])
def test_as_numpy(call: Callable[[Any], Any], x: np.ndarray) -> None:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of means of nothing
        expected = call(x)
    same(call(hf.asarray(x)), expected)
    same(hf.function(call)(hf.asarray(x)), expected)


def test_gradients() -> None:
    x = hf.asarray(VECTOR)
    for call in (lambda x: np.interp(0.25, np.arange(6.0), x), lambda x: np.convolve(x, [1.0, 2.0])[2], np.ptp):
        analytic = hf.grad(lambda x, call=call: hf.sum(call(x)))(x)
        step = 1e-6 * np.eye(6)
        numeric = [(np.sum(call(VECTOR + d)) - np.sum(call(VECTOR - d))) / 2e-6 for d in step]
        np.testing.assert_allclose(analytic.numpy(), numeric, atol=1e-8)


def test_statements_take_what_is_no_bool_while_tracing() -> None:
    f = hf.function(lambda x, y: 1 if np.allclose(x, y) else 2)
    assert int(f(hf.ones(2), hf.ones(2))) == 1 and int(f(hf.ones(2), hf.zeros(2))) == 2
    assert np.allclose(hf.ones(2), np.ones(2)) is True and np.array_equal(hf.ones(2), np.ones(3)) is False


def test_sizes_that_are_open() -> None:
    f = hf.function(lambda x: [np.gradient(x), np.diag(x), np.convolve(x, [1.0, 2.0]), np.array_split(x, 2)[0]])
    for n in (4, 5, 7, 9):
        x = np.arange(float(n)) ** 2
        found = f(hf.asarray(x))
        same(found[:3], [np.gradient(x), np.diag(x), np.convolve(x, [1.0, 2.0])])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: np.split(x, 4), "no 4 equal parts"),
        (lambda x: np.insert(x, 9, 1.0), "index 9 is out of range"),
        (lambda x: np.convolve(x[:0], x), "vectors with elements"),
        (lambda x: np.interp(x, [0.0, 1.0], [1.0]), "vectors of one size"),
        (lambda x: np.max(x, where=x > 0), "where= needs initial="),
        (lambda x: np.gradient(x[:1]), "at least two elements"),
        (lambda x: np.average(x, weights=[1.0]), "say which axis"),
        (lambda x: np.select([x > 0], []), "1 conditions for 0 choices"),
    ],
)
def test_wrong_use(call: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(errors.HybridflowError, match=message):
        call(hf.asarray(VECTOR))
