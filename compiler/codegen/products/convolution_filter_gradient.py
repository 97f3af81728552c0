"""The derivative of a convolution by its filter: for each element of the filter a sum over all places of all images.

Sums go through the places by blocks, in row-major order (``ops/evaluation_order.py``).  A worker has some tiles of the
result: their rows are elements of the filter, their columns those of cotangents.  For each block of places it copies
the lines of the images that windows there see (``padded_input_tiles.py``), once for all of its tiles, then panel by
panel the cotangents.  Each tile adds the block's products (``convolution_micro_kernel.py``): a run of places is a run
of products.  Totals rest in shared memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hybridflow.compiler.codegen.core.kernel_builder import KernelBuilder, Ref, lanes_for
from hybridflow.compiler.codegen.core.llvm_module import LLVMModule
from hybridflow.compiler.codegen.core.llvm_values import Val
from hybridflow.compiler.codegen.core.operand import Operand
from hybridflow.compiler.codegen.core.phases import EmittedKernel, Phase
from hybridflow.compiler.codegen.gpu.group_convolution import WindowOperand
from hybridflow.compiler.codegen.gpu.group_matmul import Store
from hybridflow.compiler.codegen.gpu.group_matmul_phases import GroupProduct, by_tiles
from hybridflow.compiler.codegen.gpu.shared_memory_operands import FactorOperand, OperandPair, SharedOperand
from hybridflow.compiler.codegen.gpu.thread_group import ThreadGroup
from hybridflow.compiler.codegen.products.convolution import (
    ConvolutionKernel,
    WindowFacts,
    elements_of_a_line,
    even_step,
    form_for,
    known_extent,
    sum_products,
    vectorizes_groups,
    vectors_across_groups,
    window_element,
)
from hybridflow.compiler.codegen.products.convolution_micro_kernel import (
    RUN,
    ConvolutionTile,
    call_convolution_micro_kernel,
    convolution_tiles,
    emit_convolution_micro_kernel,
)
from hybridflow.compiler.codegen.products.packed_formats import PackedFormat, factor
from hybridflow.compiler.codegen.products.packing import BATCH, DEPTH, FREE, Packing
from hybridflow.compiler.codegen.products.padded_input_tiles import (
    IMAGE,
    Finish,
    Image,
    PaddedTiles,
    TileCopy,
    WindowGeometry,
)
from hybridflow.compiler.ir.extents import Extent
from hybridflow.compiler.ir.types import product
from hybridflow.compiler.loops import grouped_conv_tiles
from hybridflow.compiler.loops.grouped_conv_tiles import RegisterTile
from hybridflow.compiler.loops.tuning import LEAST_GRADIENT_TILES, TILES_TRIED
from hybridflow.compiler.ops.evaluation_order import K_BLOCK
from hybridflow.compiler.target import Target


class FilterGradientFacts(WindowFacts):
    """The windows of a convolution whose filter's derivative it is."""

    def __str__(self) -> str:
        return f"filter gradient of {super().__str__()}"


@dataclass(frozen=True)
class FilterGradientTiling:
    """How the derivative is cut.  A slice has ``channels`` channels of a group, or, across groups, a panel of columns;
    its rows fall into ``runs`` of ``length`` rows that lie side by side in a strip, of as many tiles each.  A block of
    places touches at most ``lines`` lines of images, of which a strip has ``pixels`` pixels of ``cells`` cells each."""

    tile: ConvolutionTile
    channels: int
    slices: Extent
    panels: int
    runs: int
    length: int
    tiles: int
    lines: int
    pixels: int
    cells: int

    def __str__(self) -> str:
        tile = self.tile
        across = " across groups" if tile.across else ""
        return (
            f"filter gradient of tiles {len(tile.rows)}x{tile.columns}{across}, {self.tiles} for each of {self.runs} "
            f"runs; strips of {self.lines} lines of {self.pixels} pixels of {self.cells} cells; {self.slices} slices"
        )


def tilings(facts: WindowFacts, target: Target) -> Iterator[FilterGradientTiling]:
    """How the derivative may be cut, the way of the least estimated time first; each gives the same bits."""
    w, dtype = facts.windows, facts.dtype
    across = vectors_across_groups(target, w, dtype)
    columns = elements_of_a_line(w) if across else w.columns
    width = lanes_for(target, dtype, columns)
    line = known_extent(w.places[2], K_BLOCK)
    lines = (K_BLOCK + line - 2) // line + 1 if isinstance(w.places[2], int) and line else K_BLOCK // 2 + 1
    pixels = (min(K_BLOCK, max(line, 1)) - 1) * w.step[2] + w.span[2]
    joined = w.dilation[2] == 1
    channels = w.channels
    budget = target.l2 // 2 // dtype.itemsize // (lines * w.size[0] * w.size[1] * pixels)
    if not across and channels > max(budget, 16):
        channels = even_step(channels, max(budget, 16), 16)
    length = (w.size[2] if joined else 1) * channels
    runs = w.size[0] * w.size[1] * (1 if joined else w.size[2])
    candidates = convolution_tiles(target, dtype, 1, max(length, 1), columns, width, across, K_BLOCK)
    for _, rows, vectors in candidates[:TILES_TRIED]:
        panel = vectors * width
        panels = -(-columns // panel)
        cells = channels * panel if across else channels
        tile = ConvolutionTile(
            tuple(r * (panel if across else 1) for r in range(rows)), w.step[2] * cells, vectors, width, across
        )
        slices = panels if across else w.groups * (-(-w.channels // max(channels, 1)) or 1)
        tiles = -(-length // rows)
        yield FilterGradientTiling(
            tile, channels, slices, 1 if across else panels, runs, length, tiles, lines, pixels, cells
        )


def emit_filter_gradient(kernel: ConvolutionKernel) -> tuple[EmittedKernel, str]:
    """Add the derivative of a convolution by the filter: like ``convolution.emit_convolution``, with cotangents, whose
    depth are the places, for the filter.  ``finish`` is given (row,), of (*size, channels) in row-major order, and a
    column.  Units: tiles of the result, of all slices; on a GPU tiles or elements."""
    code = kernel.new_code()
    if code.e.target.kind == "cuda":
        return _for_gpu(kernel, code)
    form = form_for(kernel.result)
    facts = FilterGradientFacts(kernel.windows, form.sums, True)
    emitted = _Gradient(code, kernel.windows, kernel.choose(facts, tilings(facts, code.e.target)), form)
    cotangents, finish = kernel.other(code, emitted.cut.tile.across), kernel.finish(code)
    emitted.write(kernel.module, kernel.symbol, kernel.image, cotangents, finish, kernel.result)
    code.e.line("ret void")
    least = min(LEAST_GRADIENT_TILES, emitted.per_slice)
    phase = Phase(kernel.add(code), (emitted.cut.slices, emitted.per_slice), least=least)
    return EmittedKernel((phase,), emitted.scratch, emitted.shared), str(emitted.cut)


def _for_gpu(kernel: ConvolutionKernel, code: KernelBuilder) -> tuple[EmittedKernel, str]:
    """By tiles, by bundles of groups, or by elements."""
    w, form = kernel.windows, form_for(kernel.result)
    rows, depth = w.taps * w.channels, w.images * product(w.places)
    if kernel.thread_groups and not vectorizes_groups(w):
        tiles = by_tiles(form, (w.groups,), rows, w.columns, depth, code.e.fastmath, kernel.result)
        if tiles is not None:
            return kernel.emit_tiles(tiles, _sides(kernel, tiles), lambda c, write: _store(c, write, kernel))
    if vectorizes_groups(w):
        blocks = (depth + (K_BLOCK - 1)) // K_BLOCK if rows <= K_BLOCK else 1  # else their sums would be too many
        bundle = grouped_conv_tiles.choose_by_filter(
            w.groups, w.channels, w.columns, kernel.result.itemsize, w.size[0] * w.size[1], w.size[2], blocks
        )
        if bundle is not None and depth != 0:
            return _by_register_tiles(kernel, code, bundle, form, blocks), str(bundle)
    image, cotangents = kernel.image(code, False, False), kernel.other(code, False)
    _elementwise(code, w, image, cotangents, kernel.finish(code), kernel.result)
    code.e.line("ret void")
    return EmittedKernel((Phase(kernel.add(code), (rows, w.groups * w.columns)),)), "an element a thread"


def _by_register_tiles(
    kernel: ConvolutionKernel, code: KernelBuilder, bundle: RegisterTile, form: PackedFormat, blocks: Extent
) -> EmittedKernel:
    """One phase for all places, or one for the sums of each of several ``blocks`` of them, and one for the totals."""
    w = kernel.windows
    emitted = kernel.register_tiles(code, bundle, form)
    image, cotangents = kernel.image(code, False, False), kernel.other(code, True)
    if blocks == 1:
        emitted.gradient(image, cotangents, kernel.finish(code))
        code.e.line("ret void")
        return EmittedKernel((Phase(kernel.add(code), emitted.gradient_units()),))
    emitted.gradient_of_blocks(image, cotangents)
    code.e.line("ret void")
    first = Phase(kernel.add(code), (blocks, *emitted.gradient_units()))
    code = kernel.new_code()
    kernel.register_tiles(code, bundle, form).totals(blocks, kernel.finish(code))
    code.e.line("ret void")
    elements = (w.taps * w.channels, w.groups * w.columns)
    shared = blocks * product(elements) * form.sums.itemsize
    return EmittedKernel((first, Phase(kernel.add(code, "_totals"), elements)), 0, shared)


def _sides(kernel: ConvolutionKernel, tiles: GroupProduct) -> OperandPair:
    """Rows are elements of the window and their channels, the depth are places."""
    w, form, tile = kernel.windows, tiles.form, tiles.how.tile

    def sides(c: KernelBuilder, group: ThreadGroup) -> tuple[SharedOperand, SharedOperand]:
        k, image, cotangents = c.extent(tiles.k), kernel.image(c, False, False), kernel.other(c, False)
        return (
            WindowOperand(c, group, form, tile.rows, tile.depth, w.taps * w.channels, k, w, image, FREE),
            FactorOperand(c, group, form, False, tile.columns, tile.depth, w.columns, k, cotangents),
        )

    return sides


def _store(c: KernelBuilder, write: Finish, kernel: ConvolutionKernel) -> Store:
    def store(value: Val, group: Ref, row: Ref, column: Ref) -> None:
        at = c.add(c.mul(group, kernel.windows.columns), column)
        write((row,), at, c.e.convert(value, kernel.result), None)

    return store


class _Gradient:
    """The kernel being emitted."""

    def __init__(self, code: KernelBuilder, w: WindowGeometry, cut: FilterGradientTiling, form: PackedFormat) -> None:
        self.c, self.e, self.w, self.cut, self.form = code, code.e, w, cut, form
        self.item = form.sums.itemsize
        self.per_slice = cut.runs * cut.tiles
        self.columns = elements_of_a_line(w) if cut.tile.across else w.columns
        self.line = cut.pixels * cut.cells  # cells of a strip's line
        self.lines = w.size[0] * w.size[1] * self.line  # of all lines that windows along one line of places see
        strips = cut.lines * self.lines + cut.tile.rows[-1] + cut.tile.columns
        # Rows of a last tile that the result does not have read so many cells behind a window: they are zeros.
        self.behind = (cut.tiles * len(cut.tile.rows) - cut.length) * (cut.tile.columns if cut.tile.across else 1)
        self.offsets = [0]
        for nbytes in (strips * self.item + 64, K_BLOCK * cut.tile.columns * self.item, cut.lines * RUN):
            self.offsets.append(self.offsets[-1] + -(-nbytes // 64) * 64)
        self.scratch = self.offsets[-1]
        self.tile_bytes = -(-cut.tile.cells * self.item // 64) * 64
        self.shared = cut.slices * self.per_slice * cut.panels * self.tile_bytes

    def write(
        self,
        module: LLVMModule,
        symbol: str,
        image: Image,
        cotangents: Operand,
        finish: Finish,
        result: np.dtype,
    ) -> None:
        c, w, cut = self.c, self.w, self.cut
        name = emit_convolution_micro_kernel(
            module, f"{symbol}.tile", self.e.target, self.e.fastmath, self.form, cut.tile
        )
        copying = TileCopy(c, w, cut.tile, cut.channels, cut.cells, image, self.form)
        packing = Packing(c, cotangents, self.form, cut.tile.width, False)
        transposed = cotangents.along(DEPTH) > cotangents.along(FREE)
        write = packing.transpose if transposed else packing.panel
        places = c.product(w.places)
        depth = c.mul(c.extent(w.images), places)
        runs, panel_at = c.at("%scratch", self.offsets[2], 1), c.at("%scratch", self.offsets[1], 1)
        with c.spans("%begin", "%end", self.per_slice) as (slice_, first, last):
            column = c.mul(slice_, cut.tile.columns) if cut.tile.across else 0
            group, part = self._group(slice_)
            at = cotangents.start if cut.tile.across else cotangents.start.at(BATCH, group)
            with c.loop(0, c.max(depth, 1), K_BLOCK) as block:
                end = c.min(c.add(block.index, K_BLOCK), depth)
                count = self._lines(copying, runs, block.index, end, slice_, group, part)
                with c.loop(0, cut.panels) as panel:
                    col = c.add(column, c.mul(panel.index, cut.tile.columns))
                    width = c.min(cut.tile.columns, c.sub(self.columns, col))
                    write(at, panel_at, cut.tile.columns, col, width, block.index, c.sub(end, block.index))
                    with c.loop(first, last) as tile:
                        a = c.at("%scratch", self._row(tile.index), self.item)
                        totals = self._totals(slice_, tile.index, panel.index)
                        starts = c.compare("eq", block.index, 0)
                        call_convolution_micro_kernel(c, name, a, panel_at, totals, runs, count, starts)
            with c.loop(first, last) as tile, c.loop(0, cut.panels) as panel:
                totals = self._totals(slice_, tile.index, panel.index)
                self._finish(totals, slice_, tile.index, panel.index, finish, result)

    def _group(self, slice_: Ref) -> tuple[Ref, Ref]:
        """The group of a slice, and which of the parts of its channels it is."""
        if self.cut.tile.across:
            return 0, 0
        parts = -(-self.w.channels // max(self.cut.channels, 1)) or 1
        return self.c.div(slice_, parts), self.c.rem(slice_, parts)

    def _totals(self, slice_: Ref, tile: Ref, panel: Ref) -> str:
        c = self.c
        number = c.add(c.mul(c.add(c.mul(slice_, self.per_slice), tile), self.cut.panels), panel)
        return c.at("%shared", c.mul(number, self.tile_bytes), 1)

    # ---- strips of a block of places

    def _lines(self, copying: TileCopy, runs: str, begin: Ref, end: Ref, slice_: Ref, group: Ref, part: Ref) -> Ref:
        """Copy what windows at the places [begin, end) see, note the run of each line of places, and return how many
        there are."""
        c, e, w, cut, strips = self.c, self.e, self.w, self.cut, copying.strips
        extents = [c.extent(extent) for extent in w.places]
        channel = c.add(c.mul(group, w.channels), c.mul(part, cut.channels))
        count = c.min(cut.channels, c.sub(w.channels, c.mul(part, cut.channels)))
        if not cut.tile.across and w.channels % max(cut.channels, 1) == 0:
            count = cut.channels
        some: str | bool = False  # whether it is a last slice that does not fill the cells of a pixel
        if cut.tile.across and self.columns % cut.tile.columns:
            some = c.compare("slt", c.sub(self.columns, c.mul(slice_, cut.tile.columns)), cut.tile.columns)
        elif not cut.tile.across:
            some = c.compare("slt", count, cut.channels)
        if 0 in w.places or w.images == 0:
            return 0
        line0 = c.div(begin, extents[2])
        with c.spans(begin, end, extents[2]) as (line, first, last):
            place1, remainder = c.rem(line, extents[1]), c.div(line, extents[1])
            place0, n = c.rem(remainder, extents[0]), c.div(remainder, extents[0])
            number = c.sub(line, line0)
            cell = c.mul(number, self.lines)
            entry = c.at(runs, c.mul(number, RUN), 1)
            e.store(c.value(cell), entry)
            e.store(c.value(c.sub(last, first)), c.at(entry, 8, 1))
            done = c.sub(c.add(c.mul(line, extents[2]), first), begin)
            e.store(c.value(c.mul(done, cut.tile.columns)), c.at(entry, 16, 1))
            at = copying.operand.start.at(IMAGE, n)
            q2 = strips.position(2, first)
            pixels = c.add(c.mul(c.sub(c.sub(last, first), 1), w.step[2]), w.span[2])
            with c.loop(0, w.size[0]) as tap0, c.loop(0, w.size[1]) as tap1:
                tap = c.add(c.mul(tap0.index, w.size[1]), tap1.index)
                to = c.at("%scratch", c.add(cell, c.mul(tap, self.line)), self.item)
                q0, q1 = strips.position(0, place0, tap0.index), strips.position(1, place1, tap1.index)
                with c.when(some):
                    strips.zeros(to, c.mul(pixels, cut.cells))
                strips.line(
                    at, to, q0, q1, q2, pixels, lambda *where: copying.copy(slice_, channel, count, *where), cut.cells
                )
                strips.zeros(c.at(to, c.mul(pixels, cut.cells), self.item), self.behind)
        lines = c.sub(c.div(c.add(end, c.sub(extents[2], 1)), extents[2]), line0)
        return c.max(lines, 0)

    # ---- rows of the result

    def _row(self, tile: Ref) -> Ref:
        """The first cell of a tile's first row, in the strips of a line of places."""
        c, w, cut = self.c, self.w, self.cut
        run, row = c.div(tile, cut.tiles), c.mul(c.rem(tile, cut.tiles), len(cut.tile.rows))
        cell = c.mul(row, cut.tile.columns if cut.tile.across else 1)
        if w.dilation[2] == 1:
            return c.add(c.mul(run, self.line), cell)
        line, tap = c.div(run, w.size[2]), c.rem(run, w.size[2])
        return c.add(c.add(c.mul(line, self.line), c.mul(tap, w.dilation[2] * cut.cells)), cell)

    def _finish(self, totals: str, slice_: Ref, tile: Ref, panel: Ref, finish: Finish, result: np.dtype) -> None:
        c, e, w, cut = self.c, self.e, self.w, self.cut
        group, part = self._group(slice_)
        column = c.mul(slice_ if cut.tile.across else panel, cut.tile.columns)
        width = c.min(cut.tile.columns, c.sub(self.columns, column))
        base = column if cut.tile.across else c.add(c.mul(group, w.columns), column)
        run, first = c.div(tile, cut.tiles), c.mul(c.rem(tile, cut.tiles), len(cut.tile.rows))
        taps = w.size[2] if w.dilation[2] == 1 else 1
        with c.loop(0, c.min(len(cut.tile.rows), c.sub(cut.length, first))) as row:
            inside = c.add(first, row.index)
            tap = c.add(c.mul(run, taps), c.div(inside, cut.channels))
            channel = c.add(c.mul(part, cut.channels), c.rem(inside, cut.channels))
            line = c.at(totals, c.mul(row.index, cut.tile.columns), self.item)

            def hand_over(j: Ref, mask: Val | None) -> None:
                value = e.convert(e.load(c.at(line, j, self.item), self.form.sums), result)
                finish((c.add(c.mul(tap, w.channels), channel),), c.add(base, j), value, mask)

            with c.when(c.compare("slt", channel, w.channels)):
                c.vector_loop(0, width, cut.tile.width, hand_over)


def _elementwise(
    c: KernelBuilder, w: WindowGeometry, image: Operand, cotangents: Operand, finish: Finish, result: np.dtype
) -> None:
    """A thread of a GPU computes whole elements."""
    e, form = c.e, form_for(result)
    e.width = 1
    strips = PaddedTiles(c, w, image, form, 1)
    columns, extents = c.extent(w.groups * w.columns), [c.extent(extent) for extent in w.places]
    depth = c.mul(c.extent(w.images), c.product(w.places))
    with c.loop("%begin", "%end") as unit:
        row, column = c.div(unit.index, columns), c.rem(unit.index, columns)
        tap, channel = c.div(row, w.channels), c.rem(row, w.channels)
        taps = (c.div(tap, w.size[1] * w.size[2]), c.rem(c.div(tap, w.size[2]), w.size[1]), c.rem(tap, w.size[2]))
        group = c.div(column, w.columns)
        y = cotangents.start.at(BATCH, group).at(FREE, c.rem(column, w.columns))

        def term(k: Ref) -> tuple[Val, Val, bool]:
            place: list[Ref] = []
            remainder = k
            for extent in reversed(extents):
                place.insert(0, c.rem(remainder, extent))
                remainder = c.div(remainder, extent)
            a = window_element(
                strips, image.start.at(IMAGE, remainder), place, taps, c.add(c.mul(group, w.channels), channel)
            )
            return a, factor(e, y.value(y.counters_at(DEPTH, k)), form, False), True

        total = sum_products(c, form, depth, term)
        finish((row,), column, e.convert(total, result), None)
