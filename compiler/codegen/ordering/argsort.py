"""Argsort: stable, NaN last, -0.0 equal to 0.0.

Every element becomes an unsigned key whose order is the wanted one; equal elements have equal keys.  Keys are sorted
with their positions by radix, one byte per pass from the lowest: a pass is stable, costs the same for any data, and is
left out when all keys agree in its byte.  Short lines are sorted by counting, for each element, those before it.

A single long line is cut into blocks.  Each pass then has three phases: blocks count their digits, the counts become
places, and blocks move their elements there, so the order is that of one worker.  Where the first phase is asked for
all blocks at once, nobody works beside it, and it sorts the line like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hybridflow.compiler.codegen.core.emitter import Emitter
from hybridflow.compiler.codegen.core.kernel_builder import MOST_LANES, Extent, KernelBuilder, Ref, lanes_for
from hybridflow.compiler.codegen.core.llvm_module import LLVMModule
from hybridflow.compiler.codegen.core.llvm_values import Val
from hybridflow.compiler.codegen.core.operand import LinearOperand
from hybridflow.compiler.codegen.core.phases import EmittedKernel, Phase, kernel_arguments, kernel_parameters, one_phase
from hybridflow.compiler.codegen.ordering.ordering_schedule import sort_schedule
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.loops.tuning import ALL_PAIRS, SORT_BLOCK
from hybridflow.compiler.ops.lowering import Sort

_DIGITS = 256
_POSITION = 8  # bytes
_HEAD = 64  # bytes of words in shared memory


@dataclass(frozen=True)
class SortOperand:
    """What a kernel of a sort is given: the elements of ``x``, the names of extents, and how many buffers there are,
    the last of which is the result."""

    ranking: Sort
    x: LinearOperand
    dims: Sequence[str]
    buffers: int


def emit_argsort(module: LLVMModule, e: Emitter, symbol: str, operand: SortOperand) -> EmittedKernel:
    """Add the kernel ``symbol`` whose result are the int64 positions.  Units: lines along the sorted axis,
    or the blocks of a single one."""
    x, buffers = operand.x, operand.buffers
    dtype, shape, axis = x.node.dtype, x.node.shape, operand.ranking.axis
    lines, n = (*shape[:axis], *shape[axis + 1 :]), shape[axis]
    how = sort_schedule(e.target, replace(operand.ranking, values=False, count=None), dtype, shape, False)
    single = how.blocks != 1

    def written(body: Emitter, name: str, write: Callable[[ArgSort], None], for_host: bool = False) -> str:
        sort = (_Blocks if single and name != symbol else ArgSort)(body, operand)
        write(sort)
        body.line("ret void")
        return module.function(body, name, kernel_parameters(buffers), linkage="internal", for_host=for_host)

    whole = written(e, symbol, ArgSort.write)
    needed = scratch_bytes(n, dtype)
    if not single:
        return replace(one_phase(whole, lines, scratch=needed), schedule=str(how))
    blocks = how.blocks
    steps: dict[str, tuple[Callable[[Any], None], Extent]] = {
        "keys": (lambda sort: sort.make_keys(whole), blocks),
        "count": (_Blocks.count, blocks),
        "place": (_Blocks.place, 1),
        "move": (_Blocks.move, blocks),
        "out": (_Blocks.show, blocks),
    }
    phases = {}
    for name, (write, units) in steps.items():
        body = Emitter(e.target, 1, e.fastmath)
        phases[name] = Phase(written(body, f"{symbol}_{name}", write, True), (units,))
    run: Callable[[Any], None] = lambda sort: sort.run(whole)  # noqa: E731
    sequential = written(Emitter(e.target, 1, e.fastmath), f"{symbol}_alone", run)
    digits = [phases[name] for name in ("count", "place", "move")] * dtype.itemsize
    shared = _HEAD + blocks * (_DIGITS * _POSITION) + needed
    return EmittedKernel(
        (phases["keys"], *digits, phases["out"]), shared=shared, sequential=Phase(sequential, (1,)), schedule=str(how)
    )


def scratch_bytes(n: Extent, dtype: np.dtype) -> Extent:
    """Bytes of scratch memory for lines of ``n`` elements."""
    return n * (2 * (_POSITION + dtype.itemsize)) + _DIGITS * _POSITION + 2 * MOST_LANES * dtype.itemsize


def bits_of(e: Emitter, value: Val) -> Val:
    """The bits of an element, as an unsigned number."""
    bits = np.dtype(f"uint{8 * value.dtype.itemsize}")
    return e.convert(value, bits) if dt.is_bool(value.dtype) else e.bitcast(value, bits)


def key_of(e: Emitter, bits: Val, dtype: np.dtype, descending: bool) -> Val:
    """The key of an element of ``dtype`` with these bits: unsigned, in the wanted order, and equal for equal ones."""
    sign = 1 << (8 * dtype.itemsize - 1)
    if not dt.is_float(dtype):
        if dt.is_signed(dtype):
            bits = e.xor(bits, sign)
        return e.not_(bits) if descending else bits
    infinity = int(np.array(np.inf, dtype).view(bits.dtype))
    negative = e.ge(bits, sign)
    # Negative numbers in reverse below the others; -0.0 joins 0.0.
    key = e.select(negative, e.not_(bits), e.or_(bits, sign))
    key = e.select(e.eq(bits, sign), sign, key)
    if descending:
        key = e.not_(key)
    is_nan = e.gt(e.and_(bits, sign - 1), infinity)
    return e.select(is_nan, 2 * sign - 1, key)


class ArgSort:
    """Scratch: counters, two arrays of positions, two arrays of keys with one vector of padding behind."""

    def __init__(self, e: Emitter, operand: SortOperand) -> None:
        ranking, x, buffers = operand.ranking, operand.x, operand.buffers
        self.e, self.dtype, self.descending, self.x, self.buffers = e, x.node.dtype, ranking.descending, x, buffers
        self.out = f"%a{buffers - 1}"
        self.values, self.limit = ranking.values, ranking.count
        self.out_size = self.dtype.itemsize if ranking.values else _POSITION
        self.key = np.dtype(f"uint{8 * self.dtype.itemsize}")
        self.c = c = KernelBuilder(e, operand.dims)
        shape, axis = x.node.shape, ranking.axis
        self.n = c.extent(shape[axis])
        self.inner = c.product(shape[axis + 1 :])
        self.lanes = lanes_for(e.target, self.key, ALL_PAIRS)
        self._lay_out()

    def _lay_out(self) -> None:
        """Where counters, positions and keys lie."""
        c = self.c
        self.counters = "%scratch"
        self.positions = c.at("%scratch", _DIGITS, _POSITION)
        self.keys = c.at(self.positions, c.mul(self.n, 2), _POSITION)
        self.key_pitch = c.add(self.n, self.lanes)  # from the first array of keys to the second

    def write(self) -> None:
        c = self.c
        with c.loop("%begin", "%end") as unit:
            outer, inside = c.div(unit.index, self.inner), c.rem(unit.index, self.inner)
            start = c.add(c.mul(c.mul(outer, self.n), self.inner), inside)
            with c.loop(0, self.n) as j:
                key = self._key(self.x.value(c, c.add(start, c.mul(j.index, self.inner))))
                self.e.store(key, c.at(self.keys, j.index, self.key.itemsize))
                self.e.store(c.value(j.index), c.at(self.positions, j.index, _POSITION))
            out = start
            if self.limit is not None:
                out = c.add(c.mul(c.mul(outer, self.limit), self.inner), inside)
            short = c.compare("sle", self.n, ALL_PAIRS)
            with c.when(short):
                self._rank(start, out)
            with c.when(c.negation(short)):
                self._radix(start, out)

    def _put(self, start: Ref, out: Ref, place: Ref, position: Val) -> None:
        """What belongs to ``place`` of the line that begins at ``start``, and in the result at ``out``: the element at
        a position, or that; nothing behind the last place that is wanted."""
        c = self.c
        with c.when(True if self.limit is None else c.compare("slt", place, self.limit)), c.width(1):
            element = self.x.value(c, c.add(start, c.mul(position.ref, self.inner))) if self.values else position
            self.e.store(element, c.at(self.out, c.add(out, c.mul(place, self.inner)), self.out_size))

    def _key(self, value: Val) -> Val:
        """The key of an element."""
        return key_of(self.e, bits_of(self.e, value), self.dtype, self.descending)

    def _rank(self, start: Ref, out: Ref) -> None:
        """An element's place is the number of smaller ones, and of equal ones before it."""
        c, e, item = self.c, self.e, self.key.itemsize
        with c.width(self.lanes):
            # Lanes beyond the end hold the largest key, at a position past all others: they are before nobody.
            e.store(e.const(2 ** (8 * item) - 1, self.key), c.at(self.keys, self.n, item))
            with c.loop(0, self.n) as t:
                key = e.splat(e.load(c.at(self.keys, t.index, item), self.key, width=1))
                place = e.splat(e.convert(c.value(t.index), dt.int32))
                with c.loop(0, self.n, self.lanes, [e.zero(dt.int32)]) as group:
                    others = e.load(c.at(self.keys, group.index, item), self.key)
                    positions = e.add(e.splat(e.convert(c.value(group.index), dt.int32)), e.iota(dt.int32))
                    earlier = e.and_(e.eq(others, key), e.lt(positions, place))
                    before = e.or_(e.lt(others, key), earlier)
                    group.next = [e.add(group.carried[0], e.convert(before, dt.int32))]
                rank = self._total(group.carried[0])
                self._put(start, out, rank.ref, c.value(t.index))

    def _total(self, counts: Val) -> Val:
        """The sum of the lanes, as int64."""
        e = self.e
        while counts.width > 1:
            half = counts.width // 2
            low, high = (e.shuffle(counts, None, range(s, s + half)) for s in (0, half))
            counts = e.add(low, high) if half > 1 else e.add(e.extract(counts, 0), e.extract(counts, 1))
        return e.convert(counts, dt.int64)

    def _radix(self, start: Ref, out: Ref) -> None:
        c, e, item = self.c, self.e, self.key.itemsize
        with c.loop(0, item, 1, [c.value(0)]) as byte:  # the arrays that hold the line change places in each pass
            current = byte.carried[0]
            other = e.sub(1, current)
            shift = e.convert(e.shl(c.value(byte.index), 3), self.key)
            keys, positions = self._arrays(current.ref)
            to_keys, to_positions = self._arrays(other.ref)
            with c.loop(0, _DIGITS) as d:
                e.store(c.value(0), c.at(self.counters, d.index, _POSITION))
            with c.loop(0, self.n) as j:
                counter = self._counter(e.load(c.at(keys, j.index, item), self.key, width=1), shift)
                e.store(e.add(e.load(counter, dt.int64, width=1), 1), counter)
            first = self._counter(e.load(keys, self.key, width=1), shift)
            mixed = e.ne(e.load(first, dt.int64, width=1), c.value(self.n))
            with c.when(mixed.ref):
                with c.loop(0, _DIGITS, 1, [c.value(0)]) as d:
                    counter = c.at(self.counters, d.index, _POSITION)
                    count = e.load(counter, dt.int64, width=1)
                    e.store(d.carried[0], counter)
                    d.next = [e.add(d.carried[0], count)]
                with c.loop(0, self.n) as j:
                    key = e.load(c.at(keys, j.index, item), self.key, width=1)
                    counter = self._counter(key, shift)
                    place = e.load(counter, dt.int64, width=1)
                    e.store(e.add(place, 1), counter)
                    e.store(key, c.at(to_keys, place.ref, item))
                    position = e.load(c.at(positions, j.index, _POSITION), dt.int64, width=1)
                    e.store(position, c.at(to_positions, place.ref, _POSITION))
            byte.next = [e.select(mixed, other, current)]
        _, positions = self._arrays(byte.carried[0].ref)
        with c.loop(0, self.n) as j:
            position = e.load(c.at(positions, j.index, _POSITION), dt.int64, width=1)
            self._put(start, out, j.index, position)

    def _arrays(self, which: Ref) -> tuple[str, str]:
        """The first (0) or second (1) arrays of keys and positions."""
        c = self.c
        keys = c.at(self.keys, c.mul(which, self.key_pitch), self.key.itemsize)
        return keys, c.at(self.positions, c.mul(which, self.n), _POSITION)

    def _counter(self, key: Val, shift: Val) -> str:
        digit = self.e.and_(self.e.lshr(key, shift), _DIGITS - 1)
        return self.c.at(self.counters, self.e.convert(digit, dt.int64).ref, _POSITION)


class _Blocks(ArgSort):
    """The phases of the sort of one line by blocks of its elements, all in shared memory: a head of words, counters of
    each block, and the arrays of positions and keys."""

    _WORDS = ("done", "count_shift", "move_shift", "source", "moved")

    def _lay_out(self) -> None:
        c = self.c
        self.blocks = c.div(c.add(self.n, SORT_BLOCK - 1), SORT_BLOCK)
        self.counters = c.at("%shared", _HEAD, 1)
        self.positions = c.at(self.counters, c.mul(self.blocks, _DIGITS), _POSITION)
        self.keys = c.at(self.positions, c.mul(self.n, 2), _POSITION)
        self.key_pitch = self.n

    # ---- words

    def _word(self, name: str) -> str:
        return self.c.at("%shared", self._WORDS.index(name), 8)

    def _set(self, name: str, value: Ref) -> None:
        """Several pieces of a phase may store a word at once, and then the same value."""
        self.e.line(f"store atomic i64 {value}, ptr {self._word(name)} monotonic, align 8")

    def _get(self, name: str) -> Val:
        return self.e.assign(f"load atomic i64, ptr {self._word(name)} monotonic, align 8", dt.int64, 1)

    def _pending(self) -> str:
        return self.e.eq(self._get("done"), 0).ref

    def _current(self) -> Val:
        """Which of the two arrays hold the line."""
        return self.e.xor(self._get("source"), self._get("moved"))

    # ---- phases

    def run(self, whole: str) -> None:
        """Do all of the work by the function ``whole``, in shared memory."""
        memory = self.c.at("%shared", _HEAD, 1)
        buffers = [f"%a{k}" for k in range(self.buffers)]
        arguments = kernel_arguments(buffers, "%shared", memory, "%dims", "%status", 0, 1)
        self.e.line(f"call void @{whole}({arguments})")

    def make_keys(self, whole: str) -> None:
        """Keys and positions; or all of the work, by the function ``whole``, if nobody works beside this piece."""
        c, e = self.c, self.e
        sequential = c.both(c.compare("eq", "%begin", 0), c.compare("eq", "%end", self.blocks))
        self._set("done", c.choose(sequential, 1, 0))
        for word in self._WORDS[1:]:
            self._set(word, 0)
        with c.when(sequential):
            self.run(whole)
        with c.when(c.negation(sequential)), self._elements() as (_, j):
            e.store(self._key(self.x.value(c, j)), c.at(self.keys, j, self.key.itemsize))
            e.store(c.value(j), c.at(self.positions, j, _POSITION))

    def count(self) -> None:
        """How often each digit occurs in each block."""
        c, e, item = self.c, self.e, self.key.itemsize
        with c.when(self._pending()):
            shift = e.convert(self._get("count_shift"), self.key)
            keys, _ = self._arrays(self._current().ref)
            with c.loop("%begin", "%end") as block, c.loop(0, _DIGITS) as d:
                e.store(c.value(0), self._of_block(block.index, d.index))
            with self._elements() as (block, j):
                counter = self._digit_of_block(block, e.load(c.at(keys, j, item), self.key, width=1), shift)
                e.store(e.add(e.load(counter, dt.int64, width=1), 1), counter)

    def place(self) -> None:
        """Counts become places: of the first element with a digit in a block, after all with lower digits and those
        with the same one in the blocks before.  Nothing is moved where all keys agree."""
        c, e = self.c, self.e
        with c.when(self._pending()), c.loop("%begin", "%end"):
            zero = c.value(0)
            with c.loop(0, _DIGITS, 1, [zero, e.const(False, dt.bool_, 1)]) as d:
                with c.loop(0, self.blocks, 1, [d.carried[0]]) as block:
                    counter = self._of_block(block.index, d.index)
                    count = e.load(counter, dt.int64, width=1)
                    e.store(block.carried[0], counter)
                    block.next = [e.add(block.carried[0], count)]
                total = e.sub(block.carried[0], d.carried[0])
                d.next = [block.carried[0], e.or_(d.carried[1], e.eq(total, c.value(self.n)))]
            mixed = e.convert(e.not_(d.carried[1]), dt.int64)
            self._set("source", self._current().ref)
            self._set("moved", mixed.ref)
            shift = self._get("count_shift")
            self._set("move_shift", shift.ref)
            self._set("count_shift", e.add(shift, 8).ref)

    def move(self) -> None:
        c, e, item = self.c, self.e, self.key.itemsize
        with c.when(c.both(self._pending(), e.ne(self._get("moved"), 0).ref)):
            shift, source = e.convert(self._get("move_shift"), self.key), self._get("source")
            keys, positions = self._arrays(source.ref)
            to_keys, to_positions = self._arrays(e.sub(1, source).ref)
            with self._elements() as (block, j):
                key = e.load(c.at(keys, j, item), self.key, width=1)
                counter = self._digit_of_block(block, key, shift)
                place = e.load(counter, dt.int64, width=1)
                e.store(e.add(place, 1), counter)
                e.store(key, c.at(to_keys, place.ref, item))
                position = e.load(c.at(positions, j, _POSITION), dt.int64, width=1)
                e.store(position, c.at(to_positions, place.ref, _POSITION))

    def show(self) -> None:
        c, e = self.c, self.e
        with c.when(self._pending()):
            _, positions = self._arrays(self._current().ref)
            with self._elements() as (_, j):
                position = e.load(c.at(positions, j, _POSITION), dt.int64, width=1)
                self._put(0, 0, j, position)

    @contextmanager
    def _elements(self) -> Iterator[tuple[Ref, Ref]]:
        """The blocks of a piece, and the elements of each."""
        c = self.c
        with c.loop("%begin", "%end") as block:
            first = c.mul(block.index, SORT_BLOCK)
            with c.loop(first, c.min(c.add(first, SORT_BLOCK), self.n)) as j:
                yield block.index, j.index

    def _of_block(self, block: Ref, digit: Ref) -> str:
        return self.c.at(self.counters, self.c.add(self.c.mul(block, _DIGITS), digit), _POSITION)

    def _digit_of_block(self, block: Ref, key: Val, shift: Val) -> str:
        e = self.e
        digit = e.and_(e.lshr(key, shift), _DIGITS - 1)
        return self._of_block(block, e.convert(digit, dt.int64).ref)
