"""Memory of outputs and temporaries."""

from __future__ import annotations

from typing import Any

import numpy as np

ALIGNMENT = 64


def empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    """A fresh C-contiguous array at a 64-byte boundary."""
    count = 1
    for extent in shape:
        count *= extent
    size = count * dtype.itemsize
    block = np.empty(size + ALIGNMENT, np.uint8)
    start = -block.ctypes.data % ALIGNMENT
    return block[start : start + size].view(dtype).reshape(shape)
