"""The words of the records that native code reads: one table for writer (``entry``) and reader (``entry_code``).

A record is a header, whose words are named below, and sections of items that the header points to by word offset.
An item begins with its kind and its length in words.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hybridflow.compiler.program import Size

HEAD = (
    "entry",  # address of the program
    "positional",  # arguments given by position
    "keywords",  # ... and by name
    "keyword_names",  # section: one address per name
    "arguments",  # section: one item per argument
    "dims",  # symbolic extents
    "minimums",  # section: the least value of each
    "guards",  # count, and section
    "guard_items",
    "inputs",  # input buffers of the program
    "captures",  # count, and section: inputs that are no arguments
    "capture_items",
    "outputs",  # count, and section
    "output_items",
    "arena",  # section: Size of the temporaries
    "work",  # section: Size of what the program reads and writes; 0 keeps the GIL
    "structure",  # of the result
    "callable",  # that makes the result from a tuple of tensors
    "calls",  # answered so far: the one word that native code writes
)

ARGUMENT = {
    "tensor": 0,  # input or -1, dtype, ndim, extents
    "identity": 1,  # object
    "float": 2,  # bits
    "int": 3,  # value
    "scalar": 4,  # input, code of SCALAR
}
CAPTURE = {
    "constant": 0,  # input, data
    "variable": 1,  # input, object, slot offset, whether updated, dtype, ndim, extents
}
# Owner, name, expected object; of a list the objects, of an absent item no object.
GUARD = {"cell": 0, "item": 1, "attribute": 2, "list": 3, "absent": 4}
STRUCTURE = {"none": 0, "single": 1, "tuple": 2, "list": 3, "call": 4}

# Python numbers that become a program's scalar input.
SCALAR = {name: code for code, name in enumerate(
    ("float to f32", "float to f64", "int to i32", "int to i64", "number to f32", "number to f64", "none")
)}  # fmt: skip


@dataclass(frozen=True)
class Offsets:
    """Slots of the classes that native code reads; they lie where Python put them, so they are settings of the code."""

    tensor_array: int
    dispatch_table: int
    signature_record: int
    kernel_record: int
    kernel_fallback: int
    fixed_record: int


POOL_STATE = ("limit", "poison", "cached", "live", "hits", "misses")  # variables of the pool, 64 bits each

KERNEL = ("entry", "inputs", "specs", "dtype", "itemsize", "arena", "always")
FIXED = ("entry", "inputs", "specs", "dims", "dtype", "ndim", "shape", "bytes", "arena")  # specs: dtype, ndim, extents
SPEC = {"tensor": 0, "scalar": 1}  # dtype, code of SCALAR

RELEASE_GIL_BYTES = 1 << 20  # programs that touch at least this much run without the GIL

MAX_INPUTS = 8  # of an elementwise kernel
MAX_BUFFERS = 4096  # of a program: its native call keeps them on the stack


class Writer:
    """Collects a header and sections, and packs them into bytes."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names
        self._sections: list[int] = []

    def section(self, words: Iterable[int]) -> int:
        """Append a section; returns its offset in words."""
        offset = len(self._names) + len(self._sections)
        self._sections.extend(words)
        return offset

    def items(self, items: Iterable[tuple[int, ...]]) -> int:
        """Append items, each given as kind and payload."""
        return self.section(word for kind, *rest in items for word in (kind, 2 + len(rest), *rest))

    def pack(self, head: Mapping[str, int]) -> bytes:
        words = [*(head[name] for name in self._names), *self._sections]
        return struct.pack(f"<{len(words)}Q", *(word & 0xFFFFFFFFFFFFFFFF for word in words))


def size_words(size: Size, dims: Mapping[str, int]) -> list[int]:
    """A Size as native code evaluates it; ``dims`` gives the index of each extent."""
    words = [len(size.terms)]
    for factor, names in size.terms:
        words += [factor, len(names), *(dims[name] for name in names)]
    return words
