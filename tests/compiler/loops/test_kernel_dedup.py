"""Kernels of one structure are written once; that is what writing each of them would give."""

from __future__ import annotations

import re

import numpy as np
import pytest

from hybridflow.compiler.codegen import module_builder
from hybridflow.compiler.codegen.control import driver
from hybridflow.compiler.codegen.core import kernel_dedup
from hybridflow.compiler.interpreter import interpret
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.types import TensorType
from hybridflow.compiler.ops import TABLE
from hybridflow.compiler.pipeline import compile_graph
from hybridflow.compiler.target import AVX2, AVX512, CUDA_SM90
from hybridflow.runtime.machine import host_target
from tests.support.bits import same_bits
from tests.support.cutting_host import check_cuts
from tests.support.device_programs import PROGRAMS, traced


def bodies(text: str) -> list[str]:
    """The functions of a module, with the numbers of kernels by first appearance."""
    numbers: dict[str, str] = {}
    text = re.sub(r"@k\d+\b", lambda found: numbers.setdefault(found.group(), f"@k{len(numbers)}"), text)
    return sorted(part.partition("\n}")[0] for part in text.split("\ndefine ")[1:])


@pytest.mark.parametrize("target", [AVX512, CUDA_SM90], ids=["cpu", "cuda"])
@pytest.mark.parametrize("name", list(PROGRAMS))
def test_the_same_code_as_without(name, target, monkeypatch):
    shared = bodies(compile_graph(traced(name), target).text)
    monkeypatch.setattr(kernel_dedup, "structural_key", lambda *_: None)
    assert bodies(compile_graph(traced(name), target).text) == shared


def _written(monkeypatch, graph) -> int:
    """How many kernels are written for a graph."""
    written = []
    write = module_builder.ModuleBuilder._write

    def write_and_count(builder, kernel, choose):
        written.append(kernel)
        return write(builder, kernel, choose)

    monkeypatch.setattr(module_builder.ModuleBuilder, "_write", write_and_count)
    compile_graph(graph, AVX512)
    return len(written)


def test_unrolled_steps_are_written_once(monkeypatch):
    b = GraphBuilder(TABLE, "unrolled")
    h, w, u = (b.parameter(TensorType(shape, dt.float32)) for shape in ((4, 8), (8, 8), (4, 8)))
    for _ in range(30):
        h = b.cumulative_sum(b.tanh(b.add(b.matmul(h, w), u)), axis=0)
    assert _written(monkeypatch, b.finish([h])) <= 4


@pytest.mark.parametrize("differs", ["", "literal", "dtype", "extent", "wiring", "axis", "order"])
def test_what_differs_is_written_for_itself(differs, monkeypatch):
    b = GraphBuilder(TABLE, "two")

    def step(changed):
        shape = (6, 7) if differs == "extent" and changed else (6, 6)
        dtype = dt.float64 if differs == "dtype" and changed else dt.float32
        x, y = (b.parameter(TensorType(shape, dtype)) for _ in range(2))
        v = b.add(x, b.full(2.0 if differs == "literal" and changed else 1.0, x.type))
        v = b.subtract(v, b.exp(x if differs == "wiring" and changed else y))
        v = b.subtract(*((y, v) if differs == "order" and changed else (v, y)))
        return b.sum(v, axes=(0 if differs == "axis" and changed else 1,))

    assert _written(monkeypatch, b.finish([step(False), step(True)])) == (2 if differs else 1)


def test_steps_that_read_other_slices_are_written_once(monkeypatch):
    b = GraphBuilder(TABLE, "slices")
    xs, w = b.parameter(TensorType((40, 4, 8), dt.float32)), b.parameter(TensorType((8, 8), dt.float32))
    h = b.parameter(TensorType((4, 8), dt.float32))
    for t in range(40):
        x = b.slice(xs, start=(t, 0, 0), stop=(t + 1, 4, 8), step=(1, 1, 1))
        h = b.tanh(b.add(b.matmul(b.reshape(x, shape=(4, 8)), w), h))
    assert _written(monkeypatch, b.finish([h])) <= 3


@pytest.mark.parametrize("target", [None, AVX512, AVX2, CUDA_SM90], ids=["host", "avx512", "avx2", "cuda"])
def test_slices_begin_where_they_did(target):
    """Kernels that read several slices of one value, which is itself an argument or made by a kernel, strided ones and
    the whole beside its parts."""
    b = GraphBuilder(TABLE, "slices")
    given, y = b.parameter(TensorType((9, 10), dt.float32)), b.parameter(TensorType((3, 3), dt.float32))
    results = []
    for x in (given, b.cumulative_sum(given, axis=0)):
        for k in range(4):
            one = b.slice(x, start=(k, 2 * k), stop=(k + 5, 2 * k + 3), step=(2, 1))
            other = b.slice(x, start=(8 - k, k), stop=(9 - k, k + 5), step=(1, 2))
            row = b.broadcast(b.reshape(other, shape=(3,)), shape=(3, 3), axes=(0,))
            results.append(b.add(b.multiply(one, row), y))
            results.append(b.matmul(one, y))
            results.append(b.sum(b.subtract(one, row), axes=(1,)))
            results.append(b.pad(one, low=(k, 0), high=(0, k), interior=(0, 1), value=0))
        whole = b.slice(x, start=(1, 0), stop=(9, 10), step=(1, 1))
        results.append(b.add(whole, b.slice(x, start=(0, 0), stop=(8, 10), step=(1, 1))))
    graph = b.finish(results)
    if target is not None and not host_target.can_run(target):
        compile_graph(graph, target)
        return
    rng = np.random.default_rng(6)
    arrays = [rng.normal(size=n.shape).astype(np.float32) for n in graph.inputs]
    raised, *found = check_cuts(compile_graph(graph, target or host_target.target()), arrays)
    assert not raised
    for expected, result in zip(interpret(graph, arrays)[0], found):
        np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)


def numbered(count, dtype=dt.float32):
    """Kernels that differ in numbers only: of floats, of integers beside them, and of truth values."""
    b = GraphBuilder(TABLE, "numbers")
    x = b.parameter(TensorType((7, 5), dtype))
    results = []
    for k in range(count):
        later = b.greater_equal(b.iota(shape=(7, 5), axis=0, dtype=dt.int64), b.full(k, TensorType((7, 5), dt.int64)))
        y = b.where(later, b.multiply(x, b.full(0.1 * k - 0.5, x.type)), b.full(float(k), x.type))
        part = b.slice(y, start=(k % 3, 0), stop=(k % 3 + 4, 5), step=(1, 1))
        results += [b.cumulative_sum(y, axis=0), b.sum(b.exp(part), axes=(1,))]
    return b.finish(results)


@pytest.mark.parametrize(("count", "written"), [(2, 6), (30, 14)])
def test_kernels_that_differ_in_numbers_only_are_written_once(count, written, monkeypatch):
    """Of thirty, some are left with less to do: their rows all come before the number, or they multiply by one."""
    assert _written(monkeypatch, numbered(count)) <= written


@pytest.mark.parametrize("few", [-1, 1000], ids=["tables", "calls"])
@pytest.mark.parametrize("dtype", [dt.float16, dt.float32, dt.float64], ids=str)
def test_numbers_in_memory_give_the_bits_of_numbers_in_code(dtype, few, monkeypatch):
    graph = numbered(9, dtype)
    arrays = [np.random.default_rng(2).normal(size=(7, 5)).astype(dtype)]
    monkeypatch.setattr(driver, "FEW", few)
    got = check_cuts(compile_graph(graph, host_target.target()), arrays)
    monkeypatch.setattr(kernel_dedup, "MANY", 10**9)
    expected = check_cuts(compile_graph(graph, host_target.target()), arrays)
    assert not got[0] and all(same_bits(g, e) for g, e in zip(got[1:], expected[1:], strict=True))


def test_phases_over_as_many_buffers_have_one_task():
    b = GraphBuilder(TABLE, "tasks")
    x = b.parameter(TensorType((100_000,), dt.float32))
    results = [b.cumulative_sum(b.exp(x), axis=0), b.pad(x, low=(3,), high=(2,), interior=(0,), value=0)]
    results.append(b.pad(x, low=(5,), high=(0,), interior=(0,), value=0))
    program = compile_graph(b.finish(results), AVX512)
    text = program.text + program.sharing
    phases = set(re.findall(r"^define \S+ void @(k\d+)\(", text, re.MULTILINE))
    tasks = re.findall(r"^define \S+ void @(hf_task\d*)\(", text, re.MULTILINE)
    assert len(phases) >= 3 and tasks == ["hf_task2"]
