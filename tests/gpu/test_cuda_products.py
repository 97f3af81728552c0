"""Products on a GPU by tiles of teams of threads: the bits of the CPU, whichever thread goes first, at all edges."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.types import Dim, TensorType
from hybridflow.compiler.loops import gpu_matmul_tiles
from hybridflow.compiler.loops.gpu_matmul_tiles import GroupTile
from hybridflow.compiler.ops import TABLE
from hybridflow.compiler.ops.evaluation_order import CHUNK, K_BLOCK, SUPERCHUNK
from hybridflow.compiler.pipeline import compile_graph
from hybridflow.compiler.target import CUDA_SM90
from hybridflow.errors import IndexRangeError
from hybridflow.runtime import cpu
from hybridflow.runtime.cuda import executable as cuda, launch_plans
from hybridflow.runtime.machine import host_target
from tests.support.bits import same_bits
from tests.support.cuda_blocks import ORDERS, StuckThreads
from tests.support.cuda_emulator import Array, emulated  # noqa: F401

pytestmark = pytest.mark.sample(4)  # long cases

random = np.random.default_rng(1)


def floats(*shape, dtype=np.float32):
    return random.normal(size=shape).astype(dtype)


def graph_of(function, arrays, specs=None):
    return hf.function(function).get_concrete_function(*(specs or arrays)).graph


def placed(array, offset=0):
    """The array on the emulated GPU, so many elements behind an address where vectors may begin."""
    room = np.zeros(array.size + offset + 64, array.dtype)
    first = (-room.ctypes.data % 64) // array.itemsize
    found = room[first + offset :][: array.size].reshape(array.shape)
    found[...] = array
    return Array(found, 0)


def check(emulated, graph, arrays, how, orders=("forward", "shuffled"), offset=0):  # noqa: F811
    """That a program's products are computed in that way, with the bits of the CPU."""
    program = compile_graph(graph, CUDA_SM90)
    found = [kernel.schedule for kernel in program.kernels]
    assert not how or any(how in schedule for schedule in found), found
    want = cpu.load(compile_graph(graph, host_target.target())).run([np.array(a) for a in arrays])
    executable = cuda.load(program, 0)
    for order in orders:
        emulated.order = order
        got = executable.run([placed(a, offset) for a in arrays])
        assert all(same_bits(g.get(), w) for g, w in zip(got, want, strict=True)), order
    return program


def multiplied(x, y):
    return x @ y


@pytest.fixture
def small(monkeypatch):
    """Tiles that take little to emulate."""
    monkeypatch.setattr(
        gpu_matmul_tiles, "_tiles", lambda itemsize, *_: [GroupTile(32, 32, 4, 4, min(16 // itemsize, 4))]
    )


@pytest.mark.parametrize(
    ("m", "n", "k"),
    [
        (32, 32, 8),
        (33, 65, 9),
        (4, 16, 1),
        (5, 70, 7),
        (64, 31, 16),
        (32, 32, K_BLOCK),
        (6, 9, K_BLOCK + 1),
        (4, 5, 515),
    ],
)
def test_edges_of_tiles(emulated, small, m, n, k):  # noqa: F811
    arrays = [floats(m, k), floats(k, n)]
    check(emulated, graph_of(multiplied, arrays), arrays, "tiles of 32 x 32", tuple(ORDERS))


TILES = [
    GroupTile(8, 64, 4, 4, 4),
    GroupTile(64, 8, 4, 4, 4),
    GroupTile(64, 64, 8, 8, 4),
    GroupTile(16, 128, 4, 8, 4),
    GroupTile(128, 128, 8, 8, 4),
    GroupTile(32, 32, 4, 4, 2),
]


@pytest.mark.parametrize("tile", TILES, ids=str)
def test_tiles(emulated, monkeypatch, tile):  # noqa: F811
    monkeypatch.setattr(gpu_matmul_tiles, "_tiles", lambda *_: [tile])
    dtype = np.float32 if tile.vector == 4 else np.float64
    arrays = [floats(70, 12, dtype=dtype), floats(12, 68, dtype=dtype)]
    check(emulated, graph_of(multiplied, arrays), arrays, str(tile))


@pytest.mark.parametrize("seed", range(8))
def test_all_tiles_that_there_are(emulated, monkeypatch, seed):  # noqa: F811
    """Extents beside those of tiles, one block of the depth or two, in vectors and without."""
    draw = np.random.default_rng(seed)
    m, n, k = (4 * draw.integers((20, 20, 50), (60, 60, 80)) + draw.integers(0, 2, 3)).tolist()
    tiles = gpu_matmul_tiles._tiles(4, True, False)
    tile = tiles[int(draw.integers(len(tiles)))]
    monkeypatch.setattr(gpu_matmul_tiles, "_choose_tile", lambda *_: tile)
    monkeypatch.setattr(gpu_matmul_tiles, "ENOUGH_GROUPS", 1)
    left, right = draw.integers(0, 2, 2)
    arrays = [floats(k, m) if left else floats(m, k), floats(n, k) if right else floats(k, n)]
    graph = graph_of(lambda x, y: (x.T if left else x) @ (y.T if right else y), arrays)
    check(emulated, graph, arrays, str(tile), (str(draw.choice(list(ORDERS))),), int(draw.integers(0, 2)))


@pytest.mark.parametrize("offset", [0, 1])
@pytest.mark.parametrize(("left", "right"), list(itertools.product((False, True), repeat=2)))
def test_transposes(emulated, small, left, right, offset):  # noqa: F811
    """Also where buffers do not begin where vectors may."""
    m, n, k = 36, 40, 12
    arrays = [floats(k, m) if left else floats(m, k), floats(n, k) if right else floats(k, n)]
    graph = graph_of(lambda x, y: (x.T if left else x) @ (y.T if right else y), arrays)
    check(emulated, graph, arrays, "tiles", ("forward",), offset)


def test_batches(emulated, small):  # noqa: F811
    arrays = [floats(3, 9, 7), floats(3, 7, 9), floats(9, 8)]

    def products(x, y, z):
        turned = hf.permute_dims(x, (0, 2, 1))
        return x @ y, turned @ z, hf.matmul(z.T, x), x[::2] @ y[1:]

    check(emulated, graph_of(products, arrays), arrays, "tiles", ("shuffled",))


def test_a_broadcast_batch(emulated, small):  # noqa: F811
    arrays = [floats(2, 1, 9, 6), floats(3, 6, 8)]
    check(emulated, graph_of(multiplied, arrays), arrays, "tiles", ("reversed",))


def test_what_is_computed_on_the_way(emulated, small):  # noqa: F811
    """Producers while factors are read, consumers while sums are stored."""
    index = np.arange(36)[::-1].copy()
    arrays = [floats(36, 24), floats(36, 30), floats(30), floats(24, 30), index]

    def layer(x, y, bias, residual, index):
        z = (x * 2 + 1).T @ hf.exp(hf.take(y, index, axis=0))
        return hf.nn.gelu(z + bias) + residual

    program = check(emulated, graph_of(layer, arrays), arrays, "tiles")
    assert len(program.launches) == 1
    arrays[-1] = index + 1
    with pytest.raises(IndexRangeError):
        cuda.load(program, 0).run([placed(a) for a in arrays])


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16", "int8", "int32", "int64", "uint16"])
@pytest.mark.parametrize("k", [13, K_BLOCK + 3])
def test_dtypes(emulated, dtype, k):  # noqa: F811
    dtype = np.dtype(getattr(hf, dtype))
    arrays = [(3 * floats(9, k)).astype(dtype), (3 * floats(k, 8)).astype(dtype)]
    check(emulated, graph_of(multiplied, arrays), arrays, "tiles", ("shuffled",))


@pytest.mark.parametrize("dtype", [hf.int8, hf.bfloat16])
def test_wide_sums_of_narrow_factors(emulated, small, dtype):  # noqa: F811
    arrays = [(50 * floats(9, 30)).astype(dtype), (50 * floats(30, 8)).astype(dtype)]
    sums = hf.int32 if dtype == hf.int8 else hf.float32
    graph = graph_of(lambda x, y: hf.matmul(x, y, sum_dtype=sums), arrays)
    check(emulated, graph, arrays, "tiles", ("shuffled",))


def test_denormal_sums_of_bfloat16(emulated, small):  # noqa: F811
    scale = np.float32(2.0**-65)
    arrays = [(floats(9, 31) * scale).astype(hf.bfloat16), (floats(31, 8) * scale).astype(hf.bfloat16)]
    graph = graph_of(lambda x, y: hf.matmul(x, y, sum_dtype=hf.float32), arrays)
    check(emulated, graph, arrays, "tiles", ("shuffled",))


def test_what_is_no_number(emulated, small):  # noqa: F811
    """Behind the end of the depth, and beside the product, nothing comes of it."""
    x, y = floats(34, 9), floats(9, 33)
    x[3, 2], x[33, 8], y[4, 5], y[8, 32], x[1] = np.nan, np.inf, -np.inf, np.nan, -0.0
    y[:, 7] = 0
    check(emulated, graph_of(multiplied, [x, y]), [x, y], "tiles", ("forward",))


@pytest.mark.parametrize("offset", [0, 1])
@pytest.mark.parametrize(("m", "n", "k"), [(0, 4, 5), (3, 0, 2), (3, 4, 0), (1, 1, 1), (1, 40, 3), (33, 5, 260)])
def test_symbolic_extents(emulated, small, m, n, k, offset):  # noqa: F811
    spec = hf.TensorSpec([None, None], hf.float32)
    arrays = [floats(m, k), floats(k, n)]
    check(emulated, graph_of(multiplied, arrays, [spec, spec]), arrays, "tiles", ("forward",), offset)


def test_a_symbolic_batch_of_examples(emulated, small):  # noqa: F811
    specs = [hf.TensorSpec([None, 12], hf.float32), hf.TensorSpec([12, 20], hf.float32)]
    arrays = [floats(37, 12), floats(12, 20)]
    check(emulated, graph_of(multiplied, arrays, specs), arrays, "tiles", ("forward",))


def test_blocks_of_the_depth(emulated):  # noqa: F811
    arrays = [floats(2, 9, 3 * K_BLOCK + 5), floats(2, 3 * K_BLOCK + 5, 10)]
    graph = graph_of(lambda x, y: hf.nn.relu(x @ y) + 1, arrays)
    program = check(emulated, graph, arrays, "4 blocks of the depth", tuple(ORDERS))
    assert len(program.launches) == 2


def test_teams_take_several_tiles(emulated, small, monkeypatch):  # noqa: F811
    monkeypatch.setattr(launch_plans, "MOST_THREADS", 128)
    arrays = [floats(70, 10), floats(10, 70)]
    check(emulated, graph_of(multiplied, arrays), arrays, "tiles", tuple(ORDERS))


def test_each_barrier_is_needed(emulated, small, monkeypatch):  # noqa: F811
    monkeypatch.setattr(launch_plans, "MOST_THREADS", 64)
    arrays = [floats(40, 20), floats(20, 40)]
    assert_each_barrier_is_needed(emulated, graph_of(multiplied, arrays), arrays, 4)


def assert_each_barrier_is_needed(emulated, graph, arrays, count):  # noqa: F811
    """That without one of them some order of threads gives something else."""
    program = compile_graph(graph, CUDA_SM90)
    (want,) = cpu.load(compile_graph(graph, host_target.target())).run(arrays)
    call = "call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)"
    parts = program.text.split(call)
    assert len(parts) == count + 1
    for k in range(count):
        executable = cuda.load(replace(program, text=call.join(parts[: k + 1]) + call.join(parts[k + 1 :])), 0)

        def right(order, executable=executable):
            emulated.order = order
            try:
                return same_bits(executable.run([placed(a) for a in arrays])[0].get(), want)
            except StuckThreads:
                return False

        assert not all(map(right, ORDERS)), k


def test_small_products_take_a_thread_for_an_element(emulated):  # noqa: F811
    arrays = [floats(7, 9), floats(9, 9)]
    check(emulated, graph_of(multiplied, arrays), arrays, "an element a thread", ("forward",))


def test_branches_have_no_teams(emulated):  # noqa: F811
    arrays = [floats(9, 9), np.array(True)]
    graph = graph_of(lambda x, flag: hf.cond(flag, lambda: x @ x, lambda: x), arrays)
    check(emulated, graph, arrays, "", ("forward",))


@pytest.mark.parametrize("m", [1, 3])
def test_few_rows(emulated, m):  # noqa: F811
    arrays = [floats(m, 2 * K_BLOCK + 3), floats(2 * K_BLOCK + 3, 130)]
    check(emulated, graph_of(multiplied, arrays), arrays, "3 blocks of the depth", ("forward",))


@pytest.mark.parametrize(
    ("lines", "depth", "team"), [(5, 70, 32), (3, 2, 32), (2, 0, 0), (0, 9, 0), (3, CHUNK + 65, 64)]
)
def test_a_matrix_with_a_vector(emulated, lines, depth, team):  # noqa: F811
    """In the order of a row reduction; a row for each team."""
    arrays = [floats(lines, depth), floats(depth), floats(lines)]
    graph = graph_of(lambda x, y, z: hf.exp(x @ y) + z, arrays)
    check(emulated, graph, arrays, f"a line a team of {team}" if team else "", tuple(ORDERS))


@pytest.mark.parametrize("dtype", ["float64", "bfloat16", "int32"])
def test_a_matrix_with_a_vector_of_each_dtype(emulated, dtype):  # noqa: F811
    arrays = [(3 * floats(*shape)).astype(getattr(hf, dtype)) for shape in ((3, 130), (130, 1))]
    check(emulated, graph_of(multiplied, arrays), arrays, "a line a team", ("shuffled",))


@pytest.mark.parametrize(
    ("lines", "depth"), [(33, 70), (4, 64), (40, 3), (5, CHUNK + 63), (2, SUPERCHUNK + CHUNK + 1), (32, 0)]
)
def test_neighbouring_lines(emulated, lines, depth):  # noqa: F811
    """Columns of what lies in rows, in the same order."""
    b = GraphBuilder(TABLE, "lines")
    x, y = (b.parameter(TensorType(shape, dt.float32)) for shape in ((2, depth, lines), (2, depth, 1)))
    graph = b.finish([b.matmul(x, y, transpose_a=True, lanes=True)])
    arrays = [floats(2, depth, lines), floats(2, depth, 1)]
    check(emulated, graph, arrays, "32 lines a team of 256" if depth else "", ("forward", "shuffled"))


def test_lines_need_each_barrier(emulated, monkeypatch):  # noqa: F811
    monkeypatch.setattr(launch_plans, "MOST_THREADS", 256)
    b = GraphBuilder(TABLE, "lines")
    x, y = (b.parameter(TensorType(shape, dt.float32)) for shape in ((70, 40), (70, 1)))
    assert_each_barrier_is_needed(
        emulated, b.finish([b.matmul(x, y, transpose_a=True, lanes=True)]), [floats(70, 40), floats(70, 1)], 2
    )


SIZES = [(4096, 4096, 4096), (1000, 1000, 1000), (64, 64, 1 << 16), (8, 4096, 4096), (100000, 16, 64), (None,) * 3]


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("itemsize", [4, 8])
def test_the_choice(size, itemsize):
    """Tiles fit registers and the memory of a block, and small products are cut into enough of them."""
    m, n, k = (Dim(name) if extent is None else extent for name, extent in zip("mnk", size))
    how = gpu_matmul_tiles.choose((), m, n, k, itemsize, True, False)
    tile = how.tile
    assert 64 <= tile.threads <= 256 and tile.nbytes(itemsize) <= 48 * 1024
    assert tile.warp[0] * tile.warp[1] == 32 and tile.threads_across % tile.warp[1] == 0
    if size == (4096, 4096, 4096) and itemsize == 4:
        assert (tile.rows, tile.columns, tile.high, tile.wide) == (128, 128, 8, 8)
    if None not in size:
        assert tile.times(m, n) * how.blocks >= 64
