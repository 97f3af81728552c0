"""Maps on a GPU whose threads compute several neighbours: the bits of the CPU, wherever buffers and lines begin."""

from __future__ import annotations

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.types import TensorType
from hybridflow.compiler.loops import schedule
from hybridflow.compiler.ops import TABLE
from hybridflow.compiler.pipeline import compile_graph
from hybridflow.compiler.target import CUDA_SM90
from hybridflow.runtime import cpu
from hybridflow.runtime.cuda import executable as cuda, launch_plans, ptx
from hybridflow.runtime.machine import host_target
from tests.support.bits import same_bits
from tests.support.cuda_blocks import ORDERS
from tests.support.cuda_emulator import Array, emulated  # noqa: F401

pytestmark = pytest.mark.usefixtures("emulated")


@pytest.fixture(autouse=True)
def small_maps(monkeypatch):
    monkeypatch.setattr(schedule, "VECTORS_ON_GPU", 1)


def floats(*shape, dtype=np.float32):
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(dtype)


def on_device(array, offset):
    """The array on the emulated GPU, so many elements behind an address where vectors may begin."""
    room = np.zeros(array.size + offset + 64, array.dtype)
    first = -(-room.ctypes.data // 64) * 64 - room.ctypes.data
    placed = room[first // array.itemsize + offset :][: array.size].reshape(array.shape)
    placed[...] = array
    return Array(placed, 0)


def check(function, arrays, lanes, offset=0, specs=None):
    graph = hf.function(function).get_concrete_function(*(specs or arrays)).graph
    program = compile_graph(graph, CUDA_SM90)
    (kernel,) = program.kernels
    assert (f"{lanes} lanes" in kernel.schedule) == (lanes > 1), kernel.schedule
    want = cpu.load(compile_graph(graph, host_target.target())).run([np.array(a) for a in arrays])
    got = cuda.load(program, 0).run([on_device(a, offset) for a in arrays])
    assert all(same_bits(g.get(), w) for g, w in zip(got, want, strict=True))


def scaled(x, y):
    return x * y + 1, x > y


@pytest.mark.parametrize("offset", [0, 1])
@pytest.mark.parametrize("size", [3, 4, 1027])
def test_vectors(size, offset):
    check(scaled, [floats(size), floats(size) + 1], 4, offset)


@pytest.mark.parametrize(("dtype", "lanes"), [(np.float64, 2), (np.float16, 8), (np.int8, 8)])
def test_as_many_as_the_widest_allow(dtype, lanes):
    x = (8 * floats(203)).astype(dtype)
    check(scaled, [x, x[::-1].copy()], lanes)


@pytest.mark.parametrize("size", [0, 1, 3, 4, 5, 133])
def test_symbolic(size):
    check(scaled, [floats(size), floats(size) + 1], 4, specs=[hf.TensorSpec([None], hf.float32)] * 2)


@pytest.mark.parametrize(("shape", "lanes"), [((5, 12), 4), ((5, 13), 1)])
def test_lines(shape, lanes):
    check(scaled, [floats(*shape), floats(shape[1])], lanes)


def test_what_is_read_beside_its_place():
    check(lambda x, y: x[1:] * 2 + y[:-1], [floats(66), floats(66)], 4)


@pytest.mark.parametrize("function", [lambda x: x[::2] + 1, lambda x: x[::-1] * 2])
def test_other_steps_take_a_thread_each(function):
    check(function, [floats(70)], 1)


def test_padding_and_rows_that_are_looked_up():
    check(lambda x: hf.pad(x, [(1, 2), (3, 1)]) * 2, [floats(4, 12)], 4)
    index = np.array([2, 0, -1, 2])
    graph = hf.function(lambda x, i: hf.exp(hf.take(x, i, axis=0))).get_concrete_function(floats(3, 8), index).graph
    arrays = [floats(3, 8), index]
    want = cpu.load(compile_graph(graph, host_target.target())).run(arrays)
    got = cuda.load(compile_graph(graph, CUDA_SM90), 0).run([on_device(a, 0) for a in arrays])
    assert same_bits(got[0].get(), want[0])


def test_the_gpu_moves_vectors():
    arrays = [floats(1 << 10), floats(1 << 10)]
    text = ptx.assemble(compile_graph(hf.function(scaled).get_concrete_function(*arrays).graph, CUDA_SM90))
    assert "ld.global.v4.b32" in text and "st.global.v4.b32" in text


TURNED = {
    "transposed": (lambda x: x.T, (33, 70), 256),
    "whole tiles": (lambda x: hf.exp(x.T) + 1, (64, 96), 256),
    "between others": (lambda x: hf.permute_dims(x, (0, 2, 1, 3)), (2, 35, 3, 40), 1),
    "in a batch": (lambda x: hf.permute_dims(x, (0, 2, 1)) * 2, (3, 40, 32), 256),
    "beside itself": (lambda x: x + x.T, (50, 50), 256),
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", TURNED)
def test_tiles_are_turned_by_teams(emulated, monkeypatch, name, order):  # noqa: F811
    monkeypatch.setattr(launch_plans, "MOST_THREADS", 512)  # two teams have all tiles
    emulated.order = order
    function, shape, team = TURNED[name]
    arrays = [floats(*shape)]
    graph = hf.function(function).get_concrete_function(*arrays).graph
    program = compile_graph(graph, CUDA_SM90)
    assert [launch.group_size for launch in program.launches] == [team]
    want = cpu.load(compile_graph(graph, host_target.target())).run(arrays)
    (got,) = cuda.load(program, 0).run([on_device(arrays[0], 0)])
    assert same_bits(got.get(), want[0])


JOINED = {
    "neighbours": (lambda x, y: hf.concat([x, y], axis=0), [floats(8), floats(12)]),
    "rows": (lambda x, y: hf.concat([x, y], axis=1), [floats(3, 8), floats(3, 4)]),
    "odd rows": (lambda x, y: hf.concat([x, y], axis=1), [floats(3, 7), floats(3, 5)]),
    "behind an odd part": (lambda x, y: hf.concat([x, y, x], axis=0), [floats(8), floats(3)]),
    "nothing between": (lambda x, y: hf.concat([x, y, x], axis=0), [floats(2, 4), floats(0, 4)]),
    "single elements": (lambda x, y: hf.stack([x, y]), [floats(), floats() + 1]),
    "turned": (lambda x, y: hf.concat([x.T, y], axis=1), [floats(5, 4), floats(4, 8)]),
    "computed": (lambda x, y: hf.concat([hf.exp(x), y * 2, x[::-1]], axis=0), [floats(16), floats(4)]),
    "padded rows": (lambda x, y: hf.pad(x + y, [(1, 2), (4, 8)]), [floats(4, 64), floats(64)]),
    "padded on one side": (lambda x, y: hf.pad(x, [(0, 1), (0, 3)], constant_values=-0.0), [floats(3, 40), floats(1)]),
    "padded short rows": (lambda x, y: hf.pad(x, [(1, 2), (1, 1)]), [floats(3, 5), floats(1)]),
    "many": (lambda x, y: hf.concat([x[k : k + 1 + k % 3] for k in range(40)] + [y], axis=0), [floats(64), floats(9)]),
    "nothing looked up": (
        lambda x, y: hf.concat([hf.take(x, y, axis=0), x[:0]]),
        [floats(9), np.zeros(0, np.int64)],
    ),
    "rows of nothing": (
        lambda x, y: hf.stack([hf.take(x, y, axis=0), hf.take(x, y, axis=0) + 1]),
        [floats(9, 0), np.array([3, 8])],
    ),
    "a fold of nothing looked up": (
        lambda x, y: hf.sum(hf.concat([x[:0], hf.take(x, y, axis=0)])),
        [floats(9, 4), np.zeros(0, np.int64)],
    ),
    "looked up among nothing": (
        lambda x, y: hf.concat([x[:0], hf.take(x, y, axis=0), x[3:3], x]),
        [floats(9), np.array([3, 8])],
    ),
    "bytes": (
        lambda x, y: hf.concat([x, y], axis=1),
        [np.arange(64, dtype="i1").reshape(2, 32), np.ones((2, 16), "i1")],
    ),
}


@pytest.mark.parametrize("offset", [0, 1])
@pytest.mark.parametrize("name", JOINED)
def test_parts_one_after_another(emulated, name, offset):  # noqa: F811
    function, arrays = JOINED[name]
    graph = hf.function(function).get_concrete_function(*arrays).graph
    program = compile_graph(graph, CUDA_SM90)
    assert any("segments one after another" in k.schedule for k in program.kernels) == (name != "padded short rows")
    want = cpu.load(compile_graph(graph, host_target.target())).run([np.array(a) for a in arrays])
    for order in ORDERS:
        emulated.order = order
        got = cuda.load(program, 0).run([on_device(a, offset) for a in arrays])
        assert all(same_bits(g.get(), w) for g, w in zip(got, want, strict=True)), order


INTERIOR = {
    "lines": ((37,), (2,), (3,), (1,), np.float32, 1),
    "planes": ((5, 7), (1, 0), (0, 2), (2, 3), np.float32, 1),
    "rows alone": ((5, 8), (1, 4), (2, 8), (1, 0), np.float32, 4),
    "short rows": ((9, 4), (1, 4), (2, 8), (0, 0), np.float32, 4),
    "short odd rows": ((9, 5), (1, 0), (0, 1), (0, 0), np.float64, 1),
    "bytes": ((3, 4, 8), (0, 1, 8), (1, 0, 0), (0, 2, 0), np.int8, 8),
    "one element": ((1, 1), (0, 2), (1, 1), (3, 3), np.float32, 1),
    "none": ((0, 3), (2, 0), (1, 1), (3, 1), np.float32, 1),
}


@pytest.mark.parametrize("offset", [0, 1])
@pytest.mark.parametrize("name", INTERIOR)
def test_values_between_elements(name, offset):
    """A thread has an element of the result, or a vector of them, and writes it once, whatever it is."""
    shape, low, high, interior, dtype, lanes = INTERIOR[name]
    b = GraphBuilder(TABLE, "padded")
    x = b.parameter(TensorType(shape, np.dtype(dtype)))
    graph = b.finish([b.pad(b.add(x, x), low=low, high=high, interior=interior, value=-0.0)])
    program = compile_graph(graph, CUDA_SM90)
    (kernel,) = program.kernels
    assert kernel.schedule.startswith("map") and (f"{lanes} lanes" in kernel.schedule) == (lanes > 1), kernel.schedule
    array = (8 * floats(*shape)).astype(dtype)
    want = cpu.load(compile_graph(graph, host_target.target())).run([array])
    got = cuda.load(program, 0).run([on_device(array, offset)])
    assert same_bits(got[0].get(), want[0])


@pytest.mark.parametrize("sizes", [(0, 1), (1, 5), (70, 3)])
def test_parts_of_open_extents(sizes):
    specs = [hf.TensorSpec([None, 4], hf.float32)] * 2
    graph = hf.function(lambda x, y: hf.concat([x, y, x * 2])).get_concrete_function(*specs).graph
    arrays = [floats(n, 4) for n in sizes]
    program = compile_graph(graph, CUDA_SM90)
    want = cpu.load(compile_graph(graph, host_target.target())).run(arrays)
    got = cuda.load(program, 0).run([on_device(a, 0) for a in arrays])
    assert same_bits(got[0].get(), want[0])


def test_a_unit_of_a_joined_array_is_a_vector_and_finds_its_part_by_halving():
    arrays = [floats(64, 64)] * 16
    graph = hf.function(lambda *xs: hf.concat(xs, axis=1)).get_concrete_function(*arrays).graph
    program = compile_graph(graph, CUDA_SM90)
    (launch,) = program.launches
    assert launch.units == 16 * 64 * 64 // 4
    text = ptx.assemble(program)
    assert "ld.global.v4.b32" in text and "st.global.v4.b32" in text


def test_parts_within_a_loop():
    def function(x):
        return hf.while_loop(lambda k, y: k < 3, lambda k, y: (k + 1, hf.concat([y[4:], y[:4] * 2, x])[:12]), (0, x))[1]

    graph = hf.function(function).get_concrete_function(floats(12)).graph
    program = compile_graph(graph, CUDA_SM90)
    assert any("segments one after another" in kernel.schedule for kernel in program.kernels)
    want = cpu.load(compile_graph(graph, host_target.target())).run([floats(12)])
    got = cuda.load(program, 0).run([on_device(floats(12), 0)])
    assert same_bits(got[0].get(), want[0])
