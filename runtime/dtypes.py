"""Short dtype names, as Programs carry them, to NumPy dtypes.

The runtime knows nothing of the compiler's IR, so it keeps this small table; a test holds the two together.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

NUMPY: dict[str, np.dtype[Any]] = {
    "bool": np.dtype(np.bool_),
    **{f"i{bits}": np.dtype(f"int{bits}") for bits in (8, 16, 32, 64)},
    **{f"u{bits}": np.dtype(f"uint{bits}") for bits in (8, 16, 32, 64)},
    **{f"f{bits}": np.dtype(f"float{bits}") for bits in (16, 32, 64)},
    **{f"c{bits}": np.dtype(f"complex{bits}") for bits in (64, 128)},
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f8e4m3fn": np.dtype(ml_dtypes.float8_e4m3fn),
    "f8e5m2": np.dtype(ml_dtypes.float8_e5m2),
    "f8e4m3fnuz": np.dtype(ml_dtypes.float8_e4m3fnuz),
    "f8e5m2fnuz": np.dtype(ml_dtypes.float8_e5m2fnuz),
    "f4e2m1fn": np.dtype(ml_dtypes.float4_e2m1fn),
    "i4": np.dtype(ml_dtypes.int4),
    "i2": np.dtype(ml_dtypes.int2),
    "u4": np.dtype(ml_dtypes.uint4),
    "u2": np.dtype(ml_dtypes.uint2),
}


def canonical(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The one dtype object that arrays made by NumPy and by us carry, which native code compares by address."""
    return _CANONICAL[dtype]


_CANONICAL = {dtype: dtype for dtype in NUMPY.values()}
