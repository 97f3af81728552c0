"""Products by tensor cores, which fastmath allows: emulated, and against references in higher precision."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.compiler.loops import gpu_matmul_tiles
from hybridflow.compiler.loops.gpu_matmul_tiles import TensorCoreTile
from hybridflow.compiler.pipeline import compile_graph
from hybridflow.compiler.target import CUDA_SM90
from hybridflow.runtime.cuda import executable as cuda
from tests.gpu.test_cuda_products import floats, graph_of, placed
from tests.support.cuda_blocks import ORDERS, StuckThreads
from tests.support.cuda_emulator import emulated  # noqa: F401

FASTER = {"bfloat16": hf.bfloat16, "float16": hf.float16}


def narrow(*shape, dtype=hf.bfloat16):
    return floats(*shape).astype(dtype)


def run(emulated, graph, arrays, how="fragments", order="shuffled", offset=0):  # noqa: F811
    program = compile_graph(graph, CUDA_SM90, fastmath=True)
    found = [kernel.schedule for kernel in program.kernels]
    assert any(how in schedule for schedule in found), found
    emulated.order = order
    return program, cuda.load(program, 0).run([placed(a, offset) for a in arrays])[0].get()


def near(got, want):
    """To the precision of float32 sums, or of narrow results."""
    precision = 2.0**-7 if got.dtype.itemsize == 2 else 1e-5
    np.testing.assert_allclose(got.astype(np.float64), want, precision, precision * np.abs(want).max(initial=1))


def wide(x, y, left=False, right=False):
    turned = [hf.permute_dims(v, (0, 2, 1)) if flag else v for v, flag in ((x, left), (y, right))]
    return hf.matmul(*turned, sum_dtype=hf.float32)


@pytest.mark.parametrize("dtype", FASTER)
@pytest.mark.parametrize(("m", "n", "k"), [(32, 32, 32), (33, 50, 16), (16, 17, 35), (70, 16, 96)])
def test_edges_of_tiles(emulated, m, n, k, dtype):  # noqa: F811
    x, y = narrow(m, k, dtype=FASTER[dtype]), narrow(k, n, dtype=FASTER[dtype])
    _, got = run(emulated, graph_of(wide, [x, y]), [x, y])
    near(got, x.astype(np.float64) @ y.astype(np.float64))


@pytest.mark.parametrize("tile", gpu_matmul_tiles.FRAGMENT_TILES, ids=str)
def test_tiles(emulated, monkeypatch, tile):  # noqa: F811
    monkeypatch.setattr(gpu_matmul_tiles, "FRAGMENT_TILES", (tile,))
    x, y = narrow(70, 40), narrow(40, 130)
    for order in ORDERS:
        _, got = run(emulated, graph_of(wide, [x, y]), [x, y], str(tile), order)
        near(got, x.astype(np.float64) @ y.astype(np.float64))


@pytest.mark.parametrize("offset", [0, 1])
@pytest.mark.parametrize(("left", "right"), [(False, False), (False, True), (True, False), (True, True)])
def test_transposes(emulated, left, right, offset):  # noqa: F811
    """Also where buffers do not begin where vectors may."""
    x, y = narrow(2, 40, 48), narrow(2, 48, 56)
    given = [np.ascontiguousarray(np.swapaxes(v, 1, 2)) if flag else v for v, flag in ((x, left), (y, right))]
    _, got = run(emulated, graph_of(lambda a, b: wide(a, b, left, right), given), given, offset=offset)
    near(got, x.astype(np.float64) @ y.astype(np.float64))


def test_narrow_results_and_what_is_computed_around(emulated):  # noqa: F811
    x, y, bias = narrow(33, 64), narrow(64, 40), narrow(40)
    graph = graph_of(lambda x, y, b: hf.nn.relu((x * 2) @ y + b), [x, y, bias])
    _, got = run(emulated, graph, [x, y, bias])
    assert got.dtype == hf.bfloat16
    near(got, np.maximum(2 * x.astype(np.float64) @ y.astype(np.float64) + bias.astype(np.float64), 0))


def test_blocks_of_the_depth(emulated):  # noqa: F811
    x, y = narrow(20, 600), narrow(600, 18)
    program, got = run(emulated, graph_of(wide, [x, y]), [x, y], "3 blocks of the depth")
    assert len(program.launches) == 2
    near(got, x.astype(np.float64) @ y.astype(np.float64))


def test_symbolic_extents(emulated):  # noqa: F811
    x, y = narrow(3, 21), narrow(21, 70)
    graph = graph_of(wide, [x, y], [hf.TensorSpec([None, None], hf.bfloat16)] * 2)
    for m, n, k in ((3, 70, 21), (1, 5, 1), (2, 3, 0)):
        _, got = run(emulated, graph, [x[:m, :k].copy(), y[:k, :n].copy()])
        near(got, x[:m, :k].astype(np.float64) @ y[:k, :n].astype(np.float64))


def test_what_is_no_number_stays_in_its_place(emulated):  # noqa: F811
    x, y = narrow(33, 40), narrow(40, 34)
    x[3, 2], y[5, 33] = np.nan, np.inf
    _, got = run(emulated, graph_of(wide, [x, y]), [x, y])
    with np.errstate(all="ignore"):
        want = x.astype(np.float32) @ y.astype(np.float32)
    assert np.array_equal(np.isfinite(got), np.isfinite(want))


def test_convolutions(emulated):  # noqa: F811
    x, f = narrow(1, 8, 9, 16), narrow(3, 3, 16, 16)
    graph = graph_of(lambda x, f: hf.nn.conv2d(x, f, padding="SAME"), [x, f])
    _, got = run(emulated, graph, [x, f])
    near(got, np.asarray(hf.nn.conv2d(x.astype(np.float64), f.astype(np.float64), padding="SAME")))


def test_only_where_fastmath_asks(emulated):  # noqa: F811
    x, y = narrow(32, 32), narrow(32, 32)
    program = compile_graph(graph_of(wide, [x, y]), CUDA_SM90)
    assert "mma" not in program.text
    for other in (np.float32, np.int8):
        arrays = [x.astype(other), y.astype(other)]
        text = compile_graph(graph_of(lambda a, b: a @ b, arrays), CUDA_SM90, fastmath=True).text
        assert "mma" not in text


# ---- TF32


def rounded(x):
    """The nearest numbers with 10 bits behind the point, away from zero where two are as near."""
    mantissa, exponent = np.frexp(np.asarray(x, np.float64))
    return np.ldexp(np.copysign(np.floor(np.abs(mantissa) * 2048 + 0.5), mantissa) / 2048, exponent)


def high(x, y, left=False, right=False):
    turned = [hf.permute_dims(v, (0, 2, 1)) if flag else v for v, flag in ((x, left), (y, right))]
    return hf.matmul(*turned, precision="high")


def run_high(emulated, graph, arrays, how="TF32 fragments", order="shuffled", offset=0):  # noqa: F811
    program = compile_graph(graph, CUDA_SM90)
    found = [kernel.schedule for kernel in program.kernels]
    assert any(how in schedule for schedule in found), found
    emulated.order = order
    return cuda.load(program, 0).run([placed(a, offset) for a in arrays])[0].get()


@pytest.mark.parametrize(("m", "n", "k"), [(32, 32, 32), (33, 50, 16), (16, 17, 35), (70, 16, 96)])
def test_rounded_products(emulated, m, n, k):  # noqa: F811
    """What is rounded, and nothing else, is not what a CPU has."""
    x, y = floats(m, k), floats(k, n)
    for order in ORDERS:
        near(run_high(emulated, graph_of(high, [x, y]), [x, y], order=order), rounded(x) @ rounded(y))
    far = np.abs(rounded(x) @ rounded(y) - x.astype(np.float64) @ y).max()
    assert far > 1e-4 * np.abs(x.astype(np.float64) @ y).max(), "which could be told from products of float32"


@pytest.mark.parametrize("offset", [0, 1])
@pytest.mark.parametrize(("left", "right"), [(False, False), (False, True), (True, False), (True, True)])
def test_rounded_transposes(emulated, left, right, offset):  # noqa: F811
    x, y = floats(2, 40, 48), floats(2, 48, 56)
    given = [np.ascontiguousarray(np.swapaxes(v, 1, 2)) if flag else v for v, flag in ((x, left), (y, right))]
    graph = graph_of(lambda a, b: high(a, b, left, right), given)
    near(run_high(emulated, graph, given, offset=offset), rounded(x) @ rounded(y))


@pytest.mark.parametrize("tile", gpu_matmul_tiles.FRAGMENT_TILES, ids=str)
def test_rounded_tiles(emulated, monkeypatch, tile):  # noqa: F811
    monkeypatch.setattr(gpu_matmul_tiles, "FRAGMENT_TILES", (tile,))
    x, y, bias = floats(70, 40), floats(40, 130), floats(130)
    graph = graph_of(lambda x, y, b: hf.nn.relu(hf.matmul(x * 2, y, precision="high") + b), [x, y, bias])
    near(run_high(emulated, graph, [x, y, bias]), np.maximum(rounded(2 * x) @ rounded(y) + bias, 0))


def test_rounded_blocks_of_the_depth_and_open_extents(emulated):  # noqa: F811
    x, y = floats(20, 600), floats(600, 18)
    near(run_high(emulated, graph_of(high, [x, y]), [x, y], "3 blocks of the depth"), rounded(x) @ rounded(y))
    graph = graph_of(high, [x, y], [hf.TensorSpec([None, None], hf.float32)] * 2)
    for m, n, k in ((3, 17, 21), (2, 5, 1), (2, 3, 0), (20, 18, 600)):
        a, b = x[:m, :k].copy(), y[:k, :n].copy()
        near(run_high(emulated, graph, [a, b]), rounded(a) @ rounded(b))


def test_rounded_values_at_the_edge(emulated):  # noqa: F811
    x, y = np.zeros((16, 16), np.float32), np.eye(16, dtype=np.float32)
    x[0, :9] = np.nan, np.inf, -np.inf, -0.0, 3.4028235e38, 1e-42, 1 + 2.0**-11, -1 - 2.0**-11, 1 + 2.0**-11 - 2.0**-23
    got = run_high(emulated, graph_of(lambda x, y: hf.matmul(x, y, precision="high") * 1.0, [x, y]), [x, y])
    assert np.isnan(got[0]).all() and not np.isnan(got[1:]).any()
    x[0, :3] = 1
    got = run_high(emulated, graph_of(high, [x, y]), [x, y])
    assert got[0, 4] == np.inf or np.isnan(got[0, 4])  # it is rounded beyond what there is
    x[0, 4] = 0
    got = run_high(emulated, graph_of(high, [x, y]), [x, y])
    assert got[0, 5] == 0 and got[0, 6:9].tolist() == [1 + 2.0**-10, -1 - 2.0**-10, 1]


def test_derivatives_have_the_precision(emulated):  # noqa: F811
    def gradients(x, y):
        with hf.GradientTape() as tape:
            tape.watch(x)
            tape.watch(y)
            z = hf.matmul(x, y, precision="high")
        return tape.gradient(z, [x, y])

    x, y = floats(33, 40), floats(40, 34)
    graph = graph_of(gradients, [x, y])
    found = [node.attrs.get("precision") for node in graph.nodes if node.op.name == "matmul"]
    assert found == ["high"] * len(found) and len(found) >= 2


def test_precision_is_the_cpu_s_own_business():
    x, y = floats(33, 40), floats(40, 34)
    for precision in (None, "high", "highest"):
        f = hf.function(lambda x, y, p=precision: hf.matmul(x, y, precision=p))
        assert np.array_equal(f(x, y).numpy(), hf.matmul(x, y, precision=precision).numpy())
        assert np.array_equal(f(x, y).numpy(), hf.matmul(x, y).numpy())
    text = str(graph_of(lambda x, y: hf.matmul(x, y, precision="highest"), [x, y]))
    assert "precision" not in text
    for bad in ("tf32", 1, True):
        with pytest.raises(ValueError, match="Expected 'high' or 'highest'"):
            hf.matmul(x, y, precision=bad)
    assert hf.matmul([[1, 2]], [[3], [4]], precision="high").tolist() == [[11]]


def test_each_barrier_is_needed(emulated, monkeypatch):  # noqa: F811
    monkeypatch.setattr(gpu_matmul_tiles, "FRAGMENT_TILES", (TensorCoreTile(64, 64, 32, 32),))
    x, y = narrow(64, 64), narrow(64, 64)
    program, want = run(emulated, graph_of(wide, [x, y]), [x, y])
    call = "call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)"
    parts = program.text.split(call)
    assert len(parts) == 5
    for k in range(4):
        executable = cuda.load(replace(program, text=call.join(parts[: k + 1]) + call.join(parts[k + 1 :])), 0)
        results = []
        for order in ORDERS:
            emulated.order = order
            try:
                results.append(executable.run([placed(a) for a in (x, y)])[0].get())
            except StuckThreads:
                results.append(np.full_like(want, np.nan))
        assert any(not np.array_equal(got, want) for got in results), k
