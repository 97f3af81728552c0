"""The checkpoints of a run: numbered files in a folder, of which the last are kept."""

from __future__ import annotations

import contextlib
import json
import os
import re
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hybridflow.checkpoint import files, pieces
from hybridflow.checkpoint.checkpoint import SUFFIX, Checkpoint, Report, in_pieces, write_state
from hybridflow.core import processes
from hybridflow.errors import ArgumentError


def checkpoints(directory: str | os.PathLike[str], name: str = "ckpt") -> list[str]:
    """The files ``{name}-{number}.safetensors`` of a folder, in the order of their numbers.

    Args:
        directory: a folder.
        name: what names of files begin with.

    Returns:
        A list of paths, empty where there are none.

    >>> hf.checkpoint.checkpoints("no such folder")
    []
    """
    pattern = re.compile(rf"{re.escape(name)}-(\d+){re.escape(SUFFIX)}")
    paths = []
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        for entry in os.listdir(directory):
            match = pattern.fullmatch(entry)
            if match:
                paths.append((int(match[1]), os.path.join(directory, entry)))
    return [path for _, path in sorted(paths)]


def latest_checkpoint(directory: str | os.PathLike[str], name: str = "ckpt") -> str | None:
    """The last of ``hf.checkpoint.checkpoints``.

    Args:
        directory: a folder.
        name: what names of files begin with.

    Returns:
        A path, or None.

    >>> hf.checkpoint.latest_checkpoint("no such folder") is None
    True
    """
    paths = checkpoints(directory, name)
    return paths[-1] if paths else None


class CheckpointManager:
    """Checkpoint manager: saves a checkpoint again and again into a folder, and keeps the last files.

    Args:
        checkpoint: an ``hf.checkpoint.Checkpoint``.
        directory: the folder, which is made if it is not there.
        max_to_keep: how many files are kept; None for all.
        keep_checkpoint_every_n_hours: in how many hours one more file is kept for ever; None for never.
        checkpoint_name: what names of files begin with.
        init_fn: a function without arguments that ``restore_or_initialize`` calls where there is nothing to restore.
        sharded: whether each process writes a piece, see ``Checkpoint.save``.

    >>> import os, tempfile
    >>> step = hf.Variable(0)
    >>> checkpoint = hf.checkpoint.Checkpoint(step=step)
    >>> manager = hf.checkpoint.CheckpointManager(checkpoint, tempfile.mkdtemp(), max_to_keep=2)
    >>> for _ in range(3):
    ...     _ = step.assign_add(1), manager.save()
    >>> [os.path.basename(path) for path in manager.checkpoints]
    ['ckpt-2.safetensors', 'ckpt-3.safetensors']
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        directory: str | os.PathLike[str],
        max_to_keep: int | None = 5,
        keep_checkpoint_every_n_hours: float | None = None,
        checkpoint_name: str = "ckpt",
        init_fn: Callable[[], Any] | None = None,
        sharded: bool = False,
    ) -> None:
        if max_to_keep is not None and max_to_keep < 1:
            raise ArgumentError("CheckpointManager", f"max_to_keep is {max_to_keep!r}; it must be 1 or more, or None.")
        self.checkpoint, self.directory, self._name = checkpoint, os.fspath(directory), checkpoint_name
        self._max, self._hours, self._init = max_to_keep, keep_checkpoint_every_n_hours, init_fn
        self._kept_at = time.time()
        self._sharded = sharded
        self._begun: pieces.Writing | None = None  # a checkpoint in pieces that is there when all have written theirs
        self._writer: threading.Thread | None = None
        self._failure: BaseException | None = None

    @property
    def checkpoints(self) -> list[str]:
        """The files that there are, oldest first."""
        return checkpoints(self.directory, self._name)

    @property
    def latest_checkpoint(self) -> str | None:
        """The last file, or None."""
        return latest_checkpoint(self.directory, self._name)

    def save(self, checkpoint_number: int | None = None, wait: bool = True) -> str:
        """Save the state that the objects have now.

        Without ``wait`` a thread writes the file while the program goes on.  ``wait()``, or the next ``save``, waits
        for it and raises what it raised.

        A sharded checkpoint is there when all processes have waited.

        Args:
            checkpoint_number: the number of the file; by default the next one.
            wait: whether to wait until the file is written.

        Returns:
            The path of the file.

        Raises:
            OSError: where it cannot be written.
        """
        self.wait()
        last = self.latest_checkpoint
        counter = self.checkpoint.save_counter
        if last is not None:
            counter = max(counter, int(last[: -len(SUFFIX)].rpartition("-")[2]))
        counter = counter + 1 if checkpoint_number is None else checkpoint_number
        self.checkpoint.save_counter = counter
        path = os.path.join(self.directory, f"{self._name}-{counter}{SUFFIX}")
        state = self.checkpoint._state()
        if self._sharded:
            self._begun = in_pieces(path, state, counter)
            self._writer = threading.Thread(target=self._begun.write)
            self._writer.start()
            if wait:
                self.wait()
        elif wait:
            self._write(path, state, counter)
        else:
            self._writer = threading.Thread(target=self._write_aside, args=(path, state, counter))
            self._writer.start()
        return path

    def _write(self, path: str, state: Any, counter: int) -> None:
        def write() -> None:
            write_state(path, state, counter)
            self._drop_old(path)

        processes.once(f"writing {os.path.basename(path)}", write)

    def _write_aside(self, path: str, state: object, counter: int) -> None:
        try:
            self._write(path, state, counter)
        except BaseException as error:
            self._failure = error

    def wait(self) -> None:
        """Wait for a file that is being written.  Raises what writing it raised."""
        if self._writer is not None:
            self._writer.join()
            self._writer = None
        if self._begun is not None:
            begun, self._begun = self._begun, None
            begun.finish()
            processes.once("removing old checkpoints", lambda: self._drop_old(begun.path))
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    def _drop_old(self, written: str) -> None:
        if self._max is None:
            return
        permanent = self._for_ever()
        if permanent is None:
            warnings.warn(
                f"{self._index} cannot be read, which says what is kept for ever: no checkpoint is deleted. "
                "Remove that file if none is to be kept.",
                stacklevel=4,
            )
            return
        others = [path for path in self.checkpoints if os.path.basename(path) not in permanent and path != written]
        for path in others[: max(len(others) + 1 - self._max, 0)]:
            if self._hours is not None and time.time() - self._kept_at >= self._hours * 3600:
                self._kept_at = time.time()
                permanent.append(os.path.basename(path))
                text = json.dumps(permanent).encode()
                files.replace(self._index, lambda file: file.write(text))  # noqa: B023  # it is called at once
                continue
            pieces.remove(path)

    @property
    def _index(self) -> Path:
        return Path(self.directory) / f"{self._name}-kept.json"

    def _for_ever(self) -> list[str] | None:
        """The files that are kept beside the last ones, in later processes too; None where nobody can tell."""
        try:
            index = json.loads(self._index.read_bytes().decode())
        except FileNotFoundError:
            return []
        except (OSError, ValueError, RecursionError):
            return None
        return index if isinstance(index, list) and all(isinstance(name, str) for name in index) else None

    def restore_or_initialize(self) -> str | None:
        """Restore the last file, or call ``init_fn`` where there is none.

        Returns:
            The path of the file, or None.

        Raises:
            CheckpointError: where the file and the objects differ in what there is.
        """
        path = self.latest_checkpoint
        if path is not None:
            self.checkpoint.restore(path)
        elif self._init is not None:
            self._init()
        return path

    def restore(self, path: str | None = None, **options: Any) -> Report:
        """Restore a file.

        Args:
            path: the path of the file, by default the last.
            **options: see ``Checkpoint.restore``.

        Returns:
            What was restored.

        Raises:
            CheckpointError: where the file and the objects differ in what there is.
        """
        return self.checkpoint.restore(self.latest_checkpoint if path is None else path, **options)
