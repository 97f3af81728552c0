"""CUDA programs on an emulated GPU: threads, scratch, state and checks give what the CPU gives, bit for bit."""

from __future__ import annotations

import re
from unittest import mock

import numpy as np
import pytest

from hybridflow.compiler import pipeline
from hybridflow.compiler.codegen import lowerings
from hybridflow.compiler.codegen.ordering import argsort
from hybridflow.compiler.codegen.ordering.ordering_schedule import SortWay
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.graph import Literal, Role
from hybridflow.compiler.ir.types import Dim, TensorType
from hybridflow.compiler.loops import schedule
from hybridflow.compiler.ops import TABLE
from hybridflow.compiler.pipeline import compile_graph
from hybridflow.compiler.target import CUDA_SM90
from hybridflow.errors import ArgumentError, DTypeError, HybridflowError, IndexRangeError
from hybridflow.runtime import cpu
from hybridflow.runtime.cuda import executable as cuda, launch_plans
from hybridflow.runtime.machine import host_target
from tests.support.bits import same_bits
from tests.support.cuda_emulator import Array, emulated  # noqa: F401
from tests.support.device_programs import PROGRAMS, graph_of, largest_sample, traced, typical_dtypes

pytestmark = pytest.mark.usefixtures("emulated")


def on_gpu(program, arrays):
    """Run on the emulated GPU; updated inputs are written back to the arrays."""
    given = [Array(np.array(a), 0) for a in arrays]
    outputs = cuda.load(program, 0).run(given)
    for array, slot, after in zip(arrays, program.inputs, given):
        if slot.updated:
            array[...] = after.get()
    return [out.get() for out in outputs]


def assert_same(got, want):
    assert len(got) == len(want)
    assert all(same_bits(g, w) for g, w in zip(got, want)), (got, want)


@pytest.mark.parametrize("name", [name for name, op in TABLE.items() if op.dtypes])
def test_ops_have_the_bits_of_the_cpu(name):
    op = TABLE[name]
    for dtype in typical_dtypes(op):
        arrays, attrs = largest_sample(op, dtype)
        graph = graph_of(op, arrays, attrs)
        try:
            want = cpu.load(compile_graph(graph, host_target.target())).run(arrays)
        except HybridflowError as error:
            with pytest.raises(type(error), match=re.escape(str(error).partition("  (")[0])):
                on_gpu(compile_graph(graph, CUDA_SM90), arrays)
            continue
        assert_same(on_gpu(compile_graph(graph, CUDA_SM90), arrays), want)


@pytest.mark.parametrize("name", list(PROGRAMS))
def test_programs_have_the_bits_of_the_cpu(name):
    graph, arrays = traced(name), [np.asarray(a) for a in PROGRAMS[name][1]]
    want = cpu.load(compile_graph(graph, host_target.target())).run(arrays)
    assert_same(on_gpu(compile_graph(graph, CUDA_SM90), arrays), want)


@pytest.mark.parametrize(("rows", "columns"), [(3, 5), (1, 200), (64, 1), (0, 4), (4, 0)])
def test_symbolic_extents(rows, columns):
    b = GraphBuilder(TABLE, "symbolic")
    x = b.parameter(TensorType((Dim("m"), Dim("n")), dt.float32))
    row, column = b.sum(x, axes=(1,)), b.sum(x, axes=(0,))
    spread = b.broadcast(row, shape=x.shape, axes=(0,))
    graph = b.finish([row, column, b.subtract(x, spread), b.transpose(x, perm=(1, 0))])
    arrays = [np.random.default_rng(3).normal(size=(rows, columns)).astype(np.float32)]
    want = cpu.load(compile_graph(graph, host_target.target())).run(arrays)
    assert_same(on_gpu(compile_graph(graph, CUDA_SM90), arrays), want)


def test_few_threads_share_many_units_and_own_their_scratch(monkeypatch):
    arrays = [np.random.default_rng(4).normal(size=(37, 100)).astype(np.float32)]
    graph = graph_of(TABLE["argsort"], arrays, {"axis": 1})
    # A thread for each line, as in branches and loops.
    monkeypatch.setitem(lowerings.SORTS, SortWay.GROUPS, argsort.emit_argsort)
    program = compile_graph(graph, CUDA_SM90)
    (launch,) = program.launches
    assert launch.units == 37 and launch.scratch_bytes > 0
    want = cpu.load(compile_graph(graph, host_target.target())).run(arrays)
    for scratch_bytes, most in ((1, 1 << 20), (5 * launch.scratch_bytes, 1 << 20), (1 << 28, 3)):
        monkeypatch.setattr(launch_plans, "SCRATCH_BYTES", scratch_bytes)
        monkeypatch.setattr(launch_plans, "MOST_THREADS", most)
        assert_same(on_gpu(program, arrays), want)


def state_graph():
    """counter' = counter + 1 and table' = table with a row of it added to another; a swap of two more states."""
    b = GraphBuilder(TABLE, "state")
    counter, table, left, right = (
        b.parameter(TensorType(shape, dt.float32), role=Role.STATE) for shape in ((), (4, 3), (5,), (5,))
    )
    index = b.parameter(TensorType((2,), dt.int64))
    rows = b.take(table, index, axis=0)
    update = b.scatter_add(table, index, rows, axis=0)
    outputs = [rows, counter, b.add(left, right)]
    return b.finish(
        outputs,
        {0: b.add(counter, b.constant(value=Literal.of(np.array(1, np.float32)))), 1: update, 2: right, 3: left},
    )


def state_arrays(index):
    rng = np.random.default_rng(5)
    states = [rng.normal(size=shape).astype(np.float32) for shape in ((), (4, 3), (5,), (5,))]
    return [np.array(s) for s in states] + [np.array(index)]


def test_state_is_updated_in_place():
    graph = state_graph()
    ours, theirs = state_arrays([3, -4]), state_arrays([3, -4])
    want = cpu.load(compile_graph(graph, host_target.target())).run(theirs)
    assert_same(on_gpu(compile_graph(graph, CUDA_SM90), ours), want)
    assert_same(ours, theirs)


@pytest.mark.parametrize("columns", [1, 5, 70, 1000, 9000])
def test_rows_take_the_memory_of_what_is_folded_in_the_same_pass(columns):
    b = GraphBuilder(TABLE, "weighted")
    x, y = (b.parameter(TensorType((3, columns), dt.float32)) for _ in range(2))
    ordered = b.sort(x, axis=1)
    weights = b.exp(b.tanh(y))  # which read nothing of it, and cost too much to be made twice
    total = b.sum(b.multiply(ordered, weights), axes=(1,))
    graph = b.finish([total, b.sort(weights, axis=1)])
    arrays = list(np.random.default_rng(columns).normal(size=(2, 3, columns)).astype(np.float32))
    taken = []

    def overwritten(*args):
        taken.extend(schedule.overwritten_inputs(*args))
        return set(taken)

    with mock.patch.object(pipeline, "overwritten_inputs", overwritten):
        program = compile_graph(graph, CUDA_SM90)
    assert [n.op.name for n in taken if not n.is_parameter] == ["sort"]
    assert_same(on_gpu(program, arrays), cpu.load(compile_graph(graph, host_target.target())).run(arrays))


def test_a_failed_check_leaves_state_as_it_was():
    program = compile_graph(state_graph(), CUDA_SM90)
    arrays = state_arrays([3, 4])
    before = [a.copy() for a in arrays]
    with pytest.raises(IndexRangeError, match="take"):
        on_gpu(program, arrays)
    assert_same(arrays[:4], before[:4])


def test_the_status_passes_launches_without_units():
    b = GraphBuilder(TABLE, "chain")
    x = b.parameter(TensorType((Dim("n"),), dt.float32))
    table, index = b.parameter(TensorType((4,), dt.float32)), b.parameter(TensorType((1,), dt.int64))
    rows = b.parameter(TensorType((Dim("n"),), dt.int64))
    state = b.parameter(TensorType((4,), dt.float32), role=Role.STATE)
    first = b.take(table, index, axis=0)
    second = b.take(x, rows, axis=0)
    graph = b.finish([first, second], {4: b.add(state, table)})
    program = compile_graph(graph, CUDA_SM90)
    for n in (0, 2):
        arrays = [
            np.ones(n, np.float32),
            np.ones(4, np.float32),
            np.array([7]),
            np.zeros(n, np.int64),
            np.ones(4, np.float32),
        ]
        with pytest.raises(IndexRangeError):
            on_gpu(program, arrays)


def test_arguments_are_checked():
    executable = cuda.load(compile_graph(traced("softmax"), CUDA_SM90), 0)
    with pytest.raises(DTypeError, match="float64"):
        executable.run([Array(np.ones((7, 83)), 0)])
    with pytest.raises(ArgumentError, match="1 arrays expected, 0 given"):
        executable.run([])
    turned = np.ones((83, 7), np.float32).T
    (out,) = executable.run([Array(turned, 0)])
    assert same_bits(out.get(), executable.run([Array(np.ascontiguousarray(turned), 0)])[0].get())


def test_overlapping_state_is_copied_or_refused():
    program = compile_graph(state_graph(), CUDA_SM90)
    counter, table, left, right, index = (Array(a, 0) for a in state_arrays([0, 1]))
    with pytest.raises(ArgumentError, match="both updated"):
        cuda.load(program, 0).run([counter, table, left, left, index])
    with pytest.raises(ArgumentError, match="contiguous"):
        cuda.load(program, 0).run([counter, Array(np.ones((3, 4), np.float32).T, 0), left, right, index])
