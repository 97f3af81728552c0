"""Variables: reading, assigning, standing for their value, and never sharing a buffer that could be written."""

from __future__ import annotations

import copy
import operator
import pickle

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors


def test_making():
    v = hf.Variable([1, 2.5])
    assert (v.shape, v.dtype, v.trainable, v.name, v.ndim, v.size, v.device) == (
        (2,),
        np.float32,
        True,
        None,
        1,
        2,
        "cpu",
    )
    assert hf.Variable(1).dtype == np.int64
    assert hf.Variable([1, 2], dtype=hf.float64).dtype == np.float64
    assert hf.Variable(np.zeros(3)).dtype == np.float64
    assert hf.Variable(lambda: hf.ones((2,)), name="w").tolist() == [1, 1]
    assert hf.Variable(hf.Variable(3.0)).item() == 3
    with pytest.raises(errors.ArgumentTypeError, match="str is not a tensor"):
        hf.Variable("a")


@pytest.mark.parametrize(
    "op", [operator.add, operator.sub, operator.mul, operator.truediv, operator.pow, operator.lt, operator.eq]
)
def test_stands_for_its_value(op):
    v, x = hf.Variable([1.0, 2.0]), hf.asarray([3.0, 0.5])
    for a, b in ((v, x), (x, v), (v, v), (v, 2), (2.0, v), (np.float32(2), v)):
        plain = [hf.asarray(t.numpy()) if isinstance(t, hf.Variable) else t for t in (a, b)]
        out = op(a, b)
        assert isinstance(out, hf.Tensor)
        np.testing.assert_array_equal(out.numpy(), op(*plain).numpy())


def test_stands_for_its_value_in_functions():
    v = hf.Variable([[1.0, 2.0], [3.0, 4.0]])
    assert hf.sum(v).item() == 10 and (v @ v)[0].tolist() == [7, 10] and v[1, 0].item() == 3
    assert hf.concat([v, v]).shape == (4, 2) and hf.exp(hf.Variable(0.0)).item() == 1
    assert v.T.tolist() == [[1, 3], [2, 4]] and v.astype(hf.int8).dtype == np.int8
    assert [row.tolist() for row in v] == [[1, 2], [3, 4]] and len(v) == 2
    assert float(hf.Variable(2.5)) == 2.5 and int(hf.Variable(2)) == 2 and bool(hf.Variable(True))
    assert range(3)[hf.Variable(1)] == 1 and f"{hf.Variable(2.5):.2f}" == "2.50"
    assert np.asarray(v).sum() == 10 and -v is not v and (~hf.Variable(True)).item() is False


def test_assigning():
    v = hf.Variable([1.0, 2.0])
    assert v.assign([3, 4]) is v and v.tolist() == [3, 4]
    assert v.assign(np.array([5, 6])).tolist() == [5, 6]
    assert v.assign(hf.asarray([7.0, 8.0])).tolist() == [7, 8]
    assert v.assign_add(1).tolist() == [8, 9]
    assert v.assign_sub([1, 2]).tolist() == [7, 7]
    assert v.assign_add(np.ones(2)).tolist() == [8, 8]
    assert v.assign(v * 2).tolist() == [16, 16]
    before = v
    v += 1
    assert isinstance(v, hf.Tensor) and before.tolist() == [16, 16]


def test_what_cannot_be_assigned():
    v = hf.Variable([1.0, 2.0], name="w")
    with pytest.raises(errors.ShapeError, match=r"\[assign\] variable w f32\[2\] cannot take f32\[3\].*test_variable"):
        v.assign([1, 2, 3])
    with pytest.raises(errors.ShapeError, match=r"f32\[\]"):
        v.assign(0.0)
    with pytest.raises(errors.DTypeError, match=r"cannot take i64\[2\].*x\.astype\(hf\.float32\)"):
        v.assign(hf.asarray([1, 2]))
    with pytest.raises(errors.DTypeError, match="f64"):
        v.assign_add(hf.ones((2,), hf.float64))
    with pytest.raises(errors.ShapeError):
        v.assign_add(hf.ones((3, 2)))
    with pytest.raises(errors.ArgumentError, match="not a whole number"):
        hf.Variable(1).assign(1.5)
    with pytest.raises(errors.ShapeError):
        v[0] = [1.0, 2.0]
    assert v.tolist() == [1, 2]


def test_earlier_values_stay():
    source = np.ones(2, np.float32)
    v = hf.Variable(source)
    source[:] = 9
    tensor, array = v.value(), v.numpy()
    start = hf.zeros((2,))
    v.assign(start)
    v.assign_add(1)
    assert (tensor.tolist(), array.tolist(), start.tolist(), v.tolist()) == ([1, 1], [1, 1], [0, 0], [1, 1])
    with pytest.raises(ValueError, match="read-only"):
        v.numpy()[0] = 5


def test_earlier_values_stay_when_a_traced_function_assigns():
    v = hf.Variable(hf.zeros((3,)))

    @hf.function
    def step(x):
        before = v + 0
        v.assign_add(x)
        v.assign(v * 2)
        return before, v.value()

    for _ in range(3):
        held, array, start = v.value(), v.numpy(), v.tolist()
        before, after = step(hf.ones((3,)))
        assert held.tolist() == array.tolist() == before.tolist() == start
        assert after.tolist() == v.tolist() == [2 * (start[0] + 1)] * 3


def test_reads_and_assignments_in_a_trace_keep_their_order():
    def body(v):
        seen = [v + 0]
        v.assign_add(1)
        seen.append(v + 0)
        v.assign_add(10)
        return seen

    eager, traced = hf.Variable(0), hf.Variable(0)
    traced_body = hf.function(body)
    for _ in range(3):
        assert [t.item() for t in body(eager)] == [t.item() for t in traced_body(traced)]
        assert eager.item() == traced.item()


def test_tapes_watch_trainable_float_variables():
    v, w, n = hf.Variable(3.0), hf.Variable(3.0, trainable=False), hf.Variable(3)
    assert (v.is_watched, w.is_watched, n.is_watched) == (True, False, False)
    with hf.GradientTape() as tape:
        y = v * v + w * w
    assert tape.gradient(y, v).item() == 6


def test_no_gradient_passes_through_an_assignment():
    v, w = hf.Variable(3.0), hf.Variable(1.0)
    with hf.GradientTape(persistent=True) as tape:
        w.assign(v * v)
        y = w * 2
    assert tape.gradient(y, w).item() == 2
    assert tape.gradient(y, v) is None


def test_identity_pickling_and_copies():
    v = hf.Variable([1.0, 2.0], trainable=False, name="w")
    assert {v: 1}[v] == 1
    for other in (pickle.loads(pickle.dumps(v)), copy.deepcopy(v)):
        assert (other.tolist(), other.trainable, other.name, other.dtype) == ([1, 2], False, "w", np.float32)
        other.assign([5, 5])
        assert v.tolist() == [1, 2]


def test_repr():
    assert repr(hf.Variable(1.5, name="w")) == "<Variable 'w' f32[] cpu> 1.5"
    assert repr(hf.Variable([1, 2], trainable=False)) == "<Variable not trainable i64[2] cpu> [1 2]"


def test_making_one_in_each_trace_is_an_error():
    @hf.function
    def body(x):
        return x + hf.Variable(1.0)

    with pytest.raises(errors.TraceError, match=r"makes a variable.*test_variable\.py"):
        for n in range(1, 4):
            body(hf.ones((n,)))


def test_python_updates_write_in_place_only_when_nobody_else_can_see_the_value():
    v = hf.Variable([1.0, 2.0])

    @hf.function
    def step(box):
        v.assign_add(box["x"])  # nested arguments go the Python way

    box = {"x": hf.constant([1.0, 1.0])}
    step(box)
    step(box)
    address = v._tensor._array.ctypes.data
    step(box)
    assert v._tensor._array.ctypes.data == address
    for hold in (v.value, v.numpy, lambda: v + 0, lambda: memoryview(v.numpy()), lambda: v.numpy()[1:]):
        held = hold()
        before = np.array(held)
        step(box)
        assert np.array_equal(np.array(held), before)
        del held
        step(box)
