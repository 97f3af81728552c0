"""PTX: what LLVM makes of a CUDA program, and what the driver (or ptxas) turns into machine code of a GPU."""

from __future__ import annotations

import re

from hybridflow.compiler.program import Program
from hybridflow.errors import CompileError
from hybridflow.runtime import uninterruptible
from hybridflow.runtime.machine import disk_cache, machine_code

_EXTERNAL = re.compile(r"^\s*\.extern\s+\.func.*?([\w$.]+)\s*\(?$", re.MULTILINE)
_EVERYWHERE = frozenset({"free", "malloc"})  # what each GPU has, over a heap of its own


def assemble(program: Program) -> str:
    """The PTX of a CUDA program.

    The IR passes run here, unlike for a CPU: entry points and kernels become one function, and arrays of a thread
    registers.  It is taken from disk where this machine has made it before.  Raises CompileError where the code calls
    a function, or uses an instruction, that the GPU does not have.
    """
    return uninterruptible.run_uninterruptible(lambda: _assembled(program))


def _assembled(program: Program) -> str:
    key = f"ptx\n{machine_code.object_key(program.text, program.target)}"
    kept = disk_cache.get(key)
    if kept is not None:
        return kept.decode()
    _check_intrinsics(program)
    text = machine_code.compile_assembly(program.text, program.target, use="device")
    missing = [name for name in _EXTERNAL.findall(text) if name not in _EVERYWHERE]
    if missing:
        raise CompileError(program.name, f"the GPU code calls {', '.join(missing)}, which no GPU library provides.")
    disk_cache.put(key, text.encode())
    return text


# By name behind "llvm.nvvm.": the least compute capability and the least version of PTX, as 90 for 9.0.
LEAST_OF_INTRINSICS = {
    **{f"read.ptx.sreg.{name}.{axis}": (20, 20) for name in ("tid", "ntid", "ctaid", "nctaid") for axis in "xyz"},
    "barrier.cta.sync.aligned.all": (20, 60),
    "barrier.cta.sync.all": (30, 60),
    "nanosleep": (70, 63),
    "bar.warp.sync": (30, 60),
    "shfl.sync.down.i32": (30, 60),
    "shfl.sync.idx.i32": (30, 60),
    "shfl.sync.up.i32": (30, 60),
    "vote.ballot.sync": (30, 60),
    "ldmatrix.sync.aligned.m8n8.x4.b16.p3": (75, 65),
    "ldmatrix.sync.aligned.m8n8.x4.trans.b16.p3": (75, 65),
    "f2tf32.rna": (80, 70),
    "mma.m16n8k8.row.col.tf32": (80, 70),
    "mma.m16n8k16.row.col.bf16": (80, 70),
    "mma.m16n8k16.row.col.f32.f32": (80, 70),
}

_USED = re.compile(r"@llvm\.nvvm\.([\w.]+)")
_PTX = re.compile(r"\+ptx(\d+)")


def _check_intrinsics(program: Program) -> None:
    """Raises CompileError where the text of a CUDA program names an instruction that its target does not have, or that
    nobody knows."""
    target = program.target
    version = max(map(int, _PTX.findall(target.features)), default=0)
    for name in sorted(set(_USED.findall(program.text))):
        least = LEAST_OF_INTRINSICS.get(name)
        if least is None:
            raise CompileError(
                program.name, f"the GPU code uses llvm.nvvm.{name}, of which it is not known what GPU has it."
            )
        if target.sm < least[0] or version < least[1]:
            raise CompileError(
                program.name,
                f"the GPU code uses llvm.nvvm.{name}, which takes compute capability {_dotted(least[0])} and PTX "
                f"{_dotted(least[1])}; it is compiled for {_dotted(target.sm)} and PTX {_dotted(version)}.",
            )


def _dotted(number: int) -> str:
    return f"{number // 10}.{number % 10}"
