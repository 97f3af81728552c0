"""``x[key] = value``: values against NumPy, eagerly, under a tape and compiled; and who does not see the change."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors

pytestmark = pytest.mark.code

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4, 5, 3)).astype(np.float32)
MASK = X[:, :, 0] > 0
PLACES = np.array([[0, 3], [-1, 0]])

KEYS: dict[str, Any] = {
    "one": 1,
    "last": (-1, -1, -1),
    "all": ...,
    "no axes": (),
    "mask and positions": (np.array([True, False, False, True]), np.array([1, -1])),
    "nothing": (slice(2, 2),),
    "slices": (slice(1, 3), slice(None, None, 2)),
    "backwards": (slice(None, None, -1), slice(4, None, -2), 1),
    "new axes": (None, slice(1, 4, 2), None, 2),
    "behind": (..., slice(0, 2)),
    "mask": X > 0.3,
    "mask of rows": MASK,
    "mask and slice": (MASK[:, 0], slice(1, 4)),
    "scalar mask": np.array(True),
    "positions": PLACES,
    "positions twice": (PLACES, PLACES),
    "apart": (PLACES, slice(None), PLACES % 3),
    "position and int": (0, PLACES),
    "no positions": np.zeros(0, np.int64),
}


def keyed(key: Any) -> Any:
    """Arrays as tensors."""
    return tuple(map(keyed, key)) if isinstance(key, tuple) else hf.asarray(key) if isinstance(key, np.ndarray) else key


def bits(x: Any) -> tuple[Any, ...]:
    array = np.asarray(x)
    return array.dtype, array.shape, array.tobytes()


@pytest.mark.parametrize("name", KEYS)
@pytest.mark.parametrize("kind", ["scalar", "full", "row"])
def test_values_and_gradients(name: str, kind: str) -> None:
    key = KEYS[name]
    target = X[key].shape
    value: Any = RNG.normal(size={"scalar": (), "full": target, "row": target[-1:]}[kind]).astype(np.float32)
    expected = X.copy()
    expected[key] = value
    numbers = np.arange(X.size).reshape(X.shape)  # where each element of the result comes from
    numbers[key] = -1 - np.broadcast_to(np.arange(value.size).reshape(value.shape), target)
    weights = RNG.normal(size=X.shape).astype(np.float32)
    of_x = np.where(numbers >= 0, weights, 0)
    of_value = np.zeros(value.size)
    np.add.at(of_value, -1 - numbers[numbers < 0], weights[numbers < 0])

    def change(x: Any, v: Any) -> Any:
        x = +x
        x[keyed(key)] = v
        return x

    for run in (change, hf.function(change)):
        x, v = hf.asarray(X), hf.asarray(value)
        assert bits(run(x, v)) == bits(expected)
        with hf.GradientTape() as tape:
            tape.watch((x, v))
            y = run(x, v)
        assert bits(y) == bits(expected) and bits(x) == bits(X)
        found = tape.gradient(y, (x, v), hf.asarray(weights), unconnected_gradients="zero")
        np.testing.assert_array_equal(found[0], of_x)
        np.testing.assert_allclose(found[1], of_value.reshape(value.shape), rtol=1e-5, atol=1e-6)


def test_symbolic_extents_masks_and_positions() -> None:
    def change(x: Any, i: Any) -> Any:
        x = hf.square(x)
        x[1:-1] = 0.5
        x[::2] += x[0]
        x[x > 2] = 2
        x[i] = hf.arange(i.shape[0], dtype=hf.float32)
        x[hf.asarray(0)] = -1
        return x

    compiled = hf.function(change)
    for n in (5, 6, 9, 2, 17):
        x, i = RNG.normal(size=n).astype(np.float32), RNG.integers(-n, n, n)
        expected = np.square(x)
        expected[1:-1] = 0.5
        expected[::2] += expected[0]
        expected[expected > 2] = 2
        expected[i] = np.arange(n)
        expected[0] = -1
        assert (
            bits(compiled(hf.asarray(x), hf.asarray(i))) == bits(change(hf.asarray(x), hf.asarray(i))) == bits(expected)
        )


def test_a_mask_that_is_not_known_takes_one_value_for_all() -> None:
    @hf.function
    def rows(x: Any, mask: Any, row: Any) -> Any:
        x = +x
        x[mask] = row
        x[mask] = row[None]
        return x

    expected = X.copy()
    expected[MASK[:, 0]] = X[0]
    assert bits(rows(hf.asarray(X), hf.asarray(MASK[:, 0]), hf.asarray(X[0]))) == bits(expected)

    @hf.function
    def each(x: Any, mask: Any, values: Any) -> Any:
        x = +x
        x[mask] = values
        return x

    values = np.arange(X[MASK].size, dtype=X.dtype).reshape(X[MASK].shape)
    expected = X.copy()
    expected[MASK] = values
    assert bits(each(hf.asarray(X), hf.asarray(MASK), hf.asarray(values))) == bits(expected)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "bfloat16", "float64"])
def test_dtypes(dtype: str) -> None:
    x = hf.asarray(np.ones((2, 3)), dtype=dtype)
    x[0] = False
    x[1, 1:] = hf.asarray([True, False])
    assert x.dtype == dtype and x.tolist() == [[0, 0, 0], [1, 1, 0]]
    wide = hf.zeros(2, dtype=hf.float32)
    wide[0] = hf.asarray(1.5, dtype=hf.float64)
    wide[1] = hf.asarray(3)
    assert wide.dtype == hf.float32 and wide.tolist() == [1.5, 3.0]


SAME: dict[str, Callable[[Any], Any]] = {
    "positive": lambda x: +x,
    "hf.positive": hf.positive,
    "asarray": hf.asarray,
    "asarray, copy": lambda x: hf.asarray(x, copy=True),
    "constant": hf.constant,
    "astype": lambda x: hf.astype(x, x.dtype),
    "x.astype": lambda x: x.astype(x.dtype),
    "x.copy": lambda x: x.copy(),
    "x.reshape": lambda x: x.reshape(x.shape),
    "reshape": lambda x: hf.reshape(x, x.shape),
    "permute_dims": lambda x: hf.permute_dims(x, range(x.ndim)),
    "moveaxis": lambda x: hf.moveaxis(x, 0, 0),
    "expand_dims": lambda x: hf.expand_dims(x, ()),
    "squeeze": lambda x: hf.squeeze(x),
    "broadcast_to": lambda x: hf.broadcast_to(x, x.shape),
    "broadcast_arrays": lambda x: hf.broadcast_arrays(x, x)[1],
    "concat": lambda x: hf.concat([x]),
    "split": lambda x: hf.split(x, 1)[0],
    "flip": lambda x: hf.flip(x, ()),
    "roll": lambda x: hf.roll(x, 0, 0),
    "roll by all": lambda x: hf.roll(x, x.shape[0], 0),
    "repeat": lambda x: hf.repeat(x, 1, 0),
    "tile": lambda x: hf.tile(x, (1, 1)),
    "pad": lambda x: hf.pad(x, [(0, 0)] * x.ndim, "edge"),
    "clip": hf.clip,
    "nan_to_num": hf.nan_to_num,
    "round": hf.round,
    "diff": lambda x: hf.diff(x, n=0),
    "conj": hf.conj,
    "real": hf.real,
    "stop_gradient": hf.stop_gradient,
    "x[:]": lambda x: x[:],
    "x[...]": lambda x: x[...],
    "x[()]": lambda x: x[()],
    "einsum": lambda x: hf.einsum("ij->ij", x),
    "sum": lambda x: hf.sum(x, ()),
    "to_device": lambda x: x.to_device("cpu"),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "dropout": lambda x: hf.nn.dropout(x, 0.5, training=False),
    "compiled": hf.function(lambda x: +x),
    "compiled reshape": hf.function(lambda x: hf.reshape(x, x.shape)),
}


@pytest.mark.parametrize("name", SAME)
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_no_function_returns_its_argument(name: str, dtype: str) -> None:
    if dtype == "int32" and name == "dropout":
        return
    values = np.arange(6).reshape(2, 3).astype(dtype)
    for taped in (False, True):
        for _ in range(8):  # functions that are called again and again are compiled
            x = hf.asarray(values)
            with hf.GradientTape() as tape:
                if not taped:
                    tape.__exit__()
                else:
                    tape.watch(x)
                y = SAME[name](x)
            assert y is not x
            y[0, 0] = 77
            assert x.tolist() == values.tolist()
            z = SAME[name](x)
            x[0, 1] = 55
            assert z.tolist() == values.tolist()


def test_variables() -> None:
    v = hf.Variable([1.0, 2.0, 3.0])
    for read in (v.value, v.read_value, lambda: +v, lambda: hf.asarray(v), lambda: v[:], lambda: hf.reshape(v, (3,))):
        x = read()
        x[0] = 9
        assert v.numpy().tolist() == [1, 2, 3]
    v[1] = 7
    v[0:2] += 1
    assert v.numpy().tolist() == [2, 8, 3]
    y = hf.ones(3)
    v.assign(y)
    y[0] = 5
    assert v.numpy().tolist() == [1, 1, 1]

    @hf.function
    def step(x: Any) -> Any:
        before = v.value()
        v[0] = x
        before[1] = 3
        return before, v.value()

    before, after = step(hf.asarray(4.0))
    assert before.tolist() == [1, 3, 1] and after.tolist() == v.numpy().tolist() == [4, 1, 1]


def test_gradients_are_objects_of_their_own() -> None:
    x, y, seed = hf.ones(2), hf.ones(2), hf.ones(2)
    with hf.GradientTape() as tape:
        tape.watch((x, y))
        z = x + y
    a, b = tape.gradient(z, (x, y), seed)
    a[0] = 5
    assert b.tolist() == seed.tolist() == [1, 1]


def test_what_a_tape_recorded_keeps_its_values() -> None:
    for compiled in (False, True):
        multiply = hf.function(lambda x, y: hf.exp(x) * y) if compiled else lambda x, y: hf.exp(x) * y
        x, y = hf.asarray([1.0, 2.0]), hf.asarray([3.0, 4.0])
        with hf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            z = multiply(x, y)
            y[0] = 100
            z[1] = 0
            w = z * y
        y[:] = 7
        x[:] = 0
        np.testing.assert_allclose(tape.gradient(z, x), [np.e * 3, 0], rtol=1e-6)
        np.testing.assert_allclose(tape.gradient(w, x), [np.e * 300, 0], rtol=1e-6)


def test_a_watched_tensor_that_is_changed_is_differentiated_as_it_was() -> None:
    x = hf.asarray([1.0, 2.0])
    with hf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        before = hf.sum(x * x)
        x[0] = 5
        after = hf.sum(x * x)
    assert tape.gradient(before, x).tolist() == [2, 4]
    assert tape.gradient(after, x).tolist() == [0, 4]

    def f(x: Any) -> Any:
        x = +x
        x[0] = x[1] * 3
        return hf.sum(hf.square(x))

    for run in (f, hf.function(f)):
        t = hf.asarray([1.0, 2.0])
        with hf.GradientTape() as outer:
            outer.watch(t)
            with hf.GradientTape() as inner:
                inner.watch(t)
                y = run(t)
            g = inner.gradient(y, t)
        assert g.tolist() == [0, 40] and outer.gradient(g, t).tolist() == [0, 20]


def test_functions_see_tensors_from_outside_as_they_are_now() -> None:
    weights = hf.asarray([1.0, 2.0])
    held = {"w": weights}
    by_cell = hf.function(lambda x: x * weights)
    by_item = hf.function(lambda x: x * held["w"])
    for n in range(6):
        weights[1] = n
        for f in (by_cell, by_item):
            for _ in range(3):
                assert f(hf.ones(2)).tolist() == [1, n]


def test_in_a_function_only_its_own_tensors_change() -> None:
    outside = hf.ones(3)

    def of_argument(x: Any) -> Any:
        x[0] = 1
        return x

    def of_outside(x: Any) -> Any:
        outside[0] = x[0]
        return x

    for function, message in ((of_argument, "an argument of of_argument"), (of_outside, "made outside of of_outside")):
        with pytest.raises(errors.TraceError, match=message):
            hf.function(function)(hf.zeros(3))
    assert outside.tolist() == [1, 1, 1]

    @hf.function
    def two(x: Any) -> Any:
        y = hf.square(x)
        z = +y
        z[0] = 0
        return y, z, +z

    a, b, c = two(hf.asarray([2.0, 3.0]))
    b[1] = 1
    assert (a.tolist(), b.tolist(), c.tolist()) == ([4, 9], [0, 1], [0, 9])


@pytest.mark.parametrize("key", [(), 1, slice(0, 2), MASK[:3, 0], np.array([2, 0])], ids=str)
def test_axes_of_one_element_in_front_of_the_value_go(key: Any) -> None:
    x = X[:3, 0, 0]
    value = RNG.normal(size=np.shape(x[key])).astype(np.float32)
    expected = x.copy()
    expected[key] = value

    def assigned(t: Any, value: Any) -> Any:
        t = +t
        t[keyed(key)] = value
        return t

    for given in (value, value[None], value[None, None]):
        tensors = hf.asarray(x), hf.asarray(given)
        assert bits(assigned(*tensors)) == bits(hf.function(assigned)(*tensors)) == bits(expected)


def test_bad_input() -> None:
    def attempts(x: Any) -> list[tuple[type, Callable[[], Any]]]:
        return [
            (errors.IndexRangeError, lambda: x.__setitem__(9, 1)),
            (errors.IndexRangeError, lambda: x.__setitem__((0, 0, 0), 1)),
            (errors.IndexRangeError, lambda: x.__setitem__(hf.asarray([True]), 1)),
            (errors.ShapeError, lambda: x.__setitem__(0, hf.ones(2))),
            (errors.ShapeError, lambda: x.__setitem__(slice(0, 2), hf.ones((3, 3)))),
            (errors.ArgumentTypeError, lambda: x.__setitem__(0.5, 1)),
            (errors.ArgumentTypeError, lambda: x.__setitem__(0, "abc")),
        ]

    for k in range(7):
        x = hf.ones((2, 3))
        kind, attempt = attempts(x)[k]
        with pytest.raises(kind):
            attempt()
        assert x.tolist() == [[1, 1, 1], [1, 1, 1]]

        def compiled(x: Any, k: int = k) -> Any:
            x = hf.square(x)
            attempts(x)[k][1]()
            return x

        with pytest.raises(kind):
            hf.function(compiled)(x)
    for value in (1.5, hf.asarray(1.0)):
        with pytest.raises((errors.DTypeError, errors.ArgumentError)):
            hf.asarray([1, 2])[0] = value
    with pytest.raises(errors.ShapeError, match=r"\[setitem\].*f32\[2,2\].*\(test_setitem\.py:"):
        hf.ones(3)[hf.asarray([True, True, False])] = hf.ones((2, 2))
    with pytest.raises(errors.IndexRangeError):
        hf.function(lambda x, i: (x := +x, x.__setitem__(i, 0.0), x)[2])(hf.ones(3), hf.asarray([4]))


@pytest.mark.parametrize(
    ("array", "key", "value"),
    [
        (np.zeros((2, 3), np.float32), 1, 2.5),
        (np.zeros((2, 3), np.float32), (1, -1), 1e300),
        (np.zeros((2, 3), np.float16), (-2,), float("nan")),
        (np.zeros(3, np.uint8), -3, 255),
        (np.zeros((2, 3), bool), (0, 1), True),
        (np.zeros((2, 3)).T, (2, 1), -0.0),
        (np.zeros(3), (), 7.0),
    ],
)
def test_numbers_at_indices(array: np.ndarray, key: Any, value: Any) -> None:
    x = hf.asarray(array)
    before, seen = x.numpy(), x + 0 if array.dtype != bool else x[:]
    x[key] = value
    expected = array.copy()
    with np.errstate(over="ignore"):
        expected[key] = value
    assert x.dtype == array.dtype and x.numpy().tobytes() == expected.tobytes()
    assert before.tobytes() == array.tobytes() == seen.numpy().tobytes()


def test_numbers_that_do_not_fit_change_nothing() -> None:
    x, n = hf.zeros((2, 3)), hf.asarray([1, 2], dtype=hf.uint8)
    for tensor, key, value, kind in (
        (x, 2, 1.0, hf.errors.IndexRangeError),
        (x, (0, 0, 0), 1.0, IndexError),
        (n, 0, 256, hf.errors.ArgumentError),
        (n, 0, -1, hf.errors.ArgumentError),
        (n, 5, 1, hf.errors.IndexRangeError),
    ):
        held = tensor.tolist()
        with pytest.raises(kind):
            tensor[key] = value
        assert tensor.tolist() == held


def _up_to(x: Any, v: Any, n: Any) -> Any:
    z = x + 0.0
    z[:n] = v
    return hf.sum(z * 2.0)


def _from(x: Any, v: Any, n: Any) -> Any:
    z = x + 0.0
    z[n:] = v
    return hf.sum(z * 2.0)


def _every_second(x: Any, v: Any, n: Any) -> Any:
    z = x + 0.0
    z[n::2] = v
    return hf.sum(z * 2.0)


def _at_indices(x: Any, v: Any, n: Any) -> Any:
    z = x + 0.0
    z[hf.arange(n)] = v
    return hf.sum(z * 2.0)


@pytest.mark.parametrize("function", [_up_to, _from, _every_second, _at_indices])
def test_what_has_a_gradient_is_no_matter_of_extents(function: Any) -> None:
    """Where nothing is left of the old elements, or of the new ones, their gradient is zero, and not missing."""

    def gradients(x: Any, v: Any, n: Any, f: Any = function) -> Any:
        with hf.GradientTape() as tape:
            tape.watch([x, v])
            y = f(x, v, n)
        return tape.gradient(y, [x, v])

    outer, inner = hf.function(function), hf.function(gradients)
    for size, n in ((3, 1), (4, 2), (5, 3), (5, 5), (5, 0), (6, 6), (2, 2)):
        x, v = hf.asarray(np.arange(1.0, size + 1)), hf.asarray(np.float64(7.0))
        taken = np.zeros(size, bool)
        taken[{_from: slice(n, None), _every_second: slice(n, None, 2)}.get(function, slice(None, n))] = True
        for found in (gradients(x, v, n), gradients(x, v, n, outer), inner(x, v, n)):
            assert [g.numpy().tolist() for g in found] == [np.where(taken, 0.0, 2.0).tolist(), 2.0 * taken.sum()]


def test_a_key_that_takes_everything_replaces_it() -> None:
    def replaced(x: Any, v: Any) -> Any:
        z = x + 0.0
        z[:] = v
        return hf.sum(z)

    for f in (replaced, hf.function(replaced)):
        x, v = hf.ones(4), hf.asarray(2.0)
        with hf.GradientTape() as tape:
            tape.watch([x, v])
            y = f(x, v)
        of_x, of_v = tape.gradient(y, [x, v])
        assert of_x is None and of_v.item() == 4.0
