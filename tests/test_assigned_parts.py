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
