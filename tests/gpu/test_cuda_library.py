"""Products that a library computes in programs for GPUs, on stand-ins for the driver and for cuBLASLt."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.compiler.codegen.gpu import library_calls
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.pipeline import compile_graph
from hybridflow.compiler.program import LibraryCall
from hybridflow.compiler.target import CUDA_SM90
from hybridflow.errors import DeviceError, IndexRangeError
from hybridflow.runtime.cuda import cublaslt, executable as cuda
from tests.gpu.test_cuda_products import floats, graph_of, placed
from tests.support.cuda_emulator import emulated  # noqa: F401
from tests.support.fake_cublaslt import FakeCublasLt

TARGET = CUDA_SM90.with_(library=True)
DTYPES = {"float32": np.float32, "bfloat16": hf.bfloat16, "float16": hf.float16}


@pytest.fixture
def lt(emulated, monkeypatch):  # noqa: F811
    """The stand-in, for products of any size."""
    fake = FakeCublasLt(emulated.driver)
    monkeypatch.setattr(cublaslt, "load", lambda: fake.bindings)
    monkeypatch.setattr(library_calls, "LEAST", 1)
    return fake


def run(graph, arrays, fastmath=True, offset=0):
    program = compile_graph(graph, TARGET, fastmath=fastmath)
    return program, cuda.load(program, 0).run([placed(a, offset) for a in arrays])


def near(got, want):
    precision = 2.0**-7 if got.dtype.itemsize == 2 else 1e-5
    np.testing.assert_allclose(got.astype(np.float64), want, precision, precision * np.abs(want).max(initial=1))


def wide(*arrays):
    return [np.asarray(a).astype(np.float64) for a in arrays]


def turned(x):
    return hf.permute_dims(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("batch", [(), (3,), (2, 3)], ids=str)
def test_transposes_and_batches(lt, batch, left, right, dtype):
    m, n, k = 24, 40, 56
    x = floats(*batch, *((k, m) if left else (m, k))).astype(DTYPES[dtype])
    y = floats(*batch, *((n, k) if right else (k, n))).astype(DTYPES[dtype])

    def f(x, y):
        return hf.matmul(turned(x) if left else x, turned(y) if right else y)

    _, (got,) = run(graph_of(f, [x, y]), [x, y])
    a, b = wide(x, y)
    near(got.get(), (np.swapaxes(a, -1, -2) if left else a) @ (np.swapaxes(b, -1, -2) if right else b))
    pitches = (k if right else n), (m if left else k)
    count = int(np.prod(batch))
    assert lt.calls == [(n, m, k, count, (int(right), int(left)), pitches, "COMPUTE_32F")]


def test_axes_of_a_batch_in_the_middle(lt):
    """What has one distance from matrix to matrix, and from line to line, is read where it lies."""
    x, y = floats(24, 5, 56), floats(56, 5, 40)
    _, (got,) = run(graph_of(lambda x, y: hf.einsum("mbk,kbn->bmn", x, y), [x, y]), [x, y])
    near(got.get(), np.einsum("mbk,kbn->bmn", *wide(x, y)))


def test_sums_of_narrow_factors(lt):
    x, y = floats(24, 56).astype(hf.bfloat16), floats(56, 40).astype(hf.bfloat16)
    _, (got,) = run(graph_of(lambda x, y: hf.matmul(x, y, sum_dtype=hf.float32), [x, y]), [x, y])
    got = got.get()
    assert got.dtype == np.float32 and len(lt.calls) == 1
    a, b = wide(x, y)
    np.testing.assert_allclose(got, a @ b, 1e-5, 1e-5)


def test_precision_high_is_tf32(lt):
    x, y = floats(64, 64), floats(64, 64)
    program, (got,) = run(graph_of(lambda x, y: hf.matmul(x, y, precision="high"), [x, y]), [x, y], fastmath=False)
    a, b = wide(x, y)
    got = got.get()
    np.testing.assert_allclose(got, a @ b, 2.0**-9, 2.0**-9 * np.abs(a @ b).max())
    assert not np.allclose(got, a @ b, 1e-7, 1e-7)
    assert [call[-1] for call in lt.calls] == ["COMPUTE_32F_FAST_TF32"]
    assert "cuBLASLt in TF32; else TF32 fragments" in program.kernels[0].schedule


@pytest.mark.parametrize(
    "f",
    [
        lambda x, y: hf.matmul(x, y),
        lambda x, y: hf.matmul(x, y, precision="highest"),
        lambda x, y: hf.matmul(x.astype(hf.bfloat16), y.astype(hf.bfloat16)),
    ],
)
def test_never_unasked(lt, f):
    x, y = floats(64, 64), floats(64, 64)
    program = compile_graph(graph_of(f, [x, y]), TARGET)
    assert not program.library_calls and not any("cuBLASLt" in kernel.schedule for kernel in program.kernels)


@pytest.mark.parametrize(
    "f",
    [
        lambda x, y: hf.matmul(x * 2 + 1, y),  # a factor is computed on the way
        lambda x, y: hf.nn.relu(hf.matmul(x, y)),  # and so is the result
        lambda x, y: hf.matmul(x.astype(hf.float64), y.astype(hf.float64)),
        lambda x, y: hf.matmul(x[:1], y),
        lambda x, y: hf.matmul(hf.permute_dims(x[:15], (1, 0)), y[:15]),  # little depth
    ],
)
def test_what_is_not_plain_is_generated(lt, f):
    x, y = floats(64, 64), floats(64, 64)
    assert not compile_graph(graph_of(f, [x, y]), TARGET, fastmath=True).library_calls


def test_integers_are_generated(lt):
    x = np.ones((64, 64), np.int32)
    assert not compile_graph(graph_of(lambda x: hf.matmul(x, x), [x]), TARGET, fastmath=True).library_calls


def test_small_products_are_generated(lt, monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(library_calls, "LEAST", 64**3)
    for size, count in ((63, 0), (64, 1)):
        x = floats(size, size)
        program = compile_graph(graph_of(lambda x: hf.matmul(x, x), [x]), TARGET, fastmath=True)
        assert len(program.library_calls) == count


def test_without_the_library(lt):
    x = floats(64, 64)
    program = compile_graph(graph_of(lambda x: hf.matmul(x, x, precision="high"), [x]), CUDA_SM90)
    assert not program.library_calls
    assert "cuBLASLt would do it, but is not installed" in program.kernels[0].schedule
    near(cuda.load(program, 0).run([placed(x)])[0].get(), _tf32(x) @ _tf32(x))


def _tf32(x):
    return ((x.view(np.uint32) + 0x1000) & 0xFFFFE000).view(np.float32).astype(np.float64)


# ---- among other kernels


def between(x, y):
    """Kernels before, between and behind two products, and beside them."""
    x = hf.cumulative_sum(hf.cumulative_sum(x * 0.1, axis=0), axis=1)
    z = hf.matmul(x, y)
    w = hf.cumulative_sum(hf.cumulative_sum(z * 0.01, axis=1), axis=0)
    return hf.matmul(w, z), hf.cumulative_sum(x, axis=0)


def test_graphs_between_calls(lt, emulated):  # noqa: F811
    x, y = floats(20, 20), floats(20, 20)
    graph = graph_of(between, [x, y])
    program = compile_graph(graph, TARGET, fastmath=True)
    assert program.indirect and len(program.library_calls) == 2
    executable = cuda.load(program, 0)
    given = [[a, b] for a, b in ((x, y), (2 * x, y), (x, -y))]
    found = [executable.compute([placed(a) for a in arrays])[0] for arrays in given]
    assert lt.asked == 2 and len(lt.calls) == 6  # asked once for all runs, and nothing has run yet
    assert not emulated.driver.is_idle()
    emulated.driver.calls.clear()
    executable.compute([placed(x), placed(y)])
    assert emulated.driver.calls.count("cuGraphLaunch") >= 2
    for got, (a, b) in zip(found, given):
        a, b = wide(a, b)
        s = np.cumsum(np.cumsum(a * 0.1, 0), 1)
        z = s @ b
        w = np.cumsum(np.cumsum(z * 0.01, 1), 0)
        for one, want in zip(got, (w @ z, np.cumsum(s, 0))):
            np.testing.assert_allclose(one.get(), want, 1e-3, 1e-4 * np.abs(want).max())


def test_on_other_streams(lt, emulated):  # noqa: F811
    x, y = floats(40, 40), floats(40, 40)
    executable = cuda.load(compile_graph(graph_of(lambda x, y: hf.matmul(x, y), [x, y]), TARGET, fastmath=True), 0)
    with emulated.on_stream():
        given = [placed(x), placed(y)]
        (got,) = executable.run(given)
        near(got.get(), x.astype(np.float64) @ y)


def test_symbolic_extents(lt, monkeypatch):
    """The library has the large ones."""
    from hybridflow.compiler.ir.build import GraphBuilder
    from hybridflow.compiler.ir.types import Dim, TensorType
    from hybridflow.compiler.ops import TABLE

    monkeypatch.setattr(library_calls, "LEAST", 40 * 40 * 40)
    b = GraphBuilder(TABLE, "symbolic")
    n = Dim("n")
    x, y = (b.parameter(TensorType(shape, dt.float32)) for shape in ((n, 40), (40, 40)))
    program = compile_graph(b.finish([b.matmul(x, y)]), TARGET, fastmath=True)
    (call,) = program.library_calls
    assert isinstance(call, LibraryCall) and "from 64000 multiplications on" in program.kernels[0].schedule
    executable = cuda.load(program, 0)
    for rows, count in ((17, 0), (40, 1), (63, 2), (40, 3)):
        x, y = floats(rows, 40), floats(40, 40)
        near(executable.run([placed(x), placed(y)])[0].get(), x.astype(np.float64) @ y)
        assert len(lt.calls) == count


def test_a_function_uses_it(lt, monkeypatch):
    monkeypatch.setattr(cublaslt, "is_installed", lambda: True)

    @hf.function(fastmath=True)
    def f(x, y):
        return hf.matmul(x, y)

    x, y = floats(48, 32), floats(32, 64)
    with hf.device("gpu:0"):
        given = [hf.constant(a) for a in (x, y)]
    assert f(*given).device == "gpu:0"
    near(f(*given).numpy(), x.astype(np.float64) @ y)
    assert len(lt.calls) == 2
    near(hf.matmul(*given).numpy(), x.astype(np.float64) @ y)
    assert len(lt.calls) == 2


def test_a_failed_check_leaves_the_state(lt, monkeypatch):
    """Calls do not look whether a check has failed, so none of them writes where a state is kept."""
    monkeypatch.setattr(cublaslt, "is_installed", lambda: True)
    with hf.device("gpu:0"):
        state, x = hf.Variable(np.eye(32, dtype=np.float32)), hf.constant(floats(32, 32))
        places = [hf.constant(np.array([i])) for i in (3, 77)]

    @hf.function(fastmath=True)
    def step(x, i):
        state.assign(hf.matmul(x, state))
        return hf.take(x, i, axis=0)

    step(x, places[0])
    graph = step.get_concrete_function(x, places[0]).graph
    assert not compile_graph(graph, TARGET, fastmath=True).library_calls
    kept = state.numpy()
    assert np.array_equal(kept, x.numpy())
    with pytest.raises(IndexRangeError):
        step(x, places[1]).numpy()
    assert np.array_equal(state.numpy(), kept)


# ---- what the library is not for


def test_misaligned_arrays_go_to_the_kernel(lt):
    x, y = floats(32, 32), floats(32, 32)
    executable = cuda.load(compile_graph(graph_of(lambda x, y: hf.matmul(x, y), [x, y]), TARGET, fastmath=True), 0)
    for offset, count in ((1, 0), (0, 1), (4, 2), (2, 2)):
        near(executable.run([placed(x, offset), placed(y, offset)])[0].get(), x.astype(np.float64) @ y)
        assert len(lt.calls) == count


def test_what_the_library_lacks_goes_to_the_kernel(lt):
    lt.refuses = cublaslt.NOT_SUPPORTED
    x, y = floats(32, 32), floats(32, 32)
    _, (got,) = run(graph_of(lambda x, y: hf.matmul(x, y), [x, y]), [x, y])
    near(got.get(), x.astype(np.float64) @ y)
    assert lt.asked == 1 and not lt.calls and not lt.live


def test_errors_of_the_library(lt):
    x, y = floats(32, 32), floats(32, 32)
    lt.refuses = 1
    with pytest.raises(DeviceError, match=r"cuBLASLt did not compute a product .error 1."):
        run(graph_of(lambda x, y: hf.matmul(x, y), [x, y]), [x, y])
    lt.refuses, lt.fails = 0, 13
    with pytest.raises(DeviceError, match=r"cuBLASLt did not compute a product .error 13."):
        run(graph_of(lambda x, y: hf.matmul(x, y), [x, y]), [x, y])


def test_a_library_that_cannot_be_loaded(monkeypatch):
    import builtins

    real = builtins.__import__

    def without(name, *given):
        if name.split(".")[0] in ("nvmath", "cuda"):
            raise ImportError(f"no {name}")
        return real(name, *given)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(DeviceError, match=r"cuBLASLt cannot be loaded .no cuda.*gpu-libraries"):
        cublaslt.load.__wrapped__()


def test_memory_of_the_library_is_the_run_s(lt, emulated):  # noqa: F811
    x, y = floats(32, 32), floats(32, 32)
    lt.workspace = 1 << 20
    graph = graph_of(lambda x, y: hf.matmul(x, y), [x, y])
    executable = cuda.load(compile_graph(graph, TARGET, fastmath=True), 0)
    given = [placed(x), placed(y)]
    before = emulated.driver.bytes_in_use
    (got,), _ = executable.compute(given)
    assert emulated.driver.bytes_in_use - before < 1 << 16
    near(got.get(), x.astype(np.float64) @ y)
    (plan,) = executable._known.values()
    assert 1 << 20 <= plan.arena < (1 << 20) + 4096
    assert lt.live == 4
    del plan, executable
    gc.collect()
    assert not lt.live
