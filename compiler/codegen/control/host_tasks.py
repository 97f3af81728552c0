"""Phases as tasks of a host: functions of one type, which find their arguments in memory.

A host runs ``void task(ptr args, i64 begin, i64 end, i64 worker)`` on the pieces that it cuts (see ``program``).  The
words of ``args`` are the address of what all tasks of a run share (``COMMON``), the phase, the kernel's shared memory,
and the buffers of the phase.  All phases over as many buffers have one task.
"""

from __future__ import annotations

from collections.abc import Sequence

from hybridflow.compiler.codegen.core.emitter import Emitter
from hybridflow.compiler.codegen.core.kernel_builder import KernelBuilder, Ref
from hybridflow.compiler.codegen.core.llvm_module import LLVMModule
from hybridflow.compiler.codegen.core.phases import kernel_arguments
from hybridflow.compiler.program import HOST, LEAST_SHARED

# "scratch" is that of worker 0, "stride" the bytes from one worker's to the next one's.
COMMON = ("scratch", "stride", "dims", "status")
PHASE = 1  # the word of ``args`` that has the phase
FIRST_PLACE = 2  # the word of ``args`` from which on places stand: shared memory, then buffers
PARAMETERS = "ptr %args, i64 %begin, i64 %end, i64 %worker"

WAVE_TASK = "hf_wave"
WAVE_WORDS = ("task", "args", "units", "piece", "end")  # of each task in a wave; "end" is where its pieces end
PIECES = 64  # of a task in a wave, at the most
WORK_OF_PIECE = LEAST_SHARED // 2  # ... at the least


def load(code: KernelBuilder, base: str, position: Ref, kind: str = "i64") -> str:
    """The word at ``position`` after ``base``."""
    value = code.e.fresh("w")
    code.e.line(f"{value} = load {kind}, ptr {code.at(base, position, 8)}, align 8")
    return value


def store(code: KernelBuilder, word: str, base: str, position: Ref) -> None:
    """``word`` is an operand with its type."""
    code.e.line(f"store {word}, ptr {code.at(base, position, 8)}, align 8")


def write_task(module: LLVMModule, buffers: int, for_host: bool = False) -> str:
    """Add the task that runs phases over ``buffers`` buffers; its name.  ``for_host`` as ``LLVMModule.function``."""
    e = Emitter(module.target, 1)
    code = KernelBuilder(e)
    common, phase = load(code, "%args", 0, "ptr"), load(code, "%args", PHASE, "ptr")
    shared, *arguments = (load(code, "%args", FIRST_PLACE + k, "ptr") for k in range(1 + buffers))
    first, stride, dims, status = (
        load(code, common, k, "i64" if word == "stride" else "ptr") for k, word in enumerate(COMMON)
    )
    scratch = code.at(first, code.mul("%worker", stride), 1)
    e.line(f"call void {phase}({kernel_arguments(arguments, shared, scratch, dims, status, '%begin', '%end')})")
    e.line("ret void")
    return module.function(e, f"hf_task{buffers}", PARAMETERS, linkage="internal", for_host=for_host)


def write_wave_task(module: LLVMModule, for_host: bool = False) -> str:
    """Add the task that runs pieces of several tasks, which are in memory at ``args`` as ``WAVE_WORDS`` says."""
    e = Emitter(module.target, 1)
    code = KernelBuilder(e)
    with code.loop("%begin", "%end") as piece:
        # Pieces are counted through all tasks.  Few share a wave, so the one that a piece is of is looked for.
        entry, start = _entry_of(code, piece.index)
        task, args = (load(code, entry, WAVE_WORDS.index(word), "ptr") for word in ("task", "args"))
        units, size = (load(code, entry, WAVE_WORDS.index(word)) for word in ("units", "piece"))
        first = code.mul(code.sub(piece.index, start), size)
        last = code.min(code.add(first, size), units)
        e.line(f"call void {task}(ptr {args}, i64 {first}, i64 {last}, i64 %worker)")
    e.line("ret void")
    return module.function(e, WAVE_TASK, PARAMETERS, linkage="internal", for_host=for_host)


def _entry_of(code: KernelBuilder, piece: Ref) -> tuple[str, Ref]:
    """The address of the task in a wave that a piece is of, and the number of that task's first piece."""
    e = code.e
    before, head, more, is_here = e.block, e.new_label("search"), e.new_label("more"), e.new_label("found")
    entry, start, following = e.fresh("p"), e.fresh("i"), e.fresh("p")
    e.branch(head)
    e.label(head)
    e.line(f"{entry} = phi ptr [ %args, %{before} ], [ {following}, %{more} ]")
    e.line(f"{start} = phi i64 [ 0, %{before} ], [ {start}.end, %{more} ]")
    end = code.at(entry, WAVE_WORDS.index("end"), 8)
    e.line(f"{start}.end = load i64, ptr {end}, align 8")
    beyond = code.compare("sge", piece, f"{start}.end")
    e.branch_if(str(beyond), more, is_here)
    e.label(more)
    e.line(f"{following} = getelementptr i64, ptr {entry}, i64 {len(WAVE_WORDS)}")
    e.branch(head)
    e.label(is_here)
    return entry, start


def parallel_for(
    code: KernelBuilder, host: str, task: str, args: str, units: Ref, grain: Ref, least: Ref, work: Ref
) -> None:
    """Have the host run a task over ``units`` units, which are so much ``work`` together."""
    function = load(code, host, HOST.index("parallel_for"), "ptr")
    code.e.line(
        f"call void {function}(ptr {host}, ptr {task}, ptr {args}, i64 {units}, i64 {grain}, i64 {least}, i64 {work})"
    )


def store_host(code: KernelBuilder, host: str, status: str, stride: Ref | None = None) -> None:
    """Where kernels call the host, its address lies behind the status; where they share out work, behind it the bytes
    from the scratch memory of one worker to that of the next one."""
    store(code, f"ptr {host}", status, 1)
    if stride is not None:
        store(code, f"i64 {stride}", status, 2)


def load_host(code: KernelBuilder, status: str) -> str:
    return load(code, status, 1, "ptr")


def load_stride(code: KernelBuilder, status: str) -> str:
    return load(code, status, 2)


def words_text(words: Sequence[int]) -> str:
    """Numbers as a constant array of i64."""
    return f"[{len(words)} x i64] [{', '.join([f'i64 {word}' for word in words])}]"
