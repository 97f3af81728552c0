"""Scans by teams of GPU threads, in the order of ``ops/evaluation_order.py``: a thread for each run of a chunk.

Elements come and go side by side through memory of the block, where each thread scans a run of its own; rows of one
element more than a run has keep threads out of each other's way there.

Where neighbouring lines lie side by side a team has as many of them as a warp has threads, and each warp scans some of
the runs of a chunk: once for their totals, of which one warp makes what each run starts from, and once more for what
comes out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hybridflow.compiler.codegen.core.kernel_builder import KernelBuilder, Ref
from hybridflow.compiler.codegen.core.llvm_values import Val
from hybridflow.compiler.codegen.gpu.thread_group import ThreadGroup
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.loops.tuning import WARP
from hybridflow.compiler.ops.evaluation_order import SCAN_CHUNK, SCAN_RUN

RUNS = SCAN_CHUNK // SCAN_RUN  # of a chunk, and threads of a team
_PITCH = SCAN_RUN + 1
COLUMN_WARPS = 8  # of a team that has neighbouring lines

State = tuple[Val, ...]
Components = Sequence[tuple[Any, np.dtype]]


def bytes_of(components: Components) -> int:
    """Memory of the block that a team takes."""
    return RUNS * (_PITCH + 1) * sum(dtype.itemsize for _, dtype in components)


def bytes_of_columns(components: Components) -> int:
    """Memory of the block that a team of neighbouring lines takes."""
    return (RUNS + 1) * WARP * sum(dtype.itemsize for _, dtype in components)


class ColumnScan:
    """Scans chunks of neighbouring lines, of which each thread of a warp has one."""

    def __init__(
        self,
        code: KernelBuilder,
        group: ThreadGroup,
        components: Components,
        combine: Callable[[Sequence[Val], Sequence[Val]], State],
    ) -> None:
        self.code, self.group, self.combine = code, group, combine
        self.identity = tuple(code.e.const(value, dtype) for value, dtype in components)
        self.arrays = []  # of what belongs to each run, and of the total
        base = group.memory(bytes_of_columns(components))
        for _, dtype in components:
            self.arrays.append((base, dtype))
            base = code.at(base, (RUNS + 1) * WARP, dtype.itemsize)

    @property
    def is_first_warp(self) -> Val:
        return Val(str(self.code.compare("eq", self.group.warp, 0)), dt.bool_, 1)

    def chunk(
        self,
        begin: Ref,
        end: Ref,
        carried: State | None,
        lifted: Callable[[Ref], State],
        finish: Callable[[State, Ref], None],
        exclusive: bool,
    ) -> State:
        """See ``GroupScan.chunk``, for the line of each thread."""
        code, group = self.code, self.group

        def scan(run: Ref, before: State | None) -> State:
            first = code.add(begin, code.mul(run, SCAN_RUN))
            with code.loop(first, code.min(code.add(first, SCAN_RUN), end), 1, self.identity) as at:
                local = tuple(at.carried)
                at.next = self.combine(local, lifted(at.index))
                if before is not None:
                    finish(self.combine(before, local if exclusive else tuple(at.next)), at.index)
            return tuple(at.carried)

        with code.loop(group.warp, RUNS, group.warps) as run:
            self._store(run.index, scan(run.index, None))
        group.barrier()
        with code.when(self.is_first_warp.ref):
            with code.loop(0, RUNS, 1, self.identity) as run:
                total = self._load(run.index)
                self._store(run.index, tuple(run.carried))
                run.next = self.combine(tuple(run.carried), total)
            self._store(RUNS, tuple(run.carried))
        group.barrier()
        if carried is not None:
            with code.loop(group.warp, RUNS, group.warps) as run:
                scan(run.index, self.combine(carried, self._load(run.index)))
        total = self._load(RUNS)
        group.barrier()  # the next chunk's totals come to the same places
        return total

    def _place(self, run: Ref) -> Ref:
        return self.code.add(self.code.mul(run, WARP), self.group.lane)

    def _load(self, run: Ref) -> State:
        e, code = self.code.e, self.code
        return tuple(e.load(code.at(base, self._place(run), dtype.itemsize), dtype) for base, dtype in self.arrays)

    def _store(self, run: Ref, state: Sequence[Val]) -> None:
        e, code = self.code.e, self.code
        for value, (base, dtype) in zip(state, self.arrays):
            e.store(value, code.at(base, self._place(run), dtype.itemsize))


class GroupScan:
    """Scans chunks of states that ``combine`` folds, beginning with the values of ``components``."""

    def __init__(
        self,
        code: KernelBuilder,
        group: ThreadGroup,
        components: Components,
        combine: Callable[[Sequence[Val], Sequence[Val]], State],
    ) -> None:
        assert group.size == RUNS, group.size
        self.code, self.group, self.combine = code, group, combine
        self.identity = tuple(code.e.const(value, dtype) for value, dtype in components)
        self.arrays = []  # of elements, in rows, and behind these the totals of runs
        base = group.memory(bytes_of(components))
        for _, dtype in components:
            self.arrays.append((base, dtype))
            base = code.at(base, RUNS * (_PITCH + 1), dtype.itemsize)

    def chunk(
        self,
        begin: Ref,
        end: Ref,
        carried: State | None,
        lifted: Callable[[Ref, Val], State],
        finish: Callable[[State, Ref], None],
        exclusive: bool,
    ) -> State:
        """Scan elements [begin, end), which ``lifted(at, mask)`` gives, behind ``carried``, and have ``finish(state,
        at)`` store what comes out (None: nothing); the total of the chunk, of which only a full one has any."""
        code, group = self.code, self.group
        with code.loop(0, RUNS) as run:
            at = code.add(code.add(begin, code.mul(run.index, SCAN_RUN)), group.rank)
            mask = self._before(at, end)
            self._store(self._element(run.index, group.rank), self._or_identity(mask, lifted(at, mask)))
        group.barrier()
        with code.loop(0, SCAN_RUN, 1, self.identity) as k:
            place = self._element(group.rank, k.index)
            before = tuple(k.carried)
            k.next = self.combine(before, self._load(place))
            if carried is not None:
                self._store(place, before if exclusive else tuple(k.next))
        sum_before, total = self.prefix(tuple(k.carried), self.identity)
        if carried is not None:
            self._store(self._run(group.rank), self.combine(carried, sum_before))
            group.barrier()
            with code.loop(0, RUNS) as run:
                at = code.add(code.add(begin, code.mul(run.index, SCAN_RUN)), group.rank)
                local = self._load(self._element(run.index, group.rank))
                state = self.combine(self._load(self._run(run.index)), local)
                with code.when(self._before(at, end).ref):
                    finish(state, at)
        return total  # the next chunk's elements go where this thread alone has read, and totals come behind a barrier

    def along(self, count: Ref, load: Callable[[Ref, Val], State], store: Callable[[State, Ref, Val], None]) -> None:
        """Scan ``count`` states one after the other: each takes the place of what all up to it make."""
        code = self.code
        with code.loop(0, count, RUNS, self.identity) as group:
            at = code.add(group.index, self.group.rank)
            mask = self._before(at, count)
            value = self._or_identity(mask, load(at, mask))
            before, group.next = self.prefix(value, tuple(group.carried))
            store(self.combine(before, value), at, mask)

    def prefix(self, value: State, start: State) -> tuple[State, State]:
        """What the values of the threads before this one make behind ``start``, and what all of them do."""
        code, e, group = self.code, self.code.e, self.group
        self._store(self._run(group.rank), value)
        group.barrier()
        with code.loop(0, RUNS, 1, [*start, *start]) as thread:
            total, before = tuple(thread.carried[: len(start)]), thread.carried[len(start) :]
            is_own = Val(str(code.compare("eq", thread.index, group.rank)), dt.bool_, 1)
            prefix = [e.select(is_own, t, o) for t, o in zip(total, before)]
            thread.next = [*self.combine(total, self._load(self._run(thread.index))), *prefix]
        group.barrier()
        return tuple(thread.carried[len(start) :]), tuple(thread.carried[: len(start)])

    def _before(self, at: Ref, end: Ref) -> Val:
        return Val(str(self.code.compare("slt", at, end)), dt.bool_, 1)

    def _or_identity(self, mask: Val, state: State) -> State:
        return tuple(self.code.e.select(mask, value, start) for value, start in zip(state, self.identity))

    def _element(self, run: Ref, k: Ref) -> Ref:
        return self.code.add(self.code.mul(run, _PITCH), k)

    def _run(self, run: Ref) -> Ref:
        return self.code.add(run, RUNS * _PITCH)

    def _load(self, at: Ref) -> State:
        e, code = self.code.e, self.code
        return tuple(e.load(code.at(base, at, dtype.itemsize), dtype) for base, dtype in self.arrays)

    def _store(self, at: Ref, state: Sequence[Val]) -> None:
        e, code = self.code.e, self.code
        for value, (base, dtype) in zip(state, self.arrays):
            e.store(value, code.at(base, at, dtype.itemsize))
