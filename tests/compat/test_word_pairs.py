"""Pairs of words and where the largest and smallest of several updates go, in programs of TensorFlow's.

Numbers that are written out are what TensorFlow 2.21 with Keras 3 gives.
"""

from __future__ import annotations

import numpy as np
import pytest

import hybridflow as hf
import hybridflow.compat.tf as tf
from hybridflow.errors import ArgumentError, IndexRangeError

sequence = tf.keras.preprocessing.sequence


def test_words_near_each_other_are_pairs() -> None:
    options = {"window_size": 2, "negative_samples": 0, "shuffle": False}
    pairs = [[1, 2], [2, 1], [2, 3], [3, 2]]
    assert sequence.skipgrams([1, 2, 0, 3], 5, **options) == (pairs, [1] * 4)
    assert sequence.skipgrams([1, 2, 0, 3], 5, categorical=True, **options) == (pairs, [[0, 1]] * 4)


def test_random_words_are_beside_them() -> None:
    pairs, labels = sequence.skipgrams(list(range(1, 9)), 9, window_size=1, negative_samples=2.0, seed=3)
    near = sorted(pair for pair, label in zip(pairs, labels) if label)
    assert near == sorted([a, b] for a in range(1, 9) for b in (a - 1, a + 1) if 1 <= b <= 8)
    assert labels.count(0) == 2 * len(near)
    assert all(1 <= word <= 8 for pair in pairs for word in pair)
    assert (pairs, labels) == sequence.skipgrams(list(range(1, 9)), 9, window_size=1, negative_samples=2.0, seed=3)
    assert sequence.skipgrams([1, 2], 3, sampling_table=[0.0, 0.0, 0.0], seed=1) == ([], [])
    with pytest.raises(ArgumentError, match="vocabulary_size is 1"):
        sequence.skipgrams([1, 2], 1)


def test_frequent_words_are_kept_less_often() -> None:
    wanted = [0.0031522478751942504, 0.0031522478751942504, 0.0054759726939176976, 0.007415564097374219]
    np.testing.assert_allclose(sequence.make_sampling_table(4), wanted, rtol=1e-14)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(("name", "extreme"), [("max", np.maximum), ("min", np.minimum)])
def test_extremes_of_updates(name: str, extreme: np.ufunc, compiled: bool) -> None:
    draw = np.random.default_rng(5)
    x, updates = (draw.integers(-9, 9, shape).astype(np.float32) for shape in ((4, 3, 2), (7, 2)))
    updates[2, 0] = np.nan
    indices = np.stack([draw.integers(0, 4, 7), draw.integers(0, 3, 7)], axis=-1)
    change = getattr(tf, f"tensor_scatter_nd_{name}")
    wanted = x.copy()
    extreme.at(wanted, tuple(indices.T), updates)
    found = (hf.function(change) if compiled else change)(hf.asarray(x), hf.asarray(indices), hf.asarray(updates))
    np.testing.assert_array_equal(found, wanted)
    v = tf.Variable(x)
    getattr(v, f"scatter_nd_{name}")(indices, updates)
    np.testing.assert_array_equal(v, wanted)
    rows = tf.Variable(x)
    values = draw.integers(-9, 9, (3, 3, 2)).astype(np.float32)
    getattr(rows, f"scatter_{name}")(tf.IndexedSlices(tf.constant(values), tf.constant([2, 0, 2])))
    wanted = x.copy()
    extreme.at(wanted, np.array([2, 0, 2]), values)
    np.testing.assert_array_equal(rows, wanted)


def test_places_that_are_not_there_take_no_extremes() -> None:
    with pytest.raises(IndexRangeError):
        tf.tensor_scatter_nd_max(tf.constant([1.0, 2.0]), [[2]], [3.0])


def test_streams_are_of_one_algorithm() -> None:
    one, other = tf.random.Generator.from_seed(7, alg="philox"), tf.random.Generator.from_seed(7)
    np.testing.assert_array_equal(one.normal([5]), other.normal([5]))
    with pytest.raises(ArgumentError, match="no ThreeFry"):
        tf.random.Generator.from_seed(7, alg="threefry")
