"""How a product is cut: tiles of sums, blocks of rows and columns whose factors are packed, units of work."""

from __future__ import annotations

import math

from hybridflow.compiler.codegen.core.kernel_builder import KernelBuilder, Ref, lanes_for
from hybridflow.compiler.codegen.core.operand import UNKNOWN
from hybridflow.compiler.codegen.gpu.group_matmul_phases import by_tiles
from hybridflow.compiler.codegen.products import amx_micro_kernel
from hybridflow.compiler.codegen.products.micro_kernel import Tile
from hybridflow.compiler.codegen.products.packed_formats import (
    MultiplyKind,
    PackedFormat,
    packed_format_of,
)
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.extents import Extent
from hybridflow.compiler.ir.graph import Node
from hybridflow.compiler.ir.types import product
from hybridflow.compiler.loops.tuning import (
    CYCLES_PER_TILE,
    ENOUGH_PANELS,
    FAR_MORE,
    KEPT_BLOCKS,
    KEPT_ROWS,
    KEPT_TOTALS,
    MIN_PACKED_EXTENT,
    NARROW,
    PACKED_COLUMNS,
    PANELS_PER_PASS,
)
from hybridflow.compiler.ops.evaluation_order import K_BLOCK
from hybridflow.compiler.target import Target
from hybridflow.quick_dataclasses import dataclass


def choose_tile(target: Target, form: PackedFormat, m: Extent, n: Extent, depth: int = K_BLOCK) -> Tile:
    """The tile with the least estimated time for an m x n product with sums of ``depth`` cells, edges included."""
    if form.multiply is MultiplyKind.TILES:
        return amx_micro_kernel.choose(_assumed(m), _assumed(n), depth)
    return min(tiles_for(target, form, m, n), key=lambda tile: tile_time(form, m, n, depth, tile))


def tiles_for(target: Target, form: PackedFormat, m: Extent, n: Extent) -> list[Tile]:
    """The tiles whose sums the registers of a target can hold."""
    dtype = form.sums
    width = max(lanes_for(target, dtype, _assumed(n)), form.least_width)
    # Accumulators, a row of b and one element of a stay in registers, with one left over.  Products that take several
    # instructions need registers themselves, and gain nothing from a large tile.
    simple = target.fma if dt.is_float(dtype) else dtype.itemsize == 4
    registers = target.registers - 1 if simple or form.group > 1 else 8
    if form.multiply is MultiplyKind.WORDS and m != 1:  # a product is in a register before it is added
        registers -= 1
    chains = form.accumulators
    extra = 1 if form.multiply is MultiplyKind.SIGNED_BYTES else 0  # rows of sums
    tiles = [
        Tile(r, v, width)
        for v in range(1, 9)
        for r in range(1, registers)
        if (chains * r + 1 + extra) * v + 1 + extra <= registers
    ]
    if m == 1 and form.group == 1:  # a row of b is needed once, and waits for memory: the longer it is, the better
        tiles.append(Tile(1, registers // (chains + 1) + 1, width))
    return tiles


def tile_time(form: PackedFormat, m: Extent, n: Extent, depth: int, tile: Tile) -> tuple[float, int]:
    """Cycles of an m x n product by such tiles, with sums of ``depth`` cells; of two that take as many, the one with
    fewer vectors is better."""
    # Cycles per k: two multiply-adds or two loads each, and four until a sum of a chain can be added to again.
    sums = tile.rows * tile.vectors
    cycles = max(sums / 2, (tile.rows + tile.vectors) / 2, 4 / form.accumulators)
    tiles = -(-_assumed(m) // tile.rows) * -(-_assumed(n) // tile.columns)
    return tiles * (cycles * depth + CYCLES_PER_TILE), tile.vectors


def _assumed(extent: Extent) -> int:
    return extent if isinstance(extent, int) else UNKNOWN


@dataclass(frozen=True)
class CacheBlocking:
    """How a product is cut: tiles, the rows and columns for which factors are packed together, the depth of packed
    panels in cells, and whether that is all of the depth.  ``height``: the rows for which packed columns are kept, one
    or more times ``rows``; ``together``: panels of columns that are packed in one go.  ``tiles``: how many read a panel
    of columns, which is read where it lies if they are few; None where that depends on symbolic extents.  ``narrow``:
    there are so few columns that rows of x may be read where they lie.  ``even_rows``, ``even_columns``: they fill
    whole tiles.  ``multiple``: the cells of each part of the depth are a multiple of so many."""

    tile: Tile
    rows: int
    height: int
    columns: int
    panels_per_pass: int
    depth: int
    one_block: bool
    tiles: int | None
    narrow: bool
    even_rows: bool
    even_columns: bool
    multiple: int

    @property
    def keeps(self) -> bool:
        """Whether all panels of columns are kept, rather than those that are packed in one go."""
        return self.height > self.rows


def cells_of_block(form: PackedFormat, k: Extent) -> int:
    """Cells along the depth that are packed together, of a product of depth k."""
    depth = -(-(min(form.block, max(k, 1)) if isinstance(k, int) else form.block) // form.group)
    if form.multiply is MultiplyKind.TILES:
        depth = -(-depth // amx_micro_kernel.CELLS) * amx_micro_kernel.CELLS
    return depth


def choose_blocking(
    target: Target, form: PackedFormat, m: Extent, n: Extent, k: Extent, at_home: bool = False, tile: Tile | None = None
) -> CacheBlocking:
    """The blocks of an m x n product of depth k, with the best tile unless another one is given.  ``at_home``: its
    totals grow where it is wanted."""
    depth = cells_of_block(form, k)
    tile = tile or choose_tile(target, form, m, n, depth)
    # Packed rows fill a quarter of the second cache: what they are read from, columns and totals pass through it, too.
    # Totals are touched once per k-block, so they may lie farther away.
    rows = up_to(target.l2 // 4 // (K_BLOCK * form.sums.itemsize), tile.rows, m)
    columns = up_to(PACKED_COLUMNS, tile.columns, n)
    one_block = isinstance(k, int) and k <= form.block
    # Products of symbolic extents are cut into blocks of rows, too: there may be few columns.
    most = KEPT_ROWS if isinstance(m, int) and isinstance(n, int) else KEPT_BLOCKS * rows
    if not (at_home or one_block):
        most = min(most, KEPT_TOTALS // (columns * form.sums.itemsize))
    height = up_to(max(most, rows), tile.rows, m)
    together = min(PANELS_PER_PASS, columns // tile.columns) if form.group == 1 and height > rows else 1
    tiles = -(-m // tile.rows) if isinstance(m, int) else None
    return CacheBlocking(
        tile,
        rows,
        height,
        columns,
        together,
        depth,
        one_block,
        tiles,
        isinstance(n, int) and n <= NARROW * tile.columns,
        isinstance(m, int) and m % tile.rows == 0,
        isinstance(n, int) and n % tile.columns == 0,
        max(math.gcd(k, K_BLOCK) // form.group, 1) if isinstance(k, int) else 1,
    )


def times_read(target: Target, node: Node) -> tuple[int | None, ...]:
    """How often a product comes to each element of its factors: how often one is packed."""
    if 0 in node.shape:
        return None, None
    types = tuple(n.type for n in node.inputs)
    axes = node.op.contraction(types, node.attrs)
    batch, *others = axes.extents(*types)
    m, n, k = map(product, others)
    swapped = n == 1 and m != 1
    if swapped:
        m, n = n, m
    rows, columns = (extent if isinstance(extent, int) else UNKNOWN for extent in (m, n))
    if axes.lanes:  # the row goes with each line of the other factor
        times = columns, 1
    elif target.kind == "cuda":
        form = packed_format_of(target, types[0].dtype, node.dtype)
        tiled = by_tiles(form, batch, m, n, k, False, types[0].dtype, axes.precision == "high")
        tile = None if tiled is None else tiled.how.tile
        times = (columns, rows) if tile is None else (-(-columns // tile.columns), -(-rows // tile.rows))
    else:
        blocks = choose_blocking(target, packed_format_of(target, types[0].dtype, node.dtype), m, n, k)
        times = -(-columns // blocks.columns), -(-rows // blocks.height)
    return times[::-1] if swapped else times


@dataclass(frozen=True)
class SplitSide:
    """Rows or columns of a product: ``block`` of them at the most have their factors packed together, in panels of
    ``grain``."""

    extent: Extent
    block: int
    grain: int

    @property
    def steps(self) -> Extent:
        return steps_to(self.extent, self.grain)

    @property
    def blocks(self) -> Extent:
        return steps_to(self.extent, self.block)

    @property
    def least(self) -> int:
        """Units of a piece that are worth packing the factor of the other side for."""
        return -(-MIN_PACKED_EXTENT // self.grain)


def splits_rows(tile: Tile, m: Extent, n: Extent) -> bool:
    """Whether units are rows of an m x n product, rather than columns.

    Each worker packs the factor of the other side, and rows, which are copied as they lie, cost less than columns: so
    columns are cut unless they are far fewer, or make fewer units than rows do and not enough of them."""
    if not (isinstance(m, int) and isinstance(n, int)):
        return False
    rows, columns = -(-m // tile.rows), -(-n // tile.columns)
    return m >= FAR_MORE * n or (m >= n and columns < min(rows, ENOUGH_PANELS))


def steps_to(extent: Extent, step: int) -> Extent:
    """How many steps reach to ``extent``."""
    return (extent + (step - 1)) // step


def even_step(c: KernelBuilder, begin: Ref, end: Ref, most: int, grain: int) -> Ref:
    """The step of the least number of equal steps of whole grains, ``most`` at the most, from begin to end."""
    length = c.max(c.sub(end, begin), 1)
    steps = c.div(c.add(length, most - 1), most)
    each = c.div(c.add(length, c.sub(steps, 1)), steps)
    return c.mul(c.div(c.add(each, grain - 1), grain), grain)


def up_to(wanted: int, grain: int, extent: Extent) -> int:
    """At least ``wanted``, in whole grains, one or more; no more grains than ``extent`` has."""
    grains = -(-wanted // grain)
    if isinstance(extent, int):
        grains = min(grains, -(-extent // grain))
    return max(1, grains) * grain
