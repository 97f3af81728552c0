"""What scatters read: bases and updates that are views or computed, of arrays that the result may be written over.

The reference runs ops one by one, each from and to memory of its own.
"""

from __future__ import annotations

import numpy as np
import pytest

from hybridflow.compiler import target
from hybridflow.compiler.interpreter import interpret
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.extents import Dim
from hybridflow.compiler.ir.graph import Role
from hybridflow.compiler.ir.types import TensorType
from hybridflow.compiler.ops import TABLE
from hybridflow.compiler.pipeline import compile_graph
from hybridflow.runtime import cpu
from hybridflow.runtime.cuda import ptx
from hybridflow.runtime.machine import host_target
from tests.compiler.codegen.test_kernels import same_bits
from tests.compiler.loops.test_fusion import run_one_by_one
from tests.gpu.test_cuda_emission import assert_assembles
from tests.support.cutting_host import check_cuts

TARGETS = [name for name in ("sse2", "avx2", "avx512") if host_target.can_run(target.NAMED[name])]


def moved(b, x, rng, state):
    """A value of the shape of x, made of it, or of ``state``, in one of many ways."""
    shape, rank = x.shape, len(x.shape)
    how = rng.choice(["as it is", "computed", "turned round", "transposed", "of state", "padded", "long"])
    if how == "computed":
        return b.exp(x)
    if how == "turned round":
        return b.reverse(x, axes=tuple(range(rank)))
    if how == "transposed":
        perm = tuple(reversed(range(rank)))
        return b.transpose(b.reshape(x, shape=tuple(reversed(shape))), perm=perm)
    if how == "of state" and state.type == x.type:
        return b.multiply(state, b.full(0.5, state.type))
    if how == "padded" and shape[0] > 1:
        rest = (0,) * (rank - 1)
        part = b.slice(x, start=(1, *rest), stop=shape, step=(1,) * rank)
        return b.pad(part, low=(0, *rest), high=(1, *rest), interior=(0,) * rank, value=0)
    if how == "long":
        for _ in range(12):
            x = b.sin(b.add(x, b.full(1.0, x.type)))
    return x


def random_program(seed):
    """Scatters into state, arguments and what is made of them, with updates and indices made in as many ways."""
    rng = np.random.default_rng(seed)
    rank = int(rng.integers(1, 4))
    shape = tuple(int(n) for n in rng.integers(1, [30, 9, 40][3 - rank :] if rank > 1 else 200, rank))
    axis = int(rng.integers(rank))
    paired = bool(rng.random() < 0.4)
    count = int(rng.integers(0, 12))
    extents = (*shape[:axis], count, *shape[axis + 1 :]) if paired else (count,)
    b = GraphBuilder(TABLE, "scatters")
    v = b.parameter(TensorType(shape, dt.float32), "v", Role.STATE)
    x = b.parameter(TensorType(shape, dt.float32))
    u = b.parameter(TensorType((*shape[:axis], count, *shape[axis + 1 :]), dt.float32))
    many = b.parameter(TensorType((3, *extents), dt.int64))
    arrays = [rng.standard_normal(n.shape).astype(np.float32) for n in (v, x, u)]
    arrays.append(rng.integers(-shape[axis], shape[axis], many.shape))
    arrays[-1][2] = np.where(rng.random(extents) < 0.02, shape[axis], arrays[-1][2])
    scatter = b.scatter_add_along_axis if paired else b.scatter_add
    found = [v, x]
    for _ in range(int(rng.integers(1, 4))):
        k = int(rng.integers(2 + (rng.random() < 0.2)))
        start, stop = (k, *(0 for _ in extents)), (k + 1, *extents)
        index = b.reshape(b.slice(many, start=start, stop=stop, step=(1,) * len(stop)), shape=extents)
        if rng.random() < 0.3:
            index = b.convert(index, dtype=dt.int32)
        base = moved(b, found[int(rng.integers(len(found)))], rng, v)
        updates = moved(b, u, rng, v)
        if rng.random() < 0.3 and count <= shape[axis]:  # of the array to which they are added
            stop = (*shape[:axis], count, *shape[axis + 1 :])
            updates = b.slice(base, start=(0,) * rank, stop=stop, step=(1,) * rank)
        found.append(scatter(base, index, updates, axis=axis))
    outputs = [found[-2]] if rng.random() < 0.4 else [b.sum(found[-1], axes=(0,))]
    if rng.random() < 0.3:
        outputs.append(b.add(v, v))
    updated = found[-1] if rng.random() < 0.7 else b.multiply(found[-1], x)
    return b.finish(outputs, {0: updated}), arrays


@pytest.mark.parametrize("seed", range(24))
def test_random_scatters(seed):
    graph, arrays = random_program(seed)
    program = compile_graph(graph, host_target.target())
    raised, *found = check_cuts(program, arrays)
    if raised:
        assert raised.startswith("IndexRangeError")
        same_bits(found[-1], arrays[0])
        return
    expected = run_one_by_one(graph, arrays)
    for got, want in zip(found, expected, strict=True):
        same_bits(got, want)
    for name in TARGETS:
        given = [a.copy() for a in arrays]
        outputs = cpu.load(compile_graph(graph, target.NAMED[name])).run(given)
        for got, want in zip([*outputs, given[0]], expected, strict=True):
            same_bits(got, want)


def kernels_of(make, *types):
    b = GraphBuilder(TABLE, "program")
    given = [b.parameter(TensorType(shape, dtype)) for shape, dtype in types]
    program = compile_graph(b.finish([make(b, *given)]), host_target.target())
    return [kernel.ops for kernel in program.kernels], program


TABLE_OF_8 = ((100, 8), dt.float32), ((5,), dt.int64), ((5, 8), dt.float32)


def test_what_is_made_for_a_scatter_alone_takes_no_memory():
    for make in (
        lambda b, x, i, u: b.scatter_add(b.full(0.0, x.type), i, u, axis=0),
        lambda b, x, i, u: b.scatter_add(b.exp(x), i, u, axis=0),
        lambda b, x, i, u: b.scatter_add(x, i, b.multiply(u, u), axis=0),
        lambda b, x, i, u: b.scatter_add(x, b.reverse(i, axes=(0,)), b.reverse(u, axes=(0, 1)), axis=0),
    ):
        kernels, program = kernels_of(make, *TABLE_OF_8)
        assert len(kernels) == 1
        assert program.arena_bytes == 0


def test_long_work_on_short_rows_keeps_whole_vectors():
    def make(b, x, i, u):
        for _ in range(3):
            u = b.exp(u)
        return b.scatter_add(x, i, u, axis=0)

    line = ((100,), dt.float32), ((5000,), dt.int64), ((5000,), dt.float32)
    assert len(kernels_of(make, *line)[0]) == 2
    assert len(kernels_of(make, ((100, 64), dt.float32), ((50,), dt.int64), ((50, 64), dt.float32))[0]) == 1


def test_one_array_as_base_indices_and_updates():
    n = 300
    values = np.random.default_rng(2).integers(-n, n, n)
    for role in (Role.ARGUMENT, Role.STATE):
        b = GraphBuilder(TABLE, "itself")
        x = b.parameter(TensorType((n,), dt.int64), "x", role)
        out = b.scatter_add(x, x, x, axis=0)
        graph = b.finish([b.sum(out, axes=(0,))], {0: out} if role is Role.STATE else None)
        raised, *found = check_cuts(compile_graph(graph, host_target.target()), [values])
        assert not raised
        outputs, updates = interpret(graph, [values])
        for got, want in zip(found, [*outputs, *updates.values()], strict=True):
            same_bits(got, want)


@pytest.mark.parametrize("extents", [{"n": 7, "k": 3, "m": 2}, {"n": 200, "k": 1000, "m": 17}], ids=str)
def test_symbolic_extents_of_what_lies_beneath(extents):
    b = GraphBuilder(TABLE, "columns")
    table = b.parameter(TensorType((Dim("n"), Dim("m")), dt.float32))
    updates = b.parameter(TensorType((Dim("k"), Dim("m")), dt.float32))
    indices = b.parameter(TensorType((Dim("k"), Dim("m")), dt.int64))

    def column(x):
        taken = b.slice(x, start=(0, 1), stop=(x.shape[0], 2), step=(1, 1))
        return b.reshape(taken, shape=x.shape[:1])

    results = [
        b.scatter_add(column(table), column(indices), column(updates), axis=0),
        b.cumulative_sum(column(table), axis=0),
        b.argsort(column(table), axis=0, descending=False),
    ]
    graph = b.finish(results)
    n, k, m = (extents[name] for name in "nkm")
    rng = np.random.default_rng(1)
    arrays = [rng.standard_normal((size, m)).astype(np.float32) for size in (n, k)]
    arrays.append(rng.integers(-n, n, (k, m)))
    raised, *found = check_cuts(compile_graph(graph, host_target.target()), arrays)
    assert not raised
    same_bits(found[2], interpret(graph, arrays)[0][2])
    place = np.where(arrays[2][:, 1] < 0, arrays[2][:, 1] + n, arrays[2][:, 1])
    want = arrays[0][:, 1].copy()
    np.add.at(want, place, arrays[1][:, 1])
    same_bits(found[0], want)


@pytest.mark.parametrize("seed", range(3))
def test_nvptx_and_ptxas_accept(seed):
    graph, _ = random_program(seed)
    assert_assembles(ptx.assemble(compile_graph(graph, target.CUDA_SM90)))
