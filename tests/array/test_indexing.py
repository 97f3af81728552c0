"""Indexing against NumPy: every kind of index, alone and combined, and the functions that look elements up."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import hybridflow as hf
from hybridflow import errors

pytestmark = pytest.mark.code

X = np.arange(4 * 5 * 6, dtype=np.float32).reshape(4, 5, 6)
I, J = np.array([3, -1, 0]), np.array([[1], [-5]])
MASK = X[:, :, 0] % 3 == 0

KEYS = {
    "int": 2,
    "negative int": -1,
    "ints": (1, 2, 3),
    "numpy int": np.int8(-2),
    "slice": slice(1, 3),
    "step": slice(None, None, 2),
    "negative step": slice(None, None, -1),
    "negative step with bounds": (slice(3, 0, -2), slice(None), slice(-1, -7, -3)),
    "out of range bounds": (slice(-100, 100), slice(7, 9)),
    "empty slice": slice(3, 1),
    "empty negative slice": slice(1, 3, -1),
    "ellipsis": (..., 1),
    "ellipsis in the middle": (1, ..., slice(2, 4)),
    "ellipsis for nothing": (0, 1, 2, ...),
    "only ellipsis": ...,
    "empty tuple": (),
    "newaxis": None,
    "newaxes": (None, 1, None, slice(None), None),
    "newaxis at the end": (..., None),
    "array": I,
    "list": [3, -1, 0],
    "nested list": [[0, 1], [2, 3]],
    "empty list": [],
    "scalar array": np.array(2),
    "array on axis 1": (slice(None), I),
    "two arrays": (I, I),
    "broadcast arrays": (I, J),
    "arrays with a slice before": (slice(1, 3), I, J),
    "arrays with a slice after": (I, J, slice(None, None, -2)),
    "arrays apart": (I, slice(None), J),
    "array and int": (I, 1),
    "int and array": (1, I),
    "int and array apart": (1, slice(None), I),
    "array and newaxis": (I, None, J),
    "newaxis and array": (None, I),
    "ellipsis and array": (..., I),
    "three arrays": (I, I + 1, J),
    "int between arrays": (I, 2, J),
    "step and array": (slice(None, None, -1), I, slice(1, 5, 2)),
    "uint8 array": np.array([0, 3], np.uint8),
    "mask": X > 50,
    "mask of two axes": MASK,
    "mask of one axis": np.array([True, False, True, False]),
    "mask on axis 1": (slice(None), np.array([True, False, True, False, True])),
    "mask and int": (MASK, 0),
    "mask and array": (np.array([True, True, True, False]), I),
    "ellipsis for nothing between arrays": (I, slice(0, 2), ..., J),
    "ellipsis for nothing next to arrays": (slice(0, 2), I, ..., J),
    "mask list": [True, False, True, False],
    "all false": np.zeros((4, 5), bool),
    "mask and slice": (slice(1, 2), np.array([True, False, True, False, True]), slice(2)),
}


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_getitem_matches_numpy(key):
    expected = X[key]
    ours = hf.asarray(X)[key]
    assert ours.dtype == np.float32 and ours.shape == expected.shape
    np.testing.assert_array_equal(ours.numpy(), expected)


@pytest.mark.parametrize("name", KEYS)
def test_getitem_traced(name):
    key = KEYS[name]

    @hf.function
    def pick(x):
        return x[key]

    np.testing.assert_array_equal(pick(hf.asarray(X)).numpy(), X[key])


ONE = {
    "mask": np.array([True]),
    "no mask": np.array([False]),
    "list": [True],
    "square": np.array([[True]]),
    "empty square": np.array([[False]]),
    "behind a slice": (slice(None), np.array([True])),
    "behind an int": (0, np.array([False])),
    "behind an array": (np.array([0]), np.array([True])),
    "in front": (np.array([True]), 0),
    "with a new axis": (None, np.array([False]), slice(None)),
    "indices": (np.array([0]), [-1]),
}


@pytest.mark.parametrize("key", ONE.values(), ids=ONE)
def test_masks_and_indices_of_one_element(key):
    """Tensors of one element are constants of a trace, so their values are known there like those of others."""
    array = np.array([[7.0]])
    expected = array[tuple(key) if isinstance(key, tuple) else key]
    np.testing.assert_array_equal(hf.asarray(array)[key], expected)
    np.testing.assert_array_equal(hf.function(lambda x: x[key])(hf.asarray(array)), expected)
    inside = hf.function(lambda x: x[tuple(hf.asarray(k) if isinstance(k, np.ndarray) else k for k in _parts(key))])
    np.testing.assert_array_equal(inside(hf.asarray(array)), expected)


def _parts(key):
    return key if isinstance(key, tuple) else (key,)


def test_a_mask_on_an_axis_where_another_index_is_fixed():
    x = np.arange(5.0).reshape(5, 1)
    for mask in (np.array([False]), np.array([True])):
        np.testing.assert_array_equal(_at_four(mask)(hf.asarray(x)), x[4, mask])


def _at_four(mask):
    return hf.function(lambda x: x[4, mask])


def test_nonzero_of_constants_and_of_traced_values():
    f = hf.function(lambda x: x[hf.nonzero(np.array([True]))[0]])
    assert f(hf.ones(1)).tolist() == [1.0]
    with pytest.raises(errors.TraceError):
        hf.function(lambda x: hf.nonzero(x)[0]).get_concrete_function(hf.ones(1))
    with pytest.raises(errors.TraceError):
        hf.function(lambda x: x[x > 0]).get_concrete_function(hf.ones(1))


def test_scattering_into_an_empty_axis():
    for f in (hf.scatter_add, hf.function(hf.scatter_add)):
        with pytest.raises(errors.IndexRangeError):
            f(hf.zeros((0, 2)), hf.asarray([0, 0]), hf.ones((2, 2)))
        empty = hf.asarray(np.zeros(0, np.int64))
        assert f(hf.zeros((0, 2)), empty, hf.zeros((0, 2))).shape == (0, 2)


@pytest.mark.parametrize("key", [(I, J), (slice(None), I, J), (I, slice(None), J), (I, 2, J), (I,)], ids=str)
def test_traced_index_tensors(key):
    """Index tensors whose values are not known while tracing."""
    arrays = [k for k in key if isinstance(k, np.ndarray)]

    @hf.function
    def pick(x, indices):
        found = iter(indices)
        return x[tuple(next(found) if isinstance(k, np.ndarray) else k for k in key)]

    np.testing.assert_array_equal(pick(hf.asarray(X), [hf.asarray(a) for a in arrays]).numpy(), X[key])


def test_traced_index_out_of_its_own_axis_raises():
    """Position 5 of an axis of 4 is inside the flattened pair of axes, and still an error."""

    @hf.function
    def pick(x, i, j):
        return x[i, j]

    one = hf.asarray([1])
    assert pick(hf.asarray(X), one, one).shape == (1, 6)
    for i, j in (([0], [5]), ([0], [-6]), ([4], [0]), ([-5], [0])):
        with pytest.raises(errors.IndexRangeError):
            pick(hf.asarray(X), hf.asarray(i), hf.asarray(j))
        with pytest.raises(errors.IndexRangeError):
            hf.asarray(X)[i, j]


index_parts = st.one_of(
    st.integers(-4, 3),
    st.slices(4),
    st.none(),
    st.just(...),
    st.lists(st.integers(-4, 3), min_size=1, max_size=3),
    st.sampled_from([np.array([[0], [-1]]), np.array([1, 2, 0])]),
    st.just(np.array([True, False, True, True])),
)


@settings(max_examples=200, deadline=None)
@given(st.lists(index_parts, max_size=5).map(tuple))
def test_random_keys(key):
    array = np.arange(4**3).reshape(4, 4, 4)
    try:
        expected = array[key]
    except IndexError:
        with pytest.raises((IndexError, ValueError, TypeError)):
            hf.asarray(array)[key]
        return
    ours = hf.asarray(array)[key]
    assert ours.shape == expected.shape
    np.testing.assert_array_equal(ours.numpy(), expected)


@pytest.mark.parametrize(
    "key, error, message",
    [
        (4, errors.IndexRangeError, r"index 4 is out of range for axis 0 of f32\[4,5,6\]"),
        ((0, -6), errors.IndexRangeError, "index -6 is out of range for axis 1"),
        ((0, 0, 0, 0), errors.IndexRangeError, "4 indices are too many"),
        ([0, 4], errors.IndexRangeError, "out of range for axis"),
        (([0], [9]), errors.IndexRangeError, "index 9 is out of range"),
        (1.0, errors.ArgumentTypeError, r"1\.0 is a float"),
        ([1.0], errors.ArgumentTypeError, "not an integer"),
        ("a", errors.ArgumentTypeError, "str is no index"),
        (True, errors.ArgumentTypeError, r"hf\.where"),
        ((..., 1, ...), errors.ArgumentTypeError, "one Ellipsis"),
        (slice(None, None, 0), errors.ArgumentTypeError, "must not be 0"),
        (slice(1.5), errors.ArgumentTypeError, r"slice bound is 1\.5"),
        (np.ones((4, 4), bool), errors.IndexRangeError, r"the mask bool\[4,4\]"),
    ],
)
def test_errors(key, error, message):
    with pytest.raises(error, match=rf"\[\w+\].*{message}.*test_indexing\.py:\d+"):
        hf.asarray(X)[key]


def test_broadcast_errors_of_index_arrays():
    with pytest.raises(errors.ShapeError, match="do not broadcast"):
        hf.asarray(X)[[0, 1], [0, 1, 2]]


def test_scalars_and_empty_tensors():
    assert hf.asarray(3)[()].item() == 3 and hf.asarray(3)[None].tolist() == [3] and hf.asarray(3)[...].item() == 3
    with pytest.raises(errors.IndexRangeError, match="too many"):
        hf.asarray(3)[0]
    empty = np.zeros((0, 3))
    for key in (slice(None, None, -1), (slice(None), 1), [], np.zeros((0,), bool), (..., None)):
        assert hf.asarray(empty)[key].shape == empty[key].shape
    with pytest.raises(errors.IndexRangeError):
        hf.asarray(empty)[0]


def test_gradients_flow_through_indexing():
    v = hf.Variable(X.astype(np.float64))
    for key in ((slice(None, None, -2), 1), (I, slice(None), J), MASK, (..., None, 2), ([0, 0, 1],)):
        with hf.GradientTape() as tape:
            total = hf.sum(v[key] ** 2)
        weights = np.zeros_like(X, np.float64)
        np.add.at(weights, key, 2 * X[key])
        np.testing.assert_allclose(tape.gradient(total, v).numpy(), weights)


# ---- functions


def test_take():
    for axis in (0, 1, -1):
        for indices in (2, I, [[1], [-4]], [], [[0, 1]], hf.asarray([1], dtype=hf.uint8)):
            theirs = np.take(X, np.asarray(indices, np.int64), axis)
            np.testing.assert_array_equal(hf.take(X, indices, axis).numpy(), theirs)
    assert hf.take([5, 6, 7], [-1, 0]).tolist() == [7, 5]
    with pytest.raises(errors.ShapeError, match="axis must be given"):
        hf.take(X, I)
    with pytest.raises(errors.DTypeError, match="must be integers"):
        hf.take(X, [0.5], 0)
    for bad in (4, -5):
        with pytest.raises(errors.IndexRangeError):
            hf.take(X, [0, bad], 0)


def test_take_along_axis():
    rng = np.random.default_rng(0)
    for axis, extent in enumerate(X.shape):
        shape = list(X.shape)
        shape[axis] = 3
        indices = rng.integers(-extent, extent, shape)
        np.testing.assert_array_equal(
            hf.take_along_axis(X, indices, axis).numpy(), np.take_along_axis(X, indices, axis)
        )
    narrow = np.array([[[2]], [[0]], [[1]], [[3]]])
    np.testing.assert_array_equal(hf.take_along_axis(X, narrow, 1).numpy(), np.take_along_axis(X, narrow, 1))
    with pytest.raises(errors.ShapeError, match="as many axes"):
        hf.take_along_axis(X, [0], 0)
    with pytest.raises(errors.ShapeError, match="axis 0"):
        hf.take_along_axis(X, np.zeros((3, 5, 6), int), 1)
    with pytest.raises(errors.IndexRangeError):
        hf.take_along_axis(X, np.full((4, 5, 1), 6), 2)


def test_gather():
    rng = np.random.default_rng(0)
    np.testing.assert_array_equal(hf.gather(X, J, axis=1).numpy(), np.take(X, J, 1))
    indices = rng.integers(0, 5, (4, 2, 3))
    expected = np.stack([np.take(X[b], indices[b], 0) for b in range(4)])
    np.testing.assert_array_equal(hf.gather(X, indices, axis=1, batch_dims=1).numpy(), expected)
    np.testing.assert_array_equal(hf.gather(X, indices, batch_dims=1).numpy(), expected)
    indices = rng.integers(0, 6, (4, 3))
    expected = np.stack([np.take(X[b], indices[b], 1) for b in range(4)])
    np.testing.assert_array_equal(hf.gather(X, indices, axis=2, batch_dims=1).numpy(), expected)
    indices = rng.integers(0, 6, (4, 5))
    expected = np.take_along_axis(X, indices[..., None], 2)[..., 0]
    np.testing.assert_array_equal(hf.gather(X, indices, axis=2, batch_dims=2).numpy(), expected)
    with pytest.raises(errors.ShapeError, match="batch_dims 2"):
        hf.gather(X, J, axis=1, batch_dims=2)
    with pytest.raises(errors.ShapeError, match="axes of"):
        hf.gather(X, J, axis=1, batch_dims=1)


def test_gather_nd():
    indices = np.array([[[0, 1], [3, -1]], [[2, 2], [1, 0]]])
    np.testing.assert_array_equal(hf.gather_nd(X, indices).numpy(), X[indices[..., 0], indices[..., 1]])
    assert hf.gather_nd(X, [1, 2, 3]).item() == X[1, 2, 3]
    with pytest.raises(errors.ShapeError, match="last axis"):
        hf.gather_nd(X, np.zeros((1, 4), int))


def test_scatter_add():
    x, updates = X.astype(np.float64), np.ones((4, 3, 6))
    expected = x.copy()
    np.add.at(expected, (slice(None), [1, 1, -1]), updates)
    np.testing.assert_array_equal(hf.scatter_add(x, [1, 1, -1], updates, axis=1).numpy(), expected)
    assert hf.scatter_add([1, 2, 3], [0, 0], 5).tolist() == [11, 2, 3]
    with pytest.raises(errors.IndexRangeError):
        hf.scatter_add([1, 2, 3], [3], 5)
    with pytest.raises(errors.ShapeError, match=r"updates.*do not fit \[2\]"):
        hf.scatter_add([1, 2, 3], [0, 1], [1, 2, 3])


def test_nonzero():
    for ours, theirs in zip(hf.nonzero(X % 7 == 0), np.nonzero(X % 7 == 0), strict=True):
        np.testing.assert_array_equal(ours.numpy(), theirs)
    with pytest.raises(errors.ShapeError, match="scalar"):
        hf.nonzero(1)


def test_one_hot():
    assert hf.one_hot([0, 2, 3, -1], 3).tolist() == [[1, 0, 0], [0, 0, 1], [0, 0, 0], [0, 0, 0]]
    assert hf.one_hot([[0, 1]], 2, axis=0, dtype=hf.int8).tolist() == [[[1, 0]], [[0, 1]]]
    assert hf.one_hot(1, 3).tolist() == [0, 1, 0] and hf.one_hot([], 3).shape == (0, 3)
    with pytest.raises(errors.DTypeError, match="integers"):
        hf.one_hot([0.5], 3)


def test_eager_index_errors_name_the_operand_as_it_is():
    x = hf.ones((2, 3))
    for _ in range(3):  # the first application, and the native shortcut after it
        with pytest.raises(IndexError, match=r"axis 0 of shape \[2,3\]. Expected -2 <= index < 2"):
            hf.take(x, hf.constant([7]), axis=0)


def test_unsigned_numbers_never_count_from_the_end():
    x = hf.asarray(np.arange(12.0).reshape(4, 3))
    compiled = hf.function(lambda x, i: (x[i], hf.take(x, i, axis=0)))
    for number in (3, 4, 2**63 - 1, 2**63, 2**64 - 4, 2**64 - 1):
        i = np.array([0, number], np.uint64)
        for run in (compiled, compiled.python_function):
            if number < 4:
                assert all((part.numpy() == x.numpy()[i]).all() for part in run(x, hf.asarray(i)))
                continue
            with pytest.raises(IndexError, match="out of range for axis 0"):
                run(x, hf.asarray(i))
