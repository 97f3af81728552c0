"""The table of dtypes: rows that agree with NumPy, and the lattice of promotion."""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import pytest

from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.graph import Literal
from hybridflow.compiler.ir.text import parse, to_text
from hybridflow.compiler.ops import TABLE
from hybridflow.runtime.dtypes import NUMPY

KINDS = {"b": dt.Kind.BOOL, "i": dt.Kind.SIGNED, "u": dt.Kind.UNSIGNED, "f": dt.Kind.FLOAT, "c": dt.Kind.COMPLEX}


def promoted(a: dt.DType, b: dt.DType) -> dt.DType | None:
    try:
        return dt.promote(a, b)
    except TypeError:
        return None


def test_rows_say_what_numpy_says() -> None:
    assert [row.dtype for row in dt.ROWS] == [*dt.ALL] and len(dt.DEF) == len(dt.FROM_SHORT) == len(dt.ALL)
    assert {row.short: row.dtype for row in dt.ROWS} == NUMPY
    for row in dt.ROWS:
        if row.kind is dt.Kind.STORED:  # which NumPy does not know, nor has ml_dtypes a kind for most
            continue
        if row.dtype != dt.bfloat16:  # whose kind NumPy does not know
            assert KINDS[row.dtype.kind] is row.kind
        assert row.dtype.itemsize == row.part.itemsize * (2 if row.kind is dt.Kind.COMPLEX else 1)
        assert row.short.startswith("b") or int(row.short.lstrip("iufc")) == 8 * row.dtype.itemsize
        tests = (dt.is_bool, dt.is_signed, dt.is_unsigned, dt.is_float, dt.is_complex)
        assert [test(row.dtype) for test in tests] == [
            kind is row.kind for kind in dt.Kind if kind is not dt.Kind.STORED
        ]
        assert dt.is_inexact(row.dtype) == (dt.is_float(row.dtype) or dt.is_complex(row.dtype))


@pytest.mark.parametrize("dtype", dt.STORED, ids=str)
def test_rows_of_stored_dtypes_say_what_ml_dtypes_says(dtype: dt.DType) -> None:
    how = dt.DEF[dtype].stored
    assert dt.is_stored(dtype) and dtype.itemsize == 1 and dt.compute_dtype(dtype) == dtype
    assert not any(test(dtype) for test in (dt.is_bool, dt.is_integer, dt.is_float, dt.is_inexact))
    every = np.arange(256, dtype=np.uint8).view(dtype)
    if isinstance(how, dt.MiniInt):
        assert how.limits == dt.limits(dtype) == (ml_dtypes.iinfo(dtype).min, ml_dtypes.iinfo(dtype).max)
        wide = every.astype(how.wide)
        assert (int(wide.min()), int(wide.max())) == how.limits
    else:
        assert how is not None
        limits = ml_dtypes.finfo(dtype)
        assert (limits.bits, limits.nmant) == (how.bits, how.mantissa)
        assert every[how.largest] == limits.max and every[1].astype(np.float32) == limits.smallest_subnormal
        assert how.nan is None or np.isnan(every[how.nan].astype(np.float32))
    assert dt.embeds(dtype, dt.wide_dtype(dtype)) and not dt.embeds(dt.wide_dtype(dtype), dtype)
    assert dt.embeds(dt.bool_, dtype) and not any(dt.embeds(dtype, other) for other in dt.STORED if other != dtype)


def test_promotion_is_a_lattice() -> None:
    for a, b in itertools.product(dt.ALL, repeat=2):
        both = promoted(a, b)
        assert both == promoted(b, a)
        if both is not None:
            assert promoted(a, both) == promoted(b, both) == both
    for a, b, c in itertools.product((*dt.FLOATS, *dt.COMPLEX), repeat=3):
        # float16 and bfloat16 have no order, and meet in float32.
        assert promoted(promoted(a, b), c) == promoted(a, promoted(b, c)) or {dt.float16, dt.bfloat16} <= {a, b, c}


@pytest.mark.parametrize("a", dt.COMPLEX, ids=str)
@pytest.mark.parametrize("b", [dt.float32, dt.float64, *dt.COMPLEX], ids=str)
def test_complex_dtypes_meet_floats_as_numpys(a: dt.DType, b: dt.DType) -> None:
    assert dt.promote(a, b) == np.promote_types(a, b)


def test_embedding_of_complex_dtypes() -> None:
    assert dt.embeds(dt.float32, dt.complex64) and dt.embeds(dt.complex64, dt.complex128)
    assert dt.embeds(dt.int16, dt.complex64) and not dt.embeds(dt.int32, dt.complex64)
    assert not dt.embeds(dt.complex64, dt.float64) and not dt.embeds(dt.float64, dt.complex64)


@pytest.mark.parametrize("dtype", dt.COMPLEX, ids=str)
def test_constants_keep_every_bit_in_text(dtype: dt.DType) -> None:
    array = np.array([complex(0.0, -0.0), complex(-0.0, np.nan), complex(np.inf, -1e-30), 1 + 2j], dtype)
    b = GraphBuilder(TABLE)
    graph = b.finish([b.constant(value=Literal.of(array))])
    again = parse(to_text(graph), TABLE)
    assert to_text(again) == to_text(graph)
    assert again.outputs[0].attrs["value"].array.tobytes() == array.tobytes()
