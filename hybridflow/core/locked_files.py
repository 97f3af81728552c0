"""Parts of files that are being written: whoever writes one has it locked, so that others can tell what was left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

try:
    import fcntl
except ImportError:  # where there is no POSIX
    fcntl = None  # type: ignore[assignment]


def lock(file: Any) -> bool:
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


def is_left(path: Path) -> bool:
    """Whether nobody writes a part of a file any more: whoever does has it locked, on this machine and others."""
    if fcntl is None:
        return False
    try:
        with open(path, "rb+") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
