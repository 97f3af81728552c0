"""Folds by warps and blocks of a GPU: the bits of the CPU, whichever thread goes first, at the edges of every level."""

from __future__ import annotations

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.types import Dim, TensorType
from hybridflow.compiler.loops import schedule
from hybridflow.compiler.ops import TABLE
from hybridflow.compiler.ops.evaluation_order import CHUNK, SUPERCHUNK
from hybridflow.compiler.pipeline import compile_graph
from hybridflow.compiler.target import CUDA_SM80, CUDA_SM90
from hybridflow.runtime import cpu
from hybridflow.runtime.cuda import executable as cuda, launch_plans
from hybridflow.runtime.machine import host_target
from tests.support.bits import same_bits
from tests.support.cuda_blocks import ORDERS
from tests.support.cuda_emulator import Array, emulated  # noqa: F401

FOLDS = ("sum", "prod", "max", "argmin")


def folds_of(shape, axes, dtype=dt.float32, ops=FOLDS):
    b = GraphBuilder(TABLE, "folds")
    x = b.parameter(TensorType(shape, dtype))
    made = [b.emit(TABLE[op], x, axes=axes) for op in ops]
    return b.finish(made)


def values(shape, dtype=np.float32):
    x = np.random.default_rng(sum(shape)).normal(size=shape)
    return [np.round(3 * x).astype(dtype)] if np.dtype(dtype).kind in "iu" else [(1 + x / 4).astype(dtype)]


def check(emulated, graph, arrays, teams, orders=tuple(ORDERS), target=CUDA_SM90):  # noqa: F811
    """That a program has the launches of those teams, and the bits of the CPU."""
    program = compile_graph(graph, target)
    assert [launch.group_size for launch in program.launches] == teams
    want = cpu.load(compile_graph(graph, host_target.target())).run(arrays)
    executable = cuda.load(program, 0)
    for order in orders:
        emulated.order = order
        got = executable.run([Array(np.array(a), 0) for a in arrays])
        assert all(same_bits(g.get(), w) for g, w in zip(got, want, strict=True)), order


@pytest.mark.parametrize(("rows", "run"), [(0, 50), (1, 16), (5, 31), (3, 64), (2, 65), (3, 1000), (2, CHUNK)])
def test_rows_by_warps(emulated, rows, run):  # noqa: F811
    check(emulated, folds_of((rows, run), (1,)), values((rows, run)), [32] if rows else [], ("forward", "shuffled"))


def test_short_rows_take_a_thread_each(emulated):  # noqa: F811
    check(emulated, folds_of((9, 15), (1,)), values((9, 15)), [1], ("forward",))


@pytest.mark.parametrize(("run", "team"), [(CHUNK + 1, 64), (3 * CHUNK - 7, 128), (9 * CHUNK, 512)])
def test_long_rows_by_blocks(emulated, run, team):  # noqa: F811
    check(emulated, folds_of((2, run), (1,), ops=("sum", "argmin")), values((2, run)), [team])


@pytest.mark.parametrize("dtype", [dt.float64, dt.float16, dt.bfloat16, dt.int8, dt.int64])
def test_states_of_each_width(emulated, dtype):  # noqa: F811
    for run in (100, CHUNK + 70):
        team = 32 if run == 100 else 64
        check(emulated, folds_of((2, run), (1,), dtype, ("sum", "max")), values((2, run), dtype), [team], ("forward",))


@pytest.mark.parametrize("run", [17 * CHUNK + 3, SUPERCHUNK + CHUNK + 1])
def test_few_long_rows_by_pieces(emulated, run):  # noqa: F811
    check(emulated, folds_of((2, run), (1,), ops=("sum", "argmin")), values((2, run)), [32, 512])


def test_pieces_of_a_superchunk(emulated, monkeypatch):  # noqa: F811
    monkeypatch.setattr(schedule, "ENOUGH_GROUPS", 2)
    run = SUPERCHUNK + 5
    check(emulated, folds_of((1, run), (1,), ops=("sum",)), values((1, run)), [512, 1], ("forward", "shuffled"))


def test_more_superchunks_than_a_team_has_warps(emulated, monkeypatch):  # noqa: F811
    monkeypatch.setattr(schedule, "MAX_WARPS", 2)
    run = 4 * SUPERCHUNK + 5
    check(emulated, folds_of((run,), (0,), ops=("sum",)), values((run,)), [32, 64])


def test_teams_take_several_units(emulated, monkeypatch):  # noqa: F811
    monkeypatch.setattr(launch_plans, "MOST_THREADS", 128)
    for run, team in ((100, 32), (CHUNK + 9, 64)):
        check(emulated, folds_of((9, run), (1,), ops=("sum", "argmin")), values((9, run)), [team])


@pytest.mark.parametrize(("rows", "run"), [(3, 0), (0, 3), (1, 1), (2, 70), (2, CHUNK + 1)])
def test_symbolic_rows(emulated, rows, run):  # noqa: F811
    graph = folds_of((Dim("m"), Dim("n")), (1,), ops=("sum", "max"))
    check(emulated, graph, values((rows, run)), [32], ("forward",))


@pytest.mark.parametrize("run", [0, 1, CHUNK, SUPERCHUNK + 1])
def test_a_symbolic_vector(emulated, run):  # noqa: F811
    check(emulated, folds_of((Dim("n"),), (0,), ops=("sum",)), values((run,)), [32, 512], ("forward", "reversed"))


def softmax(x, w):
    return hf.nn.softmax(x * 2.0, axis=-1) + w


def norm(x, w):
    mean = hf.mean(x, axis=-1, keepdims=True)
    spread = hf.mean(hf.square(x - mean), axis=-1, keepdims=True)
    return (x - mean) * hf.rsqrt(spread + 1e-5) * w, spread


def around_a_mean(x, w):
    return x - hf.mean(x), hf.sum(x * w, axis=(0, 2)) if x.ndim == 3 else hf.sum(x * w)


@pytest.mark.parametrize("target", [CUDA_SM80, CUDA_SM90], ids=["sm_80", "sm_90"])
@pytest.mark.parametrize("run", [33, 128, CHUNK + 2])
@pytest.mark.parametrize("function", [softmax, norm])
def test_several_folds_of_a_row(emulated, function, run, target):  # noqa: F811
    arrays = [*values((3, run)), *values((run,))]
    graph = hf.function(function).get_concrete_function(*arrays).graph
    check(emulated, graph, arrays, [64 if run > CHUNK else 32], ("forward", "reversed"), target)


@pytest.mark.parametrize("shape", [(3, 5, 600), (2, 40000)])
def test_folds_that_end_before_others_begin(emulated, shape):  # noqa: F811
    arrays = [*values(shape), *values(shape[-1:])]
    graph = hf.function(around_a_mean).get_concrete_function(*arrays).graph
    program = compile_graph(graph, CUDA_SM90)
    check(emulated, graph, arrays, [launch.group_size for launch in program.launches], ("forward", "shuffled"))
    assert any(launch.group_size > 1 for launch in program.launches)


def test_branches_fold_by_warps(emulated):  # noqa: F811
    """Teams of several warps have barriers of a block, where a branch has all of its own."""

    def branches(x, flag):
        folded = [lambda: hf.nn.softmax(x, axis=-1) + hf.cumulative_sum(x, axis=-1), lambda: hf.exp(x.T).T]
        return hf.cond(flag, *folded)

    for flag in (True, False):
        arrays = [*values((40, 600)), np.array(flag)]
        graph = hf.function(branches).get_concrete_function(*arrays).graph
        launches = compile_graph(graph, CUDA_SM90).launches
        check(emulated, graph, arrays, [*[1] * (len(launches) - 1), 512], ("forward", "shuffled"))


@pytest.mark.parametrize("terms", [64 * 64 + 1, 3 * 64 * 64 - 30, 2 * 64 * 64 + 64])
@pytest.mark.parametrize("dtype", [dt.float32, dt.float16], ids=str)
def test_pieces_of_few_long_columns_are_joined(emulated, dtype, terms):  # noqa: F811
    """By others than the thread that puts a column together, which would have all of them to itself."""
    shape = terms, 3
    check(emulated, folds_of(shape, (0,), dtype, ("sum", "argmin")), values(shape, dtype), [1, 1, 1], ("shuffled",))


@pytest.mark.parametrize("terms", [0, 3, 64 * 65, 64 * 64 * 2 + 70])
def test_columns_of_symbolic_length(emulated, terms):  # noqa: F811
    graph = folds_of((Dim("m"), 3), (0,), ops=("sum", "max"))
    check(emulated, graph, values((terms, 3)), [1, 1, 1], ("forward",))


def test_few_pieces_are_not_joined(emulated):  # noqa: F811
    check(emulated, folds_of((64 * 64, 3), (0,), ops=("sum",)), values((64 * 64, 3)), [1, 1], ("forward",))
