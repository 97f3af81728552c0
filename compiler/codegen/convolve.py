"""Convolutions: strips of images, packed filters, and tiles of sums in registers.

The order of a sum (``ops/order.py``), hence its bits, is that of a product's blocks, whatever the target, the tile or
the cut of the work.

What a window sees of an image lies at fixed distances once a strip of the image, a few lines, has been copied with its
zeros (``strips.py``); so no window is ever copied by itself.  The tile (``window_kernel.py``) holds the sums of some
neighbouring places for some columns.  Its first factors are single numbers, which go with a vector of the filter; of
groups with few columns the vectors go *across* groups, and a strip then has a number for each element of a line of
columns.

``convolve`` has two phases: the filter packed by panels of columns, in shared memory, and blocks of places.  Of its
derivative by the filter the elements are sums over all places: see ``convolve_filter.py``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hybridflow.compiler.codegen.factors import Form, How, factor, multiply_add
from hybridflow.compiler.codegen.module import ModuleText
from hybridflow.compiler.codegen.operand import Operand, Reading
from hybridflow.compiler.codegen.packing import BATCH, DEPTH, FREE, Packing
from hybridflow.compiler.codegen.phases import KernelCode, Phase, kernel_parameters
from hybridflow.compiler.codegen.strips import AXES, CHANNELS, IMAGE, Copying, Image, Strips, Windows
from hybridflow.compiler.codegen.structured import Code, Ref, lanes_for
from hybridflow.compiler.codegen.values import Val
from hybridflow.compiler.codegen.window_kernel import (
    WindowTile,
    call_window_kernel,
    choose_window_tile,
    emit_window_kernel,
)
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.extents import Extent
from hybridflow.compiler.ops.order import K_BLOCK
from hybridflow.compiler.target import Target

Finish = Callable[[Sequence[Ref], Ref, Val, "Val | None"], None]
"""``finish(line, column, value, mask)`` stores a finished vector: of the line of the result at those positions of all
axes but its columns, the elements from a column on."""

UNKNOWN_IMAGES = 4  # for how many a symbolic number of images is taken when work is cut
ENOUGH_UNITS = 16


@dataclass(frozen=True)
class Cut:
    """How a convolution is cut: the tile, the lines and places of a block, and the columns of a slice.  A strip has
    ``cells`` cells for each of ``pixels`` pixels of a line."""

    tile: WindowTile
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
    def plane(self) -> int:
        """Cells of a strip for one element of a window along the first axis."""
        return self.strip_lines * self.pixels * self.cells


def known(extent: Extent, otherwise: int) -> int:
    return extent if isinstance(extent, int) else otherwise


def form_for(dtype: np.dtype) -> Form:
    sums = dt.compute_dtype(dtype)
    return Form(How.EACH, sums, sums)


def is_across(target: Target, w: Windows, dtype: np.dtype) -> bool:
    """Whether vectors go across groups: those have too few columns to fill one."""
    return isinstance(w.groups, int) and w.groups > 1 and w.columns < min(target.lanes(8 * dtype.itemsize), 16)


def elements_of_a_line(w: Windows) -> int:
    """Columns of all groups, where vectors go across them."""
    assert isinstance(w.groups, int)
    return w.groups * w.columns


def choose_cut(target: Target, w: Windows, dtype: np.dtype) -> Cut:
    across = is_across(target, w, dtype)
    columns = elements_of_a_line(w) if across else w.columns
    width = lanes_for(target, dtype, columns)
    lines, places = known(w.places[1], 64), known(w.places[2], 64)
    depth = w.taps * w.channels
    high, wide, vectors = choose_window_tile(
        target, dtype, max(lines, 1), max(places, 1), columns, width, across, min(depth, K_BLOCK)
    )
    panel = vectors * width
    panels = -(-columns // panel)
    cells = w.channels * panel if across else w.channels
    slices = panels if across else w.groups

    def strip(count: int, axis: int) -> int:
        return (count - 1) * w.step[axis] + w.span[axis]

    budget = target.l2 // 4 // dtype.itemsize
    least_lines = strip(high, 1) * w.size[0] * cells
    most = max(wide, (budget // max(least_lines, 1) - w.span[2]) // w.step[2] + 1)
    across_places = even(places, most, wide)
    pixels = strip(across_places, 2)
    others = known(w.images, UNKNOWN_IMAGES) * known(w.places[0], 1) * known(slices, 1) * -(-places // across_places)
    wanted = -(-lines * others // ENOUGH_UNITS)  # so many lines leave enough units for the threads
    fitting = (budget // max(w.size[0] * pixels * cells, 1) - w.span[1]) // w.step[1] + 1
    block_lines = even(lines, max(high, min(fitting, max(wanted, 4 * high))), high)
    offsets = tuple((r * w.step[1] * pixels + j * w.step[2]) * cells for r in range(high) for j in range(wide))
    tile = WindowTile(offsets, panel if across else 1, vectors, width, across)
    return Cut(
        tile, high, wide, block_lines, across_places, cells, pixels, strip(block_lines, 1), slices,
        1 if across else panels,
    )  # fmt: skip


def even(extent: int, most: int, grain: int) -> int:
    """The step of the least number of equal steps of whole grains, about ``most`` at the most."""
    steps = -(-max(extent, 1) // max(most, 1))
    each = -(-max(extent, 1) // steps)
    return -(-each // grain) * grain


def emit_convolution(
    module: ModuleText,
    new_code: Callable[[], Code],
    symbol: str,
    w: Windows,
    image: Image,
    filter: Callable[[Code, bool], Operand],
    finish: Callable[[Code], Finish],
    buffers: int,
    result: np.dtype,
) -> KernelCode:
    """Add the kernel ``symbol`` over ``buffers`` buffers.

    ``image(code, across, whole)`` reads images by the parts of ``strips`` and, ``across``, by channels and elements of
    a line of columns; ``whole`` joins the last axis with the channels.  ``filter(code, across)`` reads the filter by
    the parts of ``packing``.  Units: packed panels; then blocks of places, on a GPU elements of the result.
    """
    target = new_code().e.target
    if target.kind == "cuda":
        code = new_code()
        _elementwise(code, w, image(code, False, False), filter(code, False), finish(code), result)
        code.e.line("ret void")
        name = module.function(code.e, symbol, kernel_parameters(buffers), linkage="internal")
        units = (w.images, *w.places, w.groups * w.columns)
        return KernelCode((Phase(name, units),))
    form = form_for(result)
    cut = choose_cut(target, w, form.sums)
    pack = new_code()
    panels = _Convolution(pack, w, cut, form)
    panels.pack(filter(pack, cut.tile.across))
    first = module.function(pack.e, f"{symbol}_pack", kernel_parameters(buffers), linkage="internal")
    code = new_code()
    main = _Convolution(code, w, cut, form)
    main.blocks(module, symbol, image, finish(code), result)
    second = module.function(code.e, symbol, kernel_parameters(buffers), linkage="internal")
    shared = cut.slices * cut.panels * main.panel_bytes
    return KernelCode(
        (Phase(first, (cut.slices, cut.panels), checks=True), Phase(second, main.units)), main.scratch, shared
    )


class _Convolution:
    """One phase being emitted."""

    def __init__(self, code: Code, w: Windows, cut: Cut, form: Form) -> None:
        self.c, self.e, self.w, self.cut, self.form = code, code.e, w, cut, form
        self.item = form.sums.itemsize
        self.depth = w.taps * w.channels
        self.columns = elements_of_a_line(w) if cut.tile.across else w.columns  # of a slice, or of all of them
        self.panel_bytes = -(-self.depth * cut.tile.columns * self.item // 64) * 64
        strip = w.size[0] * cut.plane * self.item
        self.strip_bytes = -(-(strip + self._slack()) // 64) * 64
        self.scratch = self.strip_bytes + cut.tile.cells * self.item

    def _slack(self) -> int:
        """Bytes behind a strip that rows of a tile beyond its last place may read."""
        return (self.cut.tile.rows[-1] + self.cut.cells * self.cut.pixels) * self.item + 64

    # ---- the filter

    def pack(self, operand: Operand) -> None:
        """Units: slices by panels."""
        c, tile = self.c, self.cut.tile
        packing = Packing(c, operand, self.form, tile.width, False)
        turned = operand.along(DEPTH) > operand.along(FREE)
        with c.spans("%begin", "%end", self.cut.panels) as (slice_, first, last), c.loop(first, last) as panel:
            number = c.add(c.mul(slice_, self.cut.panels), panel.index)
            to = c.at("%shared", c.mul(number, self.panel_bytes), 1)
            at = operand.start if tile.across else operand.start.at(BATCH, slice_)
            column = c.mul(number if tile.across else panel.index, tile.columns)
            count = c.min(tile.columns, c.sub(self.columns, column))
            write = packing.turned if turned else packing.panel
            write(at, to, tile.columns, column, count, 0, self.depth)
        self.e.line("ret void")

    # ---- blocks of places

    @property
    def units(self) -> tuple[Extent, ...]:
        p = self.w.places
        return (self.w.images, p[0], _steps(p[1], self.cut.lines), _steps(p[2], self.cut.places), self.cut.slices)

    def blocks(
        self,
        module: ModuleText,
        symbol: str,
        image: Image,
        finish: Finish,
        result: np.dtype,
    ) -> None:
        c, w, cut = self.c, self.w, self.cut
        name = emit_window_kernel(module, f"{symbol}.tile", self.e.target, self.e.fastmath, self.form, cut.tile)
        tables = self._tables()
        copying = Copying(c, w, cut.tile, w.channels, cut.cells, image, self.form)
        _, p0, p1, p2, slices = (c.extent(extent) for extent in self.units)
        lines, places = c.extent(w.places[1]), c.extent(w.places[2])
        with c.loop("%begin", "%end") as unit:
            slice_, rest = c.rem(unit.index, slices), c.div(unit.index, slices)
            block2, rest = c.rem(rest, p2), c.div(rest, p2)
            block1, rest = c.rem(rest, p1), c.div(rest, p1)
            first0, n = c.rem(rest, p0), c.div(rest, p0)
            first1, first2 = c.mul(block1, cut.lines), c.mul(block2, cut.places)
            high = c.min(cut.lines, c.sub(lines, first1))
            wide = c.min(cut.places, c.sub(places, first2))
            self._strip(copying, n, (first0, first1, first2), high, wide, slice_)

            def store(row: Ref, place: Ref, panel: Ref, totals: str) -> None:
                self._finish(
                    totals, (n, first0, first1, first2), (row, place), (high, wide), slice_, panel, finish, result
                )

            with c.loop(0, cut.panels) as panel, c.loop(0, high, cut.high) as row, c.loop(0, wide, cut.wide) as place:
                a = c.mul(c.add(c.mul(row.index, w.step[1] * cut.pixels), c.mul(place.index, w.step[2])), cut.cells)
                number = c.add(c.mul(slice_, cut.panels), panel.index)
                b = c.at("%shared", c.mul(number, self.panel_bytes), 1)
                totals = c.at("%scratch", self.strip_bytes, 1)
                for k, (table, count) in enumerate(tables):
                    here = c.at(b, k * K_BLOCK * cut.tile.columns, self.item)
                    at = c.at("%scratch", a, self.item)
                    call_window_kernel(c, name, at, here, totals, table, count, k == 0)
                store(row.index, place.index, panel.index, totals)
        self.e.line("ret void")

    def _strip(self, copying: Copying, n: Ref, first: Sequence[Ref], high: Ref, wide: Ref, slice_: Ref) -> None:
        """Copy what windows see at ``high`` lines of ``wide`` places from a first one."""
        c, w, cut, strips = self.c, self.w, self.cut, copying.strips
        at = copying.operand.start.at(IMAGE, n)
        lines = c.add(c.mul(c.sub(high, 1), w.step[1]), w.span[1])
        pixels = c.add(c.mul(c.sub(wide, 1), w.step[2]), w.span[2])
        q1, q2 = strips.position(1, first[1]), strips.position(2, first[2])
        channel = 0 if cut.tile.across else c.mul(slice_, w.channels)
        with c.loop(0, w.size[0]) as plane, c.loop(0, lines) as line:
            cell = c.mul(c.add(c.mul(plane.index, cut.strip_lines), line.index), cut.pixels * cut.cells)
            to = c.at("%scratch", cell, self.item)
            q0 = strips.position(0, first[0], plane.index)

            def copy(*where: Any) -> None:
                copying.copy(slice_, channel, w.channels, *where)

            strips.line(at, to, q0, c.add(q1, line.index), q2, pixels, copy, cut.cells)

    def _tables(self) -> list[tuple[str, int]]:
        """For each block of the depth a table of its runs, and how many there are."""
        w, cut = self.w, self.cut
        joined = w.dilation[2] == 1
        run = (w.size[2] if joined else 1) * w.channels
        starts = [
            i * cut.plane + (j * w.dilation[1] * cut.pixels + k * w.dilation[2]) * cut.cells
            for i in range(w.size[0])
            for j in range(w.size[1])
            for k in range(1 if joined else w.size[2])
        ]
        blocks: list[list[tuple[int, int]]] = [[]]
        done = 0
        for start in starts:
            at = 0
            while at < run:
                if done == K_BLOCK:
                    blocks.append([])
                    done = 0
                length = min(run - at, K_BLOCK - done)
                blocks[-1].append((start + at * cut.tile.step, length))
                at, done = at + length, done + length
        found = []
        for runs in blocks:
            values = np.array(runs, np.int64).reshape(-1)
            found.append((self.e.table(values, f"runs_{_name(values)}") if runs else "null", len(runs)))
        return found

    def _finish(
        self,
        totals: str,
        first: tuple[Ref, Ref, Ref, Ref],
        at: tuple[Ref, Ref],
        end: tuple[Ref, Ref],
        slice_: Ref,
        panel: Ref,
        finish: Finish,
        result: np.dtype,
    ) -> None:
        c, e, w, cut = self.c, self.e, self.w, self.cut
        tile = cut.tile
        column = c.mul(slice_ if tile.across else panel, tile.columns)
        width = c.min(tile.columns, c.sub(self.columns, column))
        base = column if tile.across else c.add(c.mul(slice_, w.columns), column)
        rows = c.min(cut.high, c.sub(end[0], at[0]))
        places = c.min(cut.wide, c.sub(end[1], at[1]))
        with c.loop(0, rows) as row, c.loop(0, places) as place:
            line = c.at(totals, c.mul(c.add(c.mul(row.index, cut.wide), place.index), tile.columns), self.item)
            where = (
                first[0],
                first[1],
                c.add(first[2], c.add(at[0], row.index)),
                c.add(first[3], c.add(at[1], place.index)),
            )

            def hand_over(j: Ref, mask: Val | None) -> None:
                value = e.convert(e.load(c.at(line, j, self.item), self.form.sums), result)
                finish(where, c.add(base, j), value, mask)

            c.vector_loop(0, width, tile.width, hand_over)


# ---- one element at a time


def _elementwise(c: Code, w: Windows, image: Operand, filter: Operand, finish: Finish, result: np.dtype) -> None:
    """A thread of a GPU computes whole elements."""
    e, form = c.e, form_for(result)
    e.width = 1
    strips = Strips(c, w, image, form, 1)
    columns, places = c.extent(w.groups * w.columns), [c.extent(extent) for extent in w.places]
    with c.loop("%begin", "%end") as unit:
        column, rest = c.rem(unit.index, columns), c.div(unit.index, columns)
        place: list[Ref] = []
        for extent in reversed(places):
            place.insert(0, c.rem(rest, extent))
            rest = c.div(rest, extent)
        group = c.div(column, w.columns)
        x = image.start.at(IMAGE, rest)
        f = filter.start.at(BATCH, group).at(FREE, c.rem(column, w.columns))

        def term(k: Ref) -> tuple[Val, Val]:
            tap, channel = c.div(k, w.channels), c.rem(k, w.channels)
            taps = (c.div(tap, w.size[1] * w.size[2]), c.rem(c.div(tap, w.size[2]), w.size[1]), c.rem(tap, w.size[2]))
            a = seen(strips, x, place, taps, c.add(c.mul(group, w.channels), channel))
            return a, factor(e, f.value(f.counters_at(DEPTH, k)), form, False)

        total = summed(c, form, w.taps * w.channels, term)
        finish((rest, *place), column, e.convert(total, result), None)


def seen(strips: Strips, image: Reading, place: Sequence[Ref], taps: Sequence[Ref], channel: Ref) -> Val:
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


def summed(c: Code, form: Form, depth: Ref, term: Callable[[Ref], tuple[Val, Val]]) -> Val:
    """The sum of ``depth`` products in the order of blocks."""
    e = c.e
    if depth == 0:
        return e.zero(form.sums)
    with c.loop(0, depth, K_BLOCK, [e.zero(form.sums)]) as block:
        last = c.min(c.add(block.index, K_BLOCK), depth)
        with c.loop(block.index, last, 1, [e.zero(form.sums)]) as turn:
            a, b = term(turn.index)
            turn.next = [multiply_add(e, form, a, b, turn.carried[0])]
        block.next = [e.add(block.carried[0], turn.carried[0])]
    return block.carried[0]


def _steps(extent: Extent, step: int) -> Extent:
    return (extent + (step - 1)) // step


def _name(values: np.ndarray) -> str:
    """A name for a table, the same for equal ones."""
    return hashlib.blake2b(values.tobytes(), digest_size=8).hexdigest()
