"""NumPy's functions on tensors give tensors, eagerly and compiled, equal to what NumPy gives for arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors

pytestmark = pytest.mark.code

A = np.array([[1.5, -2.0, 0.25], [3.0, 0.5, -1.0]], np.float32)
B = np.array([[2.0, 1.0, 4.0], [0.5, 3.0, 2.0]], np.float32)

CALLS: dict[str, Callable[[Any], Any]] = {
    "sin": lambda x: np.sin(x),
    "arctan2": lambda x: np.arctan2(x, B),
    "sum": lambda x: np.sum(x, axis=0),
    "median": lambda x: np.median(x, 1, None, False, True),
    "quantile": lambda x: np.quantile(x, 0.25, axis=0, method="higher"),
    "percentile": lambda x: np.percentile(x, 75),
    "nanmedian": lambda x: np.nanmedian(x, axis=0),
    "histogram": lambda x: np.histogram(x, 4, (-2, 2))[0],
    "sum, all": lambda x: np.sum(x),
    "mean": lambda x: np.mean(x, axis=1, keepdims=True),
    "var": lambda x: np.var(x, ddof=1),
    "max": lambda x: np.max(x, axis=(0, 1)),
    "argmax": lambda x: np.argmax(x, axis=1),
    "concatenate": lambda x: np.concatenate([x, B, x], axis=1),
    "stack": lambda x: np.stack([x, x], axis=2),
    "vstack": lambda x: np.vstack([x, x[0]]),
    "hstack": lambda x: np.hstack([x, x]),
    "where": lambda x: np.where(x > 0, x, np.float32(0)),
    "clip": lambda x: np.clip(x, -1, 1),
    "norm": lambda x: np.linalg.norm(x),
    "norm of rows": lambda x: np.linalg.norm(x, axis=1, keepdims=True),
    "norm of a matrix": lambda x: np.linalg.norm(x, ord="nuc"),
    "svd": lambda x: np.linalg.svd(x)[1],
    "transpose": lambda x: np.transpose(x),
    "swapaxes": lambda x: np.swapaxes(x, 0, 1),
    "reshape": lambda x: np.reshape(x, (3, 2)),
    "ravel": lambda x: np.ravel(x),
    "einsum": lambda x: np.einsum("ij,kj->ik", x, B, optimize=True),
    "dot": lambda x: np.dot(x, B.T),
    "outer": lambda x: np.outer(x, x[0]),
    "trace": lambda x: np.trace(x),
    "cumsum": lambda x: np.cumsum(x, axis=1),
    "cumsum, flat": lambda x: np.cumsum(x, dtype=np.float64),
    "sort": lambda x: np.sort(x, axis=0),
    "sort, flat": lambda x: np.sort(x, axis=None, kind="stable"),
    "argsort, flat": lambda x: np.argsort(x, axis=None),
    "take": lambda x: np.take(x, [1, 0], axis=1),
    "take, flat": lambda x: np.take(x, [4, 0], mode="raise"),
    "round": lambda x: np.round(x, 1),
    "around": lambda x: np.around(x, decimals=1),
    "amax": lambda x: np.amax(x, axis=0),
    "std": lambda x: np.std(x, axis=1, dtype=np.float64, ddof=1),
    "cumprod": lambda x: np.cumprod(x),
    "copy": lambda x: np.copy(x, order="K"),
    "diagonal": lambda x: np.diagonal(x, 1),
    "diff": lambda x: np.diff(x, 1, 0),
    "isclose": lambda x: np.isclose(x, B),
    "zeros_like": lambda x: np.zeros_like(x),
    "full_like": lambda x: np.full_like(x, 3),
    "pad": lambda x: np.pad(x, [(1, 0), (0, 2)]),
    "tile": lambda x: np.tile(x, (2, 1)),
    "add.reduce": lambda x: np.add.reduce(x),
    "maximum.reduce": lambda x: np.maximum.reduce(x, axis=1),
    "add.accumulate": lambda x: np.add.accumulate(x, axis=1),
    "array + x": lambda x: B + x,
    "array - x": lambda x: B - x,
    "array / x": lambda x: B / x,
    "array // x": lambda x: B // x,
    "array % x": lambda x: B % x,
    "array ** x": lambda x: B**x,
    "array @ x": lambda x: B.T @ x,
    "array < x": lambda x: x > B,
    "array == x": lambda x: x == B,
    "float64 * x": lambda x: np.float32(2) * x,
    "divmod": lambda x: divmod(B, x)[1],
}


@pytest.mark.parametrize("name", CALLS)
def test_functions(name: str) -> None:
    call, x = CALLS[name], hf.asarray(A)
    expected = np.asarray(call(A))
    for run in (call, hf.function(call)):
        found = run(x)
        assert isinstance(found, hf.Tensor) and found.shape == expected.shape and found.dtype == expected.dtype
        np.testing.assert_allclose(found.numpy(), expected, rtol=2e-6, atol=1e-6)


def test_gradients_flow() -> None:
    x, v = hf.asarray(A), hf.Variable(B)
    with hf.GradientTape() as tape:
        tape.watch(x)
        y = np.sum(np.exp(x) * B + np.square(v))
    of_x, of_v = tape.gradient(y, (x, v))
    np.testing.assert_allclose(of_x, np.exp(A) * B, rtol=1e-6)
    np.testing.assert_allclose(of_v, 2 * B)


def test_what_has_no_counterpart() -> None:
    x = hf.asarray(A)
    assert isinstance(np.spacing(x), hf.Tensor) and (np.spacing(x).numpy() == np.spacing(A)).all()
    with pytest.raises(errors.TraceError, match=r"\[np.spacing\] has no counterpart"):
        hf.function(lambda x: np.spacing(x))(x)
    with pytest.raises(errors.TraceError, match=r"\[np.apply_over_axes\] .* Write hf.sum\(x, axis="):
        hf.function(lambda x: np.apply_over_axes(np.sum, x, 0))(x)
    with hf.GradientTape() as tape:
        tape.watch(x)
        with pytest.raises(errors.ArgumentTypeError, match=r"\[np.spacing\].*apart from the tape"):
            np.spacing(x)
        assert np.spacing(hf.asarray(A)).numpy().max() == np.spacing(A).max()  # not tracked


def test_arguments_without_counterpart() -> None:
    x = hf.asarray(A)
    for call, message in (
        (lambda: np.mean(x, where=A > 0), r"\[np.mean\] is hf.mean here, which has no where="),
        (lambda: np.linalg.pinv(x, rcond=1), r"\[np.linalg.pinv\] is hf.linalg.pinv here, which has no rcond="),
        (lambda: np.cov(x, fweights=[1]), r"\[np.cov\] is hf.cov here, which has no fweights="),
    ):
        with pytest.raises(errors.ArgumentTypeError, match=message):
            call()


def test_what_writes_into_arrays_does() -> None:
    out = np.zeros_like(A)
    assert np.exp(hf.asarray(A), out=out) is out
    np.testing.assert_array_equal(out, np.exp(A))
    assert np.round(hf.asarray(A), 1, out=out) is out
    np.testing.assert_array_equal(out, np.round(A, 1))


def test_what_is_no_array() -> None:
    x = hf.asarray(A)
    assert np.shape(x) == (2, 3) and np.ndim(x) == 2 and np.size(x) == 6 and np.size(x, 1) == 3
    assert [places.tolist() for places in np.where(x > 1)] == [places.tolist() for places in np.where(A > 1)]
    assert np.allclose(x, A) is True and np.array_equal(x, B) is False
    assert hf.function(lambda x: hf.zeros(np.shape(x)))(x).shape == (2, 3)
