"""Matrix products, sorting, running folds and scattering: the kernels that are written by hand."""

from __future__ import annotations

import itertools

import llvmlite.binding as llvm
import ml_dtypes
import numpy as np
import pytest

from hybridflow.compiler import target as targets
from hybridflow.compiler.codegen.core.kernel_builder import KernelBuilder, lanes_for
from hybridflow.compiler.codegen.ordering import quicksort
from hybridflow.compiler.codegen.products.cache_blocking import choose_tile
from hybridflow.compiler.codegen.products.packed_formats import packed_format_of
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.extents import Dim
from hybridflow.compiler.loops.tuning import TRANSPOSE_SQUARE
from hybridflow.compiler.ops import TABLE, evaluation_order
from hybridflow.compiler.ops.lowering import ScatterAdd
from hybridflow.compiler.program import Check
from tests.support.jit_helper import machine, product_targets, runnable_targets
from tests.support.special_helper import (
    Kernel,
    emit_argsort,
    emit_matmul,
    emit_scan,
    emit_scatter_add,
    emit_sort,
    emit_top,
    kernel_text,
)
from tests.support.twins import ordered_product

pytestmark = pytest.mark.sample(4)  # long cases

RUNNABLE = runnable_targets()
PRODUCTS = product_targets()
BEST = list(RUNNABLE.values())[-1]
FOREIGN = [targets.AARCH64, targets.CUDA_SM80, targets.CUDA_SM90]


def accepted(text: str, target: targets.Target) -> None:
    """The back end of another machine makes assembly of the module."""
    tm = machine(target)
    module = llvm.parse_assembly(text)
    module.data_layout = str(tm.target_data)
    module.verify()
    assert "entry" in tm.emit_assembly(module)


# ---- matmul


def matmul_kernel(dtype, batch, m, n, k, target=BEST, dims=(), one_thread=False, **options):
    def emit(module, e):
        return emit_matmul(module, e, "k", np.dtype(dtype), batch, m, n, k, dims=dims, **options)

    return Kernel(emit, target, 3, dims, one_thread)


def product(kernel, x, y, transpose_a=False, transpose_b=False, cuts=(), sum_dtype=None, **extents):
    *batch, m, _ = x.shape
    out = np.full((*batch, m, y.shape[-1]), 77, sum_dtype or x.dtype)
    a = np.ascontiguousarray(np.swapaxes(x, -1, -2)) if transpose_a else x
    b = np.ascontiguousarray(np.swapaxes(y, -1, -2)) if transpose_b else y
    assert kernel(a, b, out, cuts=cuts, **extents) is None
    return out


def random_matrices(dtype, batch, m, n, k, seed=0):
    rng = np.random.default_rng(seed)
    if dt.is_float(np.dtype(dtype)):
        return rng.standard_normal((*batch, m, k)).astype(dtype), rng.standard_normal((*batch, k, n)).astype(dtype)
    info = np.iinfo(dtype)
    return tuple(rng.integers(info.min, info.max, (*batch, *s), dtype, endpoint=True) for s in ((m, k), (k, n)))


def expected_integers(x, y):
    """The product modulo 2**bits, in Python integers' stead: uint64 wraps alike for signed and unsigned."""
    return (x.astype(np.int64).view(np.uint64) @ y.astype(np.int64).view(np.uint64)).astype(x.dtype)


SHAPES = [
    (1, 1, 1),
    (70, 1, 300),
    (1, 17, 300),
    (5, 1, 9),
    (13, 40, 256),
    (30, 70, 257),
    (64, 33, 513),
    (3, 130, 1),
    (61, 10, 128),
    (14, 1040, 260),
    (9, 1024, 260),  # columns whose lines take each other's place in a cache
]
TRANSPOSES = list(itertools.product([False, True], repeat=2))


@pytest.mark.parametrize("transpose_a, transpose_b", TRANSPOSES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.sample(3)
def test_matmul_symbolic_shapes(dtype, transpose_a, transpose_b):
    swaps = {"transpose_a": transpose_a, "transpose_b": transpose_b}
    kernel = matmul_kernel(dtype, (Dim("b"),), Dim("m"), Dim("n"), Dim("k"), dims=("k", "b", "m", "n"), **swaps)
    for m, n, k in [*SHAPES, (0, 3, 4), (3, 0, 4), (3, 4, 0), (300, 300, 300)]:
        x, y = random_matrices(dtype, (2,), m, n, k)
        out = product(kernel, x, y, **swaps, b=2, m=m, n=n, k=k)
        wide = x.astype(np.float64) @ y.astype(np.float64)
        bound = np.abs(x).astype(np.float64) @ np.abs(y).astype(np.float64) * np.finfo(dtype).eps * (k + 1)
        assert (np.abs(out - wide) <= bound).all()


@pytest.mark.parametrize("m, n, k", SHAPES)
def test_static_symbolic_cut_and_every_target_give_equal_bits(m, n, k):
    x, y = random_matrices(np.float32, (2,), m, n, k)
    symbolic = matmul_kernel(np.float32, (Dim("b"),), Dim("m"), Dim("n"), Dim("k"), dims=("b", "m", "n", "k"))
    first = product(symbolic, x, y, b=2, m=m, n=n, k=k)
    total = symbolic.units(b=2, m=m, n=n, k=k)
    cut = product(symbolic, x, y, cuts=sorted({total // 5, total // 2, total - 1} - {-1}), b=2, m=m, n=n, k=k)
    np.testing.assert_array_equal(cut, first)
    for name, target in RUNNABLE.items():
        out = product(matmul_kernel(np.float32, (2,), m, n, k, target), x, y)
        np.testing.assert_array_equal(out, first, err_msg=name)


def test_a_product_of_any_size_without_a_second_cache():
    """As machines say that know of none."""
    x, y = random_matrices(np.float32, (), 61, 35, 40)
    kernel = matmul_kernel(np.float32, (), Dim("m"), 35, 40, BEST.with_(l2=0), dims=("m",))
    np.testing.assert_array_equal(product(kernel, x, y, m=61), ordered_product(x, y, dt.float32))


@pytest.mark.parametrize("transpose_a, transpose_b", TRANSPOSES)
def test_the_order_of_the_sum_is_as_stated(transpose_a, transpose_b):
    x, y = random_matrices(np.float32, (), 9, 37, 700)
    swaps = {"transpose_a": transpose_a, "transpose_b": transpose_b}
    out = product(matmul_kernel(np.float32, (), 9, 37, 700, **swaps), x, y, **swaps)
    np.testing.assert_array_equal(out, ordered_product(x, y, dt.float32))
    assert (out != (x.astype(np.float64) @ y.astype(np.float64)).astype(np.float32)).any()


@pytest.mark.parametrize("target", RUNNABLE.values(), ids=RUNNABLE)
@pytest.mark.parametrize("at_home", [False, True])
def test_packed_columns_serve_several_blocks_of_rows(at_home, target):
    """With a second cache that has room for few rows; whole and partial tiles, cut by rows and by columns."""
    small = target.with_(l2=1 << 15)
    cases = [(61, 70, 530, np.float32), (70, 35, 257, np.float32), (150, 33, 40, np.float64), (40, 70, 300, np.float16)]
    for swapped, (m, n, k, dtype) in zip((False, True, False, False), cases):
        x, y = random_matrices(dtype, (2,), m, n, k)
        kernel = matmul_kernel(dtype, (2,), m, n, k, small, transpose_b=swapped, at_home=at_home)
        out = product(kernel, x, y, transpose_b=swapped, cuts=(1, 4))
        np.testing.assert_array_equal(bits(out), bits(ordered_product(x, y, np.dtype(dtype))))


@pytest.mark.parametrize("target", RUNNABLE.values(), ids=RUNNABLE)
def test_one_row_goes_in_the_order_of_products(target):
    """With a first cache that has room for few sums."""
    small = target.with_(l1=1 << 10)
    for n, k, dtype in [(300, 700, np.float32), (65, 5, np.int32), (17, 256, np.float64), (130, 0, np.float32)]:
        x, y = random_matrices(dtype, (3,), 1, n, k)
        for turned in (False, True):
            out = product(
                matmul_kernel(dtype, (3,), 1, n, k, small, transpose_b=turned, lanes=False),
                x,
                y,
                transpose_b=turned,
                cuts=(1, 3),
            )
            np.testing.assert_array_equal(bits(out), bits(ordered_product(x, y, np.dtype(dtype))))


def test_one_row_of_open_extents_whose_lines_are_turned():
    kernel = matmul_kernel(np.float32, (), 1, Dim("n"), Dim("k"), dims=("n", "k"), transpose_b=True, lanes=False)
    for n, k in [(1, 1), (2, 9), (17, 300), (70, 256), (5, 0), (0, 5)]:
        x, y = random_matrices(np.float32, (), 1, n, k)
        out = product(kernel, x, y, transpose_b=True, n=n, k=k)
        np.testing.assert_array_equal(bits(out), bits(ordered_product(x, y, dt.float32)))


@pytest.mark.parametrize("target", RUNNABLE.values(), ids=RUNNABLE)
@pytest.mark.parametrize("transpose_a, transpose_b", TRANSPOSES)
def test_small_products_go_in_the_one_order(transpose_a, transpose_b, target):
    """Tiles with edges of every kind, in stacks that are cut; with sums that underflow, overflow or are no numbers."""
    swaps = {"transpose_a": transpose_a, "transpose_b": transpose_b}
    sizes = [(2, 2, 2), (3, 3, 3), (4, 4, 4), (8, 8, 8), (5, 7, 31), (17, 15, 9), (33, 35, 20), (1, 6, 3), (6, 1, 3)]
    for m, n, k in sizes:
        for dtype in (np.float32, np.float64, np.float16, np.int32) if m == n else (np.float32,):
            x, y = random_matrices(dtype, (5,), m, n, k)
            if dtype == np.float32:
                x[1], y[1] = 1e-30, -1e-30
                x[2, 0], y[3, 0] = np.inf, np.nan
            kernel = matmul_kernel(dtype, (5,), m, n, k, target, **swaps)
            out = product(kernel, x, y, **swaps, cuts=(1, 3, 4))
            np.testing.assert_array_equal(out, ordered_product(x, y, np.dtype(dtype)), err_msg=f"{m} {n} {k}")
            assert m < 2 or not np.signbit(out[1]).any() or dtype != np.float32


def test_small_products_take_no_memory_and_others_do():
    assert matmul_kernel(np.float32, (3,), 8, 8, 8).info.scratch == 0
    assert matmul_kernel(np.float32, (3,), 300, 300, 300).info.scratch > 0


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("transpose_a, transpose_b", TRANSPOSES)
def test_narrow_floats_are_summed_in_float32_and_rounded_once(dtype, transpose_a, transpose_b):
    swaps = {"transpose_a": transpose_a, "transpose_b": transpose_b}
    for m, n, k in [(5, 19, 300), (33, 8, 40)]:
        x, y = random_matrices(dtype, (), m, n, k)
        out = product(matmul_kernel(dtype, (), m, n, k, **swaps), x, y, **swaps)
        np.testing.assert_array_equal(bits(out), bits(ordered_product(x, y, np.dtype(dtype))))


@pytest.mark.parametrize("target", PRODUCTS.values(), ids=PRODUCTS)
@pytest.mark.parametrize("dtype", dt.INTEGERS, ids=str)
def test_integer_products_wrap(dtype, target):
    for (m, n, k), (transpose_a, transpose_b) in zip([(3, 5, 7), (20, 37, 300), (9, 70, 20), (1, 4, 0)], TRANSPOSES):
        swaps = {"transpose_a": transpose_a, "transpose_b": transpose_b}
        x, y = random_matrices(dtype, (2,), m, n, k)
        out = product(matmul_kernel(dtype, (2,), m, n, k, target, **swaps), x, y, **swaps)
        np.testing.assert_array_equal(out, expected_integers(x, y))


@pytest.mark.parametrize("target", PRODUCTS.values(), ids=PRODUCTS)
def test_products_of_bytes_in_blocks_and_where_they_lie(target):
    """A depth of whole tile registers and others, of one block and several, known and symbolic; rows of every tile,
    of few tiles, whose columns are read where they lie, and one alone, whose lines go by pairs."""
    few = ((2, 40, 64), (9, 33, 1100), (3, 17, 63))
    sizes = ((40, 20, 128), (33, 65, 64), (16, 33, 1100), (7, 5, 64), (1, 70, 301), (1, 9, 5), (1, 64, 1100), *few)
    for m, n, k in sizes:
        x, y = (np.full(shape, -128, np.int8) for shape in ((1, m, k), (1, k, n)))  # the largest products
        x[:, ::3], y[..., ::2] = random_matrices(np.int8, (1,), m, n, k)[0][:, ::3], 127
        expected = x.astype(np.int32) @ y.astype(np.int32)
        known = matmul_kernel(np.int8, (1,), m, n, k, target, sum_dtype=dt.int32)
        np.testing.assert_array_equal(product(known, x, y, sum_dtype=dt.int32), expected)
        if m == 16:
            any_ = matmul_kernel(np.int8, (1,), Dim("m"), n, Dim("k"), target, ("m", "k"), sum_dtype=dt.int32)
            np.testing.assert_array_equal(product(any_, x, y, sum_dtype=dt.int32, m=m, k=k), expected)
        if m == 9:  # few tiles, as only the running program finds
            rows = matmul_kernel(np.int8, (1,), Dim("m"), n, k, target, ("m",), sum_dtype=dt.int32)
            np.testing.assert_array_equal(product(rows, x, y, sum_dtype=dt.int32, m=m), expected)


def test_nan_inf_and_signed_zeros_flow_through():
    x = np.array([[np.inf, 1.0], [np.nan, 0.0], [-0.0, -0.0]], np.float32)
    y = np.array([[1.0, 0.0, -1.0], [1.0, 1.0, np.inf]], np.float32)
    out = product(matmul_kernel(np.float32, (), 3, 3, 2), x, y)
    np.testing.assert_array_equal(out, [[np.inf, np.nan, np.nan], [np.nan] * 3, [0.0, 0.0, np.nan]])
    assert not np.signbit(out[2, :2]).any()  # a sum starts from +0.0


def bits(x):
    return np.ascontiguousarray(x).view(f"u{x.dtype.itemsize}")


DEPTHS = (1, 2, 3, 63, 64, 65, 255, 256, 257, 700, 4096, 4097, 8193)


@pytest.mark.parametrize("target", RUNNABLE.values(), ids=RUNNABLE)
@pytest.mark.parametrize(
    "dtype, sum_dtype", [(dt.float32, dt.float32), (dt.bfloat16, dt.float32), (dt.int8, dt.int32)], ids=str
)
@pytest.mark.parametrize("column, transposed", TRANSPOSES)
def test_one_row_or_column_by_lanes_is_a_row_reduction(dtype, sum_dtype, column, transposed, target):
    """Whether the lines lie side by side or element by element, cut or not, and for symbolic extents."""
    swaps = {"transpose_a" if column else "transpose_b": transposed}
    options = {**swaps, "sum_dtype": sum_dtype, "lanes": True, "dims": ("l", "k")}
    symbolic = matmul_kernel(dtype, (2,), *((Dim("l"), 1) if column else (1, Dim("l"))), Dim("k"), target, **options)
    for lines, depth in [(3, 700), (200, 5), (1, 0), *((19, k) for k in DEPTHS)]:
        m, n = (lines, 1) if column else (1, lines)
        x, y = random_matrices(dtype, (2,), m, n, depth)
        expected = ordered_product(x, y, sum_dtype, lanes=True)
        out = product(symbolic, x, y, **swaps, sum_dtype=sum_dtype, cuts=(lines // 2, lines + 1), l=lines, k=depth)
        np.testing.assert_array_equal(bits(out), bits(expected), err_msg=f"{lines} {depth}")
        if depth in (3, 63, 700, 4097) and target == BEST:
            known = matmul_kernel(dtype, (2,), m, n, depth, target, **{**options, "dims": ()})
            np.testing.assert_array_equal(bits(product(known, x, y, **swaps, sum_dtype=sum_dtype)), bits(expected))


@pytest.mark.parametrize("lines", [1, 7, 131])
def test_neighbouring_lines_by_lanes_of_several_superchunks_and_strips(lines):
    """With what is not finite in one line, which must not be seen in others."""
    depth = evaluation_order.SUPERCHUNK + 4096 + 70 if lines < 100 else 4096 + 70
    x, y = random_matrices(np.float32, (), lines, 1, depth)
    x[lines // 2, -1], x[-1, 64] = np.inf, -0.0
    options = {"transpose_a": True, "sum_dtype": np.float32}
    kernel = matmul_kernel(np.float32, (), lines, 1, depth, BEST, **options, lanes=True)
    expected = ordered_product(x, y, np.dtype(np.float32), lanes=True)
    out = product(kernel, x, y, **options, cuts=(lines // 2, lines + 1))
    np.testing.assert_array_equal(bits(out), bits(expected))
    assert np.isinf(expected[lines // 2, 0])
    assert np.isfinite(expected).sum() == lines - 1


@pytest.mark.parametrize("target", PRODUCTS.values(), ids=PRODUCTS)
@pytest.mark.parametrize("sum_dtype", [dt.bfloat16, dt.float32, dt.float64], ids=str)
def test_bfloat16_products_go_in_runs_and_flush(sum_dtype, target):
    rng = np.random.default_rng(8)
    for m, n, k in [(5, 37, 300), (9, 20, 1), (3, 1, 65), (1, 70, 513), (2, 3, 0)]:
        x, y = (
            (rng.standard_normal(s) * 2.0 ** rng.integers(-70, -55, s)).astype(dt.bfloat16) for s in ((m, k), (k, n))
        )
        x.ravel()[::7], y.ravel()[::5] = 1e-39, 2.0**20
        for ta, tb in TRANSPOSES:
            swaps = {"transpose_a": ta, "transpose_b": tb}
            kernel = matmul_kernel(dt.bfloat16, (), m, n, k, target, sum_dtype=sum_dtype, **swaps)
            out = product(kernel, x, y, **swaps, sum_dtype=sum_dtype)
            expected = ordered_product(x, y, sum_dtype)
            assert out.dtype == expected.dtype
            np.testing.assert_array_equal(bits(out), bits(expected), err_msg=f"{m} {n} {k} {ta} {tb}")


def test_a_sum_of_bfloat16_products_just_below_the_normal_numbers_is_flushed():
    """2**-126 less parts of the last bit of numbers below it: flushed, unless that rounds up with any exponent."""
    parts = np.array([0.5, 0.501953125, 0.703125, 0.4, 0.98], dt.bfloat16).astype(np.float32)
    x = np.zeros((parts.size, 4), np.float32)
    x[:, 1], x[:, 3] = 2.0**-63, -parts * 2.0**-75
    y = np.array([[0], [2.0**-63], [0], [2.0**-75]], np.float32)
    x, y = x.astype(dt.bfloat16), y.astype(dt.bfloat16)
    expected = ordered_product(x, y, dt.float32)
    assert (expected == 0).any() and (expected != 0).any()
    for target in PRODUCTS.values():
        out = product(
            matmul_kernel(dt.bfloat16, (), *x.shape[:1], 1, 4, target, sum_dtype=dt.float32), x, y, sum_dtype=dt.float32
        )
        np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("target", PRODUCTS.values(), ids=PRODUCTS)
@pytest.mark.parametrize(
    "dtype, sum_dtype",
    [(dt.int8, dt.int32), (dt.uint8, dt.int32), (dt.uint8, dt.uint32), (dt.int16, dt.int32), (dt.int16, dt.int64)],
    ids=str,
)
def test_integer_products_are_exact_in_a_wider_dtype(dtype, sum_dtype, target):
    """With least and largest numbers side by side; those of 16 bits wrap."""
    for (m, n, k), (ta, tb) in zip([(5, 37, 700), (64, 33, 513), (3, 1, 9), (2, 3, 0), (1, 9, 14)], TRANSPOSES * 2):
        swaps = {"transpose_a": ta, "transpose_b": tb}
        x, y = random_matrices(dtype, (2,), m, n, k)
        x[..., :2], y[..., :2, :] = np.iinfo(dtype).min, np.iinfo(dtype).min
        x[..., 4:8], y[..., 2:8, :] = np.iinfo(dtype).max, np.iinfo(dtype).max
        kernel = matmul_kernel(dtype, (2,), m, n, k, target, sum_dtype=sum_dtype, **swaps)
        out = product(kernel, x, y, **swaps, sum_dtype=sum_dtype)
        np.testing.assert_array_equal(out, (x.astype(np.int64) @ y.astype(np.int64)).astype(sum_dtype))
        assert out.dtype == sum_dtype


@pytest.mark.parametrize("target", PRODUCTS.values(), ids=PRODUCTS)
@pytest.mark.parametrize("dtype, sum_dtype", [(dt.bfloat16, dt.float32), (dt.int8, dt.int32)], ids=str)
def test_groups_along_the_depth_of_symbolic_extents(dtype, sum_dtype, target):
    """Cells are filled up where the depth is not a multiple of them, at any extents and cuts."""
    for ta, tb in TRANSPOSES:
        options = {"transpose_a": ta, "transpose_b": tb, "sum_dtype": sum_dtype}
        extents = Dim("m"), Dim("n"), Dim("k")
        kernel = matmul_kernel(dtype, (2,), *extents, target, dims=("m", "n", "k"), **options)
        for m, n, k in [(1, 1, 1), (3, 50, 2), (17, 3, 3), (40, 70, 257), (2, 100, 513), (13, 20, 0)]:
            x, y = random_matrices(dtype, (2,), m, n, k)
            total = kernel.units(m=m, n=n, k=k)
            out = product(kernel, x, y, **options, cuts=sorted({total // 3, total // 2} - {0}), m=m, n=n, k=k)
            np.testing.assert_array_equal(out, ordered_product(x, y, sum_dtype), err_msg=f"{m} {n} {k} {ta} {tb}")


@pytest.mark.parametrize("target", PRODUCTS.values(), ids=PRODUCTS)
def test_bfloat16_products_of_any_bits(target):
    """Denormal numbers, NaN, infinities and what overflows; of most columns and rows at least something is finite."""
    rng = np.random.default_rng(3)
    for m, n, k in [(7, 33, 5), (16, 40, 258), (3, 9, 1), (20, 20, 64)]:
        x, y = (rng.integers(0, 2**16, s, np.uint16) for s in ((m, k), (k, n)))
        x[m // 2 :] &= 0xBFFF  # less than 2
        y[:, : n // 2] &= 0xBFFF
        y[:, : n // 4] &= 0x9FFF  # and less than 2**-63
        x, y = x.view(dt.bfloat16), y.view(dt.bfloat16)
        out = product(matmul_kernel(dt.bfloat16, (), m, n, k, target, sum_dtype=dt.float32), x, y, sum_dtype=dt.float32)
        expected = ordered_product(x, y, dt.float32)
        np.testing.assert_array_equal(out, expected)
        np.testing.assert_array_equal(np.signbit(out[out == 0]), np.signbit(expected[out == 0]))


@pytest.mark.parametrize("target", PRODUCTS.values(), ids=PRODUCTS)
@pytest.mark.parametrize("exponent", [-60, -57, -56, -55, -50])
def test_bfloat16_sums_around_the_least_normal_number(exponent, target):
    """Factors about as small as they may be without a sum that is flushed, and smaller ones, with much cancellation."""
    rng = np.random.default_rng(5)
    kernel = matmul_kernel(dt.bfloat16, (), 20, 30, 300, target, sum_dtype=dt.float32)
    for apart in (1, 2, 32):  # terms that cancel: of both halves of a run, of one, and of two runs
        x = (rng.integers(-255, 256, (20, 300)) * 2.0 ** (exponent - 7)).astype(dt.bfloat16)
        y = (rng.integers(-255, 256, (300, 30)) * 2.0 ** (exponent - 7)).astype(dt.bfloat16)
        later = np.flatnonzero(np.arange(300) // apart % 2)
        x[:, later], y[later] = -x[:, later - apart], y[later - apart]
        y[rng.integers(0, 300, 30)] *= dt.bfloat16.type(1.015625)
        x[rng.random(x.shape) < 0.2] = 0
        expected = ordered_product(x, y, dt.float32)
        out = product(kernel, x, y, sum_dtype=dt.float32)
        np.testing.assert_array_equal(bits(out), bits(expected))


def test_epilogue_sees_every_element_once_with_its_position():
    m, n, k = 40, 45, 300  # several k-blocks, tiles and a tail
    x, y = random_matrices(np.float32, (2,), m, n, k)
    bias = np.arange(n, dtype=np.float32)
    residual = np.random.default_rng(1).standard_normal((2, m, n)).astype(np.float32)

    def emit(module, e):
        def epilogue(e, value, batch, row, col, mask):
            c = KernelBuilder(e)
            position = c.add(c.mul(c.add(c.mul(batch, m), row), n), col)
            value = e.add(value, e.load(c.at("%a2", col, 4), dt.float32, mask))
            value = e.add(value, e.load(c.at("%a3", position, 4), dt.float32, mask))
            e.store(value, c.at("%a3", position, 4), mask)  # in place

        return emit_matmul(module, e, "k", dt.float32, (2,), m, n, k, buffers=4, epilogue=epilogue)

    plain = product(matmul_kernel(np.float32, (2,), m, n, k), x, y)
    for target in RUNNABLE.values():
        out = residual.copy()
        Kernel(emit, target, 4)(x, y, bias, out)
        np.testing.assert_array_equal(out, plain + bias + residual)


@pytest.mark.parametrize("lanes", [False, True])
@pytest.mark.parametrize("target", RUNNABLE.values(), ids=RUNNABLE)
def test_epilogue_of_one_column_gets_neighbouring_rows(target, lanes):
    for m, k in ((37, 20), (16, 700), (3, 5)):
        x, y = random_matrices(np.float32, (2,), m, 1, k)
        residual = np.random.default_rng(1).standard_normal((2, m, 1)).astype(np.float32)
        widths = set()

        def emit(module, e, m=m, k=k, widths=widths):
            def epilogue(e, value, batch, row, col, mask):
                c = KernelBuilder(e)
                widths.add(value.width)
                here = c.at("%a2", c.add(c.mul(batch, m), c.add(row, col)), 4)
                e.store(e.add(value, e.load(here, dt.float32, mask)), here, mask)

            return emit_matmul(module, e, "k", dt.float32, (2,), m, 1, k, epilogue=epilogue, lanes=lanes)

        out = residual.copy()
        Kernel(emit, target, 3)(x, y, out, cuts=(m - 1, m + 2))
        expected = ordered_product(x, y, np.dtype(np.float32), lanes=lanes) + residual
        np.testing.assert_array_equal(bits(out), bits(expected))
        widest = lanes_for(target, np.dtype(np.float32), m)
        if not lanes:  # columns of the other factor are turned in registers, as many as make a square
            widest = min(widest, TRANSPOSE_SQUARE)
        if target.masked or widest <= m:  # without masks only whole vectors are vectors
            assert max(widths) == widest


def test_tiles_fit_the_registers_and_small_products_waste_little():
    for target in (*RUNNABLE.values(), targets.AARCH64):
        for dtype in (dt.float32, dt.float64, dt.int32, dt.int8, dt.int64):
            tile = choose_tile(target, packed_format_of(target, dtype, dtype), Dim("m"), Dim("n"))
            assert tile.rows * tile.vectors + tile.vectors + 1 < target.registers
    form = packed_format_of(targets.AVX512, dt.float32, dt.float32)
    assert choose_tile(targets.AVX512, form, 1, 1000).rows == 1
    assert choose_tile(targets.AVX512, form, 60, 10).columns == 16


@pytest.mark.parametrize(("m", "n"), [(700, 24), (24, 700)])
def test_the_longer_side_of_a_product_is_cut(m, n):
    """Into enough units for several workers, each of which has the bits of the whole."""
    x, y = random_matrices(dt.float32, (), m, n, 40)
    kernel = matmul_kernel(dt.float32, (), m, n, 40)
    assert kernel.units() >= 8
    expected = ordered_product(x, y, np.dtype(np.float32))
    for cuts in ((), range(1, kernel.units())):
        np.testing.assert_array_equal(bits(product(kernel, x, y, cuts=cuts)), bits(expected))


@pytest.mark.parametrize("target", RUNNABLE.values(), ids=RUNNABLE)
@pytest.mark.parametrize("transpose_a", [False, True])
def test_rows_are_read_where_they_lie_in_tiles_that_reach_back_at_the_edge(transpose_a, target):
    m, n, k = 101, 20, 300
    x, y = random_matrices(dt.float32, (2,), m, n, k)
    kernel = matmul_kernel(dt.float32, (2,), m, n, k, target, transpose_a=transpose_a)
    assert kernel.info.scratch < m * 256 * 4  # where packed rows would lie
    expected = ordered_product(x, y, np.dtype(np.float32))
    for cuts in ((), range(1, kernel.units())):
        out = product(kernel, x, y, transpose_a=transpose_a, cuts=cuts)
        np.testing.assert_array_equal(bits(out), bits(expected))


@pytest.mark.parametrize("target", PRODUCTS.values(), ids=list(PRODUCTS))
@pytest.mark.parametrize(
    ("batch", "m", "n", "k", "dtype", "sum_dtype"),
    [
        ((), 20, 9, 2300, dt.float32, None),
        ((), 6, 1, 1100, dt.float64, None),
        ((2,), 5, 6, 2101, dt.bfloat16, dt.float32),
        ((), 10, 9, 9000, dt.int8, dt.int32),
    ],
)
def test_the_depth_of_a_product_is_cut_where_it_has_few_elements(batch, m, n, k, dtype, sum_dtype, target):
    """By a host alone; a single thread goes through it in one go, with the same bits."""
    x, y = random_matrices(dtype, batch, m, n, k)
    made = [matmul_kernel(dtype, batch, m, n, k, target, sum_dtype=sum_dtype, one_thread=one) for one in (True, False)]
    assert [len(kernel.info.phases) for kernel in made] == [1, 2]
    whole, shared = (product(kernel, x, y, sum_dtype=sum_dtype) for kernel in made)
    pieces = product(made[1], x, y, sum_dtype=sum_dtype, cuts=range(1, made[1].units()))
    np.testing.assert_array_equal(bits(shared), bits(whole))
    np.testing.assert_array_equal(bits(pieces), bits(whole))
    expected = ordered_product(x, y, np.dtype(sum_dtype or dtype))
    np.testing.assert_array_equal(bits(whole), bits(expected))


@pytest.mark.parametrize("target", FOREIGN, ids=lambda t: t.cpu + t.triple[:5])
@pytest.mark.parametrize("dtype", [dt.float32, dt.float16, dt.bfloat16, dt.int64], ids=str)
def test_other_back_ends_accept_matmul(target, dtype):
    for extents, dims in (((30, 40, 300), ()), ((Dim("m"), Dim("n"), Dim("k")), ("m", "n", "k"))):
        for ta, tb in ((False, False), (True, True)):
            accepted(
                kernel_text(
                    lambda module, e, extents=extents, dims=dims, ta=ta, tb=tb: emit_matmul(
                        module, e, "k", dtype, (2,), *extents, transpose_a=ta, transpose_b=tb, dims=dims
                    ),
                    target,
                    3,
                )[0],
                target,
            )


# ---- argsort


def edge_values(dtype, size, seed=0):
    """Random values with many ties and every special value that the dtype has."""
    rng = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dt.is_bool(dtype):
        return rng.integers(0, 2, size).astype(bool)
    if dt.is_integer(dtype):
        info = np.iinfo(dtype)
        values = rng.integers(info.min, info.max, size, dtype, endpoint=True)
        special = np.array([info.min, info.max, 0, 1, info.max - 1], dtype)
    else:
        values = (rng.standard_normal(size) * 10.0 ** rng.integers(-4, 4, size)).astype(dtype)
        special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1.0], dtype)
    return np.where(rng.random(size) < 0.4, rng.choice(special, size), values).astype(dtype)


def sort_kernel(dtype, shape, axis, descending, target=BEST, dims=()):
    def emit(module, e):
        return emit_argsort(module, e, "k", np.dtype(dtype), shape, axis, descending, dims)

    return Kernel(emit, target, 2, dims)


def sorted_positions(x, axis, descending):
    """Stable positions by Python's sort, NaN last."""

    def line(values):
        def key(i):
            value = float(values[i]) if dt.is_float(x.dtype) else int(values[i])
            return (True, 0) if value != value else (False, -value if descending else value)

        return np.array(sorted(range(len(values)), key=key), np.int64)

    out = np.empty(x.shape, np.int64)
    for place in np.ndindex(*x.shape[:axis], *x.shape[axis + 1 :]):
        at = (*place[:axis], slice(None), *place[axis:])
        out[at] = line(x[at])
    return out


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", dt.REAL, ids=str)
def test_argsort_of_every_dtype(dtype, descending):
    kernel = sort_kernel(dtype, (Dim("m"), Dim("n")), 1, descending, dims=("n", "m"))
    for n in (0, 1, 2, 63, 64, 65, 300):
        x = edge_values(dtype, 3 * n, n).reshape(3, n)
        out = np.full(x.shape, -7, np.int64)
        kernel(x, out, cuts=(1,), m=3, n=n)
        np.testing.assert_array_equal(out, sorted_positions(x, 1, descending))


@pytest.mark.parametrize("shape, axis", [((5, 3), 0), ((2, 70, 3), 1), ((4,), 0), ((100, 2), 0), ((2, 0, 3), 1)])
def test_argsort_along_any_axis_on_every_target(shape, axis):
    x = edge_values(np.float32, int(np.prod(shape))).reshape(shape)
    for target in RUNNABLE.values():
        for descending in (False, True):
            out = np.full(shape, -7, np.int64)
            sort_kernel(np.float32, shape, axis, descending, target)(x, out)
            np.testing.assert_array_equal(out, sorted_positions(x, axis, descending))


def test_argsort_of_equal_and_of_nearly_equal_keys():
    kernel = sort_kernel(np.int64, (Dim("n"),), 0, False, dims=("n",))
    for x in (np.zeros(1000, np.int64), np.arange(1000)[::-1] % 7, np.arange(2000)[::-1].astype(np.int64) << 40):
        x = np.ascontiguousarray(x, np.int64)
        out = np.empty(x.size, np.int64)
        kernel(x, out, n=x.size)
        np.testing.assert_array_equal(out, np.argsort(x, kind="stable"))


def same_order(found, x, axis, descending):
    """Whether these are the elements of ``x`` in order: the same bits, but for those of NaN."""
    expected = np.take_along_axis(x, sorted_positions(x, axis, descending), axis)
    if not dt.is_float(x.dtype):
        return np.array_equal(found, expected)
    bits = f"uint{8 * x.dtype.itemsize}"
    return np.all((found.view(bits) == expected.view(bits)) | ((found != found) & (expected != expected)))


@pytest.mark.parametrize("dtype", dt.REAL, ids=str)
def test_sort_of_every_dtype(dtype):
    """Lines side by side and lines in all lanes: below, at and above powers of two, whole tiles and parts of some."""

    def emit(module, e):
        return emit_sort(module, e, "k", np.dtype(dtype), (Dim("m"), Dim("n")), 1, descending, ("n", "m"))

    descending = dt.REAL.index(dtype) % 2 == 1  # of each pair of dtypes with keys of one kind
    kernel = Kernel(emit, BEST, 2, ("n", "m"))
    for m, n in ((3, 0), (3, 1), (5, 15), (17, 64), (40, 65), (18, 256), (3, 257), (2, 512), (1, 4100), (1, 9000)):
        x = edge_values(dtype, m * n, n).reshape(m, n)
        out = np.zeros(x.shape, dtype)
        kernel(x, out, cuts=(1,), m=m, n=n)
        assert same_order(out, x, 1, descending), (m, n)


@pytest.mark.parametrize("shape, axis", [((20, 3), 0), ((2, 70, 19), 1), ((300, 3), 0), ((1000,), 0), ((2, 0, 3), 1)])
def test_sort_along_any_axis_on_every_target(shape, axis):
    for dtype in (np.float32, np.int64):
        x = edge_values(dtype, int(np.prod(shape))).reshape(shape)
        for target in RUNNABLE.values():
            out = np.zeros(shape, dtype)
            Kernel(lambda m, e, t=dtype: emit_sort(m, e, "k", t, shape, axis), target, 2, ())(x, out)
            assert same_order(out, x, axis, False), target.cpu


@pytest.mark.parametrize("special", [[-0.0, 0.0], [np.nan, np.inf], [np.inf, -np.inf], [-0.0, 0.0, np.nan], [1.0]])
@pytest.mark.parametrize("n", [50, 600])
def test_sort_keeps_the_order_of_zeros_and_counts_nan(special, n):
    """Each value at the ends of lanes, too: nothing else is in the line."""
    kernel = Kernel(lambda m, e: emit_sort(m, e, "k", np.float32, (7, n), 1, True), BEST, 2, ())
    x = np.random.default_rng(n).choice(np.array(special, np.float32), (7, n))
    out = np.empty_like(x)
    kernel(x, out)
    assert same_order(out, x, 1, True)


def long_lines(dtype, n):
    """Lines that part badly: all alike, two values, in order, against it, the least value often, magnitudes of all
    sizes."""
    rng = np.random.default_rng(n)
    values = edge_values(dtype, n, n)
    few = rng.choice(values[:8], n)
    often = np.where(rng.random(n) < 0.9, values.min(), values)
    sizes = np.exp2(rng.integers(-140, 120, n)).astype(dtype) if dt.is_float(dtype) else values // 7
    return np.stack([values * 0 + values[1], few, np.sort(values), np.sort(values)[::-1], often, sizes])


@pytest.mark.parametrize("dtype", [dt.float32, dt.uint32, dt.int64, dt.float64], ids=str)
@pytest.mark.parametrize("bad", [0, 2])
@pytest.mark.sample(2)
def test_long_lines_are_parted_where_they_lie(dtype, bad, monkeypatch):
    """By medians, or after too many bad ones always in the middle between the least and the largest key."""
    monkeypatch.setattr(quicksort, "_BAD", bad)
    monkeypatch.setattr(quicksort, "min_partitioned", lambda target, key: quicksort.NETWORK_KEYS + 1)
    for descending in (False, True):
        for n in (quicksort.NETWORK_KEYS + 1, 2057, 30_011):
            with np.errstate(over="ignore", invalid="ignore"):
                x = long_lines(dtype, n)
            kernel = Kernel(lambda m, e, s=x.shape, d=descending: emit_sort(m, e, "k", dtype, s, 1, d), BEST, 2, ())
            out = np.zeros_like(x)
            kernel(x, out, cuts=(2,))
            assert same_order(out, x, 1, descending), n


def test_lines_are_parted_only_by_instructions_for_it():
    def scratch(target):
        emit = lambda m, e: emit_sort(m, e, "k", np.float32, (100_000,), 0)  # noqa: E731
        text, code = kernel_text(emit, target, 2)
        accepted(text, target)
        return code.scratch

    assert scratch(targets.AVX512) == scratch(targets.AVX2) == 4 * quicksort.NETWORK_KEYS
    assert scratch(targets.SSE2) > 4 * 100_000
    assert scratch(targets.AVX2.with_(l2=1 << 30)) > 4 * 100_000  # which has room for the whole line


@pytest.mark.parametrize("dtype", [dt.float32, dt.int64, dt.bool_, dt.bfloat16], ids=str)
def test_the_first_positions_of_lines(dtype):
    """Lists of part of a vector and of several, and lines too short for a list."""
    for count, descending in ((9, True), (40, False)):
        kernel = Kernel(
            lambda m, e, k=count, d=descending: emit_top(m, e, "k", dtype, (Dim("m"), Dim("n")), k, d, ("n", "m")),
            BEST,
            2,
            ("n", "m"),
        )
        for n in (count, 16 * count, 16 * count + 37):
            x = edge_values(dtype, 2 * n, n).reshape(2, n)
            out = np.full((2, count), -7, np.int64)
            kernel(x, out, cuts=(1,), m=2, n=n)
            np.testing.assert_array_equal(out, sorted_positions(x, 1, descending)[:, :count])


def test_the_first_positions_of_lines_that_rise_fall_or_are_all_alike():
    rising = np.arange(1000, dtype=np.float32)
    x = np.stack([rising, rising[::-1], rising * 0, rising * np.nan, np.where(rising > 995, rising, np.nan)])
    for target in RUNNABLE.values():
        for descending in (False, True):
            out = np.full((len(x), 11), -7, np.int64)
            kernel = Kernel(lambda m, e, d=descending: emit_top(m, e, "k", np.float32, x.shape, 11, d), target, 2, ())
            kernel(x, out)
            np.testing.assert_array_equal(out, sorted_positions(x, 1, descending)[:, :11])


@pytest.mark.parametrize("dtype", [dt.float32, dt.int64, dt.uint8, dt.bfloat16], ids=str)
@pytest.mark.parametrize("descending", [False, True])
def test_one_long_line_is_sorted_by_blocks(dtype, descending):
    symbolic = sort_kernel(dtype, (Dim("n"),), 0, descending, dims=("n",))
    for n in (1, 300, 100_000):
        x = edge_values(dtype, n)
        x = x.astype(dt.int64) % 1000 if dtype == dt.int64 else x  # digits in which all agree
        expected = TABLE["argsort"].reference(x, axis=0, descending=descending)
        kernels = [(symbolic, {"n": n})]
        if n == 100_000:
            kernels.append((sort_kernel(dtype, (n,), 0, descending), {}))
        for kernel, extents in kernels:
            for cuts in ((), (1,), (2, 3)):
                out = np.full(n, -7, np.int64)
                kernel(x, out, cuts=cuts, **extents)
                np.testing.assert_array_equal(out, expected)


# ---- running folds


def scan_kernel(dtype, shape, axis, target=BEST, dims=()):
    def emit(module, e):
        return emit_scan(module, e, "k", TABLE["cumulative_sum"], np.dtype(dtype), shape, axis, dims)

    return Kernel(emit, target, 2, dims)


def running_sum(x, axis):
    """Summed in the compute dtype, each output rounded."""
    wide = x.astype(dt.compute_dtype(x.dtype))
    zero = -0.0 if dt.is_float(x.dtype) else 0
    out = evaluation_order.ordered_scan(lambda s, t: (s[0] + t[0],), (zero,), (wide,), axis)[0]
    return np.ascontiguousarray(out).astype(x.dtype)


@pytest.mark.parametrize("dtype", dt.INTEGERS + dt.FLOATS, ids=str)
def test_running_sums_of_every_dtype(dtype):
    for shape, axis in [((3, 41), 1), ((130, 37), 0), ((2, 5, 19), 1), ((4, 0), 0), ((0, 4), 0), ((1,), 0), ((65,), 0)]:
        x = edge_values(dtype, int(np.prod(shape))).reshape(shape)
        out = np.full(shape, 7, dtype)
        scan_kernel(dtype, shape, axis)(x, out)
        np.testing.assert_array_equal(out.tobytes(), zero_nans(running_sum(x, axis), out).tobytes())


def zero_nans(expected, out):
    """``expected`` with the NaN bits of ``out`` where both are NaN: IEEE leaves payloads and signs of NaN open."""
    if not dt.is_float(out.dtype):
        return expected
    both = np.isnan(expected.astype(np.float64)) & np.isnan(out.astype(np.float64))
    return np.where(both, out, expected)


def test_running_sums_cut_anywhere_and_on_every_target_agree():
    x = edge_values(np.float32, 2 * 30 * 45).reshape(2, 30, 45)
    expected = running_sum(x, 1)
    for target in RUNNABLE.values():
        kernel = scan_kernel(np.float32, tuple(map(Dim, "abc")), 1, target, ("a", "b", "c"))
        out = np.full(x.shape, 7, np.float32)
        kernel(x, out, cuts=(3, 40, 50), a=2, b=30, c=45)
        np.testing.assert_array_equal(out, expected)


COMBINE = {
    "cumulative_sum": lambda s, t: (s[0] + t[0],),
    "exclusive_product": lambda s, t: (s[0] * t[0],),
    "linear_recurrence": lambda s, t: (
        np.where(s[0] == 0, s[0], s[0] * t[0]),
        np.where(s[1] == 0, t[1], t[0] * s[1] + t[1]),
    ),
}


@pytest.mark.parametrize("target", RUNNABLE.values(), ids=RUNNABLE)
@pytest.mark.parametrize("name", COMBINE)
@pytest.mark.sample(3)
def test_scans_have_the_stated_order_around_runs_and_chunks(name, target):
    op = TABLE[name]
    identity = [value for value, _ in op.init(dt.float32)]
    rng = np.random.default_rng(7)
    for inner in (1, 5):
        kernels = {}
        for n in (1, 2, 63, 64, 65, 127, 128, 129, 1000, 4095, 4096, 4097, 2 * 4096 + 1, 3 * 4096 + 65):
            shape = (2, n, inner)
            inputs = [(1 + 0.1 * rng.standard_normal(shape)).astype(np.float32) for _ in range(op.arity)]
            if n > 100:  # huge beside small, and what spreads
                inputs[-1][0, 70], inputs[-1][0, 90], inputs[-1][1, 66] = 1e30, -1e30, np.inf
                inputs[0][1, 80:] = 0 if name == "linear_recurrence" else inputs[0][1, 80:]
            expected = evaluation_order.ordered_scan(
                COMBINE[name], identity, inputs, 1, op.lower((), {"axis": 1}).exclusive
            )[-1]
            for dims, extents in (((), shape), (("a", "n"), (Dim("a"), Dim("n"), inner))):
                if dims and "n" in kernels:
                    kernel = kernels["n"]
                else:
                    kernel = kernels["n" if dims else n] = Kernel(
                        lambda module, e, extents=extents, dims=dims: emit_scan(
                            module, e, "k", op, dt.float32, extents, 1, dims
                        ),
                        target,
                        op.arity + 1,
                        dims,
                    )
                grain = kernel.info.phases[0].grain
                for cuts in ((), (grain,), (grain, 2 * grain, 3 * grain)):
                    out = np.full(shape, 7, np.float32)
                    kernel(*inputs, out, cuts=cuts, **({"a": 2, "n": n} if dims else {}))
                    np.testing.assert_array_equal(out, expected, err_msg=f"{n} {dims} {cuts}")


@pytest.mark.parametrize("target", RUNNABLE.values(), ids=RUNNABLE)
@pytest.mark.parametrize("name", COMBINE)
def test_scans_of_several_lines_together_have_the_stated_order(name, target):
    """Lines that fill squares and do not, static and symbolic, cut within a square; long ones that are not cut."""
    op = TABLE[name]
    identity = [value for value, _ in op.init(dt.float32)]
    exclusive = op.lower((), {"axis": 1}).exclusive
    rng = np.random.default_rng(3)

    def kernel(shape, dims=()):
        return Kernel(
            lambda module, e: emit_scan(module, e, "k", op, dt.float32, shape, 1, dims), target, op.arity + 1, dims
        )

    open_ = kernel((Dim("a"), Dim("n")), ("a", "n"))
    for lines, n in [(3, 100), (4, 8), (8, 7), (9, 9), (11, 64), (5, 65), (17, 129), (6, 255), (9, 300), (65, 4105)]:
        inputs = [(1 + 0.1 * rng.standard_normal((lines, n))).astype(np.float32) for _ in range(op.arity)]
        inputs[-1][0, -1], inputs[-1][1, 3] = np.nan, 1e30
        expected = evaluation_order.ordered_scan(COMBINE[name], identity, inputs, 1, exclusive)[-1]
        for scan, extents in ((kernel((lines, n)), {}), (open_, {"a": lines, "n": n})):
            for cuts in ((), (1, 3)):
                out = np.full((lines, n), 7, np.float32)
                scan(*inputs, out, cuts=cuts, **extents)
                np.testing.assert_array_equal(out, expected, err_msg=f"{lines} {n} {extents} {cuts}")


# ---- scattering

CHECK = Check("IndexRangeError", "scatter_add", "an index is out of range", None)


def scatter_kernel(dtype, index_dtype, shape, indices, axis, target=BEST, dims=()):
    def emit(module, e):
        adding = ScatterAdd(axis, False, CHECK)
        return emit_scatter_add(module, e, "k", adding, dtype, index_dtype, shape, indices, dims)

    return Kernel(emit, target, 4, dims)


def along_kernel(dtype, index_dtype, shape, count, axis, target=BEST, dims=()):
    def emit(module, e):
        extents = (*shape[:axis], count, *shape[axis + 1 :])
        return emit_scatter_add(module, e, "k", ScatterAdd(axis, True, CHECK), dtype, index_dtype, shape, extents, dims)

    return Kernel(emit, target, 4, dims)


def scattered(x, indices, updates, axis):
    indices = np.where(indices < 0, indices + x.shape[axis], indices)
    return np.ascontiguousarray(evaluation_order.ordered_scatter_add(x, indices, updates, axis))


def scattered_along(x, indices, updates, axis):
    indices = np.where(indices < 0, indices + x.shape[axis], indices)
    return np.ascontiguousarray(evaluation_order.ordered_scatter_add_along_axis(x, indices, updates, axis))


SCATTERS = [((7,), (5,), 0), ((3, 5), (4,), 1), ((6, 37), (2, 5), 0), ((2, 3, 20), (4,), 1), ((4, 3), (0,), 0)]


@pytest.mark.parametrize("dtype", dt.INTEGERS + dt.FLOATS, ids=str)
def test_scatter_add_of_every_dtype(dtype):
    rng = np.random.default_rng(5)
    for (shape, count, axis), index_dtype in zip(SCATTERS, itertools.cycle([np.int64, np.int32])):
        x = edge_values(dtype, int(np.prod(shape))).reshape(shape)
        indices = rng.integers(-shape[axis], shape[axis], count).astype(index_dtype)
        updates = edge_values(dtype, int(np.prod((*shape[:axis], *count, *shape[axis + 1 :]))), 1)
        expected = scattered(x, indices, updates, axis)
        out = np.full(shape, 7, dtype)
        kernel = scatter_kernel(dtype, index_dtype, shape, count, axis)
        assert kernel(x, indices, updates, out) is None
        np.testing.assert_array_equal(out.tobytes(), zero_nans(expected, out).tobytes())
        in_place = x.copy()
        kernel(in_place, indices, updates, in_place)
        assert in_place.tobytes() == out.tobytes()

        along = (*shape[:axis], 6, *shape[axis + 1 :])
        indices = rng.integers(-shape[axis], shape[axis], along).astype(index_dtype)
        updates = edge_values(dtype, int(np.prod(along)), 2).reshape(along)
        out = np.full(shape, 7, dtype)
        assert along_kernel(dtype, index_dtype, shape, 6, axis)(x, indices, updates, out) is None
        expected = scattered_along(x, indices, updates, axis)
        np.testing.assert_array_equal(out.tobytes(), zero_nans(expected, out).tobytes())


def test_scatters_with_symbolic_extents_cut_anywhere_on_every_target():
    rng = np.random.default_rng(6)
    x = edge_values(np.float32, 2 * 7 * 45).reshape(2, 7, 45)
    extents = {"a": 2, "b": 7, "c": 45, "j": 9}
    for name, target in RUNNABLE.items():
        indices = rng.integers(-7, 7, 9)
        updates = edge_values(np.float32, 2 * 9 * 45, 1).reshape(2, 9, 45)
        out = np.full(x.shape, 7, np.float32)
        kernel = scatter_kernel(np.float32, np.int64, tuple(map(Dim, "abc")), (Dim("j"),), 1, target, tuple(extents))
        assert kernel(x, indices, updates, out, cuts=(3, 40, 50), **extents) is None
        np.testing.assert_array_equal(out, scattered(x, indices, updates, 1), err_msg=name)

        indices = rng.integers(-7, 7, (2, 9, 45))
        out = np.full(x.shape, 7, np.float32)
        kernel = along_kernel(np.float32, np.int64, tuple(map(Dim, "abc")), Dim("j"), 1, target, tuple(extents))
        assert kernel(x, indices, updates, out, cuts=(3, 40, 50), **extents) is None
        np.testing.assert_array_equal(out, scattered_along(x, indices, updates, 1), err_msg=name)


@pytest.mark.parametrize("target", RUNNABLE.values(), ids=RUNNABLE)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, dt.bfloat16, np.int8], ids=str)
@pytest.mark.parametrize("known", [True, False])
def test_scatters_of_slices_are_cut_at_rows(dtype, known, target):
    """A piece of the rows adds the updates of its own rows alone, in their order, whatever it is cut from."""
    rng, dtype = np.random.default_rng(9), np.dtype(dtype)
    check = None if known else CHECK
    for rows, count, bytes_ in ((64, 1300, 64), (7, 520, 200), (1, 30, 120), (300, 513, 72)):
        columns = bytes_ // dtype.itemsize
        x = edge_values(dtype, 2 * rows * columns).reshape(2, rows, columns)
        updates = edge_values(dtype, 2 * count * columns, 1).reshape(2, count, columns)
        indices = rng.integers(-rows, rows, count)

        def emit(module, e, shape=x.shape, count=count):
            return emit_scatter_add(module, e, "k", ScatterAdd(1, False, check), dtype, np.int64, shape, (count,))

        kernel = Kernel(emit, target, 4)
        main = kernel.info.phases[-1]
        assert main.units == (2, rows) and main.least == rows and main.grain * columns * dtype.itemsize >= 64
        expected = scattered(x, indices, updates, 1)
        if known:  # what is out of range is left out
            outside = rng.random(count) < 0.2
            expected = scattered(x, indices[~outside], updates[:, ~outside], 1)
            indices[outside] = rng.choice([rows, -rows - 1, 2**62, -(2**63)], outside.sum())
        for cuts in ((), (rows,), range(main.grain, 2 * rows, main.grain), (rows - 1, rows + 1)):
            cuts = [cut // main.grain * main.grain for cut in cuts]
            out = np.full(x.shape, 7, dtype)
            assert kernel(x, indices, updates, out, cuts=cuts) is None
            assert out.tobytes() == zero_nans(expected, out).tobytes()
            out = x.copy()  # in place, too
            assert kernel(out, indices, updates, out, cuts=cuts) is None
            assert out.tobytes() == zero_nans(expected, out).tobytes()


def test_scatters_of_single_elements_are_one_piece_for_each_entry():
    """To look at an index takes as long as to add its element."""
    rng = np.random.default_rng(9)
    for n, count in ((1000, 5000), (3, 700), (70, 0)):
        x, updates = edge_values(np.float32, n), edge_values(np.float32, count, 1)
        indices = rng.integers(-n, n, count)
        kernel = scatter_kernel(np.float32, np.int64, (n,), (count,), 0)
        along = along_kernel(np.float32, np.int64, (n,), count, 0)
        assert [np.prod(phase.units) for phase in kernel.info.phases] == [count, 1]
        expected = scattered(x, indices, updates, 0)
        for cuts in ((), (64,), (1, 2), tuple(range(64, max(n, count), 64))):
            if any(cut % 64 for cut in cuts) and count > 2:
                continue
            for each in (kernel, along):
                for out in (np.full(n, 7, np.float32), x.copy()):
                    given = out if out[0] != 7 else x  # in place, too
                    assert each(given, indices, updates, out, cuts=cuts) is None
                    assert out.tobytes() == zero_nans(expected, out).tobytes()


@pytest.mark.parametrize("bad", [7, -8, 2**62, -(2**63)])
@pytest.mark.parametrize("target", RUNNABLE.values(), ids=RUNNABLE)
def test_an_index_out_of_range_fails_the_check_and_touches_nothing(bad, target):
    for place in (0, 36):  # in a full vector and in the tail
        x = np.zeros((7, 37), np.float32)
        indices = np.array([0, bad, 6])
        updates = np.ones((3, 37), np.float32)
        guarded = np.full((21, 37), 5, np.float32)
        kernel = scatter_kernel(np.float32, np.int64, (7, 37), (3,), 0, target)
        assert kernel(x, indices, updates, guarded[7:14]) == CHECK
        assert (guarded[:7] == 5).all() and (guarded[14:] == 5).all()

        lines = np.zeros((3, 37), np.int64)
        lines[1, place] = bad
        guarded = np.full((21, 37), 5, np.float32)
        assert along_kernel(np.float32, np.int64, (7, 37), 3, 0, target)(x, lines, updates, guarded[7:14]) == CHECK
        assert (guarded[:7] == 5).all() and (guarded[14:] == 5).all()


def test_any_index_into_an_empty_axis_is_out_of_range():
    nothing, out = np.zeros((0, 3), np.float32), np.zeros((0, 3), np.float32)
    kernel = scatter_kernel(np.float32, np.int64, (0, 3), (1,), 0)
    assert kernel(nothing, np.zeros(1, np.int64), np.ones((1, 3), np.float32), out) == CHECK


@pytest.mark.parametrize("target", FOREIGN, ids=lambda t: t.cpu + t.triple[:5])
@pytest.mark.parametrize("dtype", [dt.float32, dt.bfloat16, dt.int8], ids=str)
def test_other_back_ends_accept_the_other_kernels(target, dtype):
    shape, dims = (Dim("a"), Dim("b"), 5), ("a", "b")
    slices, pairs = ScatterAdd(1, False, CHECK), ScatterAdd(1, True, CHECK)
    builders = [
        (2, lambda m, e: emit_argsort(m, e, "k", dtype, shape, 1, True, dims)),
        (2, lambda m, e: emit_sort(m, e, "k", dtype, shape, 1, True, dims)),
        (2, lambda m, e: emit_top(m, e, "k", dtype, (Dim("a"), Dim("b")), 7, True, dims)),
        (2, lambda m, e: emit_scan(m, e, "k", TABLE["cumulative_sum"], dtype, shape, 1, dims)),
        (4, lambda m, e: emit_scatter_add(m, e, "k", slices, dtype, dt.int32, shape, (3, 4), dims)),
        (4, lambda m, e: emit_scatter_add(m, e, "k", pairs, dtype, dt.int64, shape, (Dim("a"), 9, 5), dims)),
    ]
    for buffers, emit in builders:
        accepted(kernel_text(emit, target, buffers)[0], target)
