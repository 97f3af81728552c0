"""Factors that loops lay out once: sums of integers in loops, in whatever way panels are read."""

from __future__ import annotations

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.array.linalg import matmul
from hybridflow.compiler.interpreter import interpret
from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.types import TensorType
from hybridflow.compiler.ops import TABLE
from hybridflow.compiler.ops.packed_panels import matrix_of, panels_of
from hybridflow.compiler.pipeline import compile_graph
from hybridflow.compiler.target import NAMED
from tests.compiler.loops.test_fusion import build
from tests.support.teams import threads

INT32 = np.dtype(np.int32)
EXTREMES = {np.int8: (-128, 127), np.uint8: (0, 255), np.int16: (-(1 << 15), (1 << 15) - 1)}


def sums(states: hf.Tensor, weight: hf.Tensor, rows: hf.Tensor, transposed: bool = False) -> hf.Tensor:
    def step(carry, row):
        total = matmul(carry[0], weight.T if transposed else weight, sum_dtype=INT32) + row
        return hf.astype(total[:, : states.shape[1]], states.dtype), total

    return hf.scan(
        step, rows, (states, hf.zeros((states.shape[0], weight.shape[0 if transposed else 1]), dtype="int32"))
    )[1]


def expected(states: np.ndarray, weight: np.ndarray, rows: np.ndarray) -> np.ndarray:
    totals = []
    for row in rows:
        totals.append((states.astype(np.int64) @ weight.astype(np.int64) + row).astype(np.int32))
        states = totals[-1][:, : states.shape[1]].astype(states.dtype)
    return np.array(totals)


@pytest.mark.parametrize("dtype", EXTREMES)
@pytest.mark.parametrize("transposed", [False, True])
def test_products_in_loops(dtype: type, transposed: bool) -> None:
    """One row and some, one block of the depth and two; with least and largest numbers side by side."""
    rng = np.random.default_rng(8)
    for count, depth, columns in ((1, 64, 128), (3, 64, 192), (11, 64, 96), (2, 544, 576)):
        low, high = EXTREMES[dtype]
        states, weight = (rng.integers(low, high, shape, endpoint=True) for shape in ((count, depth), (depth, columns)))
        states[:, :6], weight[:4], weight[:, 3:9] = low, low, high
        rows = rng.integers(-(1 << 31), 1 << 31, (5, count, columns)).astype(np.int32)
        arrays = states.astype(dtype), weight.astype(dtype), rows
        given = arrays[0], arrays[1].T.copy() if transposed else arrays[1], rows
        compiled = hf.function(lambda s, w, r: sums(s, w, r, transposed))
        for team in (1, 2, 3):
            with threads(team):
                np.testing.assert_array_equal(compiled(*map(hf.asarray, given)).numpy(), expected(*arrays))


def test_open_extents() -> None:
    specs = [hf.TensorSpec(shape, "int8") for shape in ((None, 64), (64, 128))]
    compiled = hf.function(sums, input_signature=[*specs, hf.TensorSpec((None, None, 128), "int32")])
    rng = np.random.default_rng(3)
    for steps, count in ((5, 1), (1, 2), (4, 13), (0, 3), (3, 0)):
        states, weight = (rng.integers(-128, 128, shape).astype(np.int8) for shape in ((count, 64), (64, 128)))
        rows = rng.integers(-99, 99, (steps, count, 128)).astype(np.int32)
        found = compiled(*map(hf.asarray, (states, weight, rows))).numpy()
        np.testing.assert_array_equal(found, expected(states, weight, rows).reshape(rows.shape))


def program(b, states, weight, rows):
    inner = GraphBuilder(TABLE, "body")
    state, row, matrix = (
        inner.parameter(TensorType(x.shape[skipped:], x.dtype)) for x, skipped in ((states, 0), (rows, 1), (weight, 0))
    )
    total = inner.add(inner.matmul(state, matrix, lanes=False, sum_dtype=INT32), row)
    after = inner.convert(inner.slice(total, start=(0, 0), stop=state.shape), dtype=state.dtype)
    body = inner.finish((after, total))
    loop = b.scan(states, rows, weight, body=body, carries=1, stacked=1, length=rows.shape[0], reverse=False)
    return b.results(loop)


@pytest.mark.parametrize("name", ["sse2", "avx2", "avx512"])
def test_panels_are_read_where_they_lie(name: str) -> None:
    arrays = np.zeros((3, 64), np.int8), np.zeros((64, 128), np.int8), np.zeros((9, 3, 128), np.int32)
    program_here = compile_graph(build(program, arrays), NAMED[name])
    assert any("prepacked" in kernel.schedule for kernel in program_here.kernels)


def test_panels_of_a_matrix_and_back() -> None:
    matrix = np.arange(8 * 12, dtype=np.int16).reshape(8, 12)
    graph = build(lambda b, w: (panels_of(b, w, 4), matrix_of(b, panels_of(b, w, 4))), [matrix])
    (panels, back), _ = interpret(graph, [matrix])
    np.testing.assert_array_equal(panels, matrix.reshape(4, 2, 3, 4).transpose(2, 0, 3, 1))
    np.testing.assert_array_equal(back, matrix)
