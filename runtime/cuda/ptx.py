"""PTX: what LLVM makes of a CUDA program, and what the driver (or ptxas) turns into machine code of a GPU."""

from __future__ import annotations

import re

from hybridflow.compiler.program import Program
from hybridflow.errors import CompileError
from hybridflow.runtime import uninterruptible
from hybridflow.runtime.cuda import intrinsics
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
    intrinsics.check(program)
    text = machine_code.compile_assembly(program.text, program.target, use="device")
    missing = [name for name in _EXTERNAL.findall(text) if name not in _EVERYWHERE]
    if missing:
        raise CompileError(program.name, f"the GPU code calls {', '.join(missing)}, which no GPU library provides.")
    disk_cache.put(key, text.encode())
    return text
