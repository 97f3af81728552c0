"""Products read their factors through views and through what is cheap to compute: the same bits, and no memory."""

import numpy as np
import pytest

from hybridflow.compiler import target
from hybridflow.compiler.autodiff import backward, records_of
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.types import TensorType
from hybridflow.compiler.ops import TABLE
from hybridflow.compiler.pipeline import compile_graph
from hybridflow.errors import IndexRangeError
from hybridflow.runtime import cpu
from hybridflow.runtime.cuda import ptx
from hybridflow.runtime.machine import host_target
from tests.compiler.codegen.test_kernels import same_bits
from tests.compiler.loops.test_fusion import build, floats, run_one_by_one
from tests.gpu.test_cuda_emission import assert_assembles
from tests.support.cutting_host import check_cuts, cutting

RNG = np.random.default_rng(9)


def heads(b, x, batch, length, count, size):
    return b.transpose(b.reshape(x, shape=(batch, length, count, size)), perm=(0, 2, 1, 3))


def scores(b, q, k):
    return b.matmul(heads(b, q, 2, 21, 3, 16), b.transpose(heads(b, k, 2, 21, 3, 16), perm=(0, 1, 3, 2)))


def attended(b, p, v, w):
    """Weights by values, heads side by side again, and a projection: two products."""
    out = b.matmul(p, heads(b, v, 2, 21, 3, 16))
    return b.matmul(b.reshape(b.transpose(out, perm=(0, 2, 1, 3)), shape=(42, 48)), w)


def windows(b, x, w, step=1, dilation=1):
    """Convolution of x[n, h, w, c] with w[kh, kw, c, o], as one product."""
    kh, kw, c, o = w.shape
    seen = b.windows(x, axes=(1, 2), size=(kh, kw), step=(step, step), dilation=(dilation, dilation))
    n, high, wide = seen.type.shape[:3]
    flat = b.reshape(seen, shape=(n * high * wide, kh * kw * c))
    return b.reshape(b.matmul(flat, b.reshape(w, shape=(kh * kw * c, o))), shape=(n, high, wide, o))


def dropped(b, x, w, keep):
    return b.matmul(b.where(keep, b.multiply(x, b.full(1.25, x.type)), b.full(0, x.type)), w)


# name: (program, arguments)
FACTORS = {
    "converted": (
        lambda b, x, w: b.matmul(b.convert(x, dtype=dt.float32), b.convert(w, dtype=dt.float32)),
        [floats(19, 300, dtype=np.float16), floats(300, 45, dtype=np.float16)],
    ),
    "scaled": (
        lambda b, x, w, s: b.matmul(b.multiply(x, b.broadcast(s, shape=x.shape, axes=(1,))), w),
        [floats(40, 37), floats(37, 50), floats(37)],
    ),
    "dropped out": (dropped, [floats(20, 30), floats(30, 33), RNG.random((20, 30)) < 0.8]),
    "sliced and strided": (
        lambda b, x, w: b.matmul(
            b.slice(x, start=(3, 1), stop=(40, 61), step=(2, 3)), b.slice(w, start=(0, 5), stop=(20, 45), step=(1, 1))
        ),
        [floats(41, 64), floats(20, 50)],
    ),
    "reversed": (
        lambda b, x, w: b.matmul(b.reverse(x, axes=(1,)), b.reverse(w, axes=(0, 1))),
        [floats(17, 33), floats(33, 40)],
    ),
    "gathered": (
        lambda b, x, w, i: b.matmul(b.take(x, i, axis=0), w),
        [floats(30, 45), floats(45, 18), RNG.integers(-30, 30, 23)],
    ),
    "columns gathered": (
        lambda b, x, w, i: b.matmul(x, b.take(w, i, axis=1)),
        [floats(30, 45), floats(45, 18), RNG.integers(-18, 18, 37)],
    ),
    "a broadcast batch": (
        lambda b, x, w: b.matmul(x, b.broadcast(w, shape=(6, *w.shape), axes=(1, 2))),
        [floats(6, 20, 33), floats(33, 18)],
    ),
    "heads": (scores, [floats(2, 21, 48), floats(2, 21, 48)]),
    "all axes permuted": (
        lambda b, x, y: b.matmul(b.transpose(x, perm=(2, 0, 1)), b.transpose(y, perm=(1, 2, 0))),
        [floats(12, 19, 5), floats(18, 5, 19)],
    ),
    "a column of a broadcast": (
        lambda b, x, y: b.matmul(b.transpose(x, perm=(1, 0)), b.broadcast(y, shape=(40, 1), axes=())),
        [floats(40, 70), floats()],
    ),
    "all of one value": (
        lambda b, x, y: b.matmul(b.broadcast(x, shape=(30, 20), axes=(0,)), b.broadcast(y, shape=(20, 33), axes=(1,))),
        [floats(30), floats(33)],
    ),
    "windows": (windows, [floats(2, 9, 10, 5), floats(3, 3, 5, 20)]),
    "windows apart": (lambda b, x, w: windows(b, x, w, 2, 2), [floats(2, 11, 12, 3), floats(3, 2, 3, 18)]),
    "windows of whole rows": (windows, [floats(3, 8, 6, 16), floats(2, 1, 16, 24)]),
    "weights' gradient of windows": (
        lambda b, x, g: b.matmul(
            b.transpose(
                b.reshape(
                    b.windows(x, axes=(1, 2), size=(3, 3), step=(1, 1), dilation=(1, 1)), shape=(2 * 7 * 8, 9 * 5)
                ),
                perm=(1, 0),
            ),
            b.reshape(g, shape=(2 * 7 * 8, 20)),
        ),
        [floats(2, 9, 10, 5), floats(2, 7, 8, 20)],
    ),
    "integers": (
        lambda b, x, y: b.matmul(b.add(x, b.full(1, x.type)), b.transpose(y, perm=(1, 0))),
        [RNG.integers(-99, 99, (23, 35)).astype(np.int16), RNG.integers(-99, 99, (40, 35)).astype(np.int16)],
    ),
    "deep and scaled": (
        lambda b, x, w: b.matmul(b.multiply(x, b.full(0.5, x.type)), b.transpose(b.negative(w), perm=(1, 0))),
        [floats(30, 700), floats(64, 700)],
    ),
    "a factor that is added as well": (
        lambda b, x, w: b.add(b.matmul(b.negative(x), w), b.negative(x)),
        [floats(25, 25), floats(25, 25)],
    ),
    "a dear factor of a small product": (lambda b, x, w: b.matmul(b.tanh(x), w), [floats(33, 40), floats(40, 50)]),
    "a dear factor read across": (
        lambda b, x, w: b.matmul(w, b.transpose(b.tanh(x), perm=(1, 0))),
        [floats(33, 40), floats(50, 40)],
    ),
}


def check_one_kernel(program, arrays, most_bytes):
    """Assert that a program is one kernel with no more memory than that, and has the bits of ops run one by one at any
    vector width and however it is cut."""
    graph = build(program, arrays)
    expected = run_one_by_one(graph, arrays)
    for other in ("sse2", "avx2", "avx512"):
        if host_target.can_run(target.NAMED[other]):
            compiled = compile_graph(graph, target.NAMED[other])
            assert len(compiled.kernels) == 1, [k.name for k in compiled.kernels]
            assert most_bytes is None or compiled.arena_bytes <= most_bytes
            (got,) = cpu.load(compiled).run(arrays)
            same_bits(got, expected[0])
    check_cuts(compile_graph(graph, host_target.target()), arrays)
    assert_assembles(ptx.assemble(compile_graph(graph, target.CUDA_SM90)))


# The sums of three blocks of the depth, which workers share out: memory of results, not of factors.
SUMS_OF_BLOCKS = {"deep and scaled": 3 * 30 * 64 * 4}


@pytest.mark.parametrize("name", FACTORS)
def test_factors_take_no_memory_and_keep_their_bits(name):
    check_one_kernel(*FACTORS[name], most_bytes=SUMS_OF_BLOCKS.get(name, 0))


@pytest.mark.parametrize(("m", "n", "k"), [(600, 70, 300), (33, 700, 40), (1030, 130, 20), (64, 1, 30), (1, 200, 520)])
def test_blocks_of_rows_and_columns_may_be_cut_anywhere(m, n, k):
    arrays = [floats(m, k), floats(k, n)]
    check_cuts(compile_graph(build(lambda b, x, y: b.matmul(x, y), arrays), host_target.target()), arrays)


def test_a_large_product_has_work_for_many():
    arrays = [floats(2048, 4), floats(4, 2048)]
    compiled = compile_graph(build(lambda b, x, y: b.matmul(x, y), arrays), host_target.target())
    with cutting(0) as workers:
        cpu.load(compiled).run(arrays)
    ((units, pieces),) = workers.loops
    assert units >= 64
    assert pieces > 1


def test_heads_are_moved_apart_and_together_without_copies():
    arrays = [floats(2, 3, 21, 21), floats(2, 21, 48), floats(48, 32)]
    graph = build(attended, arrays)
    compiled = compile_graph(graph, host_target.target())
    assert [k.ops for k in compiled.kernels] == [("matmul",), ("matmul",)]
    same_bits(cpu.load(compiled).run(arrays)[0], run_one_by_one(graph, arrays)[0])


def test_a_dear_factor_that_would_be_packed_often_is_stored_once():
    b = GraphBuilder(TABLE, "wide")
    x, w = b.parameter(TensorType((64, 64), dt.float32)), b.parameter(TensorType((64, 4096), dt.float32))
    compiled = compile_graph(b.finish([b.matmul(b.tanh(x), w)]), target.AVX512)
    assert [k.name for k in compiled.kernels] == ["tanh", "matmul"]


def test_an_index_is_checked_though_no_column_reads_what_it_takes():
    b = GraphBuilder(TABLE, "empty")
    x, i = b.parameter(TensorType((5, 4), dt.float32)), b.parameter(TensorType((3,), dt.int64))
    w = b.parameter(TensorType((4, 0), dt.float32))
    compiled = compile_graph(b.finish([b.matmul(b.take(x, i, axis=0), w)]), host_target.target())
    with pytest.raises(IndexRangeError):
        cpu.load(compiled).run([floats(5, 4), np.array([0, 5, 1]), floats(4, 0)])


def test_a_bad_index_of_a_gathered_factor_raises():
    b = GraphBuilder(TABLE, "gathered")
    x, i = b.parameter(TensorType((5, 4), dt.float32)), b.parameter(TensorType((3,), dt.int64))
    w = b.parameter(TensorType((4, 6), dt.float32))
    compiled = compile_graph(b.finish([b.matmul(b.take(x, i, axis=0), w)]), host_target.target())
    assert len(compiled.kernels) == 1
    with pytest.raises(IndexRangeError):
        cpu.load(compiled).run([floats(5, 4), np.array([0, 5, 1]), floats(4, 6)])
    (got,) = cpu.load(compiled).run([np.eye(5, 4, dtype=np.float32), np.array([0, -1, 1]), floats(4, 6)])
    assert np.isfinite(got).all()


# ---- convolution: padding, windows, a product


def convolution(b, x, w, step, dilation, pad):
    ends = (0, pad, pad, 0)
    return windows(b, b.pad(x, low=ends, high=ends, interior=(0,) * 4, value=0), w, step, dilation)


def reference(x, w, step, dilation, pad):
    """By its definition, in float64."""
    x, w = x.astype(np.float64), w.astype(np.float64)
    x = np.pad(x, ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    kh, kw = w.shape[:2]
    high, wide = ((x.shape[a] - (k - 1) * dilation - 1) // step + 1 for a, k in ((1, kh), (2, kw)))
    out = np.zeros((x.shape[0], high, wide, w.shape[3]))
    for i in range(kh):
        for j in range(kw):
            part = x[:, i * dilation :: step, j * dilation :: step][:, :high, :wide]
            out += np.einsum("nhwc,co->nhwo", part, w[i, j])
    return out


def reference_gradients(x, w, g, step, dilation, pad):
    """The convolution is linear in each of its arguments: the gradients are its transposes."""
    g = g.astype(np.float64)
    for_x, for_w = np.zeros(x.shape), np.zeros(w.shape)
    x64, w64 = x.astype(np.float64), w.astype(np.float64)
    for (i, j), _ in np.ndenumerate(np.zeros(w.shape[:2])):
        for oh in range(g.shape[1]):
            for ow in range(g.shape[2]):
                h, v = oh * step + i * dilation - pad, ow * step + j * dilation - pad
                if 0 <= h < x.shape[1] and 0 <= v < x.shape[2]:
                    for_x[:, h, v] += g[:, oh, ow] @ w64[i, j].T
                    for_w[i, j] += x64[:, h, v].T @ g[:, oh, ow]
    return for_x, for_w


SHAPES = {
    "plain": ((2, 7, 8, 3), (3, 3, 3, 5), 1, 1, 0),
    "padded": ((2, 6, 7, 4), (3, 3, 4, 6), 1, 1, 1),
    "strided": ((3, 9, 8, 3), (3, 2, 3, 4), 2, 1, 1),
    "dilated": ((1, 9, 10, 2), (3, 3, 2, 4), 1, 2, 2),
    "points": ((2, 5, 5, 6), (1, 1, 6, 7), 1, 1, 0),
    "strided points": ((2, 5, 5, 6), (1, 1, 6, 7), 2, 1, 0),
    "wide windows": ((1, 12, 12, 1), (5, 5, 1, 8), 1, 1, 2),
}


@pytest.mark.parametrize("name", SHAPES)
def test_convolutions_and_their_gradients(name):
    x_shape, w_shape, step, dilation, pad = SHAPES[name]
    x, w = floats(*x_shape), floats(*w_shape)
    b = GraphBuilder(TABLE, "convolution")
    px, pw = b.parameter(TensorType(x_shape, dt.float32)), b.parameter(TensorType(w_shape, dt.float32))
    out = convolution(b, px, pw, step, dilation, pad)
    pg = b.parameter(TensorType(out.shape, dt.float32))
    graph = b.finish([out, *backward(b, records_of(b.nodes), [(out, pg)], [px, pw])])
    g = floats(*out.shape)
    arrays = [x, w, g]
    got = cpu.load(compile_graph(graph, host_target.target())).run(arrays)
    for value, one in zip(got, run_one_by_one(graph, arrays), strict=True):
        same_bits(value, one)
    expected = reference(x, w, step, dilation, pad), *reference_gradients(x, w, g, step, dilation, pad)
    for value, exact in zip(got, expected):
        np.testing.assert_allclose(value, exact, rtol=0, atol=1e-4 * np.abs(exact).max())


def test_a_convolution_and_the_gradient_of_its_weights_lay_out_no_windows():
    x_shape, w_shape = (4, 16, 16, 8), (3, 3, 8, 12)
    b = GraphBuilder(TABLE, "convolution")
    px, pw = b.parameter(TensorType(x_shape, dt.float32)), b.parameter(TensorType(w_shape, dt.float32))
    out = convolution(b, px, pw, 1, 1, 1)
    pg = b.parameter(TensorType(out.shape, dt.float32))
    compiled = compile_graph(
        b.finish([out, *backward(b, records_of(b.nodes), [(out, pg)], [pw])]), host_target.target()
    )
    padded = 4 * 18 * 18 * 8 * 4
    assert [k.ops for k in compiled.kernels] == [("pad",), ("matmul",), ("matmul",)]
    assert compiled.arena_bytes == -(-padded // 64) * 64


# ---- scans and sorts


IN_ORDER = {
    "a running sum of products": (
        lambda b, x, y: b.cumulative_sum(b.multiply(x, y), axis=1),
        [floats(5, 700), floats(5, 700)],
    ),
    "down the columns": (lambda b, x, y: b.cumulative_sum(b.subtract(x, y), axis=0), [floats(300, 7), floats(300, 7)]),
    "a long line": (lambda b, x: b.cumulative_sum(b.add(x, b.full(1, x.type)), axis=0), [floats(20_000)]),
    "from the end": (lambda b, x: b.cumulative_sum(b.reverse(x, axes=(0,)), axis=0), [floats(1001)]),
    "of a narrow type": (
        lambda b, x: b.cumulative_sum(b.convert(x, dtype=dt.float32), axis=1),
        [floats(4, 333, dtype=np.float16)],
    ),
    "two inputs": (
        lambda b, x, y: b.linear_recurrence(b.negative(x), b.multiply(x, y), axis=0),
        [floats(90, 3), floats(90, 3)],
    ),
    "of what is sliced": (
        lambda b, x: b.cumulative_sum(b.slice(x, start=(3,), stop=(500,), step=(1,)), axis=0),
        [floats(600)],
    ),
    "positions of negated": (lambda b, x: b.argsort(b.negative(x), axis=1, descending=False), [floats(7, 200)]),
    "positions of a comparison": (
        lambda b, x, y: b.argsort(b.less(x, y), axis=0, descending=True),
        [floats(130, 3), floats(130, 3)],
    ),
    "positions along a line": (lambda b, x: b.argsort(b.negative(x), axis=0, descending=False), [floats(9000)]),
    "positions of halves": (
        lambda b, x: b.argsort(b.convert(x, dtype=dt.float16), axis=0, descending=False),
        [floats(50)],
    ),
}


@pytest.mark.parametrize("name", IN_ORDER)
def test_scans_and_sorts_compute_what_they_read(name):
    check_one_kernel(*IN_ORDER[name], most_bytes=None if name == "positions along a line" else 255)  # totals of chunks


def test_what_would_divide_positions_in_each_step_is_stored():
    arrays = [floats(30, 40), floats(40)]
    for program in (
        lambda b, x, w: b.cumulative_sum(b.multiply(x, b.broadcast(w, shape=x.shape, axes=(1,))), axis=1),
        lambda b, x, w: b.cumulative_sum(b.transpose(x, perm=(1, 0)), axis=1),
    ):
        graph = build(program, arrays)
        compiled = compile_graph(graph, host_target.target())
        assert len(compiled.kernels) == 2
        same_bits(cpu.load(compiled).run(arrays)[0], run_one_by_one(graph, arrays)[0])


def repeated(b, x, shape):
    """x as NumPy broadcasts it."""
    axes = [(axis + len(shape) - len(x.shape), n) for axis, n in enumerate(x.shape) if n != 1]
    own = b.reshape(x, shape=tuple(n for _, n in axes))
    return b.broadcast(own, shape=shape, axes=tuple(axis for axis, _ in axes))


@pytest.mark.parametrize("columns", [10, 64, 257])
@pytest.mark.parametrize("shape", [(257,), (9, 1), (2, 1, 257), (2, 9, 1), (2, 1, 1)], ids=str)
def test_what_is_repeated_along_the_lines_of_a_product_is_found_without_divisions(columns, shape):
    shape = tuple(columns if n == 257 else n for n in shape)
    arrays = [floats(2, 9, 8), floats(2, 8, columns), floats(*shape)]
    graph = build(lambda b, x, y, z: b.add(b.matmul(x, y), repeated(b, z, (2, 9, columns))), arrays)
    program = compile_graph(graph, target.AVX512)
    assert "urem" not in program.text
    _, found = check_cuts(compile_graph(graph, host_target.target()), arrays)
    (expected,) = run_one_by_one(graph, arrays)
    same_bits(expected, found)
