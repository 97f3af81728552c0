"""Elements that are kept in a file: caches on disk.

The file is one of records (see ``records``), with their sums.  Each holds a header in JSON (how the element is nested,
and the dtype and shape of each leaf) and the bytes of the leaves.  It is written beside, and renamed when it is whole.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from functools import lru_cache
from itertools import accumulate
from typing import Any, BinaryIO

import numpy as np

from hybridflow.core.file_errors import reading
from hybridflow.core.promotion import to_dtype
from hybridflow.core.string_tensor import StringTensor, of_texts
from hybridflow.core.tensor import Tensor, wrap
from hybridflow.data.pipeline import Elements, Node, PipelineIterator, State, restored_field, skip
from hybridflow.data.strings import KINDS, array_of, is_text, spec_of_text
from hybridflow.data.tfrecord import framed, records
from hybridflow.errors import ArgumentTypeError, DataError

_ALIGNED = 16  # bytes: leaves begin at multiples
_STAGE = "Dataset.cache"


class FileCache(Node):
    """Elements that are kept in a file from the first complete run on."""

    def __init__(self, source: Node, path: str) -> None:
        self.source, self.path = source, path

    def runner(self) -> PipelineIterator:
        return FileCacheRun(self)

    def spec(self) -> Any:
        return self.source.spec()

    def cardinality(self) -> int:
        return self.source.cardinality()


class FileCacheRun(PipelineIterator):
    """A run that reads the file, or writes it where there is none; one that begins within the elements does neither."""

    def __init__(self, node: FileCache) -> None:
        self.node = node
        self.start = self.count = self.skip = 0  # a place in the file, elements that were given, and those let pass
        self.source = None if os.path.exists(node.path) else node.source.runner()

    def run(self) -> Elements:
        if self.source is None:
            yield from self._read()
        elif self.count:
            iterator = self.source.run()
            skip(iterator, self.skip)
            self.skip = 0
            for element in iterator:
                self.count += 1
                yield element
        else:
            yield from self._write(self.source)

    def _read(self) -> Elements:
        with open(self.node.path, "rb") as file:
            file.seek(self.start)
            for record, stop in records(file, self.start, self.node.path, _STAGE):
                self.start, self.count = stop, self.count + 1
                yield unpacked(record, self.node.path)

    def _write(self, source: PipelineIterator) -> Elements:
        path = self.node.path
        file = tempfile.NamedTemporaryFile(  # noqa: SIM115  # it is closed below
            dir=os.path.dirname(path) or ".", prefix=f"{os.path.basename(path)}.", suffix=".partial", delete=False
        )
        try:
            for element in source.run():
                _described(file.write, framed(packed(element)), path)
                self.count += 1
                yield element
            _described(_finish, file, path)
            os.replace(file.name, path)
        finally:
            file.close()
            if os.path.exists(file.name):
                os.unlink(file.name)

    def state(self) -> State:
        source = None if self.source is None else self.source.state()
        return {"source": source, "start": self.start, "count": self.count, "skip": self.skip}

    def restore(self, state: State) -> None:
        for name in ("start", "count", "skip"):
            setattr(self, name, restored_field(getattr(self, name), state[name]))
        if state["source"] is not None:
            self.source = self.node.source.runner()
            self.source.restore(state["source"])
        elif os.path.exists(self.node.path):
            self.source = None
        else:  # the file is gone
            self.source, self.skip = self.node.source.runner(), self.count


def _finish(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def _described(work: Callable[[Any], Any], content: object, path: str) -> None:
    """Do what may find the disk full; then the error says what was being done."""
    try:
        work(content)
    except OSError as error:
        error.add_note(f"[{_STAGE}] elements could not be kept in {path}; nothing is left of them there.")
        raise


def packed(element: object, stage: str = _STAGE) -> bytes:
    """An element as bytes.  Raises ArgumentTypeError for other nesting than tuples and dicts, and for datasets."""
    leaves: list[Any] = []
    nesting = _nested(element, leaves, stage)
    kinds, parts = [], []
    for leaf in leaves:
        if is_text(leaf):
            spec: Any = spec_of_text(leaf)
            name = "string" if type(leaf) is StringTensor else spec.dtype
            texts = [text.encode() if isinstance(text, str) else text for text in array_of(leaf).ravel().tolist()]
            kinds.append([name, list(spec.shape), [len(text) for text in texts]])
            parts.append(b"".join(texts))
        else:
            array = leaf.numpy()
            kinds.append([str(array.dtype), list(array.shape)])
            parts.append(array.tobytes())
    header = json.dumps([nesting, kinds]).encode()
    out = bytearray(len(header).to_bytes(4, "little") + header)
    for part in parts:
        out += bytes(-len(out) % _ALIGNED)
        out += part
    return bytes(out)


def _nested(element: object, leaves: list[Any], stage: str) -> Any:
    """How an element is nested; its leaves are put into a list."""
    if isinstance(element, Tensor) or is_text(element):
        leaves.append(element)
        return None
    if type(element) is tuple:
        return [_nested(part, leaves, stage) for part in element]
    if type(element) is dict and all(type(key) is str for key in element):
        return {key: _nested(part, leaves, stage) for key, part in element.items()}
    raise ArgumentTypeError(
        stage, f"{type(element).__name__} cannot be kept in a file: use tensors and texts in tuples and dicts by name."
    )


def unpacked(record: bytes, path: str, stage: str = _STAGE) -> Any:
    """What ``packed`` packed.  Raises DataError for other bytes."""
    with reading(DataError, stage, path):
        stop = 4 + int.from_bytes(record[:4], "little")
        nesting, kinds = _header(record[4:stop])
        leaves = []
        for kind in kinds:
            start = stop + -stop % _ALIGNED
            leaf, size = _leaf(record, start, kind)
            stop = start + size
            leaves.append(leaf)
        return _rebuilt(nesting, iter(leaves))


@lru_cache(64)
def _header(text: bytes) -> Any:
    return json.loads(text)


def _leaf(record: bytes, start: int, kind: list[Any]) -> tuple[Any, int]:
    """A leaf, and how many bytes it takes."""
    if any(type(extent) is not int or extent < 0 for extent in kind[1]):
        raise ValueError(f"the shape {kind[1]}")
    if kind[0] in KINDS or kind[0] == "string":
        stops = list(accumulate(kind[2]))
        texts = [record[start + stop - size : start + stop] for stop, size in zip(stops, kind[2])]
        array = np.empty(len(texts), object)
        array[:] = [text.decode() for text in texts] if kind[0] == "str" else texts
        array = array.reshape(kind[1])
        if kind[0] == "string":
            return of_texts(array), stops[-1] if stops else 0
        array.flags.writeable = False
        return array if array.ndim else array.item(), stops[-1] if stops else 0
    dtype = to_dtype(kind[0], _STAGE)
    count = int(np.prod(kind[1], dtype=np.int64))
    array = np.frombuffer(record, dtype, count, start) if count else np.empty(0, dtype)
    return wrap(array.reshape(kind[1])), count * dtype.itemsize


def _rebuilt(nesting: Any, leaves: Any) -> Any:
    if nesting is None:
        return next(leaves)
    if isinstance(nesting, dict):
        return {key: _rebuilt(part, leaves) for key, part in nesting.items()}
    return tuple([_rebuilt(part, leaves) for part in nesting])
