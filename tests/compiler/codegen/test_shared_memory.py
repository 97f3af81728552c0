"""Random programs whose values share memory: states that are read, swapped and overwritten, results that are arguments,
views of views, one array given twice, arrays without elements.

The reference runs ops one by one, each from and to memory of its own.
"""

from __future__ import annotations

import numpy as np
import pytest

from hybridflow.compiler import target
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.graph import Graph, Node, Role
from hybridflow.compiler.ir.types import TensorType
from hybridflow.compiler.ops import TABLE
from hybridflow.compiler.pipeline import compile_graph
from hybridflow.runtime import cpu
from hybridflow.runtime.machine import host_target
from tests.compiler.codegen.test_kernels import same_bits
from tests.compiler.loops.test_fusion import run_one_by_one
from tests.support.cutting_host import check_cuts

STATES = 3
TAKEN = 4
WAYS = (
    "add", "scale", "transpose", "reverse", "sin", "reshape", "concat", "less rows", "less columns", "matmul",
    "running", "scatter", "slices", "take", "sort",
)  # fmt: skip


def derived(b: GraphBuilder, rng: np.random.Generator, x: Node, y: Node, index: Node) -> Node:
    """A square array that is made of two others in one of many ways."""
    how, shape, m = str(rng.choice(WAYS)), x.shape, x.shape[0]
    if how == "scale":
        return b.multiply(x, b.full(0.5, x.type))
    if how == "transpose":
        return b.transpose(x, perm=(1, 0))
    if how == "reverse":
        return b.reverse(x, axes=(int(rng.integers(2)),))
    if how == "sin":
        return b.sin(x)
    if how == "reshape":
        return b.reshape(b.reshape(x, shape=(m * m,)), shape=shape)
    if how == "concat" and m > 1:
        k = int(rng.integers(1, m))
        head = b.slice(y, start=(0, 0), stop=(k, m), step=(1, 1))
        return b.concat(head, b.slice(x, start=(k, 0), stop=shape, step=(1, 1)), axis=0)
    if how in ("less rows", "less columns"):
        axis = 1 if how == "less rows" else 0
        return b.subtract(x, b.broadcast(b.sum(y, axes=(axis,)), shape=shape, axes=(1 - axis,)))
    if how == "matmul":
        return b.matmul(x, y)
    if how == "running":
        return b.cumulative_sum(x, axis=int(rng.integers(2)))
    if how == "scatter" and m >= TAKEN:
        return b.scatter_add(x, index, b.slice(y, start=(0, 0), stop=(TAKEN, m), step=(1, 1)), axis=0)
    if how == "slices" and m > 1:
        inner = b.slice(b.slice(x, start=(1, 1), stop=shape, step=(1, 1)), start=(0, 0), stop=(m - 1,) * 2, step=(1, 1))
        return b.pad(inner, low=(1, 0), high=(0, 1), interior=(0, 0), value=0)
    if how == "take":
        total = b.sum(b.take(x, index, axis=0), axes=(0,))
        return b.add(y, b.broadcast(total, shape=shape, axes=(1,)))
    if how == "sort":
        return b.convert(b.argsort(x, axis=1, descending=False), dtype=dt.float32)
    return b.add(x, y)


def random_program(seed: int) -> tuple[Graph, list[np.ndarray]]:
    rng = np.random.default_rng(seed)
    m = int(rng.choice([0, 1, 2, 5, 17, 40], p=[0.1, 0.1, 0.2, 0.3, 0.2, 0.1]))
    b = GraphBuilder(TABLE, "shared")
    type = TensorType((m, m), dt.float32)
    found = [b.parameter(type, f"s{k}", Role.STATE) for k in range(STATES)]
    found += [b.parameter(type) for _ in range(2)]
    index = b.parameter(TensorType((TAKEN,), dt.int64))
    arrays = [rng.standard_normal(type.shape).astype(np.float32) for _ in found]
    arrays[-1] = arrays[-2]
    high = m + (rng.random() < 0.1)  # at times one that is out of range
    arrays.append(rng.integers(-max(m, 1), max(high, 1), TAKEN))

    def some() -> Node:
        recent = found[-6:] if rng.random() < 0.6 else found
        return recent[int(rng.integers(len(recent)))]

    for _ in range(int(rng.integers(2, 14))):
        found.append(derived(b, rng, some(), some(), index))
    outputs = [some() for _ in range(int(rng.integers(1, 4)))]
    outputs = [b.reshape(x, shape=(m * m,)) if rng.random() < 0.3 else x for x in outputs]
    return b.finish(outputs, {k: some() for k in range(STATES) if rng.random() < 0.75}), arrays


@pytest.mark.parametrize("seed", range(60))
def test_random_programs(seed):
    graph, arrays = random_program(seed)
    program = compile_graph(graph, host_target.target())
    raised, *found = check_cuts(program, arrays, (seed, seed + 1))
    if raised:
        assert raised.startswith("IndexRangeError")
        expected = [arrays[k] for k in sorted(graph.updates)]  # as they were
    else:
        expected = run_one_by_one(graph, arrays)
    for got, want in zip(found, expected, strict=True):
        same_bits(got, want)
    if not raised and host_target.can_run(target.AVX2):
        given = [a.copy() for a in arrays]
        outputs = cpu.load(compile_graph(graph, target.AVX2)).run(given)
        for got, want in zip([*outputs, *(given[k] for k in sorted(graph.updates))], expected, strict=True):
            same_bits(got, want)


def test_most_of_them_overwrite_and_some_fail():
    """What the programs above are made for does happen."""
    programs = [random_program(seed) for seed in range(60)]
    compiled = [compile_graph(graph, host_target.target()) for graph, _ in programs]
    assert sum(any(slot.in_place for slot in program.inputs) for program in compiled) > 30
    assert any(index.max() >= len(x) > 0 for _, (x, *_, index) in programs)
