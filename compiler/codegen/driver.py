"""The driver of a CPU program: one native function that walks the kernels over the planned buffers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hybridflow.compiler.codegen.emitter import Emitter
from hybridflow.compiler.codegen.module import ModuleText
from hybridflow.compiler.codegen.structured import Code, Ref, SpecialKernel
from hybridflow.compiler.ir.graph import Graph, Node
from hybridflow.compiler.ir.types import Dim, Extent
from hybridflow.compiler.loops.buffers import ArenaRange, Copy, InputBuffer, Location, Plan, UpdateBuffer, add, aligned
from hybridflow.compiler.loops.kernel import base
from hybridflow.compiler.program import Size

ENTRY = "hf_main"


class KernelCall(NamedTuple):
    """An emitted kernel: ``operands`` are the nodes whose buffers it takes, ``first_check`` the least code of its
    checks, None where it has none."""

    symbol: str
    shape: SpecialKernel
    operands: list[Node]
    first_check: int | None

    @property
    def raises(self) -> bool:
        return self.first_check is not None

    @property
    def units(self) -> tuple[Extent, ...]:
        return tuple(Dim(n) if isinstance(n, str) else n for n in self.shape.units)


def earliest_check(calls: Sequence[KernelCall]) -> int | None:
    """The least code of what ``calls`` can find failed.  While it is less than that of a check that has failed, they
    have to run: the error to report is that of the first check in program order."""
    return min((call.first_check for call in calls if call.first_check is not None), default=None)


def size_ref(code: Code, size: Size) -> Ref:
    """A byte count as an operand."""
    total: Ref = 0
    for factor, names in size.terms:
        part: Ref = factor
        for name in names:
            part = code.mul(part, code.extent(Dim(name)))
        total = code.add(total, part)
    return total


def write(module: ModuleText, graph: Graph, plan: Plan, dim_names: Sequence[str], calls: Sequence[KernelCall]) -> Size:
    """Write the entry; returns the arena's size, scratch of the kernels included."""
    e = Emitter(module.target, 1)
    code = Code(e, dim_names, [Dim(name) for name in dim_names])

    updates = {i: k for k, i in enumerate(sorted(graph.updates))}

    def pointer(place: Location) -> str:
        """An address, found anew for each use: a program has more of them than registers to keep them in."""
        if isinstance(place, ArenaRange):
            return code.at("%arena", size_ref(code, place.offset), 1)
        if isinstance(place, UpdateBuffer):
            slot = len(graph.inputs) + len(graph.outputs) + updates[place.number]
        else:
            slot = place.number + (0 if isinstance(place, InputBuffer) else len(graph.inputs))
        address = e.fresh("b")
        e.line(f"{address} = load ptr, ptr {code.at('%buffers', slot, 8)}, align 8")
        return address

    def copy(item: Copy) -> None:
        e.declares.add("declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)")  # an update may lie over its input
        target, source, size = pointer(item.target), pointer(item.source), size_ref(code, item.size)
        e.line(f"call void @llvm.memmove.p0.p0.i64(ptr {target}, ptr {source}, i64 {size}, i1 false)")

    status = e.fresh("status")
    if any(call.raises for call in calls):
        e.line(f"{status} = alloca i32, align 4")
        e.line(f"store i32 0, ptr {status}, align 4")
    else:
        status = "null"
    for item in plan.before:
        copy(item)
    most = Size(())
    for call in calls:
        most = _larger(most, aligned(call.shape.scratch))
    scratch = code.at("%arena", size_ref(code, plan.arena), 1) if most.terms else "null"
    for k, call in enumerate(calls):
        arguments = [f"ptr {pointer(plan.locations[base(n)])}" for n in call.operands]
        units = code.product(call.units)
        tail = f"ptr {scratch}, ptr %dims, ptr {status}, i64 0, i64 {units}"
        e.line(f"call void @{call.symbol}({', '.join([*arguments, tail])})")
        if call.raises:
            _return_if_failed(e, status, earliest_check(calls[k + 1 :]))
    for item in plan.after:
        copy(item)
    e.line("ret i32 0")
    module.function(e, ENTRY, "ptr %buffers, ptr %dims, ptr %arena", result="i32")
    return add(plan.arena, most)


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


def _larger(a: Size, b: Size) -> Size:
    """At least the larger of two sizes, whatever the extents."""
    terms: dict[tuple[str, ...], int] = {}
    for size in (a, b):
        for factor, names in add(size, Size(())).terms:  # one term for each product of symbols
            terms[names] = max(terms.get(names, 0), factor)
    return Size(tuple((factor, names) for names, factor in sorted(terms.items()) if factor))
