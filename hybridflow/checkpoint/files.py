"""Arrays in files of the safetensors format, which others read and write too.

A file begins with eight bytes, the length of the header.  The header is JSON: for each array its dtype, shape and
place, and a table of texts under ``__metadata__``.  The arrays follow, one behind the other.  Those that are written
here have a CRC-32 of each array among the texts, and one of the header itself.  Source: the format as documented by its
library, huggingface/safetensors.

A file is written beside its place, flushed to the disk, and renamed: at any moment there is the old file or the new
one, whole.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import platform
import re
import weakref
import zlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from hybridflow.core import processes
from hybridflow.core.file_kinds import kind_of
from hybridflow.core.locked_files import abandoned_part, begin_part
from hybridflow.core.tensor import Tensor, wrap
from hybridflow.errors import CheckpointError
from hybridflow.runtime.checksums import crc32, joined
from hybridflow.runtime.memory import memory_pool

if TYPE_CHECKING:
    from concurrent.futures import Future

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
    "C64": np.dtype(np.complex64),
    "F8_E4M3": np.dtype(ml_dtypes.float8_e4m3fn),
    "F8_E5M2": np.dtype(ml_dtypes.float8_e5m2),
    # For these safetensors has no name, or (four bits) another layout.
    "C128": np.dtype(np.complex128),
    "F8_E4M3FNUZ": np.dtype(ml_dtypes.float8_e4m3fnuz),
    "F8_E5M2FNUZ": np.dtype(ml_dtypes.float8_e5m2fnuz),
    **{f"{t}_IN_BYTES".upper(): np.dtype(getattr(ml_dtypes, t)) for t in ("int2", "int4", "uint2", "uint4")},
    "FLOAT4_E2M1FN_IN_BYTES": np.dtype(ml_dtypes.float4_e2m1fn),
}
_SHORT = {dtype: name for name, dtype in _NAMES.items()}
_LONGEST = 100_000_000  # bytes of a header
_ALIGNED = 8
_AXES = 64  # of an array, at most
_CHUNK = 1 << 20  # bytes that are read or written at once: few enough to be in the cache still when they are summed
_READERS = 8  # threads that read large files: they wait for the disk and for pages of memory rather than for a core
_FLUSHED = 1 << 25  # bytes after which the disk is set to work, while there is more to be written
_SUMS, _OF_HEADER = "crc32", "crc32_of_header"
_HOST = re.sub(r"[^\w-]", "_", platform.node())[:32]  # folders may be those of several machines
_UNKNOWN = "00000000"  # of as many letters as the sums, which are known in the end


def write(path: str | os.PathLike[str], arrays: Mapping[str, np.ndarray], texts: Mapping[str, str]) -> None:
    """Write arrays and texts into a file, which replaces one that is there.

    Raises OSError where that fails, for one if the disk is full: then there is what there was before.
    """
    replace(path, lambda file: _write_into(file, arrays, texts))


def write_here(path: str | os.PathLike[str], arrays: Mapping[str, np.ndarray], texts: Mapping[str, str]) -> None:
    """The same of a file that this process alone writes."""
    _replace(Path(path), lambda file: _write_into(file, arrays, texts))


def short_name(dtype: np.dtype[Any]) -> str:
    """What files call a dtype.  Raises CheckpointError where they have no name for it."""
    if dtype not in _SHORT:
        raise CheckpointError("checkpoint", f"an array of dtype {dtype} cannot be kept in a file.")
    return _SHORT[dtype]


def dtype_of(name: str) -> np.dtype[Any]:
    """The dtype of such a name.  Raises KeyError where there is none."""
    return _NAMES[name]


def replace(path: str | os.PathLike[str], write_into: Callable[[Any], Any]) -> None:
    """Write a file beside its place, flush it to the disk and rename it: whoever reads finds the old one or the new
    one, whole, however many threads, processes and machines write there.  Processes that share a program's replicas out
    have the same to write, and the first of them does.

    Raises OSError where that fails: then there is what there was before.
    """
    processes.once(f"writing {os.path.basename(path)}", lambda: _replace(Path(path), write_into))


def _replace(target: Path, write_into: Callable[[Any], Any]) -> None:
    _drop_parts(target)
    beside = target
    try:
        beside, file = _begun(target)
        with file:
            write_into(file)
            file.flush()
            os.fsync(file.fileno())
            os.replace(beside, target)  # while it is locked still
    except BaseException as error:
        if beside != target:
            with contextlib.suppress(OSError):
                beside.unlink()
        if isinstance(error, OSError):
            there = "what was there before is unharmed" if target.exists() else "nothing is left there"
            error.add_note(f"[checkpoint] {target} could not be written; {there}.")
        raise
    _flush_folder(target.parent)


def _begun(target: Path) -> tuple[Path, Any]:
    """A new part beside a file, of a name that nobody else has, and locked for as long as it is open."""
    stem = f".{target.name}.{_HOST}-{os.getpid()}-"
    return begin_part(lambda: target.with_name(f"{stem}{os.urandom(8).hex()}.part"))


def _drop_parts(target: Path) -> None:
    """Remove the parts of such files that processes left when they were killed: of those with this name, but for the
    numbers in it."""
    name = re.sub(r"\d+", r"\\d+", re.escape(target.name))
    pattern = re.compile(rf"\.{name}\.{re.escape(_HOST)}-(\d+)(-[0-9a-f]+)?\.part")
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        for entry in os.listdir(target.parent):
            match = pattern.fullmatch(entry)
            if match is None:
                continue
            part = target.with_name(entry)
            with (
                abandoned_part(part) if match[2] else contextlib.nullcontext(not _is_running(int(match[1]))) as is_left
            ):
                if is_left:
                    with contextlib.suppress(OSError):
                        part.unlink()


def _is_running(process: int) -> bool:
    """Whether there may be such a process on this machine."""
    if os.name != "posix":
        return True  # asking would end it
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def _write_into(file: Any, arrays: Mapping[str, np.ndarray], texts: Mapping[str, str]) -> None:
    ordered = {name: np.ascontiguousarray(array).reshape(array.shape) for name, array in arrays.items()}
    start = file.tell()
    file.write(_header(ordered, texts, dict.fromkeys(ordered, _UNKNOWN)))
    sums = dict.fromkeys(ordered, 0)
    from concurrent.futures import ThreadPoolExecutor  # those who only read small files take no time for it

    with ThreadPoolExecutor(1) as flushing:  # while parts are written
        flushed: Future[None] | None = None
        written = 0
        for name, array in ordered.items():
            content = array.reshape(-1).view(np.uint8).data
            for begin in range(0, len(content), _CHUNK):
                part = content[begin : begin + _CHUNK]
                sums[name] = crc32(part, sums[name])
                file.write(part)
                written += len(part)
                if written >= _FLUSHED and (flushed is None or flushed.done()):
                    written = 0
                    if flushed is not None:
                        flushed.result()  # raises what the disk said
                    flushed = flushing.submit(os.fsync, file.fileno())
        if flushed is not None:
            flushed.result()
    file.seek(start)
    file.write(_header(ordered, texts, {name: f"{total:08x}" for name, total in sums.items()}))


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
    text = text.replace(_described(_UNKNOWN), _described(f"{zlib.crc32(text):08x}"))
    return len(text).to_bytes(8, "little") + text


def _described(total: str) -> bytes:
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


def _table(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A table of JSON.  Raises KeyError for a key that comes twice: readers differ in which of the two they take."""
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise KeyError(key)
        result[key] = value
    return result


class File:
    """A file that is being read: ``texts``, and arrays by name, which are read and checked when they are asked for.

    ``is_checked`` says that the header has a sum, and is what was written; files of others have none.

    Raises CheckpointError where the file is damaged or is of another kind, FileNotFoundError where there is none.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        with open(self.path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            self._handle = os.dup(file.fileno())
            weakref.finalize(self, os.close, self._handle)
            head = file.read(8)
            length = int.from_bytes(head, "little")
            if len(head) < 8 or not 2 <= length <= min(_LONGEST, size - 8):
                raise self._damaged("its header is not whole")
            self._start = 8 + length
            header = file.read(length)
            entries = self._parsed(header)
        texts = entries.pop("__metadata__", {})
        self.texts: dict[str, str] = self._texts(texts)
        total = self.texts.pop(_OF_HEADER, None)
        self.is_checked = total is not None
        if total is None and _SUMS in self.texts:
            raise self._damaged("its header has no sum, where its arrays have some")
        if total is not None and f"{zlib.crc32(header.replace(_described(total), _described(_UNKNOWN))):08x}" != total:
            raise self._damaged("its header is not what was written (CRC-32)")
        sums = self._parsed(self.texts.pop(_SUMS, "{}").encode())
        self._sums = {name: value for name, value in sums.items() if isinstance(value, str)}
        self._entries = {name: self._entry(name, entry, size - self._start) for name, entry in entries.items()}
        self._check_places(size - self._start)

    def _damaged(self, why: str) -> CheckpointError:
        kind = kind_of(self.path)
        what = f"It is {kind}." if kind else "The file is damaged, or of another kind."
        return CheckpointError("checkpoint", f"{self.path} cannot be read: {why}. {what}")

    def _parsed(self, text: bytes) -> dict[str, Any]:
        try:
            result = json.loads(text.decode(), object_pairs_hook=_table)
        except (ValueError, RecursionError):
            raise self._damaged("what should describe its arrays is no JSON") from None
        except KeyError as error:
            raise self._damaged(f"it describes {error} twice") from None
        if not isinstance(result, dict):
            raise self._damaged("what should describe its arrays is no table")
        return result

    def _texts(self, texts: object) -> dict[str, str]:
        if not isinstance(texts, dict) or not all(isinstance(text, str) for text in texts.values()):
            raise self._damaged("its texts are none")
        return dict(texts)

    def _entry(self, name: str, entry: Any, size: int) -> tuple[np.dtype[Any], tuple[int, ...], int, int]:
        """The dtype, the shape and the place of an array, which lies within the file."""
        try:
            dtype, shape = _NAMES[entry["dtype"]], tuple(entry["shape"])
            begin, end = entry["data_offsets"]
            if any(type(extent) is not int or extent < 0 for extent in shape):
                raise ValueError
            if len(shape) > _AXES or math.prod(extent or 1 for extent in shape) * dtype.itemsize >= 1 << 63:
                raise ValueError  # NumPy has no such arrays, be they empty
            count = math.prod(shape)
            if type(begin) is not int or type(end) is not int or not 0 <= begin <= end <= size:
                raise ValueError
            if count * dtype.itemsize != end - begin:
                raise ValueError
        except (KeyError, TypeError, ValueError):
            raise self._damaged(f"the array {name!r} does not lie where it should") from None
        return dtype, shape, begin, end

    def _check_places(self, size: int) -> None:
        """Arrays lie one behind the other and fill the file: so the format wants it, and so nothing is read twice."""
        place = 0
        for name, (_, _, begin, end) in sorted(self._entries.items(), key=lambda item: item[1][2:]):
            if begin != place:
                raise self._damaged(f"the array {name!r} does not begin where the one before it ends")
            place = end
        if place != size:
            raise self._damaged("there is more behind its last array")

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

    def tensor(self, name: str) -> Tensor:
        """An array as a tensor.  Raises CheckpointError if it is not what was written."""
        return self.tensors([name])[name]

    def tensors(self, names: Iterable[str]) -> dict[str, Tensor]:
        """Arrays as tensors, by name, which several threads read.

        Raises CheckpointError if one of them is not what was written, MemoryError where there is no room.
        """
        contents: dict[str, Any] = {}
        parts: list[tuple[int, memoryview]] = []
        for name in names:
            _, _, begin, end = self._entries[name]
            contents[name] = memory_pool.empty((end - begin,), _NAMES["U8"])
            whole = memoryview(contents[name])
            parts += [(self._start + begin + at, whole[at : at + _CHUNK]) for at in range(0, len(whole), _CHUNK)]
        sums = iter(self._read_all(parts))
        for name, content in contents.items():
            total = 0
            for at in range(0, content.size, _CHUNK):
                total = joined(total, next(sums), min(_CHUNK, content.size - at))
            if self._sums.get(name, f"{total:08x}") != f"{total:08x}":
                raise self._damaged(f"the array {name!r} is not what was written (CRC-32)")
        return {name: self._tensor(name, content) for name, content in contents.items()}

    def _tensor(self, name: str, content: np.ndarray) -> Tensor:
        dtype, shape, _, _ = self._entries[name]
        content.flags.writeable = False
        return wrap(content.view(dtype).reshape(shape))

    def _read_all(self, parts: list[tuple[int, memoryview]]) -> list[int]:
        """Fill buffers, each from its place on, and return their sums."""
        if sum(len(part) for _, part in parts) < 2 * _CHUNK:
            return [self._read(*part) for part in parts]
        sums, left = [0] * len(parts), iter(range(len(parts)))

        def read() -> None:  # each thread takes what comes next: one task for all of them costs less than one for each
            for number in left:
                sums[number] = self._read(*parts[number])

        from concurrent.futures import ThreadPoolExecutor

        readers = ThreadPoolExecutor(_READERS)
        try:
            for reader in [readers.submit(read) for _ in range(_READERS)]:
                reader.result()
        finally:
            for _ in left:  # of an error the others are not to read on
                pass
            readers.shutdown()
        return sums

    def _read(self, place: int, part: memoryview) -> int:
        self._fill(place, part)
        return crc32(part)

    def _fill(self, place: int, into: memoryview) -> None:
        while len(into):
            count = os.preadv(self._handle, [into], place)
            if not count:
                raise self._damaged("it ends before its arrays do")
            place, into = place + count, into[count:]
