"""Packing: a block of an operand of a product, laid out so that the micro-kernel finds elements at fixed distances.

An operand has three parts: batch, free (rows of the first factor, columns of the second) and depth, over which products
are summed.  Three ways to read it serve whatever order its elements have in memory; each writes the elements in the
dtype of the sums.

lines   rows one after the other, by vectors along the depth
panels  so many rows or columns together, depth by depth: by vectors along them
turned  the same panels of what lies along the depth: by squares, turned in registers

At the edge of the operand panels are filled up with anything that can be computed: nobody looks at what becomes of it.
"""

from __future__ import annotations

from collections.abc import Iterator

from hybridflow.compiler.codegen.core.emitter import Emitter
from hybridflow.compiler.codegen.core.kernel_builder import KernelBuilder, Ref
from hybridflow.compiler.codegen.core.llvm_values import Val
from hybridflow.compiler.codegen.core.operand import Operand, OperandAccess
from hybridflow.compiler.codegen.core.tile_transpose import transpose_in_registers
from hybridflow.compiler.codegen.products import amx_micro_kernel
from hybridflow.compiler.codegen.products.packed_formats import CELL, MultiplyKind, PackedFormat, factor
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.loops.tuning import CACHE_LINE, PREFETCHED_ROWS, TRANSPOSE_SQUARE

BATCH, FREE, DEPTH = 0, 1, 2

_DEAR = 16  # instructions of an element from which on it is not computed by code for each line of a square


class Packing:
    """Packs one operand, the ``first`` or the second factor, as ``form`` says, by vectors of up to ``width`` lanes."""

    def __init__(self, code: KernelBuilder, operand: Operand, form: PackedFormat, width: int, first: bool) -> None:
        self.code, self.e, self.operand, self.form, self.width = code, code.e, operand, form, width
        self.first = first
        self.free, self.depth = operand.loops[FREE][-1], operand.loops[DEPTH][-1]
        place = operand.in_memory
        self.lies = place if place is not None and place[1].is_affine else None

    # ---- elements

    def _value(self, at: OperandAccess, free: Ref | None, depth: Ref, along: int = 0, mask: Val | None = None) -> Val:
        """The elements at the innermost counters of both parts, by lanes along one of the parts."""
        counters = {self.depth: depth} if free is None else {self.free: free, self.depth: depth}
        lane = {FREE: self.free, DEPTH: self.depth}.get(along)
        return factor(self.e, at.value(counters, lane, mask), self.form, self.first)

    def _prefetch(self, at: OperandAccess, free: Ref | None, depth: Ref, bytes_: int = CACHE_LINE) -> None:
        """Ask for elements that will be packed soon, so many bytes side by side, where they lie in memory."""
        if self.lies is None:
            return
        counters = {self.depth: depth} if free is None else {self.free: free, self.depth: depth}
        start = at.address(*self.lies, counters)
        for line in range(0, bytes_, CACHE_LINE):
            self.e.prefetch(self.code.at(start, line, 1))

    def _at(self, base: str, position: Ref) -> str:
        return self.code.at(base, position, self.form.packed.itemsize)

    def _pieces(self, extent: int) -> Iterator[tuple[int, int]]:
        """(begin, width) of the widest vectors that fit: 14 is 8 + 4 + 2."""
        done = 0
        while done < extent:
            width = min(self.width, 1 << ((extent - done).bit_length() - 1))
            yield done, width
            done += width

    # ---- lines

    def lines(
        self, at: OperandAccess, to: str, pitch: int, first: Ref, height: Ref, padded: Ref, k: Ref, depth: Ref
    ) -> None:
        """Rows from ``first``, ``pitch`` elements apart; those from ``height`` to ``padded`` repeat the last."""
        c = self.code
        with c.loop(0, padded) as r:
            row = at.at(FREE, c.add(first, c.min(r.index, c.sub(height, 1))))
            later = at.at(FREE, c.add(first, c.min(c.add(r.index, PREFETCHED_ROWS), c.sub(height, 1))))
            line = self._at(to, c.mul(r.index, pitch))
            if self.form.group > 1:  # what fills up the last group, or tile, must not be NaN
                width = amx_micro_kernel.CELLS if self.form.multiply is MultiplyKind.TILES else 1
                last = c.mul(c.div(c.max(c.sub(self.form.cells(c, depth), 1), 0), width), width)
                self.e.store(self.e.zero(dt.int32, width), c.at(line, last, CELL))
            with row.runs(DEPTH, k, c.add(k, depth)) as (outer, begin, end, behind):
                here, there = row.with_(outer), later.with_(outer)
                into = self._at(line, c.sub(behind, k))
                whole = c.add(begin, c.mul(c.div(c.sub(end, begin), self.width), self.width))
                for start, stop, step in ((begin, whole, self.width), (whole, end, 1)):
                    if start == stop:
                        continue
                    with c.loop(start, stop, step) as at_k, c.width(step):
                        if step > 1:
                            self._prefetch(there, None, at_k.index)
                        self.e.store(self._value(here, None, at_k.index, DEPTH), self._at(into, at_k.index))

    # ---- panels

    def panels(
        self, at: OperandAccess, to: str, pitch: int, extent: int, first: Ref, count: Ref, k: Ref, depth: Ref
    ) -> None:
        """Panels of ``extent`` columns, ``pitch`` packed elements apart, of the ``count`` from ``first``: those of
        whole panels are read line by line, as they lie in memory."""
        c = self.code
        if len(self.operand.loops[FREE]) > 1:
            with c.loop(0, count, extent) as panel:
                start = self._at(to, c.mul(c.div(panel.index, extent), pitch))
                left = c.min(extent, c.sub(count, panel.index))
                self.panel(at, start, extent, c.add(first, panel.index), left, k, depth)
            return
        whole = c.div(count, extent)
        done = c.mul(whole, extent)
        size = self.free.extent
        if isinstance(size, int) and size % extent == 0:
            count = done
        with c.when(c.compare("sgt", whole, 0)):
            self._panels_by_lines(at, to, pitch, extent, first, done, k, depth)
        with c.when(c.compare("sgt", count, done)):
            start = self._at(to, c.mul(whole, pitch))
            self._part_of_panel(at, start, extent, c.add(first, done), c.sub(count, done), k, depth)

    def _panels_by_lines(
        self, at: OperandAccess, to: str, pitch: int, extent: int, first: Ref, count: Ref, k: Ref, depth: Ref
    ) -> None:
        c, bytes_ = self.code, extent * self.operand.dtype.itemsize
        with at.runs(DEPTH, k, c.add(k, depth)) as (outer, begin, end, behind):
            here = at.with_(outer)
            into = self._at(to, c.mul(c.sub(behind, k), extent))
            with c.loop(begin, end) as at_k:
                line = self._at(into, c.mul(at_k.index, extent))
                with c.loop(0, count, extent) as panel:
                    free = c.add(first, panel.index)
                    start = self._at(line, c.mul(c.div(panel.index, extent), pitch))
                    self._prefetch(here, c.add(free, count), at_k.index, bytes_)
                    for piece, width in self._pieces(extent):
                        with c.width(width):
                            value = self._value(here, c.add(free, piece), at_k.index, FREE)
                            self.e.store(value, self._at(start, piece))

    def panel(self, at: OperandAccess, to: str, extent: int, first: Ref, count: Ref, k: Ref, depth: Ref) -> None:
        """``extent`` rows or columns from ``first``, of which there are ``count``, depth by depth."""
        c = self.code
        whole = c.compare("eq", count, extent)
        if len(self.operand.loops[FREE]) > 1 and not self._pieces_fit(extent):
            size = c.extent(self.free.extent)
            whole = c.both(whole, c.compare("sle", c.add(c.rem(first, size), extent), size))
        with c.when(whole):
            self._panel_by_vectors(at, to, extent, first, None, k, depth)
        if whole is True:
            return
        with c.when(c.negation(whole)):
            self._part_of_panel(at, to, extent, first, count, k, depth)

    def _part_of_panel(
        self, at: OperandAccess, to: str, extent: int, first: Ref, count: Ref, k: Ref, depth: Ref
    ) -> None:
        """A panel that is not whole: the last one, since all begin at multiples of their extent."""
        size = self.free.extent
        if len(self.operand.loops[FREE]) > 1:
            self._panel_by_elements(at, to, extent, first, count, k, depth)
        elif self.e.target.masked:
            self._panel_by_vectors(at, to, extent, first, count, k, depth)
        elif isinstance(size, int):
            self._panel_by_pieces(at, to, extent, first, size % extent, k, depth)
        else:
            self._panel_by_elements(at, to, extent, first, count, k, depth)

    def _pieces_fit(self, extent: int) -> bool:
        """Whether none of the vectors of a panel lies in two runs, wherever the panel is: they begin at multiples of
        their width, as runs do."""
        size = self.free.extent
        return isinstance(size, int) and all(
            n % width == 0 for at, width in self._pieces(extent) for n in (at, extent, size)
        )

    def _panel_by_vectors(
        self, at: OperandAccess, to: str, extent: int, first: Ref, count: Ref | None, k: Ref, depth: Ref
    ) -> None:
        """All of a panel whose vectors lie in one run each; with a ``count`` less than its extent by masked vectors."""
        c = self.code
        pieces = list(self._pieces(extent))
        apart = len(self.operand.loops[FREE]) > 1 and self._pieces_fit(extent)
        runs = [at.counters_at(FREE, c.add(first, piece)) for piece, _ in pieces[: len(pieces) if apart else 1]]
        starts = [counters.pop(self.free) for counters in runs]
        masks: dict[int, Val] = {}
        if count is not None:
            for piece, width in pieces:
                with c.width(width):
                    masks[piece] = c.lanes_below(c.sub(count, piece))
        with at.runs(DEPTH, k, c.add(k, depth)) as (outer, begin, end, behind):
            here = [at.with_({**counters, **outer}) for counters in runs]
            into = self._at(to, c.mul(c.sub(behind, k), extent))
            with c.loop(begin, end) as at_k:
                line = self._at(into, c.mul(at_k.index, extent))
                behind_panel = c.add(starts[0], extent)
                self._prefetch(here[0], behind_panel, at_k.index, extent * self.operand.dtype.itemsize)
                for number, (piece, width) in enumerate(pieces):
                    run, free = (here[number], starts[number]) if apart else (here[0], c.add(starts[0], piece))
                    with c.width(width):
                        value = self._value(run, free, at_k.index, FREE, masks.get(piece))
                        self.e.store(value, self._at(line, piece))

    def _panel_by_pieces(
        self, at: OperandAccess, to: str, extent: int, first: Ref, count: int, k: Ref, depth: Ref
    ) -> None:
        """A panel that has so many, by shorter vectors; behind them are zeros."""
        c, e = self.code, self.e
        with at.runs(DEPTH, k, c.add(k, depth)) as (outer, begin, end, behind):
            here = at.with_(outer)
            into = self._at(to, c.mul(c.sub(behind, k), extent))
            with c.loop(begin, end) as at_k:
                line = self._at(into, c.mul(at_k.index, extent))
                for piece, width in self._pieces(count):
                    with c.width(width):
                        e.store(self._value(here, c.add(first, piece), at_k.index, FREE), self._at(line, piece))
                for piece, width in self._pieces(extent - count):
                    e.store(e.zero(self.form.packed, width), self._at(line, count + piece))

    def _panel_by_elements(
        self, at: OperandAccess, to: str, extent: int, first: Ref, count: Ref, k: Ref, depth: Ref
    ) -> None:
        c = self.code
        with c.loop(0, extent) as j, c.width(1):
            line = at.at(FREE, c.add(first, c.min(j.index, c.sub(count, 1))))
            with line.runs(DEPTH, k, c.add(k, depth)) as (outer, begin, end, behind):
                here = line.with_(outer)
                into = self._at(to, c.add(c.mul(c.sub(behind, k), extent), j.index))
                with c.loop(begin, end) as at_k:
                    self.e.store(self._value(here, None, at_k.index), self._at(into, c.mul(at_k.index, extent)))

    # ---- groups of neighbours along the depth

    def interleave(self, source: str, pitch: Ref, to: str, extent: int, depth: Ref) -> None:
        """A panel, whose lines lie ``pitch`` packed elements apart at ``source``, with the elements of each group side
        by side; the last group is filled up with zeros."""
        c, group = self.code, self.form.group
        whole = c.mul(c.div(depth, group), group)
        remainder = c.sub(depth, whole)
        with c.loop(0, whole, group) as at_k:
            self._interleaved_lines(source, pitch, to, extent, at_k.index, group)
        for count in range(1, group):
            with c.when(c.compare("eq", remainder, count)):
                self._interleaved_lines(source, pitch, to, extent, whole, count)

    def _interleaved_lines(self, source: str, pitch: Ref, to: str, extent: int, k: Ref, count: int) -> None:
        c, e, group, packed = self.code, self.e, self.form.group, self.form.packed
        lines = [self._at(source, c.mul(c.add(k, g), pitch)) for g in range(count)]
        into = self._at(to, c.mul(k, extent))
        for piece, width in self._pieces(extent):
            with c.width(width):
                parts = [e.load(self._at(line, piece), packed) for line in lines]
                parts += [e.zero(packed)] * (group - count)
                start = self._at(into, piece * group)
                if width == 1:
                    for g, part in enumerate(parts):
                        e.store(part, self._at(start, g))
                else:
                    e.store(_interleave(e, parts), start)

    def transpose_cells(self, source: str, extent: int, to: str, pitch: int, cells: Ref) -> None:
        """Lines, ``pitch`` cells apart, from a panel of ``extent`` of them that has been interleaved; ``cells`` are a
        multiple of those of a square, ``extent`` is one of ``width``."""
        c, e, width = self.code, self.e, self.width
        with c.loop(0, extent, width) as line, c.loop(0, cells, TRANSPOSE_SQUARE) as at:
            start = c.at(source, c.add(c.mul(at.index, extent), line.index), CELL)
            rows = [e.load(c.at(start, i * extent, CELL), dt.int32, width=width) for i in range(TRANSPOSE_SQUARE)]
            corner = c.at(to, c.add(c.mul(line.index, pitch), at.index), CELL)
            for i, transposed in enumerate(transpose_in_registers(e, rows)):
                for first in range(0, width, TRANSPOSE_SQUARE):
                    part = e.shuffle(transposed, transposed, range(first, first + TRANSPOSE_SQUARE))
                    e.store(part, c.at(corner, (first + i) * pitch, CELL))

    # ---- panels of what lies along the depth

    def transpose(self, at: OperandAccess, to: str, extent: int, first: Ref, count: Ref, k: Ref, depth: Ref) -> None:
        """A panel like that of ``panel``, by vectors along the depth; ``extent`` is a multiple of ``width``."""
        if self.operand.work > _DEAR:
            self._strewn(at, to, extent, first, count, k, depth)
            return
        c, e, lanes, square = self.code, self.e, self.width, min(self.width, TRANSPOSE_SQUARE)
        last = c.sub(count, 1)
        with c.loop(0, extent, lanes) as group:
            lines = [at.at(FREE, c.add(first, c.min(c.add(group.index, t), last))) for t in range(lanes)]
            with at.runs(DEPTH, k, c.add(k, depth)) as (outer, begin, end, behind):
                here = [line.with_(outer).opaque() for line in lines]
                into = self._at(to, c.add(c.mul(c.sub(behind, k), extent), group.index))
                whole = c.add(begin, c.mul(c.div(c.sub(end, begin), square), square))
                with c.loop(begin, whole, square) as at_k:
                    with c.width(square):
                        parts = [self._value(line, None, at_k.index, DEPTH) for line in here]
                    # Two squares of 8 lie side by side in vectors of 16.
                    rows = (
                        parts if lanes == square else [e.shuffle(a, b, range(lanes)) for a, b in zip(parts, parts[8:])]
                    )
                    corner = self._at(into, c.mul(at_k.index, extent))
                    for t, transposed in enumerate(transpose_in_registers(e, rows)):
                        e.store(transposed, self._at(corner, t * extent))
                with c.loop(whole, end) as at_k, c.width(1):
                    corner = self._at(into, c.mul(at_k.index, extent))
                    for t, line in enumerate(here):
                        e.store(self._value(line, None, at_k.index), self._at(corner, t))

    def _strewn(self, at: OperandAccess, to: str, extent: int, first: Ref, count: Ref, k: Ref, depth: Ref) -> None:
        """Vectors along the depth, stored element by element."""
        c, e = self.code, self.e
        with c.loop(0, extent) as j:
            line = at.at(FREE, c.add(first, c.min(j.index, c.sub(count, 1))))
            with line.runs(DEPTH, k, c.add(k, depth)) as (outer, begin, end, behind):
                here = line.with_(outer)
                into = self._at(to, c.add(c.mul(c.sub(behind, k), extent), j.index))

                def at_k(i: Ref, mask: Val | None) -> None:
                    value = self._value(here, None, i, DEPTH, mask)
                    if e.width == 1:
                        e.store(value, self._at(into, c.mul(i, extent)), mask)
                    else:
                        positions = e.add(e.splat(c.value(i)), e.iota())
                        e.scatter(value, into, e.mul(positions, e.const(extent, positions.dtype)), mask)

                c.vector_loop(begin, end, self.width, at_k)


def _interleave(e: Emitter, parts: list[Val]) -> Val:
    """The first lanes of all parts, a power of two of them, then the second lanes, and so on."""
    block = 1
    while len(parts) > 1:
        lanes = parts[0].width
        order = [i + side for i in range(0, lanes, block) for side in (0, lanes)]
        both = [first + b for first in order for b in range(block)]
        parts = [e.shuffle(a, b, both) for a, b in zip(parts[::2], parts[1::2])]
        block *= 2
    return parts[0]
