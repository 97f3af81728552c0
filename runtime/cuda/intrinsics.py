"""What of a GPU's own instructions needs which GPU.  LLVM ends the process when a target lacks one that it is asked
for, and takes a name that it does not know for a function of somebody else's, so texts are looked through before."""

from __future__ import annotations

import re

from hybridflow.compiler.program import Program
from hybridflow.errors import CompileError

# By name behind "llvm.nvvm.": the least compute capability and the least version of PTX, as 90 for 9.0.
LEAST = {
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


def check(program: Program) -> None:
    """Raises CompileError where the text of a CUDA program names an instruction that its target does not have, or that
    nobody knows."""
    target = program.target
    version = max(map(int, _PTX.findall(target.features)), default=0)
    for name in sorted(set(_USED.findall(program.text))):
        least = LEAST.get(name)
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
