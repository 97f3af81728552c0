"""Counts of numbers and in bins: NumPy's, eager and compiled with the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors

pytestmark = pytest.mark.code

RNG = np.random.default_rng(9)


def same(found: Any, wanted: Any) -> None:
    np.testing.assert_array_equal(found, wanted)
    assert np.asarray(found).dtype == np.asarray(wanted).dtype


@pytest.mark.parametrize("x", [[], [0], [3, 1, 3, 7, 0], RNG.integers(0, 50, 999), np.array([5, 200, 5], "uint8")])
def test_counts(x: Any) -> None:
    weights = RNG.standard_normal(len(x))
    numbers = np.asarray(x, np.int64)
    compiled = hf.function(lambda x, w, n: (hf.bincount(x, length=n), hf.bincount(x, w, length=n)))
    for least in (0, 4, 60):
        same(hf.bincount(x, minlength=least), np.bincount(numbers, minlength=least))
        same(hf.bincount(x, weights, least), np.bincount(numbers, weights, least).astype(float))
        for found, wanted in zip(compiled(numbers, weights, least), (None, weights), strict=True):
            counts = np.bincount(numbers, wanted, least)[:least]
            same(found, counts if wanted is None else counts.astype(float))


def test_counts_of_a_given_length() -> None:
    x, weights = np.array([-1, 2, 9, 2, 0]), np.array([np.inf, 1, np.nan, 2, 3], "float32")
    count = hf.function(lambda x, w: hf.bincount(x, w, length=4), input_signature=[hf.TensorSpec([None], "int64")] * 2)
    same(count(x, np.arange(5)), np.array([4, 0, 4, 0]))
    same(hf.bincount(x, weights, length=4), np.array([3, 0, 3, 0], "float32"))
    same(hf.bincount([True, False, True]), np.array([1, 2]))
    same(hf.bincount(np.array([1, 2**63], "uint64"), length=2), np.array([0, 1]))
    same(hf.vmap(lambda x: hf.bincount(x, length=3))(np.array([[0, 1], [2, 2]])), np.array([[1, 1, 0], [0, 0, 2]]))
    same(np.bincount(hf.asarray([1, 1])), np.array([0, 2]))
    derivative = hf.grad(lambda w: hf.sum(hf.bincount(x, w, length=4) * np.arange(1.0, 5, dtype="float32")))
    same(derivative(hf.asarray(weights)), np.array([0, 3, 0, 3, 1], "float32"))


def test_errors_of_counts() -> None:
    with pytest.raises(errors.TraceError, match=r"bincount\(x, length=...\)"):
        hf.function(lambda x: hf.bincount(x)).get_concrete_function(hf.asarray([1]))
    with pytest.raises(errors.ArgumentError, match="-2 is among the numbers"):
        hf.function(lambda x: hf.bincount(x))(hf.asarray([1, -2]))
    with pytest.raises(errors.ArgumentError, match="-2 is among the numbers"):
        hf.bincount([1, -2])
    with pytest.raises(errors.DTypeError, match="must be integers"):
        hf.bincount([1.0])
    with pytest.raises(errors.ShapeError, match="one-dimensional"):
        hf.bincount([[1]])
    with pytest.raises(errors.ShapeError, match="the weights"):
        hf.bincount([1, 2], [1.0])
    with pytest.raises(errors.ArgumentError, match="minlength"):
        hf.bincount([1, 2], minlength=-1)


DATA = {
    "nothing": np.zeros((0, 2)),
    "one": np.array(3.5),
    "equal": np.full(4, -2.0),
    "some": RNG.standard_normal((50, 20)),
    "on edges": RNG.integers(-3, 8, 500) / 4.0,
    "far": np.array([1e300, -1e300, 0.0, 1.0]),
}
BINS: list[Any] = [1, 10, 7, [0.0, 0.5, 0.5, 1.25], np.array([-1, 0, 2]), [0.1, 0.25, 1.0, 1.0], [1.0]]


@pytest.mark.parametrize("name", DATA)
def test_histograms_are_numpys(name: str) -> None:
    x = DATA[name]
    weights = RNG.integers(-8, 9, x.shape) / 4.0
    for bins in BINS:
        for limits in (None, (-0.5, 1.5), (1, 1)):
            wanted = np.histogram(x, bins, limits)
            found = hf.histogram(x, bins, limits)
            same(found.counts, wanted[0])
            same(found.edges, wanted[1])
            same(hf.histogram(x, bins, limits, weights=weights).counts, np.histogram(x, bins, limits, None, weights)[0])
            with np.errstate(all="ignore"):
                wanted = np.histogram(x, bins, limits, density=True)
            if not isinstance(bins, np.ndarray):
                np.testing.assert_allclose(hf.histogram(x, bins, limits, density=True).counts, wanted[0], rtol=1e-14)


def test_compiled_histograms() -> None:
    x = DATA["some"].astype("float32")
    for call in (
        lambda x: hf.histogram(x, 9),
        lambda x: hf.histogram(x, 9, (-1, 1), density=True),
        lambda x: hf.histogram(x, [-1.0, 0.0, 2.0], weights=x),
    ):
        spec = [hf.TensorSpec([None, None], "float32")]
        for compiled in (hf.function(call), hf.function(call, input_signature=spec)):
            for found, wanted in zip(compiled(x), call(x), strict=True):
                same(found, wanted)
    counts, edges = hf.function(hf.histogram)(np.array([1.0, np.nan, 2.0]))
    assert counts.tolist() == [0] * 10 and np.isnan(edges).all()
    parts = hf.vmap(lambda x: hf.histogram(x, 4, (-2, 2)).counts)(x)
    same(parts, np.array([np.histogram(row, 4, (-2, 2))[0] for row in x]))


def test_dtypes_of_histograms() -> None:
    numbers = np.array([2**24, 2**24 + 1, 2**24 + 2])
    found = hf.histogram(numbers, 2)
    assert found.edges.dtype == np.float32 and found.counts.tolist() == [1, 2]
    half = hf.histogram(np.array([0, 1, 2, 3], "float16"), 3)
    assert half.edges.dtype == np.float16 and half.counts.tolist() == [1, 1, 2]
    same(hf.histogram([0.5, np.nan, 1.5, np.inf], 2, (0, 2)).counts, np.array([1, 1]))
    counts, edges = np.histogram(hf.asarray([1.0, 2.0]), 2, (0, 4))
    assert isinstance(counts, hf.Tensor) and counts.tolist() == [1, 1] and edges.tolist() == [0, 2, 4]


def test_errors_of_histograms() -> None:
    x = hf.asarray([1.0, 2.0])
    for bins, limits, message in (
        (0, None, "there must be one at least"),
        ("auto", None, "bins is 'auto'"),
        ([1.0, 0.0], None, "must ascend"),
        (3, (2, 1), "must not descend"),
        (3, (0, np.inf), "must be finite"),
    ):
        with pytest.raises(errors.ArgumentError, match=message):
            hf.histogram(x, bins, limits)
    for value in (np.nan, np.inf):
        with pytest.raises(errors.ArgumentError, match="the range of the elements is"):
            hf.histogram([1.0, value])
    for edges in ([[1.0, 2.0]], []):
        with pytest.raises(errors.ShapeError, match="one-dimensional"):
            hf.histogram(x, edges)
    with pytest.raises(errors.ShapeError, match="the weights"):
        hf.histogram(x, weights=[1.0])
