"""The driver of a CPU program: the native function that runs the kernels over the planned buffers.

Kernels run in *turns*, one for each of their phases.  Turns make up *steps*: what runs in a step may run side by side.
The entry runs all in the calling thread: a program of few turns is a sequence of calls, and a longer one a loop over
tables (see ``turns``), so that machine code does not grow with the program.  The shared entry has a host run each step
in which two threads find work.  It is a text of its own, for those who have a host.  A program that is to be timed has
an entry of the second kind alone, which hands a host one turn after another.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from itertools import groupby, islice
from typing import NamedTuple

from hybridflow.compiler.codegen.control.dispatch import (
    ARENA,
    LITERALS,
    BufferOffset,
    Dispatch,
    DispatchSteps,
    DispatchTables,
    KernelCall,
    Memory,
    is_enough,
)
from hybridflow.compiler.codegen.control.host_tasks import (
    COMMON,
    FIRST_PLACE,
    PHASE,
    PIECES,
    WAVE_WORDS,
    WORK_OF_PIECE,
    load,
    parallel_for,
    store,
    store_host,
    write_task,
    write_wave_task,
)
from hybridflow.compiler.codegen.core.emitter import Emitter
from hybridflow.compiler.codegen.core.kernel_builder import KernelBuilder, Ref
from hybridflow.compiler.codegen.core.llvm_module import LLVMModule
from hybridflow.compiler.codegen.core.phases import kernel_arguments
from hybridflow.compiler.codegen.gpu.cooperative import (
    CooperativeBlock,
    CooperativeGrid,
    CooperativeThreads,
    threads_of_scratch,
)
from hybridflow.compiler.ir.extents import aligned, larger
from hybridflow.compiler.ir.graph import Graph
from hybridflow.compiler.loops.buffer_assignment import ALIGNMENT, Copy, Plan
from hybridflow.compiler.program import HOST, shared_entry

ENTRY = "hf_main"
FEW = 16  # turns that are calls one after another
STATUS_BYTES = ALIGNMENT  # which keeps what follows where it was


def write(
    module: LLVMModule, name: str, graph: Graph, plan: Plan, dim_names: Sequence[str], calls: Sequence[KernelCall]
) -> tuple[Memory, Callable[[], None]]:
    """Write the entry of a program (see ``program``).  Returns its memory and what writes the shared entry."""
    steps = DispatchSteps(graph, plan, _single_threaded(module, calls)).make_room()
    tables = functools.cache(lambda: DispatchTables(module, name, steps))
    _Sequential(module, steps, tables, dim_names).write(name)
    shared, its_tables = steps, tables
    asks_python = _asks_python(graph, calls)
    if asks_python or any(call.code.sequential for call in calls):
        shared = DispatchSteps(graph, plan, calls, one_by_one=asks_python).make_room()
        its_tables = functools.cache(lambda: DispatchTables(module, shared_entry(name), shared))

    def write_shared() -> None:
        if shared.can_be_shared:
            form = _ParallelCalls if len(shared.dispatches) <= FEW else _Parallel
            form(module, shared, its_tables, dim_names).write(shared_entry(name))

    return Memory(*map(larger, steps.memory, shared.memory)), write_shared


def write_timed(
    module: LLVMModule,
    name: str,
    graph: Graph,
    plan: Plan,
    dim_names: Sequence[str],
    calls: Sequence[KernelCall],
    shared: bool,
) -> tuple[Memory, tuple[int, ...]]:
    """Write an entry that does what those of ``write`` do in the calling thread, or where it is ``shared`` on all
    workers, each turn by itself through the host.  Returns the program's memory, and of which kernel each turn is."""
    steps = DispatchSteps(
        graph, plan, calls if shared else _single_threaded(module, calls), one_by_one=True
    ).make_room()
    _Timed(module, steps, functools.cache(lambda: DispatchTables(module, name, steps)), dim_names).write(name)
    return steps.memory, tuple(dispatch.kernel for dispatch in steps.dispatches)


def _single_threaded(module: LLVMModule, calls: Sequence[KernelCall]) -> Sequence[KernelCall]:
    """The kernels as a single thread runs them.  (Many threads of a GPU are one each.)"""
    if module.target.kind == "cuda":
        return calls
    return [call._replace(code=call.code.single_threaded()) for call in calls]


def write_function(
    module: LLVMModule,
    name: str,
    graph: Graph,
    plan: Plan,
    dim_names: Sequence[str],
    calls: Sequence[KernelCall],
    block: int = 0,
) -> tuple[str, str | None, Memory]:
    """Write the function of a sub-graph.  A kernel runs it in its own thread; on a GPU in all of them, or in those of a
    ``block`` of so many: an entry whose fifth parameter is the scratch memory.  The name that it has; that of one that
    has a host share out what it does, if that may pay; it takes the scratch memory of all workers and the bytes from
    one's to the next one's; and what they need."""
    steps = DispatchSteps(graph, plan, _single_threaded(module, calls))
    tables = functools.cache(lambda: DispatchTables(module, name, steps))
    if module.target.kind == "cuda":
        inner = (
            _InThreadBlock(module, steps, tables, dim_names, block)
            if block
            else _Cooperative(module, steps, tables, dim_names)
        )
        return inner.write(name, "internal"), None, inner.memory
    symbol = _Subgraph(module, steps.make_room(), tables, dim_names).write(name, "internal")
    shared = DispatchSteps(graph, plan, calls, one_by_one=_asks_python(graph, calls)).make_room()
    if not shared.pays_to_share:
        return symbol, None, steps.memory
    tables = functools.cache(lambda: DispatchTables(module, shared_entry(name), shared))
    sharing = _ParallelSubgraph(module, shared, tables, dim_names).write(f"{name}s", "internal")
    return symbol, sharing, Memory(*map(larger, steps.memory, shared.memory))


def _asks_python(graph: Graph, calls: Sequence[KernelCall]) -> bool:
    """Whether kernels call Python.  They stay in the thread of their caller, and are not put among others' pieces."""
    return graph.calls_host or any(call.polls_interrupts for call in calls)


class TaskEstimate(NamedTuple):
    """What a host is told of a task, see ``program.HOST``."""

    units: Ref
    grain: Ref
    least: Ref
    work: Ref


class _Function:
    """What both functions share: the one that runs everything in place, and the one that shares it out."""

    for_host = False  # whether it is for those alone who have a host

    def __init__(
        self, module: LLVMModule, steps: DispatchSteps, tables: Callable[[], DispatchTables], dim_names: Sequence[str]
    ) -> None:
        self.module, self.steps, self._tables = module, steps, tables
        self.e = Emitter(module.target, 1)
        self.code = KernelBuilder(self.e, dim_names)
        self.given = ["ptr %buffers", "ptr %dims", "ptr %arena", "ptr %host"]
        self.words = 0  # that are kept so far

    @property
    def tables(self) -> DispatchTables:
        """Written once something reads them."""
        return self._tables()

    def write(self, name: str, linkage: str = "") -> str:
        e = self.e
        self._begin()
        for item in self.steps.plan.before:
            self._copy(item)
        self._run()
        for item in self.steps.plan.after:
            self._copy(item)
        self._end()
        e.line("ret i32 0")
        return self.module.function(
            e, name, ", ".join(self.given), result="i32", linkage=linkage, for_host=self.for_host
        )

    def _begin(self) -> None:
        self.status = "null"
        if self.steps.raise_ or self.steps.asks_host:
            calls_host = self.steps.graph.calls_host or self.steps.asks_host
            self.status = self._allocate(3 if self.steps.asks_host else 2 if calls_host else 1)
            self.e.line(f"store i32 0, ptr {self.status}, align 4")
            if calls_host:
                store_host(self.code, "%host", self.status, self._stride() if self.steps.asks_host else None)
        self.scratch = self._scratch()

    def _scratch(self) -> str:
        """The scratch memory of the first worker."""
        if self.steps.memory.scratch == 0:
            return "null"
        return self.code.at("%arena", self.code.extent(self.steps.memory.arena), 1)

    def _run(self) -> None:
        raise NotImplementedError

    def _end(self) -> None:
        """Before it returns."""

    def _stride(self) -> Ref:
        """Bytes from the scratch memory of one worker to that of the next one."""
        return self.code.extent(self.steps.memory.scratch)

    def _allocate(self, words: int) -> str:
        """Words of this call, on the stack or in the room that was made for them."""
        if self.steps.words_at is not None:
            self.words += words
            return self.code.at("%arena", self.code.extent(self.steps.words_at + 8 * (self.words - words)), 1)
        name = self.e.fresh("words")
        self.e.line(f"{name} = alloca [{words} x i64], align 8")
        return name

    def _prepare_common(self) -> None:
        """What all tasks share."""
        code = self.code
        self.common = self._allocate(len(COMMON))
        for k, word in enumerate((f"ptr {self.scratch}", f"i64 {self._stride()}", "ptr %dims", f"ptr {self.status}")):
            store(code, word, self.common, k)

    def _prepare_tables(self) -> None:
        """What is found once, before the first turn: what all tasks share, and sizes that depend on extents."""
        code = self.code
        self._prepare_common()
        self.sizes = self._allocate(len(self.tables.sizes))
        for k, size in enumerate(self.tables.sizes):
            store(code, f"i64 {code.extent(size)}", self.sizes, k)
        self.tables.used_by(self.e)

    def _pointer(self, place: BufferOffset) -> str:
        """An address, found anew for each use: a program has more of them than registers to keep them in."""
        if place.buffer == LITERALS:
            self.tables.used_by(self.e, self.tables.literals)
            buffer = self.tables.literals
        else:
            buffer = "%arena" if place.buffer == ARENA else load(self.code, "%buffers", place.buffer, "ptr")
        return self.code.at(buffer, self.code.extent(place.offset), 1)

    def _call(self, dispatch: Dispatch) -> None:
        """Run a turn in this thread."""
        shared, *buffers = map(self._pointer, dispatch.buffers)
        units = self.code.extent(dispatch.units)
        arguments = kernel_arguments(buffers, shared, self.scratch, "%dims", self.status, 0, units)
        self.e.line(f"call void @{dispatch.phase.symbol}({arguments})")
        if dispatch.raises:
            self._return_if_failed(dispatch.limit)

    def _copy(self, item: Copy) -> None:
        e = self.e
        e.declares.add("declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)")  # an update may lie over its input
        target, source = (self._pointer(self.steps.offset_of(p)) for p in (item.target, item.source))
        size = self.code.extent(item.size)
        with self.code.when(self.code.pointers_differ(target, source) if item.is_there else True):
            e.line(f"call void @llvm.memmove.p0.p0.i64(ptr {target}, ptr {source}, i64 {size}, i1 false)")

    def _return_if_failed(self, limit: Ref) -> None:
        """Stop when a check has failed that is earlier than all of the kernels to come: above their ``limit``."""
        e = self.e
        value, failed, code = e.fresh("s"), e.fresh("c"), e.fresh("s")
        e.line(f"{value} = load i32, ptr {self.status}, align 4")
        e.line(f"{failed} = icmp ugt i32 {value}, {limit}")
        stop, go_on = e.new_label("stop"), e.new_label("next")
        e.branch_if(failed, stop, go_on)
        e.label(stop)
        e.line(f"{code} = sub i32 0, {value}")  # checks are recorded as negative codes, see Emitter.raise_if
        e.line(f"ret i32 {code}")
        e.label(go_on)

    # ---- turns out of tables

    def _read_dispatch(self, dispatch: Ref, cursor: Ref, args: str) -> tuple[str, TaskEstimate, Ref, Ref]:
        """Lay the arguments of a turn into ``args``: its task, measures, the workers that it is cut for, and the number
        of its places, which begin at ``cursor``."""
        code, tables = self.code, self.tables
        task = load(code, tables.dispatches, code.mul(dispatch, tables.turn_words))
        function, phase = (load(code, tables.tasks, code.add(code.mul(task, 2), k), "ptr") for k in range(2))
        count, grain, least, workers = (load(code, tables.kinds, code.add(code.mul(task, 4), k)) for k in range(4))
        units, work = (
            self._size(tables.dispatches, code.add(code.mul(dispatch, tables.turn_words), place))
            for place in (1, 1 + tables.size_words)
        )
        store(code, f"ptr {self.common}", args, 0)
        store(code, f"ptr {phase}", args, PHASE)
        with code.loop(0, count) as k:
            entry = code.mul(code.add(cursor, k.index), tables.place_words)
            buffer = load(code, tables.places, entry)
            in_arena = code.compare("slt", buffer, 0)
            other = load(code, "%buffers", code.max(buffer, 0), "ptr")
            start = code.choose_pointer(in_arena, "%arena", other)
            if self.steps.literals:
                start = code.choose_pointer(code.compare("eq", buffer, LITERALS), tables.literals, start)
            address = code.at(start, self._size(tables.places, code.add(entry, 1)), 1)
            store(code, f"ptr {address}", args, code.add(k.index, FIRST_PLACE))
        return function, TaskEstimate(units, grain, least, work), workers, count

    def _limit(self, dispatch: Ref) -> Ref:
        narrow = self.e.fresh("n")
        self.e.line(f"{narrow} = trunc i64 {load(self.code, self.tables.limits, dispatch)} to i32")
        return narrow

    def _size(self, table: str, entry: Ref) -> Ref:
        """A size in a table: a number and, where sizes depend on extents, which of those is added to it."""
        code = self.code
        known = load(code, table, entry)
        if not self.tables.symbolic:
            return known
        return code.add(known, load(code, self.sizes, load(code, table, code.add(entry, 1))))


class _Sequential(_Function):
    """The function that runs everything in the calling thread."""

    def _begin(self) -> None:
        super()._begin()
        self._choose_form()

    def _choose_form(self) -> None:
        self.straight = len(self.steps.dispatches) <= FEW
        if not self.straight:
            self._prepare_tables()
            self.args = self._allocate(max(self.tables.words))

    def _run(self) -> None:
        if self.straight:
            for dispatch in self.steps.dispatches:
                self._call(dispatch)
            return
        code = self.code
        with code.loop(0, len(self.steps.dispatches), 1, [code.value(0)]) as at:
            cursor = at.carried[0].ref
            task, measures, _, count = self._read_dispatch(at.index, cursor, self.args)
            self.e.line(f"call void {task}(ptr {self.args}, i64 0, i64 {measures.units}, i64 0)")
            if self.steps.raise_:
                self._return_if_failed(self._limit(at.index))
            at.next = [code.value(code.add(cursor, count))]


class _Subgraph(_Sequential):
    """The function of a sub-graph."""

    def __init__(
        self, module: LLVMModule, steps: DispatchSteps, tables: Callable[[], DispatchTables], dim_names: Sequence[str]
    ) -> None:
        super().__init__(module, steps, tables, dim_names)
        self.given.append("ptr %scratch")

    def _scratch(self) -> str:
        return "%scratch"


class _Cooperative(_Subgraph):
    """The function of a sub-graph on a GPU, which all threads of a launch run together.  In the place of a host it is
    told where they meet.  Its scratch memory is that of all of them, its status lies behind its arena, and when it
    returns all of them have done their part."""

    @property
    def memory(self) -> Memory:
        arena, scratch = self.steps.memory
        return Memory(arena + STATUS_BYTES if self.steps.raise_ else arena, scratch)

    def _threads(self) -> CooperativeThreads:
        return CooperativeGrid(self.module, self.code, "%host")

    def _threads_with_scratch(self) -> Ref | None:
        """How many threads have scratch memory, None for all."""
        return threads_of_scratch(self.steps.memory.scratch)

    def _begin(self) -> None:
        self.cooperative = self._threads()
        self.straight, self.status = True, "null"
        if self.steps.raise_:
            self.status = self.code.at("%arena", self.code.extent(self.steps.memory.arena), 1)
            self.cooperative.barrier()  # who has run it before has read what came of that
            self.e.line(f"store i32 0, ptr {self.status}, align 4")
        self.scratch = "null"
        self.threads: Ref | None = None
        scratch = self.steps.memory.scratch
        if scratch != 0:
            self.threads = self._threads_with_scratch()
            each = self.code.extent(aligned(scratch, ALIGNMENT))
            self.scratch = self.code.at("%scratch", self.code.mul(self.cooperative.number, each), 1)

    def _copy(self, item: Copy) -> None:
        target, source = (self._pointer(self.steps.offset_of(p)) for p in (item.target, item.source))
        self.cooperative.copy(target, source, self.code.extent(item.size))

    def _run(self) -> None:
        if self.steps.raise_ or self.steps.plan.before:
            self.cooperative.barrier()
        for step in self.steps.in_order():
            for sequential, dispatches in groupby(step, key=lambda dispatch: dispatch.phase.cooperative):
                sequence = list(dispatches)
                for dispatch in sequence:
                    self._call(dispatch)
                    if sequential and dispatch is not sequence[-1]:
                        self.cooperative.barrier()
                self.cooperative.barrier()
            raising = [dispatch for dispatch in step if dispatch.raises]
            if raising:
                self._return_if_failed(step[-1].limit)

    def _end(self) -> None:
        if self.steps.plan.after or not self.steps.dispatches:
            self.cooperative.barrier()

    def _call(self, dispatch: Dispatch) -> None:
        code, phase = self.code, dispatch.phase
        shared, *buffers = map(self._pointer, dispatch.buffers)

        def call(scratch: str, begin: Ref, end: Ref) -> None:
            arguments = kernel_arguments(buffers, shared, scratch, "%dims", self.status, begin, end)
            self.e.line(f"call void @{phase.symbol}({arguments})")

        if phase.cooperative:
            call("%host", 0, 1)
            return
        threads = self.threads if dispatch.scratch != 0 else None
        with self.cooperative.units(code.extent(dispatch.units), phase.group_size, threads) as unit:
            call(self.scratch, unit.index, code.add(unit.index, 1))


class _InThreadBlock(_Cooperative):
    """The same for the threads of a block, each of which has scratch memory of its own."""

    def __init__(
        self,
        module: LLVMModule,
        steps: DispatchSteps,
        tables: Callable[[], DispatchTables],
        dim_names: Sequence[str],
        size: int,
    ) -> None:
        super().__init__(module, steps, tables, dim_names)
        self.size = size

    @property
    def memory(self) -> Memory:
        arena, scratch = super().memory
        return Memory(arena, self.size * aligned(scratch, ALIGNMENT))

    def _threads(self) -> CooperativeThreads:
        return CooperativeBlock(self.code, self.size)

    def _threads_with_scratch(self) -> Ref | None:
        return None


class _Parallel(_Function):
    """The function that has a host share out what runs in each step, which it reads out of tables."""

    def _begin(self) -> None:
        super()._begin()
        self._prepare_tables()
        remainder = iter(self.tables.words)
        self.args = self._allocate(max((sum(islice(remainder, size)) for size in self.steps.sizes), default=0))
        self.most = max(self.steps.sizes, default=0)
        self.wave = self._allocate(len(WAVE_WORDS) * self.most)

    def _run(self) -> None:
        code = self.code
        if not self.steps.dispatches:
            return
        with code.loop(0, len(self.steps.sizes), 1, [code.value(0), code.value(0)]) as step:
            first, cursor = (v.ref for v in step.carried)
            count = load(code, self.tables.steps, step.index)
            with code.loop(0, count, 1, [code.value(ref) for ref in (cursor, 0, 0, *TaskEstimate(0, 0, 0, 0))]) as at:
                cursor, words, pieces, *_, work = (v.ref for v in at.carried)
                following = self._lay(code.add(first, at.index), at.index, cursor, words, pieces, work)
                at.next = [code.value(ref) for ref in following]
            cursor, _, pieces, *measures = (v.ref for v in at.carried)
            self._share_out(count, pieces, TaskEstimate(*measures))
            last = code.add(first, count)
            if self.steps.raise_:
                self._return_if_failed(self._limit(code.sub(last, 1)))
            step.next = [code.value(last), code.value(cursor)]

    def _lay(self, dispatch: Ref, number: Ref, cursor: Ref, words: Ref, pieces: Ref, work: Ref) -> tuple[Ref, ...]:
        """Lay down the ``number``-th turn of a step: its arguments, of which there are ``words`` so far, and what the
        task of the step must know of it.  The cursor, words and ``pieces`` after it; its measures, but the ``work`` of
        the step so far."""
        code = self.code
        args = code.at(self.args, words, 8)
        task, measures, workers, count = self._read_dispatch(dispatch, cursor, args)
        measures = self._for_workers(measures, workers)
        end = self._lay_pieces(number, pieces, task, args, measures)
        after = code.add(code.add(words, count), FIRST_PLACE)
        return code.add(cursor, count), after, end, *measures._replace(work=code.add(work, measures.work))

    def _for_workers(self, measures: TaskEstimate, workers: Ref) -> TaskEstimate:
        """The measures of a turn, all of whose units are one piece where the host has fewer than ``workers``."""
        if isinstance(workers, int) and workers <= 1:
            return measures
        code = self.code
        few = code.compare("slt", load(code, "%host", HOST.index("workers")), workers)
        return measures._replace(grain=code.choose(few, code.max(measures.units, 1), measures.grain))

    def _lay_pieces(self, number: Ref, pieces: Ref, task: str, args: str, measures: TaskEstimate) -> Ref:
        """Lay down what the task of a wave must know of its ``number``-th turn, whose pieces follow so many of others:
        as many as share the work, of no fewer units than pay while each worker has one.  The pieces after it."""
        code = self.code
        units, grain, least, work = measures
        wanted = code.max(code.min(code.div(work, WORK_OF_PIECE), PIECES), 1)
        grains = code.max(_in_whole(code, units, grain), 1)
        size, paying = _in_whole(code, grains, wanted), _in_whole(code, least, grain)
        if code.compare("sge", size, paying) is not True:
            each = _in_whole(code, grains, load(code, "%host", HOST.index("workers")))
            size = code.max(size, code.min(paying, each))
        piece = code.mul(size, grain)
        end = code.add(pieces, _in_whole(code, units, piece))
        entry = code.at(self.wave, code.mul(number, len(WAVE_WORDS)), 8)
        for k, word in enumerate((f"ptr {task}", f"ptr {args}", f"i64 {units}", f"i64 {piece}", f"i64 {end}")):
            store(code, word, entry, k)
        return end

    def _share_out(self, count: Ref, pieces: Ref, measures: TaskEstimate) -> None:
        """Run the step that was laid down: a single turn in units of its own, several in pieces."""
        code = self.code
        sequential = code.compare("eq", count, 1)
        with code.when(sequential):
            self._share_out_one(load(code, self.wave, 0, "ptr"), measures)
        if self.most > 1:
            with code.when(code.negation(sequential)):
                self._share_out_pieces(pieces, measures.work)

    def _share_out_one(self, task: str, measures: TaskEstimate) -> None:
        """Run a single turn; what cannot be cut in this thread, which a kernel that asks the host itself relies on."""
        code = self.code
        if not self.steps.asks_host:
            parallel_for(code, "%host", task, self.args, *measures)
            return
        is_whole = code.compare("sle", measures.units, measures.grain)
        with code.when(is_whole):
            code.e.line(f"call void {task}(ptr {self.args}, i64 0, i64 {measures.units}, i64 0)")
        with code.when(code.negation(is_whole)):
            parallel_for(code, "%host", task, self.args, *measures)

    def _share_out_pieces(self, pieces: Ref, work: Ref) -> None:
        task = write_wave_task(self.module, self.for_host)
        parallel_for(self.code, "%host", f"@{task}", self.wave, pieces, 1, 0, work)


class _Timed(_Parallel):
    """The same, of single turns all of which a host runs: one that runs what it does not cut in its caller's thread."""

    def _share_out_one(self, task: str, measures: TaskEstimate) -> None:
        parallel_for(self.code, "%host", task, self.args, *measures)


class _ParallelCalls(_Parallel):
    """The same for few turns, without tables."""

    def _begin(self) -> None:
        _Function._begin(self)
        self._prepare_common()
        most = max(self.steps.sizes)
        self.laid = [self._allocate(FIRST_PLACE + count) for count in self._most_places()]
        self.wave = self._allocate(len(WAVE_WORDS) * most) if most > 1 else "null"

    def _most_places(self) -> list[int]:
        """The places that the first, second ... turn of any step has at the most."""
        return [
            max(len(step[k].buffers) for step in self.steps.in_order() if k < len(step))
            for k in range(max(self.steps.sizes))
        ]

    def _run(self) -> None:
        for step in self.steps.in_order():
            if not self._pays(step):
                for dispatch in step:
                    self._call(dispatch)
                continue
            if len(step) == 1:
                parallel_for(self.code, "%host", *self._task(step[0], 0), *self._measures(step[0]))
            else:
                self._run_wave(step)
            if any(dispatch.raises for dispatch in step):
                self._return_if_failed(step[-1].limit)

    def _pays(self, step: Sequence[Dispatch]) -> bool:
        """Whether a host may run a step better than this thread."""
        return len(step) > 1 or not step[0].is_whole

    def _run_wave(self, step: Sequence[Dispatch]) -> None:
        pieces: Ref = 0
        work: Ref = 0
        for k, dispatch in enumerate(step):
            measures = self._measures(dispatch)
            pieces = self._lay_pieces(k, pieces, *self._task(dispatch, k), measures)
            work = self.code.add(work, measures.work)
        self._share_out_pieces(pieces, work)

    def _measures(self, dispatch: Dispatch) -> TaskEstimate:
        phase = dispatch.phase
        measures = TaskEstimate(
            self.code.extent(dispatch.units), phase.grain, phase.least, self.code.extent(dispatch.work)
        )
        return self._for_workers(measures, phase.workers)

    def _task(self, dispatch: Dispatch, number: int) -> tuple[str, str]:
        """The task of a turn, the ``number``-th of its step, and its arguments, which are laid down."""
        code, args = self.code, self.laid[number]
        pointers = [self._pointer(place) for place in dispatch.buffers]
        for k, pointer in enumerate((self.common, f"@{dispatch.phase.symbol}", *pointers)):
            store(code, f"ptr {pointer}", args, k)
        return f"@{write_task(self.module, len(dispatch.buffers) - 1, self.for_host)}", args


class _ParallelSubgraph(_ParallelCalls):
    """The function of a sub-graph that has a host share out the steps that are worth it."""

    for_host = True

    def __init__(
        self, module: LLVMModule, steps: DispatchSteps, tables: Callable[[], DispatchTables], dim_names: Sequence[str]
    ) -> None:
        super().__init__(module, steps, tables, dim_names)
        self.given += ["ptr %scratch", "i64 %stride"]

    def _scratch(self) -> str:
        return "%scratch"

    def _stride(self) -> Ref:
        return "%stride"

    def _pays(self, step: Sequence[Dispatch]) -> bool:
        return super()._pays(step) and is_enough(step)


def _in_whole(code: KernelBuilder, count: Ref, each: Ref) -> Ref:
    """How many times ``each`` reaches to ``count``."""
    return code.div(code.add(count, code.sub(each, 1)), each)
