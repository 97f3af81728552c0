"""TensorFlow's checkpoints (tensor bundles): a sorted table of what there is, and files of elements.

The table is LevelDB's: blocks of keys that share their beginnings.  An index block, which the footer names, finds them.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

from hybridflow.data.checksums import crc32c, masked
from hybridflow.data.tf_example import fields
from hybridflow.weights.arrays import Entry, check_count, unread

INDEX = ".index"
_MAGIC = 0xDB4775248B80FB57
_FOOTER = 48
_TRAILER = 5  # of a block: how it is compressed, and its sum
_MAX_INDEX = 1 << 28
_MAX_KEY = 1 << 12  # bytes of a name: a few bytes of the table repeat the one before
_SUFFIX = "/.ATTRIBUTES/VARIABLE_VALUE"  # of variables in a checkpoint of objects
_VARINT, _LENGTH, _SINGLE = 0, 2, 5  # wire types
_STRINGS = 7
_DTYPES: dict[int, np.dtype[Any]] = {
    1: np.dtype(np.float32),
    2: np.dtype(np.float64),
    3: np.dtype(np.int32),
    4: np.dtype(np.uint8),
    5: np.dtype(np.int16),
    6: np.dtype(np.int8),
    9: np.dtype(np.int64),
    10: np.dtype(np.bool_),
    14: np.dtype(ml_dtypes.bfloat16),
    17: np.dtype(np.uint16),
    19: np.dtype(np.float16),
    22: np.dtype(np.uint32),
    23: np.dtype(np.uint64),
}


def entries(prefix: str) -> dict[str, Entry]:
    """The arrays of the checkpoint ``prefix``, of which ``prefix.index`` is the table."""
    path = prefix + INDEX
    if os.path.getsize(path) > _MAX_INDEX:
        raise ValueError("its table is longer than that of any model")
    with open(path, "rb") as file:
        table = file.read()
    result: dict[str, Entry] = {}
    shards = 1
    for number, (key, value) in enumerate(_rows(table)):
        check_count(number)
        if not key:
            shards = _header(value)
            continue
        entry = _entry(prefix, shards, value)
        if entry is not None:
            result[key.decode().removesuffix(_SUFFIX)] = entry
    return result


def _rows(table: bytes) -> Iterator[tuple[bytes, bytes]]:
    if len(table) < _FOOTER or struct.unpack("<Q", table[-8:])[0] != _MAGIC:
        raise ValueError("it is no table of a checkpoint")
    footer = table[-_FOOTER:]
    _, place = _handle(footer, 0)
    index, _ = _handle(footer, place)
    held = 0
    for _, handle in _block(table, *index):
        block, _ = _handle(handle, 0)
        held += block[1]
        if held > len(table):
            raise ValueError("its blocks overlap")
        yield from _block(table, *block)


def _handle(data: bytes, place: int) -> tuple[tuple[int, int], int]:
    offset, place = _number(data, place)
    size, place = _number(data, place)
    return (offset, size), place


def _number(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 64:
        byte = data[place]
        place += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, place
        shift += 7
    raise ValueError("a number has too many bytes")


def _block(table: bytes, offset: int, size: int) -> Iterator[tuple[bytes, bytes]]:
    """The keys and values of a block."""
    block = table[offset : offset + size + _TRAILER]
    if len(block) != size + _TRAILER or size < 4:
        raise ValueError("a block of its table is not whole")
    if block[size]:
        raise ValueError("its table is compressed, which TensorFlow's are not")
    if masked(crc32c(block[: size + 1])) != struct.unpack("<I", block[size + 1 :])[0]:
        raise ValueError("a block of its table is not what was written (CRC-32C)")
    restarts = struct.unpack("<I", block[size - 4 : size])[0]
    stop = size - 4 - 4 * restarts
    place, key = 0, b""
    while place < stop:
        shared, place = _number(block, place)
        new, place = _number(block, place)
        length, place = _number(block, place)
        if shared > len(key) or shared + new > _MAX_KEY or place + new + length > stop:
            raise ValueError("a block of its table is damaged")
        key = key[:shared] + block[place : place + new]
        place += new
        yield key, block[place : place + length]
        place += length


def _header(value: bytes) -> int:
    """The number of files with elements."""
    shards = 1
    for number, wire, part in fields(value):
        if number == 1 and wire == _VARINT:
            shards = part
        if number == 2 and wire == _VARINT and part:
            raise ValueError("its numbers are big-endian, which is not read")
    return shards


def _entry(prefix: str, shards: int, value: bytes) -> Entry | None:
    """An array; None for texts."""
    kind = shard = offset = size = 0
    shape: list[int] = []
    total: int | None = None
    for number, wire, part in fields(value):
        if number == 1 and wire == _VARINT:
            kind = part
        elif number == 2 and wire == _LENGTH:
            shape = [_extent(dim) for field, _, dim in fields(part) if field == 2]
        elif number == 3 and wire == _VARINT:
            shard = part
        elif number == 4 and wire == _VARINT:
            offset = part
        elif number == 5 and wire == _VARINT:
            size = part
        elif number == 6 and wire == _SINGLE:
            total = struct.unpack("<I", part)[0]
        elif number == 7:
            raise ValueError("a variable in slices is not read")
    if kind == _STRINGS:
        return None
    dtype = _DTYPES.get(kind)
    if dtype is None:
        raise ValueError(f"an array is of TensorFlow's dtype {kind}, which is not read")
    path = f"{prefix}.data-{shard:05d}-of-{shards:05d}"

    def read() -> np.ndarray:
        with open(path, "rb") as file:
            file.seek(offset)
            content = file.read(size)
        if len(content) != size:
            raise ValueError(f"{path} ends before its arrays do")
        if total is not None and masked(crc32c(content)) != total:
            raise ValueError("an array is not what was written (CRC-32C)")
        return np.frombuffer(content, dtype.newbyteorder("<")).astype(dtype, copy=False).reshape(shape)

    entry = unread(shape, dtype, read)
    if size != int(np.prod(shape, dtype=object)) * dtype.itemsize or offset + size > os.path.getsize(path):
        raise ValueError(f"an array of the shape {tuple(shape)} has {size} bytes")
    return entry


def _extent(dim: bytes) -> int:
    return next((int(part) for number, wire, part in fields(dim) if number == 1 and wire == _VARINT), 0)
