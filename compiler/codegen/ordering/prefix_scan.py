"""Running folds along an axis: out[i] = finish(combine(state of the elements before i, lift(x[i]))).

Exclusive ones leave out element i itself: out[i] = finish(state of the elements before i).
The order is that of ``ops/evaluation_order.py``: runs inside chunks, each scanned from the identity, with carries.
States have the dtype in which the op accumulates; each output is rounded on its own.

Long lines are cut at chunks where there are few of them.  The kernel then has three phases: totals of the chunks, in
shared memory; the carries that these make; and the chunks, each from its carry.  Where the first phase is asked for
all units at once, nobody works beside it, and it scans them one after the other, which reads the input once.

Vectors go across neighbouring lines.  Where these do not lie side by side (along the last axis), squares of eight lines
and elements are turned in registers, scanned and turned back.  Where there are too few lines for that, vectors go
across the runs of a long line instead: eight of them are laid out in scratch, turned and scanned in squares, and what
carries over to them is added on the way out.  Lines of few elements are scanned in plain order.

On a GPU a team of threads scans each chunk of a line whose elements lie side by side, or of neighbouring lines where
these are not many (``group_scan``); a thread has a line of many, or a short one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from hybridflow.compiler.codegen.core.emitter import Emitter
from hybridflow.compiler.codegen.core.kernel_builder import KernelBuilder, Ref, lanes_for, merged_extent
from hybridflow.compiler.codegen.core.llvm_module import LLVMModule
from hybridflow.compiler.codegen.core.llvm_values import Val
from hybridflow.compiler.codegen.core.operand import LinearOperand
from hybridflow.compiler.codegen.core.phases import EmittedKernel, Phase, kernel_parameters
from hybridflow.compiler.codegen.core.tile_transpose import transpose_in_registers
from hybridflow.compiler.codegen.gpu.group_scan import (
    RUNS,
    ColumnScan,
    GroupScan,
)
from hybridflow.compiler.codegen.gpu.thread_group import ThreadGroup
from hybridflow.compiler.codegen.ordering.ordering_schedule import scan_schedule
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.extents import Extent
from hybridflow.compiler.loops.tuning import (
    FEW_LINES,
    LONG_LINE,
    SHORT_LINE,
    TRANSPOSE_SQUARE,
    WARP,
)
from hybridflow.compiler.ops.evaluation_order import SCAN_CHUNK, SCAN_RUN
from hybridflow.compiler.ops.lowering import PrefixScan
from hybridflow.compiler.ops.op_table import OpDef

_FLAG = 64  # bytes of shared memory in front, for a word that says that the first phase has done it all

State = tuple[Val, ...]


def emit_scan(
    module: LLVMModule,
    e: Emitter,
    symbol: str,
    op: OpDef,
    dtype: np.dtype,
    shape: Sequence[Extent],
    running: PrefixScan,
    dims: Sequence[str],
    inputs: Sequence[LinearOperand],
    buffers: int,
    thread_groups: bool,
) -> EmittedKernel:
    """Add the kernel ``symbol`` of a SCAN op, which makes a ``running`` fold, over ``buffers`` buffers.  The last of
    them is the output, of ``shape`` like the ``inputs``.

    Units: lines along the fold's axis, or their chunks.  ``thread_groups`` says that several threads of a GPU may have
    one.
    """
    axis = running.axis
    before, behind = tuple(shape[:axis]), tuple(shape[axis + 1 :])
    components = op.init(dtype) if op.init else ()
    how = scan_schedule(e.target, components, dtype, tuple(shape), running, thread_groups)
    width, chunks, group, in_columns = how.width, how.chunks, how.group, how.in_columns

    def written(
        body: Emitter, name: str, write: Callable[[_Scan], None], for_host: bool = False, group: int = group
    ) -> str:
        scan = _Scan(body, op, dtype, shape, running, dims, width, chunks, inputs, buffers, group)
        write(scan)
        body.line("ret void")
        return module.function(body, name, kernel_parameters(buffers), linkage="internal", for_host=for_host)

    scratch = _scratch(components) if e.target.kind == "cpu" else 0
    units = (*before, chunks, *((-(-math.prod(behind) // WARP),) if in_columns else behind))
    join = 1 if in_columns else group  # threads that put a line's chunks together
    if chunks == 1:
        return EmittedKernel(
            (Phase(written(e, symbol, _Scan.chunks), units, width, group_size=group),), scratch, schedule=str(how)
        )
    main = written(e, symbol, _Scan.chunks)
    totals, carries, remainder, sequential = (Emitter(e.target, 1, e.fastmath) for _ in range(4))
    phases = (
        Phase(
            written(totals, f"{symbol}_totals", lambda scan: scan.totals(main, units), True),
            units,
            width,
            group_size=group,
        ),
        Phase(
            written(carries, f"{symbol}_carries", _Scan.carries, True, join), (*before, *behind), width, group_size=join
        ),
        Phase(
            written(remainder, f"{symbol}_rest", lambda scan: scan.remainder(main), True),
            units,
            width,
            group_size=group,
        ),
    )
    lines = math.prod((*before, *behind))
    shared = _FLAG + lines * (chunks - 1) * sum(d.itemsize for _, d in components)
    all_at_once = Phase(written(sequential, f"{symbol}_alone", lambda scan: scan.run(main)), units, width)
    return EmittedKernel(phases, scratch, shared, all_at_once, schedule=str(how))


def _scratch(components: Sequence[tuple[Any, np.dtype]]) -> int:
    """Bytes for the states of runs that are scanned together, and for the total of each."""
    return sum((SCAN_RUN + 1) * TRANSPOSE_SQUARE * dtype.itemsize for _, dtype in components)


class _Scan:
    """The writer of one phase; ``chunk_count`` is 1 where lines are not cut."""

    def __init__(
        self,
        e: Emitter,
        op: OpDef,
        dtype: np.dtype,
        shape: Sequence[Extent],
        running: PrefixScan,
        dims: Sequence[str],
        width: int,
        chunk_count: Extent,
        inputs: Sequence[LinearOperand],
        buffers: int,
        group: int,
    ) -> None:
        assert op.init and op.lift and op.combine and op.finish, op  # the table sees to it
        self.e, self.op, self.dtype, self.width = e, op, dtype, width
        self.c = c = KernelBuilder(e, dims)
        axis, self.exclusive = running.axis, running.exclusive
        self.inputs, self.buffers, self.out = inputs, buffers, f"%a{buffers - 1}"
        self.n, self.inner = c.extent(shape[axis]), c.product(shape[axis + 1 :])
        self.lines = c.mul(c.product(shape[:axis]), self.inner)
        self.state_dtype = dt.compute_dtype(dtype)
        self.components = list(op.init(dtype))
        self.group: GroupScan | None = None
        self.columns: ColumnScan | None = None
        self.in_row = self.inner  # units
        if group > RUNS:
            self.columns = ColumnScan(c, ThreadGroup(c, group), self.components, self._combined)
            self.in_row = c.div(c.add(self.inner, WARP - 1), WARP)
        elif group > 1:
            self.group = GroupScan(c, ThreadGroup(c, group), self.components, self._combined)
        self.cut = chunk_count != 1
        self.count = c.extent(chunk_count)
        self.followed = c.sub(self.count, 1)  # chunks of a line whose totals carry over
        known = shape[axis]
        self.many_runs = not (isinstance(known, int) and known <= SCAN_RUN)
        self.many_chunks = not (isinstance(known, int) and known <= SCAN_CHUNK)
        # Squares are for lines whose elements lie side by side.
        self.square = min(lanes_for(e.target, self.state_dtype, TRANSPOSE_SQUARE), TRANSPOSE_SQUARE)
        self.transposed = merged_extent(shape[axis + 1 :]) == 1 and self.square > 1

    # ---- phases

    def chunks(self) -> None:
        """The outputs.  Of a cut line, what the next chunk starts from is left in shared memory where all are done in
        turn."""
        c = self.c
        if not self.transposed:
            self._sequential()
            return
        # One question for all lines: asked for each of them it would take longer than a short line does.
        few = c.compare("slt", self.lines, FEW_LINES)
        by_runs = c.both(c.compare("sge", self.n, LONG_LINE), few)
        if self.cut:
            by_runs = c.either(by_runs, c.compare("sgt", self.n, SCAN_CHUNK))
        in_turn = c.compare("slt", self.n, SHORT_LINE)
        if few is True and by_runs is False:
            in_turn = True  # where it is not known, it is not worth another way
        together = c.negation(c.either(by_runs, in_turn))
        for condition, write in ((by_runs, self._by_runs), (together, self._together), (in_turn, self._sequential)):
            if condition is not False:
                with c.when(condition):
                    write()

    def _by_runs(self) -> None:
        self._each_line(by_runs=True)

    def _sequential(self) -> None:
        self._each_line(by_runs=False)

    def _each_line(self, by_runs: bool) -> None:
        """The units, by vectors across columns."""
        c = self.c
        if self.cut and not self._is_short(by_runs):
            sequential = self._sequential_kernel()
            with self._rows() as (line, chunk, first, last):
                self._columns(line, first, last, chunk, c.add(chunk, 1), sequential, by_runs)
            return
        chunks = c.div(c.add(self.n, SCAN_CHUNK - 1), SCAN_CHUNK)
        with c.spans("%begin", "%end", self.in_row) as (line, first, last):
            self._columns(line, first, last, 0, chunks, False, by_runs)

    @contextmanager
    def _rows(self) -> Iterator[tuple[Ref, Ref, Ref, Ref]]:
        """The lines and chunks of units, and the columns of each.  Without columns nothing is divided on the way."""
        c, e = self.c, self.e
        if self.inner != 1:
            with c.spans("%begin", "%end", self.in_row) as (row, first, last):
                yield c.div(row, self.count), c.rem(row, self.count), first, last
            return
        start = [c.value(c.div("%begin", self.count)), c.value(c.rem("%begin", self.count))]
        with c.loop("%begin", "%end", 1, start) as loop:
            line, chunk = loop.carried
            yield line.ref, chunk.ref, 0, 1
            following = e.add(chunk, 1)
            wraps = e.eq(following, c.value(self.count))
            loop.next = [e.select(wraps, e.add(line, 1), line), e.select(wraps, 0, following)]

    def run(self, main: str) -> None:
        """Do all of the work, by ``main``."""
        self._note_sequential(1)
        self._call(main)

    def _note_sequential(self, flag: Ref) -> None:
        self.e.line(f"store atomic i64 {flag}, ptr %shared monotonic, align 8")

    def totals(self, main: str, units: tuple[Extent, ...]) -> None:
        """Of each chunk that is followed by another; or all of the work, by ``main``, if these are all units."""
        c = self.c
        sequential = c.both(c.compare("eq", "%begin", 0), c.compare("eq", "%end", c.product(units)))
        self._note_sequential(c.choose(sequential, 1, 0))
        with c.when(sequential):
            self._call(main)
        with c.when(c.negation(sequential)), self._rows() as (line, chunk, first, last):

            def total(column: Ref, mask: Val | None) -> None:
                begin = c.mul(chunk, SCAN_CHUNK)
                state = self._chunk(line, column, begin, c.add(begin, SCAN_CHUNK), None, mask, self.transposed)
                self._share(line, chunk, column, state, self._once(mask))

            with c.when(c.compare("slt", chunk, self.followed)):
                self._each_column(first, last, total)

    def carries(self) -> None:
        """Of totals, in their place: what each chunk but the first starts from."""
        c = self.c
        with (
            c.when(c.negation(self._sequential_kernel())),
            c.spans("%begin", "%end", self.inner) as (line, first, last),
        ):

            def add_up(column: Ref, mask: Val | None) -> None:
                if self.group is not None:
                    self.group.along(
                        self.followed,
                        lambda chunk, active: self._shared(line, chunk, column, active),
                        lambda state, chunk, active: self._share(line, chunk, column, state, active),
                    )
                    return
                with c.loop(0, self.followed, 1, self._identity()) as chunk:
                    state = self._combined(chunk.carried, self._shared(line, chunk.index, column, mask))
                    self._share(line, chunk.index, column, state, mask)
                    chunk.next = state

            c.vector_loop(first, last, self.width, add_up)

    def remainder(self, main: str) -> None:
        """The outputs, if the first phase has not made them."""
        with self.c.when(self.c.negation(self._sequential_kernel())):
            self._call(main)

    def _sequential_kernel(self) -> str:
        """Whether the first phase was asked for all units at once."""
        e, flag, result = self.e, self.e.fresh("f"), self.e.fresh("c")
        e.line(f"{flag} = load atomic i64, ptr %shared monotonic, align 8")
        e.line(f"{result} = icmp ne i64 {flag}, 0")
        return result

    def _call(self, main: str) -> None:
        self.e.line(f"call void @{main}({kernel_parameters(self.buffers)})")

    def _columns(
        self, line: Ref, first: Ref, last: Ref, begin: Ref, end: Ref, sequential: str | bool, by_runs: bool
    ) -> None:
        """Chunks [begin, end) of the lines in columns [first, last)."""
        self._each_column(first, last, lambda i, mask: self._scan(line, i, begin, end, sequential, mask, by_runs))

    def _each_column(self, first: Ref, last: Ref, body: Callable[[Ref, Val | None], None]) -> None:
        """``body(column, mask)`` for the columns of units [first, last) of a row."""
        c = self.c
        if self.columns is None:
            c.vector_loop(first, last, self.width, body)
            return
        with c.loop(first, last) as group:
            column = c.add(c.mul(group.index, WARP), self.columns.group.lane)
            body(column, Val(str(c.compare("slt", column, self.inner)), dt.bool_, 1))

    def _scan(
        self, line: Ref, column: Ref, begin: Ref, end: Ref, sequential: str | bool, mask: Val | None, by_runs: bool
    ) -> None:
        c = self.c
        if not self.many_chunks or self._is_short(by_runs):
            self._chunk(line, column, 0, self.n, self._identity(), mask, by_runs)
            return
        start = self._identity() if begin == 0 else self._carry(line, begin, column, mask)
        with c.loop(begin, end, 1, start) as chunk:
            at = c.mul(chunk.index, SCAN_CHUNK)
            stop = c.min(c.add(at, SCAN_CHUNK), self.n)
            before = tuple(chunk.carried)
            state = self._combined(before, self._chunk(line, column, at, stop, before, mask, by_runs))
            if self.cut:
                with c.when(c.both(sequential, c.compare("slt", chunk.index, self.followed))):
                    self._share(line, chunk.index, column, state, self._once(mask))
            chunk.next = state

    def _once(self, mask: Val | None) -> Val | None:
        """The mask with which what all of a team know is stored."""
        if self.columns is not None:
            first = self.columns.is_first_warp
            return first if mask is None else self.e.and_(first, mask)
        return mask if self.group is None else Val(self.group.group.is_first, dt.bool_, 1)

    # ---- states

    def _identity(self) -> State:
        return tuple(self.e.const(value, dtype) for value, dtype in self.components)

    def _combined(self, first: Sequence[Val], second: Sequence[Val]) -> State:
        assert self.op.combine is not None
        return tuple(self.op.combine(self.e, tuple(first), tuple(second)))

    def _lifted(self, position: Ref, at: Ref, mask: Val | None) -> State:
        """The states of the elements from ``position`` of the arrays, ``at`` along their lines."""
        assert self.op.lift is not None
        c, e = self.c, self.e
        xs = [e.convert(x.value(c, position, mask), self.state_dtype) for x in self.inputs]
        return tuple(self.op.lift(e, *xs, e.splat(c.value(at))))

    def _finish(self, state: State, position: Ref, mask: Val | None) -> None:
        assert self.op.finish is not None
        out = self.c.at(self.out, position, self.dtype.itemsize)
        self.e.store(self.op.finish(self.e, state, self.dtype), out, mask)

    def _slots(self, line: Ref, chunk: Ref, column: Ref) -> list[str]:
        """Where the total of a chunk lies, and then the carry of the next: an array for each component."""
        c = self.c
        at = c.add(c.mul(c.add(c.mul(line, self.followed), chunk), self.inner), column)
        size, slots, base = c.mul(self.lines, self.followed), [], c.at("%shared", _FLAG, 1)
        for _, dtype in self.components:
            slots.append(c.at(base, at, dtype.itemsize))
            base = c.at(base, size, dtype.itemsize)
        return slots

    def _share(self, line: Ref, chunk: Ref, column: Ref, state: State, mask: Val | None) -> None:
        self._store(state, self._slots(line, chunk, column), mask)

    def _shared(self, line: Ref, chunk: Ref, column: Ref, mask: Val | None) -> State:
        return self._load(self._slots(line, chunk, column), mask)

    def _carry(self, line: Ref, chunk: Ref, column: Ref, mask: Val | None) -> State:
        """What a chunk starts from; nothing was shared for the first."""
        c, e = self.c, self.e
        has = e.splat(Val(str(c.compare("ne", chunk, 0)), dt.bool_, 1))
        active = has if mask is None else e.and_(has, mask)
        carry = self._shared(line, c.sub(chunk, 1), column, active)
        return tuple(e.select(has, value, start) for value, start in zip(carry, self._identity()))

    # ---- one chunk

    def _chunk(
        self,
        line: Ref,
        column: Ref,
        begin: Ref,
        end: Ref,
        carried: State | None,
        mask: Val | None,
        by_runs: bool,
    ) -> State:
        """Write elements [begin, end) of a line, before which there is ``carried`` (None: write nothing); the total of
        the chunk, which nobody looks at where it is not full."""
        start = self.c.add(self.c.mul(self.c.mul(line, self.n), self.inner), column)
        if self.columns is not None:
            return self._chunk_of_columns(self.columns, start, begin, end, carried, mask)
        if self.group is not None:
            return self._chunk_by_group(self.group, start, begin, end, carried)
        if by_runs:
            return self._chunk_by_runs(start, begin, end, carried)
        return self._chunk_sequential(start, begin, end, carried, mask)

    def _chunk_by_group(self, group: GroupScan, start: Ref, begin: Ref, end: Ref, carried: State | None) -> State:
        """The same of a line of neighbours, by all threads of a team."""

        def lifted(at: Ref, mask: Val) -> State:
            return self._lifted(self.c.add(start, at), at, mask)

        def finish(state: State, at: Ref) -> None:
            self._finish(state, self.c.add(start, at), None)

        return group.chunk(begin, end, carried, lifted, finish, self.exclusive)

    def _chunk_of_columns(
        self, group: ColumnScan, start: Ref, begin: Ref, end: Ref, carried: State | None, mask: Val | None
    ) -> State:
        """The same of neighbouring lines, by all threads of a team."""

        def position(at: Ref) -> Ref:
            return self.c.add(start, self.c.mul(at, self.inner))

        return group.chunk(
            begin,
            end,
            carried,
            lambda at: self._lifted(position(at), at, mask),
            lambda state, at: self._finish(state, position(at), mask),
            self.exclusive,
        )

    def _is_short(self, by_runs: bool) -> bool:
        """Whether a line is one run, because it would be scanned in another way otherwise."""
        return self.transposed and not by_runs and not isinstance(self.n, int)

    def _chunk_sequential(self, start: Ref, begin: Ref, end: Ref, carried: State | None, mask: Val | None) -> State:
        c = self.c

        def run(first: Ref, last: Ref, before: State | None) -> State:
            with c.loop(first, last, 1, self._identity()) as at:
                position = c.add(start, c.mul(at.index, self.inner))
                local = tuple(at.carried)
                state = self._combined(local, self._lifted(position, at.index, mask))
                if before is not None:
                    self._finish(self._combined(before, local if self.exclusive else state), position, mask)
                at.next = state
            return tuple(at.carried)

        if not self.many_runs or self._is_short(by_runs=False):
            return run(begin, end, carried)
        with c.loop(begin, end, SCAN_RUN, self._identity()) as runs:
            before = None if carried is None else self._combined(carried, runs.carried)
            total = run(runs.index, c.min(c.add(runs.index, SCAN_RUN), end), before)
            runs.next = self._combined(runs.carried, total)
        return tuple(runs.carried)

    # ---- lines together

    def _together(self) -> None:
        """Whole lines, by vectors across as many of them as a square has sides.  What is missing at the end of a group
        is the last line again."""
        c, size = self.c, self.square

        def scan_run(run: Ref, stop: Ref, before: State) -> State:
            return self._run_of_lines(starts, run, c.min(c.add(run, SCAN_RUN), stop), before)

        def scan_chunk(chunk: Ref, before: State) -> State:
            stop = c.min(c.add(chunk, SCAN_CHUNK), self.n) if self.many_chunks and not self.cut else self.n
            if not self.many_runs:
                return scan_run(chunk, stop, before)
            with c.loop(chunk, stop, SCAN_RUN, self._identity()) as runs:
                total = scan_run(runs.index, stop, self._combined(before, runs.carried))
                runs.next = self._combined(runs.carried, total)
            return tuple(runs.carried)

        with c.loop("%begin", "%end", size) as group, c.width(size):
            lines = [c.min(c.add(group.index, r), c.sub("%end", 1)) for r in range(size)]
            starts = [c.mul(line, self.n) for line in lines]
            if self.cut or not self.many_chunks:
                scan_chunk(0, self._identity())
            else:
                with c.loop(0, self.n, SCAN_CHUNK, self._identity()) as chunks:
                    before = tuple(chunks.carried)
                    chunks.next = self._combined(before, scan_chunk(chunks.index, before))

    def _run_of_lines(self, starts: Sequence[Ref], begin: Ref, end: Ref, before: State) -> State:
        """Write elements [begin, end), a run, of the lines that begin at ``starts``; their totals, which nobody looks
        at where the run is not full."""
        c, e, size = self.c, self.e, self.square
        whole = end
        if not e.target.masked:
            whole = c.add(begin, c.mul(c.div(c.sub(end, begin), size), size))
        state = self._identity()
        if whole != begin:
            with c.loop(begin, whole, size, state) as at:
                at.next = self._square_of_lines(starts, at.index, c.sub(end, at.index), tuple(at.carried), before)
            state = tuple(at.carried)
        if whole != end:
            with c.loop(whole, end, 1, state) as at:
                at.next = self._column_of_lines(starts, at.index, tuple(at.carried), before)
            state = tuple(at.carried)
        return state

    def _square_of_lines(self, starts: Sequence[Ref], at: Ref, count: Ref, state: State, before: State) -> State:
        """Elements from ``at``, ``count`` if that is less than a square has; the states after them."""
        c, e, size = self.c, self.e, self.square
        whole = not e.target.masked or (isinstance(self.n, int) and self.n % size == 0)
        e.mask = None if whole else c.lanes_below(count)
        rows = [self._lifted(c.add(start, at), at, e.mask) for start in starts]
        elements = [transpose_in_registers(e, list(values)) for values in zip(*rows)]
        shown = []
        for step in zip(*elements):
            after = self._combined(state, step)
            shown.append(self._combined(before, state if self.exclusive else after))
            state = after
        for start, values in zip(starts, zip(*(transpose_in_registers(e, list(values)) for values in zip(*shown)))):
            self._finish(values, c.add(start, at), e.mask)
        e.mask = None
        return state

    def _column_of_lines(self, starts: Sequence[Ref], at: Ref, state: State, before: State) -> State:
        """One element of each line."""
        c, e = self.c, self.e
        columns = self._identity()
        for lane, start in enumerate(starts):
            with c.width(1):
                values = self._lifted(c.add(start, at), at, None)
            columns = tuple(e.insert(column, value, lane) for column, value in zip(columns, values))
        after = self._combined(state, columns)
        shown = self._combined(before, state if self.exclusive else after)
        for lane, start in enumerate(starts):
            with c.width(1):
                self._finish(tuple(e.extract(value, lane) for value in shown), c.add(start, at), None)
        return after

    # ---- runs together

    def _chunk_by_runs(self, start: Ref, begin: Ref, end: Ref, carried: State | None) -> State:
        c = self.c
        group_size = SCAN_RUN * self.square
        with c.loop(begin, end, group_size, self._identity()) as group:
            count = c.min(c.sub(end, group.index), group_size)
            self._lay_out(start, group.index, count)
            self._scan_runs(count, carried is not None)
            group.next = self._carry_over(tuple(group.carried), count, carried)
            if carried is not None:
                self._show(start, group.index, count)
        return tuple(group.carried)

    def _staged(self, at: Ref = 0, run: Ref | None = None) -> list[str]:
        """Where the state of element ``at`` of a group of runs lies in scratch, or what belongs to a run."""
        c, result, base = self.c, [], "%scratch"
        for _, dtype in self.components:
            place = at if run is None else c.add(run, SCAN_RUN * TRANSPOSE_SQUARE)
            result.append(c.at(base, place, dtype.itemsize))
            base = c.at(base, (SCAN_RUN + 1) * TRANSPOSE_SQUARE, dtype.itemsize)
        return result

    def _load(self, places: Sequence[str], mask: Val | None = None) -> State:
        return tuple(self.e.load(place, dtype, mask) for place, (_, dtype) in zip(places, self.components))

    def _store(self, state: Sequence[Val], places: Sequence[str], mask: Val | None = None) -> None:
        for value, place in zip(state, places):
            self.e.store(value, place, mask)

    def _vectors(self, begin: Ref, end: Ref, body: Callable[[Ref, Val | None], None]) -> None:
        self.c.vector_loop(begin, end, lanes_for(self.e.target, self.state_dtype, SCAN_RUN), body)

    def _lay_out(self, start: Ref, first: Ref, count: Ref) -> None:
        """The elements from ``first`` of the line that begins at ``start``, as states."""
        c = self.c

        def lay(i: Ref, mask: Val | None) -> None:
            at = c.add(first, i)
            self._store(self._lifted(c.add(start, at), at, mask), self._staged(i), mask)

        self._vectors(0, count, lay)

    def _carry_over(self, before: State, count: Ref, carried: State | None) -> State:
        """``before`` and the totals of the runs, which are replaced by what their elements start from."""
        c = self.c
        with c.loop(0, count, SCAN_RUN, before) as runs:
            places = self._staged(run=c.div(runs.index, SCAN_RUN))
            total = self._load(places)
            if carried is not None:
                self._store(self._combined(carried, runs.carried), places)
            runs.next = self._combined(runs.carried, total)
        return tuple(runs.carried)

    def _show(self, start: Ref, first: Ref, count: Ref) -> None:
        c, e = self.c, self.e
        with c.loop(0, count, SCAN_RUN) as run:
            offset = self._load(self._staged(run=c.div(run.index, SCAN_RUN)))

            def show(i: Ref, mask: Val | None) -> None:
                state = self._combined([e.splat(value) for value in offset], self._load(self._staged(i), mask))
                self._finish(state, c.add(start, c.add(first, i)), mask)

            self._vectors(run.index, c.min(c.add(run.index, SCAN_RUN), count), show)

    def _scan_runs(self, count: Ref, keep: bool) -> None:
        """Scan the runs of a group of ``count`` elements, behind which there is anything: each from the identity, in
        place if ``keep``."""
        c, e, size = self.c, self.e, self.square
        with c.width(size):
            with c.loop(0, c.min(SCAN_RUN, count), size, self._identity()) as at:
                rows = [self._staged(c.add(at.index, r * SCAN_RUN)) for r in range(size)]
                elements = [
                    transpose_in_registers(e, list(values)) for values in zip(*(self._load(row) for row in rows))
                ]
                state, shown = tuple(at.carried), []
                for step in zip(*elements):
                    after = self._combined(state, step)
                    shown.append(state if self.exclusive else after)
                    state = after
                if keep:
                    for row, values in zip(
                        rows, zip(*(transpose_in_registers(e, list(values)) for values in zip(*shown)))
                    ):
                        self._store(values, row)
                at.next = state
            self._store(tuple(at.carried), self._staged(run=0))
