"""Kernels of one structure are written once; that is what writing each of them would give."""

from __future__ import annotations

import re

import pytest

from hybridflow.compiler.codegen import module_builder
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.types import TensorType
from hybridflow.compiler.ops import TABLE
from hybridflow.compiler.pipeline import compile_graph
from hybridflow.compiler.target import AVX512, CUDA_SM90
from tests.device_programs import PROGRAMS, traced


def bodies(text: str) -> list[str]:
    """The functions of a module, with the numbers of kernels by first appearance."""
    numbers: dict[str, str] = {}
    text = re.sub(r"@k\d+\b", lambda found: numbers.setdefault(found.group(), f"@k{len(numbers)}"), text)
    return sorted(part.partition("\n}")[0] for part in text.split("\ndefine ")[1:])


@pytest.mark.parametrize("target", [AVX512, CUDA_SM90], ids=["cpu", "cuda"])
@pytest.mark.parametrize("name", list(PROGRAMS))
def test_the_same_code_as_without(name, target, monkeypatch):
    shared = bodies(compile_graph(traced(name), target).text)
    monkeypatch.setattr(module_builder, "structure", lambda *_: None)
    assert bodies(compile_graph(traced(name), target).text) == shared


def _written(monkeypatch, graph) -> int:
    """How many kernels are written for a graph."""
    written = []
    write = module_builder.ModuleBuilder._write
    monkeypatch.setattr(module_builder.ModuleBuilder, "_write", lambda self, k: (written.append(k), write(self, k))[1])
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
