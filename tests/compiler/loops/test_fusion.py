"""What fuses into one kernel, what does not, and that no fusion changes a bit.

Each program is a graph; it is compiled whole and compared, bit for bit, with its nodes run one at a time as eager mode
runs them.  Every program is also compiled for each other target.
"""

import re

import numpy as np
import pytest

from hybridflow.compiler import target
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.graph import Role
from hybridflow.compiler.ir.types import TensorType
from hybridflow.compiler.ops import TABLE
from hybridflow.compiler.pipeline import compile_graph
from hybridflow.runtime import cpu
from hybridflow.runtime.cuda import ptx
from hybridflow.runtime.machine import host_target, machine_code
from tests.compiler.codegen.test_kernels import eager, same_bits
from tests.gpu.test_cuda_emission import assert_assembles


def rows(b, value, like, axes=(0,)):
    return b.broadcast(value, shape=like.shape, axes=axes)


def softmax(b, x):
    e = b.exp(b.subtract(x, rows(b, b.max(x, axes=(1,)), x)))
    return b.divide(e, rows(b, b.sum(e, axes=(1,)), x))


def layer_norm(b, x, gain, bias):
    n = x.shape[1]
    mean = b.divide(b.sum(x, axes=(1,)), b.full(n, TensorType(x.shape[:1], x.dtype)))
    centred = b.subtract(x, rows(b, mean, x))
    variance = b.divide(b.sum(b.square(centred), axes=(1,)), b.full(n, TensorType(x.shape[:1], x.dtype)))
    scale = b.rsqrt(b.add(variance, b.full(1e-5, variance.type)))
    normal = b.multiply(centred, rows(b, scale, x))
    return b.add(b.multiply(normal, rows(b, gain, x, (1,))), rows(b, bias, x, (1,)))


def batch_norm(b, x):
    n = x.shape[0]
    mean = b.divide(b.sum(x, axes=(0,)), b.full(n, TensorType(x.shape[1:], x.dtype)))
    centred = b.subtract(x, rows(b, mean, x, (1,)))
    variance = b.sum(b.square(centred), axes=(0,))
    return b.multiply(centred, rows(b, b.rsqrt(variance), x, (1,)))


def gelu(b, x):
    half, one = b.full(0.5, x.type), b.full(1.0, x.type)
    return b.multiply(b.multiply(x, half), b.add(one, b.erf(b.divide(x, b.full(2**0.5, x.type)))))


def dense(b, x, w, bias):
    y = b.matmul(x, w)
    return gelu(b, b.add(y, rows(b, bias, y, (1,))))


def chain(b, x):
    for _ in range(10):
        x = b.add(b.multiply(b.tanh(x), b.full(1.01, x.type)), b.full(0.1, x.type))
    return x


def several_outputs(b, x, y):
    s = b.add(x, y)
    return s, b.exp(s), b.multiply(s, x)


def through_reshapes(b, x, y):
    flat = b.reshape(b.tanh(x), shape=(x.shape[0] * x.shape[1],))
    return b.reshape(b.multiply(flat, y), shape=(x.shape[1], x.shape[0]))


def through_slices(b, x):
    part = b.slice(x, start=(1, 2), stop=x.shape, step=(1, 1))
    return b.add(b.tanh(part), b.slice(x, start=(0, 0), stop=(x.shape[0] - 1, x.shape[1] - 2), step=(1, 1)))


def two_statistics(b, x):
    return b.sum(x, axes=(1,)), b.max(b.abs(x), axes=(1,)), b.sum(b.square(x), axes=(1,))


def mixed_axes(b, x):
    s = b.sum(b.square(x), axes=(0, 2))
    return b.divide(x, rows(b, b.sqrt(s), x, (1,)))


def masked_log_softmax(b, x, keep):
    low = b.full(-1e9, x.type)
    shown = b.where(keep, x, low)
    shifted = b.subtract(shown, rows(b, b.max(shown, axes=(1,)), x))
    return b.subtract(shifted, rows(b, b.log(b.sum(b.exp(shifted), axes=(1,))), x))


def concat_of_activations(b, x, y):
    return b.concat(b.tanh(x), b.multiply(y, y), axis=1)


def gathered(b, x, index):
    return b.multiply(b.take(x, index, axis=0), b.take(x, index, axis=0))


RNG = np.random.default_rng(5)


def dense_and_its_derivative(b, x, w, bias, v):
    """What a network does with gelu(x @ w + bias) @ v, and the cotangent of what gelu is given."""
    y = b.matmul(x, w)
    y = b.add(y, rows(b, bias, y, (1,)))
    half, one, root = (b.full(value, y.type) for value in (0.5, 1.0, 0.5**0.5))
    halved, scaled = b.multiply(y, half), b.multiply(y, root)
    above = b.add(b.erf(scaled), one)
    z = b.matmul(b.multiply(halved, above), v)
    g = b.matmul(z, v, transpose_b=True)
    slope = b.multiply(b.exp(b.negative(b.square(scaled))), b.full(1.128, y.type))
    return z, b.add(b.multiply(g, above), b.multiply(b.multiply(b.multiply(g, halved), slope), root))


def heads_together(b, x, g):
    """A product with g, [part, entry, head, step, width], as [entry and step, part and head and width]."""
    parts, entries, heads, steps, width = g.shape
    g = b.transpose(g, perm=(1, 3, 0, 2, 4))
    return b.matmul(x, b.reshape(g, shape=(entries * steps, parts * heads * width)), transpose_a=True)


def floats(*shape, dtype=np.float32):
    return RNG.standard_normal(shape).astype(dtype)


# name: (program, arguments, kernels)
PROGRAMS = {
    "sum(x + y * z)": (lambda b, x, y, z: b.sum(b.add(x, b.multiply(y, z)), axes=(0,)), [floats(5003)] * 3, 1),
    "softmax": (softmax, [floats(37, 130)], 1),
    "softmax of short rows": (softmax, [floats(60, 10)], 1),
    "softmax in float16": (softmax, [floats(9, 33, dtype=np.float16)], 1),
    "layer_norm": (layer_norm, [floats(21, 200), floats(200), floats(200)], 1),
    "layer_norm in float64": (
        layer_norm,
        [floats(5, 67, dtype=np.float64), floats(67, dtype=np.float64), floats(67, dtype=np.float64)],
        1,
    ),
    "batch_norm": (batch_norm, [floats(150, 70)], 1),
    "gelu": (gelu, [floats(999)], 1),
    "dense with gelu": (dense, [floats(31, 50), floats(50, 41), floats(41)], 1),
    "chain of thirty": (chain, [floats(1024)], 1),
    "several outputs": (several_outputs, [floats(7, 9), floats(7, 9)], 1),
    "through reshapes": (through_reshapes, [floats(6, 10), floats(60)], 1),
    "through slices": (through_slices, [floats(12, 19)], 1),
    "two statistics": (two_statistics, [floats(8, 300)], 1),
    "mixed axes": (mixed_axes, [floats(4, 5, 70)], 1),
    "masked log softmax": (masked_log_softmax, [floats(6, 45), RNG.random((6, 45)) < 0.7], 1),
    "concat of activations": (concat_of_activations, [floats(5, 7), floats(5, 30)], 1),
    "gathered": (gathered, [floats(30, 17), np.array([0, -1, 29, 3])], 1),
    "sum with a transpose": (
        lambda b, x, y: b.add(b.transpose(x, perm=(1, 0)), b.exp(y)),
        [floats(37, 50), floats(50, 37)],
        1,
    ),
    "transposes of three axes": (
        lambda b, x: (b.transpose(x, perm=(2, 0, 1)), b.transpose(b.tanh(x), perm=(0, 2, 1))),
        [floats(18, 33, 40)],
        2,
    ),
    "transposed bools": (lambda b, x: b.transpose(x, perm=(1, 0)), [RNG.random((33, 48)) < 0.5], 1),
    "transposed doubles": (lambda b, x: b.transpose(x, perm=(1, 0)), [floats(64, 32, dtype=np.float64)], 1),
    "long rows are read twice": (
        lambda b, x: b.divide(x, b.broadcast(b.sum(x, axes=(0,)), shape=x.shape, axes=())),
        [np.abs(floats(2_000_000)) + 1],
        2,
    ),
    "softmax of a transpose": (
        lambda b, x: softmax(b, b.transpose(b.exp(b.tanh(x)), perm=(1, 0))),
        [floats(24, 40)],
        1,
    ),
    "sum and transpose of one value": (
        lambda b, x: b.add(b.tanh(x), b.transpose(b.exp(b.tanh(x)), perm=(1, 0))),
        [floats(40, 40)],
        2,
    ),
    "two products": (lambda b, x, y: b.matmul(b.tanh(b.matmul(x, y)), y), [floats(20, 20), floats(20, 20)], 2),
    "a layer and its derivative": (
        dense_and_its_derivative,
        [floats(70, 40), floats(40, 90), floats(90), floats(90, 24)],
        3,
    ),
    "heads of whole vectors": (heads_together, [floats(300, 50), floats(3, 10, 4, 30, 32)], 1),
    "heads of parts of vectors": (heads_together, [floats(300, 50), floats(3, 10, 5, 30, 24)], 1),
    "heads of odd widths": (heads_together, [floats(300, 50), floats(3, 10, 5, 30, 15)], 1),
    "heads and a rest": (heads_together, [floats(300, 50), floats(2, 10, 3, 30, 16)], 1),
    "sums over different axes": (
        lambda b, x: (b.sum(x, axes=(0,)), b.sum(x, axes=(1,))),
        [floats(30, 40)],
        2,
    ),
}


def build(program, arrays):
    b = GraphBuilder(TABLE, "program")
    parameters = [b.parameter(TensorType(a.shape, a.dtype)) for a in arrays]
    out = program(b, *parameters)
    return b.finish(out if isinstance(out, tuple) else (out,))


def run_one_by_one(graph, arrays):
    """Outputs, then updates, of ops that run each by itself, from and to memory of its own."""
    values = dict(zip(graph.inputs, arrays))
    for node in graph.nodes:
        values[node] = eager(node.op, tuple(np.asarray(values[n]) for n in node.inputs), node.attrs)
    return [values[n] for n in (*graph.outputs, *(graph.updates[i] for i in sorted(graph.updates)))]


@pytest.mark.parametrize("name", PROGRAMS)
def test_fused_bits_and_kernel_count(name):
    program, arrays, kernels = PROGRAMS[name]
    graph = build(program, arrays)
    compiled = compile_graph(graph, host_target.target())
    assert len(compiled.kernels) == kernels, [k.name for k in compiled.kernels]
    for got, want in zip(cpu.load(compiled).run(arrays), run_one_by_one(graph, arrays), strict=True):
        same_bits(got, want)


def test_one_array_serves_all_that_is_cheaply_made_of_it():
    """The derivative needs x / 2, x / sqrt(2) and exp(-x * x / 2): they are made of x, which lies in memory once."""
    program, arrays, _ = PROGRAMS["a layer and its derivative"]
    compiled = compile_graph(build(program, arrays), host_target.target())
    of_x = 70 * 90 * 4
    given = sum(array.nbytes for array in arrays[:3])
    assert compiled.kernels[0].bytes == given + 2 * of_x  # x, and 1 + erf(x / sqrt(2))
    assert compiled.arena_bytes < 3 * of_x


@pytest.mark.parametrize("name", PROGRAMS)
def test_bits_do_not_depend_on_the_vector_width(name):
    program, arrays, _ = PROGRAMS[name]
    graph = build(program, arrays)
    results = []
    for other in ("sse2", "avx2", "avx512"):
        if host_target.can_run(target.NAMED[other]):
            results.append(cpu.load(compile_graph(graph, target.NAMED[other])).run(arrays))
    for other in results[1:]:
        for got, want in zip(other, results[0], strict=True):
            same_bits(got, want)


@pytest.mark.parametrize("name", PROGRAMS)
def test_aarch64_accepts(name):
    program, arrays, _ = PROGRAMS[name]
    compiled = compile_graph(build(program, arrays), target.AARCH64)
    assert machine_code.compile_object(compiled.text, compiled.target)


@pytest.mark.parametrize("name", PROGRAMS)
def test_nvptx_and_ptxas_accept(name):
    program, arrays, _ = PROGRAMS[name]
    assert_assembles(ptx.assemble(compile_graph(build(program, arrays), target.CUDA_SM90)))


def test_state_is_updated_in_place_after_its_last_reader():
    b = GraphBuilder(TABLE, "step")
    x = b.parameter(TensorType((40, 8), dt.float32))
    w = b.parameter(TensorType((8, 8), dt.float32), "w", Role.STATE)
    y = b.matmul(x, w)
    g = b.matmul(x, y, transpose_a=True)
    new = b.subtract(w, b.multiply(g, b.full(0.01, g.type)))
    graph = b.finish([b.sum(y, axes=(0, 1)), w], {1: new})
    arrays = [floats(40, 8), floats(8, 8)]
    old = arrays[1].copy()
    program = compile_graph(graph, host_target.target())
    assert ("matmul", "multiply", "subtract") in [k.ops for k in program.kernels]  # the update is an epilogue
    total, before = cpu.load(program).run(arrays)
    want_y = arrays[0] @ old
    np.testing.assert_allclose(total, want_y.sum(), rtol=1e-4)
    np.testing.assert_array_equal(before, old)
    np.testing.assert_allclose(arrays[1], old - 0.01 * (arrays[0].T @ want_y), rtol=1e-4, atol=1e-5)


def test_states_can_be_swapped():
    b = GraphBuilder(TABLE, "swap")
    u = b.parameter(TensorType((5,), dt.float32), "u", Role.STATE)
    v = b.parameter(TensorType((5,), dt.float32), "v", Role.STATE)
    graph = b.finish([], {0: v, 1: u})
    arrays = [floats(5), floats(5)]
    want = [arrays[1].copy(), arrays[0].copy()]
    cpu.load(compile_graph(graph, host_target.target())).run(arrays)
    np.testing.assert_array_equal(arrays, want)


def test_arguments_and_repeats_may_be_outputs():
    b = GraphBuilder(TABLE, "outputs")
    x = b.parameter(TensorType((2, 3), dt.float32))
    y = b.exp(x)
    graph = b.finish([x, y, y, b.reshape(x, shape=(6,)), b.transpose(x, perm=(1, 0))])
    array = floats(2, 3)
    outputs = cpu.load(compile_graph(graph, host_target.target())).run([array])
    np.testing.assert_array_equal(outputs[0], array)
    np.testing.assert_array_equal(outputs[1], outputs[2])
    np.testing.assert_array_equal(outputs[3], array.ravel())
    np.testing.assert_array_equal(outputs[4], array.T)
    assert len({o.ctypes.data for o in outputs}) == 5


def test_arena_ranges_are_reused():
    b = GraphBuilder(TABLE, "layers")
    x = b.parameter(TensorType((64, 64), dt.float32))
    y = x
    for _ in range(10):
        y = b.matmul(b.matmul(y, x), x)
    program = compile_graph(b.finish([y]), host_target.target())
    assert program.arena_bytes < 2 * 64 * 64 * 4 + 2_000_000
    scratch = compile_graph(build(lambda b, x: b.matmul(x, x), [floats(64, 64)]), host_target.target()).arena_bytes
    assert program.arena_bytes - scratch <= 2 * 64 * 64 * 4


def test_the_same_graph_gives_the_same_text():
    program, arrays, _ = PROGRAMS["layer_norm"]
    first, second = (compile_graph(build(program, arrays), host_target.target()).text for _ in range(2))
    assert first == second


def test_a_value_takes_over_memory_only_of_elements_of_its_size():
    b = GraphBuilder(TABLE, "halves")
    x = b.cumulative_sum(b.parameter(TensorType((512,), dt.float16)), axis=0)
    half = b.convert(b.slice(x, start=(0,), stop=(256,), step=(1,)), dtype=dt.float32)  # as many bytes as x
    graph = b.finish([b.cumulative_sum(b.add(half, half), axis=0)])
    array = np.arange(512).astype(np.float16) / 64
    (got,) = cpu.load(compile_graph(graph, host_target.target())).run([array])
    same_bits(got, run_one_by_one(graph, [array])[0])


def test_statistics_of_columns_leave_room_on_the_stack():
    def program(b, x):
        sums = [b.sum(b.multiply(x, b.full(k, x.type)), axes=(0,)) for k in range(2, 14)]
        for _ in range(20):
            sums = [b.tanh(s) for s in sums]
        return tuple(sums)

    array = floats(3, 5000) / 100
    graph = build(program, [array])
    compiled = compile_graph(graph, host_target.target())
    cells = [int(n) for n in re.findall(r"alloca \[(\d+) x i8\]", compiled.text)]
    assert sum(cells) < 200_000
    for got, want in zip(cpu.load(compiled).run([array]), run_one_by_one(graph, [array]), strict=True):
        same_bits(got, want)


def turned(b, y):
    flat = b.reshape(b.transpose(y, perm=(1, 0)), shape=(9,))
    return b.reverse(b.slice(flat, start=(0,), stop=(7,), step=(1,)), axes=(0,))


def test_reversed_views_of_reshaped_transposes_read_what_they_should():
    array = np.arange(9, dtype=np.float32).reshape(3, 3)
    for name in ("sse2", "avx2", "avx512"):
        if host_target.can_run(target.NAMED[name]):
            (got,) = cpu.load(compile_graph(build(turned, [array]), target.NAMED[name])).run([array])
            np.testing.assert_array_equal(got, array.T.ravel()[:7][::-1])


def updated(b, x, g, w, m):
    """Weights and a moment after a step: w, m and the gradient, a product, are read side by side."""
    d = b.matmul(x, g, transpose_a=True)
    m = b.add(b.multiply(m, b.full(0.5, m.type)), d)
    return m, b.subtract(w, b.multiply(m, b.full(0.25, m.type)))


@pytest.mark.parametrize("other", ["avx2", "avx512", "aarch64"])
@pytest.mark.parametrize("columns, is_far", [(48, False), (200, True)])
def test_what_lies_beside_a_product_is_asked_for_where_it_is_too_large_for_the_cache(columns, is_far, other):
    arrays = [floats(300, 60), floats(300, columns), floats(60, columns), floats(60, columns)]
    graphs = build(updated, arrays), build(lambda b, x, g: b.matmul(x, g, transpose_a=True), arrays[:2])
    asks, alone = (compile_graph(g, target.NAMED[other]).text.count("call void @llvm.prefetch") for g in graphs)
    assert asks > alone if is_far else asks == alone


@pytest.mark.parametrize("depth", [3, 300])  # in one block and in two
def test_what_lies_beside_products_in_a_batch_is_read_where_it_is(depth):
    arrays = [floats(2, depth, 515), floats(2, depth, 701), *[floats(2, 515, 701) for _ in range(2)]]
    compiled = compile_graph(build(updated, arrays), host_target.target())
    assert len(compiled.kernels) == 1
    alone = compile_graph(build(lambda b, x, g: b.matmul(x, g, transpose_a=True), arrays[:2]), host_target.target())
    (gradient,) = cpu.load(alone).run(arrays[:2])
    w, m = arrays[2:]
    moment = m * np.float32(0.5) + gradient
    for got, wanted in zip(cpu.load(compiled).run(arrays), (moment, w - moment * np.float32(0.25)), strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_what_is_read_in_slices_is_computed_where_they_are_read():
    """Sides of boxes are kept in no array of their own: their product reads each of them once."""
    arrays = [floats(30, 1, 2), floats(1, 70, 2)]

    def program(b, x, y):
        wide = [b.broadcast(b.reshape(v, shape=s), shape=(30, 70, 2), axes=a) for v, s, a in zip((x, y), shapes, axes)]
        sides = b.tanh(b.subtract(*wide))
        width, height = (b.slice(sides, start=(0, 0, k), stop=(30, 70, k + 1), step=(1, 1, 1)) for k in range(2))
        return b.multiply(width, height)

    shapes, axes = ((30, 2), (70, 2)), ((0, 2), (1, 2))
    graph = build(program, arrays)
    compiled = compile_graph(graph, host_target.target())
    assert len(compiled.kernels) == 1
    for got, wanted in zip(cpu.load(compiled).run(arrays), run_one_by_one(graph, arrays), strict=True):
        np.testing.assert_array_equal(got, wanted)
