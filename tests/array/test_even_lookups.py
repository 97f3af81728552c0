"""Look-ups at places that lie evenly are views: the elements that NumPy reads, and errors where one lies outside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.errors import IndexRangeError

pytestmark = pytest.mark.code

RNG = np.random.default_rng(3)
Places = Callable[[Any], Any]  # of the library whose ranges they are made of


def _read(places: Places) -> Callable[[Any], Any]:
    return lambda x: x[places(hf)]


EVEN: dict[str, tuple[tuple[int, ...], Places]] = {
    "all": ((7,), lambda l: l.arange(7)),
    "one": ((7, 2), lambda l: l.arange(1) + 6),
    "the last one, from the end": ((7,), lambda l: l.arange(1)[:, None] - 1),
    "backwards": ((11,), lambda l: 10 - l.arange(11)),
    "from the end": ((11, 3), lambda l: -1 - l.arange(5) * 2),
    "frames": ((80,), lambda l: l.arange(7)[:, None] * 11 + l.arange(9)),
    "frames apart": ((80, 2), lambda l: l.arange(7)[:, None] * 11 + l.arange(4)),
    "every third": ((63,), lambda l: l.arange(3)[:, None] * 2 + l.arange(20) * 3 - 1 + 1),
    "anti-diagonals": ((13,), lambda l: l.arange(6)[:, None] + l.arange(8)),
    "diagonals": ((13,), lambda l: l.arange(6)[:, None] - l.arange(8) + 7),
    "three axes": ((100, 3), lambda l: l.arange(5)[:, None, None] * 7 + l.arange(3)[:, None] * 20 + l.arange(4) * 2),
    "three axes turned": ((99,), lambda l: 91 - (l.arange(5)[:, None, None] * 7 - l.arange(3)[:, None] + l.arange(4))),
    "repeated": ((10, 2), lambda l: l.arange(3)[:, None] * 0 + l.arange(4) * 3),
    "one place, repeated": ((10, 2), lambda l: l.arange(6) * 0 + 4),
    "flipped ranges": ((30,), lambda l: l.flip(l.arange(9), axis=0)[:, None] + l.arange(5)[::2]),
    "numbers": ((30,), lambda l: np.arange(3, 30, 4)),
    "nothing": ((30,), lambda l: l.arange(0)),
}


def _views(function: Any, x: hf.Tensor) -> bool:
    return not any("take" in row["ops"] for row in function.kernels(x))


@pytest.mark.parametrize("name", EVEN)
def test_even_places(name: str) -> None:
    shape, places = EVEN[name]
    x = RNG.standard_normal(shape, np.float32)
    x.flat[:2] = -0.0, np.nan
    given = hf.asarray(x)
    run = hf.function(_read(places))
    expected = x[np.asarray(places(np))]
    for found in (run(given), _read(places)(given)):
        assert found.numpy().tobytes() == expected.tobytes() and found.shape == expected.shape
    assert _views(run, given) or name in ("numbers", "nothing")


@pytest.mark.parametrize("dtype", ["bool", "int8", "int64", "bfloat16", "float64"])
def test_other_dtypes(dtype: str) -> None:
    x = RNG.integers(0, 2, 400).astype(np.float32)
    given = hf.astype(hf.asarray(x), dtype)
    found = hf.function(_read(lambda l: l.arange(37)[:, None] * 10 + l.arange(31)))(given)
    assert found.dtype == given.dtype
    np.testing.assert_array_equal(hf.astype(found, "float32").numpy(), x[np.arange(37)[:, None] * 10 + np.arange(31)])


def test_several_axes() -> None:
    x = RNG.standard_normal((5, 40, 30), np.float32)
    given = hf.asarray(x)

    def run(l: Any, x: Any) -> Any:
        i = l.arange(10)
        return x[:, i[:, None] + l.arange(4), i[:, None] * 2 + l.arange(4) * 0], x[2, i + 2, i]

    compiled = hf.function(lambda x: run(hf, x))
    for found, expected in zip(compiled(given), run(np, x)):
        np.testing.assert_array_equal(found.numpy(), expected)
    assert _views(compiled, given)


@pytest.mark.parametrize(
    "places",
    [
        lambda l: l.arange(8),
        lambda l: -8 + l.arange(8),
        lambda l: l.arange(3)[:, None] * 3 + l.arange(2),
        lambda l: l.arange(3) + (1 << 62) + (1 << 62) + (1 << 62) + (1 << 62) + 7,
    ],
)
def test_places_outside_raise(places: Places) -> None:
    x = hf.asarray(RNG.standard_normal(7, np.float32))
    with pytest.raises(IndexRangeError):
        hf.function(_read(places))(x)


def test_places_on_both_sides_of_zero_count_from_the_end() -> None:
    x = RNG.standard_normal(7, np.float32)
    found = hf.function(_read(lambda l: l.arange(6) - 3))(hf.asarray(x))
    np.testing.assert_array_equal(found.numpy(), x[np.arange(6) - 3])


def test_narrow_indices_that_wrap() -> None:
    x = RNG.standard_normal(1000, np.float32)
    narrow = np.arange(300).astype(np.int8).astype(np.int32)

    def run(x: Any) -> Any:
        return x[hf.astype(hf.astype(hf.arange(300), "int8"), "int32")]

    np.testing.assert_array_equal(hf.function(run)(hf.asarray(x)).numpy(), x[narrow])


def test_narrow_indices_that_wrap_along_an_open_axis() -> None:
    x = RNG.standard_normal(1000, np.float32)

    @hf.function(input_signature=[hf.TensorSpec([1000], "float32"), hf.TensorSpec([None], "float32")])
    def run(x: Any, other: Any) -> Any:
        n = other.shape[0]
        rows = hf.broadcast_to(hf.astype(hf.arange(n), "int8")[:, None], (n, 4))
        return x[hf.astype(rows, "int64")[200]]

    found = run(hf.asarray(x), hf.zeros((300,)))
    np.testing.assert_array_equal(found.numpy(), np.repeat(x[np.int64(200).astype(np.int8)], 4))


def test_places_from_an_end_that_is_open() -> None:
    x = RNG.standard_normal(50, np.float32)

    @hf.function(input_signature=[hf.TensorSpec([50], "float32"), hf.TensorSpec([None], "float32")])
    def run(x: Any, other: Any) -> Any:
        n = other.shape[0]
        places = hf.arange(n)
        return x[places[n - 3 :]], x[hf.flip(places, axis=0)[:3] * 2], x[places[n - 3 :] - places[n - 4 : n - 1]]

    for n in (4, 20, 25):
        last = np.arange(n)[-3:]
        for found, places in zip(run(hf.asarray(x), hf.zeros((n,))), (last, last[::-1] * 2, last * 0 + 1)):
            np.testing.assert_array_equal(found.numpy(), x[places])


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_large_frames_in_a_program(threads: int) -> None:
    x, window = RNG.standard_normal(20_011, np.float32), RNG.standard_normal(333, np.float32)

    def whole(x: Any, window: Any) -> Any:
        frames = x[hf.arange(190)[:, None] * 101 + hf.arange(333)] * window
        return hf.sum(frames * frames, axis=1), frames @ hf.matrix_transpose(frames)

    given = hf.asarray(x), hf.asarray(window)
    before = hf.config.get_num_threads()
    hf.config.set_num_threads(threads)
    try:
        found, eager = hf.function(whole)(*given), whole(*given)
    finally:
        hf.config.set_num_threads(before)
    frames = (x[np.arange(190)[:, None] * 101 + np.arange(333)] * window).astype(np.float64)
    np.testing.assert_allclose(found[0].numpy(), (frames**2).sum(1), rtol=1e-5)
    np.testing.assert_allclose(found[1].numpy(), frames @ frames.T, rtol=1e-3, atol=1e-3)
    for a, b in zip(found, eager):
        assert a.numpy().tobytes() == b.numpy().tobytes()


def test_gradients_pass() -> None:
    x = RNG.standard_normal(50, np.float32)
    weights = RNG.standard_normal((7, 9), np.float32)

    @hf.function
    def run(x: Any, weights: Any) -> Any:
        with hf.GradientTape() as tape:
            tape.watch(x)
            value = hf.sum(x[hf.arange(7)[:, None] * 6 + hf.arange(9)] * weights)
        return tape.gradient(value, x)

    expected = np.zeros(50)
    np.add.at(expected, np.arange(7)[:, None] * 6 + np.arange(9), weights)
    np.testing.assert_allclose(run(hf.asarray(x), hf.asarray(weights)).numpy(), expected, rtol=1e-5, atol=1e-6)
