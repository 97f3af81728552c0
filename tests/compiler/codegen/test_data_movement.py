"""Reversed and looked-up reads, in the forms that vectors have for them: the bits of NumPy on every target."""

from __future__ import annotations

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.compiler import target
from hybridflow.compiler.pipeline import compile_graph
from hybridflow.errors import HybridflowError
from hybridflow.runtime import cpu
from hybridflow.runtime.cuda import ptx
from hybridflow.runtime.machine import host_target, machine_code
from tests.compiler.codegen.test_kernels import same_bits
from tests.compiler.loops.test_fusion import build
from tests.gpu.test_cuda_emission import assert_assembles
from tests.support.cutting_host import check_cuts

pytestmark = pytest.mark.sample(4)  # long cases

TARGETS = [name for name in ("sse2", "avx2", "avx512") if host_target.can_run(target.NAMED[name])]
DTYPES = [np.uint8, np.bool_, np.float64]


def everywhere(program, arrays, want):
    graph = build(program, arrays)
    for name in TARGETS:
        (got,) = cpu.load(compile_graph(graph, target.NAMED[name])).run(arrays)
        same_bits(got, np.ascontiguousarray(want))


@pytest.mark.parametrize("axes", [(1,), (2,), (1, 2), (0, 1, 2)], ids=str)
@pytest.mark.parametrize("channels", [2, 3, 5, 8])
def test_pixels_in_reverse(channels, axes):
    rng = np.random.default_rng(channels)
    for dtype in DTYPES:
        for columns in (3, 37):
            x = rng.integers(0, 2 if dtype == np.bool_ else 200, (3, columns, channels)).astype(dtype)
            everywhere(lambda b, x: b.reverse(x, axes=axes), [x], np.flip(x, axes))


@pytest.mark.parametrize("count", [1, 2, 3, 13, 31, 33, 47, 63, 70])
def test_lines_of_pixels_end_anywhere(count):
    """Cut out of longer lines, so that what is left over behind vectors is left over in each of them."""
    rng = np.random.default_rng(count)
    for dtype, channels in ((np.uint8, 3), (np.bool_, 4), (np.int16, 3), (np.float32, 2), (np.float64, 5)):
        x = rng.integers(0, 2 if dtype == np.bool_ else 200, (4, count + 2, channels)).astype(dtype)
        for axes in ((2,), (1,), (1, 2)):

            def program(b, x, axes=axes, shape=x.shape):
                part = b.slice(x, start=(0, 1, 0), stop=(4, count + 1, shape[2]), step=(1, 1, 1))
                return b.reverse(part, axes=axes)

            everywhere(program, [x], np.flip(x[:, 1:-1], axes))


def test_pixels_in_reverse_are_taken_apart_by_shuffles():
    x = np.zeros((8, 64, 3), np.uint8)
    program = compile_graph(build(lambda b, x: b.reverse(x, axes=(1,)), [x]), target.AVX512)
    assert "across" in program.kernels[0].schedule
    assert "gather" not in program.text


def test_the_last_pixels_of_a_row_are_no_single_loads():
    x = np.zeros((9, 77, 3), np.uint8)
    for axes in ((1,), (1, 2)):
        program = compile_graph(build(lambda b, x, axes=axes: b.reverse(x, axes=axes), [x]), target.AVX512)
        assert "gather" not in program.text and "scatter" not in program.text


@pytest.mark.parametrize(
    "shape, low, high",
    [
        ((5, 40), (1, 2), (0, 3)),
        ((3, 4, 50), (0, 2, 0), (1, 0, 7)),
        ((2, 3, 40, 3), (0, 1, 2, 0), (0, 1, 2, 0)),
        ((0, 40), (2, 1), (1, 1)),
        ((100_000,), (3,), (5,)),
        ((300, 1000), (1, 1), (1, 1)),
    ],
    ids=str,
)
def test_what_lies_around_long_rows_is_filled(shape, low, high):
    """Wherever units are cut, on every target."""
    rng = np.random.default_rng(len(shape))
    for dtype in DTYPES:
        x = rng.integers(0, 2 if dtype == np.bool_ else 200, shape).astype(dtype)
        wanted = np.pad(x, list(zip(low, high)), constant_values=1)
        graph = build(lambda b, x: b.pad(x, low=low, high=high, value=1), [x])
        for name in TARGETS:
            same_bits(check_cuts(compile_graph(graph, target.NAMED[name]), [x], (0,))[1], wanted)


@pytest.mark.parametrize("columns", [1, 5, 64, 65, 200])
def test_rows_by_index(columns):
    rng = np.random.default_rng(columns)
    places = rng.integers(-9, 9, 23)
    for dtype in DTYPES:
        table = rng.integers(0, 2 if dtype == np.bool_ else 200, (9, columns)).astype(dtype)
        everywhere(lambda b, t, i: b.take(t, i, axis=0), [table, places], table[places])


def test_computed_rows_by_index():
    rng = np.random.default_rng(1)
    table, places = rng.standard_normal((9, 70)), rng.integers(-9, 9, 23)
    everywhere(lambda b, t, i: b.take(b.negative(t), i, axis=0), [table, places], -table[places])


def test_an_index_for_all_lanes_is_looked_up_once():
    table, places = np.zeros((9, 64), np.float32), np.zeros(5, np.int64)
    for name in ("avx512", "aarch64"):
        program = compile_graph(build(lambda b, t, i: b.take(t, i, axis=0), [table, places]), target.NAMED[name])
        assert "gather" not in program.text


@pytest.mark.parametrize("columns", [3, 64, 65])
@pytest.mark.parametrize("place", [9, -10, 2**62])
def test_rows_that_are_not_there(columns, place):
    table = hf.asarray(np.ones((9, columns), np.float32))
    places = np.zeros(7, np.int64)
    places[4] = place
    with pytest.raises(HybridflowError, match="take"):
        hf.function(lambda t, i: hf.take(t, i, axis=0) * 2)(table, hf.asarray(places))


def test_rows_of_unknown_extents():
    taken = hf.function(
        lambda t, i: hf.take(t, i, axis=0),
        input_signature=[hf.TensorSpec([None, None], hf.float32), hf.TensorSpec([None], hf.int64)],
    )
    rng = np.random.default_rng(0)
    for rows, columns, count in ((1, 1, 1), (2, 3, 5), (7, 64, 0), (4, 0, 2), (5, 37, 9), (3, 130, 4)):
        table = rng.standard_normal((rows, columns)).astype(np.float32)
        places = rng.integers(-rows, rows, count)
        same_bits(np.asarray(taken(hf.asarray(table), hf.asarray(places))), table[places])
    with pytest.raises(HybridflowError, match="take"):
        taken(hf.asarray(np.zeros((0, 20), np.float32)), hf.asarray(np.zeros(2, np.int64)))


@pytest.mark.parametrize("depth", [0, 1, 63, 64, 200, 4100, 70_000])
def test_columns_times_a_vector_have_the_bits_of_rows(depth):
    """The sums over columns go in the order of a row reduction, whatever is kept in registers."""
    rng = np.random.default_rng(depth)
    lines = 70 if depth < 5000 else 33
    x, u = rng.standard_normal((depth, lines)).astype(np.float32), rng.standard_normal(depth).astype(np.float32)

    def program(b, x, u):
        product = b.matmul(b.transpose(x, perm=(1, 0)), b.reshape(u, shape=(depth, 1)))
        return b.reshape(product, shape=(lines,))

    rows = [np.ascontiguousarray(x.T), np.tile(u, (lines, 1))]
    summed = build(lambda b, x, u: b.sum(b.multiply(x, u), axes=(1,)), rows)
    (want,) = cpu.load(compile_graph(summed, host_target.target())).run(rows)
    everywhere(program, [x, u], want)


def test_other_targets_accept():
    table, places = np.zeros((9, 64), np.float32), np.zeros(5, np.int64)
    pixels = np.zeros((4, 33, 3), np.uint8)
    for program, arrays in (
        (lambda b, t, i: b.take(t, i, axis=0), [table, places]),
        (lambda b, x: b.reverse(x, axes=(1,)), [pixels]),
    ):
        graph = build(program, arrays)
        assert_assembles(ptx.assemble(compile_graph(graph, target.CUDA_SM90)))
        arm = compile_graph(graph, target.AARCH64)
        assert machine_code.compile_object(arm.text, arm.target)


def woven(program, arrays):
    """The schedule for AVX2 of a join, which is to be woven."""
    schedule = compile_graph(build(program, arrays), target.AVX2).kernels[-1].schedule
    assert "woven" in schedule, schedule


@pytest.mark.parametrize("dtype", [np.uint8, np.bool_, np.float32, np.float64], ids=lambda d: d.__name__)
@pytest.mark.parametrize("counts", [(1, 1), (1, 1, 1), (3, 1), (2, 5), (4, 0, 3), (9, 2, 5)], ids=str)
def test_short_parts_are_joined_as_whole_rows(counts, dtype):
    rng = np.random.default_rng(sum(counts))
    for rows in (8, 77):
        arrays = [rng.integers(0, 2 if dtype == np.bool_ else 200, (3, rows, n)).astype(dtype) for n in counts]
        program = lambda b, *xs: b.concat(*xs, axis=2)  # noqa: E731
        woven(program, arrays)
        everywhere(program, arrays, np.concatenate(arrays, 2))
        # Along the axis before, where rows have the elements of two axes.
        turned = [np.ascontiguousarray(x.swapaxes(1, 2)[..., :2]) for x in arrays]
        everywhere(lambda b, *xs: b.concat(*xs, axis=1), turned, np.concatenate(turned, 1))


def test_short_parts_are_read_where_they_lie():
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(shape, np.float32) for shape in ((3, 50), (100, 6)))

    def parts(b, x, y):
        first = b.slice(y, start=(0, 0), stop=(50, 6), step=(1, 2))
        return b.concat(b.transpose(x, perm=(1, 0)), b.negative(first), b.reverse(first, axes=(0, 1)), axis=1)

    halves = y[:50, ::2]
    everywhere(parts, [x, y], np.concatenate([x.T, -halves, halves[::-1, ::-1]], 1))
    program = lambda b, x: b.pad(x, low=(0, 1), high=(0, 2), interior=(0, 0), value=7.0)  # noqa: E731
    woven(program, [y])
    everywhere(program, [y], np.pad(y, ((0, 0), (1, 2)), constant_values=7))


@pytest.mark.parametrize("width", [8, 9, 33])
def test_short_parts_are_joined_where_only_inner_loops_read_evenly(width):
    rng = np.random.default_rng(width)
    x, y = (rng.standard_normal(shape, np.float32) for shape in ((3, 5, 4, width, 2), (5, width)))

    def turned(b, x, y):
        """Pairs times factors that axes of them share: they lie evenly along the last one alone."""
        factor = b.broadcast(y, shape=(3, 5, 4, width), axes=(1, 3))
        parts = [b.slice(x, start=(0, 0, 0, 0, k), stop=(3, 5, 4, width, k + 1)) for k in (0, 1)]
        first, second = (b.reshape(part, shape=(3, 5, 4, width)) for part in parts)
        made = b.multiply(first, factor), b.subtract(factor, second)
        return b.concat(*(b.reshape(part, shape=(3, 5, 4, width, 1)) for part in made), axis=4)

    factor = y[:, None]
    want = np.stack([x[..., 0] * factor, factor - x[..., 1]], -1)
    woven(turned, [x, y])
    everywhere(turned, [x, y], want)
    graph = build(turned, [x, y])
    for name in TARGETS:
        same_bits(check_cuts(compile_graph(graph, target.NAMED[name]), [x, y])[1], want)


def test_cells_of_a_mosaic_are_joined():
    x = np.random.default_rng(0).standard_normal((14, 38), np.float32)

    def cells(b, x):
        rows = b.reshape(x, shape=(7, 2, 19, 2))
        parts = [b.slice(rows, start=(0, i, 0, j), stop=(7, i + 1, 19, j + 1)) for i in (0, 1) for j in (0, 1)]
        return b.concat(*(b.reshape(part, shape=(7, 19, 1)) for part in parts), axis=2)

    woven(cells, [x])
    everywhere(cells, [x], np.stack([x[i::2, j::2] for i in (0, 1) for j in (0, 1)], -1))


@pytest.mark.parametrize("run", [1, 2, 3, 5, 7, 9, 12, 15, 22, 31, 63])
def test_runs_that_are_no_multiple_of_a_vector_are_moved_whole(run):
    rng = np.random.default_rng(run)
    for dtype in (np.float32, np.uint8, np.float64):
        x = rng.integers(0, 200, (5, 6, run)).astype(dtype)
        everywhere(lambda b, x: b.negative(b.transpose(x, perm=(1, 0, 2))), [x], (-x).swapaxes(0, 1))


def test_joins_of_short_parts_may_be_cut_anywhere():
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal((101, n), np.float32) for n in (2, 3)]
    graph = build(lambda b, x, y: b.concat(x, y, axis=1), arrays)
    for name in TARGETS:
        same_bits(check_cuts(compile_graph(graph, target.NAMED[name]), arrays)[1], np.concatenate(arrays, 1))


def test_joins_of_long_or_partial_parts_are_made_one_by_one():
    for shapes, axis in (
        (((50, 8), (50, 8)), 1),
        (((50, 3), (50, 40)), 1),
        (((4, 2), (4, 1)), 1),
        (((3, 9), (5, 9)), 0),
    ):
        arrays = [np.zeros(shape, np.float32) for shape in shapes]
        program = compile_graph(build(lambda b, x, y, axis=axis: b.concat(x, y, axis=axis), arrays), target.AVX2)
        assert "woven" not in program.kernels[-1].schedule


@pytest.mark.parametrize("columns", [2, 3, 4])
def test_short_rows_that_are_looked_up(columns):
    rng = np.random.default_rng(columns)
    places = rng.integers(-50, 50, (3, 37))
    for dtype in DTYPES:
        table = rng.integers(0, 2 if dtype == np.bool_ else 100, (50, columns)).astype(dtype)
        everywhere(lambda b, t, i: b.take(t, i, axis=0), [table, places], table[places])
    with pytest.raises(HybridflowError, match="50"):
        hf.function(lambda t, i: hf.take(t, i, axis=0))(table, np.array([0, 1, 50] * 10))


@pytest.mark.parametrize("count", [1, 3, 7, 8, 9, 15, 31, 32, 33, 63, 100])
@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float32, np.float64], ids=str)
def test_lines_of_joins_end_anywhere(count, dtype):
    """Whole vectors at the ends of lines, those of other parts beside them, in units that are cut anywhere."""
    rng = np.random.default_rng(count)
    x, y = ((rng.random((40, n)) * 3).astype(dtype) for n in (count, 5))
    graph = build(lambda b, x, y: b.concat(x, b.reverse(y, axes=(1,)), b.maximum(x, x), axis=1), [x, y])
    want = np.concatenate([x, y[:, ::-1], x], axis=1)
    for name in TARGETS:
        same_bits(check_cuts(compile_graph(graph, target.NAMED[name]), [x, y])[1], want)


@pytest.mark.parametrize("count", [17, 31, 40, 63, 95, 127, 129])
def test_rows_of_maps_end_anywhere(count):
    rng = np.random.default_rng(count)
    for dtype in (np.float32, np.float64, np.int8):
        x, y = (rng.random((9, count)) * 100).astype(dtype), (rng.random(count) * 100).astype(dtype)
        everywhere(lambda b, x, y: b.add(x, b.broadcast(y, shape=(9, count), axes=(1,))), [x, y], x + y)
