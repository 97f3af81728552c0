"""Products of a matrix with a vector of few elements: the bits that a row reduction has, on every target."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from hybridflow.compiler import target
from hybridflow.compiler.ops.evaluation_order import ordered_product
from hybridflow.compiler.pipeline import compile_graph
from hybridflow.runtime import cpu
from hybridflow.runtime.machine import host_target
from tests.compiler.codegen.test_kernels import same_bits
from tests.compiler.loops.test_fusion import build
from tests.support.cutting_host import check_cuts

TARGETS = [name for name in ("sse2", "avx2", "avx512") if host_target.can_run(target.NAMED[name])]


def _values(dtype: type, *shape: int) -> np.ndarray:
    rng = np.random.default_rng(sum(shape))
    if not np.issubdtype(dtype, np.floating) and dtype is not ml_dtypes.bfloat16:
        return rng.integers(0, 100, shape).astype(dtype)
    found = rng.standard_normal(shape).astype(dtype)
    found.flat[:: max(found.size // 3, 1)] = -0.0
    return found


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64, np.int8, np.int64])
@pytest.mark.parametrize("terms", [1, 2, 3, 4, 7, 8, 9, 15, 16, 17])
def test_lines_times_a_vector(dtype, terms):
    for lines in (1, 2, 7, 33, 100):
        x, w = _values(dtype, lines, terms), _values(dtype, terms, 1)
        want = ordered_product(x, w, np.dtype(dtype), lanes=True)
        programs = (
            (lambda b, x, w: b.matmul(x, w, lanes=True), [x, w]),
            (lambda b, x, w: b.matmul(x, w, lanes=True, transpose_a=True), [np.ascontiguousarray(x.T), w]),
        )
        for program, arrays in programs:
            for name in TARGETS:
                (found,) = cpu.load(compile_graph(build(program, arrays), target.NAMED[name])).run(arrays)
                same_bits(found, want)


@pytest.mark.parametrize("terms", [2, 3, 4])
def test_each_entry_has_a_vector_of_its_own(terms):
    for entries, lines in ((1, 1), (5, 1), (3, 40), (50, 3)):
        x, w = _values(np.float32, entries, lines, terms), _values(np.float32, entries, terms, 1)
        want = ordered_product(x, w, np.dtype(np.float32), lanes=True)
        for name in TARGETS:
            (found,) = cpu.load(compile_graph(build(lambda b, x, w: b.matmul(x, w), [x, w]), target.NAMED[name])).run(
                [x, w]
            )
            same_bits(found, want)


def test_what_is_weighted_is_computed_in_the_loops():
    """Bytes are converted where they are read, and results finished where they are made, in one kernel cut anywhere."""
    x, w = _values(np.uint8, 1001, 3), _values(np.float32, 3, 1)

    def program(b, x, w):
        return b.negative(b.matmul(b.convert(x, dtype=np.dtype(np.float32)), w))

    graph = build(program, [x, w])
    want = -ordered_product(x.astype(np.float32), w, np.dtype(np.float32), lanes=True)
    for name in TARGETS:
        program = compile_graph(graph, target.NAMED[name])
        assert len(program.kernels) == 1
        same_bits(check_cuts(program, [x, w])[1], want)


def test_the_order_of_a_special_value_counts():
    x = np.array([[np.inf, -np.inf, 1], [np.nan, 1, 2], [-0.0, -0.0, -0.0], [3e38, 3e38, -3e38]] * 5, np.float32)
    w = np.ones((3, 1), np.float32)
    want = ordered_product(x, w, np.dtype(np.float32), lanes=True)
    for name in TARGETS:
        (found,) = cpu.load(compile_graph(build(lambda b, x, w: b.matmul(x, w), [x, w]), target.NAMED[name])).run(
            [x, w]
        )
        np.testing.assert_array_equal(found, want)
        assert (np.signbit(found) == np.signbit(want))[~np.isnan(want)].all()
