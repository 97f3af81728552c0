"""The positions of the first few elements of lines in order, without sorting the lines.

A list of the best so far is kept in order.  Vectors of the line are compared with its last key, and only an element
that beats that is inserted: of random lines few do, the longer the fewer.  The list begins full of the largest key,
which no element beats, so elements that have it themselves are found afterwards, where places are left.
"""

from __future__ import annotations

from collections.abc import Sequence

from hybridflow.compiler.codegen.emitter import Emitter
from hybridflow.compiler.codegen.module import ModuleText
from hybridflow.compiler.codegen.operand import Flat
from hybridflow.compiler.codegen.phases import KernelCode, kernel_parameters, one_phase
from hybridflow.compiler.codegen.sort import Sort, emit_argsort, scratch_bytes
from hybridflow.compiler.codegen.structured import MOST_LANES, Ref, lanes_for
from hybridflow.compiler.codegen.values import Val
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.extents import Extent
from hybridflow.compiler.loops.limits import FEW_OF, MOST_INSERTED
from hybridflow.compiler.ops.lowering import Ranking

_POSITION = 8  # bytes
_BEFORE = 64  # bytes before the keys; the last of them are the least key


def emit_top(
    module: ModuleText,
    e: Emitter,
    symbol: str,
    ranking: Ranking,
    x: Flat,
    dims: Sequence[str],
    buffers: int,
) -> KernelCode:
    """Add the kernel ``symbol`` over ``buffers`` buffers, the last of which are the int64 positions of the first
    ``ranking.count`` elements.  Units: lines along the axis of the ``ranking``."""
    dtype, shape, axis, count = x.node.dtype, x.node.shape, ranking.axis, ranking.count
    assert count is not None
    lines, n = (*shape[:axis], *shape[axis + 1 :]), shape[axis]
    lanes = lanes_for(e.target, dtype, MOST_LANES)
    short = isinstance(n, int) and n < FEW_OF * count
    if count > MOST_INSERTED or lanes == 1 or short or (axis != len(shape) - 1 and shape[axis + 1 :] != (1,)):
        return emit_argsort(module, e, symbol, ranking, x, dims, buffers)
    top = _Top(e, ranking, x, dims, buffers)
    top.write()
    e.line("ret void")
    name = module.function(e, symbol, kernel_parameters(buffers), linkage="internal")
    needed: Extent = _BEFORE + (count + 2 * lanes) * (dtype.itemsize + _POSITION) + 2 * _POSITION
    if not isinstance(n, int):
        needed = needed + scratch_bytes(n, dtype)
    return one_phase(name, lines, scratch=needed)


class _Top(Sort):
    """Scratch: the keys of the list, then the positions, each with one element before."""

    def _lay_out(self) -> None:
        super()._lay_out()
        c = self.c
        self.lanes = lanes_for(self.e.target, self.key, MOST_LANES)
        assert self.wanted is not None
        self.room = -(-self.wanted // self.lanes) * self.lanes
        self.best = c.at("%scratch", _BEFORE, 1)
        self.where = c.at(self.best, self.room * self.key.itemsize + _POSITION, 1)

    def write(self) -> None:
        c, count = self.c, self.wanted
        assert count is not None
        few = c.compare("sge", self.n, FEW_OF * count)
        if few is not True:
            with c.when(c.negation(few)):
                super().write()
        with c.when(few), c.loop("%begin", "%end") as line:
            start = c.mul(line.index, self.n)
            self._clear()
            c.vector_loop(0, self.n, self.lanes, lambda j, mask: self._look_at(start, j, mask))
            self._fill_up(start)
            with c.loop(0, count) as k:
                position = self.e.load(c.at(self.where, k.index, _POSITION), dt.int64, width=1)
                self.e.store(position, c.at(self.out, c.add(c.mul(line.index, count), k.index), _POSITION))

    def _clear(self) -> None:
        c, e = self.c, self.e
        e.store(e.const(0, self.key, 1), c.at(self.best, -1, self.key.itemsize))
        with c.width(self.lanes), c.loop(0, self.room, self.lanes) as k:
            e.store(e.const(self._largest, self.key), c.at(self.best, k.index, self.key.itemsize))
            e.store(e.const(-1, dt.int64), c.at(self.where, k.index, _POSITION))

    @property
    def _largest(self) -> int:
        return int(2 ** (8 * self.key.itemsize) - 1)

    def _look_at(self, start: Ref, j: Ref, mask: Val | None) -> None:
        """Insert those of the elements from ``j`` on that are before the last of the list."""
        c, e = self.c, self.e
        assert self.wanted is not None
        bound = e.load_splat(c.at(self.best, self.wanted - 1, self.key.itemsize), self.key)
        found = e.lt(self._key(self.x.value(c, c.add(start, j), mask)), bound)
        found = found if mask is None else e.and_(found, mask)
        with c.when(e.any(found)), c.width(1):
            for name in ("ctpop.i64(i64)", "cttz.i64(i64, i1)"):
                e.declare(f"declare i64 @llvm.{name}")
            bits = e.fresh("b")
            if found.width == 1:
                e.line(f"{bits} = zext i1 {found.ref} to i64")
            else:
                e.line(f"{bits}.n = bitcast <{found.width} x i1> {found.ref} to i{found.width}")
                e.line(f"{bits} = zext i{found.width} {bits}.n to i64")
            many = e.assign(f"call i64 @llvm.ctpop.i64(i64 {bits})", dt.int64, 1)
            with c.loop(0, many.ref, 1, [Val(bits, dt.int64, 1)]) as hit:
                rest = hit.carried[0]
                lane = e.assign(f"call i64 @llvm.cttz.i64(i64 {rest.ref}, i1 true)", dt.int64, 1)
                at = c.add(j, lane.ref)
                self._insert(self._key(self.x.value(c, c.add(start, at))), c.value(at))
                hit.next = [e.and_(rest, e.sub(rest, 1))]

    def _insert(self, key: Val, position: Val) -> None:
        """Behind what is not larger.  From the end on, each vector becomes itself, the new element, or its neighbours
        before, lane by lane."""
        c, e = self.c, self.e
        with c.width(self.lanes):
            keys, positions = e.splat(key), e.splat(position)
            with c.loop(0, self.room, self.lanes) as turn:
                at = c.sub(self.room - self.lanes, turn.index)
                here, before = (c.at(self.best, c.sub(at, k), self.key.itemsize) for k in (0, 1))
                old, shifted = e.load(here, self.key), e.load(before, self.key)
                stays, new = e.le(old, keys), e.le(shifted, keys)
                e.store(e.select(stays, old, e.select(new, keys, shifted)), here)
                here, before = (c.at(self.where, c.sub(at, k), _POSITION) for k in (0, 1))
                old, shifted = e.load(here, dt.int64), e.load(before, dt.int64)
                e.store(e.select(stays, old, e.select(new, positions, shifted)), here)

    def _fill_up(self, start: Ref) -> None:
        """Elements that have the largest key, in the places that are left."""
        c, e = self.c, self.e
        assert self.wanted is not None
        last = e.load(c.at(self.where, self.wanted - 1, _POSITION), dt.int64, width=1)
        with c.when(e.lt(last, 0).ref):
            with c.loop(0, self.wanted, 1, [c.value(0)]) as k:
                position = e.load(c.at(self.where, k.index, _POSITION), dt.int64, width=1)
                k.next = [e.add(k.carried[0], e.convert(e.ge(position, 0), dt.int64))]
            with c.loop(0, self.n, 1, [k.carried[0]]) as j:
                free = j.carried[0]
                last_key = e.eq(self._key(self.x.value(c, c.add(start, j.index))), self._largest)
                taken = e.and_(last_key, e.lt(free, self.wanted))
                with c.when(taken.ref):
                    e.store(c.value(j.index), c.at(self.where, free.ref, _POSITION))
                j.next = [e.add(free, e.convert(taken, dt.int64))]
