"""Rows of NumPy's files.

Small files are read as a whole.  Of large ones each row is read when it is wanted: a file that is mapped into memory,
and that another process cuts short or writes anew, ends the process that reads it (SIGBUS), which nobody can catch.
"""

from __future__ import annotations

import math
import os
import weakref
from collections.abc import Callable
from typing import Any, BinaryIO

import numpy as np

from hybridflow.core.promotion import is_supported
from hybridflow.core.tensor import wrap
from hybridflow.data.pipeline import Table
from hybridflow.data.tensor_slices import rows_of
from hybridflow.errors import DataError
from hybridflow.jit.tensor_spec import TensorSpec

_SMALL = 1 << 26  # bytes of a file that is read as a whole
_STAGE = "NumpyDataset"


def table_of(path: str) -> Table:
    """The rows of a file of NumPy's.  Raises DataError for a damaged one, and for arrays of objects."""
    with open(path, "rb") as file:  # what the system says of a file that cannot be opened is an error of its own
        try:
            layout = _layout(file) if os.fstat(file.fileno()).st_size > _SMALL else None
            if layout is not None:
                return FileTable(path, *layout)
            file.seek(0)
            array = np.load(file, allow_pickle=False)
            if not isinstance(array, np.ndarray):
                with array:
                    return rows_of({name: array[name] for name in array.files})
            array.flags.writeable = False
            return rows_of(array)
        except DataError:
            raise
        except Exception as error:  # whatever zipfile, zlib and NumPy's own parser raise
            raise DataError(_STAGE, f"{path} cannot be read: {error}.") from None


def _layout(file: BinaryIO) -> tuple[int, tuple[int, ...], np.dtype[Any]] | None:
    """Where the elements of a ``.npy`` begin, their shape and dtype; None for a file that is read as a whole.  Raises
    ValueError for a damaged one."""
    if file.read(6) != b"\x93NUMPY":
        return None
    file.seek(0)
    version = np.lib.format.read_magic(file)
    read: Any = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}.get(version)
    if read is None:
        return None
    shape, is_turned, dtype = read(file)
    if is_turned or not shape or dtype.hasobject or not dtype.isnative or not is_supported(dtype):
        return None
    if any(extent < 0 for extent in shape):
        raise ValueError(f"its shape is {shape}")
    if math.prod(shape) * dtype.itemsize > os.fstat(file.fileno()).st_size - file.tell():
        raise ValueError(f"it ends before its {shape} elements do")
    return file.tell(), shape, dtype


class FileTable(Table):
    """The rows of an array in a file.  Raises DataError where the file is written anew while it is read."""

    def __init__(self, path: str, start: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self._described = path, start, shape, dtype
        self._open()
        self._stamp = self._now()

    def _open(self) -> None:
        self.path, self.start, self.shape, self.dtype = self._described
        self.length = self.shape[0]
        self._row_bytes = math.prod(self.shape[1:]) * self.dtype.itemsize
        self._handle = os.open(self.path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        weakref.finalize(self, os.close, self._handle)

    def _now(self) -> tuple[int, int]:
        status = os.fstat(self._handle)
        return status.st_size, status.st_mtime_ns

    def __getstate__(self) -> Any:
        return self._described, self._stamp

    def __setstate__(self, state: Any) -> None:
        self._described, self._stamp = state
        self._open()

    def _rows(self, start: int, into: np.ndarray) -> None:
        left = into.reshape(-1).view(np.uint8).data if into.nbytes else memoryview(b"")
        place = self.start + start * self._row_bytes
        while len(left):
            count = os.preadv(self._handle, [left], place)
            if not count:
                break
            left, place = left[count:], place + count
        if len(left) or self._now() != self._stamp:
            raise DataError(
                _STAGE, f"{self.path} was written anew, or cut short, while it is read. Make a new dataset."
            )

    def _read_only_tensor(self, array: np.ndarray) -> Any:
        array.flags.writeable = False
        return wrap(array)

    def row(self) -> Callable[[int], Any]:
        def read(k: int) -> Any:
            array = np.empty(self.shape[1:], self.dtype)
            self._rows(k, array)
            return self._read_only_tensor(array)

        return read

    def span(self, start: int, stop: int) -> Any:
        start, stop, _ = slice(start, stop).indices(self.length)
        array = np.empty((max(stop - start, 0), *self.shape[1:]), self.dtype)
        self._rows(start, array)
        return self._read_only_tensor(array)

    def pick(self, numbers: np.ndarray) -> Any:
        array = np.empty((len(numbers), *self.shape[1:]), self.dtype)
        for k, number in enumerate(numbers.tolist()):
            self._rows(number, array[k : k + 1])
        return self._read_only_tensor(array)

    def spec(self) -> Any:
        return TensorSpec(self.shape[1:], self.dtype)
