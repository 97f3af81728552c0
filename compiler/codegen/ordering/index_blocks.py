"""Indices of single elements, a block at a time: found in vectors, and then gone through one after the other.

What lies between an index and its place (conversions, arithmetic, whether it is in range) takes as many instructions as
adding an element does, or more.  So it is done for as many of them at once as a register holds.  The places of a block
lie in scratch memory, and so do updates that are computed.

A worker that has a part of the table keeps of each block the places that lie there, without a branch, and goes through
no others.
"""

from __future__ import annotations

from collections.abc import Callable

from hybridflow.compiler.codegen.core.kernel_builder import KernelBuilder, Ref, lanes_for
from hybridflow.compiler.codegen.core.llvm_values import Val
from hybridflow.compiler.codegen.core.operand import LinearOperand
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.extents import Extent
from hybridflow.compiler.ops import Kind
from hybridflow.compiler.ops.value_ranges import Bounds, bounds
from hybridflow.compiler.program import Check

UNROLLED = 4  # indices that are gone through in one turn

_BLOCK = 512  # indices, what is known of which stays in a first-level cache
_VALUES = 8 * _BLOCK  # where updates lie in scratch memory, behind the places
_NOWHERE = 2 * _VALUES  # ... and what indices of none are added to

_KEPT = _NOWHERE + 64  # ... and which indices of the block those are whose places were kept

SCRATCH = _KEPT + 4 * _BLOCK  # bytes


class IndexBlocks:
    """Where ``indices`` point in a table of ``cells``, of which those in ``rows`` count, and ``updates`` for them."""

    def __init__(
        self, c: KernelBuilder, cells: Extent, indices: LinearOperand, updates: LinearOperand, rows: tuple[Ref, Ref]
    ) -> None:
        self.c, self.e, self.indices, self.updates = c, c.e, indices, updates
        self.cells, self.first, self.size = c.extent(cells), rows[0], c.sub(rows[1], rows[0])
        low, high = known_bounds(indices, c.e.fastmath)
        self._from_end = low < 0
        self.partial = rows != (0, cells)
        self.sure = not self.partial and all_within((low, high), cells)  # that all of them are places
        small = isinstance(cells, int) and cells <= 1 << 30
        self._wide = dt.int32 if small and low >= -(1 << 31) and high < 1 << 31 else dt.int64
        self._kept = dt.uint32 if small else dt.int64

    def each(
        self, begin: Ref, end: Ref, shift: Ref, add: Callable[[int, str, Val], None], check: Check | None = None
    ) -> None:
        """``add(turn, place, update)`` for the indices in [begin, end), in their order, with a turn below UNROLLED.

        Places are counted from the first of the rows; what is none is so many as there are rows, and fails the
        ``check``.  Updates lie ``shift`` further on than indices."""
        c = self.c
        if self.sure and _lies(self.indices, through_integers=True) and _lies(self.updates):
            self._sequential(begin, end, self._index, lambda i: self._update(c.add(i, shift)), add)
            return
        with c.loop(begin, end, _BLOCK) as block:
            first, last = block.index, c.min(c.add(block.index, _BLOCK), end)
            self._find_block(first, last, shift, check)
            from_block, count = c.add(first, shift), c.sub(last, first)

            def update(i: Ref) -> Val:
                return self._value(i, c.add(from_block, i))

            if self.partial:
                self._sequential(0, self._keep_inside(count), self._place, lambda k: update(self._stored_index(k)), add)
            else:
                self._sequential(0, count, self._place, update, add)

    def each_inside(self, begin: Ref, end: Ref, visit: Callable[[Ref, Ref], None]) -> None:
        """``visit(place, index)`` for the indices in [begin, end) whose places lie in the rows, in their order."""
        c = self.c
        with c.loop(begin, end, _BLOCK) as block:
            first, last = block.index, c.min(c.add(block.index, _BLOCK), end)
            self._find_block(first, last, None, None)
            with c.loop(0, self._keep_inside(c.sub(last, first))) as kept, c.width(1):
                place = self.e.convert(self._place(kept.index), dt.int64).ref
                visit(place, c.add(first, self._stored_index(kept.index)))

    def address(self, table: str, place: str, itemsize: int) -> str:
        """Where a place lies, or something that nobody reads."""
        c = self.c
        at = c.at(c.at(table, self.first, itemsize), place, itemsize)
        if self.sure or self.partial:
            return at
        return c.choose_pointer(c.compare("ult", place, self.size), at, c.at("%scratch", _NOWHERE, 1))

    def _sequential(
        self,
        begin: Ref,
        end: Ref,
        place: Callable[[Ref], Val],
        update: Callable[[Ref], Val],
        add: Callable[[int, str, Val], None],
    ) -> None:
        c, e = self.c, self.e

        def iteration(first: Ref, count: int) -> None:
            # All are read before any is added to, as for all that LLVM knows they could be what is read.
            updates = [(e.convert(place(i), dt.int64).ref, update(i)) for i in (c.add(first, k) for k in range(count))]
            for k, (at, value) in enumerate(updates):
                add(k, at, value)

        whole = c.add(begin, c.mul(c.div(c.sub(end, begin), UNROLLED), UNROLLED))
        with c.width(1):
            with c.loop(begin, whole, UNROLLED) as at:
                iteration(at.index, UNROLLED)
            with c.loop(whole, end) as at:
                iteration(at.index, 1)

    # ---- a block in vectors

    def _find_block(self, first: Ref, last: Ref, shift: Ref | None, check: Check | None) -> None:
        """Leave the places of the indices in [first, last) in scratch memory, and their updates where a ``shift`` says
        where these lie."""
        c = self.c
        width = 2 * lanes_for(self.e.target, self._wide, _BLOCK)

        def find(i: Ref, mask: Val | None) -> None:
            self._find(i, c.sub(i, first), None if shift is None else c.add(i, shift), mask, check)

        c.vector_loop(first, last, width, find)

    def _keep_inside(self, count: Ref) -> Ref:
        """Move the places of a block that lie in the rows to its beginning, in their order, and say of which indices
        they are.  Returns how many there are."""
        c, e = self.c, self.e
        with c.width(1), c.loop(0, count, carry=[e.const(0, dt.int64)]) as at:
            (kept,) = at.carried
            place = self._place(at.index)
            e.store(place, c.at("%scratch", kept.ref, self._kept.itemsize))
            index = e.convert(c.value(at.index), dt.int32)
            e.store(index, c.at(c.at("%scratch", _KEPT, 1), kept.ref, 4))
            inside = c.compare("ult", e.convert(place, dt.int64).ref, self.size)
            at.next = [c.value(c.add(kept.ref, c.choose(inside, 1, 0)))]
        return at.carried[0].ref

    def _stored_index(self, kept: Ref) -> Ref:
        c, e = self.c, self.e
        return e.convert(e.load(c.at(c.at("%scratch", _KEPT, 1), kept, 4), dt.int32), dt.int64).ref

    def _find(self, index: Ref, at: Ref, update: Ref | None, mask: Val | None, check: Check | None) -> None:
        """Leave the places of indices, and their updates, ``at`` the beginning of a block or behind it."""
        c, e = self.c, self.e
        cell = e.convert(self.indices.value(c, index, mask), self._wide)
        if self._from_end:
            cell = e.select(e.lt(cell, 0), e.add(cell, self._number(self.cells)), cell)
        if self.first != 0:
            cell = e.sub(cell, self._number(self.first))
        if not self.sure:
            size = self._number(self.size)
            cell, size = (e.convert(v, dt.uint32 if self._wide == dt.int32 else dt.uint64) for v in (cell, size))
            if check is not None:
                e.raise_if(e.ge(cell, size), check)
            cell = e.minimum(cell, size)  # what is negative is a large number without a sign
        e.store(e.convert(cell, self._kept), c.at("%scratch", at, self._kept.itemsize), mask)
        if update is not None and not _lies(self.updates):
            value = self.updates.value(c, update, mask)
            e.store(value, c.at(c.at("%scratch", _VALUES, 1), at, value.dtype.itemsize), mask)

    def _number(self, ref: Ref) -> Val:
        e = self.e
        return e.const(ref, self._wide) if isinstance(ref, int) else e.splat(e.convert(self.c.value(ref), self._wide))

    # ---- one of them

    def _index(self, i: Ref) -> Val:
        return self.indices.value(self.c, i)

    def _place(self, i: Ref) -> Val:
        return self.e.load(self.c.at("%scratch", i, self._kept.itemsize), self._kept)

    def _update(self, position: Ref) -> Val:
        return self.updates.value(self.c, position)

    def _value(self, i: Ref, position: Ref) -> Val:
        if _lies(self.updates):
            return self._update(position)
        dtype = self.updates.node.dtype
        return self.e.load(self.c.at(self.c.at("%scratch", _VALUES, 1), i, dtype.itemsize), dtype)


def known_bounds(indices: LinearOperand, fastmath: bool) -> Bounds:
    """Bounds that follow from what their kernel computes."""
    return bounds(indices.node, lambda node: node in indices.places or (fastmath and dt.is_float(node.dtype)))


def all_within(indices: Bounds, cells: Extent) -> bool:
    """Whether no index within these bounds is out of range, or counts from the end."""
    low, high = indices
    return isinstance(cells, int) and low >= 0 and high < cells


def _lies(operand: LinearOperand, through_integers: bool = False) -> bool:
    """Whether elements are found in memory, or are numbers that are known."""
    node = operand.node
    while node not in operand.places and node.inputs:
        converts = node.op.name == "convert" and not dt.is_float(node.inputs[0].dtype)
        if node.op.kind is not Kind.VIEW and not (through_integers and converts):
            return False
        node = node.inputs[0]
    return node in operand.places or "value" in node.attrs
