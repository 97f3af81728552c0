"""Sorts by teams of GPU threads: the bits of the CPU at the edges of every level, whichever thread goes first."""

from __future__ import annotations

import numpy as np
import pytest

from hybridflow.compiler.codegen.gpu import group_sort, radix_sort
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.types import Dim, TensorType
from hybridflow.compiler.loops.tuning import ALL_PAIRS
from hybridflow.compiler.ops import TABLE
from hybridflow.compiler.pipeline import compile_graph
from hybridflow.compiler.program import value_at
from hybridflow.compiler.target import CUDA_SM90
from hybridflow.runtime.cuda import launch_plans
from tests.gpu.test_cuda_teams import check
from tests.support.cuda_emulator import emulated  # noqa: F401

pytestmark = pytest.mark.sample(4)  # long cases

WARP, BLOCK = 32, 256
SMALL = 256  # elements of a block, where tests want many


def sort_of(shape, dtype=dt.float32, axis=-1, name="sort", **attrs):
    """Of what is computed on the way, where it can be: nothing lies in memory before."""
    b = GraphBuilder(TABLE, name)
    x = b.parameter(TensorType(shape, dtype))
    given = b.negative(x) if dt.is_signed(dtype) or dt.is_float(dtype) else x
    return b.finish([b.emit(TABLE[name], given, axis=axis % len(shape), **attrs)])


def values(shape, dtype=np.float32, seed=0):
    """Many equal ones, NaNs, infinities and zeros of both signs among them."""
    rng, dtype = np.random.default_rng(seed), np.dtype(dtype)
    if dtype == np.bool_:
        return [rng.random(shape) < 0.5]
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        x = rng.integers(info.min, info.max, shape, dtype, endpoint=True)
        few = rng.integers(0, 5, shape).astype(dtype)
        return [np.where(rng.random(shape) < 0.5, x, few)]
    x = np.round(rng.normal(size=shape) * 50) / 8
    for value in (np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 0.0, -0.0):
        x[rng.random(shape) < 0.03] = value
    return [x.astype(dtype)]


def passes(dtype=dt.float32):
    """The teams of the launches of a sort by radix."""
    one = [BLOCK, 512, BLOCK]
    return one * dtype.itemsize


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(radix_sort, "MOVED_BYTES", 16 * SMALL)  # of elements or positions of 8 bytes; more of less
    monkeypatch.setattr(group_sort, "NETWORK_BYTES", 6 * 128)
    monkeypatch.setattr(group_sort, "MIN_NETWORK", 64)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("name", ["sort", "argsort"])
@pytest.mark.parametrize(("rows", "run"), [(3, 1), (5, 2), (3, 31), (2, 32), (2, 33), (3, ALL_PAIRS)])
def test_short_lines_by_warps(emulated, rows, run, name, descending):  # noqa: F811
    graph = sort_of((rows, run), name=name, descending=descending)
    check(emulated, graph, values((rows, run)), [WARP])


@pytest.mark.parametrize("name", ["sort", "argsort"])
@pytest.mark.parametrize(("run", "team"), [(ALL_PAIRS + 1, 64), (128, 64), (500, 128), (4096, 512)])
def test_lines_in_memory_of_a_block(emulated, run, team, name):  # noqa: F811
    check(emulated, sort_of((2, run), name=name), values((2, run)), [team], ("forward", "shuffled"))


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("name", ["sort", "argsort"])
@pytest.mark.sample(2)
def test_long_lines_by_radix(emulated, small_blocks, name, descending):  # noqa: F811
    for shape in ((1500,), (3, 700), (2, 2 * SMALL)):
        graph = sort_of(shape, name=name, descending=descending)
        check(emulated, graph, values(shape), passes())


def test_blocks_as_large_as_they_are(emulated):  # noqa: F811
    shape = (8192 + 4096 + 77,)
    check(emulated, sort_of(shape), values(shape), passes(), ("shuffled",))
    check(emulated, sort_of(shape, name="argsort"), values(shape), passes(), ("reversed",))


@pytest.mark.parametrize("name", ["sort", "argsort"])
@pytest.mark.parametrize("dtype", dt.REAL, ids=str)
def test_each_dtype(emulated, small_blocks, dtype, name):  # noqa: F811
    for shape, teams in (((2, 40), [WARP]), ((1, 130), None), ((1, 800), passes(dtype))):
        graph = sort_of(shape, dtype, name=name, descending=shape[1] == 130)
        program = compile_graph(graph, CUDA_SM90)
        found = [launch.group_size for launch in program.launches]
        assert teams is None or found == teams
        check(emulated, graph, values(shape, dtype), found, ("shuffled",))


@pytest.mark.parametrize("name", ["sort", "argsort"])
def test_passes_in_which_nothing_moves(emulated, small_blocks, name):  # noqa: F811
    """Some bytes are the same in all keys of a line, and others in those of another line."""
    x = np.random.default_rng(1).integers(0, 256, (4, 600))
    x = np.stack([x[0], x[1] << 8, (x[2] << 24) | 7, np.full(600, 5)]).astype(np.int64)
    check(emulated, sort_of(x.shape, dt.int64, name=name), [x], passes(dt.int64), ("forward", "shuffled"))


@pytest.mark.parametrize("name", ["sort", "argsort"])
@pytest.mark.parametrize(("run", "team"), [(40, [WARP]), (100, [64]), (700, None)])
def test_lines_that_do_not_lie_side_by_side(emulated, small_blocks, run, team, name):  # noqa: F811
    for shape, axis in (((run, 3), 0), ((2, run, 3), 1)):
        graph = sort_of(shape, axis=axis, name=name)
        check(emulated, graph, values(shape), team or passes(), ("reversed",))


@pytest.mark.parametrize("dtype", [dt.float32, dt.int64, dt.bfloat16], ids=str)
@pytest.mark.parametrize("count", [1, 4])
@pytest.mark.sample(3)
def test_the_first_few_of_long_lines(emulated, small_blocks, count, dtype):  # noqa: F811
    for n in (129, 64 * 17, 64 * 40 + 1):
        graph = sort_of((2, n), dtype, name="first_positions", count=count, descending=True)
        teams = [launch.group_size for launch in compile_graph(graph, CUDA_SM90).launches]
        assert set(teams) == {64}
        check(emulated, graph, values((2, n), dtype), teams, ("forward", "shuffled"))


def test_more_than_a_few_of_them(emulated, small_blocks):  # noqa: F811
    graph = sort_of((2, 700), name="first_positions", count=300, descending=False)
    check(emulated, graph, values((2, 700)), passes(), ("shuffled",))


def test_fewer_that_are_left_than_are_wanted(emulated, small_blocks):  # noqa: F811
    """The last piece has two elements, and others are all NaN."""
    x = values((1, 64 * 3 + 2))[0]
    x[:, 64:] = np.nan
    for descending in (False, True):
        graph = sort_of(x.shape, name="first_positions", count=4, descending=descending)
        check(emulated, graph, [x], [64, 64], ("forward", "reversed"))


@pytest.mark.parametrize("name", ["sort", "argsort"])
@pytest.mark.parametrize(("rows", "run"), [(0, 3), (3, 0), (2, 1), (1, 128), (2, 129), (3, 1000)])
def test_symbolic(emulated, small_blocks, rows, run, name):  # noqa: F811
    graph = sort_of((Dim("m"), Dim("n")), name=name)
    check(emulated, graph, values((rows, run)), [64, *passes()], ("reversed",))


@pytest.mark.parametrize("name", ["sort", "argsort"])
def test_memory_of_open_extents(name):
    """Lines that a block sorts take none; of others elements lie in two places, and each block has counters."""
    program = compile_graph(sort_of((Dim("m"), Dim("n")), name=name), CUDA_SM90)
    given = 4 * 1_000_000  # what is computed on the way
    for rows, run, most in ((100_000, 10, 0), (250, 4000, 0), (1, 1_000_000, 32), (200, 5000, 40)):
        arena = value_at(program.arena_bytes, {"m": rows, "n": run})
        assert arena <= given + most * rows * run, (rows, run)


def test_teams_take_several_units(emulated, small_blocks, monkeypatch):  # noqa: F811
    monkeypatch.setattr(launch_plans, "MOST_THREADS", 64)
    for run, teams in ((50, [WARP]), (120, [64]), (900, passes())):
        for name in ("sort", "argsort"):
            check(emulated, sort_of((5, run), name=name), values((5, run)), teams, ("forward", "shuffled"))
