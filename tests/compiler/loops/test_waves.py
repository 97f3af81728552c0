"""Waves and the arena: who may run side by side, and what that costs in memory."""

from __future__ import annotations

import dataclasses
import random

import pytest

from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.graph import Role
from hybridflow.compiler.ir.types import TensorType
from hybridflow.compiler.loops import waves
from hybridflow.compiler.loops.buffer_assignment import FreeList, Plan, plan
from hybridflow.compiler.loops.plan_verifier import check_plan
from hybridflow.compiler.loops.waves import MOST_BYTES, SMALL
from hybridflow.compiler.ops import TABLE
from hybridflow.compiler.pipeline import compile_graph, optimize, partition
from hybridflow.compiler.target import AVX512, CUDA_SM90
from hybridflow.errors import CompileError
from hybridflow.runtime.machine import machine_code


def planned(graph):
    graph = optimize(graph)
    fusion = partition(graph, AVX512)
    found = plan(graph, fusion)
    check_plan(graph, fusion, found)
    return graph, fusion, found


def scans(count, size, b, x):
    """``count`` values that nothing fuses."""
    return [b.cumulative_sum(b.multiply(x, b.full(k + 1.0, x.type)), axis=0) for k in range(count)]


def branches(count, size):
    """Values that are made independently, and then read in pairs."""
    b = GraphBuilder(TABLE, "branches")
    values = scans(count, size, b, b.parameter(TensorType((size,), dt.float32)))
    while len(values) > 1:
        values = [b.cumulative_sum(b.add(*values[:2]), axis=0), *values[2:]]
    return b.finish(values)


def sizes_of_waves(found: Plan) -> list[int]:
    return [found.waves.count(wave) for wave in dict.fromkeys(found.waves)]


def test_small_kernels_share_a_wave_and_large_ones_do_not():
    assert max(sizes_of_waves(planned(branches(6, 100))[2])) >= 5
    assert max(sizes_of_waves(planned(branches(6, SMALL))[2])) == 1


@pytest.mark.parametrize("size", [100, SMALL // 4, SMALL // 8])
def test_waves_cost_little_memory(size, monkeypatch):
    graph = branches(40, size)
    together = planned(graph)[2].arena
    monkeypatch.setattr(waves, "SMALL", -1)
    alone = planned(graph)[2]
    assert max(sizes_of_waves(alone)) == 1
    assert alone.arena <= together <= alone.arena + MOST_BYTES


def test_a_state_is_overwritten_in_a_wave_after_its_readers():
    b = GraphBuilder(TABLE, "state")
    state = b.parameter(TensorType((50,), dt.float32), role=Role.STATE)
    other = b.parameter(TensorType((50,), dt.float32))
    graph = b.finish([b.cumulative_sum(state, axis=0)], {0: b.cumulative_sum(other, axis=0)})
    _, fusion, found = planned(graph)
    assert found.in_place == {0} and found.waves == [0, 1]
    with pytest.raises(CompileError, match="share a wave"):
        check_plan(graph, fusion, dataclasses.replace(found, waves=[0, 0]))
    with pytest.raises(CompileError, match=r"run after .* is overwritten"):
        check_plan(graph, fusion, dataclasses.replace(found, kernels=found.kernels[::-1]))


def test_a_state_is_overwritten_after_every_check():
    b = GraphBuilder(TABLE, "state")
    state = b.parameter(TensorType((50,), dt.float32), role=Role.STATE)
    index = b.parameter(TensorType((3,), dt.int64))
    other = b.parameter(TensorType((50,), dt.float32))
    graph = b.finish([b.take(b.cumulative_sum(other, axis=0), index, axis=0)], {0: b.tanh(state)})
    _, fusion, found = planned(graph)
    check = next(k for k in found.kernels if k.nodes[-1].op.name == "take")
    late = [k for k in found.kernels if k is not check] + [check]
    assert found.in_place == {0}
    with pytest.raises(CompileError, match=r"run after .* is overwritten"):
        check_plan(graph, fusion, dataclasses.replace(found, kernels=late, waves=list(range(len(late)))))


def test_a_wave_that_shares_memory_is_found():
    graph, fusion, found = planned(branches(3, 100))
    assert len(set(found.waves)) > 1
    for fault in ([0] * len(found.waves), found.waves[::-1], found.waves[1:]):
        with pytest.raises(CompileError, match=r"waves|share a wave"):
            check_plan(graph, fusion, dataclasses.replace(found, waves=fault))


def test_ranges_are_joined_and_never_overlap():
    rng, free = random.Random(4), FreeList()
    held: dict[int, int] = {}
    used = 0
    for _ in range(3000):
        if held and rng.random() < 0.5:
            offset = rng.choice(list(held))
            free.free(offset, held.pop(offset))
            continue
        size = 64 * rng.randint(1, 9)
        offset = free.allocate(size)
        if offset is None:
            offset, used = used, used + size
        assert all(offset + size <= other or other + held[other] <= offset for other in held)
        held[offset] = size
    for offset, size in held.items():
        free.free(offset, size)
    assert free.allocate(used) == 0 and free.allocate(1) is None


def test_entry_points_of_equal_kernels_differ_by_what_may_still_fail():
    # The two exps are one function; between them stands a check that the second no longer has to look for.
    b = GraphBuilder(TABLE, "equal")
    x, y = (b.parameter(TensorType((300,), dt.float32)) for _ in range(2))
    index = b.parameter(TensorType((9,), dt.int64))
    first = b.cumulative_sum(b.exp(x), axis=0)
    taken = b.cumulative_sum(b.take(first, index, axis=0), axis=0)
    spread = b.broadcast(b.sum(taken, axes=(0,)), shape=(300,), axes=())
    graph = b.finish(
        [first, taken, b.cumulative_sum(b.exp(b.add(b.cumulative_sum(b.add(y, spread), axis=0), y)), axis=0)]
    )
    program = compile_graph(graph, CUDA_SM90)
    names = [launch.symbol for launch in program.launches]
    defined = [line.split("@")[1].split("(")[0] for line in program.text.splitlines() if line.startswith("define ")]
    assert len(defined) == len(set(defined)) and set(names) <= set(defined)
    assert len(set(names)) > len({name.partition("_")[0] for name in names})
    machine_code.compile_assembly(program.text, program.target)
