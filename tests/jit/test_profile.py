"""f.profile: the kernels of a call, each with what it took; the call itself changes nothing."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.compiler.codegen.control import driver
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.types import TensorType
from hybridflow.compiler.ops import TABLE
from hybridflow.compiler.pipeline import compile_graph
from hybridflow.errors import ArgumentError, ArgumentTypeError, DeviceError, IndexRangeError, TraceError
from hybridflow.jit.profiling import Profile
from hybridflow.runtime import cpu, host_interface
from hybridflow.runtime.machine import host_target
from hybridflow.runtime.profiling_host import ProfilingHost
from hybridflow.tracing.compiled_trace import CompiledTrace
from tests.support.bits import same_bits
from tests.support.cutting_host import outcome
from tests.support.device_programs import PROGRAMS, traced


def timed_outcome(program, arrays):
    """As ``outcome``, of a program that is timed."""
    timing = ProfilingHost(len(program.tasks))
    timing.begin()
    with host_interface.use(timing.struct):
        found = outcome(program, arrays)
    return found, timing.seconds()


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("name", list(PROGRAMS))
def test_timed_programs_have_the_bits_of_others(name, shared):
    graph, arrays = traced(name), [np.asarray(a) for a in PROGRAMS[name][1]]
    expected = outcome(compile_graph(graph, host_target.target()), arrays)
    found, seconds = timed_outcome(compile_graph(graph, host_target.target(), timed=True, shared=shared), arrays)
    assert found[0] == expected[0] and len(found) == len(expected)
    assert all(same_bits(a, b) for a, b in zip(found[1:], expected[1:]))
    assert (seconds >= 0).all() and (expected[0] or not len(seconds) or seconds.any())


def chain(count):
    """Kernels one after another, and among them pairs that share a wave; one of them has several phases."""
    b = GraphBuilder(TABLE, "chain")
    x = b.parameter(TensorType((40,), dt.float32))
    results = [x]
    for _ in range(count):
        results.append(b.cumulative_sum(results[-1], axis=0))
        results.append(b.cumulative_sum(b.negative(results[-2]), axis=0))
    return b.finish(results[1:])


@pytest.mark.parametrize("count", [2, driver.FEW])
def test_each_task_is_that_of_its_kernel(count):
    """After the task of a kernel, and not before, its result is there."""
    graph = chain(count)
    program = compile_graph(graph, host_target.target(), timed=True)
    assert sorted(set(program.tasks)) == list(range(len(program.kernels))) and len(program.kernels) == 2 * count
    plain = compile_graph(graph, host_target.target())
    assert plain.tasks is None and plain.kernels == program.kernels
    x = np.random.default_rng(0).normal(size=40).astype(np.float32)
    expected = cpu.load(plain).run([x])
    outputs = [np.full(40, np.nan, np.float32) for _ in expected]
    done: list[list[int]] = []

    def run_task(host, task, args, units, grain, least, work):
        host_interface.TASK(task)(args, 0, units, 0)
        done.append([k for k, (a, b) in enumerate(zip(outputs, expected)) if same_bits(a, b)])

    runner = host_interface.Host(workers=1)
    runner.parallel_for = host_interface.TYPES["parallel_for"](run_task)
    executable = cpu.load(program)
    pointers = (ctypes.c_void_p * (1 + len(outputs)))(*(a.ctypes.data for a in (x, *outputs)))
    arena = np.empty(program.memory() + 64, np.uint8)
    start = -arena.ctypes.data % 64
    assert executable._call(pointers, None, arena.ctypes.data + start, ctypes.addressof(runner)) == 0
    assert len(done) == len(program.tasks)
    new = [set(after) - set(before) for before, after in zip([[], *done], done)]
    last = {kernel: position for position, kernel in enumerate(program.tasks)}
    for kernel, position in last.items():
        assert len(new[position]) == 1, program.kernels[kernel]
    assert set().union(*new) == set(range(len(expected)))


@hf.function
def two_kernels(x, y):
    return hf.sort(hf.exp(x)), x @ y


def test_rows_are_the_kernels():
    x = hf.random.Generator(0).normal((64, 64))
    found = two_kernels.profile(x, x, runs=4)
    assert isinstance(found, Profile) and found.runs == 4 and found.total > 0
    kernels = {row["kernel"]: row for row in two_kernels.kernels(x, x)}
    assert {row["kernel"] for row in found.kernels} == set(kernels) and len(kernels) > 1
    for row in found.kernels:
        known = kernels[row["kernel"]]
        assert all(row[name] == known[name] for name in ("lines", "bytes", "flops", "ops", "wave"))
        assert row["µs"] > 0 and row["±%"] >= 0
        assert row["GB/s"] == pytest.approx(row["bytes"] / row["µs"] * 1e-3)
    assert sum(row["share %"] for row in found.kernels) == pytest.approx(100)
    times = [row["µs"] for row in found.kernels]
    assert times == sorted(times, reverse=True)


def test_kernels_run_on_the_threads_that_a_call_has():
    """Work that a loop shares out itself is part of that loop, and of no other kernel."""
    w = hf.random.Generator(0).normal((256, 256)) / 20
    steps = hf.random.Generator(1).normal((6, 256, 256))

    @hf.function
    def walk(steps, w):
        last = hf.scan(lambda h, x: hf.tanh(h @ w + x), steps, hf.zeros((256, 256)))
        return hf.sum(last, axis=0)

    before = hf.config.get_num_threads()
    try:
        for threads in (1, 2, 3):
            hf.config.set_num_threads(threads)
            expected = walk(steps, w)
            found = walk.profile(steps, w, runs=3)
            assert found.kernels[0]["kernel"].startswith("scan")
            assert found.kernels[0]["share %"] > 50 and all(row["µs"] > 0 for row in found.kernels)
            assert same_bits(walk(steps, w).numpy(), expected.numpy())
    finally:
        hf.config.set_num_threads(before)


def test_what_it_prints():
    x = hf.ones((64, 64))
    found = two_kernels.profile(x, x, runs=1)
    first, *table = repr(found).splitlines()
    assert first.startswith("two_kernels: ") and first.endswith("medians of 1 runs, code of level 0")
    assert max(map(len, repr(found).splitlines())) <= 80
    assert table[0].split() == ["kernel", "lines", "µs", "±%", "share", "%", "GB/s", "GFLOP/s"]
    assert "test_profile.py:" in found.wide() and "flops" in found.wide()
    assert "no kernels" in repr(hf.function(lambda x: x).profile(x))


def test_how_many_runs():
    found = hf.function(lambda x: x + 1).profile(hf.ones(3))
    assert 5 <= found.runs <= 1000


def test_variables_keep_their_values():
    v = hf.Variable(hf.ones(300))
    generator = hf.random.Generator(3)

    @hf.function
    def step(x):
        v.assign(v * 2 + x + generator.normal((300,)))
        return hf.sum(v)

    twin = hf.random.Generator(3)
    before = v.value()
    step.profile(hf.ones(300), runs=7)
    assert same_bits(v.numpy(), np.ones(300, np.float32)) and same_bits(before.numpy(), np.ones(300, np.float32))
    step(hf.ones(300))
    once = np.asarray(hf.ones(300) * 2 + hf.ones(300) + twin.normal((300,)))
    assert same_bits(v.numpy(), once)
    step.profile(hf.ones(300), runs=2)  # now the variable owns its memory, and may be written in place
    assert same_bits(v.numpy(), once)


@dataclass
class Batch:
    x: hf.Tensor
    more: list[hf.Tensor]


class Model:
    def __init__(self):
        self.w = hf.Variable(hf.ones(3))

    @hf.function
    def step(self, batch, *, scale=1.0):
        self.w.assign_add(batch.x * scale)
        return batch.more[0] @ self.w


def test_methods_nested_arguments_and_keywords():
    model = Model()
    found = model.step.profile(Batch(hf.ones(3), [np.ones((5, 3), np.float32)]), scale=2.0, runs=2)
    assert len(found.kernels) and "batch.x: f32[3]" in found.signature
    assert model.w.numpy().tolist() == [1, 1, 1]


def test_open_extents():
    @hf.function(input_signature=[hf.TensorSpec((None, 3))])
    def f(x):
        return hf.cumulative_sum(hf.sum(x, axis=1))

    for rows in (5, 1, 0):
        assert len(f.profile(hf.ones((rows, 3)), runs=2).kernels) == (rows > 0) * len(f.kernels(hf.ones((rows, 3))))
    with pytest.raises(TypeError):
        f.profile()


def test_programs_that_call_python():
    found = hf.function(lambda x: hf.linalg.inv(x) @ x).profile(hf.eye(4), runs=2)
    assert [row["kernel"] for row in found.kernels if "inv" in row["kernel"]]


def test_errors(monkeypatch):
    f = hf.function(lambda x, i: hf.take(x, i, axis=0))
    x = hf.ones(3)
    with pytest.raises(IndexRangeError, match=r"test_profile\.py"):
        f.profile(x, hf.asarray([7]))
    for runs in (0, -1, "many", 2.5):
        with pytest.raises(ArgumentError, match="1 or more"):
            f.profile(x, hf.asarray([1]), runs=runs)
    with pytest.raises(ArgumentTypeError, match="TensorSpec"):
        f.profile(hf.TensorSpec((3,)), hf.TensorSpec((1,), "int64"))
    with pytest.raises(TraceError, match="outside"):
        hf.function(lambda x: [f.profile(x, x), x][1])(x)
    monkeypatch.setattr(CompiledTrace, "device_for", lambda *_: "cuda:0")
    with pytest.raises(DeviceError, match="on the CPU alone"):
        f.profile(x, hf.asarray([1]))


def test_a_check_that_fails_changes_nothing():
    v = hf.Variable(hf.ones(3))

    @hf.function
    def f(i):
        v.assign(v + 1)
        return hf.take(v, i, axis=0)

    with pytest.raises(IndexRangeError):
        f.profile(hf.asarray([5]))
    assert v.numpy().tolist() == [1, 1, 1]
    assert len(f.profile(hf.asarray([2]), runs=2).kernels)
