"""The innermost loop of a product of bytes, or of bfloat16, in x86's tile registers (AMX): 16 rows of 64 bytes each.

An instruction adds the products of 16 rows of a with 16 columns of b, 64 bytes along the depth each, to 16 by 16 sums.
Those of bfloat16 are the runs of ``ops/evaluation_order.py``; filled up with zeros they have the same sums. Four tiles
hold sums, two rows of a and two columns of b.  The tiles' shapes are set at the beginning of each call and given up at
its end.  So no thread keeps them, and nothing else has to know of them.
"""

from __future__ import annotations

import numpy as np

from hybridflow.compiler.codegen.core.emitter import Emitter
from hybridflow.compiler.codegen.core.kernel_builder import KernelBuilder, Ref
from hybridflow.compiler.codegen.core.llvm_module import LLVMModule
from hybridflow.compiler.codegen.core.llvm_values import Val
from hybridflow.compiler.codegen.products.micro_kernel import Tile
from hybridflow.compiler.codegen.products.packed_formats import CELL, PackedFormat
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.loops.tuning import CYCLES_PER_TILE
from hybridflow.compiler.ops.evaluation_order import K_BLOCK
from hybridflow.compiler.target import Target

ROWS = 16  # of a tile
CELLS = 16  # of a row: as many are added at once along the depth
_HELD = 2  # tiles of each factor
_CONFIGURATION = 64  # bytes
_ROW_BYTES, _ROW_COUNTS = 16, 48  # where it says them: two bytes for each tile and one

_CYCLES_PER_LOAD = 8  # of a tile; a multiply-add takes as many cycles as a has rows


def choose(m: int, n: int, depth: int) -> Tile:
    """The part of an m x n product to hold at once, with sums of ``depth`` cells: the least estimated time."""

    def time(tile: Tile) -> tuple[float, int]:
        loads = _CYCLES_PER_LOAD * (-(-tile.rows // ROWS) + tile.vectors)
        tiles = -(-m // tile.rows) * -(-n // tile.columns)
        cycles = max(tile.rows * tile.vectors, loads)
        return tiles * (cycles * -(-depth // CELLS) + CYCLES_PER_TILE), -tile.rows

    # Fewer rows than a tile has are for products that have no more.
    heights = [min(max(m, 1), ROWS), _HELD * ROWS]
    return min((Tile(rows, v, ROWS) for rows in heights for v in range(1, _HELD + 1)), key=time)


def whole_tiles(c: KernelBuilder, cells: Ref) -> Ref:
    """Cells of the depth, filled up to those of tiles."""
    return c.mul(c.div(c.add(cells, CELLS - 1), CELLS), CELLS)


def emit_tile_kernel(
    module: LLVMModule,
    symbol: str,
    target: Target,
    fastmath: bool,
    form: PackedFormat,
    tile: Tile,
    row_step: int,
    one_block: bool,
) -> str:
    """Add the function of one tile over one k-block, as ``micro_kernel`` does, or over several of floats; its name.

    Of each of the tile's rows, ``row_step`` cells apart at %a, and of the lines at %b as many cells are read as fill up
    whole tiles; those behind %depth are zeros, at %a only of floats.
    """
    e = Emitter(target, ROWS, fastmath)
    c = KernelBuilder(e)
    heights = [min(ROWS, tile.rows - row) for row in range(0, tile.rows, ROWS)]
    sums = {(i, v): i * tile.vectors + v for i in range(len(heights)) for v in range(tile.vectors)}
    rows_at, columns_at = _HELD * _HELD, _HELD * _HELD + _HELD

    def call(name: str, *operands: str) -> None:
        types = ", ".join(operand.split()[0] for operand in operands)
        e.declare(f"declare void @llvm.x86.{name}({types})")
        e.line(f"call void @llvm.x86.{name}({', '.join(operands)})")

    def move(name: str, number: int, address: str, pitch: Ref) -> None:
        call(name, f"i8 {number}", f"ptr {address}", f"i64 {pitch}")

    def each_sum(name: str, base: str) -> None:
        for (i, v), number in sums.items():
            start = c.at(base, i * ROWS * tile.columns + v * ROWS, CELL)
            move(name, number, start, tile.columns * CELL)

    def clear() -> None:
        for number in sums.values():
            call("tilezero", f"i8 {number}")

    def add(begin: Ref, end: Ref) -> None:
        with c.loop(begin, end, CELLS) as at:
            a_k = c.at("%a", at.index, CELL)
            b_k = c.at("%b", c.mul("%b_pitch", at.index), CELL)
            for v in range(tile.vectors):
                move("tileloadd64", columns_at + v, c.at(b_k, v * ROWS, CELL), c.mul("%b_pitch", CELL))
            for i in range(len(heights)):
                move("tileloadd64", rows_at + i, c.at(a_k, i * ROWS * row_step, CELL), row_step * CELL)
                for v in range(tile.vectors):
                    call(instruction, *(f"i8 {number}" for number in (sums[i, v], rows_at + i, columns_at + v)))

    call("ldtilecfg", f"ptr {_configuration(e, heights, tile.vectors)}")
    if dt.is_float(form.sums):
        instruction, sums_memory = "tdpbf16ps", e.fresh("own")
        e.line(f"{sums_memory} = alloca [{tile.rows * tile.columns} x float], align 64")
        step = K_BLOCK // form.group
        with c.loop(0, c.max("%depth", 1), step) as block:
            clear()
            add(block.index, c.min(c.add(block.index, step), "%depth"))
            each_sum("tilestored64", sums_memory)
            first = c.both("%first", c.compare("eq", block.index, 0))
            _add_to_totals(c, tile, sums_memory, first)
    else:
        instruction = "tdpbssd"
        clear()
        if not one_block:
            with c.when(c.negation("%first")):
                each_sum("tileloadd64", "%totals")
        add(0, "%depth")
        each_sum("tilestored64", "%totals")
    call("tilerelease")
    e.line("ret void")
    parameters = "ptr noalias %a, ptr noalias %b, i64 %b_pitch, ptr noalias %totals, i64 %depth, i1 %first"
    return module.function(e, symbol, parameters, linkage="internal")


def _add_to_totals(c: KernelBuilder, tile: Tile, sums: str, first: str | bool) -> None:
    """Totals are the sums of a block, if it is the first, or else so much more; both lie alike."""
    e = c.e
    starts = e.splat(Val(str(first).lower(), dt.bool_, 1))
    with c.loop(0, tile.rows * tile.columns, tile.columns) as line:
        for v in range(tile.vectors):
            at = c.add(line.index, v * ROWS)
            here, part = c.at("%totals", at, CELL), e.load(c.at(sums, at, CELL), dt.float32)
            e.store(e.add(e.select(starts, e.zero(dt.float32), e.load(here, dt.float32)), part), here)


def _configuration(e: Emitter, heights: list[int], vectors: int) -> str:
    """The shapes of all tiles, in memory: those of sums, of rows of a, and of columns of b."""
    shapes = {i * vectors + v: height for i, height in enumerate(heights) for v in range(vectors)}
    shapes |= {_HELD * _HELD + i: height for i, height in enumerate(heights)}
    shapes |= {_HELD * _HELD + _HELD + v: CELLS for v in range(vectors)}
    palette = np.zeros(_CONFIGURATION, np.uint8)
    palette[0] = 1  # the palette of eight tiles of 16 x 64 bytes
    for number, height in shapes.items():
        palette[_ROW_BYTES + 2 * number] = CELLS * CELL
        palette[_ROW_COUNTS + number] = height
    return e.table(palette.astype(dt.uint8), "tiles_" + "_".join(map(str, (*heights, vectors))))
