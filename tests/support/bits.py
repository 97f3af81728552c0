"""When two results are the same: equal types, shapes and bits."""

from __future__ import annotations

from typing import Any

import numpy as np

import hybridflow as hf
from hybridflow.compiler.ir import dtypes as dt


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    """Any NaN is as good as another: neither IEEE 754 nor LLVM fixes their signs and payloads."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.dtype.kind == "c":
        return same_bits(a.real, b.real) and same_bits(a.imag, b.imag)
    if dt.is_float(a.dtype):
        a_nan, b_nan = np.isnan(a), np.isnan(b)
        if not np.array_equal(a_nan, b_nan):
            return False
        a, b = np.where(a_nan, 0, a).astype(a.dtype), np.where(b_nan, 0, b).astype(b.dtype)
    return np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes()


def assert_same_bits(found: Any, expected: Any) -> None:
    """Nests of tensors are the same, element by element."""
    leaves, others = hf.tree.leaves(found), hf.tree.leaves(expected)
    assert len(leaves) == len(others)
    for a, b in zip(leaves, others):
        assert same_bits(np.asarray(a), np.asarray(b)), (a, b)
