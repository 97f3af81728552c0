"""Convolutions: strips of images, packed filters, and tiles of sums in registers.

The order of a sum (``ops/evaluation_order.py``), hence its bits, is that of a product's blocks, whatever the target,
the tile or the cut of the work.

What a window sees of an image lies at fixed distances once a strip of the image, a few lines, has been copied with its
zeros (``padded_input_tiles.py``); so no window is ever copied by itself.  The tile (``convolution_micro_kernel.py``)
holds the sums of some neighbouring places for some columns.  Its first factors are single numbers, which go with a
vector of the filter; of groups with few columns the vectors go *across* groups, and a strip then has a number for each
element of a line of columns.

Where zeros lie between the elements of an image, as in derivatives of strided convolutions, places fall into phases
(``padded_input_tiles.WindowGeometry``) that see elements with the same elements of the window.  One strip, without
those zeros, serves all of them; they differ in the table that says which products there are.

``convolve`` has two steps: the filter packed by panels of columns, in shared memory, and blocks of places.  Of its
derivative by the filter the elements are sums over all places: see ``convolution_filter_gradient.py``.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hybridflow.compiler.codegen.core.kernel_builder import KernelBuilder, Ref, lanes_for
from hybridflow.compiler.codegen.core.llvm_module import LLVMModule
from hybridflow.compiler.codegen.core.llvm_values import Val
from hybridflow.compiler.codegen.core.operand import Operand, OperandAccess
from hybridflow.compiler.codegen.core.phases import EmittedKernel, Phase, kernel_parameters
from hybridflow.compiler.codegen.gpu.group_convolution import PhasedFilter, WindowOperand, phases_of, position_at
from hybridflow.compiler.codegen.gpu.group_matmul import Store
from hybridflow.compiler.codegen.gpu.group_matmul_phases import GroupProduct, by_tiles
from hybridflow.compiler.codegen.gpu.grouped_convolution import GroupedConvolution
from hybridflow.compiler.codegen.gpu.shared_memory_operands import OperandPair, SharedOperand
from hybridflow.compiler.codegen.gpu.thread_group import ThreadGroup
from hybridflow.compiler.codegen.products.convolution_micro_kernel import (
    RUN,
    ConvolutionTile,
    call_convolution_micro_kernel,
    convolution_tiles,
    emit_convolution_micro_kernel,
)
from hybridflow.compiler.codegen.products.packed_formats import MultiplyKind, PackedFormat, factor, multiply_add
from hybridflow.compiler.codegen.products.packing import BATCH, DEPTH, FREE, Packing
from hybridflow.compiler.codegen.products.padded_input_tiles import (
    AXES,
    CHANNELS,
    IMAGE,
    Finish,
    Image,
    PaddedTiles,
    TileCopy,
    WindowGeometry,
)
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.extents import Extent
from hybridflow.compiler.ir.types import product
from hybridflow.compiler.loops import grouped_conv_tiles
from hybridflow.compiler.loops.grouped_conv_tiles import RegisterTile
from hybridflow.compiler.loops.schedule_choice import Choose, take_first
from hybridflow.compiler.loops.tuning import (
    ENOUGH_WINDOW_UNITS,
    FEW_GROUP_COLUMNS,
    TILES_TRIED,
    UNKNOWN_IMAGES,
    VECTOR_BYTES,
)
from hybridflow.compiler.ops.evaluation_order import K_BLOCK
from hybridflow.compiler.target import Target


@dataclass(frozen=True)
class ConvolutionTiling:
    """How a convolution is cut: the tile, the lines and places of a block, and the columns of a slice.  A strip has
    ``cells`` cells for each of ``pixels`` pixels of a line; where vectors go across groups there is one slice, or one
    for each panel.  Lines and places are those of one phase."""

    tile: ConvolutionTile
    high: int
    wide: int
    lines: int
    places: int
    cells: int
    pixels: int
    strip_lines: int
    slices: Extent
    panels: int

    @property
    def tiles_of_line(self) -> int:
        """How many tiles reach from the first place of a block to the last one."""
        return -(-self.places // self.wide)

    def __str__(self) -> str:
        tile = self.tile
        across = " across groups" if tile.across else ""
        return (
            f"convolution of tiles {self.high}x{self.wide} places by {tile.columns} columns{across} in blocks of "
            f"{self.lines} lines of {self.places} places; strips of {self.cells} cells a pixel; {self.panels} panels "
            f"of the filter packed for each of {self.slices} slices"
        )

    @property
    def plane(self) -> int:
        """Cells of a strip for one position along the first axis."""
        return self.strip_lines * self.pixels * self.cells


@dataclass(frozen=True)
class BlockPhase:
    """What of a phase lies in a block of places: the phase's number along each axis, the first turn and how many there
    are, which of the tables it has, and where its first place begins in a strip."""

    numbers: tuple[Ref, Ref, Ref]
    first: tuple[Ref, Ref, Ref]
    counts: tuple[Ref, Ref, Ref]
    kind: Ref
    cell: Ref


@dataclass(frozen=True)
class TapTables:
    """Constants: runs (see ``RUN``); blocks of a sum, each the number of its first run and how many there are; for each
    kind of phase the number of its first block, and behind them how many blocks there are."""

    runs: str
    blocks: str
    starts: tuple[int, ...]


def known_extent(extent: Extent, otherwise: int) -> int:
    return extent if isinstance(extent, int) else otherwise


def form_for(dtype: np.dtype) -> PackedFormat:
    sums = dt.compute_dtype(dtype)
    return PackedFormat(MultiplyKind.EACH, sums, sums)


def vectors_across_groups(target: Target, w: WindowGeometry, dtype: np.dtype) -> bool:
    """Whether vectors go across groups: those have too few columns to fill one."""
    return isinstance(w.groups, int) and w.groups > 1 and w.columns < min(target.lanes(8 * dtype.itemsize), 16)


def elements_of_a_line(w: WindowGeometry) -> int:
    """Columns of all groups, where vectors go across them."""
    assert isinstance(w.groups, int)
    return w.groups * w.columns


def run_of_taps(w: WindowGeometry) -> int:
    """How many elements of a window along its last axis see neighbours in a strip."""
    return w.size[2] if w.dilation[2] == 1 and w.gap[2] == 1 else 1


def products_in_registers(target: Target, w: WindowGeometry) -> int:
    """The products of a run, where vectors that go across groups may have all their second factors in registers; 0
    where they are too many, or where blocks cut runs."""
    length = run_of_taps(w) * w.channels
    return length if length <= target.registers // 2 and w.taps * w.channels <= K_BLOCK else 0


@dataclass(frozen=True)
class WindowFacts:
    """The windows of a convolution whose sums have a dtype.  ``lies_in_lines``: the channels of an image's pixel lie
    side by side, as they do in a strip."""

    windows: WindowGeometry
    dtype: np.dtype
    lies_in_lines: bool

    def __str__(self) -> str:
        return f"convolution {self.windows} to {self.dtype.name}{', in lines' * self.lies_in_lines}"


def tilings(facts: WindowFacts, target: Target) -> Iterator[ConvolutionTiling]:
    """How a convolution may be cut, the way of the least estimated time first; each gives the same bits.  Where
    channels are far apart a strip across groups holds those of one panel: each is a line of its own to be read."""
    w, dtype = facts.windows, facts.dtype
    across = vectors_across_groups(target, w, dtype)
    columns = elements_of_a_line(w) if across else w.columns
    width = lanes_for(target, dtype, columns)
    lines, places = known_extent(w.phase_extents[1], 64), known_extent(w.phase_extents[2], 64)
    depth = -(-w.taps // math.prod(w.gap)) * w.channels
    held = products_in_registers(target, w) if across else 0
    tiles = convolution_tiles(
        target, dtype, max(lines, 1), max(places, 1), columns, width, across, min(depth, K_BLOCK), held,
        w.stride[2] * w.channels,
    )  # fmt: skip
    for tile in tiles[:TILES_TRIED]:
        yield _tiling(facts, target, tile, columns, width, across)


def _tiling(
    facts: WindowFacts, target: Target, sums: tuple[int, int, int], columns: int, width: int, across: bool
) -> ConvolutionTiling:
    """With tiles of so many lines, places and vectors of sums."""
    w, dtype, lies_in_lines = facts.windows, facts.dtype, facts.lies_in_lines
    high, wide, vectors = sums
    lines, places = known_extent(w.phase_extents[1], 64), known_extent(w.phase_extents[2], 64)
    panel = vectors * width
    panels = -(-columns // panel)
    slices: Extent = w.groups
    line = 1  # columns of a strip
    if across:
        slices, line = (1, columns) if lies_in_lines else (panels, panel)
    cells = w.channels * line

    def strip(count: int, axis: int) -> int:
        return (count - 1) * w.stride[axis] + w.reach[axis]

    # Beside a strip the second cache has the filter, of which there is little across groups.
    budget = target.l2 // (2 if across else 4) // dtype.itemsize
    least_lines = strip(high, 1) * planes(w) * cells
    most = max(wide, (budget // max(least_lines, 1) - w.reach[2]) // w.stride[2] + 1)
    across_places = even_step(places, most, wide)
    pixels = strip(across_places, 2)
    others = (
        known_extent(w.images, UNKNOWN_IMAGES)
        * known_extent(w.phase_extents[0], 1)
        * known_extent(slices, 1)
        * -(-places // across_places)
    )
    wanted = -(-lines * others // ENOUGH_WINDOW_UNITS)  # so many lines leave enough units for the threads
    fitting = (budget // max(planes(w) * pixels * cells, 1) - w.reach[1]) // w.stride[1] + 1
    block_lines = even_step(lines, max(high, min(fitting, max(wanted, 4 * high))), high)
    offsets = tuple((r * w.stride[1] * pixels + j * w.stride[2]) * cells for r in range(high) for j in range(wide))
    tile = ConvolutionTile(offsets, line, vectors, width, across)
    return ConvolutionTiling(
        tile, high, wide, block_lines, across_places, cells, pixels, strip(block_lines, 1), slices,
        1 if across and line == panel else panels,
    )  # fmt: skip


def planes(w: WindowGeometry) -> int:
    """How many positions along the first axis a strip has: those that a window sees, or, where there are zeros between
    neighbours, all."""
    return w.size[0] if w.interior[0] == 0 else w.reach[0]


def even_step(extent: int, most: int, grain: int) -> int:
    """The step of the least number of equal steps of whole grains, about ``most`` at the most."""
    steps = -(-max(extent, 1) // max(most, 1))
    each = -(-max(extent, 1) // steps)
    return -(-each // grain) * grain


@dataclass(frozen=True)
class ConvolutionKernel:
    """What the kernel ``symbol`` of a convolution, or of its derivative by the filter, is made of.

    ``image(code, across, whole)`` reads images by the parts of ``strips`` and, ``across``, by channels and elements of
    a line of columns; ``whole`` joins the last axis with the channels.  ``other(code, across)`` reads the other factor,
    the filter or cotangents, by the parts of ``packing``.  There are ``buffers`` buffers; elements of the result are of
    dtype ``result``.  On a GPU units may be those of ``thread_groups`` of threads.  ``goes_by`` says whether vectors of
    so many neighbouring columns may be finished that begin at multiples of their width.  On a CPU ``choose`` takes one
    of the schedules."""

    module: LLVMModule
    new_code: Callable[[], KernelBuilder]
    symbol: str
    windows: WindowGeometry
    image: Image
    other: Callable[[KernelBuilder, bool], Operand]
    finish: Callable[[KernelBuilder], Finish]
    buffers: int
    result: np.dtype
    thread_groups: bool
    goes_by: Callable[[int], bool]
    choose: Choose = take_first

    def add(self, code: KernelBuilder, name: str = "") -> str:
        """Add what has been written as a phase; the name of its function."""
        parameters = kernel_parameters(self.buffers)
        return self.module.function(code.e, self.symbol + name, parameters, linkage="internal")

    def register_tiles(self, code: KernelBuilder, bundle: RegisterTile, form: PackedFormat) -> GroupedConvolution:
        """What writes the code of threads that have such bundles."""
        columns = bundle.groups * self.windows.columns
        width = min(VECTOR_BYTES // self.result.itemsize, columns & -columns)
        while width > 1 and not self.goes_by(width):
            width //= 2
        return GroupedConvolution(code, self.windows, bundle, form, self.result, self.pointers, width)

    @property
    def pointers(self) -> list[str]:
        return [f"%a{i}" for i in range(self.buffers)]

    def emit_tiles(
        self, tiles: GroupProduct, sides: OperandPair, store: Callable[[KernelBuilder, Finish], Store]
    ) -> tuple[EmittedKernel, str]:
        """Have teams of threads of a GPU compute the ``tiles`` of the product of both ``sides``."""
        code = tiles.emit(
            self.module, self.new_code, self.symbol, self.buffers, sides, lambda c: store(c, self.finish(c))
        )
        return code, str(tiles.how)


def emit_convolution(kernel: ConvolutionKernel) -> tuple[EmittedKernel, str]:
    """Add a convolution; also says how.  Units: packed panels; then blocks of places, on a GPU tiles, or
    elements of the result."""
    target = kernel.new_code().e.target
    if target.kind == "cuda":
        return _for_gpu(kernel)
    w, form = kernel.windows, form_for(kernel.result)
    lies_in_lines = len(kernel.image(kernel.new_code(), False, True).loops[AXES[2]]) == 1
    facts = WindowFacts(w, form.sums, lies_in_lines)
    cut = kernel.choose(facts, tilings(facts, target))
    pack = kernel.new_code()
    panels = _Convolution(pack, w, cut, form)
    panels.pack(kernel.other(pack, cut.tile.across))
    first = kernel.add(pack, "_pack")
    code = kernel.new_code()
    main = _Convolution(code, w, cut, form)
    main.blocks(kernel.module, kernel.symbol, kernel.image, kernel.finish(code), kernel.result)
    second = kernel.add(code)
    shared = cut.slices * cut.panels * main.panel_bytes
    return EmittedKernel(
        (Phase(first, (cut.slices, cut.panels), checks=True), Phase(second, main.units)), main.scratch, shared
    ), str(cut)


def _for_gpu(kernel: ConvolutionKernel) -> tuple[EmittedKernel, str]:
    """By tiles of each phase, by bundles of groups, or by elements."""
    w, form = kernel.windows, form_for(kernel.result)
    rows, depth, phases = w.images * product(w.phase_extents), w.taps * w.channels, phases_of(w)
    code = kernel.new_code()
    if kernel.thread_groups and not vectorizes_groups(w):
        batch = (w.groups, phases)
        tiles = by_tiles(form, batch, rows, w.columns, depth, code.e.fastmath, kernel.result)
        if tiles is not None:
            return kernel.emit_tiles(tiles, _sides(kernel, tiles), lambda c, write: _store(c, write, kernel))
    if vectorizes_groups(w):
        lines = w.images * product((*w.phases, *w.phase_extents[:2]))
        bundle = grouped_conv_tiles.choose(
            w.groups, w.channels, w.columns, kernel.result.itemsize, lines, w.phase_extents[2], depth, w.size[2]
        )
        if bundle is not None:
            tiling = kernel.register_tiles(code, bundle, form)
            tiling.convolution(kernel.image(code, False, False), kernel.other(code, True), kernel.finish(code))
            code.e.line("ret void")
            return EmittedKernel((Phase(kernel.add(code), tiling.convolution_units()),)), str(bundle)
    image, filter = kernel.image(code, False, False), kernel.other(code, False)
    _elementwise(code, w, image, filter, kernel.finish(code), kernel.result)
    code.e.line("ret void")
    phase = Phase(kernel.add(code), (w.images, *w.places, w.groups * w.columns))
    return EmittedKernel((phase,)), "an element a thread"


def _sides(kernel: ConvolutionKernel, tiles: GroupProduct) -> OperandPair:
    """Rows are places, the depth goes through what a window sees."""
    w, form, tile = kernel.windows, tiles.form, tiles.how.tile
    depth = w.taps * w.channels

    def sides(c: KernelBuilder, group: ThreadGroup) -> tuple[SharedOperand, SharedOperand]:
        m, image, filter = c.extent(tiles.m), kernel.image(c, False, False), kernel.other(c, False)
        return (
            WindowOperand(c, group, form, tile.rows, tile.depth, m, depth, w, image, DEPTH),
            PhasedFilter(c, group, form, tile.columns, tile.depth, depth, w, filter),
        )

    return sides


def _store(c: KernelBuilder, write: Finish, kernel: ConvolutionKernel) -> Store:
    """Stores sums of rows that are places; phases with fewer places than the first have rows behind these."""
    w, phases = kernel.windows, phases_of(kernel.windows)

    def store(value: Val, entry: Ref, row: Ref, column: Ref) -> None:
        image, place = position_at(c, w, c.rem(entry, phases), row)
        inside: str | bool = True
        for at, extent, apart in zip(place, w.places, w.phases):
            inside = c.both(inside, apart == 1 or c.compare("slt", at, c.extent(extent)))
        with c.when(inside):
            column = c.add(c.mul(c.div(entry, phases), w.columns), column)
            write((image, *place), column, c.e.convert(value, kernel.result), None)

    return store


def vectorizes_groups(w: WindowGeometry) -> bool:
    """Whether threads of a GPU that are neighbours do best with different groups, which have few columns each."""
    return w.groups != 1 and w.columns < FEW_GROUP_COLUMNS


class _Convolution:
    """One phase being emitted."""

    def __init__(self, code: KernelBuilder, w: WindowGeometry, cut: ConvolutionTiling, form: PackedFormat) -> None:
        self.c, self.e, self.w, self.cut, self.form = code, code.e, w, cut, form
        self.item = form.sums.itemsize
        self.depth = w.taps * w.channels
        self.low = tuple(code.extent(low) for low in w.low)
        self.columns = elements_of_a_line(w) if cut.tile.across else w.columns  # of a slice
        self.panel_bytes = -(-self.depth * cut.tile.columns * self.item // 64) * 64
        strip = planes(w) * cut.plane * self.item
        self.strip_bytes = -(-(strip + self._slack()) // 64) * 64
        self.one_block = self.depth <= K_BLOCK
        tiles = 1 if self.one_block else cut.tiles_of_line * -(-cut.lines // cut.high)  # whose totals are open
        self.scratch = self.strip_bytes + tiles * cut.tile.cells * self.item

    def _slack(self) -> int:
        """Bytes behind a strip that rows of a tile beyond its last place may read."""
        tile = self.cut.tile
        return (tile.rows[-1] + self.cut.cells * self.cut.pixels + tile.columns) * self.item + 64

    # ---- the filter

    def pack(self, operand: Operand) -> None:
        """Units: slices by panels."""
        c, tile = self.c, self.cut.tile
        packing = Packing(c, operand, self.form, tile.width, False)
        transposed = operand.along(DEPTH) > operand.along(FREE)
        with c.spans("%begin", "%end", self.cut.panels) as (slice_, first, last), c.loop(first, last) as panel:
            number = c.add(c.mul(slice_, self.cut.panels), panel.index)
            to = c.at("%shared", c.mul(number, self.panel_bytes), 1)
            at = operand.start if tile.across else operand.start.at(BATCH, slice_)
            column = c.mul(number if tile.across else panel.index, tile.columns)
            count = c.min(tile.columns, c.sub(self.columns, column))
            write = packing.transpose if transposed else packing.panel
            write(at, to, tile.columns, column, count, 0, self.depth)
        self.e.line("ret void")

    # ---- blocks of places

    @property
    def units(self) -> tuple[Extent, ...]:
        p = self.w.phase_extents
        return (self.w.images, p[0], _steps(p[1], self.cut.lines), _steps(p[2], self.cut.places), self.cut.slices)

    def blocks(
        self,
        module: LLVMModule,
        symbol: str,
        image: Image,
        finish: Finish,
        result: np.dtype,
    ) -> None:
        c, w, cut = self.c, self.w, self.cut
        tables, target = self._tables(), self.e.target
        length = (products_in_registers(target, w) or None) if cut.tile.across else None
        name = emit_convolution_micro_kernel(
            module, f"{symbol}.tile", target, self.e.fastmath, self.form, cut.tile, length, self.one_block
        )
        plain = replace(w, interior=(0, 0, 0))  # of what lies in a strip
        copying = TileCopy(c, plain, cut.tile, w.channels, cut.cells, image, self.form)
        _, p0, p1, p2, slices = (c.extent(extent) for extent in self.units)
        iterations = [c.extent(extent) for extent in w.phase_extents]
        with c.loop("%begin", "%end") as unit:
            slice_, remainder = c.rem(unit.index, slices), c.div(unit.index, slices)
            block2, remainder = c.rem(remainder, p2), c.div(remainder, p2)
            block1, remainder = c.rem(remainder, p1), c.div(remainder, p1)
            first0, n = c.rem(remainder, p0), c.div(remainder, p0)
            first = (first0, c.mul(block1, cut.lines), c.mul(block2, cut.places))
            high = c.min(cut.lines, c.sub(iterations[1], first[1]))
            wide = c.min(cut.places, c.sub(iterations[2], first[2]))
            self._strip(copying, n, first, high, wide, slice_)
            with self._phases(first, (1, high, wide)) as phase, c.loop(0, phase.counts[0]):
                self._phase(tables, name, n, phase, slice_, finish, result)
        self.e.line("ret void")

    def _phase(
        self, tables: TapTables, name: str, n: Ref, phase: BlockPhase, slice_: Ref, finish: Finish, result: np.dtype
    ) -> None:
        """The tiles of a phase.  Blocks of a sum go one after the other for all places: the part of a filter's panel
        that is in use stays near.  Across groups, where a panel is short, neighbouring panels of a strip follow each
        other."""
        c, cut = self.c, self.cut
        _, high, wide = phase.counts
        begin, end = self._blocks_of(tables, phase)
        first_cell = self.strip_bytes // self.item

        def add(block: Ref, panel: Ref, row: Ref, place: Ref) -> None:
            cell = c.add(c.mul(row, self.w.stride[1] * cut.pixels), c.mul(place, self.w.stride[2]))
            column = c.mul(panel, cut.tile.columns) if cut.tile.across else 0
            a = c.at("%scratch", c.add(c.add(phase.cell, c.mul(cell, cut.cells)), column), self.item)
            number = c.add(c.mul(slice_, cut.panels), panel)
            b = c.at("%shared", c.mul(number, self.panel_bytes), 1)
            entry = c.at(tables.blocks, c.mul(block, 2), 8)
            run, count = (self.e.load(c.at(entry, k, 8), dt.int64, width=1).ref for k in (0, 1))
            runs = c.at(tables.runs, c.mul(run, RUN), 1)
            call_convolution_micro_kernel(c, name, a, b, totals(row, place), runs, count, c.compare("eq", block, begin))

        def totals(row: Ref, place: Ref) -> str:
            number = c.add(c.mul(c.div(row, cut.high), cut.tiles_of_line), c.div(place, cut.wide))
            at = 0 if self.one_block else c.mul(number, cut.tile.cells)
            return c.at("%scratch", c.add(at, first_cell), self.item)

        def hand_over(panel: Ref, row: Ref, place: Ref) -> None:
            self._finish(totals(row, place), n, phase, (row, place), (high, wide), slice_, panel, finish, result)

        @contextmanager
        def tiles() -> Iterator[tuple[Ref, Ref]]:
            with c.loop(0, high, cut.high) as row, c.loop(0, wide, cut.wide) as place:
                yield row.index, place.index

        def whole(panel: Ref, row: Ref, place: Ref) -> None:
            add(begin, panel, row, place)
            hand_over(panel, row, place)

        if self.one_block and cut.tile.across:
            with tiles() as tile, c.loop(0, cut.panels) as panel:
                whole(panel.index, *tile)
        elif self.one_block:
            with c.loop(0, cut.panels) as panel, tiles() as tile:
                whole(panel.index, *tile)
        else:
            with c.loop(0, cut.panels) as panel:
                with c.loop(begin, end) as block, tiles() as tile:
                    add(block.index, panel.index, *tile)
                with tiles() as tile:
                    hand_over(panel.index, *tile)

    def _strip(self, copying: TileCopy, n: Ref, first: Sequence[Ref], high: Ref, wide: Ref, slice_: Ref) -> None:
        """Copy what windows see at ``high`` lines of ``wide`` places of all phases from a first one."""
        c, w, cut, strips = self.c, self.w, self.cut, copying.strips
        at = copying.operand.start.at(IMAGE, n)
        lines = c.add(c.mul(c.sub(high, 1), w.stride[1]), w.reach[1])
        pixels = c.add(c.mul(c.sub(wide, 1), w.stride[2]), w.reach[2])
        s0, s1, s2 = (c.add(c.mul(first[axis], w.stride[axis]), self._input_at(axis, 0)[0]) for axis in range(3))
        apart = w.dilation[0] if w.interior[0] == 0 else 1
        channel = 0 if cut.tile.across else c.mul(slice_, w.channels)
        with c.loop(0, planes(w)) as plane, c.loop(0, lines) as line:
            cell = c.mul(c.add(c.mul(plane.index, cut.strip_lines), line.index), cut.pixels * cut.cells)
            to = c.at("%scratch", cell, self.item)
            plane0 = c.add(s0, c.mul(plane.index, apart))

            def copy(*where: Any) -> None:
                copying.copy(slice_, channel, w.channels, *where)

            strips.line(at, to, plane0, c.add(s1, line.index), s2, pixels, copy, cut.cells)

    # ---- phases

    def _input_at(self, axis: int, place: int | Ref) -> tuple[Ref, Ref]:
        """The element at or before the position where the window at a place of the first turn begins, and how far
        behind it that position lies."""
        c, gap, low = self.c, self.w.gap[axis], self.low[axis]
        at = c.sub(c.mul(place, self.w.step[axis]), low)
        if gap == 1:
            return at, 0
        before = c.max(low, 0)  # quotients are those of numbers that are not negative
        at = c.add(at, c.mul(before, gap))
        return c.sub(c.div(at, gap), before), c.rem(at, gap)

    @contextmanager
    def _phases(self, first: Sequence[Ref], counts: Sequence[Ref]) -> Iterator[BlockPhase]:
        """Phase by phase, what of it lies in a block of so many turns from a first one."""
        c, w, cut = self.c, self.w, self.cut
        p0, p1, p2 = w.phases
        with c.loop(0, p0) as at0, c.loop(0, p1) as at1, c.loop(0, p2) as at2:
            numbers = (at0.index, at1.index, at2.index)
            kind: Ref = 0
            cell: Ref = 0
            extents: list[Ref] = []
            for axis, number in enumerate(numbers):
                element, behind = self._input_at(axis, number)
                kind = c.add(c.mul(kind, w.gap[axis]), behind)
                pitch = (cut.plane, cut.pixels * cut.cells, cut.cells)[axis]
                if w.phases[axis] > 1:
                    cell = c.add(cell, c.mul(c.sub(element, self._input_at(axis, 0)[0]), pitch))
                    left = c.sub(c.extent(w.places[axis]), number)
                    mine = c.div(c.add(left, w.phases[axis] - 1), w.phases[axis])  # at least 1 - phases + phases - 1
                    extents.append(c.min(counts[axis], c.sub(mine, first[axis])))
                else:
                    extents.append(counts[axis])
            yield BlockPhase(numbers, (first[0], first[1], first[2]), (extents[0], extents[1], extents[2]), kind, cell)

    def _blocks_of(self, tables: TapTables, phase: BlockPhase) -> tuple[Ref, Ref]:
        """The entries of the blocks of a phase."""
        if len(tables.starts) == 2:
            return tables.starts
        starts = self.e.table(np.array(tables.starts), f"starts_{_name(np.array(tables.starts))}")
        begin, end = (
            self.e.load(self.c.at(starts, self.c.add(phase.kind, k), 8), dt.int64, width=1).ref for k in (0, 1)
        )
        return begin, end

    def _tables(self) -> TapTables:
        """The runs of each block of the depth, for windows that begin at or behind an element."""
        w, cut = self.w, self.cut
        starts, blocks = [0], []
        runs: list[tuple[int, int, int]] = []
        for behind in itertools.product(*map(range, w.gap)):
            by_block: dict[int, list[tuple[int, int, int]]] = {}
            for start, position, length in self._runs(behind):
                at = 0
                while at < length:
                    block = (position + at) // K_BLOCK
                    count = min(length - at, (block + 1) * K_BLOCK - position - at)
                    run = (start + at * cut.tile.step, count, (position + at) * cut.tile.columns)
                    by_block.setdefault(block, []).append(run)
                    at += count
            for block in sorted(by_block) or [-1]:
                blocks.append((len(runs), len(by_block.get(block, ()))))
                runs += by_block.get(block, ())
            starts.append(len(blocks))
        names = []
        for what, rows in (("runs", runs), ("blocks", blocks)):
            values = np.array(rows, np.int64).reshape(-1)
            names.append(self.e.table(values, f"{what}_{_name(values)}") if rows else "null")
        return TapTables(names[0], names[1], tuple(starts))

    def _runs(self, behind: Sequence[int]) -> Iterator[tuple[int, int, int]]:
        """Where a run begins in a strip, where in the depth, and its length: of the elements of a window that see
        elements of an image, if it begins so far behind one."""
        w, cut = self.w, self.cut
        taps = run_of_taps(w)
        for i, j, k in itertools.product(range(w.size[0]), range(w.size[1]), range(0, w.size[2], taps)):
            at = [b + t * d for b, t, d in zip(behind, (i, j, k), w.dilation)]
            if any(p % gap for p, gap in zip(at, w.gap)):
                continue
            plane = i if w.gap[0] == 1 else at[0] // w.gap[0]
            start = plane * cut.plane + (at[1] // w.gap[1] * cut.pixels + at[2] // w.gap[2]) * cut.cells
            tap = (i * w.size[1] + j) * w.size[2] + k
            yield start, tap * w.channels, taps * w.channels

    def _finish(
        self,
        totals: str,
        n: Ref,
        phase: BlockPhase,
        at: tuple[Ref, Ref],
        end: tuple[Ref, Ref],
        slice_: Ref,
        panel: Ref,
        finish: Finish,
        result: np.dtype,
    ) -> None:
        c, e, w, cut = self.c, self.e, self.w, self.cut
        tile = cut.tile
        number = c.add(c.mul(slice_, cut.panels), panel) if tile.across else panel
        column = c.mul(number, tile.columns)
        even = self.columns % tile.columns == 0
        width = tile.columns if even else c.min(tile.columns, c.sub(self.columns, column))
        base = column if tile.across else c.add(c.mul(slice_, w.columns), column)
        rows = c.min(cut.high, c.sub(end[0], at[0]))
        places = c.min(cut.wide, c.sub(end[1], at[1]))
        with c.loop(0, rows) as row, c.loop(0, places, as_written=False) as place:
            line = c.at(totals, c.mul(c.add(c.mul(row.index, cut.wide), place.index), tile.columns), self.item)
            iteration = (0, c.add(at[0], row.index), c.add(at[1], place.index))
            numbers = zip(phase.first, iteration, w.phases, phase.numbers)
            where = (n, *(c.add(c.mul(c.add(a, b), phases), r) for a, b, phases, r in numbers))

            def hand_over(j: Ref, mask: Val | None) -> None:
                value = e.convert(e.load(c.at(line, j, self.item), self.form.sums), result)
                finish(where, c.add(base, j), value, mask)

            c.vector_loop(0, width, tile.width, hand_over)


# ---- one element at a time


def _elementwise(
    c: KernelBuilder, w: WindowGeometry, image: Operand, filter: Operand, finish: Finish, result: np.dtype
) -> None:
    """A thread of a GPU computes whole elements."""
    e, form = c.e, form_for(result)
    e.width = 1
    strips = PaddedTiles(c, w, image, form, 1)
    columns, places = c.extent(w.groups * w.columns), [c.extent(extent) for extent in w.places]
    with c.loop("%begin", "%end") as unit:
        column, remainder = c.rem(unit.index, columns), c.div(unit.index, columns)
        place: list[Ref] = []
        for extent in reversed(places):
            place.insert(0, c.rem(remainder, extent))
            remainder = c.div(remainder, extent)
        group = c.div(column, w.columns)
        x = image.start.at(IMAGE, remainder)
        f = filter.start.at(BATCH, group).at(FREE, c.rem(column, w.columns))

        def term(k: Ref) -> tuple[Val, Val, str | bool]:
            tap, channel = c.div(k, w.channels), c.rem(k, w.channels)
            taps = (c.div(tap, w.size[1] * w.size[2]), c.rem(c.div(tap, w.size[2]), w.size[1]), c.rem(tap, w.size[2]))
            a = window_element(strips, x, place, taps, c.add(c.mul(group, w.channels), channel))
            b = factor(e, f.value(f.counters_at(DEPTH, k)), form, False)
            return a, b, strips.multiplied(place, taps)

        total = sum_products(c, form, w.taps * w.channels, term)
        finish((remainder, *place), column, e.convert(total, result), None)


def window_element(
    strips: PaddedTiles, image: OperandAccess, place: Sequence[Ref], taps: Sequence[Ref], channel: Ref
) -> Val:
    """The element that the window at a place has there."""
    c, e = strips.c, strips.e
    if strips.nowhere:
        return e.zero(strips.form.packed)
    some: str | bool = True
    for axis in range(3):
        inside, at = strips.source(axis, strips.position(axis, place[axis], taps[axis]))
        some = c.both(some, inside)
        image = image.at(AXES[axis], at)
    value = factor(e, image.value(image.counters_at(CHANNELS, channel)), strips.form, True)
    return value if some is True else e.select(Val(str(some).lower(), dt.bool_, 1), value, 0)


def sum_products(
    c: KernelBuilder, form: PackedFormat, depth: Ref, term: Callable[[Ref], tuple[Val, Val, str | bool]]
) -> Val:
    """The sum of ``depth`` products in the order of blocks: of those factors of which ``term`` says that they count."""
    e = c.e
    if depth == 0:
        return e.zero(form.sums)
    with c.loop(0, depth, K_BLOCK, [e.zero(form.sums)]) as block:
        last = c.min(c.add(block.index, K_BLOCK), depth)
        with c.loop(block.index, last, 1, [e.zero(form.sums)]) as iteration:
            a, b, counts = term(iteration.index)
            total = multiply_add(e, form, a, b, iteration.carried[0])
            if counts is not True:
                total = e.select(Val(str(counts).lower(), dt.bool_, 1), total, iteration.carried[0])
            iteration.next = [total]
        block.next = [e.add(block.carried[0], iteration.carried[0])]
    return block.carried[0]


def _steps(extent: Extent, step: int) -> Extent:
    return (extent + (step - 1)) // step


def _name(values: np.ndarray) -> str:
    """A name for a table, the same for equal ones."""
    return hashlib.blake2b(values.tobytes(), digest_size=8).hexdigest()
