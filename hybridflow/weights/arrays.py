"""Arrays of a file by name, each of which is read when it is asked for."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from hybridflow.array.creation import asarray
from hybridflow.core.file_errors import reading
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import DTypeLike
from hybridflow.errors import ArgumentError, CheckpointError

STAGE = "weights"
AXES = 64  # of an array, at most
MAX_ARRAYS = 1_000_000  # of a file
MAX_DEPTH = 64  # of names within names


class Entry(NamedTuple):
    """An array that was not read yet.  ``read`` returns it in native byte order."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    read: Callable[[], np.ndarray]


class Weights(Mapping[str, Tensor]):
    """Arrays of a file by name.  An array is read when it is asked for.

    Args:
        path: the file, for messages.
        format: the kind of the file: "safetensors", "npz", "torch", "keras", "keras-legacy" or "tensorflow".
        entries: what is in the file, by name.

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "arrays.npz")
    >>> np.savez(path, kernel=np.ones((2, 3), np.float32))
    >>> weights = hf.weights.read(path)
    >>> weights
    <Weights of arrays.npz (npz): 1 array, 6 elements>
    >>> weights.shape("kernel"), str(weights.dtype("kernel"))
    ((2, 3), 'float32')
    """

    def __init__(self, path: str, format: str, entries: Mapping[str, Entry]) -> None:
        self.path, self.format = path, format
        self._entries = dict(entries)

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of an array, which is not read for it.

        Args:
            name: the name of the array.

        Returns:
            A tuple of ints.

        Raises:
            KeyError: for a name that the file lacks.
        """
        return self._entries[name].shape

    def dtype(self, name: str) -> np.dtype[Any]:
        """The dtype of an array.

        Args:
            name: the name of the array.

        Returns:
            A dtype of NumPy's.

        Raises:
            KeyError: for a name that the file lacks.
        """
        return self._entries[name].dtype

    def numpy(self, name: str) -> np.ndarray:
        """An array of the file.

        Args:
            name: the name of the array.

        Returns:
            An array of NumPy's.

        Raises:
            KeyError: for a name that the file lacks.
            CheckpointError: where it is damaged.
        """
        entry = self._entries[name]
        with reading(CheckpointError, STAGE, self.path):
            array = entry.read()
            if array.shape != entry.shape or array.dtype != entry.dtype:
                raise ValueError(f"{name} is {array.dtype}{list(array.shape)}, not what the file says of it")
        return array

    def renamed(self, names: Mapping[str, str]) -> Weights:
        """The same arrays by other names.

        Args:
            names: a dict from the names that are kept to their new ones.

        Returns:
            The arrays by their new names.
        """
        return Weights(self.path, self.format, {new: self._entries[old] for old, new in names.items()})

    def __getitem__(self, name: str) -> Tensor:
        return asarray(self.numpy(name))

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        count = sum(math.prod(entry.shape) for entry in self._entries.values())
        arrays = "1 array" if len(self) == 1 else f"{len(self)} arrays"
        return f"<Weights of {self.path.rstrip('/').rpartition('/')[2]} ({self.format}): {arrays}, {count} elements>"


def unread(shape: Sequence[int], dtype: DTypeLike, read: Callable[[], np.ndarray]) -> Entry:
    """An entry whose shape comes from a file.  Raises ValueError for what no array has."""
    extents = tuple([int(extent) for extent in shape])
    native = np.dtype(dtype).newbyteorder("=")
    if native.hasobject:
        raise ValueError("arrays of Python objects are not read: they could run code")
    if len(extents) > AXES or min(extents, default=0) < 0:
        raise ValueError(f"there is no array of the shape {extents}")
    if math.prod(extent or 1 for extent in extents) * native.itemsize >= 1 << 63:
        raise ValueError(f"there is no array of the shape {extents}")
    return Entry(extents, native, read)


def check_count(count: int) -> None:
    """Raise ArgumentError where a file has more arrays than any model."""
    if count > MAX_ARRAYS:
        raise ArgumentError(STAGE, f"there are more than {MAX_ARRAYS} arrays.")
