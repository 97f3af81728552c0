"""Small programs in which everything fits everything: square values, read by a kernel and by what finishes that kernel.

Each program is compiled whole and compared, bit for bit, with its nodes run one at a time as eager mode runs them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest

from hybridflow.compiler.index import iteration_space as spaces
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.graph import Graph, Node, Role
from hybridflow.compiler.ir.types import TensorType
from hybridflow.compiler.loops import buffer_assignment, plan_verifier, topological_order
from hybridflow.compiler.loops.kernel import Cluster, Fusion
from hybridflow.compiler.ops import TABLE, Kind
from hybridflow.compiler.pipeline import compile_graph, partition
from hybridflow.compiler.target import AVX512
from hybridflow.errors import CompileError
from hybridflow.runtime import cpu
from hybridflow.runtime.machine import host_target
from tests.compiler.codegen.test_kernels import same_bits
from tests.compiler.loops.test_fusion import build, rows, run_one_by_one

RNG = np.random.default_rng(11)


def check(graph: Graph, arrays: list[np.ndarray]) -> None:
    found = cpu.load(compile_graph(graph, host_target.target())).run([x.copy() for x in arrays])
    for got, want in zip(found, run_one_by_one(graph, arrays), strict=True):
        same_bits(got, np.asarray(want))


def normalised(b: GraphBuilder, x: Node) -> Node:
    return b.divide(x, rows(b, b.add(b.sum(b.abs(x), axes=(1,)), b.full(1.0, TensorType(x.shape[:1], x.dtype))), x))


def ranks(b: GraphBuilder, x: Node) -> Node:
    return b.argsort(b.sum(x, axes=(0,)), axis=0, descending=False)


def joined(b: GraphBuilder, x: Node) -> Node:
    top = b.slice(x, start=(0, 0), stop=(1, x.shape[1]), step=(1, 1))
    rest = b.slice(x, start=(1, 0), stop=x.shape, step=(1, 1))
    return b.concat(rest, top, axis=0)


# A value of a square shape from one, through each kind of kernel.
STEPS: dict[str, Callable[[GraphBuilder, Node], Node]] = {
    "tanh": lambda b, x: b.tanh(x),
    "matmul": lambda b, x: b.matmul(x, x),
    "gram": lambda b, x: b.matmul(x, x, transpose_a=True),
    "scan": lambda b, x: b.cumulative_sum(x, axis=1),
    "sort": lambda b, x: b.take_along_axis(x, b.argsort(x, axis=0, descending=False), axis=0),
    "take": lambda b, x: b.take(x, ranks(b, x), axis=0),
    "scatter": lambda b, x: b.scatter_add(x, ranks(b, x), x, axis=0),
    "concat": joined,
    "rows": normalised,
    "columns": lambda b, x: b.subtract(x, b.broadcast(b.max(x, axes=(0,)), shape=x.shape, axes=(1,))),
    "transpose": lambda b, x: b.transpose(x, perm=(1, 0)),
    "reverse": lambda b, x: b.reverse(x, axes=(1,)),
}


def diamond(first: str, second: str) -> Callable[[GraphBuilder, Node], tuple[Node, ...]]:
    """A value that is read by a kernel and added to what the kernel makes, which another one reads again."""

    def program(b: GraphBuilder, x: Node) -> tuple[Node, ...]:
        a = b.multiply(x, b.full(2.0, x.type))
        c = b.add(STEPS[first](b, a), a)
        d = b.add(STEPS[second](b, c), c)
        return b.add(d, a), c

    return program


@pytest.mark.parametrize("first", STEPS)
@pytest.mark.parametrize("second", ["tanh", "matmul", "scan", "scatter", "concat", "rows"])
def test_values_read_by_a_kernel_and_by_what_finishes_it(first: str, second: str) -> None:
    for n in (1, 3) if first == second else (3,):
        array = RNG.standard_normal((n, n)).astype(np.float32)
        check(build(diamond(first, second), [array]), [array])


# ---- what no compilation may get wrong unnoticed


def residual() -> Graph:
    b = GraphBuilder(TABLE, "residual")
    x = b.parameter(TensorType((4, 4), dt.float32))
    a = b.tanh(x)
    return b.finish([b.add(b.matmul(a, a), a)])


def test_a_cycle_of_clusters_is_an_error() -> None:
    fusion = partition(residual(), AVX512)
    first, second = (kernel.cluster for kernel in fusion.kernels)
    clusters = topological_order.Order()
    clusters.append(first, ())
    clusters.append(second, [first])
    clusters.check()
    clusters.need(first, [second])
    with pytest.raises(CompileError, match="waits for itself"):
        clusters.check()


def reached(needs: dict[Cluster, set[Cluster]], clusters: set[Cluster]) -> set[Cluster]:
    """These clusters, and all that they need."""
    seen, stack = set(clusters), [*clusters]
    while stack:
        more = needs[stack.pop()] - seen
        seen |= more
        stack += more
    return seen


@pytest.mark.parametrize("most_bits", [topological_order.Order.MOST_BITS, 0, 7])
def test_what_clusters_need_is_known_while_they_grow_and_merge(most_bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topological_order.Order, "MOST_BITS", most_bits)
    node, numbers, merges = residual().nodes[0], np.random.default_rng(5), 0
    for _ in range(20):
        order = topological_order.Order()
        needs: dict[Cluster, set[Cluster]] = {}
        for _ in range(25):
            clusters = list(order)
            if len(clusters) < 3 or numbers.integers(2):
                new = Cluster(Kind.ELEMENTWISE, spaces.over((2,)), (2,), node, [])
                needs[new] = {clusters[k] for k in numbers.integers(0, len(clusters), 2)} if clusters else set()
                order.append(new, needs[new])
                continue
            first, second = (clusters[k] for k in numbers.choice(len(clusters), 2, replace=False))
            if second in reached(needs, {first}):
                first, second = second, first
            through_another = first in reached(needs, needs[second] - {first})
            assert order.depends_through_another(second, first) == through_another
            if first in needs[second] and not through_another:
                merges += 1
                order.merge(first, second)
                needs[second] |= needs.pop(first)
                needs = {c: {second if n is first else n for n in those} - {c} for c, those in needs.items()}
            else:
                order.need(second, [first])
                needs[second].add(first)
            order.check()
            assert all(
                order.depends([one], other) == (other in reached(needs, {one})) for one in order for other in order
            )
    assert merges > 10


def test_kernels_that_are_missing_or_too_early_are_errors() -> None:
    graph = residual()
    fusion = partition(graph, AVX512)
    plan_verifier.check_fusion(graph, fusion)
    for kernels, message in [
        ([], "no kernel computes the result"),
        (fusion.kernels[:1], "no kernel computes the result"),
        (fusion.kernels[1:], "before a kernel has computed it"),
        (fusion.kernels[::-1], "before a kernel has computed it"),
        (fusion.kernels * 2, "computed by two kernels"),
    ]:
        with pytest.raises(CompileError, match=message):
            plan_verifier.check_fusion(graph, Fusion(kernels, fusion.computed))


def test_plans_that_leave_a_kernel_or_a_result_out_are_errors() -> None:
    graph = residual()
    fusion = partition(graph, AVX512)
    plan = buffer_assignment.plan(graph, fusion)
    plan_verifier.check_plan(graph, fusion, plan)
    with pytest.raises(CompileError, match="never run: tanh"):
        plan_verifier.check_plan(graph, fusion, dataclasses.replace(plan, kernels=plan.kernels[1:]))
    (result,) = graph.outputs
    elsewhere = {**plan.locations, result: buffer_assignment.OutputBuffer(7)}
    with pytest.raises(CompileError, match="nothing is written to output 0"):
        plan_verifier.check_plan(graph, fusion, dataclasses.replace(plan, locations=elsewhere))
    b = GraphBuilder(TABLE, "update")
    v = b.parameter(TensorType((4,), dt.float32), "v", Role.STATE)
    step = b.finish([], {0: b.tanh(v)})
    fused = partition(step, AVX512)
    direct = buffer_assignment.plan(step, fused)
    plan_verifier.check_plan(step, fused, direct)
    lost = {node: place if node is v else buffer_assignment.OutputBuffer(0) for node, place in direct.locations.items()}
    with pytest.raises(CompileError, match="nothing is written to state input 0"):
        plan_verifier.check_plan(step, fused, dataclasses.replace(direct, locations=lost, after=[]))
    nowhere = {node: place for node, place in plan.locations.items() if node is not result}
    with pytest.raises(CompileError, match="has no place"):
        plan_verifier.check_plan(graph, fusion, dataclasses.replace(plan, locations=nowhere))
