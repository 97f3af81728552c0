"""Checkpoints in pieces: each process writes its share of the bytes, and an index says where they are.

The pieces of ``run-1.safetensors`` lie in the folder ``run-1.safetensors.pieces``, files of the safetensors format in
which an array is whole, or a run of its elements.  The index has the name of the checkpoint and is a file of that
format, too, without arrays.  It is written last, when all pieces are on the disk, and replaces an older one at once: at
any moment it names pieces that are whole.
"""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from hybridflow.checkpoint import files
from hybridflow.core import processes
from hybridflow.core.tensor import Tensor, wrap
from hybridflow.errors import CheckpointError, ReplicaError

PIECES = "pieces"  # the text of an index that says where they are


class Writing:
    """A checkpoint that all processes write, on its way: all make one, ``write`` their pieces, and ``finish``."""

    def __init__(
        self, path: str | os.PathLike[str], arrays: Mapping[str, np.ndarray], texts: Mapping[str, str], held: object
    ) -> None:
        """``held`` is kept until the end: what the arrays are the values of."""
        self.path, self._held = os.fspath(path), held
        self._path, self._arrays, self._texts = Path(path), arrays, texts
        self._rank, self._count = processes.place()
        number = processes.say(f"beginning {self._path.name}", [int.from_bytes(os.urandom(8), "little") >> 2])[0][0]
        self._names = [f"{number:016x}-{k + 1:05}-of-{self._count:05}.safetensors" for k in range(self._count)]
        self._failure: BaseException | None = None

    @property
    def _mine(self) -> Path:
        return folder_of(self._path) / self._names[self._rank]

    def write(self) -> None:
        """Write the piece of this process, in any thread.  ``finish`` raises what went wrong."""
        try:
            self._mine.parent.mkdir(parents=True, exist_ok=True)
            arrays: dict[str, np.ndarray] = {}
            for name, runs in self._runs().items():
                for file, begin, end in runs:
                    if file == self._names[self._rank]:
                        array = self._arrays[name]
                        arrays[name] = array if end - begin == array.size else array.reshape(-1)[begin:end]
            files.write_here(self._mine, arrays, {})
        except BaseException as error:
            self._failure = error

    def _runs(self) -> dict[str, list[tuple[str, int, int]]]:
        """For each array the pieces that it lies in, with its elements there: shares of all bytes, one behind the
        other."""
        total = sum(array.nbytes for array in self._arrays.values())
        bounds = [total * k // self._count for k in range(1, self._count)]
        result: dict[str, list[tuple[str, int, int]]] = {}
        start = 0
        for name, array in self._arrays.items():
            size = array.dtype.itemsize
            cuts = [0, *(min(max(-(-(bound - start) // size), 0), array.size) for bound in bounds), array.size]
            runs = [(file, a, b) for file, a, b in zip(self._names, cuts, cuts[1:]) if a < b]
            result[name] = runs or [(self._names[0], 0, 0)]
            start += array.nbytes
        return result

    def finish(self) -> None:
        """When all have written: the checkpoint is there.  Where one failed, what was there before is, and all raise.

        Raises OSError of this process, ReplicaError of another.
        """
        failure = self._failure
        code = 0 if failure is None else getattr(failure, "errno", None) or errno.EIO
        codes = [said for (said,) in processes.say(f"end of {self._path.name}", [code])]
        if any(codes):
            with contextlib.suppress(OSError):
                self._mine.unlink()
            with contextlib.suppress(OSError):
                folder_of(self._path).rmdir()  # unless there are others in it
            processes.say(f"removing {self._path.name}", [0])  # else the first error may end who has not yet done so
            if failure is not None:
                raise failure
            first = next(rank for rank, said in enumerate(codes) if said)
            raise ReplicaError("checkpoint", f"{self._path}: rank {first} fails: {os.strerror(codes[first])}.")
        table = {
            name: {"dtype": files.short_name(array.dtype), "shape": list(array.shape), "runs": self._runs()[name]}
            for name, array in self._arrays.items()
        }
        processes.once(f"writing {self._path.name}", lambda: self._commit({**self._texts, PIECES: json.dumps(table)}))

    def _commit(self, texts: dict[str, str]) -> None:
        files.write_here(self._path, {}, texts)
        with contextlib.suppress(OSError):
            for entry in os.listdir(folder_of(self._path)):
                if entry not in self._names:  # of what was there before, or of who was ended
                    (folder_of(self._path) / entry).unlink()


def folder_of(path: str | os.PathLike[str]) -> Path:
    """Where the pieces of a checkpoint are."""
    return Path(f"{os.fspath(path)}.pieces")


def remove(path: str | os.PathLike[str]) -> None:
    """Remove a checkpoint, whatever it is made of."""
    with contextlib.suppress(FileNotFoundError):
        Path(path).unlink()
    import shutil

    shutil.rmtree(folder_of(path), ignore_errors=True)


class Pieces(files.File):
    """What ``files.File`` is of a checkpoint in pieces, by its index.

    Raises CheckpointError where the index or a piece is damaged, or a piece is missing.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(path)
        self._runs: dict[str, list[tuple[str, int, int]]] = {}
        for name, entry in self._parsed(self.texts[PIECES].encode()).items():
            try:
                count, place = math.prod(entry["shape"]), 0
                for file, begin, end in entry["runs"]:
                    if begin != place or end < begin or os.path.basename(file) != file:
                        raise ValueError
                    place = end
                if place != count:
                    raise ValueError
                size = count * files.dtype_of(entry["dtype"]).itemsize
                shown = {"dtype": entry["dtype"], "shape": entry["shape"], "data_offsets": [0, size]}
                self._entries[name] = self._entry(name, shown, size)
                self._runs[name] = [(file, begin, end) for file, begin, end in entry["runs"]]
            except (KeyError, TypeError, ValueError):
                raise self._damaged(f"the pieces of the array {name!r} do not fit together") from None

    def tensors(self, names: Iterable[str]) -> dict[str, Tensor]:
        names = list(names)
        wanted: dict[str, list[str]] = {}
        for name in names:
            for file, _, _ in self._runs[name]:
                wanted.setdefault(file, []).append(name)
        parts: dict[str, list[Tensor]] = {name: [] for name in names}
        for file in sorted(wanted):  # which is the order of their runs
            try:
                piece = files.File(folder_of(self.path) / file)
            except FileNotFoundError:
                raise CheckpointError("checkpoint", f"{self.path} lacks its piece {file}.") from None
            lacking = [name for name in wanted[file] if name not in piece.names]
            if lacking:
                raise self._damaged(f"its piece {file} lacks the array {lacking[0]!r}")
            for name, part in piece.tensors(wanted[file]).items():
                parts[name].append(part)
        return {name: self._whole(name, parts[name]) for name in names}

    def _whole(self, name: str, parts: list[Tensor]) -> Tensor:
        dtype, shape = self.dtype(name), self.shape(name)
        arrays = [part.numpy().reshape(-1) for part in parts]
        sizes = [(array.size, array.dtype) for array in arrays]
        if sizes != [(end - begin, dtype) for _, begin, end in self._runs[name]]:
            raise self._damaged(f"the pieces of the array {name!r} do not fit together")
        whole = arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
        whole.flags.writeable = False
        return wrap(whole.reshape(shape))
