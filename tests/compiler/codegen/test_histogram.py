"""Counting and adding single elements: integers in tables of pieces, everything else a block of indices at a time.

NumPy adds one after the other, in the order that is ours too, so sums of floats have its bits.
"""

from __future__ import annotations

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.errors import IndexRangeError

INDICES = ["uint8", "int8", "uint16", "int16", "int32", "int64", "uint64"]


def indices(rng: np.random.Generator, dtype: str, cells: int, count: int) -> np.ndarray:
    """From both ends, where the dtype has a sign."""
    limits = np.iinfo(dtype)
    return rng.integers(max(-cells, limits.min), min(cells - 1, limits.max), count, np.int64, True).astype(dtype)


def added(x: np.ndarray, at: np.ndarray, updates: object) -> np.ndarray:
    out = x.copy()
    np.add.at(out, at.astype(np.int64), np.asarray(updates, x.dtype))
    return out


@hf.function
def add(x, at, updates):
    return hf.scatter_add(x, at, updates)


@hf.function
def count(x, at):
    return hf.scatter_add(x, at, 1)


@pytest.mark.parametrize("dtype", INDICES)
@pytest.mark.parametrize("cells", [1, 2, 255, 256, 257, 4096, 5000])
def test_integers_are_added_as_numpy_does(dtype, cells):
    rng = np.random.default_rng(cells)
    for updates in (0, 1, 3, 515, 4 * cells, 40_003):
        at = indices(rng, dtype, cells, updates)
        for kind in ("int64", "uint8", "int32", "uint64"):
            limits = np.iinfo(kind)
            x, values = (rng.integers(limits.min, limits.max, n, kind, True) for n in (cells, updates))
            assert np.array_equal(add(x, at, values), added(x, at, values))
            assert np.array_equal(count(x, at), added(x, at, 1))


@pytest.mark.parametrize("kind", ["float32", "float64", "float16"])
@pytest.mark.parametrize("cells", [1, 256, 70_000])
def test_floats_are_added_in_order(kind, cells):
    rng = np.random.default_rng(cells)
    for dtype in ("uint8", "int32", "int64"):
        at = indices(rng, dtype, cells, 5001)
        x = np.zeros(cells, kind)
        values = rng.standard_normal(at.size).astype(kind)
        values[::97] = [np.nan, np.inf, -0.0, -np.inf][cells % 4]
        assert np.asarray(add(x, at, values)).tobytes() == added(x, at, values).tobytes()


@pytest.mark.parametrize("kind", ["int64", "float32"])
@pytest.mark.parametrize("size", [10, 5000])
def test_an_index_out_of_range_changes_nothing(kind, size):
    """Wherever it stands, whatever is added there."""
    cells = 300
    for dtype in ("int16", "int32", "int64", "uint64"):
        limits = np.iinfo(dtype)
        state = hf.Variable(np.arange(cells).astype(kind))
        step = hf.function(lambda at, updates, state=state: state.assign(hf.scatter_add(state, at, updates)))
        for wrong in {cells, limits.max, *((-cells - 1, limits.min) if limits.min else ())}:
            for place in (0, size // 2, size - 1):
                at = np.full(size, 7, dtype)
                at[place] = wrong
                with pytest.raises(IndexRangeError, match="out of range for axis 0"):
                    step(at, np.zeros(size, kind))
        assert np.array_equal(state.numpy(), np.arange(cells).astype(kind))
        step(np.full(size, 7, dtype), np.ones(size, kind))
        assert state.numpy()[7] == 7 + size


def test_no_cells_and_no_indices():
    none = np.zeros(0, np.int64)
    assert np.asarray(count(none, none)).shape == (0,)
    assert np.array_equal(count(np.arange(3), none), np.arange(3))
    with pytest.raises(IndexRangeError, match="no elements"):
        count(none, np.zeros(9000, np.int64))


@pytest.mark.parametrize("length", [1, 100, 255, 256, 257, 1000])
@pytest.mark.parametrize("dtype", INDICES)
def test_numbers_that_are_no_bins_are_left_out(dtype, length):
    rng = np.random.default_rng(length)
    limits = np.iinfo(dtype)
    x = np.concatenate([
        rng.integers(max(limits.min, -9), min(limits.max, length + 9), 6000, np.int64, True).astype(dtype),
        np.array([limits.min, limits.max], dtype),
    ])  # fmt: skip
    weights = rng.standard_normal(x.size).astype(np.float32)
    inside = (x >= 0) & (x <= length - 1)
    kept, own = x[inside].astype(np.int64), weights[inside]
    counted = hf.function(lambda x: hf.bincount(x, length=length))
    weighed = hf.function(lambda x, w: hf.bincount(x, w, length=length))
    assert np.array_equal(counted(x), np.bincount(kept, minlength=length))
    assert np.array_equal(weighed(x, weights), added(np.zeros(length, np.float32), kept, own))


def test_indices_that_are_computed_need_no_memory():
    """Where their bounds are known nothing looks at them before they are used."""
    x = np.random.default_rng(0).standard_normal(50_001).astype(np.float32)
    x[:4] = [np.nan, np.inf, -np.inf, -0.0]

    @hf.function
    def binned(x):
        return hf.scatter_add(hf.zeros(100, hf.int64), hf.astype(hf.clip((x + 4.0) * 12.5, 0.0, 99.0), "int32"), 1)

    expected = np.clip((x + np.float32(4)) * np.float32(12.5), 0, 99)
    expected = np.bincount(np.where(np.isnan(expected), 0, expected).astype(int), minlength=100)
    assert np.array_equal(binned(x), expected)
    assert all(row["kind"] != "arena" or row["bytes"] < x.nbytes for row in binned.memory_plan(x))


def test_threads_make_no_difference():
    rng = np.random.default_rng(3)
    at, weights = rng.integers(0, 300, 700_001), rng.standard_normal(700_001).astype(np.float32)
    found, before = [], hf.config.get_num_threads()
    try:
        for threads in (1, 2, 7):
            hf.config.set_num_threads(threads)
            ones = np.asarray(count(np.zeros(300, np.int64), at))
            sums = np.asarray(add(np.zeros(300, np.float32), at, weights))
            far = np.asarray(count(np.zeros(100_000, np.int64), at * 333))
            found.append((ones.tobytes(), sums.tobytes(), far.tobytes()))
    finally:
        hf.config.set_num_threads(before)
    assert found[0] == found[1] == found[2]
    assert found[0][0] == np.bincount(at, minlength=300).tobytes()


def test_sizes_that_vary():
    """The program that is compiled for all sizes has tables, too."""
    sized = hf.function(
        lambda at: hf.scatter_add(hf.zeros(16, hf.int64), at, 1),
        input_signature=[hf.TensorSpec([None], hf.int64)],
    )
    for size in (2, 3, 1000, 100_001):
        at = np.arange(size) % 16
        assert np.array_equal(sized(at), np.bincount(at, minlength=16))


def test_derivative_of_weights():
    x = np.array([1, 3, 1, 200, 9], np.uint8)
    weights = hf.asarray(np.arange(5, dtype=np.float32))

    @hf.function
    def slope(weights):
        with hf.GradientTape() as tape:
            tape.watch(weights)
            total = hf.sum(hf.bincount(x, weights, length=10) * hf.arange(10.0))
        return tape.gradient(total, weights)

    assert np.array_equal(slope(weights), [1, 3, 1, 0, 9])
