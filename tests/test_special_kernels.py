"""Matrix products, sorting, running folds and scattering: the kernels that are written by hand."""

from __future__ import annotations

import itertools

import llvmlite.binding as llvm
import ml_dtypes
import numpy as np
import pytest

from hybridflow.compiler import target as targets
from hybridflow.compiler.codegen.contract import choose_tile, emit_matmul
from hybridflow.compiler.codegen.structured import Code
from hybridflow.compiler.ir import dtypes as dt

from .jit_helper import machine, runnable_targets
from .special_helper import Kernel, kernel_text

RUNNABLE = runnable_targets()
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


def matmul_kernel(dtype, batch, m, n, k, target=BEST, dims=(), **options):
    def emit(module, e):
        return emit_matmul(module, e, "k", np.dtype(dtype), batch, m, n, k, dims=dims, **options)

    return Kernel(emit, target, 3, dims)


def product(kernel, x, y, transpose_a=False, transpose_b=False, cuts=(), **extents):
    *batch, m, k = x.shape
    out = np.full((*batch, m, y.shape[-1]), 77, x.dtype)
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


SHAPES = [(1, 1, 1), (1, 17, 300), (5, 1, 9), (13, 40, 256), (30, 70, 257), (64, 33, 513), (3, 130, 1), (61, 10, 128)]
TRANSPOSES = list(itertools.product([False, True], repeat=2))


@pytest.mark.parametrize("transpose_a, transpose_b", TRANSPOSES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_matmul_symbolic_shapes(dtype, transpose_a, transpose_b):
    swaps = dict(transpose_a=transpose_a, transpose_b=transpose_b)
    kernel = matmul_kernel(dtype, ("b",), "m", "n", "k", dims=("k", "b", "m", "n"), **swaps)
    for m, n, k in [*SHAPES, (0, 3, 4), (3, 0, 4), (3, 4, 0), (300, 300, 300)]:
        x, y = random_matrices(dtype, (2,), m, n, k)
        out = product(kernel, x, y, **swaps, b=2, m=m, n=n, k=k)
        wide = x.astype(np.float64) @ y.astype(np.float64)
        bound = np.abs(x).astype(np.float64) @ np.abs(y).astype(np.float64) * np.finfo(dtype).eps * (k + 1)
        assert (np.abs(out - wide) <= bound).all()


@pytest.mark.parametrize("m, n, k", SHAPES)
def test_static_symbolic_cut_and_every_target_give_equal_bits(m, n, k):
    x, y = random_matrices(np.float32, (2,), m, n, k)
    symbolic = matmul_kernel(np.float32, ("b",), "m", "n", "k", dims=("b", "m", "n", "k"))
    first = product(symbolic, x, y, b=2, m=m, n=n, k=k)
    total = symbolic.units(b=2, m=m, n=n, k=k)
    cut = product(symbolic, x, y, cuts=sorted({total // 5, total // 2, total - 1} - {-1}), b=2, m=m, n=n, k=k)
    np.testing.assert_array_equal(cut, first)
    for name, target in RUNNABLE.items():
        out = product(matmul_kernel(np.float32, (2,), m, n, k, target), x, y)
        np.testing.assert_array_equal(out, first, err_msg=name)


@pytest.mark.parametrize("transpose_a, transpose_b", TRANSPOSES)
def test_the_order_of_the_sum_is_as_stated(transpose_a, transpose_b):
    # Integers whose products and sums float64 holds exactly, while float32 rounds: so each fma is emulated exactly.
    rng = np.random.default_rng(3)
    m, n, k = 9, 37, 700
    x = rng.integers(2000, 4096, (m, k)).astype(np.float32)
    y = rng.integers(2000, 4096, (k, n)).astype(np.float32)
    total = np.zeros((m, n), np.float32)
    for begin in range(0, k, 256):
        p = np.zeros((m, n), np.float32)
        for i in range(begin, min(k, begin + 256)):
            p = (np.outer(x[:, i].astype(np.float64), y[i].astype(np.float64)) + p).astype(np.float32)
        total = total + p
    swaps = dict(transpose_a=transpose_a, transpose_b=transpose_b)
    out = product(matmul_kernel(np.float32, (), m, n, k, **swaps), x, y, **swaps)
    np.testing.assert_array_equal(out, total)
    assert (out != (x.astype(np.float64) @ y.astype(np.float64)).astype(np.float32)).any()


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("transpose_a, transpose_b", TRANSPOSES)
def test_narrow_floats_are_summed_in_float32_and_rounded_once(dtype, transpose_a, transpose_b):
    swaps = dict(transpose_a=transpose_a, transpose_b=transpose_b)
    for m, n, k in [(5, 19, 300), (33, 8, 40)]:
        x, y = random_matrices(dtype, (), m, n, k)
        wide = product(matmul_kernel(np.float32, (), m, n, k), x.astype(np.float32), y.astype(np.float32))
        out = product(matmul_kernel(dtype, (), m, n, k, **swaps), x, y, **swaps)
        np.testing.assert_array_equal(out.astype(np.float32), wide.astype(dtype).astype(np.float32))


@pytest.mark.parametrize("dtype", dt.INTEGERS, ids=str)
def test_integer_products_wrap(dtype):
    for (m, n, k), (transpose_a, transpose_b) in zip([(3, 5, 7), (20, 37, 300), (9, 70, 20), (1, 4, 0)], TRANSPOSES):
        swaps = dict(transpose_a=transpose_a, transpose_b=transpose_b)
        x, y = random_matrices(dtype, (2,), m, n, k)
        out = product(matmul_kernel(dtype, (2,), m, n, k, **swaps), x, y, **swaps)
        np.testing.assert_array_equal(out, expected_integers(x, y))


def test_nan_inf_and_signed_zeros_flow_through():
    x = np.array([[np.inf, 1.0], [np.nan, 0.0], [-0.0, -0.0]], np.float32)
    y = np.array([[1.0, 0.0, -1.0], [1.0, 1.0, np.inf]], np.float32)
    out = product(matmul_kernel(np.float32, (), 3, 3, 2), x, y)
    np.testing.assert_array_equal(out, [[np.inf, np.nan, np.nan], [np.nan] * 3, [0.0, 0.0, np.nan]])
    assert not np.signbit(out[2, :2]).any()  # a sum starts from +0.0


def test_epilogue_sees_every_element_once_with_its_position():
    m, n, k = 40, 45, 300  # several k-blocks, tiles and a tail
    x, y = random_matrices(np.float32, (2,), m, n, k)
    bias = np.arange(n, dtype=np.float32)
    residual = np.random.default_rng(1).standard_normal((2, m, n)).astype(np.float32)

    def emit(module, e):
        def epilogue(e, value, batch, row, col, mask):
            c = Code(e)
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


def test_tiles_fit_the_registers_and_small_products_waste_little():
    for target in (*RUNNABLE.values(), targets.AARCH64):
        for dtype in (dt.float32, dt.float64, dt.int32, dt.int8, dt.int64):
            tile = choose_tile(target, dtype, "m", "n")
            assert tile.rows * tile.vectors + tile.vectors + 1 < target.registers
    assert choose_tile(targets.AVX512, dt.float32, 1, 1000).rows == 1
    assert choose_tile(targets.AVX512, dt.float32, 60, 10).columns == 16


@pytest.mark.parametrize("target", FOREIGN, ids=lambda t: t.cpu + t.triple[:5])
@pytest.mark.parametrize("dtype", [dt.float32, dt.float16, dt.bfloat16, dt.int64], ids=str)
def test_other_back_ends_accept_matmul(target, dtype):
    for extents, dims in (((30, 40, 300), ()), (("m", "n", "k"), ("m", "n", "k"))):
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
