"""Schedules of products on a CPU: how one runs is decided from facts, before a line of its code is written.

``candidates`` are the ways to go, ``legal`` says which of them give the product's bits (``ops/evaluation_order.py``),
and ``cost`` which one the compiler takes where nobody has measured.  All three are pure functions of the facts and the
target.  There is one type for each way: what a schedule says, the modules beside this one write.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from enum import Enum
from typing import Union

import numpy as np

from hybridflow.compiler.codegen.core.kernel_builder import lanes_for
from hybridflow.compiler.codegen.core.operand import Operand
from hybridflow.compiler.codegen.products import amx_micro_kernel
from hybridflow.compiler.codegen.products.cache_blocking import (
    CacheBlocking,
    cells_of_block,
    choose_blocking,
    splits_rows,
    steps_to,
    tile_time,
    tiles_for,
)
from hybridflow.compiler.codegen.products.micro_kernel import Tile
from hybridflow.compiler.codegen.products.packed_formats import MultiplyKind, PackedFormat, words_in_place
from hybridflow.compiler.codegen.products.packing import DEPTH, FREE
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.extents import Extent
from hybridflow.compiler.ir.types import product
from hybridflow.compiler.loops.tuning import (
    COLUMN_STRIP,
    FAR,
    FEW_TILES_OF_LINES,
    FEW_UNITS,
    LIGHT_FACTOR,
    MIN_SYRK_DEPTH,
    SMALL_SYRK,
    TILES_TRIED,
    TRANSPOSE_SQUARE,
)
from hybridflow.compiler.ops.evaluation_order import K_BLOCK
from hybridflow.compiler.ops.packed_panels import PAIR
from hybridflow.compiler.target import Target
from hybridflow.quick_dataclasses import dataclass


@dataclass(frozen=True)
class FactorFacts:
    """What a schedule knows of a factor: the loops that rows (or columns) and the depth take; how many neighbours lie
    side by side along each; the instructions that an element takes beyond reading it; where all of it is read in even
    steps as it lies in memory, the steps along the innermost loops and their extents.  ``panels``: it lies in memory as
    panels of so many columns, in pairs along the depth (``ops/packed_panels.py``)."""

    dtype: np.dtype
    loops: tuple[int, int]
    along: tuple[int, int]
    work: int
    steps: tuple[Extent, Extent] | None
    extents: tuple[Extent, Extent]
    panels: int = 0

    @property
    def one_loop(self) -> bool:
        return self.loops == (1, 1)

    @property
    def lies_along_depth(self) -> bool:
        return self.along[1] > self.along[0]

    def collides(self, part: int) -> bool:
        """See ``Operand.collides``."""
        apart = None if self.steps is None else self.steps[part]
        return isinstance(apart, int) and apart != 0 and apart * self.dtype.itemsize % (4 * FAR) == 0

    def __str__(self) -> str:
        lies = "computed" if self.steps is None else f"steps {self.steps[0]}, {self.steps[1]}"
        loops = "" if self.one_loop else f" in {self.loops[0]}, {self.loops[1]} loops"
        work = f", {self.work} instructions" if self.work else ""
        lies += f", panels of {self.panels}" if self.panels else ""
        return f"{self.dtype.name} along {self.along[0]}, {self.along[1]}{loops}, {lies}{work}"


def factor_facts(operand: Operand) -> FactorFacts:
    free, depth = operand.loops[FREE], operand.loops[DEPTH]
    place = operand.in_memory
    steps: tuple[Extent, Extent] | None = None
    if place is not None and place[1].is_affine:
        strides = place[1].strides
        steps = strides.get(free[-1], 0), strides.get(depth[-1], 0)
    return FactorFacts(
        operand.dtype,
        (len(free), len(depth)),
        (operand.along(FREE), operand.along(DEPTH)),
        operand.work,
        steps,
        (free[-1].extent, depth[-1].extent),
        _panels(operand),
    )


def _panels(operand: Operand) -> int:
    """The columns of the panels as which a second factor lies in memory; 0 where it lies otherwise."""
    place, (free, depth) = operand.in_memory, (operand.loops[part] for part in (FREE, DEPTH))
    if place is None or not place[1].is_affine or len(free) != 2 or len(depth) != 2:
        return 0
    width, (pairs, pair) = free[1].extent, (loop.extent for loop in depth)
    if pair != PAIR or not isinstance(width, int) or not isinstance(pairs, int):
        return 0
    steps = {depth[1]: 1, free[1]: PAIR, depth[0]: PAIR * width, free[0]: PAIR * width * pairs}
    return width if all(place[1].strides.get(loop, 0) == step for loop, step in steps.items()) else 0


@dataclass(frozen=True)
class ProductFacts:
    """An m x n product of depth k for each entry of a batch.  ``by_lanes``: its one row is summed in the order of a row
    reduction.  ``symmetric``: the second factor is the first one transposed.  ``is_plain``: all there is to do with
    the sums is to store them.  ``skips_zeros``: rows of the first factor may begin or end with zeros."""

    batch: tuple[Extent, ...]
    m: Extent
    n: Extent
    k: Extent
    form: PackedFormat
    left: FactorFacts
    right: FactorFacts
    by_lanes: bool = False
    symmetric: bool = False
    is_plain: bool = False
    skips_zeros: bool = False

    @property
    def is_static(self) -> bool:
        return isinstance(self.m, int) and isinstance(self.n, int) and isinstance(self.k, int)

    @property
    def accumulates_in_output(self) -> bool:
        """Whether totals may grow where the product is wanted."""
        return self.is_plain and self.form.multiply is not MultiplyKind.TILES

    def __str__(self) -> str:
        batch = "".join(f"{extent} of " for extent in self.batch)
        flags = ("by_lanes", "symmetric", "is_plain", "skips_zeros")
        named = "".join(f", {flag.replace('_', ' ')}" for flag in flags if getattr(self, flag))
        form = self.form
        return (
            f"product {batch}{self.m}x{self.k}x{self.n}{named}; {form.multiply.name} {form.packed.name} to "
            f"{form.sums.name}; left {self.left}; right {self.right}"
        )


# ---- one type for each way


@dataclass(frozen=True)
class LanesSchedule:
    """One row of lines that are folded like rows of a reduction: along their elements, or neighbouring ones at once by
    vectors across them."""

    along: bool

    def __str__(self) -> str:
        return f"product by lanes, {'along lines' if self.along else 'across lines'}"


@dataclass(frozen=True)
class RowSchedule:
    """One row: lines of the second factor, read as they lie, are added to a row of sums."""

    width: int

    def __str__(self) -> str:
        return f"product of one row, {self.width} lanes, in place"


@dataclass(frozen=True)
class TransposedRowSchedule:
    """One row, of a second factor whose elements lie side by side along the depth: ``squares`` at once are transposed
    in registers, read by whole vectors or ``by_halves``."""

    width: int
    squares: int
    by_halves: bool = False

    def __str__(self) -> str:
        halves = ", read by halves" if self.by_halves else ""
        return f"product of one row, {self.squares} squares of {self.width} transposed in registers{halves}"


@dataclass(frozen=True)
class UnpackedSchedule:
    """Tiles of sums over factors that are read as they lie, without a call."""

    tile: Tile

    def __str__(self) -> str:
        return f"product of tiles {_tile_text(self.tile)}, both in place"


class RowsRead(Enum):
    """How the micro-kernel finds rows of the first factor."""

    IN_PLACE = "rows in place"
    LINES = "rows packed as lines"
    PANELS = "rows packed in panels"
    TRANSPOSED_CELLS = "rows packed in panels, transposed by cells"


class ColumnsRead(Enum):
    """How the micro-kernel finds panels of columns of the second factor."""

    IN_PLACE_IF_FEW = "columns packed unless few tiles read them"
    PACKED = "columns packed"
    PREPACKED = "columns prepacked"
    TRANSPOSED = "columns packed, transposed in registers"


@dataclass(frozen=True)
class BlockedSchedule:
    """Blocks of packed rows and columns, and tiles of sums over them.  Units are rows where it ``splits_rows``, else
    columns; of a product that is ``halved``, pairs of panels.  ``row_steps``: how far apart rows, and elements along
    the depth, lie that are read in place.  Totals grow ``in_output`` or in scratch."""

    blocks: CacheBlocking
    splits_rows: bool
    rows: RowsRead
    row_steps: tuple[int, int] | None
    columns: ColumnsRead
    in_output: bool
    halved: bool = False
    skips_zeros: bool = False

    def __str__(self) -> str:
        blocks = self.blocks
        cut = "pairs of panels" if self.halved else "rows" if self.splits_rows else "columns"
        parts = [
            f"product of tiles {_tile_text(blocks.tile)} in blocks of {blocks.height}x{blocks.columns}, depth "
            f"{blocks.depth}",
            f"units of {cut}",
            self.rows.value,
            self.columns.value,
            *([f"{blocks.panels_per_pass} panels a pass"] if blocks.panels_per_pass > 1 else []),
            *(["columns kept"] if blocks.keeps else []),
            f"totals in {'output' if self.in_output else 'scratch'}",
            *(["half of it mirrored"] if self.halved else []),
            *(["zeros skipped"] if self.skips_zeros else []),
        ]
        return "; ".join(parts)


WholeSchedule = Union[LanesSchedule, RowSchedule, TransposedRowSchedule, UnpackedSchedule, BlockedSchedule]


@dataclass(frozen=True)
class SplitSchedule:
    """Threads share out ``pieces`` blocks of the depth, each summed like ``piece``, and then rows, whose totals are
    added up in order.  A single thread does the ``whole``."""

    whole: WholeSchedule
    pieces: int
    piece: BlockedSchedule

    def __str__(self) -> str:
        return f"{self.whole}; for threads {self.pieces} pieces of the depth"


ProductSchedule = Union[WholeSchedule, SplitSchedule]


def _tile_text(tile: Tile) -> str:
    return f"{tile.rows}x{tile.columns}"


# ---- which way to go


def candidates(facts: ProductFacts, target: Target) -> Iterator[ProductSchedule]:
    """The legal ways, the one of the least cost first, then others in the order of theirs."""
    seen: list[ProductSchedule] = []
    for ways in (_ways, _variants):
        legal_schedules = [schedule for schedule in ways(facts, target) if legal(schedule, facts, target)]
        for schedule in sorted(legal_schedules, key=lambda one: cost(one, facts, target)):
            split = None if seen else _split(schedule, facts, target)
            for one in (schedule,) if split is None else (split, schedule):
                if one not in seen:
                    seen.append(one)
                    yield one


def _ways(facts: ProductFacts, target: Target) -> Iterator[WholeSchedule]:
    """One schedule of each type."""
    if facts.by_lanes:
        yield LanesSchedule(True)
        yield LanesSchedule(False)
        return
    if facts.m == 1:
        yield RowSchedule(lanes_for(target, facts.form.sums, facts.n))
        width = _square_width(facts, target)
        yield from (TransposedRowSchedule(width, n, halves) for halves in (False, width > 2) for n in (1, 2))
    tile = _tile_of_panels(facts, target) if facts.right.panels else None
    blocks = choose_blocking(target, facts.form, facts.m, facts.n, facts.k, facts.accumulates_in_output, tile)
    yield UnpackedSchedule(blocks.tile)
    if facts.symmetric:
        yield blocked(facts, target, blocks, halved=True)
    yield blocked(facts, target, blocks)


def _tile_of_panels(facts: ProductFacts, target: Target) -> Tile | None:
    """The best tile whose columns are those of a panel in memory."""
    form, m, n = facts.form, facts.m, facts.n
    tiles = [tile for tile in tiles_for(target, form, m, n) if tile.columns == facts.right.panels]
    depth = cells_of_block(form, facts.k)
    return min(tiles, key=lambda tile: tile_time(form, m, n, depth, tile), default=None)


def _variants(facts: ProductFacts, target: Target) -> Iterator[WholeSchedule]:
    """Other tiles, and units along the other side."""
    if facts.by_lanes or facts.form.multiply is MultiplyKind.TILES:
        return
    form, m, n, k = facts.form, facts.m, facts.n, facts.k
    depth = cells_of_block(form, k)
    tiles = sorted(tiles_for(target, form, m, n), key=lambda tile: tile_time(form, m, n, depth, tile))
    for tile in tiles[:TILES_TRIED]:
        blocks = choose_blocking(target, form, m, n, k, facts.accumulates_in_output, tile)
        schedule = blocked(facts, target, blocks)
        yield schedule
        yield replace(schedule, splits_rows=not schedule.splits_rows)
        yield UnpackedSchedule(tile)


def legal(schedule: WholeSchedule, facts: ProductFacts, target: Target) -> bool:
    """Whether a way gives the bits of the product, and there is code for it."""
    left, right, one_element = facts.left, facts.right, facts.form.multiply is MultiplyKind.EACH
    if isinstance(schedule, LanesSchedule):
        return facts.by_lanes and (not schedule.along or left.loops[1] == right.loops[1] == 1)
    if facts.by_lanes:
        return False
    if isinstance(schedule, (RowSchedule, TransposedRowSchedule)):
        one_loop = left.loops[1] == right.loops[0] == right.loops[1] == 1
        light = max(left.work, right.work) <= LIGHT_FACTOR
        integers = isinstance(schedule, RowSchedule) and not dt.is_float(facts.form.sums)
        if not (facts.m == 1 and (one_element or integers) and one_loop and light):
            return False
        wide = schedule.width > 1 and not (isinstance(facts.n, int) and facts.n < schedule.width)
        along = right.lies_along_depth
        return wide and along if isinstance(schedule, TransposedRowSchedule) else not along
    if isinstance(schedule, UnpackedSchedule):
        m, n, k = facts.m, facts.n, facts.k
        if not (isinstance(m, int) and isinstance(n, int) and isinstance(k, int)):
            return False
        tile = schedule.tile
        light = all(
            factor.work <= (LIGHT_FACTOR if times == 1 else 0)
            for factor, times in ((left, -(-n // tile.columns)), (right, -(-m // tile.rows)))
        )
        in_one_block = 0 < k <= K_BLOCK and 0 not in (m, n)
        return (
            one_element and left.one_loop and right.one_loop and in_one_block and light and not right.lies_along_depth
        )
    if schedule.halved:  # where there is something to leave out, and more to it than to transpose the rest
        n, k = facts.n, facts.k
        little = (isinstance(n, int) and n <= schedule.blocks.tile.columns) or (
            isinstance(k, int) and k < MIN_SYRK_DEPTH
        )
        return facts.symmetric and not little
    return True


def cost(schedule: WholeSchedule, facts: ProductFacts, target: Target) -> tuple[int, float, int]:
    """About how long a way takes, to be compared with others': how much it moves beside the sums, then the cycles of
    its tiles."""
    left, right, form = facts.left, facts.right, facts.form
    if isinstance(schedule, LanesSchedule):  # elements are read in the order in which they lie
        lies = right.along[1] >= right.along[0]
        return (0 if schedule.along == lies else 1), 0.0, 0
    if isinstance(schedule, RowSchedule):
        return 0, 0.0, 0
    if isinstance(schedule, TransposedRowSchedule):
        # The sums of one square wait for each other as long as another one takes to be transposed; but of colliding
        # lines a first cache has room for few.
        return 0, 0.0, schedule.squares if right.collides(0) else -schedule.squares
    m, n, k = facts.m, facts.n, facts.k
    tile = schedule.tile if isinstance(schedule, UnpackedSchedule) else schedule.blocks.tile
    tiles = form.multiply is MultiplyKind.TILES
    time = (0.0, 0) if tiles else tile_time(form, m, n, cells_of_block(form, k), tile)
    if isinstance(schedule, UnpackedSchedule):
        m, n, k = (extent if isinstance(extent, int) else 0 for extent in (m, n, k))
        in_cache = n * k * right.dtype.itemsize <= target.l1 // 2 and m * k * left.dtype.itemsize <= target.l2 // 4
        return (2 if in_cache else 5), *time
    if schedule.halved:
        large = not facts.is_static or (isinstance(n, int) and n > SMALL_SYRK * tile.columns)
        return (1 if large else 3), *time
    usual = schedule.splits_rows == splits_rows(tile, m, n)
    return (4 if usual else 6) - (schedule.columns is ColumnsRead.PREPACKED), *time


def blocked(
    facts: ProductFacts, target: Target, blocks: CacheBlocking, halved: bool = False, in_output: bool | None = None
) -> BlockedSchedule:
    """Where the factors of blocks are read, and how."""
    form, left, right = facts.form, facts.left, facts.right
    at_home = facts.accumulates_in_output if in_output is None else in_output
    in_tiles = form.multiply is MultiplyKind.TILES
    # The last tile of rows in place may reach back, and then its totals would not follow those of the one before.
    in_line = blocks.even_rows or at_home or not halved
    steps = _row_steps(facts, blocks.tile.rows) if blocks.narrow and in_line else None
    if steps is not None:
        rows = RowsRead.IN_PLACE
    elif in_tiles and left.along[0] > left.along[1] and blocks.tile.rows % amx_micro_kernel.ROWS == 0:
        rows = RowsRead.TRANSPOSED_CELLS
    else:
        rows = RowsRead.LINES if in_tiles or not left.along[0] > left.along[1] else RowsRead.PANELS
    if right.panels and right.panels == blocks.tile.columns and words_in_place(form, right.dtype, facts.k):
        columns = ColumnsRead.PREPACKED
    elif right.lies_along_depth:
        columns = ColumnsRead.TRANSPOSED
    else:
        as_packed = form.group == 1 and right.dtype == form.packed
        few = blocks.tiles is None or blocks.tiles <= FEW_TILES_OF_LINES
        in_place = (as_packed or (few and words_in_place(form, right.dtype, facts.k))) and right.one_loop
        in_place = in_place and right.steps is not None and right.steps[0] == 1
        columns = ColumnsRead.IN_PLACE_IF_FEW if in_place else ColumnsRead.PACKED
    skips_zeros = facts.skips_zeros and form.multiply is MultiplyKind.EACH and dt.is_float(form.sums)
    by_rows = splits_rows(blocks.tile, facts.m, facts.n)
    return BlockedSchedule(blocks, by_rows, rows, steps, columns, at_home, halved, skips_zeros)


def _row_steps(facts: ProductFacts, rows: int) -> tuple[int, int] | None:
    """How far apart rows of the first factor, and elements along its depth, lie in memory, where the micro-kernel may
    read them there; None where they have to be packed."""
    left, form = facts.left, facts.form
    if left.steps is None or not left.one_loop or form.multiply not in (MultiplyKind.EACH, MultiplyKind.TILES):
        return None
    (row, along), (extent, depth) = left.steps, left.extents
    if not (isinstance(extent, int) and isinstance(row, int) and isinstance(along, int)):
        return None
    if extent < rows or left.dtype != form.packed or 1 not in (row, along) or min(row, along) < 1:
        return None
    if form.multiply is MultiplyKind.TILES:  # in cells: tile registers read whole ones, and no row may end within one
        group = form.group
        whole = isinstance(depth, int) and depth % (amx_micro_kernel.CELLS * group) == 0
        return (row // group, along) if along == 1 and row % group == 0 and whole else None
    far = max(row, along) * form.cell.itemsize  # bytes between what neighbours touch
    if along == 1:  # lines that are far apart by a power of two would take each other's place in the cache
        return (row, along) if far % (4 * FAR) else None
    return (row, along) if far <= FAR else None


def _split(whole: WholeSchedule, facts: ProductFacts, target: Target) -> SplitSchedule | None:
    """With the depth cut for threads: where the units of the whole are not enough for them, and the sums of all pieces
    no more than half of what the factors are."""
    m, n, k, form = facts.m, facts.n, facts.k, facts.form
    units = product(units_of(whole, facts))
    if facts.by_lanes or not (
        isinstance(m, int) and isinstance(n, int) and isinstance(k, int) and isinstance(units, int)
    ):
        return None
    pieces = -(-k // form.least_block)
    few = units < FEW_UNITS and pieces >= 2 * max(units, 1)
    if not few or 2 * m * n * pieces > (m + n) * k or pieces == 1:
        return None
    at_home = form.multiply is not MultiplyKind.TILES
    blocks = choose_blocking(target, form, m, n, k, at_home)
    half = blocked(facts, target, blocks, True, at_home)
    return SplitSchedule(
        whole, pieces, half if legal(half, facts, target) else blocked(facts, target, blocks, False, at_home)
    )


def units_of(schedule: WholeSchedule, facts: ProductFacts) -> tuple[Extent, ...]:
    """The units that threads share out."""
    batch, m, n = facts.batch, facts.m, facts.n
    if isinstance(schedule, LanesSchedule):
        return (*batch, n)
    if isinstance(schedule, (RowSchedule, TransposedRowSchedule)):
        return (*batch, steps_to(n, COLUMN_STRIP))
    if isinstance(schedule, UnpackedSchedule):
        assert isinstance(m, int)
        return (*batch, steps_to(m, min(schedule.tile.rows, m)))
    blocks = schedule.blocks
    if schedule.halved:
        return (*batch, steps_to(steps_to(n, blocks.tile.columns), 2))
    if schedule.splits_rows:
        return (*batch, steps_to(n, blocks.columns), steps_to(m, blocks.tile.rows))
    return (*batch, steps_to(m, blocks.height), steps_to(n, blocks.tile.columns))


def _square_width(facts: ProductFacts, target: Target) -> int:
    return min(lanes_for(target, facts.form.sums, facts.n), TRANSPOSE_SQUARE)
