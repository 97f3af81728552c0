"""Schedules of prefix scans, sorts and scatters: pure functions of types and a target, which the modules beside this
one obey, ``f.kernels()`` prints and a golden file pins."""

from __future__ import annotations

import math
from enum import Enum

import numpy as np

from hybridflow.compiler.codegen.core.kernel_builder import MOST_LANES, lanes_for, merged_extent
from hybridflow.compiler.codegen.gpu.group_scan import COLUMN_WARPS, RUNS, Components, bytes_of, bytes_of_columns
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.extents import Extent
from hybridflow.compiler.ir.types import Shape, is_static, static_size
from hybridflow.compiler.loops.tuning import (
    BLOCK_BYTES,
    CACHE_LINE,
    ENOUGH,
    ENOUGH_LINES,
    ENOUGH_ON_GPU,
    FEW_OF,
    GROUP_SCAN_LINE,
    HISTOGRAM_BYTES,
    MANY_LINES,
    MAX_INSERTED,
    MIN_UPDATES_PER_CELL,
    SORT_BLOCK,
    TRANSPOSE_SQUARE,
    WARP,
)
from hybridflow.compiler.ops.evaluation_order import SCAN_CHUNK
from hybridflow.compiler.ops.lowering import PrefixScan, ScatterAdd, Sort
from hybridflow.compiler.target import Target
from hybridflow.quick_dataclasses import dataclass

# ---- prefix scans


@dataclass(frozen=True)
class ScanSchedule:
    """Units are lines, or ``chunks`` of each.  Vectors of ``width`` lanes go across neighbouring lines; where elements
    of a line lie side by side, ``square`` lines and elements are transposed in registers, or as many runs of one line:
    which of the two is asked at run time.  On a GPU ``group`` threads have a chunk, or neighbouring lines
    ``in_columns``."""

    width: int
    chunks: Extent
    square: int
    group: int = 1
    in_columns: bool = False

    @property
    def is_cut(self) -> bool:
        return self.chunks != 1

    def __str__(self) -> str:
        if self.in_columns:
            lines = f"neighbouring lines by teams of {self.group}"
        elif self.group > 1:
            lines = f"a chunk a team of {self.group}"
        elif self.square > 1:
            lines = f"squares of {self.square} lines, or runs, transposed in registers"
        else:
            lines = f"{self.width} lanes across lines"
        return f"scan, {lines}" + (f"; {self.chunks} chunks a line, none for one thread" if self.is_cut else "")


def scan_schedule(
    target: Target, components: Components, dtype: np.dtype, shape: Shape, running: PrefixScan, thread_groups: bool
) -> ScanSchedule:
    """How states of ``components`` are scanned along an axis of elements of ``dtype``."""
    before, n, behind = shape[: running.axis], shape[running.axis], shape[running.axis + 1 :]
    state = dt.compute_dtype(dtype)
    width, lines = lanes_for(target, state, merged_extent(behind)), math.prod((*before, *behind))
    on_gpu, neighbours = target.kind != "cpu", merged_extent(behind) != 1
    short = isinstance(n, int) and n < GROUP_SCAN_LINE
    square = 1 if neighbours else min(lanes_for(target, state, TRANSPOSE_SQUARE), TRANSPOSE_SQUARE)
    group, in_columns, enough = 1, False, ENOUGH * width
    if on_gpu:
        if thread_groups and not short and not neighbours and bytes_of(components) <= BLOCK_BYTES:
            group = RUNS
        few = not (isinstance(lines, int) and lines >= MANY_LINES)
        in_columns = thread_groups and neighbours and not short and few and bytes_of_columns(components) <= BLOCK_BYTES
        enough = ENOUGH_ON_GPU if group == 1 else ENOUGH_LINES
        if in_columns:
            group, enough = COLUMN_WARPS * WARP, ENOUGH_LINES * WARP
    chunks: Extent = 1
    if not (isinstance(n, int) and n <= SCAN_CHUNK) and not (isinstance(lines, int) and lines >= enough):
        chunks = (n - 1) // SCAN_CHUNK + 1
    return ScanSchedule(width, chunks, square, group, in_columns)


# ---- sorts


class SortWay(Enum):
    """VECTORS: values by networks and partitions of vectors.  FIRST: a list of the best so far.  RADIX: keys and
    positions, byte by byte.  GROUPS: by teams of a GPU's threads."""

    VECTORS = "by vectors"
    FIRST = "a list of the first ones"
    RADIX = "by radix"
    GROUPS = "by teams of threads"


@dataclass(frozen=True)
class SortSchedule:
    """Units are lines, or ``blocks`` of a single one."""

    way: SortWay
    lanes: int
    blocks: Extent = 1

    def __str__(self) -> str:
        cut = f"; {self.blocks} blocks of a line, none for one thread" if self.blocks != 1 else ""
        return f"sort, {self.way.value}{f', {self.lanes} lanes' * (self.lanes > 1)}{cut}"


def sorts_vectors(target: Target, dtype: np.dtype) -> bool:
    """Whether a vector of ``dtype`` has more than one lane."""
    return target.lanes(8 * dtype.itemsize) > 1


def sort_schedule(target: Target, sort: Sort, dtype: np.dtype, shape: Shape, thread_groups: bool) -> SortSchedule:
    """How elements of ``dtype`` are sorted along an axis, or their positions."""
    axis, n = sort.axis, shape[sort.axis]
    if thread_groups:
        return SortSchedule(SortWay.GROUPS, 1)
    if sort.values and sorts_vectors(target, dtype):
        return SortSchedule(SortWay.VECTORS, lanes_for(target, dtype, MOST_LANES))
    lanes = lanes_for(target, dtype, MOST_LANES)
    if sort.count is not None and finds_first(sort.count, lanes, n, shape[axis + 1 :] in ((), (1,))):
        return SortSchedule(SortWay.FIRST, lanes)
    others = math.prod((*shape[:axis], *shape[axis + 1 :]))
    single = others == 1 and not (isinstance(n, int) and n <= SORT_BLOCK)
    return SortSchedule(SortWay.RADIX, 1, (n + SORT_BLOCK - 1) // SORT_BLOCK if single else 1)


def finds_first(count: int, lanes: int, n: Extent, side_by_side: bool) -> bool:
    """Whether the first few of lines are found without sorting these."""
    short = isinstance(n, int) and n < FEW_OF * count
    return count <= MAX_INSERTED and lanes > 1 and not short and side_by_side


# ---- scatters


class ScatterWay(Enum):
    """COLUMNS, ROWS: a piece has a part of the result to itself, and goes through all indices.  WHOLE: it has all rows
    of an entry.  HISTOGRAM: pieces of the updates have tables of their own.  GROUPS: by teams of a GPU's threads."""

    COLUMNS = "a piece of the columns"
    ROWS = "a piece of the rows"
    WHOLE = "all rows of an entry"
    HISTOGRAM = "tables for pieces of the updates"
    GROUPS = "by teams of threads"


@dataclass(frozen=True)
class ScatterSchedule:
    """Who adds what, by vectors of ``width`` lanes."""

    way: ScatterWay
    width: int

    def __str__(self) -> str:
        return f"scatter, {self.way.value}{f', {self.width} lanes' * (self.width > 1)}"


def scatter_schedule(target: Target, adding: ScatterAdd, dtype: np.dtype, shape: Shape) -> ScatterSchedule:
    """How updates are scattered along an axis of elements of ``dtype``, in their order.  A piece of rows takes one walk
    over the indices whatever its size, a thread of a GPU one for each unit."""
    before, behind = shape[: adding.axis], shape[adding.axis + 1 :]
    width, columns = lanes_for(target, dtype, merged_extent(behind)), math.prod((*before, *behind))
    if target.kind != "cpu" or (isinstance(columns, int) and columns >= ENOUGH * width):
        return ScatterSchedule(ScatterWay.COLUMNS, width)
    return ScatterSchedule(ScatterWay.ROWS if _pays_for_passes(adding, dtype, behind) else ScatterWay.WHOLE, width)


def _pays_for_passes(adding: ScatterAdd, dtype: np.dtype, behind: Shape) -> bool:
    """Whether a slice takes so long to add that a worker may look at all indices to find those of its rows.  Where each
    element has an index of its own they are gathered and scattered, for any part of the rows all of them."""
    row_bytes = static_size(behind) * dtype.itemsize if is_static(behind) else None
    paired = adding.paired and not (is_static(behind) and static_size(behind) == 1)
    return not paired and (row_bytes is None or row_bytes >= CACHE_LINE)


def counts_in_tables(target: Target, adding: ScatterAdd, dtype: np.dtype, shape: Shape, updates: Extent) -> bool:
    """Whether integers are added into tables that stay in a first-level cache, and these into the result."""
    if target.kind != "cpu" or adding.replaces or len(shape) != 1 or dt.is_float(dtype) or not is_static(shape):
        return False
    cells = static_size(shape)
    fits = cells > 0 and cells * dtype.itemsize <= HISTOGRAM_BYTES
    return fits and not (isinstance(updates, int) and updates < MIN_UPDATES_PER_CELL * cells)
