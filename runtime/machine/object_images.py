"""Images of machine code in several object files, as threads made them side by side."""

from __future__ import annotations

import struct
from collections.abc import Sequence

_HEAD = struct.Struct("<8sI")
_MAGIC = b"\0objects"


def joined(images: Sequence[bytes]) -> bytes:
    """Object files as one image; a single one as it is."""
    if len(images) == 1:
        return images[0]
    sizes = struct.pack(f"<{len(images)}Q", *map(len, images))
    return b"".join([_HEAD.pack(_MAGIC, len(images)), sizes, *images])


def separate(image: bytes) -> list[bytes]:
    """The object files of an image.  Raises ValueError where some of it is missing."""
    if not image.startswith(_MAGIC):
        return [image]
    try:
        count = _HEAD.unpack_from(image)[1]
        sizes = struct.unpack_from(f"<{count}Q", image, _HEAD.size)
    except struct.error as error:
        raise ValueError(str(error)) from None
    at = _HEAD.size + 8 * count
    if at + sum(sizes) != len(image):
        raise ValueError(f"{len(image)} bytes where {at + sum(sizes)} belong")
    result = []
    for size in sizes:
        result.append(image[at : at + size])
        at += size
    return result
