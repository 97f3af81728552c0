"""Calls of compiled functions with tensors of a GPU: native code finds the program, Python looks at their types."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.errors import DeviceError, IndexRangeError
from tests.gpu.test_cuda_schedule import emulated  # noqa: F401  # a fixture


def on_gpu(values, number=0):
    return hf.asarray(values).to_device(f"gpu:{number}")


def answered(f):
    """How many calls native code has brought to their program."""
    return sum(call.calls for call in f._dispatch if call.python is not None)


def test_calls_are_found_by_native_code(emulated):  # noqa: F811
    f = hf.function(lambda x, *, y: {"sum": x + y["a"], "x": x})
    x, y = on_gpu(np.arange(3.0)), {"a": on_gpu(np.ones(3))}
    for _ in range(4):
        found = f(x, y=y)
        assert found["sum"].tolist() == [1, 2, 3] and found["x"] is x
    assert answered(f) == 3


def test_other_types_are_other_programs(emulated):  # noqa: F811
    f = hf.function(lambda x: x * 2, reduce_retracing=False)
    for dtype in (np.float32, np.float64, np.int32):
        for n in (1, 2, 3, 1):
            x = np.arange(n).astype(dtype)
            for _ in range(3):
                found = f(on_gpu(x))
                assert found.dtype == dtype and found.tolist() == (x * 2).tolist()
    assert len(f.signatures()) == 9 and answered(f) >= 2 * 9


def test_open_extents(emulated):  # noqa: F811
    f = hf.function(lambda x, y: x[1:] + y)
    for n in (4, 5, 9, 2, 5, 7, 1, 2):
        x = np.arange(float(n))
        for _ in range(2):
            assert f(on_gpu(x), on_gpu(x[1:])).tolist() == (x[1:] + x[1:]).tolist()
    assert answered(f)
    with pytest.raises(ValueError, match="shape"):
        f(on_gpu(np.arange(5.0)), on_gpu(np.arange(3.0)))


def test_the_device_of_each_call_counts(emulated):  # noqa: F811
    f = hf.function(lambda x, y: x + y)
    zero, one, host = on_gpu(np.ones(40)), on_gpu(np.ones(40), 1), hf.ones(40, dtype=hf.float64)
    for _ in range(3):
        for x in (zero, one, host):
            assert f(x, x).device == x.device
    for x, y in ((zero, one), (one, host), (host, zero)):
        with pytest.raises(DeviceError, match="lie on different devices"):
            f(x, y)
        assert f(x, x).tolist() == [2.0] * 40


def test_arrays_of_the_host_follow(emulated):  # noqa: F811
    f = hf.function(lambda x, y, s: x + y * s)
    x, y = on_gpu(np.ones(5)), np.arange(5.0)
    for s in (2.0, 2.5, 3.5, 4.5):
        assert f(x, y, s).tolist() == f(x, on_gpu(y), s).tolist() == (1 + y * s).tolist()


def test_values_from_outside_are_watched(emulated):  # noqa: F811
    settings = {"scale": 2.0}
    f = hf.function(lambda x: x * settings["scale"])
    x = on_gpu(np.ones(3))
    for scale in (2.0, 2.0, 2.0, 5.0, 5.0, 2.0):
        settings["scale"] = scale
        assert f(x).tolist() == [scale] * 3


def test_variables_and_errors(emulated):  # noqa: F811
    with hf.device("gpu:0"):
        v = hf.Variable(np.zeros(40, np.float32))

    @hf.function
    def step(i):
        found = hf.take(v, i)  # the line
        v.assign_add(hf.ones(40))
        return found

    good, bad = on_gpu([0, 39]), on_gpu([0, 40])
    for k in range(4):
        assert step(good).tolist() == [k, k]
    assert answered(step) >= 2
    with pytest.raises(IndexRangeError, match=rf"py:{step.__wrapped__.__code__.co_firstlineno + 2}"):
        step(bad).numpy()
    assert v.numpy().tolist() == [4.0] * 40


def test_under_tapes(emulated):  # noqa: F811
    f = hf.function(lambda x, y: hf.sum(x * x * y))
    x, y = on_gpu(np.arange(3.0)), on_gpu(np.ones(3))
    for _ in range(4):
        with hf.GradientTape() as tape:
            tape.watch(x)
            z = f(x, y)
        assert tape.gradient(z, x).tolist() == [0, 2, 4]
        with hf.GradientTape():
            assert f(x, y).item() == 5
        assert f(x, y).item() == 5


def test_what_a_call_made_is_let_go(emulated):  # noqa: F811
    f = hf.function(lambda x: x + 1)
    x = on_gpu(np.ones(1000))
    for _ in range(3):
        f(x)
    emulated.driver.synchronize()
    gc.collect()
    before = emulated.driver.bytes_in_use
    for _ in range(20):
        f(x)
    emulated.driver.synchronize()
    assert emulated.driver.bytes_in_use == before
