"""Programs on a host that cuts and shuffles their units give the bits and the errors of those that run in place."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest

from hybridflow.compiler.codegen.control import driver
from hybridflow.compiler.codegen.control.dispatch import KernelCall
from hybridflow.compiler.codegen.core.emitter import Emitter
from hybridflow.compiler.codegen.core.kernel_builder import KernelBuilder
from hybridflow.compiler.codegen.core.kernel_dedup import BufferPart
from hybridflow.compiler.codegen.core.llvm_module import LLVMModule
from hybridflow.compiler.codegen.core.phases import EmittedKernel, Phase, kernel_parameters
from hybridflow.compiler.codegen.gpu import cuda_launches as cuda_code
from hybridflow.compiler.interpreter import interpret
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.types import Dim, TensorType
from hybridflow.compiler.loops.buffer_assignment import plan
from hybridflow.compiler.ops import TABLE
from hybridflow.compiler.pipeline import compile_graph, partition
from hybridflow.compiler.program import HOST, DimSource, Program, Slot, value_at
from hybridflow.compiler.target import AVX512, CUDA_SM90, Target
from hybridflow.runtime import host_interface
from hybridflow.runtime.cuda import executable as cuda
from hybridflow.runtime.machine import host_target
from tests.support.cuda_emulator import Array, emulated  # noqa: F401
from tests.support.cutting_host import check_cuts, cutting, outcome
from tests.support.device_programs import PROGRAMS, graph_of, largest_sample, traced, typical_dtypes


@pytest.mark.parametrize("name", [name for name, op in TABLE.items() if op.dtypes])
def test_ops(name):
    op = TABLE[name]
    for dtype in typical_dtypes(op):
        arrays, attrs = largest_sample(op, dtype)
        check_cuts(compile_graph(graph_of(op, arrays, attrs), host_target.target()), arrays)


@pytest.mark.parametrize("name", list(PROGRAMS))
def test_programs(name):
    check_cuts(compile_graph(traced(name), host_target.target()), [np.asarray(a) for a in PROGRAMS[name][1]])


@pytest.fixture(params=["calls", "tables"])
def way(request, monkeypatch):
    """Programs whose drivers are sequences of calls, and loops over tables."""
    monkeypatch.setattr(driver, "FEW", 1000 if request.param == "calls" else -1)
    return request.param


@pytest.mark.parametrize("name", list(PROGRAMS))
def test_both_drivers_run_programs(name, way):
    assert_interpreted(traced(name), [np.asarray(a) for a in PROGRAMS[name][1]])


def assert_interpreted(graph, arrays):
    """Each output, in place and cut, is near that of the interpreter."""
    expected = interpret(graph, arrays)[0]
    raised, *found = check_cuts(compile_graph(graph, host_target.target()), arrays)
    assert not raised
    for value, result in zip(expected, found):
        np.testing.assert_allclose(np.float64(result), np.float64(value), rtol=2e-2, atol=2e-2)


def side_by_side(extent):
    """Small kernels of which several may run in one wave, some of which raise, and some of which are read in others."""
    b = GraphBuilder(TABLE, "side_by_side")
    table = b.parameter(TensorType((extent,), dt.float32))
    index = b.parameter(TensorType((9,), dt.int64))
    rows = [b.cumulative_sum(b.multiply(table, b.full(float(k), table.type)), axis=0) for k in range(6)]
    taken = [b.take(row, index, axis=0) for row in rows]
    sums = [b.cumulative_sum(b.add(a, c), axis=0) for a, c in itertools.pairwise(taken)]
    return b.finish([*sums, *rows[::2]])


@pytest.mark.parametrize("extent", [40, Dim("n")], ids=["static", "symbolic"])
def test_waves(extent, way):
    graph = side_by_side(extent)
    program = compile_graph(graph, host_target.target())
    table = np.random.default_rng(1).normal(size=40).astype(np.float32)
    good = [table, np.arange(9) * 4]
    assert_interpreted(graph, good)
    with cutting(3) as cutter:
        outcome(program, good)
    assert len(cutter.loops) < len(program.kernels)
    waves = len({kernel.wave for kernel in program.kernels})
    phases = 1 if extent == 40 else 3  # of a scan whose extent is open
    # Without tables a kernel that is alone in its wave, and cannot be cut, does not need the host.
    assert waves - 1 <= len(cutter.loops) <= phases * waves
    for bad in (40, -41, 10**12):
        raised = check_cuts(program, [table, np.where(np.arange(9) == 7, bad, 3)], range(4))[0]
        assert raised.startswith("IndexRangeError")


def test_pieces_of_a_wave_pay_for_their_beginning(way):
    """Derivatives by two filters, each of whose pieces copies what windows see: a worker has one of each."""
    b = GraphBuilder(TABLE, "filters")
    x = b.parameter(TensorType((4, 32, 32, 1, 32), dt.float32))
    cotangents = [b.parameter(x.type) for _ in range(2)]
    same = {"size": (3, 3), "low": (1, 1), "high": (1, 1)}
    program = compile_graph(b.finish([b.convolve_filter(x, g, **same) for g in cotangents]), host_target.target())
    assert len({kernel.wave for kernel in program.kernels}) == 1
    arrays = [np.random.default_rng(k).normal(size=x.shape).astype(np.float32) for k in range(3)]
    check_cuts(program, arrays, range(2))
    with cutting(5, workers=3) as cutter:
        outcome(program, arrays)
    ((pieces, _),) = cutter.loops
    assert pieces == 2 * 3


@pytest.mark.parametrize(("rows", "columns"), [(3, 5), (1, 700), (640, 1), (0, 4), (4, 0), (70, 130)])
def test_symbolic_extents(rows, columns):
    b = GraphBuilder(TABLE, "symbolic")
    x = b.parameter(TensorType((Dim("m"), Dim("n")), dt.float32))
    row, column = b.sum(x, axes=(1,)), b.sum(x, axes=(0,))
    spread = b.broadcast(row, shape=x.shape, axes=(0,))
    order, scanned = b.argsort(x, axis=1, descending=False), b.cumulative_sum(x, axis=0)
    results = [
        row,
        column,
        b.subtract(x, spread),
        b.transpose(x, perm=(1, 0)),
        order,
        scanned,
        b.matmul(x, x, transpose_b=True),
    ]
    x = np.random.default_rng(3).normal(size=(rows, columns)).astype(np.float32)
    check_cuts(compile_graph(b.finish(results), host_target.target()), [x])


def test_large_kernels_are_cut():
    b = GraphBuilder(TABLE, "large")
    x = b.parameter(TensorType((300, 400), dt.float32))
    program = compile_graph(
        b.finish([b.exp(b.sum(b.multiply(x, x), axes=(1,))), b.matmul(x, x, transpose_b=True)]), host_target.target()
    )
    arrays = [np.random.default_rng(5).normal(size=(300, 400)).astype(np.float32)]
    check_cuts(program, arrays, range(6))
    with cutting(9) as cutter:
        outcome(program, arrays)
    assert any(pieces > 5 for _, pieces in cutter.loops)


def test_the_first_check_in_program_order_wins():
    # Both gathers fail, in many units; the one that comes first in the program is reported, and state stays.
    b = GraphBuilder(TABLE, "failing")
    table = b.parameter(TensorType((5,), dt.float32))
    first, second = (b.parameter(TensorType((200,), dt.int64)) for _ in range(2))
    late = b.take(table, second, axis=0)
    early = b.take(b.exp(table), first, axis=0)
    program = compile_graph(b.finish([early, b.sum(late, axes=(0,))]), host_target.target())
    arrays = [np.ones(5, np.float32), np.full(200, 7), np.full(200, 9)]
    for bad in ((7, 9), (1, 9), (7, 1)):
        arrays[1:] = [np.where(np.arange(200) % 3 == 0, index, 0) for index in bad]
        raised = check_cuts(program, arrays, range(5))[0]
        assert raised.startswith("IndexRangeError")


# ---- a kernel of two phases, written by hand: sums of blocks into shared memory, then the sum of those

BLOCK = 8


def _two_phases(module: LLVMModule) -> EmittedKernel:
    e = Emitter(module.target)
    c = KernelBuilder(e, ["n"])
    with c.loop("%begin", "%end") as block:
        start = c.mul(block.index, BLOCK)
        mine = c.at("%scratch", 0, 8)  # by way of scratch, which no other worker may touch
        e.store(e.const(0.0, dt.float64), mine)
        with c.loop(start, c.min(c.add(start, BLOCK), c.extent(Dim("n")))) as i:
            e.store(e.add(e.load(mine, dt.float64), e.load(c.at("%a0", i.index, 8), dt.float64)), mine)
        e.store(e.load(mine, dt.float64), c.at("%shared", block.index, 8))
    e.line("ret void")
    first = module.function(e, module.fresh("k"), kernel_parameters(2), linkage="internal")
    e = Emitter(module.target)
    c = KernelBuilder(e, ["n"])
    with c.loop(0, c.div(c.add(c.extent(Dim("n")), BLOCK - 1), BLOCK), 1, [e.const(0.0, dt.float64)]) as block:
        block.next = [e.add(block.carried[0], e.load(c.at("%shared", block.index, 8), dt.float64))]
    e.store(block.carried[0], "%a1")
    e.line("ret void")
    second = module.function(e, module.fresh("k"), kernel_parameters(2), linkage="internal")
    # Units of the first: more than there are blocks, which find nothing to do.
    return EmittedKernel((Phase(first, (Dim("n"),)), Phase(second, ())), 8, Dim("n") * 8)


def _block_sums(target: Target) -> Program:
    b = GraphBuilder(TABLE, "block_sums")
    x = b.parameter(TensorType((Dim("n"),), dt.float64))
    graph = b.finish([b.sum(x, axes=(0,))])
    module, found = LLVMModule(target), plan(graph, partition(graph, target))
    calls = [KernelCall(_two_phases(module), [BufferPart(x, 0), BufferPart(graph.outputs[0], 0)], None, 0, 0, 0)]
    launches, sharing = {}, None
    if target.kind == "cuda":
        memory, launches = cuda_code.write_launches(module, graph, found, ["n"], calls)
    else:
        memory, sharing = driver.write(module, "main", graph, found, ["n"], calls)
    slots = (Slot((Dim("n"),), "f64"),), (Slot((), "f64"),)
    dims = (DimSource("n", 0, 0),)
    text = module.render()
    more = {"scratch_bytes": memory.scratch, "sharing": module.addition(sharing) if sharing else "", **launches}
    return Program("s", target, text, "main", *slots, dims, memory.arena, **more)


def _sum_of_blocks(x: np.ndarray) -> float:
    total = 0.0
    for start in range(0, x.size, BLOCK):
        total += float(np.cumsum(x[start : start + BLOCK])[-1])  # one after the other
    return total


@pytest.mark.parametrize("n", [0, 1, 8, 1001])
def test_phases_share_memory(n):
    x = np.random.default_rng(n).normal(size=n)
    program = _block_sums(host_target.target())
    assert value_at(program.arena_bytes, {"n": n}) >= 8 * n and value_at(program.scratch_bytes, {"n": n}) >= 8
    assert program.memory(3) == program.arena_bytes + 3 * program.scratch_bytes
    assert check_cuts(program, [x], range(8))[1] == _sum_of_blocks(x)


@pytest.mark.usefixtures("emulated")
def test_each_phase_is_a_launch():
    x = np.random.default_rng(2).normal(size=100)
    program = _block_sums(CUDA_SM90)
    assert [value_at(launch.units, {"n": 100}) for launch in program.launches] == [100, 1]
    (out,) = cuda.load(program, 0).run([Array(x, 0)])
    assert out.get() == _sum_of_blocks(x)


def test_the_host_of_ctypes_is_that_of_programs():
    struct = host_interface.Host(workers=5)
    assert [name for name, _ in struct._fields_] == list(HOST)
    assert [getattr(type(struct), name).offset for name in HOST] == [8 * k for k in range(len(HOST))]
    assert not struct.parallel_for and not struct.callback and struct.workers == 5


def test_what_only_hosts_run_is_not_in_the_text_for_a_single_thread():
    b = GraphBuilder(TABLE, "alone")
    x = b.parameter(TensorType((100_000,), dt.float32))
    program = compile_graph(b.finish([b.cumulative_sum(x, axis=0), b.argsort(x, axis=0, descending=False)]), AVX512)
    for name in ("totals", "carries", "rest", "keys", "count", "place", "move", "out"):
        assert f"_{name}(" not in program.text
        assert re.search(rf"^define internal void @k\d+_{name}\(", program.sharing, re.MULTILINE)


def test_a_function_for_hosts_that_the_module_needs_too_is_in_it():
    """Of functions of one text there is one, which both texts can call."""
    module = LLVMModule(AVX512)

    def write(name, lines, for_host=False):
        e = Emitter(AVX512, 1)
        for line in (*lines, "ret void"):
            e.line(line)
        return module.function(e, name, "", linkage="internal", for_host=for_host)

    only = write("only", ["call void @llvm.donothing()"], for_host=True)
    shared = write("first", [], for_host=True)
    assert write("second", []) == shared == write("third", [], for_host=True)
    text = module.render()
    assert f"@{shared}()" in text and f"@{only}()" not in text

    def write_entry():
        write("entry", [f"call void @{shared}()", f"call void @{only}()"])

    addition = module.addition(write_entry)
    assert f"define internal void @{shared}(" not in addition
    assert f"define internal void @{only}(" in addition
