"""What a file is that its reader does not know: by its first bytes, for messages."""

from __future__ import annotations

import os

_HEAD = 512  # bytes that are looked at
_MAGIC = (
    (b"version https://git-lfs.github.com/", "a pointer of Git LFS, whose file was not fetched"),
    (b"\x89PNG\r\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"%PDF-", "a PDF document"),
    (b"\x1f\x8b", "compressed by gzip"),
    (b"BZh", "compressed by bzip2"),
    (b"\xfd7zXZ\0", "compressed by xz"),
    (b"\x28\xb5\x2f\xfd", "compressed by Zstandard"),
    (b"PK\x03\x04", "a zip archive"),
    (b"PK\x05\x06", "an empty zip archive"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
    (b"\x93NUMPY", "an array of NumPy's"),
    (b"GGUF", "a GGUF file"),
    (b"\x7fELF", "a program or a library"),
)
_MARKUP = (b"<!doctype html", b"<html", b"<?xml")


def kind_of(path: str | os.PathLike[str]) -> str:
    """What the file is, such as "a PNG image"; "" where its beginning does not say, or it cannot be read."""
    try:
        with open(path, "rb") as file:
            head = file.read(_HEAD)
    except OSError:
        return ""
    if not head:
        return "empty"
    for magic, kind in _MAGIC:
        if head.startswith(magic):
            return kind
    if head[4:8] == b"TFL3":
        return "a TensorFlow Lite model"
    if head[257:262] == b"ustar":
        return "a tar archive"
    if head.lstrip().lower().startswith(_MARKUP):
        return "a page of HTML or XML"
    return "text" if _is_text(head) else ""


def _is_text(head: bytes) -> bool:
    try:
        text = head.decode()
    except UnicodeDecodeError as error:
        if error.start < len(head) - 3 or len(head) < _HEAD:  # a character may be cut
            return False
        text = head[: error.start].decode()
    return all(character.isprintable() or character in "\t\n\r\f" for character in text)
