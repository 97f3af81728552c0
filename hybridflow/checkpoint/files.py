"""Arrays in files of the safetensors format, which others read and write too.

A file is eight bytes with the length of the header, the header in JSON (for each array its dtype, shape and place, and
a table of texts under ``__metadata__``), and the arrays one behind the other.  Those that are written here have a
CRC-32 of each array among the texts, and one of the header itself.  Source: the format as documented by its library,
huggingface/safetensors.

A file is written beside its place, flushed to the disk, and renamed: at any moment there is the old file or the new
one, whole.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import zlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from hybridflow.errors import CheckpointError

_NAMES: dict[str, np.dtype[Any]] = {
    "BOOL": np.dtype(np.bool_),
    "U8": np.dtype(np.uint8),
    "I8": np.dtype(np.int8),
    "U16": np.dtype(np.uint16),
    "I16": np.dtype(np.int16),
    "U32": np.dtype(np.uint32),
    "I32": np.dtype(np.int32),
    "U64": np.dtype(np.uint64),
    "I64": np.dtype(np.int64),
    "F16": np.dtype(np.float16),
    "BF16": np.dtype(ml_dtypes.bfloat16),
    "F32": np.dtype(np.float32),
    "F64": np.dtype(np.float64),
}
_SHORT = {dtype: name for name, dtype in _NAMES.items()}
_LONGEST = 100_000_000  # bytes of a header
_ALIGNED = 8
_CHUNK = 1 << 22
_SUMS, _OF_HEADER = "crc32", "crc32_of_header"
_UNKNOWN = "00000000"  # of as many letters as the sums, which are known in the end


def write(path: str | os.PathLike[str], arrays: Mapping[str, np.ndarray], texts: Mapping[str, str]) -> None:
    """Write arrays and texts into a file, which replaces one that is there.

    Raises OSError where that fails, for one if the disk is full: then there is what there was before.
    """
    target = Path(path)
    beside = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with open(beside, "wb") as file:
            _write_into(file, arrays, texts)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, target)
    except BaseException:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise
    _flush_folder(target.parent)


def _write_into(file: Any, arrays: Mapping[str, np.ndarray], texts: Mapping[str, str]) -> None:
    ordered = {name: np.ascontiguousarray(array).reshape(array.shape) for name, array in arrays.items()}
    sums = dict.fromkeys(ordered, _UNKNOWN)
    start = file.tell()
    header = _header(ordered, texts, sums)
    file.write(header)
    with ThreadPoolExecutor(1) as aside:  # sums one part while it is written
        for name, array in ordered.items():
            total = 0
            content = array.reshape(-1).view(np.uint8).data
            for begin in range(0, len(content), _CHUNK):
                part = content[begin : begin + _CHUNK]
                if len(part) < _CHUNK:
                    total = zlib.crc32(part, total)
                    file.write(part)
                else:
                    summed = aside.submit(zlib.crc32, part, total)
                    file.write(part)
                    total = summed.result()
            sums[name] = f"{total:08x}"
    file.seek(start)
    file.write(_header(ordered, texts, sums))


def _header(arrays: Mapping[str, np.ndarray], texts: Mapping[str, str], sums: Mapping[str, str]) -> bytes:
    entries: dict[str, Any] = {"__metadata__": {**texts, _SUMS: json.dumps(sums), _OF_HEADER: _UNKNOWN}}
    place = 0
    for name, array in arrays.items():
        if name == "__metadata__" or array.dtype not in _SHORT:
            raise CheckpointError("checkpoint", f"{name!r} of dtype {array.dtype} cannot be kept in a file.")
        end = place + array.nbytes
        entries[name] = {"dtype": _SHORT[array.dtype], "shape": list(array.shape), "data_offsets": [place, end]}
        place = end
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _ALIGNED)
    text = text.replace(_told(_UNKNOWN), _told(f"{zlib.crc32(text):08x}"))
    return len(text).to_bytes(8, "little") + text


def _told(total: str) -> bytes:
    """How the sum of the header stands in it; texts cannot hold the same, whose quotes are escaped."""
    return f'"{_OF_HEADER}":"{total}"'.encode()


def _flush_folder(folder: Path) -> None:
    """Let the name of a new file outlast a loss of power, where folders can be flushed."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


class File:
    """A file that is being read: ``texts``, and arrays by name, which are read and checked when they are asked for.

    ``is_checked`` says that the header has a sum, and is what was written; files of others have none.

    Raises CheckpointError where the file is damaged or is of another kind, FileNotFoundError where there is none.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        with open(self.path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            head = file.read(8)
            length = int.from_bytes(head, "little")
            if len(head) < 8 or not 2 <= length <= min(_LONGEST, size - 8):
                raise self._damaged("its header is not whole")
            self._start = 8 + length
            header = file.read(length)
            entries = self._parsed(header)
            self._content: Any = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size > self._start else b""
        texts = entries.pop("__metadata__", {})
        self.texts: dict[str, str] = self._texts(texts)
        total = self.texts.pop(_OF_HEADER, None)
        self.is_checked = total is not None
        if total is not None and f"{zlib.crc32(header.replace(_told(total), _told(_UNKNOWN))):08x}" != total:
            raise self._damaged("its header is not what was written (CRC-32)")
        sums = self._parsed(self.texts.pop(_SUMS, "{}").encode())
        self._sums = {name: value for name, value in sums.items() if isinstance(value, str)}
        self._entries = {name: self._entry(name, entry, size - self._start) for name, entry in entries.items()}

    def _damaged(self, why: str) -> CheckpointError:
        return CheckpointError(
            "checkpoint", f"{self.path} cannot be read: {why}. The file is damaged, or of another kind."
        )

    def _parsed(self, text: bytes) -> dict[str, Any]:
        try:
            found = json.loads(text.decode())
        except (ValueError, RecursionError):
            raise self._damaged("what should describe its arrays is no JSON") from None
        if not isinstance(found, dict):
            raise self._damaged("what should describe its arrays is no table")
        return found

    def _texts(self, texts: Any) -> dict[str, str]:
        if not isinstance(texts, dict) or not all(isinstance(text, str) for text in texts.values()):
            raise self._damaged("its texts are none")
        return dict(texts)

    def _entry(self, name: str, entry: Any, size: int) -> tuple[np.dtype[Any], tuple[int, ...], int, int]:
        """The dtype, the shape and the place of an array, which lies within the file."""
        try:
            dtype, shape = _NAMES[entry["dtype"]], tuple(entry["shape"])
            begin, end = entry["data_offsets"]
            count = 1
            for extent in shape:
                if type(extent) is not int or extent < 0:
                    raise ValueError
                count *= extent
            if type(begin) is not int or type(end) is not int or not 0 <= begin <= end <= size:
                raise ValueError
            if count * dtype.itemsize != end - begin:
                raise ValueError
        except (KeyError, TypeError, ValueError):
            raise self._damaged(f"the array {name!r} does not lie where it should") from None
        return dtype, shape, begin, end

    @property
    def names(self) -> list[str]:
        """The names of the arrays."""
        return list(self._entries)

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of an array, which is not read for it."""
        return self._entries[name][1]

    def dtype(self, name: str) -> np.dtype[Any]:
        """The dtype of an array."""
        return self._entries[name][0]

    def array(self, name: str) -> np.ndarray:
        """An array, read-only, whose content is in the file.  Raises CheckpointError if it is not what was written."""
        dtype, shape, begin, end = self._entries[name]
        content = memoryview(self._content)[self._start + begin : self._start + end]
        expected = self._sums.get(name)
        if expected is not None and f"{zlib.crc32(content):08x}" != expected:
            raise self._damaged(f"the array {name!r} is not what was written (CRC-32)")
        if not len(content):
            return np.zeros(shape, dtype)
        return np.frombuffer(content, np.uint8).view(dtype).reshape(shape)
