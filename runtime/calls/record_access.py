"""How native code walks what it is given: exact types, and items of a record (see ``records``)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import llvmlite.ir as ir

from hybridflow.runtime.native import object_layout
from hybridflow.runtime.native.ir_builder import I32, I64, PTR, Function, i32, i64
from hybridflow.runtime.native.records import ITEM


def is_type(f: Function, obj: ir.Value, type_name: str) -> ir.Value:
    """Whether ``type(obj)`` is exactly this type."""
    return f.eq(f.load(obj, object_layout.TYPE, PTR), f.module.symbol(type_name))


def extent_of(f: Function, word: ir.Value, dims: ir.Value) -> ir.Value:
    """The extent, or size, that a word of a record stands for: itself, or the place -1 - word of ``dims``."""
    extent = f.local(I64, word)
    with f.b.if_then(f.b.icmp_signed("<", word, i64(0)), likely=False):
        f.set(extent, f.get(f.element(dims, f.b.sub(i64(-1), word), I64), I64))
    return f.get(extent, I64)


def is_contiguous(f: Function, array: ir.Value) -> ir.Value:
    """Whether an ndarray is C-contiguous and aligned, so that a program may read its memory."""
    wanted = i32(object_layout.C_CONTIGUOUS | object_layout.ALIGNED)
    return f.eq(f.b.and_(f.load(array, object_layout.ARRAY_FLAGS, I32), wanted), wanted)


@contextmanager
def items(f: Function, start: ir.Value, count: ir.Value) -> Iterator[tuple[ir.Value, ir.Value]]:
    """A loop over ``count`` variable-length items; the body sees the index and the item."""
    cursor = f.local(PTR, start)
    with f.count(count) as index:
        item = f.get(cursor, PTR)
        yield index, item
        f.set(cursor, f.words_after(item, ITEM.at(f, item).length))
