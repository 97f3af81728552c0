"""Products of a matrix with a vector by teams of GPU threads, in the order of a row reduction (see ``vectors.py``).

Lines whose elements lie side by side are folded like rows, by a warp or by more.  Where neighbouring lines lie side by
side instead, a team has as many of them as a warp has threads; of each of them every warp sums some of the 64 logical
lanes, which come together by halving: first those of a thread, then those of the warps, through memory of the block.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hybridflow.compiler.codegen.operand import Reading
from hybridflow.compiler.codegen.packing import BATCH, DEPTH, FREE
from hybridflow.compiler.codegen.reduction import State, Sum
from hybridflow.compiler.codegen.structured import Code, Ref
from hybridflow.compiler.codegen.team import Team
from hybridflow.compiler.codegen.team_fold import TeamFold
from hybridflow.compiler.codegen.values import Val
from hybridflow.compiler.codegen.vectors import Finish, Lines, go_along, or_nothing
from hybridflow.compiler.ir.extents import Extent
from hybridflow.compiler.loops.limits import WARP
from hybridflow.compiler.loops.schedule import team_of_rows
from hybridflow.compiler.ops.order import CHUNK, LANES, SUPERCHUNK

WARPS = 8  # of a team whose threads have a line each
OWN = LANES // WARPS  # logical lanes of a thread


@dataclass(frozen=True)
class TeamWork:
    """What a team does: its units, its threads, and that in words."""

    units: tuple[Extent, ...]
    team: int
    how: str


def emit_team_lines(c: Code, lines: Lines, finish: Finish) -> TeamWork:
    """The body of a kernel whose units are lines, or as many neighbours as a warp has threads."""
    return _along(c, lines, finish) if go_along(lines) else _Across(c, lines, finish).emit()


def _along(c: Code, lines: Lines, finish: Finish) -> TeamWork:
    e, dtype = c.e, lines.dtype
    size = team_of_rows(lines.depth, dtype.itemsize)
    team = Team(c, size)
    known = lines.depth if isinstance(lines.depth, int) else None
    fold = TeamFold(c, team, [Sum(dtype)], known, team.warps * LANES * dtype.itemsize)
    first, second = (operand.loops[DEPTH][-1] for operand in (lines.matrix, lines.vector))
    with c.loop("%begin", "%end") as unit:
        count = c.extent(lines.count)
        entry, line = c.div(unit.index, count), c.rem(unit.index, count)
        matrix = lines.matrix.start.at(BATCH, entry).at(FREE, line)
        vector = lines.vector.start.at(BATCH, entry).at(FREE, 0)

        def products(k: Ref, mask: Val | None) -> list[State]:
            a, b = matrix.value({first: k}, first, mask), vector.value({second: k}, second, mask)
            return [(e.mul(e.convert(a, dtype), e.convert(b, dtype)),)]

        ((total,),) = fold.run(c.extent(lines.depth), products)
        with c.when(team.is_first):
            finish(or_nothing(e, total), entry, line, None)
    return TeamWork((*lines.batch, lines.count), size, f"a line a team of {size}")


class _Across:
    def __init__(self, c: Code, lines: Lines, finish: Finish) -> None:
        self.c, self.e, self.lines, self.finish = c, c.e, lines, finish
        self.team = Team(c, WARPS * WARP)
        self.memory = self.team.memory(WARPS * WARP * lines.dtype.itemsize)
        self.depth = c.extent(lines.depth)
        self.sum = Sum(lines.dtype)

    def emit(self) -> TeamWork:
        c, lines = self.c, self.lines
        groups = (lines.count + (WARP - 1)) // WARP
        with c.loop("%begin", "%end") as unit:
            entry = c.div(unit.index, c.extent(groups))
            line = c.add(c.mul(c.rem(unit.index, c.extent(groups)), WARP), self.team.lane)
            count = c.extent(lines.count)
            matrix = lines.matrix.start.at(BATCH, entry).at(FREE, c.min(line, c.sub(count, 1)))
            vector = lines.vector.start.at(BATCH, entry).at(FREE, 0)
            total = self._total(lambda k: self._product(matrix, vector, k))
            is_own = c.both(c.compare("slt", line, count), c.compare("eq", self.team.warp, 0))
            with c.when(is_own):
                self.finish(or_nothing(self.e, total), entry, line, None)
        return TeamWork((*lines.batch, groups), self.team.size, f"{WARP} lines a team of {self.team.size}")

    def _product(self, matrix: Reading, vector: Reading, k: Ref) -> Val:
        e, dtype = self.e, self.lines.dtype
        a, b = (at.value(at.counters_at(DEPTH, k)) for at in (matrix, vector))
        return e.mul(e.convert(a, dtype), e.convert(b, dtype))

    def _total(self, term: Callable[[Ref], Val]) -> Val:
        c, e = self.c, self.e
        with c.loop(0, self.depth, SUPERCHUNK, self._start(1)) as block:
            end = c.min(c.add(block.index, SUPERCHUNK), self.depth)
            with c.loop(block.index, end, CHUNK, self._start(OWN)) as chunk:
                last = c.min(c.add(chunk.index, CHUNK), end)
                chunk.next = _sums(self, chunk.carried, self._chunk(chunk.index, last, term))
            block.next = [e.add(block.carried[0], self._folded(chunk.carried))]
        return block.carried[0]

    def _start(self, count: int) -> list[Val]:
        return [*self.sum.start(self.e)] * count

    def _chunk(self, begin: Ref, end: Ref, term: Callable[[Ref], Val]) -> list[Val]:
        """The thread's lanes, the warp's number and those that are so many warps further on, of one chunk."""
        c, e = self.c, self.e
        whole = c.add(begin, c.mul(c.div(c.sub(end, begin), LANES), LANES))
        with c.loop(begin, whole, LANES, self._start(OWN)) as step:
            at = c.add(step.index, self.team.warp)
            step.next = [e.add(lane, term(c.add(at, WARPS * k))) for k, lane in enumerate(step.carried)]
        found, at = [], c.add(whole, self.team.warp)
        for k, lane in enumerate(step.carried):
            own = c.add(at, WARPS * k)
            with c.loop(own, c.min(c.add(own, 1), end), 1, [lane]) as rest:  # at most one turn
                rest.next = [e.add(rest.carried[0], term(rest.index))]
            found.append(rest.carried[0])
        return found

    def _folded(self, lanes: list[Val]) -> Val:
        """All lanes of a superchunk as one, in the order of halving."""
        c, e, item = self.c, self.e, self.lines.dtype.itemsize
        while len(lanes) > 1:
            lanes = _sums(self, lanes[: len(lanes) // 2], lanes[len(lanes) // 2 :])
        e.store(lanes[0], c.at(self.memory, self.team.rank, item))
        self.team.barrier()
        lanes = [e.load(c.at(self.memory, c.add(self.team.lane, WARP * k), item), lanes[0].dtype) for k in range(WARPS)]
        self.team.barrier()
        while len(lanes) > 1:
            lanes = _sums(self, lanes[: len(lanes) // 2], lanes[len(lanes) // 2 :])
        return lanes[0]


def _sums(across: _Across, a: list[Val], b: list[Val]) -> list[Val]:
    return [across.e.add(x, y) for x, y in zip(a, b, strict=True)]
