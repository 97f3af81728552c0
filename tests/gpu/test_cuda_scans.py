"""Scans by teams of GPU threads: the bits of the CPU at the edges of runs and chunks, whichever thread goes first."""

from __future__ import annotations

import numpy as np
import pytest

from hybridflow.compiler.codegen.ordering import ordering_schedule
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.types import Dim, TensorType
from hybridflow.compiler.ops import TABLE
from hybridflow.compiler.ops.evaluation_order import SCAN_CHUNK, SCAN_RUN
from hybridflow.runtime.cuda import launch_plans
from tests.gpu.test_cuda_teams import check, values
from tests.support.cuda_emulator import emulated  # noqa: F401

IN_PHASES = [64, 64, 64]


def scan_of(name, shape, dtype=dt.float32, axis=-1):
    """Of what is computed on the way: nothing lies in memory before."""
    b = GraphBuilder(TABLE, name)
    x = b.parameter(TensorType(shape, dtype))
    operands = [b.negative(x), x] if name == "linear_recurrence" else [b.negative(x)]
    return b.finish([b.emit(TABLE[name], *operands, axis=axis % len(shape))])


@pytest.mark.parametrize(
    ("rows", "run"), [(0, 600), (1, 512), (3, 700), (2, SCAN_CHUNK - SCAN_RUN + 1), (2, SCAN_CHUNK)]
)
def test_a_team_for_each_line(emulated, rows, run):  # noqa: F811
    check(emulated, scan_of("cumulative_sum", (rows, run)), values((rows, run)), [64] if rows else [])


@pytest.mark.parametrize("name", ["cumulative_sum", "exclusive_product", "linear_recurrence"])
@pytest.mark.parametrize("run", [SCAN_CHUNK + 1, 3 * SCAN_CHUNK - 70])
def test_a_team_for_each_chunk(emulated, name, run):  # noqa: F811
    check(emulated, scan_of(name, (2, run)), values((2, run)), IN_PHASES)


def test_more_chunks_than_a_team_has_threads(emulated):  # noqa: F811
    run = 66 * SCAN_CHUNK + 3
    check(emulated, scan_of("cumulative_sum", (run,)), values((run,)), IN_PHASES, ("forward", "shuffled"))


def test_many_lines_take_their_chunks_in_turn(emulated, monkeypatch):  # noqa: F811
    monkeypatch.setattr(ordering_schedule, "ENOUGH_LINES", 2)
    monkeypatch.setattr(launch_plans, "MOST_THREADS", 64)  # a single team has both lines
    shape = 2, 2 * SCAN_CHUNK + 9
    check(emulated, scan_of("linear_recurrence", shape), values(shape), [64], ("forward", "shuffled"))


@pytest.mark.parametrize("dtype", [dt.float64, dt.bfloat16, dt.int8, dt.int64])
def test_states_of_each_width(emulated, dtype):  # noqa: F811
    shape = 1, SCAN_CHUNK + 65
    check(emulated, scan_of("cumulative_sum", shape, dtype), values(shape, dtype), IN_PHASES, ("forward",))


def test_states_for_which_there_is_no_room_take_a_thread(emulated):  # noqa: F811
    graph = scan_of("linear_recurrence", (2, 600), dt.float64)
    check(emulated, graph, values((2, 600), np.float64), [1], ("forward",))


@pytest.mark.parametrize(("rows", "run"), [(0, 3), (3, 0), (2, 1), (2, 65), (1, SCAN_CHUNK), (2, SCAN_CHUNK + 1)])
def test_symbolic(emulated, rows, run):  # noqa: F811
    graph = scan_of("cumulative_sum", (Dim("m"), Dim("n")))
    check(emulated, graph, values((rows, run)), IN_PHASES, ("reversed",))


@pytest.mark.parametrize("name", ["cumulative_sum", "exclusive_product", "linear_recurrence"])
@pytest.mark.parametrize("shape", [(600, 5), (2, 700, 33), (SCAN_CHUNK, 2), (2, SCAN_CHUNK - SCAN_RUN + 1, 3)])
def test_a_team_for_neighbouring_lines(emulated, name, shape):  # noqa: F811
    check(emulated, scan_of(name, shape, axis=-2), values(shape), [256], ("reversed", "shuffled"))


@pytest.mark.parametrize("columns", [5, 40])
def test_chunks_of_neighbouring_lines(emulated, columns):  # noqa: F811
    shape = 2 * SCAN_CHUNK + 70, columns
    check(emulated, scan_of("cumulative_sum", shape, axis=0), values(shape), [256, 1, 256], ("forward", "reversed"))


def test_neighbouring_lines_that_take_their_chunks_in_turn(emulated, monkeypatch):  # noqa: F811
    monkeypatch.setattr(ordering_schedule, "ENOUGH_LINES", 0)
    shape = SCAN_CHUNK + 100, 3
    check(emulated, scan_of("linear_recurrence", shape, axis=0), values(shape), [256], ("forward", "shuffled"))


@pytest.mark.parametrize(("run", "columns"), [(2, 33), (65, 2), (SCAN_CHUNK + 1, 3)])
def test_symbolic_neighbouring_lines(emulated, run, columns):  # noqa: F811
    graph = scan_of("cumulative_sum", (Dim("m"), Dim("n")), axis=0)
    check(emulated, graph, values((run, columns)), [256, 1, 256], ("reversed",))


def test_many_or_short_lines_take_a_thread_each(emulated, monkeypatch):  # noqa: F811
    check(emulated, scan_of("cumulative_sum", (300, 5), axis=0), values((300, 5)), [1], ("forward",))
    monkeypatch.setattr(ordering_schedule, "MANY_LINES", 4)
    check(emulated, scan_of("cumulative_sum", (600, 5), axis=0), values((600, 5)), [1], ("forward",))
