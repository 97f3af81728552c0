"""Rows whose last vector has one element write that one and nothing behind it, whatever they are converted to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.compiler.target import NAMED
from hybridflow.runtime.machine import host

DTYPES = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "bfloat16", "float16", "float32")
SOURCES = ("int8", "uint16", "int32", "int64", "bfloat16", "float32", "float64")


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("rest", [5, 9, 17, 33, 65])
def test_elements_behind_a_masked_store(source: str, rest: int) -> None:
    def program(x: Any) -> list[Any]:
        most = hf.max(hf.astype(x, "float32"), axis=(0, 2), keepdims=True)  # rows are written in another order
        return [hf.astype(hf.astype(x, "float32") + most, d) for d in DTYPES] + [
            hf.astype(x, d) for d in DTYPES if d != source
        ]

    x = hf.astype(hf.asarray(np.random.default_rng(rest).integers(1, 50, (3, 2, rest))), source)
    for expected, found in zip(program(x), hf.function(program)(x), strict=True):
        assert np.array_equal(np.array(expected), np.array(found)), str(expected.dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_single_program(dtype: str) -> None:
    def program(x: Any) -> Any:
        return hf.astype(x + hf.max(x, axis=(0, 2), keepdims=True), dtype)

    x = hf.asarray(np.random.default_rng(0).integers(1, 50, (2, 2, 33)).astype(np.float32))
    for target in ("sse2", "avx2", None):
        with host.use(host.target() if target is None else NAMED[target]):
            assert np.array_equal(np.array(hf.function(program)(x)), np.array(program(x)))
