"""Folds by teams of threads, in the order of ``ops/evaluation_order.py``: each of a warp's threads has two of the 64
lanes.

The warps of a block take the next chunks side by side and leave their lanes in memory of the block.  From there every
one of them folds the chunks in order.  So what has been folded is known to all threads of the team.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hybridflow.compiler.codegen.core.kernel_builder import KernelBuilder, Ref
from hybridflow.compiler.codegen.core.llvm_values import Val
from hybridflow.compiler.codegen.gpu.thread_group import ThreadGroup
from hybridflow.compiler.codegen.nests.reduction import (
    Accumulation,
    Body,
    Cells,
    State,
    combine_all,
    nothing,
    only_active,
    pack_states,
    starts,
    unpack_states,
)
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.loops.tuning import WARP
from hybridflow.compiler.ops.evaluation_order import CHUNK, LANES, SUPERCHUNK

Lanes = list[list[State]]
"""The states of all folds in each of a thread's own lanes: those of its number in the warp, and 32 after."""


class GroupReduction:
    """Folds a run of ``extent`` elements; ``body(i, mask)`` gives the states of element i.  ``memory`` are bytes of the
    block for the lanes of a chunk from each warp; a single warp needs none."""

    def __init__(
        self,
        code: KernelBuilder,
        group: ThreadGroup,
        folds: Sequence[Accumulation],
        extent: int | None,
        memory: int = 0,
    ) -> None:
        self.code, self.group, self.folds, self.known = code, group, folds, extent
        self.many_chunks = extent is None or extent > CHUNK
        self.many_superchunks = extent is None or extent > SUPERCHUNK
        self.own = range(0, LANES if extent is None else min(max(extent, 1), LANES), WARP)
        self.together: Cells | None = None
        if group.warps > 1:
            self.together = Cells(code, _splits_of(code, group.memory(memory)), folds, group.warps * LANES)

    def run(self, extent: Ref, body: Body) -> list[State]:
        """The states of the whole run."""
        if not self.many_superchunks:
            return self.superchunk(0, extent, body)
        code = self.code
        with code.loop(0, extent, SUPERCHUNK, pack_states([starts(code.e, self.folds)])) as loop:
            (total,) = unpack_states(self.folds, loop.carried)
            end = code.min(code.add(loop.index, SUPERCHUNK), extent)
            loop.next = pack_states([self._later(total, self.superchunk(loop.index, end, body))])
        (total,) = unpack_states(self.folds, loop.carried)
        return total

    def superchunk(self, begin: Ref, end: Ref, body: Body) -> list[State]:
        """The states of one superchunk."""
        if not self.many_chunks and self.together is None:
            return self._tree(self._chunk(begin, end, body))
        code = self.code
        with code.loop(begin, end, CHUNK * self.group.warps, pack_states(self._starts())) as loop:
            lanes = unpack_states(self.folds, loop.carried)
            first = code.min(code.add(loop.index, code.mul(self.group.warp, CHUNK)), end)
            partials = self._chunk(first, code.min(code.add(first, CHUNK), end), body)
            loop.next = pack_states(self._in_order(lanes, partials))
        return self._tree(unpack_states(self.folds, loop.carried))

    def store_chunk(self, cells: Cells, at: Ref, begin: Ref, end: Ref, body: Body) -> None:
        """Put the lanes of one chunk into cells."""
        for lane, states in zip(self.own, self._chunk(begin, end, body)):
            cells.store(self.code.add(at, self.code.add(self.group.lane, lane)), states)

    def _in_order(self, lanes: Lanes, partials: Lanes) -> Lanes:
        """The lanes with those of the warps' chunks, one chunk after the other.  Behind the last one there are only
        identities."""
        if self.together is None:
            return [self._later(a, b) for a, b in zip(lanes, partials)]
        code, group = self.code, self.group
        for lane, states in zip(self.own, partials):
            self.together.store(code.add(code.mul(group.warp, LANES), code.add(group.lane, lane)), states)
        group.barrier()
        for warp in range(group.warps):
            at = code.add(group.lane, warp * LANES)
            lanes = [self._later(a, self.together.load(code.add(at, k))) for k, a in zip(self.own, lanes)]
        group.barrier()
        return lanes

    def _chunk(self, begin: Ref, end: Ref, body: Body) -> Lanes:
        """The lanes of one chunk, [begin, end), which may differ from warp to warp."""
        code, lane = self.code, self.group.lane
        whole = code.add(begin, code.mul(code.div(code.sub(end, begin), LANES), LANES))
        with code.loop(begin, whole, LANES, pack_states(self._starts())) as loop:
            at = code.add(loop.index, lane)
            transposed = [
                self._later(lanes, body(code.add(at, k), None))
                for k, lanes in zip(self.own, unpack_states(self.folds, loop.carried))
            ]
            loop.next = pack_states(transposed)
        lanes = unpack_states(self.folds, loop.carried)
        if self.known is not None and self.known % LANES == 0:
            return lanes
        at = code.add(whole, lane)
        return [self._later(states, self._if_before(end, code.add(at, k), body)) for k, states in zip(self.own, lanes)]

    def _if_before(self, end: Ref, at: Ref, body: Body) -> list[State]:
        """The states of an element, identities where it is behind the end."""
        inside = self.code.compare("slt", at, end)
        assert isinstance(inside, str)
        mask = Val(inside, dt.bool_, 1)
        return only_active(self.code.e, self.folds, body(at, mask), mask)

    def _tree(self, lanes: Lanes) -> list[State]:
        """Lane l with lane l + 32, then + 16, ... + 1."""
        e, group, states = self.code.e, self.group, lanes[0]
        for other in lanes[1:]:
            states = combine_all(e, self.folds, states, other)
        half = WARP // 2
        while half:
            if self.known is None or self.known > half:
                others = [tuple(group.from_lane_after(v, half) for v in state) for state in states]
                states = combine_all(e, self.folds, states, others)
            half //= 2
        return [tuple(map(group.from_first_lane, state)) for state in states]

    def _starts(self) -> Lanes:
        return [starts(self.code.e, self.folds) for _ in self.own]

    def _later(self, a: list[State], b: list[State]) -> list[State]:
        return [fold.later(self.code.e, x, y) for fold, x, y in zip(self.folds, a, b)]


class StoredGroupReduction(GroupReduction):
    """Folds chunks whose lanes lie in ``cells``, those of chunk k from ``first + 64 * k`` on.  Warps take superchunks
    side by side."""

    def __init__(
        self,
        code: KernelBuilder,
        group: ThreadGroup,
        folds: Sequence[Accumulation],
        extent: int | None,
        memory: int,
        cells: Cells,
        first: Ref,
    ) -> None:
        super().__init__(code, group, folds, extent, memory)
        self.cells, self.first = cells, first

    def run(self, extent: Ref, body: Body = nothing) -> list[State]:
        code, group = self.code, self.group
        step = SUPERCHUNK * group.warps
        with code.loop(0, extent, step, pack_states([starts(code.e, self.folds)])) as loop:
            (total,) = unpack_states(self.folds, loop.carried)
            begin = code.min(code.add(loop.index, code.mul(group.warp, SUPERCHUNK)), extent)
            partials = self._superchunk(begin, code.min(code.add(begin, SUPERCHUNK), extent))
            loop.next = pack_states([self._totals_in_order(total, partials)])
        (total,) = unpack_states(self.folds, loop.carried)
        return total

    def _superchunk(self, begin: Ref, end: Ref) -> list[State]:
        """Of a warp's own superchunk."""
        code = self.code
        with code.loop(begin, end, CHUNK, pack_states(self._starts())) as loop:
            at = code.add(code.add(self.first, code.div(loop.index, CHUNK // LANES)), self.group.lane)
            lanes = unpack_states(self.folds, loop.carried)
            loop.next = pack_states([self._later(a, self.cells.load(code.add(at, k))) for k, a in zip(self.own, lanes)])
        return self._tree(unpack_states(self.folds, loop.carried))

    def _totals_in_order(self, total: list[State], partials: list[State]) -> list[State]:
        if self.together is None:
            return self._later(total, partials)
        code, group = self.code, self.group
        with code.when(code.compare("eq", group.lane, 0)):
            self.together.store(group.warp, partials)
        group.barrier()
        for warp in range(group.warps):
            total = self._later(total, self.together.load(warp))
        group.barrier()
        return total


def _splits_of(code: KernelBuilder, memory: str) -> Callable[[int], str]:
    """Hands out memory piece by piece."""
    used = 0

    def allocate(nbytes: int) -> str:
        nonlocal used
        start, used = used, used + nbytes
        return code.at(memory, start, 1)

    return allocate
