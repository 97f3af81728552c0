"""Elements that are chosen by their values: as NumPy chooses them, and so many as are asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors

pytestmark = pytest.mark.code

RNG = np.random.default_rng(6)
ARRAYS = {
    "some": RNG.integers(0, 3, (4, 5)),
    "none": np.zeros((2, 3)),
    "all": np.ones(7),
    "nothing": np.zeros((0, 3)),
    "one": np.array([[2.5]]),
    "far": np.array([np.nan, -0.0, np.inf, 0.0, -1.0]),
    "flags": RNG.random((3, 2, 4)) > 0.5,
}


def both(f: Any, *args: Any) -> Any:
    """The result, which is the same in a compiled function with fixed and with open extents."""
    eager = f(*args)
    signature = [hf.TensorSpec([None] * np.ndim(a), np.asarray(a).dtype) for a in args]
    for compiled in (hf.function(f), hf.function(f, input_signature=signature)):
        found = compiled(*args)
        for a, b in zip(hf.tree.leaves(eager), hf.tree.leaves(found), strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)
    return eager


@pytest.mark.parametrize("size", [0, 1, 4, 30])
@pytest.mark.parametrize("name", ARRAYS)
def test_positions(name: str, size: int) -> None:
    array = ARRAYS[name]
    expected = np.nonzero(array)
    for axis, found in enumerate(hf.nonzero(array)):
        np.testing.assert_array_equal(found, expected[axis])
    for axis, found in enumerate(both(lambda x: hf.nonzero(x, size=size, fill_value=-7), array)):
        wanted = np.full(size, -7)
        wanted[: len(expected[0])] = expected[axis][:size]
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("size", [0, 2, 9])
@pytest.mark.parametrize(
    ("shape", "axis", "axes"), [((5,), None, 1), ((4, 3), 0, 1), ((4, 3), 1, 1), ((2, 3, 4), 0, 2)]
)
def test_parts(shape: tuple[int, ...], axis: int | None, axes: int, size: int) -> None:
    x = RNG.standard_normal(shape)
    start = axis or 0
    mask = RNG.random(shape[start : start + axes]) > 0.4
    expected = x[(slice(None),) * start + (mask,)]
    np.testing.assert_array_equal(hf.boolean_mask(x, mask, axis), expected)
    found = both(lambda x, m: hf.boolean_mask(x, m, axis, size=size, fill_value=3.0), x, mask)
    wanted = np.full((*shape[:start], size, *shape[start + axes :]), 3.0)
    count = min(size, expected.shape[start])
    wanted[(slice(None),) * start + (slice(count),)] = np.take(expected, range(count), axis=start)
    np.testing.assert_array_equal(found, wanted)


COUNTS = {
    "some": [2, 0, 3, 1],
    "none": [0, 0, 0, 0],
    "one": [0, 0, 1, 0],
    "below": [1, -2, 1, 0],
    "each": [3],
    "all": 2,
}


@pytest.mark.parametrize("size", [0, 1, 5, 30])
@pytest.mark.parametrize("axis", [None, 0, -1])
@pytest.mark.parametrize("name", COUNTS)
def test_repeated(name: str, axis: int | None, size: int) -> None:
    array = RNG.standard_normal((4,) if axis is None else (4, 4)).astype("float32")
    counts = np.asarray(COUNTS[name])
    found = both(lambda x, c: hf.repeat(x, c, axis, size=size, fill_value=-7), array, counts)
    want = np.repeat(array, np.maximum(counts, 0), axis)
    behind = 0 if axis is None else axis
    padding = [(0, 0)] * want.ndim
    padding[behind] = (0, size)
    padded = np.pad(want, padding, constant_values=-7)
    np.testing.assert_array_equal(found, np.take(padded, range(size), behind))


def test_repeated_parts_of_nothing_and_of_one() -> None:
    for length in (0, 1):
        array, counts = np.ones((length, 2), "float32"), np.full(length, 2)
        found = both(lambda x, c: hf.repeat(x, c, 0, size=3), array, counts)
        np.testing.assert_array_equal(found, [[1, 1]] * 2 * length + [[0, 0]] * (3 - 2 * length))


def test_the_derivative_of_what_is_repeated_is_a_sum() -> None:
    def derivative(x: Any, counts: Any) -> Any:
        with hf.GradientTape() as tape:
            tape.watch(x)
            y = hf.sum(hf.repeat(x, counts, size=5) * hf.arange(5.0, dtype=hf.float32))
        return tape.gradient(y, x)

    x, counts = hf.asarray([1.0, 2.0, 3.0], dtype=hf.float32), hf.asarray([1, 0, 3])
    for f in (derivative, hf.function(derivative)):
        assert f(x, counts).tolist() == [0.0, 0.0, 6.0]


@pytest.mark.parametrize("size", [0, 1, 3, 40])
@pytest.mark.parametrize("name", ARRAYS)
def test_all_of_what_is_distinct(name: str, size: int) -> None:
    array = ARRAYS[name]
    found = both(lambda x: hf.unique_all(x, size=size, fill_value=9), array)
    parts = np.unique(array.ravel(), return_index=True, return_inverse=True, return_counts=True, equal_nan=False)
    values, first, inverse, counts = parts
    kept, missing = min(size, len(values)), max(size - len(values), 0)
    np.testing.assert_array_equal(found.values, [*values[:kept], *[values.dtype.type(9)] * missing])
    np.testing.assert_array_equal(found.indices, [*first[:kept], *[0] * missing])
    np.testing.assert_array_equal(found.counts, [*counts[:kept], *[0] * missing])
    np.testing.assert_array_equal(found.inverse_indices, inverse.reshape(array.shape))
    want = hf.unique_all(array)
    if kept == len(values):
        assert all(a.dtype == b.dtype for a, b in zip(found, want, strict=True))
        assert np.asarray(found.values)[:kept].tobytes() == np.asarray(want.values).tobytes()
    for one, two in zip(hf.unique_counts(array, size=size, fill_value=9), (found.values, found.counts), strict=True):
        np.testing.assert_array_equal(one, two)
    inverse = hf.unique_inverse(array, size=size, fill_value=9)
    for one, two in zip(inverse, (found.values, found.inverse_indices), strict=True):
        np.testing.assert_array_equal(one, two)


def test_derivatives_go_to_what_was_chosen() -> None:
    x, mask = hf.asarray([1.0, 2.0, 3.0]), hf.asarray([True, False, True])
    for f in (lambda x: hf.sum(hf.boolean_mask(x, mask) ** 2), lambda x: hf.sum(hf.boolean_mask(x, mask, size=4) ** 2)):
        np.testing.assert_array_equal(hf.grad(f)(x), [2.0, 0.0, 6.0])
    np.testing.assert_array_equal(
        hf.function(hf.grad(lambda x: hf.sum(hf.boolean_mask(x, x > 1.5, size=1) ** 2)))(x), [0.0, 4.0, 0.0]
    )


@pytest.mark.parametrize("size", [0, 1, 3, 9])
def test_distinct_elements(size: int) -> None:
    for array in (np.array([3, 1, 3, 2, 1]), np.array([[0.5, -0.0], [0.0, np.inf]]), np.array([7])):
        expected = np.unique(array)
        found = both(lambda x: hf.unique_values(x, size=size), array)
        wanted = np.full(size, expected[0])
        wanted[: len(expected)] = expected[:size]
        np.testing.assert_array_equal(found, wanted)
        np.testing.assert_array_equal(hf.unique_values(array, size=9, fill_value=100)[len(expected) :], 100)


def _one_program(function: Callable[..., Any]) -> Callable[..., Any]:
    """What has to know each size before it runs."""
    return hf.function(function).get_concrete_function


@pytest.mark.parametrize(
    ("use", "kind", "text"),
    [
        (_one_program(lambda x: hf.nonzero(x)), errors.TraceError, r"nonzero\(x, size="),
        (_one_program(lambda x: x[x > 0]), errors.TraceError, "size="),
        (_one_program(lambda x: hf.boolean_mask(x, x > 0)), errors.TraceError, "size="),
        (_one_program(lambda x: hf.repeat(x, hf.astype(x, hf.int64))), errors.TraceError, r"repeat\(x, repeats, size="),
        (_one_program(lambda x: hf.unique_counts(x)), errors.TraceError, r"unique_counts\(x, size="),
        (lambda x: hf.repeat(x, hf.asarray([1, 2]), size=4), errors.ShapeError, "one for each"),
        (lambda x: hf.repeat(x, hf.asarray([[1, 2, 3]]), size=4), errors.ShapeError, "one for each"),
        (lambda x: hf.repeat(x, 2, size=-4), errors.ShapeError, "size"),
        (lambda x: hf.unique_all(x, size=1.5), errors.ArgumentTypeError, "size"),
        (lambda x: hf.nonzero(x, size=-1), errors.ShapeError, "size"),
        (lambda x: hf.nonzero(x, size=1.5), errors.ArgumentTypeError, "size"),
        (lambda x: hf.boolean_mask(x, [True]), errors.IndexRangeError, "shape"),
        (lambda x: hf.boolean_mask(x, True), errors.ShapeError, "scalar"),
        (lambda x: hf.nonzero(3.0), errors.ShapeError, "scalar"),
    ],
)
def test_wrong_use(use: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        use(hf.asarray([1.0, 0.0, 2.0]))
