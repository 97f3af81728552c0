"""The pipeline: plain lists, with the reasons for their order."""

from __future__ import annotations

import functools
from dataclasses import replace

from hybridflow.compiler.passes.control import control
from hybridflow.compiler.passes.cse import cse
from hybridflow.compiler.passes.dce import dce
from hybridflow.compiler.passes.driver import Pass, Step, fix
from hybridflow.compiler.passes.few_terms import few_terms
from hybridflow.compiler.passes.fold import fold
from hybridflow.compiler.passes.gathers import gathers
from hybridflow.compiler.passes.joins import joins
from hybridflow.compiler.passes.narrow import narrow
from hybridflow.compiler.passes.overflow import overflow
from hybridflow.compiler.passes.panel_heights import Heights, TeamHeights
from hybridflow.compiler.passes.panels import panels
from hybridflow.compiler.passes.simplify import simplify
from hybridflow.compiler.passes.transpose import transpose_folding
from hybridflow.compiler.passes.twins import twins
from hybridflow.compiler.target import Target

DCE = Pass("dce", dce)
CSE = Pass("cse", cse)
SIMPLIFY = Pass("simplify", simplify)
FOLD = Pass("fold", fold)
TRANSPOSE = Pass("transpose", transpose_folding)
JOINS = Pass("joins", joins)
GATHERS = Pass("gathers", gathers)
CONTROL = Pass("control", control)
TWINS = Pass("twins", twins)
NARROW = Pass("narrow", narrow)
OVERFLOW = Pass("overflow", overflow, inside=False)
PANELS = Pass("panels", functools.partial(panels, heights=Heights(1 << 19)))
FEW_TERMS = Pass("few_terms", few_terms)

SIMPLIFY_PIPELINE: list[Step] = [
    DCE,  # a trace holds what Python computed and dropped: later passes need not look at it
    TWINS,  # before anything else changes one of two loops that are to be compared
    fix(
        CSE,  # first, so that patterns in which one value occurs twice see one node
        SIMPLIFY,  # before fold: it moves ops to the small side of broadcasts, where constants meet
        FOLD,
        TRANSPOSE,  # after simplify, which has made one transpose of several
        JOINS,  # after simplify, which drops what is added in vain, so that terms follow each other
        GATHERS,  # after simplify, which has joined views: what is broadcast is seen to be
        CONTROL,  # after fold, which finds what chooses a branch
        OVERFLOW,  # after control, which has found what loops need not carry: what it carries is looked at
        DCE,  # last: rewriting leaves the old nodes behind
    ),
]
"""What every target begins with; the result is the graph that fusion sees."""


def steps_for(target: Target) -> list[Step]:
    """What is done for a target after all that: what it makes is for code generation alone."""
    on_gpu = target.kind == "cuda"
    heights = TeamHeights(target.block_memory) if on_gpu else Heights(target.l2)
    # All threads of a GPU run the graphs of a loop together: none of them has panels of its own there.
    made = replace(PANELS, function=functools.partial(panels, heights=heights), inside=not on_gpu)
    if on_gpu:  # where all is computed in 32 bits, and teams of threads share out what a product reads
        return [made, DCE]
    # What is narrowed leaves conversions that simplify joins.  Few terms come after panels, which look for products.
    return [NARROW, SIMPLIFY, made, FEW_TERMS, DCE]


_ALL = (DCE, CSE, SIMPLIFY, FOLD, TRANSPOSE, JOINS, GATHERS, CONTROL, OVERFLOW, TWINS, NARROW, PANELS, FEW_TERMS)
PASSES = {p.name: p for p in _ALL}
"""The passes by name, for HF_SKIP and the command line."""
