"""Scatters by all threads of a GPU: the bits of the CPU, whichever thread goes first."""

from __future__ import annotations

import numpy as np
import pytest

from hybridflow.compiler.codegen.gpu import group_scatter, radix_sort
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.graph import Role
from hybridflow.compiler.ir.types import Dim, TensorType
from hybridflow.compiler.ops import TABLE
from hybridflow.compiler.pipeline import compile_graph
from hybridflow.compiler.program import value_at
from hybridflow.compiler.target import CUDA_SM90
from hybridflow.errors import IndexRangeError
from hybridflow.runtime import cpu
from hybridflow.runtime.cuda import executable as cuda
from hybridflow.runtime.machine import host_target
from tests.support.bits import same_bits
from tests.support.cuda_blocks import ORDERS
from tests.support.cuda_emulator import Array, emulated  # noqa: F401

pytestmark = pytest.mark.sample(4)  # long cases

CHECK, COPY = 1, 256
RADIX = [256, 512, 256]
MORE = [256, 256, 512]  # of each pass but the first, before the last launch


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(radix_sort, "MOVED_BYTES", 8 * 256)


def scatter_of(name, shape, indices, dtype=dt.float32, axis=0, state=False):
    b = GraphBuilder(TABLE, name)
    x = b.parameter(TensorType(shape, dtype), **({"role": Role.STATE} if state else {}))
    i = b.parameter(TensorType(indices, dt.int64))
    updates = indices if name.endswith("axis") else (*shape[:axis], *indices, *shape[axis + 1 :])
    u = b.parameter(TensorType(updates, dtype))
    given = u if not (dt.is_signed(dtype) or dt.is_float(dtype)) else b.negative(u)
    made = b.emit(TABLE[name], x, i, given, axis=axis, **({"known": False} if name == "scatter_set" else {}))
    return b.finish([], {0: made}) if state else b.finish([made])


def arrays_of(shape, indices, updates, dtype=np.float32, n=None, seed=0):
    """Indices of both signs, few of which are hit often."""
    rng = np.random.default_rng(seed)
    n = n or shape[0]
    often = rng.integers(0, n, indices) % max(n // 3, 1)
    chosen = np.where(rng.random(indices) < 0.5, often, rng.integers(-n, n, indices))
    made = [rng.normal(size=s) * 40 for s in (shape, updates)]
    if np.dtype(dtype).kind == "u":
        made = [np.abs(a) for a in made]
    return [made[0].astype(dtype), chosen.astype(np.int64), made[1].astype(dtype)]


def check(emulated, graph, arrays, teams, orders=tuple(ORDERS)):  # noqa: F811
    program = compile_graph(graph, CUDA_SM90)
    assert [launch.group_size for launch in program.launches] == teams
    theirs = [np.array(a) for a in arrays]
    want = cpu.load(compile_graph(graph, host_target.target())).run(theirs)
    executable = cuda.load(program, 0)
    for order in orders:
        emulated.order = order
        given = [Array(np.array(a), 0) for a in arrays]
        got = [g.get() for g in executable.run(given)]
        got += [given[k].get() for k in sorted(graph.updates)]
        expected = [*want, *(theirs[k] for k in sorted(graph.updates))]
        assert all(same_bits(g, w) for g, w in zip(got, expected, strict=True)), order


def test_floats_are_added_in_order(emulated, small_blocks):  # noqa: F811
    teams = [CHECK, COPY, *RADIX, 1, 1]
    for shape, count in (((5,), 700), ((200,), 300), ((7, 3), 90), ((1, 5), 40)):
        graph = scatter_of("scatter_add", shape, (count,))
        check(emulated, graph, arrays_of(shape, (count,), (count, *shape[1:])), teams)


def test_places_of_two_bytes(emulated, small_blocks):  # noqa: F811
    shape, count = (3000, 2), 600
    graph = scatter_of("scatter_add", shape, (count,))
    teams = [CHECK, COPY, *RADIX[:2], *MORE, 256, 1, 1]
    check(emulated, graph, arrays_of(shape, (count,), (count, 2)), teams)


@pytest.mark.parametrize("dtype", [d for d in dt.REAL if d != dt.bool_], ids=str)
def test_each_dtype(emulated, small_blocks, dtype):  # noqa: F811
    teams = [CHECK, COPY, *RADIX, 1, 1] if dt.is_float(dtype) else [CHECK, COPY, 1]
    arrays = arrays_of((6, 2), (100,), (100, 2), dtype)
    check(emulated, scatter_of("scatter_add", (6, 2), (100,), dtype), arrays, teams, ("shuffled",))
    teams = [CHECK, COPY, 1, 1, 1]
    check(emulated, scatter_of("scatter_set", (6, 2), (100,), dtype), arrays, teams, ("forward", "shuffled"))


@pytest.mark.parametrize("name", ["scatter_add", "scatter_set"])
def test_an_axis_between_others(emulated, name):  # noqa: F811
    shape, indices = (3, 9, 2), (4, 10)
    teams = [CHECK, COPY, *(RADIX if name == "scatter_add" else [1]), 1, 1]
    arrays = arrays_of(shape, indices, (3, 4, 10, 2), n=9)
    check(emulated, scatter_of(name, shape, indices, axis=1), arrays, teams)


@pytest.mark.parametrize("dtype", [dt.float32, dt.bfloat16, dt.int32], ids=str)
@pytest.mark.parametrize(("shape", "count", "axis"), [((40,), 500, 0), ((3, 50), 60, 1), ((30, 4), 300, 0)])
def test_an_index_for_each_update(emulated, small_blocks, shape, count, axis, dtype):  # noqa: F811
    indices = (*shape[:axis], count, *shape[axis + 1 :])
    teams = [CHECK, COPY, *RADIX, 1, 1] if dt.is_float(dtype) else [CHECK, COPY, 1]
    graph = scatter_of("scatter_add_along_axis", shape, indices, dtype, axis)
    check(emulated, graph, arrays_of(shape, indices, indices, dtype, shape[axis]), teams, ("forward", "shuffled"))


@pytest.mark.parametrize("name", ["scatter_add", "scatter_set", "scatter_add_along_axis"])
def test_few_updates_take_a_thread_for_a_column(emulated, name):  # noqa: F811
    graph = scatter_of(name, (50, 6), (8, 6) if name.endswith("axis") else (8,))
    arrays = arrays_of((50, 6), (8, 6) if name.endswith("axis") else (8,), (8, 6))
    check(emulated, graph, arrays, [CHECK, COPY, 1])


def test_many_columns_have_a_thread_each(emulated, monkeypatch):  # noqa: F811
    monkeypatch.setattr(group_scatter, "ENOUGH_COLUMNS", 12)
    graph = scatter_of("scatter_add", (4, 12), (30,))
    check(emulated, graph, arrays_of((4, 12), (30,), (30, 12)), [CHECK, COPY, 1])


@pytest.mark.parametrize("name", ["scatter_add", "scatter_set"])
def test_state_is_scattered_into_where_it_lies(emulated, small_blocks, name):  # noqa: F811
    graph = scatter_of(name, (20, 3), (90,), state=True)
    teams = [CHECK, COPY, *(RADIX if name == "scatter_add" else [1]), 1, 1]
    check(emulated, graph, arrays_of((20, 3), (90,), (90, 3)), teams)


@pytest.mark.parametrize("name", ["scatter_add", "scatter_set", "scatter_add_along_axis"])
@pytest.mark.parametrize(("n", "count", "columns"), [(1, 20, 2), (30, 0, 3), (30, 5, 3), (700, 300, 1), (2, 9, 0)])
def test_symbolic(emulated, small_blocks, name, n, count, columns):  # noqa: F811
    sizes = Dim("n"), Dim("c"), Dim("k")
    paired = name.endswith("axis")
    graph = scatter_of(name, (sizes[0], sizes[2]), (sizes[1], sizes[2]) if paired else (sizes[1],))
    program = compile_graph(graph, CUDA_SM90)
    teams = [launch.group_size for launch in program.launches]
    indices = (count, columns) if paired else (count,)
    check(emulated, graph, arrays_of((n, columns), indices, (count, columns)), teams, ("shuffled",))


@pytest.mark.parametrize("name", ["scatter_add", "scatter_set", "scatter_add_along_axis"])
def test_memory_of_open_extents(name):
    """Where threads walk columns there is none."""
    paired, (n, c, k) = name.endswith("axis"), map(Dim, "nck")
    program = compile_graph(scatter_of(name, (n, k), (c, k) if paired else (c,)), CUDA_SM90)
    for rows, count, columns in ((1000, 8, 500), (2, 50, group_scatter.ENOUGH_COLUMNS), (5000, 40_000, 1)):
        arena = value_at(program.arena_bytes, {"n": rows, "c": count, "k": columns})
        given = 4 * count * columns + 64  # what is computed on the way
        assert arena <= given + (60 * count + 8 * rows if count * columns == 40_000 else 0)


@pytest.mark.parametrize("name", ["scatter_add", "scatter_set"])
@pytest.mark.parametrize("dtype", [dt.float32, dt.int64], ids=str)
def test_an_index_out_of_range_changes_nothing(emulated, name, dtype):  # noqa: F811
    graph = scatter_of(name, (20, 3), (90,), dtype, state=True)
    arrays = arrays_of((20, 3), (90,), (90, 3), dtype)
    executable = cuda.load(compile_graph(graph, CUDA_SM90), 0)
    for wrong in (20, -21, 1 << 40):
        arrays[1][50] = wrong
        given = [Array(np.array(a), 0) for a in arrays]
        with pytest.raises(IndexRangeError, match=name):
            executable.run(given)
            given[0].get()
        assert same_bits(given[0].get(), arrays[0])
