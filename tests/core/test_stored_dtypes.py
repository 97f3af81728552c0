"""Floats of 8 and 4 bits and integers of 4 and 2: stored, converted and moved; products of them have wide sums."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import hybridflow as hf
from hybridflow.compiler.ir import dtypes as dt

FLOATS = [d for d in dt.STORED if isinstance(dt.DEF[d].stored, dt.MiniFloat)]
INTEGERS = [d for d in dt.STORED if d not in FLOATS]
RNG = np.random.default_rng(0)


def codes(dtype: Any) -> np.ndarray:
    """All values, bits that do not count set as well."""
    count = 256 if dtype not in FLOATS else 1 << dt.DEF[dtype].stored.bits
    return np.arange(count, dtype=np.uint8).view(dtype)


def numbers() -> np.ndarray:
    """float32 with all exponents, halves between neighbours, and what is no number."""
    ties = (np.arange(1 << 16, dtype=np.uint32) << 16).view(np.float32)
    beside = (np.arange(1 << 16, dtype=np.uint32) << 16 ^ 1).view(np.float32)
    drawn = RNG.integers(0, 1 << 32, 2000, dtype=np.uint64).astype(np.uint32).view(np.float32)
    return np.concatenate([ties, beside, drawn])


def as_ml_dtypes(x: np.ndarray, dtype: Any) -> np.ndarray:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return x.astype(np.float32).astype(dtype)


def same(a: Any, b: Any) -> bool:
    a, b = np.asarray(a), np.asarray(b)
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("source", ["float32", "float64", "float16", "bfloat16"])
def test_floats_are_rounded_as_ml_dtypes_does(dtype: Any, source: str) -> None:
    with np.errstate(all="ignore"):
        x = numbers().astype(source)
    wanted, x = as_ml_dtypes(x, dtype), hf.asarray(x)
    assert same(hf.astype(x, dtype), wanted)
    assert same(hf.function(lambda x: hf.astype(x, dtype))(x), wanted)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_floats_become_wide_as_ml_dtypes_does(dtype: Any) -> None:
    every = codes(dtype)
    with np.errstate(all="ignore"):
        wide = every.astype(np.float64)
        whole = np.where(np.isnan(wide), 0, np.clip(wide, -(2**31), 2**31 - 1))
        for_dtypes = {d: every.astype(np.float32).astype(d) for d in (np.float32, np.float64, np.bool_, np.complex64)}
    for to, wanted in {**for_dtypes, np.int32: whole.astype(np.int32)}.items():
        assert same(hf.astype(hf.asarray(every), to), wanted)
        assert same(hf.function(lambda x, to=to: hf.astype(x, to))(hf.asarray(every)), wanted)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integers(dtype: Any) -> None:
    how = dt.DEF[dtype].stored
    every, (low, high) = codes(dtype), how.limits
    assert same(hf.astype(hf.asarray(every), np.int32), every.astype(np.int32))
    whole = RNG.integers(-300, 300, 100)  # integers wrap
    assert same(hf.astype(hf.asarray(whole), dtype), whole.astype(dtype))
    x = np.array([-np.inf, -1e30, -3.5, -2.0, -0.5, 0.9, 1.0, 2.999, 6.5, 7.0, 15.5, 1e30, np.inf, np.nan], "f4")
    wanted = np.clip(np.nan_to_num(np.trunc(x)), low, high).astype(np.int8).astype(dtype)  # floats saturate
    for function in (hf.astype, hf.function(hf.astype)):
        for kind in ("f4", "f8", "f2"):
            with np.errstate(over="ignore"):
                assert same(function(hf.asarray(x.astype(kind)), dtype), wanted)
    assert (hf.iinfo(dtype).min, hf.iinfo(dtype).max) == (low, high)
    with pytest.raises(hf.errors.ArgumentError, match="does not fit"):
        hf.asarray([high + 1], dtype=dtype)


@pytest.mark.parametrize("dtype", dt.STORED, ids=str)
def test_they_move(dtype: Any) -> None:
    x = codes(dtype)[:16].reshape(4, 4)
    mask = RNG.random((4, 4)) < 0.5

    def moved(t: Any) -> Any:
        rows = hf.take(t, hf.asarray([3, 0, 3]), axis=0)
        whole = hf.concat([hf.flip(t.T, axis=0), rows], axis=0)
        return hf.where(mask, t, hf.zeros_like(t)), whole[1:, ::2], hf.pad(t, ((1, 0), (0, 2)))

    zero = np.zeros((), dtype)
    whole = np.concatenate([x.T[::-1], x[[3, 0, 3]]])
    wanted = (np.where(mask, x, zero), whole[1:, ::2], np.pad(x.view(np.uint8), ((1, 0), (0, 2))).view(dtype))
    for function in (moved, hf.function(moved)):
        for got, expected in zip(function(hf.asarray(x)), wanted):
            assert same(got, np.ascontiguousarray(expected))
    kept = hf.function(lambda p, t: hf.cond(p, lambda: t, lambda: t[::-1]))
    assert same(kept(hf.asarray(False), hf.asarray(x)), np.ascontiguousarray(x[::-1]))


@pytest.mark.parametrize("dtype", dt.STORED, ids=str)
def test_what_would_compute_refuses_by_name_or_widens(dtype: Any) -> None:
    x = hf.asarray([1, 0, 1], dtype=dtype)
    for function in (lambda: x + x, lambda: -x, lambda: x == x, lambda: hf.max(x), lambda: hf.sort(x), lambda: x * 1):
        with pytest.raises(hf.errors.DTypeError, match=f"{dtype}.* stored"):
            function()
    with pytest.raises(hf.errors.DTypeError, match=f"{dtype} with float32"):
        hf.concat([x, hf.ones(2)])
    is_float = dtype in FLOATS
    assert hf.sum(x).dtype == (np.float32 if is_float else hf.sum(hf.astype(x, dt.wide_dtype(dtype))).dtype)
    assert hf.exp(x).dtype == np.float32
    assert not hf.isdtype(dtype, "numeric") and hf.isdtype(dtype, dtype)
    assert not hf.can_cast(dtype, np.float32)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_predicates_and_sums_see_what_is_no_number(dtype: Any) -> None:
    every = codes(dtype)
    x, wide = hf.asarray(every), every.astype(np.float32)
    for name in ("isnan", "isinf", "isfinite"):
        assert same(getattr(hf, name)(x), getattr(np, name)(wide))
    halves = hf.asarray([0.5, 0.5, 1.5], dtype=dtype)
    assert float(hf.sum(halves)) == 2.5 and float(hf.mean(halves)) == np.float32(2.5) / np.float32(3)
    assert hf.finfo(dtype).max == float(ml_dtypes.finfo(dtype).max)


@pytest.mark.parametrize("dtype", dt.STORED, ids=str)
@pytest.mark.parametrize("threads", [1, 3])
def test_products_have_wide_sums(dtype: Any, threads: int) -> None:
    a, b = (
        RNG.integers(0, 2 if dtype in (dt.int2, dt.uint2) else 7, shape).astype(dtype) for shape in ((37, 70), (70, 19))
    )
    wide = np.float32 if dtype in FLOATS else np.int32
    wanted = a.astype(wide) @ b.astype(wide)  # whole numbers: exact
    before = hf.config.get_num_threads()
    hf.config.set_num_threads(threads)
    try:
        for function in (hf.matmul, hf.function(hf.matmul)):
            assert same(function(hf.asarray(a), hf.asarray(b)), wanted)
    finally:
        hf.config.set_num_threads(before)
    assert same(hf.vecdot(a[0], a[1]), np.dot(a[0].astype(wide), a[1].astype(wide)))
    assert same(hf.einsum("ij,jk->ik", a, b), wanted)


@pytest.mark.parametrize("dtype", dt.STORED, ids=str)
def test_they_are_kept(dtype: Any, tmp_path: Path) -> None:
    every = codes(dtype)
    v = hf.Variable(hf.asarray(every))
    path = hf.checkpoint.Checkpoint(v=v).save(str(tmp_path / "checkpoint"))
    v.assign(v[::-1])
    hf.checkpoint.Checkpoint(v=v).restore(path)
    assert same(v, every)
    function = hf.function(lambda x: (hf.astype(x, "float32"), hf.concat([x, hf.asarray([1], dtype=dtype)])))
    function.get_concrete_function(hf.TensorSpec([None], dtype))
    hf.saved.save(function, tmp_path / "saved")
    again = hf.saved.load(tmp_path / "saved")
    for got, expected in zip(again(hf.asarray(every)), function(hf.asarray(every))):
        assert same(got, expected)


def test_dlpack() -> None:
    for dtype in dt.STORED:
        x = hf.asarray(codes(dtype))
        if dtype in FLOATS and dt.DEF[dtype].stored.bits == 8:
            assert same(hf.from_dlpack(x), x)
        else:
            with pytest.raises(hf.errors.SharingError, match=str(dtype)):
                x.__dlpack__()


def test_gradients_stop_where_numbers_are_stored() -> None:
    x = hf.asarray([1.0, 2.0])
    with hf.GradientTape() as tape:
        tape.watch(x)
        y = hf.sum(hf.astype(hf.astype(x, hf.float8_e5m2), "float32"))
    assert tape.gradient(y, x) is None
