"""Loops over ``arange``, sums of NumPy's integers, and texts that are joined of choices."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from __future__ import annotations

import numpy as np
import pytest

import hybridflow as hf
from tests.support.agreement import Corpus, check, integer, scalar

pytestmark = pytest.mark.code

program = Corpus()
INTEGERS = [integer(n) for n in (-3, 0, 1, 2, 5, 8)]


@program(*INTEGERS)
def numpy_ranges(n):
    total = 0
    for k in np.arange(n):
        total = total + k
    for k in np.arange(1, n, step=2):
        total = total + k * 10
    for k in np.arange(n, step=2):
        total = total + k * 100
    for k in np.arange(0, n, 3):
        total = total + k * 1000
    return total


@program(*INTEGERS)
def ranges_of_tensors(n):
    total = hf.constant(0)
    for k in hf.arange(n, step=2):
        total = total + k
    for k in hf.arange(1, n, step=3):
        total = total + k * 100
    return total


@program(*[scalar(t) for t in (-1.0, 0.0, 2.5)])
def texts_joined(t):
    parts = ["pos" if t > 0 else "neg"]
    parts.append("whole" if t == 0 else "fraction")
    print("/".join(parts), ",".join(("a", f"{t:.2f}")), "-".join(str(k) for k in range(3)))
    return "-".join(parts) == "pos-fraction", t


@program.parametrized()
def test_compiled_is_eager(case) -> None:
    check(case)
