"""CRC-32C (Castagnoli), the sum of TFRecord files, over NumPy's arrays.

The sum is linear in the bytes: that of a block is the exclusive or of what each byte contributes at its place.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

_POLYNOMIAL = 0x82F63B78
_BLOCK = 256  # bytes whose contributions are looked up at a time
_SHORT = 40  # bytes up to which a loop is faster
_CHUNK = 256  # blocks that are looked up together, so that what lies between stays in the cache


def crc32c(data: bytes) -> int:
    """The CRC-32C of bytes."""
    if len(data) <= _SHORT:
        table, crc = _table(), 0xFFFFFFFF
        for byte in data:
            crc = table[(crc ^ byte) & 255] ^ (crc >> 8)
        return crc ^ 0xFFFFFFFF
    padded = np.zeros(-(-len(data) // _BLOCK) * _BLOCK, np.uint8)  # zeros in front change nothing
    tail = padded[len(padded) - len(data) :]
    tail[:] = np.frombuffer(data, np.uint8)
    tail[:4] ^= 255  # where the sum starts
    places, heads = _positions()
    crc = 0
    z0, z1, z2, z3 = heads
    for first in range(0, len(padded), _CHUNK * _BLOCK):
        blocks = padded[first : first + _CHUNK * _BLOCK].reshape(-1, _BLOCK)
        parts = np.bitwise_xor.reduce(places.take(blocks + _offsets()), axis=1)
        for part in parts.tolist():
            crc = z0[crc & 255] ^ z1[crc >> 8 & 255] ^ z2[crc >> 16 & 255] ^ z3[crc >> 24] ^ part
    return crc ^ 0xFFFFFFFF


def masked(crc: int) -> int:
    """A sum as TFRecord files hold it: turned, and with a constant added."""
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


@cache
def _table() -> list[int]:
    """What one byte becomes at the end of the data."""
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (_POLYNOMIAL if value & 1 else 0)
        table.append(value)
    return table


@cache
def _positions() -> tuple[np.ndarray, Any]:
    """What each value contributes at each place of a block, place by place; and lists of the first four places."""
    last = np.array(_table(), np.uint32)
    rows = [last]
    for _ in range(_BLOCK - 1):
        rows.append(last[rows[-1] & 255] ^ (rows[-1] >> 8))
    rows.reverse()
    return np.concatenate(rows), [row.tolist() for row in rows[:4]]


@cache
def _offsets() -> np.ndarray:
    return np.arange(_BLOCK, dtype=np.intp) * 256
