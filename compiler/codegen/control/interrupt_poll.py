"""Loops that look for interrupts (see ``loops.interrupts``): the code at the end of their iterations.

The process answers ``i32 hf_interrupted(ptr last)``: not 0 where the program is to end.  ``last`` is an i64 of the
caller's, 0 at first, in which it notes when it has looked.
"""

from __future__ import annotations

from hybridflow.compiler.codegen.core.kernel_builder import KernelBuilder, Ref
from hybridflow.compiler.loops.interrupt_checks import BUDGET
from hybridflow.compiler.program import INTERRUPT_POLL, INTERRUPTED


class InterruptPoll:
    """What one kernel has spent since it looked.  Made at the beginning of the kernel, which returns nothing."""

    def __init__(self, code: KernelBuilder) -> None:
        self.code, self.e = code, code.e
        self._left, self._last = (self._word(name, start) for name, start in (("left", BUDGET), ("last", 0)))

    def _word(self, name: str, start: int) -> str:
        word = self.e.fresh(name)
        self.e.line(f"{word} = alloca i64, align 8")
        self.e.line(f"store i64 {start}, ptr {word}, align 8")
        return word

    def poll(self, cost: Ref) -> None:
        """An iteration is over, which has cost so much."""
        e, code = self.e, self.code
        before = e.fresh("i")
        e.line(f"{before} = load i64, ptr {self._left}, align 8")
        left, spent = code.sub(before, cost), e.fresh("c")
        e.line(f"store i64 {left}, ptr {self._left}, align 8")
        look, end, on, go_on = (e.new_label(hint) for hint in ("look", "interrupted", "on", "go"))
        e.line(f"{spent} = icmp slt i64 {left}, 0")
        e.branch_if(spent, look, go_on)
        e.label(look)
        e.declare(f"declare i32 @{INTERRUPT_POLL}(ptr)")
        answer, interrupted = e.fresh("r"), e.fresh("c")
        e.line(f"{answer} = call i32 @{INTERRUPT_POLL}(ptr {self._last})")
        e.line(f"{interrupted} = icmp ne i32 {answer}, 0")
        e.branch_if(interrupted, end, on)
        e.label(end)
        e.line(f"{e.fresh()} = atomicrmw umax ptr %status, i32 {-INTERRUPTED} monotonic")
        e.line("ret void")
        e.label(on)
        e.line(f"store i64 {BUDGET}, ptr {self._left}, align 8")
        e.branch(go_on)
        e.label(go_on)
