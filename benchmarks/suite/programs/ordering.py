"""Sorting and choosing."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.suite.case import Case


def _distinct(d: Any, *shape: int) -> list[Any]:
    """Rows whose elements differ, so that every order of them is the only one."""
    rows = np.tile(np.arange(shape[-1], dtype=np.float32), (*shape[:-1], 1))
    return [d.rng.permuted(rows, axis=-1)]


def _matrix(d: Any) -> list[Any]:
    return [d.floats(1000, 1000)]


CASES = {
    "sort rows 1000x1000": Case(lambda l, x: l.sort(x, axis=1), _matrix),
    "sort rows 16384x64": Case(lambda l, x: l.sort(x, axis=1), lambda d: [d.floats(16384, 64)]),
    "sort rows int32": Case(
        lambda l, x: l.sort(x, axis=1), lambda d: [d.integers(-(2**31), 2**31, 1000, 1000, dtype="int32")]
    ),
    "sort rows float64": Case(lambda l, x: l.sort(x, axis=1), lambda d: [d.floats(1000, 1000, dtype="float64")]),
    "sort a vector 1M": Case(lambda l, x: l.sort(x, axis=0), lambda d: [d.floats(1_000_000)]),
    "argsort rows": Case(lambda l, x: l.stable_order(x, 1), _matrix),
    "argsort a vector": Case(lambda l, x: l.stable_order(x, 0), lambda d: [d.floats(1_000_000)]),
    "top 8 of 4096": Case(lambda l, x: l.top(x, 8), lambda d: _distinct(d, 1000, 4096)),
    "top 100 of 32000": Case(lambda l, x: l.top(x, 100), lambda d: _distinct(d, 256, 32_000)),
    "top 8 of rising rows": Case(lambda l, x: l.top(x, 8), lambda d: [np.sort(_distinct(d, 1000, 4096)[0], -1)]),
    "argmax of rows": Case(lambda l, x: l.argmax(x, axis=1), _matrix),
    "argmax of 32000": Case(lambda l, x: l.argmax(x, axis=1), lambda d: [d.floats(256, 32_000)]),
    "argmax of columns": Case(lambda l, x: l.argmax(x, axis=0), _matrix),
    "argmax of classes": Case(lambda l, x: l.argmax(x, axis=1), lambda d: [d.floats(8, 21, 128, 128)]),
    "places in a sorted vector": Case(
        lambda l, s, x: l.searchsorted(s, x), lambda d: [np.sort(d.floats(10_000)), d.floats(100_000)]
    ),
}
