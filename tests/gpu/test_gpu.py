"""On a real GPU: eager operations, compiled functions and programs, against references and the bits of the CPU.

Run with ``python -m pytest -m gpu`` where CuPy and a GPU are installed; elsewhere every test is skipped.
"""

from __future__ import annotations

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.compiler.ops import TABLE
from hybridflow.compiler.pipeline import compile_graph
from hybridflow.core.pytree import flatten
from hybridflow.errors import DeviceError, HybridflowError, IndexRangeError
from hybridflow.runtime import cpu
from hybridflow.runtime.cuda import device_copies, executable as cuda, gpu_memory
from hybridflow.runtime.machine import host_target
from tests.gpu import test_cuda_control as control
from tests.support.bits import same_bits
from tests.support.device_programs import PROGRAMS, graph_of, largest_sample, traced

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not gpu_memory.count(), reason="needs CuPy and an NVIDIA GPU"),
]


def gpu(value):
    return hf.asarray(value).to_device("gpu:0")


def on_gpu(graph, arrays):
    executable = cuda.load(compile_graph(graph, gpu_memory.target(0)), 0)
    return [out.get() for out in executable.run([device_copies.to_device(a, 0) for a in arrays])]


@pytest.mark.parametrize("name", [name for name, op in TABLE.items() if op.dtypes])
def test_ops_have_the_bits_of_the_cpu(name):
    op = TABLE[name]
    for dtype in op.dtypes:
        arrays, attrs = largest_sample(op, dtype)
        graph = graph_of(op, arrays, attrs)
        try:
            want = cpu.load(compile_graph(graph, host_target.target())).run(arrays)
        except HybridflowError as error:
            with pytest.raises(type(error)):
                on_gpu(graph, arrays)
            continue
        for a, b in zip(on_gpu(graph, arrays), want, strict=True):
            assert same_bits(a, b), (dtype, a, b)


@pytest.mark.parametrize("name", list(PROGRAMS))
def test_programs_have_the_bits_of_the_cpu(name):
    graph, arrays = traced(name), [np.asarray(a) for a in PROGRAMS[name][1]]
    want = cpu.load(compile_graph(graph, host_target.target())).run(arrays)
    got = on_gpu(graph, arrays)
    assert all(same_bits(g, w) for g, w in zip(got, want, strict=True))


@pytest.mark.parametrize("name", list(PROGRAMS))
def test_eager_and_compiled_functions(name):
    python, arguments = PROGRAMS[name]

    def results(function, place):
        found = function(*map(place, arguments))
        return found if isinstance(found, tuple) else (found,)

    want = results(python, hf.asarray)
    with hf.device("gpu:0"):
        eager = results(python, hf.asarray)
    compiled = results(hf.function(python), gpu)
    for found in (eager, compiled):
        assert [x.device for x in found] == ["gpu:0"] * len(want)
        assert all(same_bits(f.numpy(), w.numpy()) for f, w in zip(found, want, strict=True))


def teams(x):
    """Folds by warps, blocks and pieces, scans, vectors, and tiles that are turned, as the shape has it."""
    spread = (x - hf.mean(x, axis=-1, keepdims=True)) * 2.0
    return (
        hf.nn.softmax(x, axis=-1),
        spread,
        hf.argmax(x, axis=-1),
        hf.cumulative_sum(x, axis=-1),
        hf.exp(x).T,
        hf.sum(x),
    )


@pytest.mark.parametrize(
    "shape", [(0, 40), (3, 15), (1000, 33), (700, 1024), (65, 4097), (40, 100_000), (2, 300_001), (1, 20_000_000)]
)
def test_teams_of_threads(shape):
    arrays = [np.random.default_rng(7).normal(size=shape).astype(np.float32)]
    graph = hf.function(teams).get_concrete_function(*arrays).graph
    want = cpu.load(compile_graph(graph, host_target.target())).run(arrays)
    for got, value in zip(on_gpu(graph, arrays), want, strict=True):
        assert same_bits(got, value)


@pytest.mark.parametrize("size", [0, 1, 63, 4096, 300_001])
def test_teams_where_extents_are_symbolic(size):
    graph = hf.function(teams).get_concrete_function(hf.TensorSpec([None, None], hf.float32)).graph
    shape = (3, size) if size else (0, 5)
    arrays = [np.random.default_rng(size).normal(size=shape).astype(np.float32)]
    want = cpu.load(compile_graph(graph, host_target.target())).run(arrays)
    assert all(same_bits(g, w) for g, w in zip(on_gpu(graph, arrays), want, strict=True))


@pytest.mark.parametrize("size", [(1, 1, 1), (70, 33, 9), (1000, 1001, 515), (2048, 2048, 2048), (40, 50, 100_000)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int8"])
def test_products(size, dtype):
    """By tiles of teams, by blocks of the depth, and with one transposed."""
    m, n, k = size
    draw = np.random.default_rng(m)
    arrays = [(3 * draw.normal(size=shape)).astype(getattr(hf, dtype)) for shape in ((m, k), (k, n), (n, k))]
    graph = hf.function(lambda x, y, z: (x @ y, hf.nn.relu(x @ z.T) + 1)).get_concrete_function(*arrays).graph
    want = cpu.load(compile_graph(graph, host_target.target())).run(arrays)
    assert all(same_bits(g, w) for g, w in zip(on_gpu(graph, arrays), want, strict=True))


@pytest.mark.parametrize("keys", [130, 1024, 9000])
@pytest.mark.parametrize("heads", [4, 2])
def test_attention(keys, heads):
    """In memory of blocks, as much as they may ask for, and beyond that; heads that share keys."""

    def program(q, k, v):
        with hf.GradientTape() as tape:
            tape.watch((q, k, v))
            out = hf.nn.scaled_dot_product_attention(q, k, v, enable_gqa=True)
            loss = hf.sum(hf.square(out))
        return [out, *tape.gradient(loss, (q, k, v))]

    draw = np.random.default_rng(keys)
    shapes = (2, 4, 512, 64), (2, heads, keys, 64), (2, heads, keys, 64)
    arrays = [draw.standard_normal(shape, np.float32) for shape in shapes]
    graph = hf.function(program).get_concrete_function(*arrays).graph
    compiled = compile_graph(graph, gpu_memory.target(0))
    assert sum("rows a team" in kernel.schedule for kernel in compiled.kernels) >= 2
    want = cpu.load(compile_graph(graph, host_target.target())).run(arrays)
    assert all(same_bits(g, w) for g, w in zip(on_gpu(graph, arrays), want, strict=True))


@pytest.mark.parametrize("program", [*control.PROGRAMS, control.walked, control.learned], ids=lambda f: f.__name__)
@pytest.mark.parametrize("times", [1, 40])
def test_loops_and_branches(program, times):
    """By one block, and by many that wait for each other."""
    first = control.ROWS if program in (control.walked, control.learned) else control.X
    given = [np.repeat(first, times, axis=-2), control.W]
    function = hf.function(program)
    want = flatten(function(*given))[0]
    for _ in range(3):
        got = flatten(function(*map(gpu, given)))[0]
        assert all(same_bits(g.numpy(), w.numpy()) for g, w in zip(got, want, strict=True))


def test_convolutions():
    draw = np.random.default_rng(5)
    x, f = (draw.normal(size=shape).astype(np.float32) for shape in ((4, 30, 31, 16), (3, 3, 16, 40)))

    def layer(x, f):
        with hf.GradientTape() as tape:
            tape.watch(f)
            loss = hf.sum(hf.square(hf.nn.conv2d(x, f, padding="SAME")))
        return loss, tape.gradient(loss, f)

    graph = hf.function(layer).get_concrete_function(x, f).graph
    want = cpu.load(compile_graph(graph, host_target.target())).run([x, f])
    assert all(same_bits(g, w) for g, w in zip(on_gpu(graph, [x, f]), want, strict=True))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("size", [(40, 33, 70), (1000, 500, 300), (50, 60, 5000)])
def test_tensor_cores(size, dtype):
    m, n, k = size
    draw = np.random.default_rng(n)
    x, y = (draw.normal(size=shape).astype(getattr(hf, dtype)) for shape in ((m, k), (k, n)))
    graph = hf.function(lambda x, y: hf.matmul(x, y, sum_dtype=hf.float32)).get_concrete_function(x, y).graph
    executable = cuda.load(compile_graph(graph, gpu_memory.target(0), fastmath=True), 0)
    assert "mma" in executable.program.text
    (got,) = executable.run([device_copies.to_device(a, 0) for a in (x, y)])
    want = x.astype(np.float64) @ y.astype(np.float64)
    np.testing.assert_allclose(got.get(), want, 1e-4, 1e-4 * np.abs(want).max())


@pytest.mark.parametrize("size", [1, 31, 4097, 1_000_003])
def test_sizes(size):
    x = np.random.default_rng(size).normal(size=size).astype(np.float32)
    with hf.device("gpu:0"):
        total, scaled = hf.sum(hf.asarray(x)), hf.asarray(x) * 2.0 + 1.0
    assert same_bits(total.numpy(), hf.sum(hf.asarray(x)).numpy())
    assert same_bits(scaled.numpy(), (hf.asarray(x) * 2.0 + 1.0).numpy())


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "bfloat16", "float64"])
def test_copies_keep_the_bits(dtype):
    x = hf.astype(hf.asarray([[0.0, -0.0, 1.5], [np.inf, np.nan, -3.0]]), dtype)
    there = x.to_device("gpu:0")
    assert there.device == "gpu:0" and there.dtype == x.dtype and there.shape == x.shape
    assert there.numpy().tobytes() == x.numpy().tobytes()


def test_cupy_arrays_come_in_and_go_out():
    import cupy

    array = cupy.arange(6, dtype=cupy.float32).reshape(2, 3).T
    x = hf.asarray(array)
    array[...] = 0
    assert x.device == "gpu:0" and x.tolist() == [[0, 3], [1, 4], [2, 5]]
    assert cupy.from_dlpack(x).sum() == 15


def test_arrays_of_cupy_are_shared():
    import cupy

    array = cupy.arange(6, dtype=cupy.float32)
    x = hf.from_dlpack(array)
    assert x._array.data.ptr == array.data.ptr
    out = cupy.from_dlpack(hf.function(lambda x: x * 2)(array))
    assert out.tolist() == [0, 2, 4, 6, 8, 10]
    with cupy.cuda.Stream(non_blocking=True):
        array = cupy.arange(1 << 22, dtype=cupy.float32) + 1
        y = hf.function(lambda x: hf.cumulative_sum(x * 0))(array)
        assert float(y[-1]) == 0


@pytest.mark.parametrize("library", ["torch", "jax"])
def test_arrays_of_other_libraries_are_shared(library):
    module = pytest.importorskip(library)
    if library == "torch":
        if not module.cuda.is_available():
            pytest.skip("this PyTorch has no CUDA")
        array = module.arange(1 << 20, device="cuda", dtype=module.float32) * 2
        back = module.from_dlpack
    else:
        if not [d for d in module.devices() if d.platform == "gpu"]:
            pytest.skip("this JAX has no CUDA")
        array = module.numpy.arange(1 << 20, dtype=module.numpy.float32) * 2
        back = module.dlpack.from_dlpack
    y = hf.function(lambda x: x + 1)(array)
    assert y.device == "gpu:0" and y.numpy()[-1] == 2 * (1 << 20) - 1
    assert float(back(y)[-1]) == 2 * (1 << 20) - 1


def chain(x):
    for k in range(20):
        x = hf.cumulative_sum(x, axis=k % 2) * 0.25
    return x


def branches(x):
    first = hf.cumulative_sum(x, axis=0)
    return hf.cumulative_sum(sum(hf.cumulative_sum(first * k - x, axis=k % 2) for k in range(1, 7)), axis=1)


@pytest.mark.parametrize("function", [chain, branches])
def test_programs_of_many_kernels_are_graphs(function):
    f = hf.function(function, input_signature=[hf.TensorSpec([None, None], hf.float32)])
    for extent in (40, 700, 40, 3):
        x = np.random.default_rng(extent).normal(size=(extent, extent)).astype(np.float32)
        want = f(x).numpy()
        there = gpu(x)
        found = [f(there) for _ in range(5)]
        assert all(same_bits(y.numpy(), want) for y in found)
    executable = next(e for (place, _), e in f.get_concrete_function().staged._executables.items() if place != "cpu")
    assert all(plan.is_graph for plan in executable._known.values())


def test_streams_of_cupy():
    import cupy

    x = np.random.default_rng(0).normal(size=(500, 500)).astype(np.float32)
    f = hf.function(chain)
    want = [f(x * k).numpy() for k in range(1, 5)]
    found = []
    for k in range(1, 5):
        with cupy.cuda.Stream(non_blocking=True):
            found.append(f(gpu(x * np.float32(k))).numpy())
    assert all(same_bits(got, value) for got, value in zip(found, want, strict=True))


def test_threads():
    import concurrent.futures

    x = np.random.default_rng(0).normal(size=(300, 300)).astype(np.float32)
    f = hf.function(chain)
    want = f(x).numpy()
    there = gpu(x)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: f(there).numpy(), range(20)))
    assert all(same_bits(got, want) for got in found)


def test_failed_checks_come_with_the_value():
    f = hf.function(lambda x, i: hf.take(x, i) * 2)
    x = gpu(np.arange(5, dtype=np.float32))
    y = f(x, gpu(np.array([1, 5])))
    with pytest.raises(IndexRangeError, match=r"take.*test_gpu\.py"):
        y.numpy()
    assert f(x, gpu(np.array([1, 4]))).tolist() == [2, 8]


def test_too_little_memory():
    f = hf.function(lambda x: hf.sort(x[:, None] + x, axis=1))
    with pytest.raises(MemoryError, match="gpu:0 has no room"):
        f(gpu(np.ones(1 << 19, np.float32)))
    x = np.arange(100, dtype=np.float32)
    assert same_bits(f(gpu(x)).numpy(), f(x).numpy())


def test_large_copies():
    x = np.random.default_rng(0).integers(0, 255, 100_000_001, np.uint8)
    there = gpu(x)
    x2 = x.copy()
    x[:] = 0
    assert np.array_equal(there.numpy(), x2)


def test_mixed_devices_are_an_error():
    with pytest.raises(DeviceError, match=r"cpu.*gpu:0"):
        hf.ones(3) + gpu(np.ones(3, np.float32))
    with pytest.raises(DeviceError, match="there is no gpu:99"):
        hf.ones(3).to_device("gpu:99")


def test_variables_and_gradients():
    x = np.random.default_rng(1).normal(size=(32, 8)).astype(np.float32)
    start = np.random.default_rng(2).normal(size=(8, 4)).astype(np.float32)

    def trained(device):
        with hf.device(device):
            weights, data = hf.Variable(start), hf.asarray(x)

            @hf.function
            def step():
                with hf.GradientTape() as tape:
                    loss = hf.mean(hf.tanh(data @ weights) ** 2)
                weights.assign_sub(0.1 * tape.gradient(loss, weights))
                return loss

            losses = [step() for _ in range(5)]
        assert weights.device == losses[-1].device == device
        return weights.numpy(), losses[-1].numpy()

    assert all(same_bits(g, w) for g, w in zip(trained("gpu:0"), trained("cpu"), strict=True))


def test_a_failed_check_leaves_state_alone():
    with hf.device("gpu:0"):
        state = hf.Variable(np.zeros(40, np.float32))

        @hf.function
        def step(index):
            found = hf.take(state, index)
            state.assign_add(hf.sum(found) + 1.0)
            return found

        with pytest.raises(IndexRangeError):
            step(hf.asarray(np.array([0, 40]))).numpy()
        assert state.numpy().sum() == 0
        assert step(hf.asarray(np.array([0, -1]))).tolist() == [0, 0] and state.numpy().sum() == 40


def test_random_numbers_are_those_of_the_cpu():
    hf.random.set_seed(7)
    here = hf.random.normal((1000,))
    hf.random.set_seed(7)
    with hf.device("gpu:0"):
        there = hf.random.normal((1000,))
    assert there.device == "gpu:0" and same_bits(there.numpy(), here.numpy())
