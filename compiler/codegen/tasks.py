"""Phases as tasks of a host: functions of one type, which find their arguments in memory.

A host runs ``void task(ptr args, i64 begin, i64 end, i64 worker)`` on the pieces that it cuts (see ``program``).  The
words of ``args`` are those of ``WORDS``, then the buffers of the phase.
"""

from __future__ import annotations

from collections.abc import Sequence

from hybridflow.compiler.codegen.emitter import Emitter
from hybridflow.compiler.codegen.module import ModuleText
from hybridflow.compiler.codegen.phases import kernel_arguments
from hybridflow.compiler.codegen.structured import Code
from hybridflow.compiler.program import HOST

# "scratch" is that of worker 0, "stride" the bytes from one worker's to the next one's.
WORDS = ("shared", "scratch", "stride", "dims", "status")


def task_symbol(phase: str) -> str:
    return f"{phase}.task"


def write_task(module: ModuleText, phase: str, buffers: int) -> str:
    """Add the task that runs a phase over ``buffers`` buffers; its name."""
    e = Emitter(module.target, 1)
    code = Code(e)

    def word(number: int, kind: str) -> str:
        value = e.fresh("w")
        e.line(f"{value} = load {kind}, ptr {code.at('%args', number, 8)}, align 8")
        return value

    named = {name: word(k, "i64" if name == "stride" else "ptr") for k, name in enumerate(WORDS)}
    given = [word(len(WORDS) + k, "ptr") for k in range(buffers)]
    scratch = code.at(named["scratch"], code.mul("%worker", named["stride"]), 1)
    arguments = kernel_arguments(given, named["shared"], scratch, named["dims"], named["status"], "%begin", "%end")
    e.line(f"call void @{phase}({arguments})")
    e.line("ret void")
    name = task_symbol(phase)
    return module.function(e, name, "ptr %args, i64 %begin, i64 %end, i64 %worker", linkage="internal")


def store_words(code: Code, words: Sequence[str], args: str) -> None:
    """Fill ``args`` with words: operands with their types."""
    for k, word in enumerate(words):
        code.e.line(f"store {word}, ptr {code.at(args, k, 8)}, align 8")


def parallel_for(code: Code, host: str, task: str, args: str, units: object, grain: int) -> None:
    """Have the host run a task over ``units`` units."""
    e = code.e
    function = e.fresh("f")
    e.line(f"{function} = load ptr, ptr {code.at(host, HOST.index('parallel_for'), 8)}, align 8")
    e.line(f"call void {function}(ptr {host}, ptr @{task}, ptr {args}, i64 {units}, i64 {grain})")
