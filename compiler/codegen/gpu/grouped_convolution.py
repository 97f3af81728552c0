"""Convolutions of groups of few columns on a GPU, and their derivatives by the filter: threads with bundles of sums.

A tile of a product would be nearly empty there.  Of the neighbours in a bundle (``loops/grouped_conv_tiles.py``)
elements are read in vectors where they lie so; each element of an image or a filter once a turn, for all sums that it
goes into.  The order of every sum is that of ``ops/evaluation_order.py``: blocks of a derivative's places may be
different threads', and a second phase adds them up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Union

import numpy as np

from hybridflow.compiler.codegen.core.kernel_builder import KernelBuilder, Ref
from hybridflow.compiler.codegen.core.llvm_values import Val
from hybridflow.compiler.codegen.core.operand import Operand, OperandAccess
from hybridflow.compiler.codegen.gpu.group_convolution import digits, tap_at
from hybridflow.compiler.codegen.gpu.shared_memory_operands import widest
from hybridflow.compiler.codegen.products.packed_formats import PackedFormat, factor, multiply_add
from hybridflow.compiler.codegen.products.packing import DEPTH, FREE
from hybridflow.compiler.codegen.products.padded_input_tiles import (
    AXES,
    CHANNELS,
    IMAGE,
    Finish,
    PaddedTiles,
    WindowGeometry,
)
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.extents import Extent
from hybridflow.compiler.loops.grouped_conv_tiles import RegisterTile
from hybridflow.compiler.loops.tuning import VECTOR_BYTES
from hybridflow.compiler.ops.evaluation_order import K_BLOCK

Row = tuple[Sequence[Ref], Union[str, bool]]
"""A row of the result, as ``Finish`` is told of it, and whether there is one."""

StoreRow = Callable[[Sequence[Ref], Sequence[Val]], None]


@dataclass(frozen=True)
class Neighbours:
    """How a bundle's elements of a factor are read: ``count`` of them along a part, ``width`` at once."""

    operand: Operand
    part: int
    count: int
    width: int
    first: bool

    @classmethod
    def of(cls, operand: Operand, part: int, extent: Extent, count: int, first: bool) -> Neighbours:
        width = 1
        if len(operand.loops[part]) == 1:
            even = count & -count
            width = widest(operand, operand.loops[part][-1], extent, even, even)
        return cls(operand, part, count, width, first)


@dataclass(frozen=True)
class Source:
    """Neighbours from an element on, there where ``some`` is so; else they are zeros."""

    neighbours: Neighbours
    reading: OperandAccess
    begin: Ref
    some: str | bool


@dataclass(frozen=True)
class Factors:
    """What a bundle multiplies: images, and a filter or cotangents; its first channel and its first column."""

    strips: PaddedTiles
    image: Neighbours
    other: Neighbours
    channel: Ref
    column: Ref


@dataclass(frozen=True)
class ImageLine:
    """A line of an image, there where ``some`` is so."""

    reading: OperandAccess
    some: str | bool


class GroupedConvolution:
    """The code of one phase.  ``buffers`` are the addresses of all that it reads or writes, ``stored`` how many
    neighbouring columns may be handed to ``finish`` at once."""

    def __init__(
        self,
        code: KernelBuilder,
        w: WindowGeometry,
        bundle: RegisterTile,
        form: PackedFormat,
        result: np.dtype,
        buffers: Sequence[str],
        stored: int,
    ) -> None:
        self.c, self.e, self.w, self.bundle, self.form, self.result = code, code.e, w, bundle, form, result
        self.columns, self.channels = bundle.groups * w.columns, bundle.groups * w.channels
        self.stored = stored
        code.e.width = 1
        self.aligned = code.multiples(buffers, VECTOR_BYTES)

    def _zeros(self, count: int) -> list[Val]:
        return [self.e.zero(self.form.sums)] * count

    # ---- reading

    def _factors(self, image: Operand, other: Operand, bundle: Ref) -> Factors:
        c, w = self.c, self.w
        return Factors(
            PaddedTiles(c, w, image, self.form, 1),
            Neighbours.of(image, CHANNELS, w.groups * w.channels, self.channels, True),
            Neighbours.of(other, FREE, w.groups * w.columns, self.columns, False),
            c.mul(bundle, self.channels),
            c.mul(bundle, self.columns),
        )

    def _read(self, sources: Sequence[Source]) -> list[list[Val]]:
        """The elements of each source, all of which are asked for before any is needed."""

        def vectors(whole: bool) -> list[Val]:
            return [value for source in sources for value in self._vectors(source, whole)]

        some_vectors = any(source.neighbours.width > 1 for source in sources)
        read = iter(self.c.either_way(not some_vectors or self.aligned, lambda: vectors(True), lambda: vectors(False)))
        result = []
        for source in sources:
            vectors_read = [next(read) for _ in range(0, source.neighbours.count, source.neighbours.width)]
            elements = [self.e.extract(vector, lane) for vector in vectors_read for lane in range(vector.width)]
            result.append([self._or_zero(value, source.some) for value in elements])
        return result

    def _vectors(self, source: Source, whole: bool) -> list[Val]:
        """The vectors of a source, read as they lie, or element by element.  Both ways end in vectors: of one that is
        taken apart at once LLVM would read the elements."""
        from_, result = source.neighbours, []
        for k in range(0, from_.count, from_.width):
            if source.some is False:  # there may be nothing to read
                result.append(self.e.zero(self.form.packed, from_.width))
            elif whole:
                result.append(self._element(source, k, from_.width))
            else:
                result.append(self.e.vector_of([self._element(source, k + lane, 1) for lane in range(from_.width)]))
        return result

    def _element(self, source: Source, number: int, width: int) -> Val:
        from_, reading = source.neighbours, source.reading
        lane = from_.operand.loops[from_.part][-1] if width > 1 else None
        counters = reading.counters_at(from_.part, self.c.add(source.begin, number))
        with self.c.width(width):
            return factor(self.e, reading.value(counters, lane), self.form, from_.first)

    def _or_zero(self, value: Val, some: str | bool) -> Val:
        if isinstance(some, bool):
            return value if some else self.e.zero(value.dtype)
        return self.e.select(Val(some, dt.bool_, 1), value, 0)

    def _line(self, of: Factors, n: Ref, places: Sequence[Ref], taps: Sequence[Ref]) -> ImageLine:
        """The line of an image that an element of the window at a place sees."""
        strips, image = of.strips, of.image.operand.start.at(IMAGE, n)
        some: str | bool = not strips.nowhere
        for axis in (0, 1):
            inside, at = strips.source(axis, strips.position(axis, places[axis], taps[axis]))
            some, image = self.c.both(some, inside), image.at(AXES[axis], at)
        return ImageLine(image, some)

    def _value_at(self, of: Factors, line: ImageLine, position: Ref) -> Source:
        """What lies at a position of a line of an image."""
        inside, at = of.strips.source(2, position)
        return Source(of.image, line.reading.at(AXES[2], at), of.channel, self.c.both(line.some, inside))

    def _both(
        self, of: Factors, line: ImageLine, begin: Ref, apart: int, others: Sequence[Source]
    ) -> tuple[list[list[list[Val]]], list[list[Val]]]:
        """What the bundle's places, so many positions ``apart``, see of a line, for each element of the window in an
        iteration. The first place sees the first of them at a position; and the elements of the ``others``."""
        each, between = self.bundle, self.w.dilation[2]
        offsets = [[k * apart + tap * between for tap in range(each.taps)] for k in range(each.places)]
        distinct = sorted({offset for of_place in offsets for offset in of_place})
        sources = [self._value_at(of, line, self.c.add(begin, offset)) for offset in distinct]
        elements = self._read([*sources, *others])
        seen = dict(zip(distinct, elements))
        return [[seen[offset] for offset in of_place] for of_place in offsets], elements[len(distinct) :]

    # ---- adding

    def _added(self, sums: list[Val], x: list[Val], y: list[Val], channel: int, some: str | bool = True) -> list[Val]:
        """Sums of the columns of each group with products of one of its channels."""
        e, w = self.e, self.w
        result = []
        for column, (total, other) in enumerate(zip(sums, y, strict=True)):
            value = multiply_add(e, self.form, x[column // w.columns * w.channels + channel], other, total)
            if some is not True:
                value = e.select(Val(str(some).lower(), dt.bool_, 1), value, total)
            result.append(value)
        return result

    # ---- storing

    def _finish(self, finish: Finish, row: Callable[[Ref], Row], column: Ref, sums: Sequence[Val]) -> None:
        """Hand the sums of rows over, each those of the columns from one on."""
        widths = [(self.stored, self.aligned), (1, self.c.negation(self.aligned))] if self.stored > 1 else [(1, True)]

        def store(line: Sequence[Ref], of_row: Sequence[Val]) -> None:
            for width, condition in widths:
                with self.c.when(condition):
                    self._columns(line, column, of_row, width, self.result, finish)

        self._rows(row, sums, store)

    def _rows(self, row: Callable[[Ref], Row], sums: Sequence[Val], store: StoreRow) -> None:
        """Sums go round, so that one piece of code serves all rows."""
        c, each = self.c, self.columns
        with c.loop(0, len(sums) // each, 1, sums) as iteration:
            line, exists = row(iteration.index)
            with c.when(exists):
                store(line, iteration.carried[:each])
            iteration.next = [*iteration.carried[each:], *iteration.carried[:each]]

    def _columns(
        self, line: Sequence[Ref], column: Ref, sums: Sequence[Val], width: int, dtype: np.dtype, store: Finish
    ) -> None:
        c, e = self.c, self.e
        with c.loop(0, len(sums), width, sums) as iteration:
            value = e.vector_of(iteration.carried[:width])
            with c.width(width):
                store(line, c.add(column, iteration.index), e.convert(value, dtype), None)
            iteration.next = [*iteration.carried[width:], *iteration.carried[:width]]

    # ---- convolutions

    def convolution_units(self) -> tuple[Extent, ...]:
        """Images, phases and, of each, places and bundles of groups."""
        w, each = self.w, self.bundle
        runs = (w.phase_extents[2] + (each.places - 1)) // each.places
        return (w.images, *w.phases, *w.phase_extents[:2], runs, w.groups // each.groups)

    def convolution(self, image: Operand, filter: Operand, finish: Finish) -> None:
        c, w, each = self.c, self.w, self.bundle
        with c.loop("%begin", "%end") as unit:
            n, (*numbers, turn0, turn1, run, bundle) = digits(c, unit.index, self.convolution_units()[1:])
            iterations = (turn0, turn1, c.mul(run, each.places))
            place = [c.add(c.mul(t, apart), r) for t, apart, r in zip(iterations, w.phases, numbers)]
            of = self._factors(image, filter, bundle)
            inside: str | bool = True
            for axis in range(3):
                some = w.phases[axis] == 1 and (axis < 2 or each.places == 1)
                inside = c.both(inside, some or c.compare("slt", place[axis], c.extent(w.places[axis])))
            with c.when(inside):
                sums = self._sums(of, n, place)
                last, whole = w.places[2], each.places * w.phases[2]
                even = isinstance(last, int) and last % whole == 0

                def row(k: Ref) -> Row:
                    at = c.add(place[2], c.mul(k, w.phases[2]))
                    return (n, place[0], place[1], at), even or c.compare("slt", at, c.extent(last))

                self._finish(finish, row, of.column, sums)

    def _sums(self, of: Factors, n: Ref, place: Sequence[Ref]) -> list[Val]:
        """The sums of a bundle's columns, of one place behind the other."""
        c, e, w, taps = self.c, self.e, self.w, self.bundle.taps
        zeros = self._zeros(self.bundle.places * self.columns)
        of_block = K_BLOCK // w.channels  # a block ends with an element of the window, if there are several
        with c.loop(0, w.taps, of_block, zeros) as block:
            end = c.min(c.add(block.index, of_block), w.taps)
            with c.loop(block.index, end, taps, zeros) as iteration:
                iteration.next = self._with_taps(of, n, place, iteration.index, iteration.carried)
            block.next = [e.add(total, added) for total, added in zip(block.carried, iteration.carried)]
        return block.carried

    def _with_taps(self, of: Factors, n: Ref, place: Sequence[Ref], number: Ref, sums: list[Val]) -> list[Val]:
        """The sums with the products of some neighbouring elements of the window, from one of that number on."""
        c, w, each, strips = self.c, self.w, self.bundle, of.strips
        first = tap_at(c, w, number)
        if each.taps == w.size[2]:
            first = (first[0], first[1], 0)
        depth, filter = c.mul(number, w.channels), of.other.operand.start
        factors = [
            Source(of.other, filter.at(DEPTH, c.add(depth, k)), of.column, True) for k in range(each.taps * w.channels)
        ]
        begin, apart = strips.position(2, place[2], first[2]), w.phases[2] * w.step[2]
        seen, weights = self._both(of, self._line(of, n, place, first), begin, apart, factors)
        for tap in range(each.taps):
            multiplied = strips.multiplied(place, (first[0], first[1], c.add(first[2], tap)))
            for channel in range(w.channels):
                y, before, sums = weights[tap * w.channels + channel], sums, []
                for k in range(each.places):
                    partial_sums = before[k * self.columns : (k + 1) * self.columns]
                    sums += self._added(partial_sums, seen[k][tap], y, channel, multiplied)
        return sums

    # ---- derivatives by the filter

    def gradient_units(self) -> tuple[Extent, ...]:
        """Runs of elements of the window, and bundles of groups."""
        return self.w.taps // self.bundle.taps, self.w.groups // self.bundle.groups

    def gradient(self, image: Operand, cotangents: Operand, finish: Finish) -> None:
        """A unit goes through all places."""
        c, e = self.c, self.e
        depth = c.mul(c.extent(self.w.images), c.product(self.w.places))
        with c.loop("%begin", "%end") as unit:
            run, bundle = self._run_and_bundle(unit.index)
            of = self._factors(image, cotangents, bundle)
            zeros = self._zeros(self.bundle.taps * self.w.channels * self.columns)
            with c.loop(0, depth, K_BLOCK, zeros) as block:
                end = c.min(c.add(block.index, K_BLOCK), depth)
                sums = self._over_places(of, run, block.index, end)
                block.next = [e.add(total, added) for total, added in zip(block.carried, sums)]
            first = self._row(run)
            self._finish(finish, lambda k: ((c.add(first, k),), True), of.column, block.carried)

    def gradient_of_blocks(self, image: Operand, cotangents: Operand) -> None:
        """A unit goes through one block of places, and leaves its sums in shared memory: [block][row][column]."""
        c, w = self.c, self.w
        depth = c.mul(c.extent(w.images), c.product(w.places))
        units, columns = c.product(self.gradient_units()), c.extent(w.groups * w.columns)
        item = self.form.sums.itemsize
        width = min(self.columns & -self.columns, VECTOR_BYTES // item)
        with c.loop("%begin", "%end") as unit:
            number = c.div(unit.index, units)
            run, bundle = self._run_and_bundle(c.rem(unit.index, units))
            of, begin = self._factors(image, cotangents, bundle), c.mul(number, K_BLOCK)
            sums = self._over_places(of, run, begin, c.min(c.add(begin, K_BLOCK), depth))
            first = c.add(self._row(run), c.mul(number, w.taps * w.channels))

            def keep(line: Sequence[Ref], column: Ref, value: Val, mask: Val | None) -> None:
                at = c.at("%shared", c.add(c.mul(line[0], columns), column), item)
                self.e.store(value, at, align=value.width * item)

            def store(line: Sequence[Ref], of_row: Sequence[Val]) -> None:
                self._columns(line, of.column, of_row, width, self.form.sums, keep)

            self._rows(lambda k: ((c.add(first, k),), True), sums, store)

    def totals(self, blocks: Extent, finish: Finish) -> None:
        """A unit is an element: the sums of all blocks of places, in order."""
        c, e, w = self.c, self.e, self.w
        columns = c.extent(w.groups * w.columns)
        size = c.mul(w.taps * w.channels, columns)
        with c.loop("%begin", "%end") as unit:
            with c.loop(0, c.extent(blocks), 1, self._zeros(1)) as block:
                at = c.at("%shared", c.add(c.mul(block.index, size), unit.index), self.form.sums.itemsize)
                block.next = [e.add(block.carried[0], e.load(at, self.form.sums))]
            (total,) = block.carried
            row, column = c.div(unit.index, columns), c.rem(unit.index, columns)
            finish((row,), column, e.convert(total, self.result), None)

    def _over_places(self, of: Factors, run: Ref, begin: Ref, end: Ref) -> list[Val]:
        """The sums of a unit, row by row, over a block of places, line by line."""
        c, w, each = self.c, self.w, self.bundle
        taps, length = tap_at(c, w, c.mul(run, each.taps)), c.extent(w.places[2])
        zeros = self._zeros(each.taps * w.channels * self.columns)
        lines = c.div(c.add(end, c.sub(length, 1)), length)
        with c.loop(c.div(begin, length), lines, 1, zeros) as at:
            n, place = digits(c, at.index, w.places[:2])
            line, before = self._line(of, n, place, taps), c.mul(at.index, length)
            first, last = c.max(c.sub(begin, before), 0), c.min(c.sub(end, before), length)
            with c.loop(first, last, each.places, at.carried) as iteration:
                iteration.next = self._with_places(of, line, before, iteration.index, last, taps[2], iteration.carried)
            at.next = iteration.carried
        return at.carried

    def _with_places(
        self, of: Factors, line: ImageLine, before: Ref, place: Ref, last: Ref, tap: Ref, sums: list[Val]
    ) -> list[Val]:
        """The sums with the products of some neighbouring places of a line, ``before`` which so many lie: behind its
        end both factors are zeros, which may change the sign of a sum that is zero, and the total does not show it."""
        c, w, each = self.c, self.w, self.bundle
        exist = [k == 0 or c.compare("slt", c.add(place, k), last) for k in range(each.places)]
        places = [c.choose(there, c.add(place, k), place) for k, there in enumerate(exist)]
        start = of.other.operand.start
        others = [
            Source(of.other, start.at(DEPTH, c.add(before, at)), of.column, there) for at, there in zip(places, exist)
        ]
        seen, cotangents = self._both(of, line, of.strips.position(2, place, tap), w.step[2], others)
        for there, elements_seen, y in zip(exist, seen, cotangents):
            after: list[Val] = []
            for elements in elements_seen:
                x = [self._or_zero(value, there) for value in elements]
                for channel in range(w.channels):
                    after += self._added(sums[len(after) : len(after) + self.columns], x, y, channel)
            sums = after
        return sums

    def _run_and_bundle(self, unit: Ref) -> tuple[Ref, Ref]:
        bundles = self.c.extent(self.w.groups // self.bundle.groups)
        return self.c.div(unit, bundles), self.c.rem(unit, bundles)

    def _row(self, run: Ref) -> Ref:
        """The first row of a run of elements of the window."""
        return self.c.mul(run, self.bundle.taps * self.w.channels)
