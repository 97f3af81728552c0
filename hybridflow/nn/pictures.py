"""Pictures of other sizes: an axis is resampled by the middles of its parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hybridflow.array.creation import asarray
from hybridflow.array.elementwise import astype
from hybridflow.array.indexing import take
from hybridflow.compiler.ir import dtypes


def _centres(here: Any, wanted: int) -> Any:
    """Where the middles of ``wanted`` equal parts of an axis lie on it, in elements."""
    return (np.arange(wanted, dtype=np.float32) + np.float32(0.5)) * np.float32(here / wanted)


def _nearest(x: Any, axis: int, wanted: int) -> Any:
    places = np.minimum(np.floor(_centres(x.shape[axis], wanted)).astype(np.int64), x.shape[axis] - 1)
    return take(x, places, axis=axis)


def _linear(x: Any, axis: int, wanted: int) -> Any:
    x = astype(x, dtypes.float32)
    if x.shape[axis] == wanted:
        return x
    middles = _centres(x.shape[axis], wanted) - np.float32(0.5)
    low = np.floor(middles)
    part = (middles - low).reshape((-1, *[1] * (x.ndim - axis - 1)))
    left, right = (np.clip(low + k, 0, x.shape[axis] - 1).astype(np.int64) for k in (0, 1))
    start = take(x, left, axis=axis)
    return start + (take(x, right, axis=axis) - start) * asarray(part)


# By name: functions of a tensor, an axis and its new extent.  "bilinear" makes float32.
SAMPLERS: dict[Any, Callable[[Any, int, int], Any]] = {"bilinear": _linear, "nearest": _nearest}


def resized(x: Any, height: int, width: int, method: str) -> Any:
    """Pictures [..., rows, columns, channels] of ``height`` rows and ``width`` columns, by one of ``SAMPLERS``."""
    sample = SAMPLERS[method]
    return sample(sample(x, x.ndim - 3, height), x.ndim - 2, width)
