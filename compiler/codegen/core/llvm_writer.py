"""Lines of LLVM IR: instructions, labels and branches of one function, and what it needs around it.

Nothing is parsed or built in memory, because a kernel of thousands of instructions must cost a few milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from hybridflow.compiler.codegen.core.llvm_values import Val, type_text


class Writer:
    """Writes the body of one LLVM function."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.declares: set[str] = set()
        self.globals: dict[str, str] = {}  # name -> definition: constant tables, and functions that the body calls
        self.block = "entry"
        self.known: dict[str, str] = {}  # what instructions without effects in this block have computed, by their text
        self._count = 0

    def fresh(self, hint: str = "v") -> str:
        self._count += 1
        return f"%{hint}{self._count}"

    def line(self, text: str) -> None:
        self.lines.append(f"  {text}")

    def assign(self, text: str, dtype: np.dtype, width: int) -> Val:
        """``%vN = text`` as a value."""
        self._count += 1
        ref = f"%v{self._count}"
        self.lines.append(f"  {ref} = {text}")
        return Val(ref, dtype, width)

    def declare(self, text: str) -> None:
        self.declares.add(text)

    # ---- control flow ----

    def new_label(self, hint: str = "L") -> str:
        self._count += 1
        return f"{hint}{self._count}"

    def label(self, name: str) -> None:
        """Open a basic block."""
        self.lines.append(f"{name}:")
        self.block = name
        self.known.clear()

    def branch(self, label: str) -> None:
        self.line(f"br label %{label}")

    def branch_if(self, condition: str, then: str, otherwise: str, seldom: bool = False) -> None:
        """``seldom`` says that the condition hardly ever holds: nothing of ``then`` is worth computing beforehand."""
        weights = ', !prof !{!"branch_weights", i32 1, i32 2000}' if seldom else ""
        self.line(f"br i1 {condition}, label %{then}, label %{otherwise}{weights}")

    def either_way(
        self,
        condition: str,
        yes: Callable[[], Sequence[Val]],
        no: Callable[[], Sequence[Val]],
        hints: Sequence[str] = ("yes", "no", "done"),
        seldom: bool = False,
    ) -> list[Val]:
        """What one of two pieces of code computes, in blocks of their own: ``yes`` where the condition holds, which
        ``seldom`` says it hardly ever does."""
        *labels, done = [self.new_label(hint) for hint in hints]
        self.branch_if(condition, labels[0], labels[1], seldom)
        ways = []
        for label, compute in zip(labels, (yes, no)):
            self.label(label)
            values = compute()
            ways.append((values, self.block))
            self.branch(done)
        self.label(done)
        (one, first), (other, second) = ways
        return [self.phi((a, first), (b, second)) for a, b in zip(one, other, strict=True)]

    def phi(self, *incoming: tuple[Val, str]) -> Val:
        """The value that came along the edge from one of the labels."""
        first = incoming[0][0]
        pairs = ", ".join(f"[ {value.ref}, %{label} ]" for value, label in incoming)
        return self.assign(f"phi {type_text(first.dtype, first.width)} {pairs}", first.dtype, first.width)
