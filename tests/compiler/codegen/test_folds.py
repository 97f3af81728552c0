"""Folds of several inputs, with attributes: the same bits eagerly, compiled alone, fused, and as the order says."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.types import Dim, TensorType
from hybridflow.compiler.ops import evaluation_order
from hybridflow.compiler.ops.fold_rules import FoldRules
from hybridflow.compiler.ops.op_table import TABLE
from hybridflow.runtime.machine import host_target
from tests.compiler.codegen.test_padded_reads import between_forbidden_pages
from tests.support.bits import same_bits
from tests.support.compare_programs import op
from tests.support.jit_helper import runnable_targets

SHAPES = [
    ((67,), 0),
    ((300, 5), 0),
    ((5, 300), 1),
    ((3, 65, 4), 1),
    ((1, 5000), -1),
    ((0, 3), 0),
    ((3, 0), 1),
    ((1,), 0),
]


def pair(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.standard_normal(shape).astype(dtype), rng.standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("shape, axis", SHAPES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16])
def test_vecdot_forms_and_sums_products_wide_and_in_the_order_of_sums(shape: Any, axis: int, dtype: Any) -> None:
    x, y = pair(shape, dtype)
    wide = np.float64 if dtype is np.float64 else np.float32
    expected = evaluation_order.ordered_sum(x.astype(wide) * y.astype(wide), (axis % x.ndim,)).astype(dtype)

    def program(x: Any, y: Any) -> Any:
        return hf.vecdot(x, y, axis=axis)

    for found in (program(x, y), hf.function(program)(x, y)):
        assert same_bits(np.asarray(found.numpy()), expected)


def test_vecdot_of_narrow_floats_does_not_round_or_overflow_on_the_way() -> None:
    x = np.full(8, 300, np.float16)
    signs = np.array([1, -1] * 4, np.float16)
    assert hf.vecdot(x, x * signs).numpy() == 0
    assert hf.vecdot(x, x, sum_dtype=np.float32).numpy() == 8 * 300.0**2
    many = hf.vecdot(np.full(300, 100, np.int8), np.full(300, 100, np.int8), sum_dtype=np.int32)
    assert many.dtype == np.int32 and many.numpy() == 3_000_000
    with pytest.raises(errors.DTypeError, match="holds all of its values"):
        hf.vecdot(x, x, sum_dtype=np.int32)


def test_vecdot_fuses_with_what_it_reads_and_what_reads_it() -> None:
    x, y = pair((40, 33), np.float32)

    def program(x: Any, y: Any) -> Any:
        scaled = hf.exp(x) * 0.5
        norm = hf.vecdot(scaled, hf.sin(y))
        return scaled / hf.expand_dims(norm, -1), hf.argmax(scaled * y, axis=-1), hf.sum(y, axis=-1)

    compiled = hf.function(program)
    for found, expected in zip(compiled(x, y), program(x, y)):
        assert same_bits(found.numpy(), expected.numpy())
    assert len(compiled.kernels(x, y)) == 1

    def of_one(x: Any) -> Any:
        return program(x, hf.cos(x))

    symbolic = hf.function(of_one, input_signature=[hf.TensorSpec([None, None], np.float32)])
    for extent in (2, 3, 64, 65):
        x, _ = pair((extent, extent + 1), np.float32, extent)
        for found, expected in zip(symbolic(x), of_one(x)):
            assert same_bits(found.numpy(), expected.numpy())


def test_vecdot_is_differentiable_through_its_wider_sums() -> None:
    x, y = pair((6, 5), np.float16)

    def gradients(x: Any, y: Any) -> Any:
        x, y = hf.constant(x), hf.constant(y)
        with hf.GradientTape() as tape:
            tape.watch(x)
            tape.watch(y)
            total = hf.sum(hf.vecdot(x, y, axis=0, sum_dtype=np.float32))
        return tape.gradient(total, [x, y])

    for found in (gradients(x, y), hf.function(gradients)(x, y)):
        assert same_bits(found[0].numpy(), y) and same_bits(found[1].numpy(), x)


def test_positions_of_extremes_over_some_axes() -> None:
    x = np.random.default_rng(0).integers(0, 9, (3, 4, 5, 6)).astype(np.float32)
    x[1, 2, 3, 4] = np.nan
    rows = x.transpose(1, 3, 0, 2).reshape(4, 6, 15)
    for name, find in (("argmax", np.argmax), ("argmin", np.argmin)):
        found = [op(name, x, axes=(0, 2)), hf.function(lambda x, name=name: op(name, x, axes=(0, 2)))(x)]
        for positions in found:
            assert same_bits(positions.numpy(), find(rows, axis=-1))


def test_positions_are_narrow_where_all_of_them_fit():
    def positions(*shape):
        folding = FoldRules(TABLE["argmax"], [TensorType(shape, dt.float32)], {"axes": (0,)})
        return folding.positions, folding.identity[1]

    assert positions(2**31 - 1) == (dt.int32, (2**31 - 1, dt.int32))
    assert positions(2**31) == (dt.int64, (2**63 - 1, dt.int64))
    assert positions(2**16, 2**15) == (dt.int64, (2**63 - 1, dt.int64))
    assert positions(Dim("n")) == (dt.int64, (2**63 - 1, dt.int64))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "lines, line",
    [((9,), 500), ((130,), 64), ((3, 41), 41), ((2, 5, 24), 24), ((700,), 9), ((5000,), 3), ((1,), 4100)],
)
def test_rows_that_are_made_in_lines_have_the_order_of_rows(lines: Any, line: int, dtype: Any) -> None:
    """Sums over several axes of what does not have them all."""
    x, y = pair((*lines, line), dtype)
    columns, rows = x[(0,) * len(lines)], y[..., :1]
    terms = (x - columns) * rows

    def program(x: Any, columns: Any, rows: Any) -> Any:
        terms = (x - columns) * rows
        return hf.sum(terms), hf.argmax(hf.reshape(terms, (-1,))), hf.any(terms > 2.5), hf.sum(abs(terms - columns))

    expected = evaluation_order.ordered_sum(terms, tuple(range(x.ndim)))
    again = evaluation_order.ordered_sum(abs(terms - columns), tuple(range(x.ndim)))
    for run in (program, hf.function(program)):
        total, first, some, other = (np.asarray(r) for r in run(x, columns, rows))
        assert same_bits(total, expected) and same_bits(other, again)
        assert first == np.argmax(terms) and some == np.any(terms > 2.5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("lines, line", [((9,), 500), ((130,), 64), ((3, 41), 41), ((5, 7, 24), 24), ((2,), 4100)])
def test_what_rows_in_lines_write_besides(lines: Any, line: int, dtype: Any) -> None:
    """On the way, and perhaps over what they read and fold."""
    x, y = pair((*lines, line), dtype)
    columns, rows = x[(0,) * len(lines)], y[..., :1]
    terms = (x - columns) * rows

    def program(x: Any, columns: Any, rows: Any) -> Any:
        terms = (x - columns) * rows
        return terms, hf.sum(terms), abs(terms) + x, hf.sum(x), hf.max(x)

    axes = tuple(range(x.ndim))
    expected = (
        terms,
        evaluation_order.ordered_sum(terms, axes),
        abs(terms) + x,
        evaluation_order.ordered_sum(x, axes),
        np.max(x),
    )
    compiled = hf.function(program)
    for part, wanted in zip(compiled(x, columns, rows), expected, strict=True):
        assert same_bits(np.asarray(part), wanted)
    (kernel,) = compiled.kernels(x, columns, rows)
    assert f"in lines of {line}" in kernel["schedule"]

    @hf.function
    def over(x: Any, columns: Any, rows: Any) -> Any:
        x = x + 1  # a value of the program, whose memory is free when it is read for the last time
        x = hf.sort(x, axis=-1)
        terms = (x - columns) * rows
        return hf.sum(hf.sort(terms, axis=-1)), hf.sum(terms), hf.sum(x)

    moved = np.sort(x + dtype(1), -1)
    terms = (moved - columns) * rows
    for part, wanted in zip(over(x, columns, rows), (np.sort(terms, -1), terms, moved), strict=True):
        assert same_bits(np.asarray(part), evaluation_order.ordered_sum(wanted, axes))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "lines, line", [((9,), 500), ((50,), 24), ((7,), 41), ((5, 7), 24), ((3,), 4100), ((130,), 33)]
)
@pytest.mark.parametrize("writes", [False, True])
def test_rows_in_lines_read_what_an_earlier_stage_has_kept(lines: Any, line: int, writes: bool, dtype: Any) -> None:
    x = pair((3, *lines, line), dtype)[0]
    x[0].flat[[0, -1, line]] = -0.0, 80, -80
    columns, rows = pair((line,), dtype, 1)[0], pair((*lines, 1), dtype, 2)[0]
    axes = tuple(range(1, x.ndim))

    def program(x: Any, columns: Any, rows: Any) -> Any:
        kept = hf.exp(hf.tanh(x))
        terms = kept / hf.sum(kept, axis=axes, keepdims=True) * columns
        last = terms + rows
        total = hf.sum(last * last, axis=axes)
        return (total, hf.max(terms * last, axis=axes), terms, last) if writes else (total,)

    compiled = hf.function(program)
    kept = np.asarray(hf.exp(hf.tanh(x)))
    terms = kept / evaluation_order.ordered_sum(kept, axes).reshape(-1, *[1] * len(axes)) * columns
    last = terms + rows
    expected = evaluation_order.ordered_sum(last * last, axes), np.max(terms * last, axis=axes), terms, last
    for run in (program, compiled):
        for part, wanted in zip(run(*map(hf.asarray, (x, columns, rows))), expected):
            assert same_bits(np.asarray(part), wanted)
    schedule = compiled.kernels(x, columns, rows)[-1]["schedule"]
    assert "keep" in schedule and f"in lines of {line}" in schedule


def test_pairs_of_rows_are_folded_in_lines() -> None:
    x, y = pair((6, 50), np.float32)

    def program(x: Any, y: Any) -> Any:
        return hf.sum(hf.abs(x[:, :, None] - y[:, None, :]))

    found = hf.function(program)
    expected = evaluation_order.ordered_sum(abs(x[:, :, None] - y[:, None, :]), (0, 1, 2))
    assert same_bits(np.asarray(found(x, y)), expected)
    (kernel,) = found.kernels(x, y)
    assert "in lines of 50" in kernel["schedule"]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(3, 65), (2, 3, 95), (3, 96), (2, 127), (1, 128), (4, 161), (2, 4127), (8255,)])
def test_long_bodies_fold_in_the_order_of_rows(shape: Any, dtype: Any) -> None:
    """Several vectors a turn, a rest behind them, and statistics of the row that all of them read."""
    x = pair(shape, dtype)[0]
    x.flat[[5, 1]] = -0.0, 80

    def program(x: Any) -> Any:
        spread = hf.sqrt(hf.mean(x * x, -1, keepdims=True)) + 1
        terms = hf.exp(hf.tanh((x - hf.max(x, -1, keepdims=True)) / spread)) + hf.log1p(hf.exp(-abs(x)))
        return hf.sum(terms, -1), terms, hf.argmin(terms, -1)

    expected = np.asarray(program(x)[1])
    for name, machine in runnable_targets().items():
        with host_target.use(machine):
            once, several = hf.function(program), hf.function(program)
            for extent in (70, 75, 80):  # from the third on it is a symbol
                several(np.ones((*shape[:-1], extent), dtype))
            for found in (once(x), several(x)):
                total, terms, least = (np.asarray(part) for part in found)
                assert same_bits(terms, expected)
                assert same_bits(total, evaluation_order.ordered_sum(terms, (x.ndim - 1,)))
                assert np.array_equal(least, np.argmin(terms, -1))
            assert name != "avx2" or "4 vectors a turn" in once.kernels(x)[-1]["schedule"]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, ml_dtypes.bfloat16])
@pytest.mark.parametrize(
    "images, groups, channels, size, line",
    [
        (2, 3, 4, (5, 20), 100),
        (1, 1, 4, (40, 41), 1640),
        (3, 2, 3, (8, 9), 72),
        (1, 1, 8, (200, 257), 0),
        (1, 2, 2, (3, 3), 0),
    ],
    ids=str,
)
def test_rows_are_written_in_lines(
    images: int, groups: int, channels: int, size: tuple[int, int], line: int, dtype: Any
) -> None:
    """Groups of channels that are normalised together, with a scale and an offset for each channel."""
    shape = (images, groups * channels, *size)
    rng = np.random.default_rng(line)
    x = rng.standard_normal(shape).astype(dtype)
    scale, offset = (rng.standard_normal((shape[1], 1, 1)).astype(dtype) for _ in range(2))

    def program(x: Any, scale: Any, offset: Any, costly: bool = False) -> Any:
        rows = hf.reshape(x, (images, groups, -1))
        made = hf.exp(hf.tanh(rows)) if costly else rows  # is kept for the second stage
        made = made - hf.mean(made, axis=-1, keepdims=True)
        made = made / hf.max(hf.abs(made), axis=-1, keepdims=True)
        return hf.reshape(made, shape) * scale + offset

    for costly in (False, True):
        chosen = lambda *given, costly=costly: program(*given, costly=costly)  # noqa: E731
        found = hf.function(chosen)
        assert same_bits(np.asarray(found(x, scale, offset)), np.asarray(chosen(*map(hf.asarray, (x, scale, offset)))))
    schedules = [kernel["schedule"] for kernel in hf.function(program).kernels(x, scale, offset)]
    assert any(f"write add, in lines of {line}" in one for one in schedules) == bool(line), schedules
    rows = np.asarray(x, np.float64).reshape(images, groups, -1)
    rows = rows - rows.mean(-1, keepdims=True)
    want = (rows / abs(rows).max(-1, keepdims=True)).reshape(shape) * np.asarray(scale, float) + np.asarray(
        offset, float
    )
    loose = 0.05 if dtype == ml_dtypes.bfloat16 else 1e-5
    np.testing.assert_allclose(np.asarray(hf.function(program)(x, scale, offset), float), want, loose, loose)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("shape", [(256, 8, 7), (16, 128, 2), (32, 64, 13), (4, 512, 33), (32, 8, 8, 3)])
def test_columns_that_fill_no_vector_fold_long_bodies(shape: Any, dtype: Any) -> None:
    """They are part of a vector with a mask, or go one by one; nothing beside them is read."""
    x = between_forbidden_pages(pair(shape, dtype)[0])
    x[0, 2, 1] = np.nan

    def program(x: Any) -> Any:
        terms = hf.log1p(hf.exp(-abs(x))) + hf.tanh(x)
        total = hf.sum(terms, 1)
        return total, hf.log(abs(total)), terms

    expected = [np.asarray(part) for part in program(x)]
    assert same_bits(expected[0], evaluation_order.ordered_sum(expected[2], (1,)))
    for machine in runnable_targets().values():
        with host_target.use(machine):
            for part, wanted in zip(hf.function(program)(x), expected, strict=True):
                assert same_bits(np.asarray(part), wanted)
