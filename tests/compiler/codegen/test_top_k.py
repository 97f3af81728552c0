"""The first few of a line in order: what is inserted, what is passed over, and when the rest is looked over."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import hybridflow as hf
from hybridflow.compiler.loops.tuning import FEW_OF, MAX_INSERTED

DTYPES = [np.float32, np.float64, ml_dtypes.bfloat16, np.int8, np.uint8, np.int16, np.int32, np.int64, np.uint64]


def arranged(rng: np.random.Generator, dtype: type, n: int) -> dict[str, np.ndarray]:
    """Lines whose elements come in orders that make much work, or none."""
    wide = np.dtype(dtype).itemsize > 1
    values = rng.integers(0 if np.dtype(dtype).kind == "u" else -60, 60, n) + (
        rng.integers(0, 1000, n) * 64 if wide else 0
    )
    rising = np.sort(values)
    lanes = rising[::-1].copy()
    lanes[: n // 64 * 64] = np.sort(values)[::-1][: n // 64 * 64].reshape(64, -1).T.ravel()  # the best in few lanes
    steps = np.concatenate([np.sort(part) for part in np.array_split(values, 7)])
    found = {"rising": rising, "falling": rising[::-1], "lanes": lanes, "lanes up": lanes[::-1], "steps": steps}
    found |= {"equal": np.full(n, 3), "any": values}
    return {name: line.astype(dtype) for name, line in found.items()}


def expected(x: np.ndarray, count: int) -> np.ndarray:
    """Positions of the largest first, equal ones in order."""
    wide = x.astype(np.float64) if x.dtype.kind not in "iu" else x
    return x.shape[-1] - 1 - np.argsort(wide[..., ::-1], axis=-1, kind="stable")[..., ::-1][..., :count]


@pytest.mark.parametrize("count", [1, 2, 8, 17, 64, MAX_INSERTED])
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)
def test_every_order_of_a_line(dtype: type, count: int) -> None:
    rng = np.random.default_rng(count)
    for n in (FEW_OF * count, FEW_OF * count + 13, 4096):
        if n < FEW_OF * count:
            continue
        lines = arranged(rng, dtype, n)
        x = np.stack([*lines.values()])
        values, positions = hf.top_k(x, count)
        for line, found, name in zip(positions.numpy(), expected(x, count), lines):
            assert (line == found).all(), (name, n)
        assert (values.numpy() == np.take_along_axis(x, positions.numpy(), -1)).all()


@pytest.mark.parametrize("specials", [1, 5, 300, 2000])
def test_nan_infinities_and_zeros_among_rising_elements(specials: int) -> None:
    rng = np.random.default_rng(specials)
    x = np.sort(rng.standard_normal((3, 2000)).astype(np.float32), axis=-1)
    for line, k in zip(x, (np.nan, np.inf, -0.0)):
        line[rng.permutation(2000)[:specials]] = k
    _, positions = hf.top_k(x, 9)
    # NaN is the last in either direction: the first of the numbers, then NaN in order.
    keyed = np.where(np.isnan(x), -np.inf, x + np.float32(0.0))
    assert (positions.numpy() == expected(keyed, 9)).all()


def test_elements_that_are_computed_as_they_are_read() -> None:
    x = np.linspace(-3.0, 3.0, 5000, dtype=np.float32)[None] * np.float32([[1.0], [-1.0], [0.5]])

    @hf.function
    def best(x: hf.Tensor) -> tuple[hf.Tensor, hf.Tensor]:
        return hf.top_k(hf.exp(x) * 2 - x, 5)

    values, positions = best(x)
    again, places = best.python_function(hf.asarray(x))
    assert values.numpy().tobytes() == again.numpy().tobytes() and (positions.numpy() == places.numpy()).all()
    assert (positions.numpy() == expected(np.exp(x) * 2 - x, 5))[:2].all()
