"""Stable sorts of lines by radix, over all threads of a GPU, a byte of the keys per pass from the lowest.

A line is cut into blocks.  A pass has three launches.  A team counts the bytes of its block; the counts of a line
become, for each byte, how many stand in the blocks before; and a team moves its block: it puts the elements in order in
memory of the block, where each warp knows how many lie before its own.  A vote tells each of its threads how many of
the same byte come before it, so that runs of neighbours are written.  Only numbers of equal things are added up in an
order that is not laid down.  A pass moves nothing where all keys of a line agree in its byte, but for the last one.

What is moved are elements, of which keys are computed, with their positions where these are wanted; so two elements of
equal keys (-0.0 and 0.0, NaNs) stay what they are.  All passes but the first and the last run the same code: shift and
arrays stand in words in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from hybridflow.compiler.codegen.core.kernel_builder import KernelBuilder, Ref
from hybridflow.compiler.codegen.core.llvm_module import LLVMModule
from hybridflow.compiler.codegen.core.llvm_values import Val
from hybridflow.compiler.codegen.core.phases import Phase, kernel_parameters
from hybridflow.compiler.codegen.gpu.thread_group import ThreadGroup
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.extents import Extent, aligned
from hybridflow.compiler.loops.buffer_assignment import ALIGNMENT
from hybridflow.compiler.loops.tuning import MAX_WARPS, MOVED_BYTES, WARP

DIGITS = 256
GROUP_SIZE = DIGITS  # threads of a block: one for each digit
_WARPS = GROUP_SIZE // WARP
_COUNT = 4  # bytes of a counter in memory of the block
_TOGETHER = 4  # elements that a thread asks for at once
_THREADS = 1024  # of a multiprocessor, for which there are registers
_FEWER = 768  # where they move elements with positions of eight bytes
_STATE = 4  # bytes of a word of a line
# Where a line lies: in the first arrays, with no positions yet; in the second ones; in the first ones.
_GIVEN, _SECOND, _FIRST = range(3)


@dataclass(frozen=True)
class RadixSort:
    """A sort of ``lines`` lines of ``n`` elements: ``item``, unsigned, are their bits, the lowest ``key_bits`` of whose
    keys count.  ``source(c, line, j, mask)`` gives the bits of an element, ``key(c, bits)`` the key, and ``finish(c,
    line, place, bits, position)`` stores what belongs to a place; ``position`` is None unless there are ``positions``.
    ``when(c)`` says whether there is anything to do."""

    lines: Extent
    n: Extent
    item: np.dtype
    key_bits: int
    positions: bool
    source: Callable[[KernelBuilder, Ref, Ref, Val | None], Val]
    key: Callable[[KernelBuilder, Val], Val]
    finish: Callable[[KernelBuilder, Ref, Ref, Val, Val | None], None]
    when: Callable[[KernelBuilder], str | bool] = lambda c: True

    @property
    def passes(self) -> int:
        return max(-(-self.key_bits // 8), 1)

    @property
    def word(self) -> np.dtype:
        """Of positions and counts."""
        return word_for(self.n)

    @property
    def block(self) -> int:
        """Elements of a block."""
        each = self.item.itemsize + (self.word.itemsize if self.positions else 0)
        most = MOVED_BYTES // each
        return 1 << min(most.bit_length() - 1, (DIGITS * 32).bit_length() - 1)

    @property
    def blocks(self) -> Extent:
        """Of a line."""
        return (self.n + (self.block - 1)) // self.block

    @property
    def _parts(self) -> list[tuple[str, Extent]]:
        elements, word = self.lines * self.n, self.word.itemsize
        arrays = 2 if self.passes > 1 else 1
        parts: list[tuple[str, Extent]] = [
            ("counts", self.lines * self.blocks * (DIGITS * word)),
            ("totals", self.lines * (DIGITS * word)),
            *((name, self.lines * _STATE) for name in ("now", "moving", "agree")),
            *((f"bits{k}", elements * self.item.itemsize) for k in range(arrays)),
        ]
        if self.positions and arrays > 1:
            parts += [(f"positions{k}", elements * word) for k in range(arrays)]
        return parts

    @property
    def shared(self) -> Extent:
        """Bytes of memory that all phases see."""
        return sum((aligned(size, ALIGNMENT) for _, size in self._parts), start=0)

    def places(self, c: KernelBuilder) -> dict[str, str]:
        """Where the parts of that memory begin."""
        result, at = {}, c.at("%shared", 0, 1)
        for name, size in self._parts:
            result[name] = at
            at = c.at(at, c.extent(aligned(size, ALIGNMENT)), 1)
        return result

    def phases(
        self, module: LLVMModule, new_code: Callable[[], KernelBuilder], symbol: str, buffers: int
    ) -> list[Phase]:
        """Add the functions; the phases over ``buffers`` buffers."""

        def added(
            name: str, units: Sequence[Extent], group: int, write: Callable[[_RadixPass], None], reads: bool = False
        ) -> Phase:
            c = new_code()
            phase = _RadixPass(c, ThreadGroup(c, group), self)
            with c.when(self.when(c)):
                write(phase)
            c.e.line("ret void")
            parameters = kernel_parameters(buffers)
            function = module.function(c.e, f"{symbol}_{name}", parameters, linkage="internal")
            fewer = name in ("last", "move") and self.word.itemsize == 8
            return Phase(function, tuple(units), checks=reads, group_size=group, threads=_FEWER if fewer else _THREADS)

        blocks = (self.lines, self.blocks)
        first = added("first", blocks, GROUP_SIZE, lambda p: p.count(first=True), reads=True)
        groups = (self.lines, DIGITS // WARP)
        place = added("place", groups, MAX_WARPS * WARP, _RadixPass.place)
        last = added("last", blocks, GROUP_SIZE, lambda p: p.move(last=True))
        if self.passes == 1:
            return [first, place, last]
        count = added("count", blocks, GROUP_SIZE, lambda p: p.count(first=False))
        move = added("move", blocks, GROUP_SIZE, lambda p: p.move(last=False))
        return [first, place, *[move, count, place] * (self.passes - 1), last]


def word_for(n: Extent) -> np.dtype:
    """The dtype of positions in lines of ``n`` elements."""
    return np.dtype(np.uint32 if isinstance(n, int) and n < 1 << 31 else np.uint64)


class _RadixPass:
    """Writes a phase."""

    def __init__(self, c: KernelBuilder, group: ThreadGroup, radix: RadixSort) -> None:
        self.c, self.e, self.group, self.radix = c, c.e, group, radix
        self.word, self.item = radix.word, radix.item
        self.memory = radix.places(c)
        self.n, self.blocks = c.extent(radix.n), c.extent(radix.blocks)

    # ---- phases

    def count(self, first: bool) -> None:
        """How often each digit occurs in a block.  The first pass keeps the bits of all elements as well."""
        c, e, group = self.c, self.e, self.group
        counters = group.memory(DIGITS * _COUNT)
        counter = c.at(counters, group.rank, _COUNT)
        with c.loop("%begin", "%end") as unit, self._block(unit.index) as (line, block, begin, end):
            e.store(e.zero(dt.uint32, 1), counter)
            group.barrier()
            state = None if first else self._load("now", line, dt.uint32)
            shift = e.zero(self.item, 1) if state is None else self._shift(state)
            elements = self._bits(line, state)

            def see(at: Sequence[Ref], mask: Val | None) -> None:
                bits_of_line = [self._element(line, j, elements, first, mask) for j in at]
                with c.when(True if mask is None else mask.ref):
                    for j, bits in zip(at, bits_of_line):
                        if first:
                            e.store(bits, c.at(elements, j, self.item.itemsize))
                        self._bump(c.at(counters, self._digit(bits, shift).ref, _COUNT))

            self._for_each(begin, end, group.rank, GROUP_SIZE, see)
            group.barrier()
            count = e.convert(e.load(counter, dt.uint32), self.word)
            e.store(count, c.at(self.memory["counts"], self._of_block(line, block, group.rank), self.word.itemsize))
            with c.when(c.both(group.is_first, c.compare("eq", block, 0))):
                self._store("agree", line, e.zero(dt.uint32, 1))
                if first:
                    self._store("now", line, e.zero(dt.uint32, 1))

    def place(self) -> None:
        """The counts of a digit become those of the blocks before.  A unit has as many digits as a warp has threads,
        and each warp of its team some blocks."""
        c, e, team, item = self.c, self.e, self.group, self.word.itemsize
        sums = team.memory(team.size * item)
        with c.loop("%begin", "%end") as unit:
            groups = DIGITS // WARP
            line, group = c.div(unit.index, groups), c.rem(unit.index, groups)
            digit = c.add(c.mul(group, WARP), team.lane)
            rows = c.div(c.add(self.blocks, team.warps - 1), team.warps)
            begin = c.min(c.mul(team.warp, rows), self.blocks)
            end = c.min(c.add(begin, rows), self.blocks)

            def counter(block: Ref) -> str:
                return c.at(self.memory["counts"], self._of_block(line, block, digit), item)

            zero = e.zero(self.word, 1)
            with c.loop(begin, end, 1, [zero]) as block:
                block.next = [e.add(block.carried[0], e.load(counter(block.index), self.word))]
            e.store(block.carried[0], c.at(sums, team.rank, item))
            team.barrier()
            with c.loop(0, team.warp, 1, [zero]) as warp:
                count = e.load(c.at(sums, c.add(team.lane, c.mul(warp.index, WARP)), item), self.word)
                warp.next = [e.add(warp.carried[0], count)]
            with c.loop(begin, end, 1, warp.carried) as block:
                count = e.load(counter(block.index), self.word)
                e.store(block.carried[0], counter(block.index))
                block.next = [e.add(block.carried[0], count)]
            with c.when(c.compare("eq", team.warp, team.warps - 1)):
                total = block.carried[0]
                e.store(total, c.at(self.memory["totals"], c.add(c.mul(line, DIGITS), digit), item))
                all_of_them = e.eq(total, e.convert(c.value(self.n), self.word))
                with c.when(all_of_them.ref):
                    self._store("agree", line, e.const(1, dt.uint32, 1))
            with c.when(c.both(team.is_first, c.compare("eq", group, 0))):
                self._store("moving", line, self._load("now", line, dt.uint32))
            team.barrier()  # nobody overwrites the sums of who is late

    def move(self, last: bool) -> None:
        """Elements to where they belong."""
        c, e, group = self.c, self.e, self.group
        with c.loop("%begin", "%end") as unit, self._block(unit.index) as (line, block, begin, end):
            state = self._load("moving", line, dt.uint32)
            stays = e.ne(self._load("agree", line, dt.uint32), 0)
            if not last:
                with c.when(c.both(group.is_first, c.compare("eq", block, 0))):
                    array = e.and_(state, 3)
                    moved = e.select(stays, array, self._other(array))
                    self._store("now", line, e.or_(e.add(e.and_(state, ~3 & 0xFFFFFFFF), 32), moved))
            with c.when(True if last else c.negation(stays.ref)):
                self._move_block(line, block, begin, end, state, last)

    def _move_block(self, line: Ref, block: Ref, begin: Ref, end: Ref, state: Val, last: bool) -> None:
        c, e, group, item, word = self.c, self.e, self.group, self.item.itemsize, self.word.itemsize
        radix = self.radix
        room = radix.block
        # In memory of the block: elements and positions, in order at last, counters of each warp, where each digit
        # goes, and the sums of warps.
        starts_at = room * (item + (word if radix.positions else 0))
        memory = group.memory(starts_at + DIGITS * word + _WARPS * DIGITS * _COUNT + _WARPS * word)
        elements = c.at(memory, room * word, 1) if radix.positions else memory
        positions, starts = memory, c.at(memory, starts_at, 1)
        counters = c.at(starts, DIGITS, word)
        sums = c.at(counters, _WARPS * DIGITS, _COUNT)
        counters_of_warp = c.at(counters, c.mul(group.warp, DIGITS), _COUNT)
        shift, bits_of_line = self._shift(state), self._bits(line, state)

        for warp in range(_WARPS):
            e.store(e.zero(dt.uint32, 1), c.at(counters, c.add(group.rank, warp * DIGITS), _COUNT))
        group.barrier()

        # What each warp has of each digit.
        part = room // _WARPS
        first = c.min(c.add(begin, c.mul(group.warp, part)), end)
        stop = c.min(c.add(first, part), end)

        def see(at: Sequence[Ref], mask: Val | None) -> None:
            elements_here = [self._element(line, j, bits_of_line, False, mask) for j in at]
            with c.when(True if mask is None else mask.ref):
                for bits in elements_here:
                    self._bump(c.at(counters_of_warp, self._digit(bits, shift).ref, _COUNT))

        self._for_each(first, stop, group.lane, WARP, see)
        group.barrier()

        # Where the digit of this thread's number begins: in the block, of each warp, and in the line.
        counts = [e.load(c.at(counters, c.add(group.rank, w * DIGITS), _COUNT), dt.uint32) for w in range(_WARPS)]
        in_block = counts[0]
        for count in counts[1:]:
            in_block = e.add(in_block, count)
        start = group.sum_before(in_block, sums)
        at = start
        for warp, count in enumerate(counts):
            e.store(at, c.at(counters, c.add(group.rank, warp * DIGITS), _COUNT))
            at = e.add(at, count)
        total = e.load(c.at(self.memory["totals"], c.add(c.mul(line, DIGITS), group.rank), word), self.word)
        before = e.load(c.at(self.memory["counts"], self._of_block(line, block, group.rank), word), self.word)
        in_line = e.add(group.sum_before(total, sums), before)
        e.store(e.sub(in_line, e.convert(start, self.word)), c.at(starts, group.rank, word))
        group.barrier()

        def put(at: Sequence[Ref], mask: Val | None) -> None:
            """Elements of neighbouring threads, in order, into memory of the block."""
            elements_here = [self._element(line, j, bits_of_line, False, mask) for j in at]
            for j, bits in zip(at, elements_here):
                digit = self._digit(bits, shift)
                peers = self._peers(digit, mask)
                below = e.sub(e.shl(e.const(1, dt.uint32, 1), e.convert(c.value(group.lane), dt.uint32)), 1)
                rank = self._ones(e.and_(peers, below))
                counter = c.at(counters_of_warp, digit.ref, _COUNT)
                base = e.load(counter, dt.uint32)
                group.warp_barrier()
                leads = e.eq(rank, 0) if mask is None else e.and_(e.eq(rank, 0), mask)
                with c.when(leads.ref):
                    e.store(e.add(base, self._ones(peers)), counter)
                group.warp_barrier()
                place = e.convert(e.add(base, rank), dt.int64).ref
                with c.when(True if mask is None else mask.ref):
                    e.store(bits, c.at(elements, place, item))
                    if radix.positions:
                        e.store(self._position(line, j, state), c.at(positions, place, word))

        self._for_each(first, stop, group.lane, WARP, put)
        group.barrier()

        to_bits = self._bits(line, state, other=True)
        to_positions = self._positions(line, state, other=True)
        with c.loop(group.rank, c.sub(end, begin), GROUP_SIZE) as iteration:
            bits = e.load(c.at(elements, iteration.index, item), self.item)
            position = e.load(c.at(positions, iteration.index, word), self.word) if radix.positions else None
            start = e.load(c.at(starts, self._digit(bits, shift).ref, word), self.word)
            to = e.convert(e.add(start, e.convert(c.value(iteration.index), self.word)), dt.int64).ref
            if last:
                radix.finish(c, line, to, bits, position)
            else:
                e.store(bits, c.at(to_bits, to, item))
                if position is not None:
                    e.store(position, c.at(to_positions, to, word))

    # ---- elements

    @contextmanager
    def _block(self, unit: Ref) -> Iterator[tuple[Ref, Ref, Ref, Ref]]:
        """The line of a unit, the number of its block, and the elements of that, from and to."""
        c = self.c
        line, block = c.div(unit, self.blocks), c.rem(unit, self.blocks)
        begin = c.mul(block, self.radix.block)
        yield line, block, begin, c.min(c.add(begin, self.radix.block), self.n)

    def _for_each(
        self, begin: Ref, end: Ref, offset: Ref, step: int, body: Callable[[Sequence[Ref], Val | None], None]
    ) -> None:
        """``body(elements, mask)``: several of this thread, which has number ``offset`` of ``step``, and then one by
        one, with those masked that are no more."""
        c, many = self.c, _TOGETHER * step
        whole = c.add(begin, c.mul(c.div(c.sub(end, begin), many), many))
        with c.loop(begin, whole, many) as iteration:
            first = c.add(iteration.index, offset)
            body([c.add(first, k * step) for k in range(_TOGETHER)], None)
        with c.loop(whole, end, step) as iteration:
            j = c.add(iteration.index, offset)
            body([j], Val(str(c.compare("slt", j, end)), dt.bool_, 1))

    def _element(self, line: Ref, j: Ref, bits: str, first: bool, mask: Val | None) -> Val:
        if first:
            return self.radix.source(self.c, line, j, mask)
        return self.e.load(self.c.at(bits, j, self.item.itemsize), self.item, mask, width=1)

    def _position(self, line: Ref, j: Ref, state: Val) -> Val:
        e, number = self.e, self.e.convert(self.c.value(j), self.word)
        if self.radix.passes == 1:
            return number
        known = e.ne(e.and_(state, 3), _GIVEN)
        place = self.c.at(self._positions(line, state), j, self.word.itemsize)
        return e.select(known, e.load(place, self.word, known, width=1), number)

    def _bits(self, line: Ref, state: Val | None, other: bool = False) -> str:
        return self._array("bits", self.item, line, state, other)

    def _positions(self, line: Ref, state: Val, other: bool = False) -> str:
        return self._array("positions", self.word, line, state, other) if self.radix.positions else ""

    def _array(self, name: str, dtype: np.dtype, line: Ref, state: Val | None, other: bool) -> str:
        """Where that line lies, or the array to which it is moved."""
        c, e, start = self.c, self.e, self.c.mul(line, self.n)
        if state is None or self.radix.passes == 1:
            return c.at(self.memory.get(f"{name}0", "null"), start, dtype.itemsize)
        array = e.and_(state, 3)
        second = e.eq(self._other(array) if other else array, _SECOND)
        chosen = c.choose_pointer(second.ref, self.memory[f"{name}1"], self.memory[f"{name}0"])
        return c.at(chosen, start, dtype.itemsize)

    def _other(self, array: Val) -> Val:
        return self.e.select(self.e.eq(array, _SECOND), _FIRST, self.e.const(_SECOND, dt.uint32, 1))

    # ---- digits

    def _shift(self, state: Val) -> Val:
        return self.e.convert(self.e.lshr(state, 2), self.item)

    def _digit(self, bits: Val, shift: Val) -> Val:
        e = self.e
        return e.convert(e.and_(e.lshr(self.radix.key(self.c, bits), shift), DIGITS - 1), dt.int64)

    def _peers(self, digit: Val, mask: Val | None) -> Val:
        """Which threads of the warp have the same digit."""
        e, group = self.e, self.group
        peers = e.const(0xFFFFFFFF, dt.uint32, 1) if mask is None else group.ballot(mask)
        narrow = e.convert(digit, dt.uint32)
        for bit in range(8):
            is_set = e.ne(e.and_(narrow, 1 << bit), 0)
            votes = group.ballot(is_set)
            peers = e.and_(peers, e.select(is_set, votes, e.not_(votes)))
        return peers

    def _ones(self, bits: Val) -> Val:
        self.e.declare("declare i32 @llvm.ctpop.i32(i32)")
        return self.e.assign(f"call i32 @llvm.ctpop.i32(i32 {bits.ref})", dt.uint32, 1)

    def _bump(self, counter: str) -> None:
        """One more; in which order threads come makes no difference."""
        self.e.line(f"{self.e.fresh()} = atomicrmw add ptr {counter}, i32 1 monotonic")

    # ---- memory

    def _of_block(self, line: Ref, block: Ref, digit: Ref) -> Ref:
        c = self.c
        return c.add(c.mul(c.add(c.mul(line, self.blocks), block), DIGITS), digit)

    def _load(self, name: str, line: Ref, dtype: np.dtype) -> Val:
        return self.e.load(self.c.at(self.memory[name], line, _STATE), dtype)

    def _store(self, name: str, line: Ref, value: Val) -> None:
        self.e.store(value, self.c.at(self.memory[name], line, _STATE))
