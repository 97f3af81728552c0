"""Parts of files that are being written: whoever writes one has it locked, so that others can tell what was left.
Folders in which one process at a time changes a file."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

try:
    import fcntl
except ImportError:  # where there is no POSIX
    fcntl = None  # type: ignore[assignment]


def begin_part(new_name: Callable[[], Path]) -> tuple[Path, Any]:
    """A new file that is locked for as long as it is open; ``new_name`` gives names that nobody else has.

    Raises OSError where it cannot be made.
    """
    while True:
        path = new_name()
        file = open(path, "xb")  # noqa: SIM115  # the caller closes it
        if _lock(file) and _is_file(path, file):
            return path, file
        file.close()  # in the moment before it was locked somebody took it for one that was left


@contextlib.contextmanager
def abandoned_part(path: Path) -> Iterator[bool]:
    """Whether nobody writes a part of a file any more: whoever does has it locked, on this machine and others.

    It stays locked in the block, which can remove it: no writer takes it in the meantime for its own.
    """
    if fcntl is None:
        yield False
        return
    try:
        file = open(path, "rb+")  # noqa: SIM115  # the block below closes it
    except OSError:
        yield False
        return
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_left = _is_file(path, file)  # else it was finished and renamed before it was locked
        except OSError:
            is_left = False
        yield is_left


@contextlib.contextmanager
def locked_folder(path: str) -> Iterator[None]:
    """No other thread or process is in such a block for the folder, on this machine.  Where folders cannot be locked,
    and where somebody has it locked for longer than a change takes, the block goes on without."""
    descriptor = -1
    if fcntl is not None:
        with contextlib.suppress(OSError):
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        end = time.monotonic() + _PATIENCE
        while descriptor >= 0:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > end:
                    break
                time.sleep(0.005)
            except OSError:  # of a file system that has no locks
                break
        yield
    finally:
        if descriptor >= 0:
            os.close(descriptor)


_PATIENCE = 10.0  # seconds: a change takes a millisecond, unless a process is stopped in it


def _lock(file: Any) -> bool:
    """Lock an open file while it is open; False where somebody has it locked.  Where files cannot be locked, True."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # of a file system that has no locks
        return True
    return True


def _is_file(path: Path, file: Any) -> bool:
    """Whether an open file still has its name."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(file.fileno()))
    except OSError:
        return False
