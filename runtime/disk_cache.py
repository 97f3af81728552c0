"""The on-disk cache: payloads by key, private to the user, verified when read, bounded in size.

A folder that is missing, read-only or full never stops anything: the cache then silently does without
(``HF_LOG=cache`` says so, once).  An entry that is damaged, cut short or owned by another user is as if absent, and
is written anew.  Writing is atomic, so processes share a folder without locks.
"""

from __future__ import annotations

import contextlib
import functools
import os
import stat as stat_module
import struct
import sys
import time
from dataclasses import dataclass
from typing import Any

from hybridflow import flags
from hybridflow.runtime import locks

# hashlib and tempfile are imported where they are used: nothing is hashed or written before something is compiled, and
# importing hybridflow should cost no more than it must.

LIMIT = 512 << 20  # bytes of all entries together; the least recently used go first
_KEEP = 0.8  # of the limit, after a clean-up, so that clean-ups are rare
_SUFFIX, _TEMPORARY = ".hfc", ".tmp"
_MAGIC = b"hybridflow-cache-1\n"
_HEADER = struct.Struct(f"<{len(_MAGIC)}s32s32sQ")  # magic, sha256 of key, sha256 of payload, payload bytes
_STALE = 3600.0  # seconds after which a temporary file is what a killed process left behind
_FRESH = 60.0  # seconds within which a use is not recorded again

_lock = locks.make()
_sizes: dict[str, int] = {}  # bytes in each folder that this process writes to, as far as it knows
_logged: set[str] = set()


@dataclass(frozen=True)
class Entry:
    """One payload on disk: the digest of its key, its bytes with the header, and when it was last used."""

    digest: str
    bytes: int
    used: float


@dataclass(frozen=True)
class Stat:
    """The state of the cache; ``folder`` is None where it is switched off or there is no home to keep it in."""

    folder: str | None
    entries: int
    bytes: int
    limit: int
    writable: bool


def _sha256(content: bytes = b"") -> Any:
    import hashlib

    return hashlib.sha256(content)


def folder() -> str | None:
    """Where entries lie: HF_CACHE_DIR, else ``hybridflow`` in the user's cache folder; None when switched off."""
    chosen = flags.CACHE_DIR.value
    if chosen == "off":
        return None
    if chosen:
        return os.path.abspath(os.path.expanduser(chosen))
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):  # the XDG specification says to ignore a relative path
        base = os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "hybridflow") if os.path.isabs(base) else None


def get(key: str) -> bytes | None:
    """The payload that was put under ``key``, or None."""
    where = folder()
    if where is None:
        return None
    digest = _sha256(key.encode()).digest()
    path = os.path.join(where, digest.hex() + _SUFFIX)
    try:
        # No links: an entry is a file that this user wrote here.
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0))
    except OSError:
        return None
    try:
        with open(handle, "rb") as file:
            status = os.fstat(handle)
            content = file.read() if _is_ours(status) else b""
    except OSError as error:
        _log(f"cannot read {path}: {error}")
        return None
    payload = _payload(content, digest)
    if payload is None:
        _log(f"ignores {path}: damaged, or not written by this user")
        return None
    if time.time() - status.st_mtime > _FRESH:
        with contextlib.suppress(OSError):
            os.utime(path)
    return payload


def put(key: str, payload: bytes) -> None:
    """Keep ``payload`` under ``key``, if that is possible."""
    where = folder()
    if where is None:
        return
    digest = _sha256(key.encode()).digest()
    header = _HEADER.pack(_MAGIC, digest, _sha256(payload).digest(), len(payload))
    import tempfile

    try:
        os.makedirs(where, mode=0o700, exist_ok=True)
        handle, temporary = tempfile.mkstemp(suffix=_TEMPORARY, dir=where)  # mode 0600
        try:
            with open(handle, "wb") as file:
                file.write(header)
                file.write(payload)
            os.replace(temporary, os.path.join(where, digest.hex() + _SUFFIX))
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
    except OSError as error:
        _log(f"works without {where}: {error}")
        return
    _account(where, len(header) + len(payload))


def entries() -> list[Entry]:
    """All entries, least recently used first."""
    where = folder()
    found = [] if where is None else _scan(where)
    return [Entry(os.path.basename(path).removesuffix(_SUFFIX), size, used) for used, size, path in found]


def stat() -> Stat:
    """Size and place of the cache."""
    where, found = folder(), entries()
    writable = where is not None and os.access(_existing(where), os.W_OK | os.X_OK)
    return Stat(where, len(found), sum(entry.bytes for entry in found), LIMIT, writable)


def clear() -> int:
    """Remove all entries; returns how many went."""
    where = folder()
    if where is None:
        return 0
    removed = sum(_remove(path) for _, _, path in _scan(where))
    with _lock:
        _sizes.pop(where, None)
    return removed


@functools.cache
def fingerprint(*folders: str) -> str:
    """Digest of the Python sources in some folders: the part of a key that stands for the code that made a payload."""
    digest = _sha256()
    for top in folders:
        for where, below, names in os.walk(top):
            below.sort()
            for name in sorted(names):
                if name.endswith(".py"):
                    with open(os.path.join(where, name), "rb") as file:
                        content = file.read()
                    digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


def _payload(content: bytes, digest: bytes) -> bytes | None:
    if len(content) < _HEADER.size:
        return None
    magic, key, checksum, size = _HEADER.unpack_from(content)
    payload = content[_HEADER.size :]
    if magic != _MAGIC or key != digest or size != len(payload) or _sha256(payload).digest() != checksum:
        return None
    return payload


def _is_ours(status: os.stat_result) -> bool:
    """A regular file that this user owns and nobody else may write: machine code is run as it is read."""
    return stat_module.S_ISREG(status.st_mode) and status.st_uid == os.geteuid() and status.st_mode & 0o022 == 0


def _scan(where: str) -> list[tuple[float, int, str]]:
    """(last use, bytes, path) of each entry, oldest first.  Removes what killed processes left behind."""
    found = []
    try:
        with os.scandir(where) as items:
            for item in items:
                try:
                    status = item.stat(follow_symlinks=False)
                except OSError:  # removed meanwhile
                    continue
                if item.name.endswith(_SUFFIX):
                    found.append((status.st_mtime, status.st_size, item.path))
                elif item.name.endswith(_TEMPORARY) and time.time() - status.st_mtime > _STALE:
                    _remove(item.path)
    except OSError:
        return []
    return sorted(found)


def _account(where: str, size: int) -> None:
    """Note that an entry was written; clean up when the folder has outgrown the limit."""
    with _lock:
        if where in _sizes:
            _sizes[where] += size
        else:
            _sizes[where] = sum(bytes_ for _, bytes_, _ in _scan(where))
        if _sizes[where] <= LIMIT:
            return
        found = _scan(where)
        total = sum(bytes_ for _, bytes_, _ in found)
        for _, bytes_, path in found:
            if total <= LIMIT * _KEEP:
                break
            total -= bytes_ * _remove(path)
        _sizes[where] = total


def _remove(path: str) -> bool:
    try:
        os.unlink(path)
    except OSError:
        return False
    return True


def _existing(path: str) -> str:
    """The path, or its nearest ancestor that exists."""
    while not os.path.exists(path) and os.path.dirname(path) != path:
        path = os.path.dirname(path)
    return path


def _log(message: str) -> None:
    """Say something once under HF_LOG=cache."""
    if message not in _logged and "cache" in flags.LOG.value.split(","):
        _logged.add(message)
        print(f"[cache] {message}", file=sys.stderr)
