"""Parts of variables that are assigned to: eagerly, in compiled functions, and what is no part."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.array import setitem


def test_a_part_is_assigned():
    v = hf.Variable(np.arange(6, dtype="f4").reshape(2, 3))
    assert v[:1, 1:].assign([[9.0, 8.0]]) is v
    v[1].assign(5.0)
    part = v[0, 0]
    v[1, 1].assign(7.0)
    part.assign(4.0)
    np.testing.assert_array_equal(v, [[4, 9, 8], [5, 7, 5]])


def test_parts_are_assigned_in_compiled_functions():
    v = hf.Variable([1.0, 2.0, 3.0, 4.0])

    @hf.function
    def f(i, x):
        v[i].assign(x)
        if x > 5.0:
            v[2:].assign(v[:2])
        return hf.sum(v)

    def g(values, i, x):
        values[i] = x
        if x > 5.0:
            values[2:] = values[:2].copy()
        return values.sum()

    wanted = np.array([1.0, 2.0, 3.0, 4.0], "f4")
    for i, x in ((3, 7.0), (1, 3.0), (0, 9.0)):
        assert f(hf.asarray(i), hf.asarray(x)).item() == g(wanted, i, x)
        np.testing.assert_array_equal(v, wanted)


def test_only_parts_of_variables_can_be_assigned():
    x, v = hf.ones((3,)), hf.Variable([1.0, 2.0])
    for tensor in (x, x[1:], v + 1, hf.exp(v)[0]):
        assert not hasattr(tensor, "assign")
    with pytest.raises(AttributeError, match=r"v\.assign\(value\)"):
        x.assign(1.0)
    with pytest.raises(ValueError):
        v[:1].assign([1.0, 2.0, 3.0])


def test_what_is_noted_of_parts_goes_with_them():
    before = len(setitem._parts)
    v = hf.Variable([1.0, 2.0])
    held = [v[0], v[1:]]
    assert len(setitem._parts) == before + 2
    part = held.pop()
    del v
    gc.collect()
    assert not hasattr(part, "assign")
    del held, part
    gc.collect()
    assert len(setitem._parts) == before


def plan_of(function, *args):
    return [row["kind"] for row in function.memory_plan(*args) if "update" in row["kind"]]


def test_slices_at_a_position_that_a_call_is_given_are_written_in_place():
    """As caches of keys and values are: nothing but the slices is written, of several variables."""
    rng = np.random.default_rng(0)
    keys, values = (hf.Variable(rng.standard_normal((3, 40, 4)).astype("f4")) for _ in range(2))
    wanted = [np.array(keys), np.array(values)]

    @hf.function
    def f(x, at):
        keys[:, at] = x
        values[:, at] = x * 2
        return hf.sum(keys, axis=1)

    for at in (7, -1, 0, 39):
        x = rng.standard_normal((3, 4)).astype("f4")
        f(x, hf.asarray(at))
        wanted[0][:, at], wanted[1][:, at] = x, x * 2
        np.testing.assert_array_equal(keys, wanted[0])
        np.testing.assert_array_equal(values, wanted[1])
    assert plan_of(f, x, hf.asarray(at)) == ["in-place update"] * 2
    for at in (40, -41):
        with pytest.raises(IndexError):
            f(x, hf.asarray(at))
        np.testing.assert_array_equal(keys, wanted[0])
        np.testing.assert_array_equal(values, wanted[1])


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "bfloat16"])
@pytest.mark.parametrize("at", [2, [1, 3, 1, 1], [[0, -1], [2, 0]], []])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_of_slices_for_one_position_the_last_stays(axis, at, dtype):
    rng = np.random.default_rng(1)
    x, at = rng.integers(0, 2, (5, 4, 6)), np.array(at, np.int64)
    key = (slice(None),) * axis + (at,)
    new = rng.integers(0, 2, x[key].shape)

    @hf.function
    def f(x, at, new):
        x = x[:]  # a tensor of its own
        x[(slice(None),) * axis + (at,)] = new
        return x

    found = f(hf.asarray(x, dtype=dtype), at, hf.asarray(new, dtype=dtype))
    wanted = x.copy()
    wanted[key] = new
    assert found.dtype == hf.asarray(x, dtype=dtype).dtype
    np.testing.assert_array_equal(np.asarray(hf.astype(found, "int32")), wanted)


def test_gradients_of_slices_that_are_replaced():
    """Only what stays has a part in the result."""
    x, new, weights = (np.random.default_rng(k).standard_normal((3, 4, 2)) for k in range(3))
    at = np.array([1, 0, 1, 3])

    @hf.function
    def f(x, new):
        with hf.GradientTape() as tape:
            tape.watch([x, new])
            y = x * 1.0
            y[:, hf.asarray(at)] = new
            loss = hf.sum(y * weights)
        return tape.gradient(loss, [x, new])

    of_x, of_new = f(hf.asarray(x), hf.asarray(new))
    wanted = weights.copy()
    wanted[:, at] = 0
    np.testing.assert_array_equal(of_x, wanted)
    wanted = weights[:, at]
    wanted[:, 0] = 0  # the third replaces it
    np.testing.assert_array_equal(of_new, wanted)
