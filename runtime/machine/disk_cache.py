"""The on-disk cache: payloads by key, private to the user, verified when read, bounded in size.

A folder that is missing, read-only or full never stops anything: the cache then silently does without
(``HF_LOG=cache`` says so, once).  A folder of another user's, or in which others may write, is not used, and that is
said once in any case.  Where there is no home, and no other place is named, no folder is made.  An entry that is
damaged, cut short, linked or owned by another user is as if absent, and is written anew.  Writing is atomic, so
processes share a folder without locks.  Nothing but files with names as entries have them is ever removed.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import stat as stat_module
import struct
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from hybridflow import flags
from hybridflow.quick_dataclasses import dataclass
from hybridflow.runtime import fork_safe_locks

# hashlib and tempfile are imported where they are used: nothing is hashed or written before something is compiled, and
# importing hybridflow should cost no more than it must.

_KEEP = 0.8  # of the limit, after a clean-up, so that clean-ups are rare
_SUFFIX, _TEMPORARY = ".hfc", ".tmp"
INDEX = "functions.hfi"  # of the functions that entries hold, see ``function_index``
_ENTRY = re.compile(r"[0-9a-f]{64}\.hfc")
_UNFINISHED = re.compile(r"[0-9a-f]{64}\.[a-z0-9_]{8}\.tmp")  # as tempfile names them behind the digest
_MAGIC = b"hybridflow-cache-2\n"
_LABEL = 64  # bytes of the text that says to people what an entry is
# magic, sha256 of key, sha256 of payload, payload bytes, label
_HEADER = struct.Struct(f"<{len(_MAGIC)}s32s32sQ{_LABEL}s")
_OPEN_FLAGS = ("O_CLOEXEC", "O_NOFOLLOW", "O_NONBLOCK", "O_NOCTTY")
_STALE = 3600.0  # seconds after which a temporary file is what a killed process left behind
_FRESH = 60.0  # seconds within which a use is not recorded again

_BLOCK = 512  # bytes: the unit of st_blocks, whatever the file system's own

_lock = fork_safe_locks.make()
_sizes: dict[str, int] = {}  # bytes in each folder that this process writes to, as far as it knows
_clearings: list[str] = []
_logged: set[str] = set()
_began = time.time()  # when this process began to load its code


@dataclass(frozen=True)
class CacheEntry:
    """One payload on disk: the digest of its key, the bytes that it takes there, when it was last used, and what it is
    to people: the function's name."""

    digest: str
    bytes: int
    used: float
    label: str


@dataclass(frozen=True)
class Stat:
    """The state of the cache; ``folder`` is None where it is switched off or there is no home to keep it in.
    ``problem`` is why nothing is kept, None where something is."""

    folder: str | None
    entries: int
    bytes: int
    limit: int
    writable: bool
    problem: str | None = None


def _sha256(content: bytes = b"") -> Any:
    import hashlib

    return hashlib.sha256(content)


def folder() -> str | None:
    """Where entries lie: a folder for this user in HF_CACHE_DIR, else ``hybridflow`` in the user's cache folder; None
    when switched off, and where there is no home."""
    chosen = flags.CACHE_DIR.value
    if chosen == "off":
        return None
    if chosen:
        first, _, rest = chosen.partition(os.sep)
        if first.startswith("~"):
            base = _home() if first == "~" else os.path.expanduser(first)
            if base is None or not os.path.isdir(base):
                return None
            chosen = os.path.join(base, rest)
        return os.path.join(os.path.abspath(chosen), f"hybridflow-{os.geteuid()}")
    base = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(base):  # the XDG specification says to ignore a relative path
        there = os.path.isdir(base) or os.path.isdir(os.path.dirname(base.rstrip(os.sep)))
        return os.path.join(base, "hybridflow") if there else None
    home = _home()
    return None if home is None else os.path.join(home, ".cache", "hybridflow")


def _home() -> str | None:
    """The user's home, where there is one.  That of another user, with whose environment root runs, is none."""
    home = os.environ.get("HOME", "~") and os.path.expanduser("~")
    try:
        status = os.stat(home) if os.path.isabs(home) else None
    except OSError:
        return None
    if status is None or not stat_module.S_ISDIR(status.st_mode):
        return None
    return home if os.geteuid() != 0 or status.st_uid == 0 else None


def _fault(where: str) -> str | None:
    """Why the folder may not be used, None where it may, or is not there."""
    try:
        link, status = os.lstat(where), os.stat(where)
    except OSError:
        return None
    if not stat_module.S_ISDIR(status.st_mode):
        return "it is no folder"
    if {link.st_uid, status.st_uid} != {os.geteuid()}:
        return "it belongs to another user"
    return "other users may write there" if status.st_mode & 0o022 else None


def usable() -> str | None:
    """The folder, where it may be used."""
    where = folder()
    fault = None if where is None else _fault(where)
    if fault is None:
        return where
    _say(f"works without {where}: {fault}. Remove it, or set HF_CACHE_DIR.", fault != "it is no folder")
    return None


def limit() -> int:
    """Bytes that all entries together may take on disk; the least recently used go first."""
    return flags.CACHE_LIMIT.value


def set_limit(bytes_: int) -> None:
    """Set ``limit``; the next entry that is written makes room."""
    flags.CACHE_LIMIT.value = bytes_


def digest(key: str) -> bytes:
    """What an entry is found by."""
    return bytes(_sha256(key.encode()).digest())


def get(key: str) -> bytes | None:
    """The payload that was put under ``key``, or None."""
    return get_by(digest(key))


def get_by(digest: bytes) -> bytes | None:
    """The payload of an entry, or None."""
    where = usable()
    if where is None:
        return None
    path = os.path.join(where, digest.hex() + _SUFFIX)
    entry = read(path)
    if entry is None:
        return None
    payload = _payload(entry.content, digest)
    if payload is None:
        _say(f"ignores {path}: damaged, linked, or not written by this user")
    elif time.time() - entry.status.st_mtime > _FRESH:
        with contextlib.suppress(OSError):
            os.utime(path)
    return payload


class Read(NamedTuple):
    content: bytes
    status: os.stat_result


def read(path: str, start: int = 0) -> Read | None:
    """A file that this user wrote, from a byte on; None where there is none, and empty where it is another's."""
    try:
        # No links: an entry is a file that this user wrote here.  Opening a pipe must not wait for its other end.
        handle = os.open(path, os.O_RDONLY | _flags())
    except OSError:
        return None
    try:
        with open(handle, "rb") as file:
            status = os.fstat(handle)
            if start:
                file.seek(start)
            return Read(file.read() if _is_ours(status) else b"", status)
    except OSError as error:
        _say(f"cannot read {path}: {error}")
        return None


def _flags() -> int:
    return sum(getattr(os, name, 0) for name in _OPEN_FLAGS)


def append(path: str, content: bytes) -> bool:
    """Add to the end of a file that this user wrote, or that is not there; whether that was done."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | _flags(), 0o600)
        try:
            return _is_ours(os.fstat(handle)) and os.write(handle, content) == len(content)
        finally:
            os.close(handle)
    except OSError as error:
        _say(f"cannot write {path}: {error}")
        return False


def write(where: str, name: str, content: Sequence[bytes], prefix: str) -> bool:
    """Write a file of the folder at once, or not at all; whether that was done."""
    import tempfile

    try:
        os.makedirs(where, mode=0o700, exist_ok=True)
        handle, temporary = tempfile.mkstemp(_TEMPORARY, f"{prefix}.", where)  # mode 0600
        try:
            with open(handle, "wb") as file:
                file.writelines(content)
            os.replace(temporary, os.path.join(where, name))
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
    except OSError as error:
        _say(f"works without {where}: {error}")
        return False
    return True


def put(key: str, payload: bytes, label: str = "") -> bool:
    """Keep ``payload`` under ``key``, if that is possible; whether it is kept.  ``label`` says to people what it is."""
    where = usable()
    if where is None:
        return False
    name, short = digest(key), label.encode()[:_LABEL]
    header = _HEADER.pack(_MAGIC, name, _sha256(payload).digest(), len(payload), short)
    if not write(where, name.hex() + _SUFFIX, (header, payload), name.hex()):
        return False
    _account(where, _blocks(len(header) + len(payload)))
    return True


def entries() -> list[CacheEntry]:
    """All entries, least recently used first."""
    where = usable()
    files = [] if where is None else _scan(where)
    return [
        CacheEntry(os.path.basename(path).removesuffix(_SUFFIX), size, used, _label(path)) for used, size, path in files
    ]


def _label(path: str) -> str:
    """The label of an entry; empty where there is none to be read."""
    try:
        with open(path, "rb") as file:
            return _HEADER.unpack(file.read(_HEADER.size))[-1].rstrip(b"\0").decode(errors="ignore")
    except (OSError, struct.error):
        return ""


def stat() -> Stat:
    """Size and place of the cache."""
    where, listed = folder(), entries()
    problem = _problem(where)
    return Stat(where, len(listed), sum(entry.bytes for entry in listed), limit(), problem is None, problem)


def _problem(where: str | None) -> str | None:
    """Why nothing is kept; None where something is."""
    if where is None:
        return "switched off" if flags.CACHE_DIR.value == "off" else "there is no home folder of this user's"
    existing = _existing(where)
    can_write = os.path.isdir(existing) and os.access(existing, os.W_OK | os.X_OK)
    return _fault(where) or (None if can_write else "it cannot be written")


def clear() -> int:
    """Remove all entries; returns how many went."""
    where = usable()
    if where is None:
        return 0
    removed = sum(_remove(path) for _, _, path in _scan(where))
    _remove(os.path.join(where, INDEX))
    with _lock:
        _sizes.pop(where, None)
        _clearings.append(where)
    return removed


def clearings() -> int:
    """How often this process has removed all entries: what others remember of them is to be forgotten, too."""
    return len(_clearings)


@functools.cache
def fingerprint(*folders: str) -> str | None:
    """Digest of the code in some folders of this package, which may lie in a zip file: the part of a key that stands
    for the code that made a payload.  None where no code is found, as in a frozen program, and where some of it was
    written since this process loaded its own (an upgrade meanwhile): then there is no key."""
    digest, written = _sha256(), []
    version = getattr(sys.modules.get("hybridflow"), "__version__", "")
    digest.update(f"{version}\0{sys.implementation.cache_tag}\0".encode())
    for top in folders:
        for name, content, when in _sources(top) if os.path.isdir(top) else _zipped(top):
            written.append(when)
            digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest() if written and max(written) <= _began else None


def _sources(top: str) -> Iterator[tuple[str, bytes, float]]:
    """Name and content of each module below a folder: its source, or its byte code where there is no source; and when
    it was put there."""
    for where, below, names in os.walk(top):
        below[:] = sorted(set(below) - {"__pycache__"})
        for name in sorted(names):
            stem, suffix = os.path.splitext(name)
            if suffix == ".py" or (suffix == ".pyc" and stem + ".py" not in names):
                path = os.path.join(where, name)
                with open(path, "rb") as file:
                    yield os.path.relpath(path, top), file.read(), _written_at(os.fstat(file.fileno()))


def _zipped(top: str) -> Iterator[tuple[str, bytes, float]]:
    """Name and checksum of each module below a folder inside a zip file, and when that was put there; nothing where it
    is in none."""
    import zipfile

    archive = _existing(top)
    inside = os.path.relpath(top, archive).replace(os.sep, "/") + "/"
    if not zipfile.is_zipfile(archive):
        return
    when = _written_at(os.stat(archive))
    with zipfile.ZipFile(archive) as file:
        for item in sorted(file.infolist(), key=lambda item: item.filename):
            if item.filename.startswith(inside) and item.filename.endswith((".py", ".pyc")):
                yield item.filename, f"{item.CRC} {item.file_size}".encode(), when


def _written_at(status: os.stat_result) -> float:
    """When a file was written, or put where it is with the times that it had elsewhere."""
    return max(status.st_mtime, status.st_ctime)


def _on_disk(status: os.stat_result) -> int:
    """The bytes that a file takes: whole blocks, or none where the system packs or compresses it."""
    blocks = getattr(status, "st_blocks", 0)
    return blocks * _BLOCK if blocks else status.st_size


def _blocks(size: int) -> int:
    """About the bytes that a file of so many takes, before the system has said."""
    return -(-size // 4096) * 4096


def _payload(content: bytes, digest: bytes) -> bytes | None:
    if len(content) < _HEADER.size:
        return None
    magic, key, checksum, size, _ = _HEADER.unpack_from(content)
    payload = content[_HEADER.size :]
    if magic != _MAGIC or key != digest or size != len(payload) or _sha256(payload).digest() != checksum:
        return None
    return payload


def _is_ours(status: os.stat_result) -> bool:
    """A regular file that this user owns and nobody else may write, and that has no other name, by which it could have
    come from elsewhere: machine code is run as it is read."""
    mine = status.st_uid == os.geteuid() and status.st_mode & 0o022 == 0
    return mine and stat_module.S_ISREG(status.st_mode) and status.st_nlink <= 1


def _scan(where: str) -> list[tuple[float, int, str]]:
    """(last use, bytes, path) of each entry, oldest first.  Removes what killed processes left behind."""
    files = []
    try:
        with os.scandir(where) as items:
            for item in items:
                try:
                    status = item.stat(follow_symlinks=False)
                except OSError:  # removed meanwhile
                    continue
                if not stat_module.S_ISREG(status.st_mode):
                    continue
                if _ENTRY.fullmatch(item.name):
                    files.append((status.st_mtime, _on_disk(status), item.path))
                elif _UNFINISHED.fullmatch(item.name) and time.time() - status.st_mtime > _STALE:
                    _remove(item.path)
    except OSError:
        return []
    return sorted(files)


def _account(where: str, size: int) -> None:
    """Note that an entry was written; clean up when the folder has outgrown the limit."""
    with _lock:
        if where in _sizes:
            _sizes[where] += size
        else:
            _sizes[where] = sum(bytes_ for _, bytes_, _ in _scan(where))
        if _sizes[where] <= limit():
            return
        files = _scan(where)
        total = sum(bytes_ for _, bytes_, _ in files)
        for _, bytes_, path in files:
            if total <= limit() * _KEEP:
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


def _say(message: str, anyway: bool = False) -> None:
    """Say something once, under HF_LOG=cache or ``anyway``."""
    if message not in _logged and (anyway or flags.logs("cache")):
        _logged.add(message)
        print(f"[cache] {message}", file=sys.stderr)
