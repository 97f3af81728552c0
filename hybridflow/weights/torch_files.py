"""PyTorch's files: zip archives and older ones, whose pickles may name a few kinds of storages and nothing else."""

from __future__ import annotations

import io
import math
import mmap
import os
import pickle
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import ml_dtypes
import numpy as np

from hybridflow.errors import CheckpointError
from hybridflow.weights import archives
from hybridflow.weights.arrays import MAX_DEPTH, Entry, check_count, unread

_STORAGES: dict[str, np.dtype[Any]] = {
    "BoolStorage": np.dtype(np.bool_),
    "ByteStorage": np.dtype(np.uint8),
    "CharStorage": np.dtype(np.int8),
    "ShortStorage": np.dtype(np.int16),
    "IntStorage": np.dtype(np.int32),
    "LongStorage": np.dtype(np.int64),
    "HalfStorage": np.dtype(np.float16),
    "BFloat16Storage": np.dtype(ml_dtypes.bfloat16),
    "FloatStorage": np.dtype(np.float32),
    "DoubleStorage": np.dtype(np.float64),
}
OLD_MAGIC = 0x1950A86A20F9469CFC6C
_OLD_PROTOCOL = 1001
_LEFT_OUT = pickle.BYTEARRAY8, pickle.EMPTY_SET, pickle.ADDITEMS, pickle.FROZENSET  # opcodes
_MAX_PICKLE = 1 << 28  # bytes of a description
_MAX_EXPANDED = 1 << 26  # bytes of a tensor whose elements stand for several each


def old_magic() -> bytes:
    """How files before PyTorch 1.6 begin."""
    return pickle.dumps(OLD_MAGIC, protocol=2)


class _Sealed:
    """What a pickle may hold and not change."""

    __slots__ = ()

    def __setstate__(self, state: object) -> None:
        raise pickle.UnpicklingError("the file would change what it names")


class _Storage(_Sealed):
    """Elements of one dtype in a file.  ``fetch`` reads them."""

    __slots__ = ("count", "dtype", "fetch")

    def __init__(self, dtype: np.dtype[Any], count: int, fetch: Callable[[], Any]) -> None:
        self.dtype, self.count, self.fetch = dtype, count, fetch


class _Kind(_Sealed):
    """A storage class, named in a pickle."""

    __slots__ = ("dtype",)

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self.dtype = dtype


class _Named(_Sealed):
    """What a pickle may call."""

    __slots__ = ("_call",)

    def __init__(self, call: Callable[..., Any]) -> None:
        self._call = call

    def __call__(self, *args: object) -> Any:
        return self._call(*args)


class _Dict(OrderedDict[Any, Any]):
    """An OrderedDict of a file.  Attributes that it had, such as PyTorch's ``_metadata``, are left out."""

    def __init__(self, pairs: Iterable[Any] = ()) -> None:
        super().__init__()
        for key, value in pairs:
            self[_key(key)] = value

    def __setstate__(self, state: object) -> None:
        pass


def _key(value: object) -> Any:
    """A key of a dict.  Tuples are none: to hash one that is nested deep overflows the stack of C."""
    if not isinstance(value, (str, bytes, int, float, type(None))):
        raise pickle.UnpicklingError(f"a {type(value).__name__} is a key in it")
    return value


class _Tensor(_Sealed):
    """A tensor of a file: a view of a storage."""

    __slots__ = ("entry",)

    def __init__(self, storage: object, offset: Any, size: Any, stride: Any, *_: object) -> None:
        if not isinstance(storage, _Storage) or len(size) != len(stride):
            raise pickle.UnpicklingError("a tensor is made of something else than a storage")
        shape, steps, start = tuple(map(int, size)), tuple(map(int, stride)), int(offset)
        if start < 0 or min(steps, default=0) < 0 or min(shape, default=0) < 0:
            raise pickle.UnpicklingError(f"a tensor of the shape {shape} begins at {start}, with the steps {steps}")
        count = math.prod(shape)
        last = start + sum((extent - 1) * step for extent, step in zip(shape, steps)) if count else start - 1
        if last >= storage.count or start > storage.count:
            raise pickle.UnpicklingError(f"a tensor of the shape {shape} reaches behind its storage")
        size_of = storage.dtype.itemsize
        if count > storage.count and count * size_of > _MAX_EXPANDED:
            raise pickle.UnpicklingError(f"a tensor of the shape {shape} has more elements than its storage")

        def read() -> np.ndarray:
            elements = np.frombuffer(storage.fetch(), storage.dtype.newbyteorder("<"), storage.count)
            view = np.lib.stride_tricks.as_strided(
                elements[start:], shape, tuple(step * size_of for step in steps), writeable=False
            )
            return np.array(view, storage.dtype, order="C")

        self.entry = unread(shape, storage.dtype, read)


_Unpickler: Any = pickle._Unpickler  # its parts are untyped


class _Reader(_Unpickler):
    """Reads a description.  It knows four kinds of names; anything else is an error that says the name.

    It is the reader in Python: the one in C allocates as many places as a file of a few bytes says.
    """

    # Without what allocates before it reads, and without sets, whose elements are hashed as keys are.
    dispatch = {code: load for code, load in _Unpickler.dispatch.items() if bytes([code]) not in _LEFT_OUT}

    def __init__(self, file: object, storage: Callable[[tuple[Any, ...]], _Storage]) -> None:
        super().__init__(file, encoding="utf-8")
        self._storage = storage
        self._known = {
            ("collections", "OrderedDict"): _Named(_Dict),
            ("torch._utils", "_rebuild_tensor"): _Named(_Tensor),
            ("torch._utils", "_rebuild_tensor_v2"): _Named(_Tensor),
            ("torch._utils", "_rebuild_parameter"): _Named(lambda data, *_: data),
            ("torch", "Size"): _Named(tuple),
        }

    def _load_dict(self) -> None:
        parts = self.pop_mark()
        self.append(dict(zip(map(_key, parts[::2]), parts[1::2], strict=True)))

    def _load_setitem(self) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        self.stack[-1][_key(key)] = value

    def _load_setitems(self) -> None:
        parts = self.pop_mark()
        for key, value in zip(parts[::2], parts[1::2], strict=True):
            self.stack[-1][_key(key)] = value

    dispatch |= {pickle.DICT[0]: _load_dict, pickle.SETITEM[0]: _load_setitem, pickle.SETITEMS[0]: _load_setitems}

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in self._known:
            return self._known[module, name]
        if module in ("torch", "torch.storage") and name in _STORAGES:
            return _Kind(_STORAGES[name])
        if module.split(".")[0] == "__torch__":
            text = f"it is a program of TorchScript, {module}.{name}. Save its state_dict() by torch.save."
            raise CheckpointError("weights", text, "")
        text = f"it names {module}.{name}, which is not read, as that could run code. Save a state_dict() of tensors"
        raise pickle.UnpicklingError(text)

    def load(self) -> Any:
        try:
            return super().load()
        except (pickle.UnpicklingError, EOFError, LookupError, UnicodeDecodeError) as error:
            raise ValueError(f"its description is damaged: {error}") from None

    def persistent_load(self, storage_id: object) -> _Storage:
        if (
            not isinstance(storage_id, tuple)
            or len(storage_id) < 5
            or storage_id[0] != "storage"
            or not isinstance(storage_id[1], _Kind)
        ):
            raise pickle.UnpicklingError("it refers to something else than a storage")
        return self._storage(storage_id)


def entries_of_archive(archive: zipfile.ZipFile) -> dict[str, Entry]:
    """The tensors of a file of PyTorch 1.6 and later."""
    names = [name for name in archive.namelist() if name.rpartition("/")[2] == "data.pkl"]
    if len(names) != 1:
        raise ValueError("it has no data.pkl, as PyTorch's files have")
    root = names[0].removesuffix("data.pkl")
    order = root + "byteorder"
    if order in archive.namelist() and archives.member(archive, order).strip() != b"little":
        raise ValueError("its numbers are big-endian, which is not read")
    sizes = {info.filename: info.file_size for info in archive.infolist()}
    if sizes[names[0]] > _MAX_PICKLE:
        raise ValueError("its description is longer than that of any model")

    def storage(storage_id: tuple[Any, ...]) -> _Storage:
        _, kind, key, _, count = storage_id[:5]
        name = f"{root}data/{key}"
        if name not in sizes:
            raise ValueError(f"it lacks the elements {key!r}")
        if int(count) * kind.dtype.itemsize > sizes[name] or int(count) < 0:
            raise ValueError(f"the elements {key!r} are fewer than the file says")
        return _Storage(kind.dtype, int(count), lambda: archives.member(archive, name))

    return _flat(_Reader(io.BytesIO(archives.member(archive, names[0])), storage).load())


def entries_of_old_file(path: str, size: int) -> dict[str, Entry]:
    """The tensors of a file before PyTorch 1.6: pickles one after another, then the storages."""
    storages: dict[str, _Storage] = {}
    places: dict[str, tuple[int, int]] = {}

    def storage(storage_id: tuple[Any, ...]) -> _Storage:
        _, kind, key, _, count = storage_id[:5]
        if len(storage_id) > 5 and storage_id[5] is not None:
            raise ValueError("views of storages are not read")
        if int(count) < 0 or int(count) * kind.dtype.itemsize > size:
            raise ValueError(f"the elements {key!r} are fewer than the file says")
        name = str(key)
        if name not in storages:
            storages[name] = _Storage(kind.dtype, int(count), lambda: _content(path, *places[name]))
        return storages[name]

    # A map of the file reads what there is, where a file allocates what a description says first.
    with open(path, "rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as file:

        def load() -> Any:
            return _Reader(file, storage).load()

        if load() != OLD_MAGIC or load() != _OLD_PROTOCOL:
            raise ValueError("it is of another version than PyTorch's files before 1.6")
        told = load()
        if isinstance(told, Mapping) and told.get("little_endian") is False:
            raise ValueError("its numbers are big-endian, which is not read")
        result = _flat(load())
        for key in load():
            count = int.from_bytes(file.read(8), "little", signed=True)
            held = storages.get(str(key))
            if held is None or count != held.count:
                raise ValueError(f"the elements {key!r} are not those that the file says")
            places[str(key)] = file.tell(), count * held.dtype.itemsize
            if file.tell() + count * held.dtype.itemsize > size:
                raise ValueError(f"it ends before the elements {key!r} do")
            file.seek(count * held.dtype.itemsize, os.SEEK_CUR)
    missing = storages.keys() - places.keys()
    if missing:
        raise ValueError(f"it lacks the elements {min(missing)!r}")
    return result


def _content(path: str, place: int, count: int) -> bytes:
    with open(path, "rb") as file:
        file.seek(place)
        content = file.read(count)
    if len(content) != count:
        raise ValueError("it ends before its elements do")
    return content


def _flat(value: object) -> dict[str, Entry]:
    """The tensors of nested dicts and lists, by the keys on the way; numbers and texts beside them are left out."""
    result: dict[str, Entry] = {}
    for met, (name, part) in enumerate(_flattened(value, "", 0)):
        check_count(met)
        if isinstance(part, _Tensor):
            if name in result:
                raise ValueError(f"there are two arrays {name!r}")
            result[name] = part.entry
    if not result:
        raise ValueError("there is no tensor in it")
    return result


def _flattened(value: object, name: str, depth: int) -> Iterator[tuple[str, Any]]:
    if depth > MAX_DEPTH:
        raise ValueError("it is nested too deep")
    if isinstance(value, Mapping):
        parts: Any = value.items()
    elif isinstance(value, (list, tuple)):
        parts = enumerate(value)
    else:
        yield name, value
        return
    yield name, None  # so that empty ones are counted, too
    for key, part in parts:
        if not isinstance(part, (_Tensor, Mapping, list, tuple)):
            continue
        yield from _flattened(part, f"{name}.{key}" if name else str(key), depth + 1)
