"""The innermost loop of a product: a tile of sums in registers, over one block of the depth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from hybridflow.compiler.codegen.core.emitter import Emitter
from hybridflow.compiler.codegen.core.kernel_builder import KernelBuilder, Ref
from hybridflow.compiler.codegen.core.llvm_module import LLVMModule
from hybridflow.compiler.codegen.core.llvm_values import Val
from hybridflow.compiler.codegen.products.packed_formats import (
    MultiplyKind,
    PackedFormat,
    corrections,
    multiply_add,
    pairs_of_words,
    sum_depth,
    words_of_pairs,
)
from hybridflow.compiler.loops.tuning import CACHE_LINE, MAX_CELLS, SUMS_PER_ITERATION
from hybridflow.compiler.target import Target
from hybridflow.quick_dataclasses import dataclass


@dataclass(frozen=True)
class Tile:
    """The part of the product that the micro-kernel holds in registers: ``rows`` by ``vectors`` of ``width`` lanes."""

    rows: int
    vectors: int
    width: int

    @property
    def columns(self) -> int:
        return self.vectors * self.width


@dataclass(frozen=True)
class UnpackedColumns:
    """Columns of which words are made as they are read (``packed_formats.words_in_place``): lines of ``dtype``, or
    lines that ``are_paired`` as in ``ops/packed_panels.py``.  %b_pitch counts their elements."""

    dtype: np.dtype
    are_paired: bool


def emit_micro_kernel(
    module: LLVMModule,
    symbol: str,
    target: Target,
    fastmath: bool,
    form: PackedFormat,
    tile: Tile,
    row_step: int,
    k_step: int,
    one_block: bool,
    multiple: int,
    columns: UnpackedColumns | None = None,
) -> str:
    """Add the function of one tile over one k-block: totals = before + the block's sums.  Its name.

    %a has the tile's rows ``row_step`` apart and their cells ``k_step`` apart, %b those of columns side by side and
    %b_pitch apart, or ``columns`` that are not packed; %depth counts cells, a ``multiple`` of so many.  Rows of totals
    are %totals_pitch elements apart.  Those of the blocks before may be the same memory, or one row of zeros for all;
    with ``one_block`` they are always zero, and not asked for.
    """
    item = form.cell.itemsize
    e = Emitter(target, tile.width, fastmath)
    c = KernelBuilder(e)
    excess = form.multiply is MultiplyKind.SIGNED_BYTES
    lines = 1 if columns is None or columns.are_paired else form.group
    size = item if columns is None else columns.dtype.itemsize
    zeros = [e.zero(form.sums)] * ((tile.rows + excess) * tile.vectors)
    together = min(MAX_CELLS, max(1, SUMS_PER_ITERATION // ((tile.rows + excess) * tile.vectors)))
    if not one_block:
        _prefetch_totals(c, form, tile)

    def cells(starts: Sequence[str], column: int) -> Val:
        if columns is None:
            return e.load(c.at(starts[0], column, size), form.cell)
        if columns.are_paired:
            pairs = c.at(starts[0], form.group * column, size)
            return words_of_pairs(e, e.load(pairs, columns.dtype, width=form.group * tile.width))
        return pairs_of_words(e, *(e.load(c.at(start, column, size), columns.dtype) for start in starts))

    def add(first: Ref, count: int, chains: list[list[Val]], positions: Sequence[Val]) -> Sequence[Val]:
        a_position, b_position = positions
        for offset in range(count):
            sums = chains[offset % len(chains)]
            a_k = c.at("%a", c.add(a_position.ref, offset * k_step), item)
            b_lines = [c.mul("%b_pitch", offset * lines + line) for line in range(lines)]
            b_k = [c.at("%b", c.add(b_position.ref, line), size) for line in b_lines]
            b = [cells(b_k, v * tile.width) for v in range(tile.vectors)]
            for r in range(tile.rows):
                a = e.load_splat(c.at(a_k, r * row_step, item), form.cell)
                for v in range(tile.vectors):
                    i = r * tile.vectors + v
                    sums[i] = multiply_add(e, form, a, b[v], sums[i])
            if excess:
                last = tile.rows * tile.vectors
                sums[last:] = [corrections(e, form, *of) for of in zip(b, sums[last:])]
        ahead = c.value(c.mul("%b_pitch", count * lines))
        return e.add(a_position, k_step * count), e.add(b_position, ahead)

    sums_with_check = sum_depth(
        c, form, 0, "%depth", zeros, (c.value(0), c.value(0)), add, together, multiple % together == 0
    )
    sums = sums_with_check[: tile.rows * tile.vectors]
    if excess:
        sums = [e.sub(total, sums_with_check[len(sums) + i % tile.vectors]) for i, total in enumerate(sums)]
    for r, (here, there) in enumerate(
        zip(_rows(c, "%totals_pitch", tile), _rows(c, 0 if one_block else "%before_pitch", tile))
    ):
        for v in range(tile.vectors):
            before = e.zero(form.sums)
            if not one_block:
                before = e.load(c.at("%before", c.add(there, v * tile.width), form.sums.itemsize), form.sums)
            address = c.at("%totals", c.add(here, v * tile.width), form.sums.itemsize)
            e.store(e.add(before, sums[r * tile.vectors + v]), address)
    e.line("ret void")
    before_parameters = "" if one_block else "ptr %before, i64 %before_pitch, "
    parameters = (
        f"ptr noalias %a, ptr noalias %b, i64 %b_pitch, i64 %depth, {before_parameters}ptr %totals, i64 %totals_pitch"
    )
    return module.function(e, symbol, parameters, linkage="internal")


def _rows(c: KernelBuilder, pitch: Ref, tile: Tile) -> Iterator[Ref]:
    """The positions of a tile's rows."""
    row: Ref = 0
    for _ in range(tile.rows):
        yield row
        row = c.add(row, pitch)


def _prefetch_totals(c: KernelBuilder, form: PackedFormat, tile: Tile) -> None:
    """Totals lie far away, and are wanted all at once when the loop has ended.  Their rows need not begin with a line
    of cache, and then end in one more."""
    item = form.sums.itemsize
    for row in _rows(c, "%totals_pitch", tile):
        for at in (*range(0, tile.columns, CACHE_LINE // item), tile.columns - 1):
            c.e.prefetch(c.at("%totals", c.add(row, at), item))
