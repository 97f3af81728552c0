"""Datasets that are kept in a folder: ``Dataset.save``, ``Dataset.load`` and ``Dataset.snapshot``.

The folder holds files of records (see ``records`` and ``kept``), one for each shard, and ``dataset.json``: the version
of the format, the spec of the elements, and for each file its name and how many elements it has.  That description is
written last, in one step: at any moment the folder holds the dataset of before or the new one, whole.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import secrets
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from hybridflow.core.locked_files import abandoned_part, begin_part
from hybridflow.data import elements
from hybridflow.data.file_cache import packed, unpacked
from hybridflow.data.pipeline import Elements, Node, PipelineIterator, State, restored_field
from hybridflow.data.strings import TextSpec
from hybridflow.data.tfrecord import framed, records
from hybridflow.errors import ArgumentError, ArgumentTypeError, DataError, writing_to
from hybridflow.jit.tensor_spec import TensorSpec

_DESCRIPTION, _FORMAT, _VERSION = "dataset.json", "hybridflow.dataset", 1
_SUFFIX = ".records"
_PART = re.compile(r"[0-9a-f]{16}\.part")
_PLAIN, _PACKED = (None, "", "NONE", "AUTO"), "GZIP"


class Writer:
    """Writes elements into a folder, which has them when ``finish`` was called.

    ``shard_of`` gives the number of the file that an element goes to.  Raises OSError where that fails.
    """

    def __init__(self, path: str, compression: object, shard_of: Callable[[Any], Any] | None, stage: str) -> None:
        if compression not in (*_PLAIN, _PACKED):
            raise ArgumentError(stage, f"compression is {compression!r}; it must be None or 'GZIP'.")
        self.folder, self.shard_of, self.stage = Path(path), shard_of, stage
        self._is_packed = compression == _PACKED
        self._files: dict[int, Any] = {}
        self._counts: dict[int, int] = {}
        self._spec: object = None
        self.folder.mkdir(parents=True, exist_ok=True)
        # It becomes the description, and says until then that somebody writes.
        self._beside, self._lock = begin_part(lambda: self.folder / f"{secrets.token_hex(8)}.part")
        self._token = self._beside.stem  # files of others in the folder have other names
        _drop_left(self.folder)

    def add(self, element: object) -> None:
        """Write an element.  Raises ShapeError where it is of another structure, rank or dtype than the others."""
        spec = elements.spec_of(element)
        if self._spec != spec:
            self._spec = spec if self._spec is None else elements.common([self._spec, spec], self.stage)
        shard = 0 if self.shard_of is None else int(elements.caller(self.shard_of)(element))
        if shard not in self._files:
            raw = open(self.folder / self._name(shard), "wb")  # noqa: SIM115  # closed at the end
            self._files[shard] = gzip.GzipFile(fileobj=raw, mode="wb") if self._is_packed else raw
            self._counts[shard] = 0
        record = framed(packed(element, self.stage))
        with writing_to(self.folder / self._name(shard)):
            self._files[shard].write(record)
        self._counts[shard] += 1

    def _name(self, shard: int) -> str:
        return f"{self._token}-{shard}{_SUFFIX}"

    def finish(self) -> None:
        """Let the folder hold what was written, in the place of what it held before."""
        for file in self._files.values():
            self._close(file, whole=True)
        description = {
            "format": _FORMAT,
            "version": _VERSION,
            "compression": _PACKED if self._is_packed else None,
            "spec": None if self._spec is None else _described(self._spec),
            "files": [[self._name(shard), self._counts[shard]] for shard in sorted(self._counts)],
        }
        try:
            before = [name for name, _ in _description(self.folder)["files"]]
        except (DataError, FileNotFoundError):
            before = []
        with writing_to(self._beside):
            self._lock.write(json.dumps(description).encode())
            self._lock.flush()
            os.fsync(self._lock.fileno())
        os.replace(self._beside, self.folder / _DESCRIPTION)
        self._lock.close()
        self._files.clear()
        for name in before:
            with suppress(OSError):
                (self.folder / name).unlink()

    def _close(self, file: Any, whole: bool) -> None:
        raw = file.fileobj if self._is_packed else file
        if raw is None:  # it was closed, and could not be written to
            return
        with writing_to(raw.name):
            try:
                if self._is_packed:
                    file.close()  # which leaves the file below open
                raw.flush()
                if whole:
                    os.fsync(raw.fileno())
            finally:
                raw.close()

    def drop(self) -> None:
        """Remove what was written, unless it was finished."""
        if not self._lock.closed:
            with suppress(OSError):
                self._lock.close()
            with suppress(OSError):
                self._beside.unlink()
        for shard, file in self._files.items():
            with suppress(OSError, ValueError):
                self._close(file, whole=False)
            with suppress(OSError):
                (self.folder / self._name(shard)).unlink()
        self._files.clear()


def _drop_left(folder: Path) -> None:
    """Remove the files that writers which were killed left in a folder."""
    names = os.listdir(folder)
    for name in names:
        if not _PART.fullmatch(name):
            continue
        with abandoned_part(folder / name) as is_left:
            if is_left:
                token = name.removesuffix(".part")
                for other in names:  # the part goes last: it says that the others are left
                    if other.startswith(f"{token}-") and other.endswith(_SUFFIX):
                        with suppress(OSError):
                            (folder / other).unlink()
                with suppress(OSError):
                    (folder / name).unlink()


def save(node: Node, writer: Writer) -> None:
    """Write all elements of a node."""
    try:
        for element in node.runner().run():
            writer.add(element)
        writer.finish()
    finally:
        writer.drop()


def is_there(path: str) -> bool:
    """Whether a folder holds a dataset."""
    return os.path.exists(os.path.join(path, _DESCRIPTION))


def _described(spec: Any) -> Any:
    """A spec in JSON."""
    if type(spec) is tuple:
        return {"tuple": [_described(part) for part in spec]}
    if type(spec) is dict:
        return {"dict": {key: _described(part) for key, part in spec.items()}}
    return {"text" if isinstance(spec, TextSpec) else "tensor": [list(spec.shape), str(spec.dtype)]}


def _spec_of(description: Any) -> Any:
    """The spec that ``_described`` described.  Raises ValueError or TypeError for anything else."""
    ((kind, content),) = description.items()
    if kind == "tuple":
        return tuple([_spec_of(part) for part in content])
    if kind == "dict":
        return {key: _spec_of(part) for key, part in content.items()}
    shape, dtype = content
    return {"text": TextSpec, "tensor": TensorSpec}[kind](tuple(shape), dtype)


def _description(folder: Path) -> dict[str, Any]:
    """The description in a folder.  Raises DataError where it is damaged or of a later version."""
    path = folder / _DESCRIPTION
    try:
        description = json.loads(path.read_bytes().decode())
        if description["format"] != _FORMAT or type(description["version"]) is not int:
            raise ValueError("another format")
        if description["version"] > _VERSION:
            raise DataError(
                "Dataset.load", f"{path} is of format {description['version']}; this hybridflow reads up to {_VERSION}."
            )
        for name, count in description["files"]:
            if os.path.basename(name) != name or not name.endswith(_SUFFIX) or type(count) is not int or count < 0:
                raise ValueError(f"a file {name!r} of {count!r} elements")
        if description["spec"] is not None:
            description["spec"] = _spec_of(description["spec"])
        if description["compression"] not in (None, _PACKED):
            raise ValueError("an unknown compression")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, ArgumentError, ArgumentTypeError) as error:
        raise DataError("Dataset.load", f"{path} does not describe a dataset that was saved: {error!r}.") from None
    return description


class Saved(Node):
    """The elements in files of a folder, in the order in which they were written."""

    def __init__(self, path: str, told: dict[str, Any], files: list[Any]) -> None:
        self.path, self.described, self.files = path, told, files

    def runner(self) -> PipelineIterator:
        return SavedRun(self)

    def spec(self) -> Any:
        if self.described["spec"] is None:
            raise ArgumentError(
                "Dataset.load", f"{self.path} has no elements, so it is unknown of which kind they are."
            )
        return self.described["spec"]

    def cardinality(self) -> int:
        return sum(count for _, count in self.files)


def load(path: str) -> Saved:
    """All elements in a folder.  Raises DataError where what is there is damaged, FileNotFoundError for nothing."""
    description = _description(Path(path))
    _check_counts(Path(path), description)
    return Saved(path, description, description["files"])


_LEAST_RECORD = 16  # bytes: its length and two sums
_MOST_PACKED = 1032  # times that a file packed by DEFLATE may be as long as it is


def _check_counts(folder: Path, told: dict[str, Any]) -> None:
    """Raise DataError where a file cannot have as many elements as are told: whoever asks how many there are makes
    room for them."""
    for name, count in told["files"]:
        try:
            size = os.path.getsize(folder / name)
        except FileNotFoundError:
            raise DataError("Dataset.load", f"{folder} is damaged: {name} is missing.") from None
        most = size * (_MOST_PACKED if told["compression"] == _PACKED else 1) // _LEAST_RECORD
        if count > most:
            raise DataError(
                "Dataset.load", f"{folder} is damaged: {name}, of {size} bytes, cannot have {count} elements."
            )


class SavedRun(PipelineIterator):
    state_fields = ("file", "start", "count")

    def __init__(self, node: Saved) -> None:
        self.node = node
        self.file = self.start = self.count = 0  # which of the files, the place there, and elements of it given

    def run(self) -> Elements:
        while self.file < len(self.node.files):
            name, count = self.node.files[self.file]
            path = os.path.join(self.node.path, name)
            for element in self._elements(path, count):
                self.count += 1
                yield element
            if self.count != count:
                raise DataError("Dataset.load", f"{path} is damaged: it has {self.count} elements instead of {count}.")
            self.file, self.start, self.count = self.file + 1, 0, 0

    def _elements(self, path: str, count: int) -> Iterator[Any]:
        try:
            with self._opened(path) as file:
                file.seek(self.start)
                for record, stop in records(file, self.start, path, "Dataset.load"):
                    if self.count == count:
                        raise DataError("Dataset.load", f"{path} is damaged: it has more than {count} elements.")
                    element = unpacked(record, path, "Dataset.load")
                    self.start = stop
                    yield element
        except (EOFError, zlib.error, gzip.BadGzipFile, FileNotFoundError) as error:
            raise DataError("Dataset.load", f"{path} is damaged: {error}.") from None

    def _opened(self, path: str) -> BinaryIO:
        packed_: Any = gzip.open if self.node.described["compression"] == _PACKED else open
        file: BinaryIO = packed_(path, "rb")
        return file


class Snapshot(Node):
    """The elements of a source, which the first complete run writes into a folder, and later ones read there."""

    def __init__(self, source: Node, path: str, writer: Callable[[], Writer]) -> None:
        self.source, self.path, self.writer = source, path, writer

    def runner(self) -> PipelineIterator:
        return SnapshotRun(self)

    def spec(self) -> Any:
        return self.source.spec()

    def cardinality(self) -> int:
        return self.source.cardinality()


class SnapshotRun(PipelineIterator):
    """A run that reads the folder, or writes it; one that begins within the elements of the source does neither."""

    def __init__(self, node: Snapshot) -> None:
        self.node, self.count = node, 0
        self.is_read = is_there(node.path)
        self.source = load(node.path).runner() if self.is_read else node.source.runner()

    def run(self) -> Elements:
        writer = None if self.is_read or self.count else self.node.writer()
        try:
            for element in self.source.run():
                if writer is not None:
                    writer.add(element)
                self.count += 1
                yield element
            if writer is not None and not is_there(self.node.path):
                writer.finish()
        finally:
            if writer is not None:
                writer.drop()

    def state(self) -> State:
        return {"is_read": self.is_read, "count": self.count, "source": self.source.state()}

    def restore(self, state: State) -> None:
        self.count, self.is_read = restored_field(self.count, state["count"]), state["is_read"]
        self.source = load(self.node.path).runner() if self.is_read else self.node.source.runner()
        self.source.restore(state["source"])
