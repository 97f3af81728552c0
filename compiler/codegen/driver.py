"""The driver of a CPU program: one native function that walks the kernels over the planned buffers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hybridflow.compiler.codegen.emitter import Emitter
from hybridflow.compiler.codegen.module import ModuleText
from hybridflow.compiler.codegen.phases import KernelCode, kernel_arguments
from hybridflow.compiler.codegen.structured import Code
from hybridflow.compiler.codegen.tasks import WORDS, parallel_for, store_words, write_task
from hybridflow.compiler.ir.extents import Dim, Extent, aligned, larger
from hybridflow.compiler.ir.graph import Graph, Node
from hybridflow.compiler.loops.buffers import ALIGNMENT, ArenaRange, Copy, InputBuffer, Location, Plan, UpdateBuffer
from hybridflow.compiler.loops.kernel import base

ENTRY = "hf_main"


class KernelCall(NamedTuple):
    """An emitted kernel: ``operands`` are the nodes whose buffers it takes, ``first_check`` the least code of its
    checks, None where it has none."""

    code: KernelCode
    operands: list[Node]
    first_check: int | None

    @property
    def raises(self) -> bool:
        return self.first_check is not None


class Memory(NamedTuple):
    """What a program needs besides its buffers: ``arena`` bytes, and behind them ``scratch`` bytes for each worker."""

    arena: Extent
    scratch: Extent


def earliest_check(calls: Sequence[KernelCall]) -> int | None:
    """The least code of what ``calls`` can find failed.  While it is less than that of a check that has failed, they
    have to run: the error to report is that of the first check in program order."""
    return min((call.first_check for call in calls if call.first_check is not None), default=None)


def memory_of(plan: Plan, calls: Sequence[KernelCall]) -> Memory:
    """The memory of a program: what kernels share lies behind the planned arena, and is any kernel's in turn."""
    shared: Extent = 0
    scratch: Extent = 0
    for call in calls:
        shared = larger(shared, aligned(call.code.shared, ALIGNMENT))
        scratch = larger(scratch, aligned(call.code.scratch, ALIGNMENT))
    return Memory(aligned(plan.arena, ALIGNMENT) + shared, scratch)


def write(
    module: ModuleText,
    name: str,
    graph: Graph,
    plan: Plan,
    dim_names: Sequence[str],
    calls: Sequence[KernelCall],
    inner: bool = False,
) -> Memory:
    """Write the function ``name`` that runs a program: the entry (see ``program``), or one for a sub-graph that the
    driver of another graph calls.  An ``inner`` one takes the scratch memory of all workers, which its caller shares
    out, as a fifth argument."""
    _Driver(module, graph, plan, dim_names, calls, inner).write(name)
    return memory_of(plan, calls)


class _Driver:
    def __init__(
        self,
        module: ModuleText,
        graph: Graph,
        plan: Plan,
        dim_names: Sequence[str],
        calls: Sequence[KernelCall],
        inner: bool,
    ) -> None:
        self.module, self.graph, self.plan, self.calls, self.inner = module, graph, plan, calls, inner
        self.e = Emitter(module.target, 1)
        self.code = Code(self.e, dim_names, [Dim(name) for name in dim_names])
        self.updates = {i: k for k, i in enumerate(sorted(graph.updates))}
        self.memory = memory_of(plan, calls)

    def write(self, name: str) -> None:
        e = self.e
        self._prepare()
        for item in self.plan.before:
            self._copy(item)
        for k, call in enumerate(self.calls):
            self._run(call)
            if call.raises:
                _return_if_failed(e, self.status, earliest_check(self.calls[k + 1 :]))
        for item in self.plan.after:
            self._copy(item)
        e.line("ret i32 0")
        scratch = ", ptr %scratch" if self.inner else ""
        self.module.function(e, name, f"ptr %buffers, ptr %dims, ptr %arena, ptr %host{scratch}", result="i32")

    def _prepare(self) -> None:
        """What all kernels share."""
        e, code = self.e, self.code
        words = max((len(call.operands) for call in self.calls), default=0) + len(WORDS)
        e.line(f"%args = alloca [{words} x i64], align 8")
        self.status = "null"
        if any(call.raises for call in self.calls):
            self.status = e.fresh("status")
            e.line(f"{self.status} = alloca i32, align 4")
            e.line(f"store i32 0, ptr {self.status}, align 4")
        self.shared = self.scratch = "null"
        if any(call.code.shared != 0 for call in self.calls):
            self.shared = code.at("%arena", code.extent(aligned(self.plan.arena, ALIGNMENT)), 1)
        if self.memory.scratch != 0:
            end = code.extent(self.memory.arena)
            self.scratch = "%scratch" if self.inner else code.at("%arena", end, 1)
        self.stride = code.extent(self.memory.scratch)
        self.hosted = e.fresh("hosted")
        e.line(f"{self.hosted} = icmp ne ptr %host, null")

    def _run(self, call: KernelCall) -> None:
        """The phases of a kernel: shared out by the host, or in place where there is none."""
        e = self.e
        alone, together, after = e.new_label("alone"), e.new_label("together"), e.new_label("after")
        e.branch_if(self.hosted, together, alone)
        e.label(alone)
        buffers = self._buffers(call)
        for phase in call.code.phases:
            units = self.code.product(phase.units)
            given = kernel_arguments(buffers, self.shared, self.scratch, "%dims", self.status, 0, units)
            e.line(f"call void @{phase.symbol}({given})")
        e.branch(after)
        e.label(together)
        words = [f"ptr {self.shared}", f"ptr {self.scratch}", f"i64 {self.stride}", "ptr %dims", f"ptr {self.status}"]
        store_words(self.code, [*words, *(f"ptr {b}" for b in self._buffers(call))], "%args")
        for phase in call.code.phases:
            task = write_task(self.module, phase.symbol, len(call.operands))
            parallel_for(self.code, "%host", task, "%args", self.code.product(phase.units), phase.grain)
        e.branch(after)
        e.label(after)

    def _buffers(self, call: KernelCall) -> list[str]:
        return [self._pointer(self.plan.locations[base(n)]) for n in call.operands]

    def _pointer(self, place: Location) -> str:
        """An address, found anew for each use: a program has more of them than registers to keep them in."""
        e, code = self.e, self.code
        if isinstance(place, ArenaRange):
            return code.at("%arena", code.extent(place.offset), 1)
        inputs, outputs = len(self.graph.inputs), len(self.graph.outputs)
        if isinstance(place, UpdateBuffer):
            slot = inputs + outputs + self.updates[place.number]
        else:
            slot = place.number + (0 if isinstance(place, InputBuffer) else inputs)
        address = e.fresh("b")
        e.line(f"{address} = load ptr, ptr {code.at('%buffers', slot, 8)}, align 8")
        return address

    def _copy(self, item: Copy) -> None:
        e = self.e
        e.declares.add("declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)")  # an update may lie over its input
        target, source = self._pointer(item.target), self._pointer(item.source)
        size = self.code.extent(item.size)
        e.line(f"call void @llvm.memmove.p0.p0.i64(ptr {target}, ptr {source}, i64 {size}, i1 false)")


def _return_if_failed(e: Emitter, status: str, later: int | None) -> None:
    """Stop when a check has failed that is earlier than all of the kernels to come, whose first one is ``later``."""
    value = e.fresh("s")
    e.line(f"{value} = load i32, ptr {status}, align 4")
    stop, go_on = e.new_label("stop"), e.new_label("next")
    e.branch_if(failed_before(e, value, later), stop, go_on)
    e.label(stop)
    code = e.fresh("s")
    e.line(f"{code} = sub i32 0, {value}")  # checks are recorded as negative codes, see Emitter.raise_if
    e.line(f"ret i32 {code}")
    e.label(go_on)


def failed_before(e: Emitter, status: str, later: int | None) -> str:
    """Whether a status tells of a failed check whose code is less than ``later``."""
    failed = e.fresh("c")
    if later is None:
        e.line(f"{failed} = icmp ne i32 {status}, 0")
    else:  # among negative numbers taken as unsigned the largest is the smallest code, and 0 is below them all
        e.line(f"{failed} = icmp ugt i32 {status}, {-later}")
    return failed
