"""The stated orders, against the same rules spelled out element by element."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ops import evaluation_order, exact_fma

F32 = np.float32


def plain_run(elements: list[np.float32]) -> np.float32:
    """One run: lanes, chunks, superchunks, in scalars."""
    total = F32(-0.0)
    for begin in range(0, len(elements), evaluation_order.SUPERCHUNK):
        block = elements[begin : begin + evaluation_order.SUPERCHUNK]
        lanes = [F32(-0.0)] * evaluation_order.LANES
        for at in range(0, len(block), evaluation_order.CHUNK):
            chunk = [F32(-0.0)] * evaluation_order.LANES
            for k, x in enumerate(block[at : at + evaluation_order.CHUNK]):
                chunk[k % evaluation_order.LANES] += x
            lanes = [a + b for a, b in zip(lanes, chunk)]
        step = evaluation_order.LANES // 2
        while step:
            lanes = [lanes[k] + lanes[k + step] for k in range(step)]
            step //= 2
        total += lanes[0]
    return total


def plain_cascade(terms: list[np.float32]) -> np.float32:
    total = F32(-0.0)
    for outer in range(0, len(terms), 4096):
        second = F32(-0.0)
        for inner in range(outer, min(outer + 4096, len(terms)), 64):
            first = F32(-0.0)
            for term in terms[inner : min(inner + 64, outer + 4096)]:
                first += term
            second += first
        total += second
    return total


def plain_sum(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """Every output element on its own: the outer reduced axes in row-major order, the trailing group as runs."""
    real = [a for a in range(x.ndim) if x.shape[a] != 1]
    trailing: list[int] = []
    for a in reversed(real):
        if a not in axes:
            break
        trailing.insert(0, a)
    outer = [a for a in real if a in axes and a not in trailing]
    kept = [a for a in range(x.ndim) if a not in axes]
    out = np.zeros([x.shape[a] for a in kept], F32)
    for place in np.ndindex(*out.shape):
        index = [0] * x.ndim
        for a, i in zip(kept, place):
            index[a] = i
        terms = []
        for turn in itertools.product(*(range(x.shape[a]) for a in outer)):
            for a, i in zip(outer, turn):
                index[a] = i
            elements = []
            for step in itertools.product(*(range(x.shape[a]) for a in trailing)):
                for a, i in zip(trailing, step):
                    index[a] = i
                elements.append(x[tuple(index)])
            terms.append(plain_run(elements) if trailing else elements[0])
        out[place] = F32(0.0) + plain_cascade(terms)
    return out


@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((), ()),
        ((1,), (0,)),
        ((63,), (0,)),
        ((65,), (0,)),
        ((4097,), (0,)),
        ((9001,), (0,)),
        ((3, 130), (1,)),
        ((130, 3), (0,)),
        ((4200, 2), (0,)),
        ((5, 67, 3), (0, 2)),
        ((70, 2, 5, 13), (0, 2, 3)),
        ((130, 1), (0,)),
        ((1, 130, 1), (1,)),
        ((130, 3, 1), (0, 2)),
        ((2, 0), (1,)),
        ((0, 2), (0,)),
        ((2, 3), ()),
    ],
)
def test_sums_fold_in_the_written_order(shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    rng = np.random.default_rng(len(shape) + math.prod(shape))
    x = np.asarray(rng.standard_normal(shape) * 10.0 ** rng.integers(-6, 6, shape), F32)
    got = evaluation_order.ordered_sum(x, axes)
    assert got.dtype == F32
    assert got.tobytes() == plain_sum(x, axes).tobytes()


def test_superchunks_fold_in_order() -> None:
    x = np.zeros(2 * evaluation_order.SUPERCHUNK + 5, F32)
    x[0], x[evaluation_order.SUPERCHUNK], x[-1] = 1.0, 2.0**-24, 2.0**-24  # each is lost when added to 1 on its own
    assert evaluation_order.ordered_sum(x, (0,)) == 1.0
    x[evaluation_order.SUPERCHUNK + 1], x[-1] = 2.0**-24, 0.0  # two of them meet first
    assert evaluation_order.ordered_sum(x, (0,)) == F32(1 + 2.0**-23)


def test_zeros_and_narrow_floats() -> None:
    assert not np.signbit(evaluation_order.ordered_sum(np.zeros(0, F32), (0,)))
    assert not np.signbit(evaluation_order.ordered_sum(np.full(3, -0.0, F32), (0,)))
    # In float16, 2048 + 1 would stay 2048 at every step.
    ones = np.ones(3000, np.float16)
    assert evaluation_order.ordered_sum(ones, (0,)) == np.float16(3000)
    assert evaluation_order.ordered_sum(ones.astype(dt.bfloat16), (0,)).dtype == dt.bfloat16
    assert evaluation_order.ordered_prod(np.full(3, -2.0, F32), (0,)) == -8


# ---- fused multiply-add


def rounded(value: Fraction, dtype: np.dtype) -> np.generic:
    """The nearest number of the dtype, ties to even, by comparing with its neighbours."""
    with np.errstate(over="ignore"):
        near = dtype.type(float(value)) if abs(value) < Fraction(np.finfo(np.float64).max) else dtype.type(value > 0)
    best = min(
        (near, np.nextafter(near, dtype.type(-np.inf)), np.nextafter(near, dtype.type(np.inf))),
        key=lambda x: (abs(Fraction(float(x)) - value), int(x.view(f"i{dtype.itemsize}")) & 1),
    )
    return dtype.type(best)


@pytest.mark.parametrize("dtype", [dt.float32, dt.float64], ids=str)
def test_fma_rounds_once(dtype: np.dtype) -> None:
    rng = np.random.default_rng(1)
    info = np.finfo(dtype)
    low, high = info.minexp // 2 - 10, info.maxexp // 2 - 1
    a, b, c = (
        np.ldexp(rng.standard_normal(3000).astype(dtype), rng.integers(low, high, 3000)).astype(dtype) for _ in range(3)
    )
    c[::2] = (-a[::2] * b[::2]).astype(dtype)  # all but the last bits cancel
    c[1::4] = (a[1::4] * b[1::4] * dtype.type(2.0**-info.nmant)).astype(dtype)  # about half a unit
    out = exact_fma.fma(a, b, c)
    assert out.dtype == dtype
    for x, y, z, got in zip(a, b, c, out):
        value = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
        assert got == rounded(value, dtype), (x, y, z)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, info.tiny, info.max], dtype)
    x, y, z = (v.ravel() for v in np.meshgrid(special, special, special))
    with np.errstate(all="ignore"):
        plain = x.astype(np.longdouble) * y + z
    got = exact_fma.fma(x, y, z)
    away = (np.abs(plain) > info.max) | (np.abs(plain) < info.tiny) & (plain != 0)
    np.testing.assert_array_equal(got[~away], plain[~away].astype(dtype))
    assert np.signbit(exact_fma.fma(np.asarray(-0.0, dtype), np.asarray(1.0, dtype), np.asarray(-0.0, dtype)))


def test_flushing_comes_after_rounding() -> None:
    least = F32(2.0**-126)
    for part, flushed in ((0.5, False), (0.501953125, True), (0.703125, True), (0.4, False)):
        product = F32(-part * 2.0**-75)
        got = exact_fma.fma_flushed(product, F32(2.0**-75), least)
        assert got == (0 if flushed else least), part
    assert exact_fma.fma_flushed(F32(1e-40), F32(1e30), F32(-1e-40)) == 0
    assert np.isnan(exact_fma.fma_flushed(F32(1e-40), F32(np.inf), F32(1.0)))


# ---- products


def test_products_go_in_blocks() -> None:
    rng = np.random.default_rng(2)
    x, y = rng.standard_normal((3, 300)).astype(F32), rng.standard_normal((300, 2)).astype(F32)
    for i, j in np.ndindex(3, 2):
        total = F32(0)
        for begin in range(0, 300, evaluation_order.K_BLOCK):
            p = Fraction(0)
            for k in range(begin, min(300, begin + evaluation_order.K_BLOCK)):
                p = Fraction(float(rounded(Fraction(float(x[i, k])) * Fraction(float(y[k, j])) + p, dt.float32)))
            total = F32(total + F32(float(p)))
        assert evaluation_order.ordered_product(x, y, dt.float32)[i, j] == total


def test_products_of_integers_wrap_in_the_dtype_of_the_sums() -> None:
    x, y = np.full((1, 3), 127, np.int8), np.full((3, 1), 127, np.int8)
    assert evaluation_order.ordered_product(x, y, dt.int32) == 3 * 127 * 127
    assert evaluation_order.ordered_product(x, y, dt.int8) == np.int8((3 * 127 * 127 + 128) % 256 - 128)
    assert (
        evaluation_order.ordered_product(np.zeros((2, 0), np.int8), np.zeros((0, 2), np.int8), dt.int32).tolist()
        == [[0, 0]] * 2
    )


def test_bfloat16_products_sum_even_and_odd_k_apart_in_runs() -> None:
    big = 2.0**25
    terms = np.zeros((2, 64), F32)
    terms[0, :4] = big, 1, -big, 1  # those of even k cancel before any 1 is added to them
    terms[1, [0, 32, 34]] = big, -big, 1  # the second run is -2**25 + 1, rounded
    ones = np.ones((64, 1), F32)
    in_runs = evaluation_order.ordered_product(terms.astype(dt.bfloat16), ones.astype(dt.bfloat16), dt.float32)
    np.testing.assert_array_equal(in_runs, [[2], [0]])
    np.testing.assert_array_equal(
        evaluation_order.ordered_product(terms, ones, dt.float32), [[1], [1]]
    )  # one k after the other
    tiny = np.full((1, 4), 2.0**-64, dt.bfloat16)
    assert evaluation_order.ordered_product(tiny, tiny.T, dt.float32) == 0  # the sum is normal, its terms are not


# ---- scans


def test_scans_go_in_runs_in_chunks() -> None:
    rng = np.random.default_rng(3)
    n = evaluation_order.SCAN_CHUNK + evaluation_order.SCAN_RUN + 3
    x = (rng.standard_normal(n) * 10.0 ** rng.integers(-6, 6, n)).astype(F32)
    for exclusive in (False, True):
        got = evaluation_order.ordered_scan(lambda s, t: (s[0] + t[0],), (-0.0,), (x,), 0, exclusive)[0]
        totals = [plain_in_turn(x[k : k + evaluation_order.SCAN_RUN]) for k in range(0, n, evaluation_order.SCAN_RUN)]
        chunk = plain_in_turn(totals[: evaluation_order.SCAN_CHUNK // evaluation_order.SCAN_RUN])
        for i in (0, 1, 63, 64, 65, 4000, 4095, 4096, 4097, n - 1):
            in_chunk, run = i % evaluation_order.SCAN_CHUNK, i // evaluation_order.SCAN_RUN
            first = (i - in_chunk) // evaluation_order.SCAN_RUN
            carry = (chunk if i >= evaluation_order.SCAN_CHUNK else F32(-0.0)) + plain_in_turn(totals[first:run])
            local = plain_in_turn(x[run * evaluation_order.SCAN_RUN : i + (not exclusive)])
            assert got[i].tobytes() == (carry + local).tobytes(), i


def plain_in_turn(elements: np.ndarray | list[np.float32]) -> np.float32:
    total = F32(-0.0)
    for x in elements:
        total = total + x
    return total
