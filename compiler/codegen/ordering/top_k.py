"""The positions of the first few elements of lines in order, without sorting the lines.

A list of the best so far is kept in order.  Vectors of the line are compared with its last key, and only an element
that beats that is inserted: of random lines few do, the longer the fewer.  The list begins full of the largest key,
which no element beats, so elements that have it themselves are found afterwards, where places are left.

Of lines whose elements get better and better nearly all would be inserted.  After a few insertions the rest of the line
is looked over: of the best keys in each lane, as many as are wanted say what an element has to beat from then on.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hybridflow.compiler.codegen.core.emitter import Emitter
from hybridflow.compiler.codegen.core.kernel_builder import MOST_LANES, Ref, lanes_for
from hybridflow.compiler.codegen.core.llvm_module import LLVMModule
from hybridflow.compiler.codegen.core.llvm_values import Val
from hybridflow.compiler.codegen.core.phases import EmittedKernel, kernel_parameters, one_phase
from hybridflow.compiler.codegen.ordering.argsort import ArgSort, SortOperand, emit_argsort, scratch_bytes
from hybridflow.compiler.codegen.ordering.ordering_schedule import SortSchedule, SortWay, finds_first
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.extents import Extent
from hybridflow.compiler.loops.tuning import FEW_OF, MORE_PATIENCE, PATIENCE

_POSITION = 8  # bytes
_LINE = 64  # bytes: the most that a vector of keys takes
_LOOKED_AT = 4  # vectors of a line at once, in the search for a bound, or as many as the wanted elements fill twice


def emit_top_k(module: LLVMModule, e: Emitter, symbol: str, operand: SortOperand) -> EmittedKernel:
    """Add the kernel ``symbol`` whose result are the int64 positions of the first ``ranking.count`` elements.  Units:
    lines along the sorted axis."""
    x, ranking = operand.x, operand.ranking
    dtype, shape, axis, count = x.node.dtype, x.node.shape, ranking.axis, ranking.count
    assert count is not None
    lines, n = (*shape[:axis], *shape[axis + 1 :]), shape[axis]
    lanes = lanes_for(e.target, dtype, MOST_LANES)
    if not finds_first(count, lanes, n, shape[axis + 1 :] in ((), (1,))):
        return emit_argsort(module, e, symbol, operand)
    top = _TopK(e, operand)
    top.write()
    e.line("ret void")
    name = module.function(e, symbol, kernel_parameters(operand.buffers), linkage="internal")
    needed: Extent = top.needed
    if not isinstance(n, int):
        needed = needed + scratch_bytes(n, dtype)
    how = SortSchedule(SortWay.FIRST, lanes)
    return replace(one_phase(name, lines, scratch=needed), schedule=str(how))


class _TopK(ArgSort):
    """Scratch: the bound and what is left of patience; a vector of keys that are the least there is, then those of the
    list; as much before its positions; and the best keys in each lane of what is looked over."""

    def _lay_out(self) -> None:
        super()._lay_out()
        c = self.c
        self.lanes = lanes_for(self.e.target, self.key, MOST_LANES)
        assert self.limit is not None
        item, lanes = self.key.itemsize, self.lanes
        self.room = -(-self.limit // lanes) * lanes
        self.seen = max(_LOOKED_AT, -(-2 * self.limit // lanes))
        sizes = (
            _LINE,
            _LINE,
            lanes * item + self.room * item,
            (lanes + self.room) * _POSITION,
            self.seen * lanes * item,
        )
        starts = [sum(sizes[:k]) for k in range(len(sizes))]
        self.bound, self.patience = (c.at("%scratch", at, 1) for at in starts[:2])
        self.best = c.at("%scratch", starts[2] + lanes * item, 1)
        self.where = c.at("%scratch", starts[3] + lanes * _POSITION, 1)
        self.least = c.at("%scratch", starts[4], 1)
        self.needed = sum(sizes)

    def write(self) -> None:
        c, count = self.c, self.limit
        assert count is not None
        few = c.compare("sge", self.n, FEW_OF * count)
        if few is not True:
            with c.when(c.negation(few)):
                super().write()
        with c.when(few), c.loop("%begin", "%end") as line:
            start = c.mul(line.index, self.n)
            self._clear()
            c.vector_loop(0, self.n, self.lanes, lambda j, mask: self._insert_better(start, j, mask))
            self._fill_up(start)
            with c.loop(0, count) as k:
                position = self.e.load(c.at(self.where, k.index, _POSITION), dt.int64, width=1)
                self.e.store(position, c.at(self.out, c.add(c.mul(line.index, count), k.index), _POSITION))

    def _clear(self) -> None:
        c, e = self.c, self.e
        item = self.key.itemsize
        with c.width(self.lanes):
            e.store(e.const(0, self.key), c.at(self.best, -self.lanes, item))
            e.store(e.const(-1, dt.int64), c.at(self.where, -self.lanes, _POSITION))
            with c.loop(0, self.room, self.lanes) as k:
                e.store(e.const(self._largest, self.key), c.at(self.best, k.index, item))
                e.store(e.const(-1, dt.int64), c.at(self.where, k.index, _POSITION))
        e.store(e.const(self._largest, self.key, 1), self.bound)
        self._be_patient()

    def _be_patient(self) -> None:
        c = self.c
        self.e.store(c.value(c.add(c.div(self.n, MORE_PATIENCE), PATIENCE)), self.patience)

    @property
    def _largest(self) -> int:
        return int(2 ** (8 * self.key.itemsize) - 1)

    def _insert_better(self, start: Ref, j: Ref, mask: Val | None) -> None:
        """Insert those of the elements from ``j`` on that are before the last of the list."""
        c, e = self.c, self.e
        assert self.limit is not None
        last = e.load_splat(c.at(self.best, self.limit - 1, self.key.itemsize), self.key)
        bound = e.minimum(last, e.load_splat(self.bound, self.key))
        is_better = e.lt(self._key(self.x.value(c, c.add(start, j), mask)), bound)
        is_better = is_better if mask is None else e.and_(is_better, mask)
        with c.when(e.any(is_better)), c.width(1):
            many = c.value(c.lanes_of(is_better))
            with c.loop(0, many.ref, 1, [c.value(c.bits_of(is_better))]) as hit:
                remainder = hit.carried[0]
                e.declare("declare i64 @llvm.cttz.i64(i64, i1)")
                lane = e.assign(f"call i64 @llvm.cttz.i64(i64 {remainder.ref}, i1 true)", dt.int64, 1)
                at = c.add(j, lane.ref)
                self._insert(self._key(self.x.value(c, c.add(start, at))), c.value(at))
                hit.next = [e.and_(remainder, e.sub(remainder, 1))]
            left = e.sub(e.load(self.patience, dt.int64), many)
            e.store(left, self.patience)
            with c.when(e.lt(left, 0).ref):
                self._lower_bound(start, c.add(j, self.lanes))
                self._be_patient()

    def _lower_bound(self, start: Ref, begin: Ref) -> None:
        """Lower the bound to what the elements from ``begin`` on allow: as many of them as are wanted are better."""
        c, e = self.c, self.e
        item, step = self.key.itemsize, self.seen * self.lanes
        assert self.limit is not None
        firsts = range(0, step, self.lanes)
        with c.width(self.lanes):
            carry = [e.const(self._largest, self.key) for _ in firsts]
            with c.loop(begin, c.sub(self.n, step - 1), step, carry) as loop:
                at = c.add(start, loop.index)
                keys = [self._key(self.x.value(c, c.add(at, first))) for first in firsts]
                loop.next = [e.minimum(old, key) for old, key in zip(loop.carried, keys)]
            for first, least in zip(firsts, loop.carried):
                e.store(least, c.at(self.least, first, item))
        # The last of those that are wanted: the largest key before which there are fewer.
        with c.width(1), c.loop(0, step, 1, [e.const(0, self.key)]) as one:
            key = e.load(c.at(self.least, one.index, item), self.key)
            with c.width(self.lanes):
                wide = e.splat(key)
                less = [e.lt(e.load(c.at(self.least, first, item), self.key), wide) for first in firsts]
                before: Ref = 0
                for mask in less:
                    before = c.add(before, c.lanes_of(mask))
            wanted = e.lt(c.value(before), self.limit)
            one.next = [e.select(wanted, e.maximum(one.carried[0], key), one.carried[0])]
        with c.width(1):
            last = one.carried[0]
            bound = e.select(e.eq(last, self._largest), last, e.add(last, 1))
            e.store(e.minimum(bound, e.load(self.bound, self.key)), self.bound)

    def _insert(self, key: Val, position: Val) -> None:
        """Behind what is not larger.  From the end on, each vector becomes itself, the new element, or its neighbours
        before, lane by lane."""
        c, e = self.c, self.e
        with c.width(self.lanes):
            keys, positions = e.splat(key), e.splat(position)
            with c.loop(0, self.room, self.lanes) as iteration:
                at = c.sub(self.room - self.lanes, iteration.index)
                old, shifted = self._neighbours(self.best, at, self.key)
                stays, new = e.le(old, keys), e.le(shifted, keys)
                e.store(e.select(stays, old, e.select(new, keys, shifted)), c.at(self.best, at, self.key.itemsize))
                old, shifted = self._neighbours(self.where, at, dt.int64)
                e.store(e.select(stays, old, e.select(new, positions, shifted)), c.at(self.where, at, _POSITION))

    def _neighbours(self, cells: str, at: Ref, dtype: np.dtype) -> tuple[Val, Val]:
        """The vector at ``at``, and that of the elements one before: by a shuffle, since a read across what two stores
        have just written waits for both to reach the cache."""
        c, e, lanes = self.c, self.e, self.lanes
        before, here = (e.load(c.at(cells, c.sub(at, k), dtype.itemsize), dtype) for k in (lanes, 0))
        return here, e.shuffle(before, here, range(lanes - 1, 2 * lanes - 1))

    def _fill_up(self, start: Ref) -> None:
        """Elements that have the largest key, in the places that are left."""
        c, e = self.c, self.e
        assert self.limit is not None
        last = e.load(c.at(self.where, self.limit - 1, _POSITION), dt.int64, width=1)
        with c.when(e.lt(last, 0).ref):
            with c.loop(0, self.limit, 1, [c.value(0)]) as k:
                position = e.load(c.at(self.where, k.index, _POSITION), dt.int64, width=1)
                k.next = [e.add(k.carried[0], e.convert(e.ge(position, 0), dt.int64))]
            with c.loop(0, self.n, 1, [k.carried[0]]) as j:
                free = j.carried[0]
                last_key = e.eq(self._key(self.x.value(c, c.add(start, j.index))), self._largest)
                taken = e.and_(last_key, e.lt(free, self.limit))
                with c.when(taken.ref):
                    e.store(c.value(j.index), c.at(self.where, free.ref, _POSITION))
                j.next = [e.add(free, e.convert(taken, dt.int64))]
