"""Where the first largest or smallest element lies: ties, NaN, and rows of the worst value there is, however folded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.runtime.machine import host_target
from tests.support.jit_helper import runnable_targets

RNG = np.random.default_rng(8)
SHAPES: list[tuple[tuple[int, ...], tuple[int, ...] | int]] = [
    ((3, 7), 1),
    ((3, 200), 1),
    ((2, 5000), 1),
    ((9000,), 0),
    ((300, 5), 0),
    ((3, 70, 4), 1),
]


def rows(kind: str, shape: tuple[int, ...], axis: int) -> np.ndarray:
    """Arrays that are hard to choose in: all are drawn from few values, so that most have ties."""
    worst = {"f": -np.inf, "i": np.iinfo(np.int32).min}
    if kind == "integers":
        x = RNG.integers(0, 3, shape).astype(np.int32)
        return np.where(RNG.random(shape) < 0.5, worst["i"], x).astype(np.int32)
    x = RNG.integers(0, 3, shape).astype(np.float32) * np.float32(-1 if kind == "negative" else 1)
    if kind == "worst":
        x[...] = -np.inf
    if kind == "worst and NaN":
        x = np.where(RNG.random(shape) < 2 / shape[axis], np.nan, -np.inf).astype(np.float32)
    if kind == "NaN":
        x = np.where(RNG.random(shape) < 3 / shape[axis], np.nan, x).astype(np.float32)
    if kind == "late":
        x[...] = -np.inf
        x[(slice(None),) * axis + (-1,)] = -3e38
    return x


@pytest.mark.parametrize("kind", ["integers", "ties", "negative", "worst", "worst and NaN", "NaN", "late"])
def test_the_first_of_the_best_is_found(kind: str) -> None:
    for shape, axis in SHAPES:
        x = rows(kind, shape, int(axis))
        flipped = ~x if x.dtype.kind == "i" else -x
        for name, given in (("argmax", x), ("argmin", flipped)):
            wanted = getattr(np, name)(given, axis=axis)
            find: Any = getattr(hf, name)
            assert find(given, axis=axis).numpy().tolist() == wanted.tolist(), (name, shape)
            assert int(find(given)) == getattr(np, name)(given), (name, shape)


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float32, np.float64], ids=lambda d: d.__name__)
def test_rows_of_any_length_in_any_order(dtype: type) -> None:
    """Whole steps, whole vectors and parts of one; the best at their ends; computed twice or read."""

    @hf.function
    def found(x: Any) -> Any:
        return hf.argmax(x, axis=1), hf.argmin(x, axis=1), hf.argmax(x + x, axis=1)

    for n in (137, 4103):
        rising = np.sort(RNG.integers(0, 100, n)).astype(dtype)
        x = np.stack([rising, rising[::-1], np.roll(rising, n - 9), np.roll(rising, 64), rising * 0])
        if np.issubdtype(dtype, np.floating):
            x = np.concatenate([x, x, x * 0])
            x[5, -1] = x[6, 63] = x[7, [n - 2, 70 % n]] = np.nan
            x[8], x[9, ::3], x[10, 1::2] = np.inf, -np.inf, -0.0
        for target in runnable_targets().values():
            with host_target.use(target):
                most, least, doubled = (y.numpy() for y in found(hf.asarray(x)))
            np.testing.assert_array_equal(most, np.argmax(x, 1))
            np.testing.assert_array_equal(least, np.argmin(x, 1))
            np.testing.assert_array_equal(doubled, np.argmax(x + x, 1))
