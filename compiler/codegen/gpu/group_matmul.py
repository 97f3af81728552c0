"""Products by teams of GPU threads, in the order of ``ops/evaluation_order.py``: tiles of sums in registers.

Both factors come through memory of the block, a few elements of the depth at a time, and whatever they are made of is
computed on the way there.  While threads add up one part, what they have read of the next one waits in registers.
An element of the product belongs to one thread, which goes through the depth in order, so the bits are those of a CPU.

At the edges the last row or column is read again, and what was computed from those is not stored.  Behind the end of
the depth there are zeros on both sides: they may change the sign of a sum that is zero, which the total does not show.
Finished sums go through memory of the block once more, so that neighbouring threads store neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hybridflow.compiler.codegen.core.kernel_builder import KernelBuilder, Ref
from hybridflow.compiler.codegen.core.llvm_values import Val
from hybridflow.compiler.codegen.gpu.shared_memory_operands import OperandPair
from hybridflow.compiler.codegen.gpu.thread_group import ThreadGroup, dynamic_shared
from hybridflow.compiler.codegen.products.packed_formats import PackedFormat, join_block_sums, multiply_add
from hybridflow.compiler.loops.gpu_matmul_tiles import GroupTile
from hybridflow.compiler.ops.evaluation_order import K_BLOCK, RUN

Store = Callable[[Val, Ref, Ref, Ref], None]
"""``store(sum, at, row, col)`` of one finished element."""


class GroupTiles:
    """Writes the tiles of one product of so many rows and columns, whatever multiplies them.  Memory of the block is
    ``nbytes`` of its own, or those that ``is_lent``."""

    def __init__(
        self,
        code: KernelBuilder,
        nbytes: int,
        threads: int,
        depth: int,
        form: PackedFormat,
        sides: OperandPair,
        extents: tuple[Ref, Ref],
        is_lent: bool,
        in_blocks: bool,
    ) -> None:
        self.c, self.e, self.form, self.depth, self.in_blocks = code, code.e, form, depth, in_blocks
        self.m, self.n = extents
        self.group = ThreadGroup(code, threads)
        self.item = form.sums.itemsize
        self.memory = dynamic_shared(code.e) if is_lent else self.group.memory(nbytes)
        self.sides = sides(code, self.group)

    def write(self, entry: Ref, at: Ref, row: Ref, col: Ref, begin: Ref, end: Ref, store: Store) -> None:
        """The tile from (row, col) on of a batch entry: sums over [begin, end) of the depth, to be stored ``at``."""
        c, (x, y) = self.c, (side.lines(entry, first) for side, first in zip(self.sides, (row, col)))
        if begin == 0 and not isinstance(end, int):
            with c.when(c.compare("slt", 0, end)):
                self._stage(x, y, begin)
        elif end != 0:
            self._stage(x, y, begin)
        self._finish(self._sums(x, y, begin, end), at, row, col, store)

    # ---- sums

    def _sums(self, x: list[Any], y: list[Any], begin: Ref, end: Ref) -> list[Val]:
        """The thread's sums, row by row."""
        c, e = self.c, self.e
        if not self.in_blocks:
            return [e.add(a, b) for a, b in zip(self._zeros(), self._block(x, y, begin, end))]
        with c.loop(begin, end, K_BLOCK, self._zeros()) as block:
            last = c.min(c.add(block.index, K_BLOCK), end)
            block.next = [e.add(a, b) for a, b in zip(block.carried, self._block(x, y, block.index, last))]
        return block.carried

    def _block(self, x: list[Any], y: list[Any], begin: Ref, end: Ref) -> list[Val]:
        """The sums over [begin, end) of the depth, whose first part is there: the first of what follows is then."""
        c, count = self.c, len(self._zeros())
        if not self.form.interleaves_sums:
            return self._iterations(x, y, begin, end, self._zeros())
        with c.loop(begin, end, RUN, self._zeros()) as run:
            last = c.min(c.add(run.index, RUN), end)
            sums = self._iterations(x, y, run.index, last, self._zeros() * 2)
            run.next = [join_block_sums(self.e, self.form, *of) for of in zip(run.carried, sums, sums[count:])]
        return run.carried

    def _iterations(self, x: list[Any], y: list[Any], begin: Ref, end: Ref, zeros: list[Val]) -> list[Val]:
        """The sums of each chain over [begin, end), one chain behind the other."""
        c = self.c
        with c.loop(begin, end, self.depth, zeros) as part:
            after = c.add(part.index, self.depth)
            brought = [side.read(at, after) for side, at in zip(self.sides, (x, y))]
            part.next = self._added(part.carried, self._buffers(self._iteration(part.index)))
            self._put(brought, after)
        return part.carried

    # ---- memory of the block

    def _stage(self, x: list[Any], y: list[Any], depth: Ref) -> None:
        self._put([side.read(at, depth) for side, at in zip(self.sides, (x, y))], depth)

    def _put(self, brought: Sequence[list[Val]], depth: Ref) -> None:
        self._write(brought, self._buffers(self._iteration(depth)))
        self.group.barrier()

    def _iteration(self, depth: Ref) -> Ref:
        """Whether the part from there on is one of the first or of the second ones."""
        return self.c.rem(self.c.div(depth, self.depth), 2)

    # ---- what tiles differ in

    def _zeros(self) -> list[Val]:
        """The sums of a thread at first."""
        raise NotImplementedError

    def _added(self, sums: Sequence[Val], buffers: tuple[str, str]) -> list[Val]:
        """The sums with the products of one part of the depth."""
        raise NotImplementedError

    def _buffers(self, iteration: Ref) -> tuple[str, str]:
        """Where such a part of each factor lies."""
        raise NotImplementedError

    def _write(self, brought: Sequence[list[Val]], buffers: tuple[str, str]) -> None:
        """Put what this thread has brought there."""
        raise NotImplementedError

    def _finish(self, sums: list[Val], at: Ref, row: Ref, col: Ref, store: Store) -> None:
        """Have the finished sums of the tile from (row, col) on stored."""
        raise NotImplementedError


class ThreadTiles(GroupTiles):
    """Each thread has sums of its own, in vectors, row by row."""

    def __init__(
        self,
        code: KernelBuilder,
        tile: GroupTile,
        form: PackedFormat,
        sides: OperandPair,
        extents: tuple[Ref, Ref],
        is_lent: bool,
        in_blocks: bool,
    ) -> None:
        nbytes = tile.nbytes(form.sums.itemsize)
        super().__init__(code, nbytes, tile.threads, tile.depth, form, sides, extents, is_lent, in_blocks)
        self.tile = tile
        self.down, self.across = self._place()

    def _place(self) -> tuple[Ref, Ref]:
        """The thread's place in the tile: warps lie side by side, each a small block of threads."""
        c, group, (high, wide) = self.c, self.group, self.tile.warp
        warps = self.tile.threads_across // wide
        down = c.add(c.mul(c.div(group.warp, warps), high), c.div(group.lane, wide))
        return down, c.add(c.mul(c.rem(group.warp, warps), wide), c.rem(group.lane, wide))

    @property
    def _count(self) -> int:
        """Vectors of sums of a thread."""
        return self.tile.high * self.tile.wide // self.tile.vector

    def _zeros(self) -> list[Val]:
        return [self.e.zero(self.form.sums, self.tile.vector)] * self._count

    def _added(self, sums: Sequence[Val], buffers: tuple[str, str]) -> list[Val]:
        c, e, tile, sums = self.c, self.e, self.tile, list(sums)
        across = tile.wide // tile.vector
        for k in range(self.depth):
            chain = k % self.form.accumulators * self._count
            a, b = (
                self._vectors(buffer, k * pitch, place, extent, count)
                for buffer, pitch, place, extent, count in zip(
                    buffers,
                    tile.pitches,
                    (self.down, self.across),
                    (tile.rows, tile.columns),
                    (tile.high, tile.wide),
                )
            )
            for r in range(tile.high):
                with c.width(tile.vector):
                    one = e.splat(e.extract(a[r // tile.vector], r % tile.vector))
                for g in range(across):
                    i = chain + r * across + g
                    sums[i] = multiply_add(e, self.form, one, b[g], sums[i])
        return sums

    def _vectors(self, buffer: str, line: int, place: Ref, extent: int, count: int) -> list[Val]:
        """A thread's elements of a factor at one depth: groups of neighbours, all threads' before the next ones."""
        c, e, vector = self.c, self.e, self.tile.vector
        groups = count // vector
        start = c.at(buffer, c.mul(place, vector), self.item)
        with c.width(vector):
            return [
                e.load(c.at(start, line + g * (extent // groups), self.item), self.form.sums, align=vector * self.item)
                for g in range(groups)
            ]

    # ---- memory of the block

    def _buffers(self, iteration: Ref) -> tuple[str, str]:
        c, (left, right) = self.c, self.tile.pitches
        start = c.at(self.memory, c.mul(iteration, self.depth * (left + right)), self.item)
        return start, c.at(start, self.depth * left, self.item)

    def _write(self, brought: Sequence[list[Val]], buffers: tuple[str, str]) -> None:
        for side, values, to, pitch in zip(self.sides, brought, buffers, self.tile.pitches):
            side.write(values, to, pitch)

    # ---- finished sums

    def _finish(self, sums: list[Val], at: Ref, row: Ref, col: Ref, store: Store) -> None:
        """Row by row of each thread: sums go round, so that one piece of code serves all of them."""
        c, e, tile, group = self.c, self.e, self.tile, self.group
        across = tile.wide // tile.vector
        with c.loop(0, tile.high, 1, sums) as iteration:
            line = c.at(self.memory, c.mul(self.down, tile.columns), self.item)
            for g, value in enumerate(iteration.carried[:across]):
                place = c.add(g * (tile.columns // across), c.mul(self.across, tile.vector))
                e.store(value, c.at(line, place, self.item), align=tile.vector * self.item)
            group.barrier()
            with c.loop(group.rank, tile.threads_down * tile.columns, group.size) as element:
                down, i = c.div(element.index, tile.columns), c.add(col, c.rem(element.index, tile.columns))
                r = c.add(row, self._row(iteration.index, down))
                with c.when(c.both(c.compare("slt", r, self.m), c.compare("slt", i, self.n))), c.width(1):
                    store(e.load(c.at(self.memory, element.index, self.item), self.form.sums), at, r, i)
            group.barrier()
            iteration.next = [*iteration.carried[across:], *iteration.carried[:across]]

    def _row(self, number: Ref, down: Ref) -> Ref:
        """Where the row of that number of the threads so far down lies in the tile."""
        c, tile = self.c, self.tile
        group = c.mul(c.div(number, tile.vector), tile.rows * tile.vector // tile.high)
        return c.add(c.add(group, c.mul(down, tile.vector)), c.rem(number, tile.vector))
