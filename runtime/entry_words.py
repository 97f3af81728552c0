"""How native code reads a record: an array of 64-bit words inside a bytes object (see ``signature.Signature``).

It starts with the words named in ``HEAD``; the sections that they point to (as word offsets) hold variable-length
items, each beginning with its kind and its length in words.  Symbolic extents are written as negative numbers:
-1 - index.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import llvmlite.ir as ir

from hybridflow.runtime import layout
from hybridflow.runtime.ir_builder import I64, PTR, Function
from hybridflow.runtime.records import HEAD

WORD = 8


def word(f: Function, pointer: ir.Value, index: int, type_: ir.Type = I64) -> ir.Value:
    return f.load(pointer, index * WORD, type_)


def word_address(f: Function, pointer: ir.Value, index: ir.Value) -> ir.Value:
    return f.element(pointer, index, I64)


def section(f: Function, record: ir.Value, name: str) -> ir.Value:
    """Address of the section whose offset is the header word ``name``."""
    return word_address(f, record, head(f, record, name))


def head(f: Function, record: ir.Value, name: str, type_: ir.Type = I64) -> ir.Value:
    return word(f, record, HEAD.index(name), type_)


def is_type(f: Function, obj: ir.Value, type_name: str) -> ir.Value:
    """Whether ``type(obj)`` is exactly this type."""
    return f.eq(f.load(obj, layout.TYPE, PTR), f.module.symbol(type_name))


@contextmanager
def items(f: Function, start: ir.Value, count: ir.Value) -> Iterator[tuple[ir.Value, ir.Value]]:
    """A loop over ``count`` variable-length items; the body sees the index and the item."""
    cursor = f.local(PTR, start)
    with f.count(count) as index:
        item = f.get(cursor, PTR)
        yield index, item
        f.set(cursor, word_address(f, item, word(f, item, 1)))
