"""Maps on a GPU whose threads compute several neighbours: the bits of the CPU, wherever buffers and lines begin."""

from __future__ import annotations

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.compiler.loops import schedule
from hybridflow.compiler.pipeline import compile_graph
from hybridflow.compiler.target import CUDA_SM90
from hybridflow.runtime import cpu
from hybridflow.runtime.cuda import executable as cuda, plans, ptx
from hybridflow.runtime.machine import host
from tests.bits import same_bits
from tests.cuda_blocks import ORDERS
from tests.cuda_emulator import Array, emulated  # noqa: F401

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
    want = cpu.load(compile_graph(graph, host.target())).run([np.array(a) for a in arrays])
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
    want = cpu.load(compile_graph(graph, host.target())).run(arrays)
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
    monkeypatch.setattr(plans, "MOST_THREADS", 512)  # two teams have all tiles
    emulated.order = order
    function, shape, team = TURNED[name]
    arrays = [floats(*shape)]
    graph = hf.function(function).get_concrete_function(*arrays).graph
    program = compile_graph(graph, CUDA_SM90)
    assert [launch.team for launch in program.launches] == [team]
    want = cpu.load(compile_graph(graph, host.target())).run(arrays)
    (got,) = cuda.load(program, 0).run([on_device(arrays[0], 0)])
    assert same_bits(got.get(), want[0])
