"""CUDA programs: an entry point per kernel, and the launches and copies that the runtime performs.

A kernel is the function that a CPU runs over a range of units.  Its entry point deals single units out to threads, or
to teams of them, so that what a unit computes, and in which order, is the same on both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hybridflow.compiler.codegen.control.dispatch import (
    KernelCall,
    Memory,
    earliest_checks,
    limit_before,
    shared_memory_offsets,
)
from hybridflow.compiler.codegen.core.emitter import Emitter
from hybridflow.compiler.codegen.core.kernel_builder import KernelBuilder
from hybridflow.compiler.codegen.core.llvm_module import LLVMModule
from hybridflow.compiler.codegen.core.phases import Phase, kernel_arguments
from hybridflow.compiler.codegen.gpu.thread_group import number_and_count
from hybridflow.compiler.ir.extents import aligned
from hybridflow.compiler.ir.graph import Graph
from hybridflow.compiler.ir.types import product
from hybridflow.compiler.loops.buffer_assignment import (
    ALIGNMENT,
    ArenaRange,
    BufferLocation,
    Copy,
    InputBuffer,
    Plan,
    UpdateBuffer,
)
from hybridflow.compiler.loops.kernel import base
from hybridflow.compiler.loops.tuning import WARP
from hybridflow.compiler.program import SET_WORDS, WORDS_AT_ONCE, Buffer, DeviceCopy, Launch, LibraryCall

BLOCK = 128  # threads of a block, unless it is a single team
DIRECT = 3  # launches of a program whose arguments come by value: writing them first, and a graph, would take longer
BY_VALUE = 512  # words that come so at the most: CUDA's manual


def write_launches(
    module: LLVMModule, graph: Graph, plan: Plan, dim_names: Sequence[str], calls: Sequence[KernelCall]
) -> tuple[Memory, dict[str, Any]]:
    """Write the entry points; returns the memory and the launches of a CUDA program, whose threads bring scratch memory
    of their own."""
    places, memory = shared_memory_offsets(plan, calls)
    phases = [(call, shared, phase) for call, shared in zip(calls, places) for phase in call.code.phases]
    checks = [call.checks_in(phase) for call, _, phase in phases]
    checked = any(code is not None for code in checks)
    indirect = len(phases) > DIRECT or any(sum(map(len, _word_names(call, dim_names))) > BY_VALUE for call in calls)
    if indirect:
        _write_set_words(module)
    launches = []
    updates = {i: k for k, i in enumerate(sorted(graph.updates))}

    def buffer(place: BufferLocation) -> Buffer:
        if isinstance(place, ArenaRange):
            return Buffer("arena", offset=place.offset)
        if isinstance(place, UpdateBuffer):
            return Buffer("update", updates[place.number])
        return Buffer("input" if isinstance(place, InputBuffer) else "output", place.number)

    def device_copy(copy: Copy) -> DeviceCopy:
        return DeviceCopy(buffer(copy.source), buffer(copy.target), copy.size)

    def library_call(call: KernelCall) -> LibraryCall | None:
        if call.product is None or not module.target.library:
            return None
        library_product = call.product.call(call.number, lambda node: buffer(plan.locations[base(node)]))
        return (
            library_product if library_product.result.buffer.kind in ("arena", "output") else None
        )  # it runs where a check has failed

    for (call, shared, phase), earliest in zip(phases, earliest_checks(checks)):
        launches.append(
            Launch(
                _write_entry_point(module, dim_names, call, phase, checked, earliest, indirect),
                (
                    *(buffer(plan.locations[base(n)]) for n, _ in call.operands),
                    Buffer("arena", offset=shared.offset),
                ),
                phase.useful_threads if phase.cooperative else product(phase.units),
                aligned(call.code.scratch, ALIGNMENT),
                call.checks_in(phase) is not None,
                _block(phase),
                phase.group_size,
                call.wave,
                call.number,
                phase.cooperative,
                phase.dynamic_shared_bytes,
            )
        )
    return memory._replace(scratch=0), {
        "indirect": indirect,
        "launches": tuple(launches),
        "library_calls": tuple(
            library_product for library_product in map(library_call, calls) if library_product is not None
        ),
        "before": tuple(map(device_copy, plan.before)),
        "after": tuple(map(device_copy, plan.after)),
    }


def _write_entry_point(
    module: LLVMModule,
    dim_names: Sequence[str],
    call: KernelCall,
    phase: Phase,
    checked: bool,
    earliest: int | None,
    indirect: bool,
) -> str:
    """Add what launches a phase; its name.

    ``checked``: some kernel of the program raises, so whether an earlier one has failed must be looked up.
    ``earliest`` is the first check that this phase, or one after it, could find failed.
    """
    e = Emitter(module.target, 1)
    pointers, numbers = _word_names(call, dim_names)
    _read_words(e, pointers, numbers)
    dims = _store_dims(e, len(dim_names))
    if checked:
        _return_if_failed(e, call.checks_in(phase) is not None, earliest)
    code = KernelBuilder(e, dim_names)
    if phase.cooperative:
        arguments = kernel_arguments(pointers[: len(call.operands)], "%shared", "%scratches", dims, "%status", 0, 1)
        e.line(f"call void @{phase.symbol}({arguments})")
    else:
        _deal_units(code, call, phase, pointers, dims)
    e.line("ret void")
    passed = "" if indirect else f" byval([{len(pointers) + len(numbers)} x i64]) align 8"
    most = f'"nvvm.maxntid"="{_block(phase)}"'
    if phase.threads:
        most += f' "nvvm.minctasm"="{phase.threads // _block(phase)}"'
    name = f"{phase.symbol}_launch"
    return module.function(e, name, f"ptr{passed} %words", linkage="ptx_kernel", attributes=most)


def _deal_units(code: KernelBuilder, call: KernelCall, phase: Phase, pointers: Sequence[str], dims: str) -> None:
    """Run the units of this thread's team."""
    first, threads = number_and_count(code, phase.group_size)
    scratch = code.at("%scratches", code.mul(first, code.extent(aligned(call.code.scratch, ALIGNMENT))), 1)
    with code.loop(first, "%units", threads) as unit:
        end = code.add(unit.index, 1)
        arguments = kernel_arguments(
            pointers[: len(call.operands)], "%shared", scratch, dims, "%status", unit.index, end
        )
        code.e.line(f"call void @{phase.symbol}({arguments})")


def _word_names(call: KernelCall, dim_names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Names for the words of a launch: pointers, those of the buffers first, and numbers."""
    pointers = [*(f"%a{i}" for i in range(len(call.operands))), "%shared", "%scratches", "%failed", "%status"]
    return pointers, ["%units", *(f"%dim{k}" for k in range(len(dim_names)))]


def _read_words(e: Emitter, pointers: Sequence[str], numbers: Sequence[str]) -> None:
    """Give names to the words of a launch."""
    for k, name in enumerate((*pointers, *numbers)):
        place = e.fresh("w")
        e.line(f"{place} = getelementptr i64, ptr %words, i64 {k}")
        if name in numbers:
            e.line(f"{name} = load i64, ptr {place}, align 8")
            continue
        address = e.fresh("g")
        e.line(f"{address} = load ptr addrspace(1), ptr {place}, align 8")
        e.line(f"{name} = addrspacecast ptr addrspace(1) {address} to ptr")


def _write_set_words(module: LLVMModule) -> None:
    """Add the entry point ``SET_WORDS``."""
    e = Emitter(module.target, 1)
    for k in range(0, WORDS_AT_ONCE, 2):
        source, target, value = e.fresh("p"), e.fresh("p"), e.fresh("v")
        e.line(f"{source} = getelementptr i64, ptr %given, i64 {k}")
        e.line(f"{target} = getelementptr i64, ptr %words, i64 {k}")
        e.line(f"{value} = load <2 x i64>, ptr {source}, align 16")
        e.line(f"store <2 x i64> {value}, ptr {target}, align 16")
    e.line("ret void")
    words = f"ptr byval([{WORDS_AT_ONCE} x i64]) align 16 %given"
    module.function(e, SET_WORDS, f"ptr %words, {words}", linkage="ptx_kernel", attributes='"nvvm.maxntid"="1"')


def _block(phase: Phase) -> int:
    """The threads of a block, at the most.  A team of several warps is one."""
    return phase.group_size if phase.group_size > WARP else BLOCK


def _store_dims(e: Emitter, count: int) -> str:
    """The extents, which come by value, as the array that kernels read; its address."""
    if not count:
        return "null"
    e.line(f"%dims = alloca [{count} x i64], align 8")
    for k in range(count):
        address = e.fresh("p")
        e.line(f"{address} = getelementptr i64, ptr %dims, i64 {k}")
        e.line(f"store i64 %dim{k}, ptr {address}, align 8")
    return "%dims"


def _return_if_failed(e: Emitter, raises: bool, first: int | None) -> None:
    """Hand the status of the launches before on, and do nothing else if it is that of an earlier check."""
    value = e.fresh("s")
    e.line(f"{value} = load i32, ptr %failed, align 4")
    if raises:
        e.line(f"{e.fresh()} = atomicrmw umax ptr %status, i32 {value} monotonic")
    stop, go_on = e.new_label("stop"), e.new_label("run")
    failed = e.fresh("c")
    e.line(f"{failed} = icmp ugt i32 {value}, {limit_before(first)}")
    e.branch_if(failed, stop, go_on)
    e.label(stop)
    e.line("ret void")
    e.label(go_on)
