"""Graphs of many nodes: equal kernels share machine code, and no structure makes the compiler's work explode.

Nothing here asserts a time: what once grew exponentially would not end.
"""

from __future__ import annotations

import numpy as np
import pytest

from hybridflow.compiler.interpreter import interpret
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.graph import Graph, Node, Role
from hybridflow.compiler.ir.types import TensorType
from hybridflow.compiler.ops import TABLE
from hybridflow.compiler.pipeline import compile_graph
from hybridflow.compiler.program import Program
from hybridflow.compiler.target import AVX512, CUDA_SM90, Target
from hybridflow.runtime import cpu
from hybridflow.runtime.machine import host_target


def builder() -> GraphBuilder:
    return GraphBuilder(TABLE, "g")


def f32(b: GraphBuilder, *shape: int, role: Role = Role.ARGUMENT) -> Node:
    return b.parameter(TensorType(shape, dt.float32), role=role)


def functions(program: Program) -> int:
    return (program.text + program.sharing).count("\ndefine ")


def check(graph: Graph) -> None:
    """Compiled results are near those of the interpreter."""
    rng = np.random.default_rng(0)
    arrays = [(rng.random(n.shape) / 2).astype(n.dtype) for n in graph.inputs]
    found = cpu.load(compile_graph(graph, host_target.target())).run([x.copy() for x in arrays])
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
    few, many = compile_graph(layers(20), target), compile_graph(layers(40), target)
    assert functions(few) == functions(many)
    assert len(many.kernels) == 40


def test_layers_of_shared_code_compute_on_their_own_weights() -> None:
    check(layers(40))


def test_equal_updates_share_their_code() -> None:
    b = builder()
    rate = b.full(0.1, TensorType((5, 3), dt.float32))
    pairs = [(f32(b, 5, 3, role=Role.STATE), f32(b, 5, 3)) for _ in range(20)]
    graph = b.finish([], {2 * i: b.subtract(p, b.multiply(rate, g)) for i, (p, g) in enumerate(pairs)})
    program = compile_graph(graph, host_target.target())
    assert functions(program) == 5  # the kernel, its task, that of a wave, and the driver with and without a host
    arrays = [np.full((5, 3), i, np.float32) for i in range(40)]
    expected = [arrays[i] - np.float32(0.1) * arrays[i + 1] for i in range(0, 40, 2)]
    cpu.load(program).run(arrays)
    np.testing.assert_array_equal(arrays[::2], expected)


def statistics_used_again(n: int) -> Graph:
    """What follows a row's sum reads each value twice."""
    b = builder()
    x = f32(b, 6, 8)
    z = b.subtract(x, b.broadcast(b.sum(x, axes=(1,)), shape=x.shape, axes=(0,)))
    for _ in range(n):
        z = b.tanh(b.add(b.multiply(z, z), z))
    return b.finish([z, b.sum(z, axes=(1,))])


def taken_from_sums(n: int) -> Graph:
    """Each value is read in order and at random."""
    b = builder()
    x, i = f32(b, 8), b.literal(2, dt.int64)
    half = b.full(0.5, x.type)
    for _ in range(n):
        x = b.multiply(b.add(b.take(x, b.broadcast(i, shape=(8,), axes=()), axis=0), x), half)
    return b.finish([x])


def turned(n: int) -> Graph:
    """Reshapes of transposes, whose divisions nest."""
    b = builder()
    x = f32(b, 6, 4)
    for k in range(n):
        x = b.transpose(b.reshape(x, shape=(2, 3, 4) if k % 2 else (4, 3, 2)), perm=(1, 2, 0))
    return b.finish([x])


def flipped(n: int) -> Graph:
    """Views whose positions stay simple, but which are many."""
    b = builder()
    x = f32(b, n + 5)
    for k in range(n):
        x = b.slice(b.reverse(x, axes=(0,)), start=(0,), stop=(n + 4 - k,), step=(1,))
    return b.finish([x])


def shrinking(n: int) -> Graph:
    """Each value is read at two places."""
    b = builder()
    x = f32(b, n + 5)
    half = b.literal(0.5, dt.float32)
    for size in range(n + 4, 4, -1):
        parts = [b.slice(x, start=(k,), stop=(k + size,), step=(1,)) for k in (0, 1)]
        x = b.multiply(b.add(*parts), b.broadcast(half, shape=(size,), axes=()))
    return b.finish([x])


def chain(n: int) -> Graph:
    b = builder()
    x, y = f32(b, 7), f32(b, 7)
    z = x
    for k in range(n):
        z = b.subtract(z, y) if k % 2 else b.maximum(z, x)
    return b.finish([z])


def reshaped_chain(n: int) -> Graph:
    """A reshape, which is no node of its own to a kernel, between any two nodes."""
    b = builder()
    x = f32(b, 2, 3, 4)
    shapes = [(6, 4), (24,), (2, 12), (2, 3, 4)]
    for k in range(n):
        x = b.tanh(b.reshape(x, shape=shapes[k % 4]))
    return b.finish([x])


def softmaxes(n: int) -> Graph:
    b = builder()
    x = f32(b, 5, 6)

    def rows(value: Node) -> Node:
        return b.broadcast(value, shape=x.shape, axes=(0,))

    for _ in range(n):
        e = b.exp(b.subtract(x, rows(b.max(x, axes=(1,)))))
        x = b.divide(e, rows(b.sum(e, axes=(1,))))
    return b.finish([x])


def joined(n: int) -> Graph:
    b = builder()
    return b.finish([b.concat(*[b.tanh(f32(b, 3)) for _ in range(n)], axis=0)])


def recurrent(n: int) -> Graph:
    b = builder()
    x, w = f32(b, n, 4), f32(b, 8, 8)
    h = c = f32(b, 1, 4)
    steps = []
    for t in range(n):
        step = b.slice(x, start=(t, 0), stop=(t + 1, 4), step=(1, 1))
        gates = b.matmul(b.concat(step, h, axis=1), w)
        a, g = (b.slice(gates, start=(0, k), stop=(1, k + 4), step=(1, 1)) for k in (0, 4))
        c = b.add(b.multiply(b.sigmoid(a), c), b.tanh(g))
        h = b.tanh(c)
        steps.append(h)
    return b.finish([b.concat(*steps, axis=0)])


@pytest.mark.parametrize(
    ("program", "n"),
    [
        (statistics_used_again, 60),
        (taken_from_sums, 60),
        (turned, 40),
        (flipped, 300),
        (shrinking, 40),
        (chain, 3000),
        (reshaped_chain, 400),
        (softmaxes, 60),
        (joined, 200),
        (recurrent, 30),
    ],
)
@pytest.mark.sample(4)
def test_the_work_does_not_explode(program, n) -> None:
    check(program(n))
