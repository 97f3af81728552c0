"""Products by teams of GPU threads, in the order of ``ops/order.py``: tiles of sums in registers.

Both factors come through memory of the block, a few elements of the depth at a time, and whatever they are made of is
computed on the way there.  While threads add up one part, what they have read of the next one waits in registers.
An element of the product belongs to one thread, which goes through the depth in order, so the bits are those of a CPU.

At the edges the last row or column is read again, and what was computed from those is not stored.  Behind the end of
the depth there are zeros on both sides: they may change the sign of a sum that is zero, which the total does not show.
Finished sums go through memory of the block once more, so that neighbouring threads store neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hybridflow.compiler.codegen.factors import Form, factor, multiply_add
from hybridflow.compiler.codegen.module import ModuleText
from hybridflow.compiler.codegen.operand import Operand, Reading
from hybridflow.compiler.codegen.packing import BATCH, DEPTH, FREE
from hybridflow.compiler.codegen.phases import KernelCode, Phase, kernel_parameters
from hybridflow.compiler.codegen.structured import Code, Ref
from hybridflow.compiler.codegen.team import Team
from hybridflow.compiler.codegen.values import Val
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.extents import Extent
from hybridflow.compiler.ir.types import product
from hybridflow.compiler.loops import team_products
from hybridflow.compiler.loops.index import Ix, LoopVar
from hybridflow.compiler.loops.limits import VECTOR_BYTES
from hybridflow.compiler.loops.team_products import TeamProduct
from hybridflow.compiler.ops.order import K_BLOCK

STEP = team_products.DEPTH
DEAR = 16  # instructions of an element from which on no code is written for vectors besides that for single elements

Store = Callable[[Val, Ref, Ref, Ref], None]
"""``store(sum, at, row, col)`` of one finished element."""


@dataclass(frozen=True)
class Slot:
    """What a thread brings of a factor at a time: neighbours from a place in the tile and along the depth on."""

    free: Ref
    depth: Ref


class Side:
    """One factor on its way to memory of the block: [depth][row or column].

    ``along`` is the part whose neighbours lie side by side.  What is read at one place comes from three methods:
    ``line`` says what is known of a row or column of a batch entry, ``at_depth`` of a place along the depth, and
    ``values`` reads at pairs of these."""

    def __init__(
        self, code: Code, team: Team, form: Form, first: bool, tile: int, extent: Ref, k: Ref, along: int, width: int
    ) -> None:
        self.c, self.e, self.form, self.first = code, code.e, form, first
        self.tile, self.extent, self.k, self.along, self.width = tile, extent, k, along, width
        each = tile * STEP // team.size
        self.slots = [self._slot(team, number) for number in range(each // self.width)]

    def line(self, entry: Ref, free: Ref) -> Any:
        raise NotImplementedError

    def at_depth(self, begin: Ref, depth: Ref) -> Any:
        """``begin`` is where the part begins, 0 where the slot may not lie in one that begins at a multiple."""
        raise NotImplementedError

    def values(self, places: Sequence[tuple[Any, Any]]) -> list[Val]:
        """Packed elements, ``width`` of them along ``along`` from each place on."""
        raise NotImplementedError

    def _slot(self, team: Team, number: int) -> Slot:
        """The threads go along what lies side by side, then along the other."""
        c, width = self.c, self.width
        line = (STEP if self.along == DEPTH else self.tile) // width
        along: Ref
        turns: Ref
        if line >= team.size:
            along, turns = c.add(team.rank, number % (line // team.size) * team.size), number // (line // team.size)
        else:
            along, turns = c.rem(team.rank, line), c.add(c.div(team.rank, line), number * (team.size // line))
        along = c.mul(along, width)
        return Slot(turns, along) if self.along == DEPTH else Slot(along, turns)

    def lines(self, entry: Ref, begin: Ref) -> list[Any]:
        """Where the slots read in the tile that begins there; behind the end the last ones again."""
        c, found = self.c, dict[Ref, Any]()
        last = c.sub(self.extent, self.width if self.along == FREE else 1)
        for slot in self.slots:
            if slot.free not in found:
                found[slot.free] = self.line(entry, c.min(c.add(begin, slot.free), last))
        return [found[slot.free] for slot in self.slots]

    def read(self, lines: Sequence[Any], begin: Ref) -> list[Val]:
        """What this thread brings of the elements along the depth from ``begin`` on: zeros behind the end."""
        c, e, k = self.c, self.e, self.k
        if isinstance(k, int) and k % STEP == 0:
            start = c.min(begin, k - STEP)
            places = [self.at_depth(start, slot.depth) for slot in self.slots]
            return self.values(list(zip(lines, places)))
        depths = [c.add(begin, slot.depth) for slot in self.slots]
        last = c.sub(k, self.width if self.along == DEPTH else 1)
        values = self.values([(line, self.at_depth(0, c.min(depth, last))) for line, depth in zip(lines, depths)])
        with c.width(self.width):
            inside = [e.splat(Val(str(c.compare("slt", depth, k)).lower(), dt.bool_, 1)) for depth in depths]
            return [e.select(some, value, e.zero(value.dtype)) for some, value in zip(inside, values)]

    def either(
        self, pointers: Sequence[str], vectors: Callable[[], list[Val]], gathered: Callable[[], list[Val]]
    ) -> list[Val]:
        """Vectors as they are read where all buffers begin at multiples of them, or else one by one."""
        c, e = self.c, self.e
        aligned = c.multiples(pointers, VECTOR_BYTES)
        whole, apart, done = (e.new_label(hint) for hint in ("whole", "apart", "read"))
        e.branch_if(str(aligned), whole, apart)
        found = []
        for label, read in ((whole, vectors), (apart, gathered)):
            e.label(label)
            values = read()
            found.append((values, e.block))
            e.branch(done)
        e.label(done)
        (one, first), (other, second) = found
        return [e.phi((a, first), (b, second)) for a, b in zip(one, other)]

    def together(self, values: Sequence[Val]) -> Val:
        """Packed elements as one vector."""
        whole = Val("poison", self.form.packed, self.width)
        for k, value in enumerate(values):
            whole = self.e.insert(whole, value, k)
        return whole

    def write(self, values: Sequence[Val], to: str, pitch: int) -> None:
        """Put what was read into memory of the block, whose rows of one depth are ``pitch`` apart."""
        c, e, item = self.c, self.e, self.form.packed.itemsize
        for slot, value in zip(self.slots, values):
            start = c.at(to, c.add(c.mul(slot.depth, pitch), slot.free), item)
            if self.along == FREE and self.width > 1:
                e.store(value, start, align=min(VECTOR_BYTES, self.width * item))
                continue
            for k in range(self.width):
                e.store(e.extract(value, k), c.at(start, k * pitch, item))


def widest(operand: Operand, lane: LoopVar, extent: Ref, each: int) -> int:
    """How many neighbours along a loop, which is all of a part of ``extent``, can be read at once by a thread that
    reads ``each`` elements."""
    width = min(VECTOR_BYTES // operand.dtype.itemsize, each, STEP)
    even = isinstance(extent, int) and operand.work < DEAR
    while width > 1 and not (
        even and extent % width == 0 and all(_goes_by(ix, lane, width) for ix in operand.accesses)
    ):
        width //= 2
    return max(width, 1)


def _goes_by(position: Ix, lane: LoopVar, width: int) -> bool:
    """Whether vectors of that width lie at multiples of it, if what is read begins at one."""
    if not position.is_affine or position.coefficient(lane) not in (0, 1):
        return False
    return all(factor % width == 0 for (atom, _), factor in position.terms if atom is not lane)


@dataclass(frozen=True)
class Line:
    """A row or column: its number, the factor there and in its whole batch entry."""

    free: Ref
    there: Reading
    entry: Reading


class FactorSide(Side):
    """A factor by the parts batch, rows or columns, and depth."""

    def __init__(
        self, code: Code, team: Team, form: Form, first: bool, tile: int, extent: Ref, k: Ref, operand: Operand
    ) -> None:
        self.operand = operand
        along = DEPTH if operand.along(DEPTH) > operand.along(FREE) else FREE
        self.lane, width = operand.loops[along][-1], 1
        if len(operand.loops[along]) == 1:
            width = widest(operand, self.lane, extent if along == FREE else k, tile * STEP // team.size)
        super().__init__(code, team, form, first, tile, extent, k, along, width)

    def line(self, entry: Ref, free: Ref) -> Line:
        whole = self.operand.start.at(BATCH, entry)
        return Line(free, whole.at(FREE, free), whole)

    def at_depth(self, begin: Ref, depth: Ref) -> Ref:
        return self.c.add(begin, depth)

    def values(self, places: Sequence[tuple[Line, Ref]]) -> list[Val]:
        if self.width == 1:
            return [self._element(line.there, depth) for line, depth in places]
        pointers = [place.pointer for place in self.operand.places.values()]
        return self.either(
            pointers,
            lambda: [self._vector(*place) for place in places],
            lambda: [self._gathered(*place) for place in places],
        )

    def _vector(self, line: Line, depth: Ref) -> Val:
        with self.c.width(self.width):
            value = line.there.value(line.there.counters_at(DEPTH, depth), self.lane)
            return factor(self.e, value, self.form, self.first)

    def _gathered(self, line: Line, depth: Ref) -> Val:
        add, numbers = self.c.add, range(self.width)
        if self.along == DEPTH:
            return self.together([self._element(line.there, add(depth, k)) for k in numbers])
        return self.together([self._element(line.entry.at(FREE, add(line.free, k)), depth) for k in numbers])

    def _element(self, there: Reading, depth: Ref) -> Val:
        with self.c.width(1):
            return factor(self.e, there.value(there.counters_at(DEPTH, depth)), self.form, self.first)


Sides = Callable[[Code, Team], tuple[Side, Side]]


@dataclass(frozen=True)
class Product:
    """What teams multiply: the extents, the dtype of sums and how elements go into them, and how the tiles are cut."""

    how: TeamProduct
    form: Form
    batch: tuple[Extent, ...]
    m: Extent
    n: Extent
    k: Extent

    @property
    def _tiles(self) -> tuple[Extent, Extent]:
        tile = self.how.tile
        return (self.m + (tile.rows - 1)) // tile.rows, (self.n + (tile.columns - 1)) // tile.columns

    @property
    def units(self) -> tuple[Extent, ...]:
        """Tiles, of the product or of the sums of each block of the depth."""
        return (*self.batch, self.how.blocks, *self._tiles)

    @property
    def shared(self) -> Extent:
        """Bytes for the sums of all blocks of the depth: [batch, block, row, column]."""
        count = self.how.blocks
        return product((*self.batch, count, self.m, self.n)) * self.form.sums.itemsize if count > 1 else 0

    def write(self, c: Code, sides: Sides, store: Store) -> None:
        """The body of the phase of tiles."""
        tile, blocks, sums = self.how.tile, self.how.blocks, self.form.sums
        m, n, k = (c.extent(extent) for extent in (self.m, self.n, self.k))
        down, across = (c.extent(extent) for extent in self._tiles)
        tiles = TeamTiles(c, self.how, self.form, sides, (m, n))

        def keep(value: Val, at: Ref, row: Ref, col: Ref) -> None:
            place = c.add(c.mul(c.add(c.mul(at, m), row), n), col)
            c.e.store(value, c.at("%shared", place, sums.itemsize))

        with c.loop("%begin", "%end") as unit:
            above = c.div(unit.index, across)
            at, row, col = c.div(above, down), c.rem(above, down), c.rem(unit.index, across)
            begin = c.mul(c.rem(at, blocks), K_BLOCK)
            end = k if blocks == 1 else c.min(c.add(begin, K_BLOCK), k)
            corner = c.mul(row, tile.rows), c.mul(col, tile.columns)
            tiles.write(c.div(at, blocks), at, *corner, begin, end, store if blocks == 1 else keep)

    def emit(
        self,
        module: ModuleText,
        new_code: Callable[[], Code],
        symbol: str,
        buffers: int,
        sides: Sides,
        store: Callable[[Code], Store],
    ) -> KernelCode:
        """Add the kernel, of one phase or two, over ``buffers`` buffers."""

        def added(name: str, units: tuple[Extent, ...], write: Callable[[Code], None], team: int) -> Phase:
            c = new_code()
            write(c)
            c.e.line("ret void")
            found = module.function(c.e, name, kernel_parameters(buffers), linkage="internal")
            return Phase(found, units, team=team)

        team = self.how.tile.threads
        phases = [added(symbol, self.units, lambda c: self.write(c, sides, store(c)), team)]
        if self.how.blocks > 1:
            elements = (*self.batch, self.m, self.n)
            phases.append(added(f"{symbol}_totals", elements, lambda c: self.write_totals(c, store(c)), 1))
        return KernelCode(tuple(phases), 0, self.shared)

    def write_totals(self, c: Code, store: Store) -> None:
        """The body of a second phase, whose units are elements: sums of all blocks of the depth, added up in order."""
        e, sums, count = c.e, self.form.sums, self.how.blocks
        n, size = c.extent(self.n), c.mul(c.extent(self.m), c.extent(self.n))
        with c.loop("%begin", "%end") as unit:
            entry, inside = c.div(unit.index, size), c.rem(unit.index, size)
            first = c.add(c.mul(c.mul(entry, count), size), inside)
            with c.loop(0, count, 1, [e.zero(sums)]) as block:
                place = c.at("%shared", c.add(first, c.mul(block.index, size)), sums.itemsize)
                block.next = [e.add(block.carried[0], e.load(place, sums))]
            store(block.carried[0], entry, c.div(inside, n), c.rem(inside, n))


class TeamTiles:
    """Writes the tiles of one product of so many rows and columns."""

    def __init__(self, code: Code, how: TeamProduct, form: Form, sides: Sides, extents: tuple[Ref, Ref]) -> None:
        self.c, self.e, self.how, self.form, self.tile = code, code.e, how, form, how.tile
        self.m, self.n = extents
        self.team = Team(code, how.tile.threads)
        self.item = form.sums.itemsize
        self.memory = self.team.memory(how.tile.elements * self.item)
        self.sides = sides(code, self.team)
        self.down, self.across = self._place()

    def _place(self) -> tuple[Ref, Ref]:
        """The thread's place in the tile: warps lie side by side, each a small block of threads."""
        c, team, (high, wide) = self.c, self.team, self.tile.warp
        warps = self.tile.threads_across // wide
        down = c.add(c.mul(c.div(team.warp, warps), high), c.div(team.lane, wide))
        return down, c.add(c.mul(c.rem(team.warp, warps), wide), c.rem(team.lane, wide))

    def write(self, entry: Ref, at: Ref, row: Ref, col: Ref, begin: Ref, end: Ref, store: Store) -> None:
        """The tile from (row, col) on of a batch entry: sums over [begin, end) of the depth, to be stored ``at``."""
        c, (x, y) = self.c, (side.lines(entry, first) for side, first in zip(self.sides, (row, col)))
        if begin == 0 and not isinstance(end, int):
            with c.when(c.compare("slt", 0, end)):
                self._bring(x, y, begin)
        elif end != 0:
            self._bring(x, y, begin)
        self._finish(self._sums(x, y, begin, end), at, row, col, store)

    # ---- sums

    @property
    def _count(self) -> int:
        """Vectors of sums of a thread."""
        return self.tile.high * self.tile.wide // self.tile.vector

    def _zeros(self) -> list[Val]:
        return [self.e.zero(self.form.sums, self.tile.vector)] * self._count

    def _sums(self, x: list[Any], y: list[Any], begin: Ref, end: Ref) -> list[Val]:
        """The thread's sums, row by row."""
        c, e = self.c, self.e
        if not self.how.in_blocks:
            return [e.add(a, b) for a, b in zip(self._zeros(), self._block(x, y, begin, end))]
        with c.loop(begin, end, K_BLOCK, self._zeros()) as block:
            last = c.min(c.add(block.index, K_BLOCK), end)
            block.next = [e.add(a, b) for a, b in zip(block.carried, self._block(x, y, block.index, last))]
        return block.carried

    def _block(self, x: list[Any], y: list[Any], begin: Ref, end: Ref) -> list[Val]:
        """The sums over [begin, end) of the depth, whose first part is there: the first of what follows is then."""
        c = self.c
        with c.loop(begin, end, STEP, self._zeros()) as part:
            after = c.add(part.index, STEP)
            brought = [side.read(at, after) for side, at in zip(self.sides, (x, y))]
            part.next = self._added(part.carried, self._buffers(part.index))
            self._put(brought, after)
        return part.carried

    def _added(self, sums: Sequence[Val], buffers: tuple[str, str]) -> list[Val]:
        c, e, tile, sums = self.c, self.e, self.tile, list(sums)
        across = tile.wide // tile.vector
        for k in self._order():
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
                    i = r * across + g
                    sums[i] = multiply_add(e, self.form, one, b[g], sums[i])
        return sums

    def _order(self) -> list[int]:
        """The elements of a part in the order in which they are added."""
        return [k ^ 1 for k in range(STEP)] if self.form.by_pairs else list(range(STEP))

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

    def _buffers(self, depth: Ref) -> tuple[str, str]:
        """Where the part of both factors lies that begins at that depth."""
        c, (left, right) = self.c, self.tile.pitches
        part = c.rem(c.div(depth, STEP), 2)
        start = c.at(self.memory, c.mul(part, STEP * (left + right)), self.item)
        return start, c.at(start, STEP * left, self.item)

    def _bring(self, x: list[Any], y: list[Any], depth: Ref) -> None:
        self._put([side.read(at, depth) for side, at in zip(self.sides, (x, y))], depth)

    def _put(self, brought: Sequence[list[Val]], depth: Ref) -> None:
        for side, values, to, pitch in zip(self.sides, brought, self._buffers(depth), self.tile.pitches):
            side.write(values, to, pitch)
        self.team.barrier()

    # ---- finished sums

    def _finish(self, sums: list[Val], at: Ref, row: Ref, col: Ref, store: Store) -> None:
        """Row by row of each thread: sums go round, so that one piece of code serves all of them."""
        c, e, tile, team = self.c, self.e, self.tile, self.team
        across = tile.wide // tile.vector
        with c.loop(0, tile.high, 1, sums) as turn:
            line = c.at(self.memory, c.mul(self.down, tile.columns), self.item)
            for g, value in enumerate(turn.carried[:across]):
                place = c.add(g * (tile.columns // across), c.mul(self.across, tile.vector))
                e.store(value, c.at(line, place, self.item), align=tile.vector * self.item)
            team.barrier()
            with c.loop(team.rank, tile.threads_down * tile.columns, team.size) as element:
                down, i = c.div(element.index, tile.columns), c.add(col, c.rem(element.index, tile.columns))
                r = c.add(row, self._row(turn.index, down))
                with c.when(c.both(c.compare("slt", r, self.m), c.compare("slt", i, self.n))), c.width(1):
                    store(e.load(c.at(self.memory, element.index, self.item), self.form.sums), at, r, i)
            team.barrier()
            turn.next = [*turn.carried[across:], *turn.carried[:across]]

    def _row(self, number: Ref, down: Ref) -> Ref:
        """Where the row of that number of the threads so far down lies in the tile."""
        c, tile = self.c, self.tile
        group = c.mul(c.div(number, tile.vector), tile.rows * tile.vector // tile.high)
        return c.add(c.add(group, c.mul(down, tile.vector)), c.rem(number, tile.vector))


def by_tiles(form: Form, batch: tuple[Extent, ...], m: Extent, n: Extent, k: Extent) -> Product | None:
    """A product of m x n elements of depth k by teams; None where threads do better alone."""
    ordered = dt.is_float(form.sums)
    how = team_products.choose(batch, m, n, k, form.sums.itemsize, ordered, form.by_pairs)
    return None if how is None else Product(how, form, batch, m, n, k)
