"""Kernels of control flow: they run graphs.

What a sub-graph computes is either written in place, where that is single elements (``inline``), or planned and emitted
as a function of its own.  That has the parameters of a program's entry, and finds its buffers through a table of
addresses. A loop has two memories for its carries: each iteration reads one and writes the other, and only the tables
change places.

Such a kernel is a single unit: whoever runs it, a worker of a host, runs all of its sub-graphs. Where these have work
for several threads there is a second kernel.  It runs in the caller's thread while nothing else does, and its functions
have the host share out their steps.

On a GPU all threads of its launch run it together (see ``together``), unless all is written in place: each of them
takes the way of all, tables are each thread's own, and what the kernel writes itself is the same from each of them.

A check that fails ends the kernel with its code, counted from where the sub-graph's checks begin.  Where an earlier one
has failed already, nothing is run: with what it found wrong a loop might not end.  Where a later one has, all is run as
ever: others, whose checks come in between, may read what is made here.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

from hybridflow.compiler.codegen.control.dispatch import Memory
from hybridflow.compiler.codegen.control.host_tasks import load, load_host, load_stride, words_text
from hybridflow.compiler.codegen.control.inline_control_flow import Inline, InterruptPoll, count_checks, is_inline
from hybridflow.compiler.codegen.core.elements import MemoryPlace
from hybridflow.compiler.codegen.core.emitter import Emitter
from hybridflow.compiler.codegen.core.kernel_builder import KernelBuilder, Ref
from hybridflow.compiler.codegen.core.llvm_module import LLVMModule
from hybridflow.compiler.codegen.core.llvm_values import Val
from hybridflow.compiler.codegen.core.phases import EmittedKernel, Phase, kernel_parameters
from hybridflow.compiler.codegen.gpu.cooperative import CooperativeGrid, block_of, scratch_bytes
from hybridflow.compiler.codegen.products import batched_small_linalg
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.extents import Extent, aligned, calculated, dividend, larger, products_of
from hybridflow.compiler.ir.graph import Graph, Node, graphs_in
from hybridflow.compiler.ir.results import is_token
from hybridflow.compiler.ir.types import Shape, product
from hybridflow.compiler.loops import interrupt_checks
from hybridflow.compiler.loops.alias_analysis import AliasAnalysis, AliasPairs
from hybridflow.compiler.loops.buffer_assignment import ALIGNMENT, byte_size
from hybridflow.compiler.loops.kernel import Kernel, base
from hybridflow.compiler.loops.tuning import ON_STACK
from hybridflow.compiler.ops import Kind
from hybridflow.compiler.ops.lowering import Assert, DynamicExtent, HostCall, Scan, Switch, While
from hybridflow.compiler.program import EXCHANGE, HOST, INTERRUPTED, Check, HostFunction
from hybridflow.errors import CompileError, HybridflowError

_BEYOND = 2.0**62  # bytes that no memory has


class SubgraphFunction(NamedTuple):
    """A sub-graph's function, the memory that it needs, and its checks, whose codes count from 1; the first stands for
    interrupts if it ``looks`` for them.  ``sharing`` is the function that has a host share out what that does, None
    where it does too little.  So many ``threads`` of a GPU have something to do in it; where those of a block run it,
    its kernels have the use of so many bytes that are ``lent``.  Outputs, the keys of ``overwrites``, may lie in the
    memory of inputs."""

    symbol: str
    sharing: str | None
    memory: Memory
    checks: list[Check]
    polls_interrupts: bool
    threads: Extent
    dynamic_shared_bytes: int
    overwrites: Mapping[int, int]

    @property
    def own_checks(self) -> list[Check]:
        """Those for which the surroundings have codes."""
        return self.checks[self.polls_interrupts :]


class KernelContext(Protocol):
    """The builder of the program that a kernel is part of."""

    module: LLVMModule
    dim_names: list[str]
    aliases: AliasAnalysis

    def function_of(
        self, graph: Graph, symbol: str | None = None, block: int = 0, wanted: AliasPairs = ()
    ) -> SubgraphFunction:
        """The function of a sub-graph, which may know an extent more, and writes outputs over inputs where that is
        ``wanted`` and can be.  Its buffers begin at multiples of the size of their elements, not of more.  On a GPU all
        threads of a launch run it, or those of a ``block`` of so many."""

    def note(self, code: int, check: Check) -> None:
        """What the check of that code is."""

    def callback(
        self,
        node: Node,
        function: int | HostFunction,
        operands: Sequence[Node],
        retried: bool = False,
        exchange: bool = False,
    ) -> int:
        """The number of the place where a node calls a function in Python."""


def operands_of(kernel: Kernel) -> list[Node]:
    """The nodes over whose buffers a kernel of control flow runs: what its graphs are given, then what is wanted of
    their results."""
    results = [root for root in kernel.roots if root.op.kind is Kind.PROJECT]
    return [*(base(n) for n in kernel.cluster.anchor.inputs), *results]


def write_control(
    home: KernelContext, new_emitter: Callable[[], Emitter], symbol: str, kernel: Kernel, first: int
) -> tuple[EmittedKernel, str]:
    """Add the kernel; also says how.  ``first`` is the code of its first check, or of the next one in program order."""

    def written(asks_host: bool) -> tuple[Phase, _Control]:
        e = new_emitter()
        writer = _Control(home, e, kernel, first, asks_host)
        writer.write()
        e.line("ret void")
        parameters = kernel_parameters(len(operands_of(kernel)))
        name = home.module.function(e, symbol, parameters, linkage="internal", for_host=asks_host)
        return Phase(name, ()), writer

    sequential, writer = written(asks_host=False)
    if writer.cooperative is not None:
        block, wanted = block_of(writer.threads), writer.threads
        phase = replace(sequential, group_size=block, cooperative=True, useful_threads=wanted)
        return EmittedKernel((phase,), 0, writer.shared), f"{wanted} threads together, blocks of {block}"
    if not writer.could_ask:
        return EmittedKernel((sequential,), writer.scratch, writer.shared), ""
    return EmittedKernel((written(asks_host=True)[0],), writer.scratch, writer.shared, sequential, asks_host=True), ""


@dataclass(frozen=True)
class _Step:
    """A sub-graph as it is run: its function, None where it is written in place, and the code of its first check."""

    graph: Graph
    first: int
    function: SubgraphFunction | None


class _Control:
    def __init__(self, home: KernelContext, e: Emitter, kernel: Kernel, first: int, asks_host: bool) -> None:
        self.context, self.e, self.first, self.asks_host = home, e, first, asks_host
        self.could_ask = False  # whether a function of its graphs has work for several threads
        self.node = node = kernel.cluster.anchor
        self.code = KernelBuilder(e, home.dim_names)
        on_gpu = home.module.target.kind == "cuda"
        self.cooperative: CooperativeGrid | None = None
        if on_gpu and not all(map(is_inline, graphs_in(node.attrs))):
            self.cooperative = CooperativeGrid(home.module, self.code, "%scratch")
        self.threads: Extent = 1  # for which its functions have work
        looks = not on_gpu and interrupt_checks.polls_interrupts(node)
        self.watch = InterruptPoll(self.code) if looks else None
        self.inline = Inline(self.code, home.note, self.watch)
        self.shared: Extent = 0
        self.scratch: Extent = 0
        self.inner_scratch = "%scratch" if self.cooperative is None else "null"
        self.arena: Extent = 0
        self.given = node.inputs
        self.types = node.type.parts
        self.sources = [f"%a{i}" for i in range(len(self.given))]
        self.targets: list[str | None] = [None] * len(self.types)  # where each result is wanted
        self.also: list[tuple[int, str]] = []  # results that are wanted in a second place
        for i, root in enumerate(operands_of(kernel)[len(self.given) :], len(self.given)):
            number = root.attrs["index"]
            if self.targets[number] is None:
                self.targets[number] = f"%a{i}"
            else:
                self.also.append((number, f"%a{i}"))

    def write(self) -> None:
        node = self.node
        assert node.op.lower is not None
        how = node.op.lower(tuple(n.type for n in node.inputs), node.attrs)
        self._end_if_failed_before()
        self.inline.begin(node.may_raise)
        if node.may_raise:
            self._barrier()  # nobody fails before the last one has begun
        _WRITERS[type(how)](self, how)
        if self.also:
            self._barrier()
        for number, target in self.also:
            first = self.targets[number]
            assert first is not None
            self._copy(target, first, self._bytes(number))

    # ---- threads of a GPU

    def _barrier(self) -> None:
        if self.cooperative is not None:
            self.cooperative.barrier()

    @contextmanager
    def _by_one(self) -> Iterator[None]:
        """What one thread alone does, before a barrier."""
        with self.code.when(True if self.cooperative is None else self.cooperative.is_first):
            yield

    # ---- memory

    def _bytes(self, number: int) -> Ref:
        """The size of a result."""
        type = self.types[number]
        return self.code.extent(product(type.shape) * type.dtype.itemsize)

    def _reserve(self, size: Extent) -> str:
        """Memory of this kernel."""
        pointer = self.code.at("%shared", self.code.extent(self.shared), 1)
        self.shared = self.shared + aligned(size, ALIGNMENT)
        return pointer

    def _step(self, graph: Graph, first: int, wanted: AliasPairs = ()) -> _Step:
        if is_inline(graph):
            return _Step(graph, first, None)
        function = self.context.function_of(graph, wanted=wanted)
        self.could_ask |= function.sharing is not None
        self.threads = larger(self.threads, function.threads)
        self.arena = larger(self.arena, function.memory.arena)
        self.scratch = larger(self.scratch, function.memory.scratch)
        for k, check in enumerate(function.own_checks):
            self.context.note(first + k, check)
        return _Step(graph, first, function)

    def _table(self, addresses: Sequence[str]) -> str:
        """A table of addresses."""
        size = 8 * max(len(addresses), 1)
        if size <= ON_STACK or self.cooperative is not None:
            table = self.e.fresh("table")
            self.e.line(f"{table} = alloca [{size // 8} x ptr], align 8")
        else:
            table = self._reserve(size)
        for k, address in enumerate(addresses):
            self._set(table, k, address)
        return table

    def _set(self, table: str, k: int, address: str) -> None:
        self.e.line(f"store ptr {address}, ptr {self.code.at(table, k, 8)}, align 8")

    def _get(self, table: str, k: int) -> str:
        address = self.e.fresh("p")
        self.e.line(f"{address} = load ptr, ptr {self.code.at(table, k, 8)}, align 8")
        return address

    def _copy(self, target: str, source: str, size: Ref) -> None:
        if self.cooperative is not None:
            self.cooperative.copy(target, source, size)
        elif size != 0:
            self.e.declare("declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)")
            self.e.line(f"call void @llvm.memmove.p0.p0.i64(ptr {target}, ptr {source}, i64 {size}, i1 false)")

    # ---- running a sub-graph

    def _call(
        self, step: _Step, table: str, dims: str = "%dims", scratch: str | None = None, stride: Ref | None = None,
        freed: str | None = None,
    ) -> None:  # fmt: skip
        """Run a sub-graph's function; where a check fails, the kernel ends.  ``stride`` is between workers' scratch
        memories, where not that of this kernel's; ``freed`` is memory to give back."""
        e, function = self.e, step.function
        assert function is not None
        status, symbol = e.fresh("r"), function.symbol
        shares = self.asks_host and function.sharing is not None
        has_host = shares or (step.graph.calls_host and self.context.module.target.kind != "cuda")
        host = load_host(self.code, "%status") if has_host else "null"
        if self.cooperative is not None:
            host = self.cooperative.word
        scratch = self.inner_scratch if scratch is None else scratch
        arguments = f"ptr {table}, ptr {dims}, ptr {self.inner_arena}, ptr {host}, ptr {scratch}"
        if shares:
            assert function.sharing is not None
            symbol = function.sharing
            arguments += f", i64 {load_stride(self.code, '%status') if stride is None else stride}"
        e.line(f"{status} = call i32 @{symbol}({arguments})")
        if freed is not None:
            e.declare("declare void @free(ptr)")
            self._barrier()
            with self._by_one():
                e.line(f"call void @free(ptr {freed})")
        if not function.checks:
            return
        failed, failing, go_on = e.fresh("c"), e.new_label("failed"), e.new_label("go")
        e.line(f"{failed} = icmp ne i32 {status}, 0")
        e.branch_if(failed, failing, go_on)
        e.label(failing)
        code, negative = e.fresh("s"), e.fresh("s")
        e.line(f"{code} = add i32 {status}, {step.first - 1 - function.polls_interrupts}")
        if function.polls_interrupts:
            inner, interrupted, code = code, e.fresh("c"), e.fresh("s")
            e.line(f"{interrupted} = icmp eq i32 {status}, {INTERRUPTED}")
            e.line(f"{code} = select i1 {interrupted}, i32 {INTERRUPTED}, i32 {inner}")
        e.line(f"{negative} = sub i32 0, {code}")  # as Emitter.raise_if records it
        e.line(f"{e.fresh()} = atomicrmw umax ptr %status, i32 {negative} monotonic")
        e.line("ret void")
        e.label(go_on)

    def _end_if_failed(self) -> None:
        failed = self.inline.failed()
        if failed is not None:
            self._end_if(failed)

    def _end_if_failed_before(self) -> None:
        """Among statuses, negative codes taken as unsigned, those of earlier checks are larger."""
        e = self.e
        checked, status, look, after = e.fresh("c"), e.fresh("s"), e.new_label("look"), e.new_label("after")
        e.line(f"{checked} = icmp ne ptr %status, null")
        e.branch_if(checked, look, after)
        e.label(look)
        e.line(f"{status} = load i32, ptr %status, align 4")
        failed = e.fresh("c")
        e.line(f"{failed} = icmp ugt i32 {status}, {-self.first}")
        self._end_if(failed)
        e.branch(after)
        e.label(after)

    def _end_if(self, condition: str) -> None:
        e = self.e
        end, go_on = e.new_label("end"), e.new_label("go")
        e.branch_if(condition, end, go_on)
        e.label(end)
        e.line("ret void")
        e.label(go_on)

    def _inputs_of(self, graph: Graph, addresses: Sequence[str]) -> list[Val | MemoryPlace]:
        """A graph's inputs from where they lie."""
        return [self._input_of(node, address) for node, address in zip(graph.inputs, addresses)]

    def _input_of(self, node: Node, address: str) -> Val | MemoryPlace:
        """Single elements are loaded; arrays stay where they are."""
        return self.e.load(address, node.dtype, width=1) if _is_single(node) else MemoryPlace(address)

    def _store(self, values: Sequence[Val], numbers: Sequence[int]) -> None:
        for value, number in zip(values, numbers):
            target = self.targets[number]
            if target is not None:
                self.e.store(value, target)

    # ---- callback

    def _call_host(self, how: HostCall) -> None:
        """Call Python.  An error there is noted like a check that fails."""
        code = self.code
        if self.context.module.target.kind == "cuda":
            raise CompileError(
                self.node.op.name, "a GPU cannot call a function in Python. Call it outside of what runs on the GPU.",
                self.node.where,
            )  # fmt: skip
        sizes = [product(type.shape) * type.dtype.itemsize for type in self.types]
        tokens = 1 if is_token(self.types[0]) else 0
        results = [target or self._reserve(size) for target, size in zip(self.targets[tokens:], sizes[tokens:])]
        addresses = [*self.sources[tokens:], *results]
        if how.small:
            self._compute_small(addresses)
        place = self.context.callback(
            self.node, how.function, self.given, retried=how.small, exchange=bool(how.exchange)
        )
        if how.exchange:
            self._raise_if(self._exchange(how.exchange, addresses[0], results[0]), place)
            return
        table, host = self._table(addresses), load_host(code, "%status")
        if how.small:
            failed = self._call_if_there(host, place, table)
        else:
            failed = self._call_python(host, load(code, host, HOST.index("callback"), "ptr"), place, table)
        self._raise_if(failed, place)

    def _raise_if(self, failed: str, place: int) -> None:
        check = Check(
            HybridflowError.__name__, self.node.op.name, "a function in Python has failed.", self.node.where, place
        )
        self.e.raise_if(Val(failed, dt.bool_, 1), check)
        self._end_if(failed)

    def _exchange(self, record: Sequence[int], source: str, target: str) -> str:
        """Exchange an array with other processes; whether that has failed."""
        e = self.e
        text = words_text(record)
        words = f"@record.{hashlib.sha256(text.encode()).hexdigest()[:16]}"
        e.globals[words] = f"{words} = internal constant {text}, align 8"
        e.declare(f"declare i32 @{EXCHANGE}(ptr, ptr, ptr)")
        status, failed = e.fresh("r"), e.fresh("c")
        e.line(f"{status} = call i32 @{EXCHANGE}(ptr {words}, ptr {source}, ptr {target})")
        e.line(f"{failed} = icmp ne i32 {status}, 0")
        return failed

    def _compute_small(self, addresses: Sequence[str]) -> None:
        """Go on only if a result is irregular."""
        e, code, a, y = self.e, self.code, self.given[0], self.given[-1]
        name = batched_small_linalg.write(self.context.module, self.node.op.name, a.dtype)
        sizes = code.product(a.shape[:-2]), code.extent(a.shape[-1]), code.extent(y.shape[-1])
        memory = self._reserve(batched_small_linalg.memory_bytes(self.context.module.target, a.dtype))
        places = ", ".join(f"ptr {address}" for address in (addresses[0], addresses[-2], addresses[-1], memory))
        bad, regular = e.fresh("b"), e.fresh("c")
        e.line(f"{bad} = call i64 @{name}({places}, {', '.join(f'i64 {size}' for size in sizes)})")
        e.line(f"{regular} = icmp eq i64 {bad}, 0")
        self._end_if(regular)

    def _call_python(self, host: str, function: str, place: int, table: str) -> str:
        """Whether the function in Python has failed."""
        status, failed = self.e.fresh("r"), self.e.fresh("c")
        self.e.line(f"{status} = call i32 {function}(ptr {host}, i64 {place}, ptr {table})")
        self.e.line(f"{failed} = icmp ne i32 {status}, 0")
        return failed

    def _call_if_there(self, host: str, place: int, table: str) -> str:
        """The same where there is somebody who calls it; True otherwise."""
        e = self.e
        start, asking, call, asked = e.block, e.new_label("ask"), e.new_label("call"), e.new_label("asked")
        self._branch_unless_null(host, asking, asked)
        e.label(asking)
        function = load(self.code, host, HOST.index("callback"), "ptr")
        self._branch_unless_null(function, call, asked)
        e.label(call)
        failed, result, last = self._call_python(host, function, place, table), e.fresh("c"), e.block
        e.branch(asked)
        e.label(asked)
        e.line(f"{result} = phi i1 [ true, %{start} ], [ true, %{asking} ], [ {failed}, %{last} ]")
        return result

    def _assert(self, how: Assert) -> None:
        e, code = self.e, self.code
        self._end_if(e.load(self.sources[0], dt.bool_, width=1).ref)
        place = None
        if self.context.module.target.kind != "cuda":
            place = self.context.callback(self.node, how.number, self.given[1:], retried=True)
            self._call_if_there(load_host(code, "%status"), place, self._table(self.sources[1:]))
        check = Check(HybridflowError.__name__, "assert", how.message, self.node.where, place)
        e.raise_if(Val("true", dt.bool_, 1), check)

    def _branch_unless_null(self, pointer: str, there: str, null: str) -> None:
        test = self.e.fresh("c")
        self.e.line(f"{test} = icmp ne ptr {pointer}, null")
        self.e.branch_if(test, there, null)

    # ---- cond, call

    def _switch(self, how: Switch) -> None:
        e, first = self.e, self.first
        steps = []
        for branch in how.branches:
            steps.append(self._step(branch, first, self.context.aliases.wanted_pairs(self.node)))
            first += count_checks(branch)
        sources = self.sources if how.fixed else self.sources[1:]
        table = None
        if any(step.function is not None for step in steps):
            targets = [t or self._reserve(byte_size(n)) for t, n in zip(self.targets, how.branches[0].outputs)]
            table = self._table([*sources, *targets])
        self._place_arena()
        if how.fixed:
            self._run(steps[0], sources, table)
            return
        which = e.load(self.sources[0], self.given[0].dtype, width=1)
        after = e.new_label("after")
        for step, enter in zip(steps, self.inline.branches(how, which)):
            enter()
            self._run(step, sources, table)
            e.branch(after)
        e.label(after)

    def _run(self, step: _Step, sources: Sequence[str], table: str | None) -> None:
        if step.function is not None:
            assert table is not None
            self._call(step, table)
            return
        values = self.inline.run(step.graph, self._inputs_of(step.graph, sources), step.first)
        self._barrier()  # a result may lie where an operand did
        self._store(values, range(len(values)))

    def _place_arena(self) -> None:
        """Where the functions have their arenas, and threads of a GPU their scratch memory: behind all else."""
        self.inner_arena = self._reserve(self.arena) if self.arena != 0 else "null"
        if self.cooperative is not None and self.scratch != 0:
            self.inner_scratch = self._reserve(scratch_bytes(self.scratch))

    # ---- sized

    def _dynamic_extent(self, how: DynamicExtent) -> None:
        """Run a function with an extent more, in memory that is taken for it."""
        e, code = self.e, self.code
        function = self.context.function_of(how.body, how.symbol)
        for k, check in enumerate(function.own_checks):
            self.context.note(self.first + 1 + k, check)
        targets = [t or self._reserve(byte_size(n)) for t, n in zip(self.targets, how.body.outputs)]
        table = self._table([*self.sources[1:], *targets])
        count = e.load(self.sources[0], dt.int64, width=1).ref
        extent = str(code.add(code.max(count, 0), 2))
        known = self.context.dim_names
        dims = e.fresh("dims")
        e.line(f"{dims} = alloca [{len(known) + 1} x i64], align 8")
        for k, value in enumerate([*map(code.name, known), extent]):
            e.line(f"store i64 {value}, ptr {code.at(dims, k, 8)}, align 8")
        code.let(how.symbol, extent)
        self.could_ask |= function.sharing is not None
        self.threads = larger(self.threads, function.threads)
        inner = function.memory.scratch if self.cooperative is None else scratch_bytes(function.memory.scratch)
        arena, scratch = (code.extent(aligned(x, ALIGNMENT)) for x in (function.memory.arena, inner))
        workers: Ref = 1
        if self.asks_host:
            workers = load(code, load_host(code, "%status"), HOST.index("workers"))
        size = code.add(code.add(arena, code.mul(scratch, workers)), ALIGNMENT)
        memory = self._allocate(self._unless_beyond(size, larger(function.memory.arena, inner)))
        whole = e.fresh("i")
        e.line(f"{whole} = ptrtoint ptr {memory} to i64")
        skipped = e.fresh("i")
        e.line(f"{skipped} = sub i64 0, {whole}")
        misplaced = e.fresh("i")
        e.line(f"{misplaced} = and i64 {skipped}, {ALIGNMENT - 1}")
        self.inner_arena = code.at(memory, misplaced, 1)
        step = _Step(how.body, self.first + 1, function)
        self._call(step, table, dims, code.at(self.inner_arena, arena, 1), scratch, freed=memory)

    def _unless_beyond(self, size: Ref, extent: Extent) -> Ref:
        """``size``; -1, of which there is no memory, where what is met on the way to ``extent`` is more than 64 bits
        hold."""
        e = self.e
        with self.code.width(1), e.strict():
            beyond = [e.gt(self._rounded(met), _BEYOND) for met in calculated(extent)]
            return self.code.choose(functools.reduce(e.or_, beyond).ref, -1, size)

    def _rounded(self, extent: Extent) -> Val:
        """An extent in float64, which does not wrap."""
        e, code = self.e, self.code
        total = e.const(0.0, dt.float64, 1)
        for factor, names in products_of(extent):
            part = e.const(float(factor), dt.float64, 1)
            for name in names:
                if isinstance(name, str):
                    value = e.convert(code.value(code.name(name)), dt.float64)
                else:
                    value = e.div(self._rounded(dividend(name)), self._rounded(name.divisor))
                part = e.mul(part, value)
            total = e.add(total, part)
        return total

    def _allocate(self, size: Ref) -> str:
        """Memory of the system's; without it the program ends like one with a check that fails."""
        e = self.e
        e.declare("declare ptr @malloc(i64)")
        memory, missing = e.fresh("p"), e.fresh("c")
        if self.cooperative is None:
            e.line(f"{memory} = call ptr @malloc(i64 {size})")
        else:
            place, pointer = self._reserve(8), e.fresh("p")
            with self._by_one():
                e.line(f"{pointer} = call ptr @malloc(i64 {size})")
                e.line(f"store ptr {pointer}, ptr {place}, align 8")
            self._barrier()
            e.line(f"{memory} = load ptr, ptr {place}, align 8")
        e.line(f"{missing} = icmp eq ptr {memory}, null")
        message = "there is no memory for what the iterations of a loop keep for their derivatives."
        e.on_check = self._first_code
        e.raise_if(
            Val(missing, dt.bool_, 1), Check(HybridflowError.__name__, self.node.op.name, message, self.node.where)
        )
        self._end_if(missing)
        return memory

    def _first_code(self, check: Check) -> int:
        self.context.note(self.first, check)
        return self.first

    # ---- loops

    def _while(self, how: While) -> None:
        e, body = self.e, how.body
        cond_step = self._step(how.cond, self.first)
        step = self._step(body, self.first + count_checks(how.cond), self.context.aliases.wanted_pairs(self.node))
        count = len(body.outputs)
        if cond_step.function is None and step.function is None:
            sources = self._inputs_of(body, self.sources)
            carries = [x for x in sources[:count] if isinstance(x, Val)]
            rest = sources[count:]

            def goes_on(now: list[Val]) -> str:
                return self.inline.run(how.cond, [*now, *rest], cond_step.first)[0].ref

            spent = interrupt_checks.cost(how.cond, body, inline=True)
            ended = self.inline.loop(
                carries, goes_on, lambda now: self.inline.run(body, [*now, *rest], step.first), spent
            )
            self._store(ended, range(count))
            return
        tables = self._tables(step, count)
        read = [k for k, node in enumerate(body.inputs) if not is_token(node.type)]  # what the condition is given
        asked: list[str] = []
        if cond_step.function is not None:
            answer = self._reserve(1)
            asked = [self._table([*(inputs[k] for k in read), answer]) for inputs in tables.inputs]
        self._place_arena()

        def more(table: str, cond_table: str) -> str:
            if cond_step.function is not None:
                self._call(cond_step, cond_table)
                return e.load(answer, how.cond.outputs[0].dtype, width=1).ref
            sources = [self._get(table, k) for k in read]
            (value,) = self.inline.run(how.cond, self._inputs_of(how.cond, sources), cond_step.first)
            self._end_if_failed()
            return value.ref

        self._iterations(
            tables, asked, more, lambda table: self._body(step, table), interrupt_checks.cost(how.cond, body)
        )

    def _body(self, step: _Step, table: str) -> None:
        """One iteration: from the addresses of a table to those behind them."""
        if step.function is not None:
            self._call(step, table)
            return
        inputs = len(step.graph.inputs)
        sources = self._inputs_of(step.graph, [self._get(table, k) for k in range(inputs)])
        values = self.inline.run(step.graph, sources, step.first)
        self._barrier()
        failed = self.inline.failed()  # before anybody can fail anew: all threads of a GPU have one answer
        for k, value in enumerate(values):
            self.e.store(value, self._get(table, inputs + k))
        self._barrier()
        if failed is not None:
            self._end_if(failed)

    def _tables(self, step: _Step, count: int) -> _Tables:
        """The tables of a loop with ``count`` carries, whose other entries are those of the operands and results."""
        carried = step.graph.outputs[:count]
        here = [target or self._reserve(byte_size(n)) for target, n in zip(self.targets, carried)]
        stays = [step.function is not None and step.function.overwrites.get(k) == k for k in range(count)]
        there = [here[k] if stays[k] else self._reserve(byte_size(n)) for k, n in enumerate(carried)]
        rest = self.sources[count:]
        stacked = ["null"] * (len(step.graph.outputs) - count)
        inputs = [[*self.sources[:count], *rest], [*here, *rest], [*there, *rest]]
        outputs = [[*here, *stacked], [*there, *stacked], [*here, *stacked]]
        tables = [self._table([*i, *o]) for i, o in zip(inputs, outputs)]
        return _Tables(tables, inputs, here, stays, count)

    def _iterations(
        self,
        tables: _Tables,
        asked: list[str],
        more: Callable[[str, str], str],
        iteration: Callable[[str], None],
        spent: Extent | None,
    ) -> None:
        """Iterations that cost ``spent`` each, None where nothing is looked for behind them.

        The first iteration reads the operands; then two tables take turns.  At the end the carries lie where the table
        of the iteration that did not come has its inputs."""
        e = self.e
        head, body, done = (e.new_label(hint) for hint in ("head", "body", "done"))
        cost = None if self.watch is None or spent is None else self.code.extent(spent)
        before, latch = e.block, e.new_label("latch")
        start, one, two = tables.tables
        table, following = e.fresh("t"), e.fresh("t")
        e.branch(head)
        e.label(head)
        e.line(f"{table} = phi ptr [ {start}, %{before} ], [ {following}, %{latch} ]")
        cond_table = ""
        if asked:
            cond_table, cond_following = e.fresh("t"), e.fresh("t")
            e.line(f"{cond_table} = phi ptr [ {asked[0]}, %{before} ], [ {cond_following}, %{latch} ]")
        e.branch_if(more(table, cond_table), body, done)
        e.label(body)
        iteration(table)
        if self.watch is not None and cost is not None:
            self.watch.poll(cost)
        e.branch(latch)
        e.label(latch)
        at_one = e.fresh("c")
        e.line(f"{at_one} = icmp eq ptr {table}, {one}")
        e.line(f"{following} = select i1 {at_one}, ptr {two}, ptr {one}")
        if asked:
            e.line(f"{cond_following} = select i1 {at_one}, ptr {asked[2]}, ptr {asked[1]}")
        e.branch(head)
        e.label(done)
        elsewhere, move, placed = e.fresh("c"), e.new_label("move"), e.new_label("placed")
        e.line(f"{elsewhere} = icmp ne ptr {table}, {one}")
        e.branch_if(elsewhere, move, placed)
        e.label(move)
        for k in range(tables.carries):
            if self.targets[k] is not None:
                source = self._get(table, k)
                with self.code.when(self.code.pointers_differ(source, tables.here[k]) if tables.stays[k] else True):
                    self._copy(tables.here[k], source, self._bytes(k))
        e.branch(placed)
        e.label(placed)

    # ---- scan

    def _scan(self, how: Scan) -> None:
        code, count = self.code, how.carries
        step = self._step(how.body, self.first, self.context.aliases.wanted_pairs(self.node))
        length = code.extent(how.length)
        is_long = interrupt_checks.is_long(how)
        slices = range(count, count + how.stacked)
        stacked = range(count, len(self.types))

        def slice_of(pointer: str, shape: Shape, itemsize: int, position: Ref) -> str:
            return code.at(pointer, code.mul(position, code.extent(product(shape))), itemsize)

        def source(k: int, position: Ref) -> str:
            node = how.body.inputs[k]
            return slice_of(self.sources[k], node.shape, node.dtype.itemsize, position)

        if step.function is None and all(map(_is_single, how.body.outputs[:count])):
            sources = [
                None if k in slices else self._input_of(node, address)
                for k, (node, address) in enumerate(zip(how.body.inputs, self.sources))
            ]
            carries = [x for x in sources[:count] if isinstance(x, Val)]
            rest = [x for x in sources[count + how.stacked :] if x is not None]

            def iteration(now: list[Val], position: Ref) -> list[Val]:
                inputs = [self._input_of(how.body.inputs[k], source(k, position)) for k in slices]
                values = self.inline.run(how.body, [*now, *inputs, *rest], step.first)
                for k in stacked:
                    pointer = self.targets[k]
                    if pointer is not None:
                        self.e.store(values[k], code.at(pointer, position, values[k].dtype.itemsize))
                return values[:count]

            spent = interrupt_checks.cost(how.body, inline=True) if is_long else None
            self._store(self.inline.scan(length, how.reverse, carries, iteration, spent), range(count))
            return
        tables = self._tables(step, count)
        unread = [self.targets[k] or self._reserve(byte_size(how.body.outputs[k])) for k in stacked]
        counter = self._reserve(8) if self.cooperative is None else self._own_word()
        self.e.store(code.value(0), counter)
        self._place_arena()

        def more(table: str, _: str) -> str:
            return str(code.compare("slt", self._load_counter(counter), length))

        def scan_step(table: str) -> None:
            turn_number = self._load_counter(counter)
            position = code.sub(code.sub(length, 1), turn_number) if how.reverse else turn_number
            for k in slices:
                self._set(table, k, source(k, position))
            for k, pointer in zip(stacked, unread):
                node = how.body.outputs[k]
                if self.targets[k] is not None:
                    pointer = slice_of(pointer, node.shape, node.dtype.itemsize, position)
                self._set(table, len(how.body.inputs) + k, pointer)
            self._body(step, table)
            self.e.store(code.value(code.add(self._load_counter(counter), 1)), counter)

        self._iterations(tables, [], more, scan_step, interrupt_checks.cost(how.body) if is_long else None)

    def _own_word(self) -> str:
        """A word of the thread."""
        word = self.e.fresh("word")
        self.e.line(f"{word} = alloca i64, align 8")
        return word

    def _load_counter(self, counter: str) -> str:
        value = self.e.fresh("i")
        self.e.line(f"{value} = load i64, ptr {counter}, align 8")
        return value


# The registry of lowerings that run graphs, or call the host; see ``codegen/lowerings.py`` for the others.
_WRITERS: dict[type, Callable[[_Control, Any], None]] = {
    Switch: _Control._switch,
    While: _Control._while,
    Scan: _Control._scan,
    DynamicExtent: _Control._dynamic_extent,
    HostCall: _Control._call_host,
    Assert: _Control._assert,
}


class _Tables(NamedTuple):
    """Tables of addresses, inputs before outputs: of the first iteration, which reads the operands, and of those that
    come after an iteration that wrote ``here``, or elsewhere: carries that stay have one memory for all iterations."""

    tables: list[str]
    inputs: list[list[str]]
    here: list[str]
    stays: list[bool]
    carries: int


def _is_single(node: Node) -> bool:
    return node.type.is_static and node.type.size == 1 and not is_token(node.type)
