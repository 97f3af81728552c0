"""Convolutions by tiles of GPU threads: products whose first factor is what windows see of images.

No window is copied: what a tile needs of an image is read, with the zeros around it, on its way to memory of the block.
For ``convolve`` rows are places and the depth goes through what a window sees; for the derivative by the filter it is
the other way round.

Where zeros lie between the elements of an image, ``convolve`` multiplies nothing with them.  The places of a phase (see
``padded_input_tiles.WindowGeometry``) have them at the same elements of the window: each phase is a batch entry of its
own, for which the filter has zeros there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from hybridflow.compiler.codegen.core.kernel_builder import KernelBuilder, Ref
from hybridflow.compiler.codegen.core.llvm_values import Val
from hybridflow.compiler.codegen.core.operand import Operand, OperandAccess
from hybridflow.compiler.codegen.gpu.shared_memory_operands import FactorOperand, OperandLine, SharedOperand, widest
from hybridflow.compiler.codegen.gpu.thread_group import ThreadGroup
from hybridflow.compiler.codegen.products.packed_formats import PackedFormat, factor
from hybridflow.compiler.codegen.products.packing import DEPTH, FREE
from hybridflow.compiler.codegen.products.padded_input_tiles import AXES, CHANNELS, IMAGE, PaddedTiles, WindowGeometry
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.extents import Extent

Refs3 = tuple[Ref, Ref, Ref]


@dataclass(frozen=True)
class WindowPosition:
    """An image, and the positions where the window at a place begins."""

    image: OperandAccess
    positions: Refs3


@dataclass(frozen=True)
class Tap:
    """How far behind that an element of the window lies, and its channel in the group."""

    offsets: Refs3
    channel: Ref


def digits(c: KernelBuilder, number: Ref, extents: Sequence[Extent]) -> tuple[Ref, list[Ref]]:
    """A row-major number behind some axis: the position along that, and along each of the others."""
    places: list[Ref] = []
    for extent in reversed(extents):
        places.insert(0, c.rem(number, c.extent(extent)))
        number = c.div(number, c.extent(extent))
    return number, places


def position_at(c: KernelBuilder, w: WindowGeometry, phase: Ref, row: Ref) -> tuple[Ref, list[Ref]]:
    """The image and the place of a row of a phase; phases with fewer places than the first have rows behind these."""
    image, iterations = digits(c, row, w.phase_extents)
    _, numbers = digits(c, phase, w.phases)
    return image, [
        c.add(c.mul(iteration, apart), number) for iteration, apart, number in zip(iterations, w.phases, numbers)
    ]


def phases_of(windows: WindowGeometry) -> int:
    return math.prod(windows.phases)


def tap_at(c: KernelBuilder, w: WindowGeometry, number: Ref) -> Refs3:
    """An element of the window, by its number."""
    above = c.div(number, w.size[2])
    return c.div(above, w.size[1]), c.rem(above, w.size[1]), c.rem(number, w.size[2])


class WindowOperand(SharedOperand):
    """What windows see: elements of a window and their channels along ``taps``, rows or the depth; places along the
    other.  Batch entries are groups, and, if places are rows, phases of each."""

    def __init__(
        self,
        code: KernelBuilder,
        group: ThreadGroup,
        form: PackedFormat,
        tile: int,
        step: int,
        extent: Ref,
        k: Ref,
        windows: WindowGeometry,
        operand: Operand,
        taps: int,
    ) -> None:
        self.windows, self.operand, self.taps = windows, operand, taps
        self.strips = PaddedTiles(code, windows, operand, form, 1)
        self.lane, width = operand.loops[CHANNELS][-1], 1
        if len(operand.loops[CHANNELS]) == 1:
            width = widest(operand, self.lane, windows.channels, tile * step // group.size, step)
        along = taps if windows.channels > 1 else DEPTH + FREE - taps
        super().__init__(code, group, form, True, tile, step, extent, k, along, width)

    def line(self, entry: Ref, free: Ref) -> tuple[Ref, WindowPosition | Tap]:
        """The group, and what is known of the row."""
        if self.taps == FREE:
            return entry, self._tap(0, free)
        phases = phases_of(self.windows)
        image, place = position_at(self.c, self.windows, self.c.rem(entry, phases), free)
        return self.c.div(entry, phases), self._place(image, place)

    def at_depth(self, begin: Ref, depth: Ref) -> WindowPosition | Tap:
        if self.taps == DEPTH:
            return self._tap(begin, depth)
        return self._place(*digits(self.c, self.c.add(begin, depth), self.windows.places))

    def _place(self, image: Ref, place: Sequence[Ref]) -> WindowPosition:
        x, y, z = (self.strips.position(axis, place[axis]) for axis in range(3))
        return WindowPosition(self.operand.start.at(IMAGE, image), (x, y, z))

    def _tap(self, begin: Ref, behind: Ref) -> Tap:
        """Of the row or the place along the depth so far behind ``begin``, where a part begins or nothing does: all of
        it lies in one element of the window where channels come in whole parts."""
        c, w = self.c, self.windows
        if w.channels % self.step == 0:
            number, channel = c.div(begin, w.channels), c.add(c.rem(begin, w.channels), behind)
            if begin == 0:
                number, channel = c.div(behind, w.channels), c.rem(behind, w.channels)
        else:
            at = c.add(begin, behind)
            number, channel = c.div(at, w.channels), c.rem(at, w.channels)
        x, y, z = (c.mul(tap, dilation) for tap, dilation in zip(tap_at(c, w, number), w.dilation))
        return Tap((x, y, z), channel)

    def values(self, places: Sequence[tuple[tuple[Ref, WindowPosition | Tap], WindowPosition | Tap]]) -> list[Val]:
        if self.strips.nowhere:
            return [self.e.zero(self.form.packed, self.width) for _ in places]
        seen = [
            self._position_read(group, *((a, b) if isinstance(a, WindowPosition) else (b, a)))
            for (group, a), b in places
        ]
        if self.width == 1:
            values = [self._element(image, channel, 0) for image, channel, _ in seen]
        else:
            pointers = [place.pointer for place in self.operand.places.values()]
            values = self.either(
                pointers,
                lambda: [self._vector(image, channel) for image, channel, _ in seen],
                lambda: [
                    self.e.vector_of([self._element(image, channel, k) for k in range(self.width)])
                    for image, channel, _ in seen
                ],
            )
        with self.c.width(self.width):
            return [self._or_zero(value, some) for value, (_, _, some) in zip(values, seen)]

    def _position_read(self, group: Ref, place: object, tap: object) -> tuple[OperandAccess, Ref, str | bool]:
        """Where an element is read, its channel among those of all groups, and whether there is one."""
        assert isinstance(place, WindowPosition) and isinstance(tap, Tap)
        c, image = self.c, place.image
        some: str | bool = True
        for axis in range(3):
            inside, at = self.strips.source(axis, c.add(place.positions[axis], tap.offsets[axis]))
            some = c.both(some, inside)
            image = image.at(AXES[axis], at)
        return image, c.add(c.mul(group, self.windows.channels), tap.channel), some

    def _vector(self, image: OperandAccess, channel: Ref) -> Val:
        with self.c.width(self.width):
            value = image.value(image.counters_at(CHANNELS, channel), self.lane)
            return factor(self.e, value, self.form, True)

    def _element(self, image: OperandAccess, channel: Ref, behind: int) -> Val:
        with self.c.width(1):
            value = image.value(image.counters_at(CHANNELS, self.c.add(channel, behind)))
            return factor(self.e, value, self.form, True)

    def _or_zero(self, value: Val, some: str | bool) -> Val:
        e = self.e
        if some is True:
            return value
        return e.select(e.splat(Val(str(some).lower(), dt.bool_, 1)), value, e.zero(value.dtype))


class PhasedFilter(FactorOperand):
    """A filter by groups and phases, columns, and what a window sees: zeros where a phase multiplies nothing."""

    def __init__(
        self,
        code: KernelBuilder,
        group: ThreadGroup,
        form: PackedFormat,
        tile: int,
        step: int,
        k: Ref,
        windows: WindowGeometry,
        operand: Operand,
    ) -> None:
        self.windows = windows
        super().__init__(code, group, form, False, tile, step, windows.columns, k, operand, windows.channels)

    def line(self, entry: Ref, free: Ref) -> OperandLine:
        phases = phases_of(self.windows)
        return replace(super().line(self.c.div(entry, phases), free), offset=self.c.rem(entry, phases))

    def values(self, places: Sequence[tuple[OperandLine, Ref]]) -> list[Val]:
        c, e = self.c, self.e
        multiplied = [self._multiplied(line.offset, depth) for line, depth in places]
        values = super().values(places)
        with c.width(self.width):
            return [
                value
                if some is True
                else e.select(e.splat(Val(str(some).lower(), dt.bool_, 1)), value, e.zero(value.dtype))
                for value, some in zip(values, multiplied)
            ]

    def _multiplied(self, phase: Ref, depth: Ref) -> str | bool:
        """Whether the element of the window there lies at elements of images."""
        c, w = self.c, self.windows
        _, numbers = digits(c, phase, w.phases)
        taps = tap_at(c, w, c.div(depth, w.channels))
        result: str | bool = True
        for axis, gap in enumerate(w.gap):
            if gap > 1:  # the position, and as many zeros more as make it positive
                low = c.extent(w.low[axis])
                at = c.add(c.mul(numbers[axis], w.step[axis]), c.mul(taps[axis], w.dilation[axis]))
                at = c.add(c.sub(at, low), c.mul(c.max(low, 0), gap))
                result = c.both(result, c.compare("eq", c.rem(at, gap), 0))
        return result
