"""The pipeline: plain lists, with the reasons for their order."""

from __future__ import annotations

import difflib
import functools
from dataclasses import replace

from hybridflow import flags
from hybridflow.compiler.passes.algebraic_simplifier import simplify
from hybridflow.compiler.passes.constant_folding import fold
from hybridflow.compiler.passes.control_flow_simplify import control
from hybridflow.compiler.passes.cse import cse
from hybridflow.compiler.passes.dce import dce
from hybridflow.compiler.passes.gather_sinking import sink_gathers
from hybridflow.compiler.passes.integer_narrowing import narrow
from hybridflow.compiler.passes.matmul_rewrites import filters_to_matmul, small_k_to_reductions
from hybridflow.compiler.passes.overflow_check_elimination import overflow
from hybridflow.compiler.passes.pad_sum_to_concat import sums_of_pads_to_concat
from hybridflow.compiler.passes.pass_manager import Pass, Step, fix
from hybridflow.compiler.passes.prepack import prepack
from hybridflow.compiler.passes.scan_deduplication import deduplicate_scans
from hybridflow.compiler.passes.split_complex import split_complex
from hybridflow.compiler.passes.tile_and_fuse import tile_and_fuse
from hybridflow.compiler.passes.tile_heights import GroupTileHeights, TileHeights
from hybridflow.compiler.passes.transpose_folding import transpose_folding
from hybridflow.compiler.target import AVX2, Target
from hybridflow.errors import ArgumentError

SPLIT_COMPLEX = Pass("split_complex", split_complex, inside=False, required=True)
DCE = Pass("dce", dce)
CSE = Pass("cse", cse)
SIMPLIFY = Pass("simplify", simplify)
FOLD = Pass("fold", fold)
TRANSPOSE = Pass("transpose", transpose_folding)
PAD_SUMS = Pass("concat_pads", sums_of_pads_to_concat)
GATHER_SINKING = Pass("gather_sinking", sink_gathers)
CONTROL = Pass("control", control)
SCAN_DEDUPLICATION = Pass("scan_dedup", deduplicate_scans)
NARROW = Pass("narrow", narrow)
OVERFLOW = Pass("overflow", overflow, inside=False)
TILE_AND_FUSE = Pass("tile_and_fuse", functools.partial(tile_and_fuse, heights=TileHeights(1 << 19)))
FILTERS = Pass("filters", filters_to_matmul)
SMALL_K = Pass("small_k", small_k_to_reductions)
PREPACK = Pass("prepack", functools.partial(prepack, target=AVX2))

SIMPLIFY_PIPELINE: list[Step] = [
    DCE,  # a trace holds what Python computed and dropped: later passes need not look at it
    SPLIT_COMPLEX,  # before those that look at what is computed: they compute with real dtypes alone
    SCAN_DEDUPLICATION,  # before anything else changes one of two loops that are to be compared
    fix(
        CSE,  # first, so that patterns in which one value occurs twice see one node
        SIMPLIFY,  # before fold: it moves ops to the small side of broadcasts, where constants meet
        FOLD,
        TRANSPOSE,  # after simplify, which has made one transpose of several
        PAD_SUMS,  # after simplify, which drops what is added in vain, so that terms follow each other
        GATHER_SINKING,  # after simplify, which has joined views: what is broadcast is seen to be
        CONTROL,  # after fold, which finds what chooses a branch
        OVERFLOW,  # after control, which has found what loops need not carry: what it carries is looked at
        DCE,  # last: rewriting leaves the old nodes behind
    ),
]
"""What every target begins with; the result is the graph that fusion sees."""


def steps_for(target: Target) -> list[Step]:
    """What is done for a target after all that: what it makes is for code generation alone."""
    on_gpu = target.kind == "cuda"
    heights = GroupTileHeights(target.block_memory) if on_gpu else TileHeights(target.l2)
    # All threads of a GPU run the graphs of a loop together: none of them has panels of its own there.
    tiling = replace(TILE_AND_FUSE, function=functools.partial(tile_and_fuse, heights=heights), inside=not on_gpu)
    if on_gpu:  # where all is computed in 32 bits, and teams of threads share out what a product reads
        return [tiling, DCE]
    # What is narrowed leaves conversions that simplify joins.  Few terms come after panels, which look for products.
    # Filters become products before panels and few terms, which look for them.
    # What is prepacked is a view of panels: nobody else looks for products behind it.
    prepacking = replace(PREPACK, function=functools.partial(prepack, target=target))
    return [NARROW, SIMPLIFY, FILTERS, tiling, SMALL_K, prepacking, DCE]


_ALL = (
    SPLIT_COMPLEX,
    DCE,
    CSE,
    SIMPLIFY,
    FOLD,
    TRANSPOSE,
    PAD_SUMS,
    GATHER_SINKING,
    CONTROL,
    OVERFLOW,
    SCAN_DEDUPLICATION,
    NARROW,
    FILTERS,
    TILE_AND_FUSE,
    SMALL_K,
    PREPACK,
)
PASSES = {p.name: p for p in _ALL}
"""The passes by name."""
SKIPPABLE = {name: p for name, p in PASSES.items() if not p.required}
"""Those that HF_SKIP may leave out."""
_FORMER = {"joins": PAD_SUMS, "panels": TILE_AND_FUSE, "twins": SCAN_DEDUPLICATION}


def check_skipped() -> None:
    """Raise ArgumentError where HF_SKIP names a pass that there is not, or one that is required."""
    for name in flags.SKIP.value.split(",") if flags.SKIP.value else ():
        if name in PASSES and name not in SKIPPABLE:
            raise ArgumentError("HF_SKIP", f"the pass {name!r} is required, and cannot be left out.")
        if name not in PASSES:
            near = [_FORMER[name].name] if name in _FORMER else difflib.get_close_matches(name, SKIPPABLE, 1)
            hint = f"Did you mean {near[0]!r}?" if near else f"There are {', '.join(sorted(SKIPPABLE))}."
            raise ArgumentError("HF_SKIP", f"there is no pass {name!r}. {hint}")
