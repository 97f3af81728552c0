"""Where the first largest or smallest element lies: ties, NaN, and rows of the worst value there is, however folded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hybridflow as hf

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
