"""Graphs of many nodes: equal kernels share machine code, and no structure makes the compiler's work explode.

Nothing here asserts a time: what once grew exponentially would not end.
"""

from __future__ import annotations

import numpy as np
import pytest

from hybridflow.compiler.interpret import interpret
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.graph import Graph, Node, Role
from hybridflow.compiler.ir.types import TensorType
from hybridflow.compiler.ops import TABLE
from hybridflow.compiler.pipeline import compile_graph
from hybridflow.compiler.program import Program
from hybridflow.compiler.target import AVX512, CUDA_SM90, Target
from hybridflow.runtime import cpu, host


def builder() -> GraphBuilder:
    return GraphBuilder(TABLE, "g")


def f32(b: GraphBuilder, *shape: int, role: Role = Role.ARGUMENT) -> Node:
    return b.parameter(TensorType(shape, dt.float32), role=role)


def functions(program: Program) -> int:
    return program.text.count("\ndefine ")


def check(graph: Graph) -> None:
    """Compiled results are near those of the interpreter."""
    rng = np.random.default_rng(0)
    arrays = [(rng.random(n.shape) / 2).astype(n.dtype) for n in graph.inputs]
    found = cpu.load(compile_graph(graph, host.target())).run([x.copy() for x in arrays])
    for expected, result in zip(interpret(graph, arrays)[0], found):
        np.testing.assert_allclose(result, expected, rtol=1e-3, atol=1e-5)


def layers(n: int) -> Graph:
    b = builder()
    x = f32(b, 8, 8)
    for _ in range(n):
        x = b.tanh(b.add(b.matmul(x, f32(b, 8, 8)), b.broadcast(f32(b, 8), shape=(8, 8), axes=(1,))))
    return b.finish([x])


@pytest.mark.parametrize("target", [AVX512, CUDA_SM90], ids=["cpu", "cuda"])
def test_equal_layers_share_their_code(target: Target) -> None:
    few, many = compile_graph(layers(3), target), compile_graph(layers(40), target)
    assert functions(few) == functions(many)
    assert len(many.kernels) == 40


def test_layers_of_shared_code_compute_on_their_own_weights() -> None:
    check(layers(40))


def test_equal_updates_share_their_code() -> None:
    b = builder()
    rate = b.full(0.1, TensorType((5, 3), dt.float32))
    pairs = [(f32(b, 5, 3, role=Role.STATE), f32(b, 5, 3)) for _ in range(20)]
    graph = b.finish([], {2 * i: b.subtract(p, b.multiply(rate, g)) for i, (p, g) in enumerate(pairs)})
    program = compile_graph(graph, host.target())
    assert functions(program) == 2  # the kernel and the driver
    arrays = [np.full((5, 3), i, np.float32) for i in range(40)]
    expected = [arrays[i] - np.float32(0.1) * arrays[i + 1] for i in range(0, 40, 2)]
    cpu.load(program).run(arrays)
    np.testing.assert_array_equal(arrays[::2], expected)
