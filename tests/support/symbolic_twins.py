"""Symbolic twins: a random program under a signature that leaves extents open."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from dataclasses import replace

import hybridflow as hf
from hybridflow.compiler.ir.types import is_static
from hybridflow.compiler.ops import Kind
from tests.support.compare_programs import FILE, load
from tests.support.programs import Program, Values
from tests.support.random_programs import EXTENT, Random


def symbolic_twin(program: Program, seed: int) -> Program | None:
    """The program under a signature that leaves extents open, called with n, 0, 1 and at times more elements there.

    All extents of n are left open or those of one argument, whichever leaves more of the program: what cannot be traced
    so is taken out.  None if nothing is left.  Some have no signature, and are traced anew for other extents.
    """
    r = Random(seed)
    usual = program.calls[0]
    axes = [(k, a) for k, v in enumerate(usual) if v.kind != "given" for a, e in enumerate(v.shape) if e == EXTENT]
    twins = []
    for only in dict.fromkeys((None, r.pick([k for k, _ in axes]))) if axes else ():
        open = tuple((k, a) for k, a in axes if only in (None, k))
        extents = r.pick(((EXTENT, 0, 1), (EXTENT, 1, 0), (1, EXTENT, EXTENT + 2, 0), (0, 1, EXTENT)))
        rows = tuple(tuple(_resized(v, k, open, extent) for k, v in enumerate(usual)) for extent in extents)
        if r.chance(0.1):
            return replace(program, calls=rows)  # no signature: a trace for each extent
        twin = traceable(replace(program, open=open, calls=rows))
        if twin is not None and twin.open and not _sums_in_another_order(twin):
            twins.append(twin)
    return max(twins, key=lambda twin: len(twin.main.statements), default=None)


def traceable(program: Program) -> Program | None:
    """The program without the statements that its signature refuses to trace; None if nothing is left."""
    while program.main.statements:
        try:
            load(program)["make"](hf.function)[0].get_concrete_function()
        except Exception as error:
            text = program.text().split("\n")
            numbers = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == FILE]
            bodies = (program.main, *program.helpers)
            refused = {s for n in numbers for b in bodies for s in b.statements if s.text == text[n - 1].strip()}
            smaller = program.without(refused)
            if smaller == program:
                return None
            program = smaller
        else:
            return program
    return None


def _sums_in_another_order(twin: Program) -> bool:
    """Whether a gradient is taken of a stack of matrices, of an open number of rows, times one matrix.

    With known extents that is one large product, and the gradient of the matrix one sum over all rows; where extents
    are open, graphs cannot join the axes of the rows, and it is a sum of sums.
    """
    if not twin.settings.tapes and "GradientTape" not in twin.text():
        return False
    graph = load(twin)["make"](hf.function)[0].get_concrete_function().graph
    stacks = [n for n in graph.nodes if n.op.kind is Kind.CONTRACT and len(n.shape) > 2 and not is_static(n.shape[:-1])]
    return any(source.op.name == "broadcast" for n in stacks for source in n.inputs if not source.is_parameter)


def _resized(values: Values, k: int, open: Sequence[tuple[int, int]], extent: int) -> Values:
    shape = tuple(extent if (k, axis) in open else n for axis, n in enumerate(values.shape))
    return replace(values, shape=shape)
