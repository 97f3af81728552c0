"""Elements that lie a few apart, read and written in vectors with what lies between: the right ones, and no others."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from hybridflow.compiler import target
from hybridflow.compiler.pipeline import compile_graph
from hybridflow.runtime import cpu
from tests.compiler.codegen.test_padded_reads import TARGETS, between_forbidden_pages
from tests.compiler.loops.test_fusion import build
from tests.support.masked_code import run_masked

DTYPES = [np.bool_, np.int8, np.uint16, ml_dtypes.bfloat16, np.float32, np.int64, np.float64]


def _numbers(dtype: type, *shape: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 100, shape).astype(dtype)


def _ran(program, *arrays: np.ndarray):
    graph = build(program, arrays)
    for name in TARGETS:
        yield name, cpu.load(compile_graph(graph, target.NAMED[name])).run(arrays)[0]
    if "avx512" not in TARGETS and arrays[0].itemsize in (1, 4):  # other sizes have the same code
        yield "masked", run_masked(graph, arrays)[0]


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)
@pytest.mark.parametrize("step", [2, 3, 4, 5, 6, 7])
def test_every_few(dtype, step):
    for n in (1, 15, 33, 70):
        x = _numbers(dtype, 3, n)
        for first in {0, min(step, n) - 1}:

            def program(b, x, first=first, n=n):
                part = b.slice(x, start=(0, first), stop=(3, n), step=(1, step))
                backwards = b.reverse(part, axes=(1,))
                return b.equal(part, backwards) if dtype is np.bool_ else b.maximum(part, backwards)

            part = x[:, first::step]
            want = (np.equal if dtype is np.bool_ else np.maximum)(part, part[:, ::-1])
            for name, found in _ran(program, x):
                assert (found == want).all(), (name, n, first)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)
@pytest.mark.parametrize("count", [2, 3, 4, 5])
def test_stacked_along_the_last_axis(dtype, count):
    for n in (1, 15, 33, 70):
        arrays = [_numbers(dtype, 2, n, 1) for _ in range(count)]
        for name, found in _ran(lambda b, *xs: b.concat(*xs, axis=2), *arrays):
            assert (found == np.concatenate(arrays, 2)).all(), (name, n)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64], ids=lambda dtype: np.dtype(dtype).name)
@pytest.mark.parametrize("step", [2, 3, 4, 6])
def test_nothing_outside_is_read(dtype, step):
    count = 4096 // np.dtype(dtype).itemsize
    x = between_forbidden_pages(_numbers(dtype, count))
    for first, last in ((0, count), (1, count), (count - 1 - 20 * step, count), (0, 16 * step + 1), (0, step + 1)):

        def program(b, x, first=first, last=last):
            part = b.slice(x, start=(first,), stop=(last,), step=(step,))
            return b.add(part, b.reverse(part, axes=(0,)))

        part = x[first:last:step]
        for name, found in _ran(program, x):
            assert (found == part + part[::-1]).all(), name


@pytest.mark.parametrize("step", [3, 4, 5, 6])
def test_nothing_outside_of_short_lines_is_read(step):
    """Vectors narrower than what lies from one lane to the next."""
    x = between_forbidden_pages(_numbers(np.float32, 64, 16))
    for first in (0, 15 - step):  # up to the end of the last line, and from the start of the first

        def program(b, x, first=first):
            part = b.slice(x, start=(0, first), stop=(64, first + step + 1), step=(1, step))
            return b.add(part, b.reverse(part, axes=(1,)))

        part = x[:, first : first + step + 1 : step]
        for name, found in _ran(program, x):
            assert (found == part + part[:, ::-1]).all(), name


def test_what_lies_between_is_not_written():
    """Padding between elements is laid by one loop, the elements by another."""
    x = _numbers(np.float32, 5, 33)
    want = np.full((5, 3 * 32 + 1), -7, np.float32)
    want[:, ::3] = x
    for name, found in _ran(lambda b, x: b.pad(x, low=(0, 0), high=(0, 0), interior=(0, 2), value=-7), x):
        assert (found == want).all(), name
