"""How native code walks what it is given: exact types, and items of a record (see ``records``)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import llvmlite.ir as ir

from hybridflow.runtime.native import layout
from hybridflow.runtime.native.ir_builder import PTR, Function
from hybridflow.runtime.native.records import ITEM


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
        f.set(cursor, f.words_after(item, ITEM.at(f, item).length))
