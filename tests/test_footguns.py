"""Programs on which tracing compilers are known to differ silently from eager execution.  Here they agree, or raise."""

import struct

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.errors import DivisionError, IndexRangeError, ShapeError, TraceError


def same(a, b):
    a, b = np.asarray(a), np.asarray(b)
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def test_scalars_of_several_types_do_not_share_a_trace():
    def double(x):
        return hf.add(hf.constant(x), hf.constant(x))

    f = hf.function(double)
    for value in (1, 1.0, 2, 0, 0.0):
        assert same(f(value), double(value))
    assert f(1).dtype == hf.int64 and f(1.0).dtype == hf.float32


def test_negative_zero_is_not_zero():
    def inverse(x):
        return hf.divide(1.0, hf.constant(x))

    f = hf.function(inverse)
    for value in (0.0, -0.0, 0.0):
        assert same(f(value), inverse(value))
    assert float(f(-0.0)) == -np.inf


NAN = float("nan")
OTHER_NAN = struct.unpack("<d", struct.pack("<Q", 0x7FF8000000000001))[0]


def test_scalar_keys_are_type_and_bits():
    runs = []
    f = hf.function(lambda x: runs.append(x))
    values = [1, 1.0, True, 0, 0.0, -0.0, False, NAN, OTHER_NAN, 1e-320, 2**70, 1j, complex(0.0, -0.0), "1", b"1", None]
    for value in values:
        f(value)
    assert len(runs) == len(values)
    for value in values:
        f(value)
    f(float("nan"))
    assert len(runs) == len(values)  # nan hits its own trace


def test_nested_scalars_are_keyed_as_well():
    f = hf.function(lambda d: hf.constant(d["k"][0]))
    assert [f({"k": [v]}).dtype for v in (1, 1.0, True)] == [hf.int64, hf.float32, hf.bool_]
    g = hf.function(lambda d: len(d))
    g({1: 0.0})
    g({True: 0.0})
    assert len(g.signatures()) == 2


def test_branching_on_a_tensor_never_takes_a_side_in_silence():
    @hf.function
    def f(x):
        try:
            if x > 0:
                raise ValueError
        except ValueError:
            return 0.0
        return x

    with pytest.raises(TraceError, match="branching on"):
        f(hf.constant(-1.0))


def test_indices_out_of_range_raise():
    take = hf.function(lambda x, i: hf.take(x, i))
    with pytest.raises(IndexRangeError):
        take(hf.ones(3), hf.asarray([100]))


def test_integer_division_by_zero_raises():
    divide = hf.function(lambda a, b: a // b)
    with pytest.raises(DivisionError):
        divide(hf.asarray([4]), hf.asarray([0]))


def test_errors_of_unused_values_are_not_pruned():
    @hf.function
    def f(x, i):
        hf.take(x, i)
        return x * 2.0

    assert same(f(hf.ones(3), hf.asarray([1])), np.full(3, 2, np.float32))
    with pytest.raises(IndexRangeError):
        f(hf.ones(3), hf.asarray([100]))


def test_concrete_functions_do_not_accept_other_shapes():
    concrete = hf.function(lambda x: x + 1.0).get_concrete_function(hf.TensorSpec([3]))
    with pytest.raises(ShapeError, match=r"x is f32\[2\]"):
        concrete(hf.ones(2))


def test_a_local_variable_is_an_error_and_not_state():
    @hf.function
    def f(x):
        v = hf.Variable(0.0)
        v.assign_add(x)
        return v.value()

    with pytest.raises(TraceError):
        f(hf.constant(1.0))


def test_results_do_not_share_buffers_that_change():
    v = hf.Variable(np.zeros(3))

    @hf.function
    def f():
        v.assign_add(np.ones(3))
        return v.value()

    first = f()
    second = f()
    assert same(first, np.ones(3)) and same(second, np.full(3, 2.0))


def test_calls_do_not_share_output_buffers():
    f = hf.function(lambda x: x + 1.0)
    a = f(hf.zeros(100))
    b = f(hf.ones(100))
    assert same(a, np.ones(100, np.float32)) and same(b, np.full(100, 2, np.float32))


def test_methods_of_two_instances_do_not_share_constants():
    class Layer:
        def __init__(self, n):
            self.n = n

        @hf.function
        def f(self, x):
            return x * self.n

    x = hf.constant(1.0)
    assert [float(Layer(n).f(x)) for n in range(5)] == [0.0, 1.0, 2.0, 3.0, 4.0]


def test_python_random_state_is_not_traced_but_ours_is():
    f = hf.function(lambda: hf.random.uniform((4,)))
    hf.random.set_seed(7)
    compiled = [np.asarray(f()) for _ in range(3)]
    hf.random.set_seed(7)
    eager = [np.asarray(hf.random.uniform((4,))) for _ in range(3)]
    assert all(same(a, b) for a, b in zip(compiled, eager)) and not same(compiled[0], compiled[1])


def test_assigning_in_a_function_takes_effect_once_per_call():
    v = hf.Variable(0.0)
    f = hf.function(lambda x: (v.assign_add(x), None)[1])
    for _ in range(5):
        f(hf.constant(1.0))
    assert float(v) == 5.0
