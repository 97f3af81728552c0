"""Which entry of the disk cache has the machine code of a function: one file of the folder, which processes append to.

A record is the key of a function and the digest of an entry.  It promises nothing: entries say themselves which
functions they hold, so one that is wrong, or whose entry is gone, costs a compilation.  Appending a few hundred bytes
is one operation of the system; where a disk is full and part of that gets lost, the file is written anew.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping

from hybridflow.runtime import fork_safe_locks
from hybridflow.runtime.machine import disk_cache

_MOST = 1 << 20  # bytes of the file; the older half goes
_RECORD = struct.Struct("16s32s")
KEY = 16  # bytes


class Index:
    """The file of one folder as this process knows it."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._path = os.path.join(folder, disk_cache.INDEX)
        self._known: dict[bytes, bytes] = {}
        self._state: tuple[int, int] | None = None  # the file, and how much of it was read
        self._last = b""  # the last whole record that was read
        self._lock = fork_safe_locks.make()  # while something is read

    def get(self, key: bytes) -> bytes | None:
        """The digest of the entry that holds a function, as far as anybody has noted."""
        return self._known.get(key)

    def refresh(self) -> None:
        """Read what others have noted since it was last read."""
        with self._lock:
            self._refresh()

    def _refresh(self) -> None:
        try:
            status = os.stat(self._path)
        except OSError:
            self._known, self._state = {}, None
            return
        before = self._state
        if (status.st_ino, status.st_size) == before:
            return
        # Another file, or less of it: somebody wrote it anew.
        start = before[1] if before is not None and before[0] == status.st_ino and before[1] < status.st_size else 0
        start = max(0, start - start % _RECORD.size - _RECORD.size)
        content = disk_cache.read(self._path, start)
        # Systems give a new file the number of one that is gone, and it may be written anew just now: what follows the
        # record that was read last is new, and that record says whether this is still the file.
        if start and (content is None or content.content[: _RECORD.size] != self._last):
            start = 0
            content = disk_cache.read(self._path)
        if content is None:
            self._known, self._state = {}, None
            return
        known = self._known if start else {}
        whole = len(content.content) // _RECORD.size * _RECORD.size
        known.update(_RECORD.iter_unpack(content.content[:whole]))
        self._last = content.content[whole - _RECORD.size : whole] if whole else b""
        self._known, self._state = known, (content.status.st_ino, start + len(content.content))

    def add(self, entries: Mapping[bytes, bytes]) -> None:
        """Note where functions are."""
        added = b"".join([_RECORD.pack(key, digest) for key, digest in entries.items()])
        try:
            size = os.stat(self._path).st_size
        except OSError:
            size = 0
        if size % _RECORD.size == 0 and size + len(added) <= _MOST:
            disk_cache.append(self._path, added)
            return
        content = disk_cache.read(self._path)
        kept = b"" if content is None else content.content[: size // _RECORD.size * _RECORD.size]
        if len(kept) + len(added) > _MOST:
            kept = kept[-(_MOST // 2 // _RECORD.size) * _RECORD.size :]
        disk_cache.write(self._folder, disk_cache.INDEX, (kept, added), disk_cache.digest(disk_cache.INDEX).hex())
