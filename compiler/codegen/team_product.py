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

from hybridflow.compiler.codegen.factors import Form, factor, multiply_add
from hybridflow.compiler.codegen.operand import Operand, Reading
from hybridflow.compiler.codegen.packing import BATCH, DEPTH, FREE
from hybridflow.compiler.codegen.structured import Code, Ref
from hybridflow.compiler.codegen.team import Team
from hybridflow.compiler.codegen.values import Val
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.extents import Extent
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


@dataclass(frozen=True)
class Line:
    """Where a slot reads: the row or column, and the factor there and in its whole batch entry."""

    free: Ref
    there: Reading
    entry: Reading


class Side:
    """One factor on its way to memory of the block: [depth][row or column]."""

    def __init__(
        self, code: Code, team: Team, operand: Operand, form: Form, first: bool, tile: int, extent: Ref, k: Ref
    ) -> None:
        self.c, self.e, self.operand, self.form, self.first = code, code.e, operand, form, first
        self.tile, self.extent, self.k = tile, extent, k
        self.along = DEPTH if operand.along(DEPTH) > operand.along(FREE) else FREE
        self.lane = operand.loops[self.along][-1]
        each = tile * STEP // team.size
        self.width = self._width(each)
        self.slots = [self._slot(team, number) for number in range(each // self.width)]

    def _width(self, each: int) -> int:
        """Neighbours that are read at once."""
        width = min(VECTOR_BYTES // self.operand.dtype.itemsize, each, STEP)
        while width > 1 and not self._goes_by(width):
            width //= 2
        return width

    def _goes_by(self, width: int) -> bool:
        """Whether vectors of that width lie at multiples of it in what is read, if that begins there."""
        operand, lane = self.operand, self.lane
        extent = self.extent if self.along == FREE else self.k
        if len(operand.loops[self.along]) > 1 or not isinstance(extent, int) or extent % width:
            return False
        return operand.work < DEAR and all(_goes_by(ix, lane, width) for ix in operand.accesses)

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

    def lines(self, entry: Reading, begin: Ref) -> list[Line]:
        """Where the slots read in the tile that begins there; behind the end the last ones again."""
        c, found = self.c, dict[Ref, Line]()
        last = c.sub(self.extent, self.width if self.along == FREE else 1)
        for slot in self.slots:
            if slot.free not in found:
                free = c.min(c.add(begin, slot.free), last)
                found[slot.free] = Line(free, entry.at(FREE, free), entry)
        return [found[slot.free] for slot in self.slots]

    def read(self, lines: Sequence[Line], begin: Ref) -> list[Val]:
        """What this thread brings of the elements along the depth from ``begin`` on: zeros behind the end."""
        c, e, k = self.c, self.e, self.k
        if isinstance(k, int) and k % STEP == 0:
            start = c.min(begin, k - STEP)
            return self._values([(line, c.add(start, slot.depth)) for line, slot in zip(lines, self.slots)])
        depths = [c.add(begin, slot.depth) for slot in self.slots]
        last = c.sub(k, self.width if self.along == DEPTH else 1)
        values = self._values([(line, c.min(depth, last)) for line, depth in zip(lines, depths)])
        with c.width(self.width):
            inside = [e.splat(Val(str(c.compare("slt", depth, k)).lower(), dt.bool_, 1)) for depth in depths]
            return [e.select(some, value, e.zero(value.dtype)) for some, value in zip(inside, values)]

    def _values(self, places: list[tuple[Line, Ref]]) -> list[Val]:
        c, e = self.c, self.e
        if self.width == 1:
            return [self._element(line.there, depth) for line, depth in places]
        aligned = c.multiples([place.pointer for place in self.operand.places.values()], VECTOR_BYTES)
        whole, apart, done = (e.new_label(hint) for hint in ("whole", "apart", "read"))
        e.branch_if(str(aligned), whole, apart)
        e.label(whole)
        with c.width(self.width):
            vectors = [self._factor(line.there.value(self._at(line, depth), self.lane)) for line, depth in places]
        first = e.block
        e.branch(done)
        e.label(apart)
        gathered = [self._gathered(line, depth) for line, depth in places]
        second = e.block
        e.branch(done)
        e.label(done)
        return [e.phi((a, first), (b, second)) for a, b in zip(vectors, gathered)]

    def _gathered(self, line: Line, depth: Ref) -> Val:
        """The elements of a slot, read one by one."""
        c, whole = self.c, Val("poison", self.form.packed, self.width)
        for k in range(self.width):
            if self.along == DEPTH:
                value = self._element(line.there, c.add(depth, k))
            else:
                value = self._element(line.entry.at(FREE, c.add(line.free, k)), depth)
            whole = self.e.insert(whole, value, k)
        return whole

    def _element(self, there: Reading, depth: Ref) -> Val:
        with self.c.width(1):
            return self._factor(there.value(there.counters_at(DEPTH, depth)))

    def _at(self, line: Line, depth: Ref) -> dict[LoopVar, Ref]:
        return line.there.counters_at(DEPTH, depth)

    def _factor(self, value: Val) -> Val:
        return factor(self.e, value, self.form, self.first)

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


def _goes_by(position: Ix, lane: LoopVar, width: int) -> bool:
    if not position.is_affine or position.coefficient(lane) not in (0, 1):
        return False
    return all(factor % width == 0 for (atom, _), factor in position.terms if atom is not lane)


class TeamTiles:
    """Writes the tiles of one product; ``extents`` are its rows, columns and depth."""

    def __init__(
        self,
        code: Code,
        how: TeamProduct,
        form: Form,
        left: Operand,
        right: Operand,
        extents: tuple[Ref, Ref, Ref],
    ) -> None:
        self.c, self.e, self.how, self.form, self.tile = code, code.e, how, form, how.tile
        self.m, self.n, self.k = extents
        self.left, self.right = left, right
        self.team = team = Team(code, how.tile.threads)
        self.item = form.sums.itemsize
        self.memory = team.memory(how.tile.elements * self.item)
        self.sides = (
            Side(code, team, left, form, True, self.tile.rows, self.m, self.k),
            Side(code, team, right, form, False, self.tile.columns, self.n, self.k),
        )
        self.down, self.across = self._place()

    def _place(self) -> tuple[Ref, Ref]:
        """The thread's place in the tile: warps lie side by side, each a small block of threads."""
        c, team, (high, wide) = self.c, self.team, self.tile.warp
        warps = self.tile.threads_across // wide
        down = c.add(c.mul(c.div(team.warp, warps), high), c.div(team.lane, wide))
        return down, c.add(c.mul(c.rem(team.warp, warps), wide), c.rem(team.lane, wide))

    def write(self, entry: Ref, at: Ref, row: Ref, col: Ref, begin: Ref, end: Ref, store: Store) -> None:
        """The tile from (row, col) on of a batch entry: sums over [begin, end) of the depth, to be stored ``at``."""
        x = self.sides[0].lines(self.left.start.at(BATCH, entry), row)
        y = self.sides[1].lines(self.right.start.at(BATCH, entry), col)
        c = self.c
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

    def _sums(self, x: list[Line], y: list[Line], begin: Ref, end: Ref) -> list[Val]:
        """The thread's sums, row by row."""
        c, e = self.c, self.e
        if not self.how.in_blocks:
            return [e.add(a, b) for a, b in zip(self._zeros(), self._block(x, y, begin, end))]
        with c.loop(begin, end, K_BLOCK, self._zeros()) as block:
            last = c.min(c.add(block.index, K_BLOCK), end)
            block.next = [e.add(a, b) for a, b in zip(block.carried, self._block(x, y, block.index, last))]
        return block.carried

    def _block(self, x: list[Line], y: list[Line], begin: Ref, end: Ref) -> list[Val]:
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

    def _bring(self, x: list[Line], y: list[Line], depth: Ref) -> None:
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


def choose(form: Form, batch: tuple[Extent, ...], m: Extent, n: Extent, k: Extent) -> TeamProduct | None:
    """How teams compute a product of that form."""
    ordered = dt.is_float(form.sums)
    return team_products.choose(batch, m, n, k, form.sums.itemsize, ordered, form.by_pairs)
