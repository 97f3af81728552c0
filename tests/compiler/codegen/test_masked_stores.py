"""The last vector of a row, of which some lanes are on: it writes these elements and nothing behind them.

LLVM 22 goes wrong where it finds late that a mask is constant and has one lane on: it makes a scalar store of a masked
one, and forgets that elements are narrowed on the way, or stores another lane's.  So masks are constants in the text,
and then have two lanes on at the least, or depend on what only the running program knows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import hybridflow as hf
from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.types import TensorType
from hybridflow.compiler.ops import TABLE
from hybridflow.compiler.pipeline import compile_graph
from hybridflow.compiler.target import AVX2, AVX512, NAMED, SSE2, Target
from hybridflow.runtime import cpu
from hybridflow.runtime.machine import host_target
from tests.support.device_programs import PROGRAMS, graph_of, largest_sample, traced, typical_dtypes
from tests.support.masked_code import run_masked

DTYPES = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "bfloat16", "float16", "float32")
SOURCES = ("int8", "uint16", "int32", "int64", "bfloat16", "float32", "float64")


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("rest", [5, 9, 17, 33, 65])
def test_elements_behind_a_masked_store(source: str, rest: int) -> None:
    def program(x: Any) -> list[Any]:
        most = hf.max(hf.astype(x, "float32"), axis=(0, 2), keepdims=True)  # rows are written in another order
        return [hf.astype(hf.astype(x, "float32") + most, d) for d in DTYPES] + [
            hf.astype(x, d) for d in DTYPES if d != source
        ]

    x = hf.astype(hf.asarray(np.random.default_rng(rest).integers(1, 50, (3, 2, rest))), source)
    for expected, found in zip(program(x), hf.function(program)(x), strict=True):
        assert np.array_equal(np.array(expected), np.array(found)), str(expected.dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_single_program(dtype: str) -> None:
    def program(x: Any) -> Any:
        return hf.astype(x + hf.max(x, axis=(0, 2), keepdims=True), dtype)

    x = hf.asarray(np.random.default_rng(0).integers(1, 50, (2, 2, 33)).astype(np.float32))
    for target in ("sse2", "avx2", None):
        with host_target.use(host_target.target() if target is None else NAMED[target]):
            assert np.array_equal(np.array(hf.function(program)(x)), np.array(program(x)))


# ---- short rows that are turned: all rests


@pytest.mark.sample(4)
@pytest.mark.parametrize("count", range(2, 17))
@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.float32, np.uint16, ml_dtypes.bfloat16, np.int8, np.bool_])
def test_rests_of_turned_rows(dtype: Any, count: int) -> None:
    """``matrix_transpose`` of stacks whose rows have so many elements, and whose last vector any number of lanes."""
    lanes = 8 if np.dtype(dtype).itemsize == 8 else 16
    b = GraphBuilder(TABLE, "turned")
    rng = np.random.default_rng(count)
    arrays = [rng.integers(0, 100, (2, 2 * lanes + rest, count)).astype(dtype) for rest in range(1, lanes)]
    inputs = [b.parameter(TensorType(a.shape, a.dtype)) for a in arrays]
    graph = b.finish([b.transpose(x, perm=(0, 2, 1)) for x in inputs])
    machines = [host_target.target()] if count not in (3, 5, 8) else [host_target.target(), AVX2, SSE2]
    outputs = [cpu.load(compile_graph(graph, m)).run(arrays) for m in machines if host_target.can_run(m)]
    if not host_target.target().masked and count in (5, 9):
        outputs.append(run_masked(graph, arrays))
    for found in outputs:
        for a, turned in zip(arrays, found, strict=True):
            assert np.array_equal(a.swapaxes(1, 2), turned), a.shape


# ---- masks in the text

_VALUE = re.compile(r"\s*(%[\w.]+) = (\w+) (.*)")
_NAME = re.compile(r"%[\w.]+")
_MASKED = re.compile(r"@llvm\.masked\..*<\d+ x i1> (%[\w.]+|<[^>]*>|splat \(i1 \w+\))")
_READS = re.compile(r"masked|call (?!.*@llvm)")
_UNKNOWN = frozenset({"load", "phi", "alloca", "extractvalue", "getelementptr", "atomicrmw", "cmpxchg"})


def badly_masked(text: str) -> Iterator[str]:
    """Masked instructions whose mask is calculated from constants, or is one with less than two lanes on."""
    for function in re.split(r"(?m)^(?=define )", text):
        known: set[str] = set()  # values that follow from constants
        for line in function.splitlines():
            value = _VALUE.match(line)
            calculated = value is not None and value[2] not in _UNKNOWN and not _READS.search(line)
            if calculated and set(_NAME.findall(value[3])) <= known:
                known.add(value[1])
            masked = _MASKED.search(line)
            if masked is not None:
                constant = masked[1].startswith("<") and masked[1].count("true") < 2
                if constant or masked[1] in known:
                    yield line.strip()


def _texts(target: Target, some: Callable[..., list[Any]]) -> Iterator[str]:
    graphs = [traced(name) for name in some(PROGRAMS, 8)]
    for op in some(TABLE.values(), 24):
        graphs += [graph_of(op, *largest_sample(op, dtype)) for dtype in (typical_dtypes(op) if op.dtypes else ())]
    for graph in graphs:
        program = compile_graph(graph, target)
        yield program.text + program.sharing


@pytest.mark.parametrize("target", [AVX512, AVX2], ids=["avx512", "avx2"])
def test_masks_are_constants_or_not_known(target: Target, some: Callable[..., list[Any]]) -> None:
    found = [line for text in _texts(target, some) for line in badly_masked(text)]
    assert not found, found[:3]


def test_how_masks_are_told_apart() -> None:
    head = "define void @f(ptr %a) {\n  %s = add <2 x i32> splat (i32 1), splat (i32 1)\n"
    store = "  call void @llvm.masked.store.v2f32.p0(<2 x float> %v, ptr align 4 %a, <2 x i1> {})"
    late = f"{head}  %m = icmp slt <2 x i32> <i32 0, i32 1>, %s\n{store.format('%m')}\n}}"
    assert len(list(badly_masked(late))) == 1
    assert len(list(badly_masked(head + store.format("<i1 true, i1 false>")))) == 1
    assert not list(badly_masked(head + store.format("<i1 true, i1 true>")))
    unknown = f"{head}  %n = load <2 x i32>, ptr %a\n  %m = icmp slt <2 x i32> %n, %s\n{store.format('%m')}\n}}"
    assert not list(badly_masked(unknown))
