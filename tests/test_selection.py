"""Elements that are chosen by their values: as NumPy chooses them, and so many as are asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors

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


@pytest.mark.parametrize(
    ("use", "kind", "text"),
    [
        (hf.function(lambda x: hf.nonzero(x)), errors.TraceError, r"nonzero\(x, size="),
        (hf.function(lambda x: x[x > 0]), errors.TraceError, "size="),
        (hf.function(lambda x: hf.boolean_mask(x, x > 0)), errors.TraceError, "size="),
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
