"""Rows put together by segments: as loops do it, eager and compiled with the same bits, with their derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors

pytestmark = pytest.mark.code

RNG = np.random.default_rng(10)
FUNCTIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any], float]] = {
    "sum": (hf.segment_sum, np.sum, 0),
    "mean": (hf.segment_mean, np.mean, 0),
    "max": (hf.segment_max, np.max, -np.inf),
    "min": (hf.segment_min, np.min, np.inf),
    "prod": (hf.segment_prod, np.prod, 1),
}
IDS = {
    "some": RNG.integers(0, 4, 23),
    "outside": RNG.integers(-2, 8, 23),
    "sorted": np.sort(RNG.integers(0, 6, 23)),
    "one": np.array([2]),
    "nothing": np.zeros(0, np.int64),
    "two axes": RNG.integers(0, 5, (3, 4)),
}


def looped(name: str, data: Any, ids: Any, count: int) -> Any:
    _, fold, neutral = FUNCTIONS[name]
    rows = data[None] if not ids.ndim else data
    parts = [rows[ids == k] for k in range(count)]
    return np.stack([fold(part, 0) if len(part) else np.full(data.shape[ids.ndim :], neutral) for part in parts])


@pytest.mark.parametrize("kind", IDS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_segments(name: str, kind: str) -> None:
    function, ids = FUNCTIONS[name][0], IDS[kind]
    for rest in ((), (3,), (2, 0), (2, 2)):
        data = RNG.standard_normal((*ids.shape, *rest))
        wanted = looped(name, data, ids, 6)
        found = function(data, ids, 6)
        np.testing.assert_allclose(found, wanted, rtol=1e-13, atol=1e-15)
        assert hf.function(lambda x, i: function(x, i, 6))(data, ids).numpy().tobytes() == found.numpy().tobytes()
        count = max(int(ids.max()) + 1, 0) if ids.size else 0
        np.testing.assert_array_equal(function(data, ids), found[:count] if count <= 6 else function(data, ids, count))
        assert function(data, ids, 0).shape == (0, *rest)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_of_segments(name: str) -> None:
    function, ids, data = FUNCTIONS[name][0], RNG.integers(-1, 4, 9), RNG.standard_normal((9, 2))
    cotangent = RNG.standard_normal((4, 2))

    def loss(x: Any) -> Any:
        found = function(x, ids, 4)
        return hf.sum(hf.where(hf.isfinite(found), found * cotangent, 0))

    wanted = np.zeros_like(data)
    for place in np.ndindex(data.shape):
        step = np.zeros_like(data)
        step[place] = 1e-6
        wanted[place] = (loss(data + step) - loss(data - step)).item() / 2e-6
    for f in (hf.grad(loss), hf.function(hf.grad(loss))):
        np.testing.assert_allclose(f(hf.asarray(data)), wanted, atol=1e-7)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_segments_of_parts(name: str) -> None:
    function, ids, data = FUNCTIONS[name][0], RNG.integers(0, 3, (4, 5)), RNG.standard_normal((4, 5))
    found = hf.vmap(lambda x, i: function(x, i, 3))(data, ids)
    np.testing.assert_allclose(found, [looped(name, *pair, 3) for pair in zip(data, ids, strict=True)], rtol=1e-13)


def test_dtypes_and_what_is_not_finite() -> None:
    small, ids = np.array([100, 100, -7], "int8"), [0, 0, 2]
    assert hf.segment_sum(small, ids).tolist() == [200, 0, -7] and hf.segment_prod(small, ids).dtype == np.int64
    assert hf.segment_mean(small, ids).dtype == np.float32
    assert hf.segment_max(small, ids).tolist() == [100, -128, -7] and hf.segment_min(small, ids).dtype == np.int8
    assert hf.segment_max([True, False], [2, 0], 3).tolist() == [False, False, True]
    assert hf.segment_sum([True, True], [1, 1]).tolist() == [0, 2]
    far = np.array([np.nan, 1.0, np.inf, -np.inf, 2.0])
    for function in (hf.segment_max, hf.segment_min):
        np.testing.assert_array_equal(function(far, [0, 0, 5, 1, 5], 2), [np.nan, -np.inf])
    np.testing.assert_array_equal(hf.segment_sum(far, [5, 0, 1, 0, -1], 2), [-np.inf, np.inf])
    assert hf.segment_sum(np.ones(5000, "float16"), np.zeros(5000, int)).item() == 5000


def test_errors_of_segments() -> None:
    x = hf.ones((3, 2))
    with pytest.raises(errors.TraceError, match=r"segment_max\(data, segment_ids, num_segments\)"):
        hf.function(lambda i: hf.segment_max(x, i)).get_concrete_function(hf.asarray([0, 1, 2]))
    for ids in ([0, 1], 0, [[0, 1]]):
        with pytest.raises(errors.ShapeError, match="first axes"):
            hf.segment_sum(x, ids, 2)
    with pytest.raises(errors.DTypeError, match="must be integers"):
        hf.segment_mean(x, [0.0, 1.0, 2.0], 3)
    with pytest.raises(errors.ShapeError):
        hf.segment_min(x, [0, 1, 1], -1)
    for function in (hf.segment_max, hf.segment_min):
        with pytest.raises(errors.DTypeError, match=rf"{function.__name__}.*c64"):
            function([1j, 2j], [0, 0], 1)
