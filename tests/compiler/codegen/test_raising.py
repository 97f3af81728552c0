"""Programs that raise: the compiled program raises what running its nodes one by one raises, whatever was fused and
however few of the elements are read, and reads nothing that is not there.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.compiler import target
from hybridflow.compiler.codegen.control import driver
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.graph import Graph, Node
from hybridflow.compiler.ir.types import Dim, TensorType
from hybridflow.compiler.ops import TABLE
from hybridflow.compiler.pipeline import compile_graph
from hybridflow.errors import DivisionError, HybridflowError, IndexRangeError
from hybridflow.runtime import cpu
from hybridflow.runtime.cuda import executable as cuda, ptx
from hybridflow.runtime.machine import host_target
from hybridflow.runtime.memory import memory_pool
from tests.compiler.codegen.test_kernels import same_bits
from tests.compiler.loops.test_fusion import build, rows, run_one_by_one
from tests.gpu.test_cuda_emission import assert_assembles
from tests.support.cuda_emulator import Array, emulated  # noqa: F401
from tests.support.cutting_host import check_cuts

Program = Callable[[GraphBuilder, Node], "Node | tuple[Node, ...]"]


def cut(b: GraphBuilder, x: Node, start: int, stop: int) -> Node:
    rest = x.shape[1:]
    return b.slice(x, start=(start, *(0 for _ in rest)), stop=(stop, *rest), step=(1,) * x.type.ndim)


def taken(b: GraphBuilder, i: Node) -> Node:
    """Elements of a table of five; the last index, 9, is bad."""
    return b.take(b.iota(shape=(5,), axis=0, dtype=dt.int64), i, axis=0)


def twice(b: GraphBuilder, x: Node) -> Node:
    return b.add(x, x)


INDICES = np.array([0, 1, 4, -5, 9])
READERS: dict[str, Program] = {
    "a slice": lambda b, i: cut(b, taken(b, i), 0, 2),
    "a slice of a sum": lambda b, i: cut(b, twice(b, taken(b, i)), 1, 3),
    "nothing": lambda b, i: cut(b, taken(b, i), 0, 0),
    "nothing of nothing": lambda b, i: b.broadcast(cut(b, taken(b, i), 0, 2), shape=(2, 0), axes=(0,)),
    "an empty broadcast": lambda b, i: b.broadcast(taken(b, i), shape=(5, 0), axes=(0,)),
    "a sum of nothing": lambda b, i: b.sum(b.broadcast(taken(b, i), shape=(5, 0), axes=(0,)), axes=(0, 1)),
    "a join of parts": lambda b, i: b.concat(cut(b, taken(b, i), 0, 2), i, cut(b, twice(b, taken(b, i)), 1, 2), axis=0),
    "another gather": lambda b, i: b.take(taken(b, i), b.iota(shape=(2,), axis=0, dtype=dt.int64), axis=0),
    "a sum of a slice": lambda b, i: b.sum(cut(b, taken(b, i), 0, 2), axes=(0,)),
    "a choice": lambda b, i: b.where(b.full(True, TensorType((5,), dt.bool_)), i, taken(b, i)),
    "a reverse": lambda b, i: cut(b, b.reverse(taken(b, i), axes=(0,)), 1, 5),
    "a slice and all": lambda b, i: (cut(b, taken(b, i), 0, 2), twice(b, taken(b, i))),
    "two slices": lambda b, i: (cut(b, taken(b, i), 0, 2), cut(b, taken(b, i), 2, 4)),
    "a product without elements": lambda b, i: b.matmul(
        b.broadcast(b.convert(taken(b, i), dtype=dt.float32), shape=(2, 5), axes=(1,)),
        b.full(1.0, TensorType((5, 0), dt.float32)),
    ),
    "a scan of a part": lambda b, i: b.cumulative_sum(cut(b, taken(b, i), 0, 3), axis=0),
    "a padded part": lambda b, i: b.pad(cut(b, taken(b, i), 0, 3), low=(1,), high=(0,), interior=(1,), value=0),
    "nobody": lambda b, i: (i, taken(b, i))[0],
    "a zero": lambda b, i: b.multiply(taken(b, i), b.full(0, i.type)),
}


@pytest.mark.parametrize("name", READERS)
def test_a_bad_index_raises_whoever_reads_what_it_takes(name: str) -> None:
    graph = build(READERS[name], [INDICES])
    executable = cpu.load(compile_graph(graph, host_target.target()))
    with pytest.raises(IndexRangeError):
        run_one_by_one(graph, [INDICES])
    with pytest.raises(IndexRangeError):
        executable.run([INDICES])
    good = np.clip(INDICES, -5, 4)
    for got, want in zip(executable.run([good]), run_one_by_one(graph, [good]), strict=True):
        same_bits(got, np.asarray(want))


ROWS: dict[str, Program] = {
    "of an empty row": lambda b, x: b.multiply(rows(b, by_row(b, x), x), x),
    "of a sum of an empty row": lambda b, x: b.sum(b.multiply(rows(b, by_row(b, x), x), x), axes=(1,)),
    "and nothing else": lambda b, x: b.sum(rows(b, by_row(b, x), x), axes=(0, 1)),
}


def by_row(b: GraphBuilder, x: Node) -> Node:
    """One divided by the sum of each row."""
    sums = b.sum(x, axes=(1,))
    return b.floor_divide(b.full(1, sums.type), sums)


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("shape", [(3, 0), (0, 3), (3, 2)], ids=str)
def test_a_statistic_raises_even_where_its_rows_are_empty(name: str, shape: tuple[int, int]) -> None:
    array = np.zeros(shape, np.int64)
    graph = build(ROWS[name], [array])
    executable = cpu.load(compile_graph(graph, host_target.target()))
    if shape[0]:
        with pytest.raises(DivisionError):
            run_one_by_one(graph, [array])
        with pytest.raises(DivisionError):
            executable.run([array])
    else:
        (got,), (want,) = executable.run([array]), run_one_by_one(graph, [array])
        same_bits(got, np.asarray(want))


# ---- axes without elements


def unreadable(shape: tuple[int, ...]) -> np.ndarray:
    """An empty array whose address may not be read."""
    page = mmap.mmap(-1, mmap.PAGESIZE, prot=0)
    return np.frombuffer(page, np.float32, 0).reshape(shape)


N, M = Dim("n"), Dim("m")
LOOKUPS: dict[str, tuple[tuple[int | Dim, ...], tuple[int, ...], Program]] = {
    "rows": ((N, 3), (0, 3), lambda b, x, i: b.take(x, i, axis=0)),
    "columns": ((M, N), (2, 0), lambda b, x, i: b.take(x, i, axis=1)),
    "reversed": ((N, M), (0, 3), lambda b, x, i: b.take(b.reverse(x, axes=(0,)), i, axis=0)),
    "turned": ((N, M), (0, 3), lambda b, x, i: b.take(turned(b, x), i, axis=0)),
    "turned columns": ((M, N), (3, 0), lambda b, x, i: b.take(turned(b, x), i, axis=1)),
    "elements": ((N,), (0,), lambda b, x, i: b.take(x, b.reshape(b.add(i, i), shape=(19, 1)), axis=0)),
    "static": ((0, 3), (0, 3), lambda b, x, i: b.tanh(b.take(x, i, axis=0))),
    "sums": ((0, 3), (0, 3), lambda b, x, i: b.sum(b.take(x, i, axis=0), axes=(0,))),
}


def turned(b: GraphBuilder, x: Node) -> Node:
    return b.reshape(b.transpose(x, perm=(1, 0)), shape=x.shape)


def lookup(name: str) -> tuple[Graph, list[np.ndarray]]:
    shape, size, program = LOOKUPS[name]
    b = GraphBuilder(TABLE, "lookup")
    x, i = b.parameter(TensorType(shape, dt.float32)), b.parameter(TensorType((19,), dt.int64))
    return b.finish([program(b, x, i)]), [unreadable(size), np.arange(-9, 10)]


@pytest.mark.parametrize("name", LOOKUPS)
@pytest.mark.parametrize("isa", ["sse2", "avx2", "avx512"])
def test_an_index_into_an_axis_without_elements_raises_and_reads_nothing(name: str, isa: str) -> None:
    if not host_target.can_run(target.NAMED[isa]):
        pytest.skip("not on this machine")
    graph, arrays = lookup(name)
    executable = cpu.load(compile_graph(graph, target.NAMED[isa]))
    with pytest.raises(IndexRangeError):
        executable.run(arrays)


@pytest.mark.usefixtures("emulated")
@pytest.mark.parametrize("name", LOOKUPS)
def test_no_thread_of_a_gpu_reads_from_an_axis_without_elements(name: str) -> None:
    graph, arrays = lookup(name)
    program = compile_graph(graph, target.CUDA_SM90)
    with pytest.raises(IndexRangeError):
        cuda.load(program, 0).run([Array(array, 0) for array in arrays])
    assert_assembles(ptx.assemble(program))


def test_without_elements_to_read_no_index_is_looked_at() -> None:
    bad = np.array([7])
    for name, arrays in [
        ("take", (np.zeros((3, 0)), bad)),
        ("scatter_add", (np.zeros((3, 0)), bad, np.zeros((1, 0)))),
        ("scatter_add", (np.zeros((0, 0)), bad, np.zeros((1, 0)))),
    ]:
        graph = build(lambda b, *xs, name=name: b.emit(TABLE[name], *xs, axis=0), list(arrays))
        (got,) = cpu.load(compile_graph(graph, host_target.target())).run(list(arrays))
        (eager,) = run_one_by_one(graph, arrays)
        reference = TABLE[name].reference(*arrays, axis=0)
        same_bits(got, np.asarray(eager))
        same_bits(got, reference)


def added(b: GraphBuilder, x: Node, i: Node) -> Node:
    return b.scatter_add(x, i, i, axis=0)


def summed(b: GraphBuilder, x: Node, i: Node) -> Node:
    inner = GraphBuilder(TABLE, "inner")
    body = inner.finish([inner.cumulative_sum(inner.parameter(x.type), axis=0)])
    return b.results(b.call(b.cumulative_sum(x, axis=0), body=body))[0]


@pytest.mark.parametrize("few", [0, 1000], ids=["tables", "calls"])
@pytest.mark.parametrize("made", [added, summed])
def test_a_later_failure_keeps_no_value_from_a_check_before_it(made, few, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last look-up is the only one that fails, and its kernel is one of the first to run.  What is made of zeros
    until then is what the look-up before it reads."""
    b = GraphBuilder(TABLE, "later")
    x, table, i = (b.parameter(TensorType((n,), dt.int64)) for n in (1000, 3, 4))
    b.location = "user.py:1"
    good = b.take(table, cut(b, made(b, x, i), 500, 503), axis=0)
    b.location = "user.py:2"
    graph = b.finish([good, b.take(table, i, axis=0)])
    empty = memory_pool.empty
    monkeypatch.setattr(
        memory_pool, "empty", lambda *given: (found := empty(*given), found.view(np.uint8).fill(0x77))[0]
    )
    monkeypatch.setattr(driver, "FEW", few)
    arrays = [np.zeros(1000, np.int64), np.ones(3, np.int64), np.array([0, 1, 2, 3])]
    raised, *_ = check_cuts(compile_graph(graph, host_target.target()), arrays)
    assert raised.startswith("IndexRangeError") and raised.endswith("user.py:2)")


@pytest.mark.parametrize("shape", [(0,), (0, 3)], ids=str)
def test_an_update_of_an_axis_without_elements_raises(shape: tuple[int, ...]) -> None:
    arrays = [np.zeros(shape, np.float32), np.array([0]), np.ones((1, *shape[1:]), np.float32)]
    graph = build(lambda b, x, i, u: b.scatter_add(x, i, u, axis=0), arrays)
    expected = "which has no elements. Expected no index at all"
    with pytest.raises(IndexRangeError, match=expected):
        cpu.load(compile_graph(graph, host_target.target())).run(arrays)
    with pytest.raises(IndexRangeError, match=expected):
        hf.scatter_add(*map(hf.asarray, arrays), axis=0)
    with pytest.raises(HybridflowError, match=expected):
        TABLE["scatter_add"].reference(*arrays, axis=0)
