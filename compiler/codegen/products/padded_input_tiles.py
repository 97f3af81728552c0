"""Strips: what windows see of an image, copied so that all of it lies at fixed distances, zeros included.

An image is read as x[n, s0, s1, s2, channels]: three axes of which the first ones may have a single element.  Positions
q along an axis count the zeros between its elements, and may lie outside, where zeros are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hybridflow.compiler.codegen.core.kernel_builder import KernelBuilder, Ref, lanes_for
from hybridflow.compiler.codegen.core.llvm_values import Val
from hybridflow.compiler.codegen.core.operand import Operand, OperandAccess
from hybridflow.compiler.codegen.core.tile_transpose import transpose_in_registers
from hybridflow.compiler.codegen.products.convolution_micro_kernel import ConvolutionTile
from hybridflow.compiler.codegen.products.packed_formats import PackedFormat, factor
from hybridflow.compiler.ir.extents import Extent
from hybridflow.compiler.loops.tuning import TRANSPOSE_SQUARE

IMAGE, AXES, CHANNELS = 0, (1, 2, 3), 4  # parts of an operand

LAYOUT = 4  # vectors of a line that are copied in a turn

Extents3 = tuple[int, int, int]
Image = Callable[[KernelBuilder, bool, bool], Operand]
"""``image(code, across, whole)``: images by the parts IMAGE, AXES and CHANNELS.  ``whole`` joins the last axis and the
channels of all groups to one part; ``across`` has in place of the channels the groups, and behind them the channels
of a group."""

Finish = Callable[[Sequence[Ref], Ref, Val, "Val | None"], None]
"""``finish(line, column, value, mask)`` stores a finished vector: of the line of the result at those positions of all
axes but its columns, the elements from a column on."""

Copy = Callable[[OperandAccess, str, Ref, Ref], None]
"""``copy(line, to, begin, end)`` copies pixels of a line of an image."""


@dataclass(frozen=True)
class WindowGeometry:
    """Windows over images, along three axes: see ops/convolution.py.  ``groups`` of ``channels`` channels go into as
    many groups of ``columns``."""

    images: Extent
    extents: tuple[Extent, Extent, Extent]
    places: tuple[Extent, Extent, Extent]
    size: Extents3
    step: Extents3
    low: tuple[Extent, Extent, Extent]
    interior: Extents3
    dilation: Extents3
    groups: Extent
    channels: int
    columns: int

    def __str__(self) -> str:
        def text(extents: tuple[Extent, ...]) -> str:
            return "x".join(map(str, extents))

        return (
            f"{self.images} of {text(self.extents)} to {text(self.places)}, windows {text(self.size)} by "
            f"{text(self.step)} from {text(self.low)}, interior {text(self.interior)}, dilation {text(self.dilation)}, "
            f"{self.groups} groups of {self.channels} to {self.columns}"
        )

    @property
    def span(self) -> Extents3:
        """How many positions a window takes along each axis."""
        a, b, c = ((k - 1) * d + 1 for k, d in zip(self.size, self.dilation))
        return a, b, c

    @property
    def taps(self) -> int:
        return self.size[0] * self.size[1] * self.size[2]

    # Places fall into phases where zeros lie between neighbours of an image: those of a phase, which lie ``phases``
    # apart, see elements with the same elements of the window, and zeros with the others.

    @property
    def gap(self) -> Extents3:
        """How many positions each element has, with the zeros behind it."""
        a, b, c = (n + 1 for n in self.interior)
        return a, b, c

    @property
    def phases(self) -> Extents3:
        a, b, c = (gap // math.gcd(gap, step) for gap, step in zip(self.gap, self.step))
        return a, b, c

    @property
    def stride(self) -> Extents3:
        """How many elements lie between what neighbouring places of a phase see."""
        a, b, c = (step // math.gcd(gap, step) for gap, step in zip(self.gap, self.step))
        return a, b, c

    @property
    def reach(self) -> Extents3:
        """How many elements one place of each phase sees together with the others, at the most."""
        a, b, c = (
            ((phases - 1) * step + gap - 1 + (k - 1) * d) // gap + 1
            for phases, step, gap, k, d in zip(self.phases, self.step, self.gap, self.size, self.dilation)
        )
        return a, b, c

    @property
    def phase_extents(self) -> tuple[Extent, Extent, Extent]:
        """How many places the first phase has along each axis."""
        a, b, c = ((n + (phases - 1)) // phases for n, phases in zip(self.places, self.phases))
        return a, b, c


class PaddedTiles:
    """Copies lines of images for windows over them.  A pixel of a strip has ``cells`` cells: the channels from a first
    one, or of as many ``repeats`` at a time, those of each element of a line of columns."""

    def __init__(
        self, code: KernelBuilder, windows: WindowGeometry, operand: Operand, form: PackedFormat, width: int
    ) -> None:
        self.c, self.e, self.windows, self.operand, self.form, self.width = code, code.e, windows, operand, form, width
        self.item = form.packed.itemsize
        self.extents = tuple(code.extent(extent) for extent in windows.extents)
        self.low = tuple(code.extent(low) for low in windows.low)
        self.nowhere = 0 in windows.extents

    # ---- positions

    def source(self, axis: int, q: Ref) -> tuple[str | bool, Ref]:
        """Whether an element lies at a position of an axis, and which: some other where there is none."""
        c, gap = self.c, self.windows.interior[axis] + 1
        inside = c.compare("sge", q, 0)
        safe = c.max(q, 0)
        if gap > 1:
            inside = c.both(inside, c.compare("eq", c.rem(safe, gap), 0))
            safe = c.div(safe, gap)
        inside = c.both(inside, c.compare("slt", safe, self.extents[axis]))
        return inside, c.choose(inside, safe, 0)

    def position(self, axis: int, place: Ref, tap: Ref = 0) -> Ref:
        """Where an element of a window lies."""
        c, w = self.c, self.windows
        at = c.add(c.mul(place, w.step[axis]), c.mul(tap, w.dilation[axis]))
        return c.sub(at, self.low[axis])

    def multiplied(self, place: Sequence[Ref], taps: Sequence[Ref]) -> str | bool:
        """Whether an element of the window at a place lies at an element, or outside, and not at zeros in between."""
        c = self.c
        result: str | bool = True
        for axis, gap in enumerate(self.windows.gap):
            if gap > 1:  # the position, and as many zeros more as make it positive
                at = c.add(self.position(axis, place[axis], taps[axis]), c.mul(c.max(self.low[axis], 0), gap))
                result = c.both(result, c.compare("eq", c.rem(at, gap), 0))
        return result

    # ---- lines

    def line(
        self,
        at: OperandAccess,
        to: str,
        q0: Ref,
        q1: Ref,
        first: Ref,
        pixels: Ref,
        copy: Copy,
        cells: int,
    ) -> None:
        """The pixels from position ``first`` of the line at (q0, q1), ``cells`` cells each: ``copy(line, to, begin,
        end)`` copies pixels of the image."""
        c = self.c
        if self.nowhere:
            self.zeros(to, c.mul(pixels, cells))
            return
        (some0, s0), (some1, s1) = self.source(0, q0), self.source(1, q1)
        some = c.both(some0, some1)
        with c.when(c.negation(some)):
            self.zeros(to, c.mul(pixels, cells))
        with c.when(some):
            line = at.at(AXES[0], s0).at(AXES[1], s1)
            if self.windows.interior[2]:
                self._spread(line, to, first, pixels, copy, cells)
            else:
                begin = c.min(c.max(c.sub(0, first), 0), pixels)
                end = c.max(c.min(c.sub(self.extents[2], first), pixels), begin)
                self.zeros(to, c.mul(begin, cells))
                copy(line, c.at(to, c.mul(begin, cells), self.item), c.add(first, begin), c.add(first, end))
                self.zeros(c.at(to, c.mul(end, cells), self.item), c.mul(c.sub(pixels, end), cells))

    def _spread(self, line: OperandAccess, to: str, first: Ref, pixels: Ref, copy: Copy, cells: int) -> None:
        c, gap = self.c, self.windows.interior[2] + 1
        self.zeros(to, c.mul(pixels, cells))
        begin = c.div(c.add(c.max(first, 0), gap - 1), gap)
        behind = c.max(c.add(first, pixels), 0)
        end = c.min(c.div(c.add(behind, gap - 1), gap), self.extents[2])
        with c.loop(begin, end) as pixel:
            into = c.sub(c.mul(pixel.index, gap), first)
            copy(line, c.at(to, c.mul(into, cells), self.item), pixel.index, c.add(pixel.index, 1))

    def zeros(self, to: str, count: Ref) -> None:
        def store(i: Ref, mask: Val | None) -> None:
            self.e.store(self.e.zero(self.form.packed), self.c.at(to, i, self.item), mask)

        self.c.vector_loop(0, count, self.width, store)

    # ---- pixels

    def whole(self, line: OperandAccess, to: str, begin: Ref, end: Ref) -> None:
        """Pixels with all of their channels, which lie side by side along one loop with the pixels: the operand's last
        axis and its channels are one part."""
        c, (loop,) = self.c, self.operand.loops[AXES[2]]
        channels = c.extent(self.windows.groups * self.windows.channels)
        start = c.mul(begin, channels)

        def copy(i: Ref, mask: Val | None) -> None:
            value = line.value({loop: c.add(start, i)}, loop, mask)
            self.e.store(factor(self.e, value, self.form, True), c.at(to, i, self.item), mask)

        even = isinstance(channels, int) and channels % self.width == 0
        count = c.mul(c.sub(end, begin), channels)
        c.vector_loop(0, count, LAYOUT * self.width, copy, rest_width=self.width, exact_rest=even)

    def channels(self, line: OperandAccess, to: str, begin: Ref, end: Ref, first: Ref, count: Ref, pitch: int) -> None:
        """Pixels with ``count`` channels from ``first``, pixels ``pitch`` cells apart."""
        c, e, operand = self.c, self.e, self.operand
        square = min(self.width, TRANSPOSE_SQUARE)
        whole: Ref = begin
        single = len(operand.loops[AXES[2]]) == 1
        if single and square > 1 and operand.along(AXES[2]) > operand.along(CHANNELS):
            whole = c.add(begin, c.mul(c.div(c.sub(end, begin), square), square))
            self._transpose(line, to, begin, whole, first, count, pitch, square)
        with c.loop(whole, end, as_written=False) as pixel:
            here = line.at(AXES[2], pixel.index)
            target = c.at(to, c.mul(c.sub(pixel.index, begin), pitch), self.item)
            with here.runs(CHANNELS, first, c.add(first, count)) as (outer, start, stop, behind):
                run = here.with_(outer)
                into = c.at(target, c.sub(behind, first), self.item)
                loop = operand.loops[CHANNELS][-1]

                def copy(i: Ref, mask: Val | None) -> None:
                    value = run.value({loop: i}, loop, mask)
                    e.store(factor(e, value, self.form, True), c.at(into, i, self.item), mask)

                c.vector_loop(start, stop, self.width, copy)

    def repeat(self, line: OperandAccess, to: str, begin: Ref, end: Ref, first: Ref, count: Ref, pitch: int) -> None:
        """Pixels with each channel as often as its group has columns: ``count`` columns of all groups from ``first``,
        lines of ``pitch`` columns for one channel after the other."""
        c, w = self.c, self.windows
        group0 = c.div(first, w.columns)
        groups = c.div(c.add(c.add(first, count), w.columns - 1), w.columns)
        pixel_cells = pitch * w.channels
        with c.loop(begin, end) as pixel, c.loop(group0, groups) as group:
            here = line.at(AXES[2], pixel.index).at(CHANNELS, group.index)
            into = c.at(to, c.mul(c.sub(pixel.index, begin), pixel_cells), self.item)
            column = c.sub(c.mul(group.index, w.columns), first)
            with c.loop(0, w.channels) as channel:
                with c.width(1):
                    counted_place = here.counters_at(CHANNELS + 1, channel.index)
                    value = factor(self.e, here.value(counted_place), self.form, True)
                cells = c.at(into, c.mul(channel.index, pitch), self.item)
                if pitch % w.columns == 0:
                    self._splat(value, c.at(cells, column, self.item), w.columns)
                else:
                    with c.loop(c.max(column, 0), c.min(c.add(column, w.columns), count)) as at, c.width(1):
                        self.e.store(value, c.at(cells, at.index, self.item))

    def _splat(self, value: Val, to: str, count: int) -> None:
        done = 0
        while done < count:
            width = min(self.width, 1 << ((count - done).bit_length() - 1))
            with self.c.width(width):
                self.e.store(self.e.splat(value), self.c.at(to, done, self.item))
            done += width

    def _transpose(
        self, line: OperandAccess, to: str, begin: Ref, end: Ref, first: Ref, count: Ref, pitch: int, square: int
    ) -> None:
        """Channels whose pixels lie side by side: by squares, turned in registers, and one by one where there are too
        few for that."""
        c, e = self.c, self.e
        (loop,) = self.operand.loops[AXES[2]]
        groups = c.mul(c.div(count, square), square)
        for start, stop, lines in ((0, groups, square), (groups, count, 1)):
            with c.loop(start, stop, lines) as at:
                here = [line.at(CHANNELS, c.add(first, c.add(at.index, t))) for t in range(lines)]
                with c.loop(begin, end, square) as pixel:
                    with c.width(square):
                        parts = [factor(e, one.value({loop: pixel.index}, loop), self.form, True) for one in here]
                    corner = c.at(to, c.add(c.mul(c.sub(pixel.index, begin), pitch), at.index), self.item)
                    transposed = (
                        transpose_in_registers(e, parts)
                        if lines > 1
                        else [e.extract(parts[0], t) for t in range(square)]
                    )
                    for t, pixels in enumerate(transposed):
                        e.store(pixels, c.at(corner, t * pitch, self.item))


class TileCopy:
    """Copies pixels as a tile reads them: ``channels`` channels of a group, or as many columns across groups as there
    are cells for, of all channels of their groups."""

    def __init__(
        self,
        c: KernelBuilder,
        w: WindowGeometry,
        tile: ConvolutionTile,
        channels: int,
        cells: int,
        image: Image,
        form: PackedFormat,
    ) -> None:
        self.c, self.w, self.tile, self.cells = c, w, tile, cells
        self.line = cells // max(channels, 1)  # columns of a pixel, across groups
        is_whole = w.channels == w.columns == 1 and w.groups == self.line if tile.across else w.groups == 1
        self.whole = is_whole and w.interior[2] == 0 and channels == w.channels
        if self.whole:
            self.operand = image(c, False, True)
            self.whole = len(self.operand.loops[AXES[2]]) == 1
        if not self.whole:
            self.operand = image(c, tile.across, False)
        self.strips = PaddedTiles(c, w, self.operand, form, lanes_for(c.e.target, form.packed, 4096))

    def copy(self, slice_: Ref, channel: Ref, count: Ref, line: OperandAccess, to: str, begin: Ref, end: Ref) -> None:
        """Pixels with ``count`` channels from ``channel``, or all channels of a slice's columns."""
        c, w, strips = self.c, self.w, self.strips
        if self.whole:
            strips.whole(line, to, begin, end)
        elif not self.tile.across:
            strips.channels(line, to, begin, end, channel, count, self.cells)
        else:
            first = c.mul(slice_, self.line)
            columns = c.min(self.line, c.sub(c.extent(w.groups * w.columns), first))
            if w.columns > 1:
                strips.repeat(line, to, begin, end, first, columns, self.line)
                return
            with c.loop(0, w.channels) as at:
                here = line.at(CHANNELS + 1, at.index)
                into = c.at(to, c.mul(at.index, self.line), strips.item)
                strips.channels(here, into, begin, end, first, columns, self.cells)
