"""Counting and adding up what is looked up: histograms, confusion matrices, bags of rows."""

from __future__ import annotations

from typing import Any

from benchmarks.suite.case import Case


def _confusion(classes: int) -> Case:
    return Case(
        lambda l, found, true: l.counts(true * classes + found, classes * classes),
        lambda d: [d.integers(0, classes, 1_000_000) for _ in range(2)],
    )


def _bag(rows: int, width: int, bags: int, size: int) -> Case:
    return Case(
        lambda l, t, i: l.sum(l.take(t, l.reshape(i, (-1,)), axis=0).reshape(bags, size, width), 1),
        lambda d: [d.floats(rows, width), d.integers(0, rows, bags, size)],
    )


def _binned(l: Any, x: Any) -> Any:
    """100 bins from -4 to 4, and what lies outside in the first or last."""
    return l.counts(l.cast(l.clip((x + 4.0) * 12.5, 0.0, 99.0), "int32"), 100)


CASES = {
    "histogram of bytes": Case(lambda l, x: l.counts(x, 256), lambda d: [d.integers(0, 256, 1_000_000, dtype="uint8")]),
    "histogram of an image": Case(
        lambda l, x: l.counts(l.reshape(x, (-1,)), 256), lambda d: [d.integers(0, 256, 480, 640, dtype="uint8")]
    ),
    "histogram of floats": Case(_binned, lambda d: [d.floats(1_000_000)]),
    "histogram of int32": Case(
        lambda l, x: l.counts(x, 1000), lambda d: [d.integers(0, 1000, 1_000_000, dtype="int32")]
    ),
    "confusion of 10 classes": _confusion(10),
    "confusion of 100 classes": _confusion(100),
    "bags of 16 rows of 64": _bag(10_000, 64, 1024, 16),
    "bags of 50 rows of 128": _bag(50_000, 128, 256, 50),
    "bags of 8 rows of 16": _bag(100_000, 16, 4096, 8),
}
