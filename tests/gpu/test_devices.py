"""Devices in the front end: scopes, placement, mixing, functions and state, on an emulated GPU and without one."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.core.context import busy
from hybridflow.errors import DeviceError
from hybridflow.runtime.cuda import gpu_memory
from tests.support.bits import same_bits
from tests.support.cuda_emulator import Array, emulated  # noqa: F401
from tests.support.device_programs import PROGRAMS

on_emulator = pytest.mark.usefixtures("emulated")


def gpu(value, number=0):
    return hf.asarray(value).to_device(f"gpu:{number}")


# ---- without a GPU


@pytest.fixture
def no_cupy(monkeypatch):
    def missing():
        raise DeviceError("cuda", "CuPy cannot be imported (No module named 'cupy'). Install CuPy.")

    monkeypatch.setattr(gpu_memory, "cupy", missing)


@pytest.mark.usefixtures("no_cupy")
def test_without_cupy_everything_names_the_remedy():
    assert hf.list_devices() == ["cpu"]
    with pytest.raises(DeviceError, match="Install CuPy"), hf.device("gpu:0"):
        pass
    with pytest.raises(DeviceError, match="Install CuPy"):
        hf.ones(3).to_device("gpu:0")
    assert hf.ones(3).device == "cpu" and busy.value == 0


@pytest.mark.parametrize("name", ["cuda:0", "gpu:", "gpu:-1", "gpu:01", "tpu", "", None, 0])
def test_names_of_no_device(name):
    with pytest.raises(DeviceError, match="is not a device"), hf.device(name):
        pass


@on_emulator
def test_numbers_of_no_device():
    with pytest.raises(DeviceError, match="no gpu:2 here; this process has gpu:0 to gpu:1"), hf.device("gpu:2"):
        pass
    assert hf.list_devices() == ["cpu", "gpu:0", "gpu:1"]


# ---- placement


@on_emulator
def test_scopes_place_what_is_created():
    with hf.device("gpu:0"):
        made = [hf.ones((2, 3)), hf.arange(4), hf.asarray([1, 2]), hf.constant(2.0), hf.asarray(np.eye(2))]
        made += [hf.random.normal((3,)), hf.eye(3), hf.tril(hf.ones((3, 3)))]
        with hf.device("cpu"):
            assert hf.zeros(2).device == "cpu"
        with hf.device("gpu:1"):
            assert hf.zeros(2).device == "gpu:1"
    assert [x.device for x in made] == ["gpu:0"] * len(made)
    assert hf.zeros(2).device == "cpu" and busy.value == 0
    assert "gpu:0" in repr(made[0])


@on_emulator
def test_a_scope_is_its_thread_s_own():
    found = []
    with hf.device("gpu:0"):
        thread = threading.Thread(target=lambda: found.append(hf.zeros(2).device))
        thread.start()
        thread.join()
    assert found == ["cpu"]


@on_emulator
def test_a_scope_ends_with_an_error():
    with pytest.raises(ZeroDivisionError), hf.device("gpu:0"):
        raise ZeroDivisionError
    assert hf.zeros(2).device == "cpu" and busy.value == 0


@on_emulator
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "bfloat16", "float64"])
def test_copies_keep_the_bits(dtype):
    x = hf.astype(hf.asarray([[0.0, -0.0, 1.5], [np.inf, np.nan, -3.0]]), dtype)
    there = x.to_device("gpu:0")
    assert there.device == "gpu:0" and there.shape == x.shape and there.dtype == x.dtype
    again = there.to_device("gpu:0")
    assert again is not there and same_bits(again.numpy(), x.numpy())  # x[key] = value would change only one of them
    assert there.to_device("gpu:1").device == "gpu:1"
    assert same_bits(there.to_device("gpu:1").to_device("cpu").numpy(), x.numpy())
    assert same_bits(there.numpy(), x.numpy()) and not there.numpy().flags.writeable


@on_emulator
def test_values_leave_the_gpu():
    x = gpu([[1.0, 2.0]])
    assert x.tolist() == [[1.0, 2.0]] and float(gpu(3.5)) == 3.5 and bool(gpu(True))
    assert np.array_equal(np.asarray(x), [[1.0, 2.0]]) and "2." in str(x)


# ---- eager operations


@on_emulator
def test_operations_run_where_their_operands_lie():
    x, y = np.random.default_rng(0).normal(size=(2, 4, 5)).astype(np.float32)
    operations = [
        lambda a, b: a + b,
        lambda a, b: 2.0 * a - 1,
        lambda a, b: hf.exp(a) / hf.sum(b, axis=1, keepdims=True),
        lambda a, b: a @ b.T,
        lambda a, b: hf.concat([a, b], axis=1)[:, ::-2],
        lambda a, b: hf.where(a > b, a, 0.0),
        lambda a, b: hf.sort(a, axis=-1),
        lambda a, b: hf.cumulative_sum(a, axis=0),
        lambda a, b: hf.pad(a, ((0, 1), (2, 0)), constant_values=-0.0),
        lambda a, b: hf.clip(a, -0.5, 0.5).astype("int32") // 2,
        lambda a, b: hf.take(a, hf.argmax(b, axis=0), axis=0),
        lambda a, b: hf.sum(a[:0]) + hf.max(a),
        lambda a, b: a == b,
    ]
    for operation in operations:
        there = operation(gpu(x), gpu(y))
        assert there.device == "gpu:0"
        assert same_bits(there.numpy(), operation(hf.asarray(x), hf.asarray(y)).numpy())


@on_emulator
def test_mixed_devices_are_an_error_that_names_both():
    x, y = hf.ones((2, 3)), gpu(np.ones(3, np.float32))
    for operation in (lambda: x + y, lambda: y * x, lambda: x @ y, lambda: hf.concat([x, y[None]], axis=0)):
        with pytest.raises(DeviceError, match=r"cpu.*gpu:0|gpu:0.*cpu"):
            operation()
    with pytest.raises(DeviceError, match=r"f32\[3\] on gpu:0, f32\[3\] on gpu:1"):
        y + y.to_device("gpu:1")


@on_emulator
def test_scalars_follow_the_other_operand():
    x = gpu(np.arange(3, dtype=np.float32))
    assert (x + hf.constant(1.0)).device == (hf.constant(1.0) - x).device == "gpu:0"
    assert (gpu(1.0) + hf.constant(2.0)).device == "gpu:0"
    assert (hf.ones(3) * gpu(2.0)).device == "cpu"
    with hf.device("gpu:0"):
        assert (hf.ones(3).to_device("cpu") * 2.0).device == "cpu"


@on_emulator
def test_run_time_checks_raise():
    with pytest.raises(IndexError, match="take"):
        hf.take(gpu(np.ones(3, np.float32)), gpu(np.array([3])))
    with pytest.raises(ZeroDivisionError):
        gpu(np.array([1])) // gpu(np.array([0]))


@on_emulator
def test_random_numbers_are_the_same_on_every_device():
    hf.random.set_seed(7)
    here = [hf.random.normal((5,)), hf.random.uniform((2, 3))]
    hf.random.set_seed(7)
    with hf.device("gpu:0"):
        there = [hf.random.normal((5,)), hf.random.uniform((2, 3))]
    assert all(t.device == "gpu:0" and same_bits(t.numpy(), h.numpy()) for h, t in zip(here, there))


# ---- functions


@on_emulator
@pytest.mark.parametrize("name", list(PROGRAMS))
def test_functions_run_where_their_arguments_lie(name):
    python, arguments = PROGRAMS[name]
    compiled = hf.function(python)
    here = compiled(*map(hf.asarray, arguments))
    there = compiled(*map(gpu, arguments))
    here, there = (x if isinstance(x, tuple) else (x,) for x in (here, there))
    assert [x.device for x in there] == ["gpu:0"] * len(here)
    assert all(same_bits(t.numpy(), h.numpy()) for t, h in zip(there, here))
    assert len(compiled.signatures()) == 1, "where it runs is no reason to trace again"


@on_emulator
def test_arrays_and_captures_follow_the_arguments():
    table = hf.asarray(np.arange(2000.0, dtype=np.float32))

    @hf.function
    def f(x, y):
        return x + y + table

    x = np.ones(2000, np.float32)
    assert f(gpu(x), x).device == "gpu:0" and f(x, x).device == "cpu"
    with hf.device("gpu:1"):
        assert f(x, x).device == "gpu:1"
        assert f(hf.asarray(x).to_device("gpu:0"), x).device == "gpu:0"
    assert same_bits(f(gpu(x), x).numpy(), f(x, x).numpy())
    with pytest.raises(DeviceError, match=r"\[f\].*cpu.*gpu:0|\[f\].*gpu:0.*cpu"):
        f(hf.asarray(x), gpu(x))


@on_emulator
def test_what_is_copied_to_a_device_is_explained():
    table, steps = hf.asarray(np.arange(2000.0, dtype=np.float32)), hf.Variable(0, name="steps")

    @hf.function
    def f(x, y):
        steps.assign_add(1)
        return x + y + table

    x = np.ones(2000, np.float32)
    for _ in range(2):
        f(gpu(x), x)
    text = str(f.explain(gpu(x), x))
    assert "gpu:0: compiled; what its calls find elsewhere is copied there" in text
    assert "capture0, 8,000 bytes, once" in text and "steps, 8 bytes, at each call" in text
    assert "y, 8,000 bytes, at each call" in text and "x, 8,000" not in text
    assert "devices:" not in str(hf.function(lambda x: x + 1).explain(x))


@on_emulator
def test_functions_without_arguments_run_in_the_scope():
    f = hf.function(lambda: hf.arange(3) * 2)
    assert f().device == "cpu"
    with hf.device("gpu:0"):
        assert f().device == "gpu:0"
    assert f().tolist() == [0, 2, 4]


@on_emulator
def test_variables_are_updated_where_they_lie():
    with hf.device("gpu:0"):
        weights = hf.Variable(np.ones(20, np.float32))
    steps = hf.Variable(0)

    @hf.function
    def step(gradient):
        weights.assign_sub(0.5 * gradient)
        steps.assign_add(1)
        return hf.sum(weights)

    for _ in range(3):
        total = step(gpu(np.ones(20, np.float32)))
    assert (weights.device, steps.device, total.device) == ("gpu:0", "cpu", "gpu:0")
    assert steps.item() == 3 and weights.numpy().tolist() == [-0.5] * 20 and total.item() == -10
    weights.assign_add(1.0)
    assert weights.device == "gpu:0" and weights.numpy()[0] == 0.5
    with pytest.raises(DeviceError, match="gpu:0"):
        step(hf.ones(20))


@on_emulator
def test_an_update_leaves_tensors_alone_that_others_hold():
    with hf.device("gpu:0"):
        v = hf.Variable(np.zeros(20, np.float32))
    held = v.value()

    @hf.function
    def step():
        v.assign_add(1.0)

    step()
    assert held.numpy().sum() == 0 and v.numpy().sum() == 20


@on_emulator
def test_gradients_lie_with_the_variables():
    x = np.random.default_rng(1).normal(size=(6, 4)).astype(np.float32)
    w = np.random.default_rng(2).normal(size=(4, 3)).astype(np.float32)

    def gradient(device, wrap):
        with hf.device(device):
            weights, data = hf.Variable(w), hf.asarray(x)
            loss = wrap(lambda data: hf.sum(hf.tanh(data @ weights) ** 2))
            with hf.GradientTape() as tape:
                value = loss(data)
            found = tape.gradient(value, weights)
        assert found.device == device
        return found.numpy()

    want = gradient("cpu", lambda f: f)
    assert same_bits(gradient("gpu:0", lambda f: f), want)
    assert same_bits(gradient("gpu:0", hf.function), want)


@on_emulator
def test_random_functions_keep_their_stream():
    f = hf.function(lambda x: x + hf.random.normal((20,)))
    hf.random.set_seed(3)
    here = [f(hf.zeros(20)), f(hf.zeros(20))]
    hf.random.set_seed(3)
    there = [f(gpu(np.zeros(20, np.float32))), f(gpu(np.zeros(20, np.float32)))]
    assert all(same_bits(t.numpy(), h.numpy()) for t, h in zip(there, here))


@on_emulator
def test_arrays_of_the_gpu_never_become_numpy_s_unasked():
    with pytest.raises(TypeError):
        np.asarray(Array(np.ones(2), 0))


@on_emulator
def test_scopes_in_functions_say_where_these_run():
    @hf.function
    def f(x):
        with hf.device("gpu:1"):
            return x + hf.arange(float(x.shape[0]))  # the line

    for n in (40, 41, 42):
        assert f(gpu(np.ones(n), 1)).device == "gpu:1"
    line = f.__wrapped__.__code__.co_firstlineno + 3
    for x in (gpu(np.ones(40)), hf.ones(40)):
        for _ in range(2):
            with pytest.raises(DeviceError, match=rf"on {x.device}, f\d\d\[40\] on gpu:1.*test_devices\.py:{line}"):
                f(x)
    assert f(gpu(np.ones(40), 1)).tolist() == [k + 1 for k in range(40)]


@on_emulator
def test_scopes_place_functions_of_nothing_else():
    @hf.function
    def made(n):
        with hf.device("gpu:0"):
            return hf.zeros((3,)) + n

    for n in (1.0, 2.0, 3.5, 4.5):
        assert made(n).device == "gpu:0" and made(n).tolist() == [n] * 3
    moved = hf.function(lambda x: (x * 2).to_device("gpu:1"))
    assert moved(hf.ones(3)).device == "gpu:1"
    assert moved(hf.ones(300)).device == "gpu:1"

    @hf.function
    def two():
        with hf.device("gpu:0"):
            x = hf.ones(3)
        with hf.device("gpu:1"):
            return x + hf.ones(3)

    with pytest.raises(DeviceError, match=r"f32\[3\] on gpu:0, f32\[3\] on gpu:1"):
        two()
    with pytest.raises(DeviceError, match="no gpu:7"):
        hf.function(lambda: hf.ones(3).to_device("gpu:7"))()


@on_emulator
def test_scopes_in_what_a_function_calls_and_in_branches():
    @hf.function
    def inner(x):
        with hf.device("cpu"):
            return x + hf.ones(40)

    concrete = inner.get_concrete_function(hf.TensorSpec([40], hf.float32))
    x = gpu(np.ones(40, np.float32))
    for body in (inner, concrete, lambda x: hf.cond(hf.sum(x) > 0, lambda: inner(x), lambda: x)):
        f = hf.function(lambda x, body=body: body(x) * 2)
        with pytest.raises(DeviceError, match=r"on gpu:0.* on cpu|on cpu, and that branch or loop runs on gpu:0"):
            f(x)
        assert f(hf.ones(40)).tolist() == [4.0] * 40


@on_emulator
def test_random_numbers_in_functions_name_no_device():
    f = hf.function(lambda x: x + hf.random.normal(x.shape))
    for _ in range(3):
        assert f(gpu(np.ones(40))).device == "gpu:0"
