"""TFRecord files: records of bytes, each with its length before it and sums of both."""

from __future__ import annotations

import gzip
import os
import struct
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO

from hybridflow.data.checksums import crc32c, masked
from hybridflow.errors import ArgumentError, ArgumentTypeError, DataError, writing_to

_HEAD = 12  # bytes: the length, and the sum of the length
_PIECE = 1 << 24  # bytes read at a time: a length that is wrong does not ask for memory


def framed(data: bytes) -> bytes:
    """A record as it stands in a file."""
    length = struct.pack("<Q", len(data))
    return b"".join([length, _sum(length), data, _sum(data)])


def _sum(data: bytes) -> bytes:
    return masked(crc32c(data)).to_bytes(4, "little")


def records(file: BinaryIO, start: int, path: str, stage: str = "TFRecordDataset") -> Iterator[tuple[bytes, int]]:
    """The records from byte ``start`` on, each with the byte at which the next one begins.

    Raises DataError where a record is cut off or a sum differs.
    """
    while head := file.read(_HEAD):
        if len(head) < _HEAD:
            raise _damaged(stage, path, start, "the file ends within its length")
        length, sum_of_length = struct.unpack("<QI", head)
        if masked(crc32c(head[:8])) != sum_of_length:
            raise _damaged(stage, path, start, "the sum of its length differs")
        data = _read(file, length + 4)
        if len(data) < length + 4:
            raise _damaged(stage, path, start, f"it is {length} bytes long, and the file ends before that")
        data, sum_of_data = data[:length], data[length:]
        if masked(crc32c(data)) != int.from_bytes(sum_of_data, "little"):
            raise _damaged(stage, path, start, "the sum of its bytes differs")
        start += _HEAD + length + 4
        yield data, start


def _read(file: BinaryIO, count: int) -> bytes:
    if count <= _PIECE:
        return file.read(count)
    pieces = []
    while count and (piece := file.read(min(count, _PIECE))):
        pieces.append(piece)
        count -= len(piece)
    return b"".join(pieces)


def _damaged(stage: str, path: str, start: int, text: str) -> DataError:
    return DataError(
        stage, f"{path} is damaged, or no file of records: the record at byte {start} is not whole: {text}."
    )


class TFRecordWriter:
    """Writer of TFRecord files: a new file, which is whole when it has been closed.

    Args:
        path: the file.
        options: "GZIP", "ZLIB" or None.

    Raises:
        ArgumentError: for another compression.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "squares.tfrecord")
    ...     with hf.data.TFRecordWriter(path) as file:
    ...         for i in range(3):
    ...             file.write(hf.data.encode_example({"x": i, "square": float(i * i)}))
    ...     kinds = {"square": hf.data.FixedLenFeature((), "float32")}
    ...     data = hf.data.TFRecordDataset(path).map(lambda record: hf.data.parse_single_example(record, kinds))
    ...     [element["square"].item() for element in data]
    [0.0, 1.0, 4.0]
    """

    def __init__(self, path: str | os.PathLike[str], options: object = None) -> None:
        kind = getattr(options, "compression_type", options)
        if kind not in (None, "", "GZIP", "ZLIB"):
            raise ArgumentError("TFRecordWriter", f"options is {options!r}; it must be 'GZIP', 'ZLIB' or None.")
        self._file: Any = gzip.open(path, "wb") if kind == "GZIP" else open(os.fspath(path), "wb")  # noqa: SIM115
        self._path = os.fspath(path)
        self._packer = zlib.compressobj() if kind == "ZLIB" else None

    def write(self, record: bytes) -> None:
        """Append a record.

        Args:
            record: the bytes of the record.

        Raises:
            ArgumentTypeError: for anything but bytes.
            OSError: where it cannot be written.
        """
        if not isinstance(record, (bytes, bytearray, memoryview)):
            raise ArgumentTypeError("TFRecordWriter.write", f"a record is bytes, got {type(record).__name__}.")
        data = framed(bytes(record))
        with writing_to(self._path):
            self._file.write(data if self._packer is None else self._packer.compress(data))

    def flush(self) -> None:
        """Give what was written to the system."""
        with writing_to(self._path):
            self._file.flush()

    def close(self) -> None:
        """Finish the file."""
        if not self._file.closed:
            with writing_to(self._path):
                if self._packer is not None:
                    self._file.write(self._packer.flush())
                self._file.close()

    def __enter__(self) -> TFRecordWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
