"""Loops of which a piece of a phase runs a part.

Units are counted in row-major order through all loops that are cut.  So which turns of an inner loop are to be run is
known in the current turn of those around it, and nowhere else: the first and the last turn of an outer loop are run in
part.  Code that asks anywhere else would run whole planes in each piece; it is refused here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from hybridflow.compiler.codegen.core.kernel_builder import KernelBuilder, Ref
from hybridflow.compiler.index.index_expr import LoopVar
from hybridflow.errors import CompileError


class UnitRanges:
    """The turns [begin, end), in row-major order, of ``loops``, the outermost first."""

    def __init__(self, code: KernelBuilder, loops: Sequence[LoopVar], begin: Ref, end: Ref) -> None:
        self._code, self._loops = code, tuple(loops)
        self._open = 0  # how many of the loops have been opened around what is written now
        self._part = begin, end  # of the next one, in turns of it and all within it
        self._is_used = not loops

    def bounds(self, var: LoopVar) -> tuple[Ref, Ref]:
        """The turns of the innermost loop that are run in the current turn of the others."""
        if var is not self._loops[-1]:
            raise self._defect(f"loop {var.name} is run in part, and loops within it are run in part too")
        self._check_around(var)
        self._is_used = True
        return self._part

    @contextmanager
    def iterations(self, var: LoopVar) -> Iterator[Ref]:
        """A loop over those of ``var`` that are run in the current turn of the ones around it."""
        if var is self._loops[-1]:
            start, stop = self.bounds(var)
            with self._code.loop(start, stop) as loop:
                yield loop.index
            return
        self._check_around(var)
        whole, inside = self._part, self._loops[self._open + 1 :]
        with self._code.spans(*whole, self._code.product([v.extent for v in inside])) as (iteration, first, last):
            self._open, self._part = self._open + 1, (first, last)
            yield iteration
            self._open, self._part = self._open - 1, whole

    def units(self) -> tuple[Ref, Ref]:
        """All that is run, for code that does not go by these loops."""
        self._is_used = True
        return self._part

    def check_used(self) -> None:
        """Raise CompileError where nobody has asked for the innermost loop's part: every piece would do all of it."""
        if not self._is_used:
            raise self._defect("pieces of the units of a phase do the same work")

    def _check_around(self, var: LoopVar) -> None:
        if var is not self._loops[self._open]:
            raise self._defect(f"the part of loop {var.name} is asked for where loops around it are not open")

    def _defect(self, what: str) -> CompileError:
        names = ", ".join(v.name for v in self._loops)
        return CompileError("loops", f"{what} (of {names}). This is a defect of hybridflow; please report it.")
