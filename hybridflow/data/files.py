"""Datasets of what files hold: lines, records, NumPy's arrays.

A *reader* gives the elements of one file, each with the byte at which the next one begins.  So a state is the number of
a file and a place in it.
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

from hybridflow.data import arguments
from hybridflow.data.arguments import paths_of
from hybridflow.data.dataset import Dataset
from hybridflow.data.numpy_files import table_of
from hybridflow.data.pipeline import Elements, Node, PipelineIterator, TableNode
from hybridflow.data.reorder import Concatenate
from hybridflow.data.strings import TextSpec
from hybridflow.data.tfrecord import records
from hybridflow.errors import ArgumentError, DataError

Read = Iterator[tuple[Any, int]]
_COMPRESSION = (None, "", "GZIP", "ZLIB")


class Reader:
    """How the elements of a file are read."""

    spec: object

    def elements(self, path: str, start: int) -> Read:
        """The elements from byte ``start`` on, each with the byte at which the next one begins."""
        raise NotImplementedError


class Files(Node):
    """The elements of files, one file after another."""

    def __init__(self, paths: list[str], reader: Reader) -> None:
        self.paths, self.reader = paths, reader

    def runner(self) -> PipelineIterator:
        return FilesRun(self)

    def spec(self) -> Any:
        return self.reader.spec


class FilesRun(PipelineIterator):
    state_fields = ("file", "start")

    def __init__(self, node: Files) -> None:
        self.node, self.file, self.start = node, 0, 0

    def run(self) -> Elements:
        paths = self.node.paths
        while self.file < len(paths):
            for element, stop in self.node.reader.elements(paths[self.file], self.start):
                self.start = stop
                yield element
            self.file, self.start = self.file + 1, 0


class TextLineDataset(Dataset):
    """Dataset of the lines of text files as ``str``, without their ends.

    Args:
        filenames: a file, a list of files, or a dataset of them.
        compression_type: "GZIP", "ZLIB" or "" for none. By default files whose names end in ``.gz`` are compressed.
        buffer_size: accepted for compatibility; it has no effect.
        num_parallel_reads: how many files are read at a time, whose lines come by turns.
        name: accepted for compatibility; it has no effect.
        encoding: how lines are encoded; None gives them as ``bytes``.
        skip_lines: how many lines at the beginning of each file are left out.

    Raises:
        ArgumentError: for another compression, or numbers out of range.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "lines.txt")
    ...     with open(path, "w") as file:
    ...         _ = file.write("a b\\nc\\n")
    ...     list(hf.data.TextLineDataset(path).map(str.split).map(lambda words: len(words)))
    [<Tensor i64[] cpu> 2, <Tensor i64[] cpu> 1]
    """

    def __init__(
        self,
        filenames: object,
        compression_type: str | None = None,
        buffer_size: int | None = None,
        num_parallel_reads: int | None = None,
        name: str | None = None,
        *,
        encoding: str | None = "utf-8",
        skip_lines: int = 0,
    ) -> None:
        stage = "TextLineDataset"
        skipped = arguments.integer("skip_lines", skip_lines, stage, 0)
        reader = Lines(compression(compression_type, stage), encoding, skipped)
        self._made = of_files(filenames, reader, num_parallel_reads, stage)


class TFRecordDataset(Dataset):
    """Dataset of the records of TFRecord files as ``bytes``; their checksums are compared.

    ``hf.data.parse_single_example`` makes tensors of records that hold examples, ``hf.data.TFRecordWriter`` writes such
    files.

    Args:
        filenames: a file, a list of files, or a dataset of them.
        compression_type: "GZIP", "ZLIB" or "" for none. By default files whose names end in ``.gz`` are compressed.
        buffer_size: accepted for compatibility; it has no effect.
        num_parallel_reads: how many files are read at a time, whose records come by turns.
        name: accepted for compatibility; it has no effect.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "some.tfrecord")
    ...     with hf.data.TFRecordWriter(path) as file:
    ...         file.write(b"one")
    ...         file.write(b"two")
    ...     list(hf.data.TFRecordDataset(path))
    [b'one', b'two']
    """

    def __init__(
        self,
        filenames: object,
        compression_type: str | None = None,
        buffer_size: int | None = None,
        num_parallel_reads: int | None = None,
        name: str | None = None,
    ) -> None:
        reader = Records(compression(compression_type, "TFRecordDataset"))
        self._made = of_files(filenames, reader, num_parallel_reads, "TFRecordDataset")


class FixedLengthRecordDataset(Dataset):
    """Dataset of the records of files in which each has the same number of bytes, as ``bytes``.

    Args:
        filenames: a file, a list of files, or a dataset of them.
        record_bytes: how many bytes a record has.
        header_bytes: how many bytes lie before the first record of a file.
        footer_bytes: how many bytes lie behind the last record of a file.
        buffer_size: accepted for compatibility; it has no effect.
        compression_type: "GZIP", "ZLIB" or "" for none. By default files whose names end in ``.gz`` are compressed.
        num_parallel_reads: how many files are read at a time, whose records come by turns.
        name: accepted for compatibility; it has no effect.

    Raises:
        ArgumentError: for numbers out of range.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "pairs")
    ...     with open(path, "wb") as file:
    ...         _ = file.write(b"head0102end")
    ...     list(hf.data.FixedLengthRecordDataset(path, 2, header_bytes=4, footer_bytes=3))
    [b'01', b'02']
    """

    def __init__(
        self,
        filenames: object,
        record_bytes: int,
        header_bytes: int | None = None,
        footer_bytes: int | None = None,
        buffer_size: int | None = None,
        compression_type: str | None = None,
        num_parallel_reads: int | None = None,
        name: str | None = None,
    ) -> None:
        stage = "FixedLengthRecordDataset"
        size = arguments.integer("record_bytes", record_bytes, stage)
        header = arguments.integer("header_bytes", header_bytes or 0, stage, 0)
        footer = arguments.integer("footer_bytes", footer_bytes or 0, stage, 0)
        reader = Blocks(compression(compression_type, stage), size, header, footer)
        self._made = of_files(filenames, reader, num_parallel_reads, stage)


class NumpyDataset(Dataset):
    """Dataset of the rows of arrays in files of NumPy's.

    Large ``.npy`` files are read row by row as needed. Rows of ``.npz`` files are dicts of arrays by name. Rows of
    several files come one file after another. A file that is damaged, or written anew while it is read, raises
    DataError.

    Args:
        filenames: a file, a list of files, or a dataset of them.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "x.npy")
    ...     np.save(path, np.arange(4).reshape(2, 2))
    ...     print([x.tolist() for x in hf.data.NumpyDataset(path)])
    [[0, 1], [2, 3]]
    """

    def __init__(self, filenames: object) -> None:
        nodes: list[Node] = [TableNode(table_of(path)) for path in paths_of(filenames, "NumpyDataset")]
        self._made = nodes[0] if len(nodes) == 1 else Concatenate(nodes)


class Lines(Reader):
    """Lines, decoded unless ``encoding`` is None; ``skipped`` ones at the beginning of a file are left out."""

    def __init__(self, compressed: str | None, encoding: str | None, skipped: int) -> None:
        self.compressed, self.encoding, self.skipped = compressed, encoding, skipped
        self.spec = TextSpec((), "bytes" if encoding is None else "str")

    def elements(self, path: str, start: int) -> Read:
        with opened(path, self.compressed) as file:
            file.seek(start)
            for _ in range(0 if start else self.skipped):
                start += len(file.readline())
            for line in file:
                text = line.removesuffix(b"\n").removesuffix(b"\r")
                start += len(line)
                yield (text if self.encoding is None else decoded(text, self.encoding, path, start)), start


class Records(Reader):
    """Records of TFRecord files."""

    spec = TextSpec((), "bytes")

    def __init__(self, compressed: str | None) -> None:
        self.compressed = compressed

    def elements(self, path: str, start: int) -> Read:
        with opened(path, self.compressed) as file:
            file.seek(start)
            yield from records(file, start, path)


class Blocks(Reader):
    """Records of one length, between a header and a footer."""

    spec = TextSpec((), "bytes")

    def __init__(self, compressed: str | None, size: int, header: int, footer: int) -> None:
        self.compressed, self.size, self.header, self.footer = compressed, size, header, footer

    def elements(self, path: str, start: int) -> Read:
        with opened(path, self.compressed) as file:
            start = max(start, self.header)
            length = file.seek(0, io.SEEK_END) - self.footer
            if length < self.header or (length - self.header) % self.size:
                raise DataError(
                    "FixedLengthRecordDataset",
                    f"{path} has {length + self.footer} bytes: no whole number of records of {self.size} bytes between "
                    f"a header of {self.header} and a footer of {self.footer}.",
                )
            file.seek(start)
            for begin in range(start, length, self.size):
                yield file.read(self.size), begin + self.size


def decoded(text: bytes, encoding: str, path: str, stop: int) -> str:
    """Bytes as a text.  Raises DataError where they are none."""
    try:
        return text.decode(encoding)
    except UnicodeDecodeError as error:
        raise DataError("data", f"{path}, before byte {stop}: {error}. Say which encoding it is, or None.") from None


@contextmanager
def opened(path: str, compressed: str | None) -> Generator[BinaryIO, None, None]:
    """A file to read bytes from, unpacked.  What is damaged is a DataError with the file's name."""
    kind = ("GZIP" if path.endswith(".gz") else "") if compressed is None else compressed
    try:
        if kind == "ZLIB":
            with open(path, "rb") as packed:
                yield io.BytesIO(_unpacked(packed.read()))
            return
        with gzip.open(path, "rb") if kind == "GZIP" else open(path, "rb") as file:
            yield file  # type: ignore[misc]  # both are read as bytes
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError("data", f"{path} is damaged, or not compressed by {kind}: {error}.") from None


def _unpacked(data: bytes) -> bytes:
    """What ZLIB streams, one after another, hold.  Raises zlib.error for anything else behind them."""
    parts = []
    while True:
        stream = zlib.decompressobj()
        parts.append(stream.decompress(data))
        if not stream.eof:
            raise zlib.error("incomplete or truncated stream")
        if not (data := stream.unused_data):
            return b"".join(parts)


def compression(kind: object, stage: str) -> str | None:
    """What ``compression_type`` says.  Raises ArgumentError for other kinds."""
    if kind not in _COMPRESSION:
        raise ArgumentError(stage, f"compression_type is {kind!r}; it must be 'GZIP', 'ZLIB' or ''.")
    return kind


def of_files(filenames: object, reader: Reader, reads: object, stage: str) -> Node:
    """The elements of files, one after another or several at a time, which take turns."""
    calls = arguments.calls(reads, stage)
    if calls is None and not isinstance(filenames, Dataset):
        return Files(paths_of(filenames, stage), reader)
    names = filenames if isinstance(filenames, Dataset) else Dataset.from_tensor_slices(paths_of(filenames, stage))
    elements_of = _OfOne(reader, stage)
    if calls is None:
        return names.flat_map(elements_of)._node
    return names.interleave(elements_of, cycle_length=calls, num_parallel_calls=calls)._node


class _OfOne:
    """The dataset of a file by its name; what datasets are made of must be picklable, so this is no closure."""

    def __init__(self, reader: Reader, stage: str) -> None:
        self.reader, self.stage = reader, stage

    def __call__(self, path: object) -> Dataset:
        return Dataset._of(Files(paths_of(path, self.stage), self.reader))
