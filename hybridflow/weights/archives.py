"""Archives of arrays: NumPy's ``.npz``, and members of other zip files, with limits on what they unpack to."""

from __future__ import annotations

import errno
import math
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from hybridflow.weights.arrays import Entry, check_count, unread

MAX_UNPACKED = 1 << 30  # bytes that a member may have beside ...
MAX_RATIO = 100  # ... so many times the bytes that it takes in the file
_HEADER = 1 << 16  # bytes of an array's header, at most


def opened(path: str) -> zipfile.ZipFile:
    """A zip file.  Raises ValueError for one whose members unpack to much more than what is in the file."""
    with _damages():
        archive = zipfile.ZipFile(path)
    try:
        check_count(len(archive.infolist()))
        for info in archive.infolist():
            if info.file_size > MAX_UNPACKED + MAX_RATIO * info.compress_size:
                raise ValueError(f"{info.filename} unpacks to {info.file_size} bytes from {info.compress_size}")
            if info.flag_bits & 1:
                raise ValueError(f"{info.filename} is encrypted")
    except BaseException:
        archive.close()
        raise
    return archive


def member(archive: zipfile.ZipFile, info: zipfile.ZipInfo | str) -> bytes:
    """A member of an archive.  Raises ValueError where it is damaged."""
    with _damages():
        return archive.read(info)


@contextmanager
def _damages() -> Iterator[None]:
    """Within this, what ``zipfile`` raises of a damaged archive is a ValueError; a place before its start is one."""
    try:
        yield
    except zipfile.BadZipFile as error:
        raise ValueError(str(error)) from None
    except OSError as error:
        if error.errno == errno.EINVAL:
            raise ValueError("a member begins before the file does") from None
        raise


def arrays(archive: zipfile.ZipFile) -> dict[str, Entry]:
    """The arrays of an archive that NumPy wrote, by their names without ``.npy``."""
    result = {}
    for info in archive.infolist():
        if info.filename.endswith(".npy"):
            result[info.filename.removesuffix(".npy")] = _entry(archive, info)
    return result


def _entry(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Entry:
    with _damages(), archive.open(info) as file:
        shape, fortran, dtype, start = _described(file)
    if not dtype.hasobject and start + math.prod(shape) * dtype.itemsize != info.file_size:
        raise ValueError(f"{info.filename} is not of the size that its header says")

    def read() -> np.ndarray:
        content = member(archive, info)[start:]
        array = np.frombuffer(content, dtype).reshape(shape, order="F" if fortran else "C")
        return np.array(array, dtype.newbyteorder("="), order="C")

    return unread(shape, dtype, read)


def _described(file: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    """The shape, the order, the dtype and the place of the elements of an array in NumPy's format."""
    version = np.lib.format.read_magic(file)
    read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}.get(version)
    if read is None:
        raise ValueError(f"arrays of NumPy's format {version} are not read")
    shape, fortran, dtype = read(file, max_header_size=_HEADER)
    return shape, fortran, dtype, file.tell()
