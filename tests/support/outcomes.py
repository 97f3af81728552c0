"""What functions return or raise, to be compared between eager and compiled."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np

import hybridflow as hf
from tests.support.bits import same_bits


def outcome(f: Callable[..., Any], *args: Any) -> Any:
    """The result, tensors as arrays; or the class of the error."""

    def plain(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [plain(item) for item in value]
        return value.numpy() if isinstance(value, hf.Tensor) else value

    try:
        return plain(f(*args))
    except Exception as error:
        return type(error)


def same(a: Any, b: Any) -> bool:
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return same_bits(a, b)
    if type(a) is float and type(b) is float:
        return struct.pack("<d", a) == struct.pack("<d", b)
    return type(a) is type(b) and bool(a == b)
