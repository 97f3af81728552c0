"""Programs that the disk keeps: found by whatever decides them, and by nothing else."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from hybridflow import flags
from hybridflow.compiler import pipeline
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.types import TensorType
from hybridflow.compiler.ops import TABLE
from hybridflow.compiler.target import AVX2, AVX512, CUDA_SM90
from hybridflow.eager import program_cache
from hybridflow.runtime.machine import disk_cache
from tests.support.device_programs import PROGRAMS, traced

pytestmark = pytest.mark.code


@pytest.fixture
def compiled(tmp_path, monkeypatch):
    """The graphs that were compiled, with an empty folder for what is kept."""
    graphs = []
    compile_graph = pipeline.compile_graph
    monkeypatch.setattr(pipeline, "compile_graph", lambda *given: (graphs.append(given), compile_graph(*given))[1])
    with flags.CACHE_DIR(str(tmp_path)), flags.VERIFY(0), flags.DEBUG(0), flags.LOG(""), flags.DUMP(""):
        yield graphs


def graph(value=1.5, first="a.py:1", second="a.py:2", name="g", dtype=dt.float32):
    b = GraphBuilder(TABLE, name)
    x = b.parameter(TensorType((5,), dtype), "x")
    index = b.parameter(TensorType((3,), dt.int64), "index")
    b.location = first
    y = b.add(x, b.full(value, x.type))
    b.location = second
    return b.finish([b.take(y, index, axis=0)])


@pytest.mark.parametrize("target", [AVX512, CUDA_SM90], ids=["cpu", "cuda"])
@pytest.mark.parametrize("name", list(PROGRAMS))
def test_what_is_read_is_what_was_made(name, target, compiled):
    first, second = traced(name), traced(name)
    compiled.clear()  # making a concrete function compiled something
    disk_cache.clear()
    made, read = program_cache.program_for(first, target), program_cache.program_for(second, target)
    assert len(compiled) == 1 and read == made and read is not made


def test_the_lines_are_those_of_the_graph_that_asks(compiled):
    program_cache.program_for(graph(), AVX512)
    moved = program_cache.program_for(graph(first="b.py:7", second="b.py:9"), AVX512)
    assert len(compiled) == 1
    assert moved == pipeline.compile_graph(graph(first="b.py:7", second="b.py:9"), AVX512)
    assert {check.where for check in moved.checks} == {"b.py:9"}


def repeated(line):
    """A graph that runs a sub-graph with a check, whose nodes have this line."""
    types = TensorType((5,), dt.float32), TensorType((3,), dt.int64)
    inner = GraphBuilder(TABLE, "inner")
    inner.location = line
    body = inner.finish([inner.take(*map(inner.parameter, types), axis=0)])
    b = GraphBuilder(TABLE, "g")
    b.location = "a.py:1"
    return b.finish(b.results(b.call(*map(b.parameter, types), body=body)))


def test_lines_of_sub_graphs_are_those_of_the_graph_that_asks(compiled):
    for line in ("a.py:3", "a.py:3", "b.py:7"):
        (check,) = program_cache.program_for(repeated(line), AVX512).checks
        assert check.where == line
    program_cache.program_for(repeated("a.py:1"), AVX512)  # the same line inside and outside
    assert len(compiled) == 2


@pytest.mark.parametrize(
    "other",
    [
        {"value": np.nextafter(np.float32(1.5), np.float32(2))},
        {"value": -1.5},
        {"name": "h"},
        {"dtype": dt.float64},
        {"second": "a.py:1"},  # one line for both: another list of lines in what is shown of the kernel
    ],
    ids=str,
)
def test_what_differs_is_compiled(other, compiled):
    program_cache.program_for(graph(), AVX512)
    program_cache.program_for(graph(**other), AVX512)
    assert len(compiled) == 2


def test_targets_and_flags_are_part_of_the_key(compiled):
    for target in (AVX512, AVX2, dataclasses.replace(AVX512, l2=1 << 18), CUDA_SM90):
        program_cache.program_for(graph(), target)
    program_cache.program_for(graph(), AVX512, True)
    assert program_cache.program_for(graph(), AVX512, timed=True).tasks is not None
    with flags.SKIP("simplify"):
        program_cache.program_for(graph(), AVX512)
    assert len(compiled) == 7
    assert program_cache.program_for(graph(), AVX512).tasks is None
    assert len(compiled) == 7


@pytest.mark.parametrize("flag", [flags.VERIFY(1), flags.LOG("passes")], ids=["verify", "log"])
def test_who_wants_to_see_the_compiler_sees_it(flag, compiled):
    program_cache.program_for(graph(), AVX512)
    with flag:
        program_cache.program_for(graph(), AVX512)
    assert len(compiled) == 2


def test_damage_is_as_if_nothing_were_there(compiled):
    made = program_cache.program_for(graph(), AVX512)
    (entry,) = disk_cache.entries()
    disk_cache.clear()
    lines = program_cache._lines(graph())
    choices = program_cache.measured_schedules.choices_for(AVX512)
    key = program_cache._key(graph(), AVX512, (False, False, False), lines, ["a.py:1", "a.py:2"], choices)
    for payload in (b"", b"nonsense", b"\x80\x05N.", program_cache._written(made, ["a.py:1", "a.py:2"])[:-9]):
        disk_cache.put(key, payload)
        assert [e.digest for e in disk_cache.entries()] == [entry.digest]
        assert program_cache.program_for(graph(), AVX512) == made
    assert len(compiled) == 5
