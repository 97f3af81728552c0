"""How programs are launched: one walk in native code, graphs, streams, checks that wait, memory, and errors, on the
stand-in for the driver (``fake_driver``), which runs what is queued as late as it may."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import itertools
import threading
import types

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.compiler.codegen.gpu import cuda_launches as codegen
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.types import Dim, TensorType
from hybridflow.compiler.ops import TABLE
from hybridflow.compiler.pipeline import compile_graph
from hybridflow.compiler.target import CUDA_SM90
from hybridflow.errors import DeviceError, DeviceMemoryError, HybridflowError, IndexRangeError
from hybridflow.runtime import cpu
from hybridflow.runtime.cuda import (
    command_words,
    device,
    driver,
    events,
    executable as cuda,
    launch_plans,
    pending_checks,
    pinned_transfers,
)
from hybridflow.runtime.machine import host_target
from tests.support import fake_driver
from tests.support.bits import same_bits
from tests.support.cuda_emulator import Array, emulated  # noqa: F401
from tests.support.fake_driver import FakeDriver
from tests.support.random_programs import traced


def chain(length, extent=40):
    """Sums along the one axis and then the other: ``length`` kernels, one after another."""
    b = GraphBuilder(TABLE, "chain")
    x = b.parameter(TensorType((extent, extent), dt.float32))
    for k in range(length):
        lines = b.cumulative_sum(x, axis=k % 2)
        x = b.multiply(lines, lines)
    return b.finish([x])


def side_by_side():
    """Kernels of one wave, and one that needs all of them."""
    b = GraphBuilder(TABLE, "side_by_side")
    x = b.parameter(TensorType((33, 40), dt.float32))
    first = b.cumulative_sum(x, axis=0)
    ways = [b.cumulative_sum(b.add(first, x), axis=1), b.cumulative_sum(b.multiply(first, x), axis=0)]
    ways.append(b.cumulative_sum(b.subtract(first, x), axis=1))
    return b.finish([b.cumulative_sum(b.add(b.add(*ways[:2]), ways[2]), axis=0)])


def square(extent=40):
    return np.random.default_rng(extent).normal(size=(extent, extent)).astype(np.float32) / 8


def on_cpu(graph, *arrays):
    return cpu.load(compile_graph(graph, host_target.target())).run([np.array(a) for a in arrays])


def assert_runs(executable, graph, *arrays):
    found = executable.compute([Array(np.array(a), 0) for a in arrays])[0]
    for got, want in zip(found, on_cpu(graph, *arrays), strict=True):
        assert same_bits(got.get(), want)


def queued(emulator, run):
    """What ``run`` calls of the driver."""
    before = len(emulator.driver.calls)
    run()
    return emulator.driver.calls[before:]


# ---- one walk


@pytest.mark.parametrize("count", [25, 26, 60])
def test_more_operands_than_parameters_hold(emulated, count, monkeypatch):  # noqa: F811
    """A launch is told its buffers and six words more, as many by value as a kernel's parameters hold."""
    assert 8 * codegen.BY_VALUE == fake_driver.MOST_PARAMETERS
    for module, name, most in ((codegen, "BY_VALUE", 32), (fake_driver, "MOST_PARAMETERS", 256)):
        monkeypatch.setattr(module, name, most)
    monkeypatch.setattr(codegen, "WORDS_AT_ONCE", 16)
    monkeypatch.setattr(launch_plans, "WORDS_AT_ONCE", 16)
    b = GraphBuilder(TABLE, "many")
    n = Dim("n")
    given = [b.parameter(TensorType((n if k == 3 else 1 + k % 3,), dt.float32)) for k in range(count)]
    graph = b.finish([b.emit(TABLE["concat"], *given, axis=0)])
    program = compile_graph(graph, CUDA_SM90)
    assert len(program.launches) == 1 and program.indirect == (count + 1 + 6 > 32)
    rng = np.random.default_rng(count)
    arrays = [rng.normal(size=5 if k == 3 else 1 + k % 3).astype(np.float32) for k in range(count)]
    assert_runs(cuda.load(program, 0), graph, *arrays)


def test_a_call_of_many_kernels_is_one_graph(emulated):  # noqa: F811
    graph = chain(20)
    program = compile_graph(graph, CUDA_SM90)
    assert program.indirect and len(program.launches) >= 20
    executable = cuda.load(program, 0)
    x = Array(square(), 0)
    first = queued(emulated, lambda: executable.compute([x]))
    assert first.count("cuStreamBeginCapture_v2") == 1
    words = -(-sum(map(program.words_of, program.launches)) // 256)
    for _ in range(2):
        calls = queued(emulated, lambda: executable.compute([x]))
        assert calls == ["cuLaunchKernel"] * words + ["cuGraphLaunch"]
    assert_runs(executable, graph, square())


def test_few_kernels_are_launched_one_by_one(emulated):  # noqa: F811
    graph = chain(2)
    program = compile_graph(graph, CUDA_SM90)
    assert not program.indirect
    executable = cuda.load(program, 0)
    executable.compute([Array(square(), 0)])
    calls = queued(emulated, lambda: executable.compute([Array(square(), 0)]))
    assert calls == ["cuLaunchKernel"] * len(program.launches)
    assert_runs(executable, graph, square())


def test_what_a_call_is_told_is_its_own(emulated):  # noqa: F811
    """Several calls are queued before any of them runs."""
    graph = chain(6)
    executable = cuda.load(compile_graph(graph, CUDA_SM90), 0)
    arrays = [square() * scale for scale in (1, 2, 3)]
    found = [executable.compute([Array(a, 0)])[0][0] for a in arrays]
    assert not emulated.driver.is_idle()
    for got, array in zip(found, arrays):
        assert same_bits(got.get(), on_cpu(graph, array)[0])


def test_no_graph_means_single_launches(emulated):  # noqa: F811
    graph = side_by_side()
    arrays = [square()[:33]]
    for name, status in [
        ("cuStreamBeginCapture_v2", 900),
        ("cuStreamEndCapture", 901),
        ("cuGraphInstantiateWithFlags", 801),
        ("cuStreamCreate", 2),
        ("cuEventRecord", 901),
    ]:
        executable = cuda.load(compile_graph(graph, CUDA_SM90), 0)
        x = Array(arrays[0], 0)
        emulated.driver.fail[name] = status
        executable.compute([x])
        assert name not in emulated.driver.fail
        calls = queued(emulated, lambda e=executable, x=x: e.compute([x]))
        assert "cuGraphLaunch" not in calls and calls.count("cuLaunchKernel") > 3
        assert_runs(executable, graph, *arrays)


def test_each_kind_of_extents_has_a_graph(emulated, monkeypatch):  # noqa: F811
    monkeypatch.setattr(cuda, "MOST_PLANS", 2)
    graph = chain(5, Dim("n"))
    executable = cuda.load(compile_graph(graph, CUDA_SM90), 0)
    for extent in (9, 40, 9, 2, 9, 40):
        assert_runs(executable, graph, square(extent))
    assert len(executable._known) == 2
    gc.collect()
    device.device(0).tidy()
    assert len(emulated.driver._executables) == 2, "graphs go with their plans"


def test_programs_go_with_what_they_have(emulated):  # noqa: F811
    executable = cuda.load(compile_graph(chain(5), CUDA_SM90), 0)
    executable.compute([Array(square(), 0)])
    emulated.driver.synchronize()
    queued_still = cuda.load(compile_graph(chain(5, 9), CUDA_SM90), 0)
    queued_still.compute([Array(square(9), 0)])
    executable.compute([Array(square(), 0)])
    fake = emulated.driver
    del executable, queued_still
    gc.collect()
    assert not fake.is_idle() and fake._modules, "what is queued still needs them"
    device.device(0).tidy()
    gc.collect()
    assert not fake._executables and not fake._graphs and not fake._modules and fake.bytes_in_use == 0
    assert list(fake._streams) == [0]


# ---- streams


def test_kernels_of_a_wave_run_side_by_side(emulated):  # noqa: F811
    graph = side_by_side()
    executable = cuda.load(compile_graph(graph, CUDA_SM90), 0)
    assert_runs(executable, graph, square()[:33])
    (nodes,) = emulated.driver._executables.values()
    assert any(a.after == b.after for a in nodes for b in nodes if a is not b), "nothing runs side by side"


def has_kernels_side_by_side(program):
    """Whether a call is a graph, one of whose waves has several kernels, none of which raises."""
    kernels, raising = {}, set()
    for launch in program.launches:
        kernels.setdefault(launch.wave, set()).add(launch.kernel)
        if launch.raises:
            raising.add(launch.wave)
    return program.indirect and any(len(found) > 1 for wave, found in kernels.items() if wave not in raising)


def random_program_of_waves(seeds):
    """The first of the random programs that has kernels side by side and does not raise, with what the CPU gives."""
    for seed in seeds:
        found = traced(seed)
        if found is None or len(found[0].nodes) <= codegen.DIRECT:
            continue
        graph, arrays = found
        program = compile_graph(graph, CUDA_SM90)
        if has_kernels_side_by_side(program):
            with contextlib.suppress(HybridflowError):
                return program, arrays, on_cpu(graph, *arrays)
    raise AssertionError(f"no program of {seeds} has kernels side by side")


@pytest.mark.parametrize("first", [0, 100, 200])
def test_random_programs_with_kernels_side_by_side(emulated, first):  # noqa: F811
    program, arrays, want = random_program_of_waves(range(first, first + 100))
    executable = cuda.load(program, 0)
    found = executable.compute([Array(np.array(a), 0) for a in arrays])[0]
    assert all(same_bits(got.get(), expected) for got, expected in zip(found, want, strict=True))
    (plan,) = executable._known.values()
    assert plan.is_graph
    pairs = [pair for nodes in emulated.driver._executables.values() for pair in itertools.combinations(nodes, 2)]
    assert any(a.after == b.after for a, b in pairs), "nothing runs side by side"


@pytest.mark.parametrize("left_out", [(command_words.WAIT, 1), (command_words.WAIT, 0)], ids=["fork", "join"])
def test_the_stand_in_notices_waits_that_are_missing(emulated, monkeypatch, left_out):  # noqa: F811
    whole, (kind, others) = launch_plans._side_by_side, left_out

    def without(*given):
        return [s for s in whole(*given) if s[0] != kind or (s[6] != 0) != bool(others)]

    monkeypatch.setattr(launch_plans, "_side_by_side", without)
    graph = side_by_side()
    executable = cuda.load(compile_graph(graph, CUDA_SM90), 0)
    executable.compute([Array(square()[:33], 0)])
    assert emulated.driver.broken and not emulated.driver._executables
    emulated.driver.broken.clear()


def test_another_stream_waits_for_the_words_of_the_last(emulated):  # noqa: F811
    graph = chain(6)
    executable = cuda.load(compile_graph(graph, CUDA_SM90), 0)
    first, second = square(), square() * 3
    early = executable.compute([Array(first, 0)])[0][0]
    with emulated.on_stream() as stream:
        late = executable.compute([Array(second, 0)])[0][0]
        emulated.driver.synchronize(stream)
    assert same_bits(late.get(), on_cpu(graph, second)[0])
    assert same_bits(early.get(), on_cpu(graph, first)[0])


def test_threads_get_the_context_of_the_device(emulated):  # noqa: F811
    graph = chain(5)
    executable = cuda.load(compile_graph(graph, CUDA_SM90), 0)
    x, found = Array(square(), 0), []
    threads = [threading.Thread(target=lambda: found.append(executable.compute([x])[0][0])) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    want = on_cpu(graph, square())[0]
    assert len(found) == 3 and all(same_bits(out.get(), want) for out in found)


# ---- checks that wait


def test_a_call_returns_before_it_has_run(emulated):  # noqa: F811
    f = hf.function(lambda x, i: hf.take(x, i) * 2)
    x, good = hf.arange(5.0).to_device("gpu:0"), hf.asarray([1, 4]).to_device("gpu:0")
    y = f(x, good)
    assert not emulated.driver.is_idle()
    assert y.tolist() == [2, 8]


def test_a_failed_check_is_raised_by_who_waits_with_the_user_s_line(emulated):  # noqa: F811
    @hf.function
    def f(x, i):
        return hf.take(x, i) * 2  # the line

    x, bad = hf.arange(5.0).to_device("gpu:0"), hf.asarray([1, 5]).to_device("gpu:0")
    y = f(x, bad)
    line = f.__wrapped__.__code__.co_firstlineno + 2
    with pytest.raises(IndexRangeError, match=rf"take.*test_cuda_launches\.py:{line}"):
        y.numpy()
    assert f(x, hf.asarray([0, 0]).to_device("gpu:0")).tolist() == [0, 0], "it is told once"
    assert len(device.device(0).ledger) == 0


def test_errors_come_in_the_order_of_calls(emulated):  # noqa: F811
    first = hf.function(lambda x, i: hf.take(x, i))
    second = hf.function(lambda x, i: x // i)
    x, bad = hf.arange(4).to_device("gpu:0"), hf.asarray([0, 1, 2, 9]).to_device("gpu:0")
    first(x, bad)
    y = second(x, bad)
    with pytest.raises(IndexRangeError):
        y.numpy()
    with pytest.raises(ZeroDivisionError):
        y.numpy()


def test_more_checks_than_places(emulated, monkeypatch):  # noqa: F811
    monkeypatch.setattr(pending_checks, "CHECK_SLOTS", 2)
    f = hf.function(lambda x, i: hf.take(x, i))
    x, good = hf.arange(5.0).to_device("gpu:0"), hf.asarray([1, 4]).to_device("gpu:0")
    found = [f(x, good) for _ in range(7)]
    assert all(y.tolist() == [1, 4] for y in found)


def test_state_is_left_alone_by_what_fails(emulated):  # noqa: F811
    with hf.device("gpu:0"):
        v = hf.Variable(np.zeros(40, np.float32))

    @hf.function
    def step(i):
        found = hf.take(v, i)
        v.assign_add(hf.sum(found) + 1.0)
        return found

    good, bad = (hf.asarray(np.array(i)).to_device("gpu:0") for i in ([0, 39], [0, 40]))
    step(good)
    with pytest.raises(IndexRangeError):
        step(bad).numpy()
    assert v.numpy().sum() == 40
    assert step(good).tolist() == [1, 1] and v.numpy().sum() == 40 * 4


# ---- memory


def test_copies_to_the_device_keep_no_host_memory(emulated, monkeypatch):  # noqa: F811
    monkeypatch.setattr(pinned_transfers, "PINNED_CHUNK", 1000)
    array = np.arange(3000.0)
    x = hf.asarray(array).to_device("gpu:0")
    assert not emulated.driver.is_idle()
    array[:] = 0
    gc.collect()
    assert same_bits(x.numpy(), np.arange(3000.0))


def test_too_little_memory_says_what_takes_it(emulated):  # noqa: F811
    f = hf.function(lambda x: hf.sort(hf.exp(x[:, None] + x), axis=1) @ x)
    x = hf.arange(60.0).to_device("gpu:0")
    f(x)
    emulated.driver.synchronize()
    emulated.driver.room = emulated.driver.bytes_in_use + 1000
    with pytest.raises(
        DeviceMemoryError, match=r"gpu:0 has no room for the [\d,]+ bytes .*: memory for values between"
    ):
        f(x)
    with pytest.raises(MemoryError, match="no room"):
        hf.ones((1000, 1000)).to_device("gpu:0")
    emulated.driver.room = 1 << 40
    want = f(hf.arange(60.0))
    assert same_bits(f(x).numpy(), want.numpy())


# ---- what goes wrong


@pytest.mark.parametrize(
    ("status", "message"),
    [(719, "a kernel failed .*start the process again"), (2, "no room"), (46, "in use by another"), (12345, "12345")],
)
def test_errors_of_the_driver(emulated, status, message):  # noqa: F811
    f = hf.function(lambda x: hf.cumulative_sum(x) * 2)
    x = hf.arange(5.0).to_device("gpu:0")
    f(x)
    emulated.driver.fail["cuLaunchKernel"] = status
    with pytest.raises(DeviceError, match=message):
        f(x)
    assert f(x).tolist() == [0, 2, 6, 12, 20]
    y = f(x)
    emulated.driver.fail["cuEventQuery"] = status
    with pytest.raises(DeviceError, match=message):
        y.numpy()
    assert y.tolist() == [0, 2, 6, 12, 20]


def test_a_failed_launch_of_a_checked_program_leaves_no_check(emulated):  # noqa: F811
    f = hf.function(lambda x, i: hf.take(x, i))
    x, good = hf.arange(5.0).to_device("gpu:0"), hf.asarray([1, 4]).to_device("gpu:0")
    f(x, good)
    emulated.driver.fail["cuLaunchKernel"] = 719
    with pytest.raises(DeviceError, match="kernel failed"):
        f(x, good)
    assert f(x, good).tolist() == [1, 4] and len(device.device(0).ledger) == 0


def test_old_drivers_say_so():
    fake = FakeDriver()
    fake.version = 11040
    with pytest.raises(DeviceError, match=r"is for CUDA 11\.4; 11\.8 or later is needed"):
        driver.Driver(fake.library)
    lacking = types.SimpleNamespace(**{n: f for n, f in vars(fake.library).items() if n != "cuGraphLaunch"})
    with pytest.raises(DeviceError, match="too old: it has no cuGraphLaunch"):
        driver.Driver(lacking)


def test_errors_of_cupy(emulated, monkeypatch):  # noqa: F811
    class CUDARuntimeError(RuntimeError):
        pass

    def lost(*given):
        raise CUDARuntimeError("cudaErrorDevicesUnavailable: all CUDA-capable devices are busy or unavailable")

    f, x = hf.function(lambda x: x + 1), hf.arange(5.0).to_device("gpu:0")
    f(x)
    with monkeypatch.context() as patch:
        patch.setattr(emulated, "empty", lost)
        with pytest.raises(DeviceError, match=r"gpu:0 cannot be used: cudaErrorDevicesUnavailable.*started again"):
            f(x)
        patch.setattr(emulated.cuda.runtime, "memGetInfo", lost)
        with pytest.raises(DeviceError, match="gpu:1 cannot be used"):
            hf.zeros(5).to_device("gpu:1")
    assert f(x).tolist() == [1, 2, 3, 4, 5]


def test_no_driver_says_so(monkeypatch):
    def missing(name):
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(ctypes, "CDLL", missing)
    with pytest.raises(DeviceError, match="no NVIDIA driver here"):
        driver.driver.__wrapped__()


def test_interrupts_end_the_wait_and_nothing_else(emulated, monkeypatch):  # noqa: F811
    f = hf.function(lambda x, i: hf.take(x, i) * 2)
    x, good = hf.arange(5.0).to_device("gpu:0"), hf.asarray([1, 4]).to_device("gpu:0")
    y = f(x, good)
    emulated.driver.held.add(0)

    def interrupted(seconds):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(events.time, "sleep", interrupted)
        for _ in range(2):
            with pytest.raises(KeyboardInterrupt):
                y.numpy()
    emulated.driver.held.clear()
    gc.collect()
    assert y.tolist() == [2, 8] and f(x, good).tolist() == [2, 8]
