"""Sorts by teams of GPU threads: of positions, of values, or of the first few positions, all stable.

A warp sorts a line of up to 64 elements: each thread counts who comes before its own.  Longer lines that have room in
memory of a block are sorted there by a network of exchanges, keys first and positions second, so that no two are
equal.  Where only a few elements of a long line are wanted, blocks find those of each piece, and other blocks those of
what is left, until one block has all.  Other lines are sorted by radix (``radix_sort``).  Where it is not known how
long lines are, there is code for both, and launches find that there is nothing to do.

Memory on the way holds elements, and numbers for their positions of as many bits as a line needs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from hybridflow.compiler.codegen.core.emitter import Emitter
from hybridflow.compiler.codegen.core.kernel_builder import KernelBuilder, Ref
from hybridflow.compiler.codegen.core.llvm_module import LLVMModule
from hybridflow.compiler.codegen.core.llvm_values import Val
from hybridflow.compiler.codegen.core.phases import EmittedKernel, Phase, kernel_parameters
from hybridflow.compiler.codegen.gpu.radix_sort import RadixSort, word_for
from hybridflow.compiler.codegen.gpu.thread_group import ThreadGroup
from hybridflow.compiler.codegen.ordering import sorting_network
from hybridflow.compiler.codegen.ordering.argsort import SortOperand, bits_of, key_of
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.extents import Extent, aligned, at_least
from hybridflow.compiler.ir.types import product
from hybridflow.compiler.loops.buffer_assignment import ALIGNMENT
from hybridflow.compiler.loops.tuning import (
    ALL_PAIRS,
    FEW_OF,
    MAX_WARPS,
    MIN_NETWORK,
    NETWORK_BYTES,
    WARP,
)

_POSITION = 8  # bytes of a position in the result
_NUMBER = dt.uint16  # of an element in memory of a block


def emit_group_sort(module: LLVMModule, e: Emitter, symbol: str, operand: SortOperand) -> EmittedKernel:
    """Add the kernel ``symbol``, whose result is what the ``ranking`` wants."""
    return _Sorts(module, e, symbol, operand).emit()


def network_of(dtype: np.dtype) -> int:
    """The most elements that a block sorts in its memory."""
    return 1 << (NETWORK_BYTES // (dtype.itemsize + _NUMBER.itemsize)).bit_length() - 1


@dataclass(frozen=True)
class _Level:
    """Pieces of ``size`` elements, of lines of ``n``, of which the first ``count`` go on."""

    n: int
    size: int
    count: int

    @property
    def pieces(self) -> int:
        return -(-self.n // self.size)

    @property
    def left(self) -> int:
        """Elements that go on from a line."""
        return (self.pieces - 1) * self.count + min(self.count, self.n - (self.pieces - 1) * self.size)


class _Sorts:
    def __init__(self, module: LLVMModule, e: Emitter, symbol: str, operand: SortOperand) -> None:
        ranking, x, buffers = operand.ranking, operand.x, operand.buffers
        self.module, self.e, self.symbol, self.ranking, self.x = module, e, symbol, ranking, x
        self.dims, self.buffers, self.out = operand.dims, buffers, f"%a{buffers - 1}"
        self.dtype = x.node.dtype
        self.item = np.dtype(f"uint{8 * self.dtype.itemsize}")
        shape, axis = x.node.shape, ranking.axis
        self.n, self.behind = shape[axis], shape[axis + 1 :]
        self.lines: Extent = product((*shape[:axis], *self.behind))
        self.most = network_of(self.dtype)
        self.word = word_for(self.n)

    def emit(self) -> EmittedKernel:
        n, count = self.n, self.ranking.count
        is_long: Extent = 1
        if not isinstance(n, int):
            short, radix = self._in_block(self.most, self._is_short), self._radix(self._is_long)
            is_long = at_least(n, self.most + 1)
        elif n <= ALL_PAIRS:
            return EmittedKernel((self._phase("", (self.lines,), WARP, self._by_counting),))
        elif n <= self.most:
            return EmittedKernel((self._in_block(_power(n)),))
        elif count is not None and count * FEW_OF <= self.most:
            return self._first_few(n, count)
        else:
            short, radix = None, self._radix()
        phases = radix.phases(self.module, self._new_code, self.symbol, self.buffers)
        return EmittedKernel((*([short] if short else []), *phases), shared=radix.shared * is_long)

    def _new_code(self) -> KernelBuilder:
        return KernelBuilder(self.e.sibling(), self.dims)

    def _phase(
        self, name: str, units: Sequence[Extent], group: int, write: Callable[[KernelBuilder, ThreadGroup], None]
    ) -> Phase:
        c = self._new_code()
        write(c, ThreadGroup(c, group))
        c.e.line("ret void")
        symbol = self.module.function(c.e, self.symbol + name, kernel_parameters(self.buffers), linkage="internal")
        return Phase(symbol, tuple(units), group_size=group)

    # ---- elements

    def _at(self, c: KernelBuilder, line: Ref, j: Ref, extent: Ref) -> Ref:
        """Where element ``j`` of a line lies, in lines of that extent."""
        inner = c.product(self.behind)
        outer, inside = c.div(line, inner), c.rem(line, inner)
        return c.add(c.mul(c.add(c.mul(outer, extent), j), inner), inside)

    def _read(self, c: KernelBuilder, line: Ref, j: Ref, mask: Val | None = None) -> Val:
        """The bits of an element."""
        return bits_of(c.e, self.x.value(c, self._at(c, line, j, c.extent(self.n)), mask))

    def _key(self, c: KernelBuilder, bits: Val) -> Val:
        return key_of(c.e, bits, self.dtype, self.ranking.descending)

    def _put(self, c: KernelBuilder, line: Ref, place: Ref, bits: Val | None, position: Val | None) -> None:
        """What belongs to a place of the result."""
        wanted = c.extent(self.n) if self.ranking.count is None else self.ranking.count
        with c.when(True if self.ranking.count is None else c.compare("slt", place, wanted)):
            at = self._at(c, line, place, wanted)
            if self.ranking.values:
                assert bits is not None
                c.e.store(bits, c.at(self.out, at, self.item.itemsize))
            else:
                assert position is not None
                c.e.store(c.e.convert(position, dt.int64), c.at(self.out, at, _POSITION))

    # ---- a line by a warp

    def _by_counting(self, c: KernelBuilder, group: ThreadGroup) -> None:
        assert isinstance(self.n, int)
        e = c.e
        with c.loop("%begin", "%end") as unit:
            places = [c.add(group.lane, first) for first in range(0, self.n, WARP)]
            inside = [Val(str(c.compare("slt", place, self.n)), dt.bool_, 1) for place in places]
            bits = [self._read(c, unit.index, place, mask) for place, mask in zip(places, inside)]
            keys = [self._key(c, number_inside) for number_inside in bits]
            numbers = [e.convert(c.value(place), dt.uint32) for place in places]
            counts = [e.zero(dt.uint32, 1) for _ in places]
            for k, key in enumerate(keys):
                with c.loop(0, min(WARP, self.n - k * WARP), 1, counts) as iteration:
                    other = group.from_lane(key, iteration.index)
                    number = e.convert(c.value(c.add(iteration.index, k * WARP)), dt.uint32)
                    iteration.next = [
                        e.add(count, e.convert(_before(e, other, number, bits_here, at), dt.uint32))
                        for count, bits_here, at in zip(iteration.carried, keys, numbers)
                    ]
                counts = iteration.carried
            for place, mask, bits_here, count in zip(places, inside, bits, counts):
                with c.when(mask.ref):
                    self._put(c, unit.index, e.convert(count, dt.int64).ref, bits_here, c.value(place))

    # ---- a line by a block

    def _in_block(self, most: int, when: Callable[[KernelBuilder], str | bool] = lambda c: True) -> Phase:
        """A network for lines of up to ``most`` elements, a power of two."""

        def write(c: KernelBuilder, group: ThreadGroup) -> None:
            with c.when(when(c)), c.loop("%begin", "%end") as unit:

                def put(rank: Ref, number: Ref) -> None:
                    bits = self._read(c, unit.index, number) if self.ranking.values else None
                    self._put(c, unit.index, rank, bits, c.value(number))

                n = c.extent(self.n)
                self._network(c, group, most, n, n, lambda j, mask: self._read(c, unit.index, j, mask), put)

        return self._phase("_block", (self.lines,), _group_of(most), write)

    def _network(
        self,
        c: KernelBuilder,
        group: ThreadGroup,
        most: int,
        n: Ref,
        wanted: Ref,
        read: Callable[[Ref, Val], Val],
        put: Callable[[Ref, Ref], None],
    ) -> None:
        """Sort ``n`` elements, ``most`` at the most, of which ``read(j, mask)`` gives the bits, and have ``put(rank,
        j)`` store the first ``wanted``."""
        e, item = c.e, self.item.itemsize
        keys = group.memory(most * (item + _NUMBER.itemsize))
        numbers = c.at(keys, most, item)

        def load(at: Ref) -> tuple[Val, Val]:
            number = e.load(c.at(numbers, at, _NUMBER.itemsize), _NUMBER)
            return e.load(c.at(keys, at, item), self.item), number

        def store(at: Ref, key: Val, number: Val) -> None:
            e.store(key, c.at(keys, at, item))
            e.store(number, c.at(numbers, at, _NUMBER.itemsize))

        rows = sorting_network.power_above(c, n)
        with c.loop(group.rank, rows, group.size) as iteration:
            is_one = Val(str(c.compare("slt", iteration.index, n)), dt.bool_, 1)
            key = e.select(is_one, self._key(c, read(iteration.index, is_one)), 2 ** (8 * item) - 1)
            number = e.select(is_one, e.convert(c.value(iteration.index), _NUMBER), 0xFFFF)
            store(iteration.index, key, number)
        group.barrier()
        half = c.div(rows, 2)
        with c.loop(1, c.add(sorting_network.bits(c, rows), 1)) as level, c.loop(0, level.index) as step:
            distance = e.shl(e.const(1, dt.int64, 1), c.value(c.sub(c.sub(level.index, step.index), 1)))
            runs = e.shl(e.const(1, dt.int64, 1), c.value(level.index))
            with c.loop(group.rank, half, group.size) as pair:
                inside = e.and_(c.value(pair.index), e.sub(distance, 1))
                low = e.add(e.shl(e.sub(c.value(pair.index), inside), 1), inside)
                high = e.add(low, distance)
                (a, i), (b, j) = load(low.ref), load(high.ref)
                ascends = e.eq(e.and_(low, runs), 0)
                with c.when(e.eq(_before(e, b, j, a, i), ascends).ref):
                    store(low.ref, b, j)
                    store(high.ref, a, i)
            group.barrier()
        with c.loop(group.rank, wanted, group.size) as iteration:
            _, number = load(iteration.index)
            put(iteration.index, e.convert(number, dt.int64).ref)
        group.barrier()  # nobody brings other elements while somebody reads these

    # ---- the first of a long line

    def _first_few(self, n: int, count: int) -> EmittedKernel:
        size = min(self.most, max(MIN_NETWORK, _power(FEW_OF * count)))
        levels = [_Level(n, size, count)]
        while levels[-1].pieces > 1:
            levels.append(_Level(levels[-1].left, size, count))
        # What goes on lies in two places in turn: bits, and behind them positions.
        room = levels[0].left if len(levels) > 1 else 0
        bits, positions = (
            aligned(self.lines * (room * each), ALIGNMENT) for each in (self.item.itemsize, self.word.itemsize)
        )
        phases = [
            self._phase(
                f"_{number}" if number else "",
                (self.lines, level.pieces),
                _group_of(size),
                lambda c, group, number=number: self._level(c, group, levels, number, bits, positions),  # type: ignore[misc]
            )
            for number, level in enumerate(levels)
        ]
        return EmittedKernel(tuple(phases), shared=2 * (bits + positions) if room else 0)

    def _level(
        self,
        c: KernelBuilder,
        group: ThreadGroup,
        levels: Sequence[_Level],
        number: int,
        bits: Extent,
        positions: Extent,
    ) -> None:
        e, level = c.e, levels[number]
        is_last = number == len(levels) - 1

        def place(which: int) -> tuple[str, str]:
            base = c.at("%shared", c.extent((bits + positions) * (which % 2)), 1)
            return base, c.at(base, c.extent(bits), 1)

        (from_bits, from_positions), (to_bits, to_positions) = place(number), place(number + 1)
        with c.loop("%begin", "%end") as unit:
            line, piece = c.div(unit.index, level.pieces), c.rem(unit.index, level.pieces)
            begin = c.mul(piece, level.size)
            size = c.min(c.sub(level.n, begin), level.size)

            def read(j: Ref, mask: Val | None = None) -> Val:
                at = c.add(begin, j)
                if number == 0:
                    return self._read(c, line, at, mask)
                where = c.at(from_bits, c.add(c.mul(line, level.n), at), self.item.itemsize)
                return e.load(where, self.item, mask, width=1)

            def put(rank: Ref, j: Ref) -> None:
                at = c.add(begin, j)
                position = c.value(at)
                if number:
                    where = c.at(from_positions, c.add(c.mul(line, level.n), at), self.word.itemsize)
                    position = e.load(where, self.word)
                if is_last:
                    self._put(c, line, rank, None, position)
                    return
                to = c.add(c.add(c.mul(line, level.left), c.mul(piece, level.count)), rank)
                e.store(read(j), c.at(to_bits, to, self.item.itemsize))
                e.store(e.convert(position, self.word), c.at(to_positions, to, self.word.itemsize))

            self._network(c, group, level.size, size, c.min(size, level.count), read, put)

    # ---- by radix

    def _radix(self, when: Callable[[KernelBuilder], str | bool] = lambda c: True) -> RadixSort:
        return RadixSort(
            self.lines,
            self.n,
            self.item,
            8 * self.item.itemsize,
            not self.ranking.values,
            self._read,
            self._key,
            self._put,
            when,
        )

    def _is_short(self, c: KernelBuilder) -> str | bool:
        return c.compare("sle", c.extent(self.n), self.most)

    def _is_long(self, c: KernelBuilder) -> str | bool:
        return c.compare("sgt", c.extent(self.n), self.most)


def _before(e: Emitter, a: Val, i: Val, b: Val, j: Val) -> Val:
    """Whether key ``a`` with number ``i`` comes before key ``b`` with number ``j``."""
    return e.or_(e.lt(a, b), e.and_(e.eq(a, b), e.lt(i, j)))


def _group_of(rows: int) -> int:
    """Threads for a network of so many rows, a power of two: each has a few exchanges between two barriers."""
    return min(max(rows // 4, 2 * WARP), MAX_WARPS * WARP)


def _power(n: int) -> int:
    """The least power of two that is not below ``n``."""
    return 1 << (n - 1).bit_length()
